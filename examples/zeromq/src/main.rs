//! Values with tensors over `ZeroMQ`: each in one message, and each in frames, a tensor to a frame.
//!
//! ```sh
//! cargo run --release -p tenarc-zeromq               # between two tasks
//! cargo run --release -p tenarc-zeromq -- python3    # the other side is peer.py
//! ```
//!
//! For the second, that Python needs what `tests/interop/python/requirements.txt` lists. Which form
//! comes is agreed on: a value without large tensors is one frame in both. Here a value goes over and
//! another comes back, first each as a message, then each in frames, and both sides compare them.

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

/// Takes a record in each form, and answers with another in the same.
async fn answer(mut socket: RepSocket) -> Result<()> {
    for form in FORMS {
        let received = in_time(socket.recv()).await?;
        println!("{form:?} from the other side: {}", Shown(&received));
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
        println!("{form:?} in answer: {}", Shown(&received));
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
            // The frames take over the buffers; no byte of them is copied again here.
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
        _ => return Err(format!("{} frames", frames.len()).into()),
    })
}

/// The frames of a message by their lengths.
struct Shown<'a>(&'a ZmqMessage);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths: Vec<usize> = self.0.iter().map(Bytes::len).collect();
        write!(f, "{} of {lengths:?} bytes", lengths.len())
    }
}
