//! Vectors of plain structs as one tensor.

use std::marker::PhantomData;

use bytemuck::{AnyBitPattern, NoUninit, Pod};
use serde::de::Deserializer;
use serde::ser::Serializer;

use super::raw_tensor::Data;
use super::{FromTensor, Order, RawTensor, TensorMeta, ToTensor, visit, write};
use crate::elements::{Element, le_bytes};
use crate::error::{Error, Result};
use crate::mem;

/// Stores a `Vec` of plain structs as one tensor with a row for each struct. Used as
/// `#[serde(with = "tenarc::tensor::Rows::<f32>")]`.
///
/// The struct must be [`Pod`], and all its fields must have the size of the given element type. That type
/// is the dtype of the tensor: triangles of nine `f32` become an `f32` tensor of shape `[n, 9]`. numpy
/// reads it, and hosts of either byte order can exchange it. Fields may be structs or arrays of such
/// elements; a complex number counts as two elements.
///
/// ```
/// use bytemuck::{Pod, Zeroable};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Clone, Copy, PartialEq, Debug, Pod, Zeroable)]
/// #[repr(C)]
/// struct Triangle {
///     corners: [[f32; 3]; 3],
/// }
///
/// #[derive(Serialize, Deserialize, PartialEq, Debug)]
/// struct Mesh {
///     #[serde(with = "tenarc::tensor::Rows::<f32>")]
///     triangles: Vec<Triangle>,
/// }
///
/// let mesh = Mesh { triangles: vec![Triangle { corners: [[0.5; 3]; 3] }; 1000] };
/// let bytes = tenarc::to_vec(&mesh)?;
/// assert_eq!(tenarc::from_slice::<Mesh>(&bytes)?, mesh);
/// # Ok::<(), tenarc::Error>(())
/// ```
///
/// A struct with a field larger than the element type, or with only smaller ones, does not compile, because
/// its alignment differs from that of the element type:
///
/// ```compile_fail
/// # use bytemuck::{Pod, Zeroable};
/// # use serde::Serialize;
/// #[derive(Clone, Copy, Pod, Zeroable)]
/// #[repr(C)]
/// struct Sample {
///     time: f64,
///     position: [f32; 2],
/// }
///
/// #[derive(Serialize)]
/// struct Track {
///     #[serde(with = "tenarc::tensor::Rows::<f32>")] // `time` is wider than an `f32`
///     samples: Vec<Sample>,
/// }
///
/// tenarc::to_vec(&Track { samples: vec![] })?;
/// # Ok::<(), tenarc::Error>(())
/// ```
///
/// The compiler does not find every field of another size. It misses a smaller field among others, and any field of a
/// `#[repr(packed)]` struct. On 32-bit x86, it also misses a field of 8 bytes, because `f64` and `u64` have the
/// alignment of `f32` there. Such structs are only read back correctly on hosts of the same byte order.
#[derive(Debug)]
pub struct Rows<A>(PhantomData<A>);

impl<A: Element + Pod> Rows<A> {
    /// Writes the structs as rows. Does not compile if the struct's alignment differs from that of the element
    /// type, or if its size is not a multiple of the element's.
    ///
    /// # Errors
    /// If the serializer fails.
    pub fn serialize<T: NoUninit, S: Serializer>(
        rows: &[T],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let shape = [rows.len(), In::<T, A>::WIDTH];
        let elements: &[A] = bytemuck::must_cast_slice(rows);
        write::serialize(&Out { elements, shape }, serializer)
    }

    /// Reads the structs back. Does not compile for structs that [`serialize`](Self::serialize) refuses.
    ///
    /// # Errors
    /// If the document does not have a tensor of the element type at this place, or its rows do not have the length
    /// of the struct.
    pub fn deserialize<'de, T: AnyBitPattern, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<T>, D::Error> {
        visit::deserialize::<In<T, A>, D>(deserializer, false).map(|rows| rows.0)
    }
}

struct Out<'a, A> {
    elements: &'a [A],
    shape: [usize; 2],
}

impl<A: Element> ToTensor for Out<'_, A> {
    fn meta(&self) -> TensorMeta {
        TensorMeta { dtype: A::DTYPE, shape: self.shape.into(), order: Order::C }
    }

    fn as_le_bytes(&self) -> Option<&[u8]> {
        le_bytes(self.elements)
    }

    fn write_blocks(&self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.elements.write_blocks(put)
    }
}

struct In<T, A>(Vec<T>, PhantomData<A>);

impl<T, A> In<T, A> {
    /// The number of elements in a row.
    ///
    /// ```compile_fail
    /// // 12 bytes are not a multiple of a complex number's 8, although the alignment is the same as that of `u32`.
    /// let mut out = tenarc::Serializer::new(Vec::new());
    /// let _ = tenarc::tensor::Rows::<num_complex::Complex<f32>>::serialize(&[[0u32; 3]], &mut out);
    /// ```
    ///
    /// ```compile_fail
    /// let mut out = tenarc::Serializer::new(Vec::new());
    /// let _ = tenarc::tensor::Rows::<u8>::serialize(&[[0u8; 0]], &mut out);
    /// ```
    ///
    /// ```compile_fail
    /// let mut out = tenarc::Serializer::new(Vec::new());
    /// let _ = tenarc::tensor::Rows::<u32>::serialize(&[[0u16; 2]], &mut out);
    /// ```
    ///
    /// ```
    /// let mut out = tenarc::Serializer::new(Vec::new());
    /// let _ = tenarc::tensor::Rows::<u32>::serialize(&[[0u32; 2]], &mut out);
    /// ```
    const WIDTH: usize = {
        assert!(
            align_of::<T>() == align_of::<A>(),
            "all fields of a struct in `Rows` must be as wide as the element type: \
             the struct has another alignment"
        );
        assert!(
            size_of::<T>() != 0 && size_of::<T>().is_multiple_of(size_of::<A>()),
            "a struct in `Rows` must be one or more whole elements"
        );
        size_of::<T>() / size_of::<A>()
    };
}

impl<T: AnyBitPattern, A: Element + Pod> FromTensor<'_> for In<T, A> {
    fn from_tensor(tensor: RawTensor<'_, '_>) -> Result<Self> {
        let width = Self::WIDTH;
        let meta = tensor.meta();
        let shape = &meta.shape;
        let fits = match shape.split_first() {
            Some((&count, rest)) => {
                count == 0
                    || rest.iter().try_fold(1usize, |n, &dim| n.checked_mul(dim)) == Some(width)
            }
            None => false,
        };
        if !fits || meta.order == Order::F {
            return Err(Error::mismatch(format!(
                "expected a row-major tensor of rows of {width} elements, found shape {shape:?}"
            )));
        }
        let rows = match &tensor.data {
            Data::Borrowed(bytes) | Data::Copied(bytes)
                if meta.dtype == A::DTYPE && cfg!(target_endian = "little") =>
            {
                mem::plain::copied(bytes)
            }
            _ => mem::plain::copied(bytemuck::cast_slice(&tensor.into_vec::<A>()?)),
        };
        let rows = rows.ok_or_else(|| Error::mismatch("the elements do not fill whole rows"))?;
        Ok(Self(rows, PhantomData))
    }
}
