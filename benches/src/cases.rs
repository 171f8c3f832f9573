//! What is measured: one file for each kind of data, its types, how it is made up, and its rows.

pub mod load;
pub mod log;
pub mod mesh;
pub mod model;
pub mod open;
pub mod records;
pub mod save;
pub mod savegame;
#[cfg(unix)]
pub mod send;
pub mod size;
