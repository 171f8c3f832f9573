//! Element types: names, sizes and RFC 8746 tags.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The table of all known dtypes. All other lists of dtypes are generated from it:
/// `for_each_dtype!(make {..})` expands to `make! { {..} rows }` with these rows.
///
/// The dtypes with a Rust type come first, with that type after the colon. Their conversions to and from
/// numbers are in `elements/element.rs`. The dtypes without a Rust type follow. The braces contain:
///
/// - the name in documents;
/// - the number of bits that an element takes;
/// - the size of a word in bytes, which is the unit that byte order applies to;
/// - the tags of typed arrays (RFC 8746, section 2.1), of which the first one is written;
/// - for complex numbers, which are written as typed arrays of their parts, the dtype of the parts.
macro_rules! for_each_dtype {
    ($($make:ident)::+ { $($given:tt)* }) => {
        $($make)::+! {
            { $($given)* }
            typed {
                /// One byte, 0 or 1.
                Bool: bool { "bool", 8 bits, words of 1, [] }
                /// Unsigned, 8 bits.
                // 68 means u8 with clamped arithmetic. The bytes are the same.
                U8: u8 { "u8", 8 bits, words of 1, [64 little, 68 little] }
                /// Unsigned, 16 bits.
                U16: u16 { "u16", 16 bits, words of 2, [69 little, 65 big] }
                /// Unsigned, 32 bits.
                U32: u32 { "u32", 32 bits, words of 4, [70 little, 66 big] }
                /// Unsigned, 64 bits.
                U64: u64 { "u64", 64 bits, words of 8, [71 little, 67 big] }
                /// Two's complement, 8 bits.
                // 76, which would be the other byte order, is reserved.
                I8: i8 { "i8", 8 bits, words of 1, [72 little] }
                /// Two's complement, 16 bits.
                I16: i16 { "i16", 16 bits, words of 2, [77 little, 73 big] }
                /// Two's complement, 32 bits.
                I32: i32 { "i32", 32 bits, words of 4, [78 little, 74 big] }
                /// Two's complement, 64 bits.
                I64: i64 { "i64", 64 bits, words of 8, [79 little, 75 big] }
                /// IEEE 754 binary16.
                F16: half::f16 { "f16", 16 bits, words of 2, [84 little, 80 big] }
                /// The upper half of an IEEE 754 binary32.
                BF16: half::bf16 { "bf16", 16 bits, words of 2, [] }
                /// IEEE 754 binary32.
                F32: f32 { "f32", 32 bits, words of 4, [85 little, 81 big] }
                /// IEEE 754 binary64.
                F64: f64 { "f64", 64 bits, words of 8, [86 little, 82 big] }
                /// Two binary32: real, imaginary.
                C64: num_complex::Complex<f32> { "c64", 64 bits, words of 4, [], parts F32 }
                /// Two binary64: real, imaginary.
                C128: num_complex::Complex<f64> { "c128", 128 bits, words of 8, [], parts F64 }
            }
            untyped {
                /// IEEE 754 binary128; Rust has no stable type for it.
                F128 { "f128", 128 bits, words of 16, [87 little, 83 big] }
                /// FP8 with 5 exponent and 2 mantissa bits (OCP).
                F8E5M2 { "f8_e5m2", 8 bits, words of 1, [] }
                /// FP8 with 4 exponent and 3 mantissa bits, finite and NaN only (OCP; `float8_e4m3fn`).
                F8E4M3 { "f8_e4m3", 8 bits, words of 1, [] }
                /// FP8 power of two, the scale type of OCP microscaling.
                F8E8M0 { "f8_e8m0", 8 bits, words of 1, [] }
                /// FP8 E5M2 without negative zero and infinities.
                F8E5M2Fnuz { "f8_e5m2fnuz", 8 bits, words of 1, [] }
                /// FP8 E4M3 without negative zero.
                F8E4M3Fnuz { "f8_e4m3fnuz", 8 bits, words of 1, [] }
                /// FP6 with 2 exponent and 3 mantissa bits (OCP microscaling), packed.
                F6E2M3 { "f6_e2m3", 6 bits, words of 1, [] }
                /// FP6 with 3 exponent and 2 mantissa bits (OCP microscaling), packed.
                F6E3M2 { "f6_e3m2", 6 bits, words of 1, [] }
                /// FP4 with 2 exponent bits and 1 mantissa bit (OCP microscaling), packed.
                F4 { "f4", 4 bits, words of 1, [] }
            }
        }
    };
}

pub(crate) use for_each_dtype;

/// Calls `define!` with all rows, without their Rust types.
macro_rules! dtypes {
    (
        {}
        typed { $($(#[$typed_doc:meta])* $typed:ident: $type:ty { $($typed_row:tt)* })* }
        untyped { $($(#[$doc:meta])* $variant:ident { $($row:tt)* })* }
    ) => {
        define! {
            $($(#[$typed_doc])* $typed { $($typed_row)* })*
            $($(#[$doc])* $variant { $($row)* })*
        }
    };
}

macro_rules! define {
    ($(
        $(#[$doc:meta])*
        $variant:ident {
            $name:literal, $bits:literal bits, words of $word:literal,
            [$($tag:literal $order:ident),*] $(, parts $part:ident)?
        }
    )*) => {
        /// The type of a tensor's elements, by name.
        ///
        /// The set is open. A name that this version does not know becomes [`DType::Other`]. Tensors of such
        /// a dtype can be read and written unchanged with [`DynTensor`](crate::DynTensor).
        ///
        /// ```
        /// use tenarc::{DType, DynTensor, Tensor};
        ///
        /// let bytes = tenarc::to_vec(&Tensor(vec![0.5f32; 6]))?;
        /// let tensor: Tensor<DynTensor> = tenarc::from_slice(&bytes)?;
        /// assert_eq!(tensor.dtype(), &DType::F32);
        /// assert_eq!((tensor.dtype().name(), DType::from_name("f32")), ("f32", DType::F32));
        /// # Ok::<(), tenarc::Error>(())
        /// ```
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum DType {
            $($(#[$doc])* $variant,)*
            /// Any other name. The size of its elements is unknown, so a tensor of it may have any number
            /// of bytes.
            Other(OtherDType),
        }

        impl DType {
            /// The name, as written in documents.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$variant => $name,)*
                    Self::Other(name) => name.as_str(),
                }
            }

            /// The dtype with this name.
            pub fn from_name(name: &str) -> Self {
                match name {
                    $($name => Self::$variant,)*
                    other => Self::Other(OtherDType(other.into())),
                }
            }

            /// Returns the names of all dtypes that this version knows.
            ///
            /// ```
            /// assert!(tenarc::DType::names().any(|name| name == "bf16"));
            /// ```
            pub fn names() -> impl Iterator<Item = &'static str> {
                [$($name),*].into_iter()
            }

            /// The number of bits that an element takes. `None` for a dtype that this version does not
            /// know. FP6 and FP4 elements are packed: all elements of a tensor together must fill a whole
            /// number of bytes.
            ///
            /// ```
            /// use tenarc::DType;
            ///
            /// assert_eq!(DType::F32.bits(), Some(32));
            /// assert_eq!(DType::from_name("bf16").bits(), Some(16));
            /// assert_eq!(DType::from_name("x/unknown").bits(), None);
            /// # Ok::<(), tenarc::Error>(())
            /// ```
            #[inline]
            pub fn bits(&self) -> Option<usize> {
                match self {
                    $(Self::$variant => Some($bits),)*
                    Self::Other(_) => None,
                }
            }

            /// The size in bytes of the unit that byte order applies to. For complex numbers this is one
            /// part. 1 for a dtype that this version does not know. Converters of big-endian formats need it.
            #[inline]
            pub fn word(&self) -> usize {
                match self {
                    $(Self::$variant => $word,)*
                    Self::Other(_) => 1,
                }
            }

            /// The tag of a little-endian typed array of these elements (of their parts, for
            /// complex numbers).
            #[inline]
            pub(crate) fn typed_array_tag(&self) -> Option<u8> {
                match self.part().unwrap_or(self) {
                    $(Self::$variant => <[u8]>::first(&[$($tag),*]).copied(),)*
                    Self::Other(_) => None,
                }
            }

            /// The dtype of a tag for typed arrays, and whether its payload is big-endian (RFC 8746, section
            /// 2.1). `None` for other tags.
            pub(crate) fn from_typed_array_tag(tag: u64) -> Option<(Self, bool)> {
                Some(match tag {
                    $($($tag => (Self::$variant, order::$order),)*)*
                    _ => return None,
                })
            }

            /// The size in bytes of an element of a little-endian typed array. `None` for other tags, also for that
            /// of clamped numbers, which not every document may have.
            #[inline]
            pub(crate) fn size_of_little_endian(tag: u8) -> Option<usize> {
                const FIRST: u8 = 64;
                const CLAMPED: u8 = 68;
                const SIZES: [u8; 24] = {
                    let mut sizes = [0; 24];
                    $($(
                        if !order::$order && $tag != CLAMPED {
                            sizes[$tag - FIRST as usize] = $bits / 8;
                        }
                    )*)*
                    sizes
                };
                let size = *SIZES.get(usize::from(tag.wrapping_sub(FIRST)))?;
                (size > 0).then_some(size.into())
            }

            /// The dtype of the parts of complex numbers.
            #[inline]
            fn part(&self) -> Option<&'static Self> {
                match self {
                    $($(Self::$variant => Some(&Self::$part),)?)*
                    _ => None,
                }
            }

            /// The complex numbers whose parts are of this dtype.
            pub(crate) fn complex(&self) -> Option<Self> {
                match self {
                    $($(Self::$part => Some(Self::$variant),)?)*
                    _ => None,
                }
            }
        }

        #[cfg(test)]
        pub(crate) const KNOWN: &[DType] = &[$(DType::$variant,)*];
    };
}

/// The byte orders that the table names. The value says whether it is the big-endian one.
#[allow(non_upper_case_globals)]
mod order {
    pub const little: bool = false;
    pub const big: bool = true;
}

for_each_dtype!(dtypes {});

/// The name of a dtype that this version does not know. Only [`DType::from_name`] makes it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct OtherDType(Arc<str>);

impl OtherDType {
    /// The name in the document.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for OtherDType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl DType {
    /// Whether sequences of such numbers can be packed: real numbers of 8 to 64 bits that have a typed array.
    pub(crate) fn is_packed(&self) -> bool {
        self.typed_array_tag().is_some() && !self.is_complex() && *self != Self::F128
    }

    /// Whether the elements are complex numbers.
    #[inline]
    pub fn is_complex(&self) -> bool {
        self.part().is_some()
    }

    /// The number of bytes that an element takes, as numpy's `itemsize`. `None` for FP6 and FP4, whose elements are packed,
    /// and for a dtype that this version does not know.
    ///
    /// ```
    /// use tenarc::DType;
    ///
    /// assert_eq!((DType::C64.item_size(), DType::F4.item_size()), (Some(8), None));
    /// ```
    #[inline]
    pub fn item_size(&self) -> Option<usize> {
        self.byte_len(1)
    }

    /// The number of bytes that `count` elements take. `None` if that overflows, if it is not a whole
    /// number of bytes, or if this version does not know the dtype: see [`DType::bits`].
    #[inline]
    pub fn byte_len(&self, count: usize) -> Option<usize> {
        let bits = self.bits()?;
        if bits % 8 == 0 {
            return count.checked_mul(bits / 8);
        }
        let total = count.checked_mul(bits)?;
        (total % 8 == 0).then_some(total / 8)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The dtype with this [name](DType::name): the same as [`DType::from_name`].
impl FromStr for DType {
    type Err = Infallible;

    fn from_str(name: &str) -> Result<Self, Infallible> {
        Ok(Self::from_name(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_tags_come_back() {
        for dtype in KNOWN {
            assert_eq!(&DType::from_name(dtype.name()), dtype);
            assert_eq!(dtype.to_string().parse().as_ref(), Ok(dtype));
            if let (Some(tag), false) = (dtype.typed_array_tag(), dtype.is_complex()) {
                assert_eq!(DType::from_typed_array_tag(tag.into()), Some((dtype.clone(), false)));
            }
        }
        assert_eq!(DType::from_name("posit16").name(), "posit16");
        assert_eq!(DType::from_typed_array_tag(76), None);
        assert_eq!(DType::from_typed_array_tag(64 + 256), None);
        for tag in 0..=u8::MAX {
            let known = DType::from_typed_array_tag(tag.into());
            let little = known
                .filter(|(_, is_big)| !is_big && tag != 68)
                .and_then(|(dtype, _)| dtype.bits());
            assert_eq!(DType::size_of_little_endian(tag), little.map(|bits| bits / 8), "{tag}");
        }
    }

    #[test]
    fn sizes_do_not_wrap() {
        assert_eq!(DType::F32.byte_len(3), Some(12));
        assert_eq!(DType::F4.byte_len(4), Some(2));
        assert_eq!(DType::F4.byte_len(3), None);
        assert_eq!((DType::C128.item_size(), DType::F6E2M3.item_size()), (Some(16), None));
        assert_eq!(DType::F6E2M3.byte_len(4), Some(3));
        assert_eq!(DType::F64.byte_len(usize::MAX / 8 + 1), None);
        assert_eq!(DType::F4.byte_len(usize::MAX), None);
    }
}
