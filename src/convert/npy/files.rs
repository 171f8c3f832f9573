//! Opening files.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::error::{Error, Result};

/// Opens a regular file, and says how long it is. Anything else is refused without being waited for.
pub fn open(path: &Path) -> Result<(File, u64)> {
    let failed = |error| Error::io_at(error, "cannot open", path);
    let refused = || failed(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        libc::O_NONBLOCK | libc::O_NOCTTY,
    );
    #[cfg(not(unix))]
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(refused());
    }
    let file = options.open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if found.is_file() { Ok((file, found.len())) } else { Err(refused()) }
}
