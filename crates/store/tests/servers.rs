//! Archives in servers that speak the protocols of S3 and of Azure: `tests/store/run` starts them.

#![allow(clippy::cast_precision_loss, clippy::float_cmp)]
#![cfg(all(feature = "aws", feature = "azure"))]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ndarray::{Array2, s};
use object_store::ObjectStore;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use tenarc::Tensor;
use tenarc_store::{Kind, Receipt, Store};

type Model = BTreeMap<String, Tensor<Vec<f32>>>;

fn model(tensors: usize, len: usize) -> Model {
    let tensor = |number| (0..len).map(|at| (at % 1000 + number) as f32).collect();
    (0..tensors).map(|number| (format!("w{number}"), Tensor(tensor(number)))).collect()
}

fn address(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set: use tests/store/run"))
}

/// A bucket in a server that speaks S3's protocol.
fn s3() -> Arc<dyn ObjectStore> {
    let builder = AmazonS3Builder::new()
        .with_endpoint(address("TENARC_S3"))
        .with_allow_http(true)
        .with_region("us-east-1")
        .with_access_key_id("test")
        .with_secret_access_key("test")
        .with_bucket_name("tenarc");
    Arc::new(builder.build().unwrap())
}

/// A container in a server that speaks Azure's protocol, whose address is in `AZURITE_BLOB_STORAGE_URL`.
fn azure() -> Arc<dyn ObjectStore> {
    let builder =
        MicrosoftAzureBuilder::new().with_use_emulator(true).with_container_name("tenarc");
    Arc::new(builder.build().unwrap())
}

async fn works(store: Store) -> tenarc_store::Result<()> {
    // In one request, and in parts of 16 MiB.
    for (name, model) in [("small.tenarc", model(3, 1000)), ("large.tenarc", model(9, 1 << 20))] {
        store.save(name, &model).await?;
        assert!(store.load::<Model>(name).await? == model, "{name}");
    }
    let archive = store.archive("large.tenarc").await?;
    let part: Vec<f32> = archive.slice("w3", s![5..10]).await?;
    assert_eq!(part, [8.0, 9.0, 10.0, 11.0, 12.0]);

    // A read of another version fails.
    store.save("large.tenarc", &model(8, 1 << 20)).await?;
    let error = archive.tensor::<Vec<f32>>("w4").await.unwrap_err();
    assert_eq!(error.kind(), Kind::Changed, "{error}");

    // One object is created once.
    let value = Tensor(Array2::<f32>::eye(20));
    let names = ["once.tenarc"; 8];
    let created = names.map(|name| store.create(name, &value));
    let created = futures_util::future::join_all(created).await;
    assert_eq!(created.iter().filter(|result| result.is_ok()).count(), 1, "{created:?}");
    let failed = created.into_iter().filter_map(Result::err);
    assert!(failed.map(|error| error.kind()).all(|kind| kind == Kind::Exists));

    let objects = store.objects();
    let listed: Vec<_> =
        futures_util::TryStreamExt::try_collect(objects.list(&store.key(""))).await?;
    let mut keys: Vec<_> = listed.into_iter().map(|listed| listed.key).collect();
    keys.sort();
    let expected = ["large.tenarc", "once.tenarc", "small.tenarc"].map(|name| store.key(name));
    assert_eq!(keys, expected);
    store.delete("once.tenarc").await?;
    let error = store.load::<Tensor<Array2<f32>>>("once.tenarc").await.unwrap_err();
    assert_eq!(error.kind(), Kind::NotFound, "{error}");
    // Deleting it again is no error.
    store.delete("once.tenarc").await
}

/// What two ranks write in a step.
async fn written(store: &Store, step: u64) -> tenarc_store::Result<Vec<Receipt>> {
    let mut receipts = Vec::new();
    for rank in 0..2 {
        let mut shard = store.step(step).shard(rank)?;
        shard.block("w", &vec![step as f32; 1000], &[2000], &[rank * 1000])?;
        receipts.push(shard.finish().await?);
    }
    Ok(receipts)
}

/// The number and the step of the latest state, all of which is read.
async fn latest(store: &Store) -> tenarc_store::Result<(u64, u64)> {
    let Some(set) = store.latest().await? else { return Ok((0, 0)) };
    let found: Vec<f32> = set.tensor("w").await?;
    assert_eq!(found, vec![set.step() as f32; 2000]);
    Ok((set.number(), set.step()))
}

async fn commits(store: Store) -> tenarc_store::Result<()> {
    // Two at the same time.
    for round in 1..=10 {
        let (before, _) = latest(&store).await?;
        let each = [2 * round, 2 * round + 1].map(|step| {
            let store = store.clone();
            async move {
                let receipts = written(&store, step).await?;
                Ok::<_, tenarc_store::Error>(store.step(step).commit(receipts, 2).await?.number())
            }
        });
        let mut numbers = futures_util::future::try_join_all(each).await?;
        numbers.sort_unstable();
        assert_eq!(numbers, [before + 1, before + 2]);
    }
    // One that dies after so many milliseconds, whatever the server does with its last request.
    let mut died = 0;
    for round in 0..20 {
        let (before, step) = (latest(&store).await?, 100 + round);
        let receipts = written(&store, step).await?;
        let step_of_run = store.step(step);
        let commit = step_of_run.commit(receipts.clone(), 2);
        match tokio::time::timeout(Duration::from_millis(2 * round), commit).await {
            Ok(committed) => assert_eq!(committed?.step(), step),
            Err(_) => died += 1,
        }
        let found = latest(&store).await?;
        assert!(found == before || found == (before.0 + 1, step), "{found:?} after {before:?}");
        // Another process finishes what it has begun, once.
        store.step(step).commit(receipts, 2).await?;
        assert_eq!(latest(&store).await?, (before.0 + 1, step));
    }
    assert!(died > 0, "all commits took less than 2 ms");
    // Commits and collections at the same time: what was committed stays.
    for step in 200..210 {
        let receipts = written(&store, step).await?;
        let step_of_run = store.step(step);
        let (committed, collected) =
            tokio::join!(step_of_run.commit(receipts, 2), store.collect(1, Duration::ZERO));
        collected?;
        match committed {
            Ok(_) => assert_eq!(latest(&store).await?.1, step),
            Err(error) => assert_eq!(error.kind(), Kind::Incomplete, "{error}"),
        }
    }
    latest(&store).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a server: tests/store/run"]
async fn s3_commits_are_whole() {
    commits(Store::new(s3(), "races")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a server: tests/store/run"]
async fn azure_commits_are_whole() {
    commits(Store::new(azure(), "races")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a server: tests/store/run"]
async fn s3_works() {
    works(Store::new(s3(), "runs/7")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a server: tests/store/run"]
async fn azure_works() {
    works(Store::new(azure(), "runs/7")).await.unwrap();
}
