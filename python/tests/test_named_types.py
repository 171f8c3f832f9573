"""Dates, times, durations, decimals and UUIDs (SPEC 7.2), texts of numpy, and paths."""

import datetime
import pathlib
import uuid
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple, TypedDict
from zoneinfo import ZoneInfo

import cbor2
import numpy as np
import numpy.typing as npt
import pytest
from columns_by_hand import TCOL, TTYP, of, u8

import tenarc
from tenarc import Table, Tag, col, named

UTC = datetime.timezone.utc
AT = datetime.datetime(2026, 7, 1, 12, 30, 1, 5)
#: Values, and what the format says of them.
VALUES: list[tuple[Any, str, list[Any], Any]] = [
    (AT, "timestamp", ["us", ""], 1782909001000005),
    (AT.replace(tzinfo=UTC), "timestamp", ["us", "UTC"], 1782909001000005),
    (AT.replace(tzinfo=ZoneInfo("Europe/Berlin")), "timestamp", ["us", "Europe/Berlin"], 1782901801000005),
    (AT.replace(tzinfo=datetime.timezone(-datetime.timedelta(minutes=90))), "timestamp", ["us", "-01:30"], None),
    (datetime.datetime.min, "timestamp", ["us", ""], None),
    (datetime.datetime.max, "timestamp", ["us", ""], None),
    (datetime.date(2026, 11, 26), "date", [], 20783),
    (datetime.date.min, "date", [], -719162),
    (datetime.time(23, 59, 59, 999999), "time", ["us"], 86399999999),
    (datetime.timedelta(days=-3, microseconds=5), "duration", ["us"], -259199999995),
    (datetime.timedelta(days=999999999), "duration", ["s"], 86399999913600),
    (Decimal("1.50"), "decimal", [3, 2], 150),
    (Decimal("-0.05"), "decimal", [2, 2], -5),
    (Decimal("-1E+30"), "decimal", [1, -30], -1),
    (Decimal("9" * 38), "decimal", [38, 0], None),
    (uuid.UUID(int=5), "uuid", [], bytes(15) + b"\5"),
    (np.datetime64("2026-03-01T01:02:03.123456789"), "timestamp", ["ns", ""], 1772326923123456789),
    (np.timedelta64(5, "ns"), "duration", ["ns"], 5),
]
IDS = [repr(value)[:50] for value, *_ in VALUES]
#: Values of numpy that are read as those of Python that are equal to them.
OTHERS = [
    np.datetime64("2026-03-01"),
    np.datetime64("2026-03-01T01", "h"),
    np.datetime64("2026", "Y"),
    np.datetime64("2026-03-01T01:02:03.004", "ms"),
    np.timedelta64(3, "D"),
    np.timedelta64(-3, "ms"),
]


def type_of(message: bytes) -> Any:
    """The name, the parameters and the item of a value of a type."""
    tag = cbor2.loads(message)
    assert tag.tag == TTYP
    return tag.value


@pytest.mark.parametrize(("value", "name", "parameters", "item"), VALUES, ids=IDS)
def test_values_are_written_with_their_types_and_read_again(value, name, parameters, item, tmp_path):
    found_name, found_parameters, found_item = type_of(tenarc.dumps(value))
    assert (found_name, [*found_parameters]) == (name, parameters) and item in (None, found_item)
    tenarc.save(tmp_path / "a", {"x": [value], value: 1})
    found = tenarc.load(tmp_path / "a")
    assert found == {"x": [value], value: 1} and type(found["x"][0]) is type(value)
    with tenarc.open(tmp_path / "a") as archive:
        assert archive["x.0"] == value
    # The names of zones, and the exponents of decimals.
    assert str(found["x"][0]) == str(value)


@pytest.mark.parametrize("value", [*OTHERS, *(value for value, *_ in VALUES)], ids=repr)
def test_columns_have_the_types_of_their_values(value):
    rows = [{"x": value, "n": 1}, {"x": None, "n": 2}, {"x": value, "n": 3, "list": [value, value]}]
    table = Table(rows)
    again = tenarc.loads(tenarc.dumps(table), tables=True)
    assert again.rows() == tenarc.loads(tenarc.dumps(table)) == rows == table.rows()
    column = again["x"]
    assert isinstance(column, list) or (column.mask.tolist() == [False, True, False] and column.dtype.kind in "mM")
    if not isinstance(value, datetime.datetime) or value.tzinfo is None:
        assert column[0] == value
    _, name, parameters, _ = cbor2.loads(tenarc.dumps(Table(rows[:1]))).value[1]["x"]
    assert [name, parameters] == [*type_of(tenarc.dumps(value))[:2]]
    assert again.filter(col("x") == value).row_numbers().tolist() == [0, 2]
    assert again.filter(col("x") != value).row_numbers().tolist() == []


@pytest.mark.parametrize("value", OTHERS, ids=repr)
def test_times_of_numpy_are_equal_to_what_is_read(value):
    assert tenarc.loads(tenarc.dumps(value)) == value


#: Dtypes of numpy whose arrays have a type of the format, and others.
KNOWN_TIMES = ["M8[D]", "M8[s]", "M8[ms]", "M8[us]", "M8[ns]", "m8[s]", "m8[ns]", ">M8[us]"]
OTHER_TIMES = ["M8[Y]", "M8[h]", ">m8[D]", "m8[M]", "M8[25s]", "m8[as]", "M8", "m8"]


def arrays_of_times(dtype: str) -> npt.NDArray[Any]:
    return (np.arange(600) * 3).view(np.dtype(dtype).newbyteorder("=")).astype(dtype).reshape(20, 30)


@pytest.mark.parametrize("dtype", [*KNOWN_TIMES, *OTHER_TIMES])
@pytest.mark.parametrize("missing", [False, True])
def test_arrays_of_times_are_tensors(dtype, missing, tmp_path):
    array = arrays_of_times(dtype)
    if missing:
        array[:2, 1] = array[1, 2] = "NaT"
    value = {
        "c": array,
        "f": np.asfortranarray(array),
        "small": array[0, :3].copy(),
        "scalar": array[1, 2:3].reshape(()),
    }
    tenarc.save(tmp_path / "a", value)
    for found in (tenarc.load(tmp_path / "a"), tenarc.loads(tenarc.dumps(value))):
        for name, want in value.items():
            assert same_times(found[name], want) and found[name].dtype == want.dtype.newbyteorder("<")
    with tenarc.open(tmp_path / "a") as archive:
        for name, want in value.items():
            assert same_times(archive[name], want) and same_times(archive.tensor(name), want)
        lazy = archive.lazy("c")
        assert lazy.dtype == array.dtype.newbyteorder("<") and np.array_equal(lazy[3:5, ::2], array[3:5, ::2])
        assert lazy[3, 4] == array[3, 4] and same_times(archive.slice("f", np.s_[:, 1]), array[:, 1])
    if missing:
        table = tenarc.loads(tenarc.dumps(Table({"at": array[:, 0], "pair": array[:, :2]})), tables=True)
        assert same_times(table["pair"], array[:, :2]) and np.isnat(table[1]["pair"][1])
        assert np.isnat(tenarc.loads(tenarc.dumps(array[:, 1]))[0])
        return
    table = tenarc.loads(tenarc.dumps(Table({"at": array[:, 0], "pair": array[:, :2]})), tables=True)
    assert np.array_equal(table["at"], array[:, 0]) and np.array_equal(table["pair"], array[:, :2])
    assert table[2]["at"] == array[2, 0]


def same_times(found: Any, want: Any) -> bool:
    return np.array_equal(found.astype("i8"), want.astype("i8")) and found.dtype.kind == want.dtype.kind


@pytest.mark.parametrize(
    ("dtype", "name", "unit"), [("M8[25s]", "datetime64", "25s"), ("m8", "timedelta64", "generic")]
)
def test_arrays_that_no_type_holds_have_one_of_numpy(dtype, name, unit):
    array = arrays_of_times(dtype)
    assert type_of(tenarc.dumps(array))[:2] == (f"numpy.org/{name}", (unit,))
    assert tenarc.loads(tenarc.dumps(Tag(TTYP, [f"numpy.org/{name}", ["parsec"], array.view("i8")]))).dtype == "i8"
    table = tenarc.loads(tenarc.dumps(Table({"at": array})), tables=True)
    assert np.array_equal(table["at"], array[:]) and table[3]["at"][4] == array[3, 4]


def test_tables_and_series_say_and_stack_times(tmp_path):
    zone = datetime.timezone(datetime.timedelta(hours=2))
    row = {"at": AT, "zone": AT.replace(tzinfo=zone), "days": [AT.date()], "price": Decimal("1.5"), "for": AT - AT}
    with tenarc.append(tmp_path / "a") as out:
        for _ in range(2):
            out.save(row, name="state")
            out.save(Table([row]), name="log")
    with tenarc.open(tmp_path / "a") as archive:
        said = {"at": "timestamp[us]", "zone": "timestamp[us, +02:00]", "days": "list of date"}
        said |= {"price": "decimal[2, 1]", "for": "duration[us]"}
        assert archive.table("log").dtypes == Table([row]).dtypes == said
        for name, want in (("at", AT), ("zone", AT - datetime.timedelta(hours=2)), ("for", AT - AT)):
            found = archive.series("state", name).stack()
            assert found.tolist() == [want, want] and found.dtype.kind in "mM"
        with pytest.raises(tenarc.Mismatch, match="expected an array or a number"):
            archive.series("state", "price").stack()
    control = ["type", "timestamp", ["us", "\x1b[1m"], of("<i8", 79, 1)]
    assert "\x1b" not in repr(tenarc.loads(cbor2.dumps(Tag(TCOL, [1, {"x": control}])), tables=True))


def test_arrays_of_times_are_no_tensors_of_torch():
    times = np.arange(3).astype("M8[D]")
    assert tenarc.to_torch({"a": [times]})["a"][0] is times


def test_times_that_are_missing():
    nat = np.datetime64("NaT", "us")
    times = np.array(["2026-01-01", "NaT", "2026-01-03"], "M8[us]")
    assert tenarc.loads(tenarc.dumps([nat, np.timedelta64("NaT"), 1])) == [None, None, 1]
    found = tenarc.loads(tenarc.dumps({"a": times}))["a"]
    assert found.dtype == times.dtype and np.isnat(found).tolist() == [False, True, False]
    table = tenarc.loads(tenarc.dumps(Table({"at": times})), tables=True)
    assert table["at"].mask.tolist() == [False, True, False] and table["at"][2] == times[2]
    assert [row["at"] for row in table] == [datetime.datetime(2026, 1, 1), None, datetime.datetime(2026, 1, 3)]


def test_decimals_of_several_scales_are_one_column():
    values = [Decimal("1.5"), Decimal("-20"), Decimal("0.125")]
    wide = [Decimal(10) ** 30, Decimal("-0.5")]
    for some, parameters in ((values, [5, 3]), (wide, [32, 1])):
        message = tenarc.dumps(Table({"x": some}))
        assert [*cbor2.loads(message).value[1]["x"][2]] == parameters
        assert [row["x"] for row in tenarc.loads(message)] == some
    # An array of these would have the numbers of the format.
    assert tenarc.loads(tenarc.dumps(Table({"x": values})), tables=True)["x"] == values
    # No type has so many digits.
    far = [Decimal("1E+70"), Decimal("1E-70")]
    assert tenarc.loads(tenarc.dumps(Table({"x": far}))) == [{"x": value} for value in far]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (Decimal("NaN"), "finite"),
        (Decimal("Infinity"), "finite"),
        (Decimal("1" * 77), "at most 76 digits"),
        (Decimal("1" * 40), "128 bits"),
        (datetime.time(1, tzinfo=UTC), "time zone"),
        (AT.replace(tzinfo=datetime.timezone(datetime.timedelta(seconds=1))), "offset in minutes"),
        (datetime.timedelta.max, "do not fit 64 bits"),
        (np.timedelta64(1, "Y"), "units are s, ms, us and ns"),
        (np.datetime64(1, "ps"), "units are s, ms, us and ns"),
    ],
    ids=str,
)
def test_what_no_type_holds_is_refused(value, said):
    with pytest.raises(tenarc.Unsupported, match=said) as caught:
        tenarc.dumps({"x": value})
    assert caught.value.path == "x"


@pytest.mark.parametrize(
    ("name", "parameters", "item", "want"),
    [
        ("timestamp", ["s", ""], 2**40, np.datetime64(2**40, "s")),
        ("timestamp", ["s", "UTC"], 2**40, np.datetime64(2**40, "s")),
        ("timestamp", ["us", "Nowhere/Never"], 5, datetime.datetime(1970, 1, 1, 0, 0, 0, 5, UTC)),
        ("timestamp", ["us", "../etc/passwd"], 0, datetime.datetime(1970, 1, 1, tzinfo=UTC)),
        ("timestamp", ["us", ""], -(2**63), -(2**63)),
        ("timestamp", ["us", ""], 2**63, 2**63),
        ("timestamp", ["us"], 5, 5),
        ("timestamp", ["min", ""], 5, 5),
        ("timestamp", ["us", ""], 1.5, 1.5),
        ("date", [], 2**31 - 1, np.datetime64(2**31 - 1, "D")),
        ("date", [], "today", "today"),
        ("time", ["s"], 86_400, 86_400),
        ("time", ["ns"], 5, 5),
        ("duration", ["s"], 2**60, np.timedelta64(2**60, "s")),
        ("decimal", [0, 0], 5, 5),
        ("decimal", [5, 2**40], 5, 5),
        ("uuid", [], bytes(15), bytes(15)),
        ("category", [0], "x", "x"),
    ],
    ids=str,
)
def test_what_python_has_no_value_for_is_read_as_the_item_or_as_one_of_numpy(name, parameters, item, want):
    found = tenarc.loads(cbor2.dumps(Tag(TTYP, [name, parameters, item])))
    assert found == want and type(found) is type(want)
    if type(item) is int and -(2**63) <= item < 2**63:
        column = ["type", name, parameters, of("<i8", 79, item, item)]
        table = tenarc.loads(cbor2.dumps(Tag(TCOL, [2, {"x": column}])), tables=True)
        assert table[1]["x"] == want and len(table["x"]) == 2
        first = table["x"][0]
        # In arrays, times are in UTC without saying so, and the least integer is no time.
        is_least = isinstance(first, np.datetime64) and np.isnat(first)
        assert is_least or isinstance(want, datetime.datetime) or first == want


class Keys(TypedDict):
    at: datetime.datetime
    count: int


class SomeKeys(TypedDict, total=False):
    at: datetime.datetime
    other: int


class Pair(NamedTuple):
    day: datetime.date
    path: pathlib.Path


@dataclass
class Record:
    keys: Keys
    pair: Pair
    number: int
    maybe: datetime.datetime | None
    either: datetime.datetime | int
    price: Decimal
    id: uuid.UUID
    texts: npt.NDArray[np.str_]
    times: npt.NDArray[np.datetime64]
    ints: npt.NDArray[np.int64]
    anything: Any
    days: list[datetime.date]
    by_day: dict[datetime.date, int]
    of_numpy: np.datetime64
    rows: list[Keys]


def test_types_are_converted_to_what_is_asked_for():
    day, times = AT.date(), np.arange(3).astype("M8[s]")
    keys = {"at": AT, "count": 1}
    value = Record(
        Keys(at=AT, count=1),
        Pair(day, pathlib.Path("a/b")),
        1782909001000005,
        AT,
        AT,
        Decimal("1.5"),
        uuid.UUID(int=3),
        np.array(["a", "bc"]),
        times,
        np.arange(3),
        {"x": [AT], day: (AT,)},
        [day],
        {day: 5},
        np.datetime64(AT),
        [Keys(at=AT, count=n) for n in range(3)],
    )
    written = {**vars(value), "keys": {**keys, "more": 5}, "number": AT, "ints": times, "rows": Table(value.rows)}
    found = tenarc.loads(tenarc.dumps(written), cls=Record)
    for name, want in {**vars(value), "anything": {"x": [AT], day: [AT]}}.items():
        assert np.array_equal(getattr(found, name), want), name
        assert type(getattr(found, name)) is type(want), name
    assert tenarc.loads(tenarc.dumps(keys), cls=SomeKeys) == {"at": AT}
    assert tenarc.loads(tenarc.dumps({day: 5}), cls=dict[int, int]) == {20635: 5}
    for wrong, said in (
        ({"at": AT}, "the key `count` of Keys is missing"),
        ({**keys, "at": 5}, "datetime.* at `at`"),
    ):
        with pytest.raises(tenarc.Mismatch, match=said):
            tenarc.loads(tenarc.dumps(wrong), cls=Keys)


def test_texts_and_paths():
    for texts in (np.array(["a", "", "üb"]), np.array([["a"], ["b"]]), np.array("x"), np.array([], "U1")):
        assert tenarc.loads(tenarc.dumps({"x": texts})) == {"x": texts.tolist()}
        if texts.ndim:
            found = tenarc.loads(tenarc.dumps(texts), cls=npt.NDArray[np.str_])
            assert np.array_equal(found, texts) and found.dtype.kind == "U"
    for wrong in ([["a"], ["b", "c"]], ["a", 1]):
        with pytest.raises(tenarc.Mismatch):
            tenarc.loads(tenarc.dumps(wrong), cls=npt.NDArray[np.str_])
    assert tenarc.loads(tenarc.dumps([np.str_("x"), np.array([b"a", b"bc"])])) == ["x", [b"a", b"bc"]]
    path = pathlib.PurePosixPath("a/b")
    assert tenarc.loads(tenarc.dumps(path)) == "a/b"
    assert tenarc.loads(tenarc.dumps(path), cls=pathlib.PurePosixPath) == path


@pytest.mark.skipif(not hasattr(np, "dtypes") or not hasattr(np.dtypes, "StringDType"), reason="an older numpy")
def test_texts_of_any_length():
    dtype = np.dtypes.StringDType(na_object=None)
    texts = np.array([["a", None], ["", "ü" * 100]], dtype)
    assert tenarc.loads(tenarc.dumps(texts)) == [["a", None], ["", "ü" * 100]]
    assert Table({"x": texts[0]})["x"] == ["a", None]


def test_filters_compare_with_values_of_the_same_type():
    times = [AT + datetime.timedelta(hours=n) for n in range(10)]
    table = Table(
        {
            "at": times,
            "utc": [time.replace(tzinfo=UTC) for time in times],
            "s": np.array(times, "M8[s]"),
            "price": [Decimal(n) / 4 for n in range(10)],
            "mixed": [n if n % 2 else times[n].date() for n in range(10)],
        }
    )
    second = datetime.timedelta(microseconds=5)
    for condition, want in (
        (col("at") > times[7], [8, 9]),
        (col("utc") <= times[1].replace(tzinfo=UTC), [0, 1]),
        (col("at") >= np.datetime64(times[8]), [8, 9]),
        # 5 microseconds after a second.
        (col("s") < times[2], [0, 1, 2]),
        (col("s") == times[2], []),
        (col("s") == times[2] - second, [2]),
        (col("price").is_in([Decimal("0.250"), Decimal(1), Decimal("0.3")]), [1, 4]),
        (col("price") > Decimal("2.1"), [9]),
    ):
        assert table.filter(condition).row_numbers().tolist() == want, condition
    for condition in (
        col("at") > times[0].replace(tzinfo=UTC),
        col("at") > AT.date(),
        col("price") > AT,
        col("price") > 1,
    ):
        with pytest.raises(tenarc.Mismatch, match="expected values to compare with the"):
            table.filter(condition).rows()
    with pytest.raises(tenarc.Mismatch):
        table.filter(col("mixed") > AT).rows()
    with pytest.raises(tenarc.Mismatch):
        col("at").is_in([np.datetime64("NaT")])


def test_values_of_pandas_keep_their_nanoseconds():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    time = pandas.Timestamp("2026-01-01T00:00:00.123456789")
    written = [time, pandas.NaT, pandas.Timedelta("1s 5ns"), pandas.Timestamp("2026-01-01", tz="Europe/Berlin")]
    first, missing, span, berlin = tenarc.loads(tenarc.dumps(written))
    assert first == time.to_datetime64() and missing is None and span == np.timedelta64(1_000_000_005, "ns")
    assert berlin == written[3] and str(berlin.tzinfo) == "Europe/Berlin"


def test_a_few_bytes_do_not_become_many_values():
    dates = ["type", "date", [], ["dict", u8(0), 1, u8(1)]]
    message = cbor2.dumps(
        Tag(TCOL, [1, ["array", 60_000, ["type", "decimal", [1, 0], u8(*[1] * 60_000)]], 1, dates])
    )
    assert len(tenarc.loads(message)[0]) == 60_000
    with pytest.raises(tenarc.Limit):
        tenarc.loads(message, limits=tenarc.Limits(max_alloc=60_000 * named.MEMORY))
