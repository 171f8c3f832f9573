//! What a file says of itself: how each dataset is stored.

use hdf5_reader::messages::layout::DataLayout;
use hdf5_reader::object_header::ObjectHeader;
use hdf5_reader::{Dataset, Hdf5File};
use tenarc::Value;

use super::contents::Contents;
use super::{filters, stored};

/// Describes a file: see [`TensorFile::about`](crate::TensorFile::about). What cannot be read of a dataset is null.
pub fn of(file: &Hdf5File, contents: &Contents) -> Value {
    let described = contents.all.iter().map(|(path, dataset, header)| {
        let (layout, chunk) = layout(file, dataset, header);
        let filters = stored::filters(&header.messages).ok();
        let filters = filters.filter(|filters| !filters.is_empty());
        let filters = filters.map(|all| all.iter().map(filters::shown).collect::<Value>());
        [
            ("path", Value::from(&**path)),
            ("shape", dataset.shape().into()),
            ("layout", layout.into()),
            ("chunk", chunk.into()),
            ("filters", filters.into()),
        ]
        .into_iter()
        .collect::<Value>()
    });
    [("datasets", described.collect::<Value>())].into_iter().collect()
}

/// Returns the name of a layout, and the shape of its chunks if it has chunks.
fn layout(
    file: &Hdf5File,
    dataset: &Dataset,
    header: &ObjectHeader,
) -> (Option<&'static str>, Option<Vec<u32>>) {
    // The length is that of the elements, which only old files need.
    match stored::layout(file, dataset, header, 0).as_deref() {
        Ok(DataLayout::Compact { .. }) => (Some("compact"), None),
        Ok(DataLayout::Contiguous { .. }) => (Some("contiguous"), None),
        Ok(DataLayout::Chunked { dims, .. }) => {
            // The size of an element may stand behind the dimensions.
            let dims = dims.get(..dataset.ndim()).unwrap_or(dims);
            (Some("chunked"), Some(dims.to_vec()))
        }
        Err(_) => (None, None),
    }
}
