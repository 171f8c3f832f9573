//! `view`: shows a file in the browser. The page that looks into files is in this program. A server for this one file, which only
//! this computer can reach, gives it what it asks for.

mod request;
mod server;

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Command, Stdio};

use crate::args::View;
use crate::failure::{Failure, Of, Result, Status};
use crate::input::shown;
use crate::output::{Out, is_quiet, say};
use server::Server;

pub fn run(args: &View, out: &mut Out) -> Result<Status> {
    let file = shown(&args.file);
    if !File::open(&args.file).and_then(|file| file.metadata()).of(&file)?.is_file() {
        return Err(Failure::new("only files can be viewed").of(&file));
    }
    let port = args.port.unwrap_or(0);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .map_err(|error| Failure::new(format!("cannot listen on port {port}: {error}")))?;
    let token = token()?;
    let port = listener.local_addr()?.port();
    let name = args.file.file_name().unwrap_or_default().to_string_lossy();
    let url = format!("http://127.0.0.1:{port}/{token}/?file={}", escaped(&name));
    writeln!(out, "{url}")?;
    out.flush()?;
    if !args.no_open && !open(&url) {
        say("no browser was found; open the address above in one");
    }
    if !is_quiet() {
        say("press Ctrl-C to stop");
    }
    Server { file: args.file.clone(), token, port }.run(&listener)
}

/// 128 random bits. Without them in the address, neither other users of this computer nor pages of other servers find the file.
fn token() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::new(format!("the system gives no random numbers: {error}")))?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// A name as it stands in the query of a URL (RFC 3986, 2.1). Nothing that a shell would read differently is left in it.
fn escaped(name: &str) -> String {
    name.bytes().fold(String::new(), |mut text, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' => text.push(byte.into()),
            _ => {
                let _ = write!(text, "%{byte:02X}");
            }
        }
        text
    })
}

/// Opens the browser that the system has chosen. Whether that works is only known in part: the browser itself runs on.
fn open(url: &str) -> bool {
    let (program, arguments): (_, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("rundll32", &["url.dll,FileProtocolHandler"])
    } else {
        ("xdg-open", &[])
    };
    Command::new(program)
        .args(arguments)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .is_ok()
}
