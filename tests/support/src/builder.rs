//! A second writer of archives, made from the specification alone. It writes wrong claims too, and
//! gives them correct hashes.

// Positions are those of small archives in memory.
#![allow(clippy::cast_possible_truncation)]

use twox_hash::{XxHash3_64, XxHash3_128};

pub const MAGIC: &[u8] = b"\xd9\xd9\xf8\xda\x54\x41\x52\x43\x43BOR";

const UNSIGNED: u8 = 0;
const BYTES: u8 = 2;
const TEXT: u8 = 3;
const ARRAY: u8 = 4;
const MAP: u8 = 5;
const TAG: u8 = 6;

/// A head in the fewest bytes.
pub fn head(major: u8, arg: u64) -> Vec<u8> {
    let wide = arg.to_be_bytes();
    let (info, from) = match arg {
        0..0x18 => return vec![(major << 5) | wide[7]],
        0x18..0x100 => (24, 7),
        0x100..0x1_0000 => (25, 6),
        0x1_0000..0x1_0000_0000 => (26, 4),
        _ => (27, 0),
    };
    [&[(major << 5) | info], &wide[from..]].concat()
}

pub fn unsigned(value: u64) -> Vec<u8> {
    head(UNSIGNED, value)
}

pub fn bytes(content: &[u8]) -> Vec<u8> {
    [head(BYTES, content.len() as u64), content.to_vec()].concat()
}

pub fn text(content: &str) -> Vec<u8> {
    raw_text(content.as_bytes())
}

/// A text string that need not be UTF-8.
pub fn raw_text(content: &[u8]) -> Vec<u8> {
    [head(TEXT, content.len() as u64), content.to_vec()].concat()
}

pub fn array(items: &[Vec<u8>]) -> Vec<u8> {
    [head(ARRAY, items.len() as u64), items.concat()].concat()
}

pub fn tag(number: u64, content: &[u8]) -> Vec<u8> {
    [head(TAG, number), content.to_vec()].concat()
}

/// A tag of four letters.
pub fn own(name: [u8; 4], content: &[u8]) -> Vec<u8> {
    tag(u32::from_be_bytes(name).into(), content)
}

/// A map of text keys.
pub fn map(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let items = entries.iter().map(|(key, value)| [text(key), value.clone()].concat());
    [head(MAP, entries.len() as u64), items.collect::<Vec<_>>().concat()].concat()
}

fn dims(shape: &[u64]) -> Vec<u8> {
    array(&shape.iter().map(|&dim| unsigned(dim)).collect::<Vec<_>>())
}

/// A reference to a tensor in a buffer.
pub fn tensor_ref(dtype: &str, shape: &[u64], number: u64) -> Vec<u8> {
    own(*b"TBUF", &array(&[text(dtype), dims(shape), text("C"), unsigned(number)]))
}

/// A reference to a sequence of numbers in a buffer.
pub fn numbers_ref(dtype: &str, number: u64) -> Vec<u8> {
    own(*b"TBUF", &array(&[text(dtype), unsigned(number)]))
}

/// A reference to a byte string in a buffer.
pub fn bytes_ref(number: u64) -> Vec<u8> {
    own(*b"TBUF", &array(&[unsigned(number)]))
}

/// The own tag of an inline tensor.
pub fn inline_tensor(dtype: &str, shape: &[u64], payload: &[u8]) -> Vec<u8> {
    own(*b"TENS", &array(&[text(dtype), dims(shape), text("C"), bytes(payload)]))
}

/// The length of a chunk, if a test does not say otherwise.
const CHUNK: u64 = 1 << 20;

pub fn hash(content: &[u8], seed: u64) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, content)
}

fn hash_item(hash: u64) -> Vec<u8> {
    bytes(&hash.to_be_bytes())
}

/// A record and its hash, bound to where it stands.
pub fn sealed(content: &[u8], offset: u64) -> Vec<u8> {
    let mut record = tag(24, &bytes(content));
    let hash = hash(&record, offset);
    record.extend(hash_item(hash));
    record
}

/// A segment to be, true unless it is told otherwise.
#[derive(Clone)]
pub struct Seg {
    pub version: u64,
    pub name: Vec<u8>,
    pub alignment: u64,
    pub check: Vec<u8>,
    /// The length of a chunk.
    pub chunk: Vec<u8>,
    /// What the header says of the buffers, if not the truth.
    pub lengths: Option<Vec<u8>>,
    /// The extensions.
    pub ext: Vec<u8>,
    pub metadata: Vec<u8>,
    pub buffers: Vec<Vec<u8>>,
    /// Padding before the body, if not as it must be.
    pub padding: Option<fn(usize) -> Vec<u8>>,
    /// What fills the gaps between buffers.
    pub filler: u8,
    /// The head of the hashes, if not as it must be.
    pub hashes_tag: u64,
    /// Hashes of the buffers, if not the true ones.
    pub hashes: Option<Vec<u64>>,
}

impl Seg {
    pub fn new(metadata: Vec<u8>, buffers: &[&[u8]]) -> Self {
        Self {
            version: 1,
            name: vec![0xf6],
            alignment: 256,
            check: text("xxh3-64"),
            chunk: unsigned(CHUNK),
            lengths: None,
            ext: vec![0xa0],
            metadata,
            buffers: buffers.iter().map(|buffer| buffer.to_vec()).collect(),
            padding: None,
            filler: 0,
            hashes_tag: 67,
            hashes: None,
        }
    }

    pub fn named(mut self, name: &str) -> Self {
        self.name = text(name);
        self
    }

    pub fn aligned(mut self, alignment: u64) -> Self {
        self.alignment = alignment;
        self
    }

    pub fn unchecked(mut self) -> Self {
        self.check = vec![0xf6];
        self
    }

    /// The header says that the buffers are so long.
    pub fn claiming(mut self, lengths: &[u64]) -> Self {
        self.lengths = Some(dims(lengths));
        self
    }

    /// The record with its hash, where the segment starts at `offset`.
    fn record(&self, offset: u64) -> Vec<u8> {
        sealed(&self.content(self.name.clone()), offset)
    }

    fn content(&self, name: Vec<u8>) -> Vec<u8> {
        let lengths: Vec<u64> = self.buffers.iter().map(|buffer| buffer.len() as u64).collect();
        let fields = [
            unsigned(self.version),
            name,
            unsigned(self.alignment),
            self.check.clone(),
            self.chunk.clone(),
            self.lengths.clone().unwrap_or_else(|| dims(&lengths)),
            self.ext.clone(),
            self.metadata.clone(),
        ];
        own(*b"TSEG", &[head(ARRAY, 8), fields.concat()].concat())
    }

    /// The directory's entry, where the segment starts at `offset`.
    pub fn entry(&self, offset: u64) -> Entry {
        let header = self.record(offset).len() as u64;
        (offset, self.name.clone(), header, rows(&self.metadata), self.digest())
    }

    /// The digest. `None` if there is none, or if it depends on extensions.
    fn digest(&self) -> Option<[u8; 16]> {
        let has_hashes = self.buffers.is_empty() || self.check != [0xf6];
        if self.ext != [0xa0] || !has_hashes {
            return None;
        }
        let mut content = self.content(vec![0xf6]);
        if !self.buffers.is_empty() {
            let trailer = self.trailer(&[0; 8]);
            content.extend(&trailer[..trailer.len() - 9]);
        }
        Some(XxHash3_128::oneshot(&content).to_be_bytes())
    }

    /// The hashes of the buffers, bound to the record.
    fn trailer(&self, record: &[u8]) -> Vec<u8> {
        let record_hash = u64::from_be_bytes(*record.last_chunk().unwrap());
        let hashes = match (&self.hashes, self.check == [0xf6]) {
            (Some(hashes), _) => hashes.clone(),
            (None, true) => Vec::new(),
            (None, false) => {
                // Tests with another length of chunks have short buffers.
                let chunks = self.buffers.iter().flat_map(|buffer| buffer.chunks(CHUNK as usize));
                chunks.map(|chunk| hash(chunk, 0)).collect()
            }
        };
        let hashes: Vec<u8> = hashes.iter().flat_map(|hash| hash.to_be_bytes()).collect();
        let trailer = tag(self.hashes_tag, &bytes(&hashes));
        let bound = hash(&trailer, record_hash);
        [trailer, hash_item(bound)].concat()
    }

    /// The metadata of the segment's parts.
    pub fn parts(&self) -> Vec<u8> {
        let record = self.record(0);
        let behind = if self.buffers.is_empty() { Vec::new() } else { self.trailer(&record) };
        [record, behind].concat()
    }

    /// The bytes of the segment where it starts at `offset`.
    pub fn bytes(&self, offset: u64) -> Vec<u8> {
        let mut out = self.record(offset);
        if self.buffers.is_empty() {
            return out;
        }
        let trailer = self.trailer(&out);
        let align = usize::try_from(self.alignment).unwrap_or(1).max(1);

        let mut body = Vec::new();
        for buffer in &self.buffers {
            body.resize(body.len().next_multiple_of(align), self.filler);
            body.extend(buffer);
        }
        let body_head = head(BYTES, body.len() as u64);
        let at = offset as usize + out.len() + body_head.len();
        let gap = at.next_multiple_of(align) - at;
        out.extend(self.padding.unwrap_or(padding)(gap));
        out.extend(body_head);
        out.extend(body);
        out.extend(trailer);
        out
    }
}

/// So many bytes of padding: one byte string, with an empty one before it where none is that long.
pub fn padding(gap: usize) -> Vec<u8> {
    match gap {
        0 => Vec::new(),
        1 => bytes(&[]),
        25 | 258 => [bytes(&[]), padding(gap - 1)].concat(),
        _ => {
            (1..=5).map(|head| bytes(&vec![0; gap - head])).find(|made| made.len() == gap).unwrap()
        }
    }
}

/// The number of elements of an array or of columns.
fn rows(metadata: &[u8]) -> Option<u64> {
    let (mut left, mut at) = match metadata.strip_prefix(b"\xdaTCOL") {
        Some(columns) => {
            let (major, items, len) = read_head(columns)?;
            (if major == ARRAY { items / 2 } else { return None }, 5 + len)
        }
        None => {
            let (major, items, _) = read_head(metadata)?;
            return (major == ARRAY).then_some(items);
        }
    };
    let mut rows = 0;
    while left > 0 {
        let (_, group, len) = read_head(metadata.get(at..)?)?;
        rows += group;
        at += len;
        at += item_len(metadata.get(at..)?)?;
        left -= 1;
    }
    Some(rows)
}

/// Major type, argument and length of a head with a definite length.
fn read_head(item: &[u8]) -> Option<(u8, u64, usize)> {
    let first = *item.first()?;
    let len = match first & 0x1f {
        info @ 0..24 => return Some((first >> 5, info.into(), 1)),
        info @ 24..28 => 1 << (info - 24),
        _ => return None,
    };
    let arg = item.get(1..=len)?.iter().fold(0, |arg, &byte| arg << 8 | u64::from(byte));
    Some((first >> 5, arg, 1 + len))
}

fn item_len(item: &[u8]) -> Option<usize> {
    let (major, arg, mut at) = read_head(item)?;
    let inside = match major {
        BYTES | TEXT => {
            at += arg as usize;
            0
        }
        ARRAY => arg,
        MAP => 2 * arg,
        TAG => 1,
        _ => 0,
    };
    for _ in 0..inside {
        at += item_len(item.get(at..)?)?;
    }
    (at <= item.len()).then_some(at)
}

/// Offset, name, length of the header, rows and digest of a segment.
pub type Entry = (u64, Vec<u8>, u64, Option<u64>, Option<[u8; 16]>);

/// Offset and length of a block.
pub type BlockAt = (u64, u64);

fn entries(entries: &[Entry], in_block: bool) -> Vec<u8> {
    let mut names: Vec<&[u8]> = Vec::new();
    let mut items = Vec::new();
    for (at, name, header, rows, digest) in entries {
        let number = (*name != [0xf6]).then(|| {
            names.iter().position(|known| known == name).unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            })
        });
        let optional = |number: Option<u64>| number.map_or(vec![0xf6], unsigned);
        let number = optional(number.map(|number| number as u64));
        let mut entry = vec![unsigned(*at), number, unsigned(*header), optional(*rows)];
        if in_block {
            entry.push(digest.map_or(vec![0xf6], |digest| bytes(&digest)));
        }
        items.push(array(&entry));
    }
    let names: Vec<_> = names.into_iter().map(<[u8]>::to_vec).collect();
    array(&[array(&names), array(&items)])
}

fn blocks(blocks: &[BlockAt]) -> Vec<u8> {
    let block = |&(at, len): &BlockAt| array(&[unsigned(at), unsigned(len)]);
    array(&blocks.iter().map(block).collect::<Vec<_>>())
}

/// A block of the directory with this list.
fn directory(level: u64, list: Vec<u8>, offset: u64) -> Vec<u8> {
    let fields = [unsigned(1), unsigned(level), list, vec![0xa0]];
    sealed(&own(*b"TDIR", &array(&fields)), offset)
}

/// A block of entries, where it stands.
pub fn block(content: &[Entry], offset: u64) -> Vec<u8> {
    directory(0, entries(content, true), offset)
}

/// A block of blocks.
pub fn upper_block(level: u64, lower: &[BlockAt], offset: u64) -> Vec<u8> {
    directory(level, blocks(lower), offset)
}

/// The root of a directory.
#[derive(Clone)]
pub struct Root {
    pub count: u64,
    pub entries: Vec<Entry>,
    pub levels: Vec<Vec<BlockAt>>,
    pub ext: Vec<u8>,
}

impl Default for Root {
    fn default() -> Self {
        Self { count: 0, entries: Vec::new(), levels: Vec::new(), ext: vec![0xa0] }
    }
}

impl Root {
    /// The end mark, and the tail behind it.
    pub fn end(&self, offset: u64) -> Vec<u8> {
        self.end_of_version(1, offset)
    }

    /// The end mark, the padding and the tail behind it.
    pub fn end_of_version(&self, version: u64, offset: u64) -> Vec<u8> {
        let mut mark = self.mark(version, offset);
        let len = mark.len() as u64;
        let end = offset + len;
        let at = if end % 512 <= 470 { end } else { end.next_multiple_of(512) };
        mark.extend(padding((at - end) as usize));
        mark.extend(tail(offset, len, at));
        mark
    }

    /// The end mark alone.
    pub fn mark(&self, version: u64, offset: u64) -> Vec<u8> {
        let levels: Vec<_> = self.levels.iter().map(|level| blocks(level)).collect();
        let entries = entries(&self.entries, false);
        let fields =
            [unsigned(version), unsigned(self.count), entries, array(&levels), self.ext.clone()];
        sealed(&own(*b"TEND", &array(&fields)), offset)
    }
}

/// An auxiliary record.
pub fn auxiliary(kind: u64, payload: &[u8], offset: u64) -> Vec<u8> {
    sealed(&own(*b"TAUX", &array(&[unsigned(1), unsigned(kind), payload.to_vec()])), offset)
}

/// The length of a tail.
pub const TAIL: usize = 42;

pub fn tail(mark: u64, mark_len: u64, offset: u64) -> Vec<u8> {
    let mut content = b"\x58\x28TARCTAIL".to_vec();
    for number in [mark, mark_len, offset] {
        content.extend(number.to_be_bytes());
    }
    let hash = hash(&content, offset);
    content.extend(hash.to_be_bytes());
    content
}

/// An archive in the making.
#[derive(Clone)]
pub struct Built {
    pub bytes: Vec<u8>,
    pub root: Root,
}

impl Built {
    pub fn new() -> Self {
        Self { bytes: MAGIC.to_vec(), root: Root::default() }
    }

    pub fn position(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend(bytes);
        self
    }

    /// A segment, in the directory too.
    pub fn segment(mut self, seg: &Seg) -> Self {
        let at = self.position();
        self.bytes.extend(seg.bytes(at));
        self.root.entries.push(seg.entry(at));
        self.root.count += 1;
        if self.root.entries.len() == 64 {
            let at = self.position();
            let block = block(&std::mem::take(&mut self.root.entries), at);
            if self.root.levels.is_empty() {
                self.root.levels.push(Vec::new());
            }
            self.root.levels[0].push((at, block.len() as u64));
            self.bytes.extend(block);
        }
        self
    }

    pub fn end(mut self) -> Self {
        let mark = self.root.end(self.position());
        self.bytes.extend(mark);
        self
    }

    /// An end mark with another directory.
    pub fn end_with(mut self, change: impl FnOnce(&mut Root)) -> Vec<u8> {
        change(&mut self.root);
        self.end().bytes
    }
}

/// An archive of one segment.
pub fn archive(seg: &Seg) -> Vec<u8> {
    Built::new().segment(seg).end().bytes
}

/// An archive of one value and its buffers.
pub fn simple(metadata: Vec<u8>, buffers: &[&[u8]]) -> Vec<u8> {
    archive(&Seg::new(metadata, buffers))
}
