//! Group I: archives cut short.

use serde::de::DeserializeOwned;
use tenarc::error::Category;
use tenarc::{Archive, IArchive};

use super::samples::{self, Model, ModelView, model};
use super::support::{At, Dir, values, verify, verify_torn};
use tenarc_test_support::OneByte;
use tenarc_test_support::effort::stride;

/// What becomes of an archive that is cut where a reader cannot expect it.
const CUT: [Category; 3] = [Category::Torn, Category::Eof, Category::Syntax];

struct Whole {
    /// Where each segment ends, before any block of the directory.
    ends: Vec<usize>,
    /// Where whole things end that belong to no segment: blocks and end marks with their tails.
    others: Vec<usize>,
    /// Cut here, the archive is whole.
    commits: Vec<usize>,
}

impl Whole {
    fn of(bytes: &[u8], others: &[usize], commits: &[usize]) -> Self {
        let archive = Archive::new(bytes).unwrap();
        let ends = archive.segments().map(|segment| {
            let segment = segment.unwrap();
            (segment.offset() + segment.byte_len()) as usize
        });
        Self { ends: ends.collect(), others: others.to_vec(), commits: commits.to_vec() }
    }

    /// How many segments are whole in so many bytes.
    fn count(&self, len: usize) -> usize {
        self.ends.iter().filter(|&&end| end <= len).count()
    }

    /// Where the last whole thing ends.
    fn end(&self, len: usize) -> usize {
        let ends = self.ends.iter().chain(&self.others).chain(&self.commits);
        ends.copied().filter(|&end| end <= len).max().unwrap_or(12)
    }
}

/// That behind the whole segments there is at most the one that the archive ends in.
fn check_cut<S: tenarc::io::ReadAt>(archive: &Archive<S>, whole: usize, len: usize) {
    let missing = archive.segments().map(|segment| segment.unwrap().missing_bytes());
    let missing: Vec<u64> = missing.collect();
    assert!((whole..=whole + 1).contains(&missing.len()), "{len}");
    assert!(missing[..whole].iter().all(|&missing| missing == 0), "{len}");
    assert!(missing[whole..].iter().all(|&missing| missing > 0), "{len}");
}

fn cut<T>(bytes: &[u8], truth: &[T], whole: &Whole, step: usize)
where
    T: DeserializeOwned + PartialEq + std::fmt::Debug,
{
    for len in (0..bytes.len()).step_by(step) {
        let short = &bytes[..len];
        let count = whole.count(len);
        if whole.commits.contains(&len) {
            verify(short).unwrap();
            assert_eq!(values::<T>(short).0, truth[..count]);
            continue;
        }
        match whole.commits.iter().rfind(|&&end| end <= len) {
            Some(&end) => {
                let archive = Archive::new(At(short)).unwrap();
                assert_eq!(archive.unfinished_bytes(), (len - end) as u64, "{len}");
                assert_eq!(archive.len(), whole.count(end) as u64, "{len}");
                archive.verify().unwrap();
            }
            None => {
                let error = Archive::new(At(short)).expect_err("opened");
                assert_eq!(error.category(), Category::Torn, "{len}: {error}");
                let end = if len < 12 { 0 } else { whole.end(len) as u64 };
                assert_eq!(error.offset(), Some(end), "{len}");
                assert!(Archive::new(short).is_err(), "{len}");
            }
        }

        for (found, error) in [values::<T>(short), values::<T>(OneByte(short))] {
            let error = error.expect("an error");
            assert_eq!(found, truth[..count], "{len}: {error}");
            assert!(CUT.contains(&error.category()), "{len}: {error}");
            assert!(error.offset().is_none_or(|at| at <= len as u64), "{len}: {error}");
        }

        let error = verify_torn(short).expect_err("verified");
        assert!(CUT.contains(&error.category()), "{len}: {error}");

        let Ok(archive) = Archive::new_torn(At(short)) else {
            assert!(len < 12, "{len} bytes are no torn archive");
            continue;
        };
        let torn = archive.torn().unwrap();
        assert_eq!(torn.category(), Category::Torn);
        assert_eq!(torn.offset(), Some(whole.end(len) as u64), "{len}: {torn}");
        check_cut(&archive, count, len);
        for (index, truth) in truth[..count].iter().enumerate() {
            assert_eq!(archive.segment(index as u64).unwrap().load::<T>().unwrap(), *truth);
        }
        let error = archive.load::<T>().unwrap_err();
        assert_eq!((error.category(), error.offset()), (Category::Torn, torn.offset()), "{error}");
    }
}

// 69
#[test]
fn a_value_cut_at_every_byte() {
    let bytes = samples::one();
    cut(&bytes, &[model(1)], &Whole::of(&bytes, &[], &[]), 1);
    for len in (0..bytes.len()).step_by(7) {
        assert!(Archive::new(&bytes[..len]).is_err(), "{len}");
        let torn = Archive::new_torn(&bytes[..len]);
        assert!(torn.is_err() || torn.unwrap().view::<ModelView>().is_err(), "{len}");
    }
    let bytes = samples::unchecked();
    cut(&bytes, &[model(1)], &Whole::of(&bytes, &[], &[]), 1);
}

// 69, 62
#[test]
fn several_values_cut_at_every_byte() {
    let bytes = samples::several();
    let truth: Vec<Model> = (0..3).map(model).collect();
    cut(&bytes, &truth, &Whole::of(&bytes, &[], &[]), 1);
    let bytes = samples::appended();
    let second = Archive::new(&bytes).unwrap().segment(1).unwrap().offset() as usize;
    cut(&bytes, &truth[..2], &Whole::of(&bytes, &[], &[second]), 1);
}

// 69
#[test]
fn an_archive_of_nothing_cut_at_every_byte() {
    let bytes = tenarc::OArchive::new(Vec::new()).unwrap().finish().unwrap();
    cut::<Model>(&bytes, &[], &Whole::of(&bytes, &[], &[]), 1);
}

// 69
#[test]
fn directories_cut_at_many_bytes() {
    let bytes = samples::many();
    let truth: Vec<Vec<f32>> = (0..66).map(|at| vec![at as f32; 8]).collect();
    let behind = Archive::new(&bytes).unwrap().segment(64).unwrap().offset() as usize;
    let whole = Whole::of(&bytes, &[behind], &[]);
    let block = whole.ends[63]..behind;
    cut(&bytes, &truth, &whole, 97 * stride(3));
    // And all around the block.
    for len in block.start - 2..=block.end + 2 {
        let short = &bytes[..len];
        let (found, error) = values::<Vec<f32>>(short);
        assert_eq!(found.len(), whole.count(len), "{len}: {error:?}");
        let archive = Archive::new_torn(At(short)).unwrap();
        check_cut(&archive, whole.count(len), len);
        assert_eq!(archive.torn().unwrap().offset(), Some(whole.end(len) as u64), "{len}");
    }
}

// 69
#[test]
fn cut_files_are_refused_by_name_and_mended() {
    let dir = Dir::new();
    let bytes = samples::several();
    let whole = Whole::of(&bytes, &[], &[]);
    for len in (0..bytes.len()).step_by(61) {
        let path = dir.file(&bytes[..len]);
        let error = tenarc::load::<Model>(&path).unwrap_err();
        assert_eq!(error.category(), Category::Torn, "{len}: {error}");
        assert!(error.to_string().contains("file.tenarc"), "{error}");
        assert!(tenarc::open(&path).is_err());
        let new = dir.0.join("new.tenarc");
        match tenarc::archive::Recovery::of(&path).to(&new) {
            Ok(recovered) => {
                assert_eq!(recovered.segments, whole.count(len) as u64);
                assert_eq!(recovered.dropped, (len - whole.end(len)) as u64);
                let archive = tenarc::open(&new).unwrap();
                archive.verify().unwrap();
                let salvaged = recovered.salvaged.is_some();
                assert_eq!(archive.len(), recovered.segments + u64::from(salvaged));
                let in_place = tenarc::archive::recover(&path);
                if recovered.segments == 0 && recovered.dropped > 0 {
                    assert_eq!(in_place.unwrap_err().category(), Category::Torn);
                    continue;
                }
                let mut expected = recovered;
                expected.salvaged = None;
                assert_eq!(in_place.unwrap(), expected);
                let mended = std::fs::read(&path).unwrap();
                assert_eq!(mended == std::fs::read(&new).unwrap(), !salvaged);
                assert_eq!(values::<Model>(&mended[..]).0.len(), whole.count(len));
            }
            Err(error) => assert!(len < 12, "{len}: {error}"),
        }
    }
}

// 69: what is torn says so again, and never goes on as if it were whole.
#[test]
fn a_torn_stream_stays_torn() {
    let bytes = samples::one();
    let mut input = IArchive::new(&bytes[..bytes.len() - 10]).unwrap();
    input.load::<Model>().unwrap();
    for _ in 0..3 {
        assert_eq!(input.load::<Model>().unwrap_err().category(), Category::Torn);
        assert!(input.is_at_end().is_err());
        assert!(input.skip().is_err());
    }
}
