"""Compressed buffers, as headers describe them (SPEC 5.11)."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from . import codec, items
from .chunks import count_of, lengths_of
from .items import UNSIGNED, Items
from .planes import WIDTHS, Layout

MAX_PARAMETERS = 16
_MAX_LENGTH = (1 << 63) - 1


@dataclass(frozen=True)
class Packed:
    """How a compressed buffer is stored."""

    #: The name of the codec, which need not be known.
    codec: str
    parameters: tuple[int, ...]
    #: The stored length of each chunk, as compact as in the header.
    stored: array[int]

    @property
    def stored_length(self) -> int:
        """The number of stored bytes."""
        return sum(self.stored)

    @cached_property
    def starts(self) -> array[int]:
        """Where each stored chunk starts, and the end of the last one. It is kept, as every slice needs it."""
        return array("Q", accumulate(self.stored, initial=0))

    @classmethod
    def read(cls, fields: Items, chunk_len: int) -> tuple[int, Packed]:
        """Reads what is in the array of a description.

        Also returns the length of the buffer after it was decompressed.
        """
        name = fields.name("the name of a codec")
        start = fields.at
        count = fields.count("parameters of a codec")
        if count > MAX_PARAMETERS:
            raise fields.damaged(f"expected at most {MAX_PARAMETERS} parameters of a codec, found {count}", start)
        parameters = tuple(fields.definite(UNSIGNED, "parameter of a codec") for _ in range(count))
        if codec.is_known(name) and Layout.of_parameters(parameters) is None:
            wanted = f"[width, rotated] with a width of {', '.join(map(str, WIDTHS))} and 0 or 1"
            found = f"expected the parameters {wanted} for the codec {name}, found {list(parameters)}"
            raise fields.damaged(found, start)
        start = fields.at
        length = fields.definite(UNSIGNED, "length of a compressed buffer")
        if not 1 <= length <= _MAX_LENGTH:
            raise fields.damaged(f"expected a compressed buffer of 1 to 2^63 - 1 bytes, found {length}", start)
        return length, cls(name, parameters, _stored_lengths(fields, length, chunk_len))

    def write(self, length: int) -> bytes:
        """Encodes the description of a buffer that has `length` bytes after it was decompressed."""
        parameters = items.array([items.head(UNSIGNED, parameter) for parameter in self.parameters])
        stored = items.array([items.head(UNSIGNED, stored) for stored in self.stored])
        return items.array([items.text(self.codec), parameters, items.head(UNSIGNED, length), stored])


def _stored_lengths(fields: Items, length: int, chunk_len: int) -> array[int]:
    start = fields.at
    # Each of them takes a byte at least, so there is memory only for what is there.
    count, wanted = fields.count("stored lengths"), count_of(length, chunk_len)
    if count != wanted:
        raise fields.damaged(f"expected the stored lengths of {wanted} chunks, found {count}", start)
    found = array("Q")
    for most in lengths_of(length, chunk_len):
        start = fields.at
        stored = fields.definite(UNSIGNED, "stored length")
        if not 1 <= stored <= most:
            raise fields.damaged(f"expected a stored chunk of 1 to {most} bytes, found {stored}", start)
        found.append(stored)
    return found
