//! Reads columns of texts and byte strings.

use tenarc::io::ReadAt;
use tenarc::{Error, Result};

use super::batch::Piece;
use super::schema::{Offsets, Strings};
use crate::support::over_memory;

/// The size of a view, in bytes.
const VIEW: usize = 16;

/// The most bytes of a string that is stored in its view.
const INLINE: usize = 12;

/// Passes the strings of a piece to `put`. Subtracts the bytes that they take from `left`, and fails if there are more.
pub fn each<S: ReadAt + ?Sized>(
    piece: &Piece,
    strings: Strings,
    source: &S,
    left: &mut u64,
    put: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let Some((first, more)) = piece.buffers.split_first() else { return Ok(()) };
    let need = strings.layout.byte_len(piece.rows)?;
    charge(left, need)?;
    let places = first.bytes(source, need)?;
    let put = &mut |string: &[u8]| {
        if strings.text && std::str::from_utf8(string).is_err() {
            return Err(Error::data("a text is not UTF-8"));
        }
        put(string)
    };
    if strings.layout == Offsets::Views {
        return views(&places, more, source, left, put);
    }
    let offsets: Vec<usize> = match strings.layout {
        Offsets::Large => offsets(places.chunks_exact(8).map(word)),
        _ => offsets(places.chunks_exact(4).map(word)),
    }?;
    let (Some(data), Some(&end)) = (more.first(), offsets.last()) else { return Ok(()) };
    charge(left, end as u64)?;
    let data = data.bytes(source, end as u64)?;
    let mut ends = offsets.iter().zip(offsets.iter().skip(1));
    ends.try_for_each(|(&start, &end)| match data.get(start..end) {
        Some(string) => put(string),
        None => {
            let room = data.len();
            let what = format!("a string has the bytes {start}..{end} of a buffer of {room} bytes");
            Err(Error::data(what))
        }
    })
}

/// Decodes a signed little-endian number of 4 or 8 bytes.
fn word(bytes: &[u8]) -> i64 {
    match (bytes.try_into(), bytes.try_into()) {
        (Ok(small), _) => i32::from_le_bytes(small).into(),
        (_, Ok(large)) => i64::from_le_bytes(large),
        _ => -1,
    }
}

fn offsets(numbers: impl Iterator<Item = i64>) -> Result<Vec<usize>> {
    let number = |number: i64| {
        usize::try_from(number).map_err(|_| {
            Error::data(format!("a string starts or ends at offset {number} of its buffer"))
        })
    };
    numbers.map(number).collect()
}

fn views<S: ReadAt + ?Sized>(
    views: &[u8],
    buffers: &[super::body::Buffer],
    source: &S,
    left: &mut u64,
    put: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut data = Vec::with_capacity(buffers.len());
    for buffer in buffers {
        let len = buffer.byte_len(source)?;
        charge(left, len)?;
        data.push(buffer.bytes(source, len)?);
    }
    for view in views.chunks_exact(VIEW) {
        let (len, rest) = view.split_at(4);
        let len = usize::try_from(word(len)).unwrap_or(usize::MAX);
        if len <= INLINE {
            put(rest.get(..len).unwrap_or_default())?;
            continue;
        }
        // The first four bytes of the string are followed by the number of the buffer and the offset in it.
        let number = |at: usize| rest.get(at..at + 4).map(word);
        let string = number(4).zip(number(8)).and_then(|(buffer, start)| {
            let start = usize::try_from(start).ok()?;
            let bytes = data.get(usize::try_from(buffer).ok()?)?;
            bytes.get(start..start.checked_add(len)?)
        });
        let string =
            string.ok_or_else(|| Error::data("a view refers to bytes outside of its buffers"))?;
        if string.get(..4) != rest.get(..4) {
            return Err(Error::data("the first bytes in a view differ from those of its string"));
        }
        // Many views can refer to the same bytes, so each string counts.
        charge(left, len as u64)?;
        put(string)?;
    }
    Ok(())
}

fn charge(left: &mut u64, bytes: u64) -> Result<()> {
    match left.checked_sub(bytes) {
        Some(rest) => {
            *left = rest;
            Ok(())
        }
        None => {
            let what = format!(
                "cannot allocate {bytes} more bytes for strings, {left} are left of the limit"
            );
            Err(over_memory(what))
        }
    }
}
