//! Archives, exchanged with the second implementation of `SPEC.md` in `../python/archive.py`.
//!
//! A manifest lists each archive with its alignment, the number of segments before each of its end
//! marks, and its values in order: name, description as in [`crate::data`], lengths of buffers, their
//! codecs (null for a buffer that is not compressed), and of a [`Record`] what is known of it to the
//! struct. That of Python has no codecs, but the digest of each archive, which is null if it has none.

use std::error::Error;
use std::fs;
use std::path::Path;

use half::{bf16, f16};
use ndarray::Array2;
use num_complex::Complex;
use serde::de::IgnoredAny;
use serde_json::{Value as Json, json};
use tenarc::archive::{Compression, SaveOptions, Segment};
use tenarc::io::SyncLevel;
use tenarc::{Archive, IArchive, OArchive, Tensor, Value};

use crate::data::Data;
use crate::tensors::{self, Record};
use crate::{Case, OneByte, Tally, plain};

/// What an archive must hold.
struct Entry {
    name: Option<String>,
    data: Data,
    buffers: Vec<u64>,
    /// What a [`Record`] sees of it, where it is one.
    record: Option<Data>,
}

struct Listed {
    file: String,
    bytes: Vec<u8>,
    alignment: u64,
    /// Null if the archive has none. `None` if the manifest does not say.
    digest: Option<Json>,
    entries: Vec<Entry>,
}

/// Every option that changes what is written, with the alignment.
pub fn variants() -> [(&'static str, u64, SaveOptions); 8] {
    let options = || SaveOptions::default().with_sync(SyncLevel::Off);
    [
        ("default", 256, options()),
        ("all-in-buffers", 8, options().with_alignment(8).with_inline_below(0)),
        ("aligned-to-512", 512, options().with_alignment(512).with_inline_below(3)),
        ("aligned-to-65536", 65_536, options().with_alignment(65_536).with_inline_below(4096)),
        ("inline", 256, options().with_inline_below(usize::MAX)),
        ("unchecked", 256, options().with_inline_below(0).with_checksums(false)),
        ("dedup", 64, options().with_inline_below(0).with_dedup(true).with_alignment(64)),
        ("callback", 256, options().with_out_of_band(|tensor| tensor.dtype().name().len() == 3)),
    ]
}

/// Writes archives and a manifest.
pub fn write(dir: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(dir)?;
    let mut cases = tensors::cases()?;
    // Long strings would say nothing more, but for each archive again.
    cases.extend(plain::cases()?.into_iter().filter(|case| case.bytes.len() < 5000));
    cases.extend(more()?);
    let mut manifest = Vec::new();
    for (file, alignment, options) in variants() {
        manifest.push(write_all(dir, file, &cases, alignment, &options, &[])?);
    }
    let options = SaveOptions::default().with_sync(SyncLevel::Off).with_inline_below(0);
    // Where a block has just been written, where one entry stands again, and between.
    manifest.push(write_all(dir, "committed", &cases, 256, &options, &[1, 63, 64, 65, 128, 200])?);
    manifest.push(append_all(dir, &cases[..70], &options, 9)?);
    let chunked = options.clone().with_chunk_len(CHUNK);
    manifest.push(write_all(dir, "chunks", &chunks()?, 256, &chunked, &[])?);
    let unchecked = chunked.with_checksums(false);
    manifest.push(write_all(dir, "chunks-unchecked", &chunks()?, 256, &unchecked, &[])?);
    for (file, compression) in
        [("compressed-zstd", Compression::zstd()), ("compressed-lz4", Compression::lz4())]
    {
        let options = options.clone().with_chunk_len(CHUNK).with_compression(compression);
        manifest.push(write_all(dir, file, &compressible()?, 256, &options, &[])?);
    }
    let long = options.clone().with_chunk_len(1 << 30);
    manifest.push(write_all(dir, "chunks-of-a-gibibyte", &chunks()?, 256, &long, &[])?);
    manifest.push(write_all(dir, "empty", &[], 256, &options, &[])?);
    let mut many = Vec::new();
    for number in 0..64 * 64 + 65 {
        let (name, data) = (format!("number {number}"), Data::Integer(number));
        many.push(Case { name, bytes: tenarc::to_vec(&number)?, data });
    }
    manifest.push(write_all(dir, "three-levels", &many, 256, &options, &[4095, 4096])?);
    let manifest = json!({"writer": "tenarc", "archives": manifest});
    fs::write(dir.join("manifest.json"), serde_json::to_vec(&manifest)?)?;
    Ok(())
}

/// Values with tied tensors, and with metadata of every length around those paddings that have a
/// form of their own.
pub fn more() -> Result<Vec<Case>, Box<dyn Error>> {
    let mut cases = Vec::new();
    let mut add = |name: String, bytes: Vec<u8>| -> tenarc::Result<()> {
        let data = Data::from(&tenarc::from_slice::<Value>(&bytes)?);
        cases.push(Case { name, bytes, data });
        Ok(())
    };
    let weight = Array2::from_shape_fn((40, 30), |(row, column)| {
        f32::from(u8::try_from(row).unwrap_or(0)) + f32::from(u8::try_from(column).unwrap_or(0))
    });
    let tied = (Tensor(&weight), Tensor(weight.t()), Tensor(&weight), "between");
    add("tied".into(), tenarc::to_vec(&tied)?)?;
    for len in 0..300 {
        let value = ("x".repeat(len), Tensor(vec![1_u8, 2, 3, 4, 5]), Tensor(vec![0.5_f64]));
        add(format!("padding-{len}"), tenarc::to_vec(&value)?)?;
    }
    Ok(cases)
}

/// The shortest length of chunks.
pub const CHUNK: u64 = 64 << 10;

/// Values with buffers of as many bytes as one or more chunks of [`CHUNK`] bytes have, and around that.
pub fn chunks() -> Result<Vec<Case>, Box<dyn Error>> {
    let chunk = usize::try_from(CHUNK)?;
    let lengths = [1, chunk - 1, chunk, chunk + 1, 2 * chunk, 2 * chunk + 1];
    // Chunks that are alike could be in each other's place.
    let bytes = |len| -> Vec<u8> {
        (0..len as u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[2]).collect()
    };
    let together: Vec<_> = lengths.iter().rev().map(|&len| Tensor(bytes(len))).collect();
    let mut cases = vec![("chunks-together".to_owned(), tenarc::to_vec(&together)?)];
    for len in lengths {
        cases.push((format!("chunks-{len}"), tenarc::to_vec(&Tensor(bytes(len)))?));
    }
    let case = |(name, bytes): (String, Vec<u8>)| -> Result<Case, Box<dyn Error>> {
        let data = Data::from(&tenarc::from_slice::<Value>(&bytes)?);
        Ok(Case { name, bytes, data })
    };
    cases.into_iter().map(case).collect()
}

/// Values of most dtypes that shrink, of few and of several chunks.
fn compressible() -> Result<Vec<Case>, Box<dyn Error>> {
    let mut cases = Vec::new();
    let mut add = |name: String, bytes: tenarc::Result<Vec<u8>>| -> Result<(), Box<dyn Error>> {
        let bytes = bytes?;
        let data = Data::from(&tenarc::from_slice::<Value>(&bytes)?);
        cases.push(Case { name, bytes, data });
        Ok(())
    };
    // Bits that look random: SplitMix64.
    let bits = |at: u64| {
        let mixed = at.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb).to_be_bytes()
    };
    let half = |at: u64| u16::from_be_bytes([bits(at)[0], bits(at)[1]]);
    let word = |at: u64| u32::from_be_bytes([bits(at)[0], bits(at)[1], bits(at)[2], bits(at)[3]]);
    // A few exponents, any sign, any mantissa.
    let single = |at: u64| f32::from_bits(0x3c00_0000 | word(at) & 0x81ff_ffff);
    for len in [41_u64, 3001, 70_003] {
        macro_rules! tensor {
            ($name:literal, $element:expr) => {
                let elements: Vec<_> = (0..len).map($element).collect();
                add(format!("{}-{len}", $name), tenarc::to_vec(&Tensor(elements)))?;
            };
        }
        tensor!("bf16", |at| bf16::from_bits(0x3c00 | half(at) & 0x81ff));
        tensor!("f16", |at| f16::from_bits(0x2000 | half(at) & 0x83ff));
        tensor!("f32", single);
        tensor!("f64", |at| f64::from(single(at)));
        tensor!("c64", |at| Complex::new(single(at), single(at + 1)));
        tensor!("c128", |at| Complex::new(f64::from(single(at)), 0.5));
        tensor!("i8", |at| i8::from_be_bytes([bits(at)[0] & 0x83]));
        tensor!("u16", |at| half(at) & 0x01ff);
        tensor!("i64", |at| i64::from(i16::from_be_bytes([bits(at)[0], bits(at)[1]])));
        tensor!("bool", |at| bits(at)[0] > 240);
        let content: Vec<u8> = (0..len).map(|at| bits(at)[0] & 0x0f).collect();
        add(format!("bytes-{len}"), tenarc::to_vec(serde_bytes::Bytes::new(&content)))?;
        let numbers: Vec<i32> = (0..len).map(|at| i32::from(bits(at)[0])).collect();
        add(format!("numbers-{len}"), tenarc::to_vec(&numbers))?;
    }
    let matrix = Array2::from_shape_fn((300, 200), |(row, column)| (row ^ column) as u64);
    add("columns".to_owned(), tenarc::to_vec(&(Tensor(matrix.t()), Tensor(&matrix))))?;
    Ok(cases)
}

/// Writes an archive of all cases, with end marks behind so many of them, and behind the last.
fn write_all(
    dir: &Path,
    file: &str,
    cases: &[Case],
    alignment: u64,
    options: &SaveOptions,
    ends: &[usize],
) -> Result<Json, Box<dyn Error>> {
    let mut out = OArchive::with_options(Vec::new(), options.clone())?;
    for (number, case) in cases.iter().enumerate() {
        if ends.contains(&number) {
            out.commit()?;
        }
        out.save_as(&case.name, &tenarc::from_slice::<Value>(&case.bytes)?)?;
    }
    let bytes = out.finish()?;
    let file = format!("{file}.tenarc");
    fs::write(dir.join(&file), &bytes)?;
    let ends: Vec<usize> = ends.iter().copied().chain([cases.len()]).collect();
    describe(&file, &bytes, cases, alignment, &ends)
}

/// Writes an archive to which so many cases at a time are appended.
fn append_all(
    dir: &Path,
    cases: &[Case],
    options: &SaveOptions,
    step: usize,
) -> Result<Json, Box<dyn Error>> {
    let file = "appended.tenarc";
    let path = dir.join(file);
    let mut ends = vec![0];
    OArchive::create(&path, options.clone())?.finish()?;
    for cases in cases.chunks(step) {
        let mut out = OArchive::append_with(&path, options.clone())?;
        for case in cases {
            out.save_as(&case.name, &tenarc::from_slice::<Value>(&case.bytes)?)?;
        }
        out.finish()?;
        ends.push(ends.last().unwrap_or(&0) + cases.len());
    }
    describe(file, &fs::read(&path)?, cases, 256, &ends)
}

/// The manifest's words for an archive that has been written.
fn describe(
    file: &str,
    bytes: &[u8],
    cases: &[Case],
    alignment: u64,
    ends: &[usize],
) -> Result<Json, Box<dyn Error>> {
    let archive = Archive::new(bytes)?;
    let mut values = Vec::new();
    for (segment, case) in archive.segments().zip(cases) {
        let segment = segment?;
        let lengths = lengths(&segment);
        let codecs: Vec<_> = (0..lengths.len())
            .map(|number| segment.compressed(number).map(|buffer| buffer.codec().to_owned()))
            .collect();
        let value = case.data.to_json();
        values
            .push(json!({"name": case.name, "value": value, "buffers": lengths, "codecs": codecs}));
    }
    Ok(json!({
        "file": file,
        "alignment": alignment,
        "ends": ends,
        "values": values,
        "digest": digest(&archive),
    }))
}

/// The digest, which archives without checksums do not have.
fn digest(archive: &Archive<&[u8]>) -> Option<String> {
    archive.digest().ok().map(|digest| digest.to_string())
}

fn lengths(segment: &Segment<'_, &[u8]>) -> Vec<u64> {
    segment.buffers().iter().map(|(_, len)| *len).collect()
}

/// Reads archives and compares them with their manifest.
pub fn check(dir: &Path) -> Result<Tally, Box<dyn Error>> {
    let mut tally = Tally::default();
    for listed in read(dir)? {
        let file = &listed.file;
        tally.note(&format!("{file}, verified"), whole(&listed));
        tally.note(&format!("{file} as a file"), whole_file(&dir.join(file)));
        let archive = match Archive::new(&listed.bytes[..]) {
            Ok(archive) => archive,
            Err(error) => {
                tally.note(file, Err(error.to_string()));
                continue;
            }
        };
        if let Some(wanted) = &listed.digest {
            let found = json!(digest(&archive));
            let result = if found == *wanted { Ok(()) } else { Err(found.to_string()) };
            tally.note(&format!("{file}, digest"), result);
        }
        for (number, entry) in (0..).zip(&listed.entries) {
            let place = format!("{file}, {number}, {:?}", entry.name);
            let result = archive
                .segment(number)
                .map_err(|error| error.to_string())
                .and_then(|segment| segment_is(&segment, entry, listed.alignment));
            tally.note(&place, result);
            if let Some(name) = &entry.name {
                let by_name = archive.named(name).and_then(|segment| segment.load());
                tally.note(&format!("{place}, by name"), matches(by_name, &entry.data));
            }
            if let Some(wanted) = &entry.record {
                let loaded = archive.segment(number).and_then(|segment| segment.load::<Record>());
                tally.note(&format!("{place}, as a struct"), is_record(loaded, wanted));
            }
        }
        let streams = [
            ("a stream", stream(IArchive::new(&listed.bytes[..]), &listed)),
            ("single bytes", stream(IArchive::new(OneByte(&listed.bytes)), &listed)),
        ];
        for (kind, result) in streams {
            tally.note(&format!("{file} as {kind}"), result);
        }
    }
    Ok(tally)
}

fn whole(listed: &Listed) -> Result<(), String> {
    let archive = Archive::new(&listed.bytes[..]).map_err(|error| error.to_string())?;
    archive.verify().map_err(|error| error.to_string())?;
    let (found, wanted) = (archive.len(), listed.entries.len());
    if usize::try_from(found) == Ok(wanted) {
        Ok(())
    } else {
        Err(format!("{found} segments, wanted {wanted}"))
    }
}

fn whole_file(path: &Path) -> Result<(), String> {
    let read = || tenarc::open(path)?.verify();
    read().map_err(|error| error.to_string())
}

fn segment_is(segment: &Segment<'_, &[u8]>, entry: &Entry, alignment: u64) -> Result<(), String> {
    if segment.name() != entry.name.as_deref() {
        return Err(format!("name {:?}", segment.name()));
    }
    // Compressed buffers are not aligned.
    let aligned = segment.buffers().iter().enumerate().all(|(number, (start, _))| {
        segment.compressed(number).is_some() || start.is_multiple_of(alignment)
    });
    if segment.alignment() != alignment || !aligned || lengths(segment) != entry.buffers {
        return Err(format!("buffers {:?}", segment.buffers()));
    }
    matches(segment.load(), &entry.data)?;
    segment.load::<IgnoredAny>().map(drop).map_err(|error| error.to_string())
}

pub fn matches(loaded: tenarc::Result<Value>, wanted: &Data) -> Result<(), String> {
    let found = Data::from(&loaded.map_err(|error| error.to_string())?);
    // Archives pack sequences unasked, which changes nothing of what they mean.
    found.matches(wanted).or_else(|_| unpacked(&found).matches(wanted))
}

/// The same with every typed array as the array of its numbers.
fn unpacked(data: &Data) -> Data {
    match data {
        Data::Numbers { dtype, bytes } => elements(dtype, bytes).unwrap_or_else(|| data.clone()),
        Data::Array(items) => Data::array(items.iter().map(unpacked)),
        Data::Map(entries) => {
            Data::Map(entries.iter().map(|(key, item)| (unpacked(key), unpacked(item))).collect())
        }
        Data::Tag(tag, content) => Data::Tag(*tag, Box::new(unpacked(content))),
        other => other.clone(),
    }
}

fn elements(dtype: &str, bytes: &[u8]) -> Option<Data> {
    macro_rules! typed {
        ($type:ty, $name:literal, $data:expr) => {
            if dtype == $name {
                let (items, _) = bytes.as_chunks();
                let numbers = items.iter().map(|item| <$type>::from_le_bytes(*item));
                return Some(Data::array(numbers.map($data)));
            }
        };
    }
    typed!(u8, "u8", |value| Data::Integer(value.into()));
    typed!(u16, "u16", |value| Data::Integer(value.into()));
    typed!(u32, "u32", |value| Data::Integer(value.into()));
    typed!(u64, "u64", |value| Data::Integer(value.into()));
    typed!(i8, "i8", |value| Data::Integer(value.into()));
    typed!(i16, "i16", |value| Data::Integer(value.into()));
    typed!(i32, "i32", |value| Data::Integer(value.into()));
    typed!(i64, "i64", |value| Data::Integer(value.into()));
    typed!(f32, "f32", Data::single);
    typed!(f64, "f64", Data::double);
    None
}

fn is_record(loaded: tenarc::Result<Record>, wanted: &Data) -> Result<(), String> {
    loaded.map_err(|error| error.to_string())?.described(true).matches(wanted)
}

/// Reads every value from the front.
fn stream<R: std::io::Read>(
    input: tenarc::Result<IArchive<R>>,
    listed: &Listed,
) -> Result<(), String> {
    let mut input = input.map_err(|error| error.to_string())?;
    for (number, entry) in listed.entries.iter().enumerate() {
        let at = |error: String| format!("value {number}: {error}");
        let name = input.next_name().map_err(|error| at(error.to_string()))?;
        if name != Some(entry.name.as_deref()) {
            return Err(at(format!("name {name:?}")));
        }
        matches(input.load(), &entry.data).map_err(at)?;
    }
    match input.is_at_end() {
        Ok(true) => Ok(()),
        Ok(false) => Err("something behind the last value".into()),
        Err(error) => Err(error.to_string()),
    }
}

fn read(dir: &Path) -> Result<Vec<Listed>, Box<dyn Error>> {
    let manifest: Json = serde_json::from_slice(&fs::read(dir.join("manifest.json"))?)?;
    let archives = manifest["archives"].as_array().ok_or("a manifest without archives")?;
    let listed = |json: &Json| -> Result<Listed, Box<dyn Error>> {
        let file = json["file"].as_str().ok_or("an archive without a name")?;
        let entries = json["values"].as_array().and_then(|all| all.iter().map(entry).collect());
        Ok(Listed {
            file: file.into(),
            bytes: fs::read(dir.join(file))?,
            alignment: json["alignment"].as_u64().ok_or("an archive without an alignment")?,
            digest: json.get("digest").cloned(),
            entries: entries.ok_or_else(|| format!("{file}: its values cannot be read"))?,
        })
    };
    archives.iter().map(listed).collect()
}

fn entry(json: &Json) -> Option<Entry> {
    Some(Entry {
        name: json["name"].as_str().map(Into::into),
        data: Data::from_json(&json["value"])?,
        buffers: json["buffers"].as_array()?.iter().map(Json::as_u64).collect::<Option<_>>()?,
        record: if json["as"] == "record" { Some(Data::from_json(&json["known"])?) } else { None },
    })
}
