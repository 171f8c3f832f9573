//! Group F: numbers and the bits of elements.

use half::{bf16, f16};
use ndarray::{Array1, ArrayD, ArrayView1, CowArray, Ix1};
use num_complex::Complex;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tenarc::error::Category::{Data, Mismatch, Unsupported};
use tenarc::tensor::Element;
use tenarc::{DType, DynTensor, Tensor, Value};

use super::support::{
    MIB, Source, accepts, head, is_well_formed, named, read, refuses, tensor, unhex,
};

// 37
#[test]
fn integers_outside_their_type_are_refused() {
    refuses::<u8>(&unhex("190100"), Data);
    refuses::<u8>(&unhex("20"), Data);
    refuses::<i8>(&unhex("1880"), Data);
    refuses::<i8>(&unhex("3880"), Data);
    refuses::<u32>(&unhex("1b0000000100000000"), Data);
    refuses::<i64>(&unhex("1b8000000000000000"), Data);
    refuses::<i64>(&unhex("3b8000000000000000"), Data);
    refuses::<i64>(&unhex("3bffffffffffffffff"), Data);
    refuses::<u64>(&unhex("c249010000000000000000"), Data);
    refuses::<u64>(&unhex("c340"), Data);
    refuses::<u128>(&unhex("3bffffffffffffffff"), Data);
    refuses::<char>(&unhex("1861"), Data);
    refuses::<char>(&unhex("626161"), Data);
    refuses::<bool>(&unhex("01"), Data);
    assert_eq!(accepts::<i128>(&unhex("3bffffffffffffffff")), -(1i128 << 64));
    assert_eq!(accepts::<Value>(&unhex("3bffffffffffffffff")), Value::Integer(-(1i128 << 64)));
    assert_eq!(accepts::<f64>(&unhex("3bffffffffffffffff")), -18_446_744_073_709_551_616.0);
    assert_eq!(accepts::<u8>(&unhex("c25100000000000000000000000000000000ff")), 255);
    assert_eq!(accepts::<i8>(&unhex("c3417f")), -128);
    // A float for an integer, where it is one; an integer for a float, where that is exact.
    assert_eq!(accepts::<u8>(&unhex("f93c00")), 1);
    for digits in ["f93e00", "f97e00", "f97c00", "fa4f800000", "fb7fefffffffffffff", "f98000"] {
        refuses::<i32>(&unhex(digits), Data);
    }
    refuses::<f32>(&unhex("1a01000001"), Data);
    refuses::<f64>(&unhex("1b0020000000000001"), Data);
    refuses::<f32>(&unhex("fb7e37e43c8800759c"), Data);
    assert_eq!(accepts::<f32>(&unhex("fb3ff0000000000001")), 1.0);
}

// 37
#[test]
fn bignums_are_never_reckoned_with() {
    let large =
        |tag: u64, len: usize| [head(6, tag), head(2, len as u64), vec![0xff; len]].concat();
    for tag in [2, 3] {
        for len in [17, 100, MIB] {
            let bytes = large(tag, len);
            is_well_formed(&bytes);
            let error = refuses::<u128>(&bytes, Data);
            assert!(error.to_string().contains("128 bits"), "{error}");
            refuses::<i128>(&bytes, Data);
            refuses::<f64>(&bytes, Data);
            let kept = Value::Tag(tag, Box::new(Value::Bytes(vec![0xff; len])));
            assert_eq!(accepts::<Value>(&bytes), kept);
            assert!(tenarc::from_value::<u128>(kept).is_err());
        }
    }
    assert_eq!(accepts::<u128>(&large(2, 16)), u128::MAX);
    refuses::<i128>(&large(2, 16), Data);
    refuses::<i128>(&large(3, 16), Data);
    assert!(matches!(accepts::<Value>(&large(3, 16)), Value::Tag(3, _)));
    let zeros = [head(6, 2), head(2, 1 << 20), vec![0; MIB]].concat();
    assert_eq!(accepts::<u64>(&zeros), 0);
    // In chunks, and of anything but bytes.
    assert_eq!(accepts::<u64>(&unhex("c25f4101404102ff")), 258);
    let in_a_type = "c2da54545950836464617465805fff";
    for digits in ["c201", "c26161", "c28101", "c2f6", "c3c24101", "c2d912674105", in_a_type] {
        refuses::<u64>(&unhex(digits), Data);
        refuses::<Value>(&unhex(digits), Data);
        is_well_formed(&unhex(digits));
    }
}

// 37
#[test]
fn decimal_fractions_stay_what_they_are_written_as() {
    for digits in ["c4821bffffffffffffffff01", "c5823bffffffffffffffff01", "c482 1a7fffffff c24101"]
    {
        let bytes = unhex(digits);
        is_well_formed(&bytes);
        assert!(matches!(accepts::<Value>(&bytes), Value::Tag(4 | 5, _)));
        refuses::<f64>(&bytes, Data);
        refuses::<i64>(&bytes, Data);
    }
}

// 46
#[test]
fn bytes_that_are_no_bool_are_refused_before_they_are_one() {
    for bad in [2u8, 0x7f, 0x80, 0xff] {
        for at in [0, 63, 99_999] {
            for len in [at + 1, 100_000] {
                let mut payload = vec![1; len.max(at + 1)];
                payload[at] = bad;
                let bytes = named("bool", &[payload.len() as u64], &payload);
                refuses::<Tensor<Vec<bool>>>(&bytes, Data);
                refuses::<Tensor<ArrayD<bool>>>(&bytes, Data);
                refuses::<Tensor<DynTensor>>(&bytes, Data);
                refuses::<Value>(&bytes, Data);
                refuses::<Vec<bool>>(&bytes, Data);
                let view = tenarc::from_slice::<Tensor<ArrayView1<bool>>>(&bytes);
                assert_eq!(view.unwrap_err().category(), Data);
                let cow = tenarc::from_slice::<Tensor<CowArray<bool, Ix1>>>(&bytes);
                assert_eq!(cow.unwrap_err().category(), Data);
            }
        }
        let shown =
            [unhex("a3 656474797065 64626f6f6c 657368617065 8101 6464617461 41"), vec![bad]];
        refuses::<Tensor<Vec<bool>>>(&shown.concat(), Data);
        refuses::<Tensor<DynTensor>>(&shown.concat(), Data);
        let chunks = [unhex("da54454e53 84 64626f6f6c 8102 6143 5f 4101 41"), vec![bad, 0xff]];
        refuses::<Tensor<Vec<bool>>>(&chunks.concat(), Data);
        refuses::<[bool; 1]>(&named("bool", &[1], &[bad]), Data);
        assert!(DynTensor::new(DType::Bool, &[1], tenarc::tensor::Order::C, vec![bad]).is_err());
    }
    // Numbers are no bools, nor bools numbers.
    refuses::<Tensor<Vec<bool>>>(&tensor(40, &[1], 64, &[1]), Data);
    refuses::<Tensor<Vec<u8>>>(&named("bool", &[1], &[1]), Data);
    refuses::<Vec<u8>>(&named("bool", &[1], &[1]), Data);
    refuses::<Tensor<Vec<bool>>>(&unhex("8101"), Data);
}

/// The encoding of elements with these bits comes back with them, by every way.
fn keeps_bits<A: Element + Copy>(bits: &[u8])
where
    Tensor<Vec<A>>: Serialize + DeserializeOwned,
{
    let values: Tensor<Vec<A>> = {
        let dtype = A::DTYPE;
        let size = match dtype.bits() {
            Some(bits) => bits / 8,
            None => unreachable!(),
        };
        assert_eq!(bits.len() % size, 0);
        let dynamic =
            DynTensor::new(dtype, &[bits.len() / size], tenarc::tensor::Order::C, bits.to_vec());
        Tensor(dynamic.unwrap().into_array::<A>().unwrap().into_raw_vec_and_offset().0)
    };
    let bytes = tenarc::to_vec(&values).unwrap();
    assert!(bytes.ends_with(bits), "payload");
    for source in [Source::Slice, Source::Reader, Source::OneByte] {
        let back: Tensor<Vec<A>> = read(&bytes, source).unwrap();
        assert_eq!(tenarc::to_vec(&back).unwrap(), bytes);
        let back: Value = read(&bytes, source).unwrap();
        assert_eq!(tenarc::to_vec(&back).unwrap(), bytes);
        let back: Tensor<DynTensor> = read(&bytes, source).unwrap();
        assert_eq!(back.le_bytes(), bits);
    }
    let through = tenarc::to_value(&values).unwrap();
    let back: Tensor<Vec<A>> = tenarc::from_value(through).unwrap();
    assert_eq!(tenarc::to_vec(&back).unwrap(), bytes);
}

// 47
#[test]
fn the_bits_of_floats_are_kept() {
    let halves: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    keeps_bits::<f16>(&halves);
    keeps_bits::<bf16>(&halves);
    let singles = [0x7f80_0001u32, 0x7fc0_1234, 0xffff_ffff, 0x8000_0000, 1, 0x807f_ffff];
    let singles: Vec<u8> = singles.into_iter().flat_map(u32::to_le_bytes).collect();
    keeps_bits::<f32>(&singles);
    keeps_bits::<Complex<f32>>(&singles);
    let doubles = [0x7ff0_0000_0000_0001u64, 0xfff8_dead_beef_0000, u64::MAX, 1 << 63, 1, 2];
    let doubles: Vec<u8> = doubles.into_iter().flat_map(u64::to_le_bytes).collect();
    keeps_bits::<f64>(&doubles);
    keeps_bits::<Complex<f64>>(&doubles);
    // Every byte of the dtypes that have no Rust type.
    for name in ["f8_e5m2", "f8_e4m3", "f8_e8m0", "f8_e5m2fnuz", "f8_e4m3fnuz"] {
        let bits: Vec<u8> = (0..=255).collect();
        let bytes = named(name, &[256], &bits);
        let back: Tensor<DynTensor> = accepts(&bytes);
        assert_eq!(back.le_bytes(), bits);
        assert_eq!(tenarc::to_vec(&back).unwrap(), bytes);
    }
    // Alone, as serde has them.
    for bits in [0x7f80_0001u32, 0xffc0_1234, 0x8000_0000, 1] {
        let bytes = [&[0xfa][..], &bits.to_be_bytes()].concat();
        let back: f32 = tenarc::from_slice(&bytes).unwrap();
        assert_eq!((back.to_bits(), tenarc::to_vec(&back).unwrap()), (bits, bytes.clone()));
        let back: Value = tenarc::from_slice(&bytes).unwrap();
        assert_eq!(tenarc::to_vec(&back).unwrap(), bytes);
    }
}

// 48
#[test]
fn a_dtype_is_never_taken_for_another() {
    fn refuses_all_but<A: Element>(own: &str, all: &[(&str, Vec<u8>)])
    where
        for<'de> Tensor<Vec<A>>: Deserialize<'de> + std::fmt::Debug,
    {
        for (name, bytes) in all {
            if *name == own {
                tenarc::from_slice::<Tensor<Vec<A>>>(bytes).unwrap();
                continue;
            }
            let error = refuses::<Tensor<Vec<A>>>(bytes, Data).to_string();
            assert!(error.contains(own) && error.contains(name), "{own}, {name}: {error}");
            let view = tenarc::from_slice::<Tensor<ArrayView1<A>>>(bytes).unwrap_err().to_string();
            assert!(view.contains(own) && view.contains(name), "{own}, {name}: {view}");
            let cow = tenarc::from_slice::<Tensor<CowArray<A, Ix1>>>(bytes).unwrap_err();
            assert_eq!(cow.category(), Mismatch);
            let value: Value = tenarc::from_slice(bytes).unwrap();
            assert!(value.as_tensor().unwrap().view::<A>().is_err());
            assert!(Tensor::<Vec<A>>::deserialize(&value).is_err());
        }
    }
    let payload = [0u8; 16];
    let mut all = Vec::new();
    for (name, typed, size) in [
        ("u8", 64, 1),
        ("u16", 69, 2),
        ("u32", 70, 4),
        ("u64", 71, 8),
        ("i8", 72, 1),
        ("i16", 77, 2),
        ("i32", 78, 4),
        ("i64", 79, 8),
        ("f16", 84, 2),
        ("f32", 85, 4),
        ("f64", 86, 8),
    ] {
        all.push((name, tensor(40, &[16 / size], typed, &payload)));
    }
    for (name, len) in [("bool", 16), ("bf16", 8), ("c64", 2), ("c128", 1), ("f8_e4m3", 16)] {
        all.push((name, named(name, &[len], &payload)));
    }
    refuses_all_but::<u8>("u8", &all);
    refuses_all_but::<u16>("u16", &all);
    refuses_all_but::<i32>("i32", &all);
    refuses_all_but::<f16>("f16", &all);
    refuses_all_but::<bf16>("bf16", &all);
    refuses_all_but::<f32>("f32", &all);
    refuses_all_but::<f64>("f64", &all);
    refuses_all_but::<bool>("bool", &all);
    refuses_all_but::<Complex<f32>>("c64", &all);
}

// 48
#[test]
fn casts_are_exact_or_refused() {
    #[derive(Deserialize, Debug)]
    struct Cast(#[serde(with = "tenarc::tensor::cast")] Array1<f32>);

    let doubles = |value: f64| tensor(40, &[1], 86, &value.to_le_bytes());
    assert_eq!(tenarc::from_slice::<Cast>(&doubles(0.5)).unwrap().0[0], 0.5);
    refuses::<Cast>(&doubles(0.1), Data);
    refuses::<Cast>(&doubles(f64::MAX), Data);
    let integers = |value: u32| tensor(40, &[1], 70, &value.to_le_bytes());
    assert_eq!(tenarc::from_slice::<Cast>(&integers(1 << 30)).unwrap().0[0], (1u32 << 30) as f32);
    refuses::<Cast>(&integers((1 << 24) + 1), Data);
    refuses::<Cast>(&named("bool", &[1], &[1]), Data);
    refuses::<Cast>(&named("f8_e4m3", &[1], &[1]), Data);
}

// 49
#[test]
fn big_endian_payloads_are_turned() {
    let two = |bytes: &[u8]| bytes.repeat(2);
    assert_eq!(accepts::<Tensor<Vec<u16>>>(&tensor(40, &[2], 65, &two(&[1, 2]))).0, [258; 2]);
    assert_eq!(accepts::<Vec<u16>>(&[unhex("d84144"), two(&[1, 2])].concat()), [258; 2]);
    assert_eq!(accepts::<Tensor<Vec<u32>>>(&tensor(40, &[2], 66, &two(&[0, 0, 1, 2]))).0, [258; 2]);
    let eight = [0, 0, 0, 0, 0, 0, 1, 2];
    assert_eq!(accepts::<Tensor<Vec<u64>>>(&tensor(40, &[2], 67, &two(&eight))).0, [258; 2]);
    assert_eq!(accepts::<Tensor<Vec<i16>>>(&tensor(40, &[2], 73, &two(&[0xff, 0xfe]))).0, [-2; 2]);
    assert_eq!(accepts::<Tensor<Vec<i64>>>(&tensor(40, &[2], 75, &two(&eight))).0, [258; 2]);
    let half = tensor(40, &[2], 80, &two(&[0x3c, 0]));
    assert_eq!(accepts::<Tensor<Vec<f16>>>(&half).0, [f16::ONE; 2]);
    let single = tensor(40, &[2], 81, &two(&1.5f32.to_be_bytes()));
    assert_eq!(accepts::<Tensor<Vec<f32>>>(&single).0, [1.5; 2]);
    assert_eq!(accepts::<Tensor<DynTensor>>(&single).le_bytes(), two(&1.5f32.to_le_bytes()));
    let Value::Tensor(value) = accepts::<Value>(&single) else { panic!("no tensor") };
    assert_eq!(value.le_bytes(), two(&1.5f32.to_le_bytes()));
    let double = tensor(1040, &[1, 2], 82, &two(&1.5f64.to_be_bytes()));
    assert_eq!(accepts::<Tensor<ArrayD<f64>>>(&double)[[0, 1]], 1.5);
    let quad = tensor(40, &[1], 83, &(0..16).collect::<Vec<u8>>());
    assert_eq!(accepts::<Tensor<DynTensor>>(&quad).le_bytes()[0], 15);
    let complex = [unhex("d828 82 8101 d9a7f9 d851 48"), two(&1.5f32.to_be_bytes())].concat();
    assert_eq!(accepts::<Tensor<Vec<Complex<f32>>>>(&complex).0, [Complex::new(1.5, 1.5)]);
    // In chunks that split elements.
    let chunks = unhex("d828 82 8102 d841 5f 43010201 40 4102 ff");
    assert_eq!(accepts::<Tensor<Vec<u16>>>(&chunks).0, [258; 2]);
    // A view would show the bytes as they lie.
    let view = tenarc::from_slice::<Tensor<ArrayView1<f32>>>(&single).unwrap_err();
    assert_eq!(view.category(), Unsupported);
    let cow: Tensor<CowArray<f32, Ix1>> = tenarc::from_slice(&single).unwrap();
    assert_eq!(cow.as_slice().unwrap(), [1.5; 2]);
}
