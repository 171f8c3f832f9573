//! How often a source is read: each read of an object store takes as long as a request.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tenarc::archive::{Compaction, Compression, SaveOptions, col};
use tenarc::io::{ReadAhead, ReadAt, Requests};
use tenarc::{Archive, OArchive, Tensor};

use super::support::{Counted, weights};

/// Opens an archive that is not in memory. Opening is one read.
fn opened(bytes: Vec<u8>) -> Archive<Counted> {
    let archive = Archive::new(Counted::new(bytes)).unwrap();
    assert_eq!(reads(&archive), 1, "to open");
    archive
}

/// The number of reads since the last call.
fn reads(archive: &Archive<Counted>) -> usize {
    archive.source().log.totals().0
}

/// An archive of so many values, longer than what opening reads.
fn values<T: Serialize>(count: usize, value: &T) -> Vec<u8> {
    let options = SaveOptions::default().with_inline_below(64);
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    for number in 0..count {
        out.save_as(&format!("value {number}"), value).unwrap();
    }
    out.finish().unwrap()
}

#[test]
fn opening_reads_once_however_long_the_archive_is() {
    for count in [0, 1, 63, 64, 1000] {
        assert_eq!(opened(values(count, &7)).len(), count as u64);
    }
    // An end mark that is longer than the bytes at the end takes another read.
    let mut out = OArchive::new(Vec::new()).unwrap();
    for number in 0..63 {
        out.save_as(&format!("{number:0>900}"), &number).unwrap();
    }
    let archive = Archive::new(Counted::new(out.finish().unwrap())).unwrap();
    assert_eq!((reads(&archive), archive.len()), (2, 63));
}

#[test]
fn listing_reads_each_block_of_the_directory_once() {
    let archive = opened(values(1000, &[1, 2, 3]));
    let entries: Vec<_> = archive.entries().map(Result::unwrap).collect();
    assert_eq!(reads(&archive), 15);
    assert_eq!(entries.len(), 1000);
    assert_eq!((entries[7].name(), entries[7].rows()), (Some("value 7"), Some(3)));
    let archive = opened(values(200, &vec!["a", "b", "c"]));
    assert!(archive.entries().all(|entry| entry.unwrap().rows() == Some(3)));
    // The third block is among the bytes at the end.
    assert_eq!(reads(&archive), 2);
    // The digests of the last 40 values are not in the directory; of these, the last ones are among the bytes at the end.
    let archive = opened(values(1000, &7));
    archive.digest().unwrap();
    let found = reads(&archive);
    assert!(found <= 15 + 2 * 40, "{found}");
}

#[test]
fn a_tensor_takes_one_read_beside_its_header() {
    let model = [weights(60_000, 1), weights(60_000, 2)];
    let archive = opened(values(1, &model));
    let first: Vec<f32> = archive.tensor("0").unwrap();
    assert_eq!(first, *model[0]);
    // The header, and the tensor. Its checksums are among the last bytes.
    let log = archive.source().log.take();
    assert_eq!(log.len(), 2, "{log:?}");
    let second: Vec<f32> = archive.tensor("1").unwrap();
    assert_eq!(second, *model[1]);
    assert_eq!(reads(&archive), 1);
    let part: Vec<f32> = archive.slice("1", (5000..5010,)).unwrap();
    assert_eq!(part, model[1][5000..5010]);
    assert_eq!(reads(&archive), 1);

    let archive = opened(values(3, &model));
    let segment = archive.named("value 0").unwrap();
    segment.tensor::<Vec<f32>>("0").unwrap();
    // The header, the checksums, the tensor.
    assert_eq!(reads(&archive), 3);
    segment.tensor::<Vec<f32>>("1").unwrap();
    assert_eq!(reads(&archive), 1);
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Event {
    id: u64,
    score: f32,
}

#[test]
fn a_table_of_daily_appends_reads_no_headers_that_are_not_needed() {
    let mut out = OArchive::new(Vec::new()).unwrap();
    for day in 0..365 {
        let events: Vec<_> =
            (0..1000).map(|id| Event { id: day * 1000 + id, score: 0.5 }).collect();
        out.save_as("events", &events).unwrap();
    }
    let archive = opened(out.finish().unwrap());
    let table = archive.table("events").unwrap();
    assert_eq!(table.len(), 365_000);
    // One for each block of the directory.
    assert_eq!(reads(&archive), 5);
    let row: Event = table.row(123_456).unwrap();
    assert_eq!(row, Event { id: 123_456, score: 0.5 });
    // The header of the value, and a column each, because the columns are in buffers.
    assert_eq!(reads(&archive), 3);
}

#[test]
fn a_filter_reads_its_columns_and_groups_with_rows_that_meet_it() {
    #[derive(Serialize, Deserialize)]
    struct Row {
        day: u32,
        score: u16,
        weights: [f32; 16],
    }
    const ROWS: u32 = 200_000;
    let row = |n: u32| Row { day: n / 1000, score: (n % 100) as u16, weights: [n as f32; 16] };
    let rows: Vec<_> = (0..ROWS).map(row).collect();
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save_as("rows", &rows).unwrap();
    let archive = opened(out.finish().unwrap());
    let table = archive.table("rows").unwrap();
    table.columns().unwrap();
    let read = || archive.source().log.totals().1;
    read();
    let (days, scores) = (u64::from(ROWS) * 4, u64::from(ROWS) * 2);
    // Checksums are read once.
    let few = 20_000;
    assert_eq!(table.filter(col("day").gt(1000)).rows::<Row>().unwrap().len(), 0);
    let found = read();
    assert!((days..days + few).contains(&found), "{found} of {days}");
    let both = col("day").eq(70).and(col("score").lt(50));
    assert_eq!(table.filter(both.clone()).count().unwrap(), 500);
    let found = read();
    assert!((days + scores..days + scores + few).contains(&found), "{found}");
    // The rows are near each other, so those between them are read too.
    assert_eq!(table.filter(both.clone()).rows::<Row>().unwrap().len(), 500);
    let rest = read() - days - scores;
    assert!((500 * 70..1000 * 70 + few).contains(&rest), "{rest}");
    let weights: Vec<[f32; 16]> = table.filter(both).column("weights").unwrap();
    assert_eq!((weights.len(), weights[7]), (500, [70_007.0; 16]));
    // Whole chunks of 1 MiB, whose checksums are verified.
    let rest = read() - days - scores;
    assert!((1..=2 << 20).contains(&rest), "{rest}");
}

#[test]
fn a_filter_reads_only_groups_that_may_have_rows_that_meet_it() {
    #[derive(Serialize)]
    struct Row {
        id: u32,
        day: String,
        odd: Option<u8>,
        even: [f32; 2],
    }
    const ROWS: u32 = 300_000;
    const GROUP: u64 = 1 << 16;
    let odd = |n: u32| (n >= 100_000).then_some((n % 100) as u8);
    let day = |n: u32| format!("2026-11-{:02}", n / 10_000);
    let rows: Vec<_> =
        (0..ROWS).map(|n| Row { id: n, day: day(n), odd: odd(n), even: [0.5; 2] }).collect();
    let options = SaveOptions::default().with_statistics(true);
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    out.save_as("rows", &rows).unwrap();
    let archive = opened(out.finish().unwrap());
    let table = archive.table("rows").unwrap();
    table.columns().unwrap();
    let read = || archive.source().log.totals().1;
    let few = 20_000;
    for (filter, rows, bytes) in [
        (col("id").lt(10), 10, 4 * GROUP),
        (col("id").eq(1_000_000), 0, 0),
        (!col("id").lt(ROWS), 0, 0),
        (col("id").gt_eq(ROWS - 10).or(col("id").eq(-1)), 10, 4 * (u64::from(ROWS) - 4 * GROUP)),
        // Both columns of a group are read, and none of the other groups.
        (col("id").gt(70_000).and(col("day").starts_with("2026-11-07")), 9_999, 5 * GROUP),
        // The values that are not null, and a bit for each row.
        (col("odd").is_not_null().and(col("id").lt(80_000)), 0, 4 * GROUP + GROUP / 8 + 31_072),
        (col("odd").is_null().and(col("id").gt(200_000)), 0, 0),
        (col("odd").gt(99), 0, 0),
        // A column without statistics can be compared with null.
        (col("even").is_null().and(col("id").lt(0)), 0, 0),
    ] {
        read();
        assert_eq!(table.filter(filter.clone()).count().unwrap(), rows, "{filter:?}");
        let found = read();
        assert!((bytes..=bytes + few).contains(&found), "{filter:?}: {found} of {bytes}");
    }
}

/// A server, each of whose answers takes a while. It counts.
struct Server {
    bytes: Vec<u8>,
    wait: Duration,
    asked: Mutex<Asked>,
}

/// What a server was asked for.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
struct Asked {
    requests: usize,
    bytes: u64,
    /// Requests that wait, and the most that waited at the same time.
    now: usize,
    together: usize,
    /// How often a request began while no other one waited.
    rounds: usize,
}

impl Server {
    fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, wait: Duration::from_millis(10), asked: Mutex::default() }
    }

    fn ask<T>(&self, answer: impl FnOnce() -> (T, u64)) -> T {
        let mut asked = self.asked.lock().unwrap();
        asked.requests += 1;
        asked.rounds += usize::from(asked.now == 0);
        asked.now += 1;
        asked.together = asked.together.max(asked.now);
        drop(asked);
        std::thread::sleep(self.wait);
        let (answer, len) = answer();
        let mut asked = self.asked.lock().unwrap();
        asked.bytes += len;
        asked.now -= 1;
        answer
    }
}

impl ReadAt for Server {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        // The first answer has said where the end is.
        if offset >= self.bytes.len() as u64 {
            return Ok(0);
        }
        self.ask(|| {
            let read = self.bytes.read_at(out, offset);
            let len = *read.as_ref().unwrap() as u64;
            (read, len)
        })
    }

    fn size(&self) -> io::Result<u64> {
        panic!("a suffix says how long the archive is")
    }

    fn read_last(&self, out: &mut Vec<u8>) -> io::Result<u64> {
        let start = self.bytes.len().saturating_sub(64 << 10);
        out.clear();
        out.extend_from_slice(&self.bytes[start..]);
        self.ask(|| (Ok(self.bytes.len() as u64), (self.bytes.len() - start) as u64))
    }
}

type Served = Archive<ReadAhead<Server>>;

fn served(bytes: Vec<u8>) -> Served {
    Archive::new(ReadAhead::with(Server::new(bytes), Requests::server())).unwrap()
}

/// What the server was asked for since the last call.
fn asked(archive: &Served) -> Asked {
    std::mem::take(&mut *archive.source().get_ref().asked.lock().unwrap())
}

fn events(days: u64) -> Vec<u8> {
    let mut out = OArchive::new(Vec::new()).unwrap();
    for day in 0..days {
        let events: Vec<_> =
            (0..1000).map(|id| Event { id: day * 1000 + id, score: day as f32 }).collect();
        out.save_as("events", &events).unwrap();
    }
    out.finish().unwrap()
}

#[test]
fn a_server_lists_a_thousand_values_in_one_round() {
    let archive = served(values(1000, &weights(100, 3)));
    assert_eq!(asked(&archive).requests, 1);
    assert_eq!(archive.entries().flatten().count(), 1000);
    let found = asked(&archive);
    assert!(found.requests <= 15 && found.rounds <= 2, "{found:?}");
    // Headers are read 64 at a time, and little is between them.
    assert_eq!(archive.segments().flatten().count(), 1000);
    let found = asked(&archive);
    assert!(found.requests < 100, "{found:?}");
}

#[test]
fn a_server_gives_one_tensor_of_many_in_three_requests() {
    let model: BTreeMap<_, _> = (0..20).map(|n| (format!("w{n}"), weights(50_000, n))).collect();
    let archive = served(values(1, &model));
    let tensor: Vec<f32> = archive.tensor("w7").unwrap();
    assert_eq!(tensor, *model["w7"]);
    let found = asked(&archive);
    assert_eq!(found.requests, 3);
    assert!(found.bytes < (64 << 10) + 3000 + 200_000, "{found:?}");
    // The header is known, and so are the checksums.
    let _: Vec<f32> = archive.tensor("w8").unwrap();
    assert_eq!(asked(&archive).requests, 1);
}

#[test]
fn a_server_gives_a_whole_value_in_long_requests_side_by_side() {
    let requests = Requests::server().with_longest(1 << 20);
    let model: Vec<_> = (0..40).map(|n| weights(50_000, n)).collect();
    let bytes = values(1, &model);
    let len = bytes.len() as u64;
    let archive = Archive::new(ReadAhead::with(Server::new(bytes), requests)).unwrap();
    let loaded: Vec<Tensor<Vec<f32>>> = archive.load().unwrap();
    assert_eq!(loaded, model);
    let found = asked(&archive);
    // One to open it, and then all of it at once: the header is read with the first tensors.
    assert!(found.requests <= 9 && found.together > 4, "{found:?}");
    assert!(found.rounds <= 3, "{found:?}");
    assert!(found.bytes < len + (66 << 10), "{found:?} of {len}");
    archive.verify().unwrap();
    let found = asked(&archive);
    assert!(found.together > 4, "{found:?}");
    archive.only().unwrap().to_parts().unwrap();
    let found = asked(&archive);
    assert!(found.requests <= 8, "{found:?}");
}

#[test]
fn a_server_gives_a_whole_value_in_two_rounds() {
    let wait = Duration::from_millis(200);
    for (tensors, requests) in [(20, 5), (2, 2)] {
        let model: Vec<_> = (0..tensors).map(|n| weights(50_000, n)).collect();
        let bytes = values(1, &model);
        let len = bytes.len() as u64;
        let server = Server { wait, ..Server::new(bytes) };
        let ahead = ReadAhead::with(server, Requests::server().with_longest(1 << 20));
        let started = Instant::now();
        let archive = Archive::new(ahead).unwrap();
        let loaded: Vec<Tensor<Vec<f32>>> = archive.load().unwrap();
        assert!(started.elapsed() < 3 * wait, "{:?}", started.elapsed());
        assert_eq!(loaded, model);
        let found = asked(&archive);
        assert_eq!(found.requests, requests);
        assert!(found.bytes < len + (66 << 10), "{found:?} of {len}");
    }
}

#[test]
fn a_server_gives_several_tensors_at_once() {
    let model: BTreeMap<_, _> = (0..20).map(|n| (format!("w{n:02}"), weights(50_000, n))).collect();
    let archive = served(values(1, &model));
    archive.only().unwrap();
    asked(&archive);
    let paths = ["w03", "w04", "w05", "w11"];
    let threads = std::num::NonZeroUsize::MIN;
    let tensors = archive.only().unwrap().dyn_tensors(&paths, threads).unwrap();
    assert_eq!(tensors[3].clone().into_tensor::<Vec<f32>>().unwrap(), *model["w11"]);
    let found = asked(&archive);
    assert_eq!((found.requests, found.rounds), (2, 1), "{found:?}");
    assert!(found.bytes < 4 * 200_000 + 1000, "{found:?}");
}

#[test]
fn a_server_gives_a_slice_in_few_requests() {
    use ndarray::{Array2, s};
    // Rows of 4 MiB, chunks of 64 KiB.
    let weight = Tensor(Array2::from_shape_fn((6, 1 << 20), |(row, at)| (row * at) as f32));
    let options = SaveOptions::default().with_chunk_len(64 << 10);
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    out.save(&weight).unwrap();
    let archive = served(out.finish().unwrap());
    archive.only().unwrap();
    asked(&archive);
    let rows: Array2<f32> = archive.slice("", s![..;2, 1000..2000]).unwrap();
    assert_eq!(rows, weight.slice(s![..;2, 1000..2000]));
    let found = asked(&archive);
    assert_eq!((found.requests, found.rounds), (3, 1), "{found:?}");
}

#[test]
fn a_server_gives_rows_in_one_round() {
    let events: Vec<_> = (0..200_000).map(|id| Event { id, score: 0.5 }).collect();
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save_as("events", &events).unwrap();
    let archive = served(out.finish().unwrap());
    let table = archive.table("events").unwrap();
    let rows: Vec<Event> = table.take(&[70_000, 5, 7, 199_998]).unwrap();
    assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), [70_000, 5, 7, 199_998]);
    asked(&archive);
    // Of each column, the rows of three groups.
    table.take::<Event>(&[70_000, 5, 7, 199_998]).unwrap();
    let found = asked(&archive);
    assert!(found.requests == 6 && found.rounds <= 2, "{found:?}");
    assert_eq!(found.bytes, (3 + 1 + 1) * (8 + 4));
    assert_eq!(table.row::<Event>(150_000).unwrap().id, 150_000);
    let found = asked(&archive);
    assert_eq!((found.requests, found.rounds, found.bytes), (2, 1, 12), "{found:?}");

    // The headers of several values come in one round, too.
    let archive = served(self::events(100));
    let table = archive.table("events").unwrap();
    asked(&archive);
    let rows: Vec<Event> = table.take(&[99_000, 3, 50_500]).unwrap();
    assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), [99_000, 3, 50_500]);
    let found = asked(&archive);
    assert!(found.requests <= 9 && found.rounds <= 3, "{found:?}");
}

#[test]
fn a_server_gives_a_column_of_a_compacted_table_in_eight_requests() {
    let bytes = events(365);
    let archive = served(bytes.clone());
    let scores: Vec<f32> = archive.table("events").unwrap().column("score").unwrap();
    let found = asked(&archive);
    // Blocks of the directory, headers, checksums and columns: each of these in one round or two.
    assert!(found.rounds < 40, "{found:?}");
    let expected = scores;

    let mut compacted = OArchive::new(Vec::new()).unwrap();
    let archive = Archive::new(bytes).unwrap();
    Compaction::new().write_to(&archive, &mut compacted).unwrap();
    let archive = served(compacted.finish().unwrap());
    let scores: Vec<f32> = archive.table("events").unwrap().column("score").unwrap();
    assert_eq!(scores, expected);
    let found = asked(&archive);
    assert!(found.requests <= 8, "{found:?}");
    let (column, rest) = (365_000 * 4, (64 << 10) + 2000);
    assert!(found.bytes - rest < column * 105 / 100, "{found:?}");
}

#[test]
fn a_server_gives_only_the_fields_and_groups_that_rows_need() {
    #[derive(Serialize)]
    struct Row {
        id: u32,
        weights: [f32; 16],
        name: String,
    }
    #[derive(Deserialize)]
    struct Few {
        id: u32,
    }
    let row = |id| Row { id, weights: [0.5; 16], name: format!("the row {id}") };
    let rows: Vec<_> = (0..131_072).map(row).collect();
    let plain = SaveOptions::default();
    for options in [plain.clone(), plain.with_compression(Compression::lz4())] {
        let mut out = OArchive::with_options(Vec::new(), options).unwrap();
        out.save_as("rows", &rows).unwrap();
        let archive = served(out.finish().unwrap());
        let table = archive.table("rows").unwrap();
        table.columns().unwrap();
        asked(&archive);
        // Rows of one group of two.
        let few: Vec<Few> = table.rows(100_000..130_000).unwrap();
        assert_eq!((few.len(), few[5].id), (30_000, 100_005));
        let found = asked(&archive);
        assert!(found.bytes < 65_536 * 4 + 100_000, "{found:?}");
        assert!(found.rounds <= 2, "{found:?}");
        let met = table.filter(col("id").gt_eq(131_070)).rows::<Few>().unwrap();
        assert_eq!((met.len(), met[0].id), (2, 131_070));
        let found = asked(&archive);
        assert!(found.requests < 10 && found.rounds < 6, "{found:?}");
    }
}

#[test]
fn a_server_gives_one_variable_of_all_steps_in_few_rounds() {
    #[derive(Serialize)]
    struct State {
        field: Tensor<Vec<f32>>,
        velocity: Tensor<Vec<f32>>,
    }
    let mut out = OArchive::new(Vec::new()).unwrap();
    for step in 0..50 {
        let state = State { field: weights(300_000, step), velocity: weights(1000, step) };
        out.save_as("state", &state).unwrap();
    }
    let archive = served(out.finish().unwrap());
    asked(&archive);
    let series = archive.series("state", "velocity").unwrap();
    let all: ndarray::Array2<f32> = series.stack(..).unwrap();
    assert_eq!(all.row(31).to_vec(), *weights(1000, 31));
    // Headers, checksums, tensors: 50 of each, 32 at a time.
    let found = asked(&archive);
    assert!(found.requests <= 151 && found.rounds <= 12, "{found:?}");
    let part: ndarray::Array2<f32> = series.slice(10..40, (5..8,)).unwrap();
    assert_eq!(part.row(3).to_vec(), weights(1000, 13)[5..8]);
    let found = asked(&archive);
    assert!(found.rounds <= 12, "{found:?}");
}
