//! Arrow's canonical extension types for tensors.

use serde::Deserialize;
use serde::de::IgnoredAny;
use tenarc::{Error, Result};

/// The key of a field's metadata that names its extension type.
pub const NAME: &str = "ARROW:extension:name";
/// The key of a field's metadata that holds the parameters of its extension type.
pub const METADATA: &str = "ARROW:extension:metadata";

/// The extension type of a list of fixed size that holds a tensor in each row.
pub const FIXED_SHAPE_TENSOR: &str = "arrow.fixed_shape_tensor";

/// The extension type of byte strings of 16 bytes that are UUIDs.
pub const UUID: &str = "arrow.uuid";

/// The extension type of bools that take a byte each.
pub const BOOL8: &str = "arrow.bool8";

/// The most dimensions of a tensor type that are read.
const MAX_DIMS: usize = 1024;

/// The parameters of a fixed shape tensor.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FixedShape {
    /// The dimensions as they are stored. The elements are in row-major order of this shape.
    pub shape: Vec<usize>,
    /// For each dimension of the tensor, the index of the stored dimension that it is.
    pub permutation: Option<Vec<usize>>,
    /// Whether its dimensions have names.
    pub has_names: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    shape: Vec<usize>,
    #[serde(default)]
    permutation: Option<Vec<usize>>,
    #[serde(default)]
    dim_names: Option<IgnoredAny>,
}

impl FixedShape {
    /// Reads the parameters.
    ///
    /// # Errors
    /// If the text is no JSON object of this form, or has more than 1,024 dimensions.
    pub fn read(text: &str) -> Result<Self> {
        // serde reads structs from arrays, too.
        if !text.trim_start().starts_with('{') {
            return Err(Error::syntax("expected an object with a shape"));
        }
        let Fields { shape, permutation, dim_names } =
            serde_json::from_str(text).map_err(|error| Error::syntax(error.to_string()))?;
        let rank = shape.len();
        if rank > MAX_DIMS {
            return Err(Error::limit(format!(
                "the tensor has {rank} dimensions, expected at most {MAX_DIMS}"
            )));
        }
        if let Some(permutation) = &permutation {
            let mut sorted = permutation.clone();
            sorted.sort_unstable();
            if !sorted.iter().copied().eq(0..rank) {
                let what =
                    format!("expected a permutation of {rank} dimensions, found other numbers");
                return Err(Error::data(what));
            }
        }
        Ok(Self { shape, permutation, has_names: dim_names.is_some() })
    }

    /// Writes the parameters.
    pub fn write(&self) -> String {
        let list =
            |numbers: &[usize]| numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let shape = list(&self.shape);
        match &self.permutation {
            None => format!(r#"{{"shape":[{shape}]}}"#),
            Some(permutation) => {
                format!(r#"{{"shape":[{shape}],"permutation":[{}]}}"#, list(permutation))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_come_back() {
        // The second is an example of Arrow's specification.
        for (text, shape, permutation) in [
            (r#"{"shape":[]}"#, vec![], None),
            (
                r#"{"shape":[100,200,500],"permutation":[2,0,1]}"#,
                vec![100, 200, 500],
                Some(vec![2, 0, 1]),
            ),
        ] {
            let fixed = FixedShape { shape, permutation, has_names: false };
            assert_eq!(FixedShape::read(text).unwrap(), fixed);
            assert_eq!(fixed.write(), text);
        }
        let named = FixedShape::read(r#" {"dim_names": ["C", "H"], "shape": [1, 2] } "#).unwrap();
        assert_eq!((named.shape, named.has_names), (vec![1, 2], true));
    }

    #[test]
    fn what_is_no_shape_is_refused() {
        for wrong in [
            "",
            "{}",
            "[]",
            r#"{"shape":[-1]}"#,
            r#"{"shape":[1.5]}"#,
            r#"{"shape":[1],"shape":[1]}"#,
            r#"{"shape":[1],"permutation":[1]}"#,
            r#"{"shape":[1,2],"permutation":[0,0]}"#,
            r#"{"shape":[1,2],"permutation":[0]}"#,
            r#"{"shape":[1],"other":1}"#,
            r#"{"shape":[1]}x"#,
        ] {
            FixedShape::read(wrong).unwrap_err();
        }
    }
}
