//! Sends values with tensors over `ZeroMQ` in two forms: as one message, or with a frame for each tensor.
//!
//! ```sh
//! cargo run --release -p tenarc-zeromq               # between two tasks
//! cargo run --release -p tenarc-zeromq -- python3    # with peer.py
//! ```
//!
//! The second command needs the Python packages in `tests/interop/python/requirements.txt`.
//!
//! Both sides must agree on the form, as one cannot see it from what is received: a value without large
//! tensors is a single frame in both. Here one side sends a value and the other answers with another,
//! first as messages, then in frames. Both sides compare what they receive with what they expect.

mod record;

use std::env;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use tenarc::parts::Parts;
use tokio::process::Command;
use zeromq::{RepSocket, ReqSocket, Socket, SocketRecv, SocketSend, ZmqMessage};

use record::Record;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[derive(Clone, Copy, Debug)]
enum Form {
    Message,
    Frames,
}

const FORMS: [Form; 2] = [Form::Message, Form::Frames];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut socket = RepSocket::new();
    let address = socket.bind("tcp://127.0.0.1:0").await?.to_string();
    if let Some(python) = env::args_os().nth(1) {
        let mut peer = Command::new(python);
        peer.args(["-B", concat!(env!("CARGO_MANIFEST_DIR"), "/peer.py"), &address]);
        let mut peer = peer.kill_on_drop(true).spawn()?;
        let ended = async {
            let status = peer.wait().await?;
            if status.success() { Ok(()) } else { Err(format!("peer.py: {status}").into()) }
        };
        tokio::try_join!(answer(socket), ended)?;
    } else {
        tokio::try_join!(answer(socket), ask(&address))?;
    }
    Ok(())
}

/// Receives a record in each form, and answers with another record in the same form.
async fn answer(mut socket: RepSocket) -> Result<()> {
    for form in FORMS {
        let received = in_time(socket.recv()).await?;
        println!("received as {form:?}: {}", Shown(&received));
        decode(received, form)?.compare(1)?;
        in_time(socket.send(encode(&Record::new(2), form)?)).await?;
    }
    Ok(())
}

async fn ask(address: &str) -> Result<()> {
    let mut socket = ReqSocket::new();
    in_time(socket.connect(address)).await?;
    for form in FORMS {
        in_time(socket.send(encode(&Record::new(1), form)?)).await?;
        let received = in_time(socket.recv()).await?;
        println!("answer as {form:?}: {}", Shown(&received));
        decode(received, form)?.compare(2)?;
    }
    Ok(())
}

async fn in_time<T>(wait: impl Future<Output = zeromq::ZmqResult<T>>) -> Result<T> {
    Ok(tokio::time::timeout(Duration::from_secs(30), wait).await??)
}

fn encode(record: &Record, form: Form) -> Result<ZmqMessage> {
    Ok(match form {
        Form::Message => tenarc::to_vec(record)?.into(),
        Form::Frames => {
            // The buffers become the frames, without a copy.
            let (metadata, buffers) = tenarc::to_parts(record)?.into_inner();
            let mut message = ZmqMessage::from(metadata);
            for buffer in buffers {
                message.push_back(Bytes::from_owner(buffer));
            }
            message
        }
    })
}

fn decode(message: ZmqMessage, form: Form) -> Result<Record> {
    let frames = message.into_vec();
    Ok(match (form, &frames[..]) {
        (Form::Message, [bytes]) => tenarc::from_slice(bytes)?,
        (Form::Frames, [metadata, buffers @ ..]) => Parts::new(&metadata[..], buffers)?.load()?,
        _ => return Err(format!("unexpected number of frames: {}", frames.len()).into()),
    })
}

/// Displays the lengths of a message's frames.
struct Shown<'a>(&'a ZmqMessage);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths: Vec<usize> = self.0.iter().map(Bytes::len).collect();
        write!(f, "{} frames of {lengths:?} bytes", lengths.len())
    }
}
