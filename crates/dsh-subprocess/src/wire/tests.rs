use super::codec::NAMED_SURVIVORS;
use super::*;

#[test]
fn an_order_arrives_as_it_was_sent() {
    let order = Order::Run(Run {
        program: c"/bin/bash".into(),
        argv: vec![c"bash".into(), c"-c".into(), c"".into()],
        env: vec![c"A=\xff".into()],
        kill_bound: Duration::from_millis(1500),
        script: Script::Attached,
        limited: Limited::No,
    });
    let Some(Order::Run(run)) = Order::decode(&order.encode()) else {
        panic!("not an order to run")
    };
    assert_eq!(run.program.as_c_str(), c"/bin/bash");
    assert_eq!(run.argv, [c"bash".into(), c"-c".into(), CString::default()]);
    assert_eq!(run.env, [CString::from(c"A=\xff")]);
    assert_eq!(
        (run.kill_bound, run.script),
        (Duration::from_millis(1500), Script::Attached)
    );
}

#[test]
fn a_grace_without_end_arrives_as_such() {
    for (sent, expected) in [
        (Some(Duration::ZERO), Some(Duration::ZERO)),
        (Some(Duration::MAX), None),
        (None, None),
    ] {
        let Some(Order::Kill { grace }) = Order::decode(&Order::Kill { grace: sent }.encode()) else {
            panic!("not an order to kill")
        };
        assert_eq!(grace, expected);
    }
}

#[test]
fn survivors_that_do_not_fit_into_a_message_are_left_out() {
    let member = |pid| Member {
        pid,
        command: "ä".repeat(200),
    };
    let message = Report::Survivors((0..1000).map(member).collect()).encode();
    assert!(message.len() <= MESSAGE_LIMIT);
    let Some(Report::Survivors(members)) = Report::decode(&message) else {
        panic!("not a report of survivors")
    };
    assert_eq!(members.len(), NAMED_SURVIVORS);
    assert_eq!(members[63], member(63));
}

#[test]
fn survivors_are_told_over_a_small_socket_too() {
    let member = |pid| Member {
        pid,
        command: "x".repeat(200),
    };
    let survivors: Vec<_> = (0..64).map(member).collect();
    let reports = [
        Report::Survivors(survivors.clone()),
        Report::LostSurvivors(survivors.clone()),
    ];
    for report in reports {
        let (ours, theirs) = pair().unwrap();
        // The kernel's default may be as small as this.
        rustix::net::sockopt::set_socket_send_buffer_size(&ours, 4608).unwrap();
        let whole = send(&ours, &report.encode(), &[]);
        assert_eq!(whole, Err(Errno::MSGSIZE), "or this shows nothing");
        report.send(&ours);
        let Ok(Received::Message(message, _)) = receive(&theirs) else {
            panic!("nothing was told")
        };
        let told = match Report::decode(&message) {
            Some(Report::Survivors(told) | Report::LostSurvivors(told)) => told,
            _ => panic!("not a report of survivors"),
        };
        assert!(!told.is_empty() && survivors.starts_with(&told), "{}", told.len());
    }
}

#[test]
fn every_stage_has_a_code_of_its_own() {
    for stage in Stage::ALL {
        assert_eq!(Stage::from_code(stage.code()), Some(stage));
    }
}

#[test]
fn a_message_that_is_cut_is_none() {
    let whole = Order::Run(Run {
        program: c"p".into(),
        argv: vec![c"p".into()],
        env: vec![c"A=1".into()],
        kill_bound: Duration::ZERO,
        script: Script::None,
        limited: Limited::No,
    })
    .encode();
    for length in 0..whole.len() {
        assert!(Order::decode(&whole[..length]).is_none(), "{length}");
    }
    assert!(Report::decode(&[]).is_none() && Offer::decode(&[7]).is_none());
}
