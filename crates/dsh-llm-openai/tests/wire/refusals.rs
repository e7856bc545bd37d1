//! Answers that are no stream.

use std::time::Duration;

use dsh_llm::{ModelError, Retry};

use super::server::Server;
use super::{KEY, ask, config};

async fn refused(status: &str, headers: &str, body: &str) -> ModelError {
    let length = body.len();
    let server = Server::says(format!(
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    ));
    ask(config(&server.url())).await.unwrap_err()
}

#[tokio::test]
async fn statuses_are_classified_with_and_without_words() {
    let words = r#"{"error":{"message":"so it is","type":"x","code":"y"}}"#;
    for (status, code, passing) in [
        ("400 Bad Request", "INVALID_REQUEST", false),
        ("401 Unauthorized", "AUTH", false),
        ("402 Payment Required", "HTTP_402", false),
        ("403 Forbidden", "AUTH", false),
        ("404 Not Found", "HTTP_404", false),
        ("408 Request Timeout", "HTTP_408", true),
        ("429 Too Many Requests", "RATE_LIMIT", true),
        ("500 Internal Server Error", "SERVER", true),
        ("503 Service Unavailable", "SERVER", true),
        ("201 Created", "HTTP_201", false),
        ("304 Not Modified", "HTTP_304", false),
    ] {
        for body in ["", words] {
            if status.starts_with("304") && !body.is_empty() {
                continue;
            }
            let error = refused(status, "", body).await;
            assert_eq!(
                (&*error.code, error.retry != Retry::Never),
                (code, passing),
                "{error}"
            );
            assert!(error.message.contains(&format!("HTTP {status}")), "{error}");
            assert_eq!(error.message.contains("so it is"), !body.is_empty(), "{error}");
        }
    }
}

#[tokio::test]
async fn the_context_window_has_its_own_code() {
    let body = r#"{"error":{"message":"This model's maximum context length is 131072 tokens."}}"#;
    let error = refused("400 Bad Request", "", body).await;
    assert_eq!(
        (&*error.code, error.retry),
        ("CONTEXT_WINDOW_EXCEEDED", Retry::Never)
    );
}

#[tokio::test]
async fn the_wait_that_is_asked_for_is_told() {
    let error = refused("429 Too Many Requests", "Retry-After: 17\r\n", "").await;
    let after = Some(Duration::from_secs(17));
    assert_eq!(error.retry, Retry::Later { after });
    let error = refused("503 x", "retry-after: Fri, 31 Dec 1999 23:59:59 GMT\r\n", "").await;
    let after = Some(Duration::ZERO);
    assert_eq!(error.retry, Retry::Later { after });
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let elsewhere = Server::says("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    for status in [
        "301 Moved Permanently",
        "302 Found",
        "307 Temporary Redirect",
        "308 Permanent Redirect",
    ] {
        let location = format!("location: {}\r\n", elsewhere.url());
        let error = refused(status, &location, "").await;
        assert_eq!(error.code, format!("HTTP_{}", &status[..3]));
        assert_eq!(error.retry, Retry::Never);
        assert!(error.message.contains("not followed"), "{error}");
    }
    assert_eq!(elsewhere.requests(), [""; 0], "and the key went nowhere");
}

#[tokio::test]
async fn a_page_of_a_proxy_is_named() {
    let page = "<html><body>Sign in to the network</body></html>";
    let error = refused("200 OK", "content-type: text/html; charset=utf-8\r\n", page).await;
    assert_eq!((&*error.code, error.retry), ("MALFORMED_RESPONSE", Retry::Never));
    assert!(error.message.contains("text/html instead of a stream"), "{error}");
    let error = refused("502 Bad Gateway", "content-type: text/html\r\n", page).await;
    assert_eq!(error.code, "SERVER");
    assert!(error.message.contains("an HTML page"), "{error}");
}

#[tokio::test]
async fn json_instead_of_a_stream_is_told_by_what_it_says() {
    let json = "content-type: application/json\r\n";
    let error = refused("200 OK", json, r#"{"error":{"message":"slow down","code":429}}"#).await;
    assert_eq!(error.code, "RATE_LIMIT");
    assert!(error.message.ends_with("slow down"), "{error}");
    let error = refused("200 OK", json, r#"{"choices":[{"message":{"content":"a"}}]}"#).await;
    assert_eq!(error.code, "MALFORMED_RESPONSE");
}

#[tokio::test]
async fn a_compressed_answer_is_refused() {
    let headers = "content-type: text/event-stream\r\ncontent-encoding: gzip\r\n";
    let error = refused("200 OK", headers, "\u{1f}").await;
    assert_eq!((&*error.code, error.retry), ("MALFORMED_RESPONSE", Retry::Never));
    assert!(error.message.contains("gzip"), "{error}");
}

#[tokio::test]
async fn the_key_is_hidden_also_where_a_refusal_is_cut_within_it() {
    let room = (64 << 10) - 5;
    let body = format!("{}{KEY}", " ".repeat(room));
    let error = refused("401 Unauthorized", "", &body).await;
    assert!(!error.message.contains(&KEY[..3]), "{error}");
    let error = refused("401 Unauthorized", "", &format!("no: {KEY}")).await;
    assert!(error.message.contains("no: [key]"), "{error}");
}
