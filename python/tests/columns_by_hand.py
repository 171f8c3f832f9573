"""Columns that are written by hand (SPEC 7), and the rows they stand for."""

import datetime
import io
from typing import Any

import cbor2
import numpy as np
from described import describe, difference

import tenarc
from tenarc import Some, Table, Tag

TCOL, TENS, TSOM, TBUF, TTYP = (
    int.from_bytes(name, "big") for name in (b"TCOL", b"TENS", b"TSOM", b"TBUF", b"TTYP")
)


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


def day(number: int) -> datetime.date:
    return datetime.date(1970, 1, 1) + datetime.timedelta(number)


TEXT = ["text", u8(1, 0, 3, 0), "aüb"]
#: Columns of four rows, and their rows.
KINDS: dict[str, tuple[Any, list[Any]]] = {
    "u8": (u8(1, 2, 3, 255), [1, 2, 3, 255]),
    "u64": (of("<u8", 71, 0, 1, 2**63, 2**64 - 1), [0, 1, 2**63, 2**64 - 1]),
    "i16": (of("<i2", 77, -1, 2, -32768, 0), [-1, 2, -32768, 0]),
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
    "arrays": (
        ["array", 2, ["bool", b"\x81"]],
        [[True, False], [False] * 2, [False] * 2, [False, True]],
    ),
    "numbers in arrays": (
        ["array", 2, of("<f4", 85, *range(8))],
        [numbers(row, "f4") for row in ([0, 1], [2, 3], [4, 5], [6, 7])],
    ),
    "texts in arrays": (["array", 1, TEXT], [["a"], [""], ["üb"], [""]]),
    "empty arrays": (["array", 0, ["unit"]], [[]] * 4),
    "arrays in arrays": (["array", 1, ["array", 1, ["array", 2, ["bool", b"\xff"]]]], [[[[True, True]]]] * 4),
    "lists of arrays": (
        ["list", u8(1, 0, 2, 0), ["array", 2, ["bool", b"\x29"]]],
        [[[True, False]], [], [[False, True], [False, True]], []],
    ),
    "arrays of lists": (
        ["array", 1, ["list", u8(1, 0, 2, 0), ["bool", b"\x05"]]],
        [[[True]], [[]], [[False, True]], [[]]],
    ),
    "tuple": (["tuple", [u8(1, 2, 3, 4), TEXT]], [[1, "a"], [2, ""], [3, "üb"], [4, ""]]),
    "tuple of numbers without one type": (
        ["tuple", [of("<u8", 71, 1, 2, 3, 2**64 - 1), of("<i1", 72, -1, -2, -3, -4)]],
        [[1, -1], [2, -2], [3, -3], [2**64 - 1, -4]],
    ),
    "tuple of floats": (
        ["tuple", [of("<f4", 85, 1, 2, 3, 4), of("<f8", 86, 0.5, 1, 2, 3)]],
        [[1.0, 0.5], [2.0, 1.0], [3.0, 2.0], [4.0, 3.0]],
    ),
    "tuple of arrays of two lengths": (
        ["tuple", [["array", 1, ["bool", b"\x05"]], ["array", 2, ["bool", b"\xf0"]]]],
        [[[True], [False] * 2], [[False], [False] * 2], [[True], [True] * 2], [[False], [True] * 2]],
    ),
    "tuple of one": (["tuple", [TEXT]], [["a"], [""], ["üb"], [""]]),
    "dict of texts": (["dict", u8(0, 1, 0, 2), 3, ["text", u8(2, 0, 1), "üx"]], ["ü", "", "ü", "x"]),
    "dict of bytes": (["dict", u8(0, 0, 0, 0), 1, ["bytes", 2, b"ab"]], [b"ab"] * 4),
    "dict of numbers": (["dict", u8(0, 1, 1, 0), 2, of("<i2", 77, -1, 300)], [-1, 300, 300, -1]),
    "dict of structs": (
        ["dict", u8(0, 0, 1, 0), 2, {"a": u8(1, 2), "b": ["present", b"\2", ["array", 1, ["bool", b"\1"]]]}],
        [{"a": 1}, {"a": 1}, {"a": 2, "b": [True]}, {"a": 1}],
    ),
    "dict of options": (["dict", u8(0, 1, 1, 0), 2, ["option", b"\1", ["text", 1, "x"]]], ["x", None, None, "x"]),
    "dict of units": (["dict", u8(0, 0, 0, 0), 1, ["unit"]], [None] * 4),
    "dict of tensors": (
        ["dict", u8(0, 1, 0, 0), 2, tensor([2, 1], u8(5, 6))],
        [np.array([number], "u1") for number in (5, 6, 5, 5)],
    ),
    "dict of items": (["dict", u8(0, 1, 0, 1), 2, ["rows", [{"a": [2]}, None]]], [{"a": [2]}, None] * 2),
    "dict in a dict": (
        ["dict", u8(0, 1, 1, 2), 3, ["option", b"\7", ["dict", u8(0, 1, 0), 2, ["text", 1, "xy"]]]],
        ["x", "y", "y", "x"],
    ),
    "optional dict": (["option", b"\x0d", ["dict", u8(0, 0, 1), 2, ["text", 1, "xy"]]], ["x", None, "x", "y"]),
    "dates": (["type", "date", [], of("<i4", 78, 1, -2, 3, 4)], [*map(day, (1, -2, 3, 4))]),
    "type of two parameters": (
        ["type", "example.com/money", [-1, "EUR"], {"a": u8(1, 2, 3, 4)}],
        [{"a": n} for n in (1, 2, 3, 4)],
    ),
    "categories": (
        ["type", "category", [1], ["dict", u8(0, 1, 0, 0), 2, ["text", 1, "xy"]]],
        ["x", "y", "x", "x"],
    ),
    "tuple of a type": (
        ["tuple", [["type", "date", [], u8(1, 2, 3, 4)], u8(5, 6, 7, 8)]],
        [[day(1), 5], [day(2), 6], [day(3), 7], [day(4), 8]],
    ),
    "arrays of a type": (
        ["array", 1, ["type", "date", [], u8(1, 2, 3, 4)]],
        [[day(number)] for number in (1, 2, 3, 4)],
    ),
    "map": (["map", u8(1, 0, 2, 1), TEXT, u8(9, 8, 7, 6)], [{"a": 9}, {}, {"": 8, "üb": 7}, {"": 6}]),
    "empty maps": (["map", 0, ["unit"], ["unit"]], [{}] * 4),
    "unit variants": (["enum", u8(1, 0, 1, 1), ["A", "B"]], ["B", "A", "B", "B"]),
    "enum": (
        ["enum", of("<u2", 69, 2, 0, 1, 2), ["A", "B", "C"], [None, {"x": u8(5)}, ["tuple", [["unit"]]]]],
        [{"C": [None]}, "A", {"B": {"x": 5}}, {"C": [None]}],
    ),
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
