//! Lists of lists as old programs wrote them, where the element is the repeated group itself:
//!
//! ```text
//! required group rows (LIST) { repeated group array (LIST) { repeated int32 array; } }
//! ```
//!
//! Of three such lists, the library reads no more than two. The usual form has a group between the list and its element. It has
//! the same levels of repetition and definition, so that the same pages are read by it.

use std::sync::Arc;

use parquet::basic::{ConvertedType, Repetition};
use parquet::errors::Result;
use parquet::file::metadata::{FileMetaData, ParquetMetaData, ParquetMetaDataBuilder};
use parquet::schema::types::{SchemaDescriptor, Type};

/// The metadata with such lists in the usual form.
pub fn with_groups(metadata: ParquetMetaData) -> Result<ParquetMetaData> {
    let file = metadata.file_metadata();
    let root = file.schema();
    let usual = usual(root)?;
    if usual == *root {
        return Ok(metadata);
    }
    let file = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_owned),
        file.key_value_metadata().cloned(),
        Arc::new(SchemaDescriptor::new(Arc::new(usual))),
        file.column_orders().cloned(),
    );
    let groups = metadata.row_groups().to_vec();
    Ok(ParquetMetaDataBuilder::new(file).set_row_groups(groups).build())
}

fn usual(of: &Type) -> Result<Type> {
    let Type::GroupType { basic_info, fields } = of else { return Ok(of.clone()) };
    let fields = fields.iter().map(|field| {
        let field = usual(field)?;
        let is_element = is_list(of) && is_list(&field) && is_repeated(&field);
        Ok(Arc::new(if is_element { wrapped(&field)? } else { field }))
    });
    let fields = fields.collect::<Result<_>>()?;
    Ok(Type::GroupType { basic_info: basic_info.clone(), fields })
}

/// The repeated group `list`, with this list as its element.
fn wrapped(list: &Type) -> Result<Type> {
    let element = Type::group_type_builder(list.name())
        .with_repetition(Repetition::REQUIRED)
        .with_converted_type(ConvertedType::LIST)
        .with_fields(list.get_fields().to_vec())
        .build()?;
    Type::group_type_builder("list")
        .with_repetition(Repetition::REPEATED)
        .with_fields(vec![Arc::new(element)])
        .build()
}

fn is_list(of: &Type) -> bool {
    of.is_group() && of.get_basic_info().converted_type() == ConvertedType::LIST
}

fn is_repeated(of: &Type) -> bool {
    let info = of.get_basic_info();
    info.has_repetition() && info.repetition() == Repetition::REPEATED
}
