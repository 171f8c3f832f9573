"""Where archives are read from: memory, mapped files, files."""

from __future__ import annotations

import io
import mmap
import os
import stat
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from .dtypes import Payload
from .errors import Torn

#: Bytes that are read and hashed at a time, few enough to stay in the cache.
STEP = 1 << 20
#: Is called with bytes as they are read.
Each = Callable[[memoryview], None]


class Source(Protocol):
    """The bytes of an archive, readable at any position."""

    length: int
    #: Whether somebody sends the bytes. Then those that nobody keeps as a copy are verified, too.
    sends: bool

    def read(self, at: int, length: int) -> bytes:
        """Reads bytes. `Torn` if the archive ends before."""

    def payload(self, at: int, length: int, owned: bool, each: Each | None = None) -> Payload:
        """Bytes as an array, a copy if `owned`. All of them are passed to `each`, piece by piece."""

    def share(self) -> Source:
        """The same bytes. If they are mapped, they stay readable after this source is closed."""

    def close(self) -> None: ...


class MemorySource:
    """An archive in memory, or in a mapped file."""

    sends = False

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        self._bytes: Payload = np.frombuffer(memory, np.uint8) if len(memory) else _NOTHING
        self._bytes.flags.writeable = False
        self.length = self._bytes.nbytes
        self._closed = False

    def read(self, at: int, length: int) -> bytes:
        return self._at(at, length).tobytes()

    def _at(self, at: int, length: int) -> Payload:
        if self._closed:
            raise ValueError("the archive is closed")
        check_range(self.length, at, length)
        return self._bytes[at : at + length]

    def payload(self, at: int, length: int, owned: bool, each: Each | None = None) -> Payload:
        found = self._at(at, length)
        if each is None:
            return found.copy() if owned else found
        out = np.empty(length, np.uint8) if owned else found
        for start in range(0, length, STEP):
            if owned:
                out[start : start + STEP] = found[start : start + STEP]
            each(out.data[start : start + STEP])
        return out

    def share(self) -> MemorySource:
        return MemorySource(self._memory)

    def close(self) -> None:
        """Unmaps the file. If there are still views of it, it is unmapped when the last of them is gone."""
        self._bytes, self._closed = _NOTHING, True
        if isinstance(self._memory, mmap.mmap):
            try:
                self._memory.close()
            except BufferError:
                # Views keep the mapping alive.
                self._memory = b""


class FileSource:
    """An archive in a file that is not mapped. Everything that is read is a copy."""

    sends = False

    def __init__(self, file: io.FileIO) -> None:
        self._file = file
        self.update_length()

    def update_length(self) -> None:
        """Finds out how long the file is now."""
        self.length = os.fstat(self._file.fileno()).st_size

    def read(self, at: int, length: int) -> bytes:
        check_range(self.length, at, length)
        if _HAS_PREAD:
            # Shorter than `_into`, because headers are read in many small pieces.
            found = os.pread(self._file.fileno(), length, at)
            if len(found) == length:
                return found
        return self._into(np.empty(length, np.uint8), at).tobytes()

    def payload(self, at: int, length: int, owned: bool, each: Each | None = None) -> Payload:
        check_range(self.length, at, length)
        found = self._into(np.empty(length, np.uint8), at, each)
        # A view takes the place of one of a mapped file, which is read-only too.
        found.flags.writeable = owned
        return found

    def share(self) -> FileSource:
        return self

    def _into(self, out: Payload, at: int, each: Each | None = None) -> Payload:
        view, done = out.data, 0
        while done < out.nbytes:
            count = read_at(self._file, view[done : done + STEP], at + done)
            if not count:
                raise Shrunk("the file was truncated while it was open", offset=at + done)
            if each is not None:
                each(view[done : done + count])
            done += count
        return out

    def map(self, length: int) -> MemorySource:
        """Maps the first bytes of the file to read-only memory."""
        if not length:
            return MemorySource(b"")
        if length > os.fstat(self._file.fileno()).st_size:
            raise Shrunk("the file was truncated while it was opened", offset=0)
        return MemorySource(mmap.mmap(self._file.fileno(), length, access=mmap.ACCESS_READ))

    def close(self) -> None:
        self._file.close()


class Joined:
    """The first bytes of an archive from one source, and the rest from another, which has all of them."""

    sends = False

    def __init__(self, front: Source, whole: Source) -> None:
        self._front, self._whole = front, whole
        self.length = whole.length

    def _of(self, at: int, length: int) -> Source:
        return self._front if at + length <= self._front.length else self._whole

    def read(self, at: int, length: int) -> bytes:
        return self._of(at, length).read(at, length)

    def payload(self, at: int, length: int, owned: bool, each: Each | None = None) -> Payload:
        return self._of(at, length).payload(at, length, owned, each)

    def share(self) -> Joined:
        return Joined(self._front.share(), self._whole)

    def close(self) -> None:
        self._front.close()
        self._whole.close()


class Front:
    """The first bytes of a source."""

    def __init__(self, source: Source, length: int) -> None:
        self._source = source
        self.length, self.sends = length, source.sends

    def read(self, at: int, length: int) -> bytes:
        check_range(self.length, at, length)
        return self._source.read(at, length)

    def payload(self, at: int, length: int, owned: bool, each: Each | None = None) -> Payload:
        check_range(self.length, at, length)
        return self._source.payload(at, length, owned, each)

    def share(self) -> Front:
        return Front(self._source.share(), self.length)

    def close(self) -> None:
        self._source.close()


class SourceFile(io.RawIOBase):
    """Makes a source readable as a file object, from a position on."""

    def __init__(self, source: Source, at: int = 0) -> None:
        self._source = source
        self._at = at

    def readable(self) -> bool:
        return True

    def readinto(self, out: Any) -> int:
        length = min(len(out), self._source.length - self._at)
        out[:length] = self._source.read(self._at, length)
        self._at += length
        return length


#: Whether the system can read at a position that is not the position of the file.
_HAS_PREAD = hasattr(os, "pread") and hasattr(os, "preadv")
_NOTHING: Payload = np.empty(0, np.uint8)


class Shrunk(Torn):
    """The file became shorter while it was read."""


def check_range(total: int, at: int, length: int) -> None:
    if at < 0 or length < 0 or length > total - at:
        raise Torn(f"expected {length} bytes, the archive ends at byte {total}", offset=at)


def read_at(file: io.FileIO, out: memoryview, at: int) -> int | None:
    """Reads bytes from a position to memory, as `readinto` does."""
    if _HAS_PREAD:
        # Several threads can read at once, because the position of the file is not moved.
        return os.preadv(file.fileno(), [out], at)
    file.seek(at)
    return file.readinto(out)


def open_regular(path: str | os.PathLike[str], flags: int = os.O_RDONLY) -> io.FileIO:
    """Opens a regular file. Refuses anything else, and does not block on a pipe."""
    flags |= getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    number = os.open(path, flags)
    try:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise OSError(f"not a regular file: {os.fspath(path)!r}")
        return io.FileIO(number, "r" if flags & os.O_RDWR == 0 else "r+")
    except BaseException:
        os.close(number)
        raise
