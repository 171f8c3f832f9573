//! Verifies every byte of an archive.

use super::loaded::Loaded;
use super::scan::{self, scan};
use super::source;
use crate::error::{Error, Result};
use crate::io::at::ReadAt;
use crate::io::checksum::{Hasher, STEP};
use crate::options::Limits;
use crate::segment::buffers::wrong_checksum;
use crate::segment::path;
use crate::wire::tensor::Payload;

pub fn verify<S: ReadAt + ?Sized>(
    source: &S,
    len: u64,
    limits: Limits,
    mut progress: impl FnMut(u64, u64),
) -> Result<()> {
    let mut step = vec![0; STEP];
    let scan = scan(source, len, |segment| {
        segment.hashes(source)?;
        references(source, segment, limits)?;
        body(source, segment, &mut step, &mut |at| progress(at, len))
    })?;
    match scan.fault {
        None if scan.is_finished() => {}
        Some(fault) if fault.category() != crate::error::Category::Torn => return Err(fault),
        _ => return Err(scan::torn(&scan, len)),
    }
    progress(len, len);
    Ok(())
}

/// Checks that the metadata is one item, that its references match the buffers, and that every buffer
/// is referred to.
fn references<S: ReadAt + ?Sized>(source: &S, segment: &Loaded, limits: Limits) -> Result<()> {
    let header = &segment.header;
    let mut referred = vec![false; header.count()];
    path::visit(segment.metadata(source)?, header, limits, &mut |_, item| {
        if let Payload::Buffer { number, .. } = item.payload
            && let Some(seen) = usize::try_from(number).ok().and_then(|at| referred.get_mut(at))
        {
            *seen = true;
        }
    })?;
    match referred.iter().position(|seen| !seen) {
        None => Ok(()),
        Some(number) => {
            let what = format!("nothing refers to buffer {number}");
            Err(Error::damaged(what).at(header.offset))
        }
    }
}

/// Checks the padding and the checksums of the buffers. Reads blocks of the length of `step`.
pub fn body<S: ReadAt + ?Sized>(
    source: &S,
    segment: &Loaded,
    step: &mut [u8],
    progress: &mut dyn FnMut(u64),
) -> Result<()> {
    let layout = &segment.header.layout;
    if layout.buffers.is_empty() {
        return Ok(());
    }
    let before = layout.before_body()?;
    let found = source::bytes(source, layout.header_end, before.len() as u64)?;
    if let Some(at) = found.iter().zip(&before).position(|(found, expected)| found != expected) {
        let what = "wrong padding before the body";
        return Err(Error::damaged(what).at(layout.header_end + at as u64));
    }
    let stored = segment.hashes(source)?;
    let mut position = layout.body_start;
    for (number, &(start, len)) in layout.buffers.iter().enumerate() {
        let gap = source::bytes(source, position, start - position)?;
        if let Some(at) = gap.iter().position(|&byte| byte != 0) {
            let what = format!("the padding before buffer {number} is not zero");
            return Err(Error::damaged(what).at(position + at as u64));
        }
        position = start;
        let mut hasher = Hasher::new();
        while position < start + len {
            let left = usize::try_from(start + len - position).unwrap_or(usize::MAX);
            let part = step.len().min(left);
            let part = step.get_mut(..part).unwrap_or_default();
            source::read_exact(source, part, position)?;
            hasher.update(part);
            position += part.len() as u64;
            progress(position);
        }
        let computed = hasher.finish();
        match stored.get(number) {
            Some(&stored) if stored != computed => {
                return Err(wrong_checksum(number as u64, computed, stored, start));
            }
            _ => {}
        }
    }
    Ok(())
}
