//! Sends structs with metadata and tensors to another process over TCP, which answers with messages.
//!
//! ```sh
//! cargo run --release --example tcp
//! ```
//!
//! [`Split`] writes the metadata, then each tensor directly from its memory. `Parts::read_from` reads
//! each tensor into new memory and verifies its checksum. It reads exactly the bytes of the value, so
//! anything may follow on the connection. The program starts itself a second time as the sender.

use std::env;
use std::error::Error;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};
use tenarc::parts::{Parts, Split};
use tenarc::{Deserializer, Tensor};

const TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Serialize)]
struct Frame {
    camera: String,
    number: u32,
    depth: Tensor<Array2<f32>>,
    mask: Tensor<Array2<u8>>,
}

/// The same fields, as views of the received buffers.
#[derive(Deserialize)]
struct FrameView<'a> {
    camera: &'a str,
    number: u32,
    #[serde(borrow)]
    depth: Tensor<ArrayView2<'a, f32>>,
    #[serde(borrow)]
    mask: Tensor<ArrayView2<'a, u8>>,
}

#[derive(Serialize, Deserialize, Debug)]
struct Answer {
    number: u32,
    /// The mean depth of the pixels where the mask is not 0.
    mean: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match &arguments[..] {
        [] => receive(),
        [address] => send(address),
        _ => Err("usage: tcp".into()),
    }
}

fn receive() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    let mut sender = Command::new(env::current_exe()?).arg(address).spawn()?;
    let answered = accept(&listener, &mut sender).and_then(|stream| answer(&stream));
    // The connection is closed by now, so the sender ends too.
    let ended = sender.wait()?;
    let frames = answered?;
    println!("{frames} frames received; the sender ended with {ended}");
    if ended.success() { Ok(()) } else { Err("the sender failed".into()) }
}

/// Waits for the sender to connect. Fails after a timeout, or if the sender has ended.
fn accept(listener: &TcpListener, sender: &mut Child) -> Result<TcpStream, Box<dyn Error>> {
    listener.set_nonblocking(true)?;
    let start = Instant::now();
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                return Ok(prepared(stream)?);
            }
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error.into()),
            Err(_) if start.elapsed() > TIMEOUT || sender.try_wait()?.is_some() => {
                let _ = sender.kill();
                return Err("the sender did not connect".into());
            }
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    }
}

fn prepared(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Answers frames until there are no more.
fn answer(stream: &TcpStream) -> Result<u32, Box<dyn Error>> {
    let mut frames = 0;
    loop {
        let parts = match Parts::read_from(stream) {
            Ok(parts) => parts,
            Err(error) if error.category() == tenarc::error::Category::Eof => return Ok(frames),
            Err(error) => return Err(error.into()),
        };
        let frame: FrameView = parts.view()?;
        let (rows, columns) = frame.depth.dim();
        println!("frame {} of {}: {rows} x {columns}", frame.number, frame.camera);
        tenarc::to_writer(stream, &Answer { number: frame.number, mean: mean(&frame) })?;
        frames += 1;
    }
}

#[allow(clippy::cast_precision_loss)] // numbers below 2^53
fn mean(frame: &FrameView) -> f64 {
    let seen = frame.depth.iter().zip(&*frame.mask.0).filter(|(_, mask)| **mask != 0);
    let (sum, count) = seen.fold((0.0, 0_u32), |(sum, n), (d, _)| (sum + f64::from(*d), n + 1));
    sum / f64::from(count)
}

fn send(address: &str) -> Result<(), Box<dyn Error>> {
    let stream = prepared(TcpStream::connect(address)?)?;
    let mut answers = Deserializer::from_reader(&stream).into_iter::<Answer>();
    for number in 0..3_u8 {
        let depth = Array2::from_shape_fn((480, 640), |(row, _)| {
            f32::from(number) + if row < 240 { 1.5 } else { 2.5 }
        });
        let mask = depth.mapv(|depth| u8::from(depth > 2.0));
        let camera = "left".into();
        let frame = Frame { camera, number: number.into(), depth: depth.into(), mask: mask.into() };
        Split::new(&frame)?.write_to(&stream)?;
        let answer = answers.next().ok_or("no answer")??;
        println!("answered: {answer:?}");
        if answer.number != frame.number {
            return Err("received the answer to another frame".into());
        }
    }
    Ok(())
}
