//! I 69, 71: archives cut anywhere, with tails of zeros and garbage, and damaged in the middle.

use std::fs;
use std::path::Path;

use tenarc::archive::Recovered;
use tenarc::archive::Salvaged;
use tenarc::error::Category;
use tenarc::io::ReadAt;
use tenarc::{Archive, IArchive, OArchive};

use tenarc_test_support::builder::TAIL;

use crate::support::{
    Chance, Dir, Record, append, name, numbers, numbers_in, read, record, unsynced,
};

const NAME: &str = "a.tenarc";

/// An archive, and where its whole parts end: segments, blocks of the directory, end marks.
struct Sample {
    bytes: Vec<u8>,
    /// With the number of segments up to there.
    ends: Vec<(usize, u64)>,
    len: usize,
}

impl Sample {
    /// Sessions of so many records, each with an end mark.
    fn new(path: &Path, sessions: &[u32], len: usize) -> Self {
        let mut out = OArchive::create(path, unsynced()).unwrap();
        let mut ends = vec![(out.position() as usize, 0)];
        let mut number = 0;
        for session in sessions {
            for _ in 0..*session {
                out.save_as(&name(number), &record(number, len)).unwrap();
                number += 1;
                ends.push((out.position() as usize, number.into()));
            }
            out.commit().unwrap();
            ends.push((out.position() as usize, number.into()));
        }
        drop(out);
        let bytes = fs::read(path).unwrap();
        let archive = Archive::new(&bytes[..]).unwrap();
        // A segment before a block ends where its own bytes end.
        for (index, segment) in archive.segments().enumerate() {
            let segment = segment.unwrap();
            let end = (segment.offset() + segment.byte_len()) as usize;
            if !ends.contains(&(end, index as u64 + 1)) {
                ends.push((end, index as u64 + 1));
            }
        }
        ends.sort_unstable();
        Self { bytes, ends, len }
    }

    /// The last whole part before `cut`.
    fn last_end(&self, cut: usize) -> (usize, u64) {
        *self.ends.iter().rfind(|(end, _)| *end <= cut).unwrap()
    }

    /// The state of the last end mark that ends at `cut` or before: where it ends, and its number of segments.
    fn committed(&self, cut: usize) -> Option<(usize, u64)> {
        let marks = self.ends.iter().filter(|(end, _)| {
            self.bytes[..*end].last_chunk::<TAIL>().is_some_and(|tail| tail[2..10] == *b"TARCTAIL")
        });
        marks.copied().rfind(|(end, _)| *end <= cut)
    }

    fn expected(segments: u64) -> Vec<u32> {
        (0..segments as u32).collect()
    }

    /// That readers of a torn archive, of which `cut` bytes are good, give the state of the last end mark, and
    /// on request what is whole.
    fn check(&self, torn: &[u8], cut: usize) {
        match self.committed(cut) {
            Some((committed, segments)) => {
                let archive = Archive::new(torn).unwrap();
                assert_eq!(archive.byte_len(), committed as u64, "{cut}");
                assert_eq!(archive.unfinished_bytes(), (torn.len() - committed) as u64, "{cut}");
                assert!(archive.torn().is_none());
                assert_eq!(numbers_in(&archive).unwrap(), Self::expected(segments), "{cut}");
                archive.verify().unwrap();
            }
            None => self.refused(torn, cut),
        }
        self.check_torn(torn, cut);
    }

    fn refused(&self, torn: &[u8], cut: usize) {
        let error = Archive::new(torn).unwrap_err();
        assert_eq!(error.category(), Category::Torn, "{cut}: {error}");
        assert_eq!(error.offset(), Some(self.last_end(cut).0 as u64), "{cut}: {error}");
    }

    fn check_torn(&self, torn: &[u8], cut: usize) {
        let (end, segments) = self.last_end(cut);
        let archive = Archive::new_torn(torn).unwrap();
        assert_eq!(archive.torn().unwrap().offset(), Some(end as u64), "{cut}");
        assert_eq!(whole_numbers_in(&archive), Self::expected(segments), "{cut}");
        let error = archive.verify().unwrap_err();
        assert!([Category::Torn, Category::Damaged].contains(&error.category()), "{cut}: {error}");

        let mut stream = IArchive::new(torn).unwrap();
        for number in 0..segments as u32 {
            let found: Record = stream.load().unwrap_or_else(|error| panic!("{cut}: {error}"));
            assert_eq!(found, record(number, self.len));
        }
        // Only garbage can claim to be longer than is allowed.
        let error = stream.load::<Record>().unwrap_err();
        let category = error.category();
        assert!(matches!(category, Category::Torn | Category::Damaged), "{cut}: {error}");
        let mut stream = IArchive::new(torn).unwrap();
        let records: Vec<_> = stream.records::<Record>().collect();
        assert_eq!(records.len() as u64, segments + 1, "{cut}");
        assert!(records.last().unwrap().is_err(), "{cut}");
    }

    /// That a torn file is made whole, and can be appended to.
    fn mend(&self, path: &Path, torn: &[u8], cut: usize) {
        self.go_on(path, torn, cut);
        self.recover(path, torn, cut);
    }

    fn recover(&self, path: &Path, torn: &[u8], cut: usize) {
        let (end, segments) = self.last_end(cut);
        fs::write(path, torn).unwrap();
        let dropped = (torn.len() - end) as u64;
        let expected = recovered(segments, dropped);

        let new = path.with_extension("new");
        let mut found = tenarc::archive::Recovery::of(path).to(&new).unwrap();
        assert!(fs::read(path).unwrap() == torn, "{cut}: the old file changed");
        let salvaged = found.salvaged.take();
        assert_eq!(found, expected);
        assert_eq!(tenarc::archive::recover(path).unwrap(), expected);
        let mended = fs::read(path).unwrap();
        match salvaged {
            None => assert!(fs::read(&new).unwrap() == mended, "{cut}: two ways, two results"),
            Some(salvaged) => self.check_salvaged(&new, segments, &salvaged),
        }
        assert!(mended.starts_with(&self.bytes[..end]));
        assert_eq!(numbers(&mended).unwrap(), Self::expected(segments));

        let whole = recovered(segments, 0);
        assert_eq!(tenarc::archive::recover(path).unwrap(), whole);
        assert!(fs::read(path).unwrap() == mended, "{cut}: a whole archive changed");
        append(path, [segments as u32], self.len);
        assert_eq!(numbers(&fs::read(path).unwrap()).unwrap(), Self::expected(segments + 1));
    }

    /// That what is left of a cut record follows the whole ones.
    fn check_salvaged(&self, path: &Path, segments: u64, salvaged: &Salvaged) {
        let archive = tenarc::open(path).unwrap();
        archive.verify().unwrap();
        assert_eq!(archive.len(), segments + 1);
        let last = archive.segment(segments).unwrap();
        let expected = record(segments as u32, self.len);
        assert_eq!(last.get::<u32>("number").unwrap(), expected.number);
        assert_eq!(last.name(), salvaged.name.as_deref());
        assert_eq!(last.tensors().unwrap(), salvaged.tensors);
        assert_eq!(salvaged.tensors[0].path(), "data");
        assert_eq!(last.tensor::<ndarray::Array1<u32>>("data").unwrap(), expected.data.0);
        for missing in &salvaged.missing {
            assert!(last.info(missing.path()).is_err());
        }
    }

    /// That an append cuts off what no end mark vouches for, and nothing else.
    fn go_on(&self, path: &Path, torn: &[u8], cut: usize) {
        fs::write(path, torn).unwrap();
        match self.committed(cut) {
            Some((committed, segments)) => {
                append(path, [segments as u32], self.len);
                let now = fs::read(path).unwrap();
                assert!(now.starts_with(&self.bytes[..committed]), "{cut}");
                assert_eq!(numbers(&now).unwrap(), Self::expected(segments + 1), "{cut}");
            }
            None => {
                assert_eq!(OArchive::append(path).unwrap_err().category(), Category::Torn);
                assert!(fs::read(path).unwrap() == torn, "{cut}: a torn file changed");
            }
        }
    }
}

/// The numbers of the records that are whole. One that the archive ends in may be the last.
pub fn whole_numbers_in<S: ReadAt>(archive: &Archive<S>) -> Vec<u32> {
    let mut found: Vec<_> = archive.segments().map(Result::unwrap).collect();
    if let Some(last) = found.pop_if(|last| last.missing_bytes() > 0) {
        assert!(last.get::<u32>("number").is_ok());
        assert_eq!(last.load::<Record>().unwrap_err().category(), Category::Torn);
    }
    found.iter().map(|segment| segment.load::<Record>().unwrap().number).collect()
}

/// Whether a cut is one to try: all that are `near` the ends of parts, others by steps.
fn chosen(sample: &Sample, cut: usize, step: usize, near: usize) -> bool {
    let nearest = sample.ends.iter().map(|(end, _)| cut.abs_diff(*end)).min();
    cut.is_multiple_of(step) || nearest.is_some_and(|distance| distance <= near)
}

fn cuts(sample: &Sample, path: &Path, from: usize, read_step: usize, mend_step: usize) {
    for cut in from..sample.bytes.len() {
        let torn = &sample.bytes[..cut];
        // Behind an end mark nothing is torn.
        if sample.committed(cut).is_some_and(|(end, _)| end == cut) {
            let archive = Archive::new(torn).unwrap();
            assert_eq!(archive.unfinished_bytes(), 0, "{cut}");
            assert!(archive.verify().is_ok());
            continue;
        }
        if chosen(sample, cut, read_step, 3) {
            sample.check(torn, cut);
        }
        if chosen(sample, cut, mend_step, 0) {
            sample.mend(path, torn, cut);
        }
    }
}

fn cut_in_the_last_segments(read_step: usize, mend_step: usize) {
    let dir = Dir::new();
    let path = dir.at(NAME);
    let sample = Sample::new(&path, &[2, 1, 0, 2], 530);
    let from = sample.ends[4].0;
    cuts(&sample, &path, from, read_step, mend_step);
}

#[test]
fn cuts_in_the_last_segments() {
    cut_in_the_last_segments(73, 1999);
}

#[test]
#[ignore = "slow: every byte"]
fn cuts_at_every_byte_of_the_last_segments() {
    cut_in_the_last_segments(1, 1);
}

fn cut_around_full_blocks(read_step: usize, mend_step: usize) {
    let dir = Dir::new();
    let path = dir.at(NAME);
    // The last session ends with a block of the directory, and its end mark is nearly empty.
    for sessions in [&[62, 2][..], &[60, 5], &[127, 2]] {
        let sample = Sample::new(&path, sessions, 3);
        let before = sample.ends.len() - 5;
        cuts(&sample, &path, sample.ends[before].0, read_step, mend_step);
    }
}

#[test]
fn cuts_around_full_blocks_of_the_directory() {
    cut_around_full_blocks(199, 2999);
}

#[test]
#[ignore = "slow: every byte"]
fn cuts_at_every_byte_around_full_blocks_of_the_directory() {
    cut_around_full_blocks(1, 1);
}

/// Blocks that were allocated and not written, older contents, the start of another thing.
fn tails() -> Vec<Vec<u8>> {
    let mut chance = Chance::new(5);
    let mut tails = vec![vec![0; 1], vec![0; TAIL], vec![0; 512], vec![0; 9000]];
    tails.push(vec![0xff; 100]);
    tails.push((0..5000).map(|_| chance.next() as u8).collect());
    tails.push(b"\xd8\x18\x58".to_vec());
    // An embedded item that claims more than any memory has.
    tails.push(b"\xd8\x18\x5b\x7f\xff\xff\xff\xff\xff\xff\xff".repeat(3));
    tails.push(b"\xd9\xd9\xf8\xda\x54\x41\x52\x43\x43BOR".to_vec());
    tails
}

#[test]
fn tails_of_zeros_and_garbage() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    let sample = Sample::new(&path, &[2, 2], 530);
    for (end, _) in &sample.ends[1..] {
        for tail in tails() {
            let torn = [&sample.bytes[..*end], &tail].concat();
            sample.mend(&path, &torn, *end);
            if !tail.starts_with(b"\xd8\x18\x5b") {
                sample.check(&torn, *end);
            }
        }
        // The start of the next part, and then what was never written.
        for part in [20, 300, 3000] {
            let cut = (end + part).min(sample.bytes.len() - 1);
            if sample.last_end(cut).0 == *end {
                let torn = [&sample.bytes[..cut], &[0xee; 8192]].concat();
                // In a tail, this is damage: nothing but its own bytes or zeros can be there.
                if sample.ends.iter().any(|(end, _)| cut + TAIL > *end && cut < *end) {
                    let error = Archive::new(&torn[..]).unwrap_err();
                    if error.category() == Category::Damaged {
                        continue;
                    }
                }
                sample.mend(&path, &torn, *end);
            }
        }
    }
}

#[test]
fn the_archive_itself_once_more_behind_it_is_garbage() {
    // Headers and tails are bound to the place where they stand.
    let dir = Dir::new();
    let path = dir.at(NAME);
    let sample = Sample::new(&path, &[2], 530);
    let end = sample.bytes.len();
    for tail in [&sample.bytes[..], &sample.bytes[12..]] {
        let torn = [&sample.bytes[..], tail].concat();
        sample.check(&torn, end);
        sample.mend(&path, &torn, end);
    }
}

#[test]
fn damage_with_whole_segments_behind_it_is_not_cut_off() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    let sample = Sample::new(&path, &[3, 2, 2], 530);
    let offset = |index| Archive::new(&sample.bytes[..]).unwrap().segment(index).unwrap().offset();
    let mut flaws = vec![];
    for index in 0..6 {
        flaws.push(offset(index) as usize + 40);
    }
    for flaw in flaws {
        let mut bytes = sample.bytes.clone();
        bytes[flaw] ^= 1;
        // With its end mark it is not torn, and left as it is.
        fs::write(&path, &bytes).unwrap();
        assert!(tenarc::open(&path).unwrap().verify().is_err());
        assert_eq!(tenarc::archive::recover(&path).unwrap(), recovered(7, 0));
        assert_eq!(fs::read(&path).unwrap(), bytes);
        // Torn as well, with an end mark between: nothing is cut off.
        let last_mark = sample.ends[sample.ends.len() - 2].0;
        let between = flaw < sample.ends[sample.ends.len() - 4].0;
        for tail in [1, bytes.len() - last_mark] {
            let torn = &bytes[..bytes.len() - tail];
            fs::write(&path, torn).unwrap();
            if between {
                let error = tenarc::archive::recover(&path).unwrap_err();
                assert_eq!(error.category(), Category::Damaged, "{error}");
                assert!(error.to_string().contains(NAME), "{error}");
                assert_eq!(fs::read(&path).unwrap(), torn);
                assert!(tenarc::archive::Recovery::of(&path).to(dir.at("new")).is_err());
                assert!(!dir.at("new").exists());
                // Nor is an earlier state taken for the last one.
                for error in
                    [tenarc::open(&path).unwrap_err(), OArchive::append(&path).unwrap_err()]
                {
                    let category = error.category();
                    assert!(matches!(category, Category::Torn | Category::Damaged), "{error}");
                }
                assert_eq!(fs::read(&path).unwrap(), torn);
            }
        }
    }
}

#[test]
fn an_end_mark_whose_start_is_lost_is_written_again() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    for sessions in [&[2, 30][..], &[40, 24]] {
        let sample = Sample::new(&path, sessions, 3);
        let mark = sample.ends[sample.ends.len() - 2].0;
        for lost in [1, 10, sample.bytes.len() - TAIL - mark] {
            let mut torn = sample.bytes.clone();
            torn[mark..mark + lost].fill(0);
            // Its tail says that there was one: an earlier state is not taken for the last.
            let error = Archive::new(&torn[..]).unwrap_err();
            assert_eq!(error.category(), Category::Damaged, "{error}");
            assert_eq!(error.offset(), Some(mark as u64));
            fs::write(&path, &torn).unwrap();
            assert_eq!(OArchive::append(&path).unwrap_err().category(), Category::Damaged);
            assert!(fs::read(&path).unwrap() == torn);
            sample.check_torn(&torn, mark);
            sample.recover(&path, &torn, mark);
        }
    }
}

#[test]
fn what_recover_refuses() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    for bytes in [&b"something else"[..], b"{}", &tenarc::to_vec(&record(1, 600)).unwrap()] {
        fs::write(&path, bytes).unwrap();
        assert_eq!(tenarc::archive::recover(&path).unwrap_err().category(), Category::Syntax);
        assert_eq!(
            tenarc::archive::Recovery::of(&path).to(dir.at("new")).unwrap_err().category(),
            Category::Syntax
        );
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
    // Not even the start of an archive is there: nothing of it can be kept.
    for len in 0..12 {
        fs::write(&path, &b"\xd9\xd9\xf8\xda\x54\x41\x52\x43\x43BOR"[..len]).unwrap();
        assert_eq!(tenarc::archive::open_torn(&path).unwrap_err().category(), Category::Torn);
        assert_eq!(tenarc::archive::recover(&path).unwrap_err().category(), Category::Torn);
        assert_eq!(fs::metadata(&path).unwrap().len(), len as u64);
    }
    dir.holds_only(NAME);
    fs::write(&path, b"\xd9\xd9\xf8\xda\x54\x41\x52\x43\x43BOR").unwrap();
    assert_eq!(tenarc::archive::recover(&path).unwrap(), Recovered::default());
    assert_eq!(read(&path), []);
    assert!(tenarc::archive::recover(dir.path()).is_err());
    assert!(tenarc::archive::recover(dir.at("missing")).is_err());
    // Nothing would be left, in place or onto itself.
    let cut = fs::read(&path).unwrap()[..20].to_vec();
    fs::write(&path, &cut).unwrap();
    assert_eq!(tenarc::archive::recover(&path).unwrap_err().category(), Category::Torn);
    assert_eq!(
        tenarc::archive::Recovery::of(&path).to(&path).unwrap_err().category(),
        Category::Torn
    );
    assert_eq!(fs::read(&path).unwrap(), cut);
    assert_eq!(tenarc::archive::Recovery::of(&path).to(dir.at("new")).unwrap().segments, 0);
    assert_eq!(read(&dir.at("new")), []);
}

/// A byte that changed on disk is no reason to drop what stands whole behind it.
#[test]
fn damage_before_a_whole_value_takes_nothing_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let mut out = OArchive::new(Vec::new()).unwrap();
    for n in 0..5u16 {
        out.save(&tenarc::Tensor(vec![n; 4000])).unwrap();
    }
    let whole = out.finish().unwrap();
    let places: Vec<usize> = (0..5u16)
        .map(|n| {
            let tensor: Vec<u8> = n.to_le_bytes().repeat(4000);
            whole.windows(8000).position(|window| window == tensor).unwrap()
        })
        .collect();
    // In the third value, and torn in the fifth.
    let mut torn = whole[..places[4] + 100].to_vec();
    torn[places[2] + 77] ^= 4;
    std::fs::write(&path, &torn).unwrap();
    let found = tenarc::archive::recover(&path).unwrap();
    assert_eq!((found.segments, found.damaged), (4, 1));
    let archive = tenarc::open(&path).unwrap();
    for n in [0, 1, 3u16] {
        let loaded: tenarc::Tensor<Vec<u16>> = archive.segment(n.into()).unwrap().load().unwrap();
        assert_eq!(loaded.0, vec![n; 4000]);
    }
    let error = archive.segment(2).unwrap().load::<tenarc::Tensor<Vec<u16>>>().unwrap_err();
    assert_eq!(error.category(), tenarc::error::Category::Damaged);
    // What is damaged with nothing whole behind it is cut off.
    torn[places[3] + 77] ^= 4;
    std::fs::write(&path, &torn).unwrap();
    let found = tenarc::archive::recover(&path).unwrap();
    assert_eq!((found.segments, found.damaged), (2, 0));
}

/// What became of an archive that is whole up to its last so many bytes.
fn recovered(segments: u64, dropped: u64) -> Recovered {
    let mut recovered = Recovered::default();
    recovered.segments = segments;
    recovered.dropped = dropped;
    recovered
}
