"""Archives whose records the tests make themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tenarc
from tenarc import items
from tenarc.chunks import hashes_of
from tenarc.directory import MAGIC, Directory, Entry, tail
from tenarc.rows import rows_of
from tenarc.segment import (
    AUX,
    END,
    HASH_ITEM,
    MAX_RECORD_HEAD,
    RECORD,
    Header,
    hashed,
    opened,
    record,
    record_length,
)


def entry_of(start: bytes, name: str | None = None) -> Entry:
    """The entry of the first segment of an archive that begins with these bytes, which may be damaged."""
    at = len(MAGIC)
    _, length = record_length(start[at : at + MAX_RECORD_HEAD], at)
    try:
        rows = rows_of(Header.read(opened(start[at : at + length], at)[1])[0].metadata)
    except tenarc.Error:
        rows = None
    return Entry(at, name, length, rows)


def ended(data: bytes, name: str | None = None) -> bytes:
    """Adds the end mark and the tail of an archive with one segment."""
    return data + end_of(data, len(data), name)


def end_of(start: bytes, at: int, name: str | None = None) -> bytes:
    """The end mark and the tail, at a position, of an archive with one segment that begins with these bytes."""
    directory = Directory()
    directory.add(entry_of(start, name))
    return directory.end(at)


class ByHand:
    """An archive that is put together record by record, so that each of them can be wrong."""

    def __init__(self) -> None:
        self.data = MAGIC
        self.directory = Directory()
        #: Where each end mark begins, where its tail begins, and where that ends.
        self.ends: list[tuple[int, int, int]] = []

    def segment(
        self,
        metadata: bytes = b"\x07",
        buffers: Sequence[bytes] = (),
        *,
        name: str | None = None,
        lengths: Sequence[int] | None = None,
        hashes: bytes | None = None,
        content: bytes | None = None,
        entry: Mapping[str, Any] | None = None,
        block: Any = None,
        **header: Any,
    ) -> ByHand:
        """Adds a segment. `content` is in its header's record, and `entry` in the directory, instead."""
        given = tuple(map(len, buffers)) if lengths is None else tuple(lengths)
        options: dict[str, Any] = {"checksums": True} | header
        made = Header(name, 8, options.pop("checksums"), 1 << 16, given, metadata, **options)
        start = len(self.data)
        item = made.write(start)
        if content is not None:
            item = hashed(RECORD + items.byte_string(content), start)
        self.data += item
        if made.lengths:
            self.data += made.before_body(len(self.data))
            base = len(self.data)
            for place, buffer in zip(made.places(), buffers, strict=True):
                self.data += bytes(base + place - len(self.data)) + buffer
            if hashes is None:
                hashes = b"".join(hashes_of(memoryview(buffer), 1 << 16) for buffer in buffers if made.checksums)
            self.data += made.hash_list(hashes, item[1 - HASH_ITEM :])
        said = Entry(start, name, len(item), rows_of(metadata), made.content_digest(hashes or b""))
        self.directory.add(said._replace(**(entry or {})))

        def written(level: int, at: int) -> int:
            found = self.directory.block(level, at) if block is None else block(self.directory, level, at)
            self.data += found
            return len(found)

        self.directory.fill(len(self.data), written)
        return self

    def aux(self, kind: int = 7, payload: bytes = b"\x82\x01\x02") -> ByHand:
        """Adds an auxiliary record."""
        return self.raw(record(AUX, [items.head(items.UNSIGNED, kind), payload], len(self.data)))

    def end(self, *, ext: bytes | None = None, fields: Sequence[bytes] | None = None) -> ByHand:
        """Adds an end mark with its tail. `fields` are those of its record."""
        at = len(self.data)
        self.directory.ext = b"\xa0" if ext is None else ext
        mark = self.directory.mark(at) if fields is None else record(END, fields, at)
        gap, last = tail(at, len(mark))
        self.data += mark + gap + last
        self.ends.append((at, len(self.data) - len(last), len(self.data)))
        return self

    def raw(self, data: bytes) -> ByHand:
        """Adds any bytes."""
        self.data += data
        return self
