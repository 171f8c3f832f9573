"""Makes columns of the data of other libraries, by the Arrow C data interface and its PyCapsules.

pyarrow, polars, duckdb and others have it. What is read is copied, and the memory is given back to the library.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from .columns import (
    BoolColumn,
    BytesColumn,
    Column,
    Lengths,
    ListColumn,
    MapColumn,
    NumberColumn,
    OptionColumn,
    PresentColumn,
    StructColumn,
    TextColumn,
    TypeColumn,
    UnitColumn,
    category,
    order_of,
    ordered,
)
from .errors import Fault, Unsupported

_Rows = npt.NDArray[np.int64]


class _Schema(ctypes.Structure):
    """`ArrowSchema`: a type."""


_Schema._fields_ = (
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.POINTER(_Schema)),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
)


class _Array(ctypes.Structure):
    """`ArrowArray`: values of a type."""


_Array._fields_ = (
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.POINTER(_Array)),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
)


class _Stream(ctypes.Structure):
    """`ArrowArrayStream`: arrays of one type, one after the other."""

    _fields_ = (
        ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Schema))),
        ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Array))),
        ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


_pointer: Any = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)

#: numpy's dtypes for the formats of numbers.
_NUMBERS = dict(
    zip("cCsSiIlLefg", ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"), strict=True)
)
#: The types of the numbers of names in a dictionary, by their formats.
_INDICES = {format: np.dtype(dtype).name for format, dtype in _NUMBERS.items()}
#: The units of times, by their letter in the format.
_UNITS = {"s": "s", "m": "ms", "u": "us", "n": "ns"}
_DAY = 86_400_000
#: The most bytes of the name of a time zone, and the most digits of a decimal in an `i64`.
_MAX_ZONE, _MOST_DIGITS = 64, 18
#: The bit of the flags that says that a dictionary has an order.
_ORDERED = 1
#: The types without a place in the format, by the start of their formats.
_OTHERS = {
    "ti": "intervals",
    "+r": "run-end encoded values",
    "+u": "unions",
}


def is_arrow(value: Any) -> bool:
    """Whether a value has the interface."""
    return not isinstance(value, type) and (
        hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")
    )


def batches(value: Any) -> Iterator[tuple[int, Callable[[int, int], Column]]]:
    """The arrays of a value: for each its length, and what makes a column of some of its rows.

    The latter can be used until the next array is asked for.
    """
    if hasattr(value, "__arrow_c_stream__"):
        yield from _streamed(value.__arrow_c_stream__())
        return
    schema, array = value.__arrow_c_array__()
    held = _Schema.from_address(_pointer(schema, b"arrow_schema"))
    yield _batch(held, _Array.from_address(_pointer(array, b"arrow_array")))


def _streamed(capsule: Any) -> Iterator[tuple[int, Callable[[int, int], Column]]]:
    at = _pointer(capsule, b"arrow_array_stream")
    stream = _Stream.from_address(at)

    def check(code: int) -> None:
        if code:
            text = stream.get_last_error(at) or b"no reason is given"
            raise Fault(Unsupported, f"cannot read Arrow data: {text.decode(errors='replace')}")

    schema = _Schema()
    check(stream.get_schema(at, schema))
    with _released(schema):
        while True:
            array = _Array()
            check(stream.get_next(at, array))
            if not array.release:
                return
            with _released(array):
                yield _batch(schema, array)


@contextmanager
def _released(held: _Schema | _Array) -> Iterator[None]:
    """Gives memory back at the end of a block."""
    try:
        yield
    finally:
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(held.release)(ctypes.addressof(held))


def _batch(schema: _Schema, array: _Array) -> tuple[int, Callable[[int, int], Column]]:
    return array.length, lambda start, stop: _column(schema, array, np.arange(start, stop))


def _column(schema: _Schema, array: _Array, rows: _Rows) -> Column:
    """The column of some of the rows of an array."""
    form = schema.format.decode()
    if schema.dictionary:
        codes = _numbers(array, _NUMBERS[form], rows)
        return _with_gaps(
            array,
            rows,
            lambda there: _coded(schema, array, codes[there].astype(np.int64)),
        )
    if form == "n":
        return UnitColumn(len(rows))
    return _with_gaps(array, rows, lambda there: _present(schema, form, array, rows[there]))


def _with_gaps(array: _Array, rows: _Rows, make: Callable[[Any], Column]) -> Column:
    """The column that `make` makes of the rows that are not null."""
    if not array.null_count or not array.buffers[0]:
        return make(slice(None))
    there = _bits(array, 0, rows)
    return make(slice(None)) if there.all() else OptionColumn(there, make(there))


def _present(schema: _Schema, form: str, array: _Array, rows: _Rows) -> Column:
    """The column of rows that are not null."""
    if form in _NUMBERS:
        return NumberColumn(_numbers(array, _NUMBERS[form], rows))
    if form == "b":
        return BoolColumn(_bits(array, 1, rows))
    if form == "+s":
        return _struct(schema, array, rows)
    typed = _typed(schema, form, array, rows)
    if typed is not None:
        return typed
    if form in ("u", "U", "vu"):
        return _texts(*_bytes(array, form, rows))
    if form in ("z", "Z", "vz") or form.startswith("w:"):
        return BytesColumn(*_bytes(array, form, rows))
    if form in ("+l", "+L", "+vl", "+vL", "+m") or form.startswith("+w:"):
        return _list(schema, form, array, rows)
    known = next((name for start, name in _OTHERS.items() if form.startswith(start)), f"the type {form!r:.40}")
    raise Fault(Unsupported, f"cannot write {known} of Arrow: cast them to numbers or text first")


def _coded(schema: _Schema, array: _Array, codes: _Rows) -> Column:
    """The column of rows of a dictionary. Texts are a category."""
    names, entries = schema.dictionary[0], array.dictionary[0]
    order = None
    if schema.flags & _ORDERED:
        every = _column(names, entries, np.arange(entries.length))
        order = order_of(_INDICES[schema.format.decode()], every.rows(0, every.count))
    distinct, used = ordered(codes)
    column = _column(names, entries, used)
    return category(distinct, column, order) if isinstance(column, TextColumn) else _column(names, entries, codes)


def _typed(schema: _Schema, form: str, array: _Array, rows: _Rows) -> Column | None:
    """The column of rows whose type the format names (SPEC 7.2); `None` if it names no such type."""
    unit = _UNITS.get(form[2:3], "")
    if form.startswith("d:"):
        return _decimals(form[2:], array, rows)
    if form == "w:16":
        is_uuid = _metadata(schema, b"ARROW:extension:name") == b"arrow.uuid"
        return TypeColumn("uuid", (), BytesColumn(*_bytes(array, form, rows))) if is_uuid else None
    if form == "tdD":
        return TypeColumn("date", (), NumberColumn(_numbers(array, "i4", rows)))
    if form == "tdm":
        days, rest = np.divmod(_numbers(array, "i8", rows), _DAY)
        if rest.any() or (len(days) and int(np.abs(days).max()) >> 31):
            raise Fault(Unsupported, "a date in milliseconds that is no whole day: cast it to a timestamp first")
        return TypeColumn("date", (), NumberColumn(days.astype("<i4")))
    name = {"ts": "timestamp", "tt": "time", "tD": "duration"}.get(form[:2])
    if name is None or not unit:
        return None
    zone = form[4:]
    if len(zone.encode()) > _MAX_ZONE:
        raise Fault(
            Unsupported, f"the name of a time zone: expected at most {_MAX_ZONE} bytes, found {zone!r:.80}"
        )
    numbers = _numbers(array, "i4" if name == "time" and unit in ("s", "ms") else "i8", rows)
    return TypeColumn(name, (unit, zone) if name == "timestamp" else (unit,), NumberColumn(numbers))


def _decimals(form: str, array: _Array, rows: _Rows) -> Column:
    precision, scale, *bits = map(int, form.split(","))
    width = (bits[0] if bits else 128) // 8
    content = _numbers(array, f"V{width}", rows)
    column: Column
    if width <= 8:
        column = NumberColumn(content.view(f"<i{width}").astype("<i8"))
    else:
        words = content.view("<i8").reshape(len(rows), -1)
        if precision <= _MOST_DIGITS and (words[:, 1:] == words[:, :1] >> 63).all():
            column = NumberColumn(np.ascontiguousarray(words[:, 0]))
        else:
            big_endian = words.view(np.uint8)[:, ::-1]
            column = BytesColumn(Lengths(len(rows), width), big_endian.tobytes())
    return TypeColumn("decimal", (precision, scale), column)


def _metadata(schema: _Schema, key: bytes) -> bytes | None:
    """An entry of the metadata of a field."""
    at = schema.metadata
    if not at:
        return None

    def number() -> int:
        nonlocal at
        at += 4
        return ctypes.c_int32.from_address(at - 4).value

    def text() -> bytes:
        nonlocal at
        length = number()
        at += length
        return ctypes.string_at(at - length, length)

    found = {text(): text() for _ in range(number())}
    return found.get(key)


def _texts(lengths: Lengths, data: bytes) -> Column:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise Fault(Unsupported, f"text is not valid Unicode: {error}") from None
    return TextColumn(lengths, data)


def _struct(schema: _Schema, array: _Array, rows: _Rows) -> Column:
    fields: dict[str, Column] = {}
    for index in range(schema.n_children):
        child = schema.children[index][0]
        name = (child.name or b"").decode()
        if name in fields:
            raise Fault(Unsupported, f"two columns have the name {name!r:.80}")
        try:
            column = _column(child, array.children[index][0], rows + array.offset)
        except Fault as fault:
            raise fault.at(2 * index + 1, name) from None
        fields[name] = _missing(column) if _metadata(child, b"tenarc.null") == b"missing" else column
    return StructColumn(len(rows), fields)


def _missing(column: Column) -> Column:
    """The same column, in which nulls are fields that are missing. The metadata of the field say so."""
    if isinstance(column, UnitColumn):
        return PresentColumn(np.zeros(column.count, np.bool_), UnitColumn(0))
    return PresentColumn(column.bits, column.column) if isinstance(column, OptionColumn) else column


def _list(schema: _Schema, form: str, array: _Array, rows: _Rows) -> Column:
    if form.startswith("+w:"):
        each = int(form[3:])
        starts, lengths = (rows + array.offset) * each, Lengths(len(rows), each)
        counts = np.full(len(rows), each)
    else:
        starts, counts = _places(array, form, rows)
        lengths = Lengths(len(rows), None, counts)
    ends = np.cumsum(counts)
    # The numbers of the elements, one list after the other.
    inner = np.arange(lengths.total) + np.repeat(starts - ends + counts, counts)
    child, elements = schema.children[0][0], array.children[0][0]
    if form != "+m":
        return ListColumn(lengths, _column(child, elements, inner))
    keys, values = (
        _column(child.children[n][0], elements.children[n][0], inner + elements.offset) for n in range(2)
    )
    found = MapColumn(lengths, keys, values)
    try:
        found.rows(0, found.count)
    except Fault as fault:
        raise Fault(Unsupported, f"a map of Arrow: {fault.message}") from None
    return found


def _places(array: _Array, form: str, rows: _Rows) -> tuple[_Rows, _Rows]:
    """Where the rows start in the data, and their lengths."""
    if form.startswith("+v"):
        width = "i4" if form == "+vl" else "i8"
        found = (_numbers(array, width, rows, buffer) for buffer in (1, 2))
        starts, counts = (numbers.astype(np.int64) for numbers in found)
        return starts, counts
    width = "i4" if form in ("u", "z", "+l", "+m") else "i8"
    starts = _numbers(array, width, rows).astype(np.int64)
    return starts, _numbers(array, width, rows + 1).astype(np.int64) - starts


def _bytes(array: _Array, form: str, rows: _Rows) -> tuple[Lengths, bytes]:
    """The lengths of texts or byte strings, and all of them joined."""
    if form.startswith("w:"):
        each = int(form[2:])
        content = _numbers(array, f"V{each}", rows).tobytes() if each else b""
        return Lengths(len(rows), None, np.full(len(rows), each)), content
    if form.startswith("v"):
        pieces = _viewed(array, rows)
        return Lengths.of(pieces), b"".join(pieces)
    starts, counts = _places(array, form, rows)
    lengths = Lengths(len(rows), None, counts)
    at = array.buffers[2]
    if not len(rows) or not lengths.total:
        return lengths, b""
    if (starts[1:] == (starts + counts)[:-1]).all():
        return lengths, ctypes.string_at(at + int(starts[0]), lengths.total)
    places = zip(starts.tolist(), counts.tolist(), strict=True)
    return lengths, b"".join(ctypes.string_at(at + start, count) for start, count in places)


def _viewed(array: _Array, rows: _Rows) -> list[bytes]:
    """Texts or byte strings of which each is in its view, or in one of several buffers."""
    views = _numbers(array, [("length", "<i4"), ("start", "V4"), ("buffer", "<i4"), ("offset", "<i4")], rows)
    pieces = []
    for view in views:
        length = int(view["length"])
        if length <= 12:
            pieces.append(view.tobytes()[4 : 4 + length])
        else:
            pieces.append(ctypes.string_at(array.buffers[2 + int(view["buffer"])] + int(view["offset"]), length))
    return pieces


def _numbers(array: _Array, dtype: Any, rows: _Rows, buffer: int = 1) -> npt.NDArray[Any]:
    """A copy of elements of a buffer."""
    kind = np.dtype(dtype)
    if not len(rows):
        return np.empty(0, kind)
    first, last = int(rows.min()), int(rows.max()) + 1
    at = array.buffers[buffer] + (array.offset + first) * kind.itemsize
    block = (ctypes.c_char * ((last - first) * kind.itemsize)).from_address(at)
    return np.frombuffer(block, kind)[rows - first]


def _bits(array: _Array, buffer: int, rows: _Rows) -> npt.NDArray[np.bool_]:
    if not len(rows):
        return np.empty(0, np.bool_)
    rows = rows + array.offset
    first, last = int(rows.min()) // 8, int(rows.max()) // 8 + 1
    block = ctypes.string_at(array.buffers[buffer] + first, last - first)
    bits = np.unpackbits(np.frombuffer(block, np.uint8), bitorder="little").view(np.bool_)
    return bits[rows - 8 * first]
