//! The dtypes of safetensors 0.8.

use tenarc::DType;

/// Every dtype and its name in headers. Their order is that of the dtype enumeration in the reference implementation,
/// which sorts the tensors of a file by it, last dtype first.
const DTYPES: [(DType, &str); 22] = [
    (DType::Bool, "BOOL"),
    (DType::F4, "F4"),
    (DType::F6E2M3, "F6_E2M3"),
    (DType::F6E3M2, "F6_E3M2"),
    (DType::U8, "U8"),
    (DType::I8, "I8"),
    (DType::F8E5M2, "F8_E5M2"),
    (DType::F8E4M3, "F8_E4M3"),
    (DType::F8E8M0, "F8_E8M0"),
    (DType::F8E4M3Fnuz, "F8_E4M3FNUZ"),
    (DType::F8E5M2Fnuz, "F8_E5M2FNUZ"),
    (DType::I16, "I16"),
    (DType::U16, "U16"),
    (DType::F16, "F16"),
    (DType::BF16, "BF16"),
    (DType::I32, "I32"),
    (DType::U32, "U32"),
    (DType::F32, "F32"),
    (DType::C64, "C64"),
    (DType::F64, "F64"),
    (DType::I64, "I64"),
    (DType::U64, "U64"),
];

/// Returns the dtype with this name in headers.
pub fn from_name(name: &str) -> Option<DType> {
    DTYPES.iter().find(|(_, known)| *known == name).map(|(dtype, _)| dtype.clone())
}

/// Returns the rank of a dtype, by which tensors are sorted, and its name in headers.
pub fn to_name(dtype: &DType) -> Option<(usize, &'static str)> {
    let rank = DTYPES.iter().position(|(known, _)| known == dtype)?;
    DTYPES.get(rank).map(|(_, name)| (rank, *name))
}
