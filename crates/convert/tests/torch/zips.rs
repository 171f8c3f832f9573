//! The zip file around the pickle.

use std::io::Write as _;

use tenarc::error::Category;
use tenarc_convert::torch::TorchFile;

use super::support::{all, file, fixture, floats, says, under_a, zip};

fn good() -> Vec<u8> {
    under_a(|pickle| pickle.tensor("FloatStorage", 12, 0, &[12], &[1]))
}

#[test]
fn members_must_be_those_of_torch() {
    let (pickle, floats) = (good(), floats(12));
    let with = |members: &[(&str, &[u8])]| TorchFile::new(zip(members));
    let data = ("f/data.pkl", &pickle[..]);
    let storage = ("f/data/0", &floats[..]);
    let version = ("f/version", &b"3\n"[..]);
    assert!(with(&[data, storage, version]).is_ok());
    says(with(&[]), "no member `…/data.pkl`");
    says(with(&[("data.pkl", &pickle), storage, version]), "no member `…/data.pkl`");
    says(with(&[data, storage, version, ("g/data.pkl", &pickle)]), "two members `…/data.pkl`");
    says(with(&[data, version]), "the file has no storage `data/0`");
    says(with(&[data, ("g/data/0", &floats), version]), "the file has no storage `data/0`");
    says(with(&[data, storage]), "no member `version`");
    let error =
        says(with(&[data, storage, ("f/version", b"11")]), "expected format version 1 to 10");
    assert_eq!(error.category(), Category::Version);
    says(with(&[data, storage, ("f/version", b"x\x1b")]), "expected format version 1 to 10");
    says(with(&[data, storage, version, ("f/byteorder", b"middle")]), "expected `little` or `big`");
    says(with(&[data, storage, version, ("f/byteorder", &[b'b'; 100])]), "at most 64 are read");
    let more =
        with(&[data, storage, version, ("f/extra", b""), ("g/data/0", b""), ("f/data/1", b"")]);
    let listed: Vec<_> = more.unwrap().losses().listed().iter().map(ToString::to_string).collect();
    assert_eq!(
        listed,
        [
            "`f/data/1`: a storage that the pickle does not use",
            "`f/extra`: a member that is neither torch's own nor a storage",
            "`g/data/0`: a member that is neither torch's own nor a storage",
        ]
    );
}

#[test]
fn checksums_are_compared() {
    let floats = floats(12);
    let changed = |pickle: &[u8]| {
        let mut bytes = file(pickle, &floats);
        let at = bytes.windows(48).position(|window| window == floats).unwrap();
        bytes[at + 40] ^= 1;
        bytes
    };
    let bytes = changed(&good());
    let found = TorchFile::new(&bytes[..]).unwrap();
    assert_eq!(says(found.dyn_tensor("a"), "the CRC-32 is").category(), Category::Damaged);
    // Of a part of a storage, only when that is asked for.
    let bytes = changed(&under_a(|pickle| pickle.tensor("FloatStorage", 12, 0, &[2], &[1])));
    let found = TorchFile::new(&bytes[..]).unwrap();
    assert!(found.dyn_tensor("a").is_ok());
    says(found.verify(), "the CRC-32 is");
}

#[test]
fn files_without_any_checksum_are_read() {
    let mut bytes = fixture("no_checksums.pt");
    let found = TorchFile::new(&bytes[..]).unwrap();
    assert!(!found.has_checksums());
    assert!(found.verify().is_ok());
    // One that has some must have all.
    let list = bytes.windows(4).position(|window| window == b"PK\x01\x02").unwrap();
    bytes[list + 16] = 1;
    says(TorchFile::new(&bytes[..]), "the CRC-32 is");
    assert!(TorchFile::new(fixture("tensor.pt")).unwrap().has_checksums());
}

#[test]
fn compressed_members_are_refused_before_they_are_inflated() {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&vec![0; 10 << 20]).unwrap();
    let bomb = encoder.finish().unwrap();
    // The method, and the size inflated, of the one member, in both places.
    let mut bytes = zip(&[("f/data.pkl", &bomb)]);
    let central = bytes.windows(4).position(|window| window == b"PK\x01\x02").unwrap();
    for fields in [4, central + 6] {
        bytes[fields + 4] = 8;
        bytes[fields + 18..fields + 22].copy_from_slice(&(10u32 << 20).to_le_bytes());
    }
    let error = says(TorchFile::new(&bytes[..]), "");
    assert!(
        matches!(error.category(), Category::Data | Category::Limit | Category::Damaged),
        "{error}"
    );
    let with_version = |bytes: &[u8]| all(bytes);
    assert!(with_version(&bytes).is_err());
}

#[test]
fn members_that_lie_over_each_other_are_refused() {
    let bytes = zip(&[("f/data.pkl", &good()), ("f/data/0", &floats(12)), ("f/version", b"3\n")]);
    // The second member where the first is.
    let mut over = bytes.clone();
    let list = bytes.windows(4).position(|window| window == b"PK\x01\x02").unwrap();
    let second = list + 46 + "f/data.pkl".len();
    over[second + 42..second + 46].fill(0);
    assert_eq!(
        says(TorchFile::new(&over[..]), "the next part of the file starts at").category(),
        Category::Damaged
    );
    // A storage that claims more than lies before the next member.
    let mut long = bytes;
    let storage = long.windows(8).position(|window| window == b"f/data/0").unwrap() - 30;
    for sizes in [storage + 18, second + 20] {
        long[sizes..sizes + 8].copy_from_slice(&[0, 1, 0, 0, 0, 1, 0, 0]);
    }
    says(TorchFile::new(&long[..]), "the next part of the file starts at");
}
