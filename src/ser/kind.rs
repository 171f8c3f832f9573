//! Primitive numbers and their types.

use std::any::TypeId;

use super::columns::Bytes;
use crate::dtype::DType;
use crate::serde_model::for_each_number;
use crate::wire::head;
use crate::wire::items::{Plain, signed};

/// Sequences of floats with fewer bytes than this are not packed.
const MIN_FLOAT_BYTES: usize = 32;
/// Sequences of integers with fewer bytes than this are not packed, except those of `u8`. The limit is higher than for
/// floats because small integers take only one byte as plain items. Sequences of `u8` of any length are packed, because
/// readers may borrow them: that must not depend on the length.
const MIN_INT_BYTES: usize = 1024;

macro_rules! numbers {
    ($($kind:ident $type:ty, $method:ident;)*) => {
        /// A primitive number type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind {
            $($kind,)*
        }

        /// A primitive number, with the type that serde was called with.
        #[derive(Clone, Copy, Debug)]
        pub enum Primitive {
            $($kind($type),)*
        }

        impl Primitive {
            #[inline]
            pub fn kind(self) -> Kind {
                match self {
                    $(Self::$kind(_) => Kind::$kind,)*
                }
            }
        }

        impl Primitive {
            /// The little-endian bytes of the number, with zeros behind them.
            #[inline]
            fn word(self) -> [u8; 8] {
                let mut word = [0; 8];
                match self {
                    $(Self::$kind(value) => word[..size_of::<$type>()].copy_from_slice(&value.to_le_bytes()),)*
                }
                word
            }

            /// The little-endian bytes of the number, if it has this type. `N` is the size of the type.
            #[inline]
            pub fn bytes<const N: usize>(self, kind: Kind) -> Option<[u8; N]> {
                if self.kind() != kind {
                    return None;
                }
                self.word().first_chunk().copied()
            }
        }

        impl Primitive {
            /// Appends the number to a column of numbers of its type.
            // Always: 20 % of encoding a mesh as columns.
            #[inline(always)]
            pub fn append(self, column: &mut Bytes) {
                match self {
                    $(Self::$kind(value) => column.push(value.to_le_bytes()),)*
                }
            }
        }

        impl Kind {
            pub fn dtype(self) -> DType {
                match self {
                    $(Self::$kind => DType::$kind,)*
                }
            }

            pub fn of(dtype: &DType) -> Option<Self> {
                match dtype {
                    $(DType::$kind => Some(Self::$kind),)*
                    _ => None,
                }
            }

            #[inline]
            pub fn size(self) -> usize {
                match self {
                    $(Self::$kind => size_of::<$type>(),)*
                }
            }
        }

        /// Whether `T` is a primitive number or a reference to one. Then serializing it only calls the
        /// serializer's method for that number. The compiler knows the answer.
        #[inline]
        pub fn is_number<T: ?Sized>() -> bool {
            let id = typeid::of::<T>();
            $(id == TypeId::of::<$type>() || id == TypeId::of::<&'static $type>())||*
        }
    };
}

for_each_number!(numbers);

impl Primitive {
    /// The number as it is written outside of a typed array.
    #[inline]
    pub fn plain(self) -> Plain {
        let (major, arg) = match self {
            Self::U8(value) => (head::UNSIGNED, value.into()),
            Self::U16(value) => (head::UNSIGNED, value.into()),
            Self::U32(value) => (head::UNSIGNED, value.into()),
            Self::U64(value) => (head::UNSIGNED, value),
            Self::I8(value) => signed(value.into()),
            Self::I16(value) => signed(value.into()),
            Self::I32(value) => signed(value.into()),
            Self::I64(value) => signed(value),
            Self::F32(value) => return Plain::Single(value.to_bits()),
            Self::F64(value) => return Plain::Double(value.to_bits()),
        };
        Plain::Head(major, arg)
    }
}

impl Kind {
    #[inline]
    pub fn worth_packing(self, len: usize) -> bool {
        let least = match self {
            Self::U8 => 1,
            Self::F32 | Self::F64 => MIN_FLOAT_BYTES,
            _ => MIN_INT_BYTES,
        };
        len.saturating_mul(self.size()) >= least
    }
}
