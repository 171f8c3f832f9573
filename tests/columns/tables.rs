//! Tables: the rows of all sequences that were saved under one name (`SPEC.md`, section 7.3).

use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use serde::{Deserialize, Serialize};
use tenarc::archive::SaveOptions;
use tenarc::{Archive, DType, IArchive, OArchive, Tensor, Value};

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Event {
    id: u64,
    time: i64,
    label: String,
    score: Option<f32>,
    embedding: [f32; 16],
    tags: Vec<String>,
    kind: Kind,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
enum Kind {
    Click,
    Key(char),
}

/// The same rows, for a program that needs less of them.
#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Score {
    id: u64,
    score: Option<f32>,
}

fn event(id: u64) -> Event {
    let number = u16::try_from(id % 1000).unwrap();
    Event {
        id,
        time: 1_700_000_000_000 + id.cast_signed() * 7,
        label: format!("event {id}"),
        score: (!id.is_multiple_of(3)).then(|| f32::from(number)),
        embedding: [f32::from(number); 16],
        tags: (0..id % 3).map(|tag| format!("tag {tag}")).collect(),
        kind: if id.is_multiple_of(2) { Kind::Click } else { Kind::Key('é') },
    }
}

/// An archive with values of these many rows under the name, and other values between them.
fn saved(days: &[u64], columns: bool) -> (Vec<u8>, Vec<Event>) {
    let options = SaveOptions::default().with_columns(columns);
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    let mut all = Vec::new();
    for &day in days {
        let from = all.len() as u64;
        let events: Vec<_> = (from..from + day).map(event).collect();
        out.save("something else").unwrap();
        out.save_as("events", &events).unwrap();
        out.save_as("other", &[1.5; 3]).unwrap();
        all.extend(events);
    }
    (out.finish().unwrap(), all)
}

/// Numbers of rows that are near each other, far from each other, wanted twice, and in any order.
fn picks(len: u64) -> Vec<Vec<u64>> {
    let mut random = 7u64;
    let mut any = |count: u64| -> Vec<u64> {
        let mut next = || {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (random >> 33) % len
        };
        (0..count).map(|_| next()).collect()
    };
    let ends = vec![len - 1, 0, len - 1, len / 2];
    vec![Vec::new(), ends, any(10), any(300), (0..len.min(200)).rev().collect(), vec![len / 3; 4]]
}

#[test]
fn rows_by_their_numbers() {
    for (days, columns) in DAYS.iter().flat_map(|days| [(days, true), (days, false)]) {
        let (bytes, all) = saved(days, columns);
        let archive = Archive::new(&bytes[..]).unwrap();
        let table = archive.table("events").unwrap();
        let len = all.len() as u64;
        for wanted in if len == 0 { vec![Vec::new()] } else { picks(len) } {
            let expected: Vec<Event> =
                wanted.iter().map(|row| all[usize::try_from(*row).unwrap()].clone()).collect();
            assert_eq!(table.take::<Event>(&wanted).unwrap(), expected);
            let scores = expected.into_iter().map(|Event { id, score, .. }| Score { id, score });
            assert!(table.take::<Score>(&wanted).unwrap().into_iter().eq(scores));
        }
        let error = table.take::<Event>(&[0, len, 0]).unwrap_err().to_string();
        assert!(error.contains(&format!("there is no row {len}")), "{error}");
    }
}

#[test]
fn errors_of_rows_by_their_numbers_name_the_row() {
    let (bytes, _) = saved(&[100, 3000], true);
    let archive = Archive::new(&bytes[..]).unwrap();
    let table = archive.table("events").unwrap();
    #[derive(Deserialize, Debug)]
    struct Other {
        #[allow(dead_code)]
        label: u32,
    }
    let error = table.take::<Other>(&[2000, 130]).unwrap_err().to_string();
    assert!(error.contains("130.label"), "{error}");
}

const DAYS: [&[u64]; 5] = [&[20], &[100, 0, 1, 3000, 2], &[66_000, 10], &[0], &[3]];

#[test]
fn rows() {
    for (days, columns) in DAYS.iter().flat_map(|days| [(days, true), (days, false)]) {
        let (bytes, all) = saved(days, columns);
        let archive = Archive::new(&bytes[..]).unwrap();
        let table = archive.table("events").unwrap();
        let len = all.len();
        assert_eq!((table.len(), table.is_empty()), (len as u64, len == 0));
        assert_eq!(table.rows::<Event>(..).unwrap(), all);
        assert_eq!(table.iter::<Event>().collect::<Result<Vec<_>, _>>().unwrap(), all);
        for row in [0, 19, 99, 100, 101, 102, 3099, 65_535, 65_536, 66_009] {
            if let Some(expected) = all.get(row) {
                let row = row as u64;
                assert_eq!(table.row::<Event>(row).unwrap(), *expected);
                let Event { id, score, .. } = expected.clone();
                assert_eq!(table.row::<Score>(row).unwrap(), Score { id, score });
                let value: Value = table.row(row).unwrap();
                assert_eq!(value["label"], Value::Text(expected.label.clone()));
            }
        }
        for range in
            [0..0, 0..len, len / 3..len / 2, len / 2..len, 65_530.min(len)..65_540.min(len)]
        {
            let rows: Vec<Event> = table.rows(range.start as u64..range.end as u64).unwrap();
            assert_eq!(rows, all[range]);
        }
        let error = table.row::<Event>(len as u64).unwrap_err().to_string();
        assert_eq!(error, format!("there is no row {len}: the table has {len} rows"));
        assert!(table.rows::<Event>(..=len as u64).is_err());
        assert!(table.row::<Event>(u64::MAX).is_err());
    }
}

#[test]
fn columns() {
    for days in DAYS {
        let (bytes, all) = saved(days, true);
        let archive = Archive::new(&bytes[..]).unwrap();
        let table = archive.table("events").unwrap();
        let ids: Vec<u64> = table.column("id").unwrap();
        assert!(ids.iter().eq(all.iter().map(|event| &event.id)));
        let labels: Vec<String> = table.column("label").unwrap();
        assert!(labels.iter().eq(all.iter().map(|event| &event.label)));
        let scores: Vec<Option<f32>> = table.column("score").unwrap();
        assert!(scores.iter().eq(all.iter().map(|event| &event.score)));
        let kinds: Vec<Kind> = table.column("kind").unwrap();
        assert!(kinds.iter().eq(all.iter().map(|event| &event.kind)));
        if all.is_empty() {
            continue;
        }
        let columns = table.columns().unwrap();
        let named: Vec<_> = columns.iter().map(tenarc::archive::Column::path).collect();
        let expected = ["id", "time", "label", "score", "embedding", "tags", "kind", "kind.Key"];
        assert_eq!(named[..7], expected[..7]);
        assert_eq!(named.get(7), expected.get(7).filter(|_| all.len() > 1));
        let score = columns.iter().find(|column| column.path() == "score").unwrap();
        assert_eq!((score.kind(), score.is_optional()), ("optional values", true));
        assert_eq!((score.dtype(), score.row_shape()), (Some(&DType::F32), Some(&[][..])));
        let optional: Vec<_> = columns.iter().filter(|column| column.is_optional()).collect();
        assert!(optional.iter().all(|column| ["score", "kind.Key"].contains(&column.path())));
        let embedding = columns.iter().find(|column| column.path() == "embedding").unwrap();
        assert_eq!(embedding.row_shape(), Some(&[16][..]));
        let embeddings: Tensor<Array2<f32>> = table.column("embedding").unwrap();
        assert_eq!(embeddings.shape(), [all.len(), 16]);
        assert!(
            embeddings.outer_iter().zip(&all).all(|(row, event)| row.to_vec() == event.embedding)
        );
        let ids: Tensor<Array1<u64>> = table.column("id").unwrap();
        assert_eq!(ids.len(), all.len());
    }
}

#[test]
fn columns_say_what_optional_numbers_are() {
    #[derive(Serialize)]
    struct Row<T> {
        value: Option<T>,
    }
    fn rows<T: Copy + Serialize>(value: T, there: u64) -> Vec<Row<T>> {
        (0..20).map(|row| Row { value: (row < there).then_some(value) }).collect()
    }
    let dtype = |days: &[usize]| {
        let mut out = OArchive::new(Vec::new()).unwrap();
        for &day in days {
            match day {
                0 => out.save_as("t", &rows(1.5f32, 0)).unwrap(),
                1 => out.save_as("t", &rows(1.5f32, 10)).unwrap(),
                _ => out.save_as("t", &rows("text", 10)).unwrap(),
            };
        }
        let archive = Archive::new(out.finish().unwrap()).unwrap();
        let columns = archive.table("t").unwrap().columns().unwrap();
        assert_eq!((columns.len(), columns[0].is_optional()), (1, true));
        columns[0].dtype().cloned()
    };
    // Rows that are all null do not say what the others are.
    assert_eq!(dtype(&[0]), None);
    for numbers in [&[1][..], &[0, 1, 0], &[1, 0], &[1, 1]] {
        assert_eq!(dtype(numbers), Some(DType::F32), "{numbers:?}");
    }
    assert_eq!(dtype(&[1, 2]), None);
    // A null is a row of unit, which no column of numbers has.
    #[derive(Serialize)]
    struct Any {
        value: Value,
    }
    for numbers in [[false, true], [true, false]] {
        let mut out = OArchive::new(Vec::new()).unwrap();
        for is_number in numbers {
            let rows =
                (0..20).map(|_| Any { value: if is_number { 1.5.into() } else { Value::Null } });
            out.save_as("t", &rows.collect::<Vec<_>>()).unwrap();
        }
        let archive = Archive::new(out.finish().unwrap()).unwrap();
        let columns = archive.table("t").unwrap().columns().unwrap();
        assert_eq!((columns[0].dtype(), columns[0].is_optional()), (Some(&DType::F64), true));
    }
    assert_eq!(dtype(&[2, 0, 1]), None);
}

#[test]
fn columns_of_plain_arrays_are_read_row_by_row() {
    let (bytes, all) = saved(&[50, 10], false);
    let archive = Archive::new(&bytes[..]).unwrap();
    let table = archive.table("events").unwrap();
    let scores: Vec<Option<f32>> = table.column("score").unwrap();
    assert!(scores.iter().eq(all.iter().map(|event| &event.score)));
    assert!(table.columns().unwrap().is_empty());
}

#[test]
fn a_column_is_viewed_if_it_is_in_one_place() {
    let (bytes, all) = saved(&[0, 10_000], true);
    let archive = Archive::new(&bytes[..]).unwrap();
    let table = archive.table("events").unwrap();
    let view: Tensor<ArrayView2<'_, f32>> = table.view_column("embedding").unwrap();
    assert_eq!(view.shape(), [10_000, 16]);
    assert!(bytes.as_ptr_range().contains(&view.as_ptr().cast()));
    assert!(view.row(9_999).iter().all(|&number| number == all[9_999].embedding[0]));
    let labels: Vec<&str> = table.view_column("label").unwrap();
    assert!(bytes.as_ptr_range().contains(&labels[500].as_ptr()));

    let (bytes, _) = saved(&[100, 100], true);
    let archive = Archive::new(&bytes[..]).unwrap();
    let table = archive.table("events").unwrap();
    let error = table.view_column::<Tensor<ArrayView2<'_, f32>>>("embedding").unwrap_err();
    assert!(error.to_string().contains("is in 2 values: Table::views"), "{error}");
}

/// The other fields are not looked at: their buffers may hold anything.
#[test]
fn views_read_nothing_of_other_fields() {
    let (mut bytes, all) = saved(&[1000], true);
    let whole = Archive::new(bytes.clone()).unwrap();
    let ids: Vec<u8> = all.iter().flat_map(|event| event.id.to_le_bytes()).collect();
    let mut left = 0;
    for &(start, len) in whole.named("events").unwrap().buffers() {
        let range = usize::try_from(start).unwrap()..usize::try_from(start + len).unwrap();
        // Not UTF-8, and no length, code or bool.
        if bytes[range.clone()] == ids { left += 1 } else { bytes[range].fill(0xff) }
    }
    assert_eq!(left, 1);
    let archive = Archive::new(&bytes[..]).unwrap();
    let table = archive.table("events").unwrap();
    let views = table.views::<Tensor<ArrayView1<'_, u64>>>("id").unwrap();
    assert_eq!(views.map(|view| view.unwrap().len()).sum::<usize>(), 1000);
    assert!(table.views::<Vec<&str>>("label").unwrap().next().unwrap().is_err());
}

// 122
/// Each view by itself may read a buffer for nothing, but not every view the same one.
#[test]
fn what_views_read_again_is_limited() {
    use tenarc_test_support::builder::{Seg, archive, array, map, numbers_ref, own, unsigned};
    let group = [unsigned(1 << 12), map(&[("x", numbers_ref("f64", 0))])];
    let groups: Vec<Vec<u8>> = std::iter::repeat_n(group, 4000).flatten().collect();
    let bytes = archive(&Seg::new(own(*b"TCOL", &array(&groups)), &[&vec![0; 8 << 12]]));
    let file = Archive::new(&bytes[..]).unwrap();
    let segment = file.only().unwrap();
    let table = segment.table("").unwrap();
    let mut views = table.views::<Vec<f64>>("x").unwrap();
    assert_eq!(views.len(), 4000);
    let error = views.find_map(Result::err).unwrap();
    assert!(error.to_string().contains("with_max_alloc sets another limit"), "{error}");
}

/// 100,000 records are at least two groups.
#[test]
fn columns_are_viewed_group_by_group() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.tenarc");
    let (bytes, all) = saved(&[99_990, 0, 10], true);
    std::fs::write(&path, &bytes).unwrap();
    // SAFETY: only this test knows the file, and does not change it.
    #[allow(unsafe_code)]
    let map = unsafe { tenarc::Map::open(&path) }.unwrap();
    let slice = Archive::new(&bytes[..]).unwrap();
    let groups = viewed(&map.table("events").unwrap(), &all);
    assert!(groups > 2, "{groups} groups");
    assert_eq!(viewed(&slice.table("events").unwrap(), &all), groups);
    let file = Archive::open(&path).unwrap();
    let error = file.table("events").unwrap().views::<Vec<u64>>("id").unwrap().next().unwrap();
    let error = error.unwrap_err().to_string();
    assert!(error.contains("views need an archive in memory"), "{error}");
    drop(map);

    let table = slice.table("events").unwrap();
    assert!(table.views::<Vec<u64>>("nope").unwrap_err().to_string().contains("there is none at"));
    // Each error has the number of its row, in a later group too.
    let error = table.views::<Vec<f32>>("score").unwrap().last().unwrap().unwrap_err();
    assert_eq!(error.path(), "score.99990");
    // Without rows there is nothing to view.
    let (bytes, _) = saved(&[0], true);
    let archive = Archive::new(&bytes[..]).unwrap();
    assert_eq!(archive.table("events").unwrap().views::<Vec<u64>>("id").unwrap().len(), 0);
    // Rows that are stored one by one have no view.
    let (bytes, _) = saved(&[30], false);
    let archive = Archive::new(&bytes[..]).unwrap();
    let table = archive.table("events").unwrap();
    let error = table.views::<Vec<u64>>("id").unwrap().next().unwrap().unwrap_err();
    assert!(error.to_string().contains("not as columns"), "{error}");
}

/// The pages of the other columns are not touched. The system may map up to 2 MiB around a page that is touched.
#[test]
#[cfg(target_os = "linux")]
#[ignore = "depends on how the system maps files"]
fn a_view_touches_the_pages_of_its_column_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pages.tenarc");
    let (bytes, all) = saved(&[100_000], true);
    std::fs::write(&path, &bytes).unwrap();
    // SAFETY: only this test knows the file, and does not change it.
    #[allow(unsafe_code)]
    let map = unsafe { tenarc::Map::open(&path) }.unwrap();
    let touched = || -> usize {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let (_, ours) = maps.split_once("pages.tenarc").expect("the mapping");
        let rss = ours.lines().find_map(|line| line.strip_prefix("Rss:")).unwrap();
        rss.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() << 10
    };
    let table = map.table("events").unwrap();
    let ids = table.views::<Tensor<ArrayView1<'_, u64>>>("id").unwrap();
    let sum: u64 = ids.map(|view| view.unwrap().iter().sum::<u64>()).sum();
    assert_eq!(sum, (0..all.len() as u64).sum::<u64>());
    let (used, column) = (touched(), 8 * all.len());
    // The column of a group has 512 KiB of 7 MiB, so it may be in two such pieces.
    assert!((column..bytes.len() / 4 * 3).contains(&used), "{used} of {}", bytes.len());
    // The measure sees what is touched.
    let embeddings = table.views::<Tensor<ArrayView2<'_, f32>>>("embedding").unwrap();
    assert!(embeddings.map(|view| view.unwrap().sum()).sum::<f32>() > 0.0);
    assert!(touched() >= column + 64 * all.len());
}

/// The views of the columns are together the columns. Returns the number of groups.
fn viewed<S: tenarc::io::ReadAt + ?Sized>(
    table: &tenarc::archive::Table<'_, S>,
    all: &[Event],
) -> usize {
    let embeddings = table.views::<Tensor<ArrayView2<'_, f32>>>("embedding").unwrap();
    let groups = embeddings.len();
    let embeddings = embeddings.map(Result::unwrap).collect::<Vec<_>>();
    let rows = embeddings.iter().flat_map(|view| view.outer_iter());
    assert!(rows.map(|row| row.to_vec()).eq(all.iter().map(|event| event.embedding)));
    let ids = table.views::<Tensor<ArrayView1<'_, u64>>>("id").unwrap().map(Result::unwrap);
    let ids: Vec<u64> = ids.flat_map(|view| view.to_vec()).collect();
    assert!(ids.iter().eq(all.iter().map(|event| &event.id)));
    let labels = table.views::<Vec<&str>>("label").unwrap().map(Result::unwrap);
    assert!(labels.flatten().eq(all.iter().map(|event| &*event.label)));
    let scores = table.views::<Vec<Option<f32>>>("score").unwrap().map(Result::unwrap);
    assert!(scores.flatten().eq(all.iter().map(|event| event.score)));
    let tags = table.views::<Vec<Vec<&str>>>("tags").unwrap().map(Result::unwrap);
    assert!(tags.flatten().zip(all).all(|(tags, event)| tags == event.tags));
    let kinds = table.views::<Vec<Kind>>("kind").unwrap().map(Result::unwrap);
    assert!(kinds.flatten().eq(all.iter().map(|event| event.kind.clone())));
    groups
}

#[test]
fn what_is_no_table() {
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save_as("event", &7).unwrap();
    let bytes = out.finish().unwrap();
    let archive = Archive::new(&bytes[..]).unwrap();
    let error = archive.table("event").unwrap_err().to_string();
    assert!(error.contains("expected a sequence, found"), "{error}");
    let error = archive.table("events").unwrap_err().to_string();
    assert!(error.contains("did you mean `event`"), "{error}");
}

#[test]
fn raw_arrays_of_indefinite_length_are_tables() {
    let mut out = OArchive::new(Vec::new()).unwrap();
    let array = tenarc::value::RawValue::from_bytes(b"\x9f\x01\x02\xff").unwrap();
    out.save_as("numbers", array).unwrap();
    let bytes = out.finish().unwrap();
    let archive = Archive::new(&bytes[..]).unwrap();
    let table = archive.table("numbers").unwrap();
    assert_eq!(table.rows::<u8>(..).unwrap(), [1, 2]);
    assert_eq!(table.row::<u8>(1).unwrap(), 2);
}

/// Rows that are not asked for are not read, and so may be damaged.
#[test]
fn only_what_is_asked_for_is_read() {
    let (mut bytes, all) = saved(&[10_000], true);
    let archive = Archive::new(&bytes[..]).unwrap();
    let info = archive.named("events").unwrap().info("embedding").unwrap();
    let number = usize::try_from(info.buffer().unwrap()).unwrap();
    let (start, len) = archive.named("events").unwrap().buffers()[number];
    let (start, len) = (usize::try_from(start).unwrap(), usize::try_from(len).unwrap());
    bytes[start + len - 1] ^= 1;
    let archive = Archive::new(&bytes[..]).unwrap();
    let table = archive.table("events").unwrap();
    assert_eq!(table.row::<Event>(5).unwrap(), all[5]);
    assert_eq!(table.column::<Vec<u64>>("id").unwrap().len(), all.len());
    assert_eq!(table.iter::<Score>().map(Result::unwrap).count(), all.len());
    assert!(table.column::<Tensor<Array2<f32>>>("embedding").is_err());
    assert!(table.iter::<Event>().any(|row| row.is_err()));
    assert!(archive.named("events").unwrap().get::<Event>("5").is_err());
}

/// A flipped bit of a number gives another number, which only a checksum can tell.
#[test]
fn ranges_of_rows_are_verified() {
    // Chunks of 64 KiB: a column of embeddings has 64 bytes a row, so a chunk has 1,024 rows.
    const ROWS: u64 = 1024;
    let events: Vec<_> = (0..10_000).map(event).collect();
    let options = SaveOptions::default().with_chunk_len(64 << 10);
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    out.save_as("events", &events[..100]).unwrap();
    out.save_as("events", &events[100..]).unwrap();
    let mut bytes = out.finish().unwrap();
    let archive = Archive::new(&bytes[..]).unwrap();
    let segment = archive.segment(1).unwrap();
    let number = usize::try_from(segment.info("embedding").unwrap().buffer().unwrap()).unwrap();
    let start = usize::try_from(segment.buffers()[number].0).unwrap();
    // The first number of row 5 of chunk 3.
    let damaged = 100 + 3 * ROWS + 5;
    bytes[start + usize::try_from(damaged - 100).unwrap() * 64] ^= 1;

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.tenarc");
    std::fs::write(&path, &bytes).unwrap();
    let file = Archive::open(&path).unwrap();
    let archive = Archive::new(&bytes[..]).unwrap();
    check(&archive.table("events").unwrap(), &events, damaged);
    check(&file.table("events").unwrap(), &events, damaged);
    let unverified = tenarc::de::DecodeOptions::default().with_checksums(false);
    let archive = archive.with_options(unverified);
    let rows = archive.table("events").unwrap().rows::<Event>(..).unwrap();
    let wrong = rows.iter().zip(&events).filter(|(row, event)| row != event);
    assert_eq!(wrong.map(|(row, _)| row.id).collect::<Vec<_>>(), [damaged]);

    fn check<S: tenarc::io::ReadAt>(
        table: &tenarc::archive::Table<'_, S>,
        events: &[Event],
        damaged: u64,
    ) {
        let first = damaged - 5;
        for range in [0..10_000, 50..damaged, damaged..damaged + 1, first..first + 1] {
            let error = table.rows::<Event>(range).unwrap_err();
            assert_eq!(error.category(), tenarc::error::Category::Damaged, "{error}");
            assert!(error.to_string().contains("chunk 3 of buffer"), "{error}");
        }
        // Rows in other chunks, and other columns.
        let before = usize::try_from(first).unwrap();
        assert!(table.rows::<Event>(..first).unwrap() == events[..before]);
        let behind = first + ROWS;
        let from = usize::try_from(behind).unwrap();
        assert!(table.rows::<Event>(behind..).unwrap() == events[from..]);
        assert_eq!(table.rows::<Score>(..).unwrap().len(), events.len());
        // A single row by its number is not verified.
        assert_ne!(table.row::<Event>(damaged).unwrap(), events[before + 5]);
        assert_eq!(table.row::<Event>(first).unwrap(), events[before]);
    }
}

#[test]
fn rows_are_read_from_a_stream_of_values() {
    for columns in [true, false] {
        for days in DAYS {
            let (bytes, all) = saved(days, columns);
            let mut archive = IArchive::new(&bytes[..]).unwrap();
            let rows: Vec<Event> = archive.rows("events").map(Result::unwrap).collect();
            assert_eq!(rows, all);
            assert!(archive.is_at_end().unwrap());
            // Fewer fields, from where the stream is.
            let mut archive = IArchive::new(&bytes[..]).unwrap();
            for _ in 0..3 {
                archive.skip().unwrap();
            }
            let rest = &all[usize::try_from(days[0]).unwrap()..];
            let scores: Vec<Score> = archive.rows("events").map(Result::unwrap).collect();
            let ids = |rows: &[Score]| rows.iter().map(|row| row.id).collect::<Vec<_>>();
            assert_eq!(ids(&scores), rest.iter().map(|row| row.id).collect::<Vec<_>>());
        }
    }
    // A value that is no sequence is one error, and so is the end of a cut stream.
    let mut out = OArchive::new(Vec::new()).unwrap();
    for value in [Value::from(vec![1, 2]), Value::from("text"), Value::from(vec![3])] {
        out.save_as("numbers", &value).unwrap();
    }
    let bytes = out.finish().unwrap();
    let read = |bytes: &[u8]| -> Vec<Result<u8, tenarc::Error>> {
        IArchive::new(bytes).unwrap().rows("numbers").collect()
    };
    let rows = read(&bytes);
    assert!(matches!(rows[..], [Ok(1), Ok(2), Err(_), Ok(3)]), "{rows:?}");
    for len in 12..bytes.len() {
        let rows = read(&bytes[..len]);
        assert!(rows.last().is_some_and(Result::is_err), "{len}: {rows:?}");
        let good: Vec<_> = rows.iter().flatten().collect();
        assert!([1, 2, 3].iter().collect::<Vec<_>>().starts_with(&good), "{len}");
    }
}
