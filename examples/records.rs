//! Writes and reads records of different kinds, one after the other, over a pipe.
//!
//! ```sh
//! cargo run --release --example records
//! ```
//!
//! One thread simulates a measuring instrument and writes to a pipe; the other reads each record as it
//! arrives. Any `io::Write` and `io::Read` would do: a file, a socket, a compressor. The stream is a
//! CBOR sequence (RFC 8742): one record follows directly on the other, and more can be appended.

use std::error::Error;
use std::f32::consts::TAU;
use std::io::{self, BufReader, BufWriter, Write};
use std::thread;

use ndarray::{Array2, Axis};
use serde::{Deserialize, Serialize};
use tenarc::Tensor;

#[derive(Serialize, Deserialize)]
enum Record {
    Header {
        instrument: String,
        channels: Vec<String>,
        rate_hz: u32,
    },
    /// Channels by readings, written as one block of bytes.
    Sample {
        second: u32,
        readings: Tensor<Array2<f32>>,
    },
    Log(Level, String),
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Level {
    Info,
    Warning,
}

const RATE_HZ: u32 = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    let (reader, writer) = io::pipe()?;
    let instrument = thread::spawn(move || measure(writer));
    let read = listen(BufReader::new(reader));
    let written = instrument.join().map_err(|_| "the instrument panicked")?;
    // If reading failed, report that error first: the writer's broken pipe follows from it.
    let (records, bytes) = read?;
    written?;
    println!("\n{records} records with {bytes} bytes of readings");
    Ok(())
}

/// Writes each record as soon as it is measured.
fn measure(stream: impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(stream);
    let mut write = |record: Record| tenarc::to_writer(&mut out, &record);

    write(Record::Header {
        instrument: "two tuning forks".into(),
        channels: vec!["left".into(), "right".into()],
        rate_hz: RATE_HZ,
    })?;
    write(Record::Log(Level::Info, "struck".into()))?;
    for second in 0..4 {
        let readings = record_second(second);
        let loudest = readings.fold(0.0_f32, |most, reading| most.max(reading.abs()));
        write(Record::Sample { second, readings: readings.into() })?;
        if loudest < 0.3 {
            let text = format!("faint: nothing above {loudest:.2}");
            write(Record::Log(Level::Warning, text))?;
        }
    }
    // Dropping the writer would flush it too, but ignore errors.
    out.flush()
}

/// Reads until the stream ends; returns the number of records and the bytes of readings.
fn listen(stream: impl io::Read) -> tenarc::Result<(usize, usize)> {
    let mut names = Vec::new();
    let (mut records, mut bytes) = (0, 0);
    for record in tenarc::Deserializer::from_reader(stream).into_iter::<Record>() {
        records += 1;
        match record? {
            Record::Header { instrument, channels, rate_hz } => {
                println!("Header   {instrument}, {rate_hz} readings a second");
                names = channels;
            }
            Record::Sample { second, readings } => {
                bytes += readings.len() * size_of::<f32>();
                let (channels, count) = readings.dim();
                print!("Sample   second {second}: {channels} x {count}, root mean square");
                for (name, channel) in names.iter().zip(readings.axis_iter(Axis(0))) {
                    print!("  {name} {:.3}", channel.pow2().mean().unwrap_or(0.0).sqrt());
                }
                println!();
            }
            Record::Log(level, text) => println!("{:<9}{text}", format!("{level:?}")),
        }
    }
    Ok((records, bytes))
}

/// Two decaying tones.
#[allow(clippy::cast_precision_loss)] // numbers below 2^24
fn record_second(second: u32) -> Array2<f32> {
    let tones = [(440.0, 0.5), (523.25, 0.9)];
    Array2::from_shape_fn((tones.len(), RATE_HZ as usize), |(channel, reading)| {
        let (pitch, decay) = tones[channel];
        let time = second as f32 + reading as f32 / RATE_HZ as f32;
        (-decay * time).exp() * (TAU * pitch * time).sin()
    })
}
