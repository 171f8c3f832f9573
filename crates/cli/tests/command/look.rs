//! `ls`, `show`, `get`: commands that print what is in a file.

use crate::support::{Dir, flat, model, ramp, run, run_with};
use serde_json::json;
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor, Tensor, Value};

#[test]
fn lists_tensors_as_a_table() {
    let dir = Dir::new();
    dir.save("m.tenarc", &model());
    let expected = "\
path             dtype  shape       bytes
layers.0.weight  f32    [32, 64]  8.0 KiB
layers.0.bias    f32    [32]        128 B
layers.1.weight  f32    [10, 64]  2.5 KiB
layers.1.bias    f32    [10]         40 B
curve            f64    [300]     2.3 KiB
5 tensors, 13.0 KiB
";
    assert_eq!(run(&dir, &["ls", "m.tenarc"]).good(), expected);
}

#[test]
fn says_what_files_are() {
    let dir = Dir::new();
    dir.save("m.tenarc", &model());
    run(&dir, &["convert", "m.tenarc", "m.npz", "--lossy"]);
    let len = std::fs::metadata(dir.file("m.tenarc")).unwrap().len();
    let expected = "\
dtype  tensors  parameters     bytes
f32          4       2,730  10.7 KiB
f64          1         300   2.3 KiB
5 tensors, 3,030 parameters, 13.0 KiB
";
    let found = run(&dir, &["info", "m.tenarc"]).good().to_owned();
    let (head, rest) = found.split_once('\n').unwrap();
    assert!(head.starts_with("m.tenarc  tenarc, 1") && head.ends_with("with checksums"), "{head}");
    assert_eq!(rest, expected);
    let both = run(&dir, &["info", "m.tenarc", "m.npz"]);
    assert!(both.good().contains("\n\nm.npz  npz, "), "{}", both.good());
    let json = run(&dir, &["info", "--json", "m.tenarc", "m.npz"]).json();
    assert_eq!(json[0]["bytes"], len);
    assert_eq!(json[0]["parameters"], 3030);
    assert_eq!(json[0]["checksums"], true);
    assert_eq!(json[0]["dtypes"]["f64"], json!({"tensors": 1, "parameters": 300, "bytes": 2400}));
    assert_eq!(json[1]["format"], "npz");
    assert_eq!(json[1].get("checksums"), None);
    run(&dir, &["info", "nothing"]).failed(2, "nothing");
}

#[test]
fn says_how_tensors_are_compressed() {
    let dir = Dir::new();
    dir.save("m.tenarc", &model());
    run(&dir, &["convert", "m.tenarc", "z.tenarc", "--compress", "zstd"]).good();
    let found = run(&dir, &["info", "--json", "z.tenarc"]).json();
    let (full, stored) = (found[0]["tensor_bytes"].as_u64(), found[0]["stored"].as_u64());
    assert!(stored < full, "{found}");
    assert!(found[0]["codecs"]["zstd"]["tensors"].as_u64() > Some(0), "{found}");
    let found = run(&dir, &["info", "z.tenarc"]).good().to_owned();
    assert!(found.contains("compressed by zstd, ") && found.contains(" stored\n"), "{found}");
}

#[test]
fn lists_tensors_as_a_tree() {
    let dir = Dir::new();
    dir.save("m.tenarc", &model());
    let expected = "\
m.tenarc  5 tensors, 13.0 KiB
├── layers  4 tensors, 10.7 KiB
│   ├── 0  2 tensors, 8.1 KiB
│   │   ├── weight  f32 [32, 64]  8.0 KiB
│   │   └── bias  f32 [32]  128 B
│   └── 1  2 tensors, 2.5 KiB
│       ├── weight  f32 [10, 64]  2.5 KiB
│       └── bias  f32 [10]  40 B
└── curve  f64 [300]  2.3 KiB
";
    assert_eq!(run(&dir, &["ls", "--tree", "m.tenarc"]).good(), expected);
    let filtered = run(&dir, &["ls", "--tree", "m.tenarc", "-e", "*.1.bias"]);
    assert_eq!(filtered.good().lines().count(), 4);
}

fn paths(dir: &Dir, args: &[&str]) -> Vec<String> {
    let mut args = args.to_vec();
    args.push("--json");
    let rows = run(dir, &args).json();
    let path = |row: &serde_json::Value| row["path"].as_str().unwrap().to_owned();
    rows.as_array().unwrap().iter().map(path).collect()
}

/// Columns of named types are shown as what they are, in JSON as texts.
#[test]
fn rows_with_values_of_named_types() {
    use serde::Serialize;
    use tenarc::types::{TimeUnit, TypeName, Typed};
    #[derive(Serialize)]
    struct Row<'a> {
        at: Option<Typed<'a, i64>>,
        #[serde(rename = "in.days")]
        day: Typed<'a, i32>,
        inner: Inner<'a>,
        plain: i64,
        mixed: Typed<'a, i64>,
    }
    #[derive(Serialize)]
    struct Inner<'a> {
        price: Typed<'a, i64>,
        id: Typed<'a, Id>,
    }
    struct Id;
    impl Serialize for Id {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(b"0123456789abcdef")
        }
    }
    let dir = Dir::new();
    let [berlin, utc] = ["Europe/Berlin", "UTC"]
        .map(|zone| TypeName::timestamp(TimeUnit::Millisecond, zone).unwrap());
    let (date, decimal, uuid) =
        (TypeName::date(), TypeName::decimal(5, 2).unwrap(), TypeName::uuid());
    let duration = TypeName::duration(TimeUnit::Second);
    let row = |at: Option<&'static i64>, mixed| Row {
        at: at.map(|at| Typed::new(&berlin, at)),
        day: Typed::new(&date, &20_785),
        inner: Inner { price: Typed::new(&decimal, &-1250), id: Typed::new(&uuid, &Id) },
        plain: 7,
        mixed: Typed::new(mixed, &1500),
    };
    let mut out =
        tenarc::OArchive::create(dir.file("a.tenarc"), tenarc::archive::SaveOptions::default())
            .unwrap();
    out.save_as("log", &vec![row(Some(&1_782_909_001_500), &utc), row(None, &utc)]).unwrap();
    out.save_as("log", &vec![row(None, &duration)]).unwrap();
    out.finish().unwrap();
    let shown = run(&dir, &["show", "a.tenarc", "log"]).good().to_owned();
    let row = |at: &str, mixed: &str| {
        format!(
            r#"  {{
    "at": {at},
    "in.days": 2026-11-28,
    "inner": {{
      "price": -12.50,
      "id": 30313233-3435-3637-3839-616263646566,
    }},
    "plain": 7,
    "mixed": {mixed},
  }},
"#
        )
    };
    let utc = "1970-01-01T00:00:01.500Z";
    let first = row("2026-07-01T12:30:01.500Z[Europe/Berlin]", utc);
    // Each row has its own type.
    let rows = [first, row("null", utc), row("null", "1500 s")].concat();
    assert_eq!(shown, format!("[\n{rows}]\n"));
    let one = run(&dir, &["show", "a.tenarc", "--segment", "0"]).good().to_owned();
    assert!(
        one.contains("\"mixed\": 1970-01-01T00:00:01.500Z")
            && one.contains("in.days\": 2026-11-28"),
        "{one}"
    );
    let picked =
        run(&dir, &["show", "a.tenarc", "log", "--columns", "at", "--columns", "inner.price"]);
    let picked = picked.good();
    assert!(
        picked.contains("\"inner.price\": -12.50") && picked.contains("[Europe/Berlin]"),
        "{picked}"
    );
    let json = run(&dir, &["show", "a.tenarc", "log", "--json"]).json();
    assert_eq!(
        (&json[0]["in.days"], &json[0]["inner"]["price"]),
        (&"2026-11-28".into(), &"-12.50".into())
    );
}

/// Values of types are texts wherever they are in the rows.
#[test]
fn types_inside_of_rows_are_kept() {
    use std::collections::BTreeMap;

    use serde::Serialize;
    use tenarc::types::{TypeName, Typed};
    #[derive(Serialize)]
    enum Kind<'a> {
        On(Typed<'a, i32>),
    }
    #[derive(Serialize)]
    struct Row<'a> {
        list: Vec<Typed<'a, i32>>,
        pair: (Typed<'a, i32>, Option<Typed<'a, i32>>),
        map: BTreeMap<String, Typed<'a, i32>>,
        kind: Kind<'a>,
    }
    let dir = Dir::new();
    let date = TypeName::date();
    let day = || Typed::new(&date, &20_785);
    let row = |len| Row {
        list: (0..len).map(|_| day()).collect(),
        pair: (day(), (len > 1).then(day)),
        map: (0..2).map(|key: u8| (key.to_string(), day())).collect(),
        kind: Kind::On(day()),
    };
    let day = "2026-11-28";
    let expected = |len: usize| {
        serde_json::json!({
            "list": vec![day; len],
            "pair": [day, (len > 1).then_some(day)],
            "map": {"0": day, "1": day},
            "kind": {"On": day},
        })
    };
    for rows in [2, 40] {
        let mut out =
            tenarc::OArchive::create(dir.file("a.tenarc"), tenarc::archive::SaveOptions::default())
                .unwrap();
        out.save_as("log", &(0..rows).map(row).collect::<Vec<_>>()).unwrap();
        out.finish().unwrap();
        let all: Vec<_> = (0..rows).map(expected).collect();
        run(&dir, &["convert", "a.tenarc", "a.json"]).failed(0, "JSON has no `date`");
        let json = std::fs::read(dir.file("a.json")).unwrap();
        assert_eq!(
            serde_json::from_slice::<serde_json::Value>(&json).unwrap(),
            serde_json::json!(all)
        );
        let shown = run(&dir, &["show", "a.tenarc", "--json", "--full"]).json();
        assert_eq!(shown, serde_json::json!(all));
        assert_eq!(
            run(&dir, &["get", "a.tenarc", "list", "--json"]).json()[1],
            serde_json::json!([day])
        );
        std::fs::remove_file(dir.file("a.json")).unwrap();
        std::fs::remove_file(dir.file("a.tenarc")).unwrap();
    }
}

#[test]
fn types_of_columns_are_kept_or_missed() {
    use serde::Serialize;
    use tenarc::types::{TypeName, Typed};
    #[derive(Serialize)]
    struct Row<'a> {
        id: i32,
        day: Typed<'a, i32>,
    }
    let dir = Dir::new();
    let days = |of| (0..300).map(|id| Row { id, day: Typed::new(of, &20_785) }).collect::<Vec<_>>();
    let date = TypeName::date();
    let month = TypeName::new("my.month", Vec::new()).unwrap();
    for (name, of) in [("days.tenarc", &date), ("months.tenarc", &month)] {
        dir.save_all(name, &[(Some("log"), &days(of))]);
    }
    // The numbers are the same.
    let compared = run(&dir, &["diff", "days.tenarc", "months.tenarc"]);
    let out = compared.out();
    assert!(out.starts_with("0.day: date(20785) → my.month(20785)\n"), "{out}");

    for name in ["days.json", "days.jsonl"] {
        run(&dir, &["convert", "days.tenarc", name]).failed(0, "JSON has no `date`");
        let text = std::fs::read_to_string(dir.file(name)).unwrap();
        assert!(text.contains(r#"{"id":1,"day":"2026-11-28"}"#), "{text}");
    }
    for name in ["days.msgpack", "days.pt"] {
        let ran = run(&dir, &["convert", "days.tenarc", name]);
        ran.failed(2, "the type `date` is left out");
    }
    run(&dir, &["convert", "days.tenarc", "days.cbor"]).good();
    let shown = run(&dir, &["show", "days.cbor", "[2:3]"]);
    assert!(shown.good().contains("\"day\": 2026-11-28"), "{shown:?}");

    run(&dir, &["edit", "days.tenarc", "--set", "1.id=7", "-o", "edited.tenarc"]).good();
    let shown = run(&dir, &["show", "edited.tenarc", "log[1:3]"]);
    assert!(shown.good().contains("\"id\": 7,\n    \"day\": 2026-11-28"), "{shown:?}");
    let compared = run(&dir, &["diff", "days.tenarc", "edited.tenarc"]);
    assert!(compared.out().contains("1 difference"), "{compared:?}");
}

/// A value of a named type has the path of its item.
#[test]
fn values_of_named_types() {
    use tenarc::types::{TimeUnit, TypeName, Typed};
    let dir = Dir::new();
    let save = |name: &str, unit| {
        let of = TypeName::timestamp(unit, "").unwrap();
        let (times, date) = (Tensor(vec![1_767_225_600i64, 7]), TypeName::date());
        let value = (("w", Typed::new(&of, &times)), Typed::new(&date, &20_455));
        dir.save(name, &value);
    };
    save("a.tenarc", TimeUnit::Second);
    save("b.tenarc", TimeUnit::Millisecond);
    assert_eq!(paths(&dir, &["ls", "a.tenarc"]), ["0.1"]);
    assert_eq!(run(&dir, &["get", "a.tenarc", "0.1[0]"]).good(), "2026-01-01T00:00:00\n");
    assert_eq!(run(&dir, &["get", "a.tenarc", "1"]).good(), "2026-01-02\n");
    let shown = run(&dir, &["show", "a.tenarc"]).good().to_owned();
    let expected = "timestamp[\"s\", \"\"](i64 [2] [1767225600          7])";
    assert!(
        shown.contains(expected) && shown.contains(", 2026-01-02")
            || shown.contains("\n  2026-01-02,"),
        "{shown}"
    );
    let ran = run(&dir, &["diff", "a.tenarc", "b.tenarc"]);
    assert!(ran.status == 1 && ran.out().contains("0.1"), "{ran:?}");
    run(&dir, &["diff", "a.tenarc", "a.tenarc"]).good();
    // What is copied keeps its type.
    run(&dir, &["edit", "a.tenarc", "-o", "c.tenarc", "--set", "0.0=x"]).good();
    assert_eq!(run(&dir, &["show", "c.tenarc", "0.1"]).good(), expected.to_owned() + "\n");
    run(&dir, &["convert", "a.tenarc", "d.cbor"]).good();
    run(&dir, &["convert", "d.cbor", "e.tenarc"]).good();
    assert_eq!(run(&dir, &["diff", "a.tenarc", "e.tenarc"]).good(), "");
}

#[test]
fn sorts_and_filters() {
    let dir = Dir::new();
    let tensor = |dims: &[usize]| {
        DynTensor::new(DType::U8, dims, Order::C, vec![0; dims.iter().product()]).unwrap()
    };
    let names = [("layer.10.w", &[2, 3][..]), ("layer.9.w", &[5]), ("layer.9.b", &[1, 1, 1])];
    dir.save("m.tenarc", &flat(&names.map(|(name, dims)| (name, tensor(dims)))));
    let of = |args: &[&str]| paths(&dir, &[&["ls", "m.tenarc"], args].concat());
    assert_eq!(of(&[]), ["layer.10.w", "layer.9.w", "layer.9.b"]);
    assert_eq!(of(&["--sort", "path"]), ["layer.9.b", "layer.9.w", "layer.10.w"]);
    let by_size = ["layer.10.w", "layer.9.w", "layer.9.b"];
    assert_eq!(of(&["--sort", "size", "-e", "*"]), by_size);
    assert_eq!(of(&["--sort", "bytes", "-r"]), ["layer.9.b", "layer.9.w", "layer.10.w"]);
    assert_eq!(of(&["--sort", "shape", "-r"]), ["layer.9.b", "layer.10.w", "layer.9.w"]);
    assert_eq!(of(&["-e", "*.9.*"]), ["layer.9.w", "layer.9.b"]);
    assert_eq!(of(&["-e", "*.{b,x}", "-e", "layer.1?.w"]), ["layer.10.w", "layer.9.b"]);
    run(&dir, &["ls", "m.tenarc", "-e", "a[b"]).failed(2, "pattern \"a[b\"");
}

#[test]
fn lists_what_messages_and_json_hold() {
    let dir = Dir::new();
    let message = tenarc::to_vec(&model()).unwrap();
    dir.write("m.cbor", &message);
    let json = serde_json::to_vec(&model()).unwrap();
    dir.write("m.json", &json);
    let expected = ["layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"];
    assert_eq!(paths(&dir, &["ls", "m.cbor"]), expected);
    assert_eq!(paths(&dir, &["ls", "m.json"]), expected);
    for (input, args) in [(&message, &["ls", "-", "--from", "cbor"][..]), (&json, &["ls", "-"])] {
        let ran = run_with(&dir, args, input);
        assert_eq!(ran.good().lines().count(), 6, "{ran:?}");
    }
    let archive = std::fs::read(dir.save("m.tenarc", &model())).unwrap();
    assert_eq!(run_with(&dir, &["ls", "-"], &archive).good().lines().count(), 7);
}

#[test]
fn distinguishes_the_values_of_an_archive() {
    let dir = Dir::new();
    let (a, b) = (ramp(&[2]), ramp(&[3]));
    dir.save_all("m.tenarc", &[(None, &a), (Some("two"), &b)]);
    let expected = "\
segment  path         dtype  shape  bytes
#0       (the value)  f32    [2]      8 B
\"two\"    (the value)  f32    [3]     12 B
2 tensors, 20 B
";
    assert_eq!(run(&dir, &["ls", "m.tenarc"]).good(), expected);
    assert_eq!(run(&dir, &["get", "m.tenarc", "", "-s", "two"]).good(), "0.0 1.0 2.0\n");
    assert_eq!(run(&dir, &["get", "m.tenarc", "", "-s", "0"]).good(), "0.0 1.0\n");
    run(&dir, &["get", "m.tenarc", ""]).failed(2, "holds 2 values: choose one with --segment");
    run(&dir, &["get", "m.tenarc", "", "-s", "2"])
        .failed(2, "no value \"2\": the file holds 2 values");
}

#[test]
fn shows_metadata_as_text_and_abbreviates_tensors() {
    let dir = Dir::new();
    dir.save("m.tenarc", &model());
    let shown = run(&dir, &["show", "m.tenarc"]);
    let expected = r#"{
  "name": "small \"one\"",
  "version": 3,
  "rate": 0.1,
  "layers": [
    {
      "weight": f32 [32, 64]
        [[   0.    1.    2. …   61.   62.   63.]
         [  64.   65.   66. …  125.  126.  127.]
         [ 128.  129.  130. …  189.  190.  191.]
         …
         [1856. 1857. 1858. … 1917. 1918. 1919.]
         [1920. 1921. 1922. … 1981. 1982. 1983.]
         [1984. 1985. 1986. … 2045. 2046. 2047.]],
"#;
    assert!(shown.good().starts_with(expected), "{}", shown.out());
    assert!(shown.good().ends_with(
        "  \"curve\": f64 [300] [  0.   1.   2. … 297. 298. 299.],\n  \"note\": null,\n}\n"
    ));
    assert_eq!(run(&dir, &["show", "m.tenarc", "version"]).good(), "3\n");
    run(&dir, &["show", "m.tenarc", "layers.2"]).failed(2, "no value at `layers.2`");
}

#[test]
fn shows_tensors_of_every_form() {
    let dir = Dir::new();
    let tensor = |dtype: &str, dims: &[usize], order, bytes: Vec<u8>| {
        DynTensor::new(DType::from_name(dtype), dims, order, bytes).unwrap()
    };
    let value = flat(&[
        ("scalar", tensor("i16", &[], Order::C, vec![0xff, 0xff])),
        ("empty", tensor("f64", &[0, 3], Order::C, vec![])),
        ("columns", tensor("u8", &[2, 3], Order::F, vec![1, 4, 2, 5, 3, 6])),
        ("small", tensor("f8_e4m3", &[3], Order::C, vec![0x38, 0x7f, 0xfe])),
        ("packed", tensor("f4", &[4], Order::C, vec![1, 2])),
        ("named", tensor("posit\u{1b}8", &[2], Order::C, vec![1, 2, 3])),
        ("complex", tensor("c64", &[1], Order::C, [1f32, -0.5].map(f32::to_le_bytes).concat())),
        ("bool", tensor("bool", &[2], Order::C, vec![1, 0])),
    ]);
    dir.save("m.tenarc", &value);
    let expected = "\
{
  \"scalar\": i16 [] -1,
  \"empty\": f64 [0, 3] [],
  \"columns\": u8 [2, 3] F
    [[1 2 3]
     [4 5 6]],
  \"small\": f8_e4m3 [3] [   1.   NaN -448.],
  \"packed\": f4 [4],
  \"named\": posit\\u{1b}8 [2],
  \"complex\": c64 [1] [1.-0.5j],
  \"bool\": bool [2] [ true false],
}
";
    assert_eq!(run(&dir, &["show", "m.tenarc"]).good(), expected);
    let shown = run(&dir, &["show", "m.tenarc", "--json"]).json();
    assert_eq!(shown["columns"]["data"], json!([[1, 2, 3], [4, 5, 6]]));
    assert_eq!(shown["small"]["data"], json!([1.0, "NaN", -448.0]));
    assert_eq!(shown["complex"]["data"], json!([[1.0, -0.5]]));
    assert_eq!(shown["packed"], json!({"dtype": "f4", "shape": [4], "bytes": 2}));
    let keys: Vec<&String> = shown.as_object().unwrap().keys().collect();
    assert_eq!(keys[..3], ["scalar", "empty", "columns"], "in their order");
}

#[test]
fn shows_values_that_json_lacks_in_diagnostic_notation() {
    let dir = Dir::new();
    let entries = [
        (Value::Integer(1), Value::Bytes(vec![1, 2])),
        (Value::Text("t".into()), Value::Tag(99, Box::new(Value::F64(f64::NAN)))),
        (Value::Bool(true), Value::Integer(i128::from(u64::MAX) + 1)),
        (Value::Bool(false), tenarc::to_value(&u128::MAX).unwrap()),
        (Value::Text("big".into()), Value::Array(vec![Value::Null; 500])),
    ];
    dir.save("m.tenarc", &Value::Map(entries.to_vec()));
    let text = run(&dir, &["show", "m.tenarc"]);
    assert!(
        text.good()
            .contains("  1: h'0102',\n  \"t\": 99(NaN),\n  true: 2(h'010000000000000000'),\n")
    );
    assert!(text.good().contains("null, null, … 400 more],\n"));
    let full = run(&dir, &["show", "--full", "m.tenarc", "big"]);
    assert_eq!(full.good().matches("null").count(), 500);
    let json = run(&dir, &["show", "--json", "m.tenarc"]).json();
    assert_eq!(json["1"], json!({"diag": "h'0102'"}));
    assert_eq!(json["t"], json!({"tag": 99, "value": "NaN"}));
    assert_eq!(json["true"], json!("18446744073709551616"));
    assert_eq!(json["false"], json!(u128::MAX.to_string()));
}

#[test]
fn gets_tensors_and_slices_as_text() {
    let dir = Dir::new();
    dir.save("m.tenarc", &model());
    let get = |path: &str| run(&dir, &["get", "m.tenarc", path]);
    assert_eq!(get("layers.1.bias").good(), "0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0\n");
    assert_eq!(get("layers.1.weight[0:2, :3]").good(), "0.0 1.0 2.0\n64.0 65.0 66.0\n");
    assert_eq!(get("layers.1.weight[-1, ::-32]").good(), "639.0 607.0\n");
    assert_eq!(get("/layers/1/weight[0,0]").good(), "0.0\n");
    assert_eq!(get("layers.1.weight[3:3]").good(), "");
    get("layers.1.weight[10]").failed(2, "index 10 is out of range for an axis of length 10");
    get("layers.1.weight[0,0,0]")
        .failed(2, "the slice has 3 axes, the tensor has the shape [10, 64]");
    get("layers.1.weight[x]").failed(2, "\"x\" is neither an index nor a range");
    get("layers.1.wait").failed(2, "there is no value at `layers.1.wait`");
    get("layers.1.biased")
        .failed(2, "there is no value at `layers.1.biased`; did you mean `layers.1.bias`?");
    assert_eq!(get("name").good(), "small \"one\"\n");
    assert_eq!(run(&dir, &["get", "--json", "m.tenarc", "name"]).json(), json!("small \"one\""));
    get("name[0]").failed(2, "not a sequence, so it has no rows");
    get("layers").failed(2, "a value that consists of others: use --json, or `tenarc show`");
    let json = run(&dir, &["get", "--json", "m.tenarc", "layers.1.weight[:2, 0]"]).json();
    assert_eq!(json, json!({"dtype": "f32", "shape": [2], "data": [0.0, 64.0]}));
}

#[test]
fn gets_npy_and_raw_files() {
    let dir = Dir::new();
    let columns = DynTensor::new(DType::U16, &[2, 2], Order::F, vec![1, 0, 3, 0, 2, 0, 4, 0]);
    dir.save("m.tenarc", &Tensor(columns.unwrap()));
    assert_eq!(run(&dir, &["get", "m.tenarc", "", "-o", "t.npy"]).good(), "");
    let npy = std::fs::read(dir.file("t.npy")).unwrap();
    assert_eq!(npy.len(), 128 + 8);
    assert!(npy.starts_with(
        b"\x93NUMPY\x01\x00\x76\x00{'descr': '<u2', 'fortran_order': False, 'shape': (2, 2), }"
    ));
    assert_eq!(npy[128..], [1, 0, 2, 0, 3, 0, 4, 0], "in rows");
    let raw = run(&dir, &["get", "m.tenarc", "", "--as", "raw"]);
    assert_eq!(raw.bytes, [1, 0, 2, 0, 3, 0, 4, 0]);
    let cast = run(&dir, &["get", "m.tenarc", "[1]", "--as", "raw", "--cast", "f32"]);
    assert_eq!(cast.bytes, [3f32, 4.0].map(f32::to_le_bytes).concat());
    run(&dir, &["get", "m.tenarc", "", "--cast", "f23"])
        .failed(2, "cannot cast u16 to f23; did you mean `f32`?");
    run(&dir, &["get", "m.tenarc", "", "--cast", "zzzzzz"]).failed(2, "cannot cast u16 to zzzzzz");
    run(&dir, &["ls", "m.tenarc", "--void", "bf61"]).failed(2, "f16; did you mean `bf16`?");
    run(&dir, &["get", "m.tenarc", "", "--cast", "bf16", "--as", "npy"])
        .failed(2, "npy has no dtype for bf16");
    assert_eq!(dir.names(), ["m.tenarc", "t.npy"], "nothing is left beside");
}

#[test]
fn finds_keys_with_dots_and_brackets() {
    let dir = Dir::new();
    let tensor = |byte| DynTensor::new(DType::U8, &[1], Order::C, vec![byte]).unwrap();
    let nested = flat(&[("b", tensor(2))]);
    let Value::Map(mut entries) = flat(&[("a.b", tensor(1)), ("w[0]", tensor(3))]) else {
        panic!()
    };
    entries.push((Value::Text("a".into()), nested));
    dir.save("m.tenarc", &Value::Map(entries));
    assert_eq!(paths(&dir, &["ls", "m.tenarc"]), ["/a.b", "w[0]", "/a/b"]);
    let get = |path: &str| run(&dir, &["get", "m.tenarc", path]);
    get("a.b").failed(2, "the path leads to several values");
    assert_eq!((get("/a.b").good(), get("/a/b").good(), get("w[0]").good()), ("1\n", "2\n", "3\n"));
}

#[test]
fn patterns_that_match_nothing_are_errors() {
    let dir = Dir::new();
    dir.save("a.tenarc", &model());
    for args in [
        &["ls", "a.tenarc", "-e", "zz*"][..],
        &["ls", "--tree", "a.tenarc", "-e", "zz*"],
        &["stats", "a.tenarc", "-e", "zz*"],
        &["diff", "a.tenarc", "a.tenarc", "-e", "zz*"],
    ] {
        run(&dir, args).failed(2, "nothing matches \"zz*\"");
    }
    assert_eq!(run(&dir, &["diff", "a.tenarc", "a.tenarc", "-e", "zz*", "-e", "cur*"]).good(), "");
    let ran = run(&dir, &["ls", "a.tenarc", "zz*"]);
    assert!(ran.status == 2 && ran.err.contains("zz*: No such file"), "{ran:?}");
    assert!(ran.err.ends_with("; a pattern is given with -e\n"), "{ran:?}");
}
