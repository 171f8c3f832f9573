//! `info`: prints the formats of files, and the amount of data in them.

mod about;

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::Write;

use serde::Serialize;
use tenarc::Value;

use crate::args::Info;
use crate::document::{Document, Reading, Section, Wanted};
use crate::failure::{Of, Result, Status};
use crate::formats::{self, Format};
use crate::inputs::{self, Headings};
use crate::losses::NOT_READ;
use crate::node::Payload;
use crate::output::{FAINT, HEADING, JsonLines, Out, say};
use crate::paths::{Listed, Named};
use crate::table::{Align, Table};
use crate::text::{bytes, counted, escaped};

/// The summary of one file.
#[derive(Debug, Serialize)]
struct Report {
    file: String,
    format: String,
    /// The length of the file. `None` if the input is not a file, but a pipe.
    bytes: Option<u64>,
    values: u64,
    /// The number of tensors. Columns that are tensors are counted.
    tensors: u64,
    parameters: u64,
    tensor_bytes: u64,
    /// The bytes that the tensors take in the file: fewer, if some are compressed.
    stored: u64,
    tables: u64,
    rows: u64,
    /// The number of tables that have statistics, by which filters pass over groups of rows.
    with_statistics: u64,
    dtypes: BTreeMap<String, Count>,
    /// The compressed tensors, by codec.
    codecs: BTreeMap<String, Count>,
    /// Whether all values have checksums. `None` if the values are not read from an archive.
    #[serde(skip_serializing_if = "Option::is_none")]
    checksums: Option<bool>,
    /// What a file of another format says of itself, such as the inputs of a model.
    #[serde(skip_serializing_if = "Value::is_null")]
    about: Value,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Count {
    tensors: u64,
    parameters: u64,
    bytes: u64,
}

impl Count {
    fn add(&mut self, parameters: u64, bytes: u64) {
        self.tensors += 1;
        self.parameters = self.parameters.saturating_add(parameters);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

pub fn run(args: &Info, out: &mut Out) -> Result<Status> {
    let mut lines = JsonLines::default();
    let mut headings = Headings::new(args.inputs.inputs.len());
    let status = inputs::each(&args.inputs.inputs, &mut |input| {
        let reading = Reading { wanted: Wanted::Description, ..args.read.reading() };
        let document = Document::open(input, &reading)?;
        document.report_losses();
        let mut report = report(&document).of(&document.name)?;
        // The rest of the file is described all the same.
        report.about = document.about().unwrap_or_else(|failure| {
            say(&format!("{}: {NOT_READ}: {failure}", document.name));
            Value::Null
        });
        let metadata = fs::metadata(input).ok().filter(Metadata::is_file);
        report.bytes = metadata.map(|metadata| metadata.len());
        if args.json.json {
            return lines.line(out, &report);
        }
        headings.gap(out)?;
        report.print(out)
    })?;
    if args.json.json {
        lines.end(out)?;
    }
    Ok(status)
}

fn report(document: &Document) -> Result<Report> {
    let mut report = Report {
        file: document.name.clone(),
        format: formats::name(document.format),
        bytes: None,
        values: document.len(),
        tensors: 0,
        parameters: 0,
        tensor_bytes: 0,
        stored: 0,
        tables: 0,
        rows: 0,
        with_statistics: 0,
        dtypes: BTreeMap::new(),
        codecs: BTreeMap::new(),
        checksums: None,
        about: Value::Null,
    };
    for section in document.sections(None)? {
        let section = section?;
        // Tables of other formats are in a temporary archive.
        let segment = section.segment().filter(|_| document.format == Format::Archive);
        let has_statistics = segment.as_ref().is_some_and(|segment| segment.has_statistics());
        if let Some(segment) = segment {
            let so_far = report.checksums.unwrap_or(true);
            report.checksums = Some(so_far && segment.has_checksums());
        }
        section.each_listed(&mut |listed| {
            match listed {
                Listed::Tensor(Named { payload, .. }) => report.add(&section, payload),
                Listed::Columns(columns) => {
                    report.tables += 1;
                    report.with_statistics += u64::from(has_statistics);
                    report.rows = report.rows.saturating_add(section.table(columns)?.len());
                    for field in section.fields(columns)? {
                        if let Some(named) = Named::of_field(field) {
                            report.add(&section, named.payload);
                        }
                    }
                }
            }
            Ok(())
        })?;
    }
    Ok(report)
}

impl Report {
    fn add(&mut self, section: &Section<'_>, payload: &Payload) {
        let count = payload.count().map_or(u64::MAX, |count| count as u64);
        let len = payload.byte_len;
        self.tensors += 1;
        self.parameters = self.parameters.saturating_add(count);
        self.tensor_bytes = self.tensor_bytes.saturating_add(len);
        self.dtypes.entry(payload.dtype.name().to_owned()).or_default().add(count, len);
        let compressed = section.compressed(payload);
        let stored = compressed.map_or(len, |how| how.stored);
        self.stored = self.stored.saturating_add(stored);
        if let Some(how) = compressed {
            self.codecs.entry(how.codec.to_owned()).or_default().add(count, how.stored);
        }
    }

    fn print(&self, out: &mut Out) -> Result<()> {
        let mut about = self.format.clone();
        if let Some(len) = self.bytes {
            about = format!("{about}, {}", bytes(len));
        }
        if self.values != 1 {
            about = format!("{about}, {}", counted(self.values, "value"));
        }
        about += match self.checksums {
            Some(true) => ", with checksums",
            Some(false) => ", without checksums",
            None => "",
        };
        writeln!(out, "{}  {about}", out.styled(HEADING, &escaped(&self.file)))?;
        if self.tables > 0 {
            let (tables, rows) = (counted(self.tables, "table"), counted(self.rows, "row"));
            let statistics = match self.with_statistics {
                0 => String::new(),
                all if all == self.tables => ", with statistics".to_owned(),
                some => format!(", {some} with statistics"),
            };
            writeln!(out, "{tables} of {rows}{statistics}")?;
        }
        let mut table = Table::new(&[
            ("dtype", Align::Left),
            ("tensors", Align::Right),
            ("parameters", Align::Right),
            ("bytes", Align::Right),
        ]);
        for (dtype, count) in &self.dtypes {
            table.row(vec![
                escaped(dtype).into_owned(),
                grouped(count.tensors),
                grouped(count.parameters),
                bytes(count.bytes),
            ]);
        }
        if !self.dtypes.is_empty() {
            table.print(out)?;
        }
        let (tensors, size) = (counted(self.tensors, "tensor"), bytes(self.tensor_bytes));
        let mut summary =
            format!("{tensors}, {}, {size}", counted_grouped(self.parameters, "parameter"));
        for (codec, count) in &self.codecs {
            let (tensors, codec) = (counted(count.tensors, "tensor"), escaped(codec));
            summary = format!("{summary}; {tensors} compressed by {codec}");
        }
        if self.stored < self.tensor_bytes {
            summary = format!("{summary}, {} stored", bytes(self.stored));
        }
        writeln!(out, "{}", out.styled(FAINT, &summary))?;
        about::print(&self.about, out)
    }
}

fn counted_grouped(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", grouped(count))
}

/// Formats a number in groups of three digits.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn digits_are_in_groups_of_three() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (22_713_216, "22,713,216")]
        {
            assert_eq!(grouped(number), text);
        }
    }
}
