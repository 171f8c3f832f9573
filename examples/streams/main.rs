//! Compression and encryption around streams of archives and of messages.
//!
//! ```sh
//! cargo run --release --example streams
//! ```
//!
//! Archives and messages go through any `io::Write` and come out of any `io::Read`. gzip and zstd
//! come as such pairs; for encryption one is in `sealed.rs`, to be copied.

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

        // Compressed, then encrypted: ciphertext does not shrink.
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
        println!("          one bit of that changed: {error}");
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

/// zstd is in C, and here only where that is easily built.
#[cfg(not(target_arch = "x86_64"))]
fn through_zstd(_: fn(&mut dyn Write) -> Result<()>, _: Reading) -> Result<String> {
    Ok("zstd left out".into())
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

/// Reads to the end: only there a cut stream shows.
fn compare(records: impl Iterator<Item = tenarc::Result<Record>>) -> Result<()> {
    let records = records.collect::<tenarc::Result<Vec<Record>>>()?;
    if records.iter().eq(&(0..4).map(record).collect::<Vec<_>>()) {
        Ok(())
    } else {
        Err("the records are not those that were written".into())
    }
}
