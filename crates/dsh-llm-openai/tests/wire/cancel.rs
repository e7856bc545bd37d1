//! Cancelling closes the connection.

use std::io::Write;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};

use dsh_llm::{Chunk, FinishReason, ModelAdapter, ModelStream};
use dsh_llm_openai::OpenAiAdapter;
use dsh_testkit::{Gate, eventually};
use tokio_util::sync::CancellationToken;

use super::server::{STREAM, Server, is_closed, text};
use super::{config, request, soon};

/// Says `beginning`, then waits for the client to close. Tells whether it did.
fn waiting(beginning: String) -> (Server, OpenAiAdapter, Arc<Mutex<Receiver<bool>>>, Gate) {
    let (told, closed) = mpsc::channel();
    let asked = Gate::new();
    let gate = asked.clone();
    let server = Server::start(move |mut client| {
        client.write_all(beginning.as_bytes()).unwrap();
        gate.open();
        told.send(is_closed(&mut client)).unwrap();
    });
    let adapter = OpenAiAdapter::new(config(&server.url())).unwrap();
    (server, adapter, Arc::new(Mutex::new(closed)), asked)
}

async fn assert_closed(closed: &Mutex<Receiver<bool>>) {
    let mut seen = None;
    eventually("the server to see the connection closed", || {
        seen = closed.lock().unwrap().try_recv().ok();
        seen.is_some()
    })
    .await;
    assert_eq!(seen, Some(true));
}

async fn assert_aborted(mut stream: Box<dyn ModelStream>) {
    let aborted = Chunk::Finish(FinishReason::Aborted);
    assert_eq!(soon("the finish", stream.next()).await, Ok(Some(aborted)));
    assert_eq!(soon("the end", stream.next()).await, Ok(None));
}

#[tokio::test]
async fn dropping_an_unanswered_request_closes() {
    let (_server, adapter, closed, asked) = waiting(String::new());
    tokio::select! {
        _ = adapter.send(request(), CancellationToken::new()) => panic!("nobody answers"),
        () = asked.opened() => {}
    }
    assert_closed(&closed).await;
}

#[tokio::test]
async fn the_token_ends_an_unanswered_request() {
    let (_server, adapter, closed, asked) = waiting(String::new());
    let token = CancellationToken::new();
    let cancelling = async {
        asked.opened().await;
        token.cancel();
    };
    let sending = adapter.send(request(), token.clone());
    let (stream, ()) = soon("the cancel", async { tokio::join!(sending, cancelling) }).await;
    assert_aborted(stream.unwrap()).await;
    assert_closed(&closed).await;
}

#[tokio::test]
async fn dropping_a_stream_closes() {
    let (_server, adapter, closed, _) = waiting(format!("{STREAM}{}", text("a")));
    let mut stream = adapter.send(request(), CancellationToken::new()).await.unwrap();
    assert!(stream.next().await.unwrap().is_some());
    drop(stream);
    assert_closed(&closed).await;
}

#[tokio::test]
async fn the_token_ends_a_stream_that_waits() {
    let (_server, adapter, closed, _) = waiting(format!("{STREAM}{}", text("a")));
    let token = CancellationToken::new();
    let mut stream = adapter.send(request(), token.clone()).await.unwrap();
    assert!(stream.next().await.unwrap().is_some());
    let cancelling = async { token.cancel() };
    let (came, ()) = soon("the cancel", async { tokio::join!(stream.next(), cancelling) }).await;
    assert_eq!(came, Ok(Some(Chunk::Finish(FinishReason::Aborted))));
    assert_closed(&closed).await;
    assert_eq!(stream.next().await, Ok(None));
}

#[tokio::test]
async fn a_cancelled_stream_gives_nothing_that_it_still_has() {
    let (_server, adapter, closed, _) = waiting(format!("{STREAM}{}{}", text("a"), text("b")));
    let token = CancellationToken::new();
    let mut stream = adapter.send(request(), token.clone()).await.unwrap();
    assert!(stream.next().await.unwrap().is_some());
    token.cancel();
    assert_aborted(stream).await;
    assert_closed(&closed).await;
}

#[tokio::test]
async fn a_request_cancelled_before_it_is_sent_is_not_sent() {
    let (server, adapter, _, _) = waiting(String::new());
    let token = CancellationToken::new();
    token.cancel();
    assert_aborted(adapter.send(request(), token).await.unwrap()).await;
    assert_eq!(server.requests(), [""; 0]);
}
