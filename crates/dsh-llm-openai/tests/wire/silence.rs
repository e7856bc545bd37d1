//! Servers that fall silent.

use std::io::{Read, Write};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use dsh_llm::{FinishReason, Retry};
use dsh_llm_openai::OpenAiConfig;

use super::server::{STREAM, Server, is_closed, stop, text};
use super::{ask, config, read, send, soon};

fn impatient(url: &str) -> OpenAiConfig {
    OpenAiConfig {
        idle_timeout: Duration::from_millis(200),
        ..config(url)
    }
}

#[tokio::test]
async fn silence_ends_the_request_wherever_it_falls() {
    let whole = format!("{STREAM}{}", text("a"));
    for silent_after in [
        0,
        5,
        STREAM.len() - 2,
        STREAM.len(),
        STREAM.len() + 9,
        whole.len(),
    ] {
        let beginning = whole[..silent_after].to_owned();
        let (told, closed) = mpsc::channel();
        let server = Server::start(move |mut client| {
            client.write_all(beginning.as_bytes()).unwrap();
            told.send(is_closed(&mut client)).unwrap();
        });
        let error = ask(impatient(&server.url())).await.unwrap_err();
        assert_eq!(
            (&*error.code, error.retry),
            ("IDLE_TIMEOUT", Retry::Later { after: None }),
            "after {silent_after}: {error}"
        );
        drop(server);
        assert_eq!(closed.recv(), Ok(true), "the connection is closed");
    }
}

#[tokio::test]
async fn any_byte_breaks_the_silence() {
    let server = Server::start(|mut client| {
        client.write_all(STREAM.as_bytes()).unwrap();
        client.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        for _ in 0..25 {
            client.write_all(b": keep-alive\n\n").unwrap();
            assert!(client.read(&mut [0]).is_err(), "the client is patient");
        }
        write!(client, "{}", stop()).unwrap();
    });
    let began = Instant::now();
    let config = OpenAiConfig {
        idle_timeout: Duration::from_secs(2),
        ..config(&server.url())
    };
    assert_eq!(ask(config).await.unwrap().finish, Some(FinishReason::Stop));
    assert!(
        began.elapsed() > Duration::from_secs(2),
        "longer than a silence may be"
    );
}

#[tokio::test]
async fn a_complete_answer_does_not_wait_for_its_formal_end() {
    let (told, closed) = mpsc::channel();
    let server = Server::start(move |mut client| {
        write!(client, "{STREAM}{}{}", text("a"), stop()).unwrap();
        told.send(is_closed(&mut client)).unwrap();
    });
    let answer = ask(impatient(&server.url())).await.unwrap();
    assert_eq!(answer.finish, Some(FinishReason::Stop));
    drop(server);
    assert_eq!(closed.recv(), Ok(true));
}

#[tokio::test]
async fn waits_that_are_given_up_count_together() {
    let server = Server::start(|mut client| {
        write!(client, "{STREAM}{}", text("a")).unwrap();
        is_closed(&mut client);
    });
    let mut stream = send(impatient(&server.url())).await.unwrap();
    assert!(stream.next().await.unwrap().is_some());
    let error = soon("the silence to be noticed", async {
        loop {
            let given_up = tokio::time::timeout(Duration::from_millis(10), stream.next()).await;
            if let Ok(came) = given_up {
                break came.unwrap_err();
            }
        }
    });
    assert_eq!(error.await.code, "IDLE_TIMEOUT");
}

#[tokio::test]
async fn a_slow_reader_is_no_silence() {
    let (release, goes_on) = mpsc::channel::<()>();
    let goes_on = Mutex::new(goes_on);
    let server = Server::start(move |mut client| {
        write!(client, "{STREAM}{}", text("a")).unwrap();
        goes_on.lock().unwrap().recv().unwrap();
        write!(client, "{}{}", text("b"), stop()).unwrap();
    });
    let mut stream = send(impatient(&server.url())).await.unwrap();
    assert!(stream.next().await.unwrap().is_some());
    // sleep: the time itself is what is tested: longer than any silence may be, and nobody reads.
    tokio::time::sleep(Duration::from_millis(500)).await;
    release.send(()).unwrap();
    let (answer, error) = read(stream).await;
    assert_eq!(error, None);
    assert_eq!(answer.content[0].as_text(), Some("b"));
}
