"""Archives that were cut, never finished, or damaged behind their last end mark."""

import io
import os
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT

import tenarc

GOLDEN = ROOT / "tests" / "golden"
NOTHING = bytes.fromhex("d9d9f8da5441524343424f52")


@pytest.fixture(autouse=True)
def unsynced(monkeypatch):
    """Thousands of files are made here, of which none need survive a crash."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.tenarc"


def sessions(path: Path, *counts: int) -> list[tuple[int, int]]:
    """Writes an archive with an end mark behind so many values each; where its whole parts end, and how many
    values are before."""
    ends = []
    with path.open("wb") as file:
        writer, number = tenarc.Writer(file, alignment=8, inline_below=0), 0
        for count in counts:
            for _ in range(count):
                value = {"n": number, "a": np.full(6, number, "f4")}
                writer.save(value, name=f"n{number}")
                number += 1
                ends.append((writer._at, number))
            writer.commit()
            ends.append((writer._at, number))
    with tenarc.open(path) as archive:
        # A segment before a block of the directory ends where its own bytes end.
        ends += [(segment.end, segment.number + 1) for segment in archive.segments()]
    return sorted({*ends, (len(NOTHING), 0)})


def values(path: Path, *, torn: bool = False) -> list[int]:
    with tenarc.open(path, torn=torn) as archive:
        assert (archive.torn is not None) == torn
        found = [segment.load() for segment in archive.segments()]
        assert archive.names() == [f"n{value['n']}" for value in found]
        for value in found:
            assert value["a"].tolist() == [value["n"]] * 6
        return [value["n"] for value in found]


@pytest.mark.parametrize(("counts", "step"), [((2, 1, 0, 2), 1), ((62, 2), 29), ((60, 5), 29), ((127, 2), 71)])
def test_what_is_whole_is_read_and_kept_whatever_the_cut(path, tmp_path, counts, step):
    ends = sessions(path, *counts)
    whole, new = path.read_bytes(), tmp_path / "new"
    first = len(NOTHING) if step == 1 else ends[-7][0]
    near = {end + n for end, _ in ends for n in (-1, 0, 1)} & {*range(first, len(whole))}
    for length in sorted({*range(first, len(whole), step), *near}):
        path.write_bytes(whole[:length])
        end, count = max(pair for pair in ends if pair[0] <= length)
        try:
            with tenarc.open(path) as archive:
                # Behind an end mark nothing is torn.
                archive.verify()
                assert len(archive) <= count and archive.unfinished_bytes <= length
                if archive.unfinished_bytes == 0:
                    assert len(archive) == count and end == length
                    continue
        except tenarc.Torn as error:
            assert error.offset == end and f"{count} whole values" in str(error)
        assert values(path, torn=True) == [*range(count)]
        wanted = tenarc.Recovered(count, 0, length - end)
        assert tenarc.recover_to(path, new) == wanted
        assert path.read_bytes() == whole[:length] and new.read_bytes().startswith(whole[:end])
        if count == 0 and length > end:
            with pytest.raises(tenarc.Torn, match="nothing would be left"):
                tenarc.recover(path)
            continue
        assert tenarc.recover(path) == wanted
        assert path.read_bytes() == new.read_bytes()
        with tenarc.open(path) as archive:
            archive.verify()
        assert values(path) == [*range(count)]
        assert tenarc.recover(path) == (count, 0, 0)
        assert path.read_bytes() == new.read_bytes()


def test_what_was_mended_is_appended_to(path):
    sessions(path, 63)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(tenarc.Torn):
        tenarc.append(path)
    assert tenarc.recover(path).segments == 63
    with tenarc.append(path, alignment=8, inline_below=0) as out:
        for number in (63, 64):
            out.save({"n": number, "a": np.full(6, number, "f4")}, name=f"n{number}")
    assert values(path) == [*range(65)]


def torn(whole: bytes, ends: list[int]) -> dict[str, bytes]:
    """An archive cut, with other things behind it, and with changed bytes."""
    found = {f"cut-{n}": whole[:n] for n in range(len(whole))}
    tails = {
        "zero": bytes(1),
        "zeros": bytes(9000),
        "record": b"\xd8\x18\x58",
        "huge": b"\xd8\x18\x5b" + b"\x7f" + b"\xff" * 7,
        "magic": NOTHING,
        "again": whole,
        "noise": np.random.default_rng(1).bytes(500),
    }
    for end in ends:
        found |= {f"{name}-behind-{end}": whole[:end] + tail for name, tail in tails.items()}
    for at in range(len(NOTHING), len(whole), 7):
        changed = bytearray(whole)
        changed[at] ^= 0x21
        found[f"changed-{at}"] = bytes(changed[:-1])
        found[f"changed-{at}-whole"] = bytes(changed)
        # As a crash leaves blocks that were allocated and not written.
        found[f"lost-{at}"] = whole[:at] + bytes(min(64, len(whole) - at)) + whole[at + 64 :]
    return found


def mended(path: Path) -> bytes | None:
    """The file as it is after a recovery in place; `None` if that is refused, which leaves it unchanged."""
    new = path.with_suffix(".mended")
    new.write_bytes(path.read_bytes())
    try:
        tenarc.recover(new)
    except tenarc.Error:
        assert new.read_bytes() == path.read_bytes()
        return None
    return new.read_bytes()


@pytest.mark.parametrize("name", ["sessions", "blocks", "golden"])
def test_rust_mends_alike(rust, path, tmp_path, name):
    if name == "golden":
        whole = (GOLDEN / "samples.tenarc").read_bytes()[:900]
        ends = [900]
    else:
        ends = [end for end, _ in sessions(path, *((2, 1, 0, 2) if name == "sessions" else (62, 3)))]
        whole = path.read_bytes()
    cases = torn(whole, ends)
    if name == "blocks":
        # There is the block of 64 entries, and the end mark behind it.
        cases = {
            case: data for n, (case, data) in enumerate(cases.items()) if len(data) > ends[-9] and n % 11 == 0
        }
    for case, data in cases.items():
        (tmp_path / f"{case}.torn").write_bytes(data)
    refused = {line.split()[1].rstrip(":") for line in rust.failed("recover", tmp_path)}
    kinds = set()
    for case in cases:
        found, theirs = mended(tmp_path / f"{case}.torn"), tmp_path / "again" / f"{case}.torn"
        assert (found is None) == (f"{case}.torn" in refused), case
        if found is not None:
            assert found == theirs.read_bytes(), case
        kinds.add(found is None)
    assert kinds == {True, False}


def test_damage_before_an_end_mark_is_not_cut_off(path, tmp_path):
    ends = sessions(path, 3, 2)
    data = bytearray(path.read_bytes())
    data[ends[1][0] + 20] ^= 1
    path.write_bytes(data)
    assert tenarc.recover(path) == (5, 0, 0) and path.read_bytes() == data
    path.write_bytes(data[:-1])
    with pytest.raises(tenarc.Damaged, match=r"would lose what follows.*a\.tenarc") as caught:
        tenarc.recover(path)
    assert caught.value.offset == ends[1][0] and path.read_bytes() == data[:-1]
    with pytest.raises(tenarc.Damaged):
        tenarc.recover_to(path, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    with tenarc.open(path, torn=True) as archive:
        assert len(archive) == 1 and "hash of a record" in str(archive.torn)
        with pytest.raises(tenarc.Damaged):
            archive.verify()


def test_a_body_that_a_crash_has_lost_is_not_kept(path):
    sessions(path, 2, 2)
    with tenarc.open(path) as archive:
        places = [segment.buffers[0][0] for segment in archive.segments()]
        end = archive.segment(3).end
    data = bytearray(path.read_bytes()[:end])
    data[places[3] : places[3] + 8] = bytes(8)
    path.write_bytes(data)
    with tenarc.open(path, torn=True) as archive:
        assert len(archive) == 4
        with pytest.raises(tenarc.Damaged, match="checksum"):
            archive.segment(3).load()
    assert tenarc.recover(path).segments == 3
    # What an end mark vouched for is kept, to be looked at.
    data = bytearray(path.read_bytes()[:-1])
    data[places[0]] ^= 1
    path.write_bytes(data)
    assert tenarc.recover(path).segments == 3
    with tenarc.open(path) as archive, pytest.raises(tenarc.Damaged, match="checksum"):
        archive.verify()


def test_what_is_no_archive_is_left_alone(path, tmp_path):
    for content, kind in (
        (b"something else", tenarc.Damaged),
        (tenarc.dumps({"a": np.zeros(3)}), tenarc.Damaged),
        (NOTHING[:5], tenarc.Torn),
        (b"", tenarc.Torn),
    ):
        path.write_bytes(content)
        for call in (
            tenarc.recover,
            lambda p: tenarc.recover_to(p, tmp_path / "new"),
            lambda p: tenarc.open(p, torn=True),
        ):
            with pytest.raises(kind, match=r"a\.tenarc"):
                call(path)
        assert path.read_bytes() == content and not (tmp_path / "new").exists()
    path.write_bytes(NOTHING)
    assert tenarc.recover(path) == (0, 0, 0) and values(path) == []
    for wrong in (tmp_path, tmp_path / "missing"):
        with pytest.raises(OSError):
            tenarc.recover(wrong)


def test_a_file_onto_itself_and_one_that_is_written_to(path):
    sessions(path, 2)
    path.write_bytes(path.read_bytes()[:-5])
    assert tenarc.recover_to(path, path).segments == 2 and values(path) == [0, 1]
    with tenarc.append(path) as out:
        out.save(1)
        with pytest.raises(OSError, match="another writer"):
            tenarc.recover(path)


def test_another_version_is_not_cut_off(path):
    sessions(path, 1)
    data = bytearray(path.read_bytes()[:-1])
    data[len(NOTHING) + 10 - 1 :] = data[len(NOTHING) + 10 - 1 :].replace(b"\x86\x01", b"\x86\x02", 1)
    path.write_bytes(data)
    for call in (tenarc.recover, tenarc.open, lambda p: tenarc.open(p, torn=True)):
        with pytest.raises(tenarc.Version, match="version 2"):
            call(path)
    assert path.read_bytes() == data


def test_a_failure_half_way_leaves_it_torn(path, monkeypatch):
    sessions(path, 2)
    path.write_bytes(path.read_bytes()[:-5])
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(5, "broken")))
        with pytest.raises(OSError, match="broken"):
            tenarc.recover(path)
    assert values(path, torn=True) == [0, 1]
    assert tenarc.recover(path).segments == 2


def test_a_reader_of_a_torn_stream_says_the_same():
    out = io.BytesIO()
    tenarc.Writer(out).save(1)
    reader = tenarc.Reader(io.BytesIO(out.getvalue()))
    assert reader.load() == 1
    with pytest.raises(tenarc.Torn, match="no end mark"):
        reader.load()


def test_damage_before_a_whole_value_takes_nothing_with_it(path):
    file = io.BytesIO()
    with tenarc.Writer(file) as out:
        for n in range(5):
            out.save(np.full(4000, n, "<u2"))
    whole = file.getvalue()
    places = [whole.index(np.full(4000, n, "<u2").tobytes()) for n in range(1, 5)]
    torn = bytearray(whole[: places[3] + 100])
    torn[places[1] + 77] ^= 4
    path.write_bytes(torn)
    found = tenarc.recover(path)
    assert (found.segments, found.damaged) == (4, 1)
    with tenarc.open(path) as archive:
        assert len(archive) == 4 and archive.segment(3).load()[0] == 3
        with pytest.raises(tenarc.Damaged):
            archive.segment(2).load()
