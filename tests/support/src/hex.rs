//! Bytes as hexadecimal digits.

pub fn hex(bytes: &[u8]) -> String {
    let digit = |digit: u8| char::from_digit(digit.into(), 16).unwrap();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The bytes of hexadecimal digits; spaces do not count.
pub fn unhex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(|byte| *byte != b' ').collect();
    let (pairs, rest) = digits.as_chunks::<2>();
    assert!(rest.is_empty(), "odd number of digits");
    let pair = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    pairs.iter().map(pair).collect()
}
