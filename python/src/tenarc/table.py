"""`Table`: rows in columns (SPEC 7), also of several values that were saved under one name (7.3)."""

from __future__ import annotations

import bisect
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import accumulate
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from . import arrow_export, frames, named, near, notebook, paths
from .calls import Call, one_call
from .column_maker import column_of, groups_of
from .columns import ABSENT, Column, combined, memory_of
from .conditions import Filter
from .errors import Error, Fault, Mismatch, NotFound, Unsupported, bounded_recursion
from .fields import Decoded
from .listing import lists_without
from .origin import refuse
from .selection import Selection
from .values import Raw

# What a row takes that has no bytes in the input: its entry in a list.
_FREE_ROW = 8
# So much memory for the rows of a group is not worth finding out how much each takes.
_LITTLE = 1 << 20
# Iterating makes so many rows at a time.
_CHUNK = 4096
# The most columns, and groups of rows, that a description looks at.
_FEW = 12
# The name of the only column of rows that are no structs, in Arrow.
_VALUE = "value"


@lists_without(
    "batches",
    "export",
    "field_names",
    "first_of",
    "flat",
    "groups",
    "has_field",
    "joined",
    "levels",
    "located",
    "limit",
    "listed_rows",
    "of",
    "place",
    "places_of",
    "reopen",
    "row_of",
    "take_memory",
    "tensor_of",
    "value_of",
    "value_of_pieces",
)
class Table(paths.Rows, arrow_export.ArrowRows):
    """Rows that are kept and written as columns.

    `Table([{"id": 1, "name": "a"}, ...])` and `Table({"id": array, "name": list})` make a table to be written: of
    rows, or of columns. Columns are those of a dict of arrays and lists, a data frame of pandas or polars, an
    Arrow table, or a structured array. `Unsupported` says what to do if they cannot be taken. Where a value holds
    a `Table`, its rows are written as columns. Reading gives tables instead of lists with `tables=True`.

    A table is a sequence of rows: `table[3]` makes a dict of row 3, and `table[3:5]` a list of dicts.
    `table["id"]` is a column, and `table["at.x"]` a column in a column. Iterating makes some thousand rows at a
    time.

    The tables that `Archive.table` and `Segment.table` give read columns and rows when they are needed. A column
    is read without the other columns, and a row with the group of rows that it is in. Errors in the file are
    raised then.
    """

    def __init__(self, data: Any) -> None:
        try:
            with bounded_recursion():
                self.groups = [*_groups(data)]
        except Fault as fault:
            raise fault.kind(fault.message, path=fault.path()) from fault.__cause__
        #: How much memory the rows of one call may take; `None` for the rows of a caller.
        self.limit: int | None = None
        #: The name under which its values were saved, if it has one.
        self.name: str | None = None
        #: What makes the table again in another process, and its arguments, if it is read when it is needed.
        self.reopen: tuple[Callable[..., Any], tuple[Any, ...]] | None = None
        self._index()

    @classmethod
    def of(cls, groups: Iterable[Column], limit: int | None = None) -> Table:
        """A table of groups that have been checked, or are checked when they are read."""
        table = cls(())
        table.limit = limit
        table.groups = [group for group in groups if group.count]
        table._index()
        return table

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickles the columns; or if they are read when they are needed, the path of the archive, which is opened
        again."""
        if any(group.is_stored for group in self.groups):
            return self.reopen or refuse(self)
        return super().__reduce_ex__(protocol)

    def _index(self) -> None:
        # The number of the first row of each group, and at last the number of rows.
        self._starts = list(accumulate((group.count for group in self.groups), initial=0))
        self._names: dict[str, None] | None = None
        # The memory of the rows of groups of which rows were made.
        self._memory: dict[int, int] = {}

    def __len__(self) -> int:
        return self._starts[-1]

    def __repr__(self) -> str:
        rows = f"{len(self):,} row" + "s" * (len(self) != 1)
        if len(self.groups) > _FEW:
            # Each group is looked into for the columns.
            return f"<tenarc.Table: {rows}>"
        try:
            forms = self.dtypes
            form = " or ".join(dict.fromkeys(group.form() for group in self.groups))
        except (Error, OSError, ValueError):
            return f"<tenarc.Table: {rows}>"
        if not forms:
            return f"<tenarc.Table: {rows}{form and ' of '}{form}>"
        columns = f"{len(forms):,} column" + "s" * (len(forms) != 1)
        shown = [f"{name!r} {form}" for name, form in list(forms.items())[:_FEW]] + ["..."] * (len(forms) > _FEW)
        return f"<tenarc.Table: {rows}, {columns}: {', '.join(shown)}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the first rows."""
        return notebook.of_table(self)

    def keys(self) -> list[str]:
        """The names of the columns, as `names`."""
        return self.names()

    def __contains__(self, key: object) -> bool:
        """Whether text is the name of a column. Anything else, and text in a table without columns, is a row."""
        if isinstance(key, str):
            names = self.field_names()
            if names:
                return key in names
        return super().__contains__(key)

    def __iter__(self) -> Iterator[Any]:
        # All groups are read in one call. What the caller does between two rows is no part of it.
        call = Call(is_joined=False)
        for number, group in enumerate(self.groups):
            call.forget()
            with call:
                column = group.loaded()
                # Rows that are not kept take time, even if the input has no bytes for them.
                self.take_memory(_FREE_ROW * group.count)
            for start in range(0, group.count, _CHUNK):
                yield from self._rows(number, start, min(start + _CHUNK, group.count), column)

    def rows(self) -> list[Any]:
        """All rows, as a list of dicts: what reading gives without `tables=True`."""
        return self[:]

    @overload
    def __getitem__(self, key: int) -> Any: ...
    @overload
    def __getitem__(self, key: slice) -> list[Any]: ...
    @overload
    def __getitem__(self, key: str) -> Any: ...
    def __getitem__(self, key: Any) -> Any:
        """A row, a list of rows, or a column.

        The column of numbers, bools or tensors is one numpy array. So is one of lists of one length, or of tuples
        of numbers of one dtype. If some rows have no number or bool, it is a masked array. A column of tensors of
        a dtype that numpy lacks is a `Raw`. The column of structs is a `Table`. Any other column is a list of
        values, with `None` for no value.

        Text that is not the name of a column is a path, such as `at.x`, `3.at` or `at.3`.
        """
        if isinstance(key, str):
            return self._column(key)
        if isinstance(key, slice):
            return self._selected(*key.indices(len(self)))
        # One row is one read.
        row = operator.index(key)
        if row < 0:
            row += len(self)
        if not 0 <= row < len(self):
            raise IndexError(f"the table has {len(self)} rows, there is no row {operator.index(key)}")
        number, row = self.place(row)
        return self._rows(number, row, row + 1)[0]

    def place(self, row: int) -> tuple[int, int]:
        """The number of the group of a row, and the number of the row in it."""
        number = bisect.bisect_right(self._starts, row) - 1
        return number, row - self._starts[number]

    @one_call
    def _selected(self, start: int, stop: int, step: int) -> list[Any]:
        return self._slice(start, stop) if step == 1 else [self[row] for row in range(start, stop, step)]

    def _slice(self, start: int, stop: int) -> list[Any]:
        rows: list[Any] = []
        while start < stop:
            number, first = self.place(start)
            group = self.groups[number]
            last = min(first + stop - start, group.count)
            rows += self._rows(number, first, last)
            start += last - first
        return rows

    def _rows(self, number: int, start: int, stop: int, group: Column | None = None) -> list[Any]:
        """Some of the rows of a group, after the memory that they take was counted."""
        group = self.groups[number] if group is None else group
        if self.limit is not None:
            memory = self._memory.get(number)
            if memory is None:
                memory = self._memory[number] = memory_of(group, 0, group.count)
            if stop - start < group.count:
                # In a group with little memory, no row can have much of it.
                is_small = memory <= _LITTLE
                share = memory * (stop - start) // group.count
                memory = share if is_small else memory_of(group, start, stop)
            self.take_memory(memory)
        return _rows(group, start, stop)

    def places_of(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
        """The number of the group of each of some rows."""
        return np.searchsorted(self._starts, rows, "right") - 1

    def first_of(self, number: int) -> int:
        """The number of the first row of a group."""
        return self._starts[number]

    def listed_rows(self, group: Column) -> list[Any]:
        """All rows of a column, after the memory that they take was counted."""
        if self.limit is not None:
            self.take_memory(memory_of(group, 0, group.count))
        return _rows(group, 0, group.count)

    def take_memory(self, memory: int) -> None:
        if self.limit is not None:
            try:
                Call.current().take(memory, self.limit)
            except Fault as fault:
                raise fault.kind(fault.message) from None

    def _listed(self, pieces: Sequence[Column]) -> list[Any]:
        """The values of a column in all rows."""
        values: list[Any] = []
        for piece in pieces:
            # The rows of one of several pieces are in a list of their own, but only until the next one. The list
            # of all rows has an eighth more places than rows.
            self.take_memory(memory_of(piece, 0, piece.count) - (_FREE_ROW - (len(pieces) > 1)) * piece.count)
            rows = _rows(piece, 0, piece.count)
            if any(row is ABSENT for row in rows):
                rows = [None if row is ABSENT else row for row in rows]
            if values:
                values += rows
            else:
                values = rows
        return values

    def names(self) -> list[str]:
        """The names of the columns. The elements of tuples are named by their positions."""
        return list(self.field_names())

    def field_names(self) -> Mapping[str, None]:
        if self._names is None:
            self._names = dict.fromkeys(name for group in self.groups for name in group.names())
        return self._names

    def has_field(self, name: str) -> bool:
        # The first group nearly always has it, so that the others are not looked at only for this.
        return any(name in group.names() for group in self.groups) if self._names is None else name in self._names

    @property
    def dtypes(self) -> dict[str, str]:
        """What each column has in its rows, such as `f32`, `f32[2, 3]`, `text`, `optional u8` or `list of date`.

        Descriptions that differ between the groups are joined by `or`. Columns are not read for this.
        """
        found: dict[str, dict[str, None]] = {name: {} for name in self.names()}
        for group in self.groups:
            for name, forms in found.items():
                column = group.field(name)
                forms["null" if column is None else column.form()] = None
        return {name: " or ".join(forms) for name, forms in found.items()}

    @one_call
    def columns(self) -> dict[str, Any]:
        """All columns by name, each with one dimension, so that `pandas.DataFrame(table.columns())` works.

        A column that has more dimensions, or whose rows are structs, is a list of the values in the rows.
        """
        columns: dict[str, Any] = {}
        for name in self.names():
            columns[name] = self.flat([piece.loaded() for piece in self._pieces(name)])
        return columns

    # Some of the rows

    def filter(self, condition: Filter) -> Selection:
        """The rows that meet a condition: see `tenarc.col`. Nothing is read before the result is asked for rows.

        >>> table = Table({"id": [1, 2, 3], "day": ["Fri", "Sat", "Sat"]})
        >>> found = table.filter((col("id") > 1) & (col("day") == "Sat"))
        >>> len(found), found.column("id")
        (2, array([2, 3], dtype=uint8))

        The columns of the condition are read group by group, and of the other columns what the result is asked
        for, in the groups with rows that meet the condition.
        """
        return Selection(self, condition)

    def take(self, rows: Any) -> Selection:
        """The rows with these numbers, in this order. `rows` is an array or list of integers.

        A number can occur several times, and negative ones count from the end. Only the groups of rows that they
        are in are read, and of these only what the result is asked for.
        """
        return Selection(self, rows)

    # Arrow

    @one_call
    def export(self, columns: Iterable[str] | None) -> arrow_export.Export:
        """The columns to be read, by their names."""
        if isinstance(columns, str):
            raise Mismatch(f"`columns`: expected a list of names of columns, found the text {columns!r:.80}")
        # The elements of tuples are no columns.
        is_plain = not all(group.is_table() and not group.is_tuple() for group in self.groups)
        found: list[tuple[str, paths.Levels]] = []
        for name in ([_VALUE] if is_plain else self.names()) if columns is None else columns:
            whole = is_plain and name == _VALUE
            found.append((name, self.groups if whole else self.levels(name)))
        return arrow_export.Export(found, len(self.groups), self.take_memory, self.name)

    def levels(self, name: str) -> paths.Levels:
        """The parts of a column in all groups, by its name or path."""
        return self.located(name).columns

    def located(self, name: str) -> paths.AtColumn:
        """A column, by its name or path."""
        if self.has_field(name):
            return paths.AtColumn(self, [group.field(name) for group in self.groups], (name,))
        try:
            found, _ = paths.find(self, name)
        except NotFound:
            found = None
        if type(found) is not paths.AtColumn:
            raise self._no_column(name)
        return found

    def _no_column(self, name: str) -> NotFound:
        return NotFound(f"the table has no column {name!r:.80}{near.question(name, self.field_names())}")

    def batches(self, export: arrow_export.Export) -> Iterator[Any]:
        # As for the rows, all groups are read in one call.
        call = Call()
        with closing(export):
            for number, group in enumerate(self.groups):
                call.forget()
                with call:
                    batches = [*export.batches(number, group.count)]
                yield from batches

    @one_call
    def _column(self, name: str) -> Any:
        if not self.has_field(name):
            try:
                found, _ = paths.find(self, name)
            except NotFound:
                raise self._no_column(name) from None
            if type(found) is paths.AtColumn:
                return found.rows.value_of(found.columns)
            return found.value if type(found) is Decoded else found
        found = self.joined(self._pieces(name))
        if isinstance(found, Table) and self.reopen is not None:
            found.reopen = operator.getitem, (self, name)
        return found

    def joined(self, pieces: Sequence[Column]) -> Any:
        """A column of several groups."""
        if all(piece.is_table() for piece in pieces):
            tensor = _value_tensor(pieces)
            return Table.of(pieces, self.limit) if tensor is None else tensor
        pieces = [piece.loaded() for piece in pieces]
        for whole in (_value_tensor(pieces), _joined(pieces)):
            if whole is not None:
                return whole
        return self._listed(pieces)

    def flat(self, pieces: Sequence[Column]) -> Any:
        """A column of several groups with one dimension."""
        array = _joined(pieces)
        return self._listed(pieces) if array is None or array.ndim > 1 else array

    def _pieces(self, name: str) -> list[Column]:
        pieces: list[Column] = []
        for group in self.groups:
            if not group.is_table() and not [*group.names()]:
                what = "columns: the rows are not all structs or tuples; `rows` reads them"
                raise Mismatch(what)
            pieces.append(group.field(name) or group.missing())
        return pieces

    def value_of(self, columns: paths.Levels) -> Any:
        return self.value_of_pieces(self._whole(columns))

    def value_of_pieces(self, pieces: Sequence[Column]) -> Any:
        tensor = _value_tensor(pieces)
        if tensor is not None:
            return tensor
        array = _joined(pieces)
        return self._listed(pieces) if array is None or np.ma.isMaskedArray(array) else array

    def tensor_of(self, columns: paths.Levels) -> Any:
        pieces = self._whole(columns)
        # Decimals, for example, are the numbers of the format here.
        found = _value_tensor(pieces)
        return _tensor(pieces) if found is None else found

    def _whole(self, columns: paths.Levels) -> list[Column]:
        """The parts of a column in all groups."""
        return [
            group.missing() if column is None else column.loaded()
            for group, column in zip(self.groups, columns, strict=True)
        ]

    def row_of(self, columns: paths.Levels, row: int) -> Any:
        number, row = self.place(row)
        column = columns[number]
        if column is None:
            return ABSENT
        if self.limit is not None:
            self.take_memory(memory_of(column, row, row + 1))
        return _rows(column, row, row + 1)[0]


def _groups(data: Any) -> Iterable[Column]:
    """The groups of rows of what a caller has."""
    if isinstance(data, Table):
        return data.groups
    found = frames.groups_in(data)
    if found is not None:
        return found
    if isinstance(data, (str, bytes, bytearray, memoryview)) or not isinstance(data, Iterable):
        text = f"expected rows or columns, found {type(data).__name__}"
        raise Fault(Unsupported, text)
    rows = list(data)
    return groups_of(len(rows), lambda start, stop: column_of(rows[start:stop]))


def _rows(group: Column, start: int, stop: int) -> list[Any]:
    try:
        with bounded_recursion():
            return group.rows(start, stop)
    except Fault as fault:
        raise fault.kind(fault.message) from None


def _tensor(pieces: Sequence[Column]) -> npt.NDArray[Any] | Raw | None:
    """The column of several groups as one tensor; `None` if SPEC Annex A does not say that it is one."""
    found = []
    for piece in pieces:
        found.append(piece.tensor())
        if found[-1] is None:
            return None
    return found[0] if len(found) == 1 else combined(found, np.concatenate)


def _value_tensor(pieces: Sequence[Column]) -> npt.NDArray[Any] | Raw | None:
    """The column of several groups as one tensor, if this has the same values as the rows."""
    tensor = _tensor(pieces)
    if not isinstance(tensor, np.ndarray):
        return tensor
    return named.values_in({kind for piece in pieces for kind in piece.types()}, tensor)


def _joined(pieces: Sequence[Column]) -> npt.NDArray[Any] | None:
    """The column of several groups as one array; `None` if no dtype holds the elements of all of them exactly."""
    arrays = [piece.array() for piece in pieces]
    found = [array for array in arrays if array is not None]
    if not found or len(found) < len(arrays) or len({array.shape[1:] for array in found}) > 1:
        return None
    if len(found) == 1:
        return found[0]
    kinds = {array.dtype.kind for array in found}
    if not kinds.isdisjoint("mM") and len({array.dtype for array in found}) > 1:
        # The times of one unit can be too large for another one.
        return None
    wanted = np.result_type(*(array.dtype for array in found))
    if kinds == {"i", "u"} and wanted.kind == "f":
        # One group has u64, another one signed integers.
        if any(
            array.dtype.itemsize == 8 and array.dtype.kind == "u" and int(array.max(initial=0)) >> 63
            for array in map(np.ma.getdata, found)
        ):
            return None
        wanted = np.dtype(np.int64)
    elif len(kinds) > 1 and kinds != {"i", "u"}:
        return None
    is_masked = any(map(np.ma.isMaskedArray, found))
    converted = [array.astype(wanted, copy=False) for array in found]
    return np.ma.concatenate(converted) if is_masked else np.concatenate(converted)  # type: ignore[no-untyped-call]
