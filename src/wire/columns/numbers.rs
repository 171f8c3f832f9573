//! Columns of numbers.

use std::borrow::Cow;
use std::ops::Range;

use super::ColumnData;
use crate::dtype::DType;
use crate::io::source::SourceBytes;
use crate::wire::head::{self, Head};
use crate::wire::number::Numeric;

/// Defines the type of numbers from the names of the types, which are those of the dtypes.
macro_rules! number_types {
    ($($variant:ident),*) => {
        /// The types that numbers in columns can have.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum NumberType {
            $($variant,)*
        }

        impl NumberType {
            pub fn of(dtype: &DType) -> Option<Self> {
                match dtype {
                    $(DType::$variant => Some(Self::$variant),)*
                    _ => None,
                }
            }

            #[inline]
            pub fn dtype(self) -> DType {
                match self {
                    $(Self::$variant => DType::$variant,)*
                }
            }
        }
    };
}

number_types!(U8, U16, U32, U64, I8, I16, I32, I64, F16, F32, F64);

impl NumberType {
    /// The size of a number in bytes.
    #[inline]
    pub fn size(self) -> usize {
        // None of the types is complex, so a number is one word.
        self.dtype().word()
    }

    pub fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32 | Self::F64)
    }

    pub fn is_unsigned(self) -> bool {
        matches!(self, Self::U8 | Self::U16 | Self::U32 | Self::U64)
    }

    pub fn is_signed(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }

    /// The least type that holds all numbers of both types (`SPEC.md`, section 7). `None` if there is none: for floats
    /// of two types, for floats and integers, and for u64 and a signed type.
    pub fn holding(self, other: Self) -> Option<Self> {
        if self == other {
            return Some(self);
        }
        if self.is_float() || other.is_float() {
            return None;
        }
        let (one, other_size) = (self.size(), other.size());
        if self.is_signed() == other.is_signed() {
            return Some(if one > other_size { self } else { other });
        }
        let (signed, unsigned) =
            if self.is_signed() { (one, other_size) } else { (other_size, one) };
        match signed.max(2 * unsigned) {
            2 => Some(Self::I16),
            4 => Some(Self::I32),
            8 => Some(Self::I64),
            _ => None,
        }
    }
}

/// The least dtype that holds all elements of both: see [`NumberType::holding`].
pub fn holding(one: &DType, other: &DType) -> Option<DType> {
    if one == other {
        return Some(one.clone());
    }
    NumberType::of(one)?.holding(NumberType::of(other)?).map(NumberType::dtype)
}

/// Little-endian numbers in another type, which holds them.
pub fn cast<'n>(numbers: Cow<'n, [u8]>, from: &DType, to: &DType) -> Cow<'n, [u8]> {
    if from == to {
        return numbers;
    }
    let is_signed = NumberType::of(from).is_some_and(NumberType::is_signed);
    let (size, wide) = (from.word(), to.word());
    let mut bytes = Vec::with_capacity(numbers.len() / size * wide);
    for number in numbers.chunks_exact(size) {
        let is_negative = is_signed && number.last().is_some_and(|byte| byte >> 7 == 1);
        let mut word = [if is_negative { 0xff } else { 0 }; 8];
        word.iter_mut().zip(number).for_each(|(place, byte)| *place = *byte);
        bytes.extend(word.iter().take(wide));
    }
    Cow::Owned(bytes)
}

/// Little-endian numbers.
pub struct ColumnNumbers<'de> {
    pub kind: NumberType,
    /// Whether a number is only converted to another type of floats if that keeps its value.
    pub exact: bool,
    data: ColumnData<'de>,
}

impl<'de> ColumnNumbers<'de> {
    pub fn new(kind: NumberType, data: ColumnData<'de>) -> Self {
        Self { kind, exact: false, data }
    }

    /// The bytes of a row. The length of the data was checked before, so they are there.
    #[inline]
    pub fn word<const N: usize>(&self, row: usize) -> [u8; N] {
        self.data.as_slice().as_chunks().0.get(row).copied().unwrap_or([0; N])
    }

    /// The bytes of all rows.
    pub fn bytes(&self) -> &[u8] {
        self.data.as_slice()
    }

    /// The bytes of several rows.
    pub fn run(&self, rows: Range<usize>) -> SourceBytes<'de, '_> {
        self.data.part(self.place_of_run(rows))
    }

    /// The bytes of several rows, if the numbers have this type. They are about to be copied, and so those of later
    /// rows will be.
    #[inline(never)]
    pub fn next_run(&self, kind: NumberType, rows: Range<usize>) -> Option<&[u8]> {
        if self.kind != kind {
            return None;
        }
        Some(self.data.next_part(self.place_of_run(rows)))
    }

    /// The range of the bytes of several rows in the data.
    #[inline]
    fn place_of_run(&self, rows: Range<usize>) -> Range<usize> {
        let size = self.kind.size();
        rows.start * size..rows.end * size
    }

    /// Like [`integer`](Self::integer), but not inlined: arguments and result fit in registers.
    #[inline(never)]
    pub fn small_integer(&self, row: usize) -> Option<i64> {
        self.integer(row)
    }

    /// The number of a row as an integer, unless it is a float or does not fit.
    #[inline(always)]
    pub fn integer(&self, row: usize) -> Option<i64> {
        Some(match self.kind {
            NumberType::U8 => u8::from_le_bytes(self.word(row)).into(),
            NumberType::U16 => u16::from_le_bytes(self.word(row)).into(),
            NumberType::U32 => u32::from_le_bytes(self.word(row)).into(),
            NumberType::U64 => return u64::from_le_bytes(self.word(row)).try_into().ok(),
            NumberType::I8 => i8::from_le_bytes(self.word(row)).into(),
            NumberType::I16 => i16::from_le_bytes(self.word(row)).into(),
            NumberType::I32 => i32::from_le_bytes(self.word(row)).into(),
            NumberType::I64 => i64::from_le_bytes(self.word(row)),
            NumberType::F16 | NumberType::F32 | NumberType::F64 => return None,
        })
    }

    /// The number of a row.
    pub fn number(&self, row: usize) -> Numeric {
        match self.kind {
            NumberType::F32 => Numeric::Single(f32::from_le_bytes(self.word(row))),
            NumberType::F64 => Numeric::Double(f64::from_le_bytes(self.word(row))),
            _ => match self.integer(row) {
                Some(value) => Numeric::Int {
                    negative: value < 0,
                    arg: if value < 0 { !value } else { value }.cast_unsigned().into(),
                },
                None if self.kind == NumberType::F16 => {
                    let arg = u16::from_le_bytes(self.word(row)).into();
                    let single = Numeric::from_head(Head { initial: head::HALF, arg });
                    single.unwrap_or(Numeric::Single(0.0))
                }
                None => {
                    let arg = u64::from_le_bytes(self.word(row)).into();
                    Numeric::Int { negative: false, arg }
                }
            },
        }
    }
}
