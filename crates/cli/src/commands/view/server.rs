//! A server for the page and one file. It believes nothing that a request says: pages of other servers and other users of this
//! computer can send requests too.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use super::request::{Request, Wanted};
use crate::failure::{Failure, Result, Status};

const PAGE: &[u8] = include_bytes!("viewer.html");
/// Longer heads are refused. Those of browsers have about 700 bytes.
const MAX_HEAD: usize = 16 * 1024;
/// How long the head of a request may take.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// How long the reader of an answer may wait between two pieces.
const WRITE_TIME: Duration = Duration::from_secs(30);
/// A browser opens at most six connections to one server.
const MAX_CONNECTIONS: usize = 64;

/// What is served, and where.
pub struct Server {
    pub file: PathBuf,
    pub token: String,
    pub port: u16,
}

/// An answer: its status, and what it gives.
struct Answer {
    status: &'static str,
    headers: String,
    body: Body,
}

enum Body {
    Bytes(&'static [u8]),
    File(File, Range<u64>),
}

impl Body {
    fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(_, range) => range.end - range.start,
        }
    }
}

/// An answer that only has a status. Its text says what it is to people who look at it.
fn refusal(status: &'static str) -> Answer {
    Answer {
        status,
        headers: "Content-Type: text/plain\r\n".into(),
        body: Body::Bytes(status.as_bytes()),
    }
}

impl Server {
    /// Answers requests until the process is ended.
    pub fn run(self, listener: &TcpListener) -> Result<Status> {
        let server = Arc::new(self);
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    // Each connection has a reference. What is too much is closed at once.
                    if Arc::strong_count(&server) <= MAX_CONNECTIONS {
                        let server = Arc::clone(&server);
                        // If there is no thread for it, the connection is closed.
                        let _ = thread::Builder::new().spawn(move || server.serve(stream));
                    }
                }
                Err(error) if is_about_one(&error) => {}
                // For example too many open files: others may be closed soon.
                Err(error) if error.raw_os_error().is_some() => {
                    thread::sleep(Duration::from_millis(50));
                }
                Err(error) => return Err(Failure::from(error)),
            }
        }
    }

    /// Answers the one request of a connection. If it fails, there is nobody to tell.
    fn serve(&self, mut stream: TcpStream) {
        let _ = stream.set_write_timeout(Some(WRITE_TIME));
        let _ = stream.set_nodelay(true);
        let (answer, is_head) = match read_head(&mut stream) {
            Ok(Some(head)) => match Request::parse(&head) {
                Some(request) => (self.answer(&request), request.method == "HEAD"),
                None => (refusal("400 Bad Request"), false),
            },
            Ok(None) => (refusal("431 Request Header Fields Too Large"), false),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                (refusal("400 Bad Request"), false)
            }
            Err(_) => return,
        };
        let _ = send(&mut stream, answer, is_head).and_then(|()| stream.shutdown(Shutdown::Write));
        // If bytes were left, closing would reset the connection before the answer was read.
        let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
        let _ = io::copy(&mut stream.take(MAX_HEAD as u64), &mut io::sink());
    }

    fn answer(&self, request: &Request<'_>) -> Answer {
        // A page of another server whose name leads to this computer (DNS rebinding) sends that name.
        let port = self.port;
        let is_own = |host: &str| {
            host == format!("127.0.0.1:{port}")
                || host.eq_ignore_ascii_case(&format!("localhost:{port}"))
        };
        match request.header("Host") {
            Ok(Some(host)) if is_own(host) => {}
            Ok(Some(_)) => return refusal("421 Misdirected Request"),
            _ => return refusal("400 Bad Request"),
        }
        if !matches!(request.header("Sec-Fetch-Site"), Ok(None | Some("same-origin" | "none"))) {
            return refusal("403 Forbidden");
        }
        if !matches!(request.method, "GET" | "HEAD") {
            return Answer {
                headers: "Allow: GET, HEAD\r\n".into(),
                ..refusal("405 Method Not Allowed")
            };
        }
        let path = request.target.split('?').next().unwrap_or_default();
        match path.strip_prefix('/').and_then(|path| path.strip_prefix(self.token.as_str())) {
            Some("/") => Answer {
                status: "200 OK",
                headers: "Content-Type: text/html; charset=utf-8\r\nContent-Security-Policy: frame-ancestors 'none'\r\n".into(),
                body: Body::Bytes(PAGE),
            },
            Some("/file") => self.file(request).unwrap_or_else(|_| refusal("500 Internal Server Error")),
            _ => refusal("404 Not Found"),
        }
    }

    /// The file, or the range of it that is asked for. It is opened each time, so the page notices if another one takes its place.
    fn file(&self, request: &Request<'_>) -> io::Result<Answer> {
        let file = File::open(&self.file)?;
        let metadata = file.metadata()?;
        let length = metadata.len();
        let changed = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        let tag = format!("\"{length:x}-{:x}\"", changed.as_nanos());
        let headers = format!(
            "Content-Type: application/octet-stream\r\nAccept-Ranges: bytes\r\nETag: {tag}\r\n"
        );
        let (Ok(range), Ok(condition)) = (request.header("Range"), request.header("If-Range"))
        else {
            return Ok(refusal("400 Bad Request"));
        };
        let is_meant =
            request.method == "GET" && condition.is_none_or(|condition| condition == tag);
        Ok(match Wanted::parse(range.filter(|_| is_meant), length) {
            Wanted::All => Answer { status: "200 OK", headers, body: Body::File(file, 0..length) },
            Wanted::Part(part) => {
                let range =
                    format!("Content-Range: bytes {}-{}/{length}\r\n", part.start, part.end - 1);
                Answer {
                    status: "206 Partial Content",
                    headers: headers + &range,
                    body: Body::File(file, part),
                }
            }
            Wanted::Nothing => {
                let range = format!("Content-Range: bytes */{length}\r\n");
                Answer { headers: headers + &range, ..refusal("416 Range Not Satisfiable") }
            }
        })
    }
}

/// Whether an error is about one connection, and not about all of them.
fn is_about_one(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, WouldBlock};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted | WouldBlock)
}

/// Reads up to the empty line behind a head. `None` if the head is too long.
fn read_head(stream: &mut TcpStream) -> io::Result<Option<String>> {
    let end = Instant::now() + HEAD_TIME;
    let mut head = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let count = match stream.read(&mut piece) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        // The empty line may be divided between two pieces.
        let from = head.len().saturating_sub(3);
        head.extend_from_slice(&piece[..count]);
        if let Some(found) = head[from..].windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            head.truncate(from + found);
            let text = String::from_utf8(head).map_err(|_| io::ErrorKind::InvalidData)?;
            return Ok(Some(text));
        }
        if head.len() > MAX_HEAD {
            return Ok(None);
        }
    }
}

fn send(stream: &mut TcpStream, answer: Answer, is_head: bool) -> io::Result<()> {
    let Answer { status, headers, body } = answer;
    let length = body.length();
    write!(
        stream,
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nCross-Origin-Resource-Policy: same-origin\r\nReferrer-Policy: no-referrer\r\n\r\n"
    )?;
    match body {
        _ if is_head => Ok(()),
        Body::Bytes(bytes) => stream.write_all(bytes),
        Body::File(mut file, range) => {
            file.seek(SeekFrom::Start(range.start))?;
            // A file that became shorter ends the answer early, which the reader sees by its length.
            io::copy(&mut file.take(length), stream).map(drop)
        }
    }
}
