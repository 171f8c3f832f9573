"""Parts a second time, from section 6 of SPEC.md alone, on what `archive.py` has of segments.

As there, nothing is a translation of the crate's code. `exchange.py` holds the two against each other.
"""

import io
from typing import NamedTuple

import cbor2

from archive import (
    HASHES,
    HEADER,
    MIB,
    Damaged,
    Input,
    check_chunks,
    chunk_hashes,
    hashed,
    header_fields,
    read_hashes,
    read_header,
    record,
)
from check import Mismatch
from compressed import Compressed
from heads import bytes_
from metadata import Encoder, Resolver


class Parts(NamedTuple):
    name: str | None
    alignment: int
    checked: bool
    chunk: int
    metadata: bytes  # of the value, inside that of the parts
    buffers: list[bytes]
    value: object


# Writing


def split(name, value, alignment=256, checked=True, chunk=MIB, **options):
    """The pieces of a value, in the order in which they are sent."""
    metadata, buffers = Encoder(**options).whole(value)
    return pieces(name, alignment, checked, chunk, metadata, buffers)


def pieces(name, alignment, checked, chunk, metadata, buffers):
    lengths = list(map(len, buffers))
    out = record(HEADER, header_fields(name, alignment, checked, chunk, metadata, lengths), 0)
    if buffers:
        hashes = chunk_hashes(buffers, checked, chunk)
        out += hashed(HASHES + bytes_(hashes), int.from_bytes(out[-8:], "big"))
    return [out, *buffers]


# Reading


def join(received):
    """The parts of pieces that were kept apart."""
    if not received:
        raise Damaged(0, "no pieces")
    first = Input(received[0])
    header, hashes = read_metadata(first)
    if first.at != first.end:
        raise Damaged(first.at, "something behind the metadata of the parts")
    buffers = [bytes(piece) for piece in received[1:]]
    if list(map(len, buffers)) != header.lengths:
        raise Damaged(0, f"buffers of {list(map(len, buffers))} bytes for {header.lengths}")
    return whole(header, hashes, buffers)


def read_from(stream: io.BufferedIOBase):
    """The parts that stand next in a stream; not a byte more is taken."""
    taken = Growing(stream)
    header, hashes = read_metadata(taken)
    buffers = [bytes(taken.take(length, "buffer")) for length in header.lengths]
    return whole(header, hashes, buffers)


class Growing(Input):
    """An input that takes from a stream what it is asked for."""

    def __init__(self, stream):
        # One that grows in place, as inputs over a part of it do not know this one.
        super().__init__(bytearray())
        self.stream = stream

    def take(self, length, what):
        missing = self.at + length - len(self.data)
        if missing > 0:
            self.data += self.stream.read(missing)
            self.end = len(self.data)
        return super().take(length, what)


def read_metadata(input):
    """The header, and the hashes of the chunks."""
    number, inner, seed = input.record()
    if number != HEADER:
        raise Damaged(0, "a record of an archive, not of parts")
    header = read_header(inner)
    if any(isinstance(size, Compressed) for size in header.lengths):
        raise Damaged(0, "parts with a compressed buffer")
    return header, read_hashes(header, seed, input) if header.lengths else b""


def whole(header, hashes, buffers):
    if header.checked:
        check_chunks(buffers, header.chunk, hashes, [0] * len(buffers))
    try:
        value = Resolver(buffers).whole(cbor2.loads(header.metadata))
    except (TypeError, ValueError, Mismatch, cbor2.CBORDecodeError) as error:
        raise Damaged(0, f"metadata: {error}") from error
    return Parts(*header[:4], header.metadata, buffers, value)
