"""The directory, end marks, tails, appends, and what is left after a crash."""

import copy

from .build import *
from .files import *
from .segments import PAYLOAD, TENSOR, fault


def describe(files: Files) -> None:
    trees(files)
    marks(files)
    entries(files)
    blocks(files)
    tails(files)
    commits(files)
    after(files)
    torn_ones(files)
    damaged_ones(files)
    far_tails(files)
    versions(files)
    auxiliary(files)


def number(made: Archive, name: str, value: int) -> Segment:
    return made.segment(name, integer(value), value=value)


def committed(*names: str) -> Archive:
    """An archive with a number under each name, and an end."""
    made = Archive()
    for at, name in enumerate(names or ("a",)):
        number(made, name, at + 1)
    made.end()
    return made


def many(count: int) -> Archive:
    made = Archive()
    for at in range(count):
        number(made, "ab"[at % 2], at)
    return made


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :]


def trees(files: Files) -> None:
    for count in (63, 64, 65):
        made = many(count)
        made.end()
        files.archive(f"directory-{count}", made, f"An archive of {count} segments.", "directory offset-lower verify-digest")
    made = many(130)
    made.end()
    files.archive("directory-130", made, "An archive of 130 segments: two blocks, and two segments in the end mark.", "directory block-compare rising")
    # The JSON says nothing of each segment: it would be longer than the file.
    made, count = Archive(), 64 * 64 + 65
    for at in range(count):
        made.segment("n", array(integer(at)), rows=1)
    made.end()
    about = f"An archive of {count} segments, of which the end mark lists a block of level 1, a block of level 0, and a segment."
    rows = [["n", list(range(count))]]
    files.archive(f"directory-{count}", made, about, "directory block-compare rising", segments=..., tables=rows)
    made = many(60)
    made.end()
    for at in range(60, 70):
        number(made, "ab"[at % 2], at)
    made.end()
    files.archive("directory-append", made, "An append that fills a block.", "directory last-commit")
    made = Archive()
    for at in range(64):
        made.segment("buffers", buffer_bytes(0), bytes([at]), value=v_bytes(bytes([at])), check=None if at == 5 else XXH)
    made.end()
    files.archive("directory-digest-null", made, "A block with a segment that has no digest.", "directory")
    made = Archive()
    for at in range(64):
        one = number(made, "n", at) if at < 63 else made.segment("n", integer(at), value=at, block=False)
        if at == 7:
            one.kept, one.digest = one.digest, None
    made.blocks()
    made.segments[7].digest = made.segments[7].kept
    made.end()
    files.archive("directory-digest-left-out", made, "A block in which the digest of a segment is null, because its writer could not read it.", "directory")
    made = Archive()
    for at in range(110):
        number(made, f"{at:04}" + "n" * 50, at)
    made.end()
    files.archive("directory-long-mark", made, "An end mark that is in the last 4,096 bytes, although its archive is longer.", "directory")
    made = Archive()
    for at in range(60):
        number(made, f"{at:04}" + "n" * 80, at)
    made.end()
    files.archive("directory-longer-mark", made, "An end mark that is not in the last 4,096 bytes.", "directory")


def marks(files: Files) -> None:
    def broken(name: str, about: str, rules: str = "only-encoding", of: int = 1, **parts: object) -> None:
        made = many(of)
        made.mark(**parts)
        made.tail()
        files.bad(f"mark-{name}", made, about, rules, open=damaged())

    right = many(2)
    inner = entries_of(right.level0, False)
    first, second = right.segments

    def entry(offset: int, name: int | None, header: int, rows: int | None = None) -> bytes:
        return array(integer(offset), NULL if name is None else integer(name), integer(header), NULL if rows is None else integer(rows))

    assert inner == array(array(text("a"), text("b")), array(entry(first.offset, 0, first.header), entry(second.offset, 1, second.header)))
    both = [entry(first.offset, 0, first.header), entry(second.offset, 1, second.header)]

    def listed(names: list[bytes], *items: bytes) -> bytes:
        return array(array(*names), array(*items))

    names = [text("a"), text("b")]
    broken("count-more", "A number of segments that is more than the entries.", "directory", 2, count=3)
    broken("count-less", "A number of segments that is less than the entries.", "directory", 2, count=1)
    broken("count-wide", "A number of segments whose head is not the shortest.", content=tag(TEND, array(integer(1), integer(2, 1), inner, array(), b"\xa0")), of=2)
    broken("level-empty", "A list of level 1 that never had an entry.", levels=array(array()))
    broken("indefinite", "An end mark with a list of indefinite length.", levels=b"\x9f\xff")
    broken("names-order", "Names that are not in the order of their first entries.", of=2, level0=listed([text("b"), text("a")], entry(first.offset, 1, first.header), entry(second.offset, 0, second.header)))
    broken("names-twice", "A name that is there twice.", of=2, level0=listed([text("a"), text("a")], *both))
    broken("names-unused", "A name without an entry.", of=2, level0=listed([*names, text("c")], *both))
    broken("names-outside", "An entry whose name is not there.", of=2, level0=listed([text("a")], *both))
    broken("names-bytes", "A name that is a byte string.", of=2, level0=listed([data(b"a"), text("b")], *both))
    broken("names-long", "A name of 1,025 bytes.", of=2, level0=listed([text("n" * 1025), text("b")], *both))
    broken("entry-five", "An entry with a digest, as in a block.", of=2, level0=entries_of(right.level0, True))
    broken("entry-three", "An entry without rows.", of=2, level0=listed(names, both[0], array(integer(second.offset), integer(1), integer(second.header))))
    broken("offsets-equal", "Two segments at one place.", "rising", 2, level0=listed(names, both[0], entry(first.offset, 1, first.header)))
    broken("offsets-fall", "Offsets that fall.", "rising", 2, level0=listed(names, entry(second.offset, 0, second.header), entry(first.offset, 1, first.header)))
    made = many(2)
    broken("offset-own", "A segment at the place of the end mark.", "offset-lower", 2, level0=listed(names, both[0], entry(made.at(), 1, second.header)))
    broken("offset-behind", "A segment behind the end mark.", "offset-lower", 2, level0=listed(names, both[0], entry(made.at() + 20, 1, second.header)))
    broken("room", "More segments than there are bytes before the end mark.", "room", of=1, content=tag(TEND, array(integer(1), integer(65), entries_of(many(1).level0, False), array(array(array(integer(13), integer(40)))), b"\xa0")))
    broken("room-high", "2^60 segments, claimed by blocks of a high level.", "room", of=1, content=tag(TEND, array(integer(1), integer(64**10 + 1), entries_of(many(1).level0, False), array(*([array()] * 9), array(array(integer(13), integer(40)))), b"\xa0")))
    broken("four-items", "An end mark without its extensions.", content=tag(TEND, array(integer(1), integer(1), entries_of(many(1).level0, False), array())))
    broken("trailing", "A byte after the item in an end mark's record.", content=many(1).end_content() + b"\0")
    broken("other-tag", "A record in place of the end mark that has the tag of a header.", "records", content=many(1).end_content().replace(b"TEND", b"TSEG"))
    made = Archive()
    for at in range(64):
        made.segment("n", integer(at), value=at, block=False)
    made.end()
    files.bad("mark-64-entries", made, "An end mark with 64 segments in the list of level 0, which is a block's.", "directory only-encoding", open=damaged())
    made = many(1)
    made.mark(seed=0)
    made.tail()
    files.bad("mark-seed", made, "An end mark whose hash has the seed 0.", "record-hash", open=damaged())
    made = many(1)
    made.end()
    made.bytes = flipped(made.bytes, made.mark_at + 20)
    files.bad("mark-flip", made, "A changed byte in the only end mark: the tail shows that it was there.", "judge-damaged record-hash", open=damaged(made.mark_at))
    made = many(1)
    made.mark(ext=map_of((integer(4711), NULL)))
    made.tail()
    files.bad("mark-ext-odd", made, "An unknown odd key in the last end mark.", "ext-keys", open=unsupported("4711"))
    made = many(1)
    made.mark(ext=map_of((integer(2), text("x"))))
    made.tail()
    files.archive("mark-ext-even", made, "An unknown even key in the end mark.", "ext-keys")
    made = many(1)
    made.mark(ext=map_of((integer(4711), NULL)))
    made.tail()
    number(made, "b", 1)
    made.end()
    files.archive("mark-ext-odd-older", made, "An unknown odd key in an end mark that is not the last.", "ext-keys last-commit")
    made = many(1)
    made.mark(ext=map_of((integer(2), NULL), (integer(2), NULL)))
    made.tail()
    files.bad("mark-ext-twice", made, "A key of an end mark's extensions that is there twice.", "ext-form", open=damaged())


def entries(files: Files) -> None:
    """Entries that say something else than the headers."""

    def broken(name: str, about: str, level0: object, read: object = damaged(), rules: str = "compare-entry") -> None:
        made = Archive()
        made.segment("a", array(integer(1), integer(2)), rows=2)
        made.segment("b", integer(7))
        lied = copy.deepcopy(made.level0)
        level0(lied)
        made.mark(level0=entries_of(lied, False))
        made.tail()
        files.bad(f"entry-{name}", made, about, rules, open=OK, read=read, verify=damaged())

    def name(lied: list[Segment]) -> None:
        lied[1].name = "c"

    def no_name(lied: list[Segment]) -> None:
        lied[1].name = None

    def offset(lied: list[Segment]) -> None:
        lied[1].offset += 1

    def header(lied: list[Segment]) -> None:
        lied[1].header += 1

    def rows(lied: list[Segment]) -> None:
        lied[0].rows = 3

    def no_rows(lied: list[Segment]) -> None:
        lied[0].rows = None

    def new_rows(lied: list[Segment]) -> None:
        lied[1].rows = 0

    broken("name", "A name in the end mark that is not the segment's.", name)
    broken("name-null", "A segment with a name that has none in the end mark.", no_name)
    broken("offset", "An offset in the end mark that is not the segment's.", offset)
    broken("header", "A length of a header in the end mark that is not the header's.", header)
    # A reader that does not count the rows of the value need not see this.
    broken("rows", "A number of rows in the end mark that is not the value's.", rows, [OK, damaged()])
    broken("rows-null", "Rows that are missing in the end mark.", no_rows, [OK, damaged()])
    broken("rows-of-number", "Rows of a value that has none.", new_rows, [OK, damaged()])


def blocks(files: Files) -> None:
    def with_block(**settings: object) -> Archive:
        made = Archive()
        for at in range(64):
            made.segment("n", integer(at), value=at, block=False)
        made.blocks(**settings)
        number(made, "m", 64)
        made.end()
        return made

    def broken(name: str, about: str, rules: str, change: object, **said: object) -> None:
        files.bad(f"block-{name}", with_block(change=change), about, rules, **{"open": OK, "read": damaged(), "verify": damaged(), **said})

    good = with_block()
    listed = entries_of(good.segments[:64], True)

    def content(items: bytes, level: bytes = integer(0), ext: bytes = b"\xa0", version: int = 1) -> object:
        return lambda _: tag(TDIR, array(integer(version), level, items, ext))

    def lied(change: object) -> bytes:
        one = copy.deepcopy(good.segments[:64])
        change(one)
        return entries_of(one, True)

    def digest(one: list[Segment]) -> None:
        one[3].digest = bytes(16)

    def rows(one: list[Segment]) -> None:
        one[3].rows = 9

    def name(one: list[Segment]) -> None:
        one[3].name = "x"

    def fall(one: list[Segment]) -> None:
        one[3].offset, one[4].offset = one[4].offset, one[3].offset

    def behind(one: list[Segment]) -> None:
        one[63].offset = good.levels[0][0][0]

    def short(one: list[Segment]) -> None:
        one[3].digest = bytes(15)

    broken("name", "A name in a block that is not the segment's.", "compare-entry block-compare", content(lied(name)))
    broken("digest", "A digest in a block that is not the segment's, which only verifying sees.", "verify-digest", content(lied(digest)), read=[OK, damaged()])
    broken("rows", "A number of rows in a block that is not the value's.", "compare-entry", content(lied(rows)), read=[OK, damaged()])
    broken("offsets-fall", "Offsets in a block that fall.", "rising", content(lied(fall)))
    broken("offset-own", "A segment at the place of the block that lists it.", "offset-lower", content(lied(behind)))
    broken("digest-short", "A digest of 15 bytes.", "only-encoding", content(lied(short)))
    broken("entries-63", "A block of 63 entries.", "directory", content(entries_of(good.segments[:63], True)))
    broken("level-1", "A block of level 0 that says it is of level 1.", "only-encoding", content(listed, level=integer(1)))
    broken("entry-four", "Entries without digests, as in an end mark.", "only-encoding", content(entries_of(good.segments[:64], False)))
    broken("wide", "A level whose head is not the shortest.", "only-encoding", content(listed, level=integer(0, 1)))
    broken("tag", "A record in place of a block that has another tag.", "records", lambda right: right.replace(b"TDIR", b"TAUX", 1))
    broken("version-2", "A block of version 2.", "later-version", content(listed, version=2), read=unsupported("version 2"), verify=unsupported("version 2"))
    broken("ext-odd", "An unknown odd key in a block: the archive cannot be read by way of it.", "ext-keys", content(listed, ext=map_of((integer(4711), NULL))), read=unsupported("4711"), verify=[OK, unsupported("4711")])
    made = with_block(ext=map_of((integer(2), NULL)))
    files.archive("block-ext-even", made, "An unknown even key in a block.", "ext-keys")
    made = with_block()
    made.bytes = flipped(made.bytes, made.levels[0][0][0] + 40)
    files.bad("block-flip", made, "A changed byte in a block.", "record-hash", open=OK, read=damaged(), verify=damaged())
    made = Archive()
    for at in range(64):
        made.segment("n", integer(at), value=at, block=False)
    made.blocks()
    at, length = made.levels[0][0]
    made.mark(levels=array(blocks_of([(at, length + 1)])))
    made.tail()
    files.bad("block-length", made, "A length of a block in the end mark that is not the block's.", "block-compare", open=OK, read=damaged(), verify=damaged())
    made = many(64)
    made.mark(levels=array(blocks_of([(made.segments[1].offset, made.segments[1].header)])))
    made.tail()
    files.bad("block-is-segment", made, "A block in the end mark that is a header, and leaves no room for its segments.", "room records", open=[OK, damaged()], read=damaged(), verify=damaged())
    made = Archive()
    for at in range(65):
        made.segment("n", integer(at), value=at, block=False)
    made.mark(levels=array(array()), )
    made.tail()
    files.bad("block-missing", made, "65 segments without a block.", "directory", open=damaged())
    made = many(64)
    made.bytes = made.bytes[: made.levels[0][0][0] + 30]
    files.bad("block-cut", made, "An archive that ends inside its first block.", "torn-segments", True, open=torn(64))
    made = many(64)
    files.bad("block-no-mark", made, "An archive that ends after its first block.", "torn-segments", True, open=torn(64))
    made.bytes = flipped(made.bytes, made.levels[0][0][0] + 40)
    made.end()
    made.add(b"\0")
    files.bad("block-flip-behind", made, "A changed byte in a block before the only tail, and a byte after it: the walk ends at the block.", "judge-damaged", open=damaged(made.levels[0][0][0]))


def ending_at(position: int) -> Archive:
    """An archive whose end mark ends at a position that is `position` modulo 512."""
    for length in range(1024):
        made = committed("n" * length)
        if made.mark_end % 512 == position:
            return made
    raise AssertionError


def tails(files: Files) -> None:
    for position, about in ((470, "the tail is directly behind it"), (471, "the tail is behind 41 bytes of padding"), (487, "the padding is two byte strings"), (511, "the padding is one byte"), (0, "the tail is directly behind it")):
        files.archive(f"tail-at-{position}", ending_at(position), f"An end mark that ends at {position} modulo 512: {about}.", "tail-sector judge-padding")

    def broken(name: str, about: str, position: int = 100, gap: bytes | None = None, rules: str = "judge-tail", opening: dict | None = None, **parts: int) -> None:
        made = ending_at(position)
        made.bytes = made.bytes[: made.mark_end]
        made.tail(gap, **parts)
        files.bad(f"tail-{name}", made, about, rules, open=opening or damaged())

    # The walk does not find it where it must be, and its end mark is before the point where the walk ends.
    broken("crosses", "A tail that crosses a multiple of 512: there are not 42 bytes at its place.", 480, b"", "tail-sector", torn(1))
    broken("padding-where-none", "A padding where there must be none.", gap=padding(8), rules="judge-padding tail-sector")
    broken("padding-not-zero", "A padding before the tail that is not zero.", 480, data(bytes(29) + b"\1"), "judge-padding")
    broken("padding-short", "A padding that ends before the multiple of 512.", 471, padding(40), "tail-sector", torn(1))
    broken("padding-two-strings", "A padding of two byte strings in place of one.", 480, padding(16) * 2, "judge-padding")
    made = committed("a")
    right = made.mark_at
    length = made.mark_end - made.mark_at
    made = ending_at(100)
    broken("mark-offset", "A tail with another offset of the end mark.", mark=made.mark_at - 1)
    broken("mark-length", "A tail with another length of the end mark.", length=made.mark_end - made.mark_at - 1)
    broken("mark-length-huge", "A tail with a length of the end mark of 2^64 - 1.", length=2**64 - 1)
    broken("mark-offset-huge", "A tail with an offset of the end mark of 2^64 - 1.", mark=2**64 - 1)
    broken("own-offset", "A tail with another offset of itself.", own=made.tail_at + 1)
    broken("seed", "A tail whose hash has the seed 0.", seed=0)
    for name, about, at in (("flip-hash", "A changed byte in the hash of the only tail.", 40), ("flip-letters", "A changed byte in the letters of the only tail.", 4), ("flip-head", "A changed head of the only tail.", 0)):
        made = ending_at(100)
        made.bytes = flipped(made.bytes, made.tail_at + at)
        files.bad(f"tail-{name}", made, about, "judge-tail", open=damaged())


def commits(files: Files) -> None:
    made = committed("a")
    number(made, "b", 2)
    made.end()
    files.archive("append-1", made, "An archive that was appended to.", "last-commit")
    number(made, "a", 3)
    made.end()
    files.archive("append-2", made, "An archive that was appended to twice, under a name that was there.", "last-commit")
    made = committed("a")
    made.end()
    files.archive("append-nothing", made, "An append of no segments.", "last-commit")
    made = Archive()
    made.end()
    number(made, "a", 1)
    made.end()
    files.archive("append-to-empty", made, "An append to an archive without segments.", "last-commit")
    made = Archive()
    for at in range(2):
        made.segment("t", buffer_tensor("u8", [12], 0), PAYLOAD, value=TENSOR, alignment=64)
        made.end()
    files.archive("append-buffers", made, "An append of a segment with a buffer.", "last-commit")


def after(files: Files) -> None:
    """Bytes after the last committed tail."""

    def left(name: str, made: Archive, about: str, rules: str = "last-commit judge-unfinished", keeps: bool = True, **said: object) -> None:
        said = {"open": unfinished(made.committed), "read": OK, "verify": OK, **made.json(), **said}
        files.bad(f"unfinished-{name}", made, about, rules, keeps, **said)

    made = committed()
    made.add(b"\0")
    left("zero", made, "A zero after the tail.")
    made = committed()
    made.add(bytes(600))
    left("zeros", made, "600 zeros after the tail.")
    made = committed()
    made.add(b"something else")
    left("other", made, "Bytes after the tail that are nothing of the format.")
    made = committed()
    size = made.at()
    number(made, "b", 2)
    whole = made.bytes
    made.bytes = whole[: size + 10]
    left("header-cut", made, "A header after the tail that is cut.")
    made.bytes = whole[:-1]
    left("segment-cut-hash", made, "A segment after the tail without its last byte.")
    made.bytes = flipped(whole, size + 20)
    left("header-flip", made, "A header after the tail with a changed byte, and nothing behind it.")
    made.bytes = whole
    left("segment", made, "A whole segment after the tail.")
    made = committed()
    one = made.segment("t", buffer_tensor("u8", [12], 0), PAYLOAD, alignment=64)
    whole = made.bytes
    made.bytes = whole[: one.body_at + 5]
    left("body-cut", made, "A segment after the tail that is cut inside its body.", "judge-inside")
    made.bytes = whole[: one.hashes_at + 5]
    left("hashes-cut", made, "A segment after the tail that is cut inside its hashes.", "judge-inside")
    made = committed()
    number(made, "b", 2)
    made.mark()
    left("mark", made, "A segment and an end mark after the tail.")
    whole = made.bytes
    made.bytes = whole[:-5]
    left("mark-cut", made, "A segment and a cut end mark after the tail.")
    made.bytes = whole
    made.add(bytes(42))
    left("tail-zeros", made, "An end mark after the tail, and 42 zeros in place of its tail.", "judge-tail judge-unfinished")
    made.add(bytes(4096))
    left("tail-zeros-more", made, "An end mark after the tail, and more zeros than its tail takes.", "judge-tail judge-unfinished")
    made = committed()
    number(made, "b", 2)
    made.mark()
    own = tail(made.at(), made.mark_at, made.mark_end - made.mark_at)
    made.add(own[:41])
    left("tail-cut", made, "An end mark after the tail, and its own tail without the last byte.", "judge-tail judge-unfinished")
    # A tail in the body of a segment that is cut, made for the place where it is.
    made = committed()
    body_of = 4000
    one = made.segment("big", buffer_bytes(0), bytes(body_of))
    at = one.body_at + 200
    fake = record(made.end_content(), at)
    planted = fake + tail(at + len(fake), at, len(fake))
    made.bytes = made.bytes[:at] + planted + made.bytes[at + len(planted) : one.body_at + 1000]
    left("planted", made, "A cut segment whose body has an end mark and a tail, made for the place where they are.", "judge-inside")
    made.bytes = made.bytes[: at + len(planted)]
    files.bad("planted-at-end", made, "An archive that ends with an end mark and a tail, made for the place where they are, inside the body of a segment: that is damage.", "whole-end", open=OK, read=damaged(), verify=damaged())
    # An intact tail further on, whose end mark is before the point where the walk ends.
    made = committed()
    mark, length = made.mark_at, made.mark_end - made.mark_at
    made.add(b"?" * 10)
    made.add(tail(made.at(), mark, length))
    made.add(b"?" * 10)
    left("old-mark-tail", made, "An intact tail further on that refers to the committed end mark.", "judge-damaged judge-unfinished")
    made = committed()
    number(made, "b", 2)
    made.end()
    number(made, "c", 3)
    made.bytes = made.bytes[:-3]
    left("after-append", made, "A cut segment after the second tail.", "last-commit")
    # A tail that ends the file, but is no tail of its end mark.
    made = committed()
    made.add(b"?" * 8)
    made.add(tail(made.at(), made.mark_at, made.mark_end - made.mark_at))
    left("old-mark-last", made, "The last bytes are a tail, but not directly after the end mark that it refers to.", "judge-unfinished")
    made = committed()
    made.aux(7, NULL)
    left("aux", made, "An auxiliary record after the tail, and no end mark.", "aux")


def torn_ones(files: Files) -> None:
    def left(name: str, content: bytes, segments: int, about: str, rules: str = "torn-segments", keeps: bool = True) -> None:
        files.bad(f"torn-{name}", content, about, rules, keeps, open=torn(segments))

    left("magic", MAGIC, 0, "Nothing but the magic.")
    made = Archive()
    number(made, "a", 1)
    one = made.bytes
    number(made, "b", 2)
    two = made.bytes
    left("header-cut", one[:20], 0, "An archive that ends inside its first header.")
    left("segment", one, 1, "One segment without an end mark.")
    left("segments", two, 2, "Two segments without an end mark.")
    left("second-cut", two[:-1], 1, "Two segments, and the second without its last byte.")
    left("zeros", two + bytes(512), 2, "Two segments, and zeros.")
    left("other", two + b"something else", 2, "Two segments, and bytes that are nothing of the format.")
    left("version-0", two + record(header_content("c", NULL, array(), version=0), len(two)), 2, "Two segments, and a header of version 0, which is no record.", "version-0")
    left("other-tag-version-2", two + record(tag(0x54535858, array(integer(2))), len(two)), 2, "Two segments, and a record with a tag that is none of the four, of version 2.", "records")
    made.mark()
    mark = made.bytes
    left("mark", mark, 2, "Two segments and an end mark.")
    left("mark-cut", mark[:-1], 2, "Two segments and an end mark without its last byte.")
    left("tail-cut", mark + tail(len(mark), made.mark_at, len(mark) - made.mark_at)[:-1], 2, "A tail without its last byte.")
    left("tail-half", mark + tail(len(mark), made.mark_at, len(mark) - made.mark_at)[:20], 2, "Half a tail.")
    left("tail-zeros", mark + bytes(42), 2, "Zeros in place of the tail.", "judge-tail")
    left("header-flip", flipped(two, len(one) + 20), 1, "A changed byte in the second header, and no end mark.")
    left("first-header-flip", flipped(two, 30), 0, "A changed byte in the first header, and no end mark.")
    made = Archive()
    segment = made.segment("t", buffer_tensor("u8", [12], 0), PAYLOAD, alignment=64)
    left("body-cut", made.bytes[: segment.body_at + 4], 0, "An archive that ends inside the body of its only segment.", "judge-inside torn-segments")
    left("padding-cut", made.bytes[: segment.body_at - 4], 0, "An archive that ends inside the padding of its only segment.", "judge-inside torn-segments")
    left("hashes-cut", made.bytes[:-1], 0, "An archive that ends inside the hashes of its only segment.", "judge-inside torn-segments")
    left("buffer-flip", flipped(made.bytes, segment.body_at), 0, "A changed byte in a buffer of the last segment.", "torn-buffers", False)
    left("hashes-flip", flipped(made.bytes, segment.hashes_at + 4), 0, "A changed byte in the hashes of the last segment.", "torn-segments", False)
    left("buffer-whole", made.bytes, 1, "A segment with a buffer, and no end mark.", "torn-buffers")
    broken = flipped(made.bytes, segment.body_at)
    made.bytes = broken
    number(made, "b", 2)
    left("buffer-flip-before", made.bytes, 2, "A changed byte in a buffer of a segment before the last whole one, which stays.", "torn-segments")
    files.bad("torn-nothing", b"", "A file without bytes.", "magic", True, open=torn(0))
    files.bad("torn-magic-cut", MAGIC[:5], "A file that ends inside the magic.", "magic", True, open=torn(0))


def damaged_ones(files: Files) -> None:
    made = committed()
    made.bytes = flipped(made.bytes, 5)
    files.bad("damaged-magic", made, "A changed byte in the magic: opening need not look at it.", "only-encoding", open=[OK, damaged()], read=damaged(), verify=damaged())
    files.bad("damaged-other", b"PK\3\4 something else entirely, and no archive at all", "A file that is no archive.", "magic", open=damaged())
    made = committed()
    size = made.at()
    number(made, "b", 2)
    made.end()
    broken = flipped(made.bytes, size + 20)
    files.bad("damaged-append-header", broken + b"\0", "A changed byte in an appended header, with its end mark and tail behind it, and a byte after these: no earlier state is given.", "judge-damaged no-earlier", open=damaged(size))
    files.bad("damaged-append-header-end", broken, "A changed byte in an appended header, with its end mark and tail behind it, which are the last bytes.", "record-hash", open=OK, read=damaged(), verify=damaged())
    broken = flipped(made.bytes, made.mark_at + 20)
    files.bad("damaged-append-mark", broken, "A changed byte in the appended end mark, with its tail behind it.", "judge-damaged no-earlier", open=damaged(made.mark_at))
    broken = flipped(made.bytes, made.tail_at + 20)
    files.bad("damaged-append-tail", broken, "A changed byte in the appended tail.", "judge-tail no-earlier", open=damaged())
    files.bad("damaged-append-tail-more", broken + bytes(100), "A changed byte in the appended tail, and zeros after it.", "judge-tail no-earlier", open=damaged())
    first = committed("n" * 40)
    mark, end, at = first.mark_at, first.mark_end, first.tail_at
    number(first, "b", 2)
    first.end()
    broken = flipped(first.bytes, mark + 20)
    files.bad("damaged-older-mark", broken, "A changed byte in an end mark that is not the last: reading does not see it, verifying does.", "record-hash", open=OK, read=OK, verify=damaged(), **first.json())
    broken = flipped(first.bytes, at + 20)
    files.bad("damaged-older-tail", broken, "A changed byte in a tail that is not the last.", "judge-tail", open=OK, read=OK, verify=damaged(), **first.json())
    files.bad("damaged-older-tail-cut", flipped(first.bytes, at + 20)[:-1], "A changed byte in the first tail, and the last tail without its last byte.", "judge-tail no-earlier", open=damaged())
    zeros = first.bytes[:at] + bytes(42) + first.bytes[at + 42 :]
    files.bad("damaged-older-tail-zeros", zeros + b"\0", "Zeros in place of the first tail, and an intact tail further on.", "judge-damaged no-earlier", open=damaged())


def far_tails(files: Files) -> None:
    """Tails behind the point where the walk ends, with the offset of an end mark that is not there."""
    made = committed()
    at = made.at()
    made.add(b"?" * 10)
    made.add(tail(made.at(), at, 7) + b"?" * 10)
    files.bad("damaged-far-tail", made, "Bytes that are nothing of the format, and an intact tail that refers to an end mark at their start.", "judge-damaged tail-intact no-earlier", open=damaged(at))
    made = committed()
    at = made.at()
    made.add(b"?" * 10)
    made.add(tail(made.at(), at, 10))
    files.bad("damaged-far-tail-last", made, "Bytes that are nothing of the format, and a tail directly after them that refers to them.", "judge-damaged tail-intact no-earlier", open=damaged(at))
    made = committed()
    made.add(b"?" * 10)
    made.add(tail(made.at(), made.at() - 10, 10, own=made.at() + 1) + b"?" * 10)
    files.bad("unfinished-far-tail-own", made, "Bytes that are nothing of the format, and a tail with another offset of itself.", "judge-unfinished", True, open=unfinished(1), read=OK, verify=OK, **made.json() | {"segments": made.json()["segments"][:1]})


def versions(files: Files) -> None:
    """Records of a later version where the walk ends."""

    def later(name: str, made: Archive, content: bytes, about: str, *, flip: bool = False, cut: int = 0) -> None:
        item = record(content, made.at())
        if flip:
            item = flipped(item, len(item) - 1)
        made.add(item[: len(item) - cut])
        files.bad(f"version-{name}", made, about, "later-version judge-version not-unfinished", open=unsupported("version 2"))

    def started() -> Archive:
        made = Archive()
        number(made, "a", 1)
        return made

    two = header_content("b", integer(7), array(), version=2)
    later("torn", started(), two, "A header of version 2 after a segment without an end mark.")
    later("unfinished", committed(), two, "A header of version 2 after the tail.")
    later("hash", committed(), two, "A header of version 2 after the tail, with a wrong hash.", flip=True)
    later("cut", committed(), two, "A header of version 2 after the tail that is cut.", cut=20)
    later("first", Archive(), two, "A header of version 2 after the magic.")
    later("mark", started(), tag(TEND, array(integer(2), integer(1))), "An end mark of version 2, and no tail.")
    later("block", started(), tag(TDIR, array(integer(2), integer(1))), "A block of version 2.")
    later("aux", committed(), tag(TAUX, array(integer(2), integer(1))), "An auxiliary record of version 2.")
    made = started()
    made.mark(content=tag(TEND, array(integer(2), integer(1), text("?"))))
    made.tail()
    wide = started()
    item = tag(24, data(two, 8))
    wide.add(item + data(xxh(item, wide.at())))
    files.bad("version-wide", wide, "A header of version 2 whose byte string has a longer head than it needs.", "later-version judge-version not-unfinished", open=unsupported("version 2"))
    files.bad("version-last-mark", made, "The last end mark is of version 2, and its tail is intact.", "later-version", open=unsupported("version 2"))
    made = committed()
    made.add(tag(24, data(two))[:13])
    files.bad("version-only-head", made, "A header of version 2 after the tail that ends after its version.", "later-version judge-version not-unfinished", open=unsupported("version 2"))
    made = committed()
    made.add(tag(24, data(two))[:-1][:9])
    files.bad("version-not-there", made, "A record after the tail that ends before its version: it is unfinished.", "judge-unfinished", True, open=unfinished(1), read=OK, verify=OK, **made.json())


def auxiliary(files: Files) -> None:
    made = Archive()
    number(made, "a", 1)
    place = made.aux(7, array(text("anything"), integer(1)))
    made.aux(9, NULL)
    made.mark(ext=map_of((integer(2), array(*map(integer, place)))))
    made.tail()
    made.aux(7, NULL)
    number(made, "b", 2)
    made.end()
    files.archive("aux", made, "Auxiliary records after a segment and after a tail.", "aux")
    made = many(64)
    made.aux(1, NULL)
    number(made, "c", 1)
    made.end()
    files.archive("aux-after-block", made, "An auxiliary record after a block.", "aux")
    made = committed()
    made.aux(1, NULL)
    made.end()
    files.archive("aux-only", made, "An append of an auxiliary record and no segment.", "aux")
    made = Archive()
    made.aux(1, NULL)
    number(made, "a", 1)
    made.end()
    files.bad("aux-first", made, "An auxiliary record after the magic.", "aux", open=OK, read=OK, verify=damaged(), **made.json())
    made = Archive()
    for at in range(64):
        made.segment("n", integer(at), value=at, block=False)
    made.aux(1, NULL)
    made.blocks()
    made.end()
    files.bad("aux-before-block", made, "An auxiliary record between a segment and the block that it fills.", "aux", open=OK, read=OK, verify=damaged())
    made = Archive()
    number(made, "a", 1)
    at = made.at()
    made.aux(1, text("content"))
    number(made, "b", 2)
    made.end()
    files.bad("aux-flip", flipped(made.bytes, at + 18), "A changed byte in an auxiliary record.", "record-hash aux", open=OK, read=OK, verify=damaged(), **made.json())

    def broken(name: str, content: bytes, about: str) -> None:
        made = Archive()
        number(made, "a", 1)
        made.add(record(content, made.at()))
        number(made, "b", 2)
        made.end()
        files.bad(f"aux-{name}", made, about, "aux only-encoding", open=OK, read=OK, verify=damaged(), **made.json())

    broken("kind-text", tag(TAUX, array(integer(1), text("7"), NULL)), "A kind that is a text.")
    broken("kind-wide", tag(TAUX, array(integer(1), integer(7, 1), NULL)), "A kind whose head is not the shortest.")
    broken("four-items", tag(TAUX, array(integer(1), integer(7), NULL, NULL)), "An auxiliary record of four items.")
    broken("no-payload", tag(TAUX, array(integer(1), integer(7))), "An auxiliary record without a payload.")
