//! Columns of fields of fields (`SPEC.md`, annex A): they are the same whether the rows are stored as columns or one
//! by one, and nothing is read of the fields beside them.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;

use ndarray::{Array1, ArrayView1, s};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tenarc::archive::SaveOptions;
use tenarc::io::ReadAt;
use tenarc::{Archive, OArchive, Tensor, Value};

/// Fields that can be null or missing, in a struct that can be null or missing.
#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Log {
    id: u32,
    request: Option<Request>,
    twice: Option<Option<Request>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rare: Option<Request>,
    always: Request,
    #[serde(default, skip_serializing_if = "is_even")]
    odd: Option<u32>,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Request {
    size: Option<u32>,
    twice: Option<Option<u8>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tags: Vec<u16>,
    #[serde(default, skip_serializing_if = "is_even")]
    odd: Option<u32>,
    nothing: Option<()>,
    unit: (),
    text: Option<String>,
    method: String,
    any: Value,
    always: u64,
    reply: Option<Reply>,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Reply {
    code: Option<i16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seconds: Option<f32>,
    any: Value,
}

const STRUCTS: [&str; 4] = ["request", "twice", "rare", "always"];
const FIELDS: [&str; 14] = [
    "size",
    "twice",
    "tags",
    "odd",
    "nothing",
    "unit",
    "text",
    "method",
    "any",
    "always",
    "reply",
    "reply.code",
    "reply.seconds",
    "reply.any",
];

#[allow(clippy::ref_option, clippy::trivially_copy_pass_by_ref)]
fn is_even(number: &Option<u32>) -> bool {
    number.is_some_and(|number| number.is_multiple_of(2))
}

fn any(row: u32) -> Value {
    match row % 5 {
        0 => Value::Null,
        1 => Value::Tag(u32::from_be_bytes(*b"TSOM").into(), Box::new(Value::Null)),
        2 => Value::from("text"),
        3 => Value::Array(vec![Value::Null, Value::from(row)]),
        _ => Value::from(row),
    }
}

fn request(row: u32) -> Request {
    let small = u8::try_from(row % 100).unwrap();
    Request {
        size: (!row.is_multiple_of(4)).then_some(row),
        twice: (!row.is_multiple_of(3)).then(|| row.is_multiple_of(2).then_some(small)),
        tags: vec![small.into(); row as usize % 3],
        odd: (!row.is_multiple_of(7)).then_some(row),
        nothing: row.is_multiple_of(2).then_some(()),
        unit: (),
        text: (!row.is_multiple_of(5)).then(|| format!("é{row}")),
        method: format!("method {}", row % 3),
        any: any(row),
        always: row.into(),
        reply: (row % 6 < 4).then(|| Reply {
            code: row.is_multiple_of(3).then_some(-7),
            seconds: row.is_multiple_of(5).then_some(0.5),
            any: any(row / 2),
        }),
    }
}

fn log(row: u32) -> Log {
    let other = row.wrapping_mul(7) / 3;
    Log {
        id: row,
        request: (!row.is_multiple_of(3)).then(|| request(other)),
        twice: (row % 5 < 3).then(|| (row % 5 < 2).then(|| request(other + 1))),
        rare: (row % 11 == 5).then(|| request(other + 2)),
        always: request(row),
        odd: (!row.is_multiple_of(7)).then_some(row),
    }
}

/// Values of rows, which are saved under one name.
fn saved<T: Serialize>(values: &[&[T]], columns: bool) -> Vec<u8> {
    let options = SaveOptions::default().with_columns(columns);
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    for value in values {
        out.save_as("log", value).unwrap();
    }
    out.finish().unwrap()
}

fn column<T: DeserializeOwned>(bytes: &[u8], path: &str) -> tenarc::Result<Vec<T>> {
    Archive::new(bytes).unwrap().table("log").unwrap().column(path)
}

#[test]
fn nulls_on_the_way_are_one_null() {
    let all: Vec<Log> = (0..2000).map(log).collect();
    for parts in [&[&all[..1]][..], &[&all[..60]], &[&all], &[&all[..1], &all[1..7], &all[7..900]]]
    {
        let (rows, columns) = (saved(parts, false), saved(parts, true));
        let of = |path: &str| {
            let values: Vec<Value> = column(&columns, path).unwrap();
            assert_eq!(column::<Value>(&rows, path).unwrap(), values, "{path}");
            values
        };
        let nested = STRUCTS.map(|parent| FIELDS.map(|field| format!("{parent}.{field}")));
        let paths = nested.into_iter().flatten().chain(["odd".to_owned(), "twice".to_owned()]);
        for path in paths {
            let known = Archive::new(&columns[..]).unwrap();
            let known = known.table("log").unwrap().columns().unwrap();
            if !known.iter().any(|column| column.path() == path) {
                // No row has such a field.
                assert!(column::<Value>(&columns, &path).is_err(), "{path}");
                assert!(column::<Value>(&rows, &path).unwrap().iter().all(Value::is_null));
                continue;
            }
            let values = of(&path);
            // The other ways to read the column.
            let archive = Archive::new(&columns[..]).unwrap();
            let table = archive.table("log").unwrap();
            let views = table.views::<Vec<Value>>(&path).unwrap().map(Result::unwrap);
            assert!(views.flatten().eq(values.iter().cloned()), "{path}");
            let mut of_parts = Vec::new();
            for number in 0..archive.len() {
                let segment = archive.segment(number).unwrap();
                match segment.get::<Vec<Value>>(&path) {
                    Ok(part) => of_parts.extend(part),
                    Err(_) => of_parts
                        .extend(vec![Value::Null; parts[usize::try_from(number).unwrap()].len()]),
                }
            }
            assert_eq!(of_parts, values, "{path}");
            if let [_] = parts {
                for row in [0, values.len() / 2, values.len() - 1] {
                    let value: Value = archive.get(&format!("{path}.{row}")).unwrap();
                    assert_eq!(value, values[row], "{path}.{row}");
                }
            }
        }
        let rows_of: Vec<&Log> = parts.iter().copied().flatten().collect();
        if rows_of.len() < 60 {
            continue;
        }
        for bytes in [&rows, &columns] {
            typed(bytes, &rows_of);
        }
    }
}

/// The types that a program would use.
fn typed(bytes: &[u8], rows: &[&Log]) {
    fn same<T: DeserializeOwned + PartialEq>(
        bytes: &[u8],
        path: &str,
        expected: impl Iterator<Item = T>,
    ) {
        let found: Vec<T> = column(bytes, path).unwrap_or_else(|error| panic!("{error}"));
        assert!(found.into_iter().eq(expected), "{path}");
    }
    let requests = || rows.iter().map(|row| row.request.as_ref());
    same(bytes, "request.size", requests().map(|request| request?.size));
    same(bytes, "request.twice", requests().map(|request| request?.twice));
    // A missing field is null, and so is one that is `None`.
    same(bytes, "odd", rows.iter().map(|row| row.odd.filter(|odd| !odd.is_multiple_of(2))));
    same(
        bytes,
        "request.odd",
        requests().map(|request| request?.odd.filter(|odd| !odd.is_multiple_of(2))),
    );
    same(
        bytes,
        "request.tags",
        requests().map(|request| Some(request?.tags.clone()).filter(|tags| !tags.is_empty())),
    );
    same(bytes, "request.text", requests().map(|request| request?.text.clone()));
    same(bytes, "request.nothing", requests().map(|request| request?.nothing));
    same(bytes, "request.method", requests().map(|request| Some(request?.method.clone())));
    same(bytes, "request.reply", requests().map(|request| request?.reply.clone()));
    let replies = || requests().map(|request| request?.reply.as_ref());
    same(bytes, "request.reply.code", replies().map(|reply| reply?.code));
    same(bytes, "request.reply.seconds", replies().map(|reply| reply?.seconds));
    let twice = rows.iter().map(|row| row.twice.as_ref().and_then(Option::as_ref)?.size);
    same(bytes, "twice.size", twice);
    same(bytes, "rare.size", rows.iter().map(|row| row.rare.as_ref()?.size));
    same(bytes, "always.size", rows.iter().map(|row| row.always.size));
}

#[derive(Serialize)]
struct Run {
    log: Vec<Step>,
}

#[derive(Serialize)]
struct Step {
    id: u64,
    s: Part,
    optional: Option<Part>,
}

#[derive(Serialize, Clone)]
struct Part {
    x: f64,
    body: String,
    y: [f32; 16],
    deep: Deep,
}

#[derive(Serialize, Clone)]
struct Deep {
    z: u64,
    w: Vec<u32>,
}

/// Counts the bytes that are read.
struct Counted(Vec<u8>, Mutex<u64>);

impl ReadAt for Counted {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.0.read_at(out, offset)?;
        *self.1.lock().unwrap() += read as u64;
        Ok(read)
    }

    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }
}

/// The rows of [`damaged`], for a program that needs the columns that are not.
#[derive(Deserialize, PartialEq, Debug, Clone)]
struct Short {
    s: ShortPart,
    optional: Option<ShortPart>,
}

#[derive(Deserialize, PartialEq, Debug, Clone)]
struct ShortPart {
    #[serde(rename = "another", alias = "x")]
    renamed: f64,
    deep: Box<Wrapped>,
}

#[derive(Deserialize, PartialEq, Debug, Clone)]
struct Wrapped(ShortDeep);

#[derive(Deserialize, PartialEq, Debug, Clone)]
struct ShortDeep {
    z: u64,
}

const ROWS: u16 = 4000;

/// All buffers are damaged, except for those of the columns `id`, `s.x`, `s.deep.z`, `optional.x` and `optional.deep.z`.
fn damaged() -> Vec<u8> {
    let part = |row: u16| Part {
        x: f64::from(row) + 0.5,
        body: format!("{row:0100}"),
        y: [f32::from(row); 16],
        deep: Deep { z: u64::from(row) << 40, w: vec![row.into(); usize::from(row) % 4] },
    };
    let step = |row: u16| Step {
        id: u64::from(row) * 1_000_003,
        s: part(row),
        optional: row.is_multiple_of(2).then(|| part(row)),
    };
    let options = SaveOptions::default().with_columns(true);
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    out.save(&Run { log: (0..ROWS).map(step).collect() }).unwrap();
    let mut bytes = out.finish().unwrap();
    let buffers = Archive::new(bytes.clone()).unwrap().only().unwrap().buffers().to_vec();
    let to_bytes =
        |rows: &[u64]| rows.iter().flat_map(|row| row.to_le_bytes()).collect::<Vec<u8>>();
    let (mut all, mut half) = ([const { Vec::new() }; 3], [const { Vec::new() }; 2]);
    for row in 0..ROWS {
        let (x, z) = ((f64::from(row) + 0.5).to_bits(), u64::from(row) << 40);
        for (found, number) in all.iter_mut().zip([u64::from(row) * 1_000_003, x, z]) {
            found.push(number);
        }
        for (found, number) in half.iter_mut().zip([x, z]).filter(|_| row.is_multiple_of(2)) {
            found.push(number);
        }
    }
    let wanted: Vec<_> = all.iter().chain(&half).map(|rows| to_bytes(rows)).collect();
    let mut left = 0;
    for (start, len) in buffers {
        let range = usize::try_from(start).unwrap()..usize::try_from(start + len).unwrap();
        // Not UTF-8, and no length.
        if wanted.iter().any(|wanted| *wanted == bytes[range.clone()]) {
            left += 1;
        } else {
            bytes[range].fill(0xff);
        }
    }
    assert_eq!(left, 5);
    bytes
}

#[test]
fn the_siblings_of_a_nested_field_are_not_read() {
    let bytes = damaged();
    let rows = usize::from(ROWS);
    // Headers, metadata, and the columns themselves.
    let limit = |columns: u64| 40_000 + columns * 8 * rows as u64;
    let counted_within = |limit: u64, read: &dyn Fn(&Archive<Counted>)| {
        let archive = Archive::new(Counted(bytes.clone(), Mutex::default())).unwrap();
        read(&archive);
        let count = *archive.source().1.lock().unwrap();
        assert!(count < limit, "{count} bytes were read, at most {limit} are needed");
    };
    let counted = |read: &dyn Fn(&Archive<Counted>)| counted_within(limit(1), read);
    counted(&|archive| {
        let x: Vec<f64> = archive.get("log.s.x").unwrap();
        assert_eq!((x.len(), x[7]), (rows, 7.5));
    });
    counted(&|archive| {
        let table = archive.only().unwrap().table("log").unwrap();
        assert_eq!(table.column::<Vec<f64>>("s.x").unwrap()[7], 7.5);
    });
    counted(&|archive| {
        let z: Vec<u64> = archive.get("/log/s/deep/z").unwrap();
        assert_eq!((z.len(), z[7]), (rows, 7 << 40));
    });
    counted(&|archive| {
        let x: Vec<Option<f64>> = archive.get("log.optional.x").unwrap();
        assert_eq!((x.len(), x[7], x[8]), (rows, None, Some(8.5)));
    });
    counted(&|archive| {
        let z: Vec<Option<u64>> = archive.get("log.optional.deep.z").unwrap();
        assert_eq!((z.len(), z[7], z[8]), (rows, None, Some(8 << 40)));
    });
    counted(&|archive| {
        let x: Tensor<Array1<f64>> = archive.get("log.s.x").unwrap();
        assert_eq!(x.len(), rows);
    });
    counted(&|archive| {
        let x: Array1<f64> = archive.slice("log.s.x", s![2..4]).unwrap();
        assert_eq!(x.to_vec(), [2.5, 3.5]);
    });
    for path in ["log.s.x.8", "log.8.s.x", "/log/8/s/x", "log.s.8.x", "log.8.optional.x"] {
        counted(&|archive| assert_eq!(archive.get::<f64>(path).unwrap(), 8.5, "{path}"));
    }
    for path in ["log.s.deep.z.8", "log.8.s.deep.z", "log.s.8.deep.z", "log.8.optional.deep.z"] {
        counted(&|archive| assert_eq!(archive.get::<u64>(path).unwrap(), 8 << 40, "{path}"));
    }
    // A row has the nested fields that its type has.
    counted_within(limit(4), &|archive| {
        let table = archive.only().unwrap().table("log").unwrap();
        let all = table.rows::<Short>(..).unwrap();
        let short = |x, z| ShortPart { renamed: x, deep: Box::new(Wrapped(ShortDeep { z })) };
        assert_eq!((all.len(), &all[7].s, &all[7].optional), (rows, &short(7.5, 7 << 40), &None));
        assert_eq!(all[8].optional, Some(short(8.5, 8 << 40)));
    });
    counted_within(limit(6), &|archive| {
        let table = archive.only().unwrap().table("log").unwrap();
        let all: Vec<Short> = table.iter().collect::<tenarc::Result<_>>().unwrap();
        assert_eq!(table.row::<Short>(8).unwrap(), all[8]);
        assert_eq!(table.take::<Short>(&[3999, 8]).unwrap(), [all[3999].clone(), all[8].clone()]);
    });
    counted(&|archive| {
        let table = archive.only().unwrap().table("log").unwrap();
        // Of a struct without fields, nothing is read.
        #[derive(Deserialize)]
        struct None {}
        #[derive(Deserialize)]
        #[allow(dead_code)]
        struct Least {
            s: None,
        }
        assert_eq!(table.rows::<Least>(..).unwrap().len(), rows);
    });
    // A type that is an option of itself has no end.
    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Endless(Option<Box<Endless>>);
    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct WithEndless {
        s: Endless,
    }
    let archive = Archive::new(&bytes[..]).unwrap();
    let table = archive.only().unwrap().table("log").unwrap();
    table.rows::<WithEndless>(..1).map(drop).unwrap_err();
    table.row::<Endless>(0).map(drop).unwrap_err();
    // What may have any field is read whole.
    #[derive(Deserialize, Debug)]
    #[allow(dead_code)]
    struct Flat {
        s: Rest,
    }
    #[derive(Deserialize, Debug)]
    #[allow(dead_code)]
    struct Rest {
        x: f64,
        #[serde(flatten)]
        rest: BTreeMap<String, Value>,
    }
    assert!(table.rows::<Flat>(..).unwrap_err().to_string().contains("checksum"));
    let views = table.views::<Tensor<ArrayView1<'_, f64>>>("s.x").unwrap();
    assert_eq!(views.map(|view| view.unwrap().len()).sum::<usize>(), rows);
    // The others are damaged indeed.
    for path in
        ["log.s", "log.s.body", "log.s.y", "log.s.deep", "log.s.deep.w", "log.optional.body"]
    {
        assert!(archive.get::<Value>(path).is_err(), "{path}");
    }
}
