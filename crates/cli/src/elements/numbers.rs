//! Converts elements that arrive in blocks to numbers.

use tenarc::DType;

use crate::failure::Result;

/// A function that calls its argument with blocks of elements, the same ones each time.
pub type Blocks<'a> = dyn FnMut(&mut dyn FnMut(&[u8])) -> Result<()> + 'a;

/// The number of elements processed at a time: few enough to stay in the first-level cache.
const STEP: usize = 1024;

/// Cuts blocks of any size into whole elements, and converts them to `f64`.
pub struct Numbers {
    dtype: DType,
    size: usize,
    carried: Vec<u8>,
    numbers: Vec<f64>,
}

impl Numbers {
    pub fn new(dtype: &DType) -> Self {
        let size = super::size(dtype).unwrap_or(1);
        Self { dtype: dtype.clone(), size, carried: Vec::new(), numbers: Vec::new() }
    }

    pub fn dtype(&self) -> &DType {
        &self.dtype
    }

    /// Returns the number of bytes of an element.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Calls `each` with the whole elements of a block, some at a time: their bytes, and them as numbers. A complex element
    /// is two numbers.
    pub fn block(&mut self, mut block: &[u8], each: &mut dyn FnMut(&[u8], &[f64])) {
        if !self.carried.is_empty() {
            let missing = (self.size - self.carried.len()).min(block.len());
            let (start, rest) = block.split_at(missing);
            self.carried.extend_from_slice(start);
            block = rest;
            if self.carried.len() < self.size {
                return;
            }
            let first = std::mem::take(&mut self.carried);
            self.step(&first, each);
        }
        let whole = block.len() - block.len() % self.size;
        let (whole, rest) = block.split_at(whole);
        for step in whole.chunks(STEP * self.size) {
            self.step(step, each);
        }
        self.carried.extend_from_slice(rest);
    }

    fn step(&mut self, bytes: &[u8], each: &mut dyn FnMut(&[u8], &[f64])) {
        self.numbers.clear();
        super::widen(&self.dtype, bytes, &mut self.numbers);
        each(bytes, &self.numbers);
    }
}
