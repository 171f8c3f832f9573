//! The Adam optimizer and a random number generator. Resuming training needs the state of both.

use std::collections::BTreeMap;

use ndarray::{ArrayD, ArrayViewMutD, Zip};
use serde::{Deserialize, Serialize};
use tenarc::Tensor;

/// Adam (Kingma and Ba, 2015) with decoupled weight decay.
#[derive(Clone, Serialize, Deserialize)]
pub struct Adam {
    pub learning_rate: f32,
    pub betas: (f32, f32),
    pub epsilon: f32,
    /// `None`: no weight decay.
    pub weight_decay: Option<f32>,
    /// The number of updates so far, for the bias correction of the moments.
    pub step: u64,
    /// By parameter name. The arrays are `ArrayD`, as parameters have different ranks.
    pub moments: BTreeMap<String, Moments>,
}

/// Running means of one parameter's gradient and of its square.
#[derive(Clone, Serialize, Deserialize)]
pub struct Moments {
    pub mean: Tensor<ArrayD<f32>>,
    pub square: Tensor<ArrayD<f32>>,
}

impl Adam {
    pub fn new(learning_rate: f32, weight_decay: Option<f32>) -> Self {
        Self {
            learning_rate,
            betas: (0.9, 0.999),
            epsilon: 1e-8,
            weight_decay,
            step: 0,
            moments: BTreeMap::new(),
        }
    }

    /// Moves every parameter one step against its gradient.
    pub fn update<'p>(
        &mut self,
        parameters: impl IntoIterator<Item = (&'static str, ArrayViewMutD<'p, f32>)>,
        gradients: impl IntoIterator<Item = ArrayD<f32>>,
    ) {
        self.step += 1;
        let (b1, b2) = self.betas;
        #[allow(clippy::cast_possible_truncation)] // far fewer than 2^31 steps
        let step = self.step as i32;
        let rate = self.learning_rate * (1.0 - b2.powi(step)).sqrt() / (1.0 - b1.powi(step));
        let keep = 1.0 - self.learning_rate * self.weight_decay.unwrap_or(0.0);
        for ((name, parameter), gradient) in parameters.into_iter().zip(gradients) {
            let moments = self.moments.entry(name.to_owned()).or_insert_with(|| Moments {
                mean: ArrayD::zeros(gradient.shape()).into(),
                square: ArrayD::zeros(gradient.shape()).into(),
            });
            Zip::from(parameter)
                .and(&gradient)
                .and(&mut *moments.mean)
                .and(&mut *moments.square)
                .for_each(|p, &g, m, s| {
                    *m = b1 * *m + (1.0 - b1) * g;
                    *s = b2 * *s + (1.0 - b2) * g * g;
                    *p = keep * *p - rate * *m / (s.sqrt() + self.epsilon);
                });
        }
    }
}

/// The `SplitMix64` generator (Steele, Lea and Flood, 2014), whose state is one number.
#[derive(Clone, Serialize, Deserialize)]
pub struct Rng {
    state: u64,
}

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `0..bound`, with a bias of less than `bound / 2^64`.
    #[allow(clippy::cast_possible_truncation)] // smaller than `bound`
    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// Uniform in -1..1.
    #[allow(clippy::cast_precision_loss)] // 24 bits are what an f32 holds
    pub fn symmetric(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    }

    /// The numbers `0..len` in random order (Fisher and Yates).
    pub fn permutation(&mut self, len: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..len).collect();
        for i in (1..len).rev() {
            order.swap(i, self.below(i + 1));
        }
        order
    }
}
