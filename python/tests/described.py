"""Descriptions of values, as in the manifests that the Rust program uses (tests/interop/src/data.rs)."""

from __future__ import annotations

import datetime
import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np

import tenarc
from tenarc import dtypes


def describe(value: Any) -> Any:
    """The description of a value."""
    if value is None:
        return {"t": "null"}
    if isinstance(value, bool):
        return {"t": "bool", "v": value}
    if isinstance(value, int):
        return {"t": "int", "v": str(value)}
    if isinstance(value, np.float32):
        return {"t": "f32", "v": struct.pack(">f", value).hex()}
    if isinstance(value, float):
        return {"t": "f64", "v": struct.pack(">d", value).hex()}
    if isinstance(value, str):
        return {"t": "text", "v": value}
    if isinstance(value, (bytes, memoryview)):
        return {"t": "bytes", "v": value.hex()}
    if isinstance(value, datetime.date):
        return {"t": "date", "v": str(value)}
    if isinstance(value, tenarc.Numbers):
        return {"t": "numbers", "dtype": dtype_of(value), "v": payload_of(value).hex()}
    if isinstance(value, np.ndarray):
        shape, order = list(value.shape), order_of(value)
        content = payload_of(value).hex()
        return {"t": "tensor", "dtype": dtype_of(value), "shape": shape, "order": order, "v": content}
    if isinstance(value, tenarc.Raw):
        shape, content = list(value.shape), value.data.tobytes().hex()
        return {"t": "tensor", "dtype": value.dtype, "shape": shape, "order": value.order, "v": content}
    if isinstance(value, tenarc.Some):
        inner = {"t": "tag", "tag": int.from_bytes(b"TSOM", "big"), "v": describe(value.value)}
        return inner
    if isinstance(value, tenarc.Tag):
        return {"t": "tag", "tag": value.tag, "v": describe(value.value)}
    if isinstance(value, tenarc.Simple):
        return {"t": "simple", "v": value.value}
    if isinstance(value, (list, tuple)):
        return {"t": "array", "v": [describe(item) for item in value]}
    return {"t": "map", "v": [[describe(key), describe(item)] for key, item in value.items()]}


def dtype_of(array: np.ndarray) -> str:
    known = dtypes.of_numpy(array.dtype)
    assert known is not None
    return known.name


def order_of(array: np.ndarray) -> str:
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


def payload_of(array: np.ndarray) -> bytes:
    if array.dtype.str[0] == ">":
        array = array.byteswap().view(array.dtype.newbyteorder("<"))
    return array.tobytes(order=order_of(array))


def difference(found: Any, want: Any) -> str | None:
    """The differences between two descriptions, without those that Python cannot distinguish."""
    kind = want["t"]
    if kind == "undefined":
        return difference(found, {"t": "null"})
    if kind in ("f32", "f64", "float"):
        if found["t"] not in ("f32", "f64") or not same_float(as_float(found), as_float(want)):
            return f"{found} for {want}"
        return None
    if kind == "array" and found["t"] == "numbers":
        # A packed sequence has the same meaning as a list.
        dtype = dtypes.BY_NAME[found["dtype"]].numpy
        numbers = np.frombuffer(bytes.fromhex(found["v"]), dtype).tolist()
        return difference(describe(numbers), want)
    if kind == "numbers" and found["t"] == "array":
        # Without `numbers=True`, it is read as a list.
        dtype = dtypes.BY_NAME[want["dtype"]].numpy
        numbers = np.frombuffer(bytes.fromhex(want["v"]), dtype)
        return None if np.array([list_of(found)], dtype).tobytes() == numbers.tobytes() else f"{found!s:.200}"
    if kind != found["t"]:
        return f"{found!s:.200} for {want!s:.200}"
    if kind == "array":
        if len(found["v"]) != len(want["v"]):
            return f"{len(found['v'])} items for {len(want['v'])}"
        pairs = zip(found["v"], want["v"], strict=True)
        return next((d for pair in pairs if (d := difference(*pair))), None)
    if kind == "map":
        if len(found["v"]) != len(want["v"]):
            return f"{len(found['v'])} entries for {len(want['v'])}"
        pairs = zip(found["v"], want["v"], strict=True)
        return next((d for (fk, fv), (k, v) in pairs if (d := difference(fk, k) or difference(fv, v))), None)
    if kind == "tag":
        if found["tag"] != want["tag"]:
            return f"tag {found['tag']} for {want['tag']}"
        return difference(found["v"], want["v"])
    return None if found == want else f"{found!s:.200} for {want!s:.200}"


def list_of(described: Any) -> list[Any]:
    """The numbers in the description of a list."""
    return [int(item["v"]) if item["t"] == "int" else as_float(item) for item in described["v"]]


def as_float(described: Any) -> float:
    form = ">f" if described["t"] == "f32" else ">d"
    return struct.unpack(form, bytes.fromhex(described["v"]))[0]


def same_float(a: float, b: float) -> bool:
    return (math.isnan(a) and math.isnan(b)) or struct.pack("d", a) == struct.pack("d", b)


def read_manifest(directory: Path) -> Any:
    return json.loads((directory / "manifest.json").read_text())


def write_manifest(directory: Path, content: Any) -> None:
    (directory / "manifest.json").write_text(json.dumps(content))
