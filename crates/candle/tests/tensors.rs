//! candle's tensors come back as they were, from every layout and for every dtype that both libraries have. The others
//! are refused by name.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{Debug, Display};

use candle_core::{CpuStorage, DType, Device, Storage, Tensor, Var};
use float8::F8E4M3;
use serde::{Deserialize, Serialize};
use tenarc::tensor::Order;
use tenarc::{Archive, DynTensor, OArchive};
use tenarc_candle::{CandleTensor, from_candle, to_candle};

#[derive(Serialize, Deserialize)]
struct Field {
    #[serde(with = "tenarc_candle::tensor")]
    tensor: Tensor,
}

fn le<A: tenarc::tensor::Element>(elements: &[A]) -> Vec<u8> {
    let tensor = DynTensor::from_vec(&[elements.len()], Order::C, elements.to_vec()).unwrap();
    tensor.le_bytes().into_owned()
}

/// The bytes of the elements in row-major order, and everything else that must be the same.
fn content(tensor: &Tensor) -> (DType, Vec<usize>, Vec<u8>) {
    let tensor = tensor.contiguous().unwrap();
    let (storage, layout) = tensor.storage_and_layout();
    let (start, end) = layout.contiguous_offsets().unwrap();
    let Storage::Cpu(storage) = &*storage else { panic!("not on the CPU") };
    let bytes = match storage {
        CpuStorage::U8(v) | CpuStorage::F8E8M0(v) => v[start..end].to_vec(),
        CpuStorage::U32(v) => le(&v[start..end]),
        CpuStorage::I16(v) => le(&v[start..end]),
        CpuStorage::I32(v) => le(&v[start..end]),
        CpuStorage::I64(v) => le(&v[start..end]),
        CpuStorage::BF16(v) => le(&v[start..end]),
        CpuStorage::F16(v) => le(&v[start..end]),
        CpuStorage::F32(v) => le(&v[start..end]),
        CpuStorage::F64(v) => le(&v[start..end]),
        CpuStorage::F8E4M3(v) => v[start..end].iter().map(F8E4M3::to_bits).collect(),
        other => panic!("{other:?}"),
    };
    (tensor.dtype(), tensor.dims().to_vec(), bytes)
}

/// By a message, by an archive in memory, by a file, by a mapped file, and by a reader.
#[track_caller]
fn every_way(tensor: &Tensor) {
    let expected = content(tensor);
    let field = Field { tensor: tensor.clone() };

    let message = tenarc::to_vec(&field).unwrap();
    assert_eq!(content(&tenarc::from_slice::<Field>(&message).unwrap().tensor), expected);
    assert_eq!(content(&tenarc::from_reader::<_, Field>(&message[..]).unwrap().tensor), expected);

    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(&field).unwrap();
    let bytes = out.finish().unwrap();
    let archive = Archive::new(&bytes[..]).unwrap();
    assert_eq!(content(&archive.load::<Field>().unwrap().tensor), expected);
    assert_eq!(content(&archive.tensor::<CandleTensor>("tensor").unwrap()), expected);

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tensor.tenarc");
    tenarc::save(&path, &field).unwrap();
    assert_eq!(content(&tenarc::load::<Field>(&path).unwrap().tensor), expected);
    assert_eq!(
        content(&tenarc::open(&path).unwrap().tensor::<CandleTensor>("tensor").unwrap()),
        expected
    );

    let parts = tenarc::to_parts(&field).unwrap();
    assert_eq!(content(&parts.load::<Field>().unwrap().tensor), expected);
}

const COMMON: [DType; 11] = [
    DType::U8,
    DType::U32,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::BF16,
    DType::F16,
    DType::F32,
    DType::F64,
    DType::F8E4M3,
    DType::F8E8M0,
];

/// A tensor with all sorts of bits, among them those of NaNs.
fn of_bytes(dtype: DType, shape: &[usize]) -> Tensor {
    let len = shape.iter().product::<usize>() * dtype.size_in_bytes();
    let bytes: Vec<u8> = (0..len).map(|i| u8::try_from(i * 131 % 256).unwrap()).collect();
    Tensor::from_raw_buffer(&bytes, dtype, shape, &Device::Cpu).unwrap()
}

#[test]
fn every_common_dtype_comes_back() {
    for dtype in COMMON {
        assert_eq!(to_candle(&from_candle(dtype).unwrap()), Some(dtype));
        for shape in [&[256][..], &[3, 5], &[40, 50, 2], &[], &[0, 3]] {
            every_way(&of_bytes(dtype, shape));
        }
    }
}

#[test]
fn the_bytes_are_those_of_other_tensors() {
    let tensor = of_bytes(DType::BF16, &[3, 5]);
    let (_, shape, bytes) = content(&tensor);
    let other = DynTensor::new(tenarc::DType::BF16, &shape, Order::C, bytes).unwrap();
    let ours = tenarc::to_vec(&CandleTensor(tensor)).unwrap();
    assert_eq!(ours, tenarc::to_vec(&tenarc::Tensor(other)).unwrap());
}

#[test]
fn every_layout_comes_back() {
    let tensor = Tensor::arange(0u32, 2400, &Device::Cpu).unwrap().reshape((2, 30, 40)).unwrap();
    every_way(&tensor.t().unwrap());
    every_way(&tensor.permute((2, 0, 1)).unwrap());
    every_way(&tensor.narrow(0, 1, 1).unwrap());
    every_way(&tensor.narrow(2, 3, 7).unwrap());
    every_way(&tensor.get(1).unwrap().get(3).unwrap());
    every_way(&Tensor::new(7f32, &Device::Cpu).unwrap().broadcast_as((3, 4)).unwrap());
    every_way(Var::from_tensor(&tensor).unwrap().as_tensor());
}

#[test]
fn column_major_tensors_are_read() {
    let elements: Vec<f32> = (0..6u8).map(f32::from).collect();
    let stored = DynTensor::from_vec(&[2, 3], Order::F, elements).unwrap();
    let bytes = tenarc::to_vec(&tenarc::Tensor(stored)).unwrap();
    let tensor: CandleTensor = tenarc::from_slice(&bytes).unwrap();
    assert_eq!(tensor.to_vec2::<f32>().unwrap(), [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]]);
}

#[test]
fn tensors_in_other_types_come_back() {
    #[derive(Serialize, Deserialize)]
    struct Cache {
        keys: Vec<CandleTensor>,
        mask: Option<CandleTensor>,
        none: Option<CandleTensor>,
        by_name: HashMap<String, CandleTensor>,
        sorted: BTreeMap<u32, (CandleTensor, f32)>,
        boxed: Box<CandleTensor>,
    }
    let tensor = |n: usize| CandleTensor(of_bytes(DType::F16, &[n, 70]));
    let cache = Cache {
        keys: (0..20).map(tensor).collect(),
        mask: Some(tensor(3)),
        none: None,
        by_name: HashMap::from([("a".to_owned(), tensor(1)), ("b".to_owned(), tensor(2))]),
        sorted: BTreeMap::from([(7, (tensor(4), 0.5))]),
        boxed: Box::new(tensor(5)),
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cache.tenarc");
    tenarc::save(&path, &cache).unwrap();
    let back: Cache = tenarc::load(&path).unwrap();
    let pairs =
        back.keys.iter().zip(&cache.keys).chain([(&back.by_name["b"], &cache.by_name["b"])]);
    for (found, expected) in pairs {
        assert_eq!(content(found), content(expected));
    }
    assert_eq!(back.keys.len(), 20);
    assert_eq!(content(&back.mask.unwrap()), content(&tensor(3)));
    assert!(back.none.is_none());
    assert_eq!((content(&back.sorted[&7].0), back.sorted[&7].1), (content(&tensor(4)), 0.5));
    assert_eq!(content(&back.boxed), content(&tensor(5)));
}

#[test]
fn other_formats_carry_them_too() {
    let field = Field { tensor: Tensor::new(&[[1.5f32, 2.5], [-1.0, 0.0]], &Device::Cpu).unwrap() };
    let json = serde_json::to_string(&field).unwrap();
    assert_eq!(json, r#"{"tensor":{"dtype":"f32","shape":[2,2],"data":[1.5,2.5,-1.0,0.0]}}"#);
    let back: Field = serde_json::from_str(&json).unwrap();
    assert_eq!(content(&back.tensor), content(&field.tensor));
}

#[track_caller]
fn assert_names<T>(result: Result<T, impl Debug + Display>, names: &[&str]) {
    let error = result.map(drop).expect_err("an error").to_string();
    for name in names {
        assert!(error.contains(name), "no `{name}` in: {error}");
    }
}

#[test]
fn dtypes_that_only_candle_has_are_refused_by_name() {
    for dtype in [DType::F6E2M3, DType::F6E3M2, DType::F4] {
        assert_eq!(from_candle(dtype), None);
        let tensor = Tensor::from_raw_buffer(&[1, 2], dtype, &[2], &Device::Cpu).unwrap();
        assert_names(tenarc::to_vec(&Field { tensor: tensor.clone() }), &[dtype.as_str()]);
        assert_names(tenarc::to_vec(&tenarc::Tensor(CandleTensor(tensor))), &[dtype.as_str()]);
    }
}

#[test]
fn dtypes_that_only_tenarc_has_are_refused_by_name() {
    let names = ["bool", "u16", "u64", "i8", "c64", "f8_e5m2", "posit8"];
    for name in names {
        let dtype = tenarc::DType::from_name(name);
        assert_eq!(to_candle(&dtype), None);
        let bytes = vec![1; dtype.byte_len(2).unwrap_or(5)];
        let tensor = DynTensor::new(dtype, &[2], Order::C, bytes).unwrap();
        let value = BTreeMap::from([("tensor", tenarc::Tensor(tensor))]);
        let bytes = tenarc::to_vec(&value).unwrap();
        let result = tenarc::from_slice::<Field>(&bytes).map(|field| field.tensor);
        assert_names(result, &[name, "[2]", "at `tensor`"]);
    }
}
