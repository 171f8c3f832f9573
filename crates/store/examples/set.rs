//! Joins the latest state of a set into one archive, or divides the tensors of an archive into a set:
//!
//! ```text
//! set join FOLDER FILE
//! set divide FILE FOLDER RANKS
//! ```

use std::collections::BTreeMap;

use serde::Serialize;
use tenarc::tensor::{AxisSlice, DynTensor, Slices};
use tenarc::{Tensor, Value};
use tenarc_store::{Error, Kind, Result, Store};

/// A state as one value.
#[derive(Serialize)]
struct State {
    step: u64,
    tensors: BTreeMap<String, Tensor<DynTensor>>,
    values: BTreeMap<String, Value>,
}

fn store(folder: &str) -> Result<Store> {
    let invalid = |what| Error::new(Kind::Store, format!("{folder}: {what}"));
    let folder = std::path::absolute(folder).map_err(|error| invalid(error.to_string()))?;
    let url = url::Url::from_directory_path(&folder)
        .map_err(|()| invalid("this is no path of a folder".to_owned()))?;
    Store::open(url.as_str())
}

async fn join(folder: &str, file: &str) -> Result<()> {
    let set = store(folder)?.latest().await?;
    let set = set.ok_or_else(|| Error::new(Kind::NotFound, "nothing was committed"))?;
    let mut state = State { step: set.step(), tensors: BTreeMap::new(), values: BTreeMap::new() };
    for tensor in set.tensors() {
        let found: DynTensor = set.tensor(tensor.path()).await?;
        state.tensors.insert(tensor.path().to_owned(), Tensor(found));
    }
    for path in set.values() {
        state.values.insert(path.to_owned(), set.value(path).await?);
    }
    Ok(tenarc::save(file, &state)?)
}

async fn divide(file: &str, folder: &str, ranks: u64) -> Result<()> {
    let (archive, store) = (tenarc::open(file)?, store(folder)?);
    let mut receipts = Vec::new();
    for rank in 0..ranks {
        let mut shard = store.step(1).shard(rank)?;
        for info in archive.tensors()? {
            let whole: Vec<u64> = info.shape().iter().map(|&len| len as u64).collect();
            let mut offset = vec![0; whole.len()];
            let mut slices = vec![AxisSlice::FULL; whole.len()];
            if let Some(&len) = whole.first() {
                // The rows are divided as evenly as possible.
                let (start, end) = (rank * len / ranks, (rank + 1) * len / ranks);
                offset[0] = start;
                let at = |row: u64| isize::try_from(row).unwrap_or(isize::MAX);
                slices[0] = AxisSlice::from(at(start)..at(end));
            } else if rank > 0 {
                continue;
            }
            let slices: Slices = slices.into_iter().collect();
            let rows: DynTensor = archive.slice(info.path(), slices)?;
            shard.block(info.path(), &rows, &whole, &offset)?;
        }
        shard.value(&format!("rank.{rank}"), &rank)?;
        receipts.push(shard.finish().await?);
    }
    store.step(1).commit(receipts, ranks).await.map(drop)
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["join", folder, file] => join(folder, file).await,
        ["divide", file, folder, ranks] => {
            let ranks = ranks.parse().map_err(|error| {
                Error::new(Kind::Store, format!("`{ranks}` is no number of ranks: {error}"))
            })?;
            divide(file, folder, ranks).await
        }
        _ => {
            let what = "expected `join FOLDER FILE` or `divide FILE FOLDER RANKS`";
            Err(Error::new(Kind::Store, what))
        }
    }
}
