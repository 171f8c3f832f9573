"""Columns and types in messages."""

from .build import *
from .files import *


def describe(files: Files) -> None:
    examples(files)
    kinds(files)
    structure(files)
    arrays(files)
    faults(files)
    types(files)


def rows_of(name: str, *values: object) -> list:
    return [v_map(**{name: value}) for value in values]


def examples(files: Files) -> None:
    one = columns(2, fields(id=typed("u8", 7, 9), tag=column("text", typed("u8", 2, 1), text("abc"))))
    files.message("columns-example-structs", one, [v_map(id=7, tag="ab"), v_map(id=9, tag="c")], "The first example of columns.", "columns-all columns-form names-twice sums")
    two = columns(
        2,
        fields(
            score=column("option", data(b"\1"), typed("f32", 1.5)),
            note=column("present", data(b"\2"), typed("u8", 5)),
            tags=column("list", typed("u8", 1, 2), typed("u8", 1, 2, 3)),
            kind=column("enum", typed("u8", 0, 1), array(text("A"), text("B")), array(NULL, typed("u8", 7))),
        ),
    )
    said = [v_map(score=v_f32(1.5), tags=[1], kind="A"), v_map(score=None, note=5, tags=[2, 3], kind=v_map(B=7))]
    files.message("columns-example-optional", two, said, "The second example of columns: optional values and fields, lists and enums.", "columns-all list-equal")
    first = column("tuple", array(column("array", integer(2), typed("u8", 1, 2, 3, 4, 5, 6)), column("list", typed("u8", 0, 2, 1), typed("u8", 7, 8, 9)), column("dict", typed("u8", 0, 1, 0), integer(2), column("text", typed("u8", 3, 2), text("yesno")))))
    second = column("tuple", array(column("array", integer(2), typed("u8", 1, 2)), column("array", integer(3), typed("u8", 3, 4, 5)), column("text", integer(3), text("yes"))))
    said = [[[1, 2], [], "yes"], [[3, 4], [7, 8], "no"], [[5, 6], [9], "yes"], [[1, 2], [3, 4, 5], "yes"]]
    files.message("columns-example-groups", columns(3, first, 1, second), said, "The third example of columns: two groups of tuples.", "columns-all list-equal dict-codes tuple-array")


def kinds(files: Files) -> None:
    good = files.message
    for dtype in ("u8", "u16", "u32", "i8", "i16", "i32"):
        good(f"columns-numbers-{dtype}", columns(3, typed(dtype, 1, 2, 100)), [1, 2, 100], f"A column of {dtype}.", "columns-all")
    good("columns-numbers-64", columns(1, fields(a=typed("u64", 2**64 - 1), b=typed("i64", -(2**63)))), [v_map(a={"int": str(2**64 - 1)}, b={"int": str(-(2**63))})], "Columns of u64 and i64.", "columns-all numbers-64")
    good("columns-numbers-f16", columns(2, typed("f16", 1.0, 0.5)), [{"f16": "3c00"}, {"f16": "3800"}], "A column of f16.", "columns-all")
    good("columns-numbers-float", columns(1, fields(a=typed("f32", 0.5), b=typed("f64", 0.1))), [v_map(a=v_f32(0.5), b=v_f64(0.1))], "Columns of f32 and f64.", "columns-all")
    rows = [v_map(t=v_tensor("u16", [2], raw("u16", 1, 2))), v_map(t=v_tensor("u16", [2], raw("u16", 3, 4)))]
    good("columns-tensors", columns(2, fields(t=tensor([2, 2], typed("u16", 1, 2, 3, 4)))), rows, "A column of tensors.", "columns-all")
    rows = [v_tensor("u8", [], b"\1"), v_tensor("u8", [], b"\2")]
    good("columns-tensors-vector-f", columns(2, tensor([2], typed("u8", 1, 2), "F")), rows, "A column of tensors of order F with one dimension, which is order C.", "columns-all")
    rows = [v_tensor("bf16", [], b"\x80\x3f"), v_tensor("bf16", [], b"\0\x40")]
    good("columns-tensors-scalar", columns(2, tens("bf16", [2], b"\x80\x3f\0\x40")), rows, "A column of tensors without dimensions.", "columns-all")
    rows = [v_tensor("example.com/q", [3], b"\1\2"), v_tensor("example.com/q", [3], b"\3\4")]
    good("columns-tensors-unknown", columns(2, tens("example.com/q", [2, 3], b"\1\2\3\4")), rows, "A column of tensors whose elements have no known size: the payload is cut into equal parts.", "columns-all")
    rows = [v_tensor("f4", [2], b"\x21"), v_tensor("f4", [2], b"\x43")]
    good("columns-tensors-f4", columns(2, tens("f4", [2, 2], b"\x21\x43")), rows, "A column of tensors of f4, each row one byte.", "columns-all row-bytes")
    good("columns-unit", columns(3, column("unit")), [None, None, None], "A column of units.", "columns-all announced kinds")
    good("columns-bool", columns(9, column("bool", data(b"\x05\x01"))), [True, False, True] + [False] * 5 + [True], "A column of nine booleans.", "columns-all unused-bits")
    good("columns-text-one-length", columns(2, column("text", integer(2), text("abcd"))), ["ab", "cd"], "Texts of one length.", "lengths-one columns-all")
    good("columns-text-equal-lengths", columns(2, column("text", typed("u8", 2, 2), text("abcd"))), ["ab", "cd"], "Texts of one length whose lengths are an array.", "lengths-one columns-all")
    good("columns-text-u64", columns(2, column("text", typed("u64", 2, 1), text("abc"))), ["ab", "c"], "Lengths of 64 bits.", "columns-all")
    good("columns-text-wide", columns(2, column("text", typed("u8", 2, 3), text("ü✓"))), ["ü", "✓"], "Texts of several bytes a character, cut between characters.", "text-rows")
    good("columns-bytes", columns(2, column("bytes", typed("u8", 0, 2), data(b"\0\xff"))), [v_bytes(b""), v_bytes(b"\0\xff")], "Byte strings.", "columns-all")
    good("columns-bytes-one-length", columns(2, column("bytes", integer(1), data(b"\0\xff"))), [v_bytes(b"\0"), v_bytes(b"\xff")], "Byte strings of one length.", "lengths-one")
    good("columns-text-empty", columns(3, column("text", integer(0), text(""))), ["", "", ""], "Three empty texts.", "columns-all announced")
    good("columns-option-none", columns(2, column("option", data(b"\0"), column("unit"))), [None, None], "Optional values of which none is there.", "columns-all")
    good("columns-option-some-none", columns(2, column("option", data(b"\3"), column("option", data(b"\2"), typed("u8", 1)))), [{"some": None}, 1], "An optional value in an optional value: some none, and some some 1.", "columns-all")
    good("columns-option-some-unit", columns(2, column("option", data(b"\2"), column("unit"))), [None, {"some": None}], "None and some unit.", "columns-all")
    good("columns-present-none", columns(2, fields(a=column("present", data(b"\0"), column("unit")))), [v_map(), v_map()], "A field that no row has.", "present-in-struct")
    good("columns-list-empty-rows", columns(2, column("list", typed("u8", 0, 1), typed("u8", 9))), [[], [9]], "A list with an empty row.", "list-equal")
    good("columns-list-of-list", columns(2, column("list", typed("u8", 2, 1), column("list", typed("u8", 1, 0, 2), typed("u8", 1, 2, 3)))), [[[1], []], [[2, 3]]], "Lists in lists.", "list-equal columns-all")
    good("columns-map", columns(2, column("map", typed("u8", 1, 2), column("text", integer(1), text("abc")), typed("u8", 1, 2, 3))), [v_map(a=1), v_map(b=2, c=3)], "A column of maps.", "columns-all")
    good("columns-map-one-length", columns(2, column("map", integer(1), typed("u8", 7, 8), column("bool", data(b"\1")))), [v_pairs((7, True)), v_pairs((8, False))], "Maps of one length with keys that are numbers.", "lengths-one")
    good("columns-map-empty", columns(2, column("map", integer(0), column("unit"), column("unit"))), [v_map(), v_map()], "Maps without entries.", "lengths-one announced")
    good("columns-enum-unit", columns(3, column("enum", typed("u8", 1, 0, 1), array(text("A"), text("B")))), ["B", "A", "B"], "An enum of unit variants.", "columns-all codes")
    good("columns-enum-u16", columns(2, column("enum", typed("u16", 1, 0), array(text("A"), text("B")))), ["B", "A"], "An enum with codes of u16.", "columns-all")
    good("columns-enum-nulls", columns(2, column("enum", typed("u8", 1, 0), array(text("A"), text("B")), array(NULL, NULL))), ["B", "A"], "Unit variants, with an array of nulls.", "enum-nulls")
    variants = array(NULL, fields(x=typed("u8", 1)), column("array", integer(2), typed("u8", 2, 3)))
    said = ["A", v_map(S=v_map(x=1)), v_map(T=[2, 3])]
    good("columns-enum-variants", columns(3, column("enum", typed("u8", 0, 1, 2), array(text("A"), text("S"), text("T")), variants)), said, "Unit, struct and tuple variants.", "columns-all enum-names")
    good("columns-dict", columns(4, column("dict", typed("u8", 0, 1, 0, 2), integer(3), column("text", typed("u8", 1, 2, 0), text("abb")))), ["a", "bb", "a", ""], "A dict of texts.", "dict-codes repeated dict-in-dict")
    good("columns-dict-same-rows", columns(2, column("dict", typed("u8", 0, 1), integer(2), typed("u8", 5, 5))), [5, 5], "A dict whose rows are not different.", "dict-codes")
    said = rows_of("a", 1, 2, 1)
    good("columns-dict-structs", columns(3, column("dict", typed("u8", 0, 1, 0), integer(2), fields(a=typed("u8", 1, 2)))), said, "A dict of structs.", "dict-codes columns-all")
    big = [n % 257 for n in range(258)]
    good("columns-dict-257", columns(258, column("dict", typed("u16", *big), integer(257), typed("u16", *range(257)))), big, "A dict of 257 rows has codes of u16.", "dict-type")
    big = [n % 256 for n in range(258)]
    good("columns-dict-256", columns(258, column("dict", typed("u8", *big), integer(256), typed("u16", *range(256)))), big, "A dict of 256 rows has codes of u8.", "dict-type")
    items = array(integer(1), text("a"), NULL, array(integer(2)), tag(4711, typed("u8", 3, 4)))
    good("columns-rows", columns(5, column("rows", items)), [1, "a", None, [2], [3, 4]], "Rows that are stored as items of any form.", "columns-all rows-references")
    items = b"\x9f" + integer(1) + BREAK
    good("columns-rows-indefinite", columns(1, column("rows", array(items))), [[1]], "An item among the rows follows the rules of its message, and has an indefinite length.", "columns-definite")


def structure(files: Files) -> None:
    good, bad = files.message, files.refused
    good("columns-no-groups", columns(), [], "Columns without groups.", "columns-all")
    good("columns-group-of-0", columns(0, column("unit"), 1, typed("u8", 7), 0, column("text", typed("u8"), text(""))), [7], "Groups of no rows, of other kinds than the rest.", "columns-all")
    good("columns-group-of-0-list", columns(0, column("list", typed("u8"), column("unit"))), [], "A list of no rows.", "list-equal")
    long = tag(TCOL, b"\x9f" + integer(1) + typed("u8", 7) + integer(1) + column("text", integer(1), text("x")) + BREAK)
    good("columns-outer-indefinite", long, [7, "x"], "In a message, the outer array may have an indefinite length.", "columns-definite")
    good("columns-inside", fields(log=columns(2, fields(a=typed("u8", 1, 2))), n=integer(3)), v_map(log=rows_of("a", 1, 2), n=3), "Columns inside a map.", "columns-all")
    nested = columns(2, fields(a=fields(b=typed("u8", 1, 2)), c=column("tuple", array(typed("u8", 3, 4), column("unit")))))
    good("columns-nested", nested, [v_map(a=v_map(b=1), c=[3, None]), v_map(a=v_map(b=2), c=[4, None])], "Structs in structs, and a tuple of a number and a unit.", "columns-all tuple-array")
    wide = tag(TCOL, array(integer(2, 8), array(text("bool", 2), data(b"\1", 4), width=4), width=8))
    good("columns-wide-heads", wide, [True, False], "Heads that are not the shortest.", "accept")
    bad("columns-odd", tag(TCOL, array(integer(1))), "A number of rows without a column.", "columns-form")
    bad("columns-not-array", tag(TCOL, typed("u8", 1)), "A tag of columns around a typed array.", "columns-form")
    bad("columns-rows-negative", tag(TCOL, array(integer(-1), column("unit"))), "A negative number of rows.", "columns-form")
    bad("columns-rows-float", tag(TCOL, array(f32(1), column("unit"))), "A number of rows that is a float.", "columns-form")
    bad("columns-group-too-long", columns(65537, column("unit")), "A group of 65,537 rows.", "group-rows")
    good("columns-group-longest", columns(65536, column("unit")), ..., "A group of 65,536 rows.", "group-rows")
    good("columns-structs-empty", columns(2, fields()), [v_map(), v_map()], "Structs without fields.", "announced")
    bad("columns-announced", columns(*[item for _ in range(257) for item in (65536, column("unit"))]), "More than 2^24 rows that take no bytes.", "announced")
    bad("columns-announced-arrays", columns(65536, column("array", integer(65536), column("array", integer(0), column("unit")))), "2^32 arrays of length 0, announced by few bytes.", "announced")
    bad("columns-indefinite-inside", columns(1, b"\x9f" + text("bool") + data(b"\1") + BREAK), "A column of indefinite length.", "columns-definite")
    bad("columns-indefinite-map", columns(1, b"\xbf" + text("a") + typed("u8", 1) + BREAK), "Structs in a map of indefinite length.", "columns-definite")
    bad("columns-indefinite-text", columns(1, column("text", integer(1), b"\x7f" + text("x") + BREAK)), "A text of indefinite length in a column.", "columns-definite")
    bad("columns-indefinite-name", columns(1, map_of((b"\x7f" + text("x") + BREAK, typed("u8", 1)))), "A field name of indefinite length.", "columns-definite")
    bad("columns-indefinite-tuple", columns(1, column("tuple", b"\x9f" + typed("u8", 1) + column("unit") + BREAK)), "The columns of a tuple in an array of indefinite length.", "columns-definite")
    bad("columns-indefinite-bits", columns(1, column("bool", b"\x5f" + data(b"\1") + BREAK)), "Bits of indefinite length.", "columns-definite")
    bad("columns-indefinite-payload", columns(1, tag(64, b"\x5f" + data(b"\1") + BREAK)), "A typed array of indefinite length in a column.", "columns-definite")
    bad("columns-unknown-tag", columns(1, tag(4711, typed("u8", 1))), "A tag without a meaning in front of a column.", "columns-definite")
    bad("columns-unknown-tag-lengths", columns(1, column("text", tag(4711, typed("u8", 1)), text("x"))), "A tag without a meaning in front of lengths.", "columns-definite")
    bad("columns-big-endian", columns(1, tag(65, data(b"\0\1"))), "A column of big-endian numbers.", "columns-definite")
    bad("columns-clamped", columns(1, tag(68, data(b"\1"))), "A column of clamped numbers.", "columns-definite")
    bad("columns-unknown-kind", columns(1, column("sparse", typed("u8", 1))), "A kind that is not in the table.", "kinds")
    bad("columns-interleaved", columns(1, column("interleaved", integer(1), typed("u8", 1))), "A kind that earlier drafts had.", "kinds")
    bad("columns-kind-case", columns(1, column("Unit")), "A kind in capital letters.", "kinds")
    bad("columns-kind-missing", columns(1, array()), "An empty array as a column.", "kinds")
    bad("columns-kind-number", columns(1, array(integer(1))), "A kind that is a number.", "kinds")
    bad("columns-plain-array", columns(2, array(integer(1), integer(2))), "A plain array of numbers as a column.", "kinds")
    bad("columns-null", columns(1, NULL), "Null as a column.", "kinds")
    bad("columns-extra-item", columns(1, column("unit", NULL)), "An item too many in a column.", "kinds")
    bad("columns-item-missing", columns(1, column("text", integer(1))), "An item too few in a column.", "kinds")
    bad("columns-f128", columns(1, tag(87, data(bytes(16)))), "A column of numbers of 128 bits.", "numbers-64")


def arrays(files: Files) -> None:
    good, bad = files.message, files.refused
    good("columns-array", columns(2, column("array", integer(3), typed("u8", 1, 2, 3, 4, 5, 6))), [[1, 2, 3], [4, 5, 6]], "Arrays of one length.", "list-equal")
    good("columns-array-nested", columns(2, column("array", integer(2), column("array", integer(1), typed("f32", 1, 2, 3, 4)))), [[[v_f32(1)], [v_f32(2)]], [[v_f32(3)], [v_f32(4)]]], "Arrays of arrays of one length.", "tuple-array")
    good("columns-array-0", columns(2, column("array", integer(0), column("unit"))), [[], []], "Arrays without elements.", "announced")
    good("columns-array-structs", columns(2, column("array", integer(2), fields(a=typed("u8", 1, 2, 3, 4)))), [rows_of("a", 1, 2), rows_of("a", 3, 4)], "Arrays of two structs.", "columns-all")
    good("columns-array-bool", columns(2, column("array", integer(2), column("bool", data(b"\x06")))), [[False, True], [True, False]], "Arrays of two booleans.", "columns-all")
    good("columns-tuple-mixed", columns(2, column("tuple", array(typed("u8", 1, 2), typed("f32", 1, 2)))), [[1, v_f32(1)], [2, v_f32(2)]], "A tuple of an integer and a float has no one type.", "tuple-array")
    good("columns-tuple-u64-signed", columns(1, column("tuple", array(typed("u64", 1), typed("i8", -1)))), [[1, -1]], "A tuple of u64 and i8 has no one type.", "tuple-array")
    good("columns-tuple-two-floats", columns(1, column("tuple", array(typed("f32", 1), typed("f64", 1)))), [[v_f32(1), v_f64(1)]], "A tuple of f32 and f64 has no one type.", "tuple-array")
    good("columns-tuple-bool-number", columns(1, column("tuple", array(column("bool", data(b"\1")), typed("u8", 1)))), [[True, 1]], "A tuple of a boolean and a number has no one type.", "tuple-array")
    good("columns-tuple-shapes", columns(1, column("tuple", array(typed("u8", 1), column("array", integer(1), typed("u8", 2))))), [[1, [2]]], "A tuple of columns with different shapes.", "tuple-array")
    good("columns-tuple-options", columns(1, column("tuple", array(column("option", data(b"\1"), typed("u8", 1)), column("option", data(b"\1"), typed("u8", 2))))), [[1, 2]], "A tuple of optional numbers, which are not uniform.", "tuple-array")
    dict_of = column("dict", typed("u8", 0), integer(1), typed("u8", 1))
    good("columns-tuple-dicts", columns(1, column("tuple", array(dict_of, dict_of))), [[1, 1]], "A tuple of dicts, which are not uniform.", "tuple-array")
    kind = column("type", text("example.com/a"), array(), typed("u8", 1))
    good("columns-tuple-types", columns(1, column("tuple", array(kind, kind))), [[1, 1]], "A tuple of columns of a type, which are not uniform.", "tuple-array")
    rows = column("rows", array(integer(1)))
    good("columns-tuple-rows", columns(1, column("tuple", array(rows, rows))), [[1, 1]], "A tuple of rows stored as items, which are not uniform.", "tuple-array")
    texts = column("text", integer(1), text("x"))
    good("columns-tuple-texts", columns(1, column("tuple", array(texts, texts))), [["x", "x"]], "A tuple of texts.", "tuple-array")
    good("columns-tuple-one", columns(1, column("tuple", array(texts))), [["x"]], "A tuple of one text.", "tuple-array")
    bad("columns-list-equal", columns(2, column("list", typed("u8", 2, 2), typed("u8", 1, 2, 3, 4))), "A list whose lengths are all equal.", "list-equal")
    bad("columns-list-one-row", columns(1, column("list", typed("u8", 2), typed("u8", 1, 2))), "A list of one row.", "list-equal")
    bad("columns-list-zeros", columns(2, column("list", typed("u8", 0, 0), column("unit"))), "A list of two empty rows.", "list-equal")
    bad("columns-list-one-number", columns(2, column("list", integer(1), typed("u8", 1, 2))), "A list whose lengths are one number.", "list-equal")
    bad("columns-list-equal-inside", columns(2, fields(a=column("list", typed("u8", 1, 1), typed("u8", 1, 2)))), "A list whose lengths are all equal, inside structs.", "list-equal")
    bad("columns-tuple-empty", columns(1, column("tuple", array())), "A tuple without columns.", "tuple-array")
    bad("columns-tuple-same", columns(1, column("tuple", array(typed("f32", 1), typed("f32", 2)))), "A tuple of two numbers of one type, which must be an array.", "tuple-array")
    bad("columns-tuple-one-number", columns(1, column("tuple", array(typed("f32", 1)))), "A tuple of one number, which must be an array.", "tuple-array")
    bad("columns-tuple-same-no-rows", columns(0, column("tuple", array(typed("f32"), typed("f32")))), "A tuple of two numbers of one type in a group of no rows.", "tuple-array")
    bad("columns-tuple-empty-no-rows", columns(0, column("tuple", array())), "A tuple without columns in a group of no rows.", "tuple-array")
    bad("columns-tuple-integers", columns(1, column("tuple", array(typed("u8", 1), typed("u32", 2)))), "A tuple of u8 and u32, which must be an array.", "tuple-array")
    bad("columns-tuple-signed", columns(1, column("tuple", array(typed("u32", 1), typed("i8", 2)))), "A tuple of u32 and i8, which must be an array of i64.", "tuple-array")
    bad("columns-tuple-bools", columns(1, column("tuple", array(column("bool", data(b"\1")), column("bool", data(b"\0"))))), "A tuple of two booleans, which must be an array.", "tuple-array")
    nest = column("array", integer(2), typed("u8", 1, 2))
    bad("columns-tuple-arrays", columns(1, column("tuple", array(nest, nest))), "A tuple of two arrays of one shape, which must be an array.", "tuple-array")
    bad("columns-array-too-long", columns(2, column("array", integer(2), typed("u8", 1, 2, 3, 4, 5))), "Arrays with an element too many.", "sums")
    bad("columns-array-overflow", columns(2, column("array", integer(2**63), typed("u8", 1, 2))), "Arrays whose elements overflow.", "sums")
    bad("columns-array-k-array", columns(2, column("array", typed("u8", 1, 1), typed("u8", 1, 2))), "Arrays of one length whose length is an array.", "kinds")


def faults(files: Files) -> None:
    bad = files.refused
    bad("columns-numbers-few", columns(3, typed("u8", 1, 2)), "A column with a number too few.", "sums")
    bad("columns-numbers-many", columns(1, typed("u8", 1, 2)), "A column with a number too many.", "sums")
    bad("columns-numbers-part", columns(1, tag(69, data(b"\1"))), "A column with half a number.", "sums")
    bad("columns-tensors-rows", columns(3, tensor([2, 1], typed("u8", 1, 2))), "A column of tensors with another number of rows.", "sums")
    bad("columns-tensors-order-f", columns(2, tensor([2, 2], typed("u8", 1, 2, 3, 4), "F")), "A column of tensors of order F.", "kinds")
    bad("columns-tensors-no-dimension", columns(1, tensor([], typed("u8", 1))), "A column of tensors without a dimension.", "kinds")
    bad("columns-tensors-f4-odd", columns(2, tens("f4", [2, 1], b"\x21")), "A column of tensors whose rows are half a byte.", "row-bytes")
    bad("columns-tensors-bool", columns(2, tens("bool", [2], b"\1\2")), "A column of tensors of bool with a byte of 2.", "bool-byte")
    bad("columns-tensors-unknown-uneven", columns(2, tens("example.com/q", [2], b"\1\2\3")), "A payload of an unknown dtype that cannot be cut into equal parts.", "row-bytes")
    bad("columns-bool-unused", columns(3, column("bool", data(b"\x0f"))), "An unused bit that is 1.", "unused-bits")
    bad("columns-option-unused", columns(1, column("option", data(b"\x81"), typed("u8", 1))), "An unused bit that is 1, of optional values.", "unused-bits")
    bad("columns-bool-short", columns(9, column("bool", data(b"\1"))), "Bits with a byte too few.", "sums")
    bad("columns-bool-long", columns(8, column("bool", data(b"\1\0"))), "Bits with a byte too many.", "sums")
    bad("columns-bits-text", columns(1, column("bool", text("\1"))), "Bits that are a text.", "kinds")
    bad("columns-text-sum-short", columns(2, column("text", typed("u8", 1, 1), text("abc"))), "Lengths whose sum is less than the text.", "sums")
    bad("columns-text-sum-long", columns(2, column("text", typed("u8", 1, 3), text("abc"))), "Lengths whose sum is more than the text.", "sums")
    bad("columns-text-sum-overflow", columns(2, column("text", typed("u64", 2**63 + 1, 2**63 + 2), text("abc"))), "Lengths whose sum overflows to the right one.", "sums")
    bad("columns-text-one-overflow", columns(2, column("text", integer(2**63), text(""))), "One length whose product overflows.", "sums")
    bad("columns-text-lengths-few", columns(2, column("text", typed("u8", 3), text("abc"))), "A length too few.", "sums")
    bad("columns-text-lengths-signed", columns(1, column("text", typed("i8", 3), text("abc"))), "Lengths of a signed type.", "kinds")
    bad("columns-text-cut", columns(2, column("text", typed("u8", 1, 1), text("ü"))), "A text that is cut inside a character.", "text-rows")
    bad("columns-text-utf8", columns(1, column("text", integer(1), text(b"\xff"))), "A text in a column that is not UTF-8.", "utf8")
    bad("columns-text-bytes", columns(1, column("text", integer(1), data(b"x"))), "Bytes in place of a text.", "kinds")
    bad("columns-bytes-text", columns(1, column("bytes", integer(1), text("x"))), "A text in place of bytes.", "kinds")
    bad("columns-option-count", columns(2, column("option", data(b"\3"), typed("u8", 1))), "Two bits of 1, and one row.", "sums")
    bad("columns-present-alone", columns(1, column("present", data(b"\1"), typed("u8", 1))), "Optional fields outside of a struct.", "present-in-struct")
    bad("columns-present-in-option", columns(1, fields(a=column("option", data(b"\1"), column("present", data(b"\1"), typed("u8", 1))))), "Optional fields inside optional values.", "present-in-struct")
    bad("columns-present-in-present", columns(1, fields(a=column("present", data(b"\1"), column("present", data(b"\1"), typed("u8", 1))))), "Optional fields inside optional fields.", "present-in-struct")
    bad("columns-list-sum", columns(2, column("list", typed("u8", 1, 2), typed("u8", 1, 2))), "Lengths of a list whose sum is more than the rows.", "sums")
    bad("columns-map-sum", columns(2, column("map", typed("u8", 1, 0), typed("u8", 1), typed("u8", 1, 2))), "Values that are more than the keys.", "sums")
    bad("columns-enum-code", columns(1, column("enum", typed("u8", 2), array(text("A"), text("B")))), "A code without a name.", "codes")
    bad("columns-enum-type", columns(1, column("enum", typed("u32", 0), array(text("A")))), "Codes of u32.", "kinds")
    bad("columns-enum-signed", columns(1, column("enum", typed("i8", 0), array(text("A")))), "Codes of i8.", "kinds")
    bad("columns-enum-names-twice", columns(1, column("enum", typed("u8", 0), array(text("A"), text("A")))), "A name of an enum that occurs twice.", "names-twice")
    bad("columns-enum-count", columns(2, column("enum", typed("u8", 0, 0), array(text("A")), array(typed("u8", 1)))), "Two codes, and one row of the variant.", "sums")
    bad("columns-enum-columns-few", columns(1, column("enum", typed("u8", 0), array(text("A"), text("B")), array(typed("u8", 1)))), "A column too few for the names.", "kinds")
    bad("columns-enum-name-number", columns(1, column("enum", typed("u8", 0), array(integer(1)))), "A name of an enum that is a number.", "kinds")
    bad("columns-struct-twice", columns(1, map_of((text("a"), typed("u8", 1)), (text("a"), typed("u8", 2)))), "A field that occurs twice.", "names-twice")
    bad("columns-struct-key", columns(1, map_of((integer(1), typed("u8", 1)))), "A field whose name is a number.", "kinds")
    bad("columns-dict-order", columns(2, column("dict", typed("u8", 1, 0), integer(2), typed("u8", 1, 2))), "The first code is not 0.", "dict-codes")
    bad("columns-dict-gap", columns(3, column("dict", typed("u8", 0, 2, 1), integer(3), typed("u8", 1, 2, 3))), "A code that is two more than the greatest before it.", "dict-codes")
    bad("columns-dict-unused", columns(2, column("dict", typed("u8", 0, 0), integer(2), typed("u8", 1, 2))), "A row of the dict that does not occur.", "dict-codes")
    bad("columns-dict-outside", columns(2, column("dict", typed("u8", 0, 1), integer(1), typed("u8", 1))), "A code without a row.", "dict-codes codes")
    bad("columns-dict-rows", columns(2, column("dict", typed("u8", 0, 1), integer(2), typed("u8", 1))), "A dict with a row too few.", "sums")
    bad("columns-dict-in-dict", columns(1, column("dict", typed("u8", 0), integer(1), column("dict", typed("u8", 0), integer(1), typed("u8", 1)))), "A dict in a dict.", "dict-in-dict")
    inner = column("type", text("example.com/a"), array(), column("dict", typed("u8", 0), integer(1), typed("u8", 1)))
    bad("columns-dict-in-type", columns(1, column("dict", typed("u8", 0), integer(1), inner)), "A dict in a type in a dict.", "dict-in-dict")
    bad("columns-dict-wide-codes", columns(1, column("dict", typed("u16", 0), integer(1), typed("u8", 1))), "Codes of u16 for a dict of one row.", "dict-type")
    bad("columns-dict-u32", columns(1, column("dict", typed("u32", 0), integer(1), typed("u8", 1))), "Codes of u32.", "dict-type")
    bad("columns-dict-many", columns(1, column("dict", typed("u16", 0), integer(65537), column("unit"))), "A dict of 65,537 rows.", "dict-type")
    row = column("rows", array(buffer_bytes(0)))
    bad("columns-rows-reference", columns(1, row), "A reference among rows stored as items, in a message.", "rows-references message-reference")
    bad("columns-rows-few", columns(2, column("rows", array(integer(1)))), "An item too few among rows stored as items.", "sums")
    bad("columns-rows-indefinite-array", columns(1, column("rows", b"\x9f" + integer(1) + BREAK)), "The array of rows stored as items has an indefinite length.", "columns-definite")
    inner = column("dict", typed("u8", *([0] * 1000)), integer(1), column("text", integer(1000), text("x" * 1000)))
    outer = column("dict", typed("u8", *([0] * 1000)), integer(1), column("array", integer(1000), inner))
    bad("columns-dict-repeated", columns(1000, outer), "A row of a megabyte that a dict repeats a thousand times.", "repeated")
    bad("columns-reference", columns(1, buffer_numbers("u8", 0)), "A reference in a column of a message.", "message-reference")


def types(files: Files) -> None:
    good, bad = files.message, files.refused

    def typ(name: str | bytes, parameters: bytes, item: bytes) -> bytes:
        return tag(TTYP, array(text(name), parameters, item))

    def col(name: str | bytes, parameters: bytes, item: bytes) -> bytes:
        return column("type", text(name), parameters, item)

    good("type-date", typ("date", array(), integer(20783)), 20783, "The first example of types: a date.", "type-through")
    good("type-date-column", columns(1, col("date", array(), typed("i32", 20783))), [20783], "The second example of types: a column of dates.", "type-through")
    good("type-unknown", fields(a=typ("example.com/money", array(text("EUR"), integer(2)), integer(100))), v_map(a=100), "A type that no reader knows.", "type-through")
    good("type-of-tensor", typ("timestamp", array(text("s"), text("")), tensor([2], typed("i64", 1, 2))), v_tensor("i64", [2], raw("i64", 1, 2)), "A tensor of a type.", "type-through")
    good("type-of-type", typ("example.com/a", array(), typ("example.com/b", array(), text("x"))), "x", "A type around a type.", "type-through")
    good("type-of-packed", typ("example.com/a", array(), typed("u16", 1, 2)), [1, 2], "A type around a packed sequence.", "type-through")
    good("type-broken-item", typ("date", array(), text("yesterday")), "yesterday", "A date that is a text has no type, but is read.", "type-better")
    good("type-broken-parameters", typ("timestamp", array(integer(7)), integer(1)), 1, "A timestamp with a wrong unit has no type, but is read.", "type-better")
    good("type-name-unlisted", typ("money", array(), integer(1)), 1, "A name without a dot or slash that is not in the table is read too.", "type-better")
    good("type-limits", typ("n" * 64, array(*([integer(-1)] * 15), text("p" * 64)), TRUE), True, "A name of 64 bytes, 16 parameters, and a text of 64 bytes among them.", "type-form")
    uuid = bytes(range(16))
    good("type-uuid", columns(1, col("uuid", array(), column("bytes", integer(16), data(uuid)))), [v_bytes(uuid)], "A column of UUIDs.", "type-through")
    words = column("dict", typed("u8", 0, 1, 0), integer(2), column("text", integer(1), text("ab")))
    good("type-category", columns(3, col("category", array(integer(1)), words)), ["a", "b", "a"], "A column of categories.", "type-through")
    good("type-decimal", columns(2, col("decimal", array(integer(5), integer(2)), typed("i64", 100, -5))), [100, -5], "A column of decimals.", "type-through")
    money = column("option", data(b"\1"), col("example.com/money", array(), typed("u8", 1)))
    good("type-in-option", columns(2, fields(a=money)), rows_of("a", 1, None), "A value of a type that can be missing.", "type-through type-present")
    several = fields(a=col("time", array(text("s")), typed("i64", 1)), b=col("duration", array(text("ms")), typed("u8", 2)))
    good("type-time", columns(1, several), [v_map(a=1, b=2)], "Columns of times and durations.", "type-through")
    bad("type-null", typ("date", array(), NULL), "A type around null.", "type-form")
    bad("type-undefined", typ("date", array(), UNDEFINED), "A type around undefined.", "type-form")
    bad("type-name-empty", typ("", array(), integer(1)), "An empty name.", "type-form")
    bad("type-name-long", typ("n" * 65, array(), integer(1)), "A name of 65 bytes.", "type-form")
    bad("type-name-bytes", tag(TTYP, array(data(b"date"), array(), integer(1))), "A name that is a byte string.", "type-form")
    bad("type-name-indefinite", tag(TTYP, array(b"\x7f" + text("date") + BREAK, array(), integer(1))), "A name of indefinite length.", "type-form")
    bad("type-parameters-many", typ("example.com/a", array(*([integer(1)] * 17)), integer(1)), "17 parameters.", "type-form")
    bad("type-parameter-long", typ("example.com/a", array(text("p" * 65)), integer(1)), "A parameter of 65 bytes.", "type-form")
    bad("type-parameter-float", typ("example.com/a", array(f32(1)), integer(1)), "A parameter that is a float.", "type-form")
    bad("type-parameter-bignum", typ("example.com/a", array(tag(2, data(b"\1"))), integer(1)), "A parameter that is a bignum.", "type-form")
    bad("type-parameters-map", typ("example.com/a", map_of(), integer(1)), "Parameters that are a map.", "type-form")
    bad("type-parameters-indefinite", typ("example.com/a", b"\x9f\xff", integer(1)), "Parameters of indefinite length.", "type-form")
    bad("type-array-two", tag(TTYP, array(text("date"), integer(1))), "An array of two.", "type-form")
    bad("type-array-four", tag(TTYP, array(text("date"), array(), integer(1), integer(1))), "An array of four.", "type-form")
    bad("type-array-indefinite", tag(TTYP, b"\x9f" + text("date") + array() + integer(1) + BREAK), "An array of indefinite length.", "type-form")
    bad("type-column-name", columns(1, col("", array(), typed("u8", 1))), "An empty name of a column's type.", "type-form")
    bad("type-column-parameters", columns(1, col("example.com/a", array(NULL), typed("u8", 1))), "A parameter of a column's type that is null.", "type-form")
    inside = fields(a=col("example.com/a", array(), column("present", data(b"\1"), typed("u8", 1))))
    bad("type-present", columns(1, inside), "A type around optional fields.", "type-present present-in-struct")
    bad("type-column-rows", columns(2, col("date", array(), typed("i32", 1))), "A column of a type with a row too few.", "sums")
