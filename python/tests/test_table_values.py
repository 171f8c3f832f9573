"""Tables: columns that stay columns when they are read, and rows that are written as columns (SPEC 7)."""

import enum
import io
import json
import random
from dataclasses import dataclass
from typing import Any

import cbor2
import numpy as np
import pytest
from columns_by_hand import (
    KINDS,
    TEXT,
    TSOM,
    TTYP,
    archived,
    columns,
    day,
    log,
    named,
    numbers,
    of,
    same,
    tensor,
    u8,
)

import tenarc
from tenarc import Raw, Simple, Some, Table, Tag
from tenarc.tree import parse


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
    assert table["dict of structs"]["a"].tolist() == [1, 1, 2, 1] and table["dict of texts"][2] == "ü"
    assert table["type of two parameters"]["a"].tolist() == [1, 2, 3, 4] and table["dates"].dtype == "M8[D]"
    assert table["tuple of a type"].rows() == [[day(1), 5], [day(2), 6], [day(3), 7], [day(4), 8]]
    assert table["tuple"]["0"].tolist() == [1, 2, 3, 4]
    assert table["numbers in lists"] == [[0.5, 1.0], [], [2.0], []]
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
    assert repr(table) == "<tenarc.Table: 2 rows, 1 column: 'a' u8>"
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


def test_rows_are_written_as_json_in_one_line():
    rows = [{"a": [1, 2], "at": {"b": [0.5] * n}, "t": np.ones((2, 1))} for n in range(3)]
    for table in (Table(rows), tenarc.loads(tenarc.dumps(Table(rows)), tables=True)):
        assert json.loads(json.dumps(table[2], default=np.ndarray.tolist)) == {
            "a": [1, 2],
            "at": {"b": [0.5, 0.5]},
            "t": [[1.0], [1.0]],
        }


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
        ([[], []], ["array", 0, ["unit"]]),
        ([(), ()], ["array", 0, ["unit"]]),
        ([[1, 2], [3, 300]], ["array", 2, of("<u2", 69, 1, 2, 3, 300)]),
        ([["a", "b"], ["c", ""]], ["array", 2, ["text", u8(1, 1, 1, 0), "abc"]]),
        ([[[1], [2, 3]], [[], []]], ["array", 2, ["list", u8(1, 2, 0, 0), u8(1, 2, 3)]]),
        ([[[1, 2]], []], ["list", u8(1, 0), ["array", 2, u8(1, 2)]]),
        ([(1,), ("a",)], ["tuple", [["rows", [1, "a"]]]]),
        ([(1, "a"), (2, "bc")], ["tuple", [u8(1, 2), ["text", u8(1, 2), "abc"]]]),
        ([(1, 2), (3, 4)], ["array", 2, u8(1, 2, 3, 4)]),
        ([(1, 300), (-1, 4)], ["array", 2, of("<i4", 78, 1, 300, -1, 4)]),
        ([(1, 2), (3,)], ["list", u8(2, 1), u8(1, 2, 3)]),
        ([(1, 2**64 - 1), (-1, 4)], ["tuple", [of("<i1", 72, 1, -1), of("<u8", 71, 2**64 - 1, 4)]]),
        ([(1, 0.5), (3, 1.5)], ["tuple", [u8(1, 3), of("<f8", 86, 0.5, 1.5)]]),
        ([(1, True), (3, False)], ["tuple", [u8(1, 3), ["bool", b"\1"]]]),
        ([(True, False), (True, True)], ["array", 2, ["bool", b"\x0d"]]),
        ([(0.5, 1.5)], ["array", 2, of("<f8", 86, 0.5, 1.5)]),
        ([(np.float32(0.5), 1.5)], ["tuple", [of("<f4", 85, 0.5), of("<f8", 86, 1.5)]]),
        ([((1, 2), (3, 4))], ["array", 2, ["array", 2, u8(1, 2, 3, 4)]]),
        ([([1, 2], (3, 400))] * 2, ["array", 2, ["array", 2, of("<u2", 69, *[1, 2, 3, 400] * 2)]]),
        ([([1], (3, 4))], ["tuple", [["array", 1, u8(1)], ["array", 2, u8(3, 4)]]]),
        ([([1], 2), ([], 3)], ["tuple", [["list", u8(1, 0), u8(1)], u8(2, 3)]]),
        ([(None, 1), (2, 3)], ["tuple", [["option", b"\2", u8(2)], u8(1, 3)]]),
        ([(), None], ["option", b"\1", ["array", 0, ["unit"]]]),
        ([{"x": []}, {"x": []}], {"x": ["array", 0, ["unit"]]}),
        (["aa", "bb"], ["text", 2, "aabb"]),
        ([b"", b""], ["bytes", 0, b""]),
        (["left", "right", "left"] * 20, ["dict", u8(*[0, 1, 0] * 20), 2, ["text", u8(4, 5), "leftright"]]),
        ([b"abcd"] * 30, ["dict", u8(*[0] * 30), 1, ["bytes", 4, b"abcd"]]),
        (
            [["yes", "no"], ["yes", "yes"]] * 9,
            ["array", 2, ["dict", u8(*[0, 1, 0, 0] * 9), 2, ["text", u8(3, 2), "yesno"]]],
        ),
        ([{"x": 1}, {"x": 2}], {"x": u8(1, 2)}),
        ([{"x": 1, "y": 2}, {"y": 2, "x": 1}], ["rows", [{"x": 1, "y": 2}, {"y": 2, "x": 1}]]),
        ([{}, {}], ["rows", [{}, {}]]),
        ([{1: 2}, {1: 3}], ["rows", [{1: 2}, {1: 3}]]),
        ([np.array([1, 2], "u1")] * 2, tensor([2, 2], u8(1, 2, 1, 2))),
        ([np.array([[1], [2]], ">u2")] * 2, tensor([2, 2, 1], of("<u2", 69, 1, 2, 1, 2))),
        ([np.array([2, 0], "u1").view(bool)], named("bool", [1, 2], b"\1\0")),
        ([numbers([1], "u1"), numbers([2, 3], "u1")], ["list", u8(1, 2), u8(1, 2, 3)]),
        ([numbers([1, 4], "u1"), numbers([2, 3], "u1")], ["array", 2, u8(1, 4, 2, 3)]),
        ([Some(None), Some(None)], ["option", b"\3", ["option", b"\0", ["unit"]]]),
        ([Some(5), Some(None)], ["option", b"\3", ["option", b"\1", u8(5)]]),
        ([Some(5), Some(6)], u8(5, 6)),
        ([Raw("bf16", (2,), b"abcd"), Raw("bf16", (2,), b"efgh", "F")], named("bf16", [2, 2], b"abcdefgh")),
        ([Raw("f4", (2,), b"a"), None], ["option", b"\1", named("f4", [1, 2], b"a")]),
        (
            [[Raw("f6_e2m3", (4,), b"abc"), Raw("f6_e2m3", (4,), b"def")], []],
            ["list", u8(2, 0), named("f6_e2m3", [2, 4], b"abcdef")],
        ),
        # These are not parts of one tensor.
        (
            [Raw("f4", (2,), b"a"), Raw("f4", (4,), b"ab")],
            ["rows", [named("f4", [2], b"a"), named("f4", [4], b"ab")]],
        ),
        ([Raw("f4", (1, 2), b"a", "F")], ["rows", [named("f4", [1, 2], b"a", "F")]]),
        ([Raw("odd", (2,), b"a")] * 2, ["rows", [named("odd", [2], b"a")] * 2]),
    ],
)
def test_values_are_written_as_the_column_that_fits(values, want):
    assert tenarc.dumps(Table([{"a": value} for value in values])) == columns(len(values), {"a": want})


class Other(Raw):
    """A class that a caller derives."""


@dataclass
class Point:
    x: int
    y: str


class Corner(Point, enum.Enum):
    LEFT = 1, "a"
    RIGHT = 2, "b"


VALUES = {
    "raw": Raw("bf16", (2,), b"abcd"),
    "raw of 128 bits": Raw("f128", (1,), bytes(range(16))),
    "raw of 4 bits": Raw("f4", (4,), b"ab"),
    "raw of a dtype that numpy has": Raw("f32", (1,), b"abcd"),
    "raw without dimensions": Raw("bf16", (), b"ab"),
    "raw without elements": Raw("bf16", (0, 1 << 61), b""),
    "raw of an unknown dtype": Raw("odd", (3, 1 << 61), b"abcd"),
    "raw of many dimensions": Raw("f128", (1,) * 64, bytes(16)),
    "raw of order F": Raw("bf16", (2, 2), b"abcdefgh", "F"),
    "raw of a derived class": Other("bf16", (2,), b"abcd"),
    "array of many dimensions": np.ones((1,) * 32),
    "some none": Some(None),
    "some some none": Some(Some(None)),
    "some undefined": Some(cbor2.undefined),
    "some 5": Some(5),
    "some raw": Some(Raw("bf16", (2,), b"abcd")),
    "tag": Tag(99, [1, b"a"]),
    "tag of some none": Tag(TSOM, None),
    "tag around some none": Tag(99, Some(None)),
    "simple": Simple(40),
    "simple null": Simple(22),
    "undefined": cbor2.undefined,
    "numbers": numbers([1, 2], "f4"),
    "numbers that are bools": numbers([True], bool),
    "table": Table([{"a": 1}]),
    "dataclass": Point(1, "a"),
    "dataclass with others": Point(Raw("bf16", (2,), b"abcd"), Some(None)),
    "member of an enum": Corner.LEFT,
    "bytes": b"ab",
    "memoryview": memoryview(b"ab"),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_of_every_class_come_back_as_from_a_list(name):
    value = VALUES[name]
    lists: list[list[Any]] = [
        [value] * 3,
        [value, None, value, None],
        [None, value],
        [value, 1, Some(None), "a"],
        [value, 1, None, Some(None), cbor2.undefined],
        [{"a": 1, "v": value}, {"a": 2}],
    ]
    for rows in (*lists, *([{"a": 1, "v": value} for value in values] for values in lists)):
        for wrapped in (rows, [[row] for row in rows], [{"at": row} for row in rows]):
            want = tenarc.loads(tenarc.dumps(wrapped))
            assert same(tenarc.loads(tenarc.dumps(Table(wrapped))), want), wrapped
            for options in ({"inline_below": 0}, {}):
                data = io.BytesIO(archived(Table(wrapped), **options))
                assert same(tenarc.Reader(data).load(), want), wrapped


def test_a_column_of_raw_tensors_is_one():
    table = Table([{"h": Raw("f4", (2, 2), bytes([n, n]))} for n in range(5)])
    assert table["h"] == Raw("f4", (5, 2, 2), bytes([0, 0, 1, 1, 2, 2, 3, 3, 4, 4]))
    assert table.dtypes == {"h": "f4[2, 2]"} and table[3]["h"] == Raw("f4", (2, 2), b"\3\3")
    again = tenarc.loads(tenarc.dumps(table), tables=True)
    assert again["h"] == table["h"] and again.rows() == table.rows()


def test_a_subclass_of_raw_is_a_tensor():
    assert tenarc.dumps([Other("f4", (2,), b"a")]) == tenarc.dumps([Raw("f4", (2,), b"a")])


def test_what_cannot_be_written_is_said():
    for data, said in (({"a": [1], "b": []}, "one length"), ({1: [1]}, "expected text")):
        with pytest.raises(tenarc.Unsupported, match=said):
            Table(data)
    with pytest.raises(tenarc.Unsupported) as caught:
        tenarc.dumps({"log": Table([{"a": {1, 2}}])})
    assert caught.value.path == "log.a.0"
    # What is in items is not in buffers.
    assert tenarc.to_parts(Table([{"a": np.ones(9)}, {"a": bytes(9)}]), inline_below=0).buffers == []


def test_texts_are_a_dict_if_that_saves_enough():
    """The decision is that of the crate (SPEC 7)."""

    def kind(rows: list[Any]) -> Any:
        column = parse(tenarc.dumps(Table(rows)), 0, tenarc.Limits()).value[1]
        return (column[0], column[2]) if column[0] == "dict" else (column[0], len(rows))

    # 20 bytes of 100 would be saved by 16 bytes, a code and a length.
    assert kind(["a" * 9] * 10) == ("dict", 1) and kind(["a" * 3] * 10) == ("text", 10)
    assert kind(["a" * 20, "b" * 20]) == ("text", 2)
    # At most 192 of the first 256 are distinct.
    words = [f"word {n}" for n in range(400)]
    assert kind(words[:192] * 2 + words[:10] * 50) == ("dict", 192)
    assert kind(words[:193] * 3) == ("text", 579) and kind(words[:193][::-1] * 3) == ("text", 579)
    assert kind(words[:100] * 3 + words[100:] * 3) == ("dict", 400)
    # Codes of two bytes.
    found = tenarc.dumps(Table((words[:100] * 3 + words[100:]) * 3))
    column = parse(found, 0, tenarc.Limits()).value[1]
    assert column[1].tag == 69 and column[2] == 400 and tenarc.loads(found) == (words[:100] * 3 + words[100:]) * 3
    # The rows have at most 32 times the bytes of a dict.
    assert kind(["x" * 30] * 900) == ("dict", 1) and kind(["x" * 60] * 900) == ("text", 900)
    for make in (str, str.encode):
        rows = [make("ä水" * (n % 3)) for n in range(300)]
        assert kind(rows)[0] == "dict" and tenarc.loads(tenarc.dumps(Table(rows))) == rows


def test_rows_of_a_dict_are_apart():
    column = ["dict", u8(0, 0, 1), 2, {"a": ["list", u8(1, 0), ["rows", [[5]]]], "w": tensor([2, 1], u8(7, 8))}]
    for tables in (False, True):
        rows = [*tenarc.loads(columns(3, column), tables=tables)]
        rows[0]["a"].append(1)
        rows[0]["a"][0].append(2)
        rows[0]["b"] = 3
        assert rows[1]["a"] == [[5]] and list(rows[1]) == ["a", "w"]
        # Arrays share their memory, so nobody can write to them.
        assert not any(row["w"].flags.writeable for row in rows)


def test_tables_with_dicts_are_written_again():
    rows = [{"a": word, "b": n} for n, word in enumerate(["left", "right"] * 50)]
    table = tenarc.loads(tenarc.dumps(Table(rows)), tables=True)
    assert table.dtypes == {"a": "text", "b": "u8"} and table["a"] == ["left", "right"] * 50
    assert tenarc.dumps(table) == tenarc.dumps(Table(rows))
    # Some of the rows have other codes.
    part = Table.of([group.part(1, 5) for group in table.groups])
    assert tenarc.loads(tenarc.dumps(part)) == rows[1:5]
    numbers = table_of(3, {"a": ["dict", u8(0, 1, 0), 2, of("<i2", 77, 300, -1)]})
    assert numbers["a"].tolist() == [300, -1, 300] and numbers["a"].dtype == np.int16


def test_values_of_a_type_are_read_as_if_they_stood_alone():
    for item, want in (
        (5, day(5)),
        ([1, "a"], [1, "a"]),
        ({"a": u8(1)}, {"a": [1]}),
        (Tag(99, b"x"), Tag(99, b"x")),
    ):
        typed = Tag(TTYP, ["example.com/x", [-1, "y"], Tag(TTYP, ["date", [], item])])
        assert tenarc.loads(cbor2.dumps({"a": [typed]})) == {"a": [want]}
    assert tenarc.loads(cbor2.dumps(Tag(TTYP, ["date", [], tensor([2, 1], u8(1, 2))]))).tolist() == [
        [day(1)],
        [day(2)],
    ]
    # As a key, too.
    assert tenarc.loads(b"\xa1" + cbor2.dumps(Tag(TTYP, ["date", [], 5])) + b"\1") == {day(5): 1}
    assert tenarc.loads(tenarc.dumps(Tag(TTYP, ["uuid", [], bytes(15)]))) == bytes(15)
    for wrong, said in (
        (["date", [], None], "null"),
        (["date", [], cbor2.undefined], "null"),
        (["date", 5], "expected 3 fields, found 2"),
        (["", [], 5], "1 to 64 bytes"),
        (["x" * 65, [], 5], "1 to 64 bytes"),
        (["date", [0.5], 5], "integer or text"),
        (["date", ["x" * 65], 5], "integer or text"),
        (["date", [1] * 17, 5], "at most 16"),
        (["date", {}, 5], "at most 16"),
        (5, "expected an array"),
    ):
        with pytest.raises(tenarc.Damaged, match=said):
            tenarc.loads(cbor2.dumps(Tag(TTYP, wrong)))
        with pytest.raises(tenarc.Unsupported, match=said):
            tenarc.dumps(Tag(TTYP, wrong))
    for wrong in ("9f 6161 80 05 ff", "83 7f6161ff 80 05", "83 6161 9fff 05", "83 6161 81 7f6161ff 05"):
        with pytest.raises(tenarc.Damaged, match="definite length"):
            tenarc.loads(bytes.fromhex("da54545950" + wrong))
    assert tenarc.loads(bytes.fromhex("da54545950 83 6161 80 9f05ff")) == [5]


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
