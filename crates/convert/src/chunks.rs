//! The chunks of a tensor: checks that they cover it, and puts their elements in the order of the tensor.

use tenarc::tensor::TensorMeta;
use tenarc::{Error, Result};

use crate::stored::Put;
use crate::support::{STEP, reserve};

/// The most pairs of chunks that are compared for all tensors of a checkpoint. In a grid of chunks, each is compared
/// with those of its row.
const MAX_PAIRS: u64 = 1 << 26;

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The index of the file.
    pub file: usize,
    pub start: u64,
    pub len: u64,
}

/// A part of a tensor that is stored by itself. It has at least one element.
#[derive(Clone)]
pub struct Chunk {
    /// The index of its first element in the tensor, along each axis.
    pub start: Vec<usize>,
    /// Its number of elements along each axis.
    pub sizes: Vec<usize>,
    pub span: Span,
}

impl Chunk {
    /// Returns the index after the last element along an axis. [`Cover::check`] has checked that it does not overflow.
    fn end(&self, axis: usize) -> usize {
        self.start(axis).saturating_add(self.sizes.get(axis).copied().unwrap_or(1))
    }

    /// Returns the index of the first element along an axis. A tensor without dimensions has one element, at index 0.
    fn start(&self, axis: usize) -> usize {
        self.start.get(axis).copied().unwrap_or(0)
    }

    fn overlaps(&self, other: &Self) -> bool {
        let mut axes = 0..self.start.len();
        axes.all(|axis| self.start(axis) < other.end(axis) && other.start(axis) < self.end(axis))
    }
}

/// Returns the length of an element in bytes.
fn width(meta: &TensorMeta) -> usize {
    meta.dtype.bits().unwrap_or(8) / 8
}

/// Checks that chunks cover their tensors.
pub struct Cover {
    /// The number of pairs of chunks that may still be compared.
    left: u64,
}

impl Cover {
    pub fn new() -> Self {
        Self { left: MAX_PAIRS }
    }

    /// Checks that chunks cover every element of a tensor once, and sorts them by their starts.
    pub fn check(&mut self, meta: &TensorMeta, chunks: &mut [Chunk]) -> Result<()> {
        let (shape, width) = (&meta.shape[..], width(meta));
        let mut found = 0usize;
        for chunk in &*chunks {
            let Chunk { start, sizes, span } = chunk;
            let is_inside = start.len() == shape.len()
                && sizes.len() == shape.len()
                && start.iter().zip(sizes).zip(shape).all(|((&start, &size), &dim)| {
                    start.checked_add(size).is_some_and(|end| end <= dim)
                });
            if !is_inside {
                return Err(Error::damaged(format!(
                    "the chunk at {start:?} of shape {sizes:?} lies outside of the tensor of shape {shape:?}"
                )));
            }
            // The product cannot overflow, because the tensor is at least as large.
            let count = sizes.iter().product::<usize>();
            let len = count.saturating_mul(width) as u64;
            if len > span.len {
                let room = span.len;
                return Err(Error::damaged(format!(
                    "the chunk at {start:?} has {len} bytes, but {room} are stored for it"
                )));
            }
            found = found.saturating_add(count);
        }
        self.check_overlap(chunks)?;
        let expected = meta.element_count().unwrap_or(0);
        if found != expected {
            return Err(Error::damaged(format!(
                "the chunks have {found} of the {expected} elements of the tensor"
            )));
        }
        chunks.sort_unstable_by(|a, b| a.start.cmp(&b.start));
        Ok(())
    }

    /// Checks that no two chunks overlap.
    fn check_overlap(&mut self, chunks: &mut [Chunk]) -> Result<()> {
        let Some(rank) = chunks.first().map(|chunk| chunk.start.len()) else { return Ok(()) };
        // Chunks are compared only if they overlap along one axis: the one along which they have most starts.
        let starts = |axis: usize| {
            let mut starts: Vec<usize> = chunks.iter().map(|chunk| chunk.start(axis)).collect();
            starts.sort_unstable();
            starts.dedup();
            starts.len()
        };
        let axis = (0..rank).max_by_key(|&axis| starts(axis)).unwrap_or(0);
        chunks.sort_unstable_by_key(|chunk| chunk.start(axis));
        for (number, one) in chunks.iter().enumerate() {
            let later = chunks.iter().skip(number + 1);
            for other in later.take_while(|other| other.start(axis) < one.end(axis)) {
                self.left = self.left.checked_sub(1).ok_or_else(|| {
                    let most = MAX_PAIRS;
                    Error::limit(format!("more than {most} pairs of chunks may overlap"))
                })?;
                if one.overlaps(other) {
                    let (one, other) = (&one.start, &other.start);
                    let what = format!("the chunks at {one:?} and {other:?} overlap");
                    return Err(Error::damaged(what));
                }
            }
        }
        Ok(())
    }
}

/// Passes the elements of a tensor to `put` in row-major order, block by block. `read` passes those of a chunk.
pub fn gather(
    meta: &TensorMeta,
    chunks: &[Chunk],
    read: impl Fn(&Chunk, &mut Put<'_>) -> Result<()>,
    put: &mut Put<'_>,
) -> Result<()> {
    let (shape, width) = (&meta.shape[..], width(meta));
    // This cannot overflow: the whole tensor has at least one row.
    let row = shape.iter().skip(1).fold(width, |len, dim| len.saturating_mul(*dim));
    for band in bands(chunks) {
        if let [chunk] = band {
            // A single chunk has whole rows, which follow each other.
            read(chunk, put)?;
            continue;
        }
        let mut rows: Vec<u8> = Vec::new();
        let len = byte_len(band, row);
        reserve(&mut rows, len)?;
        rows.resize(len, 0);
        let first = band.first().and_then(|chunk| chunk.start.first()).copied().unwrap_or(0);
        for chunk in band {
            let mut scatter = Scatter::new(&mut rows, first, shape, width, chunk);
            read(chunk, &mut |block| scatter.put(block))?;
        }
        rows.chunks(STEP).try_for_each(&mut *put)?;
    }
    Ok(())
}

/// Splits sorted chunks into bands. A band is a range of rows of the tensor, and no chunk is in two bands.
fn bands(chunks: &[Chunk]) -> impl Iterator<Item = &[Chunk]> {
    let mut rest = chunks;
    std::iter::from_fn(move || {
        let mut end = rest.first()?.end(0);
        let mut len = 0;
        for chunk in rest {
            if len > 0 && chunk.start(0) >= end {
                break;
            }
            end = end.max(chunk.end(0));
            len += 1;
        }
        let (band, after) = rest.split_at_checked(len)?;
        rest = after;
        Some(band)
    })
}

/// Returns the number of bytes of a band. `row` is the number of bytes of a row of the tensor.
fn byte_len(band: &[Chunk], row: usize) -> usize {
    let first = band.first().map_or(0, |chunk| chunk.start(0));
    let end = band.iter().map(|chunk| chunk.end(0)).max().unwrap_or(first);
    end.saturating_sub(first).saturating_mul(row)
}

/// Copies the elements of a chunk to their places in a band. They arrive in row-major order, block by block.
struct Scatter<'b> {
    band: &'b mut [u8],
    /// The sizes of the outer axes, and the distance in bytes from one index to the next.
    outer: Vec<(usize, usize)>,
    /// The offset of the first element in the band, in bytes.
    start: usize,
    /// The number of bytes that are contiguous both in the chunk and in the band.
    run: usize,
    done: usize,
}

impl<'b> Scatter<'b> {
    /// Creates a copier for a chunk. `first` is the first row of the band, and `width` the length of an element in
    /// bytes.
    pub fn new(
        band: &'b mut [u8],
        first: usize,
        shape: &[usize],
        width: usize,
        chunk: &Chunk,
    ) -> Self {
        let (mut outer, mut start) = (Vec::with_capacity(shape.len()), 0usize);
        let (mut stride, mut run, mut is_full) = (width, width, true);
        for (axis, &dim) in shape.iter().enumerate().rev() {
            let size = chunk.sizes.get(axis).copied().unwrap_or(1);
            let index = chunk.start(axis).saturating_sub(if axis == 0 { first } else { 0 });
            start = start.saturating_add(index.saturating_mul(stride));
            if is_full {
                run = run.saturating_mul(size);
            } else {
                outer.push((size, stride));
            }
            is_full &= size == dim;
            stride = stride.saturating_mul(dim);
        }
        Self { band, outer, start, run: run.max(1), done: 0 }
    }

    /// Copies a block.
    pub fn put(&mut self, mut block: &[u8]) -> Result<()> {
        while !block.is_empty() {
            let (mut number, within) = (self.done / self.run, self.done % self.run);
            let mut at = self.start.saturating_add(within);
            // The last of the outer axes comes first, and its index changes fastest.
            for &(size, stride) in &self.outer {
                at = at.saturating_add((number % size.max(1)).saturating_mul(stride));
                number /= size.max(1);
            }
            let (now, later) = block.split_at(block.len().min(self.run - within));
            let to = self.band.get_mut(at..).and_then(|rest| rest.get_mut(..now.len()));
            let to = to.filter(|_| number == 0);
            let to =
                to.ok_or_else(|| Error::damaged("a chunk has more elements than it should"))?;
            to.copy_from_slice(now);
            self.done += now.len();
            block = later;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tenarc::DType;
    use tenarc::error::Category;
    use tenarc::tensor::Order;

    use super::*;

    fn check(shape: &[usize], chunks: &mut [Chunk]) -> Result<()> {
        Cover::new().check(&TensorMeta::new(DType::U8, shape, Order::C), chunks)
    }

    fn chunk(start: &[usize], sizes: &[usize]) -> Chunk {
        let span = Span { file: 0, start: 0, len: u64::MAX };
        Chunk { start: start.to_vec(), sizes: sizes.to_vec(), span }
    }

    /// Puts a tensor of the bytes 0, 1, 2, … together from its chunks.
    fn assembled(shape: &[usize], chunks: &mut [Chunk]) -> Vec<u8> {
        check(shape, chunks).unwrap();
        let row: usize = shape.iter().skip(1).product();
        let mut found = Vec::new();
        for band in bands(chunks) {
            let mut rows = vec![0xff; byte_len(band, row)];
            let first = band[0].start[0];
            for chunk in band {
                // The elements of the chunk, in its own order.
                let count: usize = chunk.sizes.iter().product();
                let of_tensor = |number: usize| {
                    let (mut rest, mut at, mut stride) = (number, 0, 1);
                    for axis in (0..shape.len()).rev() {
                        at += (chunk.start[axis] + rest % chunk.sizes[axis]) * stride;
                        rest /= chunk.sizes[axis];
                        stride *= shape[axis];
                    }
                    u8::try_from(at).unwrap()
                };
                let elements: Vec<u8> = (0..count).map(of_tensor).collect();
                let mut scatter = Scatter::new(&mut rows, first, shape, 1, chunk);
                for block in elements.chunks(3) {
                    scatter.put(block).unwrap();
                }
                assert!(scatter.put(&elements).is_err());
            }
            found.extend(rows);
        }
        found
    }

    #[test]
    fn chunks_are_put_together_whatever_their_arrangement() {
        let expected: Vec<u8> = (0..60).collect();
        let rows = [chunk(&[2, 0, 0], &[1, 4, 5]), chunk(&[0, 0, 0], &[2, 4, 5])];
        assert_eq!(assembled(&[3, 4, 5], &mut rows.clone()), expected);
        assert_eq!(bands(&[rows[1].clone(), rows[0].clone()]).count(), 2);
        let columns = [chunk(&[0, 0, 3], &[3, 4, 2]), chunk(&[0, 0, 0], &[3, 4, 3])];
        assert_eq!(assembled(&[3, 4, 5], &mut columns.clone()), expected);
        // A pinwheel, which no straight cut divides.
        let mut pinwheel = [
            chunk(&[0, 0], &[2, 4]),
            chunk(&[0, 4], &[4, 2]),
            chunk(&[4, 2], &[2, 4]),
            chunk(&[2, 0], &[4, 2]),
            chunk(&[2, 2], &[2, 2]),
        ];
        assert_eq!(assembled(&[6, 6], &mut pinwheel), (0..36).collect::<Vec<u8>>());
        assert_eq!(bands(&pinwheel).count(), 1);
    }

    #[test]
    fn chunks_that_do_not_cover_the_tensor_once_are_refused() {
        let check = |shape: &[usize], chunks: &[Chunk]| {
            let found = check(shape, &mut chunks.to_vec());
            found.map_or_else(|error| error.to_string(), |()| String::new())
        };
        assert_eq!(check(&[], &[chunk(&[], &[])]), "");
        assert_eq!(check(&[0, 3], &[]), "");
        assert!(check(&[], &[]).contains("0 of the 1 elements"));
        assert!(check(&[], &[chunk(&[], &[]), chunk(&[], &[])]).contains("overlap"));
        assert!(check(&[4], &[chunk(&[0], &[3])]).contains("3 of the 4 elements"));
        assert!(check(&[4], &[chunk(&[0], &[3]), chunk(&[2], &[2])]).contains("overlap"));
        assert!(check(&[4], &[chunk(&[2], &[3])]).contains("lies outside"));
        assert!(check(&[4], &[chunk(&[usize::MAX], &[2])]).contains("lies outside"));
        assert!(check(&[4], &[chunk(&[0, 0], &[4, 1])]).contains("lies outside"));
        let mut small = chunk(&[0], &[4]);
        small.span.len = 3;
        assert!(check(&[4], &[small]).contains("has 4 bytes, but 3 are stored"));
    }

    #[test]
    fn the_comparison_of_many_chunks_ends() {
        let meta = TensorMeta::new(DType::U8, [128, 64], Order::C);
        let rows = (0..64).map(|at| chunk(&[at, 0], &[1, 64]));
        let columns = (0..64).map(|at| chunk(&[64, at], &[64, 1]));
        let mut both: Vec<Chunk> = rows.chain(columns).collect();
        Cover { left: 2016 }.check(&meta, &mut both).unwrap();
        let error = Cover { left: 2015 }.check(&meta, &mut both).unwrap_err();
        assert_eq!(error.category(), Category::Limit);
        // Chunks of columns only are told apart by their columns.
        let mut columns: Vec<Chunk> = (0..64).map(|at| chunk(&[0, at], &[128, 1])).collect();
        Cover { left: 0 }.check(&meta, &mut columns).unwrap();
    }
}
