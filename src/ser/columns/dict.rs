//! Finds out whether few distinct texts or byte strings make up a column, which is then written as a dict.

use std::cell::OnceCell;
use std::hash::{BuildHasher as _, RandomState};

use super::bytes::Bytes;
use super::node::{Lengths, Strings};
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
    pub strings: Strings,
}

impl Dict {
    /// `None` if a dict does not save enough.
    pub fn of(strings: &Strings) -> Option<Self> {
        let rows = strings.lengths.rows();
        let before = cost(&strings.lengths) + strings.bytes.len();
        let most = before - before.div_ceil(SAVING);
        if rows + HEADS > most {
            return None;
        }
        let all = strings.bytes.joined();
        let mut known = Known::new();
        let mut dict = Self {
            codes: Bytes::default(),
            strings: Strings { is_text: strings.is_text, ..Strings::default() },
        };
        // The rows that are in the dict.
        let mut distinct: Vec<&[u8]> = Vec::new();
        let mut rest = &*all;
        for (row, len) in strings.lengths.iter().enumerate() {
            let (string, behind) = rest.split_at_checked(len as usize)?;
            rest = behind;
            let code = known.code(string, &distinct);
            if code == distinct.len() {
                distinct.push(string);
                dict.strings.push(string, len);
                if distinct.len() > WIDE || dict.strings.bytes.len() + rows + HEADS > most {
                    return None;
                }
            }
            #[allow(clippy::cast_possible_truncation)] // There are at most `WIDE` codes.
            dict.codes.push((code as u16).to_le_bytes());
            if row + 1 == SAMPLE && distinct.len() > SAMPLE / 4 * 3 {
                return None;
            }
        }
        let codes = if distinct.len() > 1 << 8 { 2 * rows } else { rows };
        let after = codes + cost(&dict.strings.lengths) + dict.strings.bytes.len() + HEADS;
        (after <= most && before / REPETITION <= after).then_some(dict)
    }
}

/// The number of bytes that lengths take.
fn cost(lengths: &Lengths) -> usize {
    if lengths.same().is_some() {
        return 0;
    }
    let most = lengths.iter().max().unwrap_or(0);
    let size = if most > 0xffff { 4 } else { 1 + usize::from(most > 0xff) };
    lengths.rows() * size
}

/// Finds strings by their hashes.
struct Known {
    /// The code of a string plus one, or 0, in the place that its hash says, or in the next free one.
    places: Vec<u32>,
    count: usize,
    last: Option<usize>,
}

thread_local! {
    /// Nobody can choose strings whose hashes are equal.
    static SEED: OnceCell<u64> = const { OnceCell::new() };
}

impl Known {
    fn new() -> Self {
        Self { places: vec![0; 256], count: 0, last: None }
    }

    /// The code of a string. The number of codes so far, if it is new.
    fn code(&mut self, string: &[u8], distinct: &[&[u8]]) -> usize {
        // Rows are often equal to the one before.
        if let Some(last) = self.last
            && distinct.get(last) == Some(&string)
        {
            return last;
        }
        if self.count * 2 >= self.places.len() {
            self.places = vec![0; self.places.len() * 4];
            for (code, string) in distinct.iter().enumerate() {
                let (at, _) = self.place(string, distinct);
                self.set(at, code);
            }
        }
        let (at, found) = self.place(string, distinct);
        let code = found.unwrap_or(distinct.len());
        if found.is_none() {
            self.set(at, code);
            self.count += 1;
        }
        self.last = Some(code);
        code
    }

    /// The place of a string, and its code if it is known.
    fn place(&self, string: &[u8], distinct: &[&[u8]]) -> (usize, Option<usize>) {
        let seed = SEED.try_with(|seed| *seed.get_or_init(|| RandomState::new().hash_one(0)));
        let hash = checksum::of(string, seed.unwrap_or_default());
        let mask = self.places.len() - 1;
        #[allow(clippy::cast_possible_truncation)] // Only the lower bits count.
        let mut at = hash as usize & mask;
        loop {
            let code = self.places.get(at).map_or(0, |place| *place as usize);
            if code == 0 {
                return (at, None);
            }
            if distinct.get(code - 1) == Some(&string) {
                return (at, Some(code - 1));
            }
            at = (at + 1) & mask;
        }
    }

    fn set(&mut self, at: usize, code: usize) {
        if let Some(place) = self.places.get_mut(at) {
            *place = u32::try_from(code + 1).unwrap_or(0);
        }
    }
}
