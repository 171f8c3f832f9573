//! Reads the content of byte strings and text strings, and of the bignums that consist of them.

use std::borrow::Cow;
use std::str;

use super::head::{self, Head};
use super::number::Numeric;
use super::reader::{GROWING, Reader};
use super::tag;
use crate::error::{Error, Result};
use crate::io::source::{STEP, SourceBytes, reserve};
use crate::mem;

/// The content of a text string. The variants are those of [`SourceBytes`].
pub enum Text<'de, 's> {
    Borrowed(&'de str),
    Copied(&'s str),
    Owned(String),
}

impl<'de> Text<'de, '_> {
    pub fn into_cow(self) -> Cow<'de, str> {
        match self {
            Self::Borrowed(text) => Cow::Borrowed(text),
            Self::Copied(text) => Cow::Owned(text.to_owned()),
            Self::Owned(text) => Cow::Owned(text),
        }
    }

    /// The same text, while this one is there.
    pub fn again(&self) -> Text<'de, '_> {
        match self {
            Self::Borrowed(text) => Text::Borrowed(text),
            other => Text::Copied(other.as_str()),
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Copied(text) => text,
            Self::Owned(text) => text,
        }
    }
}

impl<'de> Reader<'de, '_> {
    /// Reads the next item if it is a text of less than 256 bytes that values can borrow. Otherwise reads nothing.
    // Always: 14 % of decoding a mesh as rows.
    #[inline(always)]
    pub fn short_text(&mut self) -> Option<&'de str> {
        let rest = self.src.lent()?;
        let (skip, len) = short_text_head(rest)?;
        let text = mem::text(rest.get(skip..)?.get(..len)?).ok()?;
        self.src.advance(skip + len);
        Some(text)
    }

    /// Reads the next item if it is a text of less than 256 bytes that is in the window, and that values cannot borrow.
    /// Otherwise reads nothing.
    #[inline(never)]
    pub fn short_copied_text(&mut self) -> Option<Result<Text<'de, '_>>> {
        if self.src.lent().is_some() {
            return None;
        }
        let (skip, len) = short_text_head(self.src.window())?;
        if self.src.window().len() < skip + len {
            return None;
        }
        if self.src.remaining().is_none() && self.charge_input(len as u64).is_err() {
            return None;
        }
        let at = self.offset() + skip as u64;
        Some(match mem::text(self.src.short(skip, len)?) {
            Ok(text) => Ok(Text::Copied(text)),
            Err(error) => Err(not_utf8(error).at(at)),
        })
    }

    /// The content of a byte or text string whose head was read.
    // Always: 6 % of decoding a log as a `Value`.
    #[inline(always)]
    pub fn string(&mut self, head: Head) -> Result<SourceBytes<'de, '_>> {
        match head.length() {
            Some(len) => self.block(len, head::name(head.initial)),
            None => self.chunks(head, usize::MAX).map(SourceBytes::Owned),
        }
    }

    #[inline]
    fn block(&mut self, len: u64, what: &str) -> Result<SourceBytes<'de, '_>> {
        if self.src.remaining().is_none() {
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            self.charge_steps(len, STEP)?;
        }
        match usize::try_from(len) {
            Ok(len) => self.src.take(len, what),
            Err(_) => Err(Error::limit(format!("{len} bytes of {what} do not fit in memory"))
                .at(self.offset())),
        }
    }

    /// Reads the head of the next chunk of a string of indefinite length. `None` at the end of the
    /// string. Each chunk must have the type of the string and a definite length (RFC 8949, section
    /// 3.2.3).
    pub fn next_chunk(&mut self, string: Head) -> Result<Option<Head>> {
        let at = self.offset();
        if self.at_break()? {
            return Ok(None);
        }
        let chunk = self.head()?;
        if chunk.major() != string.major() || chunk.is_indefinite() {
            let (found, expected) = (head::name(chunk.initial), head::name(string.initial));
            let what = format!("expected a chunk of a {expected}, found {found}");
            return Err(Error::syntax(what).at(at));
        }
        Ok(Some(chunk))
    }

    /// The content of a string of indefinite length, at most `max` bytes. Each chunk of a text must be
    /// valid UTF-8 by itself: a code point cannot be split across chunks (RFC 8949, section 3.2.3).
    #[cold]
    pub fn chunks(&mut self, string: Head, max: usize) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        loop {
            let at = self.offset();
            let Some(chunk) = self.next_chunk(string)? else { return Ok(all) };
            if chunk.arg > (max - all.len()) as u64 {
                let what = format!("expected at most {max} bytes in chunks, found more");
                return Err(Error::data(what).at(at));
            }
            self.charge_input(chunk.arg.saturating_mul(GROWING))?;
            let bytes = self.block(chunk.arg, head::name(chunk.initial))?;
            let bytes = bytes.as_slice();
            if chunk.major() == head::TEXT {
                str::from_utf8(bytes).map_err(|error| not_utf8(error).at(at))?;
            }
            reserve(&mut all, bytes.len())?;
            all.extend_from_slice(bytes);
        }
    }

    /// The content of a text string whose head was read.
    // Always: 5 % of decoding a log as a `Value`.
    #[inline(always)]
    pub fn text(&mut self, head: Head) -> Result<Text<'de, '_>> {
        let at = self.offset();
        match self.string(head)? {
            SourceBytes::Borrowed(bytes) => match mem::text(bytes) {
                Ok(text) => Ok(Text::Borrowed(text)),
                Err(error) => Err(not_utf8(error).at(at)),
            },
            SourceBytes::Copied(bytes) => match str::from_utf8(bytes) {
                Ok(text) => Ok(Text::Copied(text)),
                Err(error) => Err(not_utf8(error).at(at)),
            },
            SourceBytes::Owned(bytes) => match String::from_utf8(bytes) {
                Ok(text) => Ok(Text::Owned(text)),
                Err(error) => Err(not_utf8(error.utf8_error()).at(at)),
            },
        }
    }

    /// The head of the content of a bignum, which has to be a byte string: there are no tags between the two.
    pub fn bignum_head(&mut self) -> Result<Head> {
        let at = self.offset();
        let head = self.head()?;
        if head.major() != head::BYTES {
            let found = head::name(head.initial);
            return Err(
                Error::data(format!("expected the bytes of a bignum, found {found}")).at(at)
            );
        }
        Ok(head)
    }

    /// The content of a bignum. Its tag, which is `tag`, was read.
    pub fn bignum(&mut self, tag: u64) -> Result<Numeric> {
        let at = self.offset();
        let head = self.bignum_head()?;
        let bytes = self.string(head)?;
        let bytes = bytes.as_slice();
        let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
        let digits = bytes.get(zeros..).unwrap_or_default();
        let mut arg = [0; 16];
        let Some(low) = 16usize.checked_sub(digits.len()).and_then(|skip| arg.get_mut(skip..))
        else {
            let what = format!("a bignum of {} bytes does not fit in 128 bits", digits.len());
            return Err(Error::unsupported(what).at(at));
        };
        low.copy_from_slice(digits);
        Ok(Numeric::Int { negative: tag == tag::NEGATIVE_BIGNUM, arg: u128::from_be_bytes(arg) })
    }
}

/// The length of the head of a text of less than 256 bytes, and the length of the text.
#[inline]
fn short_text_head(window: &[u8]) -> Option<(usize, usize)> {
    match window.first()?.wrapping_sub(head::TEXT << 5) {
        len @ 0..24 => Some((1, len.into())),
        24 => Some((2, (*window.get(1)?).into())),
        _ => None,
    }
}

#[cold]
pub fn not_utf8(error: str::Utf8Error) -> Error {
    Error::syntax(format!("text is not UTF-8: {error}"))
}
