"""Parts of tensors, of which only the chunks that have them are read."""

import pickle

import numpy as np
import pytest

import tenarc
from tenarc.chunks import MIN_CHUNK
from tenarc.source import MemorySource

ROWS = [
    slice(None),
    slice(0, 1),
    slice(-1, None),
    slice(100, 200),
    slice(170, 190, 7),
    slice(None, None, -1),
    slice(400, 90, -13),
    slice(5, 5),
    slice(9, 3),
    slice(10**9, None),
    slice(-(10**9), 90, -1),
    slice(None, 10**9, 499),
    0,
    499,
    -1,
    -500,
]


PARTS = [
    np.s_[:, 0],
    np.s_[100:200, 2:9:3],
    np.s_[..., -1],
    np.s_[::-7, ::-2],
    np.s_[7, ::5],
    np.s_[-3, 4],
    np.s_[::170, 3:],
    np.s_[None, 5:3, ...],
    np.s_[3:4:2, None, 0],
    np.s_[...],
    (),
]


def value() -> dict:
    numbers = np.random.default_rng(4).integers(9, size=(500, 300)).astype("u4")
    return {
        "rows": numbers,
        "columns": numbers.T.copy().T,
        "deep": numbers[:, :60].reshape(500, 5, 12).astype("f8"),
        "numbers": numbers[:, 0].copy().view(tenarc.Numbers),
        "bools": numbers > 4,
        "inline": np.arange(500, dtype="u2"),
        "table": tenarc.Table({"x": numbers[:, 1].copy()}),
    }


@pytest.fixture(params=[None, "zstd", "lz4"])
def path(request, tmp_path):
    tenarc.save(tmp_path / "a", value(), compression=request.param, chunk_len=MIN_CHUNK, inline_below=1001)
    return tmp_path / "a"


@pytest.mark.parametrize("rows", ROWS, ids=str)
@pytest.mark.parametrize("verify", [True, False])
def test_rows_are_those_of_the_tensor(path, rows, verify):
    wanted = value() | {"table.x": value()["table"]["x"]}
    with tenarc.open(path, verify=verify) as archive:
        for name in ("rows", "columns", "deep", "numbers", "bools", "inline", "table.x"):
            found = archive.slice(name, rows)
            assert type(found) is type(wanted[name][rows])
            assert found.dtype == wanted[name].dtype and np.array_equal(found, wanted[name][rows]), name
            assert np.ndim(found) == 0 or found.flags.writeable


def test_only_the_chunks_with_the_rows_are_read(path, monkeypatch):
    read, payload = [], MemorySource.payload

    def counted(self, at, length, *rest):
        read.append(length)
        return payload(self, at, length, *rest)

    with tenarc.open(path) as archive:
        monkeypatch.setattr(MemorySource, "payload", counted)
        for rows in (slice(0, 10), slice(495, 500), 250):
            read.clear()
            archive.slice("rows", rows)
            assert 0 < sum(read) <= MIN_CHUNK
        read.clear()
        archive.slice("rows", slice(50, 60))
        # These rows are in two chunks.
        assert sum(read) <= 2 * MIN_CHUNK
        read.clear()
        assert archive.slice("rows", slice(7, 7)).shape == (0, 300) and not sum(read)


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_parts_are_those_of_the_tensor(path, part):
    with tenarc.open(path) as archive, tenarc.open(path, verify=False) as unverified:
        for name in ("rows", "columns", "bools", "deep"):
            wanted = value()[name][part]
            for found in (archive.slice(name, part), unverified.slice(name, part), archive.lazy(name)[part]):
                assert type(found) is type(wanted) and found.dtype == wanted.dtype and found.shape == wanted.shape
                assert np.array_equal(found, wanted), name
        wanted = value()["deep"][2:300:20, ..., ::5]
        assert np.array_equal(archive.slice("deep", np.s_[2:300:20, ..., ::5]), wanted)
        assert np.array_equal(archive.slice("deep", (4, np.int64(1), slice(3))), value()["deep"][4, 1, :3])


def test_only_the_chunks_with_the_part_are_read(tmp_path, monkeypatch):
    # Each row has four chunks.
    wide = np.arange(8 * 4 * MIN_CHUNK, dtype="u1").reshape(8, 4 * MIN_CHUNK)
    tenarc.save(tmp_path / "a", {"wide": wide, "narrow": wide.T.copy().T}, chunk_len=MIN_CHUNK)
    read, payload = [], MemorySource.payload

    def counted(self, at, length, *rest):
        read.append(length)
        return payload(self, at, length, *rest)

    monkeypatch.setattr(MemorySource, "payload", counted)
    with tenarc.open(tmp_path / "a") as archive, tenarc.open(tmp_path / "a", verify=False) as unverified:
        for part, chunks in (
            (np.s_[:, 5], 8),
            (np.s_[2, -10:], 1),
            (np.s_[1:3, MIN_CHUNK - 1 : MIN_CHUNK + 1], 4),
        ):
            read.clear()
            assert np.array_equal(archive.lazy("wide")[part], wide[part])
            assert sum(read) == chunks * MIN_CHUNK
        read.clear()
        assert np.array_equal(archive.slice("narrow", np.s_[:, :100]), wide[:, :100]) and sum(read) == MIN_CHUNK
        read.clear()
        assert np.array_equal(unverified.slice("wide", np.s_[::3, 5:9]), wide[::3, 5:9]) and sum(read) == 3 * 4
        read.clear()
        # A chunk that several of the reads need is read once.
        monkeypatch.setattr("tenarc.slices._BLOCK", 3 * MIN_CHUNK // 2)
        assert np.array_equal(archive.slice("wide", np.s_[:, ::2]), wide[:, ::2]) and sum(read) == wide.nbytes


def test_other_indices_are_refused(path):
    with tenarc.open(path) as archive:
        for index in ([1, 2], np.array([1]), True, "a", 1.5, (0, [1])):
            for name in ("rows", "inline"):
                with pytest.raises(
                    tenarc.Mismatch, match=r"expected integers, slices and `\.\.\.` as an index, found"
                ):
                    archive.slice(name, index)
        for index in ((0, 0, 0), 500, (0, -301), (..., ...)):
            with pytest.raises(IndexError):
                archive.slice("rows", index)
        with pytest.raises(ValueError, match="zero"):
            archive.slice("rows", slice(None, None, 0))


def test_a_lazy_array_reads_what_is_asked_for(path):
    wanted = value() | {"table.x": value()["table"]["x"]}
    with tenarc.open(path) as archive:
        lazy = {name: archive.lazy(name) for name in ("rows", "columns", "deep", "bools", "inline", "table.x")}
        pickled = pickle.dumps(lazy)
    # They can be used after the archive was closed, and in other processes.
    for arrays in (lazy, pickle.loads(pickled)):
        for name, array in arrays.items():
            want = wanted[name]
            assert (array.shape, array.dtype, array.ndim) == (want.shape, want.dtype, want.ndim)
            assert (len(array), array.size, array.nbytes) == (len(want), want.size, want.nbytes)
            assert np.array_equal(np.asarray(array), want) and np.array_equal(array[:], want)
            assert np.array_equal([*array], want) and np.asarray(array, "f8").dtype == np.float64
    assert repr(lazy["rows"]) == "<tenarc.LazyArray 'rows': uint32, shape (500, 300)>"
    with pytest.raises(ValueError, match="always a copy"):
        lazy["rows"].__array__(copy=False)


def test_damage_elsewhere_is_not_noticed(path):
    with tenarc.open(path) as archive:
        segment = archive.segment(0)
        packed = segment.compressed(0)
        stored = packed.stored if packed else [MIN_CHUNK] * 2
        at = segment.buffers[0][0] + sum(stored[:2])
    content = bytearray(path.read_bytes())
    content[at + 50] ^= 4
    path.write_bytes(content)
    with tenarc.open(path) as archive:
        assert np.array_equal(archive.slice("rows", slice(0, 100)), value()["rows"][:100])
        with pytest.raises(tenarc.Damaged, match="chunk 2 of buffer 0") as caught:
            archive.slice("rows", slice(0, 120))
        assert caught.value.path == "rows"
    at = path.read_bytes().index(value()["columns"].tobytes("F")[:1000]) if packed is None else None
    if at is not None:
        content[at + 300_000] ^= 4
        path.write_bytes(content)
        with tenarc.open(path) as archive, pytest.raises(tenarc.Damaged):
            archive.slice("columns", 0)


def test_what_has_no_rows_is_refused(tmp_path):
    large = tenarc.Raw("f128", (1000,), np.zeros(16_000, "u1"))
    tenarc.save(tmp_path / "a", {"scalar": np.array(1.5), "text": "x", "bytes": bytes(9999), "raw": large})
    with tenarc.open(tmp_path / "a") as archive:
        for name in ("text", "bytes", "raw"):
            for read in (archive.slice, lambda name, _: archive.lazy(name)):
                with pytest.raises(tenarc.Mismatch):
                    read(name, slice(0, 1))
        with pytest.raises(IndexError, match="the array has 0 dimensions, found 1 indices"):
            archive.slice("scalar", slice(0, 1))
        assert archive.slice("scalar", ...) == archive.slice("scalar", ()) == archive.lazy("scalar")[()] == 1.5
        with pytest.raises(TypeError, match="no length"):
            len(archive.lazy("scalar"))
        with pytest.raises(tenarc.NotFound):
            archive.slice("none", 0)
    tenarc.save(tmp_path / "a", np.zeros((1000, 2)))
    with tenarc.open(tmp_path / "a") as archive, pytest.raises(IndexError):
        archive.slice("", 1000)


def test_limits_are_those_of_what_is_decompressed(tmp_path):
    tenarc.save(tmp_path / "a", np.zeros((1000, 1000)), compression="zstd", chunk_len=MIN_CHUNK)
    with tenarc.open(tmp_path / "a", limits=tenarc.Limits(max_alloc=1 << 20)) as archive:
        assert archive.slice("", slice(0, 100)).shape == (100, 1000)
        with pytest.raises(tenarc.Limit):
            archive.slice("", slice(0, 200))
        with pytest.raises(tenarc.Limit):
            archive.tensor("")
