//! The key is in nothing that anybody reads.

use std::io;
use std::sync::{Mutex, PoisonError};

use dsh_llm_openai::OpenAiAdapter;
use tracing_subscriber::filter::LevelFilter;

use super::server::{STREAM, Server, event, stop};
use super::{KEY, ask, config};

static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Log;

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
        log.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn the_key_is_in_no_log_debug_form_or_error() {
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_writer(|| Log)
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();

    let mut shown = String::new();
    let echo = format!(r#"{{"error":{{"message":"the key {KEY} is wrong","code":"{KEY}"}}}}"#);
    let length = echo.len();
    for answer in [
        format!("{STREAM}{}", stop()),
        format!("HTTP/1.1 401 Unauthorized\r\ncontent-length: {length}\r\n\r\n{echo}"),
        format!("HTTP/1.1 401 {KEY}\r\nx: {KEY}\r\ncontent-length: 0\r\n\r\n"),
        format!("HTTP/1.1 302 Found\r\nlocation: http://h/{KEY}\r\n\r\n"),
        format!("HTTP/1.1 200 OK\r\ncontent-type: text/{KEY}\r\n\r\n"),
        format!("HTTP/1.1 200 OK\r\ncontent-encoding: {KEY}\r\n\r\n"),
        format!("{STREAM}{}", event(&echo)),
        format!("{STREAM}{}", event(KEY)),
        format!("{STREAM}{}", event(&format!(r#"{{"choices":"{KEY}"}}"#))),
        format!(
            "{STREAM}{}",
            event(&format!(r#"{{"choices":[{{"finish_reason":"{KEY}"}}]}}"#))
        ),
        format!("{KEY}\r\n\r\n"),
    ] {
        let server = Server::says(answer);
        let config = config(&server.url());
        shown += &format!("{config:?} {:?}", OpenAiAdapter::new(config.clone()).unwrap());
        match ask(config).await {
            Ok(answer) => shown += &format!("{:?}", answer.finish),
            Err(error) => shown += &format!("{error} {error:?}"),
        }
        assert!(
            server.requests()[0].contains(KEY),
            "the test would see nothing if it were not sent"
        );
    }
    let in_any_case = |text: &str| text.to_ascii_lowercase().contains(&KEY.to_ascii_lowercase());
    assert!(!in_any_case(&shown), "{shown}");
    assert!(
        shown.contains("the key [key] is wrong"),
        "the echo was told: {shown}"
    );

    let log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    let log = String::from_utf8_lossy(&log);
    assert!(log.contains("asking a model"), "the log was captured");
    assert!(!in_any_case(&log), "{log}");
}
