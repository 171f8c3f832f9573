//! Files to archives.

use ndarray::{Array1, Array2};
use serde::Deserialize;
use tenarc::Tensor;
use tenarc::archive::SaveOptions;
use tenarc::tensor::Order;
use tenarc_convert::torch::{self, Names, Options};

use super::support::{file, fixture, fixtures, floats, says, under_a};

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
    assert!(torch::to_archive(&from, &path, &options).unwrap().is_empty());
    let model: Model = tenarc::load(&path).unwrap();
    let file = torch::open(&from).unwrap();
    assert_eq!(model.first.weight.0, file.tensor::<Array2<f32>>("0.weight").unwrap());
    assert_eq!(model.last.weight.dim(), (2, 4));
    assert_eq!((model.first.bias.len(), model.last.bias.len()), (4, 2));
}

#[test]
fn every_good_file_converts_both_ways_of_naming() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tenarc");
    let names = [
        "dtypes.pt",
        "parameters.pth",
        "state_dict_protocol_4.bin",
        "checkpoint.pt",
        "views.pt",
        "list.pt",
        "tensor.pt",
    ];
    for name in names {
        let file = torch::open(fixtures().join(name)).unwrap();
        for names in [Names::Flat, Names::Nested] {
            let options = Options::default().with_names(names);
            torch::to_archive(fixtures().join(name), &path, &options).unwrap();
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
    torch::to_archive(fixtures().join("views.pt"), &path, &Options::default()).unwrap();
    assert_eq!(
        tenarc::open(&path).unwrap().only().unwrap().info("transposed").unwrap().order(),
        Order::F
    );
}

#[test]
fn losses_stop_a_conversion_unless_they_are_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tenarc");
    let from = fixtures().join("objects.pt");
    let error = says(torch::to_archive(&from, &path, &Options::default()), "argparse.Namespace");
    assert!(error.to_string().contains("objects.pt"), "{error}");
    assert!(!path.exists());
    let losses = torch::to_archive(&from, &path, &Options::default().with_losses(true)).unwrap();
    assert_eq!(losses.count(), 2);
    let archive = tenarc::open(&path).unwrap();
    assert_eq!(archive.tensors().unwrap().len(), 1);
    assert_eq!(archive.tensor::<Array1<f32>>("w").unwrap().to_vec(), [0.0, 1.0]);
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
        says(torch::to_archive(&from, &to, &Options::default()), "the CRC-32 is");
        assert_eq!(std::fs::read(&to).unwrap(), b"before");
    }
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 2);
}

#[test]
fn tensors_that_share_a_storage_are_stored_once_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let from = dir.path().join("x.pt");
    let storage: Vec<u8> = floats(12).repeat(1000);
    let tied = under_a(|pickle| {
        let pickle = pickle.tensor("FloatStorage", 12_000, 0, &[12_000], &[1]).op(b"q\x07s");
        pickle.text("b").op(b"h\x07")
    });
    std::fs::write(&from, file(&tied, &storage)).unwrap();
    let len = |dedup| {
        let to = dir.path().join("x.tenarc");
        let options = Options::default().with_save(SaveOptions::default().with_dedup(dedup));
        torch::to_archive(&from, &to, &options).unwrap();
        assert_eq!(tenarc::open(&to).unwrap().tensors().unwrap().len(), 2);
        std::fs::metadata(&to).unwrap().len() as usize
    };
    assert!(len(false) > 2 * storage.len() && len(true) < 2 * storage.len());
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
