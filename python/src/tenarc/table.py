"""`Table`: a sequence of rows that is stored as columns (SPEC 3.1)."""

from __future__ import annotations

import bisect
import dataclasses
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from . import dtypes
from .columns import (
    ABSENT,
    MAX_ROWS,
    BoolColumn,
    BytesColumn,
    Column,
    ItemColumn,
    Lengths,
    ListColumn,
    NumberColumn,
    OptionColumn,
    StructColumn,
    TensorColumn,
    TextColumn,
    TupleColumn,
    UnitColumn,
    integer_type,
)
from .errors import Fault, Mismatch, NotFound, Unsupported, bounded_recursion
from .values import Numbers, Some


class Table(Sequence[Any]):
    """Rows that are kept and written as columns.

    `Table([{"id": 1, "name": "a"}, ...])` and `Table({"id": array, "name": list})` make a table to be written.
    Where a value holds a `Table`, its rows are written as columns. Reading gives tables instead of lists with
    `tables=True`.

    A table is a sequence of rows: `table[3]` makes a dict of row 3. `table["id"]` is a column.
    """

    def __init__(self, data: Iterable[Any] | Mapping[str, Any]) -> None:
        self.groups: list[Column] = []
        if isinstance(data, Mapping):
            self._add_columns(data)
        else:
            rows = list(data)
            for start in range(0, len(rows), MAX_ROWS):
                self.groups.append(_column_of(rows[start : start + MAX_ROWS]))
        self._index()

    @classmethod
    def of(cls, groups: Iterable[Column]) -> Table:
        """A table of groups that have been checked."""
        table = cls(())
        table.groups = [group for group in groups if group.count]
        table._index()
        return table

    def _add_columns(self, data: Mapping[str, Any]) -> None:
        columns: dict[str, Any] = {}
        for name, values in data.items():
            if not isinstance(name, str):
                raise Unsupported(f"the name of a column: expected text, found {type(name).__name__}")
            columns[name] = values if isinstance(values, np.ndarray) and values.ndim else list(values)
        counts = {name: len(values) for name, values in columns.items()}
        count = max(counts.values(), default=0)
        for name, found in counts.items():
            if found != count:
                raise Unsupported(f"columns of one length: expected {count} rows, found {found} in {name!r:.80}")
        for start in range(0, count, MAX_ROWS):
            stop = min(start + MAX_ROWS, count)
            fields = {name: _column_of(values[start:stop]) for name, values in columns.items()}
            self.groups.append(StructColumn(stop - start, fields))

    def _index(self) -> None:
        # The number of the first row of each group, and at last the number of rows.
        self._starts = list(accumulate((group.count for group in self.groups), initial=0))

    def __len__(self) -> int:
        return self._starts[-1]

    def __repr__(self) -> str:
        return f"<Table of {len(self)} rows: {', '.join(map(repr, self.names()))}>"

    def __iter__(self) -> Iterator[Any]:
        for group in self.groups:
            yield from _rows(group, 0, group.count)

    def rows(self) -> list[Any]:
        """All rows, as a list of dicts: what reading gives without `tables=True`."""
        rows: list[Any] = []
        for group in self.groups:
            rows += _rows(group, 0, group.count)
        return rows

    @overload
    def __getitem__(self, key: int) -> Any: ...
    @overload
    def __getitem__(self, key: slice) -> list[Any]: ...
    @overload
    def __getitem__(self, key: str) -> Any: ...
    def __getitem__(self, key: Any) -> Any:
        """A row, a list of rows, or a column.

        The column of numbers, bools or tensors is one numpy array. If some rows have no number or bool, it is a
        masked array. The column of structs is a `Table`. Any other column is a list of values, with `None` for no
        value.
        """
        if isinstance(key, str):
            return self._column(key)
        if isinstance(key, slice):
            return [self[row] for row in range(*key.indices(len(self)))]
        row = operator.index(key)
        if row < 0:
            row += len(self)
        if not 0 <= row < len(self):
            raise IndexError(f"the table has {len(self)} rows, there is no row {operator.index(key)}")
        number = bisect.bisect_right(self._starts, row) - 1
        row -= self._starts[number]
        return _rows(self.groups[number], row, row + 1)[0]

    def names(self) -> list[str]:
        """The names of the columns. The elements of tuples are named by their positions."""
        return list(dict.fromkeys(name for group in self.groups for name in _fields(group) or ()))

    def columns(self) -> dict[str, Any]:
        """All columns by name, each with one dimension, so that `pandas.DataFrame(table.columns())` works.

        Tensors and structs are lists of their rows.
        """
        columns = {}
        for name in self.names():
            column = self[name]
            flat = isinstance(column, np.ndarray) and column.ndim == 1
            columns[name] = column if flat else list(column)
        return columns

    def _column(self, name: str) -> Any:
        pieces: list[Column] = []
        if name not in self.names():
            raise NotFound(f"the table has no column {name!r:.80}")
        for group in self.groups:
            fields = _fields(group)
            if fields is None:
                what = "columns: the rows are not all structs or tuples; `rows` reads them"
                raise Mismatch(what)
            pieces.append(fields[name] if name in fields else ItemColumn([None] * group.count))
        return _gathered(pieces)


def _rows(group: Column, start: int, stop: int) -> list[Any]:
    try:
        with bounded_recursion():
            return group.rows(start, stop)
    except Fault as fault:
        raise fault.kind(fault.message) from None


def _fields(group: Column) -> Mapping[str, Column] | None:
    if isinstance(group, StructColumn):
        return group.fields
    if isinstance(group, TupleColumn):
        return {str(index): column for index, column in enumerate(group.columns)}
    return None


def _gathered(pieces: list[Column]) -> Any:
    """The column of several groups as one array, table or list."""
    if all(isinstance(piece, (StructColumn, TupleColumn)) for piece in pieces):
        return Table.of(pieces)
    joined = _joined([piece.array() for piece in pieces])
    if joined is not None:
        return joined
    return [None if row is ABSENT else row for piece in pieces for row in _rows(piece, 0, piece.count)]


def _joined(arrays: list[npt.NDArray[Any] | None]) -> npt.NDArray[Any] | None:
    """The arrays as one; `None` if no dtype holds the elements of all of them exactly."""
    found = [array for array in arrays if array is not None]
    if len(found) < len(arrays) or len({array.shape[1:] for array in found}) > 1:
        return None
    if len(found) == 1:
        return found[0]
    kinds = {array.dtype.kind for array in found}
    wanted = np.result_type(*(array.dtype for array in found))
    if kinds == {"i", "u"} and wanted.kind == "f":
        # One group has u64, another one signed integers.
        if any(array.dtype.itemsize == 8 and array.dtype.kind == "u" and array.max() >> 63 for array in found):
            return None
        wanted = np.dtype(np.int64)
    elif len(kinds) > 1 and kinds != {"i", "u"}:
        return None
    is_masked = any(map(np.ma.isMaskedArray, found))
    converted = [array.astype(wanted, copy=False) for array in found]
    return np.ma.concatenate(converted) if is_masked else np.concatenate(converted)  # type: ignore[no-untyped-call]


def _column_of(values: Any) -> Column:
    """The column for values of a caller: an array, or a list."""
    if isinstance(values, np.ndarray):
        if np.ma.isMaskedArray(values) and values.ndim == 1:
            mask = np.ma.getmaskarray(values)
            return OptionColumn(~mask, _column_of(values.compressed()))
        column = _column_of_array(np.asarray(values))
        if column is not None:
            return column
        values = values.tolist() if values.dtype.kind in "OUS" else list(values)
    kinds = set(map(type, values))
    if type(None) in kinds:
        # The column has the content of each `Some`; around any other value, `Some` has no effect.
        some = [value.value if type(value) is Some else value for value in values if value is not None]
        bits = np.fromiter((value is not None for value in values), np.bool_, len(values))
        return OptionColumn(bits, _column_of(some))
    if len(kinds) != 1:
        return ItemColumn(values) if kinds else UnitColumn(0)
    (kind,) = kinds
    return _column_of_kind(kind, values) or ItemColumn(values)


def _column_of_kind(kind: type, values: list[Any]) -> Column | None:
    """The column for values that all have this type; `None` if no other than `rows` fits."""
    if kind is bool:
        return BoolColumn(np.array(values))
    if kind is int:
        dtype = integer_type(min(values), max(values))
        return None if dtype is None else NumberColumn(np.array(values, dtype))
    if kind is float:
        return NumberColumn(np.array(values))
    if kind is str:
        try:
            encoded = [value.encode() for value in values]
        except UnicodeEncodeError:
            return None
        return TextColumn(Lengths.of(encoded), b"".join(encoded))
    if kind is bytes:
        return BytesColumn(Lengths.of(values), b"".join(values))
    if kind is dict:
        names = tuple(values[0])
        if names and all(type(name) is str for name in names) and {*map(tuple, values)} == {names}:
            return StructColumn(len(values), {name: _column_of([row[name] for row in values]) for name in names})
        return None
    if kind in (list, tuple):
        return ListColumn(Lengths.of(values), _column_of([item for row in values for item in row]))
    if dataclasses.is_dataclass(kind) and dataclasses.fields(kind):
        names = tuple(field.name for field in dataclasses.fields(kind))
        return StructColumn(
            len(values), {name: _column_of([getattr(row, name) for row in values]) for name in names}
        )
    if issubclass(kind, np.generic):
        return _column_of_array(np.array(values))
    if kind is Numbers and {(value.ndim, value.dtype) for value in values} == {(1, values[0].dtype)}:
        column = _column_of_array(np.concatenate([value.view(np.ndarray) for value in values]))
        return ListColumn(Lengths.of(values), column) if isinstance(column, NumberColumn) else None
    if kind is np.ndarray and {(value.shape, value.dtype) for value in values} == {
        (values[0].shape, values[0].dtype)
    }:
        is_tensor = all(dtypes.order_of(value) == "C" for value in values) and values[0].size
        known = dtypes.of_numpy(values[0].dtype)
        return TensorColumn(np.stack(values)) if is_tensor and known else None
    return None


def _column_of_array(values: npt.NDArray[Any]) -> Column | None:
    """The column for an array whose rows are numbers, bools or tensors."""
    known = dtypes.of_numpy(values.dtype)
    if known is None or (values.ndim > 1 and 0 in values.shape[1:]):
        return None
    if values.ndim == 1:
        if values.dtype.kind == "b":
            return BoolColumn(values)
        if known.tag is not None and not known.is_complex:
            return NumberColumn(values)
    return TensorColumn(values)
