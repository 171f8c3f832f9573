//! Arrays in the memory of an archive.

use arrow_array::{Array, RecordBatch, make_array};
use arrow_buffer::NullBuffer;
use serde::{Serialize, Serializer};
use tenarc::archive::{Compression, SaveOptions};
use tenarc::de::DecodeOptions;
use tenarc::error::Category;
use tenarc::io::{ReadAt, SharedBytes};
use tenarc::parts::Buffer;
use tenarc::types::{TimeUnit, TypeName, Typed};
use tenarc::{Archive, Map, OArchive, Tensor};
use tenarc_arrow::ArrowTable;

#[derive(Serialize)]
enum Level {
    Low,
    High,
}

#[derive(Serialize)]
struct Inner {
    x: f32,
}

#[derive(Serialize)]
struct Row {
    id: u64,
    flag: bool,
    name: String,
    tags: Vec<u16>,
    at: [f32; 3],
    embedding: Tensor<[i8; 4]>,
    inner: Inner,
    #[serde(serialize_with = "time")]
    time: i64,
    #[serde(serialize_with = "uuid")]
    uuid: [u8; 16],
    all: Option<u32>,
    some: Option<u32>,
    level: Level,
    host: &'static str,
}

// serde wants references.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn time<S: Serializer>(time: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    let of = TypeName::timestamp(TimeUnit::Microsecond, "UTC").unwrap();
    Typed::new(&of, time).serialize(serializer)
}

fn uuid<S: Serializer>(uuid: &[u8; 16], serializer: S) -> Result<S::Ok, S::Error> {
    Typed::new(&TypeName::uuid(), serde_bytes::Bytes::new(uuid)).serialize(serializer)
}

/// The columns, and how many of the buffers of their arrays are stored as Arrow has them. The offsets of texts and lists are
/// not: lengths are stored. Neither are the rows of columns with nulls, of enums and of dicts.
const SHARED: [(&str, usize); 13] = [
    ("id", 1),
    ("flag", 1),
    ("name", 1),
    ("tags", 1),
    ("at", 1),
    ("embedding", 1),
    ("inner", 1),
    ("time", 1),
    ("uuid", 1),
    ("all", 1),
    ("some", 0),
    ("level", 0),
    ("host", 0),
];

/// A file of two values of 200 rows each, whose columns are in buffers.
fn saved(options: SaveOptions) -> Vec<u8> {
    let row = |n: u16| Row {
        id: u64::from(n) << 40,
        flag: n.is_multiple_of(3),
        name: format!("é{n}"),
        tags: (0..n % 3).collect(),
        at: [f32::from(n); 3],
        embedding: Tensor([1, -2, 3, -4]),
        inner: Inner { x: f32::from(n) },
        time: i64::from(n) << 40,
        uuid: [n.to_le_bytes()[0]; 16],
        all: Some(n.into()),
        some: (!n.is_multiple_of(2)).then_some(n.into()),
        level: if n > 100 { Level::High } else { Level::Low },
        host: if n > 100 { "a.example.com" } else { "b.example.com" },
    };
    let rows: Vec<_> = (0..400).map(row).collect();
    let mut out = OArchive::with_options(Vec::new(), options.with_inline_below(1)).unwrap();
    for rows in rows.chunks(200) {
        out.save_as("t", rows).unwrap();
    }
    out.finish().unwrap()
}

/// An archive in memory that starts `shift` bytes after an aligned address.
fn in_memory(bytes: &[u8], shift: usize) -> Archive<SharedBytes> {
    let moved = [&[0].repeat(shift), bytes].concat();
    let memory = SharedBytes::from_owner(Buffer::copied(&moved, 4096).unwrap());
    Archive::new(memory.slice(shift..moved.len()).unwrap()).unwrap()
}

fn batches<S: ReadAt>(archive: &Archive<S>) -> Vec<RecordBatch> {
    let table = ArrowTable::open(archive, "t").unwrap();
    table.reader().collect::<Result<_, _>>().unwrap()
}

/// The number of buffers of an array that are in this memory.
fn shared(array: &dyn Array, memory: &[u8]) -> usize {
    let data = array.to_data();
    let nulls = data.nulls().map(NullBuffer::buffer);
    let buffers = data.buffers().iter().chain(nulls);
    let here = buffers.filter(|buffer| memory.as_ptr_range().contains(&buffer.as_ptr())).count();
    let inner = data.child_data().iter().map(|data| shared(&make_array(data.clone()), memory));
    here + inner.sum::<usize>()
}

/// The columns of a batch, and how many of their buffers are in this memory.
fn columns<'a>(batch: &'a RecordBatch, memory: &[u8]) -> Vec<(&'a str, usize)> {
    let columns = batch.schema_ref().fields().iter().zip(batch.columns());
    columns.map(|(field, array)| (field.name().as_str(), shared(array, memory))).collect()
}

#[test]
fn columns_that_are_stored_as_arrow_has_them_are_not_copied() {
    let bytes = saved(SaveOptions::default());
    let expected = batches(&Archive::new(&bytes[..]).unwrap());
    let archive = in_memory(&bytes, 0);
    let memory = archive.source().clone();
    let found = batches(&archive);
    drop(archive);
    assert_eq!(found, expected);
    assert_eq!(found.len(), 2);
    for batch in &found {
        assert_eq!(columns(batch, &memory), SHARED);
    }
    // A slice of a batch is in the same memory, and chosen rows are not.
    let archive = in_memory(&bytes, 0);
    let table = ArrowTable::open(&archive, "t").unwrap().with_rows(5..9).unwrap();
    let chosen = table.reader().next_batch().unwrap().unwrap();
    assert_eq!(chosen, expected[0].slice(5, 4));
    assert_eq!(shared(&chosen["id"], archive.source()), 0);
}

#[test]
fn other_columns_are_copied() {
    let bytes = saved(SaveOptions::default());
    let expected = batches(&Archive::new(&bytes[..]).unwrap());
    for shift in [1, 2, 4] {
        let archive = in_memory(&bytes, shift);
        let [first, second] = &batches(&archive)[..] else { panic!("two batches") };
        assert_eq!([first, second], [&expected[0], &expected[1]]);
        let wide = ["id", "time"]
            .into_iter()
            .chain(["at", "inner", "all"].into_iter().filter(|_| shift < 4));
        let wide: Vec<_> = wide.chain((shift < 2).then_some("tags")).collect();
        let is_copied = |name: &str| wide.contains(&name);
        let shared = SHARED.map(|(name, count)| (name, if is_copied(name) { 0 } else { count }));
        assert_eq!(columns(first, archive.source()), shared, "{shift}");
    }
    let compressed = saved(SaveOptions::default().with_compression(Compression::lz4()));
    let archive = in_memory(&compressed, 0);
    let found = batches(&archive);
    assert_eq!(found, expected);
    let in_place = columns(&found[0], archive.source());
    assert!(in_place.iter().filter(|(_, count)| *count > 0).count() < 4, "{in_place:?}");
}

#[test]
fn arrays_keep_a_file_mapped() {
    let bytes = saved(SaveOptions::default());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.tenarc");
    std::fs::write(&path, &bytes).unwrap();
    // SAFETY: nobody changes the file.
    #[allow(unsafe_code)]
    let map = unsafe { Map::open(&path).unwrap() };
    let found = batches(&map);
    assert_eq!(columns(&found[0], map.source().as_ref()), SHARED);
    drop(map);
    assert_eq!(found, batches(&Archive::new(&bytes[..]).unwrap()));
}

#[test]
fn checksums_are_verified_unless_they_are_not_wanted() {
    let mut bytes = saved(SaveOptions::default());
    let at = {
        let archive = Archive::new(&bytes[..]).unwrap();
        let first = archive.segments().next().unwrap().unwrap();
        first.buffers()[0].0
    };
    bytes[usize::try_from(at).unwrap()] ^= 1;
    let archive = in_memory(&bytes, 0);
    let error = ArrowTable::open(&archive, "t").unwrap().reader().next_batch().unwrap_err();
    assert_eq!(error.category(), Category::Damaged);
    let shown = error.to_string();
    assert!(shown.starts_with("checksum of buffer 0 is") && shown.contains("`id`"), "{shown}");
    // The error is that of a source that is copied.
    let copied = Archive::new(&bytes[..]).unwrap();
    let same = ArrowTable::open(&copied, "t").unwrap().reader().next_batch().unwrap_err();
    assert_eq!(shown, same.to_string());
    // The other columns can be read.
    let table = ArrowTable::open(&archive, "t").unwrap().with_columns(&["flag"]).unwrap();
    assert_eq!(table.reader().next_batch().unwrap().unwrap().num_rows(), 200);
    drop(table);

    let archive = archive.with_options(DecodeOptions::default().with_checksums(false));
    let found = batches(&archive);
    assert_eq!(columns(&found[0], archive.source()), SHARED);
    assert_eq!(found[0]["id"].to_data().buffers()[0][0], 1);
}

#[test]
fn whole_columns_of_a_torn_archive_are_shared_without_checksums() {
    let bytes = saved(SaveOptions::default());
    let (start, len) = {
        let archive = Archive::new(&bytes[..]).unwrap();
        let first = archive.segments().next().unwrap().unwrap();
        first.buffers()[1]
    };
    let torn = &bytes[..usize::try_from(start + len - 1).unwrap()];
    let memory = SharedBytes::from_owner(Buffer::copied(torn, 4096).unwrap());
    let archive = Archive::new_torn(memory).unwrap();
    let read = |archive: &Archive<SharedBytes>, name: &str| {
        let segments = archive.segments().collect::<tenarc::Result<_>>()?;
        ArrowTable::of_segments(segments)?.with_columns(&[name])?.reader().next_batch()
    };
    assert_eq!(read(&archive, "id").unwrap_err().category(), Category::Torn);
    let archive = archive.with_options(DecodeOptions::default().with_checksums(false));
    let found = read(&archive, "id").unwrap().unwrap();
    assert_eq!(shared(&found["id"], archive.source()), 1);
    let expected = batches(&Archive::new(&bytes[..]).unwrap());
    assert_eq!(&found["id"], &expected[0]["id"]);
    assert_eq!(read(&archive, "flag").unwrap_err().category(), Category::Torn);
}
