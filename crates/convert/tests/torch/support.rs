//! Pickles and zip files built by hand, with correct or wrong contents.

use std::io;
use std::path::{Path, PathBuf};

use tenarc::error::Category;
use tenarc::io::ReadAt;
use tenarc::{Error, Result};
use tenarc_convert::TensorFile as _;
use tenarc_convert::torch::TorchFile;

pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/torch")
}

pub fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(fixtures().join(name)).unwrap()
}

/// Writes a pickle, operation after operation.
#[derive(Clone)]
pub struct Pickler(pub Vec<u8>);

impl Pickler {
    pub fn new() -> Self {
        Self(b"\x80\x02".to_vec())
    }

    pub fn op(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.0.extend_from_slice(bytes.as_ref());
        self
    }

    pub fn text(self, text: &str) -> Self {
        self.op(b"X").op((text.len() as u32).to_le_bytes()).op(text)
    }

    /// Of eight bytes, whatever it is.
    pub fn int(self, number: i64) -> Self {
        self.op(b"\x8a\x08").op(number.to_le_bytes())
    }

    pub fn ints(self, numbers: &[i64]) -> Self {
        let open = self.op(b"(");
        numbers.iter().fold(open, |pickle, &number| pickle.int(number)).op(b"t")
    }

    pub fn global(self, module: &str, name: &str) -> Self {
        self.op(format!("c{module}\n{name}\n"))
    }

    pub fn storage(self, kind: &str, key: &str, count: i64) -> Self {
        let (module, kind) = kind.rsplit_once('.').unwrap_or(("torch", kind));
        let id = self.op(b"(").text("storage").global(module, kind).text(key).text("cpu");
        id.int(count).op(b"tQ")
    }

    pub fn hooks(self) -> Self {
        self.global("collections", "OrderedDict").op(b")R")
    }

    /// A tensor of `count` elements under `key`.
    pub fn tensor(
        self,
        kind: &str,
        count: i64,
        offset: i64,
        shape: &[i64],
        strides: &[i64],
    ) -> Self {
        let pickle = self.global("torch._utils", "_rebuild_tensor_v2").op(b"(");
        let pickle = pickle.storage(kind, "0", count).int(offset).ints(shape).ints(strides);
        pickle.op(b"\x89").hooks().op(b"tR")
    }

    /// A tensor whose dtype is not that of its storage.
    pub fn tensor_v3(
        self,
        dtype: &str,
        bytes: i64,
        offset: i64,
        shape: &[i64],
        strides: &[i64],
    ) -> Self {
        let pickle = self.global("torch._utils", "_rebuild_tensor_v3").op(b"(");
        let pickle = pickle.storage("torch.storage.UntypedStorage", "0", bytes);
        let pickle = pickle.int(offset).ints(shape).ints(strides).op(b"\x89").hooks();
        pickle.global("torch", dtype).op(b"tR")
    }

    pub fn end(self) -> Vec<u8> {
        self.op(b".").0
    }
}

/// A dict with one entry, `a`.
pub fn under_a(value: impl FnOnce(Pickler) -> Pickler) -> Vec<u8> {
    value(Pickler::new().op(b"}").text("a")).op(b"s").end()
}

pub fn crc(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// A zip file of members stored as they are.
pub fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut body, mut list) = (Vec::new(), Vec::new());
    for (name, contents) in members {
        let mut fields = vec![20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0];
        fields.extend(crc(contents).to_le_bytes());
        fields.extend([(contents.len() as u32).to_le_bytes(); 2].concat());
        fields.extend((name.len() as u16).to_le_bytes());
        fields.extend([0; 2]);
        list.extend(b"PK\x01\x02\x14\x03");
        list.extend(&fields);
        list.extend([0; 10]);
        list.extend((body.len() as u32).to_le_bytes());
        list.extend(name.bytes());
        body.extend(b"PK\x03\x04");
        body.extend(fields);
        body.extend(name.bytes());
        body.extend(*contents);
    }
    let count = (members.len() as u16).to_le_bytes();
    let (size, start) = ((list.len() as u32).to_le_bytes(), (body.len() as u32).to_le_bytes());
    [&body, &list, &b"PK\x05\x06\0\0\0\0"[..], &count, &count, &size, &start, &[0; 2]].concat()
}

/// A file of this pickle and storage `0`.
pub fn file(pickle: &[u8], storage: &[u8]) -> Vec<u8> {
    zip(&[
        ("f/data.pkl", pickle),
        ("f/byteorder", b"little"),
        ("f/data/0", storage),
        ("f/version", b"3\n"),
    ])
}

pub fn floats(count: u16) -> Vec<u8> {
    (0..count).flat_map(|at| f32::from(at).to_le_bytes()).collect()
}

/// Reads all there is, in every way.
pub fn all(bytes: &[u8]) -> Result<()> {
    let file = TorchFile::new(bytes)?;
    for info in file.tensors() {
        file.dyn_tensor(info.path())?;
    }
    tenarc::to_vec(&file.stored()?)?;
    tenarc::to_vec(&file.flat()?)?;
    let _ = file.nested();
    file.verify()
}

#[track_caller]
pub fn says<T>(result: Result<T>, text: &str) -> Error {
    let Err(error) = result else { panic!("expected an error that says: {text}") };
    assert!(error.to_string().contains(text), "expected `{text}` in: {error}");
    error
}

#[track_caller]
pub fn refused(pickle: &[u8], text: &str) -> Category {
    says(TorchFile::new(&file(pickle, &floats(12))[..]).map(drop), text).category()
}

/// Reads a few bytes at a time, and does not show its contents.
pub struct Slow<'a>(pub &'a [u8]);

impl ReadAt for Slow<'_> {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let len = out.len().min(7);
        self.0.read_at(&mut out[..len], offset)
    }

    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }
}

/// Reads files of twelve floats whose pickle has a changed byte, or lacks one. `step` is that from one change to the next.
pub fn no_changed_byte_panics(pickle: &[u8], step: usize) {
    for at in 0..pickle.len() {
        for change in (1..=255).step_by(step) {
            let mut bytes = pickle.to_vec();
            bytes[at] ^= change;
            let _ = all(&file(&bytes, &floats(12)));
        }
        let mut shorter = pickle.to_vec();
        shorter.remove(at);
        let _ = all(&file(&shorter, &floats(12)));
    }
}
