//! Values of many types saved one after the other and read back in order, as programs do that write
//! `archive << a << b` and read `archive >> a >> b`.

// Sample values are exact, and come back bit for bit.
#![allow(clippy::float_cmp)]

mod containers;
mod generic;
mod matrices;
mod objects;
mod order;
mod soft_fail;
mod transports;
mod user_types;

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tenarc::archive::SaveOptions;
use tenarc::io::SyncLevel;
use tenarc::{IArchive, OArchive};

/// The default, but for syncing, which tests of contents need not wait for.
fn quick() -> SaveOptions {
    SaveOptions::default().with_sync(SyncLevel::Off)
}

/// Saved with something behind it, which is read as well.
#[track_caller]
fn round_trip<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    for options in [quick(), quick().with_inline_below(0), quick().with_inline_below(usize::MAX)] {
        let mut out = OArchive::with_options(Vec::new(), options).unwrap();
        out.save(value).unwrap().save(&"behind").unwrap();
        let bytes = out.finish().unwrap();
        let mut input = IArchive::new(&bytes[..]).unwrap();
        assert_eq!(&input.load::<T>().unwrap(), value);
        assert_eq!(input.load::<String>().unwrap(), "behind");
        assert!(input.is_at_end().unwrap());
    }
}
