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

/// Whether texts describe values of the type: see [`item`].
pub fn has_texts(name: &str) -> bool {
    matches!(name, "date" | "timestamp" | "time" | "decimal" | "uuid")
}

/// Returns the item of the value that a text describes: the reverse of [`text`]. A time may be left out behind a date, and
/// seconds behind minutes. A time without a zone is in UTC if the type has a zone. `None` if the text describes no value of
/// the type, or one that is between two of its units.
pub fn item(name: &str, parameters: &[Value], text: &str) -> Option<Value> {
    Some(Value::Integer(match (name, parameters) {
        ("date", []) => days(text)?,
        ("timestamp", [Value::Text(unit), Value::Text(_)]) => {
            let digits = digits(unit)?;
            let (day, rest) = match text.find(['T', ' ']) {
                Some(at) => (text.get(..at)?, text.get(at + 1..)?),
                None => (text, "00:00"),
            };
            let (time, zone) = match rest.find(['Z', '+', '-']) {
                Some(at) => rest.split_at_checked(at)?,
                None => (rest, "Z"),
            };
            let offset = if zone == "Z" { 0 } else { offset(zone)? };
            let second = 10i128.pow(digits);
            (days(day)? * DAY - offset) * second + count(time, digits)?
        }
        ("time", [Value::Text(unit)]) => count(text, digits(unit)?)?,
        ("decimal", [Value::Integer(_), Value::Integer(scale)]) => {
            let scale = usize::try_from(*scale).ok()?;
            let (whole, part) = text.split_once('.').unwrap_or((text, ""));
            let part = part.trim_end_matches('0');
            if part.len() > scale {
                return None;
            }
            format!("{whole}{part:0<scale$}").parse().ok()?
        }
        ("uuid", []) => return uuid_of(text),
        _ => return None,
    }))
}

/// The days from 1970-01-01 to a date with four digits for the year.
fn days(text: &str) -> Option<i128> {
    let [year, month, day] = numbers(text, "-", [4, 2, 2])?;
    // As in `date`: years start in March.
    let (months, year) = if month > 2 { (month - 3, year) } else { (month + 9, year - 1) };
    let (era, rest) = (year.div_euclid(400), year.rem_euclid(400));
    let days = era * 146_097 + rest * 365 + rest / 4 - rest / 100 + (153 * months + 2) / 5 + day;
    let days = days - 1 - 719_468;
    // There is no February 30.
    (date(days) == text).then_some(days)
}

/// The units since midnight of a time, in a unit of which a second has this many digits.
fn count(text: &str, digits: u32) -> Option<i128> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let whole = if whole.len() == 5 { format!("{whole}:00") } else { whole.to_owned() };
    let [hours, minutes, seconds] = numbers(&whole, ":", [2, 2, 2])?;
    let part = part.trim_end_matches('0');
    let width = digits as usize;
    let is_time = hours < 24 && minutes < 60 && seconds < 60 && part.len() <= width;
    let part = format!("0{part:0<width$}");
    let part: i128 =
        part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())??;
    is_time.then_some((hours * 3600 + minutes * 60 + seconds) * 10i128.pow(digits) + part)
}

/// Three numbers of so many digits.
fn numbers(text: &str, between: &str, lens: [usize; 3]) -> Option<[i128; 3]> {
    let mut parts = text.split(between).zip(lens).map(|(part, len)| {
        let are_digits = part.len() == len && part.bytes().all(|byte| byte.is_ascii_digit());
        are_digits.then(|| part.parse().ok())?
    });
    let found = [parts.next()??, parts.next()??, parts.next()??];
    (text.split(between).count() == lens.len()).then_some(found)
}

fn uuid_of(text: &str) -> Option<Value> {
    let digits = text.replace('-', "");
    let byte = |at: usize| u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok();
    let bytes = (0..16).map(byte).collect::<Option<Vec<_>>>()?;
    (uuid(&bytes)? == text.to_ascii_lowercase()).then_some(Value::Bytes(bytes))
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
    fn texts_are_read_back() {
        let unit = |unit: &str, zone: &str| vec![Value::from(unit), Value::from(zone)];
        for days in [-719_528, -25_509, -25_508, -1, 0, 11_016, 11_017, 20_785, 2_932_896] {
            let found = item("date", &[], &shown("date", &[], days));
            assert_eq!(found, Some(Value::Integer(days.into())));
        }
        let at = 1_782_909_001_000_005i64;
        for zone in ["", "UTC", "+02:00", "-13:30"] {
            let text = shown("timestamp", &["us", zone], at);
            assert_eq!(
                item("timestamp", &unit("us", zone), &text),
                Some(Value::Integer(at.into())),
                "{text}"
            );
        }
        let at = |text| item("timestamp", &unit("ms", "UTC"), text)?.as_i64();
        assert_eq!(at("2026-07-01"), Some(1_782_864_000_000));
        assert_eq!(at("2026-07-01 12:30"), at("2026-07-01T14:30:00.000+02:00"));
        assert_eq!(at("1969-12-31T23:59:59.999"), Some(-1));
        for wrong in [
            "",
            "2026",
            "2026-02-30",
            "2026-13-01",
            "26-01-01",
            "2026-1-1",
            "+2026-01-01",
            "2026-01-01-01",
            "2026-01-01T24:00",
            "2026-01-01T1:00",
            "2026-01-01T01:00:00.0001",
            "2026-01-01T01:00:00.-1",
            "2026-01-01T01:00X",
            "2026-01-01T01:00+1:00",
            "2026-01-01T01:00Zulu",
        ] {
            assert_eq!(at(wrong), None, "{wrong}");
        }
        assert_eq!(item("time", &[Value::from("s")], "01:02:03"), Some(Value::Integer(3723)));
        let decimal = |text| item("decimal", &[Value::Integer(9), Value::Integer(2)], text);
        assert_eq!(decimal("-1.5"), Some(Value::Integer(-150)));
        assert_eq!((decimal("7"), decimal("1.505")), (Some(Value::Integer(700)), None));
        assert_eq!((decimal("1.-5"), decimal("x")), (None, None));
        let text = "00010203-0405-0607-0809-0a0b0c0d0e0F";
        assert_eq!(item("uuid", &[], text), Some(Value::Bytes((0..16).collect())));
        assert_eq!(item("uuid", &[], &text[1..]), None);
        assert_eq!(item("category", &[Value::Integer(0)], "a"), None);
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
