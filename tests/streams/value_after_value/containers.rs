//! The containers of the standard library, empty and full, inside each other.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, LinkedList, VecDeque};
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

use ndarray::{Array1, Array2};
use tenarc::{IArchive, OArchive, Tensor};

use super::{quick, round_trip};

#[test]
fn plain_values() {
    round_trip(&'z');
    round_trip(&'\u{1f980}');
    round_trip(&(true, false));
    round_trip(&(i8::MIN, i16::MIN, i32::MIN, i64::MIN, i128::MIN));
    round_trip(&(u8::MAX, u16::MAX, u32::MAX, u64::MAX, u128::MAX));
    round_trip(&(f32::MIN_POSITIVE, f64::MAX, f32::NEG_INFINITY, -0.0f64));
    round_trip(&());
    round_trip(&NonZeroU16::MIN);
    round_trip(&Duration::from_nanos(1_234_567_890_123));
    round_trip(&PathBuf::from("a/b"));
    round_trip(&std::net::Ipv6Addr::LOCALHOST);
    round_trip(&(3..7, 3..=7));
    round_trip(&Cow::Borrowed("borrowed"));
    round_trip(&Box::<str>::from("boxed"));
}

#[test]
fn containers_empty_and_full() {
    fn both<T>(full: T)
    where
        T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug + Default,
    {
        round_trip(&full);
        round_trip(&T::default());
        round_trip(&(T::default(), full, T::default()));
    }
    let text = |number: u32| format!("text {number}");
    both(String::from("Hello world"));
    both((0..10).collect::<Vec<i32>>());
    both((0..5000).collect::<Vec<i32>>());
    both((0..5000u16).map(f32::from).collect::<VecDeque<f32>>());
    both((0..1000).collect::<LinkedList<u64>>());
    both((0..100).map(text).collect::<LinkedList<String>>());
    both((0..100).map(text).collect::<BTreeSet<String>>());
    both((0..1000).collect::<BTreeSet<i64>>());
    both((0..100).map(text).collect::<HashSet<String>>());
    both((0..1000).collect::<HashSet<u16>>());
    both((0..100).map(|number| (number, text(number))).collect::<BTreeMap<u32, String>>());
    both((0..100).map(|number| (text(number), number)).collect::<HashMap<String, u32>>());
    both(
        (0..9).map(|n| ((n, text(n)), vec![n; 700])).collect::<HashMap<(u32, String), Vec<u32>>>(),
    );
    both((0..9).map(|n| (n, Tensor(vec![0.5f64; 300]))).collect::<HashMap<u8, Tensor<Vec<f64>>>>());
    both(Some(Some(vec![1u8; 3000])));
    both((vec![LinkedList::from([BTreeMap::from([(1, HashSet::from([2]))])])], [[1u8; 3]; 4]));
    both(Box::<[i16]>::from([7i16; 2000]));
}

#[test]
fn pairs_tuples_and_options() {
    round_trip(&("first", 2.5f32).0.to_owned());
    round_trip(&(1u8, (2u16, (3u32, (4u64, (5i8, "six".to_owned()))))));
    round_trip(&(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12u8));
    round_trip(&Some(5));
    round_trip(&None::<String>);
    round_trip(&vec![None, Some(None), Some(Some(())), Some(Some(()))]);
    round_trip(&[Some(Tensor(vec![0.5f32; 900])), None]);
    round_trip(&(Ok::<u8, String>(1), Err::<u8, _>("no".to_owned())));
}

/// Of many lengths, 200,000 in all.
#[test]
fn a_large_vector_of_strings() {
    let texts: Vec<String> =
        (0..200_000usize).map(|at| "x".repeat(at % 37) + &at.to_string()).collect();
    let long = "\u{e9}".repeat(1 << 20);
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    out.save(&texts).unwrap().save(&long).unwrap().save(&texts[..10]).unwrap();
    let bytes = out.finish().unwrap();
    let mut input = IArchive::new(&bytes[..]).unwrap();
    assert!(input.load::<Vec<String>>().unwrap() == texts);
    assert!(input.load::<String>().unwrap() == long);
    assert_eq!(input.load::<BTreeSet<String>>().unwrap(), texts[..10].iter().cloned().collect());
}

/// As deep as nesting goes, and one level deeper, which disturbs nothing.
#[test]
fn deep_nesting() {
    #[derive(serde::Serialize, serde::Deserialize, PartialEq, Debug)]
    struct Chain {
        weight: Tensor<Array1<f32>>,
        next: Option<Box<Self>>,
    }
    let chain = |links: usize| {
        let link = |next| Chain { weight: Array1::from_elem(600, 0.5).into(), next };
        (1..links).fold(link(None), |chain, _| link(Some(Box::new(chain))))
    };
    // One level for each link, and three for the innermost tensor, of 128.
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    out.save(&chain(125)).unwrap();
    let error = out.save(&chain(126)).unwrap_err();
    assert!(error.to_string().contains("nest"), "{error}");
    out.save(&chain(2)).unwrap();
    let bytes = out.finish().unwrap();
    let mut input = IArchive::new(&bytes[..]).unwrap();
    assert!(input.load::<Chain>().unwrap() == chain(125));
    assert_eq!(input.load::<Chain>().unwrap(), chain(2));
    round_trip(&chain(60));
}

/// A hundred values of seven types in one archive, chained, and read in the same order.
#[test]
fn many_types_in_one_archive() {
    type Model = BTreeMap<String, Tensor<Array2<f32>>>;
    let model: Model = [("w".to_owned(), Array2::eye(30).into())].into();
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    let mut save = |n: u32| {
        out.save(&n)?.save(&n.to_string())?.save(&vec![n; 3])?.save(&(n, Some(n)))?;
        out.save(&model)?.save(&[n.is_multiple_of(2)])?.save(&()).map(drop)
    };
    (0..100).try_for_each(&mut save).unwrap();
    assert_eq!(out.segments(), 700);
    let bytes = out.finish().unwrap();
    let mut input = IArchive::new(&bytes[..]).unwrap();
    for n in 0..100u32 {
        assert_eq!(input.load::<u32>().unwrap(), n);
        assert_eq!(input.load::<String>().unwrap(), n.to_string());
        assert_eq!(input.load::<Vec<u32>>().unwrap(), vec![n; 3]);
        assert_eq!(input.load::<(u32, Option<u32>)>().unwrap(), (n, Some(n)));
        assert_eq!(input.load::<Model>().unwrap(), model);
        assert_eq!(input.load::<[bool; 1]>().unwrap(), [n % 2 == 0]);
        input.load::<()>().unwrap();
    }
    assert!(input.is_at_end().unwrap());
}
