//! The few names of Python that are understood. None of them is looked up anywhere.

use std::sync::Arc;

use tenarc::{DType, Error, Result};

use super::object::Kind;

/// What a name stands for.
#[derive(Clone, Debug)]
pub enum Global {
    OrderedDict,
    /// `torch.Size`, a tuple.
    Size,
    /// `_codecs.encode`, as which old protocols write bytes.
    Encode,
    /// `bytes`, as which old protocols write empty ones.
    Bytes,
    Tensor(Rebuild),
    /// `_rebuild_parameter`, with or without attributes.
    Parameter,
    Storage(Kind),
    DType(DType),
    /// Its name.
    Unknown(Arc<str>),
}

/// The versions of torch's function that makes a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rebuild {
    V1,
    V2,
    /// With a dtype of its own, and a storage without one.
    V3,
}

/// torch's names of the dtypes that both have, and of their storages, if there are any.
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

/// Modules whose functions have no place in a file of tensors: one that names them is an attack. Nothing
/// would be run of others either; but this one should be thrown away, not converted.
const ATTACKS: [&str; 31] = [
    "os",
    "posix",
    "nt",
    "subprocess",
    "sys",
    "pty",
    "socket",
    "shutil",
    "runpy",
    "ctypes",
    "_ctypes",
    "code",
    "codeop",
    "importlib",
    "pickle",
    "_pickle",
    "marshal",
    "types",
    "operator",
    "_operator",
    "commands",
    "multiprocessing",
    "asyncio",
    "threading",
    "webbrowser",
    "platform",
    "pdb",
    "bdb",
    "timeit",
    "cProfile",
    "pip",
];

/// Functions of Python itself that run code, or lead to what does.
const BUILTINS: [&str; 14] = [
    "eval",
    "exec",
    "execfile",
    "compile",
    "open",
    "__import__",
    "getattr",
    "setattr",
    "delattr",
    "globals",
    "locals",
    "vars",
    "input",
    "breakpoint",
];

/// What `name` of `module` stands for.
pub fn find(module: &str, name: &str) -> Result<Global> {
    let known = match (module, name) {
        ("collections", "OrderedDict") => Some(Global::OrderedDict),
        ("torch", "Size") => Some(Global::Size),
        ("_codecs", "encode") => Some(Global::Encode),
        ("builtins" | "__builtin__", "bytes") => Some(Global::Bytes),
        ("torch._utils", "_rebuild_tensor") => Some(Global::Tensor(Rebuild::V1)),
        ("torch._utils", "_rebuild_tensor_v2") => Some(Global::Tensor(Rebuild::V2)),
        ("torch._utils", "_rebuild_tensor_v3") => Some(Global::Tensor(Rebuild::V3)),
        ("torch._utils", "_rebuild_parameter" | "_rebuild_parameter_with_state") => {
            Some(Global::Parameter)
        }
        ("torch.storage" | "torch", "UntypedStorage") => Some(Global::Storage(Kind::Untyped)),
        ("torch", name) => of_torch(name),
        _ => None,
    };
    match known {
        Some(known) => Ok(known),
        None if is_attack(module, name) => {
            let name = format!("{module}.{name}");
            Err(Error::data(format!(
                "the pickle asks Python to run `{}`, as attacks do; nothing was run, and the file is \
                 refused",
                name.escape_debug()
            )))
        }
        None => Ok(Global::Unknown(format!("{module}.{name}").into())),
    }
}

fn of_torch(name: &str) -> Option<Global> {
    DTYPES.iter().find_map(|(dtype, own, storage)| match name {
        _ if name == *own => Some(Global::DType(dtype.clone())),
        _ if name == *storage && !name.is_empty() => {
            Some(Global::Storage(Kind::Typed(dtype.clone())))
        }
        _ => None,
    })
}

fn is_attack(module: &str, name: &str) -> bool {
    // From protocol 4 on, names have dots as well.
    let (outer, first) = (module.split('.').next(), name.split('.').next());
    match outer {
        Some("builtins" | "__builtin__") => first.is_some_and(|first| BUILTINS.contains(&first)),
        Some(outer) => ATTACKS.contains(&outer),
        None => false,
    }
}

/// torch's name of a dtype, for messages.
pub fn name_of(dtype: &DType) -> &'static str {
    DTYPES.iter().find(|(known, ..)| known == dtype).map_or("unknown", |(_, name, _)| name)
}
