//! Hands schemas and batches of the version of Arrow that `tenarc-arrow` has to the version that `DataFusion` has, and back.
//!
//! This goes through Arrow's C data interface, whose structs are the same in all versions. No values are copied.
#![allow(unsafe_code)]

use std::sync::Arc;

use arrow_array_60::Array as _;
use datafusion::arrow::array::{Array as _, ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use datafusion::arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};

/// The same schema.
pub fn schema(schema: &arrow_schema_60::Schema) -> Result<SchemaRef, ArrowError> {
    let exported = arrow_schema_60::ffi::FFI_ArrowSchema::try_from(schema);
    let mut exported = exported.map_err(|error| ArrowError::CDataInterface(error.to_string()))?;
    // SAFETY: both types are the struct `ArrowSchema` of the C data interface. `exported` is one that was just made, and
    // is released when it is dropped: `from_raw` takes its content and leaves a released struct, as the interface demands
    // of a move.
    let imported = unsafe { FFI_ArrowSchema::from_raw((&raw mut exported).cast()) };
    Schema::try_from(&imported).map(Arc::new)
}

/// The same batch. The schema must be that of the batch, apart from fields that are nullable only in the schema.
pub fn batch(
    batch: &arrow_array_60::RecordBatch,
    schema: &SchemaRef,
) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| array(column, field)).collect::<Result<_, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
}

fn array(array: &arrow_array_60::ArrayRef, field: &FieldRef) -> Result<ArrayRef, ArrowError> {
    let mut exported = arrow_array_60::ffi::FFI_ArrowArray::new(&array.to_data());
    // SAFETY: both types are the struct `ArrowArray` of the C data interface, and `exported` was just made. Its content is
    // moved, as that of the schema above.
    let imported = unsafe { FFI_ArrowArray::from_raw((&raw mut exported).cast()) };
    // SAFETY: the array is of this type, because the field was made of its type: see `schema`.
    let data = unsafe { from_ffi_and_data_type(imported, field.data_type().clone()) }?;
    Ok(make_array(data))
}

/// The same schema, for `tenarc-arrow`.
pub fn schema_back(schema: &Schema) -> Result<arrow_schema_60::SchemaRef, ArrowError> {
    let mut exported = FFI_ArrowSchema::try_from(schema)?;
    // SAFETY: as in `schema`.
    let imported =
        unsafe { arrow_schema_60::ffi::FFI_ArrowSchema::from_raw((&raw mut exported).cast()) };
    arrow_schema_60::Schema::try_from(&imported).map(Arc::new).map_err(|error| back(&error))
}

/// The same batch, for `tenarc-arrow`. The schema must be that of the batch.
pub fn batch_back(
    batch: &RecordBatch,
    schema: &arrow_schema_60::SchemaRef,
) -> Result<arrow_array_60::RecordBatch, ArrowError> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| {
        let mut exported = FFI_ArrowArray::new(&column.to_data());
        // SAFETY: as in `array`.
        let imported =
            unsafe { arrow_array_60::ffi::FFI_ArrowArray::from_raw((&raw mut exported).cast()) };
        let of = field.data_type().clone();
        // SAFETY: the array is of this type, because the field was made of its type: see `schema_back`.
        let data = unsafe { arrow_array_60::ffi::from_ffi_and_data_type(imported, of) };
        data.map(arrow_array_60::make_array)
    });
    let columns = columns.collect::<Result<_, _>>().map_err(|error| back(&error))?;
    let options = arrow_array_60::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    arrow_array_60::RecordBatch::try_new_with_options(schema.clone(), columns, &options)
        .map_err(|error| back(&error))
}

fn back(error: &arrow_schema_60::ArrowError) -> ArrowError {
    ArrowError::CDataInterface(error.to_string())
}
