//! gzip and zstd around streams of every form.

use std::io::{Cursor, Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::support::{FORMS, Form, Partly, plain};

fn gzip(form: Form) -> Vec<u8> {
    let mut out = GzEncoder::new(Partly(Vec::new()), Compression::fast());
    form.write(&mut out).unwrap();
    out.finish().unwrap().0
}

/// Whatever becomes of the bytes: an error, or all models as they were.
#[track_caller]
fn assert_cut_and_changed_are_noticed<R: Read>(
    bytes: &[u8],
    form: Form,
    open: impl Fn(Cursor<Vec<u8>>) -> R,
) {
    let mut noticed = 0;
    for at in (0..bytes.len()).step_by(bytes.len() / 12) {
        let cut = open(Cursor::new(bytes[..at].to_vec()));
        form.assert_refused(cut, &format!("cut to {at} bytes"));

        let mut changed = bytes.to_vec();
        changed[at] = !changed[at];
        match form.read(open(Cursor::new(changed))) {
            // A header holds a time that nobody asks for.
            Ok(models) => assert!(Form::is_whole(&models), "{form:?}, changed at {at}"),
            Err(_) => noticed += 1,
        }
    }
    assert!(noticed > 9, "{form:?}: only {noticed} changes were noticed");
}

#[test]
fn every_form_through_gzip() {
    for form in FORMS {
        let bytes = gzip(form);
        assert!(bytes.len() < plain(form).len());
        form.assert_read(GzDecoder::new(&bytes[..]), "through gzip");
        assert_cut_and_changed_are_noticed(&bytes, form, GzDecoder::new);
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn every_form_through_zstd() {
    for form in FORMS {
        let mut out = zstd::Encoder::new(Partly(Vec::new()), 1).unwrap();
        // Without it a message may change unnoticed.
        out.include_checksum(true).unwrap();
        form.write(&mut out).unwrap();
        let bytes = out.finish().unwrap().0;
        assert!(bytes.len() < plain(form).len());
        form.assert_read(zstd::Decoder::new(&bytes[..]).unwrap(), "through zstd");
        let open = |reader| zstd::Decoder::new(reader).unwrap();
        assert_cut_and_changed_are_noticed(&bytes, form, open);
    }
}

/// A flush is a point up to which the other side can read.
#[test]
fn a_message_can_be_had_from_a_compressor_that_was_flushed() {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    tenarc::to_writer(&mut out, &"first").unwrap();
    out.flush().unwrap();
    let bytes = out.get_ref().clone();
    let mut messages =
        tenarc::Deserializer::from_reader(GzDecoder::new(&bytes[..])).into_iter::<String>();
    assert_eq!(messages.next().unwrap().unwrap(), "first");
    assert!(messages.next().unwrap().is_err(), "the compressor has not ended");
}
