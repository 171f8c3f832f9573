//! The head of an HTTP request (RFC 9112), as far as this server needs it, and ranges (RFC 9110, 14).

use std::ops::Range;

/// The method, the target and the headers of a request.
#[derive(Debug)]
pub struct Request<'a> {
    pub method: &'a str,
    pub target: &'a str,
    headers: Vec<(&'a str, &'a str)>,
}

impl<'a> Request<'a> {
    /// Reads a head, without the empty line at its end. `None` if it is not one of HTTP 1.0 or 1.1.
    pub fn parse(head: &'a str) -> Option<Self> {
        let mut lines = head.split("\r\n");
        let mut parts = lines.next()?.split(' ');
        let (method, target, version) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() || !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
            return None;
        }
        let headers = lines
            .map(|line| {
                let (name, value) = line.split_once(':')?;
                // Spaces around a name have been read in different ways, to smuggle requests.
                let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
                is_name.then(|| (name, value.trim_matches([' ', '\t'])))
            })
            .collect::<Option<_>>()?;
        Some(Self { method, target, headers })
    }

    /// The value of a header. `Err` if it occurs more than once.
    pub fn header(&self, name: &str) -> Result<Option<&'a str>, ()> {
        let mut found = self.headers.iter().filter(|header| header.0.eq_ignore_ascii_case(name));
        match (found.next(), found.next()) {
            (_, Some(_)) => Err(()),
            (first, None) => Ok(first.map(|header| header.1)),
        }
    }
}

/// Which bytes a `Range` header asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Wanted {
    /// All of them: there is no header, or one that this server does not know.
    All,
    Part(Range<u64>),
    /// None that are there.
    Nothing,
}

impl Wanted {
    /// Reads one range of bytes. Others than one, and other units, may be ignored.
    pub fn parse(value: Option<&str>, length: u64) -> Self {
        let range = value.and_then(|value| value.strip_prefix("bytes=")?.split_once('-'));
        let Some((first, last)) = range else { return Self::All };
        let part = match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(length),
            (Some(first), None) if last.is_empty() => first..length,
            (None, Some(count)) if first.is_empty() => length.saturating_sub(count)..length,
            _ => return Self::All,
        };
        if part.is_empty() { Self::Nothing } else { Self::Part(part) }
    }
}

/// A decimal number. Larger ones than a file can be long are the largest one.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        let parse = |value| Wanted::parse(Some(value), 100);
        assert_eq!(parse("bytes=0-0"), Wanted::Part(0..1));
        assert_eq!(parse("bytes=10-19"), Wanted::Part(10..20));
        assert_eq!(parse("bytes=90-"), Wanted::Part(90..100));
        assert_eq!(parse("bytes=90-1000"), Wanted::Part(90..100));
        assert_eq!(parse("bytes=-7"), Wanted::Part(93..100));
        assert_eq!(parse("bytes=-1000"), Wanted::Part(0..100));
        assert_eq!(parse("bytes=0-99999999999999999999999"), Wanted::Part(0..100));
        for nothing in ["bytes=100-", "bytes=100-200", "bytes=-0", "bytes=18446744073709551615-"] {
            assert_eq!(parse(nothing), Wanted::Nothing, "{nothing}");
        }
        for odd in [
            "",
            "bytes=",
            "bytes=-",
            "bytes=5-4",
            "bytes=0-1,3-4",
            "bytes=+1-2",
            "bytes=a-b",
            "lines=0-1",
            "bytes 0-1",
        ] {
            assert_eq!(parse(odd), Wanted::All, "{odd}");
        }
        assert_eq!(Wanted::parse(Some("bytes=0-0"), 0), Wanted::Nothing);
        assert_eq!(Wanted::parse(None, 5), Wanted::All);
    }
}
