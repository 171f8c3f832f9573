//! Writes paths (annex A of the specification), and finds out which of them are ambiguous.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::hash::{BuildHasher, Hasher, RandomState};

use crate::diag;
use crate::error::Result;
use crate::io::input::Input;
use crate::options::Limits;
use crate::steps::escape_step;
use crate::wire::head;
use crate::wire::reader::Reader;
use crate::wire::strings::Text;
use crate::wire::tag;
use crate::wire::walk::{Event, Walk};

/// Reads the next map key as a component of a path: text unchanged, other keys in diagnostic notation.
pub fn key<'de>(wire: &mut Reader<'de, '_>) -> Result<Cow<'de, str>> {
    if let Some(text) = wire.short_text() {
        return Ok(Cow::Borrowed(text));
    }
    match wire.initial()? >> 5 {
        head::TEXT => {}
        major => {
            if wire.is_strict() && matches!(major, head::ARRAY..=head::TAG) {
                // The notation is that of any item.
                let item = Input::slice(wire.src.window());
                let mut ahead = Reader::new(item, wire.limits()).with_strict(true);
                ahead.skip().map_err(|error| error.moved_by(wire.offset()))?;
            }
            return diag::value(wire).map(Cow::Owned);
        }
    }
    let head = wire.head()?;
    wire.text(head).map(Text::into_cow)
}

/// The steps from the root of a value to an item inside it.
#[derive(Default)]
pub struct ItemPath(pub(super) Vec<Step>);

#[derive(Clone)]
pub enum Step {
    /// Into the value of a map key, which is given as a path component.
    Key(String),
    Index(u64),
    /// Into a map key itself. No path can express this.
    InKey,
}

impl Step {
    fn component(&self) -> Cow<'_, str> {
        match self {
            Self::Key(key) => Cow::Borrowed(key),
            Self::Index(index) => Cow::Owned(index.to_string()),
            Self::InKey => Cow::Borrowed("?"),
        }
    }
}

impl ItemPath {
    /// Whether a path can express this place. It cannot inside a map key.
    pub fn is_named(&self) -> bool {
        !self.0.iter().any(|step| matches!(step, Step::InKey))
    }

    /// Writes the path, on the assumption that no other value has the same dotted path.
    pub fn text(&self) -> String {
        let dotted = PathNotation::Dotted.join(self.components());
        if reads_as_another(&dotted, self.0.is_empty()) {
            PathNotation::Pointer.join(self.components())
        } else {
            dotted
        }
    }

    /// The components of the path, in the order from the root.
    pub fn components(&self) -> impl Iterator<Item = Cow<'_, str>> + Clone {
        self.0.iter().map(Step::component)
    }
}

/// Whether the dotted form of a path would be read as the path of the whole value or as a JSON Pointer.
fn reads_as_another(dotted: &str, is_root: bool) -> bool {
    dotted.starts_with('/') || (dotted.is_empty() && !is_root)
}

/// The two ways to write a path.
#[derive(Clone, Copy)]
enum PathNotation {
    Dotted,
    /// A JSON Pointer (RFC 6901).
    Pointer,
}

impl PathNotation {
    fn join<C: AsRef<str>>(self, components: impl Iterator<Item = C>) -> String {
        let mut text = String::new();
        for (at, component) in components.enumerate() {
            self.extend(at == 0, component.as_ref(), &mut |part| text.push_str(part));
        }
        text
    }

    /// Calls `put` with the text that one more component adds to a path.
    fn extend(self, is_first: bool, component: &str, put: &mut dyn FnMut(&str)) {
        match self {
            Self::Dotted => {
                if !is_first {
                    put(".");
                }
                put(component);
            }
            Self::Pointer => {
                put("/");
                put(&escape_step(component));
            }
        }
    }
}

/// The values whose paths are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Of {
    Tensors,
    /// All values. This needs more memory than [`Tensors`](Self::Tensors) if the metadata has odd keys.
    All,
}

/// The ambiguous paths, each of which leads to more than one value. The paths of all values are compared, even if only
/// those of tensors are written.
///
/// The paths are kept as hashes. One long key is part of the path of everything under it, so that the paths
/// themselves could fill the memory. The hash has a random seed: nobody can prepare keys that collide.
#[derive(Clone)]
pub struct Ambiguous<S = RandomState> {
    hashes: S,
    dotted: HashSet<u64>,
    /// A subset of the ambiguous paths, as JSON Pointers. A JSON Pointer is ambiguous only if a map has
    /// two keys with the same text.
    pointers: HashSet<u64>,
}

/// A path as text.
pub struct Written {
    pub text: String,
    /// Whether the path leads only to this value. `false` if a key occurs twice in a map.
    pub is_unique: bool,
}

impl Ambiguous {
    pub fn of(written: Of, metadata: &[u8], limits: Limits) -> Result<Self> {
        Self::with_hashes(written, metadata, limits, RandomState::new())
    }
}

impl<S: BuildHasher<Hasher: Clone>> Ambiguous<S> {
    fn with_hashes(written: Of, metadata: &[u8], limits: Limits, hashes: S) -> Result<Self> {
        let wire = || Reader::new(Input::slice(metadata), limits);
        let mut found = Self { hashes, dotted: HashSet::new(), pointers: HashSet::new() };
        if has_odd_keys(&mut wire())? {
            found.dotted = found.repeated(PathNotation::Dotted, written, wire)?;
        }
        if !found.dotted.is_empty() {
            found.pointers = found.repeated(PathNotation::Pointer, written, wire)?;
        }
        Ok(found)
    }

    pub fn written<C: AsRef<str>>(&self, components: impl Iterator<Item = C> + Clone) -> Written {
        let dotted = PathNotation::Dotted.join(components.clone());
        let is_root = components.clone().next().is_none();
        if !self.has(&self.dotted, &dotted) && !reads_as_another(&dotted, is_root) {
            return Written { text: dotted, is_unique: true };
        }
        let pointer = PathNotation::Pointer.join(components);
        Written { is_unique: !self.has(&self.pointers, &pointer), text: pointer }
    }

    /// Like [`written`](Self::written), for a column. `is_ambiguous` says whether another column has the same dotted
    /// path.
    pub fn written_in<C: AsRef<str>>(
        &self,
        components: impl Iterator<Item = C> + Clone,
        is_ambiguous: bool,
    ) -> Written {
        match self.written(components.clone()) {
            written if is_ambiguous => {
                Written { text: PathNotation::Pointer.join(components), ..written }
            }
            written => written,
        }
    }

    fn has(&self, paths: &HashSet<u64>, path: &str) -> bool {
        if paths.is_empty() {
            return false;
        }
        let mut hasher = self.hashes.build_hasher();
        hasher.write(path.as_bytes());
        paths.contains(&hasher.finish())
    }

    /// Hashes of the paths, in this form, that lead to more than one value.
    fn repeated<'a>(
        &self,
        form: PathNotation,
        written: Of,
        wire: impl Fn() -> Reader<'a, 'a>,
    ) -> Result<HashSet<u64>> {
        let start = self.hashes.build_hasher();
        let mut repeated = HashSet::new();
        if written == Of::All {
            let mut seen = HashSet::new();
            hash_paths(&mut wire(), form, &start, &mut |path, _| {
                let path = path.finish();
                if !seen.insert(path) {
                    repeated.insert(path);
                }
            })?;
            return Ok(repeated);
        }
        // For each tensor path, whether a value with this path was seen.
        let mut tensors = HashMap::new();
        hash_paths(&mut wire(), form, &start, &mut |path, is_tensor| {
            if is_tensor {
                tensors.insert(path.finish(), false);
            }
        })?;
        hash_paths(&mut wire(), form, &start, &mut |path, _| {
            let path = path.finish();
            if let Some(found) = tensors.get_mut(&path)
                && std::mem::replace(found, true)
            {
                repeated.insert(path);
            }
        })?;
        Ok(repeated)
    }
}

/// Whether the metadata has keys that could make two paths equal: keys with dots, empty keys, or keys
/// that occur twice in one map.
fn has_odd_keys(wire: &mut Reader<'_, '_>) -> Result<bool> {
    // The keys of the maps around the next item, and for each of these maps how many of the keys are outside.
    let (mut keys, mut outside) = (Vec::new(), Vec::new());
    let mut walk = Walk::default();
    while let Some(event) = walk.next(wire)? {
        match event {
            Event::Map(_) => outside.push(keys.len()),
            Event::Key(_) => {
                let key = key(walk.take(wire))?;
                if key.is_empty() || key.contains('.') {
                    return Ok(true);
                }
                keys.push(key);
            }
            Event::End { major: head::MAP, .. } => {
                let outside = outside.pop().unwrap_or_default();
                let inside = keys.get_mut(outside..).unwrap_or_default();
                inside.sort_unstable();
                if inside.windows(2).any(|pair| pair[0] == pair[1]) {
                    return Ok(true);
                }
                keys.truncate(outside);
            }
            Event::Tag(tag) if tag::is_leaf(tag) => walk.take(wire).within(1, Reader::skip)?,
            Event::Leaf(head) => wire.skip_rest(head)?,
            Event::Element(_) | Event::Value { .. } => {}
            Event::Array(_) | Event::Tag(_) | Event::End { .. } => {}
        }
    }
    Ok(false)
}

/// Calls `each` for every value with a hasher that has read its path, and with whether it is a tensor. `root`
/// is a new hasher.
fn hash_paths<H: Hasher + Clone>(
    wire: &mut Reader<'_, '_>,
    form: PathNotation,
    root: &H,
    each: &mut dyn FnMut(&H, bool),
) -> Result<()> {
    // The hasher's state at the next item, and at each array and map around it. Each key is hashed once, not
    // once for every value under it.
    let (mut path, mut around) = (root.clone(), Vec::new());
    let enter = |path: &mut H, around: &[H], component: &str| {
        path.clone_from(around.last().unwrap_or(root));
        form.extend(around.len() <= 1, component, &mut |part| path.write(part.as_bytes()));
    };
    let mut digits = String::new();
    let mut walk = Walk::with_items_of_types();
    while let Some(event) = walk.next(wire)? {
        match event {
            Event::Element(index) => {
                digits.clear();
                // Writing to a string cannot fail.
                let _ = write!(digits, "{index}");
                enter(&mut path, &around, &digits);
            }
            Event::Key(_) => enter(&mut path, &around, &key(walk.take(wire))?),
            Event::Array(_) | Event::Map(_) => {
                each(&path, false);
                around.push(path.clone());
            }
            Event::End { major: head::ARRAY | head::MAP, .. } => drop(around.pop()),
            Event::Tag(tag) if tag::is_leaf(tag) => {
                each(&path, tag::is_array(tag));
                walk.take(wire).within(1, Reader::skip)?;
            }
            Event::Leaf(head) => {
                each(&path, false);
                wire.skip_rest(head)?;
            }
            // Any other tag has the same path as the item inside it.
            Event::Value { .. } | Event::Tag(_) | Event::End { .. } => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::hash::DefaultHasher;
    use std::rc::Rc;

    use super::*;
    use crate::Value;

    /// Counts the bytes that are hashed.
    #[derive(Clone, Default)]
    struct Counting {
        hasher: DefaultHasher,
        bytes: Rc<Cell<usize>>,
    }

    impl Hasher for Counting {
        fn write(&mut self, bytes: &[u8]) {
            self.bytes.set(self.bytes.get() + bytes.len());
            self.hasher.write(bytes);
        }

        fn finish(&self) -> u64 {
            self.hasher.finish()
        }
    }

    impl BuildHasher for Counting {
        type Hasher = Self;

        fn build_hasher(&self) -> Self {
            self.clone()
        }
    }

    fn map(entries: Vec<(Value, Value)>) -> Value {
        Value::Map(entries)
    }

    fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    fn tensor() -> Value {
        crate::to_value(&crate::Tensor(vec![1u8])).unwrap()
    }

    #[test]
    fn hashes_each_key_a_few_times_however_many_dots_it_has() {
        let dots = 64_000;
        let key = |at: usize| text(&format!("{at}{}", ".".repeat(dots)));
        let mut entries: Vec<_> = (0..10).map(|at| (key(at), tensor())).collect();
        let inside = (0..1000).map(|at| (text(&format!("{at}.")), tensor())).collect();
        entries.push((key(10), map(inside)));
        let metadata = crate::to_vec(&map(entries)).unwrap();
        let counting = Counting::default();
        let found =
            Ambiguous::with_hashes(Of::Tensors, &metadata, Limits::default(), counting.clone());
        let found = found.unwrap();
        assert!(found.dotted.is_empty());
        let hashed = counting.bytes.get();
        assert!((11 * dots..4 * metadata.len()).contains(&hashed), "{hashed} bytes");
    }

    #[test]
    fn a_path_hashes_alike_in_whatever_pieces_it_comes() {
        // `Hasher` does not promise this, but the paths rely on it.
        let hashes = RandomState::new();
        let mut pieces = hashes.build_hasher();
        let whole = "layers.3.weight and more than a block of the hash has, whatever that is";
        let (mut rest, mut len) = (whole, 0);
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(len.min(rest.len()));
            pieces.write(piece.as_bytes());
            (rest, len) = (behind, len + 1);
        }
        let mut one = hashes.build_hasher();
        one.write(whole.as_bytes());
        assert_eq!(pieces.finish(), one.finish());
    }

    #[test]
    fn spells_every_kind_of_key() {
        let cases: [(&[u8], &str); 24] = [
            (b"\x63a.b", "a.b"),
            (b"\x7f\x61a\x61b\xff", "ab"),
            (b"\x07", "7"),
            (b"\x18\x07", "7"),
            (b"\x3b\xff\xff\xff\xff\xff\xff\xff\xff", "-18446744073709551616"),
            (b"\xc2\x49\x01\0\0\0\0\0\0\0\0", "18446744073709551616"),
            (b"\xc3\x49\x01\0\0\0\0\0\0\0\0", "-18446744073709551617"),
            (
                b"\xc2\x50\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
                "340282366920938463463374607431768211455",
            ),
            (
                b"\xc3\x50\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
                "3(h'80000000000000000000000000000000')",
            ),
            (b"\xc2\x01", "2(1)"),
            (b"\x43\x00\xab\xff", "h'00abff'"),
            (b"\x5f\x41\x00\x42\xab\xff\xff", "h'00abff'"),
            (b"\x40", "h''"),
            (b"\x82\x01\x61a", "[1, \"a\"]"),
            (b"\x9f\x01\x02\xff", "[1, 2]"),
            (b"\xa1\x61\"\xf6", "{\"\\\"\": null}"),
            (b"\xbf\xf4\xf5\xff", "{false: true}"),
            (b"\xf9\x3e\x00", "1.5"),
            (b"\xfa\x3f\xc0\0\0", "1.5"),
            (b"\xfb\x7e\x37\xe4\x3c\x88\x00\x75\x9c", "1e300"),
            (b"\xf9\x7e\x00", "NaN"),
            (b"\xf9\xfc\x00", "-Infinity"),
            (b"\xf7", "undefined"),
            (b"\xd8\x20\x61a", "32(\"a\")"),
        ];
        for (encoded, expected) in cases {
            let mut wire = Reader::new(Input::slice(encoded), Limits::default());
            assert_eq!(key(&mut wire).unwrap(), expected, "{encoded:x?}");
            assert!(wire.rest().is_empty(), "{expected}");
        }
    }
}
