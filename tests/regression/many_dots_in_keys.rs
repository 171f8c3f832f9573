//! To list tensors took time with the square of the number of dots in a key: every prefix of every
//! key was hashed. Ten keys of four million dots would take days.
//! `segment::spelling` counts the work in its own tests.

use std::collections::BTreeMap;

use tenarc::parts::PartsInfo;
use tenarc::{Archive, OArchive, Tensor};

#[test]
fn keys_of_millions_of_dots() {
    let key = |at: usize| format!("{at}{}", ".".repeat(4_000_000));
    let value: BTreeMap<String, Tensor<Vec<u8>>> =
        (0..10).map(|at| (key(at), Tensor(vec![1; 5000]))).collect();
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(&value).unwrap();
    let archive = Archive::new(out.finish().unwrap()).unwrap();
    let tensors = archive.tensors().unwrap();
    assert_eq!(tensors.len(), 10);
    assert_eq!(tensors[3].path(), key(3));
    assert_eq!(archive.only().unwrap().info(&key(3)).unwrap(), tensors[3]);
    let parts = tenarc::to_parts(&value).unwrap();
    let info = PartsInfo::new(parts.metadata()).unwrap();
    assert_eq!(info.buffers()[3].path(), key(3));
}
