//! Code that is generic over the archives, over their streams, and over the direction.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use ndarray::{Array2, arr1};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tenarc::tensor::Element;
use tenarc::{IArchive, OArchive, Result, Tensor};

use super::{quick, round_trip};

fn save_pair<W: Write, A: Serialize, B: Serialize>(
    out: &mut OArchive<W>,
    pair: (&A, &B),
) -> Result<()> {
    out.save(pair.0)?.save(pair.1)?;
    Ok(())
}

fn load_pair<R: Read, A: DeserializeOwned, B: DeserializeOwned>(
    input: &mut IArchive<R>,
) -> Result<(A, B)> {
    Ok((input.load()?, input.load()?))
}

#[test]
fn functions_over_archives_of_any_stream() {
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    save_pair(&mut out, (&1u8, &"one")).unwrap();
    save_pair(&mut out, (&Tensor(arr1(&[0.5f32])), &[Some(2)])).unwrap();
    let bytes = out.finish().unwrap();
    let reader: Box<dyn Read> = Box::new(std::io::Cursor::new(bytes));
    let mut boxed = IArchive::new(reader).unwrap();
    assert_eq!(load_pair::<_, u8, String>(&mut boxed).unwrap(), (1, "one".into()));
    let (tensor, list): (Tensor<Vec<f32>>, Vec<Option<u8>>) = load_pair(&mut boxed).unwrap();
    assert_eq!((tensor.0, list), (vec![0.5], vec![Some(2)]));

    // A writer known at run time only.
    let mut file = Vec::new();
    let mut out: OArchive<&mut dyn Write> =
        OArchive::with_options(&mut file as _, quick()).unwrap();
    save_pair(&mut out, (&1, &2)).unwrap();
    out.finish().unwrap();
    assert_eq!(load_pair::<_, u8, u8>(&mut IArchive::new(&file[..]).unwrap()).unwrap(), (1, 2));
}

/// Either archive.
trait Exchange {
    fn with<T: Serialize + DeserializeOwned>(&mut self, value: &mut T) -> Result<&mut Self>;
}

impl<W: Write> Exchange for OArchive<W> {
    fn with<T: Serialize + DeserializeOwned>(&mut self, value: &mut T) -> Result<&mut Self> {
        self.save(value)
    }
}

impl<R: Read> Exchange for IArchive<R> {
    fn with<T: Serialize + DeserializeOwned>(&mut self, value: &mut T) -> Result<&mut Self> {
        *value = self.load()?;
        Ok(self)
    }
}

/// Fields named once, for both ways.
#[derive(Default, PartialEq, Debug, Clone)]
struct State {
    step: u64,
    names: Vec<String>,
    weight: Tensor<Array2<f32>>,
    best: Option<f64>,
}

impl State {
    fn exchange<A: Exchange>(&mut self, archive: &mut A) -> Result<()> {
        archive.with(&mut self.step)?.with(&mut self.names)?;
        archive.with(&mut self.weight)?.with(&mut self.best)?;
        Ok(())
    }
}

#[test]
fn one_function_for_both_directions() {
    let names = vec!["a".into(), "b".into()];
    let mut state = State { step: 7, names, weight: Array2::eye(40).into(), best: Some(0.25) };
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    state.exchange(&mut out).unwrap();
    State::default().exchange(&mut out).unwrap();
    let bytes = out.finish().unwrap();
    let mut input = IArchive::new(&bytes[..]).unwrap();
    let mut back = State::default();
    back.exchange(&mut input).unwrap();
    assert_eq!(back, state);
    back.exchange(&mut input).unwrap();
    assert_eq!(back, State::default());
    assert!(back.exchange(&mut input).is_err());
    assert_eq!(back, State::default(), "what fails changes nothing");
}

/// Layers of any element type, in containers of any layer.
#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Layer<A: Element> {
    #[serde(bound = "")]
    weight: Tensor<Array2<A>>,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Stack<L, M = ()> {
    layers: Vec<L>,
    by_name: BTreeMap<String, L>,
    meta: M,
}

fn stack<L: Clone, M>(layer: &L, meta: M) -> Stack<L, M> {
    let by_name = BTreeMap::from([("x".to_owned(), layer.clone())]);
    Stack { layers: vec![layer.clone(); 2], by_name, meta }
}

#[test]
fn nested_generics() {
    fn check<A: Element + Clone + PartialEq + std::fmt::Debug>(value: A) {
        let layer = Layer { weight: Array2::from_elem((20, 30), value).into() };
        let nested = stack(&stack(&layer, 1u8), ("meta".to_owned(), Some(layer.clone())));
        round_trip(&layer);
        round_trip(&nested);
        round_trip(&stack(&nested, ()));
    }
    check(0.5f32);
    check(-3i64);
    check(true);
    check(half::f16::ONE);
    check(num_complex::Complex::new(1.0f64, 2.0));
}
