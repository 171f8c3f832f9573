//! Paths in metadata: how they are spelled, what they lead to, and what there is to find.

mod column_type;
pub mod find;
pub mod list;
pub mod locate;
pub mod schema;
pub mod spelling;
pub mod tracker;
