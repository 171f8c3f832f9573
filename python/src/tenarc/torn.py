"""What is whole of an archive that was cut or never finished (SPEC 5.8)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .directory import MAGIC, TAIL_LEN, TAIL_START, Directory, Entry, read_tail
from .errors import Damaged, Torn
from .items import Items
from .options import Limits
from .saved import CutSegment, Segment
from .segment import BLOCK, END, MAX_RECORD_HEAD, check_version, expect, kind_of, opened, record_length
from .source import CHUNK, Source

#: More than any end mark takes.
_MAX_MARK = 256 << 10


@dataclass
class Scan:
    """What an archive is from its start up to where it is none any more."""

    #: Behind the last whole segment, its blocks of the directory, and its end mark.
    end: int = len(MAGIC)
    directory: Directory = field(default_factory=Directory)
    entries: list[Entry] = field(default_factory=list)
    #: Blocks of the directory that should stand at `end`, and do not.
    missing: bytes = b""
    #: Behind the last end mark, or the magic: what stands before was vouched for.
    vouched: int = len(MAGIC)
    #: Whether a segment stands at `end` whose header is whole, and which the input ends in.
    cut: bool = False
    #: Whether an end mark stands at `end` that is damaged, rather than cut by the end of the input.
    damaged_mark: bool = False
    #: Why it ends there, if not at the end of the input.
    fault: Damaged | Torn | None = None

    def step(self, source: Source, limits: Limits, each: Callable[[Segment], None]) -> None:
        """Goes over a segment or an end mark."""
        at = self.end
        if _kind_at(source, at) == END:
            # What it says follows from what stands before it.
            mark = self.directory.end(at)
            try:
                _expect(source, at, mark, "an end mark")
            except Damaged:
                self.damaged_mark = True
                raise
            self.end = self.vouched = at + len(mark)
            return
        try:
            segment = Segment(source, len(self.entries), at, source.length, limits)
        except CutSegment:
            self.cut = True
            raise
        each(segment)
        self.entries.append((at, segment.name))
        self.end = segment.end
        self.missing = self.directory.add(at, segment.name, self.end)
        _expect(source, self.end, self.missing, "a block of the directory")
        self.end += len(self.missing)
        self.missing = b""

    def error(self, length: int) -> Torn:
        """The missing end of an archive of so many bytes as an error."""
        why = f" ({self.fault})" if isinstance(self.fault, Damaged) else ""
        what = (
            f"{len(self.entries)} whole values end at byte {self.end}, with {length - self.end} bytes behind them"
        )
        advice = "`open(path, torn=True)` reads the values, `recover` cuts the rest off"
        return Torn(f"the archive has no end mark: {what}{why}; {advice}", offset=self.end)


def check_hashes(segment: Segment) -> None:
    """That the hashes of a segment's buffers are there and intact."""
    segment.hashes  # noqa: B018 - read to be checked


def scan(source: Source, limits: Limits, each: Callable[[Segment], None] = lambda _: None) -> Scan:
    """Walks over all headers. Calls `each` with every complete segment; a fault that it raises ends the walk."""
    check_magic(source)
    found = Scan()
    while found.end < source.length and found.fault is None:
        try:
            found.step(source, limits, each)
        except (Damaged, Torn) as fault:
            # Others say nothing about the archive, or not that it ends here.
            found.fault = fault
    return found


def check_magic(source: Source) -> None:
    """Whether it is an archive."""
    start = source.read(0, min(len(MAGIC), source.length))
    if not MAGIC.startswith(start):
        raise Damaged("no archive of tenarc: it begins with other bytes", offset=0)
    if start != MAGIC:
        raise Torn(f"an archive of {len(start)} bytes: cut in its first bytes", offset=0)


#: More than is searched for a later end mark: sparse files may claim to be of any length.
_MAX_SEARCH = 16 << 30


def last_commit(source: Source, limits: Limits) -> tuple[Directory, int, int]:
    """The directory of the last end mark, where that stands, and where its tail ends (SPEC 5.7).

    Where bytes follow it all headers are walked over. A search from the end would take an end mark inside a tensor
    for one. An earlier state could hide what was committed since: damage behind an end mark is an error.
    """
    check_magic(source)
    end = read_end(source, source.length)
    if end is not None:
        return *end, source.length
    found = scan(source, limits)
    if found.vouched == len(MAGIC) or found.damaged_mark:
        raise found.error(source.length)
    if not found.cut:
        if source.length - found.end > _MAX_SEARCH:
            raise found.error(source.length)
        mark = found.end + len(found.missing)
        tail = tail_behind(source, found.end, mark - 1)
        if tail is not None:
            what = f"the archive is damaged at byte {found.end}, but a later end mark has its tail at byte {tail}"
            raise Damaged(f"{what}; `open(path, torn=True)` reads the values before the damage", offset=found.end)
    end = read_end(source, found.vouched)
    if end is None:
        raise Damaged("the last end mark changed while it was read", offset=found.vouched)
    return *end, found.vouched


def read_end(source: Source, length: int) -> tuple[Directory, int] | None:
    """The directory of an archive that ends at a position, and where its end mark stands.

    `None` where no end mark stands there. A crash may leave the end of an end mark and not its start.
    """
    at = length - TAIL_LEN
    if at < len(MAGIC):
        return None
    mark = read_tail(source.read(at, TAIL_LEN), at)
    if mark is None:
        return None
    if at - mark > _MAX_MARK:
        raise Damaged(f"an end mark of {at - mark} bytes", offset=mark)
    item = source.read(mark, at - mark)
    try:
        opened(item, mark)
    except Damaged:
        return None
    return Directory.read(item, mark), mark


def tail_behind(source: Source, start: int, mark: int) -> int | None:
    """Where behind `start` an intact tail is, so that what stands before it is damaged rather than torn.

    That of an end mark at `mark` or before does not count: no segment stands between.
    """
    while start + TAIL_LEN <= source.length:
        window = source.read(start, min(CHUNK, source.length - start))
        at = window.find(TAIL_START)
        while at >= 0:
            found = read_tail(window[at : at + TAIL_LEN], start + at)
            if found is not None and found > mark:
                return start + at
            at = window.find(TAIL_START, at + 1)
        # Tails may lie across windows.
        start += len(window) - TAIL_LEN + 1
    return None


def _kind_at(source: Source, at: int) -> int | None:
    """Of which kind the record at a position says it is; only its start is read."""
    start = source.read(at, min(MAX_RECORD_HEAD + 5, source.length - at))
    try:
        head, _ = record_length(start[:MAX_RECORD_HEAD], at)
    except Damaged:
        return None
    kind = kind_of(start[head:])
    if kind == BLOCK:
        raise Damaged("a block of the directory where none belongs", offset=at)
    return kind


def _expect(source: Source, at: int, wanted: bytes, what: str) -> None:
    """That certain bytes stand at a position."""
    found = source.read(at, min(len(wanted), source.length - at))
    if found == wanted:
        return
    if wanted.startswith(found):
        raise Torn(f"{what} that is cut short", offset=at + len(found))
    head, _ = record_length(found[:MAX_RECORD_HEAD], at)
    check_version(Items(found[head:], at + head))
    expect(found, wanted, at, what)
