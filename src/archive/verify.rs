//! Verifies every byte of an archive.

use std::iter;

use super::scan::{self, Compare, scan};
use crate::buffer::chunked;
use crate::buffer::loaded::Loaded;
use crate::buffer::source;
use crate::error::{Category, Error, Result};
use crate::io::at::{ReadAt, announce};
use crate::options::{DecodeOptions, Limits};
use crate::path::list;
use crate::wire::tensor::ItemPayload;

pub fn verify<S: ReadAt + ?Sized>(
    source: &S,
    len: u64,
    options: DecodeOptions,
    mut progress: impl FnMut(u64, u64),
) -> Result<()> {
    let mut segments = 0u64;
    let scan = scan(&source, len, Compare::Everything, |segment| {
        let number = segments;
        segments += 1;
        let mut verify = || {
            segment.hashes(source)?;
            // With an unknown extension, the metadata means something else.
            if segment.header.ext.is_known() {
                references(source, segment, options.limits)?;
            }
            body(source, segment, options, &mut |at| progress(at, len))
        };
        verify().map_err(|error| in_segment(error, number, segment.header.name.as_deref()))
    })?;
    match scan.fault {
        None if scan.is_finished() => {}
        Some(fault) if fault.category() != crate::error::Category::Torn => return Err(fault),
        _ => return Err(scan::torn(&scan, len)),
    }
    progress(len, len);
    Ok(())
}

/// Says which segment is damaged. The only value of an archive has neither a name nor another number than 0.
#[cold]
fn in_segment(error: Error, number: u64, name: Option<&str>) -> Error {
    match name {
        _ if error.category() != Category::Damaged => error,
        Some(name) => error.meaning(&format!("segment {number} (`{}`)", name.escape_debug())),
        None if number > 0 => error.meaning(&format!("segment {number}")),
        None => error,
    }
}

/// Checks that the metadata is one item, that its references match the buffers and are where references may be, that
/// every buffer is referred to, and that names in columns are distinct.
fn references<S: ReadAt + ?Sized>(source: &S, segment: &Loaded, limits: Limits) -> Result<()> {
    let header = &segment.header;
    let mut referred = vec![false; header.count()];
    list::check(segment.metadata(source)?, header, limits, &mut |item| {
        if let ItemPayload::Buffer { number, .. } = item.payload
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

/// Checks the padding and the checksums of the buffers, also if `options` say that checksums are not verified.
pub fn body<S: ReadAt + ?Sized>(
    source: &S,
    segment: &Loaded,
    options: DecodeOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<()> {
    let layout = &segment.header.layout;
    if layout.buffers.is_empty() {
        return Ok(());
    }
    let options = options.with_checksums(true);
    let before = layout.before_body()?;
    let found = source::bytes(source, layout.header_end, before.len() as u64)?;
    if let Some(at) = found.iter().zip(&before).position(|(found, expected)| found != expected) {
        let what = "wrong padding before the body";
        return Err(Error::damaged(what).at(layout.header_end + at as u64));
    }
    announce(source, || iter::once(layout.body_start..layout.body_end).collect());
    // Without checksums, the list of them is empty, but it must be intact too.
    segment.hashes(source)?;
    let mut position = layout.body_start;
    for (number, place) in (0..).zip(layout.places()) {
        let start = place.start();
        let gap = source::bytes(source, position, start - position)?;
        if let Some(at) = gap.iter().position(|&byte| byte != 0) {
            let what = format!("the padding before buffer {number} is not zero");
            return Err(Error::damaged(what).at(position + at as u64));
        }
        buffer(source, segment, number, options, progress)?;
        position = start + place.stored_len();
    }
    Ok(())
}

/// Checks the checksums of a buffer, if it has any. Calls `progress` with the offsets up to which it was read.
pub fn buffer<S: ReadAt + ?Sized>(
    source: &S,
    segment: &Loaded,
    number: u64,
    options: DecodeOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<()> {
    let place = segment.stored_buffer(number)?;
    if place.packed().is_some_and(|how| how.coding.digest().is_some()) {
        // Its bytes are not here.
        return Ok(());
    }
    let stored = segment.stored(source, number, options)?;
    chunked::verify(source, place, stored, options, progress).map_err(|error| {
        if error.category() == Category::Damaged {
            segment.in_tensor(source, number, error)
        } else {
            error
        }
    })
}
