//! Computes how many bits the best code needs. Only integers are used, so that every machine writes the same bytes.

use super::huffman::Counts;

/// Fractions of a bit: 2^16 are one bit.
const ONE: u64 = 1 << 16;

/// The logarithms to base 2 of 1, 1 + 1/256, ... 2, in 2^-16.
const LOGARITHMS: [u32; 257] = {
    let mut table = [0; 257];
    let mut at = 0;
    while at < 256 {
        // Each squaring gives a further binary digit of the logarithm.
        let mut value = (256 + at as u64) << 22;
        let mut digits = 0;
        let mut step = 0;
        while step < 16 {
            value = (value * value) >> 30;
            digits <<= 1;
            if value >= 2 << 30 {
                value >>= 1;
                digits |= 1;
            }
            step += 1;
        }
        table[at] = digits;
        at += 1;
    }
    table[256] = ONE as u32;
    table
};

/// The logarithm of a number, in 2^-16. That of 0 is 0.
fn log2(number: u32) -> u64 {
    let Some(whole) = number.checked_ilog2() else { return 0 };
    // The 24 bits under the highest one: 8 choose an entry of the table, 16 a point between it and the next.
    let below = ((u64::from(number) << 24 >> whole) & 0xff_ffff) as usize;
    let (low, high) =
        (u64::from(LOGARITHMS[below >> 16]), u64::from(LOGARITHMS[(below >> 16) + 1]));
    u64::from(whole) * ONE + low + (((high - low) * (below as u64 & 0xffff)) >> 16)
}

/// Returns the smallest number of bits that bytes with these counts can take, if each is coded by itself.
pub fn bits(counts: &Counts) -> u64 {
    let mut total = 0;
    let mut sum = 0_u64;
    for &count in counts {
        total += count;
        sum += u64::from(count) * log2(count);
    }
    (u64::from(total) * log2(total)).saturating_sub(sum) / ONE
}

/// Adds the number of times that each byte occurs.
pub fn count(bytes: &[u8], counts: &mut Counts) {
    // Several tables, because adding to the same place twice in a row is slow.
    let mut tables = [[0_u32; 256]; 4];
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let [a, b, c, d, e, f, g, h] = *word;
        tables[0][usize::from(a)] += 1;
        tables[1][usize::from(b)] += 1;
        tables[2][usize::from(c)] += 1;
        tables[3][usize::from(d)] += 1;
        tables[0][usize::from(e)] += 1;
        tables[1][usize::from(f)] += 1;
        tables[2][usize::from(g)] += 1;
        tables[3][usize::from(h)] += 1;
    }
    for &byte in rest {
        tables[0][usize::from(byte)] += 1;
    }
    for (at, count) in counts.iter_mut().enumerate() {
        *count += tables.iter().map(|table| table[at]).sum::<u32>();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::cast_precision_loss)]
    fn logarithms_are_those_of_floats() {
        for number in (1..5000).chain([1 << 20, (1 << 20) + 12345, 1 << 30, u32::MAX]) {
            let exact = f64::from(number).log2() * ONE as f64;
            assert!((log2(number) as f64 - exact).abs() < 3.0, "{number}");
        }
    }

    #[test]
    fn bits_of_known_sources() {
        assert_eq!(bits(&[0; 256]), 0);
        assert_eq!(bits(&[1000; 256]), 8 * 256_000);
        let mut counts = [0; 256];
        counts[3] = 1 << 30;
        assert_eq!(bits(&counts), 0);
        counts[9] = 1 << 30;
        assert_eq!(bits(&counts), 1 << 31);
    }
}
