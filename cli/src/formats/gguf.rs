//! GGUF files, read.

use tenarc_convert::gguf::Gguf;

use super::{Codec, Format, Lossy, Sections};
use crate::document::{Document, Reading};
use crate::failure::{Failure, Result};
use crate::input::Input;
use crate::output::Target;

pub struct GgufFiles;

impl Codec for GgufFiles {
    fn extensions(&self) -> &'static [&'static str] {
        &["gguf"]
    }

    fn starts(&self, start: &[u8]) -> bool {
        start.starts_with(b"GGUF")
    }

    fn read(&self, input: Input, _: &Reading) -> Result<Document> {
        Document::of_file(input.name, Format::Gguf, Box::new(Gguf::new(input.file)?))
    }

    fn check_writable(&self) -> Result<()> {
        Err(Failure::new(
            "the command only reads GGUF files: write safetensors, and convert it with the tools of llama.cpp",
        ))
    }

    fn write(&self, _: Sections<'_, '_>, _: &Target, _: Lossy) -> Result<()> {
        self.check_writable()
    }
}
