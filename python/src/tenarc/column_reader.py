"""Reads columns, and checks all of their lengths and codes before a row is made of them (SPEC 3.1)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import dtypes
from .columns import (
    MAX_ROWS,
    BoolColumn,
    BytesColumn,
    Column,
    EnumColumn,
    ItemColumn,
    Lengths,
    ListColumn,
    MapColumn,
    NumberColumn,
    OptionColumn,
    PresentColumn,
    RawColumn,
    StructColumn,
    TensorColumn,
    TextColumn,
    TupleColumn,
    UnitColumn,
)
from .errors import Damaged, Fault
from .fields import kind_of
from .tags import COLUMN_MAJOR, NAMED, REFERENCE, ROW_MAJOR
from .values import Raw, Tag

if TYPE_CHECKING:
    from .decode import Resolver

_TOO_MANY = 1 << 63
#: The bytes of an offset that is kept for each length.
_OFFSET = 8

_UNSIGNED = ("u8", "u16", "u32", "u64")
#: The types of 8 to 64 bits that have a typed array.
NUMBERS = frozenset(known.name for known in dtypes.BY_NAME.values() if known.is_packed)


class ColumnReader:
    """Reads the columns of one document."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver

    def groups(self, content: Any) -> list[Column]:
        """Reads `[rows, column, rows, column, ...]`."""
        groups = []
        for index, count in enumerate(counts_of(content)):
            try:
                groups.append(self.column(content[2 * index + 1], count))
            except Fault as fault:
                raise fault.at(2 * index + 1) from None
        return groups

    def column(self, node: Any, count: int, *, in_struct: bool = False) -> Column:
        """Reads a column of `count` rows. `in_struct`: whether it is a value of a struct."""
        if type(node) is Tag:
            return self._tagged(node, count)
        if isinstance(node, Mapping):
            return self._struct(node, count)
        if not isinstance(node, (list, tuple)) or not node or type(node[0]) is not str:
            raise Fault(Damaged, f"expected a column, found {kind_of(node)}")
        if node[0] == "present" and not in_struct:
            raise Fault(Damaged, "a column of kind present, which only a value of a struct can be")
        read = _KINDS.get(node[0])
        if read is None:
            raise Fault(Damaged, f"a column of the unknown kind {node[0]!r:.40}")
        return read(self, node, count)

    def _tagged(self, node: Tag, count: int) -> Column:
        if node.tag in (ROW_MAJOR, COLUMN_MAJOR, NAMED):
            return self._tensors(node, count)
        if node.tag == REFERENCE and isinstance(node.value, (list, tuple)) and len(node.value) == 4:
            return self._tensors(node, count)
        if node.tag == REFERENCE or node.tag in dtypes.BY_TAG:
            return NumberColumn(self._typed(node, count, "a column of numbers", NUMBERS, shared=True))
        raise Fault(Damaged, f"expected a column, found {kind_of(node)}")

    def _tensors(self, node: Tag, count: int) -> Column:
        name, shape, payload = self._tensor(node, count, "a column of tensors")
        each = shape[1:]
        array = self._resolver.array_of(name, shape, payload)
        if not isinstance(array, Raw):
            return TensorColumn(array)
        try:
            width = dtypes.payload_length(name, each) if count else 0
        except ValueError as error:
            raise Fault(Damaged, f"a column of tensors: {error}") from None
        if width is None and payload.nbytes % count:
            # The elements are of unknown size, so that only the rows together can have any length.
            found = f"{payload.nbytes} bytes of {name} cannot be divided into {count} rows"
            raise Fault(Damaged, f"a column of tensors: {found}")
        return RawColumn(count, name, each, payload)

    def _tensor(self, node: Any, count: int, what: str) -> tuple[str, tuple[int, ...], dtypes.Payload]:
        if type(node) is not Tag or node.tag not in (ROW_MAJOR, COLUMN_MAJOR, NAMED, REFERENCE):
            raise Fault(Damaged, f"{what}: expected a tensor, found {kind_of(node)}")
        name, shape, order, payload = self._resolver.tensor_of(node, what)
        if not shape or shape[0] != count:
            raise Fault(Damaged, f"{what}: expected {count} rows, found a tensor of shape {list(shape)}")
        if order != "C" and len(shape) > 1:
            raise Fault(Damaged, f"{what}: expected the order C, found {order}")
        return name, shape, payload

    def _struct(self, node: Mapping[Any, Any], count: int) -> Column:
        fields: dict[str, Column] = {}
        for index, (name, column) in enumerate(node.items()):
            if type(name) is not str:
                message = f"columns of a struct: expected text as a name, found {kind_of(name)}"
                raise Fault(Damaged, message).at(2 * index)
            try:
                fields[name] = self.column(column, count, in_struct=True)
            except Fault as fault:
                raise fault.at(2 * index + 1) from None
        return StructColumn(count, fields)

    def _unit(self, node: Any, count: int) -> Column:
        _check_fields(node, (1,))
        return UnitColumn(count)

    def _bool(self, node: Any, count: int) -> Column:
        _, bits = _check_fields(node, (2,))
        with _at(1):
            return BoolColumn(self.bits(bits, count))

    def _text(self, node: Any, count: int) -> Column:
        _, lengths, content = _check_fields(node, (3,))
        found = self.lengths(lengths, count)
        with _at(2):
            text = content.encode() if type(content) is str else None
            if text is None:
                if type(content) is not Tag:
                    raise Fault(Damaged, f"a column of texts: expected text, found {kind_of(content)}")
                payload = self._resolver.bytes_of(content, "a column of texts")
                self._resolver.take(2 * payload.nbytes)
                text = payload.tobytes()
            _check_total(found, len(text), "a column of texts")
            if not text.isascii():
                _check_text(text, found)
            return TextColumn(found, text)

    def _bytes(self, node: Any, count: int) -> Column:
        _, lengths, content = _check_fields(node, (3,))
        found = self.lengths(lengths, count)
        with _at(2):
            payload = self._resolver.bytes_of(content, "a column of bytes")
            _check_total(found, payload.nbytes, "a column of bytes")
        if type(content) is bytes or self._resolver.owned:
            self._resolver.take(payload.nbytes)
            return BytesColumn(found, payload.tobytes())
        # The column is not copied, only each row that is made of it.
        return BytesColumn(found, payload.data.toreadonly())

    def _option(self, node: Any, count: int) -> Column:
        return OptionColumn(*self._partial(node, count))

    def _present(self, node: Any, count: int) -> Column:
        return PresentColumn(*self._partial(node, count))

    def _partial(self, node: Any, count: int) -> tuple[npt.NDArray[np.bool_], Column]:
        """The bits of a column of which some rows have no value, and the column of the other rows."""
        _, bits, column = _check_fields(node, (3,))
        with _at(1):
            found = self.bits(bits, count)
        try:
            return found, self.column(column, int(np.count_nonzero(found)))
        except Fault as fault:
            raise fault.at(2) from None

    def _list(self, node: Any, count: int) -> Column:
        _, lengths, column = _check_fields(node, (3,))
        found = self.lengths(lengths, count)
        try:
            inner = self.column(column, found.total)
        except Fault as fault:
            raise fault.at(2) from None
        return ListColumn(found, inner, numbers=self._resolver.numbers)

    def _tuple(self, node: Any, count: int) -> Column:
        _, nodes = _check_fields(node, (2,))
        if not isinstance(nodes, (list, tuple)):
            raise Fault(Damaged, f"columns of a tuple: expected an array, found {kind_of(nodes)}").at(1)
        columns = []
        for index, column in enumerate(nodes):
            try:
                columns.append(self.column(column, count))
            except Fault as fault:
                raise fault.at(index).at(1) from None
        return TupleColumn(count, columns)

    def _map(self, node: Any, count: int) -> Column:
        _, lengths, *nodes = _check_fields(node, (4,))
        found = self.lengths(lengths, count)
        columns = []
        for index, column in enumerate(nodes):
            try:
                columns.append(self.column(column, found.total))
            except Fault as fault:
                raise fault.at(2 + index) from None
        return MapColumn(found, *columns)

    def _enum(self, node: Any, count: int) -> Column:
        _, codes, names, *rest = _check_fields(node, (3, 4))
        with _at(2):
            if not isinstance(names, (list, tuple)):
                raise Fault(Damaged, f"names of variants: expected an array, found {kind_of(names)}")
            for index, name in enumerate(names):
                if type(name) is not str:
                    raise Fault(Damaged, f"names of variants: expected text, found {kind_of(name)}").at(index)
        with _at(1):
            found = self._typed(codes, count, "codes of variants", ("u8", "u16"))
            if count and found.max() >= len(names):
                row = int(np.argmax(found >= len(names)))
                what = f"row {row} is variant {found[row]}, but there are {len(names)}"
                raise Fault(Damaged, f"codes of variants: {what}")
        nodes = rest[0] if rest else [None] * len(names)
        if not isinstance(nodes, (list, tuple)) or len(nodes) != len(names):
            length = len(nodes) if isinstance(nodes, (list, tuple)) else kind_of(nodes)
            raise Fault(Damaged, f"columns of variants: expected an array of {len(names)}, found {length}").at(3)
        occurrences = np.bincount(found, minlength=len(names))
        columns: list[Column | None] = []
        for index, column in enumerate(nodes):
            if column is None:
                columns.append(None)
                continue
            try:
                columns.append(self.column(column, int(occurrences[index])))
            except Fault as fault:
                raise fault.at(index).at(3) from None
        return EnumColumn(found, list(names), columns)

    def _interleaved(self, node: Any, count: int) -> Column:
        _, names, tensor = _check_fields(node, (3,))
        with _at(2):
            what = "an interleaved column"
            dtype, shape, payload = self._tensor(tensor, count, what)
            if dtype not in NUMBERS or len(shape) != 2:
                raise Fault(
                    Damaged, f"{what}: expected numbers of shape [{count}, k], found {dtype} {list(shape)}"
                )
            values = self._resolver.array_of(dtype, shape, payload)
        with _at(1):
            column, used = self._described(names, values, 0)
            if used != shape[1]:
                raise Fault(Damaged, f"{what}: the names are for {used} numbers, but a row has {shape[1]}")
        return column

    def _described(self, names: Any, values: npt.NDArray[Any], used: int) -> tuple[Column, int]:
        """The column for a part of the names, and how many numbers of a row are used after it."""
        count = len(values)
        if names is None:
            if used == values.shape[1]:
                raise Fault(Damaged, f"an interleaved column: the names are for more than {used} numbers")
            return NumberColumn(values[:, used]), used + 1
        if not isinstance(names, (list, tuple, Mapping)):
            message = f"an interleaved column: expected a map, an array or null as names, found {kind_of(names)}"
            raise Fault(Damaged, message)
        if isinstance(names, Mapping):
            fields: dict[str, Column] = {}
            for index, (name, inner) in enumerate(names.items()):
                if type(name) is not str:
                    message = f"an interleaved column: expected text as a name, found {kind_of(name)}"
                    raise Fault(Damaged, message).at(2 * index)
                try:
                    fields[name], used = self._described(inner, values, used)
                except Fault as fault:
                    raise fault.at(2 * index + 1) from None
            return StructColumn(count, fields), used
        columns, first = [], used
        for index, inner in enumerate(names):
            try:
                column, used = self._described(inner, values, used)
            except Fault as fault:
                raise fault.at(index) from None
            columns.append(column)
        return TupleColumn(count, columns, values[:, first:used]), used

    def _rows(self, node: Any, count: int) -> Column:
        _, nodes = _check_fields(node, (2,))
        if not isinstance(nodes, (list, tuple)) or len(nodes) != count:
            length = len(nodes) if isinstance(nodes, (list, tuple)) else kind_of(nodes)
            raise Fault(Damaged, f"a column of items: expected an array of {count}, found {length}").at(1)
        values = []
        for index, item in enumerate(nodes):
            try:
                values.append(self._resolver.item(item))
            except Fault as fault:
                raise fault.at(index).at(1) from None
        return ItemColumn(values)

    # Parts of columns

    def _typed(
        self, node: Any, count: int, what: str, allowed: Collection[str], *, shared: bool = False
    ) -> npt.NDArray[Any]:
        """A typed array of `count` numbers of an allowed type."""
        dtype, payload = self._resolver.numbers_of(node, what, shared=shared)
        if dtype.name not in allowed:
            wanted = "numbers of 8 to 64 bits" if allowed is NUMBERS else " or ".join(allowed)
            raise Fault(Damaged, f"{what}: expected {wanted}, found {dtype.name}")
        assert dtype.numpy is not None
        values: npt.NDArray[Any] = payload.view(dtype.numpy)
        if len(values) != count:
            raise Fault(Damaged, f"{what}: expected {count} numbers, found {len(values)}")
        return values

    def bits(self, node: Any, count: int) -> npt.NDArray[np.bool_]:
        """Reads one bit for each row."""
        payload = self._resolver.bytes_of(node, "bits")
        if payload.nbytes != (count + 7) // 8:
            wanted = f"{(count + 7) // 8} bytes for {count} rows"
            raise Fault(Damaged, f"bits: expected {wanted}, found {payload.nbytes}")
        if count % 8 and payload[-1] >> count % 8:
            raise Fault(Damaged, f"bits: the unused bits of the last byte, 0x{payload[-1]:02x}, are not 0")
        self._resolver.take(count)
        return np.unpackbits(payload, count=count, bitorder="little").view(np.bool_)

    def lengths(self, node: Any, count: int) -> Lengths:
        """Reads the lengths of texts, byte strings, lists or maps."""
        with _at(1):
            if type(node) is int and node >= 0:
                if node * count >= _TOO_MANY:
                    raise Fault(Damaged, f"lengths: {count} times {node} overflows")
                return Lengths(count, node)
            numbers = self._typed(node, count, "lengths", _UNSIGNED)
            self._resolver.take(_OFFSET * count)
            if count and int(numbers.max()) * count >= _TOO_MANY and sum(numbers.tolist()) >= _TOO_MANY:
                raise Fault(Damaged, "lengths: their sum overflows")
            return Lengths(count, None, numbers)


def counts_of(content: Any) -> list[int]:
    """Checks `[rows, column, rows, column, ...]`, but not the columns, and returns the numbers of rows."""
    if not isinstance(content, (list, tuple)):
        raise Fault(Damaged, f"columns: expected an array, found {kind_of(content)}")
    if len(content) % 2:
        raise Fault(Damaged, f"columns: expected pairs of rows and column, found {len(content)} items")
    counts = []
    for index in range(0, len(content), 2):
        count = content[index]
        if type(count) is not int or not 0 <= count <= MAX_ROWS:
            found = count if type(count) is int else kind_of(count)
            message = f"columns: expected 0 to {MAX_ROWS} rows in a group, found {found}"
            raise Fault(Damaged, message).at(index)
        counts.append(count)
    return counts


_KINDS: dict[str, Callable[[ColumnReader, Any, int], Column]] = {
    "unit": ColumnReader._unit,
    "bool": ColumnReader._bool,
    "text": ColumnReader._text,
    "bytes": ColumnReader._bytes,
    "option": ColumnReader._option,
    "present": ColumnReader._present,
    "list": ColumnReader._list,
    "tuple": ColumnReader._tuple,
    "map": ColumnReader._map,
    "enum": ColumnReader._enum,
    "interleaved": ColumnReader._interleaved,
    "rows": ColumnReader._rows,
}


@contextlib.contextmanager
def _at(child: int) -> Iterator[None]:
    """Adds a step to faults of the block."""
    try:
        yield
    except Fault as fault:
        raise fault.at(child) from None


def _check_fields(node: Any, counts: tuple[int, ...]) -> Any:
    if len(node) not in counts:
        wanted = " or ".join(map(str, counts))
        raise Fault(Damaged, f"a column of kind {node[0]}: expected {wanted} items, found {len(node)}")
    return node


def _check_total(lengths: Lengths, found: int, what: str) -> None:
    if lengths.total != found:
        raise Fault(Damaged, f"{what}: the lengths together are {lengths.total} bytes, found {found}")


def _check_text(text: bytes, lengths: Lengths) -> None:
    """Checks that each row is UTF-8 by itself."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise Fault(Damaged, f"a column of texts: not UTF-8 from its byte {error.start} on") from None
    # The whole text is valid, so only a row that starts inside a character is wrong.
    starts = lengths.starts()
    inside = np.frombuffer(text, np.uint8)[starts] & 0xC0 == 0x80
    if inside.any():
        start = int(starts[np.argmax(inside)])
        raise Fault(Damaged, f"a column of texts: a row starts inside a character, at its byte {start}")


def references_in(content: Any, in_item: bool = False) -> Iterator[tuple[Tag, bool]]:
    """The references to buffers in columns, and whether each is inside an item of a column of kind `rows`."""
    if type(content) is Tag:
        if content.tag == REFERENCE:
            yield content, in_item
        else:
            yield from references_in(content.value, in_item)
    elif isinstance(content, Mapping):
        for key, value in content.items():
            yield from references_in(key, in_item)
            yield from references_in(value, in_item)
    elif isinstance(content, (list, tuple)):
        in_item = in_item or (len(content) == 2 and content[0] == "rows" and type(content[1]) is not str)
        for item in content:
            yield from references_in(item, in_item)
