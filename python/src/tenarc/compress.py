"""Compresses the buffers of a value before it is written, as the header has their stored lengths (SPEC 5.11)."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping

from . import options, paths, planes
from .dtypes import Payload
from .encode import Encoded
from .errors import bounded_recursion
from .options import DEFAULT_LIMITS, Compression, Limits, SaveOptions
from .packed import Packed
from .planes import Compress, Layout
from .threads import groups, mapped
from .tree import parse

#: About how many bytes a chunk takes in the header.
_ENTRY = 5


class Compressed:
    """The buffers of a value that became shorter, by their numbers."""

    def __init__(self, value: Encoded, options: SaveOptions, count: Callable[[int], None] | None = None) -> None:
        """`count` is called with the length of each piece that was compressed."""
        #: What the header says of them.
        self.packed: dict[int, Packed] = {}
        #: Their stored chunks.
        self.chunks: dict[int, list[bytes | memoryview]] = {}
        #: The buffers that were compressed, even if they are written as they are.
        self.tried: set[int] = set()
        self._chunk_len, self._count = options.chunk_len, count
        # The bytes of these buffers, and of their stored chunks.
        self._full = self._stored = 0
        methods = _methods(value, options.compression)
        for number, (name, compress) in methods.items():
            if value.buffers[number].nbytes:
                self.tried.add(number)
                self._add(number, value.buffers[number], name, Layout.of_dtype(value.tensors[number][0]), compress)

    def _add(self, number: int, payload: Payload, name: str, layout: Layout, compress: Compress) -> None:
        """Compresses a buffer, and keeps it as it is if it hardly shrinks."""
        full, stored = self._full, self._stored
        found: list[bytes | memoryview] = []
        for chunk, content in _encoded(payload, self._chunk_len, layout, compress):
            full += chunk.nbytes
            if self._count is not None:
                self._count(chunk.nbytes)
            # What readers refuse by default is not written.
            if content is not None and full > DEFAULT_LIMITS.memory(0, stored + len(content)):
                content = None
            found.append(chunk.data if content is None else content)
            stored += len(found[-1])
        if stored - self._stored + _ENTRY * len(found) > payload.nbytes - payload.nbytes // 32:
            return
        self._full, self._stored = full, stored
        self.chunks[number] = found
        lengths = array("Q", map(len, found))
        self.packed[number] = Packed(name, (layout.width, int(layout.rotated)), lengths)


def _encoded(
    payload: Payload, chunk_len: int, layout: Layout, compress: Compress
) -> Iterator[tuple[Payload, bytes | None]]:
    """Each chunk, and its stored form; `None` if it does not become shorter."""
    starts = range(0, payload.nbytes, chunk_len)
    with mapped(payload.nbytes) as (each, count):
        for group in groups(starts, count):
            chunks = [payload[start : start + chunk_len] for start in group]
            yield from zip(chunks, each(lambda chunk: planes.encode(chunk, layout, compress), chunks), strict=True)


def _methods(value: Encoded, compression: Compression) -> Mapping[int, tuple[str, Compress]]:
    """The codec of each buffer that is to be compressed, and what compresses it."""
    if not callable(compression):
        choice = options.chosen(compression)
        return {} if choice is None else dict.fromkeys(range(len(value.buffers)), choice)
    found = {}
    for number, path in _paths(value.metadata).items():
        choice = options.chosen(compression(path, *value.tensors[number]))
        if choice is not None:
            found[number] = choice
    return found


def _paths(metadata: bytes) -> dict[int, str]:
    """The path of the first reference to each buffer; for parts of columns, the path of the sequence."""
    found: dict[int, str] = {}
    with bounded_recursion():
        tree = parse(metadata, 0, Limits(max_depth=options.MAX_DEPTH))
        for number, place in paths.buffers(tree):
            if number not in found:
                found[number] = place.path()
    return found
