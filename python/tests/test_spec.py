"""The worked examples of SPEC.md, byte for byte."""

import io
import itertools

import numpy as np
import pytest
from conftest import worked_examples

import tenarc

BIAS = np.array([0.5, -1.0], "f4")
VALUE = {"name": "two", "bias": BIAS}


def test_writing_gives_the_archive_of_5_9(example):
    out = io.BytesIO()
    with tenarc.Writer(out, alignment=32, inline_below=0) as writer:
        writer.save(VALUE, name="layer")
    assert out.getvalue() == example


def test_saving_gives_the_archive_of_5_9(example, tmp_path):
    tenarc.save(tmp_path / "a", VALUE, name="layer", alignment=32, inline_below=0)
    assert (tmp_path / "a").read_bytes() == example


def test_the_archive_of_5_9_is_read_in_every_way(example, tmp_path):
    path = tmp_path / "a"
    path.write_bytes(example)
    (streamed,) = tenarc.Reader(io.BytesIO(example))
    with tenarc.open(path) as archive:
        archive.verify()
        assert archive.names() == ["layer"]
        assert archive.segment(0).buffers == [(96, 8)]
        assert archive["name"] == "two"
        for value in (streamed, tenarc.load(path), archive.view(), archive.load()):
            assert list(value) == ["name", "bias"] and value["name"] == "two"
            assert value["bias"].dtype == np.float32 and np.array_equal(value["bias"], BIAS)


def test_splitting_gives_the_parts_of_6():
    parts = tenarc.to_parts(VALUE, name="layer", alignment=32, inline_below=0)
    assert parts.metadata == worked_examples()[1]
    assert [bytes(buffer).hex() for buffer in parts.buffers] == ["0000003f000080bf"]
    value = tenarc.from_parts(parts.metadata, parts.buffers)
    assert np.array_equal(value["bias"], BIAS)


def test_the_message_of_2_1():
    message = bytes.fromhex("d828 82 820203 d845 4c010002000300040005000600")
    values = np.arange(1, 7, dtype="u2").reshape(2, 3)
    assert tenarc.dumps(values) == message
    assert np.array_equal(tenarc.loads(message), values)


def test_the_options_of_1_1():
    some = "da54534f4d"
    for value, digits in (
        (None, "f6"),
        (tenarc.Some(5), "05"),
        (tenarc.Some(None), some + "f6"),
        (tenarc.Some(tenarc.Some(None)), some + some + "f6"),
    ):
        assert tenarc.dumps(value).hex() == digits
        back = tenarc.loads(bytes.fromhex(digits))
        assert back == (5 if digits == "05" else value)


def refusals(data: bytes, path) -> list[str]:
    """The readers that accept input which they should refuse."""
    path.write_bytes(data)
    taken = []
    try:
        with tenarc.open(path) as archive:
            archive.verify()
        taken.append("verify")
    except tenarc.Error:
        pass
    try:
        list(tenarc.Reader(io.BytesIO(data)))
        taken.append("Reader")
    except tenarc.Error:
        pass
    return taken


def test_every_changed_bit_is_refused(example, tmp_path):
    for bit in range(len(example) * 8):
        changed = bytearray(example)
        changed[bit // 8] ^= 1 << bit % 8
        assert refusals(bytes(changed), tmp_path / "a") == [], f"bit {bit}"


def test_every_cut_is_refused(example, tmp_path):
    for length in range(len(example)):
        cut = example[:length]
        assert refusals(cut, tmp_path / "a") == [], f"cut to {length}"
        with pytest.raises(tenarc.Torn):
            list(tenarc.Reader(io.BytesIO(cut)))


def test_bytes_behind_the_tail_are_unfinished(example, tmp_path):
    for more in (b"\0", b"\xf6", example, example[12:124]):
        # They are not part of the archive, so verification succeeds without them. A stream has no such bytes.
        assert refusals(example + more, tmp_path / "a") == ["verify"]
        with tenarc.open(tmp_path / "a") as archive:
            assert archive.unfinished_bytes == len(more)


def test_every_changed_bit_of_parts_is_refused():
    parts = tenarc.to_parts(VALUE, alignment=32, inline_below=0)
    pieces = [parts.metadata, *map(bytes, parts.buffers)]
    for number, piece in enumerate(pieces):
        for byte, bit in itertools.product(range(len(piece)), range(8)):
            changed = bytearray(piece)
            changed[byte] ^= 1 << bit
            metadata, *buffers = [*pieces[:number], bytes(changed), *pieces[number + 1 :]]
            with pytest.raises(tenarc.Error):
                tenarc.from_parts(metadata, buffers)
