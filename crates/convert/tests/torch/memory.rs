//! Reading takes little memory, whatever the file claims.

use tenarc::DType;
use tenarc_convert::torch::{self, TorchFile};
use tenarc_convert::{Format, Options, TensorFile as _};

use super::support::{Pickler, file, floats, under_a};
use tenarc_test_support::alloc::peak_of;

const MIB: usize = 1 << 20;

#[test]
fn a_conversion_takes_blocks_of_a_tensor() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("x.pt"), dir.path().join("x.tenarc"));
    let storage = vec![7; 16 * MIB];
    for (shape, strides) in [
        (&[16 * MIB as i64][..], &[1][..]),
        (&[4096, 4096], &[1, 4096]),
        (&[8 * MIB as i64], &[1]),
        // Larger than its storage.
        (&[2, 16 * MIB as i64], &[0, 1]),
    ] {
        let pickle =
            under_a(|pickle| pickle.tensor("ByteStorage", storage.len() as i64, 0, shape, strides));
        std::fs::write(&from, file(&pickle, &storage)).unwrap();
        let (converted, taken) =
            peak_of(|| Format::Torch.to_archive(&from, &to, &Options::default()));
        converted.unwrap();
        let most = if strides[0] == 0 { 17 * MIB } else { 2 * MIB };
        assert!(taken < most, "{taken} bytes for {shape:?}");
    }
}

#[test]
fn a_tensor_is_read_into_its_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.pt");
    let storage = vec![7; 16 * MIB];
    let pickle = under_a(|pickle| {
        pickle.tensor("FloatStorage", 4 * MIB as i64, 0, &[2048, 2048], &[2048, 1])
    });
    std::fs::write(&path, file(&pickle, &storage)).unwrap();
    let found = torch::open(&path).unwrap();
    let (tensor, taken) = peak_of(|| found.dyn_tensor("a"));
    assert_eq!(tensor.unwrap().dtype(), &DType::F32);
    assert!(taken < 18 * MIB, "{taken}");
}

#[test]
fn claims_take_no_memory() {
    let claims: [&[u8]; 5] = [
        b"X\xff\xff\xff\xffx",
        b"\x8e\xff\xff\xff\xff\xff\xff\xff\x00x",
        b"\x8b\xff\xff\xff\x7fx",
        b"Nr\xff\xff\xff\xff",
        b"\x95\xff\xff\xff\xff\xff\xff\xff\x7f",
    ];
    for claim in claims {
        let bytes = file(&Pickler::new().op(claim).end(), &floats(12));
        let (_, taken) = peak_of(|| TorchFile::new(&bytes[..]).map(drop));
        assert!(taken < MIB, "{taken} bytes");
    }
    let pickle = under_a(|pickle| pickle.tensor("FloatStorage", 12, 0, &[1 << 31], &[0]));
    let bytes = file(&pickle, &floats(12));
    let found = TorchFile::new(&bytes[..]).unwrap();
    let (deferred, taken) = peak_of(|| found.deferred("a").map(drop));
    deferred.unwrap();
    assert!(taken < MIB, "{taken} bytes");
}

#[test]
fn a_pickle_of_nothing_but_operations_takes_a_bounded_multiple() {
    for (operation, most) in [(&b"]\x94"[..], 320 * MIB), (b"}", 320 * MIB), (b"(", 64 * MIB)] {
        let bytes = file(&Pickler::new().op(operation.repeat(MIB)).0, b"");
        let (found, taken) = peak_of(|| TorchFile::new(&bytes[..]).map(drop));
        assert!(found.is_err());
        assert!(taken < most, "{taken} bytes");
    }
}
