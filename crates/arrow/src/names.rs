//! Names of fields, which are kept until the process ends.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use tenarc::{Error, Result};

static NAMES: Mutex<Kept> = Mutex::new(Kept { names: None, bytes: 0 });

struct Kept {
    names: Option<HashSet<&'static str>>,
    bytes: usize,
}

/// The number of bytes that the names of all files may take in a process.
const MOST: usize = 16 << 20;

/// Returns a name with the lifetime `'static`, for structs whose fields are only known when a program runs. serde needs
/// it, because names of fields are usually part of a program's code. Each name is kept once and never freed.
///
/// # Errors
/// If all names together would take more than 16 MiB.
pub fn static_name(name: &str) -> Result<&'static str> {
    let mut kept = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let Kept { names, bytes } = &mut *kept;
    let names = names.get_or_insert_default();
    if let Some(known) = names.get(name) {
        return Ok(known);
    }
    // 64 bytes are counted for the entry in the set.
    *bytes = bytes.saturating_add(name.len() + 64);
    if *bytes > MOST {
        return Err(Error::limit(format!("names of fields take more than {MOST} bytes")));
    }
    let name: &'static str = Box::leak(name.into());
    names.insert(name);
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once() {
        let first = static_name("a name that no other test has").unwrap();
        let again = static_name(&String::from("a name that no other test has")).unwrap();
        assert!(std::ptr::eq(first, again));
    }
}
