#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "train")]
mod checkpointer;
mod dtype;
mod record;
mod run;
mod source;
mod store;

#[cfg(feature = "train")]
pub use checkpointer::TenarcCheckpointer;
pub use dtype::{from_burn, to_burn};
pub use record::{BurnRecord, Record};
pub use run::{resume_run, save_run, save_run_in_background, save_run_with};
pub use store::TenarcStore;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/burn.md")]
struct Guide;
