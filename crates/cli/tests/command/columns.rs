//! Sequences that are stored as columns, and tables: every command on archives with them.

use crate::support::{Dir, flip, ramp, run};
use serde::Serialize;
use serde_json::json;
use tenarc::archive::SaveOptions;
use tenarc::io::SyncLevel;
use tenarc::ser::EncodeOptions;
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor, OArchive, Tensor};

#[derive(Serialize, Clone)]
struct Event {
    id: u32,
    score: f32,
    text: String,
    emb: Tensor<Vec<f32>>,
    meta: Meta,
    note: Option<f64>,
}

#[derive(Serialize, Clone)]
struct Meta {
    size: u64,
    hot: bool,
}

fn event(id: u32) -> Event {
    Event {
        id,
        score: id as f32 / 2.0,
        text: format!("t{id}"),
        emb: Tensor(vec![id as f32; 4]),
        meta: Meta { size: u64::from(id) * 10, hot: id.is_multiple_of(2) },
        note: (!id.is_multiple_of(3)).then_some(0.25),
    }
}

#[derive(Serialize, Clone)]
struct Run {
    name: String,
    log: Vec<Event>,
    weight: Tensor<Vec<f32>>,
}

/// Saves values, with sequences of structs as columns or as rows.
fn save<T: Serialize>(dir: &Dir, name: &str, columns: bool, values: &[(&str, T)]) {
    let options = SaveOptions::default().with_sync(SyncLevel::Off).with_columns(columns);
    let mut out = OArchive::create(dir.file(name), options).unwrap();
    for (name, value) in values {
        out.save_as(name, value).unwrap();
    }
    out.finish().unwrap();
}

fn events() -> Vec<Event> {
    (0..300).map(event).collect()
}

fn a_run() -> Run {
    Run { name: "r".into(), log: events()[..40].to_vec(), weight: Tensor(vec![1.0; 8]) }
}

/// Archives that hold the same values, as columns and as rows.
fn saved() -> Dir {
    let dir = Dir::new();
    for (prefix, columns) in [("c", true), ("r", false)] {
        save(&dir, &format!("{prefix}-events"), columns, &[("events", events())]);
        save(&dir, &format!("{prefix}-run"), columns, &[("run", a_run())]);
        let days = [("events", events()[..20].to_vec()), ("events", events()[20..40].to_vec())];
        save(&dir, &format!("{prefix}-days"), columns, &days);
    }
    dir
}

#[test]
fn lists_columns() {
    let dir = saved();
    let expected = "\
path           dtype            shape    bytes
log            columns          [40]         -
log.id         u32              [40]     160 B
log.score      f32              [40]     160 B
log.text       texts            [40]         -
log.emb        f32              [40, 4]  640 B
log.meta       structs          [40]         -
log.meta.size  u64              [40]     320 B
log.meta.hot   bool             [40]      40 B
log.note       optional values  [40]         -
weight         f32              [8]       32 B
6 tensors, 1.3 KiB; 1 table of 40 rows
";
    assert_eq!(run(&dir, &["ls", "c-run"]).good(), expected);
    let tree = "\
c-run  3 tensors, 520 B
└── log  3 tensors, 520 B
    ├── score  f32 [40]  160 B
    └── meta  2 tensors, 360 B
        ├── size  u64 [40]  320 B
        └── hot  bool [40]  40 B
";
    let shown = run(&dir, &["ls", "--tree", "c-run", "-e", "log.score", "-e", "*.meta.*"]);
    assert_eq!(shown.good(), tree);
    let args = ["ls", "--json", "c-days", "-s", "1", "-e", "text", "-e", "emb", "-e", ""];
    let rows = run(&dir, &args).json();
    assert_eq!(rows.as_array().unwrap().len(), 3, "{rows}");
    let whole = json!({
        "segment": 1, "name": "events", "path": "", "dtype": null, "kind": "columns",
        "shape": [20], "order": "C", "bytes": null,
    });
    assert_eq!(rows[0], whole);
    let text = json!({
        "segment": 1, "name": "events", "path": "text", "dtype": null, "kind": "texts",
        "shape": [20], "order": "C", "bytes": null,
    });
    assert_eq!(rows[1], text);
    let emb = json!({
        "segment": 1, "name": "events", "path": "emb", "dtype": "f32", "kind": "tensors",
        "shape": [20, 4], "order": "C", "bytes": 320,
    });
    assert_eq!(rows[2], emb);
    run(&dir, &["ls", "c-run", "-e", "log.nope"]).failed(2, "nothing matches \"log.nope\"");
}

#[test]
fn shows_the_same_for_columns_and_rows() {
    let dir = saved();
    for (file, path) in [
        ("run", ""),
        ("run", "log"),
        ("run", "log.7"),
        ("run", "log.7.meta"),
        ("run", "log[3:5]"),
        ("run", "log[-1]"),
        ("run", "log[5:5]"),
        ("events", ""),
        ("events", "events"),
        ("events", "events.250.emb"),
        ("events", "events[:]"),
        ("events", "events[100:150]"),
        ("days", ""),
        ("days", "events"),
        ("days", "events.25"),
        ("days", "events.25.meta.size"),
        ("days", "events[18:22]"),
        ("days", "events.score"),
        ("days", "events.note"),
        ("days", "events.score.25"),
    ] {
        // The elements of `weight` are not shown beside many tensors in rows.
        let options = [Some("--json"), Some("--full"), None];
        for option in options.into_iter().take(if (file, path) == ("run", "") { 2 } else { 3 }) {
            let of = |prefix: &str| {
                let mut args = vec!["show".to_owned(), format!("{prefix}-{file}")];
                args.extend(option.map(str::to_owned));
                args.push(path.into());
                run(&dir, &args)
            };
            let (columns, rows) = (of("c"), of("r"));
            assert_eq!(columns.good().is_empty(), path == "log[5:5]" && option == Some("--json"));
            if path == "events.score" {
                // Only columns know the dtype.
                assert!(columns.out().contains("f32"), "{columns:?}");
                continue;
            }
            assert_eq!(columns.good(), rows.good(), "{file} {path} {option:?}");
        }
    }
}

#[test]
fn shows_rows_and_columns() {
    let dir = saved();
    let show = |path: &str| run(&dir, &["show", "c-events", path]);
    let expected = "\
[
  {
    \"id\": 10,
    \"score\": 5.0,
    \"text\": \"t10\",
    \"emb\": f32 [4] [10. 10. 10. 10.],
    \"meta\": {
      \"size\": 100,
      \"hot\": true,
    },
    \"note\": 0.25,
  },
]
";
    assert_eq!(show("events[10:11]").good(), expected);
    assert_eq!(show("[10:11]").good(), expected, "a path in the only value");
    let all = show("events");
    assert!(all.good().ends_with("  … 200 more\n]\n"), "{}", all.out());
    assert_eq!(all.out().matches("\"id\"").count(), 100);
    let part = show("events[100:250]");
    assert!(part.good().starts_with("[\n  {\n    \"id\": 100,\n"), "{}", part.out());
    assert!(part.good().ends_with("  … 50 more\n]\n"), "{}", part.out());
    let full = run(&dir, &["show", "--full", "c-events", "events"]);
    assert_eq!(full.good().matches("\"id\"").count(), 300);
    assert!(full.out().contains("\"id\": 299,"));
    assert_eq!(show("events.3.score").good(), "1.5\n");
    assert_eq!(show("events.score.3").good(), "1.5\n");
    assert_eq!(show("3.score").good(), "1.5\n");
    assert_eq!(show("/3/score").good(), "1.5\n");
    let scores = show("events.score");
    assert!(scores.good().starts_with("f32 [300]\n  [  0.    0.5   1.    1.5"), "{scores:?}");
    assert_eq!(show("/score").good(), show("score").good());
    assert!(show("events.meta.size").good().starts_with("u64 [300]\n"));
    assert!(show("events.note").good().starts_with("[null, 0.25, 0.25, null, "));
    assert!(show("events.text").good().ends_with("\"t99\", … 200 more]\n"));
    show("events.nope").failed(2, "expected one of the columns `id`");
    show("events.300").failed(2, "300");
    show("events[300]").failed(2, "expected a row of a table of 300 rows, found row 300");
    show("events[-301]").failed(2, "found row -301");
    show("events[::2]").failed(2, "a range of rows has no step");
    show("events[0, 1]").failed(2, "rows have one axis");
    show("events[a:b]").failed(2, "neither an index nor a range");
    let show = |path: &str| run(&dir, &["show", "c-run", path]);
    show("weight[0:2]").failed(2, "a tensor is no table: `tenarc get` shows slices");
    show("name[0:2]").failed(2, "not a sequence");
    let show = |path: &str| run(&dir, &["show", "c-days", path]);
    show("events.nope").failed(2, "expected one of the columns `id`");
    show("events.40").failed(2, "there is no row 40: the table has 40 rows");
    show("other").failed(2, "there is none at `other`");
    run(&dir, &["show", "r-days", "other"]).failed(2, "\"other\": there is no such column");
}

#[test]
fn shows_rows_as_json_lines() {
    let dir = saved();
    for file in ["c-days", "r-days"] {
        let shown = run(&dir, &["show", "--json", file, "events[19:21]"]);
        let lines: Vec<serde_json::Value> =
            shown.good().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!((&lines[0]["id"], &lines[1]["id"]), (&json!(19), &json!(20)));
        assert_eq!(lines[0]["emb"]["data"], json!([19.0, 19.0, 19.0, 19.0]));
        assert_eq!(lines[0]["meta"], json!({"size": 190, "hot": false}));
    }
    let all = run(&dir, &["show", "--json", "c-days", "events"]).json();
    assert_eq!(all.as_array().unwrap().len(), 40);
}

#[test]
fn a_longer_name_comes_first() {
    let dir = Dir::new();
    save(&dir, "m", true, &[("a", events()), ("a.b", events()[5..].to_vec()), ("a", events())]);
    assert_eq!(run(&dir, &["show", "m", "a.b.0.id"]).good(), "5\n");
    assert_eq!(run(&dir, &["show", "m", "a.300.id"]).good(), "0\n");
    assert_eq!(run(&dir, &["show", "m", "a.0.id", "-s", "a.b"]).status, 2);
    assert!(run(&dir, &["show", "m", "0.id", "-s", "a.b"]).good().ends_with("5\n"));
}

#[test]
fn gets_columns() {
    let dir = saved();
    let get = |file: &str, path: &str| run(&dir, &["get", file, path]);
    assert_eq!(get("c-events", "events.score[8:11]").good(), "4.0 4.5 5.0\n");
    assert_eq!(get("c-events", "score[8:11]").good(), "4.0 4.5 5.0\n");
    assert_eq!(get("c-events", "events.emb[5:7, 1:3]").good(), "5.0 5.0\n6.0 6.0\n");
    assert_eq!(get("c-events", "events.meta.hot[:4]").good(), "true false true false\n");
    assert_eq!(get("c-run", "log.meta.size[::-20]").good(), "390 190\n");
    assert_eq!(get("c-run", "log.3.emb").good(), "3.0 3.0 3.0 3.0\n");
    assert_eq!(get("c-days", "events.score[18:22]").good(), "9.0 9.5 10.0 10.5\n");
    assert_eq!(run(&dir, &["get", "c-days", "events.emb", "-o", "emb.npy"]).good(), "");
    let npy = std::fs::read(dir.file("emb.npy")).unwrap();
    assert_eq!(npy.len(), 128 + 40 * 4 * 4);
    assert!(String::from_utf8_lossy(&npy[..128]).contains("'shape': (40, 4)"));
    let json = run(&dir, &["get", "--json", "c-run", "log.id[38:]"]).json();
    assert_eq!(json, json!({"dtype": "u32", "shape": [2], "data": [38, 39]}));
    let text = get("c-run", "log.text[2:4]").good().to_owned();
    let json = run(&dir, &["get", "--json", "c-run", "log.text[2:4]"]).json();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(json, json!(lines));
    assert_eq!(get("c-run", "log.text").good().lines().count(), 40);
    let rows = run(&dir, &["get", "--json", "c-days", "events[18:22]"]).json();
    assert_eq!((rows.as_array().unwrap().len(), &rows[3]["score"]), (4, &json!(10.5)));
    get("c-days", "events").failed(2, "a value that consists of others: use --json");
    get("c-run", "log.text[40]").failed(2, "log.text[40]");
    run(&dir, &["get", "c-run", "log.text", "-o", "text.npy"]).failed(2, "not a tensor");
    run(&dir, &["get", "c-run", "log.text", "--cast", "f32"]).failed(2, "not a tensor");
    run(&dir, &["get", "c-run", "log.text", "-o", "text.txt"]).good();
    assert_eq!(std::fs::read_to_string(dir.file("text.txt")).unwrap().lines().count(), 40);
}

#[test]
fn gets_optional_columns() {
    #[derive(Serialize)]
    struct Row {
        score: Option<f32>,
    }
    let dir = Dir::new();
    let rows: Vec<Row> =
        (0..5u8).map(|id| Row { score: (id != 2).then(|| f32::from(id) / 2.0) }).collect();
    dir.save("o.tenarc", &rows);
    let get = |rest: &[&str]| run(&dir, &[&["get", "o.tenarc", "score"], rest].concat());
    assert_eq!(get(&[]).good(), "0.0\n0.5\nnull\n1.5\n2.0\n");
    assert_eq!(get(&["--json"]).json(), json!([0.0, 0.5, null, 1.5, 2.0]));
}

/// A column does not say whether the field is null or the struct that it is in.
#[test]
fn columns_of_optional_fields_of_optional_structs_are_arrays_with_nulls() {
    #[derive(Serialize)]
    struct Row {
        request: Option<Request>,
    }
    #[derive(Serialize)]
    struct Request {
        size: Option<u32>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tags: Vec<u16>,
    }
    let dir = Dir::new();
    let request = |row: u16| Request {
        size: row.is_multiple_of(4).then_some(row.into()),
        tags: vec![row; usize::from(row) % 3],
    };
    let rows: Vec<Row> =
        (0..6u16).map(|row| Row { request: row.is_multiple_of(2).then(|| request(row)) }).collect();
    save(&dir, "o.tenarc", true, &[("log", &rows)]);
    let get = |path| run(&dir, &["get", "o.tenarc", path, "--json"]).json();
    assert_eq!(get("request.size"), json!([0, null, null, null, 4, null]));
    assert_eq!(get("log.request.tags"), json!([null, null, [2, 2], null, [4], null]));
    let stats = run(&dir, &["stats", "--json", "o.tenarc", "-e", "request.size"]).json();
    assert_eq!((&stats[0]["count"], &stats[0]["nulls"]), (&json!(2), &json!(4)));
    assert_eq!((&stats[0]["min"], &stats[0]["max"]), (&json!(0), &json!(4)));
}

#[test]
fn damage_of_a_nested_column_does_not_concern_its_siblings() {
    #[derive(Serialize)]
    struct Row {
        s: Pair,
    }
    #[derive(Serialize)]
    struct Pair {
        x: f64,
        y: [f32; 4],
    }
    let dir = Dir::new();
    let rows: Vec<Row> =
        (0..4000u16).map(|row| Row { s: Pair { x: row.into(), y: [row.into(); 4] } }).collect();
    save(&dir, "d.tenarc", true, &[("t", &rows)]);
    let bytes = std::fs::read(dir.file("d.tenarc")).unwrap();
    // The numbers of row 3000 are in `s.y` only.
    let row = [3000f32; 4].map(f32::to_le_bytes).concat();
    let at = bytes.windows(row.len()).position(|window| window == row).unwrap();
    flip(&dir.file("d.tenarc"), at.try_into().unwrap());
    assert_eq!(run(&dir, &["get", "d.tenarc", "t.s.x[1:3]"]).good(), "1.0 2.0\n");
    assert_eq!(run(&dir, &["get", "d.tenarc", "s.x.3000"]).good(), "3000.0\n");
    run(&dir, &["show", "d.tenarc", "t.s.x"]).good();
    let stats = run(&dir, &["stats", "--json", "d.tenarc", "-e", "s.x"]).json();
    assert_eq!((&stats[0]["min"], &stats[0]["max"]), (&json!(0.0), &json!(3999.0)));
    run(&dir, &["show", "d.tenarc", "t.s"]).failed(1, "checksum");
}

#[test]
fn columns_of_several_groups_are_one_tensor() {
    #[derive(Serialize)]
    struct Row {
        id: u32,
        even: bool,
    }
    let dir = Dir::new();
    let row = |id: u32| Row { id, even: id.is_multiple_of(2) };
    let many: Vec<Row> = (0..70_000).map(row).collect();
    save(&dir, "m", true, &[("many", &many)]);
    save(&dir, "r", false, &[("many", &many)]);
    let shown = run(&dir, &["show", "m", "many.id"]);
    assert_eq!(shown.good(), "u32 [70000] [    0     1     2 … 69997 69998 69999]\n");
    assert_eq!(run(&dir, &["get", "m", "id[65535:65538]"]).good(), "65535 65536 65537\n");
    let stats = run(&dir, &["stats", "--json", "m", "-e", "id"]).json();
    assert_eq!((&stats[0]["min"], &stats[0]["max"]), (&json!(0), &json!(69_999)));
    let lines = run(&dir, &["show", "--json", "m", "many[65535:65537]"]);
    assert_eq!(lines.good(), "{\"id\":65535,\"even\":false}\n{\"id\":65536,\"even\":true}\n");
    assert_eq!(run(&dir, &["diff", "m", "r"]).good(), "");
}

#[test]
fn measures_columns_of_numbers() {
    let dir = saved();
    let rows = run(&dir, &["stats", "--json", "c-run"]).json();
    let paths: Vec<&str> =
        rows.as_array().unwrap().iter().map(|row| row["path"].as_str().unwrap()).collect();
    let expected =
        ["log.id", "log.score", "log.emb", "log.meta.size", "log.meta.hot", "log.note", "weight"];
    assert_eq!(paths, expected);
    assert_eq!((&rows[1]["max"], &rows[1]["mean"]), (&json!(19.5), &json!(9.75)));
    assert_eq!((&rows[4]["zeros"], &rows[4]["nulls"]), (&json!(20), &json!(null)));
    let note = &rows[5];
    assert_eq!((&note["count"], &note["nulls"]), (&json!(26), &json!(14)));
    assert_eq!((&note["dtype"], &note["shape"]), (&json!("f64"), &json!([40])));
    assert_eq!((&note["min"], &note["std"]), (&json!(0.25), &json!(0.0)));
}

#[test]
fn measures_columns_with_nulls() {
    #[derive(Serialize)]
    struct Row {
        float: Option<f32>,
        large: Option<u64>,
        small: Option<i8>,
        is: Option<bool>,
        none: Option<f64>,
        text: Option<&'static str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        absent: Option<u16>,
        pair: Option<[f32; 2]>,
        scalar: Option<Tensor<DynTensor>>,
    }
    let dir = Dir::new();
    let scalar = DynTensor::new(DType::F32, &[], Order::C, vec![0; 4]).unwrap();
    // More rows than a group has.
    let row = |id: u32| {
        let is_there = !id.is_multiple_of(5);
        Row {
            float: is_there.then_some(if id == 7 { f32::NAN } else { 0.5 }),
            large: (id == 3).then_some(u64::MAX),
            small: is_there.then_some(-3),
            is: is_there.then_some(id.is_multiple_of(2)),
            none: None,
            text: Some("t"),
            absent: (id.is_multiple_of(2)).then_some(9),
            pair: is_there.then_some([1.0, 2.0]),
            scalar: is_there.then(|| Tensor(scalar.clone())),
        }
    };
    save(&dir, "n.tenarc", true, &[("t", (0..70_000).map(row).collect::<Vec<_>>())]);
    let rows = run(&dir, &["stats", "--json", "n.tenarc"]).json();
    let found: Vec<_> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            json!([row["path"], row["dtype"], row["count"], row["nulls"], row["min"], row["max"]])
        })
        .collect();
    assert_eq!(
        found,
        [
            json!(["float", "f32", 56_000, 14_000, 0.5, 0.5]),
            json!(["large", "u64", 1, 69_999, u64::MAX, u64::MAX]),
            json!(["small", "i8", 56_000, 14_000, -3, -3]),
            json!(["is", "bool", 56_000, 14_000, 0, 1]),
            json!(["absent", "u16", 35_000, 35_000, 9, 9]),
        ]
    );
    assert_eq!((&rows[0]["nan"], &rows[3]["zeros"]), (&json!(1), &json!(28_000)));
    let shown = run(&dir, &["stats", "n.tenarc", "-e", "float"]).good().to_owned();
    let heading = shown.lines().next().unwrap();
    assert!(heading.contains("NaN  nulls  histogram"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let shown = run(&dir, &["stats", "n.tenarc", "-e", "none"]);
    shown.failed(2, "nothing matches \"none\"");
}

/// Rows that do not fit into a column are stored one by one, and may have other types.
#[test]
fn does_not_measure_columns_of_other_rows() {
    #[derive(Serialize, Clone, Debug)]
    #[serde(untagged)]
    enum Row {
        Small { a: u8 },
        Large { a: i64 },
        Float { a: f64 },
        Text { a: &'static str },
        Other(&'static str),
    }
    let dir = Dir::new();
    let numbers: Vec<Row> = (0..100).map(|a| Row::Small { a }).collect();
    let measured = |rows: Vec<Row>| {
        save(&dir, "o.tenarc", true, &[("t", rows)]);
        run(&dir, &["stats", "--json", "o.tenarc"]).json()
    };
    assert_eq!(measured(numbers.clone())[0]["max"], json!(99));
    let fitting = [Row::Other("t"), Row::Small { a: 200 }];
    let found = measured([&numbers[..], &fitting].concat());
    assert_eq!((&found[0]["max"], &found[0]["nulls"]), (&json!(200), &json!(1)));
    for other in [Row::Large { a: -5 }, Row::Float { a: 0.5 }, Row::Text { a: "x" }] {
        let others = [Row::Other("t"), other.clone()];
        let found = measured([&numbers[..], &others].concat());
        assert_eq!(found, json!([]), "{other:?}");
    }
}

#[test]
fn compares_rows_however_they_are_stored() {
    let dir = saved();
    for file in ["events", "run", "days"] {
        let [c, r] = ["c", "r"].map(|prefix| format!("{prefix}-{file}"));
        for (a, b) in [(&c, &r), (&r, &c), (&c, &c)] {
            assert_eq!(run(&dir, &["diff", a, b]).good(), "", "{a} {b}");
        }
    }
    let mut other = a_run();
    other.log[3].score = 9.0;
    other.log[7].emb.0[2] = 0.0;
    other.log[8].text = "?".into();
    other.log[9].note = Some(1.5);
    other.log.push(event(40));
    for columns in [true, false] {
        save(&dir, "other", columns, &[("run", &other)]);
        for a in ["c-run", "r-run"] {
            let found = run(&dir, &["diff", "--json", a, "other"]);
            assert_eq!(found.status, 1, "{found:?}");
            let found = found.json();
            let paths: Vec<(&str, &str)> = found
                .as_array()
                .unwrap()
                .iter()
                .map(|one| (one["path"].as_str().unwrap(), one["kind"].as_str().unwrap()))
                .collect();
            let expected = [
                ("log.3.score", "value"),
                ("log.7.emb", "elements"),
                ("log.8.text", "value"),
                ("log.9.note", "value"),
                ("log.40", "only_in_b"),
            ];
            assert_eq!(paths, expected, "{a} {columns}");
        }
    }
    let near = run(&dir, &["diff", "--atol", "8", "c-run", "other", "-e", "log.?.{score,emb}"]);
    assert_eq!(near.good(), "");
}

#[test]
fn edits_archives_with_columns() {
    let dir = saved();
    let edit = |args: &[&str]| run(&dir, &[&["edit", "c-run", "-o", "e"], args].concat());
    let diff = || run(&dir, &["diff", "c-run", "e"]);
    assert_eq!(edit(&["--set", "name=\"x\""]).good(), "");
    assert_eq!(diff().out(), "name: \"r\" → \"x\"\n1 difference\n");
    let listed = run(&dir, &["ls", "e"]);
    assert!(listed.good().contains("\nlog.score "), "the columns stay columns: {listed:?}");
    assert!(run(&dir, &["verify", "e"]).good().contains("good"));
    assert_eq!(
        edit(&["--set", "log.3.score=9.5", "--rename", "/log/4/text=/log/4/word"]).good(),
        ""
    );
    let found = diff();
    assert!(found.out().starts_with("log.3.score: 1.5_2 → 9.5"), "{found:?}");
    assert!(found.out().contains("log.4.text: only in A"), "{found:?}");
    assert!(found.out().ends_with("3 differences\n"), "{found:?}");
    assert_eq!(edit(&["--drop", "log"]).good(), "");
    assert_eq!(run(&dir, &["ls", "e"]).good().lines().count(), 3);
    assert_eq!(edit(&["--rename", "log=journal", "--cast", "weight=f64"]).good(), "");
    assert_eq!(run(&dir, &["get", "e", "journal.id[:2]"]).good(), "0 1\n");
    edit(&["--set", "log.score=1"]).failed(2, "cannot create \"log.score\"");
    let refused = "is a column; edit drops whole tables, but drops and casts no columns";
    edit(&["--drop", "log.score"]).failed(2, refused);
    edit(&["--cast", "*=f16"]).failed(2, refused);
    edit(&["--keep", "weight"]).failed(2, "\"log.emb\" is a column");
    assert_eq!(edit(&["--keep", "log.emb"]).good(), "");
    assert!(diff().out().starts_with("weight: only in A"), "{:?}", diff());
}

#[test]
fn large_columns_stay_columns() {
    let dir = Dir::new();
    // Texts, lengths, bits and numbers of so many rows are in buffers.
    let many: Vec<Event> = (0..20_000).map(event).collect();
    save(&dir, "m", true, &[("events", many)]);
    assert_eq!(run(&dir, &["edit", "m", "-o", "e", "--align", "64"]).good(), "");
    assert!(run(&dir, &["verify", "e"]).good().contains("good"));
    let [a, b] = ["m", "e"].map(|file| run(&dir, &["ls", file]).good().to_owned());
    assert!(a.contains("columns") && a == b, "{a} {b}");
    for path in ["[19990:]", "text", "note", "meta.hot"] {
        let [a, b] = ["m", "e"].map(|file| run(&dir, &["show", "--full", file, path]));
        assert_eq!(a.good(), b.good(), "{path}");
    }
    assert_eq!(run(&dir, &["diff", "m", "e"]).good(), "");
}

#[test]
fn splits_merges_and_joins_archives_with_columns() {
    let dir = saved();
    assert_eq!(run(&dir, &["cat", "c-run", "r-run", "-o", "both"]).good(), "");
    assert_eq!(run(&dir, &["show", "both", "-s", "0", "log.3.id"]).good(), "\"run\" #0\n3\n");
    let big = (a_run(), ramp(&[100]), ramp(&[200]));
    save(&dir, "big", true, &[("big", big)]);
    // The table is larger than 500 bytes, and the last tensor.
    let split = run(&dir, &["split", "big", "--max-size", "500", "-d", "."]);
    assert_eq!(split.good().lines().count(), 3);
    let shards: Vec<&str> = split.out().lines().collect();
    let merged = run(&dir, &[&["merge", "-o", "merged"], &shards[..]].concat());
    assert_eq!(merged.good(), "");
    assert_eq!(run(&dir, &["diff", "big", "merged"]).good(), "");
    assert_eq!(run(&dir, &["merge", "c-run", "r-run", "-o", "merged"]).good(), "");
    let mut other = a_run();
    other.log[3].id = 9;
    save(&dir, "other", true, &[("run", other)]);
    run(&dir, &["merge", "c-run", "other", "-o", "merged"])
        .failed(2, "c-run and other hold different values at \"log\"");
}

#[test]
fn converts_columns_as_rows_to_formats_with_rows() {
    let dir = saved();
    for to in ["cbor", "json", "msgpack", "ten"] {
        let of = |prefix: &str| {
            let args = [
                "convert",
                "--lossy",
                "--to",
                to,
                &format!("{prefix}-run"),
                &format!("{prefix}.o"),
            ];
            let ran = run(&dir, &args);
            assert_eq!(ran.status, 0, "{ran:?}");
            (
                std::fs::read(dir.file(&format!("{prefix}.o"))).unwrap(),
                ran.err.replace("r-run", "c-run"),
            )
        };
        assert!(of("c") == of("r"), "{to}");
    }
    assert_eq!(run(&dir, &["convert", "c-run", "copy.tenarc"]).good(), "");
    assert_eq!(run(&dir, &["ls", "copy.tenarc"]).good(), run(&dir, &["ls", "c-run"]).good());
}

#[test]
fn reads_messages_with_columns_as_rows() {
    let dir = saved();
    let options = EncodeOptions::default().with_columns(true);
    // In messages, a sequence inside a value becomes columns from 128 rows on.
    let value = Run { log: events()[..150].to_vec(), ..a_run() };
    dir.write("m.cbor", &tenarc::ser::to_vec_with(&value, options).unwrap());
    save(&dir, "c-run", true, &[("run", &value)]);
    save(&dir, "r-run", false, &[("run", &value)]);
    assert_eq!(run(&dir, &["show", "m.cbor"]).good(), run(&dir, &["show", "r-run"]).good());
    assert_eq!(run(&dir, &["show", "m.cbor", "log.3.id"]).good(), "3\n");
    assert_eq!(run(&dir, &["show", "--json", "m.cbor", "log[1:3]"]).good().lines().count(), 2);
    let found = run(&dir, &["diff", "m.cbor", "c-run", "-e", "log*"]);
    assert_eq!(found.good(), "");
    assert!(run(&dir, &["verify", "m.cbor"]).good().contains("good"));
    assert!(run(&dir, &["diag", "m.cbor"]).good().contains("1413697356([150, {"), "as stored");
}

#[test]
fn damaged_columns_are_reported() {
    let dir = Dir::new();
    let many: Vec<Event> = (0..5000).map(event).collect();
    save(&dir, "c-events", true, &[("events", &many)]);
    save(&dir, "r-events", false, &[("events", &many)]);
    let path = dir.file("c-events");
    let archive = tenarc::Archive::open(&path).unwrap();
    let segment = archive.segment(0).unwrap();
    let score = segment.info("score").unwrap();
    let (at, _) = segment.buffers()[usize::try_from(score.buffer().unwrap()).unwrap()];
    flip(&path, at + 5);
    let verified = run(&dir, &["verify", "c-events"]);
    assert_eq!(verified.status, 1, "{verified:?}");
    for args in [
        &["show", "c-events", "--full"][..],
        &["show", "c-events", "--json"],
        &["stats", "c-events"],
        &["get", "c-events", "score"],
        &["diff", "c-events", "r-events"],
        &["edit", "c-events", "-o", "e", "--set", "3.id=4"],
        &["edit", "c-events", "-o", "e", "--align", "64"],
        &["convert", "c-events", "o.json"],
    ] {
        let ran = run(&dir, args);
        assert_eq!(ran.status, 1, "{args:?} {ran:?}");
        assert!(ran.err.contains("checksum"), "{args:?} {ran:?}");
    }
}

/// Damage is named with its segment, column and rows. A slice reads only the groups that it is in.
#[test]
fn damage_in_a_column_is_named() {
    #[derive(Serialize)]
    struct Row {
        id: u64,
        x: f32,
    }
    let rows: Vec<Row> = (0..70_000).map(|row| Row { id: (row + 1) << 20, x: 0.5 }).collect();
    let dir = Dir::new();
    save(&dir, "a.tenarc", true, &[("t", rows)]);
    let bytes = std::fs::read(dir.file("a.tenarc")).unwrap();
    let needle = (69_000u64 << 20).to_le_bytes();
    let at = bytes.windows(8).position(|window| window == needle).unwrap();
    flip(&dir.file("a.tenarc"), at as u64);
    let report = run(&dir, &["verify", "--json", "a.tenarc"]).json()[0].clone();
    assert_eq!(report["path"], json!("id"), "{report}");
    let error = report["error"].as_str().unwrap();
    assert!(error.starts_with("segment 0 (`t`): rows 65536..70000: "), "{report}");
    run(&dir, &["get", "a.tenarc", "id[0:5]"]).good();
    run(&dir, &["get", "a.tenarc", "id[65530:65540]"]).failed(1, "65536.id");
}

/// A sequence misses several buffers if the file was cut in front of them.
#[test]
fn recover_names_a_missing_sequence_once() {
    let dir = Dir::new();
    let log: Vec<Event> = (0..2000).map(event).collect();
    let first = Tensor(vec![0.5f32; 5000]);
    save(&dir, "a.tenarc", true, &[("run", (first, log))]);
    let bytes = std::fs::read(dir.file("a.tenarc")).unwrap();
    let buffers = tenarc::open(dir.file("a.tenarc")).unwrap();
    let (start, len) = buffers.segment(0).unwrap().buffers()[0];
    assert!(buffers.segment(0).unwrap().buffers().len() > 3);
    dir.write("cut.tenarc", &bytes[..usize::try_from(start + len).unwrap() + 10]);
    let ran = run(&dir, &["recover", "cut.tenarc", "-o", "b.tenarc", "--json"]);
    assert_eq!(ran.json()["salvaged"]["missing"], json!(["1"]), "{ran:?}");
    let ran = run(&dir, &["recover", "cut.tenarc", "-o", "b.tenarc"]);
    assert!(ran.good().contains("1 missing:\n  1\n"), "{ran:?}");
}
