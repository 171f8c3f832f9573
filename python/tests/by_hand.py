"""Archives whose records the tests make themselves."""

from __future__ import annotations

import tenarc
from tenarc.directory import MAGIC, Directory, Entry
from tenarc.rows import rows_of
from tenarc.segment import MAX_RECORD_HEAD, Header, opened, record_length


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
