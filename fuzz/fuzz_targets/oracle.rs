//! Compares tenarc with ciborium, and with a check for well-formedness written after RFC 8949. What ciborium
//! reads, tenarc must read as the same value. tenarc must skip exactly those items that are well-formed.
#![no_main]

use ciborium::Value as Other;
use libfuzzer_sys::fuzz_target;
use serde::de::IgnoredAny;
use tenarc::Value;
use tenarc::error::Category;

/// Deeper inputs are ignored. This is below tenarc's limit of 128, which so plays no role here.
const DEPTH: usize = 100;

/// The check of RFC 8949, Appendix C, which here includes UTF-8. Returns the bytes after the item, or `None`
/// if the item is truncated, malformed, or nested deeper than `DEPTH`.
fn well_formed<'a>(bytes: &'a [u8], depth: usize, too_deep: &mut bool) -> Option<&'a [u8]> {
    let (&initial, mut rest) = bytes.split_first()?;
    let (major, info) = (initial >> 5, initial & 31);
    let mut value = u64::from(info);
    match info {
        24..28 => {
            let (argument, behind) = rest.split_at_checked(1 << (info - 24))?;
            rest = behind;
            value = argument.iter().fold(0, |n, &byte| n << 8 | u64::from(byte));
        }
        28..31 => return None,
        31 if !matches!(major, 2..=5) => return None,
        _ => {}
    }
    let depth = match major {
        4..=6 if depth == 0 => {
            *too_deep = true;
            return None;
        }
        4..=6 => depth - 1,
        _ => depth,
    };
    let open = info == 31;
    match major {
        2 | 3 if open => loop {
            match rest.split_first()? {
                (0xff, behind) => return Some(behind),
                (chunk, _) if chunk >> 5 != major || chunk & 31 == 31 => return None,
                _ => rest = well_formed(rest, depth, too_deep)?,
            }
        },
        2 | 3 => {
            let (content, behind) = rest.split_at_checked(usize::try_from(value).ok()?)?;
            (major == 2 || std::str::from_utf8(content).is_ok()).then_some(behind)
        }
        4 | 5 => {
            let mut left = if open { u64::MAX } else { value };
            while left > 0 {
                if open && rest.first() == Some(&0xff) {
                    return rest.get(1..);
                }
                rest = well_formed(rest, depth, too_deep)?;
                if major == 5 {
                    rest = well_formed(rest, depth, too_deep)?;
                }
                left -= 1;
            }
            Some(rest)
        }
        6 => well_formed(rest, depth, too_deep),
        7 if info == 24 && value < 32 => None,
        _ => Some(rest),
    }
}

fn integer(tag: u64, bytes: &[u8]) -> Option<i128> {
    let digits = &bytes[bytes.iter().take_while(|&&byte| byte == 0).count()..];
    if digits.len() > 16 {
        return None;
    }
    let magnitude = digits.iter().fold(0u128, |n, &digit| n << 8 | u128::from(digit));
    let magnitude = i128::try_from(magnitude).ok()?;
    Some(if tag == 3 { !magnitude } else { magnitude })
}

fn same(ours: &Value, theirs: &Other) -> bool {
    match (ours, theirs) {
        // A value of a type is read as the item in it.
        (ours, Other::Tag(0x5454_5950, inner)) => match &**inner {
            Other::Array(items) => items.last().is_some_and(|item| same(ours, item)),
            _ => false,
        },
        (Value::Null, Other::Null) => true,
        // ciborium reads undefined as null.
        (Value::Simple(23), Other::Null) => true,
        (Value::Bool(ours), Other::Bool(theirs)) => ours == theirs,
        (Value::Integer(ours), Other::Integer(theirs)) => *ours == i128::from(*theirs),
        (Value::Integer(ours), Other::Tag(tag @ (2 | 3), inner)) => match &**inner {
            Other::Bytes(bytes) => integer(*tag, bytes) == Some(*ours),
            _ => false,
        },
        (Value::F32(ours), Other::Float(theirs)) => {
            f64::from(*ours).to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan()
        }
        (Value::F64(ours), Other::Float(theirs)) => {
            ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan()
        }
        (Value::Bytes(ours), Other::Bytes(theirs)) => ours == theirs,
        (Value::Text(ours), Other::Text(theirs)) => ours == theirs,
        (Value::Array(ours), Other::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| same(a, b))
        }
        (Value::Map(ours), Other::Map(theirs)) => {
            ours.len() == theirs.len()
                && ours.iter().zip(theirs).all(|(a, b)| same(&a.0, &b.0) && same(&a.1, &b.1))
        }
        (Value::Tag(ours, inner), Other::Tag(theirs, content)) => {
            ours == theirs && same(inner, content)
        }
        // Columns are read as their rows.
        (Value::Array(_), Other::Tag(0x5443_4f4c, _)) => true,
        // ciborium keeps the tags of tensors and typed arrays.
        (Value::Tensor(_), Other::Tag(tag, _)) => matches!(tag, 40 | 1040) || *tag == 0x5445_4e53,
        (Value::Numbers(numbers), Other::Tag(tag, inner)) => match &**inner {
            Other::Bytes(bytes) => match tag {
                64 | 68 => numbers.as_slice::<u8>() == Some(bytes),
                85 => numbers.as_slice::<f32>().is_some_and(|numbers| {
                    let theirs = bytes.as_chunks().0.iter().map(|four| u32::from_le_bytes(*four));
                    numbers.iter().map(|number| number.to_bits()).eq(theirs)
                }),
                82 => numbers.as_slice::<f64>().is_some_and(|numbers| {
                    let theirs = bytes.as_chunks().0.iter().map(|eight| u64::from_be_bytes(*eight));
                    numbers.iter().map(|number| number.to_bits()).eq(theirs)
                }),
                _ => matches!(tag, 64..=87),
            },
            _ => *tag == 43001,
        },
        _ => false,
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut too_deep = false;
    let formed = well_formed(bytes, DEPTH, &mut too_deep).is_some_and(<[u8]>::is_empty);
    if too_deep {
        return;
    }
    let passed = tenarc::from_slice::<IgnoredAny>(bytes);
    assert_eq!(passed.is_ok(), formed, "{passed:?}");

    let ours = tenarc::from_slice::<Value>(bytes);
    assert!(formed || ours.is_err());
    if let Err(error) = &ours
        && formed
    {
        // tenarc refuses well-formed input only for the content of a tag, or for a limit.
        let of_content = matches!(
            error.category(),
            Category::Data | Category::Limit | Category::Mismatch | Category::Unsupported
        );
        assert!(of_content, "{error}");
    }
    let mut rest = bytes;
    let theirs = ciborium::de::from_reader_with_recursion_limit::<Other, _>(&mut rest, 200);
    if let (Ok(ours), Ok(theirs), true) = (&ours, &theirs, rest.is_empty()) {
        assert!(same(ours, theirs), "tenarc reads {ours:?}, ciborium {theirs:?}");
    }
    if let (Err(error), Ok(theirs), true) = (&ours, &theirs, formed) {
        assert!(tagged(theirs), "{error}, but ciborium reads {theirs:?}");
    }
});

/// Whether a value contains a tag whose content tenarc checks.
fn tagged(value: &Other) -> bool {
    match value {
        Other::Tag(tag, inner) => {
            matches!(tag, 2 | 3 | 25 | 29 | 40 | 1040 | 43001 | 64..=87)
                || matches!(*tag, 0x5445_4e53 | 0x5442_5546 | 0x5443_4f4c | 0x5454_5950)
                || tagged(inner)
        }
        Other::Array(items) => items.iter().any(tagged),
        Other::Map(entries) => entries.iter().any(|(key, value)| tagged(key) || tagged(value)),
        _ => false,
    }
}
