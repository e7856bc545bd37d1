use super::*;

fn refused(line: &[u8]) -> Vec<Value> {
    match read(line) {
        Incoming::Refused(answers) => answers,
        other => panic!("not refused: {other:?}"),
    }
}

fn one_refusal(line: &[u8]) -> (Value, i64, String) {
    let answers = refused(line);
    let [answer] = answers.as_slice() else {
        panic!("not one answer: {answers:?}")
    };
    let error = &answer["error"];
    (
        answer["id"].clone(),
        error["code"].as_i64().unwrap(),
        error["message"].as_str().unwrap().to_owned(),
    )
}

#[test]
fn what_is_no_json_is_a_parse_error_without_id() {
    for line in [
        &b"garbage"[..],
        b"{",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}",
        b"{\"a\":1}}",
        b"\x00",
    ] {
        let (id, code, _) = one_refusal(line);
        assert_eq!(
            (id, code),
            (Value::Null, -32700),
            "{}",
            String::from_utf8_lossy(line)
        );
    }
}

#[test]
fn what_is_no_request_is_an_invalid_request_with_the_id_if_it_has_one() {
    let cases = [
        ("1", Value::Null, "a message must be a JSON object"),
        ("\"text\"", Value::Null, "a message must be a JSON object"),
        ("{}", Value::Null, "\"jsonrpc\" must be \"2.0\""),
        (
            r#"{"id":7,"method":"ping"}"#,
            json!(7),
            "\"jsonrpc\" must be \"2.0\"",
        ),
        (
            r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#,
            json!(7),
            "\"jsonrpc\" must be \"2.0\"",
        ),
        (
            r#"{"jsonrpc":"2.0","id":"x"}"#,
            json!("x"),
            "\"method\" is missing",
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":3}"#,
            json!(7),
            "\"method\" must be a string",
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            Value::Null,
            "\"id\" must be a string or an integer",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            Value::Null,
            "\"id\" must be a string or an integer",
        ),
        (
            r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
            Value::Null,
            "\"id\" must be a string or an integer",
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[1]}"#,
            json!(7),
            "\"params\" must be an object",
        ),
    ];
    for (line, id, reason) in cases {
        assert_eq!(
            one_refusal(line.as_bytes()),
            (id, -32600, reason.to_owned()),
            "{line}"
        );
    }
}

#[test]
fn every_request_of_a_batch_is_refused_by_its_id() {
    let batch = br#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"},{"id":"b","method":"y"}]"#;
    let ids: Vec<_> = refused(batch).iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(ids, [json!(1), json!("b")]);
    for batch in [
        &b"[]"[..],
        b"[1,2]",
        br#"[{"method":"x"}]"#,
        br#"[{"id":1,"result":{}}]"#,
    ] {
        assert_eq!(one_refusal(batch).0, Value::Null);
    }
}

#[test]
fn nothing_is_answered_to_what_asks_nothing() {
    let silent = [
        "",
        "  \r",
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/unheard-of","params":[]}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}"#,
        r#"{"jsonrpc":"2.0","id":4,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"an echo of our own"}}"#,
    ];
    for line in silent {
        assert!(matches!(read(line.as_bytes()), Incoming::Nothing), "{line}");
    }
}

#[test]
fn a_cancellation_names_the_request() {
    let line =
        br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a","reason":"late"}}"#;
    assert!(matches!(read(line), Incoming::Cancel(id) if id == RequestId::String("a".into())));
}

#[test]
fn a_request_goes_on_under_our_id_also_behind_a_byte_order_mark_and_before_a_carriage_return() {
    let line = b"\xEF\xBB\xBF{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\"}\r";
    let Incoming::Request(request) = read(line) else {
        panic!("no request")
    };
    assert_eq!(
        (request.id.clone(), request.method.as_str()),
        (RequestId::String("a".into()), "ping")
    );
    let sent = serde_json::to_value(request.under(42).unwrap()).unwrap();
    assert_eq!(sent["id"], 42);
}
