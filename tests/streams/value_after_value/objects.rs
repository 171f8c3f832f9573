//! Objects whose type is known at run time: an enum, and boxed trait objects by way of a registry.

use std::collections::BTreeMap;
use std::fmt::Debug;

use ndarray::{Array1, Array2};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tenarc::error::Category;
use tenarc::{Archive, IArchive, OArchive, Tensor, Value};

use super::{quick, round_trip};

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
enum Layer {
    Flatten,
    Dropout(f32),
    Dense { weight: Tensor<Array2<f32>>, bias: Tensor<Array1<f32>> },
    Pair(Box<Layer>, Box<Layer>),
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
#[serde(tag = "kind", content = "content")]
enum Tagged {
    Dropout(f32),
    Table(Tensor<Array2<f32>>),
}

#[test]
fn enums_of_layers() {
    let dense = Layer::Dense { weight: Array2::eye(30).into(), bias: Array1::ones(30).into() };
    let pair = Layer::Pair(Box::new(dense.clone()), Box::new(Layer::Flatten));
    for layer in [&Layer::Flatten, &Layer::Dropout(0.5), &dense, &pair] {
        round_trip(layer);
    }
    round_trip(&vec![dense, Layer::Flatten, pair.clone(), pair, Layer::Dropout(0.25)]);
    round_trip(&vec![Tagged::Dropout(0.5), Tagged::Table(Array2::eye(30).into())]);
}

/// What a program is extended by.
trait Operator: Debug {
    fn apply(&self, input: f32) -> f32;

    /// The name that it is registered under.
    fn name(&self) -> &'static str;

    fn content(&self) -> tenarc::Result<Value>;
}

#[derive(Serialize, Deserialize, Debug)]
struct Scale {
    by: Tensor<Vec<f32>>,
}

#[derive(Serialize, Deserialize, Debug)]
struct Shift(f32);

impl Operator for Scale {
    fn apply(&self, input: f32) -> f32 {
        input * self.by[0]
    }

    fn name(&self) -> &'static str {
        "scale"
    }

    fn content(&self) -> tenarc::Result<Value> {
        tenarc::to_value(self)
    }
}

impl Operator for Shift {
    fn apply(&self, input: f32) -> f32 {
        input + self.0
    }

    fn name(&self) -> &'static str {
        "shift"
    }

    fn content(&self) -> tenarc::Result<Value> {
        tenarc::to_value(self)
    }
}

type Load = fn(Value) -> tenarc::Result<Box<dyn Operator>>;

/// Every type of operator that can be read, by name.
fn registry() -> BTreeMap<&'static str, Load> {
    fn load<T: Operator + DeserializeOwned + 'static>(
        content: Value,
    ) -> tenarc::Result<Box<dyn Operator>> {
        Ok(Box::new(tenarc::from_value::<T>(content)?))
    }
    BTreeMap::from([("scale", load::<Scale> as Load), ("shift", load::<Shift>)])
}

/// An operator, as its name and its content.
#[derive(Debug)]
struct Any(Box<dyn Operator>);

#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    #[serde(borrow)]
    name: std::borrow::Cow<'a, str>,
    content: Value,
}

impl Serialize for Any {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let content = self.0.content().map_err(serde::ser::Error::custom)?;
        Stored { name: self.0.name().into(), content }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Any {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Stored { name, content } = Stored::deserialize(deserializer)?;
        match registry().get(&*name) {
            Some(load) => load(content).map(Self).map_err(D::Error::custom),
            None => Err(D::Error::custom(format!("no operator is registered as `{name}`"))),
        }
    }
}

#[test]
fn boxed_trait_objects_by_way_of_a_registry() {
    let scale = |by| Any(Box::new(Scale { by: Tensor(vec![by; 2000]) }));
    let chain = vec![scale(2.0), Any(Box::new(Shift(1.0))), scale(10.0)];
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    out.save(&chain).unwrap().save(&BTreeMap::from([("only", scale(3.0))])).unwrap();
    let bytes = out.finish().unwrap();
    let mut input = IArchive::new(&bytes[..]).unwrap();
    let back: Vec<Any> = input.load().unwrap();
    assert_eq!(back.iter().fold(1.0, |value, operator| operator.0.apply(value)), 30.0);
    let back: BTreeMap<String, Any> = input.load().unwrap();
    assert_eq!(back["only"].0.apply(2.0), 6.0);
    // Their tensors are tensors of the archive, which can be looked at without the registry.
    let archive = Archive::new(&bytes[..]).unwrap();
    let segment = archive.segment(0).unwrap();
    assert_eq!(segment.buffers().len(), 2);
    let by: Array1<f32> = segment.tensor("2.content.by").unwrap();
    assert_eq!(by[1999], 10.0);
}

#[test]
fn an_object_that_is_not_registered() {
    let unknown = Stored { name: "rotate".into(), content: Value::Null };
    let wrong = Stored { name: "shift".into(), content: Value::Text("far".into()) };
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    out.save(&unknown).unwrap().save(&wrong).unwrap().save(&Any(Box::new(Shift(1.0)))).unwrap();
    let bytes = out.finish().unwrap();
    let mut input = IArchive::new(&bytes[..]).unwrap();
    let error = input.load::<Any>().unwrap_err();
    assert!(error.to_string().contains("no operator is registered as `rotate`"), "{error}");
    let error = input.load::<Any>().unwrap_err();
    assert_eq!(error.category(), Category::Data, "{error}");
    assert_eq!(input.load::<Any>().unwrap().0.apply(1.0), 2.0);
}
