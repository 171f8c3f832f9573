//! Reads the contents of a member in order, inflates and checks them.

use flate2::{Crc, Decompress, FlushDecompress, Status};
use tenarc::io::ReadAt;
use tenarc::{Error, Result};

use super::{Bytes, DEFLATED, Fields, LOCAL_LEN, Member, STORED, flag, signature, widened};
use crate::source;

/// The number of compressed bytes that are read at once.
const STEP: usize = 32 << 10;

/// The greatest number of bytes that one byte of deflated data can become.
const MAX_RATIO: u64 = 1032;

/// Fills `out` with the bytes of a zip file from `offset` on.
pub fn read_at<S: ReadAt + ?Sized>(source: &S, out: &mut [u8], offset: u64) -> Result<()> {
    source::fill(source, out, offset, "")
}

/// A reader of the contents of a member. After all of them were read, [`finish`](Self::finish) checks that they have
/// the length and the checksum that the directory states.
pub struct Contents<'a, S: ?Sized> {
    source: &'a S,
    member: &'a Member,
    /// The offset of the next compressed byte.
    at: u64,
    /// The offset after the last compressed byte.
    end: u64,
    inflate: Option<Box<Inflate>>,
    crc: Crc,
    given: u64,
}

struct Inflate {
    raw: Decompress,
    buf: Vec<u8>,
    start: usize,
    ended: bool,
}

impl<'a, S: ReadAt + ?Sized> Contents<'a, S> {
    /// Reads the local header of a member, and checks that it agrees with the directory.
    pub fn open(source: &'a S, member: &'a Member) -> Result<Self> {
        supported(member)?;
        let mut head = [0; LOCAL_LEN];
        read_at(source, &mut head, member.offset)?;
        let wrong =
            |what: &str| Err(Error::damaged(format!("local header: {what}")).at(member.offset));
        let mut fields = Fields(&head);
        if fields.array() != signature::LOCAL {
            return wrong("expected its signature, found other bytes");
        }
        let _version = fields.u16();
        let (flags, method) = (fields.u16(), fields.u16());
        let _time = fields.u32();
        let crc = fields.u32();
        let (compressed, inflated) = (fields.u32(), fields.u32());
        let (name_len, extra_len) = (usize::from(fields.u16()), usize::from(fields.u16()));
        let mut names = vec![0; name_len + extra_len];
        let start = member.offset.saturating_add(LOCAL_LEN as u64);
        let data = start.saturating_add(names.len() as u64);
        let end = data.saturating_add(member.compressed);
        if end > member.limit {
            let limit = member.limit;
            return wrong(&format!(
                "the member ends at byte {end}, but the next part of the file starts at byte {limit}"
            ));
        }
        read_at(source, &mut names, start)?;
        let (name, extra) = names.split_at(name_len);
        if name != member.name.as_bytes() {
            return wrong("its name differs from the name in the directory");
        }
        if (flags, method) != (member.flags, member.method) {
            return wrong("its flags or its compression method differ from those in the directory");
        }
        // If this flag is set, sizes and checksum follow the contents in a data descriptor.
        if flags & flag::DESCRIPTOR == 0 {
            let Some(sizes) = widened([inflated, compressed], extra) else {
                return wrong("its 64-bit sizes are incomplete or occur twice");
            };
            if (sizes, crc) != ([member.inflated, member.compressed], member.crc) {
                return wrong("its sizes or its checksum differ from those in the directory");
            }
        }
        let inflate = (member.method == DEFLATED).then(|| {
            let raw = Decompress::new(false);
            Box::new(Inflate { raw, buf: Vec::new(), start: 0, ended: false })
        });
        Ok(Self { source, member, at: data, end, inflate, crc: Crc::new(), given: 0 })
    }

    /// Returns the offset of the next byte in the zip file, for a member that is not compressed.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// Checks that the contents end here, and that their length, their checksum and the data descriptor agree with the
    /// directory.
    pub fn finish(mut self) -> Result<()> {
        let mut more = [0];
        if Bytes::read(&mut self, &mut more)? != 0 {
            let expected = self.member.inflated;
            let what = format!("expected {expected} bytes as the directory states, found more");
            return Err(Error::damaged(what).at(self.member.offset));
        }
        let left = self.inflate.as_ref().map_or(0, |inflate| inflate.buf.len() - inflate.start);
        if self.at < self.end || left > 0 {
            return Err(Error::damaged("bytes follow the end of the compressed data").at(self.at));
        }
        if self.given != self.member.inflated {
            let (found, expected) = (self.given, self.member.inflated);
            let what = format!("expected {expected} bytes as the directory states, found {found}");
            return Err(Error::damaged(what).at(self.member.offset));
        }
        let (found, expected) = (self.crc.sum(), self.member.crc);
        if found != expected && self.member.checked {
            let what = format!("the CRC-32 is {found:08x}, the directory states {expected:08x}");
            return Err(Error::damaged(what).at(self.member.offset));
        }
        self.descriptor()
    }

    /// Checks the data descriptor after the contents, if the member has one. It has a signature or none, and sizes of
    /// 32 or 64 bits.
    fn descriptor(&self) -> Result<()> {
        if self.member.flags & flag::DESCRIPTOR == 0 {
            return Ok(());
        }
        let room = usize::try_from(self.member.limit - self.end).unwrap_or(usize::MAX);
        let mut found = vec![0; room.min(24)];
        read_at(self.source, &mut found, self.end)?;
        let Member { crc, compressed, inflated, .. } = self.member;
        let bytes = found.strip_prefix(&signature::DESCRIPTOR).unwrap_or(&found);
        let starts = |bytes: &[u8]| {
            let Some(rest) = bytes.strip_prefix(&crc.to_le_bytes()) else { return false };
            let wide = [compressed.to_le_bytes(), inflated.to_le_bytes()].concat();
            let short = u32::try_from(*compressed).ok().zip(u32::try_from(*inflated).ok());
            let is_short = short.is_some_and(|(compressed, inflated)| {
                rest.starts_with(&[compressed.to_le_bytes(), inflated.to_le_bytes()].concat())
            });
            is_short || rest.starts_with(&wide)
        };
        // If the descriptor has no signature, its checksum can still equal that of the signature.
        if starts(bytes) || starts(&found) {
            return Ok(());
        }
        Err(Error::damaged("the data descriptor after the member differs from the directory")
            .at(self.end))
    }

    /// Reads bytes of the member without inflating them.
    fn raw(&mut self, out: &mut [u8]) -> Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let len = left.min(out.len());
        let Some(out) = out.get_mut(..len) else { return Ok(0) };
        read_at(self.source, out, self.at)?;
        self.at += len as u64;
        Ok(len)
    }

    fn inflated(&mut self, inflate: &mut Inflate, out: &mut [u8]) -> Result<usize> {
        while !inflate.ended && !out.is_empty() {
            if inflate.start == inflate.buf.len() {
                inflate.buf.resize(STEP, 0);
                inflate.start = 0;
                let read = self.raw(&mut inflate.buf)?;
                inflate.buf.truncate(read);
            }
            let input = inflate.buf.get(inflate.start..).unwrap_or_default();
            let before = (inflate.raw.total_in(), inflate.raw.total_out());
            let status = inflate.raw.decompress(input, out, FlushDecompress::None);
            let status = status.map_err(|_| {
                Error::damaged("the compressed data are damaged").at(self.at - input.len() as u64)
            })?;
            let used = inflate.raw.total_in() - before.0;
            let made = inflate.raw.total_out() - before.1;
            inflate.start += usize::try_from(used).unwrap_or(input.len()).min(input.len());
            inflate.ended = status == Status::StreamEnd;
            if made > 0 {
                return Ok(usize::try_from(made).unwrap_or(out.len()).min(out.len()));
            }
            if used == 0 && !inflate.ended {
                return Err(
                    Error::damaged("the compressed data end without a final block").at(self.at)
                );
            }
        }
        Ok(0)
    }
}

impl<S: ReadAt + ?Sized> Bytes for Contents<'_, S> {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        let n = match self.inflate.take() {
            None => self.raw(out)?,
            Some(mut inflate) => {
                let n = self.inflated(&mut inflate, out);
                self.inflate = Some(inflate);
                n?
            }
        };
        self.crc.update(out.get(..n).unwrap_or_default());
        self.given = self.given.saturating_add(n as u64);
        Ok(n)
    }
}

/// Checks that the member has a supported form, and that its compressed data can have the stated length.
fn supported(member: &Member) -> Result<()> {
    let at = |error: Error| Err(error.at(member.offset));
    if member.flags & (flag::ENCRYPTED | flag::STRONGLY_ENCRYPTED | flag::MASKED) != 0 {
        return at(Error::unsupported("the member is encrypted"));
    }
    if member.flags & flag::PATCHES != 0 {
        return at(Error::unsupported(
            "the member is a patch of another file, which is not supported",
        ));
    }
    match member.method {
        STORED if member.compressed == member.inflated => Ok(()),
        DEFLATED if member.inflated / MAX_RATIO <= member.compressed => Ok(()),
        STORED | DEFLATED => {
            let (found, claimed) = (member.compressed, member.inflated);
            let what = format!(
                "{found} stored bytes cannot be the {claimed} bytes that the directory states"
            );
            at(Error::damaged(what))
        }
        other => at(Error::unsupported(format!(
            "the member is compressed by method {other}; only stored and deflated ones are read"
        ))),
    }
}
