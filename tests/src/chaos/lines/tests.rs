//! The account finds what is wrong.

use super::{Account, Side, Told, Written, seq};

fn lines(numbers: std::ops::Range<u64>) -> String {
    numbers.map(|number| format!("oc001-{number:09}\n")).collect()
}

fn account(texts: &[&str]) -> Account {
    let mut account = Account::new("c001");
    for text in texts {
        account.told(text, Told::Surely).expect("it was written");
    }
    account
}

#[test]
fn all_that_was_told_in_any_order_is_all() {
    let account = account(&[&lines(5..9), &lines(0..5)]);
    assert_eq!(account.check(Side::Out, Written::All(9 * 16)), Ok(()));
    assert_eq!(account.check(Side::Out, Written::AtMost(100 * 16)), Ok(()));
    assert!(
        account.check(Side::Out, Written::All(10 * 16)).is_err(),
        "one line is lost"
    );
    assert!(
        account.check(Side::Out, Written::All(8 * 16)).is_err(),
        "one is made up"
    );
}

#[test]
fn a_hole_and_a_repetition_are_found() {
    let hole = account(&[&lines(0..2), &lines(3..4)]);
    assert!(
        hole.check(Side::Out, Written::AtMost(1600))
            .unwrap_err()
            .contains("neither told")
    );
    let twice = account(&[&lines(0..3), &lines(2..4)]);
    assert!(
        twice
            .check(Side::Out, Written::All(64))
            .unwrap_err()
            .contains("told twice")
    );
}

#[test]
fn what_was_maybe_told_may_be_told_again() {
    let mut account = account(&[&lines(0..3)]);
    account.told(&lines(1..5), Told::Maybe).expect("it was written");
    assert_eq!(account.check(Side::Out, Written::All(80)), Ok(()));
}

#[test]
fn notes_count_wherever_they_stand() {
    let middle = format!(
        "{}[32 bytes omitted here; no longer available]\n{}",
        lines(0..1),
        lines(3..4)
    );
    assert_eq!(account(&[&middle]).check(Side::Out, Written::All(64)), Ok(()));
    let first = format!("[16 bytes omitted here; no longer available]\n{}", lines(1..2));
    assert_eq!(account(&[&first]).check(Side::Out, Written::All(32)), Ok(()));
    let alone = "[48 bytes omitted here; no longer available]\n";
    assert_eq!(account(&[alone]).check(Side::Out, Written::All(48)), Ok(()));
    let wrong = format!(
        "{}[34 bytes omitted here; no longer available]\n{}",
        lines(0..1),
        lines(3..4)
    );
    assert!(account(&[&wrong]).check(Side::Out, Written::All(64)).is_err());
}

#[test]
fn a_note_that_names_a_file_says_what_is_where() {
    let text = format!(
        "{}[16 bytes omitted here; full output: /x y bytes 16-31]\n",
        lines(0..1)
    );
    let mut account = Account::new("c001");
    let elsewhere = account.told(&text, Told::Surely).expect("it was written");
    assert_eq!(elsewhere.len(), 1);
    assert_eq!(
        (elsewhere[0].path.as_str(), elsewhere[0].there.clone()),
        ("/x y", 16..32)
    );
    assert_eq!(account.content(elsewhere[0].bytes.clone()), b"oc001-000000001\n");
}

#[test]
fn cut_lines_are_placed_by_their_neighbours() {
    let text = format!("{}oc001-0000", lines(0..1));
    let rest = format!("00001\n{}", lines(2..3));
    assert_eq!(
        account(&[&text, &rest]).check(Side::Out, Written::All(48)),
        Ok(())
    );
}

#[test]
fn what_somebody_else_wrote_is_found() {
    let mut account = Account::new("c001");
    assert!(account.told("oc002-000000000\n", Told::Surely).is_err());
    assert!(account.told("oc001-00000000x\n", Told::Surely).is_err());
    assert!(
        account.told("[stderr]\noc001-000000000\n", Told::Surely).is_err(),
        "the other side"
    );
}

#[test]
fn the_command_writes_what_is_expected() {
    let output = std::process::Command::new("sh")
        .args(["-c", &seq(Side::Out, "c001", 0..1000)])
        .output()
        .expect("it runs");
    assert_eq!(output.stdout, Account::new("c001").content(0..16_000));
}
