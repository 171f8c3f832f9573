"""Archives from their front: any stream, and to verify a file (SPEC 5.5, 5.8)."""

from __future__ import annotations

import io
import os
import stat
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import xxhash

from .decode import Payload, Resolver, located, parse
from .directory import MAGIC, TAIL_LEN, Directory, Entry
from .errors import Damaged, Fault, Limit, Torn
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
from .source import CHUNK, Source

# Memory for so much is asked for before it is received; of a file, for as much as it has.
_AHEAD = 64 << 20


class Input:
    """Bytes from a file object, one after the other."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._readinto = getattr(file, "readinto", None)
        self._peeked = b""
        self.at = 0
        self.ahead = max(_AHEAD, _size_of(file))

    def is_at_end(self) -> bool:
        if not self._peeked:
            self._peeked = self._file.read(1)
            if self._peeked is None:
                raise BlockingIOError("the stream has nothing to read yet")
        return not self._peeked

    def take(self, length: int, what: str) -> bytes:
        """So many bytes, allocated as they come."""
        pieces, missing = [self._peeked[:length]], length - len(self._peeked[:length])
        self._peeked = self._peeked[length:]
        while missing:
            piece = self._file.read(min(missing, CHUNK))
            if piece is None:
                raise BlockingIOError("the stream has nothing to read yet")
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
                    raise BlockingIOError("the stream has nothing to read yet")
                if not count:
                    missing = len(out) - done
                    text = f"{what}: the stream ends, {missing} bytes are missing"
                    raise Torn(text, offset=self.at)
                self.at += count
            state.update(out[done : done + count])
            done += count


def _size_of(file: BinaryIO) -> int:
    """The length of a regular file; 0 for others."""
    try:
        found = os.fstat(file.fileno())
    except (AttributeError, OSError):
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


class _Next(NamedTuple):
    """A segment whose header has been read."""

    header: Header
    metadata_at: int
    seed: bytes
    offset: int


class Walk:
    """Goes through an archive, and compares whatever can be written in one way only."""

    def __init__(self, file: BinaryIO, limits: Limits) -> None:
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
            self._read_body(header, seed, body if keep else None)
        blocks = self._directory.add(at, header.name, self.input.at)
        if blocks:
            start = self.input.at
            expect(self.input.take(len(blocks), "block"), blocks, start, "a block of the directory")
        self._next = None
        return body

    def _read_body(self, header: Header, seed: bytes, keep: Body | None) -> None:
        at = self.input.at
        before = header.before_body(at)
        expect(self.input.take(len(before), "padding"), before, at, "what stands before the body")
        base, hashes, places = self.input.at, [], header.places()
        for number, (place, length) in enumerate(zip(places, header.lengths, strict=True)):
            at = self.input.at
            gap = bytes(base + place - at)
            expect(self.input.take(len(gap), "padding"), gap, at, "what stands between buffers")
            state = xxhash.xxh3_64()
            if keep is None:
                self._pass(length, f"buffer {number}", state)
            else:
                keep.payloads.append(self._receive(length, f"buffer {number}", state))
            hashes.append(state.digest())
        at = self.input.at
        found = self.input.take(header.hashes_length(), "list of hashes")
        stored = read_hash_list(found, header, seed, at)
        for number, wanted in enumerate(stored):
            check_buffer(hashes[number], wanted, number, base + places[number])

    def _receive(self, length: int, what: str, state: Any) -> Payload:
        """A buffer in memory of its own, which grows with what is received."""
        out: Payload = np.empty(min(length, self.input.ahead), np.uint8)
        self.input.fill(out.data, what, state)
        while out.nbytes < length:
            done = out.nbytes
            longer: Payload = np.empty(min(length, 2 * done), np.uint8)
            longer[:done] = out
            out = longer
            self.input.fill(out.data[done:], what, state)
        return out

    def _pass(self, length: int, what: str, state: Any) -> None:
        scratch = memoryview(bytearray(min(length, CHUNK)))
        while length:
            piece = scratch[: min(length, CHUNK)]
            self.input.fill(piece, what, state)
            length -= len(piece)


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
        tree = parse(self.header.metadata, self.metadata_at, self.limits)
        resolver = Resolver(self, owned=True, limits=self.limits, elements=elements)
        try:
            return resolver.whole(tree)
        except Fault as fault:
            raise located(fault, self.header.metadata, self.metadata_at) from None


class _SourceFile(io.RawIOBase):
    """A source as a file that is read from its beginning."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, out: Any) -> int:
        length = min(len(out), self._source.length - self._at)
        out[:length] = self._source.read(self._at, length)
        self._at += length
        return length


def verify(source: Source, limits: Limits) -> list[Entry]:
    """Checks a whole archive; gives offset and name of each segment."""
    file: Any = _SourceFile(source)
    walk = Walk(file, limits)
    found: list[Entry] = []
    while (header := walk.header()) is not None:
        offset = walk.offset
        assert offset is not None
        walk.body(keep=False).check()
        found.append((offset, header.name))
    return found
