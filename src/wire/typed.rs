//! Types that are named for values (`SPEC.md`, section 7.2). A reader that does not know a type reads the value in it.

use super::head;
use super::number::Numeric;
use super::reader::Reader;
use crate::error::{Error, Result};
use crate::type_name::{Parameter, TypeName};

/// The most bytes of a name, and of a parameter that is a text.
const MAX_NAME: u64 = 64;
/// The most parameters.
const MAX_PARAMETERS: u64 = 16;

impl Reader<'_, '_> {
    /// Reads what the tag of a type has before its item. The tag was read.
    pub fn type_head(&mut self) -> Result<()> {
        self.type_of_item(Self::type_name)
    }

    /// Reads what the tag of a type has before its item, of which `read` reads the type. The tag was read.
    pub fn type_of_item<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let at = self.offset();
        let head = self.head()?;
        if head.major() != head::ARRAY || head.length() != Some(3) {
            let found = head::name(head.initial);
            let what = format!(
                "expected an array of a type's name, its parameters and an item, found {found}"
            );
            return Err(Error::data(what).at(at));
        }
        let of = read(self)?;
        let at = self.offset();
        if matches!(self.initial()?, head::NULL | head::UNDEFINED) {
            return Err(Error::data("a null has no type").at(at));
        }
        Ok(of)
    }

    /// Passes over the name and the parameters of a type.
    pub fn type_name(&mut self) -> Result<()> {
        self.type_parts(&mut None)
    }

    /// Reads the name and the parameters of a type.
    pub fn named_type(&mut self) -> Result<TypeName> {
        let mut parts = Some((String::new(), Vec::new()));
        self.type_parts(&mut parts)?;
        let (name, parameters) = parts.unwrap_or_default();
        let bytes = name.len() + size_of_val(&*parameters);
        self.charge(bytes as u64)?;
        Ok(TypeName::of(name, parameters))
    }

    /// Reads the name and the parameters of a type, and keeps them if they are asked for.
    fn type_parts(&mut self, parts: &mut Option<(String, Vec<Parameter>)>) -> Result<()> {
        let at = self.offset();
        let head = self.head()?;
        if head.major() != head::TEXT
            || !head.length().is_some_and(|len| (1..=MAX_NAME).contains(&len))
        {
            let found = head::name(head.initial);
            let what = format!(
                "expected the name of a type, a text of 1 to {MAX_NAME} bytes, found {found}"
            );
            return Err(Error::data(what).at(at));
        }
        let name = self.text(head)?;
        if let Some((kept, _)) = parts {
            name.as_str().clone_into(kept);
        }
        let at = self.offset();
        let head = self.head()?;
        let len = head.length().filter(|&len| head.major() == head::ARRAY && len <= MAX_PARAMETERS);
        let Some(len) = len else {
            let found = head::name(head.initial);
            let what = format!(
                "expected the parameters of a type, an array of at most {MAX_PARAMETERS}, found {found}"
            );
            return Err(Error::data(what).at(at));
        };
        self.within(1, |wire| {
            (0..len).try_for_each(|_| wire.type_parameter(parts.as_mut().map(|(_, kept)| kept)))
        })
    }

    fn type_parameter(&mut self, kept: Option<&mut Vec<Parameter>>) -> Result<()> {
        let at = self.offset();
        let head = self.head()?;
        match head.major() {
            head::UNSIGNED | head::NEGATIVE => {
                if let Some(kept) = kept {
                    let integer = Numeric::from_head(head).and_then(Numeric::as_int);
                    kept.extend(integer.map(Parameter::Integer));
                }
                Ok(())
            }
            head::TEXT if head.length().is_some_and(|len| len <= MAX_NAME) => {
                let text = self.text(head)?;
                if let Some(kept) = kept {
                    kept.push(Parameter::Text(text.as_str().to_owned()));
                }
                Ok(())
            }
            _ => {
                let found = head::name(head.initial);
                let what = format!(
                    "expected a parameter of a type, an integer or a text of at most {MAX_NAME} bytes, found {found}"
                );
                Err(Error::data(what).at(at))
            }
        }
    }
}
