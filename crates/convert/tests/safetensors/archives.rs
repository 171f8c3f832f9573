//! From safetensors files to archives, and back.

use std::collections::BTreeMap;

use ndarray::{Array1, Array2};
use serde::{Deserialize, Serialize};
use tenarc::archive::SaveOptions;
use tenarc::io::SyncLevel;
use tenarc::tensor::{TensorInfo, ToTensor as _};
use tenarc::{Archive, DType, DynTensor, OArchive, Tensor};
use tenarc_convert::Loss;
use tenarc_convert::TensorFile as _;
use tenarc_convert::safetensors::{self, Export, SafeTensors};
use tenarc_convert::{Format, Names, Options};

use crate::support::{quick, rewritten, tensor, written};

fn archive<T: Serialize + ?Sized>(value: &T) -> Archive<Vec<u8>> {
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(value).unwrap();
    Archive::new(out.finish().unwrap()).unwrap()
}

/// What an archive exports to, with its metadata.
#[track_caller]
fn exported(archive: &Archive<Vec<u8>>) -> Vec<u8> {
    let segment = archive.segment(0).unwrap();
    let export = Export::new(&segment).unwrap();
    assert!(export.losses().is_empty(), "{}", export.losses());
    let mut options = quick();
    if let Some(metadata) = export.metadata() {
        options = options.with_metadata(metadata.iter().cloned());
    }
    let mut bytes = Vec::new();
    safetensors::to_writer_with(&mut bytes, export.tensors(), &options).unwrap();
    bytes
}

fn file(names: &[&str]) -> SafeTensors<Vec<u8>> {
    let make = |at: usize| {
        let dtype = if at.is_multiple_of(2) { DType::F32 } else { DType::BF16 };
        // Some inline, some in buffers.
        tensor(
            &dtype,
            &[at + 1, if at.is_multiple_of(3) { 2000 } else { 5 }],
            u8::try_from(at).unwrap(),
        )
    };
    let tensors: Vec<(&str, DynTensor)> =
        names.iter().enumerate().map(|(at, name)| (*name, make(at))).collect();
    let options = quick().with_metadata([("format", "pt"), ("a", "b")]);
    SafeTensors::new(written(&tensors, &options)).unwrap()
}

#[derive(Deserialize)]
struct Model {
    #[serde(rename = "__metadata__")]
    metadata: BTreeMap<String, String>,
    layers: Vec<Layer>,
    head: Tensor<Array2<f32>>,
}

#[derive(Deserialize)]
struct Layer {
    weight: Tensor<DynTensor>,
    bias: Tensor<DynTensor>,
}

#[test]
fn a_nested_file_is_a_struct_of_structs() {
    let names = ["head", "layers.0.weight", "layers.1.bias", "layers.0.bias", "layers.1.weight"];
    let file = file(&names);
    let archive = archive(&file.nested().unwrap());
    let model: Model = archive.load().unwrap();
    assert_eq!(model.metadata["format"], "pt");
    assert_eq!(model.layers.len(), 2);
    assert_eq!(*model.head, file.tensor::<Array2<f32>>("head").unwrap());
    for (number, layer) in model.layers.iter().enumerate() {
        let stored = |field| file.dyn_tensor(&format!("layers.{number}.{field}")).unwrap();
        assert_eq!(*layer.weight, stored("weight"));
        assert_eq!(*layer.bias, stored("bias"));
    }
}

#[test]
fn tensors_are_found_by_the_same_names_however_they_are_saved() {
    let names = ["a", "b.0", "b.1.c", "b.1.d", "x.1", "x.0", "y.01", "y.1", "z.0", "z.2"];
    let file = file(&names);
    for value in [file.flat().unwrap(), file.nested().unwrap()] {
        let archive = archive(&value);
        for name in names {
            assert_eq!(
                archive.only().unwrap().dyn_tensor(name).unwrap(),
                file.dyn_tensor(name).unwrap(),
                "{name}"
            );
        }
        let text: String = archive.get("__metadata__.format").unwrap();
        assert_eq!(text, "pt");
        assert!(exported(&archive) == rewritten(&file));
    }
    let nested = archive(&file.nested().unwrap());
    let is_list = |path| nested.get::<Vec<tenarc::Value>>(path).is_ok();
    let lists: Vec<_> = ["b", "x", "y", "z"].into_iter().filter(|path| is_list(path)).collect();
    assert_eq!(lists, ["b", "x"]);
}

#[test]
fn odd_names_come_back() {
    let some = ["", "a.", "/x", "/", "~1", "a/b.c~d", "metadata", "é.ß", "0"];
    let dots = ["..", ".a.b", "a..b", "b...", "c."];
    for names in [&some[..], &dots] {
        let file = file(names);
        for value in [file.flat().unwrap(), file.nested().unwrap()] {
            assert!(exported(&archive(&value)) == rewritten(&file));
        }
    }
    // A list at the outermost level is none: the metadata have no number.
    let counted = SafeTensors::new(written(
        &[("0", tensor(&DType::U8, &[3], 1)), ("1", tensor(&DType::U8, &[3], 2))],
        &quick(),
    ));
    let counted = counted.unwrap();
    assert!(exported(&archive(&counted.nested().unwrap())) == rewritten(&counted));
}

#[test]
fn names_that_cannot_be_nested_are_refused_and_go_flat() {
    let deep = vec!["a"; 65].join(".");
    let cases: [&[&str]; 4] =
        [&["a", "a.b"], &["a.b.c", "a.b"], &["__metadata__.x"], &[deep.as_str()]];
    for names in cases {
        let file = file(names);
        let error = file.nested().unwrap_err();
        assert!(error.to_string().contains("cannot be nested"), "{error}");
        assert!(names.iter().any(|name| error.path() == *name), "{error}");
        assert!(exported(&archive(&file.flat().unwrap())) == rewritten(&file), "{names:?}");
    }
    let deep = vec!["a"; 64].join(".");
    let file = file(&[deep.as_str()]);
    assert!(exported(&archive(&file.nested().unwrap())) == rewritten(&file));
}

#[test]
fn absent_metadata_and_empty_metadata_are_told_apart() {
    let one = [("a", tensor(&DType::U8, &[3], 1))];
    let absent = written(&one, &quick());
    let empty = written(&one, &quick().with_metadata([("", ""); 0]));
    assert_ne!(absent, empty);
    for bytes in [absent, empty] {
        let file = SafeTensors::new(&bytes[..]).unwrap();
        for value in [file.flat().unwrap(), file.nested().unwrap()] {
            assert!(exported(&archive(&value)) == bytes);
        }
    }
}

#[test]
fn tensors_of_more_dimensions_than_archives_are_read_with_are_refused() {
    for (rank, fits) in [(64, true), (65, false)] {
        let bytes = written(&[("a", tensor(&DType::U8, &vec![1; rank], 1))], &quick());
        let file = SafeTensors::new(&bytes[..]).unwrap();
        assert_eq!(file.dyn_tensor("a").unwrap().shape().len(), rank);
        match file.flat() {
            Ok(value) => assert!(fits && exported(&archive(&value)) == bytes),
            Err(error) => assert!(!fits && error.path() == "a", "{error}"),
        }
    }
}

#[derive(Serialize)]
struct Mixed {
    name: &'static str,
    step: u64,
    weight: Tensor<Array1<f32>>,
    curve: Vec<f64>,
    raw: serde_bytes::ByteBuf,
    none: Option<u8>,
    empty: Vec<u8>,
    #[serde(rename = "__metadata__")]
    metadata: BTreeMap<&'static str, u8>,
    by_pair: BTreeMap<(u8, u8), Tensor<Array1<f32>>>,
}

fn mixed() -> Mixed {
    Mixed {
        name: "x",
        step: 1 << 40,
        weight: Array1::ones(3).into(),
        curve: (0..1000).map(f64::from).collect(),
        raw: vec![7; 5000].into(),
        none: None,
        empty: vec![],
        metadata: BTreeMap::from([("a", 1)]),
        by_pair: BTreeMap::from([((1, 2), Array1::zeros(2).into())]),
    }
}

#[test]
fn what_is_no_tensor_is_named_and_stops_the_conversion() {
    let archive = archive(&mixed());
    let segment = archive.segment(0).unwrap();
    let export = Export::new(&segment).unwrap();
    let mut lost: Vec<&str> = export.losses().listed().iter().map(Loss::path).collect();
    lost.sort_unstable();
    assert_eq!(lost, ["__metadata__", "by_pair.[1, 2]", "empty", "name", "none", "raw", "step"]);

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.safetensors");
    let error = export.save(&path, &quick()).unwrap_err().to_string();
    assert!(error.contains("`name`: a text") && error.contains("and 4 more"), "{error}");
    assert!(!path.exists());
    let losses = export.save(&path, &quick().with_losses(true)).unwrap();
    assert_eq!(&losses, export.losses());
    let file = safetensors::open(&path).unwrap();
    let names: Vec<&str> = file.tensors().iter().map(TensorInfo::path).collect();
    assert_eq!(names, ["curve", "by_pair.[1, 2]", "weight"]);
    assert_eq!(file.tensor::<Array1<f64>>("curve").unwrap(), Array1::from(mixed().curve));
    assert_eq!(file.metadata(), None);
}

#[test]
fn values_without_names_are_refused() {
    let sole = archive(&Tensor(Array1::<f32>::ones(1000)));
    for archive in [sole, archive(&5), archive("text"), archive(&None::<u8>)] {
        let segment = archive.segment(0).unwrap();
        Export::new(&segment).unwrap_err();
    }
    let pair = (Tensor(Array1::<f32>::ones(1000)), Tensor(Array1::<u8>::ones(3)));
    let archive = archive(&pair);
    let segment = archive.segment(0).unwrap();
    let export = Export::new(&segment).unwrap();
    let names: Vec<&str> = export.tensors().iter().map(|(name, _)| &name[..]).collect();
    assert_eq!(names, ["0", "1"]);
}

#[derive(Serialize)]
struct Alike {
    a: BTreeMap<&'static str, Tensor<Array1<f32>>>,
    #[serde(rename = "a.b")]
    flat: Tensor<Array1<f32>>,
}

#[test]
fn paths_that_read_alike_are_refused() {
    let tensor = || Tensor(Array1::<f32>::ones(3));
    let inner = BTreeMap::from([("b", tensor())]);
    let value = (BTreeMap::from([("0.b", tensor())]), 0);
    let nested = archive(&(BTreeMap::from([("a", inner)]), value));
    let segment = nested.segment(0).unwrap();
    assert_eq!(Export::new(&segment).unwrap().tensors().len(), 2);

    let alike = archive(&Alike { a: BTreeMap::from([("b", tensor())]), flat: tensor() });
    let segment = alike.segment(0).unwrap();
    assert!(Export::new(&segment).unwrap_err().to_string().contains("two tensors of this name"));
}

#[test]
fn archives_of_several_values_are_exported_one_by_one() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("a.tenarc"), dir.path().join("a.safetensors"));
    let mut out = OArchive::create(&from, SaveOptions::default()).unwrap();
    let value = BTreeMap::from([("w", Tensor(Array1::<f32>::ones(1000)))]);
    out.save(&value).unwrap().save_as("second", &value).unwrap();
    out.finish().unwrap();
    let error = Format::Safetensors.from_archive(&from, &to, &quick()).unwrap_err();
    assert!(error.to_string().contains("found 2"), "{error}");
    let archive = tenarc::open(&from).unwrap();
    let segment = archive.named("second").unwrap();
    Export::new(&segment).unwrap().save(&to, &quick()).unwrap();
    assert_eq!(safetensors::open(&to).unwrap().tensors().len(), 1);
}

#[test]
fn a_damaged_tensor_is_not_converted() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("a.tenarc"), dir.path().join("a.safetensors"));
    let value = BTreeMap::from([("w", Tensor(Array1::<f32>::ones(10_000)))]);
    tenarc::save(&from, &value).unwrap();
    let mut bytes = std::fs::read(&from).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&from, bytes).unwrap();
    let error = Format::Safetensors.from_archive(&from, &to, &quick()).unwrap_err();
    assert_eq!(error.category(), tenarc::error::Category::Damaged, "{error}");
    assert!(error.path().starts_with('w') && !to.exists(), "{error}");
}

#[test]
fn archives_have_checksums_whatever_the_options_say() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("a.safetensors"), dir.path().join("a.tenarc"));
    std::fs::write(&from, rewritten(&file(&["a", "b.c"]))).unwrap();
    let options = SaveOptions::default().with_checksums(false).with_sync(SyncLevel::Off);
    Format::Safetensors
        .to_archive(&from, &to, &Options::default().with_names(Names::Nested).with_save(options))
        .unwrap();
    let mut bytes = std::fs::read(&to).unwrap();
    Archive::new(&bytes[..]).unwrap().verify().unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    Archive::new(&bytes[..]).unwrap().verify().unwrap_err();
}

#[test]
fn long_keys_do_not_multiply() {
    let key = "k".repeat(1 << 20);
    let inner: BTreeMap<u32, Tensor<Array1<u8>>> =
        (0..100).map(|at| (at, Tensor(Array1::ones(3)))).collect();
    let tensors = archive(&BTreeMap::from([(&key, inner)]));
    let segment = tensors.segment(0).unwrap();
    let error = Export::new(&segment).unwrap_err();
    assert_eq!(error.category(), tenarc::error::Category::Limit, "{error}");

    let others = archive(&BTreeMap::from([(&key, vec!["text"; 5000])]));
    let segment = others.segment(0).unwrap();
    let export = Export::new(&segment).unwrap();
    let listed = export.losses().listed();
    assert_eq!((listed.len(), export.losses().count()), (1000, 5000));
    assert!(listed.iter().all(|loss| loss.path().len() < 1000));
}

#[test]
fn tags_around_tensors_are_lost_and_said_to_be() {
    let tensor = || tenarc::Value::Tensor(Box::new(tensor(&DType::U8, &[3, 4], 1)));
    let tagged = tenarc::Value::Tag(4711, Box::new(tensor()));
    let archive = archive(&BTreeMap::from([("plain", tensor()), ("tagged", tagged)]));
    let segment = archive.segment(0).unwrap();
    let export = Export::new(&segment).unwrap();
    assert_eq!(
        export.losses().to_string(),
        "cannot be kept: `tagged`: the tag 4711 around it is left out"
    );
    assert_eq!(export.tensors().len(), 2);
    let mut bytes = Vec::new();
    safetensors::to_writer(&mut bytes, export.tensors()).unwrap();
    assert_eq!(SafeTensors::new(bytes).unwrap().dyn_tensor("tagged").unwrap().shape(), [3, 4]);
}

/// As `torch.distributed.checkpoint.HuggingFaceStorageWriter` names what one process saves.
#[test]
fn a_part_of_a_tensor_is_not_taken_for_the_whole() {
    let file = |start: usize| {
        let saved = format!(r#"{{\"w\":{{\"saved_offsets\":[{start},0]}}}}"#);
        let header = format!(
            r#"{{"__metadata__":{{"DCP_SHARDING_INFO":"{saved}","DCP_VERSION":"1.0","format":"pt"}},"w":{{"dtype":"U8","shape":[1,2],"data_offsets":[0,2]}}}}"#
        );
        let len = (header.len() as u64).to_le_bytes();
        SafeTensors::new([&len, header.as_bytes(), &[7, 8]].concat()).unwrap()
    };
    let (first, second) = (file(0), file(1));
    let (first, second) =
        (first.value(Names::Stored).unwrap(), second.value(Names::Stored).unwrap());
    let what = "`w`: it is a part of a tensor: it starts at [1, 0] of the whole";
    assert!(first.losses().is_empty() && first.losses().notes()[0].contains("other files"));
    assert_eq!(second.losses().listed()[0].to_string(), what);
}

fn distributed(file: usize) -> std::path::PathBuf {
    let name = format!("distributed/shard-{file:05}-model-00001-of-00001.safetensors");
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/safetensors").join(name)
}

/// The files of `torch.distributed.checkpoint`, of which each process has written one.
#[test]
fn the_parts_of_all_processes_are_put_together() {
    for first in 1..=3 {
        let file = Format::Safetensors.open(distributed(first), &Options::default()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let to = dir.path().join("all.tenarc");
        let losses =
            Format::Safetensors.to_archive(distributed(first), &to, &Options::default()).unwrap();
        assert!(losses.is_empty(), "{losses}");
        assert!(losses.notes()[0].contains("from 3 files"), "{losses:?}");
        let archive = tenarc::open(&to).unwrap();
        let w: ndarray::Array2<f32> = archive.tensor("w").unwrap();
        assert_eq!(
            w,
            ndarray::Array1::range(0.0, 35.0, 1.0).into_shape_with_order((7, 5)).unwrap()
        );
        let v: ndarray::Array2<i64> = archive.tensor("v").unwrap();
        assert_eq!(v, ndarray::Array1::from_iter(0..24).into_shape_with_order((2, 12)).unwrap());
        let r: ndarray::Array1<half::bf16> = archive.tensor("r").unwrap();
        assert_eq!(r, ndarray::Array1::from_elem(3, half::bf16::ONE));
        // Each tensor can be read by its name, too.
        let mut bytes = Vec::new();
        let tensor = file.file().deferred("w").unwrap();
        tensor
            .write_blocks(&mut |block| {
                bytes.extend_from_slice(block);
                Ok(())
            })
            .unwrap();
        assert_eq!(bytes, (0..35u8).flat_map(|n| f32::from(n).to_le_bytes()).collect::<Vec<_>>());
        let value: tenarc::Value = archive.load().unwrap();
        assert_eq!(value["__metadata__"]["format"], tenarc::Value::from("pt"));
        assert!(value["__metadata__"].get("DCP_SHARDING_INFO").is_none());
    }
}

#[test]
fn parts_that_do_not_fit_together_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let at = |number: usize| dir.path().join(distributed(number).file_name().unwrap());
    let open = || {
        let to = dir.path().join("x.tenarc");
        let done = Format::Safetensors.to_archive(at(1), to, &Options::default());
        done.map(drop).map_err(|error| error.to_string())
    };
    let copy = |from: usize, to: usize| {
        std::fs::copy(distributed(from), at(to)).unwrap();
    };
    copy(1, 1);
    // One file alone looks like a model, but it says that others can have more.
    assert_eq!(open(), Ok(()));
    copy(3, 3);
    let error = open().unwrap_err();
    assert!(error.contains("chunks have 16 of the 24 elements"), "{error}");
    copy(2, 2);
    assert_eq!(open(), Ok(()));
    copy(2, 3);
    let error = open().unwrap_err();
    assert!(error.contains("overlap"), "{error}");
    std::fs::write(at(3), b"").unwrap();
    assert!(open().is_err());
    let other = safetensors_of(r#"{"w":{"dtype":"F64","shape":[1,5],"data_offsets":[0,40]}}"#, 40);
    std::fs::write(at(3), other).unwrap();
    let error = open().unwrap_err();
    assert!(error.contains("does not say which parts of tensors it has"), "{error}");
    let saved = r#"{\"w\":{\"saved_offsets\":[6,0]}}"#;
    for (of, what) in [
        (r#""dtype":"F64","shape":[1,5],"data_offsets":[0,40]"#, "its parts have different dtypes"),
        (
            r#""dtype":"U8","shape":[40],"data_offsets":[0,40]"#,
            "a part of shape [40] starts at [6, 0]",
        ),
    ] {
        let header =
            format!(r#"{{"__metadata__":{{"DCP_SHARDING_INFO":"{saved}"}},"w":{{{of}}}}}"#);
        std::fs::write(at(3), safetensors_of(&header, 40)).unwrap();
        let error = open().unwrap_err();
        assert!(error.contains(what), "{error}");
    }
    let huge = saved.replace("[6,0]", "[18446744073709551615,0]");
    let of = r#""dtype":"F64","shape":[1,5],"data_offsets":[0,40]"#;
    let header = format!(r#"{{"__metadata__":{{"DCP_SHARDING_INFO":"{huge}"}},"w":{{{of}}}}}"#);
    std::fs::write(at(3), safetensors_of(&header, 40)).unwrap();
    assert!(open().unwrap_err().contains("starts at [18446744073709551615, 0]"));
}

fn safetensors_of(header: &str, len: usize) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &vec![0; len]].concat()
}
