//! The encoded bytes of tensors, as the table of encodings in `SPEC.md` gives them.

use half::{bf16, f16};
use ndarray::{Array2, ArrayD, IxDyn, ShapeBuilder, arr0, array, s};
use num_complex::Complex;
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor, Tensor};

use super::support::{Sample, encode, for_every_element, hex, unhex};

/// Asserts bytes written as hex, with blanks between the parts.
#[track_caller]
fn assert_bytes(found: &[u8], expected: &str) {
    assert_eq!(hex(found), hex(&unhex(expected)));
}

#[test]
fn matrices_stand_under_tag_40_as_shape_and_typed_array() {
    let matrix = array![[1.0f32, 2.0], [3.0, 4.0]];
    assert_bytes(&encode(&matrix), "d828 82 820202 d855 50 0000803f 00000040 00004040 00008040");
}

#[test]
fn column_major_matrices_stand_under_tag_1040() {
    let matrix = array![[1.0f32, 2.0], [3.0, 4.0]].reversed_axes();
    // Memory order: the same elements as before the transposition.
    assert_bytes(&encode(&matrix), "d90410 82 820202 d855 50 0000803f 00000040 00004040 00008040");
    let matrix = Array2::from_shape_vec((2, 3).f(), vec![1u8, 2, 3, 4, 5, 6]).unwrap();
    assert_bytes(&encode(&matrix), "d90410 82 820203 d840 46 010203040506");
}

#[test]
fn strided_arrays_are_written_row_major() {
    let matrix = array![[1u16, 2, 3], [4, 5, 6]];
    assert_bytes(&encode(&matrix.slice(s![.., ..;2])), "d828 82 820202 d845 48 0100030004000600");
    assert_bytes(&encode(&matrix.slice(s![..;-1, 1..])), "d828 82 820202 d845 48 0500060002000300");
}

#[test]
fn one_and_no_dimensions_stand_under_tag_40_too() {
    assert_bytes(&encode(&array![1u8, 2, 3]), "d828 82 8103 d840 43 010203");
    assert_bytes(&encode(&arr0(1.0f64)), "d828 82 80 d856 48 000000000000f03f");
    assert_bytes(&tenarc::to_vec(&Tensor([7i8])).unwrap(), "d828 82 8101 d848 41 07");
}

#[test]
fn each_dtype_has_its_tag() {
    fn check<A: Sample>() {
        let tag = match A::DTYPE {
            DType::U8 => "d840",
            DType::U16 => "d845",
            DType::U32 => "d846",
            DType::U64 => "d847",
            DType::I8 => "d848",
            DType::I16 => "d84d",
            DType::I32 => "d84e",
            DType::I64 => "d84f",
            DType::F16 => "d854",
            DType::F32 => "d855",
            DType::F64 => "d856",
            // Complex numbers: 43001 around the typed array of their parts.
            DType::C64 => "d9a7f9 d855",
            DType::C128 => "d9a7f9 d856",
            DType::Bool | DType::BF16 => {
                let name = hex(A::DTYPE.name().as_bytes());
                let size = size_of::<A>();
                let expected = format!("da54454e53 84 64{name} 8101 6143 4{size}");
                let found = encode(&array![A::sample(1)]);
                return assert_bytes(&found[..found.len() - size], &expected);
            }
            other => panic!("{other} is no element type"),
        };
        let size = size_of::<A>();
        let found = encode(&array![A::sample(1)]);
        let expected = format!("d828 82 8101 {tag} {:02x}", 0x40 + size);
        assert_bytes(&found[..found.len() - size], &expected);
    }
    for_every_element!(check);
}

#[test]
fn payloads_are_little_endian() {
    assert_bytes(&encode(&array![0x0102u16]), "d828 82 8101 d845 42 0201");
    assert_bytes(&encode(&array![-2i32]), "d828 82 8101 d84e 44 feffffff");
    assert_bytes(&encode(&array![1u64 << 56]), "d828 82 8101 d847 48 0000000000000001");
    assert_bytes(&encode(&array![f16::from_f32(1.0)]), "d828 82 8101 d854 42 003c");
    assert_bytes(
        &encode(&array![Complex::new(1.0f32, -2.0)]),
        "d828 82 8101 d9a7f9 d855 48 0000803f 000000c0",
    );
}

#[test]
fn bool_and_bf16_stand_under_the_own_tag_by_name() {
    assert_bytes(&encode(&array![[true, false]]), "da54454e53 84 64 626f6f6c 820102 61 43 42 0100");
    let brain = array![[1.0f32, 2.0], [3.0, 4.0]].mapv(bf16::from_f32).reversed_axes();
    assert_bytes(&encode(&brain), "da54454e53 84 64 62663136 820202 61 46 48 803f 0040 4040 8040");
}

#[test]
fn zero_sized_tensors_stand_under_the_own_tag_whatever_their_dtype() {
    assert_bytes(&encode(&Array2::<f32>::zeros((0, 3))), "da54454e53 84 63 663332 820003 61 43 40");
    assert_bytes(
        &encode(&ArrayD::<u8>::zeros(IxDyn(&[2, 0, 4]).f())),
        "da54454e53 84 62 7538 83020004 61 43 40",
    );
    assert_bytes(
        &tenarc::to_vec(&Tensor(Vec::<i64>::new())).unwrap(),
        "da54454e53 84 63 693634 8100 61 43 40",
    );
    assert_bytes(
        &encode(&Array2::<Complex<f32>>::default((1, 0))),
        "da54454e53 84 63 633634 820100 61 43 40",
    );
}

#[test]
fn dtypes_without_a_rust_type_stand_under_the_own_tag() {
    let scales = DynTensor::new(DType::F8E4M3, &[2, 2], Order::F, vec![1, 2, 3, 4]).unwrap();
    assert_bytes(
        &tenarc::to_vec(&Tensor(scales)).unwrap(),
        "da54454e53 84 67 66385f65346d33 820202 61 46 44 01020304",
    );
    let packed = DynTensor::new(DType::F4, &[4], Order::C, vec![0x21, 0x43]).unwrap();
    assert_bytes(
        &tenarc::to_vec(&Tensor(packed)).unwrap(),
        "da54454e53 84 62 6634 8104 61 43 42 2143",
    );
    let unknown = DynTensor::new(DType::from_name("posit16"), &[1], Order::C, vec![1, 2]).unwrap();
    assert_bytes(
        &tenarc::to_vec(&Tensor(unknown)).unwrap(),
        "da54454e53 84 67 706f7369743136 8101 61 43 42 0102",
    );
}

#[test]
fn quadruple_floats_have_a_typed_array() {
    let one = (0x3fff_u128 << 112).to_le_bytes().to_vec();
    let wide = DynTensor::new(DType::F128, &[1], Order::C, one).unwrap();
    assert_bytes(
        &tenarc::to_vec(&Tensor(wide)).unwrap(),
        "d828 82 8101 d857 50 0000000000000000000000000000ff3f",
    );
}

#[test]
fn byte_strings_have_the_shortest_head() {
    for (len, head) in [
        (23, "57"),
        (24, "5818"),
        (255, "58ff"),
        (256, "590100"),
        (65_535, "59ffff"),
        (65_536, "5a00010000"),
    ] {
        let bytes = tenarc::to_vec(&Tensor(vec![0u8; len])).unwrap();
        let bytes = hex(&bytes[..bytes.len() - len]);
        assert!(bytes.ends_with(&format!("d840{head}")), "{bytes}");
    }
}

#[test]
fn the_order_of_a_vector_is_not_told() {
    let vector = ArrayD::from_shape_vec(IxDyn(&[3]).f(), vec![1u8, 2, 3]).unwrap();
    assert_bytes(&encode(&vector), "d828 82 8103 d840 43 010203");
    let dynamic = DynTensor::new(DType::U8, &[3], Order::F, vec![1, 2, 3]).unwrap();
    assert_eq!(dynamic.order(), Order::C);
    assert_bytes(&tenarc::to_vec(&Tensor(dynamic)).unwrap(), "d828 82 8103 d840 43 010203");
}

#[test]
fn tensors_do_not_depend_on_the_typed_array_option() {
    let matrix = Tensor(Array2::<f64>::eye(20));
    let options = tenarc::ser::EncodeOptions::default().with_typed_arrays(true);
    assert_eq!(
        tenarc::to_vec(&matrix).unwrap(),
        tenarc::ser::to_vec_with(&matrix, options).unwrap()
    );
}
