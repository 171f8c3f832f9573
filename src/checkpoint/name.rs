//! File names of checkpoints, which contain step, revision and score.

use std::fmt;

const PREFIX: &str = "step-";
const EXTENSION: &str = ".tenarc";
const REVISION: &str = ".r";
const SCORE: &str = ".score-";

/// The number of digits of `u64::MAX`. With this many, names sort like steps.
const DIGITS: usize = 20;

/// If the decimal notation of a score is longer than this, the scientific one is used.
const MAX_SCORE: usize = 24;

/// The name `step-00000000000000000123.r1.score-0.25.tenarc` is the second file of step 123.
///
/// Saving a step again makes a new file with the next revision. A file thus never changes, and its sum in
/// the manifest and the score in its name stay valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    pub step: u64,
    /// The number of the file for this step. 0 is not written in the name.
    pub revision: u64,
    /// The bits of the score, so that names can be compared.
    score: Option<u64>,
}

impl Name {
    pub fn new(step: u64, revision: u64, score: Option<f64>) -> Self {
        // All NaNs have the same name, so only one of them is used.
        let bits = |score: f64| if score.is_nan() { f64::NAN } else { score }.to_bits();
        Self { step, revision, score: score.map(bits) }
    }

    pub fn score(&self) -> Option<f64> {
        self.score.map(f64::from_bits)
    }

    /// Parses a name. Returns `None` unless [`Display`](fmt::Display) writes exactly this name.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(PREFIX)?.strip_suffix(EXTENSION)?;
        let (step, rest) = rest.split_at_checked(DIGITS)?;
        let (rest, score) = match rest.split_once(SCORE) {
            Some((rest, score)) => (rest, Some(score.parse().ok()?)),
            None => (rest, None),
        };
        let revision = match rest {
            "" => 0,
            _ => rest.strip_prefix(REVISION)?.parse().ok()?,
        };
        let name = Self::new(step.parse().ok()?, revision, score);
        (name.to_string() == text).then_some(name)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{:0DIGITS$}", self.step)?;
        if self.revision != 0 {
            write!(f, "{REVISION}{}", self.revision)?;
        }
        if let Some(score) = self.score() {
            // The standard library reads both notations back exactly.
            let decimal = score.to_string();
            if decimal.len() <= MAX_SCORE {
                write!(f, "{SCORE}{decimal}")?;
            } else {
                write!(f, "{SCORE}{score:e}")?;
            }
        }
        f.write_str(EXTENSION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "slow, and nothing unsafe")]
    fn reads_back_what_it_writes() {
        let scores = [0.25, -0.0, 1e300, 1e-300, f64::MIN_POSITIVE, 0.1 + 0.2, 5e-324, f64::MAX];
        let odd = [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e15, 123_456_789.5];
        let scores = scores.into_iter().chain(odd).map(Some).chain([None]);
        for score in scores {
            for step in [0, 7, 1_000_000_000_000, u64::MAX] {
                for revision in [0, 1, 12, u64::MAX] {
                    let name = Name::new(step, revision, score);
                    let text = name.to_string();
                    assert_eq!(Name::parse(&text), Some(name), "{text}");
                    assert!(text.len() < 100, "{text}");
                }
            }
        }
        let name = Name::new(123, 1, Some(0.25)).to_string();
        assert_eq!(name, "step-00000000000000000123.r1.score-0.25.tenarc");
    }

    #[test]
    fn takes_no_other_names() {
        for text in [
            "",
            "step-.tenarc",
            "step-5.tenarc",
            "step-99999999999999999999.tenarc",
            "step-+0000000000000000005.tenarc",
            "step-0000000000000000000é.tenarc",
            "step-00000000000000000005.tenarc.bak",
            "step-00000000000000000005..tenarc",
            "step-00000000000000000005.r0.tenarc",
            "step-00000000000000000005.r01.tenarc",
            "step-00000000000000000005.r.tenarc",
            "step-00000000000000000005.r1",
            "step-00000000000000000005.score-.tenarc",
            "step-00000000000000000005.score-0.250.tenarc",
            "step-00000000000000000005.score-nan.tenarc",
            "step-00000000000000000005.score-0.5.score-0.5.tenarc",
            "step-00000000000000000005.score-0.5.r1.tenarc",
            "step-00000000000000000005/../x.tenarc",
            "../step-00000000000000000005.tenarc",
        ] {
            assert_eq!(Name::parse(text), None, "{text}");
        }
    }

    #[test]
    fn names_sort_as_steps_do() {
        let names = [0, 9, 10, 99_999_999_999_999, u64::MAX].map(|step| Name::new(step, 0, None));
        assert!(names.map(|name| name.to_string()).is_sorted());
        assert!(names.is_sorted());
    }
}
