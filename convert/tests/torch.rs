//! Files of torch: read as torch reads them, and never run.
// Sample values are small numbers made from an index, and floats come back bit for bit.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::float_cmp
)]

#[path = "torch/conversions.rs"]
mod conversions;
#[path = "torch/fixtures.rs"]
mod fixtures;
#[path = "torch/hostile.rs"]
mod hostile;
#[path = "torch/layouts.rs"]
mod layouts;
#[path = "torch/memory.rs"]
mod memory;
#[path = "../../tests/common/peak.rs"]
mod peak;
#[path = "torch/pickles.rs"]
mod pickles;
#[path = "torch/support.rs"]
mod support;
#[path = "torch/zips.rs"]
mod zips;
