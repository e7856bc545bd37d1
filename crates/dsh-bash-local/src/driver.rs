//! Follows one process from its start to the end of its tree.

use std::sync::Arc;
use std::time::Duration;

use dsh_bash::{BashProcess, EndReason, Member, Pipe, ShellEnd, ShellExit};
use dsh_output::Stream;
use dsh_scope::within;
use dsh_subprocess::{Launcher, LeaderExit, Limits, ProcessSpec, ProcessTree, Proof, Spawned, TreeEnd};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::process::{LocalProcess, Rest, Stage, member, members};
use crate::pump::Pump;

/// How long a member that is just going may take before it counts as left behind, and a start that is just coming before
/// it counts as hung when somebody is impatient.
const LINGER: Duration = Duration::from_millis(50);

/// What a start may take on a busy system, however short the grace is: one that is given up on may still run for a moment.
const START: Duration = Duration::from_secs(1);

/// The configured bounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) grace: Duration,
    pub(crate) drain: Duration,
}

/// Spawns `spec` and drives `process` to its end. `stop` asks for the end when the executor goes; after `hurry` no end
/// has a grace.
pub(crate) async fn drive(
    process: Arc<LocalProcess>,
    launcher: Launcher,
    spec: ProcessSpec,
    stop: CancellationToken,
    hurry: CancellationToken,
    bounds: Bounds,
) {
    let _total = EndOnDrop(Arc::clone(&process));
    let directory = spec.cwd.clone();
    let limits = spec.limits;
    let starting = launcher.spawn(spec);
    match started(starting, &process, &stop, &hurry, bounds.grace).await {
        Some(Ok(Spawned {
            tree, stdout, stderr, ..
        })) => {
            let pump = Pump::new(stdout, stderr, process.output().clone());
            let tree = Arc::new(tree);
            process.advance(Stage::Running);
            Driver {
                process,
                tree,
                pump,
                stop,
                hurry,
                bounds,
                limits,
                ending: Ending::NotAsked,
            }
            .run()
            .await;
        }
        Some(Err(error)) => fail(&process, format!("spawn failed: {error}")),
        None => {
            let directory = directory.display();
            let reason = "the system has not started it; it may wait for the file system of its directory";
            fail(&process, format!("spawn failed: {reason} {directory}"));
        }
    }
}

/// Waits for a start. One that hangs in the kernel when it was told to end is given up on after the grace, or [`START`] if
/// that is more; should it come to something later, whoever was to start it ends it.
async fn started<T>(
    starting: impl Future<Output = T>,
    process: &LocalProcess,
    stop: &CancellationToken,
    hurry: &CancellationToken,
    grace: Duration,
) -> Option<T> {
    tokio::pin!(starting);
    tokio::select! {
        biased;
        started = &mut starting => return Some(started),
        () = asked(process, stop) => {}
    }
    let hurried = async {
        hurry.cancelled().await;
        sleep(LINGER).await;
    };
    tokio::select! {
        biased;
        started = starting => Some(started),
        () = hurried => None,
        () = sleep(grace.max(START)) => None,
    }
}

struct Driver {
    process: Arc<LocalProcess>,
    tree: Arc<ProcessTree>,
    pump: Pump,
    stop: CancellationToken,
    hurry: CancellationToken,
    bounds: Bounds,
    limits: Limits,
    ending: Ending,
}

/// How far the tree was told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    NotAsked,
    /// It has the grace.
    Asked,
    /// It has none.
    Hurried,
}

impl Driver {
    async fn run(mut self) {
        let tree = Arc::clone(&self.tree);
        let exit = shell_exit(self.meanwhile(leader_exit(&tree)).await);
        self.process.advance(Stage::ShellExited {
            exit: exit.clone(),
            tree: Arc::clone(&tree),
        });

        let shell = self.shell_end(exit).await;
        if shell.pipe != Pipe::HeldByMember {
            // Nothing more will be read, so what was read is all: a caller who looks now sees it finished.
            self.pump.close();
            self.process.output().close();
        }
        self.process.advance(Stage::ShellEnded {
            end: shell.clone(),
            tree: Arc::clone(&tree),
        });

        let end = self.meanwhile(tree.ended()).await;
        let exit = proven_exit(shell.exit.clone(), &end);
        let limits_reached = limits_reached(&end);
        let survivors: Vec<_> = end.survivors.into_iter().map(member).collect();
        // Whoever holds a pipe that was already given up on was not a member then; it is not waited for again.
        let closed = match shell.pipe {
            Pipe::Closed => true,
            Pipe::HeldOutside => false,
            Pipe::HeldByMember => self.drain_after_members().await,
        };
        let pipe = match (closed, survivors.is_empty()) {
            (true, _) => Pipe::Closed,
            (false, true) => Pipe::HeldOutside,
            (false, false) => Pipe::HeldByMember,
        };
        let Self { process, pump, .. } = self;
        drop(pump);
        let rest = Rest {
            survivors,
            limits_reached,
            pipe,
        };
        process.end(Some(shell), exit, rest);
    }

    /// Drains the output after the shell's exit and looks who lives on.
    async fn shell_end(&mut self, exit: ShellExit) -> ShellEnd {
        let since = Instant::now();
        // In slices, because members may go, or leave the group, meanwhile.
        let slice = self.bounds.drain.min(self.bounds.grace);
        let mut left = members(&self.tree);
        loop {
            let closed = self.drain(Instant::now() + slice).await;
            let before = std::mem::replace(&mut left, self.lasting_members().await);
            let patient = left.is_empty() && !self.process.was_asked();
            let limit = if patient {
                self.bounds.grace
            } else {
                self.bounds.drain
            };
            // The last words of a member that went in this round may still be in the pipe.
            let all_gone = left.is_empty() && !before.is_empty();
            if closed || (since.elapsed() >= limit && !all_gone) {
                let pipe = match (closed, left.is_empty()) {
                    (true, _) => Pipe::Closed,
                    (false, true) => Pipe::HeldOutside,
                    (false, false) => Pipe::HeldByMember,
                };
                let limits_reached = if left.is_empty() {
                    self.limits_reached_by_now().await
                } else {
                    Vec::new()
                };
                return ShellEnd {
                    exit,
                    left,
                    limits_reached,
                    pipe,
                };
            }
        }
    }

    /// What the end of a tree without members tells of its limits: it comes at once. Nobody waits for it without limits.
    async fn limits_reached_by_now(&mut self) -> Vec<String> {
        if self.limits.is_none() {
            return Vec::new();
        }
        let tree = Arc::clone(&self.tree);
        let end = self.meanwhile(within(LINGER, tree.ended())).await;
        end.as_ref().map(limits_reached).unwrap_or_default()
    }

    /// Who is alive, and still is after a moment: a member that is just going is not left behind.
    async fn lasting_members(&mut self) -> Vec<Member> {
        if !self.tree.members().is_empty() {
            let tree = Arc::clone(&self.tree);
            self.meanwhile(within(LINGER, tree.ended())).await;
        }
        members(&self.tree)
    }

    /// The members are gone; what they wrote is in the pipe, or somebody outside holds it.
    async fn drain_after_members(&mut self) -> bool {
        let limit = if self.process.was_asked() {
            self.bounds.drain
        } else {
            self.bounds.grace
        };
        self.drain(Instant::now() + limit).await
    }

    /// Reads until both pipes end (true) or until `limit` (false).
    ///
    /// What is in the pipes then is read in any case: the limit, or a request to end, may come before the first look.
    async fn drain(&mut self, limit: Instant) -> bool {
        while self.pump.is_open() {
            tokio::select! {
                biased;
                () = urge(self.ending, &self.process, &self.stop, &self.hurry) => self.press(),
                () = sleep_until(limit) => {}
                () = self.pump.step() => continue,
            }
            self.pump.sweep();
            break;
        }
        !self.pump.is_open()
    }

    /// Awaits `until`; meanwhile reads output, and passes on a request to end.
    async fn meanwhile<F: Future>(&mut self, until: F) -> F::Output {
        tokio::pin!(until);
        loop {
            let ask = tokio::select! {
                biased;
                output = &mut until => return output,
                () = urge(self.ending, &self.process, &self.stop, &self.hurry) => true,
                () = self.pump.step(), if self.pump.is_open() => false,
            };
            if ask {
                self.press();
            }
        }
    }

    /// Tells the tree to end, or to end now.
    fn press(&mut self) {
        let grace = match self.ending {
            Ending::NotAsked if !self.hurry.is_cancelled() => {
                self.ending = Ending::Asked;
                self.bounds.grace
            }
            Ending::NotAsked | Ending::Asked | Ending::Hurried => {
                self.ending = Ending::Hurried;
                Duration::ZERO
            }
        };
        self.tree.terminate(grace);
    }
}

/// Resolves when the tree has to be told more than it was told.
async fn urge(ending: Ending, process: &LocalProcess, stop: &CancellationToken, hurry: &CancellationToken) {
    match ending {
        Ending::NotAsked => asked(process, stop).await,
        Ending::Asked => hurry.cancelled().await,
        Ending::Hurried => std::future::pending().await,
    }
}

/// Resolves when somebody asked for the end, or the executor goes.
async fn asked(process: &LocalProcess, stop: &CancellationToken) {
    tokio::select! {
        biased;
        () = process.asked() => {}
        () = stop.cancelled() => process.terminate(EndReason::Disposed),
    }
}

/// The leader's exit; `None` when the tree was given up on with its leader alive.
async fn leader_exit(tree: &ProcessTree) -> Option<LeaderExit> {
    tokio::select! {
        biased;
        exit = tree.leader_exit() => Some(exit),
        end = tree.ended() => end.leader,
    }
}

fn limits_reached(end: &TreeEnd) -> Vec<String> {
    end.limits_reached.iter().map(ToString::to_string).collect()
}

fn shell_exit(exit: Option<LeaderExit>) -> ShellExit {
    match exit {
        Some(LeaderExit::Code(code)) => ShellExit::Code(code),
        Some(LeaderExit::Signal { signal, core_dumped }) => ShellExit::Signal {
            name: signal.to_string(),
            core_dumped,
        },
        Some(exit @ (LeaderExit::Lost | LeaderExit::GuardLost)) => ShellExit::Unseen {
            reason: exit.to_string(),
        },
        None => ShellExit::Unseen {
            reason: "shell could not be ended".to_owned(),
        },
    }
}

/// How the shell exited, unless there is worse to tell of the end of its tree: a lost guard, or an end nobody saw.
fn proven_exit(exit: ShellExit, end: &TreeEnd) -> ShellExit {
    match (end.proof, exit) {
        (Proof::NotProven, ShellExit::Unseen { reason }) if end.survivors.is_empty() => ShellExit::Unseen {
            reason: format!("{reason}; end of the tree not proven"),
        },
        (Proof::NotProven, _) if end.survivors.is_empty() => ShellExit::Unseen {
            reason: "end of the tree not proven".to_owned(),
        },
        // Both only look after what a lost guard left behind; a process that moved itself to another cgroup is not in the
        // one that was seen.
        (Proof::Supervisor, _) => ShellExit::Unseen {
            reason: "guard lost; tree seen empty".to_owned(),
        },
        (Proof::Cgroup, _) => ShellExit::Unseen {
            reason: "guard lost; cgroup seen empty, end of the tree not proven".to_owned(),
        },
        (Proof::NotProven | Proof::Group | Proof::Guard, exit) => exit,
    }
}

fn fail(process: &LocalProcess, reason: String) {
    process.output().append(Stream::Stderr, reason.as_bytes());
    process.end(None, ShellExit::Failed { reason }, Rest::nothing());
}

/// Whatever happens to the driver, its process ends: nobody waits for it forever.
struct EndOnDrop(Arc<LocalProcess>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        if !self.0.has_ended() {
            let exit = ShellExit::Unseen {
                reason: "executor failed".to_owned(),
            };
            self.0.end(None, exit, Rest::nothing());
        }
    }
}

#[cfg(test)]
mod tests;
