//! `Segment::tensor` refused tensors of a cut segment that cannot be verified, but views, shared tensors and slices
//! gave them. Slices of missing tensors gave an error of another category.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::num::NonZeroUsize;

use tenarc::archive::{SaveOptions, Segment};
use tenarc::de::DecodeOptions;
use tenarc::error::{Category, Result};
use tenarc::io::{ReadAt, SharedBytes};
use tenarc::tensor::{DynTensor, SharedTensor};
use tenarc::{Archive, OArchive, Tensor};

const LEN: u16 = 5000;

type Model<A> = BTreeMap<String, Tensor<A>>;
/// A method, and what it read.
type Found<T = Vec<u16>> = (&'static str, Result<T>);

/// Four tensors in buffers, and a small one in the metadata.
fn model() -> Model<Vec<u16>> {
    let large = (0..4u16).map(|n| (format!("w{n}"), Tensor(vec![n; usize::from(LEN)])));
    large.chain([("small".to_owned(), Tensor(vec![7]))]).collect()
}

fn saved(checksums: bool) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tenarc");
    let options = SaveOptions::default().with_checksums(checksums);
    tenarc::archive::save_with(&path, &model(), options).unwrap();
    fs::read(path).unwrap()
}

/// Reads one tensor in every way that any source allows.
fn reads<S: ReadAt + Sync>(segment: &Segment<'_, S>, path: &str) -> Vec<Found> {
    let elements = |tensor: DynTensor| tensor.into_vec::<u16>();
    let one = NonZeroUsize::MIN;
    let mut found = vec![
        ("get", segment.get::<Tensor<Vec<u16>>>(path).map(Tensor::into_inner)),
        ("tensor", segment.tensor(path)),
        ("dyn_tensor", segment.dyn_tensor(path).and_then(elements)),
        (
            "dyn_tensors",
            segment.dyn_tensors(&[path], one).and_then(|mut all| elements(all.remove(0))),
        ),
        ("slice of all", segment.slice(path, (..,))),
        ("slice of the first", segment.slice(path, (0..1,))),
        ("slice of the last", segment.slice(path, (-1..,))),
        ("slice of none", segment.slice(path, (0..0,))),
    ];
    let range = segment.inspect_at(path).unwrap().next().unwrap().unwrap().range;
    found.push(("decode", segment.decode::<Tensor<Vec<u16>>>(range).map(Tensor::into_inner)));
    if let Some(number) = segment.info(path).unwrap().buffer() {
        let number = usize::try_from(number).unwrap();
        let numbers = |bytes: &[u8]| {
            bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect()
        };
        let mut bytes = Vec::new();
        let read = segment.read_buffer(number, |block| {
            bytes.extend_from_slice(block);
            Ok(())
        });
        found.push(("read_buffer", read.map(|()| numbers(&bytes))));
        let mut part = [0xff; 2];
        let read = segment.read_buffer_part(number, 2, &mut part);
        found.push(("read_buffer_part", read.map(|()| numbers(&part))));
        if let Some(shared) = segment.share_buffer(number).transpose() {
            found.push(("share_buffer", shared.map(|bytes| numbers(&bytes))));
        }
    }
    found
}

/// Reads one tensor in the ways that need a source in memory.
fn reads_in_memory<S: ReadAt + Sync>(segment: &Segment<'_, S>, path: &str) -> Vec<Found> {
    let shared = |tensor: &SharedTensor| tensor.as_slice::<u16>().map(<[u16]>::to_vec);
    let view = segment.view_at::<Tensor<ndarray::ArrayView1<'_, u16>>>(path);
    vec![
        ("view_at", view.map(|view| view.to_vec())),
        ("share", segment.share(path).and_then(|tensor| shared(&tensor))),
    ]
}

/// Reads the whole value in every way that keeps only the tensors' elements.
fn whole<S: ReadAt>(segment: &Segment<'_, S>) -> Vec<Found<Model<Vec<u16>>>> {
    vec![("load", segment.load()), ("get", segment.get(""))]
}

fn whole_in_memory<S: ReadAt>(segment: &Segment<'_, S>) -> Vec<Found<Model<Vec<u16>>>> {
    fn copied<A>(model: Model<A>, copy: impl Fn(A) -> Vec<u16>) -> Model<Vec<u16>> {
        model.into_iter().map(|(name, Tensor(array))| (name, Tensor(copy(array)))).collect()
    }
    let view = segment.view::<Model<ndarray::ArrayView1<'_, u16>>>();
    let shared = segment.load_shared::<Model<SharedTensor>>();
    vec![
        ("view", view.map(|model| copied(model, |array| array.to_vec()))),
        (
            "load_shared",
            shared.map(|model| copied(model, |array| array.as_slice().unwrap().to_vec())),
        ),
    ]
}

/// All ways to read one tensor, and the whole value, of the only segment in these bytes.
fn each(bytes: &[u8], options: DecodeOptions, look: impl Fn(&str, &dyn Reads)) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cut.tenarc");
    fs::write(&path, bytes).unwrap();
    let file = Archive::new_torn(File::open(&path).unwrap()).unwrap().with_options(options);
    look("file", &file.segment(0).unwrap());
    let slice = Archive::new_torn(bytes).unwrap().with_options(options);
    look("slice", &InMemory(slice.segment(0).unwrap()));
    let shared = SharedBytes::from_owner(bytes.to_vec());
    let shared = Archive::new_torn(shared).unwrap().with_options(options);
    look("shared bytes", &InMemory(shared.segment(0).unwrap()));
}

/// A segment of any source.
trait Reads {
    fn tensor(&self, path: &str) -> Vec<Found>;
    fn whole(&self) -> Vec<Found<Model<Vec<u16>>>>;
}

impl<S: ReadAt + Sync> Reads for Segment<'_, S> {
    fn tensor(&self, path: &str) -> Vec<Found> {
        reads(self, path)
    }

    fn whole(&self) -> Vec<Found<Model<Vec<u16>>>> {
        whole(self)
    }
}

/// A segment whose source is in memory.
struct InMemory<'a, S>(Segment<'a, S>);

impl<S: ReadAt + Sync> Reads for InMemory<'_, S> {
    fn tensor(&self, path: &str) -> Vec<Found> {
        [reads(&self.0, path), reads_in_memory(&self.0, path)].into_iter().flatten().collect()
    }

    fn whole(&self) -> Vec<Found<Model<Vec<u16>>>> {
        [whole(&self.0), whole_in_memory(&self.0)].into_iter().flatten().collect()
    }
}

fn check_given(source: &str, found: Vec<Found>, value: u16, len: u16) {
    for (method, elements) in found {
        let len = match method {
            "slice of the first" | "slice of the last" | "read_buffer_part" => 1,
            "slice of none" => 0,
            _ => usize::from(len),
        };
        let elements = elements.unwrap_or_else(|error| panic!("{source}, {method}: {error}"));
        assert!(elements == vec![value; len], "{source}, {method}: {elements:?}");
    }
}

fn check_torn<T>(source: &str, method: &str, found: Result<T>, text: &str) {
    let Err(error) = found else { panic!("{source}, {method}: gave the tensor") };
    assert_eq!(error.category(), Category::Torn, "{source}, {method}: {error}");
    assert!(error.to_string().contains(text), "{source}, {method}: {error}");
}

const UNVERIFIABLE: &str = "with_checksums(false)";
const MISSING: &str = "the archive ends inside buffer";

#[test]
fn tensors_that_cannot_be_verified_are_given_only_on_request() {
    for checksums in [true, false] {
        let bytes = saved(checksums);
        // The third tensor is there in part.
        let third = bytes.windows(64).position(|window| window == [2, 0].repeat(32)).unwrap();
        let cut = &bytes[..third + 5000];
        for verified in [true, false] {
            let options = DecodeOptions::default().with_checksums(verified);
            each(cut, options, |source, segment| {
                check_given(source, segment.tensor("small"), 7, 1);
                for (value, name) in [(0, "w0"), (1, "w1")] {
                    if checksums && verified {
                        for (method, found) in segment.tensor(name) {
                            check_torn(source, method, found, UNVERIFIABLE);
                        }
                    } else {
                        check_given(source, segment.tensor(name), value, LEN);
                    }
                }
                for name in ["w2", "w3"] {
                    for (method, found) in segment.tensor(name) {
                        check_torn(source, method, found, MISSING);
                    }
                }
                for (method, found) in segment.whole() {
                    check_torn(source, method, found, "");
                }
            });
        }
    }
}

#[test]
fn values_of_which_only_the_checksums_are_missing_are_given_only_on_request() {
    for checksums in [true, false] {
        let bytes = saved(checksums);
        let archive = Archive::new(&bytes[..]).unwrap();
        let (start, len) = *archive.segment(0).unwrap().buffers().last().unwrap();
        let cut = &bytes[..usize::try_from(start + len).unwrap()];
        for verified in [true, false] {
            let options = DecodeOptions::default().with_checksums(verified);
            each(cut, options, |source, segment| {
                for (method, found) in segment.whole() {
                    if checksums && verified {
                        check_torn(source, method, found, UNVERIFIABLE);
                    } else {
                        assert!(found.unwrap() == model(), "{source}, {method}");
                    }
                }
            });
        }
    }
}

#[test]
fn parts_and_copies_of_a_cut_segment_are_refused() {
    for checksums in [true, false] {
        let bytes = saved(checksums);
        let archive = Archive::new(&bytes[..]).unwrap();
        let (start, len) = *archive.segment(0).unwrap().buffers().last().unwrap();
        let cut = &bytes[..usize::try_from(start + len).unwrap()];
        for verified in [true, false] {
            let options = DecodeOptions::default().with_checksums(verified);
            let archive = Archive::new_torn(cut).unwrap().with_options(options);
            let segment = archive.segment(0).unwrap();
            // They keep the checksums, which are missing.
            let why = "before the end of a segment";
            check_torn("slice", "to_parts", segment.to_parts(), why);
            check_torn("slice", "view_parts", segment.view_parts(), why);
            let mut out = OArchive::new(Vec::new()).unwrap();
            check_torn("slice", "save_segment", out.save_segment(&segment), why);
        }
    }
}
