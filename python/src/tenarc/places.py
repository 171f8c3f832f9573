"""Where sets are: a directory, or part of a store of obstore."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from .archive import Archive, open_archive
from .atomic import AtomicFile, sync_directory
from .errors import Unsupported, needed
from .remote import is_url

#: A path of a directory, a URL of a store, or a place.
Root = Any


@dataclass(frozen=True)
class Found:
    """A file or an object as it is now."""

    size: int
    #: What the crate `object_store` takes as its entity tag.
    version: str | None
    #: When it was written, in seconds.
    modified: float


class Place(Protocol):
    """Files by their names, which have slashes. Those that are not there are a `FileNotFoundError`."""

    def path(self, name: str) -> str:
        """What messages call it."""

    def start(self, name: str) -> BinaryIO:
        """A new file, which nobody reads before `keep`."""

    def keep(self, name: str, file: BinaryIO) -> None:
        """Makes a file that was started durable."""

    def drop(self, name: str, file: BinaryIO) -> None:
        """Removes a file that was started."""

    def create(self, name: str, content: bytes) -> bool:
        """Creates a whole file. Returns `False` if there is one of this name."""

    def find(self, name: str) -> Found: ...

    def last(self, name: str, count: int) -> bytes:
        """The last bytes of a file."""

    def open(self, name: str) -> Archive: ...

    def list(self, folder: str) -> dict[str, Found]:
        """All files in a folder, by their names in it."""

    def remove(self, name: str) -> None:
        """Removes a file. It is no error if it is not there."""


def place_of(root: Root, store: Any = None) -> Place:
    """The place at a path of a directory or of a store of obstore, or at a URL, which obstore opens."""
    if isinstance(root, (Directory, InStore)):
        return root
    if store is not None:
        return InStore(store, os.fspath(root))
    if is_url(root):
        return InStore(needed("obstore.store", "obstore").from_url(root), "")
    return Directory(root)


class Directory:
    """A directory of a file system that all processes see."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._root = Path(os.path.abspath(os.fsdecode(root)))

    def __str__(self) -> str:
        return str(self._root)

    def _at(self, name: str) -> Path:
        return self._root / name

    def path(self, name: str) -> str:
        return str(self._at(name))

    def start(self, name: str) -> BinaryIO:
        self._at(name).parent.mkdir(parents=True, exist_ok=True)
        return cast(BinaryIO, io.FileIO(self._at(name), "xb"))

    def keep(self, name: str, file: BinaryIO) -> None:
        os.fsync(file.fileno())
        file.close()
        sync_directory(self._at(name).parent)

    def drop(self, name: str, file: BinaryIO) -> None:
        file.close()
        self.remove(name)

    def create(self, name: str, content: bytes) -> bool:
        self._at(name).parent.mkdir(parents=True, exist_ok=True)
        # The directories may be new, too.
        sync_directory(self._root)
        sync_directory(self._root.parent)
        atomic = AtomicFile(self._at(name), sync=True, replace=False)
        with atomic as file:
            file.write(content)
        return atomic.is_ours

    def find(self, name: str) -> Found:
        return _found(self._at(name).stat())

    def last(self, name: str, count: int) -> bytes:
        with self._at(name).open("rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - count, 0))
            return file.read(count)

    def open(self, name: str) -> Archive:
        return open_archive(self._at(name))

    def list(self, folder: str) -> dict[str, Found]:
        found = {}
        # Others may remove files meanwhile.
        with contextlib.suppress(FileNotFoundError):
            for name in os.listdir(self._at(folder)):
                with contextlib.suppress(FileNotFoundError):
                    found[name] = self.find(f"{folder}/{name}")
        return found

    def remove(self, name: str) -> None:
        self._at(name).unlink(missing_ok=True)


def _found(of: os.stat_result) -> Found:
    version = f'"{of.st_ino:x}-{of.st_mtime_ns // 1000:x}-{of.st_size:x}"'
    return Found(of.st_size, version, of.st_mtime)


class InStore:
    """Part of a store of obstore: the objects whose keys start with a prefix."""

    def __init__(self, store: Any, prefix: str) -> None:
        self._store, self._prefix = store, prefix.strip("/")
        self._obstore = needed("obstore", "obstore")
        self._errors = needed("obstore.exceptions", "obstore")

    def __str__(self) -> str:
        return f"{self._prefix!r} in a {type(self._store).__name__}"

    def path(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    def start(self, name: str) -> BinaryIO:
        return cast(BinaryIO, self._obstore.open_writer(self._store, self.path(name)))

    def keep(self, name: str, file: BinaryIO) -> None:
        file.close()

    def drop(self, name: str, file: BinaryIO) -> None:
        # An object appears only when its writer is closed. One that was short may have appeared.
        with contextlib.suppress(Exception):
            self.remove(name)

    def create(self, name: str, content: bytes) -> bool:
        # Some stores replace what exists. S3 can refuse one of two that create an object at once, although there
        # is none.
        if sum(self._create("probe", b"tenarc") for _ in range(3)) > 1:
            what = "the store replaces an object although it was asked to create one"
            raise Unsupported(f"{what}, so that two commits could be mixed up")
        return self._create(name, content)

    def _create(self, name: str, content: bytes) -> bool:
        try:
            self._store.put(self.path(name), content, mode="create")
        except self._errors.AlreadyExistsError:
            return False
        return True

    def find(self, name: str) -> Found:
        with self._in_files(name):
            return self._found(self._store.head(self.path(name)))

    def _found(self, of: Any) -> Found:
        return Found(of["size"], of.get("e_tag"), of["last_modified"].timestamp())

    def last(self, name: str, count: int) -> bytes:
        with self._in_files(name):
            found = self._store.get(self.path(name), options={"range": {"suffix": count}})
            return bytes(found.bytes())

    def open(self, name: str) -> Archive:
        with self._in_files(name):
            return open_archive(self.path(name), store=self._store)

    @contextlib.contextmanager
    def _in_files(self, name: str) -> Iterator[None]:
        try:
            yield
        except self._errors.NotFoundError as error:
            raise FileNotFoundError(f"there is no object {self.path(name)!r}") from error

    def list(self, folder: str) -> dict[str, Found]:
        start = len(self.path(folder)) + 1
        pages = self._store.list(self.path(folder))
        return {found["path"][start:]: self._found(found) for page in pages for found in page}

    def remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError, self._errors.NotFoundError):
            self._store.delete(self.path(name))
