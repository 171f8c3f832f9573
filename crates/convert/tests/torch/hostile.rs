//! Files made to attack the reader.

use tenarc::error::Category;
use tenarc_convert::TensorFile as _;
use tenarc_convert::torch::TorchFile;

use super::support::{Pickler, all, file, fixture, floats, refused, says, under_a};

fn small() -> Vec<u8> {
    let pickle = Pickler::new().op(b"}(").text("w").tensor("FloatStorage", 6, 0, &[3, 2], &[1, 3]);
    let pickle = pickle.text("v").tensor("FloatStorage", 6, 1, &[2, 2], &[2, 1]);
    file(&pickle.text("n").op(b"K\x07u").end(), &floats(6))
}

#[test]
fn no_truncation_is_read() {
    for bytes in [small(), fixture("list.pt")] {
        all(&bytes).unwrap();
        for len in 0..bytes.len() {
            assert!(all(&bytes[..len]).is_err(), "{len}");
        }
    }
}

#[test]
fn no_changed_byte_panics_or_changes_a_tensor_unseen() {
    let good = small();
    let expected = |bytes: &[u8]| {
        let file = TorchFile::new(bytes)?;
        Ok::<_, tenarc::Error>([file.dyn_tensor("w")?, file.dyn_tensor("v")?])
    };
    let tensors = expected(&good).unwrap();
    for at in 0..good.len() {
        for change in [1, 4, 32, 128, 0xff] {
            let mut bytes = good.clone();
            bytes[at] ^= change;
            // All checksums are right where this is.
            if all(&bytes).is_ok() {
                let found = expected(&bytes).unwrap();
                assert!(
                    found.iter().zip(&tensors).all(|(a, b)| a.le_bytes() == b.le_bytes()),
                    "{at}"
                );
            }
        }
    }
    for (name, step) in
        [("views.pt", 3), ("whole_model.pt", 3), ("traced.pt", 17), ("numpy_protocol_5.pt", 3)]
    {
        let good = fixture(name);
        for at in (0..good.len()).step_by(step) {
            let mut bytes = good.clone();
            bytes[at] ^= 1 << (at % 8);
            let _ = all(&bytes);
        }
    }
}

#[test]
fn no_changed_byte_of_a_pickle_panics() {
    // With checksums that are right, so that the machine is reached.
    let pickle = Pickler::new().op(b"}(").text("w").tensor("FloatStorage", 6, 0, &[3, 2], &[1, 3]);
    let pickle = pickle.text("v").tensor_v3("uint16", 24, 1, &[2, 2], &[2, 1]);
    let pickle = pickle.text("n").op(b"K\x07u").end();
    let mut read = 0;
    for at in 0..pickle.len() {
        for change in (1..=255).step_by(11) {
            let mut bytes = pickle.clone();
            bytes[at] ^= change;
            read += u32::from(all(&file(&bytes, &floats(6))).is_ok());
        }
        let mut shorter = pickle.clone();
        shorter.remove(at);
        let _ = all(&file(&shorter, &floats(6)));
    }
    assert!(read > 0);
}

/// What is lost of a file, and what is read of it, in diagnostic notation.
fn lossy(pickle: &[u8]) -> (String, String) {
    let found = TorchFile::new(file(pickle, &floats(12))).unwrap();
    let bytes = tenarc::to_vec(&found.stored().unwrap()).unwrap();
    let listed: Vec<_> = found.losses().listed().iter().map(ToString::to_string).collect();
    (listed.join("\n"), tenarc::diag::to_string(&bytes).unwrap())
}

#[test]
fn objects_that_hold_themselves_are_lost_where_they_do() {
    let itself = "an object that contains itself";
    let cases = [
        (Pickler::new().op(b"]q\x00(K\x01h\x00K\x02e").end(), "`1`: ", "[1, null, 2]"),
        (
            Pickler::new().op(b"}q\x00(").text("a").op(b"h\x00").text("b").op(b"K\x01u").end(),
            "`a`: ",
            "{\"b\": 1}",
        ),
        (under_a(|pickle| pickle.op(b"]q\x01h\x01\x85a")), "`a.0.0`: ", "{\"a\": [[null]]}"),
    ];
    for (pickle, path, value) in cases {
        let (losses, read) = lossy(&pickle);
        assert!(losses.contains(&format!("{path}{itself}")), "{losses}");
        assert_eq!(read, value);
    }
    // Beside a tensor that is in the cycle.
    let pickle = Pickler::new().op(b"}q\x00(").text("w").tensor("FloatStorage", 12, 0, &[12], &[1]);
    let bytes = file(&pickle.text("me").op(b"h\x00u").end(), &floats(12));
    all(&bytes).unwrap();
    let found = TorchFile::new(&bytes[..]).unwrap();
    assert_eq!((found.tensors().len(), found.losses().count()), (1, 1));
}

#[test]
fn objects_that_all_hold_each_other_are_read_in_bounds() {
    // Written out along every way, thirty lists that hold each other are more than there are atoms.
    let count = 30u8;
    let mut pickle = Pickler::new();
    for number in 0..count {
        pickle = pickle.op([b']', b'q', number, b'0']);
    }
    for number in 0..count {
        pickle = pickle.op([b'h', number, b'(']);
        for other in 0..count {
            pickle = pickle.op([b'h', other]);
        }
        pickle = pickle.op(b"e0");
    }
    refused(&pickle.op(b"h\x00.").0, "the pickle is too large");
}

#[test]
fn nesting_is_limited() {
    let nested = |levels| Pickler::new().op(b"]".repeat(levels)).op(b"a".repeat(levels - 1)).end();
    assert!(TorchFile::new(file(&nested(60), b"")).is_ok());
    for levels in [62, 100_000, 1_000_000] {
        assert_eq!(refused(&nested(levels), "nests more than 60 levels"), Category::Limit);
    }
    // Deep only where shared parts are put together.
    let mut pickle = Pickler::new().op(b"]");
    for _ in 0..1000 {
        pickle = pickle.op(b"q\x000]h\x00a");
    }
    refused(&pickle.end(), "nests more than");
}

#[test]
fn memo_bombs_are_refused() {
    // Each list holds the one before ten times; written out, they would be 10^30 numbers.
    let mut pickle = Pickler::new().op(b"]K\x01a");
    for _ in 0..30 {
        pickle = pickle.op(b"q\x000](").op(b"h\x00".repeat(10)).op(b"e");
    }
    assert_eq!(refused(&pickle.end(), "the pickle is too large"), Category::Limit);
    // The same with a tensor at its bottom, and with one long text.
    let mut pickle = Pickler::new().tensor("FloatStorage", 12, 0, &[12], &[1]);
    for _ in 0..30 {
        pickle = pickle.op(b"q\x000](").op(b"h\x00".repeat(10)).op(b"e");
    }
    refused(&pickle.end(), "the pickle is too large");
    let text = Pickler::new().op(b"](").text(&"x".repeat(1 << 20)).op(b"q\x00");
    refused(&text.op(b"h\x00".repeat(1 << 10)).op(b"e").end(), "the pickle is too large");
    // Bytes made of a text, again and again.
    let pickle = Pickler::new().op(b"](").text(&"x".repeat(1 << 20)).op(b"q\x000");
    let pickle = pickle.global("_codecs", "encode").op(b"q\x010");
    let again = Pickler(b"h\x01h\x00N\x86R0".repeat(1000));
    refused(&pickle.op(again.0).op(b"e").end(), "bytes of objects");
    refused(&Pickler::new().op(b"N0".repeat(1 << 22)).end(), "opcodes");
}

#[test]
fn a_state_that_many_objects_are_given_is_not_walked_for_each_of_them() {
    let entry = |number: u32| [b"J", &number.to_le_bytes()[..], b"N"].concat();
    let entries: Vec<u8> = (0..100_000).flat_map(entry).collect();
    let state = Pickler::new().op(b"}q\x00(").op(entries).op(b"u0}");
    // 30 walks are below the limit of 4 million, and 50 are above it.
    let given = |times: usize| state.clone().op(b"h\x00b".repeat(times)).end();
    assert!(TorchFile::new(file(&given(30), b"")).is_ok());
    assert_eq!(refused(&given(50), "opcodes and entries of states"), Category::Limit);
}

#[test]
fn keys_that_clash_are_lost() {
    let tensor = |pickle: Pickler| pickle.tensor("FloatStorage", 12, 0, &[12], &[1]);
    let twice = Pickler::new().op(b"}(").text("a").op(b"N").text("a").op(b"K\x07u").end();
    let (losses, read) = lossy(&twice);
    assert!(losses.contains("reads like that of another entry"), "{losses}");
    assert_eq!(read, "{\"a\": null}");
    let integer = tensor(tensor(Pickler::new().op(b"}(").text("1")).op(b"K\x01")).op(b"u").end();
    let found = TorchFile::new(file(&integer, &floats(12))).unwrap();
    assert_eq!((found.tensors().len(), found.losses().tensors()), (1, 1));
    let other = Pickler::new().op(b"}(").text("a").op(b"NNK\x01u").end();
    assert!(lossy(&other).0.contains("neither a text nor an integer"));
    // Names that only cannot be nested.
    let through = tensor(tensor(Pickler::new().op(b"}(").text("a")).text("a.b")).op(b"u").end();
    let found = TorchFile::new(file(&through, &floats(12))).unwrap();
    assert!(found.flat().is_ok());
    says(found.nested(), "cannot be nested");
}

#[test]
fn names_from_the_file_do_not_reach_a_terminal_as_they_are() {
    let pickle = under_a(|pickle| pickle.global("evil\u{1b}[31m", "x").op(b")R"));
    let found = TorchFile::new(file(&pickle, &floats(12))).unwrap();
    let shown = found.losses().notes().join("\n");
    assert!(shown.contains("evil") && !shown.contains('\u{1b}'), "{shown:?}");
    let pickle = under_a(|pickle| pickle.tensor("x\u{1b}Storage", 12, 0, &[12], &[1]));
    let found = TorchFile::new(file(&pickle, &floats(12))).unwrap();
    let shown = found.losses().to_string();
    assert!(shown.contains("Storage") && !shown.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn one_state_of_many_objects_is_not_many_states() {
    let mut pickle = Pickler::new().op(b"](}(");
    for number in 0..3000u16 {
        pickle = pickle.op(b"M").op(number.to_le_bytes()).op(b"N");
    }
    // The tuple of a dict and of slots.
    pickle = pickle.op(b"uN\x86q\x000");
    for _ in 0..3000 {
        pickle = pickle.global("my", "C").op(b")\x81h\x00b");
    }
    assert_eq!(refused(&pickle.op(b"e").end(), "attributes together"), Category::Limit);
}

#[test]
fn long_names_are_refused() {
    let long = |len: usize| Pickler::new().op(b"}").text(&"x".repeat(len)).op(b"Ns").end();
    assert!(TorchFile::new(file(&long(1 << 16), b"")).is_ok());
    assert_eq!(
        refused(&long((1 << 16) + 1), "the path has more than 65536 bytes"),
        Category::Limit
    );
    refused(
        &under_a(|pickle| pickle.global("torch", "").text("x").op(b"\x85R\x85Q")),
        "expected the id",
    );
}
