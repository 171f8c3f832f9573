//! Horizontal bar charts as SVG. Rows are peers. Each measurement is a panel, and the panels are side by side.

use std::fmt::Write as _;

use crate::results::Unit;
use crate::units::{megabytes, time_beside, unit_of};

/// The owner of a bar, which decides its colour.
#[derive(Clone, Copy)]
pub enum Kind {
    Tenarc,
    Peer,
    Floor,
}

pub struct Bars {
    pub label: String,
    pub kind: Kind,
    /// One for each panel. `None` if the peer was not measured.
    pub values: Vec<Option<u64>>,
}

pub struct Chart {
    pub title: &'static str,
    /// The headings of the panels, and the unit of their values.
    pub panels: Vec<(&'static str, Unit)>,
    pub rows: Vec<Bars>,
    /// Panels of times have logarithmic axes: for charts in which one bar would flatten the others.
    pub has_log_times: bool,
    /// Lines below the chart.
    pub notes: Vec<String>,
}

const WIDTH: usize = 840;
const MARGIN: usize = 24;
const LABELS: usize = 150;
const GAP: usize = 28;
/// Room for the number behind the longest bar.
const NUMBER: usize = 64;
/// The vertical positions of the panels' headings and of the first row.
const HEADS: usize = 74;
const ROWS: usize = 88;
const ROW: usize = 26;
const BAR: usize = 16;
/// Room for the labels below logarithmic panels.
const TICKS: usize = 16;

/// Colours for light and dark mode. The chart has its own background, because a page may be in another mode than the
/// reader's system.
const STYLE: &str = "\
text{font:13px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2328}
.title{font-size:17px;font-weight:600}
.head{font-weight:600}
.note{font-size:12px;fill:#59636e}
.none{fill:#59636e}
.end{text-anchor:end}
.bold{font-weight:600}
.page{fill:#fff}
.axis{stroke:#d1d9e0}
.tick{font-size:11px;fill:#59636e;text-anchor:middle}
.tenarc{fill:#0969da}
.peer{fill:#a8b3c0}
.floor{fill:#e3e8ee}
@media (prefers-color-scheme: dark){
text{fill:#e6edf3}
.note,.none,.tick{fill:#9198a1}
.page{fill:#0d1117}
.axis{stroke:#3d444d}
.tenarc{fill:#4493f8}
.peer{fill:#656c76}
.floor{fill:#2f353d}
}";

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// One text element.
fn text(out: &mut String, (x, y): (usize, usize), class: &str, text: &str) {
    let text = escaped(text);
    writeln!(out, "<text x=\"{x}\" y=\"{y}\" class=\"{class}\">{text}</text>")
        .expect("a string takes everything");
}

impl Chart {
    pub fn draw(&self) -> String {
        let rows_end = ROWS + self.rows.len() * ROW;
        let notes = rows_end + if self.has_log_times { TICKS } else { 0 };
        let height = notes + 10 + self.notes.len() * 18 + MARGIN / 2;
        let title = escaped(self.title);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n\
             <title>{title}</title>\n\
             <style>\n{STYLE}\n</style>\n\
             <rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\" rx=\"6\"/>\n"
        );
        text(&mut out, (MARGIN, 38), "title", self.title);
        for (row, bars) in self.rows.iter().enumerate() {
            let class = if matches!(bars.kind, Kind::Tenarc) { "end bold" } else { "end" };
            text(&mut out, (MARGIN + LABELS - 10, baseline(row)), class, &bars.label);
        }
        for panel in 0..self.panels.len() {
            self.draw_panel(&mut out, panel, rows_end);
        }
        for (n, note) in self.notes.iter().enumerate() {
            text(&mut out, (MARGIN, notes + 24 + n * 18), "note", note);
        }
        out += "</svg>\n";
        out
    }

    /// Sizes differ too little for a logarithmic axis.
    fn is_log(&self, panel: usize) -> bool {
        self.has_log_times && matches!(self.panels[panel].1, Unit::Nanoseconds)
    }

    fn draw_panel(&self, out: &mut String, panel: usize, rows_end: usize) {
        let count = self.panels.len();
        let width = (WIDTH - 2 * MARGIN - LABELS - (count - 1) * GAP) / count;
        let left = MARGIN + LABELS + panel * (width + GAP);
        let (head, unit) = self.panels[panel];
        text(out, (left, HEADS), "head", head);
        let values = || self.rows.iter().filter_map(|bars| bars.values[panel]);
        let longest = values().max().unwrap_or(1).max(1);
        let log = |value: u64| (value.max(1) as f64).log10();
        // Where a logarithmic axis begins: at a power of ten that leaves some length to the shortest bar.
        let first =
            self.is_log(panel).then(|| (log(values().min().unwrap_or(1)) - 0.1).floor().max(0.0));
        let length = |value: u64| {
            let share = match first {
                None => value as f64 / longest as f64,
                Some(first) => (log(value) - first) / (log(longest) - first),
            };
            share * (width - NUMBER) as f64
        };
        axis(out, left, rows_end);
        if let Some(first) = first {
            for power in first as u32..=log(longest) as u32 {
                let value = 10_u64.pow(power);
                let x = left + length(value).round() as usize;
                axis(out, x, rows_end);
                text(
                    out,
                    (x, rows_end + 14),
                    "tick",
                    &(value as f64 / unit_of(longest).0).to_string(),
                );
            }
        }
        for (row, bars) in self.rows.iter().enumerate() {
            let Some(value) = bars.values[panel] else {
                text(out, (left + 6, baseline(row)), "none", "–");
                continue;
            };
            // A thinner bar would be invisible.
            let length = length(value).max(1.5);
            let (y, class) = (ROWS + row * ROW + (ROW - BAR) / 2, bars.kind.class());
            writeln!(
                out,
                "<rect class=\"{class}\" x=\"{left}\" y=\"{y}\" width=\"{length:.1}\" height=\"{BAR}\"/>"
            )
            .expect("a string takes everything");
            let class = if matches!(bars.kind, Kind::Tenarc) { "bold" } else { "number" };
            let behind = left + length.round() as usize + 6;
            let number = match unit {
                Unit::Nanoseconds => time_beside(value, longest),
                Unit::Bytes => megabytes(value),
            };
            text(out, (behind, baseline(row)), class, &number);
        }
    }
}

/// A vertical line beside all rows.
fn axis(out: &mut String, x: usize, rows_end: usize) {
    let top = ROWS - 2;
    writeln!(out, "<line class=\"axis\" x1=\"{x}\" x2=\"{x}\" y1=\"{top}\" y2=\"{rows_end}\"/>")
        .expect("a string takes everything");
}

/// The vertical position of a row's text.
fn baseline(row: usize) -> usize {
    ROWS + row * ROW + ROW / 2 + 5
}

impl Kind {
    fn class(self) -> &'static str {
        match self {
            Kind::Tenarc => "tenarc",
            Kind::Peer => "peer",
            Kind::Floor => "floor",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_has_its_labels_and_numbers_escaped() {
        let row = |label: &str, kind, values| Bars { label: label.to_string(), kind, values };
        let chart = Chart {
            title: "save & load",
            panels: vec![("save", Unit::Nanoseconds), ("load", Unit::Nanoseconds)],
            rows: vec![
                row("tenarc", Kind::Tenarc, vec![Some(50), Some(1_500)]),
                row("<other>", Kind::Peer, vec![Some(100), None]),
            ],
            has_log_times: false,
            notes: vec!["one run".to_string()],
        };
        let svg = chart.draw();
        for part in
            ["<title>save &amp; load</title>", "&lt;other&gt;", ">1.5 µs<", ">–<", ">one run<"]
        {
            assert!(svg.contains(part), "{part} in {svg}");
        }
        // The longest bar fills its panel, up to the room for its number.
        assert_eq!(svg.matches("width=\"243.0\"").count(), 2, "{svg}");
        assert_eq!(svg.matches("width=\"121.5\"").count(), 1, "{svg}");
    }

    #[test]
    fn a_decade_has_the_same_length_everywhere_on_a_logarithmic_axis() {
        let row =
            |value| Bars { label: String::new(), kind: Kind::Peer, values: vec![Some(value)] };
        let chart = |has_log_times| Chart {
            title: "",
            panels: vec![("save", Unit::Nanoseconds)],
            rows: [20_000_000, 200_000_000, 1_000_000_000].map(row).into(),
            has_log_times,
            notes: vec![],
        };
        assert!(!chart(false).draw().contains("\"tick\""));
        let svg = chart(true).draw();
        // From 10 to 1000 ms are two decades, in 578 units.
        for part in
            ["width=\"87.0\"", "width=\"376.0\"", "width=\"578.0\"", ">10<", ">100<", ">1000<"]
        {
            assert!(svg.contains(part), "{part} in {svg}");
        }
    }
}
