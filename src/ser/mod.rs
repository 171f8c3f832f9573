//! Encoding: serde's [`Serializer`](serde::Serializer) for CBOR.

pub(crate) mod columns;
mod compound;
mod delegate;
mod encoder;
mod kind;
mod look;
mod pack;
mod stored;

use std::io;

use serde::Serialize;
use serde::ser;

pub use crate::options::EncodeOptions;
pub use crate::soft::SoftFail;

use self::compound::{Compound, Sequence};
use crate::error::{Error, Result};
use crate::io::sink::{Memory, Stage};
use crate::mem;
use crate::wire::writer::{Context, Writer, WriterTo};

/// Encodes a value into a new vector.
///
/// If the value contains large tensors, it is serialized twice: the first pass only counts, so that the
/// vector can be allocated with its exact size.
///
/// ```
/// use tenarc::Tensor;
///
/// let bytes = tenarc::to_vec(&("scores", Tensor(vec![0.5f32, 2.0])))?;
/// let (name, scores): (&str, Tensor<Vec<f32>>) = tenarc::from_slice(&bytes)?;
/// assert_eq!((name, scores.0), ("scores", vec![0.5, 2.0]));
/// # Ok::<(), tenarc::Error>(())
/// ```
///
/// # Errors
/// If the value's own `Serialize` fails, if the value is nested deeper than
/// [`EncodeOptions::with_max_depth`] allows, if a sequence or map has another length than it
/// announced, if memory runs out, or if the value changes between the two passes so that its length
/// differs.
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>> {
    to_vec_with(value, EncodeOptions::default())
}

/// Like [`to_vec`], with options.
///
/// ```
/// use tenarc::ser::EncodeOptions;
///
/// let rows: Vec<(u32, f64)> = (0..1000).map(|at| (at, 0.25)).collect();
/// let columns = tenarc::ser::to_vec_with(&rows, EncodeOptions::default().with_columns(true))?;
/// assert!(columns.len() < tenarc::to_vec(&rows)?.len());
/// assert_eq!(tenarc::from_slice::<Vec<(u32, f64)>>(&columns)?, rows);
/// # Ok::<(), tenarc::Error>(())
/// ```
///
/// # Errors
/// The same errors as [`to_vec`].
pub fn to_vec_with<T: Serialize + ?Sized>(value: &T, options: EncodeOptions) -> Result<Vec<u8>> {
    let mut buffer = Vec::with_capacity(128);
    append_to_with(&mut buffer, value, options)?;
    Ok(buffer)
}

/// Encodes a value and appends it to `buffer`.
///
/// To encode many values without allocating, clear and pass the same buffer again. After an error the
/// buffer is unchanged. If the value's own code panics, the buffer is unchanged or empty.
///
/// ```
/// let mut buffer = Vec::new();
/// for record in [("a", 1), ("b", 2)] {
///     buffer.clear();
///     tenarc::append_to(&mut buffer, &record)?;
///     // Send the buffer here.
/// }
/// assert_eq!(tenarc::from_slice::<(&str, i32)>(&buffer)?, ("b", 2));
/// # Ok::<(), tenarc::Error>(())
/// ```
///
/// # Errors
/// The same errors as [`to_vec`].
pub fn append_to<T: Serialize + ?Sized>(buffer: &mut Vec<u8>, value: &T) -> Result<()> {
    append_to_with(buffer, value, EncodeOptions::default())
}

/// Like [`append_to`], with options.
///
/// # Errors
/// The same errors as [`to_vec`].
#[inline]
pub fn append_to_with<T: Serialize + ?Sized>(
    buffer: &mut Vec<u8>,
    value: &T,
    options: EncodeOptions,
) -> Result<()> {
    let mut out = Appending::new(buffer, options);
    value.serialize(out.to.writer())?;
    if let Some(before) = out.to.overflow_mut().take_stash() {
        out.write_measured(before, &|writer| value.serialize(writer))?;
    }
    out.is_done = true;
    Ok(())
}

/// A value that is being appended to a buffer. What was appended is removed again, unless the value was written completely.
struct Appending<'a> {
    buffer: &'a mut Vec<u8>,
    /// It has the content of the buffer.
    to: WriterTo<Memory>,
    start: usize,
    is_done: bool,
}

impl<'a> Appending<'a> {
    #[inline]
    fn new(buffer: &'a mut Vec<u8>, options: EncodeOptions) -> Self {
        let start = buffer.len();
        let to = WriterTo::to(mem::take_vec(buffer), Memory::measuring(), options);
        Self { buffer, to, start, is_done: false }
    }

    /// The second pass, if the first one has only counted since the buffer was as it is here.
    #[cold]
    #[inline(never)]
    fn write_measured(
        &mut self,
        mut buffer: Vec<u8>,
        write: &dyn Fn(&mut Writer<'_>) -> Result<()>,
    ) -> Result<()> {
        buffer.truncate(self.start);
        let end = self.to.position();
        let len = usize::try_from(end).unwrap_or(usize::MAX) - self.start;
        let has_room = buffer.try_reserve_exact(len).is_ok();
        self.to = WriterTo::to(buffer, Memory::growing(), self.to.context.options);
        if !has_room {
            let what = format!("out of memory: cannot allocate {len} bytes to write");
            return Err(Error::limit(what));
        }
        write(self.to.writer())?;
        let found = self.to.position();
        if found == end {
            return Ok(());
        }
        Err(Error::changed(&format!("it took {end} bytes first and {found} bytes then")))
    }
}

impl Drop for Appending<'_> {
    #[inline]
    fn drop(&mut self) {
        *self.buffer = self.to.take_buffer();
        if !self.is_done {
            self.buffer.truncate(self.start);
        }
    }
}

/// Encodes a value into a writer.
///
/// Small pieces are collected in a buffer. The bytes of large tensors are written directly, without
/// copying them. So the writer does not need a buffer of its own. The writer is not flushed.
///
/// With [`EncodeOptions::with_typed_arrays`], a sequence that may become a typed array is collected in
/// memory before it is written.
///
/// ```
/// use std::io::Write;
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("message.cbor");
/// let mut file = std::fs::File::create(&path)?;
/// tenarc::to_writer(&mut file, &["two", "texts"])?;
/// file.flush()?;
/// assert_eq!(std::fs::read(&path)?, b"\x82\x63two\x65texts");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the value's own `Serialize` fails, if the value is nested deeper than
/// [`EncodeOptions::with_max_depth`] allows, if a sequence or map has another length than it
/// announced, or if the writer fails.
pub fn to_writer<W: io::Write, T: Serialize + ?Sized>(writer: W, value: &T) -> Result<()> {
    to_writer_with(writer, value, EncodeOptions::default())
}

/// Like [`to_writer`], with options.
///
/// # Errors
/// The same errors as [`to_writer`].
pub fn to_writer_with<W: io::Write, T: Serialize + ?Sized>(
    mut writer: W,
    value: &T,
    options: EncodeOptions,
) -> Result<()> {
    let mut encoder = Stage::sink_with(&mut writer, Context::new(options));
    value.serialize(encoder.writer())?;
    encoder.flush()
}

/// Encodes values one after the other into a writer, as a CBOR sequence (RFC 8742).
///
/// When a call returns, all bytes of its value have been passed to the writer.
///
/// ```
/// use serde::Serialize;
/// use tenarc::{Deserializer, Serializer};
///
/// let mut serializer = Serializer::new(Vec::new());
/// for step in 0..3u32 {
///     (step, "loss").serialize(&mut serializer)?;
/// }
/// let bytes = serializer.into_inner();
///
/// let steps: Result<Vec<(u32, String)>, _> = Deserializer::from_slice(&bytes).into_iter().collect();
/// assert_eq!(steps?.len(), 3);
/// # Ok::<(), tenarc::Error>(())
/// ```
pub struct Serializer<W: io::Write> {
    encoder: WriterTo<Stage<W>>,
    broken: bool,
}

impl<W: io::Write> std::fmt::Debug for Serializer<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Serializer").field("broken", &self.broken).finish_non_exhaustive()
    }
}

impl<W: io::Write> Serializer<W> {
    /// A serializer that writes to `writer`.
    pub fn new(writer: W) -> Self {
        Self::with_options(writer, EncodeOptions::default())
    }

    /// A serializer that writes to `writer`, with options.
    pub fn with_options(writer: W, options: EncodeOptions) -> Self {
        Self { encoder: Stage::sink_with(writer, Context::new(options)), broken: false }
    }

    /// The writer.
    pub fn get_ref(&self) -> &W {
        self.encoder.overflow_ref().get_ref()
    }

    /// The writer. Bytes that you write to it directly appear between two values.
    pub fn get_mut(&mut self) -> &mut W {
        self.encoder.overflow_mut().get_mut()
    }

    /// The writer.
    pub fn into_inner(self) -> W {
        self.encoder.into_parts().2.into_inner()
    }

    /// Starts a value. An error if an earlier value was written only partly.
    fn begin(&mut self) -> Result<&mut Writer<'_>> {
        if self.broken || !self.encoder.context.at_top() {
            return Err(Error::data("an earlier value failed part-way, so the stream is broken"));
        }
        Ok(self.encoder.writer())
    }

    fn whole(&mut self, write: impl FnOnce(&mut Writer<'_>) -> Result<()>) -> Result<()> {
        self.begin()?;
        // Stays true if the value's code panics.
        self.broken = true;
        let result = write(self.encoder.writer()).and_then(|()| self.encoder.flush());
        self.broken = result.is_err();
        result
    }
}

macro_rules! whole {
    ($($method:ident($($arg:ident: $type:ty),*);)*) => {$(
        fn $method(self, $($arg: $type),*) -> Result<()> {
            self.whole(|encoder| encoder.$method($($arg),*))
        }
    )*};
}

impl<'a, W: io::Write> ser::Serializer for &'a mut Serializer<W> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Sequence<'a, 'a>;
    type SerializeTuple = Compound<'a, 'a>;
    type SerializeTupleStruct = Compound<'a, 'a>;
    type SerializeTupleVariant = Compound<'a, 'a>;
    type SerializeMap = Compound<'a, 'a>;
    type SerializeStruct = Compound<'a, 'a>;
    type SerializeStructVariant = Compound<'a, 'a>;

    whole! {
        serialize_bool(v: bool);
        serialize_i8(v: i8);
        serialize_i16(v: i16);
        serialize_i32(v: i32);
        serialize_i64(v: i64);
        serialize_i128(v: i128);
        serialize_u8(v: u8);
        serialize_u16(v: u16);
        serialize_u32(v: u32);
        serialize_u64(v: u64);
        serialize_u128(v: u128);
        serialize_f32(v: f32);
        serialize_f64(v: f64);
        serialize_char(v: char);
        serialize_str(v: &str);
        serialize_bytes(v: &[u8]);
        serialize_none();
        serialize_unit();
        serialize_unit_struct(name: &'static str);
        serialize_unit_variant(name: &'static str, index: u32, variant: &'static str);
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        self.whole(|encoder| encoder.serialize_some(value))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<()> {
        self.whole(|encoder| encoder.serialize_newtype_struct(name, value))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<()> {
        self.whole(|encoder| encoder.serialize_newtype_variant(name, index, variant, value))
    }

    fn collect_seq<I>(self, iter: I) -> Result<()>
    where
        I: IntoIterator,
        I::Item: Serialize,
    {
        self.whole(|encoder| encoder.collect_seq(iter))
    }

    // When the outermost compound ends, it flushes everything to the writer.

    fn serialize_seq(self, len: Option<usize>) -> Result<Sequence<'a, 'a>> {
        self.begin()?.serialize_seq(len)
    }

    fn serialize_tuple(self, len: usize) -> Result<Compound<'a, 'a>> {
        self.begin()?.serialize_tuple(len)
    }

    fn serialize_tuple_struct(self, name: &'static str, len: usize) -> Result<Compound<'a, 'a>> {
        self.begin()?.serialize_tuple_struct(name, len)
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Compound<'a, 'a>> {
        self.begin()?.serialize_tuple_variant(name, index, variant, len)
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Compound<'a, 'a>> {
        self.begin()?.serialize_map(len)
    }

    fn serialize_struct(self, name: &'static str, len: usize) -> Result<Compound<'a, 'a>> {
        self.begin()?.serialize_struct(name, len)
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Compound<'a, 'a>> {
        self.begin()?.serialize_struct_variant(name, index, variant, len)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}
