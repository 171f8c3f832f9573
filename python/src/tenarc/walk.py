"""Archives from their front: any stream, and to verify a file (SPEC 5.5, 5.8)."""

from __future__ import annotations

import io
import os
import stat
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import xxhash

from .decode import value_of
from .directory import MAGIC, TAIL_LEN, Directory, Entry
from .dtypes import Payload
from .errors import Damaged, Limit, Torn
from .options import Limits
from .segment import (
    END,
    HASH_ITEM,
    HEADER,
    Header,
    check_buffer,
    expect,
    opened,
    read_hash_list,
    record_length,
)
from .source import CHUNK, Source, SourceFile

# Memory for so much is asked for before it is received; of a file, for as much as it has.
_AHEAD = 64 << 20


class Input:
    """Bytes from a file object, one after the other."""

    def __init__(self, file: BinaryIO | io.RawIOBase, at: int = 0) -> None:
        self._file = file
        self._readinto = getattr(file, "readinto", None)
        self._peeked = b""
        #: Position in the archive of what comes next.
        self.at = at
        self.ahead = max(_AHEAD, _size_of(file))

    def is_at_end(self) -> bool:
        if not self._peeked:
            self._peeked = self._file.read(1)
            if self._peeked is None:
                raise _would_block()
        return not self._peeked

    def take(self, length: int, what: str) -> bytes:
        """So many bytes, allocated as they come."""
        pieces, missing = [self._peeked[:length]], length - len(self._peeked[:length])
        self._peeked = self._peeked[length:]
        while missing:
            piece = self._file.read(min(missing, CHUNK))
            if piece is None:
                raise _would_block()
            if isinstance(piece, str):
                raise TypeError("expected a file that is opened in binary mode")
            if not piece:
                there = self.at + length - missing
                raise Torn(f"{what}: the stream ends, {missing} bytes are missing", offset=there)
            if len(piece) > missing:
                raise OSError("the stream gave more bytes than asked for")
            pieces.append(piece)
            missing -= len(piece)
        self.at += length
        return b"".join(pieces)

    def fill(self, out: memoryview, what: str, state: Any) -> None:
        """Reads into memory, a piece at a time, and hashes it."""
        done = 0
        while done < len(out):
            piece = out[done : done + CHUNK]
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
            state.update(out[done : done + count])
            done += count

    def receive(self, length: int, what: str, state: Any) -> Payload:
        """So many bytes, hashed, in memory of their own, which grows with what is received."""
        out: Payload = np.empty(min(length, self.ahead), np.uint8)
        self.fill(out.data, what, state)
        while out.nbytes < length:
            done = out.nbytes
            longer: Payload = np.empty(min(length, 2 * done), np.uint8)
            longer[:done] = out
            out = longer
            self.fill(out.data[done:], what, state)
        return out

    def skip(self, length: int, what: str, state: Any) -> None:
        """Passes over so many bytes, and hashes them."""
        scratch = memoryview(bytearray(min(length, CHUNK)))
        while length:
            piece = scratch[: min(length, CHUNK)]
            self.fill(piece, what, state)
            length -= len(piece)


def _would_block() -> BlockingIOError:
    return BlockingIOError("the stream has nothing to read yet")


def _size_of(file: BinaryIO | io.RawIOBase) -> int:
    """The length of a regular file; 0 for others."""
    try:
        found = os.fstat(file.fileno())
    except (AttributeError, OSError):
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def read_body(file: Input, header: Header, seed: bytes, keep: list[Payload] | None) -> None:
    """Reads what follows the record of a segment that has buffers, and checks it; buffers are added to `keep`."""
    at = file.at
    before = header.before_body(at)
    expect(file.take(len(before), "padding"), before, at, "what stands before the body")
    base, hashes, places = file.at, [], header.places()
    for number, (place, length) in enumerate(zip(places, header.lengths, strict=True)):
        at = file.at
        gap = bytes(base + place - at)
        expect(file.take(len(gap), "padding"), gap, at, "what stands between buffers")
        state = xxhash.xxh3_64()
        if keep is None:
            file.skip(length, f"buffer {number}", state)
        else:
            keep.append(file.receive(length, f"buffer {number}", state))
        hashes.append(state.digest())
    at = file.at
    found = file.take(header.hashes_length(), "list of hashes")
    stored = read_hash_list(found, header, seed, at)
    for number, wanted in enumerate(stored):
        check_buffer(hashes[number], wanted, number, base + places[number])


class _Next(NamedTuple):
    """A segment whose header has been read."""

    header: Header
    metadata_at: int
    seed: bytes
    offset: int


class Walk:
    """Goes through an archive, and compares whatever can be written in one way only."""

    def __init__(self, file: BinaryIO | io.RawIOBase, limits: Limits) -> None:
        self.input = Input(file)
        self.limits = limits
        self._directory = Directory()
        self._ended = False
        self._next: _Next | None = None
        self._read_magic()

    @property
    def count(self) -> int:
        """The number of whole segments so far."""
        return self._directory.count

    @property
    def offset(self) -> int | None:
        """Where the segment whose header was read last begins."""
        return None if self._next is None else self._next.offset

    def _read_magic(self) -> None:
        for at, byte in enumerate(MAGIC):
            if self.input.take(1, "magic")[0] != byte:
                raise Damaged("no archive of tenarc: it begins with other bytes", offset=at)

    def header(self) -> Header | None:
        """The header of the next segment; `None` at the end of the archive."""
        while self._next is None:
            if self.input.is_at_end():
                if self._ended:
                    return None
                text = f"the archive has no end mark behind its {self.count} values"
                raise Torn(text, offset=self.input.at)
            self._read_record()
        return self._next.header

    def _read_record(self) -> None:
        at = self.input.at
        item = self.input.take(3, "record")
        width = {24: 1, 25: 2, 26: 4, 27: 8}.get(item[2] & 31, 0)
        item += self.input.take(width, "record")
        _, total = record_length(item, at)
        if total > self.limits.max_alloc:
            raise Limit(f"a record of {total} bytes", offset=at)
        item += self.input.take(total - len(item), "record")
        kind, fields = opened(item, at)
        if kind == HEADER:
            header, metadata_at = Header.read(fields)
            self._next = _Next(header, metadata_at, item[1 - HASH_ITEM :], at)
            self._ended = False
        elif kind == END:
            wanted = self._directory.end(at)
            item += self.input.take(TAIL_LEN, "tail")
            expect(item, wanted, at, "an end mark with its tail")
            self._ended = True
        else:
            raise Damaged("a block of the directory that no list has filled", offset=at)

    def body(self, keep: bool) -> Body:
        """Reads the segment whose header was read last, to its end, and checks its hashes."""
        assert self._next is not None
        header, metadata_at, seed, at = self._next
        body = Body(header, metadata_at, self.limits)
        if header.lengths:
            if keep and header.body_length() > self.limits.max_alloc:
                text = f"buffers of {header.body_length()} bytes, at most {self.limits.max_alloc}"
                raise Limit(text, offset=at)
            payloads = body.payloads if keep else None
            read_body(self.input, header, seed, payloads)
        blocks = self._directory.add(at, header.name, self.input.at)
        if blocks:
            start = self.input.at
            expect(self.input.take(len(blocks), "block"), blocks, start, "a block of the directory")
        self._next = None
        return body


class Body:
    """The buffers of a segment that was read, and its metadata."""

    def __init__(self, header: Header, metadata_at: int, limits: Limits) -> None:
        self.header = header
        self.metadata_at = metadata_at
        self.limits = limits
        self.payloads: list[Payload] = []

    @property
    def lengths(self) -> tuple[int, ...]:
        return self.header.lengths

    def payload(self, number: int, owned: bool) -> Payload:
        return self.payloads[number]

    def value(self) -> Any:
        """The value that the metadata makes of the buffers."""
        return self._resolve(elements=True)

    def check(self) -> None:
        """Checks the form of the metadata, which takes no content of buffers."""
        self._resolve(elements=False)

    def _resolve(self, elements: bool) -> Any:
        metadata, limits = self.header.metadata, self.limits
        return value_of(metadata, self.metadata_at, self, owned=True, limits=limits, elements=elements)


def verify(source: Source, limits: Limits) -> list[Entry]:
    """Checks a whole archive; gives offset and name of each segment."""
    walk = Walk(SourceFile(source), limits)
    found: list[Entry] = []
    while (header := walk.header()) is not None:
        offset = walk.offset
        assert offset is not None
        walk.body(keep=False).check()
        found.append((offset, header.name))
    return found
