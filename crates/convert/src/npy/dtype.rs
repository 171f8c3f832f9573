//! The dtypes that npy files can have.

use tenarc::{DType, Error, Result};

use crate::numpy;

/// Returns numpy's type string of a dtype.
///
/// # Errors
/// If numpy does not have the dtype. Elements are not written with another dtype, because the original one would be
/// lost.
pub fn descr_of(dtype: &DType) -> Result<&'static str> {
    numpy::descr_of(dtype).ok_or_else(|| {
        let name = dtype.name().escape_debug();
        Error::unsupported(format!(
            "npy has no dtype for {name}; convert the elements to a dtype that it has"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(descr: &str) -> Result<(DType, bool)> {
        numpy::parse(descr.as_bytes())
    }

    #[test]
    fn every_name_comes_back_in_every_order() {
        for (dtype, descr) in &numpy::KNOWN {
            assert_eq!(descr_of(dtype).unwrap(), *descr);
            assert_eq!(parsed(descr).unwrap(), (dtype.clone(), false));
            let code = &descr[1..];
            let wide = dtype.word() > 1;
            assert_eq!(parsed(&format!(">{code}")).unwrap(), (dtype.clone(), wide));
            let native = (dtype.clone(), wide && cfg!(target_endian = "big"));
            assert_eq!(parsed(&format!("={code}")).unwrap(), native);
            assert_eq!(parsed(code).unwrap(), native);
            assert_eq!(parsed(&format!("|{code}")).is_ok(), !wide);
        }
    }

    #[test]
    fn what_is_no_tensor_is_refused_by_its_name() {
        let cases = [
            ("|O", "pickled"),
            ("<M8[parsec]", "a unit of numpy"),
            ("|m8[ms]", "a unit of numpy"),
            ("|V3", "void"),
            ("<f16", "long doubles"),
            ("<f3", "expected bool"),
            ("", "expected bool"),
            ("<", "expected bool"),
        ];
        for (descr, why) in cases {
            let error = parsed(descr).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains(descr), "{error}");
        }
        assert!(parsed("<U2").is_err() && parsed("|S2").is_err());
        assert!(descr_of(&DType::BF16).unwrap_err().to_string().contains("bf16"));
        assert!(descr_of(&DType::from_name("q4\u{1b}")).is_err());
    }
}
