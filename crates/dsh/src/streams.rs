//! The standard streams, as they were handed over.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::os::fd::AsFd;

use dsh_output::visible;
use rustix::fs::OFlags;

/// Makes a stream a blocking one. Whoever started this process may have handed over its own, non-blocking; streams are
/// read and written on threads that would take "try again" for the end.
pub(crate) fn block(stream: impl AsFd) -> std::io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(&stream)?;
    if flags.contains(OFlags::NONBLOCK) {
        rustix::fs::fcntl_setfl(&stream, flags - OFlags::NONBLOCK)?;
    }
    Ok(())
}

/// The text as this stream gets it: a terminal shows what others wrote, and obeys none of it; elsewhere every byte is what
/// it was.
pub(crate) fn shown<'a>(stream: &impl IsTerminal, text: &'a str) -> Cow<'a, str> {
    match stream.is_terminal() {
        true => visible(text),
        false => Cow::Borrowed(text),
    }
}
