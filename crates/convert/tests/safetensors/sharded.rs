//! Models in several files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use tenarc::archive::SaveOptions;
use tenarc::error::Category;
use tenarc::io::SyncLevel;
use tenarc::tensor::TensorInfo;
use tenarc::{DType, DynTensor, Error};
use tenarc_convert::TensorFile as _;
use tenarc_convert::safetensors::{Export, open_sharded, save_sharded};
use tenarc_convert::{Format, Names, Options};

use crate::support::{names, quick, tensor, written};

const INDEX: &str = "model.safetensors.index.json";

fn model() -> Vec<(String, DynTensor)> {
    (0..10u8)
        .map(|at| (format!("layers.{at}.w"), tensor(&DType::F32, &[at.into(), 25], at)))
        .collect()
}

fn saved(max_bytes: u64) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let index = dir.path().join(INDEX);
    let options = quick().with_metadata([("format", "pt")]);
    save_sharded(&index, &model(), max_bytes, &options).unwrap();
    (dir, index)
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_model_is_split_as_asked_and_read_as_one() {
    for (max_bytes, count) in
        [(0, 9), (100, 9), (1000, 6), (2000, 3), (4499, 2), (4500, 1), (u64::MAX, 1)]
    {
        let (dir, index) = saved(max_bytes);
        let found = open_sharded(&index).unwrap();
        assert_eq!(found.shards().len(), count, "{max_bytes}");
        assert_eq!(names(dir.path()).len(), count + 1);
        for (number, (name, shard)) in found.shards().iter().enumerate() {
            assert_eq!(*name, format!("model-{:05}-of-{count:05}.safetensors", number + 1));
            let bytes: u64 = shard.tensors().iter().map(TensorInfo::byte_len).sum();
            let sized = shard.tensors().iter().filter(|info| info.byte_len() > 0).count();
            assert!(bytes <= max_bytes || sized == 1, "{bytes} of {max_bytes}");
            assert_eq!(shard.metadata(), found.metadata());
        }
        for (name, tensor) in model() {
            assert_eq!(found.dyn_tensor(&name).unwrap(), tensor);
            assert_eq!(found.info(&name).unwrap().shape(), tensor.shape());
            assert_eq!(
                found.tensor::<ndarray::Array2<f32>>(&name).unwrap().len(),
                tensor.le_bytes().len() / 4
            );
        }
        assert!(found.dyn_tensor("none").is_err() && found.losses().is_empty());
        assert_eq!(found.tensors().count(), 10);
        assert_eq!(json(&index)["metadata"], json!({"total_size": 4500}));
        assert_eq!(json(&index)["weight_map"].as_object().unwrap().len(), 10);
    }
}

#[test]
fn an_index_is_written_as_python_does() {
    let dir = tempfile::tempdir().unwrap();
    let index = dir.path().join(INDEX);
    let tensors = [("b\"", tensor(&DType::U8, &[3], 1)), ("a", tensor(&DType::U8, &[2], 1))];
    save_sharded(&index, &tensors, 3, &quick()).unwrap();
    let expected = r#"{
  "metadata": {
    "total_size": 5
  },
  "weight_map": {
    "a": "model-00002-of-00002.safetensors",
    "b\"": "model-00001-of-00002.safetensors"
  }
}
"#;
    assert_eq!(fs::read_to_string(&index).unwrap(), expected);
    let none = dir.path().join("none.safetensors.index.json");
    save_sharded(&none, &[] as &[(&str, DynTensor)], 3, &quick()).unwrap();
    assert_eq!(json(&none), json!({"metadata": {"total_size": 0}, "weight_map": {}}));
    assert_eq!(open_sharded(&none).unwrap().tensors().count(), 0);
}

#[test]
fn a_model_goes_through_an_archive_and_back() {
    let (dir, index) = saved(1000);
    let archive = dir.path().join("model.tenarc");
    for form in [Names::Flat, Names::Nested] {
        let options = SaveOptions::default().with_sync(SyncLevel::Off);
        Format::Safetensors
            .to_archive(&index, &archive, &Options::default().with_names(form).with_save(options))
            .unwrap();
        let opened = tenarc::open(&archive).unwrap();
        let segment = opened.segment(0).unwrap();
        let again = tempfile::tempdir().unwrap();
        let export = Export::new(&segment).unwrap();
        let losses = export.save_sharded(again.path().join(INDEX), 1000, &quick()).unwrap();
        assert!(losses.is_empty());
        assert_eq!(
            names(again.path()),
            names(dir.path())
                .into_iter()
                .filter(|name| !name.ends_with("tenarc"))
                .collect::<Vec<_>>()
        );
        if form == Names::Nested {
            // The files say that they are of a nested value.
            assert!(open_sharded(again.path().join(INDEX)).unwrap().is_nested());
            continue;
        }
        for name in names(again.path()) {
            let same = fs::read(again.path().join(&name)).unwrap()
                == fs::read(dir.path().join(&name)).unwrap();
            assert!(same, "{name}");
        }
    }
}

/// The error of an index that was changed.
#[track_caller]
fn changed(change: impl FnOnce(&mut Value)) -> Error {
    let (_dir, index) = saved(1000);
    let mut value = json(&index);
    change(&mut value);
    fs::write(&index, value.to_string()).unwrap();
    open_sharded(&index).unwrap_err()
}

#[test]
fn names_of_shards_stay_in_the_directory() {
    let long = format!("/{}", "x".repeat(10_000));
    for name in [
        "",
        ".",
        "..",
        "../a.safetensors",
        "/etc/passwd",
        "a/../b.safetensors",
        "a/./b.safetensors",
        "a//b.safetensors",
        "a/",
        "a/nul.safetensors",
        "a\\b.safetensors",
        "..\\a",
        "C:a",
        "C:\\a",
        "a:stream",
        "\\\\host\\share\\a",
        "a\0b",
        "a\nb",
        "NUL",
        "nul.safetensors",
        "Com1.x.y",
        "aux ",
        &long,
    ] {
        let error = changed(|index| index["weight_map"]["layers.0.w"] = json!(name));
        assert!(error.to_string().contains("the shard name `"), "{name}: {error}");
        assert_eq!(error.category(), Category::Data, "{name}: {error}");
        assert!(error.to_string().len() < 500, "{error}");
    }
}

#[test]
fn shards_may_be_in_a_directory_below() {
    let (dir, index) = saved(1000);
    fs::create_dir(dir.path().join("sub")).unwrap();
    let mut text = fs::read_to_string(&index).unwrap();
    for name in names(dir.path()).iter().filter(|name| name.ends_with(".safetensors")) {
        fs::rename(dir.path().join(name), dir.path().join("sub").join(name)).unwrap();
        text = text.replace(name, &format!("sub/{name}"));
    }
    fs::write(&index, text).unwrap();
    assert_eq!(open_sharded(&index).unwrap().tensors().count(), 10);
}

#[test]
fn index_and_files_must_agree() {
    let other = "model-00002-of-00006.safetensors";
    let error = changed(|index| index["weight_map"]["layers.0.w"] = json!(other));
    assert!(error.to_string().contains("layers.0.w"), "{error}");
    let error = changed(|index| index["weight_map"]["more"] = json!(other));
    assert!(error.to_string().contains("`more`") && error.to_string().contains(other), "{error}");
    let error =
        changed(|index| drop(index["weight_map"].as_object_mut().unwrap().remove("layers.3.w")));
    assert!(error.to_string().contains("layers.3.w"), "{error}");
    let error = changed(|index| index["weight_map"]["layers.0.w"] = json!("none.safetensors"));
    assert_eq!(error.category(), Category::Io, "{error}");
    let error = changed(|index| index["weight_map"]["layers.0.w"] = json!(5));
    assert_eq!(error.category(), Category::Data, "{error}");
    let error = changed(|index| drop(index.as_object_mut().unwrap().remove("weight_map")));
    assert!(error.to_string().contains("no `weight_map`"), "{error}");
    let (_dir, index) = saved(1000);
    let text = fs::read_to_string(&index).unwrap();
    let twice = text.replace("\"layers.0.w\"", "\"layers.1.w\"");
    fs::write(&index, twice).unwrap();
    assert!(open_sharded(&index).unwrap_err().to_string().contains("twice"));
    for cut in [0, 1, text.len() / 2, text.len() - 2] {
        fs::write(&index, &text[..cut]).unwrap();
        assert_eq!(open_sharded(&index).unwrap_err().category(), Category::Syntax, "{cut}");
    }
}

#[test]
fn what_only_the_index_says_is_a_loss_and_other_totals_are_a_note() {
    let losses = |metadata: Value| {
        let (dir, index) = saved(1000);
        let mut value = json(&index);
        value["metadata"] = metadata;
        fs::write(&index, value.to_string()).unwrap();
        let model = open_sharded(&index).unwrap();
        let converted = Format::Safetensors.to_archive(
            &index,
            dir.path().join("a.tenarc"),
            &Options::default()
                .with_names(Names::Flat)
                .with_save(SaveOptions::default().with_sync(SyncLevel::Off)),
        );
        assert_eq!(converted.is_err(), !model.losses().is_empty());
        let losses = model.losses().listed().iter();
        // The order of JSON's keys depends on a feature of serde_json, which other packages may turn on.
        losses.map(|loss| loss.path().to_owned()).collect::<BTreeSet<_>>()
    };
    assert!(losses(json!({"total_size": 4500, "total_parameters": 1125})).is_empty());
    assert!(losses(json!({})).is_empty() && losses(json!(null)).is_empty());
    let set = |paths: &[&str]| paths.iter().map(|&path| path.to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(losses(json!({"total_size": 4500.0, "by": "me"})), set(&["by"]));
    // Other writers count otherwise, and totals are derived.
    assert!(losses(json!({"total_size": 4501})).is_empty());
    let (_dir, index) = saved(1000);
    let mut value = json(&index);
    value["metadata"]["total_size"] = json!(4501);
    fs::write(&index, value.to_string()).unwrap();
    let model = open_sharded(&index).unwrap();
    assert_eq!(model.losses().notes(), ["`total_size` of the index should be 4500"]);
}

#[test]
fn metadata_of_the_files_are_collected() {
    let dir = tempfile::tempdir().unwrap();
    let mut map = serde_json::Map::new();
    for (name, metadata) in
        [("a", vec![("k", "1")]), ("b", vec![("k", "1"), ("l", "2")]), ("c", vec![("k", "3")])]
    {
        let bytes =
            written(&[(name, tensor(&DType::U8, &[3], 1))], &quick().with_metadata(metadata));
        fs::write(dir.path().join(name), bytes).unwrap();
        map.insert(name.to_owned(), json!(name));
    }
    let index = dir.path().join("index.json");
    fs::write(&index, json!({"weight_map": map}).to_string()).unwrap();
    let model = open_sharded(&index).unwrap();
    assert_eq!(model.metadata().unwrap(), [("k".into(), "1".into()), ("l".into(), "2".into())]);
    assert_eq!(
        model.losses().to_string(),
        "cannot be kept: `k`: its text in `c` differs from that of an earlier file and is left out"
    );
    model.flat().unwrap();
}

#[test]
fn a_model_is_never_mixed_with_another() {
    let (dir, index) = saved(1000);
    let before: Vec<_> =
        names(dir.path()).iter().map(|name| fs::read(dir.path().join(name)).unwrap()).collect();
    let error = save_sharded(&index, &model(), 1000, &quick()).unwrap_err();
    assert!(error.to_string().contains("cannot create a model with the index"), "{error}");
    let after: Vec<_> =
        names(dir.path()).iter().map(|name| fs::read(dir.path().join(name)).unwrap()).collect();
    assert!(before == after);
    // What a save that was killed left behind is no model.
    fs::remove_file(&index).unwrap();
    save_sharded(&index, &model(), 1000, &quick()).unwrap();
    open_sharded(&index).unwrap();
}

#[test]
fn a_save_that_fails_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let index = dir.path().join(INDEX);
    let good = tensor(&DType::U8, &[1000], 1);
    let bad =
        tenarc::tensor::Deferred::from_blocks(DType::U8, &[1000], tenarc::tensor::Order::C, |_| {
            Ok(())
        });
    let tensors: [(&str, &dyn tenarc::tensor::ToTensor); 3] =
        [("a", &good), ("b", &good), ("c", &bad)];
    assert_eq!(save_sharded(&index, &tensors, 1000, &quick()).unwrap_err().path(), "c");
    assert!(names(dir.path()).is_empty());
    for name in ["model.json", ".safetensors.index.json", "model.safetensors"] {
        let error = save_sharded(dir.path().join(name), &tensors[..1], 1000, &quick()).unwrap_err();
        assert!(error.to_string().contains("name of an index"), "{error}");
    }
    let twice: [(&str, &dyn tenarc::tensor::ToTensor); 2] = [("a", &good), ("a", &good)];
    save_sharded(&index, &twice, 1000, &quick()).unwrap_err();
    assert!(names(dir.path()).is_empty());
}

/// A save that fails while a tensor is written, or at the very end, leaves files that have the names of its shards.
#[test]
fn a_save_that_fails_keeps_the_shards_that_were_there() {
    let dir = tempfile::tempdir().unwrap();
    let index = dir.path().join(INDEX);
    let shard = |number: usize| dir.path().join(format!("model-0000{number}-of-00003.safetensors"));
    fs::write(shard(1), "first").unwrap();
    fs::write(shard(3), "third").unwrap();
    let good = tensor(&DType::U8, &[1000], 1);
    let deferred = |at_the_end: bool| {
        let index = &index;
        let order = tenarc::tensor::Order::C;
        tenarc::tensor::Deferred::from_blocks(DType::U8, &[1000], order, move |put| {
            if at_the_end {
                // So that the index cannot take its name.
                fs::create_dir_all(index.join("taken")).unwrap();
                return put(&[1; 1000]);
            }
            put(&[1; 999])
        })
    };
    for at_the_end in [false, true] {
        let bad = deferred(at_the_end);
        let tensors: [(&str, &dyn tenarc::tensor::ToTensor); 3] =
            [("a", &good), ("b", &good), ("c", &bad)];
        let error = save_sharded(&index, &tensors, 1000, &quick()).unwrap_err();
        assert_eq!(error.category() == Category::Io, at_the_end, "{error}");
        if at_the_end {
            fs::remove_dir_all(&index).unwrap();
        }
        assert_eq!(names(dir.path()).len(), 2, "{:?}", names(dir.path()));
        assert_eq!(fs::read(shard(1)).unwrap(), b"first");
        assert_eq!(fs::read(shard(3)).unwrap(), b"third");
    }
    // One that succeeds replaces them, and leaves nothing else.
    let tensors = [("a", &good), ("b", &good), ("c", &good)];
    save_sharded(&index, &tensors, 1000, &quick()).unwrap();
    assert_eq!(open_sharded(&index).unwrap().tensors().count(), 3);
    assert_eq!(names(dir.path()).len(), 4, "{:?}", names(dir.path()));
}

/// A save that was killed while files took their names leaves the old ones under names of their own.
#[test]
fn what_a_killed_save_left_stays() {
    let dir = tempfile::tempdir().unwrap();
    let index = dir.path().join(INDEX);
    let left = dir.path().join(".model-00001-of-00002.safetensors.before");
    fs::write(&left, "older").unwrap();
    fs::write(dir.path().join("model-00001-of-00002.safetensors"), "old").unwrap();
    let good = tensor(&DType::U8, &[1000], 1);
    save_sharded(&index, &[("a", &good), ("b", &good)], 1000, &quick()).unwrap();
    assert_eq!(fs::read(&left).unwrap(), b"older");
    assert_eq!(open_sharded(&index).unwrap().tensors().count(), 2);
    assert_eq!(names(dir.path()).len(), 4, "{:?}", names(dir.path()));
}

#[cfg(unix)]
#[test]
fn shards_may_be_links_as_caches_of_models_have_them() {
    let (dir, index) = saved(1000);
    let blobs = tempfile::tempdir().unwrap();
    for name in names(dir.path()) {
        let (path, blob) = (dir.path().join(&name), blobs.path().join(&name));
        fs::rename(&path, &blob).unwrap();
        std::os::unix::fs::symlink(&blob, &path).unwrap();
    }
    assert_eq!(open_sharded(&index).unwrap().tensors().count(), 10);
}
