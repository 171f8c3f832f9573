//! Arrays of a map as the columns of a table.

use ndarray::{Array1, Array2, Array3, array};
use serde::{Deserialize, Serialize};
use tenarc::tensor::Order;
use tenarc::types::{TimeUnit, TypeName, Typed};
use tenarc::{Archive, DType, DynTensor, OArchive, Tensor, Value};
use tenarc_convert::ArrayTable;

fn archive(value: &impl Serialize) -> Archive<Vec<u8>> {
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save_as("t", value).unwrap();
    Archive::new(out.finish().unwrap()).unwrap()
}

/// The table of arrays, and what is lost.
fn table(value: &impl Serialize) -> (Archive<Vec<u8>>, Vec<String>) {
    let arrays = archive(value);
    let table = ArrayTable::of(&arrays.segment(0).unwrap()).unwrap();
    let lost = table.losses().listed().iter().map(ToString::to_string).collect();
    let saved = archive(&table);
    assert_eq!(saved.table("t").unwrap().len(), table.len() as u64);
    (saved, lost)
}

fn tensor(dtype: DType, shape: &[usize], order: Order, bytes: Vec<u8>) -> Value {
    Value::Tensor(Box::new(DynTensor::new(dtype, shape, order, bytes).unwrap()))
}

fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    entries.into_iter().collect()
}

#[test]
fn every_dtype_is_a_column_of_its_rows() {
    for rows in [1, 2, 300] {
        for (dtype, len) in [
            (DType::Bool, 1),
            (DType::U8, 1),
            (DType::U16, 2),
            (DType::U32, 4),
            (DType::U64, 8),
            (DType::I8, 1),
            (DType::I16, 2),
            (DType::I32, 4),
            (DType::I64, 8),
            (DType::F16, 2),
            (DType::BF16, 2),
            (DType::F32, 4),
            (DType::F64, 8),
            (DType::F128, 16),
            (DType::C64, 8),
            (DType::C128, 16),
        ] {
            let bytes = |each: usize| -> Vec<u8> {
                let most = if dtype == DType::Bool { 2 } else { 251 };
                (0..most).cycle().take(rows * each * len).collect()
            };
            let value = map([
                ("flat", tensor(dtype.clone(), &[rows], Order::C, bytes(1))),
                ("deep", tensor(dtype.clone(), &[rows, 2, 3], Order::C, bytes(6))),
            ]);
            let (saved, lost) = table(&value);
            assert_eq!(lost, [""; 0]);
            let saved = saved.table("t").unwrap();
            for (name, each) in [("flat", 1), ("deep", 6)] {
                let Tensor(found): Tensor<DynTensor> = saved.column(name).unwrap();
                assert_eq!(found.dtype(), &dtype, "{name}");
                assert_eq!(*found.le_bytes(), bytes(each), "{dtype} {name}");
            }
        }
    }
}

#[test]
fn rows_are_those_of_a_tensor_in_another_order() {
    #[derive(Serialize)]
    struct Arrays {
        deep: Tensor<Array3<u16>>,
    }
    let deep = Array1::from_iter(0u16..24).into_shape_with_order((4, 2, 3)).unwrap();
    let turned = deep.t().as_standard_layout().into_owned().reversed_axes();
    assert!(!turned.is_standard_layout());
    let (saved, _) = table(&Arrays { deep: turned.into() });
    let found: Tensor<Array3<u16>> = saved.table("t").unwrap().column("deep").unwrap();
    assert_eq!(*found, deep);
}

#[test]
fn texts_nulls_types_and_structs_are_columns() {
    #[derive(Serialize)]
    struct Inner {
        x: Vec<f32>,
        name: Vec<&'static str>,
    }
    #[derive(Serialize)]
    struct Arrays<'a> {
        id: Tensor<Array1<u32>>,
        text: Vec<Option<&'static str>>,
        day: Typed<'a, Tensor<Array1<i64>>>,
        at: Vec<Option<Typed<'a, i64>>>,
        lists: Vec<Vec<u8>>,
        inner: Inner,
        other: Tensor<Array1<u32>>,
        number: u8,
    }
    #[derive(Deserialize, PartialEq, Debug)]
    struct InnerRow {
        x: f32,
        name: String,
    }
    #[derive(Deserialize, PartialEq, Debug)]
    struct Row {
        id: u32,
        text: Option<String>,
        day: i64,
        at: Option<i64>,
        lists: Vec<u8>,
        inner: InnerRow,
    }
    let (date, time) =
        (TypeName::date(), TypeName::timestamp(TimeUnit::Millisecond, "UTC").unwrap());
    let days = Tensor(array![1i64, 2, 3]);
    let arrays = Arrays {
        id: array![7, 8, 9].into(),
        text: vec![Some("a"), None, Some("ü")],
        day: Typed::new(&date, &days),
        at: vec![None, Some(Typed::new(&time, &5)), Some(Typed::new(&time, &6))],
        lists: vec![vec![], vec![1], vec![1, 2, 3]],
        inner: Inner { x: vec![0.5, 1.5, 2.5], name: vec!["p", "q", "r"] },
        other: array![1, 2].into(),
        number: 3,
    };
    let (saved, lost) = table(&arrays);
    assert_eq!(
        lost,
        [
            "`other`: it has 2 rows, and the table has 3: it is left out",
            "`number`: it is no array with a row for each row of the table: it is left out",
        ]
    );
    let saved = saved.table("t").unwrap();
    assert_eq!(
        saved.row::<Row>(2).unwrap(),
        Row {
            id: 9,
            text: Some("ü".into()),
            day: 3,
            at: Some(6),
            lists: vec![1, 2, 3],
            inner: InnerRow { x: 2.5, name: "r".into() },
        }
    );
    let of = |path: &str| {
        let columns = saved.columns().unwrap();
        let column = columns.iter().find(|column| column.path() == path);
        let column = column.unwrap_or_else(|| panic!("{columns:?}"));
        (column.type_name().cloned(), column.is_optional())
    };
    assert_eq!(of("day"), (Some(date.clone()), false));
    assert_eq!(of("at"), (Some(time.clone()), true));
    assert_eq!(of("text"), (None, true));
    assert_eq!(of("id"), (None, false));
}

/// As in the files of anndata.
#[test]
fn categories_and_masks_are_columns() {
    let codes = || tensor(DType::I8, &[4], Order::C, vec![1, 0xff, 0, 1]);
    let names = || Value::from(["b", "a", "unused"]);
    let value = map([
        ("id", tensor(DType::U8, &[4], Order::C, vec![1, 2, 3, 4])),
        ("kind", map([("categories", names()), ("codes", codes())])),
        (
            "count",
            map([
                ("values", tensor(DType::U8, &[4], Order::C, vec![5, 6, 7, 8])),
                ("mask", tensor(DType::Bool, &[4], Order::C, vec![0, 1, 0, 0])),
            ]),
        ),
        (
            "size",
            map([
                ("categories", tensor(DType::U8, &[2], Order::C, vec![10, 20])),
                ("codes", tensor(DType::U8, &[4], Order::C, vec![1, 1, 0, 1])),
            ]),
        ),
        // Its only array is no column.
        ("inner", map([("half", tensor(DType::from_name("u4"), &[4], Order::C, vec![0; 2]))])),
        (
            "wrong",
            map([
                ("categories", names()),
                ("codes", tensor(DType::I8, &[4], Order::C, vec![0, 1, 2, 3])),
            ]),
        ),
    ]);
    let (saved, lost) = table(&value);
    assert_eq!(
        lost,
        [
            "`inner.half`: the bits of a row are no whole bytes: it is left out",
            "`inner`: none of its arrays is a column: it is left out",
            "`wrong`: its codes are not all -1 or numbers below 3: it is left out",
        ]
    );
    let saved = saved.table("t").unwrap();
    let kinds: Vec<Option<String>> = saved.column("kind").unwrap();
    assert_eq!(kinds, [Some("a".into()), None, Some("b".into()), Some("a".into())]);
    let counts: Vec<Option<u8>> = saved.column("count").unwrap();
    assert_eq!(counts, [Some(5), None, Some(7), Some(8)]);
    let sizes: Tensor<Vec<u8>> = saved.column("size").unwrap();
    assert_eq!(*sizes, [20, 20, 10, 20]);
    let columns = saved.columns().unwrap();
    let kind = columns.iter().find(|column| column.path() == "kind").unwrap();
    assert_eq!(kind.type_name().map(TypeName::name), Some("category"));
}

/// numpy has a number for a missing time, and a table has null.
#[test]
fn missing_times_are_null() {
    let times = |name: &str, unit: &str, numbers: [i64; 3]| {
        let of = TypeName::new(name, vec![tenarc::types::Parameter::Text(unit.into())]).unwrap();
        let tensor = Tensor(Array1::from_iter(numbers));
        archive(&std::collections::BTreeMap::from([("a", Typed::new(&of, &tensor))]))
    };
    let missing = i64::MIN;
    let seconds = TypeName::timestamp(TimeUnit::Second, "").unwrap();
    for (name, unit, numbers, of) in [
        ("datetime64", "s", [5, missing, 7], Some(seconds)),
        ("datetime64", "D", [5, missing, 7], Some(TypeName::date())),
        ("timedelta64", "ms", [5, missing, 7], Some(TypeName::duration(TimeUnit::Millisecond))),
        ("datetime64", "D", [5, missing, 1 << 40], None),
        ("datetime64", "W", [5, missing, 7], None),
    ] {
        let arrays = times(&format!("numpy.org/{name}"), unit, numbers);
        let table = ArrayTable::of(&arrays.segment(0).unwrap()).unwrap();
        let saved = archive(&table);
        let saved = saved.table("t").unwrap();
        let columns = saved.columns().unwrap();
        assert_eq!(columns[0].is_optional(), of.is_some(), "{name} {unit}");
        if of.is_some() {
            assert_eq!(columns[0].type_name(), of.as_ref());
            let found: Vec<Option<i64>> = saved.column("a").unwrap();
            assert_eq!(found, [Some(5), None, Some(7)]);
        } else {
            assert_eq!(saved.column::<Vec<i64>>("a").unwrap(), numbers);
        }
    }
}

#[test]
fn what_has_no_arrays_is_no_table() {
    let refused = |value: Value, why: &str| {
        let arrays = archive(&value);
        let error = ArrayTable::of(&arrays.segment(0).unwrap()).unwrap_err();
        assert_eq!(error.category(), tenarc::error::Category::Mismatch);
        assert!(error.to_string().contains(why), "{error}");
    };
    refused(Value::from(5), "expected a map of arrays, found another value");
    refused(map([("a", 5.into())]), "expected a map of arrays, found no array in the map");
    refused(map([]), "found no array");
    let zero = tensor(DType::F32, &[], Order::C, vec![0; 4]);
    refused(map([("a", zero)]), "found no array");
    let ones: Array2<f32> = Array2::ones((0, 3));
    let (saved, lost) = table(&map([("a", Value::Tensor(Box::new(ones.into())))]));
    assert!(saved.table("t").unwrap().is_empty());
    assert_eq!(lost.len(), 1);
    assert!(lost[0].contains("there are no rows"), "{lost:?}");
}

#[test]
fn rows_of_several_kinds_are_kept() {
    let mixed = || [1.into(), "one".into(), Value::Array(vec![Value::Bool(true)])];
    let (saved, lost) = table(&map([("a", Value::Array(mixed().into()))]));
    assert_eq!(lost, [""; 0]);
    let found: Vec<Value> = saved.table("t").unwrap().column("a").unwrap();
    assert_eq!(found, mixed());
}
