"""Messages: one value as one CBOR item, with tensors as typed arrays (SPEC 1 to 4)."""

from __future__ import annotations

from typing import Any, TypeVar, overload

from .convert import convert
from .decode import value_of
from .encode import encode
from .errors import Torn
from .options import DEFAULT_LIMITS, Limits, Reading

T = TypeVar("T")


def dumps(value: Any) -> bytes:
    """Encodes a value as a message. `Unsupported` if the format cannot hold something in it."""
    return encode(value, None).metadata


@overload
def loads(
    data: bytes | bytearray | memoryview,
    *,
    cls: type[T],
    copy: bool = ...,
    tables: bool = ...,
    numbers: bool = ...,
    limits: Limits = ...,
) -> T: ...
@overload
def loads(
    data: bytes | bytearray | memoryview,
    *,
    cls: Any = None,
    copy: bool = ...,
    tables: bool = ...,
    numbers: bool = ...,
    limits: Limits = ...,
) -> Any: ...
def loads(
    data: bytes | bytearray | memoryview,
    *,
    cls: Any = None,
    copy: bool = True,
    tables: bool = False,
    numbers: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Any:
    """Decodes a message. `data` must be one whole message, with no bytes after it.

    Arrays are writable; without `copy` they are read-only, which saves a copy. With `cls` the value is converted
    to that type, as by `load`.
    Sequences that are stored as columns are read as lists of rows; with `tables` as `Table`.
    Sequences of numbers that are stored as one block are read as lists; with `numbers` as `Numbers`, an array.
    """
    # `memoryview` refuses integers; `bytes(5)` would be five zeros.
    message = data if type(data) is bytes else bytes(memoryview(data))
    if not message:
        raise Torn("an empty message", offset=0)
    value = value_of(
        message,
        0,
        None,
        owned=copy,
        reading=Reading.of(cls, tables=tables, numbers=numbers),
        limits=limits,
        cut=Torn,
    )
    return convert(value, cls)
