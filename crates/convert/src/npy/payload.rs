//! Reads the elements of an npy file in steps that stay in cache.

use half::f16;
use num_complex::Complex;
use tenarc::tensor::TensorMeta;
use tenarc::{DType, DynTensor, Error, Result};

use super::header::Array;
use super::input::{Bytes, Input};
use crate::elements::Numeric;
use crate::numpy::columns::Column;
use crate::numpy::{ByteOrder, Texts};
use crate::support::swap_words;
use crate::texts::Next;

/// The number of bytes that are read at once, a multiple of the size of every element. Also how much memory is
/// allocated first for an array whose length is only claimed.
pub const STEP: usize = 256 << 10;

const WHAT: &str = "an npy array";

/// Makes elements little-endian, and checks that bools are 0 or 1. `at` is the offset of the elements.
fn settle(dtype: &DType, big_endian: bool, elements: &mut [u8], at: u64) -> Result<()> {
    if big_endian {
        swap_words(elements, dtype.word());
    }
    if *dtype == DType::Bool
        && let Some(wrong) = elements.iter().position(|&byte| byte > 1)
    {
        let byte = elements.get(wrong).copied().unwrap_or_default();
        let what = format!("a bool is stored as the byte {byte}; it must be 0 or 1");
        return Err(Error::data(what).at(at + wrong as u64));
    }
    Ok(())
}

/// A reader of a column of an array, from the first record to the last.
pub struct Gather<B> {
    column: Column,
    record_len: usize,
    input: Input<B>,
    /// The number of records that were not read yet.
    left: usize,
    /// The records that are being read, if the column is only a part of each.
    records: Vec<u8>,
}

impl<B: Bytes> Gather<B> {
    /// Makes a reader of a column. The records are next in `input`. Each has `record_len` bytes, and all have
    /// `byte_len`.
    pub fn new(record_len: usize, byte_len: usize, column: Column, input: Input<B>) -> Self {
        let record_len = record_len.max(1);
        Self { column, record_len, input, left: byte_len / record_len, records: Vec::new() }
    }

    /// Appends the bytes of the column in the next records to `out`. Returns `false` at the end.
    fn next(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        let count = (STEP / self.record_len).max(1).min(self.left);
        if count == 0 {
            return Ok(false);
        }
        self.left -= count;
        let Column { offset, len, .. } = self.column;
        if len == self.record_len {
            // The column is all of each record, so records are read directly to `out`.
            let start = out.len();
            out.resize(start + count * len, 0);
            self.input.fill(out.get_mut(start..).unwrap_or_default(), WHAT)?;
            return Ok(true);
        }
        self.records.resize(count * self.record_len, 0);
        self.input.fill(&mut self.records, WHAT)?;
        for record in self.records.chunks_exact(self.record_len) {
            let field = record.get(offset..).and_then(|rest| rest.get(..len));
            out.extend_from_slice(field.unwrap_or_default());
        }
        Ok(true)
    }

    /// Passes all elements of a tensor to `put` as little-endian bytes.
    pub fn blocks(
        &mut self,
        dtype: &DType,
        order: ByteOrder,
        put: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut block = Vec::new();
        loop {
            let at = self.input.position();
            if !self.next(&mut block)? {
                return Ok(());
            }
            settle(dtype, order == ByteOrder::Big, &mut block, at)?;
            put(&block)?;
            block.clear();
        }
    }

    /// Returns a function that reads the texts of a column one after the other. After the last one, it calls `finish`
    /// with the input at the end of the elements.
    pub fn texts<'a>(self, texts: Texts, finish: impl Fn(Input<B>) -> Result<()> + 'a) -> Next<'a>
    where
        B: 'a,
    {
        let (mut block, mut at, width) = (Vec::new(), 0usize, texts.byte_len());
        let mut gather = Some(self);
        Box::new(move || {
            if at == block.len()
                && let Some(gather) = &mut gather
            {
                block.clear();
                at = 0;
                gather.next(&mut block)?;
            }
            let text = block.get(at..).and_then(|rest| rest.get(..width));
            let text = texts.decode(text.ok_or_else(|| Error::eof("a text of an npy array"))?)?;
            at += width;
            if at == block.len()
                && let Some(done) = gather.take_if(|gather| gather.left == 0)
            {
                finish(done.input)?;
            }
            Ok(text)
        })
    }

    /// Returns the input. After all elements were read, it is at their end.
    pub fn into_input(self) -> Input<B> {
        self.input
    }
}

/// Reads an array that is a tensor. Its elements are next in `input`, which is returned at their end. Memory grows as
/// bytes arrive, except for the first `proven` bytes, which are known to come.
pub fn tensor<B: Bytes>(
    array: &Array,
    input: Input<B>,
    proven: usize,
) -> Result<(DynTensor, Input<B>)> {
    let at = input.position();
    let (column, meta, order) = array.tensor().map_err(|error| error.at(at))?;
    let mut elements = Gather::new(array.record_len, array.byte_len, column.clone(), input);
    macro_rules! read {
        ($($variant:ident $type:ty;)*) => {
            match meta.dtype {
                $(DType::$variant => {
                    typed::<$type, B>(&meta, order, &mut elements, array.byte_len, proven)
                })*
                ref other => Err(Error::unsupported(format!("npy has no dtype for {other}"))),
            }
        };
    }
    let tensor = read! {
        Bool bool;
        U8 u8;
        U16 u16;
        U32 u32;
        U64 u64;
        I8 i8;
        I16 i16;
        I32 i32;
        I64 i64;
        F16 f16;
        F32 f32;
        F64 f64;
        C64 Complex<f32>;
        C128 Complex<f64>;
    };
    Ok((tensor?, elements.into_input()))
}

fn typed<A: Numeric, B: Bytes>(
    meta: &TensorMeta,
    order: ByteOrder,
    elements: &mut Gather<B>,
    byte_len: usize,
    proven: usize,
) -> Result<DynTensor> {
    let count = byte_len / size_of::<A>();
    let proven = proven.max(STEP) / size_of::<A>();
    let mut values: Vec<A> = Vec::new();
    elements.blocks(&meta.dtype, order, &mut |step| {
        let (done, new) = (values.len(), step.len() / size_of::<A>());
        if values.capacity() - done < new {
            // The memory doubles, but never exceeds the length of the tensor.
            let grown = count.saturating_sub(done).min(done.max(proven)).max(new);
            values.try_reserve_exact(grown).map_err(|_| {
                let bytes = grown.saturating_mul(size_of::<A>());
                Error::limit(format!("out of memory: cannot allocate {bytes} bytes to read into"))
            })?;
        }
        A::gather(&mut values, step)
    })?;
    DynTensor::from_vec(&meta.shape, meta.order, values)
}
