//! The cases that are measured: a module each, with the types, the generated data, and the rows.

#[cfg(target_os = "linux")]
pub mod cold;
pub mod compress;
pub mod load;
pub mod log;
pub mod many;
pub mod mesh;
pub mod model;
pub mod open;
pub mod records;
pub mod save;
pub mod savedata;
pub mod savegame;
#[cfg(unix)]
pub mod send;
pub mod size;
#[cfg(unix)]
pub mod slices;
pub mod table;
pub mod tiny;
pub mod updates;
