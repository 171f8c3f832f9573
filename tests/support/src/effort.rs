//! How many of its cases a long test tries.
//!
//! For each change, `.ci/run` tries some of them. `.ci/full` sets `TENARC_THOROUGH=1`, and tries all. Every kind of case is
//! tried for each change: only what repeats it at another byte, bit or source may be left to `.ci/full`.

/// All cases, or each `short`th one. The first is number `turn` modulo `short`, so that other turns try other cases.
pub fn some_of<I: IntoIterator>(
    cases: I,
    short: usize,
    turn: usize,
) -> impl Iterator<Item = I::Item> {
    let step = stride(short);
    cases.into_iter().skip(turn % step).step_by(step)
}

/// 1 if all cases are tried, and otherwise `short`: how far apart those are that are tried.
#[must_use]
pub fn stride(short: usize) -> usize {
    let thorough = std::env::var_os("TENARC_THOROUGH").is_some_and(|value| value == "1");
    if thorough { 1 } else { short }
}
