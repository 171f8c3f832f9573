//! A writer may claim to have written more than it was given. That is an error.

use std::io::{self, Write};

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

#[test]
fn messages() {
    refused(|liar| tenarc::to_writer(liar, &vec![1u8; 100]));
    refused(|liar| tenarc::to_writer(liar, &tenarc::Tensor(vec![1u64; 100_000])));
}
