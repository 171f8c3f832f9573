"""Reads and checks the fields of tensors, references and bignums in metadata."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import cbor2
import numpy as np

from . import dtypes
from .dtypes import DType, Order, Payload
from .errors import Damaged, Fault, Mismatch
from .tags import BIGNUM, COMPLEX, MEANINGS, TYPE
from .values import Numbers, Tag

#: The most bytes of the name and of a parameter of a type, and the most parameters.
_MAX_NAME, _MAX_PARAMETERS = 64, 16
# The class to which cbor2 decodes a map that is a key; it depends on the Python version.
_FROZEN_MAP: Any = type(next(iter(cbor2.loads(b"\xa1\xa0\x00"))))


class Decoded(NamedTuple):
    """A value that is decoded already, in place of a node of the metadata."""

    value: Any


def passed_over(node: Any) -> Any:
    """The content of an item without the tags around it that have no meaning here (SPEC 4)."""
    while type(node) is Tag and node.tag not in MEANINGS:
        node = type_item(node) if node.tag == TYPE else node.value
    return node


def type_item(node: Tag) -> Any:
    """The item of a value whose type is named (SPEC 7.2). Nobody here needs to know what the value means."""
    name, parameters, item = fields_of(node.value, (3,), "a value of a type")
    try:
        if not isinstance(parameters, (list, tuple)) or not _was_checked(name, parameters):
            check_type((name, parameters), 0)
        if item is None or item is cbor2.undefined:
            raise Fault(Damaged, "a value of a type: expected a value, found null, which has no type").at(2)
    except Fault as fault:
        raise fault.at(0) from None
    return item


def _was_checked(name: Any, parameters: Any) -> bool:
    """Whether a type is known to be right. There are few types, and many values of them."""
    try:
        return _is_right(name, *parameters)
    except TypeError:
        # Something cannot be hashed.
        return False


# For Python, 1 and `True` are equal.
@functools.lru_cache(256, typed=True)
def _is_right(name: Any, *parameters: Any) -> bool:
    try:
        check_type((name, parameters), 0)
    except Fault:
        return False
    return True


def check_type(fields: Any, first: int) -> None:
    """Checks the name and the parameters of a type, which are the fields from `first` on."""
    name, parameters = fields[first : first + 2]
    if type(name) is not str or not 1 <= len(name.encode()) <= _MAX_NAME:
        what = f"the name of a type: expected text of 1 to {_MAX_NAME} bytes, found {kind_of(name)}"
        raise Fault(Damaged, what).at(first)
    if not isinstance(parameters, (list, tuple)) or len(parameters) > _MAX_PARAMETERS:
        what = f"expected an array of at most {_MAX_PARAMETERS}, found {kind_of(parameters)}"
        raise Fault(Damaged, f"the parameters of a type: {what}").at(first + 1)
    for index, parameter in enumerate(parameters):
        if type(parameter) is not int and (type(parameter) is not str or len(parameter.encode()) > _MAX_NAME):
            what = f"expected an integer or text of at most {_MAX_NAME} bytes, found {kind_of(parameter)}"
            raise Fault(Damaged, f"a parameter of a type: {what}").at(index).at(first + 1)


def kind_name(node: Any) -> str | None:
    """The kind of a column that is an array; `None` for numbers, tensors, structs and what is not a column."""
    return node[0] if isinstance(node, (list, tuple)) and node and type(node[0]) is str else None


def untyped(node: Any) -> Any:
    """The column in one of values whose type is named."""
    while kind_name(node) == "type" and len(node) == 4:
        node = node[3]
    return node


def fields_of(content: Any, counts: tuple[int, ...], what: str) -> Any:
    """The fields of an array. Their number must be one of `counts`."""
    if not isinstance(content, (list, tuple)):
        raise Fault(Damaged, f"{what}: expected an array, found {kind_of(content)}")
    if len(content) not in counts:
        wanted = " or ".join(map(str, counts))
        raise Fault(Damaged, f"{what}: expected {wanted} fields, found {len(content)}")
    return content


def has_typed_array(content: Any) -> bool:
    """Whether the content of tag 40 or 1040 is a shape and a typed array, without a tag in front (SPEC 2.1)."""
    elements = content[1] if isinstance(content, (list, tuple)) and len(content) == 2 else None
    return type(elements) is Tag and (elements.tag == COMPLEX or elements.tag in dtypes.BY_TAG)


def dtype_name(name: Any) -> str:
    """Checks the name of a dtype, and returns it."""
    if type(name) is not str or len(name.encode()) > dtypes.MAX_NAME:
        raise Fault(Damaged, f"a dtype: {brief(name)} is not a valid name")
    return name


def order_of(order: Any) -> Order:
    """Checks the order of a tensor's elements, and returns it."""
    if order == "C":
        return "C"
    if order == "F":
        return "F"
    raise Fault(Damaged, f"expected the order C or F, found {brief(order)}")


def check_length(name: str, shape: tuple[int, ...], found: int) -> None:
    """Checks that the length of a payload fits its dtype and shape."""
    try:
        wanted = dtypes.payload_length(name, shape)
    except ValueError as error:
        raise Fault(Damaged, str(error)) from None
    if wanted is not None and found != wanted:
        what = f"{name} of shape {list(shape)}: expected {wanted} bytes, found {found}"
        raise Fault(Damaged, what)


def listed(nodes: Any) -> tuple[DType, Payload]:
    """The payload of a plain array of numbers: integers if all elements are integers, else doubles."""
    if not isinstance(nodes, (list, tuple)):
        raise Fault(Damaged, f"a tensor's elements: expected an array, found {kind_of(nodes)}")
    kinds = set(map(type, nodes))
    if kinds <= {int} and nodes:
        low, high = min(nodes), max(nodes)
        name = "i64" if low >= -(1 << 63) and high < 1 << 63 else "u64"
        exact = (low >= 0 and high < 1 << 64) or name == "i64"
    else:
        name = "f64"
        exact = kinds <= {int, float} and all(type(node) is float or abs(node) <= 1 << 53 for node in nodes)
    if not exact:
        raise Fault(Mismatch, "a tensor's elements: no number type holds all of them exactly")
    dtype = dtypes.BY_NAME[name]
    return dtype, np.array(nodes, dtype.numpy).view(np.uint8)


def bignum(node: Tag) -> Any:
    """The integer that a bignum stands for; a bignum of more than 128 bits stays a tag."""
    if type(node.value) is not bytes:
        raise Fault(Damaged, f"a bignum: expected bytes, found {kind_of(node.value)}")
    if len(node.value.lstrip(b"\0")) > 16:
        return node
    number = int.from_bytes(node.value, "big")
    if node.tag == BIGNUM:
        return number
    return -1 - number if number < 1 << 127 else node


def payload_of(payload: bytes | memoryview) -> Payload:
    """Bytes as a payload, without a copy."""
    return np.frombuffer(payload, np.uint8)


def kind_of(node: Any) -> str:
    """A description of an item, for errors."""
    return _container(node) or f"{type(node).__name__} {node!r:.40}"


def brief(node: Any) -> str:
    """The same for an item whose type is clear."""
    return _container(node) or f"{node!r:.40}"


def _container(node: Any) -> str | None:
    # cbor2 has several classes of arrays and maps. Which of them it takes, is of no interest to users.
    if isinstance(node, Tag):
        return f"tag {node.tag}"
    if isinstance(node, (list, tuple)):
        return "an array"
    return "a map" if isinstance(node, Mapping) else None


def frozen(key: Any) -> Any:
    """A hashable copy of a value, to be the key of a dict."""
    if isinstance(key, np.ndarray) and key.ndim == 0:
        # Such as a complex number.
        return key[()]
    if isinstance(key, memoryview):
        return bytes(key)
    if isinstance(key, Numbers):
        return tuple(key.tolist())
    if isinstance(key, list):
        return tuple(map(frozen, key))
    if isinstance(key, dict):
        return _FROZEN_MAP({name: frozen(item) for name, item in key.items()})
    if type(key) is Tag:
        return Tag(key.tag, frozen(key.value))
    return key
