"""Replaces files atomically, and locks files against other writers."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import secrets
import stat
from pathlib import Path
from types import TracebackType
from typing import IO

from .source import open_regular

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
#: The end of the names of temporary files.
_SUFFIX = ".tenarc-tmp"
#: The end of the names of guard files. Each temporary file has a guard, with the same name otherwise. The writer
#: locks the guard as long as it lives, so a temporary file with an unlocked guard can be removed. The temporary
#: file itself is not locked, because the lock would still be there after the rename.
_GUARD_SUFFIX = ".tenarc-lock"
#: Some file systems limit a name to 143 bytes.
_MAX_STEM = 100
_ATTEMPTS = 100


class AtomicFile:
    """A temporary file in the directory of `path` that replaces `path` at the end of a `with` block.

    After an exception, `path` stays as it was. A symbolic link at `path` is replaced, not followed. The new file
    gets the permissions of the old one. If it is not to `replace` a file, one that was created meanwhile stays.
    `is_ours` says at the end whether the file at `path` is the new one.
    """

    def __init__(self, path: str | os.PathLike[str], *, sync: bool, replace: bool = True) -> None:
        self._target = Path(os.fsdecode(path))
        self._sync = sync
        self._replace = replace
        self.is_ours = False
        self._mode = _mode_at(self._target)
        sweep(self._target)
        self.file, self._temp, self._guard = self._create()

    def _create(self) -> tuple[io.FileIO, Path, _Guard]:
        stem = _stem(self._target)
        # Private to its owner until it gets the permissions of the file that it replaces.
        mode = 0o666 if self._mode is None else 0o600
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
        flags |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        for _ in range(_ATTEMPTS):
            unique = "".join(secrets.choice(_ALPHABET) for _ in range(8))
            guard = _Guard.create(self._target.with_name(f".{stem}.{unique}{_GUARD_SUFFIX}"))
            if guard is None:
                continue
            temp = self._target.with_name(f".{stem}.{unique}{_SUFFIX}")
            try:
                return io.FileIO(os.open(temp, flags, mode), "r+"), temp, guard
            except FileExistsError:
                guard.remove()
            except BaseException:
                guard.remove()
                raise
        raise FileExistsError(errno.EEXIST, "cannot find a free name for a temporary file", str(self._target))

    def __enter__(self) -> io.FileIO:
        return self.file

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._commit()
        finally:
            # After a successful rename this name no longer exists.
            with contextlib.suppress(OSError):
                self._temp.unlink()
            self._guard.remove()
            self.file.close()

    def _commit(self) -> None:
        if self._mode is not None and hasattr(os, "fchmod"):
            os.fchmod(self.file.fileno(), self._mode)
        if self._sync:
            os.fsync(self.file.fileno())
        if self._replace:
            os.replace(self._temp, self._target)
            self.is_ours = True
        else:
            self.is_ours = _rename_new(self._temp, self._target)
        self._guard.remove()
        if self._sync:
            sync_directory(self._target.parent)


def _rename_new(temp: Path, target: Path) -> bool:
    """Renames a file, or gives it another name too. Returns `False` if there is a file of that name."""
    try:
        if os.name == "nt":
            os.rename(temp, target)
        else:
            os.link(temp, target)
    except FileExistsError:
        return False
    except OSError:
        # Not all file systems have links. Then another writer may create the file between these two calls.
        if os.name == "nt":
            raise
        if os.path.lexists(target):
            return False
        os.replace(temp, target)
    return True


class _Guard:
    """A locked file that says that a writer lives."""

    def __init__(self, file: io.FileIO, path: Path) -> None:
        self._file, self._path = file, path

    @classmethod
    def create(cls, path: Path) -> _Guard | None:
        """`None` if there is such a file, or a sweep was faster than the lock."""
        try:
            file = io.FileIO(path, "x+")
        except FileExistsError:
            return None
        if try_lock(file) and path.exists():
            return cls(file, path)
        file.close()
        return None

    def remove(self) -> None:
        """Removes the file, and ends the lock after that."""
        if not self._file.closed:
            if fcntl is None:
                # Windows removes no open files.
                self._file.close()
            with contextlib.suppress(OSError):
                self._path.unlink()
            self._file.close()


def _stem(target: Path) -> str:
    """The target's name, cut so that the temporary name is short enough."""
    return target.name.encode(errors="replace")[:_MAX_STEM].decode(errors="ignore")


def sweep(target: Path) -> None:
    """Removes files that killed saves to the same path left behind: no process has locked their guard."""
    if fcntl is None:
        return
    base, suffixes = re.escape(f".{_stem(target)}."), f"{re.escape(_SUFFIX)}|{re.escape(_GUARD_SUFFIX)}"
    ours = re.compile(f"({base}[a-zA-Z0-9]{{8}})(?:{suffixes})")
    with contextlib.suppress(OSError):
        for base in {found[1] for name in os.listdir(target.parent) if (found := ours.fullmatch(name))}:
            with contextlib.suppress(OSError):
                _remove_stale(target.with_name(base + _SUFFIX), target.with_name(base + _GUARD_SUFFIX))


def _remove_stale(temp: Path, guard: Path) -> None:
    try:
        file = open_regular(guard, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        # Without a guard nobody writes it.
        _remove_regular(temp)
        return
    with file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The lock is held until both files are gone.
        _remove_regular(temp)
        guard.unlink()


def _remove_regular(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISREG(path.lstat().st_mode):
            path.unlink()


def _mode_at(target: Path) -> int | None:
    """The permissions of the regular file at a path; `None` if there is none, or a broken link."""
    try:
        found = os.stat(target)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "cannot replace what is not a regular file", str(target))
    return stat.S_IMODE(found.st_mode) & 0o777


def sync_directory(path: Path) -> None:
    """Syncs a directory, so that new and renamed entries survive a crash. Does nothing except on POSIX systems."""
    if os.name != "posix":
        return
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    except OSError as error:
        # Some network file systems do not support this; their servers keep the entries.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(number)


def open_locked(path: str | os.PathLike[str]) -> io.FileIO:
    """Opens a file and locks it against other writers. `OSError` if another writer has it open."""
    file = open_regular(path, os.O_RDWR)
    try:
        if not try_lock(file):
            raise OSError(errno.EBUSY, "another writer has it open", os.fsdecode(path))
        # The file may have been replaced between opening and locking.
        if not os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
            raise OSError(errno.EBUSY, "the file was replaced while it was opened", os.fsdecode(path))
        return file
    except BaseException:
        file.close()
        raise


def try_lock(file: IO[bytes]) -> bool:
    """Locks a file against other writers; `False` if another has it. `True` if the system has no locks."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
