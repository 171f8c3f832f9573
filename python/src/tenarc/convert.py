"""Converts decoded values to the types that a caller asks for: dataclasses and type hints."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
import pathlib
import reprlib
import types
import typing
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from . import near
from .errors import Fault, Mismatch, bounded_recursion
from .named import Both
from .table import Table
from .tags import ELSEWHERE
from .torch_arrays import to_torch
from .values import Numbers, Tag, is_record

_NONE = type(None)
#: What can be around the type of a key of a `TypedDict`.
_QUALIFIERS = ("Required", "NotRequired", "ReadOnly")
_UNIONS = (typing.Union, types.UnionType)
#: Results and faults of earlier conversions, by the ids of value and hint. Both are kept alive, so that their ids
#: are not reused.
_Tried = dict[tuple[int, int], tuple[Any, Any, Any]]
#: The longest message about the types of a union.
_MAX_MESSAGE = 300
_hints_of = functools.lru_cache(maxsize=256)(functools.partial(typing.get_type_hints, include_extras=True))
#: numpy's classes that stand for exactly one dtype.
_CONCRETE = frozenset(np.sctypeDict.values())


def convert(value: Any, hint: Any) -> Any:
    """Converts a value to the type of a hint; without one, returns it unchanged. `Mismatch` if it does not fit.

    Where the hint says nothing, `Numbers` become lists.
    """
    if hint is None:
        return value
    try:
        with bounded_recursion():
            return _convert(value, hint, {})
    except Fault as fault:
        error = fault.kind(fault.message, path=fault.path())
        raise error if fault.missing is None else error.ending(partial(near.question, *fault.missing)) from None


def _plain(value: Any) -> Any:
    """A value of which the hint says nothing."""
    if isinstance(value, Numbers):
        return value.tolist()
    if type(value) is Both:
        return value.value
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    if type(value) is dict:
        return {_plain(key): _plain(item) for key, item in value.items()}
    if type(value) is Tag:
        return Tag(value.tag, _plain(value.value))
    return value


def _convert(value: Any, hint: Any, tried: _Tried) -> Any:
    if hint is Any or hint is object:
        return _plain(value)
    origin = typing.get_origin(hint)
    # An alias by `type X = ...` of Python 3.12; numpy's `NDArray` is one there.
    if hasattr(origin, "__value__"):
        return _convert(value, origin.__value__[typing.get_args(hint)], tried)
    if hasattr(hint, "__value__") and hasattr(hint, "__type_params__"):
        return _convert(value, hint.__value__, tried)
    if getattr(origin, "_name", None) in _QUALIFIERS:
        return _convert(value, typing.get_args(hint)[0], tried)
    if origin is typing.Annotated:
        return _convert(value, typing.get_args(hint)[0], tried)
    if origin in _UNIONS:
        return _union(value, typing.get_args(hint), tried)
    if type(value) is Both:
        # Whoever asks for a number gets the one of the format.
        try:
            return _convert(value.value, hint, tried)
        except Fault as fault:
            try:
                return _convert(value.item, hint, tried)
            except Fault:
                raise fault from None
    if isinstance(value, Tag) and hint is not Tag:
        if value.tag in ELSEWHERE:
            raise Fault(Mismatch, f"tag {value.tag} refers to another value")
        return _convert(value.value, hint, tried)
    if hint is None or hint is _NONE:
        return _expect(value is None or value == [], None, value, "null")
    if isinstance(value, Table) and hint is not Table:
        return _convert(value.rows(), hint, tried)
    plain = _PLAIN.get(hint)
    if plain is not None:
        return plain(value)
    if origin is None and isinstance(hint, type):
        return _class(value, hint, tried)
    return _generic(value, origin, typing.get_args(hint), hint, tried)


def _expect(fits: Any, result: Any, value: Any, wanted: str) -> Any:
    if not fits:
        raise Fault(Mismatch, f"expected {wanted}, found {_shown(value)}")
    return result


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    text = reprlib.repr(value)
    return f"{type(value).__name__} {text if len(text) <= 40 else text[:37] + '...'}"


def _bool(value: Any) -> Any:
    return _expect(type(value) is bool, value, value, "bool")


def _int(value: Any) -> Any:
    if type(value) is float and value.is_integer() and not (value == 0 and str(value)[0] == "-"):
        return int(value)
    return _expect(type(value) is int, value, value, "an integer")


def _float(value: Any) -> Any:
    if type(value) is int:
        try:
            converted = float(value)
        except OverflowError:
            converted = 0.0
        return _expect(int(converted) == value, converted, value, "a number that a double holds")
    return _expect(type(value) is float, value, value, "a float")


def _str(value: Any) -> Any:
    return _expect(type(value) is str, value, value, "text")


def _bytes(value: Any) -> Any:
    if isinstance(value, memoryview):
        return bytes(value)
    return _expect(type(value) is bytes, value, value, "bytes")


def _complex(value: Any) -> Any:
    fits = isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind == "c"
    return _expect(fits, complex(value) if fits else None, value, "a complex number")


_PLAIN: dict[Any, Any] = {
    bool: _bool,
    int: _int,
    float: _float,
    str: _str,
    bytes: _bytes,
    complex: _complex,
}


def _union(value: Any, hints: tuple[Any, ...], tried: _Tried) -> Any:
    if value is None and _NONE in hints:
        return None
    faults = []
    for hint in hints:
        # An exact type wins: an integer fits `float | int` as a float too.
        found = value.value if type(value) is Both else value
        if hint is type(found):
            return found
    for hint in hints:
        if hint is not _NONE:
            try:
                return _try(value, hint, tried)
            except Fault as fault:
                faults.append(fault)
    if len(faults) == 1:
        raise faults[0]
    message = "no type of the union fits: " + "; ".join(fault.message for fault in faults)
    raise Fault(Mismatch, message if len(message) <= _MAX_MESSAGE else message[: _MAX_MESSAGE - 3] + "...")


def _try(value: Any, hint: Any, tried: _Tried) -> Any:
    """Converts a value, or returns the result of an earlier try: nested unions would take exponential time."""
    if not isinstance(value, (list, dict, Tag)):
        return _convert(value, hint, tried)
    key = id(value), id(hint)
    if key not in tried:
        try:
            tried[key] = _convert(value, hint, tried), value, hint
        except Fault as fault:
            tried[key] = _Failed(fault), value, hint
    result, _, _ = tried[key]
    if isinstance(result, _Failed):
        raise result.fault()
    return result


class _Failed:
    """A copy of a fault from before steps of the path were added to it, so that it can be raised again."""

    def __init__(self, fault: Fault) -> None:
        self._fault, self._steps = fault, [*fault.steps]

    def fault(self) -> Fault:
        again = Fault(self._fault.kind, self._fault.message)
        again.steps, again.missing = [*self._steps], self._fault.missing
        return again


def _is_optional(hint: Any) -> bool:
    if hasattr(hint, "__value__"):
        return _is_optional(hint.__value__)
    if typing.get_origin(hint) is typing.Annotated:
        return _is_optional(typing.get_args(hint)[0])
    return typing.get_origin(hint) in _UNIONS and _NONE in typing.get_args(hint)


def _class(value: Any, cls: type, tried: _Tried) -> Any:
    if is_record(cls):
        return _dataclass(value, cls, tried)
    if issubclass(cls, enum.Enum):
        if isinstance(value, str) and value not in cls.__members__:
            raise _missing(f"expected a name of {cls.__name__}, found {_shown(value)}", value, cls.__members__)
        fits = isinstance(value, str)
        return _expect(fits, cls[value] if fits else None, value, f"a name of {cls.__name__}")
    if issubclass(cls, (np.datetime64, np.timedelta64)):
        return _time(value, cls)
    if issubclass(cls, np.generic):
        return _scalar(value, np.dtype(cls))
    if issubclass(cls, np.ndarray):
        return _array(value, np.generic) if cls is np.ndarray else _instance(value, cls)
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        hints = _hints_of(cls)
        return cls(*_tuple(value, tuple(hints.get(name, Any) for name in cls._fields), tried))
    if issubclass(cls, dict) and hasattr(cls, "__required_keys__"):
        return _typed_dict(value, cls, tried)
    if issubclass(cls, pathlib.PurePath):
        return cls(_str(value))
    if cls is list or cls is tuple:
        return cls(map(_plain, _sequence(value)))
    if cls is dict:
        return _plain(_expect(isinstance(value, Mapping), value, value, "a map"))
    if cls.__module__ == "torch" and cls.__name__ == "Tensor":
        return _instance(to_torch(value), cls)
    return _instance(value, cls)


def _instance(value: Any, cls: type) -> Any:
    return _expect(isinstance(value, cls), value, value, cls.__name__)


def _dataclass(value: Any, cls: type, tried: _Tried) -> Any:
    """Makes a dataclass from a map. Entries that are not fields of the class are ignored."""
    if not isinstance(value, Mapping):
        raise Fault(Mismatch, f"expected the fields of {cls.__name__}, found {_shown(value)}")
    hints = _hints_of(cls)
    found: dict[str, Any] = {}
    later: dict[str, Any] = {}
    for field in dataclasses.fields(cls):
        hint = hints[field.name]
        if field.name in value:
            item = _at(value[field.name], hint, field.name, tried)
        elif field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING:
            continue
        elif _is_optional(hint):
            item = None
        else:
            raise _missing(f"the field `{field.name}` of {cls.__name__} is missing", field.name, value)
        (found if field.init else later)[field.name] = item
    made = cls(**found)
    for name, item in later.items():
        object.__setattr__(made, name, item)
    return made


def _typed_dict(value: Any, cls: Any, tried: _Tried) -> dict[str, Any]:
    """Makes a `TypedDict` from a map. Entries that are not keys of it are ignored."""
    if not isinstance(value, Mapping):
        raise Fault(Mismatch, f"expected the keys of {cls.__name__}, found {_shown(value)}")
    for name in cls.__required_keys__:
        if name not in value:
            raise _missing(f"the key `{name}` of {cls.__name__} is missing", name, value)
    return {name: _at(value[name], hint, name, tried) for name, hint in _hints_of(cls).items() if name in value}


def _missing(text: str, name: str, names: Iterable[Any]) -> Fault:
    """The error about a name that is not there. `names` are those that are."""
    fault = Fault(Mismatch, text)
    fault.missing = name, names
    return fault


def _time(value: Any, cls: Any) -> Any:
    """A time of numpy, also for one of Python's that has no time zone."""
    is_naive = getattr(value, "tzinfo", None) is None
    wanted = (datetime.date,) if cls is np.datetime64 else (datetime.timedelta,)
    if isinstance(value, wanted) and is_naive:
        value = cls(value)
    return _instance(value, cls)


def _at(value: Any, hint: Any, name: str, tried: _Tried) -> Any:
    try:
        return _convert(value, hint, tried)
    except Fault as fault:
        raise fault.at(0, name) from None


def _sequence(value: Any) -> list[Any]:
    """The elements of a list, or of an array of one dimension, as a list."""
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return list(value.tolist())
    _expect(isinstance(value, (list, tuple)), None, value, "a sequence")
    return list(value)


def _tuple(value: Any, hints: tuple[Any, ...], tried: _Tried) -> list[Any]:
    items = _sequence(value)
    if len(items) != len(hints):
        raise Fault(Mismatch, f"expected {len(hints)} elements, found {len(items)}")
    return [_at(item, hint, str(n), tried) for n, (item, hint) in enumerate(zip(items, hints, strict=True))]


def _array(value: Any, cls: Any) -> Any:
    """The value as an array whose dtype belongs to a numpy class, such as `np.float32` or `np.floating`.

    A list of numbers is converted if the class stands for one dtype.
    """
    if isinstance(value, Numbers):
        value = value.view(np.ndarray)
    if isinstance(value, list) and cls is np.str_:
        return _texts(value)
    if isinstance(value, list) and cls in _CONCRETE:
        return np.array([_scalar(item, np.dtype(cls)) for item in value], cls)
    fits = isinstance(value, np.ndarray) and issubclass(value.dtype.type, cls)
    return _expect(fits, value, value, "an array" + ("" if cls is np.generic else f" of {cls.__name__}"))


def _texts(value: list[Any]) -> Any:
    """Texts in lists in lists as an array."""
    try:
        found = np.array(value, object)
    except ValueError:
        found = np.empty(0)
    fits = found.dtype == object and all(type(text) is str for text in found.reshape(-1).tolist())
    return _expect(fits or not value, found.astype(np.str_) if fits or not value else None, value, "texts")


def _scalar(value: Any, dtype: np.dtype[Any]) -> Any:
    """The value as a number of a numpy dtype, which must hold it exactly."""
    if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype == dtype:
        return value[()]
    if dtype.kind == "b":
        return np.bool_(_bool(value))
    if dtype.kind in "iu":
        number = _int(value)
        limits = np.iinfo(dtype)
        _expect(limits.min <= number <= limits.max, None, value, str(dtype))
        return dtype.type(number)
    _expect(type(value) in (int, float), None, value, str(dtype))
    with np.errstate(over="ignore"):
        number = dtype.type(_float(value))
    return _expect(float(number) == value or value != value, number, value, f"what {dtype} holds exactly")


def _generic(value: Any, origin: Any, args: tuple[Any, ...], hint: Any, tried: _Tried) -> Any:
    if origin is np.ndarray:
        elements = typing.get_args(args[1]) if len(args) > 1 else ()
        cls = elements[0] if elements else Any
        known = cls is not Any and isinstance(cls, type) and issubclass(cls, np.generic)
        return _array(value, cls if known else np.generic)
    if origin is tuple:
        if len(args) == 2 and args[1] is Ellipsis:
            return tuple(_at(v, args[0], str(n), tried) for n, v in enumerate(_sequence(value)))
        return tuple(_tuple(value, args, tried))
    if origin is typing.Literal:
        fits = any(type(value) is type(arg) and value == arg for arg in args)
        return _expect(fits, value, value, f"one of {args}")
    if isinstance(origin, type) and issubclass(origin, Mapping) and issubclass(dict, origin):
        _expect(isinstance(value, Mapping), None, value, "a map")
        return {_key(k, args[0], tried): _at(v, args[1], str(k), tried) for k, v in value.items()}
    if isinstance(origin, type) and issubclass(list, origin):
        return [_at(v, args[0], str(n), tried) for n, v in enumerate(_sequence(value))]
    raise Fault(Mismatch, f"cannot read into {hint!r}")


def _key(value: Any, hint: Any, tried: _Tried) -> Any:
    key = _at(value, hint, str(value), tried)
    try:
        hash(key)
    except TypeError:
        raise Fault(Mismatch, f"cannot use a {type(key).__name__} as a key of a Python dict") from None
    return key
