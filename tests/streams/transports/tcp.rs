//! TCP between two processes.

use std::io::{self, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use tenarc::Deserializer;
use tenarc::error::Category;
use tenarc::parts::{Parts, Split};

use super::support::{FORMS, Form, Model, Peer, TIMEOUT, model, plain};
use tenarc_test_support::child;

/// The other process.
#[test]
fn child() {
    let Some((role, _)) = child::role() else { return };
    let words: Vec<&str> = role.split(' ').collect();
    let stream = prepared(TcpStream::connect(words[0]).unwrap());
    match words[1..] {
        ["exchange", form] => {
            let form = Form::named(form);
            form.assert_read(&stream, "from the other process");
            form.write(&stream).unwrap();
        }
        ["answer"] => {
            while let Some(parts) = next_parts(&stream) {
                let model: Model = parts.load().unwrap();
                tenarc::to_writer(&stream, &(model.name, model.weight.0.sum())).unwrap();
            }
        }
        ["cut", form, len] => {
            let bytes = plain(Form::named(form));
            (&stream).write_all(&bytes[..len.parse().unwrap()]).unwrap();
        }
        _ => panic!("{role}"),
    }
}

fn prepared(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.set_write_timeout(Some(TIMEOUT)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

fn next_parts(stream: &TcpStream) -> Option<Parts> {
    match Parts::read_from(stream) {
        Ok(parts) => Some(parts),
        Err(error) if error.category() == Category::Eof => None,
        Err(error) => panic!("{error}"),
    }
}

/// Starts a process that connects.
fn connected(role: &str) -> (TcpStream, Peer) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let role = format!("{} {role}", listener.local_addr().unwrap());
    let mut peer = Peer::start("transports::tcp::child", &role, Path::new("."));
    let start = Instant::now();
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).unwrap();
                return (prepared(stream), peer);
            }
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}"),
        }
        assert!(!peer.has_ended() && start.elapsed() < TIMEOUT, "nobody connects");
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn every_form_goes_to_another_process_and_comes_back() {
    for form in FORMS {
        let (stream, peer) = connected(&format!("exchange {form:?}"));
        form.write(&stream).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        form.assert_read(&stream, "sent back");
        peer.succeeds();
    }
}

/// Neither side waits for, or takes, a byte beyond the parts and the message.
#[test]
fn parts_are_answered_by_messages_on_one_connection() {
    let (stream, peer) = connected("answer");
    let mut answers = Deserializer::from_reader(&stream).into_iter::<(String, f32)>();
    for number in 0..10 {
        let model = model(number);
        Split::new(&model).unwrap().write_to(&stream).unwrap();
        let answer = answers.next().unwrap().unwrap();
        assert_eq!(answer, (model.name, model.weight.0.sum()));
    }
    stream.shutdown(Shutdown::Write).unwrap();
    assert!(answers.next().is_none());
    peer.succeeds();
}

#[test]
fn a_process_that_ends_in_the_middle_leaves_an_error() {
    for form in FORMS {
        let len = plain(form).len();
        // In the middle stands the end of a model.
        for cut in [1, 40, len / 2 + 100, len - 1] {
            let (stream, peer) = connected(&format!("cut {form:?} {cut}"));
            let error = form.assert_refused(&stream, &format!("cut to {cut} bytes"));
            let category = error.category();
            let cut_off = matches!(category, Category::Eof | Category::Torn);
            assert!(cut_off, "{form:?}, {cut} bytes: {error} ({category:?})");
            peer.succeeds();
        }
    }
}
