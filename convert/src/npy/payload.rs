//! The elements of an npy file, in steps that stay in cache.

use half::f16;
use num_complex::Complex;
use tenarc::{DType, DynTensor, Error, Result};

use super::header::Header;
use super::input::{Bytes, Input};
use crate::elements::Numeric;
use crate::support::swap_words;

/// Bytes read at once, a multiple of every element's size; and memory that is asked for at once on
/// a mere claim.
pub const STEP: usize = 256 << 10;

/// Hands over all elements as little-endian bytes, a whole number of them at a time.
pub fn blocks<B: Bytes>(
    header: &Header,
    input: &mut Input<B>,
    put: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut left = header.byte_len;
    let mut block = vec![0; left.min(STEP)];
    while left > 0 {
        let len = left.min(STEP);
        let step = block.get_mut(..len).unwrap_or_default();
        let at = input.position();
        input.fill(step, "an npy array")?;
        if header.big_endian {
            swap_words(step, header.meta.dtype.word());
        }
        if header.meta.dtype == DType::Bool
            && let Some(wrong) = step.iter().position(|&byte| byte > 1)
        {
            let byte = step.get(wrong).copied().unwrap_or_default();
            return Err(Error::data(format!("byte {byte} is no bool")).at(at + wrong as u64));
        }
        put(step)?;
        left -= len;
    }
    Ok(())
}

/// Reads the elements. Memory follows the bytes received, unless so many as `proven` are sure to come.
pub fn tensor<B: Bytes>(header: &Header, input: &mut Input<B>, proven: usize) -> Result<DynTensor> {
    macro_rules! read {
        ($($variant:ident $type:ty;)*) => {
            match header.meta.dtype {
                $(DType::$variant => typed::<$type, B>(header, input, proven),)*
                ref other => Err(Error::data(format!("npy has no dtype for {other}"))),
            }
        };
    }
    read! {
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
    }
}

fn typed<A: Numeric, B: Bytes>(
    header: &Header,
    input: &mut Input<B>,
    proven: usize,
) -> Result<DynTensor> {
    let count = header.byte_len / size_of::<A>();
    let proven = proven.max(STEP) / size_of::<A>();
    let mut values: Vec<A> = Vec::new();
    blocks(header, input, &mut |step| {
        let (done, new) = (values.len(), step.len() / size_of::<A>());
        if values.capacity() - done < new {
            // Doubling, but never beyond what there will be.
            let grown = count.saturating_sub(done).min(done.max(proven)).max(new);
            values.try_reserve_exact(grown).map_err(|_| {
                let bytes = grown.saturating_mul(size_of::<A>());
                Error::limit(format!("out of memory: {bytes} more bytes to read"))
            })?;
        }
        A::gather(&mut values, step)
    })?;
    DynTensor::from_vec(&header.meta.shape, header.meta.order, values)
}
