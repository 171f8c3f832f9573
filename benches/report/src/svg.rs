//! Horizontal bar charts as SVG. Rows are peers. Each measurement is a panel, and the panels are side by side.

use std::fmt::Write as _;

use crate::results::Unit;
use crate::units::{megabytes, time};

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
.tenarc{fill:#0969da}
.peer{fill:#a8b3c0}
.floor{fill:#e3e8ee}
@media (prefers-color-scheme: dark){
text{fill:#e6edf3}
.note,.none{fill:#9198a1}
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
        let height = rows_end + 10 + self.notes.len() * 18 + MARGIN / 2;
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
            text(&mut out, (MARGIN, rows_end + 24 + n * 18), "note", note);
        }
        out += "</svg>\n";
        out
    }

    fn draw_panel(&self, out: &mut String, panel: usize, rows_end: usize) {
        let count = self.panels.len();
        let width = (WIDTH - 2 * MARGIN - LABELS - (count - 1) * GAP) / count;
        let left = MARGIN + LABELS + panel * (width + GAP);
        let (head, unit) = self.panels[panel];
        text(out, (left, HEADS), "head", head);
        let longest = self.rows.iter().filter_map(|bars| bars.values[panel]).max().unwrap_or(1);
        let scale = (width - NUMBER) as f64 / longest.max(1) as f64;
        for (row, bars) in self.rows.iter().enumerate() {
            let Some(value) = bars.values[panel] else {
                text(out, (left + 6, baseline(row)), "none", "–");
                continue;
            };
            // A thinner bar would be invisible.
            let length = (value as f64 * scale).max(1.5);
            let (y, class) = (ROWS + row * ROW + (ROW - BAR) / 2, bars.kind.class());
            writeln!(
                out,
                "<rect class=\"{class}\" x=\"{left}\" y=\"{y}\" width=\"{length:.1}\" height=\"{BAR}\"/>"
            )
            .expect("a string takes everything");
            let class = if matches!(bars.kind, Kind::Tenarc) { "bold" } else { "number" };
            let number = left + length.round() as usize + 6;
            let value = match unit {
                Unit::Nanoseconds => time(value),
                Unit::Bytes => megabytes(value),
            };
            text(out, (number, baseline(row)), class, &value);
        }
        writeln!(
            out,
            "<line class=\"axis\" x1=\"{left}\" x2=\"{left}\" y1=\"{}\" y2=\"{rows_end}\"/>",
            ROWS - 2
        )
        .expect("a string takes everything");
    }
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
}
