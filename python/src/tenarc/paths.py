"""Finds the value at a path, and writes the paths of tensors (SPEC Annex A).

The metadata is a tree of items in which tags are not yet replaced by what they stand for.
"""

from __future__ import annotations

import math
import re
import secrets
import unicodedata
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Reversible, Sequence
from typing import Any, NamedTuple, cast

import cbor2
import xxhash

from . import named
from .column_fields import Tree, field_tree, is_packed, is_position
from .column_reader import references_in
from .columns import ABSENT, Column
from .errors import Fault, Mismatch, NotFound
from .fields import Decoded, bignum, type_item
from .tags import BIGNUM, COLUMNS, NEGATIVE_BIGNUM, PAYLOADS, REFERENCE, SOME, TYPE
from .values import Simple, Some, Tag


class Step(NamedTuple):
    """A step from a node to one inside it: the key in a map, the position in an array, or `None` for a tag."""

    node: Any
    key: Any

    def child(self) -> int:
        """The position of the inner item among the items in its parent, as `scan.offset_of` counts them."""
        if isinstance(self.node, Mapping):
            return 2 * [*map(_identity, self.node)].index(_identity(self.key)) + 1
        return self.key or 0


def _identity(key: Any) -> tuple[type, Any]:
    # For Python, 1 and `True` are equal. In the format they are different keys.
    return type(key), key


class Rows(Collection[Any], Reversible[Any]):
    """Rows that are stored as columns, in groups.

    It has all methods of a `Sequence`, but is none: polars makes a dict of each row of a `Sequence`, although it
    has the Arrow PyCapsule interface, too.
    """

    groups: list[Column]

    @abstractmethod
    def __getitem__(self, key: Any) -> Any:
        """Some of the rows, or a column."""

    def __contains__(self, row: object) -> bool:
        return Sequence.__contains__(cast(Any, self), row)

    def __reversed__(self) -> Iterator[Any]:
        return Sequence.__reversed__(cast(Any, self))

    def index(self, row: Any, start: int = 0, stop: int | None = None) -> int:
        """The number of the first row that equals this one. `ValueError` if there is none."""
        return Sequence.index(cast(Any, self), row, start, *(() if stop is None else (stop,)))

    def count(self, row: Any) -> int:
        """How many rows equal this one."""
        return Sequence.count(cast(Any, self), row)

    @abstractmethod
    def field_names(self) -> Mapping[str, None]:
        """The names of the fields of the rows."""

    @abstractmethod
    def value_of(self, columns: Levels) -> Any:
        """The values of a column as an array or a list."""

    @abstractmethod
    def tensor_of(self, columns: Levels) -> Any:
        """The column as a tensor; `None` if SPEC Annex A does not say that it is one."""

    @abstractmethod
    def row_of(self, columns: Levels, row: int) -> Any:
        """The value of a column in one row; `ABSENT` if the row has none."""


#: A column: for each group, the part of the column there, or `None` if no row of the group has such a field.
Levels = Sequence["Column | None"]


class AtColumn(NamedTuple):
    """A column, in place of a node of the metadata."""

    rows: Rows
    columns: Levels
    #: The names that lead to it from the rows.
    names: tuple[str, ...]


#: Reads columns or a packed sequence: from their node, and the steps that lead to it.
RowsOf = Callable[[Tag, "list[Step]"], "Rows | list[Any]"]


def find(tree: Any, path: str, rows_of: RowsOf | None = None) -> tuple[Any, list[Step]]:
    """Returns the node at a path, and the steps that lead to it.

    If the path leads into a row of columns, the node is the `Decoded` value, and the steps lead to the columns. If
    it leads to a column, the node is `AtColumn`. Without `rows_of`, no path leads there.

    A path is dotted, as in `layers.3.weight`, or a JSON Pointer, as in `/layers/3/weight`. `NotFound` if there
    is no value at the path, or if there are several.
    """
    if not isinstance(path, str):
        what = f"expected a path as text, found {type(path).__name__}"
        raise Mismatch(f"{what}; `segment` chooses a value of an archive by its number")
    found: list[tuple[Any, list[Step]]] = []
    if path.startswith("/"):
        found += _follow(tree, pointer_steps(path), [], rows_of, dotted=False)
    if not found:
        # The path can also be a dotted one whose first key starts with a slash.
        found += _follow(tree, path.split(".") if path else [], [], rows_of, dotted=True)
    if len(found) > 1:
        raise NotFound(
            "the path leads to several values; a JSON Pointer such as `/a/b` can tell them apart", path=path
        )
    if not found:
        raise NotFound("there is no value", path=path)
    return found[0]


def _follow(
    node: Any, names: list[str], trail: list[Step], rows_of: RowsOf | None, *, dotted: bool, in_row: bool = False
) -> Iterator[tuple[Any, list[Step]]]:
    if not names:
        yield Decoded(node) if in_row else node, trail
        return
    node, through = inside(node)
    if rows_of is not None and type(node) is Tag and (node.tag == COLUMNS or is_packed(node)):
        trail, through, in_row = [*trail, *through], [], True
        node = rows_of(node, trail)
    if isinstance(node, Rows):
        yield from ((found, trail) for found in _columns(node, node.groups, names, dotted=dotted))
        if not dotted and _field(node, node.groups, names[0]) is not None:
            return
    # A key may contain dots, so one step can use several parts of the path.
    longest = len(names) if dotted and isinstance(node, Mapping) else 1
    for count in range(1, longest + 1):
        for key in _keys(node, ".".join(names[:count])):
            here = trail if in_row else [*trail, *through, Step(node, key)]
            yield from _follow(node[key], names[count:], here, rows_of, dotted=dotted, in_row=in_row)


def _columns(
    rows: Rows, columns: Levels, names: list[str], *, dotted: bool, before: tuple[str, ...] = ()
) -> Iterator[AtColumn | Decoded]:
    """The columns, or values in columns, at a path that starts with the name of a field. `before` are the names
    that lead to it."""
    for count in range(1, len(names) + 1 if dotted else 2):
        name, left = ".".join(names[:count]), names[count:]
        found = None if dotted and is_position(name) else _field(rows, columns, name)
        if found is None:
            continue
        if not left:
            yield AtColumn(rows, found, (*before, name))
        elif is_position(left[0]) and (dotted or _field(rows, found, left[0]) is None):
            # `log.size.3` means the same as `log.3.size`.
            for row in _keys(rows, left[0]):
                value = rows.row_of(found, row)
                if value is not ABSENT:
                    inside_row = _follow(value, left[1:], [], None, dotted=dotted, in_row=True)
                    yield from (node for node, _ in inside_row)
        else:
            yield from _columns(rows, found, left, dotted=dotted, before=(*before, name))


def _field(rows: Rows, columns: Levels, name: str) -> Levels | None:
    """A field of columns; `None` if there is none."""
    if columns is rows.groups and name not in rows.field_names():
        return None
    found = [
        None if column is None or (is_position(name) and column.is_tuple()) else column.field(name)
        for column in columns
    ]
    return None if all(column is None for column in found) else found


def _keys(node: Any, name: str) -> Iterator[Any]:
    """The keys of a map, or the positions in an array, that one component of a path names."""
    if isinstance(node, (list, tuple, Rows)):
        # Only the form in which positions are written: without a sign or leading zeros.
        if name.isascii() and name.isdigit() and len(name) < 20 and str(number := int(name)) == name:
            yield from (number,) if number < len(node) else ()
    elif isinstance(node, Mapping):
        if name in node:
            yield name
        if _NOTATION.fullmatch(name):
            yield from (key for key in node if type(key) is not str and component(key) == name)


# Matches everything that can be the notation of a key that is not text.
_NOTATION = re.compile(
    r"""-?\d+ | -?\d[\d.e-]* | NaN | -?Infinity | false | true | null | undefined | .*[\])}'"]""",
    re.DOTALL | re.VERBOSE,
)


def component(key: Any) -> str:
    """The component of a path for a key: text unchanged, any other key in diagnostic notation."""
    return key if type(key) is str else _notation(key)


_WORDS = {False: "false", True: "true", None: "null", cbor2.undefined: "undefined"}
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n"}


def _notation(item: Any) -> str:
    """The diagnostic notation (RFC 8949, section 8) of an item, without indicators of its encoding."""
    kind = type(item)
    if kind is str:
        return f'"{"".join(map(_escaped, item))}"'
    if kind is int:
        return str(item)
    if kind is bytes:
        return f"h'{item.hex()}'"
    if kind is float:
        return _float(item)
    if kind in (list, tuple):
        return f"[{', '.join(map(_notation, item))}]"
    if isinstance(item, Mapping):
        return f"{{{', '.join(f'{_notation(key)}: {_notation(value)}' for key, value in item.items())}}}"
    if kind is Tag:
        if item.tag in (BIGNUM, NEGATIVE_BIGNUM) and type(item.value) is bytes:
            number = bignum(item)
            if type(number) is int:
                return str(number)
        return f"{item.tag}({_notation(item.value)})"
    if kind is Simple:
        return f"simple({item.value})"
    if kind is Some:
        # A key in a row of columns; elsewhere, keys are not decoded yet.
        return f"{SOME}({_notation(item.value)})"
    return _WORDS[item]


def _escaped(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    return f"\\u{ord(character):04x}" if unicodedata.category(character) == "Cc" else character


def _float(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    # Remove the plus sign and the leading zeros of the exponent.
    return re.sub(r"e\+?(-?)0*", r"e\1", repr(number))


def inside(node: Any) -> tuple[Any, list[Step]]:
    """Skips the tags around a node, which have no component in paths.

    Returns the node inside, and the steps to it.
    """
    trail = []
    while type(node) is Tag and node.tag not in PAYLOADS and node.tag != COLUMNS:
        content = node.value
        if node.tag == TYPE:
            try:
                content = type_item(node)
            except Fault:
                # Whoever reads it says what is wrong.
                break
        trail.append(Step(node, None))
        if node.tag == TYPE:
            trail.append(Step(node.value, 2))
        node = content
    return node, trail


def type_of(node: Any) -> named.Type | None:
    """The name and the parameters of the type that is around a tensor; `None` if there is none."""
    found = None
    while type(node) is Tag and node.tag not in PAYLOADS and node.tag != COLUMNS:
        found, content = None, node.value
        if node.tag == TYPE:
            content = type_item(node)
            found = node.value[0], tuple(node.value[1])
        node = content
    return found


class Place:
    """Where something is in a value. The path may be long, so it is written only when it is needed."""

    def __init__(
        self,
        ambiguous: _Ambiguous,
        steps: tuple[str, ...],
        in_key: bool,
        fields: tuple[str, ...] = (),
    ) -> None:
        self._ambiguous, self._steps, self._fields = ambiguous, steps, fields
        #: Whether it is inside a map key. No path leads there: the path has a `?` in place of the key.
        self.in_key = in_key

    def column(self, fields: tuple[str, ...]) -> Place:
        """The place of a column, by the names of the fields that lead from the sequence to it."""
        return Place(self._ambiguous, self._steps, self.in_key, fields)

    def path(self) -> str:
        """The path, which may lead to other values too."""
        return self._ambiguous.written(self._steps, self._fields)[0]

    def unique_path(self) -> str:
        """The path; `Mismatch` if it leads to other values too."""
        path, is_unique = self._ambiguous.written(self._steps, self._fields)
        if not is_unique:
            what = "no path leads to this tensor: a key on the way occurs twice in its map"
            raise Mismatch(what, path=path)
        return path


def places(tree: Any) -> Iterator[tuple[Place, Tag]]:
    """Every tensor, sequence of numbers, byte string with a tag, and sequence in columns, with its place."""
    ambiguous = _Ambiguous(tree)
    for steps, node, in_key in _tags(tree, (), False):
        yield Place(ambiguous, steps, in_key), node


def payloads(tree: Any) -> Iterator[tuple[Place, Tag]]:
    """Every tensor, sequence of numbers and byte string that has a tag, also inside map keys, with its place.

    Of columns, only the references to buffers.
    """
    for place, node in places(tree):
        if node.tag != COLUMNS:
            yield place, node
            continue
        for reference, _ in references_in(node.value):
            yield place, reference


def buffers(tree: Any) -> Iterator[tuple[int, Place]]:
    """Every reference to a buffer: the number of the buffer, and the place of the reference."""
    for place, node in payloads(tree):
        fields = node.value
        if node.tag == REFERENCE and isinstance(fields, (list, tuple)) and fields and type(fields[-1]) is int:
            yield fields[-1], place


def to_buffer(tree: Any, number: int) -> str | None:
    """The path of the first value that refers to a buffer; `None` if no value with a path does."""
    return next((place.path() for found, place in buffers(tree) if found == number), None)


def keys(tree: Any) -> list[str]:
    """The paths of all tensors, columns and plain values, in the order of the metadata.

    A list of plain values counts as one value, and so do an empty list and an empty map. Values that no path leads
    to are left out.
    """
    found: list[str] = []
    ambiguous = _Ambiguous(tree)

    def visit(node: Any, steps: tuple[str, ...]) -> None:
        if type(node) is Tag:
            node, _ = inside(node)
        if isinstance(node, Mapping) and node:
            for key, item in node.items():
                visit(item, (*steps, component(key)))
        elif isinstance(node, (list, tuple)) and not all(map(_is_leaf, node)):
            for index, item in enumerate(node):
                visit(item, (*steps, str(index)))
        elif type(node) is Tag and node.tag == COLUMNS:
            fields(field_tree(node.value), steps, ())
        else:
            add(steps, ())

    def fields(tree: Tree, steps: tuple[str, ...], names: tuple[str, ...]) -> None:
        for name, inner in tree.items():
            fields(inner, steps, (*names, name))
        if not tree or tree.has_enums:
            add(steps, names)

    def add(steps: tuple[str, ...], names: tuple[str, ...]) -> None:
        path, is_unique = ambiguous.written(steps, names)
        if is_unique:
            found.append(path)

    visit(tree, ())
    return found


#: The types of values that have no others in them.
_LEAVES = frozenset((str, int, float, bool, type(None), bytes, Simple, type(cbor2.undefined)))


def _is_leaf(node: Any) -> bool:
    """Whether a node is a plain value. Bignums, optional values and long byte strings are tags."""
    if type(node) is not Tag:
        return type(node) in _LEAVES
    node, _ = inside(node)
    if type(node) is not Tag:
        return type(node) in _LEAVES
    return node.tag == REFERENCE and isinstance(node.value, (list, tuple)) and len(node.value) == 1


def _tags(node: Any, steps: tuple[str, ...], in_key: bool) -> Iterator[tuple[tuple[str, ...], Tag, bool]]:
    """Every tag with a payload or columns, with the components of its path, and whether it is inside a map key.

    A key comes before its value. Nothing is made for plain values, of which there can be very many.
    """
    if type(node) is Tag:
        node, _ = inside(node)
    if type(node) is Tag:
        yield steps, node, in_key
    elif isinstance(node, Mapping):
        for key, item in node.items():
            if type(key) is not str:
                yield from _tags(key, (*steps, "?"), True)
            if type(item) not in _LEAVES:
                yield from _tags(item, (*steps, component(key)), in_key)
    elif isinstance(node, (list, tuple)):
        for index, item in enumerate(node):
            if type(item) not in _LEAVES:
                yield from _tags(item, (*steps, str(index)), in_key)


def _children(node: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(node, Mapping):
        return ((component(key), item) for key, item in node.items())
    if isinstance(node, (list, tuple)):
        return ((str(index), item) for index, item in enumerate(node))
    return iter(())


def pointer_steps(pointer: str) -> list[str]:
    """The steps of a JSON Pointer (RFC 6901), such as `/layers/3/weight`."""
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer[1:].split("/")]


def _pointer(steps: Iterable[str]) -> str:
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)


class _Ambiguous:
    """The paths inside a value that lead to several places.

    Only hashes of the paths are kept. A long key is part of the path of everything under it, so the paths
    themselves could fill the memory. The hash has a random seed, so nobody can prepare keys with equal hashes.
    """

    def __init__(self, tree: Any) -> None:
        self._empty = xxhash.xxh3_128(seed=secrets.randbits(64))
        nothing: set[bytes] = set()
        # The hashes of paths that several values have, and of the paths of columns.
        self._dotted, self._columns = (
            self._repeated(tree, dotted=True) if _has_odd_keys(tree) else (nothing, nothing)
        )
        self._pointers, self._column_pointers = nothing, nothing
        if self._dotted or self._columns:
            self._pointers, self._column_pointers = self._repeated(tree, dotted=False)

    def written(self, steps: tuple[str, ...], fields: tuple[str, ...] = ()) -> tuple[str, bool]:
        """Writes a path: dotted if possible, else as a JSON Pointer. Also whether it leads to one value only.

        `steps` lead to a value, and `fields` from there to a column.
        """
        path = ".".join((*steps, *fields))
        # The paths of columns start as the path of their sequence does, which has so many parts between dots.
        own = len(".".join(steps).split(".")) if fields and steps else 0
        is_repeated = (
            self._has(self._dotted, path)
            or self._leads_to_row(self._columns, path, ".", own)
            # A field such as `3` or `3.x` of columns could be row 3, or `x` of it.
            or any(map(is_position, ".".join(fields).split(".")))
        )
        if not path.startswith("/") and (path or not steps) and not is_repeated:
            return path, True
        path = _pointer((*steps, *fields))
        own = len(steps) + 1 if fields else 0
        is_repeated = self._has(self._pointers, path) or self._leads_to_row(self._column_pointers, path, "/", own)
        return path, not is_repeated

    def _has(self, hashes: set[bytes], path: str) -> bool:
        if not hashes:
            return False
        state = self._empty.copy()
        state.update(path.encode())
        return state.digest() in hashes

    def _leads_to_row(self, hashes: set[bytes], path: str, separator: str, own: int) -> bool:
        """Whether a path could lead into the rows of other columns too. The first `own` parts of the path of a
        column lead to its own sequence.

        The rows are not looked at: a path that starts as the path of columns does is not used.
        """
        if not hashes:
            return False
        state = self._empty.copy()
        for index, part in enumerate(path.split(separator)):
            if index:
                if index != own and state.digest() in hashes:
                    return True
                state.update(separator.encode())
            state.update(part.encode())
        return False

    def _repeated(self, tree: Any, *, dotted: bool) -> tuple[set[bytes], set[bytes]]:
        """The hashes of the paths that several values have, and of the paths of columns."""
        seen: set[bytes] = set()
        repeated: set[bytes] = set()
        columns: set[bytes] = set()

        def visit(node: Any, path: Any, before: str) -> None:
            node, _ = inside(node)
            digest = path.digest()
            (repeated if digest in seen else seen).add(digest)
            if type(node) is Tag and node.tag == COLUMNS:
                columns.add(digest)
                fields(field_tree(node.value), path, before)
            for name, item in _children(node):
                visit(item, longer(path, name, before), ".")

        def fields(tree: Tree, path: Any, before: str) -> None:
            for name, inner in tree.items():
                deeper = longer(path, name, before)
                digest = deeper.digest()
                (repeated if digest in seen else seen).add(digest)
                fields(inner, deeper, ".")

        def longer(path: Any, name: str, before: str) -> Any:
            deeper = path.copy()
            deeper.update((before + name if dotted else _pointer((name,))).encode())
            return deeper

        visit(tree, self._empty, "")
        return repeated, columns


def _has_odd_keys(node: Any) -> bool:
    """Whether some keys could make two paths equal: keys with dots, empty keys, or two with one component."""
    if type(node) is Tag:
        node, _ = inside(node)
    if type(node) is Tag and node.tag == COLUMNS:
        return _has_odd_fields(field_tree(node.value))
    if isinstance(node, Mapping):
        names = [*map(component, node)]
        if "" in names or "." in "".join(names) or len({*names}) < len(names):
            return True
        node = node.values()
    elif not isinstance(node, (list, tuple)):
        return False
    return any(_has_odd_keys(item) for item in node if type(item) not in _LEAVES)


def _has_odd_fields(tree: Tree) -> bool:
    return any(not name or "." in name or _has_odd_fields(inner) for name, inner in tree.items())
