//! Arrays and scalars of numpy. Their elements are in the pickle itself.

use std::sync::Arc;

use half::f16;
use tenarc::{DType, Result};

use super::global::Meaning;
use super::heap::{Heap, Made, sizes, tuple};
use super::object::{Instance, Object, Value};
use super::storage::{At, Kind, Rebuilt, Signs, Storage};
use crate::numpy;

/// Returns the array that an object becomes when it gets its state. The state is a version, the shape, the dtype,
/// whether the order is column-major, and the bytes. `None` if the object is not an array, or if tensors do not have
/// its dtype.
pub fn array_of_state(heap: &Heap, instance: &Instance, state: Value) -> Result<Option<Object>> {
    let function = heap.object(instance.function);
    let is_array = matches!(function, Some(Object::Global(global)) if matches!(global.meaning, Meaning::NumpyArray));
    let Some(Object::Tuple(arguments)) = heap.object(instance.arguments) else {
        return Ok(None);
    };
    let class = arguments.first().and_then(|class| heap.object(*class));
    let is_plain =
        matches!(class, Some(Object::Global(global)) if &*global.name == "numpy.ndarray");
    match heap.object(state) {
        Some(Object::Tuple(values)) if is_array && is_plain => match values[..] {
            [_, shape, dtype, Value::Bool(is_fortran), data] => {
                array(heap, dtype, shape, is_fortran, data)
            }
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

/// Returns the array that `_frombuffer` makes of these arguments. `None` if tensors do not have its dtype or order.
pub fn array_of_buffer(heap: &Heap, arguments: &[Value]) -> Result<Option<Object>> {
    let &[data, dtype, shape, order] = arguments else { return Ok(None) };
    match heap.object(order) {
        Some(Object::Text(order)) if matches!(&**order, "C" | "F") => {
            array(heap, dtype, shape, &**order == "F", data)
        }
        _ => Ok(None),
    }
}

fn array(
    heap: &Heap,
    dtype: Value,
    shape: Value,
    is_fortran: bool,
    data: Value,
) -> Result<Option<Object>> {
    let (Some((dtype, swapped)), Some(bytes)) = (dtype_of(heap, dtype), bytes(heap, data)) else {
        return Ok(None);
    };
    let Value::Object(number) = data else { return Ok(None) };
    let shape = sizes(heap, shape)?;
    let mut step = 1u64;
    let mut stride = |&dim: &u64| {
        let stride = step;
        // If this overflows, `layout::place` refuses the shape.
        step = step.saturating_mul(dim);
        stride
    };
    let strides = if is_fortran {
        shape.iter().map(stride).collect()
    } else {
        let mut strides: Vec<u64> = shape.iter().rev().map(&mut stride).collect();
        strides.reverse();
        strides
    };
    let (at, count) = (At::Object(number), bytes.len() as u64);
    let storage = Storage { at, elements: Kind::Untyped, count, view: (0, count) };
    Ok(Some(Object::Tensor(Box::new(Rebuilt {
        storage: Arc::new(storage),
        dtype,
        offset: 0,
        shape,
        strides,
        attributes: false,
        swapped,
        signs: Signs::default(),
    }))))
}

/// Returns the number of a scalar. `None` if no plain value holds it exactly.
pub fn scalar(heap: &Heap, dtype: Value, data: Value) -> Option<Made> {
    let ((dtype, swapped), bytes) = (dtype_of(heap, dtype)?, bytes(heap, data)?);
    let mut bytes = bytes.to_vec();
    if swapped {
        bytes.reverse();
    }
    macro_rules! number {
        ($type:ty) => {
            <$type>::from_le_bytes(bytes.try_into().ok()?)
        };
    }
    Some(Made::Old(match dtype {
        DType::Bool => match number!(u8) {
            byte @ (0 | 1) => Value::Bool(byte == 1),
            _ => return None,
        },
        DType::U8 => Value::Int(number!(u8).into()),
        DType::U16 => Value::Int(number!(u16).into()),
        DType::U32 => Value::Int(number!(u32).into()),
        DType::U64 => {
            let number = number!(u64);
            match number.try_into() {
                Ok(number) => Value::Int(number),
                Err(_) => return Some(Made::New(Object::Big(number.into()))),
            }
        }
        DType::I8 => Value::Int(number!(i8).into()),
        DType::I16 => Value::Int(number!(i16).into()),
        DType::I32 => Value::Int(number!(i32).into()),
        DType::I64 => Value::Int(number!(i64)),
        DType::F16 => Value::Float(f16::from_bits(number!(u16)).to_f64()),
        DType::F32 => Value::Float(number!(f32).into()),
        DType::F64 => Value::Float(number!(f64)),
        _ => return None,
    }))
}

fn bytes(heap: &Heap, value: Value) -> Option<&[u8]> {
    heap.object(value).and_then(Object::as_bytes)
}

/// Returns a dtype, and whether its elements are big-endian. `None` if tensors do not have this dtype.
fn dtype_of(heap: &Heap, value: Value) -> Option<(DType, bool)> {
    let Some(Object::Instance(instance)) = heap.object(value) else { return None };
    match heap.object(instance.function) {
        Some(Object::Global(global)) if &*global.name == "numpy.dtype" => {}
        _ => return None,
    }
    let code = tuple(heap, instance.arguments).ok()?.first()?;
    let dtype = match heap.object(*code)? {
        Object::Text(code) => numpy::of_code(code.as_bytes())?,
        Object::Global(class) => {
            let name = class.name.strip_prefix("ml_dtypes.")?;
            numpy::ML_DTYPES.into_iter().find(|(known, _)| *known == name)?.1
        }
        _ => return None,
    };
    // The state is a version, the byte order, and fields that are None unless the dtype consists of others.
    let state = instance.state.map(|state| tuple(heap, state).ok());
    let order = match state {
        None => None,
        Some(Some(&[_, order, Value::None, Value::None, Value::None, ..])) => heap.object(order),
        Some(_) => return None,
    };
    let is_big = match order {
        None => false,
        Some(Object::Text(order)) => &**order == ">",
        Some(_) => return None,
    };
    let swapped = is_big && dtype.word() > 1;
    Some((dtype, swapped))
}
