"""Exchanges MessagePack with arrays of numpy, by msgpack and msgpack-numpy.

    packed.py write DIR    writes values with arrays, scalars and plain ones, one to a file
    packed.py read DIR     reads what tenarc made of them, in DIR/again, and compares
"""

import sys
from pathlib import Path

import msgpack
import msgpack_numpy
import numpy as np

DTYPES = "|b1 |u1 |i1 <u2 <i2 <u4 <i4 <u8 <i8 <f2 <f4 <f8 <c8 <c16".split()


def arrays(descr):
    """Arrays of several ranks and sizes, and a scalar."""
    numbers = np.random.default_rng(11)
    for shape in [(3,), (2, 5), (0,), (2, 0, 3), (1,) * 9, (40, 50)]:
        yield (numbers.random(shape) * 100).astype(descr)
    yield np.ones(2, descr)[0]


def files():
    """Name, value, and options of the writer. What tenarc writes as it was starts with `same`."""
    for descr in DTYPES:
        name = descr[1:]
        yield f"same-{name}", {"arrays": list(arrays(descr)), 7: descr}, {}
        yield f"big-{name}", [array.astype(descr.replace("<", ">")) for array in arrays(descr)], {}
        yield f"old-{name}", list(arrays(descr)), {"use_bin_type": False}
    plain = [None, True, 2**64 - 1, -(2**63), 0.1, "é", b"\x00\xff", {"a": {b"b": [[]]}}, "x" * 300, list(range(300))]
    yield "same-plain", plain, {}
    yield "same-extension", [msgpack.ExtType(5, b"abc"), msgpack.Timestamp(1, 2)], {}
    yield "complex", [1 + 2j, complex("-0-1e-300j"), complex("inf")], {}


def write(directory):
    directory.mkdir(parents=True, exist_ok=True)
    for name, value, options in files():
        packed = msgpack.packb(value, default=msgpack_numpy.encode, **options)
        (directory / f"{name}.msgpack").write_bytes(packed)


def same(found, expected):
    if isinstance(expected, np.ndarray):
        return (
            isinstance(found, np.ndarray)
            and found.shape == expected.shape
            and found.dtype == expected.dtype.newbyteorder("<")
            and found.tobytes() == expected.astype(found.dtype).tobytes()
        )
    if isinstance(expected, np.generic):
        # A float64 is a float to msgpack.
        kinds = (np.generic, float) if expected.dtype == "f8" else np.generic
        return isinstance(found, kinds) and found == expected and np.result_type(found) == expected.dtype
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, dict):
        return list(found) == list(expected) and all(same(found[key], expected[key]) for key in expected)
    return found == expected


def read(directory):
    passed = failed = 0
    for name, expected, _ in files():
        packed = (directory / "again" / f"{name}.msgpack").read_bytes()
        found = msgpack.unpackb(packed, object_hook=msgpack_numpy.decode, strict_map_key=False)
        ok = same(found, expected)
        passed, failed = passed + ok, failed + (not ok)
        if not ok:
            print(f"FAILED {name}: another value")
    print(f"passed={passed} failed={failed}")
    return failed > 0


if __name__ == "__main__":
    action, directory = sys.argv[1], Path(sys.argv[2])
    sys.exit({"write": write, "read": read}[action](directory))
