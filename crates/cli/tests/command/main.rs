//! The command `tenarc`, as a program: one test binary, because linking one for each page takes longer than the tests.
#![allow(missing_docs, clippy::cast_precision_loss, clippy::cast_possible_truncation)]

mod support;

mod change;
mod check;
mod checkpoints;
mod columns;
mod columns_kept;
mod compressed;
mod detection;
mod direct;
mod first_page;
mod formats;
mod groups;
mod hostile;
mod in_place;
mod look;
#[cfg(target_os = "linux")]
mod outputs;
mod plot;
#[cfg(unix)]
mod programs;
mod several;
mod shared_names;
#[cfg(target_os = "linux")]
mod steps;
mod tables;
mod unchecked;
mod view;
mod where_rows;
