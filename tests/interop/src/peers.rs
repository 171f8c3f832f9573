//! Other Rust crates: ciborium, cbor4ii and minicbor-serde.

use serde::de::DeserializeOwned;

use crate::data::Data;
use crate::got::{Shown, from_ciborium};
use crate::plain::Everything;
use crate::{Entry, Tally};

pub fn check(entries: &[Entry]) -> Tally {
    let mut tally = Tally::default();
    for entry in entries {
        // ciborium's value keeps tags, so tensors can be read out of it.
        let result = ciborium::from_reader(entry.bytes.as_slice())
            .map_err(|error| error.to_string())
            .and_then(|value| from_ciborium(&value).matches(&entry.data));
        tally.note(&format!("{} by ciborium's value", entry.file), result);
        if entry.data.is_plain() {
            for (name, read) in READERS {
                let result = read(&entry.bytes).and_then(|shown| shown.matches(&entry.data));
                tally.note(&format!("{} by {name}", entry.file), result);
            }
        }
    }
    typed(&mut tally);
    tally
}

type Reader = fn(&[u8]) -> Result<Data, String>;

/// What each crate's deserializer shows of itself.
const READERS: [(&str, Reader); 4] = [
    ("tenarc", |bytes| shown(tenarc::from_slice(bytes))),
    ("ciborium", |bytes| shown(ciborium::from_reader(bytes))),
    ("cbor4ii", |bytes| shown(cbor4ii::serde::from_slice(bytes))),
    ("minicbor-serde", |bytes| shown(minicbor_serde::from_slice(bytes))),
];

fn shown<E: ToString>(result: Result<Shown, E>) -> Result<Data, String> {
    result.map(|Shown(data)| data).map_err(|error| error.to_string())
}

/// A struct of every kind of value, both ways.
fn typed(tally: &mut Tally) {
    let example = Everything::example();
    let Ok(ours) = tenarc::to_vec(&example) else {
        return tally.note("everything", Err("cannot be written".into()));
    };
    let mut note = |what: &str, result| tally.note(&format!("everything {what}"), result);
    note("read by ciborium", same(&example, ciborium::from_reader(ours.as_slice())));
    note("read by cbor4ii", same(&example, cbor4ii::serde::from_slice(&ours)));
    note("read by minicbor-serde", same(&example, minicbor_serde::from_slice(&ours)));

    let mut theirs = Vec::new();
    let written = ciborium::into_writer(&example, &mut theirs).map(|()| theirs);
    note("written by ciborium", reread(&example, written));
    note("written by cbor4ii", reread(&example, cbor4ii::serde::to_vec(Vec::new(), &example)));
    note("written by minicbor-serde", reread(&example, minicbor_serde::to_vec(&example)));
}

fn reread<T, E>(example: &T, written: Result<Vec<u8>, E>) -> Result<(), String>
where
    T: DeserializeOwned + PartialEq + std::fmt::Debug,
    E: ToString,
{
    let bytes = written.map_err(|error| error.to_string())?;
    same(example, tenarc::from_slice(&bytes))?;
    same(example, tenarc::from_reader(bytes.as_slice()))
}

fn same<T, E>(example: &T, read: Result<T, E>) -> Result<(), String>
where
    T: PartialEq + std::fmt::Debug,
    E: ToString,
{
    match read {
        Ok(value) if value == *example => Ok(()),
        Ok(value) => Err(format!("found {value:?}")),
        Err(error) => Err(error.to_string()),
    }
}
