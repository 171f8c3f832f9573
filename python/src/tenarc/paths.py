"""Paths to values inside values (SPEC 5.10), in metadata whose tags are as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from .errors import Mismatch, NotFound
from .tags import PAYLOADS
from .values import Tag


class Step(NamedTuple):
    """From a node to one of those inside it: by key, by position, or through a tag (`None`)."""

    node: Any
    key: Any

    def child(self) -> int:
        """The number of the child among those of its item."""
        if isinstance(self.node, Mapping):
            return 2 * [*map(_identity, self.node)].index(_identity(self.key)) + 1
        return self.key or 0


def _identity(key: Any) -> tuple[type, Any]:
    # 1 and `True` are the same key to Python, but not here.
    return type(key), key


def find(tree: Any, path: str) -> tuple[Any, list[Step]]:
    """The node at a path, and the steps to it.

    A path is dotted, as in `layers.3.weight`, or a JSON Pointer, as in `/layers/3/weight`. `NotFound`
    where it names nothing, or several values.
    """
    if not isinstance(path, str):
        raise Mismatch(f"a path is text, found {type(path).__name__}; values of an archive are found by `segment`")
    found: list[tuple[Any, list[Step]]] = []
    if path.startswith("/"):
        names = [name.replace("~1", "/").replace("~0", "~") for name in path[1:].split("/")]
        found += _follow(tree, names, [], dotted=False)
    if not found:
        # A key may begin with a slash itself.
        found += _follow(tree, path.split(".") if path else [], [], dotted=True)
    if len(found) > 1:
        raise NotFound("several values, of which a JSON Pointer names one", path=path)
    if not found:
        raise NotFound("no value", path=path)
    return found[0]


def _follow(node: Any, names: list[str], trail: list[Step], *, dotted: bool) -> Iterator[tuple[Any, list[Step]]]:
    if not names:
        yield node, trail
        return
    node, through = inside(node)
    # A key with dots is found by the same string, so that a step may take several parts.
    longest = len(names) if dotted and isinstance(node, Mapping) else 1
    for count in range(1, longest + 1):
        for key in _keys(node, ".".join(names[:count])):
            here = [*trail, *through, Step(node, key)]
            yield from _follow(node[key], names[count:], here, dotted=dotted)


def _keys(node: Any, name: str) -> Iterator[Any]:
    """The keys of a map, or positions in an array, that a name stands for."""
    digits = name.removeprefix("-")
    # Integers as they are written, of which 128 bits have 39 digits.
    is_number = digits.isascii() and digits.isdigit() and len(digits) < 40
    number = int(name) if is_number else -1
    is_number = is_number and str(number) == name
    if isinstance(node, (list, tuple)):
        if is_number and 0 <= number < len(node):
            yield number
    elif isinstance(node, Mapping):
        if name in node:
            yield name
        if is_number and number in node and _identity(number) in map(_identity, node):
            yield number


def inside(node: Any) -> tuple[Any, list[Step]]:
    """What the tags that paths do not see stand around."""
    trail = []
    while type(node) is Tag and node.tag not in PAYLOADS:
        trail.append(Step(node, None))
        node = node.value
    return node, trail


def payloads(node: Any, name: str = "") -> Iterator[tuple[str, Tag]]:
    """Every tensor, sequence and byte string that has a tag, with its path."""
    node, _ = inside(node)
    if type(node) is Tag:
        yield name, node
        return
    if isinstance(node, Mapping):
        entries: Any = node.items()
    elif isinstance(node, (list, tuple)):
        entries = enumerate(node)
    else:
        return
    for key, item in entries:
        if type(item) not in (str, int, float, bytes):
            yield from payloads(item, f"{name}.{key}" if name else str(key))
