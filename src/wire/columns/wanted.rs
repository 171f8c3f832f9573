//! Which fields of structs are read.

use crate::steps::Steps;

/// The fields that are read of the structs in a column, also if the structs are optional.
#[derive(Clone, Copy)]
pub enum WantedFields<'w> {
    All,
    /// The fields that the function returns for the struct at this place, and for those in it. If it returns `None`,
    /// all.
    Of(&'w Ask<'w>, Place<'w>),
    /// The field or variant with the first name, in it that with the second name, and so on. In the last one, what the
    /// steps lead to. Names can have dots, so steps can lead to several fields.
    At(&'w [String], Steps<'w>),
}

/// Returns the fields of the struct at a place. `None` if they are not known.
pub type Ask<'w> = dyn Fn(Place<'_>) -> Option<&'static [&'static str]> + 'w;

/// The names of the fields that lead from a row to a struct: the last one, and the place of the struct around it.
#[derive(Clone, Copy)]
pub struct Place<'w>(Option<&'w (Place<'w>, &'w str)>);

impl<'w> Place<'w> {
    /// The place of the rows themselves.
    pub const ROW: Self = Self(None);

    /// The names, the outermost first.
    pub fn names(self) -> Vec<&'w str> {
        let mut names = Vec::new();
        let mut place = self;
        while let Some(&(outer, name)) = place.0 {
            names.push(name);
            place = outer;
        }
        names.reverse();
        names
    }
}

impl<'w> WantedFields<'w> {
    /// What is read of the contents of this variant. `None` if they are not read.
    pub fn within_variant(&self, name: &str) -> Option<Self> {
        match self {
            Self::At([_, ..], _) => self.within(name),
            _ => Some(Self::All),
        }
    }

    /// What is read of the struct that comes next.
    pub fn of_struct(&self) -> OfStruct<'w> {
        let asked = match *self {
            Self::Of(ask, place) => ask(place).map(|fields| (ask, place, fields)),
            _ => None,
        };
        OfStruct { wanted: *self, asked }
    }

    /// What is read of the structs in this field. `None` if the field is not read.
    fn within(&self, field: &str) -> Option<Self> {
        match *self {
            Self::All | Self::Of(..) => Some(Self::All),
            Self::At([name, rest @ ..], steps) => (name == field).then_some(Self::At(rest, steps)),
            Self::At([], steps) if steps.is_empty() => Some(Self::All),
            Self::At([], steps) => {
                steps.next().after(field.as_bytes()).map(|rest| Self::At(&[], rest))
            }
        }
    }
}

/// What is read of a struct.
pub struct OfStruct<'w> {
    wanted: WantedFields<'w>,
    asked: Option<(&'w Ask<'w>, Place<'w>, &'static [&'static str])>,
}

impl<'w> OfStruct<'w> {
    /// The place of the structs in this field.
    pub fn place<'f>(&self, field: &'f str) -> (Place<'f>, &'f str)
    where
        'w: 'f,
    {
        (self.asked.map_or(Place::ROW, |(_, place, _)| place), field)
    }

    /// What is read of the structs in a field, which has this [place](Self::place). `None` if the field is not read.
    pub fn within<'f>(&self, place: &'f (Place<'f>, &'f str)) -> Option<WantedFields<'f>>
    where
        'w: 'f,
    {
        let (_, field) = *place;
        match self.asked {
            Some((ask, _, fields)) => {
                fields.contains(&field).then_some(WantedFields::Of(ask, Place(Some(place))))
            }
            None => self.wanted.within(field),
        }
    }
}
