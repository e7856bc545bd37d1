use std::sync::Barrier;
use std::thread;

use super::*;

/// Every moment at which somebody else may have removed it first: before it is looked at, before its lock is opened,
/// and before what is in it is removed.
#[test]
fn a_directory_that_somebody_else_removed_first_is_no_failure() {
    let base = tempfile::tempdir().unwrap();
    remove_if_dead(&base.path().join("gone")).unwrap();
    for round in 0..200 {
        let dead = base.path().join(format!("{PREFIX}{round}"));
        std::fs::create_dir(&dead).unwrap();
        for name in [LOCK, "output-1.log", "output-2.log"] {
            std::fs::write(dead.join(name), "x").unwrap();
        }
        let together = Barrier::new(3);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    together.wait();
                    remove_if_dead(&dead).unwrap();
                });
            }
        });
        assert!(!dead.exists());
    }
}
