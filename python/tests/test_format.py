"""Archives by hand, for what SPEC 5 demands of headers, the directory, end marks and extensions."""

from __future__ import annotations

import io
import os
import random
from array import array
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from by_hand import ByHand

import tenarc
from tenarc import items
from tenarc.directory import MAGIC, Directory, Entry, Link, _read_block
from tenarc.elsewhere import Elsewhere
from tenarc.packed import Packed
from tenarc.segment import BLOCK, RECORD, Header, hashed, record, record_length
from tenarc.source import FileSource

EMPTY = b"\xa0"
REFERENCE = bytes.fromhex("da54425546 81 00")
NUMBERS = bytes(range(16))


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "a.tenarc"


def opened(path: Path, data: bytes, **options: Any) -> tenarc.Archive:
    path.write_bytes(data)
    return tenarc.open(path, **options)


def verified(path: Path) -> None:
    with tenarc.open(path) as archive:
        archive.verify()


def loaded(path: Path) -> None:
    with tenarc.open(path) as archive:
        for segment in archive.segments():
            segment.load()


def streamed(path: Path) -> None:
    list(tenarc.Reader(io.BytesIO(path.read_bytes())))


READERS = (verified, loaded, streamed)


def refused(
    path: Path, data: bytes, match: str | None = None, kind: type[Exception] = tenarc.Damaged, readers=READERS
) -> None:
    path.write_bytes(data)
    for read in readers:
        with pytest.raises(kind, match=match):
            read(path)


def accepted(path: Path, data: bytes, readers=READERS) -> None:
    path.write_bytes(data)
    for read in readers:
        read(path)


# Headers


def fields_of(**changed: bytes) -> bytes:
    """The content of a header of which some fields are others."""
    fields = {
        "array": b"\x88",
        "version": b"\x01",
        "name": b"\xf6",
        "alignment": b"\x08",
        "check": items.text("xxh3-64"),
        "chunk": bytes.fromhex("1a00010000"),
        "lengths": b"\x80",
        "ext": EMPTY,
        "metadata": b"\x07",
    }
    return bytes.fromhex("da54534547") + b"".join((fields | changed).values())


def test_a_header_has_eight_fields_in_this_order(path):
    data = ByHand().segment(name="n", metadata=b"\x61a").end().data
    assert data[16:].startswith(fields_of(name=b"\x61n", metadata=b"\x61a"))
    accepted(path, data)
    accepted(path, ByHand().segment(content=fields_of()).end().data)


LONGER = {
    "array": b"\x98\x08",
    "version": b"\x18\x01",
    "name": b"\x78\x01n",
    "alignment": b"\x18\x08",
    "check": b"\x78\x07xxh3-64",
    "chunk": bytes.fromhex("1b0000000000010000"),
    "lengths": b"\x98\x00",
    "ext": b"\xb8\x00",
}


@pytest.mark.parametrize("field", LONGER)
def test_heads_in_headers_are_the_shortest(path, field):
    name = "n" if field == "name" else None
    refused(path, ByHand().segment(name=name, content=fields_of(**{field: LONGER[field]})).end().data)


@pytest.mark.parametrize(
    "digits", ["9fff", "811800", "8119ffff1900ff", "9f08ff", "8120", "81f6", "8182080a", "81850102030405"]
)
def test_lengths_of_another_form_are_refused(path, digits):
    refused(path, ByHand().segment(content=fields_of(lengths=bytes.fromhex(digits))).end().data)


def test_the_head_of_a_record_is_the_shortest(path):
    for head in (b"\x59\x00", b"\x5a\x00\x00\x00", b"\x5b" + bytes(7), b"\x5f\x58"):
        content = fields_of()
        item = hashed(RECORD + head + bytes((len(content),)) + content, 12)
        directory = Directory()
        directory.add(Entry(12, None, len(item)))
        data = MAGIC + item
        refused(path, data + directory.end(len(data)), "shortest head|indefinite|definite")


# Extensions

BAD_EXTENSIONS = {
    "no map": "80",
    "a negative key": "a12000",
    "a text as key": "a1613100",
    "keys that fall": "a2040002 00",
    "a key twice": "a20400 0400",
    "a longer key": "a1180400",
    "a longer head in a value": "a1041800",
    "a longer text in a value": "a104780161",
    "an array of indefinite length": "a1049f00ff",
    "a map of indefinite length": "bf0400ff",
    "a text of indefinite length": "a1047f6161ff",
    "text that is not UTF-8": "a10461ff",
    "a simple value in two bytes": "a104f818",
    "a longer simple value": "a104f814",
    "a break": "a104ff",
    "a reserved head": "a1041c",
    "more levels than 128": "a104" + "81" * 128 + "00",
    "notes that are no map": "a10080",
    "a note that is no text": "a100a1616101",
    "a key of a note that is no text": "a100a1016161",
    "notes in another order": "a100a2616260616160",
    "a note twice": "a100a2616160616160",
}


@pytest.mark.parametrize("case", BAD_EXTENSIONS)
def test_other_extensions_are_refused(path, case):
    ext = bytes.fromhex(BAD_EXTENSIONS[case])
    refused(path, ByHand().segment(content=fields_of(ext=ext)).end().data)
    if "note" not in case:
        refused(path, ByHand().segment().end(ext=ext).data)
        blocks = [
            record(BLOCK, [b"\x00", b"", ext], 5),
        ]
        assert blocks
    path.write_bytes(ByHand().segment().end().segment(content=fields_of(ext=ext)).data)
    with tenarc.open(path) as archive:
        assert archive.count == 1


GOOD_EXTENSIONS = [
    "a10400",
    "a2020318ff82fb3ff0000000000000f97e00",
    "a104" + "81" * 127 + "00",
    "a100a0",
    "a104f6",
    "a104f8ff",
    "a104da5442554600",
]


@pytest.mark.parametrize("digits", GOOD_EXTENSIONS)
def test_even_extensions_are_ignored_and_kept(path, digits, tmp_path):
    ext = bytes.fromhex(digits)
    if digits == "a2020318ff82fb3ff0000000000000f97e00":
        ext = bytes.fromhex("a2020318fe82fb3ff0000000000000f97e00")
    data = ByHand().segment(ext=ext).end(ext=ext).data
    accepted(path, data)
    with tenarc.open(path) as archive:
        assert archive.segment(0).header.ext == ext
        digest = archive.segment(0).digest()
    # The digest does not count even keys.
    with opened(path, ByHand().segment().end().data) as archive:
        assert archive.segment(0).digest() == digest
    path.write_bytes(data[:-1])
    tenarc.recover_to(path, tmp_path / "new")
    with tenarc.open(tmp_path / "new") as archive:
        archive.verify()
        assert archive.segment(0).header.ext == ext and archive.segment(0).digest() == digest
    # Whoever appends does not know what the extensions of the end mark are for.
    path.write_bytes(data)
    with tenarc.append(path) as out:
        out.save(1)
    assert path.read_bytes().startswith(data) and path.read_bytes()[len(data) :].count(ext) == (ext == EMPTY)
    verified(path)


def test_extensions_have_at_most_65536_bytes(path):
    for length, is_good in ((65_536, True), (65_537, False)):
        content = bytes(length - 5)
        ext = b"\xa1\x04" + items.byte_string(content)
        assert len(ext) == length
        data = ByHand().segment(content=fields_of(ext=ext)).end(ext=ext if is_good else None).data
        if is_good:
            accepted(path, data)
        else:
            refused(path, data, "at most 65536 bytes of extensions")


def odd(key: int = 1) -> bytes:
    return b"\xa1" + items.head(items.UNSIGNED, key) + b"\x00"


def test_an_odd_extension_makes_a_value_unreadable_and_nothing_else(path):
    made = ByHand().segment(REFERENCE, [NUMBERS], name="a", ext=odd(77)).segment(b"\x61b", name="b").end()
    path.write_bytes(made.data)
    verified(path)
    with tenarc.open(path) as archive:
        assert archive.names() == ["a", "b"] and len(archive.digest()) == 32
        segment = archive.named("a")
        assert segment.header.lengths == (16,) and segment.header.ext == odd(77) and "16" in repr(segment.header)
        assert archive.named("b").load() == "b"
        for read in (
            segment.load,
            segment.view,
            segment.keys,
            lambda: list(segment.tensors()),
            lambda: segment["x"],
        ):
            with pytest.raises(tenarc.Version, match="extension 77"):
                read()
        digest = segment.digest()
    with opened(path, ByHand().segment(REFERENCE, [NUMBERS], name="a").end().data) as archive:
        # An odd key changes what the value means.
        assert archive.segment(0).digest() != digest
    reader = tenarc.Reader(io.BytesIO(made.data))
    with pytest.raises(tenarc.Version, match="extension 77"):
        reader.load()
    assert reader.load() == "b" and reader.next_header() is None
    reader = tenarc.Reader(io.BytesIO(made.data))
    reader.skip()
    assert reader.load() == "b"
    parts = Header(None, 8, True, 1 << 16, (), b"\x07", ext=odd(3)).write(0)
    with pytest.raises(tenarc.Version, match="extension 3"):
        tenarc.from_parts(parts, [])


def test_an_odd_extension_of_an_end_mark_counts_only_in_the_last_one(path, tmp_path):
    older = ByHand().segment(name="a").end(ext=odd()).segment(name="b").end()
    accepted(path, older.data)
    # The walk passes over it, too.
    with opened(path, older.data + bytes(9)) as archive:
        assert archive.names() == ["a", "b"] and archive.unfinished_bytes == 9
    path.write_bytes(older.data + bytes(9))
    with tenarc.append(path) as out:
        out.save(1)
    assert tenarc.recover(path).segments == 3
    last = ByHand().segment(name="a").end().segment(name="b").end(ext=odd(9))
    for data in (last.data, last.data + bytes(9), last.data + ByHand().segment().data[12:]):
        path.write_bytes(data)
        for call in (tenarc.open, tenarc.append, lambda p: tenarc.open(p, torn=True)):
            with pytest.raises(tenarc.Version, match="extension 9"):
                call(path)
        assert path.read_bytes() == data
    path.write_bytes(last.data + bytes(9))
    for call in (tenarc.recover, lambda p: tenarc.recover_to(p, tmp_path / "new")):
        with pytest.raises(tenarc.Version, match="extension 9"):
            call(path)
    with pytest.raises(tenarc.Version, match="extension 9"):
        list(tenarc.Reader(io.BytesIO(last.data)))
    # It is unfinished, so nobody has to know it.
    with opened(path, last.data[:-1]) as archive:
        assert archive.names() == ["a"]


def with_block(ext: bytes) -> ByHand:
    made = ByHand()

    def block(directory: Directory, level: int, at: int) -> bytes:
        good = directory.block(level, at)
        content = good[4:-9] if good[2] == 0x58 else good[5:-9]
        assert content.startswith(bytes.fromhex("da54444952 84")) and content.endswith(EMPTY)
        return hashed(RECORD + items.byte_string(content[:-1] + ext), at)

    for number in range(65):
        made.segment(name=f"n{number}", block=block)
    return made


def test_an_odd_extension_of_a_block_makes_the_archive_unreadable(path):
    accepted(path, with_block(bytes.fromhex("a10405")).end().data)
    made = with_block(odd(5))
    committed = ByHand().segment(name="first").end()
    data = made.end().data
    path.write_bytes(data)
    with tenarc.open(path) as archive:
        assert archive.count == 65 and archive.segment(64).load() == 7
        for read in (archive.names, lambda: archive.segment(0), archive.verify):
            with pytest.raises(tenarc.Version, match="extension 5"):
                read()
    with pytest.raises(tenarc.Version, match="extension 5"):
        list(tenarc.Reader(io.BytesIO(data)))
    assert committed.data


# Notes


def test_notes_are_kept_in_the_header(path):
    notes = {"title": "Fäden", "author": "", "": "empty"}
    tenarc.save(path, {"a": 1}, name="m", notes=notes)
    with tenarc.open(path) as archive:
        assert archive.notes == archive.segment(0).notes == dict(sorted(notes.items()))
        assert archive.segment(0).header.notes == archive.notes
        assert repr(archive.segment(0)).startswith("<tenarc.Segment 0 'm': 0 tensors, 3 notes, ")
        assert "1 value, 0 tensors, 3 notes, " in repr(archive)
        assert archive.segment(0).header.ext == bytes.fromhex("a100a3") + b"".join(
            map(items.text, ["", "empty", "author", "", "title", "Fäden"])
        )
        archive.verify()
    with tenarc.append(path) as out:
        out.save({"a": 1})
        out.save({"a": 1}, notes={"b": "\u00e9", "a\u00e9": "x", "az": "y"})
    with tenarc.open(path) as archive:
        assert archive.segment(1).notes == {} and [*archive.segment(2).notes] == ["az", "a\u00e9", "b"]
        digests = {segment.digest() for segment in archive.segments()}
        assert len(digests) == 1
    header = tenarc.Reader(io.BytesIO(path.read_bytes())).next_header()
    assert header is not None and header.notes["title"] == "Fäden"


def test_notes_that_are_no_texts_are_refused(path):
    for notes, what in (({"a": 1}, "a note"), ({1: "a"}, "the key of a note"), ({"a": "\ud800"}, "Unicode")):
        with pytest.raises(tenarc.Unsupported, match=what):
            tenarc.save(path, 1, notes=notes)
    for length in (65_536, 65_529):
        with pytest.raises(tenarc.Unsupported, match="65536"):
            tenarc.save(path, 1, notes={"a": "b" * length})
    assert not path.exists()
    tenarc.save(path, 1, notes={"a": "b" * 65_528})
    verified(path)


# Checks


def test_a_check_of_another_form_is_refused(path):
    for digits in (
        "67787868332d3633",
        "00",
        "80",
        "81616100",
        "8260 08",
        "82616100",
        "8261611841",
        "82616120",
        "83616101 00",
        "826161f6",
    ):
        refused(path, ByHand().segment(content=fields_of(check=bytes.fromhex(digits))).end().data)
    refused(path, ByHand().segment(content=fields_of(check=b"\x82" + items.text("x" * 65) + b"\x08")).end().data)
    refused(path, ByHand().segment(content=fields_of(check=b"\x82\x67xxh3-64\x08")).end().data, "has to be a text")
    refused(path, ByHand().segment(content=fields_of(check=b"\x82\x67xxh3-64\x10")).end().data, "has to be a text")
    for check in (b"\xf6", b"\x82\x61a\x01", b"\x82" + items.text("x" * 64) + b"\x18\x40"):
        accepted(path, ByHand().segment(content=fields_of(check=check)).end().data)


@pytest.mark.parametrize("length", [1, 8, 32, 64])
def test_an_unknown_check_is_listed_copied_and_passed_over(path, tmp_path, length):
    hashes = bytes(range(length))
    made = ByHand().segment(REFERENCE, [NUMBERS], name="a", algorithm=("blake9", length), hashes=hashes)
    end = len(made.data)
    assert made.data[: end - 9].endswith(b"\xd8\x40" + items.byte_string(hashes))
    made.segment(b"\x61b", name="b").end()
    path.write_bytes(made.data)
    verified(path)
    with tenarc.open(path) as archive:
        segment = archive.segment(0)
        assert segment.end == end and segment.header.algorithm == ("blake9", length)
        assert segment.keys() == [""] and len(segment.digest()) == 32
        for read in (segment.load, segment.view, lambda: segment[""], lambda: segment.hashes):
            with pytest.raises(tenarc.Version, match="algorithm 'blake9'"):
                read()
        digest = archive.digest()
    with tenarc.open(path, verify=False) as archive:
        for found in (archive.segment(0).load(), archive.segment(0).view(), archive.segment(0)[""]):
            assert found == NUMBERS
    reader = tenarc.Reader(io.BytesIO(made.data))
    with pytest.raises(tenarc.Version, match="blake9"):
        reader.load()
    assert reader.load() == "b"
    path.write_bytes(made.data[:-1])
    assert tenarc.recover_to(path, tmp_path / "new").segments == 2
    with tenarc.open(tmp_path / "new") as archive:
        archive.verify()
        assert archive.digest() == digest
    # Its list of hashes is checked, as that is no other hash.
    damaged = bytearray(made.data)
    damaged[end - 10] ^= 1
    path.write_bytes(damaged)
    for read in (verified, streamed):
        with pytest.raises(tenarc.Damaged, match="list of hashes"):
            read(path)
    # What is left of a cut value gets hashes that are known.
    path.write_bytes(made.data[: end - 3])
    salvaged = tenarc.recover_to(path, tmp_path / "new")
    assert salvaged.salvaged is not None
    with tenarc.open(tmp_path / "new") as archive:
        assert archive.segment(0).header.algorithm is None and archive.load() == NUMBERS


def test_parts_with_an_unknown_check_are_read_unverified():
    header = Header(None, 8, True, 1 << 16, (16,), REFERENCE, algorithm=("blake9", 3))
    item = header.write(0)
    metadata = item + header.hash_list(b"abc", item[-8:])
    with pytest.raises(tenarc.Version, match="blake9"):
        tenarc.from_parts(metadata, [NUMBERS])
    assert tenarc.from_parts(metadata, [NUMBERS], verify=False) == NUMBERS
    assert tenarc.buffer_lengths(metadata) == [16]


# Buffers elsewhere


def elsewhere(**options: Any) -> ByHand:
    """A value of three buffers, of which the one in the middle is elsewhere."""
    references = [bytes.fromhex("da54425546 81") + bytes((number,)) for number in range(3)]
    metadata = b"\xa3" + b"".join(items.text(name) + one for name, one in zip("abc", references, strict=True))
    hashes = b"A" * 8 + b"E" * 16 + b"C" * 8
    from tenarc.chunks import hashes_of

    a, c = b"a" * 9, b"c" * 5
    if "algorithm" not in options:
        hashes = hashes_of(memoryview(a), 1 << 16) + b"E" * 16 + hashes_of(memoryview(c), 1 << 16)
    place = {1: Elsewhere("sha-256", b"\xee" * 32)}
    return ByHand().segment(
        metadata, [a, b"", c], lengths=[9, 70_000, 5], elsewhere=place, hashes=hashes, name="e", **options
    )


def test_a_buffer_elsewhere_is_listed_and_copied(path, tmp_path):
    made = elsewhere().segment(b"\x61b").end()
    path.write_bytes(made.data)
    assert bytes.fromhex("83 1a00011170 67") + b"sha-256" + b"\x58\x20" + b"\xee" * 32 in made.data
    verified(path)
    with tenarc.open(path) as archive:
        segment = archive.segment(0)
        (first, _), _, (third, _) = segment.buffers
        # It takes no place and no alignment in the body.
        assert third == first + 16 and segment.header.stored_lengths == (9, 0, 5)
        assert segment.elsewhere(1) == Elsewhere("sha-256", b"\xee" * 32) and segment.elsewhere(0) is None
        assert segment.keys() == ["a", "b", "c"] and segment["a"] == b"a" * 9 and segment["c"] == b"c" * 5
        for verify in (True, False):
            with tenarc.open(path, verify=verify) as other:
                for read in (other.segment(0).load, other.segment(0).view, lambda: other.segment(0)["b"]):
                    with pytest.raises(tenarc.Unsupported, match="sha-256 digest " + "ee" * 32) as caught:
                        read()
                    assert caught.value.path == "b"
        digest = archive.digest()
    reader = tenarc.Reader(io.BytesIO(made.data))
    with pytest.raises(tenarc.Unsupported, match="sha-256 digest eeee"):
        reader.load()
    assert reader.load() == "b"
    path.write_bytes(made.data[:-1])
    assert tenarc.recover_to(path, tmp_path / "new").segments == 2
    with tenarc.open(tmp_path / "new") as archive:
        archive.verify()
        assert archive.digest() == digest
    with tenarc.open(path, torn=True) as archive:
        end = archive.segment(0).end
    # Without the list of hashes, nobody knows those of a buffer elsewhere.
    path.write_bytes(made.data[: end - 1])
    salvaged = tenarc.recover_to(path, tmp_path / "new").salvaged
    assert salvaged is not None and [info.path for info in salvaged.missing] == ["b"]


def test_buffers_that_are_all_elsewhere_have_an_empty_body(path):
    for lengths, hashes in (([5], b"12345678"), ([65_537, 1], b"1" * 24)):
        places = {number: Elsewhere("h", b"12345678") for number in range(len(lengths))}
        metadata = REFERENCE if len(lengths) == 1 else b"\x82" + REFERENCE + REFERENCE[:-1] + b"\x01"
        made = ByHand().segment(metadata, [b""] * len(lengths), lengths=lengths, elsewhere=places, hashes=hashes)
        assert b"\x40\xd8\x43" in made.data
        path.write_bytes(made.end().data)
        verified(path)


def test_descriptions_of_buffers_elsewhere_have_bounds(path):
    digest = items.byte_string(bytes(8))
    good = [b"\x05", b"\x61h", digest]
    for wrong in (
        [b"\x00", good[1], digest],
        [items.head(0, 1 << 63), good[1], digest],
        [b"\x05", b"\x60", digest],
        [b"\x05", items.text("h" * 65), digest],
        [b"\x05", b"\x41h", digest],
        [b"\x05", good[1], items.byte_string(bytes(7))],
        [b"\x05", good[1], items.byte_string(bytes(65))],
        [b"\x05", good[1], items.text("12345678")],
        [b"\x05", good[1], b"\x58\x08" + bytes(8)],
        [b"\x18\x05", good[1], digest],
        [b"\x05", b"\x62\xff\xff", digest],
    ):
        lengths = b"\x81\x83" + b"".join(wrong)
        refused(path, ByHand().segment(content=fields_of(lengths=lengths, metadata=REFERENCE)).end().data)


def test_lists_of_hashes_of_buffers_elsewhere_end_before_2_63(path):
    description = items.array([items.head(0, (1 << 63) - 1), b"\x61h", items.byte_string(bytes(8))])
    check = b"\x82\x61a\x18\x40"
    content = fields_of(lengths=items.array([description] * 1024), check=check, metadata=REFERENCE)
    refused(path, ByHand().segment(content=content).end().data, r"2\^63")


def test_parts_have_no_buffers_elsewhere():
    header = Header(None, 8, True, 1 << 16, (5,), REFERENCE, elsewhere={0: Elsewhere("h", bytes(8))})
    item = header.write(0)
    with pytest.raises(tenarc.Damaged, match="no buffers elsewhere"):
        tenarc.from_parts(item + header.hash_list(bytes(8), item[-8:]), [])


def test_a_compressed_buffer_may_be_beside_one_elsewhere(path):
    packed = {0: Packed("zstd", (1, 0), array("Q", [6]))}
    stored = b"\x01\x01\x00\x00\x00\x05"
    from tenarc.chunks import hashes_of

    hashes = hashes_of(memoryview(stored), 1 << 16) + b"E" * 8
    metadata = b"\x82" + REFERENCE + REFERENCE[:-1] + b"\x01"
    options: Any = dict(lengths=[32, 7], packed=packed, elsewhere={1: Elsewhere("h", bytes(8))}, hashes=hashes)
    with opened(path, ByHand().segment(metadata, [stored, b""], **options).end().data) as archive:
        archive.verify()
        assert archive["0"] == b"\x05" * 32
        with pytest.raises(tenarc.Unsupported, match="h digest 00"):
            archive["1"]


# The directory


def test_a_list_of_segments_states_names_once(path):
    made = ByHand()
    for name in ("b", "a", None, "b", None, "a"):
        made.segment(b"\x82\x01\x02", name=name)
    made.end()
    assert b"\x82\x82\x61b\x61a\x86\x84" in made.data
    with opened(path, made.data) as archive:
        assert archive.names() == ["b", "a", None, "b", None, "a"]
        archive.verify()


def end_fields(names: str, entries: str, count: int = 2, levels: str = "80", ext: str = "a0") -> list[bytes]:
    return [items.head(0, count), *map(bytes.fromhex, ("82" + names + entries, levels, ext))]


# Two segments of 39 bytes each, with the names a and b, from byte 12 on.
ENTRIES = {
    "good": ("8261616162", "8284 0c 00 1827 f6 84 1833 01 1827 f6"),
    "a name twice": ("83616161626161", "8284 0c 00 1827 f6 84 1833 01 1827 f6"),
    "a name that no entry has": ("8361616162 6163", "8284 0c 00 1827 f6 84 1833 01 1827 f6"),
    "names in another order": ("8261626161", "8284 0c 01 1827 f6 84 1833 00 1827 f6"),
    "equal names": ("8261616161", "8284 0c 00 1827 f6 84 1833 01 1827 f6"),
    "a null as name": ("826161f6", "8284 0c 00 1827 f6 84 1833 01 1827 f6"),
    "a name that is not there": ("8161 61", "8284 0c 00 1827 f6 84 1833 01 1827 f6"),
    "a longer head of a name": ("82780161616162", "8284 0c 00 1827 f6 84 1833 01 1827 f6"),
    "a longer number": ("8261616162", "8284 0c 1800 1827 f6 84 1833 01 1827 f6"),
    "three items": ("8261616162", "8283 0c 00 1827 84 1833 01 1827 f6"),
    "five items": ("8261616162", "8285 0c 00 1827 f6f6 85 1833 01 1827 f6f6"),
    "offsets that fall": ("8261616162", "8284 1833 00 1827 f6 84 0c 01 1827 f6"),
    "undefined": ("8261616162", "8284 0c 00 1827 f7 84 1833 01 1827 f6"),
    "names of indefinite length": ("9f61616162ff", "8284 0c 00 1827 f6 84 1833 01 1827 f6"),
    "entries of indefinite length": ("8261616162", "9f84 0c 00 1827 f6 84 1833 01 1827 f6ff"),
    "another header length": ("8261616162", "8284 0c 00 1828 f6 84 1833 01 1827 f6"),
    "another name": ("8261616163", "8284 0c 00 1827 f6 84 1833 01 1827 f6"),
    "another offset": ("8261616162", "8284 0c 00 1827 f6 84 1834 01 1827 f6"),
}


@pytest.mark.parametrize("case", ENTRIES)
def test_an_end_mark_has_one_form(path, case):
    made = ByHand().segment(name="a").segment(name="b")
    assert len(made.data) == 90
    data = made.end(fields=end_fields(*ENTRIES[case])).data
    if case == "good":
        assert data == ByHand().segment(name="a").segment(name="b").end().data
        accepted(path, data)
    else:
        refused(path, data)


@pytest.mark.parametrize(
    "changed",
    [{"count": 1}, {"count": 3}, {"levels": "8180"}, {"levels": "9fff"}, {"ext": "bfff"}, {"ext": "a0a0"}],
)
def test_the_rest_of_an_end_mark_has_one_form_too(path, changed):
    made = ByHand().segment(name="a").segment(name="b")
    data = made.end(fields=end_fields(*ENTRIES["good"], **changed)).data
    refused(path, data)


def test_rows_are_compared_by_readers_that_count_them(path):
    metadata = b"\x82\x01\x02"
    for rows in (None, 0, 1, 3):
        made = ByHand().segment(metadata, name="a", entry={"rows": rows}).end()
        refused(path, made.data, "rows", readers=(verified, loaded))
        # A walk does not count them.
        accepted(path, made.data, readers=(streamed,))
        with opened(path, made.data + bytes(3)) as archive:
            assert archive.count == 1
    refused(path, ByHand().segment(entry={"rows": 1}).end().data, "rows", readers=(verified, loaded))


ROWS = {
    "80": 0,
    "820102": 2,
    "9801 00": 1,
    "da54434f4c 80": 0,
    "da54434f4c 84 02 8164756e6974 03 8164756e6974": 5,
    "db0000000054434f4c 82 02 8164756e6974": None,
    "da54534f4d f6": None,
    "c1 820102": None,
    "d840 4401020304": None,
    "a0": None,
    "6161": None,
}


@pytest.mark.parametrize("digits", ROWS)
def test_rows_are_those_of_the_metadata(path, digits):
    metadata = bytes.fromhex(digits)
    made = ByHand().segment(metadata, entry={"rows": ROWS[digits]}).end()
    accepted(path, made.data)
    tenarc_made = ByHand().segment(metadata).end()
    assert tenarc_made.data == made.data


def test_digests_of_blocks_are_compared_by_verify(path):
    def made(digest: bytes | None) -> ByHand:
        out = ByHand()
        for number in range(64):
            out.segment(name="n", entry={"digest": digest} if number == 5 else None)
        return out.end()

    # Null is not compared.
    accepted(path, made(None).data)
    data = made(b"\x05" * 16).data
    refused(path, data, "says 05050505", readers=(verified,))
    accepted(path, data, readers=(loaded, streamed))
    with opened(path, data) as archive:
        wrong = archive.digest()
    with opened(path, made(None).data) as archive:
        assert archive.digest() != wrong
    refused(path, made(b"\x05" * 15).data, "digest of 16 bytes")


def test_rows_that_no_list_can_have_are_refused(path):
    for rows in ((1 << 64) - 1, 1 << 63, 1 << 40):
        made = ByHand()
        for _ in range(3):
            made.segment(b"\x82\x01\x02", name="log", entry={"rows": rows})
        with opened(path, made.end().data) as archive:
            for read in (
                lambda: archive.table("log")[-1],
                lambda: archive.table("log")[0],
                lambda: [*archive.table("log")],
            ):
                with pytest.raises(tenarc.Damaged, match="rows"):
                    read()


def test_random_changes_of_records_of_the_directory_are_refused(path):
    dice = random.Random(3)
    made = ByHand()
    for number in range(70):
        made.segment(b"\x82\x01\x02" if number % 2 else b"\x07", name=[None, "a", "log"][number % 3])
    at = len(made.data)
    mark = made.directory.mark(at)
    (link,) = made.directory.levels[0]
    block = made.data[link.offset : link.offset + link.length]
    readers = {
        link.offset: lambda item: _read_block(item, 0, link.offset),
        at: lambda item: Directory.read(item, at),
    }
    for place, good in ((link.offset, block), (at, mark)):
        readers[place](good)
        head, _ = record_length(good[:11], place)
        content = good[head:-9]
        for _ in range(3000):
            changed = bytearray(content)
            for _ in range(dice.choice((1, 1, 2))):
                where = dice.randrange(5, len(changed))
                kind = dice.random()
                if kind < 0.6:
                    changed[where] = dice.choice(
                        (dice.randrange(256), 0xF6, 0xF7, 0xF5, 0xFB, 0x9F, 0xFF, 0xC0, 0x20, 0x60)
                    )
                elif kind < 0.8:
                    del changed[where]
                else:
                    changed[where:where] = dice.choice(
                        (b"\xf6", b"\x00", b"\x18", b"\xc1", b"\xf9\x00\x00", b"\x80")
                    )
            item = hashed(RECORD + items.byte_string(bytes(changed)), place)
            try:
                found = readers[place](item)
            except tenarc.Error:
                continue
            # Other numbers, names and digests can be right elsewhere, in their one form.
            assert (found.record(0, place) if place != at else found.mark(place)) == item
            for entry in found.entries:
                assert type(entry.offset) is int and type(entry.header_length) is int
                assert entry.rows is None or type(entry.rows) is int
                assert entry.name is None or type(entry.name) is str
                assert entry.digest is None or (type(entry.digest) is bytes and len(entry.digest) in (0, 16))


def test_links_have_the_lengths_of_blocks(path):
    made = ByHand()
    for _ in range(64):
        made.segment()
    link = made.directory.levels[0][0]
    for wrong in (link.length - 1, link.length + 1, 0, 1 << 40):
        made.directory.levels[0][0] = Link(link.offset, wrong)
        data = made.data + made.directory.end(len(made.data))
        refused(path, data)


def test_the_longest_end_mark(path):
    made = ByHand()
    names = [f"{number}".zfill(1024) for number in range(63)]
    for name in names:
        made.segment(name=name)
    made.end(ext=b"\xa1\x04" + items.byte_string(bytes(65_531)))
    reads = []
    with counted(path, made.data, reads) as archive:
        assert len(reads) == 2
        assert archive.names() == names and len(reads) == 2
    accepted(path, made.data)
    # What no writer writes, because it is longer than names and extensions can be.
    huge = ByHand().segment()
    fields = end_fields("80", "8184 0c f6 181e f6", 1)
    fields[0] = fields[0] + bytes(0)
    at = len(huge.data)
    content = (
        bytes.fromhex("da54454e44 85 01") + b"".join(fields)[:-1] + b"\xa1\x04" + items.byte_string(bytes(262_144))
    )
    mark = hashed(RECORD + items.byte_string(content), at)
    from tenarc.directory import tail

    refused(path, huge.data + mark + b"".join(tail(at, len(mark))))


# Reads


def counted(path: Path, data: bytes, reads: list[tuple[int, int]]) -> tenarc.Archive:
    """Opens an archive, and notes what is read of the file."""

    class Counting(FileSource):
        def read(self, at: int, length: int) -> bytes:
            reads.append((at, length))
            return super().read(at, length)

        def share(self) -> Counting:
            return self

    path.write_bytes(data)
    return tenarc.Archive(Counting(io.FileIO(path, "r")))


def rows_file(count: int) -> bytes:
    out = io.BytesIO()
    writer = tenarc.Writer(out)
    for number in range(count):
        writer.save([{"x": number, "y": 2 * number}] * 20, name="log")
        writer.commit()
    return out.getvalue()


def test_opening_reads_the_last_bytes_once(path):
    reads: list[tuple[int, int]] = []
    data = rows_file(3)
    with counted(path, data, reads) as archive:
        assert reads == [(max(len(data) - 4096, 0), min(len(data), 4096))]
        assert archive.count == 3 and archive.names() == ["log"] * 3 and len(archive.table("log")) == 60
        assert len(reads) == 1
        assert archive.table("log")[25] == {"x": 1, "y": 2} and len(reads) == 2


def test_names_rows_and_digests_need_no_headers(path):
    reads: list[tuple[int, int]] = []
    with counted(path, rows_file(1000), reads) as archive:
        assert len(reads) == 1
        # 15 blocks of 64, and the end mark has the last 40.
        assert len(archive.names()) == 1000 and len(reads) == 16
        table = archive.table("log")
        assert len(table) == 20_000 and len(reads) == 16
        assert table[19_999] == {"x": 999, "y": 1998} and len(reads) == 17
        archive.digest()
        # The end mark has no digests.
        assert len(reads) == 17 + 40
        table["x"]
        assert len(reads) > 1000


def test_the_magic_is_checked_with_the_first_header(path):
    data = bytearray(rows_file(40))
    data[3] ^= 1
    assert len(data) > 5000
    reads: list[tuple[int, int]] = []
    with counted(path, bytes(data), reads) as archive:
        assert archive.count == 40 and len(reads) == 1
        with pytest.raises(tenarc.Damaged, match="not a tenarc archive"):
            archive.segment(0)
        with pytest.raises(tenarc.Damaged, match="not a tenarc archive"):
            archive.verify()


# Writing


def test_blocks_that_fill_on_append_have_digests(path):
    tenarc.save(path, {"n": 0, "a": np.arange(600.0)}, name="v")
    for number in range(1, 63):
        with tenarc.append(path) as out:
            out.save({"n": number, "a": np.arange(600.0)}, name="v")
    with tenarc.open(path) as archive:
        places = [segment.end for segment in archive.segments()]
        digests = [segment.digest_bytes() for segment in archive.segments()]
    # The lists of hashes of two values are damaged. One of them has a damaged header.
    data = bytearray(path.read_bytes())
    data[places[3] - 12] ^= 1
    path.write_bytes(data)
    with tenarc.append(path) as out:
        out.save({"n": 63, "a": np.arange(600.0)}, name="v")
        out.save({"n": 64}, name="v")
    with tenarc.open(path) as archive:
        found = [entry.digest for entry in archive._entries]
        digests.append(archive.segment(63).digest_bytes())
        digests[3] = None
        assert found[:64] == digests and not found[64]
        assert [entry.header_length for entry in archive._entries] == [s.header_length for s in archive.segments()]
    data[places[3] - 12] ^= 1
    path.write_bytes(data + path.read_bytes()[len(data) :])
    verified(path)


def test_the_end_mark_is_durable_before_its_tail(path, monkeypatch):
    calls: list[tuple[str, int]] = []
    sync, truncate, write = os.fsync, io.FileIO.truncate, io.FileIO.write

    class Noted(io.FileIO):
        def truncate(self, size=None):
            calls.append(("cut", size))
            return truncate(self, size)

        def write(self, data):
            calls.append(("write", self.tell()))
            return write(self, data)

    def synced(number: int) -> None:
        calls.append(("sync", os.fstat(number).st_size))
        sync(number)

    tenarc.save(path, 1)
    whole = path.stat().st_size
    with path.open("ab") as file:
        file.write(b"unfinished")
    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr("tenarc.source.io.FileIO", Noted)
    with tenarc.append(path) as out:
        assert calls == [("cut", whole), ("sync", whole)]
        out.save({"a": np.arange(1000.0)}, name="n" * 300)
        out.commit()
        length = path.stat().st_size
        assert calls[-3:] == [("sync", length - 42), ("write", length - 42), ("sync", length)]
        del calls[:]
        out.commit()
        out.save(2)
        assert not any(call == "sync" for call, _ in calls)
        out._broken = True
        out._ended = True
    # What was not committed is cut off durably, too.
    assert calls[-2:] == [("cut", length), ("sync", length)]


def test_after_a_failed_sync_nothing_more_is_written(path, monkeypatch):
    tenarc.save(path, 1)
    before = path.read_bytes()
    out = tenarc.append(path)
    out.save(2)
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(5, "broken")))
    with pytest.raises(OSError, match="broken"):
        out.commit()
    monkeypatch.undo()
    for call in (out.commit, lambda: out.save(3)):
        with pytest.raises(OSError, match="an earlier write failed"):
            call()
    out.close()
    assert path.read_bytes() == before


def test_recovering_makes_the_end_mark_durable_before_its_tail(path, monkeypatch):
    path.write_bytes(ByHand().segment(name="a").end().segment(name="b").data + b"\xd8")
    lengths: list[int] = []
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda number: lengths.append(os.fstat(number).st_size) or sync(number))
    assert tenarc.recover(path).segments == 2
    whole = path.stat().st_size
    cut = len(ByHand().segment(name="a").end().segment(name="b").data)
    assert lengths == [cut, whole - 42, whole]
    assert path.read_bytes() == ByHand().segment(name="a").end().segment(name="b").end().data
