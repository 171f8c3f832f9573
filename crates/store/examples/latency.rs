//! How long it takes to load 200 tensors of 1 MiB from a server on this machine, each of whose answers takes 30 ms: as the
//! ranges themselves, and with tenarc. Run it with `--release --features http`.

use std::collections::BTreeMap;
use std::future::Future;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use object_store::http::HttpBuilder;
use object_store::path::Path;
use object_store::{ClientOptions, ObjectStore};
use tenarc::io::Requests;
use tenarc::{Archive, OArchive, Tensor};
use tenarc_store::{Result, Store};

const COUNT: usize = 200;
const LEN: u64 = 1 << 20;
const WAIT: Duration = Duration::from_millis(30);

type Model = BTreeMap<String, Tensor<Vec<f32>>>;

/// The shortest time of some rounds, in milliseconds.
async fn shortest<F: Future<Output = Result<()>>>(
    rounds: usize,
    work: impl Fn() -> F,
) -> Result<f64> {
    let mut shortest = f64::MAX;
    for _ in 0..rounds {
        let started = Instant::now();
        work().await?;
        shortest = shortest.min(started.elapsed().as_secs_f64() * 1e3);
    }
    Ok(shortest)
}

/// Answers each request for a range of these bytes after a while.
fn serve(listener: &TcpListener, bytes: &'static [u8]) {
    for stream in listener.incoming().flatten() {
        std::thread::spawn(move || answer(stream, bytes));
    }
}

fn answer(mut stream: TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    loop {
        let mut range = 0..bytes.len();
        let mut is_first = true;
        loop {
            let Some(line) = lines.next() else { return Ok(()) };
            let line = line?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            is_first = false;
            let Some((from, to)) =
                line.strip_prefix("range: bytes=").and_then(|text| text.split_once('-'))
            else {
                continue;
            };
            range = match (from.parse::<usize>(), to.parse::<usize>()) {
                (Ok(from), Ok(to)) => from..(to + 1).min(bytes.len()),
                (Ok(from), _) => from..bytes.len(),
                (_, Ok(last)) => bytes.len().saturating_sub(last)..bytes.len(),
                _ => range,
            };
        }
        if is_first {
            return Ok(());
        }
        std::thread::sleep(WAIT);
        let (start, end, len, all) = (range.start, range.end - 1, range.len(), bytes.len());
        let date = "Sat, 28 Nov 2026 00:00:00 GMT";
        write!(
            stream,
            "HTTP/1.1 206 Partial Content\r\nContent-Length: {len}\r\nContent-Range: bytes {start}-{end}/{all}\r\n\
             ETag: \"1\"\r\nLast-Modified: {date}\r\n\r\n"
        )?;
        stream.write_all(&bytes[range])?;
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let model: Model = (0..COUNT)
        .map(|n| (format!("w{n:03}"), Tensor(vec![n as f32; LEN as usize / 4])))
        .collect();
    let mut out = OArchive::new(Vec::new())?;
    out.save(&model)?;
    let bytes: &'static [u8] = out.finish()?.leak();
    let places = Archive::new(bytes)?.only()?.buffers().to_vec();
    let ranges: Vec<_> = places.iter().map(|(start, len)| *start..start + len).collect();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port of this machine");
    let url = format!("http://{}", listener.local_addr().expect("its address"));
    std::thread::spawn(move || serve(&listener, bytes));

    let options = ClientOptions::new().with_allow_http(true);
    let slow =
        HttpBuilder::new().with_url(&url).with_client_options(options).build().expect("a client");
    let slow: Arc<dyn ObjectStore> = Arc::new(slow);
    let path = Path::from("model.tenarc");
    let slow_store = Store::new(slow.clone(), "");
    let ours = shortest(5, || async {
        let loaded: Model = slow_store.load("model.tenarc").await?;
        assert_eq!(loaded.len(), COUNT);
        Ok(())
    });
    let ours = ours.await?;
    let together = shortest(5, || async {
        assert_eq!(
            slow.get_ranges(&path, &ranges).await.map(|read| read.len()).unwrap_or_default(),
            COUNT
        );
        Ok(())
    });
    let together = together.await?;
    let one_by_one = Store::new(slow, "")
        .with_requests(Requests::server().with_threads(1).with_longest(LEN as usize));
    let alone = shortest(1, || async {
        let loaded: Model = one_by_one.load("model.tenarc").await?;
        assert_eq!(loaded.len(), COUNT);
        Ok(())
    });
    let alone = alone.await?;

    println!("{COUNT} tensors of {LEN} bytes, {WAIT:?} a request, in ms:");
    println!("  get_ranges of object_store   {together:7.1}");
    println!(
        "  tenarc                       {ours:7.1}  from opening to verified tensors, in three rounds of requests"
    );
    println!("  tenarc, one request a tensor {alone:7.1}");
    Ok(())
}
