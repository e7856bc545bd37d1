use super::*;

const UNIFIED: &str = "\
22 28 0:21 / /proc rw,nosuid - proc proc rw
35 28 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate
";

const HYBRID: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

fn found(mounts: &str, membership: &str) -> Option<PathBuf> {
    own_directory(mounts.as_bytes(), membership.as_bytes())
}

#[test]
fn the_own_directory_is_below_the_mount() {
    let membership = "0::/system.slice/dsh.service\n";
    let expected = "/sys/fs/cgroup/system.slice/dsh.service";
    assert_eq!(found(UNIFIED, membership), Some(expected.into()));
}

#[test]
fn a_hybrid_hierarchy_has_it_elsewhere() {
    let membership = "4:memory:/a\n1:cpu:/\n0::/\n";
    assert_eq!(found(HYBRID, membership), Some("/sys/fs/cgroup/unified/".into()));
}

#[test]
fn a_mount_shows_a_part_of_the_hierarchy() {
    let mounts = "35 28 0:30 /box/one /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    assert_eq!(found(mounts, "0::/box/one/a\n"), Some("/sys/fs/cgroup/a".into()));
    assert_eq!(found(mounts, "0::/box/oneself\n"), None);
    assert_eq!(found(mounts, "0::/\n"), None);
}

#[test]
fn the_mount_that_shows_it_is_taken() {
    let mounts =
        "35 28 0:30 /other /elsewhere rw - cgroup2 none rw\n36 28 0:30 / /here rw - cgroup2 none rw\n";
    assert_eq!(found(mounts, "0::/a\n"), Some("/here/a".into()));
}

#[test]
fn a_name_with_spaces_is_one_name() {
    let mounts = "35 28 0:30 / /my\\040groups rw - cgroup2 cgroup2 rw\n";
    assert_eq!(found(mounts, "0::/a b\n"), Some("/my groups/a b".into()));
}

#[test]
fn a_cgroup_outside_of_the_namespace_is_not_shown() {
    assert_eq!(found(UNIFIED, "0::/../neighbour\n"), None);
}

#[test]
fn without_version_2_there_is_none() {
    assert_eq!(found(HYBRID, "4:memory:/a\n"), None);
    assert_eq!(found("22 28 0:21 / /proc rw - proc proc rw\n", "0::/\n"), None);
    assert_eq!(found("", ""), None);
}

#[test]
fn a_directory_of_another_file_system_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let refusal = Base::given(directory.path().into()).unwrap_err().to_string();
    assert!(refusal.contains("cgroup"), "{refusal}");
}
