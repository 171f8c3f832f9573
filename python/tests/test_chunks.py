"""Buffers are hashed in chunks (SPEC 5.2), so that damage is found in the chunk where it is."""

import io
import itertools
import resource

import numpy as np
import pytest
import xxhash
from by_hand import end_of, ended

import tenarc
from tenarc import items
from tenarc.chunks import MIN_CHUNK, ChunkHasher, hashes_of
from tenarc.directory import MAGIC
from tenarc.segment import HEADER, RECORD, Header, hash_list, hashed

CHUNK = 1 << 16
#: Lengths of buffers, and the number of their chunks.
COUNTS = {1: 1, CHUNK - 1: 1, CHUNK: 1, CHUNK + 1: 2, 2 * CHUNK: 2, 2 * CHUNK + 5: 3}


def noise(length: int) -> np.ndarray:
    return np.frombuffer(np.random.default_rng(length).bytes(length), "u1")


def several() -> dict[str, np.ndarray]:
    return {f"a{length}": noise(length) for length in COUNTS}


def written(*values, **options) -> bytes:
    """An archive of these values."""
    out = io.BytesIO()
    with tenarc.Writer(out, **{"inline_below": 0, "chunk_len": CHUNK, **options}) as writer:
        for value in values:
            writer.save(value)
    return out.getvalue()


def xxh3(data: bytes, seed: int = 0) -> bytes:
    return xxhash.xxh3_64_intdigest(data, seed).to_bytes(8, "big")


def chunks_of(data: bytes, length: int = CHUNK) -> list[bytes]:
    return [data[at : at + length] for at in range(0, len(data), length)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.tenarc"


def test_the_list_after_the_body_has_a_hash_for_each_chunk(path):
    data = written(several())
    path.write_bytes(data)
    with tenarc.open(path) as archive:
        segment = archive.segment(0)
        contents = [data[at : at + length] for at, length in segment.buffers]
        start, seed = sum(segment.buffers[-1]), data[segment._behind_header - 8 : segment._behind_header]
    assert [len(content) for content in contents] == list(COUNTS)
    wanted = [xxh3(chunk) for content in contents for chunk in chunks_of(content)]
    assert len(wanted) == sum(COUNTS.values()) == 10
    item = b"\xd8\x43\x58\x50" + b"".join(wanted)
    assert data[start : start + 84] == item
    assert data[start + 84 :][:9] == b"\x48" + xxh3(item, int.from_bytes(seed, "big"))


def test_chunks_have_a_mebibyte_by_default(path):
    content = noise((1 << 20) + 1)
    tenarc.save(path, content)
    with tenarc.open(path) as archive:
        segment = archive.segment(0)
        assert segment.header.chunk_len == 1 << 20
        hashes = xxh3(content.tobytes()[:-1]) + xxh3(content.tobytes()[-1:])
        assert hashes in path.read_bytes() and segment.hashes == [xxh3(hashes, 2)]


def test_the_hash_of_a_buffer_follows_from_those_of_its_chunks(path):
    # An empty buffer, which the package reads and does not write, and buffers of several chunks.
    contents = [b"", *(noise(length).tobytes() for length in COUNTS)]
    references = [items.tag(0x54425546, items.array([items.head(0, n)])) for n in range(len(contents))]
    header = Header(None, 8, True, CHUNK, tuple(map(len, contents)), items.array(references))
    path.write_bytes(archive_of(header, contents))
    with tenarc.open(path) as archive:
        archive.verify()
        assert archive.load() == contents
        found = archive.segment(0).hashes
    wanted = []
    for content in contents:
        hashes = [xxh3(chunk) for chunk in chunks_of(content)]
        if not hashes:
            wanted.append(xxh3(b""))
        elif len(hashes) == 1:
            wanted += hashes
        else:
            wanted.append(xxh3(b"".join(hashes), len(hashes)))
    assert found == wanted
    assert list(tenarc.Reader(io.BytesIO(path.read_bytes()))) == [contents]


def archive_of(header: Header, contents: list[bytes]) -> bytes:
    out = MAGIC + header.write(len(MAGIC))
    seed = out[-8:]
    out += header.before_body(len(out))
    base = len(out)
    for place, content in zip(header.places(), contents, strict=True):
        out += bytes(base + place - len(out)) + content
    out += hash_list(b"".join(xxh3(chunk) for content in contents for chunk in chunks_of(content)), seed)
    return ended(out, header.name)


@pytest.mark.parametrize("piece", [999, CHUNK // 2, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK])
def test_hashes_do_not_depend_on_the_pieces(piece):
    for length in [0, *COUNTS]:
        content = noise(length).tobytes()
        hasher = ChunkHasher(CHUNK, length)
        for part in chunks_of(content, piece):
            hasher.update(part)
        wanted = b"".join(xxh3(chunk) for chunk in chunks_of(content))
        assert hasher.hashes == wanted == hashes_of(memoryview(content), CHUNK)


class Dribble(io.RawIOBase):
    """A stream that returns a few bytes at a time, which do not end where chunks end."""

    def __init__(self, data: bytes) -> None:
        self._inner = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, out) -> int:
        return self._inner.readinto(memoryview(out)[:7001])


# Ways to read an archive.


def loaded(path):
    tenarc.load(path)


def verified(path):
    with tenarc.open(path) as archive:
        archive.verify()


def streamed(path):
    tenarc.Reader(Dribble(path.read_bytes())).load()


def skipped(path):
    tenarc.Reader(io.BytesIO(path.read_bytes())).skip()


def from_torn(path):
    path.write_bytes(path.read_bytes()[:-1])
    with tenarc.open(path, torn=True) as archive:
        archive.load()


@pytest.mark.parametrize("read", [loaded, verified, streamed, skipped, from_torn])
def test_a_flipped_bit_is_found_in_its_chunk(path, read):
    data = written(several())
    path.write_bytes(data)
    with tenarc.open(path) as archive:
        buffers = archive.segment(0).buffers
    tried = 0
    for number, ((start, length), count) in enumerate(zip(buffers, COUNTS.values(), strict=True)):
        for index in range(count):
            first, end = index * CHUNK, min((index + 1) * CHUNK, length)
            for at in {first, (first + end) // 2, end - 1}:
                changed = bytearray(data)
                changed[start + at] ^= 0x10
                path.write_bytes(changed)
                with pytest.raises(tenarc.Damaged) as caught:
                    read(path)
                error = caught.value
                what = f"buffer {number}"
                if count > 1:
                    what = f"chunk {index} of buffer {number}, which is its bytes {first}..{end},"
                right, wrong = (xxh3(bytes(d[start + first : start + end])).hex() for d in (data, changed))
                assert error.message == f"checksum of {what} is {wrong}, the archive says {right}"
                assert error.offset == start + first
                if read in (loaded, from_torn):
                    assert error.path == f"a{length}"
                tried += 1
    # Two of the ten chunks have a single byte.
    assert tried == 8 * 3 + 2


def test_the_first_of_several_wrong_chunks_is_named(path):
    data = bytearray(written(noise(4 * CHUNK)))
    path.write_bytes(data)
    with tenarc.open(path) as archive:
        ((start, _),) = archive.segment(0).buffers
    # Two chunks in each other's place.
    first, second = (slice(start + n * CHUNK, start + (n + 1) * CHUNK) for n in (1, 2))
    data[first], data[second] = data[second], data[first]
    path.write_bytes(data)
    with pytest.raises(tenarc.Damaged, match=r"chunk 1 of buffer 0, which is its bytes 65536\.\.131072, is"):
        tenarc.load(path)


def test_parts_name_the_wrong_chunk():
    parts = tenarc.to_parts(several(), chunk_len=CHUNK, inline_below=0)
    buffers = [bytearray(buffer) for buffer in parts.buffers]
    assert len(tenarc.from_parts(parts.metadata, buffers)) == len(COUNTS)
    buffers[-1][CHUNK] ^= 1
    with pytest.raises(tenarc.Damaged, match=r"chunk 1 of buffer 5, .* 65536\.\.131072, .* the metadata says"):
        tenarc.from_parts(parts.metadata, buffers)
    tenarc.from_parts(parts.metadata, buffers, verify=False)
    buffers[-1][CHUNK] ^= 1
    buffers[2][-1] ^= 1
    with pytest.raises(tenarc.Damaged, match="checksum of buffer 2 is"):
        tenarc.from_parts(parts.metadata, buffers)
    # As in an archive, but for the seed of the last hash.
    assert b"".join(xxh3(c) for b in parts.buffers for c in chunks_of(bytes(b))) == parts.metadata[-89:-9]


def test_a_changed_list_of_hashes_is_refused(path):
    data = written(several())
    path.write_bytes(data)
    with tenarc.open(path) as archive:
        segment = archive.segment(0)
        start, end = sum(segment.buffers[-1]), segment.end
    for at in range(start, end):
        changed = bytearray(data)
        changed[at] ^= 1
        path.write_bytes(changed)
        for read in (loaded, verified, streamed):
            with pytest.raises(tenarc.Damaged, match="the list of hashes has wrong bytes"):
                read(path)


def test_a_list_of_hashes_of_another_form_is_refused(path):
    header = Header(None, 8, True, CHUNK, (8,), b"\xda\x54\x42\x55\x46\x81\x00")
    content = b"12345678"
    start = MAGIC + header.write(len(MAGIC))
    seed = int.from_bytes(start[-8:], "big")
    start += header.before_body(len(start)) + content
    # The hash of the list is right each time.
    for heads in (b"\xd8\x43\x48", b"\xd8\x42\x48", b"\xd8\x43\x68", b"\xd9\x00\x43"):
        path.write_bytes(ended(start + hashed(heads + xxh3(content), seed)))
        for read in (loaded, verified, streamed, skipped):
            if heads == b"\xd8\x43\x48":
                read(path)
            else:
                with pytest.raises(tenarc.Damaged, match="the list of hashes has wrong bytes"):
                    read(path)


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_errors_of_checksums_name_path_chunk_and_bytes(path, compression):
    zeros = np.zeros(3 * CHUNK // 4, "u4")
    table = tenarc.Table({"id": np.arange(3 * CHUNK // 8) * 1000, "text": ["a" * 100] * (3 * CHUNK // 8)})
    data = written(
        {"layers": [{"w": zeros}, {"w": zeros + 1}], "blob": bytes(3 * CHUNK), "log": table},
        compression=compression,
    )
    path.write_bytes(data)
    with tenarc.open(path) as archive:
        segment = archive.segment(0)
        # The path of a part of columns is that of the sequence.
        places = dict(zip(("layers.0.w", "layers.1.w", "blob", "log"), segment.buffers[:4], strict=True))
        packed = [segment.compressed(number) for number in range(4)]
    for number, (name, (at, length)) in enumerate(places.items()):
        stored = packed[number]
        assert length > 2 * CHUNK
        at += CHUNK if stored is None else stored.starts[1]
        damaged = bytearray(data)
        damaged[at + 5] ^= 1
        path.write_bytes(damaged)
        said = f"chunk 1 of buffer {number}, which is its bytes {CHUNK}..{2 * CHUNK}, "
        for read in (loaded, verified, streamed, skipped):
            with pytest.raises(tenarc.Damaged, match=said) as caught:
                read(path)
            assert caught.value.path == name and caught.value.offset == at, read
            assert f"at `{name}` (byte {at})" in str(caught.value)


def test_without_checksums_the_list_is_empty(path):
    data = written(several(), checksums=False)
    path.write_bytes(data)
    with tenarc.open(path) as archive:
        segment = archive.segment(0)
        end = sum(segment.buffers[-1])
        assert data[end : end + 4] == b"\xd8\x43\x40\x48" and segment.end == end + 12
        assert segment.hashes == []
        archive.verify()


BAD = [0, 1, 2, 1 << 15, CHUNK - 1, CHUNK + 1, 3 << 15, 1 << 31, (1 << 32) + CHUNK, 1 << 63, (1 << 64) - 1]


@pytest.mark.parametrize("chunk_len", BAD)
def test_bad_lengths_of_chunks_are_refused(path, chunk_len):
    for metadata, contents in ((b"\x07", []), (b"\xda\x54\x42\x55\x46\x81\x00", [b"12345678"])):
        header = Header(None, 8, True, chunk_len, tuple(map(len, contents)), metadata)
        out = MAGIC + header.write(len(MAGIC))
        seed = out[-8:]
        if contents:
            out += header.before_body(len(out)) + contents[0] + hash_list(xxh3(contents[0]), seed)
        path.write_bytes(ended(out))
        for read in (loaded, verified, streamed, skipped):
            with pytest.raises(tenarc.Damaged, match=f"power of two from 65536 to 1073741824, found {chunk_len} "):
                read(path)
        with pytest.raises(tenarc.Damaged, match="power of two from 65536"):
            tenarc.from_parts(header.write(0) + out[-20:] * bool(contents), contents)


@pytest.mark.parametrize("chunk_len", [-1, *BAD])
def test_bad_options_are_refused(path, chunk_len):
    for call in (
        lambda: tenarc.save(path, 1, chunk_len=chunk_len),
        lambda: tenarc.Writer(io.BytesIO(), chunk_len=chunk_len),
        lambda: tenarc.to_parts(1, chunk_len=chunk_len),
    ):
        with pytest.raises(tenarc.Unsupported, match="power of two from 65536 to 1073741824"):
            call()
    assert not path.exists()


@pytest.mark.parametrize("chunk_len", [CHUNK, 1 << 20, 1 << 30])
def test_good_options_are_taken(path, chunk_len):
    tenarc.save(path, several(), chunk_len=chunk_len)
    with tenarc.append(path, chunk_len=chunk_len) as out:
        out.save(several())
    with tenarc.open(path) as archive:
        archive.verify()
        assert [segment.header.chunk_len for segment in archive.segments()] == [chunk_len] * 2
        for segment in archive.segments():
            assert all(np.array_equal(found, noise(found.size)) for found in segment.load().values())


@pytest.mark.parametrize("count", [*range(8), 9, 23])
def test_headers_of_another_number_of_items_are_refused(path, count):
    fields = [b"\x01", b"\xf6", b"\x08", b"\xf6", b"\x1a\0\1\0\0", b"\x80", b"\xa0", b"\x07"]
    good = items.tag(HEADER, items.array(fields))
    # The items are those of a header. Only their number is wrong, or there are more or fewer of them.
    for wrong in (
        good[:5] + items.head(items.ARRAY, count) + good[6:],
        items.tag(HEADER, items.array([*fields, *itertools.repeat(b"\x07", 16)][:count])),
        items.tag(HEADER, items.array([*fields[:4], *fields[5:], b"\x07"][:count])),
    ):
        for content in (good, wrong):
            path.write_bytes(ended(MAGIC + hashed(RECORD + items.byte_string(content), len(MAGIC))))
            for read in (loaded, verified, streamed):
                if content == good:
                    read(path)
                else:
                    with pytest.raises(tenarc.Damaged):
                        read(path)


def test_recovery_keeps_the_length_of_chunks(path, tmp_path):
    value = {"first": noise(2 * CHUNK + 5), "second": noise(CHUNK)}
    path.write_bytes(written(value))
    with tenarc.open(path) as archive:
        start, _ = archive.segment(0).buffers[1]
    path.write_bytes(path.read_bytes()[: start + 100])
    assert len(tenarc.recover_to(path, tmp_path / "new").salvaged.tensors) == 1
    with tenarc.open(tmp_path / "new") as archive:
        archive.verify()
        segment = archive.segment(0)
        assert segment.header.chunk_len == CHUNK
        assert segment.hashes == [xxh3(b"".join(map(xxh3, chunks_of(value["first"].tobytes()))), 3)]
        assert np.array_equal(archive.load()["first"], value["first"])


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def test_hashes_that_a_header_claims_allocate_nothing(path):
    before = peak()
    reference = b"\xda\x54\x42\x55\x46\x81\x00"
    for length in (1 << 40, 1 << 62):
        header = Header(None, 8, True, MIN_CHUNK, (length,), reference)
        start = MAGIC + header.write(len(MAGIC))
        data = start + header.before_body(len(start)) + bytes(1000)
        for read in (tenarc.Reader.load, tenarc.Reader.skip):
            with pytest.raises((tenarc.Torn, tenarc.Limit)):
                read(tenarc.Reader(io.BytesIO(data)))
        path.write_bytes(data)
        with tenarc.open(path, torn=True) as archive, pytest.raises(tenarc.Torn):
            archive.load()
        item = header.write(0)
        for behind in (b"", b"\xd8\x43\x5b" + bytes(100)):
            with pytest.raises(tenarc.Error):
                tenarc.from_parts(item + behind, [b""])
    assert peak() - before < 100 << 20


def test_hashes_in_a_sparse_file_are_a_limit(path):
    before = peak()
    # All the bytes are there, so only the limit bounds the list of hashes, which has 8 MiB.
    header = Header(None, 8, True, MIN_CHUNK, (1 << 36,), b"\xda\x54\x42\x55\x46\x81\x00")
    start = MAGIC + header.write(len(MAGIC))
    start += header.before_body(len(start))
    end = len(start) + (1 << 36) + header.hashes_length()
    with path.open("wb") as file:
        file.write(start)
        file.seek(end)
        file.write(end_of(start, end))
    limits = tenarc.Limits(max_alloc=4 << 20)
    with tenarc.open(path, limits=limits) as archive:
        for call in (archive.load, archive.verify, archive.digest, lambda: archive.segment(0).hashes):
            with pytest.raises(tenarc.Limit, match=r"more memory|a list of hashes of 8388"):
                call()
    with path.open("r+b") as file:
        file.truncate(end)
    with pytest.raises(tenarc.Limit, match="a list of hashes"):
        tenarc.open(path, torn=True, limits=limits)
    assert peak() - before < 50 << 20
