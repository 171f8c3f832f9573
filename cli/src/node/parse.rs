//! Reading the structure of an item without its payloads.

mod component;
#[cfg(test)]
mod tests;

use std::ops::Range;

use tenarc::tensor::Order;
use tenarc::{DType, DynTensor, Tensor, Value};

use super::{Form, Key, Kind, Node, Payload};
use crate::failure::{Failure, Result};

/// As the library has it.
const MAX_DEPTH: usize = 128;
/// Byte strings from here on are payloads: an archive puts them into buffers.
const LARGE: usize = 2048;
/// A reference to a buffer: `TBUF`, section 5.3 of the specification.
const BUFFER: u64 = 0x5442_5546;

const BREAK: u8 = 0xff;

/// The structure of the item that `bytes` are; `len_of` tells the length of a buffer.
///
/// # Errors
/// Where the bytes are no well-formed item, or refer to what there is not.
pub fn parse(bytes: &[u8], len_of: &dyn Fn(usize) -> Option<u64>) -> Result<Node> {
    let mut parser = Parser { bytes, at: 0, depth: 0, len_of };
    let node = parser.node()?;
    if parser.at != bytes.len() {
        return Err(parser.fault("expected the end of the value"));
    }
    Ok(node)
}

/// Where the items of a sequence stand.
///
/// # Errors
/// Where an item is not well-formed.
pub fn items(bytes: &[u8]) -> Result<Vec<Range<usize>>> {
    let mut parser = Parser { bytes, at: 0, depth: 0, len_of: &|_| None };
    let mut found = Vec::new();
    while parser.at < bytes.len() {
        let start = parser.at;
        parser.skip()?;
        found.push(start..parser.at);
    }
    Ok(found)
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    len_of: &'a dyn Fn(usize) -> Option<u64>,
}

#[derive(Clone, Copy)]
struct Head {
    major: u8,
    arg: u64,
    indefinite: bool,
}

impl Parser<'_> {
    fn fault(&self, what: &str) -> Failure {
        Failure::new(format!("{what} (byte {})", self.at))
    }

    fn peek(&self) -> Result<u8> {
        self.bytes.get(self.at).copied().ok_or_else(|| self.fault("input ended inside a value"))
    }

    fn head(&mut self) -> Result<Head> {
        let initial = self.peek()?;
        let (major, info) = (initial >> 5, initial & 0x1f);
        let width = match info {
            0..24 => 0,
            24..28 => 1usize << (info - 24),
            31 if matches!(major, 2..=5) => {
                self.at += 1;
                return Ok(Head { major, arg: 0, indefinite: true });
            }
            _ => return Err(self.fault(&format!("no item starts with {initial:#04x}"))),
        };
        let start = self.at + 1;
        let Some(arg) = self.bytes.get(start..).and_then(|rest| rest.get(..width)) else {
            return Err(self.fault("input ended inside a value"));
        };
        let arg = if width == 0 {
            info.into()
        } else {
            arg.iter().fold(0, |arg, &byte| arg << 8 | u64::from(byte))
        };
        self.at = start + width;
        Ok(Head { major, arg, indefinite: false })
    }

    fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.fault(&format!("nested deeper than {MAX_DEPTH} levels")));
        }
        Ok(())
    }

    /// Whether another entry of a container follows.
    fn more(&mut self, head: Head, done: u64) -> Result<bool> {
        if !head.indefinite {
            return Ok(done < head.arg);
        }
        let ended = self.peek()? == BREAK;
        if ended {
            self.at += 1;
        }
        Ok(!ended)
    }

    fn string(&mut self, head: Head) -> Result<()> {
        if head.indefinite {
            while self.peek()? != BREAK {
                let chunk = self.head()?;
                if chunk.major != head.major || chunk.indefinite {
                    return Err(self.fault("a chunk of another kind in a string"));
                }
                self.string(chunk)?;
            }
            self.at += 1;
            return Ok(());
        }
        let left = self.bytes.len() - self.at;
        match usize::try_from(head.arg) {
            Ok(len) if len <= left => self.at += len,
            _ => {
                let what = format!("a string of {} bytes, of which {left} are there", head.arg);
                return Err(self.fault(&what));
            }
        }
        Ok(())
    }

    fn skip(&mut self) -> Result<()> {
        let head = self.head()?;
        match head.major {
            0 | 1 | 7 => {}
            2 | 3 => self.string(head)?,
            _ => {
                self.enter()?;
                let mut done = 0;
                let each = if head.major == 5 { 2 } else { 1 };
                while if head.major == 6 { done < 1 } else { self.more(head, done)? } {
                    for _ in 0..each {
                        self.skip()?;
                    }
                    done += 1;
                }
                self.depth -= 1;
            }
        }
        Ok(())
    }

    fn node(&mut self) -> Result<Node> {
        let start = self.at;
        let head = self.head()?;
        let kind = match head.major {
            2 | 3 => {
                self.string(head)?;
                let len = self.at - start;
                if head.major == 2 && len >= LARGE { self.bytes_at(start)? } else { Kind::Leaf }
            }
            4 => {
                self.enter()?;
                let mut nodes = Vec::new();
                while self.more(head, nodes.len() as u64)? {
                    nodes.push(self.node()?);
                }
                self.depth -= 1;
                Kind::Array(nodes)
            }
            5 => {
                self.enter()?;
                let mut entries = Vec::new();
                while self.more(head, entries.len() as u64)? {
                    entries.push((self.key()?, self.node()?));
                }
                self.depth -= 1;
                Kind::Map(entries)
            }
            6 => self.tagged(head.arg, start)?,
            _ => Kind::Leaf,
        };
        Ok(Node { range: start..self.at, kind })
    }

    fn key(&mut self) -> Result<Key> {
        let start = self.at;
        let step = self.component()?;
        Ok(Key { range: start..self.at, step })
    }

    fn value(&self, range: Range<usize>) -> Result<Value> {
        Ok(tenarc::from_slice(self.bytes.get(range).unwrap_or_default())?)
    }

    fn tagged(&mut self, tag: u64, start: usize) -> Result<Kind> {
        if tag == BUFFER {
            let content = self.at;
            self.skip()?;
            return self.reference(content..self.at);
        }
        // Bignums are numbers.
        if matches!(tag, 2 | 3) {
            self.skip()?;
            return Ok(Kind::Leaf);
        }
        if matches!(tag, 40 | 1040 | 43001 | 0x5445_4e53 | 64..=75 | 77..=87) {
            let content = self.at;
            self.skip()?;
            let item = self.bytes.get(start..self.at).unwrap_or_default();
            if let Ok(Tensor(tensor)) = tenarc::from_slice::<Tensor<DynTensor>>(item) {
                let form = if matches!(tag, 64..=87) { Form::Numbers } else { Form::Tensor };
                return Ok(Kind::Payload(Box::new(Payload {
                    form,
                    dtype: tensor.dtype().clone(),
                    shape: tensor.shape().to_vec(),
                    order: tensor.order(),
                    byte_len: tensor.le_bytes().len() as u64,
                    buffer: None,
                })));
            }
            // No tensor after all: a tag as any other.
            self.at = content;
        }
        self.enter()?;
        let inner = self.node()?;
        self.depth -= 1;
        Ok(Kind::Tag(tag, Box::new(inner)))
    }

    fn bytes_at(&self, start: usize) -> Result<Kind> {
        let Value::Bytes(bytes) = self.value(start..self.at)? else {
            return Err(self.fault("expected bytes"));
        };
        Ok(byte_string(bytes.len(), None))
    }

    fn reference(&self, content: Range<usize>) -> Result<Kind> {
        let refused = || self.fault("a reference to a buffer that does not fit it");
        let Value::Array(fields) = self.value(content)? else { return Err(refused()) };
        let number = fields.last().and_then(Value::as_integer);
        let number = number.and_then(|number| usize::try_from(number).ok()).ok_or_else(refused)?;
        let byte_len = (self.len_of)(number).ok_or_else(refused)?;
        let len = usize::try_from(byte_len).map_err(|_| refused())?;
        let dtype = |field: &Value| field.as_str().map(DType::from_name).ok_or_else(refused);
        let (form, dtype, shape, order) = match &fields[..] {
            [_] => return Ok(byte_string(len, Some(number))),
            [name, _] => {
                let dtype = dtype(name)?;
                let size = dtype.bits().map_or(1, |bits| bits / 8).max(1);
                if !len.is_multiple_of(size) {
                    return Err(refused());
                }
                (Form::Numbers, dtype, vec![len / size], Order::C)
            }
            [name, shape, order, _] => {
                let dims = shape.as_array().ok_or_else(refused)?.iter();
                let dims = dims.map(|dim| usize::try_from(dim.as_integer()?).ok());
                let dims = dims.collect::<Option<Vec<_>>>().ok_or_else(refused)?;
                let order = match order.as_str() {
                    Some("F") if dims.len() > 1 => Order::F,
                    Some("C" | "F") => Order::C,
                    _ => return Err(refused()),
                };
                (Form::Tensor, dtype(name)?, dims, order)
            }
            _ => return Err(refused()),
        };
        let payload = Payload { form, dtype, shape, order, byte_len, buffer: Some(number) };
        let bits = payload.count().zip(payload.dtype.bits());
        let fits = match (payload.count(), bits) {
            (None, _) => false,
            (_, Some((count, bits))) => count.checked_mul(bits) == len.checked_mul(8),
            _ => true,
        };
        if fits { Ok(Kind::Payload(Box::new(payload))) } else { Err(refused()) }
    }
}

fn byte_string(len: usize, buffer: Option<usize>) -> Kind {
    Kind::Payload(Box::new(Payload {
        form: Form::Bytes,
        dtype: DType::U8,
        shape: vec![len],
        order: Order::C,
        byte_len: len as u64,
        buffer,
    }))
}
