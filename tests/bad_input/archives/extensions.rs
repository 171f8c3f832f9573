//! What later versions may add: extensions, auxiliary records, other checksums, buffers elsewhere (SPEC 5.2, 5.12, 5.13).

use ndarray::Array1;
use tenarc::archive::SaveOptions;
use tenarc::de::DecodeOptions;
use tenarc::error::Category::{Damaged, Data, Limit, Syntax, Version};
use tenarc::{Archive, IArchive, OArchive, Tensor};

use super::support::{accepts, refused, verify};
use tenarc_test_support::builder::{
    Built, Seg, archive, array, auxiliary, block, bytes, bytes_ref, tensor_ref, text, unsigned,
};

fn seg() -> Seg {
    Seg::new(tensor_ref("u8", &[8], 0), &[b"8 bytes."])
}

fn eight() -> Tensor<Array1<u8>> {
    Tensor(Array1::from(b"8 bytes.".to_vec()))
}

fn unverified() -> DecodeOptions {
    DecodeOptions::default().with_checksums(false)
}

/// Extensions with these keys, whose values are one number each.
fn ext(keys: &[u8]) -> Vec<u8> {
    let mut ext = vec![0xa0 + u8::try_from(keys.len()).unwrap()];
    ext.extend(keys.iter().flat_map(|&key| [key, 7]));
    ext
}

/// Copies the only value to another archive.
fn copied(bytes: &[u8]) -> Vec<u8> {
    let archive = Archive::new(bytes).unwrap();
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save_segment(&archive.only().unwrap()).unwrap();
    out.finish().unwrap()
}

#[test]
fn unknown_even_extensions_are_ignored_and_kept() {
    let with = archive(&Seg { ext: ext(&[2, 4, 16]), ..seg() });
    accepts(&with, &eight());
    verify(&with).unwrap();
    let digest = |bytes: &[u8]| Archive::new(bytes).unwrap().digest().unwrap();
    assert_eq!(digest(&with), digest(&archive(&seg())));
    // Digests are stored only in full blocks, so a copy is the same but for them.
    assert_eq!(copied(&with), with);

    let built = Built::new().segment(&seg());
    let bytes = built.end_with(|root| root.ext = ext(&[2]));
    accepts(&bytes, &eight());
    verify(&bytes).unwrap();
}

#[test]
fn an_unknown_odd_extension_of_a_header_refuses_that_value() {
    let built = Built::new().segment(&seg().named("first"));
    let bytes = built.segment(&Seg { ext: ext(&[2, 3]), ..seg() }).segment(&seg()).end().bytes;
    verify(&bytes).unwrap();
    let archive = Archive::new(&bytes[..]).unwrap();
    let segment = archive.segment(1).unwrap();
    let errors = [
        segment.load::<Tensor<Array1<u8>>>().map(drop).unwrap_err(),
        segment.metadata().map(drop).unwrap_err(),
        segment.tensors().map(drop).unwrap_err(),
        segment.read_buffer(0, |_| Ok(())).unwrap_err(),
        OArchive::new(Vec::new()).unwrap().save_segment(&segment).map(drop).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.category(), Version);
        assert!(error.to_string().contains("the extension 3"), "{error}");
    }
    assert_ne!(segment.digest().unwrap(), archive.segment(2).unwrap().digest().unwrap());
    for index in [0, 2] {
        let value: Tensor<Array1<u8>> = archive.segment(index).unwrap().load().unwrap();
        assert_eq!(value, eight());
    }
    let mut input = IArchive::new(&bytes[..]).unwrap();
    assert_eq!(input.load::<Tensor<Array1<u8>>>().unwrap(), eight());
    assert_eq!(input.load::<Tensor<Array1<u8>>>().unwrap_err().category(), Version);
    assert_eq!(input.load::<Tensor<Array1<u8>>>().unwrap(), eight());
    assert!(input.is_at_end().unwrap());
}

#[test]
fn an_unknown_odd_extension_of_the_last_end_mark_refuses_the_archive() {
    let built = Built::new().segment(&seg());
    let bytes = built.clone().end_with(|root| root.ext = ext(&[5]));
    assert_eq!(Archive::new(&bytes[..]).unwrap_err().category(), Version);
    let mut input = IArchive::new(&bytes[..]).unwrap();
    assert_eq!(input.load::<Tensor<Array1<u8>>>().unwrap(), eight());
    assert_eq!(input.is_at_end().unwrap_err().category(), Version);

    // An older end mark is passed over.
    let mut built = Built { bytes, root: built.root };
    built = built.segment(&seg()).end();
    verify(&built.bytes).unwrap();
    assert_eq!(Archive::new(&built.bytes[..]).unwrap().len(), 2);
    let mut input = IArchive::new(&built.bytes[..]).unwrap();
    assert_eq!(input.records::<Tensor<Array1<u8>>>().map(Result::unwrap).count(), 2);
    // Also by a walk, because something follows the last one.
    let bytes = built.raw(b"unfinished").bytes;
    assert_eq!(Archive::new(&bytes[..]).unwrap().unfinished_bytes(), 10);
}

#[test]
fn extensions_of_other_forms() {
    let long = [b"\xa1\x02\x59\xff\xff".to_vec(), vec![0; 65_535]].concat();
    let deep = [b"\xa1\x02".to_vec(), vec![0x81; 128], vec![0x80]].concat();
    let forms: [&[u8]; 12] = [
        b"\x80",
        b"\xf6",
        b"\xbf\xff",
        b"\xb8\x00",
        b"\xa2\x04\x01\x02\x01",
        b"\xa2\x02\x01\x02\x01",
        b"\xa1\x61a\x01",
        b"\xa1\x02\x18\x01",
        b"\xa1\x02\x9f\xff",
        b"\xa1\x00\x00",
        &long,
        &deep,
    ];
    for form in forms {
        let bytes = archive(&Seg { ext: form.to_vec(), ..seg() });
        refused(&bytes, &[Data, Syntax, Limit, Damaged]);
        let built = Built::new().segment(&seg());
        let bytes = built.end_with(|root| root.ext = form.to_vec());
        assert!(Archive::new(&bytes[..]).is_err(), "{form:x?}");
        let mut input = IArchive::new(&bytes[..]).unwrap();
        assert_eq!(input.load::<Tensor<Array1<u8>>>().unwrap(), eight());
        assert!(input.is_at_end().is_err());
    }
    let most = [b"\xa1\x02\x59\xff\xfa".to_vec(), vec![0; 65_530]].concat();
    let bytes = archive(&Seg { ext: most, ..seg() });
    accepts(&bytes, &eight());
    verify(&bytes).unwrap();
}

#[test]
fn notes_are_kept_by_copies() {
    let options = SaveOptions::default().with_note("title", "a").with_note("author", "b");
    let mut out = OArchive::with_options(Vec::new(), options.with_note("title", "c")).unwrap();
    out.save(&Tensor(vec![1u8; 5000])).unwrap();
    let bytes = out.finish().unwrap();
    for bytes in [&bytes, &copied(&bytes)] {
        let notes = Archive::new(&bytes[..]).unwrap().only().unwrap().notes();
        let expected = [("author", "b"), ("title", "c")];
        assert!(notes.iter().map(|(key, note)| (&**key, &**note)).eq(expected));
    }
    let long = SaveOptions::default().with_note("title", "x".repeat(1 << 16));
    assert_eq!(OArchive::with_options(Vec::new(), long).unwrap_err().category(), Limit);
}

#[test]
fn auxiliary_records_are_passed_over() {
    let with = |built: Built, payload: &[u8]| {
        let record = auxiliary(7, payload, built.position());
        built.raw(&record)
    };
    let built = with(Built::new().segment(&seg()), &text("anything"));
    let built = with(built, b"\xff no item at all").segment(&seg()).end();
    let built = with(with(built, &unsigned(1)), &[]).segment(&seg()).end();
    let bytes = built.bytes.clone();
    verify(&bytes).unwrap();
    let archive = Archive::new(&bytes[..]).unwrap();
    assert_eq!(archive.len(), 3);
    let mut input = IArchive::new(&bytes[..]).unwrap();
    assert_eq!(input.records::<Tensor<Array1<u8>>>().map(Result::unwrap).count(), 3);
    // Behind the last tail, it is unfinished; so is one that is cut off.
    let behind = with(built, &text("more")).bytes;
    for end in bytes.len() + 1..=behind.len() {
        let archive = Archive::new(&behind[..end]).unwrap();
        assert_eq!((archive.len(), archive.unfinished_bytes()), (3, (end - bytes.len()) as u64));
    }
    // Any changed bit is noticed.
    let first = archive.segment(0).unwrap();
    let start = usize::try_from(first.offset() + first.byte_len()).unwrap();
    for at in start..start + 20 {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert!(verify(&changed).is_err(), "{at}");
    }
    // None is at the start, and none is between a segment and its blocks.
    let first = with(Built::new(), &[0]).segment(&seg()).end().bytes;
    assert!(verify(&first).is_err());
    let mut input = IArchive::new(&first[..]).unwrap();
    assert_eq!(input.load::<Tensor<Array1<u8>>>().unwrap_err().category(), Damaged);
    let mut built = Built::new();
    for _ in 0..64 {
        built = built.segment(&Seg::new(unsigned(1), &[]));
    }
    let whole = &built.bytes;
    let tdir = whole.windows(4).rposition(|window| window == b"TDIR").unwrap();
    let mut built = Built { bytes: whole[..tdir - 6].to_vec(), root: built.root };
    built = with(built, &[0]);
    let bytes = built.end().bytes;
    assert!(verify(&bytes).is_err());
}

#[test]
fn unknown_checksums_are_listed_copied_and_read_when_told_to() {
    for len in [1, 16, 32, 64] {
        let check = array(&[text("blake3"), unsigned(len)]);
        let seg = seg();
        let hash = vec![7u8; usize::try_from(len).unwrap()];
        let bytes = with_hashes(&Seg { check, ..seg }, &hash);
        verify(&bytes).unwrap();
        let archive = Archive::new(&bytes[..]).unwrap();
        let segment = archive.only().unwrap();
        assert_eq!(segment.tensors().unwrap()[0].shape(), [8]);
        let error = segment.load::<Tensor<Array1<u8>>>().unwrap_err();
        assert_eq!(error.category(), Version);
        assert!(error.to_string().contains("blake3"), "{error}");
        assert_eq!(copied(&bytes), bytes);
        let archive = Archive::new(&bytes[..]).unwrap().with_options(unverified());
        assert_eq!(archive.load::<Tensor<Array1<u8>>>().unwrap(), eight());
        let mut input = IArchive::with_options(&bytes[..], unverified()).unwrap();
        assert_eq!(input.load::<Tensor<Array1<u8>>>().unwrap(), eight());
        let mut input = IArchive::new(&bytes[..]).unwrap();
        assert_eq!(input.load::<Tensor<Array1<u8>>>().unwrap_err().category(), Version);
        assert!(input.is_at_end().unwrap());
    }
    for check in [
        text("blake3"),
        text(""),
        array(&[text("xxh3-64"), unsigned(8)]),
        array(&[text("xxh3-64"), unsigned(16)]),
        array(&[text(""), unsigned(8)]),
        array(&[text("blake3"), unsigned(0)]),
        array(&[text("blake3"), unsigned(65)]),
        array(&[text(&"b".repeat(65)), unsigned(8)]),
        array(&[text("blake3")]),
        array(&[text("blake3"), unsigned(8), unsigned(8)]),
        unsigned(0),
    ] {
        refused(&archive(&Seg { check, ..seg() }), &[Data, Damaged]);
    }
}

/// An archive of this segment, with one hash of one chunk.
fn with_hashes(seg: &Seg, hash: &[u8]) -> Vec<u8> {
    let at = 12;
    let empty = Seg { buffers: Vec::new(), lengths: Some(array(&[unsigned(8)])), ..seg.clone() };
    let header = empty.bytes(at);
    let start = Seg { buffers: vec![b"8 bytes.".to_vec()], ..seg.clone() }.bytes(at);
    let body = start.windows(8).rposition(|window| window == b"8 bytes.").unwrap();
    let seed = u64::from_be_bytes(*header.last_chunk().unwrap());
    let item = [vec![0xd8, 64], bytes(hash)].concat();
    let bound = tenarc_test_support::builder::hash(&item, seed);
    let bytes = [&start[..body + 8], &item, &bytes(&bound.to_be_bytes())].concat();
    let mut built = Built::new().raw(&bytes);
    built.root.count = 1;
    built.root.entries.push(seg.entry(at));
    built.end().bytes
}

/// A buffer whose bytes are not in the archive.
fn elsewhere(len: u64, name: &str, digest: &[u8]) -> Vec<u8> {
    array(&[unsigned(len), text(name), bytes(digest)])
}

#[test]
fn buffers_elsewhere_are_listed_and_not_read() {
    // The hash of its chunk is there, the bytes are not.
    let metadata = array(&[tensor_ref("u8", &[9], 0), bytes_ref(1)]);
    let there = Seg::new(metadata.clone(), &[b"", b"8 bytes."]);
    let lengths = array(&[elsewhere(9, "sha-256", &[0xab; 32]), unsigned(8)]);
    let hashes = Some(vec![7, tenarc_test_support::builder::hash(b"8 bytes.", 0)]);
    let bytes = archive(&Seg { lengths: Some(lengths), hashes, ..there.clone() });
    verify(&bytes).unwrap();
    assert_eq!(copied(&bytes), bytes);
    let archive_ = Archive::new(&bytes[..]).unwrap();
    let segment = archive_.only().unwrap();
    assert_eq!(segment.elsewhere(0), Some(("sha-256", &[0xab; 32][..])));
    assert_eq!((segment.elsewhere(1), segment.elsewhere(2)), (None, None));
    assert_eq!(segment.tensors().unwrap()[0].shape(), [9]);
    assert_eq!(&**segment.get::<serde_bytes::ByteBuf>("1").unwrap(), b"8 bytes.");
    let errors = [
        segment.dyn_tensor("0").map(drop).unwrap_err(),
        segment.slice::<Vec<u8>>("0", (0..3,)).map(drop).unwrap_err(),
        segment.read_buffer(0, |_| Ok(())).unwrap_err(),
        segment.to_parts().map(drop).unwrap_err(),
    ];
    for error in errors {
        let digest = format!("sha-256 {}", "ab".repeat(32));
        assert!(error.to_string().contains(&digest), "{error}");
    }
    let mut input = IArchive::new(&bytes[..]).unwrap();
    assert!(input.load::<tenarc::Value>().is_err());
    assert!(input.is_at_end().unwrap());

    for wrong in [
        elsewhere(0, "sha-256", &[1; 32]),
        elsewhere(1 << 63, "sha-256", &[1; 32]),
        elsewhere(9, "", &[1; 32]),
        elsewhere(9, &"s".repeat(65), &[1; 32]),
        elsewhere(9, "sha-256", &[1; 7]),
        elsewhere(9, "sha-256", &[1; 65]),
        array(&[unsigned(9), text("sha-256")]),
        array(&[unsigned(9), text("sha-256"), text("12345678")]),
    ] {
        let lengths = Some(array(&[wrong, unsigned(8)]));
        refused(&archive(&Seg { lengths, ..there.clone() }), &[Data, Damaged]);
    }
}

#[test]
fn rows_and_digests_in_the_directory_are_verified() {
    let mut built = Built::new();
    for _ in 0..63 {
        built = built.segment(&Seg::new(array(&[unsigned(1), unsigned(2)]), &[]));
    }
    let at = built.position();
    let last = Seg::new(unsigned(1), &[]);
    built = built.raw(&last.bytes(at));
    let mut entries = built.root.entries.clone();
    entries.push(last.entry(at));
    let with = |change: &dyn Fn(&mut Vec<tenarc_test_support::builder::Entry>)| {
        let mut entries = entries.clone();
        change(&mut entries);
        let at = built.position();
        let block = block(&entries, at);
        built.clone().raw(&block).end_with(|root| {
            root.count = 64;
            root.entries.clear();
            root.levels = vec![vec![(at, block.len() as u64)]];
        })
    };
    verify(&with(&|_| {})).unwrap();
    assert!(verify(&with(&|entries| entries[0].3 = Some(3))).is_err());
    assert!(verify(&with(&|entries| entries[0].3 = None)).is_err());
    assert!(verify(&with(&|entries| entries[63].3 = Some(0))).is_err());
    verify(&with(&|entries| entries[9].4 = None)).unwrap();
    assert!(verify(&with(&|entries| entries[9].4 = Some([9; 16]))).is_err());
    let bytes = with(&|entries| entries[5].2 += 1);
    assert!(verify(&bytes).is_err());
    let archive = Archive::new(&bytes[..]).unwrap();
    assert_eq!(archive.segment(5).unwrap_err().category(), Damaged);
}
