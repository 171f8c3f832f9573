"""Values of the named types of SPEC 7.2, as values of Python and numpy.

Not of `category`, which is only about how texts are stored.
"""

from __future__ import annotations

import datetime
import re
import uuid
import zoneinfo
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .errors import Fault, Unsupported, escaped

#: The types of Python's values that have a named type.
KINDS = (
    datetime.date,
    datetime.time,
    datetime.timedelta,
    Decimal,
    uuid.UUID,
    np.datetime64,
    np.timedelta64,
)
#: About how many bytes a value takes as an object of Python.
MEMORY = 128
#: The name and the parameters of a type.
Type = tuple[str, tuple[Any, ...]]
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
# The units of numpy that the format does not have, and those that take their place.
_DATES = frozenset(("Y", "M", "W", "D"))
_SECONDS = frozenset(("W", "D", "h", "m"))
_DAY = datetime.timedelta(days=1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_EPOCH = datetime.datetime(1970, 1, 1)
_NOT_A_TIME = -(1 << 63)
# The types of arrays of numpy that no type of the format holds, and the letter of their dtypes. The parameter
# is the unit.
_OF_NUMPY = {"numpy.org/datetime64": "M", "numpy.org/timedelta64": "m"}
_UNIT = re.compile(r"([1-9]\d{0,8})?([YMWDhms]|[munpfa]s)|generic")
# The most digits, bytes of an integer, and bytes of the name of a zone.
_MAX_DIGITS, _MAX_BYTES, _MAX_ZONE = 76, 32, 64
_UTC = datetime.timezone.utc


class Typed(NamedTuple):
    """A value of the format with the name and the parameters of its type."""

    name: str
    parameters: tuple[int | str, ...]
    item: Any


class Both(NamedTuple):
    """A value that was read, and its item: until it is known which one is asked for."""

    value: Any
    item: Any


# Writing


def typed(value: Any) -> Typed | None:
    """The value of the format for one of `KINDS`, or for an array of times; `None` if it stands for no value."""
    if isinstance(value, (np.datetime64, np.timedelta64)):
        found = None if np.isnat(value) else _of_array(np.asarray(value))
        return found and found._replace(item=int(found.item))
    if isinstance(value, np.ndarray):
        return _exact(value)
    if isinstance(value, uuid.UUID):
        return Typed("uuid", (), value.bytes)
    if isinstance(value, Decimal):
        return _of_decimal(value)
    if value != value:
        # The missing time of pandas is a `datetime` of Python.
        return None
    if isinstance(value, datetime.datetime):
        return _of_datetime(value)
    if isinstance(value, datetime.date):
        return Typed("date", (), value.toordinal() - _EPOCH.toordinal())
    if isinstance(value, datetime.time):
        if value.tzinfo is not None:
            raise Fault(Unsupported, "cannot write a time of day with a time zone: the format has none")
        minutes = value.hour * 60 + value.minute
        return Typed("time", ("us",), (minutes * 60 + value.second) * 10**6 + value.microsecond)
    return _of_duration(value)


def _of_duration(span: datetime.timedelta) -> Typed:
    """A number of microseconds, or of seconds if there are too many of these."""
    count = span // _MICROSECOND
    # Those of pandas have nanoseconds.
    more = getattr(span, "nanoseconds", 0)
    if more:
        return Typed("duration", ("ns",), count * 1000 + more)
    if -(1 << 63) <= count < 1 << 63:
        return Typed("duration", ("us",), count)
    if count % 10**6:
        raise Fault(Unsupported, "a duration whose microseconds do not fit 64 bits")
    return Typed("duration", ("s",), count // 10**6)


def _of_datetime(value: datetime.datetime) -> Typed:
    zone, offset = zone_of(value), value.utcoffset()
    # A subclass can have another subtraction.
    plain = datetime.datetime.combine(datetime.date(value.year, value.month, value.day), value.time())
    count = (plain - _EPOCH - (offset or datetime.timedelta())) // _MICROSECOND
    # Those of pandas have nanoseconds.
    more = getattr(value, "nanosecond", 0)
    if more:
        return Typed("timestamp", ("ns", zone), count * 1000 + more)
    return Typed("timestamp", ("us", zone), count)


def zone_of(value: datetime.datetime) -> str:
    """The name of the time zone of a time, or its offset; empty if it has none."""
    offset = value.utcoffset()
    if offset is None:
        return ""
    zone: Any = value.tzinfo
    name = "UTC" if zone is _UTC else getattr(zone, "key", None) or getattr(zone, "zone", None)
    if isinstance(name, str) and 0 < len(name.encode()) <= _MAX_ZONE:
        return name
    minutes, rest = divmod(offset, datetime.timedelta(minutes=1))
    if rest:
        raise Fault(Unsupported, f"a time zone without a name: expected an offset in minutes, found {offset}")
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def _of_decimal(value: Decimal) -> Typed:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise Fault(Unsupported, f"cannot write the decimal {value}: the format has finite ones")
    if len(digits) > _MAX_DIGITS or abs(exponent) >> 31:
        raise Fault(Unsupported, f"a decimal: expected at most {_MAX_DIGITS} digits, found {len(digits)}")
    number = int("".join(map(str, digits)))
    return Typed("decimal", (_precision(len(digits), -exponent), -exponent), -number if sign else number)


def _precision(digits: int, scale: int) -> int:
    # Some readers of Arrow want at least one digit for each place behind the point.
    return min(max(digits, scale), _MAX_DIGITS)


def _exact(array: npt.NDArray[Any]) -> Typed:
    """An array of times or durations that is read again with its dtype."""
    unit, count = np.datetime_data(array.dtype)
    try:
        found = _of_array(array)
    except Fault:
        found = None
    if found is not None and array_of(*found).dtype == array.dtype.newbyteorder("<"):
        return found
    [name] = (name for name, kind in _OF_NUMPY.items() if kind == array.dtype.kind)
    numbers = array.astype(array.dtype.newbyteorder("<"), copy=False).view("<i8")
    return Typed(name, (unit if count == 1 else f"{count}{unit}",), numbers)


def times_in(array: npt.NDArray[Any]) -> Typed:
    """A column of times or durations, with a type of the format if one holds the values, maybe in another unit."""
    try:
        return _of_array(array)
    except Fault:
        return _exact(array)


def _of_array(array: npt.NDArray[Any]) -> Typed:
    """An array of times or durations as integers of a type of the format. `Fault` if none holds the values."""
    unit, count = np.datetime_data(array.dtype)
    is_time = array.dtype.kind == "M"
    wanted = unit
    if is_time and unit in _DATES:
        wanted = "D"
    elif unit in _SECONDS:
        wanted = "s"
    if wanted not in _PER_SECOND and not (is_time and wanted == "D"):
        raise Fault(Unsupported, f"cannot write numpy's dtype {array.dtype}: the units are s, ms, us and ns")
    if np.isnat(array).any():
        raise Fault(Unsupported, "cannot write an array in which times are missing as a type of the format")
    base = np.dtype(f"<{array.dtype.kind}8[{wanted}]")
    converted = array.astype(base, copy=False)
    if (wanted, 1) != (unit, count) and (converted.astype(array.dtype) != array).any():
        raise Fault(Unsupported, f"cannot write numpy's dtype {array.dtype}: its values do not fit {base}")
    numbers = converted.view("<i8")
    if wanted != "D":
        return Typed("timestamp", (wanted, ""), numbers) if is_time else Typed("duration", (wanted,), numbers)
    days = numbers.astype("<i4")
    if (days != numbers).any():
        raise Fault(Unsupported, "dates that are more than 2^31 days from 1970")
    return Typed("date", (), days)


def column_of(kind: type, values: list[Any]) -> Typed | None:
    """The numbers or byte strings of values of one kind, as an array or list; `None` if no type fits all."""
    if issubclass(kind, uuid.UUID):
        return Typed("uuid", (), [value.bytes for value in values])
    if issubclass(kind, Decimal):
        return _of_decimals(values)
    found = [typed(value) for value in values]
    first = found[0]
    if first is None or any(one is None or one[:2] != first[:2] for one in found):
        return None
    dtype = "<i4" if first.name == "date" else "<i8"
    try:
        return first._replace(item=np.array([one.item for one in found if one is not None], dtype))
    except OverflowError:
        return None


def _of_decimals(values: list[Decimal]) -> Typed | None:
    """Decimals with one scale, which is the greatest."""
    found = [_of_decimal(value) for value in values]
    scale = max(int(one.parameters[1]) for one in found)
    if any(scale - int(one.parameters[1]) > _MAX_DIGITS for one in found):
        return None
    numbers = [one.item * 10 ** (scale - int(one.parameters[1])) for one in found]
    precision = max(len(str(abs(number))) for number in numbers)
    if precision > _MAX_DIGITS:
        return None
    parameters = (_precision(precision, scale), scale)
    if all(-(1 << 63) <= number < 1 << 63 for number in numbers):
        return Typed("decimal", parameters, np.array(numbers, "<i8"))
    width = max(number.bit_length() for number in numbers) // 8 + 1
    return Typed("decimal", parameters, [number.to_bytes(width, "big", signed=True) for number in numbers])


def in_units(name: str, parameters: Sequence[Any], value: Any) -> Any:
    """A value as one of a type, to compare it with items: a number or bytes; `None` if it has another type."""
    found = typed(value)
    if found is None or found.name != name or not is_known(name, tuple(parameters)):
        return None
    if name == "timestamp" and bool(parameters[1]) != bool(found.parameters[1]):
        # One of them is by a clock that is not known.
        return None
    if name == "decimal":
        shift = parameters[1] - int(found.parameters[1])
        return None if abs(shift) > 2 * _MAX_DIGITS else found.item * Fraction(10) ** shift
    if name in ("date", "uuid"):
        return found.item
    return Fraction(found.item * _PER_SECOND[parameters[0]], _PER_SECOND[str(found.parameters[0])])


# Reading


def is_known(name: str, parameters: tuple[Any, ...]) -> bool:
    """Whether Python or numpy can have other values for a type than the items."""
    return _maker(name, parameters) is not None


def form(name: Any, parameters: Any) -> str | None:
    """A description of values of a type, such as `timestamp[us, UTC]`; `None` if it is not known here."""
    if not isinstance(parameters, (list, tuple)) or not all(type(one) in (int, str) for one in parameters):
        return None
    if type(name) is not str or not is_known(name, tuple(parameters)):
        return None
    said = ", ".join(escaped(str(one)) for one in parameters if one != "")
    return f"{name}[{said}]" if said else name


def value_of(name: str, parameters: Sequence[Any], item: Any) -> Any:
    """The value of Python or numpy for an item; the item itself if it is none of the type, or there is no such
    value."""
    if type(item) is np.ndarray:
        return array_of(name, parameters, item)
    make = _maker(name, tuple(parameters))
    return item if make is None or item is None else make(item)


def values_of(
    name: str, parameters: Sequence[Any], items: list[Any], numbers: npt.NDArray[Any] | None
) -> list[Any]:
    """The values for many items. `numbers`: the items as an array, if they are numbers."""
    make = _maker(name, tuple(parameters))
    if make is None:
        return items
    if numbers is not None and name in ("timestamp", "date", "duration") and "ns" not in parameters[:1]:
        found: list[Any] = array_of(name, parameters, numbers).tolist()
        # numpy gives integers for what Python's types do not hold.
        if not any(type(value) is int or value is None for value in found):
            zone = _zone(parameters[1]) if name == "timestamp" and parameters[1] else None
            return found if zone is None else [_in_zone(value, zone) for value in found]
    # An item can be an array.
    return [make(item) if type(item) is int else value_of(name, parameters, item) for item in items]


def array_of(name: str, parameters: Sequence[Any], numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An array of integers as one of times, in UTC if they have a zone. An array that is none of the type stays as
    it is."""
    if numbers.dtype.kind not in "iu" or numbers.dtype == np.uint64:
        return numbers
    match (name, *parameters):
        case ("timestamp", str(unit), str()) if unit in _PER_SECOND:
            dtype = f"<M8[{unit}]"
        case ("duration", str(unit)) if unit in _PER_SECOND:
            dtype = f"<m8[{unit}]"
        case ("date",):
            dtype = "<M8[D]"
        case (("numpy.org/datetime64" | "numpy.org/timedelta64"), str(unit)) if _UNIT.fullmatch(unit):
            dtype = f"<{_OF_NUMPY[name]}8[{unit}]"
        case _:
            return numbers
    return numbers.astype("<i8", copy=False).view(dtype)


def values_in(types: set[Type | None], numbers: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
    """An array of elements of some types as one of their values; `None` if there is no such array of numpy."""
    if types == {None} or numbers.dtype.kind not in "iu":
        return numbers
    kind = next(iter(types)) if len(types) == 1 else None
    found = numbers if kind is None or np.ma.isMaskedArray(numbers) else array_of(*kind, numbers)
    return None if found is numbers else found


@lru_cache(256)
def _maker(name: str, parameters: tuple[Any, ...]) -> Callable[[Any], Any] | None:
    """What makes values of items of a type; `None` if there is no such type."""
    match (name, *parameters):
        case ("timestamp", str(unit), str(zone)) if unit in _PER_SECOND:
            return lambda item: _timestamp(item, unit, zone)
        case ("date",):
            return _date
        case ("time", "s" | "ms" | "us" as unit):
            return lambda item: _time(item, unit)
        case ("duration", str(unit)) if unit in _PER_SECOND:
            return lambda item: _duration(item, unit)
        case ("decimal", int(precision), int(scale)) if 1 <= precision <= _MAX_DIGITS and not abs(scale) >> 31:
            return lambda item: _decimal(item, scale)
        case (("numpy.org/datetime64" | "numpy.org/timedelta64"), str(unit)) if _UNIT.fullmatch(unit):
            kind = f"{_OF_NUMPY[name]}8"
            return lambda item: _scalar(kind, item, unit) if _is_count(item) or item == _NOT_A_TIME else item
        case ("uuid",):
            return lambda item: uuid.UUID(bytes=item) if type(item) is bytes and len(item) == 16 else item
    return None


def _is_count(item: Any) -> bool:
    # The least integer is no time for numpy.
    return type(item) is int and _NOT_A_TIME < item < 1 << 63


def _timestamp(item: Any, unit: str, zone: str) -> Any:
    if not _is_count(item):
        return item
    if unit != "ns":
        try:
            found = _EPOCH + _span(item, unit)
            return _in_zone(found, _zone(zone)) if zone else found
        except OverflowError:
            pass
    return _scalar("M8", item, unit)


def _in_zone(value: datetime.datetime, zone: datetime.tzinfo) -> datetime.datetime:
    """A time in UTC as one of a time zone."""
    value = value.replace(tzinfo=_UTC)
    try:
        return value.astimezone(zone)
    except OverflowError:
        return value


def _date(item: Any) -> Any:
    if type(item) is not int or not -(1 << 31) <= item < 1 << 31:
        return item
    try:
        return _EPOCH.date() + item * _DAY
    except OverflowError:
        return _scalar("M8", item, "D")


def _time(item: Any, unit: str) -> Any:
    is_time = type(item) is int and 0 <= item < 86_400 * _PER_SECOND[unit]
    return (_EPOCH + _span(item, unit)).time() if is_time else item


def _duration(item: Any, unit: str) -> Any:
    if not _is_count(item):
        return item
    if unit != "ns":
        try:
            return _span(item, unit)
        except OverflowError:
            pass
    return _scalar("m8", item, unit)


def _scalar(kind: str, item: int, unit: str) -> Any:
    """A scalar of numpy, for what Python's own types do not hold."""
    return np.array(item, "i8").view(f"{kind}[{unit}]")[()]


def _span(count: int, unit: str) -> datetime.timedelta:
    return datetime.timedelta(microseconds=count * 10**6 // _PER_SECOND[unit])


def _decimal(item: Any, scale: int) -> Any:
    if type(item) is bytes and 1 <= len(item) <= _MAX_BYTES:
        item = int.from_bytes(item, "big", signed=True)
    if type(item) is not int:
        return item
    return Decimal((int(item < 0), tuple(map(int, str(abs(item)))), -scale))


@lru_cache(256)
def _zone(name: str) -> datetime.tzinfo:
    """A time zone by its name or offset; UTC if it is not known here, which is the same time."""
    if name == "UTC":
        return _UTC
    if re.fullmatch(r"[+-]([01]\d|2[0-3]):[0-5]\d", name):
        offset = datetime.timedelta(hours=int(name[1:3]), minutes=int(name[4:]))
        return datetime.timezone(-offset if name[0] == "-" else offset)
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return _UTC
