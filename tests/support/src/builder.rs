//! A second writer of archives, made from the specification alone. It writes wrong claims too, and
//! gives them correct hashes.

// Positions are those of small archives in memory.
#![allow(clippy::cast_possible_truncation)]

use twox_hash::XxHash3_64;

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
        let lengths: Vec<u64> = self.buffers.iter().map(|buffer| buffer.len() as u64).collect();
        let fields = [
            unsigned(self.version),
            self.name.clone(),
            unsigned(self.alignment),
            self.check.clone(),
            self.chunk.clone(),
            self.lengths.clone().unwrap_or_else(|| dims(&lengths)),
            self.metadata.clone(),
        ];
        sealed(&own(*b"TSEG", &[head(ARRAY, 7), fields.concat()].concat()), offset)
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

/// Offset and name of a segment.
pub type Entry = (u64, Vec<u8>);

fn entries(entries: &[Entry]) -> Vec<u8> {
    let entry = |(at, name): &Entry| array(&[unsigned(*at), name.clone()]);
    array(&entries.iter().map(entry).collect::<Vec<_>>())
}

/// A block of entries, where it stands.
pub fn block(content: &[Entry], offset: u64) -> Vec<u8> {
    sealed(&own(*b"TDIR", &array(&[unsigned(1), unsigned(0), entries(content)])), offset)
}

/// A block of blocks.
pub fn upper_block(level: u64, blocks: &[u64], offset: u64) -> Vec<u8> {
    sealed(&own(*b"TDIR", &array(&[unsigned(1), unsigned(level), dims(blocks)])), offset)
}

/// The root of a directory.
#[derive(Clone, Default)]
pub struct Root {
    pub count: u64,
    pub entries: Vec<Entry>,
    pub levels: Vec<Vec<u64>>,
}

impl Root {
    /// The end mark, and the tail behind it.
    pub fn end(&self, offset: u64) -> Vec<u8> {
        self.end_of_version(1, offset)
    }

    pub fn end_of_version(&self, version: u64, offset: u64) -> Vec<u8> {
        let levels: Vec<_> = self.levels.iter().map(|level| dims(level)).collect();
        let fields =
            [unsigned(version), unsigned(self.count), entries(&self.entries), array(&levels)];
        let mut mark = sealed(&own(*b"TEND", &array(&fields)), offset);
        mark.extend(tail(offset, offset + mark.len() as u64));
        mark
    }
}

pub fn tail(mark: u64, offset: u64) -> Vec<u8> {
    let mut content = b"\x58\x20TARCTAIL".to_vec();
    content.extend(mark.to_be_bytes());
    content.extend(offset.to_be_bytes());
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
        self.root.entries.push((at, seg.name.clone()));
        self.root.count += 1;
        if self.root.entries.len() == 64 {
            let at = self.position();
            self.bytes.extend(block(&std::mem::take(&mut self.root.entries), at));
            if self.root.levels.is_empty() {
                self.root.levels.push(Vec::new());
            }
            self.root.levels[0].push(at);
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
