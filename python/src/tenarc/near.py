"""Finds the name that was probably meant, for errors that say that there is none."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from .column_fields import field_tree
from .errors import Error, Fault, escaped
from .paths import component, inside, pointer_steps
from .tags import COLUMNS
from .values import Tag

# So many names are compared for one error, and no longer ones.
_MOST, _LONGEST = 1000, 256


def question(wanted: str, names: Iterable[str]) -> str:
    """The end of an error about a name; empty if no name is similar."""
    found = _nearest(wanted, names)
    return "" if found is None else _question(found)


def _nearest(wanted: str, names: Iterable[str]) -> str | None:
    if len(wanted) > _LONGEST:
        return None
    compared = [name for name in islice(names, _MOST) if isinstance(name, str) and len(name) <= _LONGEST]
    return next(iter(difflib.get_close_matches(wanted, compared, n=1, cutoff=0.65)), None)


def question_of_path(tree: Any, path: str) -> str:
    """The end of an error about a path that leads to nothing. `tree` is the metadata of the value."""
    is_pointer = path.startswith("/")
    separator = "/" if is_pointer else "."
    steps = pointer_steps(path) if is_pointer else path.split(separator)
    meant: list[str] = []
    for number, step in enumerate(steps):
        try:
            entries = _entries(tree)
        except (Error, Fault, RecursionError):
            return ""
        if step not in entries:
            # A key can have dots in it, as those of a state dict of torch.
            whole = None if is_pointer else _nearest(separator.join(steps[number:]), entries)
            if whole is not None:
                meant.append(whole)
                break
            found = _nearest(step, entries)
            if found is None:
                break
            step = found
        meant.append(step)
        tree = entries[step]
    if is_pointer:
        meant = [step.replace("~", "~0").replace("/", "~1") for step in meant]
    found = separator * is_pointer + separator.join(meant)
    # A start of the path says nothing.
    return "" if path.startswith(found) else _question(found)


def _question(name: str) -> str:
    return f"; did you mean `{escaped(name)}`?"


def _entries(node: Any) -> Mapping[str, Any]:
    """What is one step from a node: the entries of a map, the items of a list, the fields of columns."""
    if type(node) is Tag:
        node, _ = inside(node)
    if type(node) is Tag and node.tag == COLUMNS:
        return field_tree(node.value)
    if isinstance(node, (list, tuple)):
        return {str(index): item for index, item in enumerate(node)}
    if not isinstance(node, Mapping):
        return {}
    return {component(key): item for key, item in node.items()}
