"""Parses metadata into a tree of items, without interpreting tags."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from io import BytesIO
from typing import Any

import cbor2

from . import accelerator, dtypes, scan
from .errors import Damaged, Error, Fault
from .fields import has_typed_array
from .options import Limits
from .tags import COLUMN_MAJOR, ROW_MAJOR
from .values import Tag

# Tags that cbor2 would turn into objects, some at great cost, or resolve as references.
_BUILT_IN = (0, 1, 2, 3, 4, 5, 25, 28, 29, 30, 35, 36, 37, 52, 54, 100, 256, 258, 260, 261)
_KEPT: dict[int, Callable[..., Any]] = {
    number: lambda content, _, number=number: Tag(number, content) for number in (*_BUILT_IN, 1004, 43000, 55799)
}


def _refused(content: Any, _: Any) -> Any:
    raise ValueError("a tag that metadata does not have")


def _tensor(number: int) -> Callable[[Any, Any], Tag]:
    def tensor(content: Any, _: Any) -> Tag:
        return Tag(number, content) if has_typed_array(content) else _refused(content, _)

    return tensor


#: The same for metadata, which says each thing in one way (SPEC 5.3).
_STRICT = _KEPT | dict.fromkeys(dtypes.NOT_IN_METADATA, _refused)
_STRICT |= {ROW_MAJOR: _tensor(ROW_MAJOR), COLUMN_MAJOR: _tensor(COLUMN_MAJOR)}


def _kept(number: int, content: Any) -> Any:
    return Tag(number, content)


def _strict(number: int, content: Any) -> Any:
    decode = _STRICT.get(number)
    return Tag(number, content) if decode is None else decode(content, None)


def parse(
    data: bytes, offset: int, limits: Limits, cut: type[Error] = Damaged, *, is_metadata: bool = True
) -> Any:
    """Parses one item, without interpreting tags.

    For errors, `offset` is the position of `data`, and `cut` the type of the error if it ends too early.
    """
    if accelerator.compiled is not None:
        # Otherwise something is wrong or rare, which cbor2 knows.
        with contextlib.suppress(ValueError):
            tag = _strict if is_metadata else _kept
            return accelerator.compiled.parse(data, limits.max_depth, tag, not is_metadata)
    try:
        return _loads(data, limits, _STRICT if is_metadata else _KEPT, indefinite=False)
    except (cbor2.CBORDecodeError, ValueError, OverflowError) as error:
        scan.check(data, offset, limits.max_depth, cut, is_metadata=is_metadata)
        failed = error
    # The item is well-formed, so cbor2 has failed at an indefinite length, or at something Python cannot hold.
    try:
        if not is_metadata:
            return _loads(data, limits, _KEPT, indefinite=True)
    except (cbor2.CBORDecodeError, ValueError, OverflowError) as error:
        failed = error
    raise Damaged(f"{failed}", offset=offset) from failed


def _loads(data: bytes, limits: Limits, decoders: Any, *, indefinite: bool) -> Any:
    decoder = cbor2.CBORDecoder(
        BytesIO(data),
        semantic_decoders=decoders,
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
