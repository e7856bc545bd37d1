//! The handle that callers hold, and what it shares with the driver.
//!
//! **Invariants**
//!
//! 1. Everything shared is one value under one lock (a `watch`): the stage and the first request to end.
//! 2. Stages only advance, and only the driver advances them; `Ended` is last and final.
//! 3. The first request is kept. One that comes after `Ended` is not recorded.

use std::sync::Arc;

use async_trait::async_trait;
use dsh_bash::{Asked, BashProcess, End, EndReason, Found, Member, Pipe, ProcessState, ShellEnd, ShellExit};
use dsh_output::OutputLog;
use dsh_subprocess::ProcessTree;
use tokio::sync::watch;

/// In the arguments of every shell that runs a command under a guard, and hardly anywhere else.
const GUARDED_SHELL: &str = "BASH_EXECUTION_STRING=$(</proc/";

pub(crate) struct LocalProcess {
    log: OutputLog,
    shared: watch::Sender<Shared>,
}

struct Shared {
    stage: Stage,
    asked: Option<Asked>,
}

#[derive(Clone)]
pub(crate) enum Stage {
    Starting,
    Running,
    /// The shell has exited, its output is being drained.
    ShellExited {
        exit: ShellExit,
        tree: Arc<ProcessTree>,
    },
    /// The foreground may return; the tree may live on.
    ShellEnded {
        end: ShellEnd,
        tree: Arc<ProcessTree>,
    },
    Ended {
        shell: ShellEnd,
        end: End,
    },
}

/// What there is to say of an end besides the shell's exit.
pub(crate) struct Rest {
    pub(crate) survivors: Vec<Member>,
    pub(crate) limits_reached: Vec<String>,
    pub(crate) pipe: Pipe,
}

impl Rest {
    pub(crate) fn nothing() -> Rest {
        Rest {
            survivors: Vec::new(),
            limits_reached: Vec::new(),
            pipe: Pipe::Closed,
        }
    }
}

impl LocalProcess {
    pub(crate) fn new(log: OutputLog) -> Self {
        let (shared, _) = watch::channel(Shared {
            stage: Stage::Starting,
            asked: None,
        });
        Self { log, shared }
    }

    /// Moves on to `stage`.
    pub(crate) fn advance(&self, stage: Stage) {
        self.shared.send_modify(|shared| shared.stage = stage);
    }

    /// The last stage. Reads the request to end under the same lock, so that one is either in the end or too late.
    pub(crate) fn end(&self, shell: Option<ShellEnd>, exit: ShellExit, rest: Rest) {
        let Rest {
            survivors,
            limits_reached,
            pipe,
        } = rest;
        self.log.close();
        self.shared.send_modify(|shared| {
            let end = End {
                exit: exit.clone(),
                asked: shared.asked.clone(),
                survivors,
                limits_reached: limits_reached.clone(),
                pipe,
            };
            let shell = shell.unwrap_or(ShellEnd {
                exit,
                left: Vec::new(),
                limits_reached,
                pipe,
            });
            shared.stage = Stage::Ended { shell, end };
        });
    }

    /// Resolves once the end was asked for.
    pub(crate) async fn asked(&self) {
        self.reached(|shared| shared.asked.as_ref().map(drop)).await;
    }

    pub(crate) fn was_asked(&self) -> bool {
        self.shared.borrow().asked.is_some()
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.shared.borrow().stage, Stage::Ended { .. })
    }

    /// Waits until `answer` has one.
    async fn reached<T>(&self, answer: impl Fn(&Shared) -> Option<T>) -> T {
        let mut changes = self.shared.subscribe();
        loop {
            if let Some(answer) = answer(&changes.borrow_and_update()) {
                return answer;
            }
            if changes.changed().await.is_err() {
                // `self` holds the sender, so this cannot be.
                std::future::pending::<()>().await;
            }
        }
    }
}

#[async_trait]
impl BashProcess for LocalProcess {
    fn output(&self) -> &OutputLog {
        &self.log
    }

    fn state(&self) -> ProcessState {
        // Members are looked up outside the lock: that reads files.
        let stage = self.shared.borrow().stage.clone();
        match stage {
            Stage::Starting => ProcessState::Starting,
            Stage::Running => ProcessState::Running,
            Stage::ShellExited { exit, tree }
            | Stage::ShellEnded {
                end: ShellEnd { exit, .. },
                tree,
            } => ProcessState::ShellExited {
                exit,
                members: members(&tree),
            },
            Stage::Ended { end, .. } => ProcessState::Ended(end),
        }
    }

    fn terminate(&self, reason: EndReason) {
        self.shared.send_if_modified(|shared| {
            let found = match shared.stage {
                Stage::Starting | Stage::Running => Found::ShellRunning,
                Stage::ShellExited { .. } | Stage::ShellEnded { .. } => Found::ShellExited,
                Stage::Ended { .. } => return false,
            };
            let first = shared.asked.is_none();
            shared.asked.get_or_insert(Asked { reason, found });
            first
        });
    }

    async fn shell_ended(&self) -> ShellEnd {
        self.reached(|shared| match &shared.stage {
            Stage::Starting | Stage::Running | Stage::ShellExited { .. } => None,
            Stage::ShellEnded { end, .. } => Some(end.clone()),
            Stage::Ended { shell, .. } => Some(shell.clone()),
        })
        .await
    }

    async fn ended(&self) -> End {
        self.reached(|shared| match &shared.stage {
            Stage::Ended { end, .. } => Some(end.clone()),
            _ => None,
        })
        .await
    }
}

pub(crate) fn members(tree: &ProcessTree) -> Vec<Member> {
    tree.members().into_iter().map(member).collect()
}

/// A subshell has the arguments of its shell. Under a guard these say only where the command was read from, so it is
/// told as what it is.
pub(crate) fn member(member: dsh_subprocess::Member) -> Member {
    let is_subshell = member.command.contains(GUARDED_SHELL);
    Member {
        pid: member.pid,
        command: if is_subshell {
            "[shell]".to_owned()
        } else {
            member.command
        },
    }
}
