"""Reads what columns are, without their rows: columns of no rows, of the same kinds and dtypes (SPEC 7)."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import dtypes
from .column_fields import is_packed
from .column_reader import ColumnReader, check_fields, length_of
from .columns import BytesColumn, Column, DictColumn, ItemColumn, Lengths, TextColumn
from .errors import Damaged, Fault
from .fields import kind_of
from .values import Tag

if TYPE_CHECKING:
    from .decode import Resolver


def outline(node: Any, resolver: Resolver, *, in_struct: bool) -> Column:
    """A column without its rows. No buffer is read."""
    return _OutlineReader(resolver).column(node, 0, in_struct=in_struct)


class _OutlineReader(ColumnReader):
    """Reads the structure of columns, and nothing of which there is one for each row."""

    def _text(self, node: Any, count: int) -> Column:
        return TextColumn(Lengths(0, None), b"")

    def _bytes(self, node: Any, count: int) -> Column:
        return BytesColumn(self.lengths(check_fields(node, (3,))[1], 0), b"")

    def _dict(self, node: Any, count: int) -> Column:
        return DictColumn(np.empty(0, np.uint8), self._inner(check_fields(node, (4,)), 3, 0))

    def _rows(self, node: Any, count: int) -> Column:
        return ItemColumn([])

    def _tensor(self, node: Any, count: int, what: str) -> tuple[str, tuple[int, ...], dtypes.Payload]:
        found = self._resolver.describe(node)
        if found is None or not found.shape:
            raise Fault(Damaged, f"{what}: expected a tensor with rows, found {kind_of(node)}")
        return found.dtype, (0, *found.shape[1:]), np.empty(0, np.uint8)

    def _typed(
        self, node: Any, count: int, what: str, allowed: Collection[str], *, shared: bool = False
    ) -> npt.NDArray[Any]:
        found = self._resolver.describe(node) if type(node) is Tag and is_packed(node) else None
        known = None if found is None else dtypes.BY_NAME.get(found.dtype)
        if known is None or known.name not in allowed:
            wanted = "numbers" if known is None else " or ".join(sorted(allowed))
            raise Fault(Damaged, f"{what}: expected {wanted}, found {known.name if known else kind_of(node)}")
        return np.empty(0, known.numpy)

    def bits(self, node: Any, count: int) -> npt.NDArray[np.bool_]:
        return np.empty(0, np.bool_)

    def lengths(self, node: Any, count: int, *, is_list: bool = False) -> Lengths:
        return Lengths(0, length_of(node, 0) if type(node) is int and not is_list else None)
