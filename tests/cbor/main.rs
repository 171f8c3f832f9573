//! tenarc reads and writes standard CBOR: the examples of RFC 8949, and what the crate ciborium makes
//! of the same bytes. Programs that know no type can walk over its items.

mod against_ciborium;
mod inspect;
mod rfc8949;
