//! Types without `Serialize` where one is asked for.

use std::any::type_name;
use std::ops::{Deref, DerefMut};

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Error as _, Serialize, Serializer};

/// Lets a type that cannot be serialized stand where `Serialize` and `Deserialize` are asked for: to
/// save or load one is an error at run time, that names the type, in place of one when the program is
/// compiled.
///
/// Generic containers need it, whose parameter must be serializable although not every instance is ever
/// saved:
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
/// It refuses every type, those that could be serialized too: what a parameter can do is known where it is
/// named, `Node<Vec<f32>>` here and `Node<SoftFail<Socket>>` there.
///
/// Without it, saving is refused by the compiler:
///
/// ```compile_fail,E0277
/// struct Socket;
/// let mut out = tenarc::OArchive::new(Vec::new()).unwrap();
/// out.save(&Socket).unwrap(); // error: the trait `Serialize` is not implemented for `Socket`
/// ```
///
/// which takes the same lines once there is one:
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
