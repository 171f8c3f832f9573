//! Hand-written `Serialize` and `Deserialize` inside a derived struct, and tensors of any element type.
//!
//! ```sh
//! cargo run --release --example custom
//! ```
//!
//! A sparse matrix consists of three arrays that must be consistent. Its `Serialize` writes views of
//! the arrays, so nothing is copied. Its `Deserialize` checks the arrays, so an inconsistent matrix
//! cannot be read.

use std::error::Error;

use half::f16;
use ndarray::{Array2, ArrayView1, array};
use serde::de::{self, Deserializer};
use serde::ser::{SerializeStruct, Serializer};
use serde::{Deserialize, Serialize};
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor, Tensor};

/// A matrix in compressed sparse row format: the entries of row `r` are those at the positions
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

    /// Checks that the arrays are consistent; every other method relies on it.
    fn check(&self) -> Result<(), String> {
        let entries = self.entries.len();
        if self.at.len() != entries {
            return Err(format!("expected {entries} column numbers, found {}", self.at.len()));
        }
        if let Some(column) = self.at.iter().find(|&&column| column >= self.columns) {
            return Err(format!("column {column} of an entry is not below {}", self.columns));
        }
        let ends_meet = self.starts.first() == Some(&0)
            && self.starts.last().map(|&end| end as usize) == Some(entries);
        if !ends_meet || !self.starts.is_sorted() {
            return Err("row starts must ascend from 0 to the number of entries".into());
        }
        Ok(())
    }
}

impl Serialize for Sparse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Sparse", 4)?;
        fields.serialize_field("columns", &self.columns)?;
        // A `Tensor` of a view is written like a `Tensor` of the array.
        fields.serialize_field("starts", &Tensor(ArrayView1::from(&self.starts)))?;
        fields.serialize_field("at", &Tensor(ArrayView1::from(&self.at)))?;
        fields.serialize_field("entries", &Tensor(ArrayView1::from(&self.entries)))?;
        fields.end()
    }
}

impl<'de> Deserialize<'de> for Sparse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// The same fields with a derived `Deserialize`, not yet checked.
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

/// A derived struct. It need not know how a `Sparse` is stored, or which element type the features have.
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

/// Uses the element types it knows, and keeps the elements of others.
fn describe(features: &DynTensor) -> tenarc::Result<String> {
    Ok(match features.dtype() {
        DType::F32 => format!("they sum to {}", features.view::<f32>()?.sum()),
        DType::F16 => {
            let sum: f32 = features.view::<f16>()?.iter().map(|x| x.to_f32()).sum();
            format!("they sum to {sum}, roughly")
        }
        _ => "kept unchanged".into(),
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let graphs = [
        graph("single", array![[0.25_f32, 0.5], [1.0, 2.0], [4.0, 8.0]])?,
        graph("half", array![0.1, 0.2, 0.3].mapv(f16::from_f32))?,
        graph("eight bits", DynTensor::new(DType::F8E4M3, &[3], Order::C, vec![56, 64, 68])?)?,
        graph("unknown", DynTensor::new(DType::from_name("posit8"), &[3], Order::C, vec![1; 3])?)?,
    ];
    let bytes = tenarc::to_vec(&graphs)?;
    let loaded: Vec<Graph> = tenarc::from_slice(&bytes)?;

    let edges = &loaded[0].edges;
    let vector = [1.0, 2.0, 3.0, 4.0];
    assert_eq!(edges, &graphs[0].edges);
    println!("A sparse matrix with {} entries, inside a derived struct", edges.entries.len());
    println!("  multiplied by {vector:?} gives {:?}\n", edges.times(&vector));

    println!("Tensors of element types known only at run time");
    for Graph { name, features, .. } in &loaded {
        let (dtype, shape) = (features.dtype().name(), format!("{:?}", features.shape()));
        println!("  {name:<11}{dtype:<8}of shape {shape:<7}{}", describe(features)?);
    }
    assert_eq!(tenarc::to_vec(&loaded)?, bytes);
    println!("  Writing them again gives the same bytes.\n");

    println!("An inconsistent sparse matrix");
    let mut broken = graphs;
    broken[1].edges.at[1] = 9;
    match tenarc::from_slice::<Vec<Graph>>(&tenarc::to_vec(&broken)?) {
        Ok(_) => Err("the matrix was accepted".into()),
        Err(error) => {
            println!("  Refused: {error}");
            Ok(())
        }
    }
}
