"""One call that reads many columns or rows, all of which refer to one buffer."""

import io
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import cbor2
import numpy as np
import pytest
from columns_by_hand import TBUF, TCOL
from test_compressed import peak

import tenarc
from tenarc import Limits, Table, Tag, calls, packed
from tenarc.compress import Compressed
from tenarc.encode import Encoded

MIB = 1 << 20
# What a few rows take as objects.
ROWS = 10_000
METHODS = [None, "zstd", "lz4"]


def forged(metadata: Any, *buffers: np.ndarray, compression: str | None = None, name: str | None = None) -> bytes:
    """An archive with this metadata, and buffers of zeros."""
    out = io.BytesIO()
    with tenarc.Writer(out, compression=compression) as writer:
        content = cbor2.dumps(metadata)
        tensors = [("u8", buffer.shape) for buffer in buffers]
        encoded = Encoded(content, [*buffers], tensors)
        stored = Compressed(encoded, writer._options)
        assert len(stored.packed) == (len(buffers) if compression else 0)
        writer._save(content, [*buffers], name, stored)
    return out.getvalue()


def reference(*shape: int, buffer: int = 0) -> Tag:
    return Tag(TBUF, ["u8", [*shape], "C", buffer])


def groups(count: int, column: Any, rows: int = 1) -> Tag:
    return Tag(TCOL, [rows, column] * count)


def struct(names: int, column: Any) -> dict[str, Any]:
    return {f"c{number}": column for number in range(names)}


@pytest.fixture
def opened(tmp_path) -> Iterator[Callable[..., tenarc.Archive]]:
    found = []

    def open_bytes(data: bytes, limit: int | None = None, **options: Any) -> tenarc.Archive:
        path = tmp_path / f"{len(found)}"
        path.write_bytes(data)
        found.append(tenarc.open(path, limits=Limits(max_alloc=limit), **options))
        return found[-1]

    yield open_bytes
    for archive in found:
        archive.close()


def zeros(length: int) -> np.ndarray:
    return np.zeros(length, "u1")


def refused(*reads: Callable[[], Any]) -> None:
    for read in reads:
        with pytest.raises(tenarc.Limit, match=r"more memory than the limit of .*max_alloc"):
            read()


@pytest.mark.parametrize("method", METHODS)
def test_groups_are_added_up(method, opened):
    """Six copies of a MiB are too much, four are not. Of a compressed buffer, the first one counts too."""

    def archive_of(count: int) -> tenarc.Archive:
        column = {"x": reference(1, MIB)}
        return opened(forged(groups(count, column), zeros(MIB), compression=method), 4 * MIB + ROWS)

    archive = archive_of(6)
    table = archive.table("")
    refused(
        lambda: archive["x"],
        lambda: archive.get("x"),
        lambda: archive.tensor("x"),
        lambda: archive.slice("x", slice(2)),
        lambda: table["x"],
        table.columns,
        table.rows,
        lambda: list(table),
        lambda: table[::-1],
        lambda: tenarc.dumps(table),
    )
    assert len(table[:4]) == 4 and table[5]["x"].shape == (MIB,)
    archive = archive_of(4)
    table = archive.table("")
    assert archive["x"].shape == archive.tensor("x").shape == table["x"].shape == (4, MIB)
    assert len(table.rows()) == len([*table]) == 4 and tenarc.loads(tenarc.dumps(table))[3]["x"].shape == (MIB,)


@pytest.mark.parametrize("method", METHODS)
def test_columns_are_added_up(method, opened):
    for count, inner in (
        (1, lambda column: column),
        (1, lambda column: {"at": column}),
        (3, lambda column: column),
    ):
        column = inner(struct(12, reference(1, MIB)))
        archive = opened(forged(groups(count, column), zeros(MIB), compression=method), 10 * MIB)
        table = archive.table("")
        whole = table["at"] if "at" in column else table
        refused(whole.columns, lambda table=table: table[0], lambda table=table: [*table], whole.rows)
        for number in range(12):
            assert whole[f"c{number}"].shape == (count, MIB)


@pytest.mark.parametrize("method", METHODS)
def test_rows_of_an_array_are_added_up(method, opened):
    rows = [{"x": reference(MIB), "y": {"z": [reference(MIB // 2, 2)]}} for _ in range(6)]
    archive = opened(forged(rows, zeros(MIB), compression=method, name="log"), 4 * MIB)
    table = archive.table("log")
    refused(
        lambda: table["x"],
        table.columns,
        lambda: table["y"]["z"],
        lambda: table["y.z"],
        lambda: tenarc.dumps(table),
    )
    # Rows share the buffer, as those of `view` do.
    for found in (table[:], table.rows(), [*table], table[::2], archive.segment(0).view()):
        assert all(np.shares_memory(found[0]["x"], row["x"]) for row in found)
        assert all(np.shares_memory(found[0]["x"], row["y"]["z"][0]) for row in found)
    data = forged(rows[:3], zeros(MIB), compression=method, name="log")
    assert opened(data, 4 * MIB).table("log")["x"].shape == (3, MIB)


def test_rows_of_a_file_that_is_not_mapped_share_their_memory(opened):
    rows = [{"x": reference(MIB)} for _ in range(6)]
    data = forged(rows, zeros(MIB), name="log")
    archive = opened(data[:-5], 4 * MIB, torn=True)
    table = archive.table("log")
    for found in (table[:], [*table]):
        assert all(np.shares_memory(found[0]["x"], row["x"]) for row in found)
    refused(lambda: table["x"], table.columns)


@pytest.mark.parametrize("method", METHODS)
def test_other_columns_are_added_up_too(method, opened):
    content = zeros(MIB)
    content[:] = 97
    kinds = {
        "text": ["text", MIB, Tag(TBUF, [0])],
        "bytes": ["bytes", MIB, Tag(TBUF, [0])],
        "array": ["array", MIB, Tag(TBUF, ["u8", 0])],
    }
    for column in kinds.values():
        archive = opened(forged(groups(6, {"x": column}), content, compression=method), 4 * MIB)
        table = archive.table("")
        refused(lambda archive=archive: archive["x"], lambda table=table: table["x"], table.columns, table.rows)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["groups", "columns", "rows"])
def test_the_default_limits_stop_it_before_memory_grows(method, kind, opened):
    length, count = (64 * MIB, 12) if method else (MIB, 150)
    if kind == "rows":
        metadata: Any = [{"x": reference(length)}] * count
    else:
        column = struct(count if kind == "columns" else 1, reference(1, length))
        metadata = groups(count if kind == "groups" else 1, column)
    data = forged(metadata, zeros(length), compression=method, name="log")
    assert len(data) < MIB + 100_000
    before = peak()
    table = opened(data).table("log")
    refused(table.columns)
    if kind != "columns":
        refused(lambda: table[table.names()[0]])
    assert peak() - before < 450 * MIB


@pytest.mark.parametrize("method", METHODS)
def test_calls_are_not_added_up(method, opened):
    column = {"x": reference(1, MIB), "y": reference(1, MIB, buffer=1)}
    data = forged(groups(4, column), zeros(MIB), zeros(MIB), compression=method)
    archive = opened(data, 8 * MIB + ROWS)
    table = archive.table("")
    for _ in range(5):
        assert archive["x"].shape == archive.tensor("y").shape == table["x"].shape == (4, MIB)
        assert {name: len(column) for name, column in table.columns().items()} == {"x": 4, "y": 4}
        assert len(table.rows()) == len([*table]) == 4
        assert [table[row]["x"].shape for row in range(4)] == [(MIB,)] * 4
    # What is done between the rows is no part of the iteration, nor the iteration of another one.
    for row, other in zip(table, table, strict=True):
        assert table["x"].shape == (4, MIB) and np.array_equal(row["y"], other["y"])
    assert calls._current.get() is None


def test_a_call_that_fails_ends(opened):
    archive = opened(forged(groups(6, {"x": reference(1, MIB)}), zeros(MIB)), 4 * MIB)
    table = archive.table("")
    refused(lambda: table["x"], lambda: [*table], lambda: tenarc.dumps(table), lambda: archive["x"])
    rows = iter(table)
    next(rows)
    rows.close()
    assert calls._current.get() is None and len(table[:4]) == 4


@pytest.mark.parametrize("method", METHODS)
def test_a_place_that_is_read_again_counts_once(method, opened):
    """All fields of a dict of structs have the codes of the dict."""
    count, width = 1 << 16, 32
    fields = {f"c{number}": Tag(64, b"\7") for number in range(width)}
    column = [["dict", Tag(TBUF, ["u8", number]), 1, fields] for number in range(2)]
    length = count
    for metadata in (
        Tag(TCOL, [count, column[0], count, column[1]]),
        Tag(TCOL, [count, {"at": column[0]}, count, {"at": column[1]}]),
    ):
        data = forged(metadata, zeros(length), zeros(length), compression=method)
        table = opened(data, 2 * length if method else 5000).table("")
        table = table if "c0" in table.names() else table["at"]
        found = table.columns()
        assert len(found) == width and all(array.shape == (2 * count,) for array in found.values())
        assert table.dtypes["c31"] == "u8" and table["c31"].shape == (2 * count,)


def test_a_dict_in_a_field_is_read_once(opened, monkeypatch):
    column = {"at": ["dict", Tag(TBUF, ["u8", 0]), 1, {name: Tag(64, b"\1") for name in "abc"}]}
    archive = opened(forged(groups(1, column, 5000), zeros(5000), compression="zstd"))
    reads = []
    payload = tenarc.Segment.payload

    def counted(segment: tenarc.Segment, number: int, owned: bool) -> Any:
        reads.append(number)
        return payload(segment, number, owned)

    monkeypatch.setattr(tenarc.Segment, "payload", counted)
    table = archive.table("")["at"]
    reads.clear()
    found = table.columns()
    assert [*found] == ["a", "b", "c"] and len(reads) == 1


def test_buffers_that_are_referred_to_once_do_not_count(opened):
    """Uncompressed buffers are no longer than the file, so there is no limit for the first copy of each."""
    arrays = [np.full((40, 1000), number, "u4") for number in range(6)]
    out = io.BytesIO()
    with tenarc.Writer(out) as writer:
        for array in arrays:
            writer.save(Table({"x": array, "y": array + 1}), name="table")
            writer.save([{"x": row, "y": row + 1} for row in array], name="rows")
    archive = opened(out.getvalue(), 200_000)
    for name in ("table", "rows"):
        table = archive.table(name)
        assert np.array_equal(table["x"], np.concatenate(arrays))
        assert table.columns().keys() == {"x", "y"} and len(table.rows()) == len([*table]) == 240
        assert np.array_equal(table[100]["y"], arrays[2][20] + 1)


def test_equal_columns_share_a_buffer_within_the_limit(opened):
    array = np.random.default_rng(1).integers(0, 256, (64, 1 << 16), "u1")
    data = io.BytesIO()
    with tenarc.Writer(data, dedup=True) as writer:
        writer.save(Table({f"c{number}": array for number in range(40)}))
    assert len(data.getvalue()) < 5 * MIB
    archive = opened(data.getvalue())
    found = archive.table("").columns()
    assert len(found) == 40 and len(archive.table("")[5]) == 40


def test_counting_takes_the_same_time_for_each_place():
    call = calls.Call()
    start = time.monotonic()
    for index in range(50_000):
        calls.Read(call, 0, index, [], MIB, is_counted=True).take(1)
    # With a sum of all places for each of them, it is half a minute.
    assert time.monotonic() - start < 3
    assert call._taken.add("more", 1) == 50_001


def test_the_positions_of_chunks_are_computed_once(opened, monkeypatch):
    computed = []
    accumulate = packed.accumulate

    def counted(lengths: Any, **options: Any) -> Any:
        computed.append(lengths)
        return accumulate(lengths, **options)

    monkeypatch.setattr(packed, "accumulate", counted)
    array = np.arange(3 * MIB, dtype="<u4").reshape(-1, 64)
    out = io.BytesIO()
    with tenarc.Writer(out, compression="zstd", chunk_len=1 << 16) as writer:
        writer.save({"x": array})
    archive = opened(out.getvalue())
    computed.clear()
    for row in range(0, len(array), 1000):
        assert np.array_equal(archive.slice("x", slice(row, row + 3)), array[row : row + 3])
    assert np.array_equal(archive["x"], array) and len(computed) == 1


@pytest.mark.parametrize("method", METHODS)
def test_iterating_does_not_keep_what_it_knows_of_each_row(method, tmp_path):
    peaks = []
    for count in (2, 8):
        with open(tmp_path / "a", "wb") as file, tenarc.Writer(file, compression=method, inline_below=0) as out:
            for number in range(count):
                out.save([{"x": np.full(100, number * row)} for row in range(500)], name="log")
        with tenarc.open(tmp_path / "a") as archive:
            table = archive.table("log")
            tracemalloc.start()
            assert sum(len(row["x"]) for row in table) == count * 500 * 100
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


EMPTY_COLUMNS = {
    "unit": ["unit"],
    "texts": ["text", 0, ""],
    "arrays": ["array", 0, ["unit"]],
    "tuples": ["tuple", [["unit"]]],
    "structs": {},
    "options": ["option", Tag(TBUF, [0]), ["unit"]],
}


@pytest.mark.parametrize("kind", EMPTY_COLUMNS)
def test_columns_without_content_are_added_up(kind, opened):
    """A tiny file can announce very many values `None` in very many columns."""
    rows, names = 1 << 14, 40
    # An option has a bit for each row, and all bits can be in one buffer.
    buffers = [np.full(rows // 8, 255, "u1")] if kind == "options" else []
    found = opened(forged(groups(1, struct(names, EMPTY_COLUMNS[kind]), rows), *buffers), 4 * MIB).table("")
    refused(found.columns)
    # One after the other, they are several calls.
    assert sum(len(found[f"c{number}"]) for number in range(names)) == names * rows


def test_many_columns_of_units_are_refused_quickly(opened):
    found = opened(forged(groups(1, struct(30_000, ["unit"]), 1 << 16))).table("")
    before, start = peak(), time.monotonic()
    refused(found.columns)
    assert peak() - before < 150 * MIB and time.monotonic() - start < 60


def test_columns_that_groups_lack_are_added_up(opened):
    rows, many = 1 << 14, {f"c{number}": ["unit"] for number in range(60)}
    content = Tag(TCOL, [rows, {"a": ["unit"]}, 1, many])
    loaded = tenarc.loads(cbor2.dumps(content), tables=True, limits=Limits(max_alloc=4 * MIB))
    for found in opened(forged(content), 4 * MIB).table(""), loaded:
        refused(found.columns)
        assert len(found["c7"]) == rows + 1 and found["c7"][-1] is None


def test_long_tables_may_have_many_rows_without_content(opened):
    """Rows with as many bytes as others have `None` are no attack."""
    rows, units = 1 << 14, struct(600, ["unit"])
    refused(opened(forged(groups(1, units, rows))).table("").columns)
    content = groups(1, units | {"n": reference(rows, 16)}, rows)
    assert len(opened(forged(content, zeros(16 * rows))).table("").columns()) == 601
    # A caller's own table is not limited by what a file has.
    parts = [{"a": n} for n in range(1 << 16)] + [{"b": n} for n in range(1 << 16)]
    assert tenarc.Table(parts).columns()["b"][1 << 16] == 0
