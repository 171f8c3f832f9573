//! GGUF files, read.

use std::fs::File;

use tenarc::tensor::Deferred;
use tenarc_convert::Losses;
use tenarc_convert::gguf::Gguf;

use super::fetched::{Fetched, Reader, Structure};
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
        let file = Gguf::new(input.file)?;
        let structure = Structure::among(&file.flat(), file.tensors().iter())?;
        let fetched = Fetched::named(Box::new(file), structure, Losses::default())?;
        Ok(Document::of_fetched(input.name, Format::Gguf, fetched))
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

impl Reader for Gguf<File> {
    fn tensor(&self, key: &str) -> tenarc::Result<Deferred<'_>> {
        self.deferred(key)
    }

    fn place(&self, key: &str) -> tenarc::Result<Option<(&File, u64)>> {
        Ok(Some((self.source(), self.position(key)?)))
    }
}
