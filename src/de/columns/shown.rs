//! Texts that are shown to visitors.

use std::borrow::Cow;

use serde::de::Visitor;

use crate::error::Result;
use crate::wire::strings::Text;

/// The text of a name.
#[derive(Clone, Copy)]
pub enum ShownText<'de, 's> {
    Borrowed(&'de str),
    Copied(&'s str),
}

impl<'de, 's> ShownText<'de, 's> {
    pub fn of(text: &'s Text<'de, '_>) -> Self {
        match text {
            Text::Borrowed(text) => Self::Borrowed(text),
            other => Self::Copied(other.as_str()),
        }
    }

    #[inline]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Copied(text) => text,
        }
    }

    #[inline]
    pub fn visit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self {
            Self::Borrowed(text) => visitor.visit_borrowed_str(text),
            Self::Copied(text) => visitor.visit_str(text),
        }
    }
}

/// A name, as a text.
#[inline]
pub fn shown<'c, 'de>(name: &'c Cow<'de, str>) -> ShownText<'de, 'c> {
    match name {
        Cow::Borrowed(name) => ShownText::Borrowed(name),
        Cow::Owned(name) => ShownText::Copied(name),
    }
}
