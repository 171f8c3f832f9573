//! (a) encodes and decodes model structs of 10 MB and 200 MB.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use serde::{Deserialize, Serialize};
use tenarc::Tensor;

use crate::bytes;
use crate::data::Random;
use crate::harness::{Case, Column, Effort, MESSAGES, Placed, Report, Row, timed};
use crate::native::{bitcode_row, rkyv_rows};
use crate::peers::{self, Codec, Lender, borrowed};
use crate::recorder::Recorder;
use crate::table::print_report;
use crate::targets::Targets;

/// Both models have the same number of layers, so that the times for decoding to views can be compared.
pub const LAYERS: usize = 40;

#[derive(
    Clone,
    PartialEq,
    serde::Serialize,
    serde::Deserialize,
    bitcode::Encode,
    bitcode::Decode,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub struct Config {
    name: String,
    hidden: Vec<u32>,
    activation: String,
    learning_rate: f64,
    dropout: Option<f32>,
    weight_decay: Option<f32>,
    seed: u64,
}

#[derive(
    Clone,
    PartialEq,
    serde::Serialize,
    serde::Deserialize,
    bitcode::Encode,
    bitcode::Decode,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub struct Epoch {
    epoch: u32,
    loss: f64,
    accuracy: f64,
    seconds: f32,
}

/// A model, generic over the representation of its layers.
#[derive(
    Clone,
    PartialEq,
    serde::Serialize,
    serde::Deserialize,
    bitcode::Encode,
    bitcode::Decode,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
pub struct Model<L> {
    config: Config,
    pub layers: Vec<L>,
    metrics: Vec<Epoch>,
}

impl<L> Model<L> {
    pub fn map<M>(&self, make: impl Fn(&L) -> M) -> Model<M> {
        Model {
            config: self.config.clone(),
            layers: self.layers.iter().map(make).collect(),
            metrics: self.metrics.clone(),
        }
    }
}

/// A layer whose arrays are in `Tensor`s.
///
/// A message has no padding. Here, names of 13 letters and the `bool` in the middle make the distance
/// between payloads a multiple of four. So if one payload is aligned, all are.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct TensorLayer {
    pub name: String,
    pub weight: Tensor<Array2<f32>>,
    trainable: bool,
    pub bias: Tensor<Array1<f32>>,
}

#[derive(Deserialize)]
pub struct TensorView<'a> {
    name: &'a str,
    #[serde(borrow)]
    weight: Tensor<ArrayView2<'a, f32>>,
    trainable: bool,
    #[serde(borrow)]
    bias: Tensor<ArrayView1<'a, f32>>,
}

/// The fields have attributes, and keep their types.
#[derive(PartialEq, Serialize, Deserialize)]
struct MarkedLayer {
    name: String,
    #[serde(with = "tenarc::tensor")]
    weight: Array2<f32>,
    trainable: bool,
    #[serde(with = "tenarc::tensor")]
    bias: Array1<f32>,
}

/// The arrays in ndarray's own serde form, element by element.
#[derive(PartialEq, Serialize, Deserialize)]
struct PlainLayer {
    name: String,
    weight: Array2<f32>,
    trainable: bool,
    bias: Array1<f32>,
}

/// The floats as byte strings, for formats that write those as blocks.
#[derive(PartialEq, Serialize, Deserialize)]
pub struct CastLayer {
    name: String,
    #[serde(with = "bytes::array")]
    weight: Array2<f32>,
    trainable: bool,
    #[serde(with = "bytes::array")]
    bias: Array1<f32>,
}

#[derive(Deserialize)]
struct CastView<'a> {
    name: &'a str,
    #[serde(borrow)]
    weight: bytes::array::Raw<'a>,
    trainable: bool,
    #[serde(borrow)]
    bias: bytes::array::Raw<'a>,
}

/// Shape and floats, for peers whose own derives do not support ndarray's arrays.
#[derive(
    PartialEq, bitcode::Encode, bitcode::Decode, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize,
)]
pub struct NativeLayer {
    name: String,
    shape: [u64; 2],
    weight: Vec<f32>,
    trainable: bool,
    bias: Vec<f32>,
}

impl TensorLayer {
    pub fn as_bytes(&self) -> CastLayer {
        CastLayer {
            name: self.name.clone(),
            weight: (*self.weight).clone(),
            trainable: self.trainable,
            bias: (*self.bias).clone(),
        }
    }

    pub fn as_vectors(&self) -> NativeLayer {
        let (rows, columns) = self.weight.dim();
        NativeLayer {
            name: self.name.clone(),
            shape: [rows as u64, columns as u64],
            weight: self.weight.iter().copied().collect(),
            trainable: self.trainable,
            bias: self.bias.to_vec(),
        }
    }
}

pub fn model(rows: usize, columns: usize) -> Model<TensorLayer> {
    let mut random = Random::new(1);
    let layers = (0..LAYERS)
        .map(|n| TensorLayer {
            name: format!("encoder.{n:05}"),
            weight: Array2::from_shape_vec((rows, columns), random.floats(rows * columns))
                .expect("the number of floats fits the shape")
                .into(),
            trainable: n % 5 != 0,
            bias: Array1::from_vec(random.floats(columns)).into(),
        })
        .collect();
    let metrics = (0..300)
        .map(|epoch| Epoch {
            epoch,
            loss: 2.3 / f64::from(epoch + 1) + random.unit() * 0.01,
            accuracy: 1.0 - 0.9 / f64::from(epoch + 1),
            seconds: 12.5 + random.float(),
        })
        .collect();
    Model {
        config: Config {
            name: "a made-up encoder".to_string(),
            hidden: vec![rows as u32; LAYERS],
            activation: "gelu".to_string(),
            learning_rate: 3e-4,
            dropout: Some(0.1),
            weight_decay: None,
            seed: 42,
        },
        layers,
        metrics,
    }
}

/// The memory of all tensors of a model.
fn blocks(model: &Model<TensorLayer>) -> Vec<&[u8]> {
    let layers = model.layers.iter();
    layers
        .flat_map(|layer| [layer.weight.as_slice(), layer.bias.as_slice()])
        .map(|floats| bytemuck::cast_slice(floats.expect("the arrays here are contiguous")))
        .collect()
}

/// The pieces from which the floor copies the message together: the tensors in the model, and the bytes
/// between them in the message. The latter are needed so that the tensors are copied to the same addresses
/// as in the message: memcpy is slower by a quarter to an address that is not a multiple of 64.
fn pieces<'a>(whole: &'a [u8], blocks: &[&'a [u8]]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    let mut rest = whole;
    for block in blocks {
        // The floats are random, so their first bytes do not occur elsewhere.
        let start = &block[..16];
        let found = rest.windows(16).position(|window| window == start);
        let (between, behind) = rest.split_at(found.expect("every tensor is in the message"));
        assert!(behind.starts_with(block), "a tensor is one block in the message");
        pieces.extend([between, block]);
        rest = &behind[block.len()..];
    }
    pieces.push(rest);
    pieces
}

fn view_same(view: &Model<TensorView<'_>>, model: &Model<TensorLayer>) -> bool {
    let equal = |a: &TensorView<'_>, b: &TensorLayer| {
        a.name == b.name
            && *a.weight == *b.weight
            && a.trainable == b.trainable
            && *a.bias == *b.bias
    };
    let mut pairs = view.layers.iter().zip(&model.layers);
    view.config == model.config && view.metrics == model.metrics && pairs.all(|(a, b)| equal(a, b))
}

fn tensor(model: &Model<TensorLayer>) -> Row<'_> {
    let mut row = peers::row::<peers::Tenarc, _>("Tensor", model);
    let placed = Placed::where_accepted(row.message.bytes(), |bytes| {
        tenarc::from_slice::<Model<TensorView>>(bytes).is_ok()
    });
    let Some(placed) = placed else {
        println!("(a) views of the model are not measured: no address aligns it");
        return row;
    };
    row.message = placed;
    borrowed!(row, |bytes| tenarc::from_slice::<Model<TensorView>>(bytes).unwrap(), |view| {
        view_same(&view, model)
    })
}

fn plain<'a, C: Codec>(model: &'a Model<PlainLayer>) -> Row<'a> {
    peers::row::<C, _>("plain", model)
}

fn expert<'a, C: Lender>(model: &'a Model<CastLayer>) -> Row<'a> {
    let row = peers::row::<C, _>("bytes", model);
    let same = |a: &CastView<'_>, b: &CastLayer| {
        a.name == b.name
            && a.weight.same(&b.weight)
            && a.trainable == b.trainable
            && a.bias.same(&b.bias)
    };
    borrowed!(row, |bytes| C::lend::<Model<CastView>>(bytes), |view| view
        .layers
        .iter()
        .zip(&model.layers)
        .all(|(a, b)| same(a, b)))
}

/// Measures one size of model; the slow representations only if `all` is set.
fn run_size(effort: Effort, rows: usize, columns: usize, all: bool) -> Report {
    let tensors = &model(rows, columns);
    let blocks = &blocks(tensors);
    let whole = peers::Tenarc::to_vec(tensors);
    let whole = whole.as_slice();
    let pieces = &pieces(whole, blocks);
    let copy_into = move |buffer: &mut Vec<u8>| {
        for piece in pieces {
            buffer.extend_from_slice(piece);
        }
    };
    let floor = Row::bare("floor", "")
        .encode(copy_into)
        .fresh(move || {
            let mut out = Vec::with_capacity(whole.len());
            copy_into(&mut out);
            out
        })
        .decode(move |_| timed(|| blocks.iter().map(|b| b.to_vec()).collect::<Vec<_>>()));
    // For comparison: the same bytes copied as one block.
    let one_block = Row::bare("memcpy", "one block")
        .encode(move |buffer| buffer.extend_from_slice(whole))
        .fresh(move || whole.to_vec())
        .decode(move |_| timed(|| whole.to_vec()));
    let cloned = Row::bare("clone", "Tensor").decode(move |_| timed(|| tensors.clone()));

    let marked = tensors.map(|layer| MarkedLayer {
        name: layer.name.clone(),
        weight: (*layer.weight).clone(),
        trainable: layer.trainable,
        bias: (*layer.bias).clone(),
    });
    let plain_model = tensors.map(|layer| PlainLayer {
        name: layer.name.clone(),
        weight: (*layer.weight).clone(),
        trainable: layer.trainable,
        bias: (*layer.bias).clone(),
    });
    let casts = tensors.map(TensorLayer::as_bytes);
    let native = tensors.map(TensorLayer::as_vectors);
    let mut list = vec![floor, one_block, cloned, tensor(tensors)];

    if all {
        list.extend([
            peers::row::<peers::Tenarc, _>("with = tensor", &marked),
            peers::row::<peers::TenarcTyped, _>("typed arrays", &plain_model),
            plain::<peers::Tenarc>(&plain_model),
            plain::<peers::Cbor4ii>(&plain_model),
            plain::<peers::Minicbor>(&plain_model),
            plain::<peers::RmpNamed>(&plain_model),
            plain::<peers::RmpCompact>(&plain_model),
            plain::<peers::Ciborium>(&plain_model),
            plain::<peers::Json>(&plain_model),
            plain::<peers::Bincode1>(&plain_model),
            plain::<peers::Bincode2>(&plain_model),
            plain::<peers::Postcard>(&plain_model),
            peers::zap("plain", &plain_model),
            plain::<peers::BitcodeSerde>(&plain_model),
        ]);
    }
    list.extend([
        expert::<peers::Cbor4ii>(&casts),
        expert::<peers::Minicbor>(&casts),
        expert::<peers::RmpNamed>(&casts),
        expert::<peers::RmpCompact>(&casts),
        peers::row::<peers::Ciborium, _>("bytes", &casts),
        expert::<peers::Bincode1>(&casts),
        expert::<peers::Bincode2>(&casts),
        expert::<peers::Postcard>(&casts),
        peers::row::<peers::BitcodeSerde, _>("bytes", &casts),
        bitcode_row!(&native, Model<NativeLayer>),
    ]);
    list.extend(rkyv_rows!(&native, Model<NativeLayer>));

    let report = Case {
        title: format!(
            "(a) model of {:.0} MB: {LAYERS} layers of {rows} x {columns} f32",
            whole.len() as f64 / 1e6
        ),
        heads: MESSAGES,
        floor: "encode, to_vec: memcpy of the message, with the tensors from the model; decode: \
                memcpy of each tensor into a new allocation",
        rows: list,
    }
    .run(effort);
    print_report(&report);
    report
}

pub fn run(effort: Effort, recorder: &mut Recorder, targets: &mut Targets) {
    let small = run_size(effort, 256, 256, true);
    let large = run_size(effort, 1024, 1280, false);
    recorder.keep("model-10mb", &small);
    recorder.keep("model-200mb", &large);
    for (case, report, reused) in [("a 10 MB", &small, 1.05), ("a 200 MB", &large, 0.9)] {
        for (column, bound, text) in [
            (Column::Encode, reused, "Tensor, encode / memcpy into reused memory"),
            (Column::ToVec, 1.1, "Tensor, to_vec / memcpy into new memory"),
            (Column::Decode, 1.1, "Tensor, decode / memcpy into new memory"),
        ] {
            let times = (report.median("tenarc", "Tensor", column), report.floor_median(column));
            targets.at_most(case, text, times, bound);
        }
    }
    for (form, peer, bound) in [("plain", "cbor4ii", 1.1), ("typed arrays", "bincode 1", 1.5)] {
        let times = (
            small.median("tenarc", form, Column::Encode),
            small.median(peer, "plain", Column::Encode),
        );
        let text = format!("ndarray's own form, {form}: encode / {peer}");
        targets.at_most("a 10 MB", text, times, bound);
    }
    // The large model has twenty times the payload, but the same number of tensors. The bound of 1.25 allows
    // for cache misses, as the accessed pages are further apart.
    let views = |report: &Report| report.median("tenarc", "Tensor", Column::Borrow);
    targets.at_most(
        "a",
        "Tensor, decode to views, 200 MB / 10 MB",
        (views(&large), views(&small)),
        1.25,
    );
}
