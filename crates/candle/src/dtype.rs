//! The dtypes that candle and tenarc have in common.

/// The table of all common dtypes: `for_each_dtype!(make {..})` expands to `make! { {..} rows }`. A row has the name
/// that both enums use, and the type of the elements in candle's storage.
macro_rules! for_each_dtype {
    ($make:ident { $($given:tt)* }) => {
        $make! {
            { $($given)* }
            U8: u8,
            U32: u32,
            I16: i16,
            I32: i32,
            I64: i64,
            F16: half::f16,
            BF16: half::bf16,
            F32: f32,
            F64: f64,
        }
    };
}

pub(crate) use for_each_dtype;

macro_rules! conversions {
    ({} $($name:ident: $type:ty,)*) => {
        /// candle's dtype for a tenarc dtype. `None` if candle has none with the same elements.
        ///
        /// ```
        /// assert_eq!(tenarc_candle::to_candle(&tenarc::DType::BF16), Some(candle_core::DType::BF16));
        /// assert_eq!(tenarc_candle::to_candle(&tenarc::DType::U64), None);
        /// ```
        pub fn to_candle(dtype: &tenarc::DType) -> Option<candle_core::DType> {
            Some(match dtype {
                $(tenarc::DType::$name => candle_core::DType::$name,)*
                tenarc::DType::F8E4M3 => candle_core::DType::F8E4M3,
                tenarc::DType::F8E8M0 => candle_core::DType::F8E8M0,
                _ => return None,
            })
        }

        /// tenarc's dtype for one of candle. `None` for candle's floats of 4 and 6 bits: candle has no operations for
        /// them, and its tensors do not say how the elements are packed.
        ///
        /// ```
        /// assert_eq!(tenarc_candle::from_candle(candle_core::DType::F8E4M3), Some(tenarc::DType::F8E4M3));
        /// assert_eq!(tenarc_candle::from_candle(candle_core::DType::F4), None);
        /// ```
        pub fn from_candle(dtype: candle_core::DType) -> Option<tenarc::DType> {
            Some(match dtype {
                $(candle_core::DType::$name => tenarc::DType::$name,)*
                candle_core::DType::F8E4M3 => tenarc::DType::F8E4M3,
                candle_core::DType::F8E8M0 => tenarc::DType::F8E8M0,
                _ => return None,
            })
        }
    };
}

for_each_dtype!(conversions {});
