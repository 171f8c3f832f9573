//! [`Value`]: any CBOR value, for documents whose types are not known.

mod columns;
mod de;
mod from;
mod index;
mod kinds;
mod model;
mod numbers;
mod offer;
mod read;
mod ser;
mod show;
mod with_types;

pub use crate::mem::RawValue;
pub(crate) use columns::read_row;
pub use de::from_value;
pub use index::Index;
pub use numbers::Numbers;
pub(crate) use offer::{encode, offer};
pub(crate) use read::read;
pub use ser::to_value;
pub(crate) use ser::{key_text, tensor_of};
pub use with_types::WithTypes;

use crate::tensor::DynTensor;

/// Any CBOR item, tensors included.
///
/// Maps keep the order of their entries, and entries with equal keys. Unknown tags are kept. The encoded length of
/// a number is not kept: for example, a half-precision float becomes [`F32`](Self::F32). [`RawValue`] keeps the
/// exact bytes.
///
/// The interface is that of `serde_json::Value`: [`is_map`](Self::is_map), [`as_str`](Self::as_str) and others tell
/// what a value is. Parts are found by key or position with [`get`](Self::get) or `value["layers"][0]`, which is
/// null if there is no such part, and with [JSON Pointers](Self::pointer). `From` makes values of numbers, texts,
/// tensors, and collections of these.
///
/// ```
/// use tenarc::{DType, DynTensor, Value};
/// use tenarc::tensor::Order;
///
/// let bytes = tenarc::to_vec(&("x", [1u8, 2]))?;
/// let value: Value = tenarc::from_slice(&bytes)?;
/// assert_eq!(value.pointer("/1/0"), Some(&Value::Integer(1)));
/// assert_eq!((value[0].as_str(), value[1][1].as_i64()), (Some("x"), Some(2)));
/// assert!(value[2]["no such key"].is_null());
///
/// let mut run = Value::from_iter([("loss", Value::from(0.25)), ("tags", vec!["a", "b"].into())]);
/// run["step"] = 7.into();
/// run["mask"] = DynTensor::new(DType::U8, &[2], Order::C, vec![0, 1])?.into();
/// if let Some(tag) = run.pointer_mut("/tags/0") {
///     *tag = Value::Bytes(vec![0xff]); // `Value::from(vec![0xffu8])` is an array of one integer
/// }
/// assert_eq!(
///     run.to_string(),
///     r#"{"loss": 0.25_3, "tags": [h'ff', "b"], "step": 7, "mask": u8[2]}"#
/// );
/// # Ok::<(), tenarc::Error>(())
/// ```
#[derive(Clone, Default, PartialEq)]
pub enum Value {
    /// Null: `None` or `()`.
    #[default]
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer that fits in an `i128`. Larger ones are bignums: [`Tag`](Self::Tag) 2 or 3 around bytes.
    Integer(i128),
    /// A float of half or single precision.
    F32(f32),
    /// A float of double precision.
    F64(f64),
    /// A byte string.
    Bytes(Vec<u8>),
    /// A text string.
    Text(String),
    /// An array.
    Array(Vec<Value>),
    /// A map: its entries, in the order of the document.
    Map(Vec<(Value, Value)>),
    /// A tag around a value. Who makes one of a tag that has a meaning here, such as that of a tensor, vouches for its
    /// content: a message with other content is written, and its readers refuse it. In archives, and for bignums, that is
    /// an error when it is written.
    Tag(u64, Box<Value>),
    /// A simple value other than false, true and null. 23 is *undefined*.
    Simple(u8),
    /// A typed array without a shape (RFC 8746, section 2).
    Numbers(Box<Numbers>),
    /// A tensor: elements with dtype, shape and order.
    Tensor(Box<DynTensor>),
}
