//! The same queries over objects in a store, and over what many ranks have written.

#[path = "../../../store/tests/support/server.rs"]
mod server;
#[path = "../../../store/tests/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use datafusion::physical_plan::ExecutionPlanProperties as _;
use tenarc_store::{Put, Set, Store};

use self::support::Trial;
use super::*;

/// Copies the files of a directory into a store.
async fn upload(dir: &Path, store: &Store) {
    for entry in dir.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let name = format!("events/{}", path.file_name().unwrap().to_str().unwrap());
        let content = Bytes::from(std::fs::read(path).unwrap());
        store.objects().put(&store.key(&name), content, Put::Replace).await.unwrap();
    }
}

/// A set whose ranks have written the events, 250 each, and other values and tensors.
async fn commit(store: &Store, step: u64, ranks: u64) -> Set {
    let writing = store.step(step);
    let mut receipts = Vec::new();
    for rank in 0..ranks {
        let mut shard = writing.shard(rank).unwrap();
        let first = rank * 2000 / ranks;
        let events: Vec<_> = (first..(rank + 1) * 2000 / ranks).map(event).collect();
        shard.block("w", &vec![rank as f32; 100], &[ranks * 100], &[rank * 100]).unwrap();
        shard.value(&format!("events.{rank}"), &events).unwrap();
        shard.value(&format!("state.{rank}"), &rank).unwrap();
        receipts.push(shard.finish().await.unwrap());
    }
    writing.commit(receipts, ranks).await.unwrap();
    store.latest().await.unwrap().unwrap()
}

async fn compare(table: TenarcTable) {
    let (_dir, files, _) = both().await;
    let objects = context(table);
    for query in QUERIES {
        let expected = rows(&files, query).await.unwrap();
        assert_eq!(rows(&objects, query).await.unwrap(), expected, "{query}");
    }
    for condition in CONDITIONS {
        let query = format!("SELECT id FROM events WHERE {condition}");
        let expected = rows(&files, &query).await.unwrap();
        assert_eq!(rows(&objects, &query).await.unwrap(), expected, "{condition}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_give_what_they_give_over_files() {
    let (dir, _) = events();
    let store = Store::in_memory();
    upload(dir.path(), &store).await;
    for pattern in ["events/*.tenarc", "events/", "e*/[12].tenarc"] {
        let table = TenarcTable::open_in(&store, pattern, None).await.unwrap();
        assert_eq!(table.rows(), 2000, "{pattern}");
    }
    let table = TenarcTable::open_in(&store, "events/", Some("events")).await.unwrap();
    assert_eq!(
        table.files().collect::<Vec<_>>(),
        ["events/1.tenarc", "events/2.tenarc"].map(Path::new)
    );
    compare(table).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_is_a_table() {
    let store = Store::in_memory();
    let set = commit(&store, 1, 8).await;
    let table = TenarcTable::of_set(&set, "events.*").await.unwrap();
    assert_eq!((table.rows(), table.files().count()), (2000, 8));
    // What is committed later is another state.
    commit(&store, 2, 3).await;
    compare(table.clone()).await;
    let later = store.latest().await.unwrap().unwrap();
    let later = TenarcTable::of_set(&later, "events.?").await.unwrap();
    assert_eq!((later.rows(), later.files().count()), (2000, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_object_is_read_by_one_partition() {
    let store = Store::in_memory();
    let set = commit(&store, 1, 8).await;
    let table = TenarcTable::of_set(&set, "events.*").await.unwrap();
    for (target, expected) in [(1, 1), (3, 3), (8, 8), (100, 8)] {
        let config = SessionConfig::new().with_target_partitions(target);
        let context = SessionContext::new_with_config(config);
        context.register_table("events", Arc::new(table.clone())).unwrap();
        let plan = plan(&context, "SELECT id FROM events").await;
        assert_eq!(plan.output_partitioning().partition_count(), expected);
        let mut ids = Vec::new();
        for partition in 0..expected {
            let part = plan.execute(partition, context.task_ctx()).unwrap();
            let part = datafusion::physical_plan::common::collect(part).await.unwrap();
            let found: usize = part.iter().map(RecordBatch::num_rows).sum();
            assert_eq!(found % 250, 0, "{found} rows of {target}");
            ids.push(found);
        }
        assert_eq!(ids.iter().sum::<usize>(), 2000);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_opened_side_by_side_and_read_by_ranges() {
    let trial = Trial::new();
    let store = trial.store();
    let set = commit(&store, 1, 40).await;
    trial.set(|settings| settings.wait = Duration::from_millis(20));
    let table = TenarcTable::of_set(&set, "events.*").await.unwrap();
    let asked = trial.take();
    // The end, which has the header of so small an archive, too.
    assert!(asked.requests <= 2 * 40, "{asked:?}");
    assert!((8..=16).contains(&asked.together), "{asked:?}");
    let context = context(table);
    assert_eq!(context.sql("SELECT id FROM events").await.unwrap().count().await.unwrap(), 2000);
    trial.take();

    // Of a large object, what is needed.
    let large: Vec<_> = (0..20_000).map(event).collect();
    trial.set(|settings| settings.wait = Duration::ZERO);
    store.save("large.tenarc", &large).await.unwrap();
    let written = trial.take().written as u64;
    let table = TenarcTable::open_in(&store, "large.tenarc", None).await.unwrap();
    let context = SessionContext::new();
    context.register_table("large", Arc::new(table)).unwrap();
    let sum = rows(&context, "SELECT sum(id) FROM large").await.unwrap();
    assert!(sum.iter().any(|line| line.contains("199990000")), "{sum:?}");
    let asked = trial.take();
    assert!(asked.requests <= 8 && asked.bytes < written / 10, "{asked:?} of {written}");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_name_the_object() {
    let store = Store::in_memory();
    let set = commit(&store, 1, 2).await;
    let error = TenarcTable::of_set(&set, "users.*").await.unwrap_err().to_string();
    assert_eq!(error, "no value of the set matches `users.*`");
    let error = TenarcTable::of_set(&set, "state.*").await.unwrap_err().to_string();
    assert!(error.contains("shards/") && error.contains(": state.0"), "{error}");
    let error = TenarcTable::open_in(&store, "logs/*", None).await.unwrap_err().to_string();
    assert_eq!(error, "no object matches `logs/*`");
    let error = TenarcTable::open_in(&store, "log.tenarc", None).await.unwrap_err();
    assert_eq!(error.io_error_kind(), Some(std::io::ErrorKind::NotFound));
    assert!(error.to_string().contains("log.tenarc"), "{error}");
    let error = TenarcTable::open_url("s4://bucket/x", None).await.unwrap_err().to_string();
    assert!(error.contains("s4://bucket"), "{error}");

    // A shard that was replaced is not read.
    let table = TenarcTable::of_set(&set, "events.*").await.unwrap();
    let key = table.files().next().unwrap().to_str().unwrap();
    let key = key.split(": ").next().unwrap().to_owned();
    store.save(&key, &"other").await.unwrap();
    let error = rows(&context(table), "SELECT id FROM events").await.unwrap_err().to_string();
    assert!(error.contains(&key) && error.contains("replaced"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_location_can_be_a_url() {
    let (dir, _) = events();
    let file = std::fs::read(dir.path().join("1.tenarc")).unwrap();
    let objects = BTreeMap::from([("/log/1.tenarc".to_owned(), file.into())]);
    let (url, _) = server::start(Duration::ZERO, objects);
    let context = SessionContext::new();
    let factory = Arc::new(TenarcTableFactory);
    context.state_ref().write().table_factories_mut().insert("TENARC".into(), factory);
    let create = format!(
        "CREATE EXTERNAL TABLE events STORED AS TENARC LOCATION '{url}/log/1.tenarc' OPTIONS (table 'events')"
    );
    context.sql(&create).await.unwrap();
    assert_eq!(context.sql("SELECT id FROM events").await.unwrap().count().await.unwrap(), 1200);
}
