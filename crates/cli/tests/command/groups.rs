//! Dots in names are steps, in every format: `ls --tree`, and groups of values with a common start of their paths.

use crate::support::{Dir, flat, model, run};
use serde_json::json;
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor, Value};

fn tensor(byte: u8) -> DynTensor {
    DynTensor::new(DType::U8, &[1], Order::C, vec![byte]).unwrap()
}

/// A safetensors file with these names.
fn names(dir: &Dir, file: &str, names: &[&str]) {
    let tensors = (0..names.len()).map(|at| tensor(u8::try_from(at % 251).unwrap()));
    let entries: Vec<_> = names.iter().copied().zip(tensors).collect();
    dir.save("names.tenarc", &flat(&entries));
    run(dir, &["convert", "names.tenarc", file, "--no-sync"]).good();
}

#[test]
fn a_flat_file_has_the_tree_of_a_nested_one() {
    let dir = Dir::new();
    dir.save("nested.tenarc", &model());
    // The first line has the name of the file.
    let tree = |file: &str| {
        let tree = run(&dir, &["ls", "--tree", file]).good().to_owned();
        tree.split_once('\n').unwrap().1.to_owned()
    };
    let nested = tree("nested.tenarc");
    for file in ["flat.npz", "flat.safetensors", "flat.gguf"] {
        run(&dir, &["convert", "nested.tenarc", file, "--lossy"]);
        run(&dir, &["convert", file, "flat.tenarc", "--names", "flat"]).good();
        let shown = run(&dir, &["show", "flat.tenarc"]).good().to_owned();
        assert!(shown.contains("\"layers.0.weight\": f32"), "{file}: {shown}");
        assert_eq!(tree("flat.tenarc"), tree(file), "{file}");
        if file == "flat.safetensors" {
            // It sorts the names.
            let layer = "    ├── 0  2 tensors, 8.1 KiB\n    │   ├── bias  f32 [32]  128 B\n";
            assert!(tree(file).contains(layer), "{}", tree(file));
        } else {
            assert_eq!(tree(file), nested, "{file}");
        }
    }
}

#[test]
fn names_that_share_a_place_have_a_line_each() {
    let dir = Dir::new();
    let Value::Map(mut entries) = flat(&[("a.b", tensor(1)), ("c..", tensor(3))]) else { panic!() };
    entries.push((Value::Text("a".into()), flat(&[("b", tensor(4))])));
    entries.push((Value::Text("a.b.c".into()), flat(&[("d", tensor(5))])));
    dir.save("m.tenarc", &Value::Map(entries));
    let expected = "\
m.tenarc  4 tensors, 4 B
├── a  3 tensors, 3 B
│   ├── b  u8 [1]  1 B
│   │   └── c  1 tensor, 1 B
│   │       └── d  u8 [1]  1 B
│   └── b  u8 [1]  1 B
└── c  1 tensor, 1 B
    └── \"\"  1 tensor, 1 B
        └── \"\"  u8 [1]  1 B
";
    assert_eq!(run(&dir, &["ls", "--tree", "m.tenarc"]).good(), expected);
}

#[test]
fn a_prefix_names_a_group() {
    let dir = Dir::new();
    let all = ["layers.0.bias", "layers.0.weight", "layers.01.bias", "layers.1.bias", "head"];
    names(&dir, "m.safetensors", &all);
    let show = |path: &str| run(&dir, &["show", "m.safetensors", path]);
    assert_eq!(
        show("layers.0").good(),
        "{\n  \"bias\": u8 [1] [0],\n  \"weight\": u8 [1] [1],\n}\n"
    );
    assert!(show("layers").good().contains("\"0.weight\": u8 [1] [1],\n"));
    let json = run(&dir, &["show", "--json", "m.safetensors", "layers.1"]).json();
    assert_eq!(json["bias"]["dtype"], "u8");
    let json = run(&dir, &["get", "--json", "m.safetensors", "layers.0"]).json();
    assert_eq!(json["weight"]["data"], json!([1]));
    run(&dir, &["get", "m.safetensors", "layers.0"]).failed(2, "consists of others");
    show("layers.2").failed(2, "there is no value at `layers.2`");
    show("layer").failed(2, "there is no value at `layer`");
    show("layers.").failed(2, "there is no value at `layers.`");
    show("/layers/0").failed(2, "there is no value at `/layers/0`");
    show("/layers").failed(2, "there is no value at `/layers`");
    // A pattern without wildcards is one value. `.*` behind the name of a group matches the group.
    for (pattern, count) in
        [("layers.0.*", 2), ("layers.*", 4), ("head", 1), ("layers.0.weight", 1)]
    {
        let found = run(&dir, &["ls", "m.safetensors", "--json", "-e", pattern]).json();
        assert_eq!(found.as_array().unwrap().len(), count, "{pattern}");
        let found = run(&dir, &["stats", "m.safetensors", "--json", "-e", pattern]).json();
        assert_eq!(found.as_array().unwrap().len(), count, "{pattern}");
    }
    run(&dir, &["ls", "m.safetensors", "-e", "layers.0"]).failed(2, "nothing matches \"layers.0\"");
    run(&dir, &["edit", "m.safetensors", "-o", "e.npz", "--drop", "layers.0.*"]).good();
    assert_eq!(run(&dir, &["ls", "--json", "e.npz"]).json().as_array().unwrap().len(), 3);
    run(&dir, &["edit", "m.safetensors", "-o", "k.npz", "--keep", "layers.0.*"]).good();
    assert_eq!(run(&dir, &["ls", "--json", "k.npz"]).json().as_array().unwrap().len(), 2);
}

#[test]
fn a_group_is_renamed() {
    let dir = Dir::new();
    names(&dir, "m.npz", &["layers.0.a", "layers.0.b.c", "layers.01.a", "layers.1.a", "head"]);
    let edit = |renamed: &str| run(&dir, &["edit", "m.npz", "-o", "e.npz", "--rename", renamed]);
    let paths = |renamed: &str| {
        edit(renamed).good();
        let listed = run(&dir, &["ls", "--json", "e.npz"]).json();
        let path = |one: &serde_json::Value| one["path"].as_str().unwrap().to_owned();
        listed.as_array().unwrap().iter().map(path).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(paths("layers.0=blocks.0"), "blocks.0.a blocks.0.b.c layers.01.a layers.1.a head");
    // A group can become a part of itself, and its new name may have other steps.
    assert_eq!(
        paths("layers=layers.all"),
        "layers.all.0.a layers.all.0.b.c layers.all.01.a layers.all.1.a head"
    );
    assert_eq!(paths("layers.0=x"), "x.a x.b.c layers.01.a layers.1.a head");
    assert_eq!(
        paths("layers.0.b=layers.0.d"),
        "layers.0.a layers.0.d.c layers.01.a layers.1.a head"
    );
    edit("layers.0=layers.1").failed(2, "\"layers.1.a\" exists already");
    edit("layers.0=head").failed(2, "\"head\" exists already");
    edit("layers.0=head.x").failed(2, "cannot create \"head.x.a\": \"head\" exists already");
    edit("layers.1.a=head.a").failed(2, "cannot create");
    edit("layers.2=x").failed(2, "nothing matches \"layers.2\"");
    edit("/layers/0=x").failed(2, "nothing matches");
}

#[test]
fn a_group_is_renamed_in_its_map() {
    let dir = Dir::new();
    let inner = flat(&[("a.x", tensor(1)), ("a.y", tensor(2)), ("b", tensor(3))]);
    let text = |text: &str| Value::Text(text.into());
    let twice = Value::Map(vec![(text("x.y"), Value::Bool(true))]);
    let value = vec![
        (text("state"), inner),
        (text("twice"), twice),
        (text("twice.x.z"), Value::Bool(false)),
        (text("state.e.x"), Value::Bool(false)),
    ];
    dir.save("m.tenarc", &Value::Map(value));
    let edit =
        |renamed: &str| run(&dir, &["edit", "m.tenarc", "-o", "e.tenarc", "--rename", renamed]);
    edit("state.a=state.c.d").good();
    let shown = run(&dir, &["show", "--json", "e.tenarc", "state"]).json();
    let mut keys: Vec<&String> = shown.as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(keys, ["b", "c.d.x", "c.d.y"]);
    edit("state.a=c").failed(2, "the new path must begin with \"state.\"");
    edit("state.a=/state/c").failed(2, "the new path must begin with \"state.\"");
    edit("state.a=state.").failed(2, "the new path must begin with \"state.\"");
    edit("state.a=twice.x").failed(2, "the new path must begin with \"state.\"");
    edit("state.a=state.e").failed(2, "\"state.e\" exists already");
    edit("twice.x=twice.q").failed(2, "is ambiguous");
}

#[test]
fn a_full_name_comes_before_a_group() {
    let dir = Dir::new();
    names(&dir, "m.npz", &["a", "a.b", "a.b.c"]);
    let get = |path: &str| run(&dir, &["get", "m.npz", path]);
    assert_eq!((get("a").good(), get("a.b").good(), get("a.b.c").good()), ("0\n", "1\n", "2\n"));
    // Members of a group may be in several maps. Two of the same path are an error.
    let text = |text: &str| Value::Text(text.into());
    let nested = Value::Map(vec![(text("x.y"), Value::Bool(true))]);
    let list = Value::Array(vec![Value::Map(vec![(text("p.q"), Value::Bool(true))])]);
    let value = vec![
        (text("a"), nested),
        (text("a.x.z"), Value::Bool(false)),
        (text("list"), list),
        (text("twice"), Value::Map(vec![(text("x.y"), Value::Bool(true))])),
        (text("twice.x.y"), Value::Bool(false)),
    ];
    dir.save("m.tenarc", &Value::Map(value));
    let show = |path: &str| run(&dir, &["show", "--json", "m.tenarc", path]);
    assert_eq!(show("a.x").json(), json!({"y": true, "z": false}));
    assert_eq!(show("a").json(), json!({"x.y": true}), "the map with this name alone");
    assert_eq!(show("list.0.p").json(), json!({"q": true}));
    show("list.00.p").failed(2, "there is no value at `list.00.p`");
    show("twice.x").failed(2, "the path \"twice.x.y\" leads to several values");
    show("twice.x.y").failed(2, "the path leads to several values");
}

#[test]
fn many_names_and_names_of_many_dots_are_no_trouble() {
    let dir = Dir::new();
    let many: Vec<String> = (0..100_000).map(|at| format!("layers.{at}.weight")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    names(&dir, "many.safetensors", &many);
    assert_eq!(run(&dir, &["ls", "--tree", "many.safetensors"]).good().lines().count(), 200_002);
    assert!(run(&dir, &["show", "many.safetensors", "layers.77"]).good().contains("weight"));
    let long = ".".repeat(1 << 20) + "end";
    names(&dir, "deep.safetensors", &["a", &long]);
    let tree = run(&dir, &["ls", "--tree", "deep.safetensors"]).good().to_owned();
    assert_eq!(tree.lines().count(), 34, "the steps of a path have an end");
    assert!(tree.len() < (1 << 20) + 20_000, "{}", tree.len());
    let group = run(&dir, &["show", "deep.safetensors", &long[..1 << 10]]);
    assert!(group.good().len() > (1 << 20) - (1 << 11), "{}", group.good().len());
}
