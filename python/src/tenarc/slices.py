"""Reads part of an array that is in a buffer: only the bytes that are needed for a selection as numpy's."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from .dtypes import Payload
from .errors import Mismatch

# About so many bytes are read at once, if only a part of them is wanted.
_BLOCK = 16 << 20
#: Bytes that are less than this apart are read together in any case.
GAP = 1 << 16
#: Reads bytes of the buffer, from one position to another.
Read = Callable[[int, int], Payload]


class Index:
    """An index of numpy's basic indexing: integers, slices, `...` and `None`, for an array of some shape."""

    def __init__(self, key: Any, shape: Sequence[int]) -> None:
        """`IndexError` if the key does not fit the shape, `Mismatch` if it is none of basic indexing."""
        parts = list(key) if isinstance(key, tuple) else [key]
        for part in parts:
            _check(part)
        places = [place for place, part in enumerate(parts) if part is Ellipsis]
        if len(places) > 1:
            raise IndexError("an index can have only one `...`")
        count = sum(part is not None and part is not Ellipsis for part in parts)
        if count > len(shape):
            raise IndexError(f"too many indices: the array has {len(shape)} dimensions, found {count} indices")
        at = places[0] if places else len(parts)
        parts[at : at + 1] = [slice(None)] * (len(shape) - count)
        sizes = iter(shape)
        #: For each dimension an index, or the indices that are selected.
        self.axes: list[int | range] = []
        #: The key that gives the new dimensions of `None`, after all else was selected.
        self.new: list[Any] = []
        for part in parts:
            if part is not None:
                self.axes.append(_indices(part, next(sizes), len(self.axes)))
            if part is None or isinstance(self.axes[-1], range):
                self.new.append(slice(None) if part is not None else None)
        #: The shape of what is selected, without new dimensions.
        self.shape = tuple(len(axis) for axis in self.axes if isinstance(axis, range))

    def added(self, found: Any) -> Any:
        """What was selected, with the new dimensions."""
        return found[tuple(self.new)] if None in self.new else found

    def of(self, whole: Any) -> Any:
        """A copy of the part of an array."""
        return self.added(whole[tuple(map(_key, self.axes))].copy())


def _check(part: Any) -> None:
    if part is None or part is Ellipsis or isinstance(part, slice):
        return
    if isinstance(part, (bool, np.bool_)) or not hasattr(type(part), "__index__") or np.ndim(part):
        what = f"expected integers, slices and `...` as an index, found {type(part).__name__}"
        raise Mismatch(f"{what}: read the array with `[...]`, and index the result")


def _indices(part: Any, size: int, axis: int) -> int | range:
    if isinstance(part, slice):
        return range(size)[part]
    index = operator.index(part)
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for dimension {axis} of size {size}")
    return index % size


class Chunks:
    """Reads bytes of a buffer in whole chunks. Keeps the last chunk, so that it is not read and verified twice."""

    def __init__(self, read: Read, chunk: int, length: int) -> None:
        self._read, self._chunk, self._length = read, chunk, length
        self._kept_at, self._kept = 0, np.empty(0, np.uint8)

    def read(self, start: int, end: int) -> Payload:
        """Bytes from one position to another."""
        first, last = start // self._chunk, -(-end // self._chunk)
        base, behind = first * self._chunk, min(last * self._chunk, self._length)
        kept_end = self._kept_at + len(self._kept)
        if not self._kept_at <= base < kept_end:
            found = self._read(base, behind)
        else:
            found = self._kept[base - self._kept_at :]
            if kept_end < behind:
                found = np.concatenate([found, self._read(kept_end, behind)])
        self._kept_at = (last - 1) * self._chunk
        self._kept = found[self._kept_at - base :]
        return found[start - base : end - base]


class Part:
    """Reads a selection of an array in C order, whose elements have `width` bytes.

    `array_of` makes an array of a shape from bytes. Bytes that are less than `gap` apart are read together.
    """

    def __init__(
        self, read: Read, array_of: Callable[[tuple[int, ...], Payload], Any], width: int, gap: int
    ) -> None:
        self._read, self._array_of, self._width, self._gap = read, array_of, width, gap

    def select(self, axes: Sequence[int | range], shape: tuple[int, ...]) -> Any:
        """The part in new memory."""
        wanted = [axis for axis in axes if isinstance(axis, range)]
        if not all(wanted):
            return self._array_of(tuple(map(len, wanted)), np.empty(0, np.uint8))
        start = 0
        while axes and not isinstance(axes[0], range):
            start += axes[0] * prod(shape[1:]) * self._width
            axes, shape = axes[1:], shape[1:]
        if not axes or (_is_whole(axes[1:], shape[1:]) and abs(wanted[0].step) == 1):
            row = prod(shape[1:]) * self._width
            first, count = (min(wanted[0][0], wanted[0][-1]), len(wanted[0])) if axes else (0, 1)
            payload = self._read(start + first * row, start + (first + count) * row)
            found = self._array_of((count, *shape[1:]) if axes else (), payload)
            return found[:: wanted[0].step] if axes else found
        # The dtype is that of an array without elements.
        out = np.empty(tuple(map(len, wanted)), self._array_of((0,), np.empty(0, np.uint8)).dtype)
        self._copy(out, axes, shape, start)
        return out

    def _copy(self, out: Any, axes: Sequence[int | range], shape: tuple[int, ...], start: int) -> None:
        """Copies what is selected of an array that starts at a position."""
        row = prod(shape[1:]) * self._width
        if not axes:
            out[...] = self._array_of((), self._read(start, start + self._width))
            return
        rows, inner = axes[0], axes[1:]
        if not isinstance(rows, range):
            return self._copy(out, inner, shape[1:], start + rows * row)
        if rows.step < 0:
            rows, out = rows[::-1], out[::-1]
        apart = (rows.step - 1) * row if _is_whole(inner, shape[1:]) else max(rows.step - 1, 1) * row
        each = max(_BLOCK // (rows.step * row), 1) if apart < self._gap else 1
        if min(each, len(rows)) == 1:
            for number, index in enumerate(rows):
                self._copy(out[number, ...], inner, shape[1:], start + index * row)
            return
        key = (slice(None, None, rows.step), *map(_key, inner))
        for number in range(0, len(rows), each):
            some = rows[number : number + each]
            payload = self._read(start + some[0] * row, start + (some[-1] + 1) * row)
            out[number : number + each] = self._array_of((some[-1] + 1 - some[0], *shape[1:]), payload)[key]


def _is_whole(axes: Sequence[int | range], shape: tuple[int, ...]) -> bool:
    """Whether all of an array is selected, in its order."""
    return all(axis == range(size) for axis, size in zip(axes, shape, strict=True))


def _key(axis: int | range) -> int | slice:
    """An axis as an index of numpy."""
    if not isinstance(axis, range):
        return axis
    if not axis:
        # The start of an empty range can be negative, which counts from the end in an index.
        return slice(0, 0)
    return slice(axis.start, axis.stop if axis.stop >= 0 else None, axis.step)
