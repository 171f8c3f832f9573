//! Options of options, and of what is written as null.

use super::*;

type Nested = Option<Option<Option<()>>>;

#[test]
fn every_nesting_of_options_of_unit_comes_back_as_written() {
    let all: [Nested; 4] = [None, Some(None), Some(Some(None)), Some(Some(Some(())))];
    let encodings: Vec<String> = all.iter().map(|value| hex(&round_trip(value))).collect();
    assert_eq!(encodings[0], "f6");
    assert_eq!(encodings[1], "da54534f4df6");
    assert_eq!(encodings[3], "da54534f4d".repeat(3) + "f6");
    assert_eq!(encodings.iter().collect::<BTreeSet<_>>().len(), 4);
    round_trip(&all);
    round_trip(&all.map(|value| (value, value)));
    let map: BTreeMap<Nested, Nested> = all.into_iter().zip(all.into_iter().rev()).collect();
    round_trip(&map);
}

#[test]
fn options_of_other_values_carry_no_mark() {
    round_trip_as(&Some(5), "05");
    round_trip_as(&Some(Some(Some(5u8))), "05");
    round_trip_as(&Some("a".to_owned()), "6161");
    round_trip_as(&Some(Vec::<Option<u8>>::new()), "80");
    round_trip_as(&Some([None::<u8>]), "81 f6");
    round_trip_as(&None::<u8>, "f6");
    round_trip_as(&Some(false), "f4");
    round_trip_as(&Some(i128::MIN), "c3 50 7fffffffffffffffffffffffffffffff");
    round_trip(&Some(Some(u128::MAX)));
}

#[test]
fn options_of_what_is_written_as_null() {
    #[derive(Serialize, Deserialize, Debug, PartialEq, Clone, Copy)]
    struct Nothing;
    #[derive(Serialize, Deserialize, Debug, PartialEq, Clone, Copy)]
    struct Wrapped<T>(T);
    #[derive(Serialize, Deserialize, Debug, PartialEq, Clone, Copy)]
    enum Held {
        Unit,
        Newtype(Option<()>),
        Tuple(Option<Option<u8>>, Option<()>),
        Struct { a: Option<Option<()>> },
    }

    round_trip_as(&Some(()), "da54534f4d f6");
    round_trip_as(&Some(Nothing), "da54534f4d f6");
    round_trip_as(&Some(Wrapped(())), "da54534f4d f6");
    round_trip(&Some(PhantomData::<u8>));
    for inner in [None, Some(Wrapped(None)), Some(Wrapped(Some(())))] {
        round_trip(&inner);
        round_trip(&Wrapped(inner));
        round_trip(&Some(Wrapped(inner)));
    }
    for inner in [None, Some(None), Some(Some(()))] {
        round_trip(&Held::Struct { a: inner });
        round_trip(&Some(Held::Newtype(inner.flatten())));
    }
    for value in [Held::Unit, Held::Tuple(Some(None), Some(())), Held::Tuple(None, None)] {
        round_trip(&value);
        round_trip(&Some(value));
        round_trip(&Some(Some(value)));
    }
    round_trip(&vec![(Some(Some(())), 1), (Some(None), 2), (None, 3)]);
}

#[test]
fn deep_options_around_a_value_cost_nothing() {
    type Eight<T> = Option<Option<Option<Option<Option<Option<Option<Option<T>>>>>>>>;
    let deep: Eight<u8> = Some(Some(Some(Some(Some(Some(Some(Some(7))))))));
    round_trip_as(&deep, "07");
    let deep: Eight<u8> = Some(Some(Some(Some(None))));
    round_trip(&deep);
}

#[test]
fn undefined_and_the_empty_array_are_read_where_null_is() {
    assert_eq!(decode::<Option<u8>>(&unhex("f7")), None);
    decode::<()>(&unhex("f7"));
    decode::<()>(&unhex("80"));
    decode::<()>(&unhex("9fff"));
    refuse::<()>(&unhex("81 01"));
    refuse::<()>(&unhex("9f 01 ff"));
    refuse::<()>(&unhex("00"));
    assert_eq!(decode::<Option<()>>(&unhex("80")), Some(()));
    for bytes in ["f7", "80"] {
        let value: Value = tenarc::from_slice(&unhex(bytes)).unwrap();
        <()>::deserialize(&value).unwrap();
    }
}

#[test]
fn a_type_that_recurses_on_nothing_is_refused() {
    #[derive(Serialize, Deserialize, Debug)]
    struct Endless(Option<Box<Endless>>);

    let error = refuse::<Endless>(&unhex("00"));
    assert_eq!(error.category(), Category::Limit);
    let mut value = Endless(None);
    for _ in 0..10 {
        value = Endless(Some(Box::new(value)));
    }
    let bytes = encode(&value);
    assert_eq!(bytes.len(), 10 * 5 + 1);
    let mut depth = 0;
    let mut back = &tenarc::from_slice::<Endless>(&bytes).unwrap();
    while let Some(inner) = &back.0 {
        back = inner;
        depth += 1;
    }
    assert_eq!(depth, 10);
}

#[test]
fn options_of_values_keep_their_levels() {
    let some = |inner| Value::Tag(u64::from(u32::from_be_bytes(*b"TSOM")), Box::new(inner));
    let bytes = round_trip(&Some(Value::Null));
    assert_eq!(hex(&bytes), "da54534f4df6");
    assert_eq!(tenarc::to_value(&Some(Value::Null)).unwrap(), some(Value::Null));
    // A value that holds a `Some` of null already is another than null.
    let levels = [
        None,
        Some(Value::Null),
        Some(some(Value::Null)),
        Some(some(some(Value::Null))),
        Some(some(Value::Integer(1))),
        Some(Value::Simple(23)),
        Some(Value::Simple(99)),
        Some(Value::Tag(0, Box::new(Value::Null))),
    ];
    for value in &levels {
        round_trip(value);
        round_trip(&Some(value.clone()));
    }
    let encodings: BTreeSet<_> = levels.iter().map(encode).collect();
    assert_eq!(encodings.len(), levels.len());
}
