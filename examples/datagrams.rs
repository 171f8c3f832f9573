//! Sends records to another process over UDP, one message in each datagram.
//!
//! ```sh
//! cargo run --release --example datagrams
//! ```
//!
//! A datagram has at most [`LIMIT`] bytes here, which most networks carry without fragmentation. A
//! larger record is an error. A table is therefore sent in pieces: each is a message with as many
//! rows as fit, and the number of the first. A single row that does not fit is an error.
//!
//! Datagrams can get lost, arrive twice, or arrive in another order. So each has a number, the
//! receiver acknowledges the number, and the sender repeats the datagram until then.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::process::Command;
use std::time::Duration;

use ndarray::{Array2, s};
use serde::{Deserialize, Serialize};
use tenarc::Tensor;

/// The maximum number of bytes in a datagram.
pub(crate) const LIMIT: usize = 1200;
const WAIT: Duration = Duration::from_millis(200);
const ATTEMPTS: usize = 50;

#[derive(Serialize, Deserialize, Debug, PartialEq)]
pub(crate) enum Record {
    Log(String),
    /// Consecutive rows of a table, from row `first`.
    Rows {
        first: usize,
        of: usize,
        rows: Tensor<Array2<f32>>,
    },
    End,
}

/// The datagram for a record. Fails if it would be longer than [`LIMIT`].
pub(crate) fn datagram(number: u32, record: &Record) -> io::Result<Vec<u8>> {
    let bytes = tenarc::to_vec(&(number, record))?;
    if bytes.len() > LIMIT {
        let error = format!("the record has {} bytes, a datagram holds {LIMIT}", bytes.len());
        return Err(io::Error::new(ErrorKind::InvalidInput, error));
    }
    Ok(bytes)
}

/// Splits a table into records that fit a datagram. Fails if a single row does not fit.
pub(crate) fn pieces(table: &Array2<f32>) -> io::Result<Vec<Record>> {
    let of = table.nrows();
    let mut pieces = Vec::new();
    let mut left = vec![(0, of)];
    while let Some((first, end)) = left.pop() {
        let rows = table.slice(s![first..end, ..]).to_owned().into();
        let piece = Record::Rows { first, of, rows };
        // Tried with the largest number, as a number takes one to five bytes.
        match datagram(u32::MAX, &piece) {
            Ok(_) => pieces.push(piece),
            Err(error) if end - first <= 1 => return Err(error),
            Err(_) => {
                let middle = first + (end - first) / 2;
                left.extend([(middle, end), (first, middle)]);
            }
        }
    }
    Ok(pieces)
}

/// Sends a datagram until it is acknowledged.
pub(crate) fn deliver(socket: &UdpSocket, number: u32, datagram: &[u8]) -> io::Result<()> {
    socket.set_read_timeout(Some(WAIT))?;
    for _ in 0..ATTEMPTS {
        socket.send(datagram)?;
        let mut answer = [0; 16];
        match socket.recv(&mut answer) {
            Ok(len) if tenarc::from_slice(&answer[..len]).is_ok_and(|got: u32| got == number) => {
                return Ok(());
            }
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(ErrorKind::TimedOut, format!("datagram {number} was not acknowledged")))
}

/// Receives a record, and acknowledges it.
pub(crate) fn receive(socket: &UdpSocket) -> io::Result<(u32, Record)> {
    // One byte more than the limit, to notice longer datagrams: they are truncated silently.
    let mut bytes = [0; LIMIT + 1];
    let (len, from) = socket.recv_from(&mut bytes)?;
    if len > LIMIT {
        return Err(io::Error::new(
            ErrorKind::InvalidData,
            "the datagram is longer than the limit",
        ));
    }
    let (number, record) = tenarc::from_slice::<(u32, Record)>(&bytes[..len])?;
    socket.send_to(&tenarc::to_vec(&number)?, from)?;
    Ok((number, record))
}

#[allow(dead_code)] // `tests/streams/transports/mod.rs` includes this file, and does not call `main`.
fn main() -> Result<(), Box<dyn Error>> {
    if let Some(address) = std::env::args().nth(1) {
        return send(&address);
    }
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.set_read_timeout(Some(WAIT * 50))?;
    let address = socket.local_addr()?.to_string();
    let mut sender = Command::new(std::env::current_exe()?).arg(address).spawn()?;
    let mut table = Vec::new();
    loop {
        match receive(&socket)?.1 {
            Record::End => break,
            Record::Log(text) => println!("received: {text}"),
            Record::Rows { first, of, rows } => {
                // Bounded, as the received number decides how much memory is allocated.
                table.resize(of.min(10_000), None);
                let places = table.get_mut(first..).unwrap_or_default();
                places.iter_mut().zip(rows.outer_iter()).for_each(|(p, r)| *p = Some(r.sum()));
            }
        }
    }
    let ended = sender.wait()?;
    let sums = table.iter().copied().collect::<Option<Vec<f32>>>().ok_or("rows are missing")?;
    println!("received: {} rows, sum {}", sums.len(), sums.iter().sum::<f32>());
    if ended.success() { Ok(()) } else { Err("the sender failed".into()) }
}

#[allow(dead_code)]
fn send(address: &str) -> Result<(), Box<dyn Error>> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(address)?;
    let table = Array2::from_shape_fn((500, 64), |(row, _)| if row % 2 == 0 { 0.5 } else { 0.25 });
    let whole = Record::Rows { first: 0, of: 500, rows: table.clone().into() };
    let refused = datagram(0, &whole).err().ok_or("the whole table fitted a datagram")?;
    let pieces = pieces(&table)?;
    println!("sending the whole table fails: {refused}\nsending it in {} pieces", pieces.len());
    let records = [Record::Log("a table follows".into())].into_iter().chain(pieces);
    for (number, record) in (0..).zip(records.chain([Record::End])) {
        deliver(&socket, number, &datagram(number, &record)?)?;
    }
    Ok(())
}
