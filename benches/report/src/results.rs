//! The results of a whole run. The benchmarks write them, and the documents are made from them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// A run of all cases on one machine.
#[derive(Serialize, Deserialize, PartialEq, Debug)]
pub struct Results {
    /// The date of the run's start in UTC, such as 2026-01-31.
    pub date: String,
    pub machine: Machine,
    /// The profile of Cargo with which the benchmarks were built.
    pub profile: String,
    /// The lowest and the highest number of times that a measurement was repeated.
    pub rounds: (usize, usize),
    /// Crates and their versions, such as `rkyv 0.8.10`.
    pub crates: Vec<String>,
    pub cases: Vec<CaseResults>,
    /// What the run should show, beside what it showed.
    #[serde(default)]
    pub targets: Vec<Target>,
}

/// A bound for something measured.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Target {
    /// The letter and the name of the case.
    pub case: String,
    pub text: String,
    /// `None` if the rows it needs were not measured.
    pub measured: Option<f64>,
    /// `x` for ratios, or `%`, `ns`, `MB`.
    pub unit: String,
    pub bound: f64,
    /// Whether the bound is the lowest allowed value instead of the highest.
    pub is_least: bool,
    /// Whether the bound is one to reach later.
    pub is_aim: bool,
    /// The profile whose measurement counts. `None`: the worst counts.
    pub under: Option<String>,
}

/// Whether a target is met.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Met,
    Missed,
    NotYet,
    NotMeasured,
}

impl Verdict {
    pub fn text(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::NotYet => "not yet",
            Self::NotMeasured => "not measured",
        }
    }
}

impl Target {
    pub fn verdict(&self) -> Verdict {
        self.verdict_on(self.measured)
    }

    /// The verdict if this is what was measured.
    pub fn verdict_on(&self, measured: Option<f64>) -> Verdict {
        let Some(measured) = measured else { return Verdict::NotMeasured };
        let is_met = if self.is_least { measured >= self.bound } else { measured <= self.bound };
        match (is_met, self.is_aim) {
            (true, _) => Verdict::Met,
            (false, true) => Verdict::NotYet,
            (false, false) => Verdict::Missed,
        }
    }

    /// Whether the other one is the same target, measured under another profile.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.case, &self.text, self.is_aim) == (&other.case, &other.text, other.is_aim)
    }

    /// Of this target, measured under several profiles, the measurement that counts.
    pub fn that_counts(&self, profiles: &[(&str, Option<f64>)]) -> Option<f64> {
        let counts = |profile: &str| self.under.as_deref().is_none_or(|under| under == profile);
        let counted = profiles.iter().filter(|(profile, _)| counts(profile));
        let counted = counted.filter_map(|(_, measured)| *measured);
        let worst = if self.is_least { f64::min } else { f64::max };
        counted.reduce(worst).or(self.measured)
    }

    /// The bound with its sign and unit.
    pub fn limit(&self) -> String {
        let Self { bound, unit, .. } = self;
        let sign = if self.is_least { "≥" } else { "≤" };
        let aim = if self.is_aim { "aim " } else { "" };
        format!("{aim}{sign} {bound} {unit}")
    }
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
pub struct Machine {
    pub cpu: String,
    pub cores: usize,
    pub virtual_machine: bool,
    pub os: String,
    /// The file system that the measured files are on.
    pub file_system: String,
    pub rustc: String,
}

impl Machine {
    /// A description of the machine, as part of a sentence.
    pub fn describe(&self) -> String {
        let Self { cpu, cores, os, file_system, .. } = self;
        let s = if *cores == 1 { "" } else { "s" };
        let machine = if self.virtual_machine { ", virtual machine" } else { "" };
        format!("{cpu}, {cores} core{s}{machine}, {os}, {file_system}")
    }
}

/// One table: the measurements of several peers with the same data.
#[derive(Serialize, Deserialize, PartialEq, Debug)]
pub struct CaseResults {
    pub name: String,
    pub title: String,
    /// What the floor does.
    pub floor: String,
    pub rows: Vec<RowResults>,
}

/// One peer in one form.
#[derive(Serialize, Deserialize, PartialEq, Debug)]
pub struct RowResults {
    pub peer: String,
    pub form: String,
    /// The length of the message, for peers that write one.
    pub bytes: Option<u64>,
    pub figures: Vec<Figure>,
}

/// One measurement of a row.
#[derive(Serialize, Deserialize, PartialEq, Debug)]
pub struct Figure {
    /// What was measured: the heading of the column.
    pub what: String,
    pub unit: Unit,
    pub median: u64,
    /// The 10th and the 90th percentile.
    pub spread: Option<(u64, u64)>,
    /// The result of the floor in the same run.
    pub floor: Option<u64>,
}

#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    #[serde(rename = "ns")]
    Nanoseconds,
    #[serde(rename = "bytes")]
    Bytes,
}

impl Figure {
    /// The number to compare: of sizes, only what is beyond the floor.
    pub fn compared(&self) -> u64 {
        match (self.unit, self.floor) {
            (Unit::Bytes, Some(floor)) => self.median.saturating_sub(floor),
            _ => self.median,
        }
    }

    /// The ratio to the floor.
    pub fn over_floor(&self) -> Option<f64> {
        Some(self.median as f64 / self.floor? as f64)
    }
}

impl RowResults {
    pub fn figure(&self, what: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.what == what)
    }

    /// The median of a measurement, or the length of the message or file. `None` if it was not measured.
    pub fn value(&self, what: &str) -> Option<u64> {
        if what == "bytes" && self.bytes.is_some() {
            return self.bytes;
        }
        self.figure(what).map(|figure| figure.median)
    }
}

impl CaseResults {
    pub fn row(&self, peer: &str, form: &str) -> Result<&RowResults, String> {
        let mut rows = self.rows.iter();
        rows.find(|row| row.peer == peer && row.form == form)
            .ok_or_else(|| format!("case `{}` has no row `{peer}`, `{form}`", self.name))
    }

    /// All columns that any row has, in the order in which they first appear.
    pub fn columns(&self) -> Vec<&str> {
        let mut columns = Vec::new();
        for figure in self.rows.iter().flat_map(|row| &row.figures) {
            if !columns.contains(&&*figure.what) {
                columns.push(&*figure.what);
            }
        }
        columns
    }
}

impl Results {
    /// Adds a case.
    ///
    /// # Panics
    ///
    /// If there is a case with that name already.
    pub fn push(&mut self, case: CaseResults) {
        assert!(self.case(&case.name).is_err(), "two cases are called `{}`", case.name);
        self.cases.push(case);
    }

    pub fn case(&self, name: &str) -> Result<&CaseResults, String> {
        let mut cases = self.cases.iter();
        cases.find(|case| case.name == name).ok_or_else(|| format!("there is no case `{name}`"))
    }

    /// The floors whose slow runs took far longer than their median, each as a sentence: other
    /// programs were probably running then.
    pub fn noise(&self) -> Vec<String> {
        const TOLERABLE: f64 = 1.5;
        let mut noise = Vec::new();
        for case in &self.cases {
            for figure in case.rows.first().into_iter().flat_map(|row| &row.figures) {
                let Some((_, high)) = figure.spread else { continue };
                let over = high as f64 / figure.median as f64;
                if over > TOLERABLE {
                    noise.push(format!(
                        "{}, {}: one run of the floor in ten took more than {over:.1} times the median",
                        case.name, figure.what
                    ));
                }
            }
        }
        noise
    }

    pub fn load(path: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// JSON with one row in each line, so that two runs can be compared line by line.
    pub fn to_json(&self) -> String {
        fn json(value: &impl Serialize) -> String {
            serde_json::to_string(value).expect("these types have a form in JSON")
        }
        let mut out = String::new();
        let lines = [
            ("date", json(&self.date)),
            ("machine", json(&self.machine)),
            ("profile", json(&self.profile)),
            ("rounds", json(&self.rounds)),
            ("crates", json(&self.crates)),
        ];
        out += "{\n";
        for (key, value) in lines {
            writeln!(out, "  \"{key}\": {value},").expect("a string takes everything");
        }
        let cases: Vec<String> = self.cases.iter().map(|case| {
            let rows: Vec<String> = case.rows.iter().map(|row| format!("        {}", json(row))).collect();
            format!(
                "    {{\n      \"name\": {},\n      \"title\": {},\n      \"floor\": {},\n      \"rows\": [\n{}\n      ]\n    }}",
                json(&case.name),
                json(&case.title),
                json(&case.floor),
                rows.join(",\n"),
            )
        }).collect();
        out += &format!("  \"cases\": [\n{}\n  ],\n", cases.join(",\n"));
        let targets: Vec<String> =
            self.targets.iter().map(|target| format!("    {}", json(target))).collect();
        out += &format!("  \"targets\": [\n{}\n  ]\n}}\n", targets.join(",\n"));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_what_is_loaded() {
        let figure = |what: &str, median, spread| Figure {
            what: what.to_string(),
            unit: Unit::Nanoseconds,
            median,
            spread,
            floor: Some(80),
        };
        let row = |peer: &str, figures| RowResults {
            peer: peer.to_string(),
            form: "a \"form\"".to_string(),
            bytes: None,
            figures,
        };
        let case = |name: &str, rows| CaseResults {
            name: name.to_string(),
            title: "(x) the case".to_string(),
            floor: "memcpy".to_string(),
            rows,
        };
        let target = |measured, is_aim| Target {
            case: "a first".to_string(),
            text: "encode / memcpy".to_string(),
            measured,
            unit: "x".to_string(),
            bound: 1.2,
            is_least: false,
            is_aim,
            under: is_aim.then(|| "thin-lto".to_string()),
        };
        let noisy = figure("encode", 100, Some((90, 200)));
        let results = Results {
            date: "2026-01-31".to_string(),
            machine: Machine {
                cpu: "a processor".to_string(),
                cores: 2,
                virtual_machine: true,
                os: "Linux".to_string(),
                file_system: "ext4".to_string(),
                rustc: "rustc 1".to_string(),
            },
            profile: "release".to_string(),
            rounds: (5, 15),
            crates: vec!["rkyv 0.8.10".to_string()],
            cases: vec![
                case("a", vec![row("floor", vec![noisy]), row("npz", vec![])]),
                case("b", vec![row("floor", vec![figure("load", 1, Some((1, 1)))])]),
            ],
            targets: vec![target(Some(1.25), false), target(None, true)],
        };
        let back: Results = serde_json::from_str(&results.to_json()).unwrap();
        assert_eq!(back, results);
        assert_eq!(back.case("a").unwrap().columns(), ["encode"]);
        assert_eq!(back.case("c").unwrap_err(), "there is no case `c`");
        assert_eq!(
            back.noise(),
            ["a, encode: one run of the floor in ten took more than 2.0 times the median"]
        );
    }
    #[test]
    fn a_bound_is_met_missed_or_an_aim() {
        let target = |measured, is_least, is_aim| Target {
            case: String::new(),
            text: String::new(),
            measured,
            unit: "x".to_string(),
            bound: 1.2,
            is_least,
            is_aim,
            under: None,
        };
        for (measured, is_least, is_aim, verdict, limit) in [
            (Some(1.2), false, false, Verdict::Met, "≤ 1.2 x"),
            (Some(1.3), false, false, Verdict::Missed, "≤ 1.2 x"),
            (Some(1.3), true, false, Verdict::Met, "≥ 1.2 x"),
            (Some(1.1), true, false, Verdict::Missed, "≥ 1.2 x"),
            (Some(1.1), false, true, Verdict::Met, "aim ≤ 1.2 x"),
            (Some(1.3), false, true, Verdict::NotYet, "aim ≤ 1.2 x"),
            (None, false, false, Verdict::NotMeasured, "≤ 1.2 x"),
        ] {
            let target = target(measured, is_least, is_aim);
            assert_eq!((target.verdict(), &*target.limit()), (verdict, limit));
        }
    }

    #[test]
    fn the_worst_profile_counts_unless_a_target_names_one() {
        let target = |is_least, under: Option<&str>| Target {
            case: String::new(),
            text: String::new(),
            measured: Some(1.0),
            unit: "x".to_string(),
            bound: 1.2,
            is_least,
            is_aim: false,
            under: under.map(str::to_string),
        };
        let profiles = [("release", Some(1.0)), ("thin-lto", Some(2.0)), ("fat-lto", Some(3.0))];
        assert_eq!(target(false, None).that_counts(&profiles), Some(3.0));
        assert_eq!(target(true, None).that_counts(&profiles), Some(1.0));
        assert_eq!(target(false, Some("thin-lto")).that_counts(&profiles), Some(2.0));
        // Cases about files are measured under one profile only.
        let one = [("release", Some(1.0)), ("thin-lto", None)];
        assert_eq!(target(false, Some("thin-lto")).that_counts(&one), Some(1.0));
    }
}
