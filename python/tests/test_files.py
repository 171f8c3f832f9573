"""Saving, opening and appending to archive files."""

import fcntl
import gc
import io
import os
import socket
import stat

import numpy as np
import pytest

import tenarc
from tenarc.atomic import AtomicFile

ARRAY = np.arange(10_000, dtype="f4").reshape(100, 100)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.tenarc"


def test_paths_find_values(path):
    layers = [{"weight": ARRAY, "bias": np.zeros(3)}, {"weight": ARRAY.T}]
    value = {"layers": layers, "a.b": 1, "a": {"b": 2, "c": 3}, 7: "seven", "7x": 0, "/": 5, "x/y": {"~": 6}}
    tenarc.save(path, value)
    with tenarc.open(path) as archive:
        assert np.array_equal(archive["layers.0.weight"], ARRAY)
        assert archive["layers.1.weight"].flags.f_contiguous
        assert archive["/layers/0/bias"].tolist() == [0, 0, 0]
        assert (archive["7"], archive["/7"], archive["a.c"], archive["/"]) == ("seven", "seven", 3, 5)
        assert (archive["/a.b"], archive["/a/b"], archive["/x~1y/~0"]) == (1, 2, 6)
        assert archive.tensor("layers.0.weight").shape == (100, 100)
        # Two values have this path, so it is ambiguous.
        with pytest.raises(tenarc.NotFound, match="several"):
            archive["a.b"]
        for missing in ("layers.2.weight", "layers.00", "layers.-1", "nothing", "a.b.c", "8"):
            assert archive.get(missing) is None and archive.get(missing, 4) == 4
            with pytest.raises(KeyError):
                archive[missing]
        with pytest.raises(tenarc.Mismatch):
            archive.tensor("7")
        with pytest.raises(TypeError, match="expected a path as text"):
            archive[0]
        found = [(info.path, info.dtype, info.shape, info.order, info.nbytes) for info in archive.tensors()]
    assert found == [
        ("layers.0.weight", "f32", (100, 100), "C", 40_000),
        ("layers.0.bias", "f64", (3,), "C", 24),
        ("layers.1.weight", "f32", (100, 100), "F", 40_000),
    ]


def test_views_are_of_the_file_and_outlive_the_archive(path):
    tenarc.save(path, {"a": ARRAY})
    with tenarc.open(path) as archive:
        first, second = archive["a"], archive.view()["a"]
        assert np.shares_memory(first, second) and not first.flags.writeable
        assert first.ctypes.data % 256 == 0
    del archive
    gc.collect()
    # The view keeps the mapping, also after the file is removed.
    path.unlink()
    assert np.array_equal(first, ARRAY)


def test_a_closed_archive_gives_nothing(path):
    tenarc.save(path, {"a": ARRAY})
    archive = tenarc.open(path)
    archive.close()
    with pytest.raises(ValueError, match="closed"):
        archive["a"]


def test_checksums_are_verified_by_load_and_verify_not_by_views(path):
    tenarc.save(path, {"a": ARRAY, "b": ARRAY + 1})
    with tenarc.open(path) as archive:
        (at, _), (other, _) = archive.segment(0).buffers
    data = bytearray(path.read_bytes())
    data[at + 5] ^= 1
    path.write_bytes(data)
    with tenarc.open(path) as archive:
        assert archive["a"].shape == (100, 100)
        with pytest.raises(tenarc.Damaged, match="checksum") as caught:
            archive.verify()
        assert caught.value.offset == at
        with pytest.raises(tenarc.Damaged, match="checksum"):
            archive.load()
    with pytest.raises(tenarc.Damaged, match=rf"byte {at}\b.*a\.tenarc"):
        tenarc.load(path)
    assert other > at


def test_one_value_is_expected_unless_it_is_chosen(path):
    with path.open("wb") as file, tenarc.Writer(file) as out:
        out.save(1, name="a")
        out.save(2)
        out.save(3, name="a")
    with pytest.raises(tenarc.NotFound, match="3 values"):
        tenarc.load(path)
    with tenarc.open(path) as archive:
        assert archive.names() == ["a", None, "a"]
        assert archive.named("a").load() == 3
        assert [archive.segment(n).load() for n in (0, -2, -1)] == [1, 2, 3]
        for wrong in (3, -4):
            with pytest.raises(tenarc.NotFound):
                archive.segment(wrong)
        with pytest.raises(tenarc.NotFound):
            archive.named("b")


def test_every_segment_is_found_through_the_directory(path):
    with path.open("wb") as file, tenarc.Writer(file) as out:
        for number in range(64 * 64 * 2 + 70):
            out.save(number)
    with tenarc.open(path) as archive:
        archive.verify()
        for number in (0, 1, 63, 64, 65, 4095, 4096, 4097, 8191, 8192, 8255, 8256, 8261):
            assert archive.segment(number).load() == number
        assert [segment.load() for segment in archive.segments()] == list(range(8262))


# Saving


def listing(path):
    return sorted(entry.name for entry in path.parent.iterdir())


def test_a_save_that_fails_leaves_what_was_there(path):
    tenarc.save(path, 1)
    with pytest.raises(tenarc.Unsupported, match=r"in .*a\.tenarc"):
        tenarc.save(path, {"a": ARRAY, "b": object()})
    assert tenarc.load(path) == 1 and listing(path) == ["a.tenarc"]


def test_a_save_that_the_disk_fails_leaves_what_was_there(path, monkeypatch):
    tenarc.save(path, 1)
    for call in ("fsync", "replace"):
        with monkeypatch.context() as patched:
            patched.setattr(os, call, lambda *_: (_ for _ in ()).throw(OSError(5, "broken")))
            with pytest.raises(OSError, match="broken"):
                tenarc.save(path, 2)
        assert tenarc.load(path) == 1 and listing(path) == ["a.tenarc"]


def test_a_save_syncs_the_file_before_the_rename_and_the_directory_after_it(path, monkeypatch):
    calls = []
    fsync, replace = os.fsync, os.replace

    def noted_fsync(number):
        calls.append("directory" if stat.S_ISDIR(os.fstat(number).st_mode) else "file")
        fsync(number)

    def noted_replace(*names):
        calls.append("rename")
        replace(*names)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    tenarc.save(path, 1)
    assert calls == ["file", "rename", "directory"]
    calls.clear()
    tenarc.save(path, 2, sync=False)
    assert calls == ["rename"]


def test_a_save_sweeps_what_killed_ones_left(path):
    stale, others = path.with_name(".a.tenarc.abcdefgh.tenarc-tmp"), path.with_name(".b.abcdefgh.tenarc-tmp")
    guard = path.with_name(".a.tenarc.bbcdefgh.tenarc-lock")
    for left in stale, others, guard:
        left.write_bytes(b"half")
    with AtomicFile(path, sync=False) as file:
        file.write(b"a save that goes on meanwhile")
        assert not stale.exists() and not guard.exists()
        tenarc.save(path, 1)
        # The file that is written, its guard, the saved one and the leftover of another path.
        assert len(listing(path)) == 4
        # Its lock would still be held just after the rename, and keep others from appending.
        with open(next(path.parent.glob(".a.tenarc.*.tenarc-tmp")), "rb") as other:
            fcntl.flock(other.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert listing(path) == [others.name, path.name]


def test_a_save_keeps_the_mode_and_replaces_a_link(path):
    tenarc.save(path, 1)
    path.chmod(0o640)
    tenarc.save(path, 2)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    link = path.with_name("link")
    link.symlink_to(path)
    tenarc.save(link, 3)
    assert not link.is_symlink() and (tenarc.load(link), tenarc.load(path)) == (3, 2)


def test_only_regular_files_are_read_and_replaced(path):
    os.mkfifo(path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(path.with_name("socket")))
        for other in (path, path.parent, path.with_name("socket")):
            for call in (tenarc.load, tenarc.open, tenarc.append, lambda p: tenarc.save(p, 1)):
                with pytest.raises(OSError):
                    call(other)
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_a_reader_keeps_the_file_that_a_save_replaces(path):
    tenarc.save(path, {"a": ARRAY})
    with tenarc.open(path) as archive:
        tenarc.save(path, {"a": ARRAY + 1})
        assert np.array_equal(archive["a"], ARRAY)
        archive.verify()


# Files that are not archives


def test_what_is_no_archive_says_so(path):
    for content, kind in (
        (b"", tenarc.Torn),
        (b"\xd9\xd9", tenarc.Torn),
        (b"PK\3\4" + bytes(100), tenarc.Damaged),
        (bytes(100), tenarc.Damaged),
        (tenarc.dumps({"a": 1}), tenarc.Damaged),
    ):
        path.write_bytes(content)
        for read in (tenarc.load, tenarc.open, lambda p: list(tenarc.Reader(io.BytesIO(p.read_bytes())))):
            with pytest.raises(kind):
                read(path)


def test_another_version_is_named_whatever_its_hash(example, path):
    for at in (22, 134):
        later = bytearray(example)
        later[at] = 2
        path.write_bytes(later)
        with pytest.raises(tenarc.Version, match="version 2"):
            tenarc.load(path)
        with pytest.raises(tenarc.Version, match="version 2"):
            list(tenarc.Reader(io.BytesIO(bytes(later))))


# Appending


def test_appending_writes_over_nothing(path):
    tenarc.save(path, {"a": ARRAY}, name="first")
    before = path.read_bytes()
    with tenarc.open(path) as reader:
        with tenarc.append(path) as out:
            out.save({"b": ARRAY + 1}, name="second")
        assert reader.count == 1 and np.array_equal(reader["a"], ARRAY)
    assert path.read_bytes().startswith(before)
    with tenarc.open(path) as archive:
        archive.verify()
        assert archive.names() == ["first", "second"]
        assert np.array_equal(archive.named("second")["b"], ARRAY + 1)


def test_an_exception_takes_back_what_was_not_committed(path):
    tenarc.save(path, 1)
    with pytest.raises(ZeroDivisionError), tenarc.append(path) as out:
        out.save(2)
        out.commit()
        out.save({"a": ARRAY})
        raise ZeroDivisionError
    with tenarc.open(path) as archive:
        archive.verify()
        assert [segment.load() for segment in archive.segments()] == [1, 2]


def test_a_value_that_cannot_be_written_leaves_the_writer_usable(path):
    tenarc.save(path, 1)
    with tenarc.append(path) as out:
        with pytest.raises(tenarc.Unsupported):
            out.save([ARRAY, object()])
        out.save(2)
    with tenarc.open(path) as archive:
        archive.verify()
        assert archive.count == 2


def test_appending_nothing_changes_nothing(path):
    tenarc.save(path, 1)
    before = path.read_bytes()
    with tenarc.append(path):
        pass
    assert path.read_bytes() == before


def test_one_writer_at_a_time(path):
    tenarc.save(path, 1)
    with tenarc.append(path), pytest.raises(OSError, match="another writer"):
        tenarc.append(path)
    with tenarc.append(path) as out:
        out.save(2)


def test_a_missing_file_is_created(path, tmp_path):
    with pytest.raises(FileNotFoundError):
        tenarc.append(path, create=False)
    with pytest.raises(tenarc.Unsupported):
        tenarc.append(path, alignment=5)
    with pytest.raises(FileNotFoundError, match="missing"):
        tenarc.append(tmp_path / "missing" / "a")
    assert not [*tmp_path.iterdir()]
    for number in range(3):
        with tenarc.append(path, sync=number > 0) as out:
            # It is a complete archive before there is a value.
            assert tenarc.open(path).count == number
            out.save(number)
    for name in (os.fsencode(path) + b"2", str(path) + "3"):
        with tenarc.append(name):
            pass
    with tenarc.open(path) as archive:
        archive.verify()
        assert [segment.load() for segment in archive.segments()] == [0, 1, 2]
    assert len([*tmp_path.iterdir()]) == 3
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError):
        tenarc.append(tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_another_process_creates_meanwhile_stays(path, links, monkeypatch):
    """It may have values already when this process gives the empty archive its name."""
    link = os.link

    def late(temp, target):
        tenarc.save(path, "theirs")
        if not links:
            raise PermissionError
        link(temp, target)

    monkeypatch.setattr(os, "link", late)
    with tenarc.append(path) as out:
        out.save("ours")
    monkeypatch.undo()
    with tenarc.open(path) as archive:
        assert [segment.load() for segment in archive.segments()] == ["theirs", "ours"]
    assert [*path.parent.iterdir()] == [path]


def test_a_file_system_without_links_has_appends_too(path, monkeypatch):
    def refused(*_):
        raise PermissionError

    monkeypatch.setattr(os, "link", refused)
    with tenarc.append(path) as out:
        out.save(1)
    assert tenarc.load(path) == 1


def test_a_torn_file_is_not_appended_to(path):
    tenarc.save(path, 1)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(tenarc.Torn):
        tenarc.append(path)


@pytest.mark.parametrize("wrong", [0, 4, 24, 131_072, -8])
def test_an_alignment_that_is_none_is_refused(path, wrong):
    with pytest.raises(tenarc.Unsupported, match="alignment"):
        tenarc.save(path, 1, alignment=wrong)
    assert not path.exists()


def test_a_name_has_at_most_1024_bytes(path):
    tenarc.save(path, 1, name="ß" * 512)
    with pytest.raises(tenarc.Unsupported):
        tenarc.save(path, 1, name="ß" * 512 + "x")
