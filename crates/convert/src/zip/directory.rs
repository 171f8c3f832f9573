//! Reads the central directory: the list of members at the end of a zip file.

use std::collections::HashSet;

use tenarc::error::Category;
use tenarc::io::ReadAt;
use tenarc::{Error, Result};

use super::contents::read_at;
use super::{
    CENTRAL_LEN, END_LEN, END64_LEN, Fields, LOCAL_LEN, LOCATOR64_LEN, Member, flag, signature,
    widened,
};
use crate::shown::shown;

/// The greatest length of the comment after the end record.
const MAX_COMMENT: usize = 0xffff;

/// The number of bytes of the list that are read at once. No field is longer.
const STEP: usize = 1 << 16;

/// The members of a zip file, as the central directory lists them.
#[derive(Debug)]
pub struct Directory {
    pub members: Vec<Member>,
    /// The comment of the zip file, which follows the end record.
    pub comment: Vec<u8>,
}

/// The contents of the end record: the number of members, the start and end of the list, and the comment.
struct Found {
    count: u64,
    start: u64,
    end: u64,
    comment: Vec<u8>,
}

impl Directory {
    /// Reads the list of members. Memory grows with the members that are read, not with the number that the file
    /// states.
    pub fn read<S: ReadAt + ?Sized>(source: &S) -> Result<Self> {
        let len = source.size().map_err(Error::io)?;
        let found = end_record(source, len)?;
        let mut members = Vec::new();
        let (at, end) = (found.start, found.end);
        let mut window = Window { source, at, end, bytes: Vec::new(), taken: 0 };
        while window.at < found.end {
            members.push(window.member()?);
        }
        if members.len() as u64 != found.count {
            let (count, listed) = (found.count, members.len());
            let what = format!(
                "the end record states {count} members, the central directory lists {listed}"
            );
            return Err(Error::damaged(what).at(found.start));
        }
        apart(&mut members, found.start)?;
        Ok(Self { members, comment: found.comment })
    }
}

fn end_record<S: ReadAt + ?Sized>(source: &S, len: u64) -> Result<Found> {
    let tail_len = len.min((END_LEN + MAX_COMMENT) as u64);
    let base = len - tail_len;
    let mut tail = vec![0; usize::try_from(tail_len).unwrap_or(0)];
    read_at(source, &mut tail, base)?;
    // The comment can contain the signature of the end record. So the end record is the last match whose comment ends
    // at the end of the file.
    let ends = |at: &usize| {
        let Some(record) = tail.get(*at..).filter(|record| record.len() >= END_LEN) else {
            return false;
        };
        let mut comment = Fields(record.get(END_LEN - 2..).unwrap_or_default());
        record.starts_with(&signature::END) && usize::from(comment.u16()) == record.len() - END_LEN
    };
    let at = (0..tail.len()).rev().find(ends).ok_or_else(|| {
        Error::new(Category::Torn, "expected a zip file, found no end record").at(len)
    })?;
    let mut fields = Fields(tail.get(at + 4..).unwrap_or_default());
    let disks = (fields.u16(), fields.u16());
    let (here, count) = (fields.u16(), fields.u16());
    let (size, start) = (fields.u32(), fields.u32());
    let comment = tail.get(at + END_LEN..).unwrap_or_default().to_vec();
    let at = base + at as u64;
    let short = [u64::from(count), size.into(), start.into()];
    if disks != (0, 0) && disks != (0xffff, 0xffff) || here != count {
        return Err(Error::unsupported(
            "the zip file is split over several disks, which is not supported",
        )
        .at(at));
    }
    let ([count, size, start], end) = end_record64(source, at, short)?.unwrap_or((short, at));
    // Some readers find the list by its start, and others by its size. They must find the same list.
    if start.checked_add(size) != Some(end) {
        let what = format!("{size} bytes from byte {start} on, which must end at byte {end}");
        return Err(Error::damaged(format!("the central directory takes {what}")).at(at));
    }
    Ok(Found { count, start, end, comment })
}

/// Reads the 64-bit end record before the end record at `end`. Returns the count of members, the size and start of the
/// list, and the offset of this record, where the list ends. `None` if there is no such record. `short` are the same
/// three numbers in the end record.
fn end_record64<S: ReadAt + ?Sized>(
    source: &S,
    end: u64,
    short: [u64; 3],
) -> Result<Option<([u64; 3], u64)>> {
    let Some(at) = end.checked_sub(LOCATOR64_LEN as u64) else { return Ok(None) };
    let mut locator = [0; LOCATOR64_LEN];
    read_at(source, &mut locator, at)?;
    let mut fields = Fields(&locator);
    if fields.array() != signature::LOCATOR64 {
        return Ok(None);
    }
    let (disk, start, disks) = (fields.u32(), fields.u64(), fields.u32());
    let wrong = |what| Err(Error::damaged(format!("64-bit end record: {what}")).at(at));
    if disk != 0 || disks > 1 {
        return wrong("the zip file is split over several disks, which is not supported");
    }
    if start.checked_add(END64_LEN as u64).is_none_or(|end| end > at) {
        return wrong("it must end where its locator starts");
    }
    let mut record = [0; END64_LEN];
    read_at(source, &mut record, start)?;
    let mut fields = Fields(&record);
    let (found, len) = (fields.array(), fields.u64());
    // The length counts neither the signature nor itself, which take 12 bytes. The record may have further fields at
    // its end.
    if found != signature::END64
        || start.checked_add(12).and_then(|s| s.checked_add(len)) != Some(at)
    {
        return wrong("it must end where its locator starts");
    }
    let _versions = fields.u32();
    let disks = (fields.u32(), fields.u32());
    let (here, count) = (fields.u64(), fields.u64());
    let full = [count, fields.u64(), fields.u64()];
    if disks != (0, 0) || here != count {
        return wrong("the zip file is split over several disks, which is not supported");
    }
    let saturated = [0xffff, u32::MAX.into(), u32::MAX.into()];
    let same = |((short, full), most): ((u64, u64), u64)| short == most || short == full;
    if !short.into_iter().zip(full).zip(saturated).all(same) {
        return wrong("its numbers differ from those of the 32-bit end record");
    }
    Ok(Some((full, start)))
}

/// A reader of the list, which holds a part of it in memory.
struct Window<'a, S: ?Sized> {
    source: &'a S,
    /// The offset of the next byte in the file.
    at: u64,
    end: u64,
    bytes: Vec<u8>,
    /// The number of `bytes` that were consumed.
    taken: usize,
}

impl<S: ReadAt + ?Sized> Window<'_, S> {
    /// Consumes and returns the next `len` bytes.
    fn take(&mut self, len: usize) -> Result<Vec<u8>> {
        if len as u64 > self.end - self.at {
            let what = "the central directory ends inside an entry";
            return Err(Error::damaged(what).at(self.end));
        }
        if self.bytes.len() - self.taken < len {
            let room = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
            self.bytes.resize(room.min(STEP), 0);
            self.taken = 0;
            read_at(self.source, &mut self.bytes, self.at)?;
        }
        let found = self.bytes.get(self.taken..).and_then(|rest| rest.get(..len));
        let found = found.unwrap_or_default().to_vec();
        self.taken += len;
        self.at += len as u64;
        Ok(found)
    }

    fn member(&mut self) -> Result<Member> {
        let at = self.at;
        let head = self.take(CENTRAL_LEN)?;
        let mut fields = Fields(&head);
        let found: [u8; 4] = fields.array();
        if found != signature::CENTRAL {
            let found = shown(&found);
            let what = format!("expected an entry of the central directory, found {found}");
            return Err(Error::damaged(what).at(at));
        }
        let _versions = fields.u32();
        let (flags, method) = (fields.u16(), fields.u16());
        let _time = fields.u32();
        let crc = fields.u32();
        let (compressed, inflated) = (fields.u32(), fields.u32());
        let [name_len, extra_len, comment_len] = [fields.u16(), fields.u16(), fields.u16()];
        let disk = fields.u16();
        let _attributes = (fields.u16(), fields.u32());
        let offset = fields.u32();
        let name = name(self.take(name_len.into())?, flags).map_err(|error| error.at(at))?;
        let extra = self.take(extra_len.into())?;
        self.take(comment_len.into())?;
        let wide = widened([inflated, compressed, offset], &extra);
        let [inflated, compressed, offset] = wide.ok_or_else(|| {
            let what = "the 64-bit sizes of the member are incomplete or occur twice";
            Error::damaged(what).at(at).in_field(&name)
        })?;
        if disk != 0 && disk != 0xffff {
            return Err(Error::unsupported(
                "the zip file is split over several disks, which is not supported",
            )
            .at(at));
        }
        let checked = true;
        Ok(Member { name, method, flags, crc, checked, compressed, inflated, offset, limit: 0 })
    }
}

fn name(bytes: Vec<u8>, flags: u16) -> Result<String> {
    // Some writers do not set the flag for names in UTF-8. The file does not say which other code page a name could
    // have.
    let utf8 = String::from_utf8(bytes).map_err(|error| {
        let (found, flag) = (shown(error.as_bytes()), flags & flag::UTF8);
        let said = if flag == 0 { "is in an unknown character set" } else { "is not UTF-8" };
        Error::data(format!("the name of a member {said}: {found}"))
    })?;
    if utf8.contains('\0') {
        let found = shown(utf8.as_bytes());
        return Err(Error::data(format!("the name of a member has a zero byte: {found}")));
    }
    Ok(utf8)
}

/// Checks that members have different names, do not overlap, and end before the list at `end`. Sets the `limit` of
/// each.
fn apart(members: &mut [Member], end: u64) -> Result<()> {
    let mut names = HashSet::with_capacity(members.len());
    if let Some(twice) = members.iter().find(|member| !names.insert(member.name.as_str())) {
        return Err(Error::damaged("two members have this name").in_field(&twice.name));
    }
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|&at| members.get(at).map_or(0, |member| member.offset));
    let mut limit = end;
    for at in order.into_iter().rev() {
        let Some(member) = members.get_mut(at) else { continue };
        let least = (LOCAL_LEN + member.name.len()) as u64;
        let end = member.offset.saturating_add(least).saturating_add(member.compressed);
        if end > limit {
            let what = format!(
                "the member ends at byte {end} or later, but the next part of the file starts at byte {limit}"
            );
            return Err(Error::damaged(what).at(member.offset).in_field(&member.name));
        }
        member.limit = limit;
        limit = member.offset;
    }
    Ok(())
}
