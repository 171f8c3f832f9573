//! `PyTorch` files, as `torch.save` writes them.

use std::fs::File;

use tenarc::tensor::Deferred;
use tenarc_convert::torch::TorchFile;

use super::fetched::{Fetched, Reader, Structure};
use super::{Codec, Format, Lossy, Sections};
use crate::document::{Document, Reading};
use crate::failure::{Failure, Result};
use crate::input::Input;
use crate::output::Target;

pub struct Torch;

impl Codec for Torch {
    fn extensions(&self) -> &'static [&'static str] {
        &["pt", "pth", "bin"]
    }

    fn read(&self, input: Input, _: &Reading) -> Result<Document> {
        let file = TorchFile::new(input.file)?;
        let structure = Structure::among(&file.flat()?, file.tensors().iter())?;
        let lost = file.losses().clone();
        let fetched = Fetched::named(Box::new(file), structure, lost)?;
        Ok(Document::of_fetched(input.name, Format::Torch, fetched))
    }

    fn check_writable(&self) -> Result<()> {
        Err(Failure::new("cannot write PyTorch files: write safetensors instead"))
    }

    fn write(&self, _: Sections<'_, '_>, _: &Target, _: Lossy) -> Result<()> {
        self.check_writable()
    }
}

impl Reader for TorchFile<File> {
    fn tensor(&self, key: &str) -> tenarc::Result<Deferred<'_>> {
        self.deferred(key)
    }

    fn place(&self, key: &str) -> tenarc::Result<Option<(&File, u64)>> {
        Ok(self.position(key)?.map(|at| (self.source(), at)))
    }

    fn verify(&self) -> tenarc::Result<Option<String>> {
        TorchFile::verify(self)?;
        let what = "the file has no checksums: changed elements are not detected";
        Ok((!self.has_checksums()).then(|| what.to_owned()))
    }
}
