use proptest::prelude::*;

use super::*;

fn events(pieces: &[&[u8]]) -> Result<Vec<String>, TooLong> {
    let mut decoder = Decoder::default();
    let mut events = Vec::new();
    for piece in pieces {
        decoder.push(Bytes::copy_from_slice(piece));
        while let Some(data) = decoder.next()? {
            events.push(String::from_utf8_lossy(&data).into_owned());
        }
    }
    Ok(events)
}

#[test]
fn lines_end_in_three_ways() {
    for end in ["\n", "\r", "\r\n"] {
        let stream = ["data: a", "data: b", "", "data: c", "", ""].join(end);
        assert_eq!(events(&[stream.as_bytes()]).unwrap(), ["a\nb", "c"], "{end:?}");
    }
}

#[test]
fn only_data_counts() {
    let stream = b": hello\nevent: x\nid: 7\ndata:a\ndata\ndata:  b\nretry: 1\ndatum: c\n\n\n\n: bye\n\n";
    assert_eq!(events(&[stream]).unwrap(), ["a\n\n b"]);
}

#[test]
fn a_byte_order_mark_is_skipped_at_the_start_only() {
    assert_eq!(events(&[b"\xEF\xBB\xBFdata: a\n\n"]).unwrap(), ["a"]);
    assert_eq!(events(&[b"\xEF", b"\xBB\xBF", b"data: a\n\n"]).unwrap(), ["a"]);
    assert_eq!(
        events(&[b"\n\xEF\xBB\xBFdata: a\n\n"]).unwrap(),
        Vec::<String>::new()
    );
}

#[test]
fn an_unfinished_event_is_none() {
    assert_eq!(
        events(&[b"data: a\n\ndata: b\n"]).unwrap(),
        ["a"],
        "its blank line never came"
    );
}

#[test]
fn floods_are_refused_before_they_are_kept() {
    let long = vec![b'x'; MAX_EVENT / 4];
    let endless_line: Vec<&[u8]> = std::iter::repeat_n(&*long, 5).collect();
    assert_eq!(events(&endless_line), Err(TooLong));

    let line = [b"data: ", &*long, b"\n"].concat();
    let endless_event: Vec<&[u8]> = std::iter::repeat_n(&*line, 5).collect();
    assert_eq!(events(&endless_event), Err(TooLong));

    let comment = [b": ", &*long, b"\n"].concat();
    let many_comments: Vec<&[u8]> = std::iter::repeat_n(&*comment, 9).collect();
    assert_eq!(events(&many_comments), Ok(Vec::new()), "skipped one by one");
}

fn piece() -> impl Strategy<Value = Vec<u8>> {
    let words: &[&[u8]] = &[
        b"data: {\"a\":1}",
        b"data",
        b"data:",
        b":",
        b" ",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"\xEF\xBB\xBF",
        b"event: x",
        "é".as_bytes(),
        b"\xFF",
    ];
    prop::sample::select(words.to_vec()).prop_map(<[u8]>::to_vec)
}

proptest! {
    #[test]
    fn any_split_gives_the_same_events(pieces in prop::collection::vec(piece(), 0..40), seed in any::<u64>()) {
        let stream = pieces.concat();
        let whole = events(&[&stream]).unwrap();
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        prop_assert_eq!(&events(&bytes).unwrap(), &whole);
        let size = usize::try_from(seed % 7).unwrap() + 2;
        let chunks: Vec<&[u8]> = stream.chunks(size).collect();
        prop_assert_eq!(&events(&chunks).unwrap(), &whole);
    }
}
