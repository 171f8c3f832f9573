"""The directory of an archive (SPEC 5.6): blocks of 64 entries, end marks and tails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from . import items
from .errors import Damaged
from .items import UNSIGNED, Items, tag
from .segment import BLOCK, END, digest, expect, opened, read_name, record

MAGIC = bytes.fromhex("d9d9f8") + tag(int.from_bytes(b"TARC", "big"), b"\x43BOR")
BRANCHES = 64
TAIL_LEN = 34
#: The first bytes of every tail.
TAIL_START = b"\x58\x20TARCTAIL"
#: The length of the shortest possible segment.
_MIN_SEGMENT = 29
#: Level n leads to 64^n segments, and positions have 63 bits, so there cannot be more levels.
_MAX_LEVELS = 10

#: An entry of level 0: the offset and the name of a segment.
Entry = tuple[int, str | None]
#: Reads the record at an offset, which must end at a position or earlier.
ReadRecord = Callable[[int, int], bytes]


@dataclass
class Directory:
    """The root of the directory: for each level the entries that are not in a block yet."""

    count: int = 0
    entries: list[Entry] = field(default_factory=list)
    levels: list[list[int]] = field(default_factory=list)

    def add(self, offset: int, name: str | None, at: int) -> bytes:
        """Adds a segment that ends at `at`. Returns the blocks that are full now, encoded for that position."""
        self.count += 1
        self.entries.append((offset, name))
        if len(self.entries) < BRANCHES:
            return b""
        written = _block(0, [*map(_entry, self.entries)], at)
        self.entries.clear()
        self._push(0, at)
        for level, offsets in enumerate(self.levels, 1):
            if len(offsets) < BRANCHES:
                break
            place = at + len(written)
            written += _block(level, [items.head(UNSIGNED, offset) for offset in offsets], place)
            offsets.clear()
            self._push(level, place)
        return written

    def _push(self, level: int, offset: int) -> None:
        if level == len(self.levels):
            self.levels.append([])
        self.levels[level].append(offset)

    def end(self, at: int) -> bytes:
        """Encodes the end mark and the tail for a position."""
        mark = self._mark(at)
        place = at + len(mark)
        tail = TAIL_START + at.to_bytes(8, "big") + place.to_bytes(8, "big")
        return mark + tail + digest(tail, place)

    def _mark(self, at: int) -> bytes:
        levels = [items.array([items.head(UNSIGNED, offset) for offset in offsets]) for offsets in self.levels]
        entries = items.array([*map(_entry, self.entries)])
        return record(END, [items.head(UNSIGNED, self.count), entries, items.array(levels)], at)

    @classmethod
    def read(cls, item: bytes, at: int) -> Directory:
        """Reads the directory from the record of an end mark."""
        kind, fields = opened(item, at)
        if kind != END:
            raise Damaged("expected an end mark", offset=at)
        count = fields.definite(UNSIGNED, "number of segments")
        entries = [_read_entry(fields) for _ in range(fields.count("entries"))]
        depth = fields.count("levels of the directory")
        if depth > _MAX_LEVELS:
            raise fields.damaged(f"expected at most {_MAX_LEVELS} levels of the directory, found {depth}")
        levels = [
            [fields.definite(UNSIGNED, "offset") for _ in range(fields.count("offsets of blocks"))]
            for _ in range(depth)
        ]
        found = cls(count, entries, levels)
        expect(item, found._mark(at), at, "an end mark")
        if len(entries) >= BRANCHES or any(len(offsets) >= BRANCHES for offsets in levels):
            raise Damaged(f"expected fewer than {BRANCHES} entries of each level in an end mark", offset=at)
        total = len(entries) + sum(len(o) * BRANCHES**n for n, o in enumerate(levels, 1))
        if total != count:
            raise Damaged(f"the end mark says {count} segments, its entries lead to {total}", offset=at)
        _check_room(count, at)
        _check_rising([offset for offset, _ in entries], at)
        for offsets in levels:
            _check_rising(offsets, at)
        return found

    def segments(self, read: ReadRecord, at: int) -> Iterator[Entry]:
        """Reads all entries of level 0, in the order of the segments. `at` is the offset of the end mark."""
        before = 0
        for entry in self._all(read, at):
            if entry[0] <= before or entry[0] >= at:
                raise Damaged("directory: the offsets of the segments do not rise", offset=at)
            before = entry[0]
            yield entry

    def _all(self, read: ReadRecord, at: int) -> Iterator[Entry]:
        for level in reversed(range(len(self.levels))):
            for offset in self.levels[level]:
                yield from _read_block(read, offset, level, at)
        yield from self.entries

    def entry(self, number: int, read: ReadRecord, at: int) -> Entry:
        """Finds the entry of a segment, by its number. Reads one block of each level."""
        for level in reversed(range(len(self.levels))):
            size = BRANCHES ** (level + 1)
            place = number // size
            if place < len(self.levels[level]):
                offset, before = self.levels[level][place], at
                number %= size
                for below in reversed(range(1, level + 1)):
                    offsets = _block_of(read, offset, below, before).offsets
                    size //= BRANCHES
                    before, offset = offset, offsets[number // size]
                    number %= size
                return _block_of(read, offset, 0, before).entries[number]
            number -= len(self.levels[level]) * size
        return self.entries[number]


@dataclass
class _Block:
    entries: list[Entry]
    offsets: list[int]


def _block_of(read: ReadRecord, offset: int, level: int, before: int) -> _Block:
    """Reads the block of a level at an offset. `before` is the offset of the record that refers to it."""
    item = read(offset, before)
    kind, fields = opened(item, offset)
    if kind != BLOCK:
        raise Damaged("expected a block of the directory", offset=offset)
    found = fields.definite(UNSIGNED, "level"), fields.count("entries of a block")
    if found != (level, BRANCHES):
        raise Damaged(f"expected a block of level {level} with {BRANCHES} entries", offset=offset)
    _check_room(BRANCHES ** (level + 1), offset)
    block = _Block([], [])
    if level == 0:
        block.entries = [_read_entry(fields) for _ in range(BRANCHES)]
        expect(item, _block(0, [*map(_entry, block.entries)], offset), offset, "a block")
        _check_rising([place for place, _ in block.entries], offset)
    else:
        block.offsets = [fields.definite(UNSIGNED, "offset") for _ in range(BRANCHES)]
        heads = [items.head(UNSIGNED, place) for place in block.offsets]
        expect(item, _block(level, heads, offset), offset, "a block")
        _check_rising(block.offsets, offset)
    return block


def _read_block(read: ReadRecord, offset: int, level: int, before: int) -> Iterator[Entry]:
    block = _block_of(read, offset, level, before)
    yield from block.entries
    for below in block.offsets:
        yield from _read_block(read, below, level - 1, offset)


def _check_room(segments: int, at: int) -> None:
    """Checks that there is room for this many segments before a position (SPEC 5.6)."""
    if segments > (at - len(MAGIC)) // _MIN_SEGMENT:
        raise Damaged(f"directory: {segments} segments do not fit before byte {at}", offset=at)


def _check_rising(offsets: list[int], before: int) -> None:
    """Checks that offsets rise, and that they are lower than the offset of the record that they are in."""
    for first, second in pairwise([*offsets, before]):
        if first >= second:
            raise Damaged("directory: the offsets do not rise", offset=before)


def _block(level: int, entries: list[bytes], at: int) -> bytes:
    return record(BLOCK, [items.head(UNSIGNED, level), items.array(entries)], at)


def _entry(entry: Entry) -> bytes:
    offset, name = entry
    return items.array([items.head(UNSIGNED, offset), items.text_or_null(name)])


def _read_entry(fields: Items) -> Entry:
    if fields.count("entry of the directory") != 2:
        raise fields.damaged("expected the offset and name of a segment")
    return fields.definite(UNSIGNED, "offset"), read_name(fields)


def read_tail(found: bytes, at: int) -> int | None:
    """Reads the offset of the end mark from its tail at a position; `None` if this is not an intact tail."""
    mark = int.from_bytes(found[10:18], "big")
    tail = TAIL_START + found[10:18] + at.to_bytes(8, "big")
    if found != tail + digest(tail, at) or mark >= at:
        return None
    return mark
