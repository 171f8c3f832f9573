//! Where elements are: checked against the storage, gathered in order.

use ndarray::{Array2, ArrayD};
use tenarc::DType;
use tenarc::de::Limits;
use tenarc::error::Category;
use tenarc::tensor::Order;
use tenarc_convert::TensorFile as _;
use tenarc_convert::torch::TorchFile;

use super::support::{Slow, file, floats, refused, says, under_a, zip};

fn of(offset: i64, shape: &[i64], strides: &[i64]) -> Vec<u8> {
    under_a(|pickle| pickle.tensor("FloatStorage", 12, offset, shape, strides))
}

#[test]
fn every_view_of_a_small_storage_is_read_or_refused_as_its_numbers_say() {
    let (mut good, mut bad) = (0, 0);
    for number in 0..4 * 4 * 4 * 5 * 5 * 2 {
        let digit = |base: i64, of: i64| (number / base) % of;
        let shape = [digit(1, 4), digit(4, 4), digit(16, 4)];
        let strides = [digit(64, 5), digit(320, 5), digit(1600, 2)];
        let offset = number % 3;
        let bytes = file(&of(offset, &shape, &strides), &floats(12));
        let last: i64 = offset
            + shape.iter().zip(strides).map(|(&dim, stride)| (dim - 1) * stride).sum::<i64>();
        let found = TorchFile::new(&bytes[..]);
        if !shape.contains(&0) && last >= 12 {
            says(found, "lie outside of the 48 bytes");
            bad += 1;
            continue;
        }
        let found = found.unwrap();
        let tensor: ArrayD<f32> = found.tensor("a").unwrap();
        assert_eq!(tensor.shape(), shape.map(|dim| dim as usize));
        for (index, &value) in tensor.indexed_iter() {
            let at: i64 = (0..3).map(|axis| index[axis] as i64 * strides[axis]).sum();
            assert_eq!(value, (offset + at) as f32, "{shape:?} {strides:?}");
        }
        let slow = TorchFile::new(Slow(&bytes)).unwrap();
        assert_eq!(slow.tensor::<ArrayD<f32>>("a").unwrap(), tensor);
        good += 1;
    }
    assert!(good > 1000 && bad > 90, "{good} {bad}");
}

#[test]
fn shapes_and_strides_that_overflow_are_refused() {
    let most = i64::MAX;
    for (offset, shape, strides, text) in [
        (0, &[most, most, 0][..], &[1, 1, 1][..], "does not fit in memory"),
        (0, &[most, 4], &[0, 0], "does not fit in memory"),
        (0, &[1 << 62], &[0], "does not fit in memory"),
        (0, &[2, 2], &[most, most], "lie outside"),
        (most, &[1], &[1], "lie outside"),
        (12, &[1], &[1], "lie outside"),
        (11, &[2], &[1], "lie outside"),
        (0, &[13], &[1], "lie outside"),
        (0, &[2], &[1, 1], "expected 1 strides, found 2"),
        (0, &[2, 2], &[1], "expected 2 strides, found 1"),
    ] {
        refused(&of(offset, shape, strides), text);
    }
    // Along an axis of one element nothing moves, and of no elements none is anywhere.
    let stays = of(11, &[1, 1], &[most, most]);
    let found = TorchFile::new(file(&stays, &floats(12))).unwrap();
    assert_eq!(found.tensor::<Array2<f32>>("a").unwrap()[[0, 0]], 11.0);
    let none = of(most, &[0, 3], &[most, 1]);
    let found = TorchFile::new(file(&none, &floats(12))).unwrap();
    assert_eq!(found.tensor::<Array2<f32>>("a").unwrap().shape(), [0, 3]);
}

#[test]
fn tensors_that_are_larger_than_their_storage_are_limited() {
    let pickle = of(0, &[1 << 40], &[0]);
    let found = TorchFile::new(file(&pickle, &floats(12))).unwrap();
    assert_eq!(says(found.dyn_tensor("a"), "are allowed").category(), Category::Limit);
    says(found.deferred("a"), "are allowed");
    says(found.flat(), "are allowed");
    let pickle = of(0, &[100, 12], &[0, 1]);
    let found = TorchFile::new(file(&pickle, &floats(12))).unwrap();
    assert!(found.dyn_tensor("a").is_ok());
    let strict = found.with_limits(Limits::default().with_max_alloc(1000));
    says(strict.dyn_tensor("a"), "the tensor has 4800 bytes, 1000 are allowed");
    let strict = strict.with_limits(Limits::default().with_max_rank(1));
    says(strict.dyn_tensor("a"), "2 dimensions, 1 are allowed");
}

#[test]
fn many_small_tensors_do_not_mean_something_huge() {
    let mut pickle = super::support::Pickler::new().op(b"}");
    for number in 0..100 {
        let pickle_of = pickle.text(&format!("a{number}"));
        pickle = pickle_of.tensor("FloatStorage", 12, 0, &[1 << 20], &[0]).op(b"s");
    }
    let found = TorchFile::new(file(&pickle.end(), &floats(12))).unwrap();
    assert!(found.dyn_tensor("a7").is_ok());
    let error = says(
        found.flat(),
        "the storages have 16650 bytes, and tensors that share them take 419430400",
    );
    assert_eq!(error.category(), Category::Limit);
    says(found.nested(), "are allowed");
    assert!(found.with_limits(Limits::default().with_max_alloc(1 << 30)).flat().is_ok());
}

#[test]
fn a_changed_byte_is_found_where_a_view_reaches_over_its_storage() {
    let axes = [(&[3, 4][..], &[1, 3][..]), (&[2, 3, 2], &[1, 4, 2]), (&[4, 2], &[3, 2])];
    for (shape, strides) in axes {
        let bytes = file(&of(0, shape, strides), &floats(12));
        let at = bytes.windows(48).position(|window| window == floats(12)).unwrap();
        let mut changed = bytes.clone();
        changed[at + 20] ^= 1;
        let whole = TorchFile::new(&bytes[..]).unwrap();
        assert!(whole.dyn_tensor("a").is_ok());
        let found = TorchFile::new(&changed[..]).unwrap();
        assert_eq!(found.dyn_tensor("a").unwrap_err().category(), Category::Damaged);
    }
}

#[test]
fn storages_must_have_the_size_that_the_pickle_says() {
    for claimed in [0, 11, 13, i64::MAX] {
        let pickle = under_a(|pickle| pickle.tensor("FloatStorage", claimed, 0, &[0], &[1]));
        assert_eq!(refused(&pickle, "as the pickle says, found 48 bytes"), Category::Damaged);
    }
    refused(&under_a(|pickle| pickle.tensor("FloatStorage", -1, 0, &[0], &[1])), "id of a storage");
    let elsewhere = under_a(|pickle| {
        let pickle = pickle.global("torch._utils", "_rebuild_tensor_v2").op(b"(");
        let pickle = pickle.storage("FloatStorage", "../data.pkl", 12).int(0).op(b"))");
        pickle.op(b"\x89").hooks().op(b"tR")
    });
    refused(&elsewhere, "the file has no storage `data/../data.pkl`");
}

#[test]
fn a_large_view_is_gathered_in_blocks() {
    // 700 × 700 floats, every other column, from behind; more than a block of them.
    let all: Vec<u8> = (0..700u32 * 1400).flat_map(|at| (at as f32).to_le_bytes()).collect();
    let pickle =
        under_a(|pickle| pickle.tensor("FloatStorage", 980_000, 1, &[700, 700], &[1400, 2]));
    let bytes = file(&pickle, &all);
    let expected =
        Array2::from_shape_fn((700, 700), |(row, column)| (row * 1400 + column * 2 + 1) as f32);
    let found = TorchFile::new(&bytes[..]).unwrap();
    assert_eq!(found.tensor::<Array2<f32>>("a").unwrap(), expected);
    // A few elements, wide apart: read one by one, rather than all that is between them.
    let pickle =
        under_a(|pickle| pickle.tensor("FloatStorage", 980_000, 5, &[3, 2], &[400_000, 2]));
    let bytes = file(&pickle, &all);
    let found = TorchFile::new(Slow(&bytes)).unwrap();
    let tensor: Array2<f32> = found.tensor("a").unwrap();
    assert_eq!(
        tensor.into_raw_vec_and_offset().0,
        [5.0, 7.0, 400_005.0, 400_007.0, 800_005.0, 800_007.0]
    );
}

#[test]
fn big_endian_files_give_the_same_numbers() {
    let big = |kind: &str, count: i64, storage: &[u8], shape: &[i64], strides: &[i64]| {
        let pickle = under_a(|pickle| pickle.tensor(kind, count, 0, shape, strides));
        let bytes = zip(&[
            ("f/data.pkl", &pickle),
            ("f/byteorder", b"big"),
            ("f/data/0", storage),
            ("f/version", b"3\n"),
        ]);
        TorchFile::new(bytes).unwrap().dyn_tensor("a").unwrap()
    };
    let storage: Vec<u8> = (0..6u16).flat_map(|at| f32::from(at).to_be_bytes()).collect();
    let whole = big("FloatStorage", 6, &storage, &[2, 3], &[3, 1]).into_array::<f32>().unwrap();
    assert_eq!(whole.into_raw_vec_and_offset().0, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let view = big("FloatStorage", 6, &storage, &[2, 2], &[3, 2]).into_array::<f32>().unwrap();
    assert_eq!(view.into_raw_vec_and_offset().0, [0.0, 2.0, 3.0, 5.0]);
    let turned = big("FloatStorage", 6, &storage, &[3, 2], &[1, 3]);
    assert_eq!(turned.order(), Order::F);
    let complex = big("ComplexFloatStorage", 3, &storage, &[3], &[1]);
    assert_eq!(complex.dtype(), &DType::C64);
    assert_eq!(complex.le_bytes()[..8], [0.0f32.to_le_bytes(), 1.0f32.to_le_bytes()].concat());
}

#[test]
fn bools_are_zero_or_one() {
    let pickle = under_a(|pickle| pickle.tensor("BoolStorage", 2, 0, &[2], &[1]));
    let found = TorchFile::new(file(&pickle, &[1, 0])).unwrap();
    assert_eq!(
        found.dyn_tensor("a").unwrap().view::<bool>().unwrap().as_slice(),
        Some(&[true, false][..])
    );
    let found = TorchFile::new(file(&pickle, &[1, 2])).unwrap();
    says(found.dyn_tensor("a"), "the byte 2; it must be 0 or 1");
    assert!(tenarc::to_vec(&found.flat().unwrap()).is_err());
}

#[test]
fn dtypes_of_their_own_count_offsets_in_their_elements() {
    let pickle = under_a(|pickle| pickle.tensor_v3("uint16", 8, 1, &[3], &[1]));
    let found = TorchFile::new(file(&pickle, &[0, 0, 1, 0, 2, 0, 3, 1])).unwrap();
    assert_eq!(found.tensor::<Vec<u16>>("a").unwrap(), [1, 2, 259]);
    let beyond = under_a(|pickle| pickle.tensor_v3("uint16", 8, 2, &[3], &[1]));
    says(TorchFile::new(file(&beyond, &[0; 8])), "lie outside of the 8 bytes");
}
