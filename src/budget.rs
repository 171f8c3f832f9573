//! The memory that a document may make its reader allocate (`SPEC.md`, section 4).
//!
//! There is one budget for a value. What is allocated is taken from it by its real capacity: the elements of a `Vec` while
//! it grows, the nodes of a [`Value`](crate::Value), the payloads of tensors, decompressed bytes. What the input allows
//! is added to it: see [`Limits::memory`].

use std::cell::Cell;

use crate::error::{Error, Result};
use crate::options::Limits;

/// What a row that takes no bytes of input costs. It takes time, even if it takes no memory.
pub const FREE_ROW: u64 = 4;

/// The most bytes that serde reserves at once for a collection, whatever number of elements it is told.
const RESERVED: usize = 1 << 20;

/// The number of bytes that may still be allocated for a value. The reader of a document that is inside of another one
/// has a copy, and gives it back: see [`Budget::take_over`].
#[derive(Clone, Debug)]
pub struct Budget {
    pub limits: Limits,
    left: Cell<u64>,
    /// The number of bytes that were given in all.
    given: Cell<u64>,
    /// The part of `given` that the current input allows.
    allowed: Cell<u64>,
}

impl Budget {
    /// The budget for input of which nothing was read yet.
    pub fn new(limits: Limits) -> Self {
        let given = limits.memory(0, 0);
        Self { limits, left: given.into(), given: given.into(), allowed: 0.into() }
    }

    /// Copies the state of `other`.
    pub fn take_over(&self, other: &Self) {
        self.left.set(other.left.get());
        self.given.set(other.given.get());
        self.allowed.set(other.allowed.get());
    }

    /// Adds what the input allows: `allowed` bytes so far.
    pub fn allow(&self, allowed: u64) {
        let more = allowed.saturating_sub(self.allowed.get());
        if more > 0 && self.limits.max_alloc().is_none() {
            self.allowed.set(allowed);
            self.left.set(self.left.get().saturating_add(more));
            self.given.set(self.given.get().saturating_add(more));
        }
    }

    /// Starts with other input, which has allowed `before` bytes that do not count. What it allows is added to what the
    /// input before it has allowed.
    pub fn start(&self, before: u64) {
        self.allowed.set(before);
    }

    /// Takes bytes that are about to be allocated. Returns false, and takes nothing, if too few are left.
    #[inline(always)]
    pub fn take(&self, bytes: u64) -> bool {
        match self.left.get().checked_sub(bytes) {
            Some(left) => {
                self.left.set(left);
                true
            }
            None => false,
        }
    }

    /// Like [`take`](Self::take), but too few bytes are an error.
    #[inline(always)]
    pub fn charge(&self, bytes: u64) -> Result<()> {
        if self.take(bytes) { Ok(()) } else { Err(self.exceeded(bytes)) }
    }

    /// Gives back bytes that were freed.
    pub fn refund(&self, bytes: u64) {
        self.left.set(self.left.get().saturating_add(bytes));
    }

    /// The number of bytes that are taken.
    pub fn taken(&self) -> u64 {
        self.given.get().saturating_sub(self.left.get())
    }

    /// Takes the bytes of a block that grows. While it is copied, there are both.
    pub fn grow(&self, growth: Growth) -> Result<()> {
        self.charge(growth.new)?;
        self.refund(growth.old);
        Ok(())
    }

    /// Makes room for more elements, which at least doubles if there is too little.
    pub fn reserve<T>(&self, values: &mut Vec<T>, more: usize) -> Result<()> {
        Growth::of(values, more).reserve(values, |growth| self.grow(growth))
    }

    /// Appends bytes.
    pub fn extend(&self, bytes: &mut Vec<u8>, more: &[u8]) -> Result<()> {
        self.reserve(bytes, more.len())?;
        bytes.extend_from_slice(more);
        Ok(())
    }

    #[cold]
    #[inline(never)]
    pub fn exceeded(&self, bytes: u64) -> Error {
        let (left, given) = (self.left.get(), self.given.get());
        Error::limit(format!(
            "the value needs {bytes} more bytes of memory, {left} of {given} are left; \
             Limits::with_max_alloc sets another limit"
        ))
    }
}

/// A block of memory that is replaced by a longer one: their lengths in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    pub old: u64,
    pub new: u64,
}

impl Growth {
    fn new(size: usize, old: usize, new: usize) -> Self {
        let bytes = |count: usize| (count as u64).saturating_mul(size as u64);
        Self { old: bytes(old), new: bytes(new) }
    }

    /// What `values` needs for `more` elements. It at least doubles, if it has too little room.
    pub fn of<T>(values: &Vec<T>, more: usize) -> Self {
        let (old, wanted) = (values.capacity(), values.len().saturating_add(more));
        let new = if wanted <= old { old } else { wanted.max(old.saturating_mul(2)) };
        Self::new(size_of::<T>(), old, new)
    }

    /// Makes `values` as long as it says, if it grows. `take` takes the bytes from the budget.
    #[inline]
    pub fn reserve<T>(
        self,
        values: &mut Vec<T>,
        take: impl FnOnce(Self) -> Result<()>,
    ) -> Result<()> {
        if self.new == self.old {
            return Ok(());
        }
        take(self)?;
        let count = usize::try_from(self.new).unwrap_or(usize::MAX) / size_of::<T>().max(1);
        values.try_reserve_exact(count - values.len()).map_err(|_| {
            let bytes = self.new;
            Error::limit(format!("out of memory: cannot allocate {bytes} bytes"))
        })
    }
}

/// The number of elements for which a collection has room that a visitor fills. The visitor is serde's for a `Vec`, or one
/// that takes as much.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// The number of further elements that fit.
    free: usize,
    capacity: usize,
}

impl Room {
    /// Nothing was reserved yet.
    pub const NONE: Self = Self { free: 0, capacity: 0 };
    /// The elements are part of a tuple or struct, whose memory is that of an element or field around it.
    pub const INSIDE: Self = Self { free: usize::MAX, capacity: 0 };

    /// Takes the place of one more element. Returns true if there is none, and [`grow`](Self::grow) has to make room for it.
    #[inline(always)]
    pub fn is_used_up(&mut self) -> bool {
        match self.free.checked_sub(1) {
            Some(free) => {
                self.free = free;
                false
            }
            None => true,
        }
    }

    /// Makes room for one more element of `size` bytes, as a `Vec` does, and takes its place. Before the first one, serde has
    /// reserved memory for `left` elements, but not for many.
    #[cold]
    #[inline(never)]
    pub fn grow(&mut self, size: usize, left: usize) -> Growth {
        let old = self.capacity;
        let Some(reserved) = RESERVED.checked_div(size) else {
            self.free = usize::MAX;
            return Growth { old: 0, new: 0 };
        };
        let least = match size {
            1 => 8,
            2..=1024 => 4,
            _ => 1,
        };
        self.capacity = match (old, left.min(reserved)) {
            (0, 0) => least,
            (0, told) => told,
            _ => old.saturating_mul(2).max(least),
        };
        self.free = self.capacity - old - 1;
        Growth::new(size, old, self.capacity)
    }
}

/// Like [`Room`], for the entries of a map.
#[derive(Clone, Copy, Debug)]
pub struct MapRoom {
    /// The number of further entries that fit.
    free: usize,
    is_first: bool,
    /// The size of a key.
    key: usize,
}

impl MapRoom {
    /// Nothing was reserved yet.
    pub const NONE: Self = Self { free: 0, is_first: true, key: 0 };
    /// The entries are the fields of a struct.
    pub const INSIDE: Self = Self { free: usize::MAX, ..Self::NONE };

    /// Notes the type of the keys.
    #[inline(always)]
    pub fn key<K>(&mut self) {
        self.key = size_of::<K>();
    }

    /// Takes the place of one more entry. Returns true if there is none, and [`grow`](Self::grow) has to make room for it.
    #[inline(always)]
    pub fn is_used_up(&mut self) -> bool {
        match self.free.checked_sub(1) {
            Some(free) => {
                self.free = free;
                false
            }
            None => true,
        }
    }

    /// Makes room for some more entries, whose values have `value` bytes, and takes the place of one. `left` is the number of
    /// entries from this one on. Returns the number of bytes that are taken.
    ///
    /// A `HashMap` has room for up to 16/7 as many entries as it has or was told of. While it grows, it has half as much
    /// again. A node of a `BTreeMap` has room for 11 entries, and is almost half full unless it is the only one.
    #[cold]
    #[inline(never)]
    pub fn grow(&mut self, value: usize, left: usize) -> u64 {
        const NODE: usize = 11;
        const MORE: usize = 16;

        let size = self.key.saturating_add(value);
        let (entries, least) = match self.is_first {
            true => (left.min(RESERVED / size.max(1)).max(1), NODE * (size + 2)),
            false => (left.clamp(1, MORE), 0),
        };
        (self.free, self.is_first) = (entries - 1, false);
        // Four more bytes are for the hashes in a `HashMap`, and for the pointers in a `BTreeMap`.
        let bytes = entries.saturating_mul(size.saturating_mul(7) / 2 + 4);
        bytes.max(least) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_that_of_a_vec() {
        fn check<T: Clone>(element: &T, told: usize, count: usize) {
            let told = if size_of::<T>() == 0 { 0 } else { told.min(RESERVED / size_of::<T>()) };
            let (mut values, mut room) = (Vec::with_capacity(told), Room::NONE);
            for index in 0..count {
                if room.is_used_up() {
                    room.grow(size_of::<T>(), told);
                }
                values.push(element.clone());
                if size_of::<T>() > 0 {
                    let found = room.capacity;
                    assert_eq!(values.capacity(), found, "{} {told} {index}", size_of::<T>());
                }
            }
        }
        for told in [0, 1, 3, 1000, 1 << 20] {
            for count in [0, 1, 5, 1000] {
                check(&(), told, count);
                check(&0u8, told, count);
                check(&0u64, told, count);
                check(&[0u8; 1000], told, count);
                check(&[0u8; 1025], told, count);
            }
        }
    }

    #[test]
    fn the_input_adds_to_the_budget_once() {
        let budget = Budget::new(Limits::default());
        let free = budget.given.get();
        budget.allow(100);
        budget.allow(100);
        assert_eq!(budget.given.get(), free + 100);
        budget.start(0);
        budget.allow(100);
        assert_eq!((budget.given.get(), budget.taken()), (free + 200, 0));
        assert!(budget.take(free + 200) && !budget.take(1));
        let set = Budget::new(Limits::default().with_max_alloc(7));
        set.allow(1000);
        assert!(!set.take(8) && set.take(7));
        assert!(set.charge(1).unwrap_err().to_string().contains("with_max_alloc"));
    }
}
