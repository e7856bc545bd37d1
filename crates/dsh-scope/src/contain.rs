//! Panics of foreign code, turned into values.

use std::{
    any::Any,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;

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
pub fn contain_future<F: Future>(future: F) -> Contained<Pin<Box<F>>> {
    // What is moved into a future has its place in it twice, and so in each future around it: boxed, that is a pointer.
    contain_boxed(Box::pin(future))
}

/// The same as [`contain_future`] for a future that is boxed already.
pub fn contain_boxed<F: Future + ?Sized>(future: Pin<Box<F>>) -> Contained<Pin<Box<F>>> {
    Contained::new(future)
}

pin_project! {
    /// What [`contain_future`] returns.
    #[must_use = "futures do nothing unless polled"]
    pub struct Contained<F> {
        // Nothing once it has ended.
        #[pin]
        future: Option<F>,
    }
}

impl<F: Future> Contained<F> {
    /// Contains a future where it is.
    pub(crate) fn new(future: F) -> Self {
        Self { future: Some(future) }
    }
}

impl<F: Future> Future for Contained<F> {
    type Output = Result<F::Output, Panicked>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut place = self.project().future;
        let Some(future) = place.as_mut().as_pin_mut() else {
            return Poll::Pending;
        };
        let output = match contain(|| future.poll(cx)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Ok(output),
            Err(panicked) => Err(panicked),
        };
        Poll::Ready(contain(|| place.set(None)).and(output))
    }
}

impl<F> fmt::Debug for Contained<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contained").finish_non_exhaustive()
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
