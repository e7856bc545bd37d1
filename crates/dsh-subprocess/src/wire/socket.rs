//! Messages with descriptors over a socket pair.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recv, recvmsg, sendmsg, socketpair,
};

/// An order has the most: 0, 1, 2, directory, script, cgroup, its own text.
const DESCRIPTORS: usize = 7;

/// What there was to receive.
pub(crate) enum Received {
    /// A message and its descriptors.
    Message(Vec<u8>, Vec<OwnedFd>),
    /// No message now.
    Nothing,
    /// The other side is gone.
    End,
}

/// Two ends that speak to each other, both close-on-exec.
pub(crate) fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
}

/// Sends one message. Never waits: a socket holds far more than is ever under way.
pub(crate) fn send(socket: impl AsFd, message: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::INVAL);
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    loop {
        match sendmsg(&socket, &[IoSlice::new(message)], &mut ancillary, flags) {
            Err(Errno::INTR) => {}
            sent => return sent.map(drop),
        }
    }
}

/// Waits until there is something to receive. Apart from that, so that whoever waits holds no memory for what will come.
pub(crate) fn await_something(socket: impl AsFd) {
    let mut descriptors = [PollFd::new(&socket, PollFlags::IN)];
    while poll(&mut descriptors, None) == Err(Errno::INTR) {}
}

/// Receives one message. Never waits.
///
/// # Errors
///
/// `EMFILE` when there was no room for the descriptors of a message, which is lost then.
pub(crate) fn receive(socket: impl AsFd) -> Result<Received, Errno> {
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    // Where several threads receive from one socket, all messages are of one length.
    let mut message = match length(&socket, flags) {
        Ok(length) => vec![0; length],
        Err(Errno::AGAIN) => return Ok(Received::Nothing),
        Err(errno) => return Err(errno),
    };
    loop {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut buffers = [IoSliceMut::new(&mut message)];
        match recvmsg(&socket, &mut buffers, &mut ancillary, flags) {
            Ok(received) if received.bytes == 0 => return Ok(Received::End),
            Ok(received) => {
                let descriptors = descriptors(&mut ancillary);
                if received.flags.contains(ReturnFlags::CTRUNC) {
                    return Err(Errno::MFILE);
                }
                message.truncate(received.bytes);
                return Ok(Received::Message(message, descriptors));
            }
            // Somebody else took it.
            Err(Errno::AGAIN) => return Ok(Received::Nothing),
            Err(Errno::INTR | Errno::CONNRESET) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// How long the next message is; 0 at the end.
fn length(socket: impl AsFd, flags: RecvFlags) -> Result<usize, Errno> {
    let mut nothing = [0; 1];
    loop {
        match recv(&socket, &mut nothing, flags | RecvFlags::PEEK | RecvFlags::TRUNC) {
            // A peer that closed with something unread: told once, before the messages that wait.
            Err(Errno::INTR | Errno::CONNRESET) => {}
            told => return told.map(|(_, length)| length),
        }
    }
}

fn descriptors(ancillary: &mut RecvAncillaryBuffer<'_>) -> Vec<OwnedFd> {
    let rights = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    rights.flatten().collect()
}
