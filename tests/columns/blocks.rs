//! Rows of numbers, which take the shortest ways through columns. All types must be read as from rows that are not
//! columns.

use std::fmt::{self, Debug};
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, Deserializer, Error, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use tenarc::ser::EncodeOptions;

const ROWS: u16 = 300;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Point<T> {
    x: T,
    y: T,
    pair: (T, [T; 2]),
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Line<T> {
    from: Point<T>,
    length: T,
    to: Point<T>,
}

fn line(row: u16) -> Line<f32> {
    let at = |number: u16| f32::from(row) - 100.0 + f32::from(number) / 16.0;
    let point = |n| Point { x: at(n), y: at(n + 1), pair: (at(n + 2), [at(n + 3), at(n + 4)]) };
    Line { from: point(0), length: at(5), to: point(6) }
}

/// Reads rows of lines as rows of `T`, from columns and from an array. Returns the rows, or the error without the
/// offset.
#[track_caller]
fn read<T: DeserializeOwned + PartialEq + Debug>() -> Result<Vec<T>, String> {
    let lines: Vec<Line<f32>> = (0..ROWS).map(line).collect();
    let options = EncodeOptions::default().with_columns(true);
    let columns = tenarc::ser::to_vec_with(&lines, options).unwrap();
    let read = |bytes: &[u8]| {
        tenarc::from_slice::<Vec<T>>(bytes).map_err(|error| {
            let error = error.to_string();
            error.split(" (byte").next().unwrap_or_default().to_owned()
        })
    };
    let found = read(&columns);
    assert_eq!(found, read(&tenarc::to_vec(&lines).unwrap()));
    let nested = tenarc::ser::to_vec_with(&(1, &lines), options).unwrap();
    let nested = tenarc::from_slice::<(u8, Vec<T>)>(&nested).map(|(_, rows)| rows);
    assert_eq!(nested.is_ok(), found.is_ok());
    found
}

#[test]
fn the_same_type() {
    let lines = read::<Line<f32>>().unwrap();
    assert!(lines.into_iter().eq((0..ROWS).map(line)));
}

#[test]
fn another_order_of_fields_and_fewer_fields() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Turned {
        to: Point<f32>,
        length: f32,
        from: Point<f32>,
    }
    #[derive(Debug, PartialEq, Deserialize)]
    struct Short {
        from: Point<f32>,
        to: Point<f32>,
    }
    let turned = read::<Turned>().unwrap();
    assert_eq!(turned[7].from, line(7).from);
    assert_eq!(turned[299].to, line(299).to);
    assert_eq!(read::<Short>().unwrap()[200].to, line(200).to);
}

#[test]
fn another_type_of_number() {
    let wide = read::<Line<f64>>().unwrap();
    assert_eq!(wide[299].to.pair.1[1], f64::from(line(299).to.pair.1[1]));
    assert!(read::<Line<u32>>().is_err());
}

#[test]
fn a_value_that_is_refused() {
    #[derive(Debug, PartialEq)]
    struct NotFifty(f32);

    impl<'de> Deserialize<'de> for NotFifty {
        fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
            let value = f32::deserialize(de)?;
            if value == 50.0 { Err(D::Error::custom("fifty")) } else { Ok(Self(value)) }
        }
    }
    let error = read::<Line<NotFifty>>().unwrap_err();
    assert_eq!(error, "fifty at `150.from.x`");
}

/// Reads a tuple of two numbers, the second with a type that depends on the first.
#[derive(Debug, PartialEq)]
struct Depends(f32, f64);

impl<'de> Deserialize<'de> for Depends {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        struct Two;
        impl<'de> Visitor<'de> for Two {
            type Value = Depends;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("two numbers")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Depends, A::Error> {
                let none = || A::Error::custom("too short");
                let first = seq.next_element()?.ok_or_else(none)?;
                let second = if first < 120.0 {
                    seq.next_element::<f32>()?.map(f64::from)
                } else {
                    seq.next_element::<f64>()?
                };
                Ok(Depends(first, second.ok_or_else(none)?))
            }
        }
        de.deserialize_tuple(2, Two)
    }
}

#[derive(Debug, PartialEq, Deserialize)]
struct Other<P, N> {
    from: P,
    length: N,
    to: P,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Parts<P> {
    x: f32,
    y: f32,
    pair: P,
}

#[test]
fn a_type_that_asks_for_something_else_in_some_rows() {
    type Row = Other<Parts<(f32, Depends)>, f32>;
    let rows = read::<Row>().unwrap();
    for (row, number) in rows.iter().zip(0..) {
        let [first, second] = line(number).to.pair.1;
        assert_eq!(row.to.pair.1, Depends(first, second.into()));
    }
}

#[test]
fn a_number_in_place_of_a_tuple_and_the_reverse() {
    assert!(read::<Other<Parts<f32>, f32>>().is_err());
    assert!(read::<Other<Parts<(f32, f32)>, f32>>().is_err());
    assert!(read::<Other<Point<f32>, (f32,)>>().is_err());
    assert!(read::<Other<Parts<(f32, [f32; 3])>, f32>>().is_err());
    assert!(read::<Other<Parts<(f32, [f32; 1])>, f32>>().is_err());
    // As many numbers in another nesting.
    assert!(read::<Other<Parts<([f32; 2], f32)>, f32>>().is_err());
    assert!(read::<Other<(f32, f32, (f32, [f32; 2])), f32>>().is_err());
}

/// Fails to read an integer, and goes on.
#[derive(Debug, PartialEq)]
struct Ignores(bool);

impl<'de> Deserialize<'de> for Ignores {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        Ok(Self(u32::deserialize(de).is_ok()))
    }
}

#[test]
fn a_type_that_ignores_errors() {
    let lines: Vec<Line<f32>> = (0..ROWS).map(|row| Line { length: 0.5, ..line(row) }).collect();
    let options = EncodeOptions::default().with_columns(true);
    let columns = tenarc::ser::to_vec_with(&lines, options).unwrap();
    let rows: Vec<Other<Point<f32>, Ignores>> = tenarc::from_slice(&columns).unwrap();
    for (row, line) in rows.iter().zip(&lines) {
        assert_eq!((row.from, &row.length, row.to), (line.from, &Ignores(false), line.to));
    }
}

/// Asks for a tuple in a tuple without an end.
#[derive(Debug, PartialEq)]
struct Endless;

impl<'de> Deserialize<'de> for Endless {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        struct One<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for One<T> {
            type Value = Endless;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a tuple")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Endless, A::Error> {
                // Any number but those of the first rows goes deeper.
                let length = seq.next_element::<f32>()?;
                if length.is_some_and(|length| length < 0.0) {
                    seq.next_element::<[f32; 2]>()?;
                } else {
                    seq.next_element::<Endless>()?;
                }
                Ok(Endless)
            }
        }
        de.deserialize_tuple(2, One::<f32>(PhantomData))
    }
}

#[test]
fn a_type_without_an_end() {
    assert!(read::<Other<Parts<Endless>, f32>>().is_err());
}
