//! What can be a variable: arrays of any ownership and layout, dynamic tensors, own types.

use ndarray::{ArcArray, Array1, Array2, Array3, CowArray, IxDyn, ShapeBuilder, array, s};
use tenarc::named::{Match, Variable, load_multi_onto};
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor, Result};

use super::{ramp, saved};

fn counting(rows: usize, columns: usize) -> Array2<f32> {
    Array2::from_shape_fn((rows, columns), |(y, x)| (y * columns + x) as f32)
}

#[test]
fn arrays_of_every_ownership_and_layout() {
    let source = counting(40, 30);
    let mut column_major = Array2::<f32>::zeros((40, 30).f());
    column_major.assign(&source);
    // Both orders in the stream, for every layout in the program.
    for stream in [saved(&[("x", &source)]), saved(&[("x", &column_major)])] {
        let load = |variable: &mut dyn Variable| {
            load_multi_onto(&stream[..], &mut [("x", variable)], Match::Strict).unwrap();
        };
        let mut owned = Array2::<f32>::zeros((40, 30));
        load(&mut owned);
        assert_eq!(owned, source);
        let mut columns = Array2::<f32>::zeros((40, 30).f());
        load(&mut columns);
        assert_eq!(columns, source);
        assert!(columns.t().is_standard_layout(), "it stays as it was laid out");
        let mut dynamic = owned.clone().into_dyn();
        dynamic.fill(0.0);
        load(&mut dynamic);
        assert_eq!(dynamic, source.view().into_dyn());

        // Views: of part of an array, with steps, transposed, backwards.
        let mut whole = Array2::<f32>::from_elem((100, 100), -1.0);
        load(&mut whole.slice_mut(s![10..50, 5..65;2]));
        assert_eq!(whole.slice(s![10..50, 5..65;2]), source);
        assert_eq!(whole.iter().filter(|&&value| value < 0.0).count(), 10_000 - 1200);
        let mut turned = Array2::<f32>::zeros((30, 40));
        load(&mut turned.view_mut().reversed_axes());
        assert_eq!(turned.t(), source);
        let mut backwards = Array2::<f32>::zeros((40, 30));
        load(&mut backwards.slice_mut(s![..;-1, ..]));
        assert_eq!(backwards.slice(s![..;-1, ..]), source);

        // Shared and copied on demand: who else holds the array keeps what it had.
        let before = ArcArray::<f32, _>::zeros((40, 30));
        let mut shared = before.clone();
        load(&mut shared);
        assert_eq!(shared, source);
        assert_eq!(before.sum(), 0.0);
        let zeros = Array2::<f32>::zeros((40, 30));
        let mut borrowed = CowArray::from(&zeros);
        load(&mut borrowed);
        assert_eq!(borrowed, source);
        assert_eq!(zeros.sum(), 0.0);
    }
}

#[test]
fn scalars_and_arrays_without_elements() {
    let none = Array3::<u8>::zeros((2, 0, 3));
    let list: [(&str, &dyn tenarc::tensor::ToTensor); 2] =
        [("scalar", &ndarray::arr0(7i64)), ("none", &none)];
    let stream = saved(&list);
    let (mut scalar, mut empty) = (ndarray::arr0(0i64), none.clone());
    let mut variables: [(&str, &mut dyn Variable); 2] =
        [("none", &mut empty), ("scalar", &mut scalar)];
    load_multi_onto(&stream[..], &mut variables, Match::Strict).unwrap();
    assert_eq!(scalar, ndarray::arr0(7));
    // Of the same number of elements, and yet another shape.
    let (mut one, mut other) = (array![0i64], Array3::<u8>::zeros((0, 2, 3)));
    for (name, variable) in [("scalar", &mut one as &mut dyn Variable), ("none", &mut other)] {
        assert!(load_multi_onto(&stream[..], &mut [(name, variable)], Match::Fill).is_err());
    }
}

#[test]
fn dynamic_tensors_take_their_dtype_and_any_order() {
    let stored = DynTensor::new(DType::F8E5M2, &[2, 3], Order::F, vec![1, 2, 3, 4, 5, 6]).unwrap();
    let unknown = DynTensor::new(DType::from_name("posit"), &[9], Order::C, vec![7; 5]).unwrap();
    let stream = saved(&[("x", &stored), ("y", &unknown)]);
    let mut x = DynTensor::new(DType::F8E5M2, &[2, 3], Order::C, vec![0; 6]).unwrap();
    let mut y = DynTensor::new(DType::from_name("posit"), &[9], Order::C, vec![0; 9]).unwrap();
    let mut variables: [(&str, &mut dyn Variable); 2] = [("x", &mut x), ("y", &mut y)];
    load_multi_onto(&stream[..], &mut variables, Match::Strict).unwrap();
    assert_eq!((&x, &y), (&stored, &unknown));
    let mut wrong = DynTensor::new(DType::F8E4M3, &[2, 3], Order::F, vec![0; 6]).unwrap();
    assert!(load_multi_onto(&stream[..], &mut [("x", &mut wrong)], Match::Fill).is_err());
}

/// A variable as frameworks have them: on a device, behind a lock, in one dtype.
struct Device {
    shape: Vec<i64>,
    dims: Vec<usize>,
    memory: std::sync::Mutex<Vec<f32>>,
    full: bool,
}

impl Device {
    fn new(dims: &[usize], full: bool) -> Self {
        let shape = dims.iter().map(|&dim| i64::try_from(dim).unwrap()).collect();
        let memory = vec![-1.0; dims.iter().product()].into();
        Self { shape, dims: dims.to_vec(), memory, full }
    }
}

impl Variable for Device {
    fn tensor_dtype(&self) -> DType {
        DType::F32
    }

    fn tensor_shape(&self) -> &[usize] {
        assert_eq!(self.shape.len(), self.dims.len());
        &self.dims
    }

    fn load_tensor(&mut self, tensor: DynTensor) -> Result<()> {
        if self.full {
            return Err(serde::de::Error::custom("no memory is left on the device"));
        }
        let array = tensor.into_array::<f32>()?;
        *self.memory.lock().unwrap() = array.iter().copied().collect();
        Ok(())
    }
}

#[test]
fn own_variables() {
    let stream = saved(&[("a", counting(20, 50)), ("b", counting(3, 3)), ("c", counting(20, 50))]);
    let (mut a, mut b) = (Device::new(&[20, 50], false), Device::new(&[3, 3], false));
    let mut c = Array2::<f32>::zeros((20, 50));
    let mut variables: [(&str, &mut dyn Variable); 3] =
        [("c", &mut c), ("b", &mut b), ("a", &mut a)];
    load_multi_onto(&stream[..], &mut variables, Match::Strict).unwrap();
    assert_eq!(*a.memory.lock().unwrap(), counting(20, 50).into_raw_vec_and_offset().0);
    assert_eq!(b.memory.lock().unwrap()[8], 8.0);
    assert_eq!(c, counting(20, 50));

    // One that cannot take its tensor: it is named, and those before it are loaded.
    let (mut a, mut b) = (Device::new(&[20, 50], false), Device::new(&[3, 3], true));
    let mut c = Array2::<f32>::zeros((20, 50));
    let mut variables: [(&str, &mut dyn Variable); 3] =
        [("c", &mut c), ("b", &mut b), ("a", &mut a)];
    let error = load_multi_onto(&stream[..], &mut variables, Match::Strict).unwrap_err();
    assert!(error.to_string().contains("no memory is left"), "{error}");
    assert!(error.to_string().contains("`b`"), "{error}");
    assert_eq!(a.memory.lock().unwrap()[999], 999.0);
    assert_eq!(b.memory.lock().unwrap()[8], -1.0);
    assert_eq!(c.sum(), 0.0);
}

/// Names of any type that gives text.
#[test]
fn names_owned_and_borrowed() {
    let stream = saved(&[(String::from("x"), ramp(5, 1))]);
    let saved_again = saved(&[(std::borrow::Cow::Borrowed("x"), ramp(5, 1))]);
    assert_eq!(stream, saved_again);
    let mut x = Array1::<f32>::zeros(5);
    load_multi_onto(&stream[..], &mut [("x".to_owned(), &mut x)], Match::Strict).unwrap();
    let mut y = Array1::<f32>::zeros(5);
    let name: std::rc::Rc<str> = "x".into();
    load_multi_onto(&stream[..], &mut [(name, &mut y)], Match::Strict).unwrap();
    assert_eq!((&x, &y), (&ramp(5, 1), &ramp(5, 1)));
    // Which is no array of the wrong rank.
    let mut wrong = ndarray::ArrayD::<f32>::zeros(IxDyn(&[5, 1]));
    assert!(load_multi_onto(&stream[..], &mut [("x", &mut wrong)], Match::Strict).is_err());
}
