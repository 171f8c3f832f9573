//! Few bytes take little memory and time, whatever they say: 64 MiB and 64 times the input, or the limit that was set.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use tenarc::de::{DecodeOptions, Limits};
use tenarc::error::Category;
use tenarc::value::RawValue;
use tenarc::{Archive, DynTensor, IArchive, OArchive, Result, Tensor, Value};
use tenarc_test_support::alloc::peak_of;
use tenarc_test_support::builder::{array, bytes, head, map, own, tag, text, unsigned};
use tenarc_test_support::effort::some_of;
use tenarc_test_support::unhex;

const MIB: usize = 1 << 20;

/// What is allocated beside the value: the buffer of a reader, the room that serde reserves before the first element, the
/// memory of an archive's reader and a chunk that is decompressed.
const BESIDE: usize = 4 * MIB;

/// Much larger than what it is read from.
#[derive(Default, Deserialize)]
#[serde(default)]
#[allow(dead_code)]
struct Big {
    a: bool,
    rest: [[u64; 25]; 20],
}

/// An optional field of 4,000 bytes in a box.
#[derive(Deserialize)]
#[allow(dead_code)]
struct Boxed {
    #[serde(default)]
    a: Option<Box<Big>>,
}

/// A list of any depth.
#[derive(Deserialize)]
#[allow(dead_code)]
struct Nest(Vec<Nest>);

fn kind(name: &str, items: &[Vec<u8>]) -> Vec<u8> {
    let all: Vec<_> = std::iter::once(text(name)).chain(items.iter().cloned()).collect();
    array(&all)
}

fn columns(groups: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let items: Vec<_> =
        groups.iter().flat_map(|(rows, column)| [unsigned(*rows), column.clone()]).collect();
    own(*b"TCOL", &array(&items))
}

/// As many groups of as many rows as there can be.
fn groups(count: usize, column: &[u8]) -> Vec<u8> {
    columns(&vec![(1 << 16, column.to_vec()); count])
}

/// One row with a list of `rows` rows.
fn list(rows: u64, column: Vec<u8>) -> Vec<u8> {
    columns(&[(1, kind("array", &[unsigned(rows), column]))])
}

fn u8s(values: &[u8]) -> Vec<u8> {
    tag(64, &bytes(values))
}

fn bits(rows: usize) -> Vec<u8> {
    kind("bool", &[bytes(&vec![0; rows / 8])])
}

/// As many rows as there can be, which are all the same.
fn dict(column: &[u8]) -> Vec<u8> {
    kind("dict", &[u8s(&vec![0; 1 << 16]), unsigned(1), column.to_vec()])
}

fn unit() -> Vec<u8> {
    kind("unit", &[])
}

fn empty_tensor(shape: &[u64]) -> Vec<u8> {
    let dims: Vec<_> = shape.iter().map(|&dim| unsigned(dim)).collect();
    tag(40, &array(&[array(&dims), tag(85, &bytes(&[]))]))
}

/// Options in options: a bit for each level.
fn options(levels: usize, rows: usize) -> Vec<u8> {
    let (some, none) = (vec![0xff; rows / 8], vec![0; rows / 8]);
    let inner = kind("option", &[bytes(&none), u8s(&[])]);
    (0..levels).fold(inner, |inner, _| kind("option", &[bytes(&some), inner]))
}

/// Messages of which each is a small file and a large value. The number of rows that take no bytes is limited, too: see
/// `tests/columns/limits.rs`.
#[allow(clippy::too_many_lines)] // A list.
fn messages() -> Vec<(&'static str, Vec<u8>)> {
    const ROWS: usize = 1 << 16;
    const MANY: u64 = 1 << 40;
    let name = "n".repeat(60_000);
    let fields: Vec<String> = (0..2000).map(|at| format!("{at}")).collect();
    let wide = |column: &[u8]| {
        let fields: Vec<_> = fields.iter().map(|name| (&name[..], column.to_vec())).collect();
        map(&fields)
    };
    let codes = u8s(&vec![0; ROWS]);
    let mut maps = vec![0xa0];
    for _ in 0..60 {
        maps = [vec![0xa1, 0x00], maps].concat();
    }
    vec![
        ("25 bytes", unhex("da54434f4c821a0001000083646c69737418fe8164756e6974")),
        ("26 bytes", unhex("da54434f4c821a000100008365617272617918fe8164756e6974")),
        ("dict of a long text", groups(4, &dict(&kind("text", &[unsigned(60_000), text(&name)])))),
        (
            "dict of long bytes",
            groups(4, &dict(&kind("bytes", &[unsigned(60_000), bytes(name.as_bytes())]))),
        ),
        (
            "dict of a list",
            groups(4, &dict(&kind("array", &[unsigned(60_000), u8s(name.as_bytes())]))),
        ),
        ("dict of bools", groups(4, &dict(&kind("array", &[unsigned(1 << 16), bits(ROWS)])))),
        ("dict of units", groups(4, &dict(&kind("array", &[unsigned(60_000), unit()])))),
        ("dict of maps", groups(4, &dict(&map(&[("a", map(&[(&name, unit())]))])))),
        ("dict of items", groups(4, &dict(&kind("rows", &[array(&[bytes(name.as_bytes())])])))),
        (
            "dict of tensors",
            groups(
                4,
                &dict(&tag(
                    40,
                    &array(&[array(&[unsigned(1), unsigned(60_000)]), u8s(name.as_bytes())]),
                )),
            ),
        ),
        (
            "named type",
            groups(8, &kind("type", &[text("t"), array(&[]), map(&[("a", bits(ROWS))])])),
        ),
        ("bools", groups(8, &map(&[("a", bits(ROWS))]))),
        ("many bools", groups(32, &map(&[("a", bits(ROWS))]))),
        ("list of bools", list(2 << 20, bits(2 << 20))),
        ("units", groups(16, &unit())),
        ("empty structs", groups(16, &map(&[]))),
        ("unknown fields", groups(16, &map(&[("unknown", unit())]))),
        ("empty tuples", groups(16, &kind("tuple", &[array(&[])]))),
        ("list of units", list(MANY, unit())),
        ("lists of units", groups(4, &kind("array", &[unsigned(255), unit()]))),
        (
            "lists in lists",
            list(
                1 << 12,
                kind("array", &[unsigned(1 << 12), kind("array", &[unsigned(8), unit()])]),
            ),
        ),
        ("empty lists", groups(16, &kind("array", &[unsigned(0), u8s(&[])]))),
        ("lists of one", groups(4, &kind("array", &[unsigned(1), bits(ROWS)]))),
        ("empty maps", groups(16, &kind("map", &[unsigned(0), u8s(&[]), u8s(&[])]))),
        ("maps of one", groups(4, &kind("map", &[unsigned(1), codes.clone(), unit()]))),
        ("empty texts", groups(16, &kind("text", &[unsigned(0), text("")]))),
        ("empty byte strings", groups(16, &kind("bytes", &[unsigned(0), bytes(&[])]))),
        ("long names", groups(1, &map(&[(&name, bits(ROWS))]))),
        ("long names of units", groups(1, &map(&[(&name, unit())]))),
        ("long variants", groups(1, &kind("enum", &[codes.clone(), array(&[text(&name)])]))),
        (
            "variants with content",
            groups(2, &kind("enum", &[codes, array(&[text("a")]), array(&[unit()])])),
        ),
        ("wide structs", groups(1, &wide(&unit()))),
        ("wide structs of bools", columns(&[(512, wide(&bits(512)))])),
        ("tensors without elements", list(MANY, empty_tensor(&[MANY, 0]))),
        ("groups of empty tensors", groups(16, &empty_tensor(&[1 << 16, 0, 3]))),
        (
            "tensors of many dimensions",
            list(1 << 16, {
                let dims: Vec<_> = (0..16).map(|at| if at == 0 { 1 << 16 } else { 1 }).collect();
                let dims: Vec<_> = dims.into_iter().map(unsigned).collect();
                tag(40, &array(&[array(&dims), u8s(&vec![0; ROWS])]))
            }),
        ),
        ("deep options", groups(2, &options(50, ROWS))),
        ("deep options of few rows", columns(&vec![(8, options(50, 8)); 300])),
        ("items in rows", groups(1, &kind("rows", &[array(&vec![vec![0xa0]; ROWS])]))),
        (
            "columns in rows",
            columns(&[(16, kind("rows", &[array(&vec![list(1 << 20, unit()); 16])]))]),
        ),
        ("empty maps in an array", [head(4, 1 << 16), vec![0xa0; ROWS]].concat()),
        ("many empty maps", [head(4, 1 << 18), vec![0xa0; 1 << 18]].concat()),
        ("many nulls", [head(4, 1 << 19), vec![0xf6; 1 << 19]].concat()),
        ("nulls of unknown number", [vec![0x9f], vec![0xf6; 1 << 19], vec![0xff]].concat()),
        ("many small maps", [head(4, 1 << 17), [0xa1, 0x60, 0xa0].repeat(1 << 17)].concat()),
        ("a map of nulls", [head(5, 1 << 18), vec![0xf6; 1 << 19]].concat()),
        ("deep maps", [head(4, 1 << 10), maps.repeat(1 << 10)].concat()),
        ("numbers", u8s(&vec![0; MIB])),
        ("a byte string", bytes(&vec![0; MIB])),
        ("empty tensors", [head(4, 1 << 16), empty_tensor(&[0]).repeat(1 << 16)].concat()),
        ("false lengths", [head(4, 1 << 16).repeat(50), vec![0xa0; ROWS]].concat()),
    ]
}

/// Runs `read`. It must take little memory and time, and an error must name the way out.
#[track_caller]
fn bounded(what: &str, budget: usize, read: &dyn Fn() -> Result<()>) {
    let start = Instant::now();
    let (result, peak) = peak_of(read);
    let time = start.elapsed();
    assert!(peak <= budget + BESIDE, "{what}: {peak} bytes were allocated, {budget} are allowed");
    // Without optimization, on a busy machine.
    assert!(time < Duration::from_secs(60), "{what}: {time:?}");
    if let Err(error) = result
        && error.category() == Category::Limit
    {
        let message = error.to_string();
        let named = message.contains("with_max_alloc")
            || message.contains("levels")
            || message.contains("dimensions");
        assert!(named, "{what}: {message}");
    }
}

struct At<'a>(&'a [u8]);

impl tenarc::io::ReadAt for At<'_> {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(out, offset)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}

/// A way to read a message: its name, the bytes of memory that it may take, and what reads.
type Way<'a> = (&'a str, usize, &'a dyn Fn() -> Result<()>);

/// Reads a message as one type from every kind of source; in a short run from one of them, which `turn` chooses.
fn message<T: DeserializeOwned>(name: &str, message: &[u8], turn: usize) {
    let mut out = OArchive::new(Vec::new()).unwrap();
    let Ok(raw) = RawValue::from_bytes(message) else { return };
    out.save(raw).unwrap();
    let archive = out.finish().unwrap();
    let strict = DecodeOptions::default().with_limits(Limits::strict());
    // What is copied in one piece from input in memory is not counted with a strict limit.
    let (by_default, strictly) = (|len: usize| 64 * MIB + 64 * len, |len: usize| 64 * MIB + len);
    // Every source with one of the limits: the time is that of making many values.
    let ways: [Way<'_>; 4] = [
        ("from a slice", by_default(message.len()), &|| tenarc::from_slice::<T>(message).map(drop)),
        ("from an archive", by_default(archive.len()), &|| {
            Archive::new(At(&archive))?.load::<T>().map(drop)
        }),
        ("from a reader, strict", strictly(message.len()), &|| {
            tenarc::de::from_reader_with::<_, T>(message, strict).map(drop)
        }),
        ("from a stream of archives, strict", strictly(archive.len()), &|| {
            IArchive::with_options(&archive[..], strict)?.load::<T>().map(drop)
        }),
    ];
    for (way, budget, read) in some_of(ways, ways.len(), turn) {
        bounded(&format!("{name} as {} {way}", std::any::type_name::<T>()), budget, read);
    }
}

fn every_message<T: DeserializeOwned>() {
    // Other types read the same message from other sources.
    let first = std::any::type_name::<T>().len();
    for (number, (name, bytes)) in messages().into_iter().enumerate() {
        message::<T>(name, &bytes, first + number);
    }
}

#[test]
fn values_of_unknown_types_stay_within_the_budget() {
    every_message::<Value>();
    every_message::<Vec<Value>>();
}

#[test]
fn rows_without_memory_take_little_time() {
    every_message::<IgnoredAny>();
    every_message::<Vec<()>>();
    every_message::<Vec<Vec<()>>>();
}

#[test]
fn large_structs_with_defaults_stay_within_the_budget() {
    every_message::<Vec<Big>>();
    every_message::<Vec<Vec<Big>>>();
}

#[test]
fn boxes_stay_within_the_budget() {
    every_message::<Vec<Box<Big>>>();
    every_message::<Vec<Boxed>>();
}

#[test]
fn maps_stay_within_the_budget() {
    every_message::<Vec<HashMap<String, u64>>>();
    every_message::<Vec<BTreeMap<u64, Big>>>();
    #[allow(clippy::zero_sized_map_values)]
    every_message::<Vec<BTreeMap<String, IgnoredAny>>>();
}

#[test]
fn lists_of_texts_and_tensors_stay_within_the_budget() {
    every_message::<Vec<String>>();
    every_message::<Vec<Vec<String>>>();
    every_message::<Vec<Tensor<DynTensor>>>();
    every_message::<Nest>();
}

/// Few bytes that are compressed, or that are referred to many times.
#[test]
fn archives_stay_within_the_budget() {
    use tenarc::archive::{Compression, SaveOptions};

    type Tensors = Vec<Tensor<Vec<u8>>>;
    let zeros = vec![Tensor(vec![0u8; 24 * MIB]); 3];
    let compressed = SaveOptions::default().with_compression(Compression::zstd());
    let tied: Tensors = vec![Tensor(vec![7; 100_000]); 1500];
    let dedup = SaveOptions::default().with_dedup(true);
    let save = |options: SaveOptions, value: &dyn Fn(&mut OArchive<Vec<u8>>)| {
        let mut out = OArchive::with_options(Vec::new(), options).unwrap();
        value(&mut out);
        out.finish().unwrap()
    };
    let bomb = save(compressed, &|out| {
        out.save(&zeros).unwrap();
    });
    let again = save(dedup, &|out| {
        out.save(&tied).unwrap();
    });
    let flags = save(SaveOptions::default(), &|out| {
        let rows = groups(16, &map(&[("a", bits(1 << 16))]));
        out.save(RawValue::from_bytes(&rows).unwrap()).unwrap();
    });
    for (name, bytes, stored) in
        [("bomb", &bomb, true), ("copies", &again, false), ("flags", &flags, false)]
    {
        let factor = if stored { 1024 } else { 64 };
        let strict = DecodeOptions::default().with_limits(Limits::strict());
        for (budget, options) in [
            (64 * MIB + factor * bytes.len(), DecodeOptions::default()),
            (64 * MIB + bytes.len(), strict),
        ] {
            let streamed = |read: &dyn Fn(&mut IArchive<&[u8]>) -> Result<()>| {
                read(&mut IArchive::with_options(&bytes[..], options)?)
            };
            bounded(name, budget, &|| streamed(&|archive| archive.load::<Tensors>().map(drop)));
            bounded(name, budget, &|| streamed(&|archive| archive.load::<Value>().map(drop)));
            bounded(name, budget, &|| streamed(&|archive| archive.load::<Vec<Big>>().map(drop)));
            let archive = Archive::new(At(bytes)).unwrap().with_options(options);
            bounded(name, budget, &|| archive.load::<Tensors>().map(drop));
            bounded(name, budget, &|| archive.load::<Value>().map(drop));
            bounded(name, budget, &|| archive.load::<Vec<Big>>().map(drop));
            bounded(name, budget, &|| archive.get::<Tensor<DynTensor>>("1").map(drop));
            bounded(name, budget, &|| archive.get::<Value>("0").map(drop));
            if name == "flags" {
                let segment = archive.only().unwrap();
                let table = segment.table("").unwrap();
                let few: Vec<_> = (0..table.len()).step_by(64).collect();
                bounded(name, budget, &|| table.rows::<Big>(..).map(drop));
                bounded(name, budget, &|| table.rows::<Value>(..).map(drop));
                bounded(name, budget, &|| table.take::<Big>(&few).map(drop));
                bounded(name, budget, &|| table.take::<Value>(&few).map(drop));
                bounded(name, budget, &|| table.column::<Vec<Value>>("a").map(drop));
                bounded(name, budget, &|| archive.get::<Vec<[u64; 9]>>("a").map(drop));
            }
        }
    }
}

/// What the documentation says loads by default.
#[test]
fn ordinary_values_load_by_default() {
    #[derive(serde::Serialize, Deserialize, Clone, PartialEq)]
    struct Line {
        time: u64,
        level: Option<String>,
        message: String,
        flag: bool,
        extra: [Option<u64>; 4],
    }
    let line = |at: u64| Line {
        time: at,
        level: None,
        message: format!("line {at}"),
        flag: at.is_multiple_of(2),
        extra: [None; 4],
    };
    let lines: Vec<Line> = (0..150_000).map(line).collect();
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save_as("lines", &lines).unwrap();
    let archive = out.finish().unwrap();
    let message = tenarc::to_vec(&lines).unwrap();
    assert!(tenarc::from_slice::<Vec<Line>>(&message).unwrap() == lines);
    assert!(tenarc::from_reader::<_, Vec<Line>>(&message[..]).unwrap() == lines);
    assert!(tenarc::from_slice::<Value>(&message).is_ok());
    assert!(tenarc::from_reader::<_, Value>(&message[..]).is_ok());
    assert!(IArchive::new(&archive[..]).unwrap().load::<Vec<Line>>().unwrap() == lines);
    let archive = Archive::new(&archive[..]).unwrap();
    assert!(archive.load::<Vec<Line>>().unwrap() == lines);
    assert!(archive.load::<Value>().is_ok());
    let table = archive.only().unwrap().table("").unwrap();
    assert!(table.rows::<Line>(..).unwrap() == lines);
    assert_eq!(table.column::<Vec<Option<String>>>("level").unwrap().len(), lines.len());

    // Every kind of element that takes one byte of input, in any number.
    let ones = [head(4, 4 << 20), vec![1; 4 << 20]].concat();
    assert!(tenarc::from_slice::<Value>(&ones).is_ok());
    assert!(tenarc::from_slice::<Vec<Option<u64>>>(&ones).is_ok());
    assert!(tenarc::from_slice::<Vec<Value>>(&ones).is_ok());
    assert!(tenarc::from_slice::<Tensor<DynTensor>>(&ones).is_ok());
}
