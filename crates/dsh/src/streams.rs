//! The standard streams, as they were handed over.

use std::os::fd::AsFd;

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
