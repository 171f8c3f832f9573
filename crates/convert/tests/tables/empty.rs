//! Tables without rows, and files of which no column can be kept.

use std::path::{Path, PathBuf};

use tenarc::{Result, Value};
use tenarc_convert::{Format, Losses, Options, parquet};

fn converted(name: &str, to: &Path, options: &Options) -> Result<Losses> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    if name.ends_with(".parquet") {
        return parquet::to_archive(fixtures.join("parquet").join(name), to, options);
    }
    Format::Arrow.to_archive(fixtures.join("arrow").join(name), to, options)
}

fn target(dir: &tempfile::TempDir) -> PathBuf {
    dir.path().join("a.tenarc")
}

#[test]
fn a_table_without_rows_loses_its_columns() {
    let dir = tempfile::tempdir().unwrap();
    let to = target(&dir);
    for name in
        ["no_rows.parquet", "no_groups.parquet", "table_no_rows.arrow", "table_no_batches.arrow"]
    {
        let error = converted(name, &to, &Options::default()).unwrap_err();
        let losses = Losses::of(&error).unwrap();
        assert!(losses.to_string().contains("there are no rows"), "{name}: {losses}");
        assert!(!to.exists(), "{name}");

        let losses = converted(name, &to, &Options::default().with_losses(true)).unwrap();
        assert_eq!(losses.count(), 1, "{name}");
        let archive = tenarc::open(&to).unwrap();
        let segment = archive.segment(0).unwrap();
        assert_eq!(archive.len(), 1, "{name}");
        let table = archive.table(segment.name().unwrap()).unwrap();
        assert!(table.rows::<Value>(..).unwrap().is_empty(), "{name}");
        std::fs::remove_file(&to).unwrap();
    }
}

#[test]
fn no_column_left_is_an_error_even_if_losses_are_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let to = target(&dir);
    for name in ["nothing_kept.parquet", "nothing_kept.arrow"] {
        for accepted in [false, true] {
            let error = converted(name, &to, &Options::default().with_losses(accepted));
            let error = error.unwrap_err().to_string();
            assert!(error.contains("`view`") && !to.exists(), "{name}: {error}");
        }
    }
    let no_columns = converted("no_columns.arrow", &to, &Options::default().with_table("t"));
    let error = no_columns.unwrap_err().to_string();
    assert!(error.contains("no column is left: the file has none"), "{error}");
}

#[test]
fn rows_without_columns_are_a_loss() {
    let dir = tempfile::tempdir().unwrap();
    let to = target(&dir);
    let error = converted("rows_without_columns.arrow", &to, &Options::default()).unwrap_err();
    let losses = Losses::of(&error).unwrap().to_string();
    assert!(losses.contains("3 rows without columns: their number is left out"), "{losses}");
    let accepted = Options::default().with_losses(true);
    let losses = converted("rows_without_columns.arrow", &to, &accepted).unwrap();
    assert_eq!(losses.count(), 1);
    assert!(losses.notes().iter().any(|note| note.contains("no tensors")), "{losses}");
    // Without rows, nothing is lost.
    let losses = converted("no_columns.arrow", &to, &Options::default()).unwrap();
    assert!(losses.is_empty() && losses.notes().len() == 1, "{losses}");
}
