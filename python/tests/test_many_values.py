"""Many small values: they are read and written without work that only large ones need."""

import gc
import io
import random
import tracemalloc
import weakref
from collections import Counter

import numpy as np
import pytest
from described import describe

import tenarc
from tenarc import decode, saved, segment


def archive_of(path, values, **options):
    with open(path, "wb") as file, tenarc.Writer(file, **options) as out:
        for value in values:
            out.save(value, name="log")
    return tenarc.open(path)


@pytest.fixture
def calls(monkeypatch):
    """How often metadata was parsed, and how often something was made to decode tags."""
    counts: Counter[str] = Counter()

    def counted(module, name):
        function = getattr(module, name)

        def call(*args, **kwargs):
            counts[name] += 1
            return function(*args, **kwargs)

        monkeypatch.setattr(module, name, call)

    counted(saved, "parse")
    counted(saved, "Resolver")
    counted(decode, "ColumnReader")
    counted(segment, "read_name")
    return counts


def test_the_metadata_of_small_values_is_read_once_for_each_question(tmp_path, calls):
    rows = [{"step": n, "loss": n / 2, "note": None if n % 2 else "x"} for n in range(6000)]
    with archive_of(tmp_path / "a", [rows[n : n + 2] for n in range(0, 6000, 2)]) as archive:
        table = archive.table("log")
        # The directory knows how many rows there are. Which values are read together is found out once.
        assert len(table) == 6000 and not calls["parse"]
        assert len(table.groups) < 10 and calls["parse"] == 3000
        for read, want in (
            (lambda: table["loss"].tolist(), [row["loss"] for row in rows]),
            (table.rows, rows),
            (lambda: list(table), rows),
        ):
            calls.clear()
            assert read() == want
            assert calls["parse"] <= 3000 and not calls["Resolver"]
        # For the names, and for each of the three columns.
        calls.clear()
        assert len(table.columns()["note"]) == 6000 and calls["parse"] <= 4 * 3000
        # A row reads the rows that it is with, and its neighbours nothing more.
        calls.clear()
        assert [table[n] for n in range(100, 200)] == rows[100:200]
        assert calls["parse"] <= 2048


def test_rows_of_one_list_need_no_decoder(tmp_path, calls):
    rows = [{"step": n, "tags": ["a", n, {"b": [None, []]}]} for n in range(1000)]
    with archive_of(tmp_path / "a", [rows]) as archive:
        table = archive.table("log")
        calls.clear()
        assert table.rows() == rows and table["step"].tolist() == [*range(1000)]
        assert calls["Resolver"] == 0
        # What was read can be changed without an effect on what is read later.
        table[3]["tags"].append(1)
        assert table.rows() == rows


def test_headers_of_equal_values_are_read_once(calls):
    out = io.BytesIO()
    with tenarc.Writer(out) as writer:
        for n in range(100):
            writer.save({"step": n}, name="log" if n < 50 else "other")
    assert [value["step"] for value in tenarc.Reader(io.BytesIO(out.getvalue()))] == [*range(100)]
    assert calls["read_name"] <= 2 and calls["ColumnReader"] == 0


def test_headers_that_differ_are_told_apart(tmp_path):
    values = [(1, {"name": "a"}), (2, {"name": None}), (3, {"name": "ab"}), (4, {"name": "a", "checksums": False})]
    values += [(5, {"name": "a", "alignment": 8}), (6, {"name": "a", "chunk_len": 65536}), (7, {"name": "a"})]
    for value, options in values * 2:
        tenarc.save(tmp_path / "a", value, **options)
        with tenarc.open(tmp_path / "a") as archive:
            found = archive.segment(0)
            assert found.load() == value and found.name == options["name"]
            header = found.header
            assert header.alignment == options.get("alignment", 256)
            assert header.checksums == options.get("checksums", True)
            assert header.chunk_len == options.get("chunk_len", 1 << 20)


def test_small_and_large_values_are_one_table_in_their_order(tmp_path):
    random.seed(8746)
    for _ in range(30):
        values, number = [], 0
        for _ in range(random.randrange(1, 40)):
            rows = []
            for _ in range(random.choice((0, 1, 2, 3, 50))):
                rows.append(row_of(number))
                number += 1
            kind = random.randrange(5)
            values.append(tenarc.Table(rows) if kind == 0 else rows if kind else tuple(rows))
        want = [row_of(n) for n in range(number)]
        with archive_of(tmp_path / "a", values, inline_below=random.choice((0, 64, 2048))) as archive:
            table = archive.table("log")
            assert len(table) == number and [*map(describe, table)] == [*map(describe, want)]
            for n in random.sample(range(number), min(number, 5)):
                assert describe(table[n]) == describe(want[n])
            if number:
                assert np.asarray(table["n"]).tolist() == [*range(number)]
                assert [None if x is None else bytes(x) for x in table["data"]] == [
                    row.get("data") for row in want
                ]


def row_of(number: int):
    row = {"n": number, "w": np.full(number % 7, number, "f4"), "at": {"x": [number, None], "y": (1.5, "a")}}
    return row | ({"data": bytes(100)} if number % 3 else {})


def test_nothing_keeps_a_table_in_memory(tmp_path):
    gc.disable()
    try:
        with archive_of(tmp_path / "a", [[{"a": n, "w": np.ones(2)}] for n in range(100)]) as archive:
            table = archive.table("log")
            assert len(table.rows()) == len(table["a"]) == 100
            source = weakref.ref(table.groups[0]._source)
            del table
            assert source() is None
    finally:
        gc.enable()


def test_small_values_are_read_a_few_at_a_time(tmp_path):
    peaks = []
    for count in (400, 4000):
        values = [[{"text": f"{n} " + "x" * 3000}] for n in range(count)]
        with archive_of(tmp_path / "a", values) as archive:
            table = archive.table("log")
            # What it knows of each value, such as its number of rows, is kept.
            assert len(table.groups) < count
            tracemalloc.start()
            assert sum(len(row["text"]) for row in table) > 3000 * count
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_errors_in_small_values_say_where_they_are(tmp_path):
    good, bad = [{"a": 1}], [{"a": 1}, {"a": [tenarc.Tag(64, "no bytes")]}]
    with archive_of(tmp_path / "a", [good, good, bad, good]) as archive:
        table = archive.table("log")
        at = archive.segment(2).offset
        for read in (lambda: table["a"], table.rows, lambda: table[3]):
            with pytest.raises(tenarc.Damaged, match="expected bytes") as caught:
                read()
            assert at < caught.value.offset < archive.segment(3).offset
        assert table[4] == {"a": 1}


def test_long_keys_and_wrong_ones_are_written_as_others():
    for key in ("x" * 64, "x" * 65, "ü" * 64, ""):
        for _ in range(2):
            assert tenarc.loads(tenarc.dumps({key: 1, "other": [None]})) == {key: 1, "other": [None]}
    for _ in range(2):
        with pytest.raises(tenarc.Unsupported, match="not valid Unicode"):
            tenarc.dumps({"\ud800": [None]})
