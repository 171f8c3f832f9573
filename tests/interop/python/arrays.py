"""Exchanges npy and npz files between numpy and tenarc.

    arrays.py read DIR      reads what tenarc wrote
    arrays.py write DIR     writes files for tenarc to read

What an array holds follows from its name, as ../src/arrays.rs says.
"""

import sys
from pathlib import Path

import numpy as np

SHAPES = [(), (0,), (3,), (2, 3), (0, 3), (2, 3, 4)]
DTYPES = {
    "bool": "?", "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8", "i8": "i1", "i16": "i2",
    "i32": "i4", "i64": "i8", "f16": "f2", "f32": "f4", "f64": "f8", "c64": "c8", "c128": "c16",
}


def sample(dtype, shape, order="C", endian="<"):
    n = np.arange(np.prod(shape, dtype=int))
    if dtype == "bool":
        values = n % 2 == 1
    elif dtype[0] == "u":
        values = n
    else:
        values = np.where(n % 2 == 1, -n, n)
        if dtype[0] == "c":
            values = values + 1j * (n + 1)
    values = values.astype(DTYPES[dtype]).astype(np.dtype(DTYPES[dtype]).newbyteorder(endian))
    return values.reshape(shape).copy(order)


def samples():
    for dtype in DTYPES:
        for shape in SHAPES:
            for order in "CF":
                for endian in "<>":
                    name = f"{dtype}-{'x'.join(map(str, shape))}-{order}"
                    name += "-big" if endian == ">" else ""
                    yield name, sample(dtype, shape, order, endian)


def compare(name, found):
    dtype, shape, order = name.split("-")
    shape = tuple(int(dim) for dim in shape.split("x") if dim)
    expected = sample(dtype, shape)
    if found.dtype != expected.dtype or found.shape != shape:
        raise ValueError(f"{found.dtype} {found.shape}")
    if not np.array_equal(found, expected):
        raise ValueError(f"expected {expected}, found {found}")
    if order == "F" and not found.flags.f_contiguous:
        raise ValueError("not in Fortran order")


def read(directory):
    passed = failed = 0
    arrays = [(path.stem, lambda path=path: np.load(path)) for path in directory.glob("*.npy")]
    for path in directory.glob("*.npz"):
        npz = np.load(path)
        if npz.zip.testzip() is not None:
            raise ValueError(f"{path}: a checksum is wrong")
        arrays += [(name, lambda npz=npz, name=name: npz[name]) for name in npz.files]
    for name, load in arrays:
        try:
            compare(name, load())
            passed += 1
        except Exception as error:
            failed += 1
            print(f"FAILED {name} by numpy: {error!r:.400}")
    print(f"passed={passed} failed={failed}")
    sys.exit(failed > 0)


def write(directory):
    directory.mkdir(parents=True, exist_ok=True)
    arrays = dict(samples())
    for name, array in arrays.items():
        np.save(directory / f"{name}.npy", array)
    np.savez(directory / "stored.npz", **arrays)
    np.savez_compressed(directory / "deflated.npz", **arrays)


if __name__ == "__main__":
    {"read": read, "write": write}[sys.argv[1]](Path(sys.argv[2]))
