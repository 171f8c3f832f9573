"""Repairs torn archives (SPEC 5.8)."""

from __future__ import annotations

import contextlib
import io
import os
from typing import NamedTuple

from .atomic import AtomicFile, open_locked
from .errors import Damaged, Torn, in_file
from .options import DEFAULT_LIMITS
from .salvage import Salvage, Salvaged
from .saved import Segment
from .source import STEP, FileSource, Source, open_regular
from .stream import Writer, write_all
from .torn import Scan, check_magic, complete, read_end, scan


class Recovered(NamedTuple):
    """The result of recovering an archive."""

    #: How many segments were kept unchanged.
    segments: int
    #: How many of these are damaged. Only segments after the last end mark are checked; a damaged one is kept if
    #: an intact one follows it.
    damaged: int
    #: How many bytes of the torn file followed the kept segments.
    dropped: int
    #: What `recover_to` kept of the dropped bytes, as one more segment.
    salvaged: Salvaged | None = None


def recover(path: str | os.PathLike[str]) -> Recovered:
    """Repairs a torn archive: cuts the file after its last intact segment, and writes an end mark there.

    A complete archive is not changed. Segments after the last end mark are checked in full. Damaged ones are kept
    if an intact one follows them, and are counted. Of the segments before that end mark only the headers are
    checked; `Archive.verify` checks the rest.

    `Damaged` if the file is not an archive, or is damaged rather than torn: an intact end mark follows the damage,
    and cutting would lose what was committed there. `Torn` if no segment is complete, so that nothing would be
    left. `OSError` if the file cannot be changed, or another writer has it open.
    """
    with in_file(path), open_locked(path) as file:
        source = FileSource(file)
        found, result = _plan(source)
        _check_keeps_something(found, result)
        if found is not None:
            # If the process is killed from here on, the archive is torn as before.
            file.truncate(found.keep)
            os.fsync(file.fileno())
            file.seek(found.keep)
            _Resumed(file, found, source, sync=True).finish()
    return result


def recover_to(path: str | os.PathLike[str], new: str | os.PathLike[str]) -> Recovered:
    """Like `recover`, but writes the result to a new file and does not change the old one.

    If a segment was cut off by the end of the file, its complete tensors are kept too, although they can no longer
    be verified. `Recovered.salvaged` lists them and the missing ones. This is how to read what is there of a model
    whose download was interrupted.

    The errors are those of `recover`, with one exception: a file without a complete segment or tensor is an error
    only if `new` is the same file.
    """
    with in_file(path), open_regular(path) as file:
        source = FileSource(file)
        found, result = _plan(source)
        salvage = None if found is None else Salvage.of(source, found.cut, DEFAULT_LIMITS)
        if salvage is None and _is_at(file, new):
            _check_keeps_something(found, result)
        kept = source.length if found is None else found.keep
        with AtomicFile(new, sync=True) as out:
            for at in range(0, kept, STEP):
                write_all(out, source.read(at, min(STEP, kept - at)))
            if found is not None:
                archive = _Resumed(out, found, source, sync=False)
                if salvage is not None:
                    result = result._replace(salvaged=salvage.report())
                    archive.copy(salvage)
                archive.finish()
    return result


class _Resumed(Writer):
    """Continues an archive, of which what a scan keeps has been written to `file`."""

    def __init__(self, file: io.FileIO, found: Scan, source: Source, *, sync: bool) -> None:
        self._raw, self._found, self._source, self._sync = file, found, source, sync
        super().__init__(file)

    def _begin(self) -> None:
        self._at, self._directory = self._found.keep, self._found.directory
        entries = self._directory.entries
        # A scan does not find out rows and digests.
        entries[:] = [complete(self._source, entry, self._at, DEFAULT_LIMITS) for entry in entries]
        self._fill()

    def copy(self, found: Salvage) -> None:
        """Writes what is left of a segment."""
        self._write_segment(found.header(), found.buffers())

    def _make_durable(self) -> None:
        if self._sync:
            os.fsync(self._raw.fileno())


def _is_at(file: io.FileIO, path: str | os.PathLike[str]) -> bool:
    """Whether a path leads to an open file."""
    with contextlib.suppress(OSError):
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    return False


def _check_keeps_something(found: Scan | None, result: Recovered) -> None:
    """Checks that cutting the file leaves more than an empty archive."""
    if found is not None and not found.entries and result.dropped:
        what = f"no segment is complete: nothing would be left of {result.dropped} bytes"
        advice = (
            "`open(path, torn=True, verify=False)` reads the complete tensors of a cut segment, and `recover_to` "
            "writes them to another file"
        )
        raise Torn(f"{what}; {advice}", offset=found.keep)


def _plan(source: Source) -> tuple[Scan | None, Recovered]:
    """Finds out where to cut the file: at the end of the scan. `None` if the archive is complete."""
    check_magic(source)
    end = read_end(source, source.length)
    if end is not None:
        return None, Recovered(end[0].count, 0, 0)
    vouched = scan(source, DEFAULT_LIMITS).vouched
    last, damaged, behind = -1, 0, 0

    def look(segment: Segment) -> None:
        # A crash can lose any part of what follows the last end mark, so all of it is verified.
        nonlocal last, damaged, behind
        if segment.offset < vouched:
            return
        try:
            segment.verify_body()
        except (Damaged, Torn):
            behind += 1
        else:
            last, damaged, behind = segment.offset, damaged + behind, 0

    def check(segment: Segment) -> None:
        if segment.offset >= vouched and segment.offset > last:
            segment.verify_body()

    scan(source, DEFAULT_LIMITS, look)
    found = scan(source, DEFAULT_LIMITS, check)
    # The cut may be at a damaged body: what a later tail commits must not be cut off.
    found.check_nothing_follows(source)
    found.check_readable()
    return found, Recovered(len(found.entries), damaged, source.length - found.keep)
