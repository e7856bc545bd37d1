use tokio_util::bytes::BytesMut;
use tokio_util::codec::Decoder;

use super::*;

fn lines(bytes: &[u8]) -> Vec<Line> {
    let mut decoder = LineDecoder::new(8);
    let mut all = Vec::new();
    let mut buffer = BytesMut::new();
    // Byte by byte, as a pipe may give them.
    for byte in bytes {
        buffer.extend_from_slice(&[*byte]);
        while let Some(line) = decoder.decode(&mut buffer).unwrap() {
            all.push(line);
        }
    }
    while let Some(line) = decoder.decode_eof(&mut buffer).unwrap() {
        all.push(line);
    }
    all
}

fn complete(line: &str) -> Line {
    Line::Complete(line.to_owned())
}

#[test]
fn lines_end_with_a_newline_or_are_none() {
    assert_eq!(
        lines(b"one\r\ntwo\n\nrest"),
        [complete("one"), complete("two"), complete("")]
    );
}

#[test]
fn a_bad_line_does_not_end_the_stream() {
    let expected = [Line::TooLong, complete("ok"), Line::NotText, complete("on")];
    assert_eq!(lines(b"0123456789abcdef\nok\n\xff\xfe\non\n"), expected);
}
