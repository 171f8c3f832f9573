"""Metadata: references, and the rules that messages do not have."""

from .build import *
from .files import *
from .segments import fault, one

PAYLOAD = raw("u16", 1, 2, 3, 4, 5, 6)


def describe(files: Files) -> None:
    references(files)
    strict(files)
    in_columns(files)
    values(files)


def references(files: Files) -> None:
    made = one("a", buffer_tensor("u16", [2, 3], 0, "F"), PAYLOAD, value=v_tensor("u16", [2, 3], PAYLOAD, "F"))
    files.archive("reference-tensor", made, "A reference to a tensor of order F.", "buffer-length")
    for dtype in ("u8", "i16", "u32", "i64"):
        payload = raw(dtype, 1, 2, 3)
        files.archive(f"reference-sequence-{dtype}", one("a", buffer_numbers(dtype, 0), payload, value=[1, 2, 3]), f"A reference to a packed sequence of {dtype}.", "sequence-dtype")
    files.archive("reference-sequence-f16", one("a", buffer_numbers("f16", 0), raw("f16", 1.0), value=[{"f16": "3c00"}]), "A reference to a packed sequence of f16.", "sequence-dtype")
    files.archive("reference-sequence-f64", one("a", buffer_numbers("f64", 0), raw("f64", 0.1), value=[v_f64(0.1)]), "A reference to a packed sequence of f64.", "sequence-dtype")
    for dtype, payload in (("f4", b"\x21"), ("f6_e2m3", bytes(3)), ("c64", bytes(16)), ("f128", bytes(32)), ("bool", b"\0\1"), ("example.com/q", b"?")):
        count = {"f6_e2m3": 4}.get(dtype, 2)
        files.archive(f"reference-tensor-{dtype.replace('/', '-')}", one("a", buffer_tensor(dtype, [count], 0), payload, value=v_tensor(dtype, [count], payload)), f"A reference to a tensor of {dtype}.", "buffer-length carry")
    made = one("a", array(buffer_bytes(1), buffer_bytes(0)), b"x", b"y", value=[v_bytes(b"y"), v_bytes(b"x")], rows=2)
    files.archive("reference-any-order", made, "References that are not in the order of the buffers.", "any-order")
    made = one("a", map_of((buffer_bytes(0), integer(1))), b"key", value=v_pairs((v_bytes(b"key"), 1)))
    files.archive("reference-key", made, "A reference that is a key of a map.", "references")
    wide = tag(TBUF, array(text("u8", 2), array(integer(3, 4), width=1), text("C"), integer(0, 8), width=8), 8)
    files.archive("reference-wide", one("a", wide, b"\1\2\3", value=v_tensor("u8", [3], b"\1\2\3")), "A reference whose heads are not the shortest.", "accept")
    made = one("a", array(tag(4711, buffer_bytes(0)), tag(24, data(buffer_bytes(9)))), b"x", value=[v_bytes(b"x"), v_bytes(buffer_bytes(9))], rows=2)
    files.archive("reference-in-tags", made, "A reference inside an unknown tag, and bytes in tag 24 that are none.", "strict-metadata")
    maybe = {"read": [OK, damaged()]}
    fault(files, "reference-missing", one("a", array(buffer_bytes(0)), b"x", b"y", rows=1), "A buffer without a reference: loading need not notice it, verifying must.", "unreferenced", **maybe)
    fault(files, "reference-none", one("a", integer(7), b"x"), "The only buffer has no reference.", "unreferenced", **maybe)
    fault(files, "reference-outside", one("a", buffer_bytes(1), b"x"), "A reference to a buffer that is not there.", "references")
    fault(files, "reference-no-buffers", one("a", buffer_bytes(0)), "A reference in a segment without buffers.", "references")
    fault(files, "reference-negative", one("a", tag(TBUF, array(integer(-1))), b"x"), "A negative number of a buffer.", "references")
    fault(files, "reference-short", one("a", buffer_tensor("u16", [7], 0), PAYLOAD), "A buffer that is shorter than dtype and shape ask for.", "buffer-length")
    fault(files, "reference-long", one("a", buffer_tensor("u16", [5], 0), PAYLOAD), "A buffer that is longer than dtype and shape ask for.", "buffer-length")
    fault(files, "reference-part", one("a", buffer_numbers("u16", 0), b"\1\2\3"), "A packed sequence whose last element is cut.", "buffer-length")
    for dtype in ("bool", "c64", "f128", "bf16", "f8_e4m3", "example.com/q"):
        fault(files, f"reference-sequence-{dtype.replace('/', '-')}", one("a", buffer_numbers(dtype, 0), bytes(16)), f"A packed sequence of {dtype}.", "sequence-dtype")
    fault(files, "reference-overflow", one("a", buffer_tensor("u16", [2**62, 8], 0), PAYLOAD), "A reference whose shape overflows.", "product")
    fault(files, "reference-f4-odd", one("a", buffer_tensor("f4", [3], 0), b"\x21\x03"), "A reference to three elements of f4.", "whole-bytes")
    fault(files, "reference-order-x", one("a", tag(TBUF, array(text("u16"), array(integer(6)), text("X"), integer(0))), PAYLOAD), "A reference with an order other than C and F.", "references")
    fault(files, "reference-three", one("a", tag(TBUF, array(text("u16"), array(integer(6)), integer(0))), PAYLOAD), "A reference of three items.", "references")
    fault(files, "reference-five", one("a", tag(TBUF, array(text("u16"), array(integer(6)), text("C"), integer(0), NULL)), PAYLOAD), "A reference of five items.", "references")
    fault(files, "reference-empty", one("a", tag(TBUF, array()), PAYLOAD), "A reference of no items.", "references")
    fault(files, "reference-number", one("a", tag(TBUF, integer(0)), PAYLOAD), "A reference that is no array.", "references")
    fault(files, "reference-indefinite", one("a", tag(TBUF, b"\x9f" + integer(0) + BREAK), PAYLOAD), "A reference of indefinite length.", "strict-metadata references")
    fault(files, "reference-in-tag-40", one("a", tag(40, array(array(integer(2)), tag(64, buffer_bytes(0)))), b"xy"), "A reference in place of the payload inside another tag.", "references")
    fault(files, "reference-elements", one("a", tag(40, array(array(integer(2)), buffer_numbers("u8", 0))), b"xy"), "A reference in place of the elements of a tensor.", "references strict-metadata")
    fault(files, "reference-in-tens", one("a", tag(TENS, array(text("u8"), array(integer(2)), text("C"), buffer_bytes(0))), b"xy"), "A reference in place of the payload of a tensor.", "references")
    fault(files, "reference-name-long", one("a", buffer_tensor("d" * 257, [1], 0), b"x"), "A reference with a dtype name of 257 bytes.", "dtype-name")


def strict(files: Files) -> None:
    rules = "strict-metadata"
    wide = array(integer(1, 8), text("a", 4), tensor([2], tag(64, data(b"\1\2", 2))), width=2)
    files.archive("metadata-wide", one("a", wide, value=[1, "a", v_tensor("u8", [2], b"\1\2")], rows=3), "Heads in metadata that are not the shortest.", "strict-metadata accept")
    inner = tag(24, data(b"\x9f\x01\xff"))
    files.archive("metadata-tag-24", one("a", inner, value=v_bytes(b"\x9f\x01\xff")), "The content of tag 24 is bytes, and nobody looks into it.", rules)
    files.archive("metadata-tags", one("a", array(tag(4711, integer(1)), tag(4711, typed("u8", 1))), value=[1, [1]], rows=2), "Tags without a meaning in metadata are skipped.", rules)
    files.archive("metadata-tensors", one("a", array(tensor([1], typed("u8", 1)), tens("bf16", [1], b"\x80\x3f"), tensor([2, 2], typed("f32", 1, 2, 3, 4), "F"), tensor([1], tag(43001, typed("f32", 1, 2)))), value=[v_tensor("u8", [1], b"\1"), v_tensor("bf16", [1], b"\x80\x3f"), v_tensor("f32", [2, 2], raw("f32", 1, 2, 3, 4), "F"), v_tensor("c64", [1], raw("f32", 1, 2))], rows=4), "Tensors inside the metadata.", rules)

    def refused(name: str, item: bytes, about: str) -> None:
        # The walk over the metadata that looks for references sees all of it.
        fault(files, f"metadata-{name}", one("a", fields(a=item)), about, rules)

    refused("array-indefinite", b"\x9f\x01\xff", "An array of indefinite length.")
    refused("map-indefinite", b"\xbf\x61a\x01\xff", "A map of indefinite length.")
    refused("text-indefinite", b"\x7f\x61a\xff", "A text of indefinite length.")
    refused("bytes-indefinite", b"\x5f\x41a\xff", "A byte string of indefinite length.")
    refused("payload-indefinite", tag(64, b"\x5f\x41a\xff"), "A payload of indefinite length.")
    refused("tensor-indefinite", tag(40, b"\x9f" + array(integer(1)) + typed("u8", 1) + BREAK), "A tensor whose array has an indefinite length.")
    refused("shape-indefinite", tag(40, array(b"\x9f\x01\xff", typed("u8", 1))), "A shape of indefinite length.")
    refused("in-tag", tag(4711, b"\x9f\x01\xff"), "An array of indefinite length inside a tag without a meaning.")
    refused("in-rows", columns(1, column("rows", array(b"\x9f\x01\xff"))), "An array of indefinite length among rows that are stored as items.")
    refused("columns-indefinite", tag(TCOL, b"\x9f" + integer(1) + column("unit") + BREAK), "Columns of indefinite length.")
    refused("big-endian", tag(65, data(b"\0\1")), "A big-endian packed sequence.")
    refused("big-endian-signed", tag(74, data(bytes(4))), "A big-endian packed sequence of i32.")
    refused("big-endian-float", tag(81, data(bytes(4))), "A big-endian packed sequence of f32.")
    refused("big-endian-f128", tag(83, data(bytes(16))), "A big-endian typed array of f128.")
    refused("clamped", tag(68, data(b"\1")), "A clamped packed sequence.")
    refused("tag-76", tag(76, data(b"\1")), "The reserved tag 76.")
    refused("tensor-big-endian", tensor([1], tag(65, data(b"\0\1"))), "A tensor of big-endian elements.")
    refused("tensor-clamped", tensor([1], tag(68, data(b"\1"))), "A tensor of clamped elements.")
    refused("tensor-plain", tensor([2], array(integer(1), integer(2))), "A tensor whose elements are a plain array.")
    refused("tensor-plain-f", tensor([2, 1], array(integer(1), integer(2)), "F"), "A tensor of order F whose elements are a plain array.")
    refused("tensor-tag-inside", tensor([1], tag(4711, typed("u8", 1))), "A tag in front of the elements of a tensor.")
    refused("tensor-three", tag(40, array(array(integer(1)), typed("u8", 1), NULL)), "Tag 40 around an array of three.")
    refused("tensor-one", tag(40, array(array(integer(1)))), "Tag 40 around an array of one.")
    refused("tensor-number", tag(40, integer(1)), "Tag 40 around a number.")
    refused("rows-big-endian", columns(1, column("rows", array(tag(65, data(b"\0\1"))))), "A big-endian packed sequence among rows that are stored as items.")
    refused("rows-tensor-plain", columns(1, column("rows", array(tensor([1], array(integer(1)))))), "A tensor of a plain array among rows that are stored as items.")
    deep = NULL
    for _ in range(128):
        deep = array(deep)
    files.archive("metadata-deep", one("a", deep, rows=1), "128 arrays in each other, which is tenarc's limit.", "")
    fault(files, "metadata-deeper", one("a", array(deep), rows=1), "129 arrays in each other, more than tenarc's limit.", "")


def in_columns(files: Files) -> None:
    structs = fields(
        n=buffer_numbers("u16", 0),
        t=buffer_tensor("f32", [2, 2], 1),
        s=column("text", typed("u8", 1, 2), buffer_bytes(2)),
        d=column("bytes", integer(1), buffer_bytes(3)),
        b=column("bool", buffer_bytes(4)),
    )
    tensors = raw("f32", 1, 2, 3, 4)
    buffers = [raw("u16", 7, 8), tensors, b"abc", b"xy", b"\2"]
    rows = [
        v_map(n=7, t=v_tensor("f32", [2], tensors[:8]), s="a", d=v_bytes(b"x"), b=False),
        v_map(n=8, t=v_tensor("f32", [2], tensors[8:]), s="bc", d=v_bytes(b"y"), b=True),
    ]
    made = one("log", columns(2, structs), *buffers, value=rows, rows=2, tensors=[["b", "bool", [2]], ["n", "u16", [2]], ["t", "f32", [2, 2]]])
    files.archive("columns-in-buffers", made, "Columns whose numbers, tensors, texts, bytes and bits are in buffers.", "columns-all references verify-columns")
    lengths = column("text", buffer_numbers("u8", 0), buffer_bytes(1))
    files.archive("columns-lengths-in-buffer", one("log", columns(2, lengths), b"\1\2", b"abc", value=["a", "bc"], rows=2), "Lengths in a buffer.", "columns-all")
    codes = column("dict", buffer_numbers("u8", 0), integer(2), column("text", integer(1), text("ab")))
    files.archive("columns-codes-in-buffer", one("log", columns(3, codes), b"\0\1\0", value=["a", "b", "a"], rows=3), "Codes of a dict in a buffer.", "columns-all dict-codes")
    reference = columns(1, column("rows", array(buffer_bytes(0))))
    fault(files, "columns-archive-rows-reference", one("log", reference, b"x", rows=1), "A reference among rows that are stored as items, which verifying sees too.", "rows-references verify-columns")
    deep = columns(1, fields(a=column("rows", array(fields(x=array(buffer_bytes(0)))))))
    fault(files, "columns-archive-rows-reference-deep", one("log", deep, b"x", rows=1), "A reference deep in a row that is stored as an item.", "rows-references verify-columns")
    twice = map_of((text("a"), typed("u8", 1)), (text("a"), typed("u8", 2)))
    fault(files, "columns-archive-twice", one("log", columns(1, twice), rows=1), "A field of columns that occurs twice, which verifying sees too.", "names-twice verify-columns")
    enum = column("enum", typed("u8", 0), array(text("A"), text("A")))
    fault(files, "columns-archive-enum-twice", one("log", columns(1, enum), rows=1), "A name of an enum that occurs twice, which verifying sees too.", "names-twice verify-columns")
    unsaid = {"verify": [OK, damaged()]}
    equal = column("list", typed("u8", 1, 1), typed("u8", 1, 2))
    fault(files, "columns-archive-list-equal", one("log", columns(2, equal), rows=2), "A list whose lengths are all equal, in an archive.", "list-equal", **unsaid)
    equal = column("list", buffer_numbers("u8", 0), typed("u8", 1, 2))
    fault(files, "columns-archive-list-equal-buffer", one("log", columns(2, equal), b"\1\1", rows=2), "A list whose lengths are in a buffer, and all equal.", "list-equal", verify=[OK, damaged()])
    bits = column("bool", buffer_bytes(0))
    fault(files, "columns-archive-unused-bits", one("log", columns(2, bits), b"\x07", rows=2), "An unused bit that is 1, in a buffer.", "unused-bits", **unsaid)
    numbers = buffer_numbers("u16", 0)
    fault(files, "columns-archive-sum", one("log", columns(3, numbers), raw("u16", 1, 2), rows=3), "A column in a buffer that is shorter than its rows.", "sums", **unsaid)
    fault(files, "columns-archive-wrong-form", one("log", columns(1, column("text", integer(1), buffer_numbers("u8", 0))), b"x", rows=1), "A reference to a packed sequence in place of a text.", "kinds", **unsaid)
    fault(files, "columns-archive-no-form", one("log", columns(1, buffer_bytes(0)), b"x", rows=1), "A reference to a byte string in place of a column.", "kinds", **unsaid)


def values(files: Files) -> None:
    # Verifying does not look at elements.
    fault(files, "value-bool-in-buffer", one("a", buffer_tensor("bool", [2], 0), b"\1\2"), "A bool byte of 2 in a buffer, which verifying does not see.", "bool-byte", verify=OK)
    fault(files, "value-utf8", one("a", text(b"\xff")), "A text in metadata that is not UTF-8.", "utf8", verify=[OK, damaged()])
    typ = tag(TTYP, array(text("example.com/a"), array(), buffer_tensor("u8", [2], 0)))
    files.archive("value-type", one("a", typ, b"\1\2", value=v_tensor("u8", [2], b"\1\2")), "A tensor of a type in a buffer.", "type-through")
    fault(files, "value-type-null", one("a", tag(TTYP, array(text("date"), array(), NULL))), "A type around null in an archive.", "type-form", verify=[OK, damaged()])
