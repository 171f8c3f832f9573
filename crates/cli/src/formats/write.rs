//! Writes files of any format.

use super::values::Values;
use super::{Format, Lossy, archive, converted, message, tables};
use crate::failure::{Kind, Result};
use crate::target::Target;

impl Format {
    /// Writes values. A target file is replaced only if all of them were written.
    ///
    /// # Errors
    /// If a value cannot be read, if this format cannot hold it and `lossy` is off, or if the target cannot
    /// be written.
    pub fn write(self, values: &mut Values<'_>, target: &Target, lossy: Lossy) -> Result<()> {
        self.check_writable()?;
        match (self, self.converted()) {
            (Self::Arrow, Some(of)) => tables::write_arrow(of, values, target, lossy),
            (_, Some(of)) => converted::write(of, values, target, lossy),
            (Self::Archive, _) => archive::write(values, target),
            (Self::Parquet, _) => tables::write_parquet(values, target, lossy),
            _ => message::write(values, target),
        }
    }
}

impl Values<'_> {
    /// Writes the values to a target. A format other than an archive may be unable to hold them.
    ///
    /// # Errors
    /// If the format cannot hold the values, or writing fails.
    pub fn write(&mut self, to: Format, target: &Target) -> Result<()> {
        to.write(self, target, Lossy(false)).map_err(|failure| match failure.kind {
            Kind::Loss => failure
                .with_hint(": write an archive, and use `tenarc convert --lossy`")
                .of_output(&target.name()),
            _ => failure,
        })
    }
}
