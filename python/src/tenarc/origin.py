"""Where an open archive comes from, so that whoever unpickles it can open it again."""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn, TypeVar

from .options import Limits

T = TypeVar("T")


class Origin(NamedTuple):
    """A file, and how it was opened."""

    path: str
    torn: bool
    verify: bool
    limits: Limits


def refuse(value: Any) -> NoReturn:
    """Raises the error for what cannot be pickled."""
    kind = type(value).__name__
    raise TypeError(f"cannot pickle this {kind}: only what `tenarc.open` opened by a path can be opened again")


def copied(value: T) -> T:
    """A shallow copy. `copy.copy` would open the file again."""
    made = object.__new__(type(value))
    made.__dict__.update(value.__dict__)
    return made
