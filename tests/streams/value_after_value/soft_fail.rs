//! Types that cannot be serialized: an error when the program is compiled, or, if asked for, when it runs.

use std::collections::{BTreeMap, HashMap};
use std::marker::PhantomData;

use serde::{Deserialize, Serialize};
use tenarc::ser::SoftFail;
use tenarc::{IArchive, OArchive, Tensor};

use super::quick;

/// Without `Serialize`.
#[derive(Debug, PartialEq, Default, Clone)]
struct Socket(u8);

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Node<T> {
    id: u32,
    payload: Option<T>,
}

/// Whether a type can be saved, decided by the compiler: the inherent function is preferred where its bound
/// holds.
struct Savable<T>(PhantomData<T>);

impl<T: Serialize> Savable<T> {
    #[allow(dead_code)] // Where it is not the one that is found.
    fn by_type() -> bool {
        true
    }
}

trait Otherwise {
    fn by_type() -> bool {
        false
    }
}

impl<T> Otherwise for Savable<T> {}

#[test]
fn what_cannot_be_serialized_is_refused_by_its_type() {
    assert!(Savable::<u8>::by_type());
    assert!(Savable::<Node<Tensor<Vec<f32>>>>::by_type());
    assert!(!Savable::<Socket>::by_type());
    assert!(!Savable::<Vec<Socket>>::by_type());
    assert!(!Savable::<Node<Socket>>::by_type());
    assert!(!Savable::<HashMap<u8, Option<Box<Socket>>>>::by_type());
    assert!(!Savable::<Tensor<Socket>>::by_type());
    assert!(!Savable::<Tensor<Vec<Socket>>>::by_type());
    assert!(Savable::<SoftFail<Socket>>::by_type());
    assert!(Savable::<Vec<Node<SoftFail<Socket>>>>::by_type());
}

/// Generic code, which asks of every payload that it can be saved.
fn save_all<T: Serialize>(nodes: &[Node<T>]) -> (Vec<u8>, Vec<String>) {
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    let mut errors = Vec::new();
    for node in nodes {
        if let Err(error) = out.save(node) {
            errors.push(error.to_string());
        }
    }
    (out.finish().unwrap(), errors)
}

#[test]
fn a_soft_fail_is_told_at_run_time_and_disturbs_nothing() {
    let node = |id: u32| {
        let payload = id.is_multiple_of(3).then_some(SoftFail(Socket(1)));
        Node { id, payload }
    };
    let nodes: Vec<_> = (1..=9).map(node).collect();
    let (bytes, errors) = save_all(&nodes);
    assert_eq!(errors.len(), 3);
    for error in errors {
        assert!(error.contains("soft_fail::Socket cannot be serialized"), "{error}");
    }
    let mut input = IArchive::new(&bytes[..]).unwrap();
    let ids = input.records::<Node<SoftFail<Socket>>>().map(|node| node.unwrap().id);
    assert_eq!(ids.collect::<Vec<_>>(), [1, 2, 4, 5, 7, 8]);

    let (bytes, errors) = save_all(&[Node { id: 1, payload: Some(Tensor(vec![0.5f32; 900])) }]);
    assert!(errors.is_empty());
    // Where there is one that must be loaded, that is an error, and the next value loads.
    let mut input = IArchive::new(&bytes[..]).unwrap();
    let error = input.load::<Node<SoftFail<Socket>>>().unwrap_err();
    assert!(error.to_string().contains("Socket cannot be deserialized"), "{error}");
    assert_eq!(error.path(), "payload");
    assert!(input.is_at_end().unwrap());
}

/// Behind large tensors too, before anything is written.
#[test]
fn a_soft_fail_leaves_a_stream_whole() {
    let large = Tensor(vec![0.5f32; 10_000]);
    let socket = SoftFail::from(Socket(2));
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    out.save("before").unwrap();
    let position = out.position();
    assert!(out.save(&(&large, &socket)).is_err());
    assert!(out.save(&BTreeMap::from([(1, &socket)])).is_err());
    assert!(out.save_as("named", &[&socket]).is_err());
    assert_eq!(out.position(), position);
    out.save(&large).unwrap();
    let bytes = out.finish().unwrap();
    let mut input = IArchive::new(&bytes[..]).unwrap();
    assert_eq!(input.load::<String>().unwrap(), "before");
    assert_eq!(input.load::<Tensor<Vec<f32>>>().unwrap(), large);

    assert!(tenarc::to_vec(&socket).is_err());
    assert!(tenarc::to_value(&socket).is_err());
    assert!(tenarc::to_parts(&socket).is_err());
    assert!(serde_json::to_string(&socket).is_err());
    assert!(serde_json::from_str::<SoftFail<Socket>>("1").is_err());
}

/// A type of which not every field is saved.
#[derive(Serialize, Deserialize, PartialEq, Debug, Default)]
struct Session {
    user: String,
    #[serde(skip)]
    socket: Socket,
}

#[test]
fn what_is_wrapped_is_used_as_it_is() {
    let mut socket = SoftFail(Socket(2));
    socket.0.0 += 1;
    assert_eq!((&socket.0, &*socket), (&Socket(3), &Socket(3)));
    assert_eq!(SoftFail::<Socket>::default().0, Socket(0));
    super::round_trip(&Session { user: "somebody".into(), socket: Socket(0) });
}
