"""Writes what is left of a segment that was cut off by the end of the file (SPEC 5.8).

The header and the metadata are complete. The checksums of the buffers come after the last buffer, so they are
missing: the buffers that are complete cannot be verified.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from . import ext, items, scan
from .errors import Limit
from .items import BYTES, TAG, TEXT, UNSIGNED, Items
from .options import Limits
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
    """A cut segment with at least one complete buffer."""

    def __init__(self, source: Source, segment: Segment, limits: Limits) -> None:
        self._source, self._segment, self._limits = source, segment, limits
        header = segment.header
        # The hashes of buffers elsewhere are lost.
        lost = set(header.elsewhere) if header.checksums else set()
        complete = {number for number in range(len(header.lengths)) if segment.has_buffer(number)} - lost
        self._parts = list(_parts(header.metadata, limits))
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
        found = cls(source, segment, limits)
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
        packed = {new: old.packed[number] for number, new in self._numbers.items() if number in old.packed}
        elsewhere = {
            new: old.elsewhere[number] for number, new in self._numbers.items() if number in old.elsewhere
        }
        # The stored hashes are missing, so new ones are computed, of an algorithm that is known here.
        return replace(
            old,
            lengths=lengths,
            metadata=self._metadata(),
            packed=packed,
            elsewhere=elsewhere,
            algorithm=None,
        )

    def buffers(self) -> Iterator[Iterator[bytes]]:
        """The complete buffers as they are stored, each in pieces."""
        buffers, lengths = self._segment.buffers, self._segment.header.stored_lengths
        for number in self._numbers:
            yield self._pieces(buffers[number][0], lengths[number])

    def _pieces(self, at: int, length: int) -> Iterator[bytes]:
        for start in range(0, length, STEP):
            yield self._source.read(at + start, min(STEP, length - start))

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
