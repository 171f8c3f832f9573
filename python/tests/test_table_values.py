"""Tables: columns that stay columns when they are read, and rows that are written as columns (SPEC 3.1)."""

import enum
import io
import random
from dataclasses import dataclass
from typing import Any

import cbor2
import numpy as np
import pytest
from columns_by_hand import KINDS, TEXT, TSOM, archived, columns, log, named, numbers, of, same, tensor, u8

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
    assert table["interleaved struct"]["p"]["1"]["y"].tolist() == [2, 5, 8, 11]
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
