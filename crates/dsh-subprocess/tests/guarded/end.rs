//! What is told of starts and exits.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use dsh_subprocess::{GuardConfig, GuardError, Launcher, LeaderExit, ProcessSpec, Proof, SpawnError, Stdin};
use dsh_testkit::eventually;
use dsh_testkit::process::gone;

use crate::common::{Marked, NEVER, PATH, bash, children, launcher, line, run, start, text};

#[test]
fn exit_codes_and_signals_are_true() {
    run(async {
        let launcher = launcher();
        for (command, expected) in [
            ("exit 0", "exit code: 0"),
            ("exit 3", "exit code: 3"),
            ("exit 255", "exit code: 255"),
            ("kill -TERM $$", "signal: SIGTERM"),
            ("kill -KILL $$", "signal: SIGKILL"),
            ("kill -RTMIN+3 $$", "signal: SIGRTMIN+3"),
            ("ulimit -c 0; kill -SEGV $$", "signal: SIGSEGV"),
        ] {
            let tree = start(&launcher, command).await.tree;
            assert_eq!(tree.leader_exit().await.to_string(), expected, "{command}");
            let end = tree.ended().await;
            assert_eq!((end.proof, end.leader), (Proof::Guard, tree.leader_exited()));
        }
    });
}

#[test]
fn a_core_dump_is_told() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let mut spec = bash("ulimit -c unlimited; kill -ABRT $$");
        spec.cwd = directory.path().to_owned();
        let guarded = launcher().spawn(spec).await.unwrap().tree.leader_exit().await;
        // Whether the system writes one is not ours to say: the kernel says the same to a plain parent.
        let plain = std::process::Command::new("bash")
            .args(["-c", "ulimit -c unlimited; kill -ABRT $$"])
            .current_dir(directory.path())
            .status()
            .unwrap();
        let core = std::os::unix::process::ExitStatusExt::core_dumped(&plain);
        let LeaderExit::Signal { core_dumped, .. } = guarded else {
            panic!("{guarded}")
        };
        assert_eq!(core_dumped, core);
    });
}

#[test]
fn the_exit_is_told_while_members_live() {
    run(async {
        let mut marked = Marked::start(&launcher(), "sleep 60 & echo ready; exit 5").await;
        marked.line().await;
        assert_eq!(marked.started.tree.leader_exit().await, LeaderExit::Code(5));
        assert_eq!(marked.started.tree.members().len(), 1);
        marked.started.tree.terminate(NEVER);
        assert_eq!(
            marked.assert_ends(Proof::Guard).await.leader,
            Some(LeaderExit::Code(5))
        );
    });
}

#[test]
fn the_leader_has_a_session_defaults_and_three_descriptors() {
    run(async {
        let launcher = launcher();
        let mut spec = ProcessSpec::new("cat", "/");
        spec.args = vec!["/proc/self/status".into(), "/proc/self/stat".into()];
        spec.env = vec![("PATH".into(), PATH.into())];
        let started = launcher.spawn(spec).await.unwrap();
        let pid = started.tree.pid().to_string();
        let printed = text(started.stdout).await;
        for field in ["SigIgn", "SigBlk", "SigPnd", "ShdPnd"] {
            let value = printed.lines().find_map(|line| line.strip_prefix(field)).unwrap();
            assert_eq!(
                u64::from_str_radix(value.trim_start_matches(':').trim(), 16),
                Ok(0),
                "{field}"
            );
        }
        let stat: Vec<&str> = printed
            .lines()
            .last()
            .unwrap()
            .rsplit(") ")
            .next()
            .unwrap()
            .split(' ')
            .collect();
        assert_eq!(stat[2..4], [pid.as_str(), &pid], "group and session");
        let mut spec = ProcessSpec::new("ls", "/");
        spec.args = vec!["/proc/self/fd".into()];
        spec.env = vec![("PATH".into(), PATH.into())];
        let listed = text(launcher.spawn(spec).await.unwrap().stdout).await;
        assert_eq!(listed, "0\n1\n2\n3\n", "the last one is the listing itself");
    });
}

#[test]
fn standard_input_arrives_and_ends() {
    run(async {
        let mut spec = bash("wc -c");
        spec.stdin = Stdin::Data(vec![b'x'; 3_000_001]);
        assert_eq!(
            text(launcher().spawn(spec).await.unwrap().stdout).await.trim(),
            "3000001"
        );
    });
}

#[test]
fn a_refusal_says_what_is_at_fault_as_without_a_guard() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("tool");
        std::fs::write(&file, "neither a script nor a program").unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
        let mut specs = vec![
            ProcessSpec::new("no-such-program", "/"),
            ProcessSpec::new("/no/such/program", "/"),
            ProcessSpec::new("./tool", directory.path()),
            ProcessSpec::new("/etc", "/"),
            ProcessSpec::new("/bin/true", "/nowhere/at/all"),
            ProcessSpec::new("/bin/true", "/etc/passwd"),
            ProcessSpec::new("", "/"),
        ];
        let mut long = ProcessSpec::new("/bin/true", "/");
        long.args = vec!["#".repeat(200_000).into()];
        specs.push(long);
        let guarded = launcher();
        for spec in specs {
            let ours = guarded.spawn(spec.clone()).await.unwrap_err();
            let plain = Launcher::groups().spawn(spec).await.unwrap_err();
            assert_eq!(ours.to_string(), plain.to_string());
            assert_eq!(ours.errno(), plain.errno());
        }
        assert_eq!(
            start(&guarded, "exit 4").await.tree.leader_exit().await,
            LeaderExit::Code(4)
        );
    });
}

#[test]
fn without_an_offer_or_a_helper_there_is_no_guard() {
    let error = Launcher::guarded(GuardConfig::own_program()).unwrap_err();
    assert!(matches!(error, GuardError::NotOffered), "{error}");
    let error = Launcher::guarded(GuardConfig::helper("/no/such/helper")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot guard commands with /no/such/helper: ENOENT (No such file or directory)"
    );
}

#[test]
fn a_helper_that_is_something_else_is_named() {
    run(async {
        let launcher = Launcher::guarded(GuardConfig::helper("/bin/true")).unwrap();
        let error = launcher.spawn(bash("true")).await.unwrap_err();
        assert!(matches!(error, SpawnError::Supervisor { .. }), "{error:?}");
        assert!(error.to_string().contains("/bin/true"), "{error}");
    });
}

#[test]
fn a_helper_that_says_nothing_is_given_up_on_and_named() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let helper = directory.path().join("helper");
        std::fs::write(&helper, "#!/bin/sh\nexec sleep 600\n").unwrap();
        std::fs::set_permissions(&helper, PermissionsExt::from_mode(0o755)).unwrap();
        let launcher = Launcher::guarded(GuardConfig::helper(&helper)).unwrap();
        let begun = Instant::now();
        let error = launcher.spawn(bash("true")).await.unwrap_err();
        // On a busy machine everything takes its time, but nothing takes as long as the helper.
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
        assert!(matches!(error, SpawnError::Supervisor { .. }), "{error:?}");
        assert!(error.to_string().contains("guard_entry()"), "{error}");
        eventually("no helper, not even a zombie", || {
            children(std::process::id()) == 0
        })
        .await;
    });
}

#[test]
fn a_dropped_tree_ends_at_once() {
    run(async {
        let launcher = launcher();
        let mut marked = Marked::start(&launcher, "trap '' TERM; setsid sleep 60 & echo ready; wait").await;
        marked.line().await;
        let pid = marked.started.tree.pid();
        let marker = marked.drop_tree();
        eventually("nobody", || marker.survivors().is_empty()).await;
        // Its environment goes a little earlier than itself.
        gone(pid).await;
    });
}

#[test]
fn a_termination_that_meets_the_natural_end_loses_nothing() {
    run(async {
        let launcher = launcher();
        for round in 0..60_u32 {
            let mut started = start(&launcher, "echo up; exit 9").await;
            if round % 2 == 0 {
                line(&mut started.stdout).await;
            }
            started.tree.terminate(NEVER);
            let end = started.tree.ended().await;
            let exit = end.leader.unwrap();
            assert!(
                exit == LeaderExit::Code(9) || exit.to_string() == "signal: SIGTERM",
                "{exit}"
            );
            assert_eq!(end.proof, Proof::Guard);
            started.tree.terminate(NEVER);
            assert_eq!(started.tree.ended().await, end);
        }
    });
}
