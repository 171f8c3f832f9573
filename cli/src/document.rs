//! What an input holds, whatever its format: values, one after the other.

use std::ops::Range;
use std::path::Path;

use tenarc::Archive;
use tenarc::archive::Segment;

use crate::failure::{Failure, Of, Result};
use crate::formats::fetched::Fetched;
use crate::formats::{self, Format};
use crate::input::{Input, Source};
use crate::node::{self, Node};
use crate::output::say;
use crate::paths;
use crate::progress::Progress;
use crate::text::{counted, quoted};

/// How inputs are read; what the options of every subcommand say.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The format, if not found out from the input.
    pub from: Option<Format>,
    /// Whether to read what is whole of a torn archive.
    pub torn: bool,
}

/// An input, opened.
pub struct Document {
    pub name: String,
    pub format: Format,
    held: Held,
}

enum Held {
    Archive(Box<Archive<Source>>),
    /// Messages, and where each stands.
    Messages(Vec<u8>, Vec<Range<usize>>),
    Fetched(Box<Fetched>),
}

impl Document {
    /// # Errors
    /// Where the input cannot be read, or is none of a known format.
    pub fn open(path: &Path, reading: &Reading) -> Result<Self> {
        let input = Input::open(path)?;
        let name = input.name.clone();
        let format = match reading.from {
            Some(format) => format,
            None => formats::detect(path, &input)?,
        };
        let read = formats::codec(format).read(input, reading).of(&name);
        let guessed = reading.from.is_none() && formats::by_extension(path) != Some(format);
        read.map_err(|failure| match failure {
            Failure::Other(message) if format == Format::Message && guessed => {
                let hint = "it was taken for CBOR, as nothing says otherwise: see --from";
                Failure::Other(format!("{message}; {hint}"))
            }
            other => other,
        })
    }

    pub fn of_archive(name: String, format: Format, archive: Archive<Source>) -> Self {
        Self { name, format, held: Held::Archive(Box::new(archive)) }
    }

    /// # Errors
    /// Where the bytes are no sequence of items.
    pub fn of_messages(name: String, format: Format, bytes: Vec<u8>) -> Result<Self> {
        let ranges = node::items(&bytes)?;
        Ok(Self { name, format, held: Held::Messages(bytes, ranges) })
    }

    pub fn of_fetched(name: String, format: Format, fetched: Fetched) -> Self {
        Self { name, format, held: Held::Fetched(Box::new(fetched)) }
    }

    /// The archive, if it is one.
    pub fn archive(&self) -> Option<&Archive<Source>> {
        match &self.held {
            Held::Archive(archive) => Some(archive),
            _ => None,
        }
    }

    /// The value whose tensors are fetched, if it is one.
    pub fn fetched(&self) -> Option<&Fetched> {
        match &self.held {
            Held::Fetched(fetched) => Some(fetched),
            _ => None,
        }
    }

    /// Says what the file holds that is not shown.
    pub fn tell(&self) {
        if let Some(fetched) = self.fetched().filter(|fetched| !fetched.lost.is_empty()) {
            say(&format!("{}: not read: {}", self.name, fetched.lost));
        }
    }

    /// That nothing of the file is lost, unless that is accepted, and so said.
    ///
    /// # Errors
    /// Where something would be.
    pub fn keep(&self, lossy: bool) -> Result<()> {
        match self.fetched() {
            Some(fetched) if !lossy && !fetched.lost.is_empty() => {
                let hint = "`tenarc convert --lossy` goes on without";
                Err(Failure::new(format!("cannot be kept: {}; {hint}", fetched.lost))
                    .of(&self.name))
            }
            Some(fetched) => {
                fetched.lost.tell(&self.name);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Shows how much of the file is read from now on, to its end.
    pub fn watch(&self, what: &'static str, quiet: bool) {
        self.watch_by(&Progress::new(self.byte_len(), what, quiet));
    }

    /// As [`watch`](Self::watch), of several together.
    pub fn watch_by(&self, progress: &Progress) {
        match &self.held {
            Held::Archive(archive) => archive.source().watch(progress.clone()),
            Held::Fetched(fetched) => fetched.watch(progress.clone()),
            Held::Messages(..) => {}
        }
    }

    /// The length of what is read as it is asked for.
    pub fn byte_len(&self) -> u64 {
        match &self.held {
            Held::Archive(archive) => archive.byte_len(),
            Held::Fetched(fetched) => fetched.byte_len(),
            Held::Messages(..) => 0,
        }
    }

    /// The bytes of messages.
    pub fn messages(&self) -> Option<&[u8]> {
        match &self.held {
            Held::Messages(bytes, _) => Some(bytes),
            _ => None,
        }
    }

    /// How many values there are.
    pub fn len(&self) -> u64 {
        match &self.held {
            Held::Archive(archive) => archive.len(),
            Held::Messages(_, ranges) => ranges.len() as u64,
            Held::Fetched(_) => 1,
        }
    }

    /// The value of a number.
    ///
    /// # Errors
    /// Where there is none, or it is damaged.
    pub fn section(&self, number: u64) -> Result<Section<'_>> {
        self.at(number).of(&self.name)
    }

    fn at(&self, number: u64) -> Result<Section<'_>> {
        let file = &*self.name;
        match &self.held {
            Held::Archive(archive) => {
                Section::of_segment(number, file, archive.segment(number)?, archive.source())
            }
            Held::Messages(bytes, ranges) => {
                let range = usize::try_from(number).ok().and_then(|at| ranges.get(at));
                let range = range.ok_or_else(|| self.none_of(number))?;
                let bytes = bytes.get(range.clone()).unwrap_or_default();
                let root = node::parse(bytes, &[])?;
                paths::check(&root)?;
                Ok(Section { number, file, item: Item::Message(bytes), root })
            }
            Held::Fetched(fetched) if number == 0 => {
                Ok(Section { number, file, item: Item::Fetched(fetched), root: fetched.root()? })
            }
            Held::Fetched(_) => Err(self.none_of(number)),
        }
    }

    fn none_of(&self, number: u64) -> Failure {
        let count = counted(self.len(), "value");
        Failure::new(format!("it holds {count}, none of number {number}"))
    }

    /// The values meant: the one chosen, or all.
    ///
    /// # Errors
    /// Where there is none as chosen.
    pub fn sections(
        &self,
        chosen: Option<&str>,
    ) -> Result<impl Iterator<Item = Result<Section<'_>>> + '_> {
        let numbers = match chosen {
            None => 0..self.len(),
            Some(chosen) => {
                let number = self.number(chosen).of(&self.name)?;
                number..number + 1
            }
        };
        Ok(numbers.map(|number| self.section(number)))
    }

    /// The one value meant.
    ///
    /// # Errors
    /// Where none is chosen and there are several.
    pub fn only(&self, chosen: Option<&str>) -> Result<Section<'_>> {
        match (chosen, self.len()) {
            (None, 1) => self.section(0),
            (None, count) => {
                let count = counted(count, "value");
                let what = format!("{}: it holds {count}: choose one by --segment", self.name);
                Err(Failure::new(what))
            }
            (Some(chosen), _) => self.section(self.number(chosen).of(&self.name)?),
        }
    }

    /// The number of the value chosen by name, of which the last counts, or by number.
    fn number(&self, chosen: &str) -> Result<u64> {
        if let Held::Archive(archive) = &self.held {
            for number in (0..archive.len()).rev() {
                if archive.segment(number)?.name() == Some(chosen) {
                    return Ok(number);
                }
            }
        }
        let number = chosen.parse().ok().filter(|&number: &u64| number < self.len());
        number.ok_or_else(|| {
            let count = counted(self.len(), "value");
            Failure::new(format!("it holds {count}, none of name or number {}", quoted(chosen)))
        })
    }
}

/// One value of a document.
pub struct Section<'a> {
    pub number: u64,
    /// The document's name.
    pub file: &'a str,
    item: Item<'a>,
    pub root: Node,
}

enum Item<'a> {
    Segment(Segment<'a, Source>, &'a Source),
    Message(&'a [u8]),
    Fetched(&'a Fetched),
}

impl<'a> Section<'a> {
    fn of_segment(
        number: u64,
        file: &'a str,
        segment: Segment<'a, Source>,
        source: &'a Source,
    ) -> Result<Self> {
        let root = node::parse(segment.metadata()?, segment.buffers())?;
        paths::check(&root)?;
        Ok(Self { number, file, item: Item::Segment(segment, source), root })
    }

    pub fn name(&self) -> Option<&str> {
        match &self.item {
            Item::Segment(segment, _) => segment.name(),
            _ => None,
        }
    }

    /// The segment that it is, and what that is read from.
    pub fn stored(&self) -> Option<(&Segment<'a, Source>, &'a Source)> {
        match &self.item {
            Item::Segment(segment, source) => Some((segment, *source)),
            _ => None,
        }
    }

    pub fn segment(&self) -> Option<&Segment<'a, Source>> {
        self.stored().map(|(segment, _)| segment)
    }

    /// The item, if it is a message.
    pub fn message(&self) -> Option<&'a [u8]> {
        match &self.item {
            Item::Message(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// What its tensors are fetched from, if that is another format.
    pub fn fetched(&self) -> Option<&'a Fetched> {
        match &self.item {
            Item::Fetched(fetched) => Some(fetched),
            _ => None,
        }
    }

    /// Bytes that are read where all of it is.
    pub fn byte_len(&self) -> u64 {
        match &self.item {
            Item::Segment(segment, _) => segment.byte_len(),
            Item::Message(bytes) => bytes.len() as u64,
            Item::Fetched(fetched) => fetched.byte_len(),
        }
    }

    /// The encoded item: of a segment, its metadata.
    pub fn bytes(&self) -> &[u8] {
        match &self.item {
            Item::Segment(segment, _) => segment.metadata().unwrap_or_default(),
            Item::Message(bytes) => bytes,
            Item::Fetched(fetched) => fetched.metadata(),
        }
    }

    /// The encoded item of a node.
    pub fn item(&self, range: &Range<usize>) -> &[u8] {
        self.bytes().get(range.clone()).unwrap_or_default()
    }

    /// How the section is told from others in print.
    pub fn label(&self) -> String {
        match self.name() {
            Some(name) => quoted(name),
            None => format!("#{}", self.number),
        }
    }
}
