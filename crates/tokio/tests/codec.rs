//! Messages in frames: every framing, the frames of `LengthDelimitedCodec`, limits and errors.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use futures::{SinkExt, StreamExt};
use serde::{Deserialize, Serialize};
use tenarc::de::{DecodeOptions, Limits};
use tenarc::error::Category;
use tenarc::{Tensor, Value};
use tenarc_tokio::{Framing, MessageCodec};
use tokio_util::codec::{Decoder, Encoder, Framed, FramedRead, LengthDelimitedCodec};

#[derive(Serialize, Deserialize, Debug, PartialEq, Clone)]
struct Reading {
    sensor: String,
    samples: Tensor<Vec<f32>>,
    notes: BTreeMap<String, Option<u64>>,
}

fn reading(len: usize) -> Reading {
    let notes = BTreeMap::from([("a".into(), Some(7)), ("b".into(), None)]);
    Reading { sensor: "left".into(), samples: vec![0.5; len].into(), notes }
}

fn framings() -> [Framing; 4] {
    let framing = Framing::default();
    [
        framing,
        framing.with_u64_length(),
        framing.with_little_endian(),
        framing.with_u64_length().with_little_endian(),
    ]
}

#[tokio::test]
async fn values_cross_a_stream_in_every_framing() {
    for framing in framings() {
        let (near, far) = tokio::io::duplex(100);
        let mut near = Framed::new(near, MessageCodec::<()>::with_framing(framing));
        let mut far = Framed::new(far, MessageCodec::<Reading>::with_framing(framing));
        let send = async {
            for len in [0, 1, 3, 10_000] {
                near.send(&reading(len)).await.unwrap();
            }
            SinkExt::<()>::close(&mut near).await.unwrap();
        };
        let receive = async {
            for len in [0, 1, 3, 10_000] {
                assert_eq!(far.next().await.unwrap().unwrap(), reading(len));
            }
            assert!(far.next().await.is_none());
        };
        tokio::join!(send, receive);
    }
}

#[test]
fn the_first_bytes_are_the_length() {
    let expected: [&[u8]; 4] =
        [&[0, 0, 0, 5], &[0, 0, 0, 0, 0, 0, 0, 5], &[5, 0, 0, 0], &[5, 0, 0, 0, 0, 0, 0, 0]];
    for (framing, expected) in framings().into_iter().zip(expected) {
        let mut bytes = BytesMut::from(&b"before"[..]);
        MessageCodec::<()>::with_framing(framing).encode("text", &mut bytes).unwrap();
        assert_eq!(bytes, [b"before", expected, b"\x64text"].concat());
    }
}

#[tokio::test]
async fn the_frames_are_those_of_length_delimited_codec() {
    let theirs = [
        LengthDelimitedCodec::new(),
        LengthDelimitedCodec::builder().length_field_length(8).new_codec(),
        LengthDelimitedCodec::builder().little_endian().new_codec(),
        LengthDelimitedCodec::builder().length_field_length(8).little_endian().new_codec(),
    ];
    for (framing, theirs) in framings().into_iter().zip(theirs) {
        let (near, far) = tokio::io::duplex(1 << 20);
        let mut ours = Framed::new(near, MessageCodec::<Reading>::with_framing(framing));
        let mut theirs = Framed::new(far, theirs);
        ours.send(reading(100)).await.unwrap();
        let frame = theirs.next().await.unwrap().unwrap();
        assert_eq!(tenarc::from_slice::<Reading>(&frame).unwrap(), reading(100));
        theirs.send(Bytes::from(tenarc::to_vec(&reading(200)).unwrap())).await.unwrap();
        assert_eq!(ours.next().await.unwrap().unwrap(), reading(200));
    }
    // The default limits are the same.
    let message = Bytes::from(vec![0; (8 << 20) + 1]);
    assert!(LengthDelimitedCodec::new().encode(message.slice(1..), &mut BytesMut::new()).is_ok());
    assert!(LengthDelimitedCodec::new().encode(message, &mut BytesMut::new()).is_err());
    let mut ours = MessageCodec::<Vec<u8>>::new();
    assert_eq!(ours.decode(&mut BytesMut::from(&[0, 0x80, 0, 0][..])).unwrap(), None);
    let error =
        MessageCodec::<()>::new().decode(&mut BytesMut::from(&[0, 0x80, 0, 1][..])).unwrap_err();
    assert_eq!(error.category(), Category::Limit);
    assert!(
        error.to_string().contains("8388609 bytes") && error.to_string().contains("8388608"),
        "{error}"
    );
}

#[test]
fn a_message_may_be_as_long_as_the_limit() {
    let message = tenarc::to_vec(&reading(1000)).unwrap();
    let framing = Framing::default();
    let mut bytes = BytesMut::from(&b"before"[..]);
    MessageCodec::<()>::with_framing(framing.with_max_len(message.len()))
        .encode(reading(1000), &mut bytes)
        .unwrap();
    assert_eq!(bytes.len(), 6 + 4 + message.len());
    let before = bytes.clone();
    let mut codec = MessageCodec::<()>::with_framing(framing.with_max_len(message.len() - 1));
    let error = codec.encode(reading(1000), &mut bytes).unwrap_err();
    assert_eq!((error.category(), &bytes), (Category::Limit, &before));
    assert!(error.to_string().contains(&(message.len() - 1).to_string()), "{error}");
    // It is still usable.
    codec.encode(1u8, &mut bytes).unwrap();
    assert_eq!(bytes.len(), before.len() + 5);
}

#[test]
fn a_value_that_fails_leaves_nothing_behind() {
    struct Fails;
    impl Serialize for Fails {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("no"))
        }
    }
    let mut bytes = BytesMut::from(&b"before"[..]);
    let error =
        MessageCodec::<()>::new().encode((vec![1u8; 100_000], Fails), &mut bytes).unwrap_err();
    assert!(error.to_string().contains("no"));
    assert_eq!(bytes, b"before"[..]);
}

#[test]
fn memory_is_reserved_as_bytes_arrive() {
    let framing = Framing::default().with_u64_length().with_max_len(usize::MAX);
    let mut codec = MessageCodec::<Vec<u8>>::with_framing(framing);
    let mut bytes = BytesMut::from(&(1u64 << 60).to_be_bytes()[..]);
    for _ in 0..10 {
        assert_eq!(codec.decode(&mut bytes).unwrap(), None);
        assert!(bytes.capacity() < 100_000);
        bytes.extend_from_slice(&[0; 1000]);
    }
}

/// A number, a text, two items in one frame, and a number.
fn different_values() -> BytesMut {
    let mut bytes = BytesMut::new();
    let mut codec = MessageCodec::<()>::new();
    codec.encode(1u8, &mut bytes).unwrap();
    codec.encode("text", &mut bytes).unwrap();
    bytes.extend_from_slice(&[0, 0, 0, 2, 1, 1]);
    codec.encode(2u8, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_frame_with_another_value_is_consumed() {
    let mut bytes = different_values();
    let mut codec = MessageCodec::<u8>::new();
    let found: Vec<_> = (0..4).map(|_| codec.decode(&mut bytes).ok()).collect();
    assert_eq!(found, [Some(Some(1)), None, None, Some(Some(2))]);
    assert_eq!(codec.decode(&mut bytes).unwrap(), None);
}

#[tokio::test]
async fn encoded_values_of_any_type_can_be_received() {
    let bytes = different_values();
    let mut frames = FramedRead::new(&bytes[..14], MessageCodec::<Value>::new());
    let mut found = Vec::new();
    while let Some(value) = frames.next().await {
        found.push(tenarc::from_value::<u8>(value.unwrap()).ok());
    }
    assert_eq!(found, [Some(1), None]);
}

#[tokio::test]
async fn a_stream_that_ends_inside_a_frame_is_torn() {
    let mut bytes = BytesMut::new();
    MessageCodec::<()>::new().encode(reading(100), &mut bytes).unwrap();
    for end in 1..bytes.len() {
        let mut frames = FramedRead::new(&bytes[..end], MessageCodec::<Reading>::new());
        let error = frames.next().await.unwrap().unwrap_err();
        assert_eq!(error.category(), Category::Torn, "{error}");
    }
}

#[test]
fn options_apply() {
    let mut bytes = BytesMut::new();
    let options = tenarc::ser::EncodeOptions::default().with_columns(true);
    let mut codec = MessageCodec::<()>::new().with_encode_options(options);
    let rows = vec![reading(3); 50];
    codec.encode(&rows, &mut bytes).unwrap();
    assert_eq!(bytes[4..], tenarc::ser::to_vec_with(&rows, options).unwrap());
    let limits = DecodeOptions::default().with_limits(Limits::default().with_max_depth(1));
    let mut strict = MessageCodec::<Vec<Reading>>::new().with_decode_options(limits);
    assert_eq!(strict.decode(&mut bytes.clone()).unwrap_err().category(), Category::Limit);
    assert_eq!(MessageCodec::<Vec<Reading>>::new().decode(&mut bytes).unwrap(), Some(rows));
}
