//! Columns of numbers.

use std::ops::Range;

use super::Data;
use crate::dtype::DType;
use crate::io::source::Bytes;
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
}

/// Little-endian numbers at equal distances.
pub struct Numbers<'de> {
    pub kind: NumberType,
    data: Data<'de>,
    /// The offset of the number of row 0.
    start: usize,
    /// The distance from row to row in bytes.
    stride: usize,
}

impl<'de> Numbers<'de> {
    /// Numbers without gaps.
    pub fn new(kind: NumberType, data: Data<'de>) -> Self {
        Self { kind, data, start: 0, stride: kind.size() }
    }

    /// Numbers of interleaved rows, which are `stride` bytes long.
    pub fn interleaved(kind: NumberType, data: Data<'de>, start: usize, stride: usize) -> Self {
        Self { kind, data, start, stride }
    }

    /// The bytes of a row. The length of the data was checked before, so they are there.
    #[inline(always)]
    pub fn word<const N: usize>(&self, row: usize) -> [u8; N] {
        let start = self.start + row * self.stride;
        let bytes = self.data.as_slice().get(start..).and_then(<[u8]>::first_chunk);
        bytes.copied().unwrap_or([0; N])
    }

    /// The bytes of several rows, if there is nothing in between.
    pub fn run(&self, rows: Range<usize>) -> Option<Bytes<'de, '_>> {
        Some(self.data.part(self.place_of_run(rows)?))
    }

    /// The bytes of several rows, if the numbers have this type and there is nothing in between. They are about to be
    /// copied, and so those of later rows will be.
    #[inline(never)]
    pub fn next_run(&self, kind: NumberType, rows: Range<usize>) -> Option<&[u8]> {
        if self.kind != kind {
            return None;
        }
        Some(self.data.next_part(self.place_of_run(rows)?))
    }

    /// The range of the bytes of several rows in the data, if there is nothing in between.
    #[inline(always)]
    fn place_of_run(&self, rows: Range<usize>) -> Option<Range<usize>> {
        let size = self.kind.size();
        let place = |row| self.start + row * size;
        (self.stride == size).then(|| place(rows.start)..place(rows.end))
    }

    /// The distance from row to row in bytes.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// The offset of the number of row 0 in the data.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Whether the numbers of both columns are in the same data.
    pub fn has_data_of(&self, other: &Self) -> bool {
        std::ptr::eq(self.data.as_slice(), other.data.as_slice())
    }

    /// `len` bytes of the data.
    pub fn data_at(&self, start: usize, len: usize) -> Bytes<'de, '_> {
        self.data.part(start..start + len)
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
