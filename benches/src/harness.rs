//! Measures times.
//!
//! A case is a list of rows (one for each peer and form) with up to four operations each. An operation is
//! run in rounds over all rows (A B C A B C ...), so that a machine that gets slower or faster affects all
//! rows alike. The median of the rounds counts. Row 0 is the floor, to which the other rows are compared.

use std::collections::HashMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// What is measured of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Column {
    /// Encoding into memory that was used before, without allocations and page faults.
    Encode,
    /// Encoding into a new allocation. Dropping it is not timed.
    ToVec,
    /// Decoding to an owned value. Dropping it is not timed.
    Decode,
    /// Decoding to a value that borrows from the message.
    Borrow,
}

pub const COLUMNS: [Column; 4] = [Column::Encode, Column::ToVec, Column::Decode, Column::Borrow];

/// The headings of the columns in cases about messages. Cases about files use the columns for other things.
pub const MESSAGES: [&str; 4] = ["encode", "to_vec", "decode", "borrowed"];

/// A message at a given offset from a 64-byte boundary.
pub struct Placed {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Placed {
    pub fn new(bytes: &[u8], offset: usize) -> Self {
        let mut memory = vec![0u8; bytes.len() + 128];
        let start = memory.as_ptr().align_offset(64) + offset;
        memory[start..start + bytes.len()].copy_from_slice(bytes);
        Self { memory, start, len: bytes.len() }
    }

    /// Places the message at the first offset at which `accepts` returns true; `None` if there is none. A
    /// message has no padding, so its address decides whether its payloads are aligned.
    pub fn where_accepted(bytes: &[u8], accepts: impl Fn(&[u8]) -> bool) -> Option<Self> {
        (0..16).map(|offset| Self::new(bytes, offset)).find(|placed| accepts(placed.bytes()))
    }

    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }
}

/// Gets the memory to encode into and the message to decode; returns the time it took.
type Operation<'a> = Box<dyn FnMut(&mut Vec<u8>, &[u8]) -> Duration + 'a>;

/// One peer in one form.
pub struct Row<'a> {
    pub peer: &'static str,
    pub form: &'static str,
    pub message: Placed,
    operations: [Option<Operation<'a>>; 4],
}

impl<'a> Row<'a> {
    pub fn new(peer: &'static str, form: &'static str, message: Placed) -> Self {
        Self { peer, form, message, operations: [None, None, None, None] }
    }

    /// A row without a message, such as a floor.
    pub fn bare(peer: &'static str, form: &'static str) -> Self {
        Self::new(peer, form, Placed::new(&[], 0))
    }

    /// `work` encodes into the buffer, which is empty but keeps its capacity.
    pub fn encode(mut self, mut work: impl FnMut(&mut Vec<u8>) + 'a) -> Self {
        self.operations[Column::Encode as usize] = Some(Box::new(move |buffer, _| {
            buffer.clear();
            let start = Instant::now();
            work(buffer);
            let took = start.elapsed();
            black_box(buffer);
            took
        }));
        self
    }

    /// `work` encodes into memory that it allocates.
    pub fn fresh<R>(mut self, mut work: impl FnMut() -> R + 'a) -> Self {
        self.operations[Column::ToVec as usize] = Some(Box::new(move |_, _| timed(&mut work)));
        self
    }

    /// `work` decodes the message. It calls [`timed`] itself, as its result may borrow from the message.
    pub fn decode(mut self, mut work: impl FnMut(&[u8]) -> Duration + 'a) -> Self {
        self.operations[Column::Decode as usize] =
            Some(Box::new(move |_, message| work(black_box(message))));
        self
    }

    /// `work` does what the column stands for in this case, and returns the time it took.
    pub fn on(mut self, column: Column, mut work: impl FnMut() -> Duration + 'a) -> Self {
        self.operations[column as usize] = Some(Box::new(move |_, _| work()));
        self
    }

    /// Like [`decode`](Self::decode), for values that borrow from the message.
    pub fn borrow(mut self, mut work: impl FnMut(&[u8]) -> Duration + 'a) -> Self {
        self.operations[Column::Borrow as usize] =
            Some(Box::new(move |_, message| work(black_box(message))));
        self
    }
}

/// Times `work`. Dropping its result is not timed.
pub fn timed<R>(work: impl FnOnce() -> R) -> Duration {
    let start = Instant::now();
    let result = black_box(work());
    let took = start.elapsed();
    drop(result);
    took
}

/// How often the system has interrupted this thread for another one. Constant if the system does not tell.
fn interruptions() -> impl PartialEq {
    #[cfg(target_os = "linux")]
    {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the call only writes to the struct, for which all zeros are a valid value.
        unsafe {
            libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
            usage.assume_init().ru_nivcsw
        }
    }
    #[cfg(not(target_os = "linux"))]
    0
}

/// An operation that takes less is warmed up in every round, for about this long.
const WARM: Duration = Duration::from_millis(12);

/// How long to measure.
#[derive(Clone, Copy)]
pub struct Effort {
    /// Time for all rounds of one operation of one row.
    pub budget: Duration,
    pub least_rounds: usize,
    pub most_rounds: usize,
    /// Whether cases may take minutes for files of 2 GB that are read from the drive again and again.
    pub large_files: bool,
    /// Measure only the floor, copies, and peers with this text in their names.
    pub peer: Option<&'static str>,
}

impl Effort {
    pub const FULL: Self = Self {
        budget: Duration::from_millis(600),
        least_rounds: 15,
        most_rounds: 51,
        large_files: true,
        peer: None,
    };
    pub const QUICK: Self = Self {
        budget: Duration::from_millis(120),
        least_rounds: 5,
        most_rounds: 15,
        large_files: false,
        peer: None,
    };
}

/// A case, ready to run.
pub struct Case<'a> {
    pub title: String,
    pub heads: [&'static str; 4],
    /// What row 0 does in each column.
    pub floor: &'static str,
    pub rows: Vec<Row<'a>>,
}

/// One run: the number of its round, and the time it took.
type Sample = (usize, Duration);

/// Samples of one operation.
#[derive(Clone)]
pub struct Samples {
    sorted: Vec<Duration>,
    /// By round.
    taken: Vec<Sample>,
}

impl Samples {
    fn new(mut taken: Vec<Sample>) -> Self {
        taken.sort_unstable();
        let mut sorted: Vec<Duration> = taken.iter().map(|(_, took)| *took).collect();
        sorted.sort_unstable();
        Self { sorted, taken }
    }

    pub fn quantile(&self, part: f64) -> f64 {
        let last = self.sorted.len() - 1;
        self.sorted[(last as f64 * part).round() as usize].as_secs_f64()
    }

    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// The median run of each round.
    fn rounds(&self) -> impl Iterator<Item = Sample> {
        let rounds = self.taken.chunk_by(|a, b| a.0 == b.0);
        // The runs of a round are sorted by time.
        rounds.filter_map(|round| round.get(round.len() / 2).copied())
    }

    /// How many times as long as `other` this took: the median over the rounds in which both ran.
    fn over(&self, other: &Self) -> Option<f64> {
        let others: HashMap<usize, Duration> = other.rounds().collect();
        let mut ratios: Vec<f64> = self
            .rounds()
            .filter_map(|(round, took)| {
                Some(took.as_secs_f64() / others.get(&round)?.as_secs_f64())
            })
            .collect();
        ratios.sort_unstable_by(f64::total_cmp);
        ratios.get(ratios.len() / 2).copied()
    }
}

pub struct Measured {
    pub peer: &'static str,
    pub form: &'static str,
    pub bytes: usize,
    samples: [Option<Samples>; 4],
}

impl Measured {
    pub fn samples(&self, column: Column) -> Option<&Samples> {
        self.samples[column as usize].as_ref()
    }

    /// The median time, in seconds.
    pub fn median(&self, column: Column) -> Option<f64> {
        self.samples(column).map(Samples::median)
    }
}

/// A case after it has run.
pub struct Report {
    pub title: String,
    pub heads: [&'static str; 4],
    pub floor: &'static str,
    pub rows: Vec<Measured>,
}

impl Report {
    /// The median time of a row in seconds, if there is such a row with that operation.
    pub fn median(&self, peer: &str, form: &str, column: Column) -> Option<f64> {
        self.rows.iter().find(|row| row.peer == peer && row.form == form)?.median(column)
    }

    /// The heading of a column.
    pub fn head(&self, column: Column) -> &'static str {
        self.heads[column as usize]
    }

    /// The length of a row's message or file, if there is such a row.
    pub fn bytes(&self, peer: &str, form: &str) -> Option<usize> {
        Some(self.rows.iter().find(|row| row.peer == peer && row.form == form)?.bytes)
    }

    /// How many times as long a row takes as another one in the same round: the median over the rounds. In
    /// long runs, this cancels out changes in the machine's speed.
    pub fn paired(&self, row: (&str, &str), other: (&str, &str), column: Column) -> Option<f64> {
        let find = |(peer, form)| {
            self.rows.iter().find(|row| row.peer == peer && row.form == form)?.samples(column)
        };
        find(row)?.over(find(other)?)
    }

    /// What a column is divided by. A view of a message has no floor of its own: it is compared
    /// with the floor of owned decoding.
    pub fn floor_median(&self, column: Column) -> Option<f64> {
        let floor = &self.rows[0];
        floor.median(column).or_else(|| match column {
            Column::Borrow => floor.median(Column::Decode),
            _ => None,
        })
    }
}

impl Case<'_> {
    pub fn run(mut self, effort: Effort) -> Report {
        if let Some(peer) = effort.peer {
            let floor = self.rows.remove(0);
            self.rows
                .retain(|row| ["memcpy", "clone"].contains(&row.peer) || row.peer.contains(peer));
            self.rows.insert(0, floor);
        }
        let mut buffer = Vec::new();
        let mut samples: Vec<[Option<Samples>; 4]> = Vec::new();
        samples.resize_with(self.rows.len(), Default::default);
        for column in COLUMNS {
            for (row, taken) in self.measure(column, effort, &mut buffer) {
                samples[row][column as usize] = Some(Samples::new(taken));
            }
        }
        let rows = self.rows.iter().zip(samples);
        Report {
            title: self.title,
            heads: self.heads,
            floor: self.floor,
            rows: rows
                .map(|(row, samples)| Measured {
                    peer: row.peer,
                    form: row.form,
                    bytes: row.message.bytes().len(),
                    samples,
                })
                .collect(),
        }
    }

    /// Measures one column of all rows that have it.
    fn measure(
        &mut self,
        column: Column,
        effort: Effort,
        buffer: &mut Vec<u8>,
    ) -> Vec<(usize, Vec<Sample>)> {
        struct Runner<'r, 'a> {
            row: usize,
            operation: &'r mut Operation<'a>,
            message: &'r [u8],
            rounds: usize,
            warm_ups: usize,
            taken: Vec<Sample>,
            interrupted: Vec<Sample>,
        }
        let mut runners = Vec::new();
        for (row, it) in self.rows.iter_mut().enumerate() {
            let Some(operation) = &mut it.operations[column as usize] else {
                continue;
            };
            let message = it.message.bytes();
            // The first run may grow the buffer and load code. The second gives an estimate of the time
            // of a run, from which the number of rounds follows.
            operation(buffer, message);
            let guess = operation(buffer, message);
            // A short operation is measured with its data and code in the cache: some untimed runs, then
            // as many timed ones. One untimed run is not enough: memcpy of 6 MB took twice its time then.
            // A long operation uses more memory than the cache holds, so it needs no warm-up.
            let warm_ups = match WARM.as_secs_f64() / guess.as_secs_f64().max(1e-9) {
                runs if runs < 1.0 => 0,
                runs => (runs as usize).min(8),
            };
            let round = guess.as_secs_f64().max(1e-9) * (warm_ups + warm_ups.max(1)) as f64;
            let affordable = (effort.budget.as_secs_f64() / round) as usize;
            runners.push(Runner {
                row,
                operation,
                message,
                rounds: affordable.clamp(effort.least_rounds, effort.most_rounds),
                warm_ups,
                taken: Vec::new(),
                interrupted: Vec::new(),
            });
        }
        let rounds = runners.iter().map(|it| it.rounds).max().unwrap_or(0);
        for round in 0..rounds {
            for it in &mut runners {
                // A row with fewer rounds runs in some of them, evenly spread.
                if (round + 1) * it.rounds / rounds == round * it.rounds / rounds {
                    continue;
                }
                for _ in 0..it.warm_ups {
                    (it.operation)(buffer, it.message);
                }
                for _ in 0..it.warm_ups.max(1) {
                    let before = interruptions();
                    let took = (it.operation)(buffer, it.message);
                    if interruptions() == before {
                        it.taken.push((round, took));
                    } else {
                        it.interrupted.push((round, took));
                    }
                }
            }
        }
        let finished = runners.into_iter().map(|mut it| {
            // Runs that were interrupted count only if there are too few others.
            if it.taken.len() < effort.least_rounds {
                it.taken.append(&mut it.interrupted);
            }
            (it.row, it.taken)
        });
        finished.collect()
    }
}
