"""Reads columns, and checks all of their lengths and codes before a row is made of them (SPEC 7)."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import dtypes
from .columns import (
    MAX_ROWS,
    BoolColumn,
    BytesColumn,
    Column,
    DictColumn,
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
    TypeColumn,
    UnitColumn,
)
from .errors import Damaged, Fault
from .fields import check_type, has_typed_array, kind_name, kind_of, untyped
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
        # Whether this is inside a dict, whose rows are given more than once.
        self._in_dict = False

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
        if node[0] not in _KINDS:
            raise Fault(Damaged, f"a column of the unknown kind {node[0]!r:.40}")
        found: Column = getattr(self, f"_{node[0]}")(node, count)
        return found

    def _tagged(self, node: Tag, count: int) -> Column:
        if node.tag in (ROW_MAJOR, COLUMN_MAJOR, NAMED):
            return self._tensors(node, count)
        if node.tag == REFERENCE and isinstance(node.value, (list, tuple)) and len(node.value) == 4:
            return self._tensors(node, count)
        if node.tag == REFERENCE or node.tag in dtypes.BY_TAG:
            numbers = self._typed(node, count, "a column of numbers", NUMBERS, shared=True)
            return NumberColumn(self._protected(numbers))
        raise Fault(Damaged, f"expected a column, found {kind_of(node)}")

    def _tensors(self, node: Tag, count: int) -> Column:
        name, shape, payload = self._tensor(node, count, "a column of tensors")
        each, payload = shape[1:], self._protected(payload)
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
        if node.tag in (ROW_MAJOR, COLUMN_MAJOR) and not has_typed_array(node.value):
            raise Fault(Damaged, f"{what}: expected a typed array as the elements")
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
        check_fields(node, (1,))
        return UnitColumn(count)

    def _bool(self, node: Any, count: int) -> Column:
        _, bits = check_fields(node, (2,))
        with _at(1):
            return BoolColumn(self.bits(bits, count))

    def _text(self, node: Any, count: int) -> Column:
        _, lengths, content = check_fields(node, (3,))
        found = self.lengths(lengths, count)
        with _at(2):
            text: bytes | memoryview
            if type(content) is str:
                text = content.encode()
            else:
                if type(content) is not Tag:
                    raise Fault(Damaged, f"a column of texts: expected text, found {kind_of(content)}")
                payload = self._resolver.bytes_of(content, "a column of texts")
                self._resolver.take(2 * payload.nbytes)
                # A view of a file can have other bytes later, which are perhaps no text.
                text = payload.data.toreadonly() if payload.flags.owndata else payload.tobytes()
            _check_total(found, len(text), "a column of texts")
            column = TextColumn(found, text)
            if not column.is_ascii:
                _check_text(text, found)
            return column

    def _bytes(self, node: Any, count: int) -> Column:
        _, lengths, content = check_fields(node, (3,))
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
        _, bits, _ = check_fields(node, (3,))
        with _at(1):
            found = self.bits(bits, count)
        return found, self._inner(node, 2, int(np.count_nonzero(found)))

    def _list(self, node: Any, count: int) -> Column:
        _, lengths, _ = check_fields(node, (3,))
        found = self.lengths(lengths, count, is_list=True)
        if count and found.same() is not None:
            what = f"a column of lists: all have the length {found.same()}, which must be a column of kind array"
            raise Fault(Damaged, what).at(1)
        return self._lists(found, node)

    def _array(self, node: Any, count: int) -> Column:
        _, each, _ = check_fields(node, (3,))
        with _at(1):
            lengths = Lengths(count, length_of(each, count))
        return self._lists(lengths, node)

    def _lists(self, lengths: Lengths, node: Any) -> Column:
        return ListColumn(lengths, self._inner(node, 2, lengths.total), numbers=self._resolver.reading.numbers)

    def _inner(self, node: Any, child: int, count: int) -> Column:
        """Reads a column in another one."""
        try:
            return self.column(node[child], count)
        except Fault as fault:
            raise fault.at(child) from None

    def _tuple(self, node: Any, count: int) -> Column:
        _, nodes = check_fields(node, (2,))
        if not isinstance(nodes, (list, tuple)) or not nodes:
            found = "an empty array" if isinstance(nodes, (list, tuple)) else kind_of(nodes)
            raise Fault(Damaged, f"columns of a tuple: expected an array with columns, found {found}").at(1)
        columns = []
        for index, column in enumerate(nodes):
            try:
                columns.append(self.column(column, count))
            except Fault as fault:
                raise fault.at(index).at(1) from None
        same = dtypes.common(map(_uniform, nodes))
        if same is not None:
            what = f"{len(nodes)} columns of {same[0]} of one shape, which must be one column of kind array"
            raise Fault(Damaged, f"a column of tuples: {what}")
        return TupleColumn(count, columns)

    def _dict(self, node: Any, count: int) -> Column:
        _, codes, rows, inner = check_fields(node, (4,))
        if type(rows) is not int or not 0 <= rows <= MAX_ROWS:
            found = rows if type(rows) is int else kind_of(rows)
            raise Fault(Damaged, f"a dict: expected at most {MAX_ROWS} rows, found {found}").at(2)
        with _at(1):
            numbers = self._typed(codes, count, "codes of a dict", ("u8",) if rows <= 1 << 8 else ("u16",))
            _check_codes(numbers, rows)
        if kind_name(untyped(inner)) == "dict":
            raise Fault(Damaged, "the column in a dict is a dict itself").at(3)
        before, self._in_dict = self._in_dict, True
        try:
            return DictColumn(numbers, self._inner(node, 3, rows))
        finally:
            self._in_dict = before

    def _type(self, node: Any, count: int) -> Column:
        # Rows that are not what the name says are read as they are.
        check_type(check_fields(node, (4,)), 1)
        return TypeColumn(node[1], node[2], self._inner(node, 3, count), both=self._resolver.reading.both)

    def _map(self, node: Any, count: int) -> Column:
        _, lengths, _, _ = check_fields(node, (4,))
        found = self.lengths(lengths, count)
        return MapColumn(found, self._inner(node, 2, found.total), self._inner(node, 3, found.total))

    def _enum(self, node: Any, count: int) -> Column:
        _, codes, names, *rest = check_fields(node, (3, 4))
        with _at(2):
            if not isinstance(names, (list, tuple)):
                raise Fault(Damaged, f"names of variants: expected an array, found {kind_of(names)}")
            for index, name in enumerate(names):
                if type(name) is not str:
                    raise Fault(Damaged, f"names of variants: expected text, found {kind_of(name)}").at(index)
            _check_variants(names)
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

    def _rows(self, node: Any, count: int) -> Column:
        _, nodes = check_fields(node, (2,))
        if not isinstance(nodes, (list, tuple)) or len(nodes) != count:
            length = len(nodes) if isinstance(nodes, (list, tuple)) else kind_of(nodes)
            raise Fault(Damaged, f"a column of items: expected an array of {count}, found {length}").at(1)
        values = []
        for index, item in enumerate(nodes):
            try:
                values.append(self._resolver.item(item))
            except Fault as fault:
                raise fault.at(index).at(1) from None
        return ItemColumn(values, copied=self._in_dict)

    # Parts of columns

    def _protected(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """An array in a dict is read-only, because several rows can be views of it."""
        if self._in_dict:
            array = array.view()
            array.flags.writeable = False
        return array

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

    def lengths(self, node: Any, count: int, *, is_list: bool = False) -> Lengths:
        """Reads the lengths of texts, byte strings, lists or maps. Those of a list are never one number."""
        with _at(1):
            if type(node) is int and node >= 0 and not is_list:
                return Lengths(count, length_of(node, count))
            numbers = self._typed(node, count, "lengths", _UNSIGNED)
            self._resolver.take(_OFFSET * count)
            if count and int(numbers.max()) * count >= _TOO_MANY and sum(numbers.tolist()) >= _TOO_MANY:
                raise Fault(Damaged, "lengths: their sum overflows")
            return Lengths(count, None, numbers)


def length_of(node: Any, count: int) -> int:
    """Reads the length that all of some rows have."""
    if type(node) is not int or node < 0:
        raise Fault(Damaged, f"the length of all rows: expected an unsigned integer, found {kind_of(node)}")
    if node * count >= _TOO_MANY:
        raise Fault(Damaged, f"lengths: {count} times {node} overflows")
    return node


def _uniform(node: Any) -> dtypes.Rows | None:
    """The dtype and the shape of the rows of a column that are numbers, bools, or arrays of them (SPEC 7.1)."""
    if type(node) is Tag:
        if node.tag in dtypes.BY_TAG:
            return dtypes.BY_TAG[node.tag][0].name, ()
        return (node.value[0], ()) if node.tag == REFERENCE and len(node.value) == 2 else None
    kind = kind_name(node)
    if kind == "bool":
        return "bool", ()
    inner = _uniform(node[2]) if kind == "array" else None
    return None if inner is None else (inner[0], (node[1], *inner[1]))


def _check_codes(codes: npt.NDArray[Any], rows: int) -> None:
    """Checks that codes number the rows in the order in which they first occur, and that every row occurs."""
    found = int(codes.max(initial=0)) + 1 if len(codes) else 0
    # Whatever comes after the greatest code is at most that.
    start = codes[: int(np.argmax(codes == found - 1)) + 1].astype(np.int64) if found else codes[:0]
    before = np.concatenate(([-1], np.maximum.accumulate(start)))[: len(start)]
    wrong = start > before + 1
    if wrong.any():
        row = int(np.argmax(wrong))
        raise Fault(Damaged, f"codes of a dict: row {row} has the code {codes[row]} before {before[row] + 1}")
    if found != rows:
        raise Fault(Damaged, f"codes of a dict: {found} rows occur, but there are {rows}")


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


#: For each of these kinds, a method reads it.
_KINDS = frozenset(
    (
        "unit",
        "bool",
        "text",
        "bytes",
        "option",
        "present",
        "list",
        "array",
        "dict",
        "type",
        "tuple",
        "map",
        "enum",
        "rows",
    )
)


@contextlib.contextmanager
def _at(child: int) -> Iterator[None]:
    """Adds a step to faults of the block."""
    try:
        yield
    except Fault as fault:
        raise fault.at(child) from None


def check_fields(node: Any, counts: tuple[int, ...]) -> Any:
    """Checks how many items a column of a kind has, and returns them."""
    if len(node) not in counts:
        wanted = " or ".join(map(str, counts))
        raise Fault(Damaged, f"a column of kind {node[0]}: expected {wanted} items, found {len(node)}")
    return node


def _check_total(lengths: Lengths, found: int, what: str) -> None:
    if lengths.total != found:
        raise Fault(Damaged, f"{what}: the lengths together are {lengths.total} bytes, found {found}")


def _check_text(text: bytes | memoryview, lengths: Lengths) -> None:
    """Checks that each row is UTF-8 by itself."""
    try:
        str(text, "utf-8")
    except UnicodeDecodeError as error:
        raise Fault(Damaged, f"a column of texts: not UTF-8 from its byte {error.start} on") from None
    # The whole text is valid, so only a row that starts inside a character is wrong.
    starts = lengths.starts()
    inside = np.frombuffer(text, np.uint8)[starts] & 0xC0 == 0x80
    if inside.any():
        start = int(starts[np.argmax(inside)])
        raise Fault(Damaged, f"a column of texts: a row starts inside a character, at its byte {start}")


def _check_variants(names: Sequence[Any]) -> None:
    texts = [name for name in names if type(name) is str]
    if len(set(texts)) < len(texts):
        raise Fault(Damaged, "names of variants: a name is there twice")


def references_in(content: Any, in_item: bool = False) -> Iterator[tuple[Tag, bool]]:
    """The references to buffers in columns, and whether each is inside an item of a column of kind `rows`.

    Also checks that the names in each enum are distinct. Those of structs are the keys of a dictionary.
    """
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
        if (
            not in_item
            and len(content) in (3, 4)
            and content[0] == "enum"
            and isinstance(content[2], (list, tuple))
        ):
            _check_variants(content[2])
        in_item = in_item or (len(content) == 2 and content[0] == "rows" and type(content[1]) is not str)
        for item in content:
            yield from references_in(item, in_item)
