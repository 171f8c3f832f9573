//! What the crate does not know, in the form of what it knows.
//!
//! The crate does not read an object of which one link or attribute is of a kind that it does not know. Such a part is given
//! another kind of the same length, so that the crate reads the others: the file seems to have other bytes there. What it
//! really is, is returned.

use std::collections::HashMap;

use hdf5_reader::btree_v2::{BTreeV2Header, BTreeV2Record, collect_btree_v2_records_storage};
use hdf5_reader::checksum::jenkins_lookup3;
use hdf5_reader::error::Result;
use hdf5_reader::fractal_heap::FractalHeap;
use hdf5_reader::io::Cursor;
use hdf5_reader::messages::shared::{self, SharedMessage};
use hdf5_reader::messages::{
    MSG_ATTRIBUTE, MSG_ATTRIBUTE_INFO, MSG_DATATYPE, MSG_LINK, MSG_LINK_INFO, attribute_info,
    link_info,
};
use hdf5_reader::{Datatype, Hdf5File, Storage as _};

use super::counted::Counted;
use super::header;

/// What an object has that the crate does not know.
#[derive(Default)]
pub struct Unknown {
    /// The user-defined links of a group, with their types.
    pub links: HashMap<String, u8>,
    /// The attributes whose datatype is a named one, with the bytes of that. The crate reads them as texts.
    pub types: HashMap<String, (Datatype, Vec<u8>)>,
}

/// The types of links in messages: a soft link, and the last type that is not defined by a user.
const SOFT: u8 = 1;
const EXTERNAL: u8 = 64;

/// The class of texts, in the first version of the encoding of datatypes.
const TEXTS: u8 = 0x13;

/// Finds what the crate does not know in the object whose header is at `address`, and gives it another kind.
pub fn mend(file: &Hdf5File, storage: &Counted, address: u64) -> Result<Unknown> {
    let mut mender = Mender { file, storage, unknown: Unknown::default() };
    let mut messages = Vec::new();
    header::each(file, address, &mut |message| {
        if !message.is_shared {
            messages.push((message.kind, message.at, message.bytes.to_vec(), message.checksum));
        }
        Ok(())
    })?;
    for (kind, at, bytes, checksum) in messages {
        let change = match kind {
            MSG_LINK => mender.link(&bytes)?,
            MSG_ATTRIBUTE => mender.attribute(&bytes)?,
            MSG_LINK_INFO | MSG_ATTRIBUTE_INFO => {
                let (offsets, lengths) = mender.sizes();
                let (cursor, len) = (&mut Cursor::new(&bytes), bytes.len());
                if kind == MSG_LINK_INFO {
                    let info = link_info::parse(cursor, offsets, lengths, len)?;
                    let places = (info.fractal_heap_address, info.btree_name_index_address);
                    mender.heap(places, Mender::link)?;
                } else {
                    let info = attribute_info::parse(cursor, offsets, lengths, len)?;
                    let places = (info.fractal_heap_address, info.btree_name_index_address);
                    mender.heap(places, Mender::attribute)?;
                }
                continue;
            }
            _ => continue,
        };
        let Some((place, change)) = change else { continue };
        mender.put(at.saturating_add(place), &change);
        if let Some((start, end)) = checksum {
            let len = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX);
            let covered = file.storage().read_range(start, len)?;
            mender.put(end, &jenkins_lookup3(covered.as_ref()).to_le_bytes());
        }
    }
    Ok(mender.unknown)
}

struct Mender<'a> {
    file: &'a Hdf5File,
    storage: &'a Counted,
    unknown: Unknown,
}

/// The offset of bytes in a message, and what replaces them.
type Change = Option<(u64, Vec<u8>)>;

impl Mender<'_> {
    fn sizes(&self) -> (u8, u8) {
        let superblock = self.file.superblock();
        (superblock.offset_size, superblock.length_size)
    }

    fn put(&self, address: u64, bytes: &[u8]) {
        let base = self.file.superblock().base_address;
        self.storage.mend(base.saturating_add(address), bytes);
    }

    /// A user-defined link has the form of a soft one.
    fn link(&mut self, message: &[u8]) -> Result<Change> {
        let &[_, flags, kind, ..] = message else { return Ok(None) };
        if flags & 8 == 0 || kind <= EXTERNAL {
            return Ok(None);
        }
        let mut cursor = Cursor::new(message);
        cursor.skip(3)?;
        // The order of creation and the character set.
        cursor.skip(if flags & 4 == 0 { 0 } else { 8 })?;
        cursor.skip(usize::from(flags & 16 != 0))?;
        let len = usize::try_from(cursor.read_uvar(1 << (flags & 3))?).unwrap_or(usize::MAX);
        let name = String::from_utf8_lossy(cursor.read_bytes(len)?).into_owned();
        self.unknown.links.insert(name, kind);
        Ok(Some((2, vec![SOFT])))
    }

    /// An attribute of a named datatype becomes one of texts of the same length.
    fn attribute(&mut self, message: &[u8]) -> Result<Change> {
        let &[version @ (2 | 3), 1, ..] = message else { return Ok(None) };
        let mut cursor = Cursor::new(message);
        cursor.skip(2)?;
        let [name_len, type_len, _] =
            [cursor.read_u16_le()?, cursor.read_u16_le()?, cursor.read_u16_le()?];
        cursor.skip(usize::from(version == 3))?;
        let name = cursor.read_fixed_string(name_len.into())?;
        let (at, type_len) = (cursor.position(), usize::from(type_len));
        let (offsets, lengths) = self.sizes();
        let found = shared::parse(&mut cursor, MSG_DATATYPE, offsets, lengths, type_len)?;
        let SharedMessage::SharedInOhdr { address, .. } = found else { return Ok(None) };
        let Some(raw) = header::message(self.file, address, MSG_DATATYPE)? else { return Ok(None) };
        let datatype = hdf5_reader::messages::datatype::parse(&mut Cursor::new(&raw), raw.len())?;
        let start = usize::try_from(at).unwrap_or(usize::MAX);
        let between = message.get(2..start).unwrap_or_default();
        let size = datatype.size.to_le_bytes();
        let change = [&[0][..], between, &[TEXTS, 0, 0, 0], &size].concat();
        if type_len < 8 || datatype.size == 0 {
            return Ok(None);
        }
        self.unknown.types.insert(name, (datatype.datatype, raw));
        // From the flags to the datatype.
        Ok(Some((1, change)))
    }

    /// Changes the messages of a group of many links, or of an object of many attributes. The places are those of a heap,
    /// and of the index of what is in it.
    fn heap(
        &mut self,
        (heap, tree): (u64, u64),
        change: fn(&mut Self, &[u8]) -> Result<Change>,
    ) -> Result<()> {
        let (storage, (offsets, lengths)) = (self.file.storage(), self.sizes());
        if Cursor::is_undefined_offset(heap, offsets) || Cursor::is_undefined_offset(tree, offsets)
        {
            return Ok(());
        }
        let heap = FractalHeap::parse_at_storage(storage, heap, offsets, lengths)?;
        let tree = BTreeV2Header::parse_at_storage(storage, tree, offsets, lengths)?;
        let records =
            collect_btree_v2_records_storage(storage, &tree, offsets, lengths, None, &[], None)?;
        for record in &records {
            let (BTreeV2Record::LinkNameHash { heap_id, .. }
            | BTreeV2Record::AttributeNameHash { heap_id, .. }) = record
            else {
                continue;
            };
            let message = heap.get_object_storage(heap_id, storage, offsets, lengths)?;
            // The last read was that of the block that has the message.
            let block_at = self.storage.last();
            let Some((place, change)) = change(self, &message)? else { continue };
            self.in_block(&heap, heap_id, block_at, place, &change)?;
        }
        Ok(())
    }

    /// Changes a message in a block of a heap.
    fn in_block(
        &self,
        heap: &FractalHeap,
        id: &[u8],
        (at, len): (u64, usize),
        place: u64,
        change: &[u8],
    ) -> Result<()> {
        // In front are the signature, the version, the address of the heap, and the offset of the block in the heap.
        let front = 5 + usize::from(self.sizes().0);
        let number_len = usize::from(heap.max_heap_size).div_ceil(8);
        let block = self.storage.read_range(at, len)?;
        let mut cursor = Cursor::new(block.as_ref());
        if cursor.read_bytes(4)? != b"FHDB" {
            return Ok(());
        }
        cursor.skip(front - 4)?;
        let first = cursor.read_uvar(number_len)?;
        let mut id = Cursor::new(id);
        id.skip(1)?;
        let offset = id.read_uvar(number_len)?.saturating_sub(first);
        self.storage.mend(at.saturating_add(offset).saturating_add(place), change);
        if heap.flags & 2 != 0 {
            // The checksum is behind, and counts as 0 in itself.
            let place = at.saturating_add((front + number_len) as u64);
            self.storage.mend(place, &[0; 4]);
            let block = self.storage.read_range(at, len)?;
            self.storage.mend(place, &jenkins_lookup3(block.as_ref()).to_le_bytes());
        }
        Ok(())
    }
}
