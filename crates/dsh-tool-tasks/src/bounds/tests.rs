//! The tables of what is kept at which limit.

use super::{acknowledgement, notice, read};

const RUNNING: &str = "[status: running]";

fn job_notice(id: &str, limit: Option<usize>) -> String {
    let through_id = format!("background job {id}");
    let sentence = format!(
        "{through_id} (bash: pnpm test) finished [status: completed, exit code: 0]. \
         Read its output with job_output."
    );
    notice(&sentence, &through_id, "Done; job_output.", limit)
}

#[test]
fn a_notice_keeps_the_id_and_the_action_before_all_else() {
    let whole = job_notice("bash-1", None);
    assert_eq!(whole.len(), 116);
    assert_eq!(job_notice("bash-1", Some(116)), whole);
    for (id, limit, expected) in [
        (
            "bash-6",
            100,
            "background job bash-6 (bash: pnpm test) finished [status: compl\n[notice truncated]\nDone; job_output.",
        ),
        (
            "bash-10",
            60,
            "background job bash-10 \n[notice truncated]\nDone; job_output.",
        ),
        ("bash-15", 56, "background job bash-15\nDone; job_output."),
        ("bash-15", 40, "background job bash-15\nDone; job_output."),
        ("bash-16", 30, "background j\nDone; job_output."),
        ("bash-16", 32, "background job\nDone; job_output."),
        ("bash-16", 18, "\nDone; job_output."),
        ("bash-16", 10, "ob_output."),
        ("bash-16", 8, "_output."),
        ("bash-16", 1, "."),
    ] {
        assert_eq!(job_notice(id, Some(limit)), expected, "limit {limit}");
    }
}

#[test]
fn a_read_keeps_the_status_line_and_the_end_of_the_output() {
    let body = "hello world this is long output";
    let whole = format!("{body}\n{RUNNING}");
    for (limit, expected) in [
        (50, whole.as_str()),
        (49, whole.as_str()),
        (48, "long output\n[output truncated]\n[status: running]"),
        (30, "t truncated]\n[status: running]"),
        (18, "\n[status: running]"),
        (1, "]"),
    ] {
        assert_eq!(read(body, RUNNING, Some(limit)), expected, "limit {limit}");
    }
    assert_eq!(read(body, RUNNING, None), whole);
}

#[test]
fn a_read_is_marked_once_and_cut_between_characters() {
    assert_eq!(
        read("0123456789\n[output truncated]", RUNNING, Some(40)),
        "789\n[output truncated]\n[status: running]"
    );
    let text = read(&"ä".repeat(100), RUNNING, Some(48));
    assert!(
        text.len() <= 48 && text.starts_with('ä') && text.ends_with(RUNNING),
        "{text}"
    );
}

#[test]
fn t67_a_body_that_fits_is_left_as_it_is() {
    assert_eq!(
        read("(no new output)", RUNNING, Some(64)),
        read("(no new output)", RUNNING, None)
    );
    assert_eq!(
        read("line one\n", RUNNING, Some(64)),
        "line one\n[status: running]"
    );
}

#[test]
fn an_acknowledgement_keeps_the_id_wherever_it_fits() {
    let text = "requested cancellation of task bash-1";
    for (limit, expected) in [
        (37, text),
        (36, "bash-1\n[result truncated]"),
        (8, "bash-1"),
        (6, "bash-1"),
        (5, "bash-"),
    ] {
        assert_eq!(
            acknowledgement(text, "bash-1", Some(limit)),
            expected,
            "limit {limit}"
        );
    }
    let finished = "task bash-1 had already finished [status: killed, signal: SIGTERM]";
    let cut = acknowledgement(finished, "bash-1", Some(64));
    assert_eq!(
        cut,
        "task bash-1 had already finished [status: kil\n[result truncated]"
    );
}

#[test]
fn no_limit_is_ever_exceeded_and_what_must_survive_does() {
    let id = "pty-send-100";
    let through_id = format!("background task {id}");
    let sentence = format!("{through_id} (pty-send: größer — größer) finished [status: completed].");
    let action = "Done; task_output.";
    let acknowledgements = [
        format!("requested cancellation of task {id}"),
        format!("task {id} had already finished [status: failed, größer]"),
    ];
    for limit in 0..160 {
        for body in ["", "x\n", "größer\n", &"ö".repeat(100), "a\n[output truncated]"] {
            let text = read(body, RUNNING, Some(limit));
            assert!(
                text.len() <= limit && (limit < RUNNING.len() || text.ends_with(RUNNING)),
                "{limit}: {text}"
            );
        }
        for acknowledged in &acknowledgements {
            let text = acknowledgement(acknowledged, id, Some(limit));
            assert!(
                text.len() <= limit && (limit < id.len() || text.contains(id)),
                "{limit}: {text}"
            );
        }
        let text = notice(&sentence, &through_id, action, Some(limit));
        assert!(text.len() <= limit, "{limit}: {text}");
        if limit > through_id.len() + action.len() {
            assert!(text.starts_with(&through_id), "{limit}: {text}");
            assert!(text == sentence || text.ends_with(action), "{limit}: {text}");
        }
    }
}
