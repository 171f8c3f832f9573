"""Sequences that are stored as columns (SPEC 3.1)."""

import dataclasses
import io
import itertools
import random
import resource
import time
from typing import Any

import cbor2
import numpy as np
import pytest
from conftest import ROOT
from described import describe, difference

import tenarc
from tenarc import Some, Table, Tag
from tenarc.tree import parse

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


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_read(kind):
    column, rows = KINDS[kind]
    for copy in (True, False):
        found = tenarc.loads(columns(4, column), copy=copy)
        assert type(found) is list and same(found, rows)
        table = tenarc.loads(columns(4, column), tables=True, copy=copy)
        assert len(table) == 4 and same(table.rows(), rows) and same(list(table), rows)
        for number, row in enumerate(rows):
            assert same(table[number], row) and same(table[number - 4], row)


def test_types_are_those_of_the_same_rows_in_an_array():
    for column, rows in KINDS.values():
        for found, want in zip(tenarc.loads(columns(4, column)), tenarc.loads(tenarc.dumps(rows)), strict=True):
            assert type(found) is type(want)


#: Ways to put a column into another one. The rows are those of four rows of the column.
AROUND = {
    "struct": lambda column, rows: ({"a": column, "b": column}, [{"a": row, "b": row} for row in rows]),
    "present": lambda column, rows: (
        {"z": ["unit"], "a": ["present", b"\x0f", column]},
        [{"z": None, "a": row} for row in rows],
    ),
    "tuple": lambda column, rows: (["tuple", [column, u8(0, 1, 2, 3)]], [[row, n] for n, row in enumerate(rows)]),
    "enum": lambda column, rows: (
        ["enum", u8(1, 1, 1, 1), ["A", "B"], [None, column]],
        [{"B": row} for row in rows],
    ),
    "map": lambda column, rows: (["map", 1, u8(0, 1, 2, 3), column], [{n: row} for n, row in enumerate(rows)]),
}


@pytest.mark.parametrize("outer", AROUND)
@pytest.mark.parametrize("inner", AROUND)
def test_kinds_are_read_inside_of_each_other(inner, outer):
    for column, rows in KINDS.values():
        column, rows = AROUND[outer](*AROUND[inner](column, rows))
        assert same(tenarc.loads(columns(4, column)), rows)
        table = tenarc.loads(columns(4, column), tables=True)
        assert same([table[3], table[1]], [rows[3], rows[1]])


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_are_read_inside_of_lists_and_options(kind):
    column, rows = KINDS[kind]
    if "number" not in kind and type(column) is not Tag:
        # The rows of numbers would be packed sequences, which is tested above.
        for lengths, want in ((u8(1, 3, 0), [rows[:1], rows[1:], []]), (of("<u2", 69, 0, 0, 4), [[], [], rows])):
            assert same(tenarc.loads(columns(3, ["list", lengths, column])), want)
    found = tenarc.loads(columns(6, ["option", b"\x2d", column]))
    some = [Some(row) if row is None or type(row) is Some else row for row in rows]
    assert same(found, [some[0], None, some[1], some[2], None, some[3]])


def test_keys_of_maps_are_hashable():
    keys = ["tuple", [u8(1, 2, 3), ["rows", [{"a": [1]}, None, b"x"]]]]
    found = tenarc.loads(columns(3, ["map", 1, keys, ["bool", b"\2"]]))
    assert found[1:] == [{(2, None): True}, {(3, b"x"): False}]
    ((number, frozen),) = found[0]
    assert number == 1 and dict(frozen) == {"a": (1,)}


def test_groups_follow_each_other():
    assert tenarc.loads(columns()) == []
    found = tenarc.loads(columns(2, {"a": u8(1, 2)}, 0, ["unit"], 1, ["unit"], 3, u8(3, 4, 5)))
    assert found == [{"a": 1}, {"a": 2}, None, 3, 4, 5]
    assert tenarc.loads(columns(*[65536, ["bool", bytes(8192)]] * 3)) == [False] * 3 * 65536


def test_columns_are_read_wherever_a_sequence_is():
    inner = Tag(TCOL, [2, {"a": u8(1, 2)}])
    rows = [{"a": 1}, {"a": 2}]
    assert tenarc.loads(cbor2.dumps({"x": [inner, Tag(4242, inner)]})) == {"x": [rows, Tag(4242, rows)]}
    # Also as a key of a map.
    key = cbor2.dumps(Tag(TCOL, [2, u8(1, 2)]))
    assert tenarc.loads(b"\xa1" + key + b"\x05") == {(1, 2): 5}


def example() -> bytes:
    """The bytes of the example at the end of SPEC 3.1."""
    text = (ROOT / "SPEC.md").read_text()
    section = text[text.index("### 3.1") : text.index("## 4. Reading")]
    lines = [line for line in section[section.index("Example:") :].splitlines() if line.startswith("    ")]
    return bytes.fromhex("".join(line.strip().split("   ")[0] for line in lines))


def test_the_example_is_read_and_written():
    rows = [{"id": 7, "tag": "ab"}, {"id": 9, "tag": "c"}]
    assert tenarc.loads(example()) == rows
    for table in (Table(rows), tenarc.loads(example(), tables=True), Table({"id": [7, 9], "tag": ["ab", "c"]})):
        assert tenarc.dumps(table) == example()


# Input that must be refused


WRONG: list[tuple[Any, int, str]] = [
    (u8(1, 2, 3), 4, "expected 4 numbers, found 3"),
    (of("<u2", 69, 1), 2, "expected 2 numbers, found 1"),
    (Tag(69, b"abc"), 1, "whole number"),
    (Tag(64, "abc"), 3, "expected bytes"),
    (Tag(87, bytes(16)), 1, "found f128"),
    (Tag(43001, Tag(85, bytes(8))), 1, "expected a column, found tag 43001"),
    (Tag(4242, u8(1)), 1, "expected a column, found tag 4242"),
    (Tag(TCOL, [1, u8(1)]), 1, "expected a column, found tag"),
    (Tag(TBUF, ["u8", 0]), 1, "a message has no buffers"),
    (Tag(TBUF, [0]), 1, "a message has no buffers"),
    (tensor([3, 2], u8(*range(6))), 2, "expected 2 rows, found a tensor of shape"),
    (tensor([], u8(1)), 1, "expected 1 rows, found a tensor of shape"),
    (tensor([2, 2], u8(1, 2, 3)), 2, "expected 4 bytes, found 3"),
    (tensor([2, 2], u8(1, 2, 3, 4), tag=1040), 2, "expected the order C, found F"),
    (named("bool", [2, 1], b"\0\2"), 2, "bool 1 is 2"),
    (named("f4", [2, 3], b"abc"), 2, "whole number of bytes"),
    (named("odd", [2, 3], b"abc"), 2, "cannot be divided"),
    (named("u8", [2, 1 << 62, 1 << 62], b""), 2, "overflows"),
    ({1: u8(1)}, 1, "expected text as a name"),
    ({"a": u8(1), "b": u8()}, 1, "expected 1 numbers, found 0"),
    ([], 1, "expected a column"),
    ([1], 1, "expected a column"),
    ("unit", 1, "expected a column"),
    (5, 0, "expected a column"),
    (None, 0, "expected a column"),
    (["nothing"], 1, "unknown kind 'nothing'"),
    (["unit", 1], 1, "expected 1 items, found 2"),
    (["bool"], 1, "expected 2 items, found 1"),
    (["bool", b""], 1, "expected 1 bytes for 1 rows, found 0"),
    (["bool", b"\0\0"], 8, "expected 1 bytes for 8 rows, found 2"),
    (["bool", b"\x10"], 4, "unused bits"),
    (["bool", u8(0)], 1, "expected bytes"),
    (["bool", "\0"], 1, "expected bytes"),
    (["text", u8(1, 1), "a"], 2, "lengths together are 2 bytes, found 1"),
    (["text", u8(1, 1), "abc"], 2, "lengths together are 2 bytes, found 3"),
    (["text", u8(1), "ab"], 2, "expected 2 numbers, found 1"),
    (["text", of("<i2", 77, 1, 1), "ab"], 2, "expected u8 or u16 or u32 or u64, found i16"),
    (["text", of("<f4", 85, 1, 1), "ab"], 2, "found f32"),
    (["text", -1, "ab"], 2, "expected a typed array"),
    (["text", True, "ab"], 2, "expected a typed array"),
    (["text", [1, 1], "ab"], 2, "expected a typed array"),
    (["text", u8(1, 1), "ü"], 2, "a row starts inside a character, at its byte 1"),
    (["text", 1, "ü"], 2, "a row starts inside a character"),
    (["text", u8(1, 1), b"ab"], 2, "expected text, found bytes"),
    (["bytes", u8(1, 1), "ab"], 2, "expected bytes, found str"),
    (["bytes", u8(1, 1), b"abc"], 2, "lengths together are 2 bytes, found 3"),
    (["bytes", 1 << 63, b""], 2, "overflows"),
    (["bytes", of("<u8", 71, 1 << 63, 1 << 63), b""], 2, "overflows"),
    (["bytes", of("<u8", 71, (1 << 64) - 1, 1), b""], 2, "overflows"),
    (["list", of("<u8", 71, (1 << 64) - 1, 1), u8()], 2, "overflows"),
    (["list", (1 << 64) - 1, u8()], 2, "overflows"),
    (["list", u8(1, 1), u8(1)], 2, "expected 2 numbers, found 1"),
    (["map", u8(1, 1), u8(1, 2), u8(1)], 2, "expected 2 numbers, found 1"),
    (["map", u8(2), u8(1, 1), u8(1, 2)], 1, "the same key twice"),
    (["map", u8(1), tensor([1, 1], u8(1)), u8(1)], 1, "cannot use a ndarray as a key"),
    (["option", b"\x01", u8(1, 2)], 2, "expected 1 numbers, found 2"),
    (["option", b"\x05", u8(1, 2)], 2, "unused bits"),
    (["option", u8(0, 1), u8(1)], 2, "expected bytes"),
    (["present", b"\x01", u8(1)], 2, "only a value of a struct"),
    ({"a": ["present", b"\x01", u8(1, 2)]}, 2, "expected 1 numbers, found 2"),
    ({"a": ["present", b"\x01", ["present", b"\x01", u8(1)]]}, 2, "only a value of a struct"),
    ({"a": ["option", b"\x01", ["present", b"\x01", u8(1)]]}, 2, "only a value of a struct"),
    (["tuple", u8(1)], 1, "expected an array"),
    (["tuple", [u8(1), u8()]], 1, "expected 1 numbers, found 0"),
    (["enum", u8(2), ["A", "B"]], 1, "row 0 is variant 2, but there are 2"),
    (["enum", u8(0), []], 1, "but there are 0"),
    (["enum", of("<u4", 70, 0), ["A"]], 1, "expected u8 or u16, found u32"),
    (["enum", u8(0), [1]], 1, "expected text"),
    (["enum", u8(0), "A"], 1, "expected an array"),
    (["enum", u8(0), ["A"], []], 1, "expected an array of 1, found 0"),
    (["enum", u8(0, 0), ["A"], [u8(1)]], 2, "expected 2 numbers, found 1"),
    (["enum", u8(0, 0), ["A", "B"], [u8(1, 2), u8(1)]], 2, "expected 0 numbers, found 1"),
    (["interleaved", [None] * 2, tensor([2, 3], u8(*range(6)))], 2, "the names are for 2 numbers"),
    (["interleaved", [None] * 4, tensor([2, 3], u8(*range(6)))], 2, "the names are for more than 3"),
    (["interleaved", [None] * 3, tensor([3, 2], u8(*range(6)))], 2, "expected 2 rows"),
    (["interleaved", [1], tensor([2, 1], u8(1, 2))], 2, "expected a map, an array or null"),
    (["interleaved", {1: None}, tensor([2, 1], u8(1, 2))], 2, "expected text as a name"),
    (["interleaved", None, tensor([2], u8(1, 2))], 2, "expected numbers of shape"),
    (["interleaved", None, named("bool", [2, 1], b"\0\1")], 2, "expected numbers of shape"),
    (["interleaved", None, named("bf16", [2, 1], b"abcd")], 2, "expected numbers of shape"),
    (["interleaved", None, u8(1, 2)], 2, "expected a tensor"),
    (["rows", [1]], 2, "expected an array of 2, found 1"),
    (["rows", u8(1, 2)], 2, "expected an array of 2, found tag 64"),
    (["rows", [named("bool", [1], b"\2")]], 1, "bool 0 is 2"),
    (["rows", [Tag(TCOL, [1, u8()])]], 1, "expected 1 numbers, found 0"),
]


@pytest.mark.parametrize(("column", "count", "said"), WRONG)
def test_each_check_refuses(column, count, said):
    for around in ({"log": Tag(TCOL, [count, column])}, {"log": Tag(TCOL, [0, ["unit"], count, {"a": column}])}):
        if "only a value of a struct" in said and 0 in around["log"].value:
            continue
        message = cbor2.dumps(around)
        with pytest.raises(tenarc.Error, match=said) as caught:
            tenarc.loads(message)
        error = caught.value
        assert isinstance(error, (tenarc.Damaged, tenarc.Mismatch))
        assert error.path == "log" and 0 < error.offset < len(message)
        if "key" not in said:
            # All that can be wrong is found before the first row.
            with pytest.raises(tenarc.Damaged, match=said):
                tenarc.loads(message, tables=True)


@pytest.mark.parametrize(
    "groups",
    [
        5,
        [1],
        [1, u8(1), 1],
        [-1, u8()],
        [65537, ["bool", bytes(8193)]],
        [None, u8()],
        [True, u8(1)],
        [Tag(2, b""), u8()],
    ],
)
def test_wrong_groups_are_refused(groups):
    with pytest.raises(tenarc.Damaged, match="columns: expected"):
        tenarc.loads(cbor2.dumps(Tag(TCOL, groups)))


def test_errors_say_where_a_column_is_wrong():
    message = cbor2.dumps(
        {"log": Tag(TCOL, [1, {"a": u8(1)}, 1, {"a": u8(1), "b": ["list", 1, ["bool", b"\2"]]}])}
    )
    with pytest.raises(tenarc.Damaged) as caught:
        tenarc.loads(message)
    assert message[caught.value.offset :] == b"\x41\2" and caught.value.path == "log"


def test_inside_columns_lengths_are_definite():
    head, u1 = "da54434f4c", "d84041 07"
    # The outer array, and whatever is in items of `rows`, can be of indefinite length.
    assert tenarc.loads(bytes.fromhex(f"{head} 9f 01 {u1} ff")) == [7]
    items = "64726f7773 82 9f01ff bf 7f6161ff 5f4101ff ff"
    assert tenarc.loads(bytes.fromhex(f"{head} 82 02 82 {items}")) == [[1], {"a": b"\1"}]
    # A longer head means the same.
    assert tenarc.loads(bytes.fromhex(f"{head} 82 01 82 780472 6f7773 81 9f01ff")) == [[1]]
    for column in (
        "bf 6161 " + u1 + " ff",
        "a1 7f6161ff " + u1,
        "9f 64756e6974 ff",
        "81 7f64756e6974ff",
        "d840 5f4107ff",
        "d828 82 9f01ff " + u1,
        "82 64626f6f6c 5f4100ff",
        "83 6474657874 01 7f6161ff",
        "82 64726f7773 9f01ff",
        "9f 64726f7773 8101 ff",
        "82 657475706c65 9f d8404107 ff",
    ):
        for outer in ("82", "9f"):
            message = bytes.fromhex(f"{head} {outer} 01 {column}" + " ff" * (outer == "9f"))
            with pytest.raises(tenarc.Damaged, match="definite length inside columns"):
                tenarc.loads(message)


# Documents with all kinds


def all_kinds() -> bytes:
    return columns(
        4, {name: column for name, (column, _) in KINDS.items()}, 4, ["tuple", [c for c, _ in KINDS.values()]]
    )


def read_in_every_way(message: bytes) -> None:
    tenarc.loads(message)
    table = tenarc.loads(message, tables=True)
    if isinstance(table, Table):
        list(table)
        for group in table.groups:
            Table.of([group]).columns() if hasattr(group, "fields") else None


def test_every_cut_of_all_kinds_is_torn():
    message = all_kinds()
    read_in_every_way(message)
    for length in range(len(message)):
        with pytest.raises(tenarc.Torn):
            tenarc.loads(message[:length])


def test_every_changed_bit_of_all_kinds_raises_nothing_else():
    message = all_kinds()
    refused = 0
    for byte, bit in itertools.product(range(len(message)), range(8)):
        changed = bytearray(message)
        changed[byte] ^= 1 << bit
        try:
            read_in_every_way(bytes(changed))
        except tenarc.Error:
            refused += 1
    assert refused > len(message)


def test_random_changes_of_each_kind_raise_nothing_else():
    dice = random.Random(31)
    messages = [columns(4, column) for column, _ in KINDS.values()]
    for _ in range(15_000):
        changed = bytearray(dice.choice(messages))
        for _ in range(dice.choice((1, 2, 3))):
            changed[dice.randrange(5, len(changed))] = dice.randrange(256)
        try:
            found = tenarc.loads(bytes(changed), tables=True)
            if isinstance(found, Table):
                tenarc.dumps([found, found.rows()])
        except tenarc.Error:
            continue


# Memory


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


BIG = 1 << 40
EMPTY: dict[str, Any] = {
    "unit": ["unit"],
    "tuple": ["tuple", []],
    "struct": {},
    "nested": {"a": {"b": {}}},
    "interleaved": ["interleaved", [], named("u8", [BIG, 0], b"")],
    "list": ["list", 0, ["unit"]],
    "map": ["map", 0, ["unit"], ["unit"]],
    "text": ["text", 0, ""],
    "bytes": ["bytes", 0, b""],
    "tensors": named("u8", [BIG, 0], b""),
    "tensors without bytes": named("odd", [BIG, 7], b""),
    "raw tensors": named("f4", [BIG, 0], b""),
}


@pytest.mark.parametrize("kind", EMPTY)
def test_rows_without_bytes_are_bounded(kind):
    before = peak()
    start = time.monotonic()
    for tables in (False, True):
        with pytest.raises(tenarc.Limit, match="16777216 rows"):
            tenarc.loads(columns(1, ["list", BIG, EMPTY[kind]]), tables=tables)
    assert peak() - before < 50 << 20 and time.monotonic() - start < 2


def test_rows_without_bytes_are_counted_in_the_whole_document():
    full = [65536, ["unit"]] * 256
    assert len(tenarc.loads(columns(*full), tables=True)) == 1 << 24
    one = Tag(TCOL, [1, ["unit"]])
    for more in (cbor2.dumps([Tag(TCOL, full), one]), columns(*full, 1, ["rows", [one]])):
        with pytest.raises(tenarc.Limit):
            tenarc.loads(more, tables=True)


@pytest.mark.parametrize("kind", [name for name, (column, _) in KINDS.items() if name not in EMPTY])
def test_claimed_counts_allocate_nothing(kind):
    before = peak()
    for lengths in (BIG, of("<u8", 71, BIG)):
        with pytest.raises(tenarc.Error):
            tenarc.loads(columns(1, ["list", lengths, KINDS[kind][0]]))
    assert peak() - before < 50 << 20


def test_rows_that_need_much_memory_are_bounded():
    column: Any = ["bool", bytes(8192)]
    for _ in range(100):
        column = {"a": column}
    limits = tenarc.Limits(max_alloc=100 << 20)
    with pytest.raises(tenarc.Limit, match="rows of columns need more"):
        tenarc.loads(columns(65536, column), limits=limits)
    column = ["interleaved", [None] + [[]] * 30_000, tensor([65536, 1], bytes(0))]
    column[2] = tensor([65536, 1], Tag(64, bytes(65536)))
    with pytest.raises(tenarc.Limit, match="rows of columns need more"):
        tenarc.loads(columns(65536, column), limits=limits)
    # Without rows, the memory is not needed.
    assert len(tenarc.loads(columns(65536, column), tables=True, limits=limits)) == 65536


def test_nesting_counts():
    def nested(levels: int, column: Any) -> bytes:
        for _ in range(levels):
            column = {"a": column}
        return columns(1, column)

    # The tag, the array, and the tag of the numbers.
    for levels, wrap in ((125, u8(1)), (126, {}), (125, ["unit"]), (124, ["list", u8(0), u8()])):
        message = nested(levels, wrap)
        for tables in (False, True):
            found = tenarc.loads(message, tables=tables)[0]
        for _ in range(levels):
            found = found["a"]
        with pytest.raises(tenarc.Limit):
            tenarc.loads(nested(levels + 1, wrap))
    column: Any = u8(1)
    for _ in range(62):
        column = ["tuple", [column]]
    assert tenarc.loads(columns(1, column))
    with pytest.raises(tenarc.Limit):
        tenarc.loads(columns(1, ["tuple", [column]]))


def test_many_rows_are_read_quickly():
    count = 100_000
    table = Table(
        {
            "id": np.arange(count),
            "score": np.linspace(0, 1, count),
            "name": [f"name {n}" for n in range(count)],
            "ok": np.arange(count) % 3 == 0,
            "best": np.ma.MaskedArray(np.arange(count), np.arange(count) % 2),
            "tags": [[n, n + 1] for n in range(count)],
            "at": [{"x": n, "y": 0.5} for n in range(count)],
        }
    )
    message = tenarc.dumps(table)
    start = time.perf_counter()
    rows = tenarc.loads(message)
    # It takes a third of this on a slow machine.
    assert time.perf_counter() - start < 3
    assert len(rows) == count and rows[70_000]["at"] == {"x": 70_000, "y": 0.5}


# Archives


def archived(value: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    with tenarc.Writer(out, **options) as writer:
        writer.save(value)
    return out.getvalue()


def test_all_parts_of_columns_can_be_in_buffers(tmp_path):
    want = tenarc.loads(all_kinds())
    table = tenarc.loads(all_kinds(), tables=True)
    counts = []
    for options in ({"inline_below": 0}, {"inline_below": 10**9}, {"inline_below": 0, "dedup": True}):
        data = archived({"log": table, "a": np.ones(3)}, **options)
        path = tmp_path / "a.tenarc"
        path.write_bytes(data)
        parts = tenarc.to_parts({"log": table}, inline_below=options["inline_below"])
        counts.append(len(parts.buffers))
        with tenarc.open(path) as archive:
            archive.verify()
            ways = [archive.load()["log"], archive.view()["log"], tenarc.load(path)["log"], archive["log"]]
            ways.append(archive.load(tables=True)["log"].rows())
            ways.append(archive.view(tables=True)["log"].rows())
            ways.append(archive.table("log").rows())
            assert [info.path for info in archive.tensors()] == ["a"]
        ways.append(tenarc.Reader(io.BytesIO(data)).load()["log"])
        ways.append(tenarc.Reader(io.BytesIO(data)).load(tables=True)["log"].rows())
        ways.append(tenarc.load(path, tables=True)["log"].rows())
        ways.append(tenarc.from_parts(parts.metadata, parts.buffers)["log"])
        ways.append(tenarc.from_parts(parts.metadata, parts.buffers, tables=True)["log"].rows())
        for number, found in enumerate(ways):
            assert same(found, want), number
    assert counts[0] > 100 and counts[1] == 0


def with_buffers(metadata: bytes, *buffers: bytes) -> bytes:
    """An archive of hand-made metadata."""
    out = io.BytesIO()
    with tenarc.Writer(out) as writer:
        writer._save(metadata, [np.frombuffer(buffer, np.uint8) for buffer in buffers], None)
    return out.getvalue()


@pytest.mark.parametrize(
    ("column", "buffer", "said"),
    [
        (["text", u8(1, 1), Tag(TBUF, [0])], b"\xff\xff", "not UTF-8 from its byte 0"),
        (["text", u8(1, 1), Tag(TBUF, [0])], "ü".encode(), "inside a character"),
        (["text", u8(1, 1), Tag(TBUF, ["u8", 0])], b"ab", "expected a reference to bytes"),
        (["text", Tag(TBUF, [0]), "ab"], b"\1\1", "expected a reference to numbers"),
        (["text", Tag(TBUF, ["u8", 0]), "ab"], b"\1\2", "together are 3 bytes, found 2"),
        (["text", Tag(TBUF, ["u16", 0]), "ab"], b"\1\1", "expected 2 numbers, found 1"),
        (["bytes", u8(1, 1), Tag(TBUF, [0])], b"abc", "together are 2 bytes, found 3"),
        (["bool", Tag(TBUF, [0])], b"\x04", "unused bits"),
        (["bool", Tag(TBUF, ["u8", [1], "C", 0])], b"\0", "expected a reference to bytes"),
        (Tag(TBUF, ["u8", 0]), b"abc", "expected 2 numbers, found 3"),
        (Tag(TBUF, ["c64", 0]), bytes(16), "expected numbers of 8 to 64 bits"),
        (Tag(TBUF, [0]), b"ab", "expected a reference to numbers"),
        (Tag(TBUF, ["u8", [3], "C", 0]), b"abc", "expected 2 rows"),
        (Tag(TBUF, ["u8", [2, 2], "F", 0]), b"abcd", "expected the order C"),
        (Tag(TBUF, ["bool", [2, 1], "C", 0]), b"\0\2", "bool 1 is 2"),
        (["interleaved", None, Tag(TBUF, ["u8", 0])], b"ab", "expected a reference to a tensor"),
        (["rows", [1, Tag(TBUF, [0])]], b"ab", "items among columns have no references"),
        (["rows", [1, Tag(TCOL, [2, Tag(TBUF, ["u8", 0])])]], b"ab", "items among columns have no references"),
        (["option", Tag(TBUF, [1]), u8(1)], b"\1", "no buffer 1"),
    ],
)
def test_wrong_buffers_of_columns_are_refused(column, buffer, said, tmp_path):
    data = with_buffers(cbor2.dumps({"log": Tag(TCOL, [2, column])}), buffer)
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(tenarc.Damaged, match=said) as caught:
        tenarc.Reader(io.BytesIO(data)).load()
    assert caught.value.path == "log" and caught.value.offset
    with tenarc.open(tmp_path / "a") as archive:
        for read in (archive.load, archive.view, lambda: archive["log.0"], lambda: archive.table("log")[0]):
            with pytest.raises(tenarc.Damaged, match=said):
                read()
        if "no references" in said or "no buffer" in said:
            with pytest.raises(tenarc.Damaged, match=said):
                archive.verify()
        else:
            # Not even the lengths of references are known to match without the content of others.
            archive.verify()


def test_verification_finds_references_in_columns(tmp_path):
    column = {"a": ["text", Tag(TBUF, ["u8", 1]), Tag(TBUF, [0])], "b": Tag(TBUF, ["u8", [1, 2], "C", 2])}
    buffers = (b"abc", b"\3", b"xy")
    (tmp_path / "a").write_bytes(with_buffers(columns(1, column), *buffers))
    with tenarc.open(tmp_path / "a") as archive:
        archive.verify()
        row = archive.load()[0]
        assert row["a"] == "abc" and row["b"].tolist() == [120, 121]
    (tmp_path / "b").write_bytes(with_buffers(columns(1, column), *buffers, b"more"))
    with tenarc.open(tmp_path / "b") as archive, pytest.raises(tenarc.Damaged, match="nothing refers to buffer 3"):
        archive.verify()


def log() -> list[dict[str, Any]]:
    return [
        {"step": n, "size": n / 4, "name": f"n{n}", "at": {"x": [n] * 3}, "image": np.full((2, 3), n, "f4")}
        for n in range(100)
    ]


def test_paths_lead_into_rows(tmp_path):
    first = tenarc.loads(tenarc.dumps(Table(log()[:60])), tables=True).groups
    second = tenarc.loads(tenarc.dumps(Table(log()[60:])), tables=True).groups
    value = {"log": Table.of([*first, *second]), "x": [Tag(4242, Table([{"a.b": 1}]))], "end": np.zeros(3)}
    for inline_below in (0, 10**9):
        tenarc.save(tmp_path / "a", value, inline_below=inline_below)
        with tenarc.open(tmp_path / "a") as archive:
            for number in (0, 3, 59, 60, 99):
                assert archive[f"log.{number}.size"] == number / 4
                assert archive[f"/log/{number}/name"] == f"n{number}"
                assert archive[f"log.{number}.at.x"].tolist() == [number] * 3
                assert archive.tensor(f"log.{number}.image").tolist() == [[number] * 3] * 2
                assert archive[f"log.{number}"]["step"] == number
            assert len(archive["log"]) == 100 and archive["x.0.0.a.b"] == 1 == archive["/x/0/0/a.b"]
            for wrong in (
                "log.100.size",
                "log.03.size",
                "log.3.none",
                "log.-1",
                "log.3.size.0",
                "x.0.1",
            ):
                assert archive.get(wrong) is None
                with pytest.raises(tenarc.NotFound):
                    archive[wrong]
            for path in ("log.3.name", "log", "log.3"):
                with pytest.raises(tenarc.Mismatch, match="expected a tensor"):
                    archive.tensor(path)
            for path in ("end", "log.3", "log.3.name"):
                with pytest.raises(tenarc.Mismatch, match="expected columns"):
                    archive.table(path)


def test_a_path_that_could_lead_into_rows_too_is_a_json_pointer(tmp_path):
    tenarc.save(tmp_path / "a", {"log": Table([{"a": 1}]), "log.0": {"a": np.ones(3)}, "other.0": np.ones(3)})
    with tenarc.open(tmp_path / "a") as archive:
        listed = [info.path for info in archive.tensors()]
        assert listed == ["log.a", "/log.0/a", "other.0"]
        for path in listed[1:]:
            assert archive.tensor(path).tolist() == [1] * 3
        with pytest.raises(tenarc.NotFound, match="several"):
            archive["log.0.a"]
    tenarc.save(tmp_path / "a", {"7": Table([{"a": 1}]), 7: [{"a": np.ones(3)}]})
    with tenarc.open(tmp_path / "a") as archive, pytest.raises(tenarc.Mismatch, match="occurs twice"):
        list(archive.tensors())


def test_arrays_of_rows_share_the_memory_of_the_column(tmp_path):
    tenarc.save(tmp_path / "a", Table(log()))
    with tenarc.open(tmp_path / "a") as archive:
        view, rows = archive.view(), archive.load()
        images = archive.view(tables=True)["image"]
    assert images.shape == (100, 2, 3) and not images.flags.writeable and not view[1]["image"].flags.writeable
    assert np.shares_memory(rows[1]["image"].base, rows[2]["image"].base)
    # Rows can be written to, and are apart.
    rows[1]["image"][:] = 7
    rows[1]["at"]["x"][:] = 7
    assert rows[2]["image"].max() == 2 and rows[2]["at"]["x"].max() == 2
    again = tenarc.load(tmp_path / "a", tables=True)
    again["image"][:] = 9
    assert again[3]["image"].max() == 9


def test_a_cut_archive_with_columns_is_recovered(tmp_path):
    path, new = tmp_path / "a", tmp_path / "b"
    value = {"first": np.ones(9), "one": Table(log()), "raw": b"x" * 9, "two": Table(log()), "last": np.ones(9)}
    tenarc.save(path, value, inline_below=8)
    whole = path.read_bytes()
    with tenarc.open(path) as archive:
        places = archive.segment(0).buffers
    kept = set()
    for start, length in places:
        for cut in (start, start + length):
            path.write_bytes(whole[:cut])
            with tenarc.open(path, torn=True, verify=False) as archive:
                listed = [info.path for info in archive.tensors()]
                # Whether all lists have one length is only known if the lengths are there.
                rows = [f"{name}.{field}" for name in ("one", "two") for field in ("step", "size", "image")]
                assert [path for path in listed if not path.endswith("at.x")] == ["first", *rows, "last"]
            result = tenarc.recover_to(path, new)
            if result.salvaged is None:
                continue
            with tenarc.open(new) as archive:
                archive.verify()
                found = archive.load()
            missing = {info.path for info in result.salvaged.missing}
            assert missing == {name for name in value if found[name] is None}
            for name in set(value) - missing:
                assert same(found[name], log() if isinstance(value[name], Table) else value[name])
            kept.add(frozenset(missing))
    assert kept == {
        frozenset(names)
        for names in (
            ["one", "raw", "two", "last"],
            ["raw", "two", "last"],
            ["two", "last"],
            ["last"],
            [],
        )
    }


# Conversion


@dataclasses.dataclass
class Place:
    x: list[int]


@dataclasses.dataclass
class Row:
    step: int
    size: float
    name: str
    at: Place
    image: np.ndarray
    note: str | None = None


@dataclasses.dataclass
class Log:
    rows: list[Row]


def test_rows_are_converted(tmp_path):
    tenarc.save(tmp_path / "a", {"rows": Table(log())})
    for tables in (False, True):
        found = tenarc.load(tmp_path / "a", cls=Log, tables=tables)
        assert found.rows[7].at == Place([7] * 3) and found.rows[7].note is None
    found = tenarc.load(tmp_path / "a", cls=dict[str, Table], tables=True)
    assert found["rows"]["step"].tolist() == list(range(100))
    again = tenarc.loads(tenarc.dumps(Table(tenarc.load(tmp_path / "a", cls=Log).rows)))
    assert again[3]["note"] is None and again[3]["step"] == 3
    with pytest.raises(tenarc.Mismatch) as caught:
        tenarc.load(tmp_path / "a", cls=dict[str, list[dict[str, int]]])
    assert caught.value.path == "rows.0.name"


# Tables


def table_of(*groups) -> Table:
    return tenarc.loads(columns(*groups), tables=True)


def test_columns_of_several_groups_are_gathered():
    table = table_of(
        2,
        {"a": u8(1, 2), "t": ["text", 1, "xy"]},
        0,
        ["unit"],
        1,
        {"a": of("<i2", 77, -3), "t": TEXT[:0] or ["text", 1, "z"]},
    )
    assert table["a"].dtype == np.int16 and table["a"].tolist() == [1, 2, -3] and table["t"] == ["x", "y", "z"]
    assert table.names() == ["a", "t"] and table[2] == {"a": -3, "t": "z"} and table[1:] == table.rows()[1:]
    assert list(table.columns()) == ["a", "t"]


@pytest.mark.parametrize(
    ("first", "second", "dtype", "want"),
    [
        (of("<u8", 71, 5), of("<i8", 79, -5), "i8", [5, -5]),
        (of("<u8", 71, 2**64 - 1), of("<i8", 79, -5), None, [2**64 - 1, -5]),
        (of("<f4", 85, 0.5), of("<f8", 86, 0.1), "f8", [0.5, 0.1]),
        (of("<u8", 71, 2**63 + 1), of("<f8", 86, 0.5), None, [2**63 + 1, 0.5]),
        (u8(1), ["unit"], None, [1, None]),
        (u8(1), ["bool", b"\1"], None, [1, True]),
    ],
)
def test_groups_of_different_types_keep_their_values(first, second, dtype, want):
    found = table_of(1, {"a": first}, 1, {"a": second})["a"]
    if dtype is None:
        assert found == want and list(map(type, found)) == list(map(type, want))
    else:
        assert found.dtype == dtype and found.tolist() == want


def test_values_that_are_missing_are_masked():
    struct = {
        "a": ["option", b"\x02", of("<f4", 85, 0.5)],
        "b": ["present", b"\1", u8(9)],
        "c": ["option", b"\1", ["bool", b"\1"]],
    }
    table = table_of(2, struct, 1, {"a": of("<f4", 85, 1.5)})
    assert table["a"].tolist() == [None, 0.5, 1.5] and table["a"].dtype == np.float32
    # The second group does not have these columns.
    assert table["b"] == [9, None, None] and table["c"] == [True, None, None]
    assert table_of(2, struct)["b"].tolist() == [9, None] and table_of(2, struct)["c"].tolist() == [True, None]


def test_columns_of_other_kinds():
    table = table_of(4, {name: column for name, (column, _) in KINDS.items()})
    assert table["tensors"].shape == (4, 2) and table["f32"].dtype == np.float32
    assert table["bool"].dtype == bool and table["text"] == ["a", "", "üb", ""]
    assert isinstance(table["struct"], Table) and table["struct"]["b"].tolist() == [1, 2, 3, 4]
    assert table["interleaved struct"]["p"]["1"]["y"].tolist() == [2, 5, 8, 11]
    assert table["tuple"]["0"].tolist() == [1, 2, 3, 4]
    assert [row.tolist() for row in table["numbers in lists"]] == [[0.5, 1.0], [], [2.0], []]
    flat = table.columns()
    assert list(flat) == list(KINDS)
    for name, (_, rows) in KINDS.items():
        column = flat[name]
        assert isinstance(column, list) or column.ndim == 1
        if isinstance(column, np.ndarray):
            # Tensors without dimensions are one array of numbers too.
            column, rows = column.tolist(), [row.tolist() if isinstance(row, np.ndarray) else row for row in rows]
        assert same(column, rows), name


def test_wrong_rows_and_columns_of_tables_are_errors():
    table = table_of(2, {"a": u8(1, 2)})
    assert repr(table) == "<Table of 2 rows: 'a'>"
    for row in (2, -3):
        with pytest.raises(IndexError):
            table[row]
    with pytest.raises(tenarc.NotFound):
        table["b"]
    with pytest.raises(TypeError):
        table[0.5]
    with pytest.raises(tenarc.Mismatch):
        table_of(1, {"a": u8(1)}, 1, u8(1))["a"]
    with pytest.raises(tenarc.Damaged, match="twice"):
        table_of(1, {"a": ["map", 2, u8(1, 1), u8(1, 2)]}).rows()
    assert len(table_of()) == 0 and table_of().columns() == {} and table_of().rows() == []


def test_a_data_frame_is_made_in_one_line():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    table = tenarc.loads(columns(4, {name: column for name, (column, _) in KINDS.items()}), tables=True)
    frame = pandas.DataFrame(table.columns())
    assert list(frame["u8"]) == [1, 2, 3, 255] and frame["option"].isna().tolist() == [True, False, True, False]
    assert list(pandas.DataFrame(tenarc.loads(tenarc.dumps(Table(log())), tables=True).columns())["name"])[:2] == [
        "n0",
        "n1",
    ]


# Writing


@pytest.mark.parametrize(
    ("values", "want"),
    [
        ([1, 2], u8(1, 2)),
        ([1, 256], of("<u2", 69, 1, 256)),
        ([-1, 200], of("<i2", 77, -1, 200)),
        ([-1, 2**63 - 1], of("<i8", 79, -1, 2**63 - 1)),
        ([0, 2**64 - 1], of("<u8", 71, 0, 2**64 - 1)),
        ([-1, 2**64 - 1], ["rows", [-1, 2**64 - 1]]),
        ([0.5, 1.0], of("<f8", 86, 0.5, 1)),
        ([np.float32(0.5), np.float32(1)], of("<f4", 85, 0.5, 1)),
        ([1, 0.5], ["rows", [1, 0.5]]),
        ([True, False], ["bool", b"\1"]),
        (["a", ""], ["text", u8(1, 0), "a"]),
        ([b"a", b"bc"], ["bytes", u8(1, 2), b"abc"]),
        ([None, 5], ["option", b"\2", u8(5)]),
        ([None, None], ["option", b"\0", ["unit"]]),
        ([Some(None), None], ["option", b"\1", ["option", b"\0", ["unit"]]]),
        ([Some(None), 5, None], ["option", b"\3", ["option", b"\2", u8(5)]]),
        ([Some(None), 5], ["rows", [Tag(TSOM, None), 5]]),
        ([[1, 2], [3]], ["list", u8(2, 1), u8(1, 2, 3)]),
        ([[], []], ["list", u8(0, 0), ["unit"]]),
        ([(1,), ("a",)], ["list", u8(1, 1), ["rows", [1, "a"]]]),
        ([{"x": 1}, {"x": 2}], {"x": u8(1, 2)}),
        ([{"x": 1, "y": 2}, {"y": 2, "x": 1}], ["rows", [{"x": 1, "y": 2}, {"y": 2, "x": 1}]]),
        ([{}, {}], ["rows", [{}, {}]]),
        ([{1: 2}, {1: 3}], ["rows", [{1: 2}, {1: 3}]]),
        ([np.array([1, 2], "u1")] * 2, tensor([2, 2], u8(1, 2, 1, 2))),
        ([np.array([[1], [2]], ">u2")] * 2, tensor([2, 2, 1], of("<u2", 69, 1, 2, 1, 2))),
        ([np.array([2, 0], "u1").view(bool)], named("bool", [1, 2], b"\1\0")),
        ([numbers([1], "u1"), numbers([2, 3], "u1")], ["list", u8(1, 2), u8(1, 2, 3)]),
    ],
)
def test_values_are_written_as_the_column_that_fits(values, want):
    assert tenarc.dumps(Table([{"a": value} for value in values])) == columns(len(values), {"a": want})


def test_what_cannot_be_written_is_said():
    for data, said in (({"a": [1], "b": []}, "one length"), ({1: [1]}, "expected text")):
        with pytest.raises(tenarc.Unsupported, match=said):
            Table(data)
    with pytest.raises(tenarc.Unsupported) as caught:
        tenarc.dumps({"log": Table([{"a": {1, 2}}])})
    assert caught.value.path == "log.a.0"
    # What is in items is not in buffers.
    assert tenarc.to_parts(Table([{"a": np.ones(9)}, {"a": bytes(9)}]), inline_below=0).buffers == []


def test_groups_are_limited():
    tree = parse(tenarc.dumps(Table({"a": np.arange(150_000)})), 0, tenarc.Limits())
    assert list(tree.value[::2]) == [65536, 65536, 150_000 - 2 * 65536]
    assert [row["a"] for row in tenarc.loads(tenarc.dumps(Table([{"a": n} for n in range(70_000)])))] == list(
        range(70_000)
    )
    assert tenarc.dumps(Table([])) == tenarc.dumps(Table({})) == columns()


def test_random_rows_come_back():
    dice = random.Random(3)

    def values(depth: int, count: int) -> list[Any]:
        """Values of one kind, with some exceptions."""
        makers = [
            lambda: dice.randrange(-(1 << dice.randrange(1, 70)), 1 << dice.randrange(1, 70)),
            lambda: dice.random(),
            lambda: dice.random() < 0.5,
            lambda: "".join(dice.choice("aü水𐅑") for _ in range(dice.randrange(5))),
            lambda: dice.randbytes(dice.randrange(4)),
            lambda: np.frombuffer(dice.randbytes(12), "<u2").reshape(2, 3),
        ]
        kind = dice.randrange(len(makers) + 2 * (depth < 3))
        if kind == len(makers):
            names = [f"f{n}" for n in range(dice.randrange(4))]
            fields = {name: values(depth + 1, count) for name in names}
            found: list[Any] = [{name: fields[name][n] for name in names} for n in range(count)]
        elif kind > len(makers):
            lengths = [dice.randrange(4) for _ in range(count)]
            inner = iter(values(depth + 1, sum(lengths)))
            found = [[next(inner) for _ in range(length)] for length in lengths]
        else:
            found = [makers[kind]() for _ in range(count)]
        if dice.random() < 0.3:
            found = [None if dice.random() < 0.3 else value for value in found]
        if dice.random() < 0.1:
            found = [Some(None) if dice.random() < 0.1 else value for value in found]
        return found

    for _ in range(400):
        count = dice.randrange(40)
        rows = [dict(zip("abc", row, strict=True)) for row in zip(*(values(0, count) for _ in "abc"), strict=True)]
        for found in (
            tenarc.loads(tenarc.dumps(Table(rows))),
            tenarc.Reader(io.BytesIO(archived(Table(rows), inline_below=0))).load(),
        ):
            assert same(found, rows)
