"""Blocks of tensors that several processes have, and the tiles that they are stored as: see `sets`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, prod

#: The least bytes of a tile, and the most tiles in a block. Rust makes more of them, which would take Python long.
_LEAST, _TILES = 64 << 10, 64

#: A box of elements: along each axis from a position to another.
Region = list[tuple[int, int]]


@dataclass(frozen=True)
class Block:
    """A block of a tensor."""

    path: str
    dtype: str
    #: The shape of the whole tensor.
    whole: list[int]
    offset: list[int]
    shape: list[int]
    #: The shape of the tiles that it is stored as.
    tile: list[int]
    #: The number of the object, and of the value in it.
    object: int
    segment: int

    @property
    def region(self) -> Region:
        return [(start, start + length) for start, length in zip(self.offset, self.shape, strict=True)]


def tile_shape(shape: Sequence[int], whole: Sequence[int], width: int) -> list[int]:
    """The shape of the tiles of a block, so that a reader who needs part of it along any axes reads little else.

    All axes are divided into about as many pieces, but those along which the processes have divided the whole
    tensor into twice as many: there, others will divide it differently.
    """
    tile = list(shape)
    while True:
        pieces = [ceil(length / max(part, 1)) for length, part in zip(shape, tile, strict=True)]
        long = [axis for axis, part in enumerate(tile) if part > 1]
        if not long:
            return tile
        axis = min(long, key=lambda axis: pieces[axis] * (1 if shape[axis] < whole[axis] else 2))
        smaller = [*tile]
        # Equal pieces, one more than before or a little more.
        smaller[axis] = min(ceil(shape[axis] / (pieces[axis] + 1 + pieces[axis] // 8)), tile[axis] - 1)
        pieces[axis] = ceil(shape[axis] / smaller[axis])
        if prod(smaller) * width < _LEAST or prod(pieces) > _TILES:
            return tile
        tile = smaller


def tiles(shape: Sequence[int], tile: Sequence[int], part: Region) -> Iterator[tuple[int, Region]]:
    """The tiles of a block that meet a part of it, by their numbers in row-major order. Those at the ends can be
    smaller. A block without elements is one tile."""
    axes = []
    for length, each, (start, end) in zip(shape, tile, part, strict=True):
        each = max(each, 1)
        count = max(ceil(length / each), 1)
        first = start // each
        last = max(ceil(end / each), first + 1)
        axes.append(
            [(count, index, (index * each, min((index + 1) * each, length))) for index in range(first, last)]
        )
    for places in itertools.product(*axes):
        number = 0
        for count, index, _ in places:
            number = number * count + index
        yield number, [ends for _, _, ends in places]


def meet(one: Region, other: Region) -> Region | None:
    """What two boxes have in common. `None` if that is nothing."""
    both = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(one, other, strict=True)]
    return both if all(start < end for start, end in both) else None


def key_of(region: Region, base: Region) -> tuple[slice, ...]:
    """The index of a box in an array that has another one."""
    return tuple(slice(start - at, end - at) for (start, end), (at, _) in zip(region, base, strict=True))
