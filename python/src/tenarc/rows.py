"""The number of rows that the directory has of a value (SPEC 5.6)."""

from __future__ import annotations

from typing import Any

from . import items
from .column_reader import counts_of
from .errors import Error, Fault, bounded_recursion
from .items import ARRAY, TAG, Items
from .options import MAX_DEPTH, Limits
from .tags import COLUMNS
from .tree import parse
from .values import Tag

_COLUMNS = items.head(TAG, COLUMNS)
_LIMITS = Limits(max_depth=MAX_DEPTH)


def rows_of(metadata: bytes) -> int | None:
    """The number of elements of a sequence that is a whole value; `None` if the value is something else."""
    is_array = metadata[:1] and metadata[0] >> 5 == ARRAY
    if not is_array and not metadata.startswith(_COLUMNS):
        return None
    try:
        if is_array:
            return Items(metadata, 0).definite(ARRAY, "value")
        with bounded_recursion():
            return rows_in(metadata, parse(metadata, 0, _LIMITS))
    except Error:
        return None


def rows_in(metadata: bytes, tree: Any) -> int | None:
    """The same, if the metadata has been parsed."""
    if isinstance(tree, (list, tuple)):
        return len(tree)
    if type(tree) is not Tag or not metadata.startswith(_COLUMNS):
        return None
    try:
        return sum(counts_of(tree.value))
    except Fault:
        return None
