//! Writes CBOR messages: one item for each value, one after the other.

use super::stream::write_stream;
use super::values::Values;
use crate::failure::Result;
use crate::target::Target;
use crate::written::Written;

/// Writes values as messages to the target. A new file is read back and compared before it replaces the target.
///
/// # Errors
/// If a value cannot be read, or the target cannot be written.
pub fn write(values: &mut Values<'_>, target: &Target) -> Result<()> {
    let name = target.name();
    write_stream(target, &mut |mut writer| {
        values.each(&mut |value| {
            value.with_section(&mut |section| {
                let options = tenarc::ser::EncodeOptions::default().with_typed_arrays(true);
                let value = Written::plain(section);
                tenarc::ser::to_writer_with(&mut writer, &value, options)
                    .map_err(|error| value.failure(error, &name))
            })
        })
    })
}
