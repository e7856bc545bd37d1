use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use super::*;
use crate::group::Group;

/// Ends with the test, however that ends.
struct Sleeper(Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A tree that no signal reaches, to be killed since `start`.
fn immune(start: Instant, kill_bound: Duration) -> (Sleeper, Arc<Grouped>, Ward) {
    let child = Command::new("sleep").arg("60").process_group(0).spawn().unwrap();
    let leader = Pid::from_child(&child);
    let group = Group::immune(leader, Stop::Grace { kill_at: Some(start) });
    let shared = Arc::new(Grouped::new(group, kill_bound));
    let ward = Ward::new(Arc::clone(&shared), None);
    (Sleeper(child), shared, ward)
}

fn end(shared: &Grouped) -> Option<TreeEnd> {
    shared.status.borrow().end.clone()
}

#[test]
fn survivors_are_named_after_the_bound_and_their_later_end_is_told() {
    let bound = Duration::from_secs(10);
    let start = Instant::now();
    let (mut sleeper, shared, mut ward) = immune(start, bound);
    assert!(matches!(ward.step(start), Progress::Waiting(Some(_))));
    assert!(matches!(
        ward.step(start + bound - Duration::from_secs(1)),
        Progress::Waiting(Some(_))
    ));
    assert_eq!(end(&shared), None, "nothing is told before the bound");

    let Progress::Waiting(Some(again)) = ward.step(start + bound) else {
        panic!("the watch was given up")
    };
    assert!(again > start + bound, "killing goes on");
    let told = end(&shared).unwrap();
    assert_eq!((told.leader, told.proof), (None, Proof::NotProven));
    assert_eq!(
        told.survivors.iter().map(|member| member.pid).collect::<Vec<_>>(),
        [sleeper.0.id()]
    );
    // Its name only, should it wait for the disk just then.
    assert!(told.survivors[0].command.starts_with("sleep"));

    sleeper.0.kill().unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while matches!(ward.step(Instant::now()), Progress::Waiting(_)) {
        assert!(Instant::now() < deadline, "the end was not seen");
        std::thread::yield_now();
    }
    let told = end(&shared).unwrap();
    assert_eq!((told.survivors.len(), told.proof), (0, Proof::Group));
    assert!(matches!(told.leader, Some(LeaderExit::Signal { .. })));
}
