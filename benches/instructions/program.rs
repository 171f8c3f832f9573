//! Does one thing with one value several times: `program VALUE HOW-ENCODING TIMES`. `measure` counts its instructions.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_lossless
)]

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::collections::BTreeMap;
use std::hint::black_box;
use tenarc::ser::EncodeOptions;
use tenarc::{Tensor, Value};

#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
struct Vertex {
    x: f32,
    y: f32,
    z: f32,
}
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
struct Tri {
    v0: Vertex,
    v1: Vertex,
    v2: Vertex,
    normal: Vertex,
}
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
struct Address {
    x0: u8,
    x1: u8,
    x2: u8,
    x3: u8,
}
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
struct Line {
    address: Address,
    identity: String,
    userid: String,
    date: String,
    request: String,
    code: u16,
    size: u64,
}
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
enum Kind {
    A,
    B(u32),
    C { x: i16, y: i16 },
}
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
struct Up {
    id: u64,
    pos: (f64, f64, f64),
    kinds: Vec<Kind>,
    opt: Option<u32>,
    tags: Vec<u16>,
    health: f32,
    flag: bool,
}
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
struct Tiny {
    id: u64,
    name: String,
    value: f32,
}
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
struct Small {
    name: String,
    a: Tensor<Vec<f32>>,
    b: Tensor<Vec<f32>>,
}
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
struct SmallNd {
    a: Tensor<ndarray::Array2<f32>>,
    #[serde(with = "tenarc::tensor")]
    b: ndarray::Array1<f64>,
}
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
enum Payment {
    Open,
    Card { owner: String, until: (u16, u8) },
    Transfer(String),
    Voucher(u32, f64),
}
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
struct Item {
    product: u64,
    label: String,
    count: i32,
    price: f64,
    discount: Option<f32>,
    #[serde(with = "serde_bytes")]
    blob: Vec<u8>,
}
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
struct Order {
    id: u64,
    settings: BTreeMap<String, String>,
    lines: Vec<Item>,
    payment: Payment,
    notes: BTreeMap<u32, String>,
    sent: bool,
    labels: Vec<String>,
    place: Option<(f64, f64)>,
}

#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
struct Reading {
    time: i64,
    sensor: String,
    values: Vec<f32>,
    ints: Vec<i32>,
    bools: Vec<bool>,
    labels: Vec<String>,
    map: BTreeMap<String, f64>,
    id: u16,
    pair: (i8, u64),
    ch: Option<String>,
}
fn reads() -> Vec<Reading> {
    (0..200)
        .map(|i| Reading {
            time: -(i as i64) * 100000,
            sensor: format!("sensor {}", i % 9),
            values: (0..i % 30).map(|k| k as f32 * 0.7).collect(),
            ints: (0..i % 21).map(|k| (k as i32 - 10) * (i as i32)).collect(),
            bools: (0..i % 11).map(|k| k % 3 == 0).collect(),
            labels: (0..i % 4).map(|k| format!("l{k}")).collect(),
            map: (0..i % 3).map(|k| (format!("k{k}"), k as f64)).collect(),
            id: i as u16 * 300,
            pair: (-3, 1 << 40),
            ch: (i % 2 == 0).then(|| "some text".into()),
        })
        .collect()
}
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
struct Wide {
    a: Vec<f64>,
    b: Vec<i64>,
    c: Vec<u32>,
    d: Vec<f32>,
    e: Vec<u64>,
    f: Vec<bool>,
}
fn wide() -> Wide {
    let n = 1500usize;
    Wide {
        a: (0..n).map(|i| i as f64 * 0.1).collect(),
        b: (0..n).map(|i| i as i64 * 7777 - 100000).collect(),
        c: (0..n).map(|i| i as u32 * 3).collect(),
        d: (0..n).map(|i| i as f32).collect(),
        e: (0..n).map(|i| (i as u64) << (i % 50)).collect(),
        f: (0..n).map(|i| i % 3 == 0).collect(),
    }
}
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
struct Flat {
    name: String,
    #[serde(flatten)]
    rest: Rest,
}
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
struct Rest {
    a: u32,
    b: String,
    c: Vec<f32>,
}
fn flats() -> Vec<Flat> {
    (0..200)
        .map(|i| Flat {
            name: format!("n{i}"),
            rest: Rest { a: i, b: "bbb".into(), c: vec![0.5; 4] },
        })
        .collect()
}
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
#[serde(tag = "t")]
enum Tagged {
    A { x: u32, s: String },
    B { y: f64 },
}
fn tagged() -> Vec<Tagged> {
    (0..300)
        .map(|i| {
            if i % 2 == 0 {
                Tagged::A { x: i, s: "text".into() }
            } else {
                Tagged::B { y: i as f64 }
            }
        })
        .collect()
}

fn vertex(i: usize) -> Vertex {
    Vertex { x: i as f32 * 0.3, y: 1.0 / (i as f32 + 1.0), z: -(i as f32) }
}
fn mesh() -> Vec<Tri> {
    (0..1000)
        .map(|i| Tri { v0: vertex(i), v1: vertex(i + 1), v2: vertex(i + 2), normal: vertex(i + 3) })
        .collect()
}
fn log() -> Vec<Line> {
    (0..500)
        .map(|i| Line {
            address: Address { x0: i as u8, x1: (i / 3) as u8, x2: 7, x3: (i * 7) as u8 },
            identity: "-".into(),
            userid: format!("user{}", i % 20),
            date: format!("2026-11-{:02}T{:02}:00", i % 30, i % 24),
            request: format!("GET /some/path/{}/index.html HTTP/1.1", i),
            code: 200 + (i % 5) as u16,
            size: (i * 977) as u64,
        })
        .collect()
}
fn up() -> Vec<Up> {
    (0..400)
        .map(|i| Up {
            id: i as u64 * 1000003,
            pos: (i as f64, 0.5, -1.0),
            kinds: (0..i % 5)
                .map(|k| match k % 3 {
                    0 => Kind::A,
                    1 => Kind::B(i as u32),
                    _ => Kind::C { x: -3, y: i as i16 },
                })
                .collect(),
            opt: (i % 2 == 0).then_some(i as u32),
            tags: (0..i % 7).map(|t| t as u16 * 300).collect(),
            health: 0.5,
            flag: i % 3 == 0,
        })
        .collect()
}
fn tiny() -> Tiny {
    Tiny { id: 123456789, name: "a short name".into(), value: 0.5 }
}
fn small() -> Vec<Small> {
    (0..1000)
        .map(|i| Small {
            name: format!("layer{i}"),
            a: Tensor((0..16).map(|k| (i + k) as f32).collect()),
            b: Tensor((0..16).map(|k| (i * k) as f32).collect()),
        })
        .collect()
}
fn smallnd() -> Vec<SmallNd> {
    (0..500)
        .map(|i| SmallNd {
            a: Tensor(ndarray::Array2::from_shape_fn((4, 4), |(a, b)| (a * b + i) as f32)),
            b: ndarray::Array1::from_shape_fn(5, |a| a as f64),
        })
        .collect()
}
fn orders() -> Vec<Order> {
    (0..200)
        .map(|i| Order {
            id: i as u64 * 77777,
            settings: (0..i % 4).map(|k| (format!("key{k}"), format!("value {i}"))).collect(),
            lines: (0..i % 6)
                .map(|k| Item {
                    product: k as u64 * 1_000_000_007,
                    label: format!("a product with number {k}"),
                    count: k as i32 - 3,
                    price: k as f64 * 1.1,
                    discount: (k % 2 == 0).then_some(0.1),
                    blob: vec![k as u8; k * 3],
                })
                .collect(),
            payment: match i % 4 {
                0 => Payment::Open,
                1 => Payment::Card { owner: "somebody".into(), until: (2029, 11) },
                2 => Payment::Transfer("DE1234".into()),
                _ => Payment::Voucher(i as u32, 10.0),
            },
            notes: (0..i % 3).map(|k| (k as u32 * 100, "note".to_string())).collect(),
            sent: i % 2 == 0,
            labels: (0..i % 5).map(|k| format!("label{k}")).collect(),
            place: (i % 3 == 0).then_some((1.5, i as f64)),
        })
        .collect()
}
fn shorts() -> Vec<Vec<u16>> {
    (0..100)
        .map(|i| (0..if i % 2 == 0 { 700 } else { 9 }).map(|k| (i * k) as u16).collect())
        .collect()
}
fn weights() -> Vec<f32> {
    let mut s = 88172645463325252u64;
    (0..60_000)
        .map(|_| {
            let mut t = 0.0;
            for _ in 0..4 {
                s ^= s << 13;
                s ^= s >> 7;
                s ^= s << 17;
                t += (s >> 40) as f32 / 16777216.0 - 0.5
            }
            t * 0.02
        })
        .collect()
}
fn ids() -> Vec<u32> {
    let mut s = 88172645463325252u64;
    (0..60_000)
        .map(|i| {
            s ^= s << 13;
            s ^= s >> 7;
            s ^= s << 17;
            if (i / 37) % 3 == 0 { (i % 997) as u32 * 3 } else { (s % 50) as u32 }
        })
        .collect()
}
fn halves() -> Vec<u16> {
    weights().iter().map(|w| (w.to_bits() >> 16) as u16).collect()
}
fn doubles() -> Vec<f64> {
    weights()[..30_000].iter().map(|&w| w as f64 * 1.00001).collect()
}

/// A reader that is no slice.
struct Pipe<'a>(&'a [u8]);
impl std::io::Read for Pipe<'_> {
    fn read(&mut self, b: &mut [u8]) -> std::io::Result<usize> {
        let n = b.len().min(self.0.len()).min(4096);
        b[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

#[inline(never)]
fn enc<T: Serialize>(n: usize, v: &T, o: EncodeOptions) {
    for _ in 0..n {
        black_box(tenarc::ser::to_vec_with(black_box(v), o).unwrap());
    }
}
#[inline(never)]
fn append<T: Serialize>(n: usize, v: &T) {
    let mut b = Vec::new();
    for _ in 0..n {
        b.clear();
        tenarc::append_to(&mut b, black_box(v)).unwrap();
        black_box(&b);
    }
}
#[inline(never)]
fn dec<T: DeserializeOwned>(n: usize, b: &[u8]) {
    for _ in 0..n {
        black_box(tenarc::from_slice::<T>(black_box(b)).unwrap());
    }
}
#[inline(never)]
fn read<T: DeserializeOwned>(n: usize, b: &[u8]) {
    for _ in 0..n {
        black_box(tenarc::from_reader::<_, T>(Pipe(black_box(b))).unwrap());
    }
}
#[inline(never)]
fn write<T: Serialize>(n: usize, v: &T) {
    for _ in 0..n {
        tenarc::to_writer(std::io::sink(), black_box(v)).unwrap();
    }
}
fn save_z<T: Serialize>(v: &T, c: tenarc::archive::Compression) -> Vec<u8> {
    let mut o = tenarc::OArchive::with_options(
        Vec::new(),
        tenarc::archive::SaveOptions::default().with_compression(c),
    )
    .unwrap();
    o.save(v).unwrap();
    o.finish().unwrap()
}
fn save<T: Serialize>(v: &T) -> Vec<u8> {
    let mut o = tenarc::OArchive::new(Vec::new()).unwrap();
    o.save(v).unwrap();
    o.finish().unwrap()
}

fn both<T: Serialize + DeserializeOwned>(n: usize, mode: &str, v: &T) {
    let (how, cols) = mode.split_once('-').unwrap();
    let o = EncodeOptions::default();
    let o = match cols {
        "rows" => o,
        "cols" => o.with_columns(true),
        "typed" => o.with_typed_arrays(true),
        _ => panic!("no such encoding"),
    };
    let b = tenarc::ser::to_vec_with(v, o).unwrap();
    match how {
        "enc" => enc(n, v, o),
        "append" => append(n, v),
        "dec" => dec::<T>(n, &b),
        "value" => dec::<Value>(n, &b),
        "read" => read::<T>(n, &b),
        "write" => write(n, v),
        "encvalue" => {
            let v: Value = tenarc::from_slice(&b).unwrap();
            enc(n, &v, o)
        }
        "asave" => {
            for _ in 0..n {
                black_box(save(black_box(v)));
            }
        }
        "aload" => {
            let b = save(v);
            for _ in 0..n {
                black_box(tenarc::Archive::new(black_box(&b[..])).unwrap().load::<T>().unwrap());
            }
        }
        "zsave" => {
            for _ in 0..n {
                black_box(save_z(black_box(v), tenarc::archive::Compression::zstd()));
            }
        }
        "zload" => {
            let b = save_z(v, tenarc::archive::Compression::zstd());
            for _ in 0..n {
                black_box(tenarc::Archive::new(black_box(&b[..])).unwrap().load::<T>().unwrap());
            }
        }
        "skip" => dec::<serde::de::IgnoredAny>(n, &b),
        "diag" => {
            for _ in 0..n {
                black_box(tenarc::diag::to_string(black_box(&b)).unwrap());
            }
        }
        "fromvalue" => {
            let v: Value = tenarc::from_slice(&b).unwrap();
            for _ in 0..n {
                black_box(tenarc::from_value::<T>(black_box(v.clone())).unwrap());
            }
        }
        "tovalue" => {
            for _ in 0..n {
                black_box(tenarc::to_value(black_box(v)).unwrap());
            }
        }
        "tensors" => {
            let b = save(v);
            for _ in 0..n {
                black_box(tenarc::Archive::new(black_box(&b[..])).unwrap().tensors().unwrap());
            }
        }
        "get" => {
            let b = save(v);
            for _ in 0..n {
                black_box(
                    tenarc::Archive::new(black_box(&b[..])).unwrap().get::<Value>("150").unwrap(),
                );
            }
        }
        "iarchive" => {
            let b = save(v);
            for _ in 0..n {
                black_box(
                    tenarc::IArchive::new(Pipe(black_box(&b[..]))).unwrap().load::<T>().unwrap(),
                );
            }
        }
        _ => panic!("no such case"),
    }
}
/// The value, what is done with it, and how often.
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let n: usize = a[3].parse().unwrap();
    let m = &a[2][..];
    match &a[1][..] {
        "mesh" => both(n, m, &mesh()),
        "log" => both(n, m, &log()),
        "up" => both(n, m, &up()),
        "tiny" => both(n, m, &tiny()),
        "small" => both(n, m, &small()),
        "smallnd" => both(n, m, &smallnd()),
        "orders" => both(n, m, &orders()),
        "shorts" => both(n, m, &shorts()),
        "weights" => both(n, m, &Tensor(weights())),
        "halves" => both(n, m, &Tensor(halves())),
        "doubles" => both(n, m, &Tensor(doubles())),
        "ids" => both(n, m, &Tensor(ids())),
        "reads" => both(n, m, &reads()),
        "wide" => both(n, m, &wide()),
        "tagged" => both(n, m, &tagged()),
        "flats" => both(n, m, &flats()),
        "idsv" => both(n, m, &ids()),
        _ => panic!("no such value"),
    }
}
