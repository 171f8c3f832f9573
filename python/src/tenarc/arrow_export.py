"""Makes record batches of Arrow of the groups of a table, by pyarrow: see `docs/decisions/arrow.md`.

The arrays have the memory of the columns wherever Arrow stores the same. No row becomes an object of Python.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .arrow_types import Type, Types, as_column, has_data, key_of, merged, type_of, variant_field
from .columns import (
    ORDERED,
    BytesColumn,
    Column,
    DictColumn,
    EnumColumn,
    GapColumn,
    Lengths,
    ListColumn,
    NumberColumn,
    OptionColumn,
    PresentColumn,
    TupleColumn,
    TypeColumn,
    UnitColumn,
    spread,
)
from .errors import Mismatch, Unsupported, needed
from .threads import Pool

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

#: The greatest offset of Arrow's texts, byte strings, lists and maps.
_MOST = (1 << 31) - 1
#: The numpy dtypes of the numbers of named types.
_WIDTHS = {"timestamp": "<i8", "duration": "<i8", "date": "<i4", "time": "<i8"}
# About how many bytes a row that is null takes.
_WIDTHS_OF_KINDS = {"null": 0, "none": 0, "text": 4, "bytes": 4, "map": 4, "enum": 4, "number": 8, "named": 16}
# So many bytes for the rows of a dict are not worth finding out how many exactly.
_LITTLE = 1 << 22
_LONG = frozenset(("text", "bytes"))
#: The rows of a batch of a stream. duckdb stores as many together. It copies the rows of smaller batches twice.
_BATCH = 122_880
#: The most bytes of such a batch, unless a group has more.
_BATCH_BYTES = 64 << 20
#: pandas' dtypes of numbers and bools that can be missing, by the types of Arrow.
_NULLABLE = {
    "bool": "boolean",
    "float": "Float32",
    "double": "Float64",
    **{f"{kind.lower()}{bits}": f"{kind}{bits}" for kind in ("Int", "UInt") for bits in (8, 16, 32, 64)},
}
_Bits = npt.NDArray[np.bool_]


class _TooLong(Exception):
    """A batch has more bytes or elements than Arrow's offsets can count."""


def _pyarrow() -> Any:
    return needed("pyarrow", "tenarc[arrow]")


class ArrowRows:
    """Rows that other libraries take as Arrow's."""

    def export(self, columns: Iterable[str] | None) -> Export:
        """The columns to be read, by their names; `None` for all."""
        raise NotImplementedError

    def batches(self, export: Export) -> Iterator[Any]:
        """The rows as record batches, of one group after the other."""
        raise NotImplementedError

    def __arrow_c_schema__(self) -> Any:
        """The schema in the Arrow PyCapsule interface. No rows are read for it."""
        return self.export(None).schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The rows in the Arrow PyCapsule interface, which pyarrow, polars, duckdb and others read.

        One batch after the other is read. Groups of rows are joined to batches of at least 122,880 rows, or about
        64 MiB, which copies their columns. `to_arrow` does not. Needs pyarrow.
        """
        export = self.export(None)
        batches = _joined(self.batches(export))
        reader = _pyarrow().RecordBatchReader.from_batches(export.schema, batches)
        return reader.__arrow_c_stream__(requested_schema)

    def to_arrow(self, columns: Iterable[str] | None = None) -> pyarrow.Table:
        """A `pyarrow.Table` of the rows. Needs pyarrow.

        `columns` are the columns that are read, by name or by path such as `at.x`, in this order; by default all.
        Rows that are no structs are a column with the name `value`.
        """
        export = self.export(columns)
        return _pyarrow().Table.from_batches(list(self.batches(export)), export.schema)

    def to_pandas(self, columns: Iterable[str] | None = None) -> pandas.DataFrame:
        """A `pandas.DataFrame` of the rows. Needs pyarrow and pandas. For `columns`, see `to_arrow`.

        Columns of optional numbers and bools have dtypes such as `Int64`, in which no number changes.
        """
        needed("pandas", "pandas")
        table = self.to_arrow(columns)
        kinds = {field.name: str(field.type) for field in table.schema if field.nullable}
        # As pandas itself describes columns of dtypes that have missing values, where it writes files of Arrow.
        described = [
            {"name": name, "field_name": name, "pandas_type": kind, "numpy_type": _NULLABLE[kind]}
            for name, kind in kinds.items()
            if kind in _NULLABLE
        ]
        text = json.dumps({"columns": described, "index_columns": [], "column_indexes": []})
        return table.replace_schema_metadata({"pandas": text}).to_pandas()

    def to_polars(self, columns: Iterable[str] | None = None) -> polars.DataFrame:
        """A `polars.DataFrame` of the rows. Needs pyarrow and polars. For `columns`, see `to_arrow`.

        Columns of categories with an order are of the dtype `Enum`.
        """
        module, table = needed("polars", "polars"), self.to_arrow(columns)
        orders = {
            name: module.Enum(column.chunk(0).dictionary.to_pylist())
            for name, column in zip(table.column_names, table.columns, strict=True)
            if column.num_chunks and getattr(column.type, "ordered", False)
        }
        frame: polars.DataFrame = module.from_arrow(table, rechunk=False).cast(orders)
        return frame


class Export:
    """Columns of a table, by name and with their parts in each group, as record batches of one schema."""

    def __init__(
        self,
        columns: Iterable[tuple[str, Sequence[Column | None]]],
        groups: int,
        take: Callable[[int], None],
        table: str | None = None,
    ) -> None:
        """`take` is called with the memory that rows take which the columns do not have as bytes.

        `table` is the name of the table.
        """
        self._pa = _pyarrow()
        self._take = take
        self._types = Types(self._pa, groups)
        self._pool = Pool()
        self._columns: list[tuple[Sequence[Column | None], Type]] = []
        fields = []
        for name, parts in columns:
            found = merged(map(type_of, parts))
            self._columns.append((parts, found))
            fields.append(self._types.field(name, found, name))
        self.schema = self._pa.schema(fields, metadata=None if table is None else {"tenarc.table": table})

    def close(self) -> None:
        """Ends its threads."""
        self._pool.close()

    def batches(self, group: int, count: int) -> Iterator[Any]:
        """The record batches of a group of rows: more than one only if Arrow cannot count its bytes."""
        return self.batches_of([column for _, column in self.parts(group)], count)

    def parts(self, group: int) -> list[tuple[str, Column | None]]:
        """The names of the columns, and their parts in a group."""
        return [(name, parts[group]) for name, (parts, _) in zip(self.schema.names, self._columns, strict=True)]

    def batches_of(self, columns: Sequence[Column | None], count: int) -> Iterator[Any]:
        """The record batches of rows whose columns are given."""
        try:
            parts = [*zip(columns, (found for _, found in self._columns), strict=True)]
            # Texts take the longest. If one of them came last, one thread would work on it while the others wait.
            order = sorted(range(len(parts)), key=lambda number: parts[number][1].kind not in _LONG)
            made = self._pool.map(lambda number: self._array_or_nulls(*parts[number], count), order, count)
            arrays = [array for _, array in sorted(zip(order, made, strict=True), key=itemgetter(0))]
        except _TooLong:
            if count == 1:
                raise Unsupported("a row has more bytes or elements than Arrow's offsets can count") from None
            half = count // 2
            for start, stop in ((0, half), (half, count)):
                yield from self.batches_of(
                    [column and column.part(start, stop) for column in columns], stop - start
                )
        else:
            yield self._pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    # `bits` says which rows of an array the rows of the column are; without it, all. The others are null: `valid`
    # says so, or what the array is in is null there. They have no memory in the columns.

    def _array_or_nulls(self, column: Column | None, found: Type, count: int, bits: _Bits | None = None) -> Any:
        if column is None:
            return self._nulls(found, count)
        return self._array(column, found, bits, None)

    def _nulls(self, found: Type, count: int) -> Any:
        self._take(count * _width(found))
        return self._pa.nulls(count, self._types.of(found, ""))

    def _array(self, column: Column, found: Type, bits: _Bits | None, valid: _Bits | None) -> Any:
        column = as_column(column)
        while isinstance(column, (OptionColumn, PresentColumn, GapColumn, TypeColumn)):
            if isinstance(column, TypeColumn):
                if found.kind == "named" and not isinstance(column.column, (OptionColumn, TypeColumn)):
                    break
            elif bits is None:
                # The rows of an optional column are all there in many groups.
                bits = valid = None if column.bits.all() else column.bits
            else:
                valid = bits.copy()
                valid[bits] = column.bits
                bits = valid
            column = as_column(column.column)
        count = column.count if bits is None else len(bits)
        self._take((count - column.count) * _width(found))
        if isinstance(column, UnitColumn):
            return self._nulls(found, count)
        if isinstance(column, DictColumn):
            return self._taken(column, found, bits, valid)
        if isinstance(column, TypeColumn):
            inner = column.column
            if isinstance(inner, DictColumn) and column.name != "category":
                typed = TypeColumn(column.name, column.parameters, inner.column)
                return self._taken(DictColumn(inner.codes, typed), found, bits, valid)
            return self._named(inner, found, bits, valid)
        if found.kind == "tuple" and isinstance(column, ListColumn):
            return self._tuple(column, found, count, bits, valid)
        if found.kind in ("struct", "tuple"):
            return self._struct(column, found, count, bits, valid)
        if isinstance(column, EnumColumn):
            return self._enum(column, found, bits, valid)
        return getattr(self, f"_{found.kind}")(column, found, bits, valid)

    def _made(
        self, kind: Any, count: int, valid: _Bits | None, buffers: Iterable[Any] = (), inner: Any = None
    ) -> Any:
        """An array of buffers, and of arrays in it."""
        pa = self._pa
        packed = None if valid is None else np.packbits(valid, bitorder="little")
        wrapped = [None if buffer is None else pa.py_buffer(buffer) for buffer in (packed, *buffers)]
        return pa.Array.from_buffers(kind, count, wrapped, children=inner)

    def _numbers(self, values: npt.NDArray[Any], kind: Any, bits: _Bits | None, valid: _Bits | None) -> Any:
        """An array of numbers or bools of this dtype."""
        values = _spread(values, bits)
        packed = (
            np.packbits(values, bitorder="little") if values.dtype.kind == "b" else np.ascontiguousarray(values)
        )
        return self._made(kind, len(values), valid, [packed])

    def _number(self, column: Any, found: Type, bits: _Bits | None, valid: _Bits | None) -> Any:
        kind = self._types.number(found.what)
        return self._numbers(column.values.astype(kind.to_pandas_dtype(), copy=False), kind, bits, valid)

    def _tensor(self, column: Any, found: Type, bits: _Bits | None, valid: _Bits | None) -> Any:
        dtype, shape = found.what
        kind = self._types.of(found, "")
        values = _spread(column.values.reshape(column.count, prod(shape)), bits)
        inner = self._numbers(values.reshape(-1), self._types.number(dtype), None, None)
        return self._pa.ExtensionArray.from_storage(
            kind, self._made(kind.storage_type, len(values), valid, inner=[inner])
        )

    def _text(self, column: Any, found: Type, bits: _Bits | None, valid: _Bits | None) -> Any:
        offsets = self._offsets(column.lengths, bits)
        return self._made(self._types.of(found, ""), len(offsets) - 1, valid, [offsets, column.data])

    _bytes = _text

    def _list(self, column: Any, found: Type, bits: _Bits | None, valid: _Bits | None) -> Any:
        kind, item = self._types.of(found, ""), found.parts["item"]
        each = found.what
        if isinstance(column, TupleColumn):
            columns = [self._array(inner, item, bits, None) for inner in column.columns]
            count, each = len(columns[0]), len(columns)
            in_rows = np.arange(each * count).reshape(each, count).T.reshape(-1)
            inner = self._pa.concat_arrays(columns).take(self._pa.array(in_rows))
            starts = np.arange(0, (count + 1) * each, each, dtype=np.int32)
            return self._made(kind, count, valid, [] if found.what else [starts], [inner])
        if each is None:
            offsets = self._offsets(column.lengths, bits)
            inner = self._array(column.column, item, None, None)
            return self._made(kind, len(offsets) - 1, valid, [offsets], [inner])
        inner = self._array(column.column, item, None if bits is None else np.repeat(bits, each), None)
        return self._made(kind, len(inner) // each, valid, inner=[inner])

    def _map(self, column: Any, found: Type, bits: _Bits | None, valid: _Bits | None) -> Any:
        kind = self._types.of(found, "")
        offsets = self._offsets(column.lengths, bits)
        keys = self._array(column.keys, key_of(found), None, None)
        if keys.null_count:
            raise Unsupported("keys of a map are null, which Arrow does not allow")
        parts = [keys, self._array(column.values, found.parts["value"], None, None)]
        entries = self._made(self._pa.struct([kind.key_field, kind.item_field]), len(keys), None, inner=parts)
        return self._made(kind, len(offsets) - 1, valid, [offsets], [entries])

    def _offsets(self, lengths: Lengths, bits: _Bits | None) -> npt.NDArray[np.int32]:
        if lengths.total > _MOST:
            raise _TooLong
        if lengths.each is not None:
            # Any number of rows have their lengths in one number.
            self._take(4 * lengths.count)
        offsets = lengths.offsets()
        if bits is not None:
            offsets = np.concatenate(([0], np.cumsum(_spread(np.diff(offsets), bits))))
        return offsets.astype(np.int32)

    def _struct(self, column: Any, found: Type, count: int, bits: _Bits | None, valid: _Bits | None) -> Any:
        inner = [self._array_or_nulls(column.field(name), part, count, bits) for name, part in found.parts.items()]
        return self._made(self._types.of(found, ""), count, valid, inner=inner)

    def _tuple(self, column: ListColumn, found: Type, count: int, bits: _Bits | None, valid: _Bits | None) -> Any:
        """The array of tuples, of lists that have their length."""
        if not column.count:
            return self._nulls(found, count)
        starts = _spread(np.arange(column.count) * len(found.parts), bits)
        inner = [
            self._array(column.column, part, None, None).take(self._pa.array(starts + at))
            for at, part in enumerate(found.parts.values())
        ]
        return self._made(self._types.of(found, ""), count, valid, inner=inner)

    def _taken(self, column: DictColumn, found: Type, bits: _Bits | None, valid: _Bits | None) -> Any:
        """The array of the rows of a dict, which are repeated."""
        pa = self._pa
        sizes = column.column.sizes()
        most = column.count * int(sizes.max(initial=0))
        if most > _LITTLE:
            most = int((np.bincount(column.codes, minlength=len(sizes)) * sizes).sum())
        self._take(most)
        if not column.count:
            return self._nulls(found, 0 if bits is None else len(bits))
        rows = self._array(column.column, found, None, None)
        codes = _spread(column.codes, bits)
        # Rows that are null only because what they are in is null there can have any value.
        return rows.take(pa.array(codes, mask=None if valid is None else ~valid))

    def _enum(self, column: EnumColumn, found: Type, bits: _Bits | None, valid: _Bits | None) -> Any:
        names = self._pa.array(found.parts, self._pa.string())
        if found.kind == "text":
            names = self._pa.array(column.variants, self._pa.string())
            numbers = np.arange(len(names), dtype="<i4")
        else:
            places = {name: place for place, name in enumerate(found.parts)}
            numbers = np.array([places[name] for name in column.variants], "<i4")
        is_flat = found.kind == "text" or not has_data(found)
        codes = self._codes(numbers[column.codes], names, bits, valid if is_flat else None)
        if is_flat:
            return codes.dictionary_decode() if found.kind == "text" else codes
        count, inner = len(codes), [codes]
        kind = self._types.of(found, "")
        assert kind.field(0).name == variant_field(found)
        columns = dict(zip(column.variants, enumerate(column.columns), strict=True))
        for name, part in found.parts.items():
            code, content = columns.get(name, (0, None))
            if part.kind == "none":
                continue
            if content is None:
                inner.append(self._nulls(part, count))
                continue
            rows = _spread(column.codes == code, bits)
            inner.append(self._array(content, part, rows, rows))
        return self._made(kind, count, valid, inner=inner)

    def _codes(
        self, codes: npt.NDArray[Any], names: Any, bits: _Bits | None, valid: _Bits | None, **how: bool
    ) -> Any:
        indices = self._numbers(codes.astype("<i4"), self._pa.int32(), bits, valid)
        if not len(names) and len(indices):
            # Rows that are null, and of which there is no name.
            names = self._pa.array([""])
        return self._pa.DictionaryArray.from_arrays(indices, names, **how)

    def _named(self, column: Any, found: Type, bits: _Bits | None, valid: _Bits | None) -> Any:
        name, kind = found.what[0], self._types.of(found, "")
        if name == "category":
            names = self._array(column.column, Type("text"), None, None)
            return self._codes(column.codes, names, bits, valid, ordered=kind.ordered)
        if name == ORDERED:
            _, *names = found.what[1]
            places = {name: place for place, name in enumerate(names)}
            numbers = [places.get(name, -1) for name in column.column.rows(0, column.column.count)]
            if -1 in numbers:
                raise _not_of(found)
            codes = self._codes(np.array(numbers, "<i4")[column.codes], self._pa.array(names), bits, valid)
            return codes.cast(kind)
        if name == "uuid":
            values = _spread(np.frombuffer(column.data, "V16"), bits)
            storage = self._made(kind.storage_type, len(values), valid, [values.view(np.uint8)])
            return self._pa.ExtensionArray.from_storage(kind, storage)
        if name == "decimal":
            return self._checked(self._made(kind, *_decimals(column, kind.byte_width, bits, valid)), found)
        width = "<i4" if self._pa.types.is_time32(kind) else _WIDTHS[name]
        values = column.values.astype(width, copy=False)
        if values is not column.values and (values != column.values).any():
            raise _not_of(found)
        made = self._numbers(values, kind, bits, valid)
        return self._checked(made, found) if name == "time" else made

    def _checked(self, array: Any, found: Type) -> Any:
        """An array of times or decimals, some of which can be out of their range."""
        try:
            array.validate(full=True)
        except self._pa.ArrowInvalid:
            raise _not_of(found) from None
        return array


def _joined(batches: Iterator[Any]) -> Iterator[Any]:
    """Batches of a stream, of so many rows that duckdb stores them as they are."""
    held: list[Any] = []
    rows = size = 0
    for batch in batches:
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if size > _BATCH_BYTES:
            yield from _as_one(held)
            held, rows, size = [], batch.num_rows, batch.nbytes
        held.append(batch)
        if rows >= _BATCH:
            yield from _as_one(held)
            held, rows, size = [], 0, 0
    yield from _as_one(held)


def _as_one(batches: list[Any]) -> list[Any]:
    if len(batches) < 2:
        return batches
    pa = _pyarrow()
    try:
        made: list[Any] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    except pa.ArrowInvalid:
        # Together, they have more elements than Arrow's offsets can count. Nulls take no bytes.
        return batches
    return made


def _not_of(found: Type) -> Mismatch:
    name, parameters = found.what
    return Mismatch(f"a row is no value of the type {name} {list(parameters)}, which its column is of")


def _spread(values: npt.NDArray[Any], bits: _Bits | None) -> npt.NDArray[Any]:
    """Values in their rows; the other rows are zero."""
    return values if bits is None else spread(values, bits)


def _decimals(
    column: Any, width: int, bits: _Bits | None, valid: _Bits | None
) -> tuple[int, _Bits | None, list[npt.NDArray[np.uint8]]]:
    """The numbers of decimals as little-endian integers of `width` bytes."""
    if isinstance(column, NumberColumn):
        found = column.values.astype("<i8").view(np.uint8).reshape(-1, 8)
    else:
        assert isinstance(column, BytesColumn)
        each = column.lengths.same() or 1
        found = np.frombuffer(column.data, np.uint8).reshape(-1, each)[:, ::-1]
    signs = found[:, min(found.shape[1], width) - 1 :][:, :1] >> 7
    whole = np.repeat(signs * np.uint8(255), width, axis=1)
    if (found[:, width:] != whole[:, :1]).any():
        raise Mismatch(f"a decimal needs more than {width} bytes, which its precision does not allow")
    whole[:, : found.shape[1]] = found[:, :width]
    found = _spread(whole, bits)
    return len(found), valid, [found.reshape(-1)]


def _width(found: Type) -> int:
    """The bytes of a row that is null, or about as many."""
    if found.kind == "tensor":
        return 8 * int(prod(found.what[1]))
    inner = sum(map(_width, found.parts.values()))
    if found.kind == "list":
        return 4 if found.what is None else int(found.what) * inner
    if found.kind in ("struct", "tuple"):
        return inner
    return _WIDTHS_OF_KINDS[found.kind] + (inner if found.kind == "enum" else 0)
