use super::*;

#[test]
fn a_name_with_parentheses_and_spaces_hides_no_field() {
    let line = b"42 (a) Z (b) R 1 42 43 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 3 0 99 100 \
                 1 2 3 4 5 6 7 8 9 10 11 12 13 14 10 1 0";
    assert_eq!(
        Stat::parse(line),
        Some(Stat {
            name: b"a) Z (b",
            state: b'R',
            parent: 1,
            group: 42,
            threads: 3,
            told_by: 10,
        })
    );
}

#[test]
fn a_zombie_is_gone_unless_other_threads_run_on() {
    let stat = |state, threads| Stat {
        name: b"x",
        state,
        parent: 1,
        group: 1,
        threads,
        told_by: 17,
    };
    assert!(!stat(b'Z', 1).is_alive());
    assert!(!stat(b'X', 0).is_alive());
    assert!(stat(b'Z', 2).is_alive());
    assert!(stat(b'T', 1).is_alive());
}

#[test]
fn a_line_that_cannot_be_read_is_none() {
    assert_eq!(Stat::parse(b""), None);
    assert_eq!(Stat::parse(b"42 (x"), None);
    assert_eq!(Stat::parse(b"42 (x) Z 1"), None);
}

#[test]
fn a_command_is_one_line_and_capped() {
    assert_eq!(one_line("sh\0-c\0echo a\necho b\0"), "sh -c echo a echo b");
    assert_eq!(one_line(&"ä".repeat(300)).chars().count(), COMMAND_LIMIT + 1);
}

#[test]
fn a_group_that_cannot_be_seen_whole_is_not_empty() {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let pid = Pid::from_child(&child);
    child.wait().unwrap();
    // The leader is not there any more, as if this were another system's `/proc`.
    let look = look(pid);
    assert!(look.living.is_empty() && !look.is_empty());
}
