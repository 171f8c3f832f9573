//! The performance targets, computed from the measured times.

use tenarc_benches_report::results::{Target, Verdict};

use crate::harness::{Column, Report};
use crate::table::{Table, times};

/// The self-describing peers that write the field names of structs, as tenarc does.
const SELF_DESCRIBING: [&str; 3] = ["cbor4ii", "minicbor-serde", "rmp-serde named"];

/// A size in bytes or a time in seconds beside another one.
type Pair = (Option<f64>, Option<f64>);

#[derive(Default)]
pub struct Targets(pub Vec<Target>);

impl Targets {
    fn add(&mut self, case: &str, text: String, measured: Option<f64>, unit: &str, most: f64) {
        self.0.push(Target {
            case: case.to_string(),
            measured,
            unit: unit.to_string(),
            bound: most,
            is_least: false,
            is_aim: false,
            // What records as columns should reach was set for this profile.
            under: text.starts_with("columns,").then(|| "thin-lto".to_string()),
            text,
        });
    }

    /// A ratio of two times or sizes that must not exceed `bound`.
    pub fn at_most(&mut self, case: &str, text: impl Into<String>, pair: Pair, bound: f64) {
        self.add(case, text.into(), ratio(pair), "x", bound);
    }

    /// A ratio, as [`at_most`](Self::at_most).
    pub fn ratio_at_most(
        &mut self,
        case: &str,
        text: impl Into<String>,
        measured: Option<f64>,
        bound: f64,
    ) {
        self.add(case, text.into(), measured, "x", bound);
    }

    /// Something that must be `bound` or more.
    pub fn at_least_of(
        &mut self,
        case: &str,
        text: String,
        measured: Option<f64>,
        unit: &str,
        bound: f64,
    ) {
        self.add(case, text, measured, unit, bound);
        self.last().is_least = true;
    }

    /// A ratio of two times that must be `bound` or more.
    pub fn at_least(&mut self, case: &str, text: String, pair: Pair, bound: f64) {
        self.add(case, text, ratio(pair), "x", bound);
        self.last().is_least = true;
    }

    /// A fraction, in percent, that must stay below `bound`.
    pub fn percent_below(&mut self, case: &str, text: impl Into<String>, share: f64, bound: f64) {
        self.add(case, text.into(), Some(share * 100.0), "%", bound);
    }

    /// A time in nanoseconds that must not exceed `bound`.
    pub fn at_most_ns(
        &mut self,
        case: &str,
        text: impl Into<String>,
        seconds: Option<f64>,
        bound: f64,
    ) {
        self.add(case, text.into(), seconds.map(|s| s * 1e9), "ns", bound);
    }

    /// A size in megabytes that must not exceed `bound`.
    pub fn at_most_mb(&mut self, case: &str, text: impl Into<String>, bytes: u64, bound: f64) {
        self.add(case, text.into(), Some(bytes as f64 / 1e6), "MB", bound);
    }

    /// The ratio of the target before, for which there is also a stricter bound that need not be met yet.
    pub fn aim(&mut self, bound: f64) {
        let last = self.last();
        let aim = Target { bound, is_aim: true, ..last.clone() };
        self.0.push(aim);
    }

    /// Makes the target before an aim.
    pub fn make_aim(&mut self) {
        self.last().is_aim = true;
    }

    fn last(&mut self) -> &mut Target {
        self.0.last_mut().expect("a target was added before")
    }

    /// Plain derives as rows: how many times as long cbor4ii takes to encode, rmp-serde with names to decode, and
    /// the fastest self-describing peer to decode to a value that borrows.
    pub fn rows(&mut self, case: &str, report: &Report) {
        for (column, peer, bound) in
            [(Column::Encode, "cbor4ii", 1.2), (Column::Decode, "rmp-serde named", 1.3)]
        {
            let text = format!("rows, {}: time of {peer} / tenarc", report.head(column));
            let median = |peer| report.median(peer, "plain", column);
            self.at_least(case, text, (median(peer), median("tenarc")), bound);
        }
        let median = |peer: &str| report.median(peer, "plain", Column::Borrow);
        let fastest = SELF_DESCRIBING.iter().filter_map(|peer| median(peer)).min_by(f64::total_cmp);
        if let Some(time) = fastest {
            let head = report.head(Column::Borrow);
            let text = format!("rows, {head}: time of the fastest self-describing peer / tenarc");
            self.at_least(case, text, (Some(time), median("tenarc")), 1.2);
        }
    }

    /// Columns: how many times as long tenarc takes as one form of a peer.
    pub fn columns(
        &mut self,
        case: &str,
        report: &Report,
        (column, peer, form): (Column, &str, &str),
        bound: f64,
    ) {
        let text = format!("columns, {} / {}", report.head(column), named(peer, form));
        let median = |peer, form| report.median(peer, form, column);
        self.at_most(case, text, (median("tenarc", "columns"), median(peer, form)), bound);
    }

    /// Columns: how many times as long tenarc's message is as that of a peer.
    pub fn columns_size(&mut self, case: &str, report: &Report, peer: &str, bound: f64) {
        let size = |peer: &str, form: &str| Some(report.bytes(peer, form)? as f64);
        let text = format!("columns, size / {}", named(peer, "plain"));
        self.at_most(case, text, (size("tenarc", "columns"), size(peer, "plain")), bound);
    }

    pub fn print(&self) {
        if self.0.is_empty() {
            return;
        }
        println!("\nTargets (from the medians of this run)\n");
        let mut table = Table::new(2, &["case", "target", "bound", "measured", ""]);
        for target in &self.0 {
            let measured = match target.measured {
                Some(measured) => format!("{} {}", times(measured), target.unit),
                None => "not measured".to_string(),
            };
            let verdict = match target.verdict() {
                Verdict::Missed => "MISSED",
                verdict => verdict.text(),
            };
            let cells = [&target.case, &target.text, &target.limit(), &measured, verdict];
            table.push(cells.map(str::to_string).to_vec());
        }
        table.print();
    }
}

fn ratio(pair: Pair) -> Option<f64> {
    Some(pair.0? / pair.1?)
}

/// bitcode's rows are told apart by their forms only.
fn named(peer: &str, form: &str) -> String {
    match (peer, form) {
        ("bitcode", "plain") => "bitcode with serde".to_string(),
        ("bitcode", _) => "bitcode's own derives".to_string(),
        _ => peer.to_string(),
    }
}
