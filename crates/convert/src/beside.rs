//! Names of files that are in the same directory as the file that names them, or below.

use tenarc::{Error, Result};

/// The names of devices on Windows, which remain devices if an extension is added.
const DEVICES: [&str; 22] = [
    "CON", "PRN", "AUX", "NUL", "COM1", "COM2", "COM3", "COM4", "COM5", "COM6", "COM7", "COM8",
    "COM9", "LPT1", "LPT2", "LPT3", "LPT4", "LPT5", "LPT6", "LPT7", "LPT8", "LPT9",
];

/// Checks that a name from a file is that of another file in the same directory, or below, on every operating system.
/// `what` is the kind of the other file, for messages.
pub fn check(what: &str, name: &str) -> Result<()> {
    let is_device = |step: &str| {
        let stem = step.split('.').next().unwrap_or_default().trim_end();
        DEVICES.iter().any(|device| device.eq_ignore_ascii_case(stem))
    };
    let mut steps = name.split('/');
    let wrong = if name.contains(['\\', ':']) || steps.clone().any(|step| step == "..") {
        "can lead out of the directory"
    } else if steps.clone().any(|step| step.is_empty() || step == ".") {
        "is not a file name"
    } else if name.contains(char::is_control) {
        "has control characters"
    } else if steps.any(is_device) {
        "is the name of a device"
    } else {
        return Ok(());
    };
    let shown: String = name.chars().take(128).collect();
    Err(Error::data(format!("the {what} name `{}` {wrong}", shown.escape_debug())))
}
