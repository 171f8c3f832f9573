"""Archives a second time, from section 5 of SPEC.md alone: a strict reader and a writer.

The metadata and buffers of a value are in `metadata.py`. Nothing here is a translation of the
crate's code, so where the two differ the text has two readings. `archives.py` holds them against
each other.
"""

from typing import NamedTuple

import cbor2
import xxhash

from check import COLUMN_MAJOR, COMPLEX_TAG, ROW_MAJOR, Mismatch
from compressed import (
    Compressed,
    check,
    compress,
    content_of,
    length_of,
    parameters_of,
    size_of,
    stored_length,
)
from heads import array, bytes_, head, tag
from metadata import Encoder, Resolver

MAGIC = bytes.fromhex("d9d9f8 da54415243 43424f52")
HEADER, BLOCK, END, AUX = (
    int.from_bytes(letters, "big") for letters in (b"TSEG", b"TDIR", b"TEND", b"TAUX")
)
RECORD = b"\xd8\x18"
HASHES = b"\xd8\x43"
TAIL = b"\x58\x28TARCTAIL"
TAIL_LEN = 42
SECTOR = 512
VERSION = 1
# The extensions of what has none.
NOTHING = b"\xa0"
NULL = b"\xf6"
COLUMNS = bytes.fromhex("da54434f4c")
BRANCHES = 64
# The tags of typed arrays, and those of big-endian and clamped numbers, which metadata does not have.
TYPED_TAGS = {64, *range(69, 73), *range(77, 80), *range(84, 88), COMPLEX_TAG}
OTHER_TAGS = {*range(65, 69), *range(73, 77), *range(80, 84)}
MAX_NAME = 1024
CHUNK_LENGTHS = [1 << shift for shift in range(16, 31)]
MIB = 1 << 20
XXH3 = "xxh3-64"


class Damaged(Exception):
    def __init__(self, at, what):
        super().__init__(f"at {at}: {what}")


def hash_of(data, seed=0):
    # The digest is big-endian, as it is stored.
    return xxhash.xxh3_64_digest(data, seed)


def hashed(item, seed):
    """An item with the item of its hash behind it."""
    return item + bytes_(hash_of(item, seed))


# What every archive has in common, whoever writes it.


def record(number, fields, at):
    """A header, block or end mark at a position; `fields` are the items behind the version."""
    content = tag(number, head(4, 1 + len(fields)) + head(0, VERSION) + b"".join(fields))
    return hashed(RECORD + bytes_(content), at)


def text_or_null(value):
    return cbor2.dumps(value)


def padding(at, alignment, body_head):
    return gap_of(-(at + len(body_head)) % alignment)


def gap_of(gap):
    if gap == 0:
        return b""
    if gap in (25, 258):
        # No head of any length makes these totals.
        return bytes_(b"") + padding_item(gap - 1)
    return padding_item(gap)


def padding_item(total):
    return next(
        bytes_(bytes(total - width))
        for width in (1, 2, 3)
        if total >= width and len(head(2, total - width)) == width
    )


def places(sizes, alignment):
    """Where each buffer starts in the body, and the length of the body."""
    end, starts = 0, []
    for size in sizes:
        starts.append(end if isinstance(size, Compressed) else end + -end % alignment)
        end = starts[-1] + stored_length(size)
    return starts, end


def header_fields(name, alignment, checked, chunk, metadata, sizes, ext=NOTHING):
    check = text_or_null(XXH3 if checked else None)
    lengths = array(
        [size.description() if isinstance(size, Compressed) else head(0, size) for size in sizes]
    )
    return [text_or_null(name), head(0, alignment), check, head(0, chunk), lengths, ext, metadata]


def chunks_of(content, chunk):
    """The chunks of a buffer as they are stored. One without bytes has none."""
    if isinstance(content, Compressed):
        return content.stored
    return [content[at : at + chunk] for at in range(0, len(content), chunk)]


def chunk_hashes(buffers, checked, chunk):
    """The hashes of all chunks, one behind the other; none if the buffers are not checked."""
    if not checked:
        return b""
    return b"".join(hash_of(piece) for content in buffers for piece in chunks_of(content, chunk))


def digest_of(segment):
    """The 16 bytes of the digest of a segment or parts; None if there is none."""
    sizes = list(map(size_of, segment.buffers))
    if sizes and not segment.checked:
        return None
    # Even keys of the extensions do not count, and this reader refuses odd ones.
    fields = header_fields(
        None, segment.alignment, segment.checked, segment.chunk, segment.metadata, sizes
    )
    hashed_bytes = tag(HEADER, array([head(0, VERSION), *fields]))
    if sizes:
        hashed_bytes += HASHES + bytes_(chunk_hashes(segment.buffers, True, segment.chunk))
    return xxhash.xxh3_128_digest(hashed_bytes)


def archive_digest(segments):
    """The digits of the digest of an archive; None if there is none."""
    digests = [digest_of(segment) for segment in segments]
    if None in digests:
        return None
    pairs = [
        array([text_or_null(segment.name), bytes_(digest)])
        for segment, digest in zip(segments, digests)
    ]
    return xxhash.xxh3_128_hexdigest(array(pairs))


def rows_of(metadata):
    """The number of elements of an array or of columns, as the directory has it; None for others."""
    if metadata[0] >> 5 == 4:
        found = Input(metadata).any_head("value")[1]
        return len(cbor2.loads(metadata)) if found is None else found
    return sum(cbor2.loads(metadata).value[::2]) if metadata.startswith(COLUMNS) else None


class Entry(NamedTuple):
    """What the directory has of a segment. An end mark has no digests."""

    offset: int
    name: str | None
    length: int  # of the record of its header
    rows: int | None
    digest: bytes | None


def list_of(entries, in_block):
    """A list of segments: their names, and what refers to them by numbers."""
    names = list(dict.fromkeys(entry.name for entry in entries if entry.name is not None))
    items = []
    for entry in entries:
        number = None if entry.name is None else names.index(entry.name)
        fields = [entry.offset, number, entry.length, entry.rows]
        numbers = [NULL if field is None else head(0, field) for field in fields]
        digest = [NULL if entry.digest is None else bytes_(entry.digest)] if in_block else []
        items.append(array(numbers + digest))
    return array([array(list(map(text_or_null, names))), array(items)])


def links_of(blocks):
    return array([array([head(0, number) for number in block]) for block in blocks])


class Directory:
    """The lists of a writer: of segments, of blocks of these, of blocks of those."""

    def __init__(self):
        self.count = 0
        self.levels = [[]]

    def add(self, entry, at):
        """Notes a segment; the blocks that then follow at a position, often none."""
        self.count += 1
        self.levels[0].append(entry)
        written = b""
        level = 0
        while len(self.levels[level]) == BRANCHES:
            place, full = at + len(written), self.levels[level]
            items = links_of(full) if level else list_of(full, True)
            block = record(BLOCK, [head(0, level), items, NOTHING], place)
            written += block
            self.levels[level] = []
            level += 1
            if level == len(self.levels):
                self.levels.append([])
            self.levels[level].append((place, len(block)))
        return written

    def end(self, at):
        """The end mark, padding and the tail at a position."""
        first, *others = self.levels
        lists = [list_of(first, False), array(list(map(links_of, others)))]
        mark = record(END, [head(0, self.count), *lists, NOTHING], at)
        behind = at + len(mark)
        # The tail is in one sector.
        rest = behind % SECTOR
        gap = gap_of(0 if rest <= SECTOR - TAIL_LEN else SECTOR - rest)
        place = behind + len(gap)
        tail = TAIL + b"".join(number.to_bytes(8, "big") for number in (at, len(mark), place))
        return mark + gap + tail + hash_of(tail, place)


# Reading


class Segment(NamedTuple):
    offset: int
    name: str | None
    alignment: int
    checked: bool
    chunk: int
    metadata: bytes
    buffers: list[bytes | Compressed]
    ext: bytes
    value: object


class Input:
    """A part of an archive, read from the front."""

    def __init__(self, data, at=0, end=None):
        self.data, self.at = data, at
        self.end = len(data) if end is None else end

    def take(self, length, what):
        if length > self.end - self.at:
            raise Damaged(self.at, f"{what}: {length} bytes, {self.end - self.at} are left")
        self.at += length
        return self.data[self.at - length : self.at]

    def expect(self, wanted, what):
        place = self.at
        found = self.take(len(wanted), what)
        if found != wanted:
            differs = next(i for i, pair in enumerate(zip(found, wanted)) if pair[0] != pair[1])
            raise Damaged(place + differs, f"{what}: not as it must be written")

    def any_head(self, what):
        """Major type and argument; the argument is None for an indefinite length and a break."""
        place = self.at
        (first,) = self.take(1, what)
        major, info = first >> 5, first & 31
        if info < 24:
            return major, info
        if info == 31 and major not in (0, 1, 6):
            return major, None
        if info > 27:
            raise Damaged(place, f"{what}: {first:#x} starts no item")
        return major, int.from_bytes(self.take(1 << info - 24, what), "big")

    def head(self, major, what):
        """The argument of a head that must have this type and be as short as it can be."""
        place = self.at
        found, argument = self.any_head(what)
        if found != major or argument is None:
            raise Damaged(place, f"{what}: an item of another kind")
        if head(major, argument) != self.data[place : self.at]:
            raise Damaged(place, f"{what}: a head longer than it need be")
        return argument

    def text_or_null(self, what):
        if self.is_null():
            return None
        length = self.head(3, what)
        place = self.at
        try:
            return self.take(length, what).decode()
        except UnicodeDecodeError:
            raise Damaged(place, f"{what}: no UTF-8") from None

    def is_null(self):
        """Passes a null over, if it is next."""
        found = self.data[self.at : min(self.at + 1, self.end)] == NULL
        self.at += found
        return found

    def number_or_null(self, what):
        return None if self.is_null() else self.head(0, what)

    def record(self):
        """The tag of a record, the array of its content, and its hash."""
        start = self.at
        self.expect(RECORD, "record")
        length = self.head(2, "record")
        inner = Input(self.data, self.at, self.at + length)
        content = self.take(length, "record")
        known = [tag(number, b"") for number in (HEADER, BLOCK, END, AUX)]
        if content[:5] in known:
            # A later version may hash in another way, or have other fields: this comes first.
            version = Input(self.data, inner.at + 5, inner.end)
            version.any_head("array of a record")
            kind, found = version.any_head("version")
            # A lost sector can leave a 0.
            if kind == 0 and found > VERSION:
                raise Damaged(start, f"version {found} of the format, known is {VERSION}")
        item = self.data[start : self.at]
        self.expect(bytes_(hash_of(item, start)), "hash of a record")
        if content[:5] not in known:
            raise Damaged(start, "a record of an unknown kind")
        return inner.head(6, "tag of a record"), inner, hash_of(item, start)

    def extensions(self):
        """A map of extensions, of which every odd key would have to be known."""
        start, last = self.at, -1
        for _ in range(self.head(5, "extensions")):
            place = self.at
            key = self.head(0, "key of an extension")
            if key <= last:
                raise Damaged(place, "keys of extensions that do not ascend")
            if key % 2:
                raise Damaged(place, f"the unknown extension {key}")
            last, value = key, self.at
            self.strict()
            if key == 0:
                Input(self.data, value, self.at).notes()
        if self.at - start > 65_536:
            raise Damaged(start, "extensions of more than 65,536 bytes")
        return bytes(self.data[start : self.at])

    def notes(self):
        """Texts, whose keys ascend."""
        last = None
        for _ in range(self.head(5, "notes")):
            place = self.at
            key, _ = (self.take(self.head(3, "note"), "note") for _ in range(2))
            if last is not None and key <= last:
                raise Damaged(place, "keys of notes that do not ascend")
            last = key

    def strict(self, depth=1):
        """Passes one item over that has the shortest heads and definite lengths."""
        place = self.at
        major, argument = self.any_head("extension")
        if depth > 128 or argument is None:
            raise Damaged(place, "too many levels, or an indefinite length")
        is_float = major == 7 and self.data[place] > 0xF8
        if not is_float and head(major, argument) != self.data[place : self.at]:
            raise Damaged(place, "a head longer than it need be")
        if major == 7 and self.data[place] == 0xF8 and argument < 32:
            raise Damaged(place, "a simple value in two bytes")
        if major in (2, 3):
            content = self.take(argument, "extension")
            if major == 3:
                try:
                    bytes(content).decode()
                except UnicodeDecodeError:
                    raise Damaged(place, "no UTF-8") from None
        for _ in range({4: argument, 5: 2 * argument, 6: 1}.get(major, 0)):
            self.strict(depth + 1)

    def skip(self, depth=0):
        """Passes one item of metadata over, which says each thing in one way. Returns the tag in front of it."""
        place = self.at
        if depth > 128:
            raise Damaged(place, "more than 128 levels")
        major, argument = self.any_head("metadata")
        if argument is None:
            raise Damaged(place, "an indefinite length")
        if major in (2, 3):
            self.take(argument, "string")
        elif major in (4, 5):
            for _ in range(argument * (major - 3)):
                self.skip(depth + 1)
        elif major == 6:
            if argument in OTHER_TAGS:
                raise Damaged(place, f"tag {argument} in metadata")
            if argument not in (ROW_MAJOR, COLUMN_MAJOR):
                self.skip(depth + 1)
            elif self.head(4, "a tensor") != 2:
                raise Damaged(place, "a tensor that is not a shape and elements")
            else:
                self.skip(depth + 2)
                if self.skip(depth + 2) not in TYPED_TAGS:
                    raise Damaged(place, "a tensor without a typed array")
            return argument
        return None


class Header(NamedTuple):
    name: str | None
    alignment: int
    checked: bool
    chunk: int
    lengths: list[int | Compressed]
    ext: bytes
    metadata: bytes
    at: int  # where the metadata stands


def read_header(inner):
    """The content of a header, behind its tag."""
    if inner.head(4, "header") != 8:
        raise Damaged(inner.at, "header: not eight fields")
    version(inner)
    place = inner.at
    name = inner.text_or_null("name")
    if name is not None and len(name.encode()) > MAX_NAME:
        raise Damaged(place, "a name of more than 1,024 bytes")
    place = inner.at
    alignment = inner.head(0, "alignment")
    if alignment not in (1 << shift for shift in range(3, 17)):
        raise Damaged(place, f"an alignment of {alignment}")
    place = inner.at
    if inner.data[inner.at : min(inner.at + 1, inner.end)] == b"\x82":
        raise Damaged(place, "hashes that this reader does not know")
    check = inner.text_or_null("check")
    if check not in (None, XXH3):
        raise Damaged(place, f"the unknown check {check!r}")
    place = inner.at
    chunk = inner.head(0, "chunk")
    if chunk not in CHUNK_LENGTHS:
        raise Damaged(place, f"chunks of {chunk} bytes")
    place = inner.at
    lengths = [read_size(inner, chunk) for _ in range(inner.head(4, "lengths"))]
    if places(lengths, alignment)[1] > 2**63 - 1:
        raise Damaged(place, "lengths beyond 2^63 - 1")
    ext = inner.extensions()
    place = inner.at
    inner.skip()
    if inner.at != inner.end:
        raise Damaged(inner.at, "something behind the metadata")
    metadata = bytes(inner.data[place : inner.end])
    return Header(name, alignment, check is not None, chunk, lengths, ext, metadata, place)


def version(inner):
    place = inner.at
    if inner.head(0, "version") != VERSION:
        raise Damaged(place, "no version")


def read_size(inner, chunk):
    """The length of a buffer, or the description of a compressed one."""
    if inner.at == inner.end or inner.data[inner.at] >> 5 != 4:
        return inner.head(0, "length")
    place = inner.at
    count = inner.head(4, "description of a buffer")
    if count != 4:
        what = "a buffer elsewhere" if count == 3 else "a buffer of neither three nor four items"
        raise Damaged(place, what)
    codec = inner.text_or_null("codec")
    parameters = [inner.head(0, "parameter") for _ in range(inner.head(4, "parameters"))]
    length = inner.head(0, "length")
    sizes = [inner.head(0, "stored length") for _ in range(inner.head(4, "stored lengths"))]
    described = Compressed(codec or "", parameters, length, sizes)
    try:
        check(described, chunk)
    except Mismatch as error:
        raise Damaged(place, str(error)) from error
    return described


def read_segment(start, inner, seed, after):
    """The segment at `start`, from its header's content and what stands behind the header."""
    header = read_header(inner)
    buffers = read_body(header, seed, after) if header.lengths else []
    try:
        contents = [content_of(buffer, header.chunk) for buffer in buffers]
        value = Resolver(contents).whole(cbor2.loads(header.metadata))
    except (TypeError, ValueError, Mismatch, cbor2.CBORDecodeError) as error:
        raise Damaged(header.at, f"metadata: {error}") from error
    return Segment(start, *header[:4], header.metadata, buffers, header.ext, value)


def read_body(header, seed, after):
    starts, length = places(header.lengths, header.alignment)
    body_head = head(2, length)
    after.expect(padding(after.at, header.alignment, body_head), "padding")
    after.expect(body_head, "head of the body")
    base = after.at
    buffers = []
    for start, size in zip(starts, header.lengths):
        after.expect(bytes(base + start - after.at), "gap between buffers")
        content = bytes(after.take(stored_length(size), "buffer"))
        buffers.append(size.filled(content) if isinstance(size, Compressed) else content)
    hashes = read_hashes(header, seed, after)
    if header.checked:
        check_chunks(buffers, header.chunk, hashes, [base + start for start in starts])
    return buffers


def read_hashes(header, seed, after):
    """The hashes of the chunks, one behind the other, from their list."""
    lengths = [size.length if isinstance(size, Compressed) else size for size in header.lengths]
    size = 8 * sum(-(-length // header.chunk) for length in lengths) * header.checked
    item = HASHES + head(2, size)
    after.expect(item, "list of hashes")
    hashes = bytes(after.take(size, "list of hashes"))
    after.expect(bytes_(hash_of(item + hashes, int.from_bytes(seed, "big"))), "hash of hashes")
    return hashes


def check_chunks(buffers, chunk, hashes, starts):
    """Holds the chunks of buffers, each of which starts somewhere, against their hashes."""
    for number, (content, start) in enumerate(zip(buffers, starts)):
        for index, piece in enumerate(chunks_of(content, chunk)):
            wanted, hashes = hashes[:8], hashes[8:]
            if hash_of(piece) != wanted:
                raise Damaged(start, f"buffer {number}, chunk {index}: changed")
            start += len(piece)


def read_archive(data):
    """All segments from the front, and for each end mark the number of segments before it."""
    after = Input(data)
    after.expect(MAGIC, "magic")
    directory, segments, ends = Directory(), [], []
    while True:
        start = after.at
        if start == len(data) and ends and ends[-1] == len(segments):
            return segments, ends
        number, inner, seed = after.record()
        if number == HEADER:
            length = after.at - start
            found = read_segment(start, inner, seed, after)
            segments.append(found)
            entry = Entry(start, found.name, length, rows_of(found.metadata), digest_of(found))
            blocks = directory.add(entry, after.at)
            after.expect(blocks, "block of the directory")
        elif number == END:
            after.at = start
            after.expect(directory.end(start), "end mark and tail")
            ends.append(len(segments))
        elif number == AUX and start > len(MAGIC) and inner.head(4, "auxiliary record") == 3:
            # No kinds are known. They are at most 16 MiB long.
            version(inner)
            inner.head(0, "kind")
            if after.at - start > 16 * MIB:
                raise Damaged(start, "an auxiliary record of more than 16 MiB")
        else:
            raise Damaged(start, "a block of the directory that no list has filled")


def find_segments(data):
    """Offset and name of every segment, from the tail backwards."""
    at = len(data) - TAIL_LEN
    if at < len(MAGIC):
        raise Damaged(0, "too short for an archive")
    tail = Input(data, at)
    tail.expect(TAIL, "tail")
    mark, length = (int.from_bytes(tail.take(8, "tail"), "big") for _ in range(2))
    tail.expect(at.to_bytes(8, "big"), "offset in the tail")
    tail.expect(hash_of(data[at : at + 34], at), "hash of the tail")

    number, root, behind = record_at(data, mark, at, length)
    if number != END or root.head(4, "end mark") != 5:
        raise Damaged(mark, "no end mark that leads to the tail")
    if at // SECTOR != (at + TAIL_LEN - 1) // SECTOR or at - behind >= TAIL_LEN:
        raise Damaged(at, "a tail in the wrong place")
    version(root)
    count = root.head(0, "number of segments")
    segments = read_entries(root, False)
    levels = [read_links(root) for _ in range(root.head(4, "levels"))]
    root.extensions()
    if root.at != root.end:
        raise Damaged(root.at, "something behind the lists")
    if any(len(entries) >= BRANCHES for entries in [segments, *levels]):
        raise Damaged(mark, "a list that should be a block")
    held = sum(len(entries) * BRANCHES**level for level, entries in enumerate([segments, *levels]))
    if held != count:
        raise Damaged(mark, f"{count} segments announced, lists for {held}")
    found = []
    for level in reversed(range(len(levels))):
        for link in levels[level]:
            found += open_block(data, link, level, mark)
    found += segments
    offsets = [entry.offset for entry in found]
    if offsets != sorted(set(offsets)) or offsets and offsets[-1] >= mark:
        raise Damaged(mark, "offsets of segments that do not rise")
    for entry in found:
        number, inner, _ = record_at(data, entry.offset, mark, entry.length)
        if number != HEADER:
            raise Damaged(entry.offset, "no header where the directory has a segment")
        header = read_header(inner)
        if (header.name, rows_of(header.metadata)) != (entry.name, entry.rows):
            raise Damaged(entry.offset, "no segment of the name and rows that the directory has")
    return [(entry.offset, entry.name) for entry in found]


def record_at(data, offset, before, length):
    """The tag and content of a record that ends before a position, and where it ends."""
    if offset + length > before:
        raise Damaged(offset, f"an offset that does not lead to before {before}")
    found = Input(data, offset, offset + length)
    number, inner, _ = found.record()
    if found.at != found.end:
        raise Damaged(offset, f"a record that is shorter than {length} bytes")
    return number, inner, found.at


def read_entries(content, in_block):
    """A list of segments."""
    place = content.at
    if content.head(4, "list of segments") != 2:
        raise Damaged(place, "list of segments: not two items")
    names = [content.text_or_null("name") for _ in range(content.head(4, "names"))]
    found = []
    for _ in range(content.head(4, "entries")):
        if content.head(4, "entry") != 4 + in_block:
            raise Damaged(place, "entry: another number of fields")
        offset, number = content.head(0, "offset"), content.number_or_null("name")
        if number is not None and number >= len(names):
            raise Damaged(place, f"the name {number} of {len(names)}")
        name = None if number is None else names[number]
        length, rows = content.head(0, "length of a header"), content.number_or_null("rows")
        digest = None
        if in_block and not content.is_null():
            digest = bytes(content.take(content.head(2, "digest"), "digest"))
        found.append(Entry(offset, name, length, rows, digest))
    # There is one way to write it.
    if list_of(found, in_block) != content.data[place : content.at]:
        raise Damaged(place, "list of segments: not as it must be written")
    return found


def read_links(content):
    links = []
    for _ in range(content.head(4, "blocks")):
        if content.head(4, "entry") != 2:
            raise Damaged(content.at, "entry: not two fields")
        links.append((content.head(0, "offset"), content.head(0, "length of a block")))
    return links


def open_block(data, link, level, before):
    offset, length = link
    number, block, _ = record_at(data, offset, before, length)
    if number != BLOCK or block.head(4, "block") != 4:
        raise Damaged(offset, "no block of the directory")
    version(block)
    if block.head(0, "level") != level:
        raise Damaged(offset, f"no block of level {level}")
    found = read_links(block) if level else read_entries(block, True)
    if len(found) != BRANCHES:
        raise Damaged(offset, f"a block of {len(found)} entries")
    block.extensions()
    if level:
        found = [entry for inner in found for entry in open_block(data, inner, level - 1, offset)]
    elif any(entry.offset >= offset for entry in found):
        raise Damaged(offset, "an offset to behind the block")
    if block.at != block.end:
        raise Damaged(block.at, "something behind the entries")
    return found


# Writing


class Writer:
    def __init__(self):
        self.out = bytearray(MAGIC)
        self.directory = Directory()

    def save(
        self,
        name,
        value,
        alignment=256,
        checked=True,
        chunk=MIB,
        codec=None,
        parameters=None,
        **options,
    ):
        """Saves a value; gives the lengths of its buffers.

        With a codec, the buffers are compressed, with these parameters or those for their dtypes.
        """
        encoder = Encoder(**options)
        metadata, buffers = encoder.whole(value)
        if codec:
            each = [parameters or parameters_of(dtype) for dtype in encoder.dtypes]
            pairs = zip(buffers, each, strict=True)
            buffers = [compress(content, chunk, codec, chosen) for content, chosen in pairs]
        self.segment(name, alignment, checked, chunk, metadata, buffers)
        return list(map(length_of, buffers))

    def segment(self, name, alignment, checked, chunk, metadata, buffers, ext=NOTHING):
        start = len(self.out)
        sizes = list(map(size_of, buffers))
        fields = header_fields(name, alignment, checked, chunk, metadata, sizes, ext)
        self.out += record(HEADER, fields, start)
        header = len(self.out) - start
        if buffers:
            seed = int.from_bytes(self.out[-8:], "big")
            starts, length = places(sizes, alignment)
            body_head = head(2, length)
            self.out += padding(len(self.out), alignment, body_head) + body_head
            base = len(self.out)
            for place, content in zip(starts, buffers):
                self.out += bytes(base + place - len(self.out))
                self.out += b"".join(chunks_of(content, chunk))
            hashes = chunk_hashes(buffers, checked, chunk)
            self.out += hashed(HASHES + bytes_(hashes), seed)
        made = Segment(start, name, alignment, checked, chunk, metadata, buffers, ext, None)
        entry = Entry(start, name, header, rows_of(metadata), digest_of(made))
        self.out += self.directory.add(entry, len(self.out))

    def end(self):
        self.out += self.directory.end(len(self.out))
