"""What is committed, unfinished, torn or damaged (SPEC 5.6 to 5.8): every cut, changed bits, lost sectors."""

from __future__ import annotations

import io
import os
import random
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from by_hand import ByHand

import tenarc
from tenarc import items
from tenarc.directory import MAGIC, tail
from tenarc.segment import AUX, RECORD, digest, hashed, record, record_length

TAIL = 42


@pytest.fixture(autouse=True)
def unsynced(monkeypatch):
    """Thousands of files are made here, of which none need survive a crash."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "a.tenarc"


class Piece(NamedTuple):
    start: int
    end: int
    #: `magic`, `header`, `rest` of a segment, `block`, `mark`, `padding`, `tail`, `aux`.
    kind: str


class Sample(NamedTuple):
    data: bytes
    pieces: list[Piece]
    #: Where each tail ends, and how many segments are before it.
    commits: list[tuple[int, int]]

    def piece(self, at: int) -> Piece:
        return next(piece for piece in self.pieces if piece.start <= at < piece.end)

    def version(self, piece: Piece) -> int:
        """Where the version of a record is."""
        item = self.data[piece.start : piece.end]
        return piece.start + item.index(b"\xda") + 6


def sample(*counts: int, aux: bool = False, **options: Any) -> Sample:
    """An archive with so many segments before each end mark, and what is where in it."""
    out = io.BytesIO()
    writer = tenarc.Writer(out, alignment=8, inline_below=0, **options)
    pieces, commits, number = [Piece(0, 12, "magic")], [], 0

    def auxiliary() -> None:
        if aux:
            at = writer._at
            writer._write(record(AUX, [b"\x07", b"\x65extra"], at))
            pieces.append(Piece(at, writer._at, "aux"))

    for count in counts:
        for _ in range(count):
            start = writer._at
            levels = [len(links) for links in writer._directory.levels]
            value: Any = {"n": number, "a": np.full(6, number, "f4")} if number % 3 else [number] * (number % 40)
            writer.save(value, name=f"n{number % 5}")
            number += 1
            data = out.getvalue()
            header, end = record_length(data[start : start + 11], start)[1] + start, writer._at
            if [len(links) for links in writer._directory.levels] != levels:
                (link,) = writer._directory.levels[0][-1:]
                end = link.offset
                pieces += [
                    Piece(start, header, "header"),
                    Piece(header, end, "rest"),
                    Piece(end, writer._at, "block"),
                ]
            else:
                pieces += [Piece(start, header, "header"), Piece(header, end, "rest")]
            auxiliary()
        mark = writer._at
        writer.commit()
        end, data = writer._at, out.getvalue()
        length = int.from_bytes(data[end - 24 : end - 16], "big")
        assert int.from_bytes(data[end - 32 : end - 24], "big") == mark
        pieces += [
            Piece(mark, mark + length, "mark"),
            Piece(mark + length, end - TAIL, "padding"),
            Piece(end - TAIL, end, "tail"),
        ]
        commits.append((end, number))
        auxiliary()
    return Sample(out.getvalue(), [piece for piece in pieces if piece.start < piece.end], commits)


class Verdict(NamedTuple):
    """What a reader says: how many segments there are, or which error."""

    count: int | None
    error: type[tenarc.Error] | None = None


def verdict(path: Path, data: bytes) -> Verdict:
    path.write_bytes(data)
    try:
        with tenarc.open(path) as archive:
            names = archive.names()
            assert len(names) == archive.count
            return Verdict(archive.count)
    except tenarc.Error as error:
        assert type(error) in (tenarc.Torn, tenarc.Damaged, tenarc.Version), error
        return Verdict(None, type(error))


DAMAGED, TORN = Verdict(None, tenarc.Damaged), Verdict(None, tenarc.Torn)
VERSION = Verdict(None, tenarc.Version)


def wanted(found: Sample, length: int) -> Verdict:
    """What is committed in the first bytes of a sample."""
    counts = [count for end, count in found.commits if end <= length]
    return Verdict(counts[-1]) if counts else TORN


SAMPLES = {
    "appends": dict(counts=(2, 1, 3, 1)),
    "aux": dict(counts=(1, 2, 1), aux=True),
    "block": dict(counts=(3, 60, 2)),
    "padding": dict(counts=(1,) * 9),
    "unchecked": dict(counts=(1, 1, 4), checksums=False),
}


@pytest.fixture(scope="module", params=SAMPLES)
def found(request) -> Sample:
    options = dict(SAMPLES[request.param])
    made = sample(*options.pop("counts"), **options)  # type: ignore[misc]
    kinds = {piece.kind for piece in made.pieces}
    assert request.param not in ("aux", "block", "padding") or request.param in kinds
    return made


def test_the_sample_is_right(found, path):
    path.write_bytes(found.data)
    assert verdict(path, found.data) == Verdict(found.commits[-1][1])
    with tenarc.open(path) as archive:
        archive.verify()
    for first, second in zip(found.pieces, found.pieces[1:], strict=False):
        assert first.end == second.start


def test_every_cut_opens_at_what_was_committed(found, path):
    step = 1 if len(found.data) < 1500 else 13
    edges = {edge + n for piece in found.pieces for edge in (piece.start, piece.end) for n in (-1, 0, 1)}
    lengths = {*range(0, len(found.data), step), *edges} & {*range(len(found.data) + 1)}
    for length in random.Random(0).sample(sorted(lengths), min(len(lengths), 600)):
        said = verdict(path, found.data[:length])
        assert said == wanted(found, length), (length, said)
        # Zeros, as of a file that was extended before it was written.
        in_tail = any(piece.start < length < piece.end for piece in found.pieces if piece.kind == "tail")
        for zeros in (1, 700):
            # Half a tail is in no file after a crash.
            if length >= len(MAGIC) and not in_tail:
                assert verdict(path, found.data[:length] + bytes(zeros)) == said, (length, zeros)


def judged(found: Sample, changed: bytes, at: int, bit: int, length: int) -> Verdict:
    """The verdict that is right for the first bytes of a sample, of which one bit was changed."""
    piece, state = found.piece(at), wanted(found, length)
    end = max((end for end, _ in found.commits if end <= length), default=len(MAGIC))
    if piece.kind == "magic":
        # The magic is checked if it is among the last bytes that are read, or if the headers are read.
        is_read = length <= 4096 or end < length
        return DAMAGED if is_read else state
    is_version = piece.kind in ("header", "block", "mark", "aux") and at == found.version(piece) and 1 <= bit < 5
    if end == length:
        # The last end mark is found from the end.
        last = [piece for piece in found.pieces if piece.end <= length][-3:]
        is_last = piece in last and piece.kind in ("mark", "padding", "tail")
        if is_last:
            return VERSION if is_version else DAMAGED
        if piece.kind == "block":
            # It is read for the names.
            return VERSION if is_version else DAMAGED
        return state
    # The headers are read from the start.
    if piece.kind == "rest":
        return state
    if is_version:
        return VERSION
    if at < end:
        return DAMAGED
    return state


@pytest.mark.parametrize("kind", ["whole", "unfinished", "cut"])
def test_changed_bits_are_judged(found, path, kind):
    dice = random.Random(kind)
    ends = {
        "whole": [found.commits[-1][0]],
        "unfinished": [found.commits[-1][0] - 1, found.commits[-2][0] + 30],
        "cut": [len(found.data) - dice.randrange(len(found.data) - 12) for _ in range(3)],
    }[kind]
    for length in ends:
        if kind != "whole" and length in {end for end, _ in found.commits}:
            continue
        # All of what leads to the segments, and some of the rest.
        places = [
            at
            for piece in found.pieces
            for at in range(piece.start, min(piece.end, length))
            if piece.kind != "rest" or dice.random() < 0.1
        ]
        for at in dice.sample(places, min(len(places), 300)):
            bit = dice.randrange(8)
            data = bytearray(found.data[:length])
            data[at] ^= 1 << bit
            said = verdict(path, bytes(data))
            assert said == judged(found, bytes(data), at, bit, length), (length, at, bit, found.piece(at), said)
            if said in (DAMAGED, VERSION) and found.piece(at).kind != "block":
                with pytest.raises(tenarc.Error):
                    tenarc.append(path)
                assert path.read_bytes() == data


def test_lost_sectors_of_an_append_are_unfinished(found, path):
    """A crash before the tail is written can leave any of the sectors that are not durable as they were."""
    dice = random.Random(1)
    for (before, count), (end, _) in zip(found.commits, found.commits[1:], strict=False):
        for _ in range(20):
            data = bytearray(found.data[: end - TAIL])
            for sector in range(before // 512, len(data) // 512 + 1):
                if dice.random() < 0.5:
                    start = max(512 * sector, before)
                    data[start : 512 * (sector + 1)] = bytes(len(data[start : 512 * (sector + 1)]))
            path.write_bytes(data)
            with tenarc.open(path) as archive:
                assert archive.count == count and archive.unfinished_bytes == len(data) - before
            with tenarc.append(path) as out:
                out.save("more")
            with tenarc.open(path) as archive:
                archive.verify()
                assert archive.count == count + 1 and archive.unfinished_bytes == 0


# Tails


def test_a_tail_never_crosses_a_multiple_of_512(path):
    places, gaps = set(), set()
    for length in range(1100):
        made = ByHand().segment(b"\x59" + length.to_bytes(2, "big") + bytes(length)).end()
        ((mark, start, end),) = made.ends
        said = int.from_bytes(made.data[start + 18 : start + 26], "big")
        behind = mark + said
        gap = made.data[behind:start]
        if behind % 512 <= 470:
            assert gap == b""
        else:
            assert start % 512 == 0 and start - behind < 42
            assert (gap[0] == 0x40 and len(gap) in (1, 25)) or gap[0] in {0x40 + len(gap) - 1, 0x58}
            assert gap.count(0) >= len(gap) - 2 - (len(gap) == 25)
        assert end - start == 42 and start // 512 == (end - 1) // 512
        assert made.data[start:].startswith(bytes.fromhex("5828 5441524354 41494c"))
        places.add(behind % 512)
        gaps.add(start - behind)
        path.write_bytes(made.data)
        with tenarc.open(path) as archive:
            archive.verify()
            assert archive.count == 1
        assert len(list(tenarc.Reader(io.BytesIO(made.data)))) == 1
    assert places == {*range(512)} and gaps == {*range(42)}


def padded() -> ByHand:
    """Two end marks, before the second of which segments fill up the sector, so that it has padding."""
    for length in range(24, 560):
        made = ByHand().segment(name="first").end().segment(items.byte_string(bytes(length)), name="second").end()
        mark, start, _ = made.ends[1]
        if start - mark - int.from_bytes(made.data[start + 18 : start + 26], "big") == 30:
            return made
    raise AssertionError


def test_an_intact_mark_without_its_tail_is_unfinished(path):
    made = padded()
    _, start, end = made.ends[1]
    data = made.data
    for cut in (
        data[:start],
        data[: start + 20],
        data[:start] + bytes(42),
        data[:start] + bytes(5000),
        data[: end - 1],
    ):
        assert verdict(path, cut) == Verdict(1)
        with tenarc.append(path) as out:
            out.save(3)
        assert verdict(path, path.read_bytes()) == Verdict(2)
        # `recover` keeps the second segment.
        path.write_bytes(cut)
        assert tenarc.recover(path).segments == 2 and path.read_bytes() == data


def test_a_tail_that_is_wrong_is_damaged(path):
    made = padded()
    mark, start, end = made.ends[1]
    data = made.data
    wrong = {
        "a bit": data[: start + 5] + bytes((data[start + 5] ^ 1,)) + data[start + 6 :],
        "half of it": data[: start + 21] + bytes(21),
        "one byte": data[:start] + bytes(41) + b"\x01",
        "padding": data[: start - 3] + b"\x01" + data[start - 2 :],
        "that of another place": data[:start] + tail(mark + 512, end - mark)[1],
        "the mark": data[: mark + 9] + bytes((data[mark + 9] ^ 1,)) + data[mark + 10 :],
        "the mark is gone": data[:mark] + bytes(start - mark) + data[start:],
    }
    for case, content in wrong.items():
        for behind in (b"", bytes(100)):
            assert verdict(path, content + behind) == DAMAGED, case
            with pytest.raises(tenarc.Damaged):
                tenarc.append(path)
            assert path.read_bytes() == content + behind
            # Nothing follows, so the end mark can be written again.
            assert tenarc.recover_to(path, path.with_name("new")).segments == 2
            assert path.with_name("new").read_bytes() == data
            assert tenarc.recover(path).segments == 2 and path.read_bytes() == data
            path.write_bytes(content + behind)
        # Both segments can be read, if that is asked for.
        with tenarc.open(path, torn=True) as archive:
            assert archive.count == 2
        with pytest.raises(tenarc.Error):
            list(tenarc.Reader(io.BytesIO(content)))


def test_wrong_padding_without_a_tail_is_unfinished(path):
    made = padded()
    _, start, _ = made.ends[1]
    assert verdict(path, made.data[: start - 3] + b"\x01\x00\x00" + bytes(42)) == Verdict(1)
    assert verdict(path, made.data[: start - 3] + b"\x01\x00\x00" + made.data[start : start + 30]) == Verdict(1)


def test_a_later_tail_is_a_sign_of_damage(path):
    made = ByHand().segment(name="a").end().segment(name="b").end().segment(name="c").end()
    (_, _, first), (mark, _, _), _ = made.ends
    for at in (first, first + 30, mark, mark + 20, len(made.data) - 100):
        data = bytearray(made.data) + bytes(10)
        data[at] ^= 1
        # A changed bit of the last segment leaves the second end mark, if no later one is intact.
        assert verdict(path, bytes(data)) == DAMAGED

    def forged(at: int, mark: int, length: int) -> bytes:
        content = bytes.fromhex("5828") + b"TARCTAIL"
        content += b"".join(number.to_bytes(8, "big") for number in (mark, length, at))
        return made.data[:first] + bytes(at - first) + content + digest(content, at)

    # A tail whose end mark is before the place is none. Otherwise it does not matter where its end mark is.
    place = -(-first // 512) * 512
    for at, mark, length, wanted in (
        (first + 64, first + 30, 34, DAMAGED),
        (first + 64, 20, 30, Verdict(1)),
        (first + 64, first + 30, 33, DAMAGED),
        (first + 64, first + 30, 35, DAMAGED),
        (first + 64, first + 30, 1 << 63, DAMAGED),
        (first + 64, first + 64, 0, DAMAGED),
        (place + 470, place + 400, 70, DAMAGED),
        (place + 471, place + 401, 70, DAMAGED),
        (place + 512, place + 441, 70, DAMAGED),
        (place + 512, place + 400, 70, DAMAGED),
    ):
        assert verdict(path, forged(at, mark, length)) == wanted, at


def test_tails_in_a_cut_segment_are_its_content(path):
    made = ByHand().segment(name="a").end()
    at = len(made.data)
    # A buffer with a tail made for its place, whose end mark would be right behind the segment before it.
    reference = bytes.fromhex("da54425546 81 00")
    probe = ByHand().raw(made.data[12:]).segment(reference, [bytes(400)])
    place = probe.data.index(bytes(300))
    for shift in range(place, place + 64):
        content = bytes.fromhex("5828") + b"TARCTAIL" + at.to_bytes(8, "big") + (30).to_bytes(8, "big")
        content += shift.to_bytes(8, "big")

        buffer = bytes(shift - place) + content + digest(content, shift)
        buffer += bytes(400 - len(buffer))
        whole = ByHand().raw(made.data[12:]).segment(reference, [buffer]).data
        assert whole[shift:].startswith(content) or shift > place + 8
        assert verdict(path, whole[: len(whole) - 5]) == Verdict(1)


# Versions


def test_another_version_is_never_unfinished(path, tmp_path):
    made = ByHand().segment(name="a").end()
    whole = made.data
    starts = {
        "TSEG": "88 02",
        "TDIR": "83 02 00",
        "TEND": "9818 1903e8",
        "TAUX": "9b0000000000000002 1b0000000000000002",
    }
    for letters, rest in starts.items():
        for head in ("58ff", "590100", "5a00010000", "5b0000000000010000"):
            begin = bytes.fromhex("d818" + head + "da") + letters.encode() + bytes.fromhex(rest)
            for behind in (b"", bytes(3), bytes(1000)):
                for data in (whole + begin + behind, MAGIC + begin + behind):
                    path.write_bytes(data)
                    for call in (
                        tenarc.open,
                        tenarc.append,
                        tenarc.recover,
                        lambda p: tenarc.open(p, torn=True),
                        lambda p: tenarc.recover_to(p, tmp_path / "new"),
                    ):
                        with pytest.raises(tenarc.Version, match="version"):
                            call(path)
                    assert path.read_bytes() == data and not (tmp_path / "new").exists()
                    with pytest.raises(tenarc.Version, match="version"):
                        list(tenarc.Reader(io.BytesIO(data)))


def test_there_is_no_version_0(path):
    """Zeros that a lost sector left can be where the version should be."""
    start = bytes.fromhex("d818 5827 da54534547 88 00")
    whole = ByHand().segment(name="a").end().data
    assert verdict(path, whole + start + bytes(500)) == Verdict(1)
    # With the right hash it is no lost sector, and no record either.
    content = b"\xda" + b"TSEG" + bytes.fromhex("88 00 f6 08 f6 1a00010000 80 a0 07")
    data = ByHand().segment(content=content).end().data
    path.write_bytes(data)
    with tenarc.open(path) as archive, pytest.raises(tenarc.Damaged, match="version 1, found 0"):
        archive.load()
    with pytest.raises(tenarc.Damaged, match="version 1, found 0"):
        list(tenarc.Reader(io.BytesIO(data)))


def test_a_block_of_another_version_is_said(path):
    made = ByHand()
    for _ in range(64):
        made.segment()
    start = made.directory.levels[0][0].offset
    data = bytearray(made.data)
    data[start + data[start:].index(b"TDIR") + 5] = 9
    for length in (len(data), start + 14):
        assert verdict(path, bytes(data[:length])) == VERSION
        with pytest.raises(tenarc.Version, match="version 9"):
            list(tenarc.Reader(io.BytesIO(bytes(data[:length]))))


# Auxiliary records


def test_auxiliary_records_are_passed_over(path, tmp_path):
    made = ByHand().segment(name="a").aux().aux(3, b"\xf6").end().aux().segment(name="b").aux(1 << 40).end()
    # An end mark refers to them, for readers that know its extension.
    whole = made.data
    for data in (whole, whole + made.aux().data[len(whole) :], whole + b"\xd8"):
        assert verdict(path, data) == Verdict(2)
        with tenarc.open(path) as archive:
            archive.verify()
            assert archive.names() == ["a", "b"] and archive.unfinished_bytes == len(data) - len(whole)
            assert [segment.load() for segment in archive.segments()] == [7, 7]
    assert list(tenarc.Reader(io.BytesIO(whole))) == [7, 7]
    path.write_bytes(whole + made.data[len(whole) :])
    with tenarc.append(path) as out:
        out.save(1)
    assert path.read_bytes().startswith(whole) and path.read_bytes()[len(whole)] == 0xD8
    assert verdict(path, path.read_bytes()) == Verdict(3)
    with pytest.raises(tenarc.Torn):
        list(tenarc.Reader(io.BytesIO(made.data)))
    # Those between segments that are kept stay.
    cut = ByHand().segment(name="a").aux().segment(name="b")
    keep = len(cut.data)
    path.write_bytes(cut.aux().data + b"\xd8\x18")
    assert tenarc.recover(path).segments == 2
    assert path.read_bytes()[:keep] == cut.data[:keep] and path.read_bytes().count(b"TAUX") == 1
    assert verdict(path, path.read_bytes()) == Verdict(2)


def test_auxiliary_records_in_other_places_are_refused(path):
    first = ByHand().aux().segment().end().data
    assert verdict(path, first + b"\x00") == DAMAGED
    for read in (lambda: list(tenarc.Reader(io.BytesIO(first))), lambda: tenarc.open(path).verify()):
        path.write_bytes(first)
        with pytest.raises(tenarc.Damaged, match="auxiliary record"):
            read()
    # Between an end mark and its tail there is only padding.
    made = ByHand().segment()
    at = len(made.data)
    mark = made.directory.mark(at)
    data = made.data + mark + record(AUX, [b"\x07", b"\xf6"], at + len(mark))
    assert verdict(path, data) in (DAMAGED, TORN)


def test_auxiliary_records_have_one_form(path):
    for digits in ("8101", "820107", "84010707f6", "8301f6f6", "8301613107", "83011807f6", "830120f6"):
        at = len(ByHand().segment().data)
        item = hashed(RECORD + items.byte_string(bytes.fromhex("da54415558" + digits)), at)
        made = ByHand().segment().raw(item).segment().end()
        with pytest.raises(tenarc.Damaged):
            list(tenarc.Reader(io.BytesIO(made.data)))
        assert verdict(path, made.data + b"\x00") == DAMAGED


def test_auxiliary_records_have_at_most_16_mib(path):
    for length in (16 << 20, (16 << 20) + 1):
        made = ByHand().segment()
        content = length - 7 - 9 - 5 - 3 - 5
        made.aux(7, items.byte_string(bytes(content)))
        assert len(made.data) - len(ByHand().segment().data) == length
        made.segment().end()
        if length == 16 << 20:
            assert verdict(path, made.data + b"\x00") == Verdict(2)
            assert len(list(tenarc.Reader(io.BytesIO(made.data)))) == 2
        else:
            assert verdict(path, made.data + b"\x00") == DAMAGED
            with pytest.raises(tenarc.Damaged, match="at most 16777216 bytes"):
                list(tenarc.Reader(io.BytesIO(made.data)))


def test_a_damaged_auxiliary_record_is_damage_if_something_was_committed_behind_it(path):
    made = ByHand().segment(name="a").end().aux()
    at = made.ends[0][2] + 12
    changed = bytearray(made.segment(name="b").data)
    changed[at] ^= 1
    assert verdict(path, bytes(changed)) == Verdict(1)
    changed = bytearray(made.end().data)
    changed[at] ^= 1
    assert verdict(path, bytes(changed) + b"\x00") == DAMAGED
