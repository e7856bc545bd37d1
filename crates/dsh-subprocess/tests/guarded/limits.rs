//! Limits of commands: held by the kernel where they can be, refused where not.

use std::fs;
use std::num::{NonZeroU32, NonZeroU64};

use dsh_subprocess::{Cgroups, Launcher, LeaderExit, LimitError, Limits, SpawnError};

use crate::cgroup::{contained, left_out};
use crate::common::{bash, launcher_with, run, start};

fn limits(memory_bytes: u64, pids: u32) -> Limits {
    Limits {
        memory_bytes: NonZeroU64::new(memory_bytes),
        pids: NonZeroU32::new(pids),
    }
}

#[test]
fn limits_without_a_cgroup_are_refused() {
    run(async {
        for launcher in [Launcher::groups(), launcher_with(Cgroups::Off)] {
            let mut spec = bash("echo ran > /dev/null");
            spec.limits = limits(1 << 30, 0);
            let error = launcher.spawn(spec).await.unwrap_err();
            assert!(
                matches!(error, SpawnError::Limits(LimitError::NoCgroup { .. })),
                "{error:?}"
            );
            let said = error.to_string();
            assert!(said.contains("limits need a cgroup"), "{said}");
            assert_eq!(
                launcher
                    .check_limits(&limits(1 << 30, 0))
                    .unwrap_err()
                    .to_string(),
                said
            );
            launcher.check_limits(&Limits::default()).unwrap();
            start(&launcher, "exit 0").await;
        }
    });
}

#[test]
fn limits_hold_where_the_controllers_are_and_are_refused_where_not() {
    contained(async |launcher, base| {
        let available = fs::read_to_string(base.join("cgroup.controllers")).unwrap();
        for (controller, limits) in [("memory", limits(64 << 20, 0)), ("pids", limits(0, 16))] {
            let checked = launcher.check_limits(&limits);
            let mut spec =
                bash("x=$(head -c 200M /dev/zero | tr '\\0' x); for i in {1..40}; do sleep 1 & done; exit 0");
            spec.limits = limits;
            if available.split_whitespace().any(|found| found == controller) && checked.is_ok() {
                let tree = launcher.spawn(spec).await.unwrap().tree;
                let end = tree.ended().await;
                assert_eq!(end.limits_reached.len(), 1, "{end:?}");
                continue;
            }
            left_out(&format!(
                "a {controller} limit, because there is no such controller in {}",
                base.display()
            ));
            let error = launcher.spawn(spec).await.unwrap_err();
            assert_eq!(error.to_string(), checked.unwrap_err().to_string());
            let said = error.to_string();
            assert!(
                said.contains(controller) && said.contains(base.to_str().unwrap()),
                "{said}"
            );
        }
        // And what has no limits runs.
        assert_eq!(
            start(&launcher, "exit 4").await.tree.leader_exit().await,
            LeaderExit::Code(4)
        );
    });
}
