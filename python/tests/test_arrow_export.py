"""Tables as record batches of Arrow: types, values, and what reads them (`docs/decisions/arrow.md`)."""

import datetime
import decimal
import gc
import io
import random
import sys
import threading
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import cbor2
import numpy as np
import pytest
from columns_by_hand import KINDS, TCOL, columns, named, of, tensor, u8
from test_columns import AROUND

import tenarc
from tenarc import Limit, Limits, Some, Table, Tag, arrow_export
from tenarc.source import MemorySource

# They are no dependencies of the package: the lowest versions of those are tested without them.
pandas: Any = pytest.importorskip("pandas")
polars: Any = pytest.importorskip("polars")
pa: Any = pytest.importorskip("pyarrow")
duckdb: Any = pytest.importorskip("duckdb")
parquet: Any = pytest.importorskip("pyarrow.parquet")


def in_memory(*groups: Any) -> Table:
    return tenarc.loads(columns(*groups), tables=True)


def stored(*values: list[Any], compression: Any = None) -> tenarc.Archive:
    """An archive with a table `log` of values, each of which has some groups."""
    out = io.BytesIO()
    with tenarc.Writer(out, compression=compression) as writer:
        for groups in values:
            writer._save(cbor2.dumps(Tag(TCOL, list(groups))), [], "log")
    return tenarc.Archive(MemorySource(out.getvalue()))


def write(path: Path, *values: tuple[Any, str | None], compression: Any = None) -> None:
    with path.open("wb") as file, tenarc.Writer(file, compression=compression) as out:
        for value, name in values:
            out.save(value, name=name)


def expected(value: Any, field: Any) -> Any:
    """What pyarrow gives for a row that is read as `value`."""
    kind = field.type
    while isinstance(value, Some):
        value = value.value
    if value is None:
        return None
    if isinstance(kind, pa.FixedShapeTensorType):
        return np.asarray(value).reshape(-1).tolist()
    if pa.types.is_map(kind):
        pairs = value.items()
        return [(expected(a, kind.key_field), expected(b, kind.item_field)) for a, b in pairs]
    if pa.types.is_struct(kind):
        said = (field.metadata or {}).get(b"tenarc.kind")
        if said == b"tuple":
            value = {str(n): item for n, item in enumerate(value)}
        elif said == b"enum":
            value = {"variant": value} if isinstance(value, str) else {"variant": next(iter(value)), **value}
        return {inner.name: expected(value.get(inner.name), inner) for inner in kind}
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return [expected(item, kind.value_field) for item in value]
    if isinstance(value, datetime.date) and pa.types.is_integer(kind):
        # There are other numbers in the column.
        return (value - datetime.date(1970, 1, 1)).days
    return value


def check(table: Any, rows: list[Any]) -> Any:
    """Checks a table of structs, or of values, against its rows. Returns what pyarrow has."""
    found = table.to_arrow()
    found.validate(full=True)
    assert pa.schema(table) == found.schema and pa.table(table).equals(found, check_metadata=True)
    is_plain = found.schema.names == ["value"]
    for field in found.schema:
        want = rows if is_plain else [row.get(field.name) for row in rows]
        assert found[field.name].to_pylist() == [expected(value, field) for value in want], field
        assert field.nullable or found[field.name].null_count == 0
    return found


#: For each kind of column the type of Arrow, or the start of the error.
TEXT = pa.string()
ENUM = pa.dictionary(pa.int32(), TEXT)
TYPES: dict[str, Any] = {
    "u8": pa.uint8(),
    "u64": pa.uint64(),
    "i16": pa.int16(),
    "f16": pa.float16(),
    "f32": pa.float32(),
    "f64": pa.float64(),
    "tensors": pa.fixed_shape_tensor(pa.uint16(), [2]),
    "one dimension of order F": pa.fixed_shape_tensor(pa.uint8(), []),
    "tensors without elements": "Arrow has no dtype f4",
    "bools in tensors": pa.fixed_shape_tensor(pa.bool_(), [1]),
    "packed": "Arrow has no dtype f4",
    "unknown dtype": "Arrow has no dtype odd",
    "struct": pa.struct([pa.field("b", pa.uint8(), False), ("a", pa.null())]),
    "empty struct": pa.struct([]),
    "unit": pa.null(),
    "bool": pa.bool_(),
    "text": TEXT,
    "ascii": TEXT,
    "equal texts": TEXT,
    "empty texts": TEXT,
    "bytes": pa.binary(),
    "equal bytes": pa.binary(),
    "option": pa.uint8(),
    "all some": pa.uint8(),
    "some none": "options in options have two kinds of null",
    "some some none": pa.null(),
    "some of rows": "its rows have different forms",
    "present": pa.struct([("a", pa.uint8()), ("b", pa.uint8())]),
    "list": pa.list_(pa.field("item", TEXT, False)),
    "numbers in lists": pa.list_(pa.field("item", pa.float32(), False)),
    "arrays": pa.list_(pa.field("item", pa.bool_(), False), 2),
    "numbers in arrays": pa.list_(pa.field("item", pa.float32(), False), 2),
    "texts in arrays": pa.list_(pa.field("item", TEXT, False)),
    "empty arrays": pa.list_(pa.field("item", pa.null())),
    "dict of texts": TEXT,
    "dict of bytes": pa.binary(),
    "dict of numbers": pa.int16(),
    "dict of options": TEXT,
    "dict of units": pa.null(),
    "dict of tensors": pa.fixed_shape_tensor(pa.uint8(), [1]),
    "dict of items": "its rows have different forms",
    "dict in a dict": TEXT,
    "optional dict": TEXT,
    "dates": pa.date32(),
    "type of two parameters": pa.struct([pa.field("a", pa.uint8(), False)]),
    "categories": pa.dictionary(pa.int32(), TEXT, ordered=True),
    "arrays of a type": pa.list_(pa.field("item", pa.date32(), False)),
    "map": pa.map_(TEXT, pa.field("value", pa.uint8(), False)),
    "empty maps": pa.map_(TEXT, pa.null()),
    "unit variants": ENUM,
    "rows": "its rows have different forms",
}
NULLABLE = {
    "some some none",
    "unit",
    "option",
    "all some",
    "optional dict",
    "dict of options",
    "dict of units",
    "dict in a dict",
}
LOST = {kind for kind, want in TYPES.items() if isinstance(want, str)}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_its_type_and_values(kind):
    column, rows = KINDS[kind]
    groups = [4, {"a": column}]
    for table in (in_memory(*groups), stored(groups).table("log")):
        if kind in LOST:
            with pytest.raises(tenarc.Unsupported, match=TYPES[kind]):
                table.to_arrow()
            continue
        (field,) = check(table, [{"a": row} for row in rows]).schema
        assert field.type == TYPES.get(kind, field.type) and field.nullable == (kind in NULLABLE)


def test_tuples_and_enums_are_structs_that_say_so():
    for kind, want in (
        ("tuple", [pa.field("0", pa.uint8(), False), pa.field("1", TEXT, False)]),
        ("enum", [pa.field("variant", ENUM, False), pa.field("B", pa.struct([pa.field("x", pa.uint8(), False)]))]),
    ):
        (field,) = in_memory(4, {"a": KINDS[kind][0]}).to_arrow().schema
        assert field.metadata == {b"tenarc.kind": kind.encode()} and [*field.type][:2] == want
    (field,) = in_memory(4, {"a": KINDS["enum"][0]}).to_arrow().schema
    assert field.type.names == ["variant", "B", "C"]
    assert field.type[2].type == pa.list_(pa.null(), 1)


@pytest.mark.parametrize("outer", AROUND)
@pytest.mark.parametrize("inner", AROUND)
def test_kinds_are_in_each_other(inner, outer):
    for kind, (column, rows) in KINDS.items():
        if kind in LOST:
            continue
        column, rows = AROUND[outer](*AROUND[inner](column, rows))
        try:
            found = in_memory(4, {"a": column}).to_arrow()
        except tenarc.Unsupported as error:
            # Some keys of maps, and some tuples of optional fields.
            assert "keys of a map can be null" in str(error)
            continue
        check(in_memory(4, {"a": column}), [{"a": row} for row in rows])
        assert found.equals(stored([4, {"a": column}]).table("log").to_arrow())


@pytest.mark.parametrize("kind", sorted({*KINDS} - LOST))
def test_kinds_are_spread_around_nulls(kind):
    column, rows = KINDS[kind]
    some = iter(rows)
    found = [{"a": next(some) if bit else None} for bit in (1, 0, 1, 1, 0, 1)]
    for optional in ("option", "present"):
        groups = [6, {"a": [optional, b"\x2d", column], "z": ["unit"]}]
        if optional == "option" and kind in NULLABLE - {"unit", "dict of units", "some some none"}:
            with pytest.raises(tenarc.Unsupported, match="two kinds of null"):
                in_memory(*groups).to_arrow()
            continue
        for table in (in_memory(*groups), stored(groups).table("log")):
            check(table, [{**row, "z": None} for row in found])
    # Null rows of structs: what is in them is not null by itself.
    groups = [6, {"a": ["option", b"\x2d", {"x": column, "y": u8(1, 2, 3, 4)}]}]
    there = iter([{"x": row, "y": number} for number, row in enumerate(rows, 1)])
    check(in_memory(*groups), [{"a": next(there) if bit else None} for bit in (1, 0, 1, 1, 0, 1)])


# Groups


@pytest.mark.parametrize(
    ("first", "second", "want"),
    [
        (u8(1), of("<u2", 69, 300), pa.uint16()),
        (u8(255), of("i1", 72, -1), pa.int16()),
        (of("<u2", 69, 65535), of("i1", 72, -1), pa.int32()),
        (of("<u4", 70, 1), of("<i8", 79, -1), pa.int64()),
        (of("<f4", 85, 0.5), of("<i2", 77, -3), pa.float32()),
        (of("<f2", 84, 0.5), of("<u2", 69, 65535), pa.float32()),
        (of("<f4", 85, 0.5), of("<u4", 70, 2**32 - 1), pa.float64()),
        (of("<f2", 84, 0.5), of("<f8", 86, 0.1), pa.float64()),
        (["array", 1, u8(1)], ["array", 1, of("i1", 72, -1)], pa.list_(pa.field("item", pa.int16(), False), 1)),
        (["array", 1, u8(1)], ["array", 2, u8(1, 2)], pa.list_(pa.field("item", pa.uint8(), False))),
        ({"x": u8(1)}, {"y": ["text", 1, "a"]}, pa.struct([("x", pa.uint8()), ("y", TEXT)])),
        (["tuple", [u8(1), ["text", 1, "a"]]], ["tuple", [["unit"], ["text", 1, "b"]]], None),
        (["tuple", [u8(1), ["unit"]]], ["array", 2, u8(7, 8)], pa.list_(pa.field("item", pa.uint8()), 2)),
        (["array", 2, of("<u2", 69, 7, 300)], ["tuple", [u8(1), ["unit"]]], None),
        (["tuple", [["text", 1, "a"], ["unit"]]], ["array", 3, ["text", 1, "bcd"]], pa.list_(TEXT)),
        (["map", 1, u8(1), u8(2)], ["map", 1, of("<u2", 69, 300), u8(2)], None),
        (["enum", u8(1), ["A", "B"]], ["enum", u8(0), ["C", "A"]], ENUM),
        (["enum", u8(1), ["A", "B"]], ["enum", u8(0), ["C"], [u8(5)]], None),
        (["enum", u8(0), ["A"]], ["text", 1, "b"], TEXT),
        (["type", "date", [], u8(1)], ["type", "date", [], of("<i2", 77, -1)], pa.date32()),
        (["type", "example.com/x", [], u8(1)], of("<u2", 69, 2), pa.uint16()),
        (["text", 1, "a"], ["unit"], TEXT),
    ],
)
def test_groups_have_one_schema(first, second, want):
    rows = [{"a": row} for row in tenarc.loads(columns(1, first, 1, second))]
    for table in (
        in_memory(1, {"a": first}, 1, {"a": second}),
        stored([1, {"a": first}, 1, {"a": second}]).table("log"),
        stored([1, {"a": first}], [1, {"a": second}]).table("log"),
    ):
        found = check(table, rows)
        assert (
            want in (None, found.schema[0].type) and len(pa.RecordBatchReader.from_stream(table).read_all()) == 2
        )


def test_a_type_in_some_groups_only_is_none():
    typed = ["type", "timestamp", ["s", "UTC"], of("<i8", 79, 1)]
    for other, want in (
        (of("<i8", 79, 2), pa.int64()),
        (["type", "timestamp", ["ms", "UTC"], of("<i8", 79, 2)], pa.int64()),
        (["type", "timestamp", ["s", "UTC"], of("<i8", 79, 2)], pa.timestamp("s", "UTC")),
        (["option", b"\0", ["unit"]], pa.timestamp("s", "UTC")),
    ):
        assert in_memory(1, {"a": typed}, 1, {"a": other}).to_arrow().schema[0].type == want


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (u8(1), ["text", 1, "a"], "rows of u8 and of the kind text have no common type"),
        (of("<u8", 71, 1), of("<i8", 79, 1), "rows of u64 and of i64"),
        (of("<f8", 86, 1), of("<i8", 79, 1), "rows of f64 and of i64"),
        (tensor([1, 2], u8(1, 2)), tensor([1, 3], u8(1, 2, 3)), r"rows of u8\[2\] and of u8\[3\]"),
        (["bool", b"\1"], u8(1), "rows of bool and of u8"),
    ],
)
def test_groups_without_a_common_type_are_refused(first, second, said):
    table = stored([1, {"b": u8(1), "at": {"a": first}}, 1, {"b": u8(2), "at": {"a": second}}]).table("log")
    with pytest.raises(tenarc.Unsupported, match=rf"{said}.*leave the column out.*at `at\.a`"):
        table.to_arrow()
    assert table.to_arrow(["b"]).to_pydict() == {"b": [1, 2]}


def test_fields_that_are_missing_come_back_missing():
    rows = [
        {"id": 1, "x": 0.5, "at": {"a": 1}, "kind": "a", "null": None},
        {"id": 2, "at": {}, "null": 3},
        {"id": 3, "x": 1.5, "at": {"a": 2}, "kind": "a", "null": None},
    ]
    table = tenarc.Table(rows)
    found = table.to_arrow()
    assert found["x"].null_count == 1
    for given in (found, found.slice(1), pa.concat_tables([found, found])):
        wanted = rows[1:] if len(given) == 2 else rows * (len(given) // 3)
        back = tenarc.Table(given)
        assert back.rows() == wanted
        assert tenarc.loads(tenarc.dumps(back)) == wanted
    # A field that is missing in all rows, and one without the metadata.
    nothing = pa.field("y", pa.null(), metadata={"tenarc.null": "missing"})
    plain = pa.table([[1, None], [None, None]], pa.schema([pa.field("x", pa.int64()), nothing]))
    assert tenarc.loads(tenarc.dumps(tenarc.Table(plain))) == [{"x": 1}, {"x": None}]


def test_missing_columns_are_null_and_columns_keep_their_order():
    table = stored([2, {"b": u8(1, 2)}], [1, {"c": ["text", 1, "x"], "b": u8(3)}, 1, {"a": u8(4)}]).table("log")
    assert table.to_arrow().to_pydict() == {
        "b": [1, 2, 3, None],
        "c": [None, None, "x", None],
        "a": [None, None, None, 4],
    }


def test_plain_rows_are_a_part_of_the_table():
    out = io.BytesIO()
    with tenarc.Writer(out) as writer:
        writer.save(Table({"n": np.arange(3), "f": [0.5, 1.5, 2.5], "t": ["a", "b", "c"]}), name="log")
        writer.save([{"n": 2**40, "f": 1, "at": {"x": [1, 2]}}, {"n": -1, "f": 0.25}], name="log")
        writer.save([{"n": 7, "f": 2, "t": None}], name="log")
    found = tenarc.Archive(MemorySource(out.getvalue())).table("log").to_arrow()
    assert found.schema.types == [pa.int64(), pa.float64(), TEXT, found.schema.types[3]]
    assert found["n"].to_pylist() == [0, 1, 2, 2**40, -1, 7] and found["f"].to_pylist() == [
        0.5,
        1.5,
        2.5,
        1,
        0.25,
        2,
    ]
    assert found["at"].to_pylist() == [None] * 3 + [{"x": [1, 2]}, None, None]
    assert found["at"].type[0].type == pa.list_(pa.field("item", pa.int64(), False))


def test_rows_that_are_no_structs_are_one_column():
    for column, want in ((u8(5, 6), [5, 6]), (["option", b"\1", {"a": u8(1)}], [{"a": 1}, None])):
        assert in_memory(2, column).to_arrow().to_pydict() == {"value": want}
        assert stored([2, column]).table("log").to_arrow(["value"]).to_pydict() == {"value": want}
    found = in_memory(1, ["tuple", [u8(1), ["text", 1, "x"]]]).to_arrow()
    assert found.to_pylist() == [{"value": {"0": 1, "1": "x"}}]
    assert in_memory(2, {"value": u8(5, 6)}).to_arrow().to_pydict() == {"value": [5, 6]}


def test_tables_without_rows_have_no_columns():
    for table in (Table([]), in_memory(), stored([]).table("log"), stored([0, u8()]).table("log")):
        assert table.to_arrow().shape == (0, 0) and pa.table(table).shape == (0, 0)
        assert table.to_pandas().shape == (0, 0) and table.to_polars().shape == (0, 0)


# Values


def random_kind(random: random.Random, depth: int) -> Callable[[int], list[Any]]:
    """Makes values of one type, some of them null."""
    kind = random.choice(["int", "float", "bool", "text", "few", "bytes", *["list", "struct"] * (depth > 0)])
    share = random.choice([0, 0.5, 0.95])

    def some(values: Iterable[Any]) -> list[Any]:
        return [None if random.random() < share else value for value in values]

    if kind == "list":
        inner = random_kind(random, depth - 1)
        return lambda count: some(inner(random.choice([0, 0, 1, 2, 5])) for _ in range(count))
    if kind == "struct":
        fields = {name: random_kind(random, depth - 1) for name in random.sample("abcd", random.randrange(1, 4))}
        return lambda count: some({name: make(1)[0] for name, make in fields.items()} for _ in range(count))
    make: Any = {
        "int": lambda: random.randrange(-5, 300),
        "float": random.random,
        "bool": lambda: random.random() < 0.5,
        "text": lambda: "aä水" * random.randrange(4) + str(random.random()),
        "few": lambda: random.choice(["red", "green", ""]),
        "bytes": lambda: random.randbytes(random.randrange(5)),
    }[kind]
    return lambda count: some(make() for _ in range(count))


def write_random(path: Path, seed: int) -> None:
    """Writes a table `log` of three values with random columns, some of which are not in all values."""
    chosen = random.Random(seed)
    kinds = {f"f{n}": random_kind(chosen, 2) for n in range(6)}
    parts = []
    for _ in range(3):
        count = chosen.choice([1, 17, 300])
        there = {name: make(count) for name, make in kinds.items() if chosen.random() < 0.8}
        parts.append((Table({**there, "id": [*range(count)]}), "log"))
    write(path, *parts, compression=chosen.choice([None, "zstd"]))


@pytest.mark.parametrize("seed", range(25))
def test_random_tables_have_the_values_of_their_rows(seed, tmp_path):
    write_random(tmp_path / "a", seed)
    with tenarc.open(tmp_path / "a") as archive:
        table = archive.table("log")
        rows = list(table)
        found = check(table, rows)
        assert found.schema.metadata == {b"tenarc.table": b"log"}
        again = Table(found)
        assert again.to_arrow().to_pylist() == found.to_pylist()


def test_parts_of_columns_in_buffers_are_read(tmp_path):
    count = 150_000
    columns = {
        "n": np.arange(count),
        "t": [f"text {n}" for n in range(count)],
        "o": [None if n % 3 else n / 2 for n in range(count)],
        "v": np.arange(2 * count, dtype="f4").reshape(count, 2),
    }
    for compression in (None, "zstd", "lz4"):
        write(tmp_path / "a", (Table(columns), "log"), compression=compression)
        with tenarc.open(tmp_path / "a") as archive:
            found = archive.table("log").to_arrow()
            assert [batch.num_rows for batch in found.to_batches()] == [65536, 65536, count - 2 * 65536]
            for name in ("n", "t", "o"):
                assert found[name].to_pylist() == [*columns[name]]
            assert found["v"].combine_chunks().to_numpy_ndarray().tolist() == columns["v"].tolist()


def test_numbers_are_not_copied(tmp_path):
    numbers = np.arange(60_000)
    times = {"time": pa.array(numbers, pa.timestamp("us")), "day": pa.array(numbers.astype("<i4"), pa.date32())}
    tenarc.save(tmp_path / "a", Table(pa.table({"n": numbers, **times})))
    with tenarc.open(tmp_path / "a") as archive:
        table = archive.table("")
        before = table["n"].__array_interface__["data"][0]
        assert table.to_arrow()["n"].chunk(0).buffers()[1].address == before
        # Two copies would not be in the same place.
        both = [table.to_arrow(), table.to_arrow()]
        for name in times:
            first, second = (found[name].chunk(0).buffers()[1].address for found in both)
            assert first == second, name


def test_the_schema_is_known_without_the_columns(tmp_path, monkeypatch):
    count = 70_000
    table = Table({"n": np.arange(count), "t": [f"t{n}" for n in range(count)], "c": ["a", None] * (count // 2)})
    tenarc.save(tmp_path / "a", table, compression="zstd")
    with tenarc.open(tmp_path / "a") as archive:
        found = archive.table("")
        monkeypatch.setattr(tenarc.saved.Segment, "payload", None)
        assert pa.schema(found) == pa.schema({"n": pa.int64(), "t": TEXT, "c": TEXT}).set(
            0, pa.field("n", pa.int64(), False)
        ).set(1, pa.field("t", TEXT, False))
        with pytest.raises(TypeError):
            found.to_arrow()


def test_only_the_columns_that_are_asked_for_are_read(tmp_path, monkeypatch):
    many = np.arange(20_000)
    tenarc.save(tmp_path / "a", Table({"a": many, "at": {"x": many + 1, "y": many + 2}, "any": [1, "x"] * 10_000}))
    read = []
    payload = tenarc.saved.Segment.payload
    monkeypatch.setattr(
        tenarc.saved.Segment,
        "payload",
        lambda self, number, owned: read.append(number) or payload(self, number, owned),
    )
    with tenarc.open(tmp_path / "a") as archive:
        table = archive.table("")
        found = table.to_arrow(["at.y", "a"])
        assert found.column_names == ["at.y", "a"] and found["at.y"].to_pylist() == (many + 2).tolist()
        assert len(set(read)) == 2
        assert table.to_pandas(columns=["at.x"])["at.x"].tolist() == (many + 1).tolist()
        assert table.to_polars(["a"]).columns == ["a"]
        with pytest.raises(tenarc.Unsupported, match=r"different forms.*to_arrow\(columns=\[\.\.\.\]\).*at `any`"):
            table.to_arrow()
        with pytest.raises(tenarc.NotFound, match="no column 'b'"):
            table.to_arrow(["b"])
        with pytest.raises(tenarc.Mismatch, match="expected a list of names of columns, found the text 'a'"):
            table.to_arrow("a")


def test_batches_are_read_one_after_the_other(tmp_path, monkeypatch):
    tenarc.save(tmp_path / "a", Table({"n": np.arange(300_000)}))
    read = []
    payload = tenarc.saved.Segment.payload
    monkeypatch.setattr(
        tenarc.saved.Segment,
        "payload",
        lambda self, number, owned: read.append(number) or payload(self, number, owned),
    )
    with tenarc.open(tmp_path / "a") as archive:
        reader = pa.RecordBatchReader.from_stream(archive.table(""))
        assert not read
        assert reader.read_next_batch().num_rows == 131_072 and len(read) == 2
        assert reader.read_next_batch()["n"][0].as_py() == 131_072 and len(read) == 4
        assert reader.read_next_batch().num_rows == 37_856


def test_groups_are_joined_in_a_stream(monkeypatch):
    kinds = [kind for kind in KINDS if kind not in LOST]
    groups = [4, {kind: KINDS[kind][0] for kind in kinds}] * 5
    table = in_memory(*groups)

    def sizes() -> list[int]:
        batches = [*pa.RecordBatchReader.from_stream(table)]
        # Dictionaries can be other ones.
        assert pa.Table.from_batches(batches).to_pylist() == table.to_arrow().to_pylist()
        return [batch.num_rows for batch in batches]

    assert sizes() == [20]
    monkeypatch.setattr(arrow_export, "_BATCH", 8)
    assert sizes() == [8, 8, 4]
    monkeypatch.setattr(arrow_export, "_BATCH_BYTES", 1)
    assert sizes() == [4] * 5


def test_joined_groups_can_have_different_names_in_a_category(tmp_path):
    parts = [pa.table({"a": pa.array(names).dictionary_encode()}) for names in (["x", "y"], ["z", "y", None])]
    write(tmp_path / "a", *((Table(part), "log") for part in parts))
    with tenarc.open(tmp_path / "a") as archive:
        (batch,) = pa.RecordBatchReader.from_stream(archive.table("log"))
    assert batch["a"].to_pylist() == ["x", "y", "z", "y", None]
    assert pa.types.is_dictionary(batch["a"].type)


def test_groups_that_offsets_cannot_count_together_are_not_joined():
    lists = ["list", of("<u4", 70, 1 << 30, (1 << 30) - 1), ["unit"]]
    batches = [*pa.RecordBatchReader.from_stream(in_memory(2, {"a": lists}, 2, {"a": lists}))]
    assert [batch.num_rows for batch in batches] == [2, 2]


def test_what_offsets_cannot_count_is_several_batches(monkeypatch):
    rows = [{"a": [n] * (n % 5), "t": "x" * n, "o": None if n % 2 else f"{n}"} for n in range(50)]
    monkeypatch.setattr(arrow_export, "_MOST", 60)
    table = Table(rows)
    assert len(table.to_arrow().to_batches()) > 20
    check(table, rows)
    with pytest.raises(
        tenarc.Unsupported, match="a row has more bytes or elements than Arrow's offsets can count"
    ):
        Table([{"t": "x" * 61}]).to_arrow()


def test_a_requested_schema_is_followed():
    table = Table({"n": np.arange(3, dtype="i4")})
    wanted = pa.schema({"n": pa.int64()})
    assert pa.table(table, schema=wanted).schema.types == [pa.int64()]


# Types


ZONE = "Europe/Berlin"
VALUES: dict[str, tuple[Any, list[Any]]] = {
    "timestamps": (pa.timestamp("us", ZONE), [1, None, -(10**15)]),
    "timestamps in seconds": (pa.timestamp("s", "+02:00"), [1, None, -5]),
    "timestamps in milliseconds": (pa.timestamp("ms", "UTC"), [1, None, -5]),
    "timestamps without a zone": (pa.timestamp("ns"), [1, None, 2**62]),
    "dates": (pa.date32(), [1, None, -20_000]),
    "seconds of a day": (pa.time32("s"), [1, None, 86_399]),
    "milliseconds of a day": (pa.time32("ms"), [1, None, 86_399_999]),
    "microseconds of a day": (pa.time64("us"), [1, None, 86_399_999_999]),
    "nanoseconds of a day": (pa.time64("ns"), [1, None, 86_399_999_999_000]),
    "durations": (pa.duration("ms"), [1, None, -(2**40)]),
    "durations in nanoseconds": (pa.duration("ns"), [1, None, -(2**62)]),
    "short decimals": (pa.decimal128(5, 2), [decimal.Decimal("-1.5"), None, decimal.Decimal("999.99")]),
    "decimals": (pa.decimal128(38, 3), [decimal.Decimal("-1.5"), None, decimal.Decimal("9" * 35)]),
    "decimals of a negative scale": (
        pa.decimal128(20, -2),
        [decimal.Decimal("-100"), None, decimal.Decimal("1E21")],
    ),
    "long decimals": (pa.decimal256(76, 10), [decimal.Decimal("-0.25"), None, decimal.Decimal("9" * 66)]),
    "UUIDs": (pa.uuid(), [uuid.UUID(int=1).bytes, None, bytes(range(16))]),
    "categories": (pa.dictionary(pa.int32(), TEXT), ["b", None, "a"]),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("has_nulls", [True, False])
@pytest.mark.parametrize("times", [1, 30_000])
def test_types_come_back(name, has_nulls, times, tmp_path):
    kind, values = VALUES[name]
    values = [value for value in values if has_nulls or value is not None] * times
    array = pa.array(values, TEXT).dictionary_encode() if name == "categories" else pa.array(values, kind)
    field = pa.field("x", array.type, nullable=has_nulls)
    want = pa.table({"a": array, "at": pa.StructArray.from_arrays([array], fields=[field])})
    tenarc.save(tmp_path / "a", Table(want), compression="zstd")
    with tenarc.open(tmp_path / "a") as archive:
        found = archive.table("")
        # The same values, whoever does not care about the types.
        assert found.names() == ["a", "at"] and found[0]["at"]["x"] == found[0]["a"]
        for table in (found, Table(want), tenarc.loads(tenarc.dumps(Table(want)), tables=True)):
            made = table.to_arrow()
            made.validate(full=True)
            assert made.schema.types == want.schema.types
            for column in want.column_names:
                if name == "categories":
                    # Each group has the names in the order of its own rows.
                    assert made[column].to_pylist() == want[column].to_pylist()
                else:
                    assert made[column].equals(want[column])
    # Once more, from what was read.
    tenarc.save(tmp_path / "b", Table(found))
    with tenarc.open(tmp_path / "b") as archive:
        assert archive.table("").to_arrow().equals(made)


def test_ordered_categories_keep_all_names_in_their_order(tmp_path):
    names = pa.array(["low", "high", "never"])
    for codes in ([0, 1, 0], [1, None, 0], [2]):
        column = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), names, ordered=True)
        tenarc.save(
            tmp_path / "a", Table(pa.table({"a": column, "in": pa.StructArray.from_arrays([column], ["a"])}))
        )
        with tenarc.open(tmp_path / "a") as archive:
            table = archive.table("")
            found = table.to_arrow()
            assert found["a"].combine_chunks() == column and found["a"].type == column.type
            assert found["in"].combine_chunks().field("a") == column
            # The same from what was read, and from some of its rows.
            assert tenarc.loads(tenarc.dumps(Table(table)), tables=True).to_arrow() == found
            assert table.take([-1, 0]).to_arrow()["a"].combine_chunks() == column.take(
                pa.array([len(codes) - 1, 0])
            )
            assert table["a"] == column.to_pylist() and table.dtypes["a"].endswith("text")


@pytest.mark.parametrize(
    ("other", "want"),
    [
        (["low", "mid", "high"], ["low", "mid", "high"]),
        (["high"], ["low", "high"]),
        (["high", "low"], None),
        (["low", "top"], None),
    ],
)
def test_groups_of_ordered_categories_have_one_order_if_there_is_one(other, want, tmp_path):
    parts = [
        pa.table(
            {"a": pa.DictionaryArray.from_arrays(pa.array([len(names) - 1, 0]), pa.array(names), ordered=True)}
        )
        for names in (["low", "high"], other)
    ]
    write(tmp_path / "a", *((Table(part), "log") for part in parts))
    with tenarc.open(tmp_path / "a") as archive:
        found = archive.table("log").to_arrow()["a"]
    assert found.to_pylist() == [*parts[0]["a"].to_pylist(), *parts[1]["a"].to_pylist()]
    assert found.type.ordered is (want is not None)
    assert want is None or [chunk.dictionary.to_pylist() for chunk in found.chunks] == [want, want]


def test_an_order_that_cannot_be_kept_is_refused():
    for names in ([str(n) for n in range(16)], ["x" * 65], ["x", "x"], [1, 2]):
        column = pa.DictionaryArray.from_arrays(pa.array([0]), pa.array(names), ordered=True)
        with pytest.raises(
            tenarc.Unsupported, match=r"15 distinct texts of at most 64 bytes.*as_unordered\(\).*at `a`"
        ):
            Table(pa.table({"a": column}))


def test_the_one_category_of_a_group_can_have_the_order_of_its_rows():
    column = ["type", "category", [1], ["dict", u8(0, 1, 0), 2, ["text", 1, "xy"]]]
    table = in_memory(3, {"a": column})
    assert table.to_arrow()["a"].type.ordered
    assert table.to_polars()["a"].dtype == polars.Enum(["x", "y"])
    # The rows of a part can have another order, and so can other groups.
    part = Table.of([table.groups[0].part(1, 3)])
    for some in (part, Table.of([*table.groups, *part.groups])):
        found = tenarc.loads(tenarc.dumps(some), tables=True).to_arrow()["a"]
        assert not found.type.ordered and found.to_pylist() == [row["a"] for row in some]


@pytest.mark.parametrize(
    ("parameters", "column"),
    [
        (["int8"], ["type", "category", [0], ["dict", u8(0), 1, ["text", 1, "x"]]]),
        (["int8", 1], ["type", "category", [0], ["dict", u8(0), 1, ["text", 1, "x"]]]),
        (["float32", "x"], ["type", "category", [0], ["dict", u8(0), 1, ["text", 1, "x"]]]),
        (["int8", "x"], ["dict", u8(0), 1, ["text", 1, "x"]]),
        (["int8", "x"], ["text", 1, "x"]),
        (["int8", "x"], ["option", b"\1", ["type", "category", [0], ["dict", u8(0), 1, ["text", 1, "x"]]]]),
    ],
)
def test_what_is_no_order_is_left_out(parameters, column):
    found = in_memory(1, {"a": ["type", "arrow.dictionary", parameters, column]}).to_arrow()
    assert found == in_memory(1, {"a": column}).to_arrow()


def test_a_name_that_is_not_in_its_order_is_refused():
    category = ["type", "category", [0], ["dict", u8(0), 1, ["text", 1, "x"]]]
    table = stored([1, {"a": ["type", "arrow.dictionary", ["int8", "y"], category]}]).table("log")
    with pytest.raises(tenarc.Mismatch, match=r"no value of the type arrow\.dictionary"):
        table.to_arrow()
    assert table["a"] == ["x"]


def test_dates_in_milliseconds_are_dates():
    found = Table(pa.table({"a": pa.array([datetime.date(2026, 1, 2), None], pa.date64())})).to_arrow()
    assert found["a"].type == pa.date32() and found["a"].to_pylist() == [datetime.date(2026, 1, 2), None]


def test_data_frames_come_back(tmp_path):
    moments = pandas.to_datetime(["2026-03-29 01:30", None, "2026-10-25 02:30"])
    frame = pandas.DataFrame(
        {
            "zone": moments.tz_localize("UTC").tz_convert(ZONE),
            "fixed": moments.tz_localize("UTC").tz_convert(datetime.timezone(datetime.timedelta(hours=2))),
            "naive": moments.astype("datetime64[ms]"),
            "duration": pandas.to_timedelta([1, None, 3], unit="h"),
            "day": [datetime.date(2026, 1, 1), None, datetime.date(1, 1, 1)],
            "price": [decimal.Decimal("1.25"), None, decimal.Decimal("-3.50")],
            "category": pandas.Categorical(["b", None, "a"]),
            "number": pandas.Categorical([3, None, 3]),
        }
    )
    tenarc.save(tmp_path / "a", frame)
    with tenarc.open(tmp_path / "a") as archive:
        found = archive.table("").to_pandas()
    kept = frame.drop(columns=["category", "number"])
    pandas.testing.assert_frame_equal(found[[*kept]], kept, check_dtype=True)
    assert found["category"].dtype == "category" and found["category"].tolist()[::2] == ["b", "a"]
    assert found["number"].tolist()[::2] == [3, 3]

    frame = polars.DataFrame(
        {
            "zone": polars.Series([1, None, 10**15], dtype=polars.Datetime("us", ZONE)),
            "naive": polars.Series([1, None, 10**15], dtype=polars.Datetime("ms")),
            "day": polars.Series([1, None, 3], dtype=polars.Date),
            "time": polars.Series([1, None, 3], dtype=polars.Time),
            "duration": polars.Series([1, None, 3], dtype=polars.Duration("ns")),
            "price": polars.Series(["1.25", None, "-3.5"]).cast(polars.Decimal(10, 2)),
            "category": polars.Series(["b", None, "a"], dtype=polars.Categorical),
        }
    )
    tenarc.save(tmp_path / "b", frame)
    with tenarc.open(tmp_path / "b") as archive:
        found = archive.table("").to_polars()
    assert found.schema == frame.schema and found.equals(frame)


def test_frames_of_the_older_protocol_are_taken():
    class Interchanged:
        def __dataframe__(self, *args, **options):
            return pa.table({"n": [1, 2], "t": ["a", None]}).__dataframe__(*args, **options)

    assert Table(Interchanged()).rows() == [{"n": 1, "t": "a"}, {"n": 2, "t": None}]


@pytest.mark.parametrize(
    ("name", "parameters", "column"),
    [
        ("timestamp", ["h", ""], of("<i8", 79, 1)),
        ("timestamp", ["s"], of("<i8", 79, 1)),
        ("timestamp", ["s", ""], of("<u8", 71, 1)),
        ("timestamp", ["s", ""], of("<f8", 86, 1)),
        ("date", ["s"], of("<i4", 78, 1)),
        ("date", [], ["text", 1, "x"]),
        ("time", [1], of("<i8", 79, 1)),
        ("duration", [], of("<i8", 79, 1)),
        ("decimal", [0, 0], of("<i8", 79, 1)),
        ("decimal", [77, 0], of("<i8", 79, 1)),
        ("decimal", [5, 0], ["bytes", 33, bytes(33)]),
        ("decimal", [5, 0], ["bytes", 0, b""]),
        ("decimal", [5], of("<i8", 79, 1)),
        ("decimal", [5, 1 << 40], of("<i8", 79, 1)),
        ("uuid", [], ["bytes", 15, bytes(15)]),
        ("uuid", [], ["text", 16, "x" * 16]),
        ("category", [2], ["dict", u8(0), 1, ["text", 1, "x"]]),
        ("category", [0], ["text", 1, "x"]),
        ("category", [0], ["dict", u8(0), 1, ["option", b"\1", ["text", 1, "x"]]]),
        ("example.com/date", [], of("<i4", 78, 1)),
    ],
)
def test_a_column_that_is_not_of_its_type_is_that_column(name, parameters, column):
    for groups in ([1, {"a": ["type", name, parameters, column]}], [1, {"a": column}]):
        found = stored(groups).table("log").to_arrow()
        assert found == in_memory(1, {"a": column}).to_arrow()


@pytest.mark.parametrize(
    ("name", "parameters", "column"),
    [
        ("date", [], of("<i8", 79, 1 << 31)),
        ("time", ["s"], of("<i8", 79, 1 << 32)),
        ("time", ["s"], of("<i8", 79, 86_400)),
        ("time", ["ns"], of("<i8", 79, -1)),
        ("decimal", [3, 1], of("<i8", 79, 1000)),
        ("decimal", [38, 1], ["bytes", 17, b"\x01" + bytes(16)]),
        ("decimal", [38, 1], ["bytes", 17, b"\x00\xff" + bytes(15)]),
        ("decimal", [38, 1], ["bytes", 16, b"\x7f" + bytes(15)]),
    ],
)
def test_values_that_are_not_of_their_type_are_refused(name, parameters, column):
    table = stored([1, {"a": ["type", name, parameters, column]}]).table("log")
    with pytest.raises(tenarc.Mismatch, match=f"no value of the type {name}|a decimal needs more than 16 bytes"):
        table.to_arrow()
    # The number itself can be read.
    assert len(table.rows()) == 1


def test_types_can_be_around_dicts_and_types():
    dates = ["type", "date", [], ["dict", u8(0, 1, 0), 2, of("<i4", 78, 5, 6)]]
    for column in (dates, ["type", "x.y", [], dates], ["dict", u8(0, 1, 0), 2, ["type", "date", [], u8(5, 6)]]):
        found = in_memory(3, {"a": column}).to_arrow()["a"]
        assert found.type == pa.date32() and found.cast(pa.int32()).to_pylist() == [5, 6, 5]
    short = ["type", "decimal", [4, 1], ["bytes", 2, b"\xff\xfe\x00\x7f"]]
    assert in_memory(2, {"a": short}).to_arrow()["a"].to_pylist() == [
        decimal.Decimal("-0.2"),
        decimal.Decimal("12.7"),
    ]
    long = ["type", "decimal", [4, 1], ["bytes", 20, b"\xff" * 20 + bytes(19) + b"\x05"]]
    assert in_memory(2, {"a": long}).to_arrow()["a"].to_pylist() == [
        decimal.Decimal("-0.1"),
        decimal.Decimal("0.5"),
    ]


def test_a_variant_that_is_called_variant():
    column = ["enum", u8(0, 1), ["variant", "variant_"], [u8(5), None]]
    found = in_memory(2, {"a": column}).to_arrow()["a"]
    assert found.to_pylist() == [
        {"variant__": "variant", "variant": 5},
        {"variant__": "variant_", "variant": None},
    ]


# Readers of Arrow


def log(count: int) -> Any:
    random = np.random.default_rng(1)
    return pa.table(
        {
            "id": np.arange(count),
            "group": pa.array([f"g{n}" for n in random.integers(0, 5, count)]),
            "value": pa.array(random.random(count), mask=random.random(count) < 0.2),
            "at": pa.array(random.integers(0, 10**12, count), pa.timestamp("ms", "UTC")),
            "ok": random.random(count) < 0.5,
            "level": pa.array(random.choice(["low", "high"], count)).dictionary_encode(),
            "part": pa.StructArray.from_arrays(
                [pa.array(random.integers(0, 9, count))], fields=[pa.field("x", pa.int64(), False)]
            ),
        }
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Any:
    """A table in an archive of two values, and in a Parquet file."""
    directory = tmp_path_factory.mktemp("files")
    rows = log(100_000)
    parts = (Table(rows[:30_000]), "log"), (Table(rows[30_000:]), "log")
    write(directory / "log.tenarc", *parts, compression="zstd")
    parquet.write_table(rows, directory / "log.parquet")
    with tenarc.open(directory / "log.tenarc") as archive:
        yield archive, str(directory / "log.parquet")


SUMMARY = (
    '"group", count(*) AS n, sum(value) AS s, max("at") AS last, sum(part.x) AS x, count(distinct level) AS l'
)


def test_duckdb_answers_as_from_parquet(files):
    archive, path = files
    log = archive.table("log")  # noqa: F841
    query = f'SELECT {SUMMARY} FROM {{}} WHERE ok AND id > 500 GROUP BY "group" ORDER BY "group"'
    found = duckdb.sql(query.format("log")).to_arrow_table().to_pylist()
    want = duckdb.sql(query.format(f"'{path}'")).to_arrow_table().to_pylist()
    assert len(found) == 5 and approximate(found) == approximate(want)
    # The archive itself has one table.
    assert duckdb.sql("SELECT count(*) FROM archive").fetchall() == [(100_000,)]


def approximate(rows: list[Any]) -> list[Any]:
    """Sums of floats depend on the order of the rows."""
    return [{name: round(v, 6) if isinstance(v, float) else v for name, v in row.items()} for row in rows]


def test_polars_answers_as_from_parquet(files):
    archive, path = files

    def answer(frame: Any) -> Any:
        found = frame.filter("ok").group_by("group").agg(polars.col("value").sum(), polars.col("at").max())
        return approximate(found.sort("group").to_dicts())

    want = answer(polars.read_parquet(path))
    log = archive.table("log")
    for frame in (log.to_polars(), polars.from_arrow(log.to_arrow()), polars.DataFrame(pa.table(archive))):
        assert answer(frame) == want and frame.schema["at"] == polars.Datetime("ms", "UTC")


def test_pandas_answers_as_from_parquet(files):
    archive, path = files
    found, want = archive.table("log").to_pandas(), pandas.read_parquet(path)
    # Parquet's readers make floats of optional integers.
    assert {str(found[name].dtype) for name in found} >= {"Float64"}, found.dtypes
    plain = found.astype({name: want[name].dtype for name in found if name != "level"})
    pandas.testing.assert_frame_equal(plain.drop(columns=["level"]), want.drop(columns=["level"]))
    assert found["level"].dtype == "category" and found["level"].tolist() == want["level"].tolist()
    assert plain.groupby("group")["value"].sum().equals(want.groupby("group")["value"].sum())


def test_pyarrow_has_the_same_rows_as_in_parquet(files):
    archive, path = files
    found, want = pa.table(archive), parquet.read_table(path)
    assert found.schema.types == want.schema.types and found.to_pylist() == want.to_pylist()
    assert found.schema.metadata == {b"tenarc.table": b"log"}


def test_enums_with_data_are_read_by_queries():
    event = in_memory(4, {"event": KINDS["enum"][0]})  # C, A, B, C
    query = "SELECT event.variant, event.B.x FROM event"
    assert duckdb.sql(query).fetchall() == [("C", None), ("A", None), ("B", 5), ("C", None)]
    fields = event.to_polars()["event"].struct
    assert fields.field("variant").to_list() == ["C", "A", "B", "C"]
    assert fields.field("B").struct.field("x").to_list() == [None, None, 5, None]
    assert [row["variant"] for row in event.to_pandas()["event"]] == ["C", "A", "B", "C"]


# Archives


def test_an_archive_with_one_table_is_that_table(tmp_path):
    rows = [{"n": 1}, {"n": 2}]
    for value, name in (
        (Table(rows), "log"),
        (Table(rows), None),
        ({"x": 1, "in": Table(rows)}, None),
        (rows, "log"),
    ):
        more = [] if name is None else [({"other": 5}, "settings"), (value, name)]
        write(tmp_path / "a", (value, name), *more)
        with tenarc.open(tmp_path / "a") as archive:
            assert pa.table(archive).to_pylist() == rows * (2 if name else 1)
            assert pa.schema(archive).names == ["n"]


def test_an_archive_with_several_tables_or_none_is_refused(tmp_path):
    rows = [{"n": 1}]
    write(tmp_path / "a", *((Table(rows), name) for name in ("b", "c", None)))
    with tenarc.open(tmp_path / "a") as archive:
        said = r"expected one table, .*3 tables \('b', 'c', one without a name\): `archive\.table\(name\)`"
        for read in (pa.table, pa.schema):
            with pytest.raises(tenarc.NotFound, match=said):
                read(archive)
    tenarc.save(tmp_path / "a", {"x": Table(rows), "y": [Table(rows)]})
    with tenarc.open(tmp_path / "a") as archive, pytest.raises(tenarc.NotFound, match=r"2 tables \('x', 'y\.0'\)"):
        pa.table(archive)
    tenarc.save(tmp_path / "a", {"x": 1})
    with tenarc.open(tmp_path / "a") as archive, pytest.raises(tenarc.NotFound, match="no table"):
        pa.table(archive)


# What can be wrong


def test_what_is_not_installed_is_named(monkeypatch):
    table = Table([{"a": 1}])
    for name, install, reads in (
        ("pandas", "pandas", [table.to_pandas]),
        ("polars", "polars", [table.to_polars]),
        (
            "pyarrow",
            r"tenarc\[arrow\]",
            [table.to_arrow, table.to_pandas, table.to_polars, table.__arrow_c_stream__, table.__arrow_c_schema__],
        ),
    ):
        with monkeypatch.context() as patched:
            patched.setitem(sys.modules, name, None)
            for read in reads:
                with pytest.raises(tenarc.Unsupported, match=f"needs {name}, .*`pip install {install}`"):
                    read()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    frame = pandas.DataFrame({"t": pandas.to_datetime(["2026-01-01"])})
    with pytest.raises(tenarc.Unsupported, match=r"needs pyarrow.*`pip install tenarc\[arrow\]`"):
        Table(frame)


@pytest.mark.parametrize(
    "groups",
    [
        # Few bytes that would be many: fields that are missing, units in place of numbers, and repeated rows.
        [1, {f"{n}": u8(1) for n in range(100)}, *[65536, {"x": ["unit"]}] * 200],
        [1, {"x": u8(1)}, *[65536, {"x": ["unit"]}] * 3000],
        [65536, {"x": ["array", 1 << 14, ["text", 0, ""]]}],
        [65536, {"x": ["dict", Tag(64, bytes(65536)), 1, ["text", 1 << 20, "x" * (1 << 20)]]}],
        [65536, {"x": ["option", b"\1" + bytes(8191), ["array", 1 << 14, Tag(64, bytes(1 << 14))]]}],
        [65536, {"x": ["option", b"\1" + bytes(8191), {f"{n}": u8(1) for n in range(500)}]}],
        [65536, {"x": ["option", b"\1" + bytes(8191), tensor([1, 1 << 14], Tag(64, bytes(1 << 14)))]}],
    ],
)
def test_short_input_does_not_become_much_memory(groups):
    for table in (in_memory(*groups), stored(groups).table("log")):
        with pytest.raises(tenarc.Limit, match="more memory than the limit"):
            table.to_arrow()
        with pytest.raises((pa.ArrowException, tenarc.Limit), match="more memory than the limit"):
            pa.table(table)


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (["odd", u8(1)], "unknown kind 'odd'"),
        (["option", b"\1"], "expected 3 items, found 2"),
        (["dict", u8(0), 1], "expected 4 items, found 3"),
        (["bytes"], "expected 3 items, found 1"),
        (["array", -1, u8(1)], "unsigned integer"),
        (["present", b"\1", ["text", 1, "x"], 5], "expected 3 items"),
        (["tuple", []], "empty array"),
        (["enum", u8(0), ["A", "A"]], "is there twice"),
        (["bool", b"\1", 5], "expected 2 items"),
        (of("<f8", 86, 1, 2), "expected 1 numbers, found 2"),
        (["type", "date", [], ["unit"], 1], "expected 4 items"),
        (Tag(4711, 5), "expected a column"),
        (named("f4", [1, 1], b"\1"), "not fill|bytes"),
    ],
)
def test_wrong_columns_are_refused(column, said):
    with pytest.raises((tenarc.Damaged, tenarc.Unsupported), match=said):
        stored([1, {"a": column}]).table("log").to_arrow()


def test_changed_bytes_raise_nothing_else():
    chosen = random.Random(0)
    kinds = [column for kind, (column, _) in KINDS.items() if kind not in LOST]
    outcomes = set()
    for _ in range(1500):
        groups = [4, {"a": chosen.choice(kinds)}, 4, {"a": chosen.choice(kinds), "b": ["unit"]}]
        metadata = bytearray(cbor2.dumps(Tag(TCOL, groups)))
        metadata[chosen.randrange(6, len(metadata))] ^= 1 << chosen.randrange(8)
        out = io.BytesIO()
        try:
            with tenarc.Writer(out) as writer:
                writer._save(bytes(metadata), [], "log")
            tenarc.Archive(MemorySource(out.getvalue())).table("log").to_arrow().validate(full=True)
            outcomes.add(None)
        except tenarc.Error as error:
            outcomes.add(type(error))
    assert {None, tenarc.Damaged, tenarc.Unsupported} <= outcomes


def test_unions_are_read_by_duckdb_only():
    """Why enums are no unions."""
    kind = pa.array([0, 1], pa.int8())
    union = pa.UnionArray.from_sparse(kind, [pa.array([1, 2]), pa.array(["a", "b"])], ["n", "t"])
    table = pa.table({"u": union})
    assert duckdb.sql('SELECT u.n, u.t FROM "table"').fetchall() == [(1, None), (None, "b")]
    with pytest.raises(Exception, match=r"(?i)union"):
        polars.from_arrow(table)
    with pytest.raises(pa.ArrowNotImplementedError, match="union"):
        table.to_pandas()


def test_the_columns_of_a_group_are_made_by_several_threads(tmp_path, monkeypatch):
    monkeypatch.setattr(tenarc.threads, "_cpus", lambda: 3)
    count, names = 70_000, set()
    table = {f"c{n}": np.arange(count) + n for n in range(5)} | {"t": [f"t{n % 50}" for n in range(count)]}
    tenarc.save(tmp_path / "a", Table(table), compression="zstd")
    payload = tenarc.saved.Segment.payload

    def noted(segment: Any, number: int, owned: bool) -> Any:
        names.add(threading.current_thread().name)
        return payload(segment, number, owned)

    monkeypatch.setattr(tenarc.saved.Segment, "payload", noted)
    before = threading.active_count()
    with tenarc.open(tmp_path / "a") as archive:
        found = archive.table("").to_arrow()
        assert found["c3"].to_pylist() == table["c3"].tolist() and found["t"].to_pylist() == table["t"]
        assert any(name.startswith("tenarc") for name in names)
        # A reader that stops early leaves no threads behind, and neither does an error.
        reader = pa.RecordBatchReader.from_stream(archive.table(""))
        reader.read_next_batch()
        del reader
        with pytest.raises(Limit):
            tenarc.open(tmp_path / "a", limits=Limits(max_alloc=count * 20)).table("").to_arrow()
    gc.collect()
    assert threading.active_count() == before
