//! Where a field is in each of many structs.

/// A part of a struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub offset: usize,
    pub len: usize,
}

impl Place {
    /// Returns the field of each of the structs, which take `width` bytes each.
    pub fn of_each(self, structs: &[u8], width: usize) -> Vec<u8> {
        let structs = structs.chunks_exact(width.max(1));
        let mut fields = Vec::with_capacity(structs.len().saturating_mul(self.len));
        for found in structs {
            let field = found.get(self.offset..).and_then(|rest| rest.get(..self.len));
            fields.extend_from_slice(field.unwrap_or_default());
        }
        fields
    }
}
