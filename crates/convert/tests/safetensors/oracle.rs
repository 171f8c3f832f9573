//! Comparison with the reference implementation: each reads what the other writes, and they accept the
//! same files.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use safetensors::tensor::{Dtype, View};
use tenarc::DynTensor;
use tenarc::tensor::{Order, TensorInfo};
use tenarc_convert::safetensors::SafeTensors;

use crate::support::{DTYPES, code, quick, raw, rewritten, written};

fn quickly(cases: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) }
}

struct Held<'a>(&'a DynTensor);

fn reference_dtype(code: &str) -> Dtype {
    serde_json::from_str(&format!("\"{code}\"")).unwrap()
}

impl View for Held<'_> {
    fn dtype(&self) -> Dtype {
        reference_dtype(code(self.0.dtype()))
    }

    fn shape(&self) -> &[usize] {
        self.0.shape()
    }

    fn data(&self) -> Cow<'_, [u8]> {
        self.0.le_bytes()
    }

    fn data_len(&self) -> usize {
        self.0.le_bytes().len()
    }
}

fn tensors() -> impl Strategy<Value = BTreeMap<String, DynTensor>> {
    let tensor = (0..DTYPES.len(), vec(0usize..5, 0..4), any::<u8>()).prop_map(
        |(dtype, mut shape, seed)| {
            let dtype = &DTYPES[dtype].0;
            if !dtype.bits().unwrap().is_multiple_of(8) {
                // Whole bytes.
                shape.push(4);
            }
            crate::support::tensor(dtype, &shape, seed)
        },
    );
    btree_map("\\PC{0,6}|[a-c.\"\\\\\n\u{1}]{0,5}", tensor, 0..8)
}

fn metadata() -> impl Strategy<Value = Option<(String, String)>> {
    // The reference implementation writes several in an order that differs from run to run.
    prop::option::of(("\\PC{0,5}", "[\\PC\n\"\\\\]{0,9}"))
}

proptest! {
    #![proptest_config(quickly(128))]

    #[test]
    fn both_write_the_same_bytes(tensors in tensors(), metadata in metadata()) {
        let given = metadata.clone().map(|(key, text)| HashMap::from([(key, text)]));
        let views = tensors.iter().map(|(name, tensor)| (name, Held(tensor)));
        let theirs = safetensors::serialize(views, given).unwrap();

        let mut options = quick();
        if let Some(metadata) = metadata {
            options = options.with_metadata([metadata]);
        }
        let list: Vec<_> = tensors.iter().map(|(name, t)| (name.as_str(), t.clone())).collect();
        let ours = written(&list, &options);
        prop_assert_eq!(&ours, &theirs);

        let file = SafeTensors::new(&theirs[..]).unwrap();
        prop_assert_eq!(file.tensors().len(), tensors.len());
        for (name, tensor) in &tensors {
            let found = file.dyn_tensor(name).unwrap();
            // Some of the bytes are NaN, which is not equal to itself.
            prop_assert_eq!(found.le_bytes(), tensor.le_bytes());
            prop_assert_eq!((found.dtype(), found.shape()), (tensor.dtype(), tensor.shape()));
        }
        prop_assert_eq!(rewritten(&file), theirs);
    }

    #[test]
    fn the_reference_reads_what_is_written(tensors in tensors()) {
        let list: Vec<_> = tensors.iter().map(|(name, t)| (name.as_str(), t.clone())).collect();
        let bytes = written(&list, &quick());
        let read = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        prop_assert_eq!(read.len(), tensors.len());
        for (name, tensor) in &tensors {
            let view = read.tensor(name).unwrap();
            prop_assert_eq!(view.dtype(), reference_dtype(code(tensor.dtype())));
            prop_assert_eq!(view.shape(), tensor.shape());
            prop_assert_eq!(view.data(), &*tensor.le_bytes());
        }
    }
}

#[test]
fn every_dtype_goes_both_ways() {
    for (dtype, code) in DTYPES {
        let tensor = crate::support::tensor(&dtype, &[2, 4], 3);
        let theirs = safetensors::serialize([("a", Held(&tensor))], None).unwrap();
        let file = SafeTensors::new(&theirs[..]).unwrap();
        assert_eq!(file.dyn_tensor("a").unwrap(), tensor);
        let ours = written(&[("a", tensor.clone())], &quick());
        assert_eq!(ours, theirs);
        let read = safetensors::SafeTensors::deserialize(&ours).unwrap();
        let view = read.tensor("a").unwrap();
        assert_eq!((view.dtype().to_string(), view.data()), (code.to_owned(), &*tensor.le_bytes()));
        assert_eq!(tensor.order(), Order::C);
    }
}

/// Pieces of headers, most of which make one that is sound or nearly so.
fn header() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        8 => (0u64..9).prop_map(|n| n.to_string()),
        1 => prop::sample::select(vec![
            "-1", "1.0", "1e0", "-0", "00", "18446744073709551615", "18446744073709551616",
            "4294967296", "null", "\"1\"", "[]",
        ]).prop_map(str::to_owned),
    ];
    let numbers = |len| vec(number.clone(), len).prop_map(|numbers| numbers.join(","));
    let dtype = prop_oneof![
        8 => prop::sample::select(vec!["\"U8\"", "\"U8\"", "\"F16\"", "\"F4\"", "\"BOOL\""]),
        1 => prop::sample::select(vec!["\"u8\"", "\"\"", "8", "null", "{\"U8\":null}"]),
    ];
    let entry = (dtype, numbers(0..3), numbers(2..3), 0..40).prop_map(
        |(dtype, shape, range, odd)| match odd {
            0 => format!(r#"{{"dtype":{dtype},"shape":[{shape}]}}"#),
            1 => format!(r#"{{"dtype":{dtype},"shape":[{shape}],"data_offsets":[{range}],"x":1}}"#),
            2 => format!("[{dtype},[{shape}],[{range}]]"),
            3 => format!(
                r#"{{"dtype":{dtype},"dtype":{dtype},"shape":[{shape}],"data_offsets":[{range}]}}"#
            ),
            _ => format!(r#"{{"data_offsets":[{range}],"shape":[{shape}],"dtype":{dtype}}}"#),
        },
    );
    let sized = (0usize..9, 0usize..9).prop_map(|(start, count)| {
        let end = start + count;
        format!(r#"{{"dtype":"U8","shape":[{count}],"data_offsets":[{start},{end}]}}"#)
    });
    let name = prop::sample::select(vec!["a", "b", "c", "__metadata__", "\\u0061", ""]);
    let meta =
        prop::sample::select(vec![r#"{"k":"v"}"#, r#"{"k":1}"#, "null", r#"{"k":"a","k":"b"}"#]);
    let value = prop_oneof![4 => entry, 12 => sized, 1 => meta.prop_map(str::to_owned)];
    let entries = vec((name, value), 0..3).prop_map(|entries| {
        entries.iter().map(|(n, v)| format!("\"{n}\":{v}")).collect::<Vec<_>>()
    });
    let ends = prop::sample::select(vec!["}", "}", "}", "}  ", "}\n", "", "}x", ",}"]);
    let starts = prop::sample::select(vec!["{", "{", "{", "{", "{", " {", "["]);
    (starts, entries, ends)
        .prop_map(|(start, entries, end)| format!("{start}{}{end}", entries.join(",")))
}

/// What only the text of the format rules out, or says nothing of.
fn is_stricter(error: &str) -> bool {
    let reasons = [
        "begins with `{`",
        "two tensors of this name",
        "unknown field",
        "one twice",
        "invalid type: sequence",
        "invalid type: map",
        "found an array",
        "found an object",
    ];
    reasons.iter().any(|reason| error.contains(reason))
}

proptest! {
    #![proptest_config(quickly(4000))]

    #[test]
    fn both_agree_about_what_is_a_file(header in header(), len in 0usize..9) {
        let bytes = raw(&header, &vec![0; len]);
        let ours = SafeTensors::new(&bytes[..]);
        let theirs = safetensors::SafeTensors::deserialize(&bytes);
        match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => {
                let names: Vec<_> = ours.tensors().iter().map(TensorInfo::path).collect();
                prop_assert_eq!(names.len(), theirs.len());
                for name in names {
                    let (tensor, view) = (ours.dyn_tensor(name).unwrap(), theirs.tensor(name).unwrap());
                    prop_assert_eq!(tensor.shape(), view.shape());
                    prop_assert_eq!(&*tensor.le_bytes(), view.data());
                }
            }
            (Err(_), Err(_)) => {}
            (Ok(_), Err(error)) => prop_assert!(false, "only the reference refuses {header}: {error}"),
            (Err(error), Ok(_)) => {
                prop_assert!(is_stricter(&error.to_string()), "{header}: {error}");
            }
        }
    }
}
