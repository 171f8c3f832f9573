//! Files of other formats, read and written. Each format has a feature of its own.

#[cfg(feature = "tenbin")]
#[cfg_attr(docsrs, doc(cfg(feature = "tenbin")))]
pub mod tenbin;
