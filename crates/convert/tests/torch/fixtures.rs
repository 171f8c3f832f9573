//! Files that torch wrote, judged by the manifest beside them.

use ndarray::{Array1, ArrayViewD, IxDyn};
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};
use tenarc::error::Category;
use tenarc::tensor::{Order, TensorInfo};
use tenarc::{DType, DynTensor};
use tenarc_convert::TensorFile as _;
use tenarc_convert::torch::{self, TorchFile};

use super::support::{Slow, all, fixture, fixtures, says};

pub fn dtype_of(name: &str) -> DType {
    let name = name.trim_end_matches("fn");
    if let Some(f8) = name.strip_prefix("float8_") {
        return DType::from_name(&format!("f8_{}", f8.trim_end_matches("fnu")));
    }
    let short = name
        .replace("bfloat", "bf")
        .replace("uint", "u")
        .replace("int", "i")
        .replace("float", "f")
        .replace("complex", "c");
    DType::from_name(&short)
}

/// The elements in row-major order, little-endian, whatever the order in memory.
pub fn row_major(tensor: DynTensor) -> Vec<u8> {
    if tensor.order() == Order::C {
        return tensor.le_bytes().into_owned();
    }
    tensor.into_row_major().unwrap().le_bytes().into_owned()
}

pub fn hex(bytes: &[u8]) -> String {
    let digit = |four: u8| char::from_digit(four.into(), 16).unwrap();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[test]
fn every_file_holds_what_its_manifest_says() {
    let manifest: Json = serde_json::from_slice(&fixture("MANIFEST.json")).unwrap();
    assert_eq!(manifest["made_with"]["torch"], "2.15.0");
    let mut tensors = 0;
    for (name, expected) in manifest["files"].as_object().unwrap() {
        let bytes = fixture(name);
        let (file, slow) =
            (TorchFile::new(&bytes[..]).unwrap(), TorchFile::new(Slow(&bytes)).unwrap());
        assert!(file.losses().is_empty(), "{name}: {}", file.losses());
        let expected = expected.as_object().unwrap();
        assert_eq!(file.tensors().len(), expected.len());
        for (path, expected) in expected {
            let tensor = file.dyn_tensor(path).unwrap();
            assert_eq!(tensor.dtype(), &dtype_of(expected["dtype"].as_str().unwrap()), "{path}");
            let shape: Vec<usize> = serde_json::from_value(expected["shape"].clone()).unwrap();
            assert_eq!(tensor.shape(), shape, "{path}");
            let info = file.info(path).unwrap();
            assert_eq!((info.shape(), info.order()), (&shape[..], tensor.order()));
            assert_eq!(
                hex(&Sha256::digest(row_major(tensor))),
                expected["sha256"],
                "{name}: {path}"
            );
            let read = row_major(slow.dyn_tensor(path).unwrap());
            assert_eq!(hex(&Sha256::digest(read)), expected["sha256"], "{name}: {path}");
            tensors += 1;
        }
        all(&bytes).unwrap();
    }
    assert_eq!(
        tensors,
        79 + 2 + 7 + 3 * 18 + 14 + 6 + 20 + 2 * 8 + 16 + 13 + 4 + 13 + 13 + 13 + 2 + 5
    );
}

#[test]
fn views_keep_their_order_where_there_is_one() {
    let file = torch::open(fixtures().join("views.pt")).unwrap();
    let order = |name: &str| file.info(name).unwrap().order();
    assert_eq!(order("transposed"), Order::F);
    for name in ["base", "rows", "columns", "stepped", "expanded", "permuted", "channels_last"] {
        assert_eq!(order(name), Order::C, "{name}");
    }
    let columns = file.dyn_tensor("columns").unwrap();
    let columns: ArrayViewD<'_, f32> = columns.view().unwrap();
    assert_eq!(columns[IxDyn(&[3, 0])], 20.0);
    let rows: ndarray::Array2<f32> = file.tensor("expanded").unwrap();
    assert!(rows.rows().into_iter().all(|row| row.to_vec() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]));
}

#[test]
fn plain_values_beside_tensors_are_kept() {
    let file = torch::open(fixtures().join("checkpoint.pt")).unwrap();
    let mut out = tenarc::OArchive::new(Vec::new()).unwrap();
    for value in [file.flat().unwrap(), file.nested().unwrap(), file.stored().unwrap()] {
        out.save(&value).unwrap();
    }
    let archive = tenarc::Archive::new(out.finish().unwrap()).unwrap();
    for segment in archive.segments() {
        let segment = segment.unwrap();
        assert_eq!(segment.get::<u8>("epoch").unwrap(), 3);
        assert_eq!(segment.get::<i128>("big").unwrap(), 1 << 70);
        assert_eq!(segment.get::<f64>("loss").unwrap(), 0.5);
        assert_eq!(segment.get::<String>("name").unwrap(), "für \u{1f980}");
        assert_eq!(segment.get::<serde_bytes::ByteBuf>("raw").unwrap().as_ref(), b"\x00\xff");
        assert_eq!(segment.get::<Option<u8>>("none").unwrap(), None);
        assert_eq!(segment.get::<(bool, bool)>("flags").unwrap(), (true, false));
        assert_eq!(segment.get::<Vec<u64>>("size").unwrap(), [2, 3]);
        let step: ndarray::Array0<f32> = segment.tensor("optimizer.state.0.step").unwrap();
        assert_eq!(step.into_scalar(), 1.0);
        let weight: ndarray::Array2<f32> = segment.tensor("model.0.weight").unwrap();
        assert_eq!(weight, file.tensor::<ndarray::Array2<f32>>("model.0.weight").unwrap());
    }
    // Flat, the list is an entry of its own.
    for number in [1, 2] {
        let segment = archive.segment(number).unwrap();
        assert_eq!(segment.get::<f64>("optimizer.param_groups.0.lr").unwrap(), 0.125);
    }
    // The versions of modules would be a tensor's name for `load_state_dict`.
    let notes = file.losses().notes();
    assert!(notes.len() == 1 && notes[0].contains("_metadata"), "{notes:?}");
}

#[test]
fn a_file_of_one_tensor_is_that_tensor() {
    let file = torch::open(fixtures().join("tensor.pt")).unwrap();
    assert_eq!(file.tensors()[0].path(), "");
    let tensor: Array1<f64> = file.tensor("").unwrap();
    assert_eq!(tensor.to_vec(), [0.0, 1.0, 2.0]);
    for value in [file.stored().unwrap(), file.flat().unwrap(), file.nested().unwrap()] {
        let bytes = tenarc::to_vec(&value).unwrap();
        let back: tenarc::Tensor<Array1<f64>> = tenarc::from_slice(&bytes).unwrap();
        assert_eq!(back.0, tensor);
    }
}

fn diag(file: &TorchFile<std::fs::File>) -> String {
    tenarc::diag::to_string(&tenarc::to_vec(&file.stored().unwrap()).unwrap()).unwrap()
}

#[test]
fn objects_are_the_data_they_hold() {
    let file = torch::open(fixtures().join("objects.pt")).unwrap();
    assert!(file.losses().is_empty(), "{}", file.losses());
    let text = diag(&file);
    for expected in [
        r#""args": {"lr": 0.1_3, "w": "#,
        r#""dtype": "torch.float16""#,
        r#""device": "cpu""#,
        r#""set": [1]"#,
        r#""frozen": [2]"#,
        r#""deque": [1, 2]"#,
        r#""default": {"a": [1]}"#,
        r#""counter": {"a": 2, "b": 1}"#,
        r#""path": {"call": "pathlib.PurePosixPath", "arguments": ["a", "b"]}"#,
        r#""date": {"call": "datetime.date", "arguments": [h'07e80203']}"#,
        r#""slots": {"here": "#,
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    let notes = file.losses().notes().join("\n");
    for expected in [
        "classes are left out: `argparse.Namespace`, `collections.defaultdict`, `made.Slots`",
        "`datetime.date`, `made.Point`, `pathlib.PurePosixPath`",
        "kept as texts: `torch.float16`",
        "sets and deques are kept as sequences",
    ] {
        assert!(notes.contains(expected), "{expected} in {notes}");
    }
}

#[test]
fn modules_have_the_names_of_their_state_dict() {
    let file = torch::open(fixtures().join("modules.pt")).unwrap();
    let text = diag(&file);
    for expected in [
        r#""width": 3, "activation": "torch.nn.functional.relu""#,
        r#""num_embeddings": 5"#,
        r#""seen": [3, 7]"#,
        r#""training": "#,
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    for internal in ["\"_parameters", "\"_modules", "\"_buffers", "_forward_hooks"] {
        assert!(!text.contains(internal), "{internal} in {text}");
    }
    let notes = file.losses().notes().join("\n");
    assert!(notes.contains("`made.Config`") && notes.contains(" more"), "{notes}");
    // A program says so, and its constants stand beside its attributes.
    let program = torch::open(fixtures().join("traced.pt")).unwrap();
    assert!(program.losses().notes().iter().any(|note| note.contains("TorchScript")));
    program.verify().unwrap();
}

#[test]
fn a_module_that_holds_itself_is_read_without_that() {
    let file = torch::open(fixtures().join("cycle.pt")).unwrap();
    let paths: Vec<_> = file.tensors().iter().map(TensorInfo::path).collect();
    assert_eq!(paths, ["weight", "bias"]);
    let listed: Vec<_> = file.losses().listed().iter().map(ToString::to_string).collect();
    assert_eq!(listed, ["`parent`: an object that contains itself"]);
}

#[test]
fn sparse_and_quantised_tensors_are_maps_of_their_parts() {
    for name in ["sparse.pt", "quantised.pt", "legacy_parts.pt"] {
        let file = torch::open(fixtures().join(name)).unwrap();
        assert!(file.losses().is_empty() && file.losses().notes().is_empty(), "{}", file.losses());
    }
    let text = diag(&torch::open(fixtures().join("legacy_parts.pt")).unwrap());
    for expected in [
        r#""coo": {"layout": "torch.sparse_coo", "indices": "#,
        r#""size": [4, 6], "is_coalesced": true}"#,
        r#""bsc": {"layout": "torch.sparse_bsc", "ccol_indices": "#,
        r#""dtype": "torch.qint8", "qscheme": "torch.per_tensor_affine", "scale": 0.5_3, "zero_point": 2"#,
        r#""dtype": "torch.quint8", "qscheme": "torch.per_tensor_affine", "scale": 0.25_3, "zero_point": 10"#,
        r#""dtype": "torch.qint32", "qscheme": "torch.per_tensor_affine", "scale": 0.125_3, "zero_point": -7"#,
        r#""qscheme": "torch.per_channel_affine", "scale": 40("#,
        r#""axis": 0}"#,
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
}

#[test]
fn numbers_of_numpy_are_plain_values() {
    for protocol in [2, 4, 5] {
        let file = torch::open(fixtures().join(format!("numpy_protocol_{protocol}.pt"))).unwrap();
        let text = diag(&file);
        for expected in [
            r#""f4": 0.10000000149011612"#,
            r#""f8": 0.1_3, "f2": 0.0999755859375"#,
            r#""i8": -9223372036854775808, "u8": 18446744073709551615"#,
            r#""u1": 255, ">i2": -2, "?": true"#,
            // What has no dtype here is kept as the pickle has it.
            r#""texts": {"call": "#,
            r#""date": {"call": "#,
            r#""dtype": {"call": "numpy.dtype", "arguments": ["f4", false, true], "state": [3, "<""#,
        ] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
        let order = |name: &str| file.info(&format!("arrays.{name}")).unwrap().order();
        assert_eq!(
            [order("fortran"), order("big_fortran"), order("u1")],
            [Order::F, Order::F, Order::C]
        );
        assert!(file.position("arrays.u1").unwrap().is_none());
    }
}

#[test]
fn other_formats_of_the_same_name_are_refused_with_a_way_out() {
    let mut tar = vec![0; 1024];
    tar[257..262].copy_from_slice(b"ustar");
    let error = says(TorchFile::new(tar), "a tar file");
    assert!(error.to_string().contains("torch.save(torch.load(path, weights_only=True), path)"));
    assert_eq!(error.category(), Category::Data);
    says(TorchFile::new(b"\x80\x04}.".to_vec()), "a pickle without a zip file");
    says(TorchFile::new(b"GGUF".to_vec()), "expected a zip file");
    says(TorchFile::new(Vec::new()), "expected a zip file");
}

#[test]
fn positions_are_those_of_elements_that_lie_as_they_are_read() {
    let (mut direct, mut others) = (0, 0);
    for name in ["checkpoint.pt", "views.pt", "dtypes.pt", "tensor.pt", "conjugate.pt", "legacy.pt"]
    {
        let bytes = fixture(name);
        let file = TorchFile::new(&bytes[..]).unwrap();
        for info in file.tensors() {
            let elements = file.dyn_tensor(info.path()).unwrap().le_bytes().into_owned();
            match file.position(info.path()).unwrap() {
                Some(at) => {
                    let at = usize::try_from(at).unwrap();
                    assert_eq!(bytes[at..at + elements.len()], elements, "{name} {}", info.path());
                    direct += 1;
                }
                None => others += 1,
            }
        }
        assert!(file.position("no such").is_err());
    }
    assert!(direct > 20 && others > 0, "{direct} {others}");
}
