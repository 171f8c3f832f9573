//! Streams that are never ready at once, and futures that are dropped.

#![allow(dead_code)] // Not every test program uses everything.
#![allow(clippy::cast_precision_loss, clippy::cast_sign_loss)] // small numbers

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use ndarray::Array2;
use serde::{Deserialize, Serialize};
use tenarc::Tensor;
use tenarc::tensor::SharedTensor;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A value with small and large tensors, a strided one, a plain vector and an empty one.
#[derive(Serialize)]
pub struct Sent {
    pub name: String,
    pub contiguous: Tensor<Array2<f32>>,
    pub transposed: Tensor<Array2<f32>>,
    pub plain: Vec<f64>,
    pub bytes: Tensor<Vec<u8>>,
    pub many: Vec<Tensor<Vec<i16>>>,
    pub empty: Tensor<Vec<f32>>,
}

#[derive(Deserialize, Debug)]
pub struct Received {
    pub name: String,
    pub contiguous: Tensor<SharedTensor>,
    pub transposed: Tensor<Array2<f32>>,
    pub plain: Vec<f64>,
    pub bytes: Tensor<SharedTensor>,
    pub many: Vec<Tensor<Vec<i16>>>,
    pub empty: Tensor<Vec<f32>>,
}

/// A value whose contents depend on the number. `with_plain` includes what is not contiguous in memory.
pub fn value(number: u8, with_plain: bool) -> Sent {
    let n = f32::from(number);
    let array = |rows, columns| {
        Array2::from_shape_fn((rows, columns), |(r, c)| n + r as f32 * 0.5 + c as f32 * 100.0)
    };
    let mut transposed = array(60, 50);
    if with_plain {
        transposed = transposed.slice_move(ndarray::s![..;2, ..]);
    }
    Sent {
        name: format!("value {number}"),
        contiguous: array(90, 70).into(),
        transposed: transposed.into(),
        plain: if with_plain { vec![f64::from(number); 3000] } else { vec![0.5; 3] },
        bytes: vec![number; 40_000].into(),
        many: (0..5).map(|i| vec![i16::from(number) + i; 1100 + i as usize].into()).collect(),
        empty: Vec::new().into(),
    }
}

#[track_caller]
pub fn assert_is(received: &Received, sent: &Sent) {
    assert_eq!(received.name, sent.name);
    assert!(received.contiguous.is_shared() && received.bytes.is_shared());
    assert_eq!(received.contiguous.as_slice::<f32>().unwrap(), sent.contiguous.as_slice().unwrap());
    assert_eq!(received.contiguous.as_slice::<f32>().unwrap().as_ptr() as usize % 256, 0);
    assert_eq!(received.transposed, sent.transposed);
    assert_eq!(received.plain, sent.plain);
    assert_eq!(received.bytes.as_slice::<u8>().unwrap(), &sent.bytes[..]);
    assert_eq!(received.many, sent.many);
    assert_eq!(received.empty, sent.empty);
}

/// What was written. Every other call is not ready, and the others take at most `step` bytes.
pub struct SlowWriter {
    pub written: Vec<u8>,
    pub step: usize,
    pub is_vectored: bool,
    /// The lengths of the slices of each call that wrote something, and the addresses of the slices.
    pub calls: Vec<Vec<(usize, usize)>>,
    is_ready: bool,
}

impl SlowWriter {
    pub fn new(step: usize, is_vectored: bool) -> Self {
        Self { written: Vec::new(), step, is_vectored, calls: Vec::new(), is_ready: false }
    }
}

impl AsyncWrite for SlowWriter {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.is_ready = !self.is_ready;
        if self.is_ready {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let call = slices.iter().map(|slice| (slice.as_ptr() as usize, slice.len())).collect();
        self.calls.push(call);
        let mut left = self.step;
        for slice in slices {
            let len = slice.len().min(left);
            self.written.extend_from_slice(&slice[..len]);
            left -= len;
        }
        Poll::Ready(Ok(self.step - left))
    }

    fn is_write_vectored(&self) -> bool {
        self.is_vectored
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_ready = !self.is_ready;
        if self.is_ready {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Bytes to be read. Every other call is not ready, and the others give at most `step` bytes.
pub struct SlowReader<'a> {
    pub bytes: &'a [u8],
    pub step: usize,
    is_ready: bool,
}

impl<'a> SlowReader<'a> {
    pub fn new(bytes: &'a [u8], step: usize) -> Self {
        Self { bytes, step, is_ready: false }
    }
}

impl AsyncRead for SlowReader<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.is_ready = !self.is_ready;
        if self.is_ready {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let len = self.step.min(out.remaining()).min(self.bytes.len());
        let (now, rest) = self.bytes.split_at(len);
        out.put_slice(now);
        self.bytes = rest;
        Poll::Ready(Ok(()))
    }
}

/// Polls the future at most `times` times, and drops it.
pub fn poll_some<F: Future>(future: F, times: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    (0..times).find_map(|_| match future.as_mut().poll(&mut cx) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    })
}

/// Polls the future to its end. The streams here are ready when they are called again.
pub fn poll_all<F: Future>(future: F) -> F::Output {
    poll_some(future, usize::MAX).unwrap()
}
