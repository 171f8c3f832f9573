"""Limits for reading, and options for writing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from . import codec
from .chunks import DEFAULT_CHUNK, expected_chunk_len, is_chunk_len
from .errors import Fault, Limit, Unsupported
from .listing import lists_without
from .planes import Compress

MAX_DEPTH = 1000
MIN_ALIGNMENT, MAX_ALIGNMENT = 8, 65_536

#: The memory that every value may take, and how much more for each byte of its input, and for each stored byte of
#: its compressed buffers.
FREE, FACTOR, PACKED_FACTOR = 64 << 20, 64, 1024
#: The longest block that an input announces, such as a header.
_LONGEST = 16 << 30


@lists_without("longest", "memory")
@dataclass(frozen=True)
class Limits:
    """Limits for reading. Input that exceeds one is refused with `Limit`.

    Whatever the limits, memory grows only with the bytes that were received, not with the lengths that they claim.
    """

    #: The deepest nesting of arrays, maps and tags; at most 1,000, as reading is recursive.
    max_depth: int = 128
    #: The most dimensions of a tensor.
    max_rank: int = 64
    #: The most bytes of memory that reading a value may take. `None` is the default: 64 MiB, and 64 bytes for each
    #: byte of the input, or 1,024 for each stored byte of a compressed tensor. The input is the message, the value
    #: in the archive with its tensors, the parts, or all values of a table. This counts the rows of columns as
    #: objects of Python, arrays that are copied, and tensors that are decompressed. It does not count views of the
    #: input, nor tensors in a message, which take as many bytes there. Columns and rows that are read when they
    #: are needed count together for each call of a method.
    max_alloc: int | None = None

    def __post_init__(self) -> None:
        if self.max_depth > MAX_DEPTH:
            raise Unsupported(f"expected max_depth of at most {MAX_DEPTH}, found {self.max_depth}")

    def memory(self, plain: int, packed: int = 0) -> int:
        """How many bytes a value may take. Its input is `plain` bytes, and `packed` ones of compressed buffers."""
        return FREE + FACTOR * plain + PACKED_FACTOR * packed if self.max_alloc is None else self.max_alloc

    @property
    def longest(self) -> int:
        """The longest block that may be read in one piece."""
        return _LONGEST if self.max_alloc is None else self.max_alloc


def check_memory(taken: int, limit: int) -> None:
    """Refuses a value that takes more memory than it may."""
    if taken > limit:
        text = f"the value takes more memory than the limit of {limit} bytes"
        raise Fault(Limit, f"{text}; Limits(max_alloc=...) sets another limit")


DEFAULT_LIMITS = Limits()


class Reading(NamedTuple):
    """As what values are read that Python has several types for."""

    #: Whether columns are read as `Table`; if not, as lists of their rows.
    tables: bool = False
    #: Whether packed sequences are read as `Numbers`; if not, as lists.
    numbers: bool = True
    #: Whether values of named types are read as `named.Both`, because they are then converted to a type.
    both: bool = False

    @classmethod
    def of(cls, hint: Any, *, tables: bool, numbers: bool) -> Reading:
        """As what a caller wants values that are then converted to the type of a hint, unless it is `None`."""
        return cls(tables, numbers or hint is not None, hint is not None and not tables)


DEFAULT_READING = Reading()

#: How a tensor is compressed: not at all, with a codec, or with a codec and its level.
Choice = Literal["zstd", "lz4"] | tuple[Literal["zstd"], int] | None
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
