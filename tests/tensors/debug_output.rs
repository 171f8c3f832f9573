//! `Debug` output is short, however large the data is.

use ndarray::Array2;
use tenarc::de::Deserializer;
use tenarc::io::SharedBytes;
use tenarc::tensor::{DynView, Order, SharedTensor};
use tenarc::value::{Numbers, RawValue};
use tenarc::{DType, DynTensor, Tensor, Value};

/// A tensor of f32 with this many columns: 0.0, 1.0 and so on.
fn rows(columns: usize, order: Order) -> DynTensor {
    let numbers = (0..2 * columns).map(|n| n as f32).collect();
    DynTensor::from_vec::<f32>(&[2, columns], order, numbers).unwrap()
}

#[test]
fn tensors_show_at_most_eight_elements() {
    assert_eq!(
        format!("{:?}", rows(4, Order::F)),
        "DynTensor { dtype: F32, shape: [2, 4], order: F, \
         elements: [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0] }"
    );
    assert_eq!(
        format!("{:?}", rows(1000, Order::C)),
        "DynTensor { dtype: F32, shape: [2, 1000], order: C, \
         elements: [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, ..] }"
    );
    let empty = DynTensor::new(DType::U8, &[0], Order::C, Vec::new()).unwrap();
    assert_eq!(format!("{empty:?}"), "DynTensor { dtype: U8, shape: [0], order: C, elements: [] }");
}

#[test]
fn dtypes_without_a_rust_type_show_bytes() {
    let packed = DynTensor::new(DType::F4, &[20], Order::C, vec![0x21; 10]).unwrap();
    let shown = "dtype: F4, shape: [20], order: C, bytes: [33, 33, 33, 33, 33, 33, 33, 33, ..] }";
    assert_eq!(format!("{packed:?}"), format!("DynTensor {{ {shown}"));
    let view = DynView::new(DType::F4, &[20], Order::C, &[0x21; 10]).unwrap();
    assert_eq!(
        format!("{view:?}"),
        "DynView { dtype: F4, shape: [20], order: C, bytes: [33, 33, 33, 33, 33, 33, 33, 33, ..] }"
    );
}

#[test]
fn views_and_shared_tensors_show_elements_at_any_address() {
    let bytes = [&[0xff][..], &rows(10, Order::C).le_bytes()].concat();
    let shown = "dtype: F32, shape: [2, 10], order: C, \
                 elements: [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, ..] }";
    let view = DynView::new(DType::F32, &[2, 10], Order::C, &bytes[1..]).unwrap();
    assert_eq!(format!("{view:?}"), format!("DynView {{ {shown}"));

    let memory = SharedBytes::from_owner(bytes[1..].to_vec());
    let shared = SharedTensor::new(DType::F32, &[2, 10], Order::C, memory).unwrap();
    assert_eq!(format!("{shared:?}"), format!("SharedTensor {{ {shown}"));
    let own: Tensor<SharedTensor> =
        tenarc::from_slice(&tenarc::to_vec(&Tensor(rows(10, Order::C))).unwrap()).unwrap();
    assert_eq!(format!("{own:?}"), format!("Tensor(SharedTensor {{ {shown})"));
}

#[test]
fn sequences_of_numbers_show_their_length_and_at_most_eight() {
    let numbers = Numbers::from((0..9u16).collect::<Vec<_>>());
    assert_eq!(
        format!("{numbers:?}"),
        "Numbers { dtype: U16, len: 9, elements: [0, 1, 2, 3, 4, 5, 6, 7, ..] }"
    );
    let flags = Numbers::from(vec![true, false]);
    assert_eq!(format!("{flags:?}"), "Numbers { dtype: Bool, len: 2, elements: [true, false] }");
}

#[test]
fn values_show_long_byte_strings_and_tensors_in_part() {
    let value = Value::from_iter([
        ("bytes", Value::Bytes(vec![7; 1000])),
        ("tensor", rows(1000, Order::C).into()),
        ("tag", Value::Tag(1, Box::new(Value::Simple(23)))),
        ("list", vec![Value::Null, true.into(), 1.into(), 0.5f32.into(), 0.5f64.into()].into()),
    ]);
    let sevens = "7, ".repeat(64);
    assert_eq!(
        format!("{value:?}"),
        format!(
            r#"Map([(Text("bytes"), Bytes([{sevens}..])), (Text("tensor"), Tensor({:?})), "#,
            rows(1000, Order::C)
        ) + r#"(Text("tag"), Tag(1, Simple(23))), (Text("list"), Array([Null, Bool(true), "#
            + "Integer(1), F32(0.5), F64(0.5)]))])"
    );
    assert_eq!(format!("{:?}", Value::Bytes(vec![1, 2])), "Bytes([1, 2])");
}

#[test]
fn raw_values_show_notation_unless_they_are_long() {
    let short = tenarc::to_vec(&("a", 1)).unwrap();
    assert_eq!(format!("{:?}", RawValue::from_bytes(&short).unwrap()), r#"RawValue(["a", 1])"#);
    let long = tenarc::to_vec(&vec![1u8; 2000]).unwrap();
    assert_eq!(
        format!("{:?}", RawValue::from_bytes(&long).unwrap()),
        "RawValue { len: 2003, bytes: [153, 7, 208, 1, 1, 1, 1, 1, ..] }"
    );
}

#[test]
fn wrapped_arrays_show_the_start_of_their_own_output() {
    assert_eq!(format!("{:?}", Tensor(vec![0.5f32, 1.0])), "Tensor([0.5, 1.0])");
    assert_eq!(format!("{:.2?}", Tensor(vec![0.5f32, 1.0])), "Tensor([0.50, 1.00])");
    let matrix = Array2::<f32>::eye(2);
    assert_eq!(format!("{:?}", Tensor(matrix.clone())), format!("Tensor({matrix:?})"));

    // 1,000 to 1,099 take six characters each: 333 of them fit in 2,000.
    let long = Tensor((1000..1_001_000u32).map(|n| 1000 + n % 100).collect::<Vec<_>>());
    let shown = format!("{long:?}");
    assert!(shown.starts_with("Tensor([1000, 1001, 1002, "), "{shown}");
    assert!(shown.ends_with(", 1031, 1032, ..)"), "{shown}");
    assert!(shown.len() <= 2020, "{}", shown.len());
    let pretty = format!("{long:#?}");
    assert!(pretty.starts_with("Tensor(\n    [\n        1000,\n"), "{pretty}");
    assert!(pretty.ends_with(", ..,\n)"), "{pretty}");
}

#[test]
fn a_failing_debug_of_an_array_still_fails() {
    struct Fails;
    impl std::fmt::Debug for Fails {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            Err(std::fmt::Error)
        }
    }
    use std::fmt::Write;
    assert!(write!(String::new(), "{:?}", Tensor(Fails)).is_err());
}

#[test]
fn deserializers_do_not_show_their_input() {
    let bytes = tenarc::to_vec(&vec![1u8; 100_000]).unwrap();
    let shown = format!("{:?}", Deserializer::from_slice(&bytes));
    assert!(shown.contains("SliceRead { len: 100005, left: 100005, .. }"), "{shown}");
    let shown = format!("{:?}", Deserializer::from_reader(&bytes[..]));
    assert!(shown.contains("IoRead { offset: 0, .. }"), "{shown}");
}
