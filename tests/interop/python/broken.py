"""Parts that must be refused, each with what makes it so, and some that look like it and must not."""

import cbor2
import numpy as np

from archive import (
    BLOCK,
    END,
    HASHES,
    HEADER,
    MIB,
    NOTHING,
    RECORD,
    chunk_hashes,
    hash_of,
    hashed,
    text_or_null,
)
from heads import array, break_, bytes_, chunks, head, tag
from metadata import BUFFER

FIRST, SECOND = (np.arange(3, dtype="<f4") + start for start in (0, 10))
BUFFERS = [FIRST.tobytes(), SECOND.tobytes()]
CHUNK = 1 << 16
# Buffers of no chunk, of less than one, of one, and of three, the last of which is shorter.
BITS = np.random.default_rng(67)
CHUNKS = [BITS.bytes(length) for length in (0, 12, CHUNK, 2 * CHUNK + 1)]


def reference(number, shape=(3,), dtype="f32", order="C"):
    dims = array([head(0, length) for length in shape])
    return tag(BUFFER, array([cbor2.dumps(dtype), dims, cbor2.dumps(order), head(0, number)]))


BOTH = array([reference(0), reference(1)])
ALL = array([tag(BUFFER, array([head(0, number)])) for number in range(len(CHUNKS))])


def make(
    item=BOTH,
    buffers=BUFFERS,
    *,
    kind=HEADER,
    version=head(0, 1),
    name=b"\xf6",
    alignment=head(0, 256),
    check=text_or_null("xxh3-64"),
    chunk=MIB,
    chunk_item=None,
    lengths=None,
    ext=NOTHING,
    more=(),
    seed=0,
    hashes=None,
    hashes_seed=None,
    behind=b"",
):
    """Pieces whose hashes fit whatever they are made of."""
    lengths = lengths or array([head(0, len(content)) for content in buffers])
    chunk_item = chunk_item or head(0, chunk)
    fields = [version, name, alignment, check, chunk_item, lengths, ext, item, *more]
    content = tag(kind, array(fields))
    out = hashed(RECORD + bytes_(content), seed)
    if buffers or hashes is not None:
        if hashes is None:
            hashes = chunk_hashes(buffers, check != b"\xf6", chunk)
        bound = int.from_bytes(out[-8:], "big") if hashes_seed is None else hashes_seed
        out += hashed(HASHES + bytes_(hashes), bound)
    return [out + behind, *buffers]


#: Items that messages have and metadata does not.
OTHER_WAYS = {
    "a text of indefinite length": "7f6161ff",
    "bytes of indefinite length in a tag": "d91092 5f4101ff",
    "a map of indefinite length in a key": "a1 bfff 01",
    "items of indefinite length in columns": "da54434f4c 82 01 82 64726f7773 81 9fff",
    "clamped numbers": "d84441 07",
    "big-endian numbers": "d841 42 0007",
    "a tag without a meaning": "d84c 40",
    "a big-endian tensor": "d828 82 8101 d851 44 00000000",
    "a tensor of plain numbers": "d828 82 8101 8107",
    "a column-major tensor of plain numbers": "d90410 82 820101 8107",
    "a tensor with a tag in front of its elements": "d828 82 8101 d91092 d84041 07",
}


def cases():
    """Name, whether they are sound, and pieces."""
    for what, pieces in sound().items():
        yield what, True, pieces
    for what, pieces in [*headers().items(), *hashes().items(), *others().items()]:
        yield what, False, pieces


def sound():
    first, second = BUFFERS
    nested = tag(4711, reference(0))
    return {
        "sound": make(),
        "without buffers": make(head(0, 7), []),
        "buffers in another order": make(array([reference(1), reference(0)])),
        "a buffer that is referred to twice": make(array([reference(0), reference(0)]), [first]),
        "a reference in a tag without meaning": make(array([nested, reference(1)])),
        "a reference as a key": make(head(5, 1) + tag(BUFFER, array([head(0, 0)])) + reference(1)),
        "a buffer of no bytes": make(array([reference(0, (0,)), reference(1)]), [b"", second]),
        "an empty name": make(name=cbor2.dumps("")),
        "a name of 1,024 bytes": make(name=cbor2.dumps("ß" * 512)),
        "an alignment of 8": make(alignment=head(0, 8)),
        "an alignment of 65,536": make(alignment=head(0, 65536)),
        "chunks of 64 KiB": make(chunk=CHUNK),
        "chunks of 1 GiB": make(chunk=1 << 30),
        "buffers of several chunks": make(ALL, CHUNKS, chunk=CHUNK),
        "the same in one chunk each": make(ALL, CHUNKS),
        "the same without hashes": make(ALL, CHUNKS, chunk=CHUNK, check=b"\xf6"),
        "buffers of no bytes alone": make(ALL, [b""] * len(CHUNKS), chunk=CHUNK),
        "no hashes": make(check=b"\xf6"),
        "extensions that are not known": make(
            ext=bytes.fromhex("a2 02 fb3ff0000000000000 18fe 8201a1616140")
        ),
        "notes": make(ext=bytes.fromhex("a1 00 a2 6161 60 616f 626f6b")),
        "no notes": make(ext=bytes.fromhex("a1 00 a0")),
        "no hashes, and buffers of one length in each other's place": [
            make(check=b"\xf6")[0],
            second,
            first,
        ],
        "a sequence and a byte string": make(
            array([tag(BUFFER, array([cbor2.dumps("f32"), head(0, n)][n:])) for n in (0, 1)])
        ),
    }


def headers():
    plain = head(0, 7)
    start = [head(0, 1), b"\xf6", head(0, 256), b"\xf6", head(0, MIB)]
    at_12 = make(seed=12)
    broken = {
        "a header as it stands in an archive, at 12": at_12,
        "a hash of a record of zeros": [make(plain, [])[0][:-8] + bytes(8)],
        "a block of the directory": make(kind=BLOCK),
        "an end mark": make(kind=END),
        "an unknown record": make(kind=int.from_bytes(b"TXYZ", "big")),
        "version 0": make(version=head(0, 0)),
        "version 2": make(version=head(0, 2)),
        "a version in text": make(version=cbor2.dumps("1")),
        "six fields": [record_of([*start[:4], array([]), NOTHING])],
        "seven fields, without the length of chunks": [
            record_of([*start[:4], array([]), NOTHING, plain])
        ],
        "seven fields, without extensions": [record_of([*start, array([]), plain])],
        "seven fields, without metadata": [record_of([*start, array([]), NOTHING])],
        "nine fields": make(more=[head(0, 0)]),
        "nine fields announced, and eight there": [
            record_of([*start, array([]), NOTHING, plain], 9)
        ],
        "a version with a longer head": make(version=head(0, 1, 1)),
        "a name with a longer head": make(name=head(3, 1, 1) + b"a"),
        "an alignment with a longer head": make(alignment=head(0, 256, 4)),
        "a check with a longer head": make(check=head(3, 7, 1) + b"xxh3-64"),
        "a length of chunks with a longer head": make(chunk_item=head(0, MIB, 8)),
        "lengths with a longer head": make(lengths=head(4, 2, 1) + 2 * head(0, 12)),
        "a length with a longer head": make(lengths=array([head(0, 12, 1), head(0, 12)])),
        "extensions with a longer head": make(ext=head(5, 0, 1)),
        "an odd extension": make(ext=bytes.fromhex("a1 01 00")),
        "an odd extension behind an even one": make(ext=bytes.fromhex("a2 04 00 05 00")),
        "extensions that are an array": make(ext=bytes.fromhex("80")),
        "extensions that are null": make(ext=b"\xf6"),
        "extensions of indefinite length": make(ext=bytes.fromhex("bf 02 00 ff")),
        "extensions in another order": make(ext=bytes.fromhex("a2 04 00 02 00")),
        "an extension twice": make(ext=bytes.fromhex("a2 02 00 02 00")),
        "a text as the key of an extension": make(ext=bytes.fromhex("a1 6161 00")),
        "an extension with a longer head": make(ext=bytes.fromhex("a1 02 1800")),
        "an extension of indefinite length": make(ext=bytes.fromhex("a1 02 9fff")),
        "an extension that is no UTF-8": make(ext=bytes.fromhex("a1 02 61ff")),
        "extensions of 65,537 bytes": make(ext=bytes.fromhex("a1 02") + bytes_(bytes(65_532))),
        "notes that are no map": make(ext=bytes.fromhex("a1 00 80")),
        "a note that is no text": make(ext=bytes.fromhex("a1 00 a1 6161 00")),
        "notes in another order": make(ext=bytes.fromhex("a1 00 a2 6162 60 6161 60")),
        "a note twice": make(ext=bytes.fromhex("a1 00 a2 6161 60 6161 60")),
        "a check in an array": make(check=array([cbor2.dumps("xxh3-64"), head(0, 8)])),
        "a check without a name": make(check=array([cbor2.dumps(""), head(0, 8)])),
        "a check of no bytes": make(check=array([cbor2.dumps("a"), head(0, 0)])),
        "a check of 65 bytes": make(check=array([cbor2.dumps("a"), head(0, 65)])),
        "a check of three items": make(check=array([cbor2.dumps("a"), head(0, 8), head(0, 8)])),
        "a buffer elsewhere": make(
            lengths=array(
                [head(0, 12), array([head(0, 12), cbor2.dumps("sha-256"), bytes_(bytes(32))])]
            )
        ),
        "a length of chunks in text": make(chunk_item=cbor2.dumps("65536")),
        "a length of chunks that is null": make(chunk_item=b"\xf6"),
        "a negative length of chunks": make(chunk_item=head(1, CHUNK - 1)),
        "a length of chunks that is a bignum": make(chunk_item=tag(2, bytes_(b"\1\0\0"))),
        "a length of which nobody could have the hashes": make(
            lengths=array([head(0, 2**62), head(0, 12)]), chunk=CHUNK
        ),
        "a name of 1,025 bytes": make(name=cbor2.dumps("a" * 1025)),
        "a name that is no UTF-8": make(name=b"\x61\xff"),
        "a name in chunks": make(name=chunks(3, b"a", b"b")),
        "a name in bytes": make(name=bytes_(b"name")),
        "an undefined name": make(name=b"\xf7"),
        "an unknown check": make(check=cbor2.dumps("crc32")),
        "a check in bytes": make(check=bytes_(b"xxh3-64")),
        "lengths in an array of indefinite length": make(
            lengths=array([head(0, 12), head(0, 12)], False)
        ),
        "a negative length": make(lengths=array([head(0, 12), head(1, 0)])),
        "a length in text": make(lengths=array([head(0, 12), cbor2.dumps("12")])),
        "lengths in a map": make(lengths=head(5, 1) + head(0, 12) + head(0, 12)),
        "lengths beyond 2^63 - 1": make(lengths=array([head(0, 2**63 - 1), head(0, 12)])),
        "lengths beyond 2^64": make(lengths=array([head(0, 2**64 - 1), head(0, 2**64 - 1)])),
        "a head of a length cut off": make(lengths=b"\x9b\xff\xff\xff\xff"),
        "more lengths than bytes": make(lengths=head(4, 2**40)),
        "a break for metadata": make(break_, []),
        "metadata that is cut off": make(head(4, 2) + head(0, 1), []),
        "something behind metadata": make(plain + plain, []),
        "something behind the metadata of the parts": make(behind=b"\0"),
        "something behind a record without buffers": make(plain, [], behind=b"\0"),
        "two values": make(plain, [], behind=make(plain, [])[0]),
    }
    for alignment in (0, 1, 4, 7, 12, 255, 131072, 2**63):
        broken[f"an alignment of {alignment}"] = make(alignment=head(0, alignment))
    for chunk in (0, 1, 32768, 65535, 65537, 98304, 2**31, 2**32 + 65536, 2**63, 2**64 - 1):
        broken[f"chunks of {chunk} bytes"] = make(chunk_item=head(0, chunk))
        broken[f"chunks of {chunk} bytes, without buffers"] = make(
            plain, [], chunk_item=head(0, chunk)
        )
    return broken


def record_of(fields, count=None):
    content = head(4, len(fields) if count is None else count) + b"".join(fields)
    return hashed(RECORD + bytes_(tag(HEADER, content)), 0)


def hashes():
    first, second = map(hash_of, BUFFERS)
    whole = make()
    without = make(head(0, 7), [])[0]
    return {
        "hashes bound to another record": make(hashes_seed=0),
        "hashes bound to the same record at 12": make(
            hashes_seed=int.from_bytes(make(array([]), [], seed=12)[0][-8:], "big")
        ),
        "hashes in the place of each other": make(hashes=second + first),
        "a hash too few": make(hashes=first),
        "a hash too many": make(hashes=first + second + first),
        "half a hash": make(hashes=first + second[:4]),
        "no hashes where there should be": make(hashes=b""),
        "hashes where there should be none": make(check=b"\xf6", hashes=first + second),
        **chunk_hashes_that_are_wrong(),
        "no list of hashes": [whole[0][: -9 - 19], *BUFFERS],
        "hashes without buffers": make(head(0, 7), [], hashes=b""),
        "hashes for a buffer that is none": [make(hashes=first)[0]],
        "a record alone": [without[:-1]],
    }


def chunk_hashes_that_are_wrong():
    right = chunk_hashes(CHUNKS, True, CHUNK)
    whole = [hash_of(content) for content in CHUNKS]
    start = right[:16]
    several = right[16:]
    swapped = several[8:16] + several[:8] + several[16:]
    cases = {
        "a hash for each buffer, of several chunks": b"".join(whole),
        "a hash for each buffer that has a chunk": b"".join(whole[1:]),
        "a hash for a buffer of no bytes": whole[0] + right,
        "the hash of a buffer before those of its chunks": start + hash_of(several, 3) + several,
        "the hash of a buffer in the place of those of its chunks": start + hash_of(several, 3),
        "the hashes of two chunks in each other's place": start + swapped,
        "no hash of the last chunk": right[:-8],
        "hashes of longer chunks": chunk_hashes(CHUNKS, True, 2 * CHUNK),
        "hashes with the number of the chunk as their seed": b"".join(
            hash_of(content[at : at + CHUNK], at // CHUNK)
            for content in CHUNKS
            for at in range(0, len(content), CHUNK)
        ),
    }
    return {name: make(ALL, CHUNKS, chunk=CHUNK, hashes=hashes) for name, hashes in cases.items()}


def changed_chunks():
    metadata = make(ALL, CHUNKS, chunk=CHUNK)[0]
    for number, content in enumerate(CHUNKS):
        for at in {0, len(content) // 2, len(content) - 1} if content else ():
            changed = bytearray(content)
            changed[at] ^= 1
            buffers = [*CHUNKS[:number], bytes(changed), *CHUNKS[number + 1 :]]
            yield f"byte {at} of buffer {number} changed", [metadata, *buffers]


def others():
    first, second = BUFFERS
    metadata = make()[0]
    longer = second + b"\0\0\0\0"
    number = tag(BUFFER, array([cbor2.dumps("f32"), head(0, 1)]))
    return {
        **dict(changed_chunks()),
        "no metadata": [b""],
        "metadata behind a byte": [b"\0" + metadata, first, second],
        "buffers alone": [first, second],
        "metadata twice": [metadata, metadata, first, second],
        "a buffer missing": [metadata, first],
        "no buffers": [metadata],
        "a buffer too many": [metadata, first, second, second],
        "a buffer of no bytes too many": [metadata, first, second, b""],
        "buffers in each other's place": [metadata, second, first],
        "the same buffer twice": [metadata, first, first],
        "a buffer too short": [metadata, first, second[:-1]],
        "a buffer too long": [metadata, first, longer],
        "a buffer too long, without hashes": [make(check=b"\xf6")[0], first, longer],
        "bytes of one buffer in the other": [metadata, first + second[:4], second[4:]],
        "a changed buffer": [metadata, first, b"\1" + second[1:]],
        "buffers of others": [metadata, *make(buffers=[second, first])[1:]],
        "a buffer that nothing refers to": make(array([reference(0)])),
        "buffers, and nothing that refers to one": make(head(0, 7)),
        "a reference to a buffer that is none": make(array([reference(0), reference(2)])),
        "a reference without buffers": make(reference(0), []),
        "another length than dtype and shape ask for": make(
            array([reference(0, (4,)), reference(1)])
        ),
        "a sequence of half elements": make(array([reference(0), number]), [first, second[:-2]]),
        "a sequence of a dtype without typed array": make(
            array([reference(0), number.replace(b"cf32", b"dbf16")])
        ),
        "a reference of three fields": make(
            array([reference(0), tag(BUFFER, array([cbor2.dumps("f32"), array([]), head(0, 1)]))])
        ),
        "metadata of indefinite length": make(array([reference(0), reference(1)], False)),
        **{
            f"{what} in metadata": make(array([reference(0), reference(1), bytes.fromhex(digits)]))
            for what, digits in OTHER_WAYS.items()
        },
        "a reference of indefinite length": make(
            array([reference(0), tag(BUFFER, array([head(0, 1)], False))])
        ),
        "a reference in the place of a payload": make(
            array([reference(0), tag(40, array([array([head(0, 3)]), number]))])
        ),
        "an order that is none": make(array([reference(0), reference(1, order="K")])),
        "a shape whose product overflows": make(
            array([reference(0), reference(1, (2**32, 2**32, 2**32))])
        ),
        "bools beyond 1": make(
            array([reference(0), reference(1, (12,), "bool")]), [first, b"\1\0\2" * 4]
        ),
    }
