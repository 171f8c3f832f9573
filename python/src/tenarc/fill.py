"""Finds the damaged chunks of segments, and says what was in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import xxhash

from . import dtypes
from .chunks import HASH_LEN, Hashes
from .directory import Entry
from .errors import Damaged, Torn
from .options import DEFAULT_LIMITS
from .salvage import Salvage, chunks_of, pieces
from .saved import Segment, TensorInfo, read_record
from .segment import HASH_ITEM, hash_list
from .source import Source
from .torn import Scan, check_magic, read_end, scan, tail_behind


class FilledChunk(NamedTuple):
    """A damaged chunk of a tensor."""

    #: The number of the chunk in its buffer.
    number: int
    #: Which bytes of the buffer it has, after it was decompressed.
    bytes: range
    #: Which indices along the first dimension of the first of the tensors it touches. `None` if the tensor has no
    #: dimension, or if its order is F.
    rows: range | None


class Filled(NamedTuple):
    """A tensor of which some bytes were damaged."""

    #: The tensor. There are several if equal tensors are stored once.
    tensors: list[TensorInfo]
    #: What is zero in the new file.
    chunks: list[FilledChunk]


class Mended(NamedTuple):
    """A damaged value, as `recover_to` with `fill` wrote it."""

    #: The number of the value in the new file.
    number: int
    #: The name of the value, if it has one.
    name: str | None
    #: The tensors, and the byte strings in buffers, of which damaged chunks became zeros.
    filled: list[Filled]
    #: The paths of sequences that are stored as columns and in which lengths, flags, codes or texts of rows are
    #: damaged. Zeros in their place would be other rows. So the new value has *undefined* in place of the whole
    #: sequence, which is read as `None`.
    missing: list[str]


class Lost(NamedTuple):
    """A value that is not in the new file, because its header is damaged."""

    #: The number of the value in the old file.
    number: int
    #: Its name in the directory.
    name: str | None
    #: What is wrong with the header.
    error: str


@dataclass
class Places:
    """Where the segments of an archive are that may be torn and damaged."""

    entries: list[Entry]
    #: Where the segments end.
    end: int
    #: The segment behind them that was cut.
    cut: Segment | None
    #: How many bytes follow them.
    dropped: int

    @classmethod
    def of(cls, source: Source) -> Places:
        check_magic(source)
        end = read_end(source, source.length)
        if end is not None:
            directory, mark = end

            def read(at: int, before: int) -> bytes:
                return read_record(source, at, before, DEFAULT_LIMITS)

            return cls([*directory.segments(read, mark)], mark, None, 0)
        found = scan(source, DEFAULT_LIMITS)
        check_behind(source, found)
        return cls(found.entries, found.end, found.cut, source.length - found.end)

    def segments(self, source: Source) -> Iterator[Segment | Lost]:
        """The segments, in order."""
        before = 0
        for number, (offset, name) in enumerate(self.entries):
            if offset < before:
                what = f"directory: segment {number} starts inside of the one before it"
                raise Damaged(what, offset=offset)
            try:
                segment = Segment(source, number, offset, self.end, DEFAULT_LIMITS)
                if segment.missing_bytes:
                    raise segment.cut_error()
            except (Damaged, Torn) as error:
                yield Lost(number, name, str(error))
            else:
                before = segment.end
                yield segment


def check_behind(source: Source, found: Scan) -> None:
    """Checks that no committed segments follow what was scanned."""
    # The rest of the file belongs to a cut segment, even if it looks like a tail. An intact tail of the end mark
    # at this very place is not a sign of lost segments: only a later end mark is.
    mark = None if found.cut is not None else tail_behind(source, found.end, found.mark + 1)
    if mark is not None:
        why = "" if found.fault is None else f" ({found.fault})"
        what = f"the archive is damaged{why}, and has a later end mark at byte {mark}"
        raise Damaged(f"{what}: cutting it off here would lose what follows", offset=found.end)


def mend(source: Source, segment: Segment, number: int) -> tuple[Salvage, Mended | None]:
    """What is written in place of a segment, which becomes the segment with this number, and the report.

    There is no report if nothing is damaged.
    """
    damaged, hashes = _damaged_chunks(source, segment)
    everything = set(range(len(segment.header.lengths)))
    if not damaged:
        return Salvage(source, segment, DEFAULT_LIMITS, everything, hashes=hashes), None
    held = _Held(segment, damaged)
    filled = []
    for buffer, chunks in sorted(damaged.items()):
        if not held.others[buffer]:
            payloads = held.payloads.get(buffer, [])
            first = payloads[0] if payloads else None
            filled.append(Filled([info for info, _ in payloads], [*_filled(segment, buffer, chunks, first)]))
    salvage = Salvage(
        source, segment, DEFAULT_LIMITS, {n for n in everything if not held.others[n]}, damaged, hashes
    )
    # Each buffer of a sequence that is left out is listed.
    missing = list(dict.fromkeys(info.path for info in salvage.report().missing))
    return salvage, Mended(number, segment.name, filled, missing)


def _damaged_chunks(source: Source, segment: Segment) -> tuple[dict[int, set[int]], Hashes | None]:
    """Finds the damaged chunks of a segment, by their buffers. Also returns the hashes of what is there.

    If the list of hashes is damaged too, a chunk is good if its hash is in the right place of the list.
    """
    header = segment.header
    if not header.checksums or not header.lengths:
        return {}, None
    found = b"".join(
        _hash(source, chunk.stored)
        for number in range(len(header.lengths))
        for chunk in chunks_of(segment, number)
    )
    length = header.hashes_length()
    at = segment.end - length
    header.check_hashes_length(DEFAULT_LIMITS, at)
    stored = source.read(at, length)
    computed, expected = (
        Hashes(content, header.lengths, header.packed, header.chunk_len, "the archive")
        for content in (found, stored[-HASH_ITEM - len(found) : -HASH_ITEM])
    )
    damaged: dict[int, set[int]] = {}
    # If the hash over the list of the computed hashes is right, at most the list is damaged.
    if hash_list(found, segment.seed)[-HASH_ITEM:] == stored[-HASH_ITEM:]:
        return damaged, computed
    for number in range(len(header.lengths)):
        one, other = computed.of_chunks(number), expected.of_chunks(number)
        starts = range(0, len(one), HASH_LEN)
        differing = {at // HASH_LEN for at in starts if one[at : at + HASH_LEN] != other[at : at + HASH_LEN]}
        if differing:
            damaged[number] = differing
    return damaged, computed


def _hash(source: Source, place: range) -> bytes:
    hasher = xxhash.xxh3_64()
    for piece in pieces(source, place):
        hasher.update(piece)
    return hasher.digest()


class _Held:
    """What is in the damaged buffers."""

    def __init__(self, segment: Segment, damaged: dict[int, set[int]]) -> None:
        #: The tensors, sequences of numbers, byte strings and columns that a buffer is. Of a column in several
        #: buffers, the rows that are in this one.
        self.payloads: dict[int, list[tuple[TensorInfo, range | None]]] = {}
        #: For each buffer, how many references in columns are to something else, such as lengths of rows.
        self.others: Counter[int] = Counter()
        for place, found in segment.in_buffers():
            number = found.buffer
            if number not in damaged:
                continue
            if place.in_columns:
                self.others[number] += 1
            else:
                self.payloads.setdefault(number, []).append((TensorInfo.of(place.path(), found), None))
        for number, info, rows in segment.column_pieces():
            if number in damaged:
                self.payloads.setdefault(number, []).append((info, rows))
                self.others[number] -= 1


def _filled(
    segment: Segment, number: int, chunks: set[int], first: tuple[TensorInfo, range | None] | None
) -> Iterator[FilledChunk]:
    length, chunk_len = segment.header.lengths[number], segment.header.chunk_len
    for index in sorted(chunks):
        found = range(index * chunk_len, min((index + 1) * chunk_len, length))
        yield FilledChunk(index, found, None if first is None else _rows(*first, length, found))


def _rows(info: TensorInfo, part: range | None, length: int, found: range) -> range | None:
    """The rows of a tensor with these bytes of the buffer, which has `length` bytes."""
    if part is None:
        if not info.shape or info.order != "C" or info.dtype not in dtypes.BY_NAME:
            return None
        part = range(info.shape[0])
    first, last = (at * len(part) for at in (found.start, found.stop))
    return range(part.start + first // length, part.start - -last // length)
