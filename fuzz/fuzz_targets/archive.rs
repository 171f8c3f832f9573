//! Reads archives from arbitrary bytes. The input is used twice: as a whole archive, and as the metadata of
//! a segment with correct checksums, so that the code after the checksums is reached. All ways to read an
//! archive must agree.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use ndarray::{Array2, ArrayView2};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use tenarc::{Archive, DynTensor, IArchive, Tensor, Value};
use twox_hash::XxHash3_64;

const ALIGNMENT: usize = 16;

#[derive(Serialize, Deserialize)]
struct Model {
    #[serde(default)]
    weight: Option<Tensor<Array2<f32>>>,
    #[serde(default)]
    any: Option<Tensor<DynTensor>>,
    #[serde(default)]
    plain: Vec<f64>,
    #[serde(default)]
    bytes: serde_bytes::ByteBuf,
    #[serde(flatten)]
    rest: std::collections::BTreeMap<String, Value>,
}

/// A row of a sequence that may be stored as columns.
#[derive(Serialize, Deserialize)]
struct Row {
    #[serde(default)]
    id: u32,
    #[serde(default)]
    any: Option<f32>,
    #[serde(default)]
    weight: Option<Tensor<Vec<f32>>>,
    #[serde(default)]
    plain: Vec<f64>,
    #[serde(default)]
    text: String,
}

fn head(out: &mut Vec<u8>, major: u8, arg: usize) {
    let arg = arg as u64;
    match arg {
        0..24 => out.push(major << 5 | arg as u8),
        24..=0xff => out.extend([major << 5 | 24, arg as u8]),
        0x100..=0xffff => {
            out.push(major << 5 | 25);
            out.extend((arg as u16).to_be_bytes());
        }
        _ => {
            out.push(major << 5 | 26);
            out.extend((arg as u32).to_be_bytes());
        }
    }
}

fn seal(out: &mut Vec<u8>, start: usize, seed: u64) -> u64 {
    let hash = XxHash3_64::oneshot_with_seed(seed, &out[start..]);
    out.push(0x48);
    out.extend(hash.to_be_bytes());
    hash
}

fn record(out: &mut Vec<u8>, content: &[u8]) -> u64 {
    let start = out.len();
    out.extend([0xd8, 0x18]);
    head(out, 2, content.len());
    out.extend(content);
    seal(out, start, start as u64)
}

/// The length of a chunk in the header.
const CHUNK: usize = 65_536;

/// Builds an archive of one segment, as in section 5 of the specification.
fn built(lengths: &[usize], metadata: &[u8]) -> Vec<u8> {
    let mut out = b"\xd9\xd9\xf8\xda\x54\x41\x52\x43\x43BOR".to_vec();
    let mut content = b"\xdaTSEG\x88\x01\xf6\x10\x67xxh3-64\x1a\x00\x01\x00\x00".to_vec();
    head(&mut content, 4, lengths.len());
    lengths.iter().for_each(|&len| head(&mut content, 0, len));
    content.push(0xa0);
    content.extend(metadata);
    let hash = record(&mut out, &content);
    let header = out.len() - 12;
    if !lengths.is_empty() {
        let mut body = Vec::new();
        let mut hashes = Vec::new();
        for (number, &len) in lengths.iter().enumerate() {
            body.resize(body.len().next_multiple_of(ALIGNMENT), 0);
            let buffer = vec![number as u8 & 1; len];
            // One for each chunk, so none for an empty buffer.
            for chunk in buffer.chunks(CHUNK) {
                hashes.extend(XxHash3_64::oneshot(chunk).to_be_bytes());
            }
            body.extend(buffer);
        }
        let mut body_head = Vec::new();
        head(&mut body_head, 2, body.len());
        // Fewer than 25 bytes, so one byte string is enough.
        let gap = (out.len() + body_head.len()).next_multiple_of(ALIGNMENT)
            - (out.len() + body_head.len());
        if gap > 0 {
            out.push(0x40 + (gap - 1) as u8);
            out.resize(out.len() + gap - 1, 0);
        }
        out.extend(body_head);
        out.extend(body);
        let start = out.len();
        out.extend([0xd8, 0x43]);
        head(&mut out, 2, hashes.len());
        out.extend(hashes);
        seal(&mut out, start, hash);
    }
    let mark = out.len();
    let mut content = b"\xdaTEND\x85\x01\x01\x82\x80\x81\x84\x0c\xf6".to_vec();
    head(&mut content, 0, header);
    content.extend(rows(metadata));
    content.extend(b"\x80\xa0");
    record(&mut out, &content);
    let end = out.len();
    if end % 512 > 470 {
        // At most 41 bytes, so one byte string is enough, but for one length.
        let mut gap = end.next_multiple_of(512) - end;
        if gap == 25 {
            out.push(0x40);
            gap -= 1;
        }
        let mut padding = vec![0; gap];
        let head = if gap > 24 { &[0x58, (gap - 2) as u8][..] } else { &[0x40 + (gap - 1) as u8] };
        padding[..head.len()].copy_from_slice(head);
        out.extend(padding);
    }
    let tail = out.len();
    out.extend(b"\x58\x28TARCTAIL");
    out.extend((mark as u64).to_be_bytes());
    out.extend(((end - mark) as u64).to_be_bytes());
    out.extend((tail as u64).to_be_bytes());
    let hash = XxHash3_64::oneshot_with_seed(tail as u64, &out[tail..]);
    out.extend(hash.to_be_bytes());
    out
}

/// What the directory says of the number of rows, which only `verify` compares: null if it is no short array.
fn rows(metadata: &[u8]) -> Vec<u8> {
    match metadata.first() {
        Some(&first @ 0x80..=0x97) => vec![first & 0x1f],
        _ => vec![0xf6],
    }
}

/// Checks that reading as a stream and reading by position give the same value, or both fail.
fn agree<T: Serialize + DeserializeOwned>(bytes: &[u8], archive: &Archive<&[u8]>) {
    let name = std::any::type_name::<T>();
    let at = archive.load::<T>();
    let streamed = IArchive::new(bytes).and_then(|mut input| input.load::<T>());
    match (at, streamed) {
        (Ok(at), Ok(streamed)) => {
            assert_eq!(tenarc::to_vec(&at).ok(), tenarc::to_vec(&streamed).ok(), "{name}");
        }
        (Err(_), Err(_)) => {}
        (at, streamed) => panic!("{name}: {:?}, {:?}", at.err(), streamed.err()),
    }
}

/// Checks that rows and columns that are read by themselves are those of the whole value.
fn in_parts(archive: &Archive<&[u8]>) {
    let Ok(table) = archive.only().and_then(|value| value.table("")) else { return };
    let columns = table.columns();
    let whole = archive.load::<Value>();
    let Ok(Value::Array(rows)) = &whole else {
        // These must not panic.
        let _ = table.row::<Value>(table.len() / 2);
        for column in columns.iter().flatten() {
            let _ = table.column::<Value>(column.path());
        }
        return;
    };
    assert_eq!(table.len(), rows.len() as u64);
    for at in [0, 1, 7, 8, rows.len() / 2, rows.len().saturating_sub(1)] {
        let found = table.row::<Value>(at as u64).ok().map(|row| row.to_string());
        assert_eq!(found, rows.get(at).map(Value::to_string), "row {at}");
        let found = archive.get::<Value>(&at.to_string()).ok().map(|row| row.to_string());
        assert_eq!(found, rows.get(at).map(Value::to_string), "the path {at}");
    }
    for column in columns.expect("the value was read") {
        let found = table.column::<Value>(column.path());
        let Ok(Value::Array(found)) = found else { panic!("{}: {found:?}", column.path()) };
        assert_eq!(found.len(), rows.len());
        if column.is_tensor() && !rows.is_empty() {
            table.column::<Tensor<DynTensor>>(column.path()).expect("it is listed as a tensor");
        }
    }
}

/// Checks that structs that are read from some rows are those of the whole value.
fn typed_rows(archive: &Archive<&[u8]>) {
    let Ok(table) = archive.only().and_then(|value| value.table("")) else { return };
    let encoded = |rows: &[Row]| tenarc::to_vec(rows).expect("writing to memory");
    let middle = table.len() / 2;
    let some = table.rows::<Row>(middle..);
    let iterated: tenarc::Result<Vec<Row>> = table.iter::<Row>().collect();
    // If the whole value is wrong, some of its rows may be right.
    let Ok(whole) = archive.load::<Vec<Row>>() else { return };
    assert_eq!(encoded(&iterated.expect("all rows were read")), encoded(&whole));
    assert_eq!(encoded(&some.expect("all rows were read")), encoded(&whole[middle as usize..]));
}

fn read(bytes: &[u8]) {
    let mut input = match IArchive::new(bytes) {
        Ok(input) => input,
        Err(_) => return,
    };
    for _ in input.records::<Value>() {}
    let Ok(archive) = Archive::new_torn(bytes) else { return };
    for segment in archive.segments() {
        let Ok(segment) = segment else { continue };
        let Ok(tensors) = segment.tensors() else { continue };
        for tensor in tensors {
            // These must not panic. They may fail, for example if two tensors have the same path.
            let _ = segment.dyn_tensor(tensor.path());
            let _ = segment.slice::<ndarray::ArrayD<f32>>(tensor.path(), ndarray::s![0..1, ..]);
            let _ = segment.view_at::<Tensor<ArrayView2<f32>>>(tensor.path());
        }
        let _ = segment.keys("");
    }
}

fuzz_target!(|bytes: &[u8]| -> Corpus {
    read(bytes);
    let Some((&count, rest)) = bytes.split_first() else { return Corpus::Reject };
    let count = usize::from(count % 8);
    if rest.len() < count {
        return Corpus::Reject;
    }
    let (lengths, metadata) = rest.split_at(count);
    let lengths: Vec<usize> = lengths.iter().map(|&len| usize::from(len) * 4).collect();
    let bytes = built(&lengths, metadata);
    let archive = Archive::new(&bytes[..]).expect("checksums are right");
    read(&bytes);
    let _ = archive.verify();
    agree::<Model>(&bytes, &archive);
    agree::<Value>(&bytes, &archive);
    agree::<Vec<Row>>(&bytes, &archive);
    in_parts(&archive);
    typed_rows(&archive);
    agree::<Tensor<DynTensor>>(&bytes, &archive);
    let ignored = archive.load::<IgnoredAny>().is_ok();
    assert!(
        ignored || archive.load::<Value>().is_err(),
        "a value was read from malformed metadata"
    );
    Corpus::Keep
});
