//! The peers with their own derive macros, besides or instead of serde's. The rows are made by macros, as
//! each peer has its own traits, some with very long bounds.

/// Types with the derives of serde and of all peers here.
macro_rules! types {
    ($($item:item)*) => {$(
        #[derive(
            Clone,
            PartialEq,
            serde::Serialize,
            serde::Deserialize,
            bincode::Encode,
            bincode::Decode,
            bitcode::Encode,
            bitcode::Decode,
            wincode::SchemaRead,
            wincode::SchemaWrite,
            rkyv::Archive,
            rkyv::Serialize,
            rkyv::Deserialize,
        )]
        $item
    )*};
}
pub(crate) use types;

/// Two rows for rkyv: with validation ("native") and without ("unchecked"). Borrowed decoding is access to
/// the archived value in place.
macro_rules! rkyv_rows {
    ($value:expr, $type:ty) => {{
        use $crate::harness::{Placed, Row, timed};
        type Archived = rkyv::Archived<$type>;
        type Error = rkyv::rancor::Error;
        let value: &$type = $value;
        let message = rkyv::to_bytes::<Error>(value).unwrap();
        assert!(rkyv::from_bytes::<$type, Error>(&message).unwrap() == *value);

        // rkyv writes into a vector type of its own, which is aligned.
        let mut reused = Some(rkyv::util::AlignedVec::<16>::new());
        let checked = Row::new("rkyv", "native", Placed::new(&message, 0))
            .encode(move |_| {
                let mut buffer = reused.take().unwrap();
                buffer.clear();
                reused = Some(rkyv::api::high::to_bytes_in::<_, Error>(value, buffer).unwrap());
            })
            .fresh(move || rkyv::to_bytes::<Error>(value).unwrap())
            .decode(|bytes| timed(|| rkyv::from_bytes::<$type, Error>(bytes).unwrap()))
            .borrow(|bytes| timed(|| rkyv::access::<Archived, Error>(bytes).unwrap()));
        let unchecked = Row::new("rkyv", "unchecked", Placed::new(&message, 0))
            // SAFETY (both): rkyv wrote the bytes for the same type, and they are aligned to 64.
            .decode(|bytes| {
                timed(|| unsafe { rkyv::from_bytes_unchecked::<$type, Error>(bytes).unwrap() })
            })
            .borrow(|bytes| timed(|| unsafe { rkyv::access_unchecked::<Archived>(bytes) }));
        [checked, unchecked]
    }};
}
pub(crate) use rkyv_rows;

/// bitcode's own derives, with its reusable buffer.
macro_rules! bitcode_row {
    ($value:expr, $type:ty) => {{
        use $crate::harness::{Placed, Row, timed};
        let value: &$type = $value;
        let message = bitcode::encode(value);
        assert!(bitcode::decode::<$type>(&message).unwrap() == *value);
        let mut buffer = bitcode::Buffer::new();
        Row::new("bitcode", "native", Placed::new(&message, 0))
            .encode(move |_| {
                std::hint::black_box(buffer.encode(value));
            })
            .fresh(move || bitcode::encode(value))
            .decode(|bytes| timed(|| bitcode::decode::<$type>(bytes).unwrap()))
    }};
}
pub(crate) use bitcode_row;

/// wincode's derives. They write what bincode 1 writes. By default, wincode refuses sequences of more than 4 MiB.
macro_rules! wincode_row {
    ($value:expr, $type:ty) => {{
        use $crate::harness::{Placed, Row, timed};
        let config = wincode::config::Configuration::default().disable_preallocation_size_limit();
        let value: &$type = $value;
        let message = wincode::config::serialize(value, config).unwrap();
        let back: $type = wincode::config::deserialize(&message, config).unwrap();
        assert!(back == *value);
        drop(back);
        Row::new("wincode", "native", Placed::new(&message, 0))
            .encode(move |buffer| wincode::config::serialize_into(buffer, value, config).unwrap())
            .fresh(move || wincode::config::serialize(value, config).unwrap())
            .decode(move |bytes| {
                timed(|| wincode::config::deserialize::<$type, _>(bytes, config).unwrap())
            })
    }};
}
pub(crate) use wincode_row;

/// bincode 2's own derives, with integers of fixed width, into a slice of known length.
macro_rules! bincode_row {
    ($value:expr, $type:ty) => {{
        use $crate::harness::{Placed, Row, timed};
        let config = bincode::config::standard().with_fixed_int_encoding();
        let value: &$type = $value;
        let message = bincode::encode_to_vec(value, config).unwrap();
        let back: ($type, usize) = bincode::decode_from_slice(&message, config).unwrap();
        assert!(back.0 == *value);
        drop(back);
        let mut space = vec![0; message.len()];
        Row::new("bincode 2", "native", Placed::new(&message, 0))
            .encode(move |_| {
                bincode::encode_into_slice(value, &mut space, config).unwrap();
                std::hint::black_box(&space);
            })
            .fresh(move || bincode::encode_to_vec(value, config).unwrap())
            .decode(move |bytes| {
                timed(|| bincode::decode_from_slice::<$type, _>(bytes, config).unwrap())
            })
    }};
}
pub(crate) use bincode_row;
