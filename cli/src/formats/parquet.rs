//! Parquet files: tables of records. They are read as a temporary archive with a value for each row group.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use tenarc::{Archive, OArchive};
use tenarc_convert::parquet::{self, Options, ParquetFile};

use super::{Format, Lossy, NOT_KEPT, TEMPORARY, Valued, Values, tell, temporary};
use crate::document::Document;
use crate::failure::Result;
use crate::input::{Input, Source};
use crate::output::Target;
use crate::written::Written;

/// # Errors
/// If the input cannot be read, or is no Parquet file.
pub fn read(input: Input) -> Result<Document> {
    let file = ParquetFile::new(input.file)?;
    let stem = Path::new(&input.name).file_stem().map(|stem| stem.to_string_lossy());
    let name = file.table().or(stem.as_deref()).unwrap_or("table");
    let archive = archive(|out| {
        for group in 0..file.row_groups() {
            out.save_as(name, &file.rows(group)?)?;
        }
        Ok(())
    })?;
    let document = Document::of_archive(input.name.clone(), Format::Parquet, archive);
    Ok(document.with_losses(file.losses().clone()))
}

/// Writes values as row groups.
///
/// # Errors
/// If they are no table, if the format cannot hold them and `lossy` is off, or if the target cannot be written.
pub fn write(values: &mut Values<'_>, target: &Target, lossy: Lossy) -> Result<()> {
    let options = Options::default().with_losses(lossy.0);
    let mut writer = target.writer()?;
    let losses = if let Some(segments) = values.segments() {
        parquet::segments_to_writer(segments, &mut writer, &options)?
    } else {
        let archive = archive(|out| {
            values.each(&mut |value| {
                let (name, value) = match value {
                    Valued::Whole(section) => (section.name(), Written::whole(section)),
                    Valued::Changed(name, value) => (name, value),
                };
                let saved = match name {
                    Some(name) => out.save_as(name, &value),
                    None => out.save(&value),
                };
                saved.map(drop).map_err(|error| value.failure(error, TEMPORARY))
            })
        })?;
        parquet::to_writer(&archive, &mut writer, &options)?
    };
    tell(&losses, None, NOT_KEPT);
    writer.finish()
}

/// A temporary archive.
fn archive(
    save: impl FnOnce(&mut OArchive<BufWriter<&File>>) -> Result<()>,
) -> Result<Archive<Source>> {
    let file = temporary()?;
    let mut out = OArchive::new(BufWriter::with_capacity(1 << 20, &file))?;
    save(&mut out)?;
    drop(out.finish()?);
    Ok(Archive::new(Source::new(file))?)
}
