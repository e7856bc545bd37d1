//! Commands that keep guard and supervisor from running, and what is left of them when the program is killed then.
//!
//! Whoever waits for a start lets both go on, so each of them begins when its start is over.

use std::time::Duration;

use dsh_subprocess::Cgroups;
use dsh_testkit::eventually;

use crate::common::{is_inside, launcher_with, parent, run, state};
use crate::killed::{DIRECTORY, Harness, marked, note};

/// The guards that wait stand by for three seconds, and the machine may be busy.
const LATE: Duration = Duration::from_secs(20);

/// Members in sessions of their own that ignore TERM, and then `attack` on `$PPID` and `$supervisor`, once `go` is there.
fn script(attack: &str) -> String {
    format!(
        "read -r _ _ _ supervisor _ < /proc/$PPID/stat; export guard=$PPID supervisor; trap '' TERM; \
         setsid sleep 60 & until [ -e go ]; do sleep 0.01; done; {attack}"
    )
}

/// Has a program run this, kills the program when guard and supervisor are in such states, and expects nobody.
fn outlived_by_nobody(test: &str, attack: &str, is_held: fn(Option<char>, Option<char>) -> bool) {
    if is_inside() {
        return run(async {
            let mut spec = marked(&script(attack));
            spec.cwd = std::env::var_os(DIRECTORY).unwrap().into();
            // Nobody else ends them then.
            let started = launcher_with(Cgroups::Off).spawn(spec).await.unwrap();
            note("go", 0);
            let guard = parent(started.tree.pid());
            let supervisor = parent(guard);
            eventually("the attack", || is_held(state(guard), state(supervisor))).await;
            note("guard", guard);
            note("supervisor", supervisor);
            std::future::pending::<()>().await;
        });
    }
    run(async {
        let harness = Harness::start(test);
        let supervisor = harness.noted("supervisor").await;
        let guard = harness.noted("guard").await;
        assert!(harness.living().len() >= 3);
        harness.kill(&[guard, supervisor], LATE).await;
    });
}

#[test]
fn a_command_that_keeps_stopping_guard_and_supervisor_does_not_outlive_the_program() {
    outlived_by_nobody(
        "held::a_command_that_keeps_stopping_guard_and_supervisor_does_not_outlive_the_program",
        "exec setsid -w bash -c 'while ((SECONDS < 60)); do kill -STOP $guard $supervisor; done'",
        |guard, supervisor| (guard, supervisor) == (Some('T'), Some('T')),
    );
}

#[test]
fn a_command_that_traces_guard_and_supervisor_does_not_outlive_the_program() {
    outlived_by_nobody(
        "held::a_command_that_traces_guard_and_supervisor_does_not_outlive_the_program",
        // Attaches, and never lets them go on.
        "exec python3 -c 'import ctypes, os, time\n\
         libc = ctypes.CDLL(None)\n\
         assert libc.ptrace(16, int(os.environ[\"guard\"]), 0, 0) == 0\n\
         assert libc.ptrace(16, int(os.environ[\"supervisor\"]), 0, 0) == 0\n\
         time.sleep(60)'",
        |guard, supervisor| (guard, supervisor) == (Some('t'), Some('t')),
    );
}

#[test]
fn a_command_that_killed_its_guard_and_keeps_stopping_the_supervisor_does_not_outlive_the_program() {
    outlived_by_nobody(
        "held::a_command_that_killed_its_guard_and_keeps_stopping_the_supervisor_does_not_outlive_the_program",
        "exec setsid -w bash -c 'kill -STOP $supervisor; kill -9 $guard; \
         while ((SECONDS < 60)); do kill -STOP $supervisor; done'",
        |guard, supervisor| guard == Some('Z') && supervisor == Some('T'),
    );
}

#[test]
fn a_command_that_killed_the_supervisor_and_stopped_its_guard_does_not_outlive_the_program() {
    outlived_by_nobody(
        "held::a_command_that_killed_the_supervisor_and_stopped_its_guard_does_not_outlive_the_program",
        // The kernel lets the guard go on when the supervisor dies, so it is stopped after that.
        "kill -9 $supervisor; while kill -0 $supervisor; do sleep 0.01; done; kill -STOP $guard; sleep 60",
        |guard, supervisor| guard == Some('T') && supervisor.is_none(),
    );
}
