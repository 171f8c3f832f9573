//! How many of its cases a long test tries.

/// With `TENARC_THOROUGH=1`, as in `.ci/full`, 1: all cases. Otherwise `short`: one of so many cases is tried.
///
/// A test uses it where many cases try the same code. Each kind of case is still tried.
#[must_use]
pub fn stride(short: usize) -> usize {
    let thorough = std::env::var_os("TENARC_THOROUGH").is_some_and(|value| value == "1");
    if thorough { 1 } else { short }
}
