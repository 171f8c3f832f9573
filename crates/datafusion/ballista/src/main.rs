//! SQL on tables of tenarc's files, on several machines, by Ballista: an example.
//!
//! Ballista runs plans of `DataFusion` in several processes. Each of them is given [`TenarcCodec`], which sends tables and
//! plans of tenarc. That is all that this program adds to Ballista's own. The README says how to run it.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;

use ballista::prelude::{SessionConfigExt as _, SessionContextExt as _};
use ballista_core::serde::{BallistaLogicalExtensionCodec, BallistaPhysicalExtensionCodec};
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::{SchedulerConfig, TaskDistributionPolicy};
use ballista_scheduler::scheduler_process::start_server;
use datafusion::arrow::util::pretty::pretty_format_batches_with_schema;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_proto::logical_plan::LogicalExtensionCodec;
use datafusion_proto::physical_plan::PhysicalExtensionCodec;
use tenarc_datafusion::{TenarcCodec, TenarcTable};

const USAGE: &str = "\
usage: tenarc-ballista scheduler PORT EXECUTORS
       tenarc-ballista executor SCHEDULER_PORT PORT GRPC_PORT DIRECTORY
       tenarc-ballista query local|URL SQL [NAME=PATH]...";

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["scheduler", port, executors] => scheduler(port, executors).await,
        ["executor", scheduler, port, grpc, directory] => {
            executor(scheduler, port, grpc, directory).await
        }
        ["query", place, sql, ref tables @ ..] => query(place, sql, tables).await,
        _ => Err(USAGE.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Between the client and the scheduler.
fn logical() -> Arc<dyn LogicalExtensionCodec> {
    Arc::new(TenarcCodec(BallistaLogicalExtensionCodec::default()))
}

/// Between the scheduler and the executors.
fn physical() -> Arc<dyn PhysicalExtensionCodec> {
    Arc::new(TenarcCodec(BallistaPhysicalExtensionCodec::default()))
}

/// Plans queries, and gives their parts to the executors. `/readyz` says whether so many executors are there.
async fn scheduler(port: &str, executors: &str) -> Result<(), Box<dyn Error>> {
    let port = port.parse()?;
    let config = SchedulerConfig {
        bind_port: port,
        min_ready_executors: executors.parse()?,
        // Both executors work, even if one could do it alone.
        task_distribution: TaskDistributionPolicy::RoundRobin,
        override_logical_codec: Some(logical()),
        override_physical_codec: Some(physical()),
        ..SchedulerConfig::default()
    };
    let cluster = BallistaCluster::new_from_config(&config).await?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    Ok(start_server(cluster, address, Arc::new(config)).await?)
}

/// Runs parts of queries. Its results, which other executors and the client fetch, are in the directory.
async fn executor(
    scheduler: &str,
    port: &str,
    grpc: &str,
    directory: &str,
) -> Result<(), Box<dyn Error>> {
    let config = ExecutorProcessConfig {
        scheduler_port: scheduler.parse()?,
        scheduler_connect_timeout_seconds: 30,
        port: port.parse()?,
        grpc_port: grpc.parse()?,
        vcores: 2,
        work_dir: Some(directory.to_owned()),
        override_logical_codec: Some(logical()),
        override_physical_codec: Some(physical()),
        ..ExecutorProcessConfig::default()
    };
    Ok(start_executor_process(Arc::new(config)).await?)
}

/// Runs a query in this process, or by the scheduler with this URL.
async fn query(place: &str, sql: &str, tables: &[&str]) -> Result<(), Box<dyn Error>> {
    let context = if place == "local" {
        SessionContext::new()
    } else {
        let config = SessionConfig::new_with_ballista()
            .with_ballista_logical_extension_codec(logical())
            .with_ballista_physical_extension_codec(physical())
            // Adaptive plans send dictionaries, such as the names of variants, as texts, and then cannot sort by them.
            .with_ballista_adaptive_query_planner(false)
            .with_target_partitions(4);
        let state = SessionStateBuilder::new().with_config(config).with_default_features().build();
        SessionContext::remote_with_state(place, state).await?
    };
    for table in tables {
        let (name, path) = table.split_once('=').ok_or(USAGE)?;
        context.register_table(name, Arc::new(TenarcTable::open(path)?))?;
    }
    let found = context.sql(sql).await?;
    let schema = Arc::new(found.schema().as_arrow().clone());
    println!("{}", pretty_format_batches_with_schema(schema, &found.collect().await?)?);
    Ok(())
}
