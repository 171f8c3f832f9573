//! The positions of elements in memory that have a fixed distance, the stride, along each axis.

/// An axis: its number of indices, and the distance from one index to the next, in elements.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    pub count: usize,
    pub stride: isize,
}

/// The positions of all elements. The last axis changes fastest, and the first element is at `first`.
/// All positions must fit in `usize`.
pub fn positions(first: usize, axes: &[Axis]) -> impl Iterator<Item = usize> {
    let (outer, Axis { count, stride }) = match axes.split_last() {
        Some((&last, outer)) => (outer, last),
        None => (axes, Axis { count: 1, stride: 0 }),
    };
    starts(first, outer).flat_map(move |start| {
        let next = move |at: &usize| Some(at.wrapping_add_signed(stride));
        std::iter::successors(Some(start), next).take(count)
    })
}

/// The same positions as [`positions`], without its fast loop over the last axis.
pub fn starts(first: usize, axes: &[Axis]) -> impl Iterator<Item = usize> {
    let mut index = vec![0; axes.len()];
    let axes = axes.to_vec();
    let empty = axes.iter().any(|axis| axis.count == 0);
    let mut next = (!empty).then_some(first);
    std::iter::from_fn(move || {
        let found = next?;
        let mut at = found;
        // The last axis changes fastest. An axis that has reached its end starts again at 0.
        next = index.iter_mut().zip(&axes).rev().find_map(|(index, axis)| {
            *index += 1;
            if *index < axis.count {
                return Some(at.wrapping_add_signed(axis.stride));
            }
            *index = 0;
            let steps = (axis.count - 1).cast_signed();
            at = at.wrapping_add_signed(steps.wrapping_mul(axis.stride).wrapping_neg());
            None
        });
        Some(found)
    })
}
