//! What is measured: one file for each kind of data, its types, how it is made up, and its rows.

pub mod log;
pub mod mesh;
pub mod model;
pub mod records;
pub mod savegame;
