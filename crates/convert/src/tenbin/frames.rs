//! Encodes arrays as the frames of a multipart message, for transports that keep frames apart.

use tenarc::tensor::ToTensor;
use tenarc::{DynTensor, Error, Result};

use super::array::Header;

/// Encodes arrays as the frames of a multipart message. Each array makes two frames: the content of its header chunk,
/// and its elements. The frames have no magic number, length or padding.
///
/// # Errors
/// The errors of [`write`](fn@super::write).
pub fn encode_frames<N: AsRef<str>, T: ToTensor>(arrays: &[(N, T)]) -> Result<Vec<Vec<u8>>> {
    let mut frames = Vec::with_capacity(2 * arrays.len());
    for (name, array) in arrays {
        let header = Header::new(name.as_ref(), array.meta())?;
        let mut bytes = Vec::new();
        array.write_blocks(&mut |block| {
            bytes.extend_from_slice(block);
            Ok(())
        })?;
        header.check_len(bytes.len() as u64, 0)?;
        frames.push(header.encode());
        frames.push(bytes);
    }
    Ok(frames)
}

/// Decodes the arrays of [`encode_frames`].
///
/// # Errors
/// If a frame is missing, or if the frames are not those of arrays. The offset in an error counts from the start of the
/// frame.
pub fn decode_frames<B: AsRef<[u8]>>(frames: &[B]) -> Result<Vec<(String, DynTensor)>> {
    let (pairs, rest) = frames.as_chunks::<2>();
    if !rest.is_empty() {
        let what = format!("expected two frames for each array, found {} frames", frames.len());
        return Err(Error::data(what));
    }
    let array = |(index, [header, bytes]): (usize, &[B; 2])| {
        let header = Header::decode(header.as_ref(), 0)?;
        header.check_len(bytes.as_ref().len() as u64, 0)?;
        header.with_bytes(bytes.as_ref().to_vec()).map_err(|error| error.in_index(index as u64))
    };
    pairs.iter().enumerate().map(array).collect()
}
