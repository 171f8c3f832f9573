//! Where bytes come from and go to: sources that are read at positions, files that appear whole.

pub(crate) mod at;
pub(crate) mod atomic;
pub(crate) mod buffers;
pub(crate) mod checksum;
pub(crate) mod lock;
pub(crate) mod shared;
pub(crate) mod sink;
pub(crate) mod source;

pub use at::{ReadAt, open_file};
pub use atomic::{AtomicFile, SyncLevel};
pub use shared::SharedBytes;

pub use crate::mem::MappedFile;
