"""Writes what is left of a segment again (SPEC 5.8).

The header and the metadata are complete. If the segment was cut off by the end of the file, the checksums of the
buffers are missing, because they come after the last buffer: the buffers that are complete cannot be verified. If
the segment was damaged, the good chunks are verified, and zeros are in place of the others.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import xxhash

from . import ext, items, scan
from .chunks import Hashes, lengths_of
from .errors import Limit
from .items import BYTES, TAG, TEXT, UNSIGNED, Items
from .options import Limits
from .packed import Packed
from .saved import Segment, TensorInfo
from .segment import Header
from .source import STEP, Source
from .tags import COLUMNS, REFERENCE, TYPE

_UNDEFINED = b"\xf7"
#: The minimum total length of the paths in a report, in characters, before the report is refused.
_PATHS = 16 << 20


class Salvaged(NamedTuple):
    """What `recover_to` kept of a value that was cut off by the end of the file."""

    #: The name of the value, if it has one.
    name: str | None
    #: The tensors that were kept. They are not verified, because their checksums were cut off.
    tensors: list[TensorInfo]
    #: The tensors, and the byte strings in buffers, that were not complete. The kept value has *undefined* in
    #: their places, which is read as `None`. If some buffers of a table are missing, so is the whole table.
    missing: list[TensorInfo]


class Salvage:
    """A segment of which some buffers, or some chunks, are missing."""

    def __init__(
        self,
        source: Source,
        segment: Segment,
        limits: Limits,
        complete: set[int],
        filled: Mapping[int, set[int]] | None = None,
        hashes: Hashes | None = None,
    ) -> None:
        """For a segment with these complete buffers, of which the chunks in `filled` become zeros.

        The other chunks are compared with `hashes` when they are written.
        """
        self._source, self._segment, self._limits = source, segment, limits
        self._filled, self._hashes = filled or {}, hashes
        self._parts = list(_parts(segment.header.metadata, limits))
        # If columns refer to a missing buffer, other buffers that only they refer to are not kept either.
        usable = (part.numbers() for part in self._parts)
        kept = sorted({number for numbers in usable if numbers <= complete for number in numbers})
        # The new number of each kept buffer.
        self._numbers = {old: new for new, old in enumerate(kept)}

    @classmethod
    def of(cls, source: Source, segment: Segment | None, limits: Limits) -> Salvage | None:
        """`None` if there is no cut segment, or if none of its buffers is complete."""
        if segment is None or ext.unknown(segment.header.ext) is not None:
            return None
        header = segment.header
        # The hashes of buffers elsewhere are lost.
        lost = set(header.elsewhere) if header.checksums else set()
        complete = {number for number in range(len(header.lengths)) if segment.has_buffer(number)} - lost
        found = cls(source, segment, limits, complete)
        return found if found._numbers else None

    def report(self) -> Salvaged:
        """Lists the tensors that are kept, and those that are missing."""
        # One long key is part of the path of every tensor under it, so the paths could fill the memory.
        most = min(max(16 * len(self._segment.header.metadata), _PATHS), self._limits.longest)
        left = most

        def counted(info: TensorInfo) -> TensorInfo:
            nonlocal left
            left -= len(info.path)
            if left < 0:
                raise Limit(f"paths of tensors take more than {most} bytes")
            return info

        listed = [counted(info) for info in self._segment.tensors_outside_columns()]
        missing = [info for info in listed if not self._is_kept(info)]
        # Byte strings, and tensors in map keys, are not listed as tensors, but are reported if they are missing.
        # One place for each buffer is enough.
        named = {info.buffer for info in listed}
        others: dict[int, TensorInfo] = {}
        for place, found in self._segment.in_buffers():
            number = found.buffer
            if number is not None and number not in named and number not in others and number not in self._numbers:
                others[number] = counted(TensorInfo.of(place.path(), found))
        missing += [others[number] for number in sorted(others)]
        return Salvaged(self._segment.name, [info for info in listed if self._is_kept(info)], missing)

    def _is_kept(self, info: TensorInfo) -> bool:
        return info.buffer is None or info.buffer in self._numbers

    def header(self) -> Header:
        """The header of the value with the complete buffers only."""
        old = self._segment.header
        lengths = tuple(old.lengths[number] for number in self._numbers)
        packed = {new: self._packed(number) for number, new in self._numbers.items() if number in old.packed}
        elsewhere = {
            new: old.elsewhere[number] for number, new in self._numbers.items() if number in old.elsewhere
        }
        # Without the stored hashes, hashes are computed.
        algorithm = None if self._hashes is None else old.algorithm
        return replace(
            old,
            lengths=lengths,
            metadata=self._metadata(),
            packed=packed,
            elsewhere=elsewhere,
            algorithm=algorithm,
        )

    def copied(self) -> dict[int, bytes]:
        """The hashes that are copied: of buffers elsewhere, or all of them if their algorithm is not known."""
        old, hashes = self._segment.header, self._hashes
        if hashes is None:
            return {}
        return {
            new: hashes.of_chunks(number)
            for number, new in self._numbers.items()
            if old.algorithm is not None or number in old.elsewhere
        }

    def buffers(self) -> Iterator[Iterator[bytes]]:
        """The complete buffers as they are stored, each in pieces."""
        for number in self._numbers:
            if number in self._segment.header.elsewhere:
                yield iter(())
                continue
            filled = self._filled.get(number, set())
            yield chain.from_iterable(
                zeros(chunk.length) if index in filled else self._good(number, index, chunk)
                for index, chunk in enumerate(chunks_of(self._segment, number))
            )

    def _good(self, number: int, index: int, chunk: Chunk) -> Iterator[bytes]:
        hasher = xxhash.xxh3_64()
        hashes = self._hashes if self._segment.header.is_checked else None
        for piece in pieces(self._source, chunk.stored):
            if hashes is not None:
                hasher.update(piece)
            yield piece
        if hashes is not None:
            hashes.check_chunk(number, index, hasher.digest(), self._segment.buffers[number][0])

    def _packed(self, number: int) -> Packed:
        """How a compressed buffer is stored. A chunk of zeros is stored as it is, so that no codec is needed."""
        filled = self._filled.get(number, set())
        lengths = (
            chunk.length if index in filled else len(chunk.stored)
            for index, chunk in enumerate(chunks_of(self._segment, number))
        )
        return replace(self._segment.header.packed[number], stored=array("Q", lengths))

    def _metadata(self) -> bytes:
        """The metadata with *undefined* in place of each reference to a missing buffer.

        If columns refer to a missing buffer, *undefined* is in place of the whole sequence: rows without some of
        their columns would be other rows.
        """
        old = self._segment.header.metadata
        pieces, copied = [], 0
        for part in self._parts:
            if not self._numbers.keys() >= part.numbers():
                pieces += [old[copied : part.start], _UNDEFINED]
                copied = part.end
                continue
            for number, start, end in part.references:
                pieces += [old[copied:start], items.head(UNSIGNED, self._numbers[number])]
                copied = end
        return b"".join([*pieces, old[copied:]])


class Chunk(NamedTuple):
    """A chunk of a buffer."""

    #: The positions of its stored bytes.
    stored: range
    #: How many bytes it has after it was decompressed.
    length: int


def chunks_of(segment: Segment, number: int) -> Iterator[Chunk]:
    """The chunks of a buffer."""
    at, length = segment.buffers[number]
    packed = segment.compressed(number)
    for index, content in enumerate(lengths_of(length, segment.header.chunk_len)):
        stored = content if packed is None else packed.stored[index]
        yield Chunk(range(at, at + stored), content)
        at += stored


def pieces(source: Source, place: range) -> Iterator[bytes]:
    """The bytes at some positions."""
    for start in range(place.start, place.stop, STEP):
        yield source.read(start, min(STEP, place.stop - start))


def zeros(length: int) -> Iterator[bytes]:
    """So many zeros, in pieces."""
    for start in range(0, length, STEP):
        yield bytes(min(STEP, length - start))


class _Part(NamedTuple):
    """A reference to a buffer in the metadata, or columns with any number of them."""

    start: int
    end: int
    #: The number of each buffer, and where in the metadata this number starts and ends.
    references: list[tuple[int, int, int]]

    def numbers(self) -> set[int]:
        return {number for number, _, _ in self.references}


def _parts(metadata: bytes, limits: Limits) -> Iterator[_Part]:
    """The references and the columns in metadata. Both are found by their tag; the nesting of the items does not
    matter."""
    found = Items(metadata, 0)
    columns = _Part(0, 0, [])
    # Where an item of a type starts, and where its tag does. A null has no type (SPEC 7.2), so *undefined* is in
    # place of the tag too.
    typed = -1, 0
    while found.at < len(metadata):
        start = found.at
        begin = typed[1] if typed[0] == start else start
        major, argument = found.any_head("value")
        if major in (BYTES, TEXT) and argument is not None:
            found.take(argument, "string")
        elif major == TAG and argument == COLUMNS and start >= columns.end:
            behind = Items(metadata, 0)
            behind.at = start
            scan.skip(behind, limits.max_depth)
            columns = _Part(begin, behind.at, [])
        elif major == TAG and argument == TYPE:
            found.count("a value of a type")
            for _ in range(2):
                scan.skip(found, limits.max_depth)
            typed = found.at, begin
        elif major == TAG and argument == REFERENCE:
            for _ in range(found.count("reference to a buffer") - 1):
                scan.skip(found, limits.max_depth)
            number_at = found.at
            number = found.definite(UNSIGNED, "number of a buffer")
            reference = number, number_at, found.at
            if start >= columns.end:
                yield _Part(begin, found.at, [reference])
            else:
                columns.references.append(reference)
        if columns.references and found.at >= columns.end:
            yield columns
            columns = columns._replace(references=[])
