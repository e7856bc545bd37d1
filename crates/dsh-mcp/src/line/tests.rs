use super::*;

async fn lines(input: &[u8], limit: usize) -> Vec<Line> {
    let mut reader = LineReader::new(input, limit);
    let mut lines = Vec::new();
    loop {
        let line = reader.next().await;
        let over = line == Line::End;
        lines.push(line);
        if over {
            return lines;
        }
    }
}

fn complete(text: &str) -> Line {
    Line::Complete(text.as_bytes().to_vec())
}

#[tokio::test]
async fn a_line_of_exactly_the_limit_passes_and_one_byte_more_does_not() {
    assert_eq!(
        lines(b"1234\n12345\nok\n", 4).await,
        [complete("1234"), Line::TooLong(None), complete("ok"), Line::End]
    );
}

#[tokio::test]
async fn an_overlong_line_is_refused_once_and_skipped_across_many_reads() {
    let mut input = vec![b'x'; 100_000];
    input.extend_from_slice(b"\nnext\n");
    assert_eq!(
        lines(&input, 10).await,
        [Line::TooLong(None), complete("next"), Line::End]
    );
}

#[tokio::test]
async fn an_overlong_request_is_known_by_its_id_wherever_that_stands() {
    let long = "x".repeat(50_000);
    let first = format!(r#"{{"id":1,"method":"m","params":{{"a":"{long}"}}}}"#);
    let last = format!(r#"{{"method":"m","params":{{"a":"{long}"}},"id":"two"}}"#);
    let input = format!("{first}\n{last}\n{first}");
    let (one, two) = (RequestId::Number(1), RequestId::String("two".into()));
    assert_eq!(
        lines(input.as_bytes(), 10_000).await,
        [Line::TooLong(Some(one)), Line::TooLong(Some(two)), Line::End]
    );
}

#[tokio::test]
async fn an_unfinished_last_line_is_dropped() {
    assert_eq!(
        lines(b"one\n\ntwo", 10).await,
        [complete("one"), complete(""), Line::End]
    );
}

#[tokio::test]
async fn a_line_survives_the_drop_of_the_future_that_read_half_of_it() {
    let (mut writer, reader) = tokio::io::duplex(64);
    let mut reader = LineReader::new(reader, 64);
    tokio::io::AsyncWriteExt::write_all(&mut writer, b"half")
        .await
        .unwrap();
    tokio::select! {
        biased;
        line = reader.next() => panic!("no line yet, got {line:?}"),
        () = tokio::task::yield_now() => {}
    }
    tokio::io::AsyncWriteExt::write_all(&mut writer, b" and half\n")
        .await
        .unwrap();
    assert_eq!(reader.next().await, complete("half and half"));
}
