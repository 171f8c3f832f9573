//! The groups, datasets and attributes of a file.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex};

use hdf5_reader::error::Error as Hdf5Error;
use hdf5_reader::group::Group;
use hdf5_reader::messages::HdfMessage;
use hdf5_reader::messages::layout::DataLayout;
use hdf5_reader::object_header::ObjectHeader;
use hdf5_reader::reference::read_object_references;
use hdf5_reader::{Dataset, ExternalLinkResolver, Hdf5File, RawAttribute};
use tenarc::error::Category;
use tenarc::{DType, Error, Result, Value};

use super::attribute;
use super::budget::Budget;
use super::counted::Counted;
use super::datatype::{Array, Field, Kind, Numbers, Resolve, Text};
use super::error::{failed, innermost, is_of_object, is_unsupported};
use super::links::{self, Link};
use super::mend::{self, Unknown};
use super::pandas;
use super::stored::Source;
use super::{filters, stored};
use crate::Losses;
use crate::numpy::times::Times;
use crate::place::Place;

/// The most levels of groups. Each is a level of nesting in an archive.
const MAX_DEPTH: usize = 64;

/// The most messages of headers that are searched for names in a file. To open a member by its name, the crate may have to
/// search all messages of the group.
const MAX_SEARCHED: usize = 1 << 27;

/// The class of the layout of virtual datasets.
const VIRTUAL: u8 = 3;

/// The attribute of a dataset that refers to the scales of its dimensions, and the one of a scale that refers back.
const SCALES: &str = "DIMENSION_LIST";
const SCALED: &str = "REFERENCE_LIST";

/// The attribute that a dataset of an enum gets, with the numbers of the names of its values.
const ENUM: &str = "enum";

/// The name of the root group.
const ROOT: &str = "/";

/// What a file holds. Only the elements of datasets are not in memory.
#[derive(Default)]
pub struct Contents {
    pub datasets: Vec<Found>,
    /// All datasets, also those of which nothing can be kept, by their paths.
    pub all: Vec<(String, Arc<Dataset>, Arc<ObjectHeader>)>,
    /// The index of each dataset, by its path.
    pub numbers: HashMap<String, usize>,
    pub root: Vec<(String, Entry)>,
    pub links: Vec<GroupLink>,
    /// The attributes of all objects: maps from their names to values, by the path of the object.
    pub attributes: Vec<(String, Value)>,
    pub losses: Losses,
    /// The path of the first object that is damaged, and what is wrong with it.
    pub damage: Option<(String, String)>,
    /// Whether a dataset has several paths.
    pub has_tied: bool,
}

/// A member of a group.
#[derive(Debug)]
pub enum Entry {
    /// A group, or the fields of a dataset of structs.
    Group(Vec<(String, Entry)>),
    /// The index in [`Contents::datasets`].
    Dataset(usize),
    /// The index in [`Contents::links`].
    Link(usize),
}

/// A link to a group that is kept under another path.
pub struct GroupLink {
    /// The path of the link, as that of a [dataset](Found).
    pub path: String,
    pub dotted: String,
    /// The path of the group.
    pub to: Value,
    address: u64,
}

/// A dataset that can be kept, or a field of a dataset of structs.
pub struct Found {
    /// The names of the groups around it and its own, with slashes between them. Those of a field follow.
    pub path: String,
    /// The same names with dots between them.
    pub dotted: String,
    pub dataset: Arc<Dataset>,
    pub header: Arc<ObjectHeader>,
    /// Where it is in the structs of the dataset, if it is one of their fields.
    pub field: Option<Place>,
    /// The dimensions in the file, without those of elements that are arrays.
    pub outer: Vec<usize>,
    pub kind: Elements,
    /// Where the file has the elements as tenarc stores them: the offset of the first one.
    pub place: Option<u64>,
}

#[derive(Debug)]
pub enum Elements {
    Numbers(Array),
    /// Integers that are times or durations.
    Times(Times, Array),
    Text(Text),
    List(Numbers),
    /// A value that is in memory: null, or the paths of the objects to which references lead.
    Value(Value),
}

impl Contents {
    /// Reads everything but the elements of datasets. `outside` are the files to which links were found.
    pub fn read(
        file: &Hdf5File,
        storage: &Counted,
        elements: &Source,
        budget: Budget,
        outside: &Outside,
    ) -> Result<Self> {
        let root = file.root_group().map_err(failed)?;
        let mut walk = Walk {
            file,
            storage,
            source: elements,
            found: Self::default(),
            unknown: HashMap::new(),
            groups: HashMap::new(),
            datasets: HashMap::new(),
            scales: Vec::new(),
            references: Vec::new(),
            paths: HashMap::new(),
            budget,
            searched: MAX_SEARCHED,
            may_have_zones: false,
        };
        let entries = walk.group(&root, "", MAX_DEPTH)?;
        walk.name_links()?;
        walk.name_scales()?;
        walk.name_references(elements)?;
        let mut found = Self { root: entries, ..walk.found };
        for file in outside.files() {
            let what = format!("a link to the file `{}`, which is not read", file.escape_debug());
            found.losses.add("", what);
        }
        Ok(found)
    }

    fn push(
        &mut self,
        (dataset, header, outer): (&Arc<Dataset>, &Arc<ObjectHeader>, &[usize]),
        path: String,
        field: Option<Place>,
        kind: Elements,
        place: Option<u64>,
    ) -> Entry {
        let number = self.datasets.len();
        self.numbers.insert(path.clone(), number);
        self.datasets.push(Found {
            dotted: path.replace('/', "."),
            path,
            dataset: dataset.clone(),
            header: header.clone(),
            field,
            outer: outer.to_vec(),
            kind,
            place,
        });
        Entry::Dataset(number)
    }
}

/// Keeps the names of the files that external links lead to, and follows none of them.
#[derive(Clone, Debug, Default)]
pub struct Outside(Arc<Mutex<BTreeSet<String>>>);

impl Outside {
    fn files(&self) -> Vec<String> {
        self.0.lock().map(|files| files.iter().cloned().collect()).unwrap_or_default()
    }
}

impl ExternalLinkResolver for Outside {
    fn resolve_external_link(&self, name: &str) -> hdf5_reader::error::Result<Option<Hdf5File>> {
        if let Ok(mut files) = self.0.lock() {
            files.insert(name.to_owned());
        }
        Ok(None)
    }
}

/// References whose objects are found only after them.
enum References {
    /// Those of a dataset, by its number. Each takes this many bytes.
    Dataset(usize, u8),
    /// Those of an attribute: the indices of the object's attributes and of the one whose value is still missing, the
    /// addresses of the objects, and the dimensions.
    Attribute((usize, usize), Vec<u64>, Vec<usize>),
}

/// The scales of the dimensions of a dataset.
struct Scales {
    /// The indices of the attributes of the dataset and of the one whose value is still missing.
    at: (usize, usize),
    /// The addresses of the scales of each dimension.
    scales: Vec<Vec<u64>>,
}

struct Walk<'a> {
    file: &'a Hdf5File,
    storage: &'a Counted,
    source: &'a Source,
    /// What the crate does not know, of each object that it failed to read, by the address of the object.
    unknown: HashMap<u64, Unknown>,
    found: Contents,
    /// The groups that were read, by their addresses, with their paths.
    groups: HashMap<u64, String>,
    /// The addresses of the datasets that were read, and whether Keras marked their elements as bfloat16.
    datasets: HashMap<u64, bool>,
    scales: Vec<Scales>,
    references: Vec<References>,
    /// The path of each dataset of which something is kept, by its address.
    paths: HashMap<u64, String>,
    budget: Budget,
    /// The number of messages that may still be searched for names.
    searched: usize,
    /// Whether the attributes of the group whose datasets are read may name time zones.
    may_have_zones: bool,
}

impl Walk<'_> {
    fn group(&mut self, group: &Group, path: &str, depth: usize) -> Result<Vec<(String, Entry)>> {
        let shown = if path.is_empty() { ROOT } else { path };
        let of_group = |error| failed(error).in_field(shown);
        let Some(depth) = depth.checked_sub(1) else {
            let what = format!("groups are nested more deeply than {MAX_DEPTH} levels");
            return Err(Error::limit(what).in_field(shown));
        };
        self.groups.insert(group.address(), shown.to_owned());
        let raw = match group.raw_attributes() {
            Err(error) if is_unsupported(innermost(&error)) && self.mend(group.address()) => {
                group.raw_attributes()
            }
            raw => raw,
        };
        let resolve = |reference: &[u8], size| group.resolve_vlen_reference_bytes(reference, size);
        let before = self.found.attributes.len();
        self.attributes(shown, group.address(), raw.map_err(of_group)?, &resolve)?;
        let attributes = self.found.attributes.get(before).and_then(|(_, values)| values.as_map());
        self.may_have_zones = attributes.is_some_and(pandas::may_have_zones);

        let mut names = HashSet::new();
        let members = match group.members() {
            Err(error) if is_unsupported(innermost(&error)) && self.mend_all(group) => {
                group.members()
            }
            members => members,
        };
        let (mut groups, mut datasets) = match members {
            Ok(members) => members,
            Err(error) => self.one_by_one(group, path, &mut names, of_group(error))?,
        };
        if let Some(Unknown { links, .. }) = self.unknown.get_mut(&group.address()) {
            let links = std::mem::take(links);
            groups.retain(|inner| !links.contains_key(inner.name()));
            datasets.retain(|dataset| !links.contains_key(dataset.name()));
            for (name, kind) in links {
                let path = self.join(path, &name, &mut names)?;
                let what = format!("a link of the type {kind}, which a user has defined");
                self.found.losses.add(&path, what);
            }
        }
        let mut entries = Vec::new();
        let mut inside = Vec::new();
        for dataset in datasets {
            let path = self.join(path, dataset.name(), &mut names)?;
            let name = dataset.name().to_owned();
            let address = dataset.address();
            match self.dataset(dataset, path.clone()) {
                Ok(Some(entry)) => {
                    entries.push((name, entry));
                    self.paths.entry(address).or_insert(path);
                }
                Ok(None) => {}
                Err(error) => self.unread(&path, &error).ok_or(error)?,
            }
        }
        for inner in groups {
            let name = inner.name().to_owned();
            inside.push((inner, self.join(path, &name, &mut names)?));
        }
        let header = self.file.get_or_parse_header(group.address()).map_err(of_group)?;
        let losses = &mut self.found.losses;
        let mut soft = HashSet::new();
        links::each(group, &header.messages, |name, link| {
            if names.contains(name) {
                if let Link::Soft = link {
                    soft.insert(name.to_owned());
                }
            } else {
                let what = match link {
                    Link::Soft => "a link that leads to no group and no dataset",
                    Link::Object(_) => "a named datatype",
                };
                let slash = if path.is_empty() { "" } else { "/" };
                let (path, name) = (path.escape_debug(), name.escape_debug());
                losses.note(format!("`{path}{slash}{name}`: {what} is left out"));
            }
        })
        .map_err(of_group)?;
        for (inner, path) in inside {
            // A group with several paths is read once. So groups that contain themselves, or that are in many others,
            // do no harm. A soft link leads to a group that has another path.
            let address = inner.address();
            if self.groups.contains_key(&address) || soft.contains(inner.name()) {
                entries.push((inner.name().to_owned(), Entry::Link(self.found.links.len())));
                let (dotted, to) = (path.replace('/', "."), Value::Null);
                self.found.links.push(GroupLink { path, dotted, to, address });
                continue;
            }
            match self.group(&inner, &path, depth) {
                Ok(inside) => entries.push((inner.name().to_owned(), Entry::Group(inside))),
                Err(error) => self.unread(&path, &error).ok_or(error)?,
            }
        }
        Ok(entries)
    }

    /// Gives what the crate does not know in an object the form of what it knows. Returns whether there is such a thing.
    fn mend(&mut self, address: u64) -> bool {
        if self.unknown.contains_key(&address) {
            return false;
        }
        // If that is not possible, the error of the crate stays.
        let unknown = mend::mend(self.file, self.storage, address).unwrap_or_default();
        let is_mended = !unknown.links.is_empty() || !unknown.types.is_empty();
        self.unknown.insert(address, unknown);
        is_mended
    }

    /// Like [`mend`](Self::mend), for a group and all objects to which its links lead.
    fn mend_all(&mut self, group: &Group) -> bool {
        let mut is_mended = self.mend(group.address());
        let mut addresses = Vec::new();
        if let Ok(header) = self.file.get_or_parse_header(group.address()) {
            let found = links::each(group, &header.messages, |_, link| {
                if let Link::Object(address) = link {
                    addresses.push(address);
                }
            });
            // If the links cannot be read, the error of the crate stays.
            if found.is_err() {
                return is_mended;
            }
        }
        for address in addresses {
            is_mended |= self.mend(address);
        }
        is_mended
    }

    /// Opens the members of a group by their names, because the crate lists none of them if it cannot read the header of
    /// one, such as that of a virtual dataset. This one is a loss. `error` is the error of the crate.
    fn one_by_one(
        &mut self,
        group: &Group,
        path: &str,
        names: &mut HashSet<String>,
        error: Error,
    ) -> Result<(Vec<Group>, Vec<Dataset>)> {
        if !is_of_object(&error) {
            return Err(error);
        }
        let of_group = |error| failed(error).in_field(if path.is_empty() { ROOT } else { path });
        let header = self.file.get_or_parse_header(group.address()).map_err(of_group)?;
        let mut links = Vec::new();
        links::each(group, &header.messages, |name, _| links.push(name.to_owned()))
            .map_err(of_group)?;
        let steps = links.len().saturating_mul(header.messages.len());
        let Some(left) = self.searched.checked_sub(steps) else { return Err(error) };
        self.searched = left;
        let (mut groups, mut datasets) = (Vec::new(), Vec::new());
        for name in links {
            let opened = match group.group(&name) {
                Err(Hdf5Error::GroupNotFound(_)) => group.dataset(&name).map(|dataset| {
                    datasets.push(dataset);
                }),
                found => found.map(|inner| groups.push(inner)),
            };
            match opened {
                // Links that lead nowhere, and named datatypes, are noted later.
                Ok(()) | Err(Hdf5Error::DatasetNotFound(_)) => {}
                Err(error) => {
                    let is_virtual =
                        matches!(innermost(&error), Hdf5Error::UnsupportedLayoutClass(VIRTUAL));
                    let path = self.join(path, &name, names)?;
                    let error = of_group(error);
                    if is_virtual {
                        let what = "a virtual dataset: its elements are those of other datasets";
                        self.found.losses.add_tensor(&path, what);
                    } else {
                        self.unread(&path, &error).ok_or(error)?;
                    }
                }
            }
        }
        Ok((groups, datasets))
    }

    /// Leaves out an object that cannot be read. `None` if no other object could be read after this error, either.
    fn unread(&mut self, path: &str, error: &Error) -> Option<()> {
        if !is_of_object(error) {
            return None;
        }
        let what = error.message();
        self.found.losses.add_tensor(path, format!("it cannot be read: {what}"));
        if error.category() != Category::Unsupported {
            self.found.damage.get_or_insert_with(|| (path.to_owned(), what));
        }
        Some(())
    }

    /// Returns the path of a member of a group. `names` are those of the members before it.
    fn join(&mut self, group: &str, name: &str, names: &mut HashSet<String>) -> Result<String> {
        let of_group = |error: Error| error.in_field(if group.is_empty() { ROOT } else { group });
        // A dataset keeps its path in five forms. A name can be long, and stands once in the file.
        self.budget.take(5 * (group.len() + name.len())).map_err(of_group)?;
        if !names.insert(name.to_owned()) {
            let what = format!("there are two members named `{}`", name.escape_debug());
            return Err(of_group(Error::damaged(what)));
        }
        Ok(if group.is_empty() { name.to_owned() } else { format!("{group}/{name}") })
    }

    /// Finds the dataset. `None` if nothing of it can be kept.
    fn dataset(&mut self, dataset: Dataset, path: String) -> Result<Option<Entry>> {
        let of_dataset = |error| failed(error).in_field(&*path);
        let is_bfloat16 = match self.datasets.get(&dataset.address()) {
            Some(&is_bfloat16) => {
                self.found.has_tied = true;
                is_bfloat16
            }
            None => {
                let raw = dataset.raw_attributes().map_err(of_dataset)?;
                let resolve =
                    |reference: &[u8], size| dataset.resolve_vlen_reference_bytes(reference, size);
                // Keras writes raw elements and this attribute.
                let is_bfloat16 = raw.iter().any(|attribute| {
                    attribute.name() == "dtype"
                        && attribute::text(attribute, &resolve).as_deref() == Some("bfloat16")
                });
                self.datasets.insert(dataset.address(), is_bfloat16);
                self.attributes(&path, dataset.address(), raw, &resolve)?;
                is_bfloat16
            }
        };
        let datatype = dataset.raw_datatype().map_err(of_dataset)?;
        let kind = match Kind::of(dataset.dtype(), &datatype) {
            Kind::Other(_) if is_bfloat16 && dataset.raw_element_size().ok() == Some(2) => {
                let (dtype, inner) = (DType::BF16, Vec::new());
                Kind::Numbers(Numbers { dtype, inner, is_big_endian: false, names: Vec::new() })
            }
            kind => kind,
        };
        let header = self.file.get_or_parse_header(dataset.address()).map_err(of_dataset)?;
        let dataset = Arc::new(dataset);
        self.found.all.push((path.clone(), Arc::clone(&dataset), Arc::clone(&header)));
        if let Some(what) = unreadable(self.source, &dataset, &header) {
            self.lose(&path, &kind, what);
            return Ok(None);
        }
        let outer = dataset.shape().iter().map(|&dim| usize::try_from(dim).ok());
        let outer: Vec<usize> = outer
            .collect::<Option<_>>()
            .ok_or_else(|| Error::limit("a dimension does not fit in memory").in_field(&*path))?;
        let is_null = outer.is_empty() && dataset.num_elements().map_err(of_dataset)? == 0;
        let source = (&dataset, &header, &*outer);
        if is_null {
            return Ok(Some(self.found.push(
                source,
                path,
                None,
                Elements::Value(Value::Null),
                None,
            )));
        }
        self.elements(source, path, None, kind)
    }

    /// Finds the elements of a dataset, or of a field of its structs.
    fn elements(
        &mut self,
        source @ (dataset, header, outer): (&Arc<Dataset>, &Arc<ObjectHeader>, &[usize]),
        path: String,
        field: Option<Place>,
        kind: Kind,
    ) -> Result<Option<Entry>> {
        let of_dataset = |error| failed(error).in_field(&*path);
        let mut place = None;
        let elements = match kind {
            Kind::Numbers(numbers) => {
                self.names(&path, &numbers.names)?;
                let array = numbers.array(outer).map_err(|error| error.in_field(&*path))?;
                if field.is_none() {
                    let layout = stored::layout(self.file, dataset, header, array.len);
                    place = place_of(&*layout.map_err(of_dataset)?, &array, self.file);
                }
                match self.times(&path, field.is_some(), &array.numbers.dtype) {
                    Some(times) => Elements::Times(times, array),
                    None => Elements::Numbers(array),
                }
            }
            Kind::Text(..) | Kind::List(_) | Kind::Reference(_)
                if outer.len() > 1 && outer.contains(&0) =>
            {
                if outer.first() != Some(&0) {
                    self.found.losses.add(&path, crate::texts::NO_SHAPE);
                    return Ok(None);
                }
                // No value depends on the other dimensions.
                self.found.losses.note("the shapes of empty arrays of texts or lists are left out");
                Elements::Value(Value::Array(Vec::new()))
            }
            Kind::Text(text, inner) if inner.is_empty() => Elements::Text(text),
            Kind::Text(text, inner) => {
                let outer = [outer, &inner].concat();
                let kind = Kind::Text(text, Vec::new());
                return self.elements((dataset, header, &outer), path, field, kind);
            }
            Kind::List(numbers) => {
                self.names(&path, &numbers.names)?;
                Elements::List(numbers)
            }
            Kind::Reference(size) => {
                self.references.push(References::Dataset(self.found.datasets.len(), size));
                Elements::Value(Value::Null)
            }
            Kind::Struct(fields) => return self.fields(source, &path, field, fields),
            Kind::Other(what) => {
                self.found.losses.add_tensor(&path, what);
                return Ok(None);
            }
        };
        Ok(Some(self.found.push(source, path, field, elements, place)))
    }

    /// Finds the fields of a dataset of structs, or of a field whose elements are structs.
    fn fields(
        &mut self,
        source: (&Arc<Dataset>, &Arc<ObjectHeader>, &[usize]),
        path: &str,
        around: Option<Place>,
        fields: Vec<Field>,
    ) -> Result<Option<Entry>> {
        let (mut entries, mut names) = (Vec::new(), HashSet::new());
        let start = around.map_or(0, |around| around.offset);
        for Field { name, place, kind } in fields {
            // Many links can lead to a dataset of many fields.
            self.budget.take(size_of::<Found>())?;
            let path = self.join(path, &name, &mut names)?;
            if self.found.numbers.contains_key(&path) {
                self.found.losses.add_tensor(&path, "there is another field of this path");
                continue;
            }
            let place = Place { offset: start + place.offset, ..place };
            if let Some(entry) = self.elements(source, path, Some(place), kind)? {
                entries.push((name, entry));
            }
        }
        Ok((!entries.is_empty()).then_some(Entry::Group(entries)))
    }

    /// Gives links to groups the paths of these as values.
    fn name_links(&mut self) -> Result<()> {
        let mut noted = None;
        for link in &mut self.found.links {
            match self.groups.get(&link.address) {
                Some(group) => {
                    let group = format!("{ROOT}{}", group.trim_start_matches(ROOT));
                    self.budget.take(group.len() + size_of::<Value>())?;
                    noted.get_or_insert_with(|| (link.path.clone(), group.clone()));
                    link.to = group.into();
                }
                None => self.found.losses.add(&link.path, "a link to a group that is not kept"),
            }
        }
        if let Some((path, group)) = noted {
            let (path, group) = (path.escape_debug(), group.escape_debug());
            let what = "a link to a group becomes the path at which the group is kept";
            self.found.losses.note(format!("{what}, such as `{path}`: `{group}`"));
        }
        Ok(())
    }

    /// Replaces the scales of dimensions by their paths. Some are found only after the datasets that refer to them.
    fn name_scales(&mut self) -> Result<()> {
        for Scales { at: (object, attribute), scales } in &self.scales {
            let Some((path, Value::Map(values))) = self.found.attributes.get_mut(*object) else {
                continue;
            };
            let Some((_, value)) = values.get_mut(*attribute) else { continue };
            let mut dimensions = Vec::new();
            for scales in scales {
                let mut names = Vec::new();
                for address in scales {
                    let Some(name) = self.paths.get(address) else {
                        let what = "it refers to an object that is not kept";
                        let what = format!("the attribute `{SCALES}`: {what}");
                        self.found.losses.add(path.trim_start_matches(ROOT), what);
                        continue;
                    };
                    self.budget.take(name.len() + size_of::<Value>())?;
                    names.push(Value::from(format!("{ROOT}{name}")));
                }
                dimensions.push(match names.len() {
                    0 | 1 => names.pop().unwrap_or(Value::Null),
                    _ => Value::Array(names),
                });
            }
            *value = Value::Array(dimensions);
        }
        Ok(())
    }

    /// Replaces references by the paths of the objects to which they lead.
    fn name_references(&mut self, source: &Source) -> Result<()> {
        for reference in std::mem::take(&mut self.references) {
            match reference {
                References::Dataset(number, size) => {
                    let Some(found) = self.found.datasets.get(number) else { continue };
                    let (path, outer) = (found.path.clone(), found.outer.clone());
                    let addresses = addresses(source, found, size);
                    let addresses = addresses.map_err(|error| failed(error).in_field(&*path))?;
                    let value = self.named(&addresses, &outer, &path, "")?;
                    if let Some(found) = self.found.datasets.get_mut(number) {
                        found.kind = Elements::Value(value);
                    }
                }
                References::Attribute((object, attribute), addresses, shape) => {
                    let Some((path, values)) = self.found.attributes.get(object) else { continue };
                    let name = values.as_map().and_then(|values| values.get(attribute)?.0.as_str());
                    let what = format!("the attribute `{}`: ", name.unwrap_or("").escape_debug());
                    let path = path.trim_start_matches(ROOT).to_owned();
                    let value = self.named(&addresses, &shape, &path, &what)?;
                    let values = self.found.attributes.get_mut(object).map(|(_, values)| values);
                    if let Some(Value::Map(values)) = values
                        && let Some((_, place)) = values.get_mut(attribute)
                    {
                        *place = value;
                    }
                }
            }
        }
        Ok(())
    }

    /// The paths of objects, in an array of these dimensions. A reference to nothing is null.
    fn named(
        &mut self,
        addresses: &[u64],
        shape: &[usize],
        path: &str,
        what: &str,
    ) -> Result<Value> {
        let (mut names, mut lost) = (Vec::new(), 0u64);
        for address in addresses {
            let name = match (self.paths.get(address), self.groups.get(address)) {
                (Some(name), _) => format!("{ROOT}{name}"),
                (None, Some(name)) if name == ROOT => ROOT.to_owned(),
                (None, Some(name)) => format!("{ROOT}{name}"),
                (None, None) => {
                    lost += u64::from(!matches!(address, 0 | &u64::MAX));
                    names.push(Value::Null);
                    continue;
                }
            };
            self.budget.take(name.len() + size_of::<Value>())?;
            names.push(Value::from(name));
        }
        if lost > 0 {
            let what = format!("{what}{lost} of its references lead to objects that are not kept");
            self.found.losses.add(path, what);
        }
        Ok(attribute::nested(names, shape).unwrap_or(Value::Null))
    }

    fn lose(&mut self, path: &str, kind: &Kind, what: String) {
        match kind {
            Kind::Text(..) => self.found.losses.add(path, what),
            _ => self.found.losses.add_tensor(path, what),
        }
    }

    fn attributes(
        &mut self,
        path: &str,
        address: u64,
        attributes: Vec<RawAttribute>,
        resolve: &Resolve<'_>,
    ) -> Result<()> {
        let mut values = Vec::new();
        for attribute in attributes {
            let (mut message, mut datatype) = attribute.into_parts();
            let name = message.name.clone();
            let types = self.unknown.get_mut(&address).map(|unknown| &mut unknown.types);
            if let Some(named) = types.and_then(|types| types.remove(&name)) {
                (message.datatype, datatype) = named;
            }
            if name == SCALED && attribute::is_reference(&message) {
                let what = "left out, because `DIMENSION_LIST` of other datasets says the same";
                self.found.losses.note(format!("the attribute `{SCALED}` of scales is {what}"));
                continue;
            }
            if name == SCALES {
                let scales = attribute::references(&message, resolve, &mut self.budget);
                if let Some(scales) = scales.map_err(|error| error.in_field(path))? {
                    let at = (self.found.attributes.len(), values.len());
                    self.scales.push(Scales { at, scales });
                    values.push((Value::from(name), Value::Null));
                    continue;
                }
            }
            let found = attribute::plain_references(&message);
            if let Some((addresses, shape)) = found.map_err(|error| error.in_field(path))? {
                self.budget.take(addresses.len() * 8)?;
                let at = (self.found.attributes.len(), values.len());
                self.references.push(References::Attribute(at, addresses, shape));
                values.push((Value::from(name), Value::Null));
                continue;
            }
            let value = attribute::value((message, datatype), resolve, &mut self.budget);
            match value.map_err(|error| error.in_field(path))? {
                Ok(value) => values.push((Value::from(name), value)),
                Err(what) => {
                    let what = format!("the attribute `{}`: {what}", name.escape_debug());
                    self.found.losses.add(path, what);
                }
            }
        }
        if !values.is_empty() {
            self.found.attributes.push((of_object(path), Value::Map(values)));
        }
        Ok(())
    }

    /// What pandas says of the integers at a path: of a dataset, or of a field of its structs.
    fn times(&self, path: &str, is_field: bool, dtype: &DType) -> Option<Times> {
        let (dataset, field) = match path.rsplit_once('/').filter(|_| is_field) {
            Some((_, _)) if self.may_have_zones => return None,
            Some((dataset, field)) => (dataset, Some(field)),
            None => (path, None),
        };
        // The attributes of a dataset were added just before.
        let (object, attributes) = self.found.attributes.last()?;
        if *dtype != DType::I64 || object.strip_prefix(ROOT) != Some(dataset) {
            return None;
        }
        pandas::times(attributes.as_map()?, field)
    }

    /// Adds the names of the values of an enum to the attributes of the dataset or the field at this path.
    fn names(&mut self, path: &str, names: &[(String, i128)]) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let size = names.iter().map(|(name, _)| name.len() + size_of::<(Value, Value)>()).sum();
        self.budget.take(size).map_err(|error| error.in_field(path))?;
        let names = names.iter().map(|(name, number)| (name.as_str(), Value::Integer(*number)));
        let (object, entry) = (of_object(path), (Value::from(ENUM), names.collect()));
        // The attributes of a dataset were added just before.
        match self.found.attributes.last_mut() {
            Some((last, Value::Map(values))) if *last == object => {
                if values.iter().any(|(name, _)| name.as_str() == Some(ENUM)) {
                    let what = format!(
                        "the names of an enum's values: the dataset has an attribute `{ENUM}`, where they would be"
                    );
                    self.found.losses.add(path, what);
                } else {
                    values.push(entry);
                }
            }
            _ => self.found.attributes.push((object, Value::Map(vec![entry]))),
        }
        Ok(())
    }
}

/// The key of the attributes of an object.
fn of_object(path: &str) -> String {
    if path == ROOT { ROOT.to_owned() } else { format!("{ROOT}{path}") }
}

/// The addresses to which the references of a dataset lead.
fn addresses(source: &Source, found: &Found, size: u8) -> hdf5_reader::error::Result<Vec<u64>> {
    let mut bytes = source.elements(&found.dataset, &found.header)?;
    if let Some(field) = found.field {
        bytes = field.of_each(&bytes, found.dataset.raw_element_size()?);
    }
    read_object_references(&bytes, size)
}

/// Returns why the elements of a dataset cannot be read.
fn unreadable(source: &Source, dataset: &Dataset, header: &ObjectHeader) -> Option<String> {
    header.messages.iter().find_map(|message| match message {
        HdfMessage::FilterPipeline(pipeline) => {
            let mut all = pipeline.filters.iter().enumerate().take(32);
            let filter = all.find_map(|(nth, filter)| {
                let unread = filters::unread(filter)?;
                // If the chunks cannot be found, the filter is what the user can do something about.
                (!source.lacks(dataset, header, nth).unwrap_or(false)).then_some(unread)
            })?;
            Some(format!("its chunks are compressed by the filter {filter}, which is not read"))
        }
        HdfMessage::ExternalFiles(_) => {
            Some("its elements are in other files, which are not read".to_owned())
        }
        _ => None,
    })
}

/// Returns the offset of the elements, if they lie one after the other in the file, and are little-endian.
fn place_of(layout: &DataLayout, array: &Array, file: &Hdf5File) -> Option<u64> {
    let Array { numbers, len, .. } = array;
    if numbers.is_big_endian && numbers.dtype.word() > 1 {
        return None;
    }
    match *layout {
        // Elements that were never written have the highest address there is.
        DataLayout::Contiguous { address, size } if size >= *len as u64 && *len > 0 => {
            address.checked_add(*len as u64).filter(|end| *end <= file.storage().len())?;
            address.checked_add(file.superblock().base_address)
        }
        _ => None,
    }
}
