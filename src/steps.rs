//! The steps of a path (`SPEC.md`, annex A).

use std::borrow::Cow;

use crate::error::Error;

/// Escapes a key for a JSON Pointer: `~` becomes `~0`, and `/` becomes `~1` (RFC 6901, section 3, and `SPEC.md`,
/// annex A). A JSON Pointer has a slash before each step, which this does not add.
///
/// ```
/// use tenarc::inspect::escape_step;
///
/// let bytes = tenarc::to_vec(&serde_json::json!({ "log": { "a/b.c": 7 } }))?;
/// let path = format!("/log/{}", escape_step("a/b.c"));
/// assert_eq!(path, "/log/a~1b.c");
/// let range = tenarc::inspect::find(&bytes, &path, Default::default())?;
/// assert_eq!(tenarc::from_slice::<u8>(&bytes[range])?, 7);
/// # Ok::<(), tenarc::Error>(())
/// ```
pub fn escape_step(step: &str) -> Cow<'_, str> {
    if step.contains(['~', '/']) {
        // In this order, no tilde that was just written is escaped again.
        step.replace('~', "~0").replace('/', "~1").into()
    } else {
        step.into()
    }
}

/// The steps of a path, joined by dots: the path itself, unless it is a JSON Pointer (RFC 6901).
///
/// ```
/// use tenarc::inspect::dotted;
///
/// assert_eq!(dotted("log.3.size"), "log.3.size");
/// assert_eq!(dotted("/log/3/a.b"), "log.3.a.b");
/// ```
pub fn dotted(path: &str) -> Cow<'_, str> {
    match path.strip_prefix('/') {
        None => path.into(),
        Some(steps) => steps.split('/').map(unescape_step).collect::<Vec<_>>().join(".").into(),
    }
}

/// The key that a step of a JSON Pointer stands for: the reverse of [`escape_step`] (RFC 6901, section 4).
///
/// ```
/// use tenarc::inspect::unescape_step;
///
/// let keys: Vec<_> = "log/a~1b.c/~01".split('/').map(unescape_step).collect();
/// assert_eq!(keys, ["log", "a/b.c", "~1"]);
/// ```
pub fn unescape_step(step: &str) -> Cow<'_, str> {
    if step.contains('~') {
        // In this order, `~01` becomes `~1`, as the RFC demands, and not a slash.
        step.replace("~1", "/").replace("~0", "~").into()
    } else {
        step.into()
    }
}

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

    /// Returns the next step as a number, and the rest of the path after it. The number is `None` if the step is not a
    /// number without leading zeros.
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
    pub fn next(self) -> NextStep<'a> {
        match self {
            Self::Dotted(path) => NextStep::Dotted(path),
            Self::Pointer(path) => {
                let rest = path.strip_prefix('/').unwrap_or(path);
                let (step, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                let written = step.len();
                NextStep::Pointer { step: unescape_step(step), written, rest }
            }
        }
    }
}

/// A step into a map whose keys are not known yet.
pub enum NextStep<'a> {
    /// Matches every key that is a prefix of the path and is followed by a dot or the end of the path.
    Dotted(&'a str),
    /// The next key, the number of bytes that it takes in the path, and the rest of the path.
    Pointer { step: Cow<'a, str>, written: usize, rest: &'a str },
}

impl<'a> NextStep<'a> {
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

/// The error for a path that leads to more than one value.
#[cold]
pub fn leads_to_several() -> Error {
    Error::not_found(
        "the path leads to several values: a key occurs twice, or keys contain dots; with dots, a JSON Pointer such as \
         /a.b/c names one of the values",
    )
}
