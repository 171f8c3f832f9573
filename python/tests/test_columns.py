"""Sequences that are stored as columns (SPEC 7), in messages and archives."""

import dataclasses
import io

import cbor2
import numpy as np
import pytest
from columns_by_hand import KINDS, TBUF, TCOL, all_kinds, archived, columns, day, log, of, same, u8
from conftest import ROOT

import tenarc
from tenarc import Some, Table, Tag


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_read(kind):
    column, rows = KINDS[kind]
    for copy in (True, False):
        found = tenarc.loads(columns(4, column), copy=copy)
        assert type(found) is list and same(found, rows)
        table = tenarc.loads(columns(4, column), tables=True, copy=copy)
        assert len(table) == 4 and same(table.rows(), rows) and same(list(table), rows)
        for number, row in enumerate(rows):
            assert same(table[number], row) and same(table[number - 4], row)


def test_types_are_those_of_the_same_rows_in_an_array():
    for column, rows in KINDS.values():
        for found, want in zip(tenarc.loads(columns(4, column)), tenarc.loads(tenarc.dumps(rows)), strict=True):
            assert type(found) is type(want)


#: Ways to put a column into another one. The rows are those of four rows of the column.
AROUND = {
    "struct": lambda column, rows: ({"a": column, "b": column}, [{"a": row, "b": row} for row in rows]),
    "present": lambda column, rows: (
        {"z": ["unit"], "a": ["present", b"\x0f", column]},
        [{"z": None, "a": row} for row in rows],
    ),
    "tuple": lambda column, rows: (
        ["tuple", [column, ["text", 1, "wxyz"]]],
        [[row, text] for row, text in zip(rows, "wxyz", strict=True)],
    ),
    "array": lambda column, rows: (["array", 1, column], [[row] for row in rows]),
    "dict": lambda column, rows: (
        ["dict", u8(0, 1, 2, 3), 4, {"a": column}],
        [{"a": row} for row in rows],
    ),
    "type": lambda column, rows: (["type", "example.com/x", [1, "y"], column], rows),
    "enum": lambda column, rows: (
        ["enum", u8(1, 1, 1, 1), ["A", "B"], [None, column]],
        [{"B": row} for row in rows],
    ),
    "map": lambda column, rows: (["map", 1, u8(0, 1, 2, 3), column], [{n: row} for n, row in enumerate(rows)]),
}


@pytest.mark.parametrize("outer", AROUND)
@pytest.mark.parametrize("inner", AROUND)
def test_kinds_are_read_inside_of_each_other(inner, outer):
    for column, rows in KINDS.values():
        column, rows = AROUND[outer](*AROUND[inner](column, rows))
        assert same(tenarc.loads(columns(4, column)), rows)
        table = tenarc.loads(columns(4, column), tables=True)
        assert same([table[3], table[1]], [rows[3], rows[1]])


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_are_read_inside_of_lists_and_options(kind):
    column, rows = KINDS[kind]
    if "number" not in kind and type(column) is not Tag:
        # The rows of numbers would be packed sequences, which is tested above.
        for lengths, want in ((u8(1, 3, 0), [rows[:1], rows[1:], []]), (of("<u2", 69, 0, 0, 4), [[], [], rows])):
            assert same(tenarc.loads(columns(3, ["list", lengths, column])), want)
    found = tenarc.loads(columns(6, ["option", b"\x2d", column]))
    some = [Some(row) if row is None or type(row) is Some else row for row in rows]
    assert same(found, [some[0], None, some[1], some[2], None, some[3]])


def test_keys_of_maps_are_hashable():
    keys = ["tuple", [u8(1, 2, 3), ["rows", [{"a": [1]}, None, b"x"]]]]
    found = tenarc.loads(columns(3, ["map", 1, keys, ["bool", b"\2"]]))
    assert found[1:] == [{(2, None): True}, {(3, b"x"): False}]
    ((number, frozen),) = found[0]
    assert number == 1 and dict(frozen) == {"a": (1,)}


def test_groups_follow_each_other():
    assert tenarc.loads(columns()) == []
    found = tenarc.loads(columns(2, {"a": u8(1, 2)}, 0, ["unit"], 1, ["unit"], 3, u8(3, 4, 5)))
    assert found == [{"a": 1}, {"a": 2}, None, 3, 4, 5]
    assert tenarc.loads(columns(*[65536, ["bool", bytes(8192)]] * 3)) == [False] * 3 * 65536


def test_columns_are_read_wherever_a_sequence_is():
    inner = Tag(TCOL, [2, {"a": u8(1, 2)}])
    rows = [{"a": 1}, {"a": 2}]
    assert tenarc.loads(cbor2.dumps({"x": [inner, Tag(4242, inner)]})) == {"x": [rows, Tag(4242, rows)]}
    # Also as a key of a map.
    key = cbor2.dumps(Tag(TCOL, [2, u8(1, 2)]))
    assert tenarc.loads(b"\xa1" + key + b"\x05") == {(1, 2): 5}


def example(number: int, section: str = "### 7.4") -> bytes:
    """The bytes of an example in a section of SPEC.md."""
    text = (ROOT / "SPEC.md").read_text()
    text = text[text.index(section) :].partition("\n##")[0]
    lines = [line for line in text.split("Example:")[number].splitlines() if line.startswith("    ")]
    return bytes.fromhex("".join(line.strip().split("  ")[0] for line in lines))


def test_the_examples_are_read_and_written():
    rows = [{"id": 7, "tag": "ab"}, {"id": 9, "tag": "c"}]
    first = example(1)
    assert tenarc.loads(first) == rows
    for table in (Table(rows), tenarc.loads(first, tables=True), Table({"id": [7, 9], "tag": ["ab", "c"]})):
        assert tenarc.dumps(table) == first
    found = tenarc.loads(example(2))
    assert [{**row, "tags": list(row["tags"])} for row in found] == [
        {"score": 1.5, "tags": [1], "kind": "A"},
        {"score": None, "note": 5, "tags": [2, 3], "kind": {"B": 7}},
    ]
    assert tenarc.loads(example(3)) == [
        [[1, 2], [], "yes"],
        [[3, 4], [7, 8], "no"],
        [[5, 6], [9], "yes"],
        [[1, 2], [3, 4, 5], "yes"],
    ]
    assert tenarc.dumps(tenarc.loads(example(3), tables=True)) == example(3)
    value, _, rows = example(1, "### 7.2").partition(bytes.fromhex("da54434f4c"))
    assert tenarc.loads(value) == day(20_783) and tenarc.loads(bytes.fromhex("da54434f4c") + rows) == [day(20_783)]


# Archives


def test_all_parts_of_columns_can_be_in_buffers(tmp_path):
    want = tenarc.loads(all_kinds())
    table = tenarc.loads(all_kinds(), tables=True)
    counts = []
    for options in ({"inline_below": 0}, {"inline_below": 10**9}, {"inline_below": 0, "dedup": True}):
        data = archived({"log": table, "a": np.ones(3)}, **options)
        path = tmp_path / "a.tenarc"
        path.write_bytes(data)
        parts = tenarc.to_parts({"log": table}, inline_below=options["inline_below"])
        counts.append(len(parts.buffers))
        with tenarc.open(path) as archive:
            archive.verify()
            ways = [archive.load()["log"], archive.view()["log"], tenarc.load(path)["log"], archive["log"]]
            ways.append(archive.load(tables=True)["log"].rows())
            ways.append(archive.view(tables=True)["log"].rows())
            ways.append(archive.table("log").rows())
            assert [info.path for info in archive.tensors()] == ["a"]
        ways.append(tenarc.Reader(io.BytesIO(data)).load()["log"])
        ways.append(tenarc.Reader(io.BytesIO(data)).load(tables=True)["log"].rows())
        ways.append(tenarc.load(path, tables=True)["log"].rows())
        ways.append(tenarc.from_parts(parts.metadata, parts.buffers)["log"])
        ways.append(tenarc.from_parts(parts.metadata, parts.buffers, tables=True)["log"].rows())
        for number, found in enumerate(ways):
            assert same(found, want), number
    assert counts[0] > 100 and counts[1] == 0


def with_buffers(metadata: bytes, *buffers: bytes) -> bytes:
    """An archive of hand-made metadata."""
    out = io.BytesIO()
    with tenarc.Writer(out) as writer:
        writer._save(metadata, [np.frombuffer(buffer, np.uint8) for buffer in buffers], None)
    return out.getvalue()


@pytest.mark.parametrize(
    ("column", "buffer", "said"),
    [
        (["text", u8(1, 1), Tag(TBUF, [0])], b"\xff\xff", "not UTF-8 from its byte 0"),
        (["text", u8(1, 1), Tag(TBUF, [0])], "ü".encode(), "inside a character"),
        (["text", u8(1, 1), Tag(TBUF, ["u8", 0])], b"ab", "expected a reference to bytes"),
        (["text", Tag(TBUF, [0]), "ab"], b"\1\1", "expected a reference to numbers"),
        (["text", Tag(TBUF, ["u8", 0]), "ab"], b"\1\2", "together are 3 bytes, found 2"),
        (["text", Tag(TBUF, ["u16", 0]), "ab"], b"\1\1", "expected 2 numbers, found 1"),
        (["bytes", u8(1, 1), Tag(TBUF, [0])], b"abc", "together are 2 bytes, found 3"),
        (["bool", Tag(TBUF, [0])], b"\x04", "unused bits"),
        (["bool", Tag(TBUF, ["u8", [1], "C", 0])], b"\0", "expected a reference to bytes"),
        (Tag(TBUF, ["u8", 0]), b"abc", "expected 2 numbers, found 3"),
        (Tag(TBUF, ["c64", 0]), bytes(16), "numbers of 8 to 64 bits in a buffer"),
        (Tag(TBUF, [0]), b"ab", "expected a reference to numbers"),
        (Tag(TBUF, ["u8", [3], "C", 0]), b"abc", "expected 2 rows"),
        (Tag(TBUF, ["u8", [2, 2], "F", 0]), b"abcd", "expected the order C"),
        (Tag(TBUF, ["bool", [2, 1], "C", 0]), b"\0\2", "bool 1 is 2"),
        (["array", 1, Tag(TBUF, ["u8", 0])], b"a", "expected 2 numbers, found 1"),
        (["list", Tag(TBUF, ["u8", 0]), u8(1, 1)], b"\1\1", "must be a column of kind array"),
        (["dict", Tag(TBUF, ["u8", 0]), 2, u8(1, 1)], b"\1\0", "row 0 has the code 1 before 0"),
        (["rows", [1, Tag(TBUF, [0])]], b"ab", "items among columns have no references"),
        (["rows", [1, Tag(TCOL, [2, Tag(TBUF, ["u8", 0])])]], b"ab", "items among columns have no references"),
        (["option", Tag(TBUF, [1]), u8(1)], b"\1", "no buffer 1"),
    ],
)
def test_wrong_buffers_of_columns_are_refused(column, buffer, said, tmp_path):
    data = with_buffers(cbor2.dumps({"log": Tag(TCOL, [2, column])}), buffer)
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(tenarc.Damaged, match=said) as caught:
        tenarc.Reader(io.BytesIO(data)).load()
    assert caught.value.path == "log" and caught.value.offset
    with tenarc.open(tmp_path / "a") as archive:
        for read in (archive.load, archive.view, lambda: archive["log.0"], lambda: archive.table("log")[0]):
            with pytest.raises(tenarc.Damaged, match=said):
                read()
        if "no references" in said or "buffer" in said:
            with pytest.raises(tenarc.Damaged, match=said):
                archive.verify()
        else:
            # Not even the lengths of references are known to match without the content of others.
            archive.verify()


def test_verification_finds_references_in_columns(tmp_path):
    column = {"a": ["text", Tag(TBUF, ["u8", 1]), Tag(TBUF, [0])], "b": Tag(TBUF, ["u8", [1, 2], "C", 2])}
    buffers = (b"abc", b"\3", b"xy")
    (tmp_path / "a").write_bytes(with_buffers(columns(1, column), *buffers))
    with tenarc.open(tmp_path / "a") as archive:
        archive.verify()
        row = archive.load()[0]
        assert row["a"] == "abc" and row["b"].tolist() == [120, 121]
    (tmp_path / "b").write_bytes(with_buffers(columns(1, column), *buffers, b"more"))
    with tenarc.open(tmp_path / "b") as archive, pytest.raises(tenarc.Damaged, match="nothing refers to buffer 3"):
        archive.verify()


def test_paths_lead_into_rows(tmp_path):
    first = tenarc.loads(tenarc.dumps(Table(log()[:60])), tables=True).groups
    second = tenarc.loads(tenarc.dumps(Table(log()[60:])), tables=True).groups
    value = {"log": Table.of([*first, *second]), "x": [Tag(4242, Table([{"a.b": 1}]))], "end": np.zeros(3)}
    for inline_below in (0, 10**9):
        tenarc.save(tmp_path / "a", value, inline_below=inline_below)
        with tenarc.open(tmp_path / "a") as archive:
            for number in (0, 3, 59, 60, 99):
                assert archive[f"log.{number}.size"] == number / 4
                assert archive[f"/log/{number}/name"] == f"n{number}"
                assert archive[f"log.{number}.at.x"].tolist() == [number] * 3
                assert archive.tensor(f"log.{number}.image").tolist() == [[number] * 3] * 2
                assert archive[f"log.{number}"]["step"] == number
            assert len(archive["log"]) == 100 and archive["x.0.0.a.b"] == 1 == archive["/x/0/0/a.b"]
            for wrong in (
                "log.100.size",
                "log.03.size",
                "log.3.none",
                "log.-1",
                "log.3.size.0",
                "x.0.1",
            ):
                assert archive.get(wrong) is None
                with pytest.raises(tenarc.NotFound):
                    archive[wrong]
            for path in ("log.3.name", "log", "log.3"):
                with pytest.raises(tenarc.Mismatch, match="expected a tensor"):
                    archive.tensor(path)
            for path in ("end", "log.3", "log.3.name"):
                with pytest.raises(tenarc.Mismatch, match="expected columns"):
                    archive.table(path)


def test_a_path_that_could_lead_into_rows_too_is_a_json_pointer(tmp_path):
    tenarc.save(tmp_path / "a", {"log": Table([{"a": 1}]), "log.0": {"a": np.ones(3)}, "other.0": np.ones(3)})
    with tenarc.open(tmp_path / "a") as archive:
        listed = [info.path for info in archive.tensors()]
        assert listed == ["log.a", "/log.0/a", "other.0"]
        for path in listed[1:]:
            assert archive.tensor(path).tolist() == [1] * 3
        with pytest.raises(tenarc.NotFound, match="several"):
            archive["log.0.a"]
    tenarc.save(tmp_path / "a", {"7": Table([{"a": 1}]), 7: [{"a": np.ones(3)}]})
    with tenarc.open(tmp_path / "a") as archive, pytest.raises(tenarc.Mismatch, match="occurs twice"):
        list(archive.tensors())


def test_arrays_of_rows_share_the_memory_of_the_column(tmp_path):
    tenarc.save(tmp_path / "a", Table(log()))
    with tenarc.open(tmp_path / "a") as archive:
        view, rows = archive.view(), archive.load(numbers=True)
        images = archive.view(tables=True)["image"]
    assert images.shape == (100, 2, 3) and not images.flags.writeable and not view[1]["image"].flags.writeable
    assert np.shares_memory(rows[1]["image"].base, rows[2]["image"].base)
    # Rows can be written to, and are apart.
    rows[1]["image"][:] = 7
    rows[1]["at"]["x"][:] = 7
    assert rows[2]["image"].max() == 2 and rows[2]["at"]["x"].max() == 2
    again = tenarc.load(tmp_path / "a", tables=True)
    again["image"][:] = 9
    assert again[3]["image"].max() == 9


def test_a_cut_archive_with_columns_is_recovered(tmp_path):
    path, new = tmp_path / "a", tmp_path / "b"
    value = {"first": np.ones(9), "one": Table(log()), "raw": b"x" * 9, "two": Table(log()), "last": np.ones(9)}
    tenarc.save(path, value, inline_below=8)
    whole = path.read_bytes()
    with tenarc.open(path) as archive:
        places = archive.segment(0).buffers
    kept = set()
    for start, length in places:
        for cut in (start, start + length):
            path.write_bytes(whole[:cut])
            with tenarc.open(path, torn=True, verify=False) as archive:
                listed = [info.path for info in archive.tensors()]
                # Whether all lists have one length is only known if the lengths are there.
                rows = [f"{name}.{field}" for name in ("one", "two") for field in ("step", "size", "image")]
                assert [path for path in listed if not path.endswith("at.x")] == ["first", *rows, "last"]
            result = tenarc.recover_to(path, new)
            if result.salvaged is None:
                continue
            with tenarc.open(new) as archive:
                archive.verify()
                found = archive.load()
            missing = {info.path for info in result.salvaged.missing}
            assert missing == {name for name in value if found[name] is None}
            for name in set(value) - missing:
                assert same(found[name], log() if isinstance(value[name], Table) else value[name])
            kept.add(frozenset(missing))
    assert kept == {
        frozenset(names)
        for names in (
            ["one", "raw", "two", "last"],
            ["raw", "two", "last"],
            ["two", "last"],
            ["last"],
            [],
        )
    }


# Conversion


@dataclasses.dataclass
class Place:
    x: list[int]


@dataclasses.dataclass
class Row:
    step: int
    size: float
    name: str
    at: Place
    image: np.ndarray
    note: str | None = None


@dataclasses.dataclass
class Log:
    rows: list[Row]


def test_rows_are_converted(tmp_path):
    tenarc.save(tmp_path / "a", {"rows": Table(log())})
    for tables in (False, True):
        found = tenarc.load(tmp_path / "a", cls=Log, tables=tables)
        assert found.rows[7].at == Place([7] * 3) and found.rows[7].note is None
    found = tenarc.load(tmp_path / "a", cls=dict[str, Table], tables=True)
    assert found["rows"]["step"].tolist() == list(range(100))
    again = tenarc.loads(tenarc.dumps(Table(tenarc.load(tmp_path / "a", cls=Log).rows)))
    assert again[3]["note"] is None and again[3]["step"] == 3
    with pytest.raises(tenarc.Mismatch) as caught:
        tenarc.load(tmp_path / "a", cls=dict[str, list[dict[str, int]]])
    assert caught.value.path == "rows.0.name"
