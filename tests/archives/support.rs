//! Directories for files, sources that count, and round trips by every way there is.

use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ndarray::{Array, ArrayD, IxDyn};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tenarc::archive::SaveOptions;
use tenarc::io::{ReadAt, SyncLevel};
use tenarc::{Archive, IArchive, Map, OArchive, Tensor, Value};

use tenarc_test_support::readers;

/// A directory of its own for a test, removed with its contents.
pub struct Dir(PathBuf);

impl Dir {
    pub fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("tenarc-archive-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The names of the files in it, hidden ones too.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The default, but for syncing, which tests of contents need not wait for.
pub fn quick() -> SaveOptions {
    SaveOptions::default().with_sync(SyncLevel::Off)
}

/// Every option that changes what is written, by name.
pub fn variants() -> Vec<(&'static str, SaveOptions)> {
    vec![
        ("default", quick()),
        ("alignment 8, all in buffers", quick().with_alignment(8).with_inline_below(0)),
        ("alignment 65,536", quick().with_alignment(1 << 16)),
        ("all inline", quick().with_inline_below(usize::MAX)),
        ("inline below 100, dedup", quick().with_inline_below(100).with_dedup(true)),
        ("no checksums", quick().with_checksums(false).with_inline_below(0)),
        (
            "dedup without checksums",
            quick().with_checksums(false).with_inline_below(0).with_dedup(true),
        ),
        (
            "a callback",
            quick().with_out_of_band(|tensor| {
                tensor.dtype().name().len() == 3 || tensor.byte_len() > 9
            }),
        ),
    ]
}

/// An archive of one value.
#[track_caller]
pub fn to_bytes<T: Serialize + ?Sized>(value: &T, options: SaveOptions) -> Vec<u8> {
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    out.save(value).unwrap();
    out.finish().unwrap()
}

#[track_caller]
pub fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> T {
    let mut input = IArchive::new(bytes).unwrap();
    let value = input.load().unwrap();
    assert!(input.is_at_end().unwrap());
    value
}

/// The whole archive is sound, and every buffer lies where it should.
#[track_caller]
pub fn assert_sound(bytes: &[u8], alignment: u64) {
    let archive = Archive::new(bytes).unwrap();
    archive.verify().unwrap();
    for segment in &archive {
        let segment = segment.unwrap();
        assert_eq!(segment.alignment(), alignment);
        let mut end = 0;
        for &(start, len) in segment.buffers() {
            assert!(start.is_multiple_of(alignment), "a buffer at {start}");
            assert!(start >= end && len > 0, "{len} bytes at {start}, behind {end}");
            end = start + len;
        }
    }
}

/// Reads the only value of an archive in every way that takes bytes.
#[track_caller]
pub fn read_everywhere<T>(bytes: &[u8]) -> Vec<(&'static str, tenarc::Result<T>)>
where
    T: DeserializeOwned,
{
    let archive = Archive::new(bytes).unwrap();
    let counted = Archive::new(Counted::new(bytes.to_vec())).unwrap();
    let mut ways = vec![
        ("bytes in memory", archive.load()),
        ("get", archive.get("")),
        ("views", archive.view()),
        ("reads at positions", counted.load()),
    ];
    for (way, reader) in readers(bytes) {
        ways.push((way, IArchive::new(reader).and_then(|mut input| input.load())));
    }
    ways
}

/// Saves and loads in every way, with every option.
#[track_caller]
pub fn round_trip<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    for (name, options) in variants() {
        let alignment = match name {
            "alignment 8, all in buffers" => 8,
            "alignment 65,536" => 1 << 16,
            _ => 256,
        };
        let bytes = to_bytes(value, options);
        assert_sound(&bytes, alignment);
        for (way, read) in read_everywhere::<T>(&bytes) {
            match read {
                Ok(read) => assert!(&read == value, "{name}, {way}"),
                Err(error) => panic!("{name}, {way}: {error}"),
            }
        }
        let shown: Value = from_bytes(&bytes);
        assert!(&tenarc::from_value::<T>(shown).unwrap() == value, "{name}, through a value");
        // Every tensor listed can be asked for by the path given.
        let archive = Archive::new(&bytes[..]).unwrap();
        for info in archive.tensors().unwrap() {
            let tensor = archive.only().unwrap().dyn_tensor(info.path());
            let tensor = tensor.unwrap_or_else(|error| panic!("{name}, {info:?}: {error}"));
            assert_eq!((tensor.dtype(), tensor.shape()), (info.dtype(), info.shape()), "{name}");
        }
    }
    let dir = Dir::new();
    let path = dir.file("value.tenarc");
    tenarc::archive::save_with(&path, value, quick()).unwrap();
    assert!(&tenarc::load::<T>(&path).unwrap() == value, "load");
    assert!(&tenarc::open(&path).unwrap().load::<T>().unwrap() == value, "open");
    // SAFETY: nobody else knows of the file.
    let map = unsafe { Map::open(&path) }.unwrap();
    assert!(&map.load::<T>().unwrap() == value, "map, load");
    assert!(&map.view::<T>().unwrap() == value, "map, view");
    assert!(&map.get::<T>("").unwrap() == value, "map, get");
    assert!(&map.view_at::<T>("").unwrap() == value, "map, view_at");
    assert_eq!(dir.names(), ["value.tenarc"]);
}

/// Where a source was read: counts calls, too.
#[derive(Debug, Default)]
pub struct Log(Mutex<Vec<(u64, u64)>>);

impl Log {
    /// The reads since the last time, as offset and length.
    pub fn take(&self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// Number of reads and of bytes since the last time.
    pub fn totals(&self) -> (usize, u64) {
        let reads = self.take();
        (reads.len(), reads.iter().map(|(_, len)| len).sum())
    }
}

/// A source that does not lie in memory, as far as its reader can tell, and counts.
pub struct Counted {
    bytes: Vec<u8>,
    pub log: Arc<Log>,
}

impl Counted {
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, log: Arc::default() }
    }

    /// All bytes, uncounted.
    pub fn stored(&self) -> &[u8] {
        &self.bytes
    }
}

impl ReadAt for Counted {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.bytes.read_at(out, offset)?;
        self.log.0.lock().unwrap().push((offset, read as u64));
        Ok(read)
    }

    fn size(&self) -> io::Result<u64> {
        self.bytes.size()
    }
}

/// Numbers from zero on.
pub fn ramp(shape: &[usize]) -> ArrayD<f32> {
    let count: usize = shape.iter().product();
    Array::from_shape_vec(IxDyn(shape), (0..count).map(|at| at as f32).collect()).unwrap()
}

/// A tensor of so many numbers, which differ from those of other seeds.
pub fn weights(len: usize, seed: usize) -> Tensor<Vec<f32>> {
    Tensor((0..len).map(|at| (at * 31 + seed * 1_000_003) as f32).collect())
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
pub struct Layer {
    pub weight: Tensor<Vec<f32>>,
    pub bias: Tensor<Vec<f32>>,
}

/// A value with large and small tensors, text, and a plain vector that goes to a buffer.
#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
pub struct Model {
    pub name: String,
    pub layers: Vec<Layer>,
    pub curve: Vec<f64>,
}

pub fn model() -> Model {
    let layer = |n| Layer { weight: weights(3000 + n, n), bias: weights(10, n) };
    Model {
        name: "model".into(),
        layers: (0..3).map(layer).collect(),
        curve: (0..1000).map(f64::from).collect(),
    }
}

/// What a file holds.
pub fn contents(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}
