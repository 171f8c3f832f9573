//! serde's traits for compound values, by calls of a type's own methods.
//!
//! serde has four traits for values with elements and two for values with fields, which differ only in names. A
//! type that writes such values has one method for each thing to do:
//!
//! - `element(&mut self, &T)` adds an element,
//! - `field(&mut self, key, &T)` adds a field,
//! - `finish(self)` ends the value, and returns a `Result`.
//!
//! The macros implement the traits with these methods.

use crate::error::Error;

/// The traits for elements. `[..]` are the generic parameters of the type.
macro_rules! elements {
    (
        impl $generics:tt for $for:ty: $ok:ty, $error:ty;
        $($trait:ident $method:ident),*
    ) => {
        $(elements!(@ $generics $for, $ok, $error, $trait $method);)*
    };
    (@ [$($generics:tt)*] $for:ty, $ok:ty, $error:ty, $trait:ident $method:ident) => {
        impl<$($generics)*> serde::ser::$trait for $for {
            type Ok = $ok;
            type Error = $error;

            // Always: 7 % of encoding updates as columns.
            #[inline(always)]
            fn $method<T: serde::Serialize + ?Sized>(&mut self, value: &T) -> Result<(), $error> {
                self.element(value)
            }

            #[inline]
            fn end(self) -> Result<$ok, $error> {
                self.finish()
            }
        }
    };
}

/// The traits for fields, each `with` a function that is called for the fields that a value leaves out. Without
/// it, nothing is done for them.
macro_rules! fields {
    (
        impl $generics:tt for $for:ty: $ok:ty, $error:ty;
        $($trait:ident $(with $skip:path)?),*
    ) => {
        $(fields!(@ $generics $for, $ok, $error, $trait $($skip)?);)*
    };
    (@ [$($generics:tt)*] $for:ty, $ok:ty, $error:ty, $trait:ident $($skip:path)?) => {
        impl<$($generics)*> serde::ser::$trait for $for {
            type Ok = $ok;
            type Error = $error;

            // Always: 46 % of encoding a mesh as columns.
            #[inline(always)]
            fn serialize_field<T: serde::Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), $error> {
                self.field(key, value)
            }

            $(
                fn skip_field(&mut self, key: &'static str) -> Result<(), $error> {
                    $skip(self, key)
                }
            )?

            #[inline]
            fn end(self) -> Result<$ok, $error> {
                self.finish()
            }
        }
    };
}

pub(super) use elements;
pub(super) use fields;

/// The error of a map whose keys and values do not come in pairs.
#[cold]
pub fn unpaired() -> Error {
    Error::data("a map needs a value for each key, and a key for each value")
}
