//! On directories with the files that a kernel with these controllers has. What the kernel makes of what is written to
//! them, no test can show where it has none.

use std::fs;
use std::fs::File;
use std::num::{NonZeroU32, NonZeroU64};

use super::*;

/// A directory with these files, as a cgroup.
fn fake(files: &[(&str, &str)]) -> (tempfile::TempDir, File) {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in files {
        fs::write(directory.path().join(name), content).unwrap();
    }
    let opened = File::open(directory.path()).unwrap();
    (directory, opened)
}

fn limits(memory_bytes: u64, pids: u32) -> Limits {
    Limits {
        memory_bytes: NonZeroU64::new(memory_bytes),
        pids: NonZeroU32::new(pids),
    }
}

fn content(directory: &tempfile::TempDir, name: &str) -> String {
    fs::read_to_string(directory.path().join(name)).unwrap()
}

#[test]
fn what_is_given_already_is_not_written_again() {
    let (directory, cgroup) = fake(&[
        ("cgroup.controllers", "cpu memory pids\n"),
        ("cgroup.subtree_control", "memory\n"),
    ]);
    enable(&cgroup, directory.path(), &["memory"]).unwrap();
    assert_eq!(content(&directory, "cgroup.subtree_control"), "memory\n");
    enable(&cgroup, directory.path(), &["memory", "pids"]).unwrap();
    assert!(content(&directory, "cgroup.subtree_control").starts_with("+pids"));
}

#[test]
fn all_that_is_missing_is_asked_for_at_once() {
    assert_eq!(
        missing("cpu memory pids", "", &["memory", "pids"]),
        Ok(vec!["memory", "pids"])
    );
    assert_eq!(
        missing("memory pids", "memory pids", &["memory", "pids"]),
        Ok(vec![])
    );
    assert_eq!(missing("memory pids", "", &[]), Ok(vec![]));
    let (directory, cgroup) = fake(&[
        ("cgroup.controllers", "memory pids\n"),
        ("cgroup.subtree_control", "\n"),
    ]);
    enable(&cgroup, directory.path(), &["memory", "pids"]).unwrap();
    assert_eq!(content(&directory, "cgroup.subtree_control"), "+memory +pids");
}

#[test]
fn a_controller_that_is_not_there_is_named_with_the_place_and_the_remedy() {
    assert_eq!(missing("hugetlb", "", &["memory"]), Err("memory"));
    assert_eq!(missing("memoryless", "", &["memory"]), Err("memory"));
    let (directory, cgroup) = fake(&[
        ("cgroup.controllers", "hugetlb\n"),
        ("cgroup.subtree_control", "\n"),
    ]);
    let error = enable(&cgroup, directory.path(), &["memory", "pids"]).unwrap_err();
    let said = error.to_string();
    assert!(matches!(
        error,
        LimitError::NoController {
            controller: "memory",
            ..
        }
    ));
    for part in [
        "no memory controller in",
        directory.path().to_str().unwrap(),
        "cgroup_no_v1=memory",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(
        content(&directory, "cgroup.subtree_control"),
        "\n",
        "nothing is half done"
    );
}

#[test]
fn a_controller_that_cannot_be_enabled_is_named_with_what_the_system_said() {
    // The file is not there, as if writing to it were refused.
    let (directory, cgroup) = fake(&[("cgroup.controllers", "memory pids\n")]);
    let error = enable(&cgroup, directory.path(), &["memory", "pids"]).unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains("cannot enable the memory and pids controller"),
        "{said}"
    );
    assert!(said.contains("no processes of its own"), "{said}");
}

#[test]
fn limits_are_written_as_the_kernel_reads_them() {
    let (directory, cgroup) = fake(&[
        ("memory.max", "max"),
        ("memory.swap.max", "max"),
        ("pids.max", "max"),
    ]);
    impose(&cgroup, &limits(1 << 20, 32)).unwrap();
    // The end of what was there remains, which files of a cgroup have not.
    assert_eq!(content(&directory, "memory.max"), "1048576");
    assert_eq!(content(&directory, "memory.swap.max"), "0ax");
    assert_eq!(content(&directory, "pids.max"), "32x");
}

#[test]
fn only_what_is_asked_for_is_limited() {
    let (_directory, cgroup) = fake(&[]);
    impose(&cgroup, &Limits::default()).unwrap();
    let (directory, cgroup) = fake(&[("pids.max", "")]);
    impose(&cgroup, &limits(0, 7)).unwrap();
    assert_eq!(content(&directory, "pids.max"), "7");
    let (directory, cgroup) = fake(&[("memory.max", "")]);
    impose(&cgroup, &limits(4096, 0)).unwrap();
    assert_eq!(content(&directory, "memory.max"), "4096");
}

#[test]
fn a_limit_that_is_refused_is_named() {
    let (_directory, cgroup) = fake(&[]);
    let said = impose(&cgroup, &limits(4096, 0)).unwrap_err().to_string();
    assert!(said.contains("cannot write 4096 to memory.max"), "{said}");
}

#[test]
fn a_limit_was_reached_when_the_kernel_counted_it() {
    let calm = "low 0\nhigh 0\nmax 3\noom 0\noom_kill 0\noom_group_kill 0\n";
    assert_eq!(Hits::counted(calm, "max 0\n"), Hits::default());
    assert_eq!(Hits::counted("", ""), Hits::default());
    let own = "low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\n";
    assert_eq!(
        Hits::counted(own, "max 2\n"),
        Hits {
            memory: true,
            pids: true
        }
    );
    let machine = "low 0\nhigh 0\nmax 0\noom 0\noom_kill 1\n";
    assert!(
        !Hits::counted(machine, "").memory,
        "the machine had no more memory"
    );
}
