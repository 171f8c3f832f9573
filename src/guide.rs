//! The pages that teach the crate. Every example in them is compiled and run by the tests.
//!
//! - [Guide](start): from the first save to maps, streams and checkpoints.
//! - [Tables](tables): many records or states in one file, conditions on them, new rows as they come.
//! - [Cookbook](cookbook): short answers.
//! - [Archive, message or parts](encodings): which encoding is for what.
//! - [Reliability](reliability): crashes, damage, hostile input, versions.
//! - [Coming from bincode](from_bincode).
//!
//! # More pages
//!
//! The pages above were written for the repository. Where one of their links leads here, the page is not part of this
//! documentation. Such pages are in `docs/` of the repository and of this package, or are the `README.md` of a crate or package
//! beside this one. `SPEC.md` specifies the format.

/// Modules with the pages at these paths as their documentation.
///
/// The definitions of links come before those at the end of a page, which name files, and so hold in their place.
macro_rules! pages {
    ($($name:ident: $path:literal)*) => {$(
        /// [cookbook]: crate::guide::cookbook
        /// [encodings]: crate::guide::encodings
        /// [guide]: crate::guide::start
        /// [reliability]: crate::guide::reliability
        /// [series]: crate::guide::tables#read-one-variable-over-all-steps
        /// [tables]: crate::guide::tables
        /// [values]: crate::guide::start#write-and-read-value-after-value
        /// [arrow]: crate::guide#more-pages
        /// [burn]: crate::guide#more-pages
        /// [candle]: crate::guide#more-pages
        /// [columns]: crate::guide#more-pages
        /// [command]: crate::guide#more-pages
        /// [conformance]: crate::guide#more-pages
        /// [datafusion]: crate::guide#more-pages
        /// [filters]: crate::guide#more-pages
        /// [hdf5]: crate::guide#more-pages
        /// [js]: crate::guide#more-pages
        /// [models]: crate::guide#more-pages
        /// [python]: crate::guide#more-pages
        /// [query]: crate::guide#more-pages
        /// [ranks]: crate::guide#more-pages
        /// [safetensors]: crate::guide#more-pages
        /// [scale]: crate::guide#more-pages
        /// [spec]: crate::guide#more-pages
        /// [threats]: crate::guide#more-pages
        /// [tokio]: crate::guide#more-pages
        /// [zarr]: crate::guide#more-pages
        #[doc = include_str!($path)]
        pub mod $name {}
    )*};
}

pages! {
    start: "../docs/guide.md"
    tables: "../docs/tables.md"
    cookbook: "../docs/cookbook.md"
    encodings: "../docs/encodings.md"
    reliability: "../docs/reliability.md"
    from_bincode: "../docs/from-bincode.md"
}
