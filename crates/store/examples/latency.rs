//! How long it takes to load 200 tensors of 1 MiB from a server on this machine, each of whose answers takes 30 ms: as the
//! ranges themselves, and with tenarc. Run it with `--release --features http`.
//!
//! Each argument is a program that is then started with the address of the server: `benches/zarr` and `benches/python/from_store.py`
//! measure others. For them, the server has the tensors as `model.safetensors`, as arrays of zarr `w000` to `w199`, and as the chunks
//! of one array `all`.

#[path = "../tests/support/server.rs"]
mod server;

use std::collections::BTreeMap;
use std::future::Future;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use object_store::http::HttpBuilder;
use object_store::path::Path;
use object_store::{ClientOptions, ObjectStore};
use tenarc::io::Requests;
use tenarc::{Archive, OArchive, Tensor};
use tenarc_store::{Result, Store};

const COUNT: usize = 200;
const LEN: usize = 1 << 20;
const ROUNDS: usize = 9;
const WAIT: Duration = Duration::from_millis(30);

type Model = BTreeMap<String, Tensor<Vec<f32>>>;

/// How long it takes to get all tensors, in milliseconds. The work returns how many it has got.
async fn time(work: impl Future<Output = Result<usize>>) -> Result<f64> {
    let started = Instant::now();
    assert_eq!(work.await?, COUNT);
    Ok(started.elapsed().as_secs_f64() * 1e3)
}

async fn loaded(store: &Store) -> Result<usize> {
    Ok(store.load::<Model>("model.tenarc").await?.len())
}

/// The same tensors as other formats have them.
fn add_others(objects: &mut BTreeMap<String, Arc<[u8]>>) {
    let one: Arc<[u8]> = 0.5f32.to_le_bytes().repeat(LEN / 4).into();
    let about = |shape: usize| {
        format!(
            r#"{{"zarr_format":3,"node_type":"array","shape":[{shape}],"data_type":"float32","chunk_grid":{{"name":"regular",
            "configuration":{{"chunk_shape":[{}]}}}},"chunk_key_encoding":{{"name":"default","configuration":{{"separator":"/"}}}},
            "fill_value":0.0,"codecs":[{{"name":"bytes","configuration":{{"endian":"little"}}}}]}}"#,
            LEN / 4
        )
        .into_bytes()
    };
    let mut header = Vec::new();
    for number in 0..COUNT {
        let (start, end) = (number * LEN, (number + 1) * LEN);
        header.push(format!(
            r#""w{number:03}":{{"dtype":"F32","shape":[{}],"data_offsets":[{start},{end}]}}"#,
            LEN / 4
        ));
        objects.insert(format!("/w{number:03}/zarr.json"), about(LEN / 4).into());
        objects.insert(format!("/w{number:03}/c/0"), one.clone());
        objects.insert(format!("/all/c/{number}"), one.clone());
    }
    objects.insert("/all/zarr.json".to_owned(), about(COUNT * LEN / 4).into());
    let header = format!("{{{}}}", header.join(",")).into_bytes();
    let mut safetensors = (header.len() as u64).to_le_bytes().to_vec();
    safetensors.extend(header);
    (0..COUNT).for_each(|_| safetensors.extend_from_slice(&one));
    objects.insert("/model.safetensors".to_owned(), safetensors.into());
}

/// The shortest and the median time of rounds.
fn summary(times: &mut [f64]) -> String {
    times.sort_by(f64::total_cmp);
    format!("{:7.1} {:7.1}", times[0], times[times.len() / 2])
}

#[tokio::main]
async fn main() -> Result<()> {
    let model: Model =
        (0..COUNT).map(|n| (format!("w{n:03}"), Tensor(vec![0.5; LEN / 4]))).collect();
    let mut out = OArchive::new(Vec::new())?;
    out.save(&model)?;
    let bytes: Arc<[u8]> = out.finish()?.into();
    let places = Archive::new(&bytes[..])?.only()?.buffers().to_vec();
    let ranges: Vec<_> = places.iter().map(|(start, len)| *start..start + len).collect();
    let mut objects = BTreeMap::from([("/model.tenarc".to_owned(), bytes)]);
    let programs: Vec<_> = std::env::args().skip(1).collect();
    if !programs.is_empty() {
        add_others(&mut objects);
    }
    let (url, _) = server::start(WAIT, objects);

    let options = ClientOptions::new().with_allow_http(true);
    let slow =
        HttpBuilder::new().with_url(&url).with_client_options(options).build().expect("a client");
    let slow: Arc<dyn ObjectStore> = Arc::new(slow);
    let path = Path::from("model.tenarc");
    let slow_store = Store::new(slow.clone(), "");
    let one_by_one =
        slow_store.clone().with_requests(Requests::server().with_threads(1).with_longest(LEN));

    let (mut together, mut ours) = (Vec::new(), Vec::new());
    // By turns, because other programs may be running.
    for _ in 0..ROUNDS {
        let ranges = async {
            Ok(slow.get_ranges(&path, &ranges).await.expect("the ranges of a server").len())
        };
        together.push(time(ranges).await?);
        ours.push(time(loaded(&slow_store)).await?);
    }
    let alone = time(loaded(&one_by_one)).await?;

    println!(
        "{COUNT} tensors of {LEN} bytes, {WAIT:?} a request, in ms, the shortest and the median of {ROUNDS}:"
    );
    println!("  get_ranges of object_store   {}", summary(&mut together));
    println!("  tenarc, to verified tensors  {}", summary(&mut ours));
    println!("  one request a tensor         {alone:7.1}");
    for program in programs {
        let mut words = program.split_whitespace();
        let program = words.next().expect("the name of a program");
        let status = Command::new(program).args(words).arg(&url).status().expect("a program");
        assert!(status.success(), "{program}: {status}");
    }
    Ok(())
}
