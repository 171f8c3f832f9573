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
    for name in ["views.pt", "whole_model.pt"] {
        let good = fixture(name);
        for at in 0..good.len() {
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

#[test]
fn objects_that_hold_themselves_are_refused() {
    refused(&Pickler::new().op(b"]q\x00h\x00a").end(), "contains itself");
    refused(&Pickler::new().op(b"}q\x00X\x01\0\0\0ah\x00s").end(), "contains itself");
    refused(&under_a(|pickle| pickle.op(b"]q\x01h\x01\x85a")), "contains itself");
    let attribute = Pickler::new().hooks().op(b"q\x00}").text("_metadata").op(b"h\x00sb").end();
    refused(&attribute, "contains itself");
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
    assert_eq!(refused(&pickle.end(), "more than is read"), Category::Limit);
    // The same with a tensor at its bottom, and with one long text.
    let mut pickle = Pickler::new().tensor("FloatStorage", 12, 0, &[12], &[1]);
    for _ in 0..30 {
        pickle = pickle.op(b"q\x000](").op(b"h\x00".repeat(10)).op(b"e");
    }
    refused(&pickle.end(), "more than is read");
    let text = Pickler::new().op(b"](").text(&"x".repeat(1 << 20)).op(b"q\x00");
    refused(&text.op(b"h\x00".repeat(1 << 10)).op(b"e").end(), "more than is read");
    // Bytes made of a text, again and again.
    let pickle = Pickler::new().op(b"](").text(&"x".repeat(1 << 20)).op(b"q\x000");
    let pickle = pickle.global("_codecs", "encode").op(b"q\x010");
    let again = Pickler(b"h\x01h\x00N\x86R0".repeat(1000));
    refused(&pickle.op(again.0).op(b"e").end(), "bytes of objects");
    refused(&Pickler::new().op(b"N0".repeat(1 << 22)).end(), "operations");
}

#[test]
fn names_that_clash_are_refused() {
    let twice = Pickler::new().op(b"}(").text("a").op(b"N").text("a").op(b"Nu").end();
    refused(&twice, "two entries under one name");
    let tensor = |pickle: Pickler| pickle.tensor("FloatStorage", 12, 0, &[12], &[1]);
    let dots = Pickler::new().op(b"}(").text("a.b");
    let dots = tensor(tensor(dots).text("a").op(b"}").text("b")).op(b"su").end();
    refused(&dots, "two values have this name");
    let integer = tensor(tensor(Pickler::new().op(b"}(").text("1")).op(b"K\x01")).op(b"u").end();
    refused(&integer, "two entries under one name");
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
    let shown = found.losses().to_string();
    assert!(shown.contains("evil") && !shown.contains('\u{1b}'), "{shown:?}");
    let pickle = under_a(|pickle| pickle.global("os", "\u{1b}[31m"));
    let error = says(TorchFile::new(file(&pickle, &floats(12))), "asks Python to run");
    assert!(!error.to_string().contains('\u{1b}'));
}

#[test]
fn long_names_are_refused() {
    let long = |len: usize| Pickler::new().op(b"}").text(&"x".repeat(len)).op(b"Ns").end();
    assert!(TorchFile::new(file(&long(1 << 16), b"")).is_ok());
    assert_eq!(refused(&long((1 << 16) + 1), "a name of more than 65536 bytes"), Category::Limit);
    refused(
        &under_a(|pickle| pickle.global("torch", "").text("x").op(b"\x85R\x85Q")),
        "expected the id",
    );
}
