//! Progress bars for long operations.

use indicatif::{ProgressBar, ProgressStyle};

/// A progress bar that counts bytes. It is shown only if standard error is a terminal. Clones share one bar.
#[derive(Clone)]
pub struct Progress(ProgressBar);

impl Progress {
    pub fn new(total: u64, what: &'static str, quiet: bool) -> Self {
        if quiet {
            return Self(ProgressBar::hidden());
        }
        let bar = ProgressBar::new(total);
        let template = "{msg} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what);
        Self(bar)
    }

    pub fn set(&self, done: u64) {
        self.0.set_position(done);
    }

    pub fn add(&self, bytes: u64) {
        self.0.inc(bytes);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
