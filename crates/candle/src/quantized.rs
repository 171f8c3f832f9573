//! Quantised tensors of GGUF: blocks that candle turns into floats.

use std::borrow::Cow;

use candle_core::quantized::{GgmlDType, QStorage, QTensor};
use candle_core::{Device, Tensor};
use tenarc::tensor::RawTensor;
use tenarc::{DType, Error, Result};

use crate::error::of_candle;

/// The types of blocks that candle turns into floats, by the names that `tenarc_convert::gguf` gives them.
const KINDS: [(&str, GgmlDType); 10] = [
    ("q4_0", GgmlDType::Q4_0),
    ("q4_1", GgmlDType::Q4_1),
    ("q5_0", GgmlDType::Q5_0),
    ("q5_1", GgmlDType::Q5_1),
    ("q8_0", GgmlDType::Q8_0),
    ("q2_k", GgmlDType::Q2K),
    ("q3_k", GgmlDType::Q3K),
    ("q4_k", GgmlDType::Q4K),
    ("q5_k", GgmlDType::Q5K),
    ("q6_k", GgmlDType::Q6K),
];

/// The type of blocks with the name of this dtype.
pub fn kind(dtype: &DType) -> Option<GgmlDType> {
    KINDS.iter().find(|(name, _)| *name == dtype.name()).map(|(_, kind)| *kind)
}

/// The tensor as `f32`, with the numbers that candle's own reader of GGUF gives.
pub fn dequantized(tensor: RawTensor<'_, '_>, kind: GgmlDType) -> Result<Tensor> {
    let meta = tensor.meta().clone();
    if let Ok(bytes) = tensor.borrow_bytes() {
        return of_blocks(bytes, &meta.shape, kind);
    }
    of_blocks(&tensor.into_dyn()?.le_bytes(), &meta.shape, kind)
}

fn of_blocks(bytes: &[u8], shape: &[usize], kind: GgmlDType) -> Result<Tensor> {
    // candle panics if there are other numbers of bytes or elements, or if the bytes are not aligned.
    let count = shape.iter().try_fold(1usize, |count, len| count.checked_mul(*len));
    let blocks = count.map(|count| count / kind.block_size());
    let is_whole = shape.last().is_some_and(|len| len.is_multiple_of(kind.block_size()));
    if !is_whole || blocks.and_then(|n| n.checked_mul(kind.type_size())) != Some(bytes.len()) {
        let (block, size, found) = (kind.block_size(), kind.type_size(), bytes.len());
        return Err(Error::data(format!(
            "expected rows of blocks of {block} elements in {size} bytes, found the shape {shape:?} and \
             {found} bytes"
        )));
    }
    let mut words = vec![0u64; bytes.len().div_ceil(size_of::<u64>())];
    let aligned = bytemuck::cast_slice_mut::<u64, u8>(&mut words);
    let (aligned, _) = aligned.split_at_mut(bytes.len());
    aligned.copy_from_slice(bytes);
    let tensor = QStorage::from_data(Cow::Borrowed(&*aligned), &Device::Cpu, kind)
        .and_then(|blocks| QTensor::new(blocks, shape))
        .and_then(|tensor| tensor.dequantize(&Device::Cpu));
    tensor.map_err(|error| of_candle(&error))
}
