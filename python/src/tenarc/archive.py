"""Archives that are read at any position: `open`, and what it gives."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from types import TracebackType
from typing import Any

from . import walk
from .directory import Directory, Entry
from .errors import Damaged, NotFound, Torn, in_file
from .options import DEFAULT_LIMITS, Limits
from .saved import Segment, TensorInfo, read_record
from .source import FileSource, Front, Source, map_file, open_regular
from .torn import check_hashes, check_magic, last_commit, read_end, scan


class Archive:
    """An archive that is open: reads headers, and of values what is asked for.

    Where it holds one value, its paths can be asked of the archive itself. Views stay valid when it is
    closed. A file that is mapped must not be truncated by others.
    """

    def __init__(self, source: Source, *, torn: bool = False, limits: Limits = DEFAULT_LIMITS) -> None:
        self._source = source
        self._limits = limits
        #: What is wrong with a torn archive, of which only whole values are found.
        self.torn: Torn | None = None
        #: How many bytes stand behind the last end mark: an append is under way, or was cut short. They are no
        #: part of the archive, but for `open(path, torn=True)`.
        self.unfinished_bytes = 0
        check_magic(source)
        if torn and read_end(source, source.length) is None:
            found = scan(source, limits, check_hashes)
            self.torn = found.error(source.length)
            self.unfinished_bytes = source.length - found.vouched
            # Not a tree, as it is all in memory.
            self._directory, self._mark = Directory(len(found.entries), found.entries), found.end
            return
        self._directory, self._mark, end = last_commit(source, limits)
        if end < source.length:
            self.unfinished_bytes = source.length - end
            self._source = Front(source, end)

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file. Views of it stay valid, and keep it mapped."""
        self.__dict__.pop("_only", None)
        self._source.close()

    def __len__(self) -> int:
        """The number of values."""
        return self._directory.count

    def _read(self, at: int, before: int) -> bytes:
        return read_record(self._source, at, before, self._limits)

    @cached_property
    def _entries(self) -> list[Entry]:
        return list(self._directory.segments(self._read, self._mark))

    def names(self) -> list[str | None]:
        """The names of all values, in order."""
        return [name for _, name in self._entries]

    def segment(self, number: int) -> Segment:
        """A value by its number; negative ones count from the end."""
        count = self._directory.count
        index = number + count if number < 0 else number
        if not 0 <= index < count:
            raise NotFound(f"no value {number}, the archive has {count}")
        return self._segment(index, self._directory.entry(index, self._read, self._mark))

    def _segment(self, number: int, entry: Entry) -> Segment:
        offset, name = entry
        found = Segment(self._source, number, offset, self._mark, self._limits)
        if found.name != name:
            raise Damaged(f"the directory has another name, {name!r:.40}", offset=offset)
        return found

    def named(self, name: str) -> Segment:
        """The last value of a name."""
        for number, entry in zip(reversed(range(len(self._entries))), reversed(self._entries), strict=True):
            if entry[1] == name:
                return self._segment(number, entry)
        raise NotFound(f"no value is named {name!r:.80}")

    def segments(self) -> Iterator[Segment]:
        """All values, in order."""
        for number, entry in enumerate(self._entries):
            yield self._segment(number, entry)

    @cached_property
    def _only(self) -> Segment:
        count = self._directory.count
        if count != 1:
            what = f"the archive holds {count} values: take one by `segment` or `named`"
            raise NotFound(what)
        return self.segment(0)

    def load(self, cls: Any = None) -> Any:
        """The only value, as `Segment.load`."""
        return self._only.load(cls)

    def view(self, cls: Any = None) -> Any:
        """The only value, as `Segment.view`."""
        return self._only.view(cls)

    def get(self, path: str, default: Any = None) -> Any:
        """Of the only value, as `Segment.get`."""
        return self._only.get(path, default)

    def __getitem__(self, path: str) -> Any:
        return self._only[path]

    def tensor(self, path: str) -> Any:
        """Of the only value, as `Segment.tensor`."""
        return self._only.tensor(path)

    def tensors(self) -> Iterator[TensorInfo]:
        """Of the only value, as `Segment.tensors`."""
        return self._only.tensors()

    def verify(self) -> None:
        """Checks every byte: hashes, paddings, the directory, and the form of references.

        Elements of tensors are not looked at. Raises at the first fault.
        """
        found = walk.verify(self._source, self._limits)
        if found != self._entries:
            raise Damaged("the directory leads to other segments than there are", offset=self._mark)


def open_archive(path: str | os.PathLike[str], *, torn: bool = False, limits: Limits = DEFAULT_LIMITS) -> Archive:
    """Opens an archive file, to read parts of it. It is mapped: arrays are views, without a copy.

    With `torn`, a file that was cut or never finished is opened too, and has the values that are whole in it;
    `Archive.torn` says what is wrong. That walks over all headers, and looks at no buffers.

    While another process appends, and after a killed append, the archive is what the last end mark vouches
    for, and `Archive.unfinished_bytes` says how many bytes follow.

    `OSError` where the file cannot be read, `Torn` where it has no end mark, `Damaged` where it is no
    archive or a damaged one.
    """
    return _opened(path, map_file(path), torn, limits)


def load(path: str | os.PathLike[str], *, cls: Any = None, limits: Limits = DEFAULT_LIMITS) -> Any:
    """Loads the value of an archive file that holds one, with all checksums verified.

    Arrays are in memory of their own. With `cls` the value is converted to that type: a dataclass,
    `list[int]`, `dict[str, numpy.ndarray]`, …
    """
    with _opened(path, FileSource(open_regular(path)), False, limits) as archive, in_file(path):
        return archive.load(cls)


def _opened(path: str | os.PathLike[str], source: Source, torn: bool, limits: Limits) -> Archive:
    try:
        with in_file(path):
            return Archive(source, torn=torn, limits=limits)
    except BaseException:
        source.close()
        raise
