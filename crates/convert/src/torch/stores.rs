//! Reads tensors from the storages of a file, and checks limits for them.

use std::collections::HashSet;

use tenarc::de::Limits;
use tenarc::io::ReadAt;
use tenarc::tensor::TensorInfo;
use tenarc::{Error, Result};

use super::container::{Container, Home, stored};
use super::gather;
use super::layout::Place;
use super::pickle::Object;
use crate::support::{STEP, alloc_budget, over_memory};
use crate::zip::{Bytes as _, Contents, Member};

/// The storages of a file, and the objects of its pickle, some of which hold elements.
pub struct Stores<'a, S: ?Sized> {
    pub source: &'a S,
    pub container: &'a Container,
    pub objects: &'a [Object],
}

impl<S: ReadAt + ?Sized> Stores<'_, S> {
    /// Returns the position of a tensor's first element in the source, in bytes. `None` if the bytes in the source
    /// differ from those that [`blocks`](Self::blocks) gives.
    pub fn position(&self, place: &Place) -> Result<Option<u64>> {
        match place.home {
            Home::Member(member) if place.is_as_stored() => {
                let start = stored(self.source, self.member(member)?)?.position();
                Ok(Some(start.saturating_add(place.start)))
            }
            Home::Raw(start) if place.is_as_stored() => Ok(Some(start.saturating_add(place.start))),
            _ => Ok(None),
        }
    }

    /// Passes the elements of a tensor to `put` as little-endian bytes, block by block.
    pub fn blocks(
        &self,
        info: &TensorInfo,
        place: &Place,
        put: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut put = |block: &mut [u8]| {
            place.finish(block);
            put(block)
        };
        match place.home {
            Home::Object(number) => {
                let bytes = self.objects.get(number).and_then(Object::as_bytes);
                gather::elements(bytes.unwrap_or_default(), place.start, info, place, &mut put)
            }
            Home::Raw(start) => {
                let start = start.saturating_add(place.start);
                gather::elements(self.source, start, info, place, &mut put)
            }
            Home::Member(member) => {
                let member = self.member(member)?;
                let contents = stored(self.source, member)?;
                if place.whole {
                    return whole(contents, member.byte_len(), &mut put);
                }
                let start = contents.position().saturating_add(place.start);
                if place.strides.is_some() && place.start == 0 && place.span == member.byte_len() {
                    self.verify_member(member)?;
                }
                gather::elements(self.source, start, info, place, &mut put)
            }
        }
    }

    /// Reads all members, and compares their checksums.
    pub fn verify(&self) -> Result<()> {
        self.container.members.iter().try_for_each(|member| self.verify_member(member))
    }

    /// Compares the checksums of those storages that none of these tensors fills. Reading the tensors compares the
    /// others.
    pub fn verify_parts(&self, places: &[&Place]) -> Result<()> {
        let members = |is_whole: bool| {
            let places = places.iter().filter(move |place| place.whole == is_whole);
            places.filter_map(|place| match place.home {
                Home::Member(member) => Some(member),
                _ => None,
            })
        };
        let mut done: HashSet<usize> = members(true).collect();
        for member in members(false).filter(|member| done.insert(*member)) {
            self.verify_member(self.member(member)?)?;
        }
        Ok(())
    }

    fn verify_member(&self, member: &Member) -> Result<()> {
        let all = Contents::open(self.source, member);
        let read = all.and_then(|all| whole(all, member.byte_len(), &mut |_| Ok(())));
        read.map_err(|error| error.in_field(member.name()))
    }

    fn member(&self, number: usize) -> Result<&Member> {
        let member = self.container.members.get(number);
        member.ok_or_else(|| Error::data("there is no such member"))
    }
}

/// Passes all bytes of a member to `put`, block by block, and compares its checksum.
fn whole<S: ReadAt + ?Sized>(
    mut contents: Contents<'_, S>,
    len: u64,
    put: &mut dyn FnMut(&mut [u8]) -> Result<()>,
) -> Result<()> {
    let mut left = len;
    let mut block = Vec::new();
    while left > 0 {
        block.resize(usize::try_from(left).unwrap_or(STEP).min(STEP), 0);
        let mut done = 0;
        while let Some(rest) = block.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match contents.read(rest)? {
                0 => return Err(Error::eof("the rest of a storage")),
                read => done += read,
            }
        }
        left = left.saturating_sub(done as u64);
        put(&mut block)?;
    }
    contents.finish()
}

/// Checks that a tensor has neither more dimensions nor more bytes than are allowed.
pub fn check_limits(limits: Limits, info: &TensorInfo, place: &Place) -> Result<()> {
    let (found, most) = (info.shape().len(), limits.max_rank());
    if found > most {
        let what = format!("the tensor has {found} dimensions, {most} are allowed");
        return Err(Error::limit(what));
    }
    let found = info.byte_len();
    let most = alloc_budget(limits, found <= place.span);
    if found > most {
        return Err(over_memory(format!("the tensor has {found} bytes, {most} are allowed")));
    }
    Ok(())
}

/// Checks that a small file does not describe huge tensors. `meant` is the number of bytes of all tensors, and `stored`
/// that of all storages.
pub fn check_sum(limits: Limits, meant: u64, stored: u64) -> Result<()> {
    let most = limits.max_alloc().unwrap_or(stored.saturating_mul(16).saturating_add(64 << 20));
    if meant.saturating_sub(stored) <= most {
        return Ok(());
    }
    Err(over_memory(format!(
        "the storages have {stored} bytes, and tensors that share them take {meant}: at most {most} more bytes are allowed"
    )))
}
