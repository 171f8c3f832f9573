//! Runs a scheduler and two executors, and compares what queries find on them and in one process.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Serialize;
use tenarc::OArchive;
use tenarc::archive::SaveOptions;

#[derive(Serialize)]
struct Event {
    id: u64,
    user: u16,
    score: f64,
    note: Option<String>,
    action: Action,
    tags: Vec<u8>,
}

#[derive(Serialize)]
enum Action {
    Click { x: i32 },
    Quit,
}

#[derive(Serialize)]
struct User {
    id: u16,
    name: String,
}

const FILES: u32 = 5;
const ROWS: u32 = 20_000;

fn event(id: u32) -> Event {
    Event {
        id: id.into(),
        user: (id % 100) as u16,
        score: f64::from(id % 1000) / 8.0,
        note: (!id.is_multiple_of(3)).then(|| format!("note {}", id % 17)),
        action: match id % 50 {
            x if x.is_multiple_of(2) => Action::Quit,
            x => Action::Click { x: x.cast_signed() - 25 },
        },
        tags: vec![0; (id % 4) as usize],
    }
}

/// Five files of 20,000 events each, in groups of 5000, and the users.
fn save(dir: &Path) {
    std::fs::create_dir(dir.join("events")).unwrap();
    let options = SaveOptions::default().with_statistics(true);
    for file in 0..FILES {
        let path = dir.join(format!("events/{file}.tenarc"));
        let mut out = OArchive::create(path, options.clone()).unwrap();
        let ids = file * ROWS..(file + 1) * ROWS;
        for start in ids.step_by(5000) {
            let rows: Vec<_> = (start..start + 5000).map(event).collect();
            out.save_as("events", &rows).unwrap();
        }
        out.finish().unwrap();
    }
    let users = (0..100).map(|id| User { id, name: format!("user {id}") });
    tenarc::save(dir.join("users.tenarc"), &users.collect::<Vec<_>>()).unwrap();
}

const QUERIES: [&str; 5] = [
    "SELECT id, note, tags FROM events WHERE id >= 39990 AND id < 40010 AND note LIKE 'note 1%' ORDER BY id",
    "SELECT action['variant'] AS what, count(*) AS n, sum(score) AS score, min(action['Click']['x']) AS least \
     FROM events WHERE score > 1.5 GROUP BY what ORDER BY what",
    "SELECT u.name, count(*) AS n, max(e.id) AS last FROM events e JOIN users u ON e.user = u.id \
     WHERE action['Click']['x'] < -20 AND u.name < 'user 3' GROUP BY u.name ORDER BY u.name",
    "SELECT id, user, score FROM events WHERE note IS NULL ORDER BY score DESC, id LIMIT 12",
    "SELECT count(*) AS n, count(note) AS notes, count(DISTINCT user) AS users FROM events",
];

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenarc-ballista"));
    command.stdin(Stdio::null());
    command
}

/// Processes that end with the test.
#[derive(Default)]
struct Cluster(Vec<Child>);

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Cluster {
    fn start(&mut self, arguments: &[&str]) {
        self.0.push(program().args(arguments).spawn().unwrap());
    }

    /// Waits until the scheduler knows both executors.
    fn wait(&mut self, port: &str) {
        let start = Instant::now();
        while !is_ready(port) {
            for child in &mut self.0 {
                let status = child.try_wait().unwrap();
                assert!(status.is_none(), "a process has ended: {status:?}");
            }
            assert!(start.elapsed() < Duration::from_mins(1), "the executors do not come");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn is_ready(port: &str) -> bool {
    let asked = || {
        let mut stream = TcpStream::connect(format!("127.0.0.1:{port}"))?;
        stream.write_all(b"GET /readyz HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok::<_, std::io::Error>(answer.contains(" 200 "))
    };
    asked().unwrap_or(false)
}

/// What a query prints, or its error.
fn query(dir: &Path, place: &str, sql: &str) -> Result<String, String> {
    let output = program()
        .current_dir(dir)
        .args(["query", place, sql, "events=events", "users=users.tenarc"])
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

#[test]
fn two_executors_give_what_one_process_gives() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    save(dir);
    // Other ports could be given while these are still taken.
    let listeners: Vec<_> = (0..5).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let ports = listeners.iter().map(|one| one.local_addr().unwrap().port().to_string());
    let ports: Vec<_> = ports.collect();
    drop(listeners);
    let mut cluster = Cluster::default();
    cluster.start(&["scheduler", &ports[0], "2"]);
    let work = [dir.join("work 1"), dir.join("work 2")];
    for (work, own) in work.iter().zip(ports[1..].chunks(2)) {
        std::fs::create_dir(work).unwrap();
        cluster.start(&["executor", &ports[0], &own[0], &own[1], work.to_str().unwrap()]);
    }
    cluster.wait(&ports[0]);
    let url = format!("http://127.0.0.1:{}", ports[0]);

    for sql in QUERIES {
        let (local, remote) = (query(dir, "local", sql), query(dir, &url, sql));
        assert!(local.as_ref().is_ok_and(|found| found.lines().count() > 4), "{sql}: {local:?}");
        assert_eq!(local, remote, "{sql}");
    }
    // An executor makes a directory for each query of which it has a part.
    for work in &work {
        let names = work.read_dir().unwrap().map(|entry| entry.unwrap().file_name());
        let names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        let jobs = names.iter().filter(|name| !name.starts_with("datafusion-")).count();
        assert!(jobs > 1, "{}: {names:?}", work.display());
    }

    // The metadata of this file can be read, so that an executor finds the damage.
    let path = dir.join("events/3.tenarc");
    let archive = tenarc::Archive::open(&path).unwrap();
    let segment = archive.segments().next().unwrap().unwrap();
    let (start, len) = segment.buffers().iter().max_by_key(|(_, len)| len).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[usize::try_from(start + len / 2).unwrap()] ^= 0xff;
    std::fs::write(&path, &bytes).unwrap();
    let error = query(dir, &url, "SELECT * FROM events ORDER BY id LIMIT 1").unwrap_err();
    assert!(error.contains("3.tenarc") && error.contains("byte"), "{error}");
    assert!(query(dir, &url, "SELECT count(*) FROM users").unwrap().contains("| 100 "));
}
