//! A map in which a key stands twice: `tensors` listed what `info` refused under the listed path.

use tenarc::parts::PartsInfo;
use tenarc::{Archive, OArchive, Tensor, Value};

fn tensor() -> Value {
    tenarc::to_value(&Tensor(vec![1u8, 2])).unwrap()
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn saved(value: &Value) -> Archive<Vec<u8>> {
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(value).unwrap();
    Archive::new(out.finish().unwrap()).unwrap()
}

#[test]
fn tensors_under_such_a_key_are_an_error_of_the_list_and_of_the_lookup() {
    let twice = [
        // Of one kind, and of two kinds with one component.
        vec![(text("a"), tensor()), (text("a"), tensor())],
        vec![(text("a"), tensor()), (text("a"), Value::Null)],
        vec![(text("1"), tensor()), (Value::Integer(1), tensor())],
        vec![(text("true"), tensor()), (Value::Bool(true), tensor())],
        vec![(text("h'00'"), tensor()), (Value::Bytes(vec![0]), tensor())],
        vec![(Value::F32(1.5), tensor()), (Value::F64(1.5), tensor())],
    ];
    for entries in twice {
        let component = entries[0].0.to_step();
        let component = component.trim_end_matches("_2").to_owned();
        let map = Value::Map(entries);
        let outer = Value::Map(vec![(text("x"), map.clone())]);
        for (value, path) in [(map, format!("/{component}")), (outer, format!("/x/{component}"))] {
            let archive = saved(&value);
            let listed = archive.tensors().unwrap_err();
            assert_eq!(listed.path(), path, "{listed}");
            assert!(listed.to_string().contains("occurs twice"), "{listed}");
            let error = archive.only().unwrap().info(&path).unwrap_err();
            assert!(error.to_string().contains("several values"), "{error}");
            // Such a value can still be read, sent and received.
            assert_eq!(archive.load::<Value>().unwrap(), value);
            let parts = archive.segment(0).unwrap().to_parts().unwrap();
            PartsInfo::new(parts.metadata()).unwrap();
        }
    }
}

#[test]
fn what_a_path_leads_to_is_listed_although_a_key_stands_twice_elsewhere() {
    let inside = Value::Map(vec![(text("w"), tensor())]);
    let value = Value::Map(vec![
        (text("a"), inside),
        (text("a"), Value::Integer(7)),
        (text("b"), tensor()),
        (text("c"), Value::Map(vec![(text("d"), Value::Null), (text("d"), Value::Null)])),
    ]);
    let archive = saved(&value);
    let tensors = archive.tensors().unwrap();
    let paths: Vec<_> = tensors.iter().map(tenarc::tensor::TensorInfo::path).collect();
    assert_eq!(paths, ["a.w", "b"]);
    for tensor in &tensors {
        assert_eq!(archive.only().unwrap().info(tensor.path()).unwrap(), *tensor);
    }
}
