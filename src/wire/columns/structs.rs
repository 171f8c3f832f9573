//! Structs, whose fields are columns.

use std::any::{TypeId, type_name};
use std::borrow::Cow;

use super::{Column, Marks};

/// Structs.
pub struct Structs<'de> {
    pub fields: Vec<Field<'de>>,
    /// The last answer of [`Structs::match_visitor`], and what it was for: a list of names, by its address and
    /// length, and a visitor.
    known: Option<((usize, usize, TypeId), bool)>,
}

impl<'de> Structs<'de> {
    pub fn new(fields: Vec<Field<'de>>) -> Self {
        Self { fields, known: None }
    }

    /// Whether the fields can be passed to a visitor of type `V` in the order of `names`, without their names.
    ///
    /// They must be exactly these, in every row. The visitor must be one that `serde_derive` made, because that
    /// takes the fields of a struct in both ways. Another visitor may take them by name only, or may need the names,
    /// and cannot be asked. This includes visitors that wrap a derived one.
    #[inline(always)]
    pub fn match_visitor<V>(&mut self, names: &'static [&'static str]) -> bool {
        let asked = (names.as_ptr().addr(), names.len(), typeid::of::<V>());
        match self.known {
            Some((known, answer)) if known == asked => answer,
            _ => {
                let answer = self.has_exactly(names) && is_derived(type_name::<V>());
                self.known = Some((asked, answer));
                answer
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn has_exactly(&self, names: &[&str]) -> bool {
        let mut sorted = names.to_vec();
        sorted.sort_unstable();
        let is_field =
            |(field, name): (&Field<'_>, &&str)| field.name == **name && field.present.is_none();
        names.len() == self.fields.len()
            && self.fields.iter().zip(names).all(is_field)
            && sorted.windows(2).all(|pair| pair[0] != pair[1])
    }
}

/// A field of a struct.
pub struct Field<'de> {
    pub name: Cow<'de, str>,
    /// The rows that have this field. `None` if all have it.
    pub present: Option<Marks<'de>>,
    /// The values of the rows that have this field.
    pub column: Column<'de>,
}

impl Field<'_> {
    #[inline(always)]
    pub fn is_present(&self, row: usize) -> bool {
        self.present.as_ref().is_none_or(|present| present.get(row))
    }

    /// The row of the column for a row of the struct that has this field.
    #[inline(always)]
    pub fn inner(&mut self, row: usize) -> usize {
        match &mut self.present {
            None => row,
            Some(present) => present.inner(row).unwrap_or_default(),
        }
    }
}

/// Whether a type is a visitor that `serde_derive` made, by its name: `…::__Visitor`, or `…::__Visitor<…>` for a
/// generic type. A type that wraps such a visitor has this name only between its angle brackets.
fn is_derived(name: &str) -> bool {
    let path = match name.strip_suffix('>') {
        Some(open) => before_generics(open),
        None => Some(name),
    };
    path.is_some_and(|path| path.ends_with("::__Visitor"))
}

/// The part of a name before the list of generics that it ends with. The last `>` of the list was cut off. `None` if
/// no `<` belongs to it.
fn before_generics(open: &str) -> Option<&str> {
    let mut depth = 1usize;
    for (at, bracket) in open.rmatch_indices(['<', '>']) {
        let before = &open[..at];
        match bracket {
            // The arrow of a function type.
            ">" if before.ends_with('-') => {}
            ">" => depth += 1,
            _ => depth -= 1,
        }
        if depth == 0 {
            return Some(before);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::marker::PhantomData;

    use serde::de::value::Error;
    use serde::de::{Deserializer, Error as _, Visitor};
    use serde::{Deserialize, forward_to_deserialize_any};

    use super::*;

    /// Fails with the name of the visitor that it is given.
    struct NameOfVisitor;

    impl<'de> Deserializer<'de> for NameOfVisitor {
        type Error = Error;

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
            Err(Error::custom(type_name::<V>()))
        }

        forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
            unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
        }
    }

    fn visitor_of<'de, T: Deserialize<'de>>() -> String {
        T::deserialize(NameOfVisitor).err().expect("an error").to_string()
    }

    #[test]
    fn visitors_of_derived_structs_are_found() {
        #[derive(Deserialize)]
        #[allow(dead_code)]
        struct Plain {
            a: u8,
        }
        #[derive(Deserialize)]
        #[allow(dead_code)]
        struct Generic<'a, T, const N: usize> {
            a: T,
            b: &'a str,
            #[serde(skip)]
            c: PhantomData<[u8; N]>,
        }
        assert!(is_derived(&visitor_of::<Plain>()));
        assert!(is_derived(&visitor_of::<Generic<'_, Vec<Plain>, 3>>()));
        assert!(is_derived(&visitor_of::<Generic<'_, PhantomData<fn(u8) -> Plain>, 3>>()));
        assert!(!is_derived(&visitor_of::<Vec<Plain>>()));
        assert!(!is_derived(&visitor_of::<String>()));
    }

    #[test]
    fn visitors_around_derived_ones_are_not_derived() {
        // The visitor of a struct variant is inside the one of the enum.
        assert!(is_derived("<a::__Visitor as serde::de::Visitor>::visit_enum::__Visitor"));
        assert!(is_derived(
            "a::_::<impl Deserialize for a::B<T>>::deserialize::__Visitor<(), fn() -> a::C>"
        ));
        for name in [
            "a::Wrap<b::__Visitor>",
            "a::Wrap<b::__Visitor<T>>",
            "a::Wrap<b::__Visitor<T>, fn(b::C<T>) -> u8>",
            "a::Wrap<fn() -> b::__Visitor<T>>",
            "a::Wrap<T, b::__Visitor>",
            "a::__Visitor<T>::deserialize::Wrap<T>",
            "<a::__Visitor as serde::de::Visitor>::visit_enum::Wrap",
            "a::not__Visitor",
            "a::__VisitorOf<T>",
            "::__Visitor>",
            "",
        ] {
            assert!(!is_derived(name), "{name}");
        }
    }
}
