//! Lists the paths in the metadata of a segment and reads the tensors at them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use super::find::find_item;
use super::schema::Schema;
use super::spelling::{Ambiguous, ItemPath, Of, Step, Written, key};
use crate::error::{Category, Error, Result};
use crate::io::buffers::BufferLengths;
use crate::io::input::Input;
use crate::meta::TensorMeta;
use crate::options::Limits;
use crate::segment::header::Header;
use crate::tensor::TensorInfo;
use crate::wire::head;
use crate::wire::reader::{ItemStart, Left, Reader};
use crate::wire::tag;
use crate::wire::tensor::{ItemPayload, Kind, TensorItem};
use crate::wire::walk::{Event, Walk};

/// The keys of a map or the indices of an array at `path`.
pub fn keys(metadata: &[u8], header: &Header, path: &str, limits: Limits) -> Result<Vec<String>> {
    let range = find_item(metadata, Some(&header.layout.buffers), path, limits)?;
    let item = metadata.get(range).unwrap_or_default();
    let mut lengths = BufferLengths(&header.layout.buffers);
    let mut wire = Reader::new(Input::segment(item, 0, &mut lengths), limits);
    let mut head = wire.head()?;
    while head.major() == head::TAG && !tag::is_leaf(head.arg) {
        head = wire.head()?;
    }
    let mut left = Left::of(head);
    let mut keys = Vec::new();
    match head.major() {
        head::ARRAY => {
            while wire.more(&mut left)? {
                wire.within(0, Reader::skip)?;
                keys.push(keys.len().to_string());
            }
        }
        head::MAP => {
            while wire.more(&mut left)? {
                keys.push(key(&mut wire)?.into_owned());
                wire.within(0, Reader::skip)?;
            }
        }
        head::TAG if tag::may_be_packed(head.arg) => {
            let item = wire.tensor(head.arg).map_err(|error| error.in_field(path))?;
            if item.kind != Kind::Numbers || !item.meta.dtype.is_packed() {
                return Err(no_keys("a tensor or a byte string").in_field(path));
            }
            let len = item.meta.shape.first().copied().unwrap_or_default();
            keys.extend((0..len).map(|index| index.to_string()));
        }
        _ => return Err(no_keys(head::name(head.initial)).in_field(path)),
    }
    Ok(keys)
}

fn no_keys(found: &str) -> Error {
    Error::mismatch(format!("expected a map or an array with keys, found {found}"))
}

/// Reads the tensor in `item` up to its payload. Also returns the rest of the item, which starts with
/// the payload if that is inline.
pub fn tensor_at<'de>(
    item: &'de [u8],
    base: u64,
    header: &Header,
    limits: Limits,
) -> Result<(TensorItem, &'de [u8])> {
    let mut lengths = BufferLengths(&header.layout.buffers);
    let mut wire = Reader::new(Input::segment(item, base, &mut lengths), limits);
    let at = wire.offset();
    let found = loop {
        match wire.item()? {
            ItemStart::Tag(tag::SOME) | ItemStart::Within(_) => {}
            ItemStart::Tag(tag) if tag::is_leaf(tag) => break wire.tensor(tag)?,
            ItemStart::Head(head) => {
                let found = head::name(head.initial);
                return Err(Error::mismatch(format!("expected a tensor, found {found}")).at(at));
            }
            ItemStart::Tag(tag) => {
                return Err(Error::mismatch(format!("expected a tensor, found tag {tag}")).at(at));
            }
        }
    };
    let start = usize::try_from(wire.offset() - base).unwrap_or(usize::MAX);
    Ok((found, item.get(start..).unwrap_or_default()))
}

/// Lists all tensors of a segment in the order of the metadata. Columns are listed if they are tensors.
pub fn list(metadata: &[u8], header: &Header, limits: Limits) -> Result<Vec<TensorInfo>> {
    list_some(metadata, header, limits, true)
}

/// Like [`list`], without columns.
pub fn list_without_columns(
    metadata: &[u8],
    header: &Header,
    limits: Limits,
) -> Result<Vec<TensorInfo>> {
    list_some(metadata, header, limits, false)
}

fn list_some(
    metadata: &[u8],
    header: &Header,
    limits: Limits,
    with_columns: bool,
) -> Result<Vec<TensorInfo>> {
    let mut found = Vec::new();
    let mut add = |Described { info, is_unique }| {
        if !is_unique {
            let what = "no path leads to this tensor: a key on the way occurs twice in its map";
            return Err(Error::unsupported(what).in_field(info.path()));
        }
        found.push(info);
        Ok(())
    };
    let (base, buffers) = (header.metadata_offset(), &header.layout.buffers);
    inform(metadata, base, buffers, limits, &mut |place, seen, describe| match seen {
        SeenItem::Payload(item) => match item.kind {
            Kind::Numbers | Kind::Tensor if place.path.is_named() && !place.in_columns => {
                add(describe(None)?)
            }
            _ => Ok(()),
        },
        SeenItem::Columns(at) if with_columns && place.path.is_named() => {
            let start = usize::try_from(at - header.metadata_offset()).unwrap_or(usize::MAX);
            let item = metadata.get(start..).unwrap_or_default();
            let outline = Schema::of_groups(item, at, &header.layout.buffers, limits)?;
            let columns = (0..outline.columns.len()).filter(|&number| outline.is_tensor(number));
            columns.map(|number| describe(Some((&outline, number)))).try_for_each(|told| add(told?))
        }
        SeenItem::Columns(_) => Ok(()),
    })?;
    Ok(found)
}

/// For each buffer, the first payload that it holds. `None` if nothing refers to the buffer. A payload in
/// columns has the path of the sequence that is stored as columns.
pub fn in_buffers(
    metadata: &[u8],
    header: &Header,
    limits: Limits,
) -> Result<Vec<Option<TensorInfo>>> {
    in_buffers_at(metadata, header.metadata_offset(), &header.layout.buffers, limits)
}

/// Like [`in_buffers`]. The metadata starts at offset `base`.
pub fn in_buffers_at(
    metadata: &[u8],
    base: u64,
    buffers: &[(u64, u64)],
    limits: Limits,
) -> Result<Vec<Option<TensorInfo>>> {
    let mut found = vec![None; buffers.len()];
    inform(metadata, base, buffers, limits, &mut |_, seen, describe| {
        if let SeenItem::Payload(TensorItem { payload: ItemPayload::Buffer { number, .. }, .. }) =
            seen
            && let Some(first @ None) =
                usize::try_from(*number).ok().and_then(|number| found.get_mut(number))
        {
            *first = Some(describe(None)?.info);
        }
        Ok(())
    })?;
    Ok(found)
}

/// What is in a buffer, for errors.
pub struct BufferContent {
    pub path: String,
    /// The rows of a column that are in the buffer.
    pub rows: Option<Range<u64>>,
}

/// Adds the path of the first tensor in a buffer to an error. If it is a column, and the buffer is damaged, the message
/// says which rows are in the buffer.
#[cold]
pub fn in_content(metadata: &[u8], header: &Header, number: u64, error: Error) -> Error {
    let content = content_of(metadata, header, Limits::default(), number);
    let Ok(Some(BufferContent { path, rows })) = content else { return error };
    let error = match rows {
        Some(Range { start, end }) if error.category() == Category::Damaged => {
            error.meaning(&format!("rows {start}..{end}"))
        }
        _ => error,
    };
    error.under(&path)
}

/// The first thing that a buffer holds: a tensor, a byte string, or part of a column. `None` if nothing refers to the
/// buffer.
pub fn content_of(
    metadata: &[u8],
    header: &Header,
    limits: Limits,
    buffer: u64,
) -> Result<Option<BufferContent>> {
    let (base, buffers) = (header.metadata_offset(), &header.layout.buffers);
    let is_it = |item: &TensorItem| match item.payload {
        ItemPayload::Buffer { number, .. } => number == buffer,
        _ => false,
    };
    let mut found = None;
    inform(metadata, base, buffers, limits, &mut |place, seen, describe| {
        match seen {
            _ if found.is_some() => {}
            SeenItem::Payload(item) if !place.in_columns && is_it(item) => {
                let path = describe(None)?.info.path().to_owned();
                found = Some(BufferContent { path, rows: None });
            }
            SeenItem::Payload(_) => {}
            SeenItem::Columns(at) => {
                let start = usize::try_from(at - base).unwrap_or(usize::MAX);
                let item = metadata.get(start..).unwrap_or_default();
                let mut offset = None;
                references_at(item, at, buffers, limits, &mut |end, item| {
                    if is_it(item) {
                        offset.get_or_insert(end.saturating_sub(1));
                    }
                })?;
                let Some(offset) = offset else { return Ok(()) };
                let outline = Schema::of_groups(item, at, buffers, limits)?;
                let holder = outline.holders().at(offset);
                let column = holder.as_ref().and_then(|holder| holder.column);
                let sequence = place.path.text();
                let names = column.map(|number| outline.names(number)).unwrap_or_default();
                let steps = (!sequence.is_empty()).then_some(&*sequence).into_iter().chain(names);
                let path = steps.collect::<Vec<_>>().join(".");
                found = Some(BufferContent { path, rows: holder.map(|holder| holder.rows) });
            }
        }
        Ok(())
    })?;
    Ok(found)
}

/// The paths of the columns that contain tensors which [`list`] does not list.
pub fn hidden_in_columns(
    metadata: &[u8],
    buffers: &[(u64, u64)],
    limits: Limits,
) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut result = Ok(());
    walk(metadata, 0, buffers, limits, &mut |place, seen| {
        if let SeenItem::Columns(at) = seen
            && result.is_ok()
        {
            let item = usize::try_from(at).ok().and_then(|at| metadata.get(at..));
            match Schema::of_groups(item.unwrap_or_default(), at, buffers, limits) {
                Ok(outline) if outline.hides_tensors() => found.push(place.path.text()),
                Ok(_) => {}
                Err(error) => result = Err(error),
            }
        }
    })?;
    result.map(|()| found)
}

/// The minimum total length of listed paths, in bytes, before listing is refused.
const PATHS: usize = 16 << 20;

/// The description of a payload.
pub struct Described {
    pub info: TensorInfo,
    /// Whether the path leads only to this payload.
    pub is_unique: bool,
}

/// Something that a walk over metadata has found.
#[derive(Clone, Copy)]
pub enum SeenItem<'i> {
    /// A tensor, a sequence of numbers, or a byte string in a buffer.
    Payload(&'i TensorItem),
    /// Columns. The array of groups starts at this offset.
    Columns(u64),
}

/// Builds a description: of the payload, or of one of the columns.
pub type Describe<'d> = dyn FnMut(Option<(&Schema<'_>, usize)>) -> Result<Described> + 'd;

/// Callback for each payload, and for columns. Gets the path, what was found there, and a function that describes it.
pub type Inform<'a> =
    dyn FnMut(PayloadPlace<'_>, SeenItem<'_>, &mut Describe<'_>) -> Result<()> + 'a;

/// Where a payload is.
#[derive(Clone, Copy)]
pub struct PayloadPlace<'p> {
    pub path: &'p ItemPath,
    /// Whether it is in columns. The path is then that of the sequence which the columns stand for.
    pub in_columns: bool,
}

/// Calls `each` for every tensor, every sequence of numbers, every byte string in a buffer, and for columns.
pub fn inform(
    metadata: &[u8],
    base: u64,
    buffers: &[(u64, u64)],
    limits: Limits,
    each: &mut Inform<'_>,
) -> Result<()> {
    let ambiguous =
        Ambiguous::of(Of::Tensors, metadata, limits).map_err(|error| error.moved_by(base))?;
    // One long key is part of the path of every tensor under it, so that a small file could have
    // paths that fill the memory.
    let budget = usize::try_from(limits.longest()).unwrap_or(usize::MAX);
    let most = metadata.len().saturating_mul(16).max(PATHS).min(budget);
    let mut left = most;
    let mut result = Ok(());
    walk(metadata, base, buffers, limits, &mut |place, seen| {
        let mut describe = |column: Option<(&Schema<'_>, usize)>| {
            let components = place.path.components();
            let names = column.map(|(outline, number)| outline.names(number)).unwrap_or_default();
            let Written { text, is_unique } = match column {
                None => ambiguous.written(components),
                Some((outline, number)) => {
                    let components =
                        components.chain(names.iter().map(|name| Cow::Borrowed(*name)));
                    ambiguous.written_in(components, outline.is_ambiguous(number))
                }
            };
            left = left.checked_sub(text.len()).ok_or_else(|| {
                Error::limit(format!("paths of tensors take more than {most} bytes"))
            })?;
            let info = match (column, seen) {
                (Some((outline, number)), _) => outline.whole(number).info(text),
                (None, SeenItem::Payload(item)) => Some(TensorInfo::of(text, item)),
                (None, SeenItem::Columns(_)) => None,
            };
            let info = info.ok_or_else(|| Error::mismatch("the column is not a tensor"))?;
            Ok(Described { info, is_unique })
        };
        if result.is_ok() {
            result = each(place, seen, &mut describe);
        }
    })?;
    result
}

/// Calls `each` for every tensor, every sequence of numbers, and every byte string in a buffer.
pub fn visit(
    metadata: &[u8],
    header: &Header,
    limits: Limits,
    each: &mut dyn FnMut(PayloadPlace<'_>, &TensorItem),
) -> Result<()> {
    walk(metadata, header.metadata_offset(), &header.layout.buffers, limits, &mut |place, seen| {
        if let SeenItem::Payload(item) = seen {
            each(place, item);
        }
    })
}

/// Like [`visit`], but also checks the form of columns.
pub fn check(
    metadata: &[u8],
    header: &Header,
    limits: Limits,
    each: &mut dyn FnMut(&TensorItem),
) -> Result<()> {
    let (base, buffers) = (header.metadata_offset(), &header.layout.buffers);
    let mut result = Ok(());
    walk(metadata, base, buffers, limits, &mut |place, seen| match seen {
        SeenItem::Payload(item) => each(item),
        SeenItem::Columns(at) if result.is_ok() => {
            let start = usize::try_from(at - base).unwrap_or(usize::MAX);
            let item = metadata.get(start..).unwrap_or_default();
            let outline = Schema::of_groups(item, at, buffers, limits);
            result = outline.map(drop).map_err(|error| error.under(&place.path.text()));
        }
        SeenItem::Columns(_) => {}
    })?;
    result
}

/// Like [`visit`], but also calls `each` for columns. The metadata starts at offset `base`.
fn walk(
    metadata: &[u8],
    base: u64,
    buffers: &[(u64, u64)],
    limits: Limits,
    each: &mut dyn FnMut(PayloadPlace<'_>, SeenItem<'_>),
) -> Result<()> {
    let mut lengths = BufferLengths(buffers);
    let mut wire = Reader::new(Input::segment(metadata, base, &mut lengths), limits);
    let mut path = ItemPath::default();
    let visit = Visit { metadata, base, wire: &mut wire, path: Some(&mut path), columns: None };
    let visited = visit.all(&mut |place, _, seen| {
        if let Some(place) = place {
            each(place, seen);
        }
    });
    visited.map_err(|error| if path.0.is_empty() { error } else { error.in_field(path.text()) })?;
    if wire.peek()?.is_some() {
        return Err(Error::data("expected one item of metadata, found more").at(wire.offset()));
    }
    Ok(())
}

/// Calls `each` for every tensor, every sequence of numbers, and every byte string in a buffer. The number
/// is the offset in the archive after the item, up to its payload.
pub fn references(
    metadata: &[u8],
    header: &Header,
    limits: Limits,
    each: &mut dyn FnMut(u64, &TensorItem),
) -> Result<()> {
    references_at(metadata, header.metadata_offset(), &header.layout.buffers, limits, each)
}

/// Like [`references`]. The metadata starts at offset `base`.
pub fn references_at(
    metadata: &[u8],
    base: u64,
    buffers: &[(u64, u64)],
    limits: Limits,
    each: &mut dyn FnMut(u64, &TensorItem),
) -> Result<()> {
    let mut lengths = BufferLengths(buffers);
    let mut wire = Reader::new(Input::segment(metadata, base, &mut lengths), limits);
    Visit { metadata, base, wire: &mut wire, path: None, columns: None }.all(&mut |_, at, seen| {
        if let SeenItem::Payload(item) = seen {
            each(at, item);
        }
    })
}

/// Calls `each` for every valid reference to a buffer, with the offset in the archive after it. A malformed one is
/// passed over: it is an error only where it is read.
pub fn valid_references(
    metadata: &[u8],
    header: &Header,
    limits: Limits,
    each: &mut dyn FnMut(u64, &TensorItem),
) -> Result<()> {
    let base = header.metadata_offset();
    let (mut lengths, mut same) =
        (BufferLengths(&header.layout.buffers), BufferLengths(&header.layout.buffers));
    let mut wire = Reader::new(Input::segment(metadata, base, &mut lengths), limits);
    let mut walk = Walk::with_known_tags();
    while let Some(event) = walk.next(&mut wire)? {
        match event {
            Event::Tag(tag::BUFFER) => {
                let at = wire.offset();
                let start = usize::try_from(at - base).unwrap_or(usize::MAX);
                let rest = metadata.get(start..).unwrap_or_default();
                let mut inside = Reader::new(Input::segment(rest, at, &mut same), limits);
                if let Ok(item) = inside.tensor(tag::BUFFER) {
                    each(inside.offset(), &item);
                }
                walk.take(&mut wire).within(1, Reader::skip)?;
            }
            Event::Tag(tag) if tag::is_array(tag) => {
                walk.take(&mut wire).within(1, Reader::skip)?;
            }
            Event::Leaf(head) => wire.skip_rest(head)?,
            _ => {}
        }
    }
    Ok(())
}

/// Bytes of the shortest reference to a buffer: tag, array head, number.
pub const MIN_REFERENCE: usize = 5 + 1 + 1;

/// The first buffer that nothing refers to.
pub fn unreferred(metadata: &[u8], header: &Header, limits: Limits) -> Result<Option<usize>> {
    let mut seen = vec![false; header.count()];
    references(metadata, header, limits, &mut |_, item| {
        if let ItemPayload::Buffer { number, .. } = item.payload
            && let Some(seen) = usize::try_from(number).ok().and_then(|at| seen.get_mut(at))
        {
            *seen = true;
        }
    })?;
    Ok(seen.iter().position(|seen| !seen))
}

/// Callback for each payload, and for columns. Gets the place if paths are recorded, and the offset after the item of
/// the payload up to the payload itself.
type Each<'a> = dyn FnMut(Option<PayloadPlace<'_>>, u64, SeenItem<'_>) + 'a;

/// A walk over all items of the metadata.
struct Visit<'v, 'de, 'b> {
    metadata: &'de [u8],
    /// Offset of the metadata in the archive.
    base: u64,
    wire: &'v mut Reader<'de, 'b>,
    /// The path of the next item, if paths are recorded.
    path: Option<&'v mut ItemPath>,
    /// The depth of the walk outside the columns that it is in. Their parts have no paths.
    columns: Option<usize>,
}

impl<'de> Visit<'_, 'de, '_> {
    fn all(mut self, each: &mut Each<'_>) -> Result<()> {
        let mut walk = Walk::with_known_tags();
        let mut text = None;
        // After an error, the path is that of the item that it is in. So a step is added before the item is
        // read, and removed after that.
        while let Some(event) = walk.next(self.wire)? {
            match event {
                Event::Element(index) => self.enter(Step::Index(index)),
                Event::Key(_) => {
                    self.enter(Step::InKey);
                    // A text of definite length is read here. Another key may contain tensors, so the walk
                    // goes through it, and the key is read again after that.
                    let is_text = (0x60..0x7f).contains(&self.wire.initial()?);
                    if self.has_path() && is_text {
                        text = Some(key(walk.take(self.wire))?);
                        self.leave();
                    }
                }
                Event::Value { key } if self.has_path() => {
                    self.enter(Step::InKey);
                    let key = text.take().map_or_else(|| self.key(key), Ok)?;
                    self.leave();
                    self.enter(Step::Key(key.into_owned()));
                }
                Event::Value { .. } => {}
                Event::Array(_) | Event::Map(_) => {}
                Event::Tag(tag::SOME | tag::STRING_REFERENCE | tag::SHARED_REFERENCE) => {}
                Event::Tag(tag::COLUMNS) => {
                    if self.columns.is_none() {
                        let place = self
                            .path
                            .as_deref()
                            .map(|path| PayloadPlace { path, in_columns: false });
                        let at = self.wire.offset();
                        each(place, at, SeenItem::Columns(at));
                        self.columns = Some(walk.depth() - 1);
                    }
                }
                Event::Tag(tag) => {
                    let wire = walk.take(self.wire);
                    if tag::is_array(tag) {
                        let item = wire.tensor(tag)?;
                        let in_columns = self.columns.is_some();
                        let place =
                            self.path.as_deref().map(|path| PayloadPlace { path, in_columns });
                        each(place, wire.offset(), SeenItem::Payload(&item));
                        wire.skip_payload(&item)?;
                    } else {
                        wire.within(1, Reader::skip)?;
                    }
                    self.leave();
                }
                Event::Leaf(head) => {
                    self.wire.skip_rest(head)?;
                    self.leave();
                }
                Event::End { .. } if self.columns == Some(walk.depth()) => {
                    self.columns = None;
                    self.leave();
                }
                // Any other tag ends together with its item, which has removed the step already.
                Event::End { major: head::TAG, .. } => {}
                Event::End { .. } => self.leave(),
            }
        }
        Ok(())
    }

    fn has_path(&self) -> bool {
        self.path.is_some() && self.columns.is_none()
    }

    fn enter(&mut self, step: Step) {
        if let Some(path) = &mut self.path
            && self.columns.is_none()
        {
            path.0.push(step);
        }
    }

    fn leave(&mut self) {
        if let Some(path) = &mut self.path
            && self.columns.is_none()
        {
            path.0.pop();
        }
    }

    /// The key at this offset.
    fn key(&self, at: u64) -> Result<Cow<'de, str>> {
        let start = usize::try_from(at - self.base).unwrap_or(usize::MAX);
        let item = Input::slice(self.metadata.get(start..).unwrap_or_default());
        let key = key(&mut Reader::new(item, self.wire.limits()));
        key.map_err(|error| error.moved_by(at))
    }
}

/// The keys of a map; for each key whose value is a tensor, also the tensor's description.
pub fn entries(
    metadata: &[u8],
    header: &Header,
    limits: Limits,
) -> Result<Vec<(String, Option<TensorMeta>)>> {
    let mut metas = HashMap::new();
    visit(metadata, header, limits, &mut |place, item| {
        if let [Step::Key(key)] = &place.path.0[..]
            && item.kind != Kind::Bytes
            && !place.in_columns
        {
            metas.insert(key.clone(), item.meta.clone());
        }
    })?;
    let keys = keys(metadata, header, "", limits)?;
    Ok(keys.into_iter().map(|key| (key.clone(), metas.get(&key).cloned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::chunks::ChunkLen;
    use crate::options::DecodeOptions;
    use crate::parts::PartsInfo;
    use crate::segment::header::HeaderContent;
    use crate::segment::items::ItemEncoder;
    use crate::segment::packed::PackedBuffers;

    #[test]
    fn listing_deep_values_takes_no_stack() {
        const DEPTH: usize = 200_000;
        let mut items = ItemEncoder::new();
        for _ in 0..DEPTH {
            items.head(head::ARRAY, 1).unwrap();
        }
        items.raw(&crate::to_vec(&crate::Tensor(vec![1u8])).unwrap()).unwrap();
        let metadata = items.into_bytes();
        let content = HeaderContent {
            name: None,
            alignment: 8,
            check: &crate::segment::format::Check::None,
            chunk_len: ChunkLen::default(),
            lengths: &[],
            packed: &PackedBuffers::new(),
            ext: &crate::segment::ext::Ext::default(),
            metadata: &metadata,
        };
        let parts = content.record(0).unwrap().0.concat();
        let tensors = |max_depth| {
            let limits = Limits::default().with_max_depth(max_depth);
            let options = DecodeOptions::default().with_limits(limits);
            PartsInfo::with_options(&parts[..], options)?.tensors()
        };
        assert_eq!(tensors(DEPTH + 3).unwrap()[0].path().len(), 2 * DEPTH - 1);
        assert!(tensors(DEPTH + 2).unwrap_err().to_string().contains("nesting is deeper"));
    }
}
