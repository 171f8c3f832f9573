//! The links of a group. The crate that reads the format gives the members of a group, but not how links lead to them, and
//! leaves out links that lead to no member.

use hdf5_reader::btree_v1::collect_btree_v1_leaves_storage;
use hdf5_reader::btree_v2::{BTreeV2Header, BTreeV2Record, collect_btree_v2_records_storage};
use hdf5_reader::error::{Error, Result};
use hdf5_reader::fractal_heap::{FractalHeap, FractalHeapDirectBlockCache};
use hdf5_reader::group::Group;
use hdf5_reader::io::Cursor;
use hdf5_reader::local_heap::LocalHeap;
use hdf5_reader::messages::HdfMessage;
use hdf5_reader::messages::link::{self, LinkMessage, LinkTarget};
use hdf5_reader::messages::link_info::LinkInfoMessage;
use hdf5_reader::messages::symbol_table_msg::SymbolTableMessage;
use hdf5_reader::symbol_table::SymbolTableNode;

/// What a link leads to.
#[derive(Clone, Copy, Debug)]
pub enum Link {
    /// A link by a path. If it is no member of the group, the file has no group and no dataset there.
    Soft,
    /// An object at this address, which is a named datatype if it is no member.
    Object(u64),
}

/// The cache type of a symbolic link in a symbol table.
const SYMBOLIC: u32 = 2;

/// Calls `each` with the name of every link of a group, except links to other files, and with what it is. `messages` are those of the header of the group.
pub fn each(
    group: &Group,
    messages: &[HdfMessage],
    mut each: impl FnMut(&str, Link),
) -> Result<()> {
    let mut of_message = |link: &LinkMessage| match link.target {
        LinkTarget::Hard { address } => each(&link.name, Link::Object(address)),
        LinkTarget::Soft { .. } => each(&link.name, Link::Soft),
        // These are losses, which the resolver of external links finds.
        LinkTarget::External { .. } => {}
    };
    for message in messages {
        match message {
            HdfMessage::Link(link) => of_message(link),
            HdfMessage::LinkInfo(info)
                if !Cursor::is_undefined_offset(info.fractal_heap_address, group.offset_size()) =>
            {
                dense(group, info, &mut of_message)?;
            }
            _ => {}
        }
    }
    for message in messages {
        if let HdfMessage::SymbolTable(table) = message {
            symbols(group, table, &mut each)?;
        }
    }
    Ok(())
}

/// The links of a group that has many.
fn dense(group: &Group, info: &LinkInfoMessage, each: &mut dyn FnMut(&LinkMessage)) -> Result<()> {
    let (storage, offset_size, length_size) =
        (group.storage(), group.offset_size(), group.length_size());
    let heap_at = info.fractal_heap_address;
    let heap = FractalHeap::parse_at_storage(storage, heap_at, offset_size, length_size)?;
    let tree_at = info.btree_name_index_address;
    let tree = BTreeV2Header::parse_at_storage(storage, tree_at, offset_size, length_size)?;
    let records = collect_btree_v2_records_storage(
        storage,
        &tree,
        offset_size,
        length_size,
        None,
        &[],
        None,
    )?;
    let mut cache = FractalHeapDirectBlockCache::default();
    for record in &records {
        let BTreeV2Record::LinkNameHash { heap_id, .. } = record else { continue };
        let bytes =
            heap.get_object_storage_cached(heap_id, storage, offset_size, length_size, &mut cache)?;
        let mut cursor = Cursor::new(&bytes);
        each(&link::parse(&mut cursor, offset_size, length_size, bytes.len())?);
    }
    Ok(())
}

/// The links of a group in the older form.
fn symbols(
    group: &Group,
    table: &SymbolTableMessage,
    each: &mut dyn FnMut(&str, Link),
) -> Result<()> {
    let (storage, offset_size, length_size) =
        (group.storage(), group.offset_size(), group.length_size());
    let heap = LocalHeap::parse_at_storage(storage, table.heap_address, offset_size, length_size)?;
    let len = usize::try_from(heap.data_segment_size);
    let len = len.map_err(|_| Error::InvalidData("the names of a group are too long".into()))?;
    let leaves = collect_btree_v1_leaves_storage(
        storage,
        table.btree_address,
        offset_size,
        length_size,
        None,
        &[],
        None,
    )?;
    let names = if leaves.is_empty() {
        None
    } else {
        Some(storage.read_range(heap.data_segment_address, len)?)
    };
    let names: &[u8] = names.as_ref().map_or(&[], AsRef::as_ref);
    for (_, at) in &leaves {
        // The signature, the version and the number of symbols are in the first 8 bytes.
        let first = storage.read_range(*at, 8)?;
        let count = first.as_ref().get(6..8).and_then(|count| count.try_into().ok());
        let count = usize::from(count.map_or(0, u16::from_le_bytes));
        let len = 8 + count * (2 * usize::from(offset_size) + 24);
        let node = storage.read_range(*at, len)?;
        let mut cursor = Cursor::new(node.as_ref());
        for entry in SymbolTableNode::parse(&mut cursor, offset_size, length_size)?.entries {
            let name = usize::try_from(entry.link_name_offset).ok();
            let name = name.and_then(|start| names.get(start..)).unwrap_or_default();
            let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
            let link = match entry.cache_type {
                SYMBOLIC => Link::Soft,
                _ => Link::Object(entry.object_header_address),
            };
            each(&String::from_utf8_lossy(name), link);
        }
    }
    Ok(())
}
