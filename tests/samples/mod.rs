//! The values behind the snapshots and the golden files.
//!
//! A golden file was written from a value here once, so these values never change: what is new
//! gets a sample of its own.

mod plain;
mod tensors;

pub use plain::{enums, flattened, maps, options, records, scalars, value};
pub use tensors::{complex, dtypes, exotic, layouts, mesh, model, optimizer, packed};

/// Defines a test for every sample, which calls a generic function with the sample's name, its
/// value, and whether it is written with typed arrays.
macro_rules! test_every_sample {
    ($function:ident) => {
        samples::test_every_sample! {
            $function;
            model model false;
            optimizer optimizer false;
            records records false;
            scalars scalars false;
            enums enums false;
            options options false;
            flattened flattened false;
            maps maps false;
            dtypes dtypes false;
            layouts layouts false;
            exotic exotic false;
            complex complex false;
            mesh mesh false;
            packed packed true;
            unpacked packed false;
            value value false;
        }
    };
    ($function:ident; $($name:ident $value:ident $typed_arrays:literal;)*) => {
        /// The names of the samples.
        const SAMPLES: &[&str] = &[$(stringify!($name)),*];

        $(#[test]
        fn $name() {
            $function(stringify!($name), &samples::$value(), $typed_arrays);
        })*
    };
}
pub(crate) use test_every_sample;
