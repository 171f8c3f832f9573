//! A place at which threads wait for each other.

use std::collections::HashSet;
use std::io;
use std::sync::{Condvar, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// Threads that come here wait until enough of them have come. So a test shows that several threads do work, and not
/// only that several may.
pub struct Meeting {
    expected: usize,
    came: Mutex<HashSet<ThreadId>>,
    changed: Condvar,
}

impl Meeting {
    /// Waits for so many threads.
    pub fn of(expected: usize) -> Self {
        Self { expected, came: Mutex::default(), changed: Condvar::new() }
    }

    /// Returns when as many threads as expected have called this. Nobody waits after that.
    ///
    /// # Errors
    /// If the other threads do not come within half a minute.
    pub fn wait(&self) -> io::Result<()> {
        let mut came = self.came.lock().unwrap();
        came.insert(thread::current().id());
        self.changed.notify_all();
        let missing = |came: &mut HashSet<_>| came.len() < self.expected;
        let (came, result) =
            self.changed.wait_timeout_while(came, Duration::from_secs(30), missing).unwrap();
        if result.timed_out() {
            let (found, expected) = (came.len(), self.expected);
            return Err(io::Error::other(format!("{found} threads came, expected {expected}")));
        }
        Ok(())
    }

    /// The threads that came.
    pub fn threads(&self) -> HashSet<ThreadId> {
        self.came.lock().unwrap().clone()
    }
}
