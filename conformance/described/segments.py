"""Segments: headers, bodies, hashes, extensions, compressed buffers and those elsewhere."""

from .build import *
from .files import *

PAYLOAD = bytes(range(1, 13))
TENSOR = v_tensor("u8", [12], PAYLOAD)


def describe(files: Files) -> None:
    good(files)
    headers(files)
    bodies(files)
    checks(files)
    extensions(files)
    compression(files)
    apart(files)


def one(*args: object, **settings: object) -> Archive:
    """An archive of one segment."""
    made = Archive()
    made.segment(*args, **settings)
    made.end()
    return made


def tensor_of(**settings: object) -> Archive:
    """An archive of one segment with one buffer."""
    return one("a", buffer_tensor("u8", [12], 0), PAYLOAD, **{"value": TENSOR, **settings})


def fault(files: Files, name: str, made: Archive, about: str, rules: str, **said: object) -> None:
    """An archive that opens, and says what is wrong when the value is read and verified."""
    files.bad(name, made, about, rules, **{"open": OK, "read": damaged(), "verify": damaged(), **said})


def good(files: Files) -> None:
    made = Archive()
    made.end()
    files.archive("archive-empty", made, "An archive without segments.", "only-encoding")
    files.archive("archive-smallest", one(None, integer(7), value=7, check=None), "A segment of 30 bytes, the fewest that one can have.", "room valid-anyway")
    files.archive("archive-null-name", one(None, integer(7), value=7), "A segment without a name.", "only-encoding record-hash")
    files.archive("archive-empty-name", one("", integer(7), value=7), "A segment whose name is empty.", "only-encoding")
    files.archive("archive-name-longest", one("n" * 1024, integer(7), value=7), "A name of 1,024 bytes.", "header-name")
    for alignment in (8, 64, 65536):
        files.archive(f"archive-alignment-{alignment}", one("a", integer(7), value=7, alignment=alignment), f"A segment without buffers and with the alignment {alignment}.", "alignment valid-anyway")
    for chunk in (65536, 1 << 30):
        files.archive(f"archive-chunk-{chunk}", one("a", integer(7), value=7, chunk=chunk), f"A segment with chunks of {chunk} bytes.", "chunk valid-anyway")
    files.archive("archive-rows", one("a", array(integer(1), integer(2)), value=[1, 2], rows=2), "A value that is an array has as many rows as elements.", "compare-entry")
    files.archive("archive-rows-packed", one("a", typed("u8", 1, 2), value=[1, 2]), "A packed sequence has no rows in the directory.", "compare-entry")
    content = columns(2, fields(a=typed("u8", 1, 2)), 1, fields(a=typed("u8", 3)))
    files.archive("archive-rows-columns", one("a", content, value=[v_map(a=n) for n in (1, 2, 3)], rows=3), "Columns have as many rows as all groups together.", "compare-entry")
    files.archive("archive-rows-map", one("a", fields(a=array()), value=v_map(a=[])), "A map has no rows.", "compare-entry")
    files.archive("archive-buffer", tensor_of(), "A tensor in a buffer.", "buffer-length chunk-verified segment-end")
    made = one("a", array(buffer_tensor("u8", [3], 0), buffer_bytes(1), buffer_numbers("u16", 2)), b"\1\2\3", b"", raw("u16", 7, 8), value=[v_tensor("u8", [3], b"\1\2\3"), v_bytes(b""), [7, 8]], rows=3, alignment=16)
    files.archive("archive-buffers", made, "Three buffers, one of them empty, with zeros between them.", "only-encoding buffer-length unreferenced")
    made = one("a", array(buffer_tensor("u8", [3], 0), buffer_bytes(1)), b"\1\2\3", b"", value=[v_tensor("u8", [3], b"\1\2\3"), v_bytes(b"")], rows=2)
    files.archive("archive-buffer-empty-last", made, "The last buffer is empty: the body ends at its place.", "only-encoding")
    made = one("a", buffer_bytes(0), b"", value=v_bytes(b""))
    files.archive("archive-buffer-empty-only", made, "The only buffer is empty: so is the body.", "only-encoding")
    for gap in (0, 1, 2, 24, 25, 26, 257, 258, 259):
        # The name is as long as it takes for this padding.
        for length in range(1024):
            made = one("n" * length, buffer_bytes(0), b"x", value=v_bytes(b"x"), alignment=512)
            before = made.segments[0].offset + made.segments[0].header
            if made.segments[0].body_at - 1 - before == gap:
                break
        files.archive(f"archive-padding-{gap}", made, f"A padding of {gap} bytes before the body.", "only-encoding padding")
    # Two chunks, the first of 65,536 bytes in 6.
    files.archive("archive-shared-buffer", one("a", array(buffer_bytes(0), buffer_numbers("u8", 0)), b"xy", value=[v_bytes(b"xy"), [120, 121]], rows=2), "Two references to one buffer.", "references")
    made = Archive()
    for name, number in (("a", 1), ("b", 2), ("a", 3)):
        made.segment(name, integer(number), value=number)
    made.end()
    files.archive("archive-same-name", made, "Three segments, two of the same name.", "rising")


def headers(files: Files) -> None:
    def changed(name: str, about: str, rules: str, change: object, **said: object) -> None:
        fault(files, name, one("a", integer(7), change=change), about, rules, **said)

    plain = header_content("a", integer(7), array())
    assert plain == one("a", integer(7)).bytes[16 : 16 + len(plain)]

    def header(**settings: object) -> object:
        metadata = settings.pop("metadata", integer(7))
        lengths = settings.pop("lengths", array())
        name = settings.pop("name", "a")
        return lambda _: header_content(name, metadata, lengths, **settings)

    changed("header-name-long", "A name of 1,025 bytes.", "header-name", header(name="n" * 1025))
    changed("header-name-bytes", "A name that is a byte string.", "only-encoding", header(name=data(b"a")))
    changed("header-name-utf8", "A name that is not UTF-8.", "only-encoding", header(name=text(b"\xff")))
    changed("header-name-indefinite", "A name of indefinite length.", "only-encoding", header(name=b"\x7f\x61a\xff"))
    changed("header-alignment-4", "An alignment of 4.", "alignment valid-anyway", header(alignment=4))
    changed("header-alignment-24", "An alignment that is no power of two.", "alignment valid-anyway", header(alignment=24))
    changed("header-alignment-131072", "An alignment of 131,072.", "alignment valid-anyway", header(alignment=131072))
    changed("header-alignment-wide", "An alignment whose head is not the shortest.", "only-encoding", header(alignment=integer(8, 1)))
    changed("header-chunk-small", "Chunks of 32,768 bytes.", "chunk valid-anyway", header(chunk=32768))
    changed("header-chunk-large", "Chunks of 2^31 bytes.", "chunk valid-anyway", header(chunk=1 << 31))
    changed("header-chunk-odd", "Chunks of 65,537 bytes.", "chunk valid-anyway", header(chunk=65537))
    changed("header-check-number", "A check that is a number.", "check-form", header(check=integer(1)))
    changed("header-check-text", "A check that is a text other than xxh3-64.", "check-form", header(check=text("blake3")))
    changed("header-check-own-name", "The check xxh3-64 said in another way.", "check-form", header(check=array(text("xxh3-64"), integer(8))))
    changed("header-check-length-0", "A check with hashes of no bytes.", "check-form", header(check=array(text("blake3"), integer(0))))
    changed("header-check-length-65", "A check with hashes of 65 bytes.", "check-form", header(check=array(text("blake3"), integer(65))))
    changed("header-check-name-empty", "A check with an empty name.", "check-form", header(check=array(text(""), integer(8))))
    changed("header-check-name-long", "A check with a name of 65 bytes.", "check-form", header(check=array(text("b" * 65), integer(8))))
    changed("header-check-three", "A check that is an array of three.", "check-form", header(check=array(text("blake3"), integer(8), NULL)))
    changed("header-lengths-indefinite", "Lengths in an array of indefinite length.", "only-encoding", header(lengths=b"\x9f\xff"))
    changed("header-lengths-text", "A length that is a text.", "only-encoding", header(lengths=array(text("8")), metadata=buffer_bytes(0)))
    changed("header-array-7", "A header of seven items.", "only-encoding", lambda _: tag(TSEG, array(integer(1), text("a"), integer(8), text(XXH), integer(65536), array(), integer(7))))
    changed("header-array-9", "A header of nine items.", "only-encoding", lambda right: right.replace(b"\x88", b"\x89", 1) + b"\0")
    changed("header-array-indefinite", "A header of indefinite length.", "only-encoding", lambda right: right.replace(b"\x88", b"\x9f", 1) + BREAK)
    changed("header-trailing", "A byte after the item in a header's record.", "only-encoding", lambda right: right + b"\0")
    changed("header-cut-item", "A header's record that ends inside the metadata.", "only-encoding", lambda right: right[:-1] + b"\x19")
    changed("header-two-items", "Metadata of two items.", "only-encoding", lambda right: right + integer(1))
    changed("header-version-0", "A header of version 0 is no record.", "version-0", header(version=0))
    changed("header-version-2", "A header of version 2.", "later-version", header(version=2), read=unsupported("version 2"), verify=unsupported("version 2"))
    changed("header-version-300", "A header of version 300, whose content no reader knows.", "later-version", lambda _: tag(TSEG, array(integer(300), text("?" * 40))), read=unsupported("version 300"), verify=unsupported("version 300"))
    changed("header-version-wide", "A version whose head is not the shortest.", "only-encoding", lambda right: right.replace(b"\x88\1", b"\x88\x18\1", 1))
    changed("header-array-wide", "An array whose head is not the shortest.", "only-encoding", lambda right: right.replace(b"\x88", b"\x98\x08", 1))
    changed("header-tag-wide", "A tag whose head is not the shortest.", "only-encoding", lambda right: b"\xdb\0\0\0\0" + right[1:])
    changed("header-version-text", "A header whose version is a text.", "only-encoding", header(version=text("1")))
    changed("header-other-tag", "A record with a tag that is none of the four.", "records", lambda right: right.replace(b"TSEG", b"TSEH", 1))
    made = one("a", integer(7), seed=0)
    fault(files, "header-seed", made, "A header whose hash has the seed 0 in place of its offset.", "record-hash")
    made = one("a", integer(7))
    made.bytes = made.bytes[:17] + b"\x55" + made.bytes[18:]
    fault(files, "header-flip", made, "A header with a changed byte.", "record-hash")
    made = one("a", integer(7))
    before, after = made.bytes[:12], made.bytes[12 + len(record(plain, 12)) :]
    item = tag(24, data(plain, 2))
    fault(files, "header-record-wide", rebuilt(before, item + data(xxh(item, 12)), integer(7)), "A record whose byte string has a longer head than it needs.", "only-encoding")
    ends = {"lengths": array(integer(2**63 - 1)), "metadata": buffer_bytes(0)}
    changed("header-too-long", "A buffer with which the segment would end after position 2^63 - 1.", "segment-end", header(**ends))
    ends = {"lengths": array(integer(2**63), integer(2**63)), "metadata": array(buffer_bytes(0), buffer_bytes(1))}
    changed("header-overflow", "Buffers whose lengths overflow to 0.", "segment-end", header(**ends))


def rebuilt(before: bytes, header: bytes, metadata: bytes) -> Archive:
    """An archive of one segment whose record is given as bytes."""
    made = Archive()
    made.bytes = before
    made.add(header)
    made.segments.append(Segment("a", len(before), len(header), None, None))
    made.level0 = made.segments[:]
    made.end()
    return made


def bodies(files: Files) -> None:
    maybe = {"read": [OK, damaged()]}
    made = tensor_of(alignment=64)
    at = made.segments[0].body_at - 2
    made.bytes = made.bytes[:at] + b"\1" + made.bytes[at + 1 :]
    fault(files, "body-padding-not-zero", made, "A padding that is not zero.", "padding only-encoding", **maybe)

    def right(alignment: int) -> int:
        made = tensor_of(alignment=alignment)
        return made.segments[0].body_at - 1 - made.segments[0].offset - made.segments[0].header

    gap = right(64)
    fault(files, "body-padding-two-strings", tensor_of(alignment=64, gap=padding(3) + padding(gap - 3)), "A padding of two byte strings in place of one.", "padding only-encoding", **maybe)
    fault(files, "body-padding-text", tensor_of(alignment=64, gap=text(bytes(gap - 2))), "A padding that is a text.", "padding only-encoding", **maybe)
    two = array(buffer_tensor("u8", [3], 0), buffer_tensor("u8", [2], 1))
    made = one("a", two, b"\1\2\3", b"\4\5", body=b"\1\2\3\0\0\0\0\1\4\5")
    fault(files, "body-gap-not-zero", made, "A byte between two buffers that is not zero.", "only-encoding", **maybe)
    fault(files, "body-short", tensor_of(body=PAYLOAD[:-1]), "A body with a byte too few.", "only-encoding")
    fault(files, "body-long", tensor_of(body=PAYLOAD + b"\0"), "A body with a byte too many.", "only-encoding")
    made = tensor_of(alignment=16)
    at = made.segments[0].body_at - 1
    made.bytes = made.bytes[:at] + text(PAYLOAD)[:1] + made.bytes[at + 1 :]
    fault(files, "body-text", made, "A body that is a text.", "only-encoding", **maybe)
    made = tensor_of()
    at = made.segments[0].body_at + 3
    made.bytes = made.bytes[:at] + b"\xff" + made.bytes[at + 1 :]
    fault(files, "body-flip", made, "A changed byte in a buffer.", "chunk-verified")
    wrong = tag(67, data(bytes(8)))
    fault(files, "hashes-wrong", tensor_of(hashes=wrong), "A list of hashes that is intact, with a wrong hash.", "chunk-verified")
    made = tensor_of()
    at = made.segments[0].hashes_at + 3
    made.bytes = made.bytes[:at] + bytes(8) + made.bytes[at + 8 :]
    fault(files, "hashes-flip", made, "A list of hashes with changed bytes.", "chunk-verified")
    fault(files, "hashes-few", tensor_of(hashes=tag(67, data(b""))), "A list of hashes without the hash of the only chunk.", "only-encoding")
    fault(files, "hashes-many", tensor_of(hashes=tag(67, data(xxh(PAYLOAD) * 2))), "A list of hashes with one too many.", "only-encoding")
    fault(files, "hashes-tag", tensor_of(hashes=tag(64, data(xxh(PAYLOAD)))), "A list of hashes with tag 64 in place of 67.", "only-encoding")
    made = tensor_of()
    end = made.segments[0].offset + made.segments[0].length
    own = made.bytes[made.segments[0].hashes_at : end - 9]
    made.bytes = made.bytes[: end - 8] + xxh(own, 0) + made.bytes[end:]
    fault(files, "hashes-seed", made, "The hash of the list of hashes has the seed 0 in place of the header's hash.", "chunk-verified")


def checks(files: Files) -> None:
    none = tensor_of(check=None)
    files.archive("check-null", none, "A segment without hashes, which has no digest.", "digest-null")
    made = tensor_of(check=None)
    at = made.segments[0].body_at + 3
    made.bytes = made.bytes[:at] + b"\xff" + made.bytes[at + 1 :]
    made.segments[0].said["value"] = v_tensor("u8", [12], PAYLOAD[:3] + b"\xff" + PAYLOAD[4:])
    files.archive("check-null-flip", made, "A changed byte in a buffer without hashes, which nobody notices.", "")
    files.archive("check-null-no-buffers", one("a", integer(7), value=7, check=None), "A segment without buffers has a digest, also where check is null.", "")
    made = tensor_of(check=None, hashes=tag(67, data(xxh(PAYLOAD))))
    fault(files, "check-null-hashes", made, "Hashes although check is null: reading need not look at them.", "only-encoding", read=[OK, damaged()])
    for length in (1, 16, 64):
        made = one("a", fields(n=integer(1), t=buffer_tensor("u8", [12], 0)), PAYLOAD, check=("example-hash", length))
        segment = made.segments[0]
        segment.said |= {"read": unsupported("example-hash"), "unverified": v_map(n=1, t=TENSOR), "tensors": [["t", "u8", [12]]]}
        files.bad(f"check-unknown-{length}", made, f"Hashes of an unknown algorithm, of {length} bytes.", "unknown-check check-form", True, open=OK, read=unsupported("example-hash"), **made.json())
    files.archive("check-unknown-no-buffers", one("a", integer(7), value=7, check=("example-hash", 16)), "An unknown algorithm, and no buffers.", "unknown-check")
    made = tensor_of(check=("example-hash", 16), hashes=tag(64, data(bytes(15))))
    files.bad("check-unknown-short", made, "Hashes of an unknown algorithm with a byte too few.", "only-encoding", open=OK, read=[unsupported("example-hash"), damaged()], verify=damaged())
    made = tensor_of(check=("example-hash", 8), hashes=tag(67, data(bytes(8))))
    files.bad("check-unknown-tag", made, "Hashes of an unknown algorithm with tag 67.", "only-encoding", open=OK, read=[unsupported("example-hash"), damaged()], verify=damaged())


def extensions(files: Files) -> None:
    notes = {0: map_of((text("made by"), text("hand")), (text("title"), text("x")))}
    files.archive("ext-notes", one("a", integer(7), value=7, ext=notes), "A segment with notes.", "ext-keys")
    files.archive("ext-even", one("a", integer(7), value=7, ext={4710: text("?"), 1000000: array(NULL)}), "Unknown even keys are ignored, and are not in the digest.", "ext-keys")
    made = one("a", integer(7), ext={2: NULL, 4711: text("?")}, read=unsupported("4711"))
    files.bad("ext-odd", made, "An unknown odd key in a header: the value cannot be read, but the archive is listed and verified.", "ext-keys", open=OK, read=unsupported("4711"), verify=OK, **made.json())
    made = Archive()
    made.segment("a", integer(1), ext={4711: NULL}, read=unsupported("4711"))
    made.segment("b", integer(2), value=2)
    made.end()
    files.bad("ext-odd-one-of-two", made, "An unknown odd key in one header refuses this value, and not the other.", "ext-keys", open=OK, read=unsupported("4711"), verify=OK, **made.json())
    made = one("a", buffer_bytes(0), PAYLOAD, ext={4711: NULL}, read=unsupported("4711"))
    at = made.segments[0].body_at
    made.bytes = made.bytes[:at] + b"\xff" + made.bytes[at + 1 :]
    files.bad("ext-odd-flip", made, "A changed byte in a buffer of a segment with an unknown odd key.", "chunk-verified", open=OK, read=[unsupported("4711"), damaged()], verify=damaged())

    def broken(name: str, ext: bytes, about: str, rules: str = "ext-form") -> None:
        fault(files, f"ext-{name}", one("a", integer(7), ext=ext), about, rules)

    def wrong_notes(name: str, notes: bytes, about: str) -> None:
        broken(f"notes-{name}", map_of((integer(0), notes)), about, "notes")

    wrong_notes("order", map_of((text("b"), text("x")), (text("a"), text("x"))), "Notes whose keys do not ascend.")
    wrong_notes("twice", map_of((text("a"), text("x")), (text("a"), text("x"))), "Notes with a key that is there twice.")
    wrong_notes("number", map_of((text("a"), integer(1))), "A note that is a number.")
    wrong_notes("key", map_of((integer(1), text("a"))), "A note whose key is a number.")
    wrong_notes("array", array(text("a")), "Notes that are an array.")
    # Keys are compared as bytes: a longer one can come first.
    notes = {0: map_of((text("aa"), text("x")), (text("b"), text("y")), (text("é"), text("z")))}
    files.archive("ext-notes-bytes", one("a", integer(7), value=7, ext=notes), "Notes whose keys ascend as bytes.", "notes")

    rows = columns(2, fields(id=typed("u8", 7, 9), tag=column("text", typed("u8", 2, 1), text("abc"))))
    value = [v_map(id=7, tag="ab"), v_map(id=9, tag="c")]

    def statistic(name: str, least: bytes, greatest: bytes) -> bytes:
        return array(array(text(name)), array(array(integer(0), integer(0), least, greatest)))

    def statistics(name: str, statistics: bytes, about: str) -> None:
        files.archive(f"ext-statistics{name}", one("a", rows, value=value, rows=2, ext={2: statistics}), about, "statistics")

    id_, tag_ = statistic("id", integer(7), integer(9)), statistic("tag", text("ab"), text("c"))
    statistics("", array(integer(1), array(id_, tag_)), "Statistics of columns.")
    statistics("-step", array(integer(0), array(id_, tag_)), "Statistics of 0 groups each are ignored.")
    statistics("-spans", array(integer(1), array(array(array(text("id")), array()))), "A column without statistics of its group: they are ignored.")
    statistics("-text", text("none"), "Statistics that are a text are ignored.")

    broken("order", map_of((integer(4), NULL), (integer(2), NULL)), "Keys that do not ascend.")
    broken("twice", map_of((integer(2), NULL), (integer(2), NULL)), "A key that is there twice.")
    broken("key-text", map_of((text("a"), NULL)), "A key that is a text.")
    broken("key-negative", map_of((integer(-1), NULL)), "A negative key.")
    broken("key-wide", map_of((integer(2, 1), NULL)), "A key whose head is not the shortest.")
    broken("value-wide", map_of((integer(2), integer(1, 2))), "A value whose head is not the shortest.")
    broken("value-indefinite", map_of((integer(2), b"\x9f\xff")), "A value of indefinite length.")
    broken("value-utf8", map_of((integer(2), text(b"\xff"))), "A value that is not UTF-8.")
    broken("indefinite", b"\xbf\x02\xf6\xff", "A map of indefinite length.")
    broken("array", array(), "An array in place of the map.")
    broken("null", NULL, "Null in place of the map.")
    deep = NULL
    for _ in range(128):
        deep = array(deep)
    broken("deep", map_of((integer(2), deep)), "A map and 128 arrays in each other.")
    deep = deep[1:]
    files.archive("ext-deepest", one("a", integer(7), value=7, ext=map_of((integer(2), deep)), digest=one("a", integer(7)).segments[0].digest), "A map and 127 arrays in each other.", "ext-form")
    longest = map_of((integer(2), data(bytes(65536 - 5))))
    assert len(longest) == 65536, len(longest)
    made = one("a", integer(7), value=7, ext=longest, digest=one("a", integer(7)).segments[0].digest)
    files.archive("ext-longest", made, "Extensions of 65,536 bytes.", "ext-form")
    broken("long", map_of((integer(2), data(bytes(65536 - 4)))), "Extensions of 65,537 bytes.")


def lz4_literals(content: bytes) -> bytes:
    """A block of literals only."""
    assert len(content) < 15
    return bytes([len(content) << 4]) + content


def plane(method: int, stored: bytes) -> tuple[bytes, bytes]:
    return bytes([method]) + len(stored).to_bytes(4, "little"), stored


def chunk_of(*planes: tuple[bytes, bytes], rest: bytes = b"") -> bytes:
    return b"".join(entry for entry, _ in planes) + b"".join(stored for _, stored in planes) + rest


# A run of 20 bytes 7: a literal, a match of 14 bytes at distance 1, then five literals, which end a block.
RUN = bytes([0x1A, 7, 1, 0, 0x50, 7, 7, 7, 7, 7])
# 20 bytes 7 as a zstd frame: magic, a frame of one segment with its size, and an RLE block that is the last one.
FRAME = bytes.fromhex("28b52ffd") + b"\x20\x14" + (1 | 1 << 1 | 20 << 3).to_bytes(3, "little") + b"\7"


def compression(files: Files) -> None:
    sevens = raw("u16", *([7] * 16))
    example = chunk_of(plane(1, b"\7"), plane(1, b"\0"))
    assert example.hex() == "010100000001010000000700"
    value = v_tensor("u16", [16], sevens)
    made = one("a", buffer_tensor("u16", [16], 0), compressed("zstd", [2, 0], 32, [example]), value=value, tensors=[["", "u16", [16]]])
    del made.segments[0].said["tensors"]
    files.archive("compressed-example", made, "The worked example of a compressed buffer: two planes of equal bytes.", "stored-lengths compressed-form")

    def tensor_in(codec: str, parameters: list[int], dtype: str, payload: bytes, chunk: bytes, **settings: object) -> Archive:
        shape = [len(payload) // TYPED[dtype][2]]
        metadata = buffer_tensor(dtype, shape, 0)
        return one("a", metadata, compressed(codec, parameters, len(payload), [chunk], **settings), value=v_tensor(dtype, shape, payload))

    run = b"\7" * 20
    files.archive("compressed-lz4", tensor_in("lz4", [1, 0], "u8", run, chunk_of(plane(2, RUN))), "A plane as an LZ4 block with a match.", "planes parameters")
    files.archive("compressed-zstd", tensor_in("zstd", [1, 0], "u8", run, chunk_of(plane(2, FRAME))), "A plane as a zstd frame.", "planes frame-size")
    no_size = bytes.fromhex("28b52ffd") + b"\x00\x00" + FRAME[6:]
    files.archive("compressed-zstd-no-size", tensor_in("zstd", [1, 0], "u8", run, chunk_of(plane(2, no_size))), "A zstd frame that does not say the size of its content.", "frame-size")
    numbers = raw("u32", *range(1, 20))
    low = bytes(range(1, 20))
    zero = plane(1, b"\0")
    files.archive("compressed-lz4-planes", tensor_in("lz4", [4, 0], "u32", numbers, chunk_of(plane(0, low), zero, zero, zero)), "Four planes: one stored as it is, and three of equal bytes.", "planes")
    rotated = raw("f32", *([-1.5] * 20))
    word = int.from_bytes(rotated[:4], "little")
    word = (word << 1 | word >> 31) & 0xFFFFFFFF
    files.archive("compressed-rotated", tensor_in("lz4", [4, 1], "f32", rotated, chunk_of(*(plane(1, bytes([byte])) for byte in word.to_bytes(4, "little")))), "Rotated words.", "planes")
    files.archive("compressed-rotated-width-1", tensor_in("lz4", [1, 1], "u8", run, chunk_of(plane(1, b"\7"))), "Words of one byte are not rotated.", "planes")
    files.archive("compressed-stored", tensor_in("lz4", [1, 0], "u8", PAYLOAD, PAYLOAD), "A chunk that is stored as it is.", "stored-lengths")
    rest = sevens + b"\1"
    made = one("a", buffer_bytes(0), compressed("lz4", [2, 0], 33, [example + b"\1"]), value=v_bytes(rest))
    files.archive("compressed-rest", made, "A byte behind the last whole word.", "planes")
    two = [chunk_of(plane(1, b"\0")), chunk_of(plane(1, b"\1"))]
    made = Archive()
    made.segment("a", buffer_bytes(0), compressed("lz4", [1, 0], 65536 + 10, [two[0], two[1]]), paths=[])
    del made.segments[0].said["paths"]
    made.end()
    files.archive("compressed-chunks", made, "Two chunks, the first of 65,536 bytes in 6.", "stored-lengths")
    made = one("a", array(buffer_bytes(0), buffer_bytes(1), buffer_bytes(2)), b"x", compressed("lz4", [1, 0], 20, [chunk_of(plane(1, b"\7"))]), b"y", value=[v_bytes(b"x"), v_bytes(run), v_bytes(b"y")], rows=3, alignment=16)
    files.archive("compressed-between", made, "A compressed buffer between two others: it begins where the one before it ends.", "only-encoding")
    made = one("a", fields(n=integer(1), t=buffer_tensor("u8", [20], 0)), compressed("example-codec", [1, 2, 3], 20, [b"??"]), tensors=[["t", "u8", [20]]], paths=[["n", 1], ["t"]], read=unsupported("example-codec"))
    files.bad("compressed-unknown", made, "An unknown codec: all but the buffer can be read, and the archive is verified.", "unknown-codec", True, open=OK, read=unsupported("example-codec"), verify=OK, **made.json())

    def broken(name: str, made: Archive, about: str, rules: str, **said: object) -> None:
        fault(files, f"compressed-{name}", made, about, rules, **said)

    lengths = "stored-lengths"
    ones = chunk_of(plane(1, b"\7"))
    broken("lengths-few", one("a", buffer_bytes(0), compressed("lz4", [1, 0], 20, [ones], [])), "A stored length too few.", lengths)
    broken("lengths-many", one("a", buffer_bytes(0), compressed("lz4", [1, 0], 20, [ones[:3], ones[3:]])), "A stored length too many.", lengths)
    broken("lengths-zero", one("a", buffer_bytes(0), compressed("lz4", [1, 0], 20, [b""])), "A stored length of 0.", lengths)
    broken("lengths-more", one("a", buffer_bytes(0), compressed("lz4", [1, 0], 5, [ones])), "A stored length that is more than that of the chunk.", lengths)
    broken("lengths-memory", one("a", buffer_bytes(0), compressed("lz4", [1, 0], 2**62, [ones])), "A length of 2^62 bytes with one stored length.", "stored-lengths stored-memory")
    broken("length-0", one("a", buffer_bytes(0), compressed("lz4", [1, 0], 0, [])), "A compressed buffer of no bytes.", "compressed-form")
    broken("codec-empty", one("a", buffer_bytes(0), compressed("", [1, 0], 20, [ones])), "A codec without a name.", "compressed-form")
    broken("codec-long", one("a", buffer_bytes(0), compressed("c" * 65, [1, 0], 20, [ones])), "A codec with a name of 65 bytes.", "compressed-form")
    broken("parameters-17", one("a", buffer_bytes(0), compressed("example-codec", [1] * 17, 20, [ones])), "17 parameters.", "compressed-form")
    broken("width-3", one("a", buffer_bytes(0), compressed("lz4", [3, 0], 20, [ones])), "A width of 3.", "parameters")
    broken("rotated-2", one("a", buffer_bytes(0), compressed("lz4", [1, 2], 20, [ones])), "A rotation of 2.", "parameters")
    broken("parameters-few", one("a", buffer_bytes(0), compressed("lz4", [1], 20, [ones])), "A parameter too few.", "parameters")
    broken("parameters-many", one("a", buffer_bytes(0), compressed("zstd", [1, 0, 0], 20, [ones])), "A parameter too many.", "parameters")
    good = {"verify": OK}

    def chunk(name: str, stored: bytes, about: str, rules: str = "planes", codec: str = "lz4", width: int = 1) -> None:
        broken(name, one("a", buffer_bytes(0), compressed(codec, [width, 0], 20, [stored])), about, rules, **good)

    chunk("method-3", chunk_of(plane(3, b"\7")), "Method 3 of a plane.")
    chunk("plane-long", chunk_of(plane(1, b"\7\7")), "A plane of equal bytes that is stored in two.")
    chunk("plane-short", chunk_of(plane(0, b"\7" * 9)), "A plane that is stored as it is, with bytes too few.")
    chunk("chunk-trailing", ones + b"\0", "A byte after the last plane.")
    chunk("chunk-cut", ones[:-1], "A chunk without its last byte.")
    chunk("table-cut", ones[:3], "A chunk that ends inside the table of planes.")
    chunk("lz4-short", chunk_of(plane(2, lz4_literals(b"\7" * 8))), "An LZ4 block that gives bytes too few.")
    chunk("lz4-long", chunk_of(plane(2, bytes([0x1F, 7, 1, 0, 30, 0x50]) + b"\7" * 5)), "An LZ4 block that gives bytes too many.")
    chunk("lz4-offset", chunk_of(plane(2, RUN[:2] + b"\x09\0" + RUN[4:])), "An LZ4 match before the start of the block.")
    chunk("zstd-size", chunk_of(plane(2, FRAME[:5] + b"\x15" + FRAME[6:])), "A zstd frame whose size is not that of the plane.", "frame-size", "zstd")
    chunk("zstd-short", chunk_of(plane(2, FRAME[:5] + b"\x13" + (1 | 1 << 1 | 19 << 3).to_bytes(3, "little") + b"\7")), "A zstd frame that gives a byte too few.", "planes", "zstd")
    chunk("zstd-magic", chunk_of(plane(2, b"\0" + FRAME[1:])), "A zstd frame without its magic.", "planes", "zstd")
    made = tensor_in("lz4", [1, 0], "u8", run, ones)
    at = made.segments[0].body_at
    made.bytes = made.bytes[:at] + b"\0" + made.bytes[at + 1 :]
    broken("flip", made, "A changed byte in a compressed buffer.", "chunk-verified")


def apart(files: Files) -> None:
    content = b"far away"
    digest = bytes(range(32))
    far = elsewhere(content, "sha-256", digest)
    made = one("a", fields(n=integer(1), far=buffer_bytes(0)), far, paths=[["n", 1], ["far"]], read=unsupported("sha-256"))
    files.bad("elsewhere", made, "A buffer elsewhere: the archive is listed and verified, and only this buffer cannot be read.", "elsewhere-error elsewhere-form", True, open=OK, read=unsupported("sha-256"), verify=OK, **made.json())
    made = one("a", fields(here=buffer_bytes(1), far=buffer_bytes(0)), elsewhere(content, "blake3", digest), b"near", paths=[["here", v_bytes(b"near")], ["far"]], read=unsupported("blake3"), alignment=64)
    files.bad("elsewhere-first", made, "A buffer elsewhere takes no place before one that is in the body.", "elsewhere-error", True, open=OK, read=unsupported("blake3"), verify=OK, **made.json())

    def broken(name: str, element: bytes, about: str) -> None:
        far = Buffer(content, element=element)
        far.stored, far.content = None, content
        fault(files, f"elsewhere-{name}", one("a", buffer_bytes(0), far), about, "elsewhere-form")

    broken("length-0", array(integer(0), text("sha-256"), data(digest)), "A buffer elsewhere of no bytes.")
    broken("name-empty", array(integer(8), text(""), data(digest)), "A hash function without a name.")
    broken("name-long", array(integer(8), text("h" * 65), data(digest)), "A hash function with a name of 65 bytes.")
    broken("digest-7", array(integer(8), text("sha-256"), data(bytes(7))), "A digest of 7 bytes.")
    broken("digest-65", array(integer(8), text("sha-256"), data(bytes(65))), "A digest of 65 bytes.")
    broken("digest-text", array(integer(8), text("sha-256"), text("12345678")), "A digest that is a text.")
    broken("two-items", array(integer(8), text("sha-256")), "A description of two items.")
