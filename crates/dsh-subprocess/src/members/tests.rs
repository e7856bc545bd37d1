use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use dsh_testkit::namespace::{in_pid_namespace, spawn_as};

use super::*;

/// A shell with a child in a session of its own, which has a child again. All end with the test.
struct Family {
    shell: Child,
    members: Vec<Pid>,
}

impl Family {
    fn new() -> Family {
        let inner = "sleep 60 & echo $$ $!; wait";
        let mut shell = Command::new("bash")
            .args(["-c", &format!("setsid bash -c '{inner}' & wait")])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(shell.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let members = line.split_whitespace().filter_map(parse).collect();
        Family { shell, members }
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        for pid in &self.members {
            let _ = rustix::process::kill_process(*pid, Signal::KILL);
        }
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

fn met_below(shell: &Child) -> Vec<Pid> {
    let shell = Pid::from_child(shell);
    let process = pidfd_open(shell, PidfdFlags::empty()).unwrap();
    let mut met = Vec::new();
    walk_below(shell, &process, &mut |seen| met.push(seen.pid));
    met
}

#[test]
fn a_walk_meets_all_below_and_children_before_their_parent() {
    let family = Family::new();
    let met = met_below(&family.shell);
    let [session, sleeper] = family.members[..] else {
        panic!("two members")
    };
    assert_eq!(met, [sleeper, session]);
}

#[test]
fn what_is_spared_is_not_met_nor_what_is_below_it() {
    let family = Family::new();
    let shell = Pid::from_child(&family.shell);
    let met_unless = |spared: &dyn Fn(Pid) -> bool| {
        let mut met = Vec::new();
        walk(spared, &mut |seen| met.push(seen.pid));
        family.members.iter().filter(|pid| met.contains(pid)).count()
    };
    assert_eq!(met_unless(&|_| false), 2);
    assert_eq!(met_unless(&|pid| pid == shell), 0);
}

#[test]
fn nobody_is_met_below_a_number_whose_process_has_exited() {
    let family = Family::new();
    let mut gone = Command::new("true").spawn().unwrap();
    let process = pidfd_open(Pid::from_child(&gone), PidfdFlags::empty()).unwrap();
    gone.wait().unwrap();
    // As if the number had gone to the shell.
    let mut met = 0;
    walk_below(Pid::from_child(&family.shell), &process, &mut |_| met += 1);
    assert_eq!(met, 0);
}

#[test]
fn only_a_living_child_of_its_parent_is_proven() {
    let mut family = Family::new();
    let shell = Pid::from_child(&family.shell);
    assert!(Seen::child_of(shell, getpid()).is_some());
    assert!(Seen::child_of(family.members[0], shell).is_some());
    assert!(Seen::child_of(family.members[1], shell).is_none(), "a grandchild");
    family.shell.kill().unwrap();
    while Seen::child_of(shell, getpid()).is_some() {
        std::thread::yield_now();
    }
    assert!(
        children(getpid()).contains(&shell),
        "a zombie is a child, and no member"
    );
}

#[test]
fn children_are_found_without_the_lists_of_the_kernel() {
    let family = Family::new();
    let shell = Pid::from_child(&family.shell);
    assert_eq!(scanned_children(shell), [family.members[0]]);
    assert_eq!(scanned_children(shell), listed_children(shell));
}

/// The orders that would be simpler fail here: a number that was listed, and a number whose parent was read, are a
/// stranger's by the time of the signal.
#[test]
fn a_stranger_that_takes_the_number_of_a_member_is_not_signalled() {
    let test = "members::tests::a_stranger_that_takes_the_number_of_a_member_is_not_signalled";
    in_pid_namespace(test, || {
        let mut member = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = Pid::from_child(&member);
        assert_eq!(children(getpid()), [pid]);
        let seen = Seen::child_of(pid, getpid()).unwrap();
        let read = status(pid).unwrap();
        member.kill().unwrap();
        member.wait().unwrap();

        let mut stranger = spawn_as(member.id(), Command::new("sleep").arg("60")).unwrap();
        seen.signal(Signal::KILL);
        assert_eq!(stranger.try_wait().unwrap(), None);
        assert_eq!(read.parent, getpid().as_raw_nonzero().get());
        rustix::process::kill_process(pid, Signal::KILL).unwrap();
        assert!(!stranger.wait().unwrap().success());
    });
}

#[test]
fn a_stranger_that_takes_a_number_that_was_listed_is_no_member() {
    let test = "members::tests::a_stranger_that_takes_a_number_that_was_listed_is_no_member";
    in_pid_namespace(test, || {
        let mut shell = Command::new("bash")
            .args(["-c", "sleep 60 & wait; echo reaped; read -r _"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let parent = Pid::from_child(&shell);
        while children(parent).is_empty() {
            std::thread::yield_now();
        }
        let listed = children(parent)[0];
        assert!(Seen::child_of(listed, parent).is_some());
        rustix::process::kill_process(listed, Signal::KILL).unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(shell.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();

        let number = listed.as_raw_nonzero().get().cast_unsigned();
        let mut stranger = spawn_as(number, Command::new("sleep").arg("60")).unwrap();
        assert!(Seen::child_of(listed, parent).is_none());
        for child in [&mut stranger, &mut shell] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    });
}

#[test]
fn a_walk_tells_who_had_exited_because_what_was_below_is_elsewhere() {
    let mut family = Family::new();
    let shell = Pid::from_child(&family.shell);
    assert!(!walk(&|_| false, &mut |_| ()).contains(&shell));
    family.shell.kill().unwrap();
    while Seen::child_of(shell, getpid()).is_some() {
        std::thread::yield_now();
    }
    let mut met = Vec::new();
    assert!(walk(&|_| false, &mut |seen| met.push(seen.pid)).contains(&shell));
    assert!(!met.iter().any(|pid| family.members.contains(pid)));
}
