//! An opened input of any format, which is a list of values.

mod section;

pub use section::{Compressed, Section};

use std::cell::OnceCell;
use std::collections::HashMap;

use tenarc::archive::{SaveOptions, Segment};
use tenarc::error::Category;
use tenarc::{Archive, DType, Value};
use tenarc_convert::{Losses, Names, Opened, Stored as _};

use crate::failure::{Failure, Of, Result};
use crate::formats::{Format, SELF_DESCRIBED};
use crate::input::{OpenedInput, Source};
use crate::losses;
use crate::node;
use crate::output::say;
use crate::paths::{self, Globs};
use crate::progress::Progress;
use crate::target::Target;
use crate::text::{counted, nearest, quoted};
use section::{Item, encoded};

/// What is wanted of the tables in a Parquet or Arrow file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// Their rows. If these cannot be read, the file cannot be opened.
    #[default]
    Rows,
    /// Also what the file says of itself. If the rows cannot be read, this is told, and the file has none.
    Description,
}

/// Whether a file that can be read as tensors is read as a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AsTable {
    #[default]
    No,
    /// The output can be nothing else: an Arrow file is read as a table.
    Needed,
    /// By `--table`, with the path of the arrays that are its columns. If it is empty, they are the whole value.
    Asked(String),
}

/// The options that decide how inputs are read. All subcommands share them.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The format. `None` means that it is detected.
    pub from: Option<Format>,
    /// Whether to read the complete values of a truncated archive.
    pub torn: bool,
    /// Whether not to verify the tensors of a truncated archive.
    pub no_verify: bool,
    /// Whether the names of tensors in a file of another format are split at their dots.
    pub names: Names,
    pub wanted: Wanted,
    pub table: AsTable,
    /// The dtypes of raw elements in npy and npz files.
    pub void: Vec<DType>,
}

/// An opened input.
pub struct Document {
    pub name: String,
    pub format: Format,
    content: Content,
    /// The content of the file that is not read.
    lost: Losses,
    /// What a file of tables says of itself.
    about: Value,
    /// The length of the file, if it was opened as an input.
    file_len: Option<u64>,
    /// The numbers of the values that have the same name as others. They are found when they are first needed.
    shared_names: OnceCell<HashMap<String, Vec<u64>>>,
}

enum Content {
    Archive(Box<Archive<Source>>),
    /// The bytes of CBOR messages, one after the other, and the offset at which each message ends. There can be many
    /// messages, because a message can be a single byte.
    Messages(Vec<u8>, Vec<usize>),
    /// One value, whose tensors are read from a file of another format when they are needed.
    Opened(Box<Opened>),
}

impl Document {
    pub fn of_archive(name: String, format: Format, archive: Archive<Source>) -> Self {
        Self {
            name,
            format,
            content: Content::Archive(Box::new(archive)),
            lost: Losses::default(),
            about: Value::Null,
            file_len: None,
            shared_names: OnceCell::new(),
        }
    }

    /// Creates a document from CBOR messages.
    ///
    /// # Errors
    /// If the bytes are not a sequence of well-formed CBOR items.
    pub fn of_messages(name: String, format: Format, bytes: Vec<u8>) -> Result<Self> {
        let ends = node::items(&bytes)?;
        Ok(Self {
            name,
            format,
            content: Content::Messages(bytes, ends),
            lost: Losses::default(),
            about: Value::Null,
            file_len: None,
            shared_names: OnceCell::new(),
        })
    }

    pub fn of_opened(name: String, format: Format, opened: Opened) -> Self {
        let lost = opened.losses().clone();
        let (content, shared_names) = (Content::Opened(Box::new(opened)), OnceCell::new());
        Self { name, format, content, lost, about: Value::Null, file_len: None, shared_names }
    }

    /// Sets the content of the file that is not read.
    #[must_use]
    pub fn with_losses(mut self, lost: Losses) -> Self {
        self.lost = lost;
        self
    }

    /// Sets what a file of tables says of itself.
    #[must_use]
    pub fn with_about(mut self, about: Value) -> Self {
        self.about = about;
        self
    }

    /// Sets the length of the file, for a document that was opened as an input.
    #[must_use]
    pub fn with_file_len(mut self, len: u64) -> Self {
        self.file_len = Some(len);
        self
    }

    /// Returns the content of the file that is not read.
    pub fn losses(&self) -> &Losses {
        &self.lost
    }

    /// Returns what a file of another format says of itself, such as the inputs of a model. Null if there is nothing.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn about(&self) -> Result<Value> {
        match &self.content {
            Content::Opened(opened) => Ok(opened.file().about()?),
            _ => Ok(self.about.clone()),
        }
    }

    /// Returns the archive, if the input is one.
    pub fn archive(&self) -> Option<&Archive<Source>> {
        match &self.content {
            Content::Archive(archive) => Some(archive),
            _ => None,
        }
    }

    /// Returns the value and its reader, if the input is a file of another format that is read in place.
    pub fn opened(&self) -> Option<&Opened> {
        match &self.content {
            Content::Opened(opened) => Some(opened),
            _ => None,
        }
    }

    /// Prints one line to standard error about content of the file that is not read, and one about content that is left
    /// out by design.
    pub fn report_losses(&self) {
        if let Some(lost) = losses::not_read(&self.lost) {
            say(&format!("{}: not read: {lost}", self.name));
        }
        losses::note(&self.lost, &format!("{}: ", self.name));
    }

    /// Checks that the file may be copied to an output. It must have no content that is not read; with `lossy`, such
    /// content is reported instead. Data that belongs to tensors, but is not read with them, must not be damaged.
    ///
    /// # Errors
    /// If there is such content and `lossy` is false, if no tensor of the file can be read, or if something is damaged.
    pub fn check_copy(&self, lossy: bool) -> Result<()> {
        self.refuse_losses(lossy)?;
        self.opened().map_or(Ok(()), |opened| opened.verify_unread().of(&self.name))
    }

    fn refuse_losses(&self, lossy: bool) -> Result<()> {
        let not_read = losses::not_read(&self.lost).unwrap_or_default();
        if self.lost.tensors() > 0 && self.opened().is_some_and(|opened| opened.kept() == 0) {
            let what =
                format!("cannot be kept: {not_read}; no tensor is left, so nothing is written");
            return Err(Failure::new(what).of(&self.name));
        }
        if !lossy && !self.lost.is_empty() {
            let hint = "`tenarc convert --lossy` leaves it out";
            return Err(Failure::new(format!("cannot be kept: {not_read}; {hint}")).of(&self.name));
        }
        losses::tell(&self.lost, Some(&self.name), losses::NOT_READ);
        Ok(())
    }

    /// Shows a progress bar for the bytes that are read from the file from now on. `passes` is the number of times that
    /// the file will be read.
    pub fn show_progress(&self, what: &'static str, passes: u64) {
        self.add_progress_to(&Progress::new(self.byte_len().saturating_mul(passes), what));
    }

    /// Returns the number of bytes in the file of all tensors whose path matches a pattern. Without patterns, all
    /// tensors count.
    ///
    /// # Errors
    /// If a value is damaged.
    pub fn bytes_of(&self, globs: &Globs, chosen: Option<&str>) -> Result<u64> {
        let mut sum = 0u64;
        for section in self.sections(chosen)? {
            let section = section?;
            section.each_tensor(&mut |named| {
                if globs.is_empty() || globs.matches(section.name(), &named.path) {
                    let len = section.compressed(named.payload).map(|how| how.stored);
                    sum = sum.saturating_add(len.unwrap_or(named.payload.byte_len));
                }
                Ok(())
            })?;
        }
        Ok(sum)
    }

    /// Adds the bytes that are read from the file from now on to a progress bar, which several files can share.
    pub fn add_progress_to(&self, progress: &Progress) {
        match &self.content {
            Content::Archive(archive) => archive.source().add_progress_to(progress.clone()),
            Content::Opened(opened) => {
                let progress = progress.clone();
                opened.watch(move |read| progress.add(read));
            }
            Content::Messages(..) => {}
        }
    }

    /// Sets the options of `target` for an archive with the values of this document, or with most of them. The
    /// alignment stays, tied tensors stay tied, and compressed tensors can be copied as they are stored.
    ///
    /// # Errors
    /// If a value is damaged.
    pub fn like(&self, target: &mut Target, alignment: Option<u64>) -> Result<()> {
        let (mut tied, mut aligned, mut chunk_len) = (false, None, None);
        for section in self.sections(None)? {
            let section = section?;
            aligned = aligned.max(section.segment().map(Segment::alignment));
            chunk_len = chunk_len.max(section.compressed_chunks());
            tied |= section.is_tied()?;
        }
        let options = target.options.clone().with_alignment(alignment.or(aligned).unwrap_or(256));
        target.options = with_chunks(options, chunk_len);
        target.finds_equal(tied);
        Ok(())
    }

    /// Returns whether the input is a file of another format in which two tensors are the same bytes.
    pub fn has_tied_tensors(&self) -> bool {
        self.opened().is_some_and(|opened| opened.file().has_tied_tensors())
    }

    /// Returns the number of bytes that are read from the file when it is read once. It is 0 for messages, which are in
    /// memory already.
    pub fn byte_len(&self) -> u64 {
        match &self.content {
            Content::Archive(archive) => archive.byte_len(),
            Content::Opened(opened) => opened.byte_len(),
            Content::Messages(..) => 0,
        }
    }

    /// Returns the length of the file, or of all files of a model or a checkpoint. `None` if the document is not an
    /// input.
    pub fn file_len(&self) -> Option<u64> {
        match &self.content {
            Content::Opened(opened) => Some(opened.byte_len()),
            _ => self.file_len,
        }
    }

    /// Returns the bytes of all messages, if the input was read as messages.
    pub fn messages(&self) -> Option<&[u8]> {
        match &self.content {
            Content::Messages(bytes, _) => Some(bytes),
            _ => None,
        }
    }

    /// Returns the number of values.
    pub fn len(&self) -> u64 {
        match &self.content {
            Content::Archive(archive) => archive.len(),
            Content::Messages(_, ends) => ends.len() as u64,
            Content::Opened(_) => 1,
        }
    }

    /// Returns the value with the given number, counted from 0.
    ///
    /// # Errors
    /// If there is no such value, or it is damaged.
    pub fn section(&self, number: u64) -> Result<Section<'_>> {
        self.at(number).of(&self.name)
    }

    fn at(&self, number: u64) -> Result<Section<'_>> {
        let file = &*self.name;
        match &self.content {
            Content::Archive(archive) => {
                let segment = archive.segment(number)?;
                let mut root = node::parse_items(segment.metadata()?, segment.inspect()?)?;
                paths::tell_columns(&mut root, segment.metadata()?)?;
                paths::check(&root)?;
                Ok(Section::new(number, file, Item::Segment(segment), root))
            }
            Content::Messages(bytes, ends) => {
                let at = usize::try_from(number).ok().filter(|&at| at < ends.len());
                let at = at.ok_or_else(|| self.no_value(number))?;
                let edge = |at: usize| ends.get(at).copied();
                let start = at.checked_sub(1).and_then(edge).unwrap_or(0);
                let bytes = bytes.get(start..edge(at).unwrap_or(start)).unwrap_or_default();
                // The tag only marks the data as CBOR, so it is left out.
                let bytes = bytes.strip_prefix(&SELF_DESCRIBED).unwrap_or(bytes);
                let mut root = node::parse(bytes, &[])?;
                let mut item = Item::Message(bytes);
                if root.holds_columns() {
                    let rows = encoded(&tenarc::from_slice(bytes)?)?;
                    root = node::parse(&rows, &[])?;
                    item = Item::Rows { message: Some(bytes), name: None, rows };
                }
                paths::check(&root)?;
                Ok(Section::new(number, file, item, root))
            }
            Content::Opened(opened) if number == 0 => {
                let root = node::parse(opened.metadata()?, opened.buffers())?;
                paths::check(&root)?;
                let item = Item::Opened(OpenedInput(opened));
                Ok(Section::new(number, file, item, root))
            }
            Content::Opened(_) => Err(self.no_value(number)),
        }
    }

    fn no_value(&self, number: u64) -> Failure {
        let count = counted(self.len(), "value");
        Failure::new(format!("no value {number}: the file holds {count}"))
    }

    /// Returns the chosen values, or all values if none is chosen: see [`numbers`](Self::numbers).
    ///
    /// # Errors
    /// If there is no value of the chosen name or number.
    pub fn sections(
        &self,
        chosen: Option<&str>,
    ) -> Result<impl Iterator<Item = Result<Section<'_>>> + '_> {
        Ok(self.numbers(chosen)?.into_iter().map(|number| self.section(number)))
    }

    /// Returns the numbers of the chosen values, or of all values. If several values have the chosen name and are
    /// sequences, they are one table, and all of them are chosen. If they are not sequences, the last one is.
    ///
    /// # Errors
    /// If there is no value of the chosen name or number.
    pub fn numbers(&self, chosen: Option<&str>) -> Result<Vec<u64>> {
        match chosen {
            None => Ok((0..self.len()).collect()),
            Some(chosen) => self.chosen(chosen).of(&self.name),
        }
    }

    /// Returns the chosen value, or the only one.
    ///
    /// # Errors
    /// If none is chosen and the file does not hold exactly one, if there is no value of the chosen name or number, or if
    /// several values of this name are one table.
    pub fn only(&self, chosen: Option<&str>) -> Result<Section<'_>> {
        let numbers = self.numbers(chosen)?;
        match (chosen, &*numbers) {
            (_, &[number]) => self.section(number),
            (Some(chosen), numbers) => Err(several(chosen, numbers).of(&self.name)),
            (None, numbers) => {
                let count = counted(numbers.len() as u64, "value");
                let names = match self.names() {
                    names if names.is_empty() => String::new(),
                    names => format!(", by its number or name: {}", shown_names(&names)),
                };
                let what = format!("{}: holds {count}: choose one with --segment", self.name);
                Err(Failure::new(what + &names))
            }
        }
    }

    fn chosen(&self, chosen: &str) -> Result<Vec<u64>> {
        if let Content::Archive(archive) = &self.content {
            // The directory says whether there is such a name. Only if there is, the headers of all values are read.
            let is_named = match archive.named(chosen) {
                Ok(_) => true,
                Err(error) if error.category() == Category::NotFound => false,
                Err(error) => return Err(error.into()),
            };
            let mut named = Vec::new();
            for number in (0..archive.len()).take_while(|_| is_named) {
                if archive.segment(number)?.name() == Some(chosen) {
                    named.push(number);
                }
            }
            if let (Some(&last), true) = (named.last(), named.len() > 1) {
                return match archive.table(chosen) {
                    Ok(_) => Ok(named),
                    // The values are not sequences.
                    Err(error) if error.category() == Category::Mismatch => Ok(vec![last]),
                    Err(error) => Err(error.into()),
                };
            }
            if !named.is_empty() {
                return Ok(named);
            }
        }
        let number = chosen.parse().ok().filter(|&number: &u64| number < self.len());
        number.map(|number| vec![number]).ok_or_else(|| {
            let count = counted(self.len(), "value");
            let what = format!("no value {}: the file holds {count}", quoted(chosen));
            match self.names() {
                names if names.is_empty() => Failure::new(what),
                names => {
                    let meant = nearest(chosen, names.iter().map(String::as_str));
                    let names = shown_names(&names);
                    Failure::new(format!("{what} of the names {names}{meant}"))
                }
            }
        })
    }

    /// Returns the names of the first values, each once.
    pub fn names(&self) -> Vec<String> {
        const MOST: u64 = 1000;
        let Content::Archive(archive) = &self.content else { return Vec::new() };
        let mut names = Vec::new();
        for number in 0..archive.len().min(MOST) {
            // A damaged value is reported when it is read.
            let Ok(segment) = archive.segment(number) else { continue };
            let Some(name) = segment.name().filter(|name| !name.is_empty()) else { continue };
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        names
    }

    /// Returns the numbers of the values that have this name. `None` if fewer than two have it.
    pub fn with_same_name(&self, name: &str) -> Option<&[u64]> {
        let shared = self.shared_names.get_or_init(|| {
            let Content::Archive(archive) = &self.content else { return HashMap::new() };
            let mut all: HashMap<String, Vec<u64>> = HashMap::new();
            for number in 0..archive.len() {
                // A damaged value is reported when it is read.
                let Ok(segment) = archive.segment(number) else { continue };
                if let Some(name) = segment.name().filter(|name| !name.is_empty()) {
                    all.entry(name.to_owned()).or_default().push(number);
                }
            }
            all.retain(|_, numbers| numbers.len() > 1);
            all
        });
        shared.get(name).map(Vec::as_slice)
    }
}

/// Returns the first names for a message.
fn shown_names(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let more = if names.len() > SHOWN { ", …" } else { "" };
    let shown: Vec<_> = names.iter().take(SHOWN).map(|name| quoted(name)).collect();
    shown.join(", ") + more
}

/// Returns the failure of a command that needs one value, if a name was given that several values have.
pub fn several(name: &str, numbers: &[u64]) -> Failure {
    let (count, name) = (counted(numbers.len() as u64, "value"), quoted(name));
    let last = numbers.last().copied().unwrap_or_default();
    Failure::new(format!(
        "{count} have the name {name}, and are one table: choose one by its number, as in --segment {last}, or give \
         the name in the path"
    ))
}

/// Sets the chunk length of an archive, so that compressed tensors with this chunk length can be copied as they are
/// stored: see [`Section::compressed_chunks`].
pub fn with_chunks(options: SaveOptions, chunk_len: Option<u64>) -> SaveOptions {
    match chunk_len {
        Some(len) => options.with_chunk_len(len),
        None => options,
    }
}
