//! [`ReadAhead`], a source whose bytes are fetched before they are needed.

use std::fmt;
use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crate::error::Result;
use crate::io::DirectFile;
use crate::io::aligned::Aligned;
use crate::io::at::{PIECE, ReadAt, read_up_to};
use crate::mem::shared_bytes::SharedBytes;

/// Ranges that are this near to each other are always read in one request: such a gap costs less than anything else.
const NEAR: u64 = 4096;
/// The most plans at once. Calls that ended early leave plans behind.
const PLANS: usize = 16;

/// How a [`ReadAhead`] divides what will be read into requests.
///
/// Two ranges become one request if the gap between them is short enough, and gaps are at most a quarter of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requests {
    longest: usize,
    gap: u64,
    align: u64,
    threads: usize,
    memory: u64,
}

impl Requests {
    /// For a drive: requests of at most 2 MiB from four threads, into at most 24 MiB of memory. Gaps of at most 64 KiB are
    /// read. Requests start and end at multiples of 4 KiB, as direct reads must.
    pub const fn drive() -> Self {
        let (longest, threads) = (PIECE, 4);
        Self {
            longest,
            gap: 64 << 10,
            align: 4096,
            threads,
            memory: 3 * (threads * longest) as u64,
        }
    }

    /// For a server, which answers each request after tens of milliseconds: requests of at most 16 MiB from 32 threads,
    /// into at most 192 MiB of memory. Gaps of at most 1 MiB are read.
    pub const fn server() -> Self {
        Self { longest: 16 << 20, gap: 1 << 20, align: 1, threads: 32, memory: 192 << 20 }
    }

    /// Sets the length of the longest request, in bytes.
    ///
    /// # Panics
    /// If it is 0.
    #[must_use]
    pub const fn with_longest(self, longest: usize) -> Self {
        assert!(longest > 0, "expected requests of at least one byte, found 0");
        Self { longest, ..self }
    }

    /// Sets the length of the longest gap between two ranges that is read with them, in bytes.
    #[must_use]
    pub const fn with_gap(self, gap: u64) -> Self {
        Self { gap, ..self }
    }

    /// Sets the number of requests at once. Each takes a thread.
    ///
    /// # Panics
    /// If it is 0.
    #[must_use]
    pub const fn with_threads(self, threads: usize) -> Self {
        assert!(threads > 0, "expected at least one thread, found 0 threads");
        Self { threads, ..self }
    }

    /// Sets the memory for what was read and is not used yet, in bytes. Reading goes on when some of it is free.
    #[must_use]
    pub const fn with_memory(self, memory: u64) -> Self {
        Self { memory, ..self }
    }

    /// The requests for these ranges, in the order of their offsets.
    fn divide(&self, mut ranges: Vec<Range<u64>>) -> Vec<Request> {
        ranges.sort_unstable_by_key(|range| range.start);
        let mut requests = Vec::new();
        let mut parts: Vec<Range<u64>> = Vec::new();
        let mut gaps = 0;
        for range in ranges {
            if let (Some(first), Some(last)) =
                (parts.first().map(|part| part.start), parts.last_mut())
            {
                if range.start <= last.end {
                    last.end = last.end.max(range.end);
                    continue;
                }
                let gap = range.start - last.end;
                let wasted = gaps + gap > (range.end - first) / 4;
                if gap > NEAR && (gap > self.gap || wasted) {
                    self.cut(&parts, &mut requests);
                    parts.clear();
                    gaps = 0;
                } else {
                    gaps += gap;
                }
            }
            parts.push(range);
        }
        self.cut(&parts, &mut requests);
        requests
    }

    /// Adds the requests for ranges that are read together.
    fn cut(&self, parts: &[Range<u64>], requests: &mut Vec<Request>) {
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return };
        let end = last.end.checked_next_multiple_of(self.align).unwrap_or(last.end);
        let mut start = first.start - first.start % self.align;
        let mut parts = parts.iter().peekable();
        while start < end {
            let stop = end.min(start.saturating_add(self.longest as u64));
            let mut unused = 0;
            while let Some(part) = parts.peek().filter(|part| part.start < stop) {
                unused += part.end.min(stop) - part.start.max(start);
                if part.end > stop {
                    break;
                }
                parts.next();
            }
            requests.push(Request { range: start..stop, unused, state: RequestState::Waiting });
            start = stop;
        }
    }
}

/// A source whose bytes are fetched by several threads before they are needed.
///
/// Use it for an archive of which much is read, if each read has to wait for a drive or a server. An [`Archive`](crate::Archive)
/// says which ranges a call will read ([`ReadAt::will_read`]): all tensors of a value, a slice, a column. These ranges
/// become [requests](Requests). While one tensor is copied and verified, the next ones are already being read.
///
/// [`ReadAhead::open`] reads a file past the page cache: an archive then loads at the speed of the drive, whatever the
/// sizes of its tensors and however far the system reads ahead.
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
/// For a source that waits for a server, use [`Requests::server`]:
///
/// ```
/// use tenarc::io::{ReadAhead, ReadAt, Requests};
/// use tenarc::{Archive, Result};
///
/// fn open<S: ReadAt + Send + 'static>(source: S) -> Result<Archive<ReadAhead<S>>> {
///     Archive::new(ReadAhead::with(source, Requests::server()))
/// }
/// # open(tenarc::OArchive::new(Vec::new())?.finish()?)?;
/// # Ok::<(), tenarc::Error>(())
/// ```
///
/// A [`File`](std::fs::File) is read more slowly with it: its reads reach the system out of order, which takes them for
/// random ones.
///
/// Reads that nobody has announced go to the source. The threads start when they are needed, and end when the
/// value is dropped, after the reads that are in progress.
///
/// The content of the source must not change while it is read: bytes may have been read before. Files of archives that are
/// [appended to](crate::OArchive::append) do not change before their last end mark. A child process after `fork` must not
/// use it, because it has none of the threads.
pub struct ReadAhead<S> {
    shared: Arc<Shared<S>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// The length of the source when its end was last read. 0 if it was not: the source is asked.
    len: AtomicU64,
}

impl<S> fmt::Debug for ReadAhead<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadAhead").field("requests", &self.shared.requests).finish_non_exhaustive()
    }
}

struct Shared<S> {
    source: S,
    requests: Requests,
    state: Mutex<State>,
    /// A request can be started, or the threads must end.
    wanted: Condvar,
    /// A request has ended.
    done: Condvar,
}

#[derive(Default)]
struct State {
    /// What will be read. The latest plan is last.
    plans: Vec<Plan>,
    /// The number of the next plan.
    next: u64,
    /// The memory of all requests that are being read or were read.
    held: u64,
    /// The length of the longest requests, and memory for the next ones. Other memory is rarely needed again.
    longest: usize,
    spare: Vec<Aligned>,
    closed: bool,
}

/// The requests of one call.
struct Plan {
    number: u64,
    requests: Vec<Request>,
    /// Whether it was made before it was known which bytes are needed.
    is_guess: bool,
    /// The request that was used last. Those before it are not started any more.
    at: usize,
}

struct Request {
    range: Range<u64>,
    /// The number of bytes in it that will be used.
    unused: u64,
    state: RequestState,
}

enum RequestState {
    Waiting,
    Reading,
    Read(Arc<Content>),
    /// All of it was used, or it could not be read. Whoever needs it reads it from the source, and gets the error from there.
    Gone,
}

struct Content {
    memory: Aligned,
    len: usize,
}

/// Which request: the number of its plan and the place in it.
type RequestId = (u64, usize);

impl State {
    /// The request with this byte.
    fn find(&self, offset: u64) -> Option<RequestId> {
        self.plans.iter().rev().find_map(|plan| {
            let behind = plan.requests.partition_point(|request| request.range.start <= offset);
            let at = behind.checked_sub(1)?;
            let request = plan.requests.get(at)?;
            let is_there =
                request.range.contains(&offset) && !matches!(request.state, RequestState::Gone);
            is_there.then_some((plan.number, at))
        })
    }

    /// What is left of a range behind the bytes that are in requests.
    fn behind_requests(&mut self, mut range: Range<u64>) -> Range<u64> {
        while range.start < range.end
            && let Some(id) = self.find(range.start)
            && let Some(request) = self.request(id)
        {
            range.start = request.range.end;
        }
        range
    }

    /// Corrects the guesses, now that it is known which bytes of them are needed. The ranges are in the order of their offsets.
    /// Requests that were not started are dropped, because a plan without a guess may read less.
    fn correct(&mut self, ranges: &[Range<u64>]) {
        let mut dropped = Vec::new();
        for plan in self.plans.iter_mut().filter(|plan| plan.is_guess) {
            plan.is_guess = false;
            for request in &mut plan.requests {
                let Range { start, end } = request.range;
                let first = ranges.partition_point(|range| range.end <= start);
                let inside = ranges.iter().skip(first).take_while(|range| range.start < end);
                request.unused =
                    inside.map(|range| range.end.min(end) - range.start.max(start)).sum();
                if request.unused == 0 || matches!(request.state, RequestState::Waiting) {
                    dropped.push(std::mem::replace(&mut request.state, RequestState::Gone));
                }
            }
        }
        for state in dropped {
            self.free(state);
        }
    }

    fn request(&mut self, (number, at): RequestId) -> Option<&mut Request> {
        self.plans.iter_mut().find(|plan| plan.number == number)?.requests.get_mut(at)
    }

    /// Notes that bytes of a request were used. Ends its plan if nothing is left of it.
    fn used(&mut self, id: RequestId, bytes: u64) {
        let Some(request) = self.request(id) else { return };
        request.unused = request.unused.saturating_sub(bytes);
        if request.unused == 0 {
            let content = std::mem::replace(&mut request.state, RequestState::Gone);
            self.free(content);
            let is_gone = |request: &Request| matches!(request.state, RequestState::Gone);
            let ended = |plan: &Plan| {
                plan.number == id.0 && plan.requests.iter().skip(plan.at).all(is_gone)
            };
            if let Some(place) = self.plans.iter().position(ended) {
                self.end(place);
            }
        }
    }

    /// Notes that the next requests to start are those behind this one.
    fn reach(&mut self, (number, at): RequestId) {
        if let Some(plan) = self.plans.iter_mut().find(|plan| plan.number == number) {
            plan.at = plan.at.max(at);
        }
    }

    /// Forgets a plan. What is being read for it is dropped when it was read.
    fn end(&mut self, place: usize) {
        for request in self.plans.remove(place).requests {
            self.free(request.state);
        }
        if self.plans.is_empty() {
            self.spare.clear();
        }
    }

    /// Keeps the memory of a request, unless a thread still copies from it.
    fn free(&mut self, state: RequestState) {
        if let RequestState::Read(content) = state {
            self.held -= content.memory.bytes().len() as u64;
            let memory = Arc::into_inner(content).map(|content| content.memory);
            let longest = self.longest;
            self.spare.extend(memory.filter(|memory| memory.bytes().len() == longest));
        }
    }

    /// The next request to start: that of the latest plan for which there is memory.
    fn startable(&self, requests: &Requests) -> Option<RequestId> {
        self.plans.iter().rev().find_map(|plan| {
            let mut later = plan.requests.iter().enumerate().skip(plan.at);
            let (at, request) =
                later.find(|(_, request)| matches!(request.state, RequestState::Waiting))?;
            let len = requests.memory_of(&request.range);
            (self.held == 0 || self.held + len <= requests.memory).then_some((plan.number, at))
        })
    }
}

impl Requests {
    /// The memory that a request takes.
    fn memory_of(&self, range: &Range<u64>) -> u64 {
        let (len, longest) = (range.end - range.start, self.longest as u64);
        // Nearly all requests of a long plan have the same length, and then the same memory.
        if len > longest / 2 { longest } else { len }
    }
}

impl<S> Shared<S> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: ReadAt> Shared<S> {
    /// Reads a request that waits.
    fn read<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        id: RequestId,
    ) -> MutexGuard<'s, State> {
        let Some(request) = state.request(id) else { return state };
        request.state = RequestState::Reading;
        let range = request.range.clone();
        let memory = self.requests.memory_of(&range);
        state.held += memory;
        let memory = usize::try_from(memory).unwrap_or(usize::MAX);
        let spare = if memory == state.longest { state.spare.pop() } else { None };
        drop(state);

        let mut content = Content { memory: spare.unwrap_or_else(|| Aligned::new(memory)), len: 0 };
        let wanted = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        // If the source panics, nobody must wait for the request.
        let read = catch_unwind(AssertUnwindSafe(|| {
            let out = content.memory.bytes_mut().get_mut(..wanted).unwrap_or_default();
            read_up_to(&self.source, out, range.start).ok()
        }));
        let read = read.unwrap_or_else(|panic| {
            // Its drop may panic too. Then the request would be waited for forever.
            std::mem::forget(panic);
            None
        });
        content.len = read.unwrap_or(0);
        let content = RequestState::Read(Arc::new(content));
        let mut state = self.lock();
        match state.request(id) {
            Some(request) if read.is_some() && request.unused > 0 => request.state = content,
            Some(request) => {
                request.state = RequestState::Gone;
                state.free(content);
            }
            None => state.free(content),
        }
        self.done.notify_all();
        state
    }

    /// What each thread does until the source is dropped.
    fn read_requests(&self) {
        let mut state = self.lock();
        while !state.closed {
            state = match state.startable(&self.requests) {
                Some(id) => self.read(state, id),
                None => self.wanted.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

impl ReadAhead<DirectFile> {
    /// Opens a file that is read ahead and past the page cache; see [`DirectFile`].
    ///
    /// # Errors
    /// If the file cannot be opened, or is not a regular file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Ok(Self::with(DirectFile::open(path)?, Requests::drive()))
    }
}

impl<S: ReadAt + Send + 'static> ReadAhead<S> {
    /// Reads this source ahead.
    pub fn with(source: S, requests: Requests) -> Self {
        let state = Mutex::new(State { longest: requests.longest, ..State::default() });
        let (wanted, done) = <(Condvar, Condvar)>::default();
        let shared = Arc::new(Shared { source, requests, state, wanted, done });
        Self { shared, threads: Mutex::default(), len: AtomicU64::new(0) }
    }

    /// Lets threads start so many requests. A single one is read by the caller, when it needs it.
    fn wake(&self, requests: usize) {
        let shared = &self.shared;
        shared.wanted.notify_all();
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        while requests > 1 && threads.len() < shared.requests.threads.min(requests) {
            let shared = Arc::clone(shared);
            let builder = thread::Builder::new().name("tenarc-read-ahead".into());
            // Without threads, requests are read when they are needed.
            let Ok(thread) = builder.spawn(move || shared.read_requests()) else { return };
            threads.push(thread);
        }
    }
}

impl<S: ReadAt + Send + 'static> ReadAhead<S> {
    /// Makes a plan for these ranges, as far as none has them.
    fn announced(&self, ranges: &mut dyn Iterator<Item = Range<u64>>, is_guess: bool) {
        let shared = &*self.shared;
        // Whoever announces them may have lengths from a damaged file.
        let size = match self.len.load(Ordering::Relaxed) {
            0 => shared.source.size().unwrap_or(0),
            len => len,
        };
        let inside = ranges.map(|range| range.start..range.end.min(size));
        let mut ranges: Vec<_> = inside.filter(|range| range.start < range.end).collect();
        ranges.sort_unstable_by_key(|range| range.start);
        let mut state = shared.lock();
        if !is_guess {
            state.correct(&ranges);
        }
        let behind = ranges.into_iter().map(|range| state.behind_requests(range));
        let requests =
            shared.requests.divide(behind.filter(|range| range.start < range.end).collect());
        let count = requests.len();
        if count == 0 {
            return;
        }
        let number = state.next;
        state.next += 1;
        state.plans.push(Plan { number, requests, is_guess, at: 0 });
        if state.plans.len() > PLANS {
            state.end(0);
        }
        drop(state);
        self.wake(count);
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
        let shared = &*self.shared;
        let mut state = shared.lock();
        while let Some(id) = state.find(offset) {
            state.reach(id);
            let Some(request) = state.request(id) else { break };
            match &request.state {
                RequestState::Waiting => state = shared.read(state, id),
                RequestState::Reading => {
                    state = shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                RequestState::Gone => break,
                RequestState::Read(content) => {
                    let content = Arc::clone(content);
                    let inside =
                        usize::try_from(offset - request.range.start).unwrap_or(usize::MAX);
                    let there = content.memory.bytes().get(..content.len);
                    let there = there.and_then(|there| there.get(inside..)).unwrap_or_default();
                    if there.is_empty() {
                        // The source ends before.
                        break;
                    }
                    drop(state);
                    let len = there.len().min(out.len());
                    out[..len].copy_from_slice(&there[..len]);
                    drop(content);
                    shared.lock().used(id, len as u64);
                    // There may be memory for another one.
                    shared.wanted.notify_one();
                    return Ok(len);
                }
            }
        }
        drop(state);
        shared.source.read_at(out, offset)
    }

    fn will_read(&self, ranges: &mut dyn Iterator<Item = Range<u64>>) {
        self.announced(ranges, false);
    }

    fn will_read_most(&self, range: Range<u64>) {
        self.announced(&mut std::iter::once(range), true);
    }

    fn size(&self) -> io::Result<u64> {
        self.shared.source.size()
    }

    fn read_last(&self, out: &mut Vec<u8>) -> io::Result<u64> {
        let len = self.shared.source.read_last(out)?;
        self.len.store(len, Ordering::Relaxed);
        Ok(len)
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
        state.plans.clear();
        drop(state);
        self.shared.wanted.notify_all();
        let threads = self.threads.get_mut().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.drain(..) {
            // Panics of the source are caught.
            let _ = thread.join();
        }
    }
}
