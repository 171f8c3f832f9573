//! Optimizers whose state can be saved.

mod adamw;
mod sgd;

use std::collections::HashSet;

use candle_core::{Result, Tensor, Var, bail};

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

/// The variables of an optimizer. `None` after it was loaded.
fn bound(vars: Option<&Vars>) -> Result<&Vars> {
    let Some(vars) = vars else {
        bail!("the optimizer was loaded and has no variables yet: call `bind` first");
    };
    Ok(vars)
}

/// What the error is if an optimizer without names of variables is saved.
const UNNAMED: &str = "the optimizer has no names for its variables, so its state could be loaded into \
                       the wrong ones: make it with `for_vars` or `for_named`";

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
