//! One process writes an archive to shared memory; another maps it and uses it without copies.
//!
//! ```sh
//! cargo run --release --example shared_memory
//! ```
//!
//! The memory is an unnamed file (`memfd_create`), which exists as long as a process has it open. After
//! the archive is written, the file is sealed: no process can change or truncate it, as `Map::open`
//! requires. The other process opens it through `/proc`, maps it, and gets views of the arrays. It
//! copies no array. Linux only.

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

    /// Writes the archive, and starts the reader.
    pub fn write() -> Result<(), Box<dyn Error>> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memory = File::from(memfd_create("index", flags)?);
        let vectors = Array2::from_elem((20_000, 256), 0.25).into();
        let mut out = OArchive::new(&memory)?;
        out.save(&Index { name: "vectors of words".into(), vectors })?;
        out.finish()?;
        fcntl_add_seals(&memory, SEALS)?;
        println!("wrote an archive of {} bytes to sealed memory", memory.metadata()?.len());

        let path = format!("/proc/{}/fd/{}", process::id(), memory.as_raw_fd());
        let status = Command::new(std::env::current_exe()?).arg(path).status()?;
        if status.success() { Ok(()) } else { Err("the reader failed".into()) }
    }

    /// Maps the archive that the other process wrote.
    pub fn read(path: &str) -> Result<(), Box<dyn Error>> {
        if !fcntl_get_seals(File::open(path)?)?.contains(SEALS) {
            return Err("the memory is not sealed".into());
        }
        // SAFETY: no process can change or truncate the file: it is sealed against that, and seals cannot
        // be removed.
        let map = unsafe { Map::open(path) }?;
        let index: IndexView = map.view()?;
        let at = index.vectors.as_ptr().addr();
        let place = mapping(at)?.ok_or("the array is not in a mapped file")?;
        let rows = index.vectors.nrows();
        println!("{}: {rows} rows, viewed in {place}, sum {}", index.name, index.vectors.sum());
        if place.contains("memfd:index") { Ok(()) } else { Err("the array was copied".into()) }
    }

    /// The name of the file that is mapped at an address.
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
    println!("this example needs Linux");
}
