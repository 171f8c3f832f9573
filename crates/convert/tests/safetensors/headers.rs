//! Headers made by other programs, correct and wrong.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use tenarc::error::Category;
use tenarc::io::ReadAt;
use tenarc_convert::TensorFile as _;
use tenarc_convert::safetensors::{SafeTensors, open};

use crate::support::{raw, refused, tensor, written};

const GOOD: &str = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;

fn accepted(header: &str, data: &[u8]) -> bool {
    SafeTensors::new(&raw(header, data)[..]).is_ok()
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let entry = |body: &str| format!(r#"{{"a":{{{body}}}}}"#);
    let cases = [
        (
            entry(r#""dtype":"F32","shape":[2]"#),
            Category::Data,
            "missing field `data_offsets` at `a`",
        ),
        (entry(r#""dtype":"F32","shape":[2],"data_offsets":[0]"#), Category::Data, "two offsets"),
        (
            entry(r#""dtype":"F32","shape":[2],"data_offsets":[0,8,8]"#),
            Category::Data,
            "two offsets",
        ),
        (
            entry(r#""dtype":"F32","shape":[2.0],"data_offsets":[0,8]"#),
            Category::Data,
            "expected usize at `a.shape.0`",
        ),
        (
            entry(r#""dtype":"F32","shape":[2e0],"data_offsets":[0,8]"#),
            Category::Data,
            "expected usize at `a.shape.0`",
        ),
        (
            entry(r#""dtype":"F32","shape":[-0],"data_offsets":[0,0]"#),
            Category::Data,
            "expected usize at `a.shape.0`",
        ),
        (
            entry(r#""dtype":"F32","shape":["2"],"data_offsets":[0,8]"#),
            Category::Data,
            "invalid type: string \"2\", expected usize at `a.shape.0`",
        ),
        (
            entry(r#""dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,8]"#),
            Category::Data,
            "expected usize at `a.shape.0`",
        ),
        (entry(r#""dtype":"f32","shape":[2],"data_offsets":[0,8]"#), Category::Data, "`f32`"),
        (entry(r#""dtype":"C128","shape":[1],"data_offsets":[0,16]"#), Category::Data, "`C128`"),
        (
            entry(r#""dtype":"F32","shape":[2],"data_offsets":[0,8],"strides":[1]"#),
            Category::Data,
            "unknown field `strides`, expected one of",
        ),
        (
            entry(r#""dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]"#),
            Category::Data,
            "duplicate field `shape` at `a`",
        ),
        (r#"{"a":["F32",[2],[0,8]]}"#.into(), Category::Data, "invalid type: sequence"),
        (r#"{"__metadata__":{"k":"a","k":"b"}}"#.into(), Category::Data, "twice"),
        (
            r#"{"__metadata__":{},"__metadata__":{}}"#.into(),
            Category::Data,
            "duplicate field `__metadata__`",
        ),
        (r#"{"__metadata__":{"k":null}}"#.into(), Category::Data, "null"),
        (r#"{"__metadata__":[]}"#.into(), Category::Data, "invalid type: sequence"),
        (format!("{GOOD}{GOOD}"), Category::Syntax, "trailing characters"),
        (format!("{GOOD}\0"), Category::Syntax, "trailing characters"),
        (GOOD.trim_end_matches('}').into(), Category::Syntax, "EOF while parsing"),
        (r#"{"\ud800":1}"#.into(), Category::Syntax, "unexpected end of hex escape"),
        ("[]".into(), Category::Syntax, "begins with `{`"),
        (String::new(), Category::Syntax, "begins with `{`"),
        ("\u{feff}{}".into(), Category::Syntax, "begins with `{`"),
    ];
    for (header, category, part) in cases {
        let error = refused(&raw(&header, &[0; 8]));
        assert_eq!(error.category(), category, "{header}: {error}");
        assert!(error.to_string().contains(part), "{header}: {error}");
        let end = 8 + header.len() as u64;
        assert!(part == "twice" || error.offset().is_some_and(|at| at <= end), "{header}: {error}");
    }
    assert!(accepted(GOOD, &[0; 8]));
}

#[test]
fn what_follows_the_object_may_be_any_white_space() {
    assert!(accepted(&format!("{GOOD} \n\t\r "), &[0; 8]));
    assert!(accepted("{ }", &[]));
    assert!(accepted(r#"{"__metadata__":null}"#, &[]));
}

#[test]
fn bytes_belong_to_one_tensor_each() {
    let two = |a: (u64, u64), b: (u64, u64)| {
        let entry = |name, (start, end): (u64, u64)| {
            let count = end.saturating_sub(start);
            format!(r#""{name}":{{"dtype":"U8","shape":[{count}],"data_offsets":[{start},{end}]}}"#)
        };
        accepted(&format!("{{{},{}}}", entry("a", a), entry("b", b)), &[0; 8])
    };
    assert!(two((0, 4), (4, 8)));
    assert!(two((4, 8), (0, 4)));
    assert!(two((0, 8), (8, 8)), "empty at the end");
    assert!(two((0, 0), (0, 8)), "empty at the start");
    assert!(two((0, 8), (0, 0)), "the same, in another order");
    assert!(!two((0, 8), (4, 4)), "empty inside another");
    assert!(!two((0, 8), (9, 9)), "empty outside");
    assert!(!two((0, 5), (4, 8)));
    assert!(!two((0, 3), (4, 8)));
    assert!(!two((0, 4), (4, 7)));
    assert!(!two((0, 4), (4, 9)));
    assert!(!two((0, 8), (8, u64::MAX)));
    assert!(!two((4, 8), (4, 8)));
}

#[test]
fn shapes_that_fit_no_memory_are_refused_when_they_are_asked_for() {
    // The reference implementation lets zeros hide what is in front of them not, and behind them.
    let header =
        |shape: &str| format!(r#"{{"a":{{"dtype":"F32","shape":{shape},"data_offsets":[0,0]}}}}"#);
    let big = 1u64 << 40;
    assert!(!accepted(&header(&format!("[{big},{big},0]")), &[]));
    let bytes = raw(&header(&format!("[0,{big},{big}]")), &[]);
    let file = SafeTensors::new(&bytes[..]).unwrap();
    let errors = [file.dyn_tensor("a").unwrap_err(), file.deferred("a").unwrap_err()];
    for error in errors.into_iter().chain([file.flat().unwrap_err()]) {
        assert!(error.to_string().contains("does not fit in memory"), "{error}");
        assert_eq!(error.path(), "a");
    }
}

#[test]
fn bools_are_zero_or_one_when_they_are_read() {
    let header = r#"{"a":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}}"#;
    let bytes = raw(header, &[0, 1, 2]);
    let file = SafeTensors::new(&bytes[..]).unwrap();
    assert_eq!(file.dyn_tensor("a").unwrap_err().path(), "a");
    let mut out = Vec::new();
    let copied = [("a", file.deferred("a").unwrap())];
    let error = tenarc_convert::safetensors::to_writer(&mut out, &copied).unwrap_err();
    assert!(error.to_string().contains("the byte 2; it must be 0 or 1"), "{error}");
    assert_eq!(error.offset(), Some(8 + header.len() as u64 + 2));
    let error = tenarc::to_vec(&file.flat().unwrap()).unwrap_err();
    assert!(error.to_string().contains("the byte 2; it must be 0 or 1"), "{error}");
}

/// A file that claims to be long, and counts what is read of it.
struct Claims {
    start: Vec<u8>,
    len: u64,
    read: AtomicU64,
}

impl ReadAt for Claims {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        self.read.fetch_add(out.len() as u64, Ordering::Relaxed);
        let start = usize::try_from(offset).unwrap();
        for (at, byte) in out.iter_mut().enumerate() {
            *byte = self.start.get(start + at).copied().unwrap_or(0);
        }
        Ok(out.len())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.len)
    }
}

#[test]
fn long_headers_are_not_read_unless_they_begin_like_one() {
    let claims = |header: u64, first: &[u8]| {
        let start = [&header.to_le_bytes(), first].concat();
        Claims { start, len: 1 << 40, read: 0.into() }
    };
    for (header, first, category) in [
        (100_000_001, &b"{"[..], Category::Limit),
        (u64::MAX, b"{", Category::Limit),
        (100_000_000, b" ", Category::Syntax),
        (100_000_000, b"", Category::Syntax),
    ] {
        let file = claims(header, first);
        assert_eq!(SafeTensors::new(&file).unwrap_err().category(), category);
        let read = file.read.load(Ordering::Relaxed);
        assert!(read < 16, "{read} bytes were read");
    }
}

#[test]
fn every_truncation_is_an_error() {
    let a = tensor(&tenarc::DType::F32, &[3], 1);
    let bytes = written(&[("a", a.clone()), ("b", a)], &crate::support::quick());
    for len in 0..bytes.len() {
        let error = refused(&bytes[..len]);
        assert!(matches!(error.category(), Category::Eof | Category::Syntax), "{len}: {error}");
    }
}

#[test]
fn errors_are_fit_for_a_terminal_and_short() {
    let long = "x".repeat(100_000);
    for name in ["a\u{1b}[31m", "\\u001b[31m", &long] {
        for body in [
            r#"{"dtype":"F32","shape":[1],"data_offsets":[1,5]}"#.to_owned(),
            format!(r#"{{"dtype":"{name}","shape":[1],"data_offsets":[0,4]}}"#),
            format!(r#"{{"{name}":1}}"#),
            format!(r#"{{"shape":"{name}"}}"#),
        ] {
            let error = refused(&raw(&format!(r#"{{"{name}":{body}}}"#), &[0; 4])).to_string();
            assert!(!error.contains(char::is_control) && error.len() < 1000, "{error}");
        }
    }
}

#[test]
fn shapes_of_many_dimensions_are_not_told_whole() {
    let ones = ",1".repeat(100_000);
    let header = |first: &str, end: u64| {
        let shape = format!("{first}{ones}");
        format!(r#"{{"a":{{"dtype":"U8","shape":[{shape}],"data_offsets":[0,{end}]}}}}"#)
    };
    for first in ["2", "4294967296,4294967296"] {
        let error = refused(&raw(&header(first, 1), &[0])).to_string();
        assert!(error.contains("more dimensions") && error.len() < 500, "{error}");
    }
    let bytes = raw(&header("0,4294967296,4294967296", 0), &[]);
    let file = SafeTensors::new(&bytes[..]).unwrap();
    for error in [file.dyn_tensor("a").unwrap_err(), file.deferred("a").unwrap_err()] {
        assert!(error.to_string().len() < 500, "{error}");
    }
    let bytes = raw(&header("1", 1), &[7]);
    let file = SafeTensors::new(&bytes[..]).unwrap();
    assert_eq!(*file.dyn_tensor("a").unwrap().le_bytes(), [7]);
}

#[test]
fn pipes_and_directories_are_refused_without_waiting() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(open(dir.path()).unwrap_err().category(), Category::Io);
    let pipe = dir.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if made.is_ok_and(|status| status.success()) {
        assert_eq!(open(&pipe).unwrap_err().category(), Category::Io);
    }
    assert_eq!(open(dir.path().join("none")).unwrap_err().category(), Category::Io);
}

#[cfg(unix)]
#[test]
fn offsets_beyond_4_gib_are_kept() {
    use std::os::unix::fs::FileExt as _;

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sparse.safetensors");
    let (first, end) = (5u64 << 30, (5 << 30) + 4);
    let header = format!(
        r#"{{"a":{{"dtype":"U8","shape":[{first}],"data_offsets":[0,{first}]}},"b":{{"dtype":"U8","shape":[4],"data_offsets":[{first},{end}]}}}}"#
    );
    let start = 8 + header.len() as u64;
    let file = std::fs::File::create(&path).unwrap();
    file.set_len(start + end).unwrap();
    file.write_all_at(&raw(&header, &[]), 0).unwrap();
    file.write_all_at(&[1, 2, 3, 4], start + first).unwrap();
    let opened = open(&path).unwrap();
    assert_eq!(opened.info("a").unwrap().byte_len(), first);
    assert_eq!(*opened.dyn_tensor("b").unwrap().le_bytes(), [1, 2, 3, 4]);
}
