"""Reads archives from start to end: streams, and files that are verified (SPEC 5.5, 5.8)."""

from __future__ import annotations

import io
import os
import stat
from functools import cached_property
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from . import paths
from .decode import value_of
from .directory import MAGIC, TAIL_LEN, Directory, Entry
from .dtypes import Payload
from .errors import Damaged, Error, Limit, Torn, Version, bounded_recursion
from .options import Limits
from .segment import (
    END,
    HASH_ITEM,
    HEADER,
    Header,
    expect,
    opened,
    read_hash_list,
    record_length,
)
from .source import STEP, Each, Source, SourceFile
from .tree import parse
from .unpack import Unpacker

# At most this much memory is allocated before the bytes are received; for a regular file, at most its length.
_AHEAD = 64 << 20


class Input:
    """Reads bytes from a file object, and counts its position."""

    def __init__(self, file: BinaryIO | io.RawIOBase, at: int = 0) -> None:
        self._file = file
        self._readinto = getattr(file, "readinto", None)
        self._peeked = b""
        #: The position of the next byte in the archive.
        self.at = at
        self.ahead = max(_AHEAD, _size_of(file))

    def is_at_end(self) -> bool:
        if not self._peeked:
            self._peeked = self._file.read(1)
            if self._peeked is None:
                raise _would_block()
        return not self._peeked

    def take(self, length: int, what: str) -> bytes:
        """Reads `length` bytes. Memory grows with what is received."""
        if not self._peeked and 0 < length <= STEP:
            # Nearly always, one read gives all of them.
            piece = self._file.read(length)
            if type(piece) is bytes and len(piece) == length:
                self.at += length
                return piece
            self._peeked = self._piece(piece, length)
            if not self._peeked:
                raise Torn(f"{what}: the stream ends, {length} bytes are missing", offset=self.at)
        pieces, missing = [self._peeked[:length]], length - len(self._peeked[:length])
        self._peeked = self._peeked[length:]
        while missing:
            wanted = min(missing, STEP)
            piece = self._piece(self._file.read(wanted), wanted)
            if not piece:
                there = self.at + length - missing
                raise Torn(f"{what}: the stream ends, {missing} bytes are missing", offset=there)
            pieces.append(piece)
            missing -= len(piece)
        self.at += length
        return b"".join(pieces)

    def _piece(self, piece: Any, wanted: int) -> bytes:
        """Checks what a file has returned."""
        if piece is None:
            raise _would_block()
        if isinstance(piece, str):
            raise TypeError("expected a file in binary mode, found one in text mode")
        if len(piece) > wanted:
            raise OSError("the stream returned more bytes than requested")
        return bytes(piece)

    def fill(self, out: memoryview, what: str, each: Each) -> None:
        """Fills memory, and calls `each` with each piece that was read."""
        done = 0
        while done < len(out):
            piece = out[done : done + STEP]
            if self._readinto is None or self._peeked:
                content = self.take(len(piece), what)
                piece[:] = content
                count = len(content)
            else:
                count = self._readinto(piece)
                if count is None:
                    raise _would_block()
                if not count:
                    missing = len(out) - done
                    text = f"{what}: the stream ends, {missing} bytes are missing"
                    raise Torn(text, offset=self.at)
                self.at += count
            each(out[done : done + count])
            done += count

    def receive(self, length: int, what: str, each: Each) -> Payload:
        """Reads `length` bytes into new memory, which grows with what is received. They are passed to `each`."""
        out: Payload = np.empty(min(length, self.ahead), np.uint8)
        self.fill(out.data, what, each)
        while out.nbytes < length:
            done = out.nbytes
            longer: Payload = np.empty(min(length, 2 * done), np.uint8)
            longer[:done] = out
            out = longer
            self.fill(out.data[done:], what, each)
        return out

    def skip(self, length: int, what: str, each: Each) -> None:
        """Skips `length` bytes, but passes them to `each`."""
        scratch = memoryview(bytearray(min(length, STEP)))
        while length:
            piece = scratch[: min(length, STEP)]
            self.fill(piece, what, each)
            length -= len(piece)


def _would_block() -> BlockingIOError:
    return BlockingIOError("the stream is non-blocking and has no data now")


def _size_of(file: BinaryIO | io.RawIOBase) -> int:
    """The length of a regular file; 0 for others."""
    try:
        found = os.fstat(file.fileno())
    except (AttributeError, OSError):
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def read_body(file: Input, header: Header, seed: bytes, keep: list[Payload] | None, limits: Limits) -> None:
    """Reads and checks what follows the header of a segment with buffers.

    Adds the buffers to `keep`, if given: compressed ones as they are stored.
    """
    at = file.at
    before = header.before_body(at)
    expect(file.take(len(before), "padding"), before, at, "the padding before the body")
    base, hashes, places = file.at, list[bytearray](), header.places()
    header.check_hashes_length(limits, base + header.body_length())
    for number, (place, length) in enumerate(zip(places, header.stored_lengths, strict=True)):
        at = file.at
        gap = bytes(base + place - at)
        expect(file.take(len(gap), "padding"), gap, at, "the padding between buffers")
        hasher = header.hasher(number)
        each: Each = hasher.update if header.checksums else _unread
        if keep is None:
            file.skip(length, f"buffer {number}", each)
        else:
            keep.append(file.receive(length, f"buffer {number}", each))
        hashes.append(hasher.hashes)
    at = file.at
    found = file.take(header.hashes_length(), "list of hashes")
    stored = read_hash_list(found, header, seed, at)
    if stored is None:
        return
    for number, computed in enumerate(hashes):
        try:
            stored.check(number, computed, base + places[number])
        except Damaged as error:
            error.path = _path_to(header, number, limits)
            raise


def _path_to(header: Header, number: int, limits: Limits) -> str | None:
    """The path of what is in a buffer, for an error; `None` if there is nothing with a path.

    The path of columns is that of their sequence.
    """
    try:
        with bounded_recursion():
            return paths.to_buffer(parse(header.metadata, 0, limits), number)
    except Error:
        return None


def _unread(_: memoryview) -> None:
    """Takes bytes that are not hashed."""


class _Next(NamedTuple):
    """A segment whose header has been read."""

    header: Header
    metadata_at: int
    seed: bytes
    offset: int


class Walk:
    """Reads an archive record by record, and checks everything that has only one valid encoding."""

    def __init__(self, file: BinaryIO | io.RawIOBase, limits: Limits) -> None:
        self.input = Input(file)
        self.limits = limits
        self._directory = Directory()
        self._ended = False
        self._next: _Next | None = None
        self._read_magic()

    @property
    def count(self) -> int:
        """The number of complete segments so far."""
        return self._directory.count

    @property
    def offset(self) -> int | None:
        """The position of the segment whose header has been read but not its body; `None` if there is none."""
        return None if self._next is None else self._next.offset

    def _read_magic(self) -> None:
        for at, byte in enumerate(MAGIC):
            if self.input.take(1, "magic")[0] != byte:
                raise Damaged("not a tenarc archive: it starts with other bytes", offset=at)

    def header(self) -> Header | None:
        """The header of the next segment; `None` at the end of the archive."""
        while self._next is None:
            if self.input.is_at_end():
                if self._ended:
                    return None
                text = f"the archive has no end mark after its {self.count} segments"
                raise Torn(text, offset=self.input.at)
            self._read_record()
        return self._next.header

    def _read_record(self) -> None:
        at = self.input.at
        item = self.input.take(3, "record")
        width = {24: 1, 25: 2, 26: 4, 27: 8}.get(item[2] & 31, 0)
        item += self.input.take(width, "record")
        _, total = record_length(item, at)
        if total > self.limits.longest:
            raise Limit(f"a record of {total} bytes, more than the limit of {self.limits.longest}", offset=at)
        item += self.input.take(total - len(item), "record")
        kind, fields = opened(item, at)
        if kind == HEADER:
            header, metadata_at = Header.read(fields)
            self._next = _Next(header, metadata_at, item[1 - HASH_ITEM :], at)
            self._ended = False
        elif kind == END:
            wanted = self._directory.end(at)
            item += self.input.take(TAIL_LEN, "tail")
            expect(item, wanted, at, "the end mark with its tail")
            self._ended = True
        else:
            raise Damaged("expected a segment or an end mark, found a block of the directory", offset=at)

    def body(self, keep: bool) -> Body:
        """Reads the rest of the segment whose header was read last, and checks its hashes."""
        assert self._next is not None
        header, metadata_at, seed, at = self._next
        body = Body(header, metadata_at, self.limits)
        body.at = self.input.at
        if header.lengths:
            limit = self.limits.longest
            if keep and header.body_length() > limit:
                text = f"buffers of {header.body_length()} bytes, more than the limit of {limit}"
                raise Limit(text, offset=at)
            payloads = body.payloads if keep else None
            read_body(self.input, header, seed, payloads, self.limits)
        blocks = self._directory.add(at, header.name, self.input.at)
        if blocks:
            start = self.input.at
            expect(self.input.take(len(blocks), "block"), blocks, start, "the block of the directory")
        self._next = None
        packed = header.packed_length()
        body.input = self.input.at - at - packed, packed
        return body


class Body:
    """The metadata and the buffers of a segment that was read."""

    def __init__(self, header: Header, metadata_at: int, limits: Limits) -> None:
        self.header = header
        self.metadata_at = metadata_at
        self.limits = limits
        #: The buffers as they are stored. Their hashes are checked.
        self.payloads: list[Payload] = []
        #: The end of the header's record.
        self.at = 0
        #: The bytes of the segment: those of compressed buffers are the second number.
        self.input = 0, 0

    @cached_property
    def _places(self) -> list[int]:
        """The position of each buffer."""
        base = self.at + len(self.header.before_body(self.at))
        return [base + place for place in self.header.places()]

    def payload(self, number: int, owned: bool) -> Payload:
        stored = self.payloads[number]
        if number not in self.header.packed:
            return stored
        at = self._places[number]
        try:
            unpacker = Unpacker(
                self.header, number, at, lambda start, end: stored.data[start - at : end - at], None
            )
            return unpacker.read(0, unpacker.length)
        except (Damaged, Version) as error:
            error.path = _path_to(self.header, number, self.limits)
            raise

    def value(self, *, tables: bool, numbers: bool) -> Any:
        """Decodes the value."""
        return self._resolve(elements=True, tables=tables, numbers=numbers)

    def check(self) -> None:
        """Checks the metadata, without the buffers."""
        self._resolve(elements=False)

    def _resolve(self, *, elements: bool, tables: bool = False, numbers: bool = True) -> Any:
        metadata, at, limits = self.header.metadata, self.metadata_at, self.limits
        return value_of(
            metadata, at, self, owned=True, limits=limits, elements=elements, tables=tables, numbers=numbers
        )


def verify(source: Source, limits: Limits) -> list[Entry]:
    """Checks a whole archive, and returns the offset and name of each segment."""
    walk = Walk(SourceFile(source), limits)
    found: list[Entry] = []
    while (header := walk.header()) is not None:
        offset = walk.offset
        assert offset is not None
        walk.body(keep=False).check()
        found.append((offset, header.name))
    return found
