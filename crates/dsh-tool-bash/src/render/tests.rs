use super::*;

const CLEAN: ShellExit = ShellExit::Code(0);

fn signal(name: &str) -> ShellExit {
    ShellExit::Signal {
        name: name.into(),
        core_dumped: false,
    }
}

fn text(body: &str, timed_out: Option<u64>, exit: &ShellExit) -> String {
    let timed_out = timed_out.map(Duration::from_millis);
    Report {
        body: body.into(),
        notes: Vec::new(),
        timed_out,
        exit,
    }
    .text()
}

#[test]
fn c122_stderr_only_has_no_prefix() {
    assert_eq!(sections("", "err\n"), "[stderr]\nerr\n");
}

#[test]
fn c123_unterminated_stdout_gets_one_newline_before_stderr() {
    assert_eq!(sections("out", "err"), "out\n[stderr]\nerr");
    assert_eq!(sections("out\n", "err"), "out\n[stderr]\nerr");
    assert_eq!(sections("out", ""), "out");
}

#[test]
fn c124_unterminated_body_and_nonzero_exit() {
    assert_eq!(text("x", None, &ShellExit::Code(7)), "x\n[exit code: 7]");
    assert_eq!(
        text("failing\n", None, &ShellExit::Code(3)),
        "failing\n[exit code: 3]"
    );
}

#[test]
fn c125_signal_without_timeout() {
    assert_eq!(
        text("", None, &signal("SIGKILL")),
        "(no output)\n[killed by signal: SIGKILL]"
    );
}

#[test]
fn c126_timeout_with_a_clean_exit() {
    assert_eq!(
        text("", Some(1000), &CLEAN),
        "(no output)\n[timed out after 1000ms]"
    );
}

#[test]
fn c127_timeout_comes_before_the_signal() {
    assert_eq!(
        text("", Some(100), &signal("SIGTERM")),
        "(no output)\n[timed out after 100ms]\n[killed by signal: SIGTERM]"
    );
}

#[test]
fn clean_results_are_the_bytes_themselves() {
    assert_eq!(text("hello\n\n", None, &CLEAN), "hello\n\n");
    assert_eq!(text("", None, &CLEAN), "(no output)");
}

#[test]
fn notes_come_before_the_exit() {
    let report = Report {
        body: "hi".into(),
        notes: vec!["1 process still running".into(), PIPE_HELD.into()],
        timed_out: None,
        exit: &ShellExit::Code(4),
    };
    assert_eq!(
        report.text(),
        "hi\n[1 process still running]\n[pipe still held by a process outside the tree]\n[exit code: 4]"
    );
}

#[test]
fn c133_every_exit_survives_the_round_trip() {
    for (exit, timed_out, parsed) in [
        (CLEAN, None, TerminalExit::Code(0)),
        (ShellExit::Code(7), None, TerminalExit::Code(7)),
        (signal("SIGTERM"), None, TerminalExit::Signal("SIGTERM".into())),
        (
            signal("SIGRTMIN+3"),
            None,
            TerminalExit::Signal("SIGRTMIN+3".into()),
        ),
        (CLEAN, Some(100), TerminalExit::Code(0)),
    ] {
        let text = text("out", timed_out, &exit);
        let (body, exit) = parse_exit(&text);
        assert_eq!(exit, parsed);
        assert!(
            !body.contains("exit code") && !body.contains("killed by"),
            "c436: {body}"
        );
    }
}

#[test]
fn c134_marker_like_text_alone_is_output() {
    assert_eq!(
        parse_exit("[exit code: 5]"),
        ("[exit code: 5]", TerminalExit::Code(0))
    );
    assert_eq!(
        parse_exit("[killed by signal: SIGKILL]"),
        ("[killed by signal: SIGKILL]", TerminalExit::Code(0))
    );
}

#[test]
fn c438_without_marker_the_text_is_the_body() {
    for text in [
        "",
        "hello\n",
        "a\n[exit code: 3]\n",
        "a\n[exit code: x]",
        "a\n[killed by signal: me]",
    ] {
        assert_eq!(parse_exit(text), (text, TerminalExit::Code(0)));
    }
}

#[test]
fn c439_c440_the_marker_is_taken_off() {
    assert_eq!(
        parse_exit("oops\n[exit code: 3]"),
        ("oops", TerminalExit::Code(3))
    );
    assert_eq!(
        parse_exit("gone\n[killed by signal: SIGKILL]"),
        ("gone", TerminalExit::Signal("SIGKILL".into()))
    );
}

#[test]
fn c441_the_timeout_stays_in_the_body() {
    assert_eq!(
        parse_exit("slow\n[timed out after 100ms]\n[exit code: 143]"),
        ("slow\n[timed out after 100ms]", TerminalExit::Code(143))
    );
}
