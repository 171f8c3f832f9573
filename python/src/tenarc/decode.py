"""Turns metadata into values: replaces tags by the tensors, numbers and options they stand for."""

from __future__ import annotations

from itertools import chain
from typing import Any, NamedTuple, Protocol

import cbor2
import numpy as np

from . import accelerator, dtypes, named
from .calls import Read
from .column_reader import ColumnReader, references_in
from .columns import ABSENT, Column, NumberColumn, memory_of
from .dtypes import DType, Order, Payload
from .errors import Damaged, Error, Fault, Limit, Mismatch, bounded_recursion
from .fields import (
    Decoded,
    bignum,
    brief,
    check_length,
    dtype_name,
    fields_of,
    frozen,
    kind_of,
    listed,
    order_of,
    passed_over,
    payload_of,
    type_item,
)
from .options import DEFAULT_READING, Limits, Reading, check_memory
from .segment import Header
from .table import Table
from .tags import (
    BIGNUM,
    COLUMN_MAJOR,
    COLUMNS,
    COMPLEX,
    NAMED,
    NEGATIVE_BIGNUM,
    REFERENCE,
    ROW_MAJOR,
    SOME,
    TYPE,
)
from .tree import located, parse
from .values import Numbers, Raw, Some, Tag


def plain_of(node: Any, depth: int = 4) -> Any:
    """The value of a node that needs no decoding, as most rows do not; `ABSENT` for any other node.

    So is a node with more than `depth` levels of others in it.
    """
    kind = type(node)
    if kind in _PLAIN:
        return node
    if kind is list:
        if _PLAIN.issuperset(map(type, node)):
            return list(node)
        items = []
        for item in node:
            items.append(plain_of(item, depth - 1) if depth else ABSENT)
            if items[-1] is ABSENT:
                return ABSENT
        return items
    if kind is dict and _TEXT.issuperset(map(type, node)):
        if _PLAIN.issuperset(map(type, node.values())):
            return dict(node)
        entries = {}
        for key, item in node.items():
            entries[key] = plain_of(item, depth - 1) if depth else ABSENT
            if entries[key] is ABSENT:
                return ABSENT
        return entries
    return ABSENT


def is_plain(tree: Any) -> bool:
    """Whether nothing in a tree needs decoding. Level by level, because that is fast in Python."""
    level = [tree]
    while True:
        kinds = {*map(type, level)}
        if not kinds <= _NESTED:
            return False
        lists = level if kinds == {list} else [node for node in level if type(node) is list]
        maps = level if kinds == {dict} else [node for node in level if type(node) is dict]
        inside = {*map(type, chain.from_iterable(lists)), *map(type, chain.from_iterable(map(dict.values, maps)))}
        if not _PLAIN.issuperset(map(type, chain.from_iterable(maps))):
            return False
        if inside <= _PLAIN:
            return True
        below = chain(chain.from_iterable(lists), chain.from_iterable(map(dict.values, maps)))
        level = [node for node in below if type(node) not in _PLAIN]


def _is_plain_map(node: Any) -> bool:
    return _TEXT.issuperset(map(type, node)) and _PLAIN.issuperset(map(type, node.values()))


_NOTHING: Payload = np.empty(0, np.uint8)
_PLAIN = frozenset((str, int, float, bool, type(None), bytes))
_TEXT = frozenset((str,))
# Long payloads of messages can be views.
_PAYLOAD = frozenset((bytes, memoryview))
_NESTED = frozenset((list, dict))
# It is worth finding out whether longer lists are plain.
_SHORT = 16


class Buffers(Protocol):
    """The buffers that references in metadata refer to."""

    @property
    def header(self) -> Header:
        """The header with their lengths."""

    @property
    def input(self) -> tuple[int, int]:
        """The bytes of the segment that are there: those of compressed buffers are the second number."""

    def payload(self, number: int, owned: bool) -> Payload:
        """The content of a buffer: a copy if `owned`, else it may be a view."""


def value_of(
    metadata: bytes,
    offset: int,
    buffers: Buffers | None,
    *,
    owned: bool,
    limits: Limits,
    elements: bool = True,
    reading: Reading = DEFAULT_READING,
    cut: type[Error] = Damaged,
) -> Any:
    """Decodes metadata and its buffers. `Damaged` if a buffer is not referred to."""
    resolver = Resolver(buffers, owned=owned, limits=limits, elements=elements, reading=reading)
    resolver.limit = limits.memory(*((len(metadata), 0) if buffers is None else buffers.input))
    # The tree is made for this call only.
    resolver.keeps_tree = False
    try:
        with bounded_recursion():
            return resolver.whole(parse(metadata, offset, limits, cut, is_metadata=buffers is not None))
    except Fault as fault:
        raise located(fault, metadata, offset) from None
    finally:
        resolver.release()


class Described(NamedTuple):
    """All of a tensor, a sequence of numbers or a byte string but its elements."""

    dtype: str
    shape: tuple[int, ...]
    order: Order
    nbytes: int
    #: The number of the buffer with the elements; `None` if they are in the metadata.
    buffer: int | None = None
    is_sequence: bool = False
    is_bytes: bool = False


def _check_little_endian(node: Any, what: str) -> None:
    """Columns say numbers in one way, in messages too."""
    if (
        type(node) is not Tag
        or node.tag in dtypes.NOT_IN_METADATA
        or (node.tag != COMPLEX and node.tag not in dtypes.BY_TAG)
    ):
        raise Fault(Damaged, f"{what}: expected a typed array of little-endian numbers")


class Resolver:
    """Replaces tags by values."""

    def __init__(
        self,
        buffers: Buffers | None,
        *,
        owned: bool,
        limits: Limits,
        elements: bool = True,
        reading: Reading = DEFAULT_READING,
    ) -> None:
        self.buffers = buffers
        self.owned = owned
        #: Whether payloads are read; if not, only the metadata is checked.
        self.elements = elements
        self.reading = reading
        self.limits = limits
        #: Whether the tree is decoded again later, so that no part of it may become part of a value.
        self.keeps_tree = True
        self._columns_reader: ColumnReader | None = None
        self._taken: dict[int, Payload] = {}
        # The memory so far.
        self._memory = 0
        #: How much that may be.
        self.limit = limits.memory(0) if buffers is None else limits.memory(*buffers.input)
        #: Which of the reads of a call this is, if the call reads several places.
        self.part: Read | None = None
        # Whether this is inside an item of a column of kind `rows`.
        self._in_item = False

    @property
    def columns(self) -> ColumnReader:
        """What reads columns. Most values have none."""
        if self._columns_reader is None:
            self._columns_reader = ColumnReader(self)
        return self._columns_reader

    def take(self, count: int) -> None:
        """Counts memory that is about to be allocated."""
        self._memory += count
        if self.part is not None:
            self.part.take(self._memory)
        else:
            check_memory(self._memory, self.limit)

    def release(self) -> None:
        """Breaks the cycle of references to the reader of columns, which would keep the segment in memory."""
        self._columns_reader = None

    def whole(self, tree: Any) -> Any:
        """Decodes the whole metadata. `Damaged` if a buffer is not referred to."""
        value = self.value(tree)
        for number in range(0 if self.buffers is None else len(self.buffers.header.lengths)):
            if number not in self._taken:
                raise Fault(Damaged, f"nothing refers to buffer {number}")
        return value

    def value(self, node: Any) -> Any:
        kind = type(node)
        if kind in _PLAIN:
            return node
        if kind is Tag:
            return self._tag(node)
        if accelerator.compiled is not None and not self.keeps_tree and (kind is list or kind is dict):
            return accelerator.compiled.resolve(node, self.value, self._map, self._deep, Fault)
        if kind is list or kind is tuple:
            if not self.keeps_tree and kind is list and len(node) > _SHORT and is_plain(node):
                return node
            return list(node) if _PLAIN.issuperset(map(type, node)) else self._items(node)
        if node is cbor2.undefined:
            return None
        if kind is cbor2.CBORSimpleValue:
            return node
        if kind is Decoded:
            return node.value
        return self._map(node)

    def _deep(self, node: Any) -> Any:
        """The value of a node, without the accelerator."""
        before, self.keeps_tree = self.keeps_tree, True
        try:
            return self.value(node)
        finally:
            self.keeps_tree = before

    def _items(self, nodes: Any) -> list[Any]:
        items = []
        for index, node in enumerate(nodes):
            try:
                items.append(self.value(node))
            except Fault as fault:
                raise fault.at(index, str(index)) from None
        return items

    def _map(self, node: Any) -> dict[Any, Any]:
        if _is_plain_map(node):
            return dict(node)
        entries = {}
        for index, (key, item) in enumerate(node.items()):
            if type(key) not in _PLAIN:
                key = self._key(key, 2 * index)
            try:
                entries[key] = self.value(item)
            except Fault as fault:
                raise fault.at(2 * index + 1, str(key)) from None
        if len(entries) != len(node):
            raise Fault(Damaged, "a map has the same key twice")
        return entries

    def _key(self, node: Any, child: int) -> Any:
        try:
            key = self.value(node)
            key = named.Both(*map(frozen, key)) if type(key) is named.Both else frozen(key)
            hash(key)
            return key
        except Fault as fault:
            raise fault.at(child) from None
        except TypeError:
            if not self.elements:
                return object()
            message = f"cannot use a {type(key).__name__} as a key of a Python dict"
            raise Fault(Mismatch, message).at(child) from None

    def _tag(self, node: Tag) -> Any:
        number = node.tag
        if number in (ROW_MAJOR, COLUMN_MAJOR, NAMED):
            return self._tensor(node)
        if number in dtypes.BY_TAG or number == COMPLEX:
            dtype, payload = self._typed(node)
            return self._numbers(dtype, self._inline(payload))
        if number == REFERENCE:
            return self._reference(node.value)
        if number in (BIGNUM, NEGATIVE_BIGNUM):
            return bignum(node)
        if number == COLUMNS:
            return self._columns(node)
        if number == TYPE:
            item = type_item(node)
            try:
                found = self.value(item)
            except Fault as fault:
                raise fault.at(2).at(0) from None
            self.take(named.MEMORY)
            name, parameters, _ = node.value
            value = named.value_of(name, parameters, found)
            return named.Both(value, found) if self.reading.both and value is not found else value
        try:
            content = self.value(node.value)
        except Fault as fault:
            raise fault.at(0) from None
        if number == SOME:
            return Some(content) if content is None or type(content) is Some else content
        return Tag(number, content)

    # Tensors

    def _tensor(self, node: Tag) -> Any:
        name, shape, order, payload = self._tensor_fields(node)
        return self._array(name, shape, order, self._inline(payload))

    def _tensor_fields(self, node: Tag) -> tuple[str, tuple[int, ...], Order, Payload]:
        """Dtype name, shape, order and payload of a tensor in the metadata."""
        if node.tag == NAMED:
            name, dims, order, content = fields_of(node.value, (4,), "a tensor")
            if type(content) not in _PAYLOAD:
                raise Fault(Damaged, f"a tensor's payload: expected bytes, found {kind_of(content)}")
            return dtype_name(name), self._shape(dims), order_of(order), payload_of(content)
        # `[shape, typed array]`, or a plain array of numbers in place of the typed array.
        dims, elements = fields_of(node.value, (2,), "a tensor")
        shape, elements = self._shape(dims), passed_over(elements)
        if type(elements) is Tag:
            dtype, payload = self._typed(elements)
        else:
            dtype, payload = listed(elements)
        return dtype.name, shape, "C" if node.tag == ROW_MAJOR else "F", payload

    def _reference(self, content: Any) -> Any:
        found = self._referred(content)
        assert found.buffer is not None
        if not self.elements:
            return self._passed(found.buffer)
        if found.is_bytes:
            return self._byte_string(found.buffer)
        payload = self._take(found.buffer)
        if found.is_sequence:
            return self._numbers(dtypes.BY_NAME[found.dtype], payload)
        return self._array(found.dtype, found.shape, found.order, payload)

    def _byte_string(self, number: int) -> bytes | memoryview:
        if self.part is not None:
            # In the rows of a table, byte strings are `bytes`, of whatever length and wherever they are stored.
            with self.part.copying():
                return self._take(number).tobytes()
        payload = self._take(number)
        return payload.tobytes() if self.owned else payload.data.toreadonly()

    def _referred(self, content: Any) -> Described:
        """Reads a reference to a buffer (SPEC 5.3). The buffer itself is not read, only its length is checked."""
        fields = fields_of(content, (1, 2, 4), "a reference to a buffer")
        number = fields[-1]
        if self.buffers is None:
            raise Fault(Damaged, "a reference to a buffer, but a message has no buffers")
        if self._in_item:
            raise Fault(Damaged, "a reference to a buffer, but items among columns have no references")
        lengths = self.buffers.header.lengths
        if type(number) is not int or not 0 <= number < len(lengths):
            raise Fault(Damaged, f"no buffer {brief(number)}: there are {len(lengths)}")
        length = lengths[number]
        if len(fields) == 1:
            return Described("u8", (length,), "C", length, number, is_bytes=True)
        name = dtype_name(fields[0])
        if len(fields) == 2:
            dtype = dtypes.BY_NAME.get(name)
            if dtype is None or not dtype.is_packed:
                what = f"expected a sequence of numbers of 8 to 64 bits in a buffer, found one of {name}"
                raise Fault(Damaged, what)
            width = dtype.bits // 8
            if length % width:
                raise Fault(Damaged, f"buffer {number}: {length} bytes are not a whole number of {name}")
            return Described(name, (length // width,), "C", length, number, is_sequence=True)
        shape, order = self._shape(fields[1]), order_of(fields[2])
        check_length(name, shape, length)
        return Described(name, shape, order if len(shape) > 1 else "C", length, number)

    # Columns

    def _columns(self, node: Tag) -> Any:
        if not self.elements:
            for reference, in_item in references_in(node.value):
                self._in_item = in_item
                self._reference(reference.value)
            self._in_item = False
            return object()
        groups = self._groups(node)
        if self.reading.tables:
            return Table.of(groups, self.limit)
        rows: list[Any] = []
        for group in groups:
            self.take(memory_of(group, 0, group.count))
            rows += group.rows(0, group.count)
        return rows

    def _groups(self, node: Tag) -> list[Column]:
        try:
            return self.columns.groups(node.value)
        except Fault as fault:
            # The path of the error is that of the sequence, as for rows.
            fault.steps = [(child, None) for child, _ in fault.at(0).steps]
            raise

    def item(self, node: Any) -> Any:
        """Decodes an item of a column of kind `rows`. There are no references in it (SPEC 7)."""
        before, self._in_item = self._in_item, True
        try:
            return self.value(node)
        finally:
            self._in_item = before

    def numbers_of(self, node: Any, what: str, *, shared: bool) -> tuple[DType, Payload]:
        """The dtype and the payload of a typed array, which can be in a buffer.

        The payload can be that of another value too, if it is not `shared` with the caller of the package.
        """
        if type(node) is Tag and node.tag == REFERENCE:
            found = self._referred(node.value)
            if not found.is_sequence:
                raise Fault(Damaged, f"{what}: expected a reference to numbers, found one to other data")
            assert found.buffer is not None
            return dtypes.BY_NAME[found.dtype], self._take(found.buffer, copy=shared)
        if type(node) is not Tag:
            raise Fault(Damaged, f"{what}: expected a typed array, found {kind_of(node)}")
        _check_little_endian(node, what)
        dtype, payload = self._typed(node)
        return dtype, self._inline(payload) if shared else payload

    def tensor_of(self, node: Tag, what: str) -> tuple[str, tuple[int, ...], Order, Payload]:
        """Dtype name, shape, order and payload of a tensor, which can be in a buffer."""
        if node.tag != REFERENCE:
            name, shape, order, payload = self._tensor_fields(node)
            if node.tag != NAMED:
                _check_little_endian(node.value[1], what)
            check_length(name, shape, payload.nbytes)
            return name, shape, order, self._inline(payload)
        found = self._referred(node.value)
        if found.is_sequence or found.is_bytes:
            raise Fault(Damaged, f"{what}: expected a reference to a tensor, found one to other data")
        assert found.buffer is not None
        return found.dtype, found.shape, found.order, self._take(found.buffer)

    def array_of(self, name: str, shape: tuple[int, ...], payload: Payload, order: Order = "C") -> Any:
        """The array of a tensor."""
        return self._array(name, shape, order, payload)

    def bytes_of(self, node: Any, what: str) -> Payload:
        """The content of a byte string, which can be in a buffer."""
        if type(node) is bytes:
            return payload_of(node)
        if type(node) is not Tag or node.tag != REFERENCE:
            raise Fault(Damaged, f"{what}: expected bytes, found {kind_of(node)}")
        found = self._referred(node.value)
        if not found.is_bytes:
            raise Fault(Damaged, f"{what}: expected a reference to bytes, found one to other data")
        assert found.buffer is not None
        return self._take(found.buffer, copy=False)

    def length_of(self, node: Any, what: str) -> int:
        """The length of a byte string, which can be in a buffer."""
        if type(node) is bytes:
            return len(node)
        found = self._referred(node.value) if type(node) is Tag and node.tag == REFERENCE else None
        if found is None or not found.is_bytes:
            raise Fault(Damaged, f"{what}: expected bytes, found {kind_of(node)}")
        return found.nbytes

    def _passed(self, number: int) -> object:
        """A placeholder for a buffer that is not read. It is unequal to everything else, and can be a key."""
        self._taken[number] = _NOTHING
        return object()

    def describe(self, node: Tag) -> Described | None:
        """Describes a tensor, a sequence of numbers or a byte string. `None` if the node is something else.

        Buffers are not read.
        """
        if node.tag == REFERENCE:
            return self._referred(node.value)
        value = Resolver(self.buffers, owned=False, limits=self.limits).value(node)
        if isinstance(value, Raw):
            return Described(value.dtype, value.shape, value.order, value.data.nbytes)
        if not isinstance(value, np.ndarray):
            return None
        dtype = dtypes.of_numpy(value.dtype)
        assert dtype is not None
        return Described(dtype.name, value.shape, dtypes.order_of(value), value.nbytes)

    def _take(self, number: int, *, copy: bool = True) -> Payload:
        """The content of a buffer. If `owned`, every reference gets a copy of its own, except without `copy`."""
        assert self.buffers is not None
        taken = self._taken.get(number)
        if taken is None:
            taken = self._taken[number] = self._read_buffer(number)
        elif self.part is not None:
            if self.part.is_counted:
                self.take(taken.nbytes)
        elif self.owned and copy:
            self.take(taken.nbytes)
            taken = taken.copy()
        return taken

    def _read_buffer(self, number: int) -> Payload:
        """Reads a buffer, after it has been counted."""
        assert self.buffers is not None
        part, header = self.part, self.buffers.header
        found = None if part is None else part.in_memory(number)
        if found is not None:
            return found
        # A view takes no memory, unless it is copied where it is used again.
        length = header.lengths[number]
        if number in header.packed or (part is not None and part.is_repeated(number)):
            self.take(length)
        elif self.owned:
            # The header can claim any length, which is another error.
            self.take(min(length, sum(self.buffers.input)))
        found = self.buffers.payload(number, self.owned)
        if part is not None:
            part.took(number, found)
        return found

    def _inline(self, payload: Payload) -> Payload:
        return payload.copy() if self.owned and not payload.flags.writeable else payload

    def _typed(self, node: Tag) -> tuple[DType, Payload]:
        """The dtype of a typed array, and its payload in little-endian order."""
        if node.tag == COMPLEX:
            parts = node.value
            if not isinstance(parts, Tag) or parts.tag not in dtypes.BY_TAG:
                raise Fault(Damaged, "complex numbers: expected a typed array")
            dtype, payload = self._typed(parts)
            if dtype.name not in dtypes.COMPLEX_OF or payload.nbytes % (dtype.bits // 4):
                raise Fault(Damaged, f"{payload.nbytes} bytes of {dtype.name} do not make complex numbers")
            return dtypes.BY_NAME[dtypes.COMPLEX_OF[dtype.name]], payload
        if node.tag not in dtypes.BY_TAG:
            raise Fault(Damaged, f"expected a typed array, found tag {node.tag}")
        dtype, is_big = dtypes.BY_TAG[node.tag]
        if type(node.value) not in _PAYLOAD:
            raise Fault(Damaged, f"tag {node.tag}: expected bytes, found {kind_of(node.value)}")
        payload = payload_of(node.value)
        width = dtype.bits // 8
        if payload.nbytes % width:
            raise Fault(Damaged, f"tag {node.tag}: {payload.nbytes} bytes are not a whole number of {dtype.name}")
        if is_big:
            # One element alone would be a view with a negative stride, which cannot get another dtype.
            payload = np.ascontiguousarray(payload.reshape(-1, width)[:, ::-1]).reshape(-1)
        return dtype, payload

    def _numbers(self, dtype: DType, payload: Payload) -> Any:
        if dtype.numpy is None:
            return Raw(dtype.name, (payload.nbytes * 8 // dtype.bits,), payload)
        values = payload.view(dtype.numpy)
        # A complex number alone is an array, too.
        if self.reading.numbers or dtype.is_complex:
            return values.view(Numbers)
        self.take(memory_of(NumberColumn(values), 0, len(values)))
        return values.tolist()

    def _shape(self, dims: Any) -> tuple[int, ...]:
        if not isinstance(dims, (list, tuple)):
            raise Fault(Damaged, f"a shape: expected an array, found {kind_of(dims)}")
        if len(dims) > self.limits.max_rank:
            found = f"{len(dims)} dimensions, more than the limit of {self.limits.max_rank}"
            raise Fault(Limit, found)
        for dim in dims:
            if type(dim) is not int or not 0 <= dim < 1 << 64:
                raise Fault(Damaged, f"a shape: {brief(dim)} is not a valid dimension")
        return tuple(dims)

    def _array(self, name: str, shape: tuple[int, ...], order: Order, payload: Payload) -> Any:
        check_length(name, shape, payload.nbytes)
        order = order if len(shape) > 1 else "C"
        known = dtypes.BY_NAME.get(name)
        if not self.elements:
            return object()
        if known is None or known.numpy is None:
            return Raw(name, shape, payload, order)
        if name == "bool" and payload.size and payload.max() > 1:
            at = int(np.argmax(payload > 1))
            raise Fault(Damaged, f"bool {at} is {payload[at]}, expected 0 or 1")
        try:
            return payload.view(known.numpy).reshape(shape, order=order)
        except (ValueError, OverflowError) as error:
            raise Fault(Limit, f"numpy cannot make an array of shape {list(shape)}: {error}") from None
