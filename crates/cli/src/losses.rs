//! Messages about content that is not read, or not kept.

use tenarc_convert::{Loss, Losses};

use crate::output::{is_quiet, say};

/// The start of messages about content that a writer leaves out or changes.
pub const NOT_KEPT: &str = "cannot be kept";
/// The start of messages about content that a reader leaves out.
pub const NOT_READ: &str = "not read";

/// Prints what is left out or changed: one line for each tensor that is left out, and one line for the rest. `file` is
/// the name of the file, if the messages must name it.
pub fn tell(losses: &Losses, file: Option<&str>, how: &str) {
    let file = file.map_or_else(String::new, |file| format!("{file}: "));
    let (tensors, others): (Vec<_>, Vec<_>) =
        losses.listed().iter().partition(|loss| loss.is_tensor());
    for tensor in tensors {
        say(&format!("{file}{how}: {tensor}"));
    }
    let more = losses.count().saturating_sub(losses.listed().len() as u64);
    match (in_short(&others, more), others.is_empty()) {
        (_, true) if more > 0 => say(&format!("{file}{how}: {more} more")),
        (_, true) => {}
        (short, false) => say(&format!("{file}{how}: {short}")),
    }
    note(losses, &file);
}

/// Returns a short description of the content of a file that is not read. `None` if all of it is read.
pub fn not_read(losses: &Losses) -> Option<String> {
    let listed: Vec<_> = losses.listed().iter().collect();
    let beyond = losses.count().saturating_sub(listed.len() as u64);
    (!listed.is_empty()).then(|| in_short(&listed, beyond))
}

/// Prints one line about content that is left out by design.
pub fn note(losses: &Losses, file: &str) {
    if !losses.notes().is_empty() && !is_quiet() {
        say(&format!("{file}note: {}", losses.notes().join("; ")));
    }
}

/// Returns the first few losses as text, and the number of the others.
fn in_short(losses: &[&Loss], beyond: u64) -> String {
    const SHOWN: usize = 3;
    let shown: Vec<String> = losses.iter().take(SHOWN).map(ToString::to_string).collect();
    let shown = shown.join("; ");
    match (losses.len().saturating_sub(SHOWN) as u64).saturating_add(beyond) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}
