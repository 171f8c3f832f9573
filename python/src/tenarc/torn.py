"""Scans an archive from its start (SPEC 5.7, 5.8).

This finds the last end mark if bytes follow it, and the intact part of a torn archive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .directory import MAGIC, TAIL_LEN, TAIL_START, Directory, Entry, read_tail
from .errors import Damaged, Torn
from .items import Items
from .options import Limits
from .saved import Segment
from .segment import BLOCK, END, MAX_RECORD_HEAD, check_version, expect, kind_of, opened, record_length
from .source import STEP, Shrunk, Source

#: Longer than any valid end mark.
_MAX_MARK = 256 << 10


@dataclass
class Scan:
    """The result of a scan: the intact part of an archive."""

    #: The end of the last complete segment, with its directory blocks and end mark.
    end: int = len(MAGIC)
    directory: Directory = field(default_factory=Directory)
    #: Offset and name of each complete segment.
    entries: list[Entry] = field(default_factory=list)
    #: Directory blocks that belong at `end` but are missing or wrong.
    missing: bytes = b""
    #: The end of the last end mark, or of the magic if there is none. Everything before it was committed.
    vouched: int = len(MAGIC)
    #: The segment at `end`, if its header is complete and the input ends before its body does.
    cut: Segment | None = None
    #: Whether the end mark at `end` is damaged, and not merely cut off by the end of the input.
    damaged_mark: bool = False
    #: Why the scan stopped, if it stopped before the end of the input.
    fault: Damaged | Torn | None = None

    def step(self, source: Source, limits: Limits, each: Callable[[Segment], None]) -> None:
        """Reads a segment or an end mark."""
        at = self.end
        if _kind_at(source, at) == END:
            # The end mark is determined by the segments before it.
            mark = self.directory.end(at)
            try:
                _expect(source, at, mark, "an end mark")
            except Damaged:
                self.damaged_mark = True
                raise
            self.end = self.vouched = at + len(mark)
            return
        segment = Segment(source, len(self.entries), at, source.length, limits)
        if segment.missing_bytes:
            self.cut = segment
            raise segment.cut_error()
        each(segment)
        self.entries.append((at, segment.name))
        self.end = segment.end
        self.missing = self.directory.add(at, segment.name, self.end)
        _expect(source, self.end, self.missing, "a block of the directory")
        self.end += len(self.missing)
        self.missing = b""

    @property
    def mark(self) -> int:
        """Where the next end mark belongs: after the last complete segment and its directory blocks."""
        return self.end + len(self.missing)

    def why(self) -> str:
        """The reason for the end of the intact part, in parentheses, for an error message."""
        return f" ({self.fault})" if isinstance(self.fault, Damaged) else ""

    def error(self, length: int) -> Torn:
        """The error for an archive of `length` bytes that does not end with an end mark."""
        what = "the archive has no end mark"
        if self.vouched > len(MAGIC):
            what = "more bytes follow the last end mark of the archive"
        found = f"{len(self.entries)} complete segments end at byte {self.end}, {length - self.end} bytes follow"
        advice = "`open(path, torn=True)` reads the segments, `recover` cuts off the rest"
        return Torn(f"{what}: {found}{self.why()}; {advice}", offset=self.end)


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
        raise Damaged("not a tenarc archive: it starts with other bytes", offset=0)
    if start != MAGIC:
        raise Torn(f"the archive is cut off after {len(start)} bytes, inside its first {len(MAGIC)}", offset=0)


#: How many bytes are searched for a later end mark. A sparse file can claim any length.
_MAX_SEARCH = 16 << 30


def last_commit(source: Source, limits: Limits) -> tuple[Directory, int, int]:
    """Finds the last end mark (SPEC 5.7). Returns its directory, its offset, and the end of its tail.

    Most archives end with it. Otherwise the headers are scanned from the start. A search backwards from the end
    could find bytes inside a tensor that look like an end mark; the scan never looks inside tensors.

    `Torn` if there is no end mark, or if the next end mark itself is damaged. `Damaged` if the scan stops at
    damage and an intact tail follows it. The earlier state is not returned then, because it would hide what was
    committed later.
    """
    check_magic(source)
    end = read_end(source, source.length)
    if end is not None:
        return *end, source.length
    try:
        return _last_before(source, limits)
    except (Damaged, Torn):
        # During the scan, a writer may have undone a value and written another one. Committed bytes do not
        # change, so a second scan tells.
        return _last_before(source, limits)


def _last_before(source: Source, limits: Limits) -> tuple[Directory, int, int]:
    """Finds the last end mark of a source that does not end with it."""
    found = scan(source, limits)
    # If only the end mark is bad, everything else may be intact: recovery can write it again.
    if found.vouched == len(MAGIC) or found.damaged_mark:
        raise found.error(source.length)
    # The rest of the file belongs to a cut segment, even if it looks like a tail.
    if found.cut is None:
        if source.length - found.end > _MAX_SEARCH:
            raise found.error(source.length)
        mark = tail_behind(source, found.end, found.mark)
        if mark == found.mark:
            raise found.error(source.length)
        if mark is not None:
            what = (
                f"the archive is damaged at byte {found.end}{found.why()}, and has a later end mark at byte {mark}"
            )
            raise Damaged(
                f"{what}; `open(path, torn=True)` reads the segments before the damage", offset=found.end
            )
    end = read_end(source, found.vouched)
    if end is None:
        raise Damaged("the last end mark changed during reading", offset=found.vouched)
    return *end, found.vouched


def read_end(source: Source, length: int) -> tuple[Directory, int] | None:
    """Reads the end mark that ends at position `length`. Returns its directory and its offset.

    `None` if no end mark ends there, also if a crash left the tail but not the whole end mark.
    """
    at = length - TAIL_LEN
    if at < len(MAGIC):
        return None
    try:
        mark = read_tail(source.read(at, TAIL_LEN), at)
    except Shrunk:
        # A writer has cut off an unfinished value.
        return None
    if mark is None:
        return None
    if at - mark > _MAX_MARK:
        what = f"expected an end mark of at most {_MAX_MARK} bytes, found {at - mark} bytes"
        raise Damaged(what, offset=mark)
    item = source.read(mark, at - mark)
    try:
        opened(item, mark)
    except Damaged:
        return None
    return Directory.read(item, mark), mark


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
            found = read_tail(window[at : at + TAIL_LEN], start + at)
            if found is not None and found >= earliest:
                return found
            at = window.find(TAIL_START, at + 1)
        # A tail may cross the border between two windows.
        start += len(window) - TAIL_LEN + 1
    return None


def _kind_at(source: Source, at: int) -> int | None:
    """The kind of the record at a position, from its first bytes; `None` if they are not the start of a record."""
    start = source.read(at, min(MAX_RECORD_HEAD + 5, source.length - at))
    try:
        head, _ = record_length(start[:MAX_RECORD_HEAD], at)
    except Damaged:
        return None
    kind = kind_of(start[head:])
    if kind == BLOCK:
        raise Damaged("unexpected block of the directory", offset=at)
    return kind


def _expect(source: Source, at: int, wanted: bytes, what: str) -> None:
    """Checks that these bytes are at a position. `Torn` if the source ends before they do."""
    found = source.read(at, min(len(wanted), source.length - at))
    if found == wanted:
        return
    if wanted.startswith(found):
        raise Torn(f"{what} is cut off", offset=at + len(found))
    head, _ = record_length(found[:MAX_RECORD_HEAD], at)
    check_version(Items(found[head:], at + head))
    expect(found, wanted, at, what)
