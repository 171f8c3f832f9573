//! Pickles of protocols 2 to 5, read as the data they are.
//!
//! A pickle is a program for a machine with a stack, whose calls of Python make it dangerous to run. Here,
//! calls that make tensors and plain containers are known by their names, and done by this code; any other one
//! gives an object of which only the name is known.

mod build;
mod global;
mod input;
mod machine;
mod object;

pub use machine::Pickle;
pub use object::{Dict, Kind, Object, Rebuilt, Value};
