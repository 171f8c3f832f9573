//! Work that several threads share.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::error::{Error, Result};

/// Returns the number of threads for work that keeps a core busy: as many as were asked for, or one for each core, but
/// at most eight.
pub fn one_a_core(asked: Option<NonZeroUsize>) -> usize {
    let cores = || thread::available_parallelism().map_or(1, NonZeroUsize::get).min(8);
    asked.map_or_else(cores, NonZeroUsize::get)
}

/// Calls `work` with each item, on several threads. After an error, no more items are taken. If it fails for several
/// items, returns the error of the first of them.
pub fn in_parallel<I: Send>(
    items: impl Iterator<Item = I> + Send,
    threads: usize,
    work: impl Fn(I) -> Result<()> + Sync,
) -> Result<()> {
    let failed: Mutex<Option<(usize, Error)>> = Mutex::new(None);
    let first = AtomicUsize::new(usize::MAX);
    let items = Mutex::new(items.enumerate());
    let next = || {
        let (number, item) = items.lock().unwrap_or_else(PoisonError::into_inner).next()?;
        // Items before the one that failed are still processed, as by a single thread.
        (number < first.load(Ordering::Relaxed)).then_some((number, item))
    };
    let run = || {
        while let Some((number, item)) = next() {
            if let Err(error) = work(item) {
                let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                if failed.as_ref().is_none_or(|(before, _)| number < *before) {
                    first.store(number, Ordering::Relaxed);
                    *failed = Some((number, error));
                }
            }
        }
    };
    on_threads(threads, &run);
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.map_or(Ok(()), |(_, error)| Err(error))
}

/// Runs the same on several threads. Starting them is compiled once, and not for each work.
fn on_threads(threads: usize, run: &(dyn Fn() + Sync)) {
    thread::scope(|scope| {
        let _ = (1..threads).try_for_each(|_| {
            // If no thread can be started, this one does all the work.
            match thread::Builder::new().spawn_scoped(scope, run) {
                Ok(_) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        });
        run();
    });
}

/// Memory that the threads of one piece of work use one after the other, so that it is allocated once for each thread.
#[derive(Debug, Default)]
pub struct Spare<T>(Mutex<Vec<T>>);

impl<T: Default> Spare<T> {
    /// Calls `work` with something that no other thread uses.
    pub fn lend<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let free = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = free().pop();
        let mut lent = waiting.unwrap_or_default();
        let result = work(&mut lent);
        free().push(lent);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_items_are_done_and_the_first_error_is_returned() {
        for threads in [1, 2, 5] {
            let done = Mutex::new(Vec::new());
            in_parallel(0..100, threads, |item| {
                done.lock().unwrap().push(item);
                Ok(())
            })
            .unwrap();
            let mut done = done.into_inner().unwrap();
            done.sort_unstable();
            assert!(done.into_iter().eq(0..100));

            let error = in_parallel(0..100, threads, |item| match item {
                30.. => Err(Error::data(format!("{item}"))),
                _ => Ok(()),
            });
            assert!(error.unwrap_err().to_string().contains("30"), "{threads}");
        }
    }
}
