//! [`TenarcCodec`].

use std::collections::HashSet;
use std::ops::Range;
use std::path::{PathBuf, absolute};
use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::{DataFusionError, Result, TableReference, internal_err};
use datafusion::datasource::file_format::FileFormatFactory;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{
    AggregateUDF, Expr, Extension, HigherOrderUDF, LogicalPlan, ScalarUDF, WindowUDF,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr_common::physical_expr::proto_decode::PhysicalExprDecodeCtx;
use datafusion::physical_expr_common::physical_expr::proto_encode::PhysicalExprEncodeCtx;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::bytes::Serializeable as _;
use datafusion_proto::logical_plan::LogicalExtensionCodec;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use datafusion_proto::protobuf;
use prost::Message as _;
use serde::{Deserialize, Serialize};
use tenarc::Error;
use tenarc::error::Category;

use crate::exec::TenarcExec;
use crate::files::{Name, Place};
use crate::table::{Inner, Part, Partition, TenarcTable};

/// What the bytes of this codec start with. No message of Protobuf starts so, because no field has the number 0.
const START: &[u8] = b"\0tenarc-datafusion\0";
/// What follows. Another version can test other filters, or test them in another way.
const VERSION: &[u8] = concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes();

/// Sends tables of tenarc, and plans that read them, to other processes.
///
/// This is for distributed engines such as Ballista, which send plans as messages of Protobuf.
///
/// It is both a [`LogicalExtensionCodec`] and a [`PhysicalExtensionCodec`]. All processes need one. What is not of this
/// crate is left to the codec in it, such as `BallistaPhysicalExtensionCodec`.
///
/// The bytes have the paths of the files, which all processes must be able to open, and what was in the metadata of the
/// files. Each process opens the files again. It is an error if they have other columns or other groups of rows. Rows
/// that were appended later are left out. Whoever can send a plan can read each file that the process can read.
///
/// ```
/// use std::sync::Arc;
///
/// use datafusion::physical_plan::collect;
/// use datafusion::prelude::SessionContext;
/// use datafusion_proto::bytes::{
///     physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
/// };
/// use datafusion_proto::physical_plan::DefaultPhysicalExtensionCodec;
/// use tenarc_datafusion::{TenarcCodec, TenarcTable};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("pairs.tenarc");
/// tenarc::save(&path, &vec![(1, "x"), (2, "y")])?;
///
/// let context = SessionContext::new();
/// context.register_table("pairs", Arc::new(TenarcTable::open(&path)?))?;
/// let plan = context.sql("SELECT * FROM pairs").await?.create_physical_plan().await?;
/// let codec = TenarcCodec(DefaultPhysicalExtensionCodec {});
/// let sent = physical_plan_to_bytes_with_extension_codec(plan, &codec)?;
///
/// let other = SessionContext::new();
/// let plan = physical_plan_from_bytes_with_extension_codec(&sent, &other.task_ctx(), &codec)?;
/// assert_eq!(collect(plan, other.task_ctx()).await?[0].num_rows(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct TenarcCodec<C>(pub C);

/// A table, as it is sent.
#[derive(Serialize, Deserialize)]
struct SentTable {
    /// The files, with the number of the row after each group.
    files: Vec<(PathBuf, Vec<u64>)>,
    name: Option<String>,
    /// A message of Protobuf.
    schema: Vec<u8>,
    /// The columns that each file has.
    common: HashSet<String>,
}

/// A plan, as it is sent.
#[derive(Serialize, Deserialize)]
struct SentPlan {
    table: SentTable,
    columns: Vec<String>,
    /// Messages of Protobuf.
    filters: Vec<Vec<u8>>,
    limit: Option<usize>,
    /// The parts of each partition, and how many rows can meet the filters.
    partitions: Vec<(Vec<Part>, u64)>,
}

impl SentTable {
    fn of(table: &Inner) -> Result<Self> {
        let absolute = |place: &Place| match place {
            Place::File(path) => {
                absolute(path).map_err(|error| Error::io_at(error, "cannot find", path))
            }
            #[cfg(feature = "store")]
            Place::Object(object) => {
                let what = "a table in a store cannot be sent to other processes";
                Err(Error::unsupported(what).in_file(object.shown()))
            }
        };
        let files =
            table.files.iter().map(|file| Ok((absolute(&file.place)?, file.groups.clone())));
        let files = files.collect::<tenarc::Result<_>>().map_err(external)?;
        let name = match &table.name {
            Name::Is(name) => name.clone(),
            Name::Any => None,
        };
        let schema = protobuf::Schema::try_from(&*table.schema)?.encode_to_vec();
        Ok(Self { files, name, schema, common: table.common.clone() })
    }

    fn open(self) -> Result<Inner> {
        let schema = protobuf::Schema::decode(&*self.schema);
        let schema = schema.map_err(|error| external(Error::data(error.to_string())))?;
        let schema = Schema::try_from(&schema)?;
        let (paths, groups): (Vec<_>, Vec<_>) = self.files.into_iter().unzip();
        let places: Vec<_> = paths.into_iter().map(Place::File).collect();
        let mut table = Inner::open(&places, Name::Is(self.name)).map_err(external)?;
        let changed = |what: String| {
            Error::data(format!("{what}: the files have changed since the table was opened"))
        };
        if *table.schema != schema {
            let found = table.schema.fields().iter();
            let differing = found.zip(schema.fields()).find(|(found, sent)| found != sent);
            let what = match differing {
                Some((found, sent)) => format!("expected {sent}, found {found}"),
                None => format!(
                    "expected {} columns, found {}",
                    schema.fields().len(),
                    table.schema.fields().len()
                ),
            };
            return Err(external(changed(what)));
        }
        if let Some(name) = table.common.symmetric_difference(&self.common).min() {
            let what =
                "the column is in all files here or there, and not in both places".to_owned();
            return Err(external(changed(what).in_field(name)));
        }
        for (file, groups) in table.files.iter_mut().zip(groups) {
            if !file.groups.starts_with(&groups) {
                let rows = groups.last().copied().unwrap_or_default();
                let what = format!(
                    "expected {rows} rows in {} groups, found {} in {}",
                    groups.len(),
                    file.rows(),
                    file.groups.len()
                );
                return Err(external(changed(what).in_file(file.place.shown())));
            }
            file.groups = groups;
        }
        table.is_sent = true;
        Ok(table)
    }
}

impl SentPlan {
    fn of(plan: &TenarcExec) -> Result<Self> {
        let columns = plan.schema();
        let partitions = plan.planned.iter();
        Ok(Self {
            table: SentTable::of(&plan.table)?,
            columns: columns.fields().iter().map(|field| field.name().clone()).collect(),
            filters: plan
                .filters
                .iter()
                .map(|filter| Ok(filter.to_bytes()?.to_vec()))
                .collect::<Result<_>>()?,
            limit: plan.limit,
            partitions: partitions.map(|of| (of.parts.clone(), of.rows)).collect(),
        })
    }

    fn open(self, context: &TaskContext) -> Result<TenarcExec> {
        let table = self.table.open()?;
        let columns = self.columns.iter().map(|name| Ok(table.schema.index_of(name)?));
        let columns = columns.collect::<Result<_>>()?;
        let filters = self.filters.iter().map(|filter| {
            let filter = Expr::from_bytes_with_ctx(filter, context)?;
            // The plan can rely on this scan alone to test it.
            match table.columns(None).condition(&filter) {
                Some(_) => Ok(filter),
                None => Err(external(Error::data(format!("the filter {filter} cannot be tested")))),
            }
        });
        let filters = filters.collect::<Result<_>>()?;
        let partition = |(parts, rows): (Vec<Part>, u64)| {
            for (number, Range { start, end }) in &parts {
                let file = table.files.get(*number);
                if start > end || file.is_none_or(|file| *end > file.rows()) {
                    let what = format!("the rows {start}..{end} of file {number} do not exist");
                    return Err(external(Error::data(what)));
                }
            }
            Ok(Partition { parts, rows })
        };
        let partitions = self.partitions.into_iter().map(partition).collect::<Result<_>>()?;
        TenarcExec::new(Arc::new(table), Some(columns), filters, self.limit, partitions)
    }
}

fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn encode(sent: &impl Serialize, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(START);
    out.extend_from_slice(VERSION);
    out.extend_from_slice(&tenarc::to_vec(sent).map_err(external)?);
    Ok(())
}

/// `None` if the bytes are those of another codec.
fn decode<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Option<Result<T>> {
    let body = bytes.strip_prefix(START)?.strip_prefix(VERSION);
    let body = body.ok_or_else(|| {
        let version = env!("CARGO_PKG_VERSION");
        Error::new(
            Category::Version,
            format!("expected a plan of tenarc-datafusion {version}, found another version"),
        )
    });
    Some(body.and_then(|body| tenarc::from_slice(body)).map_err(external))
}

/// The functions that both kinds of codecs have alike: for functions of SQL, of which none is of this crate.
macro_rules! functions_of_inner {
    () => {
        fn try_decode_udf(&self, name: &str, bytes: &[u8]) -> Result<Arc<ScalarUDF>> {
            self.0.try_decode_udf(name, bytes)
        }

        fn try_encode_udf(&self, function: &ScalarUDF, out: &mut Vec<u8>) -> Result<()> {
            self.0.try_encode_udf(function, out)
        }

        fn try_decode_higher_order_function(
            &self,
            name: &str,
            bytes: &[u8],
        ) -> Result<Arc<HigherOrderUDF>> {
            self.0.try_decode_higher_order_function(name, bytes)
        }

        fn try_encode_higher_order_function(
            &self,
            function: &HigherOrderUDF,
            out: &mut Vec<u8>,
        ) -> Result<()> {
            self.0.try_encode_higher_order_function(function, out)
        }

        fn try_decode_udaf(&self, name: &str, bytes: &[u8]) -> Result<Arc<AggregateUDF>> {
            self.0.try_decode_udaf(name, bytes)
        }

        fn try_encode_udaf(&self, function: &AggregateUDF, out: &mut Vec<u8>) -> Result<()> {
            self.0.try_encode_udaf(function, out)
        }

        fn try_decode_udwf(&self, name: &str, bytes: &[u8]) -> Result<Arc<WindowUDF>> {
            self.0.try_decode_udwf(name, bytes)
        }

        fn try_encode_udwf(&self, function: &WindowUDF, out: &mut Vec<u8>) -> Result<()> {
            self.0.try_encode_udwf(function, out)
        }
    };
}

impl<C: LogicalExtensionCodec> LogicalExtensionCodec for TenarcCodec<C> {
    fn try_encode_table_provider(
        &self,
        name: &TableReference,
        table: Arc<dyn TableProvider>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match table.downcast_ref::<TenarcTable>() {
            Some(table) => encode(&SentTable::of(&table.0)?, out),
            None => self.0.try_encode_table_provider(name, table, out),
        }
    }

    fn try_decode_table_provider(
        &self,
        bytes: &[u8],
        name: &TableReference,
        schema: SchemaRef,
        context: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        match decode::<SentTable>(bytes) {
            Some(table) => Ok(Arc::new(TenarcTable(Arc::new(table?.open()?)))),
            None => self.0.try_decode_table_provider(bytes, name, schema, context),
        }
    }

    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[LogicalPlan],
        context: &TaskContext,
    ) -> Result<Extension> {
        self.0.try_decode(bytes, inputs, context)
    }

    fn try_encode(&self, node: &Extension, out: &mut Vec<u8>) -> Result<()> {
        self.0.try_encode(node, out)
    }

    fn try_decode_file_format(
        &self,
        bytes: &[u8],
        context: &TaskContext,
    ) -> Result<Arc<dyn FileFormatFactory>> {
        self.0.try_decode_file_format(bytes, context)
    }

    fn try_encode_file_format(
        &self,
        out: &mut Vec<u8>,
        format: Arc<dyn FileFormatFactory>,
    ) -> Result<()> {
        self.0.try_encode_file_format(out, format)
    }

    functions_of_inner!();
}

impl<C: PhysicalExtensionCodec> PhysicalExtensionCodec for TenarcCodec<C> {
    fn try_encode(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        out: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        match plan.downcast_ref::<TenarcExec>() {
            Some(plan) => encode(&SentPlan::of(plan)?, out),
            None => self.0.try_encode(plan, out, converter),
        }
    }

    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match decode::<SentPlan>(bytes) {
            Some(plan) => {
                let plan = plan?.open(context)?;
                Ok(Arc::new(match inputs {
                    [] => plan,
                    [numbers] => plan.with_numbers(numbers)?,
                    _ => return internal_err!("expected one child, found {}", inputs.len()),
                }))
            }
            None => self.0.try_decode(bytes, inputs, context, converter),
        }
    }

    fn try_decode_expr(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn PhysicalExpr>],
        context: &PhysicalExprDecodeCtx<'_>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        self.0.try_decode_expr(bytes, inputs, context)
    }

    fn try_encode_expr(
        &self,
        expr: &Arc<dyn PhysicalExpr>,
        out: &mut Vec<u8>,
        context: &PhysicalExprEncodeCtx<'_>,
    ) -> Result<()> {
        self.0.try_encode_expr(expr, out, context)
    }

    functions_of_inner!();
}
