"""Scans an archive from its start (SPEC 5.7, 5.8).

This finds the last committed end mark if bytes follow it, and the intact part of a torn archive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from . import ext
from .directory import MAGIC, TAIL_LEN, TAIL_START, Directory, Entry, intact_tail, read_tail, tail
from .errors import Damaged, Error, Torn, Version
from .foreign import MOST, no_archive
from .options import Limits
from .rows import rows_of
from .saved import Segment, read_record
from .segment import (
    AUX,
    BLOCK,
    END,
    MAX_RECORD,
    MAX_RECORD_HEAD,
    VERSION_LEN,
    check_length,
    check_version,
    kind_of,
    opened,
    record_length,
    skip_aux,
)
from .source import STEP, FileSource, Shrunk, Source

#: A reader gets the tail, and nearly always all of the end mark, with so many of the last bytes.
_SUFFIX = 4096


@dataclass
class Scan:
    """The result of a scan: the intact part of an archive."""

    #: The end of what is right. What follows is judged from here.
    end: int = len(MAGIC)
    #: The end of the last complete segment, with its directory blocks and end mark. A torn archive is cut here.
    keep: int = len(MAGIC)
    #: It is full if the last segment fills a block, and not all blocks that belong at `keep` are right.
    directory: Directory = field(default_factory=Directory)
    #: Each complete segment.
    entries: list[Entry] = field(default_factory=list)
    #: The end of the last tail, or of the magic if there is none. Everything before it was committed.
    vouched: int = len(MAGIC)
    #: The segment at `end`, if its header is complete and the input ends before its body does.
    cut: Segment | None = None
    #: Whether the last end mark is intact, and what follows it is neither its tail nor missing.
    bad_tail: bool = False
    #: Why the scan stopped, if it stopped before the end of the input.
    fault: Damaged | Torn | None = None
    #: The first extension of a block, or of the last committed end mark, that would have to be known.
    unknown: Version | None = None
    # The same of a block only.
    _unknown_block: Version | None = None

    def step(self, source: Source, limits: Limits, each: Callable[[Segment], None]) -> None:
        """Reads a segment, an end mark with its tail, or an auxiliary record."""
        at = self.end
        kind = _kind_at(source, at)
        if kind == END:
            self._end_mark(source, at, read_record(source, at, source.length, limits))
        elif kind == AUX:
            if at == len(MAGIC):
                raise Damaged("an auxiliary record before the first segment", offset=at)
            item = read_record(source, at, source.length, limits)
            skip_aux(opened(item, at)[1])
            self.end += len(item)
        else:
            self._segment(source, at, limits, each)

    def _segment(self, source: Source, at: int, limits: Limits, each: Callable[[Segment], None]) -> None:
        segment = Segment(source, len(self.entries), at, source.length, limits)
        if segment.missing_bytes:
            self.cut = segment
            raise segment.cut_error()
        each(segment)
        entry = Entry(at, segment.name, segment.header_length)
        self.entries.append(entry)
        self.directory.add(entry)
        self.end = self.keep = segment.end

        def block(level: int, at: int) -> int:
            self.end = at
            item = _read(source, at, limits)
            self._note_block(directory.check_block(item, level, at, full=False), at)
            return len(item)

        if self.directory.is_full():
            # It stays full if a block is wrong.
            directory = self.directory.copy()
            self.end = directory.fill(segment.end, block)
            self.directory, self.keep = directory, self.end

    def _note_block(self, extensions: bytes, at: int) -> None:
        try:
            ext.check(extensions, "a block of the directory", at)
        except Version as error:
            self._unknown_block = self._unknown_block or error
            self.unknown = self.unknown or error

    def _end_mark(self, source: Source, at: int, item: bytes) -> None:
        found = self.directory.check_end(item, at, full=False)
        behind = at + len(item)
        self.end = behind
        gap, wanted = tail(at, len(item))
        there = source.read(behind, min(len(gap) + TAIL_LEN, source.length - behind))
        if there != gap + wanted:
            last = there[len(gap) :]
            self.bad_tail = len(last) == TAIL_LEN and any(last)
            if self.bad_tail:
                what = "padding before the tail" if last == wanted else "tail"
                raise Damaged(f"the {what} of the end mark at byte {at} is wrong", offset=behind)
            raise Torn("an end mark without its tail", offset=behind)
        self.end = self.keep = self.vouched = behind + len(there)
        self.unknown = self._unknown_block
        try:
            ext.check(found.ext, "the end mark", at)
        except Version as error:
            self.unknown = self.unknown or error

    def why(self) -> str:
        """The reason for the end of the intact part, in parentheses, for an error message."""
        return f" ({self.fault})" if isinstance(self.fault, Damaged) else ""

    def error(self, length: int) -> Torn:
        """The error for an archive of `length` bytes that does not end with an end mark."""
        what = "the archive has no end mark"
        if self.vouched > len(MAGIC):
            what = "more bytes follow the last end mark of the archive"
        found = f"{len(self.entries)} complete segments end at byte {self.keep}, {length - self.keep} bytes follow"
        advice = "`open(path, torn=True)` reads the segments, `recover` cuts off the rest"
        return Torn(f"{what}: {found}{self.why()}; {advice}", offset=self.keep)

    def check_readable(self) -> None:
        """Refuses an archive with an extension that a reader must know."""
        if self.unknown is not None:
            raise self.unknown

    def check_undamaged(self, source: Source, advice: str) -> None:
        """Refuses an archive in which something was committed behind what is right (SPEC 5.7)."""
        # The rest of the file belongs to a cut segment, even if it looks like a tail.
        if self.cut is not None or self.fault is None:
            return
        what = f"the archive is damaged at byte {self.end}{self.why()}"
        if self.bad_tail:
            raise Damaged(f"{what}; {advice}", offset=self.end)
        if source.length - self.end > _MAX_SEARCH:
            raise self.error(source.length)
        mark = tail_behind(source, self.end, self.end)
        if mark is not None:
            raise Damaged(f"{what}, and has a later end mark at byte {mark}; {advice}", offset=self.end)

    def check_nothing_follows(self, source: Source) -> None:
        """Checks that no committed segments follow, which would be lost if the archive was cut here.

        If only the last end mark is damaged, everything before it is there, and it can be written again.
        """
        # The rest of the file belongs to a cut segment, even if it looks like a tail.
        later = None if self.cut is not None else tail_behind(source, self.end, self.end + 1)
        if later is not None:
            what = f"the archive is damaged{self.why()}, and has a later end mark at byte {later}"
            raise Damaged(f"{what}: cutting it off here would lose what follows", offset=self.end)


def check_hashes(segment: Segment) -> None:
    """Checks that the list of hashes of a segment is there and intact."""
    # Reading it checks it.
    segment.stored_hashes  # noqa: B018


def scan(source: Source, limits: Limits, each: Callable[[Segment], None] = lambda _: None) -> Scan:
    """Reads all records. Of the segments only the headers are read.

    `each` is called for every complete segment. If it raises `Damaged` or `Torn`, the scan stops and reports that
    as the fault.
    """
    check_magic(source)
    found = Scan()
    while found.end < source.length and found.fault is None:
        try:
            found.step(source, limits, each)
        except (Damaged, Torn) as fault:
            # Other errors, such as an unknown version, do not mean that the archive is bad at this place.
            found.fault = fault
    return found


def check_magic(source: Source) -> None:
    """Checks that the source starts with the magic bytes of an archive."""
    start = source.read(0, min(len(MAGIC), source.length))
    if not MAGIC.startswith(start):
        raise no_archive(source.read(0, min(MOST, source.length)))
    if start != MAGIC:
        raise Torn(f"the archive is cut off after {len(start)} bytes, inside its first {len(MAGIC)}", offset=0)


#: How many bytes are searched for a later end mark. A sparse file can claim any length.
_MAX_SEARCH = 16 << 30


def last_commit(source: Source, limits: Limits) -> tuple[Directory, int, int]:
    """Finds the last committed end mark (SPEC 5.7). Returns its directory, its offset, and the end of its tail.

    Most archives end with it, so that one read is enough. The magic is then checked with the first header.
    Otherwise the headers are scanned from the start. A search backwards from the end could find bytes inside a
    tensor that look like an end mark; the scan never looks inside tensors.

    `Torn` if there is no end mark. `Damaged` if the scan stops at damage and an intact tail follows it. The
    earlier state is not returned then, because it would hide what was committed later.
    """
    end = read_end(source, source.length)
    if end is not None:
        return *end, source.length
    try:
        return _last_before(source, limits)
    except (Damaged, Torn):
        # During the scan, a writer may have undone a value and written another one. Committed bytes do not
        # change, so a second scan tells.
        if isinstance(source, FileSource):
            source.update_length()
        return _last_before(source, limits)


def _last_before(source: Source, limits: Limits) -> tuple[Directory, int, int]:
    """Finds the last end mark of a source that does not end with it."""
    found = scan(source, limits)
    found.check_undamaged(source, "`open(path, torn=True)` reads the segments before the damage")
    if found.vouched == len(MAGIC):
        raise found.error(source.length)
    end = read_end(source, found.vouched)
    if end is None:
        raise Damaged("the last end mark changed during reading", offset=found.vouched)
    return *end, found.vouched


def read_end(source: Source, length: int) -> tuple[Directory, int] | None:
    """Reads the end mark whose tail ends at position `length`. Returns its directory and its offset.

    `None` if no intact end mark and tail end there.
    """
    at = length - TAIL_LEN
    if at < len(MAGIC):
        return None
    start = max(length - _SUFFIX, 0)
    try:
        suffix = source.read(start, length - start)
        found = read_tail(suffix[at - start :], at)
        if found is None:
            return None
        if start == 0 and not suffix.startswith(MAGIC):
            raise no_archive(suffix)
        if found.mark < len(MAGIC) or found.length > MAX_RECORD[END]:
            return None
        gap, _ = tail(*found)
        if found.mark < start:
            suffix, start = source.read(found.mark, at - found.mark), found.mark
    except Shrunk:
        # A writer has cut off an unfinished value.
        return None
    item = suffix[found.mark - start : found.mark - start + found.length]
    if suffix[found.mark - start + found.length :][: len(gap)] != gap:
        return None
    try:
        opened(item, found.mark)
    except Damaged:
        return None
    return Directory.read(item, found.mark), found.mark


def tail_behind(source: Source, start: int, earliest: int) -> int | None:
    """Finds the first intact tail after `start` whose end mark is at `earliest` or later.

    Returns the offset of the end mark. If there is one, the archive is damaged and not torn.
    """
    while start + TAIL_LEN <= source.length:
        try:
            window = source.read(start, min(STEP, source.length - start))
        except Shrunk:
            return None
        at = window.find(TAIL_START)
        while at >= 0:
            found = intact_tail(window[at : at + TAIL_LEN], start + at)
            if found is not None and found.mark >= earliest:
                return found.mark
            at = window.find(TAIL_START, at + 1)
        # A tail may cross the border between two windows.
        start += len(window) - TAIL_LEN + 1
    return None


def complete(source: Source, entry: Entry, before: int, limits: Limits) -> Entry:
    """Adds the rows and the digest of a segment to its entry, if they can be read."""
    try:
        segment = Segment(source, 0, entry.offset, before, limits, entry=entry)
        rows = rows_of(segment.header.metadata)
        return entry._replace(rows=rows, digest=segment.find_digest())
    except (Error, OSError):
        return entry._replace(digest=None)


def _kind_at(source: Source, at: int) -> int | None:
    """The kind of the record at a position, from its first bytes; `None` if they are not the start of a record."""
    start = source.read(at, min(VERSION_LEN, source.length - at))
    check_version(start, at)
    try:
        head, total = record_length(start[:MAX_RECORD_HEAD], at)
    except Damaged:
        return None
    kind = kind_of(start[head:])
    if kind == BLOCK:
        raise Damaged("unexpected block of the directory", offset=at)
    if kind is not None:
        check_length(kind, total, at)
    return kind


def _read(source: Source, at: int, limits: Limits) -> bytes:
    if at == source.length:
        raise Torn("a block of the directory is missing", offset=at)
    check_version(source.read(at, min(VERSION_LEN, source.length - at)), at)
    return read_record(source, at, source.length, limits)
