//! Where in a value a writer stands, told by the metadata that it has written so far.

use super::path::{Path, Step};
use crate::wire::head::{self, Parsed};

/// Follows metadata while it is written. Each call goes on where the last one ended, so that all of
/// them together read it once.
#[derive(Default)]
pub struct Trail {
    /// How much of the metadata was read.
    at: usize,
    /// Arrays and maps that are not at their ends.
    open: Vec<Frame>,
    /// Whether tags stand before what comes next: no key is named through them.
    tagged: bool,
}

struct Frame {
    place: Place,
    /// Items or entries still to come; `None` where a break ends them.
    left: Option<u64>,
}

enum Place {
    Index(u64),
    /// Before a key, or before the value of one.
    Key(Option<Step>),
}

impl Trail {
    /// The path to what comes next behind the `written` metadata.
    pub fn path(&mut self, written: &[u8]) -> Path {
        while let Some(rest) = written.get(self.at..).filter(|rest| !rest.is_empty()) {
            if !self.follow(rest) {
                break;
            }
        }
        let step = |frame: &Frame| match &frame.place {
            Place::Index(index) => Step::Index(*index),
            Place::Key(Some(step)) => step.clone(),
            Place::Key(None) => Step::Unnamed,
        };
        Path(self.open.iter().map(step).collect())
    }

    /// Reads a head and, of a string, what follows; whether they were whole.
    fn follow(&mut self, rest: &[u8]) -> bool {
        let Parsed::Head(found, head_len) = head::parse(rest) else { return false };
        let mut len = head_len;
        match found.major() {
            // What follows is the item.
            head::TAG => self.tagged = true,
            head::ARRAY | head::MAP => {
                self.tagged = false;
                let place =
                    if found.major() == head::MAP { Place::Key(None) } else { Place::Index(0) };
                self.open.push(Frame { place, left: found.length() });
                if found.length() == Some(0) {
                    self.close();
                }
            }
            head::BYTES | head::TEXT if found.is_indefinite() => {
                // Its chunks are as elements.
                self.tagged = false;
                self.open.push(Frame { place: Place::Index(0), left: None });
            }
            head::BYTES | head::TEXT => {
                let content = usize::try_from(found.arg).ok();
                let end = content.and_then(|content| head_len.checked_add(content));
                let Some(content) = end.and_then(|end| rest.get(head_len..end)) else {
                    return false;
                };
                len += content.len();
                let text = std::str::from_utf8(content).ok();
                let text = text.filter(|_| found.major() == head::TEXT);
                self.item(|| text.map(str::to_owned));
            }
            _ if found.initial == head::BREAK => self.close(),
            head::UNSIGNED => self.item(|| Some(found.arg.to_string())),
            head::NEGATIVE => self.item(|| Some((-1 - i128::from(found.arg)).to_string())),
            _ => self.item(|| None),
        }
        self.at += len;
        true
    }

    /// An array or map is at its end.
    fn close(&mut self) {
        self.open.pop();
        self.item(|| None);
    }

    /// An item is at its end, which as a key is named so.
    fn item(&mut self, name: impl FnOnce() -> Option<String>) {
        let tagged = std::mem::take(&mut self.tagged);
        let Some(frame) = self.open.last_mut() else { return };
        match &mut frame.place {
            Place::Key(key @ None) => {
                let name = if tagged { None } else { name() };
                *key = Some(name.map_or(Step::Unnamed, Step::Key));
                return;
            }
            Place::Key(key) => *key = None,
            Place::Index(index) => *index += 1,
        }
        if let Some(left) = &mut frame.left {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.close();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_paths_however_the_metadata_comes() {
        // {"a": [1, {-2: (h'00', [], {})}], [0]: 3, "b": 24([_ "x", (_ "y", "z"), ...
        let written = b"\xa3\x61a\x82\x01\xa1\x21\x83\x41\x00\x80\xa0\x81\x00\x03\x61b\xd8\x18\
            \x9f\x61x\x7f\x61y\x61z\xff";
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
            (14, "?"),
            (15, "?"),
            (17, "b"),
            (19, "b"),
            (20, "b.0"),
            (22, "b.1"),
            (23, "b.1.0"),
            (27, "b.1.2"),
            (28, "b.2"),
        ];
        let mut along = Trail::default();
        for (len, path) in expected {
            assert_eq!(along.path(&written[..len]).text(false), path, "{len}");
            assert_eq!(Trail::default().path(&written[..len]).text(false), path, "{len}");
        }
    }

    #[test]
    fn names_no_key_through_a_tag() {
        // {1("a"): 0, 1([2]): 1(0), "b": 0, 3: ...
        let written = b"\xa5\xc1\x61a\x00\xc1\x81\x02\xc1\x00\x61b\x00\x03";
        let expected = [(4, "?"), (5, "?"), (7, "?.0"), (8, "?"), (9, "?"), (12, "b"), (14, "3")];
        for (len, path) in expected {
            assert_eq!(Trail::default().path(&written[..len]).text(false), path, "{len}");
        }
    }
}
