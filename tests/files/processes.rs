//! N 92, 93: several processes, some of them killed, on one file.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::child;
use crate::support::{Chance, Dir, Record, append, create, numbers_in, read, record};
use crate::torn::whole_numbers_in;
use crate::trace;

const NAME: &str = "a.tenarc";

pub fn start(job: &str, dir: &Dir) -> Child {
    let mut command = child::command(job, &dir.at(NAME));
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// The numbers that a child reported as saved, after it ended.
pub fn reported(child: &mut Child) -> (Vec<u32>, String) {
    let mut numbers = Vec::new();
    let mut others = String::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        match line.strip_prefix("saved ") {
            Some(number) => numbers.push(number.parse().unwrap()),
            None => others += &line,
        }
    }
    (numbers, others)
}

/// Starts a process for each of these numbers, which appends `count` records from there on. All of them are in the archive
/// at the end, beside what was in it `before`.
pub fn append_at_once<const N: usize>(dir: &Dir, from: [u32; N], count: u32, before: &[u32]) {
    let mut children = from.map(|from| start(&format!("append_loop {from} {count}"), dir));
    for child in &mut children {
        let (numbers, said) = reported(child);
        assert!(child.wait().unwrap().success(), "{said}");
        assert_eq!(numbers.len() as u32, count, "{said}");
    }
    let mut found = read(&dir.at(NAME));
    found.sort_unstable();
    let expected = from.into_iter().flat_map(|from| from..from + count);
    assert_eq!(found, expected.chain(before.iter().copied()).collect::<Vec<u32>>());
    dir.holds_only(NAME);
}

#[test]
fn nothing_is_lost_that_one_of_two_appending_processes_reported() {
    let dir = Dir::new();
    create(&dir.at(NAME), [9999], 600);
    append_at_once(&dir, [0, 1000], 60, &[9999]);
}

fn all_are_in(expected: &[u32], found: &[u32]) -> bool {
    let found: HashSet<_> = found.iter().collect();
    expected.iter().all(|number| found.contains(number))
}

/// Each round reads the whole file, so that the time grows with the square of the rounds.
fn killed_appenders(rounds: u32, seed: u64) {
    let dir = Dir::new();
    let path = dir.at(NAME);
    create(&path, [9999], 600);
    let mut chance = Chance::new(seed);
    let mut expected = vec![9999];
    for round in 0..rounds {
        let from = round * 10_000 + 10_000;
        let mut children =
            [0, 5000].map(|at| start(&format!("append_loop {} 4000", from + at), &dir));
        for child in &mut children {
            std::thread::sleep(Duration::from_millis(chance.next() % 120 + 10));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        for child in &mut children {
            let (numbers, said) = reported(child);
            assert!(said.is_empty(), "{said}");
            expected.extend(numbers);
        }
        let torn = tenarc::archive::open_torn(&path).unwrap();
        let found = whole_numbers_in(&torn);
        assert!(all_are_in(&expected, &found), "round {round}");
        let committed = tenarc::open(&path).unwrap();
        assert_eq!(numbers_in(&committed).unwrap(), found[..committed.len() as usize]);
        let left = if round % 2 == 0 {
            let recovered = tenarc::archive::recover(&path).unwrap();
            assert_eq!(recovered.segments, found.len() as u64);
            &found[..]
        } else {
            &found[..committed.len() as usize]
        };
        assert!(all_are_in(&expected, left), "round {round}");
        append(&path, [round], 600);
        expected.push(round);
        assert_eq!(read(&path).len(), left.len() + 1);
    }
    // At most one that was not reported yet for each process that was killed.
    assert!(read(&path).len() <= expected.len() + 2 * rounds as usize);
}

#[test]
fn nothing_is_lost_that_a_killed_process_reported() {
    killed_appenders(4, 3);
}

#[test]
#[ignore = "slow: many rounds"]
fn nothing_is_lost_that_any_of_many_killed_processes_reported() {
    for seed in 0..5 {
        killed_appenders(5, seed);
    }
}

#[test]
fn processes_that_save_replace_each_others_archives_whole() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    tenarc::save(&path, &record(9999, 600)).unwrap();
    let mut children = [0, 1000].map(|from| start(&format!("save_loop {from} 60"), &dir));
    let mut last = [9999; 2];
    loop {
        let running = children.iter_mut().any(|child| child.try_wait().unwrap().is_none());
        let found: Record = tenarc::load(&path).unwrap();
        assert_eq!(found, record(found.number, 600));
        // What one of them saved is never followed by something older of it.
        if found.number != 9999 {
            let writer = (found.number / 1000) as usize;
            assert!(last[writer] == 9999 || found.number >= last[writer]);
            last[writer] = found.number;
        }
        if !running {
            break;
        }
    }
    assert!(children.iter_mut().all(|child| child.wait().unwrap().success()));
    assert!([59, 1059].contains(&tenarc::load::<Record>(&path).unwrap().number));
    dir.holds_only(NAME);
}

/// One appends while another one replaces the archive: what is there is whole at any time, and who
/// appended to a file that is gone is told.
#[test]
fn one_process_appends_while_another_one_saves() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    create(&path, [9999], 600);
    let mut saver = start("save_loop 0 40", &dir);
    let mut told = 0;
    while saver.try_wait().unwrap().is_none() {
        let append = || -> tenarc::Result<()> {
            let mut out = tenarc::OArchive::append(&path)?;
            out.save(&record(5000, 600))?;
            out.finish().map(drop)
        };
        if let Err(error) = append() {
            assert_eq!(error.category(), tenarc::error::Category::Io, "{error}");
            told += 1;
        }
        let bytes = fs::read(&path).unwrap();
        let found = crate::support::numbers(&bytes).unwrap();
        assert!(found[1..].iter().all(|number| *number == 5000), "{found:?}");
    }
    eprintln!("told {told} times that the archive was replaced");
    assert!(saver.wait().unwrap().success());
}

/// The child is held up when it has renamed its file, before the call returns to it.
#[test]
fn an_append_can_follow_at_once_on_the_rename_of_a_save() {
    if !trace::is_there() {
        return;
    }
    let dir = Dir::new();
    let path = dir.at(NAME);
    tenarc::save(&path, &record(1, 600)).unwrap();
    let calls = trace::watch("save 2 600", &path);
    let rename = calls.iter().find(|call| call.name.starts_with("rename")).unwrap();
    tenarc::save(&path, &record(1, 600)).unwrap();
    // In microseconds.
    let late = [rename.with("delay_exit=2000000")];
    std::thread::scope(|scope| {
        let saver = scope.spawn(|| trace::tamper("save 2 600", &path, &late));
        while tenarc::load::<Record>(&path).unwrap().number == 1 {
            assert!(!saver.is_finished());
            std::thread::sleep(Duration::from_millis(1));
        }
        append(&path, [3], 600);
        assert!(!saver.is_finished(), "the rename was not held up");
        let (status, said) = saver.join().unwrap();
        assert_eq!(status.code(), Some(child::DONE), "{said}");
    });
    let found = tenarc::open(&path).unwrap();
    assert_eq!(crate::support::numbers_in(&found).unwrap(), [2, 3]);
}
