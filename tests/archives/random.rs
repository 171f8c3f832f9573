//! Arbitrary values with tensors anywhere in them.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use tenarc::archive::SaveOptions;
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor, Tensor};

use super::support::{assert_sound, quick, read_everywhere, to_bytes};

#[derive(Serialize, Deserialize, Debug, Clone, PartialEq)]
struct Record {
    id: u64,
    name: Option<String>,
    weight: Tensor<DynTensor>,
    plain: Vec<f64>,
    #[serde(flatten)]
    rest: BTreeMap<String, Tensor<DynTensor>>,
}

#[derive(Serialize, Deserialize, Debug, Clone, PartialEq)]
#[serde(tag = "is")]
enum Internal {
    Empty,
    Holding { tensor: Tensor<DynTensor>, numbers: Vec<f32> },
}

#[derive(Serialize, Deserialize, Debug, Clone, PartialEq)]
enum Tree {
    Unit,
    Bool(bool),
    Signed(i64),
    Wide(i128),
    Huge(u128),
    Char(char),
    Text(String),
    Bytes(ByteBuf),
    Tensor(Tensor<DynTensor>),
    Integers(Vec<i32>),
    Singles(Vec<f32>),
    Doubles(Vec<Vec<f64>>),
    Record(Record),
    Internal(Internal),
    Pair(Box<Tree>, Option<Option<u16>>),
    Fields { left: Box<Tree>, right: Option<Box<Tree>> },
    List(Vec<Tree>),
    ByName(BTreeMap<String, Tree>),
    ByBytes(BTreeMap<ByteBuf, Tree>),
    ByTuple(BTreeMap<(bool, Option<u8>), Tree>),
}

fn tensor() -> impl Strategy<Value = Tensor<DynTensor>> {
    let names = ["bool", "u8", "i64", "bf16", "f32", "c64", "c128", "f8_e4m3", "f128", "other"];
    let dtype = prop::sample::select(names.to_vec()).prop_map(DType::from_name);
    let shape = vec(prop_oneof![9 => 1usize..6, 1 => Just(0)], 0..5);
    let order = prop_oneof![Just(Order::C), Just(Order::F)];
    (dtype, shape, order, any::<u8>()).prop_map(|(dtype, shape, order, seed)| {
        let count: usize = shape.iter().product();
        let len = count * dtype.bits().unwrap_or(8) / 8;
        let most = if dtype == DType::Bool { 2 } else { 256 };
        // Zero and infinity in any float, but no NaN, which equals nothing.
        let byte = |at: usize| ((at * 7 + usize::from(seed)) % most) as u8;
        let bytes = (0..len).map(|at| if most == 2 { byte(at) } else { byte(at) & 0x3f }).collect();
        Tensor(DynTensor::new(dtype, &shape, order, bytes).unwrap())
    })
}

fn single() -> impl Strategy<Value = f32> {
    any::<f32>().prop_filter("a NaN equals nothing", |value| !value.is_nan())
}

fn record() -> impl Strategy<Value = Record> {
    let plain = vec(any::<i32>().prop_map(f64::from), 0..300);
    // Names that none of the fields has.
    let rest = btree_map("x[a-z./~]{0,3}", tensor(), 0..3);
    let name = proptest::option::of(".{0,10}");
    (any::<u64>(), name, tensor(), plain, rest).prop_map(|(id, name, weight, plain, rest)| Record {
        id,
        name,
        weight,
        plain,
        rest,
    })
}

fn leaf() -> impl Strategy<Value = Tree> {
    let holding = (tensor(), vec(single(), 0..50))
        .prop_map(|(tensor, numbers)| Internal::Holding { tensor, numbers });
    prop_oneof![
        Just(Tree::Unit),
        any::<bool>().prop_map(Tree::Bool),
        any::<i64>().prop_map(Tree::Signed),
        any::<i128>().prop_map(Tree::Wide),
        any::<u128>().prop_map(Tree::Huge),
        any::<char>().prop_map(Tree::Char),
        ".{0,40}".prop_map(Tree::Text),
        (any::<u8>(), 0usize..5000).prop_map(|(b, len)| Tree::Bytes(ByteBuf::from(vec![b; len]))),
        tensor().prop_map(Tree::Tensor),
        (any::<i32>(), 0usize..700).prop_map(|(n, len)| Tree::Integers(vec![n; len])),
        (single(), 0usize..700).prop_map(|(n, len)| Tree::Singles(vec![n; len])),
        vec((any::<i16>(), 0usize..300), 0..4).prop_map(|lists| {
            Tree::Doubles(lists.into_iter().map(|(n, len)| vec![f64::from(n); len]).collect())
        }),
        record().prop_map(Tree::Record),
        Just(Tree::Internal(Internal::Empty)),
        holding.prop_map(Tree::Internal),
    ]
}

fn tree() -> impl Strategy<Value = Tree> {
    leaf().prop_recursive(5, 30, 5, |inner| {
        let boxed = inner.clone().prop_map(Box::new);
        let key = (any::<u8>(), prop_oneof![3 => 0usize..4, 1 => 2040usize..2060])
            .prop_map(|(byte, len)| ByteBuf::from(vec![byte; len]));
        prop_oneof![
            (boxed.clone(), any::<Option<Option<u16>>>())
                .prop_map(|(tree, id)| Tree::Pair(tree, id)),
            (boxed.clone(), proptest::option::of(boxed))
                .prop_map(|(left, right)| Tree::Fields { left, right }),
            vec(inner.clone(), 0..6).prop_map(Tree::List),
            btree_map(".{0,10}", inner.clone(), 0..5).prop_map(Tree::ByName),
            btree_map(key, inner.clone(), 0..4).prop_map(Tree::ByBytes),
            btree_map(any::<(bool, Option<u8>)>(), inner, 0..5).prop_map(Tree::ByTuple),
        ]
    })
}

fn options() -> impl Strategy<Value = (SaveOptions, u64)> {
    let below = prop::sample::select(vec![0, 1, 16, 100, 2048, usize::MAX]);
    (3u32..=16, below, any::<bool>(), any::<bool>()).prop_map(|(shift, below, sums, dedup)| {
        let options = quick().with_alignment(1 << shift).with_inline_below(below);
        (options.with_checksums(sums).with_dedup(dedup), 1 << shift)
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 96,
        ..ProptestConfig::default()
    })]

    #[test]
    fn values_come_back_in_every_way((options, alignment) in options(), value in tree()) {
        let bytes = to_bytes(&value, options);
        assert_sound(&bytes, alignment);
        for (way, read) in read_everywhere::<Tree>(&bytes) {
            match read {
                Ok(read) => prop_assert_eq!(&read, &value, "{}", way),
                Err(error) => prop_assert!(false, "{}: {}", way, error),
            }
        }
        let archive = tenarc::Archive::new(&bytes[..]).unwrap();
        for info in archive.tensors().unwrap() {
            let tensor = archive.only().unwrap().dyn_tensor(info.path()).unwrap();
            prop_assert_eq!((tensor.dtype(), tensor.shape()), (info.dtype(), info.shape()));
            prop_assert_eq!(tensor.le_bytes().len() as u64, info.byte_len());
        }
    }
}
