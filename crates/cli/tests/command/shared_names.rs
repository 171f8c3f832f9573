//! Tables over several values: a name that several values have is one table of all their rows.

use crate::support::{Dir, ramp, run};
use serde::Serialize;
use serde_json::{Value as Json, json};
use tenarc::archive::{ArchiveFile, Compression, SaveOptions};
use tenarc::io::SyncLevel;
use tenarc::{OArchive, Tensor};

#[derive(Serialize)]
struct Event {
    id: u32,
    score: Option<f64>,
    label: &'static str,
    emb: Tensor<Vec<f32>>,
}

fn day(day: u32, rows: u32) -> Vec<Event> {
    let row = |id: u32| Event {
        id,
        score: id.is_multiple_of(2).then_some(f64::from(id) / 2.0),
        label: "x",
        emb: Tensor(vec![id as f32; 4]),
    };
    (day * 100..day * 100 + rows).map(row).collect()
}

fn create(dir: &Dir, name: &str, options: SaveOptions) -> OArchive<ArchiveFile> {
    OArchive::create(dir.file(name), options.with_sync(SyncLevel::Off)).unwrap()
}

/// Five days of 100 rows under one name, with another value between them.
fn days() -> Dir {
    let dir = Dir::new();
    let mut out = create(&dir, "days.tenarc", SaveOptions::default());
    for number in 0..5 {
        out.save_as("events", &day(number, 100)).unwrap();
        if number == 2 {
            out.save_as("weights", &ramp(&[6])).unwrap();
        }
    }
    out.finish().unwrap();
    dir
}

fn paths(rows: &Json) -> Vec<String> {
    rows.as_array().unwrap().iter().map(|row| row["path"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn stats_measures_all_rows_of_a_table() {
    let dir = days();
    let expected = "\
segment              path   dtype     min  max   mean    std  zeros  nulls
\"events\" (5 values)  id     u32         0  499  249.5  144.3      1      0
\"events\" (5 values)  score  f64         0  249  124.5  72.17      1    250
\"events\" (5 values)  emb    f32         0  499  249.5  144.3      4      0
";
    let shown = run(&dir, &["stats", "days.tenarc", "-s", "events"]).good().to_owned();
    let squeezed = |text: &str| -> Vec<Vec<String>> {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        text.lines().map(words).collect()
    };
    for (line, wanted) in squeezed(&shown).iter().zip(squeezed(expected)) {
        // The shape and the histogram are left out where lines would be too long.
        assert_eq!(line.first(), wanted.first(), "{shown}");
        assert_eq!(line.get(3), wanted.get(3), "{shown}");
    }
    assert_eq!(shown.lines().count(), 4, "{shown}");

    let rows = run(&dir, &["stats", "days.tenarc", "--json"]).json();
    assert_eq!(paths(&rows), ["id", "score", "emb", ""]);
    assert_eq!(rows[3]["name"], "weights");
    let id = &rows[0];
    assert_eq!(
        (&id["segment"], &id["name"], &id["values"]),
        (&json!(null), &json!("events"), &json!(5))
    );
    assert_eq!(
        (&id["dtype"], &id["shape"], &id["count"]),
        (&json!("u32"), &json!([500]), &json!(500))
    );
    assert_eq!((&id["min"], &id["max"], &id["mean"]), (&json!(0), &json!(499), &json!(249.5)));
    assert_eq!(id.get("nulls"), None);
    let score = &rows[1];
    assert_eq!((&score["count"], &score["nulls"]), (&json!(250), &json!(250)));
    assert_eq!((&score["max"], &score["mean"]), (&json!(249.0), &json!(124.5)));
    assert_eq!((&rows[2]["shape"], &rows[2]["count"]), (&json!([500, 4]), &json!(2000)));

    // The paths of `get` and `show`.
    for pattern in ["events.score", "score", "*score", "events.s*"] {
        let rows = run(&dir, &["stats", "days.tenarc", "-e", pattern, "--json"]).json();
        assert_eq!(paths(&rows), ["score"], "{pattern}");
        assert_eq!(rows[0]["max"], 249.0);
    }
    let one = run(&dir, &["stats", "days.tenarc", "-s", "5", "--json", "-e", "id"]).json();
    assert_eq!((&one[0]["segment"], &one[0]["min"]), (&json!(5), &json!(400)));
    run(&dir, &["stats", "days.tenarc", "-e", "events.nope"]).failed(2, "nothing matches");
}

#[test]
fn ls_lists_a_table_once() {
    let dir = days();
    let expected = "\
segment              path         dtype            shape      bytes
\"events\" (5 values)  (the value)  columns          [500]          -
\"events\" (5 values)  id           u32              [500]    2.0 KiB
\"events\" (5 values)  score        optional values  [500]          -
\"events\" (5 values)  label        texts            [500]          -
\"events\" (5 values)  emb          f32              [500, 4]  7.8 KiB
\"weights\"            (the value)  f32              [6]         24 B
3 tensors, 9.8 KiB; 1 table of 500 rows
";
    let lines = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    let all = run(&dir, &["ls", "days.tenarc"]);
    assert_eq!(lines(all.good()), lines(expected));
    let rows = |args: &[&str]| run(&dir, &[&["ls", "--json", "days.tenarc"], args].concat()).json();
    let listed = ["id", "score", "label", "emb"];
    assert_eq!(paths(&rows(&["-e", "events.*"])), listed);
    assert_eq!(paths(&rows(&["-s", "events"]))[1..], listed);
    assert_eq!(paths(&rows(&["-e", "events"])), [""]);
    assert_eq!(paths(&rows(&["-s", "5"]))[1..], listed);
    let emb = json!({
        "segment": null, "name": "events", "values": 5, "path": "emb", "dtype": "f32",
        "kind": "tensors", "shape": [500, 4], "order": "C", "bytes": 8000,
    });
    assert_eq!(rows(&["-e", "events.emb"]), json!([emb]));
    let tree = run(&dir, &["ls", "--tree", "days.tenarc", "-e", "events.*"]);
    let expected = "\
\"events\" (5 values)  2 tensors, 9.8 KiB
├── id  u32 [500]  2.0 KiB
└── emb  f32 [500, 4]  7.8 KiB
";
    assert_eq!(tree.good(), expected);
}

#[test]
fn a_pattern_can_start_with_the_name_of_any_value() {
    let dir = days();
    let get = run(&dir, &["get", "days.tenarc", "-e", "weights"]);
    assert_eq!(get.good(), "\"weights\" (the value): f32 [6]\n0.0 1.0 2.0 3.0 4.0 5.0\n");
    let value = std::collections::BTreeMap::from([("a", ramp(&[2])), ("b", ramp(&[3]))]);
    dir.save_all("m.tenarc", &[(Some("model"), &value)]);
    for pattern in ["model.a", "a", "*.a"] {
        let rows = run(&dir, &["ls", "--json", "m.tenarc", "-e", pattern]).json();
        assert_eq!(paths(&rows), ["a"], "{pattern}");
    }
    run(&dir, &["convert", "m.tenarc", "a.npz", "-e", "model.b"]).good();
    assert_eq!(paths(&run(&dir, &["ls", "--json", "a.npz"]).json()), ["b"]);
}

#[test]
fn convert_takes_the_whole_table() {
    let dir = days();
    for args in [&["-s", "events"][..], &["-e", "events"]] {
        for to in ["t.parquet", "t.arrow"] {
            run(&dir, &[&["convert", "days.tenarc", to], args].concat()).good();
            let rows = run(&dir, &["stats", "--json", "--table", to, "-e", "*id"]).json();
            assert_eq!((&rows[0]["count"], &rows[0]["max"]), (&json!(500), &json!(499)), "{to}");
        }
        run(&dir, &[&["convert", "days.tenarc", "t.tenarc"], args].concat()).good();
        assert_eq!(tenarc::open(dir.file("t.tenarc")).unwrap().table("events").unwrap().len(), 500);
    }
    run(&dir, &["convert", "days.tenarc", "-s", "5", "day.parquet"]).good();
    let rows = run(&dir, &["stats", "--json", "day.parquet", "-e", "id"]).json();
    assert_eq!((&rows[0]["count"], &rows[0]["min"]), (&json!(100), &json!(400)));
    run(&dir, &["convert", "days.tenarc", "x.parquet", "-e", "events.id"])
        .failed(2, "\"id\" is a column: choose the whole table, \"events\"");
    run(&dir, &["convert", "days.tenarc", "x.safetensors", "-s", "events"])
        .failed(2, "`label`: a column of texts is not a tensor: it is left out");
    assert!(!dir.file("x.safetensors").exists());
    run(&dir, &["convert", "--lossy", "days.tenarc", "x.npz", "-s", "events"]);
    assert_eq!(run(&dir, &["show", "--json", "x.npz", "label"]).json()[499], "x");
}

/// A command that needs one value does not take the last one silently.
#[test]
fn one_of_several_values_is_chosen_by_its_number() {
    let dir = days();
    let all = ["edit", "days.tenarc", "-o", "x.tenarc", "--drop", "*", "-s", "events"];
    for args in [&["diff", "days.tenarc", "days.tenarc", "-s", "events"][..], &all] {
        let why = "5 values have the name \"events\", and are one table: choose one by its number, as in --segment 5";
        run(&dir, args).failed(2, why);
    }
    // A path in the table is the same with the name in it and with the name as an option.
    let show =
        |args: &[&str]| run(&dir, &[&["show", "days.tenarc"], args].concat()).good().to_owned();
    assert_eq!(show(&["id", "-s", "events"]), show(&["events.id"]));
    assert_eq!(show(&["3", "-s", "events"]), show(&["events.3"]));
    assert_eq!(show(&["[2:4]", "-s", "events"]), show(&["events[2:4]"]));
    let head = ["--head", "2", "--columns", "id"];
    assert_eq!(
        show(&[&["-s", "events"][..], &head].concat()),
        show(&[&["events"][..], &head].concat())
    );
    let get =
        |args: &[&str]| run(&dir, &[&["get", "days.tenarc"], args].concat()).good().to_owned();
    assert_eq!(get(&["id[1]", "-s", "events"]), get(&["events.id[1]"]));
    for args in [&["nix", "-s", "events"][..], &["events.nix"]] {
        let ran = run(&dir, &[&["show", "days.tenarc"], args].concat());
        ran.failed(2, "tenarc: days.tenarc: expected one of the columns `id`");
        ran.failed(2, "there is none at `nix`");
    }
    run(&dir, &["ls", "days.tenarc", "-s", "event"])
        .failed(2, "no value \"event\": the file holds 6 values of the names \"events\"");
    run(&dir, &["ls", "days.tenarc", "-s", "event"]).failed(2, "did you mean `events`?");
    run(&dir, &["get", "days.tenarc", "id"])
        .failed(2, "choose one with --segment, by its number or name: \"events\"");
    let shown = run(&dir, &["show", "days.tenarc", "-s", "events"]);
    let headings: Vec<&str> = shown.good().lines().filter(|line| line.starts_with('"')).collect();
    let expected = ["0", "1", "2", "4", "5"].map(|number| format!("\"events\" #{number}"));
    assert_eq!(headings, expected);
    let json = run(&dir, &["show", "days.tenarc", "-s", "events", "--json"]).json();
    assert_eq!(json.as_array().unwrap().len(), 5);
    // Values that are not sequences are no table: a name means the last one, as in the library.
    let (a, b) = (ramp(&[2]), ramp(&[3]));
    dir.save_all("s.tenarc", &[(Some("w"), &a), (Some("w"), &b)]);
    let rows = run(&dir, &["ls", "s.tenarc", "--json", "-s", "w"]).json();
    assert_eq!((rows.as_array().unwrap().len(), &rows[0]["shape"]), (1, &json!([3])));
    let listed = run(&dir, &["ls", "s.tenarc"]);
    assert!(listed.good().contains("\n\"w\" #0  ") && listed.out().contains("\n\"w\" #1  "));
}

/// Python stores integers in the narrowest type, so values of one table have different types.
#[test]
fn values_may_store_a_column_in_different_ways() {
    #[derive(Serialize, Clone)]
    #[serde(untagged)]
    enum Row {
        Small { id: u8, all: Option<u8> },
        Large { id: u16, all: Option<u8> },
        Signed { id: i8, all: Option<u8> },
        Float { id: f32, all: Option<u8> },
        Without { all: Option<u8> },
        Text { id: &'static str, all: Option<u8> },
    }
    let dir = Dir::new();
    let all = None;
    let measured = |values: &[Row]| {
        let mut out = create(&dir, "m.tenarc", SaveOptions::default());
        for row in values {
            out.save_as("t", &vec![row.clone(); 20]).unwrap();
        }
        out.finish().unwrap();
        let found = run(&dir, &["stats", "m.tenarc", "--json", "-e", "*id"]);
        let rows = if found.err.contains("nothing matches") { json!([]) } else { found.json() };
        let row = &rows[0];
        json!([row["dtype"], row["count"], row["nulls"], row["min"], row["max"]])
    };
    let small = Row::Small { id: 1, all };
    let large = Row::Large { id: 1000, all: Some(1) };
    let signed = Row::Signed { id: -1, all };
    let float = Row::Float { id: 0.5, all };
    let without = Row::Without { all };
    let text = Row::Text { id: "x", all };
    let of = |rows: &[&Row]| measured(&rows.iter().map(|&row| row.clone()).collect::<Vec<_>>());
    assert_eq!(of(&[&small, &large]), json!(["u16", 40, 0, 1, 1000]));
    assert_eq!(of(&[&large, &signed, &small]), json!(["i64", 60, 0, -1, 1000]));
    assert_eq!(of(&[&small, &float]), json!(["f64", 40, 0, 0.5, 1.0]));
    assert_eq!(of(&[&small, &without, &large]), json!(["u16", 40, 20, 1, 1000]));
    assert_eq!(of(&[&small, &text])[0], json!(null));
    // A column of nulls has no numbers, but those of the other values are measured.
    let rows = run(&dir, &["ls", "m.tenarc", "--json", "-e", "t.all"]).json();
    assert_eq!(rows[0]["shape"], json!([40]));
    // Few rows are not stored as columns.
    let mut out = create(&dir, "few.tenarc", SaveOptions::default());
    out.save_as("t", &vec![small; 20]).unwrap();
    out.save_as("t", &vec![(); 0]).unwrap();
    out.save_as("t", &[large]).unwrap();
    out.finish().unwrap();
    let rows = run(&dir, &["stats", "few.tenarc", "--json", "-e", "t.id"]).json();
    assert_eq!((&rows[0]["count"], &rows[0]["max"]), (&json!(21), &json!(1000)));
}

#[test]
fn compressed_columns_are_added_up() {
    let dir = Dir::new();
    let mut out =
        create(&dir, "z.tenarc", SaveOptions::default().with_compression(Compression::lz4()));
    for number in 0..3 {
        out.save_as("events", &day(number, 1000)).unwrap();
    }
    out.finish().unwrap();
    let rows = run(&dir, &["ls", "z.tenarc", "--json", "-e", "events.emb"]).json();
    let row = &rows[0];
    assert_eq!((&row["codec"], &row["bytes"]), (&json!("lz4"), &json!(48_000)));
    assert!(row["stored"].as_u64().unwrap() < 48_000, "{rows}");
    let stored = |number| {
        let rows = run(&dir, &["ls", "z.tenarc", "--json", "-s", number, "-e", "emb"]).json();
        rows[0]["stored"].as_u64().unwrap()
    };
    assert_eq!(row["stored"], ["0", "1", "2"].map(stored).iter().sum::<u64>());
    let rows = run(&dir, &["stats", "z.tenarc", "--json", "-e", "events.id"]).json();
    assert_eq!((&rows[0]["count"], &rows[0]["max"]), (&json!(3000), &json!(1199)));
}
