//! Arrow's own crates read what is written here, and what they write is read here.

use std::io::Cursor;
use std::sync::Arc;

use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, PrimitiveArray, RecordBatch, StringArray,
    StructArray,
};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_ipc::CompressionType;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use half::f16;
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor};
use tenarc_convert::Options;
use tenarc_convert::arrow::{ArrowFile, Layout};

use super::support::{DTYPES, both, quick, tensor};

fn data_type(dtype: &DType) -> DataType {
    match dtype {
        DType::Bool => DataType::Boolean,
        DType::U8 => DataType::UInt8,
        DType::U16 => DataType::UInt16,
        DType::U32 => DataType::UInt32,
        DType::U64 => DataType::UInt64,
        DType::I8 => DataType::Int8,
        DType::I16 => DataType::Int16,
        DType::I32 => DataType::Int32,
        DType::I64 => DataType::Int64,
        DType::F16 => DataType::Float16,
        DType::F32 => DataType::Float32,
        DType::F64 => DataType::Float64,
        other => panic!("{other}"),
    }
}

/// Elements of a column as bytes; bools a byte each.
fn bytes(column: &dyn Array) -> Vec<u8> {
    if let Some(lists) = column.as_any().downcast_ref::<FixedSizeListArray>() {
        return (0..lists.len()).flat_map(|row| bytes(&lists.value(row))).collect();
    }
    if let Some(bools) = column.as_any().downcast_ref::<BooleanArray>() {
        return bools.values().iter().map(u8::from).collect();
    }
    let data = column.to_data();
    let width = data.data_type().primitive_width().unwrap();
    let start = data.offset() * width;
    data.buffers()[0].as_slice()[start..start + data.len() * width].to_vec()
}

/// A column of plain elements.
fn column(tensor: &DynTensor) -> ArrayRef {
    fn of<T: arrow_array::ArrowPrimitiveType>(bytes: &[u8]) -> ArrayRef {
        let len = bytes.len() / size_of::<T::Native>();
        // Aligned, as arrays must be.
        let mut buffer = arrow_buffer::MutableBuffer::new(bytes.len());
        buffer.extend_from_slice(bytes);
        let values = arrow_buffer::ScalarBuffer::new(Buffer::from(buffer), 0, len);
        Arc::new(PrimitiveArray::<T>::new(values, None))
    }
    let bytes = tensor.le_bytes();
    match tensor.dtype() {
        DType::Bool => {
            Arc::new(bytes.iter().map(|&byte| Some(byte != 0)).collect::<BooleanArray>())
        }
        DType::U8 => of::<UInt8Type>(&bytes),
        DType::U16 => of::<UInt16Type>(&bytes),
        DType::U32 => of::<UInt32Type>(&bytes),
        DType::U64 => of::<UInt64Type>(&bytes),
        DType::I8 => of::<Int8Type>(&bytes),
        DType::I16 => of::<Int16Type>(&bytes),
        DType::I32 => of::<Int32Type>(&bytes),
        DType::I64 => of::<Int64Type>(&bytes),
        DType::F16 => of::<Float16Type>(&bytes),
        DType::F32 => of::<Float32Type>(&bytes),
        DType::F64 => of::<Float64Type>(&bytes),
        other => panic!("{other}"),
    }
}

/// A column of lists in lists, of plain elements.
fn lists(tensor: &DynTensor) -> ArrayRef {
    let mut found = column(tensor);
    for &size in tensor.shape()[1..].iter().rev() {
        let field = Arc::new(Field::new("item", found.data_type().clone(), false));
        found = Arc::new(FixedSizeListArray::new(field, i32::try_from(size).unwrap(), found, None));
    }
    found
}

fn read(bytes: Vec<u8>) -> Vec<RecordBatch> {
    let batches: Result<Vec<_>, ArrowError> = if bytes.starts_with(b"ARROW1") {
        FileReader::try_new(Cursor::new(bytes), None).unwrap().collect()
    } else {
        StreamReader::try_new(Cursor::new(bytes), None).unwrap().collect()
    };
    batches.unwrap()
}

fn write(batches: &[RecordBatch], options: &IpcWriteOptions) -> [Vec<u8>; 2] {
    let schema = batches[0].schema();
    let (mut file, mut stream) = (Vec::new(), Vec::new());
    let mut out = FileWriter::try_new_with_options(&mut file, &schema, options.clone()).unwrap();
    for batch in batches {
        out.write(batch).unwrap();
    }
    out.finish().unwrap();
    drop(out);
    let mut out =
        StreamWriter::try_new_with_options(&mut stream, &schema, options.clone()).unwrap();
    for batch in batches {
        out.write(batch).unwrap();
    }
    out.finish().unwrap();
    drop(out);
    [file, stream]
}

fn options() -> Vec<IpcWriteOptions> {
    let (v4, v5) = (arrow_ipc::MetadataVersion::V4, arrow_ipc::MetadataVersion::V5);
    let of = |alignment, version| IpcWriteOptions::try_new(alignment, false, version).unwrap();
    let lz4 = Some(CompressionType::LZ4_FRAME);
    vec![of(8, v5), of(64, v5), of(64, v4), of(8, v5).try_with_compression(lz4).unwrap()]
}

#[test]
fn arrow_reads_rows() {
    let names: Vec<String> = DTYPES.iter().map(ToString::to_string).collect();
    for shape in [&[13][..], &[13, 3], &[13, 2, 5], &[13, 0], &[13, 1, 1]] {
        let tensors: Vec<(&str, DynTensor)> = DTYPES
            .iter()
            .zip(&names)
            .map(|(dtype, name)| (name.as_str(), tensor(dtype, shape, Order::C, 3)))
            .collect();
        for per_batch in [1, 4, 13, 100] {
            for written in both(&tensors, &quick().with_rows_per_batch(per_batch)) {
                let batches = read(written);
                assert_eq!(batches.len(), 13usize.div_ceil(per_batch));
                for (name, tensor) in &tensors {
                    let found: Vec<u8> = batches
                        .iter()
                        .flat_map(|batch| bytes(batch.column_by_name(name).unwrap()))
                        .collect();
                    assert_eq!(found, &*tensor.le_bytes(), "{name} {shape:?}");
                }
                let schema = batches[0].schema();
                for (field, dtype) in schema.fields().iter().zip(&DTYPES) {
                    if shape.len() == 1 {
                        assert_eq!(field.data_type(), &data_type(dtype));
                        continue;
                    }
                    let name = field.extension_type_name();
                    assert_eq!(name, Some("arrow.fixed_shape_tensor"));
                    let dims: Vec<String> = shape[1..].iter().map(usize::to_string).collect();
                    let expected = format!(r#"{{"shape":[{}]}}"#, dims.join(","));
                    assert_eq!(field.extension_type_metadata(), Some(&*expected));
                }
            }
        }
    }
}

#[test]
fn arrow_reads_one_row() {
    let tensors = [
        ("scalar", tensor(&DType::F64, &[], Order::C, 1)),
        ("flag", DynTensor::new(DType::Bool, &[], Order::C, vec![1]).unwrap()),
        ("matrix", tensor(&DType::U16, &[2, 3], Order::F, 1)),
        ("bools", tensor(&DType::Bool, &[19], Order::C, 1)),
        ("nothing", tensor(&DType::U16, &[0, 3], Order::C, 1)),
    ];
    for written in both(&tensors, &quick().with_layout(Layout::OneRow)) {
        let batches = read(written);
        assert_eq!(batches.len(), 1);
        let schema = batches[0].schema();
        assert_eq!(schema.metadata()["tenarc.layout"], "one row");
        for (name, tensor) in &tensors {
            let column = batches[0].column_by_name(name).unwrap();
            assert_eq!(
                (column.len(), bytes(column)),
                (1, tensor.le_bytes().into_owned()),
                "{name}"
            );
        }
        let matrix = schema.field_with_name("matrix").unwrap();
        assert_eq!(
            matrix.extension_type_metadata(),
            Some(r#"{"shape":[3,2],"permutation":[1,0]}"#)
        );
    }
}

#[test]
fn what_arrow_writes_is_read() {
    let mut fields = Vec::new();
    let mut columns = Vec::new();
    let mut expected = Vec::new();
    for (number, dtype) in DTYPES.iter().enumerate() {
        for shape in [&[23][..], &[23, 3], &[23, 2, 5]] {
            let whole = tensor(dtype, shape, Order::C, u8::try_from(number).unwrap());
            let name = format!("{dtype} {}", shape.len());
            let column = lists(&whole);
            fields.push(Field::new(&name, column.data_type().clone(), number % 2 == 0));
            columns.push(column);
            expected.push((name, whole));
        }
    }
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
    for options in options() {
        // Slices, of which neither bytes nor bitmaps begin where buffers do.
        let batches =
            [batch.slice(0, 5), batch.slice(5, 0), batch.slice(5, 17), batch.slice(22, 1)];
        for written in write(&batches, &options) {
            let file = ArrowFile::new(&written[..]).unwrap();
            assert!(file.losses().is_empty(), "{}", file.losses());
            for (name, tensor) in &expected {
                assert_eq!(&file.dyn_tensor(name).unwrap(), tensor, "{name}");
            }
        }
    }
}

#[test]
fn texts_and_structs_of_arrow_are_read() {
    let words: Vec<String> = (0..50).map(|number| "é".repeat(number % 5)).collect();
    let texts: ArrayRef = Arc::new(StringArray::from(words.clone()));
    let x = tensor(&DType::F32, &[50, 2], Order::C, 1);
    let inner = vec![
        (Arc::new(Field::new("x", lists(&x).data_type().clone(), false)), lists(&x)),
        (Arc::new(Field::new("words", DataType::Utf8, false)), Arc::clone(&texts)),
    ];
    let point: ArrayRef = Arc::new(StructArray::from(inner));
    let batch = RecordBatch::try_from_iter([("point", point), ("words", texts)]).unwrap();
    for options in options() {
        for written in write(&[batch.slice(1, 20), batch.slice(21, 29)], &options) {
            let file = ArrowFile::new(&written[..]).unwrap();
            assert_eq!(file.texts("words").unwrap(), words[1..]);
            assert_eq!(file.texts("point.words").unwrap(), words[1..]);
            let found = file.dyn_tensor("point.x").unwrap();
            assert_eq!(*found.le_bytes(), x.le_bytes()[8..]);
        }
    }
}

#[test]
fn nulls_are_found_wherever_they_are() {
    let values = || Arc::new(PrimitiveArray::<Int32Type>::from_iter_values(0..40));
    let item = || Arc::new(Field::new("item", DataType::Int32, true));
    for at in [0, 7, 8, 38, 39] {
        let valid: Vec<bool> = (0..40).map(|row| row != at).collect();
        let plain: ArrayRef = Arc::new(PrimitiveArray::<Int32Type>::new(
            (0..40).collect::<Vec<i32>>().into(),
            Some(NullBuffer::from(valid.clone())),
        ));
        let inside: ArrayRef =
            Arc::new(FixedSizeListArray::new(item(), 1, Arc::clone(&plain), None));
        let lists: ArrayRef = Arc::new(FixedSizeListArray::new(
            item(),
            1,
            values(),
            Some(NullBuffer::from(valid.clone())),
        ));
        let inner = Arc::new(Field::new("a", DataType::Int32, true));
        let structs: ArrayRef = Arc::new(StructArray::new(
            vec![inner].into(),
            vec![values() as ArrayRef],
            Some(NullBuffer::from(valid)),
        ));
        let sound: ArrayRef = values();
        let columns = [
            ("plain", plain),
            ("inside", inside),
            ("lists", lists),
            ("structs", structs),
            ("sound", sound),
        ];
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.iter().map(|(name, column)| (*name, Arc::clone(column), true)),
        )
        .unwrap();
        for options in options() {
            for written in write(&[batch.slice(0, 39), batch.slice(39, 1)], &options) {
                let file = ArrowFile::new(&written[..]).unwrap();
                let paths: Vec<&str> =
                    file.tensors().iter().map(tenarc::tensor::TensorInfo::path).collect();
                assert_eq!((paths, file.losses().count()), (vec!["sound"], 4));
            }
        }
    }
    let halves = PrimitiveArray::<Float16Type>::from_iter_values([f16::NAN, f16::NEG_INFINITY]);
    let batch = RecordBatch::try_from_iter([("halves", Arc::new(halves) as ArrayRef)]).unwrap();
    for written in write(&[batch], &IpcWriteOptions::default()) {
        let file = ArrowFile::new(&written[..]).unwrap();
        let found: ndarray::Array1<f16> = file.tensor("halves").unwrap();
        assert!(found[0].is_nan() && found[1] == f16::NEG_INFINITY);
    }
}

/// Many batches, of which each is small.
#[test]
fn many_batches_are_one_tensor() {
    let tensors = [("x", tensor(&DType::Bool, &[1000], Order::C, 0))];
    for written in both(&tensors, &Options::default().with_rows_per_batch(3)) {
        let file = ArrowFile::new(&written[..]).unwrap();
        assert_eq!(file.dyn_tensor("x").unwrap(), tensors[0].1);
        assert_eq!(read(written).len(), 334);
    }
}
