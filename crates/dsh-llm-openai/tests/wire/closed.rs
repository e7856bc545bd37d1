//! Connections that are not made, or end too early.

use std::io::Write;
use std::net::{Shutdown, TcpListener};
use std::sync::Mutex;

use dsh_llm::{ModelError, Retry};

use super::server::{CHUNKED, STREAM, Server, event, stop, text};
use super::{ask, config, read, send};

fn assert_passing(error: &ModelError, code: &str) {
    assert_eq!(
        (&*error.code, error.retry),
        (code, Retry::Later { after: None }),
        "{error}"
    );
}

/// Serves ever longer beginnings of `whole`.
fn cutting(whole: String) -> Server {
    let at = Mutex::new(0);
    Server::start(move |mut client| {
        let mut at = at.lock().unwrap();
        client.write_all(&whole.as_bytes()[..*at]).unwrap();
        client.shutdown(Shutdown::Both).unwrap();
        *at += 1;
    })
}

#[tokio::test]
async fn a_stream_cut_anywhere_before_its_reason_is_cut() {
    let (body, tail) = (text("a") + &stop(), event("[DONE]"));
    let size = body.len() + tail.len();
    let with_length =
        format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {size}\r\n\r\n");
    let in_chunks = [
        format!("{CHUNKED}{:x}\r\n{body}", body.len()),
        format!("\r\n{:x}\r\n{tail}\r\n0\r\n\r\n", tail.len()),
    ];
    let forms = [
        [format!("{STREAM}{body}"), tail.clone()],
        [format!("{with_length}{body}"), tail],
        in_chunks,
    ];
    for [needed, rest] in forms {
        let server = cutting(format!("{needed}{rest}"));
        for cut in 0..=needed.len() + rest.len() {
            match ask(config(&server.url())).await {
                Ok(answer) => {
                    assert!(cut >= needed.len(), "cut at {cut} and taken for whole");
                    assert_eq!(answer.content[0].as_text(), Some("a"));
                }
                Err(error) => {
                    assert!(cut < needed.len(), "cut at {cut}, after the reason: {error}");
                    assert_passing(&error, "STREAM_CLOSED");
                }
            }
        }
    }
}

#[tokio::test]
async fn done_without_a_reason_is_cut() {
    let server = Server::says(format!("{STREAM}{}{}", text("a"), event("[DONE]")));
    let (answer, error) = read(send(config(&server.url())).await.unwrap()).await;
    assert_eq!(answer.content[0].as_text(), Some("a"));
    assert_passing(&error.unwrap(), "STREAM_CLOSED");
}

#[tokio::test]
async fn nobody_there_can_be_tried_again() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = ask(config(&format!("http://{nobody}"))).await.unwrap_err();
    assert_passing(&error, "CONNECT");
    assert!(error.message.contains(&nobody.to_string()), "{error}");
    assert!(error.message.contains("refused"), "{error}");
}

#[tokio::test]
async fn what_is_no_http_is_malformed() {
    for answer in [
        "SSH-2.0-OpenSSH_9.9\r\n",
        "HTTP/1.1 two hundred\r\n\r\n",
        "\0\0\0\0\r\n\r\n",
    ] {
        let server = Server::says(answer);
        let error = ask(config(&server.url())).await.unwrap_err();
        assert_passing(&error, "MALFORMED_RESPONSE");
    }
    let server = Server::says(format!("{CHUNKED}zz\r\n"));
    let error = ask(config(&server.url())).await.unwrap_err();
    assert!(
        ["MALFORMED_RESPONSE", "STREAM_CLOSED"].contains(&&*error.code),
        "{error}"
    );
}

#[tokio::test]
async fn what_is_no_json_is_malformed() {
    for broken in ["{", "hello", "{\"choices\":[{\"delta\":{\"content\":7}}]}"] {
        let server = Server::says(format!("{STREAM}{}{}", event(broken), stop()));
        let error = ask(config(&server.url())).await.unwrap_err();
        assert_passing(&error, "MALFORMED_RESPONSE");
    }
}
