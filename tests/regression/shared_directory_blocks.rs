//! A directory whose blocks lead to the same lower blocks claimed 2^54 segments, over which readers iterated.

use tenarc::Archive;

/// XXH3 with 64 bits.
fn hash(bytes: &[u8], seed: u64) -> [u8; 8] {
    twox_hash::XxHash3_64::oneshot_with_seed(seed, bytes).to_be_bytes()
}

/// The shortest head of an item.
fn head(major: u8, arg: u64) -> Vec<u8> {
    let bytes = arg.to_be_bytes();
    let (code, len) = match arg {
        0..24 => return vec![(major << 5) + bytes[7]],
        24..0x100 => (0x18, 1),
        0x100..0x1_0000 => (0x19, 2),
        0x1_0000..0x1_0000_0000 => (0x1a, 4),
        _ => (0x1b, 8),
    };
    [&[(major << 5) + code], &bytes[8 - len..]].concat()
}

fn record(tag: [u8; 4], items: &[Vec<u8>], at: u64) -> Vec<u8> {
    let mut content = head(6, u32::from_be_bytes(tag).into());
    content.extend(head(4, items.len() as u64 + 1));
    content.push(1);
    content.extend(items.concat());
    let mut record = vec![0xd8, 0x18];
    record.extend(head(2, content.len() as u64));
    record.extend(content);
    let hash = hash(&record, at);
    record.push(0x48);
    record.extend(hash);
    record
}

fn array(items: &[Vec<u8>]) -> Vec<u8> {
    [head(4, items.len() as u64), items.concat()].concat()
}

#[test]
fn a_directory_of_more_segments_than_have_room_is_refused() {
    let mut bytes = tenarc::OArchive::new(Vec::new()).unwrap();
    bytes.save(&1).unwrap();
    let mut bytes = bytes.get_ref().clone();
    let mut lower: Vec<Vec<u8>> = (12..76).map(|at| array(&[head(0, at), vec![0xf6]])).collect();
    for level in 0..9 {
        let mut upper = Vec::new();
        for _ in 0..64 {
            let at = bytes.len() as u64;
            upper.push(head(0, at));
            bytes.extend(record(*b"TDIR", &[head(0, level), array(&lower)], at));
        }
        lower = upper;
    }
    let at = bytes.len() as u64;
    let levels: Vec<Vec<u8>> = (0..8).map(|_| array(&[])).chain([array(&lower[..1])]).collect();
    let count = head(0, 1 << 54);
    bytes.extend(record(*b"TEND", &[count, array(&[]), array(&levels)], at));
    let tail_at = bytes.len() as u64;
    let mut tail = b"\x58\x20TARCTAIL".to_vec();
    tail.extend(at.to_be_bytes());
    tail.extend(tail_at.to_be_bytes());
    tail.extend(hash(&tail, tail_at));
    bytes.extend(tail);
    let error = Archive::new(&bytes[..]).unwrap_err().to_string();
    assert!(error.contains("18014398509481984 segments do not fit before byte"), "{error}");
}
