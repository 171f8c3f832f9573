"""Wrong and damaged columns (SPEC 7), and those that ask for much memory or time."""

import itertools
import random
import resource
import time
from typing import Any

import cbor2
import numpy as np
import pytest
from columns_by_hand import KINDS, TBUF, TCOL, all_kinds, columns, named, of, tensor, u8

import tenarc
from tenarc import Table, Tag

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
    (["list", u8(2, 0), u8(1)], 2, "expected 2 numbers, found 1"),
    (["list", 1, u8(1, 2)], 2, "expected a typed array"),
    (["list", u8(1, 1), u8(1, 2)], 2, "all have the length 1, which must be a column of kind array"),
    (["list", u8(3), u8(1, 2, 3)], 1, "all have the length 3, which must be a column of kind array"),
    (["list", u8(0, 0), ["unit"]], 2, "all have the length 0"),
    (["array", u8(1, 1), u8(1, 2)], 2, "the length of all rows: expected an unsigned integer"),
    (["array", -1, u8(1, 2)], 2, "the length of all rows"),
    (["array", True, u8(1, 2)], 2, "the length of all rows"),
    (["array", 1.0, u8(1, 2)], 2, "the length of all rows"),
    (["array", 1], 2, "expected 3 items, found 2"),
    (["array", 2, u8(1, 2, 3)], 2, "expected 4 numbers, found 3"),
    (["array", 1, ["present", b"\x01", u8(1)]], 1, "only a value of a struct"),
    (["array", (1 << 64) - 1, u8()], 2, "overflows"),
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
    (["tuple", []], 1, "expected an array with columns, found an empty array"),
    (["tuple", [u8(1), u8()]], 1, "expected 1 numbers, found 0"),
    (["tuple", [u8(1), u8(2)]], 1, "2 columns of u8 of one shape, which must be one column of kind array"),
    (["tuple", [u8(1)]], 1, "which must be one column of kind array"),
    (["tuple", [["bool", b"\1"], ["bool", b"\0"]]], 1, "2 columns of bool"),
    (["tuple", [u8(1), of("<i4", 78, -1)]], 1, "2 columns of i32"),
    (["tuple", [of("<u4", 70, 1), of("<i1", 72, -1), u8(1)]], 1, "3 columns of i64"),
    (["tuple", [["array", 2, u8(1, 2)], ["array", 2, of("<i2", 77, 1, 2)]]], 1, "2 columns of i16 of one shape"),
    (["tuple", [["tuple", [u8(1), u8(2)]], ["text", 0, ""]]], 1, "must be one column of kind array"),
    (["tuple", [Tag(TBUF, ["u8", 0])]], 1, "a message has no buffers"),
    (["dict", u8(0), 1], 1, "expected 4 items, found 3"),
    (["dict", u8(0, 0), 1, u8(1)], 1, "expected 1 numbers, found 2"),
    (["dict", of("<u2", 69, 0), 1, u8(1)], 1, "expected u8, found u16"),
    (["dict", u8(0), 257, Tag(64, bytes(257))], 1, "expected u16, found u8"),
    (["dict", u8(0), (1 << 16) + 1, u8(1)], 1, "expected at most 65536 rows, found 65537"),
    (["dict", u8(0), -1, u8(1)], 1, "expected at most 65536 rows, found -1"),
    (["dict", u8(0), True, u8(1)], 1, "expected at most 65536 rows"),
    (["dict", u8(0), u8(1), u8(1)], 1, "expected at most 65536 rows, found tag 64"),
    (["dict", u8(1), 1, u8(1)], 1, "row 0 has the code 1 before 0"),
    (["dict", u8(0, 2, 1), 3, u8(1, 2, 3)], 3, "row 1 has the code 2 before 1"),
    (["dict", u8(0, 1, 0), 3, u8(1, 2, 3)], 3, "2 rows occur, but there are 3"),
    (["dict", u8(0, 1), 1, u8(1)], 2, "2 rows occur, but there are 1"),
    (["dict", u8(), 1, u8(1)], 0, "0 rows occur, but there are 1"),
    (["dict", u8(0, 1), 2, u8(1)], 2, "expected 2 numbers, found 1"),
    (["dict", u8(0), 1, ["dict", u8(0), 1, u8(1)]], 1, "a dict itself"),
    (["dict", u8(0), 1, ["type", "date", [], ["dict", u8(0), 1, u8(1)]]], 1, "a dict itself"),
    (["dict", u8(0), 1, ["present", b"\1", u8(1)]], 1, "only a value of a struct"),
    (["dict", u8(0, 0), 1, ["map", 2, u8(1, 1), u8(1, 2)]], 2, "the same key twice"),
    (["type", "date", [], u8(1, 2)], 1, "expected 1 numbers, found 2"),
    (["type", "date", []], 1, "expected 4 items, found 3"),
    (["type", "", [], u8(1)], 1, "expected text of 1 to 64 bytes"),
    (["type", "ü" * 33, [], u8(1)], 1, "expected text of 1 to 64 bytes"),
    (["type", 1, [], u8(1)], 1, "expected text of 1 to 64 bytes"),
    (["type", "date", u8(), u8(1)], 1, "expected an array of at most 16"),
    (["type", "date", [1] * 17, u8(1)], 1, "expected an array of at most 16"),
    (["type", "date", ["x" * 65], u8(1)], 1, "expected an integer or text of at most 64 bytes"),
    (["type", "date", [True], u8(1)], 1, "expected an integer or text of at most 64 bytes"),
    (["type", "date", [1.0], u8(1)], 1, "expected an integer or text"),
    (["type", "date", [Tag(2, b"\1" * 9)], u8(1)], 1, "expected an integer or text"),
    ({"a": ["type", "date", [], ["present", b"\1", u8(1)]]}, 1, "only a value of a struct"),
    (["interleaved", None, tensor([1, 1], u8(1))], 1, "unknown kind 'interleaved'"),
    (tensor([1, 1], [1]), 1, "expected a typed array"),
    (tensor([1, 1], Tag(4242, u8(1))), 1, "expected a typed array"),
    (["enum", u8(2), ["A", "B"]], 1, "row 0 is variant 2, but there are 2"),
    (["enum", u8(0), []], 1, "but there are 0"),
    (["enum", of("<u4", 70, 0), ["A"]], 1, "expected u8 or u16, found u32"),
    (["enum", u8(0), [1]], 1, "expected text"),
    (["enum", u8(0), "A"], 1, "expected an array"),
    (["enum", u8(0), ["A"], []], 1, "expected an array of 1, found 0"),
    (["enum", u8(0, 0), ["A"], [u8(1)]], 2, "expected 2 numbers, found 1"),
    (["enum", u8(0, 0), ["A", "B"], [u8(1, 2), u8(1)]], 2, "expected 0 numbers, found 1"),
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
        {"log": Tag(TCOL, [1, {"a": u8(1)}, 1, {"a": u8(1), "b": ["array", 1, ["bool", b"\2"]]}])}
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


@pytest.mark.parametrize("kind", KINDS)
def test_every_changed_bit_raises_nothing_else(kind):
    message = columns(4, {"a": KINDS[kind][0]})
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
    "struct": {},
    "nested": {"a": {"b": {}}},
    "array": ["array", 0, ["unit"]],
    "tuple": ["tuple", [["unit"]]],
    "type": ["type", "x.y", [], ["unit"]],
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
        with pytest.raises(tenarc.Limit, match="more memory than the limit"):
            tenarc.loads(columns(1, ["array", BIG, EMPTY[kind]]), tables=tables)[0]
    assert peak() - before < 50 << 20 and time.monotonic() - start < 2


def test_rows_without_bytes_are_counted_in_the_whole_document():
    full = [65536, ["unit"]] * 64
    assert len(tenarc.loads(columns(*full))) == len(tenarc.loads(columns(*full), tables=True).rows()) == 1 << 22
    one = Tag(TCOL, [65536, ["unit"]])
    for more in (cbor2.dumps([Tag(TCOL, full), one]), columns(*full, 1, ["rows", [one]])):
        with pytest.raises(tenarc.Limit):
            tenarc.loads(more)


@pytest.mark.parametrize("is_archive", [False, True])
def test_rows_without_bytes_take_no_more_memory_than_is_allowed(tmp_path, is_archive):
    # 128 columns of 65,536 rows: 64 MiB of references to None, from about 1 KB.
    rows = Tag(TCOL, [65536, {f"c{number}": ["unit"] for number in range(128)}])
    small, large = (tenarc.Limits(max_alloc=length << 20) for length in (63, 64))

    def columns_of(limits: tenarc.Limits) -> dict[str, Any]:
        if is_archive:
            return tenarc.open(path, limits=limits).table("t").columns()
        return tenarc.loads(cbor2.dumps(rows), tables=True, limits=limits).columns()

    path = tmp_path / "a.tenarc"
    table = tenarc.loads(cbor2.dumps(rows), tables=True)
    tenarc.save(path, table, name="t")
    for limits in (tenarc.Limits(), large):
        assert sum(map(len, columns_of(limits).values())) == 1 << 23
    before = peak()
    with pytest.raises(tenarc.Limit, match="more memory than the limit"):
        columns_of(small)
    assert peak() - before < 70 << 20


@pytest.mark.parametrize("kind", [name for name, (column, _) in KINDS.items() if name not in EMPTY])
def test_claimed_counts_allocate_nothing(kind):
    before = peak()
    for claim in (["array", BIG, KINDS[kind][0]], ["list", of("<u8", 71, BIG, 0), KINDS[kind][0]]):
        with pytest.raises(tenarc.Error):
            tenarc.loads(columns(2, claim))
    assert peak() - before < 50 << 20


def test_rows_that_need_much_memory_are_bounded():
    column: Any = ["bool", bytes(8192)]
    for _ in range(100):
        column = {"a": column}
    limits = tenarc.Limits(max_alloc=100 << 20)
    with pytest.raises(tenarc.Limit, match="more memory than the limit"):
        tenarc.loads(columns(65536, column), limits=limits)
    column = ["tuple", [["unit"]] * 30_000]
    with pytest.raises(tenarc.Limit, match="more memory than the limit"):
        tenarc.loads(columns(65536, column), limits=limits)
    # Without rows, the memory is not needed.
    assert len(tenarc.loads(columns(65536, column), tables=True, limits=limits)) == 65536


def test_nesting_counts():
    def nested(levels: int, column: Any) -> bytes:
        for _ in range(levels):
            column = {"a": column}
        return columns(1, column)

    # The tag, the array, and the tag of the numbers.
    for levels, wrap in ((125, u8(1)), (126, {}), (125, ["unit"]), (124, ["array", 0, u8()])):
        message = nested(levels, wrap)
        for tables in (False, True):
            found = tenarc.loads(message, tables=tables)[0]
        for _ in range(levels):
            found = found["a"]
        with pytest.raises(tenarc.Limit):
            tenarc.loads(nested(levels + 1, wrap))
    column: Any = ["unit"]
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
