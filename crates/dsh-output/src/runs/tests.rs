use super::*;

fn other(stream: Stream) -> Stream {
    match stream {
        Stream::Stdout => Stream::Stderr,
        Stream::Stderr => Stream::Stdout,
    }
}

#[test]
fn runs_of_one_stream_are_joined_and_clipped_to_the_wanted_range() {
    let mut runs = Runs::default();
    runs.push(Stream::Stdout, 4);
    runs.push(Stream::Stdout, 2);
    runs.push(Stream::Stderr, 3);
    let spans: Vec<Span> = runs.within(2..8).collect();
    assert_eq!(
        spans,
        [
            Span {
                range: 2..6,
                stream: Stream::Stdout
            },
            Span {
                range: 6..8,
                stream: Stream::Stderr
            }
        ]
    );
    assert_eq!(runs.within(9..20).count(), 0);
    assert_eq!(runs.within(3..3).count(), 0);
}

#[test]
fn alternating_one_byte_writes_stay_bounded_with_exact_tags_at_both_ends() {
    let mut runs = Runs::default();
    let mut stream = Stream::Stdout;
    const LEN: u64 = 1_000_000;
    for _ in 0..LEN {
        runs.push(stream, 1);
        stream = other(stream);
    }
    assert!(
        runs.runs.len() < MAX_RUNS && runs.runs.capacity() <= MAX_RUNS,
        "{}",
        runs.runs.capacity()
    );

    let spans: Vec<Span> = runs.within(0..LEN).collect();
    assert_eq!(
        spans
            .iter()
            .map(|span| span.range.end - span.range.start)
            .sum::<u64>(),
        LEN
    );
    for (index, span) in spans[..EXACT_HEAD].iter().enumerate() {
        let stream = if index % 2 == 0 {
            Stream::Stdout
        } else {
            Stream::Stderr
        };
        assert_eq!(
            *span,
            Span {
                range: index as u64..index as u64 + 1,
                stream
            }
        );
    }
    for span in &spans[spans.len() - EXACT_TAIL..] {
        let stream = if span.range.start % 2 == 0 {
            Stream::Stdout
        } else {
            Stream::Stderr
        };
        assert_eq!((span.range.end - span.range.start, span.stream), (1, stream));
    }
}

#[test]
fn a_merged_run_takes_the_name_of_the_longer_one() {
    let mut runs = Runs::default();
    for _ in 0..MAX_RUNS {
        runs.push(Stream::Stdout, 1);
        runs.push(Stream::Stderr, 9);
    }
    let middle: Vec<Span> = runs.within(20_000..30_000).collect();
    assert_eq!(
        middle,
        [Span {
            range: 20_000..30_000,
            stream: Stream::Stderr
        }]
    );
}
