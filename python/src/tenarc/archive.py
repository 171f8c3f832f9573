"""Archives that are read at any position: `open`, and what it gives."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from types import TracebackType
from typing import Any, NamedTuple, TypeVar, overload

import xxhash

from . import paths, walk
from .convert import convert
from .decode import Payload, Resolver, located, parse
from .directory import MAGIC, TAIL_LEN, Directory, Entry, read_tail
from .errors import Damaged, Error, Fault, Mismatch, NotFound, Torn
from .options import DEFAULT_LIMITS, Limits
from .segment import (
    HASH_ITEM,
    HEADER,
    Header,
    check_buffer,
    expect,
    opened,
    read_hash_list,
    record_length,
)
from .source import FileSource, Source, map_file, open_regular
from .values import Tag

T = TypeVar("T")
_MISSING: Any = object()


class TensorInfo(NamedTuple):
    """A tensor, or a sequence of numbers, of a segment; its elements have not been looked at."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    order: str
    nbytes: int


class Segment:
    """One value of an archive."""

    def __init__(self, source: Source, number: int, entry: Entry, before: int, limits: Limits):
        self._source = source
        self._limits = limits
        offset, name = entry
        item = read_record(source, offset, before)
        kind, fields = opened(item, offset)
        if kind != HEADER:
            raise Damaged("expected the header of a segment", offset=offset)
        self._header, self._metadata_at = Header.read(fields)
        if self._header.name != name:
            raise Damaged(f"the directory has another name, {name!r:.40}", offset=offset)
        #: Number in the archive, from 0.
        self.number = number
        #: Position of its first byte.
        self.offset = offset
        self._behind_header = offset + len(item)
        self._seed = item[1 - HASH_ITEM :]
        if self._end() > before:
            raise Damaged("a segment that ends behind the next one's begin", offset=offset)

    @property
    def name(self) -> str | None:
        return self._header.name

    @property
    def alignment(self) -> int:
        return self._header.alignment

    @cached_property
    def _places(self) -> list[int]:
        """Where each buffer starts."""
        if not self._header.lengths:
            return []
        base = self._behind_header + len(self._header.before_body(self._behind_header))
        return [base + place for place in self._header.places()]

    @property
    def buffers(self) -> list[tuple[int, int]]:
        """Position and length of each buffer."""
        return list(zip(self._places, self._header.lengths, strict=True))

    def _end(self) -> int:
        if not self._places:
            return self._behind_header
        return self._places[-1] + self._header.lengths[-1] + self._header.hashes_length()

    @cached_property
    def _tree(self) -> Any:
        return parse(self._header.metadata, self._metadata_at, self._limits)

    @cached_property
    def _hashes(self) -> list[bytes]:
        """The hashes of the buffers, which are believed only once their own fits."""
        if not self._places:
            return []
        before = self._header.before_body(self._behind_header)
        found = self._source.read(self._behind_header, len(before))
        expect(found, before, self._behind_header, "what stands before the body")
        length = self._header.hashes_length()
        at = self._end() - length
        return read_hash_list(self._source.read(at, length), self._header, self._seed, at)

    def load(self, cls: Any = None) -> Any:
        """The value, in memory of its own, with all checksums verified.

        With `cls`, converted to that type: a dataclass, `list[int]`, `dict[str, numpy.ndarray]`, …
        """
        value = self._resolve(self._tree, [], owned=True, whole=True)
        return value if cls is None else convert(value, cls)

    def view(self, cls: Any = None) -> Any:
        """The value with read-only views as arrays, whose checksums are not verified."""
        value = self._resolve(self._tree, [], owned=False, whole=True)
        return value if cls is None else convert(value, cls)

    @overload
    def get(self, path: str) -> Any | None: ...
    @overload
    def get(self, path: str, default: T) -> Any | T: ...
    def get(self, path: str, default: Any = None) -> Any:
        """The value at a path, as a view, or `default` where there is none."""
        try:
            node, trail = paths.find(self._tree, path)
        except NotFound:
            return default
        return self._resolve(node, trail, owned=False, prefix=path)

    def __getitem__(self, path: str) -> Any:
        """The value at a path, as in `layers.3.weight` or `/layers/3/weight`; arrays are views."""
        node, trail = paths.find(self._tree, path)
        return self._resolve(node, trail, owned=False, prefix=path)

    def tensor(self, path: str) -> Any:
        """The array at a path, a view without a copy; `Mismatch` where there is something else."""
        node, trail = paths.find(self._tree, path)
        node, through = paths.inside(node)
        if type(node) is not Tag or self._info(path, node) is None:
            raise Mismatch(f"expected a tensor, found {type(node).__name__}", path=path)
        return self._resolve(node, trail + through, owned=False, prefix=path)

    def tensors(self) -> Iterator[TensorInfo]:
        """All tensors and sequences of numbers, in the order of the metadata."""
        for path, node in paths.payloads(self._tree):
            info = self._info(path, node)
            if info is not None:
                yield info

    def _info(self, path: str, node: Tag) -> TensorInfo | None:
        try:
            found = Resolver(self, owned=False, limits=self._limits).describe(node)
        except Fault as fault:
            raise fault.kind(fault.message, offset=self._metadata_at, path=path) from None
        return None if found is None else TensorInfo(path, *found)

    def _resolve(
        self,
        node: Any,
        trail: list[paths.Step],
        *,
        owned: bool,
        whole: bool = False,
        prefix: str = "",
    ) -> Any:
        resolver = Resolver(self, owned=owned, limits=self._limits)
        try:
            return resolver.whole(node) if whole else resolver.value(node)
        except Fault as fault:
            fault.steps += [(step.child(), None) for step in reversed(trail)]
            raise located(fault, self._header.metadata, self._metadata_at, prefix) from None

    @property
    def lengths(self) -> tuple[int, ...]:
        """The length of each buffer, in bytes."""
        return self._header.lengths

    def payload(self, number: int, owned: bool) -> Payload:
        """The bytes of a buffer: a view, or in memory of their own and verified."""
        at, length = self._places[number], self._header.lengths[number]
        payload, found = self._source.payload(at, length, owned)
        if owned and self._header.checksums:
            hashes = self._hashes
            found = xxhash.xxh3_64_digest(payload.data) if found is None else found
            check_buffer(found, hashes[number], number, at)
        return payload


class Archive:
    """An archive that is open: reads headers, and of values what is asked for.

    Where it holds one value, its paths can be asked of the archive itself. Views stay valid when it is
    closed. A file that is mapped must not be truncated by others.
    """

    def __init__(self, source: Source, *, limits: Limits = DEFAULT_LIMITS) -> None:
        self._source = source
        self._limits = limits
        magic = source.read(0, min(len(MAGIC), source.length))
        if magic != MAGIC[: len(magic)]:
            raise Damaged("no archive of tenarc: it begins with other bytes", offset=0)
        at = source.length - TAIL_LEN
        tail = source.read(at, TAIL_LEN) if at >= len(MAGIC) else b""
        mark = read_tail(tail, at) if tail else None
        if mark is None:
            what = "the archive does not end in a tail: it was cut, or not finished"
            raise Torn(f"{what} (`Reader` gives the values that are whole)", offset=source.length)
        item = read_record(source, mark, at)
        if mark + len(item) != at:
            raise Damaged("an end mark that does not lead to its tail", offset=mark)
        self._mark = mark
        self._directory = Directory.read(item, mark)

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file. Views of it stay valid, and keep it mapped."""
        self.__dict__.pop("_only", None)
        self._source.close()

    def __len__(self) -> int:
        """The number of values."""
        return self._directory.count

    def _read(self, at: int, before: int) -> bytes:
        return read_record(self._source, at, before)

    @cached_property
    def _entries(self) -> list[Entry]:
        return list(self._directory.segments(self._read, self._mark))

    def directory(self) -> Directory:
        """What a writer goes on with that appends."""
        found = self._directory
        return Directory(found.count, [*found.entries], [[*level] for level in found.levels])

    def names(self) -> list[str | None]:
        """The names of all values, in order."""
        return [name for _, name in self._entries]

    def segment(self, number: int) -> Segment:
        """A value by its number; negative ones count from the end."""
        count = self._directory.count
        index = number + count if number < 0 else number
        if not 0 <= index < count:
            raise NotFound(f"no value {number}, the archive has {count}")
        entry = self._directory.entry(index, self._read, self._mark)
        return Segment(self._source, index, entry, self._mark, self._limits)

    def named(self, name: str) -> Segment:
        """The last value of a name."""
        for number, entry in zip(reversed(range(len(self._entries))), reversed(self._entries), strict=True):
            if entry[1] == name:
                return Segment(self._source, number, entry, self._mark, self._limits)
        raise NotFound(f"no value is named {name!r:.80}")

    def segments(self) -> Iterator[Segment]:
        """All values, in order."""
        for number, entry in enumerate(self._entries):
            yield Segment(self._source, number, entry, self._mark, self._limits)

    @cached_property
    def _only(self) -> Segment:
        count = self._directory.count
        if count != 1:
            what = f"the archive holds {count} values: take one by `segment` or `named`"
            raise NotFound(what)
        return self.segment(0)

    def load(self, cls: Any = None) -> Any:
        """The only value, as `Segment.load`."""
        return self._only.load(cls)

    def view(self, cls: Any = None) -> Any:
        """The only value, as `Segment.view`."""
        return self._only.view(cls)

    def get(self, path: str, default: Any = None) -> Any:
        """Of the only value, as `Segment.get`."""
        return self._only.get(path, default)

    def __getitem__(self, path: str) -> Any:
        return self._only[path]

    def tensor(self, path: str) -> Any:
        """Of the only value, as `Segment.tensor`."""
        return self._only.tensor(path)

    def tensors(self) -> Iterator[TensorInfo]:
        """Of the only value, as `Segment.tensors`."""
        return self._only.tensors()

    def verify(self) -> None:
        """Checks every byte: hashes, paddings, the directory, and the form of references.

        Elements of tensors are not looked at. Raises at the first fault.
        """
        found = walk.verify(self._source, self._limits)
        if found != self._entries:
            raise Damaged("the directory leads to other segments than there are", offset=self._mark)


def read_record(source: Source, at: int, before: int) -> bytes:
    """The record at an offset, which must end before a position."""
    if not len(MAGIC) <= at < before:
        raise Damaged(f"an offset that does not lead to before byte {before}", offset=at)
    _, total = record_length(source.read(at, min(11, before - at)), at)
    if total > before - at:
        raise Damaged(f"a record of {total} bytes, of which {before - at} are there", offset=at)
    return source.read(at, total)


def open_archive(path: str | os.PathLike[str], *, limits: Limits = DEFAULT_LIMITS) -> Archive:
    """Opens an archive file, to read parts of it. It is mapped: arrays are views, without a copy.

    `OSError` where the file cannot be read, `Torn` where it has no end, `Damaged` where it is no
    archive or a damaged one.
    """
    return _opened(path, map_file(path), limits)


def load(path: str | os.PathLike[str], *, cls: Any = None, limits: Limits = DEFAULT_LIMITS) -> Any:
    """Loads the value of an archive file that holds one, with all checksums verified.

    Arrays are in memory of their own. With `cls` the value is converted to that type: a dataclass,
    `list[int]`, `dict[str, numpy.ndarray]`, …
    """
    with _opened(path, FileSource(open_regular(path)), limits) as archive:
        try:
            return archive.load(cls)
        except Error as error:
            raise in_file(error, path) from error.__cause__


def _opened(path: str | os.PathLike[str], source: Source, limits: Limits) -> Archive:
    try:
        return Archive(source, limits=limits)
    except Error as error:
        source.close()
        raise in_file(error, path) from error.__cause__


def in_file(error: Error, path: str | os.PathLike[str]) -> Error:
    error.file = os.fsdecode(path)
    return error
