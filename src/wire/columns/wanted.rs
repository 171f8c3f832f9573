//! Which fields of structs are read.

use crate::steps::Steps;

/// The fields that are read of the structs in a column, also if the structs are optional.
#[derive(Clone, Copy)]
pub enum WantedFields<'w> {
    All,
    /// The fields that the function takes, and all that is in them.
    Of(&'w dyn Fn(&str) -> bool),
    /// The field or variant with the first name, in it that with the second name, and so on. In the last one, what the
    /// steps lead to. Names can have dots, so steps can lead to several fields.
    At(&'w [String], Steps<'w>),
}

impl WantedFields<'_> {
    /// What is read of the contents of this variant. `None` if they are not read.
    pub fn within_variant(&self, name: &str) -> Option<Self> {
        match self {
            Self::At([_, ..], _) => self.within(name),
            _ => Some(Self::All),
        }
    }

    /// What is read of the structs in this field. `None` if the field is not read.
    pub fn within(&self, field: &str) -> Option<Self> {
        match *self {
            Self::All => Some(Self::All),
            Self::Of(is_wanted) => is_wanted(field).then_some(Self::All),
            Self::At([name, rest @ ..], steps) => (name == field).then_some(Self::At(rest, steps)),
            Self::At([], steps) if steps.is_empty() => Some(Self::All),
            Self::At([], steps) => {
                steps.next().after(field.as_bytes()).map(|rest| Self::At(&[], rest))
            }
        }
    }
}
