//! Small archives of each kind, which the tests then damage.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, CowArray, Ix1};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use tenarc::archive::SaveOptions;
use tenarc::{OArchive, Tensor};

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
pub struct Model {
    pub name: String,
    pub weight: Tensor<Array2<f32>>,
    pub tied: Tensor<Array2<f32>>,
    pub bias: Tensor<Array1<f64>>,
    pub flags: Tensor<Array1<bool>>,
    pub curve: Vec<f32>,
    pub small: Tensor<Array1<i16>>,
    pub notes: Vec<String>,
    pub blob: ByteBuf,
}

/// What borrows of a [`Model`] in memory.
#[derive(Deserialize)]
pub struct ModelView<'a> {
    name: &'a str,
    #[serde(borrow)]
    weight: Tensor<ArrayView2<'a, f32>>,
    #[serde(borrow)]
    tied: Tensor<ArrayView2<'a, f32>>,
    #[serde(borrow)]
    bias: Tensor<ArrayView1<'a, f64>>,
    #[serde(borrow)]
    flags: Tensor<ArrayView1<'a, bool>>,
    curve: Vec<f32>,
    #[serde(borrow)]
    small: Tensor<CowArray<'a, i16, Ix1>>,
    #[serde(borrow)]
    notes: Vec<&'a str>,
    #[serde(borrow)]
    blob: &'a serde_bytes::Bytes,
}

impl ModelView<'_> {
    pub fn to_model(&self) -> Model {
        Model {
            name: self.name.to_owned(),
            weight: Tensor(self.weight.0.to_owned()),
            tied: Tensor(self.tied.0.to_owned()),
            bias: Tensor(self.bias.0.to_owned()),
            flags: Tensor(self.flags.0.to_owned()),
            curve: self.curve.clone(),
            small: Tensor(self.small.0.to_owned()),
            notes: self.notes.iter().map(|&note| note.to_owned()).collect(),
            blob: ByteBuf::from(self.blob.to_vec()),
        }
    }
}

pub fn model(seed: usize) -> Model {
    let weight = Array2::from_shape_fn((3, 4), |(row, column)| (seed * 7 + row * column) as f32);
    Model {
        name: format!("model {seed}"),
        tied: Tensor(weight.clone()),
        weight: Tensor(weight),
        bias: Tensor((0..5).map(|at| f64::from(at) - 0.5 * seed as f64).collect()),
        flags: Tensor((0..33).map(|at| at % 3 == 0).collect()),
        curve: (0..10).map(|at| at as f32 * 0.25).collect(),
        small: Tensor(Array1::from(vec![1, -2, 3])),
        notes: vec!["ä first note".into(), String::new()],
        blob: ByteBuf::from((0..40).collect::<Vec<u8>>()),
    }
}

/// Everything that can go to a buffer does, but for what is really small.
pub fn options() -> SaveOptions {
    SaveOptions::default().with_alignment(64).with_inline_below(32).with_dedup(true)
}

fn written(options: SaveOptions, save: impl FnOnce(&mut OArchive<Vec<u8>>)) -> Vec<u8> {
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    save(&mut out);
    out.finish().unwrap()
}

/// One value, with paddings, tied tensors, a packed vector, and a tensor inline.
pub fn one() -> Vec<u8> {
    written(options(), |out| {
        out.save(&model(1)).unwrap();
    })
}

pub fn unchecked() -> Vec<u8> {
    written(options().with_checksums(false), |out| {
        out.save(&model(1)).unwrap();
    })
}

pub const NAMES: [&str; 3] = ["first", "", "third"];

/// Several named values.
pub fn several() -> Vec<u8> {
    written(options(), |out| {
        for (at, name) in NAMES.iter().enumerate() {
            out.save_as(name, &model(at)).unwrap();
        }
    })
}

/// A value, and one appended: two end marks.
pub fn appended() -> Vec<u8> {
    written(options(), |out| {
        out.save(&model(0)).unwrap().commit().unwrap().save(&model(1)).unwrap();
    })
}

/// More values than a directory has in its root: there is a block between them.
pub fn many() -> Vec<u8> {
    written(options(), |out| {
        for at in 0..66 {
            out.save_as(&format!("{at}"), &vec![at as f32; 8]).unwrap();
        }
    })
}
