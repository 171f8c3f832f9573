//! Values that are written one after the other to a stream are read from it in the same order, over
//! files, pipes, sockets and shared memory, compressed and encrypted. Where the stream or a value
//! fails, the error says so.

mod messages;
mod transports;
mod value_after_value;
