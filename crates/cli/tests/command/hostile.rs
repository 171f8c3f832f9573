//! Hostile names, closed pipes, damaged files, large sizes.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::support::{Dir, command, flat, model, ramp, run, run_with};
use tenarc::archive::SaveOptions;
use tenarc::io::SyncLevel;
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor, Tensor, Value};

fn tensor(byte: u8) -> DynTensor {
    DynTensor::new(DType::U8, &[1], Order::C, vec![byte]).unwrap()
}

/// Checks that the text has no character that could control a terminal.
#[track_caller]
fn assert_harmless(text: &str) {
    let harmful = |char: char| char.is_control() && char != '\n' || char == '\u{202e}';
    assert!(!text.chars().any(harmful), "{text:?}");
}

#[test]
fn names_from_files_are_escaped_for_the_terminal() {
    let dir = Dir::new();
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\r\u{9b}31m\u{202e}\n";
    let value = Value::Map(vec![
        (Value::Text(evil.into()), Value::Text(evil.into())),
        (
            Value::Text(format!("t{evil}")),
            Value::Tensor(Box::new(
                DynTensor::new(DType::from_name(evil), &[1], Order::C, vec![1]).unwrap(),
            )),
        ),
        (Value::Text(format!("u{evil}")), Value::Tensor(Box::new(tensor(1)))),
    ]);
    dir.save_all("a.tenarc", &[(Some(evil), &value), (None, &value)]);
    dir.save_all("b.tenarc", &[(Some("x"), &Value::Null), (Some(evil), &Value::Null)]);
    dir.write("bad\u{1b}[31m.cbor", b"\xff");
    let named = format!("u{evil}");
    for args in [
        &["ls", "a.tenarc"][..],
        &["ls", "--tree", "a.tenarc"],
        &["ls", "--json", "a.tenarc"],
        &["show", "a.tenarc"],
        &["show", "--json", "a.tenarc"],
        &["stats", "a.tenarc"],
        &["stats", "--json", "a.tenarc"],
        &["diff", "a.tenarc", "b.tenarc"],
        &["diff", "--json", "a.tenarc", "b.tenarc"],
        &["diag", "a.tenarc"],
        &["verify", "a.tenarc", "bad\u{1b}[31m.cbor", "none\u{1b}"],
        &["get", "a.tenarc", &named],
        &["get", "-s", "1", "a.tenarc", evil],
        &["get", "-s", evil, "a.tenarc", &named, "--cast", evil],
        &["edit", "-i", "a.tenarc", "--drop", evil, "-s", evil, "--rename", "a=b"],
        &["split", "a.tenarc", "-d", "parts\u{1b}[31m"],
        &["recover", "none\u{1b}"],
    ] {
        let ran = run(&dir, args);
        assert_harmless(ran.out());
        assert_harmless(&ran.err);
        assert!(ran.status <= 2, "{ran:?}");
    }
    let rows = run(&dir, &["ls", "--json", "a.tenarc", "-s", "1"]).json();
    assert_eq!(rows[0]["path"], format!("t{evil}"), "JSON parses to the unchanged name");
}

#[test]
fn a_closed_pipe_ends_the_program_quietly() {
    let dir = Dir::new();
    let large = Value::Array((0..20_000).map(|at| Value::Text(format!("text {at}"))).collect());
    dir.save("a.tenarc", &large);
    dir.save("b.tenarc", &ramp(&[100_000]));
    for args in [
        &["show", "--full", "a.tenarc"][..],
        &["show", "--json", "a.tenarc"],
        &["diag", "a.tenarc"],
        &["get", "b.tenarc", ""],
        &["get", "b.tenarc", "", "--json"],
        &["get", "b.tenarc", "", "--as", "raw"],
        &["cat", "b.tenarc", "-o", "-"],
        &["convert", "b.tenarc", "-", "--to", "cbor"],
        &["convert", "b.tenarc", "-", "--to", "json"],
    ] {
        let mut command = command(&dir);
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut start = [0; 10];
        child.stdout.take().unwrap().read_exact(&mut start).unwrap();
        // The pipe is closed here, with most of the output unread.
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), err.as_str()), (Some(141), ""), "{args:?}");
    }
}

#[test]
fn colours_are_used_on_terminals_or_on_request() {
    let dir = Dir::new();
    dir.save("a.tenarc", &model());
    let plain = run(&dir, &["ls", "a.tenarc"]);
    assert!(!plain.good().contains('\u{1b}'), "the output is not a terminal");
    let coloured = run(&dir, &["ls", "--color", "always", "a.tenarc"]);
    assert!(coloured.good().contains("\u{1b}[1m"), "{coloured:?}");
    let output = |vars: &[(&str, &str)]| {
        let mut command = command(&dir);
        command.args(["ls", "a.tenarc"]).envs(vars.iter().copied());
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert!(output(&[("CLICOLOR_FORCE", "1")]).contains("\u{1b}[1m"));
    assert!(!output(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]).contains('\u{1b}'));
    let escapes = coloured.good().matches('\u{1b}').count();
    assert_eq!(coloured.good().len() - plain.good().len(), escapes * 4, "only colours differ");
}

/// Runs a command line in a terminal of its own; `None` if the machine cannot provide one.
#[cfg(target_os = "linux")]
fn at_a_terminal(dir: &Dir, line: &str) -> Option<String> {
    let mut command = std::process::Command::new("script");
    let line = line.replace("tenarc", &format!("'{}'", env!("CARGO_BIN_EXE_tenarc")));
    command.args(["-qec", &line, "/dev/null"]).current_dir(dir.path());
    command.env("TERM", "xterm").env_remove("NO_COLOR").stdin(Stdio::null());
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
#[cfg(target_os = "linux")]
fn terminals_get_colours_and_progress() {
    let dir = Dir::new();
    dir.save("a.arc", &model());
    let Some(seen) = at_a_terminal(&dir, "tenarc ls a.arc") else { return };
    assert!(seen.contains("\u{1b}[1mpath"), "{seen:?}");
    let plain = at_a_terminal(&dir, "NO_COLOR=1 tenarc ls a.arc").unwrap();
    assert!(!plain.contains('\u{1b}'), "{plain:?}");
    assert!(at_a_terminal(&dir, "tenarc verify a.arc").unwrap().contains("verifying "));
    assert!(!at_a_terminal(&dir, "tenarc -q verify a.arc").unwrap().contains("verifying "));
    assert!(!at_a_terminal(&dir, "tenarc verify a.arc 2>err").unwrap().contains("verifying "));
    // Binary data goes to files and pipes only.
    let refused = at_a_terminal(&dir, "tenarc cat a.arc -o - || echo status $?").unwrap();
    assert!(refused.contains("standard output is a terminal") && refused.contains("status 2"));
}

/// The positions of a progress bar, as parts of its total.
#[cfg(target_os = "linux")]
fn positions(seen: &str, what: &str) -> Vec<f64> {
    let number = |text: &str| {
        let (number, unit) = text.trim().split_once(' ')?;
        let factor = match unit {
            "B" => 1.0,
            "KiB" => 1024.0,
            "MiB" => 1024.0 * 1024.0,
            _ => return None,
        };
        Some(number.parse::<f64>().ok()? * factor)
    };
    let start = format!("{what} ");
    let bars = seen.split(&start).skip(1);
    let position = |bar: &str| {
        let (done, rest) = bar.split_once('/')?;
        // The bar itself is before the number.
        let start = done.find(|char: char| char.is_ascii_digit())?;
        let mut words = rest.split(' ');
        let total = format!("{} {}", words.next()?, words.next()?);
        Some(number(&done[start..])? / number(&total)?)
    };
    bars.filter_map(position).collect()
}

/// A bar moves, and does not run past its end.
#[test]
#[cfg(target_os = "linux")]
fn progress_bars_know_their_total() {
    let dir = Dir::new();
    let tensor = |first: u8| Tensor(vec![first; 4 << 20]);
    for (name, first) in [("a", 1), ("b", 2)] {
        let value: BTreeMap<String, Tensor<Vec<u8>>> =
            (0..3).map(|number| (format!("{name}{number}"), tensor(first + number * 16))).collect();
        dir.save(&format!("{name}.arc"), &value);
    }
    for (line, what) in [
        ("tenarc merge a.arc b.arc -o m.arc", "merging"),
        ("tenarc convert m.arc m.npz", "converting"),
        ("tenarc convert m.npz n.arc", "converting"),
        ("tenarc edit m.npz -o e.safetensors --cast '*=i16' --drop a1", "copying"),
        ("tenarc split m.arc --max-size 5MB -d shards", "splitting"),
        ("tenarc stats m.arc", "measuring"),
        ("tenarc diff m.arc m.npz", "comparing"),
        ("tenarc verify m.npz", "verifying"),
    ] {
        let Some(seen) = at_a_terminal(&dir, line) else { return };
        let mut found = positions(&seen, what);
        assert!(found.iter().all(|part| (0.0..=1.001).contains(part)), "{line}: {found:?}");
        found.dedup();
        assert!(found.len() > 2 && found.is_sorted(), "{line}: {found:?} {seen:?}");
    }
}

#[test]
fn ten_thousand_tensors_are_no_trouble() {
    let dir = Dir::new();
    let names: Vec<String> = (0..10_000).map(|at| format!("layers.{at}.weight")).collect();
    let entries: Vec<(&str, DynTensor)> = names
        .iter()
        .enumerate()
        .map(|(at, name)| (name.as_str(), tensor((at % 251) as u8)))
        .collect();
    dir.save("a.tenarc", &flat(&entries));
    assert_eq!(run(&dir, &["ls", "a.tenarc"]).good().lines().count(), 10_002);
    assert_eq!(run(&dir, &["ls", "--tree", "a.tenarc"]).good().lines().count(), 20_002);
    assert_eq!(run(&dir, &["stats", "a.tenarc"]).good().lines().count(), 10_001);
    assert_eq!(run(&dir, &["diff", "a.tenarc", "a.tenarc"]).good(), "");
    assert_eq!(run(&dir, &["get", "a.tenarc", "layers.9999.weight"]).good(), "210\n");
    assert!(run(&dir, &["show", "a.tenarc"]).good().ends_with("  … 9000 more\n}\n"));
    run(&dir, &["edit", "a.tenarc", "-o", "b.tenarc", "--keep", "*9.weight", "--no-sync"]).good();
    assert_eq!(run(&dir, &["ls", "b.tenarc"]).good().lines().count(), 1002);
}

/// An archive with one tensor of 512 MiB of zeros, without checksums, in a sparse file.
#[cfg(target_os = "linux")]
fn sparse(dir: &Dir) -> PathBuf {
    use std::io::{Seek, SeekFrom, Write};

    /// A writer that seeks instead of writing zeros.
    struct Holes(std::fs::File);
    impl Write for Holes {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if bytes.len() >= 4096 && bytes.iter().all(|&byte| byte == 0) {
                self.0.seek(SeekFrom::Current(i64::try_from(bytes.len()).unwrap()))?;
                return Ok(bytes.len());
            }
            self.0.write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            self.0.flush()
        }
    }
    let path = dir.file("sparse.tenarc");
    let rows =
        tenarc::tensor::Deferred::from_blocks(DType::U8, &[1 << 9, 1 << 20], Order::C, |put| {
            let block = vec![0; 1 << 26];
            (0..1 << 3).try_for_each(|_| put(&block))
        });
    let options = SaveOptions::default().with_checksums(false).with_sync(SyncLevel::Off);
    let file = Holes(std::fs::File::create(&path).unwrap());
    let mut out = tenarc::OArchive::with_options(file, options).unwrap();
    out.save(&Tensor(rows)).unwrap();
    out.finish().unwrap();
    path
}

#[test]
#[cfg(target_os = "linux")]
fn only_the_wanted_part_of_a_large_tensor_is_read() {
    let dir = Dir::new();
    sparse(&dir);
    let start = std::time::Instant::now();
    assert!(run(&dir, &["ls", "sparse.tenarc"]).good().contains("512.0 MiB"));
    assert!(run(&dir, &["show", "sparse.tenarc"]).good().contains("[0 0 0 … 0 0 0]"));
    assert_eq!(run(&dir, &["get", "sparse.tenarc", "[500, 5:8]"]).good(), "0 0 0\n");
    assert_eq!(run(&dir, &["get", "sparse.tenarc", "[1:3, 0]"]).good(), "0 0\n");
    assert!(start.elapsed().as_secs() < 5, "took {:?}", start.elapsed());
}

#[test]
fn files_that_announce_more_than_they_hold_are_refused() {
    let dir = Dir::new();
    for (bytes, why) in [
        // An array, a byte string, a text and a map of 2^60 items.
        (&b"\x9b\x10\0\0\0\0\0\0\0"[..], "input ended, expected a value"),
        (b"\x5b\x10\0\0\0\0\0\0\0", "1152921504606846976 bytes of byte string, found 0"),
        (b"\x7b\x10\0\0\0\0\0\0\0", "1152921504606846976 bytes of text string, found 0"),
        (b"\xbb\x10\0\0\0\0\0\0\0", "input ended, expected a value"),
        (&[0x81; 200], "nesting is deeper than 128 levels"),
        (&[0xff], "break outside a container"),
        (&[0x1c], "reserved additional information"),
        (b"\xda\x54\x42\x55\x46\x81\0", "reference to buffer 0, but there are 0 buffers"),
    ] {
        for command in ["ls", "show", "stats", "diag"] {
            let ran = run_with(&dir, &[command, "--from", "cbor", "-"], bytes);
            ran.failed(2, why);
        }
    }
    run_with(&dir, &["ls", "-"], b"").failed(2, "the file is empty");
}

#[test]
fn tensors_without_elements_print_nothing() {
    let dir = Dir::new();
    let empty = DynTensor::new(DType::F32, &[1 << 40, 0, 1 << 10], Order::C, vec![]).unwrap();
    dir.save("a.tenarc", &flat(&[("t", empty)]));
    let json = run(&dir, &["get", "--json", "a.tenarc", "t"]).json();
    assert_eq!(json["data"], serde_json::json!([]));
    assert_eq!(run(&dir, &["get", "a.tenarc", "t"]).good(), "");
    assert_eq!(run(&dir, &["get", "a.tenarc", "t[5, :, 1:3]"]).good(), "");
    let shown = run(&dir, &["show", "a.tenarc"]);
    assert!(shown.good().contains("f32 [1099511627776, 0, 1024] [],"), "{shown:?}");
    for args in [&["show", "--json"][..], &["show", "--full"], &["stats"], &["diff", "a.tenarc"]] {
        let ran = run(&dir, &[args, &["a.tenarc"]].concat());
        assert!(ran.good().len() < 1000, "{ran:?}");
    }
}

#[test]
fn no_changed_byte_causes_a_panic() {
    let dir = Dir::new();
    let message = tenarc::to_vec(&(1, "text", Tensor(vec![1f32, 2.0]), Some(2.5))).unwrap();
    for at in 0..message.len() {
        for bit in [1, 0x80] {
            let mut bytes = message.clone();
            bytes[at] ^= bit;
            let ran = run_with(&dir, &["show", "--from", "cbor", "-"], &bytes);
            assert!(ran.status == 0 || ran.status == 2 && !ran.err.is_empty(), "{at}: {ran:?}");
        }
    }
}

/// The crate that decodes Parquet panics at these files. Its messages do not reach standard error.
#[test]
fn panics_of_a_decoder_become_errors() {
    let dir = Dir::new();
    let lists = "../convert/tests/fixtures/parquet/lists.parquet";
    let lists = Path::new(env!("CARGO_MANIFEST_DIR")).join(lists);
    for at in [886, 1000] {
        let mut bytes = std::fs::read(&lists).unwrap();
        bytes[at] ^= 0x80;
        dir.write("m.parquet", &bytes);
        let ran = run(&dir, &["verify", "m.parquet"]);
        assert_eq!((ran.status, &*ran.err), (1, ""), "{ran:?}");
        assert!(ran.out().contains("bad: the Parquet file is damaged: called `"), "{ran:?}");
        let ran = run(&dir, &["ls", "m.parquet"]);
        ran.failed(1, "m.parquet: the Parquet file is damaged: called `");
        assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
    }
}

#[test]
fn wrong_command_lines_have_another_exit_status_than_differences() {
    let dir = Dir::new();
    for args in [&[][..], &["ls"], &["list", "x"], &["ls", "x", "--sort", "age"], &["diff", "a"]] {
        assert_eq!(run(&dir, args).status, 2, "{args:?}");
    }
    run(&dir, &["ls", "none"]).failed(2, "none: No such file or directory");
    dir.write("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    run(&dir, &["ls", "picture.png"])
        .failed(2, "picture.png: unknown file format: name it with --from");
    run(&dir, &["ls", "."]).failed(2, ": is a directory");
    #[cfg(unix)]
    run(&dir, &["ls", "/dev/zero"]).failed(2, ": is a device");
    let help = run(&dir, &["diff", "--help"]);
    assert!(help.good().contains("--rtol"));
    let help = run(&dir, &["--help"]);
    assert!(help.good().contains("1    differences or damage were found"));
    assert_eq!(run(&dir, &["--version"]).good(), "tenarc 0.1.0\n");
}

#[test]
fn pipes_are_read_like_files() {
    let dir = Dir::new();
    dir.save("a.tenarc", &model());
    let script = "\"$0\" diff <(cat a.tenarc) <(printf '\\331\\331\\367'; \"$0\" convert a.tenarc - --to cbor)";
    let output = std::process::Command::new("bash")
        .args(["-c", script, env!("CARGO_BIN_EXE_tenarc")])
        .current_dir(dir.path())
        .output();
    // Not every machine has `mkfifo`.
    let Ok(output) = output else { return };
    assert_eq!((output.status.code(), output.stdout, output.stderr), (Some(0), vec![], vec![]));
}

#[test]
fn completions_and_the_manual_name_every_subcommand() {
    let dir = Dir::new();
    let commands =
        "ls show get stats diff verify diag recover cat split merge edit convert completions";
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&dir, &["completions", shell]);
        for command in commands.split(' ') {
            assert!(script.good().contains(command), "{shell} {command}");
        }
    }
    let page = run(&dir, &["man"]);
    assert!(page.good().contains(".TH tenarc 1"));
    for command in commands.split(' ') {
        assert!(page.good().contains(&format!(".SS {command}\n")), "{command}");
    }
    assert!(page.good().contains("differences or damage were found"));
    assert!(!page.good().contains(".SS man\n"), "`man` is hidden");
}

#[test]
#[cfg(unix)]
fn files_that_are_replaced_keep_their_mode() {
    use std::os::unix::fs::PermissionsExt;
    let dir = Dir::new();
    dir.save("a.tenarc", &model());
    for name in ["a.tenarc", "a.cbor"] {
        dir.write("a.cbor", b"");
        std::fs::set_permissions(dir.file(name), PermissionsExt::from_mode(0o640)).unwrap();
        run(&dir, &["cat", "a.tenarc", "-o", "b.tenarc"]).good();
        run(&dir, &["convert", "b.tenarc", name]).good();
        let mode = std::fs::metadata(dir.file(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640, "{name}");
    }
}

#[derive(serde::Serialize)]
struct Row {
    id: u64,
}

/// The message names the option, and the option makes the command go on.
#[test]
fn the_limit_of_memory_can_be_set() {
    let dir = Dir::new();
    dir.save("m.tenarc", &tenarc::Tensor(vec![0.0f32; 200_000]));
    run(&dir, &["convert", "m.tenarc", "z.tenarc", "--compress", "zstd"]).good();
    let list: Vec<u32> = (0..50_000).collect();
    dir.write("a.json", &serde_json::to_vec(&list).unwrap());
    run(&dir, &["convert", "a.json", "a.msgpack"]).good();
    let ids: Vec<Row> = (0..50_000).map(|id| Row { id }).collect();
    dir.save_all("t.tenarc", &[(Some("t"), &ids)]);
    for table in ["t.parquet", "t.arrow"] {
        run(&dir, &["convert", "t.tenarc", table]).good();
    }
    for input in ["z.tenarc", "a.json", "a.msgpack", "t.parquet", "t.arrow"] {
        let convert = |most: &str| {
            let ran = run(&dir, &["convert", input, "x.cbor", "--max-memory", most]);
            (ran.status, ran.err)
        };
        let (status, error) = convert("100k");
        assert!(status == 2 && error.contains("; --max-memory sets another limit"), "{error}");
        assert_eq!(convert("100MB"), (0, String::new()), "{input}");
    }
    run(&dir, &["--max-memory", "lots", "ls", "a.json"]).failed(2, "expected a number of bytes");
    // A limit that the option does not set.
    let deep = [b"[".repeat(200), b"]".repeat(200)].concat();
    dir.write("deep.json", &deep);
    let ran = run(&dir, &["ls", "deep.json"]);
    assert!(ran.status == 2 && !ran.err.contains("--max-memory"), "{ran:?}");
}
