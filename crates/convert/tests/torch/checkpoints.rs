//! Distributed checkpoints built by hand, with correct or wrong contents.

use std::path::Path;

use tempfile::TempDir;
use tenarc::Result;
use tenarc_convert::TensorFile as _;
use tenarc_convert::torch::{Distributed, open_distributed};

use super::support::{Pickler, file, floats};

const MODULE: &str = "torch.distributed.checkpoint.metadata";

/// A tensor, and the start and the sizes of each chunk.
#[derive(Clone)]
pub struct Tensor {
    pub name: &'static str,
    pub dtype: &'static str,
    pub size: Vec<i64>,
    pub chunks: Vec<(Vec<i64>, Vec<i64>)>,
}

/// A stored part.
#[derive(Clone)]
pub struct Part {
    pub name: &'static str,
    pub offset: Option<Vec<i64>>,
    pub file: String,
    pub start: i64,
    pub len: i64,
    pub transform: Option<&'static str>,
}

#[derive(Clone)]
pub enum Step {
    Key(&'static str),
    Index(i64),
}

/// A checkpoint: its metadata, and its files.
#[derive(Clone, Default)]
pub struct Made {
    pub tensors: Vec<Tensor>,
    pub objects: Vec<&'static str>,
    pub parts: Vec<Part>,
    pub paths: Option<Vec<(&'static str, Vec<Step>)>>,
    pub version: Option<&'static str>,
    pub files: Vec<(String, Vec<u8>)>,
}

impl Pickler {
    fn object(self, module: &str, class: &str, fields: impl FnOnce(Self) -> Self) -> Self {
        fields(self.global(module, class).op(b")\x81}(")).op(b"ub")
    }

    fn size(self, numbers: &[i64]) -> Self {
        self.global("torch", "Size").ints(numbers).op(b"\x85R")
    }
}

/// A tensor of floats as `torch.save` writes it.
pub fn saved(shape: &[i64], first: u16) -> Vec<u8> {
    let count: i64 = shape.iter().product();
    let mut stride = 1;
    let mut strides: Vec<i64> = Vec::new();
    for dim in shape.iter().rev() {
        strides.insert(0, stride);
        stride *= dim;
    }
    let elements = &floats(first + count as u16)[usize::from(first) * 4..];
    file(&Pickler::new().tensor("FloatStorage", count, 0, shape, &strides).end(), elements)
}

impl Made {
    /// A tensor `w` of the floats 0 to 7 in two files, and an object `n`, the number 7.
    pub fn small() -> Self {
        let mut made = Self::default();
        let chunks = vec![(vec![0, 0], vec![1, 2]), (vec![1, 0], vec![3, 2])];
        made.tensors.push(Tensor { name: "w", dtype: "float32", size: vec![4, 2], chunks });
        made.objects.push("n");
        made.part("w", Some(&[0, 0]), "__0_0.distcp", &saved(&[1, 2], 0));
        made.part("w", Some(&[1, 0]), "__1_0.distcp", &saved(&[3, 2], 2));
        made.part("n", None, "__0_0.distcp", &file(&Pickler::new().op(b"K\x07").end(), b""));
        made
    }

    /// Adds a part to the end of a file.
    pub fn part(
        &mut self,
        name: &'static str,
        offset: Option<&[i64]>,
        file: &str,
        contents: &[u8],
    ) -> &mut Self {
        let number = self.files.iter().position(|(name, _)| name == file).unwrap_or_else(|| {
            self.files.push((file.to_owned(), Vec::new()));
            self.files.len() - 1
        });
        let bytes = &mut self.files[number].1;
        let (start, len) = (bytes.len() as i64, contents.len() as i64);
        bytes.extend(contents);
        let offset = offset.map(<[i64]>::to_vec);
        let file = file.to_owned();
        self.parts.push(Part { name, offset, file, start, len, transform: None });
        self
    }

    pub fn metadata(&self) -> Vec<u8> {
        Pickler::new().object(MODULE, "Metadata", |pickle| self.fields(pickle)).end()
    }

    fn fields(&self, pickle: Pickler) -> Pickler {
        let mut pickle = pickle.text("state_dict_metadata").op(b"}(");
        for Tensor { name, dtype, size, chunks } in &self.tensors {
            pickle = pickle.text(name).object(MODULE, "TensorStorageMetadata", |pickle| {
                let pickle = pickle.text("properties").global(MODULE, "TensorProperties");
                let pickle = pickle.op(b")\x81(").global("torch", dtype);
                let pickle = pickle.global("torch.serialization", "_get_layout");
                let pickle = pickle.text("torch.strided").op(b"\x85R\x89NNNtb");
                let pickle = pickle.text("size").size(size).text("chunks").op(b"](");
                let add = |pickle: Pickler, (start, sizes): &(Vec<i64>, Vec<i64>)| {
                    pickle.object(MODULE, "ChunkStorageMetadata", |pickle| {
                        pickle.text("offsets").size(start).text("sizes").size(sizes)
                    })
                };
                chunks.iter().fold(pickle, add).op(b"e")
            });
        }
        for name in &self.objects {
            pickle = pickle.text(name).global(MODULE, "BytesStorageMetadata").op(b")\x81");
        }
        pickle = pickle.op(b"u").text("storage_data").op(b"}(");
        for Part { name, offset, file, start, len, transform } in &self.parts {
            pickle = pickle.object(MODULE, "MetadataIndex", |pickle| {
                let pickle = pickle.text("fqn").text(name);
                match offset {
                    Some(offset) => pickle.text("offset").size(offset),
                    None => pickle,
                }
            });
            let module = "torch.distributed.checkpoint.filesystem";
            pickle = pickle.object(module, "_StorageInfo", |pickle| {
                let pickle = pickle.text("relative_path").text(file);
                let pickle = pickle.text("offset").int(*start).text("length").int(*len);
                match transform {
                    Some(name) => pickle.text("transform_descriptors").op(b"]").text(name).op(b"a"),
                    None => pickle,
                }
            });
        }
        pickle = pickle.op(b"u");
        if let Some(paths) = &self.paths {
            pickle = pickle.text("planner_data").op(b"}(");
            for (name, steps) in paths {
                let add = |pickle: Pickler, step: &Step| match step {
                    Step::Key(key) => pickle.text(key),
                    Step::Index(index) => pickle.int(*index),
                };
                pickle = steps.iter().fold(pickle.text(name).op(b"("), add).op(b"t");
            }
            pickle = pickle.op(b"u");
        }
        match self.version {
            Some(version) => pickle.text("version").text(version),
            None => pickle,
        }
    }

    pub fn save(&self, dir: &Path) {
        std::fs::write(dir.join(".metadata"), self.metadata()).unwrap();
        for (name, bytes) in &self.files {
            std::fs::write(dir.join(name), bytes).unwrap();
        }
    }

    pub fn saved(&self) -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        self.save(dir.path());
        dir
    }
}

/// Reads all there is, in every way.
pub fn all(path: &Path) -> Result<Distributed> {
    let found = open_distributed(path)?;
    for info in found.tensors() {
        let tensor = found.dyn_tensor(info.path())?;
        if let Some((source, at)) = found.place(info.path())? {
            let mut bytes = vec![0; tensor.le_bytes().len()];
            let mut done = 0;
            while done < bytes.len() {
                done += source.read_at(&mut bytes[done..], at + done as u64)?;
            }
            assert_eq!(bytes, *tensor.le_bytes(), "{}", info.path());
        }
    }
    tenarc::to_vec(&found.stored()?)?;
    tenarc::to_vec(&found.flat()?)?;
    let _ = found.nested();
    found.verify_unread()?;
    found.verify()?;
    Ok(found)
}
