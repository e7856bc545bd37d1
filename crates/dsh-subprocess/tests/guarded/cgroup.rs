//! Commands in cgroups: what these add to guards, that nothing of them stays, and that nothing changes without.
//!
//! Where this program cannot make cgroups they say that they did not run.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dsh_subprocess::{Cgroups, GuardConfig, GuardError, Launcher, LeaderExit, Proof};
use dsh_testkit::namespace::not_run;
use dsh_testkit::{eventually, eventually_within};
use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::{Marked, NEVER, SHORT, bash, launcher_with, line, parent, run, start, state, text};

/// How many cgroups are made ahead.
const READY: usize = 8;

/// A shell script that puts the supervisor's number into a variable.
const SUPERVISOR: &str = "read -r _ _ _ supervisor _ < /proc/$PPID/stat";

/// And one that puts the process `$STRANGER` into the cgroup of the command.
pub(crate) const MOVE_STRANGER: &str = "read -r mount < <(sed -n 's/^\\(\\S* \\)\\{4\\}\\(\\S*\\) .* - cgroup2 .*/\\2/p' /proc/self/mountinfo); \
     IFS=: read -r _ _ own < <(grep ^0:: /proc/self/cgroup); echo $STRANGER > $mount/$own/cgroup.procs";

/// The cgroup of version 2 that a process is in.
fn cgroup_of(pid: impl std::fmt::Display) -> String {
    let all = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let own = all.lines().find_map(|line| line.strip_prefix("0::"));
    own.unwrap_or_default().to_owned()
}

/// Where this program could make cgroups, found without the crate under test.
fn base() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    let base = Path::new(mount.split(' ').nth(4)?).join(cgroup_of("self").trim_start_matches('/'));
    let probe = base.join(format!("test-{}", std::process::id()));
    fs::create_dir(&probe).ok()?;
    let usable = probe.join("cgroup.kill").exists();
    fs::remove_dir(&probe).unwrap();
    usable.then(|| base.components().collect())
}

/// Runs a test with a launcher that makes cgroups, and where it makes them.
pub(crate) fn contained<F: Future<Output = ()>>(test: impl FnOnce(Launcher, PathBuf) -> F) {
    match base() {
        Some(base) => run(test(launcher_with(Cgroups::Auto), base)),
        None => left_out("no cgroups can be made here"),
    }
}

pub(crate) fn left_out(reason: &str) {
    let test = std::thread::current();
    not_run(test.name().unwrap(), reason);
}

/// The directories in which this program has cgroups of commands.
pub(crate) fn homes(base: &Path, pid: u32) -> Vec<PathBuf> {
    let prefix = format!("dsh-commands-{pid}-");
    let entries = fs::read_dir(base).unwrap().flatten();
    let named = entries.filter(|entry| entry.file_name().to_str().unwrap().starts_with(&prefix));
    named.map(|entry| entry.path()).collect()
}

/// The cgroups of commands in a home.
pub(crate) fn cgroups(home: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(home).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect()
}

pub(crate) fn signal(pid: u32, signal: Signal) {
    let _ = kill(Pid::from_raw(pid.cast_signed()), signal);
}

#[test]
fn a_command_is_born_in_a_cgroup_of_its_own() {
    contained(async |launcher, base| {
        let script = "grep ^0:: /proc/self/cgroup; grep ^0:: /proc/$PPID/cgroup; \
                      (setsid sleep 60 & echo $!); exec sleep 60";
        let mut seen = BTreeSet::new();
        for _ in 0..3 {
            let mut marked = Marked::start(&launcher, script).await;
            let home = homes(&base, std::process::id()).remove(0);
            let own = marked.line().await;
            let own = own.strip_prefix("0::").unwrap();
            assert_eq!(Path::new(own).parent().unwrap().file_name(), home.file_name());
            assert!(seen.insert(own.to_owned()), "another one for each command");
            assert_eq!(
                marked.line().await,
                format!("0::{}", cgroup_of("self")),
                "not its guard"
            );
            let escaped = marked.line().await;
            assert_eq!(cgroup_of(&escaped), own);
            assert_eq!(cgroup_of(marked.started.tree.pid()), own);
            marked.started.tree.terminate(NEVER);
            marked.assert_ends(Proof::Guard).await;
        }
    });
}

#[test]
fn without_cgroups_nothing_else_changes() {
    contained(async |launcher, base| {
        let script = "trap 'echo term; exit 4' TERM; setsid sleep 60 & echo ready; wait";
        let mut ends = Vec::new();
        for launcher in [launcher_with(Cgroups::Off), launcher] {
            let mut marked = Marked::start(&launcher, script).await;
            assert_eq!(marked.line().await, "ready");
            if ends.is_empty() {
                assert_eq!(homes(&base, std::process::id()), Vec::<PathBuf>::new());
                assert_eq!(cgroup_of(marked.started.tree.pid()), cgroup_of("self"));
            }
            assert_eq!(marked.started.tree.members().len(), 1);
            marked.started.tree.terminate(NEVER);
            assert_eq!(marked.line().await, "term");
            ends.push(marked.assert_ends(Proof::Guard).await);
        }
        assert_eq!(ends[0], ends[1]);
    });
}

#[test]
fn guard_and_supervisor_killed_at_once_is_proven_by_the_cgroup() {
    contained(async |launcher, _| {
        let script = format!(
            "{SUPERVISOR}; setsid sleep 60 & (setsid bash -c 'trap \"\" TERM; sleep 60 & disown; sleep 60' &); \
             echo ready; kill -STOP $supervisor; kill -9 $PPID $supervisor; sleep 60"
        );
        for _ in 0..3 {
            let mut marked = Marked::start(&launcher, &script).await;
            marked.line().await;
            let end = marked.assert_ends(Proof::Cgroup).await;
            assert_eq!(end.leader, Some(LeaderExit::GuardLost));
        }
        let next = start(&launcher, "exit 4").await.tree;
        assert_eq!(next.leader_exit().await, LeaderExit::Code(4));
        assert_eq!(next.ended().await.proof, Proof::Guard);
    });
}

#[test]
fn a_guard_that_cannot_act_does_not_delay_the_kill() {
    contained(async |launcher, base| {
        let mut marked =
            Marked::start(&launcher, "trap '' TERM; setsid sleep 60 & echo ready; sleep 60").await;
        marked.line().await;
        // No signal lets it go on.
        let freezer = Freezer(base.join(format!("test-frozen-{}", std::process::id())));
        let guard = parent(marked.started.tree.pid()).to_string();
        let moved = fs::create_dir(&freezer.0).and_then(|()| freezer.write("cgroup.procs", &guard));
        if moved.and_then(|()| freezer.write("cgroup.freeze", "1")).is_err() {
            return left_out("guards cannot be frozen here");
        }
        marked.started.tree.terminate(SHORT);
        // Long before anybody gives up on the guard.
        let soon = Duration::from_secs(5);
        eventually_within("nobody", soon, || marked.living().is_empty()).await;
        freezer.write("cgroup.freeze", "0").unwrap();
        marked.assert_ends(Proof::Guard).await;
        drop((marked, launcher));
        eventually("no guard", || fs::remove_dir(&freezer.0).is_ok()).await;
    });
}

/// A cgroup that lets go whom it holds, however its test ends.
pub(crate) struct Freezer(pub(crate) PathBuf);

impl Freezer {
    pub(crate) fn write(&self, file: &str, value: &str) -> std::io::Result<()> {
        fs::write(self.0.join(file), value)
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        let _ = self.write("cgroup.freeze", "0");
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn many_commands_leave_no_cgroup() {
    contained(async |launcher, base| {
        for round in 0..200 {
            let command = if round % 20 == 0 {
                "setsid sleep 60 & exit 0"
            } else {
                "exit 0"
            };
            let tree = start(&launcher, command).await.tree;
            if round % 2 == 0 {
                tree.terminate(Duration::ZERO);
                assert_eq!(tree.ended().await.proof, Proof::Guard);
            }
        }
        let home = homes(&base, std::process::id()).remove(0);
        eventually("those made ahead alone", || cgroups(&home).len() <= READY).await;
        drop(launcher);
        eventually("none", || !home.exists()).await;
    });
}

#[test]
fn cgroups_of_a_lost_supervisor_go_with_its_last_tree() {
    contained(async |launcher, base| {
        let marked = Marked::start(&launcher, "exec sleep 60").await;
        let lost = homes(&base, std::process::id()).remove(0);
        let supervisor = parent(parent(marked.started.tree.pid()));
        signal(supervisor, Signal::SIGKILL);
        eventually("a reaped supervisor", || state(supervisor).is_none()).await;
        // Its successor has a place of its own.
        let next = Marked::start(&launcher, "exec sleep 60").await;
        assert_eq!(homes(&base, std::process::id()).len(), 2);
        assert_eq!(marked.living().len(), 1);
        marked.started.tree.terminate(NEVER);
        marked.assert_ends(Proof::Guard).await;
        drop(marked);
        eventually("none of the lost one", || !lost.exists()).await;
        next.started.tree.terminate(NEVER);
        next.assert_ends(Proof::Guard).await;
    });
}

/// A home that was left behind by a program of the same number and cannot be swept away. Another test may do so before
/// it is locked.
fn locked(home: &Path) -> Flock<fs::File> {
    loop {
        let _ = fs::create_dir(home);
        let lock = fs::File::open(home)
            .ok()
            .and_then(|directory| Flock::lock(directory, FlockArg::LockExclusiveNonblock).ok());
        if let Some(lock) = lock.filter(|_| home.exists()) {
            return lock;
        }
    }
}

#[test]
fn names_that_are_taken_are_no_obstacle() {
    contained(async |launcher, base| {
        let name = |number| base.join(format!("dsh-commands-{}-{number}", std::process::id()));
        let others: Vec<_> = (0..100).map(|number| locked(&name(number))).collect();
        let tree = start(&launcher, "exec sleep 60").await.tree;
        let own = cgroup_of(tree.pid());
        for number in 0..others.len() {
            fs::remove_dir(name(number)).unwrap();
        }
        assert!(
            own.contains(&format!("/dsh-commands-{}-", std::process::id())),
            "{own}"
        );
        tree.terminate(NEVER);
        tree.ended().await;
    });
}

#[test]
fn the_name_of_a_home_is_not_used_again() {
    contained(async |_, base| {
        let mut seen = BTreeSet::new();
        for _ in 0..3 {
            let launcher = launcher_with(Cgroups::Auto);
            start(&launcher, "exit 0").await.tree.ended().await;
            let home = homes(&base, std::process::id()).remove(0);
            assert!(seen.insert(home.clone()), "{home:?}");
            drop(launcher);
            eventually("no home", || !home.exists()).await;
        }
    });
}

#[test]
fn a_bomb_of_sessions_ends() {
    contained(async |launcher, _| {
        // Capped by the shell itself, and polite.
        let script = "renice -n 10 $$ >/dev/null; trap '' TERM; n=0; while [ $n -lt 150 ]; do n=$((n + 1)); \
                      setsid bash -c 'trap \"\" TERM; while :; do sleep 1; done' & done; echo ready; wait; sleep 60";
        let mut marked = Marked::start(&launcher, script).await;
        marked.line().await;
        marked.started.tree.terminate(Duration::ZERO);
        marked.assert_ends(Proof::Guard).await;
    });
}

#[test]
fn whoever_is_put_into_the_cgroup_is_of_the_tree() {
    contained(async |launcher, _| {
        let mut stranger = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let script = format!("{MOVE_STRANGER} && echo moved");
        let mut spec = bash(&script);
        spec.env
            .push(("STRANGER".into(), stranger.id().to_string().into()));
        let started = launcher.spawn(spec).await.unwrap();
        let printed = text(started.stdout).await;
        if printed != "moved\n" {
            left_out("processes cannot be moved here");
            stranger.kill().unwrap();
            stranger.wait().unwrap();
            return;
        }
        assert_eq!(started.tree.leader_exit().await, LeaderExit::Code(0));
        // What the shell substituted may take a moment longer.
        eventually("the stranger alone", || {
            let members = started.tree.members();
            members.len() == 1 && members[0].pid == stranger.id()
        })
        .await;
        started.tree.terminate(Duration::ZERO);
        assert_eq!(started.tree.ended().await.proof, Proof::Guard);
        assert_eq!(stranger.wait().unwrap().to_string(), "signal: 9 (SIGKILL)");
    });
}

#[test]
fn cgroups_that_a_command_makes_in_its_own_go_with_it() {
    contained(async |launcher, base| {
        let script = "read -r mount < <(sed -n 's/^\\(\\S* \\)\\{4\\}\\(\\S*\\) .* - cgroup2 .*/\\2/p' /proc/self/mountinfo); \
                      IFS=: read -r _ _ own < <(grep ^0:: /proc/self/cgroup); \
                      mkdir -p $mount/$own/a/b; sleep 60 & echo $! > $mount/$own/a/b/cgroup.procs; echo $mount/$own; wait";
        let mut marked = Marked::start(&launcher, script).await;
        let own = PathBuf::from(marked.line().await);
        assert!(own.starts_with(&base) && own.join("a/b").exists(), "{own:?}");
        eventually("its child alone", || marked.started.tree.members().len() == 1).await;
        marked.started.tree.terminate(NEVER);
        marked.assert_ends(Proof::Guard).await;
        eventually("no such cgroup", || !own.exists()).await;
    });
}

#[test]
fn a_directory_that_was_named_is_used_or_refused() {
    contained(async |_, base| {
        let named = base.join(format!("test-named-{}", std::process::id()));
        fs::create_dir(&named).unwrap();
        let launcher = launcher_with(Cgroups::Within(named.clone()));
        let mut started = start(&launcher, "grep ^0:: /proc/self/cgroup; exec sleep 60").await;
        let own = line(&mut started.stdout).await;
        assert!(
            own.contains(named.file_name().unwrap().to_str().unwrap()),
            "{own}"
        );
        started.tree.terminate(NEVER);
        started.tree.ended().await;
        drop((started, launcher));
        eventually("an empty directory", || fs::remove_dir(&named).is_ok()).await;
    });
    for directory in ["/", "/no/such/place"] {
        let config = GuardConfig::helper(env!("CARGO_BIN_EXE_dsh-guard"));
        let error = Launcher::guarded(config.cgroups(Cgroups::Within(directory.into()))).unwrap_err();
        assert!(
            matches!(&error, GuardError::Cgroup { directory: named, .. } if named == Path::new(directory))
        );
        assert!(error.to_string().contains("name a writable directory"), "{error}");
    }
}
