//! A writer that claims to have written more than it was given ended the process: `BufWriter` and the
//! encoder of deflate panic then, and once more while they are dropped.

use std::io::{self, Seek, SeekFrom, Write};

/// Tells the truth about so many calls, and then claims a byte too many.
struct Liar(usize);

impl Write for Liar {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.checked_sub(1) {
            Some(left) => {
                self.0 = left;
                Ok(bytes.len())
            }
            None => Ok(bytes.len() + 1),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Liar {
    fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
        Ok(0)
    }
}

#[track_caller]
fn refused<T>(write: impl Fn(Liar) -> tenarc::Result<T>) {
    for honest in [0, 1] {
        // Whatever fits one call is written before the lie.
        if let Err(error) = write(Liar(honest)) {
            let text = error.to_string();
            assert!(text.contains("writer claims to have written"), "{text}");
            assert_eq!(error.category(), tenarc::error::Category::Io);
        } else {
            assert!(honest > 0);
        }
    }
}

#[cfg(feature = "json")]
#[test]
fn json() {
    refused(|liar| tenarc_convert::json::write(liar, &tenarc::Value::Text("a".repeat(100_000))));
    refused(|liar| tenarc_convert::json::write(liar, &tenarc::Value::Null));
}

#[cfg(feature = "msgpack")]
#[test]
fn msgpack() {
    refused(|liar| tenarc_convert::msgpack::write(liar, &tenarc::Value::Bytes(vec![7; 100_000])));
    refused(|liar| tenarc_convert::msgpack::write(liar, &tenarc::Value::Null));
}

#[cfg(feature = "safetensors")]
#[test]
fn safetensors() {
    let tensors = [("a", vec![1u64; 500_000])];
    refused(|liar| tenarc_convert::safetensors::to_writer(liar, &tensors));
    refused(|liar| tenarc_convert::safetensors::to_writer(liar, &[("a", [1u8])]));
}

#[cfg(feature = "arrow")]
#[test]
fn arrow() {
    refused(|liar| tenarc_convert::arrow::to_writer(liar, &[("a", vec![1u64; 500_000])]));
    refused(|liar| tenarc_convert::arrow::to_writer(liar, &[("a", [1u8])]));
}

#[cfg(feature = "npy")]
#[test]
fn npy() {
    use tenarc_convert::npy::{self, Compression, NpzWriter};

    refused(|liar| npy::write(liar, &vec![1u64; 100_000]));
    for compression in [Compression::Stored, Compression::Deflated] {
        refused(|liar| {
            let mut out = NpzWriter::new(liar)?.with_compression(compression);
            let noise: Vec<u32> = (0..100_000u32).map(|n| n.wrapping_mul(0x9e37_79b9)).collect();
            out.add("a", &noise)?;
            out.finish()
        });
    }
}

#[cfg(feature = "tenbin")]
#[test]
fn tenbin() {
    refused(|liar| tenarc_convert::tenbin::write(liar, &[("a", vec![1u64; 100_000])]));
    refused(|liar| tenarc_convert::tenbin::write_chunk(liar, &[1; 1000]));
}
