"""Finds positions in metadata, by reading it head by head.

cbor2 decodes metadata. It reports neither the position of an error, nor which lengths were indefinite. After an
error, the metadata is therefore read here a second time.
"""

from __future__ import annotations

from .dtypes import BY_TAG, NOT_IN_METADATA
from .errors import Damaged, Error, Limit
from .items import ARRAY, BYTES, MAP, SIMPLE, TAG, TEXT, Items
from .tags import COLUMN_MAJOR, COLUMNS, COMPLEX, ROW_MAJOR, TYPE


def check(data: bytes, offset: int, max_depth: int, cut: type[Error], *, is_metadata: bool) -> None:
    """Checks that `data` is exactly one well-formed item. The error has the position of the first wrong byte."""
    items = Items(data, offset, cut)
    skip(items, max_depth, is_metadata=is_metadata)
    items.end("value")


class _Open:
    """An array, map or tag whose children are being read."""

    __slots__ = ("count", "in_columns", "is_columns", "is_items", "is_map", "seen")

    def __init__(self, major: int, argument: int | None, parent: _Open | None) -> None:
        self.is_map = major == MAP
        #: Whether this is the tag around columns.
        self.is_columns = major == TAG and argument == COLUMNS
        #: Whether this is a column of kind `rows`. The length of the items in it can be indefinite.
        self.is_items = False
        #: Whether the children are columns or parts of columns, which have definite lengths (SPEC 7).
        self.in_columns = False
        if parent is not None:
            self.in_columns = (parent.in_columns or parent.is_columns) and not parent.is_items
        #: The number of its children; `None` if the length is indefinite, so that a break ends it.
        self.count = 1 if major == TAG else argument
        if self.is_map and argument is not None:
            self.count = 2 * argument
        self.seen = 0


def skip(items: Items, max_depth: int, *, is_metadata: bool = False) -> None:
    """Skips an item. This is not recursive, because the input decides how deep items are nested.

    With `is_metadata`, it must be as metadata is written (SPEC 5.3).
    """
    around: list[_Open] = []
    while True:
        start = items.at
        major, argument = items.any_head("value")
        parent = around[-1] if around else None
        if parent is not None and parent.in_columns and argument is None and major != SIMPLE:
            raise items.damaged("expected a definite length inside columns", start)
        if is_metadata and argument is None and major != SIMPLE:
            raise items.damaged("expected a definite length in metadata", start)
        if major == SIMPLE and argument is None:
            if not around or around[-1].count is not None:
                raise items.damaged("a break outside of an item of indefinite length", start)
            if around[-1].is_map and around[-1].seen % 2:
                raise items.damaged("a map ends after a key, without its value", start)
            around.pop()
        elif major in (ARRAY, MAP, TAG):
            if major == TAG and argument == TYPE:
                _check_type(items)
            if major == TAG and is_metadata:
                _check_tag(items, argument, start)
            if len(around) >= max_depth:
                raise Limit(f"nested deeper than {max_depth} levels", offset=items.offset + start)
            opened = _Open(major, argument, parent)
            if opened.count != 0:
                around.append(opened)
                continue
        else:
            _skip_leaf(items, major, argument, start)
            if parent is not None and parent.in_columns and parent.seen == 0 and major == TEXT and argument == 4:
                parent.is_items = items.data[items.at - 4 : items.at] == b"rows"
        # This item is complete. If it is the last child of its parent, the parent is complete too.
        while around:
            parent = around[-1]
            parent.seen += 1
            if parent.count is None or parent.seen < parent.count:
                break
            around.pop()
        if not around:
            return


def _skip_leaf(items: Items, major: int, argument: int | None, start: int) -> None:
    if major in (BYTES, TEXT):
        if argument is not None:
            _chunk(items, major, argument)
            return
        while items.data[items.at : items.at + 1] != b"\xff":
            _chunk(items, major, items.definite(major, "chunk of a string"))
        items.at += 1
    elif major == SIMPLE and items.data[start] == 0xF8 and argument is not None and argument < 32:
        raise items.damaged(f"the simple value {argument} must not be encoded in two bytes", start)


def _chunk(items: Items, major: int, length: int) -> None:
    start = items.at
    content = items.take(length, "string")
    if major == TEXT:
        try:
            content.decode()
        except UnicodeDecodeError as error:
            raise items.damaged("text is not UTF-8", start + error.start) from None


def _behind(items: Items) -> Items:
    """Reads what is next, without moving."""
    look = Items(items.data, items.offset)
    look.at = items.at
    return look


def _check_type(items: Items) -> None:
    """Refuses indefinite lengths in the content of the tag of a type, but for its item (SPEC 7.2). cbor2 does not
    show the difference."""
    look = _behind(items)
    if look.definite(ARRAY, "a value of a type") == 3:
        for what in ("name of a type", "parameters of a type"):
            look.skip(what, 2)


def _check_tag(items: Items, tag: int | None, start: int) -> None:
    """Refuses tags that metadata does not have, and tensors without a typed array (SPEC 5.3)."""
    if tag in NOT_IN_METADATA:
        raise items.damaged(f"tag {tag}, which metadata does not have", start)
    if tag in (ROW_MAJOR, COLUMN_MAJOR):
        look = _behind(items)
        if look.definite(ARRAY, "a tensor") == 2:
            look.skip("shape of a tensor", 2)
            at = look.at
            major, found = look.any_head("elements of a tensor")
            if major != TAG or (found != COMPLEX and found not in BY_TAG):
                raise items.damaged("a tensor in metadata: expected a typed array as its elements", at)


def offset_of(data: bytes, children: list[int]) -> int:
    """The position of an item in well-formed `data`.

    `children` leads to the item from the outermost one: the number of a child, then the number of a child of that,
    and so on. The children of a map are its keys and values in turn. The child of a tag is its content.
    """
    items = Items(data, 0)
    for child in children:
        start = items.at
        major, _ = items.any_head("value")
        if major not in (ARRAY, MAP, TAG):
            return start
        try:
            for _ in range(child):
                skip(items, len(data))
        except Damaged:
            return start
    return items.at
