//! Files that are written as `torch.save` writes them. `written.pt` was read by torch 2.15.0 with `weights_only=True`, also
//! mapped: `fixtures/torch/check_written.py` says what it found.

use tenarc::tensor::Order;
use tenarc::value::{Numbers, from_value};
use tenarc::{DType, DynTensor, OArchive, Tensor, Value};
use tenarc_convert::{Format, Names, Options, TensorFile as _, torch};

use super::support::fixtures;

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn tensor(dtype: DType, shape: &[usize], order: Order) -> DynTensor {
    let count: usize = shape.iter().product();
    // Bools have one bit, the others all of theirs.
    let most = if dtype == DType::Bool { 2 } else { 251 };
    let bytes = (0..count * dtype.bits().unwrap() / 8).map(|at| (at * 37 % most) as u8).collect();
    DynTensor::new(dtype, shape, order, bytes).unwrap()
}

const DTYPES: [DType; 20] = [
    DType::Bool,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::F64,
    DType::C64,
    DType::C128,
    DType::F8E5M2,
    DType::F8E4M3,
    DType::F8E5M2Fnuz,
    DType::F8E4M3Fnuz,
    DType::F8E8M0,
];

/// Values of the kinds that are read back.
fn value() -> Value {
    let tensors = DTYPES.iter().map(|dtype| {
        let tensor = tensor(dtype.clone(), &[2, 3], Order::C);
        (text(dtype.name()), Value::Tensor(Box::new(tensor)))
    });
    let of = |shape: &[usize], order| Value::Tensor(Box::new(tensor(DType::F32, shape, order)));
    let integers = [0, -1, 255, -129, i128::from(i32::MAX), i128::from(i64::MIN), i128::MAX];
    let integers = integers.into_iter().map(Value::Integer);
    let floats = [0.5, -0.0, 1e300, f64::INFINITY].map(Value::F64);
    Value::Map(vec![
        (text("dtypes"), Value::Map(tensors.collect())),
        (text("turned"), of(&[3, 4, 5], Order::F)),
        (text("scalar"), of(&[], Order::C)),
        (text("empty"), of(&[0, 7], Order::C)),
        (text("integers"), Value::Array(integers.collect())),
        (text("floats"), Value::Array(floats.to_vec())),
        (text("single"), Value::F32(0.5)),
        (text("numbers"), Value::Numbers(Box::new(Numbers::from((0..300u16).collect::<Vec<_>>())))),
        (text("bytes"), Value::Bytes((0..=255).collect())),
        (text("texts"), Value::Array(vec![text(""), text("ü\n\0\u{10348}"), Value::Null])),
        (Value::Integer(7), Value::Bool(true)),
        (text("none"), Value::Array(vec![Value::Array(Vec::new()), Value::Map(Vec::new())])),
    ])
}

/// Values of all kinds that Python has.
fn all_values() -> Value {
    let Value::Map(mut entries) = value() else { panic!() };
    let big = |tag| Value::Tag(tag, Box::new(Value::Bytes(vec![0xff; 20])));
    entries.extend([
        (text("big"), Value::Array(vec![big(2), big(3)])),
        (Value::Null, Value::Null),
        (Value::F64(0.5), Value::Bool(true)),
        (Value::Bool(false), Value::Bool(false)),
        (Value::Bytes(vec![1, 255]), text("key")),
    ]);
    Value::Map(entries)
}

fn saved(value: &impl serde::Serialize) -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tenarc");
    tenarc::save(&path, value).unwrap();
    (dir, path)
}

/// Writes a value, and reads it back.
fn there_and_back(value: &impl serde::Serialize) -> (Value, Value) {
    let (dir, from) = saved(value);
    let (there, back) = (dir.path().join("b.pt"), dir.path().join("c.tenarc"));
    let options = Options::default().with_names(Names::Stored);
    assert!(Format::Torch.from_archive(&from, &there, &options).unwrap().is_empty());
    assert!(Format::Torch.to_archive(&there, &back, &options).unwrap().is_empty());
    (tenarc::load(&from).unwrap(), tenarc::load(&back).unwrap())
}

#[test]
fn values_come_back_from_torch() {
    let (before, after) = there_and_back(&value());
    let Value::Map(before) = before else { panic!() };
    let Value::Map(after) = after else { panic!() };
    assert_eq!(before.len(), after.len());
    for ((key, value), (found_key, found)) in before.iter().zip(&after) {
        assert_eq!(key, found_key);
        // Python has one type of floats, and lists of numbers have no type.
        match value {
            Value::F32(number) => assert_eq!(*found, Value::F64((*number).into())),
            Value::Numbers(_) => {
                let list = |value: &Value| -> Vec<f64> { from_value(value.clone()).unwrap() };
                assert_eq!(list(value), list(found), "{key:?}");
            }
            value => assert_eq!(value, found, "{key:?}"),
        }
    }
    assert_eq!(there_and_back(&Tensor(tensor(DType::I32, &[5], Order::C))).1, {
        Value::Tensor(Box::new(tensor(DType::I32, &[5], Order::C)))
    });
    assert_eq!(there_and_back(&7).1, Value::Integer(7));
}

/// What torch has read once is still written so.
#[test]
fn the_file_is_one_that_torch_has_read() {
    let (dir, from) = saved(&all_values());
    let path = dir.path().join("written.pt");
    Format::Torch.from_archive(&from, &path, &Options::default()).unwrap();
    let expected = fixtures().join("written.pt");
    if std::env::var_os("TENARC_WRITE_FIXTURES").is_some() {
        std::fs::copy(&path, &expected).unwrap();
    }
    assert!(std::fs::read(&path).unwrap() == std::fs::read(expected).unwrap());
}

#[test]
fn checkpoints_of_torch_go_through_an_archive() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    for name in ["checkpoint.pt", "dtypes.pt", "views.pt", "list.pt", "tied.pt", "legacy.pt"] {
        let options = Options::default();
        Format::Torch.to_archive(fixtures().join(name), path("a.tenarc"), &options).unwrap();
        Format::Torch.from_archive(path("a.tenarc"), path("b.pt"), &options).unwrap();
        Format::Torch.to_archive(path("b.pt"), path("c.tenarc"), &options).unwrap();
        let value = |name: &str| tenarc::load::<Value>(path(name)).unwrap();
        assert_eq!(value("a.tenarc"), value("c.tenarc"), "{name}");
        // Without an archive between them, too.
        let file = Format::Torch.open(fixtures().join(name), &options).unwrap();
        Format::Torch.save(&file, path("d.pt"), &options).unwrap();
        let bytes = |name: &str| std::fs::read(path(name)).unwrap();
        assert_eq!(bytes("b.pt") == bytes("d.pt"), name != "tied.pt", "{name}");
    }
    // Tensors that are tied still are.
    assert!(torch::open(path("b.pt")).unwrap().tensors().len() > 1);
}

#[test]
fn tied_tensors_share_a_storage() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let options = Options::default();
    Format::Torch.to_archive(fixtures().join("tied.pt"), path("a.tenarc"), &options).unwrap();
    Format::Torch.from_archive(path("a.tenarc"), path("b.pt"), &options).unwrap();
    assert!(torch::open(path("b.pt")).unwrap().has_tied_tensors());
}

#[test]
fn what_python_lacks_is_a_loss() {
    let wide = tensor(DType::F32, &[4], Order::C);
    let lost = Value::Map(vec![
        (text("w"), Value::Tensor(Box::new(wide))),
        (
            text("quad"),
            Value::Tensor(Box::new(
                DynTensor::new(DType::F128, &[1], Order::C, vec![0; 16]).unwrap(),
            )),
        ),
        (text("tag"), Value::Tag(4711, Box::new(Value::Integer(1)))),
        (text("simple"), Value::Simple(99)),
        (Value::Array(Vec::new()), Value::Null),
        (Value::Integer(1), text("one")),
        (Value::Bool(true), text("true")),
        (Value::F64(1.0), text("1.0")),
    ]);
    let (dir, from) = saved(&lost);
    let to = dir.path().join("b.pt");
    let error = Format::Torch.from_archive(&from, &to, &Options::default()).unwrap_err();
    assert!(error.to_string().contains("torch has no dtype f128"), "{error}");
    assert!(!to.exists());
    let options = Options::default().with_losses(true);
    let losses = Format::Torch.from_archive(&from, &to, &options).unwrap();
    assert_eq!(losses.count(), 6, "{losses}");
    let file = torch::open(&to).unwrap();
    assert_eq!(file.tensor::<Vec<f32>>("w").unwrap().len(), 4);
}

#[test]
fn long_sequences_of_numbers_are_tensors() {
    let long: Vec<u32> = (0..70_000).collect();
    let (dir, from) = saved(&std::collections::BTreeMap::from([("long", &long)]));
    let to = dir.path().join("b.pt");
    let losses = Format::Torch.from_archive(&from, &to, &Options::default()).unwrap();
    assert!(losses.is_empty() && losses.notes().iter().any(|note| note.contains("tensors")));
    assert_eq!(torch::open(&to).unwrap().tensor::<Vec<u32>>("long").unwrap(), long);
    // Rows are dicts.
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(&vec![("a", 1.5f32); 3]).unwrap();
    let (before, after) = there_and_back(&vec![std::collections::BTreeMap::from([("x", 1u8)]); 3]);
    assert_eq!(before, after);
}
