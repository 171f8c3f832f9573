"""Builds items, records, archives and parts, byte for byte as SPEC.md says, or wrong where it is told to."""

from __future__ import annotations

import struct

import xxhash

MAGIC = bytes.fromhex("d9d9f8da5441524343424f52")
TSEG, TDIR, TEND, TAUX = 1414743367, 1413761362, 1413828164, 1413567832
TSOM, TENS, TCOL, TBUF, TTYP = 1414745933, 1413828179, 1413697356, 1413633350, 1414814032
XXH = "xxh3-64"

# -- items ------------------------------------------------------------------------------------------------------------


def head(major: int, n: int, width: int | None = None) -> bytes:
    """The head of an item. `width` is the number of bytes after the first one, if it is not the shortest."""
    if width is None:
        width = 0 if n < 24 else 1 if n < 1 << 8 else 2 if n < 1 << 16 else 4 if n < 1 << 32 else 8
    if width == 0:
        return bytes([major << 5 | n])
    return bytes([major << 5 | {1: 24, 2: 25, 4: 26, 8: 27}[width]]) + n.to_bytes(width, "big")


def integer(n: int, width: int | None = None) -> bytes:
    return head(0, n, width) if n >= 0 else head(1, -1 - n, width)


def data(value: bytes, width: int | None = None) -> bytes:
    return head(2, len(value), width) + value


def text(value: str | bytes, width: int | None = None) -> bytes:
    value = value.encode() if isinstance(value, str) else value
    return head(3, len(value), width) + value


def array(*items: bytes, width: int | None = None) -> bytes:
    return head(4, len(items), width) + b"".join(items)


def map_of(*pairs: tuple[bytes, bytes], width: int | None = None) -> bytes:
    return head(5, len(pairs), width) + b"".join(key + value for key, value in pairs)


def tag(n: int, item: bytes, width: int | None = None) -> bytes:
    return head(6, n, width) + item


FALSE, TRUE, NULL, UNDEFINED, BREAK = b"\xf4", b"\xf5", b"\xf6", b"\xf7", b"\xff"


def f16(bits: str) -> bytes:
    return b"\xf9" + bytes.fromhex(bits)


def f32(value: float) -> bytes:
    return b"\xfa" + struct.pack(">f", value)


def f64(value: float) -> bytes:
    return b"\xfb" + struct.pack(">d", value)


class Packed(bytes):
    """An item of which `raw` holds the elements."""


#: dtype: tag, letter of `struct`, bytes
TYPED = {
    "u8": (64, "B", 1),
    "u16": (69, "H", 2),
    "u32": (70, "I", 4),
    "u64": (71, "Q", 8),
    "i8": (72, "b", 1),
    "i16": (77, "h", 2),
    "i32": (78, "i", 4),
    "i64": (79, "q", 8),
    "f16": (84, "e", 2),
    "f32": (85, "f", 4),
    "f64": (86, "d", 8),
    "f128": (87, "", 16),
}


def raw(dtype: str, *values: float) -> bytes:
    """The payload: the elements, little-endian."""
    return struct.pack(f"<{len(values)}{TYPED[dtype][1]}", *values)


def typed(dtype: str, *values: float) -> bytes:
    """A typed array."""
    return tag(TYPED[dtype][0], data(raw(dtype, *values)))


def tensor(shape: list[int], elements: bytes, order: str = "C") -> bytes:
    """A tensor around the item of its elements."""
    return tag(40 if order == "C" else 1040, array(array(*map(integer, shape)), elements))


def tens(dtype: str, shape: list[int], payload: bytes, order: str = "C") -> bytes:
    """A tensor with the tag TENS."""
    return tag(TENS, array(text(dtype), array(*map(integer, shape)), text(order), data(payload)))


def column(kind: str, *items: bytes) -> bytes:
    """A column that is an array beginning with its kind."""
    return array(text(kind), *items)


def fields(**columns: bytes) -> bytes:
    """A column of structs, or a map with these keys."""
    return map_of(*((text(name), item) for name, item in columns.items()))


def columns(*groups: bytes | int) -> bytes:
    """TCOL around rows, column, rows, column, ..."""
    return tag(TCOL, array(*(integer(item) if isinstance(item, int) else item for item in groups)))


def buffer_tensor(dtype: str, shape: list[int], number: int, order: str = "C") -> bytes:
    return tag(TBUF, array(text(dtype), array(*map(integer, shape)), text(order), integer(number)))


def buffer_numbers(dtype: str, number: int) -> bytes:
    return tag(TBUF, array(text(dtype), integer(number)))


def buffer_bytes(number: int) -> bytes:
    return tag(TBUF, array(integer(number)))


# -- values as JSON ---------------------------------------------------------------------------------------------------


def v_tensor(dtype: str, shape: list[int], payload: bytes, order: str = "C") -> dict:
    return {"tensor": {"dtype": dtype, "shape": shape, "order": order, "payload": payload.hex()}}


def v_map(**entries: object) -> dict:
    return {"map": [[name, value] for name, value in entries.items()]}


def v_pairs(*pairs: tuple[object, object]) -> dict:
    return {"map": [list(pair) for pair in pairs]}


def v_f32(value: float) -> dict:
    return {"f32": struct.pack(">f", value).hex()}


def v_f64(value: float) -> dict:
    return {"f64": struct.pack(">d", value).hex()}


def v_bytes(value: bytes) -> dict:
    return {"bytes": value.hex()}


# -- records ----------------------------------------------------------------------------------------------------------


def xxh(content: bytes, seed: int = 0) -> bytes:
    return xxhash.xxh3_64_digest(content, seed=seed)


def xxh128(content: bytes) -> bytes:
    return xxhash.xxh3_128_digest(content)


def record(content: bytes, offset: int, seed: int | None = None) -> bytes:
    """A record, with the seed of another offset if told so."""
    item = tag(24, data(content))
    return item + data(xxh(item, offset if seed is None else seed))


def padding(gap: int) -> bytes:
    """The padding of `gap` bytes."""
    if gap == 0:
        return b""
    if gap in (25, 258):
        return b"\x40" + padding(gap - 1)
    for width in (0, 1, 2, 4):
        length = gap - 1 - width
        if length >= 0 and len(head(2, length)) == 1 + width:
            return data(bytes(length))
    raise AssertionError(gap)


def length_of(element: object) -> bytes:
    """An element of `lengths`: a number, an item that is given as bytes, ."""
    return element if isinstance(element, bytes) else integer(element)


class Buffer:
    """A buffer: its bytes, or where they are elsewhere or stored compressed."""

    def __init__(self, stored: bytes, *, element: bytes | None = None, chunks: list[bytes] | None = None) -> None:
        #: What is in the body, or None if it is elsewhere.
        self.stored: bytes | None = stored
        self.element = integer(len(stored)) if element is None else element
        #: The pieces that are hashed, if they are not those of equal lengths.
        self.chunks = chunks
        self.compressed = chunks is not None


def compressed(codec: str, parameters: list[int], length: int, chunks: list[bytes], lengths: list[int] | None = None) -> Buffer:
    """A compressed buffer: its chunks as they are stored."""
    stored = [len(chunk) for chunk in chunks] if lengths is None else lengths
    element = array(text(codec), array(*map(integer, parameters)), integer(length), array(*map(integer, stored)))
    return Buffer(b"".join(chunks), element=element, chunks=chunks)


def elsewhere(content: bytes, name: str, digest: bytes) -> Buffer:
    """A buffer elsewhere: its hashes are of `content`, which is not in the archive."""
    made = Buffer(content, element=array(integer(len(content)), text(name), data(digest)))
    made.stored = None
    made.content = content
    return made


def header_content(
    name: str | None | bytes,
    metadata: bytes,
    lengths: bytes,
    *,
    alignment: int | bytes = 8,
    check: object = XXH,
    chunk: int | bytes = 65536,
    ext: bytes = b"\xa0",
    version: int | bytes = 1,
) -> bytes:
    def as_item(value: object) -> bytes:
        if isinstance(value, bytes):
            return value
        return NULL if value is None else text(value) if isinstance(value, str) else integer(value)

    if isinstance(check, tuple):
        check = array(text(check[0]), integer(check[1]))
    items = [as_item(part) for part in (version, name, alignment, check, chunk)]
    return tag(TSEG, array(*items, lengths, ext, metadata))


def kept(ext: dict[int, bytes], odd_only: bool = False) -> bytes:
    """`ext` as an item, of all keys or of the odd ones."""
    return map_of(*((integer(key), item) for key, item in ext.items() if key % 2 or not odd_only))


def chunk_hashes(buffers: list[Buffer], chunk: int, check: object, hasher: object = None) -> bytes:
    """The list of hashes of a segment."""
    hashes = b""
    for one in buffers:
        content = one.content if one.stored is None else one.stored
        pieces = one.chunks
        if pieces is None:
            pieces = [content[at : at + chunk] for at in range(0, len(content), chunk)]
        for piece in pieces:
            if isinstance(check, tuple):
                hashes += hasher(piece) if hasher else bytes([0xAB]) * check[1]
            elif check is not None:
                hashes += xxh(piece)
    return tag(64 if isinstance(check, tuple) else 67, data(hashes))


class Segment:
    """What was written of a segment, for the JSON."""

    def __init__(self, name: str | None, offset: int, header: int, rows: int | None, digest: bytes | None) -> None:
        self.name, self.offset, self.header, self.rows, self.digest = name, offset, header, rows, digest
        self.length = 0
        self.hashes_at = 0
        self.body_at = 0
        self.places: list[int | None] = []
        self.said: dict[str, object] = {}

    def json(self) -> dict:
        digest = None if self.digest is None else self.digest.hex()
        fixed = {"name": self.name, "offset": self.offset, "length": self.length, "header": self.header, "rows": self.rows, "digest": digest}
        return {**fixed, **self.said}


def entries_of(segments: list[Segment], digests: bool) -> bytes:
    """A list of segments."""
    names: list[str] = []
    entries = []
    for one in segments:
        if one.name is not None and one.name not in names:
            names.append(one.name)
        name = NULL if one.name is None else integer(names.index(one.name))
        items = [integer(one.offset), name, integer(one.header), NULL if one.rows is None else integer(one.rows)]
        if digests:
            items.append(NULL if one.digest is None else data(one.digest))
        entries.append(array(*items))
    return array(array(*map(text, names)), array(*entries))


def blocks_of(blocks: list[tuple[int, int]]) -> bytes:
    return array(*(array(integer(offset), integer(length)) for offset, length in blocks))


class Archive:
    """An archive that is written from start to end. `bytes` can be changed after each step."""

    def __init__(self, magic: bytes = MAGIC) -> None:
        self.bytes = magic
        self.segments: list[Segment] = []
        self.level0: list[Segment] = []
        self.levels: list[list[tuple[int, int]]] = []
        self.committed = 0
        self.mark_at = self.mark_end = self.tail_at = 0

    def at(self) -> int:
        return len(self.bytes)

    def add(self, more: bytes) -> None:
        self.bytes += more

    def segment(
        self,
        name: str | None,
        metadata: bytes,
        *buffers: bytes | Buffer,
        value: object = ...,
        rows: int | None = None,
        alignment: int = 8,
        check: object = XXH,
        chunk: int = 65536,
        ext: dict[int, bytes] | bytes | None = None,
        content: bytes | None = None,
        change: object = None,
        gap: object = None,
        body: bytes | None = None,
        hashes: bytes | None = None,
        block: bool = True,
        seed: int | None = None,
        hasher: object = None,
        lengths: bytes | None = None,
        digest: bytes | None | object = ...,
        **said: object,
    ) -> Segment:
        """A segment. `content`, `gap`, `body`, `hashes` and `seed` put something else in place of what is right.

        `change` is a function from the right content of the record to the one that is written.
        """
        offset = self.at()
        held = [one if isinstance(one, Buffer) else Buffer(one) for one in buffers]
        if lengths is None:
            lengths = array(*(one.element for one in held))
        extensions = kept(ext) if isinstance(ext, dict) else b"\xa0" if ext is None else ext
        settings = {"alignment": alignment, "check": check, "chunk": chunk}
        if content is None:
            content = header_content(name, metadata, lengths, ext=extensions, **settings)
        if change is not None:
            content = change(content)
        made = record(content, offset, seed)
        one = Segment(name, offset, len(made), rows, None)
        if value is not ...:
            one.said["value"] = value
        one.said.update(said)
        self.add(made)
        own = chunk_hashes(held, chunk, check, hasher) if hashes is None else hashes
        if held:
            laid, one.places = lay(held, alignment)
            laid = laid if body is None else body
            before = self.at() + len(head(2, len(laid)))
            self.add(padding(-before % alignment) if gap is None else gap)
            self.add(head(2, len(laid)))
            one.body_at = self.at()
            self.add(laid)
            one.hashes_at = self.at()
            self.add(own + data(xxh(own, int.from_bytes(made[-8:], "big"))))
        if digest is not ...:
            one.digest = digest
        elif not (held and check is None):
            odd = kept(ext, odd_only=True) if isinstance(ext, dict) else b"\xa0"
            plain = header_content(None, metadata, lengths, ext=odd, **settings)
            one.digest = xxh128(plain + (own if held else b""))
        one.length = self.at() - offset
        self.segments.append(one)
        self.level0.append(one)
        if len(self.level0) == 64 and block:
            self.blocks()
        return one

    def blocks(self, ext: bytes = b"\xa0", change: object = None) -> None:
        """The blocks of the directory that are full."""
        level, content = 0, entries_of(self.level0, True)
        self.level0 = []
        while True:
            content = tag(TDIR, array(integer(1), integer(level), content, ext))
            made = record(change(content) if change else content, self.at())
            if len(self.levels) == level:
                self.levels.append([])
            self.levels[level].append((self.at(), len(made)))
            self.add(made)
            if len(self.levels[level]) < 64:
                return
            content = blocks_of(self.levels[level])
            self.levels[level] = []
            level += 1

    def aux(self, kind: int, payload: bytes) -> tuple[int, int, int]:
        """An auxiliary record."""
        made = record(tag(TAUX, array(integer(1), integer(kind), payload)), self.at())
        self.add(made)
        return kind, self.at() - len(made), len(made)

    def end_content(self, *, count: int | None = None, level0: bytes | None = None, levels: bytes | None = None, ext: bytes = b"\xa0") -> bytes:
        count = len(self.segments) if count is None else count
        level0 = entries_of(self.level0, False) if level0 is None else level0
        levels = array(*map(blocks_of, self.levels)) if levels is None else levels
        return tag(TEND, array(integer(1), integer(count), level0, levels, ext))

    def mark(self, content: bytes | None = None, *, seed: int | None = None, **parts: object) -> None:
        """An end mark, right unless it is told otherwise."""
        self.mark_at = self.at()
        self.add(record(self.end_content(**parts) if content is None else content, self.at(), seed))
        self.mark_end = self.at()

    def tail(self, gap: bytes | None = None, *, mark: int | None = None, length: int | None = None, own: int | None = None, seed: int | None = None) -> None:
        """The padding and the tail, right unless it is told otherwise."""
        at = self.at()
        self.add(padding(-at % 512 if at % 512 > 470 else 0) if gap is None else gap)
        self.tail_at = self.at()
        self.add(tail(self.tail_at, self.mark_at if mark is None else mark, self.mark_end - self.mark_at if length is None else length, own=own, seed=seed))
        self.committed = len(self.segments)

    def end(self, **parts: object) -> None:
        self.mark(**parts)
        self.tail()

    def digest(self) -> str | None:
        """The digest of what was committed."""
        pairs = []
        for one in self.segments[: self.committed]:
            if one.digest is None:
                return None
            pairs.append(array(NULL if one.name is None else text(one.name), data(one.digest)))
        return xxh128(array(*pairs)).hex()

    def reads(self) -> int:
        """How many reads opening takes, with a first one of 4,096 bytes."""
        return 1 if self.mark_at >= len(self.bytes) - 4096 else 2

    def json(self) -> dict:
        segments = [one.json() for one in self.segments[: self.committed]]
        return {"segments": segments, "digest": self.digest()}


def tail(at: int, mark: int, length: int, *, own: int | None = None, seed: int | None = None) -> bytes:
    numbers = (number.to_bytes(8, "big") for number in (mark, length, at if own is None else own))
    made = b"\x58\x28TARCTAIL" + b"".join(numbers)
    return made + xxh(made, at if seed is None else seed)


def lay(buffers: list[Buffer], alignment: int) -> tuple[bytes, list[int | None]]:
    """The content of a body, and where the buffers are in it."""
    content, places = b"", []
    for one in buffers:
        if one.stored is None:
            places.append(None)
            continue
        if not one.compressed:
            content += bytes(-len(content) % alignment)
        places.append(len(content))
        content += one.stored
    return content, places


def parts(metadata: bytes, *buffers: bytes | Buffer, change: object = None, **settings: object) -> list[bytes]:
    """The pieces of parts."""
    held = [one if isinstance(one, Buffer) else Buffer(one) for one in buffers]
    name = settings.pop("name", None)
    hashes = settings.pop("hashes", None)
    hasher = settings.pop("hasher", None)
    content = header_content(name, metadata, array(*(one.element for one in held)), **settings)
    made = record(change(content) if change else content, 0)
    if held:
        own = chunk_hashes(held, settings.get("chunk", 65536), settings.get("check", XXH), hasher) if hashes is None else hashes
        made += own + data(xxh(own, int.from_bytes(made[-8:], "big")))
    return [made, *(one.stored or b"" for one in held)]
