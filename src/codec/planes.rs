//! The bytes of elements as planes, and back: plane `p` holds byte `p` of each element.
//!
//! The work is done in tiles that stay in the first cache. Elements are taken apart in halves (of 64 bits into 32,
//! then 16, then 8) because compilers turn each such step into a few vector instructions; they do not for one step
//! from 64 to 8 bits.

/// The number of elements in a tile.
const TILE: usize = 512;

/// The bytes of one plane, before they are merged.
#[derive(Debug, Clone, Copy)]
pub enum Plane<'a> {
    /// One byte for each element.
    Bytes(&'a [u8]),
    /// All bytes are this one.
    Constant(u8),
}

macro_rules! splits {
    ($whole:ident to $half:ident) => {
        /// Splits each number into its lower and its upper half.
        #[inline]
        pub fn $half(from: &[$whole], low: &mut [$half], high: &mut [$half]) {
            for ((whole, low), high) in from.iter().zip(low).zip(high) {
                *low = *whole as $half;
                *high = (*whole >> $half::BITS) as $half;
            }
        }
    };
}

/// Halves of numbers: `split::u8` splits `u16`s into bytes.
#[allow(clippy::cast_possible_truncation)]
mod split {
    splits!(u128 to u64);
    splits!(u64 to u32);
    splits!(u32 to u16);
    splits!(u16 to u8);
}

macro_rules! joins {
    ($half:ident to $whole:ident) => {
        /// Joins each lower and upper half to one number.
        #[inline]
        pub fn $whole(low: &[$half], high: &[$half], to: &mut [$whole]) {
            for ((to, low), high) in to.iter_mut().zip(low).zip(high) {
                *to = $whole::from(*low) | $whole::from(*high) << $half::BITS;
            }
        }
    };
}

/// Numbers from halves: `join::u16` joins bytes to `u16`s.
mod join {
    joins!(u8 to u16);
    joins!(u16 to u32);
    joins!(u32 to u64);
    joins!(u64 to u128);
}

/// Splits `elements`, of `width` bytes each, into planes of `planes.len() / width` bytes that follow each other.
/// With `rotated`, each element is first rotated left by one bit.
///
/// The caller has checked that `width` is 1, 2, 4, 8 or 16 and that `elements` and `planes` have the same length, a
/// multiple of `width`.
pub fn split(elements: &[u8], width: usize, rotated: bool, planes: &mut [u8]) {
    debug_assert_eq!(elements.len(), planes.len());
    debug_assert_eq!(elements.len() % width.max(1), 0);
    let count = elements.len() / width.max(1);
    if count == 0 {
        return;
    }
    match (width, rotated) {
        (1, _) => planes.copy_from_slice(elements),
        (2, false) => split_2::<false>(elements, planes, count),
        (2, true) => split_2::<true>(elements, planes, count),
        (4, false) => split_4::<false>(elements, planes, count),
        (4, true) => split_4::<true>(elements, planes, count),
        (8, false) => split_8::<false>(elements, planes, count),
        (8, true) => split_8::<true>(elements, planes, count),
        (_, false) => split_16::<false>(elements, planes, count),
        (_, true) => split_16::<true>(elements, planes, count),
    }
}

/// The planes as an array, each cut into tiles.
fn tiles_mut<const W: usize>(
    planes: &mut [u8],
    count: usize,
) -> [std::slice::ChunksMut<'_, u8>; W] {
    let mut planes = planes.chunks_exact_mut(count);
    std::array::from_fn(|_| planes.next().unwrap_or_default().chunks_mut(TILE))
}

macro_rules! loads {
    ($name:ident, $word:ident, $width:literal) => {
        #[inline]
        fn $name<const ROTATED: bool>(elements: &[[u8; $width]], words: &mut [$word]) {
            for (word, element) in words.iter_mut().zip(elements) {
                let value = $word::from_le_bytes(*element);
                *word = if ROTATED { value.rotate_left(1) } else { value };
            }
        }
    };
}
loads!(load_4, u32, 4);
loads!(load_8, u64, 8);
loads!(load_16, u128, 16);

fn split_2<const ROTATED: bool>(elements: &[u8], planes: &mut [u8], count: usize) {
    let mut to = tiles_mut::<2>(planes, count);
    for tile in elements.as_chunks::<2>().0.chunks(TILE) {
        let Some([p0, p1]) = next(&mut to) else { return };
        for ((element, p0), p1) in tile.iter().zip(p0).zip(p1) {
            let value = u16::from_le_bytes(*element);
            let value = if ROTATED { value.rotate_left(1) } else { value };
            [*p0, *p1] = value.to_le_bytes();
        }
    }
}

fn split_4<const ROTATED: bool>(elements: &[u8], planes: &mut [u8], count: usize) {
    let mut to = tiles_mut::<4>(planes, count);
    let mut words = [0; TILE];
    let [mut a, mut b] = [[0; TILE]; 2];
    for tile in elements.as_chunks::<4>().0.chunks(TILE) {
        load_4::<ROTATED>(tile, &mut words);
        split::u16(&words, &mut a, &mut b);
        let Some([p0, p1, p2, p3]) = next(&mut to) else { return };
        split::u8(&a, p0, p1);
        split::u8(&b, p2, p3);
    }
}

fn split_8<const ROTATED: bool>(elements: &[u8], planes: &mut [u8], count: usize) {
    let mut to = tiles_mut::<8>(planes, count);
    let mut words = [0; TILE];
    for tile in elements.as_chunks::<8>().0.chunks(TILE) {
        load_8::<ROTATED>(tile, &mut words);
        let Some(to) = next(&mut to) else { return };
        split_words(&words, to);
    }
}

fn split_16<const ROTATED: bool>(elements: &[u8], planes: &mut [u8], count: usize) {
    let mut to = tiles_mut::<16>(planes, count);
    let mut words = [0; TILE];
    let [mut low, mut high] = [[0; TILE]; 2];
    for tile in elements.as_chunks::<16>().0.chunks(TILE) {
        load_16::<ROTATED>(tile, &mut words);
        split::u64(&words, &mut low, &mut high);
        let Some([a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7]) = next(&mut to)
        else {
            return;
        };
        split_words(&low, [a0, a1, a2, a3, a4, a5, a6, a7]);
        split_words(&high, [b0, b1, b2, b3, b4, b5, b6, b7]);
    }
}

/// The next tile of each plane.
fn next<'a, const W: usize>(
    tiles: &mut [std::slice::ChunksMut<'a, u8>; W],
) -> Option<[&'a mut [u8]; W]> {
    let mut all = true;
    let next = tiles.each_mut().map(|tiles| {
        let tile = tiles.next();
        all &= tile.is_some();
        tile.unwrap_or_default()
    });
    all.then_some(next)
}

fn split_words(words: &[u64; TILE], to: [&mut [u8]; 8]) {
    let [p0, p1, p2, p3, p4, p5, p6, p7] = to;
    let [mut a, mut b] = [[0; TILE]; 2];
    let [mut aa, mut ab, mut ba, mut bb] = [[0; TILE]; 4];
    split::u32(words, &mut a, &mut b);
    split::u16(&a, &mut aa, &mut ab);
    split::u16(&b, &mut ba, &mut bb);
    split::u8(&aa, p0, p1);
    split::u8(&ab, p2, p3);
    split::u8(&ba, p4, p5);
    split::u8(&bb, p6, p7);
}

/// Merges planes into `elements`: the inverse of [`split`]. There is one plane for each byte of an element.
///
/// The caller has checked that there are 1, 2, 4, 8 or 16 planes, and that each has one byte for each element.
pub fn merge(planes: &[Plane], rotated: bool, elements: &mut [u8]) {
    match planes.len() {
        1 => match planes[0] {
            Plane::Bytes(bytes) => elements.copy_from_slice(bytes),
            Plane::Constant(byte) => elements.fill(byte),
        },
        2 if rotated => merge_2::<true>(planes, elements),
        2 => merge_2::<false>(planes, elements),
        4 if rotated => merge_4::<true>(planes, elements),
        4 => merge_4::<false>(planes, elements),
        8 if rotated => merge_8::<true>(planes, elements),
        8 => merge_8::<false>(planes, elements),
        _ if rotated => merge_16::<true>(planes, elements),
        _ => merge_16::<false>(planes, elements),
    }
}

/// Returns the tiles of planes one after the other.
struct Tiles<'a, const W: usize> {
    planes: [Plane<'a>; W],
    constants: [[u8; TILE]; W],
}

impl<'a, const W: usize> Tiles<'a, W> {
    fn new(planes: &[Plane<'a>]) -> Tiles<'a, W> {
        let planes =
            std::array::from_fn(|at| planes.get(at).copied().unwrap_or(Plane::Constant(0)));
        let constants = planes.map(|plane| match plane {
            Plane::Bytes(_) => [0; TILE],
            Plane::Constant(byte) => [byte; TILE],
        });
        Tiles { planes, constants }
    }

    /// The bytes of `count` elements from element `start`. `None` if a plane is shorter.
    #[inline]
    fn at(&self, start: usize, count: usize) -> Option<[&[u8]; W]> {
        let mut all = true;
        let tiles = std::array::from_fn(|at| {
            let tile = match self.planes[at] {
                Plane::Bytes(bytes) => bytes.get(start..start + count),
                Plane::Constant(_) => self.constants[at].get(..count),
            };
            all &= tile.is_some();
            tile.unwrap_or_default()
        });
        all.then_some(tiles)
    }
}

macro_rules! stores {
    ($name:ident, $word:ident, $width:literal) => {
        #[inline]
        fn $name<const ROTATED: bool>(words: &[$word], elements: &mut [[u8; $width]]) {
            for (element, word) in elements.iter_mut().zip(words) {
                let value = if ROTATED { word.rotate_right(1) } else { *word };
                *element = value.to_le_bytes();
            }
        }
    };
}
stores!(store_2, u16, 2);
stores!(store_4, u32, 4);
stores!(store_8, u64, 8);
stores!(store_16, u128, 16);

fn merge_2<const ROTATED: bool>(planes: &[Plane], elements: &mut [u8]) {
    let from = Tiles::<2>::new(planes);
    let mut words = [0; TILE];
    for (at, tile) in elements.as_chunks_mut::<2>().0.chunks_mut(TILE).enumerate() {
        let Some([p0, p1]) = from.at(at * TILE, tile.len()) else { return };
        join::u16(p0, p1, &mut words);
        store_2::<ROTATED>(&words, tile);
    }
}

fn merge_4<const ROTATED: bool>(planes: &[Plane], elements: &mut [u8]) {
    let from = Tiles::<4>::new(planes);
    let mut words = [0; TILE];
    let [mut a, mut b] = [[0; TILE]; 2];
    for (at, tile) in elements.as_chunks_mut::<4>().0.chunks_mut(TILE).enumerate() {
        let Some([p0, p1, p2, p3]) = from.at(at * TILE, tile.len()) else { return };
        join::u16(p0, p1, &mut a);
        join::u16(p2, p3, &mut b);
        join::u32(&a, &b, &mut words);
        store_4::<ROTATED>(&words, tile);
    }
}

fn merge_8<const ROTATED: bool>(planes: &[Plane], elements: &mut [u8]) {
    let from = Tiles::<8>::new(planes);
    let mut words = [0; TILE];
    for (at, tile) in elements.as_chunks_mut::<8>().0.chunks_mut(TILE).enumerate() {
        let Some(planes) = from.at(at * TILE, tile.len()) else { return };
        merge_words(planes, &mut words);
        store_8::<ROTATED>(&words, tile);
    }
}

fn merge_16<const ROTATED: bool>(planes: &[Plane], elements: &mut [u8]) {
    let from = Tiles::<16>::new(planes);
    let mut words = [0; TILE];
    let [mut low, mut high] = [[0; TILE]; 2];
    for (at, tile) in elements.as_chunks_mut::<16>().0.chunks_mut(TILE).enumerate() {
        let Some([a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7]) =
            from.at(at * TILE, tile.len())
        else {
            return;
        };
        merge_words([a0, a1, a2, a3, a4, a5, a6, a7], &mut low);
        merge_words([b0, b1, b2, b3, b4, b5, b6, b7], &mut high);
        join::u128(&low, &high, &mut words);
        store_16::<ROTATED>(&words, tile);
    }
}

fn merge_words([p0, p1, p2, p3, p4, p5, p6, p7]: [&[u8]; 8], words: &mut [u64; TILE]) {
    let [mut a, mut b] = [[0; TILE]; 2];
    let [mut aa, mut ab, mut ba, mut bb] = [[0; TILE]; 4];
    join::u16(p0, p1, &mut aa);
    join::u16(p2, p3, &mut ab);
    join::u16(p4, p5, &mut ba);
    join::u16(p6, p7, &mut bb);
    join::u32(&aa, &ab, &mut a);
    join::u32(&ba, &bb, &mut b);
    join::u64(&a, &b, words);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::cast_possible_truncation)]
    use super::*;

    /// Compares with a definition in one line, for numbers of elements around the length of a tile.
    #[test]
    fn planes_are_the_bytes_of_words() {
        for width in [1_usize, 2, 4, 8, 16] {
            for count in [1, 2, 3, 17, TILE - 1, TILE, TILE + 1, 2 * TILE + 5] {
                // Under Miri each byte takes its time. The ends of tiles do not depend on the target.
                if cfg!(miri) && ![3, 17].contains(&count) {
                    continue;
                }
                let elements: Vec<u8> =
                    (0..count * width).map(|at| (at * 37 + at / 250) as u8).collect();
                for rotated in [false, true] {
                    let word = |at: usize| {
                        let mut bytes = [0; 16];
                        bytes[..width].copy_from_slice(&elements[at * width..][..width]);
                        let word = u128::from_le_bytes(bytes);
                        let sign = word >> (8 * width - 1);
                        if rotated && width > 1 { word << 1 | sign } else { word }
                    };
                    let mut split_planes = vec![0xee; elements.len()];
                    split(&elements, width, rotated, &mut split_planes);
                    let mut planes = Vec::new();
                    for (plane, bytes) in split_planes.chunks_exact(count).enumerate() {
                        let expected = |at| (word(at) >> (8 * plane)) as u8;
                        assert!(bytes.iter().enumerate().all(|(at, &byte)| byte == expected(at)));
                        planes.push(Plane::Bytes(bytes));
                    }
                    let mut merged = vec![0xee; elements.len()];
                    merge(&planes, rotated, &mut merged);
                    assert_eq!(merged, elements, "{width} {count} {rotated}");
                }
            }
        }
    }

    #[test]
    fn constant_planes() {
        let count = TILE + 3;
        let low: Vec<u8> = (0..count).map(|at| at as u8).collect();
        let mut out = vec![0; 2 * count];
        merge(&[Plane::Bytes(&low), Plane::Constant(9)], false, &mut out);
        assert!(out.chunks_exact(2).zip(&low).all(|(pair, &low)| pair == [low, 9]));
        let mut out = vec![0; 5];
        merge(&[Plane::Constant(7)], true, &mut out);
        assert_eq!(out, [7; 5]);
    }
}
