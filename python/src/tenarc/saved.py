"""`Segment`: one saved value of an archive that can be read at any position."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from math import prod
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np
import numpy.typing as npt

from . import column_fields, dtypes, named, near, notebook, paths
from .calls import one_call
from .chunks import Hashes, hashes_of
from .convert import convert
from .decode import Described, Resolver
from .directory import MAGIC, Entry
from .dtypes import Payload
from .elsewhere import Elsewhere
from .errors import (
    Damaged,
    Error,
    Fault,
    Limit,
    Mismatch,
    NotFound,
    Torn,
    Unsupported,
    Version,
    bounded_recursion,
)
from .fields import Decoded, listed
from .foreign import no_archive
from .lazy import LazyArray
from .listing import lists_without
from .options import DEFAULT_READING, Limits, Reading, check_memory
from .origin import copied, refuse
from .packed import Packed
from .rows import rows_in
from .segment import (
    HASH_ITEM,
    HEADER,
    MAX_RECORD_HEAD,
    Header,
    check_version,
    expect,
    opened,
    read_hash_list,
    record_length,
)
from .slices import GAP, Chunks, Index, Part
from .source import STEP, MemorySource, Source, SourceFile
from .stored import Shared, StoredRows
from .table import Table
from .tags import COLUMNS
from .tree import located, parse
from .unpack import Unpacker
from .values import Numbers, Raw, Tag
from .walk import Input, read_body

T = TypeVar("T")

# Many records are shorter than this, so that one read gets all of one.
_NEAR = 256
# The most bytes of metadata in which a description counts the tensors.
_SHORT = 1 << 20


@lists_without("of")
class TensorInfo(NamedTuple):
    """A description of a tensor, or of a sequence of numbers, in a segment. Its elements are not read."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    order: str
    nbytes: int
    #: The number of the buffer that holds the elements and nothing else; `None` if they are in the metadata, or
    #: are a column in several buffers. Equal tensors that were saved with `dedup` share a buffer.
    buffer: int | None = None

    @classmethod
    def of(cls, path: str, found: Described | column_fields.ColumnTensor) -> TensorInfo:
        return cls(path, found.dtype, found.shape, found.order, found.nbytes, found.buffer)


@lists_without(
    "contents",
    "cut_error",
    "digest_bytes",
    "find_digest",
    "has_buffer",
    "header_length",
    "in_buffers",
    "input",
    "is_mapped",
    "is_near",
    "lasting",
    "payload",
    "read",
    "reopen",
    "row_count",
    "rows",
    "seed",
    "stored_hashes",
    "tables",
    "tensors_outside_columns",
    "verify_body",
)
class Segment:
    """One value of an archive."""

    def __init__(
        self,
        source: Source,
        number: int,
        offset: int,
        before: int,
        limits: Limits,
        *,
        verify: bool = True,
        entry: Entry | None = None,
    ) -> None:
        """Reads the header at an offset. If it has an `entry` in the directory, they are compared."""
        self._source = source
        #: The limits that the archive was opened with.
        self.limits = limits
        self._verify = verify
        self._before = before
        #: What opens the file of the archive again, if that is known, and its arguments.
        self.reopen: tuple[Callable[..., Any], tuple[Any, ...]] | None = None
        # The columns that were last read by path.
        self._rows: tuple[Tag, Table] | None = None
        item = read_record(source, offset, before, limits, None if entry is None else entry.header_length)
        kind, fields = opened(item, offset)
        if kind != HEADER:
            raise Damaged("expected the header of a segment", offset=offset)
        self._header, self._metadata_at = Header.read(fields)
        self._entry = entry
        if entry is not None and entry.name != self._header.name:
            raise Damaged("the name in the directory is not the name of the segment", offset=offset)
        #: The number of the value in the archive, from 0.
        self.number = number
        #: The position of its first byte.
        self.offset = offset
        #: The number of bytes of its header, with the hash.
        self.header_length = len(item)
        self._behind_header = offset + len(item)
        self._seed = item[1 - HASH_ITEM :]
        #: The number of bytes that are missing at its end, because the archive ends inside it. This is not 0 only
        #: for the last value of an archive that was opened with `open(path, torn=True)`. Its metadata is complete
        #: and verified. Its tensors cannot be verified, because the checksums come last and are missing. With
        #: `open(path, torn=True, verify=False)` the complete tensors can be read; reading others raises `Torn`.
        self.missing_bytes = max(self.end - before, 0)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the path of the archive and the number. Unpickling opens the file again."""
        return self.reopen or refuse(self)

    def cut_error(self) -> Torn:
        """The error for a segment that the archive ends in."""
        what = f"the archive ends {self.missing_bytes} bytes before the end of a segment"
        return Torn(what, offset=self.offset)

    def has_buffer(self, number: int) -> bool:
        """Whether all bytes of a buffer are there."""
        return self._places[number] + self._header.stored_lengths[number] <= self._before

    def is_mapped(self) -> bool:
        """Whether all arrays are views of memory, so that only what is used of them is read."""
        return isinstance(self._source, MemorySource) and not self._header.packed

    def is_near(self, number: int | None, length: int, most: int) -> bool:
        """Whether part of a tensor of some length can be read without reading more than about so many bytes."""
        if number is None:
            return length <= most
        return number not in self._header.elsewhere and (length <= most or self.is_mapped())

    @property
    def header(self) -> Header:
        """Its header: name, options, and the lengths of its buffers."""
        return self._header

    @property
    def seed(self) -> bytes:
        """The hash of the header, which is the seed of the hash of the list of hashes."""
        return self._seed

    @property
    def name(self) -> str | None:
        """The name that it was saved with, or `None`."""
        return self._header.name

    @property
    def notes(self) -> dict[str, str]:
        """The notes that it was saved with, such as a title or who wrote it."""
        return self._header.notes

    @property
    def alignment(self) -> int:
        """The alignment of its buffers: their positions are multiples of it."""
        return self._header.alignment

    @cached_property
    def _places(self) -> list[int]:
        """The position of each buffer."""
        if not self._header.lengths:
            return []
        base = self._behind_header + len(self._header.before_body(self._behind_header))
        return [base + place for place in self._header.places()]

    @property
    def buffers(self) -> list[tuple[int, int]]:
        """Position and length of each buffer. Of a compressed buffer, fewer bytes are stored than its length, and
        of a buffer elsewhere none."""
        return list(zip(self._places, self._header.lengths, strict=True))

    def compressed(self, number: int) -> Packed | None:
        """How a buffer is compressed, also with an unknown codec; `None` if it is stored as it is."""
        return self._header.packed.get(number)

    def elsewhere(self, number: int) -> Elsewhere | None:
        """What names a buffer whose bytes are not in the archive; `None` if they are."""
        return self._header.elsewhere.get(number)

    @property
    def end(self) -> int:
        """The position after its last byte, also if the archive ends before that."""
        if not self._header.lengths:
            return self._behind_header
        return self._places[-1] + self._header.stored_lengths[-1] + self._header.hashes_length()

    @property
    def byte_length(self) -> int:
        """The number of its bytes that are there."""
        return self.end - self.offset - self.missing_bytes

    @cached_property
    def input(self) -> tuple[int, int]:
        """The number of its bytes that are there: those of compressed buffers are the second number."""
        packed = min(self._header.packed_length(), self.byte_length)
        return self.byte_length - packed, packed

    @cached_property
    def _tree(self) -> Any:
        metadata = self._header.metadata
        self._header.check_extensions(self.offset)
        with bounded_recursion():
            tree = parse(metadata, self._metadata_at, self.limits)
        if self._entry is not None and self._entry.rows != rows_in(metadata, tree):
            found, wanted = rows_in(metadata, tree), self._entry.rows
            raise Damaged(f"the directory says {wanted} rows, the segment has {found}", offset=self.offset)
        return tree

    @property
    def hashes(self) -> list[bytes]:
        """The hash of each buffer, which follows from the stored hashes of its chunks (SPEC 5.2).

        The list is empty if the buffers have no checksums.
        """
        if self._header.algorithm is not None:
            raise self._header.unknown_check()
        return [] if self.stored_hashes is None else self.stored_hashes.of_buffers()

    @cached_property
    def stored_hashes(self) -> Hashes | None:
        """The stored hashes of the chunks; `None` if there are none. The hash of their list is checked."""
        if not self._places:
            return None
        if self.missing_bytes:
            raise self._hashes_cut_off()
        length = self._header.hashes_length()
        at = self.end - length
        self._header.check_hashes_length(self.limits, at)
        return read_hash_list(self._source.read(at, length), self._header, self._seed, at)

    def digest(self) -> str:
        """The digest of the content, as 32 hexadecimal digits (SPEC 5.10).

        It is computed from the header and the checksums; no tensor is read. It does not depend on the name, nor on
        the place in the archive. Equal values that were saved with equal options have equal digests. It tells
        whether two values differ, but it is not a cryptographic hash.

        `Unsupported` if the value has buffers and was saved without checksums.
        """
        return self.digest_bytes().hex()

    def digest_bytes(self) -> bytes:
        """The digest as 16 bytes."""
        found = self.find_digest()
        if found is None:
            what = f"segment {self.number} has no digest, because its buffers were saved without checksums"
            raise Unsupported(what, offset=self.offset)
        return found

    def find_digest(self) -> bytes | None:
        """The digest; `None` if it has none."""
        stored = self.stored_hashes
        return self._header.content_digest(b"" if stored is None else stored.content)

    def _hashes_cut_off(self) -> Torn:
        what = (
            "the tensors of this segment cannot be verified: their checksums are in its last "
            f"{self.missing_bytes} bytes, which are missing; use `open(path, torn=True, verify=False)` to read "
            "the complete tensors"
        )
        return Torn(what, offset=self.end - self._header.hashes_length())

    def _check_padding(self) -> None:
        if not self._header.lengths:
            return
        before = self._header.before_body(self._behind_header)
        found = self._source.read(self._behind_header, len(before))
        expect(found, before, self._behind_header, "the padding before the body")

    def verify_body(self) -> None:
        """Checks the padding and, against their hashes, the buffers."""
        file = SourceFile(self._source, self._behind_header)
        if self._places:
            read_body(Input(file, self._behind_header), self._header, self._seed, None, self.limits)

    @overload
    def load(self, cls: type[T], *, tables: bool = ..., numbers: bool = ...) -> T: ...
    @overload
    def load(self, cls: Any = None, *, tables: bool = ..., numbers: bool = ...) -> Any: ...
    def load(self, cls: Any = None, *, tables: bool = False, numbers: bool = False) -> Any:
        """Loads the value into memory, and verifies all checksums, except with `open(path, verify=False)`.

        With `cls` the value is converted to that type: a dataclass, `list[int]`, `dict[str, numpy.ndarray]`, …
        Sequences that are stored as columns are read as lists of rows; with `tables` as `Table`. Sequences of
        numbers that are stored as one block are read as lists; with `numbers` as `Numbers`, an array.
        """
        self._check_padding()
        value = self._whole(Reading.of(cls, tables=tables, numbers=numbers), owned=True)
        return convert(value, cls)

    @overload
    def view(self, cls: type[T], *, tables: bool = ..., numbers: bool = ...) -> T: ...
    @overload
    def view(self, cls: Any = None, *, tables: bool = ..., numbers: bool = ...) -> Any: ...
    def view(self, cls: Any = None, *, tables: bool = False, numbers: bool = True) -> Any:
        """The value, with read-only views of the file as arrays. Their checksums are not verified.

        Compressed arrays are verified, and decompressed to memory of their own.
        Values behind the last end mark, which `open(path, torn=True)` finds too, are copied. `cls` and `tables`
        are those of `load`. Without `numbers`, sequences of numbers are lists, whatever their length.
        """
        return convert(self._whole(Reading.of(cls, tables=tables, numbers=numbers), owned=False), cls)

    def _whole(self, reading: Reading, *, owned: bool) -> Any:
        is_kept = not owned or "_tree" in self.__dict__

        def read(resolver: Resolver) -> Any:
            tree = self._tree
            if not is_kept:
                # What needs no decoding becomes part of the value. Tables and paths have a tree of their own.
                resolver.keeps_tree = False
                del self.__dict__["_tree"]
            return resolver.whole(tree)

        return self.read(read, [], owned=owned, reading=reading)

    @overload
    def get(self, path: str) -> Any | None: ...
    @overload
    def get(self, path: str, default: T) -> Any | T: ...
    @one_call
    def get(self, path: str, default: Any = None) -> Any:
        """The value at a path, with views as arrays, or `default` if there is none."""
        try:
            node, trail = self._find(path)
        except NotFound:
            return default
        return self._value(node, trail, path)

    @cached_property
    def _keys(self) -> list[str]:
        with bounded_recursion():
            return paths.keys(self._tree)

    def keys(self) -> list[str]:
        """The paths of everything in the value: tensors, columns of tables, and plain values such as numbers.

        A list of plain values has one path, and so have an empty list and an empty dict. Tables list columns, not
        rows. So `dict(segment.items())` is the whole value without its nesting. Values to which no path
        leads are left out. Only the metadata is read.
        """
        return list(self._keys)

    def items(self) -> Iterator[tuple[str, Any]]:
        """Each of the `keys` with its value, which is read when it is asked for. Arrays are views."""
        for path in self._keys:
            yield path, self[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        """The number of `keys`."""
        return len(self._keys)

    def __bool__(self) -> bool:
        return True

    def __contains__(self, path: object) -> bool:
        """Whether there is a value at a path. This can be a dict or a list too, which are not among the `keys`."""
        if not isinstance(path, str):
            return False
        try:
            self._find(path)
        except NotFound:
            return False
        return True

    def __repr__(self) -> str:
        name = "" if self.name is None else f" {shown(self.name)}"
        return f"<tenarc.Segment {self.number}{name}: {', '.join(self.contents())}>"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return notebook.of_segment(self)

    def contents(self) -> list[str]:
        """What is in it, in a few words."""
        words = [f"{self.byte_length:,} bytes"]
        if self.notes:
            words.insert(0, counted(len(self.notes), "note"))
        if len(self._header.metadata) <= _SHORT:
            with contextlib.suppress(Error, OSError, ValueError):
                words.insert(0, counted(sum(1 for _ in self.tensors()), "tensor"))
        if self.missing_bytes:
            words.append(f"{self.missing_bytes:,} bytes missing")
        return words

    @one_call
    def __getitem__(self, path: str) -> Any:
        """The value at a path, such as `layers.3.weight` or `/layers/3/weight`. Arrays are views.

        In a sequence that is stored as columns, `log.size` is the field `size` of all rows: an array, or a list
        with `None` where there is no value.
        """
        node, trail = self._find(path)
        return self._value(node, trail, path)

    def _value(self, node: Any, trail: list[paths.Step], path: str) -> Any:
        if type(node) is paths.AtColumn:
            return node.rows.value_of(node.columns)
        if type(node) is Decoded:
            return node.value
        return self.read(lambda resolver: resolver.value(node), trail, prefix=path)

    def _find(self, path: str) -> tuple[Any, list[paths.Step]]:
        def rows_of(node: Tag, trail: list[paths.Step]) -> Table | list[Any]:
            if node.tag != COLUMNS:
                numbers = self.read(lambda resolver: resolver.value(node), trail, prefix=path)
                return numbers.tolist() if isinstance(numbers, np.ndarray) else list(numbers)
            # A caller that reads row after row by path should not make the reader check all rows each time.
            if self._rows is None or self._rows[0] is not node:
                # Not a reference to this segment, which would keep the file mapped until cycles are collected.
                segment: Callable[[], Any] = weakref.ref(self)
                rows = StoredRows(0, Shared(), lambda: (segment(), node, trail), path, tables=False)
                self._rows = node, Table.of(rows.groups(), self.limits.memory(*self.input))
            return self._rows[1]

        try:
            return paths.find(self._tree, path, rows_of)
        except NotFound as error:
            error.ending(partial(near.question_of_path, self._tree, path))
            raise

    @one_call
    def tensor(self, path: str) -> npt.NDArray[Any] | Any:
        """The array at a path, as a view. `Mismatch` if the value there is not a tensor.

        A column of several groups is a copy, and so is a plain list of numbers.
        """
        node, trail = self._find(path)
        if type(node) is paths.AtColumn:
            tensor = node.rows.tensor_of(node.columns)
            if tensor is None:
                raise Mismatch(
                    "expected a tensor, found a column of other values, or of several dtypes", path=path
                )
            return tensor
        if type(node) is Decoded:
            # It is in a row of columns.
            if isinstance(node.value, (np.ndarray, Raw)):
                return node.value
            raise Mismatch(f"expected a tensor, found {type(node.value).__name__}", path=path)
        outer = node
        node, through = paths.inside(outer)
        if type(node) is list and node:
            # Whether a writer packs numbers depends on how many there are.
            return self.read(lambda _: _array_of(node), trail + through, prefix=path)
        found = self._describe(node, lambda: path) if type(node) is Tag else None
        if found is None or found.is_bytes:
            raise Mismatch(f"expected a tensor, found {type(node).__name__}", path=path)
        return _typed(self._value(node, trail + through, path), _type_of(outer, found))

    def slice(self, path: str, index: Any) -> npt.NDArray[Any] | Any:
        """Part of the array at a path, in new memory: `slice(path, numpy.s_[2:5, ..., 0])`.

        The index is one of numpy's basic indexing: integers, slices, `...` and `None`. Only the chunks with this
        part are read. They are verified, except with `open(path, verify=False)`. A column is read as by `tensor`,
        without being verified. `Mismatch` if the value is not a tensor that numpy can hold, or if the index is
        another one. `IndexError` if it does not fit the shape.
        """
        node, trail = self._find(path)
        found, through = self._in_buffer(node, path)
        if found is None:
            whole = self._array_at(path)
            return Index(index, whole.shape).of(whole)
        part = self._part_of(found, Index(index, found.shape), trail + through, path)
        return _typed(part, _type_of(node, found))

    def lazy(self, path: str) -> LazyArray:
        """The array at a path, of which only the parts are read that are asked for: see `LazyArray`.

        As views do, it stays valid after the archive is closed, and keeps the file mapped. `Mismatch` if the value
        is not a tensor that numpy can hold. A tensor in the metadata, or a column, is read at once by `tensor`.
        """
        node, trail = self._find(path)
        found, through = self._in_buffer(node, path)
        if found is None:
            whole = self._array_at(path)
            lazy = LazyArray(path, whole.dtype, whole.shape, lambda key: Index(key, whole.shape).of(whole))
        else:
            segment, known, steps, kind = self.lasting(), found, trail + through, _type_of(node, found)

            def read(key: Any) -> Any:
                return _typed(segment._part_of(known, Index(key, known.shape), steps, path), kind)

            dtype = _typed(np.empty(0, _dtype_of(known)), kind).dtype
            lazy = LazyArray(path, dtype, known.shape, read)
        if self.reopen is not None:
            lazy.reopen = Segment.lazy, (self.lasting(), path)
        return lazy

    def _in_buffer(self, node: Any, path: str) -> tuple[Described | None, list[paths.Step]]:
        """Describes a tensor of one dimension or more in a buffer, and the steps to it from a node around it.

        `None` if the node is something else, or numpy lacks the dtype.
        """
        if type(node) in (paths.AtColumn, Decoded):
            return None, []
        node, through = paths.inside(node)
        found = self._describe(node, lambda: path) if type(node) is Tag else None
        if found is None or found.buffer is None or found.is_bytes or not found.shape:
            return None, through
        known = dtypes.BY_NAME.get(found.dtype)
        return None if known is None or known.numpy is None else found, through

    def _array_at(self, path: str) -> npt.NDArray[Any]:
        """The tensor at a path, as a view."""
        found = self.tensor(path)
        if not isinstance(found, np.ndarray):
            raise Mismatch(f"expected a tensor that numpy can hold, found one of {found.dtype}", path=path)
        return found

    def _part_of(self, found: Described, index: Index, trail: list[paths.Step], path: str) -> Any:
        """Part of a tensor in a buffer."""
        number = found.buffer
        assert number is not None
        verify = self._check_readable(number)
        is_chunked = number in self._header.packed or (verify and self._header.checksums)
        chunk = self._header.chunk_len if is_chunked else 1
        chunks = Chunks(lambda start, end: self._part(number, start, end), chunk, found.nbytes)
        axes, shape = index.axes, found.shape
        if found.order == "F":
            axes, shape = axes[::-1], shape[::-1]
        width = _dtype_of(found).itemsize

        def read(resolver: Resolver) -> Any:
            if number in self._header.packed:
                check_memory(width * prod(index.shape), self.limits.memory(*self.input))
            part = Part(chunks.read, lambda *args: resolver.array_of(found.dtype, *args), width, max(chunk, GAP))
            return part.select(axes, shape)

        part = self.read(read, trail, prefix=path)
        if found.order == "F":
            part = part.T
        elif found.is_sequence:
            part = part.view(Numbers)
        # An index with integers only gives a number, as in numpy.
        return index.added(part if index.shape else part[()])

    def table(self, path: str) -> Table:
        """The sequence at a path as a `Table`. `Mismatch` if it is not stored as columns.

        Rows and columns are read, as views, when they are needed. As views do, the table stays valid after the
        archive is closed, and keeps the file mapped.
        """
        node, trail = self._find(path)
        if type(node) is paths.AtColumn:
            raise Mismatch("expected a sequence of rows, found a column, which a table of the rows has", path=path)
        node, through = paths.inside(node)
        if type(node) is not Tag or node.tag != COLUMNS:
            found = node.value if type(node) is Decoded else node
            raise Mismatch(f"expected columns, found {type(found).__name__}", path=path)
        segment = self.lasting()
        rows = StoredRows(0, Shared(), lambda: (segment, node, trail + through), path)
        table = Table.of(rows.groups(), self.limits.memory(*self.input))
        if self.reopen is not None:
            table.reopen = Segment.table, (segment, path)
        return table

    def tables(self) -> Iterator[str]:
        """The paths of sequences that are stored as columns."""
        for place, node in paths.places(self._tree):
            if node.tag == COLUMNS and not place.in_key:
                yield place.unique_path()

    def row_count(self) -> int | None:
        """The number of rows, if the value is a sequence."""
        return rows_in(self._header.metadata, self._tree)

    def lasting(self) -> Segment:
        """The same value, which can be read after the archive is closed, as views can."""
        lasting = copied(self)
        lasting._source = self._source.share()
        lasting._rows = None
        return lasting

    def rows(self) -> tuple[Any, list[paths.Step]]:
        """The whole value in the metadata, without tags around it, and the steps to it."""
        return paths.inside(self._tree)

    def tensors(self) -> Iterator[TensorInfo]:
        """All tensors, sequences of numbers, and columns that are tensors, in the order of the metadata.

        Tensors in map keys have no path, and are left out. So are tensors in columns of other kinds.
        """
        for place, node in paths.places(self._tree):
            if place.in_key:
                continue
            if node.tag == COLUMNS:
                yield from self._columns_of(node, place)
            else:
                yield from self._described(node, place)

    def tensors_outside_columns(self) -> Iterator[TensorInfo]:
        """All tensors and sequences of numbers that are not in columns."""
        for place, node in paths.places(self._tree):
            if not place.in_key and node.tag != COLUMNS:
                yield from self._described(node, place)

    def _described(self, node: Tag, place: paths.Place) -> Iterator[TensorInfo]:
        found = self._describe(node, place.path)
        if found is not None and not found.is_bytes:
            yield TensorInfo.of(place.unique_path(), found)

    def _columns_of(self, node: Tag, place: paths.Place) -> Iterator[TensorInfo]:
        """The columns that are tensors."""
        try:
            found = column_fields.tensors_in(node.value, self._describer)
        except Fault as fault:
            raise fault.kind(fault.message, offset=self._metadata_at, path=place.path()) from None
        for fields, tensor in found.items():
            yield TensorInfo.of(place.column(fields).unique_path(), tensor)

    def in_buffers(self) -> Iterator[tuple[paths.Place, Described]]:
        """What the buffers hold: for each reference to one, its place and the description of what it refers to.

        These can be byte strings and parts of map keys and of columns, which are not among the `tensors`. The
        place of a part of columns is that of the sequence.
        """
        for place, node in paths.payloads(self._tree):
            found = self._describe(node, place.path)
            if found is not None and found.buffer is not None:
                yield place, found

    @cached_property
    def _describer(self) -> Resolver:
        return Resolver(self, owned=False, limits=self.limits)

    def _describe(self, node: Tag, path: Callable[[], str]) -> Described | None:
        try:
            return self._describer.describe(node)
        except Fault as fault:
            raise fault.kind(fault.message, offset=self._metadata_at, path=path()) from None

    def read(
        self,
        read: Callable[[Resolver], T],
        trail: list[paths.Step],
        *,
        owned: bool = False,
        reading: Reading = DEFAULT_READING,
        prefix: str = "",
    ) -> T:
        """Reads something of the value. For errors, `trail` leads to it, and `prefix` is its path."""
        resolver = Resolver(self, owned=owned, limits=self.limits, reading=reading)
        try:
            with bounded_recursion():
                return read(resolver)
        except Fault as fault:
            fault.steps += [(step.child(), None) for step in reversed(trail)]
            raise located(fault, self._header.metadata, self._metadata_at, prefix) from None
        except (Damaged, Torn, Unsupported, Version) as error:
            # A buffer is wrong, missing or of an unknown codec.
            error.path = error.path or prefix or None
            raise
        finally:
            resolver.release()

    def _part(self, number: int, start: int, end: int) -> Payload:
        """A copy of some bytes of a buffer. Only the chunks with these bytes are read and verified."""
        verify = self._check_readable(number)
        if start == end:
            return np.empty(0, np.uint8)
        chunk, length = self._header.chunk_len, self._header.lengths[number]
        first, last = start // chunk, -(-end // chunk)
        base, behind = first * chunk, min(last * chunk, length)
        try:
            if number in self._header.packed:
                try:
                    check_memory(behind - base, self.limits.memory(*self.input))
                except Fault as fault:
                    path = self._path_to(number)
                    raise fault.kind(fault.message, offset=self._places[number], path=path) from None
                return self._unpacker(number).read(start, end)
            stored, at = self.stored_hashes if verify else None, self._places[number]
            if stored is None:
                return self._source.payload(at + start, end - start, True)
            found = self._source.payload(at + base, behind - base, True)
            for index in range(first, last):
                content = found.data[index * chunk - base : (index + 1) * chunk - base]
                stored.check_chunk(number, index, hashes_of(content, chunk), at)
            return found[start - base : end - base]
        except (Damaged, Unsupported, Version) as error:
            error.path = self._path_to(number)
            raise

    def _check_readable(self, number: int) -> bool:
        """Checks that a buffer is there and may be read. Returns whether it is to be verified."""
        at, elsewhere = self._places[number], self.elsewhere(number)
        if elsewhere is not None:
            missing = elsewhere.error(number)
            missing.path = self._path_to(number)
            raise missing
        if not self.has_buffer(number):
            there, length = max(self._before - at, 0), self._header.stored_lengths[number]
            what = f"the archive ends inside buffer {number}: it has {there} of the buffer's {length} bytes"
            raise Torn(what, offset=at)
        verify = self._verify and self._header.checksums
        if verify and self._header.algorithm is not None:
            error = self._header.unknown_check()
            error.path = self._path_to(number)
            raise error
        if verify and self.missing_bytes:
            # This is so for views too, although nothing verifies those: a caller must ask for tensors that
            # cannot be verified.
            raise self._hashes_cut_off()
        return verify

    def payload(self, number: int, owned: bool) -> Payload:
        """The bytes of a buffer: a view, or if `owned`, a copy whose checksums are verified.

        A compressed buffer is verified and decompressed in both cases. If not `owned`, the result is read-only, as
        views are.
        """
        at, length = self._places[number], self._header.stored_lengths[number]
        verify = self._check_readable(number)
        if number in self._header.packed:
            try:
                unpacker = self._unpacker(number)
                payload = unpacker.read(0, unpacker.length)
            except (Damaged, Unsupported, Version) as error:
                error.path = self._path_to(number)
                raise
            payload.flags.writeable = owned
            return payload
        stored = self.stored_hashes if verify and (owned or self._source.sends) else None
        if stored is None:
            return self._source.payload(at, length, owned)
        found: bytes | bytearray
        if length <= STEP:
            # It is still in the cache when it has been read.
            payload = self._source.payload(at, length, owned)
            found = hashes_of(payload.data, self._header.chunk_len)
        else:
            hasher = self._header.hasher(number)
            payload = self._source.payload(at, length, owned, hasher.update)
            found = hasher.hashes
        try:
            stored.check(number, found, at)
        except Damaged as error:
            error.path = self._path_to(number)
            raise
        return payload

    def _unpacker(self, number: int) -> Unpacker:
        """What decompresses a compressed buffer, after it has verified it."""

        def fetch(start: int, end: int) -> memoryview:
            return self._source.payload(start, end - start, False).data

        hashes = self.stored_hashes if self._verify else None
        return Unpacker(self._header, number, self._places[number], fetch, hashes)

    def _path_to(self, number: int) -> str | None:
        """The path of what is in a buffer, for an error; `None` if there is nothing with a path."""
        try:
            with bounded_recursion():
                return paths.to_buffer(self._tree, number)
        except Error:
            return None


def _array_of(nodes: list[Any]) -> Numbers:
    """A plain list of numbers as an array."""
    if not {*map(type, nodes)} <= {int, float}:
        raise Fault(Mismatch, "expected a tensor, found a list of other values than numbers")
    dtype, payload = listed(nodes)
    assert dtype.numpy is not None
    return payload.view(dtype.numpy).view(Numbers)


def _type_of(node: Any, found: Described) -> named.Type | None:
    """The type around a tensor. Sequences of numbers are none of a type."""
    return None if found.is_sequence else paths.type_of(node)


def _typed(found: Any, kind: named.Type | None) -> Any:
    """An array, or an element of it, as the times that a type around it says that it has."""
    if kind is None or not isinstance(found, (np.ndarray, np.integer)):
        return found
    times = named.array_of(*kind, np.asarray(found))
    return times if isinstance(found, np.ndarray) else times[()]


def _dtype_of(found: Described) -> np.dtype[Any]:
    known = dtypes.BY_NAME[found.dtype].numpy
    assert known is not None
    return known


def counted(count: int, what: str) -> str:
    return f"{count:,} {what}" + "s" * (count != 1)


def shown(name: str) -> str:
    """A name for a description."""
    return repr(name if len(name) <= 40 else name[:37] + "...")


def read_record(source: Source, at: int, before: int, limits: Limits, length: int | None = None) -> bytes:
    """Reads the record at an offset, with its hash. It must end at position `before` or earlier.

    `length` is its length in the directory. The magic is checked with the record that follows it.
    """
    if not len(MAGIC) <= at < before:
        raise Damaged(f"expected the offset of a record before byte {before}, found {at}", offset=at)
    if length is not None:
        if length > before - at:
            text = f"expected a record that ends before byte {before}, the directory says {length} bytes"
            raise Damaged(text, offset=at)
        check_record_length(length, at, limits)
    wanted = min(_NEAR, before - at) if length is None else length
    ahead = len(MAGIC) if at == len(MAGIC) else 0
    start = source.read(at - ahead, ahead + wanted)
    if ahead:
        if start[:ahead] != MAGIC:
            raise no_archive(start)
        start = start[ahead:]
    try:
        _, total = record_length(start[:MAX_RECORD_HEAD], at)
    except Damaged:
        check_version(start, at)
        if length is not None or len(start) >= MAX_RECORD_HEAD:
            raise
        raise Torn("the archive ends inside a record", offset=at) from None
    if total <= len(start) and length in (None, total):
        return start[:total]
    check_version(start, at)
    if length is not None:
        raise Damaged(f"the directory says a record of {length} bytes, found one of {total}", offset=at)
    if total > before - at:
        raise Torn(f"expected a record of {total} bytes, found {before - at}", offset=at)
    check_record_length(total, at, limits)
    return source.read(at, total)


def check_record_length(length: int, at: int, limits: Limits) -> None:
    """Checks that a record may be read. A sparse file can be larger than the memory."""
    if length > limits.longest:
        raise Limit(f"a record of {length} bytes, more than the limit of {limits.longest}", offset=at)
