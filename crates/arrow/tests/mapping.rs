//! The table of `docs/decisions/arrow.md`, row by row.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    self, Date32Type, Decimal128Type, Float32Type, Int32Type, TimestampMicrosecondType, UInt8Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::{DataType, Field, TimeUnit};
use serde::Serialize;
use tenarc::archive::col;
use tenarc::tensor::Order;
use tenarc::value::RawValue;
use tenarc::{Archive, DType, DynTensor, OArchive, Tensor, Value};
use tenarc_arrow::ArrowTable;

fn archive<T: Serialize>(values: &[T]) -> Archive<Vec<u8>> {
    let mut out = OArchive::new(Vec::new()).unwrap();
    for value in values {
        out.save_as("t", value).unwrap();
    }
    Archive::new(out.finish().unwrap()).unwrap()
}

fn batches(archive: &Archive<Vec<u8>>) -> Vec<RecordBatch> {
    let table = ArrowTable::open(archive, "t").unwrap();
    table.reader().collect::<Result<_, _>>().unwrap()
}

/// The type of the column with these rows, which must be the field `a`.
fn field<T: Serialize>(rows: &[T]) -> Field {
    #[derive(Serialize)]
    struct Row<'a, T> {
        a: &'a T,
    }
    let rows: Vec<_> = rows.iter().map(|a| Row { a }).collect();
    let archive = archive(&[rows]);
    let table = ArrowTable::open(&archive, "t").unwrap();
    assert!(table.report().is_empty(), "{}", table.report());
    let schema = table.schema();
    assert_eq!(table.reader().schema(), *schema);
    for batch in batches(&archive) {
        assert_eq!(batch.schema(), *schema);
    }
    schema.field(0).clone()
}

#[test]
fn each_kind_of_column_has_its_type() {
    #[derive(Serialize)]
    enum Level {
        Low,
        High,
    }
    let of = |field: Field| (field.data_type().clone(), field.is_nullable());
    assert_eq!(of(field(&[1u8, 2])), (DataType::UInt8, false));
    assert_eq!(of(field(&[0.5f32])), (DataType::Float32, false));
    assert_eq!(of(field(&[true, false])), (DataType::Boolean, false));
    assert_eq!(of(field(&["a", "b"])), (DataType::Utf8, false));
    assert_eq!(of(field(&["a"; 300])), (DataType::Utf8, false));
    assert_eq!(of(field(&[(), ()])), (DataType::Null, true));
    assert_eq!(of(field(&[Some(1u8), None])), (DataType::UInt8, true));
    let item = |of, nullable| Arc::new(Field::new("item", of, nullable));
    let list = DataType::List(item(DataType::Int16, false));
    assert_eq!(of(field(&[vec![1i16], vec![2, 3]])), (list, false));
    let fixed = DataType::FixedSizeList(item(DataType::Int16, false), 2);
    assert_eq!(of(field(&[[1i16, 2], [3, 4]])), (fixed, false));
    let fixed = DataType::FixedSizeList(item(DataType::Utf8, true), 2);
    assert_eq!(of(field(&[("a", Some("b")), ("c", None)])), (fixed, false));
    let levels = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    assert_eq!(of(field(&[Level::Low, Level::High])), (levels, false));
    let found = field(&[(1u8, "x")]);
    let fields = [Field::new("0", DataType::UInt8, false), Field::new("1", DataType::Utf8, false)];
    assert_eq!(found.data_type(), &DataType::Struct(fields.into_iter().collect()));
    assert_eq!(found.metadata().get("tenarc.kind").map(String::as_str), Some("tuple"));
    let tensors = field(&[Tensor([1f32, 2.0, 3.0, 4.0])]);
    assert_eq!(tensors.data_type(), &DataType::FixedSizeList(item(DataType::Float32, true), 4));
    assert_eq!(tensors.metadata()["ARROW:extension:name"], "arrow.fixed_shape_tensor");
    let map = field(&[BTreeMap::from([(1u32, "one")]), BTreeMap::new()]);
    assert!(matches!(map.data_type(), DataType::Map(_, false)), "{map:?}");
}

#[test]
fn groups_with_other_types_get_the_type_of_both() {
    #[derive(Serialize)]
    struct First {
        a: u8,
    }
    #[derive(Serialize)]
    struct Second {
        a: i32,
        b: Option<&'static str>,
    }
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save_as("t", &vec![First { a: 200 }]).unwrap();
    out.save_as("t", &vec![Second { a: -1, b: Some("x") }, Second { a: 2, b: None }]).unwrap();
    let archive = Archive::new(out.finish().unwrap()).unwrap();
    let table = ArrowTable::open(&archive, "t").unwrap();
    assert_eq!((table.rows(), table.segments(), table.name()), (3, 2, Some("t")));
    let columns: Vec<_> = table.schema().fields().iter().map(|field| field.data_type()).collect();
    assert_eq!(columns, [&DataType::Int32, &DataType::Utf8]);
    let [first, second] = &batches(&archive)[..] else { panic!("two batches") };
    assert_eq!(first.column(0).as_primitive::<Int32Type>().values(), &[200]);
    assert_eq!(first.column(1).null_count(), 1);
    assert_eq!(second.column(1).as_string::<i32>().value(0), "x");
}

#[test]
fn enums_with_data_are_structs_of_a_name_and_nullable_variants() {
    #[derive(Serialize)]
    enum Event {
        Close,
        Click { x: f32 },
    }
    let rows: [&[Event]; 2] =
        [&[Event::Close], &[Event::Click { x: 0.5 }, Event::Close, Event::Click { x: 1.5 }]];
    let mut out = OArchive::new(Vec::new()).unwrap();
    for events in rows {
        #[derive(Serialize)]
        struct Row<'a> {
            event: &'a Event,
        }
        let rows: Vec<_> = events.iter().map(|event| Row { event }).collect();
        out.save_as("t", &rows).unwrap();
    }
    let archive = Archive::new(out.finish().unwrap()).unwrap();
    let [first, second] = &batches(&archive)[..] else { panic!("two batches") };
    let names = |batch: &RecordBatch| {
        let names = batch.column(0).as_struct().column(0).clone();
        assert_eq!(names.null_count(), 0);
        let names = names.as_dictionary::<Int32Type>();
        let texts = names.values().as_string::<i32>();
        names
            .keys()
            .values()
            .iter()
            .map(|&key| texts.value(usize::try_from(key).unwrap()).to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(first), ["Close"]);
    assert_eq!(names(second), ["Click", "Close", "Click"]);
    assert_eq!(first.column(0).as_struct().column(1).null_count(), 1);
    let clicks = second.column(0).as_struct().column_by_name("Click").unwrap();
    assert_eq!((0..3).map(|row| clicks.is_valid(row)).collect::<Vec<_>>(), [true, false, true]);
    let x = clicks.as_struct().column_by_name("x").unwrap().as_primitive::<Float32Type>();
    assert_eq!((x.value(0), x.value(2)), (0.5, 1.5));
}

/// An archive whose value `t` is a group of these rows and columns.
fn planted(rows: u64, columns: &Value) -> Archive<Vec<u8>> {
    let groups = Value::Array(vec![Value::from(rows), columns.clone()]);
    let item = tenarc::to_vec(&Value::Tag(0x5443_4f4c, Box::new(groups))).unwrap();
    let item: Box<RawValue> = tenarc::from_slice(&item).unwrap();
    archive(&[item])
}

/// A column of the named type `name`.
fn typed(name: &str, parameters: &[Value], column: Value) -> Value {
    let parameters = Value::Array(parameters.to_vec());
    Value::Array(vec!["type".into(), name.into(), parameters, column])
}

fn numbers<A: tenarc::tensor::Element>(numbers: Vec<A>) -> Value {
    Value::Numbers(Box::new(numbers.into()))
}

fn bytes(len: u64, all: &[u8]) -> Value {
    Value::Array(vec!["bytes".into(), len.into(), Value::Bytes(all.to_vec())])
}

#[test]
fn values_of_a_type_are_those_of_arrow() {
    let units = [
        ("s", TimeUnit::Second),
        ("ms", TimeUnit::Millisecond),
        ("us", TimeUnit::Microsecond),
        ("ns", TimeUnit::Nanosecond),
    ];
    let one = |name: &str, parameters: &[Value], column: Value| {
        let rows = Value::Map(vec![("a".into(), typed(name, parameters, column))]);
        let archive = planted(2, &rows);
        let table = ArrowTable::open(&archive, "t").unwrap();
        let of = table.schema().field(0).data_type().clone();
        let batch = batches(&archive).remove(0);
        assert_eq!(batch.column(0).len(), 2);
        (of, batch.column(0).clone())
    };
    for (name, unit) in units {
        let parameters = |zone: &str| [Value::from(name), Value::from(zone)];
        let stored = || numbers(vec![1i64 << 40, -7]);
        let (of, _) = one("timestamp", &parameters("Europe/Berlin"), stored());
        assert_eq!(of, DataType::Timestamp(unit, Some("Europe/Berlin".into())));
        assert_eq!(one("timestamp", &parameters(""), stored()).0, DataType::Timestamp(unit, None));
        assert_eq!(one("duration", &[name.into()], stored()).0, DataType::Duration(unit));
        let time = one("time", &[name.into()], numbers(vec![3i32, 7])).0;
        let is_short = matches!(unit, TimeUnit::Second | TimeUnit::Millisecond);
        assert_eq!(time, if is_short { DataType::Time32(unit) } else { DataType::Time64(unit) });
    }
    // In a narrower type, as messages store it.
    let (_, found) = one("timestamp", &["us".into(), "".into()], numbers(vec![200u8, 3]));
    assert_eq!(found.as_primitive::<TimestampMicrosecondType>().values(), &[200, 3]);
    let (of, found) = one("date", &[], numbers(vec![20_783i16, -1]));
    assert_eq!(of, DataType::Date32);
    assert_eq!(found.as_primitive::<Date32Type>().values(), &[20_783, -1]);
    let decimal = [Value::from(5), Value::from(2)];
    let (of, found) = one("decimal", &decimal, numbers(vec![12_345i64, -1]));
    assert_eq!(of, DataType::Decimal128(5, 2));
    assert_eq!(found.as_primitive::<Decimal128Type>().values(), &[12_345, -1]);
    let (of, found) = one("decimal", &decimal, bytes(3, &[0, 1, 0, 0xff, 0xff, 0xfe]));
    assert_eq!(of, DataType::Decimal128(5, 2));
    assert_eq!(found.as_primitive::<Decimal128Type>().values(), &[256, -2]);
    let wide = [Value::from(76), Value::from(-3)];
    assert_eq!(one("decimal", &wide, bytes(32, &[1; 64])).0, DataType::Decimal256(76, -3));
    let (of, found) = one("uuid", &[], bytes(16, &(0..32).collect::<Vec<_>>()));
    assert_eq!(of, DataType::FixedSizeBinary(16));
    assert_eq!(found.as_fixed_size_binary().value(1)[0], 16);
}

#[test]
fn what_breaks_the_rules_of_a_type_has_no_type() {
    let of = |name: &str, parameters: &[Value], column: Value| {
        let rows = Value::Map(vec![("a".into(), typed(name, parameters, column))]);
        let archive = planted(2, &rows);
        batches(&archive).remove(0).column(0).data_type().clone()
    };
    let stored = || numbers(vec![1u64, 2]);
    assert_eq!(of("date", &[], stored()), DataType::UInt64);
    assert_eq!(of("timestamp", &["us".into(), "".into()], stored()), DataType::UInt64);
    assert_eq!(
        of("timestamp", &["min".into(), "".into()], numbers(vec![1i64, 2])),
        DataType::Int64
    );
    assert_eq!(of("uuid", &[], bytes(15, &[0; 30])), DataType::Binary);
    assert_eq!(of("decimal", &[77.into(), 0.into()], numbers(vec![1i64, 2])), DataType::Int64);
    assert_eq!(of("example.com/money", &[], numbers(vec![1i64, 2])), DataType::Int64);
}

#[test]
fn a_column_of_tensors_in_another_order_is_refused() {
    let column = |order| {
        let bytes = (0..12).collect();
        let tensor = DynTensor::new(DType::U8, &[2, 6], order, bytes).unwrap();
        planted(2, &Value::Map(vec![("a".into(), Value::from(tensor))]))
    };
    assert_eq!(batches(&column(Order::C))[0].num_rows(), 2);
    let archive = column(Order::F);
    let table = ArrowTable::open(&archive, "t");
    let error = table.map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("must have order C, found F"), "{error}");
}

#[test]
fn chosen_columns_are_read_alone() {
    #[derive(Serialize)]
    struct Row {
        id: u32,
        mixed: Value,
        name: String,
    }
    let row = |id: u32| Row {
        id,
        mixed: if id.is_multiple_of(2) { Value::from(1) } else { Value::from("x") },
        name: format!("n{id}"),
    };
    let archive = archive(&[(0..100).map(row).collect::<Vec<_>>()]);
    let table = ArrowTable::open(&archive, "t").unwrap();
    assert_eq!(table.report().lost()[0].0, "mixed");
    let chosen = table.with_columns(&["name", "id"]).unwrap();
    assert!(chosen.report().is_empty());
    let batch = chosen.reader().next().unwrap().unwrap();
    assert_eq!(batch.schema().field(0).name(), "name");
    assert_eq!(batch.num_columns(), 2);
    for (name, expected) in [("mixed", "cannot be kept"), ("other", "no such column")] {
        let table = ArrowTable::open(&archive, "t").unwrap();
        let error = table.with_columns(&[name]).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains(name), "{error}");
    }
}

#[test]
fn rows_that_are_no_structs_are_one_column() {
    let archive = archive(&[vec!["a", "b"]]);
    let table = ArrowTable::open(&archive, "t").unwrap();
    assert_eq!(table.schema().field(0).name(), "value");
    assert_eq!(batches(&archive)[0].column(0).as_string::<i32>().value(1), "b");
}

#[test]
fn variants_that_take_too_much_memory_are_refused() {
    // 20,000 variants, each with a column of no rows: about 200 KB, which would be 10 GB of nulls.
    let names: Vec<Value> = (0..20_000).map(|n| format!("v{n}").into()).collect();
    let mut columns = vec![numbers(vec![0u8; 65_536])];
    columns.resize_with(20_000, || numbers(Vec::<u64>::new()));
    let codes = numbers(vec![0u16; 65_536]);
    let variants = vec!["enum".into(), codes, Value::Array(names), Value::Array(columns)];
    let archive = planted(65_536, &Value::Map(vec![("a".into(), Value::Array(variants))]));
    let table = ArrowTable::open(&archive, "t").unwrap();
    let error = table.reader().next().unwrap().unwrap_err().to_string();
    assert!(error.contains("values in Arrow"), "{error}");
}

#[derive(Clone, Serialize)]
struct Numbered {
    id: u32,
    size: Option<u16>,
}

/// A table of three groups in two values, and one value that is not stored as columns.
fn numbered() -> Archive<Vec<u8>> {
    let row =
        |id: u32| Numbered { id, size: (!id.is_multiple_of(3)).then_some((id % 1000) as u16) };
    let rows: Vec<_> = (0..70_300).map(row).collect();
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save_as("t", &rows[..70_000]).unwrap();
    // As an array of this length, which is a tuple for serde, rows are not stored as columns.
    let plain: &[Numbered; 300] = rows[70_000..].try_into().unwrap();
    out.save_as("t", &Plain(plain)).unwrap();
    Archive::new(out.finish().unwrap()).unwrap()
}

struct Plain<'a>(&'a [Numbered; 300]);

impl Serialize for Plain<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeTuple;
        let mut tuple = serializer.serialize_tuple(300)?;
        for row in self.0 {
            tuple.serialize_element(row)?;
        }
        tuple.end()
    }
}

fn ids(table: &ArrowTable<'_, Vec<u8>>) -> Vec<i64> {
    let batches = table.reader().map(Result::unwrap);
    let ids = batches.map(|batch| batch["id"].as_primitive::<types::Int64Type>().values().to_vec());
    ids.flatten().collect()
}

#[test]
fn a_range_of_rows_and_a_filter_choose_rows() {
    let archive = numbered();
    let open = || ArrowTable::open(&archive, "t").unwrap();
    assert_eq!(open().groups().last(), Some(&70_300));
    assert!(open().groups().len() > 2);
    let (start, end) = (65_525u32, 70_290u32);
    let large = col("size").gt(996).or(col("id").eq(70_288));
    let is_large = |id: &i64| id % 3 > 0 && id % 1000 > 996 || *id == 70_288;
    assert_eq!(ids(&open()), (0..70_300).collect::<Vec<_>>());
    let range = open().with_rows(start.into()..end.into()).unwrap();
    assert_eq!(range.rows(), u64::from(end - start));
    let wanted = i64::from(start)..i64::from(end);
    assert_eq!(ids(&range), wanted.clone().collect::<Vec<_>>());
    let expected = (0..70_300).filter(is_large).collect::<Vec<_>>();
    assert_eq!(ids(&open().with_filter(large.clone()).unwrap()), expected);
    let found = range.with_filter(large.clone()).unwrap();
    let expected = wanted.filter(is_large).collect::<Vec<_>>();
    assert_eq!(ids(&found), expected);
    let both = found.with_filter(col("id").lt(70_288)).unwrap();
    assert_eq!(ids(&both), &expected[..expected.len() - 1]);
    // The condition is about a column that is not wanted, and no column is.
    let counted = open().with_columns(&[]).unwrap().with_filter(large).unwrap();
    let rows: usize = counted.reader().map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(rows, (0..70_300).filter(is_large).count());
    let plain = open().with_filter(col("id").gt_eq(70_299)).unwrap();
    let found = plain.segment_reader(1).next_batch().unwrap().unwrap();
    assert_eq!(found.num_rows(), 1);
    assert!(plain.segment_reader(0).next_batch().unwrap().is_none());

    let error = open().with_rows(5..70_301).unwrap_err().to_string();
    assert!(error.contains("5..70301") && error.contains("0..70300"), "{error}");
    let error = open().with_filter(col("size").gt("x")).unwrap().reader().next().unwrap();
    assert!(error.unwrap_err().to_string().contains("size"));
}

#[test]
fn tables_of_several_files_are_read_with_the_types_of_all() {
    #[derive(Serialize)]
    enum Level {
        Low,
        High,
    }
    #[derive(Serialize)]
    struct Row<N> {
        level: Level,
        size: N,
    }
    let first = archive(&[vec![Row { level: Level::High, size: 1u8 }]]);
    let second = archive(&[vec![Row { level: Level::Low, size: Some(300u16) }]]);
    let open = |archive| ArrowTable::open(archive, "t").unwrap();
    let types = open(&first).types().clone().merged(open(&second).types());
    let read = |archive| {
        let table = open(archive).with_types(&types).unwrap();
        table.reader().next_batch().unwrap().unwrap()
    };
    let (first, second) = (read(&first), read(&second));
    assert_eq!(first.schema(), second.schema());
    assert_eq!(second["size"].as_primitive::<types::UInt16Type>().values(), &[300]);
    for (batch, name) in [(first, "High"), (second, "Low")] {
        let levels = batch["level"].as_dictionary::<Int32Type>();
        let names = levels.values().as_string::<i32>();
        assert_eq!(names.value(usize::try_from(levels.keys().value(0)).unwrap()), name);
        assert_eq!(names.len(), 2);
    }
}

#[test]
fn texts_are_times_and_dates_if_they_are_asked_to_be() {
    #[derive(Serialize)]
    struct Row<'a> {
        id: u32,
        at: Option<&'a str>,
        day: &'a str,
    }
    let saved = |at: &str, day: &str| {
        let rows = (0..600).map(|id| match id {
            599 => Row { id, at: Some(at), day },
            _ => Row { id, at: (id % 3 > 0).then_some("2026-11-28T00:00:00Z"), day: "1970-01-02" },
        });
        let mut out = OArchive::new(Vec::new()).unwrap();
        // Some of them are a dict.
        out.save_as("t", &rows.collect::<Vec<_>>()).unwrap();
        Archive::new(out.finish().unwrap()).unwrap()
    };
    let last = |at: &str, day: &str| {
        let archive = saved(at, day);
        let table = ArrowTable::open(&archive, "t")?.with_times(&["at"])?.with_dates(&["day"])?;
        let batch = table.reader().next_batch()?.unwrap();
        assert_eq!(batch.schema(), *table.schema());
        let times = batch.column(1).as_primitive::<types::TimestampNanosecondType>();
        assert_eq!((times.null_count(), times.timezone()), (200, Some("UTC")));
        let days = batch.column(2).as_primitive::<types::Date32Type>();
        // The same rows, chosen by a condition.
        let chosen = table.with_columns(&["at"])?.with_filter(col("id").gt(598))?;
        let batch = chosen.reader().next_batch()?.unwrap();
        assert_eq!(batch.column(0).as_ref(), &times.slice(599, 1) as &dyn Array);
        Ok::<_, tenarc::Error>((times.value(599), days.value(599)))
    };
    let day = "2024-02-29";
    for (at, nanoseconds) in [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T01:00:00.000000001+01:00", 1),
        ("1969-12-31T23:59:59.5-00:00", -500_000_000),
        ("2262-04-11T23:47:16.854775807Z", i64::MAX),
    ] {
        assert_eq!(last(at, day).unwrap(), (nanoseconds, 19_782), "{at}");
    }
    for (at, day, why) in [
        ("2026-11-28", day, "RFC 3339"),
        ("2026-11-28T00:00:00", day, "RFC 3339"),
        ("2026-11-28T00:00:00Z[UTC]", day, "RFC 3339"),
        ("2026-02-29T00:00:00Z", day, "RFC 3339"),
        ("1970-01-01T00:00:00.0000000001Z", day, "digits"),
        ("2016-12-31T23:59:60Z", day, "leap second"),
        ("2262-04-11T23:47:16.854775808Z", day, "1677"),
        ("1970-01-01T00:00:00Z", "2023-02-29", "no date"),
        ("1970-01-01T00:00:00Z", "2024-2-29", "no date"),
        ("1970-01-01T00:00:00Z", "+2024-02-29", "no date"),
        ("1970-01-01T00:00:00Z", "", "no date"),
    ] {
        let error = last(at, day).unwrap_err().to_string();
        assert!(error.contains(why) && error.contains("row 599"), "{at} {day}: {error}");
    }
    let archive = saved("x", "y");
    let table = || ArrowTable::open(&archive, "t").unwrap();
    assert!(table().with_times(&["id"]).unwrap_err().to_string().contains("UInt32"));
    assert!(table().with_dates(&["none"]).unwrap_err().to_string().contains("no such column"));
}

/// Rows of Arrow's `fixed_size_list` with nulls in some groups only are stored in several forms.
#[test]
fn tuples_and_lists_of_their_length_have_a_common_type() {
    fn put<T: Serialize>(out: &mut OArchive<Vec<u8>>, a: T) {
        #[derive(Serialize)]
        struct Row<'a, T> {
            a: &'a T,
        }
        out.save_as("t", &(0..20).map(|_| Row { a: &a }).collect::<Vec<_>>()).unwrap();
    }
    let item = |of, nullable| Arc::new(Field::new("item", of, nullable));
    let table = |a: &dyn Fn(&mut OArchive<Vec<u8>>), b: &dyn Fn(&mut OArchive<Vec<u8>>)| {
        let mut out = OArchive::new(Vec::new()).unwrap();
        a(&mut out);
        b(&mut out);
        let archive = Archive::new(out.finish().unwrap()).unwrap();
        let rows: Vec<ArrayRef> =
            batches(&archive).iter().map(|batch| batch.column(0).clone()).collect();
        (rows[0].data_type().clone(), rows)
    };
    let nulls = |out: &mut OArchive<Vec<u8>>| put(out, (Some(1u8), None::<u8>));
    let (of, rows) = table(&nulls, &|out| put(out, [7u8, 8]));
    assert_eq!(of, DataType::FixedSizeList(item(DataType::UInt8, true), 2));
    assert_eq!(rows[1].as_fixed_size_list().values().as_primitive::<UInt8Type>().value(1), 8);
    let (of, rows) = table(&|out| put(out, (1u8, 300u16)), &|out| put(out, [-1i8, 8]));
    assert_eq!(of, DataType::FixedSizeList(item(DataType::Int32, false), 2));
    assert_eq!(rows[0].as_fixed_size_list().values().as_primitive::<Int32Type>().value(1), 300);
    let (of, rows) = table(&|out| put(out, ("a", Some("b"))), &|out| put(out, vec!["c", "d", "e"]));
    assert_eq!(of, DataType::List(item(DataType::Utf8, true)));
    assert_eq!(rows[0].as_list::<i32>().value_offsets()[..3], [0, 2, 4]);
}
