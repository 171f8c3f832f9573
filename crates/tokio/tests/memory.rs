//! Sending and receiving take little memory beside the tensors.

mod support;

use bytes::BytesMut;
use ndarray::Array2;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use support::{SlowReader, SlowWriter, poll_all, poll_some};
use tenarc::archive::SaveOptions;
use tenarc::parts::Split;
use tenarc::tensor::{Order, SharedTensor, TensorMeta, ToTensor};
use tenarc::{DType, Tensor};
use tenarc_test_support::alloc::{self, Counting};
use tenarc_tokio::{MessageCodec, PartsReader, PartsWriter};
use tokio::io::AsyncWrite;
use tokio_util::codec::Decoder;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SIDE: usize = 1000;
const TENSOR: usize = SIDE * SIDE * 4;
const LITTLE: usize = 600 << 10;

/// Forgets what is written.
struct Nowhere(SlowWriter);

impl AsyncWrite for Nowhere {
    fn poll_write(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> std::task::Poll<std::io::Result<usize>> {
        let result = std::pin::Pin::new(&mut self.0).poll_write(cx, bytes);
        self.0.written.clear();
        self.0.calls.clear();
        result
    }

    fn poll_flush(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn poll_shutdown(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }
}

#[test]
fn sending_copies_no_contiguous_tensor() {
    let value = vec![Tensor(Array2::<f32>::eye(SIDE)), Tensor(Array2::ones((SIDE, SIDE)))];
    let mut writer = PartsWriter::new(Nowhere(SlowWriter::new(100_000, true)));
    let ((), most) = alloc::peak_of(|| poll_all(writer.send_value(&value)).unwrap());
    assert!(most < LITTLE, "{most} bytes while sending");

    // Only a future that is dropped leaves a copy behind.
    let (_, most) = alloc::peak_of(|| poll_some(writer.send_value(&value), 5));
    assert!(most > TENSOR, "{most} bytes");
    assert!(writer.pending() > TENSOR && writer.pending() <= 2 * TENSOR + 1000);
}

#[test]
fn tensors_are_received_into_their_own_memory() {
    let value = vec![Tensor(Array2::<f32>::eye(SIDE)), Tensor(Array2::ones((SIDE, SIDE)))];
    let mut bytes = Vec::new();
    tenarc::to_parts(&value).unwrap().write_to(&mut bytes).unwrap();
    let mut reader = PartsReader::new(SlowReader::new(&bytes, 100_000));
    let (received, most) =
        alloc::peak_of(|| poll_all(reader.recv::<Vec<Tensor<SharedTensor>>>()).unwrap().unwrap());
    assert!(received.iter().all(|tensor| tensor.is_shared()));
    assert!(most < 2 * TENSOR + LITTLE, "{most} bytes for tensors of {}", 2 * TENSOR);
}

/// Zeros that take no memory.
struct Zeros(usize);

impl ToTensor for Zeros {
    fn meta(&self) -> TensorMeta {
        TensorMeta::new(DType::U8, [self.0], Order::C)
    }

    fn as_le_bytes(&self) -> Option<&[u8]> {
        None
    }

    fn write_blocks(&self, put: &mut dyn FnMut(&[u8]) -> tenarc::Result<()>) -> tenarc::Result<()> {
        (0..self.0 >> 20).try_for_each(|_| put(&vec![0; 1 << 20]))
    }
}

/// The metadata of a tensor of so many bytes. Nobody needs its bytes, because it has no checksums.
fn metadata_of(len: usize) -> Vec<u8> {
    let options = SaveOptions::default().with_checksums(false);
    Split::with_options(&Tensor(Zeros(len)), options).unwrap().metadata().to_vec()
}

/// Many connections can claim as much at once.
#[test]
fn a_claim_takes_little_memory() {
    let metadata = metadata_of(512 << 20);
    for arrived in [0, 1, 300 << 10, 3 << 20] {
        let bytes = [&metadata[..], &vec![1; arrived]].concat();
        let mut reader = PartsReader::new(SlowReader::new(&bytes, 100_000));
        let (result, most) = alloc::peak_of(|| poll_all(reader.next()));
        assert!(result.is_err(), "the stream ended");
        assert!(most < 8 * arrived + (2 << 20), "{most} bytes when {arrived} had arrived");
    }
}

/// The memory of a large tensor is obtained in four pieces, of which the last is its place. An allocator that copies
/// when a block grows copies a seventh of the tensor.
#[test]
fn the_memory_of_a_large_tensor_grows_few_times() {
    const LARGE: usize = 100 << 20;
    let bytes = [metadata_of(LARGE), vec![1; LARGE]].concat();
    let mut reader = PartsReader::new(SlowReader::new(&bytes, 1 << 20));
    let (parts, made) = alloc::allocated(|| poll_all(reader.next()).unwrap().unwrap());
    assert_eq!(parts.buffers()[0].len(), LARGE);
    assert!(made.large <= 3, "{} large pieces", made.large);
    assert!(made.bytes < LARGE + LITTLE, "{} bytes", made.bytes);
}

/// A message of few bytes takes at most 64 MiB and 64 times its length: a list of 16 million units, and half a million rows of
/// one bool.
#[test]
fn small_messages_stay_small() {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    #[allow(dead_code)]
    struct Big {
        a: bool,
        rest: [[u64; 25]; 20],
    }
    fn refused<T: DeserializeOwned>(message: &[u8]) {
        let mut frame = BytesMut::from(&u32::try_from(message.len()).unwrap().to_be_bytes()[..]);
        frame.extend_from_slice(message);
        let (result, most) = alloc::peak_of(|| MessageCodec::<T>::new().decode(&mut frame));
        let error = result.err().expect("an error");
        assert!(error.to_string().contains("with_max_alloc"), "{error}");
        assert!(most < (64 << 20) + 64 * message.len() + LITTLE, "{most}");
    }
    let units = b"\xdaTCOL\x82\x1a\x00\x01\x00\x00\x83earray\x18\xfe\x81dunit";
    refused::<tenarc::Value>(units);
    refused::<Vec<Vec<Big>>>(units);
    let mut bools = b"\xdaTCOL\x90".to_vec();
    for _ in 0..8 {
        bools.extend_from_slice(b"\x1a\x00\x01\x00\x00\xa1aa\x82dbool\x59\x20\x00");
        bools.extend_from_slice(&[0; 8192]);
    }
    refused::<Vec<Big>>(&bools);
}
