//! Writes plain values of a pickle.

use serde::ser::{Serialize, SerializeMap, Serializer};
use tenarc::Result;

use super::pickle::{Object, Value, lost, object};

/// A value of the pickle that contains no tensors. Lost parts of it are left out of maps, and are null in arrays.
#[derive(Debug)]
pub struct Plain<'a> {
    pub objects: &'a [Object],
    pub value: Value,
}

impl Serialize for Plain<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let objects = self.objects;
        let item = |value: &Value| Plain { objects, value: *value };
        match self.value {
            Value::None => return serializer.serialize_none(),
            Value::Bool(value) => return serializer.serialize_bool(value),
            Value::Int(value) => return serializer.serialize_i64(value),
            Value::Float(value) => return serializer.serialize_f64(value),
            Value::Object(_) => {}
        }
        match object(objects, self.value) {
            Some(Object::Big(value)) => serializer.serialize_i128(*value),
            Some(Object::Text(text)) => serializer.serialize_str(text),
            Some(Object::Global(global)) => serializer.serialize_str(&global.name),
            Some(Object::Bytes(bytes)) => serializer.serialize_bytes(bytes),
            Some(Object::List(values)) => serializer.collect_seq(values.iter().map(item)),
            Some(Object::Tuple(values)) => serializer.collect_seq(values.iter().map(item)),
            Some(Object::Dict(dict)) => {
                let kept = |value: Value| lost(objects, value).is_none();
                let entries = || dict.entries.iter().filter(|(_, value)| kept(*value));
                let mut map = serializer.serialize_map(Some(entries().count()))?;
                for (key, value) in entries() {
                    map.serialize_entry(&item(key), &item(value))?;
                }
                map.end()
            }
            _ => serializer.serialize_none(),
        }
    }
}
