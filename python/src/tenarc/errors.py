"""The errors of this package. Failures of the operating system are `OSError` as usual."""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any


class Error(Exception):
    """Base of all errors of this package. The message says what was found, what was expected, and where."""

    def __init__(self, message: str, *, offset: int | None = None, path: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        #: Position of the error in bytes, from the start of the archive, message or metadata.
        self.offset = offset
        #: Path of the value with the error, as in `layers.3.weight`.
        self.path = path
        #: The file that was read or written.
        self.file: str | None = None
        # The end of the message, or what makes it, if it takes time and is perhaps not needed.
        self._end: str | Callable[[], str] = ""

    def ending(self, end: Callable[[], str]) -> Error:
        """The same error, whose message ends with what this gives when it is shown."""
        self._end = end
        return self

    def __reduce__(self) -> Any:
        self._end = self._last()
        return super().__reduce__()

    def _last(self) -> str:
        return self._end if isinstance(self._end, str) else self._end()

    def __str__(self) -> str:
        text = self.message
        if self.path:
            text += f" at `{escaped(self.path)}`"
        if self.offset is not None:
            text += f" (byte {self.offset})"
        if self.file is not None:
            text += f" in {escaped(self.file)}"
        return text + self._last()


def escaped(name: str) -> str:
    """A name from the input, with characters escaped that could control a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


class Damaged(Error):
    """The input is not an archive, is malformed, or has a wrong checksum."""


class Torn(Error):
    """The input ends too early: it was truncated, or its writer did not finish."""


class Limit(Error):
    """The input needs more nesting, dimensions or memory than the limits allow."""


class Version(Error):
    """The input is of an unknown version of the format, or has something that a later version has added.

    This can be a codec, checksums of an unknown algorithm that should be verified, or an extension that must be
    known.
    """


class Mismatch(Error, TypeError):
    """The input is well-formed, but does not fit the requested type."""


class Unsupported(Error, TypeError):
    """A value, dtype or option that is not supported here.

    When reading, this is a codec whose library is not installed, or a buffer whose bytes are not in the archive.
    """


class NotFound(Error, KeyError):
    """There is no value, or more than one, at a path or with a name."""


class End(Error, EOFError):
    """The archive has no more values."""


def needed(name: str, install: str) -> Any:
    """A module of another package, which only some of this package needs."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Unsupported(f"this needs {name}, which is not installed: `pip install {install}`") from None


@contextlib.contextmanager
def in_file(file: Any) -> Iterator[None]:
    """Adds the file's name to errors of the block. `file` is a path, or a file object, which may have no name."""
    try:
        yield
    except Error as error:
        name = file if isinstance(file, (str, bytes, os.PathLike)) else getattr(file, "name", None)
        error.file = os.fsdecode(name) if isinstance(name, (str, bytes, os.PathLike)) else None
        raise


class bounded_recursion:
    """Turns Python's `RecursionError` into `Limit`. The caller may have used up most of the recursion limit.

    A class, because a generator would take more time than reading a small value.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, RecursionError):
            raise Limit("nested deeper than Python's recursion limit allows") from None


class Fault(Exception):
    """An error inside a value. While it propagates, each level adds its step, so that the path is known."""

    def __init__(self, kind: type[Error], message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        #: The name that is not there, and those that are: for the end of the message, if it is shown.
        self.missing: tuple[str, Iterable[Any]] | None = None
        # Innermost first: the number of the child in its parent's item, and its name in a path.
        self.steps: list[tuple[int, str | None]] = []

    def at(self, child: int, name: str | None = None) -> Fault:
        self.steps.append((child, name))
        return self

    def path(self) -> str | None:
        names = [name for _, name in reversed(self.steps) if name is not None]
        return ".".join(names) or None

    def children(self) -> list[int]:
        return [child for child, _ in reversed(self.steps)]
