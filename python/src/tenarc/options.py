"""Limits for reading, and options for writing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import codec
from .chunks import DEFAULT_CHUNK, expected_chunk_len, is_chunk_len
from .errors import Fault, Limit, Unsupported
from .listing import lists_without
from .planes import Compress

MAX_DEPTH = 1000
MIN_ALIGNMENT, MAX_ALIGNMENT = 8, 65_536

DEFAULT_ALLOC = 16 << 30


@lists_without("alloc_budget", "check_repeated", "check_unpacked", "empty", "repeated", "unpacked")
@dataclass(frozen=True)
class Limits:
    """Limits for reading. Input that exceeds one is refused with `Limit`.

    Whatever the limits, a length in the input allocates no memory before the bytes themselves are there.
    """

    #: The deepest nesting of arrays, maps and tags; at most 1,000, as reading is recursive.
    max_depth: int = 128
    #: The most dimensions of a tensor.
    max_rank: int = 64
    #: The most bytes of one value that the length of the input does not bound: buffers that a stream sends, and
    #: further copies of a tensor that is referred to several times, and compressed tensors after they were
    #: decompressed. Also the rows of columns without content, such as many `None`, of which each takes 8 bytes in
    #: a list. `None` is the default: 16 GiB, for such copies 64 MiB plus 64 times the length of the buffers that
    #: were read, for compressed tensors 64 MiB plus 1,024 times the length of the value in the archive, and for
    #: rows without content 2^24 rows, in an archive 8 more for each of its bytes.
    #: Columns and rows that are read when they are needed count together for each call of a method.
    max_alloc: int | None = None

    def __post_init__(self) -> None:
        if self.max_depth > MAX_DEPTH:
            raise Unsupported(f"expected max_depth of at most {MAX_DEPTH}, found {self.max_depth}")

    @property
    def alloc_budget(self) -> int:
        """`max_alloc` as a number."""
        return DEFAULT_ALLOC if self.max_alloc is None else self.max_alloc

    def repeated(self, length: int) -> int:
        """How many bytes further copies of buffers may take, if the buffers have `length` bytes."""
        if self.max_alloc is None:
            return min(DEFAULT_ALLOC, (64 << 20) + 64 * length)
        return self.max_alloc

    def empty(self, most: int) -> int:
        """How many rows without bytes may be made, if there may be `most` without `max_alloc`.

        Each takes an entry of 8 bytes in a list.
        """
        return most if self.max_alloc is None else min(most, self.max_alloc // 8)

    def check_repeated(self, repeated: int, read: int) -> None:
        """Refuses further copies of buffers that have more bytes than this."""
        limit = self.repeated(read)
        if repeated > limit:
            raise Fault(
                Limit,
                "several references lead to the same buffer, and their copies take more than "
                f"{limit} bytes; Limits(max_alloc=...) sets another limit",
            )

    def unpacked(self, length: int) -> int:
        """How many bytes the compressed buffers of a value may have, if the value takes `length` bytes."""
        return (64 << 20) + 1024 * length if self.max_alloc is None else self.max_alloc

    def check_unpacked(self, unpacked: int, length: int) -> None:
        """Refuses compressed buffers that have more bytes than this."""
        limit = self.unpacked(length)
        if unpacked > limit:
            raise Fault(
                Limit,
                f"compressed tensors have {unpacked} bytes after they were decompressed, and may have {limit}; "
                "Limits(max_alloc=...) sets another limit",
            )


DEFAULT_LIMITS = Limits()

#: How a tensor is compressed: not at all, with a codec, or with a codec and its level.
Choice = str | tuple[str, int] | None
#: A choice for all tensors, or a function that gets the path, dtype and shape of each tensor and chooses for it.
Compression = Choice | Callable[[str, str, tuple[int, ...]], Choice]


@dataclass(frozen=True)
class SaveOptions:
    """Options for writing a segment or parts."""

    alignment: int = 256
    inline_below: int = 2048
    checksums: bool = True
    dedup: bool = False
    chunk_len: int = DEFAULT_CHUNK
    compression: Compression = None
    max_depth: int = DEFAULT_LIMITS.max_depth

    def __post_init__(self) -> None:
        if not callable(self.compression):
            chosen(self.compression)
        if not is_alignment(self.alignment):
            raise Unsupported(
                f"expected an alignment that is a power of two from {MIN_ALIGNMENT} to "
                f"{MAX_ALIGNMENT}, found {self.alignment}"
            )
        if not is_chunk_len(self.chunk_len):
            raise Unsupported(expected_chunk_len(self.chunk_len))


def chosen(choice: Any) -> tuple[str, Compress] | None:
    """The codec of a choice, and what compresses with it. `Unsupported` if that is not possible here."""
    if choice is None:
        return None
    name, level = choice, codec.DEFAULT_LEVEL
    if isinstance(choice, tuple) and len(choice) == 2:
        name, level = choice
    if not isinstance(name, str) or type(level) is not int or (name == "lz4" and name is not choice):
        raise Unsupported(f'expected the compression None, "zstd", "lz4" or ("zstd", level), found {choice!r:.80}')
    return name, codec.compressor(name, level)


def is_alignment(number: int) -> bool:
    """Whether a number is a valid alignment (SPEC 5.2)."""
    return MIN_ALIGNMENT <= number <= MAX_ALIGNMENT and number & (number - 1) == 0
