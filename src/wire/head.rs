//! Parsing the heads of CBOR items (RFC 8949, section 3). These are pure functions on byte slices.

use byteorder::{BigEndian, ByteOrder as _};

/// Major types.
pub const UNSIGNED: u8 = 0;
pub const NEGATIVE: u8 = 1;
pub const BYTES: u8 = 2;
pub const TEXT: u8 = 3;
pub const ARRAY: u8 = 4;
pub const MAP: u8 = 5;
pub const TAG: u8 = 6;
pub const SIMPLE: u8 = 7;

/// The additional information that means an indefinite length or, in major type 7, a break.
pub const INDEFINITE: u8 = 31;

/// Initial bytes of the simple values, floats and the break.
pub const FALSE: u8 = 0xf4;
pub const TRUE: u8 = 0xf5;
pub const NULL: u8 = 0xf6;
pub const UNDEFINED: u8 = 0xf7;
pub const SIMPLE_BYTE: u8 = 0xf8;
pub const HALF: u8 = 0xf9;
pub const SINGLE: u8 = 0xfa;
pub const DOUBLE: u8 = 0xfb;
pub const BREAK: u8 = 0xff;

/// The head of an item: initial byte and argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub initial: u8,
    /// The value of the argument, or 0 if the length is indefinite.
    pub arg: u64,
}

impl Head {
    #[inline]
    pub fn major(self) -> u8 {
        self.initial >> 5
    }

    #[inline]
    pub fn is_indefinite(self) -> bool {
        self.initial & 0x1f == INDEFINITE
    }

    /// The length of a string, array or map, or `None` if it is indefinite.
    #[inline]
    pub fn length(self) -> Option<u64> {
        (!self.is_indefinite()).then_some(self.arg)
    }
}

/// The result of parsing the start of a byte slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A complete head, and its length in bytes.
    Head(Head, usize),
    /// The slice ends inside the head. This many bytes are needed.
    Short(usize),
    /// Not the head of a well-formed item (RFC 8949, Appendix F), and the reason.
    Malformed(&'static str),
}

/// Parses the head at the start of `window`.
#[inline]
pub fn parse(window: &[u8]) -> Parsed {
    let Some(&initial) = window.first() else { return Parsed::Short(1) };
    let info = initial & 0x1f;
    if info < 24 {
        return Parsed::Head(Head { initial, arg: info.into() }, 1);
    }
    parse_long(window, initial, info)
}

#[inline]
fn parse_long(window: &[u8], initial: u8, info: u8) -> Parsed {
    let rest = window.get(1..).unwrap_or_default();
    let (arg, len) = match info {
        24 => match rest.first() {
            Some(&byte) if initial == SIMPLE_BYTE && byte < 32 => {
                return Parsed::Malformed("a simple value below 32 is encoded in two bytes");
            }
            Some(&byte) => (byte.into(), 2),
            None => return Parsed::Short(2),
        },
        25 => match rest.first_chunk::<2>() {
            Some(bytes) => (BigEndian::read_u16(bytes).into(), 3),
            None => return Parsed::Short(3),
        },
        26 => match rest.first_chunk::<4>() {
            Some(bytes) => (BigEndian::read_u32(bytes).into(), 5),
            None => return Parsed::Short(5),
        },
        27 => match rest.first_chunk::<8>() {
            Some(bytes) => (BigEndian::read_u64(bytes), 9),
            None => return Parsed::Short(9),
        },
        INDEFINITE => match initial >> 5 {
            UNSIGNED | NEGATIVE | TAG => {
                return Parsed::Malformed("an integer or a tag has an indefinite length");
            }
            _ => (0, 1),
        },
        _ => return Parsed::Malformed("an item has reserved additional information"),
    };
    Parsed::Head(Head { initial, arg }, len)
}

/// The name of the type of item that an initial byte starts, for error messages.
pub fn name(initial: u8) -> &'static str {
    match initial >> 5 {
        UNSIGNED => "unsigned integer",
        NEGATIVE => "negative integer",
        BYTES => "byte string",
        TEXT => "text string",
        ARRAY => "array",
        MAP => "map",
        TAG => "tag",
        _ => match initial {
            FALSE | TRUE => "boolean",
            NULL => "null",
            UNDEFINED => "undefined",
            HALF | SINGLE | DOUBLE => "float",
            BREAK => "break",
            _ => "simple value",
        },
    }
}

/// Major type, argument and length in bytes of the head at the start of `bytes`. `None` if the head is
/// incomplete, or if it has an indefinite length or reserved additional information.
#[inline]
pub fn definite(bytes: &[u8]) -> Option<(u8, u64, usize)> {
    let (&initial, rest) = bytes.split_first()?;
    let (arg, len) = match initial & 0x1f {
        info @ 0..24 => (info.into(), 1),
        24 => ((*rest.first()?).into(), 2),
        25 => (u16::from_be_bytes(*rest.first_chunk()?).into(), 3),
        26 => (u32::from_be_bytes(*rest.first_chunk()?).into(), 5),
        27 => (u64::from_be_bytes(*rest.first_chunk()?), 9),
        _ => return None,
    };
    Some((initial >> 5, arg, len))
}

/// The length in bytes of the item at the start of `bytes`. `None` if the item is incomplete, is not
/// well-formed, or has an indefinite length anywhere inside.
///
/// It does not check that texts are UTF-8. It does not recurse, so deeply nested items need no stack.
pub fn item_len(bytes: &[u8]) -> Option<usize> {
    let mut at = 0usize;
    let mut left = 1u64;
    while left > 0 {
        let initial = *bytes.get(at)?;
        // A fast path for the items that metadata mostly consists of: small numbers, short texts,
        // short arrays and maps, and tags. A table of lengths takes fewer instructions, but then each item waits
        // for the one before it.
        match initial {
            0x00..=0x17 | 0x20..=0x37 => {
                at += 1;
                left -= 1;
                continue;
            }
            0x60..=0x77 => {
                at += 1 + usize::from(initial & 0x1f);
                left -= 1;
                continue;
            }
            0x80..=0x97 => {
                at += 1;
                left = (left - 1).checked_add(u64::from(initial & 0x1f))?;
                continue;
            }
            0xa0..=0xb7 => {
                at += 1;
                left = (left - 1).checked_add(2 * u64::from(initial & 0x1f))?;
                continue;
            }
            0x18 => {
                at += 2;
                left -= 1;
                continue;
            }
            0x19 => {
                at += 3;
                left -= 1;
                continue;
            }
            0xd8 => {
                at += 2;
                continue;
            }
            0xda => {
                at += 5;
                continue;
            }
            _ => {}
        }
        let (major, arg, len) = definite(bytes.get(at..)?)?;
        at += len;
        left -= 1;
        match major {
            BYTES | TEXT => at = at.checked_add(usize::try_from(arg).ok()?)?,
            ARRAY => left = left.checked_add(arg)?,
            MAP => left = left.checked_add(arg.checked_mul(2)?)?,
            TAG => left += 1,
            _ => {}
        }
    }
    (at <= bytes.len()).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_every_width() {
        let head = |initial, arg| Head { initial, arg };
        assert_eq!(parse(&[0x17]), Parsed::Head(head(0x17, 23), 1));
        assert_eq!(parse(&[0x18, 24]), Parsed::Head(head(0x18, 24), 2));
        assert_eq!(parse(&[0x39, 1, 2]), Parsed::Head(head(0x39, 0x102), 3));
        assert_eq!(parse(&[0x5a, 0, 1, 0, 0, 9]), Parsed::Head(head(0x5a, 0x1_0000), 5));
        assert_eq!(
            parse(&[0xdb, 255, 255, 255, 255, 255, 255, 255, 255]),
            Parsed::Head(head(0xdb, u64::MAX), 9)
        );
        assert_eq!(parse(&[0x9f]), Parsed::Head(head(0x9f, 0), 1));
        assert_eq!(parse(&[0x5a, 0, 1]), Parsed::Short(5));
        assert_eq!(parse(&[]), Parsed::Short(1));
        for malformed in [&[0x1c][..], &[0x3d], &[0x5e], &[0x1f], &[0xdf], &[0xf8, 31], &[0xfc]] {
            assert!(matches!(parse(malformed), Parsed::Malformed(_)), "{malformed:x?}");
        }
    }
    #[test]
    fn the_length_of_an_item_is_that_of_its_parts() {
        for initial in 0..=u8::MAX {
            // If the head has bytes of its own, they say 3. All else are items of one byte.
            let mut bytes = [0; 64];
            bytes[0] = initial;
            if let Some((_, _, len @ 2..)) = definite(&bytes) {
                bytes[len - 1] = 3;
            }
            let expected = definite(&bytes).map(|(major, arg, len)| {
                let inside = match major {
                    BYTES | TEXT | ARRAY => arg,
                    MAP => 2 * arg,
                    TAG => 1,
                    _ => 0,
                };
                len + usize::try_from(inside).unwrap()
            });
            assert_eq!(item_len(&bytes), expected, "{initial:x}");
            for cut in 0..expected.unwrap_or(0) {
                assert_eq!(item_len(&bytes[..cut]), None, "{initial:x} cut after {cut} bytes");
            }
        }
    }
}
