"""`Selection`: some of the rows of a table, of which only the groups and columns are read that are asked for."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from . import arrow_export, named
from .calls import Call
from .columns import Column, GapColumn, Picks, RawColumn, UnitColumn, elements_in
from .conditions import Filter, Mask, Test
from .errors import Fault, Mismatch
from .listing import lists_without
from .masks import mask_of, of_items
from .options import check_memory
from .paths import AtColumn

if TYPE_CHECKING:
    import pyarrow

    from .table import Table

T = TypeVar("T")
# What picking an element of a list takes in memory.
_PICK = 8
#: Columns of a group that were read, by their paths.
_Loaded = Mapping[str, "Column | None"]


@lists_without("export", "batches")
class Selection(arrow_export.ArrowRows):
    """Rows of a table: those that meet a condition, from `Table.filter`, or those with some numbers, from
    `Table.take`.

    The table is read when the rows are asked for. A filter is tested once: then it is known which rows meet it.
    Columns are views that are not verified, as in the table, unless they are compressed.
    """

    def __init__(self, table: Table, wanted: Any) -> None:
        """`wanted`: a condition, or the numbers of the rows."""
        self._table = table
        self._filter: Filter | None = None
        # The rows that were found: for each group that has some, their numbers in it, which ascend.
        self._found: dict[int, Picks] | None = None
        # The names that lead to each column of the condition, by its path.
        self._names: dict[str, tuple[str, ...]] = {}
        # Where each row is among the rows that were found; `None` if they are in the order of the table.
        self._order: npt.NDArray[np.intp] | None = None
        if isinstance(wanted, Filter):
            self._filter = wanted
        else:
            self._find(_numbers(wanted, len(table)))

    def _find(self, wanted: npt.NDArray[np.int64]) -> None:
        if (wanted[1:] < wanted[:-1]).any():
            ascending = np.argsort(wanted, kind="stable")
            self._order = np.empty_like(ascending)
            self._order[ascending] = np.arange(len(wanted))
            wanted = wanted[ascending]
        groups = self._table.places_of(wanted)
        self._found = {}
        for number in np.unique(groups).tolist():
            start, stop = np.searchsorted(groups, [number, number + 1])
            self._found[number] = wanted[start:stop] - self._table.first_of(number)

    def __len__(self) -> int:
        """The number of rows. The columns of a condition are read to count them."""
        if self._found is None:
            for _ in self._each(lambda *_: None):
                pass
        return sum(map(len, (self._found or {}).values()))

    def count(self) -> int:
        """The number of rows, as `len`."""
        return len(self)

    def __bool__(self) -> bool:
        return len(self) > 0

    def __repr__(self) -> str:
        # Nothing is read for this.
        if self._found is None:
            return f"<tenarc.Selection: rows that meet {self._filter!r:.200}>"
        return f"<tenarc.Selection: {len(self):,} row{'s' * (len(self) != 1)}>"

    def row_numbers(self) -> npt.NDArray[np.int64]:
        """The numbers of the rows in the table."""
        first_of = self._table.first_of
        found = [*self._each(lambda number, rows, _: rows.astype(np.int64) + first_of(number))]
        numbers: npt.NDArray[np.int64] = self._ordered(np.concatenate([np.empty(0, np.int64), *found]))
        return numbers

    def rows(self) -> list[Any]:
        """The rows, as a list of dicts: as `Table.rows` gives them."""
        rows: list[Any] = self._ordered([row for rows in self._each(self._rows) for row in rows])
        return rows

    def __iter__(self) -> Iterator[Any]:
        if self._order is not None:
            yield from self.rows()
            return
        for rows in self._each(self._rows):
            yield from rows

    def _rows(self, number: int, rows: Picks, loaded: _Loaded) -> list[Any]:
        return self._table.listed_rows(self._picked(self._table.groups[number], rows))

    def column(self, path: str) -> Any:
        """A column of the rows, by its name or path: an array, list or `Table`, as from `Table.__getitem__`."""
        is_field = self._table.has_field(path)
        with Call():
            (pieces,) = self._pieces([path])
            join = self._table.joined if is_field else self._table.value_of_pieces
            found = join(pieces)
            if self._order is None or isinstance(found, (list, np.ndarray)):
                return self._ordered(found)
            # Each row by itself. It is a column of structs, or of tensors whose dtype numpy lacks.
            ends = np.cumsum([piece.count for piece in pieces])
            places = np.searchsorted(ends, self._order, "right")
            inside = self._order - (ends[places] - [pieces[place].count for place in places])
            return join([pieces[place].picked(inside[[at]]) for at, place in enumerate(places)])

    def columns(self, paths: Iterable[str] | None = None) -> dict[str, Any]:
        """Columns of the rows, by their names or paths, in one pass; by default all.

        Each has one dimension, as those of `Table.columns`, so that `pandas.DataFrame(found.columns())` works.
        """
        names = self._table.names() if paths is None else _paths(paths)
        with Call():
            pieces = self._pieces(names)
            return {
                name: self._ordered(self._table.flat(columns)) for name, columns in zip(names, pieces, strict=True)
            }

    def _ordered(self, values: Any) -> Any:
        """An array or a list of values in the order in which the rows were asked for."""
        if self._order is None:
            return values
        return [values[at] for at in self._order.tolist()] if isinstance(values, list) else values[self._order]

    # Arrow

    def export(self, columns: Iterable[str] | None) -> arrow_export.Export:
        return self._table.export(columns)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        if self._order is not None:
            return self.to_arrow().__arrow_c_stream__(requested_schema)
        return super().__arrow_c_stream__(requested_schema)

    def to_arrow(self, columns: Iterable[str] | None = None) -> pyarrow.Table:
        found = super().to_arrow(columns)
        return found if self._order is None else found.take(self._order)

    def batches(self, export: arrow_export.Export) -> Iterator[Any]:
        def of_group(number: int, rows: Picks, loaded: _Loaded) -> list[Any]:
            columns = [self._read(name, column, rows, loaded) for name, column in export.parts(number)]
            return [*export.batches_of(columns, len(rows))]

        with closing(export):
            for found in self._each(of_group):
                yield from found

    # Groups of rows

    def _each(self, read: Callable[[int, Picks, _Loaded], T]) -> Iterator[T]:
        """What `read` makes of each group that has some of the rows.

        It gets the number of the group, the numbers of the rows in it, and columns that were read to find them.
        All groups are read in one call, one after the other.
        """
        known, found = self._found, {}
        columns = self._tested() if known is None else []
        call = Call()
        for number in range(len(self._table.groups)) if known is None else known:
            call.forget()
            with call:
                loaded: dict[str, Column | None] = {}
                if known is not None:
                    rows = known[number]
                elif not self._may_have_rows(number, columns[number]):
                    continue
                else:
                    loaded = {path: column and column.loaded() for path, column in columns[number].items()}
                    # The numbers are kept, so they should be small.
                    rows = np.flatnonzero(self._mask(self._table.groups[number].count, loaded)).astype(np.uint32)
                if not len(rows):
                    continue
                found[number] = rows
                made = read(number, rows, loaded)
            yield made
        self._found = found

    def _may_have_rows(self, number: int, columns: _Loaded) -> bool:
        """Whether a group can have rows that meet the condition, as far as its statistics say.

        `columns` are those of the condition in this group.
        """
        group = self._table.groups[number]

        def may_meet(path: str, test: Test, is_opposite: bool) -> bool | None:
            column = columns[path]
            if column is None:
                # All rows are null.
                return test.how == "is_null" and not is_opposite
            known = group.known(self._names[path])
            if known is None:
                # Any column can be tested for nulls.
                return True if test.how == "is_null" else None
            if any(isinstance(constant, named.KINDS) for constant in test.constants):
                try:
                    test = of_items(test, column.outline())
                except Fault:
                    # The error comes when the column is read.
                    return None
            return known.may_meet(test, is_opposite)

        assert self._filter is not None
        return self._filter.may_be_met(may_meet) is not False

    def _tested(self) -> list[dict[str, Column | None]]:
        """The columns of the condition, by their paths, in each group."""
        assert self._filter is not None
        groups: list[dict[str, Column | None]] = [{} for _ in self._table.groups]
        for path in self._filter.paths() if groups else ():
            # The empty path leads to the rows themselves.
            is_row = not path and not self._table.has_field(path)
            at = AtColumn(self._table, self._table.groups, ()) if is_row else self._table.located(path)
            self._names[path] = at.names
            for group, column in zip(groups, at.columns, strict=True):
                group[path] = column
        return groups

    def _mask(self, count: int, loaded: _Loaded) -> Mask:
        def of_column(path: str, test: Test, is_opposite: bool) -> Mask:
            try:
                return mask_of(loaded[path], count, test, is_opposite)
            except Fault as fault:
                raise fault.kind(fault.message, path=path or None) from None

        assert self._filter is not None
        return self._filter.mask(of_column)

    def _picked(self, column: Column, rows: Picks) -> Column:
        """The column of some of its rows."""
        if len(rows) == column.count and (rows == np.arange(column.count)).all():
            return column.loaded()
        if not column.by_item and self._table.limit is not None:
            column = column.loaded()
            try:
                check_memory(_PICK * elements_in(column), self._table.limit)
            except Fault as fault:
                raise fault.kind(fault.message) from None
        return column.picked(rows)

    def _read(self, path: str, column: Column | None, rows: Picks, loaded: _Loaded) -> Column | None:
        """The column at a path, in some rows of a group."""
        return None if column is None else self._picked(loaded.get(path) or column, rows)

    def _pieces(self, paths: list[str]) -> list[list[Column]]:
        """The columns at some paths: their parts in all groups.

        Those of groups without any of the rows have no rows, but say which dtype the column has.
        """
        levels = [self._table.levels(path) for path in paths]

        def read(number: int, rows: Picks, loaded: _Loaded) -> tuple[int, list[Column]]:
            parts = (
                self._read(path, column[number], rows, loaded) for path, column in zip(paths, levels, strict=True)
            )
            return number, [part or UnitColumn(len(rows)) for part in parts]

        found = dict(self._each(read))
        pieces: list[list[Column]] = []
        for place, column in enumerate(levels):
            there = (
                found[number][place] if number in found else _without_rows(part)
                for number, part in enumerate(column)
            )
            pieces.append([part for part in there if part is not None])
        return pieces


def _without_rows(column: Column | None) -> Column | None:
    """What a column is without the rows, which are not read; `None` if that says nothing about its dtype."""
    if column is None:
        return UnitColumn(0)
    if isinstance(column, GapColumn):
        inner = _without_rows(column.column)
        return None if inner is None else GapColumn(column.bits[:0], inner)
    found = column.outline()
    return None if column.by_item or isinstance(found, RawColumn) else found.part(0, 0)


def _paths(paths: Iterable[str]) -> list[str]:
    if isinstance(paths, str):
        raise Mismatch(f"expected a list of paths of columns, found the text {paths!r:.80}")
    return [*paths]


def _numbers(wanted: Any, count: int) -> npt.NDArray[np.int64]:
    """Numbers of rows, from 0."""
    numbers = np.asarray(wanted if isinstance(wanted, np.ndarray) else [*map(operator.index, wanted)])
    if numbers.ndim != 1 or (numbers.dtype.kind not in "iu" and len(numbers)):
        found = f"{numbers.dtype} of {numbers.ndim} dimensions"
        raise Mismatch(f"expected the numbers of rows as an array of integers of one dimension, found {found}")
    wrong = numbers >= count
    if numbers.dtype.kind == "i":
        wrong |= numbers < -count
    if wrong.any():
        raise IndexError(f"the table has {count} rows, there is no row {numbers[wrong][0]}")
    numbers = numbers.astype(np.int64)
    return np.where(numbers < 0, numbers + count, numbers)
