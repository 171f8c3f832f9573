//! Steps that refer to blocks of earlier steps, which have not changed.

#![allow(clippy::cast_precision_loss)]

mod support;

use std::time::Duration;

use ndarray::Array2;
use tenarc_store::{Kind, Receipt, Result, Set, Store};

use self::support::Trial;

/// Writes a step of two ranks, in which a tenth of the weights differs from step to step.
async fn written_after(store: &Store, step: u64, before: Option<&Set>) -> Result<Vec<Receipt>> {
    let mut receipts = Vec::new();
    for rank in 0..2 {
        let mut shard = store.step(step).shard_after(rank, before)?;
        for number in 0..10 {
            let offset = if number == 0 { step as f32 } else { 0.0 };
            let half = Array2::from_elem((64, 128), offset + number as f32 + rank as f32 / 2.0);
            shard.block(&format!("w{number}"), &half, &[128, 128], &[rank * 64, 0])?;
        }
        shard.value(&format!("state.{rank}"), &step)?;
        receipts.push(Receipt::from_bytes(&shard.finish().await?.to_bytes()?)?);
    }
    Ok(receipts)
}

async fn check_weights(set: &Set) -> Result<()> {
    for number in 0..10 {
        let found: Array2<f32> = set.tensor(&format!("w{number}")).await?;
        let offset = if number == 0 { set.step() as f32 } else { 0.0 };
        let expected = Array2::from_shape_fn((128, 128), |(row, _)| {
            offset + number as f32 + (row / 64) as f32 / 2.0
        });
        assert_eq!(found, expected, "w{number} of step {}", set.step());
    }
    assert_eq!(set.value::<u64>("state.1").await?, set.step());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_not_changed_is_stored_once() -> Result<()> {
    let trial = Trial::new();
    let store = trial.store();
    let mut first = 0;
    for step in 1..=10 {
        trial.take();
        let latest = store.latest().await?;
        let receipts = written_after(&store, step, latest.as_ref()).await?;
        let stored: u64 = receipts.iter().map(Receipt::stored_bytes).sum();
        store.step(step).commit(receipts, 2).await?;
        // With the manifest.
        let written = trial.take().written;
        assert!(stored < written as u64);
        if step == 1 {
            first = written;
            assert!(first > 10 * 128 * 128 * 4);
        } else {
            assert!(written * 100 <= first * 12, "step {step}: {written} of {first} bytes");
        }
        check_weights(&store.latest().await?.unwrap()).await?;
    }
    // The shards of the first step are in use, and those of the last one.
    let collected = store.collect(1, Duration::ZERO).await?;
    assert_eq!((collected.objects, collected.manifests), (2 * 8, 9));
    check_weights(&store.latest().await?.unwrap()).await?;
    // Blocks of another shape are not the same, and states without digests are no base.
    let mut shard = store.step(11).shard(0)?;
    shard.block("w1", &Array2::from_elem((128, 128), 1.0f32), &[128, 128], &[0, 0])?;
    store.step(11).commit([shard.finish().await?], 1).await?;
    let latest = store.latest().await?;
    let receipts = written_after(&store, 12, latest.as_ref()).await?;
    assert!(receipts.iter().all(|receipt| receipt.stored_bytes() > 10 * 64 * 128 * 4));
    store.step(12).commit(receipts, 2).await?;
    // Those of the steps 1 and 10, and the one of step 11.
    assert_eq!(store.collect(1, Duration::ZERO).await?.objects, 2 + 2 + 1);
    check_weights(&store.latest().await?.unwrap()).await
}

#[test]
fn a_commit_that_refers_to_earlier_objects_never_loses_them_to_a_collection() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut refused = 0;
        for seed in 1..=200 {
            let trial = Trial::new();
            let store = trial.store();
            let mut earlier = None;
            for step in 1..=2 {
                let receipts = written_after(&store, step, None).await.unwrap();
                let committed = store.step(step).commit(receipts, 2).await.unwrap();
                earlier.get_or_insert(committed);
            }
            // Nothing refers to the objects of step 1 any more, until this is committed.
            let receipts = written_after(&store, 3, earlier.as_ref()).await.unwrap();
            trial.set(|settings| settings.seed = seed);
            let step = store.step(3);
            let (committed, collected) =
                tokio::join!(step.commit(receipts, 2), store.collect(1, Duration::ZERO));
            collected.unwrap();
            if let Err(error) = &committed {
                assert_eq!(error.kind(), Kind::Incomplete, "seed {seed}: {error}");
                refused += 1;
            }
            let latest = store.latest().await.unwrap().unwrap();
            assert_eq!(latest.step(), if committed.is_ok() { 3 } else { 2 }, "seed {seed}");
            check_weights(&latest).await.unwrap();
        }
        assert!((1..200).contains(&refused), "{refused} were refused: both orders must be tried");
    });
}
