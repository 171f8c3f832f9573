"""Saves archive files, and appends to them."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any, BinaryIO, cast

from .atomic import AtomicFile, open_locked
from .chunks import DEFAULT_CHUNK
from .directory import UNREAD, Entry
from .errors import in_file
from .options import DEFAULT_LIMITS, Compression
from .progress import Progress
from .source import FileSource
from .stream import Writer, is_stream, save_to
from .torn import check_magic, complete, last_commit


def save(
    path: str | os.PathLike[str] | BinaryIO,
    value: Any,
    *,
    name: str | None = None,
    notes: Mapping[str, str] | None = None,
    alignment: int = 256,
    inline_below: int = 2048,
    checksums: bool = True,
    dedup: bool = False,
    chunk_len: int = DEFAULT_CHUNK,
    compression: Compression = None,
    sync: bool = True,
    progress: Progress = False,
) -> None:
    """Saves a value as an archive file, and replaces the file at `path`.

    The archive is written to a temporary file in the same directory, which is synced and renamed to `path`; then
    the directory is synced. After any error, the old file is unchanged. Without `sync` nothing is synced: a crash
    of the process does no harm, but a crash of the machine may. `notes` are texts about the value, such as a title
    or who wrote it: see `Segment.notes`. The other options are those of `Writer`.

    `path` can also be a file object, or any other object with `write(bytes)`. The archive is written from its
    position on. It is flushed, but neither synced nor closed. Nothing is written if the value cannot be saved.

    With `progress=True`, a bar of tqdm is shown. Instead, `progress` can be a function, which is called with the
    number of bytes of tensors that are done and that of all.
    """
    options: Any = dict(
        alignment=alignment,
        inline_below=inline_below,
        checksums=checksums,
        dedup=dedup,
        chunk_len=chunk_len,
        compression=compression,
    )
    if is_stream(path, "write"):
        with in_file(path):
            save_to(path, value, name, notes, options, progress)
        return
    with in_file(path), AtomicFile(cast(Any, path), sync=sync) as file:
        save_to(file, value, name, notes, options, progress)


def append(
    path: str | os.PathLike[str],
    *,
    alignment: int = 256,
    inline_below: int = 2048,
    checksums: bool = True,
    dedup: bool = False,
    chunk_len: int = DEFAULT_CHUNK,
    compression: Compression = None,
    sync: bool = True,
    create: bool = True,
) -> Appender:
    """Opens an archive file to append values to it; use it in a `with` block.

    If there is no file at `path`, it is created as an archive without values, by a temporary file as in `save`.
    Without `create`, that is a `FileNotFoundError`.

    What the file holds already is never overwritten. New values become part of the archive with `commit`, or at
    the end of the block; after an exception, values that are not committed are removed. What a killed append left
    behind the last end mark is removed first. `OSError` if another writer has the file open.
    """
    options: Any = dict(
        alignment=alignment,
        inline_below=inline_below,
        checksums=checksums,
        dedup=dedup,
        chunk_len=chunk_len,
        compression=compression,
    )
    file = _opened(path, create, sync, options)
    try:
        with in_file(path):
            return Appender(file, sync, **options)
    except BaseException:
        file.close()
        raise


def _opened(path: str | os.PathLike[str], create: bool, sync: bool, options: dict[str, Any]) -> io.FileIO:
    try:
        return open_locked(path)
    except FileNotFoundError:
        if not create or not os.path.isdir(os.path.dirname(os.fsdecode(path)) or "."):
            raise
    # Several processes may be here at once: the file of the first one stays.
    with AtomicFile(path, sync=sync, replace=False) as file:
        Writer(cast(BinaryIO, file), **options).finish()
    return open_locked(path)


class Appender(Writer):
    """Appends values to an archive file. Use `append` to create one."""

    def __init__(self, file: io.FileIO, sync: bool, **options: Any) -> None:
        self._raw = file
        self._sync = sync
        super().__init__(file, **options)

    def _begin(self) -> None:
        # No other writer has the file open, so that the one that left unfinished bytes is gone.
        source = FileSource(self._raw)
        check_magic(source)
        directory, _, self._committed = last_commit(source, DEFAULT_LIMITS)
        # The extensions of its end mark are not those of the next one.
        self._directory = directory.copy()
        self._at = self._committed
        if source.length > self._committed:
            self._cut()
        self._ended = True
        self._raw.seek(self._at)

    def _cut(self) -> None:
        """Cuts off what was not committed.

        This must be durable before anything else is written: otherwise a crash could bring parts of it back, under
        the values that follow.
        """
        self._raw.truncate(self._committed)
        if self._sync:
            os.fsync(self._raw.fileno())

    def _completed(self, entry: Entry) -> Entry:
        if entry.digest != UNREAD:
            return entry
        return complete(FileSource(self._raw), entry, self._committed, DEFAULT_LIMITS)

    def commit(self) -> None:
        """Makes the values that were written since the last `commit` part of the archive."""
        if self._ended:
            return
        super().commit()
        self._committed = self._at

    def _make_durable(self) -> None:
        if self._sync:
            # If it fails, nobody knows what is durable.
            self._broken = True
            os.fsync(self._raw.fileno())
            self._broken = False

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
        """Removes the values that were not committed, and closes the file."""
        if self._raw.closed:
            return
        try:
            if self._at != self._committed or self._broken:
                self._cut()
        finally:
            self._raw.close()
