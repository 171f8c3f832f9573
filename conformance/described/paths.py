"""Paths, lists of tensors, and tables."""

from .build import *
from .files import *
from .segments import one


def describe(files: Files) -> None:
    keys(files)
    tensors(files)
    column_paths(files)
    tables(files)


def keys(files: Files) -> None:
    value = fields(layers=array(fields(weight=integer(1)), fields(weight=integer(2))), kind=fields(B=integer(3)))
    said = v_map(layers=[v_map(weight=1), v_map(weight=2)], kind=v_map(B=3))
    found = [["layers.1.weight", 2], ["kind.B", 3], ["layers.2.weight"], ["layers.weight"], ["/layers/1/weight", 2], ["layers.01.weight"]]
    files.archive("path-fields", one("a", value, value=said, paths=found), "Paths of fields, elements and variants.", "")
    value = map_of(
        (integer(7), integer(1)),
        (integer(-1), integer(2)),
        (TRUE, integer(3)),
        (NULL, integer(4)),
        (data(b"\0\xab\xff"), integer(5)),
        (f32(1.5), integer(6)),
        (f64(1e-7), integer(7)),
        (array(integer(1), text("a")), integer(8)),
        (map_of((text("a"), NULL)), integer(9)),
        (tag(32, text("x")), integer(10)),
    )
    texts = ["7", "-1", "true", "null", "h'00abff'", "1.5", "1e-7", '[1, "a"]', '{"a": null}', '32("x")']
    files.archive("path-keys", one("a", value, paths=[[key, at + 1] for at, key in enumerate(texts)]), "Keys that are no texts.", "")
    value = map_of((f16("3c00"), integer(1)), (f64(1e16), integer(2)), (f64(0.0001), integer(3)), (f64(float("-inf")), integer(4)), (f16("7e00"), integer(5)), (tag(2, data(b"\1" + bytes(8))), integer(6)), (text('a"b'), integer(7)))
    found = [["1.0", 1], ["1e16", 2], ["0.0001", 3], ["-Infinity", 4], ["NaN", 5], ["18446744073709551616", 6], ['a"b', 7]]
    files.archive("path-key-numbers", one("a", value, paths=found), "Keys that are floats and bignums.", "")
    value = fields(**{"a.b": integer(1), "a": fields(b=integer(2)), "": integer(3), "/x": integer(4), "x~y": integer(5)})
    said = v_pairs(("a.b", 1), ("a", v_map(b=2)), ("", 3), ("/x", 4), ("x~y", 5))
    found = [["a.b"], ["/a.b", 1], ["/a/b", 2], ["/", 3], ["/~1x", 4], ["x~y", 5], ["/x~0y", 5], ["a", v_map(b=2)]]
    files.archive("path-dots", one("a", value, value=said, paths=found), "Keys with dots and slashes, and pointers to them.", "")
    value = fields(**{"a.b.c": integer(1), "x": integer(2)})
    files.archive("path-dots-one", one("a", value, paths=[["a.b.c", 1], ["a.b"], ["x", 2]]), "A key with dots that leads to one value.", "")
    value = map_of((integer(7), integer(1)), (text("7"), integer(2)))
    files.archive("path-equal-components", one("a", value, value=v_pairs((7, 1), ("7", 2)), paths=[["7"], ["/7"]]), "The keys 7 and the text 7 have the same component, which names neither.", "paths-ambiguous")
    value = map_of((text("a"), integer(1)), (text("a"), integer(2)))
    files.archive("path-key-twice", one("a", value, paths=[["a"], ["/a"]]), "A key that is there twice names no value.", "paths-ambiguous keys-twice")
    value = array(tag(4711, fields(a=tag(4711, integer(1)))), tag(TTYP, array(text("date"), array(), integer(2))))
    files.archive("path-tags", one("a", value, rows=2, paths=[["0.a", 1], ["1", 2]]), "A tag and its content have the same path.", "type-through")
    value = fields(doubles=typed("f64", 1, 2), ints=array(integer(1)), some=tag(TSOM, NULL))
    files.archive("path-packed", one("a", value, paths=[["doubles.1", v_f64(2)], ["doubles.2"], ["ints.0", 1]]), "An element of a packed sequence.", "")


def small(n: int) -> bytes:
    return tensor([1], typed("u8", n))


def tensors(files: Files) -> None:
    value = fields(layers=array(fields(weight=tensor([1, 2], typed("f32", 1, 2))), fields(weight=tens("bf16", [1], b"\0\0"))), n=integer(1))
    found = [["layers.0.weight", "f32", [1, 2]], ["layers.1.weight", "bf16", [1]]]
    files.archive("tensors", one("a", value, tensors=found), "The list of tensors by path.", "")
    value = fields(**{"a.b": small(1), "a": fields(b=small(2)), "c": small(3)})
    found = [["/a.b", "u8", [1]], ["/a/b", "u8", [1]], ["c", "u8", [1]]]
    files.archive("tensors-dots", one("a", value, tensors=found, paths=[["/a.b", v_tensor("u8", [1], b"\1")], ["a.b"]]), "Tensors whose dotted paths are equal have pointers.", "list-ambiguous")
    value = fields(**{"": small(1), "/x": small(2), "x": fields(**{"": small(3)})})
    found = [["/", "u8", [1]], ["/~1x", "u8", [1]], ["x.", "u8", [1]]]
    files.archive("tensors-pointers", one("a", value, tensors=found), "Tensors whose dotted path is empty or starts with a slash have pointers.", "list-ambiguous")
    value = map_of((integer(7), small(1)), (text("7"), small(2)))
    files.bad("tensors-ambiguous", one("a", value), "Two tensors under keys of one component: the list of tensors is an error.", "list-ambiguous", open=OK, read=OK, verify=OK, segments=[{**one("a", value, value=v_pairs((7, v_tensor("u8", [1], b"\1")), ("7", v_tensor("u8", [1], b"\2")))).segments[0].json(), "tensors": "error"}])
    value = fields(t=tag(4711, small(1)))
    files.archive("tensors-tag", one("a", value, tensors=[["t", "u8", [1]]]), "A tensor inside a tag without a meaning.", "")


def column_paths(files: Files) -> None:
    rows = fields(id=typed("u16", 7, 9), req=fields(size=column("option", data(b"\1"), typed("u8", 5))), tag=column("text", integer(1), text("xy")), note=column("present", data(b"\2"), typed("u8", 3)))
    value = fields(log=columns(2, rows))
    found = [["log.id", [7, 9]], ["log.req.size", [5, None]], ["log.1.id", 9], ["log.id.1", 9], ["log.note", [None, 3]], ["log.tag", ["x", "y"]], ["log.0.req.size", 5], ["log.2"], ["log.nothing"], ["log.0.note"]]
    files.archive("columns-paths", one("a", value, tensors=[["log.id", "u16", [2]]], paths=found), "Paths of columns and of fields of rows.", "")
    value = columns(2, fields(v=column("array", integer(3), typed("f32", 1, 2, 3, 4, 5, 6)), b=column("bool", data(b"\1")), t=tensor([2, 2], typed("u8", 1, 2, 3, 4)), a=column("array", integer(2), column("array", integer(1), typed("u8", 1, 2, 3, 4)))))
    found = [["a", "u8", [2, 2, 1]], ["b", "bool", [2]], ["t", "u8", [2, 2]], ["v", "f32", [2, 3]]]
    files.archive("columns-tensors-list", one("a", value, rows=2, tensors=found), "Which columns are tensors: numbers, booleans, tensors, and arrays of these.", "")
    value = columns(1, fields(x=column("dict", typed("u8", 0), integer(1), typed("u8", 1)), o=column("option", data(b"\1"), typed("u8", 1)), s=column("text", integer(1), text("a")), l=column("array", integer(1), column("text", integer(1), text("a")))))
    files.archive("columns-tensors-none", one("a", value, rows=1, tensors=[]), "Columns that are no tensors: dicts, optional values, texts, and arrays of texts.", "")
    value = columns(1, fields(a=typed("u8", 1), b=typed("u16", 1), c=typed("u64", 1), d=typed("f32", 1)), 2, fields(a=typed("i16", -1, 2), b=typed("u32", 1, 2), c=typed("i8", 1, 2), d=typed("f64", 1, 2)))
    found = [["a", "i16", [3]], ["b", "u32", [3]]]
    files.archive("columns-tensors-widened", one("a", value, rows=3, tensors=found, paths=[["a", [1, -1, 2]], ["b", [1, 1, 2]], ["c", [1, 1, 2]]]), "Groups of several integer types have the least type that holds them, and others no tensor.", "")
    value = columns(1, fields(a=column("array", integer(2), typed("u8", 1, 2))), 1, fields(a=column("array", integer(3), typed("u8", 1, 2, 3))))
    files.archive("columns-tensors-shapes", one("a", value, rows=2, tensors=[], paths=[["a", [[1, 2], [1, 2, 3]]]]), "Groups of arrays of different lengths are no tensor.", "")
    value = columns(1, fields(a=typed("u8", 1)), 0, column("unit"), 1, fields(a=typed("u8", 2)))
    files.archive("columns-tensors-empty-group", one("a", value, rows=2, tensors=[["a", "u8", [2]]]), "A group of no rows is ignored.", "")
    value = columns(1, fields(a=column("type", text("date"), array(), typed("i32", 1))))
    files.archive("columns-tensors-type", one("a", value, rows=1, tensors=[["a", "i32", [1]]]), "A column of a type has the shape of the column in it.", "type-through")
    value = columns(1, map_of((text("2024"), typed("u8", 1)), (text("x"), typed("u8", 2))))
    found = [["2024"], ["/2024", [1]], ["x", [2]], ["0.x", 2], ["/0/x", 2]]
    files.archive("columns-paths-decimal", one("a", value, rows=1, tensors=[["/2024", "u8", [1]], ["x", "u8", [1]]], paths=found), "A field whose name is a decimal number has only a pointer.", "")


def tables(files: Files) -> None:
    made = Archive()
    made.segment("log", columns(2, fields(size=typed("u8", 1, 2))), rows=2, value=[v_map(size=1), v_map(size=2)])
    made.segment("other", integer(1), value=1)
    made.segment("log", array(fields(size=integer(3))), rows=1, value=[v_map(size=3)])
    made.end()
    files.archive("table", made, "A table of columns in one segment and an array in another.", "", tables=[["log", [v_map(size=1), v_map(size=2), v_map(size=3)]]])
    made = Archive()
    for day in range(3):
        made.segment("log", columns(1, fields(size=typed("u8", day))), rows=1, value=[v_map(size=day)])
        made.end()
    files.archive("table-appended", made, "A table to which rows were appended twice.", "last-commit", tables=[["log", [v_map(size=day) for day in range(3)]]])
