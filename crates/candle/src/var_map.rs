//! Fields that are candle's `VarMap`s: `#[serde(with = "tenarc_candle::var_map")]`.
//!
//! ```
//! use candle_core::{DType, Device};
//! use candle_nn::{Init, VarMap};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Checkpoint {
//!     step: u64,
//!     #[serde(with = "tenarc_candle::var_map")]
//!     model: VarMap,
//! }
//!
//! let model = VarMap::new();
//! model.get((2, 3), "fc.weight", Init::Const(0.5), DType::F32, &Device::Cpu)?;
//! let bytes = tenarc::to_vec(&Checkpoint { step: 7, model })?;
//!
//! let checkpoint: Checkpoint = tenarc::from_slice(&bytes)?;
//! let vars = checkpoint.model.data().lock().unwrap();
//! assert_eq!(vars["fc.weight"].dims(), [2, 3]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The variables are written as a map from names to tensors, sorted by name: equal variables make equal bytes. The
//! map that is read is a new one, with variables on the CPU. [`load_into`](crate::load_into) loads into a map that
//! a model uses already.

use std::collections::HashMap;
use std::fmt;
use std::sync::{MutexGuard, PoisonError};

use candle_core::Var;
use candle_nn::VarMap;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserializer, Serializer};

use crate::candle_tensor::{CandleTensor, CandleVar};

/// Writes the variables as a map from names to tensors.
///
/// # Errors
/// If the serializer fails, or the dtype of a variable is one that tenarc does not have.
pub fn serialize<S: Serializer>(variables: &VarMap, serializer: S) -> Result<S::Ok, S::Error> {
    let sorted = sorted(variables);
    let mut map = serializer.serialize_map(Some(sorted.len()))?;
    for (name, var) in &sorted {
        map.serialize_entry(name, &CandleTensor(var.as_tensor().clone()))?;
    }
    map.end()
}

/// Reads a map from names to tensors as a new `VarMap`.
///
/// # Errors
/// If there is no such map, two tensors have the same name, or candle does not have the dtype of one.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<VarMap, D::Error> {
    deserializer.deserialize_map(Variables)
}

struct Variables;

impl<'de> Visitor<'de> for Variables {
    type Value = VarMap;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of tensors by name")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<VarMap, M::Error> {
        let variables = VarMap::new();
        while let Some(name) = map.next_key::<String>()? {
            let tensor = map.next_value::<tenarc::Tensor<CandleVar>>()?;
            let CandleVar(var) = tensor.into_inner();
            if lock(&variables).insert(name.clone(), var).is_some() {
                let name = name.escape_debug();
                return Err(M::Error::custom(format!("there are two tensors named `{name}`")));
            }
        }
        Ok(variables)
    }
}

/// All variables, sorted by name. They share their memory with those in the map.
pub fn sorted(variables: &VarMap) -> Vec<(String, Var)> {
    let mut sorted: Vec<(String, Var)> =
        lock(variables).iter().map(|(name, var)| (name.clone(), var.clone())).collect();
    sorted.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    sorted
}

pub(crate) fn lock(variables: &VarMap) -> MutexGuard<'_, HashMap<String, Var>> {
    // Another thread that panicked cannot have left a variable half inserted.
    variables.data().lock().unwrap_or_else(PoisonError::into_inner)
}
