#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod dtype;
mod source;
mod store;

pub use dtype::{from_burn, to_burn};
pub use store::TenarcStore;
