//! Reads and writes tenarc archives.

use tenarc::Archive;

use super::values::{Valued, Values};
use super::{Format, tables};
use crate::document::{Document, Reading};
use crate::failure::{Result, for_users};
use crate::input::{Input, Source};
use crate::limits::decoding;
use crate::output::say;
use crate::target::Target;
use crate::target::archive::ArchiveTarget;
use crate::text::bytes;
use crate::written::Written;

/// Opens an archive.
///
/// # Errors
/// If the input cannot be read, or is not an archive.
pub fn read(input: Input, reading: &Reading) -> Result<Document> {
    let name = input.name.clone();
    let source = input.into_source();
    let archive = if reading.torn {
        let archive = Archive::new_torn(source)?;
        if let Some(error) = archive.torn() {
            let error = for_users(error);
            say(&format!(
                "{name}: {error}; reading the complete values, and the header of the incomplete one"
            ));
        }
        archive.with_options(decoding().with_checksums(!reading.no_verify))
    } else {
        let archive = Archive::new(source)?.with_options(decoding());
        if let Some(unfinished) = unfinished(&archive) {
            say(&format!("{name}: {unfinished}"));
        }
        archive
    };
    Ok(Document::of_archive(name, Format::Archive, archive))
}

/// Copies unchanged segments to an archive, and saves all other values. JSON lines become a table if they are one.
///
/// # Errors
/// If a value cannot be read, or the target cannot be written.
pub fn write(values: &mut Values<'_>, target: &Target) -> Result<()> {
    if let Some(table) = tables::of_lines(values)? {
        return write(&mut Values::of(&table, None)?, target);
    }
    let mut out = ArchiveTarget::new(target)?;
    values.each(&mut |value| match value {
        Valued::Whole(section) => match section.segment().filter(|_| !target.recompresses) {
            Some(segment) => out.copy(section.name(), segment),
            None => out.save(section.name(), &Written::whole(section)),
        },
        Valued::Changed(name, value) => out.save(name, &value),
    })?;
    out.finish()
}

/// Returns a message about the bytes after the last end mark, if there are any.
pub fn unfinished(archive: &Archive<Source>) -> Option<String> {
    let count = archive.unfinished_bytes();
    let what = "follow the last end mark: an append is in progress or was interrupted";
    (count > 0).then(|| format!("{} {what}", bytes(count)))
}
