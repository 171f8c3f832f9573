//! Files that numpy wrote, judged by the manifests beside them.

use ndarray::{Array0, Array1, Array2, ArrayD, ArrayViewD};
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};
use tenarc::error::Category;
use tenarc::tensor::{Element, Order};
use tenarc::{DType, DynTensor};
use tenarc_convert::TensorFile as _;
use tenarc_convert::npy::{self, NpyFile, Npz};

use super::support::{fixture, fixtures, says};

fn manifest(name: &str) -> Json {
    serde_json::from_slice(&fixture(name)).unwrap()
}

fn is_npy(name: &str) -> bool {
    fixtures().join(name).extension() == Some("npy".as_ref())
}

/// numpy's name of a dtype in ours.
fn dtype_of(name: &str) -> DType {
    let short =
        name.replace("uint", "u").replace("int", "i").replace("float", "f").replace("complex", "c");
    DType::from_name(&short)
}

/// The elements in row-major order, little-endian, whatever the order in memory.
fn row_major(tensor: &DynTensor) -> Vec<u8> {
    fn of<A: Element, const N: usize>(view: &ArrayViewD<'_, A>, to: fn(A) -> [u8; N]) -> Vec<u8> {
        view.iter().flat_map(|&value| to(value)).collect()
    }
    match tensor.dtype() {
        DType::F32 if tensor.order() == Order::F => {
            of(&tensor.view::<f32>().unwrap(), f32::to_le_bytes)
        }
        DType::F64 if tensor.order() == Order::F => {
            of(&tensor.view::<f64>().unwrap(), f64::to_le_bytes)
        }
        _ => {
            assert_eq!(tensor.order(), Order::C);
            tensor.le_bytes().into_owned()
        }
    }
}

#[track_caller]
fn is(tensor: &DynTensor, expected: &Json) {
    assert_eq!(tensor.dtype(), &dtype_of(expected["dtype"].as_str().unwrap()));
    let shape: Vec<usize> = serde_json::from_value(expected["shape"].clone()).unwrap();
    assert_eq!(tensor.shape(), shape);
    assert_eq!(tensor.order() == Order::F, expected["fortran_order"].as_bool().unwrap());
    let sum: [u8; 32] = Sha256::digest(row_major(tensor)).into();
    let digits = expected["sha256"].as_str().unwrap();
    assert_eq!(u128::from_str_radix(&digits[..32], 16).unwrap().to_be_bytes(), sum[..16]);
    assert_eq!(u128::from_str_radix(&digits[32..], 16).unwrap().to_be_bytes(), sum[16..]);
}

#[test]
fn every_good_file_holds_what_its_manifest_says() {
    let files = manifest("MANIFEST.json")["files"].as_object().unwrap().clone();
    let mut tensors = 0;
    for (name, entry) in &files {
        let expected = entry["tensors"].as_array().unwrap();
        let path = fixtures().join(name);
        if is_npy(name) {
            is(&npy::load(&path).unwrap(), &expected[0]);
            is(&npy::read(&fixture(name)[..]).unwrap(), &expected[0]);
        } else {
            let npz = Npz::open(&path).unwrap();
            let names: Vec<&str> = npz.names().collect();
            let listed: Vec<&str> = expected.iter().map(|t| t["name"].as_str().unwrap()).collect();
            assert_eq!(names, listed);
            for (info, expected) in npz.tensors().unwrap().iter().zip(expected) {
                let tensor = npz.dyn_tensor(info.path()).unwrap();
                assert_eq!((info.dtype(), info.shape()), (tensor.dtype(), tensor.shape()));
                assert_eq!(info.byte_len(), tensor.le_bytes().len() as u64);
                is(&tensor, expected);
            }
        }
        tensors += expected.len();
    }
    assert!(files.len() >= 39 && tensors >= 48, "{} files, {tensors} tensors", files.len());
}

/// But for byte order and version, which numpy keeps.
#[test]
fn what_numpy_wrote_is_written_again_to_the_byte() {
    let files = manifest("MANIFEST.json")["files"].as_object().unwrap().clone();
    let mut same = 0;
    for (name, entry) in &files {
        let big = entry["tensors"][0]["descr"].as_str().is_some_and(|descr| descr.starts_with('>'));
        if !is_npy(name) || entry["version"] != serde_json::json!([1, 0]) || big {
            continue;
        }
        let bytes = fixture(name);
        let mut written = Vec::new();
        npy::write(&mut written, &npy::read(&bytes[..]).unwrap()).unwrap();
        assert_eq!(written, bytes, "{name}");
        same += 1;
    }
    assert!(same >= 22, "{same}");
}

#[test]
fn every_other_file_gets_its_verdict() {
    let verdicts = manifest("VERDICTS.json").as_object().unwrap().clone();
    // What each error must name; where the verdict leaves a choice, it is made here.
    let says_of = [
        ("refuse/structured.npy", "structured"),
        ("refuse/structured_nested.npy", "structured"),
        ("refuse/object.npy", "pickled"),
        ("refuse/unicode_str.npy", "string array"),
        ("refuse/bytes_str.npy", "string array"),
        ("refuse/datetime.npy", "`<M8[s]`"),
        ("refuse/timedelta.npy", "durations (`<m8["),
        ("refuse/void.npy", "void"),
        ("bad/magic.npy", "expected npy data"),
        ("bad/version_9.npy", "found 9.0"),
        ("bad/trunc_header.npy", "more bytes of an npy header"),
        ("bad/trunc_data.npy", "there are only 151"),
        ("bad/trailing.npy", "ends after 152 bytes, but there are 153"),
        ("bad/extra_key.npy", "unknown key `z`"),
        ("bad/missing_key.npy", "no `fortran_order`"),
        ("bad/not_dict.npy", "expected a dict as npy header, found a list"),
        ("bad/shape_list.npy", "expected a tuple for `shape`, found a list"),
        ("bad/shape_negative.npy", "negative"),
        ("bad/shape_overflow.npy", "does not fit in memory"),
        ("bad/shape_huge.npy", "there are only 152"),
        ("bad/fortran_int.npy", "expected a bool for `fortran_order`, found an integer"),
        ("bad/bool_two.npy", "the byte 2; it must be 0 or 1"),
        ("bad/code.npy", "not evaluated"),
        ("bad/trunc.npz", "no end record"),
        ("bad/crc.npz", "CRC-32"),
        ("refuse/structured_member.npz", "structured"),
    ];
    let good = npy::load(fixtures().join("f4_c.npy")).unwrap();
    for (name, verdict) in &verdicts {
        let path = fixtures().join(name);
        let Some((_, text)) = says_of.iter().find(|(said, _)| said == name) else {
            let rule = verdict["rule"].as_str().unwrap();
            assert!(verdict["numpy_load"].as_str().unwrap().starts_with("ok"), "{name}: {rule}");
            assert_eq!(npy::load(&path).unwrap(), good, "{name}: {rule}");
            continue;
        };
        let error = if is_npy(name) {
            says(npy::load(&path), text)
        } else {
            says(Npz::open(&path).and_then(|npz| load_all(&npz)), text)
        };
        assert!(!matches!(error.category(), Category::Io), "{error}");
    }
    assert_eq!(verdicts.len(), says_of.len() + 6);
}

fn load_all(npz: &Npz<std::fs::File>) -> tenarc::Result<()> {
    npz.names().try_for_each(|name| npz.dyn_tensor(name).map(drop))
}

#[test]
fn a_refused_member_leaves_the_others_readable() {
    let npz = Npz::open(fixtures().join("refuse/structured_member.npz")).unwrap();
    assert_eq!(npz.dyn_tensor("good").unwrap().shape(), [2, 3]);
    assert_eq!(says(npz.info("rec"), "structured").path(), "rec");
    says(npz.tensors(), "structured");
    says(npz.dyn_tensor("gone"), "no such array at `gone`");
}

#[test]
fn another_dtype_or_rank_than_asked_for_is_an_error() {
    let npz = Npz::open(fixtures().join("plain.npz")).unwrap();
    assert_eq!(npz.tensor::<Array2<f32>>("weight").unwrap()[[1, 2]], 5.0);
    assert_eq!(npz.tensor::<ArrayD<f32>>("weight").unwrap().shape(), [2, 3]);
    let error =
        says(npz.tensor::<Array2<f64>>("weight"), "expected a tensor of f64, found one of f32");
    assert_eq!(error.path(), "weight");
    says(
        npz.tensor::<Array1<f32>>("weight"),
        "expected a tensor of 1 dimensions, found shape [2, 3]",
    );
    says(npy::read_as::<Array1<i32>>(&fixture("f4.npy")[..]), "expected a tensor of i32");
}

/// As numpy does; `load` refuses a file that goes on, see above.
#[test]
fn arrays_that_follow_each_other_in_a_stream_are_read_one_by_one() {
    let bytes = [fixture("f4_c.npy"), fixture("scalar_0d.npy")].concat();
    let mut stream = &bytes[..];
    assert_eq!(npy::read(&mut stream).unwrap().shape(), [2, 3]);
    let scalar = npy::read_as::<Array0<f64>>(&mut stream).unwrap();
    assert_eq!(scalar.into_scalar(), 2.5);
    assert!(stream.is_empty());
}

#[test]
fn files_are_read_where_they_are() {
    for entry in std::fs::read_dir(fixtures()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if !is_npy(name) {
            continue;
        }
        let (bytes, expected) = (fixture(name), npy::load(&path).unwrap());
        let file = NpyFile::new(&bytes[..]).unwrap();
        let found = tenarc::to_vec(&tenarc::Tensor(file.deferred("").unwrap())).unwrap();
        assert_eq!(found, tenarc::to_vec(&tenarc::Tensor(&expected)).unwrap(), "{name}");
        let elements = expected.le_bytes();
        // Those that are big-endian do not lie as they are read.
        let there = file.place("").unwrap();
        let there = there.map(|(_, at)| &bytes[usize::try_from(at).unwrap()..]);
        assert_eq!(there, (!name.starts_with("be_")).then_some(&elements[..]), "{name}");
        for cut in [&bytes[..bytes.len().saturating_sub(1)], &[&bytes[..], b"x"].concat()] {
            assert!(NpyFile::new(cut).is_err(), "{name}");
        }
    }
    let bytes = fixture("plain.npz");
    let npz = Npz::new(&bytes[..]).unwrap();
    for name in npz.names() {
        let elements = npz.dyn_tensor(name).unwrap().le_bytes().into_owned();
        let at = usize::try_from(npz.position(name).unwrap().unwrap()).unwrap();
        assert_eq!(bytes[at..at + elements.len()], elements, "{name}");
    }
    let deflated = fixture("compressed.npz");
    let npz = Npz::new(&deflated[..]).unwrap();
    assert!(npz.names().all(|name| npz.position(name).unwrap().is_none()));
}
