"""Reads archives from start to end: streams, and files that are verified (SPEC 5.5, 5.8)."""

from __future__ import annotations

import io
import os
import stat
from functools import cached_property
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from . import ext, paths
from .decode import value_of
from .directory import MAGIC, Directory, Entry, tail
from .dtypes import Payload
from .errors import Damaged, Error, Limit, Torn, Unsupported, Version, bounded_recursion
from .foreign import MOST, no_archive
from .items import BYTES, Items
from .options import DEFAULT_READING, Limits, Reading
from .rows import rows_of
from .segment import (
    AUX,
    END,
    HASH_ITEM,
    HEADER,
    MAX_RECORD_HEAD,
    RECORD,
    START_LEN,
    VERSION_LEN,
    Header,
    check_length,
    check_version,
    expect,
    is_version_known,
    kind_of,
    opened,
    read_hash_list,
    record_length,
    skip_aux,
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
        self.ahead = max(_AHEAD, size_of(file))

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


def size_of(file: BinaryIO | io.RawIOBase) -> int:
    """The length of a regular file; 0 for others."""
    try:
        found = os.fstat(file.fileno())
    except (AttributeError, OSError):
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _is_whole(item: bytes, at: int) -> bool:
    """Whether all the content of a record is there, whose heads need not be the shortest."""
    look = Items(item, at)
    look.at = len(RECORD)
    return len(item) >= look.definite(BYTES, "record") + look.at


def read_body(file: Input, header: Header, seed: bytes, keep: list[Payload] | None, limits: Limits) -> bytes:
    """Reads and checks what follows the header of a segment with buffers. Returns the hashes of the chunks.

    Adds the buffers to `keep`, if given: compressed ones as they are stored. Checksums of an unknown algorithm are
    not verified.
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
        each: Each = hasher.update if header.is_checked else _unread
        if keep is None:
            file.skip(length, f"buffer {number}", each)
        else:
            keep.append(file.receive(length, f"buffer {number}", each))
        hashes.append(hasher.hashes)
    at = file.at
    found = file.take(header.hashes_length(), "list of hashes")
    stored = read_hash_list(found, header, seed, at)
    if stored is None:
        return b""
    for number, computed in enumerate(hashes if header.is_checked else ()):
        if number in header.elsewhere:
            continue
        try:
            stored.check(number, computed, base + places[number])
        except Damaged as error:
            error.path = _path_to(header, number, limits)
            raise
    return stored.content


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
    #: The length of the record of its header.
    length: int


class Walk:
    """Reads an archive record by record, and checks everything that has only one valid encoding."""

    def __init__(self, file: BinaryIO | io.RawIOBase, limits: Limits, *, full: bool = False) -> None:
        """With `full`, rows and digests in the directory are compared too, and `entries` are kept."""
        self._file, self.input = file, Input(file)
        self.limits = limits
        #: Each segment so far.
        self.entries: list[Entry] = []
        self._full = full
        self._directory = Directory()
        self._ended = False
        # The extensions of the last end mark.
        self._ext = ext.EMPTY
        self._next: _Next | None = None
        self._read_magic()

    @property
    def count(self) -> int:
        """The number of complete segments so far."""
        return self._directory.count

    def _read_magic(self) -> None:
        for at, byte in enumerate(MAGIC):
            found = self.input.take(1, "magic")
            if found[0] != byte:
                # What follows tells what it is, but a pipe may have nothing more for a long time.
                is_file = isinstance(self._file, io.BytesIO) or size_of(self._file)
                raise no_archive(MAGIC[:at] + found + (self._file.read(MOST) or b"") if is_file else b"", at)

    def header(self) -> Header | None:
        """The header of the next segment; `None` at the end of the archive."""
        while self._next is None:
            if self.input.is_at_end():
                if self._ended:
                    ext.check(self._ext, "the end mark", self.input.at)
                    return None
                text = f"the archive has no end mark after its {self.count} segments"
                raise Torn(text, offset=self.input.at)
            self._read_record()
        return self._next.header

    def _read_record(self) -> None:
        at = self.input.at
        item = self._take_record(at)
        kind, fields = opened(item, at)
        if kind == HEADER:
            header, metadata_at = Header.read(fields)
            self._next = _Next(header, metadata_at, item[1 - HASH_ITEM :], at, len(item))
            self._ended = False
        elif kind == END:
            self._ext = self._directory.check_end(item, at, full=self._full).ext
            place, wanted = self.input.at, b"".join(tail(at, len(item)))
            expect(self.input.take(len(wanted), "tail"), wanted, place, "the tail of the end mark")
            self._ended = True
        elif kind == AUX and at > len(MAGIC):
            skip_aux(fields)
            self._ended = False
        elif kind == AUX:
            raise Damaged("an auxiliary record before the first segment", offset=at)
        else:
            raise Damaged("expected a segment or an end mark, found a block of the directory", offset=at)

    def _take_record(self, at: int) -> bytes:
        """Reads a record."""
        item = self.input.take(3, "record")
        width = {24: 1, 25: 2, 26: 4, 27: 8}.get(item[2] & 31, 0)
        # Even an empty record has so many bytes, because its hash follows.
        item += self.input.take(width + START_LEN, "record")
        content = item[3 + width :]
        while not is_version_known(content) and kind_of(content) is not None:
            # The version comes first, before anything that another version may have changed.
            check_version(item, at)
            if len(item) >= VERSION_LEN or _is_whole(item, at):
                break
            item += self.input.take(1, "record")
            content = item[3 + width :]
        _, total = record_length(item[:MAX_RECORD_HEAD], at)
        kind = kind_of(content)
        if kind is not None:
            check_length(kind, total, at)
        if total > self.limits.longest:
            raise Limit(f"a record of {total} bytes, more than the limit of {self.limits.longest}", offset=at)
        return item + self.input.take(total - len(item), "record")

    def body(self, keep: bool) -> Body:
        """Reads the rest of the segment whose header was read last, and checks its hashes."""
        assert self._next is not None
        header, metadata_at, seed, at, length = self._next
        body = Body(header, metadata_at, self.limits)
        body.at = self.input.at
        hashes = b""
        if header.lengths:
            limit = self.limits.longest
            if keep and header.body_length() > limit:
                text = f"buffers of {header.body_length()} bytes, more than the limit of {limit}"
                raise Limit(text, offset=at)
            payloads = body.payloads if keep else None
            hashes = read_body(self.input, header, seed, payloads, self.limits)
        packed = header.packed_length()
        body.input = self.input.at - at - packed, packed
        entry = Entry(at, header.name, length)
        if self._full:
            entry = entry._replace(rows=rows_of(header.metadata), digest=header.content_digest(hashes))
            self.entries.append(entry)
        self._directory.add(entry)
        self._directory.fill(self.input.at, self._read_block)
        self._next = None
        return body

    def _read_block(self, level: int, at: int) -> int:
        item = self._take_record(at)
        found = self._directory.check_block(item, level, at, full=self._full)
        ext.check(found, "a block of the directory", at)
        return len(item)


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
        at = self._places[number]
        try:
            if number in self.header.elsewhere:
                raise self.header.elsewhere[number].error(number)
            if self.header.algorithm is not None:
                raise self.header.unknown_check()
            if number not in self.header.packed:
                return stored
            unpacker = Unpacker(
                self.header, number, at, lambda start, end: stored.data[start - at : end - at], None
            )
            return unpacker.read(0, unpacker.length)
        except (Damaged, Unsupported, Version) as error:
            error.path = _path_to(self.header, number, self.limits)
            raise

    def value(self, reading: Reading) -> Any:
        """Decodes the value."""
        return self._resolve(elements=True, reading=reading)

    def check(self) -> None:
        """Checks the metadata, without the buffers, unless an unknown extension may change what it means."""
        if ext.unknown(self.header.ext) is None:
            self._resolve(elements=False)

    def _resolve(self, *, elements: bool, reading: Reading = DEFAULT_READING) -> Any:
        self.header.check_extensions(self.metadata_at)
        metadata, at, limits = self.header.metadata, self.metadata_at, self.limits
        return value_of(metadata, at, self, owned=True, limits=limits, elements=elements, reading=reading)


def verify(source: Source, limits: Limits) -> list[Entry]:
    """Checks a whole archive, and returns what the directory has to say of each segment."""
    walk = Walk(SourceFile(source), limits, full=True)
    while walk.header() is not None:
        walk.body(keep=False).check()
    return walk.entries
