//! Random trees, ended at random moments: after the end nobody who carries the mark is there.
//!
//! Each is bounded: a few levels, a few children each, nobody lives for more than a minute.

use std::ops::RangeInclusive;
use std::time::Duration;

use dsh_subprocess::Proof;
use dsh_testkit::eventually;

use crate::common::{Marked, bash, launcher};

const GROW: &str = r#"
grow() {
  local depth=$1 i
  for ((i = 0; i < 1 + RANDOM % 4; i++)); do
    case $((RANDOM % 11)) in
      0) sleep 60 & ;;
      1) setsid sleep 60 & ;;
      2) nohup sleep 60 >/dev/null 2>&1 & ;;
      3) (trap '' TERM; exec sleep 60 >/dev/null 2>&1) & ;;
      4) ( (sleep 60 &) ) ;;
      5) (kill -STOP $BASHPID; sleep 60) & ;;
      6) (exec <&- >&- 2>&-; sleep 60) & ;;
      7) (trap '' TERM; for j in {1..50}; do (setsid sleep 0.1 &); sleep 0.02; done) >/dev/null 2>&1 & ;;
      8) ((depth > 0)) && (set -m; grow $((depth - 1)); wait) & ;;
      9) ((depth > 0)) && setsid bash -c "$(declare -f grow); RANDOM=$RANDOM; grow $((depth - 1)); sleep 60" & ;;
      10) ((depth > 0)) && (trap '' TERM; (setsid bash -c "$(declare -f grow); RANDOM=$RANDOM; grow $((depth - 1))" &) ; sleep 60) & ;;
    esac
  done
}
"#;

/// A sequence that is the same in each run.
fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    }
}

/// Grows and ends the trees of these seeds.
pub(crate) async fn leave_nobody(seeds: RangeInclusive<u64>) {
    let launcher = launcher();
    let mut most = 0;
    for seed in seeds {
        let mut number = numbers(seed);
        let end = [
            "wait",
            "exit 0",
            "exec sleep 60",
            "trap '' TERM; while :; do sleep 60; done",
        ];
        let end = end[usize::try_from(number(4)).unwrap()];
        let command = format!("{GROW}\nRANDOM={}\ngrow 3\ngrow 3\n{end}", number(30_000));
        let marked = Marked::start_spec(&launcher, bash(&command)).await;
        // sleep: a moment that is different each time
        tokio::time::sleep(Duration::from_millis(number(400))).await;
        most = most.max(marked.living().len());
        let grace = Duration::from_millis([0, 5, 20][usize::try_from(number(3)).unwrap()]);
        if number(4) == 0 {
            let marker = marked.drop_tree();
            eventually("nobody", || marker.survivors().is_empty()).await;
        } else {
            marked.started.tree.terminate(grace);
            marked.assert_ends(Proof::Guard).await;
        }
    }
    assert!(most >= 10, "these were no trees: {most} members at most");
}
