use serde_json::json;

use super::*;

fn reporter() -> Reporter {
    Reporter::new("h".into(), Some(Secret::new("sk-1234\n")))
}

fn refused(status: u16, body: &str) -> ModelError {
    let status = StatusCode::from_u16(status).unwrap();
    reporter().refused(status, &HeaderMap::new(), body.as_bytes())
}

#[test]
fn a_status_becomes_a_code_and_says_whether_to_try_again() {
    for (status, code, passing) in [
        (302, "HTTP_302", false),
        (400, "INVALID_REQUEST", false),
        (401, "AUTH", false),
        (402, "HTTP_402", false),
        (403, "AUTH", false),
        (404, "HTTP_404", false),
        (408, "HTTP_408", true),
        (413, "HTTP_413", false),
        (422, "HTTP_422", false),
        (429, "RATE_LIMIT", true),
        (500, "SERVER", true),
        (503, "SERVER", true),
        (529, "SERVER", true),
    ] {
        let error = refused(status, "");
        assert_eq!(error.code, code);
        assert_eq!(error.retry != Retry::Never, passing, "{status}");
        assert!(
            error.message.starts_with(&format!("h: HTTP {status}")),
            "{}",
            error.message
        );
    }
}

#[test]
fn the_window_is_told_from_other_bad_requests() {
    for body in [
        r#"{"error":{"message":"too long","code":"context_length_exceeded"}}"#,
        r#"{"error":{"message":"This model's maximum context length is 65536 tokens."}}"#,
        r#"{"error":{"code":400,"type":"exceed_context_size_error","message":"no"}}"#,
    ] {
        assert_eq!(refused(400, body).code, "CONTEXT_WINDOW_EXCEEDED", "{body}");
    }
    assert_eq!(
        refused(400, r#"{"error":{"message":"no such tool"}}"#).code,
        "INVALID_REQUEST"
    );
}

#[test]
fn the_providers_words_are_found_wherever_they_are() {
    for (body, said) in [
        (r#"{"error":{"message":"a\n b"}}"#, "a b"),
        (r#"{"error":"a b"}"#, "a b"),
        (r#"{"message":"a b"}"#, "a b"),
        (r#"{"detail":"a b"}"#, "a b"),
        (r#"{"x":1}"#, r#"{"x":1}"#),
        ("a\r\n\r\n b ", "a b"),
        ("<!doctype html><p>a", "an HTML page, so not the API itself"),
    ] {
        let message = refused(404, body).message;
        assert_eq!(message, format!("h: HTTP 404 Not Found: {said}"), "{body}");
    }
    assert_eq!(refused(404, " ").message, "h: HTTP 404 Not Found");
}

#[test]
fn what_is_told_is_one_bounded_line() {
    let message = refused(500, &"é\u{7}\n".repeat(10_000)).message;
    assert!(!message.contains(char::is_control));
    assert_eq!(message.chars().count(), MAX_TOLD + "h: …".chars().count());
}

#[test]
fn the_key_is_hidden_also_when_it_is_echoed() {
    for body in [
        r#"{"error":{"message":"bad key sk-1234: Bearer sk-1234"}}"#,
        r#"{"error":{"message":"\u0073k-1234"}}"#,
        "sk-1234",
        r#"{"sk-1234":1}"#,
        "an é before SK-1234 and Sk-1234",
    ] {
        let message = refused(401, body).message;
        assert!(!message.contains("1234"), "{message}");
        assert!(message.contains("[key]"), "{message}");
    }
    let late = format!("{}sk-1234", "x".repeat(MAX_TOLD - 20));
    assert!(
        !refused(401, &late).message.contains("sk-"),
        "hidden before it is cut"
    );
    assert!(!format!("{:?}", reporter()).contains("1234"));
}

#[test]
fn a_missing_key_is_told_from_a_wrong_one() {
    let body = b"no";
    let without = Reporter::new("h".into(), None).refused(StatusCode::UNAUTHORIZED, &HeaderMap::new(), body);
    assert_eq!(
        without.message,
        "h: HTTP 401 Unauthorized: no (no API key was sent)"
    );
    assert_eq!(
        refused(401, "no").message,
        "h: HTTP 401 Unauthorized: no (check the API key)"
    );
}

#[test]
fn the_provider_says_when_to_come_back() {
    let after = |status: u16, value: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, value.parse().unwrap());
        let status = StatusCode::from_u16(status).unwrap();
        reporter().refused(status, &headers, b"").retry
    };
    let later = |seconds| Retry::Later {
        after: Some(Duration::from_secs(seconds)),
    };
    assert_eq!(after(429, "7"), later(7));
    assert_eq!(after(429, "99999999999999999999999"), later(u64::MAX));
    assert_eq!(after(503, " 0 "), later(0));
    assert_eq!(after(429, "Wed, 21 Oct 2015 07:28:00 GMT"), later(0));
    assert_eq!(after(429, "soon"), Retry::Later { after: None });
    assert_eq!(after(429, "-1"), Retry::Later { after: None });
    assert_eq!(after(404, "7"), Retry::Never);
    let soon = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(100));
    let Retry::Later { after: Some(wait) } = after(429, &soon) else {
        panic!("{soon}");
    };
    assert!((90..=100).contains(&wait.as_secs()), "{wait:?}");
}

#[test]
fn a_failure_within_a_stream_is_classified_by_its_words() {
    for (event, code, passing) in [
        (
            json!({"error": {"code": 429, "message": "m"}}),
            "RATE_LIMIT",
            true,
        ),
        (
            json!({"error": {"code": "429", "message": "m"}}),
            "RATE_LIMIT",
            true,
        ),
        (
            json!({"error": {"code": "rate_limit_exceeded", "message": "m"}}),
            "RATE_LIMIT",
            true,
        ),
        (
            json!({"error": {"type": "server_error", "message": "m"}}),
            "SERVER",
            true,
        ),
        (
            json!({"error": {"type": "invalid_request_error", "message": "m"}}),
            "INVALID_REQUEST",
            false,
        ),
        (
            json!({"error": {"code": "context_length_exceeded", "message": "m"}}),
            "CONTEXT_WINDOW_EXCEEDED",
            false,
        ),
        (
            json!({"error": {"type": "authentication_error", "message": "m"}}),
            "AUTH",
            false,
        ),
        (
            json!({"object": "error", "message": "m", "code": 400}),
            "INVALID_REQUEST",
            false,
        ),
        (json!({"error": "m"}), "SERVER", true),
    ] {
        let error = reporter().reported(&event);
        assert_eq!(
            (&*error.code, error.retry != Retry::Never),
            (code, passing),
            "{event}"
        );
        assert_eq!(error.message, "h: failed while answering: m", "{event}");
    }
}
