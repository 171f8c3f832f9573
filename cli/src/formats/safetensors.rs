//! safetensors: tensors by name, in one file, or in several shards with an index.

use std::path::Path;

use tenarc_convert::TensorFile;
use tenarc_convert::safetensors::{Export, Options, SafeTensors, open_sharded};

use super::{Codec, Format, Lossy, NOT_KEPT, Sections, only, tell, write_stream};
use crate::document::{Document, Reading};
use crate::failure::{Failure, Result};
use crate::input::Input;
use crate::output::Target;

pub struct Safetensors;

/// Whether a file is named as the index of a sharded model: `model.safetensors.index.json`.
pub fn is_index(path: &Path) -> bool {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    is_json && format!("{stem}.").contains(".safetensors.index.")
}

impl Codec for Safetensors {
    fn extensions(&self) -> &'static [&'static str] {
        &["safetensors"]
    }

    fn starts(&self, start: &[u8]) -> bool {
        // The header's length (8 bytes, little-endian, below 100 MB), then the header, which is JSON.
        matches!(start, [_, _, _, len, 0, 0, 0, 0, b'{', ..] if *len < 6)
    }

    fn read(&self, input: Input, _: &Reading) -> Result<Document> {
        // An index is JSON text. A safetensors file starts with the header's length, whose last byte is 0.
        let is_text = matches!(input.start(8)?[..], [b'{' | b' ' | b'\n', .., last] if last != 0);
        let file: Box<dyn TensorFile> = if is_text {
            let path = input.path.as_deref().ok_or_else(|| {
                Failure::new(
                    "an index names other files in its directory: give its file name, not a pipe",
                )
            })?;
            Box::new(open_sharded(path)?)
        } else {
            Box::new(SafeTensors::new(input.file)?)
        };
        Document::of_file(input.name, Format::Safetensors, file)
    }

    fn write(&self, sections: Sections<'_, '_>, target: &Target, lossy: Lossy) -> Result<()> {
        if target.path().is_some_and(is_index) {
            return Err(Failure::new("cannot write a sharded model: write one .safetensors file"));
        }
        only(sections, |value| {
            let export = Export::new(value)?;
            let options = Options::default().with_losses(lossy.0);
            write_stream(target, &mut |writer| {
                tell(&export.to_writer(writer, &options)?, None, NOT_KEPT);
                Ok(())
            })
        })
    }
}
