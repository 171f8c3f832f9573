//! States that many ranks write together: taken apart differently, committed once, and collected.

#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]

mod support;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use ndarray::{Array1, Array2, ArrayD, Axis, IxDyn, Slice, s};
use object_store::memory::InMemory;
use tenarc::tensor::{AxisSlice, Slices};
use tenarc_store::{Collected, Kind, Part, Put, Receipt, Result, Store};

use self::support::{Fault, Trial};

/// Numbers that all differ.
fn whole(shape: &[usize]) -> ArrayD<f32> {
    let count = shape.iter().product();
    ArrayD::from_shape_vec(IxDyn(shape), (0..count).map(|at| at as f32).collect()).unwrap()
}

/// The range of one of `count` ranks along an axis, as even as possible.
fn share(len: usize, count: usize, rank: usize) -> Range<usize> {
    rank * len / count..(rank + 1) * len / count
}

/// The boxes of a grid of ranks.
fn grid(shape: &[usize], ranks: &[usize]) -> Vec<Vec<Range<usize>>> {
    let mut boxes = vec![Vec::new()];
    for (&len, &count) in shape.iter().zip(ranks) {
        let next = |start: &Vec<Range<usize>>| {
            (0..count)
                .map(|rank| start.iter().cloned().chain([share(len, count, rank)]).collect())
                .collect::<Vec<_>>()
        };
        boxes = boxes.iter().flat_map(next).collect();
    }
    boxes
}

fn part(whole: &ArrayD<f32>, region: &[Range<usize>]) -> ArrayD<f32> {
    whole.slice_each_axis(|axis| Slice::from(region[axis.axis.index()].clone())).to_owned()
}

fn slices(region: &[Range<usize>]) -> Slices {
    region
        .iter()
        .map(|range| AxisSlice::from(range.start.cast_signed()..range.end.cast_signed()))
        .collect()
}

/// Writes a tensor by a grid of ranks, and returns the receipts.
async fn written(
    store: &Store,
    step: u64,
    whole: &ArrayD<f32>,
    ranks: &[usize],
) -> Result<Vec<Receipt>> {
    let shape: Vec<u64> = whole.shape().iter().map(|&len| len as u64).collect();
    let mut receipts = Vec::new();
    for (rank, region) in (0..).zip(grid(whole.shape(), ranks)) {
        let mut shard = store.step(step).shard(rank)?;
        let offset: Vec<u64> = region.iter().map(|range| range.start as u64).collect();
        shard.block("w", &part(whole, &region), &shape, &offset)?;
        shard.value(&format!("state.{rank}"), &(step, rank))?;
        receipts.push(Receipt::from_bytes(&shard.finish().await?.to_bytes()?)?);
    }
    Ok(receipts)
}

async fn saved(store: &Store, step: u64, whole: &ArrayD<f32>, ranks: &[usize]) -> Result<()> {
    let receipts = written(store, step, whole, ranks).await?;
    let count = receipts.len() as u64;
    store.step(step).commit(receipts, count).await.map(drop)
}

async fn latest_step(store: &Store) -> Result<Option<u64>> {
    Ok(store.latest().await?.map(|set| set.step()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_is_read_by_other_numbers_of_ranks() -> Result<()> {
    // Short tensors have fewer tiles, so that more is read in vain.
    let is_thorough = std::env::var_os("TENARC_THOROUGH").is_some();
    let [long, large, deep] = if is_thorough {
        [vec![1_000_003], vec![2048, 2000], vec![192, 200, 112]]
    } else {
        [vec![300_007], vec![512, 500], vec![48, 50, 28]]
    };
    for (shape, writers, readers) in [
        (long.clone(), vec![8], vec![6]),
        (long.clone(), vec![6], vec![8]),
        (large.clone(), vec![8, 1], vec![6, 1]),
        (large.clone(), vec![1, 8], vec![1, 6]),
        (large.clone(), vec![1, 6], vec![1, 8]),
        (large.clone(), vec![2, 3], vec![3, 2]),
        (large.clone(), vec![1, 1], vec![7, 1]),
        (large.clone(), vec![1, 1], vec![1, 7]),
        (deep.clone(), vec![8, 1, 1], vec![6, 1, 1]),
        (deep.clone(), vec![1, 4, 2], vec![1, 3, 2]),
        (deep.clone(), vec![1, 1, 1], vec![7, 1, 1]),
        (vec![5, 3, 2, 4], vec![5, 1, 2, 1], vec![1, 3, 1, 4]),
        (vec![0, 7], vec![1, 1], vec![1, 3]),
        (vec![], vec![], vec![]),
    ] {
        let name = format!("{shape:?} by {writers:?} to {readers:?}");
        let trial = Trial::new();
        let store = trial.store();
        let tensor = whole(&shape);
        saved(&store, 7, &tensor, &writers).await?;
        let set = store.latest().await?.unwrap();
        assert_eq!((set.step(), set.values().len()), (7, writers.iter().product::<usize>()));
        let ArrayD { .. } = set.tensor::<ArrayD<f32>>("w").await?;
        // What is known of the shards is not counted: their headers.
        trial.take();
        let mut needed = 0;
        for region in grid(&shape, &readers) {
            let found: ArrayD<f32> = set.block("w", slices(&region)).await?;
            assert!(found == part(&tensor, &region), "{name}: {region:?}");
            needed += 4 * found.len() as u64;
        }
        let asked = trial.take();
        // Tiles at the edges are read whole, and the headers of the blocks.
        if needed > 1 << 16 {
            let ratio = asked.bytes as f64 / needed as f64;
            println!("{name}: {ratio:.3} of the bytes, {} requests", asked.requests);
            // One writer does not know along which axes others will divide a tensor.
            let is_deep = shape.len() == 3 && writers == [1, 1, 1];
            let most = if is_deep { 1.5 } else { 1.1 };
            assert!(ratio < most || !is_thorough, "{name}: {ratio}");
        }
        let value: (u64, u64) = set.value("state.0").await?;
        assert_eq!(value, (7, 0));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_of_any_form_are_read() -> Result<()> {
    let store = Trial::new().store();
    let tensor = whole(&[12, 10]);
    saved(&store, 1, &tensor, &[3, 2]).await?;
    let set = store.latest().await?.unwrap();
    let tensor = tensor.into_dimensionality::<ndarray::Ix2>().unwrap();
    let found: Array2<f32> = set.block("w", s![2..9, -4..]).await?;
    assert_eq!(found, tensor.slice(s![2..9, -4..]));
    let found: Array1<f32> = set.block("w", s![.., 3]).await?;
    assert_eq!(found, tensor.index_axis(Axis(1), 3));
    let found: Array2<f32> =
        set.block("w", (AxisSlice::from(-1), AxisSlice::NewAxis, AxisSlice::FULL)).await?;
    assert_eq!(found, tensor.slice(s![11..12, ..]));
    let [tensor] = &*set.tensors() else { panic!("one tensor") };
    assert_eq!((tensor.path(), tensor.shape(), tensor.blocks()), ("w", &[12, 10][..], 6));
    for (slices, part) in [
        (Slices::from(s![..;2, ..]), "steps must be 1"),
        (Slices::from((..,)), "expected a slice of 2 axes"),
        (Slices::from((.., .., ..)), "expected a slice of 2 axes"),
        (Slices::from((13.., ..)), "13 is not in an axis of length 12"),
        (Slices::from((12, ..)), "12 is not in an axis of length 12"),
        (Slices::from((-13, ..)), "-13 is not in an axis of length 12"),
    ] {
        let error = set.block::<Array2<f32>>("w", slices).await.unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
    assert_eq!(set.block::<Array2<f32>>("v", s![.., ..]).await.unwrap_err().kind(), Kind::NotFound);
    assert_eq!(set.value::<u8>("v").await.unwrap_err().kind(), Kind::NotFound);
    assert_eq!(set.block::<Array2<f64>>("w", s![.., ..]).await.unwrap_err().kind(), Kind::Archive);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_whole_is_not_committed() -> Result<()> {
    let trial = Trial::new();
    let store = trial.store();
    let tensor = whole(&[8, 4]);
    saved(&store, 1, &tensor, &[2, 1]).await?;
    let receipts = written(&store, 2, &tensor, &[4, 1]).await?;
    let step = store.step(2);
    let other = async |region: [Range<u64>; 2], dtype: bool| -> Result<Receipt> {
        let mut shard = step.shard(3)?;
        let shape = [region[0].end - region[0].start, region[1].end - region[1].start]
            .map(|len| len as usize);
        let offset = [region[0].start, region[1].start];
        if dtype {
            shard.block("w", &Array2::<f64>::zeros(shape), &[8, 4], &offset)?;
        } else {
            shard.block("w", &Array2::<f32>::zeros(shape), &[8, 4], &offset)?;
        }
        shard.finish().await
    };
    let with =
        |receipt: Receipt| receipts[..3].iter().cloned().chain([receipt]).collect::<Vec<_>>();
    let twice = {
        let mut shard = step.shard(3)?;
        shard.block("w", &Array2::<f32>::zeros((2, 4)), &[8, 4], &[6, 0])?;
        shard.value("state.1", &1)?;
        shard.finish().await?
    };
    let earlier = written(&store, 1, &tensor, &[4, 1]).await?;
    for (receipts, ranks, part) in [
        (receipts[..3].to_vec(), 4, "of 4 ranks, there are none of [3]"),
        (with(receipts[2].clone()), 4, "there are none of [3]"),
        (
            [&receipts[..], &receipts[3..]].concat(),
            4,
            "one receipt of each of 4 ranks, found those of [0, 1, 2, 3, 3]",
        ),
        (receipts.clone(), 3, "one receipt of each of 3 ranks"),
        (with(earlier[3].clone()), 4, "found one of step 1 by rank 3"),
        (with(other([5..8, 0..4], false).await?), 4, "overlap"),
        (
            with(other([7..8, 0..4], false).await?),
            4,
            "the blocks have 28 of the 32 elements of [8, 4]",
        ),
        (with(other([6..8, 0..4], true).await?), 4, "blocks of f32 [8, 4] and of f64 [8, 4]"),
        (with(twice), 4, "`state.1`: two ranks have written it"),
    ] {
        let error = step.commit(receipts, ranks).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Incomplete);
        assert!(error.to_string().contains(part), "{error}");
    }
    // Blocks that are not in the tensor, or are of elements that are no bytes.
    let mut shard = step.shard(0)?;
    let error = shard.block("w", &Array2::<f32>::zeros((2, 4)), &[8, 4], &[7, 0]).unwrap_err();
    assert!(
        error.to_string().contains("the block [2, 4] at [7, 0] is not in a tensor of [8, 4]"),
        "{error}"
    );
    drop(shard);
    // An object that was replaced, or is gone.
    let keys = {
        let listed = store.objects().list(&store.key("shards"));
        let mut listed: Vec<_> = futures_util::TryStreamExt::try_collect(listed).await?;
        listed.sort_by_key(|listed: &tenarc_store::Listed| listed.modified);
        listed.into_iter().map(|listed| listed.key).collect::<Vec<_>>()
    };
    for key in keys {
        store.objects().delete(&key).await?;
    }
    let error = step.commit(receipts, 4).await.unwrap_err();
    assert!(error.to_string().contains("there is no such object"), "{error}");
    assert_eq!(latest_step(&store).await?, Some(1));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_receipts_are_committed_once() -> Result<()> {
    let store = Trial::new().store();
    let tensor = whole(&[8, 4]);
    assert_eq!(latest_step(&store).await?, None);
    let first = written(&store, 1, &tensor, &[2, 1]).await?;
    let set = store.step(1).commit(first.clone(), 2).await?;
    assert_eq!((set.number(), set.parent()), (1, None));
    assert_eq!(store.step(1).commit(first.clone(), 2).await?.number(), 1);
    saved(&store, 2, &tensor, &[2, 1]).await?;
    // Also after another step.
    let again = store.step(1).commit(first.into_iter().rev(), 2).await?;
    assert_eq!(again.number(), 1);
    let latest = store.latest().await?.unwrap();
    assert_eq!((latest.step(), latest.number(), latest.parent().is_some()), (2, 2, true));
    Ok(())
}

const FAULTS: [Fault; 5] =
    [Fault::Dead, Fault::Refused, Fault::AnswerLost, Fault::Truncated, Fault::Conflict];

#[tokio::test(flavor = "multi_thread")]
async fn at_each_death_readers_see_the_old_state_or_the_new_one() -> Result<()> {
    let (old, new) = (whole(&[8, 4]), whole(&[8, 4]) + 1.0);
    for fault in FAULTS {
        for number in 0.. {
            let trial = Trial::new();
            let store = trial.store();
            saved(&store, 1, &old, &[2, 1]).await?;
            let receipts = written(&store, 2, &new, &[3, 1]).await?;
            trial.set(|settings| settings.fault = Some((number, fault)));
            let committed = store.step(2).commit(receipts.clone(), 3).await;
            let asked = trial.take();
            trial.set(|settings| settings.fault = None);
            let set = store.latest().await?.unwrap();
            let found: ArrayD<f32> = set.tensor("w").await?;
            match set.step() {
                1 => assert!(committed.is_err() && found == old),
                _ => assert!(found == new),
            }
            // What says wrongly that there is such an object does not stop a commit.
            assert!(fault != Fault::Conflict || asked.failed != Some("put") || committed.is_ok());
            // Anyone can commit again.
            let again = store.step(2).commit(receipts, 3).await?;
            assert_eq!((again.number(), latest_step(&store).await?), (2, Some(2)));
            if number > asked.requests {
                break;
            }
        }
        // A rank that dies leaves the old state.
        for number in 0.. {
            let trial = Trial::new();
            let store = trial.store();
            saved(&store, 1, &old, &[2, 1]).await?;
            trial.set(|settings| settings.fault = Some((number, fault)));
            let saved = saved(&store, 2, &new, &[3, 1]).await;
            trial.set(|settings| settings.fault = None);
            let set = store.latest().await?.unwrap();
            let found: ArrayD<f32> = set.tensor("w").await?;
            assert!(found == if set.step() == 1 { &old } else { &new });
            if saved.is_ok() {
                break;
            }
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn at_each_fault_of_a_collection_the_latest_state_stays() -> Result<()> {
    let tensor = whole(&[8, 4]);
    for fault in FAULTS {
        for number in 0.. {
            let trial = Trial::new();
            let store = trial.store();
            for step in 1..=3 {
                saved(&store, step, &tensor, &[2, 1]).await?;
            }
            trial.set(|settings| settings.fault = Some((number, fault)));
            let collected = store.collect(1, Duration::ZERO).await;
            let asked = trial.take();
            trial.set(|settings| settings.fault = None);
            let set = store.latest().await?.unwrap();
            let found: ArrayD<f32> = set.tensor("w").await?;
            assert!(set.step() == 3 && found == tensor);
            // The next one deletes what is left.
            store.collect(1, Duration::ZERO).await?;
            assert_eq!(store.list("shards").await?.len(), 2, "{fault:?} of request {number}");
            saved(&store, 4, &tensor, &[2, 1]).await?;
            assert_eq!(latest_step(&store).await?, Some(4));
            if number > asked.requests {
                assert!(collected.is_ok());
                break;
            }
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn at_each_failure_of_a_read_there_is_an_error_or_the_tensor() -> Result<()> {
    let tensor = whole(&[300, 200]);
    let trial = Trial::new();
    let store = trial.store();
    saved(&store, 1, &tensor, &[3, 1]).await?;
    for fault in FAULTS {
        for number in 0.. {
            trial.set(|settings| settings.fault = Some((number, fault)));
            let read = async {
                let set = store.latest().await?.unwrap();
                set.block::<ArrayD<f32>>("w", s![50..250, 20..]).await
            };
            let read = read.await;
            let asked = trial.take();
            match read {
                Ok(found) => assert!(found == tensor.slice(s![50..250, 20..]).into_dyn()),
                Err(error) => assert!(asked.failed.is_some(), "{error}"),
            }
            if number > asked.requests {
                break;
            }
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_answers_come_in_any_order() -> Result<()> {
    let tensor = whole(&[300, 200]);
    for seed in 1..=20 {
        let trial = Trial::new();
        let store = trial.store();
        trial.set(|settings| {
            settings.reorders = true;
            settings.seed = seed;
        });
        for step in 1..=5 {
            saved(&store, step, &tensor, &[3, 1]).await?;
            assert_eq!(latest_step(&store).await?, Some(step));
        }
        let set = store.latest().await?.unwrap();
        let found: ArrayD<f32> = set.block("w", s![50..250, 20..]).await?;
        assert!(found == tensor.slice(s![50..250, 20..]).into_dyn());
        assert_eq!(store.collect(1, Duration::ZERO).await?.objects, 12);
        assert_eq!(latest_step(&store).await?, Some(5));
    }
    Ok(())
}

/// A store that says wrongly that its lists are in order hides new states, but none is replaced.
#[tokio::test(flavor = "multi_thread")]
async fn lists_that_are_not_in_order_as_said_replace_no_state() -> Result<()> {
    let trial = Trial::new();
    let store = trial.store();
    let tensor = whole(&[8, 4]);
    for step in 1..=3 {
        saved(&store, step, &tensor, &[2, 1]).await?;
    }
    trial.set(|settings| (settings.in_order, settings.reorders) = (true, true));
    assert!(latest_step(&store).await?.is_some_and(|step| step < 3));
    let error = saved(&store, 4, &tensor, &[2, 1]).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Conflict, "{error}");
    trial.set(|settings| settings.in_order = false);
    assert_eq!(latest_step(&store).await?, Some(3));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_that_replace_what_exists_are_refused_unless_one_process_writes() -> Result<()> {
    let trial = Trial::new();
    trial.set(|settings| settings.replaces = true);
    let store = trial.store();
    let tensor = whole(&[4, 4]);
    let error = saved(&store, 1, &tensor, &[2, 1]).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unsupported);
    assert!(error.to_string().contains("with_single_writer"), "{error}");
    let store = store.with_single_writer(true);
    for step in 1..4 {
        saved(&store, step, &tensor, &[2, 1]).await?;
        assert_eq!(latest_step(&store).await?, Some(step));
    }
    Ok(())
}

#[test]
fn two_that_commit_at_the_same_time_come_one_after_the_other() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let trial = Trial::new();
        let store = trial.store();
        let tensor = whole(&[2, 2]);
        saved(&store, 1, &tensor, &[1, 1]).await.unwrap();
        for seed in 1..=1000 {
            trial.set(|settings| settings.seed = seed);
            let steps = [2 * seed, 2 * seed + 1];
            let each = steps.map(|step| {
                let (store, tensor) = (store.clone(), tensor.clone());
                async move {
                    let receipts = written(&store, step, &tensor, &[1, 1]).await?;
                    store.step(step).commit(receipts, 1).await
                }
            });
            let before = store.latest().await.unwrap().unwrap().number();
            let committed = join_all(each).await;
            let mut numbers: Vec<u64> =
                committed.into_iter().map(|set| set.unwrap().number()).collect();
            numbers.sort_unstable();
            // A collection has written one in between.
            let first = if seed % 50 == 1 && seed > 1 { before + 2 } else { before + 1 };
            assert_eq!(numbers, [first, first + 1], "seed {seed}");
            if seed % 50 == 0 {
                store.collect(1, Duration::ZERO).await.unwrap();
            }
        }
    });
}

#[test]
fn a_commit_and_a_collection_at_the_same_time_leave_whole_states() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut refused = 0;
        let tensor = whole(&[2, 2]);
        for seed in 1..=1000 {
            let trial = Trial::new();
            let store = trial.store();
            for step in 1..=2 {
                saved(&store, step, &tensor, &[1, 1]).await.unwrap();
            }
            // Already old when it is committed.
            let receipts = written(&store, 3, &tensor, &[1, 1]).await.unwrap();
            trial.set(|settings| settings.seed = seed);
            let step = store.step(3);
            let (committed, collected) =
                tokio::join!(step.commit(receipts, 1), store.collect(1, Duration::ZERO));
            collected.unwrap();
            match &committed {
                Ok(set) => assert_eq!(set.step(), 3),
                Err(error) => {
                    assert_eq!(error.kind(), Kind::Incomplete, "seed {seed}: {error}");
                    refused += 1;
                }
            }
            let latest = store.latest().await.unwrap().unwrap();
            assert_eq!(latest.step(), if committed.is_ok() { 3 } else { 2 }, "seed {seed}");
            let found: ArrayD<f32> = latest.tensor("w").await.unwrap();
            assert!(found == tensor, "seed {seed}");
        }
        assert!((1..1000).contains(&refused), "{refused} were refused: both orders must be tried");
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_refers_to_is_collected() -> Result<()> {
    let trial = Trial::new();
    let store = trial.store();
    let tensor = whole(&[100, 10]);
    for step in 1..=5 {
        saved(&store, step, &tensor, &[2, 1]).await?;
    }
    // Written, but not committed.
    let receipts = written(&store, 6, &tensor, &[2, 1]).await?;
    let collected = store.collect(2, Duration::from_secs(3600)).await?;
    assert_eq!((collected.objects, collected.manifests), (0, 3));
    store.step(6).commit(receipts, 2).await?;
    let old = store.latest().await?.unwrap();
    saved(&store, 7, &tensor, &[4, 1]).await?;
    let collected = store.collect(1, Duration::ZERO).await?;
    // Two shards of each of the steps 1 to 6.
    assert_eq!(collected.objects, 12);
    assert!(collected.bytes > 12 * 2000);
    let latest = store.latest().await?.unwrap();
    assert_eq!(latest.step(), 7);
    let found: ArrayD<f32> = latest.tensor("w").await?;
    assert!(found == tensor);
    let error = old.tensor::<ArrayD<f32>>("w").await.unwrap_err();
    assert_eq!(error.kind(), Kind::NotFound, "{error}");
    assert_eq!(store.collect(1, Duration::ZERO).await?, Collected::default());
    saved(&store, 8, &tensor, &[4, 1]).await?;
    assert_eq!(latest_step(&store).await?, Some(8));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ranks_have_written_before_the_first_commit_is_collected() -> Result<()> {
    let store = Trial::new().store();
    assert_eq!(store.collect(1, Duration::ZERO).await?, Collected::default());
    let tensor = whole(&[8, 4]);
    let receipts = written(&store, 1, &tensor, &[2, 1]).await?;
    assert_eq!(store.collect(1, Duration::from_secs(3600)).await?.objects, 0);
    assert_eq!(store.collect(1, Duration::ZERO).await?.objects, 2);
    assert_eq!(latest_step(&store).await?, None);
    let error = store.step(1).commit(receipts, 2).await.unwrap_err();
    assert!(error.to_string().contains("is being deleted"), "{error}");
    saved(&store, 2, &tensor, &[2, 1]).await?;
    assert_eq!(latest_step(&store).await?, Some(2));
    Ok(())
}

#[test]
fn readers_find_the_latest_state_while_others_are_collected() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    for seed in 1..=50 {
        runtime.block_on(async {
            let trial = Trial::new();
            let store = trial.store();
            let tensor = whole(&[4, 4]);
            saved(&store, 1, &tensor, &[1, 1]).await.unwrap();
            trial.set(|settings| {
                settings.seed = seed;
                settings.in_order = seed % 2 == 0;
            });
            let reader = {
                let store = store.clone();
                tokio::spawn(async move {
                    let mut last = 0;
                    while last < 5 {
                        let step = latest_step(&store).await.unwrap().unwrap();
                        assert!(step >= last);
                        last = step;
                    }
                })
            };
            for step in 2..=5 {
                saved(&store, step, &tensor, &[1, 1]).await.unwrap();
                store.collect(1, Duration::ZERO).await.unwrap();
            }
            reader.await.unwrap();
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_manifest_is_the_first_of_a_list_in_order() -> Result<()> {
    let trial = Trial::new();
    trial.set(|settings| settings.in_order = true);
    let store = trial.store();
    for step in 1..=30 {
        saved(&store, step, &whole(&[2, 2]), &[1, 1]).await?;
        trial.take();
        assert_eq!(latest_step(&store).await?, Some(step));
        assert_eq!(trial.take().listed, 1);
    }
    Ok(())
}

/// A collection that is slow, or has died, and a commit in between.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_being_deleted_is_not_used_by_later_commits() -> Result<()> {
    let trial = Trial::new();
    let store = trial.store();
    let tensor = whole(&[8, 4]);
    saved(&store, 1, &tensor, &[2, 1]).await?;
    let receipts = written(&store, 2, &tensor, &[2, 1]).await?;
    trial.set(|_| {});
    // Each one that dies before it deletes leaves a manifest, so that the next one reads one more.
    for number in (0..).step_by(2) {
        trial.set(|settings| settings.fault = Some((number, Fault::Dead)));
        store.collect(1, Duration::ZERO).await.unwrap_err();
        let wrote_what_is_deleted = trial.take().by_name.contains_key("delete");
        trial.set(|settings| settings.fault = None);
        if wrote_what_is_deleted {
            break;
        }
    }
    for step in 3..=4 {
        saved(&store, step, &tensor, &[2, 1]).await?;
        let error = store.step(2).commit(receipts.clone(), 2).await.unwrap_err();
        assert!(error.to_string().contains("is being deleted"), "{error}");
    }
    // After the next collection, they are gone.
    assert_eq!(store.collect(1, Duration::ZERO).await?.objects, 6);
    assert_eq!(latest_step(&store).await?, Some(4));
    Ok(())
}

/// A commit that is so slow that others have committed meanwhile, and a collection has deleted the manifest of its number.
#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_was_there_before_is_no_commit() -> Result<()> {
    for age in [Duration::ZERO, Duration::from_secs(3600)] {
        let trial = Trial::new();
        let store = trial.store();
        let tensor = whole(&[8, 4]);
        saved(&store, 1, &tensor, &[2, 1]).await?;
        let receipts = written(&store, 2, &tensor, &[2, 1]).await?;
        let held = Arc::new(tokio::sync::Notify::new());
        trial.set(|settings| settings.hold = Some(held.clone()));
        let slow = tokio::spawn({
            let (step, receipts) = (store.step(2), receipts.clone());
            async move { step.commit(receipts, 2).await }
        });
        while !trial.holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        for step in 3..=4 {
            saved(&store, step, &tensor, &[2, 1]).await?;
        }
        store.collect(1, age).await?;
        held.notify_one();
        let committed = slow.await.unwrap();
        if age == Duration::ZERO {
            // What it needs is gone.
            assert_eq!(committed.unwrap_err().kind(), Kind::Incomplete);
            assert_eq!(latest_step(&store).await?, Some(4));
        } else {
            assert_eq!(committed?.number(), 4);
            assert_eq!(store.step(2).commit(receipts, 2).await?.number(), 4);
            assert_eq!(latest_step(&store).await?, Some(2));
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_ranks_write_one_set() -> Result<()> {
    let trial = Trial::new();
    trial.set(|settings| settings.seed = 1);
    let store = trial.store();
    let tensor = whole(&[640, 50]);
    let bias = Array1::from_elem(1000, 0.5f32);
    let ranks = grid(&[640, 50], &[64, 1]);
    let each = (0..).zip(ranks).map(|(rank, region)| {
        let (store, mine) = (store.clone(), part(&tensor, &region));
        let bias = bias.clone();
        tokio::spawn(async move {
            let mut shard = store.step(1).shard(rank)?;
            shard.block("w", &mine, &[640, 50], &[region[0].start as u64, 0])?;
            for number in 0..10 {
                shard.replicated(&format!("bias{number}"), &bias, 64)?;
            }
            shard.finish().await
        })
    });
    let receipts = join_all(each).await.into_iter().map(|receipt| receipt.unwrap());
    let receipts = receipts.collect::<Result<Vec<_>>>()?;
    store.step(1).commit(receipts, 64).await?;
    let set = store.latest().await?.unwrap();
    assert_eq!(set.tensors().len(), 11);
    let found: ArrayD<f32> = set.tensor("w").await?;
    assert!(found == tensor);
    let found: Array1<f32> = set.tensor("bias7").await?;
    assert_eq!(found, bias);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn sets_are_kept_in_directories_too() -> Result<()> {
    let dir = std::env::temp_dir().join(format!("tenarc-sets-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let store = Store::open(url::Url::from_file_path(&dir).unwrap().as_str())?;
    let tensor = whole(&[64, 32]);
    for step in 1..=12 {
        saved(&store, step, &tensor, &[2, 1]).await?;
        assert_eq!(latest_step(&store).await?, Some(step));
    }
    let set = store.latest().await?.unwrap();
    let found: ArrayD<f32> = set.tensor("w").await?;
    assert!(found == tensor);
    assert_eq!(store.collect(2, Duration::ZERO).await?.objects, 20);
    std::fs::remove_dir_all(&dir).unwrap();
    Ok(())
}

/// Copies a set to another place, where objects have other keys and versions.
async fn copied(from: &Store, to: &Store) -> Result<()> {
    for name in from.list("").await? {
        let object = from.objects().get(&from.key(&name), Part::Range(0..u64::MAX), None).await?;
        let content = object.bytes().await?.into();
        to.objects().put(&to.key(&name), content, Put::Replace).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_that_was_copied_elsewhere_is_read_and_continued() -> Result<()> {
    let original = Store::new(Arc::new(InMemory::new()), "runs/7");
    let tensor = whole(&[64, 32]);
    let shape = [64, 32];
    let mut shard = original.step(1).shard_after(0, None)?;
    shard.block("w", &tensor, &shape, &[0, 0])?;
    original.step(1).commit([shard.finish().await?], 1).await?;
    saved(&original, 2, &tensor, &[4, 2]).await?;
    original.collect(1, Duration::ZERO).await?;
    let mut shard = original.step(3).shard_after(0, None)?;
    shard.block("w", &tensor, &shape, &[0, 0])?;
    let unused = shard.finish().await?;
    original.step(3).commit([unused], 1).await?;

    let dir = std::env::temp_dir().join(format!("tenarc-copied-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let in_memory = Store::new(Arc::new(InMemory::new()), "");
    // Objects have other versions because others were written first.
    in_memory.save("other.tenarc", &1).await?;
    for copy in [in_memory, Store::open(url::Url::from_file_path(&dir).unwrap().as_str())?] {
        copied(&original, &copy).await?;
        let set = copy.latest().await?.unwrap();
        let found: ArrayD<f32> = set.tensor("w").await?;
        assert!(found == tensor);
        // What has not changed is not written again.
        let mut shard = copy.step(4).shard_after(0, Some(&set))?;
        shard.block("w", &tensor, &shape, &[0, 0])?;
        let receipt = shard.finish().await?;
        assert!(receipt.stored_bytes() < 1000);
        copy.step(4).commit([receipt], 1).await?;
        // The shards of step 2, and those of step 3 stay.
        assert_eq!(copy.collect(1, Duration::ZERO).await?.objects, 8);
        let found: ArrayD<f32> = copy.latest().await?.unwrap().tensor("w").await?;
        assert!(found == tensor);
    }
    std::fs::remove_dir_all(&dir).unwrap();
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shard_with_another_content_is_not_taken_for_a_copy() -> Result<()> {
    let store = Trial::new().store();
    saved(&store, 1, &whole(&[64, 32]), &[2, 1]).await?;
    saved(&store, 2, &(whole(&[64, 32]) + 1.0), &[2, 1]).await?;
    let set = store.latest().await?.unwrap();
    let names = store.list("shards").await?;
    let all = |name: &str| (store.key(name), Part::Range(0..u64::MAX));
    let (key, part) = all(&names[0]);
    let other = store.objects().get(&key, part, None).await?.bytes().await?;
    for name in &names[1..] {
        // As many bytes, for the values differ only in numbers.
        store.objects().put(&store.key(name), other.clone().into(), Put::Replace).await?;
    }
    let error = set.tensor::<ArrayD<f32>>("w").await.unwrap_err();
    assert_eq!(error.kind(), Kind::Changed, "{error}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_names_nothing_outside_its_set() -> Result<()> {
    let store = Store::new(Arc::new(InMemory::new()), "set");
    saved(&store, 1, &whole(&[4, 4]), &[1, 1]).await?;
    let manifest = &store.list("manifests").await?[0];
    let mut value: tenarc::Value = store.load(manifest).await?;
    let name = value.pointer_mut("/objects/0/name").unwrap();
    *name = "shards/../../secret.tenarc".into();
    store.save(manifest, &value).await?;
    let error = store.latest().await.unwrap_err();
    assert!(error.to_string().contains("expected an object in `shards`"), "{error}");
    Ok(())
}
