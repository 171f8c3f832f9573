//! Reads pickles of protocols 2 to 5 as data.
//!
//! A pickle is a program for a stack machine. It is dangerous to run in Python, because it can call any function. Here,
//! calls that make tensors and plain containers are recognised by the names of their functions, and this code does
//! their work. Any other call is kept as data: the name of the function, and its arguments.

mod build;
mod global;
mod heap;
mod input;
mod machine;
mod numpy;
mod object;
mod parts;
mod storage;
mod tensor;

pub use global::{Meaning, dtype_names};
pub use heap::{Heap, sizes};
pub use machine::{Machine, Pickle};
pub use object::{Dict, Instance, Lost, Object, Origin, Value, lost, object};
pub use storage::{At, Kind, Rebuilt, Signs, Storage};
