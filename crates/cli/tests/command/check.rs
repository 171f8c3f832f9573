//! `stats`, `diff`, `verify`, `diag`, `recover`: checking and comparing files.

use std::collections::BTreeMap;

use crate::support::{Dir, Layer, flat, flip, model, ramp, run, run_with};
use serde_json::json;
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor, Tensor, Value};

#[test]
fn measures_each_tensor() {
    let dir = Dir::new();
    let floats = [0.0f32, -1.5, f32::NAN, f32::INFINITY, 2.5, 0.0];
    let large = [i64::MIN, i64::MAX, 0];
    let value = flat(&[
        ("floats", ndarray::arr1(&floats).into()),
        ("large", ndarray::arr1(&large).into()),
        ("packed", DynTensor::new(DType::F4, &[2], Order::C, vec![1]).unwrap()),
        ("none", ndarray::arr1::<f64>(&[]).into()),
    ]);
    dir.save("m.tenarc", &value);
    let shown = run(&dir, &["stats", "m.tenarc"]);
    let mut lines = shown.good().lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    // The shape does not fit.
    let headings = "path dtype min max mean std zeros NaN Inf histogram";
    assert_eq!(lines.next().unwrap().join(" "), headings);
    let floats = lines.next().unwrap();
    assert_eq!(floats[..9], ["floats", "f32", "-1.5", "2.5", "0.25", "1.436", "2", "1", "1"]);
    let large = lines.next().unwrap();
    assert_eq!(large[2..4], ["-9.22e18", "9.22e18"]);
    assert_eq!(lines.next().unwrap()[2..], ["-"; 8]);
    assert_eq!(lines.next().unwrap()[2..], ["-", "-", "-", "-", "0", "0", "0", "-"]);

    let rows = run(&dir, &["stats", "m.tenarc", "--json"]).json();
    assert_eq!(rows[0]["histogram"], json!([1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 1]));
    assert_eq!((&rows[0]["count"], &rows[0]["mean"]), (&json!(6), &json!(0.25)));
    assert_eq!(rows[1]["min"], json!(i64::MIN));
    assert_eq!(rows[2].get("min"), None);
    assert_eq!(rows[3]["min"], json!(null));
    let filtered = run(&dir, &["stats", "m.tenarc", "--json", "-e", "f*"]).json();
    assert_eq!(filtered.as_array().unwrap().len(), 1);
}

/// Long paths have lines of their own; what is always empty is left out, and then the shape.
#[test]
fn statistics_fit_in_80_columns() {
    let dir = Dir::new();
    let numbers = [-1.234_567e-5f32, 3.3e30, f32::NEG_INFINITY, f32::NAN, -0.5, 1.0 / 3.0];
    let long = "encoder.layers.11.attention.self.query.weight";
    let tensor = |numbers: &[f32]| ndarray::arr2(&[[0.0; 6], numbers.try_into().unwrap()]).into();
    dir.save("m.tenarc", &flat(&[(long, tensor(&numbers)), ("bias", tensor(&numbers))]));
    dir.save(
        "finite.tenarc",
        &flat(&[(long, tensor(&[-1.234_567e-5; 6])), ("b", tensor(&[0.0; 6]))]),
    );
    for file in ["m.tenarc", "finite.tenarc"] {
        let shown = run(&dir, &["stats", file]);
        let widest = shown.good().lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= 80, "{}", shown.out());
        assert!(shown.out().lines().any(|line| line == long), "{}", shown.out());
        assert_eq!(shown.out().contains("NaN"), file == "m.tenarc");
        assert_eq!(shown.out().lines().count(), 4);
    }
    // A table that fits has all columns.
    dir.save("small.tenarc", &flat(&[("w", tensor(&[0.25; 6]))]));
    let expected = "\
path  dtype  shape   min   max   mean    std  zeros  histogram
w     f32    [2, 6]    0  0.25  0.125  0.125      6  |█          █|
";
    assert_eq!(run(&dir, &["stats", "small.tenarc"]).good(), expected);
}

#[test]
fn equal_files_have_no_differences() {
    let dir = Dir::new();
    dir.save("a.tenarc", &model());
    dir.write("a.cbor", &tenarc::to_vec(&model()).unwrap());
    assert_eq!(run(&dir, &["diff", "a.tenarc", "a.tenarc"]).good(), "");
    assert_eq!(run(&dir, &["diff", "--json", "a.tenarc", "a.tenarc"]).json(), json!([]));
    let piped =
        run_with(&dir, &["diff", "a.tenarc", "-"], &std::fs::read(dir.file("a.tenarc")).unwrap());
    assert_eq!(piped.good(), "");
    // The message holds a list, the archive a block of numbers: both are the same value.
    assert_eq!(run(&dir, &["diff", "a.tenarc", "a.cbor"]).good(), "");
    let mut other = model();
    other.curve[299] = 0.0;
    dir.write("b.cbor", &tenarc::to_vec(&other).unwrap());
    let ran = run(&dir, &["diff", "b.cbor", "a.tenarc"]);
    assert_eq!((ran.status, ran.out()), (1, "curve: array of 300 → f64 [300]\n1 difference\n"));
}

#[test]
fn reports_what_differs_and_where() {
    let dir = Dir::new();
    let a = model();
    let mut b = model();
    b.name = "other".into();
    b.rate = 0.2;
    b.layers[0].weight[[1, 2]] = 66.5;
    b.layers[1].bias = ramp(&[11]);
    b.layers.push(Layer { weight: ramp(&[1]), bias: ramp(&[1]) });
    dir.save("a.tenarc", &a);
    dir.save("b.tenarc", &b);
    let ran = run(&dir, &["diff", "a.tenarc", "b.tenarc"]);
    assert_eq!((ran.status, ran.err.as_str()), (1, ""));
    let expected = "\
name: \"small \\\"one\\\"\" → \"other\"
rate: 0.1_2 → 0.2_2
layers.0.weight: 1 of 2048 elements differ, by up to 0.5 (0.00752 relative); first at [1, 2]: 66. → 66.5
layers.1.bias: f32 [10] → f32 [11]
layers.2: only in B: map of 2
5 differences
";
    assert_eq!(ran.out(), expected);
    let rows = run(&dir, &["diff", "--json", "a.tenarc", "b.tenarc"]).json();
    let expected = json!({
        "segment": 0, "path": "layers.0.weight", "kind": "elements",
        "a": "f32 [32, 64]", "b": "f32 [32, 64]", "differing": 1, "count": 2048,
        "max_abs": 0.5, "max_rel": 0.5 / 66.5, "first": [1, 2],
    });
    assert_eq!(rows[2], expected);
    assert_eq!(rows[3]["kind"], "shape");
    assert_eq!(rows[4]["kind"], "only_in_b");
    let structure = run(&dir, &["diff", "--structure", "a.tenarc", "b.tenarc"]);
    assert_eq!((structure.status, structure.out().lines().count()), (1, 3));
    let loose = run(&dir, &["diff", "--atol", "0.5", "a.tenarc", "b.tenarc", "-e", "layers.0.*"]);
    assert_eq!(loose.good(), "");
    let tight =
        run(&dir, &["diff", "--rtol", "0.0075", "a.tenarc", "b.tenarc", "-e", "layers.0.*"]);
    assert_eq!(tight.status, 1);
    run(&dir, &["diff", "a.tenarc", "none.tenarc"]).failed(2, "none.tenarc: No such file");
    run(&dir, &["diff", "--atol", "NaN", "a.tenarc", "b.tenarc"])
        .failed(2, "--atol and --rtol must not be");
    run(&dir, &["diff", "-", "-"]).failed(2, "only one of the two files");
}

#[test]
fn compares_tensors_of_other_orders_and_odd_dtypes() {
    let dir = Dir::new();
    let tensor = |dtype: &str, order, bytes: Vec<u8>| {
        let bits = DType::from_name(dtype).bits().unwrap_or(8);
        let columns = bytes.len() * 4 / bits;
        DynTensor::new(DType::from_name(dtype), &[2, columns], order, bytes).unwrap()
    };
    let rows = tensor("u8", Order::C, vec![1, 2, 3, 4, 5, 6]);
    let columns = tensor("u8", Order::F, vec![1, 4, 2, 5, 3, 6]);
    let odd = tensor("f4", Order::C, vec![1, 2]);
    let nan = |bits: u32| DynTensor::from(ndarray::arr1(&[f32::from_bits(bits)]));
    dir.save("a.tenarc", &flat(&[("t", rows.clone()), ("o", odd), ("n", nan(0x7fc0_0000))]));
    let odd = tensor("f4", Order::C, vec![1, 3]);
    dir.save("b.tenarc", &flat(&[("n", nan(0x7fc0_0001)), ("o", odd), ("t", columns)]));
    let ran = run(&dir, &["diff", "a.tenarc", "b.tenarc"]);
    assert_eq!(ran.status, 1);
    let expected = "o: 1 of 4 elements differ; first at [1]: 02 → 03\n1 difference\n";
    assert_eq!(ran.out(), expected, "order of entries and NaN payloads make no difference");
    let wrong = tensor("u8", Order::F, vec![1, 4, 2, 5, 3, 7]);
    dir.save("c.tenarc", &Tensor(wrong));
    dir.save("d.tenarc", &Tensor(rows));
    let ran = run(&dir, &["diff", "c.tenarc", "d.tenarc"]);
    assert!(ran.out().contains("first at [1, 2]: 7 → 6"), "{ran:?}");
}

#[test]
fn compares_archives_of_several_values() {
    let dir = Dir::new();
    dir.save_all("a.tenarc", &[(Some("x"), &1), (Some("y"), &2)]);
    dir.save_all("b.tenarc", &[(Some("x"), &1), (Some("z"), &3), (None, &4)]);
    let ran = run(&dir, &["diff", "a.tenarc", "b.tenarc"]);
    let expected = "\
#1 (the value): name \"y\" → \"z\"
#1 (the value): 2 → 3
#2 (the value): only in B: value #2
3 differences
";
    assert_eq!((ran.status, ran.out()), (1, expected));
    assert_eq!(run(&dir, &["diff", "-s", "x", "a.tenarc", "b.tenarc"]).good(), "");
}

#[test]
fn verifies_archives_and_messages() {
    let dir = Dir::new();
    let archive = dir.save("a.tenarc", &model());
    dir.write("a.cbor", &tenarc::to_vec(&(1, "two")).unwrap());
    let ran = run(&dir, &["verify", "a.tenarc", "a.cbor"]);
    let len = std::fs::metadata(&archive).unwrap().len();
    let size = format!("{:.1} KiB", len as f64 / 1024.0);
    assert_eq!(
        ran.good(),
        format!("a.tenarc: good, 1 value, {size}\na.cbor: good, 1 value, 6 B\n")
    );
    let reports = run(&dir, &["verify", "--json", "a.tenarc"]).json();
    let expected = json!([{
        "file": "a.tenarc", "good": true, "checked": true, "segments": 1, "bytes": len,
        "error": null, "offset": null, "path": null, "unchecked": null,
    }]);
    assert_eq!(reports, expected);
}

#[test]
fn a_file_that_cannot_be_read_outweighs_damage() {
    let dir = Dir::new();
    let path = dir.save("bad.tenarc", &model());
    let (start, _) = tenarc::open(&path).unwrap().segment(0).unwrap().buffers()[1];
    flip(&path, start);
    dir.save("good.tenarc", &model());
    for files in [["bad.tenarc", "none.tenarc"], ["none.tenarc", "bad.tenarc"]] {
        let ran = run(&dir, &["verify", "good.tenarc", files[0], files[1]]);
        assert_eq!((ran.status, ran.out().lines().count()), (2, 2), "{ran:?}");
        assert!(ran.err.contains("none.tenarc: No such file"), "{ran:?}");
    }
}

#[test]
fn errors_of_the_output_name_the_output() {
    let dir = Dir::new();
    dir.save("a.tenarc", &BTreeMap::from([("w", ramp(&[3000]))]));
    for to in ["b.tenarc", "b.npz", "b.safetensors", "b.json", "b.cbor", "b.arrow", "b.ten"] {
        let to = format!("none/{to}");
        let ran = run(&dir, &["convert", "a.tenarc", &to]);
        ran.failed(2, &to);
        assert!(!ran.err.contains("a.tenarc"), "{ran:?}");
    }
    if std::path::Path::new("/dev/full").exists() {
        for to in ["npz", "safetensors", "json", "cbor", "ten"] {
            let ran = run(&dir, &["convert", "a.tenarc", "/dev/full", "--to", to]);
            ran.failed(2, "/dev/full: No space left");
            assert!(!ran.err.contains("a.tenarc"), "{ran:?}");
        }
    }
}

#[test]
fn damage_inside_of_rows_is_damage() {
    #[derive(serde::Serialize)]
    struct Row {
        id: u64,
        label: String,
    }
    let dir = Dir::new();
    let rows: Vec<Row> = (0..5000).map(|id| Row { id, label: format!("row {id}") }).collect();
    let path = dir.save("a.tenarc", &rows);
    let archive = tenarc::open(&path).unwrap();
    let (start, len) = archive.segment(0).unwrap().buffers()[0];
    drop(archive);
    flip(&path, start + len / 2);
    for to in ["b.tenarc", "b.cbor", "b.json", "b.msgpack"] {
        run(&dir, &["convert", "a.tenarc", to]).failed(1, "checksum");
    }
}

#[test]
fn names_the_first_bad_path_and_offset() {
    let dir = Dir::new();
    let path = dir.save("a.tenarc", &model());
    let (start, len) = tenarc::open(&path).unwrap().segment(0).unwrap().buffers()[1];
    flip(&path, start + len - 1);
    let ran = run(&dir, &["verify", "a.tenarc"]);
    assert_eq!((ran.status, ran.err.as_str()), (1, ""));
    assert!(ran.out().starts_with("a.tenarc: bad at layers.1.weight: "), "{ran:?}");
    assert!(ran.out().contains(&format!("(byte {start})")), "{ran:?}");
    let report = &run(&dir, &["verify", "--json", "a.tenarc"]).json()[0];
    assert_eq!((&report["path"], &report["offset"]), (&json!("layers.1.weight"), &json!(start)));
    // Other tensors can still be read; every command that reads the damaged one fails.
    assert_eq!(run(&dir, &["get", "a.tenarc", "layers.1.bias"]).status, 0);
    for args in [
        &["get", "a.tenarc", "layers.1.weight"][..],
        &["stats", "a.tenarc"],
        &["diff", "a.tenarc", "a.tenarc"],
        &["cat", "a.tenarc", "-o", "c.tenarc"],
        &["convert", "a.tenarc", "c.cbor"],
        &["edit", "a.tenarc", "-o", "c.tenarc", "--drop", "name"],
    ] {
        run(&dir, args).failed(1, "checksum");
    }
    assert_eq!(dir.names(), ["a.tenarc"], "nothing was written");
}

#[test]
fn distinguishes_damaged_files_from_unreadable_ones() {
    let dir = Dir::new();
    let path = dir.save("a.tenarc", &model());
    let bytes = std::fs::read(&path).unwrap();
    dir.write("torn.tenarc", &bytes[..bytes.len() - 40]);
    dir.write("head.tenarc", &[&bytes[..20], &[0xff], &bytes[21..]].concat());
    dir.write("cut.cbor", &[0x82, 1]);
    dir.write("text.cbor", &[0x62, 0xff, 0xff]);
    dir.write("empty.tenarc", b"");
    for name in ["torn.tenarc", "head.tenarc", "cut.cbor", "text.cbor", "empty.tenarc"] {
        let ran = run(&dir, &["verify", name]);
        assert_eq!((ran.status, ran.err.as_str()), (1, ""), "{name} {ran:?}");
        assert!(ran.out().starts_with(&format!("{name}: bad: ")), "{ran:?}");
    }
    let report =
        &run_with(&dir, &["verify", "--from", "cbor", "--json", "-"], &[0x82, 1]).json()[0];
    assert_eq!((&report["good"], &report["offset"]), (&json!(false), &json!(2)));
    run(&dir, &["verify", "none.tenarc"]).failed(2, "none.tenarc: No such file");
    let both = run(&dir, &["verify", "torn.tenarc", "a.tenarc"]);
    assert_eq!((both.status, both.out().lines().count()), (1, 2));
    // A change of any byte is found.
    for at in (0..bytes.len()).step_by(97) {
        let mut bad = bytes.clone();
        bad[at] ^= 0x10;
        let ran = run_with(&dir, &["verify", "--from", "tenarc", "-"], &bad);
        assert_eq!(ran.status, 1, "byte {at}: {ran:?}");
    }
}

#[test]
fn prints_diagnostic_notation() {
    let dir = Dir::new();
    dir.save_all("a.tenarc", &[(None, &(1, Some("x\u{1b}"))), (Some("b"), &(2, None))]);
    let ran = run(&dir, &["diag", "a.tenarc"]);
    assert_eq!(ran.good(), "[1, \"x\\u001b\"]\n[2, null]\n");
    let rows = run(&dir, &["diag", "--json", "a.tenarc", "-s", "b"]).json();
    assert_eq!(rows, json!([{"segment": 1, "name": "b", "diag": "[2, null]"}]));
    let message = [0x9f, 0x01, 0xff, 0x5f, 0x41, 0x00, 0xff];
    assert_eq!(
        run_with(&dir, &["diag", "--from", "cbor", "-"], &message).good(),
        "[_ 1]\n(_ h'00')\n"
    );
    let long = tenarc::to_vec(&Value::Bytes(vec![7; 1000])).unwrap();
    let short = run_with(&dir, &["diag", "--from", "cbor", "-"], &long);
    let (start, end) = ("07".repeat(16), "07".repeat(16));
    assert_eq!(short.good(), format!("h'{start}…{end}' /1000 bytes/\n"));
    let full = run_with(&dir, &["diag", "--full", "--from", "cbor", "-"], &long);
    assert_eq!(full.good(), format!("h'{}'\n", "07".repeat(1000)));
    run_with(&dir, &["diag", "--from", "cbor", "-"], &[0x82, 0x01])
        .failed(2, "input ended, expected a value (byte 2)");
}

/// What an append has left is said, read around, and not called good: a copy that was cut looks the same.
#[test]
fn unfinished_bytes_are_told() {
    let dir = Dir::new();
    let path = dir.save_all("a.tenarc", &[(None, &ramp(&[600]))]);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend([0; 300]);
    dir.write("a.tenarc", &bytes);
    let listed = run(&dir, &["ls", "a.tenarc"]);
    assert_eq!((listed.status, listed.out().lines().count()), (0, 3), "{listed:?}");
    assert!(listed.err.contains("300 B follow the last end mark"), "{listed:?}");
    let verified = run(&dir, &["verify", "a.tenarc"]);
    assert_eq!(verified.status, 1, "{verified:?}");
    assert!(verified.out().contains("300 B follow the last end mark"), "{verified:?}");
}

#[test]
fn recovers_the_complete_values() {
    let dir = Dir::new();
    let path = dir.save_all("a.tenarc", &[(Some("one"), &ramp(&[600])), (None, &ramp(&[700]))]);
    let end = tenarc::open(&path).unwrap().segment(1).unwrap().offset();
    let bytes = std::fs::read(&path).unwrap();
    let torn = &bytes[..usize::try_from(end).unwrap() + 100];
    dir.write("torn.tenarc", torn);
    run(&dir, &["ls", "torn.tenarc"]).failed(1, "torn.tenarc: ");
    let read = run(&dir, &["ls", "--torn", "torn.tenarc"]);
    // The header of the value that was cut lists its tensors.
    assert_eq!((read.status, read.out().lines().count()), (0, 4), "{read:?}");
    assert!(read.err.contains("reading the complete values"), "{read:?}");
    let ran = run(&dir, &["recover", "torn.tenarc", "-o", "new.tenarc"]);
    assert_eq!(ran.good(), "new.tenarc: kept 1 value, dropped 100 B at the end\n");
    assert_eq!(std::fs::read(dir.file("torn.tenarc")).unwrap(), torn, "stays as it is");
    let ran = run(&dir, &["recover", "--json", "torn.tenarc"]);
    let expected =
        json!({"segments": 1, "damaged": 0, "damage": [], "dropped": 100, "salvaged": null});
    assert_eq!(ran.json(), expected);
    for name in ["torn.tenarc", "new.tenarc"] {
        assert_eq!(run(&dir, &["verify", name]).status, 0);
        assert_eq!(run(&dir, &["ls", name]).good().lines().count(), 3);
    }
    run(&dir, &["recover", "none"]).failed(2, "none");
}

/// Damaged values are kept, so that what is whole in them is not lost. But this is not a success.
#[test]
fn recovering_tells_which_kept_values_are_damaged() {
    let dir = Dir::new();
    let value = BTreeMap::from([("one", ramp(&[600])), ("two", ramp(&[700]))]);
    let values = [(Some("x"), &value), (None, &value), (Some("z"), &value)];
    let path = dir.save_all("a.tenarc", &values);
    run(&dir, &["recover", "a.tenarc", "-o", "b.tenarc"]).good();
    let archive = tenarc::open(&path).unwrap();
    let (start, _) = archive.segment(0).unwrap().buffers()[1];
    let third = archive.segment(2).unwrap().offset();
    flip(&path, start);
    flip(&path, third + 20);
    let damaged = std::fs::read(&path).unwrap();
    for (args, file) in [
        (&["recover", "a.tenarc", "-o", "b.tenarc"][..], "b.tenarc"),
        (&["recover", "a.tenarc"], "a.tenarc"),
    ] {
        let ran = run(&dir, args);
        assert_eq!(ran.status, 1, "{ran:?}");
        let lines: Vec<&str> = ran.out().lines().collect();
        let kept = format!("{file}: kept 3 values (2 of them damaged), dropped 0 B at the end");
        assert_eq!((lines.len(), lines[0]), (3, &*kept), "{ran:?}");
        assert!(lines[1].starts_with("value #0 (x) is damaged: checksum of buffer 1"), "{ran:?}");
        assert!(lines[1].contains(" at `two`"), "{ran:?}");
        assert!(lines[2].starts_with("value #2 is damaged: wrong checksum of a header"), "{ran:?}");
        let what = "the kept values are damaged; what is whole in them can be read";
        assert!(ran.err.starts_with(&format!("tenarc: {file}: {what}")), "{ran:?}");
        assert!(std::fs::read(dir.file(file)).unwrap() == damaged);
    }
    let ran = run(&dir, &["recover", "a.tenarc", "-o", "b.tenarc", "--json"]);
    assert_eq!(ran.status, 1, "{ran:?}");
    let ran = ran.json();
    assert_eq!((&ran["damaged"], &ran["damage"][0]["number"]), (&json!(2), &json!(0)));
    assert_eq!((&ran["damage"][0]["name"], &ran["damage"][1]["name"]), (&json!("x"), &json!(null)));
    // Between tensors, damage is in no value.
    let path = dir.save("c.tenarc", &value);
    let (start, len) = tenarc::open(&path).unwrap().segment(0).unwrap().buffers()[0];
    flip(&path, start + len);
    let ran = run(&dir, &["recover", "c.tenarc"]);
    assert_eq!((ran.status, ran.out().lines().count()), (1, 2), "{ran:?}");
    assert!(ran.out().contains("\ndamaged: "), "{ran:?}");
}

#[test]
fn reads_the_complete_tensors_of_a_cut_value() {
    let dir = Dir::new();
    let value = BTreeMap::from([("one", ramp(&[600])), ("two", ramp(&[700]))]);
    let path = dir.save("a.tenarc", &value);
    let (second, _) = tenarc::open(&path).unwrap().segment(0).unwrap().buffers()[1];
    let bytes = std::fs::read(&path).unwrap();
    dir.write("torn.tenarc", &bytes[..usize::try_from(second).unwrap() + 100]);
    // All ways to read it: as a whole, in part, and through serde.
    for args in [
        &["get", "torn.tenarc", "one", "--torn"][..],
        &["get", "torn.tenarc", "one[:2]", "--torn"],
        &["convert", "torn.tenarc", "one.json", "--torn"],
    ] {
        run(&dir, args).failed(1, "; --no-verify reads without verifying");
    }
    let shown = run(&dir, &["show", "torn.tenarc", "one", "--torn"]);
    assert!(shown.status == 1 && shown.err.contains("; --no-verify reads"), "{shown:?}");
    assert_eq!(shown.out(), "f32 [600]", "{shown:?}");
    run(&dir, &["recover", "torn.tenarc"]).failed(1, "; --torn reads the complete tensors");
    run(&dir, &["recover", "torn.tenarc"]).failed(1, "`tenarc recover -o` writes them");
    let part = ["get", "torn.tenarc", "two[:2]", "--torn", "--no-verify"];
    run(&dir, &part).failed(1, "the archive ends inside buffer 1");
    let ran = run(&dir, &["get", "torn.tenarc", "one", "--torn", "--no-verify", "-o", "one.npy"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let whole = run(&dir, &["get", "a.tenarc", "one", "-o", "whole.npy"]);
    assert_eq!(whole.status, 0, "{whole:?}");
    let [found, expected] =
        ["one.npy", "whole.npy"].map(|name| std::fs::read(dir.file(name)).unwrap());
    assert!(found == expected);
    let missing = run(&dir, &["get", "torn.tenarc", "two", "--torn", "--no-verify"]);
    missing.failed(1, "2800 bytes");
    run(&dir, &["get", "torn.tenarc", "one", "--no-verify"]).failed(2, "--torn");
}

#[test]
fn a_value_without_tensors_has_an_empty_list() {
    let dir = Dir::new();
    dir.save("a.tenarc", &Value::Null);
    assert_eq!(run(&dir, &["ls", "a.tenarc", "--json"]).json(), json!([]));
    assert_eq!(run(&dir, &["stats", "a.tenarc", "--json"]).json(), json!([]));
    assert_eq!(run(&dir, &["show", "a.tenarc", "--json"]).json(), json!(null));
}

/// One value is itself. Any other number of values is an array, also none.
#[test]
fn values_are_an_array_unless_there_is_one() {
    let dir = Dir::new();
    let show = |count: usize| {
        let values: Vec<(Option<&str>, &u8)> = (0..count).map(|_| (None, &7)).collect();
        dir.save_all("a.tenarc", &values);
        run(&dir, &["show", "a.tenarc", "--json"]).json()
    };
    assert_eq!([0, 1, 2].map(show), [json!([]), json!(7), json!([7, 7])]);
    assert_eq!(run(&dir, &["show", "a.tenarc", "--json", "-s", "1"]).json(), json!(7));
}

/// A digest names the content. It needs no tensor: a damaged one has no influence.
#[test]
fn prints_digests() {
    let dir = Dir::new();
    let a = dir.save_all("a.tenarc", &[(Some("x"), &ramp(&[600]))]);
    dir.save_all("b.tenarc", &[(Some("x"), &ramp(&[600]))]);
    dir.save_all("c.tenarc", &[(Some("x"), &ramp(&[601]))]);
    let ran = run(&dir, &["digest", "a.tenarc", "b.tenarc", "c.tenarc"]);
    let lines: Vec<(&str, &str)> =
        ran.good().lines().map(|line| line.split_once("  ").unwrap()).collect();
    assert_eq!(
        lines.iter().map(|(_, file)| *file).collect::<Vec<_>>(),
        ["a.tenarc", "b.tenarc", "c.tenarc"]
    );
    let expected = tenarc::open(&a).unwrap().digest().unwrap().to_string();
    assert_eq!((lines[0].0, lines[1].0), (&*expected, &*expected));
    assert_ne!(lines[2].0, expected);
    let json = run(&dir, &["digest", "--json", "a.tenarc"]).json();
    assert_eq!(json, json!([{"file": "a.tenarc", "digest": expected}]));
    dir.write("m.json", b"[1]");
    run(&dir, &["digest", "m.json"]).failed(2, "m.json: only archives have digests");
    run(&dir, &["digest", "none"]).failed(2, "none");
}

/// Runs the program on one core, where `verify` and `recover` use one thread.
#[cfg(target_os = "linux")]
fn on_one_core(dir: &Dir, args: &[&str]) -> serde_json::Value {
    let mut command = std::process::Command::new("taskset");
    command.args(["-c", "0", env!("CARGO_BIN_EXE_tenarc")]).args(args);
    let output = command.current_dir(dir.path()).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn one_thread_reports_what_several_do() {
    let dir = Dir::new();
    // Tensors of 4 MiB or more are verified in pieces.
    let value = BTreeMap::from([("one", ramp(&[5 << 20])), ("two", ramp(&[3 << 20]))]);
    let path = dir.save("a.tenarc", &value);
    let (start, _) = tenarc::open(&path).unwrap().segment(0).unwrap().buffers()[0];
    let verify = ["verify", "a.tenarc", "--json"];
    let recover = ["recover", "a.tenarc", "-o", "b.tenarc", "--json"];
    for damage in [None, Some(start + (3 << 20)), Some(start + (18 << 20))] {
        if let Some(at) = damage {
            flip(&path, at);
        }
        for args in [&verify[..], &recover] {
            assert_eq!(run(&dir, args).json(), on_one_core(&dir, args), "{damage:?}");
        }
    }
}

/// What is stored is good, and what it means is not.
#[test]
fn verify_decode_reads_the_values() {
    let dir = Dir::new();
    let options = tenarc::archive::SaveOptions::default();
    let options = options.with_inline_below(0).with_checksums(false);
    let mut out = tenarc::OArchive::with_options(Vec::new(), options).unwrap();
    out.save(&flat(&[("flags", ndarray::arr1(&[true, false]).into())])).unwrap();
    let mut bytes = out.finish().unwrap();
    let at = tenarc::Archive::new(&bytes[..]).unwrap().only().unwrap().buffers()[0].0;
    bytes[at as usize] = 2;
    dir.write("bad.tenarc", &bytes);
    dir.save("good.tenarc", &model());
    run(&dir, &["verify", "bad.tenarc", "good.tenarc"]).good();
    run(&dir, &["verify", "--decode", "good.tenarc"]).good();
    let bad = run(&dir, &["verify", "--decode", "bad.tenarc", "--json"]).json();
    let bad = &bad[0];
    let error = bad["error"].as_str().unwrap();
    assert!(error.contains("a bool is stored as the byte 2"), "{error}");
    assert_eq!((&bad["good"], &bad["path"]), (&json!(false), &json!("flags")));
}

/// A path leads to a number of a packed sequence, as of an array.
#[test]
fn elements_of_packed_sequences_are_shown() {
    let dir = Dir::new();
    for len in [3, 3000] {
        let doubles: Vec<f64> = (0..len).map(|at| f64::from(at) / 2.0).collect();
        dir.save("m.tenarc", &BTreeMap::from([("doubles", doubles)]));
        assert_eq!(run(&dir, &["show", "m.tenarc", "doubles.1"]).good(), "0.5\n");
        run(&dir, &["show", "m.tenarc", "doubles.3000"]).failed(2, "no value at");
    }
}
