//! Writers that take few bytes at a time, fail, or claim to have written more than they did.

use std::io::{self, IoSlice, Write};

use tenarc::error::Category;
use tenarc::parts::{Parts, Split};

use super::support::{Model, Sent, flat, model, sample, small};

/// What a writer does at a call, of as many bytes as it was offered.
type Answer = fn(usize) -> io::Result<usize>;

/// Takes some bytes at each call, and does something else at one of them.
struct Odd {
    taken: Vec<u8>,
    step: usize,
    vectored: bool,
    call: usize,
    odd_at: usize,
    odd: Answer,
}

impl Odd {
    fn take(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.call += 1;
        let offered: usize = slices.iter().map(|slice| slice.len()).sum();
        if self.call == self.odd_at {
            return (self.odd)(offered);
        }
        let mut left = self.step.min(offered);
        let taken = left;
        for slice in slices {
            let len = slice.len().min(left);
            self.taken.extend(&slice[..len]);
            left -= len;
        }
        Ok(taken)
    }
}

impl Write for Odd {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.take(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.vectored {
            return self.take(slices);
        }
        let first = slices.iter().find(|slice| !slice.is_empty());
        self.write(first.map_or(&[], |slice| slice))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn writer(step: usize, vectored: bool, odd_at: usize, odd: Answer) -> Odd {
    Odd { taken: Vec::new(), step, vectored, call: 0, odd_at, odd }
}

/// Writes in both ways.
fn each(
    parts: &Parts<Vec<u8>>,
    split: &Split<'_, Model>,
    mut check: impl FnMut(&dyn Fn(&mut Odd) -> tenarc::Result<()>),
) {
    check(&|writer| parts.write_to(writer));
    check(&|writer| split.write_to(writer));
}

fn sent() -> (Sent, Parts<Vec<u8>>) {
    let sent = sample();
    let parts = Parts::new(&sent.0[..], sent.1.clone()).unwrap();
    (sent, parts)
}

#[test]
fn short_writes_and_interruptions() {
    let (sent, parts) = sent();
    let value = model(1);
    let split = Split::with_options(&value, small()).unwrap();
    each(&parts, &split, |write| {
        for step in [1, 2, 47, 48, 49, 100, 10_000] {
            for vectored in [false, true] {
                for odd_at in 0..6 {
                    let interrupted: Answer = |_| Err(io::ErrorKind::Interrupted.into());
                    let mut writer = writer(step, vectored, odd_at, interrupted);
                    write(&mut writer).unwrap();
                    assert!(writer.taken == flat(&sent), "{step}, {vectored}, {odd_at}");
                }
            }
        }
    });
}

#[test]
fn errors_and_claims_at_every_call() {
    let (sent, parts) = sent();
    let value = model(1);
    let split = Split::with_options(&value, small()).unwrap();
    let expected = flat(&sent);
    let kinds: [(Answer, io::ErrorKind); 5] = [
        (|_| Err(io::ErrorKind::BrokenPipe.into()), io::ErrorKind::BrokenPipe),
        (|_| Err(io::ErrorKind::WouldBlock.into()), io::ErrorKind::WouldBlock),
        (|_| Ok(0), io::ErrorKind::WriteZero),
        (|offered| Ok(offered + 1), io::ErrorKind::InvalidData),
        (|_| Ok(usize::MAX), io::ErrorKind::InvalidData),
    ];
    each(&parts, &split, |write| {
        for (odd, kind) in kinds {
            for (step, vectored) in [(31, false), (31, true), (10_000, false), (10_000, true)] {
                // One that takes the first slice alone could have taken more, for all we know.
                if odd(1).is_ok_and(|claimed| claimed == 2) && !vectored {
                    continue;
                }
                for odd_at in 1.. {
                    let mut writer = writer(step, vectored, odd_at, odd);
                    let result = write(&mut writer);
                    if writer.call < odd_at {
                        result.unwrap();
                        assert!(writer.taken == expected);
                        break;
                    }
                    let error = result.unwrap_err();
                    assert_eq!(error.category(), Category::Io, "{odd_at}: {error}");
                    assert_eq!(error.offset(), Some(writer.taken.len() as u64), "{error}");
                    assert_eq!(writer.call, odd_at, "called again after an error");
                    assert!(expected.starts_with(&writer.taken));
                    assert_eq!(io::Error::from(error).kind(), kind);
                }
            }
        }
    });
}

#[test]
fn many_buffers_go_in_one_call() {
    let (sent, parts) = sent();
    let mut writer = writer(usize::MAX, true, 0, |_| Ok(0));
    parts.write_to(&mut writer).unwrap();
    assert_eq!(writer.call, 1);
    assert!(writer.taken == flat(&sent));
    // By reference, so that the writer can be used on.
    parts.write_to(&mut writer).unwrap();
    assert_eq!(writer.taken.len(), 2 * flat(&sent).len());
}
