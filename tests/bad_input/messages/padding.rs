//! Group G: padding and alignment.

use ndarray::{Array1, ArrayView1, ArrayView2, CowArray, Ix1};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use tenarc::de::{DecodeOptions, Limits};
use tenarc::error::Category::{Data, Eof, Limit, Unsupported};
use tenarc::ser::EncodeOptions;
use tenarc::value::RawValue;
use tenarc::{DynTensor, Tensor, Value};

use super::support::{
    MIB, Source, accepts, head, is_well_formed, quickly, read, refuses, tensor, unhex,
};
use tenarc_test_support::alloc::peak_of;

/// Empty chunks, as other writers pad with.
fn padded(start: &str, chunk: u8, chunks: usize, end: &str) -> Vec<u8> {
    [unhex(start), vec![chunk; chunks], unhex(end)].concat()
}

fn is_flat<T: DeserializeOwned>(bytes: &[u8], source: Source) {
    let (result, peak) = peak_of(|| quickly(|| read::<T>(bytes, source).map(drop)));
    assert!(result.is_ok(), "{result:?}");
    let keeps_all = std::any::type_name::<T>().contains("RawValue");
    assert!(peak < if keeps_all { 4 * bytes.len() + MIB } else { MIB }, "{peak}");
}

// 50
#[test]
fn megabytes_of_empty_chunks_take_linear_time_and_no_memory() {
    let many = 4 << 20;
    let bytes = padded("5f", 0x40, many, "ff");
    is_flat::<ByteBuf>(&bytes, Source::Slice);
    is_flat::<IgnoredAny>(&bytes, Source::Reader);
    let bytes = padded("d828 82 8101 d855 5f", 0x40, many, "4400000000ff");
    is_flat::<Tensor<Array1<f32>>>(&bytes, Source::Slice);
    is_flat::<Tensor<DynTensor>>(&bytes, Source::Reader);
}

// 50
#[test]
fn empty_chunks_take_no_memory_in_any_type() {
    let many = 300_000;
    for source in [Source::Slice, Source::Reader, Source::OneByte] {
        let bytes = padded("5f", 0x40, many, "ff");
        is_flat::<ByteBuf>(&bytes, source);
        is_flat::<Vec<u8>>(&bytes, source);
        is_flat::<Value>(&bytes, source);
        is_flat::<Box<RawValue>>(&bytes, source);
        let bytes = padded("7f", 0x60, many, "6161ff");
        is_flat::<String>(&bytes, source);
        is_flat::<IgnoredAny>(&bytes, source);
        let bytes = padded("d855 5f", 0x40, many, "4400000000ff");
        is_flat::<Vec<f32>>(&bytes, source);
        is_flat::<Value>(&bytes, source);
    }
    // Left open.
    for start in ["5f", "d8405f", "d828 82 8101 d8555f"] {
        let bytes = padded(start, 0x40, many, "");
        quickly(|| tenarc::from_slice::<Value>(&bytes).unwrap_err());
        let error = quickly(|| tenarc::from_reader::<_, Tensor<DynTensor>>(&bytes[..]));
        assert_ne!(error.unwrap_err().category(), Limit);
        assert_eq!(tenarc::from_slice::<IgnoredAny>(&bytes).unwrap_err().category(), Eof);
    }
    // Empty strings that are items of their own.
    let items = [head(4, many as u64), vec![0x40; many]].concat();
    quickly(|| tenarc::from_slice::<IgnoredAny>(&items).unwrap());
    quickly(|| tenarc::from_reader::<_, Vec<ByteBuf>>(&items[..]).unwrap());
}

// 50
#[test]
fn a_reader_is_asked_for_much_at_once() {
    struct Counted<'a>(&'a [u8], usize);

    impl std::io::Read for Counted<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            self.1 += 1;
            self.0.read(out)
        }
    }

    let bytes = padded("5f", 0x40, 1 << 20, "ff");
    let mut reader = Counted(&bytes, 0);
    tenarc::from_reader::<_, ByteBuf>(&mut reader).unwrap();
    assert!(reader.1 < 100, "{} calls", reader.1);
}

// 51
#[test]
fn empty_chunks_may_be_wide_and_anywhere() {
    let empty = ["40", "5800", "590000", "5a00000000", "5b0000000000000000"];
    for first in empty {
        for second in empty {
            let chunks = format!("5f {first} 420102 {second}{first} 43030405 {second} ff");
            assert_eq!(accepts::<ByteBuf>(&unhex(&chunks)), [1, 2, 3, 4, 5]);
            assert_eq!(accepts::<Vec<u8>>(&unhex(&chunks)), [1, 2, 3, 4, 5]);
            assert_eq!(accepts::<Value>(&unhex(&chunks)), Value::Bytes(vec![1, 2, 3, 4, 5]));
            let typed = unhex(&format!("d840{chunks}"));
            assert_eq!(accepts::<Tensor<Vec<u8>>>(&typed).0, [1, 2, 3, 4, 5]);
            assert_eq!(accepts::<Vec<u8>>(&typed), [1, 2, 3, 4, 5]);
            let shaped = unhex(&format!("d82882 8105 d840{chunks}"));
            assert_eq!(accepts::<Tensor<Vec<u8>>>(&shaped).0, [1, 2, 3, 4, 5]);
            is_well_formed(&shaped);
        }
    }
    for empty in ["60", "7800", "790000", "7a00000000", "7b0000000000000000"] {
        assert_eq!(accepts::<String>(&unhex(&format!("7f{empty}6161{empty}6162ff"))), "ab");
    }
}

// 52
#[test]
fn payloads_in_pieces_are_put_together_and_never_borrowed() {
    let values = [1.5f32, -2.0, 3.25, 1e9];
    let payload: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    for piece in 1..=17 {
        let mut chunks = vec![0x5f];
        for piece in payload.chunks(piece) {
            chunks.extend([head(2, piece.len() as u64), piece.to_vec()].concat());
        }
        chunks.push(0xff);
        let bytes = [unhex("d828 82 8104 d855"), chunks.clone()].concat();
        assert_eq!(accepts::<Tensor<Array1<f32>>>(&bytes).to_vec(), values);
        assert_eq!(accepts::<Tensor<Vec<f32>>>(&bytes).0, values);
        assert_eq!(accepts::<Tensor<[f32; 4]>>(&bytes).0, values);
        assert_eq!(accepts::<Tensor<DynTensor>>(&bytes).le_bytes(), payload);
        let error = tenarc::from_slice::<Tensor<ArrayView1<f32>>>(&bytes).unwrap_err();
        assert_eq!(error.category(), Unsupported);
        assert!(error.to_string().contains("cannot be borrowed"), "{error}");
        let cow: Tensor<CowArray<f32, Ix1>> = tenarc::from_slice(&bytes).unwrap();
        assert!(!cow.is_view());
        assert_eq!(cow.to_vec(), values);
        let bare = [unhex("d855"), chunks].concat();
        assert_eq!(accepts::<Vec<f32>>(&bare), values);
        assert_eq!(accepts::<Tensor<Vec<f32>>>(&bare).0, values);
    }
    refuses::<Tensor<[f32; 3]>>(&tensor(40, &[4], 85, &payload), Data);
    assert!(tenarc::from_slice::<&[u8]>(&unhex("5f4101ff")).is_err());
    assert!(tenarc::from_slice::<&str>(&unhex("7f6161ff")).is_err());
}

/// Room in which a message can stand at any offset from an aligned address.
#[repr(align(64))]
struct Room([u8; 256]);

fn at_offset<R>(bytes: &[u8], offset: usize, act: impl FnOnce(&[u8]) -> R) -> R {
    let mut room = Box::new(Room([0; 256]));
    let place = &mut room.0[offset..offset + bytes.len()];
    place.copy_from_slice(bytes);
    act(place)
}

#[derive(Serialize, Deserialize, Debug)]
struct Views<'a> {
    #[serde(borrow)]
    a: Tensor<ArrayView1<'a, f64>>,
    // So long that both payloads can lie aligned.
    #[serde(borrow, rename = "bb")]
    b: Tensor<ArrayView2<'a, u16>>,
}

// 53
#[test]
fn misaligned_payloads_are_copied_or_refused() {
    let values = [1.5f64, -2.0, 3.25];
    let bytes = tenarc::to_vec(&Tensor(values)).unwrap();
    let payload = bytes.len() - 24;
    let mut views = 0;
    for offset in 0..64 {
        at_offset(&bytes, offset, |bytes| {
            let aligned = (offset + payload).is_multiple_of(8);
            match tenarc::from_slice::<Tensor<ArrayView1<f64>>>(bytes) {
                Ok(view) => {
                    assert!(aligned);
                    assert_eq!(view.to_vec(), values);
                    assert_eq!(view.as_ptr().cast::<u8>(), bytes[payload..].as_ptr());
                    views += 1;
                }
                Err(error) => {
                    assert!(!aligned);
                    assert_eq!(error.category(), Unsupported);
                    assert!(error.to_string().contains("aligned to 8 bytes"), "{error}");
                }
            }
            let cow: Tensor<CowArray<f64, Ix1>> = tenarc::from_slice(bytes).unwrap();
            assert_eq!((cow.is_view(), cow.to_vec()), (aligned, values.to_vec()));
            let owned: Tensor<Array1<f64>> = tenarc::from_slice(bytes).unwrap();
            assert_eq!(owned.to_vec(), values);
            assert_eq!(tenarc::from_slice::<Tensor<[f64; 3]>>(bytes).unwrap().0, values);
            let value: Value = tenarc::from_slice(bytes).unwrap();
            let view: Tensor<ArrayView1<f64>> = Tensor::deserialize(&value).unwrap();
            assert_eq!(view.to_vec(), values);
        });
    }
    assert_eq!(views, 8);
    // A reader's buffer does not outlive the call.
    #[derive(Deserialize, Debug)]
    struct Owned(#[allow(dead_code)] Tensor<Array1<f64>>);
    tenarc::from_reader::<_, Owned>(&bytes[..]).unwrap();
}

// 54
#[test]
fn views_in_wrapped_and_appended_messages_are_right_or_refused() {
    let (a, b) = ([1.5f64, 2.5], [[1u16, 2], [3, 4]]);
    let views = Views { a: Tensor(ArrayView1::from(&a)), b: Tensor(ArrayView2::from(&b)) };
    let check = |views: tenarc::Result<Views>| match views {
        Ok(views) => {
            assert_eq!(views.a.to_vec(), a);
            assert_eq!(views.b[[1, 0]], 3);
            true
        }
        Err(error) => {
            assert!(error.to_string().contains("aligned"), "{error}");
            false
        }
    };
    let mut fitting = 0;
    for before in 0..16 {
        let mut bytes = vec![0xf6; before];
        tenarc::append_to(&mut bytes, &views).unwrap();
        fitting += usize::from(at_offset(&bytes, 0, |bytes| {
            let alone = check(tenarc::from_slice(&bytes[before..]));
            let mut stream = tenarc::Deserializer::from_slice(bytes);
            for _ in 0..before {
                <()>::deserialize(&mut stream).unwrap();
            }
            assert_eq!(check(Views::deserialize(&mut stream)), alone);
            alone
        }));
        let outer = tenarc::to_vec(&(vec![0u8; before], &views)).unwrap();
        at_offset(&outer, 0, |outer| {
            let read = tenarc::from_slice::<(IgnoredAny, Views)>(outer);
            check(read.map(|(_, views)| views));
        });
    }
    assert!(fitting > 0, "no alignment tried fits both");
}

// 55
#[test]
fn options_of_zero_and_of_the_most_are_limits_and_no_more() {
    let decode = |limits: Limits| DecodeOptions::default().with_limits(limits);
    let none = Limits::default().with_max_depth(0).with_max_rank(0).with_max_alloc(0);
    assert_eq!(tenarc::de::from_slice_with::<u8>(&[7], decode(none)).unwrap(), 7);
    assert_eq!(tenarc::de::from_reader_with::<_, u8>(&[7][..], decode(none)).unwrap(), 7);
    for digits in ["8101", "a101f6", "c601", "d84041aa", "d828828101d84041aa"] {
        let bytes = unhex(digits);
        for error in [
            tenarc::de::from_slice_with::<IgnoredAny>(&bytes, decode(none)).unwrap_err(),
            tenarc::de::from_slice_with::<Value>(&bytes, decode(none)).unwrap_err(),
            tenarc::de::from_reader_with::<_, Vec<u8>>(&bytes[..], decode(none)).unwrap_err(),
            tenarc::de::from_slice_with::<Tensor<DynTensor>>(&bytes, decode(none)).unwrap_err(),
        ] {
            assert!(crate::is_one_of(&error, &[Limit, Data]), "{digits}: {error}");
        }
    }
    let error = tenarc::de::from_reader_with::<_, String>(&b"\x61a"[..], decode(none)).unwrap_err();
    assert_eq!(error.category(), Limit);
    let flat = Limits::default().with_max_rank(0);
    let scalar = tensor(40, &[], 64, &[7]);
    tenarc::de::from_slice_with::<Tensor<DynTensor>>(&scalar, decode(flat)).unwrap();
    let row = tensor(40, &[1], 64, &[7]);
    let error = tenarc::de::from_slice_with::<Tensor<DynTensor>>(&row, decode(flat)).unwrap_err();
    assert_eq!(error.category(), Limit);

    let most = Limits::default();
    let most = most.with_max_depth(usize::MAX).with_max_rank(usize::MAX).with_max_alloc(u64::MAX);
    for digits in
        ["8181a101c601", "d8288281 01d84107", "d82882 8101 d84041aa", "c24101", "5f4101ff"]
    {
        let bytes = unhex(digits);
        let options = decode(most);
        assert_eq!(
            tenarc::de::from_slice_with::<Value>(&bytes, options).is_ok(),
            tenarc::from_slice::<Value>(&bytes).is_ok(),
            "{digits}"
        );
        let _ = tenarc::de::from_reader_with::<_, IgnoredAny>(&bytes[..], options);
    }
    let claims = [head(4, u64::MAX), head(2, u64::MAX)].concat();
    tenarc::de::from_slice_with::<Value>(&claims, decode(most)).unwrap_err();

    for depth in [0, usize::MAX] {
        let options = EncodeOptions::default().with_max_depth(depth).with_typed_arrays(true);
        assert_eq!(tenarc::ser::to_vec_with(&7u8, options).unwrap(), [7]);
        assert_eq!(tenarc::ser::to_vec_with(&vec![0.5f64; 9], options).is_ok(), depth > 0);
        assert_eq!(tenarc::ser::to_vec_with(&Some(Some(())), options).is_ok(), depth > 0);
        assert_eq!(tenarc::ser::to_vec_with(&Tensor(vec![1u8]), options).is_ok(), depth > 0);
    }
}
