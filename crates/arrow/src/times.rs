//! Texts that are times and dates, as chrono and jiff serialize them.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{ArrayRef, Date32Array, TimestampNanosecondArray};
use arrow_schema::{DataType, TimeUnit};
use chrono::{DateTime, NaiveDate, Timelike as _};
use tenarc::{Error, Result};

const UTC: &str = "UTC";

/// What the texts of a column are.
#[derive(Clone, Copy, Debug)]
pub enum Parsed {
    Times,
    Dates,
}

impl Parsed {
    pub fn data_type(self) -> DataType {
        match self {
            Self::Times => DataType::Timestamp(TimeUnit::Nanosecond, Some(UTC.into())),
            Self::Dates => DataType::Date32,
        }
    }

    /// The times or dates of texts. `row` is the number that a text has in its table.
    pub fn array(self, texts: &ArrayRef, row: impl Fn(usize) -> u64) -> Result<ArrayRef> {
        let texts = texts
            .as_string_opt::<i32>()
            .ok_or_else(|| Error::mismatch("expected texts, found a column of another type"))?;
        let each = texts.iter().enumerate();
        Ok(match self {
            Self::Times => {
                let times = each.map(|(at, text)| text.map(|text| time(text, row(at))).transpose());
                let times = times.collect::<Result<TimestampNanosecondArray>>()?;
                Arc::new(times.with_timezone(UTC))
            }
            Self::Dates => {
                let dates = each.map(|(at, text)| text.map(|text| date(text, row(at))).transpose());
                Arc::new(dates.collect::<Result<Date32Array>>()?)
            }
        })
    }
}

/// Nanoseconds since 1970.
fn time(text: &str, row: u64) -> Result<i64> {
    let time = DateTime::parse_from_rfc3339(text)
        .map_err(|_| refused(text, row, "is no date and time of RFC 3339 with an offset"))?;
    let digits = text.split_once('.').map_or("", |(_, rest)| rest);
    let digits = digits.bytes().take_while(u8::is_ascii_digit).count();
    if digits > 9 {
        return Err(refused(text, row, "has more than nine digits of a second"));
    }
    if time.nanosecond() >= 1_000_000_000 {
        return Err(refused(text, row, "is in a leap second, which timestamps do not have"));
    }
    let found = time.timestamp_nanos_opt();
    found.ok_or_else(|| refused(text, row, "is not from 1677 to 2262, as nanoseconds have to be"))
}

/// Days since 1970.
fn date(text: &str, row: u64) -> Result<i32> {
    let date = text.parse::<NaiveDate>().ok();
    // chrono also reads other spellings, such as one without leading zeros.
    let date = date.filter(|date| date.to_string() == text);
    let date = date.ok_or_else(|| refused(text, row, "is no date such as 2026-11-28"))?;
    i32::try_from(date.signed_duration_since(NaiveDate::default()).num_days())
        .map_err(|_| refused(text, row, "is too far from 1970"))
}

/// The most characters of a text that a message shows.
const SHOWN: usize = 40;

#[cold]
fn refused(text: &str, row: u64, why: &str) -> Error {
    let shown: String = text.chars().take(SHOWN).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    Error::data(format!("row {row}: `{}{more}` {why}", shown.escape_debug()))
}
