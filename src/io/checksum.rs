//! XXH3 hashes: 64 bits for the checksums in files, and 128 bits with a random seed to find out whether
//! two contents are the same.

use std::hash::Hasher as _;

use twox_hash::xxhash3_64::{DEFAULT_SECRET_LENGTH, RawHasher, SecretBuffer};
use twox_hash::{XxHash3_64, XxHash3_128};

/// The length of a stored hash in bytes. Hashes are stored in their canonical form, big-endian.
pub const LEN: usize = 8;

/// The number of bytes that are read and hashed at once. They fit in the cache.
pub const STEP: usize = 256 << 10;

/// The number of bytes that are hashed and then written at once. File systems handle a few long writes faster
/// than many short ones, and this amount still fits in the last-level cache.
pub const WRITE_STEP: usize = 4 << 20;

/// XXH3-64 of `bytes` with a seed. The seed makes the hash depend on something else as well, such as
/// the position of the bytes or another hash.
pub fn of(bytes: &[u8], seed: u64) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, bytes)
}

/// XXH3-64 with a seed, of the concatenation of the pieces.
pub fn of_pieces(pieces: &[&[u8]], seed: u64) -> u64 {
    let mut hasher = XxHash3_64::with_seed(seed);
    for piece in pieces {
        hasher.write(piece);
    }
    hasher.finish()
}

/// XXH3-64 without a seed, of data that arrives in pieces. It does not allocate.
pub struct Hasher(RawHasher<&'static [u8; DEFAULT_SECRET_LENGTH]>);

impl Hasher {
    pub fn new() -> Self {
        Self(RawHasher::new(SecretBuffer::<&'static [u8; DEFAULT_SECRET_LENGTH]>::default()))
    }

    pub fn update(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    pub fn finish(&self) -> u64 {
        self.0.finish()
    }
}

/// A 128-bit hash that identifies contents: with a random seed within this process, without a seed in digests.
pub struct Identity(XxHash3_128);

impl Identity {
    /// With a random seed, nobody can prepare two contents with the same hash.
    pub fn new(seed: u64) -> Self {
        Self(XxHash3_128::with_seed(seed))
    }

    pub fn update(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    pub fn finish(&self) -> u128 {
        self.0.finish_128()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the reference implementation (xxHash 0.8, `XXH3_64bits` and `_withSeed`).
    #[test]
    fn is_xxh3() {
        assert_eq!(of(b"", 0), 0x2d06_8005_38d3_94c2);
        assert_eq!(Hasher::new().finish(), 0x2d06_8005_38d3_94c2);
        let bytes: Vec<u8> =
            (0..=255).cycle().take(if cfg!(miri) { 2000 } else { 100_000 }).collect();
        let mut hasher = Hasher::new();
        bytes.chunks(777).for_each(|piece| hasher.update(piece));
        assert_eq!(hasher.finish(), of(&bytes, 0));
        let (head, tail) = bytes.split_at(300);
        assert_eq!(of_pieces(&[head, tail], 7), of(&bytes, 7));
        assert_ne!(of(&bytes, 7), of(&bytes, 8));
    }
}
