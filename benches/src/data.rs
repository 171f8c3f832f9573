//! Deterministic made-up data.

/// Marsaglia's xorshift64*: small, and good enough to make up data that looks like something.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number from 0 to `end`, exclusive.
    pub fn below(&mut self, end: u64) -> u64 {
        self.bits() % end
    }

    pub fn between(&mut self, start: u64, end: u64) -> u64 {
        start + self.below(end - start)
    }

    /// True `part` times in a hundred.
    pub fn chance(&mut self, part: u64) -> bool {
        self.below(100) < part
    }

    /// From 0 to 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// From -1 to 1.
    pub fn float(&mut self) -> f32 {
        (self.unit() * 2.0 - 1.0) as f32
    }

    pub fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.float()).collect()
    }

    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len() as u64) as usize]
    }

    /// As many values as a number from `start` to `end`, exclusive.
    pub fn many<T>(
        &mut self,
        start: u64,
        end: u64,
        mut make: impl FnMut(&mut Self) -> T,
    ) -> Vec<T> {
        (0..self.between(start, end)).map(|_| make(self)).collect()
    }
}
