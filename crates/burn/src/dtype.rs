//! The dtypes that burn and tenarc have in common, and elements as burn's bytes.

use burn_core::tensor::{BoolStore, DType};
use burn_store::burn_pack::Bytes;
use half::{bf16, f16};
use tenarc::tensor::{Element, FromTensor, RawTensor};
use tenarc::{Error, Result};

/// The table of all common dtypes with elements of numbers: the name in tenarc, that in burn, and the type.
macro_rules! for_each_dtype {
    ($make:ident) => {
        $make! {
            U8: u8, U16: u16, U32: u32, U64: u64, I8: i8, I16: i16, I32: i32, I64: i64,
            F16: f16, BF16: bf16, F32: f32, F64: f64,
        }
    };
}

macro_rules! conversions {
    ($($name:ident: $type:ty,)*) => {
        /// tenarc's dtype for one of burn. `None` for quantized tensors, and for bools of 32 bits.
        ///
        /// `Flex32` is stored as `f32`, and bools of one byte as `bool`.
        pub fn from_burn(dtype: DType) -> Option<tenarc::DType> {
            Some(match dtype {
                $(DType::$name => tenarc::DType::$name,)*
                DType::Flex32 => tenarc::DType::F32,
                DType::Bool(BoolStore::Native | BoolStore::U8) => tenarc::DType::Bool,
                DType::Bool(BoolStore::U32) | DType::QFloat(_) => return None,
            })
        }

        /// burn's dtype for one of tenarc. `None` if burn has none with the same elements.
        pub fn to_burn(dtype: &tenarc::DType) -> Option<DType> {
            Some(match dtype {
                $(tenarc::DType::$name => DType::$name,)*
                tenarc::DType::Bool => DType::Bool(BoolStore::Native),
                _ => return None,
            })
        }

        impl FromTensor<'_> for Elements {
            fn from_tensor(tensor: RawTensor<'_, '_>) -> Result<Self> {
                let tensor = tensor.into_row_major()?;
                match &tensor.meta().dtype {
                    $(tenarc::DType::$name => elements::<$type>(tensor),)*
                    tenarc::DType::Bool => elements::<bool>(tensor),
                    other => Err(Error::unsupported(format!("burn has no tensors of {other}"))),
                }
            }
        }
    };
}

/// The elements of a tensor in row-major order, in the memory that they were read into.
pub struct Elements(pub Bytes);

fn elements<A: Element + bytemuck::NoUninit>(tensor: RawTensor<'_, '_>) -> Result<Elements> {
    tensor.into_vec::<A>().map(|elements| Elements(Bytes::from_elems(elements)))
}

for_each_dtype!(conversions);
