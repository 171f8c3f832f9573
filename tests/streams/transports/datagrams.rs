//! One message to a datagram, over UDP: what the example does, under loss and against its limit.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::path::Path;

use ndarray::{Array2, s};

use super::example::{LIMIT, Record, datagram, deliver, pieces, receive};
use super::support::{Peer, TIMEOUT};
use tenarc_test_support::child;

fn table() -> Array2<f32> {
    Array2::from_shape_fn((300, 50), |(row, column)| (row * 50 + column) as f32)
}

fn sent() -> Vec<Record> {
    let mut records = vec![Record::Log("a table".into())];
    records.extend(pieces(&table()).unwrap());
    records.push(Record::End);
    records
}

/// The other process: it sends.
#[test]
fn child() {
    let Some((address, _)) = child::role() else { return };
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(&address).unwrap();
    for (number, record) in (0..).zip(sent()) {
        deliver(&socket, number, &datagram(number, &record).unwrap()).unwrap();
    }
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    socket
}

fn start(socket: &UdpSocket) -> Peer {
    let address = socket.local_addr().unwrap().to_string();
    Peer::start("transports::datagrams::child", &address, Path::new("."))
}

#[test]
fn records_come_from_another_process_and_rows_make_the_table_again() {
    let socket = socket();
    let peer = start(&socket);
    let (mut found, mut next) = (Array2::zeros((300, 50)), 0);
    let mut seen = 0;
    loop {
        let (number, record) = receive(&socket).unwrap();
        if number < next {
            continue; // sent again, as the answer was late
        }
        assert_eq!(number, next);
        next += 1;
        match record {
            Record::Log(text) => assert_eq!(text, "a table"),
            Record::Rows { first, of, rows } => {
                assert_eq!((first, of), (seen, 300));
                seen += rows.nrows();
                found.slice_mut(s![first..seen, ..]).assign(&rows.0);
            }
            Record::End => break,
        }
    }
    assert_eq!(found, table());
    peer.succeeds();
}

#[test]
fn what_is_not_acknowledged_comes_again() {
    let socket = socket();
    let peer = start(&socket);
    // Lost on the way, and another answer than to this datagram.
    let mut bytes = [0; LIMIT];
    let (len, from) = socket.recv_from(&mut bytes).unwrap();
    socket.send_to(&tenarc::to_vec(&77_u32).unwrap(), from).unwrap();
    socket.send_to(b"nonsense", from).unwrap();
    let lost: (u32, Record) = tenarc::from_slice(&bytes[..len]).unwrap();
    assert_eq!(receive(&socket).unwrap(), lost);
    while receive(&socket).unwrap().1 != Record::End {}
    peer.succeeds();
}

/// A log record whose datagram has that many bytes.
fn of_length(len: usize) -> Record {
    let around = tenarc::to_vec(&(1_u32, Record::Log("x".repeat(300)))).unwrap().len() - 300;
    Record::Log("x".repeat(len - around))
}

#[test]
fn the_limit_holds_to_the_byte_and_the_error_says_how_large_it_was() {
    assert_eq!(datagram(1, &of_length(LIMIT)).unwrap().len(), LIMIT);
    let error = datagram(1, &of_length(LIMIT + 1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert_eq!(error.to_string(), "the record has 1201 bytes, a datagram holds 1200");
}

#[test]
fn pieces_fit_and_have_every_row_once() {
    for (rows, columns) in [(0, 5), (1, 1), (1, 250), (7, 120), (1000, 1), (33, 280)] {
        let table = Array2::from_shape_fn((rows, columns), |(y, x)| (y * 1000 + x) as f32);
        let mut next = 0;
        for piece in pieces(&table).unwrap() {
            assert!(datagram(u32::MAX, &piece).unwrap().len() <= LIMIT);
            let Record::Rows { first, of, rows: part } = piece else { panic!("{piece:?}") };
            assert_eq!((first, of), (next, rows));
            next += part.nrows();
            assert_eq!(part.0, table.slice(s![first..next, ..]));
        }
        assert_eq!(next, rows);
    }
    let error = pieces(&Array2::zeros((3, 400))).unwrap_err().to_string();
    assert!(error.starts_with("the record has 16") && error.ends_with("holds 1200"), "{error}");
}

#[test]
fn datagrams_that_are_cut_or_too_long_are_refused() {
    let (receiver, sender) = (socket(), socket());
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    let whole = datagram(1, &of_length(LIMIT)).unwrap();
    sender.send(&whole).unwrap();
    assert_eq!(receive(&receiver).unwrap(), (1, of_length(LIMIT)));

    // Cut to the buffer it is received in, this would pass for the whole one.
    let longer = [&whole[..], &[0]].concat();
    for bytes in
        [&longer[..], &longer[..LIMIT - 1], b"", &[&b"\x82\x01\x63End"[..], b"\0"].concat()]
    {
        sender.send(bytes).unwrap();
        let error = receive(&receiver).unwrap_err();
        let timed_out = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        assert!(!timed_out, "{} bytes: {error}", bytes.len());
    }
    sender.send(b"\x82\x01\x63End").unwrap();
    assert_eq!(receive(&receiver).unwrap(), (1, Record::End));
}
