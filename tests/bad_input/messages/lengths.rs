//! Group B: claimed lengths that the input does not have.

use std::collections::HashSet;
use std::io::Read;
use std::marker::PhantomData;

use ndarray::{Array1, Array2, ArrayD};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_bytes::ByteBuf;
use tenarc::de::{DecodeOptions, Limits};
use tenarc::error::Category::{Data, Eof, Limit};
use tenarc::value::RawValue;
use tenarc::{DynTensor, Tensor, Value};

use super::support::{
    ANY, MIB, Nest, Source, TYPED, accepts, head, outcomes, quickly, read, refused, refused_by,
    refuses, tensor, unhex, wide,
};
use tenarc_test_support::alloc::peak_of;

const HUGE: [u64; 9] = [
    1 << 33,
    (1 << 34) - 1,
    1 << 40,
    1 << 60,
    (1 << 62) + 1,
    (1 << 63) - 1,
    1 << 63,
    u64::MAX - 8,
    u64::MAX,
];

// 9
#[test]
fn huge_lengths_do_not_allocate() {
    for len in HUGE {
        for major in 2..=5 {
            let bare = wide(major, len);
            refused(&bare, &[Eof, Limit]);
            refused(&[&bare[..], &[0; 64]].concat(), &[Eof, Limit]);
            refused(&[&[0x82, 0x01], &bare[..], &[0x60; 3]].concat(), &[Eof, Limit]);
            // In the value of a struct's field, and under a tag.
            refused(&[&unhex("a1626964"), &bare[..]].concat(), &[Eof, Limit]);
            refused(&[&unhex("d818"), &bare[..]].concat(), &[Eof, Limit]);
        }
        refused(&[&[0x5f], &wide(2, len)[..], &[0; 9]].concat(), &[Eof, Limit]);
        refused(&[&[0x7f], &wide(3, len)[..], &[0; 9]].concat(), &[Eof, Limit]);
    }
}

// 10
#[test]
fn lengths_that_are_right_only_when_cut_to_32_bits_are_refused() {
    for high in [1u64 << 32, 1 << 63, u64::MAX << 32] {
        refused(&[wide(2, high | 3), vec![1, 2, 3]].concat(), &[Eof, Limit]);
        refused(&[wide(3, high | 2), b"ab".to_vec()].concat(), &[Eof, Limit]);
        refused(&[wide(4, high | 1), vec![7]].concat(), &[Eof, Limit]);
        refused(&[wide(5, high | 1), vec![7, 8]].concat(), &[Eof, Limit]);
        let payload = [wide(2, high | 2), vec![7, 8]].concat();
        refused(&[unhex("d840"), payload.clone()].concat(), &[Eof, Limit]);
        // Here the shape tells the lie as well.
        refused_by(&[unhex("d828828102d840"), payload.clone()].concat(), TYPED);
        let dims = [unhex("d8288281"), wide(0, high | 2), unhex("d840")].concat();
        refused_by(&[dims, payload].concat(), TYPED);
    }
}

// 11
#[test]
fn map_counts_whose_double_overflows_are_refused() {
    for pairs in [1 << 63, (1 << 63) + 1, u64::MAX, (1 << 63) - 1] {
        refused(&[wide(5, pairs), vec![1, 2]].concat(), &[Eof]);
        refused(&[wide(5, pairs), vec![0x61, b'a', 2]].concat(), &[Eof]);
    }
}

// 12
#[test]
fn positions_that_overflow_are_refused() {
    for len in [u64::MAX, u64::MAX - 1, u64::MAX - 10, i64::MAX.cast_unsigned()] {
        for before in 0..12 {
            let array = [vec![0x8f], vec![0; before], wide(2, len), vec![0; 20]].concat();
            refused(&array, &[Eof, Limit]);
        }
    }
}

/// Each level announces as many elements as bytes are left.
fn nested_claims(levels: usize, behind: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for level in 0..levels {
        let left = (levels - level - 1) * 9 + behind;
        bytes.extend(wide(4, left as u64));
    }
    bytes.resize(bytes.len() + behind, 0x80);
    bytes
}

// 13
#[test]
fn nested_claims_share_one_allowance() {
    for levels in [2, 60, 120] {
        let bytes = nested_claims(levels, 64 << 10);
        refused_by(&bytes, ANY);
        refused_by(&bytes, TYPED);
        // A reader does not know what is left.
        for claim in [1000, 1 << 20, 1 << 30] {
            let bytes = wide(4, claim).repeat(levels);
            refused(&bytes, &[Eof]);
        }
    }
}

// 13
#[test]
fn claims_of_siblings_share_one_allowance() {
    // [[claim of all that is left, one byte given], ...], where the first to fail ends it all.
    let sibling = [wide(4, 1 << 20), vec![0x80]].concat();
    refused(&[wide(4, 1 << 12), sibling.repeat(1 << 12)].concat(), &[Eof, Limit]);
    // Well-formed siblings with element types far larger than their bytes.
    type Wide = Vec<Vec<[Option<[u64; 32]>; 4]>>;
    let empty = [head(4, 1000), vec![0x80; 1000]].concat();
    assert_eq!(accepts::<Wide>(&empty).len(), 1000);
}

#[derive(serde::Deserialize, Debug, Default, PartialEq)]
struct Unit;

// 14
#[test]
fn elements_without_size_still_need_their_bytes() {
    fn spins<T: DeserializeOwned + std::fmt::Debug>() {
        for count in [1 << 40, u64::MAX] {
            for item in [0xf6, 0x80] {
                let bytes = [wide(4, count), vec![item; 100]].concat();
                quickly(|| refuses::<T>(&bytes, Eof));
            }
        }
    }
    spins::<Vec<()>>();
    spins::<Vec<Unit>>();
    spins::<Vec<PhantomData<u64>>>();
    spins::<HashSet<()>>();
    assert_eq!(accepts::<Vec<()>>(&[head(4, 1000), vec![0xf6; 1000]].concat()).len(), 1000);
}

/// Claims a payload that its shape agrees with, and that is not there.
fn absent_payloads() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for (typed, size) in [(64, 1), (69, 2), (85, 4), (81, 4), (86, 8), (82, 8), (87, 16)] {
        for count in [1u64 << 20, 1 << 31, 1 << 40, 1 << 58] {
            let start = [unhex("d8288281"), wide(0, count), head(6, typed)].concat();
            all.push([start.clone(), wide(2, count * size), vec![0; 100]].concat());
            all.push([start, vec![0x5f], wide(2, count * size), vec![0; 100]].concat());
            all.push([head(6, typed), wide(2, count * size), vec![0; 100]].concat());
        }
    }
    for count in [1u64 << 20, 1 << 40] {
        let start = [unhex("d8288281"), wide(0, count), head(6, 43001), head(6, 85)].concat();
        all.push([start, wide(2, count * 8)].concat());
        for (name, size) in [("bf16", 2), ("bool", 1), ("f8_e5m2", 1), ("posit8", 1)] {
            let mut bytes = crate::messages::support::named(name, &[count], &[]);
            bytes.pop();
            all.push([bytes, wide(2, count * size)].concat());
        }
    }
    all
}

// 15
#[test]
fn absent_payloads_are_not_allocated_for() {
    for bytes in absent_payloads() {
        refused(&bytes, &[Eof, Limit]);
    }
}

/// Gives zeros behind a head, then ends.
fn cut_off(head: &[u8], zeros: u64) -> impl Read + '_ {
    head.chain(std::io::repeat(0).take(zeros))
}

// 15
#[test]
fn payloads_from_a_reader_grow_in_steps() {
    fn grows<T: DeserializeOwned>(head: &[u8], given: usize) {
        let (result, peak) = peak_of(|| tenarc::from_reader::<_, T>(cut_off(head, given as u64)));
        assert_eq!(result.err().unwrap().category(), Eof);
        assert!(peak <= 3 * given + MIB, "{peak} bytes allocated for {given} received");
    }
    let count = 1u64 << 31;
    for given in [0, 100 << 10, MIB, 5 * MIB] {
        for typed in [85, 81] {
            let start = [unhex("d8288281"), wide(0, count), head(6, typed)].concat();
            let start = [start, wide(2, 4 * count)].concat();
            grows::<Tensor<Array1<f32>>>(&start, given);
            grows::<Tensor<DynTensor>>(&start, given);
            grows::<Value>(&start, given);
        }
        grows::<ByteBuf>(&wide(2, count), given);
        grows::<String>(&wide(3, count), given);
        grows::<IgnoredAny>(&wide(2, count), 0);
        grows::<Box<RawValue>>(&wide(2, count), given);
    }
}

// 16
#[test]
fn small_items_take_a_bounded_factor_of_their_bytes() {
    let many = 40_000;
    for item in ["f6", "01", "60", "40", "80", "a0", "c6f6", "d84040", "a10000", "8180", "f90000"] {
        let item = unhex(item);
        let bytes = [head(4, many), item.repeat(many as usize)].concat();
        for (place, outcome) in outcomes(&bytes, ANY) {
            assert!(outcome.is_ok(), "{place}: {outcome:?}");
        }
        let unknown_length = [vec![0x9f], item.repeat(many as usize), vec![0xff]].concat();
        for (place, outcome) in outcomes(&unknown_length, ANY) {
            assert!(outcome.is_ok(), "{place}: {outcome:?}");
        }
    }
    // Tensors of no elements, and of numbers that stand one by one.
    let empty = crate::messages::support::named("", &[0], &[]);
    accepts::<Vec<Value>>(&[head(4, 10_000), empty.repeat(10_000)].concat());
    let plain = [unhex("d8288281"), head(0, many), head(4, many), vec![7; 40_000]].concat();
    assert_eq!(accepts::<Tensor<Array1<u8>>>(&plain).len(), 40_000);
    assert_eq!(accepts::<Tensor<Vec<i64>>>(&plain[7..]).len(), 40_000);
}

fn limited<T: DeserializeOwned>(bytes: &[u8], source: Source, budget: u64) -> tenarc::Result<T> {
    let limits = Limits::default().with_max_alloc(budget);
    let options = DecodeOptions::default().with_limits(limits);
    match source {
        Source::Slice => tenarc::de::from_slice_with(bytes, options),
        _ => tenarc::de::from_reader_with(bytes, options),
    }
}

// 13, 16
#[test]
fn one_budget_holds_for_the_whole_document() {
    fn takes<T: DeserializeOwned>(bytes: &[u8], source: Source, least: u64, enough: u64) {
        let type_name = std::any::type_name::<T>();
        let error = limited::<T>(bytes, source, least).err();
        let category = error.expect(type_name).category();
        assert_eq!(category, Limit, "{type_name} from {source:?}");
        let result = limited::<T>(bytes, source, enough).map(drop);
        assert!(result.is_ok(), "{type_name} from {source:?}: {result:?}");
    }
    // Beside the bytes of the content, there is room for ten elements, or for a block that grows.
    let many = |element: usize| 10_000 + 10 * element as u64;
    let nodes = many(size_of::<Value>());
    let strings = [head(4, 10), [head(3, 1000), vec![b'a'; 1000]].concat().repeat(10)].concat();
    takes::<Vec<String>>(&strings, Source::Reader, 9_999, many(size_of::<String>()));
    takes::<Value>(&strings, Source::Reader, nodes - 1, nodes);
    takes::<Value>(&strings, Source::Slice, nodes - 1, nodes);
    takes::<IgnoredAny>(&strings, Source::Reader, 999, 10_000);
    takes::<Box<RawValue>>(&strings, Source::Reader, 30_000, 41_000);

    let bytes = [head(4, 10), [head(2, 1000), vec![1; 1000]].concat().repeat(10)].concat();
    takes::<Vec<ByteBuf>>(&bytes, Source::Reader, 9_999, many(size_of::<ByteBuf>()));
    takes::<Value>(&bytes, Source::Slice, nodes - 1, nodes);
    takes::<Box<RawValue>>(&bytes, Source::Reader, 30_000, 31_000);
    let chunks = [vec![0x5f], [head(2, 1000), vec![1; 1000]].concat().repeat(10), vec![0xff]];
    takes::<ByteBuf>(&chunks.concat(), Source::Slice, 29_999, 30_000);
    takes::<ByteBuf>(&chunks.concat(), Source::Reader, 29_999, 40_000);
    takes::<Box<RawValue>>(&chunks.concat(), Source::Reader, 30_000, 31_000);

    let one = tensor(40, &[10, 25], 85, &[0; 1000]);
    let tensors = [head(4, 10), one.repeat(10)].concat();
    let arrays = many(size_of::<Array2<f32>>());
    takes::<Vec<Tensor<Array2<f32>>>>(&tensors, Source::Reader, arrays - 1, arrays);
    let any = many(size_of::<DynTensor>());
    takes::<Vec<Tensor<DynTensor>>>(&tensors, Source::Reader, any - 1, any);
    let nodes = many(size_of::<Value>() + size_of::<DynTensor>());
    takes::<Value>(&tensors, Source::Slice, nodes - 1, nodes);
    let big_endian = tensor(40, &[10, 25], 81, &[0; 1000]);
    let tensors = [head(4, 10), big_endian.repeat(10)].concat();
    let arrays = many(size_of::<ArrayD<f32>>());
    takes::<Vec<Tensor<ArrayD<f32>>>>(&tensors, Source::Slice, arrays - 1, arrays);

    let nulls = [head(4, 1000), vec![0xf6; 1000]].concat();
    takes::<Value>(&nulls, Source::Slice, 31_999, 32_000);
}

// 13
#[test]
fn strict_limits_refuse_what_defaults_take() {
    let strict = DecodeOptions::default().with_limits(Limits::strict());
    let deep = [vec![0x81; 65], vec![0]].concat();
    tenarc::from_slice::<IgnoredAny>(&deep).unwrap();
    let error = tenarc::de::from_slice_with::<IgnoredAny>(&deep, strict).unwrap_err();
    assert_eq!(error.category(), Limit);
    let high = tensor(40, &[1; 17], 64, &[0]);
    tenarc::from_slice::<Tensor<DynTensor>>(&high).unwrap();
    let error = tenarc::de::from_slice_with::<Tensor<DynTensor>>(&high, strict).unwrap_err();
    assert_eq!(error.category(), Limit);
    let large = cut_off(&[0x5a, 0x04, 0, 0, 1], 1 << 30).take((1 << 26) + 6);
    let error = tenarc::de::from_reader_with::<_, ByteBuf>(large, strict).unwrap_err();
    assert_eq!(error.category(), Limit);
}

// 9, 13
#[test]
fn wrong_lengths_of_structs_are_named() {
    assert_eq!(read::<Nest>(&unhex("8180"), Source::Slice).unwrap(), Nest(vec![Nest(vec![])]));
    let error = refuses::<(u8, u8)>(&unhex("83010203"), Data);
    assert!(error.to_string().contains("1 more"), "{error}");
    refuses::<(u8, u8)>(&unhex("8101"), Data);
    refuses::<[u8; 2]>(&unhex("9f010203ff"), Data);
}

/// Without a limit, lengths that nothing can have are the same error from a reader as from a slice: the input ends.
#[test]
fn without_a_limit_lengths_that_nothing_has_are_missing_input() {
    let none = DecodeOptions::default().with_limits(Limits::default().with_max_alloc(u64::MAX));
    for start in [&b"\x5b"[..], b"\x7b", b"\xd8\x40\x5b", b"\x82\x41a\x5b", b"\x5f\x5b"] {
        for len in HUGE {
            let message = [start, &len.to_be_bytes(), b"bytes"].concat();
            let slice = tenarc::de::from_slice_with::<Value>(&message, none).unwrap_err();
            let reader = tenarc::de::from_reader_with::<_, Value>(&message[..], none).unwrap_err();
            assert_eq!(reader.category(), slice.category(), "{slice} / {reader}");
            assert_eq!(reader.offset(), slice.offset(), "{slice} / {reader}");
            assert_eq!(slice.category(), Eof, "{slice}");
        }
    }
}
