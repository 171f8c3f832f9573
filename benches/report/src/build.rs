//! What a user's build pays, as `benches/build/measure` wrote it.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::units::megabytes;

/// What was measured of all programs.
#[derive(Deserialize)]
pub struct Builds {
    /// What `rustc --version` prints.
    compiler: String,
    results: Vec<Build>,
}

/// A program that uses a library.
#[derive(Deserialize)]
struct Build {
    program: String,
    library: String,
    version: String,
    /// Seconds of all processors.
    cold_cpu_s: f64,
    edit_cpu_s: f64,
    stripped_bytes: u64,
    text_bytes: u64,
    crates: u64,
}

impl Builds {
    pub fn load(path: &Path) -> Result<Self, String> {
        let of_file = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = fs::read_to_string(path).map_err(|error| of_file(&error))?;
        serde_json::from_str(&text).map_err(|error| of_file(&error))
    }

    /// The rows of the table, below its head.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let head = [
            "program",
            "library",
            "cold, CPU s",
            "after an edit, CPU s",
            "stripped, MB",
            "code, MB",
            "crates",
        ];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        rows.extend(self.results.iter().map(Build::row));
        rows
    }

    /// The compiler, without its commit.
    pub fn compiler(&self) -> &str {
        self.compiler.split(" (").next().unwrap_or_default()
    }
}

impl Build {
    fn row(&self) -> Vec<String> {
        vec![
            self.program.clone(),
            format!("{} {}", self.library, self.version),
            format!("{:.1}", self.cold_cpu_s),
            format!("{:.2}", self.edit_cpu_s),
            megabytes(self.stripped_bytes),
            megabytes(self.text_bytes),
            self.crates.to_string(),
        ]
    }
}
