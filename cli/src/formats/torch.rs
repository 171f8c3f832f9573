//! `PyTorch` files, as `torch.save` writes them.

use tenarc_convert::torch::TorchFile;

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
        Document::of_file(input.name, Format::Torch, Box::new(TorchFile::new(input.file)?))
    }

    fn check_writable(&self) -> Result<()> {
        Err(Failure::new("cannot write PyTorch files: write safetensors instead"))
    }

    fn write(&self, _: Sections<'_, '_>, _: &Target, _: Lossy) -> Result<()> {
        self.check_writable()
    }
}
