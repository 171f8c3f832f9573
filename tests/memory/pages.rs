//! Large tensors are read into large pages, whether they are verified or not.

use tenarc::de::DecodeOptions;
use tenarc::{Archive, OArchive, Tensor};

const LEN: usize = 64 << 20;

/// How many page faults this thread has caused. 0 if the system does not tell.
fn faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
    // The name of the program is in parentheses, and may have spaces.
    let behind_name = stat.rsplit(')').next().unwrap_or_default();
    behind_name.split_whitespace().nth(7).map_or(0, |number| number.parse().unwrap())
}

#[test]
fn unverified_tensors_cause_no_more_page_faults_than_verified_ones() {
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(&Tensor(vec![1u8; LEN])).unwrap();
    let bytes = out.finish().unwrap();
    let load = |checksums| {
        let options = DecodeOptions::default().with_checksums(checksums);
        let archive = Archive::new(&bytes[..]).unwrap().with_options(options);
        let before = faults();
        let found: Tensor<Vec<u8>> = archive.load().unwrap();
        assert_eq!(found.len(), LEN);
        faults() - before
    };
    let fewest = |checksums| (0..3).map(|_| load(checksums)).min();
    let (verified, unverified) = (fewest(true), fewest(false));
    // There are 16,384 pages of 4 KiB. Memory before the first large page and behind the last one is in small ones.
    assert!(unverified <= verified.map(|verified| verified + 2000), "{unverified:?}, {verified:?}");
}
