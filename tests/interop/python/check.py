"""The Python half: cbor2 and numpy.

    check.py read DIR    reads what tenarc wrote and compares it with the manifest beside it
    check.py write DIR   writes files and a manifest for tenarc to read

The form of manifests is described in ../src/data.rs.
"""

import json
import math
import struct
import sys
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import cbor2
import numpy as np
from cbor2 import CBORSimpleValue, CBORTag, undefined

from heads import array, break_, bytes_, chunks, head, tag

# RFC 8746, section 2.1: little-endian tag, big-endian tag, numpy's name.
TYPED = {
    "u8": (64, 64, "u1"),
    "u16": (69, 65, "u2"),
    "u32": (70, 66, "u4"),
    "u64": (71, 67, "u8"),
    "i8": (72, 72, "i1"),
    "i16": (77, 73, "i2"),
    "i32": (78, 74, "i4"),
    "i64": (79, 75, "i8"),
    "f16": (84, 80, "f2"),
    "f32": (85, 81, "f4"),
    "f64": (86, 82, "f8"),
}
COMPLEX = {"c64": ("f32", "c8"), "c128": ("f64", "c16")}
COMPLEX_TAG = 43001
CLAMPED_TAG = 68
F128_TAG = 87
ROW_MAJOR, COLUMN_MAJOR = 40, 1040
NAMED_TAG = int.from_bytes(b"TENS", "big")

BY_TAG = {CLAMPED_TAG: ("u8", "<u1")}
for _name, (_little, _big, _numpy) in TYPED.items():
    BY_TAG[_big] = (_name, ">" + _numpy)
    BY_TAG[_little] = (_name, "<" + _numpy)


class Mismatch(Exception):
    pass


class Numbers(NamedTuple):
    """A typed array, wherever its payload was."""

    dtype: str
    values: np.ndarray


class Tensor(NamedTuple):
    """A tensor as numpy sees it, and the order it was stored in."""

    dtype: str
    values: np.ndarray
    order: str


# Reading


def typed(value):
    """The dtype name and the numpy array of a typed array, opaque where numpy has no dtype."""
    if isinstance(value, Numbers):
        return value
    if value.tag == COMPLEX_TAG:
        _, parts = typed(value.value)
        name = {"f4": "c64", "f8": "c128"}[parts.dtype.str[1:]]
        return name, parts.view(parts.dtype.str[0] + COMPLEX[name][1])
    if value.tag == F128_TAG:
        return "f128", np.frombuffer(value.value, "V16")
    name, dtype = BY_TAG[value.tag]
    return name, np.frombuffer(value.value, dtype)


def is_typed(value):
    tags = [COMPLEX_TAG, F128_TAG, *BY_TAG]
    return isinstance(value, Numbers) or isinstance(value, CBORTag) and value.tag in tags


def tensor(value):
    """The dtype name, the array as numpy sees it, and the order it was stored in."""
    if isinstance(value, Tensor):
        return value
    if value.tag in (ROW_MAJOR, COLUMN_MAJOR):
        shape, elements = value.value
        name, flat = typed(elements)
        order = "C" if value.tag == ROW_MAJOR else "F"
    else:
        name, shape, order, payload = value.value
        known = {n: "<" + entry[-1] for n, entry in {**TYPED, **COMPLEX}.items()} | {"bool": "?"}
        sizes = {"bf16": "V2", "posit16": "V2"}
        if name == "f4":
            # Two elements to a byte: numpy can hold the bytes only.
            shape = (*shape[:-1], shape[-1] // 2)
        flat = np.frombuffer(payload, known.get(name, sizes.get(name, "V1")))
    return name, flat.reshape(shape, order=order), order


def compare(got, want):
    """Raises a Mismatch with the place of the first difference."""
    kind = want["t"]

    def check(same):
        if not same:
            raise Mismatch(f"found {got!r:.200}, wanted {json.dumps(want):.200}")

    if kind == "null":
        check(got is None)
    elif kind == "bool":
        check(got is want["v"])
    elif kind == "int":
        check(type(got) is int and got == int(want["v"]))
    elif kind in ("f32", "f64"):
        form = ">f" if kind == "f32" else ">d"
        (value,) = struct.unpack(form, bytes.fromhex(want["v"]))
        check(type(got) is float)
        # cbor2 gives a double: of a NaN only that it is one.
        nans = math.isnan(got) and math.isnan(value)
        check(nans or struct.pack(">d", got) == struct.pack(">d", value))
    elif kind == "text":
        check(type(got) is str and got == want["v"])
    elif kind == "bytes":
        check(type(got) is bytes and got.hex() == want["v"])
    elif kind == "array":
        if isinstance(got, Numbers):
            # Packed, it still means the same.
            got = got.values.tolist()
        check(isinstance(got, (list, tuple)) and len(got) == len(want["v"]))
        for index, (item, wanted) in enumerate(zip(got, want["v"])):
            at(index, item, wanted)
    elif kind == "map":
        check(isinstance(got, dict) and len(got) == len(want["v"]))
        for (key, item), (wanted_key, wanted) in zip(got.items(), want["v"]):
            at("key", key, wanted_key)
            at(key, item, wanted)
    elif kind == "tag":
        check(isinstance(got, CBORTag) and got.tag == want["tag"])
        at("tag", got.value, want["v"])
    elif kind == "numbers":
        check(is_typed(got))
        name, values = typed(got)
        check(name == want["dtype"] and values.ndim == 1)
        check(values.tobytes().hex() == want["v"])
    elif kind == "tensor":
        check(isinstance(got, (CBORTag, Tensor)))
        name, values, order = tensor(got)
        check(name == want["dtype"] and order == want["order"])
        shape = want["shape"]
        check(list(values.shape) == shape or name == "f4" and values.size * 2 == math.prod(shape))
        check(values.tobytes(order=order).hex() == want["v"])
    else:
        raise Mismatch(f"unknown description {kind}")


def at(place, got, want):
    try:
        compare(got, want)
    except Mismatch as error:
        raise Mismatch(f"[{place}] {error}") from None


def has_own_width(want):
    """Whether there is a float that Python writes in another width: single, or not finite."""
    if want["t"] == "f32":
        return True
    if want["t"] == "f64":
        return not math.isfinite(struct.unpack(">d", bytes.fromhex(want["v"]))[0])
    if want["t"] in ("array", "map"):
        items = want["v"] if want["t"] == "array" else [item for pair in want["v"] for item in pair]
        return any(map(has_own_width, items))
    return want["t"] == "tag" and has_own_width(want["v"])


# cbor2 writes these lengths as known; tenarc does not know them beforehand.
UNKNOWN_LENGTH = {"flatten.cbor", "seq-of-unknown-length.cbor"}


def read(directory):
    manifest = json.loads((directory / "manifest.json").read_text())
    passed = failed = 0
    for entry in manifest["files"]:
        data = (directory / entry["file"]).read_bytes()
        try:
            got = cbor2.loads(data)
            compare(got, entry["value"])
            # Heads are as short as they can be, and lengths definite: as cbor2 writes it.
            exact = not has_own_width(entry["value"]) and entry["file"] not in UNKNOWN_LENGTH
            if exact and cbor2.dumps(got) != data:
                raise Mismatch(f"cbor2 writes {cbor2.dumps(got).hex():.200}, found {data.hex():.99}")
            passed += 1
        except Exception as error:
            failed += 1
            print(f"FAILED {entry['file']} by Python's cbor2: {error!r}")
    return passed, failed


# Writing


def text(value):
    return {"t": "text", "v": value}


def describe(value):
    """The description of a Python value."""
    if value is None:
        return {"t": "null"}
    if value is undefined:
        return {"t": "undefined"}
    if isinstance(value, bool):
        return {"t": "bool", "v": value}
    if isinstance(value, int):
        return {"t": "int", "v": str(value)}
    if isinstance(value, float):
        return {"t": "float", "v": struct.pack(">d", value).hex()}
    if isinstance(value, str):
        return text(value)
    if isinstance(value, bytes):
        return {"t": "bytes", "v": value.hex()}
    if isinstance(value, Numbers):
        data = little(value.values).tobytes().hex()
        return {"t": "numbers", "dtype": value.dtype, "v": data}
    if isinstance(value, Tensor):
        return describe_tensor(*value)
    if isinstance(value, np.ndarray):
        return describe(as_tensor(value))
    if isinstance(value, (list, tuple)):
        return {"t": "array", "v": [describe(item) for item in value]}
    if isinstance(value, dict):
        return {"t": "map", "v": [[describe(key), describe(item)] for key, item in value.items()]}
    if isinstance(value, CBORTag):
        if is_typed(value):
            return describe(Numbers(*typed(value)))
        if value.tag in (ROW_MAJOR, COLUMN_MAJOR, NAMED_TAG):
            return describe_tensor(*tensor(value))
        return {"t": "tag", "tag": value.tag, "v": describe(value.value)}
    raise TypeError(type(value))


def describe_tensor(name, values, order):
    if values.ndim < 2:
        order = "C"
    data = little(values).tobytes(order=order).hex()
    return {"t": "tensor", "dtype": name, "shape": list(values.shape), "order": order, "v": data}


def little(values):
    """The same bits in little-endian order; a conversion might quiet NaNs."""
    if values.dtype.str[0] != ">":
        return values
    return values.byteswap().view(values.dtype.newbyteorder("<"))


def typed_tag(values):
    """The typed array of a numpy array's elements, in the byte order it has."""
    kind, size = values.dtype.kind, values.dtype.itemsize
    flat = values.tobytes(order="F" if is_column_major(values) else "C")
    if kind == "c":
        parts = values.dtype.str[0] + f"f{size // 2}"
        return CBORTag(COMPLEX_TAG, typed_tag(np.frombuffer(flat, parts)))
    name = f"{kind}{size * 8}"
    little_tag, big_tag, _ = TYPED[name]
    return CBORTag(big_tag if values.dtype.str[0] == ">" else little_tag, flat)


def as_tensor(values):
    """A numpy array with the name of its dtype and the order in which it lies."""
    kind = values.dtype.kind
    name = "bool" if kind == "b" else f"{kind}{values.dtype.itemsize * 8}"
    return Tensor(name, values, "F" if is_column_major(values) else "C")


def is_column_major(values):
    return values.flags.f_contiguous and not values.flags.c_contiguous


def tensor_tag(values):
    """A tensor as tenarc and RFC 8746 have it."""
    shape = list(values.shape)
    if values.dtype.kind == "b":
        order = "F" if is_column_major(values) else "C"
        return CBORTag(NAMED_TAG, ["bool", shape, order, values.tobytes(order=order)])
    tag_number = COLUMN_MAJOR if is_column_major(values) else ROW_MAJOR
    return CBORTag(tag_number, [shape, typed_tag(values)])


def samples():
    """Arrays of every numpy dtype that has a place, in both byte orders."""
    bits = np.random.default_rng(8949)
    names = {name: entry[-1] for name, entry in {**TYPED, **COMPLEX}.items()}
    for name, dtype in names.items():
        for order in "<>":
            if order == ">" and dtype in ("u1", "i1"):
                continue
            width = np.dtype(dtype).itemsize
            # Any bits, so that float arrays have NaN payloads and subnormals too.
            yield name, order, np.frombuffer(bits.bytes(6 * width), order + dtype)
    yield "bool", "<", np.array([True, False, False, True, True, False])


def tensors():
    for name, order, values in samples():
        end = "le" if order == "<" else "be"
        if name != "bool":
            yield f"numbers-{name}-{end}", typed_tag(values)
        yield f"tensor-{name}-{end}-1d", tensor_tag(values)
        yield f"tensor-{name}-{end}-rows", tensor_tag(values.reshape(2, 3))
        yield f"tensor-{name}-{end}-columns", tensor_tag(np.asfortranarray(values.reshape(2, 3)))
        yield f"tensor-{name}-{end}-rank4", tensor_tag(values.reshape(1, 3, 2, 1))
        yield f"tensor-{name}-{end}-scalar", tensor_tag(values[2].reshape(()))
    yield "numbers-clamped", CBORTag(CLAMPED_TAG, bytes([0, 1, 255]))
    yield "numbers-empty", CBORTag(85, b"")
    # RFC 8746 forbids a dimension of zero, others write it nevertheless.
    yield "tensor-empty", CBORTag(ROW_MAJOR, [[0, 3], CBORTag(85, b"")])


def plain():
    yield "numbers", [0, 23, 24, 255, 256, 65535, 65536, 2**32, 2**64 - 1, -1, -24, -25, -(2**64)]
    yield "bignums", [2**64, -(2**64) - 1, 2**127 - 1, -(2**127)]
    yield "floats", [0.0, -0.0, 0.1, 1.5, 65504.0, 1e-7, 1e300, math.inf, -math.inf, math.nan]
    yield "words", [None, True, False, undefined]
    yield "text", ["", "a", "ü", "水", "𐅑", "x" * 300]
    yield "bytes", [b"", b"\0\xff", bytes(range(256)) * 300]
    yield "nested", {"a": [1, [2, [3, {}]]], "b": {"c": {"d": None}}, "": []}
    yield "keys", {1: "one", -1: "minus", "two": 2, b"three": 3, (1, 2): "pair", 0.5: "half"}
    yield "long", list(range(1000))


def indefinite():
    """Forms that other encoders choose and cbor2 does not: bytes by hand, with their meaning."""
    values = np.arange(6, dtype="<f4").reshape(2, 3)
    data, shape = values.tobytes(), array([head(0, 2), head(0, 3)])
    want = describe_tensor("f32", values, "C")
    swapped = values.astype(">f4").tobytes()

    def rows(payload, dims=shape):
        return tag(ROW_MAJOR, array([dims, payload]))

    yield "array", array([head(0, 1), head(0, 2)], definite=False), describe([1, 2])
    yield "map", head(5, None) + cbor2.dumps("a") + head(0, 1) + break_, describe({"a": 1})
    yield "text", chunks(3, b"stre", "aü".encode(), b"m"), text("streaü" + "m")
    yield "bytes", chunks(2, b"\1\2", b"", b"\3"), describe(b"\1\2\3")
    yield "no-chunks", chunks(2), describe(b"")
    open_shape = array([head(0, 2), head(0, 3)], definite=False)
    yield "shape", rows(tag(85, bytes_(data)), open_shape), want
    yield "outer", tag(ROW_MAJOR, array([shape, tag(85, bytes_(data))], definite=False)), want
    # Split inside an element, and padded with empty chunks for alignment's sake.
    yield "split", rows(tag(85, chunks(2, data[:3], data[3:4], data[4:]))), want
    yield "padded", rows(tag(85, chunks(2, b"", b"", b"", data, b""))), want
    yield "big-endian", rows(tag(81, chunks(2, swapped[:7], swapped[7:]))), want
    yield "single-bytes", rows(tag(85, chunks(2, *(data[i : i + 1] for i in range(24))))), want
    yield "numbers", tag(85, chunks(2, data[:5], data[5:])), describe(CBORTag(85, data))
    # Heads longer than they need be.
    long = head(6, ROW_MAJOR, 8) + head(4, 2, 2) + head(4, 2, 4) + head(0, 2, 1) + head(0, 3, 8)
    yield "long-heads", long + head(6, 85, 4) + head(2, 24, 8) + data, want
    yield "long-int", head(0, 5, 8), describe(5)
    yield "long-text", head(3, 2, 4) + b"ab", text("ab")
    # Elements as a classical array (RFC 8746, section 3.1.1).
    whole = describe_tensor("i64", np.arange(4).reshape(2, 2), "C")
    yield "classical", cbor2.dumps(CBORTag(ROW_MAJOR, [[2, 2], [0, 1, 2, 3]])), whole
    columns = describe_tensor("f64", np.array([[0.5, 2.5], [1.5, 3.5]], order="F"), "F")
    listed = tag(COLUMN_MAJOR, array([cbor2.dumps([2, 2]), cbor2.dumps([0.5, 1.5, 2.5, 3.5])]))
    yield "classical-columns", listed, columns


def record():
    weight = (np.arange(6, dtype="<f4") * 0.25).reshape(2, 3)
    history = np.linspace(1, 0, 10).astype("<f4")
    return {
        "name": "written by Python",
        "epoch": 3,
        "weight": tensor_tag(weight),
        "bias": tensor_tag(np.array([0.5, -1.5])),
        "history": typed_tag(history),
        "note": None,
        "unknown": {"to": ["the", "struct"]},
    }


def write(directory):
    directory.mkdir(parents=True, exist_ok=True)
    files = []

    def add(name, data, value, **more):
        (directory / f"{name}.cbor").write_bytes(data)
        files.append({"file": f"{name}.cbor", "value": value, **more})

    for name, value in plain():
        add(f"plain-{name}", cbor2.dumps(value), describe(value))
        add(f"canonical-{name}", cbor2.dumps(value, canonical=True), describe(value))
        add(f"indefinite-{name}", cbor2.dumps(value, indefinite_containers=True), describe(value))
    for name, value in tensors():
        add(name, cbor2.dumps(value), describe(value))
    for name, data, value in indefinite():
        add(f"form-{name}", data, value)

    # Tags that tenarc has no meaning for are kept.
    when = datetime(2013, 3, 21, 20, 4, tzinfo=timezone.utc)
    add("tag-date", cbor2.dumps(when), {"t": "tag", "tag": 0, "v": text("2013-03-21T20:04:00Z")})
    price = {"t": "tag", "tag": 4, "v": describe([-2, 314])}
    add("tag-decimal", cbor2.dumps(Decimal("3.14")), price)
    add("tag-unknown", cbor2.dumps(CBORTag(4242, [1, "a"])), describe(CBORTag(4242, [1, "a"])))
    add("simple", cbor2.dumps(CBORSimpleValue(99)), {"t": "simple", "v": 99})

    # The struct takes only the fields it knows, which is what its description lists.
    value = record()
    data = cbor2.dumps(value)
    add("record-as-value", data, describe(value))
    known = {key: item for key, item in value.items() if key != "unknown"}
    add("record", cbor2.dumps(known), describe(known), **{"as": "record"})

    manifest = {"writer": "Python's cbor2", "files": files}
    (directory / "manifest.json").write_text(json.dumps(manifest))


def main():
    command, directory = sys.argv[1], Path(sys.argv[2])
    if command == "write":
        return write(directory)
    passed, failed = read(directory)
    # Read by the script that adds up all steps.
    print(f"passed={passed} failed={failed}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
