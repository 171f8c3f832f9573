//! The types of tensors in GGUF files.

use tenarc::DType;
use tenarc::tensor::Shape;

/// A type of tensors in GGUF.
pub struct Kind {
    pub number: u32,
    /// The name of tenarc's dtype.
    pub name: &'static str,
    /// The number of elements in a block.
    pub block: u64,
    /// The length of a block in bytes.
    pub bytes: u64,
}

const fn kind(number: u32, name: &'static str, block: u64, bytes: u64) -> Kind {
    Kind { number, name, block, bytes }
}

/// The types of tensors in files, from `ggml_type` in `ggml.h` and the structs of blocks in `ggml-common.h`. A type
/// that is not quantised has the name of the same dtype in tenarc. A quantised type has its name in ggml, in lower
/// case. `Q8_1` and `Q8_K` are missing, because they are only used in memory.
const KINDS: [Kind; 32] = [
    kind(0, "f32", 1, 4),
    kind(1, "f16", 1, 2),
    kind(2, "q4_0", 32, 18),
    kind(3, "q4_1", 32, 20),
    kind(6, "q5_0", 32, 22),
    kind(7, "q5_1", 32, 24),
    kind(8, "q8_0", 32, 34),
    kind(10, "q2_k", 256, 84),
    kind(11, "q3_k", 256, 110),
    kind(12, "q4_k", 256, 144),
    kind(13, "q5_k", 256, 176),
    kind(14, "q6_k", 256, 210),
    kind(16, "iq2_xxs", 256, 66),
    kind(17, "iq2_xs", 256, 74),
    kind(18, "iq3_xxs", 256, 98),
    kind(19, "iq1_s", 256, 50),
    kind(20, "iq4_nl", 32, 18),
    kind(21, "iq3_s", 256, 110),
    kind(22, "iq2_s", 256, 82),
    kind(23, "iq4_xs", 256, 136),
    kind(24, "i8", 1, 1),
    kind(25, "i16", 1, 2),
    kind(26, "i32", 1, 4),
    kind(27, "i64", 1, 8),
    kind(28, "f64", 1, 8),
    kind(29, "iq1_m", 256, 56),
    kind(30, "bf16", 1, 2),
    kind(34, "tq1_0", 256, 54),
    kind(35, "tq2_0", 256, 66),
    kind(39, "mxfp4", 32, 17),
    kind(40, "nvfp4", 64, 36),
    kind(41, "q1_0", 128, 18),
];

impl Kind {
    pub fn of_number(number: u32) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.number == number)
    }

    /// The type of tensors with this dtype.
    pub fn of(dtype: &DType) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name == dtype.name())
    }

    pub fn dtype(&self) -> DType {
        DType::from_name(self.name)
    }

    /// Returns the length of a tensor in bytes. `None` if its rows do not consist of whole blocks, or if the tensor
    /// does not fit in memory.
    pub fn byte_len(&self, shape: &[usize]) -> Option<u64> {
        let row = shape.last().map_or(1, |len| *len as u64);
        if !row.is_multiple_of(self.block) {
            return None;
        }
        let count = Shape::from(shape).element_count()? as u64;
        (count / self.block).checked_mul(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_elements_have_the_size_of_their_dtype() {
        for kind in &KINDS {
            match kind.dtype().bits() {
                Some(bits) => assert_eq!((kind.block, kind.bytes * 8), (1, bits as u64)),
                None => assert!(kind.block > 1, "{}", kind.name),
            }
            assert_eq!(Kind::of(&kind.dtype()).map(|kind| kind.number), Some(kind.number));
            assert_eq!(Kind::of_number(kind.number).map(|kind| kind.name), Some(kind.name));
        }
    }

    #[test]
    fn rows_are_whole_blocks() {
        let kind = Kind::of_number(12).unwrap();
        assert_eq!(kind.byte_len(&[3, 512]), Some(6 * 144));
        assert_eq!(kind.byte_len(&[512, 3]), None);
        assert_eq!(kind.byte_len(&[0, 256]), Some(0));
        assert_eq!(kind.byte_len(&[usize::MAX, 256]), None);
        assert_eq!(kind.byte_len(&[0, usize::MAX - 1023, 256]), None);
        assert_eq!(Kind::of_number(0).unwrap().byte_len(&[]), Some(4));
    }
}
