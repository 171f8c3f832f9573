//! Reads a segment with one compressed buffer whose description and stored chunks are arbitrary and whose checksums are
//! right. All ways to read it must agree, and take no more memory than the buffer and what is stored of it suggest.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tenarc::archive::SaveOptions;
use tenarc::codec::{Codec, Encoder, Layout};
use tenarc::io::ReadAt;
use tenarc::{Archive, DynTensor, IArchive, OArchive, Tensor};
use tenarc_test_support::alloc::{Counting, peak_of};
use tenarc_test_support::builder::{Seg, archive, array, hash, tensor_ref, text, unsigned};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The length of a chunk: the shortest that there is.
const CHUNK: usize = 64 << 10;
const CHUNKS: usize = 3;
/// What may be allocated besides the buffer: the tables and chunks of a decoder, and steps of reading.
const ALLOWED: usize = 4 << 20;

/// A source that is read at positions, not lent.
struct At<'a>(&'a [u8]);

impl ReadAt for At<'_> {
    fn read_at(&self, out: &mut [u8], offset: u64) -> std::io::Result<usize> {
        self.0.read_at(out, offset)
    }

    fn size(&self) -> std::io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}

fn numbers(numbers: impl IntoIterator<Item = u64>) -> Vec<u8> {
    array(&numbers.into_iter().map(unsigned).collect::<Vec<_>>())
}

/// A segment, and the content of its only buffer, if that was compressed from it.
struct Case {
    bytes: Vec<u8>,
    len: usize,
    content: Option<Vec<u8>>,
}

/// Takes a byte from the front, or 0.
fn take(input: &mut &[u8]) -> u8 {
    let Some((&first, rest)) = input.split_first() else { return 0 };
    *input = rest;
    first
}

fn case(mut input: &[u8]) -> Case {
    let choice = take(&mut input);
    let form = take(&mut input);
    let codec = if choice & 1 == 0 { Codec::Zstd } else { Codec::Lz4 };
    let name = if form == 0xff { "later" } else { codec.name() };
    // 32 and 2 are parameters that no codec has.
    let width = 1u64 << (choice >> 1 & 7).min(5);
    let rotated = u64::from(choice >> 4 & 3).min(2);
    let len =
        usize::from_be_bytes([0, 0, 0, 0, 0, take(&mut input), take(&mut input), take(&mut input)]);
    let len = len % (CHUNKS * CHUNK) + 1;
    let count = len.div_ceil(CHUNK);
    let full = |index: usize| CHUNK.min(len - index * CHUNK);
    let width_of = usize::try_from(width).ok().filter(|_| rotated < 2);
    let layout = width_of.and_then(|width| Layout::new(width, rotated == 1));
    let mut chunks: Vec<Vec<u8>> = Vec::new();
    let mut content = None;
    match layout.filter(|_| choice & 0x40 != 0) {
        // What the encoder makes of the input, which is repeated.
        Some(layout) => {
            let (change, at) = (take(&mut input), [take(&mut input), take(&mut input)]);
            let seed = if input.is_empty() { &[0][..] } else { input };
            let bytes: Vec<u8> = seed.iter().cycle().take(len).copied().collect();
            let mut encoder = Encoder::new(codec, layout, 0).expect("level 0 is in every build");
            for chunk in bytes.chunks(CHUNK) {
                let mut stored = Vec::new();
                if !encoder.encode(chunk, &mut stored) {
                    stored = chunk.to_vec();
                }
                chunks.push(stored);
            }
            // A byte of one chunk is another one.
            let which = usize::from(change) % count;
            let at = usize::from(u16::from_be_bytes(at)) % chunks[which].len();
            chunks[which][at] ^= form;
            content = (form == 0).then_some(bytes);
        }
        None => {
            let part = input.len().div_ceil(count).max(1);
            for index in 0..count {
                let start = (index * part).min(input.len());
                let stored = &input[start..(start + part).min(input.len())];
                let stored = &stored[..stored.len().min(full(index))];
                chunks.push(if stored.is_empty() { vec![form] } else { stored.to_vec() });
            }
        }
    }
    let mut stored: Vec<u64> = chunks.iter().map(|chunk| chunk.len() as u64).collect();
    if choice & 0x80 != 0 && form != 0 {
        // Lengths with the same sum, or nearly.
        let last = stored.len() - 1;
        stored[0] = stored[0].wrapping_add(u64::from(form & 3));
        stored[last] = stored[last].wrapping_sub(u64::from(form >> 2 & 3));
        content = None;
    }
    let body = chunks.concat();
    let mut start = 0usize;
    let hashes = stored.iter().map(|&len| {
        let end = start.saturating_add(usize::try_from(len).unwrap_or(usize::MAX));
        let chunk = body.get(start..end).unwrap_or_default();
        start = end;
        hash(chunk, 0)
    });
    let hashes = Some(hashes.collect());
    let parameters = numbers([width, rotated]);
    let element = array(&[text(name), parameters, unsigned(len as u64), numbers(stored)]);
    let seg = Seg {
        lengths: Some(array(&[element])),
        chunk: unsigned(CHUNK as u64),
        hashes,
        ..Seg::new(tensor_ref("u8", &[len as u64], 0), &[&body])
    };
    Case { bytes: archive(&seg), len, content }
}

fuzz_target!(|input: &[u8]| {
    let Case { bytes, len, content } = case(input);
    let most = 3 * len + 4 * bytes.len() + ALLOWED;
    let bounded = |how: &str, taken: usize| {
        assert!(taken < most, "{how} takes {taken} bytes for {len}, stored in {}", bytes.len());
    };
    let streamed = || IArchive::new(&bytes[..])?.load::<Tensor<DynTensor>>();
    let (streamed, taken) = peak_of(streamed);
    bounded("a stream", taken);
    let opened = Archive::new(At(&bytes)).and_then(|archive| archive.only().map(drop));
    if let Err(error) = opened {
        assert!(content.is_none(), "{error}");
        assert!(streamed.is_err(), "a stream is read, but not the archive: {error}");
        return;
    }
    let positioned = Archive::new(At(&bytes)).expect("it was opened");
    let lent = Archive::new(&bytes[..]).expect("it was opened");
    let verified = lent.verify();
    let segment = positioned.only().expect("it was opened");
    type Read = tenarc::Result<Vec<u8>>;
    let own = |tensor: tenarc::Result<Tensor<DynTensor>>| -> Read {
        Ok(tensor?.0.le_bytes().into_owned())
    };
    let ways: [(&str, &dyn Fn() -> Read); 8] = [
        ("load", &|| own(positioned.load())),
        ("load from memory", &|| own(lent.load())),
        ("get", &|| own(segment.get(""))),
        ("tensor", &|| own(segment.dyn_tensor("").map(Tensor))),
        ("read_buffer", &|| {
            let mut all = Vec::new();
            segment.read_buffer(0, |block| {
                all.extend_from_slice(block);
                Ok(())
            })?;
            Ok(all)
        }),
        ("read_buffer_part", &|| {
            let mut out = vec![0; len];
            let (front, back) = out.split_at_mut(len / 3);
            segment.read_buffer_part(0, (len / 3) as u64, back)?;
            segment.read_buffer_part(0, 0, front)?;
            Ok(out)
        }),
        ("parts", &|| own(segment.to_parts()?.load())),
        ("a copy", &|| {
            let stored = segment.stored(0..segment.metadata()?.len())?;
            let options = SaveOptions::default().with_chunk_len(CHUNK as u64).with_inline_below(1);
            let mut out = OArchive::with_options(Vec::new(), options)?;
            out.save(&stored)?;
            let copy = Archive::new(out.finish()?)?;
            copy.verify()?;
            let stored = |segment: Option<tenarc::archive::CompressedBuffer<'_>>| {
                segment.map(|how| (how.codec().to_owned(), how.stored_len()))
            };
            assert_eq!(stored(copy.only()?.compressed(0)), stored(segment.compressed(0)));
            own(copy.load())
        }),
    ];
    let expected = own(streamed);
    if let Some(content) = &content {
        verified.expect("all checksums are right");
        assert!(expected.as_ref().expect("what was just compressed") == content, "other bytes");
    }
    for (way, read) in ways {
        let (found, taken) = peak_of(read);
        // What was found is counted, and some ways hold another copy.
        bounded(way, taken);
        match (&expected, found) {
            (Ok(expected), Ok(found)) => assert!(*expected == found, "{way} gives other bytes"),
            (Err(expected), Err(found)) => {
                assert_eq!(expected.category(), found.category(), "{way}: {expected}, {found}");
            }
            (expected, found) => {
                panic!("a stream: {:?}, {way}: {:?}", expected.as_ref().err(), found.err());
            }
        }
    }
    // A slice needs its own chunk only.
    let at = usize::from(*input.last().unwrap_or(&0)) * len / 256;
    let one = segment.slice::<Vec<u8>>("", ndarray::s![at..at + 1]);
    match (&expected, one) {
        (Ok(expected), Ok(one)) => assert_eq!(one, expected[at..at + 1]),
        (Ok(_), Err(error)) => panic!("a slice is not read: {error}"),
        (Err(_), _) => {}
    }
});
