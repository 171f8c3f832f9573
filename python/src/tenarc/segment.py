"""Reads and writes the records of archives (SPEC 5.1 to 5.4, 5.10): headers, positions of buffers, and hashes."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import xxhash

from . import ext, items
from .chunks import HASH_LEN, ChunkHasher, Hashes, expected_chunk_len, is_chunk_len, total_of
from .elsewhere import Elsewhere
from .errors import Damaged, Limit, Version
from .items import ARRAY, BYTES, TAG, UNSIGNED, Items, encode_name, four_letters
from .listing import lists_without
from .options import Limits, is_alignment
from .packed import Packed

VERSION = 1
MAX_NAME = 1024
MAX_POSITION = (1 << 63) - 1
HEADER, BLOCK, END, AUX = (four_letters(name) for name in ("TSEG", "TDIR", "TEND", "TAUX"))
#: The number of items in a record of each kind.
_FIELDS = {HEADER: 8, BLOCK: 4, END: 5, AUX: 3}
#: The most bytes of a record of each kind, with its hash.
MAX_RECORD = {BLOCK: 256 << 10, END: 256 << 10, AUX: 16 << 20}
CHECK = "xxh3-64"
#: The most bytes of a hash of an algorithm that is not known here.
_MAX_HASH = 64

RECORD = b"\xd8\x18"
#: The most bytes before the content of a record.
MAX_RECORD_HEAD = 11
#: So many first bytes of a record of any version are enough to know the version.
VERSION_LEN = 34
#: The length of a hash with its head.
HASH_ITEM = HASH_LEN + 1
_HASH_HEAD = b"\x48"
#: The tag of a list of hashes: an array of big-endian u64, or of u8 if the hashes have another length.
_HASHES, _OTHER_HASHES = b"\xd8\x43", b"\xd8\x40"


#: The tag that the content of a record begins with.
_TAGS = {items.head(TAG, kind): kind for kind in _FIELDS}
#: What the content of a record of each kind begins with: tag, number of items and version, in their shortest form.
_KINDS = {
    items.tag(kind, items.head(ARRAY, count) + items.head(UNSIGNED, VERSION)): kind
    for kind, count in _FIELDS.items()
}
START_LEN = 7


def digest(data: bytes | memoryview, seed: int = 0) -> bytes:
    """The hash of some bytes as it is stored: 8 bytes, big-endian."""
    return xxhash.xxh3_64_digest(data, seed)


def hashed(item: bytes, seed: int) -> bytes:
    """An item, followed by the item of its hash."""
    return item + _HASH_HEAD + digest(item, seed)


def record(number: int, fields: Sequence[bytes], at: int) -> bytes:
    """Encodes a record for position `at`, which is the seed of its hash."""
    return hashed(RECORD + items.byte_string(_content(number, fields)), at)


def _content(number: int, fields: Sequence[bytes]) -> bytes:
    return items.tag(number, items.array([items.head(UNSIGNED, VERSION), *fields]))


def record_length(start: bytes, at: int) -> tuple[int, int]:
    """The length of a record's heads, and of the whole record with its hash.

    `start` is the first `MAX_RECORD_HEAD` bytes of the record, or as many as there are.
    """
    head = Items(start, at, strict=True)
    if head.take(2, "record") != RECORD:
        raise head.damaged("expected a record", 0)
    length = head.definite(BYTES, "record")
    return head.at, head.at + length + HASH_ITEM


def opened(item: bytes, at: int) -> tuple[int, Items]:
    """Checks the hash of a record. Returns its kind, and its content after the version."""
    head, total = record_length(item[:MAX_RECORD_HEAD], at)
    if total != len(item):
        raise Damaged(f"expected a record of {len(item)} bytes, found one of {total}", offset=at)
    content, stored = item[head:-HASH_ITEM], item[-HASH_ITEM:]
    inner = Items(content, at + head, strict=True)
    kind = _KINDS.get(content[:START_LEN])
    if kind is not None:
        inner.at = START_LEN
    else:
        kind = kind_of(content)
        # The version is checked first: other versions may have other fields and another hash.
        check_version(item, at)
    if stored != _HASH_HEAD + digest(item[:-HASH_ITEM], at):
        raise Damaged("the hash of a record does not match", offset=at + len(item) - HASH_ITEM)
    if kind is None:
        raise Damaged("a record of an unknown kind", offset=at + head)
    check_length(kind, total, at)
    if inner.at == START_LEN:
        return kind, inner
    inner.at = 5
    count = inner.definite(ARRAY, "record")
    if count != _FIELDS[kind]:
        raise inner.damaged(f"expected a record of {_FIELDS[kind]} items, found {count}", 5)
    start = inner.at
    version = inner.definite(UNSIGNED, "version")
    if version != VERSION:
        raise inner.damaged(f"expected a record of version {VERSION}, found {version}", start)
    return kind, inner


def check_length(kind: int, total: int, at: int) -> None:
    """Checks that a record of a kind may have this length."""
    if total > MAX_RECORD.get(kind, total):
        wanted = f"expected a record of at most {MAX_RECORD[kind]} bytes, found {total} bytes"
        raise Damaged(wanted, offset=at)


def kind_of(content: bytes) -> int | None:
    """The tag that the content of a record begins with; `None` if it is not one of this format."""
    return _TAGS.get(content[:5])


def is_version_known(content: bytes) -> bool:
    """Whether the content of a record begins as it does in this version."""
    return content[:START_LEN] in _KINDS


def check_version(start: bytes, at: int) -> None:
    """Refuses a record of this format that is of a later version (SPEC 5.1).

    `start` are the first bytes of what is at the position. There need not be a record, nor all of it. The
    version 0 is what a lost sector leaves.
    """
    look = Items(start, at)
    try:
        if look.take(2, "record") != RECORD:
            return
        major, length = look.any_head("record")
        if major != BYTES or length is None or kind_of(start[look.at :]) is None:
            return
        look.data = start[: look.at + length]
        look.at += 5
        array, _ = look.any_head("record")
        begin = look.at
        kind, found = look.any_head("version")
    except Damaged:
        return
    if array == ARRAY and kind == UNSIGNED and found is not None and found > VERSION:
        text = f"version {found} of the format is not supported, only version {VERSION}"
        raise Version(text, offset=at + begin)


def skip_aux(fields: Items) -> None:
    """Checks an auxiliary record, of which no kinds are known (SPEC 5.13)."""
    fields.definite(UNSIGNED, "kind of an auxiliary record")


@lists_without(
    "before_body",
    "body_length",
    "check_hashes_length",
    "packed_length",
    "content_digest",
    "hasher",
    "check_extensions",
    "hash_list",
    "hash_bytes",
    "hash_len",
    "hashes_length",
    "is_checked",
    "places",
    "unknown_check",
    "read",
    "write",
)
@dataclass(frozen=True)
class Header:
    """The header of a segment."""

    name: str | None
    alignment: int
    #: Whether the chunks of the buffers have checksums.
    checksums: bool
    #: The length of the chunks, in bytes. The last chunk of a buffer may be shorter.
    chunk_len: int
    #: The length of each buffer, in bytes. Of a compressed buffer, it is the length after it was decompressed.
    lengths: tuple[int, ...]
    metadata: bytes = field(repr=False)
    #: How the compressed buffers are stored, by their numbers.
    packed: Mapping[int, Packed] = field(default_factory=dict, hash=False)
    #: What names the buffers that are not in the archive, by their numbers.
    elsewhere: Mapping[int, Elsewhere] = field(default_factory=dict, hash=False)
    #: If the algorithm of the checksums is not known here: its name, and the length of each in bytes.
    algorithm: tuple[str, int] | None = None
    #: The extensions (SPEC 5.13), as a map in CBOR. A copy has the same.
    ext: bytes = ext.EMPTY
    # The fields of the last header without buffers, and the bytes that they were read from.
    _last: ClassVar[tuple[bytes, Any]] = (b"", None)

    @classmethod
    def read(cls, fields: Items) -> tuple[Header, int]:
        """Reads a header from the content of its record. Also returns the position of its metadata."""
        begin = fields.at
        # The headers of many small values differ in their metadata only.
        known, last = cls._last
        if known and fields.data.startswith(known, begin):
            at = begin + len(known)
            return cls(
                last.name,
                last.alignment,
                last.checksums,
                last.chunk_len,
                (),
                fields.data[at:],
                algorithm=last.algorithm,
                ext=last.ext,
            ), fields.offset + at
        name = read_name(fields)
        start = fields.at
        alignment = fields.definite(UNSIGNED, "alignment")
        if not is_alignment(alignment):
            raise fields.damaged(f"expected a power of two from 8 to 65536 as alignment, found {alignment}", start)
        start = fields.at
        algorithm: tuple[str, int] | None = None
        if fields.is_next(ARRAY):
            check: str | None = CHECK
            algorithm = _read_algorithm(fields)
        else:
            check = fields.text_or_null("check")
            if check not in (None, CHECK):
                raise fields.damaged(f"expected the check {CHECK}, found {check!r:.40}", start)
        start = fields.at
        chunk_len = fields.definite(UNSIGNED, "length of chunks")
        if not is_chunk_len(chunk_len):
            raise fields.damaged(expected_chunk_len(chunk_len), start)
        start = fields.at
        count = fields.count("lengths of buffers")
        lengths: list[int] = []
        packed: dict[int, Packed] = {}
        elsewhere: dict[int, Elsewhere] = {}
        for number in range(count):
            at = fields.at
            if not fields.is_next(ARRAY):
                length = fields.definite(UNSIGNED, "length of a buffer")
            elif (found := fields.definite(ARRAY, "description of a buffer")) == 4:
                length, packed[number] = Packed.read(fields, chunk_len)
            elif found == 3:
                length, elsewhere[number] = Elsewhere.read(fields)
            else:
                raise fields.damaged(f"expected a description of a buffer of 3 or 4 items, found {found}", at)
            lengths.append(length)
        extensions = ext.read(fields, ext.NOTES)
        metadata = fields.at
        checksums, content = check is not None, fields.data[metadata:]
        header = cls(
            name,
            alignment,
            checksums,
            chunk_len,
            tuple(lengths),
            content,
            packed,
            elsewhere,
            algorithm,
            extensions,
        )
        if not count:
            cls._last = fields.data[begin:metadata], replace(header, metadata=b"")
        if count:
            at = fields.offset + len(fields.data) + HASH_ITEM
            body, hashes = header.body_length(), header.hashes_length()
            if (
                at + body + hashes > MAX_POSITION
                or at + len(items.head(BYTES, body)) + body + hashes > MAX_POSITION
            ):
                raise fields.damaged("the segment would end after position 2^63 - 1", start)
        return header, fields.offset + metadata

    def write(self, at: int) -> bytes:
        """Encodes the record of the header, with its hash."""
        if not self.lengths:
            return hashed(RECORD + items.byte_string(_before(*self._options()) + self.metadata), at)
        return record(HEADER, self._fields(), at)

    def _options(self) -> tuple[str | None, int, bool, int, tuple[str, int] | None, bytes]:
        return self.name, self.alignment, self.checksums, self.chunk_len, self.algorithm, self.ext

    def _fields(self) -> list[bytes]:
        check = items.text_or_null(CHECK if self.checksums else None)
        if self.algorithm is not None:
            name, length = self.algorithm
            check = items.array([items.text(name), items.head(UNSIGNED, length)])
        return [
            items.text_or_null(self.name),
            items.head(UNSIGNED, self.alignment),
            check,
            items.head(UNSIGNED, self.chunk_len),
            items.array([self._description(number) for number in range(len(self.lengths))]),
            self.ext,
            self.metadata,
        ]

    def _description(self, number: int) -> bytes:
        """The element of a buffer in the array of lengths."""
        described = self.packed.get(number) or self.elsewhere.get(number)
        length = self.lengths[number]
        return items.head(UNSIGNED, length) if described is None else described.write(length)

    @property
    def notes(self) -> dict[str, str]:
        """The notes that the value was saved with."""
        return ext.notes(self.ext)

    @property
    def is_checked(self) -> bool:
        """Whether the buffers have checksums that can be verified here."""
        return self.checksums and self.algorithm is None

    def check_extensions(self, at: int) -> None:
        """Refuses to read a value that has an unknown extension, which may change what the value means."""
        if self.ext != ext.EMPTY:
            ext.check(self.ext, "the value", at)

    def unknown_check(self) -> Version:
        """The error if checksums of an unknown algorithm would have to be verified."""
        assert self.algorithm is not None
        return Version(
            f"the checksums are of the algorithm {self.algorithm[0]!r}, which is not known here; "
            "with `verify=False` the tensors are read without being verified"
        )

    def content_digest(self, hashes: bytes) -> bytes | None:
        """The digest of a segment with this header and these hashes of chunks (SPEC 5.10), as 16 bytes.

        `None` if it has none.
        """
        if self.lengths:
            if not self.checksums:
                return None
            state = xxhash.xxh3_128(_content(HEADER, replace(self, name=None, ext=ext.odd(self.ext))._fields()))
            state.update(self._hashes_head + items.head(BYTES, len(hashes)))
            state.update(hashes)
            return state.digest()
        before = _before(None, self.alignment, self.checksums, self.chunk_len, self.algorithm, ext.odd(self.ext))
        return xxhash.xxh3_128_digest(before + self.metadata)

    def places(self) -> list[int]:
        """The position of each buffer in the body."""
        starts, end = [], 0
        for number, length in enumerate(self.stored_lengths):
            is_aligned = number not in self.packed and number not in self.elsewhere
            starts.append(end + -end % self.alignment if is_aligned else end)
            end = starts[-1] + length
        return starts

    @cached_property
    def stored_lengths(self) -> tuple[int, ...]:
        """The number of bytes in the archive of each buffer."""
        if not self.packed and not self.elsewhere:
            return self.lengths
        stored = list(self.lengths)
        for number in self.elsewhere:
            stored[number] = 0
        for number, packed in self.packed.items():
            stored[number] = packed.stored_length
        return tuple(stored)

    def hasher(self, number: int) -> ChunkHasher:
        """Computes the hashes of a buffer from the bytes in the archive."""
        packed = self.packed.get(number)
        return ChunkHasher(self.chunk_len, self.lengths[number], None if packed is None else packed.stored)

    def body_length(self) -> int:
        """The length of all buffers, with the padding between them."""
        return self.places()[-1] + self.stored_lengths[-1] if self.lengths else 0

    def before_body(self, at: int) -> bytes:
        """The bytes between the record, which ends at position `at`, and the body's content: padding and head."""
        head = items.head(BYTES, self.body_length())
        return padding(-(at + len(head)) % self.alignment) + head

    @property
    def hash_len(self) -> int:
        """The length of the hash of a chunk, in bytes."""
        return HASH_LEN if self.algorithm is None else self.algorithm[1]

    @property
    def _hashes_head(self) -> bytes:
        return _HASHES if self.algorithm is None else _OTHER_HASHES

    @cached_property
    def hash_bytes(self) -> int:
        """The length of the hashes of all chunks."""
        return self.hash_len * total_of(self.lengths, self.chunk_len) if self.checksums else 0

    def hash_list(self, hashes: bytes, seed: bytes) -> bytes:
        """Encodes the list of these hashes of chunks: see `hash_list`."""
        return hash_list(hashes, seed, self._hashes_head)

    def hashes_length(self) -> int:
        """The length of the list of hashes after the body, with its own hash."""
        if not self.lengths:
            return 0
        content = self.hash_bytes
        return len(_HASHES) + len(items.head(BYTES, content)) + content + HASH_ITEM

    def packed_length(self) -> int:
        """The number of stored bytes of compressed buffers."""
        return sum(packed.stored_length for packed in self.packed.values())

    def check_hashes_length(self, limits: Limits, at: int) -> None:
        """Checks that the list of hashes at a position may be read. A sparse file can claim any length."""
        length = self.hashes_length()
        if length > limits.longest:
            text = f"a list of hashes of {length} bytes, more than the limit of {limits.longest}"
            raise Limit(text, offset=at)


@functools.lru_cache(64)
def _before(
    name: str | None,
    alignment: int,
    checksums: bool,
    chunk_len: int,
    algorithm: tuple[str, int] | None,
    extensions: bytes,
) -> bytes:
    """The content of a header without buffers, up to its metadata. It is the same for many small values."""
    header = Header(name, alignment, checksums, chunk_len, (), b"", algorithm=algorithm, ext=extensions)
    return _content(HEADER, header._fields())


def _read_algorithm(fields: Items) -> tuple[str, int]:
    """Reads the description of an algorithm of checksums that is not known here."""
    start = fields.at
    count = fields.definite(ARRAY, "check")
    if count != 2:
        raise fields.damaged(f"expected a check of 2 items, found {count}", start)
    name = fields.name("the name of a check")
    at = fields.at
    length = fields.definite(UNSIGNED, "length of a hash")
    if not 1 <= length <= _MAX_HASH:
        raise fields.damaged(f"expected hashes of 1 to {_MAX_HASH} bytes, found {length}", at)
    if name == CHECK:
        raise fields.damaged(f"the check {CHECK} has to be a text", start)
    return name, length


def padding(gap: int) -> bytes:
    """So many bytes of padding (SPEC 5.4)."""
    if gap in (25, 258):
        # No byte string with the shortest head has these lengths in total, so there are two.
        return b"\x40" + _zeros(gap - 1)
    return _zeros(gap) if gap else b""


def _zeros(total: int) -> bytes:
    """A byte string of zeros that is `total` bytes long with its head."""
    for width in (1, 2, 3):
        head = items.head(BYTES, max(total - width, 0))
        if len(head) == width:
            return head + bytes(total - width)
    raise AssertionError(f"no padding of {total} bytes")


def check_name(name: str | None) -> None:
    """Checks the name of a segment: text of at most 1,024 bytes."""
    if name is not None:
        encode_name(name, MAX_NAME, "a name")


def read_name(fields: Items) -> str | None:
    start = fields.at
    name = fields.text_or_null("name")
    if name is not None and len(name.encode()) > MAX_NAME:
        raise fields.damaged(f"a name is longer than {MAX_NAME} bytes", start)
    return name


def hash_list(hashes: bytes, seed: bytes, head: bytes = _HASHES) -> bytes:
    """Encodes the list of hashes after a body. Its own hash is seeded with the hash of the header."""
    return hashed(head + items.byte_string(hashes), int.from_bytes(seed, "big"))


def read_hash_list(
    found: bytes, header: Header, seed: bytes, at: int, source: str = "the archive"
) -> Hashes | None:
    """Reads the list of hashes after a body, and checks its own hash. `None` if there are no hashes in it."""
    item, behind = memoryview(found)[:-HASH_ITEM], found[-HASH_ITEM:]
    head = header._hashes_head + items.head(BYTES, header.hash_bytes)
    expect(found[: len(head)], head, at, "the list of hashes")
    expect(behind, _HASH_HEAD + digest(item, int.from_bytes(seed, "big")), at + len(item), "the list of hashes")
    content = found[len(head) : -HASH_ITEM]
    if not header.checksums:
        return None
    return Hashes(content, header.lengths, header.packed, header.chunk_len, source, header.hash_len)


def expect(found: bytes, wanted: bytes, at: int, what: str) -> None:
    """Compares bytes with those that a writer must write."""
    if found != wanted:
        pairs = enumerate(zip(found, wanted, strict=False))
        differs = next((n for n, (a, b) in pairs if a != b), min(len(found), len(wanted)))
        raise Damaged(f"{what} has wrong bytes", offset=at + differs)
