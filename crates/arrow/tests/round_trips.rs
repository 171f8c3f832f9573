//! Tables to record batches and back.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use tenarc::archive::{Compression, SaveOptions};
use tenarc::{Archive, OArchive, Tensor};
use tenarc_arrow::{ArrowTable, save};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Event {
    Open,
    Click { x: f32, y: Option<i16> },
    Text(String),
    Pair(u8, i64),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Row {
    id: u64,
    score: f64,
    flag: bool,
    name: String,
    note: Option<String>,
    tags: Vec<u16>,
    at: [f32; 3],
    embedding: Tensor<[i8; 4]>,
    event: Event,
    last: Option<Event>,
    pair: (u8, String),
    counts: BTreeMap<String, i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rare: Option<u32>,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        Just(Event::Open),
        (-9f32..9.0, any::<Option<i16>>()).prop_map(|(x, y)| Event::Click { x, y }),
        "[a-c]{0,9}".prop_map(Event::Text),
        any::<(u8, i64)>().prop_map(|(a, b)| Event::Pair(a, b)),
    ]
}

fn row() -> impl Strategy<Value = Row> {
    let first = (any::<u64>(), -9f64..9.0, any::<bool>(), "[a-z]{0,5}", any::<Option<String>>());
    let second = (
        prop::collection::vec(any::<u16>(), 0..4),
        prop::array::uniform3(-1f32..1.0),
        any::<[i8; 4]>(),
        event(),
        prop::option::of(event()),
    );
    let counts = prop::collection::btree_map("[a-z]{1,3}", any::<i32>(), 0..3);
    let third = (any::<(u8, String)>(), counts, prop::option::of(1u32..9));
    (first, second, third).prop_map(
        |(
            (id, score, flag, name, note),
            (tags, at, embedding, event, last),
            (pair, counts, rare),
        )| {
            let embedding = Tensor(embedding);
            Row {
                id,
                score,
                flag,
                name,
                note,
                tags,
                at,
                embedding,
                event,
                last,
                pair,
                counts,
                rare,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_comes_back_is_equal(
        segments in prop::collection::vec(prop::collection::vec(row(), 0..40), 1..4),
        is_compressed: bool,
    ) {
        let mut options = SaveOptions::default();
        if is_compressed {
            options = options.with_compression(Compression::lz4());
        }
        let mut out = OArchive::with_options(Vec::new(), options).unwrap();
        for rows in &segments {
            out.save_as("t", rows).unwrap();
        }
        let archive = Archive::new(out.finish().unwrap()).unwrap();
        let rows = segments.concat();
        if rows.is_empty() {
            ArrowTable::open(&archive, "t").unwrap_err();
            return Ok(());
        }
        let table = ArrowTable::open(&archive, "t").unwrap();
        prop_assert!(table.report().is_empty(), "{}", table.report());
        let mut out = OArchive::new(Vec::new()).unwrap();
        prop_assert_eq!(save(&mut out, "t", table.reader()).unwrap(), rows.len() as u64);
        let again = Archive::new(out.finish().unwrap()).unwrap();
        prop_assert_eq!(again.table("t").unwrap().rows::<Row>(..).unwrap(), rows);
    }
}
