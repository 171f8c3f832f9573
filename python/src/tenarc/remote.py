"""Archives in object stores and on servers, which are read by ranges."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np

from .dtypes import Payload
from .errors import Torn
from .source import Each, check_range

#: How many of the last bytes are read when an archive is opened.
_LAST = 64 << 10
#: Short reads are of whole blocks of this length, and the last ones are kept.
_BLOCK = 64 << 10
_BLOCKS = 64
#: Long reads are divided into requests of this length.
_REQUEST = 8 << 20
#: Requests at once, which is also how many are made ahead.
_TOGETHER = 12
#: How far apart reads may be that go on from front to end.
_GAP = 1 << 20
#: What differs if a file is replaced, as the file systems of S3, Azure, Google, servers and disks call it.
_VERSIONS = ("ETag", "etag", "VersionId", "generation", "LastModified", "last_modified", "updated", "mtime", "ino")


class _Object(Protocol):
    """An object that can be read by ranges."""

    length: int

    def range(self, start: int, stop: int) -> Any:
        """The bytes from `start` to before `stop`."""


class _Obstore:
    """An object in a store of obstore. All reads are of the same version."""

    def __init__(self, store: Any, path: str) -> None:
        self._store, self._path = store, path
        meta = store.head(path)
        self.length: int = meta["size"]
        self._version = meta.get("e_tag")

    def range(self, start: int, stop: int) -> Any:
        options: dict[str, Any] = {"range": (start, stop)}
        if self._version is not None:
            options["if_match"] = self._version
        return self._store.get(self._path, options=options).bytes()


class _Fsspec:
    """A file of a file system of fsspec. All reads are of the same version, if the file system has versions.

    fsspec reads on no condition, so the version is asked for again after each request.
    """

    def __init__(self, files: Any, path: str) -> None:
        self._files, self._path = files, path
        self._version = self._found()
        size = self._version["size"]
        if size is None:
            raise OSError(f"the file system does not say how long {path!r} is")
        self.length: int = size

    def _found(self) -> dict[str, Any]:
        """What the file system says of the file now."""
        if hasattr(self._files, "invalidate_cache"):
            self._files.invalidate_cache(self._path)
        info = self._files.info(self._path)
        found = {name: info[name] for name in _VERSIONS if info.get(name) is not None}
        # That of the memory has nothing else. Elsewhere, it can differ although the content is the same.
        found = found or {name: info[name] for name in ("created",) if name in info}
        return found | {"size": info["size"]}

    def range(self, start: int, stop: int) -> Any:
        found = self._files.cat_file(self._path, start=start, end=stop)
        if len(self._version) > 1 and self._found() != self._version:
            raise OSError(f"{self._path!r} was replaced since it was opened")
        return found


def remote(path: str, store: Any) -> RemoteSource:
    """An object as a source, in a store of obstore or a file system of fsspec. Without one, the path is a URL."""
    if store is None:
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise ImportError(f"opening {path!r} needs fsspec: pip install fsspec") from None
        store, path = url_to_fs(path)
    if hasattr(store, "cat_file"):
        return RemoteSource(_Fsspec(store, path))
    if hasattr(store, "head") and hasattr(store, "get"):
        return RemoteSource(_Obstore(store, path))
    kind = type(store).__name__
    raise TypeError(f"expected a store of obstore or a file system of fsspec, found {kind}")


def is_url(path: Any) -> bool:
    """Whether a path is a URL. A path of Windows has no `//` behind the colon."""
    return isinstance(path, str) and "://" in path


class RemoteSource:
    """An archive that is read by ranges. Everything that is read is a copy.

    Headers are read in blocks, long arrays by several requests side by side. If arrays are read from front to end,
    the next ones are requested before they are needed.
    """

    sends = True

    def __init__(self, object_: _Object) -> None:
        self._object = object_
        self.length = object_.length
        self._blocks: OrderedDict[int, bytes] = OrderedDict()
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        # Requests that were made ahead, by their numbers, and where the last read of an array ended.
        self._ahead: dict[int, Future[Payload]] = {}
        self._run, self._end = 0, -1
        self._is_closed = False
        start = max(self.length - _LAST, 0)
        self._start_of_last = start
        self._last = self._fetch(start, self.length).tobytes() if self.length else b""

    def _fetch(self, start: int, stop: int) -> Payload:
        if self._is_closed:
            raise ValueError("the archive is closed")
        found = np.frombuffer(self._object.range(start, stop), np.uint8)
        if found.nbytes != stop - start:
            raise Torn(f"expected {stop - start} bytes, the server sent {found.nbytes}", offset=start)
        return found

    def read(self, at: int, length: int) -> bytes:
        check_range(self.length, at, length)
        if at >= self._start_of_last:
            at -= self._start_of_last
            return self._last[at : at + length]
        if length > _BLOCK:
            return self._fetch(at, at + length).tobytes()
        number, inside = divmod(at, _BLOCK)
        found = self._block(number)[inside : inside + length]
        return found if len(found) == length else found + self.read(at + len(found), length - len(found))

    def _block(self, number: int) -> bytes:
        with self._lock:
            if number in self._blocks:
                self._blocks.move_to_end(number)
                return self._blocks[number]
        start = number * _BLOCK
        found = self._fetch(start, min(start + _BLOCK, self.length)).tobytes()
        with self._lock:
            self._blocks[number] = found
            while len(self._blocks) > _BLOCKS:
                self._blocks.popitem(last=False)
        return found

    def payload(self, at: int, length: int, owned: bool, each: Each | None = None) -> Payload:
        check_range(self.length, at, length)
        out = np.empty(length, np.uint8)
        with self._lock:
            goes_on = self._end <= at <= self._end + _GAP
            self._run = self._run + length if goes_on else length
            self._end = at + length
            is_ahead = self._run > length or length > _REQUEST
        if not is_ahead:
            out[:] = self._fetch(at, at + length) if length else out
        for start, piece in self._pieces(at, length) if is_ahead else ():
            out[start : start + piece.nbytes] = piece
        if each is not None and length:
            each(out.data)
        out.flags.writeable = owned
        return out

    def _pieces(self, at: int, length: int) -> Iterator[tuple[int, Payload]]:
        """The bytes of a range, by requests on a grid, with the next ones on their way."""
        first, last = at // _REQUEST, (at + length - 1) // _REQUEST
        for number in range(first, last + 1):
            future = self._request(number, last)
            start = number * _REQUEST
            found = future.result()
            from_, to = max(at - start, 0), min(at + length - start, found.nbytes)
            yield start + from_ - at, found[from_:to]

    def _request(self, number: int, last: int) -> Future[Payload]:
        """A request, and those behind it: as many as a run of reads may need, or the read itself."""
        count = -(-self.length // _REQUEST)
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(_TOGETHER, thread_name_prefix="tenarc-remote")
            # A short run does not pay for many requests.
            reach = max(last, number + min(_TOGETHER - 1, self._run // _REQUEST + 1))
            for wanted in range(number, min(reach, number + _TOGETHER - 1, count - 1) + 1):
                if wanted not in self._ahead:
                    start = wanted * _REQUEST
                    stop = min(start + _REQUEST, self.length)
                    self._ahead[wanted] = self._pool.submit(self._fetch, start, stop)
            for old in [other for other in self._ahead if not number - 1 <= other < number + _TOGETHER]:
                self._ahead.pop(old).cancel()
            return self._ahead[number]

    def share(self) -> RemoteSource:
        return self

    def close(self) -> None:
        self._is_closed = True
        with self._lock:
            pool, self._pool = self._pool, None
            self._ahead.clear()
            self._blocks.clear()
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)
