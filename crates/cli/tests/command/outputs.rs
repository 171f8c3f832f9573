//! Output files: full devices, interrupted runs, existing files.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::{Dir, command, model, ramp, run, run_with};

#[test]
fn a_full_device_is_named() {
    let dir = Dir::new();
    dir.save("a.tenarc", &model());
    for args in [
        &["ls", "a.tenarc"][..],
        &["ls", "--json", "a.tenarc"],
        &["show", "a.tenarc"],
        &["stats", "a.tenarc"],
        &["diag", "a.tenarc"],
        &["verify", "a.tenarc"],
        &["get", "a.tenarc", "curve"],
        &["get", "a.tenarc", "curve", "--as", "npy"],
        &["convert", "a.tenarc", "-", "--to", "json"],
        &["convert", "a.tenarc", "-", "--to", "tenarc"],
        &["cat", "a.tenarc", "-o", "-"],
        &["completions", "bash"],
        &["man"],
        &["--help"],
        &["ls", "--help"],
        &["--version"],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = command(&dir).args(args).stdout(full).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {err}");
        assert!(err.contains("standard output: No space left on device"), "{args:?}: {err}");
    }
    let ran = run(&dir, &["get", "a.tenarc", "curve", "-o", "/dev/full", "--as", "raw"]);
    ran.failed(2, "/dev/full: No space left on device");
}

#[test]
fn an_interrupted_run_leaves_what_was_there_and_the_next_one_sweeps() {
    let dir = Dir::new();
    // A sparse file of zeros, which takes long to copy.
    let header = br#"{"x":{"dtype":"U8","shape":[17179869184],"data_offsets":[0,17179869184]}}"#;
    let len = (header.len() as u64).to_le_bytes();
    let large = dir.write("large.safetensors", &[&len[..], header].concat());
    let file = File::options().write(true).open(large).unwrap();
    file.set_len(8 + header.len() as u64 + (1 << 34)).unwrap();
    for name in ["a.cbor", "a.tenarc"] {
        let before = dir.write(name, b"what was there");
        let mut command = command(&dir);
        command.args(["convert", "large.safetensors", name]).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        let started = Instant::now();
        let is_left = || dir.names().iter().any(|name| name.ends_with(".tenarc-tmp"));
        while !is_left() && started.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_left(), "it was killed while it wrote");
        assert_eq!(fs::read(&before).unwrap(), b"what was there");
        dir.write("small.json", b"[1, 2]");
        run(&dir, &["convert", "small.json", name]).good();
        assert!(!is_left(), "{:?}", dir.names());
    }
}

#[test]
fn empty_and_unreadable_inputs_are_errors_in_every_format() {
    let dir = Dir::new();
    for format in [
        "tenarc",
        "cbor",
        "json",
        "msgpack",
        "safetensors",
        "npz",
        "npy",
        "arrow",
        "ten",
        "torch",
        "onnx",
    ] {
        let name = format!("empty.{format}");
        dir.write(&name, b"");
        let ran = run(&dir, &["verify", &name]);
        assert!(ran.status == 1 && ran.out().contains(": bad: "), "{ran:?}");
        // Any result is fine but a panic.
        for bytes in [&b"\0"[..], b"{", b"PK\x03\x04", b"\x93NUMPY\x01\0", b"~TenBin~", &[0xff; 99]]
        {
            let ran = run_with(&dir, &["verify", "--from", format, "-"], bytes);
            let unchecked = ran.status == 2 && ran.err.contains(": not checked: ");
            let is_checked = ran.status <= 1 && ran.err.is_empty();
            assert!(is_checked || unchecked, "{format} {bytes:?}: {ran:?}");
        }
        fs::create_dir(dir.file(&format!("dir.{format}"))).unwrap();
        run(&dir, &["ls", &format!("dir.{format}")]).failed(2, ": is a directory");
    }
}

#[test]
fn files_that_are_there_are_kept_if_that_is_asked_for() {
    let dir = Dir::new();
    dir.save("a.tenarc", &model());
    let archive = fs::read(dir.file("a.tenarc")).unwrap();
    dir.write("torn.tenarc", &archive[..archive.len() - 40]);
    for (to, args) in [
        ("x.npz", &["convert", "--lossy", "a.tenarc", "x.npz"][..]),
        ("x.json", &["convert", "a.tenarc", "x.json"]),
        ("x.tenarc", &["convert", "a.tenarc", "x.tenarc"]),
        ("x.tenarc", &["cat", "a.tenarc", "-o", "x.tenarc"]),
        ("x.tenarc", &["merge", "a.tenarc", "-o", "x.tenarc"]),
        ("x.tenarc", &["edit", "a.tenarc", "-o", "x.tenarc", "--drop", "name"]),
        ("x.npy", &["get", "a.tenarc", "layers.0.bias", "-o", "x.npy"]),
        ("a-00001-of-00001.tenarc", &["split", "a.tenarc"]),
        ("a-00001-of-00001.tenarc", &["split", "a.tenarc", "--max-size", "1G"]),
        ("x.tenarc", &["recover", "torn.tenarc", "-o", "x.tenarc"]),
    ] {
        dir.write(to, b"mine");
        let ran = run(&dir, &[args, &["--no-clobber"]].concat());
        ran.failed(2, &format!("{to}: the file is there, and --no-clobber keeps it"));
        assert_eq!(fs::read(dir.file(to)).unwrap(), b"mine", "{args:?}");
        fs::remove_file(dir.file(to)).unwrap();
        assert_eq!(run(&dir, &[args, &["--no-clobber"]].concat()).status, 0, "{args:?}");
        assert!(fs::read(dir.file(to)).unwrap() != b"mine", "{args:?}");
        // Without, it is replaced.
        assert_eq!(run(&dir, args).status, 0, "{args:?}");
    }
    run(&dir, &["edit", "a.tenarc", "--in-place", "--no-clobber"]).failed(2, "cannot be used with");
}

/// JSON is printed while the file is read. Collected first, the statistics of these arrays took 1,050 times the file.
#[test]
fn json_of_many_small_arrays_takes_little_memory() {
    const COUNT: u32 = 250_000;
    let dir = Dir::new();
    // An array of typed arrays of one byte each.
    let mut message = vec![0x9a];
    message.extend(COUNT.to_be_bytes());
    message.extend([0xd8, 0x40, 0x41, 1].repeat(COUNT as usize));
    dir.write("tiny.cbor", &message);
    for command in ["ls", "stats", "show"] {
        let script = format!("ulimit -v 150000; exec \"$0\" {command} --json tiny.cbor");
        let output = std::process::Command::new("bash")
            .args(["-c", &script, env!("CARGO_BIN_EXE_tenarc")])
            .current_dir(dir.path())
            .output();
        // Not every machine has `bash`.
        let Ok(output) = output else { return };
        assert_eq!(output.status.code(), Some(0), "{command}: {output:?}");
        assert!(output.stdout.ends_with(b"\n]\n"), "{command}");
        let lines = std::str::from_utf8(&output.stdout).unwrap().lines().count();
        assert_eq!(lines, COUNT as usize + 2, "{command}");
    }
}

#[test]
fn the_name_of_the_output_decides_about_its_format() {
    let dir = Dir::new();
    fs::copy(
        concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../convert/tests/fixtures/safetensors/f32_2x3.safetensors"
        ),
        dir.file("a.safetensors"),
    )
    .unwrap();
    let path = run(&dir, &["ls", "--json", "a.safetensors"]).json()[0]["path"].clone();
    let path = path.as_str().unwrap();
    let rename = format!("{path}=renamed");
    let ends =
        ["safetensors", "npz", "arrow", "ten", "pt", "cbor", "json", "msgpack", "tenarc", "tarc"];
    for end in ends {
        for args in [
            &["edit", "a.safetensors", "--rename", &rename][..],
            &["merge", "a.safetensors"],
            &["cat", "a.safetensors"],
        ] {
            let to = format!("x.{end}");
            run(&dir, &[args, &["-o", &to]].concat()).good();
            // As `convert` writes it.
            run(&dir, &["convert", "a.safetensors", &format!("y.{end}")]).good();
            let [x, y] = [&to, &format!("y.{end}")].map(|name| fs::read(dir.file(name)).unwrap());
            assert_eq!(x.first(), y.first(), "{args:?} {end}");
            assert_eq!(x == y, args[0] != "edit", "{args:?} {end}");
        }
    }
    // Without an extension it is an archive; --to decides.
    run(&dir, &["cat", "a.safetensors", "-o", "x"]).good();
    assert_eq!(fs::read(dir.file("x")).unwrap(), fs::read(dir.file("x.tenarc")).unwrap());
    run(&dir, &["cat", "a.safetensors", "-o", "x", "--to", "npz"]).good();
    assert_eq!(fs::read(dir.file("x")).unwrap(), fs::read(dir.file("x.npz")).unwrap());
    for (args, why) in [
        (&["merge", "a.safetensors", "-o", "n.onnx"][..], "cannot write ONNX models"),
        (&["cat", "a.safetensors", "-o", "n.h5"], "cannot write HDF5 files"),
        (&["edit", "a.safetensors", "-o", "n.xyz", "--drop", path], "n.xyz: no format has names"),
        (
            &["convert", "a.safetensors", "n.safetensor"],
            "end in .safetensor: archives have .tenarc; or use --to; did you mean `safetensors`?",
        ),
        (&["cat", "a.safetensors", "a.safetensors", "-o", "n.npz"], "holds one value"),
        (&["merge", "a.safetensors", "-o", "n.npz", "--compress", "lz4"], "only for archives"),
        (&["get", "a.safetensors", path, "-o", "n.npz"], "n.npz: a tensor alone is written as"),
        (&["get", "a.safetensors", path, "-o", "n.tenarc"], "use --as"),
    ] {
        run(&dir, args).failed(2, why);
        assert!(!dir.names().iter().any(|name| name.starts_with("n.")), "{args:?}");
    }
    // What the format cannot hold stops it.
    dir.save("m.tenarc", &model());
    run(&dir, &["edit", "m.tenarc", "-o", "n.npz", "--drop", "note"])
        .failed(2, "write an archive, and use `tenarc convert --lossy`");
    run(&dir, &["get", "a.safetensors", path, "-o", "t.json"]).good();
    assert!(fs::read_to_string(dir.file("t.json")).unwrap().starts_with("{\"dtype\":\"f32\""));
}

/// The paths of the files that the program reads, as strace shows them.
fn files_read(dir: &Dir, args: &[&str]) -> String {
    let mut command = std::process::Command::new("strace");
    command.args(["-f", "-y", "-e", "trace=read,pread64", env!("CARGO_BIN_EXE_tenarc")]);
    let output = command.args(args).current_dir(dir.path()).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {err}");
    let here = dir.path().to_str().unwrap();
    let calls = err.lines().filter(|call| call.contains(here) && !call.contains("/in.tenarc>"));
    calls.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_new_file_is_read_back() {
    let dir = Dir::new();
    dir.save("in.tenarc", &BTreeMap::from([("w", ramp(&[3000]))]));
    for end in ["tenarc", "cbor", "json", "msgpack", "safetensors", "npz", "arrow", "ten", "gguf"] {
        let to = format!("out.{end}");
        assert!(!files_read(&dir, &["convert", "in.tenarc", &to]).is_empty(), "{to}");
    }
    for end in ["npy", "raw", "txt", "json"] {
        let to = format!("one.{end}");
        assert!(!files_read(&dir, &["get", "in.tenarc", "w", "-o", &to]).is_empty(), "{to}");
    }
}
