//! What is at one path in all values that were saved under one name.

use std::fmt;
use std::ops::{Range, RangeBounds};

use serde::de::DeserializeOwned;

use super::directory::Entry;
use super::file::TOGETHER;
use super::table::range_within;
use super::{Archive, Segment};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::io::at::{ReadAt, announce};
use crate::meta::Order;
use crate::options::Limits;
use crate::tensor::{DynTensor, FromTensor, Slices};

/// What is at one path in each of the values that were saved under one name, step by step: [`Archive::series`].
///
/// Each method reads only the steps that it is asked for.
pub struct Series<'a, S> {
    archive: &'a Archive<S>,
    entries: Vec<Entry>,
    path: String,
}

impl<S> fmt::Debug for Series<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Series")
            .field("path", &self.path)
            .field("steps", &self.entries.len())
            .finish_non_exhaustive()
    }
}

impl<S: ReadAt> Archive<S> {
    /// What is at `path` in each of the values that were saved under a name, step by step. The empty path is the whole
    /// value. Only the directory is read.
    ///
    /// ```
    /// use ndarray::{Array2, Array3};
    /// use serde::Serialize;
    /// use tenarc::{Archive, OArchive, Tensor};
    ///
    /// #[derive(Serialize)]
    /// struct State { loss: f64, velocity: Tensor<Array2<f32>> }
    ///
    /// let mut out = OArchive::new(Vec::new())?;
    /// for step in 1..=20 {
    ///     let velocity = Array2::from_elem((100, 3), step as f32);
    ///     out.save_as("state", &State { loss: 1.0 / f64::from(step), velocity: velocity.into() })?;
    /// }
    /// let archive = Archive::new(out.finish()?)?;
    ///
    /// let velocity = archive.series("state", "velocity")?;
    /// assert_eq!(velocity.len(), 20);
    /// let last: Tensor<Array2<f32>> = velocity.get(19)?;
    /// let some: Array3<f32> = velocity.stack(10..20)?;
    /// assert_eq!((last[[0, 0]], some.dim()), (20.0, (10, 100, 3)));
    /// let losses: Vec<f64> = archive.series("state", "loss")?.read(..)?;
    /// assert_eq!(losses[3], 0.25);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// If no value has the name, or the directory is damaged.
    pub fn series(&self, name: &str, path: &str) -> Result<Series<'_, S>> {
        let mut entries = Vec::new();
        for entry in self.entries() {
            let entry = entry?;
            if entry.name() == Some(name) {
                entries.push(entry);
            }
        }
        if entries.is_empty() {
            return Err(self.no_such(name));
        }
        Ok(Series { archive: self, entries, path: path.to_owned() })
    }
}

impl<'a, S: ReadAt> Series<'a, S> {
    /// The number of steps.
    pub fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Whether there are no steps. There is at least one.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The whole value of a step, of which other paths can be read too.
    ///
    /// # Errors
    /// If there is no such step, or its header cannot be read or is damaged.
    pub fn segment(&self, step: u64) -> Result<Segment<'a, S>> {
        let entry = usize::try_from(step).ok().and_then(|step| self.entries.get(step));
        self.archive.at(entry.ok_or_else(|| self.no_step(step))?)
    }

    /// Loads what is at the path in a step: see [`Segment::get`].
    ///
    /// # Errors
    /// If there is no such step, nothing is at the path in it, it cannot be read or is damaged, or it does not fit the type.
    pub fn get<T: DeserializeOwned>(&self, step: u64) -> Result<T> {
        self.segment(step)?.get(&self.path).map_err(|error| error.in_index(step))
    }

    /// Loads what is at the path in the steps of a range. The limit on memory holds for each step by itself.
    ///
    /// # Errors
    /// The errors of [`get`](Self::get).
    pub fn read<T: DeserializeOwned>(&self, steps: impl RangeBounds<u64>) -> Result<Vec<T>> {
        let mut values = Vec::new();
        let places = |segment: &Segment<'_, S>| segment.places_at(&self.path);
        self.each_step(steps, places, |step, segment| {
            let value = segment.get(&self.path).map_err(|error| error.in_index(step))?;
            values.push(value);
            Ok(())
        })?;
        Ok(values)
    }

    /// Calls `read` with each step of a range. The headers of the next steps are announced together, and then what is at the
    /// path in each of them.
    fn each_step(
        &self,
        steps: impl RangeBounds<u64>,
        places: impl Fn(&Segment<'a, S>) -> Vec<Range<u64>>,
        mut read: impl FnMut(u64, &Segment<'a, S>) -> Result<()>,
    ) -> Result<()> {
        let Range { start, end } =
            range_within(steps, self.len()).map_err(|step| self.no_step(step))?;
        let entries =
            self.entries.iter().zip(0..end).skip(usize::try_from(start).unwrap_or(usize::MAX));
        let entries: Vec<_> = entries.collect();
        for entries in entries.chunks(TOGETHER) {
            self.archive.announce_headers(entries.iter().map(|(entry, _)| *entry));
            let steps: Vec<_> =
                entries.iter().map(|(entry, step)| (*step, self.archive.at(entry))).collect();
            let known = || steps.iter().filter_map(|(_, segment)| segment.as_ref().ok());
            let source = self.archive.source();
            announce(source, || known().filter_map(Segment::place_of_checksums).collect());
            announce(source, || known().flat_map(&places).collect());
            for (step, segment) in steps {
                read(step, &segment?)?;
            }
        }
        Ok(())
    }

    /// Loads the tensors in the steps of a range as one tensor, whose first dimension is the steps.
    ///
    /// # Errors
    /// - There is no such step, no tensor at the path in a step, or it cannot be read or is damaged.
    /// - The dtypes or shapes of two steps differ, or the type cannot hold them.
    /// - The range is empty, so that the dtype and shape are not known.
    pub fn stack<T: for<'de> FromTensor<'de>>(&self, steps: impl RangeBounds<u64>) -> Result<T> {
        let places = |segment: &Segment<'_, S>| segment.places_at(&self.path);
        self.stacked(steps, places, |segment| segment.dyn_tensor(&self.path))
    }

    /// Like [`stack`](Self::stack), with a part of each tensor: `slice(10..20, s![0..5, ..])`. Only the chunks with these
    /// parts are read: see [`Segment::slice`].
    ///
    /// # Errors
    /// The errors of [`stack`](Self::stack) and [`Segment::slice`].
    pub fn slice<T: for<'de> FromTensor<'de>>(
        &self,
        steps: impl RangeBounds<u64>,
        slices: impl Into<Slices>,
    ) -> Result<T> {
        let slices = slices.into();
        let places = |segment: &Segment<'_, S>| segment.places_of_slice(&self.path, &slices);
        self.stacked(steps, places, |segment| segment.slice(&self.path, slices.clone()))
    }

    fn stacked<T: for<'de> FromTensor<'de>>(
        &self,
        steps: impl RangeBounds<u64>,
        places: impl Fn(&Segment<'a, S>) -> Vec<Range<u64>>,
        read: impl Fn(&Segment<'a, S>) -> Result<DynTensor>,
    ) -> Result<T> {
        let (mut first, mut bytes) = (None, Vec::new());
        let mut shape = vec![0];
        // A few bytes of each of many values could become much memory.
        let budget = Budget::new(self.archive.options().limits);
        self.each_step(steps, places, |step, segment| {
            budget.start(0);
            let (plain, packed) = segment.loaded.input();
            budget.allow(Limits::allowed(plain, packed));
            let tensor = read(segment).and_then(DynTensor::into_row_major);
            let tensor = tensor.map_err(|error| error.in_index(step))?;
            budget.extend(&mut bytes, &tensor.le_bytes())?;
            let (dtype, dims) = first.get_or_insert_with(|| {
                shape.extend_from_slice(tensor.shape());
                (tensor.dtype().clone(), tensor.shape().to_vec())
            });
            if dtype != tensor.dtype() || dims != tensor.shape() {
                let (found, other) = (tensor.dtype(), tensor.shape());
                let what = format!(
                    "expected a tensor of {dtype} and {dims:?}, as before, found one of {found} and {other:?}"
                );
                return Err(Error::mismatch(what).in_field(&self.path).in_index(step));
            }
            shape[0] += 1;
            Ok(())
        })?;
        let (dtype, _) = first.ok_or_else(|| {
            Error::data("expected at least one step to stack: the range is empty")
        })?;
        DynTensor::new(dtype, &shape, Order::C, bytes)?.into_tensor()
    }

    #[cold]
    fn no_step(&self, step: u64) -> Error {
        Error::not_found(format!("there is no step {step}: the series has {} steps", self.len()))
    }
}
