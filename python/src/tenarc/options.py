"""What a caller can choose."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import Unsupported

MAX_DEPTH = 1000
MIN_ALIGNMENT, MAX_ALIGNMENT = 8, 65_536


@dataclass(frozen=True)
class Limits:
    """What input may ask for before it is refused with `Limit`.

    Lengths in the input allocate nothing ahead of the bytes that back them, whatever the limits.
    """

    #: Nesting of arrays, maps and tags; at most 1,000, as reading is recursive.
    max_depth: int = 128
    #: Dimensions of a tensor.
    max_rank: int = 64
    #: Bytes of one value that are not bounded by the length of the input: what a stream sends, and
    #: further copies of a tensor that is referred to several times.
    max_alloc: int = 16 << 30

    def __post_init__(self) -> None:
        if self.max_depth > MAX_DEPTH:
            raise Unsupported(f"expected a limit of at most {MAX_DEPTH} levels, found {self.max_depth}")


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True)
class SaveOptions:
    """How a segment or parts are written."""

    alignment: int = 256
    inline_below: int = 2048
    checksums: bool = True
    dedup: bool = False
    max_depth: int = DEFAULT_LIMITS.max_depth

    def __post_init__(self) -> None:
        if not is_alignment(self.alignment):
            raise Unsupported(
                f"expected an alignment that is a power of two from {MIN_ALIGNMENT} to "
                f"{MAX_ALIGNMENT}, found {self.alignment}"
            )


def is_alignment(number: int) -> bool:
    """Whether a segment may be aligned so (SPEC 5.2)."""
    return MIN_ALIGNMENT <= number <= MAX_ALIGNMENT and number & (number - 1) == 0
