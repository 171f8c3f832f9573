"""Digests name the content of values and archives (SPEC 5.10)."""

import io
import re

import numpy as np
import pytest
import xxhash
from by_hand import ended
from conftest import ROOT

import tenarc
from tenarc.directory import MAGIC
from tenarc.segment import Header, hash_list

CHUNK = 1 << 16


def xxh3_128(data: bytes) -> str:
    return f"{xxhash.xxh3_128_intdigest(data):032x}"


def value() -> dict:
    numbers = np.arange(2 * CHUNK + 3).astype("u1")
    return {"name": "two", "w": numbers, "b": numbers[:CHUNK], "small": np.arange(3.0)}


def digest(path, content, name=None, **options) -> str:
    tenarc.save(path, content, name=name, **options)
    with tenarc.open(path) as archive:
        return archive.segment(0).digest()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.tenarc"


def test_the_digests_of_5_9(example, path):
    path.write_bytes(example)
    text = (ROOT / "SPEC.md").read_text().partition("### 5.10")[2].partition("\n### ")[0]
    segment, archive = re.findall("`([0-9a-f]{32})`", text)
    with tenarc.open(path) as found:
        assert found.segment(0).digest() == segment and found.digest() == archive
    # The header's content from byte 16 on, with null in place of the name, and the list of hashes at 104.
    assert segment == xxh3_128(example[16:23] + b"\xf6" + example[29:77] + example[104:115])
    assert archive == xxh3_128(b"\x81\x82\x65layer\x50" + bytes.fromhex(segment))


def test_a_value_without_buffers_has_the_digest_of_its_header(path):
    content = bytes.fromhex("da54534547 88 01 f6 190100 67 787868332d3634 1a00100000 80 a0 63 616263")
    assert digest(path, "abc", name="a name") == xxh3_128(content)
    # Without checksums too, because there is nothing to hash.
    content = bytes.fromhex("da54534547 88 01 f6 190100 f6 1a00100000 80 a0 63 616263")
    assert digest(path, "abc", checksums=False) == xxh3_128(content)
    with tenarc.open(path) as archive:
        assert archive.digest() == xxh3_128(b"\x81\x82\xf6\x50" + bytes.fromhex(xxh3_128(content)))


def test_buffers_without_bytes_have_a_list_of_no_hashes(path):
    metadata = bytes.fromhex("da54425546 81 00")
    header = Header(None, 8, True, CHUNK, (0,), metadata)
    out = MAGIC + header.write(len(MAGIC))
    out += header.before_body(len(out)) + hash_list(b"", out[-8:])
    path.write_bytes(ended(out))
    content = bytes.fromhex("da54534547 88 01 f6 08 67 787868332d3634 1a00010000 81 00 a0") + metadata
    with tenarc.open(path) as archive:
        archive.verify()
        assert archive.load() == b""
        assert archive.segment(0).digest() == xxh3_128(content + b"\xd8\x43\x40")


def test_an_archive_of_nothing_has_a_digest(path):
    with path.open("wb") as file, tenarc.Writer(file):
        pass
    with tenarc.open(path) as archive:
        assert archive.digest() == xxh3_128(b"\x80")


def test_equal_values_have_equal_digests_wherever_they_are(path, tmp_path):
    wanted = digest(path, value())
    assert re.fullmatch("[0-9a-f]{32}", wanted)
    assert digest(tmp_path / "named", value(), name="a name") == wanted
    out = io.BytesIO()
    with tenarc.Writer(out) as writer:
        for number in range(70):
            # Other padding before each.
            writer.save("x" * number, name="between")
            writer.save(value(), name=f"number {number}" if number % 2 else None)
            if number % 9 == 0:
                writer.commit()
    path.write_bytes(out.getvalue())
    with tenarc.append(path) as more:
        more.save(value())
    with tenarc.open(path) as archive:
        found = [segment.digest() for segment in archive.segments()]
    assert found[1:140:2] == [wanted] * 70 and found[140] == wanted
    # Each of the texts between has another digest.
    assert len(set(found)) == 71


def test_other_content_and_other_options_have_other_digests(path):
    found = [digest(path, value())]
    for name, at in (("w", 0), ("w", CHUNK), ("w", 2 * CHUNK + 2), ("b", 0), ("b", CHUNK - 1), ("small", 1)):
        changed = value()
        changed[name] = changed[name].copy()
        changed[name].view("u1")[at] ^= 1
        found.append(digest(path, changed))
    found.append(digest(path, value() | {"name": "six"}))
    found.append(digest(path, value() | {"w": value()["w"].reshape(1, -1)}))
    found.append(digest(path, dict(reversed(value().items()))))
    found.append(digest(path, value(), chunk_len=CHUNK))
    found.append(digest(path, value(), alignment=64))
    found.append(digest(path, value(), inline_below=0))
    assert len(set(found)) == len(found)


def archive_digest(path, entries, commits: bool = False) -> str:
    with path.open("wb") as file, tenarc.Writer(file) as out:
        for name, content in entries:
            out.save(content, name=name)
            if commits:
                out.commit()
    with tenarc.open(path) as archive:
        return archive.digest()


def test_names_and_order_count_for_an_archive(path):
    cases = [
        [(None, 1), (None, 2)],
        [(None, 2), (None, 1)],
        [("a", 1), ("b", 2)],
        [("b", 1), ("a", 2)],
        [("", 1), ("", 2)],
        [(None, 1)],
        [(None, 1), (None, 2), (None, 2)],
    ]
    found = [archive_digest(path, entries) for entries in cases]
    assert len(set(found)) == len(found)
    # End marks between the values do not.
    assert [archive_digest(path, entries, commits=True) for entries in cases] == found


def test_bodies_are_not_read(path):
    wanted = digest(path, value(), chunk_len=CHUNK)
    data = bytearray(path.read_bytes())
    with tenarc.open(path) as archive:
        buffers = archive.segment(0).buffers
    for at, length in buffers:
        data[at : at + length] = bytes(length)
    path.write_bytes(data)
    with tenarc.open(path) as archive:
        assert archive.segment(0).digest() == wanted
        with pytest.raises(tenarc.Damaged):
            archive.load()
    # The list of hashes is read, and verified.
    data[sum(buffers[-1]) + 6] ^= 1
    path.write_bytes(data)
    with tenarc.open(path) as archive:
        for call in (archive.digest, archive.segment(0).digest):
            with pytest.raises(tenarc.Damaged, match="list of hashes"):
                call()


def test_without_checksums_there_is_no_digest(path):
    with path.open("wb") as file, tenarc.Writer(file, checksums=False) as out:
        out.save("no buffers")
        out.save(value())
    with tenarc.open(path) as archive:
        assert len(archive.segment(0).digest()) == 32
        for call in (archive.digest, archive.segment(1).digest):
            with pytest.raises(tenarc.Unsupported, match="segment 1 has no digest"):
                call()


def test_a_value_that_is_cut_off_has_no_digest(path):
    tenarc.save(path, value())
    with tenarc.open(path) as archive:
        end = archive.segment(0).end
    path.write_bytes(path.read_bytes()[: end - 1])
    for verify in (True, False):
        with tenarc.open(path, torn=True, verify=verify) as archive:
            for call in (archive.digest, archive.segment(0).digest):
                with pytest.raises(tenarc.Torn):
                    call()
