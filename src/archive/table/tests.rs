//! No function of a table takes more than twice the steps for twice the groups, or twice the values. Steps are bytes of
//! metadata that are passed over, and reads of the archive.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Deserialize;

use super::Table;
use crate::archive::{SaveOptions, col};
use crate::error::Result;
use crate::io::at::ReadAt;
use crate::io::input::PASSED;
use crate::value::RawValue;
use crate::{Archive, OArchive, Tensor};

#[derive(Deserialize)]
struct TableRow {
    a: u8,
}

/// How the rows are stored.
#[derive(Clone, Copy, Debug)]
enum RowForm {
    /// One value, with a group for each row.
    Groups,
    /// The same, as an array of unknown length.
    UnknownGroups,
    /// A value with one group for each row.
    Values,
    /// One value that is not stored as columns.
    Items,
    /// A value for each row that is not stored as columns.
    ValuesOfItems,
}

const FORMS: [RowForm; 5] = [
    RowForm::Groups,
    RowForm::UnknownGroups,
    RowForm::Values,
    RowForm::Items,
    RowForm::ValuesOfItems,
];

fn saved(form: RowForm, rows: u16) -> Vec<u8> {
    let mut out = OArchive::with_options(Vec::new(), SaveOptions::default()).unwrap();
    let mut save = |item: &[u8]| {
        out.save_as("t", RawValue::from_bytes(item).unwrap()).unwrap();
    };
    let number = |row: u16| row.to_le_bytes()[0];
    // One row: {"a": a typed array of one u8}.
    let group = |row| [0x01, 0xa1, 0x61, b'a', 0xd8, 0x40, 0x41, number(row)];
    let item = |row| [0xa1, 0x61, b'a', 0x18, number(row) | 0x80];
    let tag = [0xda, 0x54, 0x43, 0x4f, 0x4c];
    let groups = (0..rows).flat_map(group);
    let array = |len: u16| [&[0x99][..], &len.to_be_bytes()].concat();
    match form {
        RowForm::Groups => {
            save(&[&tag[..], &array(2 * rows), &groups.collect::<Vec<_>>()].concat());
        }
        RowForm::UnknownGroups => {
            let groups: Vec<_> = groups.collect();
            save(&[&tag[..], &[0x9f], &groups, &[0xff]].concat());
        }
        RowForm::Values => {
            (0..rows).for_each(|row| save(&[&tag[..], &[0x82], &group(row)].concat()));
        }
        RowForm::Items => {
            save(&[array(rows), (0..rows).flat_map(item).collect::<Vec<_>>()].concat());
        }
        RowForm::ValuesOfItems => {
            (0..rows).for_each(|row| save(&[&[0x81][..], &item(row)].concat()));
        }
    }
    out.finish().unwrap()
}

/// Counts the reads. Is not in memory, so that all that is needed must be read.
struct Counted<'a>(&'a [u8], &'a AtomicUsize);

impl ReadAt for Counted<'_> {
    fn size(&self) -> std::io::Result<u64> {
        self.0.size()
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> std::io::Result<usize> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.read_at(out, offset)
    }
}

/// The steps of each function for a table of so many rows, by name.
fn steps(form: RowForm, rows: u16) -> Vec<(&'static str, usize)> {
    let bytes = saved(form, rows);
    let reads = AtomicUsize::new(0);
    let archive = Archive::new(Counted(&bytes, &reads)).unwrap();
    let in_memory = Archive::new(&bytes[..]).unwrap();
    let all = usize::from(rows);
    let mut found = Vec::new();
    let mut count = |name, call: &mut dyn FnMut()| {
        let so_far = || PASSED.get() + reads.load(Ordering::Relaxed);
        let before = so_far();
        call();
        found.push((name, so_far() - before));
    };
    let mut table = Table::default();
    let segments: Vec<_> = archive.segments().collect::<Result<_>>().unwrap();
    count("add", &mut || {
        for segment in &segments {
            let whole = 0..segment.metadata().unwrap().len();
            table.add(segment.clone(), whole).unwrap();
        }
    });
    let viewed = in_memory.table("t").unwrap();
    let each = || (0..u64::from(rows)).rev();
    count("len", &mut || assert_eq!((table.len(), table.is_empty()), (rows.into(), false)));
    count("iter", &mut || assert_eq!(table.iter::<TableRow>().map(Result::unwrap).count(), all));
    count("rows", &mut || assert_eq!(table.rows::<TableRow>(..).unwrap().len(), all));
    count("each row", &mut || each().for_each(|row| assert!(table.row::<TableRow>(row).is_ok())));
    count("each range", &mut || {
        each().for_each(|row| drop(table.rows::<TableRow>(row..=row).unwrap()));
    });
    count("take", &mut || {
        let rows: Vec<_> = each().collect();
        let taken = table.take::<TableRow>(&rows).unwrap();
        let expected = |row: u64| u8::try_from(row % 256).unwrap();
        let masked = |row: u8| row & 0x7f;
        assert!(taken.iter().zip(rows).all(|(row, at)| masked(row.a) == masked(expected(at))));
    });
    count("column", &mut || assert_eq!(table.column::<Vec<u8>>("a").unwrap().len(), all));
    count("filter", &mut || {
        let found = table.filter(col("a").gt_eq(0));
        assert_eq!(found.column::<Vec<u8>>("a").unwrap().len(), all);
        assert_eq!(found.rows::<TableRow>().unwrap().len(), all);
    });
    count("columns", &mut || assert!(table.columns().unwrap().len() <= 1));
    if matches!(form, RowForm::Groups | RowForm::UnknownGroups | RowForm::Values) {
        count("tensor", &mut || {
            assert_eq!(table.column::<Tensor<Vec<u8>>>("a").unwrap().len(), all);
        });
        count("views", &mut || {
            let views = viewed.views::<Vec<u8>>("a").unwrap();
            assert_eq!(views.map(|view| view.unwrap().len()).sum::<usize>(), all);
        });
        count("view_column", &mut || drop(viewed.view_column::<Vec<u8>>("a")));
    }
    found
}

#[test]
fn twice_the_groups_or_values_take_twice_the_steps() {
    let few = if cfg!(miri) { 20 } else { 300 };
    for form in FORMS {
        for ((name, once), (_, twice)) in steps(form, few).into_iter().zip(steps(form, 2 * few)) {
            let most = 5 * once / 2 + 100;
            assert!(twice <= most, "{form:?}: {name} takes {once} steps, then {twice}");
        }
    }
}
