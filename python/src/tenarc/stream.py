"""Writes and reads archives as streams, over any file object. Neither needs to seek."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from types import TracebackType
from typing import Any, BinaryIO, TypeGuard, TypeVar, overload

from . import ext
from .chunks import DEFAULT_CHUNK
from .compress import Compressed
from .convert import convert
from .directory import MAGIC, Directory, Entry, tail
from .dtypes import Payload
from .encode import encode
from .errors import End, NotFound
from .listing import lists_without
from .options import DEFAULT_LIMITS, Compression, Limits, Reading, SaveOptions
from .progress import CountedFile, Counter, Progress
from .rows import rows_of
from .segment import HASH_ITEM, Header, check_name
from .source import STEP
from .walk import Walk, size_of

T = TypeVar("T")


@lists_without()
class Writer:
    """Writes an archive, value after value, to any object with `write(bytes)`.

    As a context manager, it finishes the archive at the end of the block; after an exception, the archive is left
    unfinished. The options apply to all values:

    - `alignment` of buffers in the file: a power of two from 8 to 65,536;
    - `inline_below`: payloads of fewer bytes are stored in the metadata, not in buffers;
    - `checksums`: whether buffers have checksums, one for each chunk; headers always have one;
    - `dedup`: whether tensors of one value with equal bytes share a buffer;
    - `chunk_len`: the length in bytes of the chunks of buffers, a power of two from 64 KiB to 1 GiB. With shorter
      chunks, damage is found more precisely. Each chunk takes 8 bytes in the file.
    - `compression`: how buffers are compressed, without loss: `None`, `"zstd"`, `"lz4"` or `("zstd", level)`. A
      function gets the path, dtype and shape of each tensor in a buffer, and returns one of these. `zstd` is for
      weights and nearly everything else. Its level is 1 unless you give one; higher levels, up to 22, are for data
      that repeats itself. `lz4` is for such data too, if speed matters most. Tensors that hardly shrink are stored
      as they are. Compressed tensors cannot be viewed: reading one makes a copy.
    """

    def __init__(
        self,
        file: BinaryIO,
        *,
        alignment: int = 256,
        inline_below: int = 2048,
        checksums: bool = True,
        dedup: bool = False,
        chunk_len: int = DEFAULT_CHUNK,
        compression: Compression = None,
    ) -> None:
        self._options = SaveOptions(alignment, inline_below, checksums, dedup, chunk_len, compression)
        self._file = file
        self._at = 0
        self._directory = Directory()
        self._ended = False
        self._broken = False
        self._begin()

    def _begin(self) -> None:
        self._write(MAGIC)

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.finish()

    def save(self, value: Any, *, name: str | None = None, notes: Mapping[str, str] | None = None) -> None:
        """Writes a value, with notes about it, such as a title or who wrote it.

        `Unsupported` if the format cannot hold the value; nothing is written then. `OSError` if writing to the
        file fails; every later call fails too.
        """
        check_name(name)
        extensions = ext.with_notes(notes)
        encoded = encode(value, self._options)
        self._save(encoded.metadata, encoded.buffers, name, Compressed(encoded, self._options), extensions)

    def _save(
        self,
        metadata: bytes,
        buffers: list[Payload],
        name: str | None,
        compressed: Compressed | None = None,
        extensions: bytes = ext.EMPTY,
        count: Callable[[int], None] | None = None,
    ) -> None:
        """`count` is called with the lengths of pieces of buffers that are written, if it was not before."""
        lengths = tuple(payload.nbytes for payload in buffers)
        options = self._options
        packed, chunks = ({}, {}) if compressed is None else (compressed.packed, compressed.chunks)
        header = Header(
            name,
            options.alignment,
            options.checksums,
            options.chunk_len,
            lengths,
            metadata,
            packed,
            ext=extensions,
        )
        tried = set() if compressed is None else compressed.tried
        pieces: Iterator[Iterable[bytes | memoryview]] = (
            chunks.get(number) or _pieces(payload.data, None if number in tried else count)
            for number, payload in enumerate(buffers)
        )
        self._write_segment(header, pieces)

    def _write_segment(self, header: Header, buffers: Iterable[Iterable[bytes | memoryview]]) -> None:
        """Writes a segment. Each buffer comes in pieces, which are hashed while they are in the cache."""
        start, hashes = self._at, bytearray()
        item = header.write(start)
        self._write(item)
        if header.lengths:
            self._write(header.before_body(self._at))
            base = self._at
            for number, (place, pieces) in enumerate(zip(header.places(), buffers, strict=True)):
                self._write(bytes(base + place - self._at))
                hasher = header.hasher(number)
                for piece in pieces:
                    if header.checksums:
                        hasher.update(piece)
                    self._write(piece)
                hashes += hasher.hashes
            self._write(header.hash_list(bytes(hashes), item[1 - HASH_ITEM :]))
        rows, digest = rows_of(header.metadata), header.content_digest(bytes(hashes))
        self._directory.add(Entry(start, header.name, len(item), rows, digest))
        self._fill()
        self._ended = False

    def _fill(self) -> None:
        """Writes the blocks of the directory that are full now."""

        def block(level: int, at: int) -> int:
            item = self._directory.block(level, at)
            self._write(item)
            return len(item)

        if self._directory.is_full():
            self._directory.entries = [*map(self._completed, self._directory.entries)]
            self._directory.fill(self._at, block)

    def _completed(self, entry: Entry) -> Entry:
        """Adds what is not known yet of a segment to its entry. What was written here is known."""
        return entry

    def commit(self) -> None:
        """Writes an end mark, which makes everything so far a complete archive. More values may follow."""
        if not self._ended:
            at = self._at
            mark = self._directory.mark(at)
            gap, last = tail(at, len(mark))
            self._write(mark + gap)
            # The tail makes valid what is before it, so that must be durable.
            self._make_durable()
            self._write(last)
            self._make_durable()
            self._ended = True
        flush = getattr(self._file, "flush", None)
        if flush is not None:
            flush()

    def _make_durable(self) -> None:
        """Makes durable what was written, if this is a file that is changed in place."""

    def finish(self) -> None:
        """Ends the archive with an end mark, unless it has one. The file stays open."""
        self.commit()

    def _write(self, data: bytes | memoryview) -> None:
        if self._broken:
            raise OSError("an earlier write failed: the archive is incomplete (torn)")
        self._broken = True
        write_all(self._file, data)
        self._at += len(data)
        self._broken = False


def save_to(
    file: BinaryIO,
    value: Any,
    name: str | None,
    notes: Mapping[str, str] | None,
    options: Mapping[str, Any],
    progress: Progress = False,
) -> None:
    """Writes an archive with one value. Nothing is written if the format cannot hold the value."""
    check_name(name)
    extensions = ext.with_notes(notes)
    prepared = SaveOptions(**options)
    encoded = encode(value, prepared)
    if progress is False:
        count = None
        counting: Any = nullcontext()
    else:
        counting = Counter(progress, sum(payload.nbytes for payload in encoded.buffers), "saving")
        count = counting.add
    with counting:
        compressed = Compressed(encoded, prepared, count)
        out = Writer(file, **options)
        out._save(encoded.metadata, encoded.buffers, name, compressed, extensions, count)
        out.finish()


def load_from(
    file: BinaryIO, cls: Any, *, tables: bool, numbers: bool, limits: Limits, progress: Progress = False
) -> Any:
    """Reads a stream to its end. It must be an archive with one value."""
    if progress is not False:
        with Counter(progress, size_of(file), "loading") as counter:
            counted: Any = CountedFile(file, counter)
            return load_from(counted, cls, tables=tables, numbers=numbers, limits=limits)
    reader = Reader(file, limits=limits)
    if reader.next_header() is None:
        raise NotFound("the archive has no values")
    body = reader._body(keep=True)
    if reader.next_header() is not None:
        raise NotFound("the archive has more than one value: `Reader` reads them one after the other")
    return convert(body.value(Reading.of(cls, tables=tables, numbers=numbers)), cls)


def is_stream(file: Any, method: str) -> TypeGuard[BinaryIO]:
    """Whether something is a file object that has a method, and not a path."""
    return not isinstance(file, (str, bytes, os.PathLike)) and hasattr(file, method)


def _pieces(content: memoryview, count: Callable[[int], None] | None) -> Iterator[memoryview]:
    for start in range(0, len(content), STEP):
        piece = content[start : start + STEP]
        yield piece
        if count is not None:
            count(len(piece))


def write_all(file: BinaryIO, data: bytes | memoryview) -> None:
    """Writes all bytes to a file, also to a raw one whose `write` may take fewer."""
    view = memoryview(data)
    while len(view):
        count = file.write(view)
        if count is None:
            if isinstance(file, io.RawIOBase):
                raise BlockingIOError("the file is non-blocking and cannot be written to now")
            count = len(view)
        view = view[count:]


@lists_without()
class Reader:
    """Reads an archive, value after value, from any object with `read(length)`.

    All checksums are verified. Arrays have memory of their own. Iterating gives all values.
    """

    def __init__(self, file: BinaryIO, *, limits: Limits = DEFAULT_LIMITS) -> None:
        self._failed: Exception | None = None
        self._walk = Walk(file, limits)

    def next_header(self) -> Header | None:
        """The header of the next value, with its name and the lengths of its buffers; `None` at the end.

        `Torn` if the stream ends without an end mark.
        """
        if self._failed is not None:
            raise self._failed
        try:
            return self._walk.header()
        except Exception as error:
            self._failed = error
            raise

    @overload
    def load(self, cls: type[T], *, tables: bool = ..., numbers: bool = ...) -> T: ...
    @overload
    def load(self, cls: Any = None, *, tables: bool = ..., numbers: bool = ...) -> Any: ...
    def load(self, cls: Any = None, *, tables: bool = False, numbers: bool = False) -> Any:
        """Reads the next value. `End` if there is none. `cls`, `tables` and `numbers` are those of `tenarc.load`.

        After an error that concerns only this value, such as `Mismatch`, the next value can be read.
        """
        if self.next_header() is None:
            raise End("the archive has no more values")
        value = self._body(keep=True).value(Reading.of(cls, tables=tables, numbers=numbers))
        return convert(value, cls)

    def skip(self) -> None:
        """Skips the next value; its checksums are verified nevertheless. `End` if there is none."""
        if self.next_header() is None:
            raise End("the archive has no more values")
        self._body(keep=False)

    def _body(self, keep: bool) -> Any:
        try:
            return self._walk.body(keep)
        except Exception as error:
            # The position of the next value is unknown now, so every later call fails.
            self._failed = error
            raise

    def __iter__(self) -> Iterator[Any]:
        while self.next_header() is not None:
            yield self.load()
