"""Values of every dtype, layout and kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import tenarc
from tenarc import dtypes

RAW = {"f128": 16, "posit16": 2, "f6_e2m3": None, "f6_e3m2": None, "f4": None}


def flat(name: str, big: bool = False) -> np.ndarray:
    """Twelve elements of a dtype with arbitrary bits, which include NaN payloads and subnormal numbers."""
    dtype = dtypes.BY_NAME[name].numpy
    assert dtype is not None
    bits = np.random.default_rng(8746)
    if name == "bool":
        return np.array([1, 0, 0, 1, 1, 0, 0, 1, 0, 1, 1, 1], bool)
    values = np.frombuffer(bits.bytes(12 * dtype.itemsize), dtype)
    if big and dtype.itemsize > 1 and dtype.kind in "iufc":
        return values.byteswap().view(dtype.newbyteorder(">"))
    return values


def layouts(name: str, big: bool = False) -> Iterator[tuple[str, np.ndarray]]:
    values = flat(name, big)
    rows = values.reshape(3, 4)
    yield "1d", values
    yield "rows", rows
    yield "columns", np.asfortranarray(rows)
    yield "transposed", rows.T
    yield "strided", rows[:, ::2]
    yield "reversed", rows[::-1]
    yield "rank4", values.reshape(1, 3, 2, 2)
    yield "rank3-columns", np.asfortranarray(values.reshape(2, 3, 2))
    yield "scalar", values[5:6].reshape(())
    yield "empty", values[:0].reshape(2, 0, 3)
    yield "empty-1d", values[:0]


def tensors() -> Iterator[tuple[str, Any]]:
    """Arrays of every dtype of numpy and ml_dtypes in every layout, and `Raw` tensors of the other dtypes."""
    for name, dtype in dtypes.BY_NAME.items():
        if dtype.numpy is None:
            continue
        for layout, array in layouts(name):
            yield f"{name}-{layout}", array
        if dtype.tag is not None:
            yield f"{name}-numbers", flat(name).view(tenarc.Numbers)
            yield f"{name}-no-numbers", flat(name)[:0].view(tenarc.Numbers)
        if dtype.bits > 8 and dtype.numpy.kind in "iufc":
            for layout, array in layouts(name, big=True):
                yield f"{name}-big-endian-{layout}", array
    for name, bits in (("f128", 128), ("posit16", 16), ("f6_e2m3", 6), ("f6_e3m2", 6), ("f4", 4)):
        payload = np.arange(12 * bits // 8, dtype="u1")
        yield f"raw-{name}", tenarc.Raw(name, (3, 4), payload)
        yield f"raw-{name}-columns", tenarc.Raw(name, (3, 4), payload, "F")
        yield f"raw-{name}-empty", tenarc.Raw(name, (0, 4), payload[:0])


def plain() -> Iterator[tuple[str, Any]]:
    """Values without tensors."""
    yield "integers", [0, 23, 24, 255, 256, 65535, 65536, 2**32, 2**64 - 1, -1, -24, -25, -(2**64)]
    yield "bignums", [2**64, -(2**64) - 1, 2**127 - 1, -(2**127)]
    yield "floats", [0.0, -0.0, 0.1, 1.5, 65504.0, 1e-7, 1e300, float("inf"), -float("inf"), float("nan")]
    yield "many-floats", [0.1 * n for n in range(40)] + [float("nan")]
    yield "many-integers", list(range(-500, 500))
    yield "many-texts", [f"text {n}" for n in range(100)]
    yield "many-entries", {f"key {n}": n if n % 3 else None for n in range(100)} | {7: True}
    yield "singles", [np.float32(0.1), np.float32(1.5)]
    yield "words", [None, True, False]
    yield "some", [tenarc.Some(None), tenarc.Some(tenarc.Some(None)), None]
    yield "text", ["", "a", "ü", "水", "𐅑", "x" * 300]
    yield "bytes", [b"", b"\0\xff", bytes(range(256)) * 30]
    yield "nested", {"a": [1, [2, [3, {}]]], "b": {"c": {"d": None}}, "": []}
    yield "keys", {1: "one", -1: "minus", "two": 2, b"three": 3, 0.5: "half"}
    yield "simple", tenarc.Simple(99)
    yield "tag", tenarc.Tag(4242, [1, {"array": np.arange(3)}])


def values() -> Iterator[tuple[str, Any]]:
    yield from tensors()
    yield from plain()
    large = np.arange(6000, dtype="f4")
    yield "large", {"matrix": large.reshape(60, 100), "columns": large.reshape(100, 60).T}
    kinds = [large, large.reshape(2, 3000), large.view("u4"), large.view(tenarc.Numbers)]
    yield "tied", [large + 1, *kinds, large.tobytes(), large + 1]
    # Texts of different lengths give every length of padding, including those that need two byte strings.
    for length in range(300):
        yield f"padding-{length}", ["x" * length, np.arange(5, dtype="u1"), b"abc"]
