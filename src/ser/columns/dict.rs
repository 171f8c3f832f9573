//! Finds out whether few distinct texts or byte strings make up a column, which is then written as a dict.

use std::cell::OnceCell;
use std::hash::{BuildHasher as _, RandomState};

use super::builder::{LengthsBuilder, StringsBuilder};
use super::bytes::Bytes;
use crate::io::checksum;

/// After this many rows, at most three in four may be distinct.
const SAMPLE: usize = 256;
/// About how many bytes a dict takes besides its codes and its rows.
const HEADS: usize = 16;
/// A dict is only written if it saves at least one part in so many.
const SAVING: usize = 5;
/// The rows may take at most so many times the bytes of the dict. A reader allows 64 times its input, and takes the memory of
/// the texts from it, too.
const REPETITION: usize = 32;
/// The most rows that codes can tell apart.
const WIDE: usize = 1 << 16;

/// The distinct rows of a column, and for each row which of them it is, as a number of the type u16.
pub struct Dict {
    pub codes: Bytes,
    pub strings: StringsBuilder,
}

impl StringsBuilder {
    /// The dict as which a group is written that has no more rows than now. `None` if it would not save enough.
    pub fn dict(&self) -> Option<&Dict> {
        self.dict.get_or_init(|| Dict::of(self).map(Box::new)).as_deref()
    }
}

impl Dict {
    /// `None` if a dict does not save enough.
    pub fn of(strings: &StringsBuilder) -> Option<Self> {
        let before = cost(&strings.lengths) + strings.bytes.len();
        Self::within(strings, before, Some(before - before.div_ceil(SAVING)))
    }

    /// `None` if readers would refuse the dict.
    pub fn of_category(strings: &StringsBuilder) -> Option<Self> {
        let before = cost(&strings.lengths) + strings.bytes.len();
        Self::within(strings, before, None)
    }

    /// `before` is the number of bytes that the strings take, and `most` the most that a dict may take, if it is to save some.
    fn within(strings: &StringsBuilder, before: usize, most: Option<usize>) -> Option<Self> {
        let rows = strings.lengths.rows();
        let is_long = |bytes: usize| most.is_some_and(|most| bytes > most);
        if is_long(rows + HEADS) {
            return None;
        }
        let mut pieces = strings.bytes.pieces();
        let mut rest: &[u8] = &[];
        let mut known = DistinctRows::new();
        let mut dict = Self {
            codes: Bytes::default(),
            strings: StringsBuilder { is_text: strings.is_text, ..StringsBuilder::default() },
        };
        strings.lengths.iter().try_for_each(|len| {
            while rest.is_empty() && len > 0 {
                rest = pieces.next()?;
            }
            let string = rest.get(..len as usize)?;
            let (code, is_new) = known.code(string, rest);
            rest = rest.get(len as usize..)?;
            if is_new {
                dict.strings.push(string, len);
                let has_many = known.len() > SAMPLE / 4 * 3;
                let is_sample = most.is_some()
                    && rows >= SAMPLE
                    && dict.codes.len() / size_of::<u16>() < SAMPLE;
                let size = dict.strings.bytes.len() + rows + HEADS;
                if has_many && is_sample || known.len() > WIDE || is_long(size) {
                    return None;
                }
            }
            #[allow(clippy::cast_possible_truncation)] // There are at most `WIDE` codes.
            dict.codes.push((code as u16).to_le_bytes());
            Some(())
        })?;
        let codes = if known.len() > 1 << 8 { 2 * rows } else { rows };
        let after = codes + cost(&dict.strings.lengths) + dict.strings.bytes.len() + HEADS;
        (!is_long(after) && before / REPETITION <= after).then_some(dict)
    }
}

/// The number of bytes that lengths take.
fn cost(lengths: &LengthsBuilder) -> usize {
    if lengths.same().is_some() {
        return 0;
    }
    let most = lengths.iter().max().unwrap_or(0);
    let size = if most > 0xffff { 4 } else { 1 + usize::from(most > 0xff) };
    lengths.rows() * size
}

/// The distinct strings so far. The code of a string is the number of strings before it.
struct DistinctRows<'a> {
    /// The place that the hash of a string says, or the next free one, has the code plus one, and the upper half of the hash.
    /// A free place has 0. There are at least four times as many places as strings, so that few are next to each other.
    places: Vec<(u32, u32)>,
    strings: Vec<(RowKey, &'a [u8])>,
    seed: u64,
}

/// What is compared first.
#[derive(Clone, Copy)]
struct RowKey {
    /// The first 16 bytes, with zeros behind a shorter string.
    head: u128,
    hash: u64,
}

thread_local! {
    /// Nobody can choose strings whose hashes are equal.
    static SEED: OnceCell<u64> = const { OnceCell::new() };
}

impl RowKey {
    /// `from` begins with `string`, and goes on behind it where it can: 16 bytes are then loaded at once.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // The halves of numbers are wanted.
    fn of(string: &[u8], from: &[u8], seed: u64) -> Self {
        let len = string.len();
        let head = if let Some(head) = from.first_chunk() {
            let beyond = 128 - 8 * len.min(16) as u32;
            u128::from_le_bytes(*head) & u128::MAX.checked_shr(beyond).unwrap_or(0)
        } else {
            let mut head = [0; 16];
            head.iter_mut().zip(string).for_each(|(to, from)| *to = *from);
            u128::from_le_bytes(head)
        };
        if len > 16 {
            return Self { head, hash: checksum::of(string, seed) };
        }
        // The upper half of a product depends on its lower bits, and the lower half on its upper ones.
        let low = head as u64 ^ seed ^ len as u64;
        let high = (head >> 64) as u64 ^ seed.rotate_left(32);
        let product = u128::from(low) * u128::from(high);
        Self { head, hash: product as u64 ^ (product >> 64) as u64 }
    }
}

impl<'a> DistinctRows<'a> {
    fn new() -> Self {
        let seed = SEED.try_with(|seed| *seed.get_or_init(|| RandomState::new().hash_one(0)));
        Self { places: vec![(0, 0); 1024], strings: Vec::new(), seed: seed.unwrap_or_default() }
    }

    fn len(&self) -> usize {
        self.strings.len()
    }

    /// The code of the string with which `from` begins, and whether it is new.
    #[inline]
    fn code(&mut self, string: &'a [u8], from: &[u8]) -> (usize, bool) {
        let key = RowKey::of(string, from, self.seed);
        match self.place(key, string) {
            (_, Some(code)) => (code, false),
            (at, None) => {
                self.strings.push((key, string));
                self.set(at, key, self.len());
                if self.len() * 4 > self.places.len() {
                    self.grow();
                }
                (self.len() - 1, true)
            }
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.places = vec![(0, 0); self.places.len() * 4];
        for number in 1..=self.len() {
            if let Some(&(key, string)) = self.strings.get(number - 1) {
                let (at, _) = self.place(key, string);
                self.set(at, key, number);
            }
        }
    }

    /// The place of a string, and its code if it is known.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // Only the lower bits count.
    fn place(&self, key: RowKey, string: &[u8]) -> (usize, Option<usize>) {
        let mask = self.places.len() - 1;
        let mut at = key.hash as usize & mask;
        loop {
            let (number, upper) = self.places.get(at).copied().unwrap_or_default();
            let Some(code) = (number as usize).checked_sub(1) else { return (at, None) };
            if u64::from(upper) == key.hash >> 32
                && let Some((known, other)) = self.strings.get(code)
                && known.head == key.head
                && other.len() == string.len()
                && other.get(16..) == string.get(16..)
            {
                return (at, Some(code));
            }
            at = (at + 1) & mask;
        }
    }

    #[allow(clippy::cast_possible_truncation)] // The upper half of the hash.
    fn set(&mut self, at: usize, key: RowKey, number: usize) {
        if let Some(place) = self.places.get_mut(at) {
            *place = (u32::try_from(number).unwrap_or(0), (key.hash >> 32) as u32);
        }
    }
}
