"""Writes random HDF5 datasets with h5py, converts them by the command, and compares every element with what h5py reads.

    chunks.py TENARC DIR [FILES [SEED]]

TENARC is the command. Files with six datasets each are written to DIR, and those of which one is wrong stay there. The same
SEED gives the same files.

Each dataset has a random shape, maxshape, type, layout, filters, fill value and time of allocation, is written in parts and
resized, in a file of a random version of the format. The run fails if a dataset is refused, or if a kind of index of chunks
did not occur.
"""

import ctypes
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import h5py
import numpy as np
from h5py import h5d, h5f, h5p, h5s, h5t, h5z

sys.path.insert(0, str(Path(__file__).parents[3] / "python/src"))
import tenarc  # noqa: E402

VERSIONS = [h5f.LIBVER_EARLIEST, h5f.LIBVER_V18, h5f.LIBVER_V110, h5f.LIBVER_V112, h5f.LIBVER_V114, h5f.LIBVER_LATEST]
# The last one stands for texts of variable length.
DTYPES = ["i1", "<i2", ">i4", "<i8", "u1", ">u2", "<u4", "<f4", ">f4", "<f8", ">f8", "<f2", "<c8", ">c16", "?", "(3,)<i2", "(2,2)>f4", "S5", "O"]
# Filters with which a pipeline is made. The others stand alone, as they depend on the type.
PLAIN = ["shuffle", "gzip", "lzf", "fletcher32"]
# h5py has no name for it: https://docs.hdfgroup.org, H5Pset_chunk_opts.
DONT_FILTER_PARTIAL_CHUNKS = 2

# Each index of chunks, by the number in the layout message of version 4. The older B-tree has none.
INDICES = {1: "single chunk", 2: "implicit", 3: "fixed array", 4: "extensible array", 5: "B-tree 2", None: "B-tree 1"}


def library():
    """HDF5's library, as h5py has loaded it."""
    folder = Path(h5py.__file__).parent
    (path,) = [*folder.parent.glob("h5py.libs/libhdf5-*.so*")]
    return ctypes.CDLL(str(path))


LIBRARY = library()


def index_of(dataset):
    """The kind of index, or None if the dataset has no chunks."""
    if dataset.id.get_create_plist().get_layout() != h5d.CHUNKED:
        return None
    kind = ctypes.c_int()
    # The numbers are those of the layout message, but that of the older B-tree, which is 0.
    assert LIBRARY.H5Dget_chunk_index_type(ctypes.c_int64(dataset.id.id), ctypes.byref(kind)) >= 0
    return INDICES[kind.value or None]


def elements(rng, dtype, count):
    """Random elements, with their base type. Not too random, so that filters find something."""
    dtype = np.dtype(dtype)
    base, inner = dtype.base, dtype.shape
    shape = (count, *inner)
    if base.kind in "SO":
        return np.array([bytes(rng.choices(b"abc", k=rng.randrange(6))) for _ in range(count)], base)
    numbers = np.random.default_rng(rng.randrange(1 << 32))
    top = rng.choice([3, 100, 30000])
    found = numbers.integers(0 if base.kind in "ub" else -top, top, shape)
    return found.astype(np.int8 if base.itemsize == 1 and base.kind != "b" else base).astype(base)


def sizes(rng):
    """A shape, a maxshape and a shape of chunks."""
    kind = rng.random()
    if kind < 0.08:
        # So many chunks that fixed and extensible arrays have pages.
        shape = (rng.randrange(1100, 9000),) if rng.random() < 0.5 else (rng.randrange(30, 90), rng.randrange(40, 90))
        chunks = (1,) * len(shape)
        most = 100
    elif kind < 0.11:
        # Only from 131,060 chunks on, extensible arrays have them.
        shape, chunks, most = (rng.randrange(131_000, 135_000),), (1,), 9000
    else:
        rank = rng.choice([1, 1, 2, 2, 2, 3, 3, 4])
        top = [0, 60, 24, 12, 7][rank]
        shape = tuple(rng.randrange(0 if rng.random() < 0.1 else 1, top) for _ in range(rank))
        chunks = tuple(rng.randrange(1, top) for _ in range(rank))
        most = top
    ways = rng.choice([[0], [1], [2], [0, 1], [0, 1, 2], [1, 2]])
    maxshape = tuple(
        [n, n + rng.randrange(most), h5s.UNLIMITED][rng.choice(ways)] for n in shape
    )
    # The library wants chunks that are not larger than the most there can be.
    maxshape = tuple(max(n, 1) if n != h5s.UNLIMITED else n for n in maxshape)
    chunks = tuple(c if m == h5s.UNLIMITED else min(c, m) for c, m in zip(chunks, maxshape))
    return shape, maxshape, chunks


def pipeline(rng, plist, dtype, chunks):
    """Adds filters, and returns their names."""
    base = np.dtype(dtype).base
    names = []
    kind = rng.random()
    if kind < 0.4:
        return names
    if kind < 0.85:
        names = [name for name in PLAIN if rng.random() < 0.4]
        if {"gzip", "lzf"} <= {*names}:
            names.remove("lzf")
        if dtype == "O" and "fletcher32" in names:
            # The library refuses a checksum of places of texts.
            names.remove("fletcher32")
        if rng.random() < 0.2:
            rng.shuffle(names)
    elif base.kind in "iuf" and base != np.float16 and np.dtype(dtype).shape == () and kind < 0.92:
        names = ["scaleoffset"]
    elif base.kind in "iuf" and np.dtype(dtype).shape == () and kind < 0.96:
        names = ["nbit"]
    elif base.kind in "iuf" and np.dtype(dtype).shape == () and np.prod(chunks) >= 32:
        names = ["szip"]
    for name in names:
        if name == "shuffle":
            plist.set_shuffle()
        elif name == "gzip":
            plist.set_deflate(rng.randrange(10))
        elif name == "lzf":
            plist.set_filter(h5z.FILTER_LZF, h5z.FLAG_OPTIONAL)
        elif name == "fletcher32":
            plist.set_fletcher32()
        elif name == "nbit":
            plist.set_filter(h5z.FILTER_NBIT, h5z.FLAG_OPTIONAL, ())
        elif name == "szip":
            plist.set_szip(h5z.SZIP_NN_OPTION_MASK if rng.random() < 0.5 else h5z.SZIP_EC_OPTION_MASK, rng.choice([2, 8, 32]))
        elif base.kind == "f":
            plist.set_scaleoffset(h5z.SO_FLOAT_DSCALE, rng.randrange(4))
        else:
            plist.set_scaleoffset(h5z.SO_INT, h5z.SO_INT_MINBITS_DEFAULT)
    return names


def write(rng, dataset, dtype):
    """Writes one part of a dataset."""
    if 0 in dataset.shape or not dataset.shape:
        if dataset.shape == ():
            dataset[()] = elements(rng, dtype, 1)[0]
        return
    part = []
    for n in dataset.shape:
        start = rng.randrange(n) if rng.random() < 0.7 else n - 1 - rng.randrange(min(n, 3000))
        part.append(slice(start, rng.choice([n, start + 1, rng.randrange(start, n) + 1])))
    shape = tuple(p.stop - p.start for p in part)
    # To write many chunks one by one takes long.
    if np.prod(shape) > 4000:
        part = [slice(p.start, p.start + min(p.stop - p.start, 20)) for p in part]
        shape = tuple(p.stop - p.start for p in part)
    values = elements(rng, dtype, int(np.prod(shape)))
    dataset[tuple(part)] = values.reshape(shape + values.shape[1:])


def resize(rng, dataset, maxshape):
    shape = []
    for n, most in zip(dataset.shape, maxshape):
        top = n + 10 if most == h5s.UNLIMITED else most
        shape.append(rng.choice([n, rng.randrange(top + 1), min(n + 1, top)]))
    dataset.resize(tuple(shape))


def make(rng, file, name):
    """Writes one dataset, and returns how it is described and whether the elements not written are known."""
    dtype = rng.choice(DTYPES)
    plist = h5p.create(h5p.DATASET_CREATE)
    shape, maxshape, chunks = sizes(rng)
    layout = rng.choice(["chunked"] * 12 + ["contiguous", "compact", "scalar"])
    described = [dtype]
    if layout == "chunked":
        plist.set_chunk(chunks)
        filters = pipeline(rng, plist, dtype, chunks)
        described += [f"{shape} of at most {maxshape} in chunks {chunks}", *filters]
        if rng.random() < 0.15:
            assert LIBRARY.H5Pset_chunk_opts(ctypes.c_int64(plist.id), DONT_FILTER_PARTIAL_CHUNKS) >= 0
            described.append("partial chunks not filtered")
    else:
        if layout == "scalar":
            shape = ()
        elif layout == "compact":
            plist.set_layout(h5d.COMPACT)
            shape = tuple(n % 5 for n in shape)
        maxshape = shape
        described += [layout, str(shape)]
    time = rng.choice([None, h5d.ALLOC_TIME_EARLY, h5d.ALLOC_TIME_LATE, h5d.ALLOC_TIME_INCR])
    if max(shape, default=0) > 100_000:
        # To write so many chunks takes long.
        time = h5d.ALLOC_TIME_INCR
    if time is not None and layout != "compact":
        plist.set_alloc_time(time)
        described.append(f"allocation {time}")
    base = np.dtype(dtype).base
    times = [None, h5d.FILL_TIME_ALLOC, h5d.FILL_TIME_IFSET]
    if dtype != "?" and (rng.random() < 0.5 or np.dtype(dtype).shape or dtype == "O"):
        # With a value and this time, what is not written is not defined.
        times.append(h5d.FILL_TIME_NEVER)
    else:
        fill = elements(rng, dtype, 1)
        plist.set_fill_value(fill)
        described.append(f"fill {fill[0]}")
    fill_time = rng.choice(times)
    if dtype == "O" or (dtype, layout) == ("?", "contiguous"):
        # Otherwise, what is not written is whatever the file had there.
        fill_time = h5d.FILL_TIME_ALLOC
    if fill_time is not None:
        plist.set_fill_time(fill_time)
        described.append(f"fill time {fill_time}")
    space = h5s.create(h5s.SCALAR) if layout == "scalar" else h5s.create_simple(shape, maxshape)
    kind = h5t.py_create(h5py.string_dtype() if dtype == "O" else np.dtype(dtype), logical=True)
    identity = h5d.create(file.id, name.encode(), kind, space, plist)
    dataset = h5py.Dataset(identity)
    if rng.random() < 0.1:
        # NetCDF's fill value is an attribute. It does not change what HDF5 reads.
        dataset.attrs["_FillValue"] = np.zeros(1, "S1") if base.kind in "SO" else np.full(1, 1, base)
    for _ in range(rng.choice([0, 1, 1, 2, 4])):
        write(rng, dataset, dtype)
        if maxshape != shape and rng.random() < 0.5:
            resize(rng, dataset, maxshape)
            described.append(f"resized to {dataset.shape}")
    return ", ".join(described)


def make_file(rng, path):
    """Writes a file, and returns the description of each dataset."""
    plist = h5p.create(h5p.FILE_CREATE)
    described = []
    if rng.random() < 0.2:
        plist.set_userblock(rng.choice([512, 2048]))
        described.append("user block")
    access = h5p.create(h5p.FILE_ACCESS)
    version = rng.choice(VERSIONS)
    # The crate does not read the old groups of such files.
    if version != h5f.LIBVER_EARLIEST and rng.random() < 0.2:
        plist.set_sizes(4, 8)
        described.append("addresses of 4 bytes")
    access.set_libver_bounds(version, h5f.LIBVER_LATEST)
    described.append(f"version {VERSIONS.index(version)}")
    names = {}
    with h5py.File(h5f.create(str(path).encode(), h5f.ACC_TRUNC, plist, access)) as file:
        for number in range(6):
            name = f"d{number}"
            names[name] = "; ".join([*described, make(rng, file, name)])
    return names


def texts(value):
    """A list of texts, or a text, as bytes."""
    if isinstance(value, (list, tuple)):
        return [*map(texts, value)]
    return value.encode() if isinstance(value, str) else value


def same(expected, found):
    if expected.dtype.kind in "SO":
        return texts(found) == expected.tolist()
    found = np.asarray(found)
    little = expected.astype(expected.dtype.newbyteorder("="))
    return (found.dtype, found.shape, found.tobytes()) == (little.dtype, little.shape, little.tobytes())


def main(command, directory, files=80, seed=0):
    directory.mkdir(parents=True, exist_ok=True)
    wrong, passed, indices = [], 0, Counter()
    for number in range(files):
        rng = random.Random(f"{seed} {number}")
        path, archive = directory / f"{number}.h5", directory / "a.tenarc"
        names = make_file(rng, path)
        run = [command, "convert", "--no-sync", "--lossy", "--max-memory", "1G", str(path), str(archive)]
        ran = subprocess.run(run, capture_output=True, text=True)
        if ran.returncode:
            reason = ran.stderr.strip()
            named = [described for name, described in names.items() if f" {name}:" in reason]
            wrong.append(f"{reason}: {named or [*names.values()]}")
            continue
        found = tenarc.load(archive)
        before = len(wrong)
        with h5py.File(path) as file:
            for name, described in names.items():
                indices[index_of(file[name])] += 1
                expected = np.asarray(file[name][()])
                # An empty list of texts cannot tell how many dimensions it had.
                has_no_shape = expected.dtype.kind in "SO" and expected.ndim > 1 and expected.size == 0
                if has_no_shape if name not in found else same(expected, found[name]):
                    passed += 1
                else:
                    wrong.append(f"{path} {name}: {described}{'' if name in found else ran.stderr}")
        if len(wrong) == before:
            path.unlink()
    print(*wrong, sep="\n")
    print(", ".join(f"{index}: {count}" for index, count in sorted(indices.items(), key=str)))
    missing = [index for index in INDICES.values() if files >= 50 and not indices[index]]
    if missing:
        print(f"no dataset had the index {missing}")
    print(f"passed={passed} failed={len(wrong) + len(missing)}")


if __name__ == "__main__":
    command, directory, *more = sys.argv[1:]
    main(command, Path(directory), *map(int, more))
