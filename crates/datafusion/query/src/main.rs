//! `tenarc-query`: runs SQL on tables of files.

mod failure;
mod memory;
mod output;
mod tables;

use std::ffi::OsString;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext};

use crate::failure::{EXIT_STATUSES, Failure};
use crate::output::Format;
use crate::tables::{SCHEMA, Schemas};

const AFTER: &str = "\
A file whose values have one name, or none, is a table with the name of the file, without its extension. If its values have \
several names, each name is a table. A directory, whose files *.tenarc are one table, has the name of the directory. \
A pattern, such as 'log-*.tenarc', has the name of the values in its files.

A path can also be the URL of an object, or of a folder or pattern of objects, in a store: s3://bucket/log.tenarc, \
's3://bucket/logs/day-*.tenarc', gs://…, az://…, https://….

NAME=PATH gives the table another name. If the values have several names, their tables are NAME.events and so on.

Names in a query are compared as they are, so userId is not userid. Names such as log-1 are written in double quotes.

A query can only read. SHOW TABLES lists the tables, and DESCRIBE log lists the columns of one.";

/// Runs a query in SQL on tables of tenarc's files
#[derive(Debug, Parser)]
#[command(name = "tenarc-query", version, max_term_width = 100)]
#[command(after_help = EXIT_STATUSES, after_long_help = format!("{AFTER}\n\n{EXIT_STATUSES}"))]
struct Arguments {
    /// The query: SELECT day, count(*) FROM log GROUP BY day
    query: String,
    /// Files, directories and patterns that are tables
    #[arg(value_name = "[NAME=]PATH")]
    tables: Vec<OsString>,
    /// How to print the rows
    #[arg(long, value_name = "FORMAT", default_value = "table", conflicts_with = "output")]
    format: Format,
    /// Save the rows to an archive, as a table with the name of the file. It is replaced only once the new one is complete
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The memory for sorting, grouping and joining: 500MB, 2GiB. Rows that need more are written to temporary files
    /// while they are sorted or grouped. Without this option, it is half of the machine's memory
    #[arg(long, value_name = "SIZE", value_parser = memory::size)]
    memory: Option<usize>,
}

/// The bytes of the stacks of the thread that plans, and of each that runs the plan. They are used only by queries with
/// thousands of operators in a row, such as `a = 1 OR b = 2 OR …`.
const PLAN_STACK: usize = 512 << 20;
const RUN_STACK: usize = 32 << 20;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let thread = std::thread::Builder::new().stack_size(PLAN_STACK).spawn(move || run(&arguments));
    let run = thread.map_err(Failure::from);
    match run.and_then(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            failure.status.into()
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(RUN_STACK)
        .build()?;
    let schemas = runtime.block_on(Schemas::of(&arguments.tables))?;
    let context = context(&schemas, arguments.memory)?;
    let only_reads =
        SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    let stream = runtime.block_on(async {
        context.sql_with_options(&arguments.query, only_reads).await?.execute_stream().await
    });
    let stream = stream.map_err(|error| {
        let failure = Failure::from(error);
        // As DataFusion says it.
        let is_forbidden =
            ["DDL ", "DML ", "Statement "].map(|what| format!("{what}not supported"));
        if failure.message.starts_with("table '") {
            failure.with_hint(&format!("the tables are {}", schemas.shown()))
        } else if is_forbidden.iter().any(|start| failure.message.starts_with(start)) {
            failure.with_hint("a query can only read")
        } else {
            failure
        }
    })?;
    match &arguments.output {
        Some(path) => output::save(path, stream, &runtime),
        None => output::print(arguments.format, stream, &runtime),
    }
}

fn context(schemas: &Schemas, memory: Option<usize>) -> Result<SessionContext, Failure> {
    let mut config = SessionConfig::new()
        .with_information_schema(true)
        .with_default_catalog_and_schema("tenarc", SCHEMA);
    // The names of fields of structs are often camelCase.
    config.options_mut().sql_parser.enable_ident_normalization = false;
    let runtime = memory::limited(&mut config, memory)?;
    let context = SessionContext::new_with_config_rt(config, runtime);
    if let Some(catalog) = context.catalog("tenarc") {
        for (name, tables) in schemas.each() {
            // A catalog in memory takes all schemas.
            let _ = catalog.register_schema(name, Arc::new(tables.clone()));
        }
    }
    Ok(context)
}
