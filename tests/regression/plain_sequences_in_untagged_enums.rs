//! In an untagged enum, a plain `Vec<f32>` came back as a tensor of doubles where the tensor's variant
//! stood first.

use ndarray::{Array1, Array2, array};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tenarc::ser::EncodeOptions;
use tenarc::{DynTensor, Tensor};

macro_rules! untagged {
    ($($name:ident $first:ident $first_type:ty, $second:ident $second_type:ty;)*) => {$(
        #[derive(Serialize, Deserialize, PartialEq, Debug)]
        #[serde(untagged)]
        enum $name {
            $first($first_type),
            $second($second_type),
        }
    )*};
}

untagged! {
    DoublesFirst Tensor Tensor<Array1<f64>>, Plain Vec<f32>;
    DoublesLast Plain Vec<f32>, Tensor Tensor<Array1<f64>>;
    SinglesFirst Tensor Tensor<Array1<f32>>, Plain Vec<f32>;
    SinglesLast Plain Vec<f32>, Tensor Tensor<Array1<f32>>;
    AnyFirst Tensor Tensor<DynTensor>, Plain Vec<f32>;
    AnyLast Plain Vec<f32>, Tensor Tensor<DynTensor>;
    VecFirst Tensor Tensor<Vec<u32>>, Plain Vec<u32>;
}

#[track_caller]
fn comes_back<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) {
    for packed in [false, true] {
        let options = EncodeOptions::default().with_typed_arrays(packed);
        let bytes = tenarc::ser::to_vec_with(value, options).unwrap();
        assert_eq!(tenarc::from_slice::<T>(&bytes).unwrap(), *value);
        assert_eq!(tenarc::from_reader::<_, T>(&bytes[..]).unwrap(), *value);
    }
    assert_eq!(tenarc::from_value::<T>(tenarc::to_value(value).unwrap()).unwrap(), *value);
    let archive = tenarc::Archive::new(archived(value)).unwrap();
    assert_eq!(archive.load::<T>().unwrap(), *value);
    let json = serde_json::to_string(value).unwrap();
    assert_eq!(serde_json::from_str::<T>(&json).unwrap(), *value);
}

fn archived<T: Serialize>(value: &T) -> Vec<u8> {
    let mut out = tenarc::OArchive::new(Vec::new()).unwrap();
    out.save(value).unwrap();
    out.finish().unwrap()
}

#[test]
fn sequences_and_tensors_come_back_as_what_they_were() {
    for len in [0, 1, 3, 50, 5000] {
        let plain: Vec<f32> = (0..len).map(|n: u16| f32::from(n) / 7.0).collect();
        let wide = || Array1::from_iter((0..len).map(|n| f64::from(n) / 8.0));
        let singles = || Array1::from_vec(plain.clone());
        comes_back(&DoublesFirst::Plain(plain.clone()));
        comes_back(&DoublesFirst::Tensor(wide().into()));
        comes_back(&DoublesLast::Plain(plain.clone()));
        comes_back(&DoublesLast::Tensor(wide().into()));
        comes_back(&SinglesFirst::Plain(plain.clone()));
        comes_back(&SinglesFirst::Tensor(singles().into()));
        comes_back(&SinglesLast::Plain(plain.clone()));
        comes_back(&SinglesLast::Tensor(singles().into()));
        comes_back(&AnyFirst::Plain(plain.clone()));
        comes_back(&AnyFirst::Tensor(Tensor(singles().into())));
        comes_back(&AnyLast::Plain(plain.clone()));
        comes_back(&AnyLast::Tensor(Tensor(wide().into())));
        comes_back(&VecFirst::Plain((0..len.into()).collect()));
        comes_back(&VecFirst::Tensor(Tensor((0..len.into()).collect())));
    }
    comes_back(&AnyFirst::Tensor(Tensor(Array2::<u8>::zeros((2, 3)).into())));
    comes_back(&AnyLast::Tensor(Tensor(Array2::<u8>::zeros((2, 3)).into())));
}

/// Where serde buffers nothing, a field that was a `Vec` is still read as a tensor.
#[test]
fn a_vec_that_became_a_tensor_is_read() {
    #[derive(Serialize)]
    struct Before {
        weight: Vec<f32>,
    }
    #[derive(Deserialize)]
    struct After {
        weight: Tensor<Array1<f32>>,
    }
    let before = Before { weight: vec![0.1, 0.2, 0.3] };
    let expected = array![0.1f32, 0.2, 0.3];
    let after: After = tenarc::from_slice(&tenarc::to_vec(&before).unwrap()).unwrap();
    assert_eq!(*after.weight, expected);
    let after: After = tenarc::from_value(tenarc::to_value(&before).unwrap()).unwrap();
    assert_eq!(*after.weight, expected);
}
