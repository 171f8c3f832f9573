//! The stack machine that runs pickles: a stack, marks in it, and a memo.

use std::collections::HashMap;

use tenarc::{Error, Result};

use super::heap::{Heap, Made};
use super::input::Input;
use super::object::{Dict, Object, Origin, Value};
use super::{build, global};
use crate::support::integer_of;

/// A pickle that was read.
#[derive(Debug)]
pub struct Pickle {
    pub objects: Vec<Object>,
    /// The value that the pickle makes.
    pub root: Value,
    /// Whether some of the lists were sets or deques.
    pub has_sets: bool,
    /// Whether flags of buffers were left out.
    pub has_flags: bool,
    /// The origins of objects that became plain data, by the numbers of the objects.
    pub origins: HashMap<usize, Origin>,
}

/// The state of the machine between two opcodes. Several pickles can be read one after the other; objects stay.
#[derive(Default)]
pub struct Machine {
    pub heap: Heap,
    stack: Vec<Value>,
    /// The height of the stack at each mark.
    marks: Vec<usize>,
    memo: HashMap<u32, Value>,
}

impl Machine {
    /// Creates a machine for the metadata of a distributed checkpoint, which may be longer than other pickles.
    pub fn for_metadata() -> Self {
        Self { heap: Heap::for_metadata(), ..Self::default() }
    }

    /// Reads a pickle that fills `bytes`, and returns its value. The names of its storages start with `folder`.
    pub fn read(&mut self, bytes: &[u8], folder: &'static str) -> Result<Value> {
        let (root, len) = self.read_first(bytes, folder)?;
        match bytes.len() - len {
            0 => Ok(root),
            left => {
                let what = format!("{left} bytes follow the end of the pickle");
                Err(Error::syntax(what).at(len as u64))
            }
        }
    }

    /// Reads the pickle at the start of `bytes`, and returns its value and its length.
    pub fn read_first(&mut self, bytes: &[u8], folder: &'static str) -> Result<(Value, usize)> {
        self.stack.clear();
        self.marks.clear();
        self.memo.clear();
        self.heap.folder = folder;
        let mut input = Input::new(bytes);
        loop {
            let at = input.position();
            self.heap.count().map_err(|error| error.at(at))?;
            let code = input.u8()?;
            if code == b'.' {
                let root = self.end().map_err(|error| error.at(at))?;
                return Ok((root, bytes.len() - input.left()));
            }
            self.step(code, &mut input).map_err(|error| error.at(at))?;
        }
    }

    fn end(&mut self) -> Result<Value> {
        let root = self.pop()?;
        if !self.stack.is_empty() || !self.marks.is_empty() {
            return Err(Error::syntax("the pickle ends with more than one value"));
        }
        Ok(root)
    }

    /// Returns the pickle whose value is `root`.
    pub fn finish(self, root: Value) -> Pickle {
        let Heap { objects, has_sets, has_flags, .. } = self.heap;
        Pickle { objects, root, has_sets, has_flags, origins: HashMap::new() }
    }

    /// Runs one opcode. The comments give the names of opcodes in Python's module `pickletools`.
    fn step(&mut self, code: u8, input: &mut Input<'_>) -> Result<()> {
        match code {
            // PROTO
            0x80 => match input.u8()? {
                2..=5 => Ok(()),
                found => Err(Error::unsupported(format!(
                    "expected pickle protocol 2 to 5, found {found}"
                ))),
            },
            // FRAME
            0x95 => input.array::<8>().map(drop),
            b'(' => {
                self.marks.push(self.stack.len());
                Ok(())
            }
            // POP, POP_MARK, DUP
            b'0' => match self.marks.last() {
                Some(&mark) if mark == self.stack.len() => self.marked().map(drop),
                _ => self.pop().map(drop),
            },
            b'1' => self.marked().map(drop),
            b'2' => {
                let top = self.top()?;
                self.push(top)
            }
            b'N' => self.push(Value::None),
            0x88 => self.push(Value::Bool(true)),
            0x89 => self.push(Value::Bool(false)),
            // BININT, BININT1, BININT2, LONG1, LONG4
            b'J' => {
                let number = input.array().map(i32::from_le_bytes)?;
                self.push(Value::Int(number.into()))
            }
            b'K' => {
                let number = input.u8()?;
                self.push(Value::Int(number.into()))
            }
            b'M' => {
                let number = input.array().map(u16::from_le_bytes)?;
                self.push(Value::Int(number.into()))
            }
            0x8a => self.long(input.counted(1)?),
            0x8b => self.long(input.counted(4)?),
            // BINFLOAT
            b'G' => {
                let number = input.array().map(f64::from_be_bytes)?;
                self.push(Value::Float(number))
            }
            // BINUNICODE, SHORT_BINUNICODE, BINUNICODE8
            b'X' => self.make(Object::Text(input.text(4)?.into())),
            0x8c => self.make(Object::Text(input.text(1)?.into())),
            0x8d => self.make(Object::Text(input.text(8)?.into())),
            // BINBYTES, SHORT_BINBYTES, BINBYTES8, BYTEARRAY8
            b'B' => self.make(Object::Bytes(input.counted(4)?.into())),
            b'C' => self.make(Object::Bytes(input.counted(1)?.into())),
            // BINSTRING, SHORT_BINSTRING: Python 2 writes them, and its texts are bytes.
            b'T' => self.make(text_or_bytes(input.counted(4)?)),
            b'U' => self.make(text_or_bytes(input.counted(1)?)),
            0x8e | 0x96 => self.make(Object::Bytes(input.counted(8)?.into())),
            _ => self.containers(code, input),
        }
    }

    fn containers(&mut self, code: u8, input: &mut Input<'_>) -> Result<()> {
        match code {
            b']' => self.make(Object::List(Vec::new())),
            b'}' => self.make(Object::Dict(Box::default())),
            b')' => self.make(Object::Tuple(Box::default())),
            b'l' => {
                let values = self.marked()?;
                self.make(Object::List(values))
            }
            b'd' => {
                let entries = pairs(&self.marked()?)?;
                self.make(Object::Dict(Box::new(Dict { entries, ..Dict::default() })))
            }
            b't' => {
                let values = self.marked()?;
                self.make(Object::Tuple(values.into()))
            }
            0x85..=0x87 => {
                let mut values = Vec::with_capacity(3);
                for _ in 0x85..=code {
                    values.push(self.pop()?);
                }
                values.reverse();
                self.make(Object::Tuple(values.into()))
            }
            // APPEND, APPENDS, SETITEM, SETITEMS
            b'a' => {
                let value = self.pop()?;
                self.append(&[value])
            }
            b'e' => {
                let values = self.marked()?;
                self.append(&values)
            }
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.set(&[key, value])
            }
            b'u' => {
                let values = self.marked()?;
                self.set(&values)
            }
            // EMPTY_SET, ADDITEMS, FROZENSET
            0x8f => {
                self.heap.has_sets = true;
                self.make(Object::List(Vec::new()))
            }
            0x90 => {
                let values = self.marked()?;
                self.append(&values)
            }
            0x91 => {
                self.heap.has_sets = true;
                let values = self.marked()?;
                self.make(Object::List(values))
            }
            // BINGET, LONG_BINGET, BINPUT, LONG_BINPUT, MEMOIZE
            b'h' => self.recall(input.u8()?.into()),
            b'j' => self.recall(input.u32()?),
            b'q' => self.keep(input.u8()?.into()),
            b'r' => self.keep(input.u32()?),
            0x94 => self.keep(u32::try_from(self.memo.len()).unwrap_or(u32::MAX)),
            _ => self.calls(code, input),
        }
    }

    fn calls(&mut self, code: u8, input: &mut Input<'_>) -> Result<()> {
        match code {
            // GLOBAL, STACK_GLOBAL
            b'c' => {
                let (module, name) = (input.line()?, input.line()?);
                self.make(Object::Global(global::find(module, name)))
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                match (self.heap.object(module), self.heap.object(name)) {
                    (Some(Object::Text(module)), Some(Object::Text(name))) => {
                        let found = global::find(module, name);
                        self.make(Object::Global(found))
                    }
                    _ => Err(Error::syntax("expected a module and a name, found something else")),
                }
            }
            // REDUCE, NEWOBJ, NEWOBJ_EX, BUILD, BINPERSID
            b'R' => {
                let (arguments, function) = (self.pop()?, self.pop()?);
                let made = build::call(&mut self.heap, function, arguments)?;
                self.made(made)
            }
            0x81 => {
                let (arguments, class) = (self.pop()?, self.pop()?);
                let made = build::new(&self.heap, class, arguments)?;
                self.make(made)
            }
            0x92 => {
                let (named, arguments, class) = (self.pop()?, self.pop()?, self.pop()?);
                let made = build::new_with(&mut self.heap, class, arguments, named)?;
                self.make(made)
            }
            b'b' => {
                let state = self.pop()?;
                let target = self.top()?;
                build::state(&mut self.heap, target, state)
            }
            b'Q' => {
                let id = self.pop()?;
                let made = build::of_id(&self.heap, id)?;
                self.made(made)
            }
            0x82..=0x84 => Err(Error::unsupported(
                "the pickle uses the extension registry, which it does not contain",
            )),
            0x97 | 0x98 => Err(Error::unsupported(
                "the pickle uses out-of-band buffers, which it does not contain",
            )),
            b'P' | b'p' | b'g' | b'i' | b'o' | b'I' | b'L' | b'F' | b'S' | b'V' => {
                Err(Error::unsupported(format!(
                    "expected pickle protocol 2 to 5, found opcode `{}` of protocol 0 or 1",
                    char::from(code)
                )))
            }
            _ => Err(Error::syntax(format!("expected a pickle opcode, found byte {code:#04x}"))),
        }
    }

    // Returns a result, because every arm of `step` does.
    #[allow(clippy::unnecessary_wraps)]
    fn push(&mut self, value: Value) -> Result<()> {
        self.stack.push(value);
        Ok(())
    }

    /// Adds an object, and pushes it onto the stack.
    fn make(&mut self, object: Object) -> Result<()> {
        let made = self.heap.add(object)?;
        self.push(made)
    }

    fn made(&mut self, made: Made) -> Result<()> {
        match made {
            Made::New(object) => self.make(object),
            Made::Old(value) => self.push(value),
        }
    }

    /// The height of the stack at the last mark. Values below it are out of reach until the mark is removed.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn pop(&mut self) -> Result<Value> {
        let found = if self.stack.len() > self.floor() { self.stack.pop() } else { None };
        found.ok_or_else(no_value)
    }

    fn top(&self) -> Result<Value> {
        let found = if self.stack.len() > self.floor() { self.stack.last() } else { None };
        found.copied().ok_or_else(no_value)
    }

    /// Removes the last mark, and pops all values above it.
    fn marked(&mut self) -> Result<Vec<Value>> {
        let mark = self.marks.pop();
        let mark = mark.ok_or_else(|| Error::syntax("expected a mark in the stack, found none"))?;
        Ok(self.stack.split_off(mark.min(self.stack.len())))
    }

    fn recall(&mut self, number: u32) -> Result<()> {
        let found = self.memo.get(&number).copied();
        self.push(found.ok_or_else(|| Error::syntax(format!("the memo has no value {number}")))?)
    }

    fn keep(&mut self, number: u32) -> Result<()> {
        let top = self.top()?;
        self.memo.insert(number, top);
        Ok(())
    }

    fn append(&mut self, values: &[Value]) -> Result<()> {
        let target = self.top()?;
        match self.heap.object_mut(target) {
            Some(Object::List(list)) => list.extend_from_slice(values),
            Some(Object::Instance(instance)) => instance.items.extend_from_slice(values),
            Some(Object::Lost(_)) => {}
            _ => return Err(Error::syntax("expected a list to append to, found something else")),
        }
        Ok(())
    }

    fn set(&mut self, values: &[Value]) -> Result<()> {
        let entries = pairs(values)?;
        let target = self.top()?;
        match self.heap.object_mut(target) {
            Some(Object::Dict(dict)) => dict.entries.extend(entries),
            Some(Object::Instance(instance)) => instance.entries.extend(entries),
            Some(Object::Lost(_)) => {}
            _ => return Err(Error::syntax("expected a dict to add to, found something else")),
        }
        Ok(())
    }

    /// Pushes a little-endian integer in two's complement, of any length.
    fn long(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(number) = integer_of(bytes, true) else {
            let what = format!("an integer of {} bytes", bytes.len());
            return self.make(Object::lost(what));
        };
        match i64::try_from(number) {
            Ok(number) => self.push(Value::Int(number)),
            Err(_) => self.make(Object::Big(number)),
        }
    }
}

#[cold]
fn no_value() -> Error {
    Error::syntax("expected a value on the stack, found none")
}

fn text_or_bytes(bytes: &[u8]) -> Object {
    match std::str::from_utf8(bytes) {
        Ok(text) => Object::Text(text.into()),
        Err(_) => Object::Bytes(bytes.into()),
    }
}

/// Returns entries of alternating keys and values.
fn pairs(values: &[Value]) -> Result<Vec<(Value, Value)>> {
    let (pairs, rest) = values.as_chunks::<2>();
    if rest.is_empty() {
        return Ok(pairs.iter().map(|&[key, value]| (key, value)).collect());
    }
    Err(Error::syntax("a dict has a key without a value"))
}
