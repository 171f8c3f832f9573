//! The names of Python's functions and types that are known. Nothing is imported.

use std::sync::Arc;

use tenarc::DType;

use super::storage::Kind;

/// A function or a type of Python.
#[derive(Clone, Debug)]
pub struct Global {
    /// The module and the name in it, joined by a dot.
    pub name: Arc<str>,
    pub meaning: Meaning,
}

impl Global {
    /// Formats the name for a message.
    pub fn shown(&self) -> String {
        format!("`{}`", self.name.escape_debug())
    }
}

/// What is known about a function or a type.
#[derive(Clone, Debug)]
pub enum Meaning {
    OrderedDict,
    DefaultDict,
    Counter,
    /// A `set`, `frozenset` or `deque`.
    List,
    /// `_codecs.encode`. Old protocols write a call of it for bytes.
    Encode,
    /// `bytes`. Old protocols write a call of it for empty bytes.
    Bytes,
    /// `_reconstructor`, which makes an object of a class.
    Reconstructor,
    /// A function whose one argument is kept in place of its result.
    Argument,
    /// A function of a value and the name of its type. The value is kept in place of its result.
    Tagged,
    /// A function that makes a tensor of a storage.
    Tensor(Rebuild),
    /// `_rebuild_parameter`, with or without attributes.
    Parameter,
    /// A function that makes a sparse tensor.
    Sparse,
    /// A function that makes a quantised tensor.
    Quantised,
    /// A function that makes a tensor of a class of its own, or with attributes.
    FromType,
    /// The class of a storage.
    Storage(Kind),
    /// A dtype of torch.
    DType(DType),
    /// The function that makes a numpy array without elements. The array gets them as its state.
    NumpyArray,
    /// The function that makes a numpy array of a buffer.
    NumpyBuffer,
    /// The function that makes a numpy scalar.
    NumpyScalar,
    Unknown,
}

/// The versions of torch's function that makes a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rebuild {
    V1,
    V2,
    /// The tensor has a dtype, and its storage has none.
    V3,
}

/// The dtypes that torch has too, torch's names for them, and the names of their storages. The last is empty if torch
/// has no such storage.
const DTYPES: [(DType, &str, &str); 20] = [
    (DType::Bool, "bool", "BoolStorage"),
    (DType::U8, "uint8", "ByteStorage"),
    (DType::U16, "uint16", ""),
    (DType::U32, "uint32", ""),
    (DType::U64, "uint64", ""),
    (DType::I8, "int8", "CharStorage"),
    (DType::I16, "int16", "ShortStorage"),
    (DType::I32, "int32", "IntStorage"),
    (DType::I64, "int64", "LongStorage"),
    (DType::F16, "float16", "HalfStorage"),
    (DType::BF16, "bfloat16", "BFloat16Storage"),
    (DType::F32, "float32", "FloatStorage"),
    (DType::F64, "float64", "DoubleStorage"),
    (DType::C64, "complex64", "ComplexFloatStorage"),
    (DType::C128, "complex128", "ComplexDoubleStorage"),
    (DType::F8E5M2, "float8_e5m2", ""),
    (DType::F8E4M3, "float8_e4m3fn", ""),
    (DType::F8E5M2Fnuz, "float8_e5m2fnuz", ""),
    (DType::F8E4M3Fnuz, "float8_e4m3fnuz", ""),
    (DType::F8E8M0, "float8_e8m0fnu", ""),
];

/// torch's name of a dtype, and the name of its storages, which is empty if it has none. `None` if torch lacks the dtype.
pub fn dtype_names(dtype: &DType) -> Option<(&'static str, &'static str)> {
    let found = DTYPES.iter().find(|(known, ..)| known == dtype);
    found.map(|(_, name, storage)| (*name, *storage))
}

/// Returns the function or type `name` of `module`.
pub fn find(module: &str, name: &str) -> Global {
    let meaning = match (module, name) {
        ("collections", "OrderedDict") => Meaning::OrderedDict,
        ("collections", "defaultdict") => Meaning::DefaultDict,
        ("collections", "Counter") => Meaning::Counter,
        ("collections", "deque") => Meaning::List,
        ("builtins" | "__builtin__", "set" | "frozenset") => Meaning::List,
        ("builtins" | "__builtin__", "bytes") => Meaning::Bytes,
        ("_codecs", "encode") => Meaning::Encode,
        ("copyreg" | "copy_reg", "_reconstructor") => Meaning::Reconstructor,
        ("torch", "Size" | "device") => Meaning::Argument,
        ("torch.serialization", "_get_layout") => Meaning::Argument,
        (
            "torch.jit._pickle",
            "build_intlist" | "build_tensorlist" | "build_doublelist" | "build_boollist",
        ) => Meaning::Argument,
        ("torch.jit._pickle", "restore_type_tag") => Meaning::Tagged,
        ("torch._utils", "_rebuild_tensor") => Meaning::Tensor(Rebuild::V1),
        ("torch._utils", "_rebuild_tensor_v2") => Meaning::Tensor(Rebuild::V2),
        ("torch._utils", "_rebuild_tensor_v3") => Meaning::Tensor(Rebuild::V3),
        ("torch._utils", "_rebuild_parameter" | "_rebuild_parameter_with_state") => {
            Meaning::Parameter
        }
        ("torch._utils", "_rebuild_sparse_tensor" | "_rebuild_sparse_csr_tensor") => {
            Meaning::Sparse
        }
        ("torch._utils", "_rebuild_qtensor") => Meaning::Quantised,
        ("torch._tensor", "_rebuild_from_type" | "_rebuild_from_type_v2") => Meaning::FromType,
        ("numpy.core.multiarray" | "numpy._core.multiarray", "_reconstruct") => Meaning::NumpyArray,
        ("numpy.core.multiarray" | "numpy._core.multiarray", "scalar") => Meaning::NumpyScalar,
        ("numpy.core.numeric" | "numpy._core.numeric", "_frombuffer") => Meaning::NumpyBuffer,
        ("torch.storage" | "torch", "UntypedStorage") => Meaning::Storage(Kind::Untyped),
        ("torch" | "torch.cuda", name) => {
            of_torch(name).or_else(|| quantised(name)).unwrap_or(Meaning::Unknown)
        }
        _ => Meaning::Unknown,
    };
    Global { name: format!("{module}.{name}").into(), meaning }
}

fn of_torch(name: &str) -> Option<Meaning> {
    DTYPES.iter().find_map(|(dtype, own, storage)| match name {
        _ if name == *own => Some(Meaning::DType(dtype.clone())),
        _ if name == *storage && !name.is_empty() => {
            Some(Meaning::Storage(Kind::Typed(dtype.clone())))
        }
        _ => None,
    })
}

/// Returns the meaning of the class of a storage of quantised integers.
fn quantised(name: &str) -> Option<Meaning> {
    let dtype = match name {
        "QInt8Storage" => DType::I8,
        "QUInt8Storage" => DType::U8,
        "QInt32Storage" => DType::I32,
        _ => return None,
    };
    Some(Meaning::Storage(Kind::Typed(dtype)))
}
