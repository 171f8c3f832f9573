#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod candle_tensor;
mod dtype;
mod error;
mod optim;
mod quantized;
mod run;
mod saved;
pub mod tensor;
pub mod var_map;
mod weights;

pub use candle_tensor::CandleTensor;
pub use dtype::{from_candle, to_candle};
pub use optim::{AdamW, Moments, ParamsSgd, Sgd};
pub use run::{SavedOptimizer, resume_run, save_run, save_run_in_background, save_run_with};
pub use saved::{load, load_into, save, save_with};
pub use tenarc::named::{Match, Unmatched};
pub use weights::Weights;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/candle.md")]
struct Guide;
