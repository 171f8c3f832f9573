//! Reading in another way than writing: as another type, in another order, by name.

use std::collections::{BTreeMap, HashMap};

use ndarray::{Array1, Array2};
use serde::Deserialize;
use tenarc::error::Category;
use tenarc::{Archive, DynTensor, IArchive, OArchive, Tensor, Value};

use super::quick;
use tenarc_test_support::Ragged;

/// One value of each sort, large and small.
fn archive() -> Vec<u8> {
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    out.save_as("number", &300u16).unwrap();
    out.save_as("text", "text").unwrap();
    out.save_as("list", &vec![0.5f32; 3000]).unwrap();
    out.save_as("pair", &(1, "one")).unwrap();
    out.save_as("matrix", &Tensor(Array2::<f64>::eye(40))).unwrap();
    out.save_as("map", &BTreeMap::from([("key", Tensor(vec![1u8; 4000]))])).unwrap();
    out.save_as("none", &None::<u8>).unwrap();
    out.finish().unwrap()
}

/// Each value is asked for as something else; the one behind it is none the worse.
#[test]
fn a_value_read_as_another_type_is_an_error_and_the_next_one_loads() {
    type Attempt<'a> = fn(&mut IArchive<Ragged<'a>>) -> tenarc::Result<()>;
    let bytes = archive();
    let wrong: [(&str, &[Attempt<'_>]); 7] = [
        (
            "number",
            &[|input| input.load::<String>().map(drop), |input| input.load::<u8>().map(drop)],
        ),
        (
            "text",
            &[|input| input.load::<u8>().map(drop), |input| input.load::<Vec<u8>>().map(drop)],
        ),
        (
            "list",
            &[
                |input| input.load::<Vec<String>>().map(drop),
                |input| input.load::<Tensor<Vec<u8>>>().map(drop),
                |input| input.load::<(f32, f32)>().map(drop),
            ],
        ),
        (
            "pair",
            &[
                |input| input.load::<(u8, u8)>().map(drop),
                |input| input.load::<[u8; 3]>().map(drop),
            ],
        ),
        (
            "matrix",
            &[
                |input| input.load::<Tensor<Array2<f32>>>().map(drop),
                |input| input.load::<Tensor<Array1<f64>>>().map(drop),
                |input| input.load::<f64>().map(drop),
            ],
        ),
        (
            "map",
            &[
                |input| input.load::<BTreeMap<String, Tensor<Vec<i8>>>>().map(drop),
                |input| input.load::<BTreeMap<u8, Value>>().map(drop),
            ],
        ),
        ("none", &[|input| input.load::<u8>().map(drop), |input| input.load::<String>().map(drop)]),
    ];
    for seed in 0..3 {
        for (at, (name, attempts)) in wrong.iter().enumerate() {
            for (number, attempt) in attempts.iter().enumerate() {
                let mut input = IArchive::new(Ragged::new(&bytes, seed)).unwrap();
                (0..at).for_each(|_| assert!(input.skip().unwrap()));
                let error = attempt(&mut input).expect_err(&format!("{name}, attempt {number}"));
                assert_eq!(
                    error.category(),
                    Category::Mismatch,
                    "{name}, attempt {number}: {error}"
                );
                match wrong.get(at + 1) {
                    Some((next, _)) => assert_eq!(input.next_name().unwrap(), Some(Some(*next))),
                    None => assert!(input.is_at_end().unwrap()),
                }
                if input.next_name().unwrap().is_some() {
                    input.load::<Value>().unwrap();
                }
            }
        }
    }
}

/// Numbers may be read wider than they were written, unlike in formats without types.
#[test]
fn integers_are_read_as_any_type_that_holds_them() {
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    out.save(&10i32).unwrap().save(&300u64).unwrap().save(&-1i8).unwrap().save(&1.5f32).unwrap();
    let bytes = out.finish().unwrap();
    let mut input = IArchive::new(&bytes[..]).unwrap();
    assert_eq!(input.load::<u64>().unwrap(), 10);
    assert_eq!(input.load::<i16>().unwrap(), 300);
    assert_eq!(input.load::<i128>().unwrap(), -1);
    assert_eq!(input.load::<f64>().unwrap(), 1.5);
}

#[test]
fn by_name_forwards_in_a_stream_and_in_any_order_in_a_file() {
    let bytes = archive();
    let mut input = IArchive::new(&bytes[..]).unwrap();
    assert_eq!(input.load_as::<String>("text").unwrap(), "text");
    assert_eq!(input.load_as::<Tensor<Array2<f64>>>("matrix").unwrap().0, Array2::<f64>::eye(40));
    // What lies behind is behind.
    assert_eq!(input.load_as::<u16>("number").unwrap_err().category(), Category::Eof);

    let archive = Archive::new(&bytes[..]).unwrap();
    let names: Vec<_> =
        archive.segments().map(|segment| segment.unwrap().name().unwrap().to_owned()).collect();
    assert_eq!(names, ["number", "text", "list", "pair", "matrix", "map", "none"]);
    assert_eq!(archive.named("none").unwrap().load::<Option<u8>>().unwrap(), None);
    assert_eq!(archive.named("pair").unwrap().load::<(u8, String)>().unwrap(), (1, "one".into()));
    let map: HashMap<String, Tensor<DynTensor>> = archive.named("map").unwrap().load().unwrap();
    assert_eq!(map["key"].shape(), [4000]);
    assert_eq!(archive.named("number").unwrap().load::<u16>().unwrap(), 300);
    assert!(archive.named("nothing").is_err());

    // By what comes next, as a program that knows the names but not their order.
    let mut input = IArchive::new(&bytes[..]).unwrap();
    let (mut number, mut pair) = (0u16, None);
    while let Some(name) = input.next_name().unwrap() {
        match name {
            Some("number") => number = input.load().unwrap(),
            Some("pair") => pair = Some(input.load::<(u8, String)>().unwrap()),
            _ => assert!(input.skip().unwrap()),
        }
    }
    assert_eq!((number, pair), (300, Some((1, "one".into()))));
}

#[test]
fn fields_of_a_struct_may_stand_in_another_order() {
    #[derive(serde::Serialize)]
    struct Written {
        first: Tensor<Vec<f32>>,
        second: Tensor<Vec<f64>>,
        third: Vec<u64>,
    }
    #[derive(Deserialize)]
    struct Read {
        third: Vec<u64>,
        first: Tensor<Vec<f32>>,
        #[serde(default)]
        new: Option<String>,
    }
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    let (first, second) = (Tensor(vec![1.0; 900]), Tensor(vec![2.0; 900]));
    out.save(&Written { first, second, third: vec![3; 900] }).unwrap();
    let bytes = out.finish().unwrap();
    let read: Read = IArchive::new(&bytes[..]).unwrap().load().unwrap();
    assert_eq!((read.third, read.first.0, read.new), (vec![3; 900], vec![1.0; 900], None));
}
