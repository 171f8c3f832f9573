"""Few bytes do not become very many: the memory of a value stays within its one budget (README, Limits)."""

import contextlib
import io
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import cbor2
import numpy as np
import pytest
from columns_by_hand import TBUF, TCOL, TENS

import tenarc
from tenarc import Limits, Tag

MIB = 1 << 20
ROWS = 1 << 16


def columns(count: int, column: Any, groups: int = 1) -> bytes:
    return cbor2.dumps(Tag(TCOL, [count, column] * groups))


def named(shape: Any) -> Tag:
    return Tag(TENS, ["f4", shape, "C", b""])


#: Columns of 65,536 rows that take few bytes.
HOSTILE: dict[str, Any] = {
    "units": ["unit"],
    "lists of units": ["array", 254, ["unit"]],
    "lists of lists": ["array", 254, ["array", 254, ["unit"]]],
    "empty lists": ["array", 0, ["unit"]],
    "lists of empty lists": ["array", 100, ["array", 0, ["unit"]]],
    "tuples": ["tuple", [["unit"]] * 100],
    "nested tuples": ["tuple", [["tuple", [["tuple", [["tuple", [["unit"]] * 4]] * 4]] * 4]] * 4],
    "structs": {"a": {"b": {"c": {"d": {}}}}},
    "long names": {"n" * 1000: {"m" * 1000: ["unit"]}},
    "many names": {f"name {n}": ["unit"] for n in range(200)},
    "options of units": ["option", bytes([255] * (ROWS // 8)), ["unit"]],
    "texts of one length": ["text", 0, ""],
    "byte strings of one length": ["bytes", 0, b""],
    "lists of texts": ["array", 200, ["text", 0, ""]],
    "maps": ["map", 0, ["unit"], ["unit"]],
    "maps with entries": ["map", 1, ["unit"], ["array", 50, ["unit"]]],
    "enums": ["enum", Tag(64, bytes(ROWS)), ["name"], [["array", 100, ["unit"]]]],
    "unit variants": ["array", 1, ["enum", Tag(64, bytes(ROWS)), ["v" * 5000]]],
    "tensors without elements": named([ROWS, 0]),
    "lists of tensors": ["array", 100, named([100 * ROWS, 3, 0])],
    "raw tensors without elements": Tag(TENS, ["odd", [ROWS, 7], "C", b""]),
    "a dict of lists": ["dict", Tag(64, bytes(ROWS)), 1, ["array", 100, ["unit"]]],
    "a dict of structs": ["dict", Tag(64, bytes(ROWS)), 1, {f"name {n}": ["unit"] for n in range(50)}],
    "a dict of items": ["dict", Tag(64, bytes(ROWS)), 1, ["rows", [[{"a": [1, 2]}] * 20]]],
    "a dict of enums": [
        "dict",
        Tag(64, bytes(ROWS)),
        1,
        ["enum", Tag(64, b"\0"), ["A"], [["array", 50, ["unit"]]]],
    ],
    "a dict of a text": ["dict", Tag(64, bytes(ROWS)), 1, ["text", 5000, "x" * 5000]],
    "arrays of dicts": [
        "array",
        1,
        ["dict", Tag(64, bytes(ROWS)), 1, ["map", 3, ["text", 1, "abc"], ["array", 9, ["unit"]]]],
    ],
    "types": ["type", "x.y", [], ["array", 100, ["unit"]]],
    "bools": {f"b{n}": ["bool", bytes(ROWS // 8)] for n in range(8)},
    "single bytes": {f"b{n}": Tag(64, bytes(ROWS)) for n in range(8)},
}


def within(read: Callable[[], Any], length: int, limits: Limits = Limits()) -> bool:  # noqa: B008
    """Whether something can be read. Checks that it takes no more memory than it may, and little time."""
    budget = limits.memory(length)
    start = time.monotonic()
    tracemalloc.start()
    try:
        found = read()
        return found is not None
    except tenarc.Limit as error:
        assert "max_alloc" in str(error)
        return False
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # The input itself, and some objects that do not depend on it.
        assert peak <= budget + 4 * length + MIB, f"{peak / MIB:.1f} of {budget / MIB:.1f} MiB"
        # tracemalloc takes most of it.
        assert time.monotonic() - start < 60


@pytest.mark.parametrize("kind", HOSTILE)
def test_rows_stay_within_the_budget(kind):
    limits = Limits(max_alloc=4 * MIB)
    for groups in (1, 8):
        message = columns(ROWS, HOSTILE[kind], groups)
        within(lambda message=message: tenarc.loads(message, limits=limits), len(message), limits)
        table = tenarc.loads(message, tables=True, limits=limits)
        for read in (
            table.rows,
            lambda table=table: table[7],
            lambda table=table: next(iter(table)),
            table.columns,
        ):
            with contextlib.suppress(tenarc.Mismatch):
                within(read, len(message), limits)


@pytest.mark.parametrize("kind", ["units", "many names", "options of units", "single bytes", "maps with entries"])
def test_rows_stay_within_the_default_budget(kind):
    message = columns(ROWS, HOSTILE[kind], 8)
    within(lambda: tenarc.loads(message), len(message))


def test_the_rows_of_an_archive_stay_within_the_budget(tmp_path):
    limits = Limits(max_alloc=4 * MIB)
    for column in HOSTILE.values():
        with open(tmp_path / "a", "wb") as file, tenarc.Writer(file) as out:
            out._save(columns(ROWS, {"x": column}, 3), [], "log")
        length = (tmp_path / "a").stat().st_size
        with tenarc.open(tmp_path / "a", limits=limits) as archive:
            table = archive.table("log")
            for read in (archive.load, archive.view, lambda a=archive: a["x"], table.rows, table.columns):
                within(read, length, limits)
        within(lambda: tenarc.load(tmp_path / "a", limits=limits), length, limits)


def test_a_few_bytes_are_refused_at_once():
    short = bytes.fromhex("da54434f4c821a000100008365617272617918fe8164756e6974")
    start = time.monotonic()
    for message in (short, columns(ROWS, HOSTILE["lists of units"], 8), columns(ROWS, HOSTILE["tuples"])):
        with pytest.raises(
            tenarc.Limit, match=r"more memory than the limit of 671\d\d\d\d\d bytes; Limits\(max_alloc"
        ):
            tenarc.loads(message)
    assert time.monotonic() - start < 1
    assert len(tenarc.loads(short, limits=Limits(max_alloc=1 << 30))) == ROWS


def test_lengths_and_bits_that_many_columns_share_count():
    """Each column keeps offsets or bools of its own, although the bytes are in one buffer."""
    content = np.zeros(MIB, "u1")
    lengths, bits = Tag(TBUF, ["u8", 0]), Tag(TBUF, [0])
    for column in (
        ["array", MIB, ["map", lengths, ["unit"], ["unit"]]],
        ["array", MIB, ["text", lengths, ""]],
        ["array", 8 * MIB, ["option", bits, ["unit"]]],
        ["array", 8 * MIB, ["bool", bits]],
        ["text", MIB, bits],
        ["bytes", MIB, bits],
    ):
        metadata = cbor2.dumps(Tag(TCOL, [1, {f"c{n}": column for n in range(200)}]))
        out = io.BytesIO()
        with tenarc.Writer(out) as writer:
            writer._save(metadata, [content], None)
        data = out.getvalue()
        for tables in (False, True):
            within(lambda data=data, tables=tables: tenarc.Reader(io.BytesIO(data)).load(tables=tables), len(data))


def test_references_that_are_repeated_stay_within_the_budget():
    content = np.zeros(MIB, "u1")
    for count, fits in ((60, True), (200, False)):
        for reference in (Tag(TBUF, ["u8", [MIB], "C", 0]), Tag(TBUF, ["u8", 0]), Tag(TBUF, [0])):
            metadata = cbor2.dumps([reference] * count)
            out = io.BytesIO()
            with tenarc.Writer(out) as writer:
                writer._save(metadata, [content], None)
            data = out.getvalue()
            assert within(lambda data=data: tenarc.load(io.BytesIO(data), numbers=True), len(data)) is fits


def test_ordinary_tables_are_read_by_default():
    count = 100_000
    table = tenarc.Table(
        {"id": np.arange(count), "x": np.linspace(0, 1, count), "s": [f"row {n}" for n in range(count)]}
    )
    message = tenarc.dumps(table)
    assert within(lambda: tenarc.loads(message), len(message))
    flags = tenarc.dumps(tenarc.Table({"a": np.ones(200_000, "?"), "n": np.arange(200_000) % 100}))
    assert within(lambda: tenarc.loads(flags), len(flags))


def test_the_rows_of_dicts_may_take_1024_times_the_bytes(tmp_path):
    """Equal texts are one object, so they take less memory than they seem to have."""
    for length, fits in ((1000, True), (100_000, False)):
        column = ["dict", Tag(64, bytes(ROWS)), 1, ["text", length, "x" * length]]
        message = columns(ROWS, {"a": column})
        assert within(lambda message=message: tenarc.loads(message), len(message)) is fits
        with open(tmp_path / "a", "wb") as file, tenarc.Writer(file) as out:
            out._save(message, [], "log")
        with tenarc.open(tmp_path / "a") as archive:
            table = archive.table("log")
            for read in (table.rows, lambda t=table: t["a"], lambda a=archive: a["a"]):
                assert within(read, len(message)) is fits
            assert table[5] == {"a": "x" * length}
