//! A type with rules of its own inside a derived struct, and a tensor of any element type.
//!
//! ```sh
//! cargo run --release --example custom
//! ```
//!
//! A sparse matrix is three arrays that must fit each other. Its hand-written `Serialize` borrows
//! them, so nothing is copied on the way out; its `Deserialize` checks them, so no matrix exists
//! that breaks the rules, wherever the bytes came from.

use std::error::Error;

use half::f16;
use ndarray::{Array2, ArrayView1, array};
use serde::de::{self, Deserializer};
use serde::ser::{SerializeStruct, Serializer};
use serde::{Deserialize, Serialize};
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor, Tensor};

/// Compressed sparse rows: the stored entries of row `r` are those numbered
/// `starts[r]..starts[r + 1]`.
#[derive(Debug, PartialEq)]
struct Sparse {
    columns: u32,
    starts: Vec<u32>,
    at: Vec<u32>,
    entries: Vec<f32>,
}

impl Sparse {
    fn from_dense(dense: &Array2<f32>) -> Result<Self, Box<dyn Error>> {
        let (mut starts, mut at, mut entries) = (vec![0], Vec::new(), Vec::new());
        for row in dense.rows() {
            for (column, &entry) in row.indexed_iter().filter(|&(_, &entry)| entry != 0.0) {
                at.push(u32::try_from(column)?);
                entries.push(entry);
            }
            starts.push(u32::try_from(entries.len())?);
        }
        let columns = u32::try_from(dense.ncols())?;
        Ok(Self { columns, starts, at, entries })
    }

    fn times(&self, vector: &[f32]) -> Vec<f32> {
        let row = |bounds: &[u32]| {
            let stored = bounds[0] as usize..bounds[1] as usize;
            let products = stored.map(|i| self.entries[i] * vector[self.at[i] as usize]);
            products.sum()
        };
        self.starts.windows(2).map(row).collect()
    }

    /// What every other method relies on.
    fn check(&self) -> Result<(), String> {
        let entries = self.entries.len();
        if self.at.len() != entries {
            return Err(format!("{} columns for {entries} entries", self.at.len()));
        }
        if let Some(column) = self.at.iter().find(|&&column| column >= self.columns) {
            return Err(format!("an entry in column {column} of {}", self.columns));
        }
        let ends_meet = self.starts.first() == Some(&0)
            && self.starts.last().map(|&end| end as usize) == Some(entries);
        if !ends_meet || !self.starts.is_sorted() {
            return Err("row starts do not ascend from zero to the number of entries".into());
        }
        Ok(())
    }
}

impl Serialize for Sparse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Sparse", 4)?;
        fields.serialize_field("columns", &self.columns)?;
        // A view in a `Tensor` is written like the array it borrows.
        fields.serialize_field("starts", &Tensor(ArrayView1::from(&self.starts)))?;
        fields.serialize_field("at", &Tensor(ArrayView1::from(&self.at)))?;
        fields.serialize_field("entries", &Tensor(ArrayView1::from(&self.entries)))?;
        fields.end()
    }
}

impl<'de> Deserialize<'de> for Sparse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// The same fields without the rules: the part that can be derived.
        #[derive(Deserialize)]
        struct Unchecked {
            columns: u32,
            starts: Tensor<Vec<u32>>,
            at: Tensor<Vec<u32>>,
            entries: Tensor<Vec<f32>>,
        }
        let unchecked = Unchecked::deserialize(deserializer)?;
        let sparse = Self {
            columns: unchecked.columns,
            starts: unchecked.starts.into_inner(),
            at: unchecked.at.into_inner(),
            entries: unchecked.entries.into_inner(),
        };
        sparse.check().map_err(de::Error::custom)?;
        Ok(sparse)
    }
}

/// Knows nothing of how a `Sparse` is stored, nor of what its features are numbers of.
#[derive(Serialize, Deserialize)]
struct Graph {
    name: String,
    edges: Sparse,
    #[serde(with = "tenarc::tensor")]
    features: DynTensor,
}

/// A graph of three nodes, one of them with an edge to a fourth outside it.
fn graph(name: &str, features: impl Into<DynTensor>) -> Result<Graph, Box<dyn Error>> {
    let weights = array![[0.0, 1.0, 0.0, 0.5], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 2.0, 0.0]];
    let edges = Sparse::from_dense(&weights)?;
    Ok(Graph { name: name.into(), edges, features: features.into() })
}

/// Uses the element types it knows; those of tomorrow need not stop it.
fn describe(features: &DynTensor) -> tenarc::Result<String> {
    Ok(match features.dtype() {
        DType::F32 => format!("they sum to {}", features.view::<f32>()?.sum()),
        DType::F16 => {
            let sum: f32 = features.view::<f16>()?.iter().map(|x| x.to_f32()).sum();
            format!("they sum to {sum}, roughly")
        }
        _ => "kept as they are".into(),
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let graphs = [
        graph("single", array![[0.25_f32, 0.5], [1.0, 2.0], [4.0, 8.0]])?,
        graph("half", array![0.1, 0.2, 0.3].mapv(f16::from_f32))?,
        graph("eight bits", DynTensor::new(DType::F8E4M3, &[3], Order::C, vec![56, 64, 68])?)?,
        graph(
            "unheard of",
            DynTensor::new(DType::from_name("posit8"), &[3], Order::C, vec![1; 3])?,
        )?,
    ];
    let bytes = tenarc::to_vec(&graphs)?;
    let loaded: Vec<Graph> = tenarc::from_slice(&bytes)?;

    let edges = &loaded[0].edges;
    let vector = [1.0, 2.0, 3.0, 4.0];
    assert_eq!(edges, &graphs[0].edges);
    println!("A sparse matrix with {} entries inside a derived struct", edges.entries.len());
    println!("  times {vector:?} is {:?}\n", edges.times(&vector));

    println!("Tensors of element types known only at run time");
    for Graph { name, features, .. } in &loaded {
        let (dtype, shape) = (features.dtype().name(), format!("{:?}", features.shape()));
        println!("  {name:<11}{dtype:<8}of shape {shape:<7}{}", describe(features)?);
    }
    assert_eq!(tenarc::to_vec(&loaded)?, bytes);
    println!("  Written again, they are the same bytes.\n");

    println!("A sparse matrix that breaks its rules");
    let mut broken = graphs;
    broken[1].edges.at[1] = 9;
    match tenarc::from_slice::<Vec<Graph>>(&tenarc::to_vec(&broken)?) {
        Ok(_) => Err("it was taken".into()),
        Err(error) => {
            println!("  Refused: {error}");
            Ok(())
        }
    }
}
