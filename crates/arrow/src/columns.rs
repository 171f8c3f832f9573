//! Finds the groups of columns, and the parts of each column, in the metadata of a segment (`SPEC.md`, section 7).

use std::ops::Range;

use serde::de::DeserializeOwned;
use tenarc::archive::Segment;
use tenarc::inspect::{COLUMNS, Event, Form, Item, Items, Key, Payload};
use tenarc::io::ReadAt;
use tenarc::tensor::{Order, TensorMeta};
use tenarc::{DType, Error, Result, Value};

/// The most rows of a group (`SPEC.md`, section 7).
const MAX_ROWS: usize = 1 << 16;

/// A group of rows and the column that holds them.
pub struct Group {
    pub rows: usize,
    pub column: Column,
}

/// Bits, numbers or bytes of a column.
pub struct Part {
    /// The range of the item in the metadata.
    pub at: Range<usize>,
    /// The number of the buffer, if the item is a reference to one.
    pub buffer: Option<u64>,
}

/// A column, and where its parts are.
pub enum Column {
    Unit,
    Bools(Part),
    Numbers(DType, Part),
    Tensors(TensorMeta, Part),
    Texts(Lengths, Part),
    Bytes(Lengths, Part),
    /// Optional values. `is_missing` is whether a value that is not there is a missing field, rather than null.
    Optional {
        bits: Part,
        column: Box<Column>,
        is_missing: bool,
    },
    List(Lengths, Box<Column>),
    Tuple(Vec<Column>),
    Map(Lengths, Box<(Column, Column)>),
    Struct(Vec<(String, Column)>),
    /// Variants: a code for each row, which is an index into the variants. A variant has a name, and a column of the rows
    /// with its code if it has content.
    Enum {
        codes: Part,
        variants: Vec<(String, Option<Column>)>,
    },
    /// Values of a type with this name and these parameters.
    Typed {
        name: String,
        parameters: Vec<Value>,
        column: Box<Column>,
    },
    /// Rows that do not fit any other kind of column. Each is stored as an item.
    Rows,
    /// Distinct rows, and a code for each row, which is an index into them.
    Dict {
        codes: Part,
        count: usize,
        column: Box<Column>,
    },
}

/// The length of each row: the same for all, or an array of lengths.
pub enum Lengths {
    All(usize),
    Each(Part),
}

/// Returns whether a value is a sequence that is stored as columns.
pub fn are<S: ReadAt + ?Sized>(segment: &Segment<'_, S>) -> Result<bool> {
    let mut walk = Walk { items: segment.inspect()?, bytes: segment.metadata()? };
    Ok(matches!(walk.next()?.event, Event::Tag(COLUMNS)))
}

/// Finds the groups of a sequence. `None` if it is not stored as columns.
pub fn groups<S: ReadAt + ?Sized>(segment: &Segment<'_, S>) -> Result<Option<Vec<Group>>> {
    let mut walk = Walk { items: segment.inspect()?, bytes: segment.metadata()? };
    if !matches!(walk.next()?.event, Event::Tag(COLUMNS)) {
        return Ok(None);
    }
    walk.expect(|event| matches!(event, Event::Array), "an array of groups")?;
    let mut groups = Vec::new();
    loop {
        let item = walk.next()?;
        if item.event == Event::End {
            return Ok(Some(groups));
        }
        let rows: usize = walk.decoded(&item)?;
        if rows > MAX_ROWS {
            let what = format!("a group has {rows} rows, expected at most {MAX_ROWS}");
            return Err(Error::damaged(what).at(item.range.start as u64));
        }
        groups.push(Group { rows, column: walk.column()? });
    }
}

impl Part {
    fn of(item: Item<'_>) -> Self {
        let buffer = match item.event {
            Event::Payload(payload) => payload.buffer,
            // Small blocks are in the metadata.
            _ => None,
        };
        Self { at: item.range, buffer }
    }
}

struct Walk<'m> {
    items: Items<'m>,
    bytes: &'m [u8],
}

impl<'m> Walk<'m> {
    fn next(&mut self) -> Result<Item<'m>> {
        self.items.next().unwrap_or_else(|| Err(Error::eof("an item")))
    }

    fn expect(&mut self, is: impl Fn(&Event<'m>) -> bool, what: &str) -> Result<Part> {
        let item = self.next()?;
        if is(&item.event) {
            return Ok(Part::of(item));
        }
        Err(Error::damaged(format!("columns: expected {what}")).at(item.range.start as u64))
    }

    fn bytes(&self, item: &Item<'_>) -> &'m [u8] {
        self.bytes.get(item.range.clone()).unwrap_or_default()
    }

    fn decoded<T: DeserializeOwned>(&self, item: &Item<'_>) -> Result<T> {
        let value = tenarc::from_slice(self.bytes(item));
        value.map_err(|error| error.moved_by(item.range.start as u64))
    }

    /// Reads the items of an array up to its end.
    fn rest<T>(
        &mut self,
        mut read: impl FnMut(&mut Self, Item<'m>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut found = Vec::new();
        loop {
            match self.next()? {
                Item { event: Event::End, .. } => return Ok(found),
                item => found.push(read(self, item)?),
            }
        }
    }

    fn text(&mut self) -> Result<String> {
        let item = self.next()?;
        self.decoded(&item)
    }

    /// Reads a text, a byte string, or a reference to a byte string.
    fn string(&mut self) -> Result<Part> {
        self.expect(
            |event| match event {
                Event::Bytes | Event::Text => true,
                Event::Payload(payload) => payload.form == Form::Bytes,
                _ => false,
            },
            "a text or a byte string",
        )
    }

    fn numbers(&mut self) -> Result<Part> {
        let is_numbers = |event: &Event<'_>| matches!(event, Event::Payload(found) if found.form == Form::Numbers);
        self.expect(is_numbers, "a typed array")
    }

    fn lengths(&mut self) -> Result<Lengths> {
        let item = self.next()?;
        Ok(match &item.event {
            Event::Payload(payload) if payload.form == Form::Numbers => {
                Lengths::Each(Part::of(item))
            }
            _ => Lengths::All(self.decoded(&item)?),
        })
    }

    /// Reads a column. [`Items`] limits the depth of nesting.
    fn column(&mut self) -> Result<Column> {
        let item = self.next()?;
        self.column_of(item)
    }

    /// Reads the column that starts with this item.
    fn column_of(&mut self, item: Item<'m>) -> Result<Column> {
        let at = item.range.start as u64;
        match item.event {
            Event::Payload(Payload { form, meta, buffer, .. }) => {
                let part = Part { at: item.range, buffer };
                match form {
                    Form::Numbers => Ok(Column::Numbers(meta.dtype, part)),
                    Form::Tensor if meta.order == Order::F => {
                        let what = "the tensor of a column must have order C, found F";
                        Err(Error::data(what).at(at))
                    }
                    Form::Tensor => Ok(Column::Tensors(meta, part)),
                    Form::Bytes => {
                        Err(Error::damaged("columns: expected a column, found bytes").at(at))
                    }
                }
            }
            Event::Map => {
                let mut fields: Vec<(String, Column)> = Vec::new();
                loop {
                    match self.next()?.event {
                        Event::End => return Ok(Column::Struct(fields)),
                        Event::Key(Key::Text(name)) => {
                            fields.push((name.into_owned(), self.column()?));
                        }
                        _ => {
                            let what = "columns: expected the name of a field, found another key";
                            return Err(Error::damaged(what).at(at));
                        }
                    }
                }
            }
            Event::Array => {
                let kind = self.text()?;
                self.kind(&kind, at)
            }
            _ => Err(Error::damaged("columns: expected a column, found another item").at(at)),
        }
    }

    /// Reads the rest of a column that is an array and starts with this kind.
    fn kind(&mut self, kind: &str, at: u64) -> Result<Column> {
        let column = match kind {
            "unit" => Column::Unit,
            "bool" => Column::Bools(self.string()?),
            "text" => Column::Texts(self.lengths()?, self.string()?),
            "bytes" => Column::Bytes(self.lengths()?, self.string()?),
            "option" | "present" => {
                let bits = self.string()?;
                let column = Box::new(self.column()?);
                Column::Optional { bits, column, is_missing: kind == "present" }
            }
            "list" | "array" => Column::List(self.lengths()?, Box::new(self.column()?)),
            "map" => Column::Map(self.lengths()?, Box::new((self.column()?, self.column()?))),
            "tuple" => {
                self.expect(|event| matches!(event, Event::Array), "an array of columns")?;
                Column::Tuple(self.rest(Self::column_of)?)
            }
            "enum" => {
                let codes = self.numbers()?;
                self.expect(|event| matches!(event, Event::Array), "an array of names")?;
                let names = self.rest(|walk, item| walk.decoded(&item))?;
                let mut columns = Vec::new();
                // Without content, the array of the enum ends here.
                if self.next()?.event == Event::Array {
                    columns = self.rest(|walk, item| match item.event {
                        Event::Null => Ok(None),
                        _ => walk.column_of(item).map(Some),
                    })?;
                    self.expect(|event| *event == Event::End, "the end of a column")?;
                    if columns.len() != names.len() {
                        let (expected, found) = (names.len(), columns.len());
                        let what =
                            format!("columns of variants: expected {expected}, found {found}");
                        return Err(Error::damaged(what).at(at));
                    }
                }
                columns.resize_with(names.len(), || None);
                return Ok(Column::Enum {
                    codes,
                    variants: names.into_iter().zip(columns).collect(),
                });
            }
            "rows" => {
                self.items.leave()?;
                return Ok(Column::Rows);
            }
            "dict" => {
                let codes = self.numbers()?;
                let item = self.next()?;
                let count = self.decoded(&item)?;
                Column::Dict { codes, count, column: Box::new(self.column()?) }
            }
            "type" => {
                let name = self.text()?;
                self.expect(|event| matches!(event, Event::Array), "an array of parameters")?;
                let parameters = self.rest(|walk, item| walk.decoded(&item))?;
                Column::Typed { name, parameters, column: Box::new(self.column()?) }
            }
            _ => {
                let what = format!("columns: unknown kind `{}`", kind.escape_debug());
                return Err(Error::data(what).at(at));
            }
        };
        self.expect(|event| *event == Event::End, "the end of a column")?;
        Ok(column)
    }
}
