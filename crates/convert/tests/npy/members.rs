//! Members of zip files that differ from what the zip directory says.

use tenarc::de::Limits;
use tenarc::error::Category;
use tenarc_convert::npy::Npz;

use super::support::{Part, all, bytes, crc, deflated, npy, part, says, zip};

fn one(change: impl FnOnce(&mut Part), deflate: bool) -> Vec<u8> {
    let mut part = part("a.npy", &bytes(b"0123456789"), deflate);
    change(&mut part);
    zip(&[part])
}

/// Both headers say the same lie.
fn both(part: &mut Part, change: impl Fn(&mut super::support::Entry)) {
    change(&mut part.local);
    change(&mut part.central);
}

#[test]
fn local_headers_must_say_what_the_directory_says() {
    type Change = fn(&mut Part);
    let changes: [(Change, &str); 7] = [
        (|part| part.local.name = b"b.npy".into(), "its name differs"),
        (|part| part.local.crc ^= 1, "its sizes or its checksum differ"),
        (|part| part.local.inflated += 1, "its sizes or its checksum differ"),
        (|part| part.local.compressed -= 1, "its sizes or its checksum differ"),
        (|part| part.local.method ^= 8, "its flags or its compression method differ"),
        (|part| part.local.flags ^= 1 << 11, "its flags or its compression method differ"),
        (|part| part.local.inflated = u32::MAX, "its sizes or its checksum differ"),
    ];
    for deflate in [false, true] {
        for (change, text) in changes {
            let file = one(change, deflate);
            says(Npz::new(&file[..]).unwrap().info("a"), text);
        }
    }
    let mut file = one(|_| (), false);
    file[0] = b'Q';
    says(all(&file), "expected its signature");
}

#[test]
fn sizes_that_lie_are_found_before_anything_is_inflated() {
    // Stored bytes are as many as they are.
    let longer = one(|part| both(part, |entry| entry.inflated += 1), false);
    says(all(&longer), "cannot be");
    // Deflate makes at most 1,032 bytes of one.
    let inflated = one(|part| both(part, |entry| entry.inflated = 1 << 30), true);
    says(all(&inflated), "cannot be");
    // What remains is held against the array's own header.
    for difference in [-1, 1] {
        let change = |part: &mut Part| {
            both(part, |entry| entry.inflated = entry.inflated.wrapping_add_signed(difference));
        };
        says(all(&one(change, true)), "an array of shape [10] ends after");
    }
}

#[test]
fn a_checksum_that_is_wrong_is_damage() {
    for deflate in [false, true] {
        let file = one(|part| both(part, |entry| entry.crc ^= 1), deflate);
        assert_eq!(says(all(&file), "CRC-32").category(), Category::Damaged);
        // Headers are read, and say so far nothing wrong.
        assert!(Npz::new(&file[..]).unwrap().info("a").is_ok());
    }
}

#[test]
fn compressed_data_end_where_the_member_does() {
    let contents = bytes(b"0123456789");
    let with = |data: Vec<u8>, inflated: usize| {
        one(
            |part| {
                both(part, |entry| {
                    entry.compressed = data.len() as u32;
                    entry.inflated = inflated as u32;
                });
                part.data = data.clone();
            },
            true,
        )
    };
    assert!(all(&with(deflated(&contents), contents.len())).is_ok());
    // A bomb behind an array: no more than a byte of it is inflated.
    let bomb = deflated(&[&contents[..], &vec![0; 1 << 20]].concat());
    says(all(&with(bomb, contents.len())), "as the directory states, found more");
    let more = [&deflated(&contents)[..], b"more"].concat();
    says(all(&with(more, contents.len())), "bytes follow the end");
    let mut cut = deflated(&contents);
    cut.pop();
    says(all(&with(cut, contents.len())), "end without a final block");
    // Block type 3 is none.
    says(all(&with(vec![0xff; 40], contents.len())), "damaged");
    says(all(&with(Vec::new(), 0)), "end without a final block");
}

#[test]
fn other_methods_and_encryption_are_refused_by_name() {
    for method in [1, 9, 12, 14, 93, 95, 99] {
        let file = one(|part| both(part, |entry| entry.method = method), false);
        says(all(&file), &format!("method {method}"));
    }
    for flags in [1, 1 << 6, 1 << 13] {
        says(all(&one(|part| both(part, |entry| entry.flags = flags), false)), "encrypted");
    }
    says(all(&one(|part| both(part, |entry| entry.flags = 1 << 5), true)), "patch");
}

/// With and without signature, of 32 and 64 bits; what the local header says does not count then.
#[test]
fn data_descriptors_are_read_and_compared() {
    let contents = bytes(b"0123456789");
    for deflate in [false, true] {
        for (signed, wide) in [(true, false), (false, false), (true, true), (false, true)] {
            let described = |wrong: u32| {
                let file = one(
                    |part| {
                        both(part, |entry| entry.flags = 1 << 3);
                        let sizes = [part.central.compressed, part.central.inflated];
                        (part.local.crc, part.local.compressed, part.local.inflated) = (0, 0, 0);
                        if signed {
                            part.behind.extend(b"PK\x07\x08");
                        }
                        part.behind.extend((crc(&contents) ^ wrong).to_le_bytes());
                        for size in sizes {
                            part.behind.extend(size.to_le_bytes());
                            part.behind.extend(vec![0; if wide { 4 } else { 0 }]);
                        }
                    },
                    deflate,
                );
                all(&file)
            };
            assert_eq!(described(0).unwrap()[0].1.le_bytes(), &b"0123456789"[..]);
            says(described(1), "differs from the directory");
        }
        says(all(&one(|part| both(part, |entry| entry.flags = 1 << 3), deflate)), "differs from");
    }
}

/// Sizes in the 64-bit fields of both headers, in front of which another field stands.
#[test]
fn sizes_of_64_bits_are_read_wherever_they_are_announced() {
    let wide = |inflated: u64, compressed: u64| {
        let mut extra = vec![0x99, 0x99, 2, 0, 7, 7, 1, 0, 16, 0];
        extra.extend(inflated.to_le_bytes());
        extra.extend(compressed.to_le_bytes());
        extra
    };
    let with = |extra: &dyn Fn(u64, u64) -> Vec<u8>| {
        one(
            |part| {
                both(part, |entry| {
                    entry.extra = extra(entry.inflated.into(), entry.compressed.into());
                    (entry.inflated, entry.compressed) = (u32::MAX, u32::MAX);
                });
            },
            true,
        )
    };
    assert_eq!(all(&with(&wide)).unwrap().len(), 1);
    says(all(&with(&|_, _| Vec::new())), "the next part of the file starts at");
    let cut = |a, b| wide(a, b)[..18].to_vec();
    says(all(&with(&cut)), "incomplete or occur twice");
    let twice = |a, b| [wide(a, b), wide(a, b)].concat();
    says(all(&with(&twice)), "incomplete or occur twice");
    says(all(&with(&|_, _| wide(u64::MAX, u64::MAX))), "the next part of the file starts at");
}

#[test]
fn limits_bound_what_is_inflated() {
    let zeros = vec![0; 1 << 20];
    let npz = |deflate| zip(&[part("a.npy", &bytes(&zeros), deflate)]);
    let limits = Limits::default().with_max_alloc(1 << 19);
    for deflate in [false, true] {
        let file = npz(deflate);
        let npz = Npz::new(&file[..]).unwrap().with_limits(limits);
        assert_eq!(npz.dyn_tensor("a").unwrap_err().category(), Category::Limit);
    }
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (17179869185,)}";
    let mut huge = part("a.npy", &npy(header, &[]), true);
    let len = 17_179_869_185 + u64::from(huge.central.inflated);
    // So many compressed bytes that such a size can be had of them.
    huge.data.resize(17 << 20, 0);
    both(&mut huge, |entry| {
        entry.compressed = 17 << 20;
        entry.inflated = u32::MAX;
        entry.extra = [&[1, 0, 8, 0][..], &len.to_le_bytes()].concat();
    });
    // Local headers have both.
    huge.local.extra =
        [&[1, 0, 16, 0][..], &len.to_le_bytes(), &(17u64 << 20).to_le_bytes()].concat();
    huge.local.compressed = u32::MAX;
    says(Npz::new(&zip(&[huge])[..]).unwrap().info("a"), "the limit is 17179869184");
}

#[test]
fn members_that_are_no_arrays_are_listed_and_no_more() {
    let file = zip(&[part("readme.txt", b"hello", false), part("a.npy", &bytes(b"x"), false)]);
    let npz = Npz::new(&file[..]).unwrap();
    let members: Vec<_> = npz.members().iter().map(|m| (m.name(), m.byte_len())).collect();
    assert_eq!(members[0], ("readme.txt", 5));
    assert_eq!(npz.names().collect::<Vec<_>>(), ["a"]);
    says(npz.info("readme.txt"), "no such array");
}
