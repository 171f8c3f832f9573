"""Takes the columns of data frames, Arrow tables, structured arrays and dicts (SPEC 7).

None of the libraries is needed: their objects are known by their methods.
"""

from __future__ import annotations

import datetime
import decimal
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import arrow, dtypes
from .column_maker import column_of, groups_of
from .columns import Column, OptionColumn, RawColumn, StructColumn, TextColumn, category, order_of, ordered
from .dlpack import array_of
from .errors import Fault, Unsupported, needed
from .paths import Rows
from .torch_arrays import from_torch
from .values import Raw

# The types of objects in columns of pandas that have a type of Arrow.
_OBJECTS = (datetime.date, datetime.time, datetime.timedelta, decimal.Decimal, uuid.UUID)


class _Rows(NamedTuple):
    """Rows of which columns can be made."""

    number: int
    #: Makes the column of some of them.
    make: Callable[[int, int], Column]


def has_columns(value: Any) -> bool:
    """Whether a value is a data frame or an Arrow table, or one of their columns."""
    return not isinstance(value, type) and (
        _is_pandas(value) or arrow.is_arrow(value) or hasattr(value, "__dataframe__")
    )


def groups_in(data: Any) -> Iterator[Column] | None:
    """Groups of rows of something with columns; `None` if it has none."""
    if arrow.is_arrow(data) and not _is_pandas(data):
        return _arrow_groups(data)
    if _is_pandas(data):
        _check_index(data)
    elif hasattr(data, "__dataframe__"):
        return _arrow_groups(_interchanged(data))
    rows = _columns_in(data)
    return None if rows is None else groups_of(*rows)


def _columns_in(data: Any) -> _Rows | None:
    """The rows of something with columns but Arrow's; `None` if it has none."""
    if isinstance(data, np.ndarray):
        return _structured(data) if data.dtype.names is not None else None
    if _is_pandas(data):
        return _frame(data) if hasattr(data, "columns") else _column(_series(data))
    if isinstance(data, Mapping) or (callable(getattr(data, "keys", None)) and hasattr(data, "__getitem__")):
        return _struct([(name, data[name]) for name in data.keys()])  # noqa: SIM118
    return None


def _interchanged(data: Any) -> Any:
    """A pyarrow table of a frame that has the older protocol of data frames only."""
    interchange = needed("pyarrow.interchange", "tenarc[arrow]")
    try:
        return interchange.from_dataframe(data)
    except Exception as error:
        text = f"pyarrow cannot take the columns of a {_kind_of(data)}: {error}"
        raise Fault(Unsupported, f"{text}; pass its columns, as `tenarc.Table({{name: array, ...}})`") from error


def _arrow_groups(data: Any) -> Iterator[Column]:
    for count, make in _arrow_batches(data):
        yield from groups_of(count, make)


def _arrow_batches(data: Any) -> Iterator[tuple[int, Callable[[int, int], Column]]]:
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(data, (polars.DataFrame, polars.Series)):
        kinds = data.schema if isinstance(data, polars.DataFrame) else {data.name: data.dtype}
        for name, kind in kinds.items():
            if kind == polars.Object:
                # In Arrow, they would be addresses in memory.
                raise Fault(Unsupported, f"cannot write polars' dtype Object of the column {name!r:.80}")
    # Many small pieces would become as many groups.
    for method in ("combine_chunks", "rechunk"):
        if hasattr(data, method):
            data = getattr(data, method)()
            break
    return arrow.batches(data)


def _struct(columns: list[tuple[Any, Any]], count: int | None = None) -> _Rows:
    """Rows of structs. `count` is their number, if it is known without the columns."""
    found: dict[str, _Rows] = {}
    for index, (name, values) in enumerate(columns):
        if not isinstance(name, str):
            text = f"the name of a column: expected text, found {type(name).__name__} {name!r:.40}"
            raise Fault(Unsupported, text)
        if name in found:
            raise Fault(Unsupported, f"two columns have the name {name!r:.80}")
        try:
            found[name] = _column(values)
        except Fault as fault:
            raise fault.at(2 * index + 1, name) from fault.__cause__
    most = max((rows.number for rows in found.values()), default=0) if count is None else count
    for name, rows in found.items():
        if rows.number != most:
            text = f"columns of one length: expected {most} rows, found {rows.number} in {name!r:.80}"
            raise Fault(Unsupported, text)

    def make(start: int, stop: int) -> Column:
        fields: dict[str, Column] = {}
        for index, (name, rows) in enumerate(found.items()):
            try:
                fields[name] = rows.make(start, stop)
            except Fault as fault:
                raise fault.at(2 * index + 1, name) from fault.__cause__
        return StructColumn(stop - start, fields)

    return _Rows(most, make)


def _column(values: Any) -> _Rows:
    """A column of a dict or a data frame, which can have columns itself."""
    if isinstance(values, _Rows):
        return values
    if isinstance(values, (list, tuple, Rows)):
        return _rows_of(values)
    if isinstance(values, Raw) and values.shape and (values.order == "C" or len(values.shape) == 1):
        column = RawColumn(values.shape[0], values.dtype, values.shape[1:], values.data)
        return _Rows(column.count, column.part)
    if arrow.is_arrow(values) and not _is_pandas(values):
        pieces = [make(0, count) for count, make in _arrow_batches(values)]
        if len(pieces) == 1:
            return _Rows(pieces[0].count, pieces[0].part)
        return _rows_of([row for piece in pieces for row in piece.rows(0, piece.count)])
    found = _columns_in(values)
    return _rows_of(_array(values)) if found is None else found


def _categories(codes: npt.NDArray[Any], names: Any, is_ordered: bool) -> _Rows | None:
    """Rows of a category, by the codes of their names or -1 for none; `None` if the names are no texts."""
    order = order_of(codes.dtype.name, names) if is_ordered else None
    if not all(type(name) is str for name in names):
        return None

    def make(start: int, stop: int) -> Column:
        there = codes[start:stop] >= 0
        distinct, used = ordered(codes[start:stop][there])
        texts = column_of([names[code] for code in used.tolist()])
        if not isinstance(texts, TextColumn):
            return column_of([names[code] if code >= 0 else None for code in codes[start:stop].tolist()])
        column = category(distinct, texts, order)
        return column if there.all() else OptionColumn(there, column)

    return _Rows(len(codes), make)


def _rows_of(values: Any) -> _Rows:
    return _Rows(len(values), lambda start, stop: column_of(values[start:stop]))


def _array(values: Any) -> Any:
    """The values of a column as an array or a list."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(values, torch.Tensor) and values.ndim:
        name, shape, bits = from_torch(values)
        known = dtypes.BY_NAME[name].numpy
        if known is not None:
            return bits.view(known).reshape(shape)
    elif not isinstance(values, np.ndarray) and (hasattr(values, "__dlpack__") or hasattr(values, "__array__")):
        values = array_of(values)
    if isinstance(values, np.ndarray) and values.ndim:
        return values
    try:
        if not isinstance(values, (str, bytes, bytearray, memoryview)):
            return list(values)
    except TypeError:
        pass
    raise Fault(Unsupported, f"expected a value for each row, in an array or a list, found {_kind_of(values)}")


def _structured(data: npt.NDArray[Any]) -> _Rows:
    if data.ndim != 1:
        what = f"a structured array: expected one dimension, found the shape {list(data.shape)}"
        raise Fault(Unsupported, f"{what}: use its fields, as `{{name: array[name], ...}}`")
    assert data.dtype.names is not None
    return _struct([(name, data[name]) for name in data.dtype.names], len(data))


def _kind_of(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


# pandas. Its own interface to Arrow needs pyarrow.


def _is_pandas(value: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, (pandas.DataFrame, pandas.Series))


def _frame(frame: Any) -> _Rows:
    _check_index(frame)
    return _struct([(name, frame.iloc[:, number]) for number, name in enumerate(frame.columns)], len(frame))


def _check_index(data: Any) -> None:
    """Checks that an index only counts the rows, because it is not written."""
    index = data.index
    is_count = index.nlevels == 1 and index.name is None and (index.dtype.kind in "iu" or not len(index))
    if not is_count or not np.array_equal(index, np.arange(len(index))):
        what = f"the index of a {_kind_of(data)} is not written"
        raise Fault(Unsupported, f"{what}: use `reset_index()`, or `reset_index(drop=True)` if it is not needed")


def _series(series: Any) -> Any:
    """The values of a column as an array, a masked array or a list. A missing value is a gap, or `None`."""
    dtype = series.dtype
    kind = type(dtype).__name__
    if isinstance(dtype, np.dtype):
        if dtype.kind in "biufc":
            return series.to_numpy()
        if dtype.kind == "O":
            values = _without_missing(series)
            return _arrow_of(series) if any(isinstance(value, _OBJECTS) for value in values) else values
        if dtype.kind in "mM":
            return _arrow_of(series)
    elif kind == "DatetimeTZDtype":
        return _arrow_of(series)
    elif kind == "ArrowDtype":
        return series.array.__arrow_array__()
    elif kind == "SparseDtype":
        return _series(series.sparse.to_dense())
    elif kind == "CategoricalDtype":
        names = _series(dtype.categories.to_series())
        names = names.tolist() if isinstance(names, np.ndarray) else names
        found = _categories(series.cat.codes.to_numpy(), names, dtype.ordered)
        if found is not None:
            return found
        return [None if code < 0 else names[code] for code in series.cat.codes.tolist()]
    elif getattr(dtype, "numpy_dtype", None) is not None and dtype.kind in "biuf":
        # Also without gaps, a column of such a dtype is one of optional values.
        values = series.to_numpy(dtype=dtype.numpy_dtype, na_value=dtype.numpy_dtype.type(0))
        return np.ma.MaskedArray(values, series.isna().to_numpy())
    elif kind == "StringDtype":
        return _without_missing(series)
    how = "convert it to numbers or text first, as by `astype('int64')` or `astype(str)`"
    raise Fault(Unsupported, f"cannot write pandas' dtype {dtype}: {how}")


def _arrow_of(series: Any) -> Any:
    """The values of a column of times, decimals or the like as an array of pyarrow, which knows their types."""
    pyarrow = needed("pyarrow", "tenarc[arrow]")
    try:
        return pyarrow.Array.from_pandas(series)
    except pyarrow.ArrowException as error:
        raise Fault(Unsupported, f"pyarrow cannot take the values of a column of pandas: {error}") from None


def _without_missing(series: Any) -> list[Any]:
    missing = series.isna().tolist()
    return [None if gap else value for value, gap in zip(series.tolist(), missing, strict=True)]
