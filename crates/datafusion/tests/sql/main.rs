//! The same queries over files and over the same rows in memory.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::trivially_copy_pass_by_ref
)]

#[cfg(feature = "proto")]
mod codec;
#[cfg(feature = "store")]
mod store;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::catalog::MemTable;
use datafusion::common::stats::Precision;
use datafusion::error::Result;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt as _;
use serde::{Serialize, Serializer};
use tenarc::OArchive;
use tenarc::archive::SaveOptions;
use tenarc::types::{TimeUnit, TypeName, Typed};
use tenarc_datafusion::{TenarcTable, TenarcTableFactory};

#[derive(Serialize)]
struct Event {
    id: u64,
    user: Option<String>,
    score: f64,
    ratio: Option<f32>,
    size: Option<u16>,
    is_open: bool,
    level: Level,
    event: Option<Kind>,
    place: Place,
    tags: Vec<String>,
    key: serde_bytes::ByteBuf,
    #[serde(serialize_with = "timestamp")]
    at: i64,
    #[serde(serialize_with = "date")]
    day: i32,
    #[serde(serialize_with = "decimal")]
    price: i64,
    embedding: tenarc::Tensor<Vec<f32>>,
}

#[derive(Serialize)]
enum Level {
    Low,
    Middle,
    High,
}

#[derive(Serialize)]
enum Kind {
    Click { x: i32, y: f32 },
    Key(String),
    Close,
}

#[derive(Serialize)]
struct Place {
    x: Option<i32>,
    name: String,
}

fn timestamp<S: Serializer>(value: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    let of = TypeName::timestamp(TimeUnit::Microsecond, "").unwrap();
    Typed::new(&of, value).serialize(serializer)
}

fn date<S: Serializer>(value: &i32, serializer: S) -> Result<S::Ok, S::Error> {
    Typed::new(&TypeName::date(), value).serialize(serializer)
}

fn decimal<S: Serializer>(value: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    Typed::new(&TypeName::decimal(10, 2).unwrap(), value).serialize(serializer)
}

/// Floats that engines order in different ways are among the scores.
fn event(id: u64) -> Event {
    let scores = [0.0, -0.0, 1.5, -1.5, f64::NAN, -f64::NAN, f64::INFINITY, 1e300, 0.5];
    let number = id as i32;
    Event {
        id,
        user: (!id.is_multiple_of(5)).then(|| format!("user{}", id % 7)),
        score: scores[(id % 9) as usize],
        ratio: (!id.is_multiple_of(4)).then(|| [0.25, f32::NAN, -0.0, 3.0][(id % 16 / 4) as usize]),
        size: (!id.is_multiple_of(3)).then_some((id % 1000) as u16),
        is_open: id.is_multiple_of(2),
        level: [Level::Low, Level::Middle, Level::High].into_iter().nth((id % 3) as usize).unwrap(),
        event: match id % 4 {
            0 => None,
            1 => Some(Kind::Click { x: number % 100, y: number as f32 / 2.0 }),
            2 => Some(Kind::Key(format!("k{}", id % 10))),
            _ => Some(Kind::Close),
        },
        place: Place {
            x: (!id.is_multiple_of(6)).then_some(number % 50),
            name: format!("p{}", id % 3),
        },
        tags: (0..id % 3).map(|tag| format!("t{tag}")).collect(),
        key: serde_bytes::ByteBuf::from(vec![(id % 256) as u8; (id % 3) as usize]),
        at: 1_790_000_000_000_000 + id as i64 * 1_000_000,
        day: 20_000 + number % 30,
        price: id as i64 * 101,
        embedding: tenarc::Tensor(vec![number as f32; 64]),
    }
}

/// Saves the rows of this range under the name `events`, 500 in each value.
fn save(path: &Path, ids: std::ops::Range<u64>) {
    let mut out = OArchive::create(path, SaveOptions::default()).unwrap();
    for start in ids.clone().step_by(500) {
        let rows: Vec<_> = (start..ids.end.min(start + 500)).map(event).collect();
        out.save_as("events", &rows).unwrap();
    }
    out.finish().unwrap();
}

/// A directory with two files of the events.
fn events() -> (tempfile::TempDir, TenarcTable) {
    let dir = tempfile::tempdir().unwrap();
    save(&dir.path().join("1.tenarc"), 0..1200);
    save(&dir.path().join("2.tenarc"), 1200..2000);
    let table = TenarcTable::open(dir.path()).unwrap();
    (dir, table)
}

fn context(table: TenarcTable) -> SessionContext {
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(3));
    context.register_table("events", Arc::new(table)).unwrap();
    context
}

/// The rows of a query, in a form that can be compared.
async fn rows(context: &SessionContext, query: &str) -> Result<Vec<String>> {
    let batches = context.sql(query).await?.collect().await?;
    let text = pretty_format_batches(&batches)?.to_string();
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    if !query.contains("ORDER BY") {
        lines.sort_unstable();
    }
    Ok(lines)
}

async fn plan(context: &SessionContext, query: &str) -> Arc<dyn ExecutionPlan> {
    context.sql(query).await.unwrap().create_physical_plan().await.unwrap()
}

fn shown(plan: &Arc<dyn ExecutionPlan>) -> String {
    datafusion::physical_plan::displayable(plan.as_ref()).indent(false).to_string()
}

/// The bytes that a plan and those below it have read.
fn bytes(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let metrics = plan.metrics().unwrap_or_default();
    let own = metrics.sum_by_name("bytes_scanned").map_or(0, |value| value.as_usize());
    own + plan.children().into_iter().map(bytes).sum::<usize>()
}

/// A session over the files, and one over the same rows in memory.
async fn both() -> (tempfile::TempDir, SessionContext, SessionContext) {
    let (dir, table) = events();
    let files = context(table);
    let all = files.table("events").await.unwrap().collect().await.unwrap();
    assert_eq!(all.iter().map(RecordBatch::num_rows).sum::<usize>(), 2000);
    let memory = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(3));
    let table = MemTable::try_new(all[0].schema(), vec![all]).unwrap();
    memory.register_table("events", Arc::new(table)).unwrap();
    (dir, files, memory)
}

const QUERIES: &[&str] = &[
    "SELECT * FROM events",
    "SELECT id, user FROM events WHERE id < 20 ORDER BY id",
    "SELECT count(*) FROM events",
    "SELECT count(*), count(user), sum(id), min(at), max(day), sum(price) FROM events WHERE size > 100",
    "SELECT level, count(*) AS n FROM events GROUP BY level ORDER BY n, level",
    "SELECT user, avg(score) AS mean, sum(size) FROM events WHERE id % 9 = 2 GROUP BY user ORDER BY user",
    "SELECT id FROM events ORDER BY score DESC, id LIMIT 50",
    "SELECT id FROM events ORDER BY id LIMIT 10 OFFSET 495",
    "SELECT a.id, b.user FROM events a JOIN events b ON a.id = b.id + 1 WHERE a.size > 900 AND b.is_open",
    "SELECT id FROM events WHERE id IN (SELECT size FROM events WHERE size < 30)",
    "SELECT DISTINCT place['name'] FROM events WHERE place['x'] = 7",
    "SELECT event['Click']['x'] AS x, event['variant'] AS v FROM events WHERE event['Click']['x'] > 50",
    "SELECT event FROM events WHERE event IS NULL AND id < 100",
    "SELECT id, tags FROM events WHERE array_length(tags) = 2 AND id < 50",
    "SELECT id, tags[1], embedding[3], key FROM events WHERE id BETWEEN 600 AND 640",
    "SELECT id, at, day, price FROM events WHERE at >= TIMESTAMP '2026-09-21T14:20:00' AND price > 400.5",
    "SELECT day, count(*) FROM events WHERE day = DATE '2024-10-10' GROUP BY day",
    "SELECT id FROM events WHERE id < 10 UNION ALL SELECT size FROM events WHERE size > 995",
    "SELECT id, row_number() OVER (PARTITION BY level ORDER BY id) AS n FROM events WHERE id < 30 ORDER BY id",
    "SELECT count(DISTINCT user), count(DISTINCT level) FROM events WHERE level <> 'Low'",
    "SELECT max(id) FROM events WHERE user LIKE 'user3%' AND NOT (size < 500)",
    "SELECT id FROM events WHERE CASE WHEN is_open THEN size ELSE id END = 4",
];

/// Conditions of each kind, about each column that has one.
const CONDITIONS: &[&str] = &[
    "id = 7",
    "id <> 7",
    "7 > id",
    "id <= 7 OR id > 1990",
    "id IN (1, 5, 1500)",
    "id NOT IN (1, 5)",
    "size = 1",
    "size <> 1",
    "NOT size > 3",
    "size IS NULL",
    "size IS NOT NULL",
    "NOT (size IS NULL)",
    "size > 70000",
    "size IN (1, 2, NULL)",
    "size NOT IN (1, NULL)",
    "CAST(size AS BIGINT) = 4",
    "user = 'user1'",
    "user <> 'user1'",
    "user > 'user3'",
    "user <= 'user3'",
    "user IN ('user1', 'x')",
    "user LIKE 'user1%'",
    "user LIKE '%er1%'",
    "user NOT LIKE 'user1%'",
    "user LIKE '%er1'",
    "user LIKE 'u_er1%'",
    "user LIKE '%'",
    "user ILIKE 'USER1%'",
    "user IS NULL OR user = 'user2'",
    "user = ''",
    "is_open",
    "NOT is_open",
    "is_open = false",
    "is_open AND size > 500",
    "NOT (is_open OR size > 500)",
    "NOT (is_open AND size > 500)",
    "is_open IS TRUE",
    "level = 'Low'",
    "level <> 'Low'",
    "level > 'Low'",
    "level IN ('High', 'x')",
    "level LIKE 'M%'",
    "level = 'x'",
    "event['variant'] = 'Close'",
    "event['variant'] <> 'Close'",
    "event['variant'] IS NULL",
    "event['Click']['x'] = 9",
    "event['Click']['x'] IS NULL",
    "event['Key'] = 'k2'",
    "event['Click']['y'] < 10",
    "NOT (event['Click']['x'] < 50)",
    "event['variant'] = 'Key' OR event['Click']['x'] < 5",
    "event IS NOT NULL",
    "place['x'] < 5",
    "place['x'] IS NULL",
    "place['name'] = 'p1' AND id < 100",
    "place['name'] IS NOT NULL",
    "key = X'0101'",
    "key <> X'0101'",
    "key > X'02'",
    "tags IS NULL",
    "embedding IS NULL",
    "at < TIMESTAMP '2026-09-21T14:20:00'",
    "at = TIMESTAMP '2026-09-21T14:13:27'",
    "at IN (TIMESTAMP '2026-09-21T14:13:27')",
    "day >= DATE '2024-10-25'",
    "day <> DATE '2024-10-25'",
    "price = 1.01",
    "price > 1500.25 AND id % 2 = 0",
    "id + 1 = 5",
    "id = size",
    "1 = 1",
    "id = NULL",
    "score = 0",
    "score <> 0",
    "score IN (0, 1.5)",
    "score NOT IN (0, 1.5)",
    "score NOT IN (0.5, 1.5)",
    "score BETWEEN -2 AND 2",
    "score NOT BETWEEN -2 AND 2",
    "score IS NULL",
    "ratio > 0",
    "ratio < 0.5",
    "NOT ratio >= 3",
    "ratio <> 3",
    "ratio = CAST('NaN' AS FLOAT)",
    "ratio > 1 OR size = 1",
    "NOT (ratio > 1 OR size = 1)",
    "NOT (ratio > 1 AND id + 1 > 7)",
];

#[tokio::test]
async fn queries_give_what_they_give_over_memory() {
    let (_dir, files, memory) = both().await;
    for query in QUERIES {
        assert_eq!(
            rows(&files, query).await.unwrap(),
            rows(&memory, query).await.unwrap(),
            "{query}"
        );
    }
}

#[tokio::test]
async fn conditions_give_what_they_give_over_memory() {
    let (_dir, files, memory) = both().await;
    let floats = [
        "0.0",
        "-0.0",
        "1.5",
        "CAST('NaN' AS DOUBLE)",
        "-CAST('NaN' AS DOUBLE)",
        "CAST('inf' AS DOUBLE)",
    ];
    let compared = floats.iter().flat_map(|float| {
        ["=", "<>", "<", "<=", ">", ">="].map(|op| format!("score {op} {float}"))
    });
    let negated = compared.clone().map(|condition| format!("NOT ({condition} AND id > 3)"));
    let all = CONDITIONS.iter().map(ToString::to_string).chain(compared).chain(negated);
    let (mut pushed, mut met) = (0, 0);
    for condition in all {
        let query = format!("SELECT id FROM events WHERE {condition}");
        let found = rows(&files, &query).await.unwrap();
        assert_eq!(found, rows(&memory, &query).await.unwrap(), "{condition}");
        // A header, and lines around it, are always there.
        met += usize::from((5..2000).contains(&found.len()));
        pushed += usize::from(shown(&plan(&files, &query).await).contains("filters=["));
    }
    assert!(pushed > 100 && met > 100, "{pushed}, {met}");
}

#[tokio::test]
async fn plans_show_what_is_pushed_down() {
    let (_dir, files, _) = both().await;
    for (condition, is_exact) in [
        ("size > 3 AND user LIKE 'user1%'", true),
        ("level IN ('Low', 'High') OR NOT is_open", true),
        ("at > TIMESTAMP '2026-09-21T14:20:00' AND day = DATE '2024-10-25'", true),
        ("score > 1.0", false),
        ("ratio < 0.5", false),
        ("event['Click']['x'] > 50", false),
        ("size = 3 OR (ratio > 1 AND id + 1 > 7)", false),
    ] {
        let plan = shown(&plan(&files, &format!("SELECT id FROM events WHERE {condition}")).await);
        assert!(plan.contains("TenarcExec") && plan.contains("filters=["), "{condition}: {plan}");
        assert_eq!(!plan.contains("FilterExec"), is_exact, "{condition}: {plan}");
    }
    let limited = shown(&plan(&files, "SELECT id FROM events WHERE size = 3 LIMIT 4").await);
    assert!(limited.contains("projection=[id]") && limited.contains("limit=4"), "{limited}");
    // The number of rows is known without reading.
    let counted = shown(&plan(&files, "SELECT count(*) FROM events").await);
    assert!(!counted.contains("TenarcExec"), "{counted}");
    let explained = rows(&files, "EXPLAIN SELECT id FROM events WHERE size = 3").await.unwrap();
    assert!(explained.iter().any(|line| line.contains("filters=[")), "{explained:#?}");
}

#[tokio::test]
async fn only_wanted_columns_and_groups_are_read() {
    let (_dir, files, _) = both().await;
    let read = async |query: &str| {
        let plan = plan(&files, query).await;
        collect(plan.clone(), files.task_ctx()).await.unwrap();
        bytes(&plan)
    };
    let all = read("SELECT * FROM events").await;
    let one = read("SELECT id FROM events").await;
    assert!(one > 0 && one * 3 < all, "{one} of {all}");
    let none = read("SELECT embedding FROM events WHERE id > 5000").await;
    let some = read("SELECT embedding FROM events WHERE id > 1990").await;
    let every = read("SELECT embedding FROM events").await;
    assert!(none < some && some * 2 < every, "{none}, {some} of {every}");
}

#[derive(Serialize)]
struct Small {
    id: u32,
}

/// With statistics, a plan knows which groups can have rows that meet a condition.
#[tokio::test]
async fn plans_expect_the_rows_of_groups_that_statistics_leave() {
    let dir = tempfile::tempdir().unwrap();
    let save = |name: &str, ids: std::ops::Range<u32>, step, has_statistics| {
        let options = SaveOptions::default().with_statistics(has_statistics);
        let mut out = OArchive::create(dir.path().join(name), options).unwrap();
        for start in ids.step_by(step) {
            let rows: Vec<_> = (start..start + step as u32).map(|id| Small { id }).collect();
            out.save_as("rows", &rows).unwrap();
        }
        out.finish().unwrap();
    };
    save("large.tenarc", 0..16_384, 2048, true);
    save("unknown.tenarc", 0..16_384, 2048, false);
    save("small.tenarc", 0..6000, 2000, false);
    let config = SessionConfig::new().with_target_partitions(4);
    let context = SessionContext::new_with_config(config);
    for name in ["large", "unknown", "small"] {
        let table = TenarcTable::open(dir.path().join(format!("{name}.tenarc"))).unwrap();
        context.register_table(name, Arc::new(table)).unwrap();
    }
    let expected = async |query: &str| {
        let mut plan = plan(&context, query).await;
        while let Some(inner) = plan.children().first().copied().cloned() {
            plan = inner;
        }
        let partitions = plan.properties().output_partitioning().partition_count();
        let args = StatisticsArgs::new();
        (plan.statistics_from_inputs(&[], &args).unwrap().num_rows, partitions)
    };
    // Each part reads one of the groups with candidates, although these are neighbors.
    assert_eq!(
        expected("SELECT id FROM large WHERE id >= 8192").await,
        (Precision::Inexact(8192), 4)
    );
    assert_eq!(expected("SELECT id FROM large WHERE id = 7").await, (Precision::Inexact(2048), 1));
    assert_eq!(expected("SELECT id FROM large WHERE id < 0").await, (Precision::Inexact(0), 1));
    assert_eq!(
        expected("SELECT id FROM unknown WHERE id = 7").await,
        (Precision::Inexact(16_384), 4)
    );
    // The table of fewer rows is the one that a join holds in memory: the first one.
    for (name, first) in [("large", "large"), ("unknown", "small")] {
        let query = format!(
            "SELECT count(*) FROM small s JOIN {name} l ON s.id = l.id WHERE l.id IN (1, 2, 5)"
        );
        let plan = shown(&plan(&context, &query).await);
        let scans: Vec<_> = plan.lines().filter(|line| line.contains("TenarcExec")).collect();
        assert!(scans[0].contains(&format!("{first}.tenarc")), "{plan}");
        let counted = rows(&context, &query).await.unwrap();
        assert!(counted.iter().any(|line| line.contains("| 3 ")), "{counted:#?}");
    }
    // The file can be another by the time that the plan is made, or runs: no row is missed.
    let table = TenarcTable::open(dir.path().join("large.tenarc")).unwrap();
    context.register_table("changed", Arc::new(table)).unwrap();
    let query = "SELECT id FROM changed WHERE id < 2048";
    let before = plan(&context, query).await;
    std::fs::remove_file(dir.path().join("large.tenarc")).unwrap();
    let mut out = OArchive::create(
        dir.path().join("large.tenarc"),
        SaveOptions::default().with_statistics(true),
    )
    .unwrap();
    for start in (0..16_384).step_by(2048).rev() {
        out.save_as("rows", &(start..start + 2048).map(|id| Small { id }).collect::<Vec<_>>())
            .unwrap();
    }
    out.finish().unwrap();
    let after = plan(&context, query).await;
    for plan in [before, after] {
        let found = collect(plan, context.task_ctx()).await.unwrap();
        assert_eq!(found.iter().map(RecordBatch::num_rows).sum::<usize>(), 2048);
    }
}

#[tokio::test]
async fn reading_stops_when_nobody_wants_the_rows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.tenarc");
    save(&path, 0..50_000);
    let config = SessionConfig::new().with_target_partitions(1);
    let context = SessionContext::new_with_config(config);
    context.register_table("events", Arc::new(TenarcTable::open(&path).unwrap())).unwrap();
    let query = "SELECT embedding FROM events";
    let whole = plan(&context, query).await;
    collect(whole.clone(), context.task_ctx()).await.unwrap();
    let dropped = plan(&context, query).await;
    let mut stream = dropped.execute(0, context.task_ctx()).unwrap();
    assert!(stream.next().await.unwrap().unwrap().num_rows() > 0);
    drop(stream);
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert!(bytes(&dropped) * 4 < bytes(&whole), "{} of {}", bytes(&dropped), bytes(&whole));
}

#[derive(Serialize)]
struct Narrow {
    id: u8,
}
#[derive(Serialize)]
struct Wide<T> {
    id: T,
    name: Option<&'static str>,
}

fn write<T: Serialize>(path: PathBuf, tables: &[(&str, Vec<T>)]) {
    let mut out = OArchive::create(path, SaveOptions::default()).unwrap();
    for (name, rows) in tables {
        out.save_as(name, rows).unwrap();
    }
    out.finish().unwrap();
}

#[tokio::test]
async fn files_are_found_and_must_agree() {
    let (dir, table) = events();
    assert_eq!((table.files().count(), table.rows()), (2, 2000));
    let path = |name: &str| dir.path().join(name);
    let pattern = TenarcTable::open(path("[12].ten*")).unwrap();
    assert_eq!(pattern.rows(), 2000);
    let list: [PathBuf; 2] = [path("2.tenarc"), path("1.tenarc")];
    let listed = TenarcTable::of_files(list, Some("events")).unwrap();
    assert_eq!(listed.files().next(), Some(path("2.tenarc").as_path()));
    assert_eq!(TenarcTable::open_named(path("2.tenarc"), "events").unwrap().rows(), 800);

    let error = |table: tenarc::Result<TenarcTable>| table.unwrap_err().to_string();
    let missing = error(TenarcTable::open(path("*.parquet")));
    assert!(missing.contains("no file matches") && missing.contains("*.parquet"), "{missing}");
    let other = error(TenarcTable::open_named(path("1.tenarc"), "users"));
    assert!(other.contains("1.tenarc") && other.contains("`users`"), "{other}");
    let both = |one: &str, other: &str| TenarcTable::of_files([path(one), path(other)], None);
    write(path("a"), &[("t", vec![Narrow { id: 1 }])]);
    write(path("b"), &[("t", vec![Wide { id: 1000u16, name: Some("x") }])]);
    write(path("c"), &[("t", vec![Wide { id: "z", name: None }])]);
    write(path("d"), &[("t", vec![Wide { id: 1u8, name: None }])]);
    let differing = error(both("b", "c"));
    assert!(differing.contains("expected UInt16") && differing.contains("Utf8"), "{differing}");
    assert!(
        differing.contains("id") && differing.contains(path("c").to_str().unwrap()),
        "{differing}"
    );
    // What both can hold is the type.
    let merged = context(both("d", "b").unwrap());
    let found =
        rows(&merged, "SELECT id + 1, name FROM events WHERE id >= 1 ORDER BY id").await.unwrap();
    assert!(
        found[3].contains("| 2 ") && found[4].contains("| 1001 ") && found[4].contains('x'),
        "{found:#?}"
    );
    write(path("e"), &[("t", vec![1]), ("u", vec![1])]);
    let several = error(TenarcTable::open(path("e")));
    assert!(
        several.contains("`t`") && several.contains("`u`") && several.contains("choose"),
        "{several}"
    );
    // Rows of other tables.
    write(path("f"), &[("t", vec![Place { x: None, name: String::new() }])]);
    let other = error(both("a", "f"));
    assert!(other.contains("none of the columns") && other.contains(path("f").to_str().unwrap()));
    // Rows that are no structs are one column.
    let plain = context(TenarcTable::open_named(path("e"), "u").unwrap());
    assert!(
        rows(&plain, "SELECT value FROM events WHERE value = 1").await.unwrap()[3].contains('1')
    );
}

/// A log gets columns as time goes on.
#[tokio::test]
async fn columns_that_a_file_lacks_are_null_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let wide = |id, name| Wide { id, name };
    write(path("a"), &[("t", vec![Narrow { id: 1 }, Narrow { id: 2 }])]);
    write(path("b"), &[("t", vec![wide(1000u16, Some("x")), wide(3, None), wide(4, Some("y"))])]);
    write(path("c"), &[("t", vec![Narrow { id: 5 }])]);
    for order in [["a", "b", "c"], ["b", "c", "a"]] {
        let table = TenarcTable::of_files(order.map(path), None).unwrap();
        let files = context(table);
        for (condition, expected) in [
            ("true", &[1, 2, 3, 4, 5, 1000][..]),
            ("name IS NULL", &[1, 2, 3, 5]),
            ("name IS NOT NULL", &[4, 1000]),
            ("name = 'x'", &[1000]),
            ("NOT (name = 'x')", &[4]),
            ("name <> 'x' OR id < 3", &[1, 2, 4]),
            ("NOT (name = 'x' AND id > 2)", &[1, 2, 4]),
            ("name IN ('y', 'z') OR name IS NULL AND id = 5", &[4, 5]),
            ("coalesce(name, 'none') = 'none' AND id > 1", &[2, 3, 5]),
        ] {
            let query = format!("SELECT id FROM events WHERE {condition} ORDER BY id");
            let found = rows(&files, &query).await.unwrap();
            let found = found[3..found.len() - 1].iter().map(|line| line.replace([' ', '|'], ""));
            let expected: Vec<_> = expected.iter().map(ToString::to_string).collect();
            assert_eq!(found.collect::<Vec<_>>(), expected, "{order:?}: {condition}");
        }
        let query = "SELECT name, count(*) AS n FROM events GROUP BY name ORDER BY name";
        let found = rows(&files, query).await.unwrap().join("\n");
        for line in ["| x    | 1 |", "| y    | 1 |", "|      | 4 |"] {
            assert!(found.contains(line), "{found}");
        }
        let types = rows(&files, "SELECT arrow_typeof(id) FROM events LIMIT 1").await;
        assert!(types.unwrap()[3].contains("UInt16"));
    }
}

#[tokio::test]
async fn errors_name_the_file_and_the_place() {
    let (dir, table) = events();
    let files = context(table);
    let path = dir.path().join("2.tenarc");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].fill(0xa5);
    std::fs::write(&path, &bytes).unwrap();
    let error = rows(&files, "SELECT * FROM events").await.unwrap_err().to_string();
    assert!(error.contains("2.tenarc") && error.contains("byte"), "{error}");
    // Another file in its place.
    let mut out = OArchive::create(&path, SaveOptions::default()).unwrap();
    out.save_as("events", &vec![(1, 2)]).unwrap();
    out.finish().unwrap();
    let error = rows(&files, "SELECT id FROM events").await.unwrap_err().to_string();
    assert!(error.contains("2.tenarc") && error.contains("open it again"), "{error}");
}

#[tokio::test]
async fn external_tables_are_made_in_sql() {
    let (dir, _) = events();
    let context = SessionContext::new();
    let state = context.state_ref();
    let factory = Arc::new(TenarcTableFactory);
    state.write().table_factories_mut().insert("TENARC".to_owned(), factory);
    let location = dir.path().display();
    let create = |rest: &str| {
        format!("CREATE EXTERNAL TABLE e STORED AS TENARC LOCATION '{location}' {rest}")
    };
    context.sql(&create("OPTIONS (table 'events')")).await.unwrap();
    let counted = rows(&context, "SELECT count(*) FROM e WHERE id < 20").await.unwrap();
    assert!(counted.iter().any(|line| line.contains("| 20 ")), "{counted:#?}");
    let error =
        context.sql(&create("OPTIONS (sheet 'events')").replace(" e ", " f ")).await.unwrap_err();
    assert!(error.to_string().contains("sheet"), "{error}");
}

#[tokio::test]
async fn values_are_those_that_were_saved() {
    let (_dir, table) = events();
    let found =
        rows(&context(table), "SELECT * EXCEPT (embedding) FROM events WHERE id < 4 ORDER BY id")
            .await
            .unwrap();
    let text = found.join("\n");
    for expected in [
        "| 1  | user1 | -0.0  | 0.25  | 1    | false   | Middle | {variant: Click, Click: {x: 1, y: 0.5}, Key: } | {x: 1, name: p1} | [t0]     | 01 ",
        "2026-09-21T14:13:21 | 2024-10-05 | 1.01 ",
    ] {
        assert!(text.contains(expected), "{text}");
    }
}
