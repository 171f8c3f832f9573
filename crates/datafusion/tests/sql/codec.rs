//! Tables and plans that are sent to other processes.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use datafusion::catalog::TableProvider;
use datafusion::common::stats::Precision;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, col, lit};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{ExecutionPlan, collect, replace_children_if_necessary};
use datafusion::prelude::SessionContext;
use datafusion_proto::bytes::{
    logical_plan_from_bytes_with_extension_codec, logical_plan_to_bytes_with_extension_codec,
    physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
};
use datafusion_proto::logical_plan::DefaultLogicalExtensionCodec;
use datafusion_proto::physical_plan::{
    DefaultPhysicalExtensionCodec, DefaultPhysicalProtoConverter, PhysicalExtensionCodec as _,
};
use tenarc::OArchive;
use tenarc_datafusion::{TenarcCodec, TenarcTable};

use crate::{CONDITIONS, Narrow, QUERIES, Wide, both, event, events, plan, save, write};

const PHYSICAL: TenarcCodec<DefaultPhysicalExtensionCodec> =
    TenarcCodec(DefaultPhysicalExtensionCodec {});
const LOGICAL: TenarcCodec<DefaultLogicalExtensionCodec> =
    TenarcCodec(DefaultLogicalExtensionCodec {});

/// The plan, as another process has it.
fn sent(plan: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let bytes = physical_plan_to_bytes_with_extension_codec(plan.clone(), &PHYSICAL)?;
    let other = SessionContext::new();
    physical_plan_from_bytes_with_extension_codec(&bytes, &other.task_ctx(), &PHYSICAL)
}

/// The plan that reads a table in three partitions.
async fn scan(table: &TenarcTable, filters: &[Expr]) -> Arc<dyn ExecutionPlan> {
    let context = crate::context(table.clone());
    table.scan(&context.state(), None, filters, None).await.unwrap()
}

async fn batches(plan: Arc<dyn ExecutionPlan>) -> Result<Vec<RecordBatch>> {
    collect(plan, SessionContext::new().task_ctx()).await
}

async fn count(plan: Arc<dyn ExecutionPlan>) -> Result<usize> {
    Ok(batches(plan).await?.iter().map(RecordBatch::num_rows).sum())
}

async fn lines(plan: Arc<dyn ExecutionPlan>) -> Vec<String> {
    let batches = batches(plan).await.unwrap();
    let text = datafusion::arrow::util::pretty::pretty_format_batches(&batches).unwrap();
    let mut lines: Vec<_> = text.to_string().lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

#[tokio::test]
async fn plans_give_the_same_rows_in_another_process() {
    let (_dir, files, _) = both().await;
    let conditions = CONDITIONS.iter().map(|of| format!("SELECT id FROM events WHERE {of}"));
    for query in QUERIES.iter().map(ToString::to_string).chain(conditions) {
        let own = plan(&files, &query).await;
        let other = sent(&own).unwrap_or_else(|error| panic!("{query}: {error}"));
        // What was sent can be sent on.
        let other = sent(&other).unwrap();
        assert_eq!(lines(other).await, lines(own).await, "{query}");
    }
}

#[tokio::test]
async fn tables_are_planned_in_another_process() {
    let (_dir, files, _) = both().await;
    for query in QUERIES {
        let own = files.sql(query).await.unwrap();
        // Protobuf has no subqueries, which the optimizer makes joins of.
        let optimized = own.clone().into_optimized_plan().unwrap();
        let bytes = logical_plan_to_bytes_with_extension_codec(&optimized, &LOGICAL).unwrap();
        let other = SessionContext::new();
        let found =
            logical_plan_from_bytes_with_extension_codec(&bytes, &other.task_ctx(), &LOGICAL);
        let found = other.execute_logical_plan(found.unwrap()).await.unwrap();
        let found = found.create_physical_plan().await.unwrap();
        let own = own.create_physical_plan().await.unwrap();
        assert_eq!(lines(found).await, lines(own).await, "{query}");
    }
}

/// A plan with these numbers in its partitions.
fn numbers(of: &[&[u64]]) -> Arc<dyn ExecutionPlan> {
    let batch = |numbers: &&[u64]| {
        let numbers: ArrayRef = Arc::new(UInt64Array::from(numbers.to_vec()));
        vec![RecordBatch::try_from_iter([("partition", numbers)]).unwrap()]
    };
    let batches: Vec<_> = of.iter().map(batch).collect();
    let schema = batch(&&[][..])[0].schema();
    MemorySourceConfig::try_new_exec(&batches, schema, None).unwrap()
}

/// Ballista cuts the plan below a scan for each executor: it knows that plan, and not the scan.
#[tokio::test]
async fn a_process_reads_the_partitions_whose_numbers_it_gets() {
    let (_dir, table) = events();
    let own = scan(&table, &[]).await;
    assert!(own.children().is_empty());
    let mut expected = Vec::new();
    for partition in 0..3 {
        let stream = own.execute(partition, SessionContext::new().task_ctx()).unwrap();
        let batches = datafusion::physical_plan::common::collect(stream).await.unwrap();
        expected.push(batches.iter().map(RecordBatch::num_rows).sum::<usize>());
    }
    assert!(expected.iter().all(|rows| *rows > 0) && expected.iter().sum::<usize>() == 2000);
    let other = sent(&own).unwrap();
    let with = |plan: &Arc<dyn ExecutionPlan>, child| {
        let plan = replace_children_if_necessary(plan.clone(), vec![child])?;
        sent(&plan)
    };
    for (of, rows) in [
        (&[&[0][..], &[1], &[2]][..], 2000),
        (&[&[2], &[0]], expected[0] + expected[2]),
        (&[&[1]], expected[1]),
        (&[&[], &[0, 1]], expected[0] + expected[1]),
        (&[], 0),
    ] {
        let part = with(&other, numbers(of)).unwrap();
        assert_eq!(part.properties().output_partitioning().partition_count(), of.len());
        let told = part.statistics_from_inputs(&[], &StatisticsArgs::new()).unwrap();
        assert_eq!(told.num_rows, Precision::Exact(rows), "{of:?}");
        assert_eq!(count(part.clone()).await.unwrap(), rows, "{of:?}");
        // The numbers are those of the partitions that were planned.
        assert_eq!(count(with(&part, numbers(&[&[1]])).unwrap()).await.unwrap(), expected[1]);
    }
    for (child, what) in [
        (numbers(&[&[3]]), "no partition 3"),
        (numbers(&[&[0], &[1, 0]]), "no partition 0, or it is read twice"),
        (own.clone(), "TenarcExec"),
    ] {
        let error = with(&other, child).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
    assert!(with(&own, numbers(&[&[0]])).is_err());
}

#[tokio::test]
async fn files_must_be_what_they_were() {
    let (dir, table) = events();
    let path = |name: &str| dir.path().join(name);
    let plan = scan(&table, &[]).await;
    // Rows that are appended later are left out.
    let mut out = OArchive::append(path("2.tenarc")).unwrap();
    out.save_as("events", &(0..500).map(event).collect::<Vec<_>>()).unwrap();
    out.finish().unwrap();
    assert_eq!(count(sent(&plan).unwrap()).await.unwrap(), 2000);

    let error = || sent(&plan).unwrap_err().to_string();
    save(&path("2.tenarc"), 1200..1900);
    let fewer = error();
    assert!(fewer.contains("2.tenarc") && fewer.contains("expected 800 rows"), "{fewer}");
    write(path("2.tenarc"), &[("events", vec![Narrow { id: 1 }])]);
    let other = error();
    assert!(other.contains("score") && other.contains("have changed"), "{other}");
    std::fs::remove_file(path("2.tenarc")).unwrap();
    let missing = error();
    assert!(missing.contains("2.tenarc") && missing.contains("No such file"), "{missing}");

    // The type of the column is that of the table before, but conditions about it are tested in another way.
    write(path("3"), &[("events", vec![Wide { id: 1u8, name: Some("x") }])]);
    write(path("4"), &[("events", vec![Wide { id: 1u8, name: None }])]);
    let both = TenarcTable::of_files([path("3"), path("4")], None).unwrap();
    let plan = scan(&both, &[]).await;
    write(path("4"), &[("events", vec![Narrow { id: 1 }])]);
    let lacking = sent(&plan).unwrap_err().to_string();
    assert!(lacking.contains("name") && lacking.contains("have changed"), "{lacking}");

    let only = TenarcTable::open(path("1.tenarc")).unwrap();
    let plan = scan(&only, &[]).await;
    write(path("1.tenarc"), &[("events", vec![Narrow { id: 1 }])]);
    let other = sent(&plan).unwrap_err().to_string();
    assert!(
        other.contains("found Field { \"id\": UInt8 }") && other.contains("have changed"),
        "{other}"
    );
}

#[tokio::test]
async fn changed_bytes_are_errors_or_other_plans() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.tenarc");
    let rows = [1u16, 1000].map(|id| Wide { id, name: Some("x") });
    write(path.clone(), &[("t", rows.into())]);
    let table = TenarcTable::open(path).unwrap();
    let filters = [col("id").gt(lit(1u16)), col("name").is_not_null()];
    let plan = scan(&table, &filters).await;
    let mut bytes = Vec::new();
    PHYSICAL.try_encode(plan, &mut bytes, &DefaultPhysicalProtoConverter {}).unwrap();
    let context = SessionContext::new().task_ctx();
    let decode =
        |bytes: &[u8]| PHYSICAL.try_decode(bytes, &[], &context, &DefaultPhysicalProtoConverter {});
    assert_eq!(count(decode(&bytes).unwrap()).await.unwrap(), 1);
    for len in 0..bytes.len() {
        assert!(decode(&bytes[..len]).is_err(), "{len}");
    }
    let (mut errors, mut plans) = (0, 0);
    for at in 0..bytes.len() {
        for change in [0x01, 0x10, 0x80, 0xff] {
            let mut bytes = bytes.clone();
            bytes[at] ^= change;
            match decode(&bytes) {
                Err(_) => errors += 1,
                // Whether it can be read depends on what was changed.
                Ok(plan) => plans += usize::from(count(plan).await.is_ok()),
            }
        }
    }
    assert!(errors > bytes.len() && plans > 0, "{errors} and {plans} of {}", bytes.len());

    let version = bytes.windows(5).position(|part| part == b"0.1.0").unwrap();
    bytes[version] = b'7';
    let error = decode(&bytes).unwrap_err().to_string();
    assert!(error.contains("another version"), "{error}");
    // What is not of this codec is left to the one in it.
    let error = decode(b"\x0a\x01x").unwrap_err().to_string();
    assert!(error.contains("not provided"), "{error}");
}
