//! Decides which checkpoints are kept.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::name::Name;

/// Which scores are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Best {
    /// Low scores, such as losses.
    Lowest,
    /// High scores, such as accuracies.
    Highest,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Retention {
    pub last: Option<usize>,
    pub best: Option<(usize, Best)>,
}

impl Retention {
    /// The files among `present` that must be removed, oldest first. Never `saved`, and never the newest.
    pub fn surplus(&self, present: &BTreeSet<Name>, saved: Option<Name>) -> Vec<Name> {
        let current = current(present);
        let mut kept: BTreeSet<Name> = saved.into_iter().collect();
        if self.last.is_none() && self.best.is_none() {
            kept.extend(current.values());
        } else {
            kept.extend(current.values().rev().take(self.last.unwrap_or(1).max(1)));
        }
        if let Some((count, best)) = self.best {
            kept.extend(ranked(current.values(), best).into_iter().take(count));
        }
        present.iter().filter(|name| !kept.contains(name)).copied().collect()
    }
}

/// The valid file of each step: the one with the highest revision.
pub fn current(present: &BTreeSet<Name>) -> BTreeMap<u64, Name> {
    present.iter().map(|name| (name.step, *name)).collect()
}

/// Sorts names by score, best first. Names without a score or with NaN are left out.
pub fn ranked<'a>(names: impl Iterator<Item = &'a Name>, best: Best) -> Vec<Name> {
    let is_ranked = |name: &&Name| name.score().is_some_and(|score| !score.is_nan());
    let mut names: Vec<Name> = names.filter(is_ranked).copied().collect();
    names.sort_by(|a, b| {
        let order = match best {
            Best::Lowest => a.score().partial_cmp(&b.score()),
            Best::Highest => b.score().partial_cmp(&a.score()),
        };
        order.unwrap_or(Ordering::Equal).then(b.step.cmp(&a.step))
    });
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(scores: &[(u64, Option<f64>)]) -> BTreeSet<Name> {
        scores.iter().map(|&(step, score)| Name::new(step, 0, score)).collect()
    }

    fn gone(retention: Retention, present: &BTreeSet<Name>, saved: u64) -> Vec<u64> {
        let saved = present.iter().find(|name| name.step == saved).copied();
        retention.surplus(present, saved).iter().map(|name| name.step).collect()
    }

    #[test]
    fn keeps_the_last_the_best_and_the_one_just_saved() {
        let present = names(&[
            (1, Some(0.5)),
            (2, Some(f64::NAN)),
            (3, Some(0.1)),
            (4, None),
            (5, Some(0.5)),
        ]);
        let last = |last| Retention { last: Some(last), best: None };
        assert!(gone(Retention::default(), &present, 5).is_empty());
        assert_eq!(gone(last(2), &present, 5), [1, 2, 3]);
        assert_eq!(gone(last(2), &present, 1), [2, 3]);
        assert_eq!(gone(last(0), &present, 5), [1, 2, 3, 4]);
        assert!(gone(last(usize::MAX), &present, 5).is_empty());

        let best = |count, best| Retention { last: None, best: Some((count, best)) };
        assert_eq!(gone(best(1, Best::Lowest), &present, 5), [1, 2, 4]);
        assert_eq!(gone(best(1, Best::Highest), &present, 5), [1, 2, 3, 4]);
        assert_eq!(gone(best(9, Best::Lowest), &present, 5), [2, 4]);
        let both = Retention { last: Some(2), best: Some((2, Best::Highest)) };
        assert_eq!(gone(both, &present, 5), [2, 3]);
    }

    #[test]
    fn removes_what_a_later_revision_has_replaced() {
        let present: BTreeSet<Name> =
            [Name::new(1, 0, Some(0.0)), Name::new(1, 1, Some(9.0)), Name::new(2, 0, None)].into();
        let best = Retention { last: None, best: Some((1, Best::Lowest)) };
        for retention in [Retention::default(), best] {
            assert_eq!(retention.surplus(&present, None), [Name::new(1, 0, Some(0.0))]);
        }
    }
}
