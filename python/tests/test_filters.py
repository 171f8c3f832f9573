"""Filters of tables, and rows by their numbers: against plain Python, pyarrow and the Rust library."""

import datetime
import enum
import io
import json
import math
import operator
import pickle
import random
import subprocess
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import cbor2
import numpy as np
import pytest
from columns_by_hand import KINDS, TCOL, of, plain, u8
from described import describe
from test_tables import as_list, buffers_read, opened

import tenarc
from tenarc import Filter, Some, Table, Tag, col
from tenarc.columns import Lengths
from tenarc.masks import Strings

__all__ = ["buffers_read", "opened"]

COMPARES = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
LARGE = 2**64 - 1


def by_hand(count: int) -> Any:
    """A group of four rows, with variants that have data, and a type."""
    assert count == 4
    optional = ["option", b"\x0b", of("<i2", 77, -300, 0, 7)]
    clicks = {"x": of("<i4", 78, -5, 7), "y": ["option", b"\x02", u8(9)]}
    return {
        "id": u8(0, 1, 2, 3),
        "i": of("<i2", 77, -300, 0, 7, 300),
        "u": of("<u8", 71, 0, 7, 2**63, LARGE),
        "f": of("<f8", 86, np.nan, -0.0, np.inf, 0.1),
        "g": of("<f4", 85, 0.1, 16777216, -np.inf, 7),
        "ok": ["bool", b"\x05"],
        "text": ["text", u8(3, 0, 4, 7), "a\0büab12345é"],
        "day": ["dict", u8(0, 1, 0, 1), 2, ["text", 10, "2026-11-192026-11-20"]],
        "opt": optional,
        "kind": ["enum", u8(1, 0, 1, 2), ["Quit", "Click", "Key"], [None, clicks, None]],
        "at": ["option", b"\x0e", {"x": u8(1, 2, 3), "y": {"z": ["text", 1, "abc"]}}],
        "date": ["type", "date", [], of("<i4", 78, 20000, 20001, 20002, -1)],
        "void": ["unit"],
        "raw": ["bytes", u8(0, 1, 2, 1), b"\xff\xfe\0a"],
    }


def plain_rows() -> list[dict[str, Any]]:
    """Rows that are stored one by one."""
    rows: list[dict[str, Any]] = [
        {"i": 2**70, "u": 1, "f": 7, "kind": "Quit", "opt": 7, "at": {"x": 2, "y": {"z": "b"}}},
        {"i": -1, "f": 1.5, "kind": {"Click": {"x": 7, "y": None}}, "opt": Some(None), "text": "2026"},
        {"i": None, "ok": True, "day": "2026-11-20", "kind": {"Key": None}, "g": 7.5, "date": 20001, "raw": b"a"},
        {"text": "", "at": None, "void": None},
    ]
    return [{"id": number, **row} for number, row in enumerate(rows, 4)]


def made(count: int = 300) -> Table:
    """Rows in columns, which random numbers choose."""
    chosen = random.Random(5)
    texts = ["", "a", "ab", "a\0", "abcdefgh", "abcdefghi", "abcdefgh\0", "2026-11-20", "zü", "note 77", "note 7"]
    rows = [
        {
            "id": 8 + number,
            "i": chosen.randrange(-8, 9),
            "u": chosen.choice([0, 7, 255, 256]),
            "f": chosen.choice([0.0, 7.0, math.nan, -math.inf, 0.1, 1e300]),
            "ok": chosen.random() < 0.5,
            "text": chosen.choice(texts),
            "day": f"2026-11-{chosen.randrange(17, 22)}",
            "opt": chosen.choice([None, 7, -7]),
            "at": {"x": chosen.randrange(4), "y": {"z": chosen.choice("abc")}},
            **({} if number % 3 else {"void": None, "g": float(number)}),
        }
        for number in range(count)
    ]
    return Table(rows)


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    """A table of three values: of columns by hand, rows stored one by one, and columns that are compressed."""
    path: Path = tmp_path_factory.mktemp("filters") / "log.tenarc"
    with path.open("wb") as file, tenarc.Writer(file, compression="zstd") as out:
        out._save(cbor2.dumps(Tag(TCOL, [4, by_hand(4)])), [], "log")
        out.save(plain_rows(), name="log")
        out.save(made(), name="log")
    return path


@pytest.fixture(scope="module")
def log(path) -> Table:
    with tenarc.open(path) as archive:
        return archive.table("log")


@pytest.fixture(scope="module")
def rows(log) -> list[dict[str, Any]]:
    return log.rows()


# By plain Python, with three values for truth, as in SQL.


def value_at(row: Any, path: str) -> Any:
    for name in path.split("."):
        row = row.get(name) if isinstance(row, dict) else None
    while isinstance(row, Some):
        row = row.value
    return row


def truth(condition: Filter, row: Any) -> bool | None:
    how, parts = condition._how, condition._parts
    if condition._is_test:
        return meets(value_at(row, how), *parts[0])
    found = [truth(part, row) for part in parts]
    if how == "~":
        return None if found[0] is None else not found[0]
    decides = how == "|"
    return decides if decides in found else None if None in found else not decides


def meets(value: Any, how: str, constants: tuple[Any, ...]) -> bool | None:
    if how == "is_null":
        return value is None
    if value is None:
        return None
    if isinstance(value, dict):
        [value] = value
    if isinstance(value, datetime.date):
        value = (value - datetime.date(1970, 1, 1)).days
    kind = (int, float) if type(value) in (int, float) else type(value)
    assert all(isinstance(constant, kind) for constant in constants)
    if how == "is_in":
        return any(value == constant for constant in constants)
    if isinstance(value, str):
        value, constants = value.encode(), tuple(constant.encode() for constant in constants)
    if how in COMPARES:
        return COMPARES[how](value, constants[0])
    return value.startswith(constants[0]) if how == "starts_with" else constants[0] in value


CONSTANTS: dict[str, list[Any]] = {
    "i": [-300, 0, 7, 6.5, 2**70, -1e300, 1e300],
    "u": [0, 7, 255, 256, -1, LARGE, float(2**63), 2**64],
    "f": [0, 0.1, 7, -1.5, 10**400, 2**53 + 1],
    "g": [0.1, float(np.float32(0.1)), 16777217, 16777216, 1e300, -1e-300, 7],
    "ok": [True, False],
    "text": ["", "a", "a\0", "abcdefgh", "abcdefghi", "note 77", "ü", "zzzzzzzzzzzzzzzzzzz", "12345é"],
    "day": ["2026-11-19", "2026-11-2", "2026-11-20", "3"],
    "opt": [7, 0, -7.0],
    "kind": ["Click", "Quit", "None"],
    "kind.Click.x": [7, 0],
    "kind.Click.y": [9],
    "at.x": [1, 2.5],
    "at.y.z": ["b"],
    "date": [20001],
    "void": [1],
}


def conditions() -> list[Filter]:
    found = []
    for path, constants in CONSTANTS.items():
        column = col(path)
        found += [column.is_null(), column.is_not_null(), column.is_in(constants)]
        for constant in constants:
            found += [column == constant, column != constant, column < constant, column <= constant]
            found += [column > constant, column >= constant]
            if isinstance(constant, str):
                found += [column.starts_with(constant), column.contains(constant)]
    chosen = random.Random(7)
    for _ in range(100):
        a, b, c = (chosen.choice(found) for _ in range(3))
        found += [chosen.choice([(a & b) | c, ~(a | b) & c, ~(a & ~b), ~~a | ~(b & c), a & b & c, a | b | c])]
    return found


def test_conditions_are_met_as_in_sql(log, rows):
    found = conditions()
    assert len(found) > 400
    counts = set()
    for condition in found:
        want = [number for number, row in enumerate(rows) if truth(condition, row)]
        selection = log.filter(condition)
        assert selection.row_numbers().tolist() == want, condition
        counts.add(len(want))
    assert len(counts) > 40


def test_columns_in_memory_are_filtered_too(rows):
    table = made()
    rows = table.rows()
    for condition in conditions():
        if not any(path.startswith(("kind", "date")) for path in condition.paths()):
            want = [number for number, row in enumerate(rows) if truth(condition, row)]
            assert table.filter(condition).row_numbers().tolist() == want, condition


def written(condition: Filter) -> str:
    """A condition as the command has it."""

    def constant(value: Any) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)

    how, parts = condition._how, condition._parts
    if not condition._is_test:
        joined = {"&": " and ", "|": " or "}.get(how, "").join(f"({written(part)})" for part in parts)
        return f"not {joined}" if how == "~" else joined
    how, constants = parts[0]
    shown = ", ".join(map(constant, constants))
    how = {"is_in": "in", "is_null": "is null"}.get(how, how)
    return f"`{condition._how}` {how} {f'({shown})' if how == 'in' else shown}"


def test_rust_finds_the_same_rows(command, path, log):
    def by_rust(condition: Filter) -> Any:
        arguments = [command, "show", path, "log", "--json", "--columns", "id", "--where", written(condition)]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=300)
        lines = done.stdout.splitlines()
        return [json.loads(line)["id"] for line in lines] if done.returncode == 0 else done.stderr

    # The command takes integers to 128 bits and no NUL, and each run of it takes some hundredths of a second.
    found = [each for each in conditions() if "0" * 40 not in repr(each) and "\\x00" not in repr(each)]
    chosen = random.Random(3).sample(found, 60)
    with ThreadPoolExecutor(2) as pool:
        for condition, want in zip(chosen, pool.map(by_rust, chosen), strict=True):
            assert log.filter(condition).column("id").tolist() == want, (condition, want)
    for condition in (col("i") == "a", col("text") > 5, col("ok") == 1, col("at") == 1, col("missing") == 1):
        assert isinstance(by_rust(condition), str)
        with pytest.raises(tenarc.Error):
            log.filter(condition).count()


def test_pyarrow_finds_the_same_rows():
    pa, pc = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.compute")
    count = 140_000
    chosen = np.random.default_rng(0)
    table = Table(
        pa.table(
            {
                "id": np.arange(count),
                "score": chosen.random(count, "f4"),
                "note": [f"note {n}" for n in chosen.integers(0, 1000, count)],
                "day": pa.array([f"2026-11-{n}" for n in chosen.integers(10, 30, count)]),
                "size": pa.array(chosen.integers(0, 100, count), mask=chosen.random(count) < 0.5),
            }
        )
    )
    arrow = table.to_arrow()
    for condition, expression in [
        (col("score") > 0.99, pc.field("score") > pa.scalar(0.99, pa.float64())),
        (col("note") == "note 77", pc.field("note") == "note 77"),
        (col("note") < "note 3", pc.field("note") < "note 3"),
        (col("note").contains("9"), pc.match_substring(pc.field("note"), "9")),
        (col("note").starts_with("note 5"), pc.starts_with(pc.field("note"), "note 5")),
        (
            (col("day") >= "2026-11-20") & ~(col("size") > 50),
            (pc.field("day") >= "2026-11-20") & ~(pc.field("size") > 50),
        ),
        (
            (col("size") != 7) | col("note").is_in([f"note {n}" for n in range(20)]),
            (pc.field("size") != 7) | pc.field("note").isin([f"note {n}" for n in range(20)]),
        ),
        (col("size").is_null(), pc.field("size").is_null()),
    ]:
        found, want = table.filter(condition), arrow.filter(expression)
        assert len(found) == want.num_rows > 0
        assert found.to_arrow().to_pylist() == want.to_pylist(), condition
        assert found.to_arrow(columns=["size", "id"]).column_names == ["size", "id"]


def test_strings_are_compared_as_bytes_are():
    chosen = random.Random(1)
    strings = [bytes(chosen.choices(b"\0ab\xff", k=chosen.randrange(20))) for _ in range(300)] + [b"", b"a" * 40]
    columns = Strings(Lengths.of(strings), b"".join(strings))
    for other in [*chosen.sample(strings, 60), b"", b"\0" * 8, b"a" * 16]:
        assert columns.order(other).tolist() == [(a > other) - (a < other) for a in strings]
        assert columns.equal(other).tolist() == [a == other for a in strings]
        assert columns.starting_with(other).tolist() == [a.startswith(other) for a in strings]
        assert columns.containing(other[:3]).tolist() == [other[:3] in a for a in strings]
        others = [other, *strings[:20]]
        assert columns.among(others).tolist() == [a in others for a in strings]


# What is given for the rows


def same(found: Any, want: Any) -> bool:
    return describe(as_list(found)) == describe(as_list(want))


def test_rows_and_columns_are_those_of_the_table(log, rows):
    found = log.filter((col("i") > 0) | (col("opt") == 7))
    numbers = found.row_numbers().tolist()
    assert 5 < len(found) == found.count() < len(rows) and bool(found)
    want = [rows[number] for number in numbers]
    assert same(found.rows(), want) and same(list(found), want)
    assert found.column("id").tolist() == numbers
    assert found.column("at.y.z") == [value_at(row, "at.y.z") for row in want]
    columns = found.columns(["id", "day", "at.x"])
    assert columns["id"].tolist() == numbers and columns["day"] == [row.get("day") for row in want]
    assert columns["at.x"].tolist() == [value_at(row, "at.x") for row in want]
    assert [*found.columns()] == log.names()
    nothing = log.filter(col("id") < 0)
    assert not nothing and nothing.rows() == [] == [*nothing] and nothing.column("day") == []


def test_the_dtype_does_not_depend_on_which_rows_are_found():
    table = Table.of([*Table({"id": [1, 2]}).groups, *Table({"id": [300, 4]}).groups])
    for condition in (col("id") < 0, col("id") == 1, col("id") == 4, col("id") > 0):
        assert table.filter(condition).column("id").dtype == table["id"].dtype == np.uint16


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stored", [False, True])
def test_rows_of_each_kind_are_taken(kind, stored, opened):
    column, rows = KINDS[kind]
    out = io.BytesIO()
    with tenarc.Writer(out) as writer:
        for start in (0, 4):
            ids = u8(*range(start, start + 4))
            writer._save(cbor2.dumps(Tag(TCOL, [4, {"id": ids, "a": column}])), [], "log")
    archive = opened(out.getvalue())
    table = archive.table("log") if stored else Table.of(group.loaded() for group in archive.table("log").groups)
    rows = [row.get("a", "none") for row in table.rows()]

    def described(rows: Any) -> Any:
        return describe(plain([row.get("a", "none") for row in rows]))

    for numbers in ([], [5], [0, 2, 3], [7, 0, 3, 3, 1, 6], range(8), [2, 2]):
        found = table.take(numbers)
        want = [rows[number] for number in numbers]
        assert len(found) == len(want) and found.row_numbers().tolist() == [*numbers]
        assert described(found.rows()) == describe(plain(want))
        whole, part = table["a"], found.column("a")
        if isinstance(whole, np.ndarray):
            assert part.dtype == whole.dtype and part.tolist() == whole[[*numbers]].tolist()
        elif isinstance(whole, tenarc.Raw):
            assert len(part.data) * whole.shape[0] == len(whole.data) * len(numbers) if numbers else True
        elif isinstance(whole, Table):
            assert describe(part.rows()) == describe([whole[number] for number in numbers])
        else:
            assert describe(plain(part)) == describe(plain([whole[number] for number in numbers]))
    found = table.filter(col("id").is_in([6, 1, 2]))
    assert described(found.rows()) == describe(plain([rows[1], rows[2], rows[6]]))


def test_rows_that_are_taken_in_arrow():
    pytest.importorskip("pyarrow")
    count = 150_000
    table = made(500)
    frame = Table({"n": np.arange(count), "c": [f"c{n % 7}" for n in range(count)]})
    for source in (table, frame):
        numbers = [3, len(source) - 1, 0, 3, -2]
        want = source.to_arrow().take([number % len(source) for number in numbers])
        for given in (numbers, np.array(numbers), np.array(numbers, "i2") if source is table else numbers):
            assert repr(source.take(given).to_arrow().to_pylist()) == repr(want.to_pylist())
    assert frame.take(np.arange(count)[::-1]).column("n").tolist() == [*range(count)][::-1]
    assert frame.take(np.array([1, 2], "u8")).to_pandas()["c"].tolist() == ["c1", "c2"]
    assert frame.take([1, 2]).to_polars(columns=["n"])["n"].to_list() == [1, 2]


def test_arrow_readers_take_what_was_found(log):
    duckdb, pa = pytest.importorskip("duckdb"), pytest.importorskip("pyarrow")
    found = log.filter(col("day") == "2026-11-20").to_arrow(columns=["id", "day"])
    assert found["id"].to_pylist() == log.filter(col("day") == "2026-11-20").column("id").tolist()
    rows = made().filter(col("day") == "2026-11-20")
    assert duckdb.sql("SELECT count(*), sum(id) FROM rows").fetchall() == [
        (len(rows), int(rows.column("id").sum()))
    ]
    assert pa.table(made().take([3, 1]))["id"].to_pylist() == [11, 9]
    assert pa.schema(rows).names == made().names()


def test_wrong_numbers_of_rows_are_refused(log):
    for wrong in ([len(log)], [-len(log) - 1], np.array([2**63], "u8")):
        with pytest.raises(IndexError, match=f"the table has {len(log)} rows, there is no row"):
            log.take(wrong)
    for wrong in (np.array([True]), np.array([1.0]), np.array([[1]])):
        with pytest.raises(tenarc.Mismatch, match="the numbers of rows as an array of integers"):
            log.take(wrong)
    with pytest.raises(TypeError):
        log.take([1.5])


# What is read


def test_only_columns_and_groups_that_are_needed_are_read(opened, buffers_read):
    count = 140_000
    table = Table({"n": np.arange(count), "m": np.arange(count) / 2, "t": [f"text {n}" for n in range(count)]})
    out = io.BytesIO()
    with tenarc.Writer(out) as writer:
        writer.save(table, name="log")
    log = opened(out.getvalue()).table("log")
    found = log.filter(col("n") == 70_000)
    repr(found)
    assert not buffers_read
    assert len(found) == 1 and len(buffers_read) == 3
    buffers_read.clear()
    # It is known where the row is.
    assert found.column("m").tolist() == [35_000.0] and found.row_numbers().tolist() == [70_000]
    assert len(buffers_read) == 1
    buffers_read.clear()
    assert log.filter(col("n") == 70_000).column("m").tolist() == [35_000.0]
    assert len(buffers_read) == 4
    buffers_read.clear()
    assert log.take([139_999, 139_998]).column("n").tolist() == [139_999, 139_998]
    assert len(buffers_read) == 1


def known_of(rows: list[Any], path: str) -> list[Any] | None:
    """The statistic of a column (SPEC 5.13)."""
    values = [value_at(row, path) for row in rows]
    values = [next(iter(value)) if isinstance(value, dict) else value for value in values]
    epoch = datetime.date(1970, 1, 1)
    values = [(value - epoch).days if isinstance(value, datetime.date) else value for value in values]
    others = [value for value in values if value is not None and value == value]
    least, greatest = min(others, default=None), max(others, default=None)
    if isinstance(least, str):
        # They are cut after 16 bytes, between characters, and a greater one than the least one may be unknown.
        least, greatest = (least[:8], greatest) if len(greatest) < 8 else (least[:8], None)
    nulls = values.count(None)
    return [nulls, len(values) - nulls - len(others), least, greatest]


@pytest.mark.parametrize("step", [1, 3])
def test_groups_are_passed_over_by_statistics(step, opened, buffers_read):
    ordered = sorted(made(120).rows(), key=lambda row: (row["i"], row["f"] if row["f"] == row["f"] else 9))
    groups = [tenarc.loads(cbor2.dumps(Tag(TCOL, [4, by_hand(4)])))]
    encoded: list[Any] = [4, by_hand(4)]
    for start in range(0, 120, 6):
        groups.append(ordered[start : start + 6])
        # A group without rows counts.
        encoded += [*cbor2.loads(tenarc.dumps(Table(groups[-1]))).value, 0, ["unit"]]
    with_empty = [groups[0]] + [rows for group in groups[1:] for rows in (group, [])]
    spans = [[*chain(*with_empty[at : at + step])] for at in range(0, len(with_empty), step)]
    assert len(with_empty) * 2 == len(encoded)
    columns = [[path.split("."), [known_of(rows, path) for rows in spans]] for path in CONSTANTS]
    # Nothing is known about some.
    columns[3][1][1] = columns[5][1][2] = None
    tables = []
    for known in (
        [step, columns],
        [step, columns[:4]],
        [step, [["i"], []]],
        [0, columns],
        None,
        [step, columns[:1] * 2],
    ):
        out = io.BytesIO()
        extensions = b"\xa0" if known is None else cbor2.dumps({2: known})
        with tenarc.Writer(out) as writer:
            metadata = cbor2.dumps(Tag(TCOL, encoded))
            writer._save(metadata, [], "log", extensions=extensions)
        tables.append(opened(out.getvalue()).table("log"))
    rows = tables[0].rows()
    read = [0] * len(tables)
    chosen = conditions()[::4]
    for condition in chosen:
        want = [number for number, row in enumerate(rows) if truth(condition, row)]
        for at, table in enumerate(tables):
            selection = table.filter(condition)
            assert selection.row_numbers().tolist() == want, (condition, at)
            read[at] += sum(map(selection._may_have_rows, range(len(table.groups)), selection._tested()))
    without = read[2]
    assert read[2:] == [without] * 4
    assert read[0] < 0.8 * without and read[0] < read[1] < without
    # Those of a named type are about the numbers that are stored.
    for date, count in ((datetime.date(2024, 10, 5), 1), (datetime.date(2024, 10, 7), 0)):
        found = tables[0].filter(col("date") == date)
        assert len(found) == count
        assert sum(map(found._may_have_rows, range(len(tables[0].groups)), found._tested())) == count
    # What cannot be compared is an error, whatever the statistics say.
    for condition in (col("i") == "a", col("text") > 5, col("ok") == 1, (col("i") == 1000) & (col("day") == 1)):
        with pytest.raises(tenarc.Mismatch):
            tables[0].filter(condition).count()


def test_statistics_that_rust_writes_are_used(command, opened, buffers_read, tmp_path):
    path = tmp_path / "log.tenarc"
    count = 70_000
    with path.open("wb") as file, tenarc.Writer(file) as writer:
        for at in range(2):
            numbers = np.arange(at * count, (at + 1) * count)
            writer.save(Table({"n": numbers, "t": [f"text of {n:06}" for n in numbers.tolist()]}), name="log")
    subprocess.run([command, "compact", path], check=True, timeout=300, capture_output=True)
    log = opened(path.read_bytes()).table("log")
    assert len(log.groups) == 3
    for condition in (col("n") == 100_000, col("t") == "text of 100000"):
        buffers_read.clear()
        assert log.filter(condition).row_numbers().tolist() == [100_000]
        assert len(buffers_read) == 1
    buffers_read.clear()
    assert log.filter((col("n") < 0) | col("t").starts_with("u") | col("t").is_null()).count() == 0
    assert not buffers_read


def test_filters_and_what_they_find_are_pickled(path):
    with tenarc.open(path) as archive:
        found = archive.table("log").filter((col("id") > 3) & ~col("ok").is_null())
        again = pickle.loads(pickle.dumps(found))
        assert again.row_numbers().tolist() == found.row_numbers().tolist()
        assert pickle.loads(pickle.dumps(found)).column("id").tolist() == again.column("id").tolist()


def test_tables_without_rows_have_none_that_meet_a_condition():
    assert len(Table([]).filter(col("a") == 1)) == 0


# Wrong conditions


class Kind(enum.Enum):
    Click = 1


def test_constants_can_be_of_numpy_and_enums(log):
    assert len(log.filter(col("kind") == Kind.Click)) == len(log.filter(col("kind") == "Click")) == 3
    assert log.filter(col("id") == np.int8(7)).row_numbers().tolist() == [7]
    assert len(log.filter(col("ok") == np.True_)) == len(log.filter(col("ok") == True))  # noqa: E712
    assert len(log.filter(col("g") == np.float32(0.1))) == 1
    assert log.filter(col("raw") == bytearray(b"a")).row_numbers().tolist() == [3, 6]
    assert log.filter(col("raw") > b"\xfe").row_numbers().tolist() == [1, 2]


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: (col("a") > 1) and (col("b") > 1), "join conditions by `&`, `|` and `~`"),
        (lambda: 1 < col("a") < 5, "write `a < x < b` as two comparisons"),
        (lambda: not col("a"), "is no condition: compare it with something"),
        (lambda: (col("a") > 1) & col("b"), "put each comparison in parentheses"),
        (lambda: ~col("a"), "write `col('a') == True` for a bool"),
        (lambda: col("a") > 1 & col("b"), "put each comparison in parentheses"),
        (lambda: col("a") == None, "there are is_null()"),  # noqa: E711
        (lambda: col("a") == col("b"), "found another column"),
        (lambda: col("a") > [1], "found list"),
        (lambda: col("a").is_in("abc"), "expected a list of values, found str"),
        (lambda: col("a").contains(5), "contains: expected a text, found int"),
        (lambda: col(5), "the path of a column as text, found int"),
    ],
)
def test_wrong_conditions_say_what_to_write(make, said):
    with pytest.raises(TypeError) as caught:
        make()
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "condition, said",
    [
        (col("i") == "a", "expected values to compare with the text 'a', found a value such as number at `i`"),
        (col("text") > 5, "with the number 5, found a value such as text string at `text`"),
        (col("ok").is_in([1, 2]), "with one of the number 1, the number 2, found a value such as boolean at `ok`"),
        (col("at") == True, "with the bool True, found a value such as struct at `at`"),  # noqa: E712
        (col("text").starts_with("a") & col("i").contains("b"), "with the part 'b', found a value such as number"),
        (col("raw") == "a", "with the text 'a', found a value such as byte string at `raw`"),
        (col("missing") == 1, "the table has no column 'missing'"),
        (col("at.missing") == 1, "the table has no column 'at.missing'"),
    ],
)
def test_what_cannot_be_compared_is_an_error(log, condition, said):
    with pytest.raises(tenarc.Error) as caught:
        log.filter(condition).count()
    assert said in str(caught.value)


def test_conditions_are_shown_as_they_are_written():
    condition = ~((col("a") > 1) & (col("b").is_in(["x", "y"]) | (col("c.d") == 2.5))) & col("e").contains("f")
    text = repr(condition)
    assert repr(eval(text)) == text and "col('c.d') == 2.5" in text
    assert eval(repr(col("a").is_not_null()))._parts[0]._how == "a"


def test_lists_that_have_no_bytes_are_bounded(opened):
    out = io.BytesIO()
    with tenarc.Writer(out) as writer:
        column = {"id": u8(1, 2), "a": ["array", 2**40, ["unit"]]}
        writer._save(cbor2.dumps(Tag(TCOL, [2, column])), [], "log")
    table = opened(out.getvalue()).table("log")
    assert table.filter(col("id") == 1).column("id").tolist() == [1]
    for read in (lambda: table.take([1]).column("a"), lambda: table.filter(col("id") == 1).rows()):
        with pytest.raises(tenarc.Limit):
            read()
