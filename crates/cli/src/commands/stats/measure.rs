//! Computes bounds, mean, standard deviation and histogram of elements that arrive in blocks.

use tenarc::DType;

use crate::elements::{self, Element, Numbers};

/// The smallest or the largest element, exactly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    Int(i128),
    Float(f64),
}

/// Running statistics. The real and the imaginary part of a complex element count as two numbers.
pub struct Measure {
    numbers: Numbers,
    /// The number of finite numbers.
    count: u64,
    pub zeros: u64,
    pub nan: u64,
    pub inf: u64,
    low: f64,
    high: f64,
    /// The bounds of integers. A double does not hold all integers exactly.
    exact: Option<(i128, i128)>,
    /// What the mean and the differences are multiplied by: 1, or [`SMALL`] if there are numbers from [`LARGE`] on.
    scale: f64,
    mean: f64,
    /// The sum of squared differences from the mean.
    squares: f64,
}

/// Two to the power of 400. The sum of the squares of larger numbers could exceed every double.
const LARGE: f64 = f64::from_bits((1023 + 400) << 52);

/// Two to the power of -600, which makes the largest doubles small enough. It changes no digits of large numbers.
const SMALL: f64 = f64::from_bits((1023 - 600) << 52);

impl Measure {
    pub fn new(dtype: &DType) -> Self {
        Self {
            numbers: Numbers::new(dtype),
            count: 0,
            zeros: 0,
            nan: 0,
            inf: 0,
            low: f64::INFINITY,
            high: f64::NEG_INFINITY,
            exact: None,
            scale: 1.0,
            mean: 0.0,
            squares: 0.0,
        }
    }

    pub fn block(&mut self, block: &[u8]) {
        let mut numbers = std::mem::replace(&mut self.numbers, Numbers::new(&DType::U8));
        let (dtype, size) = (numbers.dtype().clone(), numbers.size());
        let is_integer = elements::is_integer(&dtype);
        numbers.block(block, &mut |bytes, values| {
            if is_integer {
                self.bounds_of(&dtype, bytes, size);
            }
            self.step(values);
        });
        self.numbers = numbers;
    }

    fn bounds_of(&mut self, dtype: &DType, bytes: &[u8], size: usize) {
        for bytes in bytes.chunks_exact(size) {
            let value = match elements::decode(dtype, bytes) {
                Some(Element::Int(value)) => value,
                Some(Element::Bool(value)) => value.into(),
                _ => continue,
            };
            let (low, high) = self.exact.unwrap_or((value, value));
            self.exact = Some((low.min(value), high.max(value)));
        }
    }

    /// Adds some numbers. It computes their mean and squared differences, and combines these with the totals
    /// (Chan and others, 1979). That is more accurate than one running sum, and needs no division per
    /// number.
    #[allow(clippy::cast_precision_loss, clippy::float_cmp)]
    fn step(&mut self, values: &[f64]) {
        let (mut count, mut sum) = (0u64, 0.0);
        for &value in values {
            if value.is_finite() {
                count += 1;
                sum += value;
                self.zeros += u64::from(value == 0.0);
                self.low = self.low.min(value);
                self.high = self.high.max(value);
            } else if value.is_nan() {
                self.nan += 1;
            } else {
                self.inf += 1;
            }
        }
        if count == 0 {
            return;
        }
        if self.scale == 1.0 && self.low.abs().max(self.high.abs()) >= LARGE {
            self.scale = SMALL;
            self.mean *= SMALL;
            self.squares = self.squares * SMALL * SMALL;
        }
        let scale = self.scale;
        let finite = values.iter().filter(|value| value.is_finite()).map(|value| value * scale);
        if scale != 1.0 {
            sum = finite.clone().sum();
        }
        let mean = sum / count as f64;
        let squares: f64 = finite.map(|value| (value - mean) * (value - mean)).sum();
        let total = self.count + count;
        let between = mean - self.mean;
        let weight = count as f64 / total as f64;
        self.squares += squares + between * between * self.count as f64 * weight;
        self.mean += between * weight;
        self.count = total;
    }

    /// Returns the smallest and the largest finite element.
    pub fn bounds(&self) -> (Option<Bound>, Option<Bound>) {
        match self.exact {
            Some((low, high)) => (Some(Bound::Int(low)), Some(Bound::Int(high))),
            None if self.count == 0 => (None, None),
            None => (Some(Bound::Float(self.low)), Some(Bound::Float(self.high))),
        }
    }

    pub fn mean(&self) -> Option<f64> {
        // Rounding must not lead out of the bounds, and to infinity.
        (self.count > 0).then(|| (self.mean / self.scale).clamp(self.low, self.high))
    }

    /// Returns the population standard deviation of the finite elements, like numpy's `std`.
    #[allow(clippy::cast_precision_loss)]
    pub fn std(&self) -> Option<f64> {
        let scaled = (self.squares / self.count as f64).sqrt();
        (self.count > 0).then(|| (scaled / self.scale).min(f64::MAX))
    }
}

/// A histogram: how many elements are in each of some equal ranges from the smallest to the largest.
pub struct Bins {
    numbers: Numbers,
    low: f64,
    width: f64,
    counts: Vec<u64>,
}

impl Bins {
    /// Creates a histogram of this many ranges. Without finite elements, it has none.
    pub fn new(measure: &Measure, ranges: u16) -> Self {
        let count = f64::from(ranges);
        let bins = if measure.count == 0 { 0 } else { ranges };
        Self {
            numbers: Numbers::new(measure.numbers.dtype()),
            low: measure.low,
            // The bounds are divided before subtracting, because the difference of two large doubles may overflow.
            width: measure.high / count - measure.low / count,
            counts: vec![0; bins.into()],
        }
    }

    pub fn is_needed(&self) -> bool {
        !self.counts.is_empty()
    }

    pub fn block(&mut self, block: &[u8]) {
        let (low, width) = (self.low, self.width);
        let counts = &mut self.counts;
        self.numbers.block(block, &mut |_, values| {
            for value in values.iter().filter(|value| value.is_finite()) {
                // The numbers are divided before subtracting, because `value - low` may overflow.
                let place = value / width - low / width;
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                let at = (place.max(0.0) as usize).min(counts.len().saturating_sub(1));
                if let Some(count) = counts.get_mut(at) {
                    *count += 1;
                }
            }
        });
    }

    pub fn counts(self) -> Vec<u64> {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(values: &[f64], step: usize) -> (Measure, Vec<u64>) {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let mut measure = Measure::new(&DType::F64);
        bytes.chunks(step).for_each(|block| measure.block(block));
        let mut bins = Bins::new(&measure, 12);
        bytes.chunks(step).for_each(|block| bins.block(block));
        (measure, bins.counts())
    }

    #[test]
    fn measures_blocks_of_any_size_alike() {
        let values: Vec<f64> = (0..5000).map(|at| f64::from(at) + 1e9).collect();
        for step in [7, 8, 8192, 1 << 20] {
            let (measure, bins) = measured(&values, step);
            assert_eq!(
                measure.bounds(),
                (Some(Bound::Float(1e9)), Some(Bound::Float(1e9 + 4999.0)))
            );
            assert!((measure.mean().unwrap() - 1_000_002_499.5).abs() < 1e-6);
            // The variance of n numbers in a row is (n² - 1) / 12.
            let expected = ((5000.0f64 * 5000.0 - 1.0) / 12.0).sqrt();
            assert!((measure.std().unwrap() - expected).abs() < 1e-6);
            assert_eq!(bins.iter().sum::<u64>(), 5000);
            assert!(bins.iter().all(|&count| (416..=418).contains(&count)), "{bins:?}");
        }
    }

    #[test]
    fn counts_nan_and_infinities_separately() {
        let values = [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 4.0];
        let (measure, bins) = measured(&values, 8);
        assert_eq!((measure.zeros, measure.nan, measure.inf), (2, 1, 2));
        assert_eq!(measure.bounds(), (Some(Bound::Float(0.0)), Some(Bound::Float(4.0))));
        assert_eq!((bins[0], bins[11]), (2, 1));
        let (measure, bins) = measured(&[f64::NAN], 8);
        assert_eq!((measure.mean(), measure.bounds(), bins.len()), (None, (None, None), 0));
    }

    #[test]
    fn the_largest_doubles_have_a_mean_and_a_deviation() {
        for step in [8, 1 << 20] {
            let (measure, _) = measured(&[1e300; 1000], step);
            assert_eq!(measure.mean(), Some(1e300));
            assert!(measure.std().unwrap() < 1e287, "{:?}", measure.std());
            // The small number is in a block of its own.
            let (measure, _) = measured(&[3.0, 1e200, -1e200, 1e200, -1e200], step);
            assert!(measure.mean().unwrap().abs() < 1e185, "{:?}", measure.mean());
            let std = measure.std().unwrap() / 0.8f64.sqrt();
            assert!((std / 1e200 - 1.0).abs() < 1e-12, "{std}");
            let (measure, _) = measured(&[f64::MAX, f64::MAX, f64::MIN, f64::MIN], step);
            assert!(measure.std().unwrap() >= 0.999 * f64::MAX);
            assert!(measure.mean().unwrap().is_finite());
        }
    }

    #[test]
    fn takes_bounds_at_the_ends_of_the_range() {
        let (_, bins) = measured(&[f64::MIN, 0.0, f64::MAX], 8);
        assert_eq!((bins[0], bins[6], bins[11]), (1, 1, 1));
        let (measure, bins) = measured(&[3.0; 5], 8);
        assert_eq!((measure.std(), bins[0]), (Some(0.0), 5));
        let mut measure = Measure::new(&DType::I64);
        measure.block(&[i64::MIN.to_le_bytes(), i64::MAX.to_le_bytes()].concat());
        let ends = (Some(Bound::Int(i64::MIN.into())), Some(Bound::Int(i64::MAX.into())));
        assert_eq!(measure.bounds(), ends);
    }
}
