//! A web server on this machine, whose objects are in memory.

// Each test uses other parts.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The objects by their paths, such as `/model.tenarc`, and what was asked for.
#[derive(Default)]
pub struct Served {
    pub objects: BTreeMap<String, Arc<[u8]>>,
    pub requests: usize,
    pub bytes: usize,
}

/// Starts a server, each of whose answers takes this long at least. Returns its address, without a slash at the end.
pub fn start(wait: Duration, objects: BTreeMap<String, Arc<[u8]>>) -> (String, Arc<Mutex<Served>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port of this machine");
    let url = format!("http://{}", listener.local_addr().expect("its address"));
    let served = Arc::new(Mutex::new(Served { objects, ..Served::default() }));
    let shared = served.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let shared = shared.clone();
            std::thread::spawn(move || answer(stream, &shared, wait));
        }
    });
    (url, served)
}

/// Answers the requests of one connection.
fn answer(mut stream: TcpStream, served: &Mutex<Served>, wait: Duration) -> io::Result<()> {
    let mut input = BufReader::new(stream.try_clone()?);
    loop {
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let mut words = line.split_whitespace();
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (mut asked, mut length) = (None, 0);
        loop {
            let mut header = String::new();
            input.read_line(&mut header)?;
            let header = header.trim().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(range) = header.strip_prefix("range: bytes=") {
                let (from, to) = range.split_once('-').unwrap_or_default();
                asked = Some((from.parse::<usize>().ok(), to.parse::<usize>().ok()));
            }
            if let Some(number) = header.strip_prefix("content-length:") {
                length = number.trim().parse().unwrap_or(0);
            }
        }
        std::thread::sleep(wait);
        if method == "PUT" {
            let mut content = vec![0; length];
            input.read_exact(&mut content)?;
            served.lock().unwrap().objects.insert(path.to_owned(), content.into());
            stream
                .write_all(b"HTTP/1.1 201 Created\r\nETag: \"2\"\r\nContent-Length: 0\r\n\r\n")?;
            continue;
        }
        let object = {
            let mut served = served.lock().unwrap();
            served.requests += 1;
            served.objects.get(path).cloned()
        };
        let Some(object) = object else {
            stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")?;
            continue;
        };
        let all = object.len();
        let range = match asked {
            Some((Some(from), to)) => from.min(all)..to.map_or(all, |to| (to + 1).min(all)),
            Some((None, Some(last))) => all.saturating_sub(last)..all,
            _ => 0..all,
        };
        let status = if asked.is_some() { "206 Partial Content" } else { "200 OK" };
        let (start, end, len) = (range.start, range.end.max(1) - 1, range.len());
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Length: {len}\r\nContent-Range: bytes {start}-{end}/{all}\r\nETag: \"1\"\r\n\
             Last-Modified: Sat, 28 Nov 2026 00:00:00 GMT\r\n\r\n"
        )?;
        if method == "GET" {
            served.lock().unwrap().bytes += len;
            stream.write_all(&object[range])?;
        }
    }
}
