"""Making a torn archive whole again (SPEC 5.8)."""

from __future__ import annotations

import os
from typing import NamedTuple

from .atomic import AtomicFile, open_locked
from .errors import Damaged, Torn, in_file
from .options import DEFAULT_LIMITS
from .saved import Segment
from .source import CHUNK, FileSource, Source, open_regular
from .stream import write_all
from .torn import Scan, check_magic, read_end, scan, tail_behind


class Recovered(NamedTuple):
    """What became of a torn archive."""

    #: How many values it has.
    segments: int
    #: How many of them are damaged, of those that no end mark vouched for: whole ones follow them.
    damaged: int
    #: How many bytes behind them were cut off.
    dropped: int


def recover(path: str | os.PathLike[str]) -> Recovered:
    """Cuts off what stands behind the last whole value of a torn archive file, and writes an end mark there.

    A whole archive is left as it is. Values behind the last end mark count as whole where every byte of them is;
    damaged ones before a whole one stay, and are counted. Of those before the end mark only the headers are looked
    at, and `Archive.verify` tells about the rest.

    `Damaged` where the file is no archive, or where an end mark stands behind the damage: cutting there would
    lose what that vouches for. `OSError` where it cannot be changed, or another writer has it open.
    """
    with in_file(path), open_locked(path) as file:
        source = FileSource(file)
        found, result = _plan(source)
        if found is not None and not found.entries and result.dropped:
            what = f"no value is whole: nothing would be left of {result.dropped} bytes"
            raise Torn(what, offset=found.end)
        if found is not None:
            # Should this end half-way, the archive is torn as before.
            file.truncate(found.end)
            file.seek(found.end)
            write_all(file, found.missing)
            os.fsync(file.fileno())
            write_all(file, _end(found))
            os.fsync(file.fileno())
    return result


def recover_to(path: str | os.PathLike[str], new: str | os.PathLike[str]) -> Recovered:
    """As `recover`, into a new file: the old one stays as it is."""
    with in_file(path), open_regular(path) as file:
        source = FileSource(file)
        found, result = _plan(source)
        kept = source.length if found is None else found.end
        with AtomicFile(new, sync=True) as out:
            for at in range(0, kept, CHUNK):
                write_all(out, source.read(at, min(CHUNK, kept - at)))
            if found is not None:
                write_all(out, found.missing + _end(found))
    return result


def _plan(source: Source) -> tuple[Scan | None, Recovered]:
    """Where to cut, unless the archive is whole."""
    check_magic(source)
    end = read_end(source, source.length)
    if end is not None:
        return None, Recovered(end[0].count, 0, 0)
    vouched = scan(source, DEFAULT_LIMITS).vouched
    last, damaged, behind = -1, 0, 0

    def look(segment: Segment) -> None:
        # A crash may have lost any part of what no end mark vouches for.
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
    # All that follows the header of a cut segment belongs to it, whatever it looks like.
    tail = None if found.cut else tail_behind(source, found.end, found.end + len(found.missing))
    if tail is not None:
        why = "" if found.fault is None else f" ({found.fault})"
        what = f"the archive is damaged{why}, and goes on to an end mark at byte {tail}"
        raise Damaged(f"{what}: cutting it off here would lose what follows", offset=found.end)
    return found, Recovered(len(found.entries), damaged, source.length - found.end)


def _end(found: Scan) -> bytes:
    return found.directory.end(found.end + len(found.missing))
