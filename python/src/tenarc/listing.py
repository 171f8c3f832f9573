"""Leaves what only this package uses out of `dir`, and so out of what editors and shells offer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

T = TypeVar("T", bound=type)


def lists_without(*internal: str) -> Callable[[T], T]:
    """Decorates a class: `dir` of its instances lists neither these names nor those that start with `_`."""
    hidden = frozenset(internal)

    def decorated(cls: T) -> T:
        def listed(self: Any) -> Iterable[str]:
            names = object.__dir__(self)
            return [name for name in names if name not in hidden and (name[0] != "_" or name.startswith("__"))]

        cls.__dir__ = listed  # type: ignore[assignment]
        return cls

    return decorated
