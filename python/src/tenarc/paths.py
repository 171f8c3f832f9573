"""Paths to values inside values (SPEC 5.10), in metadata whose tags are as they are."""

from __future__ import annotations

import math
import re
import secrets
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import cbor2
import xxhash

from .errors import Mismatch, NotFound
from .fields import bignum
from .tags import BIGNUM, NEGATIVE_BIGNUM, PAYLOADS
from .values import Simple, Tag


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
    """The keys of a map, or positions in an array, that a component stands for."""
    if isinstance(node, (list, tuple)):
        # As they are written: no sign, no leading zeros.
        if name.isascii() and name.isdigit() and len(name) < 20 and str(number := int(name)) == name:
            yield from (number,) if number < len(node) else ()
    elif isinstance(node, Mapping):
        if name in node:
            yield name
        if _NOTATION.fullmatch(name):
            yield from (key for key in node if type(key) is not str and component(key) == name)


# What the notation of a key that is not text may look like.
_NOTATION = re.compile(
    r"""-?\d+ | -?\d[\d.e-]* | NaN | -?Infinity | false | true | null | undefined | .*[\])}'"]""",
    re.DOTALL | re.VERBOSE,
)


def component(key: Any) -> str:
    """A key as a component of a path: a text as it is, any other key in diagnostic notation."""
    return key if type(key) is str else _notation(key)


_WORDS = {False: "false", True: "true", None: "null", cbor2.undefined: "undefined"}
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n"}


def _notation(item: Any) -> str:
    """The diagnostic notation of an item's value (RFC 8949, section 8), without how it is encoded."""
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
    # Exponents without a plus and leading zeros.
    return re.sub(r"e\+?(-?)0*", r"e\1", repr(number))


def inside(node: Any) -> tuple[Any, list[Step]]:
    """What the tags that paths do not see stand around."""
    trail = []
    while type(node) is Tag and node.tag not in PAYLOADS:
        trail.append(Step(node, None))
        node = node.value
    return node, trail


def payloads(tree: Any) -> Iterator[tuple[str, Tag]]:
    """Every tensor, sequence and byte string that has a tag, with its path."""
    ambiguous = _Ambiguous(tree)
    for steps, node in _walk(tree, ()):
        if type(node) is Tag and node.tag in PAYLOADS:
            yield ambiguous.written(steps), node


def _walk(node: Any, steps: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value with the components of its path, from outside in."""
    node, _ = inside(node)
    yield steps, node
    for name, item in _children(node):
        yield from _walk(item, (*steps, name))


def _children(node: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(node, Mapping):
        return ((component(key), item) for key, item in node.items())
    if isinstance(node, (list, tuple)):
        return ((str(index), item) for index, item in enumerate(node))
    return iter(())


def _pointer(steps: Iterable[str]) -> str:
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)


class _Ambiguous:
    """The paths of a value that lead to several places, by their hashes.

    A long key stands in the paths of all that is under it, so that the paths themselves could fill memory.
    Nobody can prepare keys of one hash, as its seed is random.
    """

    def __init__(self, tree: Any) -> None:
        self._empty = xxhash.xxh3_128(seed=secrets.randbits(64))
        self._dotted = self._repeated(tree, dotted=True) if _has_odd_keys(tree) else set()
        self._pointers = self._repeated(tree, dotted=False) if self._dotted else set()

    def written(self, steps: tuple[str, ...]) -> str:
        """A path, dotted or as a JSON Pointer; `Mismatch` if it leads to several values."""
        path = ".".join(steps)
        if not path.startswith("/") and (path or not steps) and not self._has(self._dotted, path):
            return path
        path = _pointer(steps)
        if self._has(self._pointers, path):
            raise Mismatch(
                "a tensor that no path leads to, as a key on the way stands twice in its map", path=path
            )
        return path

    def _has(self, hashes: set[bytes], path: str) -> bool:
        if not hashes:
            return False
        state = self._empty.copy()
        state.update(path.encode())
        return state.digest() in hashes

    def _repeated(self, tree: Any, *, dotted: bool) -> set[bytes]:
        seen: set[bytes] = set()
        repeated: set[bytes] = set()

        def visit(node: Any, path: Any, before: str) -> None:
            node, _ = inside(node)
            digest = path.digest()
            (repeated if digest in seen else seen).add(digest)
            for name, item in _children(node):
                deeper = path.copy()
                deeper.update((before + name if dotted else _pointer((name,))).encode())
                visit(item, deeper, ".")

        visit(tree, self._empty, "")
        return repeated


def _has_odd_keys(node: Any) -> bool:
    """Whether there are keys that could make two paths one: with dots, empty, or two with one component."""
    node, _ = inside(node)
    if isinstance(node, Mapping):
        names = [*map(component, node)]
        if len({*names}) < len(names) or any(not name or "." in name for name in names):
            return True
        return any(map(_has_odd_keys, node.values()))
    return isinstance(node, (list, tuple)) and any(map(_has_odd_keys, node))
