//! The names of the files of a model with an index.

use tenarc::{Error, Result};

/// The end of the name of every index.
const INDEX: &str = ".safetensors.index.json";

/// The names of devices on Windows, which remain devices if an extension is added.
const DEVICES: [&str; 22] = [
    "CON", "PRN", "AUX", "NUL", "COM1", "COM2", "COM3", "COM4", "COM5", "COM6", "COM7", "COM8",
    "COM9", "LPT1", "LPT2", "LPT3", "LPT4", "LPT5", "LPT6", "LPT7", "LPT8", "LPT9",
];

/// Checks that a name from an index is that of a file in the directory of the index, on every operating system.
pub fn check(name: &str) -> Result<()> {
    let stem = name.split('.').next().unwrap_or_default().trim_end();
    let wrong = if name.is_empty() || name == "." || name == ".." {
        "is not a file name"
    } else if name.contains(['/', '\\', ':']) {
        "can lead out of the directory of the index"
    } else if name.contains(char::is_control) {
        "has control characters"
    } else if DEVICES.iter().any(|device| device.eq_ignore_ascii_case(stem)) {
        "is the name of a device"
    } else {
        return Ok(());
    };
    let shown: String = name.chars().take(128).collect();
    Err(Error::data(format!("the shard name `{}` {wrong}", shown.escape_debug())))
}

/// Returns the first part of the name of an index: `model` for `model.safetensors.index.json`.
pub fn stem_of_index(name: &str) -> Result<&str> {
    name.strip_suffix(INDEX).filter(|stem| !stem.is_empty()).ok_or_else(|| {
        let name = name.escape_debug();
        Error::data(format!(
            "expected the name of an index, such as `model.safetensors.index.json`, found `{name}`"
        ))
    })
}

/// Returns the name of a file of a model, such as `model-00001-of-00002.safetensors`. Numbers start at 1.
pub fn of_shard(stem: &str, number: usize, count: usize) -> String {
    format!("{stem}-{number:05}-of-{count:05}.safetensors")
}
