"""How far a long call has come: a bar of tqdm, or a function of the caller."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, BinaryIO

from .dtypes import Payload
from .errors import needed
from .source import Each, Source

#: Whether a bar is shown, or a function that gets the number of bytes that are done, and that of all. If it is not
#: known, the latter is 0.
Progress = bool | Callable[[int, int], object]


class Counter:
    """Counts bytes in a `with` block, and tells how many there are."""

    def __init__(self, progress: Progress, total: int, what: str) -> None:
        self._total, self._done = total, 0
        self._tell = progress if callable(progress) else None
        # `auto` has another bar in notebooks.
        self._bar: Any = None
        if progress is True:
            bar = needed("tqdm.auto", "tqdm").tqdm
            self._bar = bar(total=total or None, unit="B", unit_scale=True, desc=what)

    def __enter__(self) -> Counter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # What the index says may be known without reading it, and a header may be read twice.
        try:
            if kind is None:
                self.add(self._total - self._done)
        finally:
            if self._bar is not None:
                self._bar.close()

    def add(self, count: int) -> None:
        """Counts more bytes."""
        if self._total:
            count = min(count, self._total - self._done)
        if count <= 0:
            return
        self._done += count
        if self._tell is not None:
            self._tell(self._done, self._total)
        if self._bar is not None:
            self._bar.update(count)


class CountedSource:
    """A source whose bytes are counted when they are read."""

    def __init__(self, source: Source, counter: Counter) -> None:
        self._source, self._counter = source, counter
        self.length, self.sends = source.length, source.sends

    def read(self, at: int, length: int) -> bytes:
        found = self._source.read(at, length)
        self._counter.add(length)
        return found

    def payload(self, at: int, length: int, owned: bool, each: Each | None = None) -> Payload:
        def counted(piece: memoryview) -> None:
            if each is not None:
                each(piece)
            self._counter.add(len(piece))

        return self._source.payload(at, length, owned, counted)

    def share(self) -> Source:
        return self._source.share()

    def close(self) -> None:
        self._source.close()


class CountedFile:
    """A stream whose bytes are counted when they are read."""

    def __init__(self, file: BinaryIO, counter: Counter) -> None:
        self._file, self._counter = file, counter

    def read(self, length: int) -> bytes:
        found = self._file.read(length)
        self._counter.add(len(found or b""))
        return found
