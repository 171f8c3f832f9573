//! Collects the results of a run for `--save`.

use std::fs::{self, File};
use std::path::PathBuf;

use tenarc_benches_report::results::{CaseResults, Figure, Results, RowResults, Unit};

use crate::harness::{COLUMNS, Effort, Report};
use crate::machine;
use crate::targets::Targets;

/// Collects what the cases measure.
pub struct Recorder(Results);

fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

impl Recorder {
    /// A recorder for a run that starts now.
    pub fn new(effort: Effort) -> Self {
        Self(Results {
            date: machine::today(),
            machine: machine::this(),
            profile: env!("PROFILE_NAME").to_string(),
            rounds: (effort.least_rounds, effort.most_rounds),
            crates: machine::crates(),
            cases: Vec::new(),
            targets: Vec::new(),
        })
    }

    /// Adds the results of a case, under a unique name.
    pub fn keep(&mut self, name: &str, report: &Report) {
        let rows = report.rows.iter().map(|row| {
            let figures = COLUMNS.into_iter().filter_map(|column| {
                let samples = row.samples(column)?;
                let [low, high] = [0.1, 0.9].map(|part| nanoseconds(samples.quantile(part)));
                Some(Figure {
                    what: report.heads[column as usize].to_string(),
                    unit: Unit::Nanoseconds,
                    median: nanoseconds(samples.median()),
                    spread: Some((low, high)),
                    floor: report.floor_median(column).map(nanoseconds),
                })
            });
            RowResults {
                peer: row.peer.to_string(),
                form: row.form.to_string(),
                bytes: (row.bytes > 0).then_some(row.bytes as u64),
                figures: figures.collect(),
            }
        });
        self.0.push(CaseResults {
            name: name.to_string(),
            title: report.title.clone(),
            floor: report.floor.to_string(),
            rows: rows.collect(),
        });
    }

    /// Adds rows that another program measured.
    pub fn keep_rows(&mut self, name: &str, title: &str, floor: &str, rows: Vec<RowResults>) {
        let [name, title, floor] = [name, title, floor].map(str::to_string);
        self.0.push(CaseResults { name, title, floor, rows });
    }

    /// Adds the targets of the whole run.
    pub fn keep_targets(&mut self, targets: Targets) {
        self.0.targets = targets.0;
    }

    /// Adds the sizes of files: peer, form and length of each.
    pub fn keep_sizes(
        &mut self,
        name: &str,
        title: &str,
        payload: u64,
        rows: &[(&str, &str, u64)],
    ) {
        let rows = rows.iter().map(|&(peer, form, bytes)| RowResults {
            peer: peer.to_string(),
            form: form.to_string(),
            bytes: None,
            figures: vec![Figure {
                what: "bytes".to_string(),
                unit: Unit::Bytes,
                median: bytes,
                spread: None,
                floor: Some(payload),
            }],
        });
        self.0.push(CaseResults {
            name: name.to_string(),
            title: title.to_string(),
            floor: "the payload itself".to_string(),
            rows: rows.collect(),
        });
    }
}

/// The file for the results. It is unchanged until all results are known.
pub struct Destination {
    path: PathBuf,
    unfinished: PathBuf,
}

impl Destination {
    /// Checks that the file can be written, before anything is measured.
    pub fn new(path: String) -> Result<Self, String> {
        let path = PathBuf::from(path);
        let unfinished = path.with_extension("unfinished");
        match File::create(&unfinished) {
            Ok(_) => Ok(Self { path, unfinished }),
            Err(error) => Err(format!("{}: {error}", unfinished.display())),
        }
    }

    /// Writes the file, and warns if the run was noisy.
    pub fn write(&self, Recorder(results): &Recorder) -> Result<(), String> {
        let written = fs::write(&self.unfinished, results.to_json());
        written
            .and_then(|()| fs::rename(&self.unfinished, &self.path))
            .map_err(|error| format!("{}: {error}", self.path.display()))?;
        println!("\nThe results are in {}.", self.path.display());
        let noise = results.noise();
        if !noise.is_empty() {
            let noise = noise.join("\n  ");
            println!("They are noisy, so measure again when nothing else runs:\n  {noise}");
        }
        Ok(())
    }
}
