"""The directory of an archive (SPEC 5.6): blocks of 64 entries, end marks and tails."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import NoneType
from typing import Any, NamedTuple

import cbor2

from . import ext, items
from .errors import Damaged, Error
from .items import ARRAY, BYTES, UNSIGNED, Items, tag
from .options import DEFAULT_LIMITS
from .segment import BLOCK, END, MAX_NAME, digest, expect, opened, padding, read_name, record
from .tree import parse

MAGIC = bytes.fromhex("d9d9f8") + tag(int.from_bytes(b"TARC", "big"), b"\x43BOR")
BRANCHES = 64
TAIL_LEN = 42
#: The first bytes of every tail.
TAIL_START = b"\x58\x28TARCTAIL"
#: A tail is in one sector of this length, which storage writes as a whole.
_SECTOR = 512
#: The length of the shortest possible segment.
_MIN_SEGMENT = 30
_DIGEST_LEN = 16
#: Level n leads to 64^n segments, and positions have 63 bits, so there cannot be more levels.
_MAX_LEVELS = 10

#: The digest of a segment that an end mark lists: it is not in the end mark, so it is not known yet.
UNREAD = b""


class Entry(NamedTuple):
    """What the directory says of a segment."""

    offset: int
    name: str | None
    #: The length of its header's record, with the hash.
    header_length: int
    #: The number of elements of a sequence; `None` if it is something else or not known.
    rows: int | None = None
    #: The 16 bytes of its digest; `None` if it has none; `UNREAD`.
    digest: bytes | None = UNREAD

    def place(self) -> tuple[int, str | None, int]:
        """What a walk compares."""
        return self[:3]


class Link(NamedTuple):
    """What the directory says of one of its blocks."""

    offset: int
    #: The length of its record, with the hash.
    length: int


#: Reads the record at an offset, which must end at a position or earlier, and have a length.
ReadRecord = Callable[[int, int, int], bytes]
#: Writes or reads the block of a level that is full, at a position. Returns the length of its record.
EachBlock = Callable[[int, int], int]


@dataclass
class Directory:
    """The root of the directory: for each level the entries that are not in a block yet."""

    count: int = 0
    entries: list[Entry] = field(default_factory=list)
    levels: list[list[Link]] = field(default_factory=list)
    #: The extensions of the end mark that it was read from.
    ext: bytes = ext.EMPTY

    def add(self, entry: Entry) -> None:
        """Adds a segment. `fill` must follow."""
        self.count += 1
        self.entries.append(entry)

    def is_full(self) -> bool:
        """Whether the last segment fills a block."""
        return len(self.entries) == BRANCHES

    def fill(self, at: int, block: EachBlock) -> int:
        """Calls `block` for each block that is full and belongs at a position. Returns the end of the last one."""
        level, full = 0, self.is_full()
        while full:
            link = Link(at, block(level, at))
            (self.levels[level - 1] if level else self.entries).clear()
            if level == len(self.levels):
                self.levels.append([])
            self.levels[level].append(link)
            full = len(self.levels[level]) == BRANCHES
            at += link.length
            level += 1
        return at

    def block(self, level: int, at: int) -> bytes:
        """Encodes the block of a level for a position."""
        block = _Block([], self.levels[level - 1], ext.EMPTY) if level else _Block(self.entries, [], ext.EMPTY)
        return block.record(level, at)

    def copy(self) -> Directory:
        """A copy that can be changed."""
        return Directory(self.count, [*self.entries], [[*links] for links in self.levels])

    def check_block(self, item: bytes, level: int, at: int, *, full: bool) -> bytes:
        """Checks that the record at a position is that of the block of a level: see `check_entries`.

        Returns its extensions.
        """
        block = _read_block(item, level, at)
        if level == 0:
            check_entries(block.entries, self.entries, at, full=full)
        elif block.links != self.levels[level - 1]:
            raise Damaged("a block of the directory does not lead to the blocks before it", offset=at)
        return block.ext

    def check_end(self, item: bytes, at: int, *, full: bool) -> Directory:
        """Checks that the record at a position is that of the end mark: see `check_entries`.

        Returns what it says.
        """
        found = Directory.read(item, at, known=False)
        if (found.count, found.levels) != (self.count, self.levels):
            raise Damaged("an end mark does not lead to what is before it", offset=at)
        check_entries(found.entries, self.entries, at, full=full)
        return found

    def mark(self, at: int) -> bytes:
        """Encodes the end mark for a position."""
        entries = _segments(self.entries, in_block=False)
        return record(END, [items.head(UNSIGNED, self.count), entries, cbor2.dumps(self.levels), self.ext], at)

    def end(self, at: int) -> bytes:
        """Encodes the end mark for a position, with padding and the tail."""
        mark = self.mark(at)
        return mark + b"".join(tail(at, len(mark)))

    @classmethod
    def read(cls, item: bytes, at: int, *, known: bool = True) -> Directory:
        """Reads the directory from the record of an end mark. `known`: whether its extensions have to be known."""
        kind, fields = opened(item, at)
        if kind != END:
            raise Damaged("expected an end mark", offset=at)
        found = cls._decoded(item, fields.data, at)
        if found is None:
            found = cls._read(fields)
            expect(item, found.mark(at), at, "an end mark")
        count, entries, levels = found.count, found.entries, found.levels
        if len(levels) > _MAX_LEVELS or (levels and not levels[-1]):
            wanted = f"at most {_MAX_LEVELS} levels, the last of which is not empty"
            raise Damaged(f"expected {wanted} in an end mark, found {len(levels)}", offset=at)
        if len(entries) >= BRANCHES or any(len(links) >= BRANCHES for links in levels):
            raise Damaged(f"expected fewer than {BRANCHES} entries of each level in an end mark", offset=at)
        total = len(entries) + sum(len(links) * BRANCHES**n for n, links in enumerate(levels, 1))
        if total != count:
            raise Damaged(f"the end mark says {count} segments, its entries lead to {total}", offset=at)
        _check_room(count, at)
        _check_rising(entries, at)
        for links in levels:
            _check_rising(links, at)
        if known:
            ext.check(found.ext, "the end mark", at)
        return found

    @classmethod
    def _decoded(cls, item: bytes, content: bytes, at: int) -> Directory | None:
        """Decodes the content of an end mark fast. `None` if it is not encoded to the same again."""
        with contextlib.suppress(*_NOT_RIGHT):
            _, count, listed, levels, _ = parse(content, 0, DEFAULT_LIMITS).value
            found = cls(count, _entries(listed), [_decoded_links(links) for links in levels])
            return found if found.mark(at) == item else None
        return None

    @classmethod
    def _read(cls, fields: Items) -> Directory:
        """Reads the content of an end mark, with errors that say where it is wrong."""
        count = fields.definite(UNSIGNED, "number of segments")
        entries = _read_segments(fields, in_block=False)
        levels = [_read_links(fields) for _ in range(fields.count("levels of the directory"))]
        return cls(count, entries, levels, ext.read(fields))

    def segments(self, read: ReadRecord, at: int) -> Iterator[Entry]:
        """Reads all entries of level 0, in the order of the segments. `at` is the offset of the end mark."""
        before = 0
        for entry in self._all(read, at):
            if entry.offset <= before or entry.offset >= at:
                raise Damaged("directory: the offsets of the segments do not rise", offset=at)
            before = entry.offset
            yield entry

    def _all(self, read: ReadRecord, at: int) -> Iterator[Entry]:
        # The offsets of the blocks of each level have to rise.
        last = [0] * len(self.levels)

        def below(link: Link, level: int, before: int) -> Iterator[Entry]:
            if link.offset <= last[level]:
                raise Damaged("directory: the offsets of the blocks do not rise", offset=before)
            last[level] = link.offset
            block = _block_of(read, link, level, before)
            yield from block.entries
            for inner in block.links:
                yield from below(inner, level - 1, link.offset)

        for level in reversed(range(len(self.levels))):
            for link in self.levels[level]:
                yield from below(link, level, at)
        yield from self.entries

    def entry(self, number: int, read: ReadRecord, at: int) -> Entry:
        """Finds the entry of a segment, by its number. Reads one block of each level."""
        for level in reversed(range(len(self.levels))):
            size = BRANCHES ** (level + 1)
            place = number // size
            if place < len(self.levels[level]):
                link, before = self.levels[level][place], at
                number %= size
                for below in reversed(range(1, level + 1)):
                    links = _block_of(read, link, below, before).links
                    size //= BRANCHES
                    before, link = link.offset, links[number // size]
                    number %= size
                return _block_of(read, link, 0, before).entries[number]
            number -= len(self.levels[level]) * size
        return self.entries[number]


def check_entries(found: Sequence[Entry], wanted: Sequence[Entry], at: int, *, full: bool) -> None:
    """Checks that a record lists the segments before it.

    `full`: with rows and digests, which are not compared otherwise.
    """
    if [entry.place() for entry in found] != [entry.place() for entry in wanted]:
        raise Damaged("the directory does not list the segments before it", offset=at)
    if not full:
        return
    for one, other in zip(found, wanted, strict=True):
        where = f"the directory: the segment at byte {one.offset}"
        if one.rows != other.rows:
            raise Damaged(f"{where} has {_shown(other.rows)}, the directory says {_shown(one.rows)}", offset=at)
        if one.digest and one.digest != other.digest:
            digest = "no digest" if other.digest is None else f"the digest {other.digest.hex()}"
            raise Damaged(f"{where} has {digest}, the directory says {one.digest.hex()}", offset=at)


def _shown(rows: int | None) -> str:
    return "no rows" if rows is None else f"{rows} rows"


@dataclass
class _Block:
    entries: list[Entry]
    links: list[Link]
    ext: bytes

    def record(self, level: int, at: int) -> bytes:
        """Encodes the block for a position."""
        content = _links(self.links) if level else _segments(self.entries, in_block=True)
        return record(BLOCK, [items.head(UNSIGNED, level), content, self.ext], at)


def _block_of(read: ReadRecord, link: Link, level: int, before: int) -> _Block:
    """Reads a block of a level. `before` is the offset of the record that refers to it."""
    block = _read_block(read(link.offset, before, link.length), level, link.offset)
    ext.check(block.ext, "a block of the directory", link.offset)
    return block


def _read_block(item: bytes, level: int, at: int) -> _Block:
    kind, fields = opened(item, at)
    if kind != BLOCK:
        raise Damaged("expected a block of the directory", offset=at)
    _check_room(BRANCHES ** (level + 1), at)
    block = _decoded_block(item, fields.data, level, at)
    if block is None:
        block = _block_by_item(fields, level, at)
        expect(item, block.record(level, at), at, "a block of the directory")
    count = len(block.entries or block.links)
    if count != BRANCHES:
        raise Damaged(f"expected a block of {BRANCHES} entries, found {count}", offset=at)
    _check_rising(block.entries or block.links, at)
    return block


def _decoded_block(item: bytes, content: bytes, level: int, at: int) -> _Block | None:
    """Decodes the content of a block fast. `None` if it is not encoded to the same again."""
    with contextlib.suppress(*_NOT_RIGHT):
        _, _, listed, _ = parse(content, 0, DEFAULT_LIMITS).value
        entries, links = ([], _decoded_links(listed)) if level else (_entries(listed), [])
        block = _Block(entries, links, ext.EMPTY)
        return block if block.record(level, at) == item else None
    return None


def _block_by_item(fields: Items, level: int, at: int) -> _Block:
    """Reads the content of a block, with errors that say where it is wrong."""
    found = fields.definite(UNSIGNED, "level")
    if found != level:
        raise Damaged(f"expected a block of level {level}, found one of level {found}", offset=at)
    entries = [] if level else _read_segments(fields, in_block=True)
    links = _read_links(fields) if level else []
    return _Block(entries, links, ext.read(fields))


def _check_room(segments: int, at: int) -> None:
    """Checks that there is room for this many segments before a position (SPEC 5.6)."""
    if segments > (at - len(MAGIC)) // _MIN_SEGMENT:
        raise Damaged(f"directory: {segments} segments do not fit before byte {at}", offset=at)


def _check_rising(entries: Sequence[Entry] | Sequence[Link], before: int) -> None:
    """Checks that offsets rise, and that they are lower than the offset of the record that they are in."""
    for first, second in pairwise([*(entry.offset for entry in entries), before]):
        if first >= second:
            raise Damaged("directory: the offsets do not rise", offset=before)


def _links(links: list[Link]) -> bytes:
    # cbor2 writes the shortest heads and definite lengths, and is faster.
    return cbor2.dumps(links)


def _read_links(fields: Items) -> list[Link]:
    found = []
    for _ in range(fields.count("blocks of the directory")):
        _expect_items(fields, 2)
        offset = fields.definite(UNSIGNED, "offset")
        found.append(Link(offset, fields.definite(UNSIGNED, "length of a block")))
    return found


def _expect_items(fields: Items, wanted: int) -> None:
    start = fields.at
    found = fields.definite(ARRAY, "entry of the directory")
    if found != wanted:
        raise fields.damaged(f"expected an entry of {wanted} items, found {found}", start)


def _segments(entries: list[Entry], *, in_block: bool) -> bytes:
    """Encodes a list of segments: their different names, and the entries, which refer to them."""
    names: dict[str, int] = {}
    written = []
    for offset, name, header_length, rows, known in entries:
        number = None if name is None else names.setdefault(name, len(names))
        fields = (offset, number, header_length, rows)
        written.append((*fields, known or None) if in_block else fields)
    return cbor2.dumps(((*names,), written))


#: What decoding something else than an end mark or a block can raise.
_NOT_RIGHT = (Error, cbor2.CBOREncodeError, AttributeError, IndexError, OverflowError, TypeError, ValueError)


def _entries(listed: Any) -> list[Entry]:
    """The entries of a decoded list of segments."""
    names, found = listed
    if any(len(name.encode()) > MAX_NAME for name in names):
        raise ValueError
    entries = [Entry(entry[0], None if entry[1] is None else names[entry[1]], *entry[2:]) for entry in found]
    for offset, _, header_length, rows, known in entries:
        if type(offset) is not int or type(header_length) is not int or type(rows) not in (int, NoneType):
            raise TypeError
        if known and (type(known) is not bytes or len(known) != _DIGEST_LEN):
            raise TypeError
    return entries


def _decoded_links(links: Any) -> list[Link]:
    if not all(type(number) is int for link in links for number in link):
        raise TypeError
    return [Link(*link) for link in links]


def _read_segments(fields: Items, *, in_block: bool) -> list[Entry]:
    """Reads a list of segments. What is left to check is whether it is what `_segments` encodes."""
    _expect_items(fields, 2)
    names = [read_name(fields) for _ in range(fields.count("names of segments"))]
    found = []
    for _ in range(fields.count("entries of the directory")):
        _expect_items(fields, 5 if in_block else 4)
        offset = fields.definite(UNSIGNED, "offset")
        start, number = fields.at, _read_number(fields, "name")
        if number is not None and number >= len(names):
            raise fields.damaged(f"expected one of {len(names)} names, found the number {number}", start)
        header_length = fields.definite(UNSIGNED, "length of a header")
        rows = _read_number(fields, "rows")
        digest = _read_digest(fields) if in_block else UNREAD
        found.append(Entry(offset, None if number is None else names[number], header_length, rows, digest))
    return found


def _read_number(fields: Items, what: str) -> int | None:
    return None if fields.take_null() else fields.definite(UNSIGNED, what)


def _read_digest(fields: Items) -> bytes | None:
    if fields.take_null():
        return None
    start = fields.at
    length = fields.definite(BYTES, "digest")
    if length != _DIGEST_LEN:
        raise fields.damaged(f"expected a digest of {_DIGEST_LEN} bytes, found {length}", start)
    return fields.take(length, "digest")


class Tail(NamedTuple):
    """What a tail says: where the record of its end mark is, and its length."""

    mark: int
    length: int


def tail(mark: int, length: int) -> tuple[bytes, bytes]:
    """What follows an end mark: padding, and the tail, which never crosses a multiple of 512."""
    end = mark + length
    behind = end % _SECTOR
    gap = padding(0 if behind <= _SECTOR - TAIL_LEN else _SECTOR - behind)
    at = end + len(gap)
    content = TAIL_START + b"".join(number.to_bytes(8, "big") for number in (mark, length, at))
    return gap, content + digest(content, at)


def intact_tail(found: bytes, at: int) -> Tail | None:
    """Reads the tail at a position; `None` if this is not an intact tail. Its end mark can be anywhere."""
    content, mark, length, own = (
        found[:-8],
        *(int.from_bytes(found[start : start + 8], "big") for start in (10, 18, 26)),
    )
    is_intact = found.startswith(TAIL_START) and own == at and found[-8:] == digest(content, at)
    return Tail(mark, length) if is_intact else None


def read_tail(found: bytes, at: int) -> Tail | None:
    """Reads the tail at a position; `None` if this is not an intact tail, or not behind its end mark."""
    intact = intact_tail(found, at)
    if intact is None or not 0 < intact.length <= at - intact.mark:
        return None
    gap, _ = tail(*intact)
    return intact if intact.mark + intact.length + len(gap) == at else None
