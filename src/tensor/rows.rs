//! Vectors of plain structs as one tensor.

use std::marker::PhantomData;

use bytemuck::{AnyBitPattern, NoUninit, Pod};
use serde::de::Deserializer;
use serde::ser::{Error as _, Serializer};

use super::raw_tensor::Data;
use super::{FromTensor, Order, RawTensor, TensorMeta, ToTensor, visit, write};
use crate::elements::{Element, le_bytes};
use crate::error::{Error, Result};
use crate::mem;

/// Writes a `Vec` of plain structs as one tensor, a row for each struct: for
/// `#[serde(with = "tenarc::tensor::Rows::<f32>")]`.
///
/// The struct must be [`Pod`], and all its fields as wide as the element type named, which is the
/// dtype of the tensor: a triangle of nine `f32` gives an `f32` tensor of shape `[n, 9]`, which
/// numpy reads as such and hosts of either byte order exchange.
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
#[derive(Debug)]
pub struct Rows<A>(PhantomData<A>);

impl<A: Element + Pod> Rows<A> {
    /// Writes the structs as rows.
    ///
    /// # Errors
    /// Where a struct is no whole number of elements or lies less aligned than they must, and
    /// those of the serializer.
    pub fn serialize<T: NoUninit, S: Serializer>(
        rows: &[T],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let width = width::<T, A>().map_err(S::Error::custom)?;
        let elements: &[A] = bytemuck::checked::try_cast_slice(bytemuck::cast_slice::<T, u8>(rows))
            .map_err(|error| S::Error::custom(format!("rows do not lie as elements: {error}")))?;
        write::serialize(&Out { elements, shape: [rows.len(), width] }, serializer)
    }

    /// Reads the structs back.
    ///
    /// # Errors
    /// Where the document holds no tensor of the element type whose rows are as long as the
    /// struct.
    pub fn deserialize<'de, T: AnyBitPattern, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<T>, D::Error> {
        visit::deserialize::<In<T, A>, D>(deserializer, false).map(|rows| rows.0)
    }
}

fn width<T, A>() -> Result<usize> {
    let (row, element) = (size_of::<T>(), size_of::<A>());
    if row == 0 || row % element != 0 {
        return Err(Error::data(format!(
            "rows of {row} bytes are no whole number of elements of {element} bytes"
        )));
    }
    Ok(row / element)
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

impl<T: AnyBitPattern, A: Element + Pod> FromTensor<'_> for In<T, A> {
    fn from_tensor(tensor: RawTensor<'_, '_>) -> Result<Self> {
        let width = width::<T, A>()?;
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
            return Err(Error::data(format!(
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
        let rows = rows.ok_or_else(|| Error::data("elements are no whole number of rows"))?;
        Ok(Self(rows, PhantomData))
    }
}
