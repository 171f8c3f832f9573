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
from .torn import check_hashes, check_magic, read_end, scan


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

            def read(at: int, before: int, length: int) -> bytes:
                return read_record(source, at, before, DEFAULT_LIMITS, length)

            return cls([*directory.segments(read, mark)], mark, None, 0)
        found = scan(source, DEFAULT_LIMITS)
        found.check_nothing_follows(source)
        found.check_readable()
        return cls(found.entries, found.end, found.cut, source.length - found.keep)

    def segments(self, source: Source) -> Iterator[Segment | Lost]:
        """The segments, in order."""
        before = 0
        for number, (offset, name, *_) in enumerate(self.entries):
            if offset < before:
                what = f"directory: segment {number} starts inside of the one before it"
                raise Damaged(what, offset=offset)
            try:
                segment = Segment(source, number, offset, self.end, DEFAULT_LIMITS)
                if segment.missing_bytes:
                    raise segment.cut_error()
                if segment.header.algorithm is not None:
                    # The hashes are copied.
                    check_hashes(segment)
            except (Damaged, Torn) as error:
                yield Lost(number, name, str(error))
            else:
                before = segment.end
                yield segment


def mend(source: Source, segment: Segment, number: int) -> tuple[Salvage, Mended | None]:
    """What is written in place of a segment, which becomes the segment with this number, and the report.

    There is no report if nothing is damaged.
    """
    segment.header.check_extensions(segment.offset)
    damaged, lost, hashes = _damaged_chunks(source, segment)
    everything = set(range(len(segment.header.lengths)))
    if not damaged and not lost:
        return Salvage(source, segment, DEFAULT_LIMITS, everything, hashes=hashes), None
    held = _Held(segment, damaged)
    filled = []
    for buffer, chunks in sorted(damaged.items()):
        if not held.others[buffer]:
            payloads = held.payloads.get(buffer, [])
            first = payloads[0] if payloads else None
            filled.append(Filled([info for info, _ in payloads], [*_filled(segment, buffer, chunks, first)]))
    salvage = Salvage(
        source, segment, DEFAULT_LIMITS, {n for n in everything - lost if not held.others[n]}, damaged, hashes
    )
    # Each buffer of a sequence that is left out is listed.
    missing = list(dict.fromkeys(info.path for info in salvage.report().missing))
    return salvage, Mended(number, segment.name, filled, missing)


def _damaged_chunks(source: Source, segment: Segment) -> tuple[dict[int, set[int]], set[int], Hashes | None]:
    """Finds the damaged chunks of a segment, by their buffers. Also returns the hashes of what is there.

    If the list of hashes is damaged too, a chunk is good if its hash is in the right place of the list. The hashes
    of buffers elsewhere are lost then: the second result are these buffers.
    """
    header = segment.header
    if not header.checksums or not header.lengths:
        return {}, set(), None
    if header.algorithm is not None:
        return {}, set(), segment.stored_hashes
    length = header.hashes_length()
    at = segment.end - length
    header.check_hashes_length(DEFAULT_LIMITS, at)
    stored = source.read(at, length)
    content = stored[len(stored) - HASH_ITEM - header.hash_bytes : -HASH_ITEM]
    expected = Hashes(content, header.lengths, header.packed, header.chunk_len, "the archive")
    found = b"".join(
        expected.of_chunks(number)
        if number in header.elsewhere
        else b"".join(_hash(source, chunk.stored) for chunk in chunks_of(segment, number))
        for number in range(len(header.lengths))
    )
    computed = Hashes(found, header.lengths, header.packed, header.chunk_len, "the archive")
    damaged: dict[int, set[int]] = {}
    # If the hash over the list of the computed hashes is right, at most the list is damaged.
    if hash_list(found, segment.seed)[-HASH_ITEM:] == stored[-HASH_ITEM:]:
        return damaged, set(), computed
    lost = set(header.elsewhere) if hash_list(content, segment.seed) != stored else set()
    for number in range(len(header.lengths)):
        one, other = computed.of_chunks(number), expected.of_chunks(number)
        starts = range(0, len(one), HASH_LEN)
        differing = {at // HASH_LEN for at in starts if one[at : at + HASH_LEN] != other[at : at + HASH_LEN]}
        if differing:
            damaged[number] = differing
    return damaged, lost, computed


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
