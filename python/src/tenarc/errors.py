"""What can go wrong. Failures of the operating system stay `OSError`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


class Error(Exception):
    """Base of all errors of this package: what was found, what was expected, and where."""

    def __init__(self, message: str, *, offset: int | None = None, path: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        #: Position of the fault in bytes, from the beginning of the archive, message or metadata.
        self.offset = offset
        #: Path of the value at fault, as in `layers.3.weight`.
        self.path = path
        #: The file that was read or written.
        self.file: str | None = None

    def __str__(self) -> str:
        text = self.message
        if self.path:
            text += f" at `{_escaped(self.path)}`"
        if self.offset is not None:
            text += f" (byte {self.offset})"
        if self.file is not None:
            text += f" in {_escaped(self.file)}"
        return text


def _escaped(name: str) -> str:
    """A name that may have come with the input, fit for a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


class Damaged(Error):
    """Bytes that are not what they must be: no archive, malformed, or another checksum."""


class Torn(Error):
    """The input ends too early: it was cut, or never finished."""


class Limit(Error):
    """The input asks for more nesting, dimensions or memory than is allowed."""


class Version(Error):
    """A version of the format that this package does not know."""


class Mismatch(Error, TypeError):
    """What was found is well-formed, but is not what was asked for."""


class Unsupported(Error, TypeError):
    """A value that has no place in the format, or a dtype without one."""


class NotFound(Error, KeyError):
    """No value, or several, at a path or under a name."""


class End(Error, EOFError):
    """There is no further value."""


@contextlib.contextmanager
def in_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Errors of the block name the file."""
    try:
        yield
    except Error as error:
        error.file = os.fsdecode(path)
        raise


@contextlib.contextmanager
def bounded_recursion() -> Iterator[None]:
    """Python bounds recursion too, which the caller may have used up, or a conversion uses up."""
    try:
        yield
    except RecursionError:
        raise Limit("more nesting than Python's recursion limit leaves room for") from None


class Fault(Exception):
    """An error on its way up through a value; each level adds the step that led to it."""

    def __init__(self, kind: type[Error], message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        # Innermost first: which child of its parent's item it is, and its name in a path.
        self.steps: list[tuple[int, str | None]] = []

    def at(self, child: int, name: str | None = None) -> Fault:
        self.steps.append((child, name))
        return self

    def path(self) -> str | None:
        names = [name for _, name in reversed(self.steps) if name is not None]
        return ".".join(names) or None

    def children(self) -> list[int]:
        return [child for child, _ in reversed(self.steps)]
