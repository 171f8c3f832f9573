"""Columns that are written by hand (SPEC 3.1), and the rows they stand for."""

import io
from typing import Any

import cbor2
import numpy as np
from described import describe, difference

import tenarc
from tenarc import Some, Table, Tag

TCOL, TENS, TSOM, TBUF = (int.from_bytes(name, "big") for name in (b"TCOL", b"TENS", b"TSOM", b"TBUF"))


def u8(*numbers: int) -> Tag:
    return Tag(64, bytes(numbers))


def of(dtype: str, tag: int, *numbers) -> Tag:
    return Tag(tag, np.array(numbers, dtype).tobytes())


def tensor(shape, elements, tag=40) -> Tag:
    return Tag(tag, [list(shape), elements])


def named(dtype: str, shape, payload: bytes, order="C") -> Tag:
    return Tag(TENS, [dtype, list(shape), order, payload])


def columns(*groups) -> bytes:
    """A message with these groups: rows, column, rows, column, ..."""
    return cbor2.dumps(Tag(TCOL, list(groups)))


def same(found, want) -> bool:
    return difference(describe(plain(found)), describe(want)) is None


def plain(value):
    """A value with lists of rows in place of tables."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, Table)):
        return [plain(item) for item in value]
    return value


def numbers(values, dtype) -> tenarc.Numbers:
    return tenarc.Numbers(values, dtype)


TEXT = ["text", u8(1, 0, 3, 0), "aüb"]
#: Columns of four rows, and their rows.
KINDS: dict[str, tuple[Any, list[Any]]] = {
    "u8": (u8(1, 2, 3, 255), [1, 2, 3, 255]),
    "clamped": (Tag(68, b"\1\2\3\4"), [1, 2, 3, 4]),
    "u64": (of("<u8", 71, 0, 1, 2**63, 2**64 - 1), [0, 1, 2**63, 2**64 - 1]),
    "i16": (of("<i2", 77, -1, 2, -32768, 0), [-1, 2, -32768, 0]),
    "big-endian": (of(">i4", 74, -1, 2, 3, 1 << 30), [-1, 2, 3, 1 << 30]),
    "f16": (of("<f2", 84, 0.5, 1, -0.0, 2), [0.5, 1.0, -0.0, 2.0]),
    "f32": (of("<f4", 85, 0.1, 1, -0.0, np.inf), [float(np.float32(0.1)), 1.0, -0.0, np.inf]),
    "f64": (of("<f8", 86, 0.1, 1, -0.0, 1e300), [0.1, 1.0, -0.0, 1e300]),
    "tensors": (tensor([4, 2], of("<u2", 69, *range(8))), list(np.arange(8, dtype="u2").reshape(4, 2))),
    "one dimension of order F": (
        tensor([4], u8(1, 2, 3, 4), tag=1040),
        [np.array(value, "u1") for value in (1, 2, 3, 4)],
    ),
    "tensors without elements": (named("f4", [4, 0], b""), [tenarc.Raw("f4", (0,), b"")] * 4),
    "bools in tensors": (
        named("bool", [4, 1], b"\0\1\1\0"),
        [np.array([value]) for value in (False, True, True, False)],
    ),
    "packed": (named("f4", [4, 2], b"abcd"), [tenarc.Raw("f4", (2,), bytes([byte])) for byte in b"abcd"]),
    "unknown dtype": (
        named("odd", [4, 7], b"abcdefgh"),
        [tenarc.Raw("odd", (7,), p) for p in (b"ab", b"cd", b"ef", b"gh")],
    ),
    "plain elements": (tensor([4, 1], [1, 2, 3, 4]), list(np.array([[1], [2], [3], [4]]))),
    "struct": ({"b": u8(1, 2, 3, 4), "a": ["unit"]}, [{"b": n, "a": None} for n in (1, 2, 3, 4)]),
    "empty struct": ({}, [{}] * 4),
    "unit": (["unit"], [None] * 4),
    "bool": (["bool", b"\x05"], [True, False, True, False]),
    "text": (TEXT, ["a", "", "üb", ""]),
    "ascii": (["text", 2, "abcdefgh"], ["ab", "cd", "ef", "gh"]),
    "equal texts": (["text", 2, "äöüß"], ["ä", "ö", "ü", "ß"]),
    "empty texts": (["text", 0, ""], [""] * 4),
    "bytes": (["bytes", of("<u8", 71, 0, 2, 0, 1), b"\xff\xfe\0"], [b"", b"\xff\xfe", b"", b"\0"]),
    "equal bytes": (["bytes", 1, b"abcd"], [b"a", b"b", b"c", b"d"]),
    "option": (["option", b"\x0a", u8(7, 8)], [None, 7, None, 8]),
    "all some": (["option", b"\x0f", u8(1, 2, 3, 4)], [1, 2, 3, 4]),
    "some none": (["option", b"\x03", ["option", b"\x01", u8(5)]], [5, Some(None), None, None]),
    "some some none": (
        ["option", b"\x0f", ["option", b"\x07", ["option", b"\x03", ["unit"]]]],
        [Some(Some(Some(None)))] * 2 + [Some(Some(None)), Some(None)],
    ),
    "some of rows": (
        ["option", b"\x0e", ["rows", [None, cbor2.undefined, Tag(TSOM, None)]]],
        [None, Some(None), Some(None), Some(Some(None))],
    ),
    "present": (
        {"a": ["present", b"\x05", u8(1, 2)], "b": ["present", b"\x06", ["option", b"\x01", u8(3)]]},
        [{"a": 1}, {"b": 3}, {"a": 2, "b": None}, {}],
    ),
    "list": (["list", u8(2, 0, 1, 1), TEXT], [["a", ""], [], ["üb"], [""]]),
    "numbers in lists": (
        ["list", of("<u4", 70, 2, 0, 1, 0), of("<f4", 85, 0.5, 1, 2)],
        [numbers(row, "f4") for row in ([0.5, 1], [], [2], [])],
    ),
    "lists of one length": (
        ["list", 2, ["bool", b"\x81"]],
        [[True, False], [False] * 2, [False] * 2, [False, True]],
    ),
    "empty lists": (["list", 0, ["unit"]], [[]] * 4),
    "lists in lists": (["list", 1, ["list", 1, ["list", 2, ["bool", b"\xff"]]]], [[[[True, True]]]] * 4),
    "tuple": (["tuple", [u8(1, 2, 3, 4), TEXT]], [[1, "a"], [2, ""], [3, "üb"], [4, ""]]),
    "empty tuple": (["tuple", []], [[]] * 4),
    "map": (["map", u8(1, 0, 2, 1), TEXT, u8(9, 8, 7, 6)], [{"a": 9}, {}, {"": 8, "üb": 7}, {"": 6}]),
    "empty maps": (["map", 0, ["unit"], ["unit"]], [{}] * 4),
    "unit variants": (["enum", u8(1, 0, 1, 1), ["A", "B"]], ["B", "A", "B", "B"]),
    "enum": (
        ["enum", of("<u2", 69, 2, 0, 1, 2), ["A", "B", "C"], [None, {"x": u8(5)}, ["tuple", [u8(1, 2)]]]],
        [{"C": [1]}, "A", {"B": {"x": 5}}, {"C": [2]}],
    ),
    "interleaved struct": (
        ["interleaved", {"x": None, "p": [None, {"y": None}]}, tensor([4, 3], u8(*range(12)))],
        [{"x": n, "p": [n + 1, {"y": n + 2}]} for n in (0, 3, 6, 9)],
    ),
    "interleaved tuple": (
        ["interleaved", [None, None], named("f32", [4, 2], np.arange(8, dtype="f4").tobytes())],
        [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]],
    ),
    "interleaved number": (["interleaved", None, tensor([4, 1], u8(1, 2, 3, 4))], [1, 2, 3, 4]),
    "interleaved without content": (["interleaved", {"a": []}, named("u8", [4, 0], b"")], [{"a": []}] * 4),
    "rows": (
        ["rows", [1, {"a": [2]}, u8(1, 2), Tag(TCOL, [1, {"a": u8(7)}])]],
        [1, {"a": [2]}, numbers([1, 2], "u1"), [{"a": 7}]],
    ),
}


def all_kinds() -> bytes:
    return columns(
        4, {name: column for name, (column, _) in KINDS.items()}, 4, ["tuple", [c for c, _ in KINDS.values()]]
    )


def log() -> list[dict[str, Any]]:
    return [
        {"step": n, "size": n / 4, "name": f"n{n}", "at": {"x": [n] * 3}, "image": np.full((2, 3), n, "f4")}
        for n in range(100)
    ]


def archived(value: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    with tenarc.Writer(out, **options) as writer:
        writer.save(value)
    return out.getvalue()
