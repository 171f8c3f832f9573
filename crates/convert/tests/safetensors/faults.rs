//! A save that fails changes no file and leaves none behind.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use tenarc::archive::SaveOptions;
use tenarc::error::Category;
use tenarc::tensor::{Deferred, Order, ToTensor};
use tenarc::{DType, Error, Tensor};
use tenarc_convert::TensorFile as _;
use tenarc_convert::safetensors::{self, SafeTensors};
use tenarc_convert::{Format, Names, Options};

use crate::support::{names, quick, raw, tensor, written};

fn blocks<'a>(
    len: usize,
    write: impl Fn(&mut dyn FnMut(&[u8]) -> tenarc::Result<()>) -> tenarc::Result<()> + 'a,
) -> Deferred<'a> {
    Deferred::from_blocks(DType::U8, &[len], Order::C, write)
}

fn custom() -> Error {
    serde::ser::Error::custom("the GPU is gone")
}

/// Every way in which a tensor fails to give what it promised.
fn faulty() -> Vec<(&'static str, Deferred<'static>)> {
    vec![
        ("the GPU is gone", blocks(100_000, |_| Err(custom()))),
        ("the GPU is gone", blocks(100_000, |put| put(&[0; 99_999]).and_then(|()| Err(custom())))),
        ("found fewer", blocks(100_000, |put| put(&[0; 99_999]))),
        ("found fewer", blocks(1, |_| Ok(()))),
        ("found more", blocks(100_000, |put| put(&[0; 100_001]))),
        ("found more", blocks(0, |put| put(&[0]))),
        ("fetched with 2", Deferred::new(&[3], || Ok::<_, io::Error>(vec![0u8; 2]))),
    ]
}

#[test]
fn a_tensor_that_fails_leaves_what_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.safetensors");
    let old = [("a", tensor(&DType::F32, &[10], 1))];
    safetensors::save_with(&path, &old, &quick()).unwrap();
    let before = std::fs::read(&path).unwrap();
    let good = tensor(&DType::F64, &[50_000], 1);
    for (message, faulty) in faulty() {
        let tensors: [(&str, &dyn ToTensor); 2] = [("good", &good), ("bad", &faulty)];
        let error = safetensors::save_with(&path, &tensors, &quick()).unwrap_err();
        assert!(error.to_string().contains(message), "{message}: {error}");
        assert_eq!(error.path(), "bad");
        assert_eq!(names(dir.path()), ["a.safetensors"]);
        assert!(std::fs::read(&path).unwrap() == before);
    }
    let panics = blocks(10, |_| panic!("a tensor that panics"));
    let tensors: [(&str, &dyn ToTensor); 2] = [("good", &good), ("bad", &panics)];
    let caught =
        catch_unwind(AssertUnwindSafe(|| safetensors::save_with(&path, &tensors, &quick())));
    assert!(caught.is_err());
    assert_eq!(names(dir.path()), ["a.safetensors"]);
    assert!(std::fs::read(&path).unwrap() == before);
}

#[test]
fn a_place_that_cannot_be_written_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let tensors = [("a", tensor(&DType::F32, &[10], 1))];
    for path in [dir.path().to_owned(), dir.path().join("none/a.safetensors"), "".into()] {
        let error = safetensors::save_with(&path, &tensors, &quick()).unwrap_err();
        assert_eq!(error.category(), Category::Io, "{error}");
    }
    assert!(names(dir.path()).is_empty());
}

#[cfg(unix)]
#[test]
fn a_link_is_replaced_and_not_followed() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    let dir = tempfile::tempdir().unwrap();
    let (path, target) = (dir.path().join("a.safetensors"), dir.path().join("target"));
    std::fs::write(&target, "precious").unwrap();
    std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o600)).unwrap();
    symlink(&target, &path).unwrap();
    safetensors::save_with(&path, &[("a", tensor(&DType::F32, &[10], 1))], &quick()).unwrap();
    assert_eq!(std::fs::read(&target).unwrap(), b"precious");
    let found = std::fs::symlink_metadata(&path).unwrap();
    assert!(found.is_file());
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    safetensors::open(&path).unwrap();
}

/// A writer that takes so many bytes.
struct Limited {
    left: usize,
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "no room"));
        }
        let taken = bytes.len().min(self.left).min(7);
        self.left -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_writer_that_fails_anywhere_is_told_of() {
    let tensors = [("a", tensor(&DType::F32, &[10], 1)), ("b", tensor(&DType::U8, &[3], 1))];
    let whole = written(&tensors, &quick()).len();
    for left in 0..whole {
        let error = safetensors::to_writer(Limited { left }, &tensors).unwrap_err();
        assert_eq!(error.category(), Category::Io, "{left}");
        assert!(error.to_string().contains("no room"), "{error}");
    }
    safetensors::to_writer(Limited { left: whole }, &tensors).unwrap();
}

#[test]
fn a_file_that_shrinks_while_it_is_converted_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.safetensors");
    let tensors = [("a", tensor(&DType::F32, &[100_000], 1)), ("b", tensor(&DType::U8, &[3], 1))];
    safetensors::save_with(&path, &tensors, &quick()).unwrap();
    let file = safetensors::open(&path).unwrap();
    let value = file.flat().unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(300_000).unwrap();
    let to = dir.path().join("a.tenarc");
    let error = tenarc::save(&to, &value).unwrap_err();
    assert!(error.to_string().contains("input ended"), "{error}");
    assert!(file.dyn_tensor("a").is_err() && file.dyn_tensor("b").is_err());
    assert_eq!(names(dir.path()), ["a.safetensors"]);
}

#[test]
fn a_conversion_that_fails_leaves_what_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("a.safetensors"), dir.path().join("a.tenarc"));
    tenarc::save(&to, &Tensor(vec![1.0f32; 10])).unwrap();
    let before = std::fs::read(&to).unwrap();
    let header = r#"{"a":{"dtype":"BOOL","shape":[5000],"data_offsets":[0,5000]}}"#;
    for (bytes, path) in [
        (raw(header, &[2; 5000]), "a"),
        (raw(header, &[2; 4999]), ""),
        (
            written(&[("a", vec![1u8]), ("a.b", vec![2])].map(|(n, v)| (n, dynamic(v))), &quick()),
            "a.b",
        ),
    ] {
        std::fs::write(&from, bytes).unwrap();
        let options = SaveOptions::default();
        let error = Format::Safetensors
            .to_archive(
                &from,
                &to,
                &Options::default().with_names(Names::Nested).with_save(options),
            )
            .unwrap_err();
        assert!(error.path().starts_with(path), "{error}");
        assert!(std::fs::read(&to).unwrap() == before);
        assert_eq!(names(dir.path()), ["a.safetensors", "a.tenarc"]);
    }
}

fn dynamic(bytes: Vec<u8>) -> tenarc::DynTensor {
    tenarc::DynTensor::new(DType::U8, &[bytes.len()], Order::C, bytes).unwrap()
}

#[test]
fn threads_read_one_file_together() {
    let tensors: Vec<_> =
        (0..8u8).map(|at| (at.to_string(), tensor(&DType::F32, &[5000], at))).collect();
    let list: Vec<_> = tensors.iter().map(|(name, tensor)| (&name[..], tensor.clone())).collect();
    let file = SafeTensors::new(written(&list, &quick())).unwrap();
    std::thread::scope(|scope| {
        for (name, tensor) in &tensors {
            let file = &file;
            scope.spawn(move || assert_eq!(&file.dyn_tensor(name).unwrap(), tensor));
        }
    });
}
