//! Tools that tests need beside the compiler. In CI (`CI=true`) they must be installed.

use std::io::Write as _;

/// Reports that tests are skipped because something is missing. In CI, panics instead.
pub fn skipped(what_is_missing: &str) {
    let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!in_ci, "tests cannot be skipped in CI (CI=true): {what_is_missing}");
    // Not by `eprintln!`: the test harness hides its output for tests that pass.
    let _ = writeln!(std::io::stderr(), "skipped: {what_is_missing}");
}
