//! (d) encodes and decodes 10,000 log lines of strings and numbers.
//!
//! The types, the number of lines and the choice of values are those of the `log` set of
//! rust_serialization_benchmark, so that results can be compared. The code is tenarc's own.

use crate::data::Random;
use crate::harness::{Case, Column, Effort, MESSAGES, Placed, Row, timed};
use crate::native::{bincode_row, bitcode_row, rkyv_rows, types, wincode_row};
use crate::peers::{self, Codec, Lender, borrowed};
use crate::recorder::Recorder;
use crate::table::print_report;
use crate::targets::Targets;

types! {
    #[derive(Copy)]
    struct Address {
        x0: u8,
        x1: u8,
        x2: u8,
        x3: u8,
    }

    struct Line {
        address: Address,
        identity: String,
        userid: String,
        date: String,
        request: String,
        code: u16,
        size: u64,
    }

    struct Log {
        logs: Vec<Line>,
    }
}

#[derive(serde::Deserialize, bincode::BorrowDecode, bitcode::Decode)]
struct LineRef<'a> {
    address: Address,
    identity: &'a str,
    userid: &'a str,
    date: &'a str,
    request: &'a str,
    code: u16,
    size: u64,
}

#[derive(serde::Deserialize, bincode::BorrowDecode, bitcode::Decode)]
struct LogRef<'a> {
    #[serde(borrow)]
    logs: Vec<LineRef<'a>>,
}

impl LogRef<'_> {
    fn same(&self, log: &Log) -> bool {
        let equal = |a: &LineRef<'_>, b: &Line| {
            a.address == b.address
                && a.identity == b.identity
                && a.userid == b.userid
                && a.date == b.date
                && a.request == b.request
                && a.code == b.code
                && a.size == b.size
        };
        self.logs.len() == log.logs.len()
            && self.logs.iter().zip(&log.logs).all(|(a, b)| equal(a, b))
    }
}

fn line(random: &mut Random) -> Line {
    const USERS: [&str; 9] =
        ["-", "alice", "bob", "carmen", "david", "eric", "frank", "george", "harry"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    const METHODS: [&str; 5] = ["GET", "POST", "PUT", "UPDATE", "DELETE"];
    const PATHS: [&str; 7] = [
        "/favicon.ico",
        "/css/index.css",
        "/css/font-awsome.min.css",
        "/img/logo-full.svg",
        "/img/splash.jpg",
        "/api/login",
        "/api/logout",
    ];
    const PROTOCOLS: [&str; 4] = ["HTTP/1.0", "HTTP/1.1", "HTTP/2", "HTTP/3"];
    let [x0, x1, x2, x3] = (random.bits() as u32).to_le_bytes();
    Line {
        address: Address { x0, x1, x2, x3 },
        identity: "-".to_string(),
        userid: random.pick(&USERS).to_string(),
        date: format!(
            "{}/{}/{}:{}:{}:{} {:+03}00",
            random.between(1, 29),
            random.pick(&MONTHS),
            random.between(1970, 2022),
            random.below(24),
            random.below(60),
            random.below(60),
            random.below(25) as i32 - 12,
        ),
        request: format!(
            "{} {} {}",
            random.pick(&METHODS),
            random.pick(&PATHS),
            random.pick(&PROTOCOLS)
        ),
        // The public set picks one of the 63 registered codes of HTTP. All take two bytes or three.
        code: random.between(100, 512) as u16,
        size: random.below(100_000_000),
    }
}

fn plain<'a, C: Lender>(log: &'a Log) -> Row<'a> {
    let row = peers::row::<C, _>("plain", log);
    borrowed!(row, |bytes| C::lend::<LogRef>(bytes), |view| view.same(log))
}

pub fn run(effort: Effort, recorder: &mut Recorder, targets: &mut Targets) {
    let mut random = Random::new(4);
    let log = &Log { logs: (0..10_000).map(|_| line(&mut random)).collect() };

    let message = peers::Tenarc::to_vec(log);
    let message = message.as_slice();
    let floor = Row::new("floor", "", Placed::new(message, 0))
        .encode(move |buffer| buffer.extend_from_slice(message))
        .fresh(move || message.to_vec())
        .decode(move |_| timed(|| log.clone()));

    let config = bincode::config::standard().with_fixed_int_encoding();
    let bincode_native = borrowed!(
        bincode_row!(log, Log),
        |bytes| bincode::borrow_decode_from_slice::<LogRef, _>(bytes, config).unwrap(),
        |view| view.0.same(log)
    );
    let bitcode_native = borrowed!(
        bitcode_row!(log, Log),
        |bytes| bitcode::decode::<LogRef>(bytes).unwrap(),
        |view| view.same(log)
    );

    let mut rows = vec![
        floor,
        plain::<peers::Tenarc>(log),
        peers::row::<peers::TenarcColumns, _>("columns", log),
        plain::<peers::Cbor4ii>(log),
        plain::<peers::Minicbor>(log),
        plain::<peers::RmpNamed>(log),
        plain::<peers::RmpCompact>(log),
        peers::row::<peers::Ciborium, _>("plain", log),
        plain::<peers::Json>(log),
        plain::<peers::Bincode1>(log),
        plain::<peers::Bincode2>(log),
        plain::<peers::Postcard>(log),
        peers::zap("plain", log),
        plain::<peers::BitcodeSerde>(log),
        bincode_native,
        wincode_row!(log, Log),
        bitcode_native,
    ];
    rows.extend(rkyv_rows!(log, Log));

    let report = Case {
        title: format!("(d) log: {} lines of strings and numbers", log.logs.len()),
        heads: MESSAGES,
        floor: "encode, to_vec: memcpy of tenarc's message; decode: clone of the value",
        rows,
    }
    .run(effort);
    print_report(&report);
    recorder.keep("log", &report);
    let case = "d log";
    targets.rows(case, &report);
    targets.columns(case, &report, (Column::ToVec, "bitcode", "plain"), 1.9);
    targets.aim(1.25);
    targets.columns(case, &report, (Column::Decode, "bincode 1", "plain"), 1.05);
    targets.columns_size(case, &report, "bitcode", 1.1);
}
