//! Sends a struct with a tensor to a server and back, over a Unix socket and over TCP: with this crate, and with bincode,
//! MessagePack and JSON. Prints the times as tables.
//!
//! ```console
//! $ cargo run --release -p tenarc-tokio --example compare_formats
//! ```
//!
//! The server decodes each value, encodes it again and sends it back. Client and server are two threads. The formats take
//! turns, and the median of the round trips counts. `raw bytes` is the tensor alone, without any format. With `--quick`,
//! few and small values are sent, to see that it works.

use std::error::Error;
use std::io;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use futures::{SinkExt, StreamExt};
use ndarray::Array2;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use tenarc::Tensor;
use tenarc::archive::SaveOptions;
use tenarc::tensor::{SharedTensor, ToTensor};
use tenarc_tokio::{Framing, MessageCodec, PartsReader, PartsWriter};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};
use tokio_util::codec::Framed;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const COLUMNS: usize = 64;

/// The name of the size, rows of 64 floats, and the number of round trips.
const SIZES: [(&str, usize, usize); 3] =
    [("1 KB", 4, 1001), ("100 KB", 400, 301), ("10 MB", 40_000, 15)];

/// What is sent. The tensor has another type for each format.
#[derive(Clone, Serialize, Deserialize)]
struct Batch<T> {
    id: u64,
    model: String,
    embeddings: T,
}

impl<T> Batch<T> {
    fn new(embeddings: T) -> Self {
        Self { id: 7, model: "trigrams".to_owned(), embeddings }
    }
}

fn floats(rows: usize) -> Vec<f32> {
    #[allow(clippy::cast_precision_loss)] // any numbers will do
    (0..rows * COLUMNS).map(|i| (i as f32 * 0.37).sin()).collect()
}

fn le_bytes(rows: usize) -> Vec<u8> {
    floats(rows).into_iter().flat_map(f32::to_le_bytes).collect()
}

/// A connection on which values are sent and received in some format.
trait Link: Send {
    type Value: Clone + Send;
    async fn send(&mut self, value: &Self::Value) -> Result<()>;
    /// The next value. `None` at the end.
    async fn recv(&mut self) -> Result<Option<Self::Value>>;
    /// The number of bytes or elements that came back, and the last one, to see that they are right.
    fn digest(value: &Self::Value) -> (usize, f32);
}

trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Duplex for S {}

type Stream = Box<dyn Duplex>;

fn last_of(bytes: &[u8]) -> (usize, f32) {
    let last = bytes.last_chunk().map_or(0.0, |last| f32::from_le_bytes(*last));
    (bytes.len() / size_of::<f32>(), last)
}

/// The tensor alone, in frames of a length and its bytes.
struct Raw(Stream);

impl Link for Raw {
    type Value = Vec<u8>;

    async fn send(&mut self, value: &Vec<u8>) -> Result<()> {
        self.0.write_u64_le(value.len() as u64).await?;
        self.0.write_all(value).await?;
        Ok(self.0.flush().await?)
    }

    async fn recv(&mut self) -> Result<Option<Vec<u8>>> {
        let len = match self.0.read_u64_le().await {
            Ok(len) => usize::try_from(len)?,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut value = vec![0; len];
        self.0.read_exact(&mut value).await?;
        Ok(Some(value))
    }

    fn digest(value: &Vec<u8>) -> (usize, f32) {
        last_of(value)
    }
}

/// Parts, with or without checksums.
struct Parts {
    stream: Stream,
    checksums: bool,
}

impl Link for Parts {
    type Value = Batch<Tensor<SharedTensor>>;

    async fn send(&mut self, value: &Self::Value) -> Result<()> {
        let options = SaveOptions::default().with_checksums(self.checksums);
        Ok(PartsWriter::new(&mut self.stream).send_value_with(value, options).await?)
    }

    async fn recv(&mut self) -> Result<Option<Self::Value>> {
        Ok(PartsReader::new(&mut self.stream).recv().await?)
    }

    fn digest(value: &Self::Value) -> (usize, f32) {
        last_of(value.embeddings.as_le_bytes().unwrap_or_default())
    }
}

/// Messages in frames.
struct Messages(Framed<Stream, MessageCodec<Batch<Tensor<Array2<f32>>>>>);

impl Link for Messages {
    type Value = Batch<Tensor<Array2<f32>>>;

    async fn send(&mut self, value: &Self::Value) -> Result<()> {
        Ok(self.0.send(value).await?)
    }

    async fn recv(&mut self) -> Result<Option<Self::Value>> {
        Ok(self.0.next().await.transpose()?)
    }

    fn digest(value: &Self::Value) -> (usize, f32) {
        (value.embeddings.len(), value.embeddings.last().copied().unwrap_or_default())
    }
}

/// Another format of serde, in frames of a length and the encoded value.
struct Serde<T> {
    raw: Raw,
    encode: fn(&Batch<T>) -> Result<Vec<u8>>,
    decode: fn(&[u8]) -> Result<Batch<T>>,
}

impl<T: Payload> Link for Serde<T> {
    type Value = Batch<T>;

    async fn send(&mut self, value: &Batch<T>) -> Result<()> {
        self.raw.send(&(self.encode)(value)?).await
    }

    async fn recv(&mut self) -> Result<Option<Batch<T>>> {
        self.raw.recv().await?.map(|bytes| (self.decode)(&bytes)).transpose()
    }

    fn digest(value: &Batch<T>) -> (usize, f32) {
        value.embeddings.digest()
    }
}

/// The tensor in another format: numbers, or bytes that were cast by hand.
trait Payload: Clone + Send + Serialize + DeserializeOwned {
    fn digest(&self) -> (usize, f32);
}

impl Payload for Vec<f32> {
    fn digest(&self) -> (usize, f32) {
        (self.len(), self.last().copied().unwrap_or_default())
    }
}

impl Payload for ByteBuf {
    fn digest(&self) -> (usize, f32) {
        last_of(self)
    }
}

/// A round trip.
type Round = dyn FnMut(&Runtime) -> Result<Duration>;

/// One format over one kind of connection.
struct Peer {
    name: &'static str,
    round: Box<Round>,
    server: Option<JoinHandle<Result<()>>>,
    times: Vec<Duration>,
}

impl Peer {
    fn new<L: Link + 'static>(
        name: &'static str,
        transport: Transport,
        runtime: &Runtime,
        link: impl Fn(Stream) -> L + Send + Copy + 'static,
        value: L::Value,
    ) -> Result<Self>
    where
        L::Value: 'static,
    {
        let (near, far) = transport.pair()?;
        let server = thread::spawn(move || {
            let runtime = runtime_of_thread()?;
            runtime.block_on(async {
                let mut link = link(far.into_tokio()?);
                while let Some(value) = link.recv().await? {
                    link.send(&value).await?;
                }
                Ok(())
            })
        });
        let mut near = link(runtime.block_on(async { near.into_tokio() })?);
        let round = move |runtime: &Runtime| {
            let start = Instant::now();
            let back = runtime.block_on(async {
                near.send(&value).await?;
                near.recv().await
            })?;
            let took = start.elapsed();
            let back = back.ok_or("the server has closed the connection")?;
            if L::digest(&back) == L::digest(&value) {
                Ok(took)
            } else {
                Err("another value came back".into())
            }
        };
        Ok(Self { name, round: Box::new(round), server: Some(server), times: Vec::new() })
    }

    fn median(&mut self) -> f64 {
        self.times.sort();
        self.times[self.times.len() / 2].as_secs_f64()
    }

    /// Closes the connection, and waits for the server.
    fn end(mut self) -> Result<()> {
        drop(self.round);
        let server = self.server.take().ok_or("no server")?;
        server.join().map_err(|_| "the server panicked")?
    }
}

fn runtime_of_thread() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_io().build()?)
}

#[derive(Clone, Copy)]
enum Transport {
    #[cfg(unix)]
    Unix,
    Tcp,
}

/// One end of a connection, for a runtime in another thread.
enum End {
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixStream),
    Tcp(std::net::TcpStream),
}

impl Transport {
    fn pair(self) -> io::Result<(End, End)> {
        match self {
            #[cfg(unix)]
            Self::Unix => {
                let (near, far) = std::os::unix::net::UnixStream::pair()?;
                Ok((End::Unix(near), End::Unix(far)))
            }
            Self::Tcp => {
                let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
                let near = std::net::TcpStream::connect(listener.local_addr()?)?;
                Ok((End::Tcp(near), End::Tcp(listener.accept()?.0)))
            }
        }
    }
}

impl End {
    fn into_tokio(self) -> io::Result<Stream> {
        match self {
            #[cfg(unix)]
            Self::Unix(stream) => {
                stream.set_nonblocking(true)?;
                Ok(Box::new(tokio::net::UnixStream::from_std(stream)?))
            }
            Self::Tcp(stream) => {
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                Ok(Box::new(tokio::net::TcpStream::from_std(stream)?))
            }
        }
    }
}

fn peers(transport: Transport, rows: usize, runtime: &Runtime) -> Result<Vec<Peer>> {
    let array = Tensor(Array2::from_shape_vec((rows, COLUMNS), floats(rows))?);
    // The tensor in memory of its own, as it was received.
    let shared: Batch<Tensor<SharedTensor>> =
        tenarc::to_parts(&Batch::new(&array))?.into_shared().load_shared()?;
    let messages = |stream| {
        let framing = Framing::default().with_max_len(1 << 30);
        Messages(Framed::new(stream, MessageCodec::with_framing(framing)))
    };
    let bincode = |stream| Serde::<Vec<f32>> {
        raw: Raw(stream),
        encode: |value| Ok(bincode::serialize(value)?),
        decode: |bytes| Ok(bincode::deserialize(bytes)?),
    };
    let bincode_bytes = |stream| Serde::<ByteBuf> {
        raw: Raw(stream),
        encode: |value| Ok(bincode::serialize(value)?),
        decode: |bytes| Ok(bincode::deserialize(bytes)?),
    };
    let rmp = |stream| Serde::<Vec<f32>> {
        raw: Raw(stream),
        encode: |value| Ok(rmp_serde::to_vec(value)?),
        decode: |bytes| Ok(rmp_serde::from_slice(bytes)?),
    };
    let rmp_bytes = |stream| Serde::<ByteBuf> {
        raw: Raw(stream),
        encode: |value| Ok(rmp_serde::to_vec(value)?),
        decode: |bytes| Ok(rmp_serde::from_slice(bytes)?),
    };
    let json = |stream| Serde::<Vec<f32>> {
        raw: Raw(stream),
        encode: |value| Ok(serde_json::to_vec(value)?),
        decode: |bytes| Ok(serde_json::from_slice(bytes)?),
    };
    let (numbers, bytes) = (Batch::new(floats(rows)), Batch::new(ByteBuf::from(le_bytes(rows))));
    let unverified = |stream| Parts { stream, checksums: false };
    let verified = |stream| Parts { stream, checksums: true };
    Ok(vec![
        Peer::new("raw bytes", transport, runtime, Raw, le_bytes(rows))?,
        Peer::new("parts, no checksums", transport, runtime, unverified, shared.clone())?,
        Peer::new("parts", transport, runtime, verified, shared)?,
        Peer::new("messages", transport, runtime, messages, Batch::new(array))?,
        Peer::new("bincode 1, bytes", transport, runtime, bincode_bytes, bytes.clone())?,
        Peer::new("bincode 1", transport, runtime, bincode, numbers.clone())?,
        Peer::new("rmp-serde, bytes", transport, runtime, rmp_bytes, bytes)?,
        Peer::new("rmp-serde", transport, runtime, rmp, numbers.clone())?,
        Peer::new("serde_json", transport, runtime, json, numbers)?,
    ])
}

fn main() -> Result<()> {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let sizes = if quick { &SIZES[..2] } else { &SIZES };
    let runtime = runtime_of_thread()?;
    let transports = [
        #[cfg(unix)]
        ("Unix socket", Transport::Unix),
        ("TCP", Transport::Tcp),
    ];
    for (name, transport) in transports {
        let mut columns: Vec<Vec<(&str, f64)>> = Vec::new();
        for &(_, rows, rounds) in sizes {
            let mut peers = peers(transport, rows, &runtime)?;
            let rounds = if quick { 1 } else { rounds };
            // The first round is not counted.
            for number in 0..=rounds {
                for peer in &mut peers {
                    let took = (peer.round)(&runtime)?;
                    peer.times.extend((number > 0).then_some(took));
                }
            }
            columns.push(peers.iter_mut().map(|peer| (peer.name, peer.median())).collect());
            peers.into_iter().try_for_each(Peer::end)?;
        }
        let heads: Vec<_> = sizes.iter().map(|(size, ..)| format!(" {size} | |")).collect();
        println!("| {name} |{}", heads.concat());
        println!("|---|{}", "---:|---:|".repeat(sizes.len()));
        for row in 0..columns[0].len() {
            print!("| {} |", columns[0][row].0);
            for column in &columns {
                let (time, raw) = (column[row].1, column[0].1);
                let shown = if time < 1e-3 {
                    format!("{:.0} µs", time * 1e6)
                } else {
                    format!("{:.1} ms", time * 1e3)
                };
                print!(" {shown} | {:.2} × |", time / raw);
            }
            println!();
        }
        println!();
    }
    Ok(())
}
