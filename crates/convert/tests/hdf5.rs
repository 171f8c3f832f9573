//! HDF5 files: those of h5py and Keras, and damaged ones.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use ndarray::{Array1, Array2, ArrayD};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use tenarc::de::Limits;
use tenarc::error::Category;
use tenarc::{Archive, DType, Tensor, Value};
use tenarc_convert::hdf5::{self, Hdf5};
use tenarc_convert::{Format, Losses, Names, Options, TensorFile as _};
use tenarc_test_support::hex;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/hdf5").join(name)
}

fn manifest() -> BTreeMap<String, BTreeMap<String, serde_json::Value>> {
    serde_json::from_slice(&fs::read(fixture("MANIFEST.json")).unwrap()).unwrap()
}

/// Converts a file and returns the archive and what was lost.
fn converted(name: &str, options: &Options) -> (tempfile::TempDir, Archive<File>, Losses) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tenarc");
    let losses = Format::Hdf5.to_archive(fixture(name), &path, options).unwrap();
    (dir, tenarc::open(&path).unwrap(), losses)
}

fn of_bytes(bytes: &[u8]) -> tenarc::Result<Hdf5> {
    // The files are small. Datasets that are said to be larger would only take time.
    of_bytes_within(bytes, 1 << 16)
}

fn of_bytes_within(bytes: &[u8], most: u64) -> tenarc::Result<Hdf5> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    Hdf5::with_limits(file, Limits::default().with_max_alloc(most))
}

#[test]
fn files_of_h5py_and_keras_are_read() {
    let manifest = manifest();
    assert_eq!(manifest.len(), 15);
    for (name, tensors) in &manifest {
        let file = hdf5::open(fixture(name)).unwrap();
        for (path, expected) in tensors {
            let tensor = file.dyn_tensor(path).unwrap();
            assert_eq!(tensor.dtype().name(), expected["dtype"], "{name} {path}");
            assert_eq!(serde_json::json!(tensor.shape()), expected["shape"], "{name} {path}");
            let digest = hex(&Sha256::digest(tensor.le_bytes()));
            assert_eq!(digest, expected["sha256"], "{name} {path}");
            let info = file.tensors().into_iter().find(|info| info.path() == path).unwrap();
            assert_eq!(info.shape(), tensor.shape());
        }
    }
}

/// Whether the elements are read in place or through the crate, the archive has the same.
#[test]
fn archives_have_the_elements_of_the_file() {
    for (name, tensors) in &manifest() {
        let (_dir, archive, _) =
            converted(name, &Options::default().with_names(Names::Flat).with_losses(true));
        let value: Value = archive.load().unwrap();
        for (path, expected) in tensors {
            let Some(Value::Tensor(tensor)) = value.get(path) else { panic!("{name} {path}") };
            let digest = hex(&Sha256::digest(tensor.le_bytes()));
            assert_eq!(digest, expected["sha256"], "{name} {path}");
        }
    }
}

#[test]
fn links_to_a_dataset_are_tied() {
    let (_dir, archive, losses) = converted("stored.h5", &Options::default());
    assert!(losses.is_empty(), "{losses}");
    let segment = archive.only().unwrap();
    let buffer = |path: &str| {
        let tensors = segment.tensors().unwrap();
        tensors.iter().find(|info| info.path() == path).unwrap().buffer().unwrap()
    };
    assert_eq!(buffer("tied"), buffer("chunks"));
    assert_eq!(buffer("soft"), buffer("gzip"));
    // The rows that were never written have the fill value.
    let growing: Array2<i16> = segment.tensor("growing").unwrap();
    assert_eq!(growing.row(3).to_vec(), [7, 8, 9]);
    assert_eq!(growing.sum(), 24);
    let never: Array2<f64> = segment.tensor("never").unwrap();
    assert_eq!(never, Array2::<f64>::from_elem((4, 2), 2.5));
}

#[test]
fn groups_texts_and_attributes_become_a_nested_value() {
    #[derive(Debug, Deserialize)]
    struct Inner {
        x: Tensor<Array1<i64>>,
    }
    #[derive(Debug, Deserialize)]
    struct Run {
        inner: Inner,
    }
    #[derive(Debug, Deserialize)]
    struct Texts {
        #[serde(rename = "__metadata__")]
        metadata: BTreeMap<String, BTreeMap<String, Value>>,
        one: String,
        list: Vec<String>,
        table: Vec<Vec<String>>,
        fixed: Vec<String>,
        latin: Vec<serde_bytes::ByteBuf>,
        #[serde(rename = "run.1")]
        run: Run,
    }
    let (_dir, archive, losses) = converted("texts.h5", &Options::default());
    assert!(losses.is_empty(), "{losses}");
    let texts: Texts = archive.load().unwrap();
    assert_eq!((&*texts.one, texts.list[1].len(), texts.list[2].len()), ("grün", 0, 100));
    assert_eq!(texts.table, [["x", "yy"], ["zzz", ""]]);
    assert_eq!(texts.fixed, ["ab", "c"]);
    assert_eq!(texts.latin, [b"\xe4"]);
    assert_eq!(texts.run.inner.x.to_vec(), [0, 1, 2]);
    assert_eq!(texts.metadata["/"]["title"], Value::from("texts"));
    assert_eq!(texts.metadata["/run.1/inner/x"]["unit"], Value::from("s"));
    let run = &texts.metadata["/run.1/inner"];
    assert_eq!(run["count"], Value::from(3));
    assert_eq!(run["rate"], Value::from(0.25));
    assert_eq!(run["single"], Value::from(1.5f32));
    assert_eq!(run["on"], Value::from(true));
    assert_eq!(run["names"], Value::from(["p", "q"]));
    assert_eq!(run["fixed"], Value::from(["p", "q"]));
    assert_eq!(run["nothing"], Value::Null);
    let Value::Tensor(matrix) = &run["matrix"] else { panic!("{run:?}") };
    assert_eq!(
        (matrix.shape(), matrix.as_slice::<i16>().unwrap()),
        (&[2, 2][..], &[0, 1, 2, 3][..])
    );
}

#[test]
fn names_are_nested_as_asked_for() {
    #[derive(Deserialize)]
    struct Layer {
        vars: (Tensor<Array2<f32>>, Tensor<Array1<f32>>),
    }
    #[derive(Deserialize)]
    struct Layers {
        dense: Layer,
    }
    #[derive(Deserialize)]
    struct Model {
        layers: Layers,
    }
    let paths = |names| {
        let (_dir, archive, _) =
            converted("keras.weights.h5", &Options::default().with_names(names));
        let segment = archive.only().unwrap();
        let tensors = segment.tensors().unwrap();
        tensors.iter().map(|info| info.path().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(paths(Names::Stored)[0], "layers.dense.vars.0");
    assert_eq!(paths(Names::Nested)[0], "layers.dense.vars.0");
    let flat = paths(Names::Flat);
    assert!(flat.contains(&"layers/dense/vars/0".to_owned()), "{flat:?}");
    let nested = Options::default().with_names(Names::Nested);
    let (_dir, archive, _) = converted("keras.weights.h5", &nested);
    let model: Model = archive.load().unwrap();
    assert_eq!(model.layers.dense.vars.0.shape(), [4, 3]);
    assert_eq!(model.layers.dense.vars.1.shape(), [3]);
}

#[test]
fn losses_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("x.tenarc");
    let error = Format::Hdf5.to_archive(fixture("lost.h5"), &to, &Options::default()).unwrap_err();
    let losses = Losses::of(&error).unwrap().clone();
    assert!(!to.exists());
    let text = |path: &str| {
        let loss = losses.listed().iter().find(|loss| loss.path() == path);
        loss.unwrap_or_else(|| panic!("{path}: {losses:?}")).what().to_owned()
    };
    assert!(text("raw").starts_with("raw elements of 3 bytes"), "{}", text("raw"));
    assert_eq!(text(""), "a link to the file `other.h5`, which is not read");
    assert_eq!((losses.count(), losses.tensors()), (2, 1));
    assert_eq!(
        losses.notes(),
        [
            "`nowhere`: a link that leads to no group and no dataset is left out",
            "a link to a group becomes the path at which the group is kept, such as `again/up`: `/`"
        ]
    );

    let (_dir, archive, _) = converted("lost.h5", &Options::default().with_losses(true));
    let kept: ArrayD<f32> = archive.only().unwrap().tensor("kept").unwrap();
    assert_eq!(kept.len(), 2);
    let value: Value = archive.load().unwrap();
    let names = [("BLUE", Value::from(1)), ("RED", 0.into())].into_iter().collect::<Value>();
    assert_eq!(value["__metadata__"]["/enum"]["enum"], names);
    let numbers: Array1<u8> = archive.only().unwrap().tensor("enum").unwrap();
    assert_eq!(numbers.to_vec(), [0, 1, 1]);
    let value: Value = archive.load().unwrap();
    assert_eq!(value.get("nothing"), Some(&Value::Null));
}

/// A group is kept where a hard link leads to it, also if a soft one comes first.
#[test]
fn links_to_groups_are_the_paths_of_these() {
    for names in [Names::Stored, Names::Nested] {
        let options = Options::default().with_names(names);
        let (_dir, archive, losses) = converted("links_groups.h5", &options);
        assert!(losses.is_empty(), "{losses}");
        assert!(losses.notes()[0].contains("such as"), "{losses:?}");
        let gain: Array1<f32> =
            archive.only().unwrap().tensor("general.devices.camera.gain").unwrap();
        assert_eq!(gain.to_vec(), [0.0, 1.0]);
        let value: Value = archive.load().unwrap();
        for (path, to) in [
            (&["early", "camera"][..], "/general/devices/camera"),
            (&["later"], "/general/devices"),
            (&["general", "loop"], "/"),
            (&["always"], "/early"),
        ] {
            let found = path.iter().fold(&value, |value, step| value.get(step).unwrap());
            assert_eq!(found, &Value::from(to), "{path:?}");
        }
    }
    let flat = Options::default().with_names(Names::Flat);
    let (_dir, archive, _) = converted("links_groups.h5", &flat);
    let value: Value = archive.load().unwrap();
    assert_eq!(value["early/camera"], Value::from("/general/devices/camera"));
}

#[test]
fn links_that_are_left_out_are_told_in_notes() {
    for name in ["links_old.h5", "links_compact.h5", "links_dense.h5"] {
        let (_dir, archive, losses) = converted(name, &Options::default());
        assert!(losses.is_empty(), "{name}: {losses}");
        let mut notes = losses.notes().to_vec();
        notes.sort();
        let expected = [
            "`group/nowhere`: a link that leads to no group and no dataset is left out",
            "`group/type`: a named datatype is left out",
        ];
        assert_eq!(notes, expected, "{name}");
        let linked: Array1<f32> = archive.only().unwrap().tensor("group.link").unwrap();
        assert_eq!(linked.to_vec(), [0.0, 1.0], "{name}");
    }
}

/// HDF5 numbers the chunks of a fixed array over the dimensions that the dataset may have, not over those that it has.
#[test]
fn chunks_of_fixed_arrays_are_numbered_over_maxshape() {
    let file = hdf5::open(fixture("fixed_array.h5")).unwrap();
    let part: Array2<i32> = file.tensor("a").unwrap();
    assert_eq!(part, ndarray::arr2(&[[0, 0], [7, 0], [0, 0], [0, 0]]));
    let file = hdf5::open(fixture("fixed_array_full.h5")).unwrap();
    let full: Array2<i32> = file.tensor("a").unwrap();
    assert_eq!(full, Array1::from_iter(0..24).into_shape_with_order((4, 6)).unwrap());
}

/// A damaged index could lead to the chunks of another dataset.
#[test]
fn damage_in_an_index_of_chunks_is_found() {
    let bytes = fs::read(fixture("indices.h5")).unwrap();
    let open = |bytes: &[u8]| of_bytes_within(bytes, 1 << 20).and_then(|file| read(&file));
    let all = open(&bytes).unwrap();
    assert!(all > 264_000, "{all}");
    for signature in [b"FAHD", b"FADB", b"EAHD", b"EAIB", b"EASB", b"EADB"] {
        let places = bytes.windows(4).enumerate().filter(|(_, found)| found == signature);
        let places: Vec<_> = places.map(|(at, _)| at).collect();
        assert!(!places.is_empty(), "{signature:?}");
        for at in places {
            // Their signatures, their versions, and what they say first.
            for at in (at..at + 20).step_by(3) {
                let mut bytes = bytes.clone();
                bytes[at] ^= 1;
                let error = open(&bytes).unwrap_err();
                assert_eq!(error.category(), Category::Damaged, "{at}: {error}");
            }
        }
    }
}

#[test]
fn scales_of_dimensions_are_metadata() {
    let (_dir, archive, losses) = converted("scales.h5", &Options::default());
    assert!(losses.is_empty(), "{losses}");
    let what = "left out, because `DIMENSION_LIST` of other datasets says the same";
    assert_eq!(losses.notes(), [format!("the attribute `REFERENCE_LIST` of scales is {what}")]);
    let value: Value = archive.load().unwrap();
    let scales = |path: &str| {
        let attributes = value.get("__metadata__").and_then(|found| found.get(path)).unwrap();
        attributes.get("DIMENSION_LIST").unwrap().clone()
    };
    let of_w = [Value::from("/group/y"), Value::Null];
    assert_eq!(scales("/w"), Value::Array(of_w.to_vec()));
    let of_two = Value::Array(vec![Value::from("/x"), Value::from("/group/y")]);
    assert_eq!(scales("/group/two"), Value::Array(vec![of_two]));
    for names in [Names::Flat, Names::Nested, Names::Stored] {
        let (_dir, archive, _) = converted("scales.h5", &Options::default().with_names(names));
        let value: Value = archive.load().unwrap();
        assert_eq!(value.get("null"), Some(&Value::Null), "{names:?}");
    }
}

/// A link or an attribute of a kind that the crate does not know costs no object.
#[test]
fn unknown_links_and_named_datatypes_take_nothing_along() {
    for (name, links) in [("old", 0), ("compact", 2), ("dense", 2)] {
        let name = format!("unknown_{name}.h5");
        let (_dir, archive, losses) = converted(&name, &Options::default().with_losses(true));
        let mut lost: Vec<_> = losses.listed().iter().map(ToString::to_string).collect();
        lost.sort();
        let expected = [
            "`group/user`: a link of the type 187, which a user has defined",
            "`user`: a link of the type 187, which a user has defined",
        ];
        assert_eq!(lost, expected[..links], "{name}");
        assert!(losses.notes().iter().all(|note| !note.contains("user")), "{losses:?}");
        let value: Value = archive.load().unwrap();
        for path in ["/", "/data"] {
            let found = |key: &str| value.get("__metadata__")?.get(path)?.get(key).cloned();
            assert_eq!(found("plain"), Some(Value::from(7)), "{name}");
            assert_eq!(found("f8"), Some(Value::from(1.5)), "{name}");
            let numbers = found("list").unwrap();
            assert_eq!(numbers.as_tensor().unwrap().le_bytes().len(), 16, "{name}");
            assert_eq!(found("text"), Some(Value::from("tëxt")), "{name}");
            let row = [("a".into(), 3.into()), ("b".into(), 4.5f32.into())];
            assert_eq!(found("row"), Some(Value::Map(row.into())), "{name}");
            assert_eq!(found("more9").is_some(), name.contains("dense"), "{name}");
        }
        let data: Array1<f32> = archive.only().unwrap().tensor("data").unwrap();
        assert_eq!(data.to_vec(), [0.0, 1.0, 2.0], "{name}");
        assert_eq!(value.get("group").is_some(), links > 0, "{name}");
    }
}

/// The elements of the filters that are read are in the manifest.
#[test]
fn filters_that_are_not_read_are_losses() {
    let (_dir, _, losses) = converted("plugins.h5", &Options::default().with_losses(true));
    let lost: Vec<_> = losses.listed().iter().map(|loss| (loss.path(), loss.what())).collect();
    let bzip2 = "its chunks are compressed by the filter 307 (bzip2), which is not read";
    let snappy = "its chunks are compressed by the filter Blosc with Snappy, which is not read";
    let expected = [
        ("lost_bzip2/long", bzip2),
        ("lost_bzip2/mixed", bzip2),
        // `lost_snappy/mixed` does not become smaller, so its chunks are without the filter.
        ("lost_snappy/long", snappy),
    ];
    assert_eq!(lost, expected);
}

#[test]
fn chunks_without_a_filter_that_is_not_read_are_read() {
    let (_dir, archive, losses) = converted("skipped.h5", &Options::default());
    assert!(losses.is_empty(), "{losses}");
    let data: Array1<i32> = archive.only().unwrap().tensor("data").unwrap();
    assert_eq!(data.to_vec(), [1, 2, 3]);
}

#[test]
fn lists_of_different_lengths_are_arrays_of_sequences() {
    let (_dir, archive, losses) = converted("lists.h5", &Options::default().with_losses(true));
    let lost: Vec<_> = losses.listed().iter().map(ToString::to_string).collect();
    assert_eq!(lost, ["`lost`: lists of different lengths, of what is no number"]);
    let segment = archive.only().unwrap();
    assert_eq!(segment.get::<Vec<Vec<i32>>>("i4").unwrap(), [&[1, 0, 1][..], &[], &[1]]);
    assert_eq!(segment.get::<Vec<Vec<f64>>>("f8").unwrap(), [&[1.0, 0.0, 1.0][..], &[], &[1.0]]);
    let bools = [&[true, false, true][..], &[], &[true]];
    assert_eq!(segment.get::<Vec<Vec<bool>>>("bool").unwrap(), bools);
    let half: Vec<Value> = segment.get("f2").unwrap();
    assert!(matches!(&half[0], Value::Numbers(numbers) if numbers.dtype() == DType::F16));
    let two = segment.get::<Vec<Vec<Vec<i32>>>>("two").unwrap();
    assert_eq!(two, [[vec![], vec![5, 6]], [vec![], vec![]]]);
    assert_eq!(segment.get::<Vec<Vec<f32>>>("rows.list").unwrap(), [vec![1.0, 2.0], vec![]]);
    let attribute = segment.get::<Vec<Vec<i64>>>("/__metadata__/~1/lists").unwrap();
    assert_eq!(attribute, [&[0, 1][..], &[0, 1, 2]]);
}

#[test]
fn references_are_the_paths_of_objects() {
    let (_dir, archive, losses) = converted("references.h5", &Options::default().with_losses(true));
    let mut lost: Vec<_> = losses.listed().iter().map(ToString::to_string).collect();
    lost.sort();
    let expected = [
        "`lost`: 1 of its references lead to objects that are not kept",
        "`raw`: raw elements of 3 bytes",
        "`region`: references to parts of datasets",
    ];
    assert_eq!(lost, expected);
    let value: Value = archive.load().unwrap();
    let all = || {
        let [a, b] = [["/cells/a", "/cells/b"], ["/group", "/"]].map(Value::from);
        Some(Value::Array(vec![a, b]))
    };
    assert_eq!(value.get("all"), all().as_ref());
    let some = [Value::Null, Value::from("/cells/a"), Value::Null];
    assert_eq!(value.get("some"), Some(&Value::Array(some.into())));
    assert_eq!(value.get("one"), Some(&Value::from("/group")));
    let found = value.get("rows").and_then(|rows| rows.get("ref"));
    assert_eq!(found, Some(&Value::from(["/group", "/cells/a"])));
    let attribute = |path: &str, name: &str| value.get("__metadata__")?.get(path)?.get(name);
    assert_eq!(attribute("/", "table"), Some(&Value::from("/rows")));
    assert_eq!(attribute("/group", "all"), all().as_ref());
}

/// The tensors in structs are in the manifest.
#[test]
fn structs_are_kept_field_by_field() {
    for (name, most) in [("structs.h5", 5), ("structs_latest.h5", 300)] {
        let (_dir, archive, losses) = converted(name, &Options::default().with_losses(true));
        let mut lost: Vec<_> = losses.listed().iter().map(ToString::to_string).collect();
        lost.sort();
        let expected = [
            "`/`: the attribute `lost`: the field `raw`: raw elements of 3 bytes",
            "`clash/a/b`: there is another field of this path",
            "`rows/raw`: raw elements of 3 bytes",
        ];
        assert_eq!(lost, expected, "{name}");
        let value: Value = archive.load().unwrap();
        let found =
            |path: &[&str]| path.iter().fold(&value, |value, step| value.get(step).unwrap());
        let texts = |count: usize| -> Vec<_> { (0..count).map(|n| "tëxt".repeat(n)).collect() };
        assert_eq!(found(&["rows", "text"]), &Value::from(texts(4)), "{name}");
        let fixed: Vec<_> = (0..4).map(|n| &"fixed"[..n.min(most)]).collect();
        assert_eq!(found(&["rows", "fixed"]), &Value::from(fixed), "{name}");
        assert_eq!(found(&["rows", "inner", "name"]), &Value::from(["", "ab", "aba", "aba"]));
        let names = found(&["rows", "names"]).as_array().unwrap()[2].clone();
        assert_eq!(names, Value::from(["xx", "yz"]), "{name}");
        assert_eq!(found(&["empty"]), &Value::Array(Vec::new()), "{name}");
        assert!(losses.notes()[0].contains("the shapes of empty arrays"), "{losses:?}");
        let one = Value::from(texts(3).remove(2));
        assert_eq!(found(&["one", "text"]), &one, "{name}");
        assert!(
            matches!(found(&["rows", "inner", "flag"]), Value::Tensor(t) if *t.dtype() == DType::Bool)
        );
        let root = found(&["__metadata__", "/"]);
        let row = Value::Map(vec![("id".into(), 0.into()), ("text".into(), "tëxt".into())]);
        assert_eq!(root.get("row"), Some(&row), "{name}");
        let names = root.get("names").and_then(|row| row.get("names"));
        assert_eq!(names, Some(&Value::from(["x", "yz"])), "{name}");
        let names = root.get("rows").and_then(|rows| rows.get("inner")?.get("name"));
        assert_eq!(names, Some(&Value::from(["", "ab"])), "{name}");
    }
}

#[test]
fn texts_are_kept_if_no_tensor_is() {
    let (_dir, archive, losses) =
        converted("texts_alone.h5", &Options::default().with_losses(true));
    assert_eq!((losses.count(), losses.tensors()), (1, 1));
    let value: Value = archive.load().unwrap();
    assert_eq!(value.get("texts"), Some(&Value::from(["kept", "texts"])));
}

/// A file of 2 KB says that it has four terabytes.
#[test]
fn datasets_cannot_be_much_larger_than_the_file() {
    let file = hdf5::open(fixture("huge.h5")).unwrap();
    let error = file.dyn_tensor("x").unwrap_err();
    assert_eq!(error.category(), Category::Limit, "{error}");
    // The limits of the caller count, if they are given.
    let stored = File::open(fixture("stored.h5")).unwrap();
    let limits = Limits::default().with_max_alloc(1000);
    let error = Hdf5::with_limits(stored, limits).unwrap().dyn_tensor("gzip").unwrap_err();
    assert_eq!(error.category(), Category::Limit, "{error}");
}

/// In each of the three forms in which a group has its links. The crate lists none of the groups.
#[test]
fn virtual_datasets_are_losses_beside_which_the_others_are_kept() {
    for (name, more) in [("virtual_old.h5", 0), ("virtual_compact.h5", 0), ("virtual_dense.h5", 20)]
    {
        let (_dir, archive, losses) = converted(name, &Options::default().with_losses(true));
        let mut lost: Vec<_> = losses.listed().iter().map(ToString::to_string).collect();
        lost.sort();
        let what = "a virtual dataset: its elements are those of other datasets";
        let expected = [format!("`group/joined`: {what}"), format!("`joined`: {what}")];
        assert_eq!((lost, losses.tensors()), (expected.to_vec(), 2), "{name}");
        let mut notes = losses.notes().to_vec();
        notes.sort();
        let expected = [
            "`group/nowhere`: a link that leads to no group and no dataset is left out",
            "`group/type`: a named datatype is left out",
        ];
        assert_eq!(notes, expected, "{name}");
        let segment = archive.only().unwrap();
        assert_eq!(segment.tensors().unwrap().len(), 4 + more, "{name}");
        for path in ["kept", "group.kept", "group.inner.deep", "group.tied"] {
            let kept: Array1<f32> = segment.tensor(path).unwrap();
            assert_eq!(kept.to_vec(), [0.0, 1.0], "{name}: {path}");
        }
    }
}

#[test]
fn the_weights_in_a_keras_file_are_read() {
    let options = Options::default();
    let (_dir, expected, _) = converted("keras.weights.h5", &options);
    let name = "layers.dense.vars.0";
    let kernel: ArrayD<f32> = expected.only().unwrap().tensor(name).unwrap();
    for (file, in_place) in [("model.keras", true), ("deflated.keras", false)] {
        let (_dir, archive, losses) = converted(file, &options);
        assert!(losses.is_empty() && losses.notes().len() == 1, "{file}: {losses:?}");
        assert_eq!(archive.only().unwrap().tensor::<ArrayD<f32>>(name).unwrap(), kernel, "{file}");
        let opened = hdf5::open(fixture(file)).unwrap();
        assert_eq!(
            opened.tensors().len(),
            hdf5::open(fixture("keras.weights.h5")).unwrap().tensors().len()
        );
        let place = opened.place("layers/dense/vars/0").unwrap();
        assert_eq!(place.is_some(), in_place, "{file}");
        assert_eq!(opened.verify().unwrap(), None, "{file}");
    }
}

#[test]
fn damage_in_a_keras_file_is_found() {
    let bytes = fs::read(fixture("model.keras")).unwrap();
    let place = hdf5::open(fixture("model.keras")).unwrap();
    let (_, start) = place.place("layers/dense/vars/0").unwrap().unwrap();
    let mut damaged = bytes.clone();
    damaged[usize::try_from(start).unwrap()] ^= 1;
    let error = of_bytes(&damaged).unwrap().verify().unwrap_err();
    assert_eq!(error.category(), Category::Damaged, "{error}");
    for name in ["model.keras", "deflated.keras"] {
        let bytes = fs::read(fixture(name)).unwrap();
        for len in (0..bytes.len()).step_by(7) {
            assert!(of_bytes(&bytes[..len]).is_err(), "{name}: {len} bytes");
        }
        for at in (0..bytes.len()).step_by(11) {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0xff;
            let _ = of_bytes(&bytes).and_then(|file| read(&file));
        }
    }
}

#[test]
fn a_compressed_keras_file_keeps_to_the_limit() {
    let file = File::open(fixture("deflated.keras")).unwrap();
    let limits = Limits::default().with_max_alloc(1000);
    let error = Hdf5::with_limits(file, limits).unwrap_err();
    assert_eq!(error.category(), Category::Limit, "{error}");
    let npz = File::open(fixture("../npy/plain.npz")).unwrap();
    let error = Hdf5::new(npz).unwrap_err().to_string();
    assert!(error.contains("model.weights.h5"), "{error}");
}

#[test]
fn texts_cannot_repeat_the_same_bytes_for_ever() {
    let error = hdf5::open(fixture("repeated.h5")).unwrap_err();
    assert_eq!(error.category(), Category::Limit, "{error}");
    assert!(error.to_string().contains("names, attributes or texts take"), "{error}");
}

/// Reads everything in a file.
fn read(file: &Hdf5) -> tenarc::Result<usize> {
    tenarc::to_vec(&file.flat()?).map(|bytes| bytes.len())
}

#[test]
fn every_truncation_is_an_error_or_reads_less() {
    for name in ["texts.h5", "lost.h5", "keras.weights.h5"] {
        let bytes = fs::read(fixture(name)).unwrap();
        let whole = read(&of_bytes(&bytes).unwrap()).unwrap();
        let mut noticed = 0;
        for len in (0..bytes.len()).step_by(31) {
            match of_bytes(&bytes[..len]).and_then(|file| read(&file)) {
                Ok(found) => {
                    assert!(found <= whole, "{name} {len}");
                    noticed += usize::from(found < whole);
                }
                Err(_) => noticed += 1,
            }
        }
        assert!(noticed > bytes.len() / 31 / 2, "{name}: {noticed} of {}", bytes.len() / 31);
    }
}

/// An object that cannot be read is a loss, and the others are kept.
#[test]
fn a_damaged_object_costs_only_itself() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("x.h5"), dir.path().join("x.tenarc"));
    let whole = fs::read(fixture("layouts.h5")).unwrap();
    let all = of_bytes(&whole).unwrap().tensors().len();
    let mut unread = 0;
    // The version of the header of an object is behind a multiple of eight bytes.
    for at in (8..whole.len()).step_by(8) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        let left = of_bytes(&bytes).map_or(0, |file| file.tensors().len());
        if left == 0 || left == all {
            continue;
        }
        fs::write(&from, &bytes).unwrap();
        let lossy = Options::default().with_losses(true);
        let Ok(losses) = Format::Hdf5.to_archive(&from, &to, &lossy) else { continue };
        if losses.listed().iter().any(|loss| loss.to_string().contains("it cannot be read: ")) {
            unread += 1;
            let error = Format::Hdf5.to_archive(&from, &to, &Options::default()).unwrap_err();
            assert!(error.to_string().contains("it cannot be read: "), "{at}: {error}");
        }
    }
    assert!(unread > 0);
}

#[test]
fn damaged_structs_and_unknown_parts_never_panic() {
    for name in ["structs_latest.h5", "unknown_compact.h5", "references.h5"] {
        let bytes = fs::read(fixture(name)).unwrap();
        for at in (0..bytes.len()).step_by(37) {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << (at % 8);
            let _ = of_bytes(&bytes).and_then(|file| read(&file));
        }
    }
}

#[test]
fn damaged_chunks_of_plugins_never_panic() {
    let bytes = fs::read(fixture("plugins.h5")).unwrap();
    // Most of the file are chunks.
    for at in (0..bytes.len()).step_by(997) {
        let mut bytes = bytes.clone();
        bytes[at..].iter_mut().take(8).for_each(|byte| *byte ^= 1 << (at % 8));
        let Ok(file) = of_bytes(&bytes) else { continue };
        for tensor in file.tensors() {
            let _ = file.dyn_tensor(tensor.path());
        }
    }
}

#[test]
fn flipped_bits_never_panic() {
    for name in ["texts.h5", "lost.h5", "stored.h5", "dtypes.h5"] {
        let bytes = fs::read(fixture(name)).unwrap();
        // The first bytes describe the file. Most of the others are elements.
        for at in (0..bytes.len().min(4000)).step_by(7).chain((4000..bytes.len()).step_by(211)) {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << (at % 8);
            let _ = of_bytes(&bytes).and_then(|file| read(&file));
        }
    }
}
