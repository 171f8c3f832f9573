//! How long it takes to load 200 tensors of 1 MiB from a server on this machine, each of whose answers takes 30 ms: as the
//! ranges themselves, and with tenarc. Run it with `--release --features http`.

#[path = "../tests/support/server.rs"]
mod server;

use std::collections::BTreeMap;
use std::future::Future;
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

#[tokio::main]
async fn main() -> Result<()> {
    let model: Model = (0..COUNT)
        .map(|n| (format!("w{n:03}"), Tensor(vec![n as f32; LEN as usize / 4])))
        .collect();
    let mut out = OArchive::new(Vec::new())?;
    out.save(&model)?;
    let bytes: Arc<[u8]> = out.finish()?.into();
    let places = Archive::new(&bytes[..])?.only()?.buffers().to_vec();
    let ranges: Vec<_> = places.iter().map(|(start, len)| *start..start + len).collect();
    let (url, _) = server::start(WAIT, BTreeMap::from([("/model.tenarc".to_owned(), bytes)]));

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

    let opened = shortest(5, || async {
        let loaded: Model = slow_store.archive("model.tenarc").await?.load().await?;
        assert_eq!(loaded.len(), COUNT);
        Ok(())
    });
    let opened = opened.await?;

    println!("{COUNT} tensors of {LEN} bytes, {WAIT:?} a request, in ms:");
    println!("  get_ranges of object_store   {together:7.1}");
    println!(
        "  tenarc                       {ours:7.1}  from opening to verified tensors, in two rounds of requests"
    );
    println!(
        "  tenarc, opened first         {opened:7.1}  its start is not asked for with its end"
    );
    println!("  tenarc, one request a tensor {alone:7.1}");
    Ok(())
}
