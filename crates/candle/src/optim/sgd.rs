//! Stochastic gradient descent.

use std::collections::BTreeMap;

use candle_core::backprop::GradStore;
use candle_core::{Result, Tensor, Var};
use candle_nn::{Optimizer, VarMap};
use serde::{Deserialize, Serialize};

use super::{Bound, Vars, fitted};
use crate::CandleTensor;
use crate::var_map::sorted;

/// Stochastic gradient descent with momentum, weight decay and Nesterov's momentum, as `torch.optim.SGD` computes them.
/// Its state is saved and loaded. Without momentum and weight decay, its results are those of [`candle_nn::SGD`] bit
/// for bit.
///
/// It saves the parameters, and the velocities by the names of their variables. After loading, [`bind`](Self::bind)
/// gives the optimizer its variables. [`AdamW`](crate::AdamW) shows an example.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sgd(Bound<State>);

/// The state that is saved.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename = "Sgd")]
struct State {
    params: ParamsSgd,
    velocities: BTreeMap<String, CandleTensor>,
}

/// The parameters of [`Sgd`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParamsSgd {
    /// The learning rate.
    pub lr: f64,
    /// The share of the velocity that is kept at each step. 0 for no momentum.
    pub momentum: f64,
    /// The share of the gradient that is not added to the velocity.
    pub dampening: f64,
    /// The factor by which the variable is multiplied before it is added to its gradient.
    pub weight_decay: f64,
    /// Whether the step looks ahead, as Nesterov's method does.
    pub nesterov: bool,
}

/// A learning rate of 0.001, and nothing else.
impl Default for ParamsSgd {
    fn default() -> Self {
        Self { lr: 0.001, momentum: 0.0, dampening: 0.0, weight_decay: 0.0, nesterov: false }
    }
}

impl Sgd {
    /// An optimizer for all variables of the map that are floats.
    ///
    /// # Errors
    /// There are none at present.
    pub fn for_vars(variables: &VarMap, params: ParamsSgd) -> Result<Self> {
        Self::for_named(sorted(variables), params)
    }

    /// An optimizer for these variables. Those that are not floats are left out.
    ///
    /// # Errors
    /// If two variables have the same name.
    pub fn for_named(
        vars: impl IntoIterator<Item = (String, Var)>,
        params: ParamsSgd,
    ) -> Result<Self> {
        Ok(Self::of(Vars::named(vars)?, params))
    }

    fn of(vars: Vars, params: ParamsSgd) -> Self {
        Self(Bound::new(vars, State { params, velocities: BTreeMap::new() }))
    }

    /// Gives a loaded optimizer the variables of the map.
    ///
    /// # Errors
    /// If the state has a velocity for a variable that is not in the map, or the dtype or shape of a velocity is not
    /// that of its variable.
    pub fn bind(&mut self, variables: &VarMap) -> Result<()> {
        self.bind_named(sorted(variables))
    }

    /// Gives a loaded optimizer these variables.
    ///
    /// # Errors
    /// The same errors as [`bind`](Self::bind), and if two variables have the same name.
    pub fn bind_named(&mut self, vars: impl IntoIterator<Item = (String, Var)>) -> Result<()> {
        self.0.bind(
            vars,
            "a velocity",
            |state| &mut state.velocities,
            |stored, name, var| fitted(stored, "velocity", name, var).map(Into::into),
        )
    }

    /// The parameters.
    pub fn params(&self) -> &ParamsSgd {
        &self.0.state.params
    }

    /// Replaces the parameters. The velocities stay.
    pub fn set_params(&mut self, params: ParamsSgd) {
        self.0.state.params = params;
    }

    /// The velocity of the variable with this name. `None` if it has none yet.
    pub fn velocity(&self, name: &str) -> Option<&Tensor> {
        self.0.state.velocities.get(name).map(|velocity| &velocity.0)
    }
}

/// The methods of candle's optimizers. [`Optimizer::new`] gives the variables no names, so the result can train but
/// cannot be saved. The order of `VarMap::all_vars` differs from run to run, so positions cannot replace the names.
impl Optimizer for Sgd {
    type Config = ParamsSgd;

    fn new(vars: Vec<Var>, params: ParamsSgd) -> Result<Self> {
        Ok(Self::of(Vars::by_position(vars), params))
    }

    fn learning_rate(&self) -> f64 {
        self.0.state.params.lr
    }

    fn set_learning_rate(&mut self, lr: f64) {
        self.0.state.params.lr = lr;
    }

    fn step(&mut self, grads: &GradStore) -> Result<()> {
        let (vars, State { params, velocities }) = self.0.parts()?;
        let ParamsSgd { lr, momentum, dampening, weight_decay, nesterov } = *params;
        for (name, theta) in vars {
            let Some(grad) = grads.get(theta) else { continue };
            // Zeros are left out, as adding them could change the bits: -0.0 + 0.0 is 0.0.
            let mut direction = grad.clone();
            if weight_decay != 0.0 {
                direction = (direction + (theta.as_tensor() * weight_decay)?)?;
            }
            if momentum != 0.0 {
                let velocity = match velocities.get(name) {
                    None => direction.clone(),
                    Some(velocity) => {
                        ((&velocity.0 * momentum)? + (&direction * (1.0 - dampening))?)?
                    }
                };
                direction = if nesterov {
                    (direction + (&velocity * momentum)?)?
                } else {
                    velocity.clone()
                };
                velocities.insert(name.clone(), velocity.detach().into());
            }
            theta.set(&theta.sub(&(direction * lr)?)?)?;
        }
        Ok(())
    }
}
