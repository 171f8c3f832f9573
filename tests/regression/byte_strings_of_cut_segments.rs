//! `Salvaged::tensors` named byte strings too, which are not tensors.

use std::fs;

use tenarc::Tensor;
use tenarc::value::Value;

#[test]
fn byte_strings_are_reported_only_if_they_are_missing() {
    let dir = tempfile::tempdir().unwrap();
    let [path, new] = ["a.tenarc", "new.tenarc"].map(|name| dir.path().join(name));
    let value = Value::Array(vec![
        Value::Bytes(vec![1; 5000]),
        tenarc::to_value(&Tensor(vec![2u16; 5000])).unwrap(),
        Value::Bytes(vec![3; 5000]),
        tenarc::to_value(&Tensor(vec![4u16; 5000])).unwrap(),
    ]);
    tenarc::save(&path, &value).unwrap();
    let bytes = fs::read(&path).unwrap();
    let third = bytes.windows(64).position(|window| window == [3; 64]).unwrap();
    fs::write(&path, &bytes[..third + 100]).unwrap();

    let recovered = tenarc::archive::Recovery::of(&path).to(&new).unwrap();
    let salvaged = recovered.salvaged.unwrap();
    let names = |of: &[tenarc::tensor::TensorInfo]| -> Vec<String> {
        of.iter().map(|info| info.path().to_owned()).collect()
    };
    assert_eq!(names(&salvaged.tensors), ["1"]);
    assert_eq!(names(&salvaged.missing), ["3", "2"]);
    let archive = tenarc::open(&new).unwrap();
    assert_eq!(archive.tensors().unwrap().len(), 1);
    assert_eq!(archive.get::<Value>("0").unwrap(), Value::Bytes(vec![1; 5000]));
}
