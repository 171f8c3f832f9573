//! What pandas says in attributes of integers that are times or durations.

use tenarc::Value;

use crate::numpy::times::Times;

/// Returns what the integers of a dataset are, or those of a field of its structs. `None` if its attributes do not say it.
pub fn times(attributes: &[(Value, Value)], field: Option<&str>) -> Option<Times> {
    let text =
        |key: &str| attributes.iter().find(|(name, _)| name.as_str() == Some(key))?.1.as_str();
    let stated = match field {
        Some("index") => text("index_kind"),
        Some(field) => text(&format!("{field}_dtype")),
        // The clock of a zone is not that of the integers.
        None if text("tz").is_some() => None,
        None => text("value_type").or_else(|| text("kind")),
    }?;
    let (kind, unit) = match stated.strip_prefix("datetime64") {
        Some(unit) => ("M8", unit),
        None => ("m8", stated.strip_prefix("timedelta64")?),
    };
    // Before version 2, pandas had only nanoseconds.
    let unit = if unit.is_empty() { "[ns]" } else { unit };
    let is_known = matches!(unit, "[s]" | "[ms]" | "[us]" | "[ns]");
    is_known.then(|| Times::of_code(format!("{kind}{unit}").as_bytes()))?
}

/// Whether the attributes of a group name a time zone of a field of its table. They are pickled.
pub fn may_have_zones(attributes: &[(Value, Value)]) -> bool {
    attributes.iter().any(|(name, value)| {
        let has_zone = |bytes: &[u8]| bytes.windows(2).any(|two| two == b"tz");
        name.as_str() == Some("info")
            && match value {
                Value::Text(text) => has_zone(text.as_bytes()),
                Value::Bytes(bytes) => has_zone(bytes),
                _ => true,
            }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_pandas_writes_is_a_type() {
        let found = |name: &str, stated: &str, field: Option<&str>| {
            let attributes = [(Value::from(name), Value::from(stated))];
            times(&attributes, field).map(|times| times.descr())
        };
        let ns = || Some("<M8[ns]".to_owned());
        assert_eq!(found("a_dtype", "datetime64[ns]", Some("a")), ns());
        assert_eq!(found("a_dtype", "datetime64", Some("a")), ns());
        assert_eq!(found("b_dtype", "datetime64", Some("a")), None);
        assert_eq!(
            found("index_kind", "datetime64[us]", Some("index")).as_deref(),
            Some("<M8[us]")
        );
        assert_eq!(found("value_type", "timedelta64", None).as_deref(), Some("<m8[ns]"));
        assert_eq!(found("kind", "datetime64[s]", None).as_deref(), Some("<M8[s]"));
        for other in ["int64", "datetime", "datetime64[", "datetime64[D]", "timedelta64ns"] {
            assert_eq!(found("kind", other, None), None, "{other}");
        }
        let zone = (Value::from("tz"), Value::from("UTC"));
        assert_eq!(times(&[("kind".into(), "datetime64[s]".into()), zone], None), None);
    }
}
