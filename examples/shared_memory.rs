//! An archive in shared memory, written by one process and used by another where it lies.
//!
//! ```sh
//! cargo run --release --example shared_memory
//! ```
//!
//! The memory is a file without a name (`memfd_create`), which lives as long as anybody holds it.
//! Once the archive is written it is sealed: nobody can change or shorten it any more, which is
//! just what `Map::open` asks for. The other process opens it through `/proc`, maps it, and gets
//! views: of arrays, it copies none. Linux only.

#[cfg(target_os = "linux")]
#[allow(unsafe_code)] // Mapping a file is unsafe.
mod linux {
    use std::error::Error;
    use std::fs::{self, File};
    use std::os::fd::AsRawFd;
    use std::process::{self, Command};

    use ndarray::{Array2, ArrayView2};
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};
    use serde::{Deserialize, Serialize};
    use tenarc::{Map, OArchive, Tensor};

    #[derive(Serialize)]
    struct Index {
        name: String,
        vectors: Tensor<Array2<f32>>,
    }

    #[derive(Deserialize)]
    struct IndexView<'a> {
        name: &'a str,
        #[serde(borrow)]
        vectors: Tensor<ArrayView2<'a, f32>>,
    }

    const SEALS: SealFlags =
        SealFlags::WRITE.union(SealFlags::SHRINK).union(SealFlags::GROW).union(SealFlags::SEAL);

    /// Writes, and starts a reader.
    pub fn write() -> Result<(), Box<dyn Error>> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memory = File::from(memfd_create("index", flags)?);
        let vectors = Array2::from_elem((20_000, 256), 0.25).into();
        let mut out = OArchive::new(&memory)?;
        out.save(&Index { name: "vectors of words".into(), vectors })?;
        out.finish()?;
        fcntl_add_seals(&memory, SEALS)?;
        println!("{} bytes of archive in shared memory, sealed", memory.metadata()?.len());

        let path = format!("/proc/{}/fd/{}", process::id(), memory.as_raw_fd());
        let status = Command::new(std::env::current_exe()?).arg(path).status()?;
        if status.success() { Ok(()) } else { Err("the reader failed".into()) }
    }

    /// Maps what the other process wrote.
    pub fn read(path: &str) -> Result<(), Box<dyn Error>> {
        if !fcntl_get_seals(File::open(path)?)?.contains(SEALS) {
            return Err("the memory is not sealed".into());
        }
        // SAFETY: the seals stay: nobody changes or shortens it, and nobody can undo that.
        let map = unsafe { Map::open(path) }?;
        let index: IndexView = map.view()?;
        let at = index.vectors.as_ptr().addr();
        let place = mapping(at)?.ok_or("the array lies in no mapping")?;
        let rows = index.vectors.nrows();
        println!("{}: {rows} rows, viewed in {place}, sum {}", index.name, index.vectors.sum());
        if place.contains("memfd:index") { Ok(()) } else { Err("the array was copied".into()) }
    }

    /// What is mapped at an address.
    fn mapping(at: usize) -> Result<Option<String>, Box<dyn Error>> {
        for line in fs::read_to_string("/proc/self/maps")?.lines() {
            let (range, rest) = line.split_once(' ').ok_or("a line without a range")?;
            let (start, end) = range.split_once('-').ok_or("a range without an end")?;
            let (start, end) = (usize::from_str_radix(start, 16)?, usize::from_str_radix(end, 16)?);
            if (start..end).contains(&at) {
                return Ok(rest.split_once('/').map(|(_, name)| format!("/{name}")));
            }
        }
        Ok(None)
    }
}

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args().nth(1) {
        Some(path) => linux::read(&path),
        None => linux::write(),
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("nothing is done here: this needs Linux");
}
