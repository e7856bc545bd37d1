//! Random trees, ended at random moments: after the end nobody who carries the mark is there.
//!
//! Each is bounded: a few levels, a few children each, a few hundred members at most, all of them nice, and nobody
//! lives for more than a minute.

use std::ops::RangeInclusive;
use std::time::Duration;

use dsh_subprocess::{Launcher, Proof};
use dsh_testkit::eventually;
use dsh_testkit::namespace::not_run;

use crate::common::{Marked, PATH, bash, launcher};

/// Makes members of all kinds. `$STRANGE` makes those that a shell cannot make.
const GROW: &str = r#"
strange() { if [ -n "$STRANGE" ]; then exec python3 -c "$STRANGE" "$1" >/dev/null 2>&1; fi; }
grow() {
  local depth=$1 i
  for ((i = 0; i < 1 + RANDOM % 4; i++)); do
    case $((RANDOM % 16)) in
      0) sleep 60 & ;;
      1) setsid sleep 60 & ;;
      2) nohup sleep 60 >/dev/null 2>&1 & ;;
      3) (trap '' TERM; exec sleep 60 >/dev/null 2>&1) & ;;
      4) ( (sleep 60 &) ) ;;
      5) (kill -STOP $BASHPID; sleep 60) & ;;
      6) (exec <&- >&- 2>&-; sleep 60) & ;;
      7) (trap '' TERM; for j in {1..50}; do (setsid sleep 0.1 &); sleep 0.02; done) >/dev/null 2>&1 & ;;
      8) ((depth > 0)) && (set -m; grow $((depth - 1)); wait) & ;;
      9) ((depth > 0)) && setsid bash -c "$(declare -f grow strange); RANDOM=$RANDOM; grow $((depth - 1)); sleep 60" & ;;
      10) ((depth > 0)) && (trap '' TERM; (setsid bash -c "$(declare -f grow strange); RANDOM=$RANDOM; grow $((depth - 1))" &) ; sleep 60) & ;;
      11) (set -m; sleep 60 & set +m) ;;
      12) (strange sibling) & ;;
      13) (strange threads) & ;;
      14) (strange reaper) & ;;
      15) (trap '' TERM; strange headless) & ;;
    esac
  done
}
renice -n 10 $$ >/dev/null
"#;

const STRANGE: &str = include_str!("strange.py");

/// How the leader goes on when its tree has grown.
const ENDS: [&str; 4] = [
    "wait",
    "exit 0",
    "exec sleep 60",
    "trap '' TERM; while :; do sleep 60; done",
];

/// A sequence that is the same in each run.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Numbers {
        Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }
}

/// Grows and ends the trees of these seeds.
pub(crate) async fn leave_nobody(test: &str, seeds: RangeInclusive<u64>) {
    let launcher = launcher();
    let strange = strange(test);
    let mut sizes = Vec::new();
    for seed in seeds {
        // Shown when the test fails.
        println!("seed {seed}");
        sizes.push(grow_and_end(&launcher, strange, Numbers::new(seed)).await);
    }
    sizes.sort_unstable();
    let most = sizes.last().copied().unwrap_or_default();
    println!("members: median {}, most {most}", sizes[sizes.len() / 2]);
    assert!((10..1000).contains(&most), "{sizes:?}");
}

/// How many members there were.
async fn grow_and_end(launcher: &Launcher, strange: &str, mut numbers: Numbers) -> usize {
    let end = numbers.one_of(&ENDS);
    let seed = numbers.below(30_000);
    let mut spec = bash(&format!("{GROW}\nRANDOM={seed}\ngrow 3\ngrow 3\n{end}"));
    spec.env.push(("STRANGE".into(), strange.into()));
    let marked = Marked::start_spec(launcher, spec).await;
    // sleep: a moment that is different each time
    tokio::time::sleep(Duration::from_millis(numbers.below(400))).await;
    let members = marked.living().len();
    let grace = Duration::from_millis(numbers.one_of(&[0, 5, 20]));
    if numbers.below(4) == 0 {
        let marker = marked.drop_tree();
        eventually("nobody", || marker.survivors().is_empty()).await;
    } else {
        marked.started.tree.terminate(grace);
        marked.assert_ends(Proof::Guard).await;
    }
    members
}

/// The program for strange members, or nothing if there is nothing that runs it.
pub(crate) fn strange(test: &str) -> &'static str {
    let mut python = std::process::Command::new("python3");
    let tried = python.args(["-c", "import ctypes"]).env("PATH", PATH).output();
    if tried.is_ok_and(|output| output.status.success()) {
        return STRANGE;
    }
    not_run(
        test,
        "there is no python3, so these members are left out: CLONE_PARENT, children of threads, subreapers",
    );
    ""
}
