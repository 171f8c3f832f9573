//! Optimizers whose state can be saved.

mod adamw;
mod sgd;

use std::collections::{BTreeMap, HashSet};

use candle_core::{Result, Tensor, Var, bail};
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};

pub use adamw::{AdamW, Moments};
pub use sgd::{ParamsSgd, Sgd};

/// The variables that an optimizer updates.
#[derive(Clone, Debug)]
struct Vars {
    vars: Vec<(String, Var)>,
    /// Whether the names are given by the user. If not, they are positions.
    named: bool,
}

impl Vars {
    /// Variables with names. As candle's optimizers do, leaves out those that are not floats.
    fn named(vars: impl IntoIterator<Item = (String, Var)>) -> Result<Self> {
        let vars: Vec<_> = vars.into_iter().filter(|(_, var)| var.dtype().is_float()).collect();
        let mut names = HashSet::with_capacity(vars.len());
        if let Some((name, _)) = vars.iter().find(|(name, _)| !names.insert(name)) {
            bail!("there are two variables named `{}`", name.escape_debug());
        }
        Ok(Self { vars, named: true })
    }

    fn by_position(vars: Vec<Var>) -> Self {
        let floats = vars.into_iter().filter(|var| var.dtype().is_float());
        let vars = floats.enumerate().map(|(at, var)| (at.to_string(), var)).collect();
        Self { vars, named: false }
    }

    fn get(&self, name: &str) -> Option<&Var> {
        self.vars.iter().find(|(known, _)| known == name).map(|(_, var)| var)
    }
}

/// An optimizer: its state, which is saved, and its variables.
#[derive(Clone, Debug)]
struct Bound<S> {
    /// `None` after it was loaded.
    vars: Option<Vars>,
    state: S,
}

impl<S> Bound<S> {
    fn new(vars: Vars, state: S) -> Self {
        Self { vars: Some(vars), state }
    }

    /// The variables to update, and the state.
    fn parts(&mut self) -> Result<(&[(String, Var)], &mut S)> {
        let Some(vars) = &self.vars else {
            bail!("the optimizer was loaded and has no variables yet: call `bind` first");
        };
        Ok((&vars.vars, &mut self.state))
    }

    /// Gives the optimizer other variables. `kept` returns the part of the state with an entry for each variable, and
    /// `what` names these entries in errors. `fit` checks one entry, and moves it to the device of its variable.
    fn bind<M>(
        &mut self,
        vars: impl IntoIterator<Item = (String, Var)>,
        what: &str,
        kept: impl Fn(&mut S) -> &mut BTreeMap<String, M>,
        fit: impl Fn(&M, &str, &Var) -> Result<M>,
    ) -> Result<()> {
        let vars = Vars::named(vars)?;
        let stored = kept(&mut self.state);
        let mut fitted = BTreeMap::new();
        for (name, of_var) in &*stored {
            let Some(var) = vars.get(name) else {
                bail!(
                    "the optimizer has {what} of `{}`, but there is no such variable",
                    name.escape_debug()
                );
            };
            fitted.insert(name.clone(), fit(of_var, name, var)?);
        }
        *stored = fitted;
        self.vars = Some(vars);
        Ok(())
    }
}

impl<S: Serialize> Serialize for Bound<S> {
    fn serialize<T: Serializer>(&self, serializer: T) -> std::result::Result<T::Ok, T::Error> {
        if self.vars.as_ref().is_some_and(|vars| !vars.named) {
            return Err(ser::Error::custom(
                "the optimizer has no names for its variables, so its state could be loaded into \
                 the wrong ones: make it with `for_vars` or `for_named`",
            ));
        }
        self.state.serialize(serializer)
    }
}

impl<'de, S: Deserialize<'de>> Deserialize<'de> for Bound<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        S::deserialize(deserializer).map(|state| Self { vars: None, state })
    }
}

/// Checks that a tensor of an optimizer's state, such as a moment, fits its variable. Moves it to the variable's
/// device.
fn fitted(state: &Tensor, what: &str, name: &str, var: &Var) -> Result<Tensor> {
    if state.shape() != var.shape() || state.dtype() != var.dtype() {
        bail!(
            "the optimizer's {what} of `{}` is {} {:?}, but the variable is {} {:?}",
            name.escape_debug(),
            state.dtype().as_str(),
            state.dims(),
            var.dtype().as_str(),
            var.dims()
        );
    }
    state.to_device(var.device())
}
