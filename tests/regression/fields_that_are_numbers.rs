//! No path led to a column whose name is a decimal number: in a dotted path it is a row.

use std::collections::BTreeMap;

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use tenarc::{Archive, DynTensor, OArchive};

struct Years(f64, f64);

impl Serialize for Years {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Years", 3)?;
        fields.serialize_field("2024", &self.0)?;
        fields.serialize_field("1", &self.1)?;
        fields.serialize_field("3.x", &self.1)?;
        fields.end()
    }
}

#[test]
fn json_pointers_lead_to_them() {
    let rows: Vec<Years> = (0..20).map(|row| Years(row.into(), 0.5)).collect();
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save_as("log", &rows).unwrap();
    let archive = Archive::new(out.finish().unwrap()).unwrap();
    let log = archive.named("log").unwrap();
    let paths: Vec<String> =
        log.tensors().unwrap().iter().map(|tensor| tensor.path().to_owned()).collect();
    assert_eq!(paths, ["/2024", "/1", "/3.x"]);
    for path in &paths {
        assert_eq!(log.tensor::<DynTensor>(path).unwrap().shape(), [20]);
        assert_eq!(log.info(path).unwrap().shape(), [20]);
    }
    let years: Vec<f64> = log.get("/2024").unwrap();
    assert_eq!(years[19], 19.0);
    let table = archive.table("log").unwrap();
    let columns: Vec<String> =
        table.columns().unwrap().iter().map(|column| column.path().to_owned()).collect();
    assert_eq!(columns, paths);
    assert_eq!(table.column::<Vec<f64>>("/1").unwrap(), [0.5; 20]);

    // A dotted path leads to a row, and a JSON Pointer too, where no field has the name.
    let row: BTreeMap<String, f64> = log.get("1").unwrap();
    assert_eq!(row["2024"], 1.0);
    assert_eq!(log.get::<f64>("3.2024").unwrap(), 3.0);
    assert_eq!(log.get::<BTreeMap<String, f64>>("/5").unwrap()["2024"], 5.0);
    assert!(log.get::<f64>("2024").is_err());
}
