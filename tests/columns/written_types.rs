//! Values that are written with the name of their type: `SPEC.md`, section 7.2.

use proptest::prelude::*;
use serde::{Deserialize, Serialize, Serializer};
use tenarc::ser::EncodeOptions;
use tenarc::types::{Parameter, TimeUnit, TypeName, Typed};
use tenarc::value::WithTypes;
use tenarc::{Archive, OArchive, Value, diag, inspect};

#[allow(clippy::trivially_copy_pass_by_ref)]
fn day<S: Serializer>(days: &i32, serializer: S) -> Result<S::Ok, S::Error> {
    Typed::new(&TypeName::date(), days).serialize(serializer)
}

#[allow(clippy::ref_option)]
fn time<S: Serializer>(time: &Option<i64>, serializer: S) -> Result<S::Ok, S::Error> {
    let of = TypeName::timestamp(TimeUnit::Microsecond, "Europe/Berlin").unwrap();
    time.as_ref().map(|time| Typed::new(&of, time)).serialize(serializer)
}

fn id<S: Serializer>(id: &[u8; 16], serializer: S) -> Result<S::Ok, S::Error> {
    Typed::new(&TypeName::uuid(), serde_bytes::Bytes::new(id)).serialize(serializer)
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Visit {
    #[serde(serialize_with = "day")]
    day: i32,
    #[serde(serialize_with = "time")]
    at: Option<i64>,
    #[serde(serialize_with = "id", deserialize_with = "serde_bytes::deserialize")]
    id: [u8; 16],
    pages: u32,
}

fn visits(n: i32) -> Vec<Visit> {
    let visit = |n: i32| Visit {
        day: 20_783 - n,
        at: (n % 3 != 0).then_some(i64::from(n) << 40),
        id: [n.to_le_bytes()[0]; 16],
        pages: n.unsigned_abs(),
    };
    (0..n).map(visit).collect()
}

fn archive<T: Serialize>(value: &T) -> Archive<Vec<u8>> {
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save_as("t", value).unwrap();
    Archive::new(out.finish().unwrap()).unwrap()
}

/// The item of a value in its archive.
fn shown(archive: &Archive<Vec<u8>>) -> String {
    diag::to_string(archive.segments().next().unwrap().unwrap().metadata().unwrap()).unwrap()
}

#[test]
fn a_single_value_has_a_tag() {
    // The example of the specification.
    let of = TypeName::date();
    let bytes = tenarc::to_vec(&Typed::new(&of, &20_783)).unwrap();
    assert_eq!(bytes, *b"\xda\x54\x54\x59\x50\x83\x64date\x80\x19\x51\x2f");
    assert_eq!(tenarc::from_slice::<i32>(&bytes).unwrap(), 20_783);
    let value = tenarc::to_value(&Typed::new(&of, &20_783)).unwrap();
    assert_eq!(tenarc::from_slice::<Value>(&bytes).unwrap(), value);
    assert_eq!(tenarc::from_value::<i32>(value).unwrap(), 20_783);
    // Other formats see the value alone.
    assert_eq!(serde_json::to_string(&Typed::new(&of, &20_783)).unwrap(), "20783");
}

#[test]
fn a_column_has_its_type_once() {
    // The example of the specification.
    let bytes = tenarc::ser::to_vec_with(
        &vec![Typed::new(&TypeName::date(), &20_783); 1],
        tenarc::ser::EncodeOptions::default().with_columns(true),
    );
    assert!(tenarc::from_slice::<Vec<i32>>(&bytes.unwrap()).unwrap() == [20_783]);

    let rows = visits(300);
    let archive = archive(&rows);
    let text = shown(&archive);
    assert_eq!(text.matches("\"date\", []").count(), 1, "{text}");
    assert_eq!(text.matches("[\"us\", \"Europe/Berlin\"]").count(), 1, "{text}");
    assert!(text.contains("[\"option\","), "{text}");
    // No dict, although there are few ids: the table of types asks for plain bytes.
    assert!(text.contains("[\"type\", \"uuid\", [], [\"bytes\", 16,"), "{text}");
    let table = archive.table("t").unwrap();
    assert_eq!(table.rows::<Visit>(..).unwrap(), rows);
    let days: Vec<i32> = table.column("day").unwrap();
    assert_eq!(days[7], 20_776);
    assert_eq!(table.row::<Visit>(299).unwrap(), rows[299]);
    let values: Vec<Value> = table.rows(..).unwrap();
    assert_eq!(values.len(), 300);
}

#[test]
fn rows_of_several_types_are_items_with_their_types() {
    #[derive(Serialize)]
    struct Row<'a> {
        a: Typed<'a, i64>,
    }
    let units = [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Nanosecond];
    let of: Vec<_> = units.iter().map(|unit| TypeName::duration(*unit)).collect();
    let rows: Vec<_> = of.iter().map(|of| Row { a: Typed::new(of, &7) }).collect();
    let archive = archive(&rows);
    let text = shown(&archive);
    for unit in ["s", "ms", "ns"] {
        assert!(text.contains(&format!("\"duration\", [\"{unit}\"]")), "{text}");
    }
    assert_eq!(archive.table("t").unwrap().column::<Vec<i64>>("a").unwrap(), [7; 3]);
    // Values of one type that fit into no column: each item has the type.
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Any {
        Number(i64),
        Text(&'static str),
    }
    #[derive(Serialize)]
    struct AnyRow<'a> {
        a: Typed<'a, Any>,
    }
    let values = [Any::Number(7), Any::Text("x"), Any::Number(8)];
    let rows: Vec<_> = values.iter().map(|any| AnyRow { a: Typed::new(&of[0], any) }).collect();
    let archive = self::archive(&rows);
    // The first row is a group of its own.
    assert_eq!(shown(&archive).matches("\"duration\"").count(), 3, "{}", shown(&archive));
    let read: Vec<Value> = archive.table("t").unwrap().column("a").unwrap();
    assert_eq!(read, [Value::from(7), Value::from("x"), Value::from(8)]);
}

/// Rows of any form, messages, single rows and columns give the same values.
#[test]
fn values_can_keep_their_types() {
    fn typed(of: &TypeName, item: impl Into<Value>) -> Value {
        let parameter = |parameter: &Parameter| match parameter {
            Parameter::Text(text) => Value::from(text.as_str()),
            other => panic!("{other:?}"),
        };
        let parameters = of.parameters().iter().map(parameter).collect();
        let parts = vec![of.name().into(), Value::Array(parameters), item.into()];
        Value::Tag(inspect::TYPE, Box::new(Value::Array(parts)))
    }
    let visits = visits(40);
    let row = |visit: &Visit| {
        let of = TypeName::timestamp(TimeUnit::Microsecond, "Europe/Berlin").unwrap();
        Value::from_iter([
            ("day", typed(&TypeName::date(), visit.day)),
            ("at", visit.at.map_or(Value::Null, |at| typed(&of, at))),
            ("id", typed(&TypeName::uuid(), Value::Bytes(visit.id.to_vec()))),
            ("pages", visit.pages.into()),
        ])
    };
    let expected = Value::from_iter([("all", Value::Array(visits.iter().map(row).collect()))]);
    let all = std::collections::BTreeMap::from([("all", &visits)]);
    for rows in [EncodeOptions::default(), EncodeOptions::default().with_columns(true)] {
        let bytes = tenarc::ser::to_vec_with(&all, rows).unwrap();
        let WithTypes(found) = tenarc::from_slice(&bytes).unwrap();
        assert_eq!(found, expected);
        // A value that is read later does not keep them.
        let plain: Value = tenarc::from_slice(&bytes).unwrap();
        assert_eq!(plain["all"][1]["day"], Value::from(20_782));
        assert!(tenarc::from_slice::<WithTypes>(&bytes[..bytes.len() - 1]).is_err());
        assert_eq!(tenarc::from_slice::<Value>(&bytes).unwrap(), plain);
    }
    let archive = archive(&visits);
    let table = archive.table("t").unwrap();
    let rows: Vec<WithTypes> = table.rows(..).unwrap();
    assert!(rows.iter().map(|row| &row.0).eq(visits.iter().map(row).collect::<Vec<_>>().iter()));
    assert_eq!(table.row::<WithTypes>(7).unwrap().0, row(&visits[7]));
    assert_eq!(table.column::<Vec<WithTypes>>("at").unwrap()[7].0, row(&visits[7])["at"]);
    assert_eq!(archive.get::<WithTypes>("7.day").unwrap().0, row(&visits[7])["day"]);
}

#[test]
fn null_has_no_type() {
    let of = TypeName::date();
    let none = Typed::new(&of, &None::<i32>);
    for error in [
        tenarc::to_vec(&none).map(drop),
        tenarc::to_vec(&Typed::new(&of, &())).map(drop),
        OArchive::new(Vec::new()).unwrap().save(&none).map(drop),
        OArchive::new(Vec::new()).unwrap().save(&vec![(none, 1); 3]).map(drop),
        OArchive::new(Vec::new()).unwrap().save(&vec![(Typed::new(&of, &Some(1)), 1); 3]).map(drop),
    ] {
        let error = error.unwrap_err().to_string();
        assert!(error.contains("null"), "{error}");
    }
    // One byte that is not null.
    for byte in [0, 23, -1] {
        let bytes = tenarc::to_vec(&Typed::new(&of, &byte)).unwrap();
        assert_eq!(tenarc::from_slice::<i32>(&bytes).unwrap(), byte);
    }
    assert!(tenarc::to_vec(&Typed::new(&of, "")).is_ok());
}

#[test]
fn names_keep_the_rules() {
    let integers = |count| vec![Parameter::Integer(0); count];
    assert!(TypeName::new("example.com/money", integers(16)).is_ok());
    for most in [(1 << 64) - 1, -(1 << 64)] {
        assert!(TypeName::new("a.b", vec![Parameter::Integer(most)]).is_ok());
    }
    assert!(TypeName::new("date", Vec::new()).is_ok_and(|of| of == TypeName::date()));
    for (name, parameters, expected) in [
        ("", Vec::new(), "1 to 64"),
        (&*"a.".repeat(33), Vec::new(), "1 to 64"),
        ("money", Vec::new(), "dot or slash"),
        ("a.b", integers(17), "at most 16"),
        ("a.b", vec![Parameter::Text("x".repeat(65))], "64 bytes"),
        ("a.b", vec![Parameter::Integer(1 << 64)], "found 18446744073709551616"),
        ("a.b", vec![Parameter::Integer(-(1 << 64) - 1)], "found -18446744073709551617"),
    ] {
        let error = TypeName::new(name, parameters).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert!(TypeName::decimal(0, 0).is_err() && TypeName::decimal(77, 0).is_err());
    assert!(TypeName::timestamp(TimeUnit::Second, &"x".repeat(65)).is_err());
}

#[test]
fn types_take_levels_of_nesting() {
    let of = TypeName::decimal(5, -2).unwrap();
    let bytes = tenarc::to_vec(&Typed::new(&of, &1)).unwrap();
    let limits = |depth| tenarc::de::Limits::default().with_max_depth(depth);
    let read = |depth| {
        let options = tenarc::de::DecodeOptions::default().with_limits(limits(depth));
        tenarc::de::from_slice_with::<i32>(&bytes, options)
    };
    assert!(read(3).is_ok() && read(2).is_err());
    let write = |depth| {
        let options = tenarc::ser::EncodeOptions::default().with_max_depth(depth);
        tenarc::ser::to_vec_with(&Typed::new(&of, &1), options)
    };
    assert!(write(3).is_ok() && write(2).is_err());
}

proptest! {
    #[test]
    fn rows_come_back(n in 0..200, columns: bool) {
        let rows = visits(n);
        let options = tenarc::ser::EncodeOptions::default().with_columns(columns);
        let bytes = tenarc::ser::to_vec_with(&rows, options).unwrap();
        prop_assert_eq!(&tenarc::from_slice::<Vec<Visit>>(&bytes).unwrap(), &rows);
        let value: Value = tenarc::from_slice(&bytes).unwrap();
        prop_assert_eq!(&tenarc::from_value::<Vec<Visit>>(value).unwrap(), &rows);
        prop_assert_eq!(&archive(&rows).load::<Vec<Visit>>().unwrap(), &rows);
    }
}
