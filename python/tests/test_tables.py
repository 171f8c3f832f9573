"""Columns by path (SPEC Annex A), tables of values with one name (7.3), and how columns are written (7)."""

import contextlib
import gc
import io
import itertools
import random
import resource
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import cbor2
import numpy as np
import pytest
from described import describe

import tenarc
from tenarc import Some, Table, Tag
from tenarc.saved import Segment
from tenarc.tree import parse

TCOL, TENS, TBUF = (int.from_bytes(name, "big") for name in (b"TCOL", b"TENS", b"TBUF"))


def u8(*numbers: int) -> Tag:
    return Tag(64, bytes(numbers))


def of(dtype: str, tag: int, *numbers) -> Tag:
    return Tag(tag, np.array(numbers, dtype).tobytes())


def tensor(shape, elements, tag=40) -> Tag:
    return Tag(tag, [list(shape), elements])


def named(dtype: str, shape, payload: bytes) -> Tag:
    return Tag(TENS, [dtype, list(shape), "C", payload])


def archive_of(*values: tuple[Any, str | None], **options: Any) -> bytes:
    out = io.BytesIO()
    with tenarc.Writer(out, **options) as writer:
        for value, name in values:
            writer.save(value, name=name)
    return out.getvalue()


def archived(metadata: Any, *buffers: bytes) -> bytes:
    """An archive of hand-made metadata."""
    out = io.BytesIO()
    with tenarc.Writer(out) as writer:
        writer._save(cbor2.dumps(metadata), [np.frombuffer(buffer, np.uint8) for buffer in buffers], None)
    return out.getvalue()


@pytest.fixture
def opened(tmp_path) -> Iterator[Any]:
    """Opens the bytes of an archive as a file."""
    archives = []

    def open_bytes(data: bytes, **options: Any) -> tenarc.Archive:
        path = tmp_path / f"{len(archives)}.tenarc"
        path.write_bytes(data)
        archives.append(tenarc.open(path, **options))
        return archives[-1]

    yield open_bytes
    for archive in archives:
        archive.close()


@pytest.fixture
def buffers_read(monkeypatch) -> set[int]:
    """The numbers of the buffers that were read since the set was cleared."""
    numbers: set[int] = set()
    payload = Segment.payload

    def counted(segment: Segment, number: int, owned: bool) -> Any:
        numbers.add(number)
        return payload(segment, number, owned)

    monkeypatch.setattr(Segment, "payload", counted)
    return numbers


def as_list(value: Any) -> Any:
    """A value with lists in place of the arrays in it."""
    if isinstance(value, list):
        return [*map(as_list, value)]
    return value.tolist() if isinstance(value, np.ndarray) else value


# Columns by path


#: Columns of four rows that are tensors, with dtype and array.
TENSORS: dict[str, tuple[Any, str, Any]] = {
    "numbers": (of("<i2", 77, 1, -2, 3, 4), "i16", np.array([1, -2, 3, 4], "i2")),
    "booleans": (["bool", b"\x05"], "bool", np.array([True, False, True, False])),
    "tensors": (tensor([4, 2], u8(*range(8))), "u8", np.arange(8, dtype="u1").reshape(4, 2)),
    "tensors without dimensions": (tensor([4], u8(1, 2, 3, 4)), "u8", np.array([1, 2, 3, 4], "u1")),
    "packed": (named("f4", [4, 2], b"abcd"), "f4", tenarc.Raw("f4", (4, 2), b"abcd")),
    "unknown": (named("odd", [4, 7], b"abcdefgh"), "odd", tenarc.Raw("odd", (4, 7), b"abcdefgh")),
    "arrays": (["array", 2, u8(*range(8))], "u8", np.arange(8, dtype="u1").reshape(4, 2)),
    "arrays of bools": (["array", 2, ["bool", b"\x81"]], "bool", np.array([[1, 0], [0, 0], [0, 0], [0, 1]], bool)),
    "empty arrays of a type": (["array", 0, of("<f8", 86)], "f64", np.zeros((4, 0))),
    "arrays of tensors": (
        ["array", 1, tensor([4, 2, 1], u8(*range(8)))],
        "u8",
        np.arange(8, dtype="u1").reshape(4, 1, 2, 1),
    ),
    "arrays of arrays": (
        ["array", 1, ["array", 2, u8(*range(8))]],
        "u8",
        np.arange(8, dtype="u1").reshape(4, 1, 2),
    ),
    "arrays of packed": (
        ["array", 1, named("f4", [4, 2], b"abcd")],
        "f4",
        tenarc.Raw("f4", (4, 1, 2), b"abcd"),
    ),
    "tuple of tensors": (
        ["tuple", [tensor([4], u8(1, 2, 3, 4)), tensor([4], of("<i2", 77, -5, -6, -7, -8))]],
        "i16",
        np.array([[1, -5], [2, -6], [3, -7], [4, -8]], "i2"),
    ),
    "tuple of longer tensors": (
        ["tuple", [["array", 2, tensor([8], u8(*range(8)))], tensor([4, 2], of("<u4", 70, *range(8)))]],
        "u32",
        np.stack([np.arange(8, dtype="u4").reshape(4, 2)] * 2, axis=1),
    ),
    "tuple of packed": (
        ["tuple", [named("f4", [4, 2], b"abcd"), named("f4", [4, 2], b"efgh")]],
        "f4",
        tenarc.Raw("f4", (4, 2, 2), b"aebfcgdh"),
    ),
    "dates": (["type", "x/date", [], of("<i4", 78, 1, -2, 3, 4)], "i32", np.array([1, -2, 3, 4], "i4")),
    "tuple of dates": (
        ["tuple", [["type", "x/date", [], u8(1, 2, 3, 4)], ["type", "x/date", [], of("<i2", 77, -5, 6, 7, 8)]]],
        "i16",
        np.array([[1, -5], [2, 6], [3, 7], [4, 8]], "i2"),
    ),
    "arrays of a type": (
        ["type", "x/y", ["a"], ["array", 2, ["type", "x/date", [], u8(*range(8))]]],
        "u8",
        np.arange(8, dtype="u1").reshape(4, 2),
    ),
}

#: Columns of four rows that are not tensors, with the values.
OTHERS: dict[str, tuple[Any, list[Any]]] = {
    "texts": (["text", u8(1, 0, 3, 0), "aüb"], ["a", "", "üb", ""]),
    "bytes": (["bytes", 1, b"abcd"], [b"a", b"b", b"c", b"d"]),
    "unit": (["unit"], [None] * 4),
    "optional numbers": (["option", b"\x0a", u8(7, 8)], [None, 7, None, 8]),
    "numbers of which none is missing": (["option", b"\x0f", u8(1, 2, 3, 4)], [1, 2, 3, 4]),
    "optional fields": (["present", b"\x05", u8(1, 2)], [1, None, 2, None]),
    "some none": (["option", b"\x03", ["option", b"\x01", u8(5)]], [5, Some(None), None, None]),
    "lists of different lengths": (["list", u8(2, 0, 1, 0), ["bool", b"\x05"]], [[True, False], [], [True], []]),
    "arrays of texts": (["array", 1, ["text", 1, "abcd"]], [["a"], ["b"], ["c"], ["d"]]),
    "empty arrays": (["array", 0, ["unit"]], [[]] * 4),
    "tuple of two types": (
        ["tuple", [of("<u8", 71, 1, 2, 3, 4), of("<i1", 72, -1, -2, -3, -4)]],
        [[1, -1], [2, -2], [3, -3], [4, -4]],
    ),
    "tuple of a number and a bool": (
        ["tuple", [["bool", b"\x01"], u8(1, 2, 3, 4)]],
        [[True, 1], [False, 2], [False, 3], [False, 4]],
    ),
    "dict of texts": (["dict", u8(0, 1, 0, 0), 2, ["text", 1, "ab"]], ["a", "b", "a", "a"]),
    "dict of structs": (
        ["dict", u8(0, 1, 0, 0), 2, {"x": u8(1, 2)}],
        [{"x": 1}, {"x": 2}, {"x": 1}, {"x": 1}],
    ),
    "categories": (
        ["type", "category", [0], ["dict", u8(0, 1, 0, 0), 2, ["text", 1, "ab"]]],
        ["a", "b", "a", "a"],
    ),
    "struct": ({"x": u8(1, 2, 3, 4)}, [{"x": n} for n in (1, 2, 3, 4)]),
    "map": (["map", 1, ["text", 1, "abcd"], u8(1, 2, 3, 4)], [{"a": 1}, {"b": 2}, {"c": 3}, {"d": 4}]),
    "enum": (["enum", u8(1, 0, 1, 1), ["A", "B"]], ["B", "A", "B", "B"]),
    "items": (["rows", [1, "a", None, 0.5]], [1, "a", None, 0.5]),
}


def equal(found: Any, want: Any) -> bool:
    if isinstance(want, tenarc.Raw):
        return found == want
    if isinstance(want, np.ndarray):
        return isinstance(found, np.ndarray) and found.dtype == want.dtype and np.array_equal(found, want)
    return type(found) is list and found == want


def test_columns_are_read_by_path_and_listed(opened):
    """All kinds at once, in one group and in two."""
    fields = {name: column for name, (column, *_) in (TENSORS | OTHERS).items()}
    for groups in (1, 2):
        archive = opened(archived({"log": Tag(TCOL, [4, {"at": fields}] * groups)}))
        archive.verify()
        listed = {info.path: info for info in archive.tensors()}
        assert set(listed) == {f"log.at.{name}" for name in TENSORS} | {"log.at.struct.x"}
        for name, (_, dtype, want) in TENSORS.items():
            path = f"log.at.{name}"
            if groups == 2 and isinstance(want, tenarc.Raw):
                want = tenarc.Raw(want.dtype, (8, *want.shape[1:]), np.concatenate([want.data] * 2))
            elif groups == 2:
                want = np.concatenate([want, want])
            for found in (archive[path], archive.tensor(path), archive["/" + path.replace(".", "/")]):
                assert equal(found, want), name
            info = listed[path]
            size = want.data.nbytes if isinstance(want, tenarc.Raw) else want.nbytes
            assert (info.dtype, info.shape, info.order, info.nbytes) == (dtype, want.shape, "C", size)
            assert equal(archive.table("log")["at"][name], want)
        for name, (_, rows) in OTHERS.items():
            path = f"log.at.{name}"
            assert equal(archive[path], rows * groups), name
            with pytest.raises(tenarc.Mismatch, match="expected a tensor"):
                archive.tensor(path)


def test_a_path_that_ends_with_a_row_means_the_row(opened):
    fields = {name: column for name, (column, *_) in (TENSORS | OTHERS).items()}
    archive = opened(archived({"log": Tag(TCOL, [4, fields, 0, ["unit"], 4, fields])}))
    # A group without rows says nothing about the columns.
    assert [info.shape[0] for info in archive.tensors()] == [8] * (len(TENSORS) + 1)
    for name, row in itertools.product(fields, range(9)):
        found, want = (archive.get(path, "none") for path in (f"log.{name}.{row}", f"log.{row}.{name}"))
        assert type(found) is type(want)
        assert as_list(found) == as_list(want)
        assert (isinstance(found, str) and found == "none") == (
            row == 8 or (name == "optional fields" and row % 4 in (1, 3))
        )
    # What follows is a path in the value of that row.
    assert (
        archive["log.dict of structs.1.x"] == 2 == archive["log.1.dict of structs.x"] == archive["log.struct.5.x"]
    )
    assert archive["log.arrays of texts.2.0"] == "c" and archive["/log/map/3/d"] == 4
    for path in (
        "log.numbers.03",
        "log.numbers.-1",
        "log.numbers.3.0",
        "log.tensors.3.0",
        "log.none",
        "log.struct.y",
    ):
        assert archive.get(path) is None
        with pytest.raises(tenarc.NotFound):
            archive[path]


def test_values_between_the_fields_can_be_missing(opened):
    request = {"size": of("<u2", 69, 5, 6), "name": ["option", b"\1", ["text", 1, "x"]]}
    groups = [4, {"request": ["option", b"\x0a", request]}, 2, {"other": u8(1, 2)}]
    groups += [
        2,
        {"request": ["present", b"\2", ["option", b"\1", {"size": u8(9)}]]},
        1,
        ["rows", [{"request": 5}]],
    ]
    groups += [2, ["rows", [{"request": {"size": 0.5}}, {}]]]
    archive = opened(archived({"log": Tag(TCOL, groups)}))
    assert archive["log.request.size"] == [None, 5, None, 6, None, None, None, 9, None, 0.5, None]
    assert archive["log.request.name"] == [None, "x", *[None] * 9]
    rows = archive["log"]
    for row in range(11):
        for name in ("size", "name"):
            found = archive.get(f"log.request.{name}.{row}", "none")
            assert found == archive.get(f"log.{row}.request.{name}", "none")
            request = rows[row].get("request")
            assert found == (request.get(name, "none") if isinstance(request, dict) else "none")
    assert [info.path for info in archive.tensors()] == []


def test_only_tensors_that_are_the_same_in_all_groups_are_tensors(opened):
    first = {"a": u8(1), "b": of("<u8", 71, 1), "c": tensor([1, 2], u8(1, 2)), "d": u8(1), "e": u8(1)}
    second = {"a": u8(2), "b": of("<i2", 77, -3), "c": tensor([1, 1], u8(3)), "e": ["option", b"\1", u8(1)]}
    archive = opened(archived({"log": Tag(TCOL, [1, first, 1, second])}))
    (info,) = archive.tensors()
    assert info == tenarc.TensorInfo("log.a", "u8", (2,), "C", 2, None)
    assert archive["log.a"].tolist() == [1, 2]
    # The values are the same, but these are no tensors.
    assert archive["log.b"].tolist() == [1, -3] and archive["log.b"].dtype == np.int64
    assert [row.tolist() for row in archive["log.c"]] == [[1, 2], [3]]
    assert archive["log.d"] == [1, None] and archive["log.e"] == [1, 1]
    for name in "bcde":
        with pytest.raises(tenarc.Mismatch, match="several dtypes"):
            archive.tensor(f"log.{name}")


@pytest.mark.parametrize(
    ("types", "want"),
    [
        (("u8", "i16"), "i16"),
        (("u16", "i16"), "i32"),
        (("u16", "i32", "u8"), "i32"),
        (("u32", "i8"), "i64"),
        (("u8", "i8"), "i16"),
        (("u8", "u64"), "u64"),
        (("i8", "i64", "u32"), "i64"),
        (("u64", "i8"), None),
        (("u64", "i64"), None),
        (("u8", "f32"), None),
        (("f32", "f64"), None),
        (("u8", "bool"), None),
    ],
)
def test_integers_of_several_types_are_widened(types, want, opened):
    """Groups, the values of one table, and the columns of a tuple (SPEC Annex A)."""

    def column(name: str) -> Any:
        numbers = np.array([1, 0]).astype(tenarc.dtypes.BY_NAME[name].numpy)
        return named(name, [2], numbers.tobytes())

    for order in itertools.permutations(types):
        groups = [item for name in order for item in (2, {"a": column(name), "b": u8(1, 2)})]
        archive = opened(archived(Tag(TCOL, [*groups, 0, {"a": ["text", 0, ""]}])))
        parts = [cbor2.dumps(Tag(TCOL, [2, {"a": column(name)}])) for name in order]
        out = io.BytesIO()
        with tenarc.Writer(out) as writer:
            for part in parts:
                writer._save(part, [], "t")
        joined = opened(out.getvalue()).table("t")
        tuples = opened(archived(Tag(TCOL, [2, {"a": ["tuple", [*map(column, order)]]}])))
        if want is None:
            assert [info.path for info in archive.tensors()] == ["b"] and list(tuples.tensors()) == []
            for found in (archive, tuples):
                with pytest.raises(tenarc.Mismatch):
                    found.tensor("a")
            assert list(joined["a"]) == [1, 0] * len(types)
            continue
        dtype = tenarc.dtypes.BY_NAME[want].numpy
        info, _ = archive.tensors()
        assert (info.path, info.dtype, info.shape) == ("a", want, (2 * len(types),))
        assert info.nbytes == 2 * len(types) * dtype.itemsize and info.buffer is None
        for array in (archive["a"], archive.tensor("a"), joined["a"]):
            assert array.dtype == dtype and array.tolist() == [1, 0] * len(types)
        (info,) = tuples.tensors()
        assert (info.dtype, info.shape, info.nbytes) == (want, (2, len(types)), 2 * len(types) * dtype.itemsize)
        assert tuples.tensor("a").dtype == dtype and tuples["a"].tolist() == [[1] * len(types), [0] * len(types)]


def test_columns_that_rust_wrote(rust, tmp_path):
    rust.run("records-write", tmp_path)
    compared = 0
    for path in sorted(tmp_path.glob("*.tenarc")):
        with tenarc.open(path) as archive:
            archive.verify()
            value = archive.load(numbers=True)
            for info in archive.tensors():
                found = archive.tensor(info.path)
                assert found.shape == info.shape and info.order == "C"
                names = info.path.split(".")
                rows = value[names.pop(0)] if isinstance(value, dict) else value
                assert len(rows) == info.shape[0]
                for row in range(0, len(rows), 7):
                    want = rows[row]
                    for name in names:
                        want = want[name]
                    assert found[row].tolist() == as_list(want)
                    assert as_list(archive[f"{info.path}.{row}"]) == as_list(want)
                compared += 1
            if isinstance(value, list):
                table = archive.table("")
                assert len(table) == len(value) and describe(table[:50]) == describe(value[:50])
    assert compared >= 10


@pytest.mark.parametrize("length", [1, 5000])
@pytest.mark.parametrize("count", [3, 3000])
@pytest.mark.parametrize("form", [Table, list])
def test_byte_strings_in_tables_are_bytes_wherever_they_are_stored(form, count, length, opened):
    if length * count > 1 << 20:
        count = 100
    rows = [{"id": n, "blob": b"%d" % (n % 10) * length, "at": {"list": [b"x" * length]}} for n in range(count)]
    rows[1]["blob"] = None
    archive = opened(archive_of((form(rows), "log"), (form(rows), "log")))
    assert archive.segment(0).header.lengths or length * count < 2048 or (form is list and length < 2048)
    table = archive.table("log")
    found = [
        table[:],
        table.rows(),
        [*table],
        table[::-1][::-1],
        [table[row] for row in range(len(table))],
        [{"id": n % count, "blob": blob, "at": rows[n % count]["at"]} for n, blob in enumerate(table["blob"])],
        [{**rows[n % count], "at": {"list": value}} for n, value in enumerate(table["at"]["list"])],
        [{**row, "blob": blob} for row, blob in zip(rows * 2, table.columns()["blob"], strict=True)],
    ]
    for again in found:
        assert again == rows * 2
        blobs = [blob for row in again for blob in (row["blob"], *row["at"]["list"]) if blob is not None]
        assert {*map(type, blobs)} == {bytes}
    assert table["blob"][1] is None and type(table["0.blob"]) is bytes
    if form is Table:
        segment = archive.segment(0)
        for found in (segment["2.blob"], segment.view()[2]["blob"], segment.view(tables=True)["blob"][2]):
            assert type(found) is bytes and found == rows[2]["blob"]


def test_rows_with_one_byte_string_count_as_copies_of_it(opened):
    """Each row has a copy, so a short file cannot make the rows of a call take any amount of memory."""
    rows = [{"a": bytes(1 << 20)} for _ in range(100)]
    data = archive_of((rows, "log"), dedup=True)
    assert len(data) < 2 << 20
    table = opened(data, limits=tenarc.Limits(max_alloc=50 << 20)).table("log")
    for read in (table.rows, lambda: [*table], lambda: table["a"], table.columns):
        with pytest.raises(tenarc.Limit, match="more memory than the limit"):
            read()
    assert table[99] == {"a": bytes(1 << 20)} and len(table[:40]) == 40


def test_a_column_in_one_group_is_a_view_of_the_file(opened, tmp_path):
    count = 5000
    table = Table(
        {"step": np.arange(count), "image": np.ones((count, 2, 3), "f4"), "ok": np.arange(count) % 2 == 0}
    )
    archive = opened(archive_of(({"log": table}, None)))
    listed = {info.path: info for info in archive.tensors()}
    assert listed["log.step"].buffer is not None and listed["log.ok"].buffer is None
    where = archive.segment(0).buffers[listed["log.image"].buffer][0]
    steps, images = archive["log.step"], archive.tensor("log.image")
    for array in (steps, images):
        assert not array.flags.writeable and not array.flags.owndata
    start = np.frombuffer(archive._source._memory, np.uint8).ctypes.data
    assert images.ctypes.data == start + where


def wide(count: int = 100) -> Table:
    return Table(
        {
            "step": np.arange(count),
            "name": [f"name {n}" for n in range(count)],
            "at": [{"x": n / 2, "tags": [n] * 2} for n in range(count)],
            "best": [{"y": n} if n % 3 else None for n in range(count)],
        }
    )


def test_one_column_is_read_without_the_buffers_of_others(opened, buffers_read):
    archive = opened(archive_of(({"log": wide(), "other": np.ones(500)}, None), inline_below=1))
    buffers = {"step": {0}, "name": {1, 2}, "at.x": {3}, "at.tags": {4}, "best": {5, 6}, "best.y": {5, 6}}
    table = archive.table("log")
    assert table.names() == ["step", "name", "at", "best"] and len(table) == 100
    assert table.dtypes == {"step": "i64", "name": "text", "at": "struct", "best": "optional struct"}
    assert table["at"].dtypes == {"x": "f64", "tags": "list of u8"}
    assert not buffers_read
    for name, numbers in buffers.items():
        for read in (archive.__getitem__, lambda path: archive[f"{path}.4"], lambda path: table[path[4:]]):
            buffers_read.clear()
            read(f"log.{name}")
            assert buffers_read == numbers, name
    buffers_read.clear()
    # Not even the lengths of lists say whether they are tensors.
    assert [info.path for info in archive.tensors()] == ["log.step", "log.at.x", "log.at.tags", "other"]
    assert not buffers_read


def test_nulls_on_the_way_to_a_nested_field_are_one_null(opened):
    rows = [
        {"request": {"size": 0, "tags": [7]}, "twice": Some(None)},
        {"request": None, "twice": None},
        {"request": {"size": None}, "twice": {"size": 3}},
        {"twice": {"size": None}},
        {"request": {"size": 4, "tags": [1, 2]}},
    ]
    archive = opened(archive_of((Table(rows), "log")))
    table = archive.table("log")
    for column in (lambda path: list(table[path]), lambda path: list(archive.segment(0)[path])):
        assert column("request.size") == [0, None, None, None, 4]
        assert [tags if tags is None else list(tags) for tags in column("request.tags")] == [
            [7],
            None,
            None,
            None,
            [1, 2],
        ]
        assert column("twice.size") == [None, None, 3, None, None]


def test_paths_that_lead_to_several_values_are_json_pointers(opened):
    one = np.ones(1, "u1")
    fields = {"a.b": u8(1), "a": {"b": u8(2), "": u8(3)}, "3.x": u8(4), "x": u8(5), "7": u8(6), "/s": u8(7)}
    value = {"log": Tag(TCOL, [1, fields]), "log.x": tensor([1], u8(8)), "log.y": tensor([1], u8(9))}
    value |= {"": Tag(TCOL, [1, {"z": u8(10)}]), "q": Tag(TCOL, [1, {"v": u8(11)}])}
    archive = opened(archived(value))
    listed = [info.path for info in archive.tensors()]
    assert listed == [
        *("/log/a.b", "/log/a/b", "log.a.", "/log/3.x", "/log/x", "/log/7", "log./s"),
        *("/log.x", "/log.y", ".z", "q.v"),
    ]
    # Only a JSON Pointer leads to the field `7`. In a dotted path, this would be row 7.
    assert [archive.tensor(path).tolist() for path in listed] == [[n] for n in range(1, 12)]
    for path in ("log.a.b", "log.x"):
        with pytest.raises(tenarc.NotFound, match="several"):
            archive[path]
    assert archive.get("log.7") is None and archive["log.0.7"] == 6
    # The whole value can be the sequence.
    archive = opened(archive_of((Table({"/a": one, "b": one, "": one}), None)))
    listed = [info.path for info in archive.tensors()]
    assert listed == ["/~1a", "b", "/"]
    assert all(archive.tensor(path).tolist() == [1] for path in listed)


def test_a_decimal_number_in_a_json_pointer_is_a_field_if_there_is_one(opened):
    fields = {"2": u8(1, 2, 3), "at": {"1": {"x": u8(4, 5, 6)}}, "t": ["tuple", [u8(7, 8, 9), ["text", 1, "abc"]]]}
    archive = opened(archived({"log": Tag(TCOL, [3, fields])}))
    listed = [info.path for info in archive.tensors()]
    assert listed == ["/log/2", "/log/at/1/x"] and [archive.tensor(path)[0] for path in listed] == [1, 4]
    assert set(listed) < set(archive.keys()) and archive["/log/2/1"] == 2 and archive["/log/at/1/x/2"] == 6
    assert (
        archive["log.2"]["2"] == 3 == archive["/log/2"][2]
        and archive["log.at.1.1.x"] == 5
        and archive["/log/0"]["2"] == 1
    )
    # Elements of tuples are no fields.
    assert archive["/log/t/1"] == [8, "b"] and archive["log.t.1"] == [8, "b"] and archive["/log/t/1/0"] == 8
    assert archive.get("/log/2/x") is None and archive.get("log.at.2.x") is None


def test_keys_that_occur_twice_have_no_columns(opened):
    archive = opened(archived({"7": Tag(TCOL, [1, {"a": u8(1)}]), 7: Tag(TCOL, [1, {"a": u8(2), "b": u8(3)}])}))
    with pytest.raises(tenarc.Mismatch, match="occurs twice"):
        list(archive.tensors())
    with pytest.raises(tenarc.NotFound, match="several"):
        archive["7.a"]
    assert archive["7.b"].tolist() == [3]


# Tables of one value


def test_rows_are_read_group_by_group(opened, buffers_read):
    rows = [{"step": n, "name": f"n{n}" + "x" * (n % 2)} for n in range(90)]
    groups = [group for start in (0, 30, 60) for group in Table(rows[start : start + 30]).groups]
    archive = opened(archive_of((Table.of(groups), "log"), inline_below=1))
    table = archive.table("log")
    for part, numbers in (
        (slice(10, 20), {0, 1, 2}),
        (slice(29, 31), set(range(6))),
        (slice(60, 1000), {6, 7, 8}),
        (slice(5, 5), set()),
        (slice(70, 60, -3), {6, 7, 8}),
        (slice(-5, None), {6, 7, 8}),
    ):
        buffers_read.clear()
        assert archive.table("log")[part] == rows[part]
        assert buffers_read == numbers, part
    assert list(table) == rows == table.rows() and table[-1] == rows[-1]
    # A row after another one in the same group does not read the group again.
    assert table[40] == rows[40]
    buffers_read.clear()
    assert table[41] == rows[41] and not buffers_read
    stopped = iter(archive.table("log"))
    assert next(stopped) == rows[0] and buffers_read == {0, 1, 2}


def test_tables_are_read_by_path_too(opened):
    table = opened(archive_of((wide(), "log"))).table("log")
    assert table["at.x"].tolist() == [n / 2 for n in range(100)] and table["at.x.3"] == 1.5 == table["3.at.x"]
    assert table["/at/x/3"] == 1.5 and table["at"]["tags"].shape == (100, 2) and table["7"]["step"] == 7
    assert table["best.y"][:4] == [None, 1, 2, None] and table["best"][:2] == [None, {"y": 1}]
    for wrong in ("none", "at.none", "100.at", "at.x.100"):
        with pytest.raises(tenarc.NotFound, match="no column"):
            table[wrong]


def test_columns_in_rows_are_lists_by_path_and_tables_in_tables(opened):
    archive = opened(archived({"log": Tag(TCOL, [1, {"a": ["rows", [Tag(TCOL, [2, {"x": u8(1, 2)}])]]}])}))
    for found in (archive["log.0.a"], archive["log.0"]["a"], archive["log.a.0"], archive["log.a"][0]):
        assert type(found) is list and found == [{"x": 1}, {"x": 2}]
    assert archive["log.0.a.1.x"] == 2 and archive.get("log.0.a.x") is None
    assert archive.table("log")[0]["a"]["x"].tolist() == [1, 2] == archive.table("log")["0.a.x"].tolist()


def test_reading_by_path_leaves_nothing_behind(tmp_path):
    """The file is unmapped when the archive is closed, without a collection of cycles."""
    tenarc.save(tmp_path / "a", {"log": wide()}, inline_below=1)
    gc.disable()
    try:
        with tenarc.open(tmp_path / "a") as archive:
            mapped = archive._source._memory
            assert archive["log.3.step"] == 3 and archive["log.at.x.4"] == 2 and archive["log.step"][5] == 5
            assert archive.table("log")[3]["name"] == "name 3"
            with pytest.raises(tenarc.Mismatch, match="found a column"):
                archive.table("log.at")
        assert mapped.closed
    finally:
        gc.enable()


def test_tables_stay_valid_after_the_archive_is_closed(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(archive_of((wide(), "log"), (wide(), "log")))
    with tenarc.open(path) as archive:
        table, one = archive.table("log"), archive.segment(0).table("")
    assert table["step"].tolist() == [*range(100), *range(100)] and table[150]["at"]["x"] == 25
    assert one["step"].tolist() == list(range(100)) and len(list(table)) == 200


# Tables of several values


def days() -> list[Any]:
    """Sequences of rows, each stored in another way."""
    rows = [{"step": n, "loss": n / 4, "name": f"n{n}", "w": np.full(2, n, "f4")} for n in range(50)]
    return [
        Table(rows[:20]),
        rows[20:23],
        [],
        Table([]),
        Tag(4242, Table(rows[23:40])),
        Tag(4242, rows[40:41]),
        Table({name: [row[name] for row in rows[41:]] for name in rows[0]}),
    ]


def test_values_with_one_name_are_one_table(opened):
    want = [{"step": n, "loss": n / 4, "name": f"n{n}"} for n in range(50)]
    for inline_below in (1, 10**9):
        saved = itertools.chain.from_iterable(((day, "log"), ({"x": 1}, None), (5, "other")) for day in days())
        archive = opened(archive_of(*saved, inline_below=inline_below))
        table = archive.table("log")
        assert len(table) == 50 and table.names() == ["step", "loss", "name", "w"]
        assert table["step"].dtype.kind in "iu" and table["step"].tolist() == list(range(50))
        assert table["loss"].tolist() == [n / 4 for n in range(50)] and table["name"] == [
            f"n{n}" for n in range(50)
        ]
        assert table["w"].dtype == np.float32 and table["w"].tolist() == [[n, n] for n in range(50)]
        for found in (list(table), table.rows(), table[:], [table[n] for n in range(50)]):
            assert [row.pop("w").tolist() for row in found] == [[n, n] for n in range(50)] and found == want
        assert [row["step"] for row in table[18:43]] == list(range(18, 43)) and table[-1]["name"] == "n49"
        assert table["22.name"] == "n22" == table["name.22"] and table["21.w"].tolist() == [21, 21]
        columns = table.columns()
        assert columns["step"].shape == (50,) and [row.tolist() for row in columns["w"]] == [
            [n] * 2 for n in range(50)
        ]
        # The table can be saved again.
        again = tenarc.loads(tenarc.dumps(table))
        assert [row["step"] for row in again] == list(range(50))


def test_tables_that_are_appended_to(tmp_path):
    path = tmp_path / "log.tenarc"
    with open(path, "wb") as file, tenarc.Writer(file) as out:
        out.save(Table([{"step": 0, "loss": 1.0}]), name="log")
    for day in range(1, 70):
        with tenarc.append(path, sync=False) as out:
            rows = [{"step": 2 * day + n, "loss": 0.5} | ({"late": day} if day > 60 else {}) for n in range(2)]
            out.save(Table(rows) if day % 7 else rows, name="log")
        with tenarc.open(path) as archive:
            assert len(archive.table("log")) == 2 * day + 1
    with tenarc.open(path) as archive:
        table = archive.table("log")
        assert table["step"].tolist() == [0, *range(2, 140)] and table["loss"].dtype == np.float64
        assert table["late"] == [None] * 121 + [day for day in range(61, 70) for _ in range(2)]
        assert table.dtypes["loss"] == "f64 or any"


def test_iterating_keeps_one_value_in_memory(tmp_path):
    peaks = []
    for days in (3, 12):
        with open(tmp_path / "a", "wb") as file, tenarc.Writer(file, inline_below=10**9) as out:
            for day in range(days):
                texts = [f"{day} {n} " + "x" * 1000 for n in range(1000)]
                out.save(Table({"text": texts}) if day % 2 else [{"text": text} for text in texts], name="log")
        tracemalloc.start()
        with tenarc.open(tmp_path / "a") as archive:
            table = archive.table("log")
            assert sum(len(row["text"]) for row in table) > 1000 * 1000 * days
            assert table[-1]["text"].startswith(f"{days - 1} 999 ")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_arrays_of_other_values_are_tables_too(opened):
    numbers = tenarc.Numbers(np.arange(2000), "<u2")
    values = [(numbers, "n"), (numbers[:3], "n"), ([1, "a", None], "n"), (Table({"a": [1]}), "n")]
    archive = opened(archive_of(*values))
    table = archive.table("n")
    assert len(table) == 2007 and table[1999] == 1999 and table[2000:] == [0, 1, 2, 1, "a", None, {"a": 1}]
    assert table.names() == ["a"]
    with pytest.raises(tenarc.Mismatch, match="not all structs"):
        table["a"]


@pytest.mark.parametrize("value", [{"a": 1}, 5, "text", None, np.ones(3), b"bytes", bytes(5000), np.ones(5000)])
def test_other_values_are_no_tables(opened, value):
    archive = opened(archive_of(([{"a": 1}], "log"), (value, "log")))
    with pytest.raises(tenarc.Mismatch, match=r"expected a sequence.* in segment 1"):
        archive.table("log")


def test_a_name_goes_before_a_path(opened):
    archive = opened(archive_of(({"log": Table([{"a": 1}])}, None)))
    assert archive.table("log")["a"].tolist() == [1]
    with pytest.raises(tenarc.NotFound):
        archive.table("other")
    archive = opened(archive_of((Table([{"log": 1}]), "log")))
    assert archive.table("log")["log"].tolist() == [1]
    archive = opened(archive_of((1, "a"), (2, "b")))
    with pytest.raises(tenarc.NotFound):
        archive.table("log")


def test_plain_rows_keep_their_values(opened):
    rows = [{"a": [1, 2], "b": {"x": 1}, "c": Some(None), "d": None}, {"a": (3,), "b": {}, "e": b"x" * 3000}]
    archive = opened(archive_of((rows, "log")))
    table = archive.table("log")
    assert table[0] == {"a": [1, 2], "b": {"x": 1}, "c": Some(None), "d": None}
    assert table["b.x"] == [1, None] and table["0.c"] == Some(None) and table["c"] == [Some(None), None]
    assert table["b"].rows() == [{"x": 1}, {}] and bytes(table["e"][1]) == b"x" * 3000
    # Integers of plain rows do not get the narrowest type, in which sums would overflow.
    archive = opened(archive_of(([{"n": 200}, {"n": 100}], "log"), ([{"n": 2**63}], "big"), ([{"n": -1}], "big")))
    assert archive.table("log")["n"].dtype == np.int64 and archive.table("log")["n"].sum() == 300
    assert archive.table("big")["n"] == [2**63, -1]


def test_a_plain_row_reads_only_its_own_buffers(opened, buffers_read):
    rows = [{"w": np.full(1000, n), "v": np.full(1000, -n)} for n in range(4)]
    archive = opened(archive_of((rows, "log")))
    table = archive.table("log")
    assert table[2]["w"][0] == 2 and buffers_read == {4, 5}
    buffers_read.clear()
    assert table["v"].shape == (4, 1000) and buffers_read == {1, 3, 5, 7}


# Writing


def groups_in(table: Table) -> list[tuple[int, Any]]:
    tree = parse(tenarc.dumps(table), 0, tenarc.Limits())
    return list(zip(tree.value[::2], tree.value[1::2], strict=True))


@pytest.mark.parametrize(
    ("rows", "want"),
    [
        ([{"a": 1}, {"a": 2, "b": 3}], {"a": u8(1, 2), "b": ["present", b"\2", u8(3)]}),
        ([{"b": 1}, {"a": 2, "b": 3}], {"a": ["present", b"\2", u8(2)], "b": u8(1, 3)}),
        ([{}, {"a": None}], {"a": ["present", b"\2", ["option", b"\0", ["unit"]]]}),
        (
            [{"a": 1, "c": 2}, {"a": 1, "b": "x", "c": 2}],
            {"a": u8(1, 1), "b": ["present", b"\2", ["text", 1, "x"]], "c": u8(2, 2)},
        ),
        ([{"a": 1}, {"b": 2}], {"a": ["present", b"\1", u8(1)], "b": ["present", b"\2", u8(2)]}),
        ([{"a": 1, "b": 2}, {"b": 2, "a": 1}], ["rows", [{"a": 1, "b": 2}, {"b": 2, "a": 1}]]),
        ([{"a": 1}, {1: 2}], ["rows", [{"a": 1}, {1: 2}]]),
    ],
)
def test_missing_keys_are_optional_fields(rows, want):
    assert tenarc.dumps(Table(rows)) == cbor2.dumps(Tag(TCOL, [2, want]))
    found = tenarc.loads(tenarc.dumps(Table(rows)))
    assert found == rows and [list(row) for row in found] == [list(row) for row in rows]


def test_maps_with_many_different_keys_are_not_fields():
    rows = [{f"key {n}": n} for n in range(3000)]
    message = tenarc.dumps(Table(rows))
    assert tenarc.loads(message) == rows and len(message) < 3000 * 20
    # Keys that most rows lack are fields, if there are few.
    rows = [{"step": n} | ({f"k{n % 60}": n} if n % 50 == 0 else {}) for n in range(3000)]
    ((_, column),) = groups_in(Table(rows))
    assert isinstance(column, Mapping) and tenarc.loads(tenarc.dumps(Table(rows))) == rows


def test_random_missing_keys_come_back():
    dice = random.Random(5)
    for _ in range(300):
        names = [f"k{n}" for n in range(dice.randrange(1, 8))]
        rows = [
            {name: dice.choice((1, None, "x", [1], {"y": 2})) for name in names if dice.random() < 0.7}
            for _ in range(dice.randrange(1, 30))
        ]
        if dice.random() < 0.2:
            rows = [dict(sorted(row.items(), key=lambda _: dice.random())) for row in rows]
        found = tenarc.loads(tenarc.dumps(Table(rows)))
        assert [list(row) for row in found] == [list(row) for row in rows]
        assert [{name: as_list(value) for name, value in row.items()} for row in found] == rows


MIB = 1 << 20


@pytest.mark.parametrize(
    ("rows", "want"),
    [
        ([{"a": "x" * MIB}] * 40, [16, 16, 8]),
        ([{"a": bytes(5 * MIB)}] * 9, [4, 4, 1]),
        ([{"a": np.zeros(MIB // 8)}] * 20, [16, 4]),
        ([{"a": "x"}, {"a": "y" * 20 * MIB}, {"a": "z"}], [2, 1]),
        ([{"a": {"b": ["x" * MIB]}}] * 17, [16, 1]),
        ([{"a": None if n % 2 else "x" * MIB} for n in range(40)], [31, 9]),
        ([{"a": "x" * MIB} | ({"b": 1} if n % 2 else {}) for n in range(17)], [16, 1]),
        ([{"a": ["x" * MIB, 5]}] * 17, [16, 1]),
        ([{"a": float(n)} for n in range(70_000)], [65536, 70_000 - 65536]),
    ],
)
def test_a_group_ends_at_16_mib(rows, want):
    assert [group.count for group in Table(rows).groups] == want
    columns = Table({"a": [row["a"] for row in rows]})
    assert [group.count for group in columns.groups] == want
    found = tenarc.loads(tenarc.dumps(Table(rows)), tables=True)
    for row in (0, want[0] - 1, want[0], len(rows) - 1):
        assert {name: as_list(value) for name, value in found[row].items()} == {
            name: as_list(value) for name, value in rows[row].items()
        }


def test_groups_of_arrays_end_at_16_mib():
    values = np.arange(5 * MIB // 2).reshape(-1, 512)
    # A row has 4096 bytes, and another byte in the other column.
    for table, want in (
        (Table({"a": values}), [4096, 1024]),
        (Table({"a": values, "b": np.zeros(len(values), "u1")}), [4096, 1024]),
        (Table({"a": values.reshape(-1, 8)}), [65536, 262_144 + 65536 - 65536 * 4]),
    ):
        counts = [group.count for group in table.groups]
        assert counts[0] == want[0] and counts[-1] == want[1] and sum(counts) == len(table)
        assert np.array_equal(table["a"].reshape(-1), values.reshape(-1))


def test_a_group_goes_on_after_the_limit_of_rows():
    """Rows after a full group are not ended where the rows that were looked at together end."""
    rows = [{"a": "x" * 1500}] * 140_000
    # A length takes a byte.
    full = -(-16 * MIB // 1501)
    assert [group.count for group in Table(rows).groups] == [full] * (140_000 // full) + [140_000 % full]


def test_a_dict_of_arrays_is_a_table_in_an_archive(tmp_path):
    columns = {"score": np.linspace(0, 1, 3000), "image": np.ones((3000, 2, 2), "u1"), "text": ["x"] * 3000}
    tenarc.save(tmp_path / "a", Table(columns), name="log")
    with tenarc.open(tmp_path / "a") as archive:
        found = archive.table("log").columns()
    assert np.array_equal(found["score"], columns["score"]) and found["text"] == columns["text"]
    assert found["image"][5].tolist() == [[1, 1], [1, 1]] and len(found["image"]) == 3000


def test_a_data_frame_is_made_in_one_line(opened):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    archive = opened(archive_of(*((day, "log") for day in days())))
    frame = pandas.DataFrame(archive.table("log").columns())
    assert frame.shape == (50, 4) and frame["loss"].dtype == np.float64 and frame["w"][7].tolist() == [7, 7]
    assert list(pandas.DataFrame(wide().columns())) == ["step", "name", "at", "best"]


# Input that lies


def refuses(archive: tenarc.Archive, path: str, said: str, kind: type[tenarc.Error] = tenarc.Damaged) -> None:
    with pytest.raises(kind, match=said) as caught:
        archive[path]
    assert caught.value.path == path and caught.value.offset is not None


WRONG: list[tuple[Any, str]] = [
    (u8(1, 2, 3), "expected 4"),
    (Tag(TBUF, ["u8", 0]), "expected 4"),
    (Tag(TBUF, ["u8", 7]), "no buffer 7"),
    (Tag(TBUF, [0]), "."),
    (["bool", b""], "expected 1 bytes"),
    (["bool", b"\x10"], "unused bits"),
    (["bool", Tag(TBUF, [0])], "expected 1 bytes"),
    (tensor([3, 2], u8(*range(6))), "expected 4 rows"),
    (tensor([4, 2], u8(*range(8)), tag=1040), "order C"),
    (named("bool", [4, 1], b"\0\1\2\0"), "bool 2 is 2"),
    (["array", 2, u8(1, 2, 3)], "expected 8"),
    (["array", 1 << 62, u8(1)], "overflows"),
    (["array", u8(1, 1, 1, 1), u8(1, 2, 3, 4)], "expected an unsigned integer"),
    (["list", 1, u8(1, 2, 3, 4)], "expected a typed array"),
    (["list", u8(1, 1, 1, 1), u8(1, 2, 3, 4)], "must be a column of kind array"),
    (["list", of("<u8", 71, *[1 << 62] * 4), u8(1)], "overflows"),
    (["list", u8(1, 1), u8(1, 2)], "expected 4 numbers, found 2"),
    (["list", of("<i1", 72, 1, 1, 1, 1), u8(1, 2, 3, 4)], "found i8"),
    (["array", 1 << 40, ["bool", bytes(3)]], "expected .* bytes for"),
    (["tuple", [u8(1, 2, 3, 4), u8(1)]], "expected 4"),
    (["tuple", [u8(1, 2, 3, 4), u8(1, 2, 3, 4)]], "must be one column of kind array"),
    (["dict", u8(0, 1, 0, 1), 1, u8(1)], "2 rows occur, but there are 1"),
    (["dict", Tag(TBUF, ["u8", 0]), 1, u8(1)], "expected 4"),
    (["type", "", [], u8(1, 2, 3, 4)], "expected text of 1 to 64 bytes"),
    (["option", b"\xff", u8(1, 2, 3, 4)], "unused bits"),
    (["present", b"\x0f", ["present", b"\x0f", u8(1, 2, 3, 4)]], "only a value of a struct"),
    (["text", u8(1, 1, 1, 1), "abc"], "together are 4 bytes, found 3"),
    (["nothing"], "unknown kind"),
    (5, "expected a column"),
    (None, "expected a column"),
]


@pytest.mark.parametrize(("column", "said"), WRONG)
def test_wrong_columns_are_refused_by_path(opened, column, said):
    """Also if the other columns and groups are right, which are not read."""
    good = {"a": u8(1, 2, 3, 4), "wrong": u8(1, 2, 3, 4)}
    archive = opened(archived({"log": Tag(TCOL, [4, good, 4, {"a": u8(5, 6, 7, 8), "wrong": column}])}, b"abcde"))
    refuses(archive, "log.wrong", said)
    assert archive["log.a"].tolist() == list(range(1, 5)) + list(range(5, 9))
    table = archive.table("log")
    assert table[3] == {"a": 4, "wrong": 4}
    for read in (lambda: table["wrong"], lambda: table[4], lambda: list(table), table.columns, table.rows):
        with pytest.raises(tenarc.Damaged, match=said):
            read()
    # A list of tensors either refuses them too, or does not look at them.
    with contextlib.suppress(tenarc.Damaged):
        assert "log.a" in [info.path for info in archive.tensors()]


@pytest.mark.parametrize(
    "groups",
    [
        5,
        [1],
        [4, {"a": u8(1, 2, 3, 4)}, 4],
        [-1, {"a": u8()}],
        [65537, {"a": Tag(64, bytes(65537))}],
        [1 << 62, {"a": ["array", 0, u8()]}],
        [None, {"a": u8()}],
        [Tag(2, b"\1"), {"a": u8(1)}],
    ],
)
def test_wrong_numbers_of_rows_are_refused(opened, groups):
    archive = opened(archived({"log": Tag(TCOL, groups)}))
    for read in (lambda: archive["log.a"], lambda: archive.table("log"), lambda: list(archive.tensors())):
        with pytest.raises(tenarc.Damaged, match="columns: expected") as caught:
            read()
        assert caught.value.offset


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


BIG = 1 << 40
EMPTY: dict[str, Any] = {
    "unit": ["unit"],
    "struct": {},
    "tuple": ["tuple", [["unit"]]],
    "arrays": ["array", 0, ["unit"]],
    "texts": ["text", 0, ""],
    "tensors": named("u8", [BIG, 0], b""),
    "raw": named("f4", [BIG, 0], b""),
}


@pytest.mark.parametrize("kind", EMPTY)
def test_rows_without_bytes_are_bounded(opened, kind):
    archive = opened(archived({"log": Tag(TCOL, [1, {"a": ["array", BIG, EMPTY[kind]], "b": u8(1)}])}))
    before, start = peak(), time.monotonic()
    table = archive.table("log")
    reads = [lambda: table[0], table.columns]
    if kind in ("tensors", "raw"):
        # As one tensor, they take no memory.
        assert archive["log.a"].shape == table["a"].shape == (1, BIG, 0)
    else:
        reads += [lambda: archive["log.a"], lambda: table["a"]]
    for read in reads:
        with pytest.raises(tenarc.Limit, match="more memory than the limit"):
            read()
    assert table["b"].tolist() == [1]
    listed = [info.shape for info in archive.tensors()]
    assert listed == ([(1, BIG, 0), (1,)] if kind in ("tensors", "raw") else [(1,)])
    assert peak() - before < 50 * MIB and time.monotonic() - start < 2


def test_rows_without_bytes_are_counted_over_all_groups(opened):
    count = 1 << 16
    groups = [count, {"a": ["unit"]}] * 300
    archive = opened(archived(Tag(TCOL, groups)))
    # Each group is counted once, however often it is read.
    table = archive.segment(0).table("")
    for _ in range(300):
        assert table[0] == {"a": None}
    start = time.monotonic()
    with pytest.raises(tenarc.Limit, match="more memory than the limit"):
        for _ in archive.segment(0).table(""):
            pass
    with pytest.raises(tenarc.Limit, match="more memory than the limit"):
        archive["a"]
    assert time.monotonic() - start < 60


def test_rows_that_lack_a_field_are_bounded(opened):
    """A few bytes can announce many rows that do not have a field."""
    count = 1 << 16
    archive = opened(archived(Tag(TCOL, [*([count, {"b": ["unit"]}] * 20_000), 1, {"a": u8(1)}])))
    before = peak()
    for read in (lambda: archive["a"], lambda: archive.segment(0).table("")["a"]):
        with pytest.raises(tenarc.Limit, match="more memory than the limit"):
            read()
    assert peak() - before < 200 * MIB
    # Rows that have other fields are no attack.
    numbers = {"b": ["bool", bytes(count // 8)]}
    archive = opened(archived(Tag(TCOL, [*([count, numbers] * 300), 1, {"a": u8(1)}])))
    assert sum(value is not None for value in archive["a"]) == 1


def test_deep_columns_are_bounded(opened):
    column: Any = u8(1)
    for _ in range(100):
        column = {"a": column}
    archive = opened(archived(Tag(TCOL, [1, column])))
    path = ".".join(["a"] * 100)
    assert archive[path].tolist() == [1] and [info.path for info in archive.tensors()] == [path]
    # More dimensions than numpy has make lists.
    column = u8(1)
    for _ in range(70):
        column = ["array", 1, column]
    archive = opened(archived(Tag(TCOL, [1, {"a": column}])))
    assert list(archive.tensors()) == [] and type(archive["a"]) is list
    with pytest.raises(tenarc.Mismatch):
        archive.tensor("a")


def test_changed_bits_raise_nothing_else(opened, tmp_path):
    """With a changed bit in the metadata, reading gives something or raises an error of this package."""
    fields = {name: column for name, (column, *_) in (TENSORS | OTHERS).items()}
    metadata = cbor2.dumps(Tag(TCOL, [4, {"at": fields}, 4, {"at": fields}]))
    dice = random.Random(11)
    reads: list[Callable[[tenarc.Archive], Any]] = [
        lambda archive: [archive.tensor(info.path) for info in archive.tensors()],
        lambda archive: archive.table("log").columns(),
        lambda archive: archive.table("log").dtypes,
        lambda archive: list(archive.table("log")),
    ]
    refused = 0
    for _ in range(500):
        changed = bytearray(metadata)
        changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
        out = io.BytesIO()
        with tenarc.Writer(out) as writer:
            writer._save(bytes(changed), [], "log")
        (tmp_path / "changed").write_bytes(out.getvalue())
        with tenarc.open(tmp_path / "changed") as archive:
            for read in reads:
                try:
                    read(archive)
                except tenarc.Error:
                    refused += 1
    assert refused > 500


def test_what_is_listed_is_what_is_read(opened, tmp_path):
    """Random columns: the list of tensors says what reading gives."""
    dice = random.Random(7)

    def column(depth: int, count: int) -> Any:
        kind = dice.randrange(10 if depth < 3 else 4)
        if kind == 0:
            return Tag(64, dice.randbytes(count))
        if kind == 1:
            return [
                "bool",
                np.packbits(np.array(dice.choices((0, 1), k=count), bool), bitorder="little").tobytes(),
            ]
        if kind == 2:
            width = dice.randrange(1, 3)
            return tensor([count, width], Tag(64, dice.randbytes(count * width)))
        if kind == 3:
            return ["text", 1, "x" * count]
        if kind == 4:
            return {name: column(depth + 1, count) for name in "xyz"[: dice.randrange(1, 4)]}
        if kind == 5:
            each = dice.randrange(3)
            return ["array", each, column(depth + 1, each * count)]
        if kind == 6:
            lengths = [dice.randrange(3) for _ in range(count)]
            if len({*lengths}) == 1:
                return ["array", lengths[0], column(depth + 1, sum(lengths))]
            return ["list", u8(*lengths), column(depth + 1, sum(lengths))]
        if kind == 7:
            # A typed array and bools would have to be an array.
            tensors = [tensor([count], Tag(64, dice.randbytes(count))) for _ in range(dice.randrange(1, 3))]
            return ["tuple", tensors if dice.random() < 0.5 else [*tensors, column(depth + 1, count)]]
        if kind == 8:
            return ["type", "x.y", [], column(depth + 1, count)]
        codes, rows = [0], 1
        for _ in range(count - 1):
            codes.append(dice.randrange(rows + 1))
            rows = max(rows, codes[-1] + 1)
        return ["dict", u8(*codes[:count]), rows if count else 0, {"x": column(depth + 1, rows if count else 0)}]

    listed = 0
    for _ in range(300):
        groups = []
        for count in [dice.randrange(1, 4) for _ in range(dice.randrange(1, 3))]:
            groups += [count, {name: column(0, count) for name in "abc"}]
        (tmp_path / "a").write_bytes(archived({"log": Tag(TCOL, groups)}))
        with tenarc.open(tmp_path / "a") as archive:
            rows = archive["log"]
            infos = list(archive.tensors())
            listed += len(infos)
            for info in infos:
                found = archive.tensor(info.path)
                assert (found.dtype, found.shape) == (np.dtype({"u8": "u1", "bool": "?"}[info.dtype]), info.shape)
                assert found.nbytes == info.nbytes and found.shape[0] == len(rows)
                for row in range(len(rows)):
                    want: Any = rows[row]
                    for name in info.path.split(".")[1:]:
                        want = want[name]
                    assert np.array_equal(found[row], np.array(want, found.dtype).reshape(found.shape[1:]))
            # A column that is not listed is not a tensor.
            for name in "abc":
                if f"log.{name}" not in [info.path for info in infos] and any(name in row for row in rows):
                    with pytest.raises(tenarc.Mismatch):
                        archive.tensor(f"log.{name}")
    assert listed > 250


# Archives that are cut


def test_cuts_leave_the_tables_before_them(tmp_path):
    path = tmp_path / "a"
    out = io.BytesIO()
    ends = []
    with tenarc.Writer(out) as writer:
        for _ in range(3):
            writer.save(wide(400), name="log")
            ends.append(len(out.getvalue()))
    whole = out.getvalue()
    path.write_bytes(whole)
    with tenarc.open(path) as archive:
        assert len(archive.table("log")) == 1200
    for cut in range(ends[0], len(whole) - 1, 997):
        path.write_bytes(whole[:cut])
        with pytest.raises(tenarc.Torn):
            tenarc.open(path)
        with tenarc.open(path, torn=True) as archive:
            complete = sum(cut >= end for end in ends)
            table = archive.table("log")
            assert len(table) == 400 * complete
            assert table["step"].tolist() == list(range(400)) * complete and table[399]["at"]["x"] == 199.5
            assert len(list(table)) == 400 * complete


def test_columns_of_a_cut_value(tmp_path):
    path = tmp_path / "a"
    tenarc.save(path, {"log": wide(400)})
    whole = path.read_bytes()
    with tenarc.open(path) as archive:
        places = archive.segment(0).buffers
        want = {name: as_list(archive[name]) for name in ("log.step", "log.name", "log.at.x")}
    read = []
    for start, _ in places[1:]:
        path.write_bytes(whole[:start])
        with tenarc.open(path, torn=True, verify=False) as archive:
            listed = [info.path for info in archive.tensors()]
            assert listed[:2] == ["log.step", "log.at.x"]
            there = []
            for name, values in want.items():
                with contextlib.suppress(tenarc.Torn):
                    assert as_list(archive[name]) == values
                    there.append(name)
            read.append(there)
        with tenarc.open(path, torn=True) as archive, pytest.raises(tenarc.Torn, match="cannot be verified"):
            archive["log.step"]
    assert read[0] == ["log.step"] and read[-1] == ["log.step", "log.name"]
