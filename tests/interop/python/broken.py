"""Parts that must be refused, each with what makes it so, and some that look like it and must not."""

import cbor2
import numpy as np

from archive import BLOCK, END, HASHES, HEADER, RECORD, hash_of, hashed, text_or_null
from heads import array, break_, bytes_, chunks, head, tag
from metadata import BUFFER

FIRST, SECOND = (np.arange(3, dtype="<f4") + start for start in (0, 10))
BUFFERS = [FIRST.tobytes(), SECOND.tobytes()]


def reference(number, shape=(3,), dtype="f32", order="C"):
    dims = array([head(0, length) for length in shape])
    return tag(BUFFER, array([cbor2.dumps(dtype), dims, cbor2.dumps(order), head(0, number)]))


BOTH = array([reference(0), reference(1)])


def make(
    item=BOTH,
    buffers=BUFFERS,
    *,
    kind=HEADER,
    version=head(0, 1),
    name=b"\xf6",
    alignment=head(0, 256),
    check=text_or_null("xxh3-64"),
    lengths=None,
    more=(),
    seed=0,
    hashes=None,
    hashes_seed=None,
    behind=b"",
):
    """Pieces whose hashes fit whatever they are made of."""
    lengths = lengths or array([head(0, len(content)) for content in buffers])
    content = tag(kind, array([version, name, alignment, check, lengths, item, *more]))
    out = hashed(RECORD + bytes_(content), seed)
    if buffers or hashes is not None:
        if hashes is None:
            hashes = b"".join(map(hash_of, buffers)) if check != b"\xf6" else b""
        bound = int.from_bytes(out[-8:], "big") if hashes_seed is None else hashes_seed
        out += hashed(HASHES + bytes_(hashes), bound)
    return [out + behind, *buffers]


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
        "a buffer that is referred to twice": make(
            array([reference(0), reference(0)]), [first]
        ),
        "a reference in a tag without meaning": make(array([nested, reference(1)])),
        "a reference as a key": make(
            head(5, 1) + tag(BUFFER, array([head(0, 0)])) + reference(1)
        ),
        "metadata of indefinite length": make(array([reference(0), reference(1)], False)),
        "a buffer of no bytes": make(array([reference(0, (0,)), reference(1)]), [b"", second]),
        "an empty name": make(name=cbor2.dumps("")),
        "a name of 1,024 bytes": make(name=cbor2.dumps("ß" * 512)),
        "an alignment of 8": make(alignment=head(0, 8)),
        "an alignment of 65,536": make(alignment=head(0, 65536)),
        "no hashes": make(check=b"\xf6"),
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
        "five fields": [five_fields()],
        "seven fields": make(more=[head(0, 0)]),
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
    return broken


def five_fields():
    fields = [head(0, 1), b"\xf6", head(0, 256), b"\xf6", array([])]
    return hashed(RECORD + bytes_(tag(HEADER, array(fields))), 0)


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
        "no list of hashes": [whole[0][: -9 - 19], *BUFFERS],
        "hashes without buffers": make(head(0, 7), [], hashes=b""),
        "hashes for a buffer that is none": [make(hashes=first)[0]],
        "a record alone": [without[:-1]],
    }


def others():
    first, second = BUFFERS
    metadata = make()[0]
    longer = second + b"\0\0\0\0"
    number = tag(BUFFER, array([cbor2.dumps("f32"), head(0, 1)]))
    return {
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
