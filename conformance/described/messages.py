"""Messages: values, tensors, packed sequences, and how they are read, without columns."""

import struct

from .build import *
from .files import *


def describe(files: Files) -> None:
    values(files)
    optional(files)
    tensors(files)
    dtypes(files)
    packed(files)
    read(files)
    refused(files)


def values(files: Files) -> None:
    ints = [0, 23, 24, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**53 - 1]
    ints += [-1, -24, -25, -256, -257, -65537, 1 - 2**53]
    files.message("integers", array(*map(integer, ints)), ints, "Integers with the shortest heads of each width.", "shortest")
    big = array(integer(2**64 - 1), integer(-(2**64)), integer(2**63), integer(-(2**63)), integer(2**53))
    said = [{"int": str(n)} for n in (2**64 - 1, -(2**64), 2**63, -(2**63), 2**53)]
    files.message("integers-large", big, said, "Integers from -2^64 to 2^64 - 1.", "")
    bignums = array(tag(2, data(bytes.fromhex("010000000000000000"))), tag(3, data(bytes.fromhex("010000000000000000"))), tag(2, data(b"\xff" * 16)), tag(3, data(b"\x7f" + b"\xff" * 15)))
    said = [{"int": str(n)} for n in (2**64, -1 - 2**64, 2**128 - 1, -(2**127))]
    files.message("bignums", bignums, said, "Bignums of up to 128 bits.", "")
    zeros = array(tag(2, data(bytes(20) + b"\5")), tag(3, data(b"\0\5")), tag(2, data(b"")))
    files.message("bignums-zeros", zeros, [5, -6, 0], "Leading zeros of big integers are ignored.", "")
    files.refused("bignum-tagged", tag(2, tag(4711, data(b"\5"))), "A bignum with a tag in front of its bytes.", "tensor-tags")
    files.refused("bignum-type", array(tag(2, tag(TTYP, array(text("date"), array(), data(b"\5"))))), "A bignum with a type in place of its bytes.", "tensor-tags")
    floats = array(f32(1.5), f64(1.5), f32(-0.0), f64(0.1), f16("3c00"))
    said = [v_f32(1.5), v_f64(1.5), v_f32(-0.0), v_f64(0.1), {"f16": "3c00"}]
    files.message("floats", floats, said, "Floats of 16, 32 and 64 bits, none narrowed.", "accept")
    floats = array(b"\xfa" + bytes.fromhex("7fc00001"), b"\xfb" + bytes.fromhex("7ff8000000000abc"), b"\xfa" + bytes.fromhex("ff800000"), b"\xfb" + bytes.fromhex("7ff0000000000000"))
    said = [{"f32": "7fc00001"}, {"f64": "7ff8000000000abc"}, {"f32": "ff800000"}, {"f64": "7ff0000000000000"}]
    files.message("floats-special", floats, said, "NaN payloads and infinities keep their bits.", "")
    texts = array(text(""), text("a"), text("grüße ✓ 𝄞"), text("\0\n\x7f"), data(b""), data(b"\0\xff"))
    files.message("texts-bytes", texts, ["", "a", "grüße ✓ 𝄞", "\0\n\x7f", v_bytes(b""), v_bytes(b"\0\xff")], "Texts and byte strings.", "utf8")
    simple = array(FALSE, TRUE, NULL, UNDEFINED)
    files.message("simple", simple, [False, True, None, None], "Booleans, null, and undefined, which is read as null.", "bytes-after")
    mixed = map_of((text("b"), integer(1)), (text("a"), integer(2)), (integer(7), NULL), (data(b"k"), TRUE), (array(integer(1)), text("x")))
    files.message("map-order", mixed, v_pairs(("b", 1), ("a", 2), (7, None), (v_bytes(b"k"), True), ([1], "x")), "A map keeps its order, and keys can be of any type.", "")
    enum = array(text("A"), fields(B=integer(7)), fields(C=array(integer(1), integer(2))), fields(D=fields(x=integer(3))))
    files.message("enum", enum, ["A", v_map(B=7), v_map(C=[1, 2]), v_map(D=v_map(x=3))], "Variants of an enum: unit, newtype, tuple and struct.", "")
    files.message("empty", array(array(), map_of(), text(""), data(b"")), [[], v_map(), "", v_bytes(b"")], "Empty arrays, maps and strings.", "")
    files.sequence("sequence", integer(1) + text("two") + fields(three=integer(3)), [1, "two", v_map(three=3)], "Three messages one after the other.", "")
    files.sequence("sequence-empty", b"", [], "A sequence without messages.", "")


def some(item: bytes) -> bytes:
    return tag(TSOM, item)


def optional(files: Files) -> None:
    content = array(NULL, integer(5), some(NULL), some(some(NULL)), some(UNDEFINED))
    files.message("some", content, [None, 5, {"some": None}, {"some": {"some": None}}, {"some": None}], "None, some 5, some none, some some none, and some undefined.", "")
    files.message("some-other", some(integer(5)), 5, "The tag of some around another item is skipped.", "")


def tensors(files: Files) -> None:
    payload = raw("u16", 1, 2, 3, 4, 5, 6)
    said = v_tensor("u16", [2, 3], payload, "F")
    files.message("tensor-order-f", tensor([2, 3], typed("u16", 1, 2, 3, 4, 5, 6), "F"), said, "A tensor in column-major order.", "payload-length product")
    said = v_tensor("i8", [], b"\xff")
    files.message("tensor-scalar", tensor([], typed("i8", -1)), said, "A tensor without dimensions.", "")
    one = tensor([3], typed("u8", 1, 2, 3), "F")
    files.message("tensor-vector-f", one, v_tensor("u8", [3], b"\1\2\3"), "Order F with one dimension is order C.", "")
    files.message("tensor-empty", tens("f32", [0, 3], b""), v_tensor("f32", [0, 3], b""), "A tensor with a dimension of zero.", "zero-product")
    files.message("tensor-empty-tag-40", tensor([2, 0], typed("f32")), v_tensor("f32", [2, 0], b""), "A dimension may be zero under tag 40 too.", "zero-product")
    files.refused("tensor-empty-overflow", tens("u8", [0, 2**32, 2**32], b""), "An empty tensor whose other dimensions have a product of 2^64.", "zero-product product")
    files.refused("tensor-empty-overflow-bytes", tens("f64", [0, 2**61], b""), "An empty tensor whose other dimensions have 2^64 bytes.", "zero-product")
    files.refused("tensor-overflow", tens("u8", [2**33, 2**33], b"\0"), "Dimensions whose product overflows.", "product")
    wide = tensor([2], tag(64, data(b"\1\2", 8)), "C")
    files.message("tensor-wide-heads", wide, v_tensor("u8", [2], b"\1\2"), "A payload whose head is not the shortest.", "accept")
    big = tensor([2], tag(65, data(bytes.fromhex("01020304"))))
    files.message("tensor-big-endian", big, v_tensor("u16", [2], bytes.fromhex("02010403")), "A tensor of big-endian elements.", "accept")
    clamped = tensor([2], tag(68, data(b"\1\2")))
    files.message("tensor-clamped", clamped, v_tensor("u8", [2], b"\1\2"), "Tag 68 is read as tag 64.", "accept")
    files.message("tensor-unknown-tag", tensor([2], tag(4711, typed("u8", 1, 2))), v_tensor("u8", [2], b"\1\2"), "An unknown tag in front of the elements of a tensor is skipped.", "accept")
    files.refused("tensor-short", tensor([2, 3], typed("u16", 1, 2, 3, 4, 5)), "A payload that is shorter than dtype and shape ask for.", "payload-length")
    files.refused("tensor-long", tens("u8", [2], b"\1\2\3"), "A payload that is longer than dtype and shape ask for.", "payload-length")
    good = "tensor-tags"
    files.message("tensor-tags", tag(4711, tensor([2], tag(4711, typed("u8", 1, 2)))), v_tensor("u8", [2], b"\1\2"), "Tags without a meaning in front of a tensor and of its elements.", good)
    files.refused("tensor-tag-array", tag(40, tag(4711, array(array(integer(2)), typed("u8", 1, 2)))), "A tag in front of the array of a tensor.", good)
    files.refused("tensor-tag-shape", tag(40, array(tag(4711, array(integer(2))), typed("u8", 1, 2))), "A tag in front of a shape.", good)
    files.refused("tensor-tag-dimension", tag(40, array(array(tag(4711, integer(2))), typed("u8", 1, 2))), "A tag in front of a dimension.", good)
    files.refused("tensor-tag-name", tag(TENS, array(tag(4711, text("u8")), array(integer(1)), text("C"), data(b"\1"))), "A tag in front of a dtype name.", good)
    files.refused("tensor-tag-order", tag(TENS, array(text("u8"), array(integer(1)), tag(4711, text("C")), data(b"\1"))), "A tag in front of an order.", good)
    files.refused("tensor-tag-bytes", tag(TENS, array(text("u8"), array(integer(1)), text("C"), tag(4711, data(b"\1")))), "A tag in front of a payload.", good)
    files.refused("typed-array-tag-bytes", tag(64, tag(4711, data(b"\1"))), "A tag in front of the bytes of a typed array.", good)
    files.refused("tensor-three-items", tag(40, array(array(integer(1)), typed("u8", 1), NULL)), "Tag 40 around an array of three.", "")
    files.refused("tensor-negative-dimension", tag(40, array(array(integer(-1)), typed("u8", 1))), "A negative dimension.", "")
    files.refused("tensor-order-x", tag(TENS, array(text("u8"), array(integer(1)), text("X"), data(b"\1"))), "An order other than C and F.", "")
    files.refused("tensor-name-long", tens("d" * 257, [1], b"\1"), "A dtype name of 257 bytes.", "dtype-name")
    files.message("tensor-name-longest", tens("d" * 256, [1], b"\1"), v_tensor("d" * 256, [1], b"\1"), "A dtype name of 256 bytes.", "dtype-name")


def dtypes(files: Files) -> None:
    values = {"u8": [1, 255], "u16": [1, 65535], "u32": [1, 2**32 - 1], "u64": [1, 2**64 - 1]}
    values |= {"i8": [-128, 127], "i16": [-(2**15), 1], "i32": [-(2**31), 1], "i64": [-(2**63), 1]}
    values |= {"f16": [1.0, -2.5], "f32": [1.5, -0.0], "f64": [1.5, 1e300]}
    for name, two in values.items():
        payload = raw(name, *two)
        files.message(f"dtype-{name}", tensor([2], typed(name, *two)), v_tensor(name, [2], payload), f"A tensor of {name}.", "")
    payload = bytes(range(32))
    files.message("dtype-f128", tensor([2], tag(87, data(payload))), v_tensor("f128", [2], payload), "A tensor of f128.", "")
    for name, part in (("c64", "f32"), ("c128", "f64")):
        payload = raw(part, 1, 2, 3, 4)
        files.message(f"dtype-{name}", tensor([2], tag(43001, typed(part, 1, 2, 3, 4))), v_tensor(name, [2], payload), f"A tensor of {name}: the real part comes first.", "")
    other = {"bool": b"\0\1", "bf16": b"\x80\x3f\0\xc0", "f8_e5m2": b"\x3c\xff", "f8_e4m3": b"\x38\x7f", "f8_e8m0": b"\x7f\xff"}
    other |= {"f8_e5m2fnuz": b"\x40\x80", "f8_e4m3fnuz": b"\x40\x80"}
    for name, payload in other.items():
        files.message(f"dtype-{name}", tens(name, [2], payload), v_tensor(name, [2], payload), f"A tensor of {name}.", "bool-byte" if name == "bool" else "")
    # Element i is bits i * w to i * w + w - 1, the lowest first.
    files.message("dtype-f4", tens("f4", [2, 2], b"\x21\x43"), v_tensor("f4", [2, 2], b"\x21\x43"), "Four elements of f4 in two bytes: 1, 2, 3, 4 as bits.", "whole-bytes")
    sixes = sum(bits << 6 * at for at, bits in enumerate((1, 2, 3, 63))).to_bytes(3, "little")
    for name in ("f6_e2m3", "f6_e3m2"):
        files.message(f"dtype-{name}", tens(name, [4], sixes), v_tensor(name, [4], sixes), f"Four elements of {name} in three bytes: 1, 2, 3, 63 as bits.", "whole-bytes")
    files.refused("dtype-f4-odd", tens("f4", [3], b"\x21\x03"), "Three elements of f4 are no whole number of bytes.", "whole-bytes")
    files.refused("dtype-f6-odd", tens("f6_e2m3", [2], b"\x21\x03"), "Two elements of 6 bits are no whole number of bytes.", "whole-bytes")
    files.message("dtype-unknown", tens("example.com/q3", [5, 7], b"\1\2\3"), v_tensor("example.com/q3", [5, 7], b"\1\2\3"), "A dtype that no reader knows, with a payload of any length.", "carry")
    files.refused("dtype-bool-2", tens("bool", [2], b"\1\2"), "A bool byte of 2.", "bool-byte")


def packed(files: Files) -> None:
    for name, numbers in {"u8": [0, 255], "u16": [1, 2], "u32": [1, 2**32 - 1], "i8": [-1, 1], "i16": [-1, 1], "i32": [-1, 1]}.items():
        files.message(f"packed-{name}", typed(name, *numbers), numbers, f"A packed sequence of {name}.", "")
    files.message("packed-u64", typed("u64", 1, 2**64 - 1), [1, {"int": str(2**64 - 1)}], "A packed sequence of u64.", "")
    files.message("packed-i64", typed("i64", -1, -(2**63)), [-1, {"int": str(-(2**63))}], "A packed sequence of i64.", "")
    files.message("packed-f16", typed("f16", 1.0, -2.0), [{"f16": "3c00"}, {"f16": "c000"}], "A packed sequence of f16.", "")
    files.message("packed-f32", typed("f32", 1.5, -0.0), [v_f32(1.5), v_f32(-0.0)], "A packed sequence of f32.", "")
    files.message("packed-f64", typed("f64", 0.1), [v_f64(0.1)], "A packed sequence of f64.", "")
    files.message("packed-big-endian", tag(66, data(bytes.fromhex("00000001000000ff"))), [1, 255], "A packed sequence of big-endian u32.", "accept")
    files.message("packed-empty", typed("f32"), [], "A packed sequence without elements.", "")
    files.refused("packed-part", tag(69, data(b"\1\2\3")), "A packed sequence of u16 with three bytes.", "payload-length")
    inside = fields(ids=typed("u16", 7, 8), more=array(typed("u8", 1), typed("u8", 2)))
    files.message("packed-inside", inside, v_map(ids=[7, 8], more=[[1], [2]]), "Packed sequences inside a map and an array.", "")


def read(files: Files) -> None:
    wide = array(integer(1, 1), integer(1, 2), integer(1, 4), integer(1, 8), integer(-1, 8), text("a", 4), data(b"b", 8), array(width=2), map_of(width=8), tag(4711, NULL, 4))
    files.message("heads-wide", wide, [1, 1, 1, 1, -1, "a", v_bytes(b"b"), [], v_map(), None], "Heads that are not the shortest.", "accept")
    longer = b"\x9f" + integer(1) + b"\xbf" + text("a") + integer(2) + BREAK + b"\x9f" + BREAK + BREAK
    files.message("indefinite", longer, [1, v_map(a=2), []], "Arrays and maps of indefinite length.", "accept")
    strings = array(b"\x7f" + text("ab") + text("") + text("c") + BREAK, b"\x5f" + data(b"\1") + data(b"\2\3") + BREAK, b"\x7f" + BREAK)
    files.message("strings-in-chunks", strings, ["abc", v_bytes(b"\1\2\3"), ""], "Strings in chunks.", "accept")
    files.refused("text-chunk-utf8", b"\x7f" + text(b"\xc3") + text(b"\xbc") + BREAK, "A chunk of a text that ends inside a character.", "accept utf8")
    tags = array(tag(4711, integer(1)), tag(4711, tag(0, text("x"))), tag(24, data(b"\1")), tag(55799, TRUE))
    files.message("tags-unknown", tags, [1, "x", v_bytes(b"\1"), True], "Tags without a meaning are skipped.", "accept")
    twice = map_of((text("a"), integer(1)), (text("a"), integer(2)))
    files.message("keys-twice", twice, v_pairs(("a", 1), ("a", 2)), "A key that occurs twice is read in order.", "keys-twice")
    deep = NULL
    for _ in range(128):
        deep = array(deep)
    files.message("deep", deep, ..., "128 arrays in each other, which is tenarc's limit.", "")


def refused(files: Files) -> None:
    files.refused("utf8", text(b"\xff\xfe"), "A text that is not UTF-8.", "utf8")
    files.refused("utf8-surrogate", text(b"\xed\xa0\x80"), "A text with a surrogate, which is not UTF-8.", "utf8")
    files.refused("bytes-after", integer(1) + integer(2), "A byte after the value.", "bytes-after")
    files.refused("nothing", b"", "No bytes at all.", "accept")
    files.refused("cut-head", b"\x19\x01", "A head without its last byte.", "accept")
    files.refused("cut-array", b"\x82\x01", "An array without its last element.", "accept")
    files.refused("cut-text", b"\x63ab", "A text without its last byte.", "allocate")
    files.refused("length-huge", b"\x5b\x7f\xff\xff\xff\xff\xff\xff\xff", "A byte string that announces 2^63 - 1 bytes and has none.", "allocate")
    files.refused("array-huge", b"\x9b\x7f\xff\xff\xff\xff\xff\xff\xff", "An array that announces 2^63 - 1 items and has none.", "allocate")
    files.refused("head-reserved", b"\x1c", "A head with the reserved additional information 28.", "accept")
    files.refused("break-alone", BREAK, "A break outside of anything.", "accept")
    files.refused("break-in-definite", b"\x82\x01\xff", "A break in an array of definite length.", "accept")
    files.refused("map-odd", b"\xbf\x61a\xff", "A map of indefinite length with a key and no value.", "accept")
    files.refused("chunk-of-other-type", b"\x7f\x41a\xff", "A text with a chunk of bytes.", "accept")
    files.refused("chunk-in-chunk", b"\x5f\x5f\x41a\xff\xff", "A chunk of indefinite length.", "accept")
    files.refused("simple-two-bytes", b"\xf8\x14", "A simple value below 32 in two bytes.", "accept")
    files.refused("reference-in-message", buffer_tensor("f32", [1], 0), "A reference to a buffer has no meaning in a message.", "message-reference")
    files.refused("reference-deep", fields(a=array(buffer_bytes(0))), "A reference inside a map and an array of a message.", "message-reference")
    deep = NULL
    for _ in range(129):
        deep = array(deep)
    files.refused("deep-129", deep, "129 arrays in each other, more than tenarc's limit.", "")
