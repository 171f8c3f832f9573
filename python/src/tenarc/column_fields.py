"""Finds the fields in the metadata of columns, and describes columns that are tensors (SPEC Annex A).

No column is read for this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import dtypes, named
from .column_reader import NUMBERS, counts_of, length_of
from .columns import MAX_RANK, form_of, tuple_form
from .errors import Damaged, Fault
from .fields import kind_name, kind_of, untyped
from .tags import COLUMN_MAJOR, NAMED, REFERENCE, ROW_MAJOR, TYPE
from .values import Tag

if TYPE_CHECKING:
    from .decode import Resolver


class Tree(dict[str, "Tree"]):
    """The fields that paths lead to, with the fields in them. Variants with a column are like fields."""

    #: Whether there are enums, whose unit variants are in none of the fields.
    has_enums = False


def is_position(name: str) -> bool:
    """Whether a component of a path is a decimal number, which is a row: in a dotted path always, and in a JSON
    Pointer if there is no field with this name."""
    return name.isascii() and name.isdigit() and (name == "0" or not name.startswith("0"))


#: Where the column in a column with the same fields is, by its kind.
_INNER = {"option": 2, "present": 2, "dict": 3, "type": 3}


def inner(node: Any) -> Any:
    """The column in one of optional values or fields, in a dict, or in one of a type; `None` in other columns."""
    place = _INNER.get(kind_name(node) or "")
    return node[place] if place is not None and len(node) == place + 1 else None


def names_of(node: Any) -> Iterable[str]:
    """The names of the fields of the rows of a column. The elements of tuples are named by their positions."""
    if isinstance(node, Mapping):
        return [name for name in node if type(name) is str]
    found = inner(node)
    if found is not None:
        return names_of(found)
    kind = kind_name(node)
    if kind == "enum":
        return [name for name, _ in variants(node)]
    if kind == "tuple" and len(node) == 2:
        return map(str, range(len(node[1]))) if isinstance(node[1], (list, tuple)) else ()
    return item_names(node[1]) if kind == "rows" and len(node) == 2 else ()


def variants(node: Any) -> Iterator[tuple[str, Any]]:
    """The variants of a column of enums that have a column, and these columns."""
    if len(node) == 4 and all(isinstance(part, (list, tuple)) for part in node[2:]):
        for name, column in zip(node[2], node[3], strict=False):
            if type(name) is str and column is not None:
                yield name, column


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
        is_typed = found.tag == TYPE and isinstance(found.value, (list, tuple)) and len(found.value) == 3
        found = found.value[2] if is_typed else found.value
    return found if isinstance(found, Mapping) else node


def is_tuple(node: Any) -> bool:
    """Whether the rows of a column, or those that are there, are tuples."""
    found = inner(node)
    return kind_name(node) == "tuple" if found is None else is_tuple(found)


def is_table(node: Any) -> bool:
    """Whether the rows of a column are structs or tuples."""
    node = untyped(node)
    kind = kind_name(node)
    return isinstance(node, Mapping) or kind == "tuple" or (kind == "dict" and is_table(inner(node)))


def field_tree(content: Any) -> Tree:
    """The fields of all groups of columns."""
    tree = Tree()
    for node in content[1::2] if isinstance(content, (list, tuple)) else ():
        _add_fields(node, tree)
    return tree


def _add_fields(node: Any, tree: Tree) -> None:
    if isinstance(node, Mapping):
        for name, column in node.items():
            if type(name) is str:
                _add_fields(column, tree.setdefault(name, Tree()))
        return
    if kind_name(node) == "enum":
        tree.has_enums = True
        for name, column in variants(node):
            _add_fields(column, tree.setdefault(name, Tree()))
        return
    found = inner(node)
    if found is not None:
        _add_fields(found, tree)
    elif kind_name(node) == "rows" and len(node) == 2 and isinstance(node[1], (list, tuple)):
        for item in node[1]:
            _add_item(item, tree)


def _add_item(node: Any, tree: Tree) -> None:
    node = untagged(node)
    if isinstance(node, Mapping):
        for name, item in node.items():
            if type(name) is str:
                _add_item(item, tree.setdefault(name, Tree()))


class ColumnTensor(NamedTuple):
    """A description of a column that is a tensor of order C."""

    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    order: str = "C"
    #: The buffer that has the elements of the tensor and nothing else.
    buffer: int | None = None


def tensors_in(content: Any, resolver: Resolver) -> dict[tuple[str, ...], ColumnTensor]:
    """The columns that are tensors, by the names of the fields that lead to them. No buffer is read."""
    whole: dict[tuple[str, ...], ColumnTensor] | None = None
    for index, count in enumerate(counts_of(content)):
        if not count:
            continue
        try:
            group = dict(_tensors(content[2 * index + 1], count, (), resolver))
        except Fault as fault:
            raise fault.at(2 * index + 1) from None
        whole = group if whole is None else _common(whole, group)
    return whole or {}


def _common(
    first: dict[tuple[str, ...], ColumnTensor], second: dict[tuple[str, ...], ColumnTensor]
) -> dict[tuple[str, ...], ColumnTensor]:
    """What is a tensor in both of two groups, as one tensor."""
    common = {}
    for fields, one in first.items():
        other = second.get(fields)
        found = None if other is None else _joined((one, other))
        if other is not None and found is not None:
            common[fields] = found._replace(shape=(one.shape[0] + other.shape[0], *found.shape))
    return common


def _joined(tensors: Sequence[ColumnTensor | None]) -> ColumnTensor | None:
    """Tensors as one whose dtype holds the elements of all, and whose shape is that of a row."""
    found = dtypes.common(None if tensor is None else (tensor.dtype, tensor.shape[1:]) for tensor in tensors)
    if found is None:
        return None
    total = 0
    for tensor in tensors:
        if tensor is not None:
            known = dtypes.BY_NAME.get(tensor.dtype)
            wide = 1 if known is None else dtypes.BY_NAME[found[0]].bits // known.bits
            total += wide * tensor.nbytes
    return ColumnTensor(found[0], found[1], total)


def _tensors(
    node: Any, count: int, fields: tuple[str, ...], resolver: Resolver
) -> Iterator[tuple[tuple[str, ...], ColumnTensor]]:
    node = untyped(node)
    if not isinstance(node, Mapping):
        return
    for index, (name, column) in enumerate(node.items()):
        if type(name) is not str:
            continue
        here = (*fields, name)
        try:
            found = described(column, count, resolver)
            if found is not None:
                yield here, found
            yield from _tensors(column, count, here, resolver)
        except Fault as fault:
            raise fault.at(2 * index + 1) from None


def described(node: Any, count: int, resolver: Resolver) -> ColumnTensor | None:
    """Describes a column of `count` rows; `None` if it is not a tensor."""
    node = untyped(node)
    if type(node) is Tag:
        return _tagged(node, count, resolver)
    kind = kind_name(node)
    if kind == "bool" and len(node) == 2:
        length = resolver.length_of(node[1], "bits")
        if length != (count + 7) // 8:
            raise Fault(Damaged, f"bits: expected {(count + 7) // 8} bytes for {count} rows, found {length}").at(1)
        return ColumnTensor("bool", (count,), count)
    if kind == "array" and len(node) == 3:
        each = length_of(node[1], count)
        try:
            found = described(node[2], count * each, resolver)
        except Fault as fault:
            raise fault.at(2) from None
        return None if found is None else _with(found, (count, each, *found.shape[1:]))
    if kind == "tuple" and len(node) == 2 and isinstance(node[1], (list, tuple)):
        found = _joined([described(column, count, resolver) for column in node[1]])
        return None if found is None else _with(found, (count, len(node[1]), *found.shape))
    return None


def _with(tensor: ColumnTensor, shape: tuple[int, ...]) -> ColumnTensor | None:
    """A tensor with another shape, unless numpy has no arrays of so many dimensions."""
    return None if len(shape) > MAX_RANK else tensor._replace(shape=shape)


def _tagged(node: Tag, count: int, resolver: Resolver) -> ColumnTensor:
    is_tensor = node.tag in (ROW_MAJOR, COLUMN_MAJOR, NAMED)
    if not is_tensor and node.tag != REFERENCE and node.tag not in dtypes.BY_TAG:
        raise Fault(Damaged, f"expected a column, found {kind_of(node)}")
    found = resolver.describe(node)
    if found is None or found.is_bytes or (is_packed(node) and found.dtype not in NUMBERS):
        raise Fault(Damaged, f"expected a column of numbers or tensors, found {kind_of(node)}")
    if not found.shape or found.shape[0] != count or (found.order != "C" and len(found.shape) > 1):
        what = f"{found.dtype} of shape {list(found.shape)} and order {found.order}"
        raise Fault(Damaged, f"a column: expected {count} rows of order C, found {what}")
    return ColumnTensor(found.dtype, found.shape, found.nbytes, buffer=found.buffer)


def is_packed(node: Tag) -> bool:
    """Whether a tag is around a packed sequence, in the metadata or in a buffer."""
    is_short = isinstance(node.value, (list, tuple)) and len(node.value) == 2
    return node.tag in dtypes.BY_TAG or (node.tag == REFERENCE and is_short)


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
    known = named.form(*node[1:3]) if kind == "type" and len(node) == 4 else None
    if known is not None:
        return known
    if kind in ("dict", "type"):
        return form(inner(node), resolver)
    if kind in ("list", "array") and len(node) == 3:
        return f"list of {form(node[2], resolver)}"
    if kind == "tuple" and len(node) == 2 and isinstance(node[1], (list, tuple)):
        return tuple_form([form(column, resolver) for column in node[1]])
    return _FORMS.get(kind or "", "any")
