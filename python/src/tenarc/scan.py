"""Where in metadata something is.

cbor2 decodes, but does not say where it failed, nor which lengths were indefinite. Then an item is gone
through here a second time, head by head.
"""

from __future__ import annotations

from .errors import Damaged, Error, Limit
from .items import ARRAY, BYTES, MAP, SIMPLE, TAG, TEXT, Items
from .tags import REFERENCE


def check(data: bytes, offset: int, max_depth: int, cut: type[Error]) -> None:
    """Raises at the first byte of `data` that makes it anything but one item."""
    items = Items(data, offset, cut)
    skip(items, max_depth)
    items.end("value")


class _Open:
    """An item that children are read of."""

    __slots__ = ("is_map", "missing", "seen")

    def __init__(self, major: int, argument: int | None) -> None:
        self.is_map = major == MAP
        #: How many children it still lacks; `None` for all up to a break.
        self.missing = 1 if major == TAG else argument
        if self.is_map and argument is not None:
            self.missing = 2 * argument
        self.seen = 0


def skip(items: Items, max_depth: int) -> None:
    """Passes over an item; not recursive, as nesting is what input chooses."""
    around: list[_Open] = []
    while True:
        start = items.at
        major, argument = items.any_head("value")
        if major == SIMPLE and argument is None:
            if not around or around[-1].missing is not None:
                raise items.damaged("a break without a beginning", start)
            if around[-1].is_map and around[-1].seen % 2:
                raise items.damaged("a map that ends behind a key", start)
            around.pop()
        elif major in (ARRAY, MAP, TAG):
            if major == TAG and argument == REFERENCE:
                _check_reference(items)
            if len(around) >= max_depth:
                raise Limit(f"more than {max_depth} levels", offset=items.offset + start)
            opened = _Open(major, argument)
            if opened.missing != 0:
                around.append(opened)
                continue
        else:
            _skip_leaf(items, major, argument, start)
        # This item is complete, and with it may be those around it.
        while around:
            parent = around[-1]
            parent.seen += 1
            if parent.missing is None or parent.seen < parent.missing:
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
        raise items.damaged(f"the simple value {argument} in two bytes", start)


def _chunk(items: Items, major: int, length: int) -> None:
    start = items.at
    content = items.take(length, "string")
    if major == TEXT:
        try:
            content.decode()
        except UnicodeDecodeError as error:
            raise items.damaged("text that is not UTF-8", start + error.start) from None


def _check_reference(items: Items) -> None:
    """Refuses what cbor2 does not show: a reference in an array of indefinite length (SPEC 5.3)."""
    look = Items(items.data, items.offset)
    look.at = items.at
    look.definite(ARRAY, "reference to a buffer")


def offset_of(data: bytes, children: list[int]) -> int:
    """Where an item stands in well-formed `data`: child after child, from the outermost on.

    The children of a map are its keys and values in turn, that of a tag is its content.
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
