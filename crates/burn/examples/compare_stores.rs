//! Saves and loads a module of 200 MB with this crate's store and with burn's `BurnpackStore`, and prints the times.
//!
//! ```console
//! $ cargo run --release -p tenarc-burn --example compare_stores
//! ```
//!
//! The stores take turns, and the median of the rounds counts. All of them replace the file in one step and sync it, and
//! the file is in the page cache when it is loaded. After loading, one number of each page is read, so that no store
//! leaves work for later. burnpack has no checksums. An argument sets another number of layers than 12.

use burn_core as burn;

use std::path::Path;
use std::time::{Duration, Instant};

use burn::module::Module;
use burn::tensor::Device;
use burn_nn::{Linear, LinearConfig};
use burn_store::{BurnpackStore, ModuleSnapshot};
use tenarc::Map;
use tenarc::archive::SaveOptions;
use tenarc::de::DecodeOptions;
use tenarc_burn::TenarcStore;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const SIDE: usize = 2048;
const ROUNDS: usize = 7;

#[derive(Module, Debug)]
struct Model {
    layers: Vec<Linear>,
}

impl Model {
    fn new(layers: usize, device: &Device) -> Self {
        let layer = |_| LinearConfig::new(SIDE, SIDE).with_bias(false).init(device);
        Self { layers: (0..layers).map(layer).collect() }
    }

    /// The sum of one number of each page.
    fn touch(&self) -> Result<f64> {
        let mut sum = 0.0;
        for layer in &self.layers {
            let data = layer.weight.val().into_data();
            sum += data
                .as_slice::<f32>()
                .map_err(|error| format!("{error:?}"))?
                .iter()
                .step_by(1024)
                .map(|x| f64::from(*x))
                .sum::<f64>();
        }
        Ok(sum)
    }
}

fn burnpack(dir: &Path) -> BurnpackStore {
    BurnpackStore::from_file(dir.join("model.bpk")).overwrite(true)
}

/// A store with or without checksums, each with a file of its own.
fn tenarc(dir: &Path, checksums: bool) -> TenarcStore {
    let file = dir.join(if checksums { "verified.tenarc" } else { "plain.tenarc" });
    TenarcStore::from_file(file)
        .overwrite(true)
        .with_save_options(SaveOptions::default().with_checksums(checksums))
        .with_decode_options(DecodeOptions::default().with_checksums(checksums))
}

fn mapped(dir: &Path) -> Result<TenarcStore> {
    // SAFETY: nobody changes the file while it is mapped.
    #[allow(unsafe_code)]
    let map = unsafe { Map::open(dir.join("plain.tenarc")) }?;
    Ok(TenarcStore::from_map(map))
}

type Task<'a> = (&'static str, Box<dyn FnMut() -> Result<Duration> + 'a>);

/// Runs the tasks in turns, and prints their medians beside the first one.
fn compare(title: &str, mut tasks: Vec<Task<'_>>) -> Result<()> {
    let mut times = vec![Vec::new(); tasks.len()];
    // The first round is not counted.
    for round in 0..=ROUNDS {
        for at in 0..tasks.len() {
            // Each round begins with another one.
            let at = (at + round) % tasks.len();
            let took = (tasks[at].1)()?;
            times[at].extend((round > 0).then_some(took));
        }
    }
    println!("| {title} | | |\n|---|---:|---:|");
    let mut first = None;
    for ((name, _), mut times) in tasks.iter().zip(times) {
        times.sort();
        let median = times[times.len() / 2].as_secs_f64();
        let ratio = median / *first.get_or_insert(median);
        println!("| {name} | {:.0} ms | {ratio:.2} × |", median * 1e3);
    }
    println!();
    Ok(())
}

fn main() -> Result<()> {
    let layers = std::env::args().nth(1).map_or(Ok(12), |count| count.parse())?;
    let dir = tempfile::tempdir()?;
    let dir = dir.path();
    let device = Device::flex();
    let model = Model::new(layers, &device);
    let expected = model.touch()?;
    println!(
        "{layers} layers of {SIDE} x {SIDE} floats, {} MB\n",
        layers * SIDE * SIDE * 4 / 1_000_000
    );

    let save = |to: &dyn Fn() -> Result<()>| {
        let start = Instant::now();
        to()?;
        Ok(start.elapsed())
    };
    let ours = |checksums| Ok(model.save_into(&mut tenarc(dir, checksums))?);
    compare(
        "save",
        vec![
            ("BurnpackStore", Box::new(|| save(&|| Ok(model.save_into(&mut burnpack(dir))?)))),
            ("TenarcStore, no checksums", Box::new(|| save(&|| ours(false)))),
            ("TenarcStore", Box::new(|| save(&|| ours(true)))),
        ],
    )?;

    // Other numbers than those that are loaded.
    let other = Model::new(layers, &device);
    assert_ne!(other.touch()?.to_bits(), expected.to_bits());
    let load = |from: &dyn Fn(&mut Model) -> Result<()>| {
        let mut loaded = other.clone();
        let start = Instant::now();
        from(&mut loaded)?;
        let sum = loaded.touch()?;
        let took = start.elapsed();
        if sum.to_bits() == expected.to_bits() {
            Ok(took)
        } else {
            Err("other numbers were loaded".into())
        }
    };
    compare(
        "load",
        vec![
            (
                "BurnpackStore",
                Box::new(|| load(&|model| Ok(model.load_from(&mut burnpack(dir)).map(drop)?))),
            ),
            (
                "TenarcStore, no checksums",
                Box::new(|| {
                    load(&|model| Ok(model.load_from(&mut tenarc(dir, false)).map(drop)?))
                }),
            ),
            (
                "TenarcStore",
                Box::new(|| {
                    load(&|model| Ok(model.load_from(&mut tenarc(dir, true)).map(drop)?))
                }),
            ),
            (
                "TenarcStore, mapped",
                Box::new(|| load(&|model| Ok(model.load_from(&mut mapped(dir)?).map(drop)?))),
            ),
        ],
    )
}
