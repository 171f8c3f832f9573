//! Finds the path of the item that a writer writes next, from the metadata that it has written so far.

use super::spelling::{self, ItemPath, Step};
use crate::io::input::Input;
use crate::options::Limits;
use crate::wire::head::{self, Parsed};
use crate::wire::reader::Reader;
use crate::wire::tag;

/// Parses metadata while it is being written. Each call continues where the previous one ended, so that
/// the metadata is parsed once in total.
///
/// It does not use [`Walk`](crate::wire::walk::Walk). In an array of unknown length, a walk reads the next byte to
/// tell an element from the end. Here, the writer asks for the path of an element before it writes that byte.
#[derive(Default)]
pub struct PathTracker {
    /// The number of bytes of the metadata that were parsed.
    at: usize,
    /// The arrays and maps that are not complete yet, outermost first.
    open: Vec<OpenItem>,
    /// The number of arrays and maps around the last columns that were met. Parts of columns have the path
    /// of the sequence.
    columns: Option<usize>,
}

struct OpenItem {
    place: PlaceInItem,
    /// The number of items or entries still to come. `None` for an indefinite length.
    left: Option<u64>,
}

enum PlaceInItem {
    Index(u64),
    /// At or inside a key that starts at this offset.
    Key(usize),
    /// At or inside the value of this key.
    Value(Step),
}

impl PathTracker {
    /// The path of the item that is written next, after the `written` metadata.
    pub fn path(&mut self, written: &[u8]) -> ItemPath {
        while self.follow(written) {}
        let step = |open: &OpenItem| match &open.place {
            PlaceInItem::Index(index) => Step::Index(*index),
            PlaceInItem::Value(key) => key.clone(),
            PlaceInItem::Key(_) => Step::InKey,
        };
        let around = self.columns.unwrap_or(usize::MAX);
        ItemPath(self.open.iter().take(around).map(step).collect())
    }

    /// Parses one head, and for a string also its content. Returns `false` if it is not complete yet.
    fn follow(&mut self, written: &[u8]) -> bool {
        let rest = written.get(self.at..).unwrap_or_default();
        let Parsed::Head(found, head_len) = head::parse(rest) else { return false };
        match found.major() {
            // The tagged item follows.
            head::TAG => {
                self.at += head_len;
                if found.arg == tag::COLUMNS {
                    self.columns.get_or_insert(self.open.len());
                }
            }
            head::ARRAY | head::MAP => {
                self.at += head_len;
                let is_map = found.major() == head::MAP;
                let place = if is_map { PlaceInItem::Key(self.at) } else { PlaceInItem::Index(0) };
                self.open.push(OpenItem { place, left: found.length() });
                if found.length() == Some(0) {
                    self.close(written);
                }
            }
            head::BYTES | head::TEXT => {
                let content = usize::try_from(found.arg).ok();
                let len = content.and_then(|content| head_len.checked_add(content));
                let Some(len) = len.filter(|&len| len <= rest.len()) else { return false };
                self.at += len;
                self.item(written);
            }
            _ => {
                self.at += head_len;
                if found.initial == head::BREAK { self.close(written) } else { self.item(written) }
            }
        }
        true
    }

    /// Called at the end of an array or map.
    fn close(&mut self, written: &[u8]) {
        self.open.pop();
        if self.columns == Some(self.open.len()) {
            self.columns = None;
        }
        self.item(written);
    }

    /// Called at the end of an item.
    fn item(&mut self, written: &[u8]) {
        let Some(open) = self.open.last_mut() else { return };
        match &mut open.place {
            PlaceInItem::Key(start) => {
                let item = Input::slice(written.get(*start..self.at).unwrap_or_default());
                let key = spelling::key(&mut Reader::new(item, Limits::default()));
                // The save fails anyway if a key cannot be read back.
                let step = key.map_or(Step::InKey, |key| Step::Key(key.into_owned()));
                open.place = PlaceInItem::Value(step);
                return;
            }
            PlaceInItem::Value(_) => open.place = PlaceInItem::Key(self.at),
            PlaceInItem::Index(index) => *index += 1,
        }
        if let Some(left) = &mut open.left {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.close(written);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_paths_however_the_metadata_comes() {
        // {"a": [1, {-2: (h'00', [], {})}], [0]: 3, "b": 24([_ "x", [_ "y", "z"], ...
        let written = b"\xa3\x61a\x82\x01\xa1\x21\x83\x41\x00\x80\xa0\x81\x00\x03\x61b\xd8\x18\
            \x9f\x61x\x9f\x61y\x61z\xff";
        let expected = [
            (0, ""),
            (1, "?"),
            (3, "a"),
            (4, "a.0"),
            (5, "a.1"),
            (6, "a.1.?"),
            (7, "a.1.-2"),
            (8, "a.1.-2.0"),
            (10, "a.1.-2.1"),
            (11, "a.1.-2.2"),
            (12, "?"),
            (13, "?.0"),
            (14, "[0]"),
            (15, "?"),
            (17, "b"),
            (19, "b"),
            (20, "b.0"),
            (22, "b.1"),
            (23, "b.1.0"),
            (27, "b.1.2"),
            (28, "b.2"),
        ];
        let mut along = PathTracker::default();
        for (len, path) in expected {
            assert_eq!(along.path(&written[..len]).text(), path, "{len}");
            assert_eq!(PathTracker::default().path(&written[..len]).text(), path, "{len}");
        }
    }

    #[test]
    fn names_keys_with_their_tags() {
        // {1("a"): 0, 1([2]): 1(0), "b": 0, 3: ...
        let written = b"\xa5\xc1\x61a\x00\xc1\x81\x02\xc1\x00\x61b\x00\x03";
        let expected = [
            (1, "?"),
            (4, "1(\"a\")"),
            (5, "?"),
            (7, "?.0"),
            (8, "1([2])"),
            (9, "1([2])"),
            (10, "?"),
            (12, "b"),
            (14, "3"),
        ];
        for (len, path) in expected {
            assert_eq!(PathTracker::default().path(&written[..len]).text(), path, "{len}");
        }
    }
}
