//! `AdamW`.

use std::collections::BTreeMap;

use candle_core::backprop::GradStore;
use candle_core::{Result, Tensor, Var};
use candle_nn::{Optimizer, ParamsAdamW, VarMap};
use serde::{Deserialize, Serialize};

use super::{Bound, Vars, fitted};
use crate::var_map::sorted;

/// `AdamW`, with the same results as [`candle_nn::AdamW`] bit for bit, and with a state that is saved and loaded.
///
/// candle's own optimizer keeps its moments private, so a training run that uses it cannot be resumed exactly. This one
/// can be a field of a checkpoint. It saves the number of steps, the parameters, and the moments by the names of their
/// variables. After loading, [`bind`](Self::bind) gives the optimizer its variables.
///
/// ```
/// use candle_core::{DType, Device, Tensor};
/// use candle_nn::{Init, Optimizer, ParamsAdamW, VarMap};
/// use serde::{Deserialize, Serialize};
/// use tenarc_candle::AdamW;
///
/// #[derive(Serialize, Deserialize)]
/// struct Checkpoint {
///     #[serde(with = "tenarc_candle::var_map")]
///     model: VarMap,
///     optimizer: AdamW,
/// }
///
/// let model = VarMap::new();
/// let weight = model.get(3, "weight", Init::Const(1.0), DType::F32, &Device::Cpu)?;
/// let optimizer = AdamW::for_vars(&model, ParamsAdamW::default())?;
/// let mut run = Checkpoint { model, optimizer };
/// run.optimizer.backward_step(&weight.sqr()?.sum_all()?)?;
///
/// let bytes = tenarc::to_vec(&run)?;
/// let mut resumed: Checkpoint = tenarc::from_slice(&bytes)?;
/// resumed.optimizer.bind(&resumed.model)?;
/// assert_eq!(resumed.optimizer.step_count(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AdamW(Bound<State>);

/// The state that is saved.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename = "AdamW")]
struct State {
    step: u64,
    #[serde(with = "Params")]
    params: ParamsAdamW,
    moments: BTreeMap<String, Moments>,
}

/// candle's parameters, to which serde's traits cannot be added here.
#[derive(Serialize, Deserialize)]
#[serde(remote = "ParamsAdamW")]
struct Params {
    lr: f64,
    beta1: f64,
    beta2: f64,
    eps: f64,
    weight_decay: f64,
}

/// The moments of one variable: running means of its gradient and of the square of its gradient.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Moments {
    /// The mean of the gradient.
    #[serde(with = "crate::tensor")]
    pub first: Tensor,
    /// The mean of the square of the gradient.
    #[serde(with = "crate::tensor")]
    pub second: Tensor,
}

impl AdamW {
    /// An optimizer for all variables of the map that are floats.
    ///
    /// # Errors
    /// There are none at present.
    pub fn for_vars(variables: &VarMap, params: ParamsAdamW) -> Result<Self> {
        Self::for_named(sorted(variables), params)
    }

    /// An optimizer for these variables. Those that are not floats are left out.
    ///
    /// # Errors
    /// If two variables have the same name.
    pub fn for_named(
        vars: impl IntoIterator<Item = (String, Var)>,
        params: ParamsAdamW,
    ) -> Result<Self> {
        Ok(Self::of(Vars::named(vars)?, params))
    }

    fn of(vars: Vars, params: ParamsAdamW) -> Self {
        Self(Bound::new(vars, State { step: 0, params, moments: BTreeMap::new() }))
    }

    /// Gives a loaded optimizer the variables of the map.
    ///
    /// # Errors
    /// If the state has moments for a variable that is not in the map, or the dtype or shape of moments is not that of
    /// their variable.
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
            "moments",
            |state| &mut state.moments,
            |stored, name, var| {
                let first = fitted(&stored.first, "first moment", name, var)?;
                let second = fitted(&stored.second, "second moment", name, var)?;
                Ok(Moments { first, second })
            },
        )
    }

    /// The parameters.
    pub fn params(&self) -> &ParamsAdamW {
        &self.0.state.params
    }

    /// Replaces the parameters. The moments stay.
    pub fn set_params(&mut self, params: ParamsAdamW) {
        self.0.state.params = params;
    }

    /// The number of steps so far.
    pub fn step_count(&self) -> u64 {
        self.0.state.step
    }

    /// The moments by the names of the variables. A variable that has had no gradient yet has none.
    pub fn moments(&self) -> &BTreeMap<String, Moments> {
        &self.0.state.moments
    }
}

/// The methods of candle's optimizers. [`Optimizer::new`] gives the variables no names, so the result can train but
/// cannot be saved. The order of `VarMap::all_vars` differs from run to run, so positions cannot replace the names.
impl Optimizer for AdamW {
    type Config = ParamsAdamW;

    fn new(vars: Vec<Var>, params: ParamsAdamW) -> Result<Self> {
        Ok(Self::of(Vars::by_position(vars), params))
    }

    fn learning_rate(&self) -> f64 {
        self.0.state.params.lr
    }

    fn set_learning_rate(&mut self, lr: f64) {
        self.0.state.params.lr = lr;
    }

    /// The same operations in the same order as candle's, so that every bit of the result is the same.
    fn step(&mut self, grads: &GradStore) -> Result<()> {
        let (vars, State { step, params, moments }) = self.0.parts()?;
        *step += 1;
        let ParamsAdamW { lr, beta1, beta2, eps, weight_decay } = *params;
        let power = i32::try_from(*step).unwrap_or(i32::MAX);
        let scale_m = 1.0 / (1.0 - beta1.powi(power));
        let scale_v = 1.0 / (1.0 - beta2.powi(power));
        for (name, theta) in vars {
            let Some(grad) = grads.get(theta) else { continue };
            if !moments.contains_key(name) {
                let zeros = theta.zeros_like()?.detach();
                moments.insert(name.clone(), Moments { first: zeros.clone(), second: zeros });
            }
            let Some(of_var) = moments.get_mut(name) else { continue };
            let first = ((&of_var.first * beta1)? + (grad * (1.0 - beta1))?)?;
            let second = ((&of_var.second * beta2)? + (grad.sqr()? * (1.0 - beta2))?)?;
            let m_hat = (&first * scale_m)?;
            let v_hat = (&second * scale_v)?;
            let next = (theta.as_tensor() * (1.0 - lr * weight_decay))?;
            let adjusted = (m_hat / (v_hat.sqrt()? + eps)?)?;
            let next = (next - (adjusted * lr)?)?;
            // Detached, so that the moments do not keep the graphs of earlier steps, whatever the gradients are.
            *of_var = Moments { first: first.detach(), second: second.detach() };
            theta.set(&next)?;
        }
        Ok(())
    }
}
