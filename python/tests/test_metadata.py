"""Metadata says each thing in one way (SPEC 5.3). Messages may say it in others."""

import io

import cbor2
import numpy as np
import pytest
from columns_by_hand import TCOL, TTYP, tensor, u8

import tenarc
from tenarc import Tag
from tenarc.segment import Header

#: Items that metadata does not have, each with what is said about it, and where it is wrong.
OTHERS: dict[str, tuple[str, str, int]] = {
    "an indefinite array": ("9f01ff", "definite length", 0),
    "an indefinite map": ("bf6161 01ff", "definite length", 0),
    "an indefinite text": ("7f6161ff", "definite length", 0),
    "indefinite bytes": ("5f4101ff", "definite length", 0),
    "an indefinite key": ("a1 7f6161ff 01", "definite length", 1),
    "a tag around an indefinite array": ("d9 1092 9f01ff", "definite length", 3),
    "columns of an indefinite length": ("da54434f4c 9f 01 d84041 07 ff", "definite length", 5),
    "an indefinite item in columns": ("da54434f4c 82 01 82 64726f7773 81 9f01ff", "definite length", 14),
    "an indefinite shape": ("d828 82 9f01ff d84041 07", "definite length", 3),
    "indefinite elements": ("d828 82 8101 d840 5f4107ff", "definite length", 7),
    "clamped numbers": ("d84441 07", "tag 68", 0),
    "big-endian numbers": ("d841 42 0007", "tag 65", 0),
    "a tag without a meaning": ("d84c 40", "tag 76", 0),
    "big-endian floats in a tag": ("d9 1092 d851 44 00000000", "tag 81", 3),
    "a big-endian tensor": ("d828 82 8101 d841 42 0007", "tag 65", 5),
    "big-endian complex numbers": ("d828 82 8101 d9a7f9 d851 48 0000000000000000", "tag 81", 8),
    "clamped numbers in columns": ("da54434f4c 82 01 d84441 07", "tag 68|little-endian numbers", 7),
    "big-endian numbers in rows": ("da54434f4c 82 01 82 64726f7773 81 d841 42 0007", "tag 65", 14),
    "big-endian numbers in a type": ("da54545950 83 646461 7465 80 d841 42 0007", "tag 65", 12),
    "plain elements": ("d828 82 8101 8107", "expected a typed array", 5),
    "plain elements of order F": ("d90410 82 8101 8107", "expected a typed array", 6),
    "a tag in front of the elements": ("d828 82 8101 d91092 d84041 07", "expected a typed array", 5),
    "plain elements in a key": ("a1 d828 82 8101 8107 01", "expected a typed array", 6),
}


def metadata_of(digits: str) -> bytes:
    return b"\x82\x07" + bytes.fromhex(digits)


def reads(metadata: bytes, path):
    out = io.BytesIO()
    with tenarc.Writer(out) as writer:
        writer._save(metadata, [], "log")
    path.write_bytes(out.getvalue())
    parts = Header(None, 8, True, 1 << 16, (), metadata).write(0)
    yield lambda: tenarc.from_parts(parts, [])
    yield lambda: tenarc.load(path)
    yield lambda: tenarc.Reader(io.BytesIO(out.getvalue())).load()
    yield lambda: [*tenarc.Reader(io.BytesIO(out.getvalue()))]
    with tenarc.open(path) as archive:
        yield archive.verify
        yield archive.view
        yield lambda: archive["0"]
        yield lambda: list(archive.tensors())
        yield lambda: archive.table("log").rows()


@pytest.mark.parametrize("case", OTHERS)
def test_metadata_in_another_way_is_refused(case, tmp_path):
    digits, said, at = OTHERS[case]
    metadata = metadata_of(digits)
    for read in reads(metadata, tmp_path / "a"):
        with pytest.raises(tenarc.Damaged, match=said) as caught:
            read()
        assert caught.value.offset is not None
    found = (tmp_path / "a").read_bytes().index(metadata) + 2
    with tenarc.open(tmp_path / "a") as archive, pytest.raises(tenarc.Damaged) as caught:
        archive.load()
    assert caught.value.offset == found + at
    if case not in ("a tag without a meaning", "clamped numbers in columns") and "key" not in case:
        assert len(tenarc.loads(metadata)) == 2


def test_what_is_like_it_is_accepted(tmp_path):
    for digits in (
        # The content of tag 24 is bytes.
        "d818 46 9f01ffd84140",
        "43 9f01ff",
        # Heads may have any width.
        "d828 82 9801 1801 d84041 07",
        "db0000000000000028 82 8101 d9004041 07",
        "d828 82 8101 d9a7f9 d855 48 0000000000000000",
        "f97e00",
    ):
        for read in reads(metadata_of(digits), tmp_path / "a"):
            read()


@pytest.mark.parametrize(
    "value",
    [
        *(Tag(tag, bytes(8)) for tag in (65, 66, 67, 68, 73, 74, 75, 76, 80, 81, 82, 83)),
        Tag(40, [[1], [7]]),
        Tag(1040, [[1], [7]]),
        Tag(40, [[1], Tag(4242, u8(7))]),
        {"a": [Tag(4242, Tag(68, b"\7"))]},
    ],
)
def test_writers_refuse_tags_that_metadata_does_not_have(value):
    tenarc.dumps(value)
    for write in (
        lambda: tenarc.to_parts(value),
        lambda: tenarc.save(io.BytesIO(), value),
        lambda: tenarc.save(io.BytesIO(), tenarc.Table([value, 1])),
    ):
        with pytest.raises(tenarc.Unsupported, match="archives have little-endian typed arrays only"):
            write()


def test_what_a_message_had_in_another_way_is_written_in_the_one_way(tmp_path):
    big = np.arange(3, dtype=">u2")
    for value, again in ((big, big.astype("<u2")), (tenarc.loads(cbor2.dumps(tensor([2], [1, 2]))), [1, 2])):
        tenarc.save(tmp_path / "a", {"a": value})
        with tenarc.open(tmp_path / "a") as archive:
            archive.verify()
            assert np.array_equal(archive["a"], again)


def test_a_type_around_something_that_is_lost_is_lost_too(tmp_path):
    """A null has no type (SPEC 7.2), so the tag is not kept around *undefined*."""
    path, new = tmp_path / "a", tmp_path / "b"
    arrays = [np.arange(3000), np.arange(3000) + 1]
    columns = tenarc.Table({"n": arrays[0]})

    def typed(item):
        return Tag(TTYP, ["example.com/x", [1, "y"], item])

    value = {
        "a": typed(arrays[0]),
        "b": typed(typed(arrays[1])),
        "c": typed(columns),
        "d": Tag(99, typed(b"x" * 5000)),
    }
    tenarc.save(path, value)
    with tenarc.open(path) as archive:
        archive.verify()
        assert [info.path for info in archive.tensors()] == ["a", "b", "c.n"]
        assert (
            archive.tensor("b")[0] == 1
            and archive["c.n.7"] == 7 == archive["c.7.n"]
            and archive["c"][3] == {"n": 3}
        )
        assert archive.keys() == ["a", "b", "c.n", "d"] and len(archive.table("c")) == 3000
        places = archive.segment(0).buffers
        whole = tenarc.load(path, tables=True)
        assert np.array_equal(whole["a"], arrays[0]) and np.array_equal(whole["c"]["n"], arrays[0])
    data = path.read_bytes()
    for number, (start, _) in enumerate(places[1:], 1):
        path.write_bytes(data[:start])
        tenarc.recover_to(path, new)
        with tenarc.open(new) as archive:
            archive.verify()
            found = archive.load()
        assert [found[name] is None for name in "abc"] == [number <= place for place in range(3)]
        assert found["d"] == Tag(99, None)


def test_malformed_types_are_refused_by_path(tmp_path):
    for wrong in (["", [], u8(1)], ["a", [], None], ["a", [0.5], u8(1)], ["a", []], 5):
        item = cbor2.dumps({"a": Tag(TTYP, wrong), "b": 1})
        out = io.BytesIO()
        with tenarc.Writer(out) as writer:
            writer._save(item, [], None)
        (tmp_path / "a").write_bytes(out.getvalue())
        with tenarc.open(tmp_path / "a") as archive:
            assert archive["b"] == 1 and archive.get("a.0") is None
            for read in (archive.verify, archive.load, lambda a=archive: a["a"], lambda a=archive: [*a.tensors()]):
                with pytest.raises(tenarc.Damaged, match="type"):
                    read()


def test_columns_in_a_type_are_rows(tmp_path):
    metadata = cbor2.dumps(Tag(TTYP, ["x.y", [], Tag(TCOL, [2, {"a": u8(1, 2)}])]))
    assert tenarc.loads(metadata) == [{"a": 1}, {"a": 2}]
    out = io.BytesIO()
    with tenarc.Writer(out) as writer:
        writer._save(metadata, [], "log")
    (tmp_path / "a").write_bytes(out.getvalue())
    with tenarc.open(tmp_path / "a") as archive:
        assert archive.table("log")["a"].tolist() == [1, 2] and archive["a"].tolist() == [1, 2]
        archive.verify()
