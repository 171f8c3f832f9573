//! Groups B, G and H: headers with correct hashes and wrong contents.

use ndarray::Array1;
use tenarc::archive::SaveOptions;
use tenarc::error::Category;
use tenarc::error::Category::{Damaged, Data, Eof, Limit, Syntax, Torn, Version};
use tenarc::{Archive, IArchive, OArchive, Tensor};

use super::support::{
    At, MIB, WAYS, accepts, limited, read, read_with, refused, refuses, unverified, verify,
};
use tenarc_test_support::alloc::peak_of;
use tenarc_test_support::builder::{
    Built, Entry, MAGIC, Root, Seg, archive, array, bytes, head, own, raw_text, sealed, simple,
    tensor_ref, text, unsigned,
};

const EIGHT: &[u8] = b"8 bytes.";

fn seg() -> Seg {
    Seg::new(tensor_ref("u8", &[8], 0), &[EIGHT])
}

fn eight() -> Tensor<Array1<u8>> {
    Tensor(Array1::from(EIGHT.to_vec()))
}

// 55
#[test]
fn alignments_that_are_none() {
    for alignment in [0, 1, 3, 4, 7, 12, 255, 65_537, 1 << 17, 1 << 32, 1 << 63, u64::MAX] {
        // The bytes stand as for an alignment of 8.
        let (at, good) = (MAGIC.len() as u64, seg().aligned(8));
        let lying = Seg { alignment, ..good.clone() };
        let header = with_layout_of(&lying, &good, at);
        let built = Built::new().raw(&header);
        let record = lying.entry(at).2;
        refused(&built.end_with(|root| one_segment(root, at, record)), &[Data]);
        assert!(SaveOptions::default().with_alignment(alignment).with_dedup(true).refuses());
    }
    for alignment in [8, 16, 256, 65_536] {
        let bytes = archive(&seg().aligned(alignment));
        accepts(&bytes, &eight());
        verify(&bytes).unwrap();
    }
    for alignment in [vec![0x20], text("256"), vec![0xf6], vec![0xf9, 0x5c, 0]] {
        let fields =
            [unsigned(1), vec![0xf6], alignment, text("xxh3-64"), chunk(), array(&[]), unsigned(7)];
        refused(&with_header(&array(&fields)), &[Data]);
    }
}

fn chunk() -> Vec<u8> {
    unsigned(1 << 20)
}

#[test]
fn lengths_of_chunks_that_are_none() {
    for bytes in [0, 1, 32_768, 65_535, 65_537, 3 << 20, 1 << 31, 1 << 63, u64::MAX] {
        refused(&archive(&Seg { chunk: unsigned(bytes), ..seg() }), &[Data]);
        assert!(SaveOptions::default().with_chunk_len(bytes).refuses());
    }
    for bytes in [1 << 16, 1 << 17, 1 << 30] {
        let bytes = archive(&Seg { chunk: unsigned(bytes), ..seg() });
        accepts(&bytes, &eight());
        verify(&bytes).unwrap();
    }
    for chunk in [vec![0x20], text("65536"), vec![0xf6], vec![0xf9, 0x5c, 0]] {
        refused(&archive(&Seg { chunk, ..seg() }), &[Data]);
    }
}

trait Refuses {
    fn refuses(self) -> bool;
}

impl Refuses for SaveOptions {
    fn refuses(self) -> bool {
        OArchive::with_options(Vec::new(), self).is_err_and(|error| error.category() == Limit)
    }
}

/// The header of one segment before the body and the hashes of another.
fn with_layout_of(header: &Seg, other: &Seg, at: u64) -> Vec<u8> {
    let lengths =
        array(&header.buffers.iter().map(|b| unsigned(b.len() as u64)).collect::<Vec<_>>());
    let empty = Seg { buffers: Vec::new(), lengths: Some(lengths), ..header.clone() };
    let whole = other.bytes(at);
    let start = Seg { buffers: Vec::new(), ..other.clone() }.bytes(at).len();
    [&empty.bytes(at)[..], &whole[start.min(whole.len())..]].concat()
}

fn one_segment(root: &mut Root, at: u64, header: u64) {
    root.count = 1;
    root.entries = vec![(at, vec![0xf6], header, None, None)];
}

/// An archive whose only segment has this content in its record.
fn with_content(content: &[u8]) -> Vec<u8> {
    let at = MAGIC.len() as u64;
    let record = sealed(content, at);
    Built::new().raw(&record).end_with(|root| one_segment(root, at, record.len() as u64))
}

fn with_header(fields: &[u8]) -> Vec<u8> {
    with_content(&own(*b"TSEG", fields))
}

#[test]
fn a_header_made_by_hand_is_read() {
    let check = text("xxh3-64");
    let ext = vec![0xa0];
    let fields =
        [unsigned(1), vec![0xf6], unsigned(256), check, chunk(), array(&[]), ext, unsigned(7)];
    accepts(&with_header(&array(&fields)), &7u8);
    verify(&with_header(&array(&fields))).unwrap();
}

// 23, 3
#[test]
fn headers_of_other_forms() {
    let (none, ext) = (array(&[]), vec![0xa0]);
    let good = [unsigned(1), vec![0xf6], unsigned(256), text("xxh3-64"), chunk(), none, ext];
    for len in 1..7 {
        refused(&with_header(&array(&good[..len])), &[Data, Eof]);
    }
    // Eight are claimed and fewer there, more are claimed, the count is open.
    refused(&with_header(&[head(4, 8), good.concat()].concat()), &[Data, Eof]);
    refused(&with_header(&[head(4, 9), good.concat(), vec![7]].concat()), &[Data]);
    refused(&with_header(&[head(4, u64::MAX), good.concat(), vec![7]].concat()), &[Data]);
    refused(&with_header(&[vec![0x9f], good.concat(), vec![7, 0xff]].concat()), &[Data]);
    refused(&with_header(&[head(4, 0)].concat()), &[Data, Eof]);
    refused(&with_header(&unsigned(1)), &[Data, Eof]);
    for content in
        [vec![], unsigned(7), text("TSEG"), own(*b"TSEG", &[]), own(*b"TENS", &array(&[]))]
    {
        refused(&with_content(&content), &[Data, Eof, Syntax, Damaged]);
    }
    // A directory block and an end mark in place of a segment.
    for kind in [b"TDIR", b"TEND"] {
        let fields = array(&[unsigned(1), unsigned(0), array(&[]), array(&[])]);
        refused(&with_content(&own(*kind, &fields)), &[Data, Damaged, Torn]);
    }
    for lengths in [unsigned(0), text(""), vec![0x9f, 0xff], vec![0xf6], array(&[text("8")])] {
        refused(&archive(&Seg { lengths: Some(lengths), ..Seg::new(unsigned(7), &[]) }), &[Data]);
    }
}

// 9, 12, 56
#[test]
fn lengths_that_no_file_has() {
    for lengths in [
        vec![u64::MAX],
        vec![1 << 63],
        vec![(1 << 63) - 1],
        vec![1 << 62, 1 << 62],
        vec![u64::MAX, 1],
        vec![1, u64::MAX],
        vec![u64::MAX - 255, 256],
        vec![u64::MAX / 2; 3],
    ] {
        let metadata = tensor_ref("u8", &[lengths[0]], 0);
        refused(&archive(&Seg::new(metadata, &[]).claiming(&lengths)), &[Data, Limit]);
    }
    for claim in [1u64 << 20, 1 << 31, 1 << 32, 1 << 40, 1 << 50, 1 << 62] {
        let metadata = tensor_ref("u8", &[claim], 0);
        let bytes = archive(&Seg::new(metadata, &[EIGHT]).claiming(&[claim]));
        refused(&bytes, &[Torn, Damaged, Eof, Limit]);
        let torn = Archive::new_torn(At(&bytes[..bytes.len() - 1])).unwrap();
        assert!(torn.segments().all(|segment| segment.unwrap().missing_bytes() > 0));
    }
}

// 9, 11: a number of buffers that is not backed by the header.
#[test]
fn numbers_of_buffers_that_are_not_there() {
    for count in [2, 1 << 20, 1 << 32, 1 << 60, u64::MAX] {
        let lengths = [head(4, count), unsigned(8)].concat();
        let seg = Seg { lengths: Some(lengths), ..Seg::new(Vec::new(), &[]) };
        refused(&archive(&seg), &[Data, Eof]);
    }
}

// 9, 12: records whose own length is a lie.
#[test]
fn records_that_claim_more_than_there_is() {
    let record = |len: u64, form: u8| {
        let mut bytes = vec![0xd8, 0x18, 0x40 | form];
        bytes.extend(&len.to_be_bytes()[8 - (1 << (form - 24))..]);
        bytes
    };
    for len in [200, 1 << 20, 1 << 31, 1 << 40, 1 << 62, 1 << 63, u64::MAX - 11, u64::MAX] {
        let content = own(*b"TSEG", &array(&[unsigned(1)]));
        let built = Built::new().raw(&record(len, 27)).raw(&content).raw(&[0; 100]);
        let at = MAGIC.len() as u64;
        let claimed = len.saturating_add(20);
        let bytes = built.end_with(|root| one_segment(root, at, claimed));
        refused(&bytes, &[Torn, Damaged, Limit]);
        // Without an end mark too.
        let bytes = &bytes[..at as usize + 60];
        for way in WAYS {
            let (found, peak) = peak_of(|| read::<u8>(way, bytes));
            let error = found.expect_err(way);
            assert!(matches!(error.category(), Torn | Damaged | Limit), "{way}: {error}");
            assert!(peak < 2 * MIB, "{way}: {peak}");
        }
    }
    // No byte string at all, a reserved length, an open one, another tag.
    for start in [&b"\xd8\x18\x18"[..], b"\xd8\x18\x5c", b"\xd8\x18\x5f", b"\xd8\x19\x41", b"\0\0"]
    {
        let built = Built::new().raw(start).raw(&[0; 100]);
        let bytes = built.end_with(|root| one_segment(root, MAGIC.len() as u64, 100));
        refused(&bytes, &[Damaged, Torn]);
    }
}

// 36, 31, 60
#[test]
fn names_of_all_lengths_and_none() {
    for name in [String::new(), "ä".repeat(512), "\0\u{1b}[31m/../".into(), "n".repeat(1024)] {
        let bytes = archive(&seg().named(&name));
        accepts(&bytes, &eight());
        verify(&bytes).unwrap();
        let archive = Archive::new(At(&bytes)).unwrap();
        assert_eq!(archive.named(&name).unwrap().name(), Some(&*name));
        assert!(archive.named("other").is_err());
        let mut input = IArchive::new(&bytes[..]).unwrap();
        assert_eq!(input.next_name().unwrap(), Some(Some(&*name)));
        assert_eq!(input.load_as::<Tensor<Array1<u8>>>(&name).unwrap(), eight());
    }
    for name in ["n".repeat(1025), "n".repeat(1 << 20)] {
        refused(&archive(&seg().named(&name)), &[Data, Limit, Damaged]);
        let error = OArchive::new(Vec::new()).unwrap().save_as(&name, &0u8).map(drop).unwrap_err();
        assert_eq!(error.category(), Limit);
    }
    let claimed = [vec![0x7b], (1u64 << 60).to_be_bytes().to_vec()].concat();
    let open = vec![0x7f, 0x61, b'a', 0xff];
    for name in
        [raw_text(b"\xff"), raw_text(b"\xc3"), bytes(b"n"), unsigned(0), vec![0xf7], open, claimed]
    {
        refused(&archive(&Seg { name, ..seg() }), &[Data, Syntax, Eof, Damaged]);
    }
    // Control characters of a name reach no terminal.
    let bytes = archive(&seg().named("good"));
    let error = Archive::new(&bytes).unwrap().named("\u{1b}[31m").unwrap_err();
    assert!(!error.to_string().contains('\u{1b}'));
}

// 66
#[test]
fn versions_of_the_future_are_refused_as_such() {
    // There is no version 0: a sector that was lost can leave one.
    refused(&archive(&Seg { version: 0, ..seg() }), &[Data, Damaged]);
    for version in [2, 23, 24, 1 << 32, (1 << 32) + 1, u64::MAX] {
        let expected = format!("format version {version}, this version of tenarc reads version 1");
        let names = |error: &tenarc::Error| {
            assert_eq!(error.category(), Version, "{error}");
            assert!(error.to_string().contains(&expected), "{error}");
        };
        // Whatever stands behind the version, and whatever hash that version has.
        let bytes = archive(&Seg { version, ..seg() });
        refuses::<Tensor<Array1<u8>>>(&bytes, &[Version]).iter().for_each(names);
        refused(&bytes, &[Version]);
        let fields = array(&[unsigned(version), text("who knows what it means")]);
        let mut bytes = with_header(&fields);
        refused(&bytes, &[Version]);
        let hash = MAGIC.len() + sealed(&own(*b"TSEG", &fields), 0).len() - 1;
        bytes[hash] ^= 1;
        refused(&bytes, &[Version]);

        let built = Built::new().segment(&seg());
        let mark = built.root.end_of_version(version, built.position());
        let bytes = built.raw(&mark).bytes;
        names(&Archive::new(At(&bytes)).unwrap_err());
        names(&Archive::new_torn(At(&bytes)).unwrap_err());
        let mut input = IArchive::new(&bytes[..]).unwrap();
        assert_eq!(input.load::<Tensor<Array1<u8>>>().unwrap(), eight());
        names(&input.is_at_end().unwrap_err());
    }
}

// 72, 66: the directory's blocks too.
#[test]
fn blocks_of_the_future_are_refused_as_such() {
    let mut built = Built::new();
    for _ in 0..63 {
        built = built.segment(&Seg::new(unsigned(1), &[]));
    }
    let entries = built.root.entries.clone();
    let at = built.position();
    built = built.raw(&Seg::new(unsigned(1), &[]).bytes(at));
    let entry = |(at, ..): &Entry| array(&[unsigned(*at), vec![0xf6]]);
    let mut all: Vec<Vec<u8>> = entries.iter().map(entry).collect();
    all.push(array(&[unsigned(at), vec![0xf6]]));
    let block_at = built.position();
    let block = sealed(&own(*b"TDIR", &array(&[unsigned(2), unsigned(0), array(&all)])), block_at);
    let bytes = built.raw(&block).end_with(|root| {
        let levels = vec![vec![(block_at, block.len() as u64)]];
        *root = Root { count: 64, levels, ..Root::default() };
    });
    let archive = Archive::new(At(&bytes)).unwrap();
    assert_eq!(archive.segment(0).unwrap_err().category(), Version);
    assert_eq!(archive.named("x").unwrap_err().category(), Version);
    assert_eq!(archive.verify().unwrap_err().category(), Version);
    let (found, error) = crate::archives::support::values::<u8>(&bytes[..]);
    assert_eq!(found.len(), 64);
    assert_eq!(error.unwrap().category(), Version);
}

// 51, 67: paddings hide nothing.
#[test]
fn paddings_of_other_forms() {
    // The sample has a gap of at least 20 bytes.
    let forms: [fn(usize) -> Vec<u8>; 6] = [
        |gap| vec![0x40; gap],
        |gap| {
            let mut padding = tenarc_test_support::builder::padding(gap);
            *padding.last_mut().unwrap() = 1;
            padding
        },
        |gap| [vec![0x40], tenarc_test_support::builder::padding(gap - 1)].concat(),
        |gap| [tenarc_test_support::builder::padding(gap - 1), vec![0x40]].concat(),
        |gap| vec![0; gap],
        |gap| [head(3, gap as u64 - 2), vec![0; gap - 2]].concat(),
    ];
    let good = seg().aligned(256);
    verify(&archive(&good)).unwrap();
    for padding in forms {
        let bytes = archive(&Seg { padding: Some(padding), ..good.clone() });
        assert_eq!(bytes.len(), archive(&good).len());
        unverified(&bytes, &[Damaged]);
        let error = read::<Tensor<Array1<u8>>>("stream", &bytes).unwrap_err();
        assert_eq!(error.category(), Damaged, "{error}");
        // A reader at positions finds the buffer where it must be.
        assert_eq!(read::<Tensor<Array1<u8>>>("positioned", &bytes).unwrap(), eight());
    }
}

// 67
#[test]
fn bytes_between_buffers_must_be_zero() {
    let metadata = array(&[tensor_ref("u8", &[8], 0), tensor_ref("u8", &[8], 1)]);
    let good = Seg::new(metadata, &[EIGHT, EIGHT]);
    accepts(&archive(&good), &(eight(), eight()));
    verify(&archive(&good)).unwrap();
    unverified(&archive(&Seg { filler: 1, ..good }), &[Damaged]);
}

// 13: headers are charged to the budget of whoever streams them.
#[test]
fn large_headers_meet_the_limit() {
    let bytes = simple(bytes(&vec![0; 4 << 20]), &[]);
    let options = limited(1 << 20);
    for way in ["stream", "one-byte stream"] {
        let (found, peak) = peak_of(|| read_with::<serde::de::IgnoredAny>(way, &bytes, options));
        assert_eq!(found.unwrap_err().category(), Category::Limit);
        assert!(peak < MIB, "{peak}");
    }
}
