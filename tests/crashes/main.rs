//! A save that is killed, or meets an error, at any of its system calls leaves the old file or the
//! new one, whole: numbers 83 to 85 and 88 to 91 of `docs/threats.md`.
//!
//! This program does not use the usual test harness. The harness runs tests in threads, and strace
//! counts system calls for each thread, so the child's calls could not be told from the harness's.

#[cfg(unix)]
mod directory;
#[cfg(unix)]
mod file;
#[cfg(unix)]
mod strace;

#[cfg(unix)]
use tenarc_test_support::child;

#[cfg(unix)]
const TESTS: &[(&str, fn())] = &[
    ("file::syncs_in_order", file::syncs_the_file_before_and_the_directory_after_the_rename),
    ("file::killed", file::leaves_one_content_or_the_other_wherever_it_is_killed),
    ("file::faults", file::tells_of_every_fault_and_leaves_nothing_behind),
    ("directory::faults", directory::tells_of_every_fault_and_goes_on),
    ("directory::reading", directory::tells_of_every_fault_of_reading),
    ("directory::next_killed", directory::keeps_the_last_or_the_one_before_wherever_it_is_killed),
    ("directory::again_killed", directory::saves_again_or_not_wherever_it_is_killed),
    ("directory::first_killed", directory::starts_afresh_wherever_the_first_save_is_killed),
];

#[cfg(unix)]
fn main() {
    if let Some((role, dir)) = child::role() {
        return if role == file::ROLE { file::go_on(&dir) } else { directory::go_on(&role, &dir) };
    }
    let (options, filters): (Vec<_>, Vec<_>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with('-'));
    if options.iter().any(|option| option == "--list") || strace::is_missing() {
        return;
    }
    for (name, test) in TESTS {
        if filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str())) {
            let begun = std::time::Instant::now();
            test();
            println!("test {name} ... ok ({:.1} s)", begun.elapsed().as_secs_f64());
        }
    }
}

#[cfg(not(unix))]
fn main() {}
