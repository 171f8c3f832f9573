//! Pickles of protocols 2 to 5, read as the data they are.
//!
//! A pickle is a program for a machine with a stack, whose calls of Python make it dangerous to run. Here,
//! calls that make tensors and plain containers are known by their names, and done by this code. Any other call is kept as
//! data: the name of the function, and its arguments.

mod build;
mod global;
mod input;
mod machine;
mod numpy;
mod object;
mod parts;

pub use machine::{Machine, Pickle};
pub use object::{At, Dict, Instance, Lost, Object, Origin, Rebuilt, Signs, Value};
