//! Runs the program on small files.

#[path = "../../../store/tests/support/server.rs"]
mod server;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde::Serialize;
use tenarc::OArchive;

#[derive(Serialize)]
struct Event {
    id: u32,
    #[serde(rename = "userId")]
    user: u8,
    size: Option<f64>,
    tags: Vec<String>,
}

#[derive(Serialize)]
struct Number {
    id: u32,
}

#[derive(Serialize)]
struct User {
    id: u8,
    name: String,
}

fn events(ids: std::ops::Range<u32>) -> Vec<Event> {
    ids.map(|id| Event {
        id,
        user: (id % 3) as u8,
        size: (id % 2 == 0).then_some(f64::from(id) / 4.0),
        tags: vec![format!("t{id}")],
    })
    .collect()
}

fn users() -> Vec<User> {
    let names = ["ada", "bob", "eve\u{1b}[31m, \"x\"\u{202e}"];
    (0..).zip(names).map(|(id, name)| User { id, name: name.to_owned() }).collect()
}

fn save<T: Serialize>(path: &Path, values: &[(&str, &T)]) {
    let mut out = OArchive::append(path).unwrap();
    for (name, value) in values {
        out.save_as(name, value).unwrap();
    }
    out.finish().unwrap();
}

/// Events of two days, the users, and a file with two tables and a value that is none.
fn files() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    save(&path("day-1.tenarc"), &[("events", &events(0..10))]);
    save(&path("day-2.tenarc"), &[("events", &events(10..20))]);
    tenarc::save(path("users.tenarc"), &users()).unwrap();
    save(&path("both.tenarc"), &[("events", &events(0..4))]);
    save(&path("both.tenarc"), &[("users", &users())]);
    save(&path("both.tenarc"), &[("version", &"1.0")]);
    dir
}

fn run(dir: &tempfile::TempDir, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenarc-query"));
    command.current_dir(dir.path()).args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// What is printed if all goes well.
fn printed(dir: &tempfile::TempDir, arguments: &[&str]) -> String {
    let output = run(dir, arguments);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && error.is_empty(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// The exit status and the message of a run that fails.
fn failed(dir: &tempfile::TempDir, arguments: &[&str]) -> (i32, String) {
    let output = run(dir, arguments);
    assert!(output.stdout.is_empty(), "{arguments:?}: {output:?}");
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

#[test]
fn files_are_joined_grouped_and_filtered() {
    let dir = files();
    let query = "SELECT u.name, count(*) AS n, sum(e.size) AS size FROM \"day-1\" e JOIN users u ON e.userId = u.id \
                 WHERE u.name < 'eve' AND e.id > 1 GROUP BY u.name ORDER BY u.name";
    let arguments = [query, "day-1.tenarc", "users.tenarc", "--format"];
    let csv = printed(&dir, &[&arguments[..], &["csv"]].concat());
    assert_eq!(csv, "name,n,size\nada,3,1.5\nbob,2,1.0\n");
    let table = printed(&dir, &arguments[..3]);
    assert_eq!(
        lines(&table)[1..4],
        ["| name | n | size |", "+------+---+------+", "| ada  | 3 | 1.5  |"]
    );
    let json = printed(&dir, &[&arguments[..], &["json"]].concat());
    assert_eq!(
        json,
        "{\"name\":\"ada\",\"n\":3,\"size\":1.5}\n{\"name\":\"bob\",\"n\":2,\"size\":1.0}\n"
    );
}

#[test]
fn objects_of_a_server_are_tables() {
    let dir = files();
    let objects = ["day-1", "users", "both"].map(|name| {
        let content = std::fs::read(dir.path().join(format!("{name}.tenarc"))).unwrap();
        (format!("/logs/{name}.tenarc"), content.into())
    });
    let (url, _) = server::start(std::time::Duration::ZERO, objects.into());
    let at = |name: &str| format!("{url}/logs/{name}.tenarc");
    let query = "SELECT u.name, count(*) AS n FROM \"day-1\" e JOIN users u ON e.userId = u.id \
                 GROUP BY u.name ORDER BY u.name LIMIT 2";
    let csv = printed(&dir, &[query, &at("day-1"), "users.tenarc", "--format", "csv"]);
    assert_eq!(csv, "name,n\nada,4\nbob,3\n");
    // Several names, and one of its own.
    let all = format!("all={}", at("both"));
    let csv = printed(&dir, &["SELECT max(id) FROM \"all\".events", &all, "--format", "csv"]);
    assert!(csv.ends_with("\n3\n"), "{csv}");
    let (status, error) = failed(&dir, &["SELECT 1", &at("none")]);
    assert!(status == 2 && error.contains("none.tenarc"), "{error}");
    let (status, error) = failed(&dir, &["SELECT 1", "log=ftp://host/log.tenarc"]);
    assert!(status == 2 && error.contains("ftp://host"), "{error}");
}

#[test]
fn texts_cannot_control_a_terminal() {
    let dir = files();
    let query = "SELECT name, NULL AS none FROM users WHERE id = 2";
    let table = printed(&dir, &[query, "users.tenarc"]);
    assert!(table.contains(r#"| eve\u{1b}[31m, "x"\u{202e} |"#), "{table}");
    let json = printed(&dir, &[query, "users.tenarc", "--format=json"]);
    assert_eq!(json, "{\"name\":\"eve\\u001b[31m, \\\"x\\\"\\u202e\",\"none\":null}\n");
    // For programs, bytes are as they are.
    let csv = printed(&dir, &[query, "users.tenarc", "--format=csv"]);
    assert_eq!(csv, "name,none\n\"eve\u{1b}[31m, \"\"x\"\"\u{202e}\",\n");
}

#[test]
fn tables_have_the_names_of_files_values_or_arguments() {
    let dir = files();
    std::fs::create_dir(dir.path().join("days")).unwrap();
    for name in ["day-1.tenarc", "day-2.tenarc"] {
        std::fs::copy(dir.path().join(name), dir.path().join("days").join(name)).unwrap();
    }
    let count = |from: &str, argument: &str| {
        let query = format!("SELECT count(*) FROM {from}");
        printed(&dir, &[&query, argument, "--format", "csv"]).replace("count(*)\n", "")
    };
    assert_eq!(count("\"day-1\"", "./day-1.tenarc"), "10\n");
    assert_eq!(count("log", "log=day-1.tenarc"), "10\n");
    // A pattern has the name of the values, and a directory its own.
    assert_eq!(count("events", "day-*.tenarc"), "20\n");
    assert_eq!(count("log", "log=day-*.tenarc"), "20\n");
    assert_eq!(count("days", "days"), "20\n");
    // Of several tables in one file, each is there.
    assert_eq!(count("events e JOIN users u ON e.userId = u.id", "both.tenarc"), "4\n");
    assert_eq!(count("b.events e JOIN b.users u ON e.userId = u.id", "b=both.tenarc"), "4\n");
    let shown = printed(&dir, &["SHOW TABLES", "both.tenarc", "--format", "csv"]);
    for name in ["events", "users", "version"] {
        assert!(shown.contains(&format!("tenarc,files,{name},BASE TABLE\n")), "{shown}");
    }
    assert_eq!(printed(&dir, &["SELECT 1 + 1 AS two", "--format", "csv"]), "two\n2\n");
    // Values of other files cannot be in the way.
    assert!(std::fs::rename(dir.path().join("users.tenarc"), dir.path().join("a=b")).is_ok());
    assert_eq!(count("\"a=b\"", "a=b"), "3\n");
}

#[test]
fn rows_are_saved() {
    let dir = files();
    let query = "SELECT id, tags, size FROM \"day-1\" WHERE id > 6 ORDER BY id";
    assert_eq!(printed(&dir, &[query, "day-1.tenarc", "--output", "late.tenarc"]), "");
    let archive = tenarc::Archive::open(dir.path().join("late.tenarc")).unwrap();
    let late = archive.table("late").unwrap();
    assert_eq!(late.column::<Vec<u32>>("id").unwrap(), [7, 8, 9]);
    assert_eq!(late.column::<Vec<Vec<String>>>("tags").unwrap()[1], ["t8"]);
    assert_eq!(late.column::<Vec<Option<f64>>>("size").unwrap(), [None, Some(2.0), None]);
    // The rows of a query can replace the file that they come from, and an error leaves it as it is.
    let again = ["SELECT id FROM late WHERE id > 7", "late.tenarc", "--output", "late.tenarc"];
    assert_eq!(printed(&dir, &again), "");
    let (status, error) =
        failed(&dir, &["SELECT id, id / 0 AS x FROM late", "late.tenarc", "-o", "late.tenarc"]);
    assert!(status == 2 && error.contains("zero"), "{error}");
    let counted = printed(&dir, &["SELECT count(*) FROM late", "late.tenarc", "--format=csv"]);
    assert_eq!(counted, "count(*)\n2\n");
}

#[test]
fn long_tables_are_cut_and_say_so() {
    let dir = files();
    let output = run(&dir, &["SELECT * FROM range(0, 1001)"]);
    assert!(output.status.success());
    assert_eq!(output.stdout.split(|byte| *byte == b'\n').count() - 1, 1000 + 4);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("the first 1000 rows"), "{error}");
    let exact = printed(&dir, &["SELECT * FROM range(0, 1000)"]);
    assert_eq!(lines(&exact).len(), 1000 + 4);
    assert_eq!(
        lines(&printed(&dir, &["SELECT * FROM range(0, 100000)", "--format", "csv"])).len(),
        100_001
    );
}

#[test]
fn rows_that_need_more_memory_are_sorted_in_files() {
    let dir = files();
    let numbers = (0..250_000).map(|id: u32| Number { id: id * 7919 % 250_007 });
    tenarc::save(dir.path().join("n.tenarc"), &numbers.collect::<Vec<_>>()).unwrap();
    let run = |query: &str, memory: &str| {
        let output = run(&dir, &[query, "n.tenarc", "--format", "csv", "--memory", memory]);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    // The rows are different texts of 100 bytes.
    let (status, rows, error) =
        run("SELECT lpad(id, 100, 'x') AS text FROM n ORDER BY text", "16MiB");
    assert!(status == 0 && lines(&rows).len() == 250_001, "{error}");
    assert!(lines(&rows)[1..].is_sorted());
    let grouped =
        "SELECT count(*) AS n FROM (SELECT lpad(id, 100, 'x') AS text FROM n GROUP BY text)";
    assert_eq!(run(grouped, "16MiB"), (0, "n\n250000\n".to_owned(), String::new()));
    // A join holds one side in memory.
    let joined = "SELECT count(*) FROM n a JOIN n b ON lpad(a.id, 100, 'x') = lpad(b.id, 100, 'x')";
    let (status, _, error) = run(joined, "16MiB");
    assert!(status == 2 && error.contains("--memory gives a query more"), "{error}");
    assert_eq!(run(joined, "1GiB").0, 0);
}

#[test]
fn errors_say_what_is_wrong() {
    let dir = files();
    let deep = format!("SELECT {}1{}", "(".repeat(20_000), ")".repeat(20_000));
    for (arguments, expected) in [
        (&["SELEC id FROM users", "users.tenarc"][..], "Expected: an SQL statement, found: SELEC"),
        (&["SELECT nme FROM users", "users.tenarc"], "No field named nme"),
        (
            &["SELECT id FROM user", "users.tenarc", "b=both.tenarc"],
            "the tables are b.events, b.users, b.version, users",
        ),
        (&["SELECT userid FROM \"day-1\"", "day-1.tenarc"], "No field named userid"),
        (&["SELECT name + 1 FROM users", "users.tenarc"], "Utf8 + Int64"),
        (&["SELECT 1", "missing.tenarc"], "missing.tenarc"),
        (&["SELECT 1", "missing-*.tenarc"], "no file matches"),
        (&["SELECT 1", "=users.tenarc"], "expected a name"),
        (&["SELECT 1", "user*.tenarc"], "needs a name: write NAME=user*.tenarc"),
        (
            &["SELECT 1", "users.tenarc", "users=both.tenarc", "users=day-1.tenarc"],
            "write NAME=day-1.tenarc",
        ),
        (&["SELECT * FROM version", "both.tenarc"], "both.tenarc"),
        (&["SELECT * FROM \"day-1\"", "day-1.tenarc", "--format=csv"], "column `tags`"),
        (&["SELECT id, id FROM users", "users.tenarc", "--format=json"], "unique expression names"),
        (
            &["SELECT a.id, b.id FROM users a, users b", "users.tenarc", "--format=json"],
            "two columns are named `id`",
        ),
        (
            &["CREATE TABLE t AS SELECT 1"],
            "DDL not supported: CreateMemoryTable; a query can only read",
        ),
        (&["COPY (SELECT 1) TO 'x.csv'"], "DML not supported: COPY; a query"),
        (&["SET datafusion.execution.batch_size = 1"], "SetVariable; a query"),
        (&["SELECT 1; SELECT 2"], "single SQL statement"),
        (&["SELECT 1", "--memory", "2 apples"], "such as 500MB or 2GiB"),
        (&["SELECT 1", "--memory=0"], "such as 500MB or 2GiB"),
        (&["SELECT 1", "--format=xml"], "possible values: table, csv, json"),
        (&["SELECT 1", "--format=csv", "-o", "x.tenarc"], "cannot be used with"),
        (&["SELECT 1", "-o", "missing/x.tenarc"], "missing/x.tenarc"),
        (&[], "<QUERY>"),
        (&[&deep], "recursion"),
    ] {
        let (status, error) = failed(&dir, arguments);
        assert!(status == 2 && error.contains(expected), "{arguments:?}: {status}, {error}");
        assert!(!error.contains("panicked"), "{error}");
    }
    assert!(!dir.path().join("x.tenarc").exists() && !dir.path().join("x.csv").exists());

    let path = dir.path().join("day-1.tenarc");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    std::fs::write(&path, bytes).unwrap();
    let (status, error) = failed(&dir, &["SELECT * FROM \"day-1\"", "day-1.tenarc"]);
    assert!(status == 1 && error.contains("day-1.tenarc"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_ends_the_run() {
    let dir = files();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenarc-query"));
    command.arg("SELECT * FROM range(0, 1000000)").args(["--format", "csv"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .current_dir(dir.path())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(141), Vec::new()));
}
