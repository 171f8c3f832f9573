//! Integers, floats and booleans, and what each is read from.

use super::*;

macro_rules! integers_around_every_power_of_two {
    ($($name:ident $type:ty;)*) => {$(
        #[test]
        fn $name() {
            let mut values = BTreeSet::from([<$type>::MIN, <$type>::MAX, 0, 10, 23, 24, 100]);
            for bit in 0..<$type>::BITS {
                let power = (1 as $type) << bit;
                for value in [power, power.wrapping_sub(1), power.wrapping_add(1)] {
                    values.insert(value);
                    values.insert(value.wrapping_neg());
                    values.insert(!value);
                }
            }
            for value in &values {
                round_trip(value);
            }
            round_trip(&values);
        }
    )*};
}

integers_around_every_power_of_two! {
    u8_edges u8;
    u16_edges u16;
    u32_edges u32;
    u64_edges u64;
    u128_edges u128;
    i8_edges i8;
    i16_edges i16;
    i32_edges i32;
    i64_edges i64;
    i128_edges i128;
    usize_edges usize;
    isize_edges isize;
}

#[test]
fn integers_take_the_shortest_head_whatever_their_type() {
    round_trip_as(&23u64, "17");
    round_trip_as(&24i128, "18 18");
    round_trip_as(&255u32, "18 ff");
    round_trip_as(&256u128, "19 0100");
    round_trip_as(&65_536i64, "1a 00010000");
    round_trip_as(&-1i8, "20");
    round_trip_as(&-24i128, "37");
    round_trip_as(&-25i16, "38 18");
    round_trip_as(&u64::MAX, "1b ffffffffffffffff");
    round_trip_as(&i64::MIN, "3b 7fffffffffffffff");
    round_trip_as(&u128::from(u64::MAX), "1b ffffffffffffffff");
    round_trip_as(&(-1i128 << 64), "3b ffffffffffffffff");
    round_trip_as(&(1i128 << 64), "c2 49 010000000000000000");
    round_trip_as(&((-1i128 << 64) - 1), "c3 49 010000000000000000");
    round_trip_as(&u128::MAX, "c2 50 ffffffffffffffffffffffffffffffff");
    round_trip_as(&i128::MIN, "c3 50 7fffffffffffffffffffffffffffffff");
}

#[test]
fn integers_come_back_from_bignums_of_any_length() {
    assert_eq!(decode::<u8>(&unhex("c2 45 0000000005")), 5);
    assert_eq!(decode::<u8>(&unhex("c2 40")), 0);
    assert_eq!(decode::<i64>(&unhex("c3 42 0100")), -257);
    assert_eq!(
        decode::<i128>(&unhex("c3 58 14 00000000 7fffffffffffffffffffffffffffffff")),
        i128::MIN
    );
    assert_eq!(decode::<u128>(&unhex("c2 5f 41 01 41 00 ff")), 256);
    let error = refuse::<u128>(&unhex("c2 51 01ffffffffffffffffffffffffffffffff"));
    assert_eq!(error.category(), Category::Unsupported);
}

#[test]
fn integers_beyond_the_type_are_refused() {
    fn none<T: DeserializeOwned + Debug>(bytes: &[u8]) {
        let error = refuse::<T>(bytes);
        assert_eq!(error.category(), Category::Mismatch, "{error}");
        let error = tenarc::from_value::<T>(tenarc::from_slice(bytes).unwrap()).unwrap_err();
        assert_eq!(error.category(), Category::Mismatch, "{error}");
    }
    none::<u8>(&encode(&256));
    none::<u8>(&encode(&-1));
    none::<i8>(&encode(&128));
    none::<i8>(&encode(&-129));
    none::<u16>(&encode(&65_536));
    none::<i16>(&encode(&-32_769));
    none::<u32>(&encode(&(1u64 << 32)));
    none::<i32>(&encode(&(1u64 << 31)));
    none::<i64>(&encode(&(1u64 << 63)));
    none::<i64>(&encode(&(i128::from(i64::MIN) - 1)));
    none::<u64>(&encode(&(1u128 << 64)));
    none::<u64>(&encode(&-1));
    none::<i128>(&encode(&(1u128 << 127)));
    none::<u128>(&encode(&-1));
    none::<u128>(&encode(&i128::MIN));
}

fn single_bits() -> Vec<u32> {
    let mut bits = vec![0, 1, 0x007f_ffff, 0x0080_0000, 0x3f80_0000, 0x7f7f_ffff, 0x7f80_0000];
    // NaNs: quiet and signalling, with the lowest, the highest and all payload bits.
    bits.extend([0x7fc0_0000, 0x7f80_0001, 0x7fa0_0000, 0x7fff_ffff, 0x7fc0_1234]);
    bits.extend([0x3eaa_aaab, 0x4049_0fdb]);
    bits.iter().flat_map(|bits| [*bits, bits | 0x8000_0000]).collect()
}

fn double_bits() -> Vec<u64> {
    let mut bits = vec![0, 1, 0x000f_ffff_ffff_ffff, 0x0010_0000_0000_0000];
    bits.extend([0x3ff0_0000_0000_0000, 0x7fef_ffff_ffff_ffff, 0x7ff0_0000_0000_0000]);
    bits.extend([0x7ff8_0000_0000_0000, 0x7ff0_0000_0000_0001, 0x7ff4_0000_0000_0000]);
    bits.extend([0x7fff_ffff_ffff_ffff, 0x7ff8_0000_0000_1234, 0x3fd5_5555_5555_5555]);
    bits.iter().flat_map(|bits| [*bits, bits | 1 << 63]).collect()
}

#[test]
fn singles_survive_bit_for_bit_at_their_width() {
    for bits in single_bits() {
        let value = f32::from_bits(bits);
        let bytes = encode(&value);
        assert_eq!(hex(&bytes), format!("fa{bits:08x}"));
        for (source, back) in everywhere::<f32>(&bytes) {
            assert_eq!(back.unwrap().to_bits(), bits, "{source}");
        }
        let made = tenarc::to_value(&value).unwrap();
        assert_eq!(encode(&made), bytes);
        assert_eq!(f32::deserialize(&made).unwrap().to_bits(), bits);
        assert_eq!(tenarc::from_value::<f32>(made).unwrap().to_bits(), bits);
    }
    let all: Vec<f32> = single_bits().into_iter().map(f32::from_bits).collect();
    let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<_>>();
    for on in [false, true] {
        let options = tenarc::ser::EncodeOptions::default().with_typed_arrays(on);
        let bytes = tenarc::ser::to_vec_with(&all, options).unwrap();
        for (source, back) in everywhere::<Vec<f32>>(&bytes) {
            assert_eq!(bits(back.unwrap()), single_bits(), "{source}");
        }
    }
}

#[test]
fn doubles_survive_bit_for_bit_at_their_width() {
    for bits in double_bits() {
        let value = f64::from_bits(bits);
        let bytes = encode(&value);
        assert_eq!(hex(&bytes), format!("fb{bits:016x}"));
        for (source, back) in everywhere::<f64>(&bytes) {
            assert_eq!(back.unwrap().to_bits(), bits, "{source}");
        }
        let made = tenarc::to_value(&value).unwrap();
        assert_eq!(encode(&made), bytes);
        assert_eq!(f64::deserialize(&made).unwrap().to_bits(), bits);
        assert_eq!(tenarc::from_value::<f64>(made).unwrap().to_bits(), bits);
    }
    let all: Vec<f64> = double_bits().into_iter().map(f64::from_bits).collect();
    let bits = |values: Vec<f64>| values.into_iter().map(f64::to_bits).collect::<Vec<_>>();
    for on in [false, true] {
        let options = tenarc::ser::EncodeOptions::default().with_typed_arrays(on);
        let bytes = tenarc::ser::to_vec_with(&all, options).unwrap();
        for (source, back) in everywhere::<Vec<f64>>(&bytes) {
            assert_eq!(bits(back.unwrap()), double_bits(), "{source}");
        }
    }
}

#[test]
fn floats_come_back_from_every_width_that_fits() {
    assert_eq!(decode::<f32>(&unhex("f9 3e00")), 1.5);
    assert_eq!(decode::<f64>(&unhex("f9 3e00")), 1.5);
    assert_eq!(decode::<f64>(&unhex("f9 0001")), f64::from(2f32.powi(-24)));
    assert_eq!(decode::<f64>(&unhex("f9 fbff")), -65_504.0);
    assert_eq!(decode::<f32>(&unhex("f9 fc00")), f32::NEG_INFINITY);
    assert_eq!(decode::<f64>(&encode(&1.1f32)), f64::from(1.1f32));
    assert_eq!(decode::<f32>(&encode(&0.1f32)), 0.1);
    assert_eq!(decode::<f32>(&encode(&f64::from(0.1f32))), 0.1);
    assert_eq!(decode::<f32>(&encode(&f64::INFINITY)), f32::INFINITY);
    for (source, value) in everywhere::<f32>(&unhex("f9 8000")) {
        assert_eq!(value.unwrap().to_bits(), (-0f32).to_bits(), "{source}");
    }
    // NaN payloads are widened and narrowed without loss where they fit.
    for (half, single) in [("f97e00", 0x7fc0_0000u32), ("f97c01", 0x7f80_2000)] {
        for (source, value) in everywhere::<f32>(&unhex(half)) {
            assert_eq!(value.unwrap().to_bits(), single, "{source}");
        }
    }
    for (source, value) in everywhere::<f64>(&unhex("fa 7f800001")) {
        assert_eq!(value.unwrap().to_bits(), 0x7ff0_0000_2000_0000, "{source}");
    }
    for (source, value) in everywhere::<f32>(&unhex("fb 7ff0000020000000")) {
        assert_eq!(value.unwrap().to_bits(), 0x7f80_0001, "{source}");
    }
    assert_eq!(decode::<f32>(&encode(&0.1f64)), 0.1);
    for (source, value) in everywhere::<f32>(&unhex("fb 7ff0000000000001")) {
        assert!(value.unwrap().is_nan(), "{source}");
    }
    let beyond = encode(&1e300f64);
    assert_eq!(refuse::<f32>(&beyond).category(), Category::Mismatch);
    let value: Value = tenarc::from_slice(&beyond).unwrap();
    assert_eq!(f32::deserialize(&value).unwrap_err().category(), Category::Mismatch);
}

/// Reads from bytes and through a value; both must agree.
#[track_caller]
fn read<T: DeserializeOwned + PartialEq + Debug>(bytes: &[u8]) -> Option<T> {
    let through: Value = tenarc::from_slice(bytes).unwrap();
    let through = tenarc::from_value::<T>(through);
    if let Ok(through) = through {
        assert_eq!(decode::<T>(bytes), through);
        Some(through)
    } else {
        assert_eq!(refuse::<T>(bytes).category(), Category::Mismatch);
        None
    }
}

#[test]
fn integers_come_from_floats_only_when_exact() {
    assert_eq!(read::<u8>(&encode(&255f32)), Some(255));
    assert_eq!(read::<i8>(&encode(&-128f64)), Some(-128));
    assert_eq!(read::<u8>(&unhex("f9 3c00")), Some(1));
    assert_eq!(read::<u32>(&encode(&0f32)), Some(0));
    assert_eq!(read::<u64>(&encode(&2f64.powi(63))), Some(1 << 63));
    assert_eq!(read::<i64>(&encode(&-(2f64.powi(63)))), Some(i64::MIN));
    assert_eq!(read::<i128>(&encode(&2f64.powi(100))), Some(1 << 100));
    assert_eq!(read::<i128>(&encode(&-(2f64.powi(127)))), Some(i128::MIN));
    assert_eq!(read::<u128>(&encode(&2f64.powi(126))), Some(1 << 126));

    assert_eq!(read::<u8>(&encode(&256f32)), None);
    assert_eq!(read::<u8>(&encode(&-1f64)), None);
    assert_eq!(read::<i32>(&encode(&0.5f64)), None);
    assert_eq!(read::<i64>(&encode(&2f64.powi(63))), None);
    assert_eq!(read::<i128>(&encode(&2f64.powi(127))), None);
    assert_eq!(read::<i128>(&encode(&1e300)), None);
    // A negative zero would lose its sign.
    for nothing in [-0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(read::<i64>(&encode(&nothing)), None);
    }
}

#[test]
fn floats_come_from_integers_only_when_exact() {
    assert_eq!(read::<f32>(&encode(&3)), Some(3.0));
    assert_eq!(read::<f64>(&encode(&-1)), Some(-1.0));
    assert_eq!(read::<f32>(&encode(&(1 << 24))), Some(16_777_216.0));
    assert_eq!(read::<f64>(&encode(&u64::from(u32::MAX))), Some(4_294_967_295.0));
    assert_eq!(read::<f64>(&encode(&(1u64 << 53))), Some(2f64.powi(53)));
    assert_eq!(read::<f64>(&encode(&(1i128 << 90))), Some(2f64.powi(90)));
    assert_eq!(read::<f64>(&encode(&i128::MIN)), Some(-(2f64.powi(127))));

    assert_eq!(read::<f32>(&encode(&((1 << 24) + 1))), None);
    assert_eq!(read::<f64>(&encode(&((1u64 << 53) + 1))), None);
    assert_eq!(read::<f64>(&encode(&u64::MAX)), None);
    assert_eq!(read::<f64>(&encode(&i64::MAX)), None);
    assert_eq!(read::<f64>(&encode(&i128::MAX)), None);
    assert_eq!(read::<f64>(&encode(&u128::MAX)), None);
}

#[test]
fn booleans_are_no_numbers_and_numbers_no_booleans() {
    round_trip_as(&false, "f4");
    round_trip_as(&true, "f5");
    assert_eq!(read::<u8>(&encode(&true)), None);
    assert_eq!(read::<f64>(&encode(&true)), None);
    assert_eq!(read::<bool>(&encode(&1)), None);
    assert_eq!(read::<bool>(&encode(&0.0)), None);
}

/// A vector that is read by a visitor of its own, so that none of the shortcuts for `Vec` applies.
struct OneByOne<T>(Vec<T>);

impl<'de, T: serde::Deserialize<'de>> serde::Deserialize<'de> for OneByOne<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements<T>(std::marker::PhantomData<T>);

        impl<'de, T: serde::Deserialize<'de>> serde::de::Visitor<'de> for Elements<T> {
            type Value = Vec<T>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a sequence")
            }

            fn visit_seq<S: serde::de::SeqAccess<'de>>(
                self,
                mut seq: S,
            ) -> Result<Vec<T>, S::Error> {
                let mut elements = Vec::new();
                while let Some(element) = seq.next_element()? {
                    elements.push(element);
                }
                Ok(elements)
            }
        }

        deserializer.deserialize_seq(Elements(std::marker::PhantomData)).map(Self)
    }
}

/// Items that are numbers of each width, and some that are not.
const ITEMS: [&[u8]; 22] = [
    b"\x00",
    b"\x17",
    b"\x18\x18",
    b"\x18\xff",
    // Not in the shortest form.
    b"\x18\x05",
    b"\x19\x00\x07",
    b"\x1b\0\0\0\0\0\0\0\x01",
    b"\x19\x01\x00",
    b"\x1a\x00\x01\x00\x00",
    b"\x1b\x00\x00\x00\x01\x00\x00\x00\x00",
    b"\x1b\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x20",
    b"\x38\x7f",
    b"\x3b\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\xf9\x3c\x00",
    b"\xfa\x3f\xc0\x00\x00",
    b"\xfb\x40\x09\x21\xfb\x54\x44\x2d\x18",
    b"\xc2\x41\x09",
    b"\xf5",
    b"\x61a",
    b"\xf6",
    b"\x1c",
];

fn vectors_are_read_as_their_elements_are<T>()
where
    T: serde::de::DeserializeOwned + std::fmt::Debug,
{
    let read = |bytes: &[u8]| {
        let vec = tenarc::from_slice::<Vec<T>>(bytes).map_err(|error| error.to_string());
        let each = tenarc::from_slice::<OneByOne<T>>(bytes).map_err(|error| error.to_string());
        assert_eq!(format!("{vec:?}"), format!("{:?}", each.map(|each| each.0)), "{bytes:02x?}");
        let vecs = tenarc::from_slice::<Vec<Vec<T>>>(bytes).map_err(|error| error.to_string());
        let each = tenarc::from_slice::<Vec<OneByOne<T>>>(bytes).map_err(|error| error.to_string());
        let each = each.map(|each| each.into_iter().map(|each| each.0).collect::<Vec<_>>());
        assert_eq!(format!("{vecs:?}"), format!("{each:?}"), "{bytes:02x?}");
    };
    for first in ITEMS {
        for second in ITEMS {
            let items = [first, second, first].concat();
            for head in
                [&b"\x83"[..], b"\x9f", b"\x82", b"\x84", b"\x98\x03", b"\x9b\0\0\0\0\0\0\0\x03"]
            {
                let mut bytes = [head, &items].concat();
                read(&bytes);
                bytes.push(0xff);
                read(&bytes);
                read(&[b"\x82", &bytes[..], &bytes].concat());
            }
        }
        let bytes = [b"\x84", first, first, first, first].concat();
        for len in 0..bytes.len() {
            read(&bytes[..len]);
        }
    }
}

#[test]
fn vectors_of_numbers_are_read_as_their_elements_are() {
    vectors_are_read_as_their_elements_are::<u8>();
    vectors_are_read_as_their_elements_are::<u16>();
    vectors_are_read_as_their_elements_are::<u32>();
    vectors_are_read_as_their_elements_are::<u64>();
    vectors_are_read_as_their_elements_are::<i8>();
    vectors_are_read_as_their_elements_are::<i16>();
    vectors_are_read_as_their_elements_are::<i32>();
    vectors_are_read_as_their_elements_are::<i64>();
    vectors_are_read_as_their_elements_are::<f32>();
    vectors_are_read_as_their_elements_are::<f64>();
    vectors_are_read_as_their_elements_are::<bool>();
}
