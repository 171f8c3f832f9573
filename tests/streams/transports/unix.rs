//! One message to a datagram, over a Unix socket, which loses none.

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;

use tenarc::parts::Parts;

use super::support::{Model, Peer, TIMEOUT, model};
use tenarc_test_support::child;

const COUNT: usize = 20;

/// The most that is sent: well below what a socket's buffer takes by default.
const LIMIT: usize = 64 * 1024;

/// The other process: it sends messages, then parts, a piece to a datagram.
#[test]
fn child() {
    let Some((_, dir)) = child::role() else { return };
    let socket = UnixDatagram::unbound().unwrap();
    socket.set_write_timeout(Some(TIMEOUT)).unwrap();
    socket.connect(dir.join("socket")).unwrap();
    let send = |bytes: &[u8]| {
        assert!(bytes.len() <= LIMIT);
        assert_eq!(socket.send(bytes).unwrap(), bytes.len());
    };
    for number in 0..COUNT {
        send(&tenarc::to_vec(&model(number)).unwrap());
    }
    let parts = tenarc::to_parts(&model(COUNT)).unwrap();
    send(parts.metadata());
    parts.buffers().iter().for_each(|buffer| send(buffer));
}

#[test]
fn messages_and_pieces_of_parts_come_from_another_process() {
    let dir = tempfile::tempdir().unwrap();
    let socket = UnixDatagram::bind(dir.path().join("socket")).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    let peer = Peer::start("transports::unix::child", "", dir.path());
    let receive = || {
        let mut bytes = vec![0; LIMIT + 1];
        let len = socket.recv(&mut bytes).unwrap();
        assert!(len <= LIMIT);
        bytes.truncate(len);
        bytes
    };
    for number in 0..COUNT {
        assert_eq!(tenarc::from_slice::<Model>(&receive()).unwrap(), model(number));
    }
    let metadata = receive();
    let count = tenarc::parts::PartsInfo::new(&metadata[..]).unwrap().buffers().len();
    assert_eq!(count, 3);
    let buffers: Vec<_> = (0..count).map(|_| receive()).collect();
    let parts = Parts::new(metadata, buffers).unwrap();
    assert_eq!(parts.load::<Model>().unwrap(), model(COUNT));
    peer.succeeds();
}

/// The limit of the system is one of the whole datagram, and an error.
#[test]
fn what_no_datagram_holds_is_refused_by_the_system() {
    let (one, other) = UnixDatagram::pair().unwrap();
    let message = tenarc::to_vec(&vec![tenarc::Tensor(vec![1.0_f32; 4 << 20])]).unwrap();
    assert!(one.send(&message).is_err());
    other.set_nonblocking(true).unwrap();
    assert_eq!(other.recv(&mut [0; 10]).unwrap_err().kind(), ErrorKind::WouldBlock);
}
