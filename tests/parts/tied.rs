//! Equal payloads as one buffer.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use tenarc::Tensor;
use tenarc::archive::SaveOptions;
use tenarc::parts::Parts;
use tenarc::tensor::SharedTensor;

use super::support::{received, split, weights};

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Tied {
    embed: Tensor<Vec<f32>>,
    plain: Vec<f32>,
    output: Tensor<Vec<f32>>,
    bytes: ByteBuf,
    other: Tensor<Vec<f32>>,
}

#[test]
fn tied_payloads_of_all_forms_are_sent_once_and_every_field_gets_its_own() {
    let numbers = weights(1000, 1).0;
    let value = Tied {
        embed: Tensor(numbers.clone()),
        plain: numbers.clone(),
        output: Tensor(numbers.clone()),
        bytes: ByteBuf::from(numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<_>>()),
        other: weights(1000, 2),
    };
    for checksums in [false, true] {
        let options = SaveOptions::default().with_dedup(true).with_checksums(checksums);
        let sent = split(&value, &options);
        assert_eq!(sent.1.len(), 2);
        for (way, read) in received::<Tied>(&sent) {
            assert!(read.unwrap() == value, "{way}");
        }
        let (metadata, buffers) = sent;
        let parts = Parts::new(metadata, buffers).unwrap();
        let paths: Vec<&str> = parts.info().buffers().iter().map(|info| info.path()).collect();
        assert_eq!(paths, ["embed", "other"]);
        let told: Vec<Option<u64>> =
            parts.tensors().unwrap().iter().map(tenarc::tensor::TensorInfo::buffer).collect();
        assert_eq!(told, [Some(0), Some(0), Some(0), Some(1)]);
    }
}

#[test]
fn tied_tensors_share_one_buffer() {
    let value = vec![weights(1000, 1), weights(1000, 2), weights(1000, 1)];
    let parts =
        tenarc::parts::to_parts_with(&value, SaveOptions::default().with_dedup(true)).unwrap();
    let (metadata, buffers) = parts.into_inner();
    let buffers: Vec<Arc<[u8]>> = buffers.iter().map(|buffer| Arc::from(&buffer[..])).collect();
    let starts: Vec<*const u8> = buffers.iter().map(|buffer| buffer.as_ptr()).collect();
    let parts = Parts::new(metadata, buffers).unwrap();
    let shared: Vec<Tensor<SharedTensor>> = parts.load_shared().unwrap();
    let found: Vec<*const u8> = shared.iter().map(|tensor| tensor.le_bytes().as_ptr()).collect();
    assert_eq!(found, [starts[0], starts[1], starts[0]]);
    assert!(shared.iter().all(|tensor| tensor.is_shared()));
    assert!(shared[0] == shared[2] && shared[0] != shared[1]);
    // They are written as tensors, from where they lie.
    assert!(tenarc::to_vec(&shared).unwrap() == tenarc::to_vec(&value).unwrap());
}
