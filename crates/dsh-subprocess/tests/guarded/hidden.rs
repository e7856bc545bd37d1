//! Members of another user where `/proc` does not show them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use dsh_subprocess::{Cgroups, Launcher, Proof};
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;

use crate::cgroup::left_out;
use crate::common::{bash_in, helper_after, inside, is_inside, line, run};

const DIRECTORY: &str = "DSH_TEST_DIRECTORY";

#[test]
fn a_survivor_that_is_hidden_is_named() {
    let name = "hidden::a_survivor_that_is_hidden_is_named";
    if is_inside() {
        return run(async {
            let directory = std::env::var_os(DIRECTORY).unwrap();
            let helper = helper_after(directory.as_ref(), "true").cgroups(Cgroups::Off);
            let launcher = Launcher::guarded(helper).unwrap();
            let mut spec = bash_in(directory.as_ref(), "./become --reuid 0 sleep 8 & echo $!; wait");
            spec.kill_bound = Duration::from_millis(300);
            let mut started = launcher.spawn(spec).await.unwrap();
            let of = |pid: u32| Pid::from_raw(pid.cast_signed());
            let survivor: u32 = line(&mut started.stdout).await.parse().unwrap();
            dsh_testkit::eventually("another user's", || {
                !fs::exists(format!("/proc/{survivor}")).unwrap()
                    && kill(of(survivor), None) == Err(Errno::EPERM)
            })
            .await;
            started.tree.terminate(Duration::ZERO);
            let end = started.tree.ended().await;
            assert_eq!(end.proof, Proof::NotProven);
            let named: Vec<_> = end
                .survivors
                .iter()
                .map(|member| (member.pid, &*member.command))
                .collect();
            assert_eq!(named, [(survivor, "(hidden)")]);
        });
    }
    // Where everybody may get to what is needed.
    let directory = tempfile::tempdir_in("/tmp").unwrap();
    let become_other = directory.path().join("become");
    let is_prepared = fs::copy("/usr/bin/setpriv", &become_other).is_ok()
        && fs::set_permissions(&become_other, fs::Permissions::from_mode(0o4755)).is_ok()
        && fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).is_ok();
    let script =
        "mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid 65534 --regid 65534 --clear-groups";
    let unshared = |command: &str| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "sh", "-c", &format!("{script} {command}")]);
        unshare
    };
    let test = inside(name, "");
    let shell = unshared("true").output();
    if !is_prepared || !shell.is_ok_and(|shell| shell.status.success()) {
        return left_out("this takes the rights of root");
    }
    let output = unshared("\"$0\" \"$@\"")
        .arg(test.get_program())
        .args(test.get_args())
        .envs(test.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .env(DIRECTORY, directory.path())
        .output()
        .unwrap();
    let shown = [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .concat();
    assert!(output.status.success() && shown.contains("1 passed"), "{shown}");
}
