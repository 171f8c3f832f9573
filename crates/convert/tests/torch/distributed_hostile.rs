//! Distributed checkpoints made to attack the reader.

use std::fs;

use tenarc::error::Category;
use tenarc_convert::torch::open_distributed;
use tenarc_convert::{Format, Options, TensorFile as _};
use tenarc_test_support::alloc::peak_of;

use super::checkpoints::{Made, Step, Tensor, all, saved};
use super::support::{Pickler, file, floats, says, zip};

/// Changes a good checkpoint, and checks that it is refused.
#[track_caller]
fn refused(change: impl FnOnce(&mut Made), text: &str) -> Category {
    let mut made = Made::small();
    all(made.saved().path()).unwrap();
    change(&mut made);
    let dir = made.saved();
    let category = says(all(dir.path()), text).category();
    let to = dir.path().join("x.tenarc");
    assert!(Format::Torch.to_archive(dir.path(), &to, &Options::default()).is_err());
    assert!(!to.exists());
    category
}

#[test]
fn paths_that_lead_out_of_the_directory_are_refused() {
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("a");
    fs::write(&path, saved(&[1, 2], 0)).unwrap();
    let absolute = path.to_str().unwrap();
    for name in ["../a", "sub/../a", "sub//a", "..", ".", "", "\\a", "c:a", "a\0b", "nul", absolute]
    {
        let mut made = Made::small();
        // Not written, as most of these are no names of files.
        name.clone_into(&mut made.parts[0].file);
        let error = says(open_distributed(made.saved().path()), "the file name `");
        assert_eq!(error.category(), Category::Data, "{name}: {error}");
    }
    refused(|made| made.parts[0].file = "missing".into(), "missing");
    let dir = Made::small().saved();
    fs::remove_file(dir.path().join("__1_0.distcp")).unwrap();
    assert_eq!(says(open_distributed(dir.path()), "__1_0.distcp").category(), Category::Io);
    fs::create_dir(dir.path().join("__1_0.distcp")).unwrap();
    says(open_distributed(dir.path()), "it is a directory");
}

#[cfg(unix)]
#[test]
fn files_may_be_links() {
    let (made, cache) = (Made::small(), tempfile::tempdir().unwrap());
    let dir = made.saved();
    for (name, _) in &made.files {
        fs::rename(dir.path().join(name), cache.path().join(name)).unwrap();
        std::os::unix::fs::symlink(cache.path().join(name), dir.path().join(name)).unwrap();
    }
    all(dir.path()).unwrap();
}

#[test]
fn chunks_that_do_not_make_the_tensor_are_refused() {
    refused(|made| made.tensors[0].chunks[1].1 = vec![3, 3], "lies outside");
    refused(|made| made.tensors[0].size = vec![5, 2], "have 8 of the 10 elements");
    refused(|made| made.tensors[0].size = vec![3, 2], "lies outside");
    refused(|made| made.tensors[0].size = vec![4, 2, 1], "lies outside");
    refused(|made| made.tensors[0].chunks.truncate(1), "have 2 of the 8 elements");
    refused(|made| made.tensors[0].chunks.clear(), "have 0 of the 8 elements");
    let over = |made: &mut Made| {
        made.tensors[0].chunks[0].1 = vec![2, 2];
        made.parts.remove(0);
        made.part("w", Some(&[0, 0]), "__0_0.distcp", &saved(&[2, 2], 0));
    };
    refused(over, "the chunks at [0, 0] and [1, 0] overlap");
    let twice = |made: &mut Made| made.tensors[0].chunks[1] = made.tensors[0].chunks[0].clone();
    refused(twice, "overlap");
    refused(|made| made.tensors[0].size = vec![-4, 2], "not negative");
    refused(|made| made.tensors[0].chunks[0].0 = vec![-1, 0], "not negative");
}

#[test]
fn sizes_that_overflow_are_refused() {
    let most = i64::MAX;
    refused(|made| made.tensors[0].size = vec![most, most], "does not fit in memory");
    refused(|made| made.tensors[0].size = vec![1 << 61, 1], "does not fit in memory");
    refused(|made| made.tensors[0].chunks[0].0 = vec![most, most], "do not say where");
    let moved = |made: &mut Made| {
        made.tensors[0].chunks[0].0 = vec![most, most];
        made.parts[0].offset = Some(vec![most, most]);
    };
    refused(moved, "lies outside");
    let large = |made: &mut Made| {
        made.tensors[0].size = vec![1 << 40, 2];
        made.tensors[0].chunks = vec![(vec![0, 0], vec![1 << 40, 2])];
    };
    refused(large, "bytes, but");
    refused(|made| made.parts[0].start = most, "bytes from offset");
    refused(|made| made.parts[0].len = most, "overlaps another one");
    refused(|made| made.parts[1].len = most, "bytes from offset");
    refused(|made| made.parts[0].start = -1, "expected the offset and the length");
    refused(|made| made.parts[0].len = -1, "expected the offset and the length");
    // A tensor without elements has no chunks.
    let mut made = Made::default();
    let size = vec![1 << 40, 0, 5];
    made.tensors.push(Tensor { name: "w", dtype: "float32", size, chunks: Vec::new() });
    all(made.saved().path()).unwrap();
}

#[test]
fn parts_that_overlap_or_miss_are_refused() {
    // The object would be read twice.
    refused(|made| made.parts[2].start -= 1, "the part overlaps another one in `__0_0.distcp`");
    refused(|made| drop(made.parts.remove(2)), "where the object is stored");
    refused(|made| drop(made.parts.remove(1)), "where the chunk at [1, 0] is stored");
    refused(|made| made.parts.push(made.parts[0].clone()), "two parts with the same offset");
    refused(|made| made.objects.push("n"), "found this one twice");
    refused(|made| made.objects.push("w"), "found this one twice");
    refused(|made| made.parts[0].len -= 1, "expected");
    refused(|made| made.parts[2].len = 3, "expected a zip file, as torch.save writes it");
    // A chunk without elements needs no part.
    let mut made = Made::small();
    made.tensors[0].chunks.push((vec![4, 0], vec![0, 2]));
    all(made.saved().path()).unwrap();
    // A part that nothing uses is a loss.
    made.part("left", None, "__2_0.distcp", b"?");
    let dir = made.saved();
    let found = open_distributed(dir.path()).unwrap();
    let listed: Vec<_> = found.losses().listed().iter().map(ToString::to_string).collect();
    assert_eq!(listed, ["`left`: a stored part that belongs to no tensor or object"]);
}

#[test]
fn chunks_of_another_kind_than_the_metadata_say_are_refused() {
    refused(|made| made.tensors[0].dtype = "int32", "expected a chunk of i32 [1, 2]");
    refused(|made| made.files[0].1 = vec![0; made.files[0].1.len()], "expected a zip file");
    let other = |contents: Vec<u8>| {
        move |made: &mut Made| {
            made.parts.remove(0);
            made.part("w", Some(&[0, 0]), "__2_0.distcp", &contents);
        }
    };
    refused(other(saved(&[2, 1], 0)), "expected a chunk of f32 [1, 2], as the metadata say");
    refused(other(file(&Pickler::new().op(b"}").end(), &[0; 64])), "expected a tensor, found");
    refused(other(zip(&[("a/b", &[0; 64])])), "torch.save did not write this zip file");
    let transform = |made: &mut Made| made.parts[0].transform = Some("stream.zstd/1");
    assert_eq!(refused(transform, "transformed by `stream.zstd/1`"), Category::Unsupported);
    assert_eq!(refused(|made| made.version = Some("2.0.0"), "found `2.0.0`"), Category::Version);
    let mut made = Made::small();
    made.version = Some("1.1.0");
    all(made.saved().path()).unwrap();
    // A dtype that archives do not have is a loss.
    made.tensors[0].dtype = "quint4x2";
    let dir = made.saved();
    let found = open_distributed(dir.path()).unwrap();
    let losses = found.losses();
    assert!(losses.tensors() == 1 && losses.to_string().contains("torch.quint4x2"), "{losses}");
    let converted = |options: &Options| {
        let to = dir.path().join("x.tenarc");
        Format::Torch.to_archive(dir.path(), to, options)
    };
    assert!(converted(&Options::default()).is_err());
    assert_eq!(converted(&Options::default().with_losses(true)).unwrap().count(), 1);
}

#[test]
fn paths_that_clash_are_refused() {
    use Step::{Index, Key};
    let at = |paths: [Vec<Step>; 2]| {
        let [w, n] = paths;
        move |made: &mut Made| made.paths = Some(vec![("w", w), ("n", n)])
    };
    refused(at([vec![Key("a")], vec![Key("a")]]), "another value is at this path");
    refused(at([vec![Key("a")], vec![Key("a"), Key("b")]]), "another value is at this path");
    refused(at([vec![Key("a"), Key("b")], vec![Key("a")]]), "another value is at this path");
    refused(at([vec![Key("a"), Key("b")], vec![Key("a"), Index(0)]]), "another value is");
    refused(at([vec![Index(0)], vec![Key("a")]]), "another value is at this path");
    let far = vec![Key("a"), Index(i64::MAX)];
    assert_eq!(refused(at([far, vec![Key("b")]]), "lists lack more than"), Category::Limit);
    let deep = vec![Key("a"); 65];
    assert_eq!(refused(at([deep, vec![Key("b")]]), "a path of 65 steps"), Category::Limit);
    let deep = vec![Key("a"); 64];
    assert_eq!(refused(at([deep, vec![Key("b")]]), "nests more than"), Category::Limit);
    // The data of another planner.
    let mut made = Made::small();
    made.paths = Some(vec![("w", vec![Index(-1)])]);
    let dir = made.saved();
    let found = open_distributed(dir.path()).unwrap();
    assert!(found.losses().to_string().contains("a planner that is not torch's own"));
    assert_eq!(found.tensors()[0].path(), "w");
}

#[test]
fn other_pickles_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let metadata = |pickle: Vec<u8>| {
        fs::write(dir.path().join(".metadata"), pickle).unwrap();
        open_distributed(dir.path())
    };
    for (pickle, text) in [
        (Pickler::new().op(b"}").end(), "class `Metadata`, found a dict"),
        (Pickler::new().op(b"K\x01").end(), "found an integer"),
        (Pickler::new().global("os", "system").op(b")R").end(), "an object of `os.system`"),
        (Pickler::new().global("my", "Metadata").op(b")\x81").end(), "an object of `my.Metadata`"),
        (b"\x80\x02".to_vec(), "input ended"),
        (Vec::new(), "input ended"),
        (b"{}".to_vec(), "expected a pickle opcode"),
    ] {
        says(metadata(pickle), text);
    }
    let class = Pickler::new().global("torch.distributed.checkpoint.metadata", "Metadata");
    says(metadata(class.clone().op(b")\x81").end()), "a dict of storage_data, found nothing");
    // Each attribute is searched for in all of them.
    let attributes = (0..65).fold(class.op(b")\x81}("), |pickle, _| pickle.text("a").op(b"N"));
    let error = says(metadata(attributes.op(b"ub").end()), "has 65 attributes, 64 are allowed");
    assert_eq!(error.category(), Category::Limit);
}

#[test]
fn no_truncation_is_read_and_no_changed_byte_panics() {
    let made = Made::small();
    let dir = made.saved();
    let expected = open_distributed(dir.path()).unwrap().dyn_tensor("w").unwrap();
    let (path, metadata) = (dir.path().join(".metadata"), made.metadata());
    for len in 0..metadata.len() {
        fs::write(&path, &metadata[..len]).unwrap();
        assert!(open_distributed(dir.path()).is_err(), "{len}");
    }
    for at in 0..metadata.len() {
        for change in [1, 32, 0xff] {
            let mut changed = metadata.clone();
            changed[at] ^= change;
            fs::write(&path, changed).unwrap();
            let _ = all(dir.path());
        }
    }
    made.save(dir.path());
    for (name, bytes) in &made.files {
        let path = dir.path().join(name);
        for len in (0..bytes.len()).step_by(7) {
            fs::write(&path, &bytes[..len]).unwrap();
            assert!(open_distributed(dir.path()).is_err(), "{name} {len}");
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            fs::write(&path, changed).unwrap();
            // All checksums are right where this is read.
            if all(dir.path()).is_ok() {
                let found = open_distributed(dir.path()).unwrap().dyn_tensor("w").unwrap();
                assert_eq!(found.le_bytes(), expected.le_bytes(), "{name} {at}");
            }
        }
        fs::write(&path, bytes).unwrap();
    }
}

#[test]
fn an_object_takes_no_more_memory_than_a_file_may() {
    const MIB: usize = 1 << 20;
    let mut made = Made::small();
    // A tensor of 2 GiB, all of whose elements are the same one.
    let huge = file(
        &Pickler::new().op(b"(").tensor("FloatStorage", 12, 0, &[1 << 29], &[0]).op(b"t").end(),
        &floats(12),
    );
    made.objects.push("huge");
    made.part("huge", None, "__0_0.distcp", &huge);
    let dir = made.saved();
    let (found, taken) = peak_of(|| {
        let found = open_distributed(dir.path()).unwrap();
        found.value(tenarc_convert::Names::Stored).map(drop)
    });
    says(found, "more bytes are allowed");
    assert!(taken < MIB, "{taken} bytes");
    // Metadata that claim much.
    for claim in [&b"X\xff\xff\xff\xffx"[..], b"\x8e\xff\xff\xff\xff\xff\xff\xff\x00x"] {
        fs::write(dir.path().join(".metadata"), Pickler::new().op(claim).end()).unwrap();
        let (found, taken) = peak_of(|| open_distributed(dir.path()).map(drop));
        assert!(found.is_err() && taken < MIB, "{taken} bytes");
    }
}
