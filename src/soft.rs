//! [`SoftFail`], a wrapper for types that do not implement `Serialize`.

use std::any::type_name;
use std::ops::{Deref, DerefMut};

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Error as _, Serialize, Serializer};

/// A wrapper that implements `Serialize` and `Deserialize` for a type that does not. Saving or loading
/// it always fails at run time, with an error that names the type. Without the wrapper, the program
/// would not compile.
///
/// It is useful for generic containers whose parameter must be serializable, although some instances
/// are never saved:
///
/// ```
/// use serde::Serialize;
/// use tenarc::OArchive;
/// use tenarc::ser::SoftFail;
///
/// #[derive(Serialize)]
/// struct Node<T> {
///     id: u32,
///     payload: Option<T>,
/// }
///
/// struct Socket; // no Serialize
///
/// let mut out = OArchive::new(Vec::new())?;
/// out.save(&Node::<SoftFail<Socket>> { id: 1, payload: None })?;
/// let error = out.save(&Node { id: 2, payload: Some(SoftFail(Socket)) }).unwrap_err();
/// assert!(error.to_string().contains("Socket cannot be serialized"));
/// out.save("what follows is not disturbed")?;
/// # Ok::<(), tenarc::Error>(())
/// ```
///
/// It also fails for types that do implement `Serialize`. Use `Node<Vec<f32>>` for those and
/// `Node<SoftFail<Socket>>` for the others.
///
/// Without `SoftFail`, the compiler rejects the call:
///
/// ```compile_fail,E0277
/// struct Socket;
/// let mut out = tenarc::OArchive::new(Vec::new()).unwrap();
/// out.save(&Socket).unwrap(); // error: the trait `Serialize` is not implemented for `Socket`
/// ```
///
/// The same lines compile if the type implements `Serialize`:
///
/// ```
/// #[derive(serde::Serialize)]
/// struct Socket;
/// let mut out = tenarc::OArchive::new(Vec::new()).unwrap();
/// out.save(&Socket).unwrap();
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SoftFail<T>(pub T);

impl<T> From<T> for SoftFail<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T> Deref for SoftFail<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for SoftFail<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Serialize for SoftFail<T> {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(S::Error::custom(format_args!("{} cannot be serialized", type_name::<T>())))
    }
}

impl<'de, T> Deserialize<'de> for SoftFail<T> {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(D::Error::custom(format_args!("{} cannot be deserialized", type_name::<T>())))
    }
}
