//! Benchmarks of tenarc against its peers.
//!
//! ```text
//! cargo run --release -p tenarc-benches                 # everything
//! cargo run --release -p tenarc-benches -- b d          # two cases
//! cargo run --release -p tenarc-benches -- --quick      # everything, fewer rounds
//! cargo run --release -p tenarc-benches -- --peer cbor  # peers with that in their names
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

/// Letter, name, what it is.
const CASES: [(&str, &str, &str); 10] = [
    ("a", "model", "model structs of 10 MB and 200 MB"),
    ("b", "records", "10,000 records of id, label and 256 floats"),
    ("c", "mesh", "a mesh of 125,000 triangles"),
    ("d", "log", "10,000 log lines"),
    ("e", "savegame", "a deep save-game"),
    ("f", "save", "the 200 MB model saved to a file"),
    ("g", "load", "the 200 MB model loaded from a file"),
    ("h", "open", "one tensor of files of 200 MB and 2 GB, of 120 and 10,000 tensors"),
    ("i", "size", "what archives take beyond their payload"),
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
                // It is needed until the program ends.
                Some(name) => peer = Some(&*name.leak()),
                None => return usage(),
            },
            (_, Some((letter, ..))) => wanted.push(*letter),
            _ => return usage(),
        }
    }
    effort.peer = peer;
    let memory = memory::settle();
    println!(
        "encode: into reused memory; to_vec: into fresh memory; decode: from a slice to owned"
    );
    println!("values in fresh memory; borrowed: from a slice to values that borrow from it, its x");
    println!("being set against decode's floor. Times are medians of interleaved rounds; nothing");
    println!(
        "is dropped while the clock runs, which itself takes 20 to 30 ns. What runs under 12 ms"
    );
    println!(
        "is warmed up in every round; runs during which others got the processor are left out."
    );
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
            "j" => println!("no Unix sockets here"),
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
