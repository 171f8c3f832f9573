//! Deferred tensors whose content comes from this crate itself, while it writes them.

use std::collections::BTreeMap;

use ndarray::Array2;
use serde::{Deserialize, Serialize};
use tenarc::archive::Segment;
use tenarc::tensor::{Deferred, Order};
use tenarc::{Archive, DType, DynTensor, Error, IArchive, OArchive, Tensor};

use super::quick;

fn stored(names: &[&str]) -> Vec<u8> {
    let tensor = |at| Tensor(Array2::from_elem((30, 40), at * 1000));
    let model: BTreeMap<_, _> =
        names.iter().zip(0u64..).map(|(&name, at)| (name, tensor(at))).collect();
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    out.save(&model).unwrap();
    out.finish().unwrap()
}

/// A tensor of another archive.
fn from<'a>(segment: &'a Segment<'_, Vec<u8>>, path: &'a str) -> Tensor<Deferred<'a>> {
    let info = segment.info(path).unwrap();
    Tensor(Deferred::from_blocks(info.dtype().clone(), info.shape(), info.order(), move |put| {
        put(&segment.dyn_tensor(path)?.le_bytes())
    }))
}

#[test]
fn tensors_move_from_archive_to_archive_one_at_a_time() {
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Either<'a> {
        Tensor(Tensor<Deferred<'a>>),
    }
    #[derive(Serialize)]
    struct Outer<'a> {
        first: Tensor<Deferred<'a>>,
        #[serde(flatten)]
        rest: Inner<'a>,
    }
    #[derive(Serialize)]
    struct Inner<'a> {
        second: Vec<Either<'a>>,
        last: Option<Tensor<Deferred<'a>>>,
    }
    #[derive(Deserialize)]
    struct Owned {
        first: Tensor<Array2<u64>>,
        second: Vec<Tensor<Array2<u64>>>,
        last: Option<Tensor<DynTensor>>,
    }
    let archive = Archive::new(stored(&["a", "b", "c"])).unwrap();
    let segment = archive.segment(0).unwrap();
    let outer = Outer {
        first: from(&segment, "c"),
        rest: Inner {
            second: vec![Either::Tensor(from(&segment, "b"))],
            last: Some(from(&segment, "a")),
        },
    };
    let check = |owned: Owned| {
        assert_eq!(*owned.first, Array2::from_elem((30, 40), 2000));
        assert_eq!(*owned.second[0], Array2::from_elem((30, 40), 1000));
        assert_eq!(owned.last.unwrap().view::<u64>().unwrap()[[29, 39]], 0);
    };
    for inline_below in [0, usize::MAX] {
        for dedup in [false, true] {
            let options = quick().with_inline_below(inline_below).with_dedup(dedup);
            let mut out = OArchive::with_options(Vec::new(), options.clone()).unwrap();
            out.save(&outer).unwrap();
            check(IArchive::new(&out.finish().unwrap()[..]).unwrap().load().unwrap());
            check(tenarc::parts::to_parts_with(&outer, options).unwrap().load().unwrap());
        }
    }
    check(tenarc::from_slice(&tenarc::to_vec(&outer).unwrap()).unwrap());
    check(tenarc::from_value(tenarc::to_value(&outer).unwrap()).unwrap());
}

/// Reads, writes and fails inside, at every depth.
#[test]
fn whatever_happens_while_fetching_does_not_disturb_what_is_written() {
    fn fetch(depth: usize) -> tenarc::Result<Vec<f64>> {
        if depth == 0 {
            return Ok(vec![1.0; 400]);
        }
        let inner = Tensor(Deferred::new(&[20, 20], move || fetch(depth - 1)));
        let bad = Tensor(Deferred::new(&[1], || Err::<Vec<u8>, _>("on purpose")));
        assert!(tenarc::to_vec(&bad).is_err());
        let mut out = OArchive::with_options(Vec::new(), quick())?;
        out.save(&("inner", &inner, 7))?;
        let bytes = out.finish()?;
        let wrong = IArchive::new(&bytes[..])?.load::<(String, Tensor<Vec<u8>>, u8)>();
        assert!(wrong.is_err());
        let (name, array, number): (String, Tensor<Array2<f64>>, u8) =
            IArchive::new(&bytes[..])?.load()?;
        assert_eq!((name.as_str(), number), ("inner", 7));
        let message = tenarc::to_vec(&(array, tenarc::to_value(&inner)?))?;
        let (array, value): (Tensor<Array2<f64>>, tenarc::Value) = tenarc::from_slice(&message)?;
        assert_eq!(tenarc::from_value::<Tensor<Array2<f64>>>(value)?, array);
        Ok(array.0.into_iter().map(|number| number + 1.0).collect())
    }
    let outer = Tensor(Deferred::new(&[400], || fetch(3)));
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    out.save(&[&outer, &outer]).unwrap().save("after").unwrap();
    let bytes = out.finish().unwrap();
    let mut input = IArchive::new(&bytes[..]).unwrap();
    let back: [Tensor<Vec<f64>>; 2] = input.load().unwrap();
    assert_eq!(back, [Tensor(vec![4.0; 400]), Tensor(vec![4.0; 400])]);
    assert_eq!(input.load::<String>().unwrap(), "after");
}

/// The error of what was read inside is told, and where in the value it was.
#[test]
fn an_archive_that_is_damaged_inside_is_told() {
    let mut bytes = stored(&["a", "b"]);
    let buffer = {
        let archive = Archive::new(bytes.clone()).unwrap();
        archive.segment(0).unwrap().buffers()[1].0
    };
    bytes[usize::try_from(buffer).unwrap()] ^= 1;
    let archive = Archive::new(bytes).unwrap();
    let segment = archive.segment(0).unwrap();
    let model: BTreeMap<_, _> = ["a", "b"].map(|name| (name, from(&segment, name))).into();
    let error = tenarc::to_parts(&model).unwrap_err().to_string();
    assert!(error.contains("checksum"), "{error}");

    let missing = Deferred::from_blocks(DType::U64, &[30, 40], Order::C, |put| {
        put(&segment.dyn_tensor("nowhere")?.le_bytes())
    });
    let error = tenarc::to_vec(&Tensor(missing)).unwrap_err().to_string();
    assert!(error.contains("nowhere"), "{error}");
    let found: Array2<u64> = segment.tensor::<Array2<_>>("a").unwrap();
    assert_eq!(found, Array2::<u64>::zeros((30, 40)));
    let _: Error = segment.tensor::<Array2<u64>>("b").unwrap_err();
}
