//! Encodes the metadata of messages, and the footer, as flatbuffers.

use arrow_ipc::{
    Block, BoolArgs, Buffer, Endianness, Field, FieldArgs, FieldNode, FixedSizeListArgs,
    FloatingPointArgs, FooterArgs, IntArgs, KeyValue, KeyValueArgs, LargeUtf8Args, MessageArgs,
    MessageHeader, MetadataVersion, Precision, RecordBatchArgs, Schema, SchemaArgs, Type, Utf8Args,
};
use flatbuffers::{FlatBufferBuilder, ForwardsUOffset, UnionWIPOffset, Vector, WIPOffset};
use tenarc::DType;

use super::plan::{Cells, Column, Data, Plan, is_large};
use tenarc_arrow::extension::{self, FIXED_SHAPE_TENSOR, FixedShape};

type Builder<'f> = FlatBufferBuilder<'f>;

pub fn schema(plan: &Plan<'_>) -> Vec<u8> {
    let mut out = Builder::new();
    let schema = put_schema(&mut out, plan);
    message(out, MessageHeader::Schema, schema.as_union_value(), 0)
}

/// Encodes the metadata of a batch with this number of rows. `body` is the length of its body.
pub fn batch(rows: i64, nodes: &[FieldNode], buffers: &[Buffer], body: i64) -> Vec<u8> {
    let mut out = Builder::new();
    let nodes = out.create_vector(nodes);
    let buffers = out.create_vector(buffers);
    let args = RecordBatchArgs {
        length: rows,
        nodes: Some(nodes),
        buffers: Some(buffers),
        ..RecordBatchArgs::default()
    };
    let batch = arrow_ipc::RecordBatch::create(&mut out, &args);
    message(out, MessageHeader::RecordBatch, batch.as_union_value(), body)
}

fn message(
    mut out: Builder<'_>,
    header_type: MessageHeader,
    header: WIPOffset<UnionWIPOffset>,
    body: i64,
) -> Vec<u8> {
    let args = MessageArgs {
        version: MetadataVersion::V5,
        header_type,
        header: Some(header),
        bodyLength: body,
        custom_metadata: None,
    };
    let message = arrow_ipc::Message::create(&mut out, &args);
    out.finish(message, None);
    out.finished_data().to_vec()
}

pub fn footer(plan: &Plan<'_>, blocks: &[Block]) -> Vec<u8> {
    let mut out = Builder::new();
    let schema = put_schema(&mut out, plan);
    let dictionaries = out.create_vector::<Block>(&[]);
    let blocks = out.create_vector(blocks);
    let args = FooterArgs {
        version: MetadataVersion::V5,
        schema: Some(schema),
        dictionaries: Some(dictionaries),
        recordBatches: Some(blocks),
        custom_metadata: None,
    };
    let footer = arrow_ipc::Footer::create(&mut out, &args);
    out.finish(footer, None);
    out.finished_data().to_vec()
}

fn put_schema<'f>(out: &mut Builder<'f>, plan: &Plan<'_>) -> WIPOffset<Schema<'f>> {
    let fields: Vec<_> = plan.columns.iter().map(|column| field(out, column)).collect();
    let fields = out.create_vector(&fields);
    let metadata = plan
        .metadata
        .as_ref()
        .map(|texts| pairs(out, texts.iter().map(|(key, text)| (key.as_str(), text.as_str()))));
    let args = SchemaArgs {
        endianness: Endianness::Little,
        fields: Some(fields),
        custom_metadata: metadata,
        features: None,
    };
    Schema::create(out, &args)
}

type Pairs<'f> = WIPOffset<Vector<'f, ForwardsUOffset<KeyValue<'f>>>>;

fn pairs<'f, 'p>(
    out: &mut Builder<'f>,
    pairs: impl Iterator<Item = (&'p str, &'p str)>,
) -> Pairs<'f> {
    let pairs: Vec<_> = pairs
        .map(|(key, text)| {
            let (key, value) = (out.create_string(key), out.create_string(text));
            KeyValue::create(out, &KeyValueArgs { key: Some(key), value: Some(value) })
        })
        .collect();
    out.create_vector(&pairs)
}

fn field<'f>(out: &mut Builder<'f>, column: &Column<'_>) -> WIPOffset<Field<'f>> {
    match &column.data {
        Data::Texts(texts) if is_large(texts) => {
            let kind = arrow_ipc::LargeUtf8::create(out, &LargeUtf8Args {}).as_union_value();
            put_field(out, column.name, (Type::LargeUtf8, kind), None, None)
        }
        Data::Texts(_) => {
            let kind = arrow_ipc::Utf8::create(out, &Utf8Args {}).as_union_value();
            put_field(out, column.name, (Type::Utf8, kind), None, None)
        }
        Data::Cells(cells) => {
            let element = element(out, &cells.dtype);
            if cells.cell.is_empty() {
                return put_field(out, column.name, element, None, None);
            }
            let item = put_field(out, "item", element, None, None);
            let size = i32::try_from(cells.count).unwrap_or(i32::MAX);
            let list = arrow_ipc::FixedSizeList::create(out, &FixedSizeListArgs { listSize: size });
            let text = fixed_shape(cells).write();
            let extension =
                [(extension::NAME, FIXED_SHAPE_TENSOR), (extension::METADATA, text.as_str())];
            let extension = pairs(out, extension.into_iter());
            let kind = (Type::FixedSizeList, list.as_union_value());
            put_field(out, column.name, kind, Some(item), Some(extension))
        }
    }
}

/// Returns the shape in the order in which the elements are stored. If they are in column-major order, the last
/// dimension comes first.
fn fixed_shape(cells: &Cells<'_>) -> FixedShape {
    let mut shape = cells.cell.clone();
    let permutation = cells.permuted.then(|| (0..shape.len()).rev().collect());
    if cells.permuted {
        shape.reverse();
    }
    FixedShape { shape, permutation, has_names: false }
}

type Kind = (Type, WIPOffset<UnionWIPOffset>);

fn put_field<'f>(
    out: &mut Builder<'f>,
    name: &str,
    (type_type, kind): Kind,
    child: Option<WIPOffset<Field<'f>>>,
    custom_metadata: Option<Pairs<'f>>,
) -> WIPOffset<Field<'f>> {
    let name = out.create_string(name);
    let children = out.create_vector(child.as_slice());
    let args = FieldArgs {
        name: Some(name),
        nullable: false,
        type_type,
        type_: Some(kind),
        dictionary: None,
        children: Some(children),
        custom_metadata,
    };
    Field::create(out, &args)
}

fn element(out: &mut Builder<'_>, dtype: &DType) -> Kind {
    let float = match dtype {
        DType::F16 => Some(Precision::HALF),
        DType::F32 => Some(Precision::SINGLE),
        DType::F64 => Some(Precision::DOUBLE),
        _ => None,
    };
    if let Some(precision) = float {
        let kind = arrow_ipc::FloatingPoint::create(out, &FloatingPointArgs { precision });
        return (Type::FloatingPoint, kind.as_union_value());
    }
    if *dtype == DType::Bool {
        return (Type::Bool, arrow_ipc::Bool::create(out, &BoolArgs {}).as_union_value());
    }
    let is_signed = matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
    let width = dtype.bits().and_then(|bits| i32::try_from(bits).ok()).unwrap_or(8);
    let kind = arrow_ipc::Int::create(out, &IntArgs { bitWidth: width, is_signed });
    (Type::Int, kind.as_union_value())
}
