"""Compressed buffers a second time, from section 5.11 of SPEC.md alone.

As in `archive.py`, nothing here is a translation of the crate's code.
"""

import struct
from typing import NamedTuple

import cbor2
import lz4.block
import numpy as np
import zstandard

from check import Mismatch
from heads import array, head

WIDTHS = {"u16": 2, "i16": 2, "f16": 2, "bf16": 2, "u32": 4, "i32": 4, "f32": 4, "c64": 4}
WIDTHS |= {"u64": 8, "i64": 8, "f64": 8, "c128": 8, "f128": 16}
ROTATED = ("bf16", "f32", "c64")
MAX_WINDOW = 8 << 20


class Compressed(NamedTuple):
    """A buffer as it is described and stored."""

    codec: str
    parameters: list[int]
    length: int
    sizes: list[int]  # of the stored chunks
    stored: list[bytes] = []

    def description(self):
        numbers, sizes = ([head(0, n) for n in each] for each in (self.parameters, self.sizes))
        codec = cbor2.dumps(self.codec)
        return array([codec, array(numbers), head(0, self.length), array(sizes)])

    def filled(self, content):
        """The same with the bytes that the body has."""
        stored, at = [], 0
        for size in self.sizes:
            stored.append(content[at : at + size])
            at += size
        return self._replace(stored=stored)

    def content(self, chunk):
        """The decompressed bytes, in chunks of this length."""
        if self.codec not in ("zstd", "lz4"):
            raise Mismatch(f"the unknown codec {self.codec!r}")
        starts = range(0, self.length, chunk)
        lengths = [min(chunk, self.length - start) for start in starts]
        pairs = zip(self.stored, lengths, strict=True)
        return b"".join(expand(piece, length, self.codec, *self.parameters) for piece, length in pairs)


def length_of(buffer):
    """The length of a buffer after it was decompressed."""
    return buffer.length if isinstance(buffer, Compressed) else len(buffer)


def size_of(buffer):
    """What the header has of a buffer: its length, or its description."""
    return buffer if isinstance(buffer, Compressed) else len(buffer)


def stored_length(size):
    return sum(size.sizes) if isinstance(size, Compressed) else size


def content_of(buffer, chunk):
    return buffer.content(chunk) if isinstance(buffer, Compressed) else buffer


def check(described, chunk):
    """Refuses a description that no writer may write."""
    if not 1 <= len(described.codec.encode()) <= 64 or len(described.parameters) > 16:
        raise Mismatch("a codec's name or parameters")
    if described.codec in ("zstd", "lz4"):
        width, rotated = described.parameters if len(described.parameters) == 2 else (0, 0)
        if width not in (1, 2, 4, 8, 16) or rotated > 1:
            raise Mismatch(f"the parameters {described.parameters}")
    if not 1 <= described.length < 1 << 63:
        raise Mismatch(f"a compressed buffer of {described.length} bytes")
    count, rest = divmod(described.length, chunk)
    if len(described.sizes) != count + (rest > 0):
        raise Mismatch(f"{len(described.sizes)} stored chunks")
    for number, size in enumerate(described.sizes):
        if not 1 <= size <= min(chunk, described.length - number * chunk):
            raise Mismatch(f"a stored chunk of {size} bytes")


# Chunks


def expand(stored, length, codec, width, rotated):
    """The chunk of this length that is stored so."""
    if len(stored) == length:
        return stored
    if not 5 * width <= len(stored) < length:
        raise Mismatch("a chunk without room for the plane table")
    count, rest = divmod(length, width)
    at, planes = 5 * width, []
    for method, size in struct.iter_unpack("<BI", stored[:at]):
        planes.append(plane_of(method, stored[at : at + size], size, count, codec))
        at += size
    if len(stored) - at != rest:
        raise Mismatch("planes that do not add up")
    words = np.stack([np.frombuffer(plane, "u1") for plane in planes], axis=1)
    if rotated and width > 1:
        words = rolled(words, -1)
    return words.tobytes() + stored[at:]


def plane_of(method, content, size, count, codec):
    if len(content) != size:
        raise Mismatch("a plane that is cut off")
    if method == 0:
        plane = content
    elif method == 1 and size == 1:
        plane = content * count
    elif method == 2 and size < count:
        plane = (unzstd if codec == "zstd" else unlz4)(content, count)
    else:
        raise Mismatch(f"method {method} with {size} bytes")
    if len(plane) != count:
        raise Mismatch(f"a plane of {len(plane)} bytes in place of {count}")
    return plane


def unzstd(frame, count):
    try:
        about = zstandard.get_frame_parameters(frame)
        unknown = zstandard.CONTENTSIZE_UNKNOWN
        if about.dict_id or about.has_checksum or about.window_size > MAX_WINDOW:
            raise Mismatch("a zstd frame with a dictionary, a checksum or a large window")
        if about.content_size not in (unknown, count):
            raise Mismatch(f"a zstd frame of {about.content_size} bytes")
        decoder = zstandard.ZstdDecompressor()
        return decoder.decompress(frame, max_output_size=count, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise Mismatch(f"zstd: {error}") from error


def unlz4(block, count):
    try:
        return lz4.block.decompress(block, uncompressed_size=count)
    except lz4.block.LZ4BlockError as error:
        raise Mismatch(f"lz4: {error}") from error


def rolled(words, by):
    """Rows of bytes, the lowest first, with all their bits moved to higher places, round the end."""
    bits = np.unpackbits(words, axis=1, bitorder="little")
    return np.packbits(np.roll(bits, by, axis=1), axis=1, bitorder="little")


def shrink(chunk, codec, width, rotated):
    """The stored form of a chunk, or the chunk where that is no longer."""
    count = len(chunk) // width
    if count == 0:
        return chunk
    words = np.frombuffer(chunk, "u1", count * width).reshape(count, width)
    if rotated and width > 1:
        words = rolled(words, 1)
    table, planes = b"", b""
    for number in range(width):
        plane = words[:, number].tobytes()
        method, content = 0, plane
        if plane == plane[:1] * count:
            method, content = 1, plane[:1]
        else:
            made = zstd(plane) if codec == "zstd" else lz4.block.compress(plane, store_size=False)
            if len(made) < count - count // 32:
                method, content = 2, made
        table += struct.pack("<BI", method, len(content))
        planes += content
    stored = table + planes + chunk[count * width :]
    return stored if len(stored) < len(chunk) else chunk


def zstd(plane):
    # Every other frame does not say how long its content is.
    known = len(plane) % 2 == 0
    return zstandard.ZstdCompressor(level=3, write_content_size=known).compress(plane)


def compress(content, chunk, codec, parameters):
    """A buffer, compressed even where that does not pay. An empty one stays as it is."""
    if not content:
        return content
    pieces = [content[at : at + chunk] for at in range(0, len(content), chunk)]
    stored = [shrink(piece, codec, *parameters) for piece in pieces]
    return Compressed(codec, list(parameters), len(content), list(map(len, stored)), stored)


def parameters_of(dtype):
    """Width and rotation for elements of a dtype; None is a byte string."""
    return [WIDTHS.get(dtype, 1), int(dtype in ROTATED)]
