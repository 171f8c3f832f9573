//! A future that is dropped at any place loses nothing of the stream.

mod support;

use support::{Received, SlowReader, SlowWriter, assert_is, poll_all, poll_some, value};
use tenarc_tokio::{MessageCodec, PartsReader, PartsWriter};
use tokio_util::codec::{Framed, FramedRead};

/// The values that arrive, by their names.
fn names(bytes: &[u8]) -> Vec<String> {
    let mut reader = PartsReader::new(bytes);
    let mut names = Vec::new();
    while let Some(value) = poll_all(reader.recv::<Received>()).unwrap() {
        names.push(value.name);
    }
    names
}

#[test]
fn receiving_goes_on_where_it_was_dropped() {
    let values = [value(1, true), value(2, false), value(3, true)];
    let mut bytes = Vec::new();
    for value in &values {
        tenarc::to_parts(value).unwrap().write_to(&mut bytes).unwrap();
    }
    for step in [1, 7, 1000, usize::MAX] {
        let mut reader = PartsReader::new(SlowReader::new(&bytes, step));
        let mut received = Vec::new();
        let mut drops = 0;
        loop {
            // Each future is polled once.
            match poll_some(reader.recv::<Received>(), 1) {
                None => drops += 1,
                Some(result) => match result.unwrap() {
                    Some(value) => received.push(value),
                    None => break,
                },
            }
        }
        assert!(drops > 10);
        assert_eq!(received.len(), 3);
        received.iter().zip(&values).for_each(|(received, sent)| assert_is(received, sent));
    }
}

/// Runs `send` for the first value, drops it after each number of polls, and then sends the second one.
fn dropped_anywhere(
    step: usize,
    is_vectored: bool,
    send: impl Fn(&mut PartsWriter<SlowWriter>, usize) -> Option<tenarc::Result<()>>,
) {
    let mut times = 0;
    loop {
        let mut writer = PartsWriter::new(SlowWriter::new(step, is_vectored));
        let done = send(&mut writer, times);
        // Dropping again loses nothing either.
        for _ in 0..3 {
            assert!(poll_some(writer.flush(), 1).is_none_or(|result| result.is_ok()));
        }
        poll_all(writer.send_value(&value(2, false))).unwrap();
        let found = names(&writer.get_ref().written);
        let expected: &[&str] = if times == 0 { &["value 2"] } else { &["value 1", "value 2"] };
        assert_eq!(found, expected, "dropped after {times} polls");
        assert_eq!(writer.pending(), 0);
        if let Some(result) = done {
            result.unwrap();
            break;
        }
        times += 1;
    }
    assert!(times > 3);
}

#[test]
fn sending_parts_can_be_dropped_anywhere() {
    for (step, is_vectored) in [(3000, true), (3000, false), (50_000, true), (1 << 20, false)] {
        let parts = || tenarc::to_parts(&value(1, true)).unwrap();
        dropped_anywhere(step, is_vectored, |writer, times| poll_some(writer.send(parts()), times));
    }
}

#[test]
fn sending_a_value_can_be_dropped_anywhere() {
    for with_plain in [false, true] {
        let value = value(1, with_plain);
        for (step, is_vectored) in [(3000, true), (3000, false), (50_000, true), (1 << 20, false)] {
            dropped_anywhere(step, is_vectored, |writer, times| {
                poll_some(writer.send_value(&value), times)
            });
        }
    }
}

#[test]
fn nothing_is_sent_while_an_earlier_value_is_pending() {
    let mut writer = PartsWriter::new(SlowWriter::new(100, true));
    assert!(poll_some(writer.send_value(&value(1, true)), 2).is_none());
    let pending = writer.pending();
    assert!(pending > 0);
    // This future is dropped before it has taken its value.
    assert!(poll_some(writer.send_value(&value(9, true)), 2).is_none());
    assert!(writer.pending() < pending);
    poll_all(writer.send_value(&value(2, true))).unwrap();
    assert_eq!(names(&writer.get_ref().written), ["value 1", "value 2"]);
}

#[test]
fn frames_are_read_after_dropped_futures() {
    use futures::StreamExt;

    let mut bytes = Vec::new();
    for number in 0..5u32 {
        let message = tenarc::to_vec(&vec![number; 100]).unwrap();
        bytes.extend_from_slice(&u32::try_from(message.len()).unwrap().to_be_bytes());
        bytes.extend_from_slice(&message);
    }
    let mut frames = FramedRead::new(SlowReader::new(&bytes, 3), MessageCodec::<Vec<u32>>::new());
    let mut received = Vec::new();
    loop {
        match poll_some(frames.next(), 1) {
            None => {}
            Some(Some(value)) => received.push(value.unwrap()[0]),
            Some(None) => break,
        }
    }
    assert_eq!(received, [0, 1, 2, 3, 4]);
}

#[tokio::test]
async fn frames_are_sent_as_a_whole_or_not_at_all() {
    use futures::{SinkExt, StreamExt};

    for times in 0..30 {
        let (near, far) = tokio::io::duplex(16);
        let mut near = Framed::new(near, MessageCodec::<()>::new());
        let mut far = Framed::new(far, MessageCodec::<Vec<u8>>::new());
        let is_done = poll_some(near.send(vec![7u8; 100]), times).is_some();
        assert!(!is_done);
        let send = async {
            near.send(vec![8u8; 100]).await.unwrap();
            SinkExt::<()>::close(&mut near).await.unwrap();
        };
        let receive = async {
            let mut received = Vec::new();
            while let Some(value) = far.next().await {
                received.push(value.unwrap()[0]);
            }
            received
        };
        let ((), received) = tokio::join!(send, receive);
        assert_eq!(received, if times == 0 { vec![8] } else { vec![7, 8] });
    }
}
