//! Where errors in columns are: each part of a path occurs once, and rows are counted in the table that the caller
//! sees. Damage in one group or column does not affect what is read of the others.

use ndarray::{Array1, Array2, ArrayView1, s};
use serde::{Deserialize, Serialize};
#[cfg(feature = "compression")]
use tenarc::archive::Compression;
use tenarc::archive::SaveOptions;
use tenarc::error::Category;
use tenarc::{Archive, DynTensor, Error, IArchive, OArchive, Tensor};

#[derive(Serialize, Deserialize, Debug)]
struct Row {
    id: u64,
    at: At,
    label: String,
    size: Option<u32>,
}

#[derive(Serialize, Deserialize, Debug)]
struct At {
    x: f32,
    y: [f32; 2],
}

fn id(row: u64) -> u64 {
    row * 1_000_003 + (1 << 40)
}

fn rows(count: u64) -> Vec<Row> {
    let row = |number: u64| {
        let small = u16::try_from(number % 1000).unwrap();
        Row {
            id: id(number),
            at: At { x: small.into(), y: [small.into(); 2] },
            label: format!("row {number}"),
            size: (!number.is_multiple_of(3)).then_some(small.into()),
        }
    };
    (0..count).map(row).collect()
}

fn saved<T: Serialize>(values: &[T], options: SaveOptions) -> Vec<u8> {
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    for value in values {
        out.save_as("p", value).unwrap();
    }
    out.finish().unwrap()
}

/// Flips a bit of the first occurrence of these bytes.
fn flip(bytes: &mut [u8], needle: &[u8]) {
    let at = bytes.windows(needle.len()).position(|window| window == needle).unwrap();
    bytes[at] ^= 1;
}

/// Ten rows, and then 70,000, which are two groups. The id of row 70,000 of all is damaged, which is in the second one.
fn damaged() -> Vec<u8> {
    let mut bytes = saved(&[rows(10), rows(70_000)], SaveOptions::default());
    flip(&mut bytes, &id(69_990).to_le_bytes());
    bytes
}

fn path<T>(result: tenarc::Result<T>, category: Category) -> String {
    let error: Error = result.map(drop).unwrap_err();
    assert_eq!(error.category(), category, "{error}");
    error.path()
}

#[test]
fn errors_of_rows_count_them_in_the_table() {
    #[derive(Deserialize, Debug)]
    #[allow(dead_code)]
    struct Small {
        id: u32,
    }
    #[derive(Serialize)]
    struct Late {
        n: (u8, u16),
    }
    #[derive(Deserialize, Debug)]
    #[allow(dead_code)]
    struct Early {
        n: (u8, u8),
    }
    let late = |count: u64| -> Vec<Late> {
        (0..count).map(|row| Late { n: (0, if row == 66_000 { 300 } else { 3 }) }).collect()
    };
    for columns in [true, false] {
        let options = SaveOptions::default().with_columns(columns);
        let bytes = saved(&[late(10), late(70_000)], options);
        let archive = Archive::new(&bytes[..]).unwrap();
        let table = archive.table("p").unwrap();
        let data = Category::Mismatch;
        assert_eq!(path(table.rows::<Early>(65_990..66_020), data), "66010.n.1");
        assert_eq!(path(table.rows::<Early>(..), data), "66010.n.1");
        assert_eq!(path(table.row::<Early>(66_010), data), "66010.n.1");
        let bad = table.iter::<Early>().find_map(Result::err).unwrap();
        assert_eq!(bad.path(), "66010.n.1");
        assert_eq!(path(table.column::<Vec<(u8, u8)>>("n"), data), "n.66010.1");
        let segment = archive.segment(1).unwrap();
        assert_eq!(path(segment.load::<Vec<Early>>(), data), "66000.n.1");
        assert_eq!(path(segment.get::<Early>("66000"), data), "66000.n.1");
        assert_eq!(path(segment.get::<(u8, u8)>("66000.n"), data), "66000.n.1");
    }
    // The first row of the second value is not row 0.
    let bytes = saved(&[rows(10), rows(100)], SaveOptions::default().with_columns(true));
    let archive = Archive::new(&bytes[..]).unwrap();
    let table = archive.table("p").unwrap();
    assert_eq!(path(table.rows::<Small>(20..40), Category::Mismatch), "20.id");
    assert_eq!(path(table.row::<Small>(25), Category::Mismatch), "25.id");
}

#[test]
fn errors_of_damaged_groups_have_each_step_once() {
    let bytes = damaged();
    let archive = Archive::new(&bytes[..]).unwrap();
    let table = archive.table("p").unwrap();
    let bad = Category::Damaged;
    // The first row of the group that was asked for.
    assert_eq!(path(table.rows::<Row>(69_000..), bad), "69000.id");
    assert_eq!(path(table.rows::<Row>(60_000..), bad), "65546.id");
    assert_eq!(path(table.column::<Vec<u64>>("id"), bad), "65546.id");
    assert_eq!(path(table.column::<Tensor<Vec<u64>>>("id"), bad), "65546.id");
    let failed = table.iter::<Row>().enumerate().find_map(|(at, row)| Some((at, row.err()?)));
    let (at, error) = failed.unwrap();
    assert_eq!((at, error.path()), (65_546, "65546.id".into()));
    let segment = archive.segment(1).unwrap();
    assert_eq!(path(segment.load::<Vec<Row>>(), bad), "65536.id");
    assert_eq!(path(segment.get::<Vec<u64>>("id"), bad), "65536.id");
    assert_eq!(path(segment.tensor::<Vec<u64>>("id"), bad), "65536.id");
    assert_eq!(path(segment.get::<Row>("69990"), bad), "69990.id");
    assert_eq!(path(segment.get::<u64>("69990.id"), bad), "69990.id");
    // Everything else can be read.
    table.column::<Vec<f32>>("at.x").unwrap();
    assert_eq!(table.rows::<Row>(..60_000).unwrap().len(), 60_000);

    // The path of the sequence is in front.
    #[derive(Serialize)]
    struct Run {
        log: Vec<Row>,
    }
    let mut bytes = saved(&[Run { log: rows(70_000) }], SaveOptions::default());
    flip(&mut bytes, &id(69_990).to_le_bytes());
    let archive = Archive::new(&bytes[..]).unwrap();
    let segment = archive.segment(0).unwrap();
    assert_eq!(path(segment.get::<Vec<u64>>("log.id"), bad), "log.65536.id");
    assert_eq!(path(segment.get::<Row>("log.69990"), bad), "log.69990.id");
    assert_eq!(path(segment.slice::<Vec<u64>>("log.id", s![69_000..]), bad), "log.69000.id");
    assert_eq!(path(segment.get::<Vec<u32>>("log.size"), Category::Mismatch), "log.size.0");
    assert_eq!(path(segment.get::<u8>("log.5.label"), Category::Mismatch), "log.5.label");
}

#[test]
fn verify_names_the_segment_the_column_and_the_rows() {
    let bytes = damaged();
    let error = Archive::new(&bytes[..]).unwrap().verify().unwrap_err();
    assert_eq!((error.category(), error.path()), (Category::Damaged, "id".into()));
    let said = error.to_string();
    assert!(said.starts_with("segment 1 (`p`): rows 65536..70000: checksum of buffer"), "{said}");

    // The bytes and the lengths of texts belong to the column, too.
    #[derive(Serialize)]
    struct Run {
        before: Tensor<Vec<u8>>,
        log: Vec<Row>,
    }
    let run = Run { before: Tensor(vec![1; 5000]), log: rows(70_000) };
    for (needle, column, from) in [
        (&b"row 123row 124row 125"[..], "log.label", 0),
        (b"row 69997row 69998", "log.label", 65_536),
        (&id(5).to_le_bytes(), "log.id", 0),
        (&[10.0f32, 11.0, 12.0].map(f32::to_le_bytes).concat(), "log.at.x", 0),
        (&[10.0f32, 10.0, 11.0, 11.0].map(f32::to_le_bytes).concat(), "log.at.y", 0),
        (&[1; 100], "before", 0),
    ] {
        let mut out = OArchive::new(Vec::new()).unwrap();
        out.save(&run).unwrap();
        let mut bytes = out.finish().unwrap();
        flip(&mut bytes, needle);
        let archive = Archive::new(&bytes[..]).unwrap();
        let error = archive.verify().unwrap_err();
        assert_eq!(error.path(), column, "{error}");
        let rows = format!("rows {from}..");
        assert_eq!(error.to_string().starts_with(&rows), column != "before", "{error}");
        // Streams and parts say the same.
        let streamed = IArchive::new(&bytes[..]).unwrap().load::<tenarc::Value>().unwrap_err();
        assert_eq!(streamed.to_string(), error.to_string());
        let streamed = IArchive::new(&bytes[..]).unwrap().load_parts().unwrap_err();
        assert_eq!(streamed.to_string(), error.to_string());
        // So do the marks of optional rows. Other columns are not verified with this one.
        let segment = archive.segment(0).unwrap();
        for other in ["before", "log.label", "log.id", "log.at.x", "log.at.y", "log.size"] {
            let verified = segment.verify_at(other);
            assert_eq!(verified.is_err(), other == column, "{column}, {other}");
        }
        assert_eq!(segment.verify_at("log.at").is_err(), column.starts_with("log.at."));
        // A row is in one group.
        if column != "before" {
            assert_eq!(segment.verify_at("log.7").is_err(), from == 0);
            assert_eq!(segment.verify_at("log.69000").is_err(), from > 0);
        }
        assert!(segment.verify_at("log.70000").is_err_and(|e| e.category() == Category::NotFound));
        assert!(segment.verify_at("log").is_err() == (column != "before"));
    }
}

#[test]
fn changed_parts_are_named_by_column_and_rows() {
    let options = SaveOptions::default().with_columns(true);
    let parts = tenarc::parts::to_parts_with(&rows(70_000), options).unwrap();
    let buffers: Vec<_> = parts.buffers().iter().map(|buffer| buffer.to_vec()).collect();
    let mut named = Vec::new();
    for number in 0..buffers.len() {
        let mut changed = buffers.clone();
        changed[number][0] ^= 1;
        let read = tenarc::from_parts::<Vec<Row>, _>(parts.metadata(), &changed);
        let error = read.unwrap_err();
        assert_eq!(error.category(), Category::Damaged);
        named.push(error.to_string());
    }
    for column in ["id", "at.x", "label", "size"] {
        for group in ["rows 0..65536", "rows 65536..70000"] {
            let name = format!("(`{column}`, {group})");
            assert!(named.iter().any(|error| error.contains(&name)), "{name}: {named:#?}");
        }
    }
}

#[test]
fn verify_at_covers_nested_and_optional_columns() {
    #[derive(Serialize)]
    struct Outer {
        at: Option<(f32, Vec<u8>)>,
        point: Point,
    }
    #[derive(Serialize)]
    struct Point {
        x: f64,
        y: f64,
    }
    let outer = |row: u16| Outer {
        at: row.is_multiple_of(2).then(|| (row.into(), vec![7; usize::from(row % 5)])),
        point: Point { x: f64::from(row) + 0.5, y: f64::from(row) + 0.25 },
    };
    let outers: Vec<Outer> = (0..20_000).map(outer).collect();
    let bytes = saved(&[outers], SaveOptions::default().with_columns(true));
    let whole = Archive::new(&bytes[..]).unwrap();
    let mut found = [0; 2];
    for &(start, len) in whole.segment(0).unwrap().buffers() {
        let mut bad = bytes.clone();
        bad[usize::try_from(start + len / 2).unwrap()] ^= 1;
        let archive = Archive::new(&bad[..]).unwrap();
        let segment = archive.segment(0).unwrap();
        let fails = ["at", "point", "point.x"].map(|path| segment.verify_at(path).is_err());
        assert!(fails[0] != fails[1], "{fails:?}");
        found[0] += usize::from(fails[0]);
        found[1] += usize::from(fails[2]);
    }
    // Marks, numbers, lengths and elements of `at`; and the numbers of `x`.
    assert!(found[0] >= 3 && found[1] >= 1, "{found:?}");
}

#[test]
#[cfg(feature = "compression")]
fn views_of_compressed_columns_name_them_once() {
    let options = SaveOptions::default().with_columns(true);
    let options = options.with_compression(Compression::lz4());
    let bytes = saved(&[rows(70_000)], options);
    let archive = Archive::new(&bytes[..]).unwrap();
    let table = archive.table("p").unwrap();
    let error = table.view_column::<Tensor<ArrayView1<'_, u64>>>("id").unwrap_err();
    assert!(error.to_string().contains("cannot be viewed"), "{error}");
    assert_eq!(error.path(), "0.id");
    let views = table.views::<Tensor<ArrayView1<'_, u64>>>("id").unwrap();
    let paths: Vec<String> = views.map(|view| view.unwrap_err().path()).collect();
    assert_eq!(paths, ["0.id", "65536.id"]);
    let segment = archive.segment(0).unwrap();
    assert_eq!(path(segment.view_at::<Vec<u64>>("id"), Category::Unsupported), "0.id");
}

#[test]
fn a_slice_of_a_column_reads_only_its_groups() {
    let bytes = damaged();
    let archive = Archive::new(&bytes[..]).unwrap();
    let segment = archive.segment(1).unwrap();
    let first: Array1<u64> = segment.slice("id", s![0..5]).unwrap();
    assert!(first.into_iter().eq((0..5).map(id)));
    assert_eq!(segment.slice::<DynTensor>("id", s![10_000]).unwrap().shape(), [0; 0]);
    assert_eq!(path(segment.slice::<Vec<u64>>("id", s![65_530..]), Category::Damaged), "65536.id");
    assert_eq!(path(segment.slice::<Vec<u64>>("id", s![..70_001]), Category::Mismatch), "id");
    assert_eq!(path(segment.slice::<Vec<u64>>("label", s![..5]), Category::Mismatch), "label");
    assert_eq!(segment.slice::<Vec<f32>>("at.x", s![69_999..]).unwrap(), [999.0]);
}

#[test]
fn slices_of_columns_in_several_groups() {
    #[derive(Serialize)]
    struct Item {
        id: u64,
        point: [f32; 3],
        ok: bool,
    }
    let item = |row: u16| Item {
        id: row.into(),
        point: [0.0, 1.0, row.into()],
        ok: row.is_multiple_of(3),
    };
    // The last group is so short that its columns are in the metadata.
    let items: Vec<Item> = (0..=u16::MAX).chain(0..9).map(item).collect();
    let count = items.len();
    let plain = SaveOptions::default().with_columns(true);
    let mut ways = vec![plain.clone()];
    #[cfg(feature = "compression")]
    ways.push(plain.with_compression(Compression::lz4()));
    for options in ways {
        let bytes = saved(&[&items], options);
        let archive = Archive::new(&bytes[..]).unwrap();
        let segment = archive.segment(0).unwrap();
        let ids: Array1<u64> = segment.tensor("id").unwrap();
        let points: Array2<f32> = segment.tensor("point").unwrap();
        let oks: Array1<bool> = segment.tensor("ok").unwrap();
        assert_eq!(ids.len(), count);
        for slice in [
            s![..],
            s![0..3],
            s![65_530..65_540],
            s![65_530..65_543; 3],
            s![..; -1],
            s![-20..; -7],
            s![65_536..],
            s![7..7],
            s![count..],
        ] {
            let found: Array1<u64> = segment.slice("id", slice).unwrap();
            assert_eq!(found, ids.slice(slice), "{slice:?}");
            let found: Array1<bool> = segment.slice("ok", slice).unwrap();
            assert_eq!(found, oks.slice(slice), "{slice:?}");
        }
        let found: Array2<f32> = segment.slice("point", s![65_530..65_540; 2, 1..; -1]).unwrap();
        assert_eq!(found, points.slice(s![65_530..65_540; 2, 1..; -1]));
        let found: Array1<f32> = segment.slice("point", s![-1, ..]).unwrap();
        assert_eq!(found, points.slice(s![-1, ..]));
        let found: Array2<f32> = segment.slice("point", s![ndarray::NewAxis, 65_530.., 2]).unwrap();
        assert_eq!(found, points.slice(s![ndarray::NewAxis, 65_530.., 2]));
    }
}

/// Without rows there is nothing that could be in the wrong place.
#[test]
fn the_view_of_a_column_without_rows_is_empty() {
    let bytes = saved(&[rows(0), rows(0)], SaveOptions::default());
    let archive = Archive::new(&bytes[..]).unwrap();
    let table = archive.table("p").unwrap();
    assert!(table.view_column::<Vec<u64>>("id").unwrap().is_empty());
    assert!(table.view_column::<Vec<&str>>("label").unwrap().is_empty());
    // No dtype is stored.
    let column = table.column::<Tensor<Array1<u64>>>("id").unwrap_err().to_string();
    let view = table.view_column::<Tensor<ArrayView1<'_, u64>>>("id").unwrap_err().to_string();
    assert!(view.contains("there are no rows, and so no dtype at `id`"), "{view}");
    assert_eq!(view, column);
}
