//! The list of the number types for which serde has a method and RFC 8746 has a typed array.

/// The table of these types. `for_each_number!(make {..})` expands to `make! { {..} rows }` with these rows,
/// and `for_each_number!(make)` to `make! { rows }`.
///
/// A row is the type's variant in [`DType`](crate::DType), the type in Rust, and the method of
/// [`Serializer`](serde::Serializer).
macro_rules! for_each_number {
    ($make:ident $($given:tt)?) => {
        $make! {
            $($given)?
            U8 u8, serialize_u8;
            U16 u16, serialize_u16;
            U32 u32, serialize_u32;
            U64 u64, serialize_u64;
            I8 i8, serialize_i8;
            I16 i16, serialize_i16;
            I32 i32, serialize_i32;
            I64 i64, serialize_i64;
            F32 f32, serialize_f32;
            F64 f64, serialize_f64;
        }
    };
}

pub(crate) use for_each_number;
