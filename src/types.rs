//! Values that say what they mean: timestamps, dates, decimals and more (`SPEC.md`, section 7.2).
//!
//! An integer can be a date, and a byte string a UUID. [`Typed`] writes the value with the name of its type, once for a column
//! and not once for each row. Whoever reads the file can ask for the type, such as Arrow or pandas. A reader that does not care
//! reads the integer or the byte string.
//!
//! ```
//! use serde::{Deserialize, Serialize, Serializer};
//! use tenarc::types::{TypeName, Typed};
//!
//! /// Writes days since 1970-01-01 as a date.
//! fn date<S: Serializer>(days: &i32, serializer: S) -> Result<S::Ok, S::Error> {
//!     Typed::new(&TypeName::date(), days).serialize(serializer)
//! }
//!
//! #[derive(Serialize, Deserialize, PartialEq, Debug)]
//! struct Visit {
//!     #[serde(serialize_with = "date")]
//!     day: i32,
//!     pages: u32,
//! }
//!
//! let visits = vec![Visit { day: 20_783, pages: 7 }, Visit { day: 20_784, pages: 2 }];
//! let mut out = tenarc::OArchive::new(Vec::new())?;
//! out.save_as("visits", &visits)?;
//! let archive = tenarc::Archive::new(out.finish()?)?;
//! assert_eq!(archive.table("visits")?.rows::<Visit>(..)?, visits);
//! # Ok::<(), tenarc::Error>(())
//! ```

use std::fmt;

use serde::ser::{Serialize, Serializer};

use crate::handoff::{self, Slot, name};
pub use crate::type_name::{Parameter, TimeUnit, TypeName};

/// A value that is written with the name of its type. Other formats see the value alone, and so does
/// [`Value`](crate::Value); [`WithTypes`](crate::value::WithTypes) keeps the name.
///
/// The value must not be null: a value that can be missing is an `Option` of a `Typed`. What the value must be is in the
/// table of `SPEC.md`, section 7.2. It is not checked: a reader that finds something else reads a value without a type.
///
/// ```
/// use tenarc::types::{TypeName, Typed};
///
/// let day = 20_783; // days since 1970-01-01
/// let bytes = tenarc::to_vec(&Typed::new(&TypeName::date(), &day))?;
/// assert_eq!(tenarc::from_slice::<i32>(&bytes)?, day); // a reader that does not care
/// # Ok::<(), tenarc::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Typed<'a, T: ?Sized> {
    of: &'a TypeName,
    value: &'a T,
}

impl<'a, T: ?Sized> Typed<'a, T> {
    /// A value of this type.
    pub fn new(of: &'a TypeName, value: &'a T) -> Self {
        Self { of, value }
    }
}

impl<T: fmt::Debug + ?Sized> fmt::Debug for Typed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Typed").field("of", self.of).field("value", &self.value).finish()
    }
}

impl<T: Serialize + ?Sized> Serialize for Typed<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        handoff::offer(Slot::Type(self.of.clone()), || {
            serializer.serialize_newtype_struct(name::TYPED, &Content(self.value))
        })
    }
}

/// The value. It takes the slot first, so that a newtype inside the value does not find it.
struct Content<'a, T: ?Sized>(&'a T);

impl<T: Serialize + ?Sized> Serialize for Content<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        handoff::take();
        self.0.serialize(serializer)
    }
}
