//! How much memory safetensors files take to write, to read and to convert.

use tenarc::archive::SaveOptions;
use tenarc::io::SyncLevel;
use tenarc::tensor::Deferred;
use tenarc_convert::safetensors::{self, Options, SafeTensors};
use tenarc_convert::{Format, Names};

use tenarc_test_support::alloc::peak_of;

const MIB: usize = 1 << 20;
const TENSOR: usize = 2 * MIB;
const COUNT: u32 = 8;

fn convert_there_and_back() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    let options = Options::default().with_sync(SyncLevel::Off);
    let archived = SaveOptions::default().with_sync(SyncLevel::Off);
    let fetch = |seed: u32| move || Ok::<_, std::io::Error>(vec![seed; TENSOR / 4]);
    let tensors: Vec<(String, Deferred<'_>)> = (0..COUNT)
        .map(|at| (format!("layers.{at}.weight"), Deferred::new(&[TENSOR / 4], fetch(at))))
        .collect();

    let check = |what: &str, most: usize, allowed: usize| {
        println!("{what}: {} KiB", most >> 10);
        assert!(most < allowed, "{what}: {} KiB", most >> 10);
    };
    let (saved, most) = peak_of(|| safetensors::save_with(file("a"), &tensors, &options));
    saved.unwrap();
    check("saving tensors that are fetched", most, TENSOR + MIB);

    let to_archive = || {
        Format::Safetensors.to_archive(
            file("a"),
            file("b"),
            &Options::default().with_names(Names::Nested).with_save(archived),
        )
    };
    let (converted, most) = peak_of(to_archive);
    converted.unwrap();
    check("to an archive, verified", most, TENSOR);

    let from_archive = || Format::Safetensors.from_archive(file("b"), file("c"), &options);
    let (converted, most) = peak_of(from_archive);
    assert!(converted.unwrap().is_empty());
    check("from an archive, verified", most, TENSOR + MIB);
    // The same tensors; beside, the file says that it was written from a nested value.
    let [a, c] = ["a", "c"].map(|name| safetensors::open(file(name)).unwrap());
    assert!(c.is_nested() && a.tensors().len() == c.tensors().len());
    for info in a.tensors() {
        assert!(a.dyn_tensor(info.path()).unwrap() == c.dyn_tensor(info.path()).unwrap());
    }

    let index = file("model.safetensors.index.json");
    let limit = 3 * TENSOR as u64;
    let (saved, most) = peak_of(|| safetensors::save_sharded(&index, &tensors, limit, &options));
    saved.unwrap();
    check("saving shards", most, TENSOR + MIB);

    let opened = safetensors::open(file("a")).unwrap();
    let (tensor, most) = peak_of(|| opened.dyn_tensor("layers.3.weight"));
    assert_eq!(tensor.unwrap().le_bytes().len(), TENSOR);
    check("reading one", most, TENSOR + MIB / 8);
}

/// A header as it comes from strangers: memory follows its bytes, and not what they claim.
fn headers_take_what_they_are() {
    let entry = |at: usize| {
        format!(
            r#""{at}":{{"dtype":"F32","shape":[1,1],"data_offsets":[{},{}]}}"#,
            at * 4,
            at * 4 + 4
        )
    };
    let header = format!("{{{}}}", (0..5000).map(entry).collect::<Vec<_>>().join(","));
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.resize(bytes.len() + 20_000, 0);
    let (file, most) = peak_of(|| SafeTensors::new(&bytes[..]).unwrap());
    assert_eq!(file.tensors().len(), 5000);
    println!("{} bytes of header: {} bytes", header.len(), most);
    assert!(most < 12 * header.len(), "{most} bytes");

    let claims = [
        format!(r#"{{"a":{{"dtype":"F64","shape":[{}],"data_offsets":[0,{}]}}}}"#, 1u64 << 57, 1u64 << 60),
        r#"{"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,18446744073709551615]}}"#
            .to_owned(),
    ];
    for header in claims {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header.as_bytes());
        let (file, most) = peak_of(|| SafeTensors::new(&bytes[..]).map(drop));
        file.unwrap_err();
        assert!(most < 4096, "{most} bytes");
    }
}

#[test]
fn memory_is_bounded_by_the_largest_tensor() {
    convert_there_and_back();
    headers_take_what_they_are();
}
