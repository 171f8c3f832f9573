//! candle's tensors as tenarc's tensors.

use std::ops::{Deref, DerefMut};

use bytemuck::Pod;
use candle_core::{CpuStorage, Device, Storage, Tensor, Var, WithDType};
use float8::F8E4M3;
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};
use tenarc::tensor::{Element, FromTensor, Order, RawTensor, TensorMeta, ToTensor};
use tenarc::{DType, DynTensor, Error, Result};

use crate::dtype::{for_each_dtype, from_candle};
use crate::error::of_candle;
use crate::quantized;

/// A candle tensor that is written and read as one block of bytes. Use it where tensors are inside other types:
/// `Vec<CandleTensor>`, `Option<CandleTensor>`, `HashMap<String, CandleTensor>`. It dereferences to candle's tensor.
///
/// For a field that is a tensor itself, `#[serde(with = "tenarc_candle::tensor")]` keeps candle's type.
///
/// A tensor that was read is on the CPU. A quantised tensor, as in an archive that was converted from GGUF, is read as
/// `f32`, with the numbers that candle's own reader of GGUF gives. Reading it takes one copy of its blocks.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use candle_core::{DType, Device, Tensor};
/// use serde::{Deserialize, Serialize};
/// use tenarc_candle::CandleTensor;
///
/// #[derive(Serialize, Deserialize)]
/// struct Cache {
///     keys: Vec<CandleTensor>,
///     mask: Option<CandleTensor>,
///     by_name: BTreeMap<String, CandleTensor>,
/// }
///
/// let ones = Tensor::ones((2, 3), DType::BF16, &Device::Cpu)?;
/// let cache = Cache { keys: vec![ones.clone().into()], mask: None, by_name: BTreeMap::new() };
/// let bytes = tenarc::to_vec(&cache)?;
/// let cache: Cache = tenarc::from_slice(&bytes)?;
/// assert_eq!(cache.keys[0].dims(), [2, 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct CandleTensor(pub Tensor);

impl CandleTensor {
    /// candle's tensor.
    pub fn into_inner(self) -> Tensor {
        self.0
    }
}

impl Deref for CandleTensor {
    type Target = Tensor;

    fn deref(&self) -> &Tensor {
        &self.0
    }
}

impl DerefMut for CandleTensor {
    fn deref_mut(&mut self) -> &mut Tensor {
        &mut self.0
    }
}

impl From<Tensor> for CandleTensor {
    fn from(tensor: Tensor) -> Self {
        Self(tensor)
    }
}

impl Serialize for CandleTensor {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serialize(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for CandleTensor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        tenarc::tensor::deserialize(deserializer)
    }
}

pub fn serialize<S: Serializer>(
    tensor: &Tensor,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    if from_candle(tensor.dtype()).is_none() {
        return Err(ser::Error::custom(refused(tensor)));
    }
    tenarc::tensor::serialize(&Borrowed(tensor), serializer)
}

impl ToTensor for CandleTensor {
    fn meta(&self) -> TensorMeta {
        Borrowed(&self.0).meta()
    }

    fn as_le_bytes(&self) -> Option<&[u8]> {
        None
    }

    fn write_blocks(&self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        Borrowed(&self.0).write_blocks(put)
    }
}

/// A tensor to be written.
struct Borrowed<'a>(&'a Tensor);

impl ToTensor for Borrowed<'_> {
    fn meta(&self) -> TensorMeta {
        let dtype = self.0.dtype();
        // Writing a tensor of another dtype is an error in `write_blocks`. Here it can only get its name.
        let dtype = from_candle(dtype).unwrap_or_else(|| DType::from_name(dtype.as_str()));
        TensorMeta::new(dtype, self.0.dims(), Order::C)
    }

    /// candle's elements are behind a lock, so no reference to them can be returned.
    fn as_le_bytes(&self) -> Option<&[u8]> {
        None
    }

    fn write_blocks(&self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        // Neither of the two copies what is on the CPU and contiguous already.
        let tensor = self.0.to_device(&Device::Cpu).and_then(|tensor| tensor.contiguous());
        let tensor = tensor.map_err(|error| of_candle(&error))?;
        let (storage, layout) = tensor.storage_and_layout();
        let (Storage::Cpu(storage), Some((start, end))) = (&*storage, layout.contiguous_offsets())
        else {
            return Err(Error::data("candle did not move the tensor to the CPU as one block"));
        };
        macro_rules! put_elements {
            ({} $($name:ident: $type:ty,)*) => {
                match storage {
                    $(CpuStorage::$name(elements) => put_le(within(elements, start, end)?, put),)*
                    CpuStorage::F8E4M3(elements) => {
                        put(bytemuck::cast_slice(within(elements, start, end)?))
                    }
                    CpuStorage::F8E8M0(bytes) => put(within(bytes, start, end)?),
                    _ => Err(Error::unsupported(refused(&tensor))),
                }
            };
        }
        for_each_dtype!(put_elements {})
    }
}

fn within<T>(elements: &[T], start: usize, end: usize) -> Result<&[T]> {
    elements
        .get(start..end)
        .ok_or_else(|| Error::data("the layout of the candle tensor does not fit its storage"))
}

fn put_le<A: Element + Pod>(
    elements: &[A],
    put: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    if cfg!(target_endian = "little") {
        return put(bytemuck::cast_slice(elements));
    }
    DynTensor::from_vec(&[elements.len()], Order::C, elements.to_vec())?.write_blocks(put)
}

#[cold]
fn refused(tensor: &Tensor) -> String {
    format!("candle's dtype `{}` cannot be saved", tensor.dtype().as_str())
}

impl FromTensor<'_> for CandleTensor {
    fn from_tensor(tensor: RawTensor<'_, '_>) -> Result<Self> {
        read::<Self>(tensor)
    }
}

/// A candle variable that is read from a tensor. Its elements are not copied again, as `Var::from_tensor` would do.
pub struct CandleVar(pub Var);

impl FromTensor<'_> for CandleVar {
    fn from_tensor(tensor: RawTensor<'_, '_>) -> Result<Self> {
        read::<Self>(tensor)
    }
}

/// A type that is made of the elements that were read.
trait Made: Sized {
    fn of_vec<A: WithDType>(elements: Vec<A>, shape: &[usize]) -> candle_core::Result<Self>;

    fn of_tensor(tensor: Tensor) -> candle_core::Result<Self>;
}

impl Made for CandleTensor {
    fn of_vec<A: WithDType>(elements: Vec<A>, shape: &[usize]) -> candle_core::Result<Self> {
        Tensor::from_vec(elements, shape, &Device::Cpu).map(Self)
    }

    fn of_tensor(tensor: Tensor) -> candle_core::Result<Self> {
        Ok(Self(tensor))
    }
}

impl Made for CandleVar {
    fn of_vec<A: WithDType>(elements: Vec<A>, shape: &[usize]) -> candle_core::Result<Self> {
        Var::from_vec(elements, shape, &Device::Cpu).map(Self)
    }

    fn of_tensor(tensor: Tensor) -> candle_core::Result<Self> {
        Var::from_tensor(&tensor).map(Self)
    }
}

fn read<M: Made>(tensor: RawTensor<'_, '_>) -> Result<M> {
    let tensor = tensor.into_row_major()?;
    let shape = tensor.meta().shape.to_vec();
    macro_rules! read_elements {
        ({} $($name:ident: $type:ty,)*) => {
            match &tensor.meta().dtype {
                $(DType::$name => M::of_vec(tensor.into_vec::<$type>()?, &shape),)*
                DType::F8E4M3 => M::of_vec(bytes::<F8E4M3>(tensor)?, &shape),
                DType::F8E8M0 => {
                    let (bytes, dtype) = (bytes::<u8>(tensor)?, candle_core::DType::F8E8M0);
                    Tensor::from_raw_buffer(&bytes, dtype, &shape, &Device::Cpu)
                        .and_then(M::of_tensor)
                }
                other => {
                    if let Some(kind) = quantized::kind(other) {
                        let tensor = quantized::dequantized(tensor, kind)?;
                        return M::of_tensor(tensor).map_err(|error| of_candle(&error));
                    }
                    let what = format!(
                        "candle has no tensors of {other}, found one of shape {shape:?}; read it \
                         as a tenarc::DynTensor"
                    );
                    return Err(Error::unsupported(what));
                }
            }
        };
    }
    for_each_dtype!(read_elements {}).map_err(|error| of_candle(&error))
}

/// Elements of one byte each, for which tenarc has no type.
fn bytes<A: Pod>(tensor: RawTensor<'_, '_>) -> Result<Vec<A>> {
    if let Ok(borrowed) = tensor.borrow_bytes() {
        return Ok(bytemuck::pod_collect_to_vec(borrowed));
    }
    Ok(bytemuck::pod_collect_to_vec(&tensor.into_dyn()?.le_bytes()))
}
