//! The steps of a path (`SPEC.md`, section 5.10).

use std::borrow::Cow;

use crate::error::Error;

/// The part of the path that is still to be followed.
#[derive(Clone, Copy, Debug)]
pub enum Steps<'a> {
    Dotted(&'a str),
    /// A JSON Pointer: empty, or steps that each start with a slash.
    Pointer(&'a str),
}

impl<'a> Steps<'a> {
    /// The steps of a path as users write it.
    pub fn of(path: &'a str) -> Self {
        match path {
            "" => Self::Pointer(""),
            pointer if pointer.starts_with('/') => Self::Pointer(pointer),
            dotted => Self::Dotted(dotted),
        }
    }

    pub fn is_empty(self) -> bool {
        matches!(self, Self::Pointer(""))
    }

    pub fn len(self) -> usize {
        let (Self::Dotted(path) | Self::Pointer(path)) = self;
        path.len()
    }

    /// The number that the next step is, written as numbers are, and what is left behind it.
    pub fn index(self) -> (Option<u64>, Option<Self>) {
        let path = match self {
            Self::Dotted(path) => path,
            Self::Pointer(path) => path.get(1..).unwrap_or_default(),
        };
        let digits = path.bytes().take_while(u8::is_ascii_digit).count();
        let number = path.get(..digits).unwrap_or_default();
        let is_plain = number == "0" || !number.starts_with('0');
        (number.parse().ok().filter(|_| is_plain), self.next().after(number.as_bytes()))
    }

    /// The next step, to be compared with the keys of a map.
    pub fn next(self) -> Next<'a> {
        match self {
            Self::Dotted(path) => Next::Dotted(path),
            Self::Pointer(path) => {
                let rest = path.strip_prefix('/').unwrap_or(path);
                let (step, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                let written = step.len();
                let step = if step.contains('~') {
                    step.replace("~1", "/").replace("~0", "~").into()
                } else {
                    step.into()
                };
                Next::Pointer { step, written, rest }
            }
        }
    }
}

/// A step into a map whose keys are not known yet.
pub enum Next<'a> {
    /// Matches every key that is a prefix of the path and is followed by a dot or the end of the path.
    Dotted(&'a str),
    /// One key, the number of bytes that it is written with, and what is left behind it.
    Pointer { step: Cow<'a, str>, written: usize, rest: &'a str },
}

impl<'a> Next<'a> {
    /// The rest of the path after a step into `key`, or `None` if the path does not go through that key.
    #[inline]
    pub fn after(&self, key: &[u8]) -> Option<Steps<'a>> {
        match self {
            Self::Dotted(path) => {
                let rest = path.as_bytes().strip_prefix(key)?;
                match rest.first() {
                    None => Some(Steps::Pointer("")),
                    Some(b'.') => path.get(key.len() + 1..).map(Steps::Dotted),
                    Some(_) => None,
                }
            }
            Self::Pointer { step, rest, .. } => {
                (step.as_bytes() == key).then_some(Steps::Pointer(rest))
            }
        }
    }
}

/// The error for a path that more than one value has.
#[cold]
pub fn leads_to_several() -> Error {
    Error::data(
        "the path leads to several values: a key occurs twice, or keys contain dots; with dots, a JSON Pointer such as \
         /a.b/c names one of the values",
    )
}
