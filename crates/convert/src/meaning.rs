//! Values of named types (`SPEC.md`, section 7.2) as people write them, and as JSON has them.

use std::fmt::Write as _;

use tenarc::Value;
use tenarc::types::Parameter;

/// The seconds of a day.
const DAY: i128 = 86_400;

/// Returns the text of a value: a date or time as in ISO 8601, a decimal with its point, a duration with its unit, a UUID. A
/// time with the name of a zone is in UTC, with the name behind it as in RFC 9557. `None` if the type is not known, or the item
/// is none of it.
pub fn text(name: &str, parameters: &[Value], item: &Value) -> Option<String> {
    match (name, parameters, item) {
        ("date", [], Value::Integer(days)) => {
            i32::try_from(*days).ok().map(|days| date(days.into()))
        }
        ("timestamp", [Value::Text(unit), Value::Text(zone)], Value::Integer(count)) => {
            let digits = digits(unit)?;
            let count = i128::from(i64::try_from(*count).ok()?);
            let offset = offset(zone);
            let end = match &**zone {
                "" => String::new(),
                "UTC" => "Z".to_owned(),
                zone if offset.is_some() => zone.to_owned(),
                zone => format!("Z[{}]", zone.escape_debug()),
            };
            let count = count + offset.unwrap_or(0) * 10i128.pow(digits);
            let day = DAY * 10i128.pow(digits);
            let (days, rest) = (count.div_euclid(day), count.rem_euclid(day));
            Some(format!("{}T{}{end}", date(days), time(rest, digits)))
        }
        ("time", [Value::Text(unit)], Value::Integer(count)) => {
            let digits = digits(unit)?;
            let is_of_day = (0..DAY * 10i128.pow(digits)).contains(count);
            is_of_day.then(|| time(*count, digits))
        }
        ("duration", [Value::Text(unit)], Value::Integer(count)) => {
            digits(unit).map(|_| format!("{count} {unit}"))
        }
        ("decimal", [Value::Integer(_), Value::Integer(scale)], item) => {
            let number = match item {
                Value::Integer(number) => number.to_string(),
                Value::Bytes(bytes) => integer(bytes)?,
                _ => return None,
            };
            decimal(&number, i8::try_from(*scale).ok()?)
        }
        ("uuid", [], Value::Bytes(bytes)) => uuid(bytes),
        _ => None,
    }
}

/// The parameters of a type as [`text`] takes them.
pub fn values(parameters: &[Parameter]) -> Vec<Value> {
    let value = |parameter: &Parameter| match parameter {
        Parameter::Integer(number) => Value::Integer(*number),
        Parameter::Text(text) => Value::from(text.as_str()),
        _ => Value::Null,
    };
    parameters.iter().map(value).collect()
}

/// The number of digits that a unit has behind the second.
fn digits(unit: &str) -> Option<u32> {
    let units = [("s", 0), ("ms", 3), ("us", 6), ("ns", 9)];
    units.iter().find(|(known, _)| *known == unit).map(|(_, digits)| *digits)
}

/// The seconds of an offset such as `+02:00`.
fn offset(zone: &str) -> Option<i128> {
    let (sign, rest) = zone.split_at_checked(1)?;
    let (hours, minutes) = rest.split_once(':')?;
    let number = |text: &str, end: u8| {
        let number = text.parse::<u8>().ok()?;
        (text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit()) && number < end)
            .then_some(i128::from(number))
    };
    let seconds = number(hours, 24)? * 3600 + number(minutes, 60)? * 60;
    match sign {
        "+" => Some(seconds),
        "-" => Some(-seconds),
        _ => None,
    }
}

/// The date so many days after 1970-01-01, in the Gregorian calendar.
fn date(days: i128) -> String {
    // Years start in March, so that a leap day is the last one. An era has 400 years.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + next;
    // ISO 8601 has other years only with a sign.
    let year =
        if (0..10_000).contains(&year) { format!("{year:04}") } else { format!("{year:+05}") };
    format!("{year}-{month:02}-{day:02}")
}

/// A time of day, in a unit of which a second has this many digits.
fn time(count: i128, digits: u32) -> String {
    let second = 10i128.pow(digits);
    let (seconds, rest) = (count / second, count % second);
    let mut text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if rest > 0 {
        let _ = write!(text, ".{rest:0width$}", width = digits as usize);
    }
    text
}

/// A big-endian integer of at most 32 bytes in two's complement, as text.
fn integer(bytes: &[u8]) -> Option<String> {
    if !(1..=32).contains(&bytes.len()) {
        return None;
    }
    let is_negative = bytes.first().is_some_and(|first| *first > 127);
    // The digits, the last one first.
    let mut digits = vec![0u8];
    let mut times = |factor: u32, plus: u32| {
        let mut carry = plus;
        for digit in &mut digits {
            let sum = u32::from(*digit) * factor + carry;
            *digit = (sum % 10) as u8;
            carry = sum / 10;
        }
        while carry > 0 {
            digits.push((carry % 10) as u8);
            carry /= 10;
        }
    };
    for byte in bytes {
        times(256, u32::from(if is_negative { !byte } else { *byte }));
    }
    if is_negative {
        times(1, 1);
    }
    let digits = digits.iter().rev().map(|digit| char::from(b'0' + digit));
    Some(is_negative.then_some('-').into_iter().chain(digits).collect())
}

/// An integer times 10^-`scale`.
fn decimal(number: &str, scale: i8) -> Option<String> {
    let (sign, digits) = number.strip_prefix('-').map_or(("", number), |digits| ("-", digits));
    let places = usize::from(scale.unsigned_abs());
    if scale <= 0 {
        let zeros = if digits == "0" { 0 } else { places };
        return Some(format!("{sign}{digits}{}", "0".repeat(zeros)));
    }
    let digits = format!("{digits:0>width$}", width = places + 1);
    let (whole, part) = digits.split_at_checked(digits.len().checked_sub(places)?)?;
    Some(format!("{sign}{whole}.{part}"))
}

fn uuid(bytes: &[u8]) -> Option<String> {
    let bytes: &[u8; 16] = bytes.try_into().ok()?;
    let mut text = String::new();
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        let _ = write!(text, "{byte:02x}");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(name: &str, parameters: &[&str], item: impl Into<Value>) -> String {
        let parameters: Vec<Value> = parameters
            .iter()
            .map(|text| text.parse::<i128>().map_or_else(|_| (*text).into(), Value::Integer))
            .collect();
        text(name, &parameters, &item.into()).unwrap_or_default()
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for (days, text) in [
            (0, "1970-01-01"),
            (20_785, "2026-11-28"),
            (11_016, "2000-02-29"),
            (-25_509, "1900-02-28"),
            (-25_508, "1900-03-01"),
            (-719_528, "0000-01-01"),
            (-719_529, "-0001-12-31"),
            (2_932_897, "+10000-01-01"),
        ] {
            assert_eq!(shown("date", &[], days), text);
        }
        assert_eq!(shown("date", &[], 1i64 << 40), "");
        let at = 1_782_909_001_000_005i64;
        for (zone, text) in [
            ("", "2026-07-01T12:30:01.000005"),
            ("UTC", "2026-07-01T12:30:01.000005Z"),
            ("Europe/Berlin", "2026-07-01T12:30:01.000005Z[Europe/Berlin]"),
            ("+02:00", "2026-07-01T14:30:01.000005+02:00"),
            ("-13:30", "2026-06-30T23:00:01.000005-13:30"),
            ("+2:00", "2026-07-01T12:30:01.000005Z[+2:00]"),
        ] {
            assert_eq!(shown("timestamp", &["us", zone], at), text);
        }
        assert_eq!(shown("timestamp", &["ns", ""], -1), "1969-12-31T23:59:59.999999999");
        assert_eq!(shown("timestamp", &["s", "UTC"], 0), "1970-01-01T00:00:00Z");
        assert_eq!(shown("timestamp", &["ns", ""], i64::MIN), "1677-09-21T00:12:43.145224192");
        assert_eq!(shown("timestamp", &["m", ""], 0), "");
        assert_eq!(shown("time", &["ms"], 86_399_999), "23:59:59.999");
        assert_eq!(shown("time", &["ms"], 86_400_000), "");
        assert_eq!(shown("duration", &["ms"], -1500), "-1500 ms");
    }

    #[test]
    fn decimals_have_their_point_where_it_belongs() {
        for (scale, number, text) in [
            ("2", 150, "1.50"),
            ("2", -5, "-0.05"),
            ("0", 7, "7"),
            ("-3", -7, "-7000"),
            ("-3", 0, "0"),
        ] {
            assert_eq!(shown("decimal", &["5", scale], number), text);
        }
        let bytes = |bytes: &[u8]| Value::Bytes(bytes.to_vec());
        assert_eq!(shown("decimal", &["5", "1"], bytes(&[0xff, 0x38])), "-20.0");
        assert_eq!(shown("decimal", &["5", "1"], bytes(&[0x01, 0x00])), "25.6");
        let least = [&[0x80][..], &[0; 15]].concat();
        assert_eq!(shown("decimal", &["39", "0"], bytes(&least)), i128::MIN.to_string());
        assert_eq!(shown("decimal", &["39", "0"], bytes(&[])), "");
        assert_eq!(shown("decimal", &["39", "0"], bytes(&[0xff; 32])), "-1");
        let uuid: Vec<u8> = (0..16).collect();
        assert_eq!(shown("uuid", &[], bytes(&uuid)), "00010203-0405-0607-0809-0a0b0c0d0e0f");
    }
}
