//! What is known of a tensor without its elements.

use ndarray::IxDyn;

use crate::dtype::DType;

/// How elements follow each other in memory, and in a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// Row-major: the last index changes fastest.
    #[default]
    C,
    /// Column-major (Fortran): the first index changes fastest.
    F,
}

impl Order {
    /// `C` or `F`, as documents have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::C => "C",
            Self::F => "F",
        }
    }

    /// The order of that [name](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "C" => Some(Self::C),
            "F" => Some(Self::F),
            _ => None,
        }
    }
}

/// What is known of a tensor without its elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMeta {
    /// The type of the elements.
    pub dtype: DType,
    /// The dimensions.
    pub shape: IxDyn,
    /// How the elements follow each other.
    pub order: Order,
}

/// The number of elements of a shape, if that and every partial product fit memory.
pub fn element_count(dims: &[usize]) -> Option<usize> {
    let mut product = 1usize;
    for &dim in dims {
        product = product.checked_mul(dim.max(1))?;
    }
    isize::try_from(product).ok()?;
    Some(if dims.contains(&0) { 0 } else { product })
}
