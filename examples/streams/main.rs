//! Compresses and encrypts archives and messages while they are written.
//!
//! ```sh
//! cargo run --release --example streams
//! ```
//!
//! Archives and messages are written to any `io::Write` and read from any `io::Read`. Compressors such as
//! gzip and zstd are such writers and readers. `sealed.rs` has a pair for encryption, which you may copy.

mod sealed;

use std::error::Error;
use std::io::{Read, Write};

use chacha20poly1305::Key;
use chacha20poly1305::aead::Generate;
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use serde::{Deserialize, Serialize};
use tenarc::{Deserializer, IArchive, OArchive, Tensor};

use sealed::{Opener, Sealer};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[derive(Serialize, Deserialize, PartialEq)]
struct Record {
    second: u32,
    counts: Tensor<Vec<i32>>,
}

fn main() -> Result<()> {
    let key = Key::generate();
    for (kind, write, read) in [
        ("archive", write_archive as fn(&mut dyn Write) -> Result<()>, read_archive as Reading),
        ("messages", write_messages, read_messages),
    ] {
        let mut plain = Vec::new();
        write(&mut plain)?;
        read(&mut &plain[..])?;

        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        write(&mut gzip)?;
        let gzip = gzip.finish()?;
        read(&mut GzDecoder::new(&gzip[..]))?;

        let zstd = through_zstd(write, read)?;

        // Compress first: encrypted data cannot be compressed.
        let mut out = GzEncoder::new(Sealer::new(Vec::new(), &key)?, Compression::fast());
        write(&mut out)?;
        let mut sealed = out.finish()?.finish()?;
        read(&mut GzDecoder::new(Opener::new(&sealed[..], &key)?))?;
        println!(
            "{kind:8}  {} bytes, gzip {}, {zstd}, gzip and sealed {}",
            plain.len(),
            gzip.len(),
            sealed.len()
        );

        let middle = sealed.len() / 2;
        sealed[middle] ^= 1;
        let changed = read(&mut GzDecoder::new(Opener::new(&sealed[..], &key)?));
        let error = changed.err().ok_or("a changed byte went unnoticed")?;
        println!("          after a change of one bit: {error}");
    }
    Ok(())
}

type Reading = fn(&mut dyn Read) -> Result<()>;

#[cfg(target_arch = "x86_64")]
fn through_zstd(write: fn(&mut dyn Write) -> Result<()>, read: Reading) -> Result<String> {
    let mut zstd = zstd::Encoder::new(Vec::new(), 1)?;
    write(&mut zstd)?;
    let zstd = zstd.finish()?;
    read(&mut zstd::Decoder::new(&zstd[..])?)?;
    Ok(format!("zstd {}", zstd.len()))
}

/// The zstd crate compiles C code, so this example uses it on one architecture only.
#[cfg(not(target_arch = "x86_64"))]
fn through_zstd(_: fn(&mut dyn Write) -> Result<()>, _: Reading) -> Result<String> {
    Ok("zstd skipped".into())
}

fn record(second: u32) -> Record {
    let counts = (0_i32..50_000).map(|n| n % 211 * (n % 97)).collect();
    Record { second, counts: Tensor(counts) }
}

fn write_archive(stream: &mut dyn Write) -> Result<()> {
    let mut out = OArchive::new(stream)?;
    for second in 0..4 {
        out.save(&record(second))?;
    }
    out.finish()?;
    Ok(())
}

fn read_archive(stream: &mut dyn Read) -> Result<()> {
    let mut input = IArchive::new(stream)?;
    compare(input.records())
}

fn write_messages(mut stream: &mut dyn Write) -> Result<()> {
    for second in 0..4 {
        tenarc::to_writer(&mut stream, &record(second))?;
    }
    Ok(())
}

fn read_messages(stream: &mut dyn Read) -> Result<()> {
    compare(Deserializer::from_reader(stream).into_iter())
}

/// Compares the records. Reads to the end of the stream, as only that shows whether it was truncated.
fn compare(records: impl Iterator<Item = tenarc::Result<Record>>) -> Result<()> {
    let records = records.collect::<tenarc::Result<Vec<Record>>>()?;
    if records.iter().eq(&(0..4).map(record).collect::<Vec<_>>()) {
        Ok(())
    } else {
        Err("the records differ from those that were written".into())
    }
}
