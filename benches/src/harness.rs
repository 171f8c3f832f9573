//! How things are timed.
//!
//! A case is a list of rows (one per peer and form), each with up to four operations. Every
//! operation is run round by round over all rows (A B C A B C ...), so that a machine that gets
//! slower or faster meanwhile does so for everybody, and the median of the rounds counts. Row 0
//! is the floor: what the other rows are divided by.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// What is measured of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Column {
    /// Encoding into memory that was used before: no allocation, no page fault.
    Encode,
    /// Encoding into a new allocation, dropped after the clock has stopped.
    ToVec,
    /// Decoding to an owned value, dropped after the clock has stopped.
    Decode,
    /// Decoding to a value that borrows from the message.
    Borrow,
}

pub const COLUMNS: [Column; 4] = [Column::Encode, Column::ToVec, Column::Decode, Column::Borrow];

/// A message at a chosen distance from a 64-byte boundary.
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

    /// Places the message so that `accepts` is content with it: a message has no padding, so
    /// whether its payloads lie aligned depends on where it begins. `None` where no place will do.
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

    /// A row that is not about messages at all, such as a floor.
    pub fn bare(peer: &'static str, form: &'static str) -> Self {
        Self::new(peer, form, Placed::new(&[], 0))
    }

    /// `work` fills the buffer, which comes empty but with its old capacity.
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

    /// `work` encodes into memory of its own making.
    pub fn fresh<R>(mut self, mut work: impl FnMut() -> R + 'a) -> Self {
        self.operations[Column::ToVec as usize] = Some(Box::new(move |_, _| timed(&mut work)));
        self
    }

    /// `work` decodes the message; it calls [`timed`] itself, since what it makes may borrow.
    pub fn decode(mut self, mut work: impl FnMut(&[u8]) -> Duration + 'a) -> Self {
        self.operations[Column::Decode as usize] =
            Some(Box::new(move |_, message| work(black_box(message))));
        self
    }

    /// As [`decode`](Self::decode), for values that borrow from the message.
    pub fn borrow(mut self, mut work: impl FnMut(&[u8]) -> Duration + 'a) -> Self {
        self.operations[Column::Borrow as usize] =
            Some(Box::new(move |_, message| work(black_box(message))));
        self
    }
}

/// Times `work` alone: what it returns is dropped after the clock has stopped.
pub fn timed<R>(work: impl FnOnce() -> R) -> Duration {
    let start = Instant::now();
    let result = black_box(work());
    let took = start.elapsed();
    drop(result);
    took
}

/// How often the system has taken the processor away from this thread; the same where nobody says.
fn interruptions() -> impl PartialEq {
    #[cfg(target_os = "linux")]
    {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the call fills in the struct it is given; all zeros, it is one already.
        unsafe {
            libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
            usage.assume_init().ru_nivcsw
        }
    }
    #[cfg(not(target_os = "linux"))]
    0
}

/// Up to this long an operation is warmed up for in every round.
const WARM: Duration = Duration::from_millis(12);

/// How long to measure.
#[derive(Clone, Copy)]
pub struct Effort {
    /// Time for one operation of one row, all rounds together.
    pub budget: Duration,
    pub least_rounds: usize,
    pub most_rounds: usize,
    /// Measure only peers with this in their names, and what they are set beside.
    pub peer: Option<&'static str>,
}

impl Effort {
    pub const FULL: Self =
        Self { budget: Duration::from_millis(600), least_rounds: 15, most_rounds: 51, peer: None };
    pub const QUICK: Self =
        Self { budget: Duration::from_millis(120), least_rounds: 5, most_rounds: 15, peer: None };
}

/// A case, ready to run.
pub struct Case<'a> {
    pub title: String,
    /// What row 0 does in each column.
    pub floor: &'static str,
    pub rows: Vec<Row<'a>>,
}

/// Sorted samples of one operation.
#[derive(Clone)]
pub struct Samples(Vec<Duration>);

impl Samples {
    fn new(mut samples: Vec<Duration>) -> Self {
        samples.sort_unstable();
        Self(samples)
    }

    pub fn quantile(&self, part: f64) -> f64 {
        let last = self.0.len() - 1;
        self.0[(last as f64 * part).round() as usize].as_secs_f64()
    }

    pub fn median(&self) -> f64 {
        self.quantile(0.5)
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

    /// Seconds.
    pub fn median(&self, column: Column) -> Option<f64> {
        self.samples(column).map(Samples::median)
    }
}

/// A case after it has run.
pub struct Report {
    pub title: String,
    pub floor: &'static str,
    pub rows: Vec<Measured>,
}

impl Report {
    /// Median seconds of a row, if there is such a row and it has that operation.
    pub fn median(&self, peer: &str, form: &str, column: Column) -> Option<f64> {
        self.rows.iter().find(|row| row.peer == peer && row.form == form)?.median(column)
    }

    pub fn floor_median(&self, column: Column) -> Option<f64> {
        self.rows[0].median(column)
    }
}

impl Case<'_> {
    pub fn run(mut self, effort: Effort) -> Report {
        if let Some(peer) = effort.peer {
            self.rows.retain(|row| {
                ["floor", "memcpy", "clone"].contains(&row.peer) || row.peer.contains(peer)
            });
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

    /// One column of all rows that have it.
    fn measure(
        &mut self,
        column: Column,
        effort: Effort,
        buffer: &mut Vec<u8>,
    ) -> Vec<(usize, Vec<Duration>)> {
        struct Runner<'r, 'a> {
            row: usize,
            operation: &'r mut Operation<'a>,
            message: &'r [u8],
            rounds: usize,
            warm_ups: usize,
            taken: Vec<Duration>,
            interrupted: Vec<Duration>,
        }
        let mut runners = Vec::new();
        for (row, it) in self.rows.iter_mut().enumerate() {
            let Some(operation) = &mut it.operations[column as usize] else {
                continue;
            };
            let message = it.message.bytes();
            // The first run may still grow the buffer and fault code in; the second is a guess
            // at what one run costs, from which the number of rounds follows.
            operation(buffer, message);
            let guess = operation(buffer, message);
            // What takes milliseconds is measured as it is in a loop of its own, with its data and
            // code in cache: some untimed runs, then as many timed ones. (One does not fill the
            // caches: memcpy of 6 MB took twice its time then.) What takes longer goes through
            // more memory than there is cache anyhow.
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
                // Rows that want fewer rounds take part in evenly spread ones.
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
                        it.taken.push(took);
                    } else {
                        it.interrupted.push(took);
                    }
                }
            }
        }
        let finished = runners.into_iter().map(|mut it| {
            // What was measured while others had the processor counts only where there is
            // hardly anything else.
            if it.taken.len() < effort.least_rounds {
                it.taken.append(&mut it.interrupted);
            }
            (it.row, it.taken)
        });
        finished.collect()
    }
}
