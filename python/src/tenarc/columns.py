"""The kinds of columns (SPEC 7), with their rows as Python values.

Whoever makes a column has checked it: `column_reader.py` for input, `column_maker.py` for the values of a caller.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from . import accelerator, dtypes, items, named
from .errors import Damaged, Fault, Mismatch, Unsupported
from .fields import frozen
from .values import Numbers, Raw, Some, Tag

if TYPE_CHECKING:
    from .encode import Encoder
    from .statistics import Statistic

#: The most rows of a group.
MAX_ROWS = 1 << 16
#: The most dimensions that every version of numpy supports.
MAX_RANK = 32
#: The bytes that objects of Python take: an entry of a list that is made twice, as that of the rows of a column
#: and that of all rows; and lists, texts and byte strings without their content, floats, other integers than the
#: smallest, arrays, `Raw` and `Some`.
ENTRY, _LIST, _TEXT, _BYTES, _FLOAT, _INT, _ARRAY, _RAW, _SOME = 16, 64, 64, 48, 24, 32, 160, 448, 96
#: The most bytes of the copy of a value for each byte of the value.
_ITEM = 64
#: The bytes of a dict with one key that need not be text, and at most of each further one.
_MAP, _PAIR = 232, 80
#: When texts are written as a dict (SPEC 7): if it saves one part in `_SAVING`, if at most `_MOST_DISTINCT` of
#: the first `_SAMPLE` rows are distinct, and if the rows take at most `_REPEATED` times its bytes. It takes about
#: `_HEADS` bytes besides codes and rows.
_SAVING, _SAMPLE, _MOST_DISTINCT, _REPEATED, _HEADS = 5, 256, 192, 32, 16
# Texts of so few rows are made as fast without the accelerator.
_FEW = 16
#: The type around a category whose names have an order: see `docs/decisions/arrow.md`. A type has 16 parameters.
ORDERED, _MOST_NAMES, _MAX_NAME = "arrow.dictionary", 15, 64
#: Rows of a dict that are one object count as so many times less memory than rows by themselves. So the rows of
#: dicts may have 1,024 times the bytes of the input (SPEC 7), because `Limits.memory` allows 64 times.
_ONE_OBJECT = 16
#: Stands in the rows of a field for a row that does not have the field.
ABSENT: Any = object()
#: The numbers of some rows, in order.
Edges = npt.NDArray[np.int64]
#: The parameters of `ORDERED`: the type of Arrow for the numbers of names, and the names, the least first.
Order = tuple[str, ...]
#: The numbers of some rows.
Picks = npt.NDArray[np.integer[Any]]


class Column(Protocol):
    """One value for each row of a group, or for each element of the lists in these rows, and so on."""

    count: int
    #: Whether it is read from an archive when it is needed.
    is_stored: bool
    #: Whether its rows were stored one by one, so that the column does not say what they have in common.
    by_item: bool

    def is_near(self, most: int) -> bool:
        """Whether some of the rows can be read without reading more than about so many bytes."""

    def rows(self, start: int, stop: int) -> list[Any]:
        """The values of some rows, as the same rows in an array would be read."""

    def loaded(self) -> Column:
        """The column itself, or what it stands for if it is read only when it is needed."""

    def outline(self) -> Column:
        """The column itself, or what it is without the rows, if it is read only when it is needed."""

    def names(self) -> Iterable[str]:
        """The names of the fields of its rows. The elements of tuples are named by their positions."""

    def is_table(self) -> bool:
        """Whether all rows are structs, or all are tuples."""

    def is_tuple(self) -> bool:
        """Whether the names are positions in tuples, which paths do not lead to."""

    def field(self, name: str) -> Column | None:
        """The column of one field; `None` if no row has it. Rows without a value are `ABSENT` in it."""

    def known(self, names: tuple[str, ...]) -> Statistic | None:
        """What statistics say about the column that some names lead to. `None` if they say nothing."""

    def missing(self) -> Column:
        """A column of as many rows that have no value."""

    def tensor(self) -> npt.NDArray[Any] | Raw | None:
        """All rows as one tensor, if SPEC Annex A says that the column is one. The first dimension is the rows."""

    def array(self) -> npt.NDArray[Any] | None:
        """All rows as one numpy array; `None` if there is no array for this kind. A gap is masked."""

    def types(self) -> set[named.Type | None]:
        """The named types of the elements, if the column is a tensor. `None` is for elements without one."""

    def form(self) -> str:
        """A description of the rows, such as `f32[2, 3]`."""

    def sizes(self) -> npt.NDArray[np.int64]:
        """About how many bytes each row takes."""

    def memory(self, edges: Edges) -> npt.NDArray[np.float64]:
        """How many bytes the rows from each edge to the next take as objects of Python, at most."""

    def part(self, start: int, stop: int) -> Column:
        """The column of some of the rows."""

    def picked(self, rows: Picks) -> Column:
        """The column of rows by their numbers, which can occur in any order, and more than once."""

    def write(self, out: Encoder, depth: int) -> None:
        """Writes the column, which is nested `depth` levels deep."""


class BaseColumn:
    """What most kinds of columns have in common."""

    count: int
    is_stored = False
    by_item = False

    def is_near(self, most: int) -> bool:
        return True

    def loaded(self: Any) -> Any:
        return self

    def outline(self: Any) -> Any:
        return self

    def names(self) -> Iterable[str]:
        return ()

    def is_table(self) -> bool:
        return False

    def is_tuple(self) -> bool:
        return False

    def field(self, name: str) -> Column | None:
        return None

    def known(self, names: tuple[str, ...]) -> Statistic | None:
        return None

    def missing(self) -> Column:
        return UnitColumn(self.count)

    def tensor(self) -> npt.NDArray[Any] | Raw | None:
        return None

    def array(self) -> npt.NDArray[Any] | None:
        found = self.tensor()
        return None if found is None or isinstance(found, Raw) else named.values_in(self.types(), found)

    def types(self) -> set[named.Type | None]:
        return {None}


class Lengths:
    """The lengths of texts, byte strings, lists or maps. The caller has checked that their sum is below 2^63."""

    def __init__(self, count: int, each: int | None, numbers: npt.NDArray[Any] | None = None) -> None:
        self.count = count
        #: The length of each row, if it is given by one number. No memory is allocated for such lengths, because
        #: a short input can announce any number of rows with them.
        self.each = each
        self._offsets: npt.NDArray[np.int64] | None = None
        self.total = 0
        if each is not None:
            self.total = count * each
        elif numbers is not None:
            self._offsets = np.zeros(count + 1, np.int64)
            np.cumsum(numbers, dtype=np.int64, out=self._offsets[1:])
            self.total = int(self._offsets[-1])

    @classmethod
    def of(cls, values: Iterable[Sequence[Any]]) -> Lengths:
        numbers = np.fromiter(map(len, values), np.int64)
        return cls(len(numbers), None, numbers)

    def same(self) -> int | None:
        """The length that all rows have; `None` if they differ, or if there are no rows."""
        if self._offsets is None or not self.count:
            return self.each
        lengths = np.diff(self._offsets)
        first = int(lengths[0])
        return first if (lengths == first).all() else None

    def numbers(self) -> npt.NDArray[np.int64]:
        """The length of each row."""
        return np.full(self.count, self.each or 0) if self._offsets is None else np.diff(self._offsets)

    def offsets(self) -> npt.NDArray[np.int64]:
        """The positions where the rows start, and at last the position where the last one ends."""
        return np.arange(self.count + 1) * (self.each or 0) if self._offsets is None else self._offsets

    def part(self, start: int, stop: int) -> Lengths:
        """The lengths of some rows."""
        numbers = None if self._offsets is None else np.diff(self._offsets[start : stop + 1])
        return Lengths(stop - start, self.each, numbers)

    def picked(self, rows: Picks) -> tuple[Lengths, npt.NDArray[np.int64]]:
        """The lengths of rows by their numbers, and the positions where they start."""
        wide: Edges = rows.astype(np.int64, copy=False)
        starts = self.at(wide)
        numbers = None if self._offsets is None else self._offsets[wide + 1] - starts
        return Lengths(len(rows), self.each, numbers), starts

    def edges(self, start: int, stop: int) -> list[int]:
        """The positions where the rows start, and the position where the last one ends."""
        if self._offsets is not None:
            return list(self._offsets[start : stop + 1].tolist())
        each = self.each or 0
        return [row * each for row in range(start, stop + 1)]

    def at(self, edges: Edges) -> Edges:
        """The position where each of some rows starts."""
        return edges * (self.each or 0) if self._offsets is None else self._offsets[edges]

    def starts(self) -> npt.NDArray[np.int64]:
        """The positions where rows start, if they are before the end of the last row."""
        if self._offsets is not None:
            return self._offsets[:-1][self._offsets[:-1] < self.total]
        return np.arange(0, self.total, self.each or 1)

    def width(self) -> int:
        """The bytes of the type in which the lengths are written, for a dict; 0 if one number is enough."""
        numbers = self.numbers()
        most = 0 if self.same() is not None else int(numbers.max())
        return 4 if most > 0xFFFF else (most > 0) + (most > 0xFF)

    def write(self, out: Encoder, depth: int) -> None:
        each = self.same()
        if each is not None:
            out.out.append(items.head(items.UNSIGNED, each))
        else:
            NumberColumn(narrowed(self.numbers())).write(out, depth)


class NumberColumn(BaseColumn):
    def __init__(self, values: npt.NDArray[Any]) -> None:
        self.count = len(values)
        self.values = values

    def rows(self, start: int, stop: int) -> list[Any]:
        return list(self.values[start:stop].tolist())

    def tensor(self) -> npt.NDArray[Any]:
        return self.values

    def form(self) -> str:
        return _form_of(self.values)

    def sizes(self) -> npt.NDArray[np.int64]:
        return np.full(self.count, self.values.itemsize)

    def memory(self, edges: Edges) -> npt.NDArray[np.float64]:
        # Small integers exist once.
        each = _FLOAT if self.values.dtype.kind == "f" else _INT if self.values.itemsize > 1 else 0
        return _times(edges, ENTRY + each)

    def part(self, start: int, stop: int) -> Column:
        return NumberColumn(self.values[start:stop])

    def picked(self, rows: Picks) -> Column:
        return NumberColumn(self.values[rows])

    def write(self, out: Encoder, depth: int) -> None:
        dtype = dtypes.of_numpy(self.values.dtype)
        assert dtype is not None
        out.write_numbers(dtype, _bytes_of(self.values), depth)


class BoolColumn(BaseColumn):
    def __init__(self, values: npt.NDArray[np.bool_]) -> None:
        self.count = len(values)
        self.values = values

    def rows(self, start: int, stop: int) -> list[Any]:
        return list(self.values[start:stop].tolist())

    def tensor(self) -> npt.NDArray[Any]:
        return self.values

    def form(self) -> str:
        return "bool"

    def sizes(self) -> npt.NDArray[np.int64]:
        # An eighth, which is too little to count.
        return np.zeros(self.count, np.int64)

    def memory(self, edges: Edges) -> npt.NDArray[np.float64]:
        return _times(edges, ENTRY)

    def part(self, start: int, stop: int) -> Column:
        return BoolColumn(self.values[start:stop])

    def picked(self, rows: Picks) -> Column:
        return BoolColumn(self.values[rows])

    def write(self, out: Encoder, depth: int) -> None:
        _start(out, depth, 2, "bool")
        out.write_bytes(np.packbits(self.values, bitorder="little"), depth + 1)


class TensorColumn(BaseColumn):
    """Tensors of one dtype that numpy has, and of one shape."""

    def __init__(self, values: npt.NDArray[Any]) -> None:
        self.count = len(values)
        self.values = values

    def rows(self, start: int, stop: int) -> list[Any]:
        # With the ellipsis, rows without dimensions are arrays too, and not numpy's scalars.
        return [self.values[row, ...] for row in range(start, stop)]

    def tensor(self) -> npt.NDArray[Any]:
        return self.values

    def form(self) -> str:
        return _form_of(self.values)

    def sizes(self) -> npt.NDArray[np.int64]:
        return np.full(self.count, self.values.nbytes // max(self.count, 1))

    def memory(self, edges: Edges) -> npt.NDArray[np.float64]:
        return _times(edges, ENTRY + _ARRAY + 16 * self.values.ndim)

    def part(self, start: int, stop: int) -> Column:
        return TensorColumn(self.values[start:stop])

    def picked(self, rows: Picks) -> Column:
        return TensorColumn(self.values[rows])

    def write(self, out: Encoder, depth: int) -> None:
        dtype = dtypes.of_numpy(self.values.dtype)
        assert dtype is not None
        out.write_tensor(dtype.name, self.values.shape, "C", _bytes_of(self.values), depth)


class RawColumn(BaseColumn):
    """Tensors of one dtype that numpy does not have, and of one shape."""

    def __init__(self, count: int, dtype: str, shape: tuple[int, ...], payload: dtypes.Payload) -> None:
        self.count = count
        self._dtype, self._shape = dtype, shape
        self._payload = payload
        self._width = payload.nbytes // count if count else 0

    def rows(self, start: int, stop: int) -> list[Any]:
        width = self._width
        payloads = (self._payload[row * width : (row + 1) * width] for row in range(start, stop))
        return [Raw(self._dtype, self._shape, payload) for payload in payloads]

    def tensor(self) -> Raw:
        return Raw(self._dtype, (self.count, *self._shape), self._payload)

    def form(self) -> str:
        return form_of(self._dtype, self._shape)

    def sizes(self) -> npt.NDArray[np.int64]:
        return np.full(self.count, self._width)

    def memory(self, edges: Edges) -> npt.NDArray[np.float64]:
        return _times(edges, ENTRY + _RAW)

    def part(self, start: int, stop: int) -> Column:
        payload = self._payload[start * self._width : stop * self._width]
        return RawColumn(stop - start, self._dtype, self._shape, payload)

    def picked(self, rows: Picks) -> Column:
        payload = self._payload.reshape(self.count, self._width)[rows].reshape(-1)
        return RawColumn(len(rows), self._dtype, self._shape, payload)

    def write(self, out: Encoder, depth: int) -> None:
        out.write_tensor(self._dtype, (self.count, *self._shape), "C", self._payload, depth)


class StructColumn(BaseColumn):
    def __init__(self, count: int, fields: Mapping[str, Column]) -> None:
        self.count = count
        self.fields = fields

    def rows(self, start: int, stop: int) -> list[Any]:
        if not self.fields:
            return [{} for _ in range(start, stop)]
        # A loop, because before Python 3.12 a comprehension has a frame of its own, and columns are nested.
        columns, gaps = [], False
        for column in self.fields.values():
            columns.append(column.rows(start, stop))
            gaps = gaps or isinstance(column, PresentColumn)
        names = tuple(self.fields)
        if accelerator.compiled is not None:
            rows: list[Any] = accelerator.compiled.structs(names, columns, stop - start, ABSENT)
            return rows
        if not gaps:
            return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        return [
            {name: value for name, value in zip(names, row, strict=True) if value is not ABSENT}
            for row in zip(*columns, strict=True)
        ]

    def names(self) -> Iterable[str]:
        return self.fields

    def is_table(self) -> bool:
        return True

    def field(self, name: str) -> Column | None:
        return self.fields.get(name)

    def form(self) -> str:
        return "struct"

    def sizes(self) -> npt.NDArray[np.int64]:
        return _sum(self.count, self.fields.values())

    def memory(self, edges: Edges) -> npt.NDArray[np.float64]:
        total = _times(edges, ENTRY + sys.getsizeof(dict.fromkeys(self.fields)))
        # A loop, as in `rows`.
        for column in self.fields.values():
            total += column.memory(edges)
        return total

    def part(self, start: int, stop: int) -> Column:
        fields = {name: column.part(start, stop) for name, column in self.fields.items()}
        return StructColumn(stop - start, fields)

    def picked(self, rows: Picks) -> Column:
        return StructColumn(len(rows), {name: column.picked(rows) for name, column in self.fields.items()})

    def write(self, out: Encoder, depth: int) -> None:
        out.levels(depth)
        out.out.append(items.head(items.MAP, len(self.fields)))
        for index, (name, column) in enumerate(self.fields.items()):
            out.write_str(name, depth + 1)
            try:
                _write(column, out, depth + 1)
            except Fault as fault:
                raise fault.at(2 * index + 1, name) from fault.__cause__


class UnitColumn(BaseColumn):
    def __init__(self, count: int) -> None:
        self.count = count

    def rows(self, start: int, stop: int) -> list[Any]:
        return [None] * (stop - start)

    def form(self) -> str:
        return "null"

    def sizes(self) -> npt.NDArray[np.int64]:
        return np.zeros(self.count, np.int64)

    def memory(self, edges: Edges) -> npt.NDArray[np.float64]:
        return _times(edges, ENTRY)

    def part(self, start: int, stop: int) -> Column:
        return UnitColumn(stop - start)

    def picked(self, rows: Picks) -> Column:
        return UnitColumn(len(rows))

    def write(self, out: Encoder, depth: int) -> None:
        _start(out, depth, 1, "unit")


class _Strings(BaseColumn):
    """Texts or byte strings."""

    kind: str
    data: bytes | memoryview

    def __init__(self, lengths: Lengths, data: Any) -> None:
        self.count = lengths.count
        self.lengths, self.data = lengths, data

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.lengths, bytes(self.data))

    def form(self) -> str:
        return self.kind

    def sizes(self) -> npt.NDArray[np.int64]:
        return self.lengths.numbers() + 1

    def part(self, start: int, stop: int) -> Any:
        first, last = self.lengths.at(np.array([start, stop])).tolist()
        return type(self)(self.lengths.part(start, stop), self.data[first:last])

    def picked(self, rows: Picks) -> Any:
        lengths, starts = self.lengths.picked(rows)
        edges = zip(starts.tolist(), (starts + lengths.numbers()).tolist(), strict=True)
        return type(self)(lengths, b"".join([self.data[a:b] for a, b in edges]))

    def write(self, out: Encoder, depth: int) -> None:
        found = self._distinct()
        if found is None:
            return self.write_all(out, depth)
        codes, rows = found
        column: Any = type(self)(Lengths.of(rows), b"".join(rows))
        DictColumn(codes, column).write(out, depth)

    def write_all(self, out: Encoder, depth: int) -> None:
        """Writes every row, also those that are equal."""
        _start(out, depth, 3, self.kind)
        self.lengths.write(out, depth + 1)
        self._write_data(out, depth + 1)

    def _write_data(self, out: Encoder, depth: int) -> None:
        raise NotImplementedError

    def _distinct(self) -> tuple[npt.NDArray[Any], list[bytes]] | None:
        """For each row which of the distinct rows it is, and these; `None` if a dict of them saves too little.

        The crate decides in the same way, so that both write the same.
        """
        before = self.count * self.lengths.width() + len(self.data)
        most, size = before - -(-before // _SAVING), self.count + _HEADS
        if size > most:
            return None
        known: dict[bytes, int] = {}
        codes = []
        for row, (start, stop) in enumerate(pairwise(self.lengths.edges(0, self.count))):
            string = bytes(self.data[start:stop])
            code = known.get(string)
            if code is None:
                code = known[string] = len(known)
                size += len(string)
                if size > most or code == MAX_ROWS:
                    return None
            codes.append(code)
            if row + 1 == _SAMPLE and len(known) > _MOST_DISTINCT:
                return None
        rows, is_wide = [*known], len(known) > 1 << 8
        size += is_wide * self.count + len(rows) * Lengths.of(rows).width()
        if size > most or before // _REPEATED > size:
            return None
        return np.array(codes, "<u2" if is_wide else "u1"), rows


class TextColumn(_Strings):
    kind = "text"

    @cached_property
    def is_ascii(self) -> bool:
        return int(np.frombuffer(self.data, np.uint8).max(initial=0)) < 128

    @cached_property
    def _ascii(self) -> str | None:
        # In ASCII, lengths in bytes are lengths in characters.
        return str(self.data, "ascii") if self.is_ascii else None

    def rows(self, start: int, stop: int) -> list[Any]:
        if accelerator.compiled is not None and stop - start > _FEW:
            places = self.lengths.at(np.arange(start, stop + 1))
            first, last = places[[0, -1]].tolist()
            rows: list[Any] = accelerator.compiled.texts(
                bytes(self.data[first:last]), (places - first).astype("<i8").tobytes()
            )
            return rows
        edges = pairwise(self.lengths.edges(start, stop))
        if self._ascii is not None:
            text = self._ascii
            return [text[a:b] for a, b in edges]
        data = self.data
        return [str(data[a:b], "utf-8") for a, b in edges]

    def memory(self, edges: Edges) -> npt.NDArray[np.float64]:
        width = 1 if self.is_ascii else 4
        return _times(edges, ENTRY + _TEXT + 8 * width) + _times(self.lengths.at(edges), width)

    def _write_data(self, out: Encoder, depth: int) -> None:
        out.write_text(self.data, depth)


class BytesColumn(_Strings):
    kind = "bytes"

    def rows(self, start: int, stop: int) -> list[Any]:
        data = self.data
        # The data of a view is a `memoryview`, but rows are `bytes` in any case.
        return [bytes(data[a:b]) for a, b in pairwise(self.lengths.edges(start, stop))]

    def memory(self, edges: Edges) -> npt.NDArray[np.float64]:
        return _times(edges, ENTRY + _BYTES) + np.diff(self.lengths.at(edges))

    def _write_data(self, out: Encoder, depth: int) -> None:
        out.write_bytes(self.data, depth)


class DictColumn(BaseColumn):
    """Rows of which each distinct one is stored once."""

    def __init__(self, codes: npt.NDArray[Any], column: Column) -> None:
        self.count = len(codes)
        self.codes, self.column = codes, column
        # Whether the rows cannot change, so that equal ones can be one object.
        self._is_constant = isinstance(_values_in(column), _Strings)

    def rows(self, start: int, stop: int) -> list[Any]:
        codes = self.codes[start:stop].tolist()
        first = min(codes, default=0)
        rows = self.column.rows(first, max(codes, default=-1) + 1)
        if self._is_constant:
            return [rows[code - first] for code in codes]
        return [_copied(rows[code - first]) for code in codes]

    def names(self) -> Iterable[str]:
        return self.column.names()

    def is_table(self) -> bool:
        return self.column.is_table()

    def is_tuple(self) -> bool:
        return self.column.is_tuple()

    def field(self, name: str) -> Column | None:
        inner = self.column.field(name)
        return None if inner is None else DictColumn(self.codes, inner)

    def array(self) -> npt.NDArray[Any] | None:
        found = self.column.array()
        return None if found is None or found.ndim != 1 else found[self.codes]

    def form(self) -> str:
        return self.column.form()

    def sizes(self) -> npt.NDArray[np.int64]:
        sizes: npt.NDArray[np.int64] = self.column.sizes()[self.codes]
        return sizes

    @cached_property
    def _each(self) -> npt.NDArray[np.float64]:
        return self.column.memory(np.arange(self.column.count + 1))

    def memory(self, edges: Edges) -> npt.NDArray[np.float64]:
        rows = slice(edges[0], edges[-1])
        each = self._each[self.codes[rows]]
        if self._is_constant:
            # Rows that occurred before.
            most = np.maximum.accumulate(self.codes)
            again = np.concatenate(([False], most[1:] == most[:-1]))[: self.count][rows]
            each[again] = ENTRY + each[again] / _ONE_OBJECT
        return _sums(each, edges)

    def part(self, start: int, stop: int) -> Column:
        return DictColumn(self.codes[start:stop], self.column)

    def picked(self, rows: Picks) -> Column:
        return DictColumn(self.codes[rows], self.column)

    def write(self, out: Encoder, depth: int) -> None:
        codes, used = ordered(self.codes)
        column = self.column
        if len(used) < column.count or (used[1:] < used[:-1]).any():
            # Some of the rows of a dict: their codes are others.
            if not isinstance(column, _Strings):
                return ItemColumn(self.rows(0, self.count)).write(out, depth)
            column = column.picked(used)
        _start(out, depth, 4, "dict")
        NumberColumn(codes.astype("u1" if column.count <= 1 << 8 else "<u2")).write(out, depth + 1)
        out.out.append(items.head(items.UNSIGNED, column.count))
        write_all = column.write_all if isinstance(column, _Strings) else column.write
        write_all(out, depth + 1)


def ordered(codes: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Codes that number the distinct ones in the order in which they first occur, and what each of these was."""
    used, first, again = np.unique(codes, return_index=True, return_inverse=True)
    places = np.argsort(first)
    return np.argsort(places)[again], used[places]


def _values_in(column: Column) -> Column:
    """The column of the rows that are there, whatever type they are of."""
    while isinstance(column, (OptionColumn, TypeColumn)):
        column = column.column
    return column


def _copied(value: Any) -> Any:
    """A row of a dict that another row is equal to."""
    if type(value) is list:
        return [*map(_copied, value)]
    if type(value) is dict:
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.copy() if value.flags.writeable else value
    if isinstance(value, Raw):
        return replace(value, data=_copied(value.data))
    if type(value) in (Some, Tag):
        content = _copied(value.value)
        return Some(content) if type(value) is Some else Tag(value.tag, content)
    return value


class _Partial(BaseColumn):
    """A column of which only some rows have a value."""

    kind: str

    def __init__(self, bits: npt.NDArray[np.bool_], column: Column) -> None:
        self.count = len(bits)
        self.bits, self.column = bits, column

    def _inner(self, start: int, stop: int) -> list[Any]:
        """The values of some rows, without the rows that have none."""
        first = int(np.count_nonzero(self.bits[:start]))
        return self.column.rows(first, first + int(np.count_nonzero(self.bits[start:stop])))

    def _spread(self, values: list[Any], start: int, stop: int, other: Any) -> list[Any]:
        if len(values) == stop - start:
            return values
        rows = iter(values)
        return [next(rows) if bit else other for bit in self.bits[start:stop].tolist()]

    def names(self) -> Iterable[str]:
        return self.column.names()

    def is_tuple(self) -> bool:
        return self.column.is_tuple()

    def field(self, name: str) -> Column | None:
        inner = self.column.field(name)
        return None if inner is None else GapColumn(self.bits, inner)

    def form(self) -> str:
        return f"optional {self.column.form()}"

    def sizes(self) -> npt.NDArray[np.int64]:
        sizes = np.zeros(self.count, np.int64)
        sizes[self.bits] = self.column.sizes()
        return sizes

    def memory(self, edges: Edges) -> npt.NDArray[np.float64]:
        # An optional value that is none, or a unit, is wrapped.
        inner_kind = (OptionColumn, UnitColumn, ItemColumn, DictColumn)
        wrapped = _SOME if isinstance(untyped(self.column), inner_kind) else 0
        if len(edges) == 2:
            inner = np.array([np.count_nonzero(self.bits[:edge]) for edge in edges])
        else:
            inner = np.concatenate(([0], np.cumsum(self.bits)))[edges]
        return _times(edges, ENTRY + wrapped) + self.column.memory(inner)

    def part(self, start: int, stop: int) -> Any:
        bits = self.bits[start:stop]
        first = int(np.count_nonzero(self.bits[:start]))
        return type(self)(bits, self.column.part(first, first + int(np.count_nonzero(bits))))

    def picked(self, rows: Picks) -> Any:
        bits = self.bits[rows]
        return type(self)(bits, self.column.picked((np.cumsum(self.bits) - 1)[rows[bits]]))

    def array(self) -> npt.NDArray[Any] | None:
        inner = self.column.array()
        if inner is None or inner.ndim != 1 or np.ma.isMaskedArray(inner):
            return None
        return np.ma.MaskedArray(spread(inner, self.bits), mask=~self.bits)

    def write(self, out: Encoder, depth: int) -> None:
        _start(out, depth, 3, self.kind)
        out.write_bytes(np.packbits(self.bits, bitorder="little"), depth + 1)
        _write(self.column, out, depth + 1)


class OptionColumn(_Partial):
    """Optional values: null, or "some" value."""

    kind = "option"

    def rows(self, start: int, stop: int) -> list[Any]:
        inner = self._inner(start, stop)
        some = [Some(row) if row is None or type(row) is Some else row for row in inner]
        return self._spread(some, start, stop, None)


class PresentColumn(_Partial):
    """Optional fields of a struct: in some rows there is no such field."""

    kind = "present"

    def rows(self, start: int, stop: int) -> list[Any]:
        return self._spread(self._inner(start, stop), start, stop, ABSENT)


class GapColumn(_Partial):
    """A field of optional structs. Unlike optional values, those of the field are not wrapped in `Some`."""

    kind = "option"

    def loaded(self) -> GapColumn:
        return GapColumn(self.bits, self.column.loaded())

    def rows(self, start: int, stop: int) -> list[Any]:
        return self._spread(self._inner(start, stop), start, stop, ABSENT)

    def write(self, out: Encoder, depth: int) -> None:
        rows = self.rows(0, self.count)
        ItemColumn([None if row is ABSENT else row for row in rows]).write(out, depth)


class TypeColumn(BaseColumn):
    """Values of a named type (SPEC 7.2)."""

    def __init__(self, name: str, parameters: Sequence[int | str], column: Column, *, both: bool = False) -> None:
        """`both`: the rows are `named.Both`."""
        self.count = column.count
        self.name, self.parameters, self.column, self._both = name, tuple(parameters), column, both

    @property
    def is_known(self) -> bool:
        """Whether Python or numpy can have other values for the rows than those of the column in it."""
        return named.is_known(self.name, self.parameters)

    def rows(self, start: int, stop: int) -> list[Any]:
        rows = self.column.rows(start, stop)
        if not self.is_known:
            return rows
        numbers = self.column.values[start:stop] if isinstance(self.column, NumberColumn) else None
        found = named.values_of(self.name, self.parameters, rows, numbers)
        if not self._both:
            return found
        return [value if value is row else named.Both(value, row) for value, row in zip(found, rows, strict=True)]

    def names(self) -> Iterable[str]:
        return self.column.names()

    def is_table(self) -> bool:
        return self.column.is_table()

    def is_tuple(self) -> bool:
        return self.column.is_tuple()

    def field(self, name: str) -> Column | None:
        return self.column.field(name)

    def tensor(self) -> npt.NDArray[Any] | Raw | None:
        return self.column.tensor()

    def array(self) -> npt.NDArray[Any] | None:
        found = self.column.array()
        return found if found is None or not self.is_known else named.values_in(self.types(), found)

    def types(self) -> set[named.Type | None]:
        return {(self.name, self.parameters)} if self.is_known else self.column.types()

    def form(self) -> str:
        return named.form(self.name, self.parameters) or self.column.form()

    def sizes(self) -> npt.NDArray[np.int64]:
        return self.column.sizes()

    def memory(self, edges: Edges) -> npt.NDArray[np.float64]:
        memory = self.column.memory(edges)
        return memory + _times(edges, named.MEMORY) if self.is_known else memory

    def part(self, start: int, stop: int) -> Column:
        return self._with(self.column.part(start, stop), is_cut=stop - start < self.count)

    def picked(self, rows: Picks) -> Column:
        return self._with(self.column.picked(rows), is_cut=True)

    def _with(self, column: Column, *, is_cut: bool) -> Column:
        # In some of the rows, the names of a category can occur in another order than theirs.
        parameters = (0,) if is_cut and self.name == "category" else self.parameters
        return TypeColumn(self.name, parameters, column, both=self._both)

    def write(self, out: Encoder, depth: int) -> None:
        _start(out, depth, 4, "type")
        out.write_str(self.name, depth + 1)
        out.write_list(self.parameters, depth + 1)
        # What the type is of is a column of byte strings, and not a dict of few distinct ones.
        write = self.column.write_all if isinstance(self.column, _Strings) else self.column.write
        write(out, depth + 1)


def category(codes: npt.NDArray[Any], names: TextColumn, order: Order | None) -> Column:
    """A column of few names (SPEC 7.2). The codes number the names in the order in which they first occur."""
    column = TypeColumn("category", (0,), DictColumn(codes, names))
    return column if order is None else TypeColumn(ORDERED, order, column)


def order_of(index: str, names: Sequence[Any]) -> Order:
    """The order of the names of a category, the least first, with the type of Arrow for their numbers."""
    wrong = next(
        (name for name in names if type(name) is not str or len(name.encode(errors="replace")) > _MAX_NAME), None
    )
    if wrong is not None or None in names or len(names) > _MOST_NAMES or len({*names}) < len(names):
        text = (
            f"the order of a category: expected at most {_MOST_NAMES} distinct texts of at most {_MAX_NAME} bytes"
        )
        found = f"{len(names)} names" if wrong is None else f"the name {wrong!r:.80}"
        how = "leave the order out first, as by `cat.as_unordered()` of pandas, or make the column one of texts"
        raise Fault(Unsupported, f"{text}, found {found}: {how}")
    return (index, *names)


def untyped(column: Column) -> Column:
    """The column in one of values whose type is named."""
    while isinstance(column, TypeColumn):
        column = column.column
    return column


def _numbers_in(column: Column) -> npt.NDArray[Any] | None:
    """The numbers of a column whose rows are numbers for Python, too."""
    while isinstance(column, TypeColumn) and not column.is_known:
        column = column.column
    return column.values if isinstance(column, NumberColumn) else None


class ListColumn(BaseColumn):
    def __init__(self, lengths: Lengths, column: Column, *, numbers: bool = True, are_lists: bool = False) -> None:
        """`are_lists`: the rows are some of a column in which the lengths differ, and so no tensor."""
        self.count = lengths.count
        self.lengths, self.column = lengths, column
        #: Whether the rows are `Numbers`, if they have numbers.
        self._numbers = numbers
        self._are_lists = are_lists

    def rows(self, start: int, stop: int) -> list[Any]:
        edges = self.lengths.edges(start, stop)
        values = _numbers_in(self.column) if self._numbers else None
        if values is not None:
            # Numbers of one type in one block, as in a packed sequence.
            numbers = values.view(Numbers)
            return [numbers[a:b] for a, b in pairwise(edges)]
        first = edges[0]
        inner = self.column.rows(first, edges[-1])
        return [inner[a - first : b - first] for a, b in pairwise(edges)]

    def tensor(self) -> npt.NDArray[Any] | Raw | None:
        each = None if self._are_lists else self.lengths.same()
        inner = None if each is None else self.column.tensor()
        if inner is None or len(inner.shape) >= MAX_RANK:
            return None
        shape = (self.count, each or 0, *inner.shape[1:])
        if isinstance(inner, Raw):
            return Raw(inner.dtype, shape, inner.data)
        return inner.reshape(shape)

    def types(self) -> set[named.Type | None]:
        return self.column.types()

    def form(self) -> str:
        return f"list of {self.column.form()}"

    def sizes(self) -> npt.NDArray[np.int64]:
        ends = np.concatenate(([0], np.cumsum(self.column.sizes())))
        edges = np.concatenate(([0], np.cumsum(self.lengths.numbers())))
        return np.diff(ends[edges]) + 1

    def memory(self, edges: Edges) -> npt.NDArray[np.float64]:
        if self._numbers and _numbers_in(self.column) is not None:
            return _times(edges, ENTRY + _ARRAY)
        return _times(edges, ENTRY + _LIST) + self.column.memory(self.lengths.at(edges))

    def part(self, start: int, stop: int) -> Column:
        first, last = self.lengths.at(np.array([start, stop])).tolist()
        column = self.column.part(first, last)
        return ListColumn(self.lengths.part(start, stop), column, numbers=self._numbers)

    def picked(self, rows: Picks) -> Column:
        lengths, inner = _inner_picks(self.lengths, rows)
        are_lists = self._are_lists or self.lengths.same() is None
        return ListColumn(lengths, self.column.picked(inner), numbers=self._numbers, are_lists=are_lists)

    def write(self, out: Encoder, depth: int) -> None:
        _start(out, depth, 3, "list" if self.lengths.same() is None else "array")
        self.lengths.write(out, depth + 1)
        _write(self.column, out, depth + 1)


class TupleColumn(BaseColumn):
    def __init__(self, count: int, columns: Sequence[Column]) -> None:
        self.count = count
        self.columns = columns

    def rows(self, start: int, stop: int) -> list[Any]:
        columns = []
        for column in self.columns:
            columns.append(column.rows(start, stop))
        return list(map(list, zip(*columns, strict=True)))

    def names(self) -> Iterable[str]:
        return map(str, range(len(self.columns)))

    def is_table(self) -> bool:
        return True

    def is_tuple(self) -> bool:
        return True

    def field(self, name: str) -> Column | None:
        return dict(zip(self.names(), self.columns, strict=True)).get(name)

    def tensor(self) -> npt.NDArray[Any] | Raw | None:
        found = combined([column.tensor() for column in self.columns], lambda arrays: np.stack(arrays, axis=1))
        return None if found is None or len(found.shape) > MAX_RANK else found

    def types(self) -> set[named.Type | None]:
        return {kind for column in self.columns for kind in column.types()}

    def form(self) -> str:
        return tuple_form([column.form() for column in self.columns])

    def sizes(self) -> npt.NDArray[np.int64]:
        return _sum(self.count, self.columns)

    def memory(self, edges: Edges) -> npt.NDArray[np.float64]:
        total = _times(edges, ENTRY + _LIST)
        for column in self.columns:
            total += column.memory(edges)
        return total

    def part(self, start: int, stop: int) -> Column:
        return TupleColumn(stop - start, [column.part(start, stop) for column in self.columns])

    def picked(self, rows: Picks) -> Column:
        return TupleColumn(len(rows), [column.picked(rows) for column in self.columns])

    def joined(self) -> Column:
        """The column in its one form: as arrays, if all elements are numbers or bools of one shape (SPEC 7.1)."""
        found = _uniform(self)
        if found is None:
            return self
        dtype, shape = found
        values = _elements(self).astype(dtypes.BY_NAME[dtype].numpy)
        column: Column = BoolColumn(values) if dtype == "bool" else NumberColumn(values)
        for each in reversed(shape):
            column = ListColumn(Lengths(column.count // each, each), column)
        return column

    def write(self, out: Encoder, depth: int) -> None:
        column = self.joined()
        if column is not self:
            return column.write(out, depth)
        _start(out, depth, 2, "tuple")
        out.levels(depth + 1)
        out.out.append(items.head(items.ARRAY, len(self.columns)))
        for column in self.columns:
            _write(column, out, depth + 2)


def _uniform(column: Column) -> dtypes.Rows | None:
    """The dtype and the shape of rows that are numbers, bools, or arrays of them."""
    if not column.count:
        return None
    if isinstance(column, (NumberColumn, BoolColumn)):
        return name_of(column.values), ()
    each, inner = None, None
    if isinstance(column, ListColumn):
        each = column.lengths.same()
        inner = None if each is None else _uniform(column.column)
    elif isinstance(column, TupleColumn):
        each, inner = len(column.columns), dtypes.common(map(_uniform, column.columns))
    return None if each is None or inner is None else (inner[0], (each, *inner[1]))


def _elements(column: Any) -> npt.NDArray[Any]:
    """All elements of a column that is uniform."""
    if isinstance(column, ListColumn):
        return _elements(column.column)
    if isinstance(column, TupleColumn):
        parts = [_elements(inner).reshape(column.count, -1) for inner in column.columns]
        return np.stack(parts, axis=1).reshape(-1)
    values: npt.NDArray[Any] = column.values
    return values


def name_of(tensor: npt.NDArray[Any] | Raw) -> str:
    """The name of a dtype that the format has."""
    if isinstance(tensor, Raw):
        return tensor.dtype
    known = dtypes.of_numpy(tensor.dtype)
    assert known is not None
    return known.name


def combined(
    tensors: Sequence[npt.NDArray[Any] | Raw | None], join: Callable[[list[npt.NDArray[Any]]], npt.NDArray[Any]]
) -> npt.NDArray[Any] | Raw | None:
    """Tensors as one, whose dtype holds all elements; `None` if SPEC Annex A does not say that they are one."""
    found = dtypes.common(None if tensor is None else (name_of(tensor), tensor.shape[1:]) for tensor in tensors)
    if found is None:
        return None
    dtype, shape = found
    known = dtypes.BY_NAME.get(dtype)
    arrays = []
    for tensor in tensors:
        if isinstance(tensor, Raw):
            rows = tensor.shape[0]
            arrays.append(tensor.data.reshape(rows, tensor.data.nbytes // max(rows, 1)))
        elif tensor is not None and known is not None:
            arrays.append(tensor.astype(known.numpy, copy=False))
    joined = join(arrays)
    return Raw(dtype, (*joined.shape[:-1], *shape), joined) if isinstance(tensors[0], Raw) else joined


class MapColumn(BaseColumn):
    def __init__(self, lengths: Lengths, keys: Column, values: Column) -> None:
        self.count = lengths.count
        self.lengths, self.keys, self.values = lengths, keys, values

    def rows(self, start: int, stop: int) -> list[Any]:
        edges = self.lengths.edges(start, stop)
        first = edges[0]
        keys = self.keys.rows(first, edges[-1])
        if not isinstance(self.keys, (TextColumn, NumberColumn)):
            keys = [_hashable(key) for key in keys]
        values = self.values.rows(first, edges[-1])
        maps = []
        for a, b in pairwise(edges):
            entries = dict(zip(keys[a - first : b - first], values[a - first : b - first], strict=True))
            if len(entries) != b - a:
                raise Fault(Damaged, "a map has the same key twice")
            maps.append(entries)
        return maps

    def form(self) -> str:
        return "map"

    def sizes(self) -> npt.NDArray[np.int64]:
        return ListColumn(self.lengths, self.keys).sizes() + ListColumn(self.lengths, self.values).sizes()

    def memory(self, edges: Edges) -> npt.NDArray[np.float64]:
        entries = self.lengths.at(edges)
        # Keys can be copied, so that they are hashable.
        total = _times(edges, ENTRY + _LIST) + _times(entries, _PAIR)
        total += 2 * self.keys.memory(entries) + self.values.memory(entries)
        total += _MAP * np.minimum(np.diff(edges), np.diff(entries))
        return total

    def part(self, start: int, stop: int) -> Column:
        first, last = self.lengths.at(np.array([start, stop])).tolist()
        lengths = self.lengths.part(start, stop)
        return MapColumn(lengths, self.keys.part(first, last), self.values.part(first, last))

    def picked(self, rows: Picks) -> Column:
        lengths, inner = _inner_picks(self.lengths, rows)
        return MapColumn(lengths, self.keys.picked(inner), self.values.picked(inner))

    def write(self, out: Encoder, depth: int) -> None:
        _start(out, depth, 4, "map")
        self.lengths.write(out, depth + 1)
        _write(self.keys, out, depth + 1)
        _write(self.values, out, depth + 1)


def elements_in(column: Column) -> int:
    """How many elements the lists and maps in the rows have, and those in each other."""
    if isinstance(column, (_Partial, DictColumn, TypeColumn)):
        return elements_in(column.column)
    if isinstance(column, ListColumn):
        return column.lengths.total + elements_in(column.column)
    if isinstance(column, MapColumn):
        return column.lengths.total + elements_in(column.keys) + elements_in(column.values)
    inner: Iterable[Column | None] = ()
    if isinstance(column, StructColumn):
        inner = column.fields.values()
    elif isinstance(column, (TupleColumn, EnumColumn)):
        inner = column.columns
    return sum(elements_in(column) for column in inner if column is not None)


def _inner_picks(lengths: Lengths, rows: Picks) -> tuple[Lengths, npt.NDArray[np.int64]]:
    """The lengths of some rows, and the numbers of the elements in them."""
    found, starts = lengths.picked(rows)
    return found, np.repeat(starts - found.offsets()[:-1], found.numbers()) + np.arange(found.total)


def _hashable(key: Any) -> Any:
    key = frozen(key)
    try:
        hash(key)
    except TypeError:
        raise Fault(Mismatch, f"cannot use a {type(key).__name__} as a key of a Python dict") from None
    return key


class EnumColumn(BaseColumn):
    """Variants of enums. A variant without a column is a unit variant, that is, its name alone."""

    def __init__(self, codes: npt.NDArray[Any], names: Sequence[str], columns: Sequence[Column | None]) -> None:
        self.count = len(codes)
        self.codes, self.variants, self.columns = codes, names, columns

    def rows(self, start: int, stop: int) -> list[Any]:
        codes = self.codes[start:stop]
        before = np.bincount(self.codes[:start], minlength=len(self.variants))
        counts = np.bincount(codes, minlength=len(self.variants))
        contents: dict[int, Iterator[Any]] = {}
        for code in np.flatnonzero(counts).tolist():
            column = self.columns[code]
            if column is not None:
                first = int(before[code])
                contents[code] = iter(column.rows(first, first + int(counts[code])))
        names = self.variants
        if not contents:
            return [names[code] for code in codes.tolist()]
        return [
            {names[code]: next(contents[code])} if code in contents else names[code] for code in codes.tolist()
        ]

    def names(self) -> Iterable[str]:
        # A variant with a column is like a field that rows of other variants do not have.
        return [name for name, column in zip(self.variants, self.columns, strict=True) if column is not None]

    def field(self, name: str) -> Column | None:
        if name not in self.names():
            return None
        code = list(self.variants).index(name)
        column = self.columns[code]
        return None if column is None else GapColumn(self.codes == code, column)

    def form(self) -> str:
        return "enum"

    def sizes(self) -> npt.NDArray[np.int64]:
        sizes = np.ones(self.count, np.int64)
        for code, column in enumerate(self.columns):
            if column is not None:
                sizes[self.codes == code] += column.sizes()
        return sizes

    def memory(self, edges: Edges) -> npt.NDArray[np.float64]:
        codes = self.codes[edges[0] : edges[-1]]
        before = np.bincount(self.codes[: edges[0]], minlength=len(self.variants))
        counts = np.bincount(codes, minlength=len(self.variants))
        # The rows of each variant, one variant after the other.
        order = np.argsort(codes, kind="stable")
        ends = np.cumsum(counts).tolist()
        each = np.full(len(codes), float(ENTRY))
        for code in np.flatnonzero(counts).tolist():
            column = self.columns[code]
            if column is not None:
                inner = int(before[code]) + np.arange(int(counts[code]) + 1)
                each[order[ends[code] - int(counts[code]) : ends[code]]] += _MAP + column.memory(inner)
        return _sums(each, edges)

    def part(self, start: int, stop: int) -> Column:
        codes = self.codes[start:stop]
        before = np.bincount(self.codes[:start], minlength=len(self.variants)).tolist()
        counts = np.bincount(codes, minlength=len(self.variants)).tolist()
        columns = [
            None if column is None else column.part(first, first + count)
            for column, first, count in zip(self.columns, before, counts, strict=True)
        ]
        return EnumColumn(codes, self.variants, columns)

    def picked(self, rows: Picks) -> Column:
        codes = self.codes[rows]
        columns = [
            None if column is None else column.picked((np.cumsum(self.codes == code) - 1)[rows[codes == code]])
            for code, column in enumerate(self.columns)
        ]
        return EnumColumn(codes, self.variants, columns)

    def write(self, out: Encoder, depth: int) -> None:
        has_columns = any(column is not None for column in self.columns)
        _start(out, depth, 4 if has_columns else 3, "enum")
        NumberColumn(self.codes).write(out, depth + 1)
        out.write_list(list(self.variants), depth + 1)
        if has_columns:
            out.levels(depth + 1)
            out.out.append(items.head(items.ARRAY, len(self.columns)))
            for column in self.columns:
                if column is None:
                    out.out.append(items.NULL)
                else:
                    _write(column, out, depth + 2)


class ItemColumn(BaseColumn):
    """Any values, each written as an item of its own (`rows` in the format)."""

    def __init__(self, values: list[Any], *, copied: bool = False) -> None:
        """`copied`: whether the rows are copies, because they are in a dict."""
        self.count = len(values)
        self._values, self._copied = values, copied

    def rows(self, start: int, stop: int) -> list[Any]:
        return self._values[start:stop]

    def names(self) -> Iterable[str]:
        found: dict[str, None] = {}
        for value in self._values:
            if isinstance(value, dict):
                found.update((name, None) for name in value if type(name) is str)
        return found

    def field(self, name: str) -> Column | None:
        values = [value.get(name, ABSENT) if isinstance(value, dict) else ABSENT for value in self._values]
        return None if all(value is ABSENT for value in values) else type(self)(values)

    def form(self) -> str:
        return "any"

    def sizes(self) -> npt.NDArray[np.int64]:
        return np.fromiter(map(_size_of, self._values), np.int64, self.count)

    def memory(self, edges: Edges) -> npt.NDArray[np.float64]:
        # The values exist already, unless they are copied.
        copies = _ITEM * self.sizes()[edges[0] : edges[-1]] if self._copied else np.zeros(0)
        return _times(edges, ENTRY) + (_sums(copies, edges) if self._copied else 0.0)

    def part(self, start: int, stop: int) -> Column:
        return type(self)(self._values[start:stop])

    def picked(self, rows: Picks) -> Column:
        return type(self)([self._values[row] for row in rows.tolist()])

    def write(self, out: Encoder, depth: int) -> None:
        _start(out, depth, 2, "rows")
        with out.without_references():
            out.write_list(self._values, depth + 1)


def spread(values: npt.NDArray[Any], bits: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """Values in the rows whose bits are set; the other rows are zero."""
    found = np.zeros((len(bits), *values.shape[1:]), values.dtype)
    # Faster than assigning by the bits.
    found[np.flatnonzero(bits)] = values
    return found


def form_of(dtype: str, shape: Sequence[int]) -> str:
    """A description of tensors of one dtype and shape."""
    return f"{dtype}{list(shape)}" if shape else dtype


def tuple_form(forms: Sequence[str]) -> str:
    """A description of tuples whose elements have these descriptions."""
    if len(forms) > 1 and len({*forms}) == 1:
        return f"tuple of {len(forms)} {forms[0]}"
    return f"tuple of {', '.join(forms) or 'nothing'}"


def _form_of(values: npt.NDArray[Any]) -> str:
    return form_of(name_of(values), values.shape[1:])


def memory_of(column: Column, start: int, stop: int) -> int:
    """How many bytes some rows take as objects of Python, at most."""
    return int(column.memory(np.array([start, stop]))[0])


def _times(edges: Edges, each: int) -> npt.NDArray[np.float64]:
    # Lengths and what a row takes can be so large that only a float holds their product.
    return np.diff(edges) * float(each)


def _sums(values: npt.NDArray[Any], edges: Edges) -> npt.NDArray[np.float64]:
    """The sums of values from each edge to the next. The first value is at the first edge."""
    if len(edges) == 2:
        return np.array([values.sum(dtype=np.float64)])
    sums = np.concatenate(([0.0], np.cumsum(values, dtype=np.float64)))
    found: npt.NDArray[np.float64] = np.diff(sums[edges - edges[0]])
    return found


def _sum(count: int, columns: Iterable[Column]) -> npt.NDArray[np.int64]:
    sizes = np.zeros(count, np.int64)
    for column in columns:
        sizes += column.sizes()
    return sizes


def _size_of(value: Any) -> int:
    """About how many bytes a value takes."""
    if isinstance(value, (str, bytes, bytearray)):
        return len(value) + 1
    if isinstance(value, Mapping):
        return 1 + sum(map(_size_of, chain(value, value.values())))
    if isinstance(value, (list, tuple)):
        return 1 + sum(map(_size_of, value))
    size = value.data.nbytes if isinstance(value, Raw) else getattr(value, "nbytes", 8)
    return size if type(size) is int else 8


def narrowed(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Integers in the narrowest type that holds all of them."""
    low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    return numbers.astype(integer_type(low, high))


def integer_type(low: int, high: int) -> str | None:
    """The narrowest type for integers from `low` to `high`; `None` if there is none."""
    kind = "i" if low < 0 else "u"
    for width in (1, 2, 4, 8):
        limits = np.iinfo(f"{kind}{width}")
        if limits.min <= low and high <= limits.max:
            return f"<{kind}{width}"
    return None


def _write(column: Column, out: Encoder, depth: int) -> None:
    # Nothing says what rows would be that are not there.
    (column if column.count else UnitColumn(0)).write(out, depth)


def _start(out: Encoder, depth: int, length: int, kind: str) -> None:
    out.levels(depth)
    out.out += (items.head(items.ARRAY, length), items.text(kind))


def _bytes_of(values: npt.NDArray[Any]) -> dtypes.Payload:
    if values.dtype.kind == "b":
        # A bool array can be a view of other bytes. Everything but 0 counts as true.
        values = values.view(np.uint8) != 0
    return np.ascontiguousarray(dtypes.little_endian(values)).reshape(-1).view(np.uint8)
