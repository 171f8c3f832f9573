//! Writes arrays of floats as byte strings. An expert does this with formats that write byte strings as
//! blocks, but numbers one by one. The floats are cast to bytes when they are written, and copied into a
//! typed vector when they are read. The byte order is that of the machine; tenarc's is fixed.

use bytemuck::Pod;
use ndarray::{Array, Dimension, IxDyn};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether to ask for an owned `Vec` of bytes instead of a slice; ciborium supports long byte strings only
/// in this way.
pub static AS_BUFFERS: AtomicBool = AtomicBool::new(false);

/// `#[serde(with = "bytes::vec")]` on a `Vec` of plain old data.
pub mod vec {
    use super::*;

    pub fn serialize<T: Pod, S: Serializer>(items: &[T], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytemuck::cast_slice(items))
    }

    pub fn deserialize<'de, T: Pod, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<T>, D::Error> {
        if AS_BUFFERS.load(Relaxed) {
            return deserializer.deserialize_byte_buf(IntoVec(PhantomData));
        }
        deserializer.deserialize_bytes(IntoVec(PhantomData))
    }

    /// Copies the bytes from the slice that the format passes. If the format can pass a slice of its input,
    /// this is the only copy.
    struct IntoVec<T>(PhantomData<T>);

    impl<T: Pod> Visitor<'_> for IntoVec<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("bytes")
        }

        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<T>, E> {
            if !bytes.len().is_multiple_of(size_of::<T>()) {
                return Err(E::custom("not a whole number of elements"));
            }
            Ok(bytemuck::pod_collect_to_vec(bytes))
        }
    }
}

/// `#[serde(with = "bytes::array")]` on an ndarray array of `f32`.
pub mod array {
    use super::*;

    #[derive(Serialize)]
    struct Out<'a> {
        shape: &'a [usize],
        data: &'a serde_bytes::Bytes,
    }

    #[derive(Deserialize)]
    struct In {
        shape: Vec<usize>,
        #[serde(with = "super::vec")]
        data: Vec<f32>,
    }

    pub fn serialize<I: Dimension, S: Serializer>(
        array: &Array<f32, I>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let data = array.as_slice().expect("the arrays here are contiguous");
        let out =
            Out { shape: array.shape(), data: serde_bytes::Bytes::new(bytemuck::cast_slice(data)) };
        out.serialize(serializer)
    }

    pub fn deserialize<'de, I: Dimension, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Array<f32, I>, D::Error> {
        let read = In::deserialize(deserializer)?;
        Array::from_shape_vec(IxDyn(&read.shape), read.data)
            .and_then(Array::into_dimensionality)
            .map_err(D::Error::custom)
    }

    /// The same array, borrowed from the message. It is borrowed as bytes, which may be unaligned.
    #[derive(Deserialize)]
    pub struct Raw<'a> {
        pub shape: Vec<usize>,
        #[serde(borrow)]
        pub data: &'a serde_bytes::Bytes,
    }

    impl Raw<'_> {
        pub fn same<I: Dimension>(&self, array: &Array<f32, I>) -> bool {
            let data: &[u8] = bytemuck::cast_slice(array.as_slice().unwrap_or_default());
            self.shape == array.shape() && self.data == data
        }
    }
}
