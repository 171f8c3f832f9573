//! What a manifest says about an object, by which a copy of it is known.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::{Error, Kind, Result};
use crate::objects::{Objects, Part, Stat};

/// An object with blocks and values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredObject {
    /// Its name in the store of the set, so that a set can be copied to another place.
    pub name: String,
    pub size: u64,
    /// A copy has another one.
    pub version: Option<String>,
    /// The SHA-256 of the last bytes, 4,096 at most. An archive has offsets and hashes of what it consists of there.
    pub end: String,
}

impl StoredObject {
    /// How many of the last bytes have a digest.
    pub const END: usize = 4096;

    /// The version of the object, which may be a copy of what was written.
    ///
    /// # Errors
    /// If it has another size or end.
    pub async fn find(&self, objects: &dyn Objects, key: &str) -> Result<Stat> {
        let stat = objects.stat(key).await?;
        if stat.size == self.size {
            if stat.version == self.version {
                return Ok(stat);
            }
            let end = Part::Range(self.size.saturating_sub(Self::END as u64)..self.size);
            let end = objects.get(key, end, stat.version.as_deref()).await?.bytes().await?;
            if sha256(&end) == self.end {
                return Ok(stat);
            }
        }
        let what = "the object was replaced after its rank had written it";
        Err(Error::new(Kind::Changed, what).of_object(key))
    }
}

/// The SHA-256 of these bytes.
pub fn sha256(bytes: &[u8]) -> String {
    digits(Sha256::new_with_prefix(bytes))
}

/// The result as 64 hexadecimal digits.
pub fn digits(hasher: Sha256) -> String {
    let mut text = String::new();
    for byte in hasher.finalize() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
