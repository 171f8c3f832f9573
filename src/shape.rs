//! The dimensions of a tensor.

use std::fmt;
use std::ops::Deref;

/// The dimensions of a tensor. A single number has none.
///
/// A `Shape` derefs to a slice of the dimensions. Up to four dimensions are stored without an
/// allocation.
///
/// ```
/// use tenarc::tensor::Shape;
///
/// let shape = Shape::from([2, 3, 4]);
/// assert_eq!((shape.len(), shape[2]), (3, 4));
/// assert_eq!(shape.element_count(), Some(24));
/// assert_eq!(format!("{shape:?}"), "[2, 3, 4]");
/// ```
#[derive(Clone)]
pub struct Shape(Dims);

#[derive(Clone)]
enum Dims {
    /// The number of dimensions, and the dimensions. The unused entries are ignored.
    Inline(u8, [usize; Shape::INLINE]),
    /// More dimensions than fit inline.
    Boxed(Box<[usize]>),
}

impl Shape {
    /// The highest number of dimensions that are stored without an allocation.
    pub(crate) const INLINE: usize = 4;

    /// The number of bytes that are allocated for the dimensions.
    pub(crate) fn allocated(&self) -> usize {
        if self.len() > Self::INLINE { size_of_val(&**self) } else { 0 }
    }

    /// The first `rank` of these dimensions, or all of them if `rank` is greater.
    #[inline]
    #[allow(clippy::cast_possible_truncation)]
    pub(crate) fn inline(rank: usize, dims: [usize; Self::INLINE]) -> Self {
        Self(Dims::Inline(rank.min(Self::INLINE) as u8, dims))
    }

    /// The number of elements: the product of the dimensions. `None` if the product of the dimensions
    /// other than 0 exceeds `isize::MAX`, also if another dimension is 0.
    #[inline]
    pub fn element_count(&self) -> Option<usize> {
        let mut product = 1usize;
        for &dim in self {
            product = product.checked_mul(dim.max(1))?;
        }
        isize::try_from(product).ok()?;
        Some(if self.contains(&0) { 0 } else { product })
    }
}

impl Deref for Shape {
    type Target = [usize];

    #[inline]
    fn deref(&self) -> &[usize] {
        match &self.0 {
            Dims::Inline(rank, dims) => dims.get(..usize::from(*rank)).unwrap_or(dims),
            Dims::Boxed(dims) => dims,
        }
    }
}

impl AsRef<[usize]> for Shape {
    fn as_ref(&self) -> &[usize] {
        self
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// No dimensions.
impl Default for Shape {
    fn default() -> Self {
        Self::inline(0, [0; Self::INLINE])
    }
}

impl From<&[usize]> for Shape {
    #[inline]
    fn from(dims: &[usize]) -> Self {
        let mut inline = [0; Self::INLINE];
        match inline.get_mut(..dims.len()) {
            Some(slots) => {
                slots.copy_from_slice(dims);
                Self::inline(dims.len(), inline)
            }
            None => Self(Dims::Boxed(dims.into())),
        }
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    #[inline]
    fn from(dims: [usize; N]) -> Self {
        Self::from(&dims[..])
    }
}

impl<const N: usize> From<&[usize; N]> for Shape {
    #[inline]
    fn from(dims: &[usize; N]) -> Self {
        Self::from(&dims[..])
    }
}

impl From<Vec<usize>> for Shape {
    fn from(dims: Vec<usize>) -> Self {
        if dims.len() <= Self::INLINE {
            Self::from(&dims[..])
        } else {
            Self(Dims::Boxed(dims.into_boxed_slice()))
        }
    }
}

impl FromIterator<usize> for Shape {
    fn from_iter<I: IntoIterator<Item = usize>>(dims: I) -> Self {
        let mut dims = dims.into_iter();
        let mut inline = [0; Self::INLINE];
        for (rank, slot) in inline.iter_mut().enumerate() {
            match dims.next() {
                Some(dim) => *slot = dim,
                None => return Self::inline(rank, inline),
            }
        }
        match dims.next() {
            None => Self::inline(Self::INLINE, inline),
            Some(next) => inline.into_iter().chain([next]).chain(dims).collect::<Vec<_>>().into(),
        }
    }
}

impl<'a> IntoIterator for &'a Shape {
    type Item = &'a usize;
    type IntoIter = std::slice::Iter<'a, usize>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for Shape {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Shape {}

impl std::hash::Hash for Shape {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl PartialEq<[usize]> for Shape {
    fn eq(&self, other: &[usize]) -> bool {
        **self == *other
    }
}

impl PartialEq<&[usize]> for Shape {
    fn eq(&self, other: &&[usize]) -> bool {
        **self == **other
    }
}

impl<const N: usize> PartialEq<[usize; N]> for Shape {
    fn eq(&self, other: &[usize; N]) -> bool {
        **self == *other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_make_one_gives_the_same() {
        for rank in 0..12 {
            let dims: Vec<usize> = (1..=rank).collect();
            let shapes = [
                Shape::from(&dims[..]),
                Shape::from(dims.clone()),
                dims.iter().copied().collect(),
                // An iterator whose length is not known in advance.
                dims.iter().copied().filter(|_| true).collect(),
            ];
            for shape in &shapes {
                assert_eq!(*shape, dims[..]);
                assert_eq!(*shape, shapes[0]);
                assert_eq!(format!("{shape:?}"), format!("{dims:?}"));
                assert_eq!(matches!(shape.0, Dims::Boxed(_)), rank > Shape::INLINE);
            }
        }
        assert_eq!(Shape::from([2, 3]), [2, 3]);
        assert_eq!(Shape::from([1; 5]), &[1usize; 5][..]);
        assert_eq!(Shape::default(), []);
        assert_ne!(Shape::from([2, 0]), Shape::from([2]));
    }

    #[test]
    fn counts_do_not_wrap() {
        assert_eq!(Shape::default().element_count(), Some(1));
        assert_eq!(Shape::from([2, 3, 4, 5, 6]).element_count(), Some(720));
        assert_eq!(Shape::from([2, 0]).element_count(), Some(0));
        assert_eq!(Shape::from([usize::MAX, 2]).element_count(), None);
        assert_eq!(Shape::from([0, usize::MAX, 2]).element_count(), None);
        assert_eq!(Shape::from([usize::MAX / 2 + 1]).element_count(), None);
    }

    #[test]
    fn it_is_five_words() {
        assert_eq!(size_of::<Shape>(), 5 * size_of::<usize>());
    }
}
