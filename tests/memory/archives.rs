//! How much memory saving and loading archives take beside the value itself.
//!
//! These tests run one after the other: each needs much memory, and the high water mark that they
//! print is that of the whole process.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tenarc::archive::SaveOptions;
use tenarc::io::SyncLevel;
use tenarc::{Archive, IArchive, OArchive, Tensor};

use tenarc_test_support::alloc::peak_of;

static TURN: Mutex<()> = Mutex::new(());

const MIB: usize = 1 << 20;
const ALLOWED: usize = 16 * MIB;

#[derive(Serialize, Deserialize, PartialEq)]
struct Tensors {
    name: String,
    layers: Vec<Tensor<Vec<f32>>>,
}

#[derive(Serialize, Deserialize, PartialEq)]
struct Plain {
    name: String,
    layers: Vec<Vec<f32>>,
}

/// Numbers that differ from those of other seeds.
fn numbers(bytes: usize, seed: u8) -> Vec<f32> {
    vec![f32::from(seed); bytes / 4]
}

fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("tenarc-memory-{}-{name}", std::process::id()))
}

/// The most memory the process ever took, where that is told.
fn high_water() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<usize>().ok().map(|kib| kib << 10)
}

fn options() -> SaveOptions {
    SaveOptions::default().with_sync(SyncLevel::Off)
}

/// Saves and loads in every way; what it took in bytes beside the value.
fn measure<T>(value: T, bytes: usize) -> Vec<(&'static str, usize)>
where
    T: Serialize + for<'de> Deserialize<'de> + PartialEq,
{
    let path = file("archive");
    let mut taken = Vec::new();
    let (saved, most) = peak_of(|| tenarc::archive::save_with(&path, &value, options()));
    saved.unwrap();
    taken.push(("save", most));
    drop(value);

    let (loaded, most) = peak_of(|| tenarc::load::<T>(&path));
    taken.push(("load", most.saturating_sub(bytes)));
    let loaded = loaded.unwrap();
    let (again, most) = peak_of(|| {
        let file = std::fs::File::open(&path).unwrap();
        IArchive::new(file)?.load::<T>()
    });
    taken.push(("stream in", most.saturating_sub(bytes)));
    assert!(again.unwrap() == loaded);
    let (verified, most) = peak_of(|| tenarc::open(&path)?.verify());
    verified.unwrap();
    taken.push(("verify", most));
    std::fs::remove_file(&path).unwrap();
    taken
}

const LAYERS: u8 = 8;

fn measure_both(of_tensors: usize, of_plain: usize) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let layers = |total| (0..LAYERS).map(move |seed| numbers(total / usize::from(LAYERS), seed));
    let tensors = || {
        let layers = layers(of_tensors).map(Tensor).collect();
        Tensors { name: "tensors".into(), layers }
    };
    let plain = || Plain { name: "plain".into(), layers: layers(of_plain).collect() };
    let check = |kind: &str, total: usize, taken: Vec<(&str, usize)>| {
        for (name, most) in taken {
            println!("{kind}, {name}: {} KiB", most >> 10);
            // Lengths in a stream are claims, so that memory grows with the bytes that come; while
            // an allocator that cannot grow in place moves a tensor, two copies of it are there.
            let moved = if name == "stream in" { total / usize::from(LAYERS) / 2 } else { 0 };
            assert!(most < ALLOWED + moved, "{kind}, {name}: {} MiB", most / MIB);
        }
    };
    check("tensors", of_tensors, measure(tensors(), of_tensors));
    check("plain", of_plain, measure(plain(), of_plain));
    if let Some(most) = high_water() {
        println!("VmHWM {} MiB, of values of {} MiB", most / MIB, of_tensors / MIB);
    }
}

#[test]
fn saving_and_loading_take_little_beside_the_value() {
    measure_both(64 * MIB, 32 * MIB);
}

#[test]
#[ignore = "takes 3 GiB of memory and 2 of disk"]
fn saving_and_loading_a_gibibyte_take_little_beside_the_value() {
    measure_both(1 << 30, 1 << 30);
}

/// Saving holds the compressed bytes. Reading holds a few chunks beside the value.
#[test]
#[cfg(feature = "compression")]
fn compressed_tensors_take_little_beside_the_value() {
    use tenarc::archive::Compression;

    const TOTAL: usize = 64 * MIB;

    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (path, copy) = (file("compressed"), file("compressed-copy"));
    let mut state = 1u32;
    let noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f32::from_bits(0x3f80_0000 | state >> 9)
    };
    let numbers: Vec<f32> = std::iter::repeat_with(noise).take(TOTAL / 4).collect();
    let value = Tensor(numbers);
    let options = options().with_compression(Compression::zstd());
    let (saved, most) = peak_of(|| tenarc::archive::save_with(&path, &value, options));
    saved.unwrap();
    let stored = usize::try_from(std::fs::metadata(&path).unwrap().len()).unwrap();
    assert!(stored < TOTAL / 10 * 9, "{stored}");
    println!("save: {} KiB beside the stored bytes", most.saturating_sub(stored) >> 10);
    assert!(most < stored + ALLOWED, "save: {most}");

    let archive = Archive::open(&path).unwrap();
    let (loaded, most) = peak_of(|| archive.load::<Tensor<Vec<f32>>>().unwrap());
    assert!(loaded == value);
    println!("load: {} KiB beside the value", (most - TOTAL) >> 10);
    assert!(most < TOTAL + ALLOWED, "load: {most}");
    drop(loaded);
    let (loaded, most) = peak_of(|| {
        let file = std::fs::File::open(&path).unwrap();
        IArchive::new(file).unwrap().load::<Tensor<Vec<f32>>>().unwrap()
    });
    assert!(loaded == value);
    // While an allocator that cannot grow in place moves the tensor, two copies of half of it are there.
    assert!(most < TOTAL / 2 * 3 + ALLOWED, "stream in: {most}");
    drop(loaded);
    let segment = archive.only().unwrap();
    let (verified, most) = peak_of(|| archive.verify());
    verified.unwrap();
    assert!(most < ALLOWED, "verify: {most}");
    let (read, most) = peak_of(|| segment.read_buffer(0, |_| Ok(())));
    read.unwrap();
    assert!(most < 4 * MIB, "read_buffer: {most}");
    let mut part = [0; 8];
    let (read, most) = peak_of(|| segment.read_buffer_part(0, 30 << 20, &mut part));
    read.unwrap();
    assert!(most < 4 * MIB, "read_buffer_part: {most}");
    let (copied, most) = peak_of(|| {
        let mut out = OArchive::create(&copy, SaveOptions::default().with_sync(SyncLevel::Off))?;
        out.save_segment(&segment)?;
        out.finish().map(drop)
    });
    copied.unwrap();
    assert!(most < MIB, "save_segment: {most}");
    std::fs::remove_file(&copy).unwrap();
    for dedup in [false, true] {
        let (copied, most) = peak_of(|| {
            let stored = segment.stored(0..segment.metadata()?.len())?;
            let options = SaveOptions::default().with_sync(SyncLevel::Off).with_dedup(dedup);
            tenarc::archive::save_with(&copy, &("again", stored), options)
        });
        copied.unwrap();
        assert!(most < MIB, "stored: {most}");
        let len = usize::try_from(std::fs::metadata(&copy).unwrap().len()).unwrap();
        assert!(len < stored + 1000, "{len}");
        std::fs::remove_file(&copy).unwrap();
    }
    std::fs::remove_file(&path).unwrap();
}

/// One file of many values: neither side remembers them.
#[test]
fn thousands_of_segments_take_bounded_memory() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let record = (1u32, Tensor(numbers(4000, 1)), "some text");
    let write = |count: usize| {
        let mut bytes = Vec::with_capacity(count * 5000);
        let ((), most) = peak_of(|| {
            let mut out = OArchive::with_options(&mut bytes, options()).unwrap();
            for n in 0..count {
                out.save_as(&n.to_string(), &record).unwrap();
            }
            out.finish().unwrap();
        });
        assert!(bytes.len() < count * 5000, "the vector did not grow");
        println!("writing {count} segments: {} KiB", most >> 10);
        assert!(most < MIB / 2, "{most} bytes to write {count} segments");
        bytes
    };
    let read = |count: usize| {
        let bytes = write(count);
        let (found, most) = peak_of(|| {
            let mut input = IArchive::new(&bytes[..]).unwrap();
            input.records::<(u32, Tensor<Vec<f32>>, String)>().map(Result::unwrap).count()
        });
        assert_eq!(found, count);
        println!("reading {count} segments: {} KiB", most >> 10);
        assert!(most < MIB / 2, "{most} bytes to read {count} segments");
        let (archive, most) = peak_of(|| Archive::new(&bytes[..]).unwrap());
        assert_eq!(archive.len(), count as u64);
        assert!(most < MIB / 8, "{most} bytes to open {count} segments");
    };
    read(100);
    read(3000);
}

/// A buffer that several fields share is held once more at most, and no longer than needed.
#[test]
fn a_stream_holds_shared_buffers_until_their_last_use() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    // Pairs: each is done with before the next begins.
    let layers: Vec<Tensor<Vec<f32>>> =
        (0..16u8).map(|at| Tensor(numbers(4 * MIB, at / 2))).collect();
    let value = Tensors { name: "tied".into(), layers };
    let mut out = OArchive::with_options(Vec::new(), options().with_dedup(true)).unwrap();
    out.save(&value).unwrap();
    let bytes = out.finish().unwrap();
    assert!(bytes.len() < 33 * MIB);
    let (loaded, most) = peak_of(|| IArchive::new(&bytes[..]).unwrap().load::<Tensors>().unwrap());
    assert!(loaded == value);
    let beside = most - 64 * MIB;
    println!("pairs of tied tensors: {} KiB beside the value", beside >> 10);
    // One such buffer is 4 MiB; it grows in steps, as a stream's lengths are claims.
    assert!(beside < 9 * MIB, "{beside} bytes beside the value");
}

/// Columns that are saved again as they are stored are copied block by block.
#[test]
fn stored_columns_are_never_in_memory_as_a_whole() {
    #[derive(Serialize)]
    struct Row {
        values: Vec<f32>,
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let path = file("columns");
    let rows: Vec<Row> = (0..32).map(|seed| Row { values: numbers(MIB, seed) }).collect();
    tenarc::archive::save_with(&path, &rows, options()).unwrap();
    drop(rows);
    let archive = Archive::open(&path).unwrap();
    let segment = archive.only().unwrap();
    let whole = 0..segment.metadata().unwrap().len();
    for dedup in [false, true] {
        let copy = file("copy");
        let (saved, most) = peak_of(|| {
            let stored = segment.stored(whole.clone())?;
            let options = options().with_dedup(dedup);
            tenarc::archive::save_with(&copy, &("again", stored), options)
        });
        saved.unwrap();
        assert!(most < ALLOWED, "{most} bytes, dedup: {dedup}");
        let copied = Archive::open(&copy).unwrap();
        let lengths = copied.only().unwrap().buffers().iter().map(|(_, len)| *len).sum::<u64>();
        assert_eq!(lengths, 32 * MIB as u64);
        std::fs::remove_file(&copy).unwrap();
    }
    std::fs::remove_file(&path).unwrap();
}
