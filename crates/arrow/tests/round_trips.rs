//! Tables to record batches and back.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{
    Array, ArrayRef, Date32Array, Date64Array, Decimal128Array, Decimal256Array, DictionaryArray,
    DurationMillisecondArray, FixedSizeBinaryArray, Int8Array, RecordBatch, RecordBatchIterator,
    StringArray, Time32MillisecondArray, Time64NanosecondArray, TimestampMicrosecondArray,
    TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray,
};
use arrow_buffer::i256;
use arrow_schema::{DataType, Field, Schema};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use tenarc::archive::{Compression, SaveOptions};
use tenarc::de::Limits;
use tenarc::io::SharedBytes;
use tenarc::{Archive, OArchive, Tensor};
use tenarc_arrow::{ArrowTable, Import, save};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Event {
    Open,
    Click { x: f32, y: Option<i16> },
    Text(String),
    Pair(u8, i64),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Row {
    id: u64,
    score: f64,
    flag: bool,
    name: String,
    note: Option<String>,
    tags: Vec<u16>,
    at: [f32; 3],
    embedding: Tensor<[i8; 4]>,
    event: Event,
    last: Option<Event>,
    pair: (u8, String),
    names: (String, Option<String>),
    counts: BTreeMap<String, i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rare: Option<u32>,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        Just(Event::Open),
        (-9f32..9.0, any::<Option<i16>>()).prop_map(|(x, y)| Event::Click { x, y }),
        "[a-c]{0,9}".prop_map(Event::Text),
        any::<(u8, i64)>().prop_map(|(a, b)| Event::Pair(a, b)),
    ]
}

fn row() -> impl Strategy<Value = Row> {
    let first = (any::<u64>(), -9f64..9.0, any::<bool>(), "[a-z]{0,5}", any::<Option<String>>());
    let second = (
        prop::collection::vec(any::<u16>(), 0..4),
        prop::array::uniform3(-1f32..1.0),
        any::<[i8; 4]>(),
        event(),
        prop::option::of(event()),
    );
    let counts = prop::collection::btree_map("[a-z]{1,3}", any::<i32>(), 0..3);
    let pairs = (any::<(u8, String)>(), any::<(String, Option<String>)>());
    let third = (pairs, counts, prop::option::of(1u32..9));
    (first, second, third).prop_map(
        |(
            (id, score, flag, name, note),
            (tags, at, embedding, event, last),
            ((pair, names), counts, rare),
        )| {
            let embedding = Tensor(embedding);
            Row {
                id,
                score,
                flag,
                name,
                note,
                tags,
                at,
                embedding,
                event,
                last,
                pair,
                names,
                counts,
                rare,
            }
        },
    )
}

/// Arrays of each type that has a name, with a null in each.
fn typed_arrays() -> Vec<(&'static str, ArrayRef, Option<&'static str>)> {
    let numbers = [Some(7i64), None, Some(-1), Some(1 << 40)];
    let small = [Some(7i32), None, Some(-1), Some(40)];
    let wide = [Some(i256::from_i128(i128::MAX)), None, Some(i256::MINUS_ONE), Some(i256::ONE)];
    let uuids = [Some([7; 16]), None, Some([0xff; 16]), Some([0; 16])];
    let zoned = |zone: &'static str| {
        Arc::new(TimestampNanosecondArray::from(numbers.to_vec()).with_timezone(zone))
    };
    let decimal = |precision, scale| {
        let numbers = numbers.map(|number| number.map(i128::from));
        let array = Decimal128Array::from(numbers.to_vec());
        Arc::new(array.with_precision_and_scale(precision, scale).unwrap())
    };
    let decimal256 = Decimal256Array::from(wide.to_vec());
    let uuids = FixedSizeBinaryArray::try_from_sparse_iter_with_size(uuids.into_iter(), 16);
    let fixed = [Some(b"abc"), None, Some(b"\xff\0\0"), Some(b"xyz")];
    let fixed = FixedSizeBinaryArray::try_from_sparse_iter_with_size(fixed.into_iter(), 3);
    vec![
        ("s", Arc::new(TimestampSecondArray::from(numbers.to_vec())), None),
        ("ms", Arc::new(TimestampMillisecondArray::from(numbers.to_vec())), None),
        ("us", Arc::new(TimestampMicrosecondArray::from(numbers.to_vec())), None),
        ("berlin", zoned("Europe/Berlin"), None),
        ("offset", zoned("+02:00"), None),
        ("day", Arc::new(Date32Array::from(small.to_vec())), None),
        ("time32", Arc::new(Time32MillisecondArray::from(small.to_vec())), None),
        ("time64", Arc::new(Time64NanosecondArray::from(numbers.to_vec())), None),
        ("duration", Arc::new(DurationMillisecondArray::from(numbers.to_vec())), None),
        ("short", decimal(15, 2), None),
        ("long", decimal(38, -3), None),
        ("wide", Arc::new(decimal256.with_precision_and_scale(60, 5).unwrap()), None),
        ("uuid", Arc::new(uuids.unwrap()), Some("arrow.uuid")),
        ("date64", Arc::new(Date64Array::from(numbers.to_vec())), None),
        ("fixed", Arc::new(fixed.unwrap()), None),
        ("category", category(&[Some(2), None, Some(0), Some(2)], &["x", "y", "z"]), None),
    ]
}

fn category(codes: &[Option<i8>], names: &[&str]) -> ArrayRef {
    let (codes, names) = (Int8Array::from(codes.to_vec()), StringArray::from(names.to_vec()));
    Arc::new(DictionaryArray::try_new(codes, Arc::new(names)).unwrap())
}

/// What is in an archive of these batches, or why they cannot be saved.
fn through(schema: &Arc<Schema>, batches: &[ArrayRef]) -> tenarc::Result<(Field, Vec<ArrayRef>)> {
    let batches =
        batches.iter().map(|array| RecordBatch::try_new(schema.clone(), vec![array.clone()]));
    let mut out = OArchive::new(Vec::new())?;
    save(&mut out, "t", RecordBatchIterator::new(batches, schema.clone()))?;
    let archive = Archive::new(out.finish()?)?;
    let table = ArrowTable::open(&archive, "t")?;
    let mut arrays = Vec::new();
    let mut reader = table.reader();
    while let Some(batch) = reader.next_batch()? {
        arrays.push(batch.column(0).clone());
    }
    Ok((table.schema().field(0).clone(), arrays))
}

#[test]
fn categories_have_one_dictionary_for_all_batches() {
    let first = category(&[Some(1), None, Some(1)], &["x", "y"]);
    let second = category(&[Some(1), Some(0)], &["z", "y"]);
    let of = |is_ordered| {
        let field =
            Field::new("a", first.data_type().clone(), true).with_dict_is_ordered(is_ordered);
        Arc::new(Schema::new(vec![field]))
    };
    let (field, found) = through(&of(false), &[first.clone(), second.clone()]).unwrap();
    assert_eq!(field, *of(false).field(0));
    // Names that do not occur are left out.
    let names = |array: &ArrayRef| array.as_any_dictionary().values().as_string::<i32>().clone();
    for (array, expected) in found.iter().zip([&first, &second]) {
        assert_eq!(names(array), StringArray::from(vec!["y", "z"]));
        assert_eq!(array.to_data(), expected.to_data());
    }
    // In an order, they are kept. A dictionary can get more of them.
    let third = category(&[Some(2)], &["x", "y", "z"]);
    let (field, found) = through(&of(true), &[first.clone(), third.clone()]).unwrap();
    assert_eq!(field, *of(true).field(0));
    assert_eq!(names(&found[0]), StringArray::from(vec!["x", "y", "z"]));
    assert_eq!((found[0].to_data(), found[1].to_data()), (first.to_data(), third.to_data()));
    // Values with other orders have none together.
    let (field, found) = through(&of(true), &[first.clone(), second.clone()]).unwrap();
    assert_eq!(field.dict_is_ordered(), Some(false));
    assert_eq!(found[1].to_data(), second.to_data());
}

#[test]
fn an_order_that_cannot_be_kept_is_refused() {
    let refused = |names: &[&str]| {
        let array = category(&[Some(0)], names);
        let field = Field::new("a", array.data_type().clone(), true).with_dict_is_ordered(true);
        through(&Arc::new(Schema::new(vec![field])), &[array]).err()
    };
    let many: Vec<String> = (0..16).map(|number| number.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(refused(&many[..15]).is_none());
    for names in [&many, &["x", "x"][..], &[&*"x".repeat(65)]] {
        let error = refused(names).unwrap().to_string();
        assert!(error.contains("`a`: the order of a category"), "{error}");
    }
}

#[test]
fn indices_have_room_for_all_names() {
    let batch = |from: usize| {
        let names: Vec<_> = (from..from + 100).map(|number| number.to_string()).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        category(&(0..100).map(Some).collect::<Vec<_>>(), &names)
    };
    let (first, second) = (batch(0), batch(100));
    let schema = Arc::new(Schema::new(vec![Field::new("a", first.data_type().clone(), true)]));
    let (field, found) = through(&schema, &[first, second]).unwrap();
    let DataType::Dictionary(index, _) = field.data_type() else { panic!("{field}") };
    assert_eq!(**index, DataType::Int32);
    let texts = |array: &ArrayRef| {
        let array = array.as_any_dictionary();
        let (names, keys) = (array.values().as_string::<i32>(), array.normalized_keys());
        keys.into_iter().map(|key| names.value(key).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(texts(&found[1])[99], "199");
}

#[test]
fn types_come_back() {
    let arrays = typed_arrays();
    let field = |(name, array, extension): &(&str, ArrayRef, Option<&str>)| {
        let metadata = extension.map(|name| ("ARROW:extension:name".to_owned(), name.to_owned()));
        let metadata: HashMap<_, _> = metadata.into_iter().collect();
        Field::new(*name, array.data_type().clone(), true).with_metadata(metadata)
    };
    let schema = Arc::new(Schema::new(arrays.iter().map(field).collect::<Vec<_>>()));
    let columns = arrays.iter().map(|(_, array, _)| array.clone()).collect();
    let batch = RecordBatch::try_new(schema.clone(), columns).unwrap();
    let import = Import::of(schema.fields().iter().map(AsRef::as_ref)).unwrap();
    assert!(import.report().is_empty() && import.report().notes().is_empty());
    for compression in [None, Some(Compression::lz4())] {
        let mut options = SaveOptions::default();
        if let Some(compression) = compression {
            options = options.with_compression(compression);
        }
        let mut out = OArchive::with_options(Vec::new(), options).unwrap();
        let batches = [Ok(batch.clone()), Ok(batch.slice(2, 2))];
        let reader = RecordBatchIterator::new(batches, schema.clone());
        assert_eq!(save(&mut out, "t", reader).unwrap(), 6);
        let archive = Archive::new(out.finish().unwrap()).unwrap();
        let table = ArrowTable::open(&archive, "t").unwrap();
        assert_eq!(table.schema().fields(), schema.fields());
        let found: Vec<_> = table.reader().collect::<Result<_, _>>().unwrap();
        for (found, expected) in found.iter().zip([&batch, &batch.slice(2, 2)]) {
            for (found, expected) in found.columns().iter().zip(expected.columns()) {
                assert_eq!(found.to_data(), expected.to_data());
            }
        }
        assert_eq!(found.len(), 2);
    }
}

/// SQL gives such tables, as for `select a, b, a`.
#[test]
fn of_columns_with_one_name_the_first_is_kept() {
    let numbers = |numbers: [i8; 2]| Arc::new(Int8Array::from(numbers.to_vec())) as ArrayRef;
    let field = |name: &str| Field::new(name, DataType::Int8, false);
    let schema = Arc::new(Schema::new(vec![field("a"), field("b"), field("a")]));
    let import = Import::of(schema.fields().iter().map(AsRef::as_ref)).unwrap();
    let lost = [("a".to_owned(), "a further field of this name is left out".to_owned())];
    assert_eq!(
        (import.report().lost(), import.kept().collect::<Vec<_>>()),
        (&lost[..], vec![0, 1])
    );
    let columns = vec![numbers([1, 2]), numbers([3, 4]), numbers([5, 6])];
    let batch = RecordBatch::try_new(schema, columns).unwrap();
    let rows = import.rows(&[batch], Limits::default()).unwrap();
    let bytes = tenarc::to_vec(&rows).unwrap();
    let found: Vec<HashMap<String, i8>> = tenarc::from_slice(&bytes).unwrap();
    let row = |a, b| HashMap::from([("a".to_owned(), a), ("b".to_owned(), b)]);
    assert_eq!(found, [row(1, 3), row(2, 4)]);
}

#[test]
fn a_decimal_of_too_many_digits_is_refused() {
    let array = Decimal128Array::from(vec![i128::MAX]).with_precision_and_scale(18, 0).unwrap();
    let batch = RecordBatch::try_from_iter([("a", Arc::new(array) as ArrayRef)]).unwrap();
    let schema = batch.schema();
    let mut out = OArchive::new(Vec::new()).unwrap();
    let error = save(&mut out, "t", RecordBatchIterator::new([Ok(batch)], schema)).unwrap_err();
    assert!(error.to_string().contains("precision"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_comes_back_is_equal(
        segments in prop::collection::vec(prop::collection::vec(row(), 0..40), 1..4),
        is_compressed: bool,
        are_inline: bool,
    ) {
        let mut options = SaveOptions::default();
        if is_compressed {
            options = options.with_compression(Compression::lz4());
        }
        if !are_inline {
            options = options.with_inline_below(1);
        }
        let mut out = OArchive::with_options(Vec::new(), options).unwrap();
        for rows in &segments {
            out.save_as("t", rows).unwrap();
        }
        let bytes = SharedBytes::from_owner(out.finish().unwrap());
        let archive = Archive::new(&bytes[..]).unwrap();
        let rows = segments.concat();
        if rows.is_empty() {
            ArrowTable::open(&archive, "t").unwrap_err();
            return Ok(());
        }
        let table = ArrowTable::open(&archive, "t").unwrap();
        prop_assert!(table.report().is_empty(), "{}", table.report());
        // Arrays in the memory of the archive are equal to copies.
        let copies: Vec<_> = table.reader().collect::<Result<_, _>>().unwrap();
        let shared = Archive::new(bytes.clone()).unwrap();
        let shared = ArrowTable::open(&shared, "t").unwrap();
        prop_assert_eq!(shared.reader().collect::<Result<Vec<_>, _>>().unwrap(), copies);
        let mut out = OArchive::new(Vec::new()).unwrap();
        prop_assert_eq!(save(&mut out, "t", table.reader()).unwrap(), rows.len() as u64);
        let again = Archive::new(out.finish().unwrap()).unwrap();
        prop_assert_eq!(again.table("t").unwrap().rows::<Row>(..).unwrap(), rows);
    }
}
