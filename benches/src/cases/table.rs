//! (m) 100,000 records of seven fields in a file: written, read, and asked for a count, a row and a column. Beside
//! other Rust crates, and in Python beside Parquet and sqlite.

use std::fs;
use std::hint::black_box;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ndarray::{Array1, ArrayView1, ArrayView2};
use serde::{Deserialize, Serialize};
use tenarc::archive::{Compression, SaveOptions};
use tenarc::io::SyncLevel;
use tenarc::{Map, Tensor};
use tenarc_benches_report::results::RowResults;

use crate::data::Random;
use crate::files::{Dir, Sync, replace, replace_buffered};
use crate::harness::{Case, Column, Effort, Report, Row, timed};
use crate::recorder::Recorder;
use crate::table::{Table, print_report, thousands, time};
use crate::targets::Targets;

const COUNT: usize = 100_000;
const FLOATS: usize = 64;
/// The row that is asked for.
const AT: usize = 77_777;

#[derive(
    Clone,
    PartialEq,
    Debug,
    Serialize,
    Deserialize,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
struct Event {
    id: u64,
    timestamp: u64,
    label: String,
    score: Option<f32>,
    #[serde(with = "array")]
    embedding: [f32; FLOATS],
    tags: Vec<String>,
    kind: Kind,
}

#[derive(
    Clone,
    PartialEq,
    Debug,
    Serialize,
    Deserialize,
    rkyv::Archive,
    rkyv::Serialize,
    rkyv::Deserialize,
)]
enum Kind {
    View,
    Click { x: u16, y: u16 },
    Buy(u32),
}

/// serde has no arrays of 64 elements.
mod array {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use super::FLOATS;

    pub fn serialize<S: Serializer>(array: &[f32; FLOATS], to: S) -> Result<S::Ok, S::Error> {
        array.as_slice().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[f32; FLOATS], D::Error> {
        let floats = Vec::<f32>::deserialize(from)?;
        <[f32; FLOATS]>::try_from(floats).map_err(|_| D::Error::custom("not 64 floats"))
    }
}

fn events() -> Vec<Event> {
    const WORDS: [&str; 6] = ["start", "search", "basket", "checkout", "help", "settings"];
    let random = &mut Random::new(13);
    let event = |id: usize| Event {
        id: id as u64,
        timestamp: 1_790_000_000_000 + 1000 * id as u64 + random.below(1000),
        label: format!("{} {}", random.pick(&WORDS), random.below(1000)),
        score: (!random.chance(20)).then(|| random.float()),
        embedding: std::array::from_fn(|_| random.float()),
        tags: random.many(0, 4, |random| random.pick(&WORDS).to_owned()),
        kind: match random.below(3) {
            0 => Kind::View,
            1 => Kind::Click { x: random.below(1920) as u16, y: random.below(1080) as u16 },
            _ => Kind::Buy(random.below(10_000) as u32),
        },
    };
    (0..COUNT).map(event).collect()
}

/// Columns that are compressed, in the names of files and rows.
const ZSTD: &str = "columns, zstd";

/// The files, each with the same events.
struct Files {
    events: Vec<Event>,
    dir: Dir,
}

impl Files {
    fn path(&self, name: &str) -> PathBuf {
        self.dir.file(&format!("events.{name}"))
    }

    /// Saves them as `rows`, `columns`, or `zstd`: columns that are compressed.
    fn save(&self, name: &str) -> Duration {
        let options = SaveOptions::default().with_sync(SyncLevel::Off).with_columns(name != "rows");
        let compression = if name == ZSTD { Compression::zstd() } else { Compression::none() };
        let options = options.with_compression(compression);
        timed(|| tenarc::archive::save_with(self.path(name), &self.events, options).unwrap())
    }

    fn save_rkyv(&self) -> Duration {
        timed(|| {
            let bytes = rkyv::to_bytes::<rkyv::rancor::Error>(&self.events).unwrap();
            replace(&self.path("rkyv"), Sync::Off, |file| file.write_all(&bytes).unwrap());
        })
    }

    fn save_json(&self) -> Duration {
        timed(|| {
            replace_buffered(&self.path("jsonl"), Sync::Off, |to| {
                let mut to = BufWriter::new(to);
                for event in &self.events {
                    serde_json::to_writer(&mut to, event).unwrap();
                    to.write_all(b"\n").unwrap();
                }
            });
        })
    }

    fn load_json(&self) -> Vec<Event> {
        let file = BufReader::new(fs::File::open(self.path("jsonl")).unwrap());
        file.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect()
    }

    fn map(&self, name: &str) -> Map {
        // SAFETY: only this program writes the file, and not while it is mapped.
        unsafe { Map::open(self.path(name)).unwrap() }
    }

    fn rkyv<R>(&self, read: impl FnOnce(&rkyv::Archived<Vec<Event>>) -> R) -> R {
        let file = fs::File::open(self.path("rkyv")).unwrap();
        // SAFETY: only this program writes the file, and not while it is mapped.
        let map = unsafe { memmap2::Mmap::map(&file).unwrap() };
        // SAFETY: rkyv wrote the bytes for this type. Without the check, as in its documentation for fast access.
        read(unsafe { rkyv::access_unchecked::<rkyv::Archived<Vec<Event>>>(&map) })
    }
}

fn check<R>(work: impl FnOnce() -> R, is_right: impl FnOnce(&R) -> bool) -> Duration {
    let start = Instant::now();
    let result = black_box(work());
    let took = start.elapsed();
    assert!(is_right(&result));
    took
}

fn whole(effort: Effort, files: &Files) -> Report {
    let expected = &files.events[AT];
    let scan = |name: &'static str| {
        move || {
            let path = files.path(name);
            check(|| tenarc::load::<Vec<Event>>(path).unwrap(), |all| all[AT] == *expected)
        }
    };
    let rows = vec![
        Row::bare("rkyv", "").on(Column::Encode, || files.save_rkyv()).on(Column::ToVec, || {
            let read = || {
                let mut file = fs::File::open(files.path("rkyv")).unwrap();
                let len = usize::try_from(file.metadata().unwrap().len()).unwrap();
                let mut aligned = rkyv::util::AlignedVec::<16>::with_capacity(len + 1);
                aligned.extend_from_reader(&mut file).unwrap();
                rkyv::from_bytes::<Vec<Event>, rkyv::rancor::Error>(&aligned).unwrap()
            };
            check(read, |all| all[AT] == *expected)
        }),
        Row::bare("tenarc", "columns")
            .on(Column::Encode, || files.save("columns"))
            .on(Column::ToVec, scan("columns")),
        Row::bare("tenarc", ZSTD)
            .on(Column::Encode, || files.save(ZSTD))
            .on(Column::ToVec, scan(ZSTD)),
        Row::bare("tenarc", "rows")
            .on(Column::Encode, || files.save("rows"))
            .on(Column::ToVec, scan("rows")),
        Row::bare("JSON lines", "")
            .on(Column::Encode, || files.save_json())
            .on(Column::ToVec, || check(|| files.load_json(), |all| all[AT] == *expected)),
    ];
    let title = "(m) 100,000 records in a file: all of them".to_owned();
    Case { title, heads: ["write", "read", "", ""], floor: "rkyv", rows }.run(effort)
}

fn parts(effort: Effort, files: &Files) -> Report {
    let expected = &files.events[AT];
    let is_column = |scores: &Vec<Option<f32>>| scores[AT] == expected.score;
    let tenarc = |name: &'static str| {
        Row::bare("tenarc", name)
            .on(Column::Encode, move || {
                let count = || files.map(name).only().unwrap().table("").unwrap().len();
                check(count, |&count| count == COUNT as u64)
            })
            .on(Column::ToVec, move || {
                let row = || {
                    let map = files.map(name);
                    map.only().unwrap().table("").unwrap().row::<Event>(AT as u64).unwrap()
                };
                check(row, |row| row == expected)
            })
            .on(Column::Decode, move || {
                let column = || {
                    let map = files.map(name);
                    map.only().unwrap().table("").unwrap().column("score").unwrap()
                };
                check(column, is_column)
            })
    };
    let rows = vec![
        Row::bare("rkyv", "unchecked")
            .on(Column::Encode, || check(|| files.rkyv(|all| all.len()), |&len| len == COUNT))
            .on(Column::ToVec, || {
                let row = |all: &rkyv::Archived<Vec<Event>>| {
                    rkyv::deserialize::<Event, rkyv::rancor::Error>(&all[AT]).unwrap()
                };
                check(|| files.rkyv(row), |row| row == expected)
            })
            .on(Column::Decode, || {
                let scores = |all: &rkyv::Archived<Vec<Event>>| {
                    all.iter()
                        .map(|event| event.score.as_ref().map(|score| score.to_native()))
                        .collect::<Vec<Option<f32>>>()
                };
                check(|| files.rkyv(scores), is_column)
            }),
        tenarc("columns").on(Column::Borrow, || {
            let map = files.map("columns");
            let start = Instant::now();
            let times: Tensor<Array1<u64>> =
                map.only().unwrap().table("").unwrap().column("timestamp").unwrap();
            let took = start.elapsed();
            assert_eq!(times[AT], expected.timestamp);
            took
        }),
        Row::bare("tenarc", "columns, views").on(Column::Borrow, || {
            let start = Instant::now();
            let map = files.map("columns");
            let table = map.only().unwrap().table("").unwrap();
            let views = table.views::<Tensor<ArrayView1<'_, u64>>>("timestamp").unwrap();
            let views: Vec<_> = views.map(Result::unwrap).collect();
            let took = start.elapsed();
            assert_eq!(views.iter().map(|view| view.len()).sum::<usize>(), COUNT);
            assert_eq!(
                views.iter().flat_map(|view| view.iter()).nth(AT),
                Some(&expected.timestamp)
            );
            took
        }),
        tenarc("rows"),
        Row::bare("JSON lines", "")
            .on(Column::Encode, || check(|| files.load_json().len(), |&len| len == COUNT))
            .on(Column::ToVec, || {
                check(|| files.load_json().swap_remove(AT), |row| row == expected)
            })
            .on(Column::Decode, || {
                let scores =
                    || files.load_json().into_iter().map(|event| event.score).collect::<Vec<_>>();
                check(scores, is_column)
            }),
    ];
    let title = "(m) 100,000 records in a file: part of them".to_owned();
    let heads = ["count", "one row", "scores", "times"];
    Case { title, heads, floor: "rkyv, mapped, unchecked", rows }.run(effort)
}

/// A column of one group in a mapped file, without a copy.
fn view(effort: Effort, dir: &Dir) -> Report {
    #[derive(Serialize)]
    struct Item {
        id: u64,
        label: String,
        embedding: Vec<f32>,
    }
    let random = &mut Random::new(14);
    let items: Vec<_> = (0..10_000)
        .map(|id| Item { id, label: format!("item {id}"), embedding: random.floats(256) })
        .collect();
    let path = &dir.file("items.tenarc");
    let options = SaveOptions::default().with_sync(SyncLevel::Off).with_columns(true);
    tenarc::archive::save_with(path, &items, options).unwrap();
    let open = || {
        // SAFETY: only this program writes the file, and not while it is mapped.
        unsafe { Map::open(path).unwrap() }
    };
    let rows = vec![
        Row::bare("tenarc", "open").on(Column::Encode, || check(open, |_| true)),
        Row::bare("tenarc", "columns")
            .on(Column::Encode, || {
                let start = Instant::now();
                let map = open();
                let view: Tensor<ArrayView1<'_, u64>> = map.view_at("id").unwrap();
                let took = start.elapsed();
                assert_eq!(view[777], 777);
                took
            })
            .on(Column::ToVec, || {
                let map = open();
                let start = Instant::now();
                let view: Tensor<ArrayView2<'_, f32>> = map.view_at("embedding").unwrap();
                let took = start.elapsed();
                assert_eq!(view.shape(), [10_000, 256]);
                took
            }),
    ];
    let title = "(m) a view of a column of 10,000 records in a mapped file".to_owned();
    let heads = ["open, and view", "view [10000, 256]", "", ""];
    Case { title, heads, floor: "open", rows }.run(effort)
}

/// What `benches/python/tables.py` measures with the file of columns.
fn in_python(effort: Effort, files: &Files, python: &Path) -> Vec<RowResults> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/tables.py");
    let output = Command::new(python)
        .arg("-B")
        .arg(script)
        .arg(files.path("columns"))
        .args([effort.least_rounds, AT].map(|number| number.to_string()))
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "Python fails");
    serde_json::from_slice(&output.stdout).unwrap()
}

pub fn print_python(title: &str, rows: &[RowResults]) {
    println!("\n{title}\n");
    let mut head = vec!["peer", "form", "bytes"];
    head.extend(rows[0].figures.iter().map(|figure| &*figure.what));
    let mut table = Table::new(2, &head);
    for row in rows {
        let mut cells = vec![row.peer.clone(), row.form.clone()];
        cells.push(thousands(row.bytes.unwrap_or_default()));
        cells.extend(row.figures.iter().map(|figure| time(figure.median as f64 / 1e9)));
        table.push(cells);
    }
    table.print();
}

pub fn run(effort: Effort, python: Option<&Path>, recorder: &mut Recorder, targets: &mut Targets) {
    let files = Files { events: events(), dir: Dir::new() };
    files.save("columns");
    files.save(ZSTD);
    files.save("rows");
    files.save_rkyv();
    files.save_json();

    let len = |name: &str| fs::metadata(files.path(name)).unwrap().len();
    let mut all = whole(effort, &files);
    for row in &mut all.rows {
        row.bytes = len(match (row.peer, row.form) {
            ("JSON lines", _) => "jsonl",
            ("rkyv", _) => "rkyv",
            (_, form) => form,
        }) as usize;
    }
    print_report(&all);
    recorder.keep("table-all", &all);
    let case = "m table";
    for (text, column, bound) in [
        ("columns, write / rkyv", Column::Encode, 1.5),
        ("columns, read / rkyv", Column::ToVec, 1.0),
    ] {
        let times = (all.median("tenarc", "columns", column), all.median("rkyv", "", column));
        targets.at_most(case, text, times, bound);
    }
    let some = parts(effort, &files);
    print_report(&some);
    recorder.keep("table-parts", &some);
    let median = |column| some.median("tenarc", "columns", column);
    targets.at_most_ns(case, "columns, open and count", median(Column::Encode), 20_000.0);
    targets.at_most_ns(case, "columns, open and one row", median(Column::ToVec), 100_000.0);
    targets.at_most_ns(case, "columns, open and one column", median(Column::Decode), 2_000_000.0);
    let views = some.median("tenarc", "columns, views", Column::Borrow);
    targets.at_most_ns(case, "columns, open and view one column", views, 10_000.0);
    targets.at_most_mb(case, "columns, size", len("columns"), 31.0);

    match python {
        Some(python) => {
            let rows = in_python(effort, &files, python);
            let title = "(m) the same records in Python";
            print_python(title, &rows);
            let parquet = rows.iter().find(|row| row.peer == "Parquet" && row.form == "zstd");
            if let Some(parquet) = parquet {
                let size = parquet.bytes.map(|bytes| bytes as f64);
                let case = "m table";
                let pair = (Some(len(ZSTD) as f64), size);
                targets.at_most(case, "columns, zstd, size / Parquet with zstd", pair, 1.1);
                let reading = |row: &RowResults| {
                    let read = row.figures.iter().find(|figure| figure.what == "read");
                    read.map(|figure| figure.median as f64 / 1e9)
                };
                let read = reading(parquet);
                let ours = rows.iter().find(|row| row.peer == "tenarc" && row.form == ZSTD);
                let text = "in Python: columns, zstd, read: time of Parquet with zstd / tenarc";
                targets.at_least(case, text.to_string(), (read, ours.and_then(reading)), 2.0);
            }
            recorder.keep_rows("table-python", title, "Parquet, by pyarrow", rows);
        }
        None => println!("\nPython is not measured: there is no {}", crate::PYTHON),
    }

    let views = view(effort, &files.dir);
    print_report(&views);
    recorder.keep("table-view", &views);
    let view = views.median("tenarc", "columns", Column::Encode);
    let text = "columns, open, and view one column of 10,000 rows";
    targets.at_most_ns(case, text, view, 10_000.0);
}
