//! Tables are written and read group by group: a group has at most 65,536 rows.

use std::{fmt, io};

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tenarc::archive::{Compaction, SaveOptions};
use tenarc::io::SyncLevel;
use tenarc::ser::EncodeOptions;
use tenarc::{Archive, IArchive, OArchive, Tensor};

use tenarc_test_support::alloc::peak_of;

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Row {
    id: u64,
    values: [f32; 20],
    label: String,
}

/// The bytes of a row: in columns, and in memory. The first are fewer, as short lengths take a byte.
const STORED: usize = 8 + 80 + LABEL;
const IN_MEMORY: usize = size_of::<Row>() + LABEL;
const LABEL: usize = 16;
/// The most rows of a group.
const GROUP: usize = 1 << 16;
/// The columns of a group and its rows, and half of that while a `Vec` grows.
const GROUP_AND_ROWS: usize = (STORED + IN_MEMORY) * GROUP / 2 * 3;
/// About 27 MiB.
const GROUPS: usize = 4;

#[allow(clippy::cast_precision_loss)] // The numbers are only samples.
fn row(id: u64) -> Row {
    Row { id, values: [id as f32; 20], label: format!("row {id:012}") }
}

/// Rows that are made while they are written.
struct Made(u64);

impl Serialize for Made {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((0..usize::try_from(self.0).unwrap()).map(|id| row(id as u64)))
    }
}

/// Counts rows, and keeps none.
struct Counted(u64);

impl<'de> Deserialize<'de> for Counted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Count;

        impl<'de> Visitor<'de> for Count {
            type Value = Counted;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("rows")
            }

            fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<Counted, S::Error> {
                let mut count = 0;
                while seq.next_element::<Row>()?.is_some() {
                    count += 1;
                }
                Ok(Counted(count))
            }
        }

        deserializer.deserialize_seq(Count)
    }
}

const ROWS: u64 = (GROUPS * GROUP) as u64;

#[track_caller]
fn check(what: &str, most: usize, allowed: usize) {
    println!("{what}: {} KiB", most >> 10);
    assert!(most < allowed, "{what}: {most} bytes, allowed are {allowed}");
}

#[test]
fn rows_are_written_and_read_group_by_group() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rows.tenarc");
    let options = SaveOptions::default().with_sync(SyncLevel::Off);
    // A group that is complete, and the next one, whose columns grow.
    let two_groups = 5 * STORED * GROUP / 2;

    let (saved, most) = peak_of(|| tenarc::archive::save_with(&path, &Made(ROWS), options));
    saved.unwrap();
    check("save", most, two_groups);
    let columns = EncodeOptions::default().with_columns(true);
    let (written, most) = peak_of(|| tenarc::ser::to_writer_with(io::sink(), &Made(ROWS), columns));
    written.unwrap();
    check("to_writer", most, two_groups);

    let archive = Archive::open(&path).unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() > ROWS * STORED as u64);
    let segment = archive.only().unwrap();
    let table = segment.table("").unwrap();
    let (count, most) = peak_of(|| {
        let rows = table.iter::<Row>().zip(0..);
        rows.map(|(read, id)| assert_eq!(read.unwrap(), row(id))).count()
    });
    assert_eq!(count as u64, ROWS);
    check("iter", most, GROUP_AND_ROWS);
    // Few rows of a large group: their bytes, and a chunk at each end of each column.
    let (read, most) = peak_of(|| table.rows::<Row>(100_000..100_100).unwrap());
    assert_eq!(read[99], row(100_099));
    check("rows", most, 4 << 20);
    let (read, most) = peak_of(|| table.row::<Row>(100_000).unwrap());
    assert_eq!(read, row(100_000));
    check("row", most, 1 << 20);
}

#[test]
fn a_group_of_a_message_is_gone_before_the_next_one() {
    let columns = EncodeOptions::default().with_columns(true);
    let bytes = tenarc::ser::to_vec_with(&Made(ROWS), columns).unwrap();
    let (Counted(count), most) = peak_of(|| tenarc::from_reader(&bytes[..]).unwrap());
    assert_eq!(count, ROWS);
    // One group, and half of it while a block grows. Its rows are not kept.
    check("from_reader", most, STORED * GROUP / 2 * 3);
}

#[test]
fn rows_of_a_stream_are_read_value_by_value() {
    const VALUES: u64 = 4;
    let mut out = OArchive::new(Vec::new()).unwrap();
    for _ in 0..VALUES {
        out.save_as("rows", &Made(GROUP as u64)).unwrap();
    }
    let bytes = out.finish().unwrap();
    let (count, most) = peak_of(|| {
        let mut archive = IArchive::new(&bytes[..]).unwrap();
        let rows = archive.rows::<Row>("rows").zip((0..GROUP as u64).cycle());
        rows.map(|(read, id)| assert_eq!(read.unwrap(), row(id))).count()
    });
    assert_eq!(count as u64, VALUES * GROUP as u64);
    check("rows of a stream", most, GROUP_AND_ROWS);
}

#[test]
fn a_table_is_compacted_a_few_groups_at_a_time() {
    #[derive(Serialize)]
    struct Image {
        id: u32,
        image: Tensor<Vec<u8>>,
    }
    const PARTS: usize = 20;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("images.tenarc");
    let options = || SaveOptions::default().with_sync(SyncLevel::Off).with_checksums(false);
    // 11 MiB, whose order is the opposite of that of their numbers.
    let image = |id| Image { id, image: Tensor(vec![7; 16 << 10]) };
    let images: Vec<Image> = (0..700).rev().map(image).collect();
    let mut out = OArchive::create(&path, options()).unwrap();
    for _ in 0..PARTS {
        out.save_as("images", &images).unwrap();
    }
    out.finish().unwrap();
    let archive = Archive::open(&path).unwrap();
    let compact = |what: &str, compaction: &Compaction, allowed: usize| {
        let mut out = OArchive::with_options(io::sink(), options()).unwrap();
        let (done, most) = peak_of(|| compaction.write_to(&archive, &mut out).unwrap());
        assert_eq!(done.tables()[0].rows(), (PARTS * images.len()) as u64);
        assert!(out.position() > 200 << 20);
        check(what, most, allowed);
    };
    // The groups of a segment, 64 MiB, the next group and what is read.
    compact("compact", &Compaction::new(), 128 << 20);
    // Also a batch of rows, twice.
    compact("sort", &Compaction::new().sorted_by("id"), 208 << 20);
}
