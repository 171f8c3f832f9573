//! A server that turns texts into embeddings, and its clients, in one program.
//!
//! ```console
//! $ cargo run --release -p tenarc-tokio --example embedding_server
//! ```
//!
//! A request is a small struct, and goes as a message in a frame. An answer holds a tensor, and goes as parts: the server
//! writes the tensor from its own memory, and the client receives it into aligned memory. Both use one connection.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{SinkExt, StreamExt};
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};
use tenarc::Tensor;
use tenarc::tensor::SharedTensor;
use tenarc_tokio::{Framing, MessageCodec, PartsReader, PartsWriter};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::codec::{FramedRead, FramedWrite};

const DIMENSIONS: usize = 384;
/// More clients than these wait until another one has closed its connection.
const CLIENTS: usize = 100;
/// How long a client may take to send its next request, or to receive an answer.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Serialize, Deserialize)]
struct Request {
    id: u64,
    texts: Vec<String>,
}

#[derive(Serialize)]
struct Answer<'a> {
    id: u64,
    model: &'a str,
    embeddings: Tensor<Array2<f32>>,
}

/// The same fields for the client. The tensor stays in the memory that it was received into.
#[derive(Deserialize)]
struct Received {
    id: u64,
    model: String,
    embeddings: Tensor<SharedTensor>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        let free = Arc::new(Semaphore::new(CLIENTS));
        while let Ok(place) = free.clone().acquire_owned().await {
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                // One connection failed, or there are too many open files. Others may still be accepted.
                Err(error) => {
                    eprintln!("cannot accept: {error}");
                    sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            tokio::spawn(async move {
                if let Err(error) = serve(stream).await {
                    eprintln!("{peer}: {error}");
                }
                drop(place);
            });
        }
    });
    let clients = (0..4).map(|number| client(number, address));
    let received: usize = futures::future::try_join_all(clients).await?.into_iter().sum();
    println!("{received} embeddings were received by 4 clients");
    Ok(())
}

/// Answers the requests of one client, until it closes the connection or is too slow.
async fn serve(stream: TcpStream) -> Result<(), Box<dyn Error + Send + Sync>> {
    // Otherwise TCP holds back the end of an answer until the client has confirmed the rest.
    stream.set_nodelay(true)?;
    let (read, write) = stream.into_split();
    // Requests are small. Longer ones are refused before they are received.
    let framing = Framing::default().with_max_len(1 << 20);
    let mut requests = FramedRead::new(read, MessageCodec::<Request>::with_framing(framing));
    let mut answers = PartsWriter::new(write);
    while let Some(request) = timeout(PATIENCE, requests.next()).await? {
        let Request { id, texts } = request?;
        let answer = Answer { id, model: "trigrams", embeddings: embed(&texts).into() };
        timeout(PATIENCE, answers.send_value(&answer)).await??;
    }
    Ok(())
}

async fn client(number: u64, address: std::net::SocketAddr) -> Result<usize, Box<dyn Error>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (read, write) = stream.into_split();
    let mut requests = FramedWrite::new(write, MessageCodec::<()>::new());
    let mut answers = PartsReader::new(read);
    let started = Instant::now();
    let mut count = 0;
    for id in 0..5 {
        let texts: Vec<String> = (0..200).map(|i| format!("text {i} of request {id}")).collect();
        requests.send(&Request { id, texts }).await?;
        // If the time is over, the next call would go on receiving where this one was.
        let answer: Received =
            timeout(Duration::from_secs(10), answers.recv()).await??.ok_or("no answer")?;
        assert_eq!((answer.id, answer.model.as_str()), (id, "trigrams"));
        let [rows, columns] = *answer.embeddings.shape() else { return Err("no matrix".into()) };
        let matrix = ArrayView2::from_shape((rows, columns), answer.embeddings.as_slice::<f32>()?)?;
        let length = matrix.row(0).dot(&matrix.row(0)).sqrt();
        assert!((length - 1.0).abs() < 1e-5, "an embedding of length {length}");
        count += rows;
    }
    println!("client {number}: {count} embeddings in {:?}", started.elapsed());
    Ok(count)
}

/// Counts groups of three characters. A real server would run a model here.
fn embed(texts: &[String]) -> Array2<f32> {
    let mut embeddings = Array2::<f32>::zeros((texts.len(), DIMENSIONS));
    for (text, mut row) in texts.iter().zip(embeddings.rows_mut()) {
        for group in text.as_bytes().windows(3) {
            let hash = group.iter().fold(0usize, |hash, &byte| hash * 31 + usize::from(byte));
            row[hash % DIMENSIONS] += 1.0;
        }
        let length = row.dot(&row).sqrt();
        row.mapv_inplace(|x| x / length);
    }
    embeddings
}
