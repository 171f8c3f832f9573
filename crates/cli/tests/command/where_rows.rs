//! `show --where`, `--head` and `--columns` choose rows and columns of a table, and `compact` writes it anew.

use crate::support::{Dir, run};
use serde::Serialize;

#[derive(Serialize)]
struct Event {
    id: u32,
    day: &'static str,
    score: Option<f32>,
    request: Request,
    kind: Kind,
}

#[derive(Serialize)]
struct Request {
    size: u16,
    #[serde(rename = "a.b")]
    dotted: bool,
}

#[derive(Serialize)]
enum Kind {
    Quit,
    Click { x: u8 },
}

fn events(first: u16) -> Vec<Event> {
    let event = |id: u16| Event {
        id: id.into(),
        day: if id.is_multiple_of(2) { "monday" } else { "tuesday" },
        score: (!id.is_multiple_of(3)).then_some(f32::from(id) / 2.0),
        request: Request { size: id, dotted: id > 5 },
        kind: if id.is_multiple_of(4) { Kind::Quit } else { Kind::Click { x: 7 } },
    };
    (first..first + 300).map(event).collect()
}

#[test]
fn tables_that_are_converted_have_statistics() {
    let dir = Dir::new();
    let rows: Vec<_> = (0..4).flat_map(|part| events(300 * part)).collect();
    dir.save("a.tenarc", &rows);
    run(&dir, &["convert", "a.tenarc", "a.parquet"]).good();
    run(&dir, &["convert", "a.parquet", "b.tenarc"]).good();
    let info = |file: &str| run(&dir, &["info", file]).good().to_owned();
    assert!(info("a.tenarc").contains("\n1 table of 1200 rows\n"), "{}", info("a.tenarc"));
    let expected = "\n1 table of 1200 rows, with statistics\n";
    assert!(info("b.tenarc").contains(expected), "{}", info("b.tenarc"));
    run(&dir, &["cat", "a.tenarc", "b.tenarc", "-o", "c.tenarc"]).good();
    assert!(info("c.tenarc").contains("\n2 tables of 2400 rows, 1 with statistics\n"));
    assert_eq!(run(&dir, &["info", "--json", "c.tenarc"]).json()[0]["with_statistics"], 1);
}

#[test]
fn rows_that_meet_a_condition() {
    let dir = Dir::new();
    let (one, other) = (events(0), events(300));
    dir.save_all("log.tenarc", &[(Some("events"), &one), (Some("events"), &other)]);
    dir.save("one.tenarc", &one);
    let lines = |options: &[&str]| {
        let ran = run(&dir, &[&["show", "--json", "log.tenarc", "events"], options].concat());
        assert_eq!((ran.status, &*ran.err), (0, ""));
        ran.out().to_owned()
    };
    let found = lines(&["--where", "score > 295 and day = 'monday'", "--columns", "id,score"]);
    assert_eq!(
        found,
        "{\"id\":592,\"score\":296.0}\n{\"id\":596,\"score\":298.0}\n{\"id\":598,\"score\":299.0}\n"
    );
    let found = lines(&["--head", "2", "--columns", "id", "--columns", "request.size,request.a.b"]);
    let row = |id: u8| format!("{{\"id\":{id},\"request.size\":{id},\"request.a.b\":false}}\n");
    assert_eq!(found, row(0) + &row(1));
    assert_eq!(lines(&["--where", "score is null"]).lines().count(), 200);
    assert_eq!(lines(&["--where", "kind = 'Quit'", "--head", "20"]).lines().count(), 20);
    let found = lines(&["--where", "kind.Click.x = 7 and id < 3", "--columns", "kind.Click.x"]);
    assert_eq!(found, "{\"kind.Click.x\":7}\n{\"kind.Click.x\":7}\n");
    assert_eq!(lines(&["--where", "id > 1000"]), "");
    // As text, and for the only value.
    for options in [&["log.tenarc", "events"][..], &["one.tenarc"]] {
        let ran =
            run(&dir, &[&["show"], options, &["--where", "id = 4", "--columns", "id"]].concat());
        assert_eq!(ran.out(), "[\n  {\n    \"id\": 4,\n  },\n]\n", "{ran:?}");
    }
    let ran = run(&dir, &["show", "one.tenarc", "--where", "id != 4"]);
    assert!(ran.out().contains("… 199 more"), "{ran:?}");
}

#[derive(serde::Serialize)]
struct Row {
    id: u32,
    parent: Option<()>,
}

#[test]
fn rows_that_are_no_columns_have_the_fields_that_they_have() {
    let dir = Dir::new();
    dir.save("rows.tenarc", &[Row { id: 1, parent: None }, Row { id: 2, parent: None }]);
    let show = |args: &[&str]| run(&dir, &[&["show", "rows.tenarc"], args].concat());
    assert_eq!(show(&["id"]).good(), "[1, 2]\n");
    assert!(show(&["--where", "id > 1", "--columns", "parent.id"]).good().contains("null"));
    show(&["ids"]).failed(2, "at `ids`");
}

#[test]
fn errors_of_conditions() {
    let dir = Dir::new();
    dir.save("log.tenarc", &events(0));
    dir.save("number.tenarc", &7);
    dir.save("rows.tenarc", &[Row { id: 1, parent: None }, Row { id: 2, parent: None }]);
    for (file, options, what) in [
        ("log.tenarc", &["--where", "id >"][..], "at character 5: expected a number"),
        ("log.tenarc", &["--where", "ids > 5"], "expected one of the columns `id`"),
        ("rows.tenarc", &["--where", "ids > 5"], "\"ids\": there is no such column"),
        ("rows.tenarc", &["--columns", "id,x"], "\"x\": there is no such column"),
        ("log.tenarc", &["--where", "day > 5"], "found a value such as text string"),
        ("log.tenarc", &["--columns", "id,x"], "there is no such column"),
        ("number.tenarc", &["--head", "5"], "not a sequence, so it has no rows"),
    ] {
        run(&dir, &[&["show", file], options].concat()).failed(2, what);
    }
}

#[test]
fn compact_merges_deletes_and_sorts() {
    let dir = Dir::new();
    let parts: Vec<_> = (0..10).map(|part| events(part * 10)).collect();
    let save = || {
        let values: Vec<_> = parts.iter().map(|part| (Some("events"), part)).collect();
        dir.save_all("log.tenarc", &values);
        std::fs::read(dir.file("log.tenarc")).unwrap()
    };
    let before = save();
    let ran = run(&dir, &["compact", "log.tenarc", "-o", "new.tenarc", "--json"]).json();
    let table = serde_json::json!({
        "name": "events", "rows_before": 3000, "rows": 3000, "segments_before": 10, "segments": 1,
    });
    assert_eq!(ran["tables"], serde_json::json!([table]));
    assert_eq!(ran["bytes_before"], before.len());
    assert_eq!(std::fs::read(dir.file("log.tenarc")).unwrap(), before);
    run(&dir, &["verify", "--decode", "new.tenarc"]).good();
    let diff = run(&dir, &["show", "log.tenarc", "events", "--json"]);
    assert_eq!(run(&dir, &["show", "new.tenarc", "events", "--json"]).out(), diff.out());
    run(&dir, &["compact", "log.tenarc", "-o", "new.tenarc", "--no-clobber"])
        .failed(2, "--no-clobber keeps it");

    let args = ["compact", "log.tenarc", "--delete", "id < 305", "--sort", "score"];
    let out = run(&dir, &args).good().to_owned();
    assert!(out.contains("log.tenarc: events: "), "{out}");
    assert!(out.contains(" deleted, 10 segments became 1 segment\n"), "{out}");
    run(&dir, &["verify", "--decode", "log.tenarc"]).good();
    let shown = run(&dir, &["show", "log.tenarc", "events", "--columns", "id", "--json"]);
    let id = |row| serde_json::from_str::<serde_json::Value>(row).unwrap()["id"].as_u64().unwrap();
    let ids: Vec<u64> = shown.good().lines().map(id).collect();
    assert!(ids.iter().all(|id| *id >= 305) && ids[0] == 305, "{ids:?}");
    run(&dir, &["compact", "log.tenarc"]).good();

    let before = save();
    for (args, why) in [
        (&["--delete", "id"][..], "expected"),
        (&["--delete", "idd = 1"], "there is none at"),
        (&["-n", "event"], "did you mean"),
        (&["--sort", "request"], "to sort by"),
    ] {
        run(&dir, &[&["compact", "log.tenarc"], args].concat()).failed(2, why);
        assert_eq!(std::fs::read(dir.file("log.tenarc")).unwrap(), before);
    }
    dir.save_all("two.tenarc", &[(Some("a"), &parts[0]), (Some("b"), &parts[1])]);
    run(&dir, &["compact", "two.tenarc", "--sort", "id"])
        .failed(2, "several tables, `a`, `b`: name those");
    run(&dir, &["compact", "-"]).failed(2, "name an output with -o");
}
