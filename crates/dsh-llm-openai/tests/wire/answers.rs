//! Answers as they should be.

use std::io::Write;
use std::sync::Mutex;
use std::sync::mpsc;

use dsh_llm::{Answer, AssistantBlock, CallId, FinishReason, ModelAdapter, ToolCall, Usage};
use dsh_llm_openai::OpenAiAdapter;
use tokio_util::sync::CancellationToken;

use super::server::{CHUNKED, STREAM, Server, event, stop, text};
use super::{ask, config, read, request, send, soon};

/// All that an answer can have, in the forms that DeepSeek gives it.
fn everything() -> String {
    [
        ": keep-alive\n\n".to_owned(),
        event(r#"{"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":null,"reasoning_content":""},"logprobs":null,"finish_reason":null}],"usage":null}"#),
        event(r#"{"choices":[{"index":0,"delta":{"content":null,"reasoning_content":"hm\n"}}]}"#),
        event(r#"{"choices":[{"index":0,"delta":{"content":"é","reasoning_content":null}}]}"#),
        event(r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"bash","arguments":""}}]}}]}"#),
        event(r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":"}}]}}]}"#),
        event(r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}},{"index":1,"id":"b","function":{"name":"bash","arguments":"{}"}}]}}]}"#),
        event(r#"{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_cache_hit_tokens":4}}"#),
        event("[DONE]"),
    ]
    .concat()
}

fn assert_everything(answer: &Answer) {
    let call = |id: &str, arguments: &str| {
        AssistantBlock::ToolCall(ToolCall {
            id: CallId::new(id),
            name: "bash".into(),
            arguments: arguments.into(),
        })
    };
    let reasoning = AssistantBlock::Reasoning { text: "hm\n".into() };
    let text = AssistantBlock::Text { text: "é".into() };
    assert_eq!(
        answer.content,
        [reasoning, text, call("a", "{\"x\":1}"), call("b", "{}")]
    );
    let usage = Usage {
        input_tokens: 5,
        cache_read_tokens: 4,
        output_tokens: 2,
    };
    assert_eq!(answer.usage, Some(usage));
    assert_eq!(answer.finish, Some(FinishReason::ToolCalls));
}

#[tokio::test]
async fn all_of_an_answer_arrives() {
    let server = Server::says(format!("{STREAM}{}", everything()));
    assert_everything(&ask(config(&server.url())).await.unwrap());
}

#[tokio::test]
async fn an_answer_in_single_bytes_is_the_same() {
    let bytes = everything().into_bytes();
    let chunks: Vec<u8> = bytes
        .iter()
        .flat_map(|byte| [b"1\r\n", &[*byte] as &[u8], b"\r\n"].concat())
        .collect();
    let server = Server::says([CHUNKED.as_bytes(), &chunks, b"0\r\n\r\n"].concat());
    assert_everything(&ask(config(&server.url())).await.unwrap());
}

#[tokio::test]
async fn an_answer_split_at_every_byte_is_the_same() {
    let whole = format!("{STREAM}{}", everything());
    let length = whole.len();
    let at = Mutex::new(0);
    let (told, mut wrote) = tokio::sync::mpsc::unbounded_channel();
    let (next, may_go_on) = mpsc::channel::<()>();
    let may_go_on = Mutex::new(may_go_on);
    let server = Server::start(move |mut client| {
        let split = {
            let mut at = at.lock().unwrap();
            *at += 1;
            *at - 1
        };
        client.write_all(&whole.as_bytes()[..split]).unwrap();
        told.send(()).unwrap();
        may_go_on.lock().unwrap().recv().unwrap();
        client.write_all(&whole.as_bytes()[split..]).unwrap();
    });
    let adapter = OpenAiAdapter::new(config(&server.url())).unwrap();
    for split in 0..length {
        let answering = async {
            let sent = adapter.send(request(), CancellationToken::new()).await;
            read(sent.unwrap()).await
        };
        // The first part was written: the client reads it before the second part comes.
        let releasing = async {
            wrote.recv().await.unwrap();
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            next.send(()).unwrap();
        };
        let ((answer, error), ()) = soon("an answer", async { tokio::join!(answering, releasing) }).await;
        assert_eq!(error, None, "split at {split}");
        assert_everything(&answer);
    }
}

#[tokio::test]
async fn what_comes_before_a_failure_is_given_before_it() {
    let failure = event(r#"{"error":{"message":"overloaded","code":503}}"#);
    let server = Server::says(format!("{STREAM}{}{failure}{}", text("a"), text("b")));
    let (answer, error) = read(send(config(&server.url())).await.unwrap()).await;
    assert_eq!(answer.content[0].as_text(), Some("a"));
    let error = error.unwrap();
    assert_eq!(error.code, "SERVER");
    assert!(
        error.message.ends_with("failed while answering: overloaded"),
        "{error}"
    );
}

#[tokio::test]
async fn two_streams_at_once_are_two() {
    let (release, first_goes_on) = mpsc::channel::<()>();
    let first_goes_on = Mutex::new(Some(first_goes_on));
    let server = Server::start(move |mut client| {
        let waits = first_goes_on.lock().unwrap().take();
        let name = if waits.is_some() { "first" } else { "second" };
        write!(client, "{STREAM}{}", text(name)).unwrap();
        if let Some(waits) = waits {
            waits.recv().unwrap();
        }
        let _ = write!(client, "{}{}", text(" ended"), stop());
    });
    let adapter = OpenAiAdapter::new(config(&server.url())).unwrap();
    let open = || async {
        let sent = adapter.send(request(), CancellationToken::new()).await;
        sent.unwrap()
    };
    let first = open().await;
    let (second, error) = read(open().await).await;
    assert_eq!(error, None);
    assert_eq!(second.content[0].as_text(), Some("second ended"));
    release.send(()).unwrap();
    let (first, error) = read(first).await;
    assert_eq!(error, None);
    assert_eq!(first.content[0].as_text(), Some("first ended"));
}
