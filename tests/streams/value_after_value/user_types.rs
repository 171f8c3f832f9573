//! Types with a save and load of their own, and types of others.

use std::fmt;

use ndarray::{Array1, Array2, ArrayView2};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeStruct, SerializeTuple};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tenarc::{Archive, IArchive, OArchive, Tensor};

use super::{quick, round_trip};

/// A matrix of low rank, which is saved as its two factors.
#[derive(PartialEq, Debug, Clone)]
struct LowRank {
    left: Array2<f64>,
    right: Array2<f64>,
    /// Made anew when it is loaded.
    product: Array2<f64>,
}

impl LowRank {
    fn new(left: Array2<f64>, right: Array2<f64>) -> Self {
        let product = left.dot(&right);
        Self { left, right, product }
    }

    fn sample() -> Self {
        let left = Array2::from_shape_fn((30, 20), |(y, x)| if y == x { 2.0 } else { 0.5 });
        Self::new(left, Array2::eye(20))
    }
}

impl Serialize for LowRank {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("LowRank", 3)?;
        fields.serialize_field("rank", &self.left.ncols())?;
        fields.serialize_field("left", &Tensor(&self.left))?;
        fields.serialize_field("right", &Tensor(self.right.view()))?;
        fields.end()
    }
}

impl<'de> Deserialize<'de> for LowRank {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = LowRank;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the factors of a matrix")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<LowRank, M::Error> {
                use serde::de::Error as _;
                let (mut rank, mut left, mut right) = (0usize, None, None);
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "rank" => rank = map.next_value()?,
                        "left" => left = Some(map.next_value::<Tensor<Array2<f64>>>()?.0),
                        "right" => right = Some(map.next_value::<Tensor<Array2<f64>>>()?.0),
                        other => return Err(M::Error::unknown_field(other, FIELDS)),
                    }
                }
                let left = left.ok_or_else(|| M::Error::missing_field("left"))?;
                let right = right.ok_or_else(|| M::Error::missing_field("right"))?;
                if left.ncols() != rank || right.nrows() != rank {
                    return Err(M::Error::custom(format!("factors are not of rank {rank}")));
                }
                Ok(LowRank::new(left, right))
            }
        }
        const FIELDS: &[&str] = &["rank", "left", "right"];
        deserializer.deserialize_struct("LowRank", FIELDS, Fields)
    }
}

/// As a tuple: values one after the other, without names.
#[derive(PartialEq, Debug, Clone)]
struct Histogram {
    bins: Vec<f32>,
    counts: Array1<u64>,
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tuple = serializer.serialize_tuple(2)?;
        tuple.serialize_element(&Tensor(&self.bins))?;
        tuple.serialize_element(&Tensor(&self.counts))?;
        tuple.end()
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Two;
        impl<'de> Visitor<'de> for Two {
            type Value = Histogram;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bins and counts")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Histogram, A::Error> {
                let missing = |at| serde::de::Error::invalid_length(at, &"bins and counts");
                let bins: Tensor<_> = seq.next_element()?.ok_or_else(|| missing(0))?;
                let counts: Tensor<_> = seq.next_element()?.ok_or_else(|| missing(1))?;
                Ok(Histogram { bins: bins.0, counts: counts.0 })
            }
        }
        deserializer.deserialize_tuple(2, Two)
    }
}

fn histogram(len: usize) -> Histogram {
    Histogram { bins: vec![0.5; len], counts: Array1::from_elem(len, 7) }
}

#[test]
fn types_with_a_save_and_load_of_their_own() {
    round_trip(&LowRank::sample());
    round_trip(&histogram(1000));
    round_trip(&(vec![histogram(3), histogram(0), histogram(900)], Some(LowRank::sample())));
    round_trip(&std::collections::BTreeMap::from([(1u8, LowRank::sample())]));

    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    out.save(&LowRank::sample()).unwrap();
    let archive = Archive::new(out.finish().unwrap()).unwrap();
    let left: Array2<f64> = archive.tensor("left").unwrap();
    assert_eq!(left, LowRank::sample().left);
    assert!(
        archive.tensor::<ndarray::Array2<f64>>("product").is_err(),
        "what is derived is not saved"
    );
}

#[test]
fn what_a_load_of_its_own_refuses() {
    #[derive(Serialize)]
    struct Other<'a> {
        rank: usize,
        left: Tensor<ArrayView2<'a, f64>>,
        right: Tensor<ArrayView2<'a, f64>>,
    }
    let LowRank { left, right, .. } = LowRank::sample();
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    out.save(&Other { rank: 19, left: left.view().into(), right: right.view().into() }).unwrap();
    out.save(&(histogram(1000), 1)).unwrap().save(&[histogram(1000).bins]).unwrap();
    out.save(&histogram(1000)).unwrap();
    let bytes = out.finish().unwrap();
    let mut input = IArchive::new(&bytes[..]).unwrap();
    let error = input.load::<LowRank>().unwrap_err();
    assert!(error.to_string().contains("not of rank 19"), "{error}");
    assert!(input.load::<LowRank>().is_err());
    assert!(input.load::<Histogram>().is_err());
    assert_eq!(input.load::<Histogram>().unwrap(), histogram(1000));
}

/// A type of somebody else, which knows nothing of serde: named where it is a field.
mod foreign {
    #[derive(PartialEq, Debug, Clone, Default)]
    pub struct Image {
        pub width: usize,
        pub height: usize,
        pixels: Vec<u8>,
    }

    impl Image {
        pub fn new(width: usize, pixels: Vec<u8>) -> Self {
            Self { width, height: pixels.len() / width, pixels }
        }

        pub fn pixels(&self) -> &[u8] {
            &self.pixels
        }
    }
}

mod image {
    use super::*;

    pub fn serialize<S: Serializer>(
        image: &foreign::Image,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let pixels = ArrayView2::from_shape((image.height, image.width), image.pixels());
        Tensor(pixels.map_err(serde::ser::Error::custom)?).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<foreign::Image, D::Error> {
        let pixels = Tensor::<Array2<u8>>::deserialize(deserializer)?.0;
        Ok(foreign::Image::new(pixels.ncols(), pixels.into_raw_vec_and_offset().0))
    }
}

#[test]
fn types_of_others_are_told_how_from_outside() {
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Labelled {
        #[serde(with = "image")]
        image: foreign::Image,
        label: String,
    }
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Bare(#[serde(with = "image")] foreign::Image);

    let image = foreign::Image::new(100, (0..=255).cycle().take(8000).collect());
    round_trip(&vec![Labelled { image: image.clone(), label: "cat".into() }]);
    round_trip(&Bare(image));
}
