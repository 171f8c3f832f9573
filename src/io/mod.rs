//! Reading and writing bytes: sources that are read at positions, and files that are written atomically.

pub(crate) mod aligned;
pub(crate) mod at;
pub(crate) mod atomic;
pub(crate) mod buffers;
pub(crate) mod checksum;
pub(crate) mod chunks;
pub(crate) mod compressed;
pub(crate) mod direct;
pub(crate) mod input;
pub(crate) mod lock;
pub(crate) mod parallel;
pub(crate) mod read_ahead;
pub(crate) mod sink;
pub(crate) mod source;

pub use crate::mem::shared_bytes::SharedBytes;
pub use at::{ReadAt, open_file};
pub use atomic::{AtomicFile, SyncLevel};
pub use direct::DirectFile;
pub use read_ahead::{ReadAhead, Requests};

pub use crate::mem::MappedFile;
