//! The plan that reads files.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray as _, RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};
use datafusion::arrow::error::ArrowError;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{
    DataFusionError, Result, Statistics, internal_datafusion_err, internal_err,
};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use tenarc::Error;
use tokio::sync::mpsc::Sender;

use crate::bridge;
use crate::files::Place;
use crate::table::{Inner, Part, Partition};

/// The number of batches of a partition that are read before they are wanted.
const AHEAD: usize = 2;

/// Reads the rows of a [`TenarcTable`](crate::TenarcTable). Each partition reads groups of rows in a thread of its own.
#[derive(Clone, Debug)]
pub struct TenarcExec {
    pub(crate) table: Arc<Inner>,
    pub(crate) filters: Vec<Expr>,
    pub(crate) limit: Option<usize>,
    /// Those that were planned.
    pub(crate) planned: Arc<[Partition]>,
    /// Those that are read.
    partitions: Arc<[Partition]>,
    /// Has the numbers of planned partitions as rows, if the plan came from another process.
    ///
    /// Some engines give a part of the partitions to each process. They can do that with a plan of rows in memory, but
    /// not with a plan that they do not know: Ballista would read all partitions in each process. So partition `n` of
    /// this plan reads those whose numbers are in partition `n` of this child.
    numbers: Option<Arc<dyn ExecutionPlan>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl TenarcExec {
    pub(crate) fn new(
        table: Arc<Inner>,
        projection: Option<Vec<usize>>,
        filters: Vec<Expr>,
        limit: Option<usize>,
        partitions: Vec<Partition>,
    ) -> Result<Self> {
        let schema = match projection {
            Some(columns) => Arc::new(table.schema.project(&columns)?),
            None => table.schema.clone(),
        };
        let planned: Arc<[Partition]> = partitions.into();
        Ok(Self {
            properties: Arc::new(properties(schema, planned.len())),
            numbers: table.is_sent.then(|| numbers(planned.len())).transpose()?,
            table,
            filters,
            limit,
            partitions: planned.clone(),
            planned,
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// Reads the partitions whose numbers are in this plan.
    pub(crate) fn with_numbers(&self, numbers: &Arc<dyn ExecutionPlan>) -> Result<Self> {
        let source = numbers.downcast_ref::<DataSourceExec>().map(DataSourceExec::data_source);
        let Some(source) = source.and_then(|source| source.downcast_ref::<MemorySourceConfig>())
        else {
            return internal_err!("expected the numbers of partitions, found {}", numbers.name());
        };
        let mut left: Vec<_> = self.planned.iter().map(Some).collect();
        let mut partitions = Vec::new();
        for batches in source.partitions() {
            let mut partition = Partition::default();
            for batch in batches {
                for &number in numbers_of(batch)? {
                    let planned = usize::try_from(number).ok().and_then(|at| left.get_mut(at));
                    let Some(planned) = planned.and_then(Option::take) else {
                        return internal_err!(
                            "there is no partition {number}, or it is read twice"
                        );
                    };
                    partition.parts.extend_from_slice(&planned.parts);
                    partition.rows = partition.rows.saturating_add(planned.rows);
                }
            }
            partitions.push(partition);
        }
        Ok(Self {
            properties: Arc::new(properties(self.schema(), partitions.len())),
            numbers: Some(numbers.clone()),
            partitions: partitions.into(),
            metrics: ExecutionPlanMetricsSet::new(),
            ..self.clone()
        })
    }
}

fn properties(schema: SchemaRef, partitions: usize) -> PlanProperties {
    PlanProperties::new(
        EquivalenceProperties::new(schema),
        Partitioning::UnknownPartitioning(partitions),
        EmissionType::Incremental,
        Boundedness::Bounded,
    )
}

/// A plan with the number of each partition in that partition.
fn numbers(partitions: usize) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = Arc::new(Schema::new(vec![Field::new("partition", DataType::UInt64, false)]));
    let batch = |number: u64| {
        let numbers: ArrayRef = Arc::new(UInt64Array::from(vec![number]));
        Ok(vec![RecordBatch::try_new(schema.clone(), vec![numbers])?])
    };
    let batches = (0..partitions as u64).map(batch).collect::<Result<Vec<_>>>()?;
    Ok(MemorySourceConfig::try_new_exec(&batches, schema.clone(), None)?)
}

fn numbers_of(batch: &RecordBatch) -> Result<&[u64]> {
    match batch.columns() {
        [column] => match column.as_primitive_opt::<UInt64Type>() {
            Some(numbers) => Ok(numbers.values()),
            None => {
                internal_err!("expected the numbers of partitions, found {}", column.data_type())
            }
        },
        columns => {
            internal_err!("expected the numbers of partitions, found {} columns", columns.len())
        }
    }
}

impl DisplayAs for TenarcExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = &self.table.files;
        let filters: Vec<_> = self.filters.iter().map(ToString::to_string).collect();
        let (separator, start) = match format {
            DisplayFormatType::TreeRender => ("\n", ""),
            _ => (", ", "TenarcExec: "),
        };
        write!(f, "{start}files={}", files.len())?;
        if let Some(first) = files.first() {
            write!(f, "{separator}first={}", first.place.shown().display())?;
        }
        if format != DisplayFormatType::TreeRender {
            let schema = self.schema();
            let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            write!(f, ", projection=[{}]", names.join(", "))?;
        }
        if !filters.is_empty() {
            write!(f, "{separator}filters=[{}]", filters.join(", "))?;
        }
        match self.limit {
            Some(limit) => write!(f, "{separator}limit={limit}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for TenarcExec {
    fn name(&self) -> &'static str {
        "TenarcExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::from_iter(&self.numbers)
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.children().len()]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (&children[..], &self.numbers) {
            ([], None) => Ok(self),
            ([numbers], Some(_)) => Ok(Arc::new(self.with_numbers(numbers)?)),
            _ => internal_err!(
                "expected {} children, found {}",
                self.children().len(),
                children.len()
            ),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let Partition { parts, .. } = self.partitions.get(partition).cloned().ok_or_else(|| {
            internal_datafusion_err!(
                "there is no partition {partition} of {}",
                self.partitions.len()
            )
        })?;
        let schema = self.schema();
        let mut stream = RecordBatchReceiverStreamBuilder::new(schema.clone(), AHEAD);
        let mut scan = Scan {
            table: self.table.clone(),
            filters: self.filters.clone(),
            left: self.limit.unwrap_or(usize::MAX),
            schema,
            batch_size: context.session_config().batch_size().max(1),
            bytes: MetricBuilder::new(&self.metrics).counter("bytes_scanned", partition),
            metrics: BaselineMetrics::new(&self.metrics, partition),
            output: stream.tx(),
        };
        stream.spawn_blocking(move || {
            for part in parts {
                let place = scan.table.files[part.0].place.clone();
                match scan.read(&place, &part) {
                    // Nobody reads the error.
                    Err(_) if scan.output.is_closed() => return Ok(()),
                    Err(Failure::Tenarc(error)) => {
                        return Err(DataFusionError::External(Box::new(
                            error.in_file(place.shown()),
                        )));
                    }
                    Err(Failure::Plan(error)) => return Err(error),
                    Ok(()) => {}
                }
            }
            Ok(())
        });
        Ok(stream.build())
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _inputs: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema());
        let wanted = match args.partition() {
            Some(number) => self.partitions.get(number..=number).unwrap_or_default(),
            None => &self.partitions[..],
        };
        let limit = self.limit.map_or(u64::MAX, |limit| limit as u64);
        let rows = wanted.iter().map(|partition| partition.rows.min(limit));
        if let Ok(rows) = usize::try_from(rows.fold(0, u64::saturating_add)) {
            let is_exact = self.filters.is_empty();
            statistics.num_rows =
                if is_exact { Precision::Exact(rows) } else { Precision::Inexact(rows) };
        }
        Ok(Arc::new(statistics))
    }
}

/// What a partition reads.
struct Scan {
    table: Arc<Inner>,
    filters: Vec<Expr>,
    /// The most rows that are still wanted.
    left: usize,
    schema: SchemaRef,
    batch_size: usize,
    bytes: Count,
    metrics: BaselineMetrics,
    output: Sender<Result<RecordBatch>>,
}

enum Failure {
    Tenarc(Error),
    Plan(DataFusionError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Tenarc(error)
    }
}

impl From<ArrowError> for Failure {
    fn from(error: ArrowError) -> Self {
        Self::Plan(error.into())
    }
}

impl Scan {
    /// Sends the rows of a part.
    fn read(&mut self, place: &Place, (_, rows): &Part) -> Result<(), Failure> {
        if self.left == 0 {
            return Ok(());
        }
        let (bytes, output) = (self.bytes.clone(), self.output.clone());
        let archive = place.open(move |read| {
            bytes.add(read);
            !output.is_closed()
        })?;
        let table = self.table.filtered(place, &archive, &self.filters)?;
        let columns: Vec<_> =
            self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        let table = table.with_types(&self.table.types)?.with_columns(&columns)?;
        let table = table.with_rows(rows.clone())?;
        let mut reader = table.reader();
        while self.left > 0 {
            let timer = self.metrics.elapsed_compute().timer();
            let Some(batch) = reader.next_batch()? else { break };
            let batch = bridge::batch(&batch, &self.schema)?;
            timer.done();
            if !self.send(&batch) {
                break;
            }
        }
        Ok(())
    }

    /// Sends a batch, in pieces of the size that the session wants. Returns whether more rows are wanted.
    fn send(&mut self, batch: &RecordBatch) -> bool {
        let rows = batch.num_rows().min(self.left);
        for start in (0..rows).step_by(self.batch_size) {
            let piece = batch.slice(start, self.batch_size.min(rows - start));
            self.left -= piece.num_rows();
            self.metrics.record_output(piece.num_rows());
            if self.output.blocking_send(Ok(piece)).is_err() {
                return false;
            }
        }
        true
    }
}
