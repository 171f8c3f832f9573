"""Writes random structured arrays with h5py and numpy, converts them to tables by `--table`, and compares every value with what
pyarrow reads of the table as a Parquet file, and numpy as an npz file.

    rows.py TENARC DIR [FILES [SEED]]

TENARC is the command. Files are written to DIR, and those that are wrong stay there. The same SEED gives the same files.
"""

import random
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

NUMBERS = ["?", "i1", "<i2", ">i4", "<i8", "u1", ">u2", "<u4", "<u8", "<f4", ">f4", "<f8", ">f8", "<f2"]
TIMES = ["<M8[s]", "<M8[ms]", "<M8[us]", "<M8[ns]", "<m8[ms]", "<m8[ns]"]


def column(rng, rows, kind, units):
    """A random array with this many rows."""
    if kind == "times":
        array = np.frombuffer(rng.randbytes(4 * rows), "<i4").astype("<i8").view(rng.choice(units)).copy()
        array[np.frombuffer(rng.randbytes(rows), "u1") < rng.choice([0, 40])] = "NaT"
        return array
    if kind == "texts":
        return np.array([rng.choice(["", "a", "b c", "häß", "日本"]) for _ in range(rows)], dtype="U5")
    dtype = np.dtype(rng.choice(NUMBERS))
    inner = {"numbers": (), "vectors": (3,), "matrices": (2, 2)}[kind]
    count = rows * int(np.prod(inner))
    bits = np.frombuffer(rng.randbytes(count * dtype.itemsize), "u1")
    array = bits % 2 == 1 if dtype.kind == "b" else bits.view(dtype)
    return array.reshape(rows, *inner)


def arrays(rng, units):
    kinds = ["numbers", "vectors", "matrices", "texts", "times"]
    rows = rng.choice([1, 2, 20, 300, 70_000])
    return {f"c{number}": column(rng, rows, rng.choice(kinds), units) for number in range(rng.randint(1, 6))}


def structured(found):
    """The arrays as the fields of one."""
    fields = [(name, array.dtype, array.shape[1:]) for name, array in found.items()]
    rows = np.empty(len(next(iter(found.values()))), fields)
    for name, array in found.items():
        rows[name] = array
    return rows


def write(rng, path, found):
    if path.suffix == ".npz":
        np.savez(path, **found)
    elif path.suffix == ".npy":
        np.save(path, structured(found))
    else:
        texts = {name: h5py.string_dtype() for name, array in found.items() if array.dtype.kind == "U"}
        times = {name: array.dtype for name, array in found.items() if array.dtype.kind in "mM"}
        rows = structured({name: array.view("<i8") if name in times else array for name, array in found.items()})
        rows = rows.astype([(name, texts.get(name, rows.dtype[name])) for name in rows.dtype.names])
        with h5py.File(path, "w") as file:
            file["other"] = np.arange(7)
            dataset = file.create_dataset("run/rows", data=rows, chunks=rng.choice([None, (min(len(rows), 1000),)]))
            # As pandas says it.
            dataset.attrs.update({f"{name}_dtype": np.bytes_(str(dtype)) for name, dtype in times.items()})


def same(found, expected):
    """Whether two arrays have the same type and bits, and NaT where the other has it."""
    expected = expected.astype(expected.dtype.newbyteorder("<"))
    if expected.dtype.kind == "U":
        return found.tolist() == expected.tolist()
    if expected.dtype.kind in "mM" and found.dtype == object:
        # A table without any value of a column does not know its type.
        return np.isnat(expected).all() and all(value is None for value in found)
    if expected.dtype.kind in "mM" and found.dtype.kind == expected.dtype.kind:
        # Parquet has no seconds, and pandas' times are not days.
        found = found.astype(expected.dtype)
    return found.dtype == expected.dtype and found.reshape(expected.shape).tobytes() == expected.tobytes()


def of_arrow(table, name):
    values = table.column(name).combine_chunks()
    if isinstance(values.type, pa.FixedShapeTensorType):
        # pyarrow makes no array of tensors of bools.
        values = values.storage.flatten()
    if pa.types.is_string(values.type):
        return np.array(values.to_pylist())
    return values.to_numpy(zero_copy_only=False)


def run(command, *args):
    ran = subprocess.run([command, *args], capture_output=True, text=True, check=False)
    return ran.returncode == 0, ran.stderr


def main(command, directory, count="60", seed="1"):
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    rng = random.Random(int(seed))
    passed = failed = 0
    for number in range(int(count)):
        suffix = [".h5", ".npz", ".npy"][number % 3]
        # pandas has no days.
        found = arrays(rng, TIMES if suffix == ".h5" else [*TIMES, "<M8[D]"])
        path = directory / f"{number}{suffix}"
        write(rng, path, found)
        option = "--table=run.rows" if suffix == ".h5" else "--table"
        wrong = []
        for to in ["parquet", "npz"]:
            out = directory / f"{number}.table.{to}"
            good, message = run(command, "-q", "convert", "--no-sync", option, path, out)
            if to == "npz" and any(array.dtype.kind in "mM" and np.isnat(array).any() for array in found.values()):
                # A column with nulls is no array.
                if good or "optional values" not in message:
                    wrong.append(f"{to}: nulls are not refused")
                continue
            if not good:
                wrong.append(f"{to}: {message}")
                continue
            table = pq.read_table(out) if to == "parquet" else np.load(out)
            values = of_arrow if to == "parquet" else lambda table, name: table[name]
            wrong += [f"{to}: {name}" for name in found if not same(values(table, name), found[name])]
        if wrong:
            failed += 1
            print(f"{path}: {wrong}")
        else:
            passed += 1
            for file in directory.glob(f"{number}.*"):
                file.unlink()
    print(f"passed={passed} failed={failed}")
    return failed == 0


if __name__ == "__main__":
    sys.exit(not main(*sys.argv[1:]))
