"""Makes columns of the values of a caller (SPEC 7)."""

from __future__ import annotations

import dataclasses
import enum
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import compress
from typing import Any

import cbor2
import numpy as np
import numpy.typing as npt

from . import dtypes, named
from .columns import (
    MAX_RANK,
    MAX_ROWS,
    BoolColumn,
    BytesColumn,
    Column,
    ItemColumn,
    Lengths,
    ListColumn,
    NumberColumn,
    OptionColumn,
    PresentColumn,
    RawColumn,
    StructColumn,
    TensorColumn,
    TextColumn,
    TupleColumn,
    TypeColumn,
    UnitColumn,
    integer_type,
)
from .tags import SOME
from .values import Numbers, Raw, Simple, Some, Tag, is_none, is_record

#: A group ends when its rows have this many bytes.
_MAX_BYTES = 16 << 20
# So many keys can be missing in some rows in any case.
_FEW = 64
# The types of values other than `None` that are read as `None`.
_OTHER_NULLS = (Simple, type(cbor2.undefined))


def groups_of(count: int, make: Callable[[int, int], Column]) -> Iterator[Column]:
    """Divides rows into groups. `make` makes the column of some of the rows."""
    start = 0
    while start < count:
        stop = min(start + MAX_ROWS, count)
        column = make(start, stop)
        first = 0
        for last in _full(column.sizes()):
            yield column.part(first, last) if last - first < column.count else column
            first = last
        if first == 0 or stop == count:
            if first < column.count:
                yield column.part(first, column.count) if first else column
            first = column.count
        # The rows after the last full group are the start of the next one.
        start += first


def _full(sizes: npt.NDArray[np.int64]) -> Iterator[int]:
    """The number of rows at the end of each group that is full."""
    ends = np.cumsum(sizes)
    before = 0
    while len(ends) and int(ends[-1]) - before >= _MAX_BYTES:
        last = int(np.searchsorted(ends, before + _MAX_BYTES))
        before = int(ends[last])
        yield last + 1


def column_of(values: Any) -> Column:
    """The column for some values: an array, or a list."""
    if isinstance(values, np.ndarray):
        if np.ma.isMaskedArray(values) and values.ndim == 1:
            mask = np.ma.getmaskarray(values)
            return OptionColumn(~mask, column_of(values.compressed()))
        column = _column_of_array(np.asarray(values))
        if column is not None:
            return column
        values = dtypes.texts_in(values) if values.dtype.kind in dtypes.TEXTS else list(values)
    kinds = set(map(type, values))
    if type(None) in kinds:
        there = [value is not None for value in values]
        if not kinds.isdisjoint(_OTHER_NULLS):
            there = [not is_none(value) for value in values]
        some = list(compress(values, there))
        # The column has the content of each `Some`; around any other value, `Some` has no effect.
        if any(issubclass(kind, (Some, Tag)) for kind in kinds):
            some = [_content(value) for value in some]
        return OptionColumn(np.array(there), column_of(some))
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
        return _column_of_dicts(values)
    if kind is tuple and len(set(map(len, values))) == 1 and values[0]:
        columns = [column_of([*column]) for column in zip(*values, strict=True)]
        return TupleColumn(len(values), columns).joined()
    if kind in (list, tuple):
        return ListColumn(Lengths.of(values), column_of([item for row in values for item in row]))
    if kind is Some:
        content = [value.value for value in values]
        if any(is_none(value) or isinstance(value, Some) for value in content):
            return OptionColumn(np.ones(len(values), np.bool_), column_of(content))
        return column_of(content)
    if kind is Raw:
        return _column_of_raw(values)
    if is_record(kind) and dataclasses.fields(kind):
        names = tuple(field.name for field in dataclasses.fields(kind))
        return StructColumn(
            len(values), {name: column_of([getattr(row, name) for row in values]) for name in names}
        )
    if issubclass(kind, named.KINDS):
        return _column_of_typed(kind, values)
    if issubclass(kind, (np.generic, complex)) and not issubclass(kind, enum.Enum):
        return _column_of_array(np.array(values))
    if kind is Numbers and {(value.ndim, value.dtype) for value in values} == {(1, values[0].dtype)}:
        column = _column_of_array(np.concatenate([value.view(np.ndarray) for value in values]))
        return ListColumn(Lengths.of(values), column) if isinstance(column, NumberColumn) else None
    if kind is np.ndarray and {(value.shape, value.dtype) for value in values} == {
        (values[0].shape, values[0].dtype)
    }:
        is_tensor = all(dtypes.order_of(value) == "C" for value in values) and values[0].size
        known = dtypes.of_numpy(values[0].dtype)
        fits = values[0].ndim < MAX_RANK
        return TensorColumn(np.stack(values)) if is_tensor and known and fits else None
    return None


def _content(value: Any) -> Any:
    """What a column of optional values has for a value that is there."""
    return value.value if isinstance(value, Some) or (type(value) is Tag and value.tag == SOME) else value


def _column_of_raw(values: list[Raw]) -> Column | None:
    """The column for tensors of dtypes that numpy lacks, if they can be parts of one tensor."""
    first = values[0]
    if {(value.dtype, value.shape) for value in values} != {(first.dtype, first.shape)}:
        return None
    rank = len(first.shape)
    if not first.data.nbytes or rank >= MAX_RANK or (rank > 1 and any(value.order != "C" for value in values)):
        return None
    if first.dtype not in dtypes.BY_NAME:
        # How many bytes each of them needs is not known.
        return None
    return RawColumn(len(values), first.dtype, first.shape, np.concatenate([value.data for value in values]))


def _column_of_array(values: npt.NDArray[Any]) -> Column | None:
    """The column for an array whose rows are numbers, bools or tensors."""
    known = dtypes.of_numpy(values.dtype)
    if values.dtype.kind in "mM":
        return _column_of_times(values)
    if known is None or (values.ndim > 1 and 0 in values.shape[1:]):
        return None
    if values.ndim == 1:
        if values.dtype.kind == "b":
            return BoolColumn(values)
        if known.tag is not None and not known.is_complex:
            return NumberColumn(values)
    return TensorColumn(values)


def _column_of_times(values: npt.NDArray[Any]) -> Column:
    """The column for an array of times or durations."""
    there = ~np.isnat(values)
    if values.ndim == 1 and not there.all():
        return OptionColumn(there, _column_of_times(values[there]))
    found = named.times_in(values)
    column = _column_of_array(found.item) or ItemColumn([*found.item])
    return TypeColumn(found.name, found.parameters, column)


def _column_of_typed(kind: type, values: list[Any]) -> Column | None:
    """The column for values that have a named type."""
    found = named.column_of(kind, values)
    if found is None:
        return None
    if isinstance(found.item, np.ndarray):
        return TypeColumn(found.name, found.parameters, NumberColumn(found.item))
    return TypeColumn(found.name, found.parameters, BytesColumn(Lengths.of(found.item), b"".join(found.item)))


def _column_of_dicts(rows: list[dict[Any, Any]]) -> Column | None:
    """The column for dicts with text as keys; `None` if they cannot be structs."""
    orders = Counter(map(tuple, rows))
    names = _merged(orders, len(rows))
    if not names:
        return None
    fields: dict[str, Column] = {}
    for name in names:
        if len(orders) == 1:
            fields[name] = column_of([row[name] for row in rows])
            continue
        bits = np.fromiter((name in row for row in rows), np.bool_, len(rows))
        column = column_of([row[name] for row in rows if name in row])
        fields[name] = column if bits.all() else PresentColumn(bits, column)
    return StructColumn(len(rows), fields)


def _merged(orders: Counter[tuple[Any, ...]], count: int) -> list[str]:
    """All keys in an order that keeps the order in every row. None if there is no such order, or if the bits that
    say which keys a row has would take more bytes than the keys."""
    occurrences: Counter[Any] = Counter()
    for order, times in orders.items():
        occurrences.update(dict.fromkeys(order, times))
    if not all(type(name) is str for name in occurrences):
        return []
    optional = sum(times < count for times in occurrences.values())
    if optional > _FEW:
        # Perhaps the keys are not fields: each of them would take bits for all rows.
        keys_take = sum(times * len(name) for name, times in occurrences.items())
        if optional * (count // 8) > keys_take:
            return []
    names: list[str] = []
    known: set[str] = set()
    for order in sorted(orders, key=len, reverse=True):
        if known.issuperset(order):
            continue
        known.update(order)
        at = len(names)
        for name in reversed(order):
            if name in names:
                at = names.index(name)
            else:
                names.insert(at, name)
    for order in orders:
        there = {*order}
        if tuple(name for name in names if name in there) != order:
            return []
    return names
