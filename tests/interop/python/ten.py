"""Exchanges files of webdataset's tenbin, by webdataset itself.

    ten.py write DIR    writes arrays of every dtype it knows as files and as frames
    ten.py read DIR     reads what tenarc made of them, in DIR/again, and compares
"""

import sys
from pathlib import Path

import numpy as np
from webdataset import tenbin

DTYPES = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u8"]


def arrays(dtype):
    """Arrays and their names: several ranks, sizes around a block, none at all."""
    numbers = np.random.default_rng(7)
    for shape in [(1,), (3, 5), (0,), (2, 0, 3), (63,), (64,), (65,), (2,) * 9, (4000,)]:
        values = numbers.integers(0, 100, shape).astype(dtype)
        yield "x" * (len(shape) - 1), values


def files():
    for dtype in DTYPES:
        yield f"{dtype}.ten", list(arrays(dtype))
    yield "none.ten", []


def write(directory):
    directory.mkdir(parents=True, exist_ok=True)
    for name, found in files():
        values, names = [values for _, values in found], [name for name, _ in found]
        tenbin.save(str(directory / name), *values, infos=names if found else None)
        for number, frame in enumerate(tenbin.encode_list(values, infos=names) if found else []):
            (directory / f"{name}.{number:02}").write_bytes(bytes(frame))


def read(directory):
    passed = failed = 0
    for name, expected in files():
        found, names = tenbin.load(str(directory / "again" / name), infos=True)
        same = len(found) == len(expected) and all(
            (name, values.dtype, values.shape, values.tobytes())
            == (expected_name, other.dtype, other.shape, other.tobytes())
            for name, values, (expected_name, other) in zip(names, found, expected)
        )
        passed, failed = passed + same, failed + (not same)
        if not same:
            print(f"FAILED {name}: another value")
    print(f"passed={passed} failed={failed}")
    return failed > 0


if __name__ == "__main__":
    action, directory = sys.argv[1], Path(sys.argv[2])
    sys.exit({"write": write, "read": read}[action](directory))
