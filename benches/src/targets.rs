//! The performance targets, computed from the measured times.

use crate::harness::{Column, Report};
use crate::table::{Table, times};

/// The self-describing peers that write the field names of structs, as tenarc does.
const SELF_DESCRIBING: [&str; 3] = ["cbor4ii", "minicbor-serde", "rmp-serde named"];

enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

struct Target {
    case: &'static str,
    text: String,
    measured: Option<f64>,
    unit: &'static str,
    bound: Bound,
}

#[derive(Default)]
pub struct Targets(Vec<Target>);

fn ratio(over: Option<f64>, under: Option<f64>) -> Option<f64> {
    Some(over? / under?)
}

impl Targets {
    /// A ratio of two times that must not exceed `bound`.
    pub fn at_most(
        &mut self,
        case: &'static str,
        text: impl Into<String>,
        times: (Option<f64>, Option<f64>),
        bound: f64,
    ) {
        self.0.push(Target {
            case,
            text: text.into(),
            measured: ratio(times.0, times.1),
            unit: "x",
            bound: Bound::AtMost(bound),
        });
    }

    /// A ratio that must not exceed `bound`.
    pub fn ratio_at_most(
        &mut self,
        case: &'static str,
        text: impl Into<String>,
        measured: Option<f64>,
        bound: f64,
    ) {
        let (text, bound) = (text.into(), Bound::AtMost(bound));
        self.0.push(Target { case, text, measured, unit: "x", bound });
    }

    /// A fraction, in percent, that must stay below `bound`.
    pub fn percent_below(
        &mut self,
        case: &'static str,
        text: impl Into<String>,
        share: f64,
        bound: f64,
    ) {
        let (text, measured, bound) = (text.into(), Some(share * 100.0), Bound::AtMost(bound));
        self.0.push(Target { case, text, measured, unit: "%", bound });
    }

    /// A time in nanoseconds that must not exceed `bound`.
    pub fn at_most_ns(
        &mut self,
        case: &'static str,
        text: impl Into<String>,
        seconds: Option<f64>,
        bound: f64,
    ) {
        self.0.push(Target {
            case,
            text: text.into(),
            measured: seconds.map(|s| s * 1e9),
            unit: "ns",
            bound: Bound::AtMost(bound),
        });
    }

    /// tenarc with plain derives must be 1.2 times as fast as the fastest self-describing peer.
    pub fn plain_derives(&mut self, case: &'static str, report: &Report, columns: &[Column]) {
        for &column in columns {
            let fastest = SELF_DESCRIBING
                .iter()
                .filter_map(|peer| Some((report.median(peer, "plain", column)?, peer)))
                .min_by(|a, b| a.0.total_cmp(&b.0));
            let (time, peer) = match fastest {
                Some((time, peer)) => (Some(time), *peer),
                None => (None, "no peer"),
            };
            self.0.push(Target {
                case,
                text: format!("plain derives, {column:?}: how many times as fast as {peer}"),
                measured: ratio(time, report.median("tenarc", "plain", column)),
                unit: "x",
                bound: Bound::AtLeast(1.2),
            });
        }
    }

    /// Columns, beside one form of a peer for each operation: the most that tenarc's time may be of the
    /// peer's. Also the most that tenarc's message may be of a peer's.
    pub fn columns(
        &mut self,
        case: &'static str,
        report: &Report,
        times: &[(Column, &str, &str, f64)],
        (peer, form, bound): (&str, &str, f64),
    ) {
        for &(column, peer, form, bound) in times {
            let pair =
                (report.median("tenarc", "columns", column), report.median(peer, form, column));
            self.at_most(case, format!("columns, {column:?} / {peer} {form}"), pair, bound);
        }
        let size = |peer: &str, form: &str| {
            let row = report.rows.iter().find(|row| row.peer == peer && row.form == form)?;
            Some(row.bytes as f64)
        };
        let measured = ratio(size("tenarc", "columns"), size(peer, form));
        self.ratio_at_most(case, format!("columns, size / {peer} {form}"), measured, bound);
    }

    pub fn print(&self) {
        if self.0.is_empty() {
            return;
        }
        println!("\nTargets (from the medians of this run)\n");
        let mut table = Table::new(2, &["case", "target", "bound", "measured", ""]);
        for target in &self.0 {
            let (sign, bound) = match target.bound {
                Bound::AtMost(bound) => ("<=", bound),
                Bound::AtLeast(bound) => (">=", bound),
            };
            let met = target.measured.map(|measured| match target.bound {
                Bound::AtMost(bound) => measured <= bound,
                Bound::AtLeast(bound) => measured >= bound,
            });
            table.push(vec![
                target.case.to_string(),
                target.text.clone(),
                format!("{sign} {bound} {}", target.unit),
                match target.measured {
                    Some(measured) => format!("{} {}", times(measured), target.unit),
                    None => "not measured".to_string(),
                },
                match met {
                    Some(true) => "met".to_string(),
                    Some(false) => "MISSED".to_string(),
                    None => "?".to_string(),
                },
            ]);
        }
        table.print();
    }
}
