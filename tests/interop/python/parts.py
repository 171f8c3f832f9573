"""Parts a second time, from section 6 of SPEC.md alone, on what `archive.py` has of segments.

As there, nothing is a translation of the crate's code. `exchange.py` holds the two against each other.
"""

import io
from typing import NamedTuple

import cbor2

from archive import (
    HASHES,
    HEADER,
    Damaged,
    Input,
    hash_of,
    hashed,
    header_fields,
    read_header,
    record,
)
from check import Mismatch
from heads import bytes_
from metadata import Encoder, Resolver


class Parts(NamedTuple):
    name: str | None
    alignment: int
    checked: bool
    item: bytes  # the value's metadata, inside that of the parts
    buffers: list[bytes]
    value: object


# Writing


def split(name, value, alignment=256, checked=True, **options):
    """The pieces of a value, in the order in which they are sent."""
    item, buffers = Encoder(**options).whole(value)
    return pieces(name, alignment, checked, item, buffers)


def pieces(name, alignment, checked, item, buffers):
    out = record(HEADER, header_fields(name, alignment, checked, item, buffers), 0)
    if buffers:
        hashes = b"".join(hash_of(content) for content in buffers if checked)
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
    """The header, and the hashes of the buffers or None."""
    number, inner, seed = input.record()
    if number != HEADER:
        raise Damaged(0, "a record of an archive, not of parts")
    header = read_header(inner)
    if not header.lengths:
        return header, None
    size = 8 * len(header.lengths) * header.checked
    place = input.at
    # With the head of the byte string, which follows from the number of buffers.
    head = HASHES + bytes_(bytes(size))[: -size or None]
    input.expect(head, "list of hashes")
    hashes = bytes(input.take(size, "list of hashes"))
    input.expect(bytes_(hash_of(head + hashes, int.from_bytes(seed, "big"))), "hash of hashes")
    if not header.checked:
        return header, None
    return header, [hashes[at : at + 8] for at in range(0, size, 8)]


def whole(header, hashes, buffers):
    for number, wanted in enumerate(hashes or []):
        if hash_of(buffers[number]) != wanted:
            raise Damaged(0, f"buffer {number}: changed")
    try:
        value = Resolver(buffers).whole(cbor2.loads(header.metadata))
    except (TypeError, ValueError, Mismatch, cbor2.CBORDecodeError) as error:
        raise Damaged(0, f"metadata: {error}") from error
    return Parts(header.name, header.alignment, header.checked, header.metadata, buffers, value)
