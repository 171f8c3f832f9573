//! Checkpoints that are saved while the program goes on.

use std::sync::mpsc::{Receiver, channel};

use serde::{Serialize, Serializer};
use tenarc::checkpoint::Best;

use super::{State, files, fresh, state};

#[test]
fn steps_are_saved_as_they_were() {
    let (_dir, checkpoints) = fresh();
    let checkpoints = checkpoints.with_keep_last(2).with_keep_best(1, Best::Lowest);
    let mut background = checkpoints.clone().in_background();
    let mut value = state(0);
    for step in 1..=10 {
        value.fill(step);
        let score = f64::from(u32::try_from(step).unwrap().abs_diff(3));
        background.save_scored(step, score, &value).unwrap();
    }
    background.wait().unwrap();
    assert_eq!(checkpoints.steps().unwrap(), [3, 9, 10]);
    for step in [3, 9, 10] {
        assert_eq!(checkpoints.load::<State>(step).unwrap(), state(step));
    }
    // A reader sees the last complete one.
    background.save(11, &state(11)).unwrap();
    let latest = checkpoints.latest::<State>().unwrap().unwrap();
    assert_eq!(latest.value, state(latest.step));
    assert!([10, 11].contains(&latest.step));
    drop(background);
    assert_eq!(checkpoints.latest::<State>().unwrap().unwrap().step, 11);
}

/// Can be serialized when something was received.
struct Waits(std::sync::Mutex<Receiver<()>>);

impl Serialize for Waits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.lock().unwrap().recv().ok();
        state(7).serialize(serializer)
    }
}

#[test]
fn a_step_is_skipped_or_waits_while_another_is_saved() {
    let (_dir, checkpoints) = fresh();
    let mut background = checkpoints.clone().in_background();
    let (send, receive) = channel();
    background.save_owned(7, Waits(receive.into())).unwrap();
    assert!(background.is_busy());
    assert!(!background.save_unless_busy(8, &state(8)).unwrap());
    // Nothing is received any more.
    drop(send);
    background.save(9, &state(9)).unwrap();
    background.wait().unwrap();
    assert!(background.save_unless_busy(10, &state(10)).unwrap());
    background.wait().unwrap();
    assert_eq!(checkpoints.steps().unwrap(), [7, 9, 10]);
}

#[test]
fn an_error_is_returned_by_the_next_save_and_the_old_ones_stay() {
    let (_dir, checkpoints) = fresh();
    let mut background = checkpoints.clone().in_background();
    background.save(1, &state(1)).unwrap();
    background.wait().unwrap();
    let moved = checkpoints.dir().with_extension("moved");
    std::fs::rename(checkpoints.dir(), &moved).unwrap();
    background.save(2, &state(2)).unwrap();
    background.save(3, &state(3)).unwrap_err();
    std::fs::rename(&moved, checkpoints.dir()).unwrap();
    background.wait().unwrap();
    assert_eq!(files(checkpoints.dir()).len(), 1);
    background.save(3, &state(3)).unwrap();
    background.wait().unwrap();
    assert_eq!(checkpoints.steps().unwrap(), [1, 3]);
}
