"""Decompresses buffers, chunk by chunk (SPEC 5.11)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from . import codec, planes
from .chunks import Hashes, hashes_of
from .dtypes import Payload
from .errors import Damaged, Limit
from .planes import BadChunk, Decompress, Layout
from .segment import Header
from .threads import mapped


class _Chunk(NamedTuple):
    number: int
    #: Where its bytes are in the buffer.
    start: int
    end: int
    #: Where its stored bytes are in the archive.
    at: int
    behind: int


class Unpacker:
    """Decompresses one buffer of a segment, which is stored from position `at` on.

    `fetch` reads bytes of the archive, from one position to another. If there are `hashes`, each chunk is verified
    before it is decompressed.
    """

    def __init__(
        self, header: Header, number: int, at: int, fetch: Callable[[int, int], memoryview], hashes: Hashes | None
    ) -> None:
        packed = header.packed[number]
        self._decompress: Decompress = codec.decompressor(packed.codec, f"buffer {number} is compressed", at)
        layout = Layout.of_parameters(packed.parameters)
        assert layout is not None
        self._layout = layout
        self._header, self._number, self._at, self._fetch, self._hashes = header, number, at, fetch, hashes
        #: The length of the buffer.
        self.length = header.lengths[number]
        # Where each stored chunk starts in the stored buffer, and the end of the last one.
        self._starts = packed.starts

    def read(self, start: int, end: int) -> Payload:
        """The bytes of the buffer from `start` to `end`. Only the chunks with these bytes are read."""
        first, last = start // self._header.chunk_len, -(-end // self._header.chunk_len)
        base = first * self._header.chunk_len
        length = min(last * self._header.chunk_len, self.length) - base
        try:
            out = np.empty(max(length, 0), np.uint8)
        except (MemoryError, ValueError):
            text = f"there is no memory for {length} bytes of a compressed buffer"
            raise Limit(text, offset=self._at) from None

        def unpack(chunk: _Chunk, stored: memoryview) -> None:
            self._unpack(chunk, stored, out[chunk.start - base : chunk.end - base])

        with mapped(length) as (each, count):
            for number in range(first, last, count):
                chunks = list(self._chunks(number, min(number + count, last)))
                at = chunks[0].at
                stored = self._fetch(at, chunks[-1].behind)
                pieces = [stored[chunk.at - at : chunk.behind - at] for chunk in chunks]
                for _ in each(unpack, chunks, pieces):
                    pass
        # The array itself if all of it is wanted, so that it is known how long it is in use.
        return out if len(out) == end - start else out[start - base : end - base]

    def _chunks(self, first: int, last: int) -> Iterator[_Chunk]:
        size = self._header.chunk_len
        for index in range(first, last):
            start = index * size
            end = min(start + size, self.length)
            yield _Chunk(index, start, end, self._at + self._starts[index], self._at + self._starts[index + 1])

    def _unpack(self, chunk: _Chunk, stored: memoryview, out: Payload) -> None:
        if self._hashes is not None:
            found = hashes_of(stored, self._header.chunk_len)
            self._hashes.check_chunk(self._number, chunk.number, found, self._at)
        try:
            planes.decode(stored, out, self._layout, self._decompress)
        except BadChunk as fault:
            name = self._header.packed[self._number].codec
            what = f"chunk {chunk.number} of buffer {self._number}, which is its bytes {chunk.start}..{chunk.end},"
            text = f"{what} cannot be decompressed with {name}: {fault}"
            raise Damaged(text, offset=chunk.at + fault.at) from None
