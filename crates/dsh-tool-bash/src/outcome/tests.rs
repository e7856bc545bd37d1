use std::time::Duration;

use dsh_tasks::OutcomeStatus;

use super::*;

fn end(exit: ShellExit) -> End {
    End {
        exit,
        asked: None,
        survivors: Vec::new(),
        limits_reached: Vec::new(),
        pipe: Pipe::Closed,
    }
}

fn signal(name: &str) -> ShellExit {
    ShellExit::Signal {
        name: name.into(),
        core_dumped: false,
    }
}

fn asked(reason: EndReason, found: Found) -> Option<Asked> {
    Some(Asked { reason, found })
}

#[test]
fn c113_a_signal_is_killed_whoever_sent_it() {
    let by_itself = outcome(end(signal("SIGTERM")));
    assert_eq!(by_itself, Outcome::killed().detail("signal: SIGTERM"));
    let on_request = End {
        asked: asked(EndReason::Asked, Found::ShellRunning),
        ..end(signal("SIGTERM"))
    };
    assert_eq!(outcome(on_request), Outcome::killed().detail("signal: SIGTERM"));
}

#[test]
fn c114_a_kill_after_the_exit_tells_the_exit_and_invents_nothing() {
    let late = End {
        asked: asked(EndReason::Asked, Found::ShellExited),
        ..end(ShellExit::Code(0))
    };
    assert_eq!(
        outcome(late),
        Outcome::killed().detail("shell had exited with code 0")
    );
}

#[test]
fn c115_c116_an_exit_is_completed_with_its_code() {
    assert_eq!(
        outcome(end(ShellExit::Code(3))),
        Outcome::completed().detail("exit code: 3")
    );
    assert_eq!(
        outcome(end(ShellExit::Code(0))),
        Outcome::completed().detail("exit code: 0")
    );
}

#[test]
fn a_spawn_failure_is_failed_even_when_somebody_asked_for_the_end() {
    let exit = ShellExit::Failed {
        reason: "spawn failed: no".into(),
    };
    let end = End {
        asked: asked(EndReason::Asked, Found::ShellRunning),
        ..end(exit)
    };
    assert_eq!(outcome(end), Outcome::failed().detail("spawn failed: no"));
}

#[test]
fn an_unseen_exit_is_never_an_exit_code() {
    let lost = end(ShellExit::Unseen {
        reason: "exit status lost".into(),
    });
    assert_eq!(
        outcome(lost.clone()),
        Outcome::failed().detail("exit status lost")
    );
    let killed = End {
        asked: asked(EndReason::Asked, Found::ShellRunning),
        ..lost
    };
    assert_eq!(outcome(killed).status(), OutcomeStatus::Failed);
}

#[test]
fn a_deadline_is_the_cause() {
    let reason = EndReason::TimedOut {
        after: Duration::from_millis(700),
    };
    let end = End {
        asked: asked(reason, Found::ShellRunning),
        ..end(signal("SIGTERM"))
    };
    assert_eq!(
        outcome(end),
        Outcome::killed()
            .detail("signal: SIGTERM")
            .cause(Cause::Deadline(700))
    );
}

#[test]
fn survivors_and_held_pipes_are_told() {
    let survivors = vec![Member {
        pid: 7,
        command: "sleep".into(),
    }];
    let end = End {
        survivors,
        pipe: Pipe::HeldOutside,
        ..end(ShellExit::Code(0))
    };
    let told = Outcome::completed()
        .detail("exit code: 0; pipe still held by a process outside the tree")
        .survivors(vec![Survivor {
            pid: 7,
            command: "sleep".into(),
        }]);
    assert_eq!(outcome(end), told);
}

#[test]
fn a_foreground_result_names_survivors_as_a_task_does() {
    let member = |pid, command: &str| Member {
        pid,
        command: command.into(),
    };
    assert_eq!(survived(Vec::new()), None);
    assert_eq!(
        survived(vec![member(7, "sleep")]).unwrap(),
        "1 process survived: 7 sleep"
    );
    assert_eq!(
        survived(vec![member(7, "sleep"), member(8, "cat")]).unwrap(),
        "2 processes survived: 7 sleep, 8 cat"
    );
}

#[test]
fn live_detail_speaks_once_the_shell_is_gone() {
    let members = |count| {
        (0..count)
            .map(|pid| Member {
                pid,
                command: "x".into(),
            })
            .collect()
    };
    let exited = |exit, count| {
        live_detail(&ProcessState::ShellExited {
            exit,
            members: members(count),
        })
    };
    assert_eq!(live_detail(&ProcessState::Running), None);
    assert_eq!(
        exited(ShellExit::Code(0), 2).unwrap(),
        "shell exited with code 0, 2 processes running"
    );
    assert_eq!(
        exited(ShellExit::Code(1), 1).unwrap(),
        "shell exited with code 1, 1 process running"
    );
    assert_eq!(exited(signal("SIGKILL"), 0).unwrap(), "shell ended by SIGKILL");
}

#[test]
fn limits_that_were_reached_follow_the_exit() {
    let limited = End {
        limits_reached: vec![
            "memory limit of 1048576 bytes reached".to_owned(),
            "limit of 100 processes reached".to_owned(),
        ],
        ..end(ShellExit::Code(137))
    };
    let outcome = outcome(limited);
    let said = "exit code: 137; memory limit of 1048576 bytes reached; limit of 100 processes reached";
    assert_eq!(outcome, Outcome::completed().detail(said));
}
