"""Buffers whose bytes are not in the archive, as headers describe them (SPEC 5.12)."""

from __future__ import annotations

from dataclasses import dataclass

from . import items
from .errors import Unsupported
from .items import BYTES, UNSIGNED, Items

_MAX_LENGTH = (1 << 63) - 1
_MIN_DIGEST, _MAX_DIGEST = 8, 64


@dataclass(frozen=True)
class Elsewhere:
    """What names a buffer that is not in the archive."""

    #: The name of a hash function, such as `sha-256`.
    hash_name: str
    #: The hash of the buffer's bytes.
    digest: bytes

    @classmethod
    def read(cls, fields: Items) -> tuple[int, Elsewhere]:
        """Reads what is in the array of a description. Also returns the length of the buffer."""
        start = fields.at
        length = fields.definite(UNSIGNED, "length of a buffer elsewhere")
        if not 1 <= length <= _MAX_LENGTH:
            raise fields.damaged(f"expected a buffer elsewhere of 1 to 2^63 - 1 bytes, found {length}", start)
        name = fields.name("the name of a hash function")
        start = fields.at
        count = fields.definite(BYTES, "digest of a buffer")
        if not _MIN_DIGEST <= count <= _MAX_DIGEST:
            wanted = f"a digest of {_MIN_DIGEST} to {_MAX_DIGEST} bytes"
            raise fields.damaged(f"expected {wanted} for a buffer elsewhere, found {count}", start)
        return length, cls(name, fields.take(count, "digest of a buffer"))

    def write(self, length: int) -> bytes:
        """Encodes the description of a buffer of `length` bytes."""
        digest = items.byte_string(self.digest)
        return items.array([items.head(UNSIGNED, length), items.text(self.hash_name), digest])

    def error(self, number: int) -> Unsupported:
        """The error if the bytes of the buffer with this number are asked for."""
        what = f"buffer {number} is not in the archive: it is the bytes with the {self.hash_name} digest"
        return Unsupported(f"{what} {self.digest.hex()}")
