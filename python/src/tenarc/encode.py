"""Encodes values as metadata and buffers."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import enum
import functools
import math
import os
import pathlib
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import cbor2
import numpy as np
import numpy.typing as npt
import xxhash

from . import accelerator, dtypes, items, named
from .calls import Call
from .decode import Resolver
from .dlpack import array_of
from .dtypes import NOT_IN_METADATA, DType, Order, Payload
from .errors import Fault, Limit, Unsupported, bounded_recursion
from .fields import frozen, has_typed_array, type_item
from .frames import has_columns
from .options import MAX_DEPTH, Limits, SaveOptions
from .table import Table
from .tags import (
    BIGNUM,
    COLUMN_MAJOR,
    COLUMNS,
    COMPLEX,
    EMBEDDED,
    NAMED,
    NEGATIVE_BIGNUM,
    REFERENCE,
    ROW_MAJOR,
    SOME,
    TYPE,
)
from .torch_arrays import from_torch
from .tree import parse
from .values import Numbers, Raw, Simple, Some, Tag, is_none, is_record

# Lists and dicts of at least `_LONG` entries of these types only are encoded by cbor2, which is faster.
_PLAIN = frozenset((int, str, bool, type(None)))
_LONG = 16
_NESTED = frozenset((list, tuple, dict))
_MIN_VIEW = 4096
# Keys of these types are read as what they are.
_PLAIN_KEYS = frozenset((str, int, float, bool, type(None), bytes))
# Longer keys are not kept.
_MAX_KEY = 64
_WITH_PAYLOAD = frozenset(
    (BIGNUM, NEGATIVE_BIGNUM, EMBEDDED, ROW_MAJOR, COLUMN_MAJOR, COMPLEX, NAMED, COLUMNS, *dtypes.BY_TAG)
)


class Encoded(NamedTuple):
    """The metadata and the buffers of a value."""

    metadata: bytes
    buffers: list[Payload]
    #: The dtype and shape of the first tensor that refers to each buffer. A byte string is an array of u8.
    tensors: list[tuple[str, tuple[int, ...]]]


def encode(value: Any, options: SaveOptions | None) -> Encoded:
    """Encodes a value. Without options there are no buffers: the metadata is a message."""
    encoder = Encoder(options)
    try:
        with bounded_recursion():
            encoder.value(value, 0)
    except Fault as fault:
        raise fault.kind(fault.message, path=fault.path()) from fault.__cause__
    return Encoded(b"".join(encoder.out), encoder.buffers, encoder.tensors)


class Encoder:
    def __init__(self, options: SaveOptions | None) -> None:
        self.out: list[bytes | memoryview] = []
        self.buffers: list[Payload] = []
        self.tensors: list[tuple[str, tuple[int, ...]]] = []
        self.max_depth = SaveOptions.max_depth if options is None else options.max_depth
        self.inline_below = math.inf if options is None else max(options.inline_below, 1)
        #: Whether this is metadata, which says each thing in one way (SPEC 5.3).
        self.is_metadata = options is not None
        self.stored: dict[bytes, int] | None = {} if options and options.dedup else None
        # A random seed: nobody can prepare two payloads with the same hash.
        self.seed = int.from_bytes(os.urandom(8), "big") if self.stored is not None else 0

    def value(self, value: Any, depth: int) -> None:
        """Writes a value that is nested `depth` levels deep."""
        if accelerator.compiled is not None and type(value) in _NESTED:
            accelerator.compiled.write(self, value, depth, Fault)
        else:
            self.other(value, depth)

    def other(self, value: Any, depth: int) -> None:
        """The same, without the accelerator, which leaves to this what is not plain or cannot be written."""
        write = _WRITERS.get(type(value))
        if write is None:
            write = _writer_of(value)
        write(self, value, depth)

    def levels(self, depth: int, count: int = 1) -> None:
        if depth + count > self.max_depth:
            raise Fault(Limit, f"nested deeper than {self.max_depth} levels, which readers refuse")

    # Plain values

    def write_none(self, _: None, depth: int) -> None:
        self.out.append(items.NULL)

    def write_bool(self, value: bool, depth: int) -> None:
        self.out.append(b"\xf5" if value else b"\xf4")

    def write_int(self, value: int, depth: int) -> None:
        value = int(value)
        if 0 <= value < 1 << 64:
            self.out.append(items.head(items.UNSIGNED, value))
        elif -(1 << 64) <= value < 0:
            self.out.append(items.head(items.NEGATIVE, -1 - value))
        elif -(1 << 127) <= value < 1 << 128:
            self.levels(depth)
            number, magnitude = (BIGNUM, value) if value > 0 else (NEGATIVE_BIGNUM, -1 - value)
            content = magnitude.to_bytes((magnitude.bit_length() + 7) // 8, "big")
            self.out.append(items.tag(number, items.byte_string(content)))
        else:
            raise Fault(Unsupported, "an integer does not fit 128 bits")

    def write_float(self, value: float, depth: int) -> None:
        self.out.append(b"\xfb" + struct.pack(">d", value))

    def write_str(self, value: str, depth: int) -> None:
        try:
            self.out.append(items.text(value))
        except UnicodeEncodeError as error:
            raise Fault(Unsupported, f"text is not valid Unicode: {error}") from None

    def write_bytes(self, value: Any, depth: int) -> None:
        view = memoryview(value)
        if not view.c_contiguous:
            view = memoryview(view.tobytes())
        payload = np.frombuffer(view, np.uint8)
        if payload.nbytes < self.inline_below:
            self.out += (items.head(items.BYTES, payload.nbytes), payload.tobytes())
        else:
            self.levels(depth, 2)
            self.reference([], payload, "u8", (payload.nbytes,))

    # Values that contain others

    def write_list(self, value: Any, depth: int) -> None:
        self.levels(depth)
        if len(value) >= _LONG:
            kinds = set(map(type, value))
            if kinds == {float}:
                return self.doubles(value)
            if kinds <= _PLAIN and (int not in kinds or _is_short(value)) and self.plain(value):
                return
        self.out.append(items.head(items.ARRAY, len(value)))
        for index, item in enumerate(value):
            try:
                (_WRITERS.get(type(item)) or _writer_of(item))(self, item, depth + 1)
            except Fault as fault:
                raise fault.at(index, str(index)) from fault.__cause__

    def doubles(self, value: Any) -> None:
        rows = np.empty(len(value), [("head", "u1"), ("value", ">f8")])
        rows["head"], rows["value"] = 0xFB, value
        self.out += (items.head(items.ARRAY, len(value)), rows.tobytes())

    def plain(self, value: Any) -> bool:
        """Writes a value with cbor2. `False` if a text is not valid Unicode: writing item by item shows which."""
        try:
            self.out.append(cbor2.dumps(value))
        except (UnicodeEncodeError, cbor2.CBOREncodeError):
            return False
        return True

    def write_mapping(self, value: Mapping[Any, Any], depth: int) -> None:
        self.levels(depth)
        if type(value) is dict and len(value) >= _LONG:
            kinds = {*map(type, value), *map(type, value.values())}
            if (
                kinds <= _PLAIN
                and (int not in kinds or _is_short([*value, *value.values()]))
                and self.plain(value)
            ):
                return
        if not _PLAIN_KEYS.issuperset(map(type, value)):
            _check_keys(value)
        self.out.append(items.head(items.MAP, len(value)))
        for index, (key, item) in enumerate(value.items()):
            try:
                if type(key) is str and len(key) <= _MAX_KEY:
                    self.out.append(_key(key))
                else:
                    self.value(key, depth + 1)
            except Fault as fault:
                raise fault.at(2 * index) from fault.__cause__
            try:
                (_WRITERS.get(type(item)) or _writer_of(item))(self, item, depth + 1)
            except Fault as fault:
                raise fault.at(2 * index + 1, str(key)) from fault.__cause__

    def write_dataclass(self, value: Any, depth: int) -> None:
        self.levels(depth)
        fields = dataclasses.fields(value)
        self.out.append(items.head(items.MAP, len(fields)))
        for index, field in enumerate(fields):
            self.write_str(field.name, depth)
            try:
                self.value(getattr(value, field.name), depth + 1)
            except Fault as fault:
                raise fault.at(2 * index + 1, field.name) from fault.__cause__

    def write_some(self, value: Some, depth: int) -> None:
        content = value.value
        if is_none(content) or isinstance(content, Some):
            self.levels(depth)
            self.out.append(items.head(items.TAG, SOME))
            depth += 1
        self.value(content, depth)

    def write_tag(self, value: Tag, depth: int) -> None:
        if value.tag == REFERENCE:
            raise Fault(Unsupported, f"tag {REFERENCE} refers to a buffer, and is reserved for writers")
        is_tensor = value.tag in (ROW_MAJOR, COLUMN_MAJOR)
        if self.is_metadata and (value.tag in NOT_IN_METADATA or (is_tensor and not has_typed_array(value.value))):
            what = f"cannot write this tag {value.tag}"
            raise Fault(Unsupported, f"{what}: archives have little-endian typed arrays only; write a numpy array")
        if value.tag == TYPE:
            try:
                type_item(value)
            except Fault as fault:
                raise Fault(Unsupported, fault.message) from None
        self.levels(depth)
        self.out.append(items.head(items.TAG, value.tag))
        # A reference stands for a whole value, never for the payload inside of one (SPEC 5.3).
        inside = self.without_references() if value.tag in _WITH_PAYLOAD else contextlib.nullcontext()
        try:
            with inside:
                self.value(value.value, depth + 1)
        except Fault as fault:
            raise fault.at(0) from fault.__cause__

    @contextlib.contextmanager
    def without_references(self) -> Iterator[None]:
        """Writes what the block writes into the metadata, whatever its length."""
        inline_below, self.inline_below = self.inline_below, math.inf
        try:
            yield
        finally:
            self.inline_below = inline_below

    def write_simple(self, value: Simple, depth: int) -> None:
        self.out.append(cbor2.dumps(value))

    def write_undefined(self, _: Any, depth: int) -> None:
        self.out.append(b"\xf7")

    def write_typed(self, value: Any, depth: int) -> None:
        """Writes a value of a named type (SPEC 7.2), or null for a time of numpy or pandas that is missing."""
        found = named.typed(value)
        if found is None:
            return self.write_none(None, depth)
        self.levels(depth, 3)
        self.out.append(_start_of(found.name, found.parameters))
        self.value(found.item, depth + 2)

    def write_path(self, value: pathlib.PurePath, depth: int) -> None:
        self.write_str(os.fspath(value), depth)

    def write_enum(self, value: enum.Enum, depth: int) -> None:
        self.write_str(value.name, depth)

    # Columns

    def write_table(self, value: Table, depth: int) -> None:
        self.levels(depth, 2)
        self.out.append(items.tag(COLUMNS, items.head(items.ARRAY, 2 * len(value.groups))))
        with Call():
            for group in value.groups:
                self.out.append(items.head(items.UNSIGNED, group.count))
                group.write(self, depth + 2)

    def write_frame(self, value: Any, depth: int) -> None:
        """Writes a data frame, an Arrow table or a structured array as columns."""
        try:
            table = Table(value)
        except Unsupported as error:
            raise Fault(Unsupported, error.message).at(0, error.path) from error.__cause__
        if not all(group.is_table() for group in table.groups):
            kind = type(value)
            what = f"cannot write a {kind.__module__}.{kind.__qualname__}"
            raise Fault(Unsupported, f"{what}: write `to_numpy()` for an array, or `tenarc.Table` of it for rows")
        self.write_table(table, depth)

    def write_text(self, value: bytes | memoryview, depth: int) -> None:
        """Writes the texts of a column: as text in the metadata, or as bytes in a buffer."""
        if len(value) < self.inline_below:
            self.out += (items.head(items.TEXT, len(value)), bytes(value))
        else:
            self.write_bytes(value, depth)

    # Tensors and numbers

    def write_scalar(self, value: np.generic, depth: int) -> None:
        if isinstance(value, (np.float32, np.float16)):
            bits = np.asarray(value, ">f4").tobytes()
            self.out.append(b"\xfa" + bits)
        elif isinstance(value, np.floating) and value.dtype.itemsize == 8:
            self.write_float(float(value), depth)
        elif isinstance(value, np.integer):
            self.write_int(int(value), depth)
        elif isinstance(value, np.bool_):
            self.write_bool(bool(value), depth)
        else:
            self.write_array(np.asarray(value), depth)

    def write_array(self, value: npt.NDArray[Any], depth: int) -> None:
        dtype = dtypes.of_numpy(value.dtype)
        if dtype is None and value.dtype.names is not None:
            return self.write_frame(value, depth)
        if dtype is None and value.dtype.kind in "mM":
            return self.write_typed(value, depth)
        if dtype is None and value.dtype.kind in "STU":
            return self.value(dtypes.texts_in(value), depth)
        if dtype is None:
            text = f"cannot write numpy's dtype {value.dtype}"
            # ml_dtypes stores one of these elements in each byte; the format packs them.
            is_unpacked = value.dtype.name.startswith(("float4", "float6"))
            raise Fault(Unsupported, text + ": pack the elements, and pass a `Raw`" * is_unpacked)
        order, payload = _payload(value)
        if type(value) is Numbers and value.ndim == 1 and dtype.tag is not None:
            self.write_numbers(dtype, payload, depth)
        else:
            self.write_tensor(dtype.name, value.shape, order, payload, depth)

    def write_complex(self, value: complex, depth: int) -> None:
        # As a `numpy.complex128`: CBOR has no complex numbers.
        self.write_array(np.array(value, np.complex128), depth)

    def write_exported(self, value: Any, depth: int) -> None:
        """Writes a tensor of another library, such as jax or cupy, that supports DLPack."""
        if getattr(value, "null_count", 0):
            # pyarrow would make NaN of what is missing.
            raise Fault(
                Unsupported, "cannot write an array in which values are missing: write `tenarc.Table` of it"
            )
        self.write_array(array_of(value), depth)

    def write_raw(self, value: Raw, depth: int) -> None:
        order = value.order if len(value.shape) > 1 else "C"
        self.write_tensor(value.dtype, value.shape, order, value.data, depth)

    def write_torch(self, value: Any, depth: int) -> None:
        name, shape, bits = from_torch(value)
        self.write_tensor(name, shape, *_payload(bits), depth)

    def write_tensor(self, name: str, shape: tuple[int, ...], order: str, payload: Payload, depth: int) -> None:
        known = dtypes.BY_NAME.get(name)
        self.levels(depth, 4 if known is not None and known.is_complex else 3)
        dims = items.array([items.head(items.UNSIGNED, dim) for dim in shape])
        if payload.nbytes >= self.inline_below:
            self.reference([items.text(name), dims, items.text(order)], payload, name, shape)
        elif known is not None and known.tag is not None and 0 not in shape:
            number = ROW_MAJOR if order == "C" else COLUMN_MAJOR
            self.out.append(items.tag(number, items.head(items.ARRAY, 2) + dims))
            self.typed_array(known, payload)
        else:
            fields = items.text(name) + dims + items.text(order)
            self.out.append(items.tag(NAMED, items.head(items.ARRAY, 4) + fields))
            self.out += (items.head(items.BYTES, payload.nbytes), payload.tobytes())

    def write_numbers(self, dtype: DType, payload: Payload, depth: int) -> None:
        self.levels(depth, 2)
        # Complex numbers are no packed sequence, so no buffer holds them.
        if payload.nbytes >= self.inline_below and dtype.is_packed:
            shape = (payload.nbytes * 8 // dtype.bits,)
            self.reference([items.text(dtype.name)], payload, dtype.name, shape)
        else:
            self.typed_array(dtype, payload)

    def typed_array(self, dtype: DType, payload: Payload) -> None:
        assert dtype.tag is not None
        if dtype.is_complex:
            self.out.append(items.head(items.TAG, COMPLEX))
        self.out.append(items.tag(dtype.tag, items.head(items.BYTES, payload.nbytes)))
        # A long payload is copied once, when everything is joined.
        is_view = payload.nbytes >= _MIN_VIEW and payload.flags.c_contiguous
        self.out.append(payload.data if is_view else payload.tobytes())

    def reference(self, fields: list[bytes], payload: Payload, dtype: str, shape: tuple[int, ...]) -> None:
        """Puts a payload into a buffer and writes a reference. With `dedup`, equal payloads share a buffer."""
        number = len(self.buffers)
        if self.stored is not None:
            key = xxhash.xxh3_128_digest(payload.data, self.seed) + payload.nbytes.to_bytes(8, "big")
            number = self.stored.setdefault(key, number)
        if number == len(self.buffers):
            self.buffers.append(payload)
            self.tensors.append((dtype, shape))
        content = items.array([*fields, items.head(items.UNSIGNED, number)])
        self.out.append(items.tag(REFERENCE, content))


@functools.lru_cache(4096)
def _key(key: str) -> bytes:
    """The item of a short key. Records have the same keys again and again."""
    try:
        return items.text(key)
    except UnicodeEncodeError as error:
        raise Fault(Unsupported, f"text is not valid Unicode: {error}") from None


@functools.lru_cache(256)
def _start_of(name: str, parameters: tuple[int | str, ...]) -> bytes:
    """A value of a type, up to its item. Records have the same types again and again."""
    encoder = Encoder(None)
    encoder.write_list(parameters, 0)
    return b"".join((items.head(items.TAG, TYPE), items.head(items.ARRAY, 3), items.text(name), *encoder.out))


def _check_keys(keys: Iterable[Any]) -> None:
    """Checks that keys can be read: that they can be keys again, and that no two of them are read as the same."""
    found: dict[Any, Any] = {}
    for index, key in enumerate(keys):
        read = _read_back(key)
        try:
            other = found.setdefault(read, key)
        except TypeError:
            text = f"cannot write a {type(key).__name__} as a key, because it is not read as a key of a dict"
            raise Fault(Unsupported, text).at(2 * index) from None
        if other is not key:
            raise Fault(Unsupported, f"two keys are read as the same: {other!r:.40} and {key!r:.40}").at(2 * index)


def _read_back(key: Any) -> Any:
    """What a key is read as."""
    if type(key) in _PLAIN_KEYS:
        return key
    if isinstance(key, (np.bool_, np.integer, np.floating)) and not isinstance(key, np.timedelta64):
        return key
    if isinstance(key, enum.Enum):
        return key.name
    if is_none(key):
        return None
    if type(key) is tuple:
        return tuple(map(_read_back, key))
    # A message with the key and nothing else. A key of the dict that is written cannot contain itself.
    encoder = Encoder(None)
    encoder.max_depth = MAX_DEPTH
    encoder.value(key, 0)
    resolver = Resolver(None, owned=True, limits=Limits(max_depth=MAX_DEPTH))
    return frozen(resolver.value(parse(b"".join(encoder.out), 0, resolver.limits, is_metadata=False)))


def _payload(value: npt.NDArray[Any]) -> tuple[Order, Payload]:
    """The order of an array, and its bytes in that order; a view if the array is contiguous."""
    # A subclass such as `numpy.matrix` would keep two dimensions in `reshape(-1)`.
    value = dtypes.little_endian(np.asarray(value))
    order = dtypes.order_of(value)
    flat = value.reshape(-1, order=order)
    payload = np.ascontiguousarray(flat).view(np.uint8)
    if value.dtype.kind == "b" and payload.size and payload.max() > 1:
        # A bool array can be a view of other bytes. Everything but 0 counts as true.
        payload = (payload != 0).view(np.uint8)
    return order, payload


def _is_short(value: Any) -> bool:
    """Whether all integers of a list fit the head of a CBOR item, that is, 64 bits and a sign."""
    return all(-(1 << 64) <= item < 1 << 64 for item in value if type(item) is int)


_Writer = Callable[[Encoder, Any, int], None]
_WRITERS: dict[type, _Writer] = {
    type(None): Encoder.write_none,
    bool: Encoder.write_bool,
    int: Encoder.write_int,
    float: Encoder.write_float,
    complex: Encoder.write_complex,
    str: Encoder.write_str,
    bytes: Encoder.write_bytes,
    bytearray: Encoder.write_bytes,
    memoryview: Encoder.write_bytes,
    list: Encoder.write_list,
    tuple: Encoder.write_list,
    dict: Encoder.write_mapping,
    Some: Encoder.write_some,
    Tag: Encoder.write_tag,
    Simple: Encoder.write_simple,
    type(cbor2.undefined): Encoder.write_undefined,
    Raw: Encoder.write_raw,
    np.ndarray: Encoder.write_array,
    Numbers: Encoder.write_array,
    Table: Encoder.write_table,
    **dict.fromkeys((*named.KINDS, datetime.datetime), Encoder.write_typed),
}


def _writer_of(value: Any) -> _Writer:
    """The writer for a type that is not in the table."""
    # First, as an enum member may be an `int` or `str` too.
    if isinstance(value, enum.Enum):
        return Encoder.write_enum
    if is_record(type(value)):
        return Encoder.write_dataclass
    if isinstance(value, np.ndarray) and not np.ma.isMaskedArray(value):
        return Encoder.write_array
    # Also finds numpy's scalars: `np.float64` is a `float`, `np.str_` a `str`.
    for base in (float, str, bytes, int, tuple, list, Some, Raw, Table):
        if isinstance(value, base):
            return _WRITERS[base]
    if isinstance(value, named.KINDS):
        return Encoder.write_typed
    if isinstance(value, pathlib.PurePath):
        return Encoder.write_path
    if isinstance(value, np.generic):
        return Encoder.write_scalar
    if isinstance(value, Mapping):
        return Encoder.write_mapping
    if isinstance(value, complex):
        return Encoder.write_complex
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return Encoder.write_torch
    if hasattr(value, "__dlpack__") and not isinstance(value, (type, np.ndarray)):
        return Encoder.write_exported
    if has_columns(value):
        return Encoder.write_frame
    kind = type(value)
    raise Fault(Unsupported, f"cannot write a {kind.__module__}.{kind.__qualname__}")
