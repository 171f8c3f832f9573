"""Messages: one value as one CBOR item, tensors as typed arrays (SPEC 1 to 4)."""

from __future__ import annotations

from typing import Any

from .convert import convert
from .decode import value_of
from .encode import encode
from .errors import Torn
from .options import DEFAULT_LIMITS, Limits


def dumps(value: Any) -> bytes:
    """The message of a value. `Unsupported` where something in it has no place in the format."""
    message, _ = encode(value, None)
    return message


def loads(
    data: bytes | bytearray | memoryview,
    *,
    cls: Any = None,
    copy: bool = True,
    limits: Limits = DEFAULT_LIMITS,
) -> Any:
    """The value of a message, whole, with nothing behind it.

    Arrays can be written to; without `copy` they are read-only views of one copy. With `cls` the value
    is converted to that type, as by `load`.
    """
    # Of a number, `bytes` would make so many zeros.
    message = data if type(data) is bytes else bytes(memoryview(data))
    if not message:
        raise Torn("an empty message", offset=0)
    return convert(value_of(message, 0, None, owned=copy, limits=limits, cut=Torn), cls)
