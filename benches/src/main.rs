//! Benchmarks of tenarc and other formats, called peers here.
//!
//! ```text
//! cargo run --release -p tenarc-benches                 # everything
//! cargo run --release -p tenarc-benches -- b d          # two cases
//! cargo run --release -p tenarc-benches -- --quick      # everything, fewer rounds
//! cargo run --release -p tenarc-benches -- --peer cbor  # only peers with this in their names
//! ```

mod bytes;
mod cases;
mod data;
mod files;
mod harness;
mod memory;
mod native;
mod peers;
mod stores;
mod table;
mod targets;

use harness::Effort;
use targets::Targets;

/// Letter, name and description of each case.
const CASES: [(&str, &str, &str); 10] = [
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
];

fn main() {
    let mut effort = Effort::FULL;
    let mut peer = None;
    let mut wanted = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let case = CASES.iter().find(|(letter, name, _)| argument == *letter || argument == *name);
        match (argument.as_str(), case) {
            ("--quick", _) => effort = Effort::QUICK,
            ("--peer", _) => match arguments.next() {
                // Leaked, as it is needed until the program ends.
                Some(name) => peer = Some(&*name.leak()),
                None => return usage(),
            },
            (_, Some((letter, ..))) => wanted.push(*letter),
            _ => return usage(),
        }
    }
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

    let mut targets = Targets::default();
    for (letter, ..) in CASES {
        if !wanted.is_empty() && !wanted.contains(&letter) {
            continue;
        }
        match letter {
            "a" => cases::model::run(effort, &mut targets),
            "b" => cases::records::run(effort, &mut targets),
            "c" => cases::mesh::run(effort, &mut targets),
            "d" => cases::log::run(effort, &mut targets),
            "f" => cases::save::run(effort, &mut targets),
            "g" => cases::load::run(effort, &mut targets),
            "h" => cases::open::run(effort, &mut targets),
            "i" => cases::size::run(&mut targets),
            #[cfg(unix)]
            "j" => cases::send::run(effort, &mut targets),
            #[cfg(not(unix))]
            "j" => println!("(j) needs Unix sockets"),
            _ => cases::savegame::run(effort, &mut targets),
        }
    }
    targets.print();
}

fn usage() {
    eprintln!("usage: tenarc-benches [--quick] [--peer NAME] [CASE]...\n");
    for (letter, name, about) in CASES {
        eprintln!("  {letter}, {name:<9} {about}");
    }
}
