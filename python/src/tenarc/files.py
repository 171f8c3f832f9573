"""Archive files as a whole: saved in one go, created, appended to."""

from __future__ import annotations

import io
import os
from types import TracebackType
from typing import Any

from .atomic import AtomicFile, open_locked
from .errors import in_file
from .options import DEFAULT_LIMITS
from .source import FileSource
from .stream import Writer
from .torn import last_commit


def save(
    path: str | os.PathLike[str],
    value: Any,
    *,
    name: str | None = None,
    alignment: int = 256,
    inline_below: int = 2048,
    checksums: bool = True,
    dedup: bool = False,
    sync: bool = True,
) -> None:
    """Saves a value as an archive file, in place of what is at `path`.

    The file appears whole or not at all: it is written beside `path`, synced, renamed, and the directory
    is synced. On any error what was there before stays. Without `sync` that holds for a crash of the
    process, but not for one of the machine. The other options are those of `Writer`.
    """
    with in_file(path), AtomicFile(path, sync=sync) as file:
        options: Any = dict(alignment=alignment, inline_below=inline_below, checksums=checksums, dedup=dedup)
        with Writer(file, **options) as out:
            out.save(value, name=name)


def append(
    path: str | os.PathLike[str],
    *,
    alignment: int = 256,
    inline_below: int = 2048,
    checksums: bool = True,
    dedup: bool = False,
    sync: bool = True,
) -> Appender:
    """Opens an archive file to write more values behind those that it has; use it in a `with` block.

    What is there is not written over: values count from `commit` or the end of the block on, and after
    an exception they are taken back. What an append that was killed has left is cut off first. One writer at a time: `OSError` where there is another.
    """
    options: Any = dict(alignment=alignment, inline_below=inline_below, checksums=checksums, dedup=dedup)
    file = open_locked(path)
    try:
        with in_file(path):
            return Appender(file, sync, **options)
    except BaseException:
        file.close()
        raise


class Appender(Writer):
    """A writer behind the end of an archive file; `append` makes it."""

    def __init__(self, file: io.FileIO, sync: bool, **options: Any) -> None:
        self._raw = file
        self._sync = sync
        super().__init__(file, **options)

    def _begin(self) -> None:
        # No other writer has the file open, so that the one that left unfinished bytes is gone.
        self._directory, _, self._committed = last_commit(FileSource(self._raw), DEFAULT_LIMITS)
        self._at = self._committed
        self._raw.truncate(self._committed)
        self._ended = True
        self._raw.seek(self._at)

    def commit(self) -> None:
        """Makes what was written since the last time a part of the archive."""
        if self._ended:
            return
        # What an end mark vouches for is durable before it is there.
        self._make_durable()
        super().commit()
        self._make_durable()
        self._committed = self._at

    def _make_durable(self) -> None:
        if self._sync:
            os.fsync(self._raw.fileno())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self.finish()
        finally:
            self.close()

    def close(self) -> None:
        """Closes the file; what was not committed is taken back."""
        if self._raw.closed:
            return
        try:
            if self._at != self._committed or self._broken:
                self._raw.truncate(self._committed)
        finally:
            self._raw.close()
