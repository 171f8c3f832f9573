//! MessagePack: all kinds of values, and files of Python's packages.

mod python;
mod values;
