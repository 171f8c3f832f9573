//! Compares a table with the record batches that were read back from its file.

use arrow_array::{Array as _, RecordBatch};
use tenarc::io::ReadAt;
use tenarc::{Error, Result};

use tenarc_arrow::ArrowTable;

/// Checks that batches which were read back hold the rows of a table: the names and types of all columns, all values
/// and all nulls. The batches may have other lengths than those of the table. One batch of each is in memory.
///
/// # Errors
/// If they differ, or if one of them cannot be read.
pub fn compare<S: ReadAt + ?Sized>(
    records: &ArrowTable<'_, S>,
    mut found: impl Iterator<Item = Result<RecordBatch>>,
) -> Result<()> {
    // The rows that were read back and not compared yet.
    let mut rest: Option<RecordBatch> = None;
    let mut row = 0;
    let mut written = records.reader();
    while let Some(batch) = written.next_batch()? {
        let mut at = 0;
        while at < batch.num_rows() {
            let read = rest.take().map(Ok).or_else(|| found.next()).transpose()?;
            let read = read.ok_or_else(|| {
                let rows = records.rows();
                Error::damaged(format!("wrote {rows} rows, read back {row}"))
            })?;
            let len = read.num_rows().min(batch.num_rows() - at);
            same(&batch.slice(at, len), &read.slice(0, len), row)?;
            rest = Some(read.slice(len, read.num_rows() - len)).filter(is_not_empty);
            at += len;
            row += len as u64;
        }
    }
    for batch in rest.map(Ok).into_iter().chain(found) {
        if is_not_empty(&batch?) {
            let what = format!("wrote {row} rows, read back more");
            return Err(Error::damaged(what));
        }
    }
    Ok(())
}

fn is_not_empty(batch: &RecordBatch) -> bool {
    batch.num_rows() > 0
}

/// Compares two batches of equal length, whose first row has the number `row` in the table.
fn same(written: &RecordBatch, read: &RecordBatch, row: u64) -> Result<()> {
    let (fields, expected) = (read.schema_ref().fields(), written.schema_ref().fields());
    if !fields.iter().map(|field| field.name()).eq(expected.iter().map(|field| field.name())) {
        return Err(Error::damaged("the columns that were read back differ from those written"));
    }
    let columns = written.columns().iter().zip(read.columns());
    for (field, (written, read)) in fields.iter().zip(columns) {
        if written.to_data() != read.to_data() {
            let end = row + written.len() as u64;
            let what = format!(
                "the values that were read back differ from those written, in rows {row}..{end}"
            );
            return Err(Error::damaged(what).in_field(field.name().as_str()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Float64Array, Int64Array};
    use serde::Serialize;
    use tenarc::{Archive, OArchive};

    use super::*;

    #[derive(Serialize)]
    struct Row {
        id: i64,
        note: Option<f64>,
    }

    fn note(id: i64) -> Option<f64> {
        match id % 3 {
            0 => None,
            1 => Some(f64::NAN),
            _ => Some(0.5),
        }
    }

    /// Two values of 100 rows each, under one name.
    fn table() -> Archive<Vec<u8>> {
        let mut out = OArchive::new(Vec::new()).unwrap();
        for ids in [0..100, 100..200] {
            let rows: Vec<_> = ids.map(|id| Row { id, note: note(id) }).collect();
            out.save_as("t", &rows).unwrap();
        }
        Archive::new(out.finish().unwrap()).unwrap()
    }

    fn batch(ids: &[i64], notes: &[Option<f64>]) -> RecordBatch {
        let ids: ArrayRef = Arc::new(Int64Array::from(ids.to_vec()));
        let notes: ArrayRef = Arc::new(Float64Array::from(notes.to_vec()));
        RecordBatch::try_from_iter([("id", ids), ("note", notes)]).unwrap()
    }

    /// Compares the table with batches of these lengths, whose columns `change` may change.
    fn compared(
        lens: &[usize],
        change: impl FnOnce(&mut Vec<i64>, &mut Vec<Option<f64>>),
    ) -> String {
        let archive = table();
        let records = ArrowTable::open(&archive, "t").unwrap();
        let mut ids: Vec<i64> = (0..200).collect();
        let mut notes: Vec<_> = ids.iter().copied().map(note).collect();
        change(&mut ids, &mut notes);
        let mut batches = Vec::new();
        for &len in lens {
            batches.push(Ok(batch(&ids[..len], &notes[..len])));
            (ids, notes) = (ids.split_off(len), notes.split_off(len));
        }
        compare(&records, batches.into_iter()).err().map_or_else(String::new, |e| e.to_string())
    }

    #[test]
    fn batches_of_any_length_are_compared() {
        for lens in [&[200][..], &[100, 100], &[30, 0, 120, 50, 0], &[1; 200]] {
            assert_eq!(compared(lens, |_, _| {}), "", "{lens:?}");
        }
    }

    #[test]
    fn every_change_is_found() {
        for lens in [&[200][..], &[100, 100], &[30, 0, 120, 50]] {
            for row in [0, 29, 30, 99, 100, 150, 199] {
                let error = compared(lens, |ids, _| ids[row] += 1);
                assert!(error.contains("id") && error.contains("differ"), "{error}");
                let other = |note: Option<f64>| if note.is_none() { Some(0.0) } else { None };
                let error = compared(lens, |_, notes| notes[row] = other(notes[row]));
                assert!(error.contains("note") && error.contains("differ"), "{error}");
            }
        }
        let error = compared(&[100, 99], |_, _| {});
        assert!(error.contains("wrote 200 rows, read back 199"), "{error}");
        let more = |ids: &mut Vec<i64>, notes: &mut Vec<Option<f64>>| {
            ids.push(0);
            notes.push(None);
        };
        for lens in [&[201][..], &[200, 1], &[100, 101]] {
            let error = compared(lens, more);
            assert!(error.contains("read back more"), "{error}");
        }
    }

    #[test]
    fn other_columns_are_found() {
        let archive = table();
        let records = ArrowTable::open(&archive, "t").unwrap();
        let ids: Vec<i64> = (0..200).collect();
        let notes: Vec<_> = ids.iter().copied().map(note).collect();
        let all = batch(&ids, &notes);
        for columns in [&[0][..], &[1, 0]] {
            let error = compare(&records, std::iter::once(Ok(all.project(columns).unwrap())));
            assert!(error.unwrap_err().to_string().contains("columns"));
        }
        let ids: ArrayRef = Arc::new(arrow_array::Int32Array::from_iter_values(0..200));
        let narrow = [("id", ids), ("note", all.column(1).clone())];
        let narrow = RecordBatch::try_from_iter(narrow).unwrap();
        let error = compare(&records, std::iter::once(Ok(narrow))).unwrap_err();
        assert!(error.to_string().contains("id"), "{error}");
    }
}
