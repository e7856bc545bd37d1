//! One request and its answer on a connection of their own.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use http_body_util::Full;
use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::http::response::Parts;
use hyper::{Request, Response};

use crate::connect::Connection;

/// The most bytes that are buffered at once. The head of an answer has to fit; what a read brings may exceed it once.
const MAX_BUFFER: usize = 64 << 10;

/// An answer whose head has come. Whoever reads it drives the connection; dropping it closes the socket at once.
pub(crate) struct Exchange {
    connection: Driver,
    body: Incoming,
}

/// The connection's own work; `None` once it is done.
struct Driver(Option<Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>>);

impl Exchange {
    /// Sends a request and waits for the head of the answer.
    pub(crate) async fn begin(
        connection: Connection,
        request: Request<Full<Bytes>>,
    ) -> hyper::Result<(Parts, Self)> {
        let mut builder = http1::Builder::new();
        builder.max_buf_size(MAX_BUFFER);
        let (mut sender, connection) = builder.handshake(connection).await?;
        let mut connection = Driver(Some(Box::pin(connection)));
        let mut answer = pin!(sender.send_request(request));
        let response: Response<Incoming> = poll_fn(|context| {
            connection.drive(context);
            answer.as_mut().poll(context)
        })
        .await?;
        let (head, body) = response.into_parts();
        Ok((head, Self { connection, body }))
    }

    /// The next bytes of the body; `None` at its end.
    ///
    /// Cancel safe: a dropped call loses nothing.
    pub(crate) async fn data(&mut self) -> Option<hyper::Result<Bytes>> {
        loop {
            let frame = poll_fn(|context| {
                self.connection.drive(context);
                Pin::new(&mut self.body).poll_frame(context)
            })
            .await?;
            match frame.map(|frame| frame.into_data()) {
                Ok(Ok(data)) if data.is_empty() => {}
                Ok(Ok(data)) => return Some(Ok(data)),
                Ok(Err(_trailers)) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl Driver {
    /// What the connection fails with reaches the request or the body, too, so it is not looked at here.
    fn drive(&mut self, context: &mut Context<'_>) {
        let Some(connection) = &mut self.0 else { return };
        if let Poll::Ready(_ended) = connection.as_mut().poll(context) {
            self.0 = None;
        }
    }
}
