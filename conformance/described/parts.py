"""Parts."""

from .build import *
from .files import *

PAYLOAD = b"\1\2\3\4"
TENSOR = v_tensor("u8", [4], PAYLOAD)


def describe(files: Files) -> None:
    one = buffer_tensor("u8", [4], 0)
    files.parts("parts-no-buffers", parts(integer(7)), "Parts of a value without buffers: one piece.", "", value=7)
    files.parts("parts-name", parts(one, PAYLOAD, name="x", alignment=64), "Parts with a name and an alignment.", "parts-plain", value=TENSOR)
    two = array(buffer_bytes(0), buffer_bytes(1), buffer_numbers("u16", 2))
    files.parts("parts-empty-buffer", parts(two, b"a", b"", raw("u16", 7)), "Three buffers, one of them empty: an empty buffer is a piece too.", "receiver", value=[v_bytes(b"a"), v_bytes(b""), [7]])
    files.parts("parts-no-hashes", parts(one, PAYLOAD, check=None), "Parts without hashes.", "", value=TENSOR)
    files.parts("parts-ext", parts(one, PAYLOAD, ext=map_of((integer(0), map_of((text("a"), text("b")))))), "Parts with notes.", "ext-keys", value=TENSOR)
    columns_of = columns(2, fields(a=buffer_numbers("u8", 0)))
    files.parts("parts-columns", parts(columns_of, b"\1\2"), "Parts of columns.", "columns-all", value=[v_map(a=1), v_map(a=2)], tensors=[["a", "u8", [2]]])

    def bad(name: str, pieces: list[bytes], about: str, rules: str, read: object = {"verdict": "refused"}, **said: object) -> None:
        files.parts(f"parts-{name}", pieces, about, rules, False, read=read, **said)

    right = parts(one, PAYLOAD)
    bad("few", right[:1], "A buffer too few.", "receiver")
    bad("many", [*right, b"more"], "A buffer too many.", "receiver")
    bad("short", [right[0], PAYLOAD[:3]], "A buffer with a byte too few.", "receiver")
    bad("long", [right[0], PAYLOAD + b"\0"], "A buffer with a byte too many.", "receiver")
    bad("contents", [right[0], b"\1\2\3\5"], "A buffer with other contents.", "receiver")
    bad("unreferenced", parts(array(buffer_bytes(0)), b"a", b"b"), "A buffer without a reference.", "receiver")
    bad("compressed", parts(buffer_bytes(0), compressed("lz4", [1, 0], 20, [b"\1\1\0\0\0\7"])), "Parts with a compressed buffer.", "parts-plain")
    bad("elsewhere", parts(buffer_bytes(0), elsewhere(b"far away", "sha-256", bytes(32)))[:1], "Parts with a buffer elsewhere.", "parts-plain", [{"verdict": "refused"}, unsupported("sha-256")])
    bad("trailing", [right[0] + b"\0", PAYLOAD], "A byte after the metadata of the parts.", "only-encoding")
    bad("seed", [record(header_content(None, integer(7), array()), 12)], "A record whose hash has the seed 12, as in an archive.", "record-hash")
    bad("flip", [right[0][:20] + b"\xff" + right[0][21:], PAYLOAD], "A changed byte in the metadata of the parts.", "record-hash")
    bad("metadata-cut", [right[0][:-1], PAYLOAD], "The metadata of the parts without its last byte.", "only-encoding")
    bad("ext-odd", parts(one, PAYLOAD, ext=map_of((integer(4711), NULL))), "An unknown odd key.", "ext-keys", unsupported("4711"))
    bad("check-unknown", parts(one, PAYLOAD, check=("example-hash", 16)), "Hashes of an unknown algorithm.", "unknown-check", unsupported("example-hash"), unverified=TENSOR)
    bad("version-2", parts(one, PAYLOAD, version=2), "Parts of version 2.", "later-version", unsupported("version 2"))
    bad("strict", parts(b"\x9f\x01\xff"), "Metadata with an array of indefinite length.", "strict-metadata")
    bad("chunk", parts(one, PAYLOAD, chunk=32768), "Chunks of 32,768 bytes.", "chunk")
