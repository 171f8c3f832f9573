//! The memory that a document may make its reader allocate (`SPEC.md`, section 4).
//!
//! There is one budget for a value. What is allocated is taken from it by its real capacity: the elements of a `Vec` while
//! it grows, the nodes of a [`Value`](crate::Value), the payloads of tensors, decompressed bytes. What the input allows
//! is added to it: see [`Limits::memory`].

use std::cell::Cell;

use crate::error::{Advice, Error, Result};
use crate::options::Limits;

/// What a row that takes no bytes of input costs. It takes time, even if it takes no memory.
pub const FREE_ROW: u64 = 4;

/// Boxes of at most so many bytes are not counted. An item takes at least one byte of input.
const SMALL: usize = 32;

/// The most bytes that serde reserves at once for a collection, whatever number of elements it is told.
const RESERVED: usize = 1 << 20;

/// The number of bytes that may still be allocated for a value. The reader of a document that is inside of another one
/// has a copy, and gives it back: see [`Budget::take_over`].
#[derive(Clone, Debug)]
pub struct Budget {
    pub limits: Limits,
    /// Whether the document is the metadata of a segment.
    pub strict: bool,
    left: Cell<u64>,
    /// The number of bytes that were given in all.
    given: Cell<u64>,
    /// The part of `given` that the current input allows.
    allowed: Cell<u64>,
    /// The part of what is taken that stays taken: see [`keep`](Self::keep).
    kept: Cell<u64>,
    /// The size of the place for the next value, if it is not small, and if no value was read into it.
    place: Cell<usize>,
    /// Whether a struct has to be read again, by the names of its fields: see [`refuse_order`](Self::refuse_order).
    refused: Cell<bool>,
}

impl Budget {
    /// The budget for input of which nothing was read yet.
    #[inline]
    pub fn new(limits: Limits) -> Self {
        let given = limits.memory(0, 0);
        Self {
            limits,
            strict: false,
            left: given.into(),
            given: given.into(),
            allowed: 0.into(),
            kept: 0.into(),
            place: 0.into(),
            refused: false.into(),
        }
    }

    /// The budget for a value that is in memory already.
    pub fn unlimited() -> Self {
        Self::new(Limits::default().with_max_alloc(u64::MAX))
    }

    /// Copies the state of `other`.
    pub fn take_over(&self, other: &Self) {
        self.left.set(other.left.get());
        self.given.set(other.given.get());
        self.allowed.set(other.allowed.get());
        self.kept.set(other.kept.get());
        self.place.set(other.place.get());
    }

    /// Adds what the input allows: `allowed` bytes so far.
    #[inline]
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
    #[inline]
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
    #[inline]
    pub fn charge(&self, bytes: u64) -> Result<()> {
        if self.take(bytes) { Ok(()) } else { self.exceed() }
    }

    /// Gives back bytes that were freed.
    pub fn refund(&self, bytes: u64) {
        self.left.set(self.left.get().saturating_add(bytes));
    }

    /// Gives back the room of a vector that is freed next.
    pub fn refund_vec<T>(&self, values: &Vec<T>) {
        self.refund(values.capacity().saturating_mul(size_of::<T>()) as u64);
    }

    /// The number of bytes that are taken.
    pub fn taken(&self) -> u64 {
        self.given.get().saturating_sub(self.left.get())
    }

    /// Notes that bytes that were taken are not given back when what was read is freed, because they stand for the time
    /// that reading took, or for what was made of it.
    pub fn keep(&self, bytes: u64) {
        self.kept.set(self.kept.get().saturating_add(bytes));
    }

    /// The number of bytes that are taken, without those that are [kept](Self::keep).
    pub fn held(&self) -> u64 {
        self.taken().saturating_sub(self.kept.get())
    }

    /// Gives back all but what is kept, to where `held` bytes are taken. All that was allocated since then is freed.
    pub fn release(&self, held: u64) {
        self.refund(self.held().saturating_sub(held));
    }

    /// Makes room for one more element: see [`Room::grow`].
    #[cold]
    #[inline(never)]
    pub fn element(&self, room: &mut Room, element: &ElementSize, left: usize) -> Result<()> {
        self.grow(room.grow(element, left))
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

    /// Notes that memory was taken for a value of this type, which is read next.
    #[inline]
    pub fn place(&self, element: &ElementSize) {
        if element.size > SMALL {
            self.place.set(element.size);
        }
    }

    /// The bytes that a value of this type takes in addition. It is in a box if it is larger than the place for it.
    #[inline]
    pub fn in_box<T>(&self) -> Option<u64> {
        if const { size_of::<T>() > SMALL } && self.place.take() < size_of::<T>() {
            return Some(size_of::<T>() as u64);
        }
        None
    }

    /// Takes the bytes of a value of this type, if it is in a box.
    #[inline]
    pub fn charge_box<T>(&self) -> Result<()> {
        match self.in_box::<T>() {
            Some(bytes) => self.charge(bytes),
            None => Ok(()),
        }
    }

    /// Notes that a visitor does not take the fields of a struct in order. The struct has to be read again, whatever became
    /// of the error.
    pub fn refuse_order(&self) {
        self.refused.set(true);
    }

    /// Whether an order was refused, and the struct was not read again yet.
    #[inline]
    pub fn is_refused(&self) -> bool {
        self.refused.get()
    }

    /// Like [`is_refused`](Self::is_refused), for who reads the struct again.
    pub fn take_refusal(&self) -> bool {
        self.refused.take()
    }

    /// More bytes are wanted than are left. That is an error, unless the largest limit was set, which is none: the input may
    /// announce any length, and what is missing of it is the error then.
    #[cold]
    #[inline(never)]
    fn exceed(&self) -> Result<()> {
        let most = match self.limits.max_alloc() {
            Some(u64::MAX) => return Ok(()),
            Some(most) => format!("the limit of {most} bytes"),
            None => "64 MiB and 64 times its input".to_owned(),
        };
        let what = format!("the value needs more memory than {most}");
        Err(Error::limit(what).with_advice(Advice::MaxAlloc))
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
        let bytes = |count: usize| count.saturating_mul(size) as u64;
        Self { old: bytes(old), new: bytes(new) }
    }

    /// What `values` needs for exactly `more` elements.
    pub fn by<T>(values: &Vec<T>, more: usize) -> Self {
        let (old, wanted) = (values.capacity(), values.len().saturating_add(more));
        Self::new(size_of::<T>(), old, wanted.max(old))
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

/// What a [`Room`] has to know of the type of its elements.
#[derive(Clone, Copy, Debug)]
pub struct ElementSize {
    pub size: usize,
    /// The most elements for which serde reserves memory at once.
    reserved: usize,
    /// The least room of a `Vec` that grows.
    least: usize,
}

impl ElementSize {
    pub const fn of<T>() -> Self {
        let size = size_of::<T>();
        let least = match size {
            1 => 8,
            2..=1024 => 4,
            _ => 1,
        };
        // Elements without size are never counted.
        let reserved = RESERVED / if size == 0 { 1 } else { size };
        Self { size, reserved, least }
    }
}

/// The room of a collection that a visitor fills. The visitor is serde's for a `Vec`, or one that takes as much.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// The number of elements for which memory was taken.
    all: usize,
    /// The number of further elements that fit.
    free: usize,
}

impl Room {
    /// Nothing was reserved yet.
    pub const NONE: Self = Self { all: 0, free: 0 };
    /// The elements are part of a tuple or struct, whose memory is that of an element or field around it.
    pub const INSIDE: Self = Self { all: 0, free: usize::MAX };

    /// Takes the room of one more element. Returns false if there is none, and [`grow`](Self::grow) has to make it. Elements
    /// without size need none: some visitors pass over others with them.
    #[inline]
    pub fn take(&mut self, element: &ElementSize) -> bool {
        if element.size == 0 {
            return true;
        }
        let free = self.free.checked_sub(1);
        self.free = free.unwrap_or_default();
        free.is_some()
    }

    /// Makes room for some more elements, as a `Vec` does, and takes that of one. Before the first one, serde has reserved
    /// memory for `left` elements, but not for many.
    pub fn grow(&mut self, element: &ElementSize, left: usize) -> Growth {
        let ElementSize { size, reserved, least } = *element;
        let (old, first) = (self.all, left.min(reserved));
        self.all = if old == 0 && first > 0 { first } else { old.saturating_mul(2).max(least) };
        self.free = self.all - old - 1;
        Growth::new(size, old, self.all)
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
    #[inline]
    pub fn key<K>(&mut self) {
        self.key = size_of::<K>();
    }

    /// Takes the place of one more entry. Returns true if there is none, and [`grow`](Self::grow) has to make room for it.
    #[inline]
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
        let (entries, least) = if self.is_first {
            (left.min(RESERVED / size.max(1)).max(1), NODE * (size + 2))
        } else {
            (left.clamp(1, MORE), 0)
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
            let told = told.min(RESERVED / size_of::<T>());
            let (mut values, mut room) = (Vec::with_capacity(told), Room::NONE);
            for index in 0..count {
                if !room.take(&ElementSize::of::<T>()) {
                    room.grow(&ElementSize::of::<T>(), told);
                }
                values.push(element.clone());
                assert_eq!(values.capacity(), room.all, "{} {told} {index}", size_of::<T>());
            }
        }
        for told in [0, 1, 3, 1000, 1 << 20] {
            for count in [0, 1, 5, 1000] {
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

    #[test]
    fn the_largest_limit_is_none() {
        let budget = Budget::new(Limits::default().with_max_alloc(u64::MAX));
        budget.charge(1).unwrap();
        budget.charge(u64::MAX).unwrap();
    }
}
