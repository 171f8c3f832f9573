//! Recovers torn and damaged archives in all ways, for Python to compare with what it makes of them.

use std::error::Error;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use serde_json::{Value as Json, json};
use tenarc::archive::{Recovered, Recovery, recover};
use tenarc::tensor::{Order, TensorInfo};

use crate::Tally;

/// Recovers every `NAME.torn` of a directory, as `recovered/NAME.in-place` and as `recovered/NAME.new`. Each has a report in
/// a file of the same name with `.json` after it.
pub fn recover_all(dir: &Path) -> Result<Tally, Box<dyn Error>> {
    let recovered = dir.join("recovered");
    fs::create_dir_all(&recovered)?;
    let mut tally = Tally::default();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension() != Some(OsStr::new("torn")) {
            continue;
        }
        let name = path.file_stem().ok_or("a file without a name")?.to_string_lossy();
        let [in_place, new] =
            ["in-place", "new"].map(|way| recovered.join(format!("{name}.{way}")));
        fs::copy(&path, &in_place)?;
        for (to, result) in [(&in_place, recover(&in_place)), (&new, Recovery::of(&path).to(&new))]
        {
            let way = to.file_name().unwrap_or_default().to_string_lossy();
            let noted = result.map_err(|error| error.to_string()).and_then(|recovered| {
                let report = to.with_file_name(format!("{way}.json"));
                fs::write(report, described(&recovered).to_string())
                    .map_err(|error| error.to_string())
            });
            tally.note(&way, noted);
        }
    }
    Ok(tally)
}

fn described(recovered: &Recovered) -> Json {
    let salvaged = recovered.salvaged.as_ref().map(|salvaged| {
        json!({
            "name": salvaged.name,
            "tensors": salvaged.tensors.iter().map(tensor).collect::<Vec<_>>(),
            "missing": salvaged.missing.iter().map(tensor).collect::<Vec<_>>(),
        })
    });
    json!({
        "segments": recovered.segments,
        "damaged": recovered.damaged,
        "dropped": recovered.dropped,
        "salvaged": salvaged,
    })
}

fn tensor(info: &TensorInfo) -> Json {
    let order = match info.order() {
        Order::C => "C",
        Order::F => "F",
    };
    json!([info.path(), info.dtype().name(), info.shape(), order, info.byte_len(), info.buffer()])
}
