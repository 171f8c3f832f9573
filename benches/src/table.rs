//! Plain text tables.

pub use tenarc_benches_report::units::{thousands, times};

use crate::harness::{COLUMNS, Column, Report};

/// Rows of cells under headings; the first `left` columns are aligned left, the others right.
pub struct Table {
    left: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(left: usize, head: &[&str]) -> Self {
        Self { left, rows: vec![head.iter().map(|cell| cell.to_string()).collect()] }
    }

    pub fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    pub fn print(&self) {
        let columns = self.rows[0].len();
        let widths: Vec<usize> = (0..columns)
            .map(|c| self.rows.iter().map(|row| row[c].chars().count()).max())
            .map(Option::unwrap_or_default)
            .collect();
        for (n, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (c, cell) in row.iter().enumerate() {
                let width = widths[c];
                line += &if c < self.left {
                    format!("{cell:<width$}  ")
                } else {
                    format!("{cell:>width$}  ")
                };
            }
            println!("{}", line.trim_end());
            if n == 0 {
                let rule = widths.iter().map(|w| w + 2).sum::<usize>() - 2;
                println!("{}", "-".repeat(rule));
            }
        }
    }
}

/// A time in seconds, formatted in a suitable unit.
pub fn time(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s < 1e-6 => (s * 1e9, "ns"),
        s if s < 1e-3 => (s * 1e6, "us"),
        s if s < 1.0 => (s * 1e3, "ms"),
        s => (s, "s"),
    };
    let digits = match value {
        v if v < 10.0 => 2,
        v if v < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

pub fn print_report(report: &Report) {
    println!("\n{}", report.title);
    println!("floor: {}\n", report.floor);
    let columns: Vec<Column> = COLUMNS
        .into_iter()
        .filter(|&column| report.rows.iter().any(|row| row.median(column).is_some()))
        .collect();
    let sized = report.rows.iter().any(|row| row.bytes > 0);
    let mut head = vec!["peer", "form"];
    head.extend(sized.then_some("bytes"));
    head.extend(columns.iter().flat_map(|&column| [report.heads[column as usize], "x"]));
    let mut table = Table::new(2, &head);
    for row in &report.rows {
        let mut cells = vec![row.peer.to_string(), row.form.to_string()];
        cells.extend(sized.then(|| match row.bytes {
            0 => String::new(),
            n => thousands(n as u64),
        }));
        for &column in &columns {
            let floor = report.floor_median(column);
            let median = row.median(column);
            cells.push(median.map(time).unwrap_or_default());
            cells.push(match (median, floor) {
                (Some(median), Some(floor)) => times(median / floor),
                _ => String::new(),
            });
        }
        table.push(cells);
    }
    table.print();
    let spread: Vec<String> = COLUMNS
        .iter()
        .filter_map(|&column| {
            let samples = report.rows[0].samples(column)?;
            let part = |p| times(samples.quantile(p) / samples.median());
            Some(format!("{} {} to {}", report.heads[column as usize], part(0.1), part(0.9)))
        })
        .collect();
    println!(
        "noise (10th and 90th percentile of the floor, relative to its median): {}",
        spread.join(", ")
    );
}
