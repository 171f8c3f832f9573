//! Files to archives.

use std::collections::BTreeMap;

use ndarray::{Array0, Array1, Array2};
use serde::Deserialize;
use tenarc::Tensor;
use tenarc::archive::SaveOptions;
use tenarc::tensor::{Order, TensorInfo};
use tenarc_convert::torch;
use tenarc_convert::{Format, Names, Options, TensorFile as _};

use super::support::{Pickler, file, fixture, fixtures, floats, says, under_a};

#[derive(Deserialize)]
struct Model {
    #[serde(rename = "0")]
    first: Linear,
    #[serde(rename = "2")]
    last: Linear,
}

#[derive(Deserialize)]
struct Linear {
    weight: Tensor<Array2<f32>>,
    bias: Tensor<Array1<f32>>,
}

#[test]
fn a_state_dict_becomes_a_struct() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.tenarc");
    let from = fixtures().join("state_dict.pt");
    let options = Options::default().with_names(Names::Nested);
    assert!(Format::Torch.to_archive(&from, &path, &options).unwrap().is_empty());
    let model: Model = tenarc::load(&path).unwrap();
    let file = torch::open(&from).unwrap();
    assert_eq!(model.first.weight.0, file.tensor::<Array2<f32>>("0.weight").unwrap());
    assert_eq!(model.last.weight.dim(), (2, 4));
    assert_eq!((model.first.bias.len(), model.last.bias.len()), (4, 2));
}

/// A checkpoint as it is in the pickle: the names of a `state_dict` are keys, and parameters have numbers.
#[derive(Deserialize)]
struct Checkpoint {
    model: BTreeMap<String, Tensor<tenarc::DynTensor>>,
    optimizer: Optimizer,
    epoch: u8,
}

#[derive(Deserialize)]
struct Optimizer {
    state: BTreeMap<u32, Moments>,
    param_groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Moments {
    step: Tensor<Array0<f32>>,
    exp_avg: Tensor<tenarc::DynTensor>,
}

#[derive(Deserialize)]
struct Group {
    lr: f64,
    params: Vec<u32>,
}

#[test]
fn the_structure_of_the_pickle_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tenarc");
    let from = fixtures().join("checkpoint.pt");
    assert!(Format::Torch.to_archive(&from, &path, &Options::default()).unwrap().is_empty());
    let found: Checkpoint = tenarc::load(&path).unwrap();
    let file = torch::open(&from).unwrap();
    let names: Vec<_> = found.model.keys().map(String::as_str).collect();
    assert_eq!(names, ["0.bias", "0.weight", "2.bias", "2.weight"]);
    for (name, tensor) in &found.model {
        let expected = file.dyn_tensor(&format!("model.{name}")).unwrap();
        assert_eq!(tensor.le_bytes(), expected.le_bytes());
    }
    assert_eq!(found.epoch, 3);
    assert_eq!(found.optimizer.state.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(found.optimizer.state[&0].step.0.clone().into_scalar(), 1.0);
    assert_eq!(found.optimizer.state[&1].exp_avg.shape(), [4]);
    assert_eq!(found.optimizer.param_groups[0].lr, 0.125);
    assert_eq!(found.optimizer.param_groups[0].params, [0, 1, 2, 3]);
    // What is listed of the file is listed of the archive, in the same order.
    let archive = tenarc::open(&path).unwrap();
    let paths = |tensors: &[tenarc::tensor::TensorInfo]| -> Vec<String> {
        tensors.iter().map(|tensor| tensor.path().to_owned()).collect()
    };
    let listed = paths(&archive.tensors().unwrap());
    assert_eq!(listed, paths(file.tensors()));
}

#[test]
fn paths_are_those_of_the_archive_even_if_dots_lead_to_several_values() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("x.pt"), dir.path().join("x.tenarc"));
    let tensor = |pickle: Pickler, at| pickle.tensor("FloatStorage", 12, at, &[2], &[1]);
    let pickle = tensor(Pickler::new().op(b"}(").text("a.b"), 0).text("a").op(b"}");
    let pickle = tensor(tensor(pickle.text("b"), 2).op(b"s").text("/x"), 4);
    let pickle = tensor(tensor(pickle.text(""), 6).text("c/d"), 8).text("n").op(b"K\x01u");
    std::fs::write(&from, file(&pickle.end(), &floats(12))).unwrap();
    let expected = ["/a.b", "/a/b", "/~1x", "/", "c/d"];
    let found = torch::open(&from).unwrap();
    let listed: Vec<_> = found.tensors().iter().map(TensorInfo::path).collect();
    assert_eq!(listed, expected);
    Format::Torch.to_archive(&from, &to, &Options::default()).unwrap();
    let archive = tenarc::open(&to).unwrap();
    let archived = archive.tensors().unwrap();
    assert_eq!(archived.iter().map(TensorInfo::path).collect::<Vec<_>>(), expected);
    for (number, path) in expected.into_iter().enumerate() {
        let first = number as f32 * 2.0;
        assert_eq!(found.tensor::<Vec<f32>>(path).unwrap(), [first, first + 1.0]);
        assert_eq!(archive.tensor::<Vec<f32>>(path).unwrap(), [first, first + 1.0]);
    }
}

#[test]
fn every_good_file_converts_with_all_names() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tenarc");
    let names = [
        "dtypes.pt",
        "parameters.pth",
        "state_dict_protocol_4.bin",
        "checkpoint.pt",
        "plain_checkpoint.pt",
        "views.pt",
        "list.pt",
        "tensor.pt",
        "modules.pt",
        "traced.pt",
        "objects.pt",
        "conjugate.pt",
        "sparse.pt",
        "quantised.pt",
        "legacy.pt",
        "legacy_module.pt",
        "numpy_protocol_5.pt",
    ];
    for name in names {
        let file = torch::open(fixtures().join(name)).unwrap();
        for names in [Names::Stored, Names::Flat, Names::Nested] {
            let options = Options::default().with_names(names);
            Format::Torch.to_archive(fixtures().join(name), &path, &options).unwrap();
            let archive = tenarc::open(&path).unwrap();
            archive.verify().unwrap();
            for info in file.tensors().iter().filter(|info| !info.path().is_empty()) {
                let found = archive.only().unwrap().dyn_tensor(info.path()).unwrap();
                let expected = file.dyn_tensor(info.path()).unwrap();
                assert_eq!((found.dtype(), found.shape()), (info.dtype(), info.shape()));
                assert_eq!(found.order(), info.order());
                assert_eq!(found.le_bytes(), expected.le_bytes(), "{name}: {}", info.path());
            }
        }
    }
    Format::Torch.to_archive(fixtures().join("views.pt"), &path, &Options::default()).unwrap();
    assert_eq!(
        tenarc::open(&path).unwrap().only().unwrap().info("transposed").unwrap().order(),
        Order::F
    );
}

#[test]
fn losses_stop_a_conversion_unless_they_are_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tenarc");
    let from = fixtures().join("cycle.pt");
    let error =
        says(Format::Torch.to_archive(&from, &path, &Options::default()), "contains itself");
    assert!(error.to_string().contains("cycle.pt"), "{error}");
    assert!(!path.exists());
    let losses =
        Format::Torch.to_archive(&from, &path, &Options::default().with_losses(true)).unwrap();
    assert_eq!(losses.count(), 1);
    let archive = tenarc::open(&path).unwrap();
    assert_eq!(archive.tensors().unwrap().len(), 2);
    assert_eq!(archive.tensor::<Array1<f32>>("bias").unwrap().len(), 1);
}

#[test]
fn a_damaged_file_leaves_what_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("x.pt"), dir.path().join("x.tenarc"));
    std::fs::write(&to, b"before").unwrap();
    for shape in [&[12][..], &[2]] {
        let mut bytes =
            file(&under_a(|pickle| pickle.tensor("FloatStorage", 12, 0, shape, &[1])), &floats(12));
        let at = bytes.windows(48).position(|window| window == floats(12)).unwrap();
        bytes[at + 47] ^= 1;
        std::fs::write(&from, bytes).unwrap();
        says(Format::Torch.to_archive(&from, &to, &Options::default()), "the CRC-32 is");
        assert_eq!(std::fs::read(&to).unwrap(), b"before");
        let opened = Format::Torch.open(&from, &Options::default()).unwrap();
        for format in [
            Format::Npz,
            Format::Safetensors,
            Format::Tenbin,
            Format::Arrow,
            Format::Gguf,
            Format::Json,
            Format::Msgpack,
        ] {
            says(format.save(&opened, &to, &Options::default()), "the CRC-32 is");
            assert_eq!(std::fs::read(&to).unwrap(), b"before");
        }
        let found = torch::open(&from).unwrap();
        let mut out = tenarc::OArchive::new(Vec::new()).unwrap();
        let lossy = Options::default().with_losses(true);
        says(tenarc_convert::into_archive(&found, &mut out, &lossy), "the CRC-32 is");
    }
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 2);
}

/// Adds a value to a pickle.
type Adds<'a> = Box<dyn Fn(Pickler) -> Pickler + 'a>;

#[test]
fn tied_tensors_are_stored_once() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("x.pt"), dir.path().join("x.tenarc"));
    let storage: Vec<u8> = floats(12).repeat(1000);
    let view = |pickle: Pickler, offset, shape: &[i64], strides: &[i64]| {
        pickle.tensor("FloatStorage", 12_000, offset, shape, strides)
    };
    // Tensors that are tied, or equal, or overlap.
    let cases: [(Adds<'_>, bool); 6] = [
        (Box::new(|pickle| pickle.op(b"h\x07")), true),
        (Box::new(|pickle| view(pickle, 0, &[2000, 3], &[3, 1])), true),
        (Box::new(|pickle| view(pickle, 6000, &[2000, 3], &[3, 1])), false),
        (Box::new(|pickle| view(pickle, 0, &[2000, 3], &[1, 2000])), false),
        (Box::new(|pickle| view(pickle, 0, &[3, 2000], &[2000, 1])), false),
        (Box::new(|pickle| view(pickle, 0, &[2000, 3], &[4, 1])), false),
    ];
    for (number, (second, tied)) in cases.into_iter().enumerate() {
        let pickle = under_a(|pickle| {
            let first = view(pickle, 0, &[2000, 3], &[3, 1]).op(b"q\x07s");
            second(first.text("b"))
        });
        std::fs::write(&from, file(&pickle, &storage)).unwrap();
        let found = torch::open(&from).unwrap();
        assert_eq!(found.has_tied_tensors(), tied, "{number}");
        Format::Torch.to_archive(&from, &to, &Options::default()).unwrap();
        let archive = tenarc::open(&to).unwrap();
        assert_eq!(archive.only().unwrap().buffers().len(), if tied { 1 } else { 2 }, "{number}");
        for path in ["a", "b"] {
            let one = archive.only().unwrap().dyn_tensor(path).unwrap();
            let other = found.dyn_tensor(path).unwrap();
            assert_eq!(one.le_bytes(), other.le_bytes(), "{number}");
        }
    }
    // On request, equal ones are stored once in any case.
    let pickle = under_a(|pickle| {
        let first = view(pickle, 0, &[6000], &[1]).op(b"s");
        view(first.text("b"), 6000, &[6000], &[1])
    });
    std::fs::write(&from, file(&pickle, &storage)).unwrap();
    let options = Options::default().with_save(SaveOptions::default().with_dedup(true));
    Format::Torch.to_archive(&from, &to, &options).unwrap();
    assert_eq!(tenarc::open(&to).unwrap().only().unwrap().buffers().len(), 1);
}

#[test]
fn bytes_and_files_read_alike() {
    let bytes = fixture("views.pt");
    let (memory, file) =
        (torch::TorchFile::new(bytes).unwrap(), torch::open(fixtures().join("views.pt")).unwrap());
    assert_eq!(memory.tensors(), file.tensors());
    for info in memory.tensors() {
        let tensors =
            (memory.dyn_tensor(info.path()).unwrap(), file.dyn_tensor(info.path()).unwrap());
        assert_eq!(tensors.0.le_bytes(), tensors.1.le_bytes());
    }
    says(file.info("nothing"), "no tensor of this name");
    says(torch::open(fixtures()), "directory");
    says(torch::open("/nonexistent/x.pt"), "cannot open");
}
