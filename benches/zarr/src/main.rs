//! How long zarrs takes to read 200 arrays of 1 MiB from a server: an array each (`w000`, ...), and one array of 200 chunks (`all`).
//! `crates/store/examples/latency.rs` serves them, and starts this program with its address.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::try_join_all;
use object_store::ClientOptions;
use object_store::http::HttpBuilder;
use zarrs::array::Array;
use zarrs_object_store::AsyncObjectStore;

const COUNT: usize = 200;
const ROUNDS: usize = 9;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The elements of an array.
async fn read(
    store: &Arc<AsyncObjectStore<object_store::http::HttpStore>>,
    path: &str,
) -> Result<usize> {
    let array = Array::async_open(store.clone(), path).await?;
    let found: Vec<f32> = array.async_retrieve_array_subset(&array.subset_all()).await?;
    Ok(found.len())
}

/// The shortest and the median time of rounds.
fn print(what: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    println!("  {what:28} {:7.1} {:7.1}", times[0], times[times.len() / 2]);
}

#[tokio::main]
async fn main() -> Result<()> {
    let url = std::env::args().nth(1).ok_or("expected the address of a server")?;
    let options = ClientOptions::new().with_allow_http(true);
    let slow = HttpBuilder::new().with_url(url).with_client_options(options).build()?;
    let store = Arc::new(AsyncObjectStore::new(slow));
    let names: Vec<_> = (0..COUNT).map(|number| format!("/w{number:03}")).collect();
    let (mut each, mut one) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let found = try_join_all(names.iter().map(|name| read(&store, name))).await?;
        each.push(started.elapsed().as_secs_f64() * 1e3);
        assert_eq!(found.iter().sum::<usize>(), COUNT << 18);
        let started = Instant::now();
        assert_eq!(read(&store, "/all").await?, COUNT << 18);
        one.push(started.elapsed().as_secs_f64() * 1e3);
    }
    print("zarrs, an array a tensor", each);
    print("zarrs, one array of chunks", one);
    Ok(())
}
