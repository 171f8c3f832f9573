//! Sending and receiving take little memory beside the tensors.

mod support;

use ndarray::Array2;
use support::{SlowReader, SlowWriter, poll_all, poll_some};
use tenarc::Tensor;
use tenarc::tensor::SharedTensor;
use tenarc_test_support::alloc::{self, Counting};
use tenarc_tokio::{PartsReader, PartsWriter};
use tokio::io::AsyncWrite;

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
