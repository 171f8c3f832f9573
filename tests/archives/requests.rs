//! How often a source is read: each read of an object store takes as long as a request.

use serde::{Deserialize, Serialize};
use tenarc::archive::{SaveOptions, col};
use tenarc::{Archive, OArchive};

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
