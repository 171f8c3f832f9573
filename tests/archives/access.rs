//! Opening an archive and reading parts of it reads only the bytes that are needed. The tests count them.

use std::num::NonZeroUsize;

use ndarray::{Array1, Array2};
use serde::{Deserialize, Serialize};
use tenarc::error::Category;
use tenarc::{Archive, OArchive, Tensor};

use super::support::{Counted, Layer, model, quick, to_bytes, weights};

fn opened(bytes: Vec<u8>) -> Archive<Counted> {
    Archive::new(Counted::new(bytes)).unwrap()
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Big {
    config: Config,
    layers: Vec<Layer>,
    table: Vec<f64>,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Config {
    name: String,
    rates: Vec<f32>,
}

fn big() -> Big {
    let layer = |n| Layer { weight: weights(100_000, n), bias: weights(1000, n) };
    Big {
        config: Config { name: "big".into(), rates: vec![0.5; 3] },
        layers: (0..10).map(layer).collect(),
        table: vec![0.5; 50_000],
    }
}

#[test]
fn opening_reads_the_last_bytes_only() {
    let archive = opened(to_bytes(&big(), quick()));
    let (calls, read) = archive.source().log.totals();
    assert_eq!((calls, read), (1, 4096));
    let len = archive.byte_len();
    // Nor does the size of the archive matter, or the number of its segments.
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    for n in 0..3000 {
        out.save_as(&format!("n{n}"), &(n, weights(1000, n))).unwrap();
    }
    let archive = opened(out.finish().unwrap());
    let (calls, read) = archive.source().log.totals();
    assert!(archive.byte_len() > len);
    assert_eq!((calls, read), (1, 4096));
}

#[test]
fn a_tensor_costs_the_header_itself_and_the_checksums() {
    let big = big();
    let archive = opened(to_bytes(&big, quick()));
    archive.source().log.take();
    let layer = big.layers[7].weight.0.clone();
    let tensor: Array1<f32> = archive.tensor("layers.7.weight").unwrap();
    assert_eq!(tensor.to_vec(), layer);
    let (calls, read) = archive.source().log.totals();
    assert!(calls <= 6, "{calls} reads");
    let header = read - 400_000;
    assert!(header < 2000, "{header} bytes beside the tensor");
    // Of the header nothing is read again, nor of the checksums.
    let tensor: Array1<f32> = archive.tensor("layers.8.weight").unwrap();
    assert_eq!(tensor.to_vec(), big.layers[8].weight.0);
    assert_eq!(archive.source().log.totals().1, 400_000);
    // Without checksums, not even those.
    let unchecked = tenarc::de::DecodeOptions::default().with_checksums(false);
    let archive = opened(to_bytes(&big, quick())).with_options(unchecked);
    archive.tensors().unwrap();
    archive.source().log.take();
    archive.tensor::<Array1<f32>>("layers.7.weight").unwrap();
    assert_eq!(archive.source().log.totals().1, 400_000);
}

#[test]
fn a_subtree_reads_only_what_is_inside() {
    let big = big();
    let archive = opened(to_bytes(&big, quick()));
    archive.source().log.take();
    assert_eq!(archive.get::<Config>("config").unwrap(), big.config);
    let (_, read) = archive.source().log.totals();
    assert!(read < 2000, "{read} bytes");
    assert_eq!(archive.get::<Layer>("layers.3").unwrap(), big.layers[3]);
    let (_, read) = archive.source().log.totals();
    assert!((404_000..405_000).contains(&read), "{read} bytes");
    assert_eq!(archive.get::<String>("config.name").unwrap(), "big");
    assert_eq!(archive.get::<f32>("config.rates.1").unwrap(), 0.5);
    assert_eq!(archive.only().unwrap().keys("layers").unwrap().len(), 10);
    assert_eq!(archive.tensors().unwrap().len(), 21);
    assert_eq!(archive.source().log.totals(), (0, 0));
    // Only the fields that the type knows.
    #[derive(Deserialize)]
    struct Biases {
        layers: Vec<Bias>,
    }
    #[derive(Deserialize)]
    struct Bias {
        bias: Tensor<Vec<f32>>,
    }
    let biases: Biases = archive.load().unwrap();
    assert!(biases.layers.iter().zip(&big.layers).all(|(a, b)| a.bias == b.bias));
    let (_, read) = archive.source().log.totals();
    assert_eq!(read, 10 * 4000);
}

#[test]
fn the_whole_value_is_read_once() {
    let archive = opened(to_bytes(&big(), quick()));
    assert_eq!(archive.load::<Big>().unwrap(), big());
    let (calls, read) = archive.source().log.totals();
    // The last bytes are read twice.
    assert!(read <= archive.byte_len() + 4096, "{read} bytes of {}", archive.byte_len());
    assert!(calls < 100, "{calls} reads");
}

#[test]
fn the_last_of_many_segments_costs_what_the_first_does() {
    let count = 20_000u32;
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    for n in 0..count {
        out.save_as(&format!("n{n}"), &n).unwrap();
    }
    let archive = opened(out.finish().unwrap());
    archive.source().log.take();
    for index in [0, 1, 63, 64, 4095, 4096, 10_000, count - 65, count - 2, count - 1] {
        let found: u32 = archive.segment(index.into()).unwrap().load().unwrap();
        assert_eq!(found, index);
        let (calls, read) = archive.source().log.totals();
        assert!(calls <= 8 && read < 6000, "{index}: {calls} reads of {read} bytes");
    }
    let last = archive.named(&format!("n{}", count - 1)).unwrap();
    assert_eq!(last.load::<u32>().unwrap(), count - 1);
    let (calls, _) = archive.source().log.totals();
    assert!(calls <= 4, "{calls} reads");
    let error = archive.segment(count.into()).unwrap_err();
    assert_eq!(error.category(), Category::NotFound, "{error}");
    assert!(archive.named("n").is_err());
}

#[test]
fn many_tensors_by_several_threads() {
    let big = big();
    let archive = opened(to_bytes(&big, quick()));
    let paths: Vec<String> = (0..10).map(|n| format!("layers.{n}.weight")).collect();
    for threads in [1, 2, 7, 50] {
        let tensors = archive
            .only()
            .unwrap()
            .dyn_tensors(&paths, NonZeroUsize::new(threads).unwrap())
            .unwrap();
        assert_eq!(tensors.len(), 10);
        for (tensor, layer) in tensors.iter().zip(&big.layers) {
            assert_eq!(tensor.view::<f32>().unwrap().as_slice().unwrap(), &layer.weight.0[..]);
        }
    }
    let none = archive.only().unwrap().dyn_tensors::<&str>(&[], NonZeroUsize::MIN).unwrap();
    assert!(none.is_empty());
    // The error is that of the first path that fails.
    let paths = ["layers.0.weight", "layers.99.weight", "no", "layers.1.weight"];
    for threads in [1, 2, 4] {
        let error = archive
            .only()
            .unwrap()
            .dyn_tensors(&paths, NonZeroUsize::new(threads).unwrap())
            .unwrap_err();
        assert!(error.to_string().contains("99"), "{error}");
    }
}

#[test]
fn several_values_are_chosen_from() {
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    out.save_as("a", &model()).unwrap().save_as("b", &(1, 2)).unwrap();
    out.save_as("a", &"the later").unwrap();
    let archive = opened(out.finish().unwrap());
    let error = archive.load::<u8>().unwrap_err();
    assert_eq!(error.category(), Category::NotFound);
    assert!(error.to_string().contains("3 segments"), "{error}");
    assert!(archive.get::<u8>("b").is_err());
    assert_eq!(archive.named("a").unwrap().load::<String>().unwrap(), "the later");
    let names: Vec<_> =
        archive.segments().map(|segment| segment.unwrap().name().map(str::to_owned)).collect();
    assert_eq!(names, [Some("a".into()), Some("b".into()), Some("a".into())]);
    let first = archive.segment(0).unwrap();
    assert_eq!(first.load::<super::support::Model>().unwrap(), model());
    assert_eq!(first.dyn_tensor("layers.0.weight").unwrap().shape(), [3000]);
    let second = archive.segment(1).unwrap();
    assert_eq!(second.get::<u8>("1").unwrap(), 2);
    assert!(second.buffers().is_empty());
}

#[test]
fn what_is_not_there_is_an_error_that_names_it() {
    let archive = opened(to_bytes(&big(), quick()));
    for path in ["layers.10", "layers.x", "config.name.x", "nothing", "/layers/10", ".", "layers."]
    {
        let error = archive.get::<tenarc::Value>(path).unwrap_err();
        assert_eq!(error.category(), Category::NotFound, "{path}: {error}");
        assert!(error.to_string().contains(path), "{path}: {error}");
    }
    let error = archive.tensor::<Array1<f64>>("layers.0.weight").unwrap_err();
    assert_eq!(error.path(), "layers.0.weight", "{error}");
    let error = archive.tensor::<Array2<f32>>("/layers/0/weight").unwrap_err();
    assert_eq!(error.category(), Category::Mismatch, "{error}");
    assert!(archive.tensor::<Array1<f32>>("config").is_err());
    assert!(archive.view::<Big>().is_err(), "what is not in memory cannot be viewed");
}

#[test]
fn every_path_listed_leads_to_its_tensor() {
    use std::collections::BTreeMap;

    type Map<T> = BTreeMap<String, T>;
    let leaf = |n: usize| tenarc::to_value(&weights(5, n)).unwrap();
    let map = |entries: Vec<(&str, tenarc::Value)>| {
        let entries: Map<_> =
            entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        tenarc::to_value(&entries).unwrap()
    };
    let values = [
        map(vec![("a.b", leaf(1)), ("a", map(vec![("b", leaf(2))]))]),
        map(vec![("x", map(vec![("a.b", leaf(1)), ("a", map(vec![("b", leaf(2))]))]))]),
        map(vec![("x", map(vec![("0.b", leaf(1)), ("0", map(vec![("b", leaf(2))]))]))]),
        map(vec![("x", tenarc::Value::Array(vec![map(vec![("a.b", leaf(1)), ("a", leaf(2))])]))]),
        map(vec![("a.b", map(vec![("c", leaf(1))])), ("a", map(vec![("b.c", leaf(2))]))]),
        map(vec![("", leaf(1)), ("/", leaf(2)), ("~", leaf(3)), (".", leaf(4)), ("~1", leaf(5))]),
        map(vec![("a", map(vec![("", leaf(1)), ("/", leaf(2)), ("~", leaf(3))]))]),
        map(vec![("/a", leaf(1)), ("a", leaf(2)), ("a.", leaf(3)), (".a", leaf(4))]),
        map(vec![("", map(vec![("", leaf(1)), ("a", leaf(2))])), ("a", leaf(3))]),
    ];
    for value in values {
        let archive = opened(to_bytes(&value, quick().with_inline_below(0)));
        let tensors = archive.tensors().unwrap();
        for (at, info) in tensors.iter().enumerate() {
            let found = archive.only().unwrap().dyn_tensor(info.path());
            let found = found.unwrap_or_else(|error| panic!("{value:?}: {error}"));
            // Which of them it is shows where it stands.
            let buffer = archive.segment(0).unwrap().buffers()[at];
            let expected = &archive.source().stored()[buffer.0 as usize..][..buffer.1 as usize];
            assert_eq!(found.le_bytes(), expected, "{}", info.path());
        }
    }
}

#[test]
fn what_stands_under_an_optional_key_has_a_path() {
    use std::collections::BTreeMap;

    let map: BTreeMap<Option<u8>, Tensor<Vec<f32>>> =
        [(None, weights(900, 1)), (Some(3), weights(900, 2))].into();
    let archive = opened(to_bytes(&map, quick()));
    archive.verify().unwrap();
    let tensors = archive.tensors().unwrap();
    assert_eq!(
        tensors.iter().map(tenarc::tensor::TensorInfo::path).collect::<Vec<_>>(),
        ["null", "3"]
    );
    assert_eq!(archive.only().unwrap().keys("").unwrap(), ["null", "3"]);
    assert_eq!(archive.load::<BTreeMap<Option<u8>, Tensor<Vec<f32>>>>().unwrap(), map);
}
