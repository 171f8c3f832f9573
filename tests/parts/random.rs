//! Random values and options: parts of them give the same value back.

use std::collections::BTreeMap;

use ndarray::{Array2, ShapeBuilder as _};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use tenarc::Tensor;
use tenarc::archive::SaveOptions;

use super::support::{flat, received, sent, split};

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
enum Node {
    Number(i64),
    Text(String),
    Bytes(ByteBuf),
    Plain(Vec<u32>),
    Tensor(Tensor<Vec<i16>>),
    Matrix { matrix: Tensor<Array2<u32>> },
    Optional(Option<Box<Node>>),
    List(Vec<Node>),
    Map(BTreeMap<i32, Node>),
    Struct { first: Box<Node>, second: Box<Node> },
}

fn matrix() -> impl Strategy<Value = Array2<u32>> {
    (0..6usize, 0..6usize, any::<bool>(), any::<u32>()).prop_map(|(rows, columns, order, seed)| {
        Array2::from_shape_fn((rows, columns).set_f(order), |(a, b)| {
            seed.wrapping_add((a * 10 + b) as u32)
        })
    })
}

fn node() -> impl Strategy<Value = Node> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(Node::Number),
        ".{0,9}".prop_map(Node::Text),
        prop::collection::vec(any::<u8>(), 0..60).prop_map(|bytes| Node::Bytes(bytes.into())),
        (0..400usize, any::<u32>()).prop_map(|(len, number)| Node::Plain(vec![number; len])),
        prop::collection::vec(any::<i16>(), 0..30).prop_map(|numbers| Node::Tensor(numbers.into())),
        matrix().prop_map(|matrix| Node::Matrix { matrix: Tensor(matrix) }),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::option::of(inner.clone().prop_map(Box::new)).prop_map(Node::Optional),
            prop::collection::vec(inner.clone(), 0..5).prop_map(Node::List),
            prop::collection::btree_map(any::<i32>(), inner.clone(), 0..4).prop_map(Node::Map),
            (inner.clone(), inner).prop_map(|(first, second)| Node::Struct {
                first: first.into(),
                second: second.into()
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..Default::default() })]

    #[test]
    fn values_come_back(
        node in node(),
        alignment in 3..17u32,
        inline in 0..80usize,
        dedup in any::<bool>(),
        checksums in any::<bool>(),
        chosen in prop::option::of(any::<u64>()),
    ) {
        let options = SaveOptions::default()
            .with_alignment(1 << alignment)
            .with_inline_below(inline)
            .with_dedup(dedup)
            .with_checksums(checksums);
        let options = match chosen {
            // Any function of what it is told.
            Some(bits) => options.with_out_of_band(move |info| {
                bits >> ((info.byte_len() + info.path().len() as u64) % 64) & 1 == 1
            }),
            None => options,
        };
        let parts = split(&node, &options);
        prop_assert!(sent(&flat(&parts)) == parts);
        for (way, read) in received::<Node>(&parts) {
            match read {
                Ok(read) => prop_assert!(read == node, "{way}"),
                Err(error) => prop_assert!(false, "{way}: {error}"),
            }
        }
    }
}
