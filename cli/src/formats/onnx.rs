//! The tensors of ONNX models.

use tenarc_convert::onnx::{Onnx, open_with_external};

use super::{Codec, Format, Lossy, Sections};
use crate::document::{Document, Reading};
use crate::failure::{Failure, Result};
use crate::input::Input;
use crate::output::Target;

pub struct OnnxModels;

impl Codec for OnnxModels {
    fn extensions(&self) -> &'static [&'static str] {
        &["onnx"]
    }

    fn read(&self, input: Input, _: &Reading) -> Result<Document> {
        // External data files are read only from the directory of the model.
        let model = match &input.path {
            Some(path) => open_with_external(path)?,
            None => Onnx::new(input.file)?,
        };
        Document::of_file(input.name, Format::Onnx, Box::new(model))
    }

    fn check_writable(&self) -> Result<()> {
        Err(Failure::new("cannot write ONNX models: write safetensors instead"))
    }

    fn write(&self, _: Sections<'_, '_>, _: &Target, _: Lossy) -> Result<()> {
        self.check_writable()
    }
}
