//! Progress bars for long operations.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::is_quiet;

/// A progress bar that counts bytes up to a total. It is shown only if standard error is a terminal and `--quiet` was
/// not given. Clones share one bar, which is removed when the last clone is dropped.
#[derive(Clone)]
pub struct Progress(Arc<Bar>);

struct Bar {
    bar: ProgressBar,
    total: u64,
    is_over: AtomicBool,
}

/// The bar that is shown now.
static SHOWN: Mutex<Weak<Bar>> = Mutex::new(Weak::new());

impl Progress {
    /// Creates a bar, which replaces the one that is shown.
    pub fn new(total: u64, what: &'static str) -> Self {
        let bar = if is_quiet() { ProgressBar::hidden() } else { ProgressBar::new(total) };
        let template = "{msg} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what);
        let new = Arc::new(Bar { bar, total, is_over: AtomicBool::new(false) });
        if let Ok(mut shown) = SHOWN.lock() {
            let before = std::mem::replace(&mut *shown, Arc::downgrade(&new));
            before.upgrade().into_iter().for_each(|bar| bar.end());
        }
        Self(new)
    }

    pub fn set(&self, done: u64) {
        if !self.0.is_over.load(Ordering::Relaxed) {
            self.0.bar.set_position(done.min(self.0.total));
        }
    }

    /// Counts more bytes. If more bytes are read than expected, the bar stays at its end.
    pub fn add(&self, bytes: u64) {
        self.set(self.0.bar.position().saturating_add(bytes));
    }
}

impl Bar {
    fn end(&self) {
        if !self.is_over.swap(true, Ordering::Relaxed) {
            self.bar.finish_and_clear();
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.end();
    }
}
