//! Decodes a message to views: strings and tensors that borrow from the received bytes.
//!
//! ```sh
//! cargo run --release --example views
//! ```
//!
//! Rust requires the address of an `f32` to be a multiple of four. A message has no padding, so the
//! payload of a tensor starts wherever the bytes before it end. Whether a view is possible depends on
//! the address of the message in memory. This example decodes one message at four different addresses.

use std::error::Error;

use ndarray::{Array2, ArrayView2, CowArray, Ix2};
use serde::{Deserialize, Serialize};
use tenarc::Tensor;

/// What is sent.
#[derive(Serialize)]
struct Frame {
    camera: String,
    mask: Tensor<Array2<u8>>,
    depth: Tensor<Array2<f32>>,
}

/// Never copies: an unaligned payload is an error.
#[derive(Deserialize)]
struct FrameView<'a> {
    camera: &'a str,
    /// serde borrows `&str` without an attribute; other types need `#[serde(borrow)]`.
    #[serde(borrow)]
    mask: Tensor<ArrayView2<'a, u8>>,
    #[serde(borrow)]
    depth: Tensor<ArrayView2<'a, f32>>,
}

/// Copies only if necessary: an unaligned payload becomes an owned array.
#[derive(Deserialize)]
struct FrameCow<'a> {
    camera: &'a str,
    #[serde(borrow)]
    mask: Tensor<CowArray<'a, u8, Ix2>>,
    #[serde(borrow)]
    depth: Tensor<CowArray<'a, f32, Ix2>>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let (rows, columns) = (480, 640);
    #[allow(clippy::cast_precision_loss)] // numbers below 2^24
    let depth = Array2::from_shape_fn((rows, columns), |(y, x)| 1.0 + (x * y) as f32 * 1e-5);
    let frame = Frame {
        camera: "left".into(),
        mask: depth.mapv(|metres| u8::from(metres < 2.0)).into(),
        depth: depth.into(),
    };
    let message = tenarc::to_vec(&frame)?;
    println!(
        "A message of {} bytes: a string, {rows} x {columns} u8 and {rows} x {columns} f32\n",
        message.len()
    );

    for shift in 0..align_of::<f32>() {
        let (buffer, start) = at_shift(&message, shift);
        let received = &buffer[start..];
        println!("At an address that is a multiple of {} plus {shift}:", align_of::<f32>());

        match tenarc::from_slice::<FrameView>(received) {
            Ok(frame) => {
                assert!(lies_in(received, frame.camera.as_bytes().as_ptr()));
                assert!(lies_in(received, frame.mask.as_ptr()));
                assert!(lies_in(received, frame.depth.as_ptr().cast()));
                println!("  ArrayView  everything is borrowed; {}", summary(&frame.depth));
            }
            Err(error) => println!("  ArrayView  {}", indented(&error.to_string())),
        }

        let frame: FrameCow = tenarc::from_slice(received)?;
        assert!(lies_in(received, frame.camera.as_bytes().as_ptr()));
        assert!(frame.mask.is_view(), "u8 has no alignment");
        assert_eq!(frame.depth.is_view(), lies_in(received, frame.depth.as_ptr().cast()));
        let how = if frame.depth.is_view() { "borrowed" } else { "copied" };
        println!("  CowArray   depth is {how}; {}\n", summary(&frame.depth.view()));
    }
    Ok(())
}

fn summary(depth: &ArrayView2<f32>) -> String {
    format!("mean depth {:.3} m", depth.mean().unwrap_or(f32::NAN))
}

/// Breaks a message into lines that fit a terminal.
fn indented(message: &str) -> String {
    let mut text = String::new();
    let mut column = 0;
    for word in message.split(' ') {
        if column > 0 && column + word.len() > 66 {
            text.push_str("\n            ");
            column = 0;
        }
        text.push(' ');
        text.push_str(word);
        column += word.len() + 1;
    }
    text.trim_start().to_owned()
}

/// Copies the message into a buffer, so that it starts `shift` bytes after a multiple of the alignment of
/// `f32`. Returns the buffer and the position of the message. A program that receives messages can choose
/// the address in the same way.
fn at_shift(message: &[u8], shift: usize) -> (Vec<u8>, usize) {
    let align = align_of::<f32>();
    let mut buffer = vec![0; message.len() + 2 * align];
    let start = buffer.as_ptr().align_offset(align) + shift;
    buffer[start..start + message.len()].copy_from_slice(message);
    buffer.truncate(start + message.len());
    (buffer, start)
}

fn lies_in(slice: &[u8], place: *const u8) -> bool {
    slice.as_ptr_range().contains(&place)
}
