//! A tensor was read from an array of numbers, but not from the columns that stand for it. An empty one had another dtype
//! in a row than in an array.

use serde::{Deserialize, Serialize};
use tenarc::tensor::DType;
use tenarc::{DynTensor, Tensor};
use tenarc_test_support::unhex;

#[test]
fn columns_of_numbers_are_a_tensor() {
    // One row, an f32.
    let columns = unhex("da 54434f4c 82 01 d8554400000000");
    assert_eq!(tenarc::from_slice::<Vec<f32>>(&columns).unwrap(), [0.0]);
    assert_eq!(*tenarc::from_slice::<Tensor<Vec<f32>>>(&columns).unwrap(), [0.0]);
    assert_eq!(*tenarc::from_reader::<_, Tensor<Vec<f64>>>(&columns[..]).unwrap(), [0.0]);
    let any = tenarc::from_slice::<Tensor<DynTensor>>(&columns).unwrap();
    assert_eq!((any.dtype(), any.shape()), (&DType::F32, &[1][..]));
    // Two groups of different integers, and bools.
    let groups = unhex("da 54434f4c 84 01 d8404107 02 d84544 0001 0200");
    assert_eq!(*tenarc::from_slice::<Tensor<Vec<i32>>>(&groups).unwrap(), [7, 256, 2]);
    let bools = unhex("da 54434f4c 82 02 82 64626f6f6c 4101");
    assert_eq!(*tenarc::from_slice::<Tensor<Vec<bool>>>(&bools).unwrap(), [true, false]);
    let texts = unhex("da 54434f4c 82 01 83 6474657874 01 6161");
    let error = tenarc::from_slice::<Tensor<DynTensor>>(&texts).unwrap_err();
    assert!(error.to_string().contains("expected a number of at most 64 bits"), "{error}");
}

/// An array, a packed sequence and a list in columns give the same tensor.
#[test]
fn dtypes_do_not_depend_on_the_form() {
    #[derive(Serialize)]
    struct Saved {
        id: u8,
        list: Vec<f32>,
        counts: Vec<u16>,
    }
    #[derive(Deserialize)]
    struct Read {
        id: u8,
        list: Tensor<DynTensor>,
        counts: Tensor<DynTensor>,
    }
    for len in [0, 1, 3, 8, 20] {
        let saved = |id| Saved { id, list: vec![0.5; len], counts: vec![1; len] };
        let rows: Vec<Saved> = (0..20).map(saved).collect();
        let mut found = Vec::new();
        for options in [(false, false), (true, false), (false, true), (true, true)] {
            let options = tenarc::ser::EncodeOptions::default()
                .with_typed_arrays(options.0)
                .with_columns(options.1);
            let bytes = tenarc::ser::to_vec_with(&rows, options).unwrap();
            let read: Vec<Read> = tenarc::from_slice(&bytes).unwrap();
            assert_eq!(read[7].id, 7);
            found.push((read[7].list.0.clone(), read[7].counts.0.clone()));
            let value: tenarc::Value = tenarc::from_slice(&bytes).unwrap();
            let read: Vec<Read> = tenarc::from_value(value).unwrap();
            found.push((read[7].list.0.clone(), read[7].counts.0.clone()));
        }
        for other in &found {
            assert_eq!(other, &found[0], "{len}");
        }
        let dtype = if len == 0 { DType::I64 } else { DType::F32 };
        assert_eq!(found[0].0.dtype(), &dtype);
    }
}

/// A sequence is read as a tensor of another dtype if that is exact, whether it is packed or not.
#[test]
fn sequences_of_any_length_are_tensors() {
    for len in [1, 3, 100, 5000] {
        let mut out = tenarc::OArchive::new(Vec::new()).unwrap();
        out.save(&(vec![0.5f32; len], vec![7u32; len])).unwrap();
        let archive = tenarc::Archive::new(out.finish().unwrap()).unwrap();
        let (floats, counts): (Tensor<Vec<f64>>, Tensor<Vec<i64>>) = archive.load().unwrap();
        assert_eq!((floats[0], counts[0]), (0.5, 7));
    }
}
