//! Tables of other formats: what is lost stops a conversion, and what is printed is about the file.

use std::fs;
use std::path::PathBuf;

use serde::Serialize;
use tenarc::archive::SaveOptions;
use tenarc::types::{TimeUnit, TypeName, Typed};
use tenarc::{DynTensor, OArchive};

use crate::support::{Dir, run};

fn copied(dir: &Dir, path: &str) -> String {
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../convert/tests/fixtures");
    let name = path.rsplit('/').next().unwrap().to_owned();
    fs::copy(fixtures.join(path), dir.file(&name)).unwrap();
    name
}

const EMPTY: [&str; 4] = [
    "parquet/no_rows.parquet",
    "parquet/no_groups.parquet",
    "arrow/table_no_rows.arrow",
    "arrow/table_no_batches.arrow",
];

#[test]
fn columns_of_a_table_without_rows_are_a_loss() {
    for file in EMPTY {
        let dir = Dir::new();
        let name = copied(&dir, file);
        for to in ["a.tenarc", "a.json"] {
            run(&dir, &["convert", &name, to]).failed(2, "there are no rows");
            assert!(!dir.file(to).exists(), "{file}");
            let ran = run(&dir, &["convert", "--lossy", &name, to]);
            assert!(ran.status == 0 && ran.err.contains("there are no rows"), "{ran:?}");
        }
        assert_eq!(fs::read_to_string(dir.file("a.json")).unwrap(), "[]\n");
        let ran = run(&dir, &["info", &name]);
        assert!(ran.status == 0 && ran.out().contains("0 tensors"), "{ran:?}");
    }
}

#[test]
fn a_file_of_which_no_column_is_left_is_not_converted() {
    let dir = Dir::new();
    for file in ["parquet/nothing_kept.parquet", "arrow/nothing_kept.arrow"] {
        let name = copied(&dir, file);
        for options in [&[][..], &["--lossy"]] {
            let ran = run(&dir, &[&["convert", &name, "a.tenarc"], options].concat());
            ran.failed(2, "no column is left: cannot be kept: `view`");
            assert!(!dir.file("a.tenarc").exists(), "{file}");
        }
    }
}

#[test]
fn a_table_is_described_as_the_file_has_it() {
    let dir = Dir::new();
    for file in ["parquet/structs.parquet", "arrow/table.arrow"] {
        let name = copied(&dir, file);
        let len = fs::metadata(dir.file(&name)).unwrap().len();
        let info = run(&dir, &["info", &name, "--json"]).json();
        assert_eq!((&info[0]["checksums"], &info[0]["bytes"]), (&().into(), &len.into()));
        assert!(!run(&dir, &["info", &name]).out().contains("checksums"), "{file}");
        let verified = run(&dir, &["verify", &name, "--json"]).json();
        assert_eq!(verified[0]["bytes"], len, "{file}");
    }
    // The messages that are made of MessagePack have another length.
    let name = copied(&dir, "msgpack/strings.msgpack");
    let len = fs::metadata(dir.file(&name)).unwrap().len();
    assert_eq!(run(&dir, &["verify", &name, "--json"]).json()[0]["bytes"], len);
}

/// A log of 300 rows that were saved at several times. Some parts have no rows.
fn save_log(dir: &Dir) {
    #[derive(Serialize)]
    struct Row<'a> {
        day: Typed<'a, i32>,
        late: Typed<'a, i64>,
        x: f64,
    }
    let date = TypeName::date();
    let late = TypeName::timestamp(TimeUnit::Millisecond, "").unwrap();
    let mut out = OArchive::create(dir.file("log.tenarc"), SaveOptions::default()).unwrap();
    for days in [0..0, 0..20, 20..20, 20..299, 299..300] {
        let rows: Vec<_> = days.clone().zip(days.map(|day| i64::from(day) << 32)).collect();
        let row = |(day, ms)| Row {
            day: Typed::new(&date, day),
            late: Typed::new(&late, ms),
            x: f64::from(*day),
        };
        out.save_as("log", &rows.iter().map(|(day, ms)| row((day, ms))).collect::<Vec<_>>())
            .unwrap();
    }
    out.finish().unwrap();
}

/// A Parquet file of several row groups, or a log to which rows were appended, is one table.
#[test]
fn the_parts_of_a_table_are_one_value_of_other_formats() {
    let dir = Dir::new();
    save_log(&dir);
    run(&dir, &["convert", "log.tenarc", "log.parquet"]).good();
    for file in ["log.tenarc", "log.parquet"] {
        assert_eq!(run(&dir, &["get", file, "x"]).out().split_whitespace().count(), 300);
        assert_eq!(
            run(&dir, &["show", file, "--json", "--full"]).json().as_array().unwrap().len(),
            300
        );
        let ran = run(&dir, &["show", file, "--where", "x > 18", "-n", "3", "--json"]);
        let days = ["1970-01-20", "1970-01-21", "1970-01-22"];
        assert_eq!(
            ran.out().lines().filter(|line| days.iter().any(|day| line.contains(day))).count(),
            3
        );
        let ran = run(&dir, &["ls", file]);
        let mut lines = ran.out().lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        assert!(
            lines.any(|line| line.windows(4).any(|part| part == ["day", "i32", "date", "[300]"])),
            "{ran:?}"
        );
        let listed = run(&dir, &["ls", file, "--json"]).json();
        assert_eq!((&listed[1]["type"], &listed[3]["type"]), (&"date".into(), &().into()));
        assert_eq!(run(&dir, &["get", file, "day[31:33]"]).good(), "1970-02-01 1970-02-02\n");
        run(&dir, &["get", file, "late", "-o", "late.npy"]).good();
        let npy = fs::read(dir.file("late.npy")).unwrap();
        assert!(npy.windows(8).any(|found| found == b"<M8[ms]'"), "{npy:?}");
        let json = run(&dir, &["get", file, "day[0:1]", "--json"]).json();
        assert_eq!(
            json,
            serde_json::json!({"dtype": "i32", "type": ["date", []], "shape": [1], "data": [0]})
        );
        let rows = |condition: &str| {
            run(&dir, &["show", file, "--where", condition, "--json"]).good().lines().count()
        };
        assert_eq!(rows("day >= '1970-10-27' or day = '1970-01-01'"), 2);
        assert_eq!(rows("late < '1970-02-20'"), 2);
        run(&dir, &["show", file, "--where", "day > 'soon'"])
            .failed(2, "\"soon\" is no value of the column \"day\", which has the type \"date\"");
        assert!(run(&dir, &["show", file, "250", "--json"]).out().contains("250"));
        run(&dir, &["convert", file, "log.json"]).failed(0, "JSON has no `date`");
        let json = fs::read(dir.file("log.json")).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(
            (json.as_array().unwrap().len(), &json[299]["day"]),
            (300, &"1970-10-27".into())
        );
        run(&dir, &["convert", file, "log.npz"]).failed(0, "a tensor for each column replaces");
        let listed = run(&dir, &["ls", "log.npz", "--json"]).json();
        let paths: Vec<_> = listed.as_array().unwrap().iter().map(|entry| &entry["path"]).collect();
        assert_eq!(paths, ["day", "late", "x"]);
        run(&dir, &["convert", "log.npz", "back.tenarc"]).good();
        let back = tenarc::open(dir.file("back.tenarc")).unwrap();
        let days: DynTensor = back.tensor("day").unwrap();
        let ran = run(&dir, &["show", "back.tenarc", "day"]);
        let of = ran.out();
        assert!(
            of.contains("date") && days.into_vec::<i32>().unwrap().into_iter().eq(0..300),
            "{of}"
        );
        for to in ["log.safetensors", "log.gguf", "log.npy"] {
            let ran = run(&dir, &["convert", file, to]);
            assert!(ran.status == 2 && !dir.file(to).exists(), "{ran:?}");
        }
        run(&dir, &["convert", file, "log.safetensors"])
            .failed(2, "`day`: its type, `date`, is left out");
        for name in ["log.json", "log.npz", "back.tenarc", "late.npy"] {
            fs::remove_file(dir.file(name)).unwrap();
        }
    }
}

/// Whatever is written, also by way of a temporary file.
#[test]
fn damage_in_a_part_of_a_table_is_bad() {
    let dir = Dir::new();
    save_log(&dir);
    let mut bytes = fs::read(dir.file("log.tenarc")).unwrap();
    let x = 250f64.to_le_bytes();
    let at = bytes.windows(8).rposition(|found| found == x).unwrap();
    bytes[at] ^= 1;
    dir.write("damaged.tenarc", &bytes);
    for to in ["log.json", "log.msgpack", "log.pt", "log.npz"] {
        let ran = run(&dir, &["convert", "--lossy", "damaged.tenarc", to]);
        assert!(
            ran.status == 1 && ran.err.contains("checksum") && !dir.file(to).exists(),
            "{ran:?}"
        );
    }
}

#[test]
fn rows_are_deleted_by_their_dates() {
    let dir = Dir::new();
    save_log(&dir);
    run(&dir, &["compact", "log.tenarc", "--delete", "day < '1970-02-01'"]).good();
    assert_eq!(tenarc::open(dir.file("log.tenarc")).unwrap().table("log").unwrap().len(), 269);
}

/// Each line is a row, whatever the file is converted to, and comes back as a line.
#[test]
fn json_lines_are_the_rows_of_a_table() {
    let dir = Dir::new();
    let lines = "{\"a\":1,\"s\":\"x\"}\n{\"a\":2.5,\"s\":\"y\"}\n";
    let rows = "{\"a\":1.0,\"s\":\"x\"}\n{\"a\":2.5,\"s\":\"y\"}\n";
    dir.write("a.jsonl", lines.as_bytes());
    for (to, options) in [("a.parquet", &[][..]), ("a.arrow", &["--table"])] {
        run(&dir, &["convert", "a.jsonl", to]).good();
        run(&dir, &[&["convert", to, "again.jsonl"], options].concat()).good();
        assert_eq!(fs::read_to_string(dir.file("again.jsonl")).unwrap(), rows, "{to}");
    }
    // A single line is a table if the name says so. An array of objects is one, too.
    dir.write("one.jsonl", b"{\"a\":1}");
    run(&dir, &["convert", "one.jsonl", "one.parquet"]).good();
    run(&dir, &["convert", "one.parquet", "one.ndjson"]).good();
    assert_eq!(fs::read_to_string(dir.file("one.ndjson")).unwrap(), "{\"a\":1}\n");
    dir.write("array.json", b"[{\"a\":1},{\"a\":2}]");
    run(&dir, &["convert", "array.json", "array.jsonl"]).good();
    assert_eq!(fs::read_to_string(dir.file("array.jsonl")).unwrap(), "{\"a\":1}\n{\"a\":2}\n");
    run(&dir, &["convert", "array.json", "array2.json"]).good();
    assert_eq!(fs::read_to_string(dir.file("array2.json")).unwrap(), "[{\"a\":1},{\"a\":2}]\n");
    // Other arrays and other values stay as they are.
    dir.write("b.json", b"[1,2]\n[]\n[{},3]");
    run(&dir, &["convert", "b.json", "b.jsonl"]).good();
    assert_eq!(fs::read_to_string(dir.file("b.jsonl")).unwrap(), "[1,2]\n[]\n[{},3]\n");
}

/// A key that a line lacks is no null, in an archive and in what is made of it.
#[test]
fn json_lines_may_lack_keys() {
    let dir = Dir::new();
    let lines = [
        r#"{"id":1,"score":1.5,"in":{"x":1,"y":null},"list":[{"p":1},{"q":"s"},{}]}"#,
        r#"{"id":2,"in":{"x":3,"y":4},"list":[{"p":2,"q":"t"}],"note":"hi","t":[[1],[]]}"#,
        r#"{"tags":["b","c"],"in":{"y":7},"extra":{"deep":{"a":1}}}"#,
        r"{}",
        r#"{"score":2.5,"extra":{"deep":{}}}"#,
        "",
    ];
    // No line has both, so no null can be taken for a missing key.
    let lines = lines.join("\n").replace(r#","y":null"#, "");
    dir.write("a.jsonl", lines.as_bytes());
    run(&dir, &["convert", "a.jsonl", "a.tenarc"]).good();
    for file in ["a.tenarc", "a.parquet", "a.arrow"] {
        if file != "a.tenarc" {
            run(&dir, &["convert", "a.tenarc", file]).good();
        }
        run(&dir, &["convert", file, "again.tenarc"]).good();
        let again = tenarc::open(dir.file("again.tenarc")).unwrap();
        assert_eq!((again.len(), again.table("a").unwrap().len()), (1, 5), "{file}");
        run(&dir, &["convert", "again.tenarc", "again.jsonl"]).good();
        let found = fs::read_to_string(dir.file("again.jsonl")).unwrap();
        let parsed = |lines: &str| -> Vec<serde_json::Value> {
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        assert_eq!(parsed(&found), parsed(&lines), "{file}");
    }
    let archive = tenarc::open(dir.file("a.tenarc")).unwrap();
    let columns = archive.table("a").unwrap().columns().unwrap();
    let column = |path: &str| columns.iter().find(|column| column.path() == path).unwrap();
    assert_eq!(column("score").dtype(), Some(&tenarc::DType::F64));
    assert!(column("in.x").is_optional());
}

/// A value of an archive for each line, unless all lines are objects, and no field has both nulls and missing keys.
#[test]
fn json_lines_become_columns_of_an_archive() {
    let dir = Dir::new();
    let line = |at| format!("{{\"id\":{at},\"in\":{{\"x\":{at}.5}},\"name\":\"n{}\"}}\n", at % 9);
    let lines = (0..500).map(line).collect::<Vec<_>>().concat();
    dir.write("log.jsonl", lines.as_bytes());
    run(&dir, &["convert", "log.jsonl", "log.tenarc"]).good();
    let archive = tenarc::open(dir.file("log.tenarc")).unwrap();
    let table = archive.table("log").unwrap();
    assert_eq!((archive.len(), table.len()), (1, 500));
    assert_eq!(table.column::<Vec<f64>>("in.x").unwrap().last(), Some(&499.5));
    run(&dir, &["convert", "log.tenarc", "again.jsonl"]).good();
    assert!(fs::read_to_string(dir.file("again.jsonl")).unwrap() == lines);
    run(&dir, &["convert", "log.jsonl", "-s", "3", "row.tenarc"]).good();
    assert!(run(&dir, &["show", "row.tenarc"]).good().starts_with("{\n  \"id\": 3"));
    run(&dir, &["convert", "log.jsonl", "small.tenarc", "--compress", "zstd"]).good();
    run(&dir, &["diff", "log.tenarc", "small.tenarc"]).good();
    let len = |name: &str| fs::metadata(dir.file(name)).unwrap().len();
    assert!(len("small.tenarc") < len("log.tenarc") / 2);

    let many: Vec<_> = (0..=65_536).map(|at| format!("{{\"id\":{at}}}\n")).collect();
    dir.write("many.jsonl", many.concat().as_bytes());
    run(&dir, &["convert", "many.jsonl", "many.tenarc"]).good();
    let many = tenarc::open(dir.file("many.tenarc")).unwrap();
    assert_eq!((many.len(), many.table("many").unwrap().len()), (2, 65_537));
    assert!(many.segment(0).unwrap().has_statistics());

    // The order of keys does not matter. A table would not keep the others as they are.
    for (lines, values) in [
        ("{\"a\":1,\"b\":true}\n{\"b\":null,\"a\":2}\n", 1),
        ("{\"a\":1}\n{\"b\":2}\n", 1),
        ("{\"a\":1,\"b\":1}\n{\"a\":1,\"b\":null}\n{\"a\":2}\n", 3),
        ("{\"a\":[{\"b\":1}]}\n{\"a\":[{}]}\n{\"a\":[{\"b\":null}]}\n", 3),
        ("{\"a\":1}\n7\n{\"a\":2}\n", 3),
        ("{\"a\":1}\n{\"a\":\"x\"}\n", 2),
        ("{\"a\":9007199254740993}\n{\"a\":0.5}\n", 2),
        ("{\"a\":{\"x\":1}}\n{\"a\":{}}\n", 1),
        ("{}\n{}\n", 2),
        ("[{\"a\":1}]\n[{\"a\":2}]\n", 2),
    ] {
        dir.write("a.ndjson", lines.as_bytes());
        run(&dir, &["convert", "a.ndjson", "a.tenarc"]).good();
        assert_eq!(tenarc::open(dir.file("a.tenarc")).unwrap().len(), values, "{lines}");
    }
}

/// A dataset of structs, as `PyTables` writes them, is rows.
#[test]
fn structs_of_hdf5_are_a_table() {
    let dir = Dir::new();
    let name = copied(&dir, "hdf5/structs_latest.h5");
    let table = "--table=rows";
    let ran = run(
        &dir,
        &["show", "--json", table, &name, "--where", "id > 0", "--columns", "id,text,inner.name"],
    );
    let rows: Vec<serde_json::Value> =
        ran.out().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 2, "{ran:?}");
    assert_eq!(rows[1]["text"], "tëxttëxttëxt");
    assert_eq!(rows[1]["inner.name"], "aba");
    // Of the losses in the file, those in the dataset count.
    let ran = run(&dir, &["convert", table, &name, "rows.parquet"]);
    ran.failed(2, "cannot be kept: `rows/raw`: raw elements of 3 bytes");
    assert!(!ran.err.contains("clash"), "{ran:?}");
    run(&dir, &["show", "--table=clash.a.b.c", &name]).failed(2, "there is no value at");
    run(&dir, &["show", "--table=one.text", &name])
        .failed(2, "\"one.text\": expected a map of arrays");
}
