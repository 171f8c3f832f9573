//! `recover_to` put *undefined* in place of one column of a sequence, and the rest of the columns could not be
//! read.

use std::fs;

use serde::{Deserialize, Serialize};
use tenarc::archive::SaveOptions;
use tenarc::{Tensor, Value};

#[derive(Serialize, Deserialize)]
struct Run {
    before: Tensor<Vec<f32>>,
    log: Vec<(u64, f64)>,
    after: Tensor<Vec<f32>>,
}

#[test]
fn columns_are_kept_as_a_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let [path, new] = ["a.tenarc", "new.tenarc"].map(|name| dir.path().join(name));
    let run = Run {
        before: Tensor(vec![0.5; 5000]),
        log: (0..10_000).map(|id| (id, 0.25)).collect(),
        after: Tensor(vec![1.5; 5000]),
    };
    let options = SaveOptions::default().with_columns(true);
    tenarc::archive::save_with(&path, &run, options).unwrap();
    let bytes = fs::read(&path).unwrap();
    let doubles = bytes.windows(64).position(|window| window == 0.25f64.to_le_bytes().repeat(8));
    // Cut inside the second column, and behind both.
    for (len, has_log) in [(doubles.unwrap() + 100, false), (bytes.len() - 10_000, true)] {
        fs::write(&path, &bytes[..len]).unwrap();
        let salvaged = tenarc::archive::Recovery::of(&path).to(&new).unwrap().salvaged.unwrap();
        let archive = tenarc::open(&new).unwrap();
        archive.verify().unwrap();
        let value: Value = archive.load().unwrap();
        assert_eq!(archive.tensor::<Vec<f32>>("before").unwrap(), run.before.0);
        assert_eq!(value["after"], Value::Simple(23));
        let missing: Vec<_> =
            salvaged.missing.iter().map(tenarc::tensor::TensorInfo::path).collect();
        if has_log {
            assert_eq!(archive.get::<Vec<(u64, f64)>>("log").unwrap(), run.log);
            assert_eq!(missing, ["after"]);
        } else {
            assert_eq!(value["log"], Value::Simple(23));
            assert_eq!(archive.only().unwrap().buffers().len(), 1);
            assert!(missing.contains(&"log") && missing.contains(&"after"), "{missing:?}");
        }
    }
}
