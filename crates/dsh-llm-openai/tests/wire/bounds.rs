//! Servers that never stop.

use std::io::Write;
use std::sync::mpsc;

use dsh_llm::{Chunk, ModelError};

use super::server::{CHUNKED, STREAM, Server, flood, text};
use super::{ask, config, send, soon};

/// What the sockets of both sides may hold besides what the client takes.
const SOCKETS: usize = 16 << 20;

/// Reads and forgets what a server floods it with after `head`. Gives the error, and how much the client took.
async fn flooded(head: &str, with: String) -> (ModelError, usize) {
    let head = head.to_owned();
    let (told, taken) = mpsc::channel();
    let server = Server::start(move |mut client| {
        client.write_all(head.as_bytes()).unwrap();
        told.send(flood(&mut client, with.as_bytes())).unwrap();
    });
    let error = match send(config(&server.url())).await {
        Ok(mut stream) => loop {
            match soon("a chunk", stream.next()).await {
                Ok(Some(Chunk::TextDelta { .. })) => {}
                Ok(other) => panic!("no answer can come of this: {other:?}"),
                Err(error) => break error,
            }
        },
        Err(error) => error,
    };
    drop(server);
    (error, taken.recv().unwrap())
}

#[tokio::test]
async fn an_endless_line_is_refused() {
    for head in [
        STREAM.to_owned(),
        format!("{STREAM}data: "),
        format!("{STREAM}: "),
    ] {
        let (error, taken) = flooded(&head, "x".repeat(1 << 16)).await;
        assert_eq!(error.code, "MALFORMED_RESPONSE", "{error}");
        assert!(taken < (4 << 20) + SOCKETS, "{taken}");
    }
}

#[tokio::test]
async fn an_endless_event_is_refused() {
    let (error, taken) = flooded(STREAM, "data: x\n".repeat(1 << 13)).await;
    assert_eq!(error.code, "MALFORMED_RESPONSE", "{error}");
    assert!(taken < (32 << 20) + SOCKETS, "{taken}");
}

#[tokio::test]
async fn an_endless_head_is_refused() {
    for (head, with) in [
        ("", "x".repeat(1 << 16)),
        ("HTTP/1.1 200 OK\r\nx: ", "x".repeat(1 << 16)),
        ("HTTP/1.1 200 OK\r\n", "x: y\r\n".repeat(1 << 13)),
        (
            "",
            "HTTP/1.1 100 Continue\r\nx: ".to_owned() + &"x".repeat(1 << 16),
        ),
    ] {
        let (error, taken) = flooded(head, with).await;
        assert_eq!(error.code, "MALFORMED_RESPONSE", "{error}");
        assert!(taken < SOCKETS, "{taken}");
    }
}

#[tokio::test]
async fn a_head_beyond_the_bound_is_refused_also_when_it_ends() {
    for (size, code) in [(60 << 10, "STREAM_CLOSED"), (200 << 10, "MALFORMED_RESPONSE")] {
        let value = "x".repeat(size);
        let head = STREAM.replacen("\r\n", &format!("\r\nx: {value}\r\n"), 1);
        let server = Server::says(head);
        assert_eq!(ask(config(&server.url())).await.unwrap_err().code, code);
    }
}

#[tokio::test]
async fn an_endless_refusal_is_read_in_part() {
    let head = "HTTP/1.1 503 Service Unavailable\r\n\r\n";
    let (error, taken) = flooded(head, "no ".repeat(1 << 13)).await;
    assert_eq!(error.code, "SERVER", "{error}");
    assert!(error.message.len() < 1000);
    assert!(taken < SOCKETS, "{taken}");
}

#[tokio::test]
async fn an_endless_chunk_size_is_refused() {
    let (error, taken) = flooded(&format!("{CHUNKED}1;"), "x".repeat(1 << 16)).await;
    assert!(
        ["MALFORMED_RESPONSE", "STREAM_CLOSED"].contains(&&*error.code),
        "{error}"
    );
    assert!(taken < SOCKETS, "{taken}");
}

#[tokio::test]
async fn an_endless_answer_is_refused() {
    let (error, taken) = flooded(STREAM, text(&"x".repeat(1 << 20))).await;
    assert_eq!(error.code, "MALFORMED_RESPONSE", "{error}");
    assert!(error.message.contains("longer than"), "{error}");
    assert!(taken < (34 << 20) + SOCKETS, "{taken}");
}
