"""Values one after the other, over any file object: no seeking, either way."""

from __future__ import annotations

import io
from collections.abc import Iterator
from types import TracebackType
from typing import Any, BinaryIO

import xxhash

from .convert import convert
from .directory import MAGIC, Directory
from .dtypes import Payload
from .encode import encode
from .errors import End
from .options import DEFAULT_LIMITS, Limits, SaveOptions
from .segment import HASH_ITEM, Header, check_name, hash_list
from .source import CHUNK
from .walk import Walk


class Writer:
    """Writes an archive, value after value, to anything with `write(bytes)`.

    As a context manager it ends the archive, unless an exception leaves the block. The options are those
    of all values:

    - `alignment` of buffers: a power of two from 8 to 65,536;
    - `inline_below`: payloads of fewer bytes stand in the metadata;
    - `checksums` of buffers; headers have theirs in any case;
    - `dedup`: buffers of one value with the same bytes are stored once.
    """

    def __init__(
        self,
        file: BinaryIO,
        *,
        alignment: int = 256,
        inline_below: int = 2048,
        checksums: bool = True,
        dedup: bool = False,
    ) -> None:
        self._options = SaveOptions(alignment, inline_below, checksums, dedup)
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

    def save(self, value: Any, *, name: str | None = None) -> None:
        """Writes a value. One that cannot be written leaves the archive as it was.

        `Unsupported` where a value has no place in the format; `OSError` where the file fails, and
        from then on for every call.
        """
        check_name(name)
        metadata, buffers = encode(value, self._options)
        self._save(metadata, buffers, name)

    def _save(self, metadata: bytes, buffers: list[Payload], name: str | None) -> None:
        lengths = tuple(payload.nbytes for payload in buffers)
        options = self._options
        header = Header(name, options.alignment, options.checksums, lengths, metadata)
        start = self._at
        item = header.write(start)
        self._write(item)
        if buffers:
            self._write(header.before_body(self._at))
            base, hashes = self._at, []
            for place, payload in zip(header.places(), buffers, strict=True):
                self._write(bytes(base + place - self._at))
                hashes.append(self._write_payload(payload))
            self._write(hash_list(hashes if options.checksums else [], item[1 - HASH_ITEM :]))
        self._write(self._directory.add(start, name, self._at))
        self._ended = False

    def commit(self) -> None:
        """Writes an end mark: what is there is a whole archive now. More values may follow."""
        if not self._ended:
            self._write(self._directory.end(self._at))
            self._ended = True
        flush = getattr(self._file, "flush", None)
        if flush is not None:
            flush()

    def finish(self) -> None:
        """Ends the archive, where it has not just been. The file stays open."""
        self.commit()

    def _write(self, data: bytes | memoryview) -> None:
        if self._broken:
            raise OSError("an earlier write has failed, the archive is torn")
        self._broken = True
        write_all(self._file, data)
        self._at += len(data)
        self._broken = False

    def _write_payload(self, payload: Payload) -> bytes:
        """Writes a buffer, hashed while it is in a cache."""
        view, state = payload.data, xxhash.xxh3_64()
        for start in range(0, len(view), CHUNK):
            piece = view[start : start + CHUNK]
            if self._options.checksums:
                state.update(piece)
            self._write(piece)
        return state.digest()


def write_all(file: BinaryIO, data: bytes | memoryview) -> None:
    """Writes bytes to a file, also to a raw one that takes less than it is given."""
    view = memoryview(data)
    while len(view):
        count = file.write(view)
        if count is None:
            if isinstance(file, io.RawIOBase):
                raise BlockingIOError("the file takes nothing now")
            count = len(view)
        view = view[count:]


class Reader:
    """Reads an archive, value after value, from anything with `read(length)`.

    All checksums are verified; arrays are in memory of their own. Iterating gives all values.
    """

    def __init__(self, file: BinaryIO, *, limits: Limits = DEFAULT_LIMITS) -> None:
        self._failed: Exception | None = None
        self._walk = Walk(file, limits)

    def next_header(self) -> Header | None:
        """Name, alignment and buffers of the next value; `None` at the end.

        `Torn` where the archive has no end.
        """
        if self._failed is not None:
            raise self._failed
        try:
            return self._walk.header()
        except Exception as error:
            self._failed = error
            raise

    def load(self, cls: Any = None) -> Any:
        """The next value, converted as by `tenarc.load`; `End` where there is none.

        After an error in the value alone, such as a `Mismatch`, the value after it can be read.
        """
        if self.next_header() is None:
            raise End("there is no further value")
        return convert(self._body(keep=True).value(), cls)

    def skip(self) -> None:
        """Passes over the next value; its checksums are verified all the same."""
        if self.next_header() is None:
            raise End("there is no further value")
        self._body(keep=False)

    def _body(self, keep: bool) -> Any:
        try:
            return self._walk.body(keep)
        except Exception as error:
            # Where the next value begins is not known any more.
            self._failed = error
            raise

    def __iter__(self) -> Iterator[Any]:
        while self.next_header() is not None:
            yield self.load()
