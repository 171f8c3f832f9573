//! Prints tables whose columns are as wide as their content.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr as _;

use crate::output::{HEADING, Out};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// Rows of cells under headings.
pub struct Table<'a> {
    columns: Vec<(&'a str, Align)>,
    rows: Vec<Vec<String>>,
    fitted: Option<Fitted<'a>>,
}

/// The settings for narrowing a table.
struct Fitted<'a> {
    width: usize,
    /// The column whose cells get a line of their own if they are too long.
    long: &'a str,
    /// The columns that are left out, in this order, until the others fit.
    optional: &'a [&'a str],
}

impl<'a> Table<'a> {
    pub fn new(columns: &[(&'a str, Align)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new(), fitted: None }
    }

    /// Limits lines to `width` characters, if possible. Optional columns are left out, the first ones first, until the
    /// others fit. Cells of the column `long` that are still too long get a line of their own.
    #[must_use]
    pub fn within(self, width: usize, long: &'a str, optional: &'a [&'a str]) -> Self {
        Self { fitted: Some(Fitted { width, long, optional }), ..self }
    }

    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Prints the table.
    ///
    /// # Errors
    /// If writing fails.
    pub fn print(mut self, out: &mut Out) -> io::Result<()> {
        let mut widths = self.widths();
        let long = self.fit(&mut widths);
        let headings: Vec<String> =
            self.columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        let line = self.line(&headings, &widths);
        writeln!(out, "{}", out.styled(HEADING, &line))?;
        for row in &self.rows {
            match long.and_then(|(at, width)| Some((at, width, row.get(at)?))) {
                Some((at, width, cell)) if cell.width() > width => {
                    writeln!(out, "{cell}")?;
                    let mut row = row.clone();
                    if let Some(cell) = row.get_mut(at) {
                        cell.clear();
                    }
                    writeln!(out, "{}", self.line(&row, &widths))?;
                }
                _ => writeln!(out, "{}", self.line(row, &widths))?,
            }
        }
        Ok(())
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|(name, _)| name.width()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                // A single long path must not push all other columns out of sight.
                *width = (*width).max(cell.width().min(MAX_WIDTH));
            }
        }
        widths
    }

    /// Leaves out optional columns, and narrows the column `long`. Returns the position and the width of that column.
    fn fit(&mut self, widths: &mut Vec<usize>) -> Option<(usize, usize)> {
        let Fitted { width, long, optional } = self.fitted.take()?;
        let total = |widths: &[usize]| widths.iter().map(|width| width + GAP.len()).sum::<usize>();
        let most = width + GAP.len();
        let at = |columns: &[(&str, Align)], name| columns.iter().position(|(n, _)| *n == name);
        // Optional columns are left out until this much of the long column fits.
        let least = 2 * long.len();
        for name in optional {
            let own = at(&self.columns, long).and_then(|at| widths.get(at)).copied().unwrap_or(0);
            if total(widths) - own + own.min(least) <= most {
                break;
            }
            if let Some(at) = at(&self.columns, name) {
                self.columns.remove(at);
                widths.remove(at);
                self.rows
                    .iter_mut()
                    .filter(|row| at < row.len())
                    .for_each(|row| drop(row.remove(at)));
            }
        }
        let column = at(&self.columns, long)?;
        let excess = total(widths).saturating_sub(most);
        let own = widths.get_mut(column)?;
        *own = own.saturating_sub(excess).max(long.len());
        Some((column, *own))
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        let columns = cells.iter().zip(widths).zip(&self.columns);
        for (at, ((cell, &width), (_, align))) in columns.enumerate() {
            if at > 0 {
                line.push_str(GAP);
            }
            let padding = " ".repeat(width.saturating_sub(cell.width()));
            match align {
                Align::Left => line.extend([cell.as_str(), &padding]),
                Align::Right => line.extend([&padding, cell.as_str()]),
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// The space between columns.
const GAP: &str = "  ";

const MAX_WIDTH: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_columns() {
        let table = Table::new(&[("name", Align::Left), ("size", Align::Right)]);
        let line = |name: &str| table.line(&[name.to_owned(), "7".to_owned()], &[6, 4]);
        assert_eq!(line("abc"), "abc        7");
        assert_eq!(line("权重"), "权重       7");
        // The name has a letter with a combining mark above it.
        assert_eq!(line("e\u{301}bc"), "e\u{301}bc        7");
    }
}
