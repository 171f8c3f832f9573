"""Extensions of headers, blocks and end marks (SPEC 5.13)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from . import items
from .errors import Unsupported, Version
from .items import MAP, TEXT, UNSIGNED, Items, encode_name

#: A map of extensions without any.
EMPTY = b"\xa0"
MAX_LENGTH = 65_536
#: The keys of the notes and of the statistics in a header.
NOTES, STATISTICS = 0, 2
_MAX_DEPTH = 128


def read(fields: Items, known: int | None = None) -> bytes:
    """Reads the extensions of a record. Only a header has a `known` key, that of its notes."""
    start, last = fields.at, -1
    for _ in range(fields.definite(MAP, "extensions")):
        at = fields.at
        key = fields.definite(UNSIGNED, "key of an extension")
        if key <= last:
            raise fields.damaged(f"expected a key of an extension above {last}, found {key}", at)
        last, at = key, fields.at
        fields.skip("extension", _MAX_DEPTH - 1)
        if key == known:
            look = Items(fields.data, fields.offset, strict=True)
            look.at = at
            _read_notes(look)
    if fields.at - start > MAX_LENGTH:
        found = fields.at - start
        raise fields.damaged(f"expected at most {MAX_LENGTH} bytes of extensions, found {found}", start)
    return fields.data[start : fields.at]


def entries(ext: bytes) -> Iterator[tuple[int, bytes]]:
    """The keys and the encoded values of extensions that were checked."""
    fields = Items(ext, 0)
    for _ in range(fields.definite(MAP, "extensions")):
        key, start = fields.definite(UNSIGNED, "key"), fields.at
        fields.skip("extension", _MAX_DEPTH)
        yield key, ext[start : fields.at]


def entry(ext: bytes, wanted: int) -> bytes | None:
    """The encoded value of a key, if it is there."""
    return None if ext == EMPTY else next((value for key, value in entries(ext) if key == wanted), None)


def unknown(ext: bytes) -> int | None:
    """The first odd key, which a reader must know. This package knows none."""
    return None if ext == EMPTY else next((key for key, _ in entries(ext) if key % 2), None)


def check(ext: bytes, what: str, at: int) -> None:
    """Refuses what has an extension that a reader must know."""
    key = unknown(ext)
    if key is not None:
        raise Version(f"{what} has the extension {key}, which is not known here and cannot be ignored", offset=at)


def odd(ext: bytes) -> bytes:
    """The extensions that change what a record means."""
    return ext if ext == EMPTY else _written([pair for pair in entries(ext) if pair[0] % 2])


def _written(pairs: list[tuple[int, bytes]]) -> bytes:
    return items.head(MAP, len(pairs)) + b"".join(items.head(UNSIGNED, key) + value for key, value in pairs)


def _read_notes(fields: Items) -> dict[str, str]:
    found: dict[str, str] = {}
    last: bytes | None = None
    for _ in range(fields.definite(MAP, "notes")):
        at = fields.at
        key = _text(fields)
        if last is not None and key <= last:
            raise fields.damaged("notes: expected keys that ascend", at)
        last, found[key.decode()] = key, _text(fields).decode()
    return found


def _text(fields: Items) -> bytes:
    # It is UTF-8: this was checked when it was skipped.
    return fields.take(fields.definite(TEXT, "notes"), "notes")


def notes(ext: bytes) -> dict[str, str]:
    """The notes in the extensions of a header."""
    found = entry(ext, NOTES)
    return {} if found is None else _read_notes(Items(found, 0))


def with_notes(found: Mapping[str, str] | None) -> bytes:
    """Encodes the extensions of a header with these notes."""
    if not found:
        return EMPTY
    pairs = sorted(
        (encode_name(key, MAX_LENGTH, "the key of a note"), encode_name(text, MAX_LENGTH, "a note"))
        for key, text in found.items()
    )
    value = items.head(MAP, len(pairs)) + b"".join(
        items.head(TEXT, len(part)) + part for pair in pairs for part in pair
    )
    written = _written([(NOTES, value)])
    if len(written) > MAX_LENGTH:
        raise Unsupported(f"expected notes of at most {MAX_LENGTH} bytes, found {len(written)}")
    return written
