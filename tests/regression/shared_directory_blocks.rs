//! A directory whose blocks lead to the same lower blocks claimed 2^54 segments, over which readers iterated.

use tenarc::Archive;
use tenarc_test_support::builder::{
    BlockAt, Built, Entry, Root, Seg, block, unsigned, upper_block,
};

#[test]
fn a_directory_of_more_segments_than_have_room_is_refused() {
    let mut built = Built::new().segment(&Seg::new(unsigned(1), &[]));
    let entries: Vec<Entry> = (12..76).map(|at| (at, vec![0xf6], 30, None, None)).collect();
    let mut lower: Vec<BlockAt> = Vec::new();
    for level in 0..9 {
        let mut upper = Vec::new();
        for _ in 0..64 {
            let at = built.position();
            let block =
                if level == 0 { block(&entries, at) } else { upper_block(level, &lower, at) };
            upper.push((at, block.len() as u64));
            built = built.raw(&block);
        }
        lower = upper;
    }
    lower.truncate(1);
    let levels = (0..8).map(|_| Vec::new()).chain([lower]).collect();
    let bytes = built.end_with(|root| *root = Root { count: 1 << 54, levels, ..Root::default() });
    let error = Archive::new(&bytes[..]).unwrap_err().to_string();
    assert!(error.contains("18014398509481984 segments do not fit before byte"), "{error}");
}
