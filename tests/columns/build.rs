//! Columns written by hand from `SPEC.md`, section 7, and columns of any values.

use tenarc::Value;
use tenarc_test_support::builder::{
    array, bytes, bytes_ref, head, map, numbers_ref, own, tag, tensor_ref, text, unsigned,
};

/// The tag `TCOL` around groups of rows.
pub fn columns(groups: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let items: Vec<_> =
        groups.iter().flat_map(|(rows, column)| [unsigned(*rows), column.clone()]).collect();
    own(*b"TCOL", &array(&items))
}

/// One group of rows.
pub fn one(rows: u64, column: Vec<u8>) -> Vec<u8> {
    columns(&[(rows, column)])
}

/// A column that is an array with the name of its kind.
pub fn kind(name: &str, items: &[Vec<u8>]) -> Vec<u8> {
    let mut all = vec![text(name)];
    all.extend_from_slice(items);
    array(&all)
}

pub fn u8s(values: &[u8]) -> Vec<u8> {
    tag(64, &bytes(values))
}

pub fn u16s(values: &[u16]) -> Vec<u8> {
    let content: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    tag(69, &bytes(&content))
}

pub fn u64s(values: &[u64]) -> Vec<u8> {
    let content: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    tag(71, &bytes(&content))
}

pub fn f32s(values: &[f32]) -> Vec<u8> {
    let content: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    tag(85, &bytes(&content))
}

pub fn f64s(values: &[f64]) -> Vec<u8> {
    let content: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    tag(86, &bytes(&content))
}

/// A tensor of section 2.1.
pub fn tensor(shape: &[u64], typed: Vec<u8>) -> Vec<u8> {
    let dims: Vec<_> = shape.iter().map(|&dim| unsigned(dim)).collect();
    tag(40, &array(&[array(&dims), typed]))
}

pub fn texts(lengths: Vec<u8>, all: &str) -> Vec<u8> {
    kind("text", &[lengths, text(all)])
}

pub fn null() -> Vec<u8> {
    vec![0xf6]
}

/// How [`Writer`] writes columns where `SPEC.md` leaves a choice.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::struct_excessive_bools)]
pub struct Style {
    /// Lengths, integers and codes of enums in wider types.
    pub wide: bool,
    /// Arrays of one length as tuples, where that is allowed.
    pub tuples: bool,
    /// Groups of this many rows. 0 for one group.
    pub group: usize,
    /// The array around the groups has an indefinite length.
    pub indefinite: bool,
    /// Payloads are in buffers.
    pub buffers: bool,
    /// Equal rows are stored once, and every column has a type.
    pub rich: bool,
}

/// Writes columns of any values.
#[derive(Default)]
pub struct Writer {
    pub style: Style,
    pub buffers: Vec<Vec<u8>>,
}

impl Writer {
    pub fn new(style: Style) -> Self {
        Self { style, buffers: Vec::new() }
    }

    pub fn document(&mut self, rows: &[Value]) -> Vec<u8> {
        let size = if self.style.group == 0 { rows.len().max(1) } else { self.style.group };
        let mut items = Vec::new();
        for group in rows.chunks(size) {
            let group: Vec<_> = group.iter().collect();
            items.push(unsigned(group.len() as u64));
            items.push(self.column(&group));
        }
        if self.style.indefinite {
            let mut content = vec![0x9f];
            content.extend(items.concat());
            content.push(0xff);
            return own(*b"TCOL", &content);
        }
        own(*b"TCOL", &array(&items))
    }

    fn buffer(&mut self, content: &[u8]) -> u64 {
        self.buffers.push(content.to_vec());
        self.buffers.len() as u64 - 1
    }

    fn typed(&mut self, dtype: &str, content: &[u8]) -> Vec<u8> {
        if self.style.buffers {
            return numbers_ref(dtype, self.buffer(content));
        }
        let number = match dtype {
            "u8" => 64,
            "u16" => 69,
            "u64" => 71,
            "i64" => 79,
            "i8" => 72,
            "f32" => 85,
            "f64" => 86,
            other => panic!("{other}"),
        };
        tag(number, &bytes(content))
    }

    fn string(&mut self, content: &[u8], is_text: bool) -> Vec<u8> {
        if self.style.buffers {
            return bytes_ref(self.buffer(content));
        }
        let mut all = head(if is_text { 3 } else { 2 }, content.len() as u64);
        all.extend_from_slice(content);
        all
    }

    fn lengths(&mut self, lengths: &[usize]) -> Vec<u8> {
        if self.style.wide {
            let content: Vec<u8> =
                lengths.iter().flat_map(|&len| (len as u64).to_le_bytes()).collect();
            return self.typed("u64", &content);
        }
        match lengths.split_first() {
            Some((first, rest)) if rest.iter().all(|len| len == first) => unsigned(*first as u64),
            _ => {
                let content: Vec<u8> = lengths
                    .iter()
                    .flat_map(|&len| u16::try_from(len).unwrap().to_le_bytes())
                    .collect();
                self.typed("u16", &content)
            }
        }
    }

    fn bits(&mut self, values: &[bool]) -> Vec<u8> {
        let mut bits = vec![0u8; values.len().div_ceil(8)];
        for (row, &value) in values.iter().enumerate() {
            bits[row / 8] |= u8::from(value) << (row % 8);
        }
        self.string(&bits, false)
    }

    fn items(rows: &[&Value]) -> Vec<u8> {
        let items: Vec<_> = rows.iter().map(|row| tenarc::to_vec(row).unwrap()).collect();
        kind("rows", &[array(&items)])
    }

    /// A column of the kind that fits the rows.
    fn column(&mut self, rows: &[&Value]) -> Vec<u8> {
        if !self.style.rich || rows.is_empty() {
            return self.plain(rows);
        }
        let mut distinct: Vec<&Value> = Vec::new();
        let mut codes = Vec::new();
        for row in rows {
            // By their bytes, as a NaN equals nothing.
            let is_row =
                |known: &&Value| tenarc::to_vec(*known).unwrap() == tenarc::to_vec(*row).unwrap();
            let code = distinct.iter().position(is_row).unwrap_or(distinct.len());
            if code == distinct.len() {
                distinct.push(row);
            }
            codes.push(u16::try_from(code).unwrap());
        }
        let parameters = array(&[text("s"), unsigned(1)]);
        let count = distinct.len();
        if count == rows.len() {
            return kind("type", &[text("example.com/x"), parameters, self.plain(rows)]);
        }
        let codes = if count > 256 {
            let codes: Vec<u8> = codes.iter().flat_map(|code| code.to_le_bytes()).collect();
            self.typed("u16", &codes)
        } else {
            let codes: Vec<u8> = codes.iter().map(|&code| u8::try_from(code).unwrap()).collect();
            self.typed("u8", &codes)
        };
        let dict = kind("dict", &[codes, unsigned(count as u64), self.plain(&distinct)]);
        kind("type", &[text("category"), array(&[unsigned(0)]), dict])
    }

    fn plain(&mut self, rows: &[&Value]) -> Vec<u8> {
        let is_some = |row: &Value| matches!(row, Value::Tag(0x5453_4f4d, _));
        if rows.is_empty() || rows.iter().all(|row| row.is_null()) {
            return kind("unit", &[]);
        }
        if rows.iter().any(|row| row.is_null() || is_some(row)) {
            return self.optional(rows);
        }
        if rows.iter().all(|row| row.is_bool()) {
            let bits: Vec<bool> = rows.iter().map(|row| row.as_bool().unwrap()).collect();
            let bits = self.bits(&bits);
            return kind("bool", &[bits]);
        }
        if let Some(column) = self.numbers(rows) {
            return column;
        }
        if let Some(all) = rows.iter().map(|row| row.as_str()).collect::<Option<Vec<_>>>() {
            // As variants of an enum, if they are few.
            let mut names = all.clone();
            names.sort_unstable();
            names.dedup();
            if names.len() * 2 < all.len() {
                return self.enums(rows);
            }
            let lengths = self.lengths(&all.iter().map(|text| text.len()).collect::<Vec<_>>());
            let all = self.string(all.concat().as_bytes(), true);
            return kind("text", &[lengths, all]);
        }
        if let Some(all) = rows.iter().map(|row| row.as_bytes()).collect::<Option<Vec<_>>>() {
            let lengths = self.lengths(&all.iter().map(|bytes| bytes.len()).collect::<Vec<_>>());
            let all = self.string(&all.concat(), false);
            return kind("bytes", &[lengths, all]);
        }
        if let Some(all) = rows.iter().map(|row| row.as_array()).collect::<Option<Vec<_>>>() {
            return self.arrays(&all);
        }
        if let Some(column) = self.tensors(rows) {
            return column;
        }
        let is_variant = |row: &&&Value| {
            let is_name = |(key, _): &(Value, Value)| {
                key.as_str().is_some_and(|key| key.starts_with(char::is_uppercase))
            };
            row.as_str().is_some()
                || row.as_map().is_some_and(|map| matches!(map, [entry] if is_name(entry)))
        };
        if rows.iter().filter(is_variant).count() == rows.len() {
            return self.enums(rows);
        }
        match rows.iter().map(|row| row.as_map()).collect::<Option<Vec<_>>>() {
            Some(all) => self.maps(&all),
            None => Self::items(rows),
        }
    }

    fn optional(&mut self, rows: &[&Value]) -> Vec<u8> {
        let some: Vec<&Value> = rows
            .iter()
            .filter(|row| !row.is_null())
            .map(|row| match row {
                Value::Tag(0x5453_4f4d, inner) => inner,
                row => *row,
            })
            .collect();
        let bits = self.bits(&rows.iter().map(|row| !row.is_null()).collect::<Vec<_>>());
        let column = self.column(&some);
        kind("option", &[bits, column])
    }

    fn numbers(&mut self, rows: &[&Value]) -> Option<Vec<u8>> {
        let (dtype, content) = self.payload(rows)?;
        Some(self.typed(dtype, &content))
    }

    fn payload(&self, rows: &[&Value]) -> Option<(&'static str, Vec<u8>)> {
        if let Some(all) = rows.iter().map(|row| row.as_i128()).collect::<Option<Vec<_>>>() {
            if rows.iter().any(|row| !row.is_integer()) {
                return None;
            }
            let fits = |least: i128, most: i128| all.iter().all(|v| (least..=most).contains(v));
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            if !self.style.wide && fits(0, 255) {
                return Some(("u8", all.iter().map(|&v| v as u8).collect()));
            } else if !self.style.wide && fits(-128, 127) {
                return Some(("i8", all.iter().map(|&v| v as u8).collect()));
            } else if fits(i64::MIN.into(), i64::MAX.into()) {
                let content = all.iter().flat_map(|&v| (v as i64).to_le_bytes());
                return Some(("i64", content.collect()));
            } else if fits(0, u64::MAX.into()) {
                let content = all.iter().flat_map(|&v| (v as u64).to_le_bytes());
                return Some(("u64", content.collect()));
            }
            return None;
        }
        let mut content = Vec::new();
        for row in rows {
            match row {
                Value::F32(value) => content.extend(value.to_le_bytes()),
                _ => break,
            }
        }
        if content.len() == 4 * rows.len() {
            return Some(("f32", content));
        }
        content.clear();
        for row in rows {
            match row {
                Value::F64(value) => content.extend(value.to_le_bytes()),
                _ => return None,
            }
        }
        Some(("f64", content))
    }

    fn arrays(&mut self, rows: &[&[Value]]) -> Vec<u8> {
        let len = rows[0].len();
        let is_same = rows.iter().all(|row| row.len() == len);
        let may_be_numbers =
            |value: &Value| value.is_number() || value.is_bool() || value.as_array().is_some();
        if self.style.tuples && is_same && !rows[0].iter().all(may_be_numbers) {
            let columns: Vec<_> = (0..len)
                .map(|at| self.column(&rows.iter().map(|row| &row[at]).collect::<Vec<_>>()))
                .collect();
            return kind("tuple", &[array(&columns)]);
        }
        let lengths = rows.iter().map(|row| row.len()).collect::<Vec<_>>();
        let all: Vec<&Value> = rows.iter().flat_map(|row| row.iter()).collect();
        if is_same {
            return kind("array", &[unsigned(len as u64), self.column(&all)]);
        }
        let (lengths, column) = (self.lengths(&lengths), self.column(&all));
        kind("list", &[lengths, column])
    }

    fn tensors(&mut self, rows: &[&Value]) -> Option<Vec<u8>> {
        let all = rows.iter().map(|row| row.as_tensor()).collect::<Option<Vec<_>>>()?;
        let (dtype, shape) = (all[0].dtype(), all[0].shape());
        if all.iter().any(|tensor| tensor.dtype() != dtype || tensor.shape() != shape) {
            return None;
        }
        let mut dims = vec![rows.len() as u64];
        dims.extend(shape.iter().map(|&dim| dim as u64));
        let content: Vec<u8> =
            all.iter().flat_map(|tensor| tensor.le_bytes().into_owned()).collect();
        if self.style.buffers {
            return Some(tensor_ref(dtype.name(), &dims, self.buffer(&content)));
        }
        let dims: Vec<_> = dims.into_iter().map(unsigned).collect();
        let parts = [text(dtype.name()), array(&dims), text("C"), bytes(&content)];
        Some(own(*b"TENS", &array(&parts)))
    }

    fn enums(&mut self, rows: &[&Value]) -> Vec<u8> {
        let mut names: Vec<&str> = Vec::new();
        let mut contents: Vec<Vec<&Value>> = Vec::new();
        let mut codes = Vec::new();
        for row in rows {
            let (name, content) = match row.as_map() {
                Some([(name, content)]) => (name.as_str().unwrap(), Some(content)),
                _ => (row.as_str().unwrap(), None),
            };
            let code = names.iter().position(|known| *known == name).unwrap_or_else(|| {
                names.push(name);
                contents.push(Vec::new());
                names.len() - 1
            });
            codes.push(code);
            contents[code].extend(content);
        }
        let codes = if self.style.wide {
            let content: Vec<u8> =
                codes.iter().flat_map(|&code| u16::try_from(code).unwrap().to_le_bytes()).collect();
            self.typed("u16", &content)
        } else {
            let content: Vec<u8> = codes.iter().map(|&code| u8::try_from(code).unwrap()).collect();
            self.typed("u8", &content)
        };
        let mut items =
            vec![codes, array(&names.iter().map(|name| text(name)).collect::<Vec<_>>())];
        if contents.iter().any(|content| !content.is_empty()) {
            let mut columns = Vec::new();
            for content in &contents {
                columns.push(if content.is_empty() { null() } else { self.column(content) });
            }
            items.push(array(&columns));
        }
        kind("enum", &items)
    }

    /// Structs, if all keys are texts and come in one order; otherwise maps.
    fn maps(&mut self, rows: &[&[(Value, Value)]]) -> Vec<u8> {
        let mut names: Vec<&str> = Vec::new();
        let mut is_struct = true;
        for (key, _) in rows.iter().flat_map(|row| row.iter()) {
            match key.as_str() {
                Some(name) if !names.contains(&name) => names.push(name),
                Some(_) => {}
                None => is_struct = false,
            }
        }
        for row in rows {
            let positions: Option<Vec<usize>> = row
                .iter()
                .map(|(key, _)| names.iter().position(|name| Some(*name) == key.as_str()))
                .collect();
            is_struct &= positions.is_some_and(|at| at.is_sorted_by(|a, b| a < b));
        }
        if !is_struct || names.len() > 16 {
            let lengths = self.lengths(&rows.iter().map(|row| row.len()).collect::<Vec<_>>());
            let entries: Vec<_> = rows.iter().flat_map(|row| row.iter()).collect();
            let keys: Vec<_> = entries.iter().map(|(key, _)| key).collect();
            let values: Vec<_> = entries.iter().map(|(_, value)| value).collect();
            let (keys, values) = (self.column(&keys), self.column(&values));
            return kind("map", &[lengths, keys, values]);
        }
        let mut fields = Vec::new();
        for name in names {
            let found: Vec<Option<&Value>> = rows
                .iter()
                .map(|row| row.iter().find(|(key, _)| key.as_str() == Some(name)).map(|(_, v)| v))
                .collect();
            let there: Vec<&Value> = found.iter().copied().flatten().collect();
            let mut column = self.column(&there);
            if there.len() < found.len() {
                let bits = self.bits(&found.iter().map(Option::is_some).collect::<Vec<_>>());
                column = kind("present", &[bits, column]);
            }
            fields.push((name, column));
        }
        map(&fields)
    }
}
