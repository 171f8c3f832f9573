//! Tables whose columns are as wide as their content.

use std::io::{self, Write};

use crate::output::{HEADING, Out};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// Rows of cells under headings.
pub struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(columns: &[(&'static str, Align)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Prints the table.
    ///
    /// # Errors
    /// If writing fails.
    pub fn print(&self, out: &mut Out) -> io::Result<()> {
        let mut widths: Vec<usize> =
            self.columns.iter().map(|(name, _)| name.chars().count()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                // A single long path must not push all other columns out of sight.
                *width = (*width).max(cell.chars().count().min(MAX_WIDTH));
            }
        }
        let headings: Vec<String> =
            self.columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        let line = self.line(&headings, &widths);
        writeln!(out, "{}", out.styled(HEADING, &line))?;
        for row in &self.rows {
            writeln!(out, "{}", self.line(row, &widths))?;
        }
        Ok(())
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for ((cell, &width), (_, align)) in cells.iter().zip(widths).zip(&self.columns) {
            if !line.is_empty() {
                line.push_str("  ");
            }
            let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
            match align {
                Align::Left => line.extend([cell.as_str(), &padding]),
                Align::Right => line.extend([&padding, cell.as_str()]),
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

const MAX_WIDTH: usize = 80;
