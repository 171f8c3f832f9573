//! Models in several files, which an index lists.

use std::fs;
use std::path::Path;

use serde_json::json;
use tenarc::Value;
use tenarc::error::Category;
use tenarc::io::SyncLevel;
use tenarc_convert::torch::{self, open_sharded};
use tenarc_convert::{Format, Names, Options, TensorFile as _};

use super::support::fixtures;

const INDEX: &str = "pytorch_model.bin.index.json";
const SHARDS: [(&str, &str); 2] = [("state_dict.pt", "one.bin"), ("views.pt", "sub/two.bin")];

/// Writes an index that is changed by `change`, beside its shards.
fn model(change: impl FnOnce(&mut serde_json::Value)) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("sub")).unwrap();
    let (mut weights, mut total) = (serde_json::Map::new(), 0);
    for (from, name) in SHARDS {
        fs::copy(fixtures().join(from), dir.path().join(name)).unwrap();
        for tensor in torch::open(fixtures().join(from)).unwrap().tensors() {
            weights.insert(tensor.path().to_owned(), name.into());
            total += tensor.byte_len();
        }
    }
    let mut index = json!({"metadata": {"total_size": total}, "weight_map": weights});
    change(&mut index);
    fs::write(dir.path().join(INDEX), index.to_string()).unwrap();
    dir
}

fn error(change: impl FnOnce(&mut serde_json::Value)) -> tenarc::Error {
    let dir = model(change);
    let error = Format::Torch.open(dir.path().join(INDEX), &Options::default()).unwrap_err();
    // A shard that is missing is named by its own path.
    let named = error.to_string().contains(INDEX) || error.category() == Category::Io;
    assert!(named, "{error}");
    error
}

fn options() -> Options {
    let save = tenarc::archive::SaveOptions::default().with_sync(SyncLevel::Off);
    Options::default().with_save(save)
}

#[test]
fn a_model_of_several_files_is_read_by_its_index() {
    let dir = model(|_| {});
    let at = |name: &str| dir.path().join(name);
    let sharded = open_sharded(at(INDEX)).unwrap();
    assert_eq!(sharded.shards().len(), 2);
    for names in [Names::Stored, Names::Flat, Names::Nested] {
        let options = options().with_names(names);
        let losses = Format::Torch.to_archive(at(INDEX), at("model.tenarc"), &options).unwrap();
        assert!(losses.is_empty(), "{losses}");
        assert!(!losses.notes().iter().any(|note| note.contains("total_size")), "{losses}");
        let archive = tenarc::open(at("model.tenarc")).unwrap();
        let value: Value = archive.segment(0).unwrap().load().unwrap();
        let mut count = 0;
        for (from, _) in SHARDS {
            let one = torch::open(fixtures().join(from)).unwrap();
            for info in one.tensors() {
                let name = info.path();
                let expected = one.dyn_tensor(name).unwrap();
                assert_eq!(archive.tensor::<tenarc::DynTensor>(name).unwrap(), expected, "{name}");
                assert_eq!(
                    value.get(name).is_some(),
                    names != Names::Nested || !name.contains('.')
                );
                count += 1;
            }
        }
        assert_eq!(sharded.tensors().count(), count);
    }
}

#[test]
fn index_and_files_must_agree() {
    let says = |text: &str, change: fn(&mut serde_json::Value)| {
        let error = error(change);
        assert!(error.to_string().contains(text), "{error}");
        error.category()
    };
    says("0.weight", |index| drop(index["weight_map"].as_object_mut().unwrap().remove("0.weight")));
    says("`more`", |index| index["weight_map"]["more"] = json!("one.bin"));
    says("no `weight_map`", |index| *index = json!({}));
    says("shard name `../x", |index| index["weight_map"]["0.weight"] = json!("../x"));
    let missing = says("x.bin", |index| index["weight_map"]["more"] = json!("x.bin"));
    assert_eq!(missing, Category::Io);
    // The whole index of a model without its files, as one is downloaded by mistake.
    let index = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/torch").join(INDEX);
    let missing = Format::Torch.open(index, &options()).unwrap_err();
    assert_eq!(missing.category(), Category::Io, "{missing}");
    assert!(missing.to_string().contains("pytorch_model-00001-of-00001.bin"), "{missing}");
    // What the index says beside the files is no tensor.
    let dir = model(|index| index["metadata"]["total_size"] = json!(5));
    let file = open_sharded(dir.path().join(INDEX)).unwrap();
    let notes = file.value(Names::Flat).unwrap().losses().notes().join("; ");
    assert!(notes.contains("`total_size` of the index should be"), "{notes}");
}
