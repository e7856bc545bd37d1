//! Any sequence of appends and reads against the bytes themselves.
#![expect(clippy::unwrap_used, reason = "a helper of tests fails its test")]

mod common;

use common::{in_memory, spilling};
use dsh_output::{LogReader, OutputLog, OutputSource, Rendering, Stream, render_for_model};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Append(Stream, Vec<u8>),
    Read { max: usize },
    Reread { from: usize, len: usize, max: usize },
}

/// A description of text that, cut into `chunks` anywhere, may be cut within characters.
fn steps(text: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Vec<Step>> {
    let stream = prop_oneof![Just(Stream::Stdout), Just(Stream::Stderr)];
    let step = prop_oneof![
        4 => (stream, text).prop_map(|(stream, bytes)| Step::Append(stream, bytes)),
        2 => (0_usize..80).prop_map(|max| Step::Read { max }),
        1 => (0_usize..200, 0_usize..80, 0_usize..80)
            .prop_map(|(from, len, max)| Step::Reread { from, len, max }),
    ];
    proptest::collection::vec(step, 1..40)
}

fn ascii() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(prop_oneof![10 => b'a'..=b'z', 1 => Just(b'\n')], 1..40)
}

/// Shown bytes, and `None` for each gap.
type Shown = Vec<Option<u8>>;

/// What an interleaved reader with a budget must say about `bytes[from..to]`, where `kept` says which bytes the log
/// can still show. ASCII only.
fn expected(bytes: &[u8], from: usize, to: usize, max: usize, kept: impl Fn(usize) -> bool) -> (Shown, u64) {
    let total = to - from;
    let (head, tail) = if total <= max {
        (total, 0)
    } else {
        (max / 2, max - max / 2)
    };
    let mut shown = Vec::new();
    let mut omitted = 0;
    for (index, &byte) in bytes.iter().enumerate().take(to).skip(from) {
        let within_budget = index < from + head || index >= to - tail;
        if within_budget && kept(index) {
            shown.push(Some(byte));
        } else {
            omitted += 1;
            if shown.last() != Some(&None) {
                shown.push(None);
            }
        }
    }
    (shown, omitted)
}

/// The text with every group of notes as one `None`, and the sum and positions the notes state.
fn parse(text: &str) -> (Shown, u64, Vec<[u64; 3]>) {
    let (mut shown, mut sum, mut filed) = (Vec::new(), 0, Vec::new());
    for line in text.split_inclusive('\n') {
        let Some(note) = line.strip_prefix('[') else {
            shown.extend(line.bytes().map(Some));
            continue;
        };
        let number: u64 = note.split(' ').next().unwrap().parse().unwrap();
        sum += number;
        if let Some((_, range)) = note.split_once(" bytes ").unwrap().1.split_once(" bytes ") {
            let (first, last) = range.trim_end().trim_end_matches(']').split_once('-').unwrap();
            filed.push([number, first.parse().unwrap(), last.parse().unwrap()]);
        }
        if shown.last() != Some(&None) {
            shown.push(None);
        }
    }
    (shown, sum, filed)
}

/// A newline that was only added to put a note on its own line is not output.
fn same(shown: &[Option<u8>], expected: &[Option<u8>]) -> bool {
    let mut shown = shown.iter().peekable();
    for want in expected {
        if want.is_none() && shown.peek() == Some(&&Some(b'\n')) {
            shown.next();
        }
        if shown.next() != Some(want) {
            return false;
        }
    }
    shown.next().is_none()
}

fn check(
    log: &OutputLog,
    reader: &LogReader,
    bytes: &[u8],
    (from, to, max): (usize, usize, usize),
    kept: impl Fn(usize) -> bool,
) -> Result<(), TestCaseError> {
    let read = reader.read_range(from as u64, to as u64, max);
    let (from, to) = (
        from.min(bytes.len()),
        to.min(bytes.len()).max(from.min(bytes.len())),
    );
    let (want, omitted) = expected(bytes, from, to, max, kept);
    let (shown, stated, filed) = parse(&read.text);
    prop_assert!(same(&shown, &want), "{:?} instead of {:?}", read.text, want);
    prop_assert_eq!((read.next, read.omitted, stated), (to as u64, omitted, omitted));
    for [number, first, last] in filed {
        prop_assert_eq!(last - first + 1, number);
        let file = std::fs::read(log.spill_path().unwrap()).unwrap();
        let range = usize::try_from(first).unwrap()..=usize::try_from(last).unwrap();
        prop_assert_eq!(&file[range.clone()], &bytes[range]);
    }
    Ok(())
}

fn run(log: &OutputLog, steps: Vec<Step>, memory: usize, cap: usize) -> Result<(), TestCaseError> {
    let reader = log.reader(Rendering::Interleaved);
    let mut bytes: Vec<u8> = Vec::new();
    let mut cursor = 0;
    for step in steps {
        let len = bytes.len();
        let file = log.spill_path().map_or(0, |_| len.min(cap));
        let head = memory / 2;
        let kept =
            |index: usize| index < head || index + (memory - head) >= len || len <= memory || index < file;
        match step {
            Step::Append(stream, chunk) => {
                log.append(stream, &chunk);
                bytes.extend(chunk);
            }
            Step::Read { max } => {
                // Two newlines of ours never meet: a text ending in one gets none added, so `same` is exact.
                check(log, &reader, &bytes, (cursor, usize::MAX, max), kept)?;
                cursor = len;
            }
            Step::Reread { from, len, max } => check(log, &reader, &bytes, (from, from + len, max), kept)?,
        }
        prop_assert_eq!(log.len(), bytes.len() as u64);
    }
    Ok(())
}

proptest! {
    #[test]
    fn replies_from_memory_are_exact(steps in steps(ascii()), memory in 0_usize..100) {
        run(&in_memory(memory), steps, memory, 0)?;
    }

    #[test]
    fn replies_from_memory_and_file_are_exact(steps in steps(ascii()), memory in 0_usize..60, cap in 1_usize..200) {
        let spilling = spilling(memory, cap as u64);
        run(&spilling.log, steps, memory, cap)?;
    }

    #[test]
    fn characters_survive_any_cut(
        stdout in "[aé€😀\n]{0,40}",
        stderr in "[bü₤🙂]{0,40}",
        cuts in proptest::collection::vec((any::<bool>(), 1_usize..7, any::<bool>()), 1..80),
        memory in 0_usize..60,
        rendering in prop_oneof![Just(Rendering::Sections), Just(Rendering::Interleaved)],
    ) {
        let spilling = spilling(memory, 10_000);
        let log = &spilling.log;
        let reader = log.reader(rendering);
        let (mut rest, mut cursor, mut text) = ([stdout.as_bytes(), stderr.as_bytes()], 0, String::new());
        let everything = [(false, usize::MAX, true), (true, usize::MAX, true)];
        for (index, (second, size, read)) in cuts.into_iter().chain(everything).enumerate() {
            let which = usize::from(second);
            let (chunk, later) = rest[which].split_at(size.min(rest[which].len()));
            rest[which] = later;
            log.append(if second { Stream::Stderr } else { Stream::Stdout }, chunk);
            if read && index % 2 == 0 {
                let read = reader.read_from(cursor, usize::MAX);
                prop_assert_eq!(read.omitted, 0);
                prop_assert!(log.len() - read.next < 4);
                text += &read.text;
                cursor = read.next;
            }
        }
        log.close();
        text += &reader.read_from(cursor, usize::MAX).text;
        let only = |of: &str, text: &str| -> String { text.chars().filter(|&c| of.contains(c)).collect() };
        prop_assert_eq!(only("aé€😀", &text), only("aé€😀", &stdout));
        prop_assert_eq!(only("bü₤🙂", &text), stderr);
        prop_assert!(!text.contains(char::REPLACEMENT_CHARACTER));
    }

    #[test]
    fn one_stream_in_chunks_reads_as_the_whole(
        bytes in proptest::collection::vec(prop_oneof![
            3 => b'a'..=b'e', 1 => Just(b'\n'), 3 => proptest::sample::select(b"\xe2\x82\xac\xf0\x9f\x98\x80\xc3\xff".to_vec())
        ], 0..200),
        sizes in proptest::collection::vec(1_usize..9, 200),
    ) {
        // Without terminal effects a reader with a cursor must see exactly the lossy text of the whole.
        let log = in_memory(1_000);
        let reader = log.reader(Rendering::Sections);
        let (mut rest, mut cursor, mut text) = (&bytes[..], 0, String::new());
        for size in sizes {
            let (chunk, later) = rest.split_at(size.min(rest.len()));
            rest = later;
            log.append(Stream::Stdout, chunk);
            let read = reader.read_from(cursor, 1_000);
            text += &read.text;
            cursor = read.next;
        }
        log.close();
        text += &reader.read_from(cursor, 1_000).text;
        prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn groups_of_complete_lines_render_as_the_whole(lines in proptest::collection::vec(
        proptest::collection::vec(prop_oneof![
            4 => any::<u8>(),
            4 => proptest::sample::select(b"\x1b\x1b[]012;mKG\r\r\x08\x07\\ab".to_vec()),
        ], 0..30), 0..12), split in 0_usize..12)
    {
        let join = |lines: &[Vec<u8>]| lines.iter().flat_map(|line| line.iter().copied().filter(|&b| b != b'\n').chain(*b"\n")).collect::<Vec<u8>>();
        let (first, second) = lines.split_at(split.min(lines.len()));
        let parts = render_for_model(&join(first)) + &render_for_model(&join(second));
        let whole = render_for_model(&join(&lines));
        prop_assert_eq!(&parts, &whole);
        prop_assert!(whole.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'));
        prop_assert_eq!(whole.matches('\n').count(), lines.len());
        prop_assert!(whole.len() <= 3 * join(&lines).len());
    }

    #[test]
    fn the_tail_keeps_its_limits(bytes in proptest::collection::vec(any::<u8>(), 0..600), lines in 0_usize..6, max in 0_usize..100) {
        let log = in_memory(200);
        log.append(Stream::Stdout, &bytes);
        let tail = log.reader(Rendering::Sections).tail(lines, max);
        prop_assert!(tail.len() <= max && tail.lines().count() <= lines);
    }
}
