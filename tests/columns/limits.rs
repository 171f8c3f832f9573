//! Columns keep within the limits on nesting and memory. Rows that take no bytes are limited, too.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use tenarc::de::{DecodeOptions, Limits, from_reader_with, from_slice_with};
use tenarc::error::Category;
use tenarc::{DynTensor, Tensor, Value};
use tenarc_test_support::alloc::{peak_of, refusing_above};
use tenarc_test_support::builder::{array, bytes, map, own, text, unsigned};
use tenarc_test_support::{everywhere, refuse};

use crate::build::{columns, f32s, kind, one, tensor, texts, u8s};

/// More rows without bytes than short input may announce.
const MOST: u64 = (1 << 24) + (1 << 16);

#[track_caller]
fn too_many(document: &[u8]) {
    refusing_above(1 << 20, || {
        let error = refuse::<Vec<IgnoredAny>>(document);
        assert_eq!(error.category(), Category::Limit, "{error}");
        assert!(error.to_string().contains("with_max_alloc sets another limit"), "{error}");
    });
}

// 119
#[test]
fn rows_without_bytes_are_limited() {
    let most = 1 << 16;
    let units = kind("unit", &[]);
    // 64 MiB are 2^24 rows, and a few more for the bytes of the input.
    too_many(&one(most, kind("array", &[unsigned(1 << 24), units.clone()])));
    too_many(&one(1, kind("array", &[unsigned(MOST), units.clone()])));
    tenarc::from_slice::<Vec<IgnoredAny>>(&one(
        1,
        kind("array", &[unsigned((1 << 24) - 1000), units.clone()]),
    ))
    .unwrap();
    let groups = |count: usize, column: Vec<u8>| columns(&vec![(most, column); count]);
    tenarc::from_slice::<Vec<IgnoredAny>>(&groups(255, units.clone())).unwrap();
    too_many(&groups(260, units.clone()));
    // Each kind in one column, which is refused before its first row.
    let rows = MOST;
    for column in [
        map(&[]),
        kind("array", &[unsigned(0), u8s(&[])]),
        kind("map", &[unsigned(0), u8s(&[]), u8s(&[])]),
        texts(unsigned(0), ""),
        kind("bytes", &[unsigned(0), bytes(&[])]),
        tensor(&[rows, 0, 3], f32s(&[])),
        // A field of the rows.
        map(&[("a", units.clone()), ("b", kind("text", &[unsigned(0), text("")]))]),
    ] {
        too_many(&one(1, kind("array", &[unsigned(rows), column])));
    }
    // In all columns of a document together, and in the items of rows.
    let quarter = one(1, kind("array", &[unsigned((1 << 22) - 1000), units]));
    let quarters = |count: usize| vec![quarter.clone(); count];
    tenarc::from_slice::<Vec<IgnoredAny>>(&array(&quarters(5))).unwrap();
    let read = |document: &[u8]| tenarc::from_slice::<Vec<Vec<Vec<()>>>>(document);
    read(&array(&quarters(4))).unwrap();
    let error = read(&array(&quarters(5))).unwrap_err();
    assert_eq!((error.category(), &error.path()[..]), (Category::Limit, "4.0"), "{error}");
    let items = |count: usize| one(count as u64, kind("rows", &[array(&quarters(count))]));
    read(&items(4)).unwrap();
    assert_eq!(read(&items(5)).unwrap_err().path(), "4.0");
    // Each value of a stream has the whole limit.
    let stream = quarters(8).concat();
    let values = tenarc::Deserializer::from_slice(&stream).into_iter::<Vec<Vec<()>>>();
    assert_eq!(values.map(Result::unwrap).count(), 8);
}

// 120
/// Rows that take no bytes become elements of 512 bytes, or of any size.
#[test]
fn elements_take_memory_in_proportion() {
    #[derive(Deserialize)]
    struct Wide {
        #[serde(default)]
        a: [[u64; 8]; 8],
    }
    fn refused<T: DeserializeOwned>(document: &[u8]) {
        let (result, peak) = peak_of(|| tenarc::from_slice::<T>(document).map(drop));
        let error = result.unwrap_err();
        assert_eq!(error.category(), Category::Limit, "{error}");
        assert!(error.to_string().contains("64 MiB and 64 times its input"), "{error}");
        assert!(peak < 66 << 20, "{peak}");
    }
    let groups = |column: &[u8]| columns(&vec![(1 << 16, column.to_vec()); 256]);
    let unit = map(&[("unknown", kind("unit", &[]))]);
    refused::<Vec<Wide>>(&groups(&map(&[])));
    refused::<Vec<Wide>>(&groups(&unit));
    let list = |column| one(1, kind("array", &[unsigned(1 << 24), column]));
    refused::<Vec<Vec<Wide>>>(&list(unit.clone()));
    let keys = u8s(&[0; 1 << 10]);
    let maps = one(1 << 10, kind("map", &[unsigned(1), keys, unit]));
    let read: Vec<BTreeMap<u8, Wide>> = tenarc::from_slice(&maps).unwrap();
    assert_eq!((read.len(), read[0][&0].a[0][0]), (1 << 10, 0));
    // What is not made for this fits: a bit for each row, and a few rows without bytes.
    let bits = map(&[("b", kind("bool", &[bytes(&[0; 1 << 13])]))]);
    assert_eq!(tenarc::from_slice::<Vec<Wide>>(&one(1 << 16, bits)).unwrap().len(), 1 << 16);
    assert_eq!(tenarc::from_slice::<Vec<Wide>>(&one(1000, map(&[]))).unwrap().len(), 1000);
}

// 120
/// A megabyte of bits stands for gigabytes of elements, which a limit on memory does not allow.
#[test]
fn a_limit_on_memory_covers_elements() {
    #[derive(Deserialize)]
    struct Wide {
        #[serde(default)]
        a: [[u64; 8]; 8],
    }
    let strict = DecodeOptions::default().with_limits(Limits::strict());
    let bits = || map(&[("b", kind("bool", &[bytes(&[0; 1 << 13])]))]);
    let document = columns(&vec![(1 << 16, bits()); 128]);
    assert!((1 << 20..1 << 21).contains(&document.len()));
    let lists =
        one(1, kind("array", &[unsigned(1 << 23), kind("bool", &[bytes(&vec![0; 1 << 20])])]));
    let keys = || u8s(&vec![0; 1 << 16]);
    let units = || map(&[("unknown", kind("unit", &[]))]);
    let maps = columns(&vec![(1 << 16, kind("map", &[unsigned(1), keys(), units()])); 16]);
    let refused = |read: &dyn Fn() -> tenarc::Result<()>| {
        let (result, peak) = peak_of(read);
        let error = result.unwrap_err();
        assert_eq!(error.category(), Category::Limit, "{error}");
        peak
    };
    let most = 66 << 20;
    assert!(refused(&|| from_slice_with::<Vec<Wide>>(&document, strict).map(drop)) < most);
    let streamed = || from_reader_with::<_, Vec<Wide>>(&document[..], strict).map(drop);
    assert!(refused(&streamed) < most);
    type Lists = Vec<Vec<Value>>;
    assert!(refused(&|| from_slice_with::<Lists>(&lists, strict).map(drop)) < most);
    let read = || from_slice_with::<Vec<BTreeMap<u8, Wide>>>(&maps, strict).map(drop);
    assert!(refused(&read) < most);
    // Elements of a byte fit.
    let read: Vec<Vec<bool>> = from_slice_with(&lists, strict).unwrap();
    assert_eq!(read[0].len(), 1 << 23);
    assert_eq!(tenarc::from_slice::<Vec<Wide>>(&one(1 << 16, bits())).unwrap()[9].a[7][7], 0);
}

// 119
#[test]
fn long_names_count_as_rows() {
    let name = "n".repeat(1 << 20);
    let bools = || kind("bool", &[bytes(&vec![0; 8192])]);
    // 65,536 names of a megabyte from a megabyte.
    too_many(&one(1 << 16, map(&[(&name, bools())])));
    let codes = u8s(&vec![0; 1 << 16]);
    too_many(&one(1 << 16, kind("enum", &[codes, array(&[text(&name)])])));
    let few = map(&[(&name[..], u8s(&[1; 100]))]);
    tenarc::from_slice::<Vec<IgnoredAny>>(&one(100, few)).unwrap();
    let short = map(&[(&name[..256], bools())]);
    tenarc::from_slice::<Vec<IgnoredAny>>(&columns(&vec![(1 << 16, short); 300])).unwrap();
}

// 120
#[test]
fn values_take_memory_in_proportion() {
    // Each group announces as many rows as are allowed, so that there are 2^24 maps with a long key.
    let name = "n".repeat(256);
    let group = || (1 << 16, map(&[(&name[..], kind("unit", &[]))]));
    let document = columns(&vec![group(); 256]);
    let (result, peak) = peak_of(|| tenarc::from_slice::<Value>(&document));
    let error = result.unwrap_err();
    assert!(error.to_string().contains("64 MiB and 64 times its input"), "{error}");
    assert_eq!(error.category(), Category::Limit);
    assert!(peak < 70 << 20, "{peak}");
    // What is not made for this fits.
    let bools: Vec<_> = (0..100).map(|at| format!("a field with number {at}")).collect();
    let bools: Vec<_> =
        bools.iter().map(|name| (&name[..], kind("bool", &[bytes(&[255; 125])]))).collect();
    let value: Value = tenarc::from_slice(&one(1000, map(&bools))).unwrap();
    assert_eq!(value[999]["a field with number 99"], Value::Bool(true));
}

#[test]
fn the_limit_on_memory_covers_columns() {
    let options =
        |bytes| DecodeOptions::default().with_limits(Limits::default().with_max_alloc(bytes));
    let document = one(1000, map(&[("text", texts(unsigned(100), &"x".repeat(100_000)))]));
    from_reader_with::<_, Vec<IgnoredAny>>(&document[..], options(110_000)).unwrap();
    let error = from_reader_with::<_, Vec<IgnoredAny>>(&document[..], options(90_000)).unwrap_err();
    assert_eq!(error.category(), Category::Limit, "{error}");
    from_slice_with::<Value>(&document, options(1 << 20)).unwrap();
    let error = from_slice_with::<Value>(&document, options(110_000)).unwrap_err();
    assert_eq!(error.category(), Category::Limit, "{error}");
    let lists = one(100, kind("array", &[unsigned(250), f32s(&vec![1.0; 25_000])]));
    from_slice_with::<Vec<Vec<f32>>>(&lists, options(110_000)).unwrap();
    let error = from_slice_with::<Vec<Vec<f32>>>(&lists, options(90_000)).unwrap_err();
    assert_eq!((error.category(), &error.path()[..2]), (Category::Limit, "86"), "{error}");
    // In the items of rows, too.
    let long = tenarc::to_vec(&vec![1u8; 10_000]).unwrap();
    let items = one(20, kind("rows", &[array(&vec![long; 20])]));
    from_slice_with::<Vec<Tensor<DynTensor>>>(&items, options(1 << 24)).unwrap();
    let error = from_slice_with::<Vec<Tensor<DynTensor>>>(&items, options(1 << 20)).unwrap_err();
    assert_eq!(error.category(), Category::Limit, "{error}");
}

#[test]
fn lengths_that_are_not_there_take_no_memory() {
    let claims = [
        own(*b"TCOL", &[vec![0x9b], vec![0xff; 8], unsigned(1)].concat()),
        one(1 << 16, kind("array", &[unsigned(1 << 40), u8s(&[])])),
        one(1, [vec![0xbb], vec![0x0f; 8]].concat()),
        one(1, kind("tuple", &[[vec![0x9b], vec![0x0f; 8]].concat()])),
        one(1, kind("enum", &[u8s(&[0]), [vec![0x9b], vec![0x0f; 8]].concat()])),
        one(
            1,
            kind("text", &[unsigned(1 << 40), [vec![0x7b], vec![0, 0, 1, 0, 0, 0, 0, 0]].concat()]),
        ),
        one(1 << 16, kind("rows", &[[vec![0x9a], vec![0, 1, 0, 0]].concat()])),
    ];
    for document in claims {
        refusing_above(1 << 20, || {
            for (source, result) in everywhere::<Vec<IgnoredAny>>(&document) {
                // A reader fails by the limit on memory, as it does not know how much input follows.
                assert!(result.is_err(), "{source}");
            }
            tenarc::from_slice::<Value>(&document).unwrap_err();
        });
    }
}

// 122
#[test]
fn nesting_is_limited() {
    /// The deepest limit with which a document is refused.
    fn levels(document: &[u8]) -> usize {
        let read = |levels| {
            let limits = Limits::default().with_max_depth(levels);
            let options = DecodeOptions::default().with_limits(limits);
            let typed = from_slice_with::<Vec<IgnoredAny>>(document, options);
            let value = from_slice_with::<Value>(document, options);
            let skipped = from_slice_with::<IgnoredAny>(document, options);
            assert_eq!(typed.is_ok(), value.is_ok(), "{levels}");
            // Shapes are arrays too, but a tensor takes three levels in any case.
            assert!(typed.is_err() || skipped.is_ok(), "{levels}");
            typed.is_ok()
        };
        (0..100).find(|&levels| read(levels)).unwrap()
    }
    // The tag and the array around the groups are two levels, and a typed array is one.
    assert_eq!(levels(&one(1, u8s(&[1]))), 3);
    assert_eq!(levels(&one(1, map(&[("a", u8s(&[1]))]))), 4);
    assert_eq!(levels(&one(1, kind("unit", &[]))), 3);
    assert_eq!(levels(&one(1, kind("tuple", &[array(&[kind("unit", &[])])]))), 5);
    assert_eq!(levels(&one(1, kind("array", &[unsigned(1), u8s(&[1])]))), 4);
    assert_eq!(levels(&one(1, kind("rows", &[array(&[array(&[unsigned(1)])])]))), 5);
    assert_eq!(levels(&one(1, tensor(&[1, 1], u8s(&[1])))), 5);

    let mut deep = unsigned(1);
    for _ in 0..200 {
        deep = array(&[deep]);
    }
    let error = refuse::<Vec<IgnoredAny>>(&one(1, kind("rows", &[array(&[deep])])));
    assert!(error.to_string().contains("nesting is deeper than 128 levels"), "{error}");
    let mut deep = u8s(&[1]);
    for _ in 0..200 {
        deep = kind("array", &[unsigned(1), deep]);
    }
    let error = refuse::<Vec<IgnoredAny>>(&one(1, deep));
    assert!(error.to_string().contains("nesting is deeper than 128 levels"), "{error}");
}

// 119
/// Columns that are not asked for are not read, so they do not prove that the rows are there.
#[test]
fn rows_without_the_wanted_fields_are_limited() {
    #[derive(serde::Deserialize, Debug)]
    struct Wanted {
        #[serde(default)]
        #[allow(dead_code)]
        b: Option<u8>,
    }
    let mut groups = vec![(1, map(&[("a", u8s(&[1])), ("b", u8s(&[1]))]))];
    groups.resize(258, (1 << 16, map(&[("a", kind("unit", &[]))])));
    let document = columns(&groups);
    let mut out = tenarc::OArchive::new(Vec::new()).unwrap();
    out.save(tenarc::value::RawValue::from_bytes(&document).unwrap()).unwrap();
    let bytes = out.finish().unwrap();
    let archive = tenarc::Archive::new(&bytes[..]).unwrap();
    let table = archive.only().unwrap().table("").unwrap();
    assert_eq!(table.rows::<Wanted>(0..10).unwrap().len(), 10);
    for error in [
        table.rows::<Wanted>(..).unwrap_err(),
        table.column::<Vec<Option<u8>>>("b").unwrap_err(),
        archive.get::<Vec<Option<u8>>>("b").unwrap_err(),
    ] {
        assert_eq!(error.category(), Category::Limit, "{error}");
    }
}
