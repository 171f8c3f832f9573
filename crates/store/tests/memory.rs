//! How much memory saving and loading take beside the value, on a system that tells the most that a process has taken.

#![cfg(target_os = "linux")]
#![allow(clippy::cast_precision_loss)]

mod support;

use std::fs;
use std::time::Duration;

use tenarc::{OArchive, Tensor};
use tenarc_store::Store;

use self::support::Trial;

const MIB: usize = 1 << 20;
/// Threads, and what an allocator keeps.
const BESIDE: usize = 24 * MIB;

/// A number of bytes that the system tells of this process.
fn told(name: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

/// What is returned, and the most memory that was taken meanwhile.
async fn most<T>(work: impl Future<Output = T>) -> (T, usize) {
    // The most so far is forgotten.
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = told("VmRSS:");
    let result = work.await;
    (result, told("VmHWM:").saturating_sub(before))
}

/// One test, so that no other one takes memory at the same time.
#[test]
#[ignore = "takes a minute and 2 GiB"]
fn saves_and_loads_take_bounded_memory() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let dir = std::env::temp_dir().join(format!("tenarc-store-memory-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let files = Store::open(url::Url::from_file_path(&dir).unwrap().as_str()).unwrap();
    runtime.block_on(async {
        // Parts wait long enough that as many as may be are in memory.
        let slow = Trial::new();
        slow.set(|settings| {
            settings.forgets = true;
            settings.wait = Duration::from_secs(2);
        });
        let store = Store::of_objects(std::sync::Arc::new(slow), "");
        let values: Vec<_> = (0..20u8).map(|n| Tensor(vec![f32::from(n); 4 * MIB])).collect();
        let (saved, taken) = most(store.save("model.tenarc", &values)).await;
        saved.unwrap();
        println!("a save of 320 MiB in parts: {} MiB", taken / MIB);
        assert!(taken > 64 * MIB && taken < 8 * 16 * MIB + BESIDE, "{} MiB", taken / MIB);

        // Long tensors, and many short ones.
        for (count, len) in [(2, 75 * MIB), (600, MIB / 4)] {
            let writer = files.writer("model.tenarc");
            let written = tokio::task::spawn_blocking(move || {
                let mut out = OArchive::new(writer).unwrap();
                let tensor = Tensor(vec![0.5f32; len]);
                out.save(&vec![&tensor; count]).unwrap();
                out.finish().unwrap().finish().unwrap();
            });
            written.await.unwrap();
            let (value, taken) = most(files.load::<Vec<Tensor<Vec<f32>>>>("model.tenarc")).await;
            assert_eq!(value.unwrap().len(), count);
            let beside = taken - 600 * MIB;
            println!("a load of {count} tensors, 600 MiB: {} MiB beside it", beside / MIB);
            assert!(beside < 256 * MIB, "{} MiB", beside / MIB);
        }
    });
    fs::remove_dir_all(&dir).unwrap();
}
