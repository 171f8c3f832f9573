//! numpy's file format, version 1.0.

use tenarc::DType;

use crate::failure::{Failure, Result};
use crate::text::quoted;

/// What stands before the elements, which are little-endian and in row-major order.
///
/// # Errors
/// Where numpy has no such dtype.
pub fn header(dtype: &DType, shape: &[usize]) -> Result<Vec<u8>> {
    let descr = match dtype {
        DType::Bool => "|b1",
        DType::U8 => "|u1",
        DType::I8 => "|i1",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::C64 => "<c8",
        DType::C128 => "<c16",
        other => {
            let name = quoted(other.name());
            let what = format!("numpy has no dtype {name}: add --cast f32, or use --as raw");
            return Err(Failure::new(what));
        }
    };
    // A tuple of one needs its comma.
    let dims = shape.iter().fold(String::new(), |dims, dim| dims + &format!("{dim}, "));
    let dims = if shape.len() == 1 { dims.trim_end() } else { dims.trim_end_matches(", ") };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({dims}), }}");
    // Elements start at a multiple of 64, behind magic, version, length and line end.
    let unpadded = 10 + text.len() + 1;
    text.extend(std::iter::repeat_n(' ', unpadded.next_multiple_of(64) - unpadded));
    text.push('\n');
    let len = u16::try_from(text.len())
        .map_err(|_| Failure::new("a shape that is too long for an npy file"))?;
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend(len.to_le_bytes());
    header.extend(text.into_bytes());
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_what_numpy_writes() {
        // np.save of np.zeros((2, 3), 'f4'), without the elements.
        let mut expected = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        expected.extend(b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }");
        expected.resize(127, b' ');
        expected.push(b'\n');
        assert_eq!(header(&DType::F32, &[2, 3]).unwrap(), expected);
    }

    #[test]
    fn writes_tuples_of_none_and_one() {
        let text = |shape: &[usize]| {
            String::from_utf8_lossy(&header(&DType::I8, shape).unwrap()[10..]).into_owned()
        };
        assert!(text(&[]).contains("'shape': ()"));
        assert!(text(&[7]).contains("'shape': (7,)"));
        assert!(header(&DType::BF16, &[1]).is_err());
        let long = header(&DType::U8, &[1000; 32]).unwrap();
        assert_eq!(long.len() % 64, 0);
    }
}
