"""The hashes of chunks (SPEC 5.2). Buffers are divided into chunks, so that a part of a buffer can be verified."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import xxhash

from .errors import Damaged

if TYPE_CHECKING:
    from .packed import Packed

#: The length of a hash.
HASH_LEN = 8
MIN_CHUNK, MAX_CHUNK = 1 << 16, 1 << 30
DEFAULT_CHUNK = 1 << 20


def is_chunk_len(number: int) -> bool:
    """Whether a number is a valid length of chunks."""
    return MIN_CHUNK <= number <= MAX_CHUNK and number & (number - 1) == 0


def expected_chunk_len(found: int) -> str:
    """The message for a number that is not a valid length of chunks."""
    return f"expected a length of chunks that is a power of two from {MIN_CHUNK} to {MAX_CHUNK}, found {found}"


def count_of(length: int, chunk_len: int) -> int:
    """The number of chunks of a buffer."""
    return -(-length // chunk_len)


def lengths_of(length: int, chunk_len: int) -> Iterator[int]:
    """The length of each chunk of a buffer."""
    return (min(chunk_len, length - start) for start in range(0, length, chunk_len))


def total_of(lengths: tuple[int, ...], chunk_len: int) -> int:
    """The number of chunks of all buffers."""
    if max(lengths, default=0) <= chunk_len:
        # A short cut, as thousands of small tensors are common.
        return len(lengths) - lengths.count(0)
    return sum(count_of(length, chunk_len) for length in lengths)


def hash_of_buffer(hashes: bytes) -> bytes:
    """The hash of a buffer, from the hashes of its chunks, one behind the other."""
    count = len(hashes) // HASH_LEN
    if count == 1:
        return hashes
    # For an empty buffer, this is the hash of no bytes, with seed 0.
    return xxhash.xxh3_64_digest(hashes, count)


class ChunkHasher:
    """Computes the hashes of the chunks of one buffer, whose bytes arrive in pieces."""

    def __init__(self, chunk_len: int, length: int, stored: Sequence[int] | None = None) -> None:
        """For a buffer of `length` bytes, or for a compressed one with these stored lengths of chunks."""
        self._lengths = lengths_of(length, chunk_len) if stored is None else iter(stored)
        # What is missing of the current chunk.
        self._left = next(self._lengths, 0)
        #: The hashes of the complete chunks, one behind the other.
        self.hashes = bytearray()
        # The chunk of which some bytes have arrived.
        self._current: xxhash.xxh3_64 | None = None

    def update(self, data: bytes | memoryview) -> None:
        """Takes the next bytes of the buffer."""
        view, at = memoryview(data), 0
        while at < len(view) and self._left:
            piece = view[at : at + self._left]
            at += len(piece)
            self._left -= len(piece)
            if self._current is None and not self._left:
                self.hashes += xxhash.xxh3_64_digest(piece)
            else:
                self._current = self._current or xxhash.xxh3_64()
                self._current.update(piece)
                if not self._left:
                    self.hashes += self._current.digest()
                    self._current = None
            if not self._left:
                self._left = next(self._lengths, 0)


def hashes_of(content: memoryview, chunk_len: int) -> bytes:
    """The hashes of the chunks of a buffer in memory, one behind the other."""
    if 0 < len(content) <= chunk_len:
        return xxhash.xxh3_64_digest(content)
    starts = range(0, len(content), chunk_len)
    return b"".join(xxhash.xxh3_64_digest(content[at : at + chunk_len]) for at in starts)


class Hashes:
    """The stored hashes of all chunks of several buffers. They stay as compact as they are stored."""

    def __init__(
        self,
        content: bytes,
        lengths: tuple[int, ...],
        packed: Mapping[int, Packed],
        chunk_len: int,
        source: str,
        hash_len: int = HASH_LEN,
    ) -> None:
        """For hashes, one behind the other, of buffers with these lengths, some of which are compressed.

        Errors say that `source` has them. Only hashes of this package can be checked. Others may have another
        length.
        """
        self.content = content
        self._lengths, self._packed, self._chunk_len, self._source = lengths, packed, chunk_len, source
        counts = (count_of(length, chunk_len) for length in lengths)
        # Where the hashes of each buffer begin, and the end of the last ones.
        self._starts = [hash_len * count for count in accumulate(counts, initial=0)]

    def of_chunks(self, number: int) -> bytes:
        """The hashes of the chunks of a buffer."""
        return self.content[self._starts[number] : self._starts[number + 1]]

    def of_buffers(self) -> list[bytes]:
        """The hash of each buffer."""
        return [hash_of_buffer(self.of_chunks(number)) for number in range(len(self._lengths))]

    def check(self, number: int, found: bytes | bytearray, at: int | None) -> None:
        """Compares the hashes of the chunks of a buffer, which starts at `at`, with the stored ones."""
        stored = self.of_chunks(number)
        if found == stored:
            return
        # The first chunk that is wrong.
        starts = range(0, len(stored), HASH_LEN)
        start = next(
            start for start in starts if found[start : start + HASH_LEN] != stored[start : start + HASH_LEN]
        )
        behind = start + HASH_LEN
        raise self._wrong(number, start // HASH_LEN, found[start:behind], stored[start:behind], at)

    def check_chunk(self, number: int, index: int, found: bytes, at: int | None) -> None:
        """Compares the hash of a chunk of a buffer, which starts at `at`, with the stored one."""
        start = self._starts[number] + HASH_LEN * index
        stored = self.content[start : start + HASH_LEN]
        if found != stored:
            raise self._wrong(number, index, found, stored, at)

    def _wrong(self, number: int, index: int, found: bytes | bytearray, stored: bytes, at: int | None) -> Damaged:
        start = index * self._chunk_len
        end = min(start + self._chunk_len, self._lengths[number])
        what = f"buffer {number}"
        if self._lengths[number] > self._chunk_len:
            what = f"chunk {index} of buffer {number}, which is its bytes {start}..{end},"
        packed = self._packed.get(number)
        if packed is not None:
            what = f"{what.removesuffix(',')}, compressed with {packed.codec!r},"
            start = sum(packed.stored[:index])
        text = f"checksum of {what} is {found.hex()}, {self._source} says {stored.hex()}"
        return Damaged(text, offset=None if at is None else at + start)
