//! Loading onto variables: what may differ in each mode, and what stays untouched.

use ndarray::{Array1, Array2, ArrayD, IxDyn, array};
use tenarc::error::Category;
use tenarc::named::{Match, Unmatched, Variable, load_multi_onto};
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor, IArchive, OArchive, Result};

use super::{ramp, saved};

const MODES: [Match; 3] = [Match::Strict, Match::Partial, Match::Fill];

/// A model in a program: each variable full of -1.
struct Model(Vec<(&'static str, ArrayD<f32>)>);

impl Model {
    fn new(shapes: &[(&'static str, usize)]) -> Self {
        let array = |len| ArrayD::from_elem(IxDyn(&[len]), -1.0);
        Self(shapes.iter().map(|&(name, len)| (name, array(len))).collect())
    }

    fn load(&mut self, stream: &[u8], mode: Match) -> Result<Unmatched> {
        let mut variables: Vec<(&str, &mut dyn Variable)> = Vec::new();
        for (name, array) in &mut self.0 {
            variables.push((name, array));
        }
        load_multi_onto(stream, &mut variables, mode)
    }

    /// Which variables have been loaded, and none in part.
    fn loaded(&self) -> Vec<&str> {
        let touched = self.0.iter().filter(|(_, array)| array.iter().any(|&value| value >= 0.0));
        let touched: Vec<_> = touched.collect();
        assert!(touched.iter().all(|(_, array)| array.iter().all(|&value| value >= 0.0)));
        touched.into_iter().map(|(name, _)| *name).collect()
    }
}

fn unmatched(missing: &[&str], unexpected: &[&str]) -> Unmatched {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let mut unmatched = Unmatched::default();
    unmatched.missing = owned(missing);
    unmatched.unexpected = owned(unexpected);
    unmatched
}

#[test]
fn the_same_names_in_every_mode() {
    let stream = saved(&[("a.w", ramp(800, 1)), ("a.b", ramp(3, 2)), ("c", ramp(900, 3))]);
    for mode in MODES {
        let mut model = Model::new(&[("c", 900), ("a.b", 3), ("a.w", 800)]);
        assert_eq!(model.load(&stream, mode).unwrap(), Unmatched::default());
        assert_eq!(model.0[0].1, ramp(900, 3).into_dyn());
        assert_eq!(model.0[1].1, ramp(3, 2).into_dyn());
        assert_eq!(model.0[2].1, ramp(800, 1).into_dyn());
    }
}

#[test]
fn names_that_one_side_has_not() {
    let stream = saved(&[("a", ramp(800, 1)), ("b", ramp(3, 2)), ("c", ramp(900, 3))]);
    let refused = |shapes: &[(&'static str, usize)], mode, texts: &[&str]| {
        let mut model = Model::new(shapes);
        let error = model.load(&stream, mode).unwrap_err();
        assert_eq!(error.category(), Category::Mismatch, "{error}");
        for text in texts {
            assert!(error.to_string().contains(text), "`{error}` does not say `{text}`");
        }
        assert!(model.loaded().is_empty());
    };
    // Variables that the archive has no tensor for.
    let more = [("x", 7), ("a", 800), ("b", 3), ("y", 8), ("c", 900)];
    refused(&more, Match::Strict, &["the archive has no `x`, `y`"]);
    for mode in [Match::Partial, Match::Fill] {
        let mut model = Model::new(&more);
        assert_eq!(model.load(&stream, mode).unwrap(), unmatched(&["x", "y"], &[]));
        assert_eq!(model.loaded(), ["a", "b", "c"]);
    }
    // Tensors that there is no variable for.
    for mode in [Match::Strict, Match::Partial] {
        refused(&[("b", 3)], mode, &["no variables for `a`, `c`"]);
    }
    let mut model = Model::new(&[("b", 3)]);
    assert_eq!(model.load(&stream, Match::Fill).unwrap(), unmatched(&[], &["a", "c"]));
    assert_eq!(model.loaded(), ["b"]);
    // Both.
    let other = [("x", 7), ("b", 3)];
    for mode in [Match::Strict, Match::Partial] {
        refused(&other, mode, &["`x`", "`a`, `c`"]);
    }
    let mut model = Model::new(&other);
    assert_eq!(model.load(&stream, Match::Fill).unwrap(), unmatched(&["x"], &["a", "c"]));
    assert_eq!(model.loaded(), ["b"]);
    // Nothing in common.
    let mut model = Model::new(&[("x", 7)]);
    assert_eq!(model.load(&stream, Match::Fill).unwrap(), unmatched(&["x"], &["a", "b", "c"]));
    assert!(model.loaded().is_empty());
}

#[test]
fn many_unmatched_names_are_told_shortly_in_errors_and_all_in_the_result() {
    let tensors: Vec<_> = (0..1000).map(|at| (format!("t{at}\n"), [1.0f32])).collect();
    let stream = saved(&tensors);
    let error = Model::new(&[]).load(&stream, Match::Strict).unwrap_err().to_string();
    assert!(error.contains("`t7\\n` and 992 more") && error.len() < 300, "{error}");
    let all = Model::new(&[]).load(&stream, Match::Fill).unwrap();
    assert!(all.unexpected.iter().eq(tensors.iter().map(|(name, _)| name)));
}

#[test]
fn another_dtype_or_shape_leaves_everything_untouched() {
    let square = Array2::<f32>::zeros((20, 40));
    let wide = ramp(800, 1).mapv(f64::from);
    let list: [(&str, &dyn tenarc::tensor::ToTensor); 4] =
        [("a", &ramp(800, 1)), ("wide", &wide), ("square", &square), ("bits", &[1u32, 2])];
    let stream = saved(&list);
    for mode in MODES {
        for (wrong, text) in [
            (("wide", 800), "expected f32 [800], found a tensor f64 [800]"),
            (("square", 800), "expected f32 [800], found a tensor f32 [20, 40]"),
            (("a", 799), "expected f32 [799], found a tensor f32 [800]"),
            (("a", 1), "expected f32 [1]"),
            (("bits", 2), "found a tensor u32 [2]"),
        ] {
            // Names are held against each other first, or last: it is an error in any case.
            let mut model = match wrong.0 {
                "a" => Model::new(&[wrong]),
                _ => Model::new(&[("a", 800), wrong]),
            };
            let error = model.load(&stream, mode).unwrap_err();
            assert!(error.to_string().contains(text), "{error}");
            assert_eq!(error.path(), wrong.0, "{error}");
            assert!(model.loaded().is_empty());
        }
    }
}

#[test]
fn two_of_one_name() {
    // By hand, as `save_multi` refuses to write it.
    struct Twice;
    impl serde::Serialize for Twice {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            use serde::ser::SerializeMap;
            let mut map = serializer.serialize_map(Some(2))?;
            map.serialize_entry("a", &tenarc::Tensor(ramp(800, 1)))?;
            map.serialize_entry("a", &tenarc::Tensor(ramp(800, 2)))?;
            map.end()
        }
    }
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(&Twice).unwrap();
    let stream = out.finish().unwrap();
    let error = tenarc::named::load_multi(&stream[..]).unwrap_err();
    assert!(error.to_string().contains("two tensors named `a`"), "{error}");
    for mode in MODES {
        for shapes in [&[("a", 800)][..], &[], &[("b", 1)]] {
            let mut model = Model::new(shapes);
            let error = model.load(&stream, mode).unwrap_err();
            assert!(error.to_string().contains("two tensors named `a`"), "{error}");
            assert!(model.loaded().is_empty());
        }
    }
    let stream = saved(&[("a", ramp(800, 1))]);
    let mut model = Model::new(&[("a", 800), ("a", 800)]);
    let error = model.load(&stream, Match::Fill).unwrap_err();
    assert!(error.to_string().contains("two variables named `a`"), "{error}");
    assert!(model.loaded().is_empty());
}

#[test]
fn entries_that_are_no_tensors() {
    #[derive(serde::Serialize)]
    struct Mixed {
        step: u64,
        weight: tenarc::Tensor<Array1<f32>>,
        nested: Nested,
        text: &'static str,
        #[serde(with = "serde_bytes")]
        blob: Vec<u8>,
        plain: Vec<f32>,
    }
    #[derive(serde::Serialize)]
    struct Nested {
        weight: tenarc::Tensor<Array1<f32>>,
    }
    let mixed = Mixed {
        step: 7,
        weight: ramp(800, 1).into(),
        nested: Nested { weight: ramp(700, 2).into() },
        text: "text",
        blob: vec![1; 5000],
        plain: ramp(900, 3).to_vec(),
    };
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(&mixed).unwrap();
    let stream = out.finish().unwrap();
    assert!(tenarc::named::load_multi(&stream[..]).unwrap_err().to_string().contains("step"));

    for name in ["step", "nested", "text", "blob"] {
        let mut model = Model::new(&[("weight", 800), (name, 700)]);
        let error = model.load(&stream, Match::Fill).unwrap_err();
        assert!(error.to_string().contains("found no tensor"), "{error}");
        assert_eq!(error.path(), name);
        assert!(model.loaded().is_empty());
    }
    // What is nested has no name here, and what is not asked for may be anything. A vector of
    // numbers is as good as a tensor.
    let mut model = Model::new(&[("plain", 900), ("weight", 800), ("nested.weight", 700)]);
    let rest = model.load(&stream, Match::Fill).unwrap();
    assert_eq!(rest, unmatched(&["nested.weight"], &["step", "nested", "text", "blob"]));
    assert_eq!(model.0[0].1, ramp(900, 3).into_dyn());
    assert_eq!(model.0[1].1, ramp(800, 1).into_dyn());
}

#[test]
fn values_that_are_no_maps() {
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(&7).unwrap().save(&[1, 2]).unwrap().save("text").unwrap();
    out.save(&tenarc::Tensor(ramp(800, 1))).unwrap();
    out.save(&[(1u32, tenarc::Tensor(ramp(800, 1)))].map(|(key, value)| vec![(key, value)]))
        .unwrap();
    out.save(&std::collections::BTreeMap::from([(1u32, tenarc::Tensor(ramp(800, 1)))])).unwrap();
    out.save(&()).unwrap();
    let stream = out.finish().unwrap();
    for number in 0..7 {
        let at_value = || {
            let mut input = IArchive::new(&stream[..]).unwrap();
            (0..number).for_each(|_| assert!(input.skip().unwrap()));
            input
        };
        for mode in MODES {
            let mut array = ramp(800, 5);
            let mut variables: [(&str, &mut dyn Variable); 1] = [("a", &mut array)];
            let error = at_value().load_multi_onto(&mut variables, mode).unwrap_err();
            assert_eq!(error.category(), Category::Mismatch, "value {number}, {mode:?}: {error}");
            assert_eq!(array, ramp(800, 5));
        }
        let error = at_value().load_multi().unwrap_err();
        assert_eq!(error.category(), Category::Mismatch, "value {number}: {error}");
    }
}

/// A value that does not fit one way is still there to be read another.
#[test]
fn what_does_not_fit_can_be_tried_again() {
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save_multi(&[("a", ramp(800, 1)), ("b", ramp(900, 2))]).unwrap();
    out.save_multi(&[("a", array![0.5f64])]).unwrap().save("end").unwrap();
    let stream = out.finish().unwrap();
    let mut input = IArchive::new(&stream[..]).unwrap();
    let mut a = ramp(800, 9);
    let mut variables: [(&str, &mut dyn Variable); 1] = [("a", &mut a)];
    assert!(input.load_multi_onto(&mut variables, Match::Strict).is_err());
    let rest = input.load_multi_onto(&mut variables, Match::Fill).unwrap();
    assert_eq!(rest, unmatched(&[], &["b"]));
    assert!(input.load_multi_onto(&mut variables, Match::Fill).is_err());
    assert_eq!(a, ramp(800, 1));
    let second = input.load_multi().unwrap();
    assert_eq!(
        second[0].1,
        DynTensor::new(DType::F64, &[1], Order::C, 0.5f64.to_le_bytes().into()).unwrap()
    );
    assert_eq!(input.load::<String>().unwrap(), "end");
    let mut none: [(&str, &mut dyn Variable); 0] = [];
    let error = input.load_multi_onto(&mut none, Match::Fill).unwrap_err();
    assert_eq!(error.category(), Category::Eof);
}
