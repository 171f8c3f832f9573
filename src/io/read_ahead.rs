//! [`ReadAhead`], a source that is read ahead by several threads.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};

use crate::error::{Error, Result};
use crate::io::DirectFile;
use crate::io::aligned::Aligned;
use crate::io::at::{PIECE, ReadAt, read_up_to};
use crate::mem::shared_bytes::SharedBytes;

/// Threads that read ahead, if no other number is set.
const THREADS: usize = 4;

/// A source that several threads read ahead, in blocks of 2 MiB.
///
/// Use it to read large parts of an archive from front to end, if each read has to wait for a drive or a server. While
/// one tensor is copied and verified, the next ones are already being read. [`ReadAhead::open`] reads a file past the
/// page cache: an archive then loads at the speed of the drive, whatever the sizes of its tensors and however far the
/// system reads ahead.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use tenarc::io::ReadAhead;
/// use tenarc::{Archive, Tensor};
///
/// # let dir = std::env::temp_dir().join(format!("tenarc-doc-ahead-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// # let path = dir.join("model.tenarc");
/// # let layers = (0..20).map(|layer| (format!("layer{layer}"), Tensor(vec![layer as f32; 100_000])));
/// # tenarc::save(&path, &layers.collect::<BTreeMap<_, _>>())?;
/// let archive = Archive::new(ReadAhead::open(&path)?)?;
/// let model: BTreeMap<String, Tensor<Vec<f32>>> = archive.load()?;
/// # assert_eq!(model["layer7"][99_999], 7.0);
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A [`File`](std::fs::File) is read more slowly with it: its reads reach the system out of order, which takes them for
/// random ones.
///
/// Reading ahead begins after half of a block was read from front to end, and again wherever that happens. Other reads go
/// to the source. It takes memory for three blocks for each thread: 24 MiB by default. The threads start when they
/// are needed for the first time, and end when the value is dropped, after the reads that are in progress.
///
/// The content of the source must not change while it is read: bytes may have been read before. Files of archives that are
/// [appended to](crate::OArchive::append) do not change before their last end mark. A child process after `fork` must not
/// use it, because it has none of the threads.
#[derive(Debug)]
pub struct ReadAhead<S> {
    shared: Arc<Shared<S>>,
    /// The threads, which start when the first of them is needed.
    started: OnceLock<Vec<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared<S> {
    source: S,
    block_len: usize,
    /// The number of blocks of the source.
    count: u64,
    threads: usize,
    state: Mutex<ReadAheadState>,
    /// A block is wanted, or the threads must end.
    wanted: Condvar,
    /// A block was read.
    done: Condvar,
}

#[derive(Debug, Default)]
struct ReadAheadState {
    /// Where the last read began, and the number of bytes that it asked for.
    last: u64,
    asked: u64,
    /// The number of bytes that were read from front to end before that.
    run: u64,
    /// The number of the first block of the window.
    first: u64,
    window: VecDeque<BlockState>,
    /// Memory of blocks that are no longer in the window.
    spare: Vec<Aligned>,
    closed: bool,
}

#[derive(Debug)]
enum BlockState {
    Wanted,
    Reading,
    Read(Arc<BlockContent>),
    /// Whoever needs the block reads it from the source, and gets the error from there.
    Failed,
}

#[derive(Debug)]
struct BlockContent {
    memory: Aligned,
    len: usize,
}

impl ReadAheadState {
    fn block(&mut self, number: u64) -> Option<&mut BlockState> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.window.get_mut(index)
    }

    /// Takes the first block out of the window.
    fn drop_first(&mut self) {
        if let Some(BlockState::Read(content)) = self.window.pop_front() {
            self.keep_memory(content);
        }
        self.first += 1;
    }

    /// Keeps the memory of a block, unless a thread still copies from it.
    fn keep_memory(&mut self, content: Arc<BlockContent>) {
        self.spare.extend(Arc::into_inner(content).map(|content| content.memory));
    }
}

impl<S> Shared<S> {
    fn lock(&self) -> MutexGuard<'_, ReadAheadState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of blocks that are kept before the one that was asked for last. Several threads may read a tensor, and
    /// do not ask in order.
    fn behind(&self) -> u64 {
        self.threads as u64
    }

    /// The number of blocks that are read ahead.
    fn ahead(&self) -> u64 {
        self.behind().saturating_mul(2)
    }
}

impl<S: ReadAt> Shared<S> {
    /// Notes a read, and returns whether it continues many bytes that were read from front to end.
    fn continues(&self, state: &mut ReadAheadState, offset: u64, len: usize) -> bool {
        let block_len = self.block_len as u64;
        let end = state.last.saturating_add(state.asked);
        let (from, to) = (self.behind().saturating_mul(block_len), block_len);
        let near = end.saturating_sub(from)..=end.saturating_add(to);
        // The last read may have given fewer bytes than it asked for.
        let passed = state.asked.min(offset.saturating_sub(state.last));
        state.run = if near.contains(&offset) { state.run.saturating_add(passed) } else { 0 };
        (state.last, state.asked) = (offset, len as u64);
        state.run >= block_len.div_ceil(2)
    }

    /// Moves the window so that this block and those behind it are read.
    fn want(&self, state: &mut ReadAheadState, number: u64) {
        let behind = state.first + state.window.len() as u64;
        if !(state.first..=behind).contains(&number) {
            while !state.window.is_empty() {
                state.drop_first();
            }
            state.first = number;
        }
        while state.first.saturating_add(self.behind()) < number {
            state.drop_first();
        }
        let end = number.saturating_add(self.ahead()).min(self.count);
        while state.first + (state.window.len() as u64) < end {
            state.window.push_back(BlockState::Wanted);
            self.wanted.notify_one();
        }
    }

    /// Waits until a block was read. `None` if it could not be read, or if other reads have moved the window away.
    fn wait_for(
        &self,
        mut state: MutexGuard<'_, ReadAheadState>,
        number: u64,
    ) -> Option<Arc<BlockContent>> {
        loop {
            match state.block(number)? {
                BlockState::Read(content) => return Some(Arc::clone(content)),
                BlockState::Failed => return None,
                BlockState::Wanted | BlockState::Reading => {
                    state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// What each thread does until the source is dropped.
    fn read_blocks(&self) {
        let mut state = self.lock();
        while !state.closed {
            let Some(index) =
                state.window.iter().position(|block| matches!(block, BlockState::Wanted))
            else {
                state = self.wanted.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            state.window[index] = BlockState::Reading;
            let number = state.first + index as u64;
            let memory = state.spare.pop();
            drop(state);

            // If the source panics, nobody must wait for the block.
            let read = catch_unwind(AssertUnwindSafe(|| {
                let mut memory = memory.unwrap_or_else(|| Aligned::new(self.block_len));
                let offset = number.saturating_mul(self.block_len as u64);
                let len = read_up_to(&self.source, memory.bytes_mut(), offset).ok()?;
                Some(BlockState::Read(Arc::new(BlockContent { memory, len })))
            }));
            let read = read.unwrap_or_else(|panic| {
                // Its drop may panic too. Then the block would be waited for forever.
                std::mem::forget(panic);
                None
            });
            let result = read.unwrap_or(BlockState::Failed);
            state = self.lock();
            match (state.block(number), result) {
                (Some(block @ BlockState::Reading), result) => *block = result,
                (_, BlockState::Read(content)) => state.keep_memory(content),
                _ => {}
            }
            self.done.notify_all();
        }
    }
}

impl ReadAhead<DirectFile> {
    /// Opens a file that is read ahead and past the page cache; see [`DirectFile`].
    ///
    /// # Errors
    /// If the file cannot be opened, or is not a regular file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let opened = Self::new(DirectFile::open(path)?);
        opened.map_err(|error| Error::io_at(error, "cannot open", path))
    }
}

impl<S: ReadAt + Send + 'static> ReadAhead<S> {
    /// Reads this source ahead, with four threads.
    ///
    /// # Errors
    /// If the length of the source cannot be determined.
    pub fn new(source: S) -> io::Result<Self> {
        Self::with(source, PIECE, THREADS)
    }

    /// Reads this source ahead with other numbers. A server may need longer blocks and more threads than a drive.
    ///
    /// # Errors
    /// If the length of the source cannot be determined.
    ///
    /// # Panics
    /// If one of the numbers is 0.
    pub fn with(source: S, block_len: usize, threads: usize) -> io::Result<Self> {
        assert!(
            block_len > 0 && threads > 0,
            "expected at least one byte for a block and one thread, found {block_len} bytes and {threads} threads"
        );
        let count = source.size()?.div_ceil(block_len as u64);
        let shared = Shared {
            source,
            block_len,
            count,
            threads,
            state: Mutex::default(),
            wanted: Condvar::new(),
            done: Condvar::new(),
        };
        Ok(Self { shared: Arc::new(shared), started: OnceLock::new() })
    }

    /// Starts the threads, unless they run. Returns whether there are any.
    fn start(&self) -> bool {
        let threads = self.started.get_or_init(|| {
            let start = |_| {
                let shared = Arc::clone(&self.shared);
                let builder = thread::Builder::new().name("tenarc-read-ahead".into());
                builder.spawn(move || shared.read_blocks()).ok()
            };
            (0..self.shared.threads).map_while(start).collect()
        });
        !threads.is_empty()
    }
}

impl<S> ReadAhead<S> {
    /// The source.
    pub fn get_ref(&self) -> &S {
        &self.shared.source
    }
}

impl<S: ReadAt + Send + 'static> ReadAt for ReadAhead<S> {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let (shared, block_len) = (&*self.shared, self.shared.block_len as u64);
        let number = offset / block_len;
        let mut state = shared.lock();
        let continues = shared.continues(&mut state, offset, out.len());
        let read_ahead = state.block(number).is_some() || continues;
        if number >= shared.count || !read_ahead || !self.start() {
            drop(state);
            return shared.source.read_at(out, offset);
        }
        shared.want(&mut state, number);
        let content = shared.wait_for(state, number);
        let inside = usize::try_from(offset % block_len).unwrap_or(usize::MAX);
        let found = content
            .as_ref()
            .and_then(|content| content.memory.bytes().get(..content.len)?.get(inside..));
        match found {
            Some(found) if !found.is_empty() => {
                let len = found.len().min(out.len());
                out[..len].copy_from_slice(&found[..len]);
                Ok(len)
            }
            // An error, or the end of the source.
            _ => shared.source.read_at(out, offset),
        }
    }

    fn size(&self) -> io::Result<u64> {
        self.shared.source.size()
    }

    fn contents(&self) -> Option<&[u8]> {
        self.shared.source.contents()
    }

    fn read_before(&self, range: Range<usize>) -> Option<&[u8]> {
        self.shared.source.read_before(range)
    }

    fn share(&self, range: Range<usize>) -> Option<SharedBytes> {
        self.shared.source.share(range)
    }
}

impl<S> Drop for ReadAhead<S> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closed = true;
        state.window.clear();
        drop(state);
        self.shared.wanted.notify_all();
        for thread in self.started.take().into_iter().flatten() {
            // Panics of the source are caught.
            let _ = thread.join();
        }
    }
}
