//! `tenarc view`: the page and one file, on this computer only, whatever is sent to it: number 123 of `docs/threats.md`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::Dir;

/// A running server, which ends with the test.
struct Viewer {
    child: Child,
    port: u16,
    token: String,
    query: String,
    // The file is there as long as the server.
    dir: Dir,
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const CONTENT: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyz";

impl Viewer {
    fn start() -> Self {
        Self::start_with("a file & more.npy", &[])
    }

    fn start_with(name: &str, arguments: &[&str]) -> Self {
        let dir = Dir::new();
        let file = dir.write(name, CONTENT);
        let mut child = Command::new(env!("CARGO_BIN_EXE_tenarc"))
            .args(["view", "--no-open"])
            .args(arguments)
            .arg(file)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let rest = url.trim_end().strip_prefix("http://127.0.0.1:").unwrap();
        let (port, rest) = rest.split_once('/').unwrap();
        let (token, query) = rest.split_once('/').unwrap();
        Self { child, port: port.parse().unwrap(), token: token.into(), query: query.into(), dir }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// What the server answers to these bytes.
    fn raw(&self, request: &[u8]) -> Answer {
        let mut stream = self.connect();
        // The server may answer, and close, before it has read all.
        let _ = stream.write_all(request).and_then(|()| stream.shutdown(Shutdown::Write));
        Answer::read(stream)
    }

    /// A request as a browser sends it, with `\n` at the end of each further header.
    fn ask(&self, method: &str, path: &str, headers: &str) -> Answer {
        let Self { port, token, .. } = self;
        let headers = headers.replace('\n', "\r\n");
        self.raw(
            format!("{method} /{token}{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{headers}\r\n")
                .as_bytes(),
        )
    }
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn read(mut stream: TcpStream) -> Self {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no answer, but {bytes:?}"));
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Self { status, head, body: bytes[end + 4..].to_vec() }
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

#[test]
fn gives_the_page_and_the_file() {
    let viewer = Viewer::start();
    assert_eq!(viewer.query, "?file=a%20file%20%26%20more.npy");
    assert_eq!(viewer.token.len(), 32);
    let page = viewer.ask("GET", &format!("/{}", viewer.query), "Sec-Fetch-Site: none\n");
    assert_eq!(page.status, 200);
    assert_eq!(page.header("Content-Type"), Some("text/html; charset=utf-8"));
    assert_eq!(page.header("Content-Length"), Some(page.body.len().to_string().as_str()));
    assert!(String::from_utf8(page.body).unwrap().starts_with("<!doctype html>"));
    let file = viewer.ask("GET", "/file", "Sec-Fetch-Site: same-origin\n");
    assert_eq!((file.status, file.body.as_slice()), (200, CONTENT));
    let head = viewer.ask("HEAD", "/file", "");
    assert_eq!((head.status, head.header("Content-Length"), head.body.len()), (200, Some("36"), 0));
    for answer in [&file, &head] {
        assert_eq!(answer.header("Cache-Control"), Some("no-store"));
        assert_eq!(answer.header("X-Content-Type-Options"), Some("nosniff"));
        assert_eq!(answer.header("Access-Control-Allow-Origin"), None);
    }
}

#[test]
fn gives_ranges() {
    let viewer = Viewer::start();
    for (range, content, body) in [
        ("bytes=0-0", "bytes 0-0/36", &CONTENT[..1]),
        ("bytes=10-19", "bytes 10-19/36", &CONTENT[10..20]),
        ("bytes=30-99", "bytes 30-35/36", &CONTENT[30..]),
        ("bytes=-5", "bytes 31-35/36", &CONTENT[31..]),
    ] {
        let answer = viewer.ask("GET", "/file", &format!("Range: {range}\n"));
        assert_eq!((answer.status, answer.body.as_slice()), (206, body), "{range}");
        assert_eq!(answer.header("Content-Range"), Some(content));
    }
    let beyond = viewer.ask("GET", "/file", "Range: bytes=36-\n");
    assert_eq!((beyond.status, beyond.header("Content-Range")), (416, Some("bytes */36")));
    for all in ["bytes=5-1", "bytes=0-1,4-5", "lines=1-2", "bytes=x"] {
        assert_eq!(viewer.ask("GET", "/file", &format!("Range: {all}\n")).body, CONTENT, "{all}");
    }
    assert_eq!(viewer.ask("GET", "/file", "Range: bytes=0-1\nRange: bytes=2-3\n").status, 400);
}

#[test]
fn a_changed_file_has_another_tag() {
    let viewer = Viewer::start();
    let tag = |answer: &Answer| answer.header("ETag").unwrap().to_owned();
    let before = tag(&viewer.ask("GET", "/file", ""));
    assert_eq!(before, tag(&viewer.ask("GET", "/file", "Range: bytes=0-1\n")));
    let condition = format!("Range: bytes=0-1\nIf-Range: {before}\n");
    assert_eq!(viewer.ask("GET", "/file", &condition).status, 206);
    viewer.dir.write("a file & more.npy", b"something else");
    let after = viewer.ask("GET", "/file", &condition);
    assert_eq!((after.status, after.body.as_slice()), (200, b"something else".as_slice()));
    assert_ne!(before, tag(&after));
    std::fs::remove_file(viewer.dir.file("a file & more.npy")).unwrap();
    assert_eq!(viewer.ask("GET", "/file", "").status, 500);
}

#[test]
fn refuses_everything_else() {
    let viewer = Viewer::start();
    let Viewer { port, token, .. } = &viewer;
    let other = "0".repeat(32);
    let host = format!("Host: 127.0.0.1:{port}\r\n");
    for (request, status) in [
        // Without the token, with another one, and beside the two paths.
        (format!("GET / HTTP/1.1\r\n{host}\r\n"), 404),
        (format!("GET /{other}/file HTTP/1.1\r\n{host}\r\n"), 404),
        (format!("GET /{token} HTTP/1.1\r\n{host}\r\n"), 404),
        (format!("GET /{token}file HTTP/1.1\r\n{host}\r\n"), 404),
        (format!("GET /{token}/file/ HTTP/1.1\r\n{host}\r\n"), 404),
        (format!("GET /{token}/../../etc/passwd HTTP/1.1\r\n{host}\r\n"), 404),
        (format!("GET /{token}/%66ile HTTP/1.1\r\n{host}\r\n"), 404),
        (format!("GET http://127.0.0.1:{port}/{token}/file HTTP/1.1\r\n{host}\r\n"), 404),
        // Another name that leads here, no name, and two.
        (format!("GET /{token}/file HTTP/1.1\r\nHost: evil.example:{port}\r\n\r\n"), 421),
        (format!("GET /{token}/file HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"), 421),
        (format!("GET /{token}/file HTTP/1.1\r\n\r\n"), 400),
        (format!("GET /{token}/file HTTP/1.1\r\n{host}{host}\r\n"), 400),
        (format!("GET /{token}/file HTTP/1.1\r\nHost : 127.0.0.1:{port}\r\n\r\n"), 400),
        // A page of another server.
        (format!("GET /{token}/file HTTP/1.1\r\n{host}Sec-Fetch-Site: cross-site\r\n\r\n"), 403),
        (format!("GET /{token}/file HTTP/1.1\r\n{host}Sec-Fetch-Site: same-site\r\n\r\n"), 403),
        // What is no request.
        (format!("POST /{token}/file HTTP/1.1\r\n{host}Content-Length: 3\r\n\r\nabc"), 405),
        (format!("OPTIONS /{token}/file HTTP/1.1\r\n{host}\r\n"), 405),
        (format!("GET  /{token}/file HTTP/1.1\r\n{host}\r\n"), 400),
        (format!("GET /{token}/file HTTP/2.0\r\n{host}\r\n"), 400),
        (format!("GET /{token}/file\r\n{host}\r\n"), 400),
        (format!("GET /{token}/file HTTP/1.1\r\n{host}no colon\r\n\r\n"), 400),
        (format!("GET /{token}/file HTTP/1.1\r\n{host} folded: line\r\n\r\n"), 400),
        ("\r\n\r\n".into(), 400),
        ("\u{16}\u{3}\u{1}\r\n\r\n".into(), 400),
        (format!("GET /{token}/file HTTP/1.1\r\n{host}X: {}\r\n\r\n", "x".repeat(40_000)), 431),
    ] {
        let answer = viewer.raw(request.as_bytes());
        assert_eq!(answer.status, status, "{request}");
        assert!(!answer.body.windows(4).any(|bytes| bytes == &CONTENT[..4]), "{request}");
    }
    assert_eq!(viewer.raw(b"GET /\xff HTTP/1.1\r\n\r\n").status, 400);
    // The name of this computer for itself.
    let local = viewer
        .raw(format!("GET /{token}/file HTTP/1.0\r\nHost: LocalHost:{port}\r\n\r\n").as_bytes());
    assert_eq!(local.status, 200);
}

#[test]
fn connections_that_send_nothing_are_closed_and_stop_no_others() {
    let viewer = Viewer::start();
    let start = Instant::now();
    let mut idle: Vec<_> = (0..20).map(|_| viewer.connect()).collect();
    // A byte now and then does not keep a connection open.
    let mut slow = viewer.connect();
    assert_eq!(viewer.ask("GET", "/file", "").body, CONTENT);
    assert!(start.elapsed() < Duration::from_secs(4));
    let mut end = [0];
    while slow.write_all(b"G").is_ok() && start.elapsed() < Duration::from_secs(15) {
        thread::sleep(Duration::from_millis(100));
    }
    assert!(start.elapsed() < Duration::from_secs(12));
    for stream in &mut idle {
        assert!(!matches!(stream.read(&mut end), Ok(1)));
    }
    // More at once than are answered: those in excess are closed, and the server goes on.
    let many: Vec<_> =
        (0..200).filter_map(|_| TcpStream::connect(("127.0.0.1", viewer.port)).ok()).collect();
    drop(many);
    thread::sleep(Duration::from_millis(300));
    assert_eq!(viewer.ask("GET", "/file", "Range: bytes=1-2\n").body, b"12");
}

#[test]
fn says_what_cannot_be_viewed() {
    let dir = Dir::new();
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_tenarc")).args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let path = dir.path().to_str().unwrap();
    let (status, message) = run(&["view", path]);
    assert_eq!(status, Some(2));
    assert!(message.contains("only files can be viewed"), "{message}");
    let (status, message) = run(&["view", &format!("{path}/missing")]);
    assert_eq!(status, Some(2));
    assert!(message.contains("missing"), "{message}");
    let viewer = Viewer::start_with("other.npy", &["--port", "0"]);
    let file = viewer.dir.file("other.npy");
    let (status, message) =
        run(&["view", "--no-open", "--port", &viewer.port.to_string(), file.to_str().unwrap()]);
    assert_eq!(status, Some(2));
    assert!(message.contains(&format!("cannot listen on port {}", viewer.port)), "{message}");
}
