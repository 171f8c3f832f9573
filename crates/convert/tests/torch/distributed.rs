//! Distributed checkpoints, as torch wrote them, judged by the manifest beside them, and made by hand.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use ndarray::{Array1, Array2};
use serde::Deserialize;
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};
use tenarc::tensor::{Order, TensorInfo};
use tenarc::{DynTensor, Tensor};
use tenarc_convert::torch::{distributed_metadata, open_distributed};
use tenarc_convert::{Format, Names, Options, TensorFile as _};
use tenarc_test_support::alloc::peak_of;

use super::checkpoints::{self, Made, Step, all, saved};
use super::fixtures::{dtype_of, hex, row_major};
use super::support::{Pickler, file, floats, says};

fn fixture(name: &str) -> PathBuf {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/torch_distributed");
    PathBuf::from(fixtures).join(name)
}

const NAMES: [&str; 4] = ["plain", "flat", "sharded", "grid"];

#[test]
fn every_checkpoint_holds_what_torch_reads_from_it() {
    let manifest: Json =
        serde_json::from_slice(&fs::read(fixture("MANIFEST.json")).unwrap()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut tensors = 0;
    for name in NAMES {
        let expected = manifest["checkpoints"][name].as_object().unwrap();
        let found = all(&fixture(name)).unwrap();
        assert!(found.losses().is_empty(), "{name}: {}", found.losses());
        assert_eq!(found.tensors().len(), expected.len(), "{name}");
        let to = dir.path().join(name);
        Format::Torch.to_archive(fixture(name), &to, &Options::default()).unwrap();
        let archive = tenarc::open(&to).unwrap();
        for (path, expected) in expected {
            let tensor = found.dyn_tensor(path).unwrap();
            assert_eq!(tensor.dtype(), &dtype_of(expected["dtype"].as_str().unwrap()), "{path}");
            let shape: Vec<usize> = serde_json::from_value(expected["shape"].clone()).unwrap();
            assert_eq!(tensor.shape(), shape, "{path}");
            let info = found.info(path).unwrap();
            assert_eq!((info.shape(), info.order()), (tensor.shape(), tensor.order()), "{path}");
            let archived = archive.only().unwrap().dyn_tensor(path).unwrap();
            for tensor in [tensor, archived] {
                let digest = hex(&Sha256::digest(row_major(tensor)));
                assert_eq!(digest, expected["sha256"], "{name}: {path}");
            }
            tensors += 1;
        }
    }
    assert_eq!(tensors, 2 + 6 + 8 + 2 + 2 + 2 + 9 + 3);
}

#[derive(Deserialize)]
struct Checkpoint {
    model: BTreeMap<String, Tensor<DynTensor>>,
    optimizer: Optimizer,
    epoch: u8,
    big: i128,
    name: String,
    raw: serde_bytes::ByteBuf,
    none: Option<u8>,
    flags: (bool, bool),
    scalar: Tensor<ndarray::Array0<f32>>,
    pair: (Tensor<Array1<i16>>, u8, Tensor<Array2<f32>>),
    layers: Vec<Layer>,
}

#[derive(Deserialize)]
struct Optimizer {
    state: BTreeMap<String, BTreeMap<String, Tensor<DynTensor>>>,
    param_groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    lr: f64,
    params: Vec<u32>,
}

#[derive(Deserialize)]
struct Layer {
    w: Tensor<Array1<i8>>,
}

#[test]
fn a_checkpoint_has_the_structure_of_the_dict_that_was_saved() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("x.tenarc");
    // By its directory, or by the file in it.
    for from in [fixture("plain"), fixture("plain/.metadata")] {
        Format::Torch.to_archive(&from, &to, &Options::default()).unwrap();
        let found: Checkpoint = tenarc::load(&to).unwrap();
        assert_eq!(found.model.keys().collect::<Vec<_>>(), ["0.bias", "0.weight"]);
        assert_eq!(found.optimizer.state["1"]["exp_avg"].shape(), [2]);
        assert_eq!(*found.optimizer.state["0"]["step"].le_bytes(), 1.0f32.to_le_bytes());
        assert_eq!(found.optimizer.param_groups[0].lr, 0.125);
        assert_eq!(found.optimizer.param_groups[0].params, [0, 1]);
        assert_eq!((found.epoch, found.big, found.none), (3, 1 << 70, None));
        assert_eq!((found.name.as_str(), &found.raw[..]), ("für \u{1f980}", &b"\0\xff"[..]));
        assert_eq!(found.flags, (true, false));
        assert_eq!(found.scalar.0.into_scalar(), 2.5);
        let (first, second, third) = found.pair;
        assert_eq!((first.to_vec(), second, third.dim()), (vec![0, 1], 7, (3, 2)));
        let lens: Vec<_> = found.layers.iter().map(|layer| layer.w.len()).collect();
        assert_eq!(lens, [2, 3]);
    }
    let found = open_distributed(fixture("plain")).unwrap();
    // In chunks, the order of a file means nothing.
    assert_eq!(found.info("transposed").unwrap().order(), Order::C);
    assert_eq!(found.info("pair.2").unwrap().order(), Order::F);
    let transposed: Array2<f32> = found.tensor("transposed").unwrap();
    assert_eq!((transposed.dim(), transposed[[1, 2]]), ((6, 4), 13.0));
    says(found.info("nothing"), "no tensor of this name");
    assert!(found.place("view").unwrap().is_some() && found.place("transposed").unwrap().is_none());
}

#[test]
fn names_stay_as_they_are_without_paths() {
    let found = open_distributed(fixture("flat")).unwrap();
    let text = tenarc::diag::to_string(&tenarc::to_vec(&found.stored().unwrap()).unwrap()).unwrap();
    assert!(text.starts_with(r#"{"a.b": "#) || text.contains(r#", "a.b": "#), "{text}");
    assert!(text.contains(r#""n": {"lr": 0.5"#), "{text}");
    let nested = tenarc::to_vec(&found.nested().unwrap()).unwrap();
    assert!(tenarc::diag::to_string(&nested).unwrap().contains(r#""a": {"b": "#));
    let names: Vec<&str> = found.tensors().iter().map(TensorInfo::path).collect();
    assert!(names.contains(&"a.b") && names.contains(&"n.w"), "{names:?}");
}

#[test]
fn a_checkpoint_is_known_by_its_metadata() {
    let dir = Made::small().saved();
    let metadata = dir.path().join(".metadata");
    for path in [dir.path(), &metadata] {
        assert_eq!(distributed_metadata(path).unwrap(), metadata);
        let found = Format::Torch.open(path, &Options::default()).unwrap();
        assert_eq!(found.kept(), 2);
    }
    assert!(distributed_metadata(&dir.path().join("__0_0.distcp")).is_none());
    fs::write(&metadata, "revision: 1\n").unwrap();
    assert!(distributed_metadata(dir.path()).is_none());
    fs::remove_file(&metadata).unwrap();
    assert!(distributed_metadata(dir.path()).is_none());
    says(open_distributed(dir.path()), ".metadata");
    says(Format::Torch.open(dir.path(), &Options::default()), "directory");
}

#[test]
fn names_of_chunks_and_objects_are_those_of_paths() {
    let mut made = Made::small();
    made.paths = Some(vec![
        ("w", vec![Step::Key("list"), Step::Index(1), Step::Key("a.b")]),
        ("n", vec![Step::Key("list"), Step::Index(0)]),
    ]);
    let dir = made.saved();
    let found = all(dir.path()).unwrap();
    assert_eq!(found.tensor::<Array2<f32>>("list.1.a.b").unwrap()[[3, 1]], 7.0);
    let text = tenarc::diag::to_string(&tenarc::to_vec(&found.stored().unwrap()).unwrap()).unwrap();
    assert!(text.starts_with(r#"{"list": [7, {"a.b": "#), "{text}");
    // torch leaves out empty dicts, so an item of a list may be missing.
    made.paths.as_mut().unwrap()[0].1[1] = Step::Index(2);
    let dir = made.saved();
    let found = all(dir.path()).unwrap();
    let text = tenarc::diag::to_string(&tenarc::to_vec(&found.stored().unwrap()).unwrap()).unwrap();
    assert!(text.starts_with(r#"{"list": [7, null, {"a.b": "#), "{text}");
    let options = Options::default().with_names(Names::Nested);
    let opened = Format::Torch.open(dir.path(), &options).unwrap();
    assert_eq!(opened.kept(), 3);
}

#[test]
fn a_chunk_that_is_a_part_of_its_storage_is_read_and_verified() {
    let mut made = Made::small();
    made.parts.clear();
    made.files.clear();
    made.objects.clear();
    // One chunk in column-major order, and one in the middle of its storage.
    let first = Pickler::new().tensor("FloatStorage", 2, 0, &[1, 2], &[1, 1]).end();
    let second = Pickler::new().tensor("FloatStorage", 12, 3, &[3, 2], &[1, 3]).end();
    made.part("w", Some(&[0, 0]), "a", &file(&first, &floats(2)));
    made.part("w", Some(&[1, 0]), "a", &file(&second, &floats(12)));
    let dir = made.saved();
    let found = all(dir.path()).unwrap();
    let tensor: Array2<f32> = found.tensor("w").unwrap();
    assert_eq!(tensor.into_raw_vec_and_offset().0, [0.0, 1.0, 3.0, 6.0, 4.0, 7.0, 5.0, 8.0]);
    // Also the bytes that no tensor uses are compared with the checksum.
    let path = dir.path().join("a");
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(4).rposition(|four| four == 11.0f32.to_le_bytes()).unwrap();
    bytes[at] ^= 1;
    fs::write(&path, bytes).unwrap();
    says(open_distributed(dir.path()).unwrap().dyn_tensor("w"), "CRC-32");
}

#[test]
fn memory_holds_the_rows_that_chunks_share() {
    const MIB: usize = 1 << 20;
    let whole = |shape: [i64; 2]| {
        let count = shape[0] * shape[1];
        let pickle = Pickler::new().tensor("ByteStorage", count, 0, &shape, &[shape[1], 1]).end();
        file(&pickle, &vec![7; count as usize])
    };
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("x.tenarc");
    for (sizes, starts, most) in [
        // Rows are copied, columns are put together.
        ([512, 16384], [[0, 0], [512, 0]], 2 * MIB),
        ([1024, 8192], [[0, 0], [0, 8192]], 18 * MIB),
    ] {
        let mut made = Made::default();
        let chunks = starts.map(|start| (start.to_vec(), sizes.to_vec())).to_vec();
        let (name, dtype, size) = ("w", "uint8", vec![1024, 16384]);
        made.tensors.push(checkpoints::Tensor { name, dtype, size, chunks });
        for (number, start) in starts.iter().enumerate() {
            made.part("w", Some(start), &format!("{number}"), &whole(sizes));
        }
        let from = made.saved();
        let (done, taken) =
            peak_of(|| Format::Torch.to_archive(from.path(), &to, &Options::default()));
        assert!(done.unwrap().is_empty());
        assert!(taken < most, "{taken} bytes for {sizes:?}");
    }
}

#[test]
fn files_that_change_are_noticed() {
    let dir = Made::small().saved();
    let found = open_distributed(dir.path()).unwrap();
    let path = dir.path().join("__1_0.distcp");
    fs::write(&path, [&fs::read(&path).unwrap()[..], b"x"].concat()).unwrap();
    says(found.dyn_tensor("w"), "the file has changed");
    // A longer file is one with a part more.
    assert_eq!(all(dir.path()).unwrap().tensors().len(), 1);
    fs::write(&path, saved(&[3, 2], 3)).unwrap();
    let changed: Array2<f32> = open_distributed(dir.path()).unwrap().tensor("w").unwrap();
    assert_eq!(changed[[3, 1]], 8.0);
}
