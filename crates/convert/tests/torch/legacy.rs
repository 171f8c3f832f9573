//! Files of torch before 1.6, by hand.

use tenarc::error::Category;
use tenarc_convert::TensorFile as _;
use tenarc_convert::torch::{TorchFile, is_legacy};
use tenarc_test_support::alloc::peak_of;

use super::support::{Pickler, Slow, all, fixture, floats, says, under_a};

const MAGIC: &[u8] = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.";

/// A file of this value, whose storages have these names.
fn legacy(version: i64, value: &[u8], names: &[&str]) -> Vec<u8> {
    let number = Pickler::new().int(version).end();
    let machine = Pickler::new().op(b"}").end();
    let names = names.iter().fold(Pickler::new().op(b"]"), |all, name| all.text(name).op(b"a"));
    [MAGIC, &number, &machine, value, &names.end()].concat()
}

/// A storage as it stands behind the pickles.
fn storage(count: u64, bytes: &[u8]) -> Vec<u8> {
    [&count.to_le_bytes()[..], bytes].concat()
}

/// A tensor of floats in storage `0`, of which the id says this is the part that is meant.
fn tensor(view: impl FnOnce(Pickler) -> Pickler, offset: i64, count: i64) -> Vec<u8> {
    under_a(|pickle| {
        let pickle = pickle.global("torch._utils", "_rebuild_tensor").op(b"((").text("storage");
        let pickle = pickle.global("torch", "FloatStorage").text("0").text("cpu").int(12);
        view(pickle).op(b"tQ").int(offset).ints(&[count]).ints(&[1]).op(b"tR")
    })
}

fn good() -> Vec<u8> {
    let value = tensor(|pickle| pickle.op(b"N"), 0, 12);
    [legacy(1001, &value, &["0"]), storage(12, &floats(12))].concat()
}

#[test]
fn storages_are_read_in_place() {
    let bytes = good();
    all(&bytes).unwrap();
    let found = TorchFile::new(&bytes[..]).unwrap();
    assert!(found.losses().is_empty() && !found.has_checksums());
    let at = usize::try_from(found.position("a").unwrap().unwrap()).unwrap();
    assert_eq!(bytes[at..], floats(12));
    let slow = TorchFile::new(Slow(&bytes)).unwrap();
    assert_eq!(slow.tensor::<Vec<f32>>("a").unwrap()[11], 11.0);
    assert!(is_legacy(&bytes) && !is_legacy(b"PK\x03\x04") && !is_legacy(&bytes[1..]));
}

#[test]
fn parts_of_storages_are_views() {
    let view = |start, len| {
        let value = tensor(|pickle| pickle.op(b"(").text("v").int(start).int(len).op(b"t"), 1, 2);
        TorchFile::new([legacy(1001, &value, &["0"]), storage(12, &floats(12))].concat())
    };
    assert_eq!(view(3, 5).unwrap().tensor::<Vec<f32>>("a").unwrap(), [4.0, 5.0]);
    for (start, len) in [(11, 2), (12, 0), (i64::MAX, 2)] {
        says(view(start, len), "lie outside of the 48 bytes");
    }
    says(view(-1, 2), "id of a storage");
}

#[test]
fn no_truncation_is_read() {
    for good in [good(), fixture("legacy.pt"), fixture("legacy_protocol_4.pt")] {
        all(&good).unwrap();
        for len in 0..good.len() {
            assert!(all(&good[..len]).is_err(), "{len}");
            assert!(TorchFile::new(Slow(&good[..len])).is_err(), "{len}");
        }
    }
}

#[test]
fn no_changed_byte_panics() {
    for good in [good(), fixture("legacy.pt")] {
        for at in 0..good.len() {
            let mut bytes = good.clone();
            for change in [1, 0x80, 0xff] {
                bytes[at] ^= change;
                let _ = all(&bytes);
            }
        }
    }
}

#[test]
fn what_storages_claim_must_be_there() {
    let value = tensor(|pickle| pickle.op(b"N"), 0, 12);
    let with = |version, names: &[&str], storages: &[u8]| {
        TorchFile::new([&legacy(version, &value, names), storages].concat())
    };
    let whole = storage(12, &floats(12));
    assert!(with(1001, &["0"], &whole).is_ok());
    assert_eq!(says(with(1002, &["0"], &whole), "found 1002").category(), Category::Version);
    says(with(1001, &[], &whole), "no storage `0`");
    says(with(1001, &["1"], &whole), "no storage of this name and a known type");
    says(with(1001, &["0", "0"], &whole.repeat(2)), "two storages have this name");
    says(
        with(1001, &["0"], &storage(11, &floats(12))),
        "expected 12 elements, as the value says, found 11",
    );
    says(with(1001, &["0"], &storage(u64::MAX, &floats(12))), "found 18446744073709551615");
    says(with(1001, &["0"], &storage(12, &floats(11))), "12 elements, found 44 bytes");
    let more = with(1001, &["0"], &storage(12, &floats(14))).unwrap();
    assert_eq!(more.losses().listed()[0].to_string(), "8 bytes that follow the last storage");
    // Of numbers so large that their bytes are more than can be counted.
    let huge = under_a(|pickle| {
        let id = pickle.op(b"(").text("storage").global("torch", "DoubleStorage").text("0");
        id.text("cpu").int(i64::MAX).op(b"NtQ")
    });
    let bytes = [legacy(1001, &huge, &["0"]), storage(i64::MAX as u64, &floats(12))].concat();
    says(TorchFile::new(bytes), "9223372036854775807 elements, found 48 bytes");
    let list = [MAGIC, b"\x80\x02M\xe9\x03.", b"\x80\x02}.", &value, b"\x80\x02N."].concat();
    says(TorchFile::new(list), "a list of the names of storages");
    says(TorchFile::new([MAGIC, b"\x80\x02N."].concat()), "found a value that is not an integer");
}

#[test]
fn texts_and_containers_of_python_2_are_those_of_python_3() {
    let pair = |pickle: Pickler, key: &[u8], text: &[u8]| {
        let pickle = pickle.op(b"](U").op([key.len() as u8]).op(key);
        pickle.op(b"U").op([text.len() as u8]).op(text).op(b"e")
    };
    let dict = Pickler::new().global("collections", "OrderedDict").op(b"](");
    let dict = pair(pair(dict, b"a", b"hi"), b"b", b"\xff").op(b"e\x85R").end();
    let found = TorchFile::new(legacy(1001, &dict, &[])).unwrap();
    let text = tenarc::diag::to_string(&tenarc::to_vec(&found.stored().unwrap()).unwrap()).unwrap();
    assert_eq!(text, "{\"a\": \"hi\", \"b\": h'ff'}");
}

#[test]
fn a_long_pickle_is_read_in_parts_and_claims_take_no_memory() {
    let texts =
        (0..20_000).fold(Pickler::new().op(b"]("), |all, at| all.text(&format!("text {at}")));
    let bytes = legacy(1001, &texts.op(b"e").end(), &[]);
    assert!(bytes.len() > 200_000);
    let found = TorchFile::new(Slow(&bytes)).unwrap();
    let read: Vec<String> =
        tenarc::from_slice(&tenarc::to_vec(&found.stored().unwrap()).unwrap()).unwrap();
    assert_eq!((read.len(), &*read[19_999]), (20_000, "text 19999"));
    // A text that claims to be long is looked for as far as the file goes.
    let claim = legacy(1001, b"\x80\x02X\xff\xff\xff\x7fx.", &[]);
    let (result, taken) = peak_of(|| TorchFile::new(Slow(&claim)).map(drop));
    assert_eq!(says(result, "input ended").category(), Category::Eof);
    assert!(taken < 1 << 20, "{taken}");
}
