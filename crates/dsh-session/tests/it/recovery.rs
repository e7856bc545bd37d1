//! What a crash leaves behind, made whole.

use std::fs;

use dsh_session::{Durability, Enclosure, EventData, Repair, Session, SessionFile, TurnEnd};
use proptest::prelude::*;

use crate::support::*;

fn opened(room: &Room, bytes: &[u8]) -> (Option<Repair>, Session) {
    write(&room.path(), bytes);
    let file = SessionFile::open(room.path()).unwrap();
    (file.repair(), Session::persisted(file))
}

fn data(session: &Session) -> Vec<EventData> {
    session.events().into_iter().map(|event| event.data).collect()
}

fn recovered(log: Vec<EventData>) -> Vec<EventData> {
    let before = log.len();
    let room = Room::new();
    let (repair, session) = opened(&room, &file_of(&numbered(log.clone())));
    let events = session.events();
    assert_eq!(
        repair,
        Some(Repair {
            torn_bytes: 0,
            closers: events.len() - before
        })
    );
    assert!(
        events[before..]
            .iter()
            .all(|event| event.time == events[before - 1].time)
    );
    let mut all = data(&session);
    assert_eq!(all[..before], log);
    all.split_off(before)
}

#[test]
fn core57_a_turn_without_a_step_is_ended() {
    assert_eq!(recovered(vec![turn_start(7), said("x")]), [interrupted(7)]);
}

#[test]
fn core57_an_open_step_is_ended() {
    let expected = [step_end(1, 1), interrupted(1)];
    assert_eq!(recovered(vec![turn_start(1), step_start(1, 1)]), expected);
}

#[test]
fn core57_each_call_without_a_result_gets_one() {
    let mut log = vec![
        turn_start(1),
        step_start(1, 1),
        answer(vec![call("c1"), call("c2"), call("c3")]),
        tool_call("c2"),
    ];
    let end = [step_end(1, 1), interrupted(1)];
    let results = ["c1", "c2", "c3"].map(crash_result);
    assert_eq!(recovered(log.clone()), [&results[..], &end].concat());
    log.push(tool_result("c2", "x"));
    let results = ["c1", "c3"].map(crash_result);
    assert_eq!(recovered(log), [&results[..], &end].concat());
}

#[test]
fn a_log_that_is_whole_is_left_alone() {
    let room = Room::new();
    let bytes = file_of(&numbered(whole_log()));
    let (repair, session) = opened(&room, &bytes);
    assert_eq!(repair, None);
    block_on(session.flush(Durability::Synced)).unwrap();
    assert_eq!(fs::read(room.path()).unwrap(), bytes);
}

#[test]
fn looking_changes_nothing() {
    let room = Room::new();
    let mut bytes = file_of(&numbered(vec![turn_start(1)]));
    bytes.extend(b"{\"type\":\"user/mess");
    let (repair, session) = opened(&room, &bytes);
    assert_eq!(
        repair,
        Some(Repair {
            torn_bytes: 18,
            closers: 1
        })
    );
    assert_eq!(fs::read(room.path()).unwrap(), bytes);
    block_on(session.flush(Durability::Synced)).unwrap();
    assert_eq!(fs::read(room.path()).unwrap(), file_of(&session.events()));
}

#[test]
fn rubbish_after_the_last_end_of_a_turn_is_left_out() {
    let log = numbered(whole_log());
    let whole = file_of(&log);
    let rubbish: [&[u8]; 4] = [
        &[0; 4096],
        b"\n",
        b"\xff\xfe\n{}\n",
        b"{\"type\":\"turn/start\"}\n",
    ];
    for rubbish in rubbish {
        let room = Room::new();
        let (repair, session) = opened(&room, &[&whole, rubbish].concat());
        let torn_bytes = rubbish.len() as u64;
        assert_eq!(
            repair,
            Some(Repair {
                torn_bytes,
                closers: 0
            })
        );
        assert_eq!(session.events(), log);
        session.append(turn_start(3)).unwrap();
        block_on(session.flush(Durability::Written)).unwrap();
        assert_eq!(fs::read(room.path()).unwrap(), file_of(&session.events()));
    }
}

/// Cuts a file, opens it, and checks that only what was cut is missing.
fn cut_and_recover(log: &[EventData], cut: usize) -> Result<(), TestCaseError> {
    let events = numbered(log.to_vec());
    let whole = file_of(&events);
    let header = file_of(&[]).len();
    let cut = header + cut % (whole.len() - header + 1);
    let whole_lines = whole[header..cut].iter().filter(|byte| **byte == b'\n').count();

    let room = Room::new();
    let (repair, session) = opened(&room, &whole[..cut]);
    let recovered = session.events();
    // A line whose end alone is missing says all it has to say.
    let kept = whole_lines + usize::from(cut < whole.len() && whole[cut] == b'\n');
    prop_assert_eq!(&recovered[..kept], &events[..kept]);

    let mut enclosure = Enclosure::default();
    for event in &events[..kept] {
        enclosure.admit(&event.data).unwrap();
    }
    let closers: Vec<_> = recovered[kept..].iter().map(|event| event.data.clone()).collect();
    prop_assert_eq!(&closers, &enclosure.closers(TurnEnd::Interrupted));
    let touched = !closers.is_empty() || (whole[cut - 1] != b'\n' && kept == whole_lines);
    prop_assert_eq!(repair.is_some(), touched);

    block_on(session.flush(Durability::Written)).unwrap();
    drop(session);
    let file = SessionFile::open(room.path()).unwrap();
    prop_assert_eq!(file.repair(), None);
    prop_assert_eq!(Session::persisted(file).events(), recovered);
    Ok(())
}

#[test]
fn a_log_that_is_cut_anywhere_loses_only_what_was_cut() {
    let log = whole_log();
    let length = file_of(&numbered(log.clone())).len() - file_of(&[]).len();
    for cut in (0..=length).step_by(7) {
        cut_and_recover(&log, cut).unwrap();
    }
}

/// What can happen to a file, with places to be taken modulo its length.
#[derive(Debug, Clone)]
enum Damage {
    Overwrite(usize, Vec<u8>),
    Remove(usize, usize),
    Insert(usize, Vec<u8>),
    RepeatLine(usize),
}

fn any_damage() -> impl Strategy<Value = Damage> {
    let bytes = || proptest::collection::vec(any::<u8>(), 1..20);
    prop_oneof![
        (any::<usize>(), bytes()).prop_map(|(at, bytes)| Damage::Overwrite(at, bytes)),
        (any::<usize>(), 1_usize..300).prop_map(|(at, count)| Damage::Remove(at, count)),
        (any::<usize>(), bytes()).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        any::<usize>().prop_map(Damage::RepeatLine),
    ]
}

impl Damage {
    /// The damaged bytes, and up to where they are as before.
    fn apply(&self, whole: &[u8]) -> (Vec<u8>, usize) {
        let place = |at: &usize| at % (whole.len() + 1);
        let splice = |at: usize, until: usize, new: &[u8]| {
            let until = until.min(whole.len());
            ([&whole[..at], new, &whole[until..]].concat(), at)
        };
        match self {
            Self::Overwrite(at, bytes) => splice(place(at), place(at) + bytes.len(), bytes),
            Self::Remove(at, count) => splice(place(at), place(at) + count, &[]),
            Self::Insert(at, bytes) => splice(place(at), place(at), bytes),
            Self::RepeatLine(at) => {
                let lines: Vec<_> = whole.split_inclusive(|byte| *byte == b'\n').collect();
                let line = at % lines.len();
                let end = lines[..=line].concat().len();
                splice(end, end, lines[line])
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn a_damaged_log_is_refused_or_whole_up_to_the_damage(log in any_log(40), damage in any_damage()) {
        let events = numbered(log);
        let header = file_of(&[]);
        let (damaged, intact) = damage.apply(&file_of(&events)[header.len()..]);
        let room = Room::new();
        write(&room.path(), [&header[..], &damaged].concat());
        if let Ok(file) = SessionFile::open(room.path()) {
            let recovered = Session::persisted(file).events();
            let whole_lines = damaged[..intact].iter().filter(|byte| **byte == b'\n').count();
            prop_assert_eq!(&recovered[..whole_lines], &events[..whole_lines]);
            let mut enclosure = Enclosure::default();
            for (event, seq) in recovered.iter().zip(0..) {
                prop_assert_eq!(event.seq, seq);
                prop_assert_eq!(enclosure.admit(&event.data), Ok(()));
            }
            prop_assert_eq!(enclosure.closers(TurnEnd::Interrupted), []);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_log_that_is_cut_anywhere_loses_only_what_was_cut(log in any_log(60), cut in any::<usize>()) {
        cut_and_recover(&log, cut)?;
    }
}
