"""Parses metadata into a tree of items, without interpreting tags."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import cbor2

from . import scan
from .errors import Damaged, Error, Fault
from .options import Limits
from .values import Tag

# Tags that cbor2 would turn into objects, some at great cost, or resolve as references.
_BUILT_IN = (0, 1, 2, 3, 4, 5, 25, 28, 29, 30, 35, 36, 37, 52, 54, 100, 256, 258, 260, 261)
_KEPT = {
    number: lambda content, _, number=number: Tag(number, content) for number in (*_BUILT_IN, 1004, 43000, 55799)
}


def parse(data: bytes, offset: int, limits: Limits, cut: type[Error] = Damaged) -> Any:
    """Parses one item, without interpreting tags.

    For errors, `offset` is the position of `data`, and `cut` the type of the error if it ends too early.
    """
    try:
        return _loads(data, limits, indefinite=False)
    except (cbor2.CBORDecodeError, ValueError, OverflowError):
        scan.check(data, offset, limits.max_depth, cut)
    # The item is well-formed, so cbor2 has failed at an indefinite length, or at something Python cannot hold.
    try:
        return _loads(data, limits, indefinite=True)
    except (cbor2.CBORDecodeError, ValueError, OverflowError) as error:
        raise Damaged(f"{error}", offset=offset) from error


def _loads(data: bytes, limits: Limits, *, indefinite: bool) -> Any:
    decoder = cbor2.CBORDecoder(
        BytesIO(data),
        semantic_decoders=_KEPT,
        max_depth=limits.max_depth,
        allow_indefinite=indefinite,
        allow_duplicate_keys=False,
    )
    tree = decoder.decode()
    try:
        decoder.read(1)
    except cbor2.CBORDecodeEOF:
        return tree
    raise ValueError("unexpected bytes after the value")


def located(error: Fault, data: bytes, offset: int, prefix: str = "") -> Error:
    """Turns a fault in metadata into an error with offset and path."""
    path = ".".join(filter(None, (prefix, error.path())))
    at = offset + scan.offset_of(data, error.children())
    return error.kind(error.message, offset=at, path=path or None)
