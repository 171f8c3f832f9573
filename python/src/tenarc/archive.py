"""`Archive`: an archive that can be read at any position, and the functions that open one."""

from __future__ import annotations

import bisect
import contextlib
import operator
import os
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from itertools import accumulate
from types import TracebackType
from typing import Any, BinaryIO, TypeVar, overload

import numpy.typing as npt
import xxhash

from . import items, notebook, walk
from .columns import MAX_ROWS, Column
from .directory import Directory, Entry
from .errors import Damaged, Error, NotFound, Torn, in_file
from .lazy import LazyArray
from .listing import lists_without
from .near import question
from .options import DEFAULT_LIMITS, Limits
from .origin import Origin, copied, refuse
from .paths import Step
from .progress import CountedSource, Counter, Progress
from .remote import is_url, remote
from .saved import Segment, TensorInfo, counted, read_record, shown
from .series import Series
from .source import FileSource, Front, Joined, Source, open_regular
from .stored import Shared, SmallRows, StoredRows
from .stream import is_stream, load_from
from .table import Table
from .torn import check_hashes, last_commit, read_end, scan

T = TypeVar("T")

# The most values whose names are in a description.
_FEW = 8


@lists_without()
class Archive:
    """An archive that can be read at any position.

    Opening it reads the end mark. Headers are read when they are needed, and tensors when they are asked for.
    If the archive holds one value, the methods here read parts of it, and it can be used like a dict of paths:
    `archive["layers.0.weight"]`, `"layers.0.weight" in archive`, `for path in archive`, `archive.keys()`. If it
    holds several, `segment`, `named` and `segments` give them, and these methods raise `NotFound`.

    Views stay valid after the archive is closed. While views are in use, no other process may truncate the file to
    less than what was committed.
    """

    def __init__(
        self,
        source: Source,
        *,
        torn: bool = False,
        verify: bool = True,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._source = source
        # The file that it is in.
        self._path: str | None = None
        self._origin: Origin | None = None
        self._is_closed = False
        self._limits = limits
        self._verify = verify
        #: What is wrong with a torn archive that was opened with `torn=True`; otherwise `None`.
        self.torn: Torn | None = None
        #: How many bytes follow the last end mark, because an append is in progress or was interrupted. Only
        #: `open(path, torn=True)` reads them.
        self.unfinished_bytes = 0
        # The offset of the segment that a torn archive ends in.
        self._cut: int | None = None
        if torn and read_end(source, source.length) is None:
            self._open_torn(source)
            return
        self._directory, self._mark, end = last_commit(source, limits)
        if end < source.length:
            self.unfinished_bytes = source.length - end
            self._source = Front(source, end)

    def _open_torn(self, source: Source) -> None:
        found = scan(source, self._limits, check_hashes)
        found.check_readable()
        self.torn = found.error(source.length)
        self.unfinished_bytes = source.length - found.vouched
        entries = found.entries
        if found.cut is not None:
            self._cut = found.cut.offset
            entries = [*entries, Entry(found.cut.offset, found.cut.name, found.cut.header_length)]
        # All entries are in the root, whatever their number, because there are no blocks to read.
        self._directory, self._mark = Directory(len(entries), entries), source.length

    @classmethod
    def _mapped(cls, file: FileSource, **options: Any) -> Archive:
        """Opens an archive in a file, and maps the committed part of it.

        While the headers are read, and afterwards, a writer may cut off what it has not committed. Access to a
        mapped page that the file no longer has would kill the process. So this part of the file is not mapped.
        """
        archive = cls(file, **options)
        if archive.torn is None:
            archive._source = file.map(file.length - archive.unfinished_bytes)
            file.close()
        else:
            archive._source = Joined(file.map(file.length - archive.unfinished_bytes), file)
        return archive

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the path and the options. Unpickling opens the file again, as it is then."""
        if self._is_closed:
            raise ValueError("cannot pickle a closed archive")
        return _reopened, tuple(self._origin or refuse(self))

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
        """Closes the file. Views stay valid, and keep the file mapped."""
        self.__dict__.pop("_only", None)
        self._is_closed = True
        self._source.close()

    @property
    def count(self) -> int:
        """The number of values."""
        return self._directory.count

    def __repr__(self) -> str:
        name = "" if self._path is None else f" {self._path!r}"
        if self._is_closed:
            return f"<tenarc.Archive{name}: closed>"
        words = [counted(self.count, "value"), f"{self._source.length:,} bytes"]
        # The header of each value is read for this.
        with contextlib.suppress(Error, OSError, ValueError):
            if self.count == 1:
                words[1:1] = self._only.contents()[:-1]
            elif self.count <= _FEW:
                words[0] += f" ({', '.join('unnamed' if name is None else shown(name) for name in self.names())})"
        if self.torn is not None:
            words.append("torn")
        return f"<tenarc.Archive{name}: {', '.join(words)}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the tree of each value, and pictures of some tensors."""
        return notebook.of_archive(self, self._is_closed)

    def _read(self, at: int, before: int, length: int) -> bytes:
        return read_record(self._source, at, before, self._limits, length)

    @cached_property
    def _entries(self) -> list[Entry]:
        return list(self._directory.segments(self._read, self._mark))

    def names(self) -> list[str | None]:
        """The names of all values, in order."""
        return [entry.name for entry in self._entries]

    def segment(self, number: int) -> Segment:
        """A value by its number; negative ones count from the end."""
        count = self._directory.count
        index = number + count if number < 0 else number
        if not 0 <= index < count:
            raise NotFound(f"the archive has {count} values, there is no value {number}")
        return self._segment(index, self._directory.entry(index, self._read, self._mark))

    def _segment(self, number: int, entry: Entry) -> Segment:
        # A torn archive has no directory to compare with.
        known = entry if self.torn is None else None
        options: Any = dict(verify=self._verify, entry=known)
        found = Segment(self._source, number, entry.offset, self._mark, self._limits, **options)
        if found.missing_bytes and entry.offset != self._cut:
            raise found.cut_error()
        if self._origin is not None:
            found.reopen = _segment_again, (self._origin, number, found.seed)
        return found

    def named(self, name: str) -> Segment:
        """The value that was saved last under a name.

        A value that was cut off is given only if no complete one has the name.
        """
        cut: Segment | None = None
        for number in reversed(range(len(self._entries))):
            entry = self._entries[number]
            if entry.name == name:
                found = self._segment(number, entry)
                if not found.missing_bytes:
                    return found
                cut = found
        if cut is None:
            raise self._no_value(name)
        return cut

    def _no_value(self, name: str) -> NotFound:
        names = dict.fromkeys(known for known in self.names() if known is not None)
        return NotFound(f"the archive has no value named {name!r:.80}{question(name, names)}")

    def segments(self) -> Iterator[Segment]:
        """All values, in order."""
        for number, entry in enumerate(self._entries):
            yield self._segment(number, entry)

    @cached_property
    def _only(self) -> Segment:
        count = self._directory.count
        if count != 1:
            what = f"the archive has {count} values: choose one with `segment` or `named`"
            raise NotFound(what)
        return self.segment(0)

    @overload
    def load(self, cls: type[T], *, tables: bool = ..., numbers: bool = ...) -> T: ...
    @overload
    def load(self, cls: Any = None, *, tables: bool = ..., numbers: bool = ...) -> Any: ...
    def load(self, cls: Any = None, *, tables: bool = False, numbers: bool = False) -> Any:
        """Loads the only value: see `Segment.load`."""
        return self._only.load(cls, tables=tables, numbers=numbers)

    @overload
    def view(self, cls: type[T], *, tables: bool = ..., numbers: bool = ...) -> T: ...
    @overload
    def view(self, cls: Any = None, *, tables: bool = ..., numbers: bool = ...) -> Any: ...
    def view(self, cls: Any = None, *, tables: bool = False, numbers: bool = True) -> Any:
        """The only value with views as arrays: see `Segment.view`."""
        return self._only.view(cls, tables=tables, numbers=numbers)

    @overload
    def get(self, path: str) -> Any | None: ...
    @overload
    def get(self, path: str, default: T) -> Any | T: ...
    def get(self, path: str, default: Any = None) -> Any:
        """The value at a path, or `default`: see `Segment.get`."""
        return self._only.get(path, default)

    def __getitem__(self, path: str) -> Any:
        """The value at a path in the only value: see `Segment.__getitem__`."""
        return self._only[path]

    def keys(self) -> list[str]:
        """The paths in the only value: see `Segment.keys`."""
        return self._only.keys()

    def items(self) -> Iterator[tuple[str, Any]]:
        """The paths in the only value, and what is there: see `Segment.items`."""
        return self._only.items()

    def __iter__(self) -> Iterator[str]:
        return iter(self._only)

    def __len__(self) -> int:
        """The number of paths in the only value. `count` is the number of values."""
        return len(self._only)

    def __bool__(self) -> bool:
        return True

    def __contains__(self, path: object) -> bool:
        """Whether there is a value at a path in the only value."""
        return path in self._only

    def tensor(self, path: str) -> npt.NDArray[Any] | Any:
        """The array at a path: see `Segment.tensor`."""
        return self._only.tensor(path)

    def slice(self, path: str, index: Any) -> npt.NDArray[Any] | Any:
        """Part of the array at a path: see `Segment.slice`."""
        return self._only.slice(path, index)

    def lazy(self, path: str) -> LazyArray:
        """The array at a path, of which only the parts are read that are asked for: see `Segment.lazy`."""
        return self._only.lazy(path)

    @property
    def notes(self) -> dict[str, str]:
        """The notes that the only value was saved with: see `Segment.notes`."""
        return self._only.notes

    def table(self, name: str) -> Table:
        """The values that were saved under a name, as one table (SPEC 7.3); each of them is a sequence.

        If no value has that name, it is a path in the only value: see `Segment.table`.

        The sequences can be stored as columns or as arrays. Usually, the directory knows how many rows they have.
        Headers, columns and rows are read when they are needed, and arrays are views. The table stays valid after
        the archive is closed, except for values that were not committed, and keeps the file mapped.
        """
        wanted = self._all_named(name)
        if not wanted and self.count != 1:
            raise self._no_value(name)
        if not wanted:
            return self._only.table(name)
        table = self._table(wanted)
        table.name = name
        return table

    def _all_named(self, name: str) -> list[tuple[int, Entry]]:
        """The values that were saved under a name, and their numbers."""
        found = [(number, entry) for number, entry in enumerate(self._entries) if entry.name == name]
        # A value that was cut off is given only if no complete one has the name.
        return [(number, entry) for number, entry in found if entry.offset != self._cut] or found

    def series(self, name: str, path: str = "") -> Series:
        """What is at a path in each of the values that were saved under a name, step by step: see `Series`.

        >>> archive.series("state", "velocity")[100:].stack()  # doctest: +SKIP

        Nothing is read before a step is asked for. The series stays valid after the archive is closed, except for
        values that were not committed, and keeps the file mapped.
        """
        wanted = self._all_named(name)
        if not wanted:
            raise self._no_value(name)
        return self._series(wanted, [number for number, _ in wanted], path)

    def _series(self, wanted: list[tuple[int, Entry]], numbers: list[int], path: str) -> Series:
        entries, lasting = dict(wanted), self._lasting()
        name = wanted[0][1].name or ""
        series = Series(name, path, numbers, lambda number: lasting._segment(number, entries[number]))
        if self._origin is not None:
            series.reopen = _series_again, (self._origin, wanted)
        return series

    def _lasting(self) -> Archive:
        """The same archive, which can be read after this one is closed, as views can."""
        lasting = copied(self)
        lasting._source = self._source.share()
        return lasting

    @cached_property
    def _tables(self) -> list[str | None]:
        """The names of the tables: of values that are sequences, or the paths in the only value."""
        found: dict[str | None, None] = {}
        for number, entry in enumerate(self._entries):
            rows = entry.rows if self.torn is None else self._segment(number, entry).row_count()
            if rows is not None:
                found[entry.name] = None
        return [*found] if found or self.count != 1 else [*self._only.tables()]

    def _only_table(self) -> Table:
        names = self._tables
        if len(names) == 1 and names[0] is not None:
            return self.table(names[0])
        if len(names) == 1 and self.count == 1:
            return self._only.table("")
        shown_names = ", ".join("one without a name" if name is None else shown(name) for name in names[:_FEW])
        known = (
            f"{counted(len(names), 'table')} ({shown_names}{', ...' * (len(names) > _FEW)})"
            if names
            else "no table"
        )
        raise NotFound(f"expected one table, the archive has {known}: `archive.table(name)` chooses one")

    def __arrow_c_schema__(self) -> Any:
        """The schema of the only table: see `Table.__arrow_c_schema__`."""
        return self._only_table().__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The rows of the only table: see `Table.__arrow_c_stream__`.

        `NotFound` if the archive has several tables, or none.
        """
        return self._only_table().__arrow_c_stream__(requested_schema)

    def _table(self, wanted: list[tuple[int, Entry]]) -> Table:
        """The table of some values."""
        numbers = [number for number, _ in wanted]
        entries = [entry for _, entry in wanted]
        values = _Values(self, numbers)
        # The metadata has a byte for each element, or for each group. If not, the headers are read for the error.
        known = [
            entry.rows
            for entry in entries
            if entry.rows is not None and entry.rows <= MAX_ROWS * entry.header_length
        ]
        if len(known) == len(entries) and self.torn is None:
            table: Table = _TableOfValues(values, numbers, known)
        else:
            table = Table.of(values.groups(numbers), self._limits.memory(*values.shared.input))
        if self._origin is not None:
            table.reopen = _table_again, (self._origin, wanted)
        return table

    def tensors(self) -> Iterator[TensorInfo]:
        """All tensors: see `Segment.tensors`."""
        return self._only.tensors()

    @contextlib.contextmanager
    def _counted(self, progress: Progress, what: str) -> Iterator[Archive]:
        """The same archive, of which all that is read is counted."""
        if progress is False:
            yield self
            return
        with Counter(progress, self._source.length, what) as counter:
            counted = copied(self)
            counted._source = CountedSource(self._source, counter)
            yield counted

    def digest(self) -> str:
        """The digest of all values and their names, in order, as 32 hexadecimal digits (SPEC 5.10).

        See `Segment.digest`. Headers are read only of values whose digest is not in the directory.
        """
        state = xxhash.xxh3_128(items.head(items.ARRAY, self.count))
        for number, entry in enumerate(self._entries):
            digest = entry.digest or self._segment(number, entry).digest_bytes()
            state.update(items.array([items.text_or_null(entry.name), items.byte_string(digest)]))
        return state.hexdigest()

    def verify(self, *, progress: Progress = False) -> None:
        """Reads the whole archive and checks every byte of it: hashes, paddings, the directory, and references.

        Raises the first fault. Elements of tensors, such as the bytes of a bool, are not checked. Unfinished bytes
        are not part of the archive. For `progress`, see `save`; the bytes are those of the archive.
        """
        with self._counted(progress, "verifying") as counted:
            found = walk.verify(counted._source, self._limits)
        if [entry.place() for entry in found] != [entry.place() for entry in self._entries]:
            raise Damaged("the directory does not list the segments of the archive", offset=self._mark)


class _Values:
    """The values of a table. Only the one that was used last is kept in memory."""

    def __init__(self, archive: Archive, numbers: list[int]) -> None:
        self._entries = {number: archive._entries[number] for number in numbers}
        self._archive = archive._lasting()
        self._last: Segment | None = None
        self.shared = Shared()

    def groups(self, numbers: Iterable[int]) -> list[Column]:
        """The groups of rows of some values. Nothing but their numbers of rows is read."""
        groups: list[Column] = []
        small = SmallRows(self.shared)
        # Values of which a row was read before are among them.
        self.shared.input = 0, 0
        for number in numbers:
            rows = StoredRows(number, self.shared, partial(self.sequence, number))
            parts = rows.groups()
            length = rows.small_length() if parts else None
            if length is not None:
                small.add(rows, parts[0].count, length)
                parts = []
            if parts or small.is_full():
                # The order of the rows is that of the values.
                groups += [*small.group(), *parts]
                small = SmallRows(self.shared)
        return groups + small.group()

    @property
    def limit(self) -> int:
        """How much memory the rows of one call may take."""
        return self._archive._limits.memory(*self.shared.input)

    def sequence(self, number: int) -> tuple[Segment, Any, list[Step]]:
        # Several threads can read columns, so that the attribute can be another one a moment later.
        last = self._last
        if last is None or last.number != number:
            last = self._last = None
            last = self._last = self._archive._segment(number, self._entries[number])
        return last, *last.rows()


class _TableOfValues(Table):
    """The values that were saved under one name, of which the directory knows how many rows they have.

    Their headers are read when anything else is needed, and for a row only that of its value.
    """

    def __init__(self, values: _Values, numbers: list[int], counts: list[int]) -> None:
        self._values, self._numbers = values, numbers
        # The number of the first row of each value, and at last the number of rows.
        self._firsts = list(accumulate(counts, initial=0))
        self._names = None
        self._memory = {}
        self.name = None
        self.reopen = None
        # The values of which a row was read.
        self._read: dict[int, Table] = {}

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.reopen or refuse(self)

    @cached_property
    def limit(self) -> int | None:  # type: ignore[override]
        return self._values.limit if self.groups else None

    @cached_property
    def groups(self) -> list[Column]:  # type: ignore[override]
        return self._values.groups(self._numbers)

    @cached_property
    def _starts(self) -> list[int]:  # type: ignore[override]
        return list(accumulate((group.count for group in self.groups), initial=0))

    def __len__(self) -> int:
        return self._firsts[-1]

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, (str, slice)) or "groups" in self.__dict__:
            return super().__getitem__(key)
        row = operator.index(key)
        row += len(self) if row < 0 else 0
        if not 0 <= row < len(self):
            return super().__getitem__(key)
        place = bisect.bisect_right(self._firsts, row) - 1
        found = self._read.get(place)
        if found is None:
            rows = StoredRows(
                self._numbers[place], self._values.shared, partial(self._values.sequence, self._numbers[place])
            )
            groups = rows.groups()
            found = self._read[place] = Table.of(groups, self._values.limit)
        return found[row - self._firsts[place]]


def open_archive(
    path: str | os.PathLike[str],
    *,
    store: Any = None,
    torn: bool = False,
    verify: bool = True,
    limits: Limits = DEFAULT_LIMITS,
) -> Archive:
    """Opens an archive file, to read parts of it. The file is mapped: arrays are views, without a copy.
    Only compressed arrays have memory of their own.

    While another process appends, and after an append that was interrupted, the archive is what was committed
    last. `Archive.unfinished_bytes` says how many bytes follow.

    With `torn`, what follows the last end mark is read too, or everything readable if there is no end mark. All
    headers are scanned then. The values are the complete ones and, as the last one, the value that the file ends
    in, if its header is complete: see `Segment.missing_bytes`. `Archive.torn` says what is wrong with the file.
    Arrays of values that were not committed are copies.

    The archive, its values and their tables can be pickled, for example for the workers of a DataLoader: whoever
    unpickles them opens the file again.

    Without `verify`, the checksums of tensors are not verified. This is how to read the complete tensors of a
    value that was cut off, because its checksums are missing.

    With `store`, the path is that of an object in a store of obstore, or in a file system of fsspec. A URL such as
    `s3://bucket/model.tenarc` is opened by fsspec. Only the bytes that are needed are read, long arrays by several
    requests side by side, and all arrays are copies.

    `OSError` if the file cannot be read, `Torn` if it has no end mark, `Damaged` if it is not an archive or is
    damaged.
    """
    options: dict[str, Any] = {"torn": torn, "verify": verify, "limits": limits}
    if store is not None or is_url(path):
        archive = _opened_in(path, store, **options)
        if store is None:
            archive._origin = Origin(os.fsdecode(path), torn, verify, limits)
        return archive
    archive = _opened(path, Archive._mapped, **options)
    archive._origin = Origin(os.path.abspath(os.fsdecode(path)), torn, verify, limits)
    return archive


def _reopened(*origin: Any) -> Archive:
    """Opens a file again that was open when something in it was pickled."""
    path, torn, verify, limits = origin
    return open_archive(path, torn=torn, verify=verify, limits=limits)


def _segment_again(origin: Origin, number: int, seed: bytes) -> Segment:
    archive = _reopened(*origin)
    if number >= archive.count:
        raise _changed(origin)
    found = archive.segment(number)
    if found.seed != seed:
        raise _changed(origin)
    return found


def _table_again(origin: Origin, wanted: list[tuple[int, Entry]]) -> Table:
    return _with_values(origin, wanted)._table(wanted)


def _series_again(origin: Origin, wanted: list[tuple[int, Entry]], numbers: list[int], path: str) -> Series:
    return _with_values(origin, wanted)._series(wanted, numbers, path)


def _with_values(origin: Origin, wanted: list[tuple[int, Entry]]) -> Archive:
    """Opens a file again that must have some values. Values that were appended meanwhile are not among them."""
    archive = _reopened(*origin)
    if any(archive._entries[number : number + 1] != [entry] for number, entry in wanted):
        raise _changed(origin)
    return archive


def _changed(origin: Origin) -> Error:
    error = NotFound("the file was replaced after a value in it was pickled: the value is not there any more")
    error.file = origin.path
    return error


@overload
def load(
    path: str | os.PathLike[str] | BinaryIO,
    *,
    cls: type[T],
    store: Any = ...,
    tables: bool = ...,
    numbers: bool = ...,
    limits: Limits = ...,
    progress: Progress = ...,
) -> T: ...
@overload
def load(
    path: str | os.PathLike[str] | BinaryIO,
    *,
    cls: Any = None,
    store: Any = ...,
    tables: bool = ...,
    numbers: bool = ...,
    limits: Limits = ...,
    progress: Progress = ...,
) -> Any: ...
def load(
    path: str | os.PathLike[str] | BinaryIO,
    *,
    cls: Any = None,
    store: Any = None,
    tables: bool = False,
    numbers: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    progress: Progress = False,
) -> Any:
    """Loads the value of an archive file that holds one value, and verifies all checksums.

    `path` can also be a file object, or any other object with `read(length)`, such as a pipe. It is read from its
    position to its end, without seeking, and stays open. With `store`, it is an object in a store of obstore or in
    a file system of fsspec; a URL such as `s3://bucket/model.tenarc` is opened by fsspec.

    Arrays have memory of their own. With `cls` the value is converted to that type: a dataclass, `list[int]`,
    `dict[str, numpy.ndarray]`, … Sequences that are stored as columns are read as lists of rows; with `tables` as
    `Table`. Sequences of numbers that are stored as one block are read as lists; with `numbers` as `Numbers`, an
    array. For `progress`, see `save`; the bytes are those of the file.
    """
    if is_stream(path, "read"):
        with in_file(path):
            return load_from(path, cls, tables=tables, numbers=numbers, limits=limits, progress=progress)
    is_remote = store is not None or is_url(path)
    opened = _opened_in(path, store, limits=limits) if is_remote else _opened(path, Archive, limits=limits)
    with opened as archive, in_file(path), archive._counted(progress, "loading") as counted:
        return counted.load(cls, tables=tables, numbers=numbers)


def _opened_in(path: Any, store: Any, **options: Any) -> Archive:
    """Opens an archive in a store, or at a URL."""
    with in_file(path):
        return _made(remote(os.fspath(path), store), path, Archive, **options)


def _opened(path: Any, make: Callable[..., Archive], **options: Any) -> Archive:
    return _made(FileSource(open_regular(path)), path, make, **options)


def _made(source: Any, path: Any, make: Callable[..., Archive], **options: Any) -> Archive:
    try:
        with in_file(path):
            archive = make(source, **options)
        archive._path = os.fsdecode(path)
        return archive
    except BaseException:
        source.close()
        raise
