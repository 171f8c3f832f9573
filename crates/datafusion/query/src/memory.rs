//! How much memory a query may use.

use std::num::NonZeroUsize;
use std::sync::Arc;

use bytesize::ByteSize;
use datafusion::common::Result;
use datafusion::execution::memory_pool::{FairSpillPool, TrackConsumersPool};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::prelude::SessionConfig;
use sysinfo::{MemoryRefreshKind, RefreshKind, System};

/// How many of the operators that use the most memory an error names.
const NAMED: NonZeroUsize = NonZeroUsize::new(3).unwrap();

/// The fewest bytes for each partition, if there are several. Each must hold some batches of what it wrote to files.
const PARTITION: usize = 32 << 20;

/// Parses a number of bytes: `500MB`, `2GiB`.
pub fn size(text: &str) -> Result<usize, String> {
    let wrong = || format!("expected a number of bytes, such as 500MB or 2GiB, found {text:?}");
    let size = text.parse::<ByteSize>().map_err(|_| wrong())?;
    usize::try_from(size.as_u64()).ok().filter(|size| *size > 0).ok_or_else(wrong)
}

/// The runtime of a query that may use so many bytes, or half of what the machine has. Changes the session to fit.
pub fn limited(config: &mut SessionConfig, bytes: Option<usize>) -> Result<Arc<RuntimeEnv>> {
    let builder = RuntimeEnvBuilder::new();
    let Some(bytes) = bytes.or_else(half) else { return builder.build_arc() };
    let options = &mut config.options_mut().execution;
    let partitions = options.target_partitions.min(bytes / PARTITION).max(1);
    options.target_partitions = partitions;
    // What a partition keeps free to merge what it wrote to files.
    let kept = options.sort_spill_reservation_bytes.min(bytes / partitions / 4);
    options.sort_spill_reservation_bytes = kept;
    let pool = TrackConsumersPool::new(FairSpillPool::new(bytes), NAMED);
    builder.with_memory_pool(Arc::new(pool)).build_arc()
}

/// Half of the memory of the machine, or of the container. `None` if it is not known.
fn half() -> Option<usize> {
    let memory = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(memory);
    let container = system.cgroup_limits().map_or(u64::MAX, |limits| limits.total_memory);
    // Both are 0 where they are not known.
    let all = [system.total_memory(), container].into_iter().filter(|bytes| *bytes > 0).min()?;
    usize::try_from(all / 2).ok()
}
