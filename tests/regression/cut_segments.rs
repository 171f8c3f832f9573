//! `recover` left an empty archive if the only value of a file was cut short, and nothing of that value
//! could be read.

use std::collections::BTreeMap;
use std::fs;

use tenarc::archive::SaveOptions;
use tenarc::de::DecodeOptions;
use tenarc::error::Category;
use tenarc::{Archive, Tensor};

type Model = BTreeMap<String, Tensor<Vec<u16>>>;

fn model() -> Model {
    (0..4u16).map(|n| (format!("w{n}"), Tensor(vec![n; 5000]))).collect()
}

#[test]
fn whole_tensors_of_a_cut_model_are_read_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let [path, new] = ["a.tenarc", "new.tenarc"].map(|name| dir.path().join(name));
    for checksums in [true, false] {
        let options = SaveOptions::default().with_checksums(checksums);
        tenarc::archive::save_with(&path, &model(), options).unwrap();
        let bytes = fs::read(&path).unwrap();
        let third = bytes.windows(64).position(|window| window == [2, 0].repeat(32)).unwrap();
        let torn = &bytes[..third + 5000];
        fs::write(&path, torn).unwrap();

        let archive = tenarc::archive::open_torn(&path).unwrap();
        assert_eq!(archive.len(), 1);
        let segment = archive.segment(0).unwrap();
        assert_eq!(segment.missing_bytes(), (bytes.len() - torn.len()) as u64 - mark_len(&bytes));
        assert_eq!(segment.tensors().unwrap().len(), 4);
        let verified = segment.tensor::<Vec<u16>>("w1");
        if checksums {
            let error = verified.unwrap_err();
            assert_eq!(error.category(), Category::Torn);
            assert!(error.to_string().contains("with_checksums(false)"), "{error}");
        } else {
            assert_eq!(verified.unwrap(), vec![1; 5000]);
        }
        let archive = archive.with_options(DecodeOptions::default().with_checksums(false));
        let segment = archive.segment(0).unwrap();
        assert_eq!(segment.tensor::<Vec<u16>>("w1").unwrap(), vec![1; 5000]);
        for name in ["w2", "w3"] {
            let error = segment.tensor::<Vec<u16>>(name).unwrap_err();
            assert_eq!(error.category(), Category::Torn, "{error}");
        }

        let error = tenarc::archive::recover(&path).unwrap_err();
        assert_eq!(error.category(), Category::Torn);
        assert!(error.to_string().contains("Recovery::to"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), torn, "nothing is cut off");
        let recovered = tenarc::archive::Recovery::of(&path).to(&new).unwrap();
        assert_eq!(recovered.segments, 0);
        let salvaged = recovered.salvaged.unwrap();
        let names = |of: &[tenarc::tensor::TensorInfo]| -> Vec<String> {
            of.iter().map(|info| info.path().to_owned()).collect()
        };
        assert_eq!(names(&salvaged.tensors), ["w0", "w1"]);
        assert_eq!(names(&salvaged.missing), ["w2", "w3"]);
        let archive = tenarc::open(&new).unwrap();
        archive.verify().unwrap();
        assert_eq!(archive.get::<Tensor<Vec<u16>>>("w1").unwrap().0, vec![1; 5000]);
        assert_eq!(archive.only().unwrap().keys("").unwrap(), ["w0", "w1", "w2", "w3"]);
        assert!(archive.get::<Tensor<Vec<u16>>>("w2").is_err());
    }
}

/// The length of the end mark and its tail.
fn mark_len(bytes: &[u8]) -> u64 {
    let segment = Archive::new(bytes).unwrap();
    let segment = segment.segment(0).unwrap();
    bytes.len() as u64 - segment.offset() - segment.byte_len()
}
