use nix::sys::signal::{SigSet, Signal, raise};

use rustix::process::getpid;

use super::*;

/// A guard of whose tree nobody is left.
fn empty<'a>(harness: &'a mut Harness, children: &'a Children) -> Guard<'a> {
    Guard {
        harness,
        children,
        leader: getpid(),
        state: Leader::Reaped,
        status: None,
        stop: Stop::No,
        kill_bound: Duration::ZERO,
        signalled: Signalled::No,
        cgroup: None,
        limited: Limited::No,
        ask: ASK,
    }
}

#[test]
fn a_signal_that_the_last_member_sent_before_it_went_is_noticed() {
    SigSet::all().thread_block().unwrap();
    let children = Children::new().unwrap();
    let mut harness = Harness(None);
    let mut guard = empty(&mut harness, &children);
    guard.clear_signals();
    assert_eq!(guard.after(), After::Waits);

    // Signals were looked at; now one comes, and then nobody is left.
    raise(Signal::SIGUSR2).unwrap();
    assert_eq!(guard.after(), After::Goes);
}
