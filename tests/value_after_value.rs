//! Values of many types saved one after the other and read back in order: what a program does that writes
//! `archive << a << b` and reads `archive >> a >> b`.

// Sample values are exact, and come back bit for bit.
#![allow(clippy::float_cmp)]

mod common;
#[path = "value_after_value/containers.rs"]
mod containers;
#[path = "value_after_value/generic.rs"]
mod generic;
#[path = "value_after_value/matrices.rs"]
mod matrices;
#[path = "value_after_value/objects.rs"]
mod objects;
#[path = "value_after_value/order.rs"]
mod order;
#[path = "value_after_value/soft_fail.rs"]
mod soft_fail;
#[path = "value_after_value/transports.rs"]
mod transports;
#[path = "value_after_value/user_types.rs"]
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
