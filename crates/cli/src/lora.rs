//! Adds the product of two small matrices to a tensor, as adapters of the kind LoRA do.

use tenarc::DType;
use tenarc::tensor::Order;

use crate::document::Section;
use crate::elements::{Element, Whole, put, size, widen};
use crate::failure::{Failure, Result};
use crate::node::{Form, Node, Payload};

/// What is added to a matrix: `scale · left · right`. The two factors are read when the matrix is.
pub struct Delta<'a> {
    left: Factor<'a>,
    right: Factor<'a>,
    scale: f32,
}

/// A matrix of an adapter.
#[derive(Clone, Copy)]
pub struct Factor<'a> {
    section: &'a Section<'a>,
    node: &'a Node,
    rows: usize,
    columns: usize,
    /// Whether the file stores the columns one after the other.
    by_columns: bool,
}

impl<'a> Factor<'a> {
    /// Creates a factor of a tensor in an adapter.
    ///
    /// # Errors
    /// If the tensor is not a matrix of floats.
    pub fn new(section: &'a Section<'a>, node: &'a Node) -> Result<Self> {
        let payload = node.payload().ok_or_else(|| Failure::new("expected a tensor"))?;
        let (rows, columns) = matrix(payload)?;
        Ok(Self { section, node, rows, columns, by_columns: payload.order == Order::F })
    }

    pub fn shape(&self) -> [usize; 2] {
        [self.rows, self.columns]
    }

    /// Returns the factor with its axes exchanged.
    #[must_use]
    pub fn transposed(self) -> Self {
        let Self { rows, columns, by_columns, .. } = self;
        Self { rows: columns, columns: rows, by_columns: !by_columns, ..self }
    }

    /// Reads the numbers, row by row.
    fn numbers(&self) -> Result<Vec<f32>> {
        let dtype = self.node.payload().map_or(&DType::F32, |payload| &payload.dtype);
        let mut numbers = Vec::new();
        widen(dtype, &self.section.payload_bytes(self.node)?, &mut numbers);
        // Only a number of 64 bits is rounded here.
        #[allow(clippy::cast_possible_truncation)]
        let numbers = numbers.into_iter().map(|number| number as f32);
        if !self.by_columns {
            return Ok(numbers.collect());
        }
        let stored: Vec<f32> = numbers.collect();
        let row = |row| stored.iter().skip(row).step_by(self.rows.max(1));
        Ok((0..self.rows).flat_map(row).copied().collect())
    }
}

/// Returns the numbers of rows and columns of a matrix of floats.
fn matrix(payload: &Payload) -> Result<(usize, usize)> {
    let is_float = matches!(payload.dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64);
    match *payload.shape {
        [rows, columns] if is_float && payload.form == Form::Tensor => Ok((rows, columns)),
        _ => Err(Failure::new(format!("expected a matrix of floats, found {}", payload.label()))),
    }
}

impl<'a> Delta<'a> {
    /// Creates what is added to a tensor: `scale · left · right`.
    ///
    /// # Errors
    /// If the tensor is not a matrix of f32, f16 or bf16, or if the shapes do not fit.
    pub fn new(to: &Payload, left: Factor<'a>, right: Factor<'a>, scale: f32) -> Result<Self> {
        let (rows, columns) = matrix(to)?;
        if to.dtype == DType::F64 {
            let what = "the product is computed in f32, which is not enough for a tensor of f64";
            return Err(Failure::new(what));
        }
        let ([left_rows, rank], [right_rank, right_columns]) = (left.shape(), right.shape());
        if (left_rows, rank, right_columns) != (rows, right_rank, columns) {
            return Err(Failure::new(format!(
                "the product of {left_rows} × {rank} and {right_rank} × {right_columns} elements \
                 does not fit its shape [{rows}, {columns}]"
            )));
        }
        Ok(match to.order {
            Order::F => Self { left: right.transposed(), right: left.transposed(), scale },
            Order::C => Self { left, right, scale },
        })
    }

    /// Reads the factors, for a tensor of this dtype whose elements follow.
    ///
    /// # Errors
    /// If the factors cannot be read.
    pub fn start(&self, dtype: &DType) -> Result<Adding> {
        let Self { left, right, scale } = self;
        let [rank, columns] = right.shape();
        Ok(Adding {
            left: left.numbers()?,
            right: right.numbers()?,
            scale: *scale,
            rank,
            row: vec![0.0; columns],
            at: 0,
            whole: Whole::new(size(dtype).unwrap_or(1)),
            dtype: dtype.clone(),
        })
    }
}

/// An addition to a tensor whose elements are passed on block by block.
pub struct Adding {
    left: Vec<f32>,
    right: Vec<f32>,
    scale: f32,
    rank: usize,
    /// The row of the product that is being added.
    row: Vec<f32>,
    /// The number of elements so far.
    at: usize,
    whole: Whole,
    dtype: DType,
}

impl Adding {
    /// Adds to the next block, which may have any length. Each sum is rounded once.
    pub fn block(&mut self, block: &[u8]) -> Vec<u8> {
        let mut numbers = Vec::new();
        widen(&self.dtype, &self.whole.of(block), &mut numbers);
        let mut out = Vec::with_capacity(block.len());
        let mut left = &*numbers;
        while let Some(done) = self.at.checked_rem(self.row.len()).filter(|_| !left.is_empty()) {
            if done == 0 {
                self.multiply(self.at / self.row.len());
            }
            let row = self.row.get(done..).unwrap_or_default();
            let (now, later) = left.split_at(row.len().min(left.len()));
            for (number, delta) in now.iter().zip(row) {
                // A number of at most 32 bits. Numbers of these dtypes always fit.
                #[allow(clippy::cast_possible_truncation)]
                let sum = *number as f32 + delta;
                put(Element::Float(sum.into(), 32), &self.dtype, &mut out);
            }
            self.at += now.len();
            left = later;
        }
        out
    }

    /// Computes a row of the product.
    fn multiply(&mut self, row: usize) {
        self.row.fill(0.0);
        let factors = self.left.chunks_exact(self.rank.max(1)).nth(row).unwrap_or_default();
        for (factor, numbers) in factors.iter().zip(self.right.chunks_exact(self.row.len())) {
            self.row.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += factor * number);
        }
        self.row.iter_mut().for_each(|sum| *sum *= self.scale);
    }
}
