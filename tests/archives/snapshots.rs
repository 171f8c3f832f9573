//! Copies of values, which are saved later and on other threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};

use serde::{Serialize, Serializer};
use tenarc::Tensor;
use tenarc::archive::{Background, Compression, SaveOptions, Snapshot};
use tenarc::error::Category;

use super::support::{Dir, Model, model, to_bytes, variants, weights};

#[derive(Serialize)]
struct Row {
    id: u32,
    name: String,
    place: Option<[f32; 2]>,
}

#[test]
fn a_snapshot_is_saved_as_the_value_is() {
    let rows = |count: u32| -> Vec<Row> {
        let place = |id: u32| (!id.is_multiple_of(3)).then_some([id as f32; 2]);
        let row = |id| Row { id, name: format!("row {}", id % 7), place: place(id) };
        (0..count).map(row).collect()
    };
    let mut options = variants();
    options.extend([
        ("lz4", SaveOptions::default().with_compression(Compression::lz4())),
        (
            "some compressed",
            SaveOptions::default().with_compression_by(|tensor| {
                tensor.path().contains("weight").then(Compression::lz4)
            }),
        ),
        ("statistics", SaveOptions::default().with_statistics(true)),
        ("no columns", SaveOptions::default().with_columns(false)),
        ("notes, short chunks", SaveOptions::default().with_note("a", "b").with_chunk_len(1 << 16)),
    ]);
    for (name, options) in options {
        let check = |value: &dyn erased::Save| {
            let snapshot = value.copy(&options);
            assert!(value.bytes(options.clone()) == to_bytes(&snapshot, options.clone()), "{name}");
            // A copy of a copy, too.
            let again = Snapshot::new(&snapshot, &options).unwrap();
            assert!(value.bytes(options.clone()) == to_bytes(&again, options.clone()), "{name}");
        };
        check(&model());
        check(&rows(0));
        check(&rows(5000));
        check(&7);
        if name == "default" {
            // Several groups of rows, and several pieces of memory.
            check(&(rows(70_000), weights(5 << 20, 1), "text"));
        }
    }
}

/// Values of any type.
mod erased {
    use super::*;

    pub trait Save {
        fn copy(&self, options: &SaveOptions) -> Snapshot;
        fn bytes(&self, options: SaveOptions) -> Vec<u8>;
    }

    impl<T: Serialize> Save for T {
        fn copy(&self, options: &SaveOptions) -> Snapshot {
            Snapshot::new(self, options).unwrap()
        }

        fn bytes(&self, options: SaveOptions) -> Vec<u8> {
            to_bytes(self, options)
        }
    }
}

#[test]
fn what_changes_after_a_snapshot_is_not_saved() {
    let dir = Dir::new();
    let path = dir.file("model.tenarc");
    let mut background = Background::default();
    let before = model();
    let mut value = before.clone();
    background.save(&path, &value, SaveOptions::default()).unwrap();
    value.curve[0] = -1.0;
    value.layers[1].weight[7] = -1.0;
    background.wait().unwrap();
    assert_eq!(tenarc::load::<Model>(&path).unwrap(), before);
    background.save(&path, &value, SaveOptions::default()).unwrap();
    drop(background);
    assert_eq!(tenarc::load::<Model>(&path).unwrap(), value);
}

#[test]
fn an_error_is_returned_by_the_next_call() {
    let dir = Dir::new();
    let missing = dir.file("missing").join("model.tenarc");
    let mut background = Background::default();
    for next in [
        |background: &mut Background| background.wait(),
        |background: &mut Background| background.start(|| Ok(())),
        |background: &mut Background| background.save("never", &1, SaveOptions::default()),
    ] {
        background.save(&missing, &weights(10, 1), SaveOptions::default()).unwrap();
        let error = next(&mut background).unwrap_err();
        assert_eq!(error.category(), Category::Io, "{error}");
        background.wait().unwrap();
    }
    // A value that cannot be saved is an error at once.
    struct Fails;
    impl Serialize for Fails {
        fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("it fails"))
        }
    }
    let error = background.save(&missing, &Fails, SaveOptions::default()).unwrap_err();
    assert!(error.to_string().contains("it fails"), "{error}");
    background.wait().unwrap();
    background.start(|| panic!("a panic")).unwrap();
    let wait = std::panic::AssertUnwindSafe(|| background.wait());
    std::panic::catch_unwind(wait).unwrap_err();
    background.wait().unwrap();
}

#[test]
fn one_save_is_in_progress_at_a_time() {
    let mut background = Background::default();
    assert!(!background.is_busy());
    let (barrier, ended) = (Arc::new(Barrier::new(2)), Arc::new(AtomicBool::new(false)));
    let (other, end) = (barrier.clone(), ended.clone());
    let wait = move || {
        other.wait();
        end.store(true, Ordering::SeqCst);
        Ok(())
    };
    background.start(wait).unwrap();
    assert!(background.is_busy());
    barrier.wait();
    let end = ended.clone();
    let check = move || {
        assert!(end.load(Ordering::SeqCst));
        Ok(())
    };
    background.start(check).unwrap();
    background.wait().unwrap();
    assert!(!background.is_busy());
}

#[test]
fn a_snapshot_takes_the_memory_of_the_value() {
    let value = Tensor(vec![1.0f32; 10 << 20]);
    let snapshot = Snapshot::new(&value, &SaveOptions::default()).unwrap();
    assert!((40 << 20..41 << 20).contains(&snapshot.byte_len()));
}
