//! Tables in Parquet and Arrow files, exchanged with pyarrow: records by all codecs, with the same records as JSON beside them.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tenarc::{Archive, OArchive, Tensor};
use tenarc_convert::arrow::{self, Container, TableFile};
use tenarc_convert::parquet::{self, Compression, Options};

use crate::Tally;

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Place {
    name: Option<String>,
    at: (i32, f64),
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
enum Level {
    Info,
    Warning,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Event {
    id: u64,
    delta: i8,
    score: f32,
    ok: Option<bool>,
    text: String,
    tags: Vec<Option<String>>,
    level: Level,
    place: Option<Place>,
    places: Vec<Place>,
    counts: BTreeMap<String, u32>,
    window: [u16; 3],
    embedding: Tensor<[f32; 4]>,
}

fn place(n: u8) -> Place {
    Place { name: (!n.is_multiple_of(2)).then(|| format!("place {n}")), at: (-i32::from(n), 0.25) }
}

fn event(n: u8) -> Event {
    Event {
        id: u64::MAX - u64::from(n),
        delta: i8::MIN,
        score: f32::from(n) / 4.0,
        ok: [None, Some(true), Some(false)].into_iter().cycle().nth(n.into()).flatten(),
        text: "ü".repeat(n.into()),
        tags: (0..n % 4).map(|tag| (tag > 0).then(|| tag.to_string())).collect(),
        level: if n.is_multiple_of(2) { Level::Warning } else { Level::Info },
        place: (!n.is_multiple_of(3)).then(|| place(n)),
        places: (0..n % 3).map(place).collect(),
        counts: (0..n % 3).map(|key| (format!("k{key}"), key.into())).collect(),
        window: [n.into(), 0, u16::MAX],
        embedding: Tensor([0.5, -1.0, 0.0, n.into()]),
    }
}

/// As many as there are in each value.
const GROUPS: [u8; 3] = [3, 100, 1];

fn events() -> Vec<Event> {
    GROUPS.into_iter().flat_map(|count| (0..count).map(event)).collect()
}

pub fn write(dir: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(dir)?;
    let mut out = OArchive::new(Vec::new())?;
    for count in GROUPS {
        out.save_as("events", &(0..count).map(event).collect::<Vec<_>>())?;
    }
    let archive = Archive::new(out.finish()?)?;
    for codec in [Compression::None, Compression::Snappy, Compression::Gzip, Compression::Lz4] {
        let file = fs::File::create(dir.join(format!("{codec:?}.parquet").to_lowercase()))?;
        parquet::to_writer(&archive, file, &Options::default().with_page_compression(codec))?;
    }
    for (name, container) in
        [("events.arrow", Container::File), ("events.arrows", Container::Stream)]
    {
        let file = fs::File::create(dir.join(name))?;
        let segments = archive.segments().collect::<Result<_, _>>()?;
        let options = Options::default().with_container(container);
        arrow::segments_to_writer(segments, file, &options)?;
    }
    // Tensors are lists there.
    let mut rows = serde_json::to_value(events())?;
    for row in rows.as_array_mut().into_iter().flatten() {
        if let Some(embedding) = row.get_mut("embedding") {
            *embedding = embedding.get_mut("data").map(serde_json::Value::take).unwrap_or_default();
        }
    }
    fs::write(dir.join("events.json"), serde_json::to_vec(&rows)?)?;
    Ok(())
}

pub fn check(dir: &Path) -> Result<Tally, Box<dyn Error>> {
    let mut tally = Tally::default();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension != "json") {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            tally.note(&name, compare(&path).map_err(|error| error.to_string()));
        }
    }
    Ok(tally)
}

fn compare(path: &Path) -> Result<(), Box<dyn Error>> {
    let mut out = OArchive::new(Vec::new())?;
    let losses = if path.extension().is_some_and(|extension| extension == "parquet") {
        let file = parquet::open(path)?;
        for group in 0..file.row_groups() {
            out.save_as("events", &file.rows(group)?)?;
        }
        file.losses().clone()
    } else {
        let file = TableFile::open(path)?;
        for rows in file.batches() {
            out.save_as("events", &rows?)?;
        }
        file.losses().clone()
    };
    if !losses.is_empty() {
        return Err(losses.to_string().into());
    }
    let archive = Archive::new(out.finish()?)?;
    let found = archive.table("events")?.rows::<Event>(..)?;
    let unlike = found.iter().zip(&events()).position(|(a, b)| a != b);
    match (found.len() == events().len(), unlike) {
        (true, None) => Ok(()),
        (_, row) => Err(format!("{} rows; the first other one is {row:?}", found.len()).into()),
    }
}
