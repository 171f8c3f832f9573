"""Chunks as codecs store them: divided into planes of bytes (SPEC 5.11, "Codecs")."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import dtypes
from .dtypes import Payload

WIDTHS = (1, 2, 4, 8, 16)
# An entry of the plane table: the method, and the stored length of the plane.
_ENTRY = struct.Struct("<BI")
_RAW, _CONSTANT, _COMPRESSED = range(3)

#: Compresses a plane.
Compress = Callable[[Payload], bytes]
#: Decompresses a plane, which must have so many bytes.
Decompress = Callable[[memoryview, int], bytes]


class BadChunk(Exception):
    """A stored chunk that is malformed. `at` is the position of the fault in it."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at = at


class Layout(NamedTuple):
    """How the bytes of a chunk are divided into planes."""

    #: The number of bytes of a word, and of planes.
    width: int
    #: Whether the highest bit of each word is stored as its lowest one.
    rotated: bool

    @classmethod
    def of_parameters(cls, parameters: tuple[int, ...]) -> Layout | None:
        """The layout that the parameters of a codec describe; `None` if they are not valid."""
        if len(parameters) != 2 or parameters[0] not in WIDTHS or parameters[1] > 1:
            return None
        return cls(parameters[0], parameters[1] == 1)

    @classmethod
    def of_dtype(cls, name: str) -> Layout:
        """The layout for elements of a dtype. The two parts of a complex number are two words."""
        known = dtypes.BY_NAME.get(name)
        if known is None or known.bits % 8:
            return cls(1, False)
        width = known.bits // (16 if known.is_complex else 8)
        # With the sign behind the mantissa, the exponents of these dtypes fill a plane of their own.
        return cls(width, name in ("bf16", "f32", "c64"))


def encode(chunk: Payload, layout: Layout, compress: Compress) -> bytes | None:
    """The stored form of a chunk; `None` if it is not shorter than the chunk."""
    width = layout.width
    count = chunk.nbytes // width
    words, tail = chunk[: count * width], chunk[count * width :]
    if not count:
        return None
    if layout.rotated:
        words = words.copy()
        _rotate(words, width, left=True)
    table, stored = [], []
    for plane in range(width):
        method, content = _stored(np.ascontiguousarray(words[plane::width]), compress)
        table.append(_ENTRY.pack(method, len(content)))
        stored.append(content)
    if sum(map(len, stored)) + width * _ENTRY.size + tail.nbytes >= chunk.nbytes:
        return None
    return b"".join([*table, *stored, tail.data])


def _stored(plane: Payload, compress: Compress) -> tuple[int, bytes | memoryview]:
    """The method of a plane, and its stored form."""
    length = plane.nbytes
    if plane[0] == plane[-1] and not (plane != plane[0]).any():
        return _CONSTANT, plane[:1].tobytes()
    found = compress(plane)
    # Planes that hardly shrink are read faster as they are.
    if len(found) < length and len(found) <= length - length // 32:
        return _COMPRESSED, found
    return _RAW, plane.data


def decode(stored: memoryview, out: Payload, layout: Layout, decompress: Decompress) -> None:
    """Decompresses a stored chunk to `out`, which has the length of the chunk.

    `BadChunk` if it is not the stored form of a chunk of this length. `out` can have any content then.
    """
    length, found, width = out.nbytes, len(stored), layout.width
    if found == length:
        out.data[:] = stored
        return
    count = length // width
    if found < width * _ENTRY.size:
        raise BadChunk(0, f"expected a table of {width} planes, found {found} bytes")
    pieces: list[tuple[int, int, int]] = []
    at = width * _ENTRY.size
    for plane in range(width):
        method, size = _ENTRY.unpack_from(stored, plane * _ENTRY.size)
        if method > _COMPRESSED:
            raise BadChunk(plane * _ENTRY.size, f"plane {plane} has the unknown method {method}")
        if not (size == count, size == 1, size < count)[method]:
            raise BadChunk(
                plane * _ENTRY.size + 1,
                f"plane {plane} of {count} bytes is stored in {size} bytes, which method {method} does not allow",
            )
        pieces.append((method, at, at + size))
        at += size
    if at + length % width != found:
        raise BadChunk(0, f"the stored planes have {at + length % width} bytes in total, the chunk has {found}")
    out.data[count * width :] = stored[at:]
    if count:
        _merge([_plane(stored, *piece, count, decompress) for piece in pieces], out[: count * width])
        if layout.rotated:
            _rotate(out[: count * width], width, left=False)


def _plane(
    stored: memoryview, method: int, start: int, end: int, count: int, decompress: Decompress
) -> Payload | np.uint8:
    """A plane; one number if all of its bytes are equal to it."""
    content = stored[start:end]
    if method == _CONSTANT:
        return np.uint8(content[0])
    if method == _COMPRESSED:
        try:
            found = decompress(content, count)
        except BadChunk as fault:
            fault.at += start
            raise
        except MemoryError:
            raise
        except Exception as error:
            # The libraries raise errors of several types.
            raise BadChunk(start, f"{type(error).__name__}: {error}") from None
        if len(found) != count:
            raise BadChunk(start, f"expected a plane of {count} bytes, found {len(found)}")
        content = memoryview(found)
    return np.frombuffer(content, np.uint8)


def _merge(planes: Sequence[Payload | np.uint8], out: Payload) -> None:
    """Joins the bytes of planes to words."""
    width = len(planes)
    if width in (2, 4):
        # Faster than the assignments below, because numpy uses vector instructions.
        words = out.view(f"<u{width}")
        words[:] = planes[-1]
        for plane in reversed(planes[:-1]):
            words <<= 8
            words |= plane
        return
    left = [*enumerate(planes)]
    if width == 8:
        # All planes of one number at once: those of small integers, for example.
        words = out.view("<u8")
        words[:] = sum(int(plane) << 8 * number for number, plane in left if isinstance(plane, np.uint8))
        left = [(number, plane) for number, plane in left if isinstance(plane, np.ndarray)]
    for number, plane in left:
        out[number::width] = plane


def _rotate(data: Payload, width: int, *, left: bool) -> None:
    """Rotates each word by one bit."""
    if width == 1:
        return
    halves: list[npt.NDArray[Any]]
    if width == 16:
        # numpy has no integers of this width.
        pairs = data.view("<u8")
        halves = [pairs[::2], pairs[1::2]]
    else:
        halves = [data.view(f"<u{width}")]
    top = halves[0].itemsize * 8 - 1
    if left:
        carried = [half >> top for half in halves]
        for half, carry in zip(halves, carried[-1:] + carried[:-1], strict=True):
            half <<= 1
            half |= carry
    else:
        carried = [half << top for half in halves]
        for half, carry in zip(halves, carried[1:] + carried[:1], strict=True):
            half >>= 1
            half |= carry
