//! A command that bash reads from a file of its guard behaves as one that stands in its arguments.

use std::process::Command;

use dsh_subprocess::{LeaderExit, SpawnError};

use crate::common::{PATH, bash, bash_in, launcher, run, text};

/// What a command prints to both, and how it exits, as `bash -c` does it and as we do it.
async fn both(command: &str) -> [(String, String, String); 2] {
    let plain = Command::new("bash")
        .args(["-c", "--", command])
        .env_clear()
        .env("PATH", PATH)
        .current_dir("/")
        .output()
        .unwrap();
    let string = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let plain_exit = LeaderExit::Code(plain.status.code().unwrap()).to_string();
    let plain = (string(plain.stdout), string(plain.stderr), plain_exit);

    let started = launcher().spawn(bash(command)).await.unwrap();
    let (stdout, stderr, exit) = tokio::join!(
        text(started.stdout),
        text(started.stderr),
        started.tree.leader_exit()
    );
    [plain, (stdout, stderr, exit.to_string())]
}

#[test]
fn a_command_means_what_it_means_to_bash_c() {
    let commands = [
        "echo $0 $#",
        "nonexistent-program",
        "echo a\n\nnonexistent-program\necho $LINENO",
        "-x; echo $?",
        "--",
        "f() {\n nonexistent-program\n}\nf",
        "exit 7",
        "echo before; exit 3; echo after",
        "false",
        "! true",
        "set -e; false; echo not reached",
        "set -u; echo $nothing",
        "return 3",
        "cat <<E\nhi $0\nE",
        "cat <<E\nhi\nE\n",
        "cat <<'E'\n\\n $x\nE\n\n\n",
        "echo end\n\n\n",
        "echo a\\\n",
        "echo a\\\n\n",
        "echo 'a\\\\'\n",
        "echo a\\\\\n",
        "# nothing but a remark",
        "echo \"quotes ' and \\\" and `echo backticks` and $(echo $((1+2)))\"",
        "shopt -s expand_aliases\nalias x='echo alias'\nx",
        "trap 'echo bye' EXIT; exit 4",
        "echo $-",
        "sh -c 'exit 9'; echo $?",
        "(exit 5)",
        "cat; echo ${BASH_SOURCE[0]}",
        "printf '%s\\n' 'ünï' | cat",
        "x=1; y() { echo $x; }; y; unset x; echo [$x]",
        "echo \"$BASH_EXECUTION_STRING\"; env | grep -c STRING",
    ];
    run(async {
        for command in commands {
            let [plain, ours] = both(command).await;
            assert_eq!(ours, plain, "{command:?}");
        }
    });
}

#[test]
fn no_function_of_the_environment_takes_the_place_of_a_command() {
    run(async {
        let mut spec = bash("echo run; fine; exit 3");
        // As bash exports them.
        for name in [
            "builtin", ":", "exit", "eval", "command", "unset", "source", "fine",
        ] {
            let function = format!("() {{ printf '%s ' {name}; }}");
            spec.env
                .push((format!("BASH_FUNC_{name}%%").into(), function.into()));
        }
        let started = launcher().spawn(spec).await.unwrap();
        // What the command itself says means what it would to `bash -c`.
        assert_eq!(text(started.stdout).await, "run\nfine exit ");
        assert_eq!(started.tree.leader_exit().await, LeaderExit::Code(0));
    });
}

#[test]
fn a_command_has_three_descriptors() {
    run(async {
        let started = launcher()
            .spawn(bash("ls /proc/self/fd; echo /proc/$$/fd/*"))
            .await
            .unwrap();
        let pid = started.tree.pid();
        let own = format!("/proc/{pid}/fd/0 /proc/{pid}/fd/1 /proc/{pid}/fd/2\n");
        // The listing itself has one more.
        assert_eq!(
            text(started.stdout)
                .await
                .replace(&format!(" /proc/{pid}/fd/3"), ""),
            format!("0\n1\n2\n3\n{own}")
        );
    });
}

#[test]
fn a_syntax_error_is_told_with_its_text() {
    run(async {
        for command in ["if true; then\necho x", "fi", "echo 'unterminated"] {
            let [plain, ours] = both(command).await;
            assert_eq!((&ours.0, &ours.2), (&plain.0, &plain.2), "{command:?}");
            let reason = plain.1.rsplit(": ").next().unwrap();
            assert!(ours.1.contains(reason.trim()), "{command:?}: {:?}", ours.1);
        }
    });
}

#[test]
fn a_command_of_a_megabyte_runs() {
    run(async {
        let long = format!("x='{}'; echo ${{#x}}", "y".repeat(1_000_000));
        let started = launcher().spawn(bash(&long)).await.unwrap();
        assert_eq!(text(started.stdout).await, "1000000\n");
    });
}

#[test]
fn an_environment_larger_than_a_message_arrives() {
    run(async {
        let mut spec = bash("for i in {1..10}; do v=X$i; echo ${#v}; done | wc -l; echo ${#X1} ${#X9}");
        spec.env
            .extend((1..10).map(|i| (format!("X{i}").into(), "v".repeat(30_000).into())));
        let started = launcher().spawn(spec).await.unwrap();
        assert_eq!(text(started.stdout).await, "10\n30000 30000\n");
    });
}

#[test]
fn a_command_with_a_nul_byte_is_refused() {
    run(async {
        let error = launcher().spawn(bash("echo a\0b")).await.unwrap_err();
        assert!(matches!(error, SpawnError::Nul { .. }), "{error:?}");
        assert_eq!(error.to_string(), "command must not contain a NUL byte");
    });
}

#[test]
fn a_search_for_the_text_of_a_command_does_not_find_its_shell() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let word = format!("needle-{}", std::process::id());
        let spec = bash_in(
            directory.path(),
            &format!("pkill -KILL -f {word}; pgrep -f {word}; echo alive"),
        );
        let started = launcher().spawn(spec).await.unwrap();
        assert_eq!(started.tree.leader_exit().await, LeaderExit::Code(0));
        assert_eq!(text(started.stdout).await, "alive\n");
    });
}
