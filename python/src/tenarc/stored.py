"""Rows and columns of a saved value that are read when they are needed, each without the others.

A group is read and checked as a whole before one of its rows is given (SPEC 7). A column is read without the
other columns of its group.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from . import column_fields, dtypes, ext, named, statistics
from .calls import Call, Read
from .column_maker import column_of
from .column_outline import outline
from .column_reader import counts_of
from .columns import ABSENT, ENTRY, MAX_ROWS, BaseColumn, Column, Edges, GapColumn, ItemColumn, Picks
from .decode import plain_of
from .errors import Fault, Mismatch
from .fields import kind_name, untyped
from .options import Reading
from .paths import Step, inside
from .tags import COLUMNS, REFERENCE
from .values import Tag

if TYPE_CHECKING:
    from .decode import Resolver
    from .encode import Encoder
    from .saved import Segment
    from .statistics import Statistic, Statistics

T = TypeVar("T")
# The most bytes of the metadata of a value that is read with others.
_SMALL = 4096
# About the most values, and the most bytes of their metadata, that are read together.
_MANY, _MANY_BYTES = 4096, 1 << 18
#: Finds the steps to a row, by its number. They are needed for few rows.
Trails = Callable[[int], Sequence[Step]]


class Shared:
    """What the sequences of one table have in common: the column that was read last, and their length."""

    def __init__(self) -> None:
        # Kept because callers often read row after row, or field after field. Its place, and the column.
        self._last: tuple[Hashable, Column] | None = None
        #: The bytes of the whole table in the archive: those of compressed buffers are the second number.
        self.input = 0, 0
        #: The statistics of the value, given by its number, that were last asked for.
        self.statistics: tuple[int, Statistics | None] | None = None
        #: The small values that were last read together, and their rows.
        self.nodes: tuple[object, list[Any]] | None = None

    def loaded(self, place: Hashable, read: Callable[[], Column]) -> Column:
        """The column at a place. The last one is kept."""
        # Several threads can read columns, so that the attribute can be another one a moment later.
        last = self._last
        if last is None or last[0] != place:
            last = self._last = None
            last = self._last = place, read()
        return last[1]

    def add(self, more: tuple[int, int]) -> None:
        """Adds the length of a value of the table."""
        plain, packed = self.input
        self.input = plain + more[0], packed + more[1]


class StoredRows:
    """The sequence that a saved value is, or that is in it.

    `at` opens the segment, which may be read again each time, and finds the sequence in it. With `tables`, columns
    inside the rows are read as tables too.
    """

    def __init__(
        self,
        number: int,
        shared: Shared,
        at: Callable[[], tuple[Segment, Any, list[Step]]],
        path: str = "",
        *,
        tables: bool = True,
    ) -> None:
        self._number = number
        self._shared = shared
        self._at = at
        self._path = path
        self._tables = tables

    def groups(self) -> list[Column]:
        """The groups of rows. Nothing but their numbers of rows is read."""
        segment, node, trail = self._at()
        self._shared.add(segment.input)
        if type(node) is Tag and node.tag == COLUMNS:
            counts = segment.read(lambda _: counts_of(node.value), [*trail, Step(node, None)], prefix=self._path)
            return [StoredGroup(self, index, count) for index, count in enumerate(counts) if count]
        if isinstance(node, (list, tuple)):
            starts = range(0, len(node), MAX_ROWS)
            return [
                StoredSlice(self, index, min(len(node) - start, MAX_ROWS)) for index, start in enumerate(starts)
            ]
        count = self._count_of_numbers(segment, node, trail)
        return [StoredGroup(self, 0, count)] if count else []

    def known(self, index: int, names: tuple[str, ...]) -> Statistic | None:
        """What the statistics of the value say about a column in a group."""
        last = self._shared.statistics
        if last is None or last[0] != self._number:
            segment, node, trail = self._at()
            # They are about the whole value.
            found = None if trail else ext.entry(segment.header.ext, ext.STATISTICS)
            counts = counts_of(node.value) if found else []
            last = self._shared.statistics = self._number, statistics.read(found, counts)
        return None if last[1] is None else last[1].of_group(index, names)

    def _count_of_numbers(self, segment: Segment, node: Any, trail: list[Step]) -> int:
        """The length of a packed sequence."""
        is_numbers = type(node) is Tag and (
            node.tag in dtypes.BY_TAG
            or (node.tag == REFERENCE and isinstance(node.value, (list, tuple)) and len(node.value) == 2)
        )
        if not is_numbers:
            where = f" in segment {segment.number}"
            raise Mismatch(f"expected a sequence, found {_kind_of(node)}{where}", path=self._path or None)
        found = segment.read(lambda resolver: resolver.describe(node), trail, prefix=self._path)
        assert found is not None
        return found.shape[0]

    def is_near(self, most: int) -> bool:
        """Whether reading some rows does not read more than about so many bytes."""
        segment, _, _ = self._at()
        return segment.byte_length <= most or segment.is_mapped()

    def small_length(self) -> int | None:
        """The bytes of an array of few rows, all in the metadata, that can be read with the values beside it.

        `None` if this is something else.
        """
        segment, node, _ = self._at()
        length = len(segment.header.metadata)
        is_small = not segment.header.lengths and length <= _SMALL and isinstance(node, (list, tuple))
        return length if is_small else None

    def group(self, index: int) -> Any:
        """The column of a group in the metadata."""
        _, node, _ = self._at()
        return node.value[2 * index + 1] if node.tag == COLUMNS else node

    def trail(self, index: int) -> list[Step]:
        """The steps to the column of a group."""
        _, node, trail = self._at()
        return [*trail, Step(node, None), Step(node.value, 2 * index + 1)] if node.tag == COLUMNS else trail

    def items(self, index: int) -> tuple[Sequence[Any], Trails]:
        """Some of the rows of an array in the metadata, and what finds the steps to each."""
        _, node, trail = self._at()
        start = index * MAX_ROWS
        return node[start : start + MAX_ROWS], lambda row: [*trail, Step(node, start + row)]

    def loaded(self, index: int, trail: Sequence[Step], read: Callable[[], Column]) -> Column:
        """A column that some steps lead to, which may have been read already."""
        place = self._number, index, *(step.key for step in trail)
        return self._shared.loaded(place, read)

    def read(
        self, index: int, trail: Sequence[Step], read: Callable[[Resolver], T], *, is_counted: bool = True
    ) -> T:
        """Reads something in a group, to which some steps lead. `is_counted`: see `Read`."""
        segment, _, _ = self._at()

        def counted(resolver: Resolver) -> T:
            limit = resolver.limits.memory(*self._shared.input)
            resolver.part = Read(Call.current(), self._number, index, trail, limit, is_counted=is_counted)
            try:
                return read(resolver)
            except Fault as fault:
                fault.steps = [(child, None) for child, _ in fault.steps]
                raise

        return segment.read(counted, list(trail), reading=Reading(self._tables), prefix=self._path)


class SmallRows:
    """Arrays of few rows that are several values of one name, and are read together as one group.

    Otherwise each of many small values would take the time of a group. It has the methods of `StoredRows` that
    `StoredItems` needs; an `index` is the number of a row.
    """

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._values: list[StoredRows] = []
        # The number of the first row of each value, and at last the number of rows.
        self._starts = [0]
        self._bytes = 0
        # Stands for this in `shared`, which this refers to.
        self._key = object()

    def add(self, rows: StoredRows, count: int, length: int) -> None:
        """Adds a value with metadata of some length."""
        self._values.append(rows)
        self._starts.append(self._starts[-1] + count)
        self._bytes += length

    def is_near(self, most: int) -> bool:
        return self._bytes <= most

    def is_full(self) -> bool:
        return len(self._values) >= _MANY or self._bytes >= _MANY_BYTES

    def group(self) -> list[Column]:
        """The values as one group, if there are any."""
        return [StoredSlice(self, 0, self._starts[-1], by_row=True)] if self._starts[-1] else []

    def _find(self, row: int) -> tuple[StoredRows, int]:
        """The value that a row is in, and the number of the row in it."""
        number = bisect.bisect_right(self._starts, row) - 1
        return self._values[number], row - self._starts[number]

    def items(self, index: int) -> tuple[Sequence[Any], Trails]:
        """All rows, and what finds the steps to each. Those of one group are kept."""

        def trail(row: int) -> Sequence[Step]:
            rows, row = self._find(row)
            return rows.items(0)[1](row)

        nodes = self._shared.nodes
        if nodes is None or nodes[0] is not self._key:
            nodes = self._shared.nodes = None
            nodes = self._shared.nodes = self._key, [node for rows in self._values for node in rows.items(0)[0]]
        return nodes[1], trail

    def read(
        self, index: int, trail: Sequence[Step], read: Callable[[Resolver], T], *, is_counted: bool = True
    ) -> T:
        """Reads something in a row."""
        return self._find(index)[0].read(0, trail, read, is_counted=is_counted)


def _kind_of(node: Any) -> str:
    if isinstance(node, Mapping):
        return "a map"
    return f"tag {node.tag}" if type(node) is Tag else f"{type(node).__name__} {node!r:.40}"


class _Stored(BaseColumn):
    """What stored columns and rows have in common: most questions are answered by reading them."""

    is_stored = True
    _source: StoredRows | SmallRows

    def __init__(self, source: StoredRows | SmallRows, index: int, count: int) -> None:
        self.count = count
        self._source, self._index = source, index

    def is_near(self, most: int) -> bool:
        return self._source.is_near(most)

    def loaded(self) -> Column:
        raise NotImplementedError

    def rows(self, start: int, stop: int) -> list[Any]:
        return self.loaded().rows(start, stop)

    def tensor(self) -> Any:
        return self.loaded().tensor()

    def array(self) -> npt.NDArray[Any] | None:
        return self.loaded().array()

    def types(self) -> set[named.Type | None]:
        found = self.outline()
        return {None} if found is self else found.types()

    def sizes(self) -> npt.NDArray[np.int64]:
        return self.loaded().sizes()

    def memory(self, edges: Edges) -> npt.NDArray[np.float64]:
        return self.loaded().memory(edges)

    def part(self, start: int, stop: int) -> Column:
        return self.loaded().part(start, stop)

    def picked(self, rows: Picks) -> Column:
        return self.loaded().picked(rows)

    def write(self, out: Encoder, depth: int) -> None:
        self.loaded().write(out, depth)


class StoredColumn(_Stored):
    """A column in the metadata."""

    _source: StoredRows

    def __init__(
        self,
        source: StoredRows,
        index: int,
        count: int,
        node: Any = None,
        trail: Sequence[Step] = (),
        *,
        in_struct: bool = False,
    ) -> None:
        super().__init__(source, index, count)
        self._node, self._trail, self._in_struct = node, trail, in_struct

    def node(self) -> Any:
        return self._node

    def trail(self) -> Sequence[Step]:
        return self._trail

    def loaded(self) -> Column:
        node = self.node()
        return self._source.read(
            self._index,
            self.trail(),
            lambda resolver: resolver.columns.column(node, self.count, in_struct=self._in_struct),
        )

    def outline(self) -> Column:
        node = self.node()
        return self._source.read(
            self._index, self.trail(), lambda resolver: outline(node, resolver, in_struct=self._in_struct)
        )

    def names(self) -> Iterable[str]:
        return column_fields.names_of(self.node())

    def is_table(self) -> bool:
        return column_fields.is_table(self.node())

    def is_tuple(self) -> bool:
        return column_fields.is_tuple(self.node())

    def tensor(self) -> Any:
        return None if isinstance(untyped(self.node()), Mapping) else self.loaded().tensor()

    def form(self) -> str:
        node = self.node()
        return self._source.read(self._index, self.trail(), lambda resolver: column_fields.form(node, resolver))

    def field(self, name: str) -> Column | None:
        node = self.node()
        if isinstance(node, Mapping):
            return self._inside(node[name], [Step(node, name)], in_struct=True) if name in node else None
        if name not in self.names():
            return None
        kind = kind_name(node)
        if kind == "type":
            return self._inside(node[3], [Step(node, 3)]).field(name)
        if kind == "tuple":
            return self._inside(node[1][int(name)], [Step(node, 1), Step(node[1], int(name))])
        if kind in ("option", "present"):
            bits = self._source.read(
                self._index,
                [*self.trail(), Step(node, 1)],
                lambda resolver: resolver.columns.bits(node[1], self.count),
            )
            column = self._inside(node[2], [Step(node, 2)], int(np.count_nonzero(bits))).field(name)
            return None if column is None else GapColumn(bits, column)
        # Items, and the rows of a dict.
        return self._kept().field(name)

    def _kept(self) -> Column:
        """The column itself, which may have been read already."""
        return self._source.loaded(self._index, self.trail(), self.loaded)

    def _inside(
        self, node: Any, steps: list[Step], count: int | None = None, *, in_struct: bool = False
    ) -> StoredColumn:
        """A column in this one."""
        count = self.count if count is None else count
        trail = [*self.trail(), *steps]
        return StoredColumn(self._source, self._index, count, node, trail, in_struct=in_struct)


class StoredGroup(StoredColumn):
    """The column of a whole group. Its metadata is read again when it is needed."""

    def known(self, names: tuple[str, ...]) -> Statistic | None:
        return self._source.known(self._index, names)

    def node(self) -> Any:
        return self._source.group(self._index)

    def trail(self) -> Sequence[Step]:
        return self._source.trail(self._index)

    def loaded(self) -> Column:
        # Without the steps, as finding them would take time for each row.
        return self._source.loaded(self._index, (), super().loaded)

    def _kept(self) -> Column:
        return self.loaded()


class StoredItems(_Stored):
    """Values of an array in the metadata, or the values of one field in them."""

    by_item = True

    def __init__(
        self,
        source: StoredRows | SmallRows,
        index: int,
        nodes: Sequence[Any],
        trails: Trails,
        *,
        by_row: bool = False,
    ) -> None:
        super().__init__(source, index, len(nodes))
        self._nodes, self._trails = nodes, trails
        # Whether the source must know the row.
        self._by_row = by_row

    def _items(self) -> tuple[Sequence[Any], Trails]:
        return self._nodes, self._trails

    def rows(self, start: int, stop: int) -> list[Any]:
        return self._values(range(start, stop), is_counted=False)

    def memory(self, edges: Edges) -> npt.NDArray[np.float64]:
        # What the rows have is about as long as in the metadata.
        return np.diff(edges) * float(ENTRY)

    def _values(self, rows: Iterable[int], *, is_counted: bool) -> list[Any]:
        nodes, trails = self._items()
        with Call():
            values = []
            for row in rows:
                # Most values need neither the segment nor the steps to them, which would take more time.
                value = plain_of(nodes[row])
                if value is ABSENT and nodes[row] is not ABSENT:
                    value = self._value(row, nodes[row], trails(row), is_counted)
                values.append(value)
            return values

    def _value(self, row: int, node: Any, trail: Sequence[Step], is_counted: bool) -> Any:
        index = row if self._by_row else self._index
        return self._source.read(index, trail, lambda resolver: resolver.value(node), is_counted=is_counted)

    def loaded(self) -> Column:
        with Call() as call:
            return Values(self._values(range(self.count), is_counted=call.is_joined))

    def picked(self, rows: Picks) -> Column:
        # The other rows are not read.
        with Call() as call:
            return Values(self._values(rows.tolist(), is_counted=call.is_joined))

    def names(self) -> Iterable[str]:
        return column_fields.item_names(self._items()[0])

    def is_table(self) -> bool:
        return all(isinstance(column_fields.untagged(node), Mapping) for node in self._items()[0])

    def form(self) -> str:
        return "any"

    def field(self, name: str) -> Column | None:
        nodes, trails = self._items()
        found = []
        for node in nodes:
            row = node if type(node) is dict else inside(node)[0]
            found.append(row.get(name, ABSENT) if isinstance(row, Mapping) else ABSENT)
        if all(node is ABSENT for node in found):
            return None

        def trail(index: int) -> list[Step]:
            row, through = inside(nodes[index])
            return [*trails(index), *through, Step(row, name)]

        return StoredItems(self._source, self._index, found, trail, by_row=self._by_row)


class StoredSlice(StoredItems):
    """Some of the rows of arrays in the metadata, which is read again when it is needed."""

    def __init__(self, source: StoredRows | SmallRows, index: int, count: int, *, by_row: bool = False) -> None:
        super().__init__(source, index, (), lambda _: [], by_row=by_row)
        self.count = count

    def _items(self) -> tuple[Sequence[Any], Trails]:
        return self._source.items(self._index)


class Values(ItemColumn):
    """Values that were stored one by one, as an array if they have a common type."""

    by_item = True

    def array(self) -> npt.NDArray[Any] | None:
        column = column_of([None if value is ABSENT else value for value in self._values])
        found = column.array()
        if found is not None and found.ndim == 1 and found.dtype.kind in "iu":
            # What the narrowest type is depends on the values.
            is_wide = found.dtype == np.uint64 and int(found.max()) >> 63
            return found if is_wide else found.astype(np.int64)
        return found
