//! Files of Keras 3: zip files of an HDF5 file with the weights, and of JSON files with the program of the model.

use std::fs::File;

use tenarc::{Error, Result};

use crate::source;
use crate::support::{STEP, over_memory, reserve};
use crate::zip::{Bytes as _, Contents, Directory, Member};

/// The name of the HDF5 file.
const WEIGHTS: &str = "model.weights.h5";

/// The HDF5 file in a Keras file.
pub struct Weights {
    member: Member,
    /// Whether the zip file has other members.
    pub has_others: bool,
}

/// Where the HDF5 file is.
pub enum Place {
    /// In the zip file, from this offset on.
    At(u64),
    /// In memory, because it is compressed in the zip file.
    Inflated(Vec<u8>),
}

impl Weights {
    /// Finds the weights in a Keras file. `None` if the file is no zip file.
    pub fn find(file: &File) -> Result<Option<Self>> {
        let mut start = [0; 4];
        if source::read_exact(file, &mut start, 0).is_err() || start != *b"PK\x03\x04" {
            return Ok(None);
        }
        let members = Directory::read(file)?.members;
        let has_others = members.len() > 1;
        match members.into_iter().find(|member| member.name() == WEIGHTS) {
            Some(member) => Ok(Some(Self { member, has_others })),
            None => {
                let what = format!("expected an HDF5 file, or a zip file that holds `{WEIGHTS}`");
                Err(Error::data(what))
            }
        }
    }

    /// Returns the length of the HDF5 file.
    pub fn byte_len(&self) -> u64 {
        self.member.byte_len()
    }

    /// Finds the start of the HDF5 file. If it is compressed, inflates it to at most `most` bytes.
    pub fn place(&self, file: &File, most: usize) -> Result<Place> {
        let mut contents = Contents::open(file, &self.member)?;
        if !self.member.is_deflated() {
            return Ok(Place::At(contents.position()));
        }
        let mut bytes = Vec::new();
        loop {
            let done = bytes.len();
            if done > most {
                let what = format!(
                    "`{WEIGHTS}` is compressed and has more than the {most} bytes that are allowed"
                );
                return Err(over_memory(what));
            }
            reserve(&mut bytes, STEP)?;
            bytes.resize(done + STEP, 0);
            let read = contents.read(bytes.get_mut(done..).unwrap_or_default())?;
            bytes.truncate(done + read);
            if read == 0 {
                contents.finish()?;
                return Ok(Place::Inflated(bytes));
            }
        }
    }

    /// Reads the HDF5 file and checks its checksum.
    pub fn verify(&self, file: &File) -> Result<()> {
        let mut contents = Contents::open(file, &self.member)?;
        let mut block = vec![0; STEP];
        while contents.read(&mut block)? > 0 {}
        contents.finish()
    }
}
