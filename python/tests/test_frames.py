"""Data frames, Arrow tables, structured arrays and dicts of arrays: their columns are taken, or refused."""

import datetime
import io
import json
import subprocess
from typing import Any

import numpy as np
import pytest
from described import describe

import tenarc
from tenarc import Raw, Table

# They are no dependencies of the package: the lowest versions of those are tested without them.
pandas: Any = pytest.importorskip("pandas")
polars: Any = pytest.importorskip("polars")
pyarrow: Any = pytest.importorskip("pyarrow")


def written(value: Any, **options: Any) -> Any:
    return tenarc.loads(tenarc.dumps(value), tables=True, **options)


def pandas_frame() -> Any:
    return pandas.DataFrame(
        {
            "number": np.arange(3, dtype="i4"),
            "float": [0.5, None, 2],
            "text": ["x", None, "zz"],
            "bool": [True, False, True],
            "object": [[1, "a"], None, {"k": 1}],
            "category": pandas.Categorical(["u", None, "u"]),
            "gap": pandas.array([1, None, 3], "Int64"),
        }
    )


def arrow_table() -> Any:
    return pyarrow.table(
        {
            "number": pyarrow.array([1, None, 3], pyarrow.int16()),
            "float": pyarrow.array([1.5, None, 2], pyarrow.float32()),
            "bool": [True, None, False],
            "null": pyarrow.nulls(3),
            "text": ["x", None, "é" * 30],
            "view": pyarrow.array(["a" * 20, None, "c"], pyarrow.string_view()),
            "large": pyarrow.array(["a", "", "c"], pyarrow.large_string()),
            "bytes": [b"x", None, b"abc"],
            "fixed": pyarrow.array([b"ab", None, b"cd"], pyarrow.binary(2)),
            "category": pyarrow.array(["x", None, "x"]).dictionary_encode(),
            "list": [["a"], None, ["b", None]],
            "numbers": pyarrow.array([[1, 2], [], None], pyarrow.large_list(pyarrow.uint8())),
            "vector": pyarrow.array([[1.5, 2], [3, 4], None], pyarrow.list_(pyarrow.float32(), 2)),
            "part": pyarrow.array([[1], [2, 3], None], pyarrow.list_view(pyarrow.int8())),
            "struct": [{"x": 1, "y": "q"}, None, {"x": None, "y": "r"}],
            "map": pyarrow.array([[("k", 1)], [], None], pyarrow.map_(pyarrow.string(), pyarrow.int8())),
        }
    )


def polars_frame() -> Any:
    return polars.DataFrame(
        {
            "number": [1, 2, None],
            "float": polars.Series([1, 2, 3], dtype=polars.Float32),
            "bool": [True, None, False],
            "null": [None] * 3,
            "text": ["x", "é" * 30, None],
            "bytes": [b"", None, b"a" * 20],
            "category": polars.Series(["a", None, "a"], dtype=polars.Categorical),
            "list": [[1, 2], [], None],
            "vector": polars.Series([[1, 2], [3, 4], [5, 6]], dtype=polars.Array(polars.Float32, 2)),
            "struct": [{"x": 1, "y": "q"}, {"x": 2, "y": None}, {"x": None, "y": "r"}],
        }
    )


def structured() -> Any:
    fields: Any = [
        ("id", ">i2"),
        ("name", "U3"),
        ("at", [("x", "f4"), ("v", "u1", 2)]),
        ("raw", "S2"),
        ("ok", "?"),
    ]
    return np.array([(1, "a", (2.5, [1, 2]), b"x", True), (2, "", (0, [3, 4]), b"yz", False)], fields)


def rows_of(frame: Any) -> list[dict[str, Any]]:
    """The rows as the library itself gives them."""
    if isinstance(frame, pandas.DataFrame):
        nan = frame["float"].isna().tolist()
        rows = frame.astype(object).to_dict("records")
        for row, gap in zip(rows, nan, strict=True):
            for name, value in row.items():
                missing = not isinstance(value, (list, dict)) and pandas.isna(value)
                row[name] = (np.nan if gap and name == "float" else None) if missing else value
        return rows
    if isinstance(frame, polars.DataFrame):
        return frame.to_dicts()
    rows = frame.to_pylist()
    for row in rows:
        if row.get("map") is not None:
            row["map"] = dict(row["map"])
    return rows


def plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


FRAMES = [pandas_frame, arrow_table, polars_frame]


@pytest.mark.parametrize("make", FRAMES)
def test_a_frame_is_a_table(make):
    frame = make()
    want = describe(rows_of(frame))
    for table in (Table(frame), written(frame), written(Table(frame)), written({"a": [frame]})["a"][0]):
        assert isinstance(table, Table)
        assert describe(plain(table.rows())) == want


@pytest.mark.parametrize("make", FRAMES)
def test_the_command_reads_frames(make, tmp_path, command):
    tenarc.save(tmp_path / "a", make(), inline_below=1)
    for arguments in (["verify"], ["show", "--json"]):
        done = subprocess.run([command, *arguments, tmp_path / "a"], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    assert [row["number"] for row in json.loads(done.stdout)] == [row["number"] for row in rows_of(make())]


@pytest.mark.parametrize("make", FRAMES)
def test_a_frame_is_saved_and_sent(make, tmp_path):
    frame, path = make(), tmp_path / "a.tenarc"
    want = describe(rows_of(frame))
    tenarc.save(path, {"frame": frame, "n": 1}, inline_below=1)
    assert describe(plain(tenarc.load(path)["frame"])) == want
    parts = tenarc.to_parts([frame])
    assert describe(plain(tenarc.from_parts(parts.metadata, parts.buffers)[0])) == want
    with open(path, "wb") as file, tenarc.Writer(file) as out:
        out.save(frame, name="log")
    with tenarc.append(path) as out:
        out.save(frame, name="log")
    with tenarc.open(path) as archive:
        assert len(archive.table("log")) == 6
        assert describe(plain(archive.table("log").rows())) == describe(rows_of(frame) * 2)


def test_parts_of_arrow_data_are_taken():
    table = arrow_table()
    assert plain(written(table.slice(1)).rows()) == rows_of(table.slice(1))
    for batch in table.to_batches():
        assert plain(written(batch.slice(1, 1)).rows()) == rows_of(table.slice(1, 1))
        assert plain(written({"x": batch})["x"].rows()) == rows_of(table)
    both = pyarrow.concat_tables([table, table.slice(2), table])
    assert plain(written(both).rows()) == rows_of(both)
    frame = polars_frame()
    assert plain(written(polars.concat([frame[1:], frame], rechunk=False)).rows()) == [
        *frame[1:].to_dicts(),
        *frame.to_dicts(),
    ]


def test_dtypes_are_kept():
    assert written(arrow_table()).dtypes["vector"] == "optional list of f32"
    assert written(polars_frame()).dtypes["vector"] == "list of f32"
    assert written(polars_frame())["vector"].dtype == np.float32
    assert written(pandas_frame()).dtypes["number"] == "i32"
    for dtype in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "?"):
        array = np.array([0, 1, 1], dtype)
        frames = [pandas.DataFrame({"a": array}), pyarrow.table({"a": array}), {"a": array}]
        frames += [np.rec.fromarrays([array], names="a"), {"a": pyarrow.array(array)}]
        if dtype != "f2":
            frames += [polars.DataFrame({"a": array}), {"a": polars.Series(array)}, {"a": pandas.Series(array)}]
        for frame in frames:
            found = written(Table(frame))["a"]
            assert found.dtype == dtype and found.tolist() == array.tolist()


def test_pandas_dtypes_of_arrow_are_taken():
    frame = pandas_frame().drop(columns="object").convert_dtypes(dtype_backend="pyarrow")
    assert str(frame.dtypes["text"]).endswith("[pyarrow]")
    want = [{**row, "float": None if row["gap"] is None else row["float"]} for row in rows_of(frame)]
    assert plain(written(frame).rows()) == want
    nested = pandas.DataFrame(
        {"a": pandas.Series([[1], None], dtype=pandas.ArrowDtype(pyarrow.list_(pyarrow.int8())))}
    )
    assert plain(written(nested).rows()) == [{"a": [1]}, {"a": None}]
    sparse = pandas.DataFrame({"a": pandas.arrays.SparseArray([0, 0, 5])})
    assert written(sparse)["a"].tolist() == [0, 0, 5]


def pandas_columns(random: np.random.Generator, count: int) -> dict[str, Any]:
    """Columns of all dtypes of pandas that come back as they were."""
    gaps = random.random(count) < random.choice([0, 0.3])
    gaps[:1] = False
    columns: dict[str, Any] = {}
    for bits in (8, 16, 32, 64):
        for kind in ("int", "uint"):
            limits = np.iinfo(f"{kind}{bits}")
            numbers = random.integers(limits.min, limits.max, count, f"{kind}{bits}", endpoint=True)
            columns[f"{kind}{bits}"] = pandas.Series(numbers)
            columns[f"nullable {kind}{bits}"] = pandas.arrays.IntegerArray(numbers, gaps)
    for bits in (32, 64):
        numbers = random.normal(size=count).astype(f"f{bits // 8}")
        columns[f"float{bits}"] = pandas.Series(np.where(gaps, np.nan, numbers).astype(numbers.dtype))
        columns[f"nullable float{bits}"] = pandas.arrays.FloatingArray(numbers, gaps)
    bools = random.random(count) < 0.5
    columns["bool"], columns["nullable bool"] = pandas.Series(bools), pandas.arrays.BooleanArray(bools, gaps)
    names = ["low", "mid", "high", "é", ""]
    codes = np.where(gaps, -1, random.integers(0, 4, count))
    columns["ordered"] = pandas.Categorical.from_codes(codes, names, ordered=True)
    columns["category"] = pandas.Categorical([names[code] if code >= 0 else None for code in codes])
    columns["text"] = pandas.Series([None if gap else f"n{n}" for n, gap in enumerate(gaps)], dtype="str")
    for dtype in ("datetime64[us]", "datetime64[ns]", "timedelta64[s]", "datetime64[ms, Europe/Berlin]"):
        times = pandas.Series(random.integers(0, 1 << 40, count)).astype(dtype)
        columns[dtype] = times.where(~gaps)
    return columns


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("count", [1, 50, 70_000])
def test_frames_of_pandas_come_back_equal(seed, count, tmp_path):
    if int(pandas.__version__.split(".")[0]) < 3:
        pytest.skip("before pandas 3, texts were objects of Python")
    if count > 50 and seed > 1:
        pytest.skip("many rows take long")
    frame = pandas.DataFrame(pandas_columns(np.random.default_rng(seed), count))
    tenarc.save(tmp_path / "a", frame)
    with tenarc.open(tmp_path / "a") as archive:
        found = archive.table("").to_pandas()
        # The names of a category without an order come back in the order in which they first occur.
        pandas.testing.assert_frame_equal(found, frame, check_categorical=False)
        assert found.dtypes.tolist() == frame.dtypes.tolist()
        some = archive.table("").take([0, -1]).to_pandas(columns=["ordered", "nullable int64", "bool"])
        want = frame.iloc[[0, -1]][[*some]].reset_index(drop=True)
        pandas.testing.assert_frame_equal(some, want)
    # In a value, and from what was read.
    again = written({"x": [found]})["x"][0].to_pandas()
    pandas.testing.assert_frame_equal(again, frame, check_categorical=False)


def test_no_integer_of_pandas_is_rounded():
    rows = [{"a": (1 << 64) - 1, "b": -(1 << 63)}, {"a": None, "b": None}, {"a": 0}]
    found = Table(rows).to_pandas()
    assert found["a"].tolist()[::2] == [(1 << 64) - 1, 0] and found["b"].tolist()[0] == -(1 << 63)
    assert (str(found["a"].dtype), str(found["b"].dtype)) == ("UInt64", "Int64")


@pytest.mark.parametrize("seed", range(8))
def test_frames_of_polars_come_back_equal(seed, tmp_path):
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 60))
    gaps = random.random(count) < 0.3
    gaps[:1] = False
    names = ["low", "mid", "high", "é", ""]

    def series(dtype: Any, values: Any) -> Any:
        return polars.Series(
            [None if gap else value for value, gap in zip(values, gaps, strict=True)], dtype=dtype
        )

    numbers = random.integers(0, 100, count).tolist()
    texts = [names[number % 4] for number in numbers]
    dtypes = [polars.Int8, polars.UInt64, polars.Float32, polars.Datetime("ms", "UTC"), polars.Date, polars.Time]
    frame = polars.DataFrame(
        {
            **{str(dtype): series(dtype, numbers) for dtype in dtypes},
            "bool": series(polars.Boolean, [number > 50 for number in numbers]),
            "text": series(polars.String, texts),
            "category": series(polars.Categorical, texts),
            "enum": series(polars.Enum(names), texts),
            "bytes": series(polars.Binary, [text.encode() for text in texts]),
        }
    )
    tenarc.save(tmp_path / "a", frame)
    with tenarc.open(tmp_path / "a") as archive:
        found = archive.table("").to_polars()
        assert found.schema == frame.schema and found.equals(frame)
        # Each library reads the frames of the other.
        assert archive.table("").to_pandas(columns=["enum"])["enum"].cat.categories.tolist() == names
        assert found["enum"].sort().to_list() == frame["enum"].sort().to_list()


def test_many_rows_make_several_groups():
    count = 200_000
    table = pyarrow.table({"a": np.arange(count), "s": [f"n{n}" for n in range(count)]})
    for frame in (table, polars.from_arrow(table), table.to_pandas()):
        found = Table(frame)
        assert len(found.groups) == 4 and len(found) == count
        assert found[123_456] == {"a": 123_456, "s": "n123456"} and (found["a"] == np.arange(count)).all()
    assert len(Table(pyarrow.concat_tables([table.slice(0, 1)] * 50)).groups) == 1


def test_structured_arrays_are_tables(tmp_path):
    array = structured()
    want = [
        {"id": 1, "name": "a", "at": {"x": 2.5, "v": [1, 2]}, "raw": b"x", "ok": True},
        {"id": 2, "name": "", "at": {"x": 0.0, "v": [3, 4]}, "raw": b"yz", "ok": False},
    ]
    for value in (array, Table(array), array.view(np.recarray), array[::-1][::-1]):
        assert plain(written(value).rows()) == want
        assert plain(written([{"x": value}])[0]["x"].rows()) == want
    tenarc.save(tmp_path / "a", array)
    assert plain(tenarc.load(tmp_path / "a")) == want
    masked = np.ma.MaskedArray(array, mask=[(True, False, (False, False), False, False), (False,) * 5])
    assert [row["id"] for row in written(Table(masked)).rows()] == [None, 2]
    for other in (array[0], array.reshape(1, 2)):
        with pytest.raises(tenarc.Unsupported, match=r"structured array.*one dimension.*use its fields.*at `a.1`"):
            tenarc.dumps({"a": [0, other]})


def test_columns_of_a_dict_can_be_of_any_library():
    table = Table(
        {
            "at": {"x": np.arange(2), "y": [1.5, 2]},
            "arrow": arrow_table()[:2].select(["map", "text"]),
            "frame": pandas.DataFrame({"a": ["x", None]}),
            "polars": polars.Series([1, None]),
            "chunks": pyarrow.chunked_array([[1], [2]]),
            "pandas": pandas.Series(["a", None], index=[7, 8]),
            "raw": Raw("f128", (2,), bytes(range(32))),
            "table": Table([{"q": 1}, {"r": 2}]),
            "fields": structured()[["id", "ok"]],
        }
    )
    first, second = written(table).rows()
    assert plain(first["raw"].data) == [*range(16)] and second["raw"].data[0] == 16
    assert plain(first) == plain({**first, "at": {"x": 0, "y": 1.5}, "arrow": {"map": {"k": 1}, "text": "x"}})
    assert second["arrow"] == {"map": {}, "text": None} and second["frame"] == {"a": None}
    assert [first["polars"], second["polars"], first["chunks"], second["chunks"]] == [1, None, 1, 2]
    assert [first["pandas"], second["pandas"]] == ["a", None]
    assert first["table"] == {"q": 1} and second["table"] == {"r": 2}
    assert first["fields"] == {"id": 1, "ok": True}

    class Group:
        """As a group of h5py or zarr: `keys` and items, but no `Mapping`."""

        def keys(self):
            return ["a", "b"]

        def __getitem__(self, name):
            return np.arange(3) + (name == "b")

    assert written(Table(Group()))["b"].tolist() == [1, 2, 3]


def test_a_table_of_a_table_is_that_table():
    table = Table([{"a": 1}, {"a": 2}])
    assert tenarc.dumps(Table(table)) == tenarc.dumps(table)


def test_series_are_rows_but_no_values():
    for series in (polars.Series([1, None]), pyarrow.chunked_array([[1], [None]]), pyarrow.array([1, None])):
        assert written(Table(series)).rows() == [1, None]
        with pytest.raises(tenarc.Unsupported, match=r"tenarc\.Table.*at `a`"):
            tenarc.dumps({"a": series})
    assert written(Table(pandas.Series([1, 2]))).rows() == [1, 2]
    with pytest.raises(tenarc.Unsupported, match=r"pandas.*Series.*to_numpy\(\)"):
        tenarc.dumps([pandas.Series([1, 2])])
    # Without gaps it is an array.
    assert written(pyarrow.array([1, 2])).tolist() == [1, 2]


class Broken:
    """A data frame of a library with the older protocol only, which fails."""

    def __dataframe__(self, allow_copy=True):
        raise ValueError("no columns")

    def __iter__(self):
        return iter(["a"])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (lambda: pandas_frame().set_index("number"), r"index .*reset_index\(\)"),
        (lambda: pandas_frame()[::2], r"index .*reset_index\(drop=True\)"),
        (lambda: pandas_frame().set_index(["number", "bool"]), "index"),
        (lambda: pandas_frame().set_index("float"), "index"),
        (lambda: pandas.DataFrame({"a": [1, 2]}, index=[0.0, 1.0]), "index"),
        (lambda: pandas.DataFrame({"a": [1, 2]}, index=[False, True]), "index"),
        (
            lambda: pandas.DataFrame({"t": pandas.Categorical([3, 1], [3, 1], ordered=True)}),
            r"order of a category.*cat.as_unordered\(\).*at `.*t`",
        ),
        (
            lambda: polars.DataFrame({"t": polars.Series(["1"], dtype=polars.Enum([*map(str, range(16))]))}),
            "order of a category: expected at most 15 .*, found 16 names",
        ),
        (
            lambda: polars.DataFrame({"t": polars.Series([object()], dtype=polars.Object)}),
            "polars' dtype Object of the column 't'",
        ),
        (lambda: pandas.DataFrame({1: [2]}), "the name of a column: expected text, found int 1"),
        (lambda: pandas.DataFrame([[1, 2]], columns=["a", "a"]), "two columns have the name 'a'"),
        (lambda: pandas.DataFrame({"t": pandas.period_range("2020", periods=1)}), r"period.*at `.*t`"),
        (
            lambda: pyarrow.table({"t": [{"d": pyarrow.scalar((1, 2, 3), pyarrow.month_day_nano_interval())}]}),
            r"intervals.*cast.*at `.*t.d`",
        ),
        (lambda: pyarrow.table({"t": pyarrow.array([1], pyarrow.date64())}), r"no whole day.*at `.*t`"),
        (
            lambda: pyarrow.table({"t": pyarrow.array([1], pyarrow.timestamp("s", "x" * 65))}),
            r"time zone: expected at most 64 bytes.*at `.*t`",
        ),
        (lambda: pandas.DataFrame({"t": [datetime.date(2026, 1, 1), "x"]}), r"pyarrow cannot take.*at `.*t`"),
        (lambda: pyarrow.table([[1], [2]], names=["a", "a"]), "two columns have the name 'a'"),
        (
            lambda: pyarrow.table(
                {"m": pyarrow.array([[("k", 1), ("k", 2)]], pyarrow.map_(pyarrow.string(), pyarrow.int8()))}
            ),
            "a map of Arrow: .* same key twice",
        ),
        (Broken, r"Broken: no columns; pass its columns, as `tenarc.Table\(\{name: array, ...\}\)`"),
    ],
)
def test_what_cannot_be_taken_is_refused(value, message):
    with pytest.raises(tenarc.Unsupported, match=message):
        Table(value())
    with pytest.raises(tenarc.Unsupported, match=f"{message}.*"):
        tenarc.dumps({"v": [value()]})
    file = io.BytesIO()
    with pytest.raises(tenarc.Unsupported, match=message):
        tenarc.save(file, value())
    assert not file.getvalue()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": "abc"}, "for each row.* found str at `a`"),
        ({"a": b"abc"}, "for each row.* found bytes at `a`"),
        ({"a": 5}, "for each row.* found int at `a`"),
        ({"a": np.array(5)}, "for each row.* found numpy.ndarray at `a`"),
        ({"a": {"b": "xyz"}}, "for each row.* found str at `a.b`"),
        ({"a": [1], "b": np.ones(2)}, "expected 2 rows, found 1 in 'a'"),
        ({1: [2]}, "name of a column: expected text"),
        ("abc", "expected rows or columns, found str"),
        (5, "expected rows or columns, found int"),
        (polars.LazyFrame({"a": [1]}), "expected rows or columns, found LazyFrame"),
    ],
)
def test_other_columns_are_refused(columns, message):
    with pytest.raises(tenarc.Unsupported, match=message):
        Table(columns)


def test_the_number_of_rows_without_columns_is_kept():
    assert written(pandas.DataFrame(index=range(3))).rows() == [{}] * 3
    assert written(Table([{}] * 3)).rows() == [{}] * 3


def test_frames_without_rows_are_empty():
    for frame in (pandas_frame()[:0], arrow_table()[:0], polars_frame()[:0], structured()[:0]):
        assert written(frame).rows() == []


def test_polars_takes_the_columns_of_a_table_not_its_rows(monkeypatch):
    table = tenarc.Table({"id": np.arange(1000), "name": [f"n{n}" for n in range(1000)]})
    monkeypatch.setattr(tenarc.Table, "__getitem__", None)
    monkeypatch.setattr(tenarc.Table, "__iter__", None)
    # Of what is no table of pyarrow, `from_arrow` makes a series of structs.
    for frame in (polars.DataFrame(table), polars.from_arrow(table).struct.unnest()):
        assert frame["id"].to_list() == [*range(1000)] and frame["name"][999] == "n999"


def test_a_table_has_the_methods_of_a_sequence():
    rows = [{"a": 1}, {"a": 2}, {"a": 1}]
    table = tenarc.Table(rows)
    assert table.index({"a": 1}) == 0 and table.index({"a": 1}, 1) == 2 and table.count({"a": 1}) == 2
    assert [*reversed(table)] == rows[::-1] and {"a": 2} in table and {"a": 3} not in table
    for start, stop in ((0, 2), (1, 1)):
        with pytest.raises(ValueError):
            table.index({"a": 3} if start == 0 else {"a": 2}, start, stop)
