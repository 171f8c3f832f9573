//! `serde_json::value::RawValue` was saved, and could not be read.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tenarc::archive::SaveOptions;
use tenarc::{Archive, OArchive};

#[derive(Serialize, Deserialize)]
struct Event {
    raw: Box<RawValue>,
    maybe: Option<Box<RawValue>>,
}

fn event(number: usize) -> Event {
    let raw = |text: String| RawValue::from_string(text).unwrap();
    let maybe = number.is_multiple_of(2).then(|| raw("[true]".to_owned()));
    Event { raw: raw(format!("{{\"n\": {number}}}")), maybe }
}

fn check(event: &Event, number: usize) {
    assert_eq!(event.raw.get(), format!("{{\"n\": {number}}}"));
    let maybe = event.maybe.as_ref().map(|raw| raw.get());
    assert_eq!(maybe, number.is_multiple_of(2).then_some("[true]"));
}

#[test]
fn texts_of_json_are_read() {
    let bytes = tenarc::to_vec(&event(2)).unwrap();
    check(&tenarc::from_slice(&bytes).unwrap(), 2);
    check(&tenarc::from_reader(&bytes[..]).unwrap(), 2);
    let value = tenarc::to_value(&event(1)).unwrap();
    check(&tenarc::from_value(value).unwrap(), 1);

    let events: Vec<_> = (0..70).map(event).collect();
    let options = SaveOptions::default().with_columns(true);
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    out.save_as("log", &events).unwrap().save_as("log", &events).unwrap();
    let archive = Archive::new(out.finish().unwrap()).unwrap();
    let table = archive.table("log").unwrap();
    let rows: Vec<Event> = table.rows(..).unwrap();
    (0..140).for_each(|number| check(&rows[number], number % 70));
    let raw: Vec<Box<RawValue>> = table.column("raw").unwrap();
    assert_eq!(raw[73].get(), "{\"n\": 3}");
}
