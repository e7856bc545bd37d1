//! Panics of foreign code, turned into values.

use std::{
    any::Any,
    fmt,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// A panic that was contained. Its `Display` is the panic's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Panicked {
    text: String,
}

/// Runs foreign code and turns its panic into a value.
///
/// The caller must not go on using state that `run` may have left half changed.
///
/// # Errors
///
/// [`Panicked`] with the panic's text.
pub fn contain<T>(run: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|payload| Panicked {
        text: text_of(payload),
    })
}

/// Awaits a foreign future and turns its panic, also one while it is dropped after its end, into a value.
///
/// # Errors
///
/// [`Panicked`] with the panic's text.
///
/// # Cancel safety
///
/// Dropping this future drops the foreign one; a panic of that drop is not contained.
pub fn contain_future<F: Future>(future: F) -> impl Future<Output = Result<F::Output, Panicked>> {
    // Boxed here and not at the first poll: what is moved into a future has its place in it twice, and so in each
    // future around it.
    let mut future = Box::pin(future);
    async move {
        let output = poll_fn(|cx| match contain(|| future.as_mut().poll(cx)) {
            Ok(poll) => poll.map(Ok),
            Err(panicked) => std::task::Poll::Ready(Err(panicked)),
        })
        .await;
        contain(|| drop(future)).and(output)
    }
}

fn text_of(payload: Box<dyn Any + Send>) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        return (*text).to_owned();
    }
    match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(opaque) => {
            // Its drop is foreign code, too, and may panic again.
            std::mem::forget(opaque);
            "a panic without text".to_owned()
        }
    }
}

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Panicked {}
