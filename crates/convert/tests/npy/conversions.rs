//! npz files to archives, and back.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;

use half::bf16;
use ndarray::{Array1, Array2, array};
use serde::Serialize;
use tenarc::error::Category;
use tenarc::types::{Parameter, TimeUnit, TypeName, Typed};
use tenarc::{Archive, DynTensor, OArchive, Tensor};
use tenarc_convert::npy::{self, Compression, Npz, NpzWriter, Options};
use tenarc_convert::{Format, TensorFile as _};

use super::support::{self, all, bytes, fixture, fixtures, part, says, zip};

fn archived(npz: &[u8]) -> Vec<u8> {
    let mut out = OArchive::new(Vec::new()).unwrap();
    let npz = Npz::new(npz).unwrap();
    assert!(tenarc_convert::into_archive(&npz, &mut out, &Options::default()).unwrap().is_empty());
    out.finish().unwrap()
}

/// The names of all files in a directory.
fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn every_npz_file_goes_there_and_back() {
    for name in ["plain", "compressed", "unicode", "nested", "positional", "mixed", "empty"] {
        let file = fixture(&format!("{name}.npz"));
        let expected = all(&file).unwrap();
        let archive = archived(&file);
        let map: BTreeMap<String, Tensor<DynTensor>> =
            Archive::new(&archive[..]).unwrap().load().unwrap();
        assert_eq!(map.len(), expected.len());
        for (name, tensor) in &expected {
            assert_eq!(&map[name].0, tensor, "{name}");
        }
        for compression in [Compression::Stored, Compression::Deflated] {
            let out = NpzWriter::new(Cursor::new(Vec::new())).unwrap();
            let mut out = out.with_compression(compression);
            let archive = Archive::new(&archive[..]).unwrap();
            let segment = archive.segment(0).unwrap();
            npy::export(&segment, &mut out, &Options::default()).unwrap();
            assert_eq!(all(&out.finish().unwrap().into_inner()).unwrap(), expected, "{name}");
        }
    }
}

#[test]
fn lists_of_tensors_in_buffers_are_written() {
    // Each is too large for the metadata.
    let list = (Tensor(Array1::<f32>::ones(5000)), Tensor(Array1::<f32>::zeros(6000)));
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(&BTreeMap::from([("list", list)])).unwrap();
    let archive = Archive::new(out.finish().unwrap()).unwrap();
    let mut out = NpzWriter::new(Cursor::new(Vec::new())).unwrap();
    npy::export(&archive.segment(0).unwrap(), &mut out, &Options::default()).unwrap();
    let found = all(&out.finish().unwrap().into_inner()).unwrap();
    assert_eq!(
        found.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["list.0", "list.1"]
    );
    assert_eq!(found.iter().map(|(_, tensor)| tensor.shape()[0]).collect::<Vec<_>>(), [5000, 6000]);
}

#[test]
fn members_that_are_no_tensors_stop_the_conversion_unless_they_may_be_left_out() {
    let file = zip(&[part("notes/a.txt", b"hello", false), part("a.npy", &bytes(b"x"), false)]);
    let told = Options::default().with_losses(true);
    for (file, lost) in [
        (file, "`notes/a.txt`: a member that is not an array"),
        (fixture("columns/long_double.npz"), "long doubles"),
    ] {
        let npz = Npz::new(&file[..]).unwrap();
        let mut out = OArchive::new(Vec::new()).unwrap();
        says(tenarc_convert::into_archive(&npz, &mut out, &Options::default()), lost);
        assert_eq!(out.segments(), 0);
        let found = tenarc_convert::into_archive(&npz, &mut out, &told).unwrap();
        assert!(found.count() == 1 && found.to_string().contains(lost), "{found}");
        let archive = out.finish().unwrap();
        assert_eq!(Archive::new(&archive[..]).unwrap().tensors().unwrap().len(), 1);
    }
    // Damage is no loss that one can ask for.
    let mut file = fixture("plain.npz");
    file[0] = b'Q';
    let npz = Npz::new(&file[..]).unwrap();
    let mut out = OArchive::new(Vec::new()).unwrap();
    says(tenarc_convert::into_archive(&npz, &mut out, &told), "local header");
}

#[derive(Serialize)]
struct Model {
    name: &'static str,
    layers: Vec<Layer>,
    scale: Tensor<Array1<bf16>>,
    steps: u64,
    blob: serde_bytes::ByteBuf,
    loss: Vec<f64>,
    none: Option<u8>,
    empty: Vec<u8>,
    by_truth: BTreeMap<bool, Tensor<Vec<f32>>>,
    big: u128,
    some: Option<Tensor<Array1<i16>>>,
    last: Tensor<Array1<i64>>,
}

#[derive(Serialize)]
struct Layer {
    weight: Tensor<Array2<f32>>,
}

fn model() -> Model {
    let layer = |n: u8| Layer { weight: Array2::from_elem((40, 40), n.into()).into() };
    Model {
        name: "a model",
        layers: vec![layer(1), layer(2)],
        scale: Array1::from_elem(3000, bf16::ONE).into(),
        steps: 7,
        blob: serde_bytes::ByteBuf::from(vec![7; 5000]),
        loss: vec![0.5; 400],
        none: None,
        empty: vec![],
        by_truth: BTreeMap::from([(true, Tensor(vec![1.0]))]),
        big: u128::MAX,
        some: Some(array![7].into()),
        last: Array1::from_elem(1000, 9).into(),
    }
}

#[test]
fn values_that_npz_has_no_place_for_stop_the_conversion_unless_they_may_be_left_out() {
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(&model()).unwrap();
    let bytes = out.finish().unwrap();
    let archive = Archive::new(&bytes[..]).unwrap();
    let segment = archive.segment(0).unwrap();
    let convert = |options: Options| {
        let mut out = NpzWriter::new(Cursor::new(Vec::new())).unwrap();
        let lost = npy::export(&segment, &mut out, &options)?;
        Ok((lost, out.finish().unwrap().into_inner()))
    };
    let options = Options::default;
    let error = says(convert(options()), "unless losses are accepted").to_string();
    let lost = [
        "`scale`: npy has no dtype for bf16; convert the elements to a dtype that it has",
        "`steps`: an integer is not a tensor: it is left out",
        "`blob`: a byte string is not a tensor: it is left out",
        "`none`: null is not a tensor: it is left out",
        "`by_truth.true`: its key is neither text nor integer: the name shows it as text",
        "`big`: an integer is not a tensor: it is left out",
    ];
    // The first are named.
    for what in &lost[..3] {
        assert!(error.contains(what), "{what}: {error}");
    }
    let (told, npz) = convert(options().with_losses(true)).unwrap();
    let told: Vec<String> = told.listed().iter().map(ToString::to_string).collect();
    assert_eq!(told, lost);
    let npz = Npz::new(&npz[..]).unwrap();
    let names: Vec<&str> = npz.names().collect();
    assert_eq!(names[6..], ["name", "empty"]);
    let names = &names[..6];
    let found: Vec<_> = names.iter().map(|name| npz.dyn_tensor(name).unwrap()).collect();
    assert_eq!(
        names,
        ["layers.0.weight", "layers.1.weight", "loss", "by_truth.true", "some", "last"]
    );
    assert_eq!(found[1].view::<f32>().unwrap()[[39, 39]], 2.0);
    assert_eq!(found[4], array![7i16].into());
    assert_eq!(found[5], Array1::from_elem(1000, 9i64).into());
}

#[test]
fn names_that_would_meet_are_an_error() {
    #[derive(Serialize)]
    struct Both {
        a: BTreeMap<&'static str, Tensor<Array1<f32>>>,
        #[serde(rename = "a.b")]
        b: Tensor<Array1<f32>>,
    }
    let tensor = || Tensor(array![1.0f32]);
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(&Both { a: BTreeMap::from([("b", tensor())]), b: tensor() }).unwrap();
    let bytes = out.finish().unwrap();
    let archive = Archive::new(&bytes[..]).unwrap();
    let options = Options::default();
    let mut out = NpzWriter::new(Cursor::new(Vec::new())).unwrap();
    let segment = archive.segment(0).unwrap();
    says(npy::export(&segment, &mut out, &options), "there are two tensors of this name");
}

/// Arrays and integer keys would come back as maps with text keys.
#[test]
fn only_maps_with_text_keys_are_flat() {
    let tensor = || Tensor(array![1.0f32]);
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(&vec![tensor(), tensor()]).unwrap();
    out.save(&BTreeMap::from([(7, tensor())])).unwrap();
    out.save(&tensor()).unwrap();
    let bytes = out.finish().unwrap();
    let archive = Archive::new(&bytes[..]).unwrap();
    let convert = |at, options: &Options| {
        let mut out = NpzWriter::new(Cursor::new(Vec::new())).unwrap();
        npy::export(&archive.segment(at).unwrap(), &mut out, options)?;
        Ok(all(&out.finish().unwrap().into_inner()).unwrap())
    };
    for at in [0, 1] {
        says(convert(at, &Options::default()), "the nesting of the tensors is left out");
    }
    let flattened = Options::default().with_losses(true);
    let names = |at| convert(at, &flattened).unwrap().into_iter().map(|(name, _)| name).collect();
    let names: [Vec<String>; 2] = [names(0), names(1)];
    assert_eq!(names, [vec!["0".to_owned(), "1".into()], vec!["7".into()]]);
    says(convert(2, &flattened), "which has no name");
}

#[test]
fn files_are_converted_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let options = Options::default().with_compression(Compression::Deflated);
    let lost = Format::Npz.to_archive(fixtures().join("nested.npz"), path("a.tenarc"), &options);
    assert!(lost.unwrap().is_empty());
    tenarc::open(path("a.tenarc")).unwrap().verify().unwrap();
    assert!(
        Format::Npz.from_archive(path("a.tenarc"), path("a.npz"), &options).unwrap().is_empty()
    );
    let npz = std::fs::read(path("a.npz")).unwrap();
    assert_eq!(all(&npz).unwrap(), all(&fixture("nested.npz")).unwrap());
    assert!(Npz::new(&npz[..]).unwrap().members().iter().all(npy::Member::is_deflated));

    // Whatever goes wrong, what was there stays.
    let before = std::fs::read(path("a.tenarc")).unwrap();
    for (bad, text) in [
        ("bad/crc.npz", "CRC-32"),
        ("bad/trunc.npz", "end record"),
        ("columns/long_double.npz", "long doubles"),
        ("gone.npz", "gone.npz"),
    ] {
        says(Format::Npz.to_archive(fixtures().join(bad), path("a.tenarc"), &options), text);
    }
    assert_eq!(std::fs::read(path("a.tenarc")).unwrap(), before);
    tenarc::save(path("model.tenarc"), &model()).unwrap();
    says(Format::Npz.from_archive(path("model.tenarc"), path("a.npz"), &options), "losses");
    let mut log = OArchive::append(path("a.tenarc")).unwrap();
    log.save("another").unwrap();
    log.finish().unwrap();
    says(Format::Npz.from_archive(path("a.tenarc"), path("a.npz"), &options), "one value, found 2");
    assert_eq!(std::fs::read(path("a.npz")).unwrap(), npz);
    assert_eq!(names(dir.path()), ["a.npz", "a.tenarc", "model.tenarc"]);
}

#[test]
fn what_an_opened_file_leaves_out_is_lost_in_every_format() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let file = zip(&[part("notes/a.txt", b"hello", false), part("a.npy", &bytes(b"x"), false)]);
    std::fs::write(path("a.npz"), file).unwrap();
    let opened = Format::Npz.open(path("a.npz"), &Options::default()).unwrap();
    says(
        Format::Npz.save(&opened, path("b.npz"), &Options::default()),
        "a member that is not an array",
    );
    assert!(!path("b.npz").exists());
    let lossy = Options::default().with_losses(true);
    let losses = Format::Npz.save(&opened, path("b.npz"), &lossy).unwrap();
    assert_eq!(losses.listed()[0].path(), "notes/a.txt");
    assert_eq!(Npz::open(path("b.npz")).unwrap().members().len(), 1);
}

#[test]
fn a_damaged_archive_is_not_converted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tenarc");
    tenarc::save(&path, &BTreeMap::from([("a", Tensor(vec![1.0f32; 4000]))])).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4000] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let npz = dir.path().join("a.npz");
    let error = Format::Npz.from_archive(&path, &npz, &Options::default()).unwrap_err();
    assert_eq!(error.category(), Category::Damaged);
    assert_eq!(names(dir.path()), ["a.tenarc"]);
}

/// An npy file of integers of 64 bits with this type string, of one dimension.
fn times(descr: &str, numbers: &[i64]) -> Vec<u8> {
    let len = numbers.len();
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({len},)}}");
    let big = descr.starts_with('>');
    let bytes = |number: &i64| if big { number.to_be_bytes() } else { number.to_le_bytes() };
    support::npy(&header, &numbers.iter().flat_map(bytes).collect::<Vec<_>>())
}

#[test]
fn times_are_tensors_of_a_type_and_come_back() {
    const NOT_A_TIME: i64 = i64::MIN;
    let numbers = [-3, 7, i64::from(i32::MAX)];
    let own = |name: &str, unit: &str| {
        let unit = vec![Parameter::Text(unit.to_owned())];
        TypeName::new(format!("numpy.org/{name}"), unit).unwrap()
    };
    let seconds = TypeName::timestamp(TimeUnit::Second, "").unwrap();
    let days = numbers.map(|number| i32::try_from(number).unwrap());
    let cases: [(&str, [i64; 3], TypeName); 9] = [
        ("<M8[s]", numbers, seconds.clone()),
        (">M8[s]", numbers, seconds),
        ("<m8[ns]", numbers, TypeName::duration(TimeUnit::Nanosecond)),
        ("<m8[ns]", [NOT_A_TIME, 0, 1], own("timedelta64", "ns")),
        ("<M8[D]", [1 << 31, 0, 1], own("datetime64", "D")),
        ("<M8[D]", [0, NOT_A_TIME, 1], own("datetime64", "D")),
        ("<M8[25s]", numbers, own("datetime64", "25s")),
        ("<m8[D]", numbers, own("timedelta64", "D")),
        ("<M8", numbers, own("datetime64", "generic")),
    ];
    let there_and_back = |file: &[u8], expected: Vec<u8>, little: &[u8]| {
        let npy = npy::NpyFile::new(file).unwrap();
        assert_eq!(tenarc::to_vec(&npy.stored().unwrap()).unwrap(), expected);
        let zipped = zip(&[part("t.npy", file, true)]);
        let archive = archived(&zipped);
        let mut out = NpzWriter::new(Cursor::new(Vec::new())).unwrap();
        let archive = Archive::new(&archive[..]).unwrap();
        let segment = archive.segment(0).unwrap();
        assert!(npy::export(&segment, &mut out, &Options::default()).unwrap().is_empty());
        let back = out.finish().unwrap().into_inner();
        // numpy pads headers.
        let elements = back.windows(24).any(|bytes| bytes == &little[little.len() - 24..]);
        assert!(elements && Npz::new(&back[..]).unwrap().names().eq(["t"]));
        let written = tenarc::to_vec(&Npz::new(&back[..]).unwrap().stored().unwrap()).unwrap();
        let read = tenarc::to_vec(&Npz::new(&zipped[..]).unwrap().stored().unwrap()).unwrap();
        assert_eq!(written, read);
    };
    for (descr, numbers, of) in cases {
        let file = times(descr, &numbers);
        let expected = tenarc::to_vec(&Typed::new(&of, &Tensor(numbers.to_vec()))).unwrap();
        there_and_back(&file, expected, &times("<M8", &numbers));
    }
    let expected = tenarc::to_vec(&Typed::new(&TypeName::date(), &Tensor(days.to_vec()))).unwrap();
    there_and_back(&times("<M8[D]", &numbers), expected, &times("<M8", &numbers));
}

#[test]
fn types_that_numpy_does_not_have_are_losses() {
    let zoned = TypeName::timestamp(TimeUnit::Second, "Europe/Berlin").unwrap();
    let (at, price) = (Tensor(vec![5i64]), TypeName::decimal(5, 2).unwrap());
    let value =
        BTreeMap::from([("at", Typed::new(&zoned, &at)), ("price", Typed::new(&price, &at))]);
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(&value).unwrap();
    let archive = out.finish().unwrap();
    let archive = Archive::new(&archive[..]).unwrap();
    let mut out = NpzWriter::new(Cursor::new(Vec::new())).unwrap();
    let told = Options::default().with_losses(true);
    let lost = npy::export(&archive.segment(0).unwrap(), &mut out, &told).unwrap();
    let lost: Vec<_> = lost.listed().iter().map(ToString::to_string).collect();
    assert_eq!(
        lost,
        [
            "`at`: its time zone, `Europe/Berlin`, is left out",
            "`price`: its type, `decimal`, is left out"
        ]
    );
    let back = out.finish().unwrap().into_inner();
    let npz = Npz::new(&back[..]).unwrap();
    let price: Array1<i64> = npz.tensor("price").unwrap();
    assert_eq!(price, array![5]);
    says(npz.dyn_tensor("at"), "times or durations (`<M8[s]`)");
}
