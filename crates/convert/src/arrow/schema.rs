//! Reads the schema: which columns there are, and as what each of them is read.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_ipc::{Endianness, Field, KeyValue, MetadataVersion, Schema as Stored, Type};
use flatbuffers::{ForwardsUOffset, Vector};
use tenarc::{Error, Result};

use super::cells::{self, Cells};
use super::physical::Physical;
use crate::Losses;
use crate::exported::{Metadata, check_keys};

/// The key of the metadata that says how tensors are laid out. Its value is [`ONE_ROW`] if each tensor is in one cell
/// of a single row.
pub const LAYOUT: &str = "tenarc.layout";
pub const ONE_ROW: &str = "one row";

/// The columns, and the metadata that belong to all of them.
#[derive(Debug)]
pub struct Schema {
    pub columns: Vec<Column>,
    /// The number of columns, including those inside of structs.
    pub count: usize,
    pub metadata: Option<Metadata>,
    pub losses: Losses,
}

/// A column, or a field of a struct.
#[derive(Debug)]
pub struct Column {
    pub number: usize,
    pub name: String,
    /// The names of the structs around the column, and its own, joined by dots.
    pub path: String,
    pub kind: Kind,
}

#[derive(Debug)]
pub enum Kind {
    Tensor(Arc<Cells>),
    Strings(Strings),
    Struct(Vec<Column>),
    /// A column that is left out. Readers skip its buffers.
    Lost(Physical),
}

/// A column of texts, or of byte strings if `text` is false.
#[derive(Clone, Copy, Debug)]
pub struct Strings {
    pub text: bool,
    pub layout: Offsets,
}

/// How a column states the position of each string: by offsets of 32 bits, by offsets of 64 bits, or by views.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offsets {
    Small,
    Large,
    Views,
}

impl Strings {
    fn of(kind: Type) -> Option<Self> {
        let (text, layout) = match kind {
            Type::Utf8 => (true, Offsets::Small),
            Type::LargeUtf8 => (true, Offsets::Large),
            Type::Utf8View => (true, Offsets::Views),
            Type::Binary => (false, Offsets::Small),
            Type::LargeBinary => (false, Offsets::Large),
            Type::BinaryView => (false, Offsets::Views),
            _ => return None,
        };
        Some(Self { text, layout })
    }
}

impl Schema {
    /// Reads a schema. `len` is the length of the metadata or the footer that holds it.
    pub fn read(schema: &Stored<'_>, version: MetadataVersion, len: usize) -> Result<Self> {
        match schema.endianness() {
            Endianness::Little => {}
            Endianness::Big => {
                return Err(Error::unsupported(
                    "the columns are big-endian, expected little-endian",
                ));
            }
            _ => {
                return Err(Error::syntax(
                    "the columns have an unknown byte order, expected little-endian",
                ));
            }
        }
        let metadata = schema.custom_metadata().map(texts);
        check_keys(metadata.as_deref().unwrap_or_default())?;
        // The name of a struct is repeated in the paths of all columns inside of it, so one long name could take much
        // memory.
        let left = len.saturating_mul(16).max(1 << 16);
        let mut reader = Reader { count: 0, left, version, losses: Losses::default() };
        let columns = match schema.fields() {
            Some(fields) => reader.columns(fields, "")?,
            None => Vec::new(),
        };
        Ok(Self { columns, count: reader.count, metadata, losses: reader.losses })
    }
}

type Fields<'a> = Vector<'a, ForwardsUOffset<Field<'a>>>;
type Pairs<'a> = Vector<'a, ForwardsUOffset<KeyValue<'a>>>;

fn texts(pairs: Pairs<'_>) -> Metadata {
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    pairs.iter().map(|pair| (text(pair.key()), text(pair.value()))).collect()
}

struct Reader {
    count: usize,
    /// The number of bytes that further paths may take.
    left: usize,
    version: MetadataVersion,
    losses: Losses,
}

impl Reader {
    fn columns(&mut self, fields: Fields<'_>, parent: &str) -> Result<Vec<Column>> {
        let mut names = HashSet::new();
        let mut columns = Vec::new();
        for field in fields {
            let name = field.name().unwrap_or_default();
            if !names.insert(name) {
                return Err(Error::data("there are two columns of this name").in_field(name));
            }
            let path = match parent {
                "" => name.to_owned(),
                parent => format!("{parent}.{name}"),
            };
            self.left = self
                .left
                .checked_sub(path.len())
                .ok_or_else(|| Error::limit("the paths of nested columns take too much memory"))?;
            let number = self.count;
            self.count += 1;
            let kind = self.kind(&field, &path).map_err(|error| error.in_field(name))?;
            columns.push(Column { number, name: name.to_owned(), path, kind });
        }
        Ok(columns)
    }

    fn kind(&mut self, field: &Field<'_>, path: &str) -> Result<Kind> {
        if field.dictionary().is_none() {
            if let Some(strings) = Strings::of(field.type_type()) {
                cells::lost_metadata(field, path, &mut self.losses);
                return Ok(Kind::Strings(strings));
            }
            if field.type_type() == Type::Struct_ {
                cells::lost_metadata(field, path, &mut self.losses);
                let fields = field.children().map(|fields| self.columns(fields, path));
                return Ok(Kind::Struct(fields.transpose()?.unwrap_or_default()));
            }
            if let Some(cells) = Cells::read(field, path, &mut self.losses)? {
                return Ok(Kind::Tensor(Arc::new(cells)));
            }
        }
        let what = match field.dictionary() {
            Some(_) => "Dictionary",
            None => field.type_type().variant_name().unwrap_or_default(),
        };
        self.losses
            .add(path, format!("a column of Arrow's type {what} is not a tensor: it is left out"));
        Physical::of(field, self.version).map(Kind::Lost)
    }
}
