//! Archives in servers that speak the protocols of S3 and of Azure: `tests/store/run` starts them.

#![allow(clippy::cast_precision_loss, clippy::float_cmp)]
#![cfg(all(feature = "aws", feature = "azure"))]

use std::collections::BTreeMap;
use std::sync::Arc;

use ndarray::{Array2, s};
use object_store::ObjectStore;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use tenarc::Tensor;
use tenarc_store::{Kind, Store};

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
