"""Hostile input must give an error quickly and in little memory."""

import io
import random
import resource
import time

import numpy as np
import pytest
import test_calls
from by_hand import ended
from described import write_manifest

import tenarc
from tenarc import items
from tenarc.chunks import MIN_CHUNK
from tenarc.directory import MAGIC, Directory, Entry, Link
from tenarc.segment import RECORD, Header, digest, hash_list, hashed, record_length


def peak() -> int:
    """The peak memory of the process, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.parametrize("inner", ["81", "a100", "9f", "bf00", "c1", "d828", "da54534f4d", "5f", "a181", "d82882"])
@pytest.mark.parametrize("close", ["", "00" * 10])
def test_deep_input_is_refused_at_once(inner, close):
    start = time.monotonic()
    for levels in (129, 5_000, 1_000_000):
        with pytest.raises(tenarc.Error):
            tenarc.loads(bytes.fromhex(inner * levels + close))
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("major", ["5b", "7b", "9b", "bb"])
@pytest.mark.parametrize("claim", ["0000010000000000", "7fffffffffffffff", "ffffffffffffffff"])
def test_claims_allocate_nothing(major, claim):
    before = peak()
    for around in ("", "d855", "d82882810a d855", "82 00"):
        with pytest.raises(tenarc.Error):
            tenarc.loads(bytes.fromhex(around + major + claim) + bytes(100))
    assert peak() - before < 50 << 20


def archive_with(lengths, metadata=b"\xf6", behind=b"", checksums=False) -> bytes:
    """The start of an archive whose segment announces buffers that do not follow."""
    header = Header(None, 8, checksums, MIN_CHUNK, lengths, metadata)
    start = MAGIC + header.write(len(MAGIC))
    return start + header.before_body(len(start)) + behind


@pytest.mark.parametrize("length", [1 << 33, 1 << 40, 1 << 62])
def test_a_stream_that_announces_much_is_read_in_little_memory(length):
    before = peak()
    data = archive_with((length,), behind=bytes(1000))
    with pytest.raises((tenarc.Torn, tenarc.Limit)):
        tenarc.Reader(io.BytesIO(data)).load()
    with pytest.raises(tenarc.Torn):
        tenarc.Reader(io.BytesIO(data)).skip()
    assert peak() - before < 100 << 20


def test_a_record_that_announces_much_is_read_in_little_memory():
    before = peak()
    for claim in ("5b0000000200000000", "5b0000010000000000", "5bffffffffffffffff"):
        data = MAGIC + bytes.fromhex("d818" + claim) + bytes(1000)
        with pytest.raises((tenarc.Torn, tenarc.Limit)):
            tenarc.Reader(io.BytesIO(data)).load()
    assert peak() - before < 50 << 20


def test_lengths_beyond_all_positions_are_refused():
    with pytest.raises(tenarc.Damaged, match="2\\^63"):
        tenarc.Reader(io.BytesIO(MAGIC + Header(None, 8, False, MIN_CHUNK, (1 << 63,), b"\xf6").write(12))).load()


def test_copies_of_one_buffer_are_bounded(tmp_path):
    array = np.zeros(1 << 20, "u1")
    tenarc.save(tmp_path / "a", [array] * 100, dedup=True)
    assert (tmp_path / "a").stat().st_size < 2 << 20
    limits = tenarc.Limits(max_alloc=10 << 20)
    with pytest.raises(tenarc.Limit):
        tenarc.load(tmp_path / "a", limits=limits)
    assert len(tenarc.load(tmp_path / "a")) == 100
    with tenarc.open(tmp_path / "a", limits=limits) as archive:
        assert len(archive.view()) == 100
    # By default, 64 MiB and 64 times the buffer, as in Rust.
    tenarc.save(tmp_path / "b", [array] * 132, dedup=True)
    with pytest.raises(tenarc.Limit, match="more memory than the limit"):
        tenarc.load(tmp_path / "b")
    stream = io.BytesIO((tmp_path / "b").read_bytes())
    with pytest.raises(tenarc.Limit, match="more memory than the limit"):
        tenarc.Reader(stream).load()
    for limit in (1 << 30, 16 << 30):
        assert len(tenarc.load(tmp_path / "b", limits=tenarc.Limits(max_alloc=limit))) == 132


def test_limits_are_the_callers():
    message = tenarc.dumps([[[np.zeros((1, 1, 1))]]])
    with pytest.raises(tenarc.Limit):
        tenarc.loads(message, limits=tenarc.Limits(max_depth=5))
    with pytest.raises(tenarc.Limit):
        tenarc.loads(message, limits=tenarc.Limits(max_rank=2))
    tenarc.loads(message, limits=tenarc.Limits(max_depth=6, max_rank=3))


def test_what_is_next_to_a_dimension_of_zero_may_be_large():
    assert tenarc.loads(bytes.fromhex("d828 82 82 00 1b1fffffffffffffff d840 40")).shape == (0, 2**61 - 1)


def test_many_shallow_siblings_are_no_depth():
    value = tenarc.loads(bytes.fromhex("9a000186a0") + b"\x81\x00" * 100_000)
    assert len(value) == 100_000


def test_every_cut_of_a_message_is_torn():
    value = {"a": np.arange(6, dtype="f4").reshape(2, 3), "b": [2**70, "text", None, tenarc.Some(None), b"bytes"]}
    message = tenarc.dumps(value)
    for length in range(len(message)):
        with pytest.raises(tenarc.Torn):
            tenarc.loads(message[:length])


def test_errors_say_where():
    message = tenarc.dumps({"layers": [{"bias": 1}, {"bias": np.ones(2, bool)}]})
    with pytest.raises(tenarc.Damaged) as caught:
        tenarc.loads(message[:-1] + b"\2")
    error = caught.value
    assert error.path == "layers.1.bias" and "bool 1 is 2" in str(error)
    assert message[error.offset :].startswith(bytes.fromhex("da54454e53"))
    with pytest.raises(tenarc.Error) as caught:
        tenarc.loads(bytes.fromhex("83 01 62c328 02"))
    assert caught.value.offset == 3


def test_a_hostile_directory_does_not_send_readers_in_circles(example, tmp_path):
    path = tmp_path / "a"
    # An end mark that refers to a block at its own position, at the magic, or at a segment.
    for offset in (124, 0, 12, 1 << 62, 123):
        directory = Directory(64, [], [[Link(offset, 64)]])
        path.write_bytes(example[:124] + directory.end(124))
        with pytest.raises(tenarc.Error):
            tenarc.load(path)
        with pytest.raises(tenarc.Error), tenarc.open(path) as archive:
            archive.names()
        with pytest.raises(tenarc.Error), tenarc.open(path) as archive:
            archive.segment(5)


def test_a_directory_has_room_for_its_segments():
    # The shortest segment: no name, no buffers, and a metadata item of one byte.
    assert len(Header(None, 8, False, MIN_CHUNK, (), b"\xf6").write(12)) == 30
    for count in (1, 2, 63):
        at = 12 + 30 * count
        directory = Directory(count, [Entry(12 + number, None, 30) for number in range(count)])
        assert Directory.read(directory.mark(at), at).count == count
        with pytest.raises(tenarc.Damaged, match="do not fit"):
            Directory.read(directory.mark(at - 1), at - 1)


def test_random_changes_of_messages_raise_nothing_else():
    dice = random.Random(2)
    value = {
        "a": np.arange(6, dtype="f4").reshape(2, 3),
        "b": [1, None, "x", tenarc.Some(None)],
        "c": {2**70: b"y"},
    }
    messages = [tenarc.dumps(value), tenarc.dumps([np.zeros((2, 2), "c8"), np.ones(3, bool), np.zeros((0, 2))])]
    for _ in range(20_000):
        changed = bytearray(dice.choice(messages))
        for _ in range(dice.choice((1, 1, 2, 3))):
            at = dice.randrange(len(changed))
            if dice.random() < 0.7:
                changed[at] = dice.randrange(256)
            else:
                changed[at : at + dice.randrange(3)] = dice.randbytes(dice.randrange(3))
        try:
            found = tenarc.loads(bytes(changed))
        except tenarc.Error:
            continue
        tenarc.dumps(found)


TBUF = bytes.fromhex("da54425546")


def tensor(shape: bytes = b"\x81\2", number: bytes = b"\0") -> bytes:
    return TBUF + b"\x84\x63f32" + shape + b"\x61C" + number


#: References to two buffers of 8 bytes.
POOL = [
    tensor(),
    tensor(b"\x82\1\2", b"\1"),
    TBUF + b"\x81\0",
    TBUF + b"\x82\x63f32\1",
    b"\xa1" + TBUF + b"\x81\0" + tensor(number=b"\1"),
    b"\x82" + tensor() + tensor(number=b"\1"),
]


def changed(dice: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(dice.choice((0, 1, 1, 2))):
        at, kind = dice.randrange(min(len(out), 60)), dice.random()
        if kind < 0.5:
            out[at] = dice.choice((dice.randrange(256), 0xFF, 0x9F, 0x5F, 0xF6, out[at] ^ 1 << dice.randrange(8)))
        elif kind < 0.65:
            del out[at]
        else:
            out[at:at] = dice.choice((b"\xc1", b"\x18", b"\0", b"\xf6", TBUF, b"\xff", dice.choice(POOL)))
    return bytes(out)


def forged(dice: random.Random) -> bytes:
    """An archive whose header or metadata is changed, with correct hashes."""
    first, second = dice.choice(POOL), dice.choice(POOL)
    metadata = dice.choice((b"\x82" + first + second, b"\xa2\x61a" + first + b"\x61b" + second, first, POOL[-1]))
    header = Header(dice.choice((None, "n")), 8, True, MIN_CHUNK, (8, 8), changed(dice, metadata))
    item = header.write(len(MAGIC))
    if dice.random() < 0.4:
        start, _ = record_length(item[:11], len(MAGIC))
        item = hashed(RECORD + items.byte_string(changed(dice, item[start:-9])), len(MAGIC))
    out = MAGIC + item
    out += header.before_body(len(out)) + b"\0\0\0?\0\0\x80\xbf" + b"12345678"
    out += hash_list(digest(out[-16:-8]) + digest(out[-8:]), item[-8:])
    return ended(out, header.name)


def test_both_libraries_judge_forged_archives_alike(rust, tmp_path):
    dice, judged = random.Random(5), {}
    for number in range(1000):
        path = tmp_path / f"a{number}"
        path.write_bytes(forged(dice))
        try:
            with tenarc.open(path) as archive:
                archive.verify()
            judged[path.name] = True
        except tenarc.Error:
            judged[path.name] = False
    assert sum(judged.values()) > 100
    value = {"name": None, "value": {"t": "null"}, "buffers": [8, 8]}
    archives = [{"file": name, "alignment": 8, "ends": [1], "values": [value]} for name in judged]
    write_manifest(tmp_path, {"writer": "Python", "archives": archives})
    lines = rust.failed("load", tmp_path)
    refused = {line.split(",")[0].removeprefix("FAILED ") for line in lines if ", verified: " in line}
    assert {name for name, whole in judged.items() if not whole} == refused


def test_names_from_the_input_do_not_reach_the_terminal():
    message = tenarc.dumps({"a\x1b[31m\n\u202eb": "text", "ü水": 1})
    with pytest.raises(tenarc.Mismatch) as caught:
        tenarc.loads(message, cls=dict[str, int])
    assert str(caught.value).isprintable() and r"a\x1b[31m\n\u202eb" in str(caught.value)
    with pytest.raises(tenarc.Mismatch, match="ü水"):
        tenarc.loads(message, cls=dict[str, str])


def test_a_record_as_long_as_a_sparse_file_is_a_limit(tmp_path):
    with (tmp_path / "a").open("wb") as file:
        file.write(MAGIC + bytes.fromhex("d818 5b 0000 0010 0000 0000"))
        file.truncate(1 << 37)
    before = peak()
    for call in (tenarc.open, tenarc.load, tenarc.recover, lambda p: tenarc.open(p, torn=True)):
        with pytest.raises(tenarc.Limit, match="a record of"):
            call(tmp_path / "a")
    assert peak() - before < 50 << 20


def test_more_levels_than_can_be_read_are_no_limit():
    with pytest.raises(tenarc.Unsupported):
        tenarc.Limits(max_depth=1001)
    for unit in (b"\x81", b"\xa1\x00", b"\xc1", b"\xda\x54\x53\x4f\x4d"):
        for levels in (999, 100_000):
            with pytest.raises(tenarc.Limit):
                tenarc.loads(unit * levels + b"\xf6", limits=tenarc.Limits(max_depth=1000))


def test_sequences_of_complex_numbers_are_not_in_buffers(tmp_path):
    numbers = np.arange(5000, dtype="c8").view(tenarc.Numbers)
    tenarc.save(tmp_path / "a", numbers)
    with tenarc.open(tmp_path / "a") as archive:
        assert archive.segment(0).buffers == []
        assert np.array_equal(archive.load(), numbers)
    for dtype in ("c64", "c128", "bool", "bf16", "f128"):
        (tmp_path / "a").write_bytes(
            test_calls.forged(tenarc.Tag(test_calls.TBUF, [dtype, 0]), test_calls.zeros(32))
        )
        with tenarc.open(tmp_path / "a") as archive:
            for read in (archive.load, archive.view, archive.verify):
                with pytest.raises(tenarc.Damaged, match=f"8 to 64 bits in a buffer, found one of {dtype}"):
                    read()
