//! What is saved is read back, at every length: by every way to write and to read, with the default options.
//!
//! A writer stores short and long values in different forms: arrays, packed sequences, columns, buffers. So each type is
//! tried with lengths around the limits.

// The values are only samples.
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_precision_loss)]
#![allow(clippy::option_option)]

mod borrowed;
mod kinds;

use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tenarc::archive::SaveOptions;
use tenarc::ser::EncodeOptions;
use tenarc::{Archive, IArchive, OArchive, Value};
use tenarc_test_support::effort::some_of;

use crate::kinds::*;

/// The lengths around which the form changes: 4 is where 32 bytes of doubles begin, 16 and 256 are where columns begin,
/// 2,048 is where buffers begin.
const LENGTHS: [usize; 12] = [0, 1, 3, 4, 16, 31, 32, 255, 256, 2047, 2048, 65_536];

/// A source of random bits: splitmix64.
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.bits() % end as u64) as usize
    }

    /// One of the shorter lengths.
    fn length(&mut self) -> usize {
        LENGTHS[self.below(7)]
    }
}

/// A type with random values.
trait Make {
    fn make(random: &mut Random) -> Self;
}

fn some<T: Make, C: FromIterator<T>>(random: &mut Random, len: usize) -> C {
    (0..len).map(|_| T::make(random)).collect()
}

/// The archive with which values are saved by these options.
fn archived<T: Serialize + ?Sized>(value: &T, options: &SaveOptions) -> Vec<u8> {
    let mut out = OArchive::with_options(Vec::new(), options.clone()).unwrap();
    out.save(value).unwrap();
    out.finish().unwrap()
}

fn encodings() -> [EncodeOptions; 4] {
    [(false, false), (true, false), (false, true), (true, true)].map(|(packed, columns)| {
        EncodeOptions::default().with_typed_arrays(packed).with_columns(columns)
    })
}

/// Writes and reads a value in every way; in a short run in some ways, which differ with `what`. Values are compared by
/// their messages, because a NaN equals nothing.
fn comes_back<T: Serialize + DeserializeOwned>(value: &T, what: &str) {
    let expected = tenarc::to_vec(value).unwrap();
    let same = |read: tenarc::Result<T>, way: &str| match read {
        Ok(read) => {
            let same = tenarc::to_vec(&read).unwrap() == expected;
            assert!(same, "{what}, {way}: another value");
        }
        Err(error) => panic!("{what}, {way}: {error}"),
    };
    let as_value = |value: tenarc::Result<Value>, way: &str| match value {
        Ok(value) => {
            same(T::deserialize(&value), &format!("{way}, by reference"));
            same(tenarc::from_value(value), way);
        }
        Err(error) => panic!("{what}, {way}: {error}"),
    };
    as_value(tenarc::to_value(value), "to_value");
    let turn: usize = what.bytes().map(usize::from).sum();
    for (number, options) in some_of(encodings().into_iter().enumerate(), 4, turn) {
        let bytes = tenarc::ser::to_vec_with(value, options).unwrap();
        same(tenarc::from_slice(&bytes), &format!("message {number}"));
        same(tenarc::from_reader(&bytes[..]), &format!("message {number} from a reader"));
        as_value(tenarc::from_slice(&bytes), &format!("message {number} as a value"));
    }
    for columns in some_of([None, Some(true), Some(false)], 3, turn) {
        let options = match columns {
            Some(on) => SaveOptions::default().with_columns(on),
            None => SaveOptions::default(),
        };
        let way = |way: &str| format!("archive with columns {columns:?}, {way}");
        let bytes = archived(value, &options);
        same(IArchive::new(&bytes[..]).unwrap().load(), &way("streamed"));
        let archive = Archive::new(&bytes[..]).unwrap();
        archive.verify().unwrap();
        same(archive.load(), &way("loaded"));
        same(archive.view(), &way("viewed"));
        as_value(archive.load(), &way("as a value"));
        let again = archived(&archive.load::<Value>().unwrap(), &options);
        same(Archive::new(&again[..]).unwrap().load(), &way("saved as a value"));

        let (metadata, buffers) =
            tenarc::parts::to_parts_with(value, options).unwrap().into_inner();
        same(tenarc::from_parts(&metadata, &buffers), &way("parts"));
        as_value(tenarc::from_parts(&metadata, &buffers), &way("parts as a value"));
    }
}

fn name_of<T>() -> String {
    std::any::type_name::<T>().replace("lengths::kinds::", "").replace("alloc::", "")
}

#[derive(Serialize, serde::Deserialize)]
struct Holder<T> {
    before: u8,
    list: Vec<T>,
    one: T,
    perhaps: Option<Vec<T>>,
    after: String,
}

/// Lists of these values, by themselves, in a struct, and in a list of structs, which may become columns. All are parts of
/// one value, so that less code is compiled.
fn lists<T: Make + Serialize + DeserializeOwned>(seed: u64, longest: usize) {
    let random = &mut Random(seed);
    for len in LENGTHS.into_iter().filter(|len| *len <= longest) {
        let what = format!("{} of {}, seed {seed}", len, name_of::<T>());
        comes_back(&some::<T, Vec<T>>(random, len), &what);
        if len > 256 {
            continue;
        }
        let mut holder = |len| Holder {
            before: 1,
            list: some(random, len),
            one: T::make(random),
            perhaps: (len % 2 == 0).then(|| some(random, len / 2)),
            after: "after".to_owned(),
        };
        let first = holder(len);
        let rows: Vec<_> = [0, 1, 3, 1, 0].into_iter().cycle().take(len).map(holder).collect();
        let nested: Vec<Vec<T>> =
            [0, 1, 40, 3, len].into_iter().map(|len| some(random, len)).collect();
        comes_back(&(first, rows, nested), &format!("in structs: {what}"));
    }
}

/// A value whose parts have this length.
fn whole<T: MakeOf + Serialize + DeserializeOwned>(seed: u64, longest: usize) {
    let random = &mut Random(seed);
    for len in LENGTHS.into_iter().filter(|len| *len <= longest) {
        let what = format!("{} with {len}, seed {seed}", name_of::<T>());
        comes_back(&T::make_of(random, len), &what);
        if len > 2048 {
            continue;
        }
        // As many as become columns, with other lengths between.
        let mut made = |at: usize| T::make_of(random, [len, 0, 2][at % 3]);
        let many: Vec<(T, Option<Option<T>>)> = (0..if len > 256 { 3 } else { 17 })
            .map(|at| (made(at), Some(Some(made(at + 1)))))
            .collect();
        comes_back(&many, &format!("rows of {what}"));
    }
}

macro_rules! tests {
    ($($name:ident: [$($check:ident $type:ty, $longest:expr;)*];)*) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: 1, ..ProptestConfig::default() })]
            $(#[test]
            fn $name(seed: u64) {
                $($check::<$type>(seed, $longest);)*
            })*
        }
    };
}

tests! {
    integers: [lists u8, 65_536; lists i8, 65_536; lists u16, 65_536; lists i32, 65_536; lists u64, 65_536; lists i128, 2048;
    ];
    floats: [lists f32, 65_536; lists f64, 65_536;
    ];
    scalars: [lists bool, 65_536; lists char, 2048; lists (), 2048; lists String, 2048;
    ];
    options: [lists Option<u8>, 2048; lists Option<Option<()>>, 256; lists Option<String>, 256; lists Option<Structure>, 256;
    ];
    tuples: [lists (u8, f32), 2048; lists [f32; 3], 2048; lists [u8; 4], 2048; lists (String, Option<u8>), 256;
        lists Pair, 256; lists Newtype, 2048; lists Unit, 256; lists Wrapped<Vec<u8>>, 256;
    ];
    structs: [lists Structure, 2048; lists Nested, 256; lists Skipping, 256; lists Defaults, 256;
    ];
    enums: [lists External, 256; lists Internal, 256; lists Adjacent, 256;
        lists Simple, 2048; lists Result<u8, String>, 256;
    ];
    bytes: [whole Vec<u8>, 65_536; whole Bytes, 65_536; whole Box<[u8]>, 2048; whole BorrowedBytes, 2048;
        whole BytesOfVec, 2048; whole CText, 2048; whole Text, 65_536; whole BorrowedText, 2048;
    ];
    maps: [whole Keys<String>, 2048; whole Keys<i64>, 2048; whole Keys<bool>, 3; whole Keys<u128>, 256;
        whole Keys<Bytes>, 256; whole Keys<Vec<u8>>, 256; whole Keys<(u8, bool)>, 256; whole Keys<()>, 1;
        whole Keys<External>, 31; whole Keys<Option<Option<bool>>>, 4;
    ];
    flattened: [whole Flat<String>, 2048; whole Flat<i64>, 2048; whole Flat<bool>, 3; whole Flat<Bytes>, 256;
        whole Flat<Option<u8>>, 31; whole Flat<Simple>, 3; whole FlatStruct, 256; whole FlatEnum, 256; whole FlatBytes, 2048;
    ];
    collections: [whole Deque, 2048; whole Set, 2048; whole Standard, 2048; whole Addresses, 256;
    ];
    tensors: [whole Floats, 65_536; whole Doubles, 2048; whole Bools, 65_536; whole Halves, 2048;
        whole Complexes, 2048; whole Small, 65_536; whole Dynamic, 2048; whole Plain, 65_536; whole Image, 2048;
    ];
    values: [whole Value, 256; whole Raw, 256;
    ];
    mixed: [whole Everything, 2048;
    ];
}
