//! Damaged archives of which the good chunks are written again, with zeros in place of the others.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tenarc::archive::{Compression, Recovered, SaveOptions, recover, recover_filled, recover_to};
use tenarc::error::Category;
use tenarc::tensor::{DynTensor, Order, TensorInfo};
use tenarc::{Archive, DType, OArchive, Tensor};

use crate::support::{Chance, Dir, Record, name, record, unsynced};

const CHUNK: u64 = 64 << 10;

struct Files {
    dir: Dir,
    path: PathBuf,
    new: PathBuf,
}

impl Files {
    fn new() -> Self {
        let dir = Dir::new();
        let [path, new] = ["a.tenarc", "new.tenarc"].map(|name| dir.at(name));
        Self { dir, path, new }
    }

    /// Writes the bytes, and recovers them. The old file stays as it is, and the new one is good.
    #[track_caller]
    fn recover(&self, bytes: &[u8]) -> Recovered {
        fs::write(&self.path, bytes).unwrap();
        let recovered = recover_filled(&self.path, &self.new).unwrap();
        assert!(fs::read(&self.path).unwrap() == bytes);
        let new = tenarc::open(&self.new).unwrap();
        new.verify().unwrap();
        let salvaged = u64::from(recovered.salvaged.is_some());
        assert_eq!(new.len(), recovered.segments + salvaged);
        recovered
    }
}

fn options() -> SaveOptions {
    unsynced().with_chunk_len(CHUNK)
}

fn flip(bytes: &mut [u8], at: u64) {
    bytes[usize::try_from(at).unwrap()] ^= 0x10;
}

/// Where the buffers of the only segment are.
fn buffers(bytes: &[u8]) -> Vec<(u64, u64)> {
    Archive::new(bytes).unwrap().segment(0).unwrap().buffers().to_vec()
}

/// Path, chunk, bytes and rows of everything that became zeros.
type Lines = Vec<(String, u64, Range<u64>, Option<Range<u64>>)>;

fn filled(recovered: &Recovered) -> Lines {
    let all = recovered.mended.iter().flat_map(|mended| &mended.filled);
    all.flat_map(|filled| {
        filled.chunks.iter().map(|chunk| {
            let path = filled.tensors[0].path().to_owned();
            (path, chunk.number, chunk.bytes.clone(), chunk.rows.clone())
        })
    })
    .collect()
}

type Model = BTreeMap<String, Tensor<DynTensor>>;

/// Three matrices of so many rows of 100 f32.
fn model(rows: usize) -> Model {
    let matrix = |seed: usize| {
        let values = (0..rows * 100).flat_map(|at| (((at * 31 + seed) % 77) as f32).to_le_bytes());
        Tensor(DynTensor::new(DType::F32, &[rows, 100], Order::C, values.collect()).unwrap())
    };
    (0..3).map(|seed| (format!("w{seed}"), matrix(seed))).collect()
}

fn saved(path: &Path, model: &Model, options: SaveOptions) -> Vec<u8> {
    let mut out = OArchive::create(path, options).unwrap();
    out.save_as("model", model).unwrap();
    out.finish().unwrap();
    fs::read(path).unwrap()
}

/// What the model is with zeros in these bytes.
fn with_zeros(model: &Model, lines: &Lines) -> Model {
    let mut expected = model.clone();
    for (path, _, bytes, _) in lines {
        let old = &expected[path];
        let mut payload = old.le_bytes().to_vec();
        payload[bytes.start as usize..bytes.end as usize].fill(0);
        let new = DynTensor::new(old.dtype().clone(), old.shape(), old.order(), payload).unwrap();
        expected.insert(path.clone(), Tensor(new));
    }
    expected
}

#[test]
fn damaged_chunks_become_zeros_and_are_named() {
    let files = Files::new();
    let model = model(1000);
    let whole = saved(&files.path, &model, options());
    let buffers = buffers(&whole);
    let mut bytes = whole.clone();
    let (first, second) = (buffers[0].0, buffers[2].0);
    for at in [first + 5, first + 6, first + 3 * CHUNK, second + 399_999] {
        flip(&mut bytes, at);
    }
    let recovered = files.recover(&bytes);
    // A row has 400 bytes, and a chunk has 163.84 rows.
    let expected = vec![
        ("w0".to_owned(), 0, 0..65_536, Some(0..164)),
        ("w0".to_owned(), 3, 196_608..262_144, Some(491..656)),
        ("w2".to_owned(), 6, 393_216..400_000, Some(983..1000)),
    ];
    assert_eq!(filled(&recovered), expected);
    let mended = &recovered.mended[0];
    assert_eq!((mended.number, mended.name.as_deref()), (0, Some("model")));
    assert!(mended.missing.is_empty() && recovered.lost.is_empty());
    assert_eq!((recovered.segments, recovered.damaged, recovered.dropped), (1, 0, 0));
    let found: Model = tenarc::open(&files.new).unwrap().load().unwrap();
    assert!(found == with_zeros(&model, &expected));
    // Nothing else does this: a wrong value is never written without being asked for.
    assert!(recover(&files.path).unwrap().mended.is_empty());
    assert!(recover_to(&files.path, &files.new).unwrap().mended.is_empty());
    assert!(fs::read(&files.new).unwrap() == bytes);
}

#[test]
fn compressed_chunks_become_zeros_too() {
    if cfg!(not(feature = "compression")) {
        return;
    }
    let files = Files::new();
    let model = model(3000);
    for codec in [Compression::zstd(0), Compression::lz4()] {
        let whole = saved(&files.path, &model, options().with_compression(codec));
        let archive = Archive::new(&whole[..]).unwrap();
        let segment = archive.segment(0).unwrap();
        let stored = segment.compressed(1).unwrap().stored_len();
        let start = segment.buffers()[1].0;
        // The last chunk, and one in the middle.
        let mut bytes = whole.clone();
        flip(&mut bytes, start + stored - 1);
        flip(&mut bytes, start + stored / 2);
        let recovered = files.recover(&bytes);
        let lines = filled(&recovered);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!(lines[1], ("w1".to_owned(), 18, 1_179_648..1_200_000, Some(2949..3000)));
        let archive = tenarc::open(&files.new).unwrap();
        let found: Model = archive.load().unwrap();
        assert!(found == with_zeros(&model, &lines));
        // The other chunks stay compressed.
        let now = archive.segment(0).unwrap().compressed(1).unwrap().stored_len();
        assert!(now > stored && now <= stored + 2 * CHUNK, "{stored} {now}");
    }
}

/// Whatever byte changes: the result is refused, or everything that is not named is what it was.
#[test]
fn whatever_changes_nothing_unnamed_is_another_value() {
    let files = Files::new();
    let mut out = OArchive::create(&files.path, unsynced()).unwrap();
    for number in 0..3 {
        out.save_as(&name(number), &record(number, 600)).unwrap();
        out.commit().unwrap();
    }
    drop(out);
    let whole = fs::read(&files.path).unwrap();
    let mut seen = [0; 4];
    for at in (12..whole.len()).filter(|at| at % 61 == 0 || at % 7500 < 60) {
        let mut bytes = whole.clone();
        flip(&mut bytes, at as u64);
        fs::write(&files.path, &bytes).unwrap();
        let Ok(recovered) = recover_filled(&files.path, &files.new) else {
            seen[0] += 1;
            continue;
        };
        let archive = tenarc::open(&files.new).unwrap();
        archive.verify().unwrap();
        let lines = filled(&recovered);
        let lost = recovered.lost.len();
        assert_eq!(archive.len(), 3 - lost as u64, "{at}");
        assert!(lines.len() + lost <= 1, "{at}: {recovered:?}");
        for segment in archive.segments() {
            let segment = segment.unwrap();
            let mut found: Record = segment.load().unwrap();
            let expected = record(found.number, 600);
            assert_eq!(segment.name(), Some(&*name(found.number)));
            if recovered.mended.first().map(|mended| mended.name.as_deref()) == Some(segment.name())
                && let Some((path, ..)) = lines.first()
            {
                if path == "data" {
                    assert!(found.data.iter().all(|&number| number == 0), "{at}");
                    found.data = expected.data.clone();
                } else {
                    assert!(found.more.iter().all(|&number| number == 0.0), "{at}");
                    found.more = expected.more.clone();
                }
            }
            assert_eq!(found, expected, "{at}");
        }
        seen[if lost == 1 { 1 } else { 2 + lines.len() }] += 1;
    }
    assert!(seen.iter().all(|&count| count > 0), "{seen:?}");
}

#[test]
fn a_damaged_list_of_hashes_costs_nothing() {
    let files = Files::new();
    let model = model(1000);
    let whole = saved(&files.path, &model, options());
    let archive = Archive::new(&whole[..]).unwrap();
    let segment = archive.segment(0).unwrap();
    let end = segment.offset() + segment.byte_len();
    // There are 21 hashes, and the hash over them.
    for at in [end - 3, end - 9, end - 10, end - 100, end - 9 - 21 * 8 - 1] {
        let mut bytes = whole.clone();
        flip(&mut bytes, at);
        assert!(Archive::new(&bytes[..]).unwrap().load::<Model>().is_err());
        let recovered = files.recover(&bytes);
        assert!(recovered.mended.is_empty(), "{at}: {recovered:?}");
        let found: Model = tenarc::open(&files.new).unwrap().load().unwrap();
        assert!(found == model);
        // With a damaged tensor too, good chunks are known by their hashes.
        flip(&mut bytes, buffers(&whole)[1].0 + CHUNK);
        let lines = filled(&files.recover(&bytes));
        let damaged = ("w1".to_owned(), 1, CHUNK..2 * CHUNK, Some(163..328));
        assert!(lines.contains(&damaged) && lines.len() <= 2, "{at}: {lines:?}");
        let found: Model = tenarc::open(&files.new).unwrap().load().unwrap();
        assert!(found == with_zeros(&model, &lines));
    }
}

#[test]
fn values_with_a_damaged_header_are_lost_and_named() {
    let files = Files::new();
    let mut out = OArchive::create(&files.path, unsynced()).unwrap();
    for number in 0..130 {
        out.save_as(&name(number), &record(number, 3)).unwrap();
        if number == 100 {
            out.commit().unwrap();
        }
    }
    out.finish().unwrap();
    let mut bytes = fs::read(&files.path).unwrap();
    let archive = tenarc::open(&files.path).unwrap();
    for number in [0, 64, 129] {
        flip(&mut bytes, archive.segment(number).unwrap().offset() + 30);
    }
    let recovered = files.recover(&bytes);
    let lost: Vec<_> = recovered.lost.iter().map(|lost| (lost.number, lost.name.clone())).collect();
    assert_eq!(lost, [0, 64, 129].map(|number| (number, Some(name(number as u32)))));
    assert!(recovered.lost[0].error.contains("checksum of a header"), "{recovered:?}");
    let new = tenarc::open(&files.new).unwrap();
    let found = new.segments().map(|segment| segment.unwrap().get::<u32>("number").unwrap());
    assert!(found.eq((0..130).filter(|number| ![0, 64, 129].contains(number))));
    // Without the last end mark nothing says where the next value is.
    fs::write(&files.path, &bytes[..bytes.len() - 1]).unwrap();
    let error = recover_filled(&files.path, files.dir.at("none")).unwrap_err();
    assert!(error.to_string().contains("a.tenarc"), "{error}");
    assert!(!files.dir.at("none").exists());
}

#[test]
fn values_behind_an_end_mark_and_a_cut_one_are_kept() {
    let files = Files::new();
    let mut out = OArchive::create(&files.path, unsynced()).unwrap();
    for number in 0..3 {
        out.save_as(&name(number), &record(number, 600)).unwrap();
        if number == 0 {
            out.commit().unwrap();
        }
    }
    out.finish().unwrap();
    let archive = tenarc::open(&files.path).unwrap();
    let start = |number: u64, buffer: usize| archive.segment(number).unwrap().buffers()[buffer].0;
    let mut bytes = fs::read(&files.path).unwrap();
    flip(&mut bytes, start(0, 1) + 9);
    flip(&mut bytes, start(1, 0) + 9);
    bytes.truncate(start(2, 1) as usize + 9);
    let recovered = files.recover(&bytes);
    let expected = [("more", 0..4800), ("data", 0..2400)]
        .map(|(path, bytes)| (path.into(), 0, bytes, Some(0..600)));
    assert_eq!(filled(&recovered), expected);
    assert_eq!(recovered.mended[1].number, 1);
    let salvaged = recovered.salvaged.unwrap();
    assert_eq!((salvaged.tensors[0].path(), salvaged.missing[0].path()), ("data", "more"));
    let new = tenarc::open(&files.new).unwrap();
    let found = new.segment(2).unwrap().tensor::<ndarray::Array1<u32>>("data").unwrap();
    assert_eq!(found, record(2, 600).data.0);
    // Onto itself, too.
    assert_eq!(recover_filled(&files.path, &files.path).unwrap().segments, 2);
    assert!(fs::read(&files.path).unwrap() == fs::read(&files.new).unwrap());
    assert_eq!(recover_filled(&files.path, &files.path).unwrap().mended, []);
}

#[test]
fn tied_tensors_columns_first_and_bytes() {
    #[derive(Serialize)]
    struct Odd<'a> {
        a: &'a Tensor<DynTensor>,
        b: &'a Tensor<DynTensor>,
        f: Tensor<DynTensor>,
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
        scalar: Tensor<DynTensor>,
    }
    let files = Files::new();
    let tensor = |dtype, shape: &[usize], order, len| {
        Tensor(DynTensor::new(dtype, shape, order, vec![7; len]).unwrap())
    };
    let tied = tensor(DType::F32, &[10, 100], Order::C, 4000);
    let value = Odd {
        a: &tied,
        b: &tied,
        f: tensor(DType::U16, &[50, 60], Order::F, 6000),
        bytes: vec![9; 3000],
        scalar: tensor(DType::from_name("other"), &[4], Order::C, 5000),
    };
    let mut out = OArchive::create(&files.path, options().with_dedup(true)).unwrap();
    out.save(&value).unwrap();
    out.finish().unwrap();
    let mut bytes = fs::read(&files.path).unwrap();
    let buffers = buffers(&bytes);
    assert_eq!(buffers.len(), 4);
    for (start, _) in &buffers {
        flip(&mut bytes, start + 1);
    }
    let recovered = files.recover(&bytes);
    let found = &recovered.mended[0].filled;
    let paths: Vec<Vec<&str>> =
        found.iter().map(|filled| filled.tensors.iter().map(TensorInfo::path).collect()).collect();
    assert_eq!(paths, [vec!["a", "b"], vec!["f"], vec!["bytes"], vec!["scalar"]]);
    let rows: Vec<_> = found.iter().map(|filled| filled.chunks[0].rows.clone()).collect();
    assert_eq!(rows, [Some(0..10), None, Some(0..3000), None]);
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Row {
    id: u64,
    label: String,
    maybe: Option<f64>,
}

#[test]
fn columns_of_numbers_become_zeros_and_other_columns_are_left_out() {
    let files = Files::new();
    let row = |id: u64| Row {
        id: id * 1_000_000_007,
        label: format!("row {id}"),
        maybe: (!id.is_multiple_of(3)).then_some(id as f64),
    };
    let rows: Vec<Row> = (0..70_000).map(row).collect();
    let value = BTreeMap::from([("events", &rows)]);
    let mut out = OArchive::create(&files.path, options()).unwrap();
    out.save(&value).unwrap();
    out.save(&1).unwrap();
    out.finish().unwrap();
    let whole = fs::read(&files.path).unwrap();
    let buffers = buffers(&whole);
    let mut seen = [0; 2];
    for (number, (start, len)) in buffers.iter().enumerate() {
        let mut bytes = whole.clone();
        flip(&mut bytes, start + len / 2);
        let recovered = files.recover(&bytes);
        let archive = tenarc::open(&files.new).unwrap();
        assert_eq!((archive.len(), recovered.mended.len()), (2, 1));
        let segment = archive.segment(0).unwrap();
        let lines = filled(&recovered);
        if let [(path, _, _, Some(at))] = &lines[..] {
            assert_eq!(path, "events.id");
            assert!(recovered.mended[0].missing.is_empty());
            let found: BTreeMap<String, Vec<Row>> = segment.load().unwrap();
            let mut zeros = 0;
            for (index, (found, expected)) in found["events"].iter().zip(&rows).enumerate() {
                if found != expected {
                    assert!(at.contains(&(index as u64)), "{number}: {index} {at:?}");
                    assert_eq!(found, &Row { id: 0, ..expected.clone() });
                    zeros += 1;
                }
            }
            // The first row of the second group is in a buffer of its own.
            let expected = if at.start >= 65_536 { 65_536..70_000 } else { at.clone() };
            assert_eq!((at, zeros), (&expected, at.end - at.start), "{number}");
            seen[0] += 1;
        } else {
            assert!(lines.is_empty(), "{lines:?}");
            assert_eq!(recovered.mended[0].missing, ["events"]);
            assert_eq!(segment.get::<Option<u8>>("events").unwrap(), None);
            seen[1] += 1;
        }
    }
    // In each group: the numbers; the texts, the optional numbers and, in the first group, their lengths and flags.
    assert_eq!(seen, [2, 6], "{buffers:?}");
}

#[test]
fn what_is_good_stays_the_same() {
    let files = Files::new();
    let model = model(500);
    let checksums = [true, false];
    for whole in checksums.map(|on| saved(&files.path, &model, options().with_checksums(on))) {
        assert_eq!(files.recover(&whole), recover_to(&files.path, files.dir.at("b")).unwrap());
        assert!(fs::read(&files.new).unwrap() == whole);
    }
    let mut chance = Chance::new(3);
    for len in [0, 5, 11] {
        let noise: Vec<u8> = (0..len).map(|_| chance.next() as u8).collect();
        fs::write(&files.path, noise).unwrap();
        let error = recover_filled(&files.path, files.dir.at("none")).unwrap_err();
        assert!(matches!(error.category(), Category::Torn | Category::Syntax), "{error}");
        assert!(!files.dir.at("none").exists());
    }
}

#[test]
fn without_checksums_a_damaged_list_of_them_loses_nothing() {
    let files = Files::new();
    let value = Tensor(vec![7u8; 5000]);
    let options = unsynced().with_checksums(false);
    tenarc::archive::save_with(&files.path, &value, options).unwrap();
    let mut bytes = fs::read(&files.path).unwrap();
    let segment = tenarc::open(&files.path).unwrap().only().unwrap().byte_len();
    // The hash of the list, which has no hashes.
    flip(&mut bytes, 12 + segment - 1);
    let recovered = files.recover(&bytes);
    assert_eq!((recovered.segments, recovered.mended, recovered.lost), (1, vec![], vec![]));
    assert_eq!(tenarc::load::<Tensor<Vec<u8>>>(&files.new).unwrap(), value);
}
