//! What a process is started with.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use dsh_subprocess::{LeaderExit, ProcessSpec, SpawnError, Stdin};

use crate::common::{PATH, bash, bash_in, run, spawn, start, text};

#[test]
fn c305_c306_stdout_and_stderr_are_two_pipes() {
    run(async {
        let started = start("echo out; echo err >&2").await;
        assert_eq!(text(started.stdout).await, "out\n");
        assert_eq!(text(started.stderr).await, "err\n");
    });
}

#[test]
fn c309_the_process_starts_in_its_directory() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let started = spawn(bash_in(directory.path(), "pwd -P")).await.unwrap();
        let expected = directory.path().canonicalize().unwrap();
        assert_eq!(text(started.stdout).await, format!("{}\n", expected.display()));
    });
}

#[test]
fn the_environment_is_what_was_given_and_nothing_else() {
    run(async {
        let mut spec = ProcessSpec::new("env", "/");
        spec.env = [("PATH", PATH), ("A", "1"), ("B", "x=y"), ("A", "2")]
            .map(|(k, v)| (k.into(), v.into()))
            .into();
        let printed = text(spawn(spec).await.unwrap().stdout).await;
        assert_eq!(printed, format!("PATH={PATH}\nB=x=y\nA=2\n"));
    });
}

#[test]
fn c368_arguments_are_verbatim() {
    run(async {
        let mut spec = ProcessSpec::new("printf", "/");
        spec.env = vec![("PATH".into(), PATH.into())];
        spec.args = ["<%s>", "$HOME", "a b", "*", ""].map(Into::into).into();
        assert_eq!(text(spawn(spec).await.unwrap().stdout).await, "<$HOME><a b><*><>");
    });
}

#[test]
fn the_process_leads_a_group_of_its_own() {
    run(async {
        let started = start("read -r _ _ _ _ group _ < /proc/$$/stat; echo $$ $group").await;
        let pid = started.tree.pid();
        assert_eq!(text(started.stdout).await, format!("{pid} {pid}\n"));
    });
}

#[test]
fn c321_c322_without_data_stdin_is_the_null_device() {
    run(async {
        let started = start("cat; readlink /proc/self/fd/0").await;
        assert_eq!(text(started.stdout).await, "/dev/null\n");
    });
}

#[test]
fn c320_c322_data_arrives_in_a_pipe_that_ends() {
    run(async {
        let mut spec = bash("[ -p /dev/stdin ] && cat");
        spec.stdin = Stdin::Data(b"some text".to_vec());
        assert_eq!(text(spawn(spec).await.unwrap().stdout).await, "some text");
        let mut empty = bash("cat; echo end");
        empty.stdin = Stdin::Data(Vec::new());
        assert_eq!(text(spawn(empty).await.unwrap().stdout).await, "end\n");
    });
}

#[test]
fn data_larger_than_the_pipe_arrives_whole() {
    run(async {
        let mut spec = bash("wc -c");
        spec.stdin = Stdin::Data(vec![b'x'; 3_000_001]);
        assert_eq!(text(spawn(spec).await.unwrap().stdout).await.trim(), "3000001");
    });
}

#[test]
fn c326_data_that_nobody_reads_does_no_harm() {
    run(async {
        let mut spec = bash("exit 7");
        spec.stdin = Stdin::Data(vec![b'x'; 3_000_000]);
        let started = spawn(spec).await.unwrap();
        assert_eq!(started.tree.leader_exit().await, LeaderExit::Code(7));
        started.tree.ended().await;
    });
}

#[test]
fn c15_c316_a_missing_directory_is_named_not_the_program() {
    run(async {
        let mut spec = bash("true");
        spec.cwd = "/nowhere/at/all".into();
        let error = spawn(spec).await.unwrap_err();
        assert!(matches!(error, SpawnError::Directory { .. }), "{error:?}");
        assert_eq!(error.errno(), Some(libc::ENOENT));
        let expected = "cannot enter working directory /nowhere/at/all: ENOENT (No such file or directory)";
        assert_eq!(error.to_string(), expected);
    });
}

#[test]
fn a_file_as_directory_is_refused() {
    run(async {
        let mut spec = bash("true");
        spec.cwd = "/etc/passwd".into();
        let error = spawn(spec).await.unwrap_err();
        assert!(matches!(error, SpawnError::Directory { .. }), "{error:?}");
        assert_eq!(error.errno(), Some(libc::ENOTDIR));
    });
}

#[test]
fn a_missing_program_is_named_not_the_directory() {
    run(async {
        for program in ["no-such-program", "/no/such/program", "./no-such-program"] {
            let mut spec = bash("true");
            spec.program = program.into();
            let error = spawn(spec).await.unwrap_err();
            assert!(matches!(error, SpawnError::Program { .. }), "{error:?}");
            assert_eq!(
                error.to_string(),
                format!("cannot run {program}: ENOENT (No such file or directory)")
            );
        }
    });
}

#[test]
fn what_cannot_be_executed_is_refused_with_its_reason() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("tool");
        fs::write(&file, "neither a script nor a program").unwrap();
        let errno_of = async |program: &str| {
            let mut spec = bash_in(directory.path(), "true");
            spec.program = program.into();
            spec.env = vec![("PATH".into(), directory.path().into())];
            let error = spawn(spec).await.unwrap_err();
            assert!(matches!(error, SpawnError::Program { .. }), "{error:?}");
            error.errno()
        };
        for program in ["tool", "./tool"] {
            assert_eq!(
                errno_of(program).await,
                Some(libc::EACCES),
                "{program} without execute permission"
            );
        }
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(errno_of("./tool").await, Some(libc::ENOEXEC));
        assert_eq!(errno_of("/etc").await, Some(libc::EACCES));
    });
}

#[test]
fn c288_a_bare_name_is_looked_up_on_the_path_of_the_child() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        for (bin, answer) in [("first", "1"), ("second", "2")] {
            let bin = directory.path().join(bin);
            fs::create_dir(&bin).unwrap();
            fs::write(bin.join("tool"), format!("#!/bin/sh\necho {answer} $0\n")).unwrap();
            fs::set_permissions(bin.join("tool"), fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::create_dir(directory.path().join("tool")).unwrap();
        let mut spec = ProcessSpec::new("tool", directory.path());
        // A directory of that name is passed over, a relative entry means the child's directory.
        spec.env = vec![("PATH".into(), ":missing:second:first".into())];
        let printed = text(spawn(spec).await.unwrap().stdout).await;
        assert!(printed.starts_with("2 "), "{printed:?}");
    });
}

#[test]
fn c366_c367_what_cannot_be_passed_on_is_refused() {
    run(async {
        let refusal = async |change: fn(&mut ProcessSpec)| {
            let mut spec = bash("true");
            change(&mut spec);
            let error = spawn(spec).await.unwrap_err();
            assert_eq!(error.errno(), None, "refused before the system was asked");
            error.to_string()
        };
        assert_eq!(
            refusal(|spec| spec.program = "".into()).await,
            "program name must not be empty"
        );
        assert_eq!(
            refusal(|spec| spec.program = "a\0b".into()).await,
            "program name must not contain a NUL byte"
        );
        assert_eq!(
            refusal(|spec| spec.args[1] = "a\0b".into()).await,
            "argument 2 must not contain a NUL byte"
        );
        assert_eq!(
            refusal(|spec| spec.env.push(("X".into(), "\0".into()))).await,
            "environment variable X must not contain a NUL byte"
        );
        for name in ["", "A=B"] {
            let mut spec = bash("true");
            spec.env.push((name.into(), "1".into()));
            assert!(matches!(
                spawn(spec).await.unwrap_err(),
                SpawnError::EnvName { .. }
            ));
        }
    });
}

#[test]
fn an_argument_longer_than_the_system_takes_is_refused_as_such() {
    run(async {
        let error = spawn(bash(&"#".repeat(200_000))).await.unwrap_err();
        assert!(matches!(error, SpawnError::TooLong { .. }), "{error:?}");
        assert!(error.to_string().contains("E2BIG"), "{error}");
    });
}
