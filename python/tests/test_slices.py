"""Rows of tensors, of which only the chunks that have them are read."""

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
    slice(None, 10**9, 499),
    0,
    499,
    -1,
    -500,
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
        for name in ("scalar", "text", "bytes", "raw"):
            with pytest.raises(tenarc.Mismatch):
                archive.slice(name, slice(0, 1))
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
