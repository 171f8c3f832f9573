//! The pickle instructions that are understood, and those that are refused.

use tenarc::error::Category;
use tenarc_convert::TensorFile as _;
use tenarc_convert::torch::TorchFile;

use super::support::{Pickler, file, floats, refused, under_a};

fn value(pickle: Pickler) -> String {
    let bytes = file(&under_a(|_| pickle), &floats(12));
    let file = TorchFile::new(bytes).unwrap();
    let bytes = tenarc::to_vec(&file.flat().unwrap()).unwrap();
    let text = tenarc::diag::to_string(&bytes).unwrap();
    assert_eq!(file.losses().listed().len(), 1, "the storage is not used: {}", file.losses());
    text
}

fn a() -> Pickler {
    Pickler::new().op(b"}").text("a")
}

#[test]
fn plain_values_of_every_kind_come_through() {
    let cases: [(Pickler, &str); 20] = [
        (a().op(b"N"), "null"),
        (a().op(b"\x88"), "true"),
        (a().op(b"J\xff\xff\xff\xff"), "-1"),
        (a().op(b"M\x01\x02"), "513"),
        (a().op(b"\x8a\x00"), "0"),
        (a().op(b"\x8a\x02\x00\x80"), "-32768"),
        (
            a().op(b"\x8b\x09\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"),
            "2(h'010000000000000000')",
        ),
        (a().op(b"G\x3f\xf8\0\0\0\0\0\0"), "1.5"),
        (a().op(b"\x8c\x02hi"), "\"hi\""),
        (a().op(b"\x8d\x02\0\0\0\0\0\0\0hi"), "\"hi\""),
        (a().op(b"C\x02hi"), "h'6869'"),
        (a().op(b"\x96\x02\0\0\0\0\0\0\0hi"), "h'6869'"),
        (
            a().global("_codecs", "encode").text("\u{0}\u{ff}").text("latin1").op(b"\x86R"),
            "h'00ff'",
        ),
        (a().global("__builtin__", "bytes").op(b")R"), "h''"),
        (a().op(b"(K\x01Nl"), "[1, null]"),
        (a().op(b"]K\x01a(NNe"), "[1, null, null]"),
        (a().op(b"NK\x01\x86"), "[null, 1]"),
        (a().op(b"(K\x01Nd"), "{1: null}"),
        (a().op(b"}(K\x01NX\x01\0\0\0bNu"), "{1: null, \"b\": null}"),
        (a().op(b"K\x01Nq\x050h\x05\x86"), "[1, null]"),
    ];
    for (pickle, expected) in cases {
        let text = value(pickle);
        assert!(text.contains(&format!("\"a\": {expected}")), "{text}, expected {expected}");
    }
}

/// What a pickle with a tensor `b` has beside it, and the notes of that.
fn beside_a_tensor(a: impl FnOnce(Pickler) -> Pickler) -> (String, String) {
    let pickle =
        under_a(|pickle| a(pickle).op(b"sX\x01\0\0\0b").tensor("FloatStorage", 12, 0, &[12], &[1]));
    let file = TorchFile::new(file(&pickle, &floats(12))).unwrap();
    assert!(file.losses().is_empty(), "{}", file.losses());
    assert_eq!(file.tensors()[0].path(), "b");
    assert_eq!(file.tensor::<Vec<f32>>("b").unwrap()[11], 11.0);
    let text = tenarc::diag::to_string(&tenarc::to_vec(&file.stored().unwrap()).unwrap()).unwrap();
    let (a, _) = text.split_once(", \"b\": ").unwrap();
    (a.strip_prefix("{\"a\": ").unwrap().to_owned(), file.losses().notes().join("\n"))
}

#[test]
fn what_attacks_would_call_is_data() {
    for (module, name) in
        [("os", "system"), ("builtins", "eval"), ("__builtin__", "exec"), ("os.path", "join")]
    {
        let call = |pickle: Pickler| pickle.text("echo").op(b"\x85R");
        let expected = format!("{{\"call\": \"{module}.{name}\", \"arguments\": [\"echo\"]}}");
        let (old, notes) = beside_a_tensor(|pickle| call(pickle.global(module, name)));
        assert_eq!(old, expected);
        assert!(
            notes.contains(&format!("`{module}.{name}`")) && notes.contains("nothing"),
            "{notes}"
        );
        let new = beside_a_tensor(|pickle| call(pickle.text(module).text(name).op(b"\x93"))).0;
        assert_eq!(new, expected);
    }
    let (named, notes) = beside_a_tensor(|pickle| pickle.global("os", "system"));
    assert_eq!(named, "\"os.system\"");
    assert!(notes.contains("kept as texts: `os.system`"), "{notes}");
    // Where it is thrown away, the file has no more than the rest.
    assert_eq!(beside_a_tensor(|pickle| pickle.global("os", "system").op(b"0N")).0, "null");
}

#[test]
fn objects_are_kept_as_what_the_pickle_says_of_them() {
    type Made = fn(Pickler) -> Pickler;
    let made: [(Made, &str); 12] = [
        (|pickle| pickle.op(b")R"), r#"{"call": "my.Class", "arguments": []}"#),
        (|pickle| pickle.op(b")\x81"), "{}"),
        (|pickle| pickle.op(b")\x81}X\x01\0\0\0kNsb"), r#"{"k": null}"#),
        (|pickle| pickle.op(b")}\x92"), "{}"),
        (|pickle| pickle.op(b")\x81K\x01a(K\x02K\x03e"), "[1, 2, 3]"),
        (|pickle| pickle.op(b")\x81(K\x01K\x02u"), "{1: 2}"),
        (|pickle| pickle.op(b")\x81N}X\x01\0\0\0kNs\x86b"), r#"{"k": null}"#),
        (|pickle| pickle.op(b"K\x05\x85\x81"), r#"{"call": "my.Class", "arguments": [5]}"#),
        (
            |pickle| pickle.op(b"K\x05\x85}K\x01K\x02s\x92"),
            r#"{"call": "my.Class", "arguments": [5, {1: 2}]}"#,
        ),
        (
            |pickle| pickle.op(b")RK\x01a(K\x01K\x02uK\x07b"),
            r#"{"call": "my.Class", "arguments": [], "state": 7, "items": [1], "entries": {1: 2}}"#,
        ),
        (
            |pickle| pickle.op(b")R)R"),
            r#"{"call": {"call": "my.Class", "arguments": []}, "arguments": []}"#,
        ),
        (
            |pickle| pickle.op(b"K\x05\x85\x81}X\x01\0\0\0kNsb"),
            r#"{"call": "my.Class", "arguments": [5], "state": {"k": null}}"#,
        ),
    ];
    for (made, expected) in made {
        assert_eq!(beside_a_tensor(|pickle| made(pickle.global("my", "Class"))).0, expected);
    }
}

#[test]
fn the_parts_of_modules_are_their_attributes_if_names_are_unique() {
    let module = |own: &'static [u8]| {
        move |pickle: Pickler| {
            let pickle = pickle.global("my", "Module").op(b")\x81}(");
            let pickle =
                pickle.text("_parameters").op(b"}(").text("w").op(b"K\x01").text("n").op(b"Nu");
            let pickle = pickle.text("_modules").op(b"}").text("hooks").op(b"}s");
            pickle.text("_hooks").op(b"}").op(own).op(b"ub")
        }
    };
    assert_eq!(beside_a_tensor(module(b"")).0, r#"{"w": 1, "hooks": {}}"#);
    let other = b"X\x02\0\0\0_xK\x02X\x01\0\0\0y}";
    assert_eq!(beside_a_tensor(module(other)).0, r#"{"w": 1, "hooks": {}, "_x": 2, "y": {}}"#);
    let clash = beside_a_tensor(module(b"X\x01\0\0\0wK\x02")).0;
    assert_eq!(
        clash,
        r#"{"_parameters": {"w": 1, "n": null}, "_modules": {"hooks": {}}, "_hooks": {}, "w": 2}"#
    );
    let only_parameters = beside_a_tensor(|pickle| {
        pickle.global("my", "Class").op(b")\x81}").text("_parameters").op(b"}sb")
    });
    assert_eq!(only_parameters.0, r#"{"_parameters": {}}"#);
}

#[test]
fn parts_of_tensors_must_be_what_torch_writes() {
    let tensor = |args: fn(Pickler) -> Pickler| {
        under_a(|pickle| {
            args(pickle.global("torch._utils", "_rebuild_tensor_v2").op(b"(")).op(b"tR")
        })
    };
    refused(&tensor(|pickle| pickle), "expected storage, offset, size and stride");
    refused(&tensor(|pickle| pickle.op(b"NK\x00))")), "expected the storage of a tensor");
    refused(
        &tensor(|pickle| pickle.storage("FloatStorage", "0", 12).op(b"N))")),
        "expected storage, offset",
    );
    refused(
        &tensor(|pickle| pickle.storage("FloatStorage", "0", 12).int(-1).op(b"))")),
        "is negative",
    );
    refused(
        &tensor(|pickle| pickle.storage("FloatStorage", "0", 12).int(0).ints(&[-1]).ints(&[1])),
        "that are not negative",
    );
    refused(
        &tensor(|pickle| {
            pickle.storage("FloatStorage", "0", 12).int(0).ints(&[1]).op(b"X\x01\0\0\0x")
        }),
        "that are not negative",
    );
    refused(
        &tensor(|pickle| {
            pickle.storage("FloatStorage", "0", 12).int(0).ints(&[1; 65]).ints(&[1; 65])
        }),
        "65 dimensions",
    );
    for id in [&b"N"[..], b")", b"(NNNNNt", b"X\x07\0\0\0storage"] {
        let found = refused(&under_a(|pickle| pickle.op(id).op(b"Q")), "expected");
        assert!(matches!(found, Category::Data | Category::Syntax));
    }
    refused(
        &under_a(|pickle| {
            pickle.op(b"(").text("storage").op(b"N").text("0").text("cpu").int(1).op(b"tQ")
        }),
        "expected the id of a storage",
    );
}

#[test]
fn storages_and_dtypes_without_a_counterpart_are_lost_by_name() {
    let unknown = under_a(|pickle| pickle.tensor("OtherStorage", 48, 0, &[48], &[1]));
    let packed = under_a(|pickle| pickle.tensor_v3("float4_e2m1fn_x2", 48, 0, &[48], &[1]));
    for (pickle, name) in [(unknown, "torch.OtherStorage"), (packed, "torch.float4_e2m1fn_x2")] {
        let file = TorchFile::new(file(&pickle, &floats(12))).unwrap();
        assert!(file.tensors().is_empty());
        assert!(file.losses().to_string().contains(name), "{}", file.losses());
    }
}

#[test]
fn attributes_of_tensors_and_dicts_are_lost_by_name() {
    let parameter = under_a(|pickle| {
        let pickle = pickle.global("torch._utils", "_rebuild_parameter_with_state").op(b"(");
        let pickle = pickle.tensor("FloatStorage", 12, 0, &[12], &[1]).op(b"\x88").hooks();
        pickle.op(b"}").text("tag").op(b"K\x01stR")
    });
    let found = TorchFile::new(file(&parameter, &floats(12))).unwrap();
    assert_eq!(found.losses().listed()[0].to_string(), "`a`: attributes of a tensor");
    assert_eq!(found.tensors().len(), 1);
    let plain = under_a(|pickle| {
        let pickle = pickle.global("torch._utils", "_rebuild_parameter").op(b"(");
        pickle.tensor("FloatStorage", 12, 0, &[12], &[1]).op(b"\x88").hooks().op(b"tR")
    });
    assert!(TorchFile::new(file(&plain, &floats(12))).unwrap().losses().is_empty());
    let dict = Pickler::new().hooks().text("a").tensor("FloatStorage", 12, 0, &[12], &[1]);
    let dict = dict.op(b"s}").text("x").op(b"Nsb").end();
    let found = TorchFile::new(file(&dict, &floats(12))).unwrap();
    assert_eq!(found.losses().listed()[0].to_string(), "attributes of a dict");
}

/// `torch.nn.Buffer` gives its tensor two flags, which say how a module saves it.
#[test]
fn flags_of_buffers_are_left_out_with_a_note() {
    let buffer = |flags: &[(&str, &[u8])]| {
        let pickle = under_a(|pickle| {
            let pickle = pickle.global("torch._tensor", "_rebuild_from_type_v2").op(b"(");
            let pickle = pickle.global("torch._utils", "_rebuild_tensor_v2");
            let pickle = pickle.global("torch", "Tensor").op(b"(");
            let pickle = pickle.storage("FloatStorage", "0", 12).int(0).ints(&[12]).ints(&[1]);
            let pickle = pickle.op(b"\x89").hooks().op(b"t}(");
            let set = |pickle: Pickler, (name, value): &(&str, &[u8])| pickle.text(name).op(value);
            flags.iter().fold(pickle, set).op(b"utR")
        });
        TorchFile::new(file(&pickle, &floats(12))).unwrap()
    };
    let (yes, no) = (&b"\x88"[..], &b"\x89"[..]);
    let found = buffer(&[("persistent", yes), ("_is_buffer", yes)]);
    assert!(found.losses().is_empty(), "{}", found.losses());
    assert!(found.losses().notes()[0].contains("flags of buffers"), "{:?}", found.losses());
    assert_eq!(found.tensors().len(), 1);
    for flags in [&[("persistent", no), ("tag", yes)][..], &[("persistent", b"K\x01")]] {
        let lost = buffer(flags);
        assert_eq!(lost.losses().listed()[0].to_string(), "`a`: attributes of a tensor");
    }
}

#[test]
fn operations_need_what_they_work_on() {
    let cases: [(&[u8], &str); 25] = [
        (b"0.", "expected a value"),
        (b"2.", "expected a value"),
        (b"t.", "expected a mark"),
        (b"(0.", "expected a value"),
        (b"a.", "expected a value"),
        (b"NNa.", "expected a list"),
        (b"NNNs.", "expected a dict"),
        (b"}(Nu.", "a key without a value"),
        (b"h\x00.", "the memo has no value"),
        (b"NN.", "more than one value"),
        (b"(N.", "more than one value"),
        (b"N.N", "bytes follow"),
        (b"N)R.", "expected a function"),
        (b"ccollections\nOrderedDict\nNR.", "expected a tuple"),
        (b"N)\x81.", "expected a class"),
        (b"NNb.", "expected an object that can have attributes"),
        (b"cm\nC\n)\x81NbNb.", "expected an object that can have attributes"),
        (b"NN\x93.", "expected a module"),
        (b"X\xff\xff\xff\xffx.", "found 2"),
        (b"\x8d\xff\xff\xff\xff\xff\xff\xff\xffx.", "found 2"),
        (b"X\x01\0\0\0\xff.", "not UTF-8"),
        (b"\x82\x01.", "extension registry"),
        (b"\x97.", "out-of-band buffers"),
        (b"I1\n.", "protocol 0 or 1"),
        (b"\xff.", "expected a pickle opcode, found byte 0xff"),
    ];
    for (bytes, text) in cases {
        refused(&Pickler::new().op(bytes).0, text);
    }
    refused(b"\x80\x06N.", "pickle protocol 2 to 5, found 6");
    refused(b"", "input ended");
    refused(&Pickler::new().op(b"c").op([b'x'; 2000]).end(), "a name has more than");
}
