"""Rust and this package give the same record batches for the same table (`docs/decisions/arrow.md`)."""

import decimal
import io
import subprocess
from pathlib import Path
from typing import Any

import cbor2
import pytest
from columns_by_hand import KINDS, TCOL
from test_arrow_export import LOST, write_random

import tenarc
from tenarc import Tag

pa: Any = pytest.importorskip("pyarrow")

# The last section of the page says where both differ.
DIFFERENT = {"empty struct", "empty maps"}


def by_rust(command: Path, path: Path) -> Any:
    """What the command makes of the table, as Arrow's file."""
    out = path.with_suffix(".arrow")
    done = subprocess.run([command, "convert", path, out], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    with pa.ipc.open_file(out) as file:
        return file.read_all()


def compare(command: Path, path: Path) -> None:
    found = by_rust(command, path)
    with tenarc.open(path) as archive:
        want = archive.table("log").to_arrow()
    assert found.schema.equals(want.schema, check_metadata=True), f"{found.schema}\n\n{want.schema}"
    assert found.to_pylist() == want.to_pylist()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in LOST | DIFFERENT])
def test_each_kind_is_the_same(kind, command, tmp_path):
    column, _ = KINDS[kind]
    out = io.BytesIO()
    with tenarc.Writer(out) as writer:
        writer._save(cbor2.dumps(Tag(TCOL, [4, {"id": KINDS["u8"][0], "a": column}])), [], "log")
    (tmp_path / "a.tenarc").write_bytes(out.getvalue())
    compare(command, tmp_path / "a.tenarc")


@pytest.mark.parametrize("seed", range(12))
def test_random_tables_are_the_same(seed, command, tmp_path):
    write_random(tmp_path / "a.tenarc", seed)
    compare(command, tmp_path / "a.tenarc")


def dictionary(codes: list[int | None], values: Any, **how: Any) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), values, **how)


def foreign() -> dict[str, Any]:
    """Arrays of Arrow that come back equal from an archive, each of three rows."""
    found = {}
    for unit in ("s", "ms", "us", "ns"):
        found[f"timestamp {unit}"] = pa.array([1, 3, -5], pa.timestamp(unit))
        found[f"zoned {unit}"] = pa.array([1, 3, -5], pa.timestamp(unit, "Europe/Berlin"))
        found[f"duration {unit}"] = pa.array([1, 3, -5], pa.duration(unit))
        found[f"time {unit}"] = pa.array([1, 3, 5], (pa.time32 if unit in "ms" else pa.time64)(unit))
    for precision, kind in ((9, pa.decimal128), (38, pa.decimal128), (60, pa.decimal256)):
        found[f"decimal {precision}"] = pa.array(
            [decimal.Decimal("1.50"), 7, decimal.Decimal("-2.25")], kind(precision, 2)
        )
    names = pa.array(["low", "mid", "high", "top"])
    return {
        **found,
        "date": pa.array([1, 3, -5], pa.date32()),
        "date in milliseconds": pa.array([0, 86_400_000, -86_400_000], pa.date64()),
        "uuid": pa.ExtensionArray.from_storage(
            pa.uuid(), pa.array([b"a" * 16, b"b" * 16, b"c" * 16], pa.binary(16))
        ),
        "fixed": pa.array([b"abc", None, b"def"], pa.binary(3)),
        "category": dictionary([1, 3, 1], names),
        "ordered category": dictionary([2, 3, 0], names, ordered=True),
        "category in a struct": pa.StructArray.from_arrays([dictionary([1, None, 1], names)], ["c"]),
        "list of times": pa.array([[1], [], [1, None]], pa.list_(pa.timestamp("ms", "UTC"))),
        "struct": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": None}]),
        "map": pa.array([[("a", 1)], None, [("b", None)]], pa.map_(pa.string(), pa.int32())),
        "bytes": pa.array([b"a", None, b""]),
        "pairs": pa.array([["a", "b"], ["c", None], ["", "d"]], pa.list_(pa.string(), 2)),
        "pairs of dates": pa.array([[1, 2], [3, 4], None], pa.list_(pa.field("item", pa.date32(), False), 2)),
    }


@pytest.mark.parametrize("with_null", [False, True])
@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_types_come_back_equal(form, with_null, command, tmp_path):
    """From a file of Arrow or Parquet to an archive and back, without `--lossy`."""
    arrays = foreign()
    if with_null:
        arrays = {name: pa.concat_arrays([array, pa.nulls(1, array.type)]) for name, array in arrays.items()}
    if form == "parquet":
        arrays.pop("ordered category")  # See the next test.
    table = pa.table(arrays)
    first, archive, last = (tmp_path / name for name in (f"a.{form}", "b.tenarc", f"c.{form}"))
    if form == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(table, first)
    else:
        with pa.ipc.new_file(first, table.schema) as file:
            file.write_table(table)
    for a, b in ((first, archive), (archive, last)):
        done = subprocess.run([command, "convert", a, b], capture_output=True, text=True, timeout=300)
        assert (done.returncode, done.stderr) == (0, "")
    before, after = (
        parquet.read_table(path) if form == "parquet" else pa.ipc.open_file(path).read_all()
        for path in (first, last)
    )
    assert before.column_names == after.column_names
    for name in before.column_names:
        was, found = before[name], after[name]
        assert found.type.equals(was.type), f"{name}: {was.type} became {found.type}"
        assert found.to_pylist() == was.to_pylist(), name
    with tenarc.open(archive) as opened:
        python = opened.table("a").to_arrow(columns=["category", "fixed"])
    assert python["category"].type == pa.dictionary(pa.int32(), pa.string())
    assert python["category"].to_pylist() == before["category"].to_pylist()
    assert python["fixed"].to_pylist() == before["fixed"].to_pylist()


def test_arrow_becomes_parquet_as_by_pyarrow(command, tmp_path):
    """Parquet has no seconds and no `date64`."""
    parquet = pytest.importorskip("pyarrow.parquet")
    arrays = {name: array for name, array in foreign().items() if name != "ordered category"}
    arrays["list of seconds"] = pa.array([[1], [], [1, None]], pa.list_(pa.timestamp("s")))
    table = pa.table(arrays)
    arrow, ours, theirs = (tmp_path / name for name in ("a.arrow", "ours.parquet", "theirs.parquet"))
    with pa.ipc.new_file(arrow, table.schema) as file:
        file.write_table(table)
    parquet.write_table(table, theirs)
    done = subprocess.run([command, "convert", arrow, ours], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0
    assert "`timestamp s`: Parquet has no Timestamp(s): it becomes Timestamp(ms)" in done.stderr
    want, found = map(parquet.read_table, (theirs, ours))
    for name in want.column_names:
        assert found[name].type.equals(want[name].type), name
        assert found[name].to_pylist() == want[name].to_pylist(), name
    late = pa.table({"late": pa.array([1 << 60], pa.timestamp("s"))})
    with pa.ipc.new_file(arrow, late.schema) as file:
        file.write_table(late)
    done = subprocess.run([command, "convert", arrow, tmp_path / "late.parquet"], capture_output=True, text=True)
    assert done.returncode == 2 and "a time does not fit in Timestamp(ms)" in done.stderr
    assert not (tmp_path / "late.parquet").exists()


def test_categories_of_pandas_come_back(command, tmp_path):
    pandas = pytest.importorskip("pandas")
    kind = pandas.CategoricalDtype(["low", "mid", "high"], ordered=True)
    frame = pandas.DataFrame(
        {"level": pandas.Series(["high", None, "low"], dtype=kind), "host": pandas.Categorical(["b", "a", "b"])}
    )
    first, archive, last = (tmp_path / name for name in ("a.parquet", "b.tenarc", "c.parquet"))
    frame.to_parquet(first)
    subprocess.run([command, "convert", first, archive], check=True, capture_output=True, timeout=300)
    # In Parquet, the names would be in the order in which they first occur.
    refused = subprocess.run([command, "convert", archive, last], capture_output=True, text=True, timeout=300)
    assert refused.returncode == 2 and "`level`: its names are in an order" in refused.stderr
    subprocess.run([command, "convert", "--lossy", archive, last], check=True, capture_output=True, timeout=300)
    found = pandas.read_parquet(last)
    assert not found["level"].dtype.ordered and found["level"].tolist()[::2] == ["high", "low"]
    assert found["host"].dtype == "category" and found["host"].tolist() == ["b", "a", "b"]
    # In Arrow, they are as they were, also those that do not occur.
    level = by_rust(command, archive)["level"].to_pandas()
    assert level.dtype == kind and level.tolist()[::2] == ["high", "low"]
    with tenarc.open(archive) as opened:
        table = opened.table("a")
        assert table.to_pandas()["level"].dtype == kind
        assert next(iter(table)) == {"level": "high", "host": "b"}
    # Python writes the same, and Rust reads it.
    tenarc.save(archive, frame)
    level = by_rust(command, archive)["level"].to_pandas()
    assert level.dtype == kind and level.tolist()[::2] == ["high", "low"]
