//! Writes zip files in the form of numpy's npz files.

use std::io::{self, Seek, SeekFrom, Write};

use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use tenarc::{Error, Result};

use super::{DEFLATED, LOCAL_LEN, STORED, ZIP64_FIELD, flag, signature};
use crate::honest::Honest;

/// The date of every member: 1980-01-01, the first date of the format. It is fixed, so that equal tensors make equal
/// files.
const DATE: u16 = 0x0021;

/// The version of the format that a reader needs: 4.5, which has 64-bit sizes.
const VERSION: u16 = 45;
/// The version of the writer. The upper byte says that attributes are those of Unix.
const MADE_BY: u16 = 3 << 8 | VERSION;

/// The attributes of a file that its owner can read and write.
const ATTRIBUTES: u32 = 0o600 << 16;

/// The length of a zip64 field with two sizes.
const SIZES_LEN: usize = 20;

/// The id of the field of padding that torch writes.
const PADDING_FIELD: [u8; 2] = *b"FB";
/// The length of the id and the length of an extra field.
const PADDING_HEAD: u16 = 4;

/// A writer of zip files, which writes members one after the other.
pub struct ZipWriter<W> {
    writer: Honest<W>,
    /// The position of the writer at which the zip file starts.
    base: u64,
    /// The number of bytes of the zip file that are written so far.
    at: u64,
    /// The contents of members start at a multiple of this.
    alignment: u64,
    written: Vec<Written>,
}

/// A member that was written, to be listed in the central directory.
struct Written {
    name: String,
    method: u16,
    crc: u32,
    compressed: u64,
    inflated: u64,
    offset: u64,
}

impl<W: Write + Seek> ZipWriter<W> {
    /// Creates a writer of a zip file that starts at the current position of `writer`.
    pub fn new(mut writer: W) -> Result<Self> {
        let base = writer.stream_position().map_err(Error::io)?;
        Ok(Self { writer: Honest::new(writer), base, at: 0, alignment: 1, written: Vec::new() })
    }

    /// Makes the contents of members start at a multiple of so many bytes, at most 32,768, counted from the start of the
    /// zip file.
    pub fn with_alignment(mut self, alignment: u64) -> Self {
        self.alignment = alignment.max(1);
        self
    }

    /// Writes a member. `emit` passes its contents in blocks to the function that it is given.
    pub fn member(
        &mut self,
        name: String,
        deflated: bool,
        emit: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let name_len = u16::try_from(name.len()).map_err(|_| {
            Error::limit(format!("the name has {} bytes, expected at most 65,535", name.len()))
        })?;
        let offset = self.at;
        let method = if deflated { DEFLATED } else { STORED };
        let plain = offset + (LOCAL_LEN + name.len() + SIZES_LEN) as u64;
        // A field of padding has a head itself.
        let padding = match plain % self.alignment {
            0 => None,
            _ => {
                let head = plain + u64::from(PADDING_HEAD);
                u16::try_from(head.next_multiple_of(self.alignment) - head).ok()
            }
        };
        let head = local_head(&name, name_len, method, padding);
        self.writer.write_all(&head).map_err(Error::io)?;

        let (mut crc, mut inflated) = (Crc::new(), 0u64);
        let mut body = Counted { writer: &mut self.writer, written: 0 };
        let mut count = |block: &[u8]| {
            crc.update(block);
            inflated = inflated.saturating_add(block.len() as u64);
        };
        if deflated {
            let mut encoder = DeflateEncoder::new(&mut body, Compression::default());
            emit(&mut |block| {
                count(block);
                encoder.write_all(block).map_err(Error::io)
            })?;
            encoder.finish().map_err(Error::io)?;
        } else {
            emit(&mut |block| {
                count(block);
                body.write_all(block).map_err(Error::io)
            })?;
        }
        let (crc, compressed) = (crc.sum(), body.written);
        let data = offset + head.len() as u64;
        self.at = data
            .checked_add(compressed)
            .ok_or_else(|| Error::limit("the zip file would be longer than 2^64 bytes"))?;

        // The checksum and the sizes in the local header are known only now.
        self.patch(offset + 14, &crc.to_le_bytes())?;
        let sizes = [inflated.to_le_bytes(), compressed.to_le_bytes()].concat();
        self.patch(data - sizes.len() as u64, &sizes)?;
        self.seek(self.at)?;
        self.written.push(Written { name, method, crc, compressed, inflated, offset });
        Ok(())
    }

    fn seek(&mut self, at: u64) -> Result<()> {
        let at = self.base.saturating_add(at);
        self.writer.seek(SeekFrom::Start(at)).map(drop).map_err(Error::io)
    }

    fn patch(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        self.seek(at)?;
        self.writer.write_all(bytes).map_err(Error::io)
    }

    /// Writes the central directory and a comment. A comment of more than 65,535 bytes is left out. Returns the writer.
    pub fn finish(mut self, comment: &str) -> Result<W> {
        let start = self.at;
        let mut list = Vec::new();
        for written in &self.written {
            written.list(&mut list)?;
        }
        let count = self.written.len() as u64;
        end_records(count, start, list.len() as u64, comment, &mut list);
        self.writer.write_all(&list).map_err(Error::io)?;
        self.writer.flush().map_err(Error::io)?;
        Ok(self.writer.into_inner())
    }
}

/// Returns a local header, with zeros for the checksum and the sizes, which are written later. As in numpy's files, the
/// sizes are always in the zip64 field. In front of it is a field of so many bytes of `padding`, if there must be one.
fn local_head(name: &str, name_len: u16, method: u16, padding: Option<u16>) -> Vec<u8> {
    let padding_len = padding.map_or(0, |padding| padding + PADDING_HEAD);
    let mut head = Vec::with_capacity(LOCAL_LEN + name.len() + SIZES_LEN);
    head.extend(signature::LOCAL);
    for field in [VERSION, flags(name), method, 0, DATE] {
        head.extend(field.to_le_bytes());
    }
    for field in [0, u32::MAX, u32::MAX] {
        head.extend(field.to_le_bytes());
    }
    head.extend(name_len.to_le_bytes());
    head.extend(u16::to_le_bytes(20 + padding_len));
    head.extend(name.as_bytes());
    if let Some(padding) = padding {
        head.extend(PADDING_FIELD);
        head.extend(padding.to_le_bytes());
        head.extend(vec![b'Z'; padding.into()]);
    }
    // Its end is the end of the header.
    head.extend(ZIP64_FIELD.to_le_bytes());
    head.extend(u16::to_le_bytes(16));
    head.extend([0; 16]);
    head
}

fn flags(name: &str) -> u16 {
    if name.is_ascii() { 0 } else { flag::UTF8 }
}

/// Returns the 32-bit form of a number. If it does not fit, appends it to `wide`, the contents of the zip64 field, and
/// returns the value that refers to this field.
fn short(number: u64, wide: &mut Vec<u8>) -> u32 {
    match u32::try_from(number) {
        Ok(number) if number < u32::MAX => number,
        _ => {
            wide.extend(number.to_le_bytes());
            u32::MAX
        }
    }
}

impl Written {
    fn list(&self, out: &mut Vec<u8>) -> Result<()> {
        let mut wide = Vec::new();
        let inflated = short(self.inflated, &mut wide);
        let compressed = short(self.compressed, &mut wide);
        let offset = short(self.offset, &mut wide);
        let wide_len = wide.len() + if wide.is_empty() { 0 } else { 4 };
        let len = |len: usize| {
            u16::try_from(len)
                .map_err(|_| Error::limit("a field of the zip file is longer than 65,535 bytes"))
        };
        out.extend(signature::CENTRAL);
        for field in [MADE_BY, VERSION, flags(&self.name), self.method, 0, DATE] {
            out.extend(field.to_le_bytes());
        }
        for field in [self.crc, compressed, inflated] {
            out.extend(field.to_le_bytes());
        }
        for field in [len(self.name.len())?, len(wide_len)?, 0, 0, 0] {
            out.extend(field.to_le_bytes());
        }
        out.extend(ATTRIBUTES.to_le_bytes());
        out.extend(offset.to_le_bytes());
        out.extend(self.name.as_bytes());
        if !wide.is_empty() {
            out.extend(ZIP64_FIELD.to_le_bytes());
            out.extend(len(wide.len())?.to_le_bytes());
            out.extend(wide);
        }
        Ok(())
    }
}

/// Appends the records at the end of the file: the 64-bit end record and its locator if a number needs them, and the
/// end record.
fn end_records(count: u64, start: u64, size: u64, comment: &str, out: &mut Vec<u8>) {
    let comment = comment.as_bytes();
    let comment_len = u16::try_from(comment.len()).unwrap_or(0);
    let short_count = u16::try_from(count).ok().filter(|&count| count < u16::MAX);
    let mut wide = Vec::new();
    let (short_size, short_start) = (short(size, &mut wide), short(start, &mut wide));
    if short_count.is_none() || !wide.is_empty() {
        let end = start.saturating_add(size);
        out.extend(signature::END64);
        out.extend(u64::to_le_bytes(44));
        out.extend([MADE_BY, VERSION].into_iter().flat_map(u16::to_le_bytes));
        out.extend([0; 8]);
        for field in [count, count, size, start] {
            out.extend(field.to_le_bytes());
        }
        out.extend(signature::LOCATOR64);
        out.extend([0; 4]);
        out.extend(end.to_le_bytes());
        out.extend(u32::to_le_bytes(1));
    }
    out.extend(signature::END);
    let count = short_count.unwrap_or(u16::MAX);
    for field in [0, 0, count, count] {
        out.extend(field.to_le_bytes());
    }
    out.extend(short_size.to_le_bytes());
    out.extend(short_start.to_le_bytes());
    out.extend(comment_len.to_le_bytes());
    out.extend(comment.iter().take(comment_len.into()));
}

struct Counted<'a, W> {
    writer: &'a mut W,
    written: u64,
}

impl<W: Write> Write for Counted<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.writer.write(bytes)?;
        self.written = self.written.saturating_add(n as u64);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zip::directory::Directory;

    /// A source that is a number of zeros, followed by some bytes.
    struct Sparse(u64, Vec<u8>);
    impl tenarc::io::ReadAt for Sparse {
        fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
            match offset.checked_sub(self.0) {
                Some(offset) => self.1[..].read_at(out, offset),
                None => {
                    let left = usize::try_from(self.0 - offset).unwrap_or(usize::MAX);
                    Ok(out.len().min(left))
                }
            }
        }

        fn size(&self) -> io::Result<u64> {
            Ok(self.0 + self.1.len() as u64)
        }
    }

    #[test]
    fn contents_are_aligned() {
        let mut out = ZipWriter::new(io::Cursor::new(Vec::new())).unwrap().with_alignment(64);
        let names: Vec<String> = (0..150).map(|len| "n".repeat(len + 1)).collect();
        for name in &names {
            out.member(name.clone(), false, |put| put(name.as_bytes())).unwrap();
        }
        let bytes = out.finish("").unwrap().into_inner();
        let directory = Directory::read(&bytes[..]).unwrap();
        assert_eq!(directory.members.len(), 150);
        for member in &directory.members {
            let contents = crate::zip::Contents::open(&bytes[..], member).unwrap();
            assert_eq!(contents.position() % 64, 0, "{}", member.name().len());
        }
    }

    /// Reads only the central directory, so the members themselves need not exist.
    #[test]
    fn numbers_beyond_32_bits_are_listed() {
        let huge = 5 << 32;
        let member = |name: &str, offset, len| Written {
            name: name.into(),
            method: STORED,
            crc: 7,
            compressed: len,
            inflated: len,
            offset,
        };
        let members = [member("a", 0, huge), member("b", huge + 100, 30)];
        let mut list = Vec::new();
        for member in &members {
            member.list(&mut list).unwrap();
        }
        let start = huge + 200;
        end_records(2, start, list.len() as u64, "", &mut list);

        let directory = Directory::read(&Sparse(start, list)).unwrap();
        let found: Vec<_> =
            directory.members.iter().map(|m| (m.name(), m.offset, m.byte_len(), m.limit)).collect();
        assert_eq!(found, [("a", 0, huge, huge + 100), ("b", huge + 100, 30, start)]);
    }
}
