//! What tests need beside this crate. In CI (`CI=true`) it has to be there.

use std::io::Write as _;

/// Says that tests are skipped, as something is missing; in CI that is a failure.
pub fn skipped(what_is_missing: &str) {
    let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!in_ci, "tests cannot be skipped in CI (CI=true): {what_is_missing}");
    // Not by a macro, whose output is not shown for tests that pass.
    let _ = writeln!(std::io::stderr(), "skipped: {what_is_missing}");
}
