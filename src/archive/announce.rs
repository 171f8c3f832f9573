//! Tells sources what will be read, so that they can fetch it before: [`ReadAt::will_read`].
//!
//! What cannot be found out is left out here. Reading it takes a request of its own, or is an error.

use std::collections::BTreeSet;
use std::ops::Range;

use super::segment::Segment;
use crate::buffer::ranges::stored_ranges;
use crate::buffer::slice::PayloadPart;
use crate::error::{Error, Result};
use crate::io::at::{ReadAt, announce};
use crate::path::list::tensor_at;
use crate::path::locate::Location;
use crate::tensor::Slices;
use crate::wire::tensor::ItemPayload;

impl<S: ReadAt + ?Sized> Segment<'_, S> {
    /// Announces buffers, and their checksums if they will be read.
    pub(super) fn announce(&self, numbers: impl FnOnce() -> Result<BTreeSet<u64>>) {
        announce(self.source, || {
            let mut places = self.places_of(numbers());
            if !places.is_empty() {
                places.extend(self.place_of_checksums());
            }
            places
        });
    }

    /// Announces the bytes of a buffer in which a part of it is stored.
    pub(super) fn announce_part(&self, part: &PayloadPart, number: u64) {
        announce(self.source, || stored_ranges(&self.loaded, part, number, self.options));
    }

    /// The ranges of the archive with these buffers.
    pub(super) fn places_of(&self, numbers: Result<BTreeSet<u64>>) -> Vec<Range<u64>> {
        let place = |number| {
            let place = self.loaded.stored_buffer(number).ok()?;
            Some(place.start()..place.start().saturating_add(place.stored_len()))
        };
        numbers.unwrap_or_default().into_iter().filter_map(place).collect()
    }

    /// The ranges of the archive with the buffers of what is at `path`.
    pub(super) fn places_at(&self, path: &str) -> Vec<Range<u64>> {
        self.places_of(self.numbers_at(path))
    }

    /// The ranges of the archive with a part of the tensor at `path`.
    pub(super) fn places_of_slice(&self, path: &str, slices: &Slices) -> Vec<Range<u64>> {
        let places = || match self.locate(path)? {
            Location::Item(range) => {
                let (base, item) = self.item(range)?;
                let (found, _) = tensor_at(item, base, self.header(), self.options.limits)?;
                let ItemPayload::Buffer { number, .. } = found.payload else {
                    return Ok(Vec::new());
                };
                let part = PayloadPart::new(&found.meta, slices)?;
                Ok(stored_ranges(&self.loaded, &part, number, self.options))
            }
            Location::InColumns(range, inside) => {
                Ok(self.places_of(self.numbers_inside(range, &inside)))
            }
        };
        places().unwrap_or_else(|_: Error| Vec::new())
    }

    /// The range of the archive with the checksums, if they will be read.
    pub(super) fn place_of_checksums(&self) -> Option<Range<u64>> {
        self.loaded.verifies(self.options).then(|| self.loaded.unread_hashes())?
    }
}
