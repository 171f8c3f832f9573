"""Archives that were cut, never finished, or damaged behind their last end mark."""

import io
import json
import mmap
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

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
    """The numbers of the complete values. A cut one may follow them."""
    with tenarc.open(path, torn=torn) as archive:
        assert (archive.torn is not None) == torn
        segments = list(archive.segments())
        assert archive.names() == [segment.name for segment in segments]
        if torn and segments and segments[-1].missing_bytes:
            cut = segments.pop()
            assert cut.offset + cut.missing_bytes < cut.end and cut["n"] == cut.number
            with pytest.raises(tenarc.Torn):
                cut.load()
        found = [segment.load() for segment in segments]
        assert [segment.name for segment in segments] == [f"n{value['n']}" for value in found]
        for value in found:
            assert value["a"].tolist() == [value["n"]] * 6
        return [value["n"] for value in found]


def check_salvaged(path: Path, count: int, salvaged: tenarc.Salvaged) -> None:
    """Checks that what is left of a cut value follows the complete ones."""
    with tenarc.open(path) as archive:
        archive.verify()
        assert archive.count == count + 1
        last = archive.segment(-1)
        assert last.name == salvaged.name == f"n{count}"
        # A value here has one tensor, so a cut value is kept only if all of it but its checksums is there.
        assert salvaged.missing == [] and salvaged.tensors == list(last.tensors())
        assert last["n"] == count and last["a"].tolist() == [count] * 6


@pytest.mark.parametrize(("counts", "step"), [((2, 1, 0, 2), 1), ((62, 2), 29), ((60, 5), 29), ((127, 2), 71)])
def test_what_is_whole_is_read_and_kept_whatever_the_cut(path, tmp_path, counts, step):
    ends = sessions(path, *counts)
    whole, new, salvages = path.read_bytes(), tmp_path / "new", 0
    first = len(NOTHING) if step == 1 else ends[-7][0]
    near = {end + n for end, _ in ends for n in (-1, 0, 1)} & {*range(first, len(whole))}
    for length in sorted({*range(first, len(whole), step), *near}):
        path.write_bytes(whole[:length])
        end, count = max(pair for pair in ends if pair[0] <= length)
        try:
            with tenarc.open(path) as archive:
                # Behind an end mark nothing is torn.
                archive.verify()
                assert archive.count <= count and archive.unfinished_bytes <= length
                if archive.unfinished_bytes == 0:
                    assert archive.count == count and end == length
                    continue
        except tenarc.Torn as error:
            assert error.offset == end and f"{count} complete segments" in str(error)
        assert values(path, torn=True) == [*range(count)]
        wanted = tenarc.Recovered(count, 0, length - end)
        result = tenarc.recover_to(path, new)
        assert result._replace(salvaged=None) == wanted
        assert path.read_bytes() == whole[:length] and new.read_bytes().startswith(whole[:end])
        if result.salvaged is not None:
            check_salvaged(new, count, result.salvaged)
            salvages += 1
        if count == 0 and length > end:
            with pytest.raises(tenarc.Torn, match="nothing would be left"):
                tenarc.recover(path)
            continue
        assert tenarc.recover(path) == wanted
        mended = path.read_bytes()
        assert mended == new.read_bytes() or result.salvaged is not None
        with tenarc.open(path) as archive:
            archive.verify()
        assert values(path) == [*range(count)]
        assert tenarc.recover(path) == tenarc.Recovered(count, 0, 0)
        assert path.read_bytes() == mended
    assert salvages > 0


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


def recovered(path: Path) -> dict[str, tuple[bytes, Any] | None]:
    """For both ways to recover a file, the new file and the report; `None` if it is refused."""
    content = path.read_bytes()
    in_place, new = (path.with_suffix(f".{way}") for way in ("in-place", "new"))
    in_place.write_bytes(content)
    found: dict[str, tuple[bytes, Any] | None] = {}
    for to, call in (
        (in_place, lambda: tenarc.recover(in_place)),
        (new, lambda: tenarc.recover_to(path, new)),
    ):
        try:
            report = call()
        except tenarc.Error:
            # What is refused changes nothing.
            assert to.read_bytes() == content if to == in_place else not to.exists()
            found[to.suffix[1:]] = None
        else:
            found[to.suffix[1:]] = to.read_bytes(), json.loads(json.dumps(described(report)))
        assert path.read_bytes() == content
    return found


def described(report: tenarc.Recovered) -> Any:
    """A report as Rust's half of the test writes it."""
    salvaged = report.salvaged
    return report._asdict() | {"salvaged": None if salvaged is None else salvaged._asdict()}


def model(**options: Any) -> bytes:
    """Two values with tensors of all kinds, the second of which has no end mark."""
    out = io.BytesIO()
    writer = tenarc.Writer(out, alignment=8, inline_below=16, dedup=True, chunk_len=1 << 16, **options)
    writer.save({"a": np.arange(9, dtype="f4")}, name="first")
    writer.commit()
    column = np.asfortranarray(np.arange(12, dtype="<u2").reshape(3, 4))
    value = {
        "w": np.arange(20, dtype="f8"),
        "small": np.arange(2, dtype="u1"),
        "bytes": b"b" * 40,
        "layers": [{"a.b": np.ones(30, "i1")}, {"a": {"b": column}, "a.b": 2 * np.ones(30, "i1")}],
        "numbers": tenarc.Numbers(np.arange(10, dtype="<u4")),
        "raw": tenarc.Raw("bf16", (3, 5), np.arange(30, dtype="u1")),
        "tied": np.arange(20, dtype="f8"),
        b"k" * 33: np.full(7, 7, "<u8"),
        "more": [b"c" * 50, np.zeros(31, "?")],
        "/slash": [tenarc.Some(), np.full((2, 3), 1 + 2j, "c8"), -1 << 70, tenarc.Tag(5000, [np.zeros(5, "f4")])],
    }
    writer.save(value, name="cut \u2702")
    return out.getvalue()


@pytest.fixture
def directory(tmp_path):
    """A directory in memory if there is one, because Rust syncs each of thousands of files."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as found:
        yield Path(found)


@pytest.mark.parametrize("name", ["sessions", "blocks", "golden", "model", "unchecked"])
def test_rust_recovers_the_same(rust, path, directory, name):
    if name == "golden":
        whole = (GOLDEN / "samples.tenarc").read_bytes()[:900]
        ends = [900]
    elif name in ("model", "unchecked"):
        whole = model(checksums=name == "model")
        ends = [len(whole)]
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
        (directory / f"{case}.torn").write_bytes(data)
    refused = {line.split()[1].rstrip(":") for line in rust.failed("recover", directory)}
    kinds = set()
    for case in cases:
        for way, found in recovered(directory / f"{case}.torn").items():
            theirs = directory / "recovered" / f"{case}.{way}"
            assert (found is None) == (theirs.name in refused), (case, way)
            if found is not None:
                content, report = found
                assert report == json.loads(theirs.with_name(f"{theirs.name}.json").read_text()), (case, way)
                assert content == theirs.read_bytes(), (case, way)
                kinds.add((way, report["salvaged"] is not None))
            else:
                kinds.add((way, None))
    wanted = {(way, kind) for way in ("in-place", "new") for kind in (False, True, None)}
    # The golden file is cut where it has no buffers yet.
    never = {("in-place", True)} | ({("new", True)} if name == "golden" else set())
    assert kinds == wanted - never


def test_damage_before_an_end_mark_is_not_cut_off(path, tmp_path):
    ends = sessions(path, 3, 2)
    data = bytearray(path.read_bytes())
    data[ends[1][0] + 20] ^= 1
    path.write_bytes(data)
    assert tenarc.recover(path) == tenarc.Recovered(5, 0, 0) and path.read_bytes() == data
    path.write_bytes(data[:-1])
    with pytest.raises(tenarc.Damaged, match=r"would lose what follows.*a\.tenarc") as caught:
        tenarc.recover(path)
    assert caught.value.offset == ends[1][0] and path.read_bytes() == data[:-1]
    with pytest.raises(tenarc.Damaged):
        tenarc.recover_to(path, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    with tenarc.open(path, torn=True) as archive:
        assert archive.count == 1 and "hash of a record" in str(archive.torn)
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
        assert archive.count == 4
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
    assert tenarc.recover(path) == tenarc.Recovered(0, 0, 0) and values(path) == []
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
    data[len(NOTHING) + 10 - 1 :] = data[len(NOTHING) + 10 - 1 :].replace(b"\x88\x01", b"\x88\x02", 1)
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
        assert archive.count == 4 and archive.segment(3).load()[0] == 3
        with pytest.raises(tenarc.Damaged):
            archive.segment(2).load()


# Values that the file ends in


def cut_model(path: Path, *, checksums: bool = True) -> bytes:
    """A file with one value of four tensors, which ends inside the third. Returns the whole file."""
    tenarc.save(path, {f"w{n}": np.full(5000, n, "<u2") for n in range(4)}, name="model", checksums=checksums)
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(np.full(5000, 2, "<u2").tobytes()) + 5000])
    return whole


@pytest.mark.parametrize("checksums", [True, False])
def test_complete_tensors_of_a_cut_value_are_read_and_kept(path, tmp_path, checksums):
    whole, new = cut_model(path, checksums=checksums), tmp_path / "new"
    torn = path.read_bytes()
    path.write_bytes(whole)
    with tenarc.open(path) as archive:
        end = archive.segment(0).end
    path.write_bytes(torn)
    with pytest.raises(tenarc.Torn, match="no end mark"):
        tenarc.open(path)
    with tenarc.open(path, torn=True) as archive:
        assert archive.torn is not None and archive.count == 1 and archive.names() == ["model"]
        (segment,) = archive.segments()
        assert segment.missing_bytes == end - len(torn)
        assert [(info.path, info.buffer) for info in archive.tensors()] == [(f"w{n}", n) for n in range(4)]
        # What cannot be verified is read only on request, views included.
        for read in segment.__getitem__, segment.tensor, archive.get:
            if checksums:
                with pytest.raises(tenarc.Torn, match=r"cannot be verified.*verify=False"):
                    read("w1")
            else:
                assert read("w1").tolist() == [1] * 5000
    with tenarc.open(path, torn=True, verify=False) as archive:
        found = archive["w1"]
        assert found.tolist() == [1] * 5000 and not found.flags.writeable
        for name, there in ("w2", 5000), ("w3", 0):
            with pytest.raises(tenarc.Torn, match=f"it has {there} of the buffer's 10000 bytes at `{name}`"):
                archive[name]
        for read in archive.load, archive.view, archive.verify:
            with pytest.raises(tenarc.Torn):
                read()
    assert found.tolist() == [1] * 5000

    with pytest.raises(tenarc.Torn, match=r"nothing would be left.*recover_to"):
        tenarc.recover(path)
    assert path.read_bytes() == torn
    for to in new, path:
        recovered = tenarc.recover_to(path, to)
        assert recovered[:3] == (0, 0, len(torn) - len(NOTHING))
        assert recovered.salvaged is not None and recovered.salvaged.name == "model"
        assert [info.path for info in recovered.salvaged.tensors] == ["w0", "w1"]
        assert [info.path for info in recovered.salvaged.missing] == ["w2", "w3"]
        with tenarc.open(to) as archive:
            archive.verify()
            value = archive.load()
            assert [*value] == ["w0", "w1", "w2", "w3"] and value["w2"] is value["w3"] is None
            assert value["w0"].tolist() == [0] * 5000 and value["w1"].tolist() == [1] * 5000
            assert archive.segment(0)._header.checksums == checksums
    assert path.read_bytes() == new.read_bytes()


def test_a_value_that_lacks_only_its_checksums_is_loaded_on_request(path):
    whole = cut_model(path)
    last = np.full(5000, 3, "<u2").tobytes()
    path.write_bytes(whole[: whole.index(last) + len(last)])
    with tenarc.open(path, torn=True) as archive, pytest.raises(tenarc.Torn, match="cannot be verified"):
        archive.load()
    with tenarc.open(path, torn=True, verify=False) as archive:
        assert [tensor[0] for tensor in archive.load().values()] == [0, 1, 2, 3]


def test_a_damaged_tensor_is_read_without_verifying(path):
    tenarc.save(path, {"a": np.zeros(5000)})
    with tenarc.open(path) as archive:
        ((at, _),) = archive.segment(0).buffers
    data = bytearray(path.read_bytes())
    data[at] = 1
    path.write_bytes(data)
    with tenarc.open(path) as archive, pytest.raises(tenarc.Damaged, match="checksum"):
        archive.load()
    with tenarc.open(path, verify=False) as archive:
        assert archive.load()["a"][1] == 0


def test_a_name_means_a_complete_value_if_there_is_one(path):
    with path.open("wb") as file, tenarc.Writer(file, inline_below=0) as out:
        out.save({"n": 0}, name="a")
        out.save({"n": 1, "a": np.zeros(9)}, name="a")
        out.save({"n": 2, "b": np.zeros(9)}, name="b")
    with tenarc.open(path) as archive:
        ends = [segment.end for segment in archive.segments()]
    for count, wanted in (2, [("a", 0)]), (3, [("a", 1), ("b", 2)]):
        data = path.read_bytes()
        path.write_bytes(data[: ends[count - 1] - 1])
        with tenarc.open(path, torn=True) as archive:
            assert archive.count == count and archive.segment(-1).missing_bytes == 1
            for name, number in wanted:
                assert archive.named(name)["n"] == number
            with pytest.raises(tenarc.NotFound, match="no value named"):
                archive.named("c")
        path.write_bytes(data)


def test_nothing_replaces_a_file_of_which_nothing_is_complete(path, tmp_path):
    content = cut_model(path)[: len(NOTHING) + 60]
    path.write_bytes(content)
    link = tmp_path / "link"
    link.symlink_to(path)
    for to in path, link:
        with pytest.raises(tenarc.Torn, match="nothing would be left"):
            tenarc.recover_to(path, to)
    assert path.read_bytes() == content and link.is_symlink()
    assert tenarc.recover_to(path, tmp_path / "new") == tenarc.Recovered(0, 0, 60)
    assert (tmp_path / "new").exists()


def test_long_paths_do_not_fill_the_memory(path, tmp_path):
    # The key is part of every path under it.
    tensors = [np.zeros(1, "u1") for _ in range(2000)]
    with path.open("wb") as file, tenarc.Writer(file, inline_below=0, dedup=True) as out:
        out.save({"k" * 100_000: tensors, "last": np.ones(1, "u1")})
    with tenarc.open(path) as archive:
        end = archive.segment(0).end
    path.write_bytes(path.read_bytes()[: end - 1])
    with pytest.raises(tenarc.Limit, match="paths of tensors take more than"):
        tenarc.recover_to(path, tmp_path / "new")
    assert not (tmp_path / "new").exists()


# Writers that cut off what they have not committed, while the file is read


CHILD = """
import os, sys
import numpy as np
import tenarc
from tenarc.source import FileSource

path, when = sys.argv[1:]
tenarc.save(path, {"a": np.arange(5000)})
committed = os.stat(path).st_size
out = tenarc.append(path)
out.save({"b": np.arange(50_000)})
# As if it was killed.
out._raw.close()

read, reads = FileSource.read, []
def cutting(self, at, length):
    reads.append(at)
    if when == "opened" and at >= committed:
        os.truncate(path, committed)
    return read(self, at, length)
FileSource.read = cutting

with tenarc.open(path, torn=when == "torn") as archive:
    FileSource.read = read
    if when == "torn":
        assert archive.count == 2 and archive.segment(1)["b"][7] == 7
    os.truncate(path, committed)
    assert archive.segment(0)["a"][4999] == 4999 and archive.segment(0).load()["a"].shape == (5000,)
    if when == "torn":
        try:
            archive.segment(1)["b"]
        except tenarc.Torn as error:
            assert "truncated" in str(error), error
        else:
            raise AssertionError("there is nothing to be read")
    assert any(at >= committed for at in reads)
"""


@pytest.mark.parametrize("when", ["opened", "torn"])
def test_uncommitted_bytes_that_are_cut_off_do_not_kill_the_reader(path, when):
    done = subprocess.run([sys.executable, "-c", CHILD, path, when], capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stderr)


def test_only_what_was_committed_is_mapped(path, monkeypatch):
    tenarc.save(path, {"a": np.arange(5000)})
    committed = path.stat().st_size
    with path.open("ab") as file:
        file.write(bytes(100_000))
    mapped = []

    class Noted(mmap.mmap):
        def __new__(cls, number, length, **options):
            mapped.append(length)
            return super().__new__(cls, number, length, **options)

    monkeypatch.setattr(mmap, "mmap", Noted)
    for torn in False, True:
        with tenarc.open(path, torn=torn) as archive:
            first, second = archive["a"], archive["a"]
            assert np.shares_memory(first, second) and archive.unfinished_bytes == 100_000
    assert mapped == [committed] * 2
