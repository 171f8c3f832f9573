//! A lookup passed over an array that contains an array with 2^64 - 1 claimed elements. It added the
//! claimed lengths without a check, and panicked.

use tenarc::Archive;
use tenarc_test_support::builder;

#[test]
fn claimed_lengths_that_add_up_to_more_than_there_can_be_are_an_error() {
    // {"a": [[…2^64 - 1 elements…] or {…} first, then one in a short head], "b": 1}
    let huge = [0xff; 8];
    let heads: [&[u8]; 4] = [&[0x9b], &[0x82, 0x9b], &[0xbb], &[0x97, 0xbb]];
    for head in heads {
        for behind in [&[0x97][..], &[0x98, 0xff], &[0xb7], &[0xd8, 0x28], &[0xda, 0, 0, 0, 1]] {
            let metadata = [b"\xa2\x61a", head, &huge, behind, b"\x61b\x01"].concat();
            let bytes = builder::simple(metadata, &[]);
            let archive = Archive::new(&bytes).unwrap();
            assert!(archive.get::<u8>("b").is_err(), "{head:x?} {behind:x?}");
            assert!(archive.tensors().is_err() && archive.only().unwrap().keys("").is_err());
            assert!(archive.load::<tenarc::Value>().is_err());
        }
    }
}
