//! Columns that break a rule of `SPEC.md`, section 7, are refused before the first row is given, and the error says
//! what was found. Damaged columns are no danger. Threat 118.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use tenarc::error::Category;
use tenarc::{DynTensor, Tensor, Value};
use tenarc_test_support::alloc::{Counting, refusing_above};
use tenarc_test_support::builder::{array, bytes, head, map, own, raw_text, tag, text, unsigned};
use tenarc_test_support::effort::some_of;
use tenarc_test_support::{decode, everywhere, hex, refuse};

use crate::build::{Style, Writer, columns, f32s, kind, null, one, tensor, texts, u8s, u16s, u64s};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The document is refused with this error, at this path, as a sequence and as a value.
#[track_caller]
fn refused(document: &[u8], path: &str, what: &str) {
    let error = refuse::<Vec<IgnoredAny>>(document);
    assert!(error.to_string().contains(what), "{error}");
    assert_eq!(error.path(), path, "{error}");
    assert!(error.offset().is_some_and(|at| at <= document.len() as u64), "{error}");
    let error = refuse::<Value>(document);
    assert!(error.to_string().contains(what), "{error}");
    // What is skipped is not looked into, except that texts are UTF-8.
    let skipped = array(&[document.to_vec(), unsigned(1)]);
    match tenarc::from_slice::<(IgnoredAny, u8)>(&skipped) {
        Ok((_, next)) => assert_eq!(next, 1),
        Err(error) => assert!(error.to_string().contains("not UTF-8"), "{error}"),
    }
}

/// Like [`refused`], for one column of so many rows.
#[track_caller]
fn refused_column(rows: u64, column: Vec<u8>, what: &str) {
    refused(&one(rows, column), "0", what);
}

#[test]
fn groups() {
    refused(
        &own(*b"TCOL", &unsigned(1)),
        "",
        "expected an array of groups of columns, found unsigned integer",
    );
    refused(
        &own(*b"TCOL", &array(&[text("x"), u8s(&[])])),
        "0",
        "expected the number of rows of a group, at most 65536, found text string",
    );
    refused(
        &one(65_537, u8s(&[])),
        "0",
        "expected the number of rows of a group, at most 65536, found 65537",
    );
    refused(
        &own(*b"TCOL", &array(&[unsigned(2)])),
        "0",
        "expected a column of 2 rows, found the end of the groups",
    );
    refused(
        &own(*b"TCOL", &[vec![0x9f], unsigned(2), vec![0xff]].concat()),
        "0",
        "expected a column of 2 rows, found the end of the groups",
    );
    // In a later group, after rows that were given.
    refused(
        &columns(&[(2, u8s(&[1, 2])), (1, u8s(&[]))]),
        "2",
        "expected a column of 1 rows, found one of 0",
    );
    let both = columns(&[(2, u8s(&[1, 2])), (1, u8s(&[]))]);
    let error = refuse::<(u8, u8)>(&both);
    assert!(error.to_string().contains("found one of 0"), "{error}");
}

#[test]
fn columns_of_no_kind() {
    refused_column(1, null(), "expected a column, found null");
    refused_column(1, unsigned(1), "expected a column, found unsigned integer");
    refused_column(1, tag(5, &null()), "expected a column, found tag 5");
    refused_column(1, own(*b"TSOM", &u8s(&[1])), "expected a column, found tag 1414745933");
    refused_column(1, array(&[]), "expected a column, found an empty array");
    refused_column(1, array(&[unsigned(1)]), "expected a name in columns, found unsigned integer");
    refused_column(1, kind("nothing", &[]), r#""nothing" is not a kind of column"#);
    refused_column(
        1,
        kind("bool", &[]),
        r#"expected an array of 2 for a column of kind "bool", found one of 1"#,
    );
    refused_column(
        1,
        kind("unit", &[null()]),
        r#"expected an array of 1 for a column of kind "unit", found one of 2"#,
    );
    refused_column(
        1,
        kind("enum", &[u8s(&[0])]),
        r#"expected an array of 4 for a column of kind "enum", found one of 2"#,
    );
}

#[test]
fn indefinite_lengths() {
    let what = "columns must have definite lengths";
    refused_column(1, vec![0xbf, 0xff], what);
    refused_column(1, [vec![0x9f], text("unit"), vec![0xff]].concat(), what);
    let strict = "columns and the metadata of archives have definite lengths only";
    refused_column(1, tag(64, &[0x5f, 0x41, 1, 0xff]), strict);
    refused_column(1, kind("bool", &[vec![0x5f, 0x41, 1, 0xff]]), what);
    refused_column(1, kind("text", &[unsigned(1), vec![0x7f, 0x61, b'a', 0xff]]), what);
    refused_column(1, kind("bytes", &[unsigned(1), vec![0x5f, 0x41, 1, 0xff]]), what);
    refused_column(1, kind("tuple", &[vec![0x9f, 0xff]]), what);
    refused_column(1, kind("rows", &[vec![0x9f, 1, 0xff]]), what);
    refused_column(
        1,
        kind("enum", &[u8s(&[0]), [vec![0x9f], text("A"), vec![0xff]].concat()]),
        what,
    );
    refused_column(1, [vec![0xa1, 0x7f, 0x61, b'a', 0xff], u8s(&[1])].concat(), what);
    let open =
        tag(40, &[vec![0x9f], array(&[unsigned(1), unsigned(1)]), u8s(&[1]), vec![0xff]].concat());
    refused_column(1, open, strict);
}

#[test]
fn numbers() {
    refused_column(2, u8s(&[1]), "expected a column of 2 rows, found one of 1");
    refused_column(
        1,
        tag(69, &bytes(&[1, 2, 3])),
        "3 bytes are not a whole number of u16 elements",
    );
    refused_column(1, tag(87, &bytes(&[0; 16])), "expected numbers of 8 to 64 bits, found f128");
    refused_column(
        1,
        tag(43_001, &f32s(&[1.0, 2.0])),
        "expected numbers of 8 to 64 bits, found c64",
    );
    refused_column(
        1,
        tag(64, &unsigned(1)),
        "expected the bytes of a tensor, found unsigned integer",
    );
}

#[test]
fn tensors() {
    refused_column(2, tensor(&[1, 2], u8s(&[1, 2])), "expected a column of 2 rows, found one of 1");
    refused_column(1, tensor(&[], u8s(&[1])), "a column of tensors needs a dimension for the rows");
    refused_column(
        1,
        tensor(&[1, 2], u8s(&[1])),
        "a u8 tensor of shape [1, 2] takes 2 bytes, found 1",
    );
    let plain = tensor(&[1, 2], array(&[unsigned(1), unsigned(2)]));
    refused_column(1, plain, "expected the elements of a tensor as a typed array, found array");
    let dims = array(&[unsigned(1), unsigned(2)]);
    refused_column(
        1,
        tag(1040, &array(&[dims, u8s(&[1, 2])])),
        "the tensor of a column must have order C, found F",
    );
}

#[test]
fn big_endian_and_clamped_numbers() {
    let big_endian = tag(65, &bytes(&[1, 0, 0, 7]));
    refused_column(2, big_endian, "tag 65 is for big-endian or clamped numbers");
    refused_column(2, tag(68, &bytes(&[1, 7])), "tag 68 is for big-endian or clamped numbers");
    // Every source says the same also where more than the tag is in memory, and in a tensor.
    let long = tag(65, &bytes(&[0; 40]));
    refused_column(20, long.clone(), "tag 65 is for big-endian or clamped numbers");
    refused_column(5, tensor(&[5, 4], long), "tag 65 is for big-endian or clamped numbers");
}

#[test]
fn booleans() {
    refused_column(
        9,
        kind("bool", &[bytes(&[1])]),
        "expected 2 bytes for the bits of 9 rows, found 1",
    );
    refused_column(
        8,
        kind("bool", &[bytes(&[1, 0])]),
        "expected 1 bytes for the bits of 8 rows, found 2",
    );
    refused_column(
        3,
        kind("bool", &[bytes(&[0b1000])]),
        "the unused bits after the last row must be 0",
    );
    refused_column(1, kind("bool", &[u8s(&[1])]), "expected a byte string, found a typed array");
    refused_column(
        1,
        kind("bool", &[unsigned(1)]),
        "expected a byte string, found unsigned integer",
    );
}

#[test]
fn texts_and_byte_strings() {
    refused_column(2, texts(u8s(&[1]), "ab"), "expected a column of 2 rows, found one of 1");
    refused_column(
        2,
        texts(u8s(&[1, 2]), "ab"),
        "the lengths of all rows add up to 3 bytes, found 2",
    );
    refused_column(
        2,
        texts(unsigned(2), "abc"),
        "the lengths of all rows add up to 4 bytes, found 3",
    );
    refused_column(2, texts(u8s(&[1, 1]), "ß"), "the text of row 0 ends inside a character");
    refused_column(1, kind("text", &[unsigned(1), raw_text(&[0xff])]), "text is not UTF-8");
    refused_column(
        1,
        kind("text", &[unsigned(1), bytes(b"a")]),
        "expected the texts of a column, found byte string",
    );
    let signed = tag(72, &bytes(&[1]));
    refused_column(
        1,
        kind("text", &[signed, text("a")]),
        "expected lengths: an unsigned integer, or a typed array of them",
    );
    refused_column(
        1,
        kind("text", &[f32s(&[1.0]), text("a")]),
        "expected lengths: an unsigned integer",
    );
    refused_column(
        1,
        kind("text", &[bytes(&[1]), text("a")]),
        "expected lengths: an unsigned integer",
    );
    refused_column(1, kind("text", &[null(), text("a")]), "expected lengths, found null");
    refused_column(
        1,
        kind("bytes", &[unsigned(1), text("a")]),
        "expected a byte string, found text string",
    );
    refused_column(
        1,
        kind("bytes", &[unsigned(2), bytes(b"a")]),
        "the lengths of all rows add up to 2 bytes, found 1",
    );
}

#[test]
fn sums_that_overflow() {
    let what = "the lengths of all rows together do not fit in memory";
    let half = 1 << 63;
    for name in ["text", "bytes", "list"] {
        let content = if name == "list" { u8s(&[]) } else { head(3, 0) };
        refused_column(2, kind(name, &[u64s(&[half, half + 1]), content.clone()]), what);
        refused_column(2, kind(name, &[u64s(&[u64::MAX, 1]), content.clone()]), what);
        let name = if name == "list" { "array" } else { name };
        refused_column(2, kind(name, &[unsigned(half), content.clone()]), what);
        refused_column(1, kind(name, &[unsigned(u64::MAX), content]), what);
    }
    refused_column(3, kind("map", &[u64s(&[half, half, 5]), u8s(&[]), u8s(&[])]), what);
    refused_column(
        2,
        kind("array", &[unsigned(1 << 40), u8s(&[1])]),
        "expected a column of 2199023255552 rows, found one of 1",
    );
}

#[test]
fn optional_values_and_fields() {
    for name in ["option", "present"] {
        let check = |rows, bits, column, what: &str| {
            refused(&one(rows, map(&[("a", kind(name, &[bits, column]))])), "0.a", what);
        };
        check(2, bytes(&[]), u8s(&[]), "expected 1 bytes for the bits of 2 rows, found 0");
        check(2, bytes(&[0b111]), u8s(&[1, 2]), "the unused bits after the last row must be 0");
        check(2, bytes(&[0b11]), u8s(&[1]), "expected a column of 2 rows, found one of 1");
        check(2, bytes(&[0b01]), u8s(&[1, 2]), "expected a column of 1 rows, found one of 2");
        check(1, u8s(&[1]), u8s(&[1]), "expected a byte string, found a typed array");
        check(1, text("a"), u8s(&[1]), "expected a byte string, found text string");
    }
    let what = "only a value of a struct can be missing in some rows";
    let present = || kind("present", &[bytes(&[1]), u8s(&[1])]);
    refused_column(1, present(), what);
    refused(&one(1, kind("tuple", &[array(&[present()])])), "0.0", what);
    refused_column(1, kind("array", &[unsigned(1), present()]), what);
    for outer in ["option", "present"] {
        let outer = kind(outer, &[bytes(&[1]), present()]);
        refused(&one(1, map(&[("a", outer)])), "0.a", what);
    }
}

#[test]
fn lists_tuples_maps_and_structs() {
    refused_column(
        2,
        kind("list", &[u8s(&[1, 2]), u8s(&[1, 2])]),
        "expected a column of 3 rows, found one of 2",
    );
    refused_column(
        2,
        kind("map", &[u8s(&[1, 2]), u8s(&[1, 2, 3]), u8s(&[1, 2])]),
        "expected a column of 3 rows, found one of 2",
    );
    refused(
        &one(2, kind("tuple", &[array(&[u8s(&[1, 2]), u8s(&[1])])])),
        "0.1",
        "expected a column of 2 rows, found one of 1",
    );
    refused_column(
        2,
        kind("tuple", &[unsigned(1)]),
        "expected the columns of a tuple, found unsigned integer",
    );
    refused(
        &one(2, map(&[("a", u8s(&[1, 2])), ("b", u8s(&[1]))])),
        "0.b",
        "expected a column of 2 rows, found one of 1",
    );
    refused_column(
        1,
        [vec![0xa1], unsigned(1), u8s(&[1])].concat(),
        "expected a name in columns, found unsigned integer",
    );
    refused_column(1, [vec![0xa1], raw_text(&[0xff]), u8s(&[1])].concat(), "text is not UTF-8");
}

#[test]
fn lists_of_one_length_are_arrays() {
    let what =
        "expected the lengths of lists: a typed array of unsigned integers, found unsigned integer";
    refused_column(2, kind("list", &[unsigned(2), u8s(&[1, 2, 3, 4])]), what);
    refused_column(0, kind("list", &[unsigned(2), u8s(&[])]), what);
    for (rows, lengths, len) in [(2, u8s(&[2, 2]), 2), (3, u64s(&[0; 3]), 0), (1, u16s(&[1]), 1)] {
        let what =
            format!("all lists have the length {len}, which must be a column of kind \"array\"");
        refused_column(rows, kind("list", &[lengths, u8s(&[1, 2, 3, 4])]), &what);
    }
    let signed = tag(72, &bytes(&[1, 2]));
    let what = "expected the lengths of lists as a typed array of unsigned integers";
    refused_column(2, kind("list", &[signed, u8s(&[1, 2, 3])]), what);
    refused_column(
        2,
        kind("array", &[u8s(&[1, 1]), u8s(&[1, 2])]),
        "expected the length of the arrays in a column, found tag",
    );
    refused_column(
        2,
        kind("array", &[unsigned(3), u8s(&[1, 2])]),
        "expected a column of 6 rows, found one of 2",
    );
}

#[test]
fn tuples_of_numbers_are_arrays() {
    let pair = |one: Vec<u8>, other: Vec<u8>| kind("tuple", &[array(&[one, other])]);
    let i8s = || tag(72, &bytes(&[1, 255]));
    let bools = || kind("bool", &[bytes(&[1])]);
    let arrays = |of: Vec<u8>| kind("array", &[unsigned(1), of]);
    for (one, other, what) in [
        (u8s(&[1, 2]), u8s(&[1, 2]), "numbers that one type holds, u8"),
        (u8s(&[1, 2]), u16s(&[1, 2]), "numbers that one type holds, u16"),
        (u16s(&[1, 2]), i8s(), "numbers that one type holds, i32"),
        (f32s(&[1.0, 2.0]), f32s(&[1.0, 2.0]), "numbers that one type holds, f32"),
        (bools(), bools(), "bools"),
        (
            arrays(u8s(&[1, 2])),
            arrays(i8s()),
            "arrays of one shape of numbers that one type holds, i16",
        ),
    ] {
        let what = format!(
            "a tuple has only {what}, which must be one column of kind \"array\", not 2 columns"
        );
        refused_column(2, pair(one, other), &what);
    }
    let alone = kind("tuple", &[array(&[u8s(&[1])])]);
    refused_column(1, alone, "a tuple has only numbers that one type holds, u8");
    refused_column(1, kind("tuple", &[array(&[])]), "a tuple has at least one column");
    // What is not of one type and shape is a tuple.
    for (one, other) in [
        (u8s(&[1, 2]), f32s(&[1.0, 2.0])),
        (u64s(&[1, 2]), i8s()),
        (u8s(&[1, 2]), bools()),
        (u8s(&[1, 2]), arrays(u8s(&[1, 2]))),
    ] {
        decode::<Vec<Value>>(&self::one(2, pair(one, other)));
    }
}

#[test]
fn dicts() {
    let dict = |codes: Vec<u8>, count: u64, column: Vec<u8>| {
        kind("dict", &[codes, unsigned(count), column])
    };
    let two = || texts(unsigned(1), "ab");
    let fine = one(3, dict(u8s(&[0, 1, 0]), 2, two()));
    assert_eq!(decode::<Vec<String>>(&fine), ["a", "b", "a"]);
    refused_column(
        2,
        dict(u8s(&[0, 1, 0]), 2, two()),
        "expected a column of 2 rows, found one of 3",
    );
    let refused_at = |row: &str, codes: Vec<u8>, count, what: &str| {
        refused(&one(2, dict(codes, count, two())), row, what);
    };
    refused_at("0.1", u8s(&[0, 2]), 2, "a dict with 2 rows has no row 2");
    refused_at("0.0", u8s(&[1, 0]), 2, "code 1 of a dict occurs before code 0");
    refused_at("0.0", u8s(&[0, 0]), 0, "a dict with 0 rows has no row 0");
    refused_at("0", u8s(&[0, 0]), 2, "row 1 of a dict with 2 rows does not occur");
    // Behind the first row in which all of them have occurred.
    let behind = |codes: Vec<u8>, count: u64, column: Vec<u8>, row: &str, code| {
        let what = format!("a dict with {count} rows has no row {code}");
        refused(&one(300, dict(codes, count, column)), row, &what);
    };
    let narrow = |last| u8s(&[&[0, 1][..], &[1; 297], &[last]].concat());
    assert_eq!(decode::<Vec<String>>(&one(300, dict(narrow(0), 2, two())))[299], "a");
    behind(narrow(2), 2, two(), "0.299", 2);
    let wide = |last| u16s(&(0..257).chain([0; 42]).chain([last]).collect::<Vec<_>>());
    let many = || u16s(&(0..257).collect::<Vec<_>>());
    assert_eq!(decode::<Vec<u16>>(&one(300, dict(wide(256), 257, many())))[299], 256);
    behind(wide(257), 257, many(), "0.299", 257);
    refused_at("0", u16s(&[0, 1]), 2, "the codes of a dict with 2 rows must have the type u8");
    refused_at("0", u8s(&[0, 1]), 257, "the codes of a dict with 257 rows must have the type u16");
    refused_at("0", u8s(&[0, 1]), 1 << 17, "expected at most 65536 rows in a dict, found 131072");
    let typed = "expected the codes of a dict as a typed array of u8 or u16";
    refused_at("0", u64s(&[0, 1]), 2, typed);
    refused_at("0", bytes(&[0, 1]), 2, typed);
    refused_at("0", null(), 2, "expected the codes of a dict, found null");
    let count = kind("dict", &[u8s(&[0, 1]), text("x"), two()]);
    refused_column(2, count, "expected the number of rows in a dict, found text string");
    let short = dict(u8s(&[0, 1]), 2, u8s(&[1]));
    refused_column(2, short, "expected a column of 2 rows, found one of 1");
    let itself = "the column in a dict is a dict itself";
    let inner = || dict(u8s(&[0]), 1, u8s(&[7]));
    refused_column(1, dict(u8s(&[0]), 1, inner()), itself);
    let typed = kind("type", &[text("a.b"), array(&[]), inner()]);
    refused_column(1, dict(u8s(&[0]), 1, typed), itself);
    refused_column(
        1,
        kind("dict", &[u8s(&[0]), inner()]),
        "expected an array of 4 for a column of kind \"dict\", found one of 3",
    );
    // Deeper, it is a column like any other.
    let deeper = dict(u8s(&[0]), 1, kind("array", &[unsigned(1), inner()]));
    assert_eq!(decode::<Vec<Vec<u8>>>(&one(1, deeper)), [[7]]);
}

#[test]
fn repeated_rows_are_limited() {
    let all = "x".repeat(1 << 20);
    for column in [
        texts(unsigned(1 << 20), &all),
        kind("bytes", &[unsigned(1 << 20), bytes(all.as_bytes())]),
        kind("array", &[unsigned(1 << 20), texts(u8s(&vec![1; 1 << 20]), &all)]),
        kind("rows", &[array(&[bytes(all.as_bytes())])]),
        tensor(&[1, 1 << 20], u8s(all.as_bytes())),
        map(&[("a", kind("option", &[bytes(&[1]), texts(unsigned(1 << 20), &all)]))]),
        kind("enum", &[u8s(&[0]), array(&[text("A")]), array(&[texts(unsigned(1 << 20), &all)])]),
    ] {
        let codes = u8s(&vec![0; 1 << 16]);
        let document = one(1 << 16, kind("dict", &[codes, unsigned(1), column]));
        let error = tenarc_test_support::refuse::<Vec<IgnoredAny>>(&document);
        assert_eq!(error.category(), Category::Limit, "{error}");
        assert!(error.to_string().contains("64 MiB and 64 times its input"), "{error}");
    }
}

#[test]
fn types_of_columns() {
    let of =
        |name: Vec<u8>, parameters: Vec<u8>| one(1, kind("type", &[name, parameters, u8s(&[7])]));
    let zone = [text("s"), text("Europe/Berlin"), unsigned(1 << 40), vec![0x38, 99]];
    assert_eq!(decode::<Vec<u8>>(&of(text("a.b"), array(&zone))), [7]);
    let refused_type = |name, parameters, what: &str| refused(&of(name, parameters), "0", what);
    let name = "expected the name of a type, a text of 1 to 64 bytes, found";
    refused_type(text(""), array(&[]), name);
    refused_type(text(&"x".repeat(65)), array(&[]), name);
    refused_type(unsigned(1), array(&[]), name);
    refused_type(vec![0x7f, 0x61, b'a', 0xff], array(&[]), name);
    let parameters = "expected the parameters of a type, an array of at most 16, found";
    refused_type(text("a"), array(&vec![unsigned(1); 17]), parameters);
    refused_type(text("a"), null(), parameters);
    refused_type(text("a"), vec![0x9f, 0xff], parameters);
    let parameter =
        "expected a parameter of a type, an integer or a text of at most 64 bytes, found";
    for bad in [null(), bytes(&[1]), array(&[]), text(&"x".repeat(65)), tag(1, &unsigned(1))] {
        refused_type(text("a"), array(&[bad]), parameter);
    }
    let present = kind("present", &[bytes(&[1]), u8s(&[1])]);
    let typed = kind("type", &[text("a"), array(&[]), present]);
    refused(
        &one(1, map(&[("a", typed)])),
        "0.a",
        "only a value of a struct can be missing in some rows",
    );
}

#[test]
fn enums() {
    let names = || array(&[text("A"), text("B")]);
    refused_column(
        2,
        kind("enum", &[u8s(&[0]), names()]),
        "expected a column of 2 rows, found one of 1",
    );
    refused(
        &one(2, kind("enum", &[u8s(&[0, 2]), names()])),
        "0.1",
        "an enum of 2 variants has no variant 2",
    );
    refused(
        &one(1, kind("enum", &[u16s(&[65_535]), names()])),
        "0.0",
        "an enum of 2 variants has no variant 65535",
    );
    refused_column(
        1,
        kind("enum", &[bytes(&[0]), names()]),
        "expected the codes of an enum as a typed array of u8 or u16",
    );
    refused_column(
        1,
        kind("enum", &[u64s(&[0]), names()]),
        "expected the codes of an enum as a typed array of u8 or u16",
    );
    refused_column(
        1,
        kind("enum", &[u8s(&[0]), unsigned(1)]),
        "expected the names of variants, found unsigned integer",
    );
    refused_column(
        1,
        kind("enum", &[u8s(&[0]), names(), array(&[null()])]),
        "expected a column or null for each of 2 variants, found 1",
    );
    let columns = array(&[u8s(&[1]), null()]);
    refused(
        &one(2, kind("enum", &[u8s(&[0, 0]), names(), columns])),
        "0.A",
        "expected a column of 2 rows, found one of 1",
    );
}

#[test]
fn items() {
    refused_column(
        2,
        kind("rows", &[array(&[null()])]),
        "expected 2 items for as many rows, found 1",
    );
    refused_column(2, kind("rows", &[null()]), "expected the items of rows, found null");
    let reference = own(*b"TBUF", &array(&[unsigned(0)]));
    let error = refuse::<Vec<serde_bytes::ByteBuf>>(&one(1, kind("rows", &[array(&[reference])])));
    assert!(error.to_string().contains("a message has no buffers"), "{error}");
    assert_eq!(error.path(), "0");
}

#[test]
fn references_in_messages() {
    let reference = own(*b"TBUF", &array(&[text("u8"), unsigned(0)]));
    let what = "found a reference to a buffer, but a message has no buffers";
    let error = refuse::<Vec<u8>>(&one(1, reference));
    assert!(error.to_string().contains(what), "{error}");
}

/// Rows whose columns are of every kind.
pub fn rows() -> Vec<Value> {
    #[derive(Serialize)]
    enum Any {
        A,
        B(u16),
        C { x: Option<Option<f32>>, y: Vec<Vec<u8>> },
    }
    #[derive(Serialize)]
    struct Row {
        id: i64,
        name: String,
        on: bool,
        any: Any,
        map: BTreeMap<u8, [f32; 2]>,
        mixed: Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        raw: Option<serde_bytes::ByteBuf>,
        tensor: Tensor<DynTensor>,
        nothing: (),
    }
    let row = |at: u8| Row {
        id: i64::from(at) - 3,
        name: "ß".repeat(at.into()),
        on: at.is_multiple_of(2),
        any: match at % 3 {
            0 => Any::A,
            1 => Any::B(at.into()),
            _ => {
                Any::C { x: Some((at.is_multiple_of(2)).then_some(0.5)), y: vec![vec![at], vec![]] }
            }
        },
        map: (0..at % 3).map(|key| (key, [0.5, f32::from(at)])).collect(),
        mixed: if at.is_multiple_of(2) { at.into() } else { "x".into() },
        raw: (at.is_multiple_of(2)).then(|| serde_bytes::ByteBuf::from(vec![at; 2])),
        tensor: Tensor(
            DynTensor::new(tenarc::DType::U16, &[2], tenarc::tensor::Order::C, vec![at; 4])
                .unwrap(),
        ),
        nothing: (),
    };
    let rows: Vec<Row> = (0..6).map(row).collect();
    let Value::Array(rows) = tenarc::to_value(&rows).unwrap() else { panic!("no array") };
    rows
}

/// Documents with columns of every kind.
fn samples() -> Vec<Vec<u8>> {
    let rows = rows();
    let style = Style::default();
    [
        style,
        Style { tuples: true, group: 4, ..style },
        Style { wide: true, indefinite: true, ..style },
        Style { rich: true, ..style },
    ]
    .map(|style| Writer::new(style).document(&rows))
    .into()
}

/// Reads a damaged document in many ways.
fn try_all(document: &[u8]) {
    #[derive(Deserialize, Debug)]
    #[allow(dead_code)]
    enum Any {
        A,
        B(u16),
        C { x: Option<Option<f32>>, y: Vec<Vec<u8>> },
    }
    #[derive(Deserialize, Debug)]
    #[allow(dead_code)]
    struct Row {
        nothing: (),
        name: String,
        id: i64,
        on: bool,
        any: Any,
        map: BTreeMap<u8, [f32; 2]>,
        mixed: Value,
        raw: Option<serde_bytes::ByteBuf>,
        tensor: Tensor<DynTensor>,
    }
    let values = everywhere::<Value>(document);
    for (source, value) in &values {
        let (_, first) = &values[0];
        match (first, value) {
            (Ok(first), Ok(value)) => {
                // By their bytes, as a NaN equals nothing.
                let bytes = [first, value].map(|value| tenarc::to_vec(value).unwrap());
                assert_eq!(bytes[0], bytes[1], "{source}: {}", hex(document));
            }
            (Err(_), Err(_)) => {}
            _ => panic!("{source}: {value:?}, slice: {first:?}\n{}", hex(document)),
        }
    }
    // What can be read as a value can be read as this type from both, or from none.
    let typed = tenarc::from_slice::<Vec<Row>>(document);
    if let (_, Ok(value)) = &values[0] {
        let rows = tenarc::to_vec(value).unwrap();
        let from_rows = tenarc::from_slice::<Vec<Row>>(&rows);
        // Errors call the mark of a row "Some", which columns do not have.
        let message = |error: tenarc::Error| error.message().replace("found Some", "found null");
        assert_eq!(
            typed.map(|typed| format!("{typed:?}")).map_err(message),
            from_rows.map(|rows| format!("{rows:?}")).map_err(message),
            "{}",
            hex(document)
        );
    } else {
        typed.unwrap_err();
    }
    drop(tenarc::from_slice::<Vec<IgnoredAny>>(document));
    drop(tenarc::from_slice::<IgnoredAny>(document));
    drop(tenarc::from_slice::<Vec<Tensor<DynTensor>>>(document));
    drop(tenarc::from_slice::<BTreeMap<String, Vec<u8>>>(document));
}

#[test]
fn every_cut_is_an_error() {
    for document in samples() {
        for len in 0..document.len() {
            for (source, result) in everywhere::<Vec<IgnoredAny>>(&document[..len]) {
                let error = result.unwrap_err();
                assert_eq!(error.category(), Category::Eof, "{source} {len}: {error}");
            }
            try_all(&document[..len]);
        }
    }
}

#[test]
fn every_flipped_bit_is_no_danger() {
    for document in samples() {
        let mut damaged = document.clone();
        for at in 0..document.len() {
            for bit in some_of(0..8, 3, at) {
                damaged[at] = document[at] ^ 1 << bit;
                // A megabyte for documents of less than a kilobyte.
                refusing_above(1 << 20, || try_all(&damaged));
            }
            damaged[at] = document[at];
        }
    }
}
