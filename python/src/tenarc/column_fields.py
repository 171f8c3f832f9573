"""Finds the fields in the metadata of columns, and describes columns that are tensors (SPEC 5.10).

No column is read for this, except for the lengths of lists.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from . import dtypes
from .column_reader import NUMBERS, counts_of
from .columns import MAX_RANK, form_of, tuple_form
from .errors import Damaged, Fault, Torn, Version
from .fields import kind_of
from .tags import COLUMN_MAJOR, NAMED, REFERENCE, ROW_MAJOR
from .values import Tag

if TYPE_CHECKING:
    from .decode import Resolver

#: The fields that paths lead to, with the fields in them.
Tree = dict[str, "Tree"]


def is_position(name: str) -> bool:
    """Whether a component of a path is a decimal number, which is a row and never a field."""
    return name.isascii() and name.isdigit() and (name == "0" or not name.startswith("0"))


def kind_name(node: Any) -> str | None:
    """The kind of a column that is an array; `None` for numbers, tensors, structs and what is not a column."""
    return node[0] if isinstance(node, (list, tuple)) and node and type(node[0]) is str else None


def inner(node: Any) -> Any:
    """The column in a column of optional values or fields."""
    return node[2] if len(node) == 3 else None


def names_of(node: Any) -> Iterable[str]:
    """The names of the fields of the rows of a column. The elements of tuples are named by their positions."""
    if isinstance(node, Mapping):
        return [name for name in node if type(name) is str]
    kind = kind_name(node)
    if kind in ("option", "present"):
        return names_of(inner(node))
    if kind in ("tuple", "interleaved") and len(node) > 1:
        return map(str, range(len(node[1]))) if isinstance(node[1], (list, tuple)) else names_of(node[1])
    return item_names(node[1]) if kind == "rows" and len(node) == 2 else ()


def item_names(nodes: Any) -> Iterable[str]:
    """The keys of maps among items."""
    found: dict[str, None] = {}
    for node in nodes if isinstance(nodes, (list, tuple)) else ():
        node = untagged(node)
        if isinstance(node, Mapping):
            found.update((name, None) for name in node if type(name) is str)
    return found


def untagged(node: Any) -> Any:
    """The content of an item without the tags around it, if it is a map."""
    found = node
    while type(found) is Tag:
        found = found.value
    return found if isinstance(found, Mapping) else node


def is_table(node: Any) -> bool:
    """Whether the rows of a column are structs or tuples."""
    if isinstance(node, Mapping):
        return True
    kind = kind_name(node)
    return kind == "tuple" or (
        kind == "interleaved" and len(node) == 3 and isinstance(node[1], (Mapping, list, tuple))
    )


def field_tree(content: Any) -> Tree:
    """The fields of all groups of columns."""
    tree: Tree = {}
    for node in content[1::2] if isinstance(content, (list, tuple)) else ():
        _add_fields(node, tree)
    return tree


def _add_fields(node: Any, tree: Tree) -> None:
    if isinstance(node, Mapping):
        for name, column in node.items():
            if type(name) is str and not is_position(name):
                _add_fields(column, tree.setdefault(name, {}))
        return
    kind = kind_name(node)
    if kind in ("option", "present"):
        _add_fields(inner(node), tree)
    elif kind == "interleaved" and len(node) == 3 and isinstance(node[1], Mapping):
        _add_fields(node[1], tree)
    elif kind == "rows" and len(node) == 2 and isinstance(node[1], (list, tuple)):
        for item in node[1]:
            _add_item(item, tree)


def _add_item(node: Any, tree: Tree) -> None:
    node = untagged(node)
    if isinstance(node, Mapping):
        for name, item in node.items():
            if type(name) is str and not is_position(name):
                _add_item(item, tree.setdefault(name, {}))


class ColumnTensor(NamedTuple):
    """A description of a column that is a tensor of order C."""

    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    #: The buffer that has the elements of the tensor and nothing else.
    buffer: int | None = None


def tensors_in(content: Any, resolver: Resolver) -> dict[tuple[str, ...], ColumnTensor]:
    """The columns that are tensors, by the names of the fields that lead to them."""
    found: dict[tuple[str, ...], ColumnTensor] | None = None
    for index, count in enumerate(counts_of(content)):
        if not count:
            continue
        try:
            group = dict(_tensors(content[2 * index + 1], count, (), resolver))
        except Fault as fault:
            raise fault.at(2 * index + 1) from None
        found = group if found is None else _common(found, group)
    return found or {}


class Pieces(NamedTuple):
    """A column that is a tensor, each group of which is a whole buffer or in the metadata."""

    tensor: ColumnTensor
    #: For each group in a buffer: the number of the buffer, and which rows of the column it has.
    buffers: list[tuple[int, range]]


def pieces_in(content: Any, resolver: Resolver) -> dict[tuple[str, ...], Pieces]:
    """The columns that consist of whole buffers, by the names of the fields that lead to them.

    No buffer is read.
    """
    whole: dict[tuple[str, ...], ColumnTensor] | None = None
    groups, end = [], 0
    for index, count in enumerate(counts_of(content)):
        if not count:
            continue
        try:
            group = dict(_stored_columns(content[2 * index + 1], count, (), resolver))
        except Fault as fault:
            raise fault.at(2 * index + 1) from None
        groups.append((group, range(end, end + count)))
        end += count
        whole = group if whole is None else _common(whole, group)
    found = {}
    for fields, tensor in (whole or {}).items():
        parts = [(group[fields].buffer, rows) for group, rows in groups]
        found[fields] = Pieces(tensor, [(number, rows) for number, rows in parts if number is not None])
    return found


def _stored_columns(
    node: Any, count: int, fields: tuple[str, ...], resolver: Resolver
) -> Iterator[tuple[tuple[str, ...], ColumnTensor]]:
    if not isinstance(node, Mapping):
        return
    for name, column in node.items():
        if type(name) is str and not is_position(name):
            here = (*fields, name)
            found = _stored(column, count, resolver)
            if found is not None:
                yield here, found
            yield from _stored_columns(column, count, here, resolver)


def _stored(node: Any, count: int, resolver: Resolver) -> ColumnTensor | None:
    """A column that is one tensor; `None` if it consists of several, or is something else."""
    if kind_name(node) == "list" and len(node) == 3 and type(node[1]) is int:
        found = _stored(node[2], count * node[1], resolver)
        return None if found is None else found._replace(shape=(count, node[1], *found.shape[1:]))
    if type(node) is Tag or (kind_name(node) == "interleaved" and len(node) == 3):
        return (
            None
            if isinstance(node, (list, tuple)) and isinstance(node[1], Mapping)
            else described(node, count, resolver)
        )
    return None


def _common(
    first: dict[tuple[str, ...], ColumnTensor], second: dict[tuple[str, ...], ColumnTensor]
) -> dict[tuple[str, ...], ColumnTensor]:
    """What is a tensor in both of two groups, as one tensor."""
    common = {}
    for fields, one in first.items():
        other = second.get(fields)
        if other is not None and (one.dtype, one.shape[1:]) == (other.dtype, other.shape[1:]):
            shape = (one.shape[0] + other.shape[0], *one.shape[1:])
            common[fields] = ColumnTensor(one.dtype, shape, one.nbytes + other.nbytes)
    return common


def _tensors(
    node: Any, count: int, fields: tuple[str, ...], resolver: Resolver
) -> Iterator[tuple[tuple[str, ...], ColumnTensor]]:
    if isinstance(node, Mapping):
        for index, (name, column) in enumerate(node.items()):
            if type(name) is not str or is_position(name):
                continue
            here = (*fields, name)
            try:
                found = described(column, count, resolver)
                if found is not None:
                    yield here, found
                yield from _tensors(column, count, here, resolver)
            except Fault as fault:
                raise fault.at(2 * index + 1) from None
    elif kind_name(node) == "interleaved" and len(node) == 3 and isinstance(node[1], Mapping):
        tensor = _tensor(node[2], count, resolver)
        yield from _interleaved(node[1], tensor, fields)


def _interleaved(
    names: Any, tensor: ColumnTensor, fields: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], ColumnTensor]]:
    if fields:
        found = _part(names, tensor)
        if found is not None:
            yield fields, found
    if isinstance(names, Mapping):
        for name, part in names.items():
            if type(name) is str and not is_position(name):
                yield from _interleaved(part, tensor, (*fields, name))


def _part(names: Any, tensor: ColumnTensor) -> ColumnTensor | None:
    """A number, or a tuple of numbers, of an interleaved column."""
    if names is None:
        shape = tensor.shape[:1]
    elif isinstance(names, (list, tuple)) and names and set(names) == {None}:
        shape = (tensor.shape[0], len(names))
    else:
        return None
    if shape == tensor.shape:
        return tensor
    width = dtypes.BY_NAME[tensor.dtype].bits // 8
    return ColumnTensor(tensor.dtype, shape, math.prod(shape) * width)


def described(node: Any, count: int, resolver: Resolver) -> ColumnTensor | None:
    """Describes a column of `count` rows; `None` if it is not a tensor."""
    if type(node) is Tag:
        return _tagged(node, count, resolver)
    kind = kind_name(node)
    if kind == "bool" and len(node) == 2:
        found = resolver.length_of(node[1], "bits")
        if found != (count + 7) // 8:
            raise Fault(Damaged, f"bits: expected {(count + 7) // 8} bytes for {count} rows, found {found}").at(1)
        return ColumnTensor("bool", (count,), count)
    if kind == "list" and len(node) == 3:
        return _list(node, count, resolver)
    if kind == "tuple" and len(node) == 2 and isinstance(node[1], (list, tuple)):
        return _tuple(node[1], count, resolver)
    if kind == "interleaved" and len(node) == 3 and not isinstance(node[1], Mapping):
        return _part(node[1], _tensor(node[2], count, resolver))
    return None


def _tagged(node: Tag, count: int, resolver: Resolver) -> ColumnTensor:
    is_tensor = node.tag in (ROW_MAJOR, COLUMN_MAJOR, NAMED)
    if not is_tensor and node.tag != REFERENCE and node.tag not in dtypes.BY_TAG:
        raise Fault(Damaged, f"expected a column, found {kind_of(node)}")
    found = resolver.describe(node)
    if found is None or found.is_bytes or (_is_numbers(node) and found.dtype not in NUMBERS):
        raise Fault(Damaged, f"expected a column of numbers or tensors, found {kind_of(node)}")
    if not found.shape or found.shape[0] != count or (found.order != "C" and len(found.shape) > 1):
        what = f"{found.dtype} of shape {list(found.shape)} and order {found.order}"
        raise Fault(Damaged, f"a column: expected {count} rows of order C, found {what}")
    return ColumnTensor(found.dtype, found.shape, found.nbytes, found.buffer)


def _is_numbers(node: Any) -> bool:
    if type(node) is not Tag:
        return kind_name(node) == "interleaved" and len(node) == 3 and node[1] is None
    is_short = isinstance(node.value, (list, tuple)) and len(node.value) == 2
    return node.tag in dtypes.BY_TAG or (node.tag == REFERENCE and is_short)


def _tensor(node: Any, count: int, resolver: Resolver) -> ColumnTensor:
    """The tensor of an interleaved column."""
    found = _tagged(node, count, resolver) if type(node) is Tag and not _is_numbers(node) else None
    if found is None or len(found.shape) != 2 or found.dtype not in NUMBERS:
        raise Fault(Damaged, "an interleaved column: expected numbers with two dimensions").at(2)
    return found


def _list(node: Any, count: int, resolver: Resolver) -> ColumnTensor | None:
    try:
        lengths = resolver.columns.lengths(node[1], count)
    except (Torn, Version):
        # The archive ends before the lengths, or they are compressed with a codec that cannot be read here. Nobody
        # can say whether they are the same.
        return None
    each = lengths.same()
    if each is None:
        return None
    try:
        found = described(node[2], lengths.total, resolver)
    except Fault as fault:
        raise fault.at(2) from None
    if found is None or len(found.shape) >= MAX_RANK:
        return None
    return found._replace(shape=(count, each, *found.shape[1:]))


def _tuple(nodes: Any, count: int, resolver: Resolver) -> ColumnTensor | None:
    if not nodes or not all(map(_is_numbers, nodes)):
        return None
    found = [described(node, count, resolver) for node in nodes]
    parts = [part for part in found if part is not None]
    if len(parts) < len(nodes) or len({part.dtype for part in parts}) > 1:
        return None
    return ColumnTensor(parts[0].dtype, (count, len(parts)), sum(part.nbytes for part in parts))


_FORMS = {"unit": "null", "bool": "bool", "text": "text", "bytes": "bytes", "map": "map", "enum": "enum"}


def form(node: Any, resolver: Resolver) -> str:
    """A description of the rows of a column, as `Column.form` gives it."""
    if isinstance(node, Mapping):
        return "struct"
    if type(node) is Tag:
        found = resolver.describe(node)
        return "any" if found is None else form_of(found.dtype, found.shape[1:])
    kind = kind_name(node)
    if kind in ("option", "present"):
        return f"optional {form(inner(node), resolver)}"
    if kind == "list" and len(node) == 3:
        return f"list of {form(node[2], resolver)}"
    if kind == "tuple" and len(node) == 2 and isinstance(node[1], (list, tuple)):
        return tuple_form([form(column, resolver) for column in node[1]])
    if kind == "interleaved" and len(node) == 3:
        return _names_form(node[1], form(node[2], resolver).split("[")[0])
    return _FORMS.get(kind or "", "any")


def _names_form(names: Any, number: str) -> str:
    if isinstance(names, (list, tuple)):
        return tuple_form([_names_form(part, number) for part in names])
    return "struct" if isinstance(names, Mapping) else number
