"""Compressed buffers (SPEC 5.11). Files that the Rust library exchanges with this one are in test_interop.py."""

import io
import os
import random
import resource
import struct
import subprocess
import sys
from array import array

import cbor2
import lz4.block
import numpy as np
import pytest
import samples
import zstandard
from by_hand import ended
from conftest import ROOT
from described import describe, write_manifest

import tenarc
from tenarc import codec, items, planes
from tenarc.chunks import MIN_CHUNK, hashes_of
from tenarc.compress import Compressed
from tenarc.directory import MAGIC
from tenarc.encode import Encoded
from tenarc.ext import EMPTY
from tenarc.packed import Packed
from tenarc.planes import BadChunk, Layout
from tenarc.segment import CHECK, HEADER, Header, hash_list, record

TBUF = int.from_bytes(b"TBUF", "big")
LAYOUTS = [Layout(width, rotated) for width in planes.WIDTHS for rotated in (False, True)]
WAYS = ("load", "view", "stream", "torn")


def peak() -> int:
    """The peak memory of the process, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def saved(value, name=None, **options) -> bytes:
    out = io.BytesIO()
    with tenarc.Writer(out, **options) as writer:
        writer.save(value, name=name)
    return out.getvalue()


def read(data: bytes, way: str, path, **options):
    """Reads the only value of an archive in one of several ways."""
    if way == "stream":
        return tenarc.load(io.BytesIO(data), numbers=True, **options)
    path.write_bytes(data)
    with tenarc.open(path, torn=way == "torn", **options) as archive:
        return archive.view() if way == "view" else archive.load(numbers=True)


def weights(count: int, name: str = "f4") -> np.ndarray:
    return (np.random.default_rng(count).normal(size=count) * 0.02).astype(name)


def packed_of(data: bytes, path) -> list:
    """The codec of each buffer."""
    path.write_bytes(data)
    with tenarc.open(path) as archive:
        segment = archive.segment(0)
        return [found and found.codec for found in map(segment.compressed, range(len(segment.buffers)))]


# Planes


def rotated(data: bytes, width: int, left: bool) -> bytes:
    """Words, each rotated by a bit, one after the other."""
    bits, out = 8 * width, b""
    for at in range(0, len(data), width):
        word = int.from_bytes(data[at : at + width], "little")
        by = 1 if left else bits - 1
        out += ((word << by | word >> bits - by) & ((1 << bits) - 1)).to_bytes(width, "little")
    return out


@pytest.mark.parametrize("layout", LAYOUTS)
def test_planes_are_those_of_the_specification(layout):
    width = layout.width
    content = random.Random(5).randbytes(40 * width)
    chunk = np.frombuffer(content + b"rest"[: min(width - 1, 4)], np.uint8)
    seen = []

    def compress(plane):
        seen.append(plane.tobytes())
        return b"x"

    stored = planes.encode(chunk, layout, compress)
    words = rotated(content, width, True) if layout.rotated and width > 1 else content
    assert seen == [words[number::width] for number in range(width)]
    assert stored is None or stored.startswith(struct.pack("<BI", 2, 1) * width)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["zstd", "lz4"])
def test_chunks_of_every_length_are_the_same_again(layout, name):
    compress, decompress = codec.compressor(name, 1), codec.decompressor(name, "")
    count = 0
    for length in [*range(1, 100), 1000, 1001, 70_003]:
        for content in (bytes(length), os.urandom(length), b"\1\2\3\0" * length, b"\0\0\1\2" + os.urandom(length)):
            chunk = np.frombuffer(content[:length], np.uint8)
            stored = planes.encode(chunk, layout, compress)
            if stored is None:
                continue
            count += 1
            assert len(stored) < length
            out = np.empty(length, np.uint8)
            planes.decode(memoryview(stored), out, layout, decompress)
            assert out.tobytes() == chunk.tobytes()
    assert count > 5


def test_the_example_of_the_specification():
    text = (ROOT / "SPEC.md").read_text().partition("#### A worked example of a compressed buffer")[2]
    description, chunk = examples(text)
    data = saved(np.full(16, 7, "u2"), inline_below=0, compression="zstd")
    assert description in data and chunk in data
    (found,) = tenarc.Reader(io.BytesIO(data))
    assert found.dtype == np.uint16 and found.tolist() == [7] * 16


def examples(text: str) -> list[bytes]:
    """The first two lines of bytes, without what is said about them."""
    lines = [line.strip().split("   ")[0] for line in text.splitlines() if line.startswith("    ")]
    return [bytes.fromhex(line) for line in lines[:2]]


# Values


@pytest.mark.parametrize("compression", ["zstd", "lz4", ("zstd", 22)])
def test_all_values_are_read_as_they_were_written(compression, tmp_path):
    value = dict(samples.values())
    plain = saved(value, inline_below=0)
    data = saved(value, inline_below=0, compression=compression)
    want = describe(read(plain, "load", tmp_path / "a"))
    for way in WAYS:
        assert describe(read(data, way, tmp_path / "a")) == want, way


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_large_tensors_are_read_by_path_and_as_a_whole(compression, tmp_path):
    value = {"a": weights(1_500_001), "b": [weights(3000, "f8").reshape(30, 100).T], "c": b"tenarc" * 9999}
    tenarc.save(tmp_path / "a", value, compression=compression)
    with tenarc.open(tmp_path / "a") as archive:
        archive.verify()
        assert [archive.segment(0).compressed(number).codec for number in range(3)] == [compression] * 3
        assert np.array_equal(archive["a"], value["a"]) and np.array_equal(archive.tensor("b.0"), value["b"][0])
        assert archive["b.0"].flags.f_contiguous and not archive["a"].flags.writeable
        assert bytes(archive["c"]) == value["c"]
        assert [(info.path, info.nbytes) for info in archive.tensors()] == [("a", 6_000_004), ("b.0", 24_000)]
        lengths = [length for _, length in archive.segment(0).buffers]
        assert lengths == [6_000_004, 24_000, 59_994]
    loaded = tenarc.load(tmp_path / "a")
    assert loaded["a"].flags.writeable and np.array_equal(loaded["a"], value["a"])
    assert (tmp_path / "a").stat().st_size < 0.95 * 6_000_004


def test_what_does_not_shrink_is_stored_as_it_is(tmp_path):
    noise = np.frombuffer(os.urandom(300_000), np.uint8)
    value = [noise, weights(9000), noise[:5000], np.zeros(9000), noise.view("f2")]
    data = saved(value, compression="zstd")
    assert packed_of(data, tmp_path / "a") == [None, "zstd", None, "zstd", None]
    with tenarc.open(tmp_path / "a") as archive:
        starts = [start for start, _ in archive.segment(0).buffers]
        stored = archive.segment(0).header.stored_lengths
        # Compressed buffers follow what is before them; others are aligned.
        assert starts[1] == starts[0] + stored[0] and starts[2] % 256 == 0 and starts[3] == starts[2] + stored[2]
        view = archive["0"]
        assert view.base is not None and not view.flags.owndata


def test_a_function_chooses(tmp_path):
    calls = []

    def choose(path, dtype, shape):
        calls.append((path, dtype, shape))
        return {"f4": "lz4", "f8": ("zstd", 3)}.get(path.split(".")[-1])

    rows = [{"x": n, "t": "text"} for n in range(2000)]
    value = {
        "a": {"f4": weights(9999), "u1": np.zeros(9999, "u1")},
        "f8": weights(6000, "f8").reshape(60, 100),
        "bytes": bytes(9999),
        "numbers": np.arange(4000).view(tenarc.Numbers),
        "rows": tenarc.Table(rows),
        7: np.zeros((2, 4000)),
    }
    data = saved(value, compression=choose)
    assert [call[0] for call in calls[:5]] == ["a.f4", "a.u1", "f8", "bytes", "numbers"]
    assert calls[0][1:] == ("f32", (9999,)) and calls[2][1:] == ("f64", (60, 100))
    assert calls[3][1:] == ("u8", (9999,)) and calls[4][1:] == ("i64", (4000,))
    assert {call[0] for call in calls[5:-1]} == {"rows"} and calls[-1] == ("7", "f64", (2, 4000))
    assert packed_of(data, tmp_path / "a")[:5] == ["lz4", None, "zstd", None, None]


@pytest.mark.parametrize(
    "choice",
    ["gzip", "", 3, True, ("zstd",), ("lz4", 1), ("zstd", 23), ("zstd", 1.5), ("zstd", True), ["zstd", 1]],
)
def test_other_choices_are_refused_before_anything_is_written(choice, tmp_path):
    for way in (
        lambda: saved(weights(9999), compression=choice),
        lambda: tenarc.save(tmp_path / "a", 1, compression=choice),
    ):
        with pytest.raises(tenarc.Unsupported):
            way()
    out = io.BytesIO()
    writer = tenarc.Writer(out, compression=lambda *_: choice)
    before = out.getvalue()
    with pytest.raises(tenarc.Unsupported):
        writer.save(weights(9999))
    assert out.getvalue() == before and list(tmp_path.iterdir()) == []
    writer.save([1, 2])


def test_appended_values_and_digests(tmp_path):
    path, value = tmp_path / "a", {"w": weights(100_000)}
    tenarc.save(path, value, name="one", compression="zstd")
    with tenarc.append(path, compression="zstd") as out:
        out.save(value, name="two")
    with tenarc.append(path) as out:
        out.save(value, name="raw")
    with tenarc.open(path) as archive:
        archive.verify()
        one, two, raw = archive.segments()
        # The digest is that of the stored bytes.
        assert one.digest() == two.digest() != raw.digest()
        assert len(one.hashes) == 1 and archive.digest()
        for segment in (one, two, raw):
            assert np.array_equal(segment["w"], value["w"])


def test_columns_are_compressed_too(tmp_path):
    path = tmp_path / "a"
    with path.open("wb") as file, tenarc.Writer(file, compression="zstd", inline_below=64) as out:
        for day in range(3):
            rows = [{"n": day * 100 + n, "t": f"text {n}", "v": [n, n]} for n in range(100)]
            out.save(tenarc.Table(rows), name="log")
    with tenarc.open(path) as archive:
        archive.verify()
        assert any(archive.segment(0).compressed(number) for number in range(3))
        log = archive.table("log")
        assert log["n"].tolist() == list(range(300)) and log[250]["t"] == "text 50"
        assert [row["v"][0] for row in log] == [n % 100 for n in range(300)]
        assert archive.segment(1)["n"].tolist() == list(range(100, 200))
        assert [info.path for info in archive.segment(0).tensors()] == ["n", "v"]


def test_shared_buffers(tmp_path):
    array = np.arange(60_000, dtype="u4")
    data = saved([array, array.reshape(200, 300), array.tobytes()], dedup=True, compression="lz4")
    assert packed_of(data, tmp_path / "a") == ["lz4"]
    for way in WAYS:
        first, second, third = read(data, way, tmp_path / "a")
        assert np.array_equal(first, array) and np.array_equal(second.reshape(-1), array)
        assert bytes(third) == array.tobytes()


def test_parts_are_never_compressed():
    header = Header(
        None, 8, True, MIN_CHUNK, (64,), b"\xda" + b"TBUF\x81\0", {0: Packed("zstd", (1, 0), array("Q", [6]))}
    )
    record = header.write(0)
    metadata = record + hash_list(hashes_of(memoryview(b"\1\1\0\0\0\0"), MIN_CHUNK), record[-8:])
    for call in (lambda: tenarc.from_parts(metadata, [b"\1\1\0\0\0\0"]), lambda: tenarc.buffer_lengths(metadata)):
        with pytest.raises(tenarc.Damaged, match="no compressed buffers"):
            call()


# Damage


def small() -> bytes:
    value = {"a": np.arange(40, dtype="u2"), "b": b"tenarc " * 9, "c": np.ones(5, "u1")}
    data = saved(value, inline_below=0, alignment=8, compression="zstd")
    assert data.count(b"dzstd") == 2
    return data


def accepted(data: bytes, path) -> list[str]:
    """The ways to read that accept all of the input."""
    found = []
    for way in ("load", "stream", "verify"):
        try:
            if way == "verify":
                path.write_bytes(data)
                with tenarc.open(path) as archive:
                    archive.verify()
            else:
                read(data, way, path)
            found.append(way)
        except tenarc.Error:
            pass
    return found


def test_every_flip_and_truncation_is_found(tmp_path):
    data = small()
    assert accepted(data, tmp_path / "a") == ["load", "stream", "verify"]
    for bit in range(len(data) * 8):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        # What only verification reads, such as the padding between buffers, does not concern `load`.
        found = accepted(bytes(changed), tmp_path / "a")
        assert found in ([], ["load"]), bit
        if found:
            assert describe(read(bytes(changed), "load", tmp_path / "a")) == describe(
                read(data, "load", tmp_path / "a")
            )
    for length in range(len(data)):
        assert accepted(data[:length], tmp_path / "a") == [], length


def test_errors_name_the_chunk_and_the_path(tmp_path):
    path = tmp_path / "a"
    value = {"first": weights(200_000), "second": weights(200_000)}
    tenarc.save(path, value, compression="zstd", chunk_len=MIN_CHUNK)
    with tenarc.open(path) as archive:
        segment = archive.segment(0)
        start = segment.buffers[1][0] + sum(segment.compressed(1).stored[:3])
    content = bytearray(path.read_bytes())
    content[start + 500] ^= 1
    path.write_bytes(content)
    said = r"chunk 3 of buffer 1, which is its bytes 196608..262144, compressed with 'zstd', is"
    with tenarc.open(path) as archive:
        assert np.array_equal(archive["first"], value["first"])
        for call in (archive.load, archive.view, archive.verify, lambda: archive["second"]):
            with pytest.raises(tenarc.Damaged, match=said) as caught:
                call()
            assert caught.value.offset == start
            assert call == archive.verify or caught.value.path == "second"
    with pytest.raises(tenarc.Damaged, match=said):
        list(tenarc.Reader(io.BytesIO(content)))


def test_a_truncated_archive_keeps_its_complete_tensors(tmp_path):
    path = tmp_path / "a"
    value = {name: weights(50_000) + index for index, name in enumerate("abc")}
    tenarc.save(path, value, compression="zstd")
    with tenarc.open(path) as archive:
        end = archive.segment(0).buffers[2][0]
    path.write_bytes(path.read_bytes()[: end + 1000])
    with tenarc.open(path, torn=True, verify=False) as archive:
        assert np.array_equal(archive["b"], value["b"])
        with pytest.raises(tenarc.Torn):
            archive["c"]
    with tenarc.open(path, torn=True) as archive, pytest.raises(tenarc.Torn, match="cannot be verified"):
        archive["a"]
    kept = tenarc.recover_to(path, tmp_path / "b").salvaged
    assert [info.path for info in kept.tensors] == ["a", "b"] and [info.path for info in kept.missing] == ["c"]
    with tenarc.open(tmp_path / "b") as archive:
        archive.verify()
        assert archive.segment(0).compressed(1).codec == "zstd" and archive["c"] is None
        assert np.array_equal(archive["a"], value["a"]) and np.array_equal(archive["b"], value["b"])


# Hostile input. All hashes are right.


def forged(
    description: bytes, stored: bytes, chunks: list[bytes], dtype: str = "", checksums: bool = True
) -> bytes:
    """An archive of one buffer with this description in the header. Its reference is to bytes."""
    metadata = cbor2.dumps(cbor2.CBORTag(TBUF, [0]))
    check = items.text_or_null(CHECK if checksums else None)
    fields = [items.NULL, b"\x08", check, items.head(0, MIN_CHUNK), b"\x81" + description, EMPTY, metadata]
    item = record(HEADER, fields, len(MAGIC))
    out = MAGIC + item
    head = items.head(items.BYTES, len(stored))
    gap = -(len(out) + len(head)) % 8
    out += (items.byte_string(bytes(gap - 1)) if gap else b"") + head + stored
    hashes = b"".join(hashes_of(memoryview(chunk), 1 << 30) for chunk in chunks) if checksums else b""
    out += hash_list(hashes, item[-8:])
    return ended(out)


def archive_of(
    chunks: list[bytes],
    length: int,
    name: str = "zstd",
    parameters: tuple[int, ...] = (1, 0),
    checksums: bool = True,
) -> bytes:
    """An archive of one compressed buffer with these stored chunks."""
    description = Packed(name, parameters, array("Q", map(len, chunks))).write(length)
    return forged(description, b"".join(chunks), chunks, checksums=checksums)


def test_forged_archives_can_be_right(tmp_path):
    chunk = struct.pack("<BI", 1, 1) + b"\7"
    for checksums in (True, False):
        data = archive_of([chunk], 100, checksums=checksums)
        for way in WAYS:
            assert bytes(read(data, way, tmp_path / "a")) == b"\7" * 100


TEXT, NUMBER = items.text, lambda number: items.head(0, number)
ZSTD = TEXT("zstd")
CHUNKS = b"\x81\x06"
DESCRIPTIONS = {
    "three items": b"\x83" + ZSTD + b"\x82\1\0" + b"\x18\x64",
    "five items": b"\x85" + ZSTD + b"\x82\1\0\x18\x64" + CHUNKS + b"\0",
    "no items": b"\x80",
    "an indefinite length": b"\x9f" + ZSTD + b"\x82\1\0\x18\x64" + CHUNKS + b"\xff",
    "a codec without a name": b"\x84\x60\x82\1\0\x18\x64" + CHUNKS,
    "a codec with a long name": b"\x84" + TEXT("x" * 65) + b"\x82\1\0\x18\x64" + CHUNKS,
    "a codec that is no text": b"\x84\x44zstd\x82\1\0\x18\x64" + CHUNKS,
    "a codec that is null": b"\x84\xf6\x82\1\0\x18\x64" + CHUNKS,
    "a codec that is not UTF-8": b"\x84\x61\xff\x82\1\0\x18\x64" + CHUNKS,
    "a codec in pieces": b"\x84\x7f\x64zstd\xff\x82\1\0\x18\x64" + CHUNKS,
    "17 parameters": b"\x84\x61x\x91" + bytes(17) + b"\x18\x64" + CHUNKS,
    "a negative parameter": b"\x84\x61x\x81\x20\x18\x64" + CHUNKS,
    "parameters that are a number": b"\x84" + ZSTD + b"\1\x18\x64" + CHUNKS,
    "no parameters": b"\x84" + ZSTD + b"\x80\x18\x64" + CHUNKS,
    "one parameter": b"\x84" + ZSTD + b"\x81\1\x18\x64" + CHUNKS,
    "three parameters": b"\x84" + ZSTD + b"\x83\1\0\0\x18\x64" + CHUNKS,
    "a width of 0": b"\x84" + ZSTD + b"\x82\0\0\x18\x64" + CHUNKS,
    "a width of 3": b"\x84" + ZSTD + b"\x82\3\0\x18\x64" + CHUNKS,
    "a width of 32": b"\x84" + ZSTD + b"\x82\x18\x20\0\x18\x64" + CHUNKS,
    "a rotation of 2": b"\x84" + TEXT("lz4") + b"\x82\2\2\x18\x64" + CHUNKS,
    "a length of 0": b"\x84" + ZSTD + b"\x82\1\0\0" + CHUNKS,
    "a length of 0 without chunks": b"\x84" + ZSTD + b"\x82\1\0\0\x80",
    "a length of 2^63": b"\x84" + ZSTD + b"\x82\1\0" + NUMBER(1 << 63) + CHUNKS,
    "a negative length": b"\x84" + ZSTD + b"\x82\1\0\x20" + CHUNKS,
    "no chunks": b"\x84" + ZSTD + b"\x82\1\0\x18\x64\x80",
    "a chunk too many": b"\x84" + ZSTD + b"\x82\1\0\x18\x64\x82\6\1",
    "a chunk too few": b"\x84" + ZSTD + b"\x82\1\0" + NUMBER(MIN_CHUNK + 1) + CHUNKS,
    "2^40 chunks": b"\x84" + ZSTD + b"\x82\1\0" + NUMBER(1 << 56) + items.head(items.ARRAY, 1 << 40),
    "a stored length of 0": b"\x84" + ZSTD + b"\x82\1\0\x18\x64\x81\0",
    "a stored length beyond the chunk": b"\x84" + ZSTD + b"\x82\1\0\x18\x64\x81\x18\x65",
    "a stored length of 2^64 - 1": b"\x84" + ZSTD + b"\x82\1\0\x18\x64\x81" + NUMBER((1 << 64) - 1),
    "a stored length that is a text": b"\x84" + ZSTD + b"\x82\1\0\x18\x64\x81\x61x",
    "a last chunk beyond its length": b"\x84" + ZSTD + b"\x82\1\0" + NUMBER(MIN_CHUNK + 1) + b"\x82\6\2",
    "chunks of indefinite length": b"\x84" + ZSTD + b"\x82\1\0\x18\x64\x9f\6\xff",
}


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_wrong_descriptions_are_refused(name, tmp_path):
    chunk = struct.pack("<BI", 1, 1) + b"\7"
    data = forged(DESCRIPTIONS[name], chunk, [chunk])
    before = peak()
    assert accepted(data, tmp_path / "a") == []
    with pytest.raises(tenarc.Damaged):
        read(data, "stream", tmp_path / "a")
    assert peak() - before < 50 << 20


def test_rust_refuses_these_descriptions_too(rust, tmp_path):
    chunk = struct.pack("<BI", 1, 1) + b"\7"
    archives = []
    for number, description in enumerate(DESCRIPTIONS.values()):
        (tmp_path / f"a{number}").write_bytes(forged(description, chunk, [chunk]))
        archives.append({"file": f"a{number}", "alignment": 8, "ends": [1], "values": []})
    write_manifest(tmp_path, {"writer": "Python", "archives": archives})
    lines = rust.failed("load", tmp_path)
    for entry in archives:
        assert any(line.startswith(f"FAILED {entry['file']}, verified: ") for line in lines), entry


def frame(content: bytes, **options) -> bytes:
    return zstandard.ZstdCompressor(**options).compress(content)


def with_planes(*entries: tuple[int, bytes], rest: bytes = b"") -> bytes:
    table = b"".join(struct.pack("<BI", method, len(content)) for method, content in entries)
    return table + b"".join(content for _, content in entries) + rest


GOOD = frame(b"ab" * 500)
BLOCK = lz4.block.compress(b"ab" * 500, store_size=False)
CONTEXT = zstandard.ZstdCompressionParameters(window_log=24, write_content_size=0)
LONG_WINDOW = zstandard.ZstdCompressor(compression_params=CONTEXT).compressobj()
LONG_WINDOW = LONG_WINDOW.compress(b"ab" * 500) + LONG_WINDOW.flush()

#: A chunk of 1,000 bytes with one or two planes, as it is stored.
STORED = {
    "a byte": b"\0",
    "less than the table": b"\0" * 4,
    "method 3": with_planes((3, GOOD)),
    "method 255": with_planes((255, b"x")),
    "a raw plane that is too short": with_planes((0, bytes(900))),
    "a constant of no bytes": with_planes((1, b"")),
    "a constant of two bytes": with_planes((1, b"xx")),
    "a compressed plane of no bytes": with_planes((2, b"")),
    "bytes behind the planes": with_planes((2, GOOD), rest=b"x"),
    "a plane beyond the end": struct.pack("<BI", 2, 900) + GOOD,
    "a plane of 2^32 - 1 bytes": struct.pack("<BI", 2, (1 << 32) - 1) + GOOD,
    "a frame that is too short": with_planes((2, frame(b"ab" * 400))),
    "a frame that is too long": with_planes((2, frame(b"ab" * 600))),
    "a long frame of unknown length": with_planes((2, frame(b"ab" * 600, write_content_size=False))),
    "a short frame of unknown length": with_planes((2, frame(b"ab" * 400, write_content_size=False))),
    "two frames": with_planes((2, frame(b"ab" * 250) * 2)),
    "bytes behind the frame": with_planes((2, GOOD + b"x")),
    "a frame that is cut off": with_planes((2, GOOD[:-1])),
    "a frame with a checksum": with_planes((2, frame(b"ab" * 500, write_checksum=True))),
    "a frame with a dictionary": with_planes((2, GOOD[:4] + bytes([GOOD[4] | 1]) + b"\7" + GOOD[5:])),
    "a frame with a reserved bit": with_planes((2, GOOD[:4] + bytes([GOOD[4] | 8]) + GOOD[5:])),
    "a frame with a large window": with_planes((2, LONG_WINDOW)),
    "a skippable frame": with_planes((2, b"\x50\x2a\x4d\x18\x04\0\0\0abcd" + GOOD)),
    "no frame": with_planes((2, b"not a frame")),
    "half of a head": with_planes((2, GOOD[:5])),
    "nothing but a head": with_planes((2, GOOD[:6])),
    "the frame of another codec": with_planes((2, BLOCK)),
}


@pytest.mark.parametrize("name", STORED)
def test_wrong_chunks_are_refused(name, tmp_path):
    for checksums in (True, False):
        data = archive_of([STORED[name]], 1000, checksums=checksums)
        for way in WAYS:
            with pytest.raises(tenarc.Damaged, match="cannot be decompressed with zstd"):
                read(data, way, tmp_path / "a")
        # Only the stored bytes are verified.
        with tenarc.open(tmp_path / "a") as archive:
            archive.verify()


def test_frames_of_every_kind_are_read(tmp_path):
    with_size, without = frame(b"ab" * 500), frame(b"ab" * 500, write_content_size=False)
    stream = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    # The last block of this frame is empty.
    flushed = stream.compress(b"ab" * 500) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) + stream.flush()
    for content in (with_size, without, flushed):
        data = archive_of([with_planes((2, content))], 1000)
        for way in WAYS:
            assert bytes(read(data, way, tmp_path / "a")) == b"ab" * 500


LZ4 = {
    "a block that is too short": lz4.block.compress(b"ab" * 400, store_size=False),
    "a block that is too long": lz4.block.compress(b"ab" * 600, store_size=False),
    "a length in front": lz4.block.compress(b"ab" * 500),
    "a block that is cut off": BLOCK[:-1],
    "a reference to before the start": b"\x1f\x00\xff\xff" + b"\xff" * 3 + b"\x50abcde",
    "a zstd frame": GOOD,
}


@pytest.mark.parametrize("name", LZ4)
def test_wrong_blocks_are_refused(name, tmp_path):
    data = archive_of([with_planes((2, LZ4[name]))], 1000, "lz4")
    for way in WAYS:
        with pytest.raises(tenarc.Damaged, match="cannot be decompressed with lz4"):
            read(data, way, tmp_path / "a")


def test_changed_chunks_raise_nothing_else(rust, tmp_path):
    """Chunks that are changed in any way, with right hashes."""
    dice, archives, judged = random.Random(7), [], {}
    text = b"".join(b"%d tenarc " % (n * n % 97) for n in range(300))[:2000]
    for number in range(1500):
        name = dice.choice(("zstd", "zstd", "lz4"))
        layout = dice.choice(LAYOUTS)
        content = dice.choice((text, weights(500).tobytes(), bytes(2000)))
        stored = planes.encode(np.frombuffer(content, np.uint8), layout, codec.compressor(name, 3))
        if stored is None:
            continue
        changed = bytearray(stored)
        for _ in range(dice.choice((0, 1, 1, 2))):
            at = dice.randrange(len(changed) if dice.random() < 0.4 else min(len(changed), 5 * layout.width + 20))
            changed[at] = dice.randrange(256) if dice.random() < 0.6 else changed[at] ^ 1 << dice.randrange(8)
        data = archive_of([bytes(changed)], 2000, name, (layout.width, int(layout.rotated)))
        file = f"a{number}"
        (tmp_path / file).write_bytes(data)
        described = {"t": "bytes", "v": ""}
        try:
            described = describe(tenarc.load(tmp_path / file))
            judged[file] = True
        except tenarc.Damaged:
            judged[file] = False
        value = {"name": None, "value": described, "buffers": [2000]}
        archives.append({"file": file, "alignment": 8, "ends": [1], "values": [value]})
    assert 300 < sum(judged.values()) < len(judged) - 300
    write_manifest(tmp_path, {"writer": "Python", "archives": archives})
    failed = {
        line.split(",")[0].removeprefix("FAILED "): line
        for line in rust.failed("load", tmp_path)
        if ", 0, " in line
    }
    refused = {file for file, is_right in judged.items() if not is_right}
    assert refused <= failed.keys()
    # The C library for zstd does not notice this in every stream.
    others = [line for file, line in failed.items() if file not in refused]
    assert all("a stream of Huffman codes is too" in line for line in others)


# Memory


def bomb(mebibytes: int) -> bytes:
    """An archive of some hundred bytes that claims a constant buffer of many."""
    chunk = struct.pack("<BI", 1, 1) + b"\7"
    count = mebibytes << 4
    return archive_of([chunk] * count, count * MIN_CHUNK)


def test_few_bytes_do_not_become_very_many(tmp_path):
    data = bomb(1024)
    assert len(data) < 500_000
    before = peak()
    for way in WAYS:
        with pytest.raises(tenarc.Limit, match="more memory than the limit"):
            read(data, way, tmp_path / "a")
    (tmp_path / "a").write_bytes(data)
    with tenarc.open(tmp_path / "a") as archive:
        archive.verify()
        with pytest.raises(tenarc.Limit):
            archive[""]
    assert peak() - before < 100 << 20
    data = bomb(70)
    limits = tenarc.Limits(max_alloc=69 << 20)
    for way in WAYS:
        assert len(read(data, way, tmp_path / "a")) == 70 << 20
        with pytest.raises(tenarc.Limit):
            read(data, way, tmp_path / "a", limits=limits)
    data = bomb(256)
    assert len(read(data, "load", tmp_path / "a", limits=tenarc.Limits(max_alloc=1 << 30))) == 256 << 20


def test_copies_of_a_compressed_buffer_count_as_it_is_stored(tmp_path):
    array = np.zeros(32 << 20, "u1")
    data = saved([array] * 8, dedup=True, compression="zstd")
    assert len(data) < 5000
    for way in ("load", "stream"):
        with pytest.raises(tenarc.Limit, match="more memory than the limit"):
            read(data, way, tmp_path / "a")
    assert len(read(data, "view", tmp_path / "a")) == 8


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_many_groups_of_rows_with_one_compressed_buffer_are_bounded(compression, tmp_path):
    content = np.zeros(32 << 20, "u1")
    column = {"x": cbor2.CBORTag(TBUF, ["u8", [1, content.size], "C", 0])}

    def table(groups: int) -> bytes:
        metadata = cbor2.dumps(cbor2.CBORTag(int.from_bytes(b"TCOL", "big"), [1, column] * groups))
        out = io.BytesIO()
        with tenarc.Writer(out, compression=compression) as writer:
            encoded = Encoded(metadata, [content], [("u8", content.shape)])
            writer._save(metadata, [content], None, Compressed(encoded, writer._options))
        return out.getvalue()

    for groups, is_refused in ((2, False), (30, True)):
        (tmp_path / "a").write_bytes(table(groups))
        before = peak()
        with tenarc.open(tmp_path / "a") as archive:
            for call in (lambda: archive["x"], lambda: archive.tensor("x"), lambda: archive.table("")["x"]):
                if is_refused:
                    with pytest.raises(tenarc.Limit, match="more memory than the limit"):
                        call()
                else:
                    assert call().shape == (groups, content.size)
                    assert np.array_equal(archive["1.x"], content)
        assert peak() - before < 400 << 20


def test_what_is_written_can_be_read_with_the_default_limits(tmp_path):
    value = [np.zeros(50 << 20, "u1"), np.zeros(50 << 20, "u1")]
    data = saved(value, compression="zstd")
    assert 30_000 < len(data) < 3 << 20
    assert [len(array) for array in read(data, "load", tmp_path / "a")] == [50 << 20] * 2


MEMORY = """
import sys, resource, tenarc, numpy as np
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
path = sys.argv[1]
if sys.argv[2] == "save":
    array = np.random.default_rng(1).integers(0, 9, size=64 << 20, dtype="u1").view("u2")
    before = peak()
    tenarc.save(path, array, compression="zstd", sync=False)
else:
    with tenarc.open(path) as archive:
        before = peak()
        archive.verify() if sys.argv[2] == "verify" else archive.load()
print(peak() - before)
"""


def test_memory_is_that_of_the_result_and_of_some_chunks(tmp_path):
    def more(mode: str) -> float:
        done = subprocess.run(
            [sys.executable, "-c", MEMORY, tmp_path / "a", mode], capture_output=True, text=True, check=True
        )
        return float(done.stdout)

    # The header has the stored lengths, so that all stored chunks are in memory before it is written.
    stored = more("save") and (tmp_path / "a").stat().st_size / (1 << 20)
    assert stored < 40
    assert more("save") < stored + 50
    assert more("load") < 64 + stored + 30
    assert more("verify") < 30


# Libraries


@pytest.fixture
def without(monkeypatch):
    """Makes libraries look as if they were not installed."""

    def hide(*names):
        for name in names:
            monkeypatch.setitem(sys.modules, name, None)
        codec._libraries.clear()

    yield hide
    monkeypatch.undo()
    codec._libraries.clear()


@pytest.mark.parametrize(
    "name, modules, package",
    [("zstd", ("zstandard", "compression.zstd"), "zstandard"), ("lz4", ("lz4.block",), "lz4")],
)
def test_a_missing_library_is_no_obstacle_to_the_rest(name, modules, package, without, tmp_path):
    path, array = tmp_path / "a", weights(50_000)
    tenarc.save(path, {"raw": array, "w": array}, compression=lambda path, *_: name if path == "w" else None)
    data = path.read_bytes()
    without(*modules)
    said = rf"the codec {name} needs a library: install the package {package}, or tenarc\[{name}\]"
    with tenarc.open(path) as archive:
        archive.verify()
        assert [info.path for info in archive.tensors()] == ["raw", "w"]
        assert archive.segment(0).compressed(1).codec == name and archive.digest()
        assert np.array_equal(archive["raw"], array)
        for call in (archive.load, archive.view, lambda: archive["w"]):
            with pytest.raises(tenarc.Unsupported, match=said) as caught:
                call()
            assert caught.value.path == "w"
    with pytest.raises(tenarc.Unsupported, match=said) as caught:
        list(tenarc.Reader(io.BytesIO(data)))
    assert caught.value.path == "w"
    tenarc.Reader(io.BytesIO(data)).skip()
    with pytest.raises(tenarc.Unsupported, match=f"writing the codec {name} needs a library: install"):
        tenarc.save(path, array, compression=name)
    assert path.read_bytes() == data


def test_an_unknown_codec_is_no_obstacle_to_the_rest(tmp_path):
    data = archive_of([b"whatever"], 100, "later\n", (1, 2, 3))
    for way in WAYS:
        with pytest.raises(tenarc.Version, match=r"does not know the codec 'later\\n'"):
            read(data, way, tmp_path / "a")
    (tmp_path / "a").write_bytes(data)
    with tenarc.open(tmp_path / "a") as archive:
        archive.verify()
        assert archive.digest() and list(archive.tensors()) == []
        assert archive.segment(0).compressed(0).codec == "later\n"


@pytest.fixture(params=["zstandard", "compression.zstd"])
def zstd(request, without, monkeypatch):
    """Each of the libraries for zstd."""
    if request.param == "zstandard":
        without("compression.zstd")
    else:
        module = pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
        without("zstandard")
        monkeypatch.setitem(sys.modules, "compression.zstd", module)
    return request.param


def test_both_libraries_for_zstd_do_the_same(zstd, tmp_path):
    value = {"w": weights(300_000), "u2": np.arange(60_000, dtype="u2"), "text": b"tenarc " * 999}
    for level in (-7, 1, 3, 19, 22):
        data = saved(value, compression=("zstd", level))
        for way in WAYS:
            found = read(data, way, tmp_path / "a")
            assert np.array_equal(found["w"], value["w"]) and np.array_equal(found["u2"], value["u2"])
    for name in STORED:
        with pytest.raises(tenarc.Damaged, match="cannot be decompressed with zstd"):
            read(archive_of([STORED[name]], 1000), "load", tmp_path / "a")
    test_frames_of_every_kind_are_read(tmp_path)


def test_windows_of_high_levels_are_not_too_large(zstd):
    plane = np.frombuffer(random.Random(3).randbytes(10 << 10) * 1700, np.uint8)
    found = codec.compressor("zstd", 22)(plane)
    assert codec.decompressor("zstd", "")(memoryview(found), plane.nbytes) == plane.tobytes()


def test_a_bad_chunk_says_where():
    stored = with_planes((0, bytes(10)), (7, b""))
    with pytest.raises(BadChunk) as caught:
        planes.decode(memoryview(stored), np.empty(20_000, np.uint8), Layout(2, False), lambda *_: b"")
    assert caught.value.at == 1
