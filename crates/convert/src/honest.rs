//! A writer that checks how many bytes another writer claims to have written.

use std::io::{self, Seek, SeekFrom, Write};

/// A caller's writer. Writing fails if it claims to have written more than it was given.
///
/// The standard library trusts this count. If it is too large, [`Write::write_all`] panics.
/// [`BufWriter`](io::BufWriter) panics too, and once more while it is dropped, which aborts the process.
pub struct Honest<W>(W);

impl<W> Honest<W> {
    pub fn new(writer: W) -> Self {
        Self(writer)
    }

    pub fn into_inner(self) -> W {
        self.0
    }
}

impl<W: Write> Write for Honest<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes)? {
            written if written <= bytes.len() => Ok(written),
            written => {
                let given = bytes.len();
                let what = format!("writer claims to have written {written} bytes of {given}");
                Err(io::Error::new(io::ErrorKind::InvalidData, what))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<W: Seek> Seek for Honest<W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}
