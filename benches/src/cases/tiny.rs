//! (k) encodes and decodes a struct of three fields, 10,000 times.

use std::hint::black_box;

use crate::harness::{Case, Column, Effort, MESSAGES, Placed, Row, timed};
use crate::peers::{self, Codec};
use crate::recorder::Recorder;
use crate::table::print_report;
use crate::targets::Targets;

const COUNT: usize = 10_000;

#[derive(Clone, PartialEq, serde::Serialize, serde::Deserialize)]
struct Job {
    id: u64,
    name: String,
    score: f64,
}

fn row<'a, C: Codec>(jobs: &'a [Job]) -> Row<'a> {
    let messages: Vec<Vec<u8>> = jobs.iter().map(C::to_vec).collect();
    let same = |(message, job): (&Vec<u8>, &Job)| C::decode::<Job>(message) == *job;
    assert!(messages.iter().zip(jobs).all(same), "{} decodes another value", C::NAME);
    let row = Row::new(C::NAME, "plain", Placed::new(&messages.concat(), 0))
        .fresh(move || jobs.iter().for_each(|job| drop(black_box(C::to_vec(job)))))
        .decode(move |_| {
            timed(|| messages.iter().for_each(|message| drop(black_box(C::decode::<Job>(message)))))
        });
    if !C::REUSES {
        return row;
    }
    row.encode(move |buffer| {
        for job in jobs {
            buffer.clear();
            C::encode(job, buffer);
            black_box(&*buffer);
        }
    })
}

pub fn run(effort: Effort, recorder: &mut Recorder, targets: &mut Targets) {
    let jobs: Vec<Job> = (0..COUNT)
        .map(|n| Job { id: n as u64 * 13, name: format!("job {n:05}"), score: n as f64 * 0.37 })
        .collect();
    let jobs = &*jobs;

    let message = peers::Tenarc::to_vec(&jobs[0]);
    let message = &*message;
    let floor = Row::bare("floor", "")
        .encode(move |buffer| {
            for _ in jobs {
                buffer.clear();
                buffer.extend_from_slice(black_box(message));
                black_box(&*buffer);
            }
        })
        .fresh(move || jobs.iter().for_each(|_| drop(black_box(message.to_vec()))))
        .decode(move |_| timed(|| jobs.iter().for_each(|job| drop(black_box(job.clone())))));
    let rows = vec![
        floor,
        row::<peers::Tenarc>(jobs),
        row::<peers::Cbor4ii>(jobs),
        row::<peers::Minicbor>(jobs),
        row::<peers::RmpNamed>(jobs),
        row::<peers::RmpCompact>(jobs),
        row::<peers::Ciborium>(jobs),
        row::<peers::Json>(jobs),
        row::<peers::Bincode1>(jobs),
        row::<peers::Bincode2>(jobs),
        row::<peers::Postcard>(jobs),
        row::<peers::SerdeZap>(jobs),
    ];
    let report = Case {
        title: format!("(k) tiny: a struct of three fields, {COUNT} times"),
        heads: MESSAGES,
        floor: "encode, to_vec: memcpy of tenarc's message; decode: clone of the value",
        rows,
    }
    .run(effort);
    print_report(&report);
    recorder.keep("tiny", &report);
    for (column, bound) in [(Column::Encode, 1.2), (Column::Decode, 1.0)] {
        let median = |peer| report.median(peer, "plain", column);
        targets.at_most(
            "k tiny",
            format!("{} / rmp-serde with names", report.head(column)),
            (median("tenarc"), median("rmp-serde named")),
            bound,
        );
    }
}
