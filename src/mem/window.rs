//! The bytes that a decoder reads next, wherever they are.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::rc::Rc;
use std::slice;

/// A source that has some of its next bytes in a buffer.
pub trait Buffered {
    /// The bytes in the buffer.
    fn buffered(&self) -> &[u8];

    /// Moves past the first `n` bytes of the buffer.
    fn leave(&mut self, n: usize);
}

/// The next bytes. They are in a slice that lives for `'de`, in one that lives for `'b`, in a shared
/// vector, or in the buffer of a source.
///
/// Reading them takes no branch on where they are. Bytes that were passed stay in the buffer of the source until [`with`]
/// uses it. So who drops the window has to tell the source how far it has come.
///
/// [`with`]: Self::with
pub struct Window<'de, 'b, S: Buffered + ?Sized> {
    start: NonNull<u8>,
    len: usize,
    /// The start of the slice, or of what the source has buffered.
    first: NonNull<u8>,
    is_lent: bool,
    /// Whose buffer it is. Nobody else uses the source as long as the window lives.
    source: Option<NonNull<S>>,
    /// Whose bytes they are, if it is this vector.
    _kept: Option<Rc<Vec<u8>>>,
    lives: PhantomData<(&'de [u8], &'b [u8], &'b mut S)>,
}

impl<'de, 'b, S: Buffered + ?Sized> Window<'de, 'b, S> {
    /// Bytes that values can borrow.
    #[inline]
    pub fn lent(bytes: &'de [u8]) -> Self {
        // SAFETY: the slice lives for `'de`.
        Self { is_lent: true, ..unsafe { Self::new(bytes, None) } }
    }

    /// The bytes of a shared vector, from `start` on.
    pub fn kept(bytes: Rc<Vec<u8>>, start: usize) -> Self {
        let part = bytes.get(start..).unwrap_or_default();
        // SAFETY: the window keeps the vector, and nobody changes a vector that is shared: who wants to is given it only if it
        // has no other owner.
        let window = unsafe { Self::new(part, None) };
        Self { _kept: Some(bytes), ..window }
    }

    /// The bytes that a source has in its buffer.
    pub fn of(source: &'b mut S) -> Self {
        let source = NonNull::from(source);
        // SAFETY: `source` was made from a reference, and these are the bytes that it has buffered.
        unsafe { Self::new(source.as_ref().buffered(), Some(source)) }
    }

    /// # Safety
    ///
    /// The bytes must live for `'de` or `'b`, be in a vector that the window keeps, or be those that the source has buffered.
    #[inline]
    unsafe fn new(bytes: &[u8], source: Option<NonNull<S>>) -> Self {
        let start = NonNull::from(bytes).cast();
        Self {
            start,
            len: bytes.len(),
            first: start,
            is_lent: false,
            source,
            _kept: None,
            lives: PhantomData,
        }
    }

    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `start` and `len` are those of a slice, or of the end of one: `pass` only makes it shorter. The slice lives
        // for `'de` or `'b`, or is in the vector that is kept, or the source has buffered it. Then it is as if the source were still borrowed: it was given
        // away for `'b`, and only `with` uses it, which takes the window anew afterwards.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// The bytes, if values can borrow them.
    #[inline]
    pub fn lent_bytes(&self) -> Option<&'de [u8]> {
        // SAFETY: as in `bytes`. If `is_lent`, the slice lives for `'de`.
        self.is_lent.then(|| unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) })
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub fn has_source(&self) -> bool {
        self.source.is_some()
    }

    /// Moves past the first `n` bytes. `n` is at most the number of bytes.
    #[inline]
    pub fn pass(&mut self, n: usize) {
        let n = n.min(self.len);
        // SAFETY: the result is in the slice or at its end.
        self.start = unsafe { self.start.add(n) };
        self.len -= n;
    }

    /// Moves past the first `skip + len` bytes and returns the last `len` of them.
    #[inline]
    pub fn take(&mut self, skip: usize, len: usize) -> Option<&[u8]> {
        let taken = skip.checked_add(len).filter(|taken| *taken <= self.len)?;
        let start = self.start;
        self.pass(taken);
        // SAFETY: these were bytes of the window: see `bytes`. They are there as long as the window is borrowed.
        Some(unsafe { slice::from_raw_parts(start.as_ptr().add(skip), len) })
    }

    /// All bytes of the slice, or all that the source had buffered when it was used last. The last ones are
    /// [`bytes`](Self::bytes), and those before them were passed.
    #[inline]
    pub fn whole(&self) -> &[u8] {
        // SAFETY: as in `bytes`.
        unsafe { slice::from_raw_parts(self.first.as_ptr(), self.whole_len()) }
    }

    /// Like [`whole`](Self::whole), if values can borrow the bytes.
    pub fn lent_whole(&self) -> Option<&'de [u8]> {
        // SAFETY: as in `lent_bytes`.
        let whole = || unsafe { slice::from_raw_parts(self.first.as_ptr(), self.whole_len()) };
        self.is_lent.then(whole)
    }

    #[inline]
    fn whole_len(&self) -> usize {
        self.start.addr().get() - self.first.addr().get() + self.len
    }

    /// The last `len` bytes that were passed, unless the source was used since.
    pub fn passed(&self, len: usize) -> Option<&[u8]> {
        let passed = self.whole().get(..self.whole_len() - self.len)?;
        passed.get(passed.len().checked_sub(len)?..)
    }

    /// Lets `act` use the source, after what was passed has left its buffer. `None` if there is no source.
    pub fn with<T>(&mut self, act: impl FnOnce(&mut S) -> T) -> Option<T> {
        // SAFETY: `of` was given the source for `'b`. Nobody uses it but this function, and no slice of its buffer is left,
        // because `self` is borrowed.
        let source = unsafe { self.source?.as_mut() };
        let passed = source.buffered().len().saturating_sub(self.len);
        // What was buffered may be gone when `leave` or `act` panics.
        self.hold(&[]);
        source.leave(passed);
        let value = act(source);
        self.hold(source.buffered());
        Some(value)
    }

    /// Holds what the source has buffered, or nothing.
    fn hold(&mut self, bytes: &[u8]) {
        (self.start, self.len) = (NonNull::from(bytes).cast(), bytes.len());
        self.first = self.start;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four bytes at a time, in a buffer of its own.
    struct Fours(Vec<u8>, Box<[u8]>);

    impl Buffered for Fours {
        fn buffered(&self) -> &[u8] {
            &self.1
        }

        fn leave(&mut self, n: usize) {
            self.1 = self.1[n..].into();
        }
    }

    impl Fours {
        fn more(&mut self) {
            let more = self.0.drain(..4.min(self.0.len()));
            self.1 = self.1.iter().copied().chain(more).collect();
        }
    }

    #[test]
    fn bytes_of_slices() {
        let bytes = [1, 2, 3, 4];
        let mut window = Window::<Fours>::lent(&bytes);
        assert_eq!(window.take(1, 2), Some(&[2, 3][..]));
        assert_eq!((window.bytes(), window.lent_bytes()), (&[4][..], Some(&[4][..])));
        assert_eq!((window.whole(), window.lent_whole()), (&bytes[..], Some(&bytes[..])));
        assert_eq!(window.take(1, 1), None);
        assert_eq!(window.take(usize::MAX, 1), None);
        window.pass(9);
        assert_eq!((window.len(), window.with(|_| ())), (0, None));
        let shared = Rc::new(bytes.to_vec());
        let window = Window::<Fours>::kept(shared.clone(), 1);
        drop(shared);
        assert_eq!((window.bytes(), window.lent_bytes()), (&bytes[1..], None));
        assert_eq!((window.whole(), window.lent_whole()), (&bytes[1..], None));
        assert!(Window::<Fours>::kept(Rc::default(), 1).bytes().is_empty());
    }

    #[test]
    fn bytes_of_a_source() {
        let mut source = Fours((0..10).collect(), Box::default());
        let mut window = Window::of(&mut source);
        assert_eq!((window.len(), window.has_source()), (0, true));
        window.with(Fours::more);
        window.pass(1);
        assert_eq!(window.take(1, 1), Some(&[2][..]));
        assert_eq!((window.passed(2), window.passed(4)), (Some(&[1, 2][..]), None));
        window.with(Fours::more);
        assert_eq!((window.passed(0), window.passed(1)), (Some(&[][..]), None));
        assert_eq!((window.bytes(), window.lent_bytes()), (&[3, 4, 5, 6, 7][..], None));
        window.pass(4);
        window.with(|_| ());
        assert_eq!(source.buffered(), [7]);
    }

    #[test]
    fn a_source_that_panics_leaves_nothing() {
        let mut source = Fours((0..10).collect(), Box::default());
        let mut window = Window::of(&mut source);
        window.with(Fours::more);
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            window.with(|source| {
                source.1 = Box::default();
                panic!("a reader");
            })
        }));
        assert!(panic.is_err());
        assert!(window.bytes().is_empty());
    }
}
