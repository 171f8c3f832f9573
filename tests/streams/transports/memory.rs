//! Archives in shared memory, which another process uses without copying them.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process;

use ndarray::{ArrayView1, ArrayView2};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use serde::Deserialize;
use tenarc::{Map, OArchive, Tensor};

use super::support::{Peer, model};
use tenarc_test_support::child;

#[derive(Deserialize)]
struct ModelView<'a> {
    name: &'a str,
    #[serde(borrow)]
    weight: Tensor<ArrayView2<'a, f32>>,
    #[serde(borrow)]
    counts: Tensor<ArrayView2<'a, i64>>,
    #[serde(borrow)]
    bias: Tensor<ArrayView1<'a, f64>>,
}

/// The other process: it maps the file that its role names, and finds the arrays in it.
#[test]
fn child() {
    let Some((role, _)) = child::role() else { return };
    let (name, path) = role.split_once(' ').unwrap();
    // SAFETY: sealed, or left alone by the process that wrote it.
    let map = unsafe { Map::open(path) }.unwrap();
    map.verify().unwrap();
    for number in 0..3 {
        let segment = map.segment(number).unwrap();
        let view: ModelView = segment.view().unwrap();
        let wanted = model(number as usize);
        assert_eq!(view.name, wanted.name);
        assert_eq!(view.weight.0, wanted.weight.0);
        assert_eq!(view.counts.0, wanted.counts.0);
        assert_eq!(view.bias.0, wanted.bias.0);
        for place in [view.weight.as_ptr().addr(), view.counts.as_ptr().addr()] {
            let mapping = mapping(place);
            assert!(mapping.contains(name) && mapping.contains(" r--s "), "{mapping}");
        }
    }
}

/// The line of what is mapped at an address.
fn mapping(at: usize) -> String {
    let all = fs::read_to_string("/proc/self/maps").unwrap();
    let holds = |line: &&str| {
        let (range, _) = line.split_once(' ').unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let [start, end] = [start, end].map(|digits| usize::from_str_radix(digits, 16).unwrap());
        (start..end).contains(&at)
    };
    all.lines().find(holds).unwrap().to_owned()
}

fn write(memory: &File) -> OArchive<&File> {
    let mut out = OArchive::new(memory).unwrap();
    for number in 0..3 {
        out.save(&model(number)).unwrap();
    }
    out
}

fn memory(name: &str) -> (File, String) {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memory = File::from(memfd_create(name, flags).unwrap());
    let path = format!("/proc/{}/fd/{}", process::id(), memory.as_raw_fd());
    (memory, path)
}

#[test]
fn another_process_has_views_into_sealed_memory_without_a_name() {
    let (memory, path) = memory("models");
    write(&memory).finish().unwrap();
    let seals = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    fcntl_add_seals(&memory, seals).unwrap();
    // Two at once share it.
    let peers = [0, 1].map(|_| {
        Peer::start("transports::memory::child", &format!("memfd:models {path}"), Path::new("."))
    });
    peers.into_iter().for_each(Peer::succeeds);
}

#[test]
fn another_process_has_views_into_a_file_in_memory() {
    let dir = child::fast_dir();
    let path = dir.path().join("models.tenarc");
    write(&File::create_new(&path).unwrap()).finish().unwrap();
    let role = format!("models.tenarc {}", path.display());
    Peer::start("transports::memory::child", &role, dir.path()).succeeds();
}

#[test]
fn memory_whose_archive_is_not_finished_is_refused() {
    let (memory, path) = memory("unfinished");
    drop(write(&memory));
    // SAFETY: nobody else knows of it.
    let error = unsafe { Map::open(&path) }.unwrap_err();
    assert_eq!(error.category(), tenarc::error::Category::Torn, "{error}");
}
