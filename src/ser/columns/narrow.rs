//! Finds the narrowest type for the integers of a column (`SPEC.md`, section 7).

use super::bytes::Bytes;
use crate::ser::kind::Kind;

macro_rules! narrowed {
    ($($wide:ident $type:ty: $($kind:ident $narrow:ty),*;)*) => {
        /// The numbers in the narrowest integer type that holds all of them. `None` if that is the type
        /// that they have, and for floats.
        pub fn narrowed(kind: Kind, bytes: &Bytes) -> Option<(Kind, Bytes)> {
            match kind {
                $(Kind::$wide => {
                    // All bits that are set in a number, and all that differ from a number's sign. The limits of
                    // the types are powers of two, so a type that holds these bits holds all numbers. Unlike
                    // minimum and maximum, this takes no comparisons, which x86-64 lacks for vectors of 64 bits.
                    let (mut set, mut unlike_sign) = (0, 0);
                    for piece in bytes.pieces() {
                        for word in piece.as_chunks().0 {
                            let number = <$type>::from_le_bytes(*word);
                            set |= number;
                            unlike_sign |= number ^ (number >> (<$type>::BITS - 1));
                        }
                    }
                    $(
                        let bits = if <$narrow>::MIN == 0 { set } else { unlike_sign };
                        if <$narrow>::try_from(bits).is_ok() {
                            return Some((Kind::$kind, converted(bytes, |word| {
                                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                                let number = <$type>::from_le_bytes(word) as $narrow;
                                number.to_le_bytes()
                            })));
                        }
                    )*
                    None
                })*
                _ => None,
            }
        }
    };
}

narrowed! {
    U16 u16: U8 u8;
    U32 u32: U8 u8, U16 u16;
    U64 u64: U8 u8, U16 u16, U32 u32;
    I16 i16: U8 u8, I8 i8;
    I32 i32: U8 u8, I8 i8, U16 u16, I16 i16;
    I64 i64: U8 u8, I8 i8, U16 u16, I16 i16, U32 u32, I32 i32;
}

/// The words that `convert` makes of the words in `bytes`.
pub fn converted<const N: usize, const M: usize>(
    bytes: &Bytes,
    convert: impl Fn([u8; N]) -> [u8; M],
) -> Bytes {
    let mut converted = Bytes::default();
    for piece in bytes.pieces() {
        let (words, _) = piece.as_chunks();
        converted.fill(words.len(), M, |part, before| {
            let words = words.get(before..).unwrap_or_default();
            for (place, word) in part.as_chunks_mut().0.iter_mut().zip(words) {
                *place = convert(*word);
            }
        });
    }
    converted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_type_holds_the_least_and_the_greatest_number() {
        macro_rules! check {
            ($($wide:ident $type:ty { $($least:expr, $most:expr => $kind:ident $narrow:ty;)* })*) => {$($(
                let numbers: [$type; 3] = [$least, 0, $most];
                let mut bytes = Bytes::default();
                for number in numbers {
                    bytes.push(number.to_le_bytes());
                }
                let found = narrowed(Kind::$wide, &bytes);
                let (kind, bytes) = found.unwrap_or((Kind::$wide, bytes));
                assert_eq!(kind, Kind::$kind, "{numbers:?}");
                let expected = numbers.iter().flat_map(|&number| {
                    <$narrow>::try_from(number).unwrap().to_le_bytes()
                });
                assert_eq!(*bytes.joined(), expected.collect::<Vec<u8>>());
            )*)*};
        }
        check! {
            U16 u16 { 0, 255 => U8 u8; 0, 256 => U16 u16; }
            U32 u32 { 0, 255 => U8 u8; 0, 256 => U16 u16; 0, 65_535 => U16 u16; 0, 65_536 => U32 u32; }
            U64 u64 {
                0, 255 => U8 u8; 0, 256 => U16 u16; 0, 65_536 => U32 u32; 0, 0xffff_ffff => U32 u32;
                0, 0x1_0000_0000 => U64 u64;
            }
            I16 i16 {
                0, 255 => U8 u8; -1, 127 => I8 i8; -128, 0 => I8 i8; -129, 0 => I16 i16; -1, 128 => I16 i16;
                0, 256 => I16 i16;
            }
            I32 i32 {
                -128, 127 => I8 i8; 0, 128 => U8 u8; -1, 128 => I16 i16; 0, 65_535 => U16 u16;
                -32_768, 32_767 => I16 i16; -32_769, 0 => I32 i32; -1, 32_768 => I32 i32; 0, 65_536 => I32 i32;
            }
            I64 i64 {
                -128, 127 => I8 i8; 0, 65_535 => U16 u16; -1, 65_535 => I32 i32; 0, 0xffff_ffff => U32 u32;
                0, 0x1_0000_0000 => I64 i64; i64::from(i32::MIN), i64::from(i32::MAX) => I32 i32;
                i64::from(i32::MIN) - 1, 0 => I64 i64; -1, 0x8000_0000 => I64 i64; i64::MIN, i64::MAX => I64 i64;
            }
        }
    }
}
