//! An executor whose processes end when the test says so.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use dsh_bash::{
    Asked, BashExecutor, BashProcess, BashRequest, BashSpec, End, EndReason, Found, Limits, Member, Pipe,
    ProcessState, ResolveError, ShellEnd, ShellExit, StartError,
};
use dsh_output::{OutputConfig, OutputLog};
use tokio::sync::watch;

pub(crate) const LIMITS: Limits = Limits {
    executor: "played",
    cwd: None,
    timeout_ms: 1_000.0,
    max_timeout_ms: 60_000.0,
    max_output_bytes: 100,
};

#[derive(Default)]
pub(crate) struct Played {
    pub(crate) started: Mutex<Vec<Arc<Process>>>,
    pub(crate) check: Mutex<Check>,
}

/// How long a check takes.
#[derive(Clone, Copy, Default)]
pub(crate) enum Check {
    #[default]
    AtOnce,
    After(Duration),
    Never,
}

impl Played {
    pub(crate) fn spec(&self) -> BashSpec {
        self.resolve(BashRequest {
            workdir: Some("/".into()),
            ..BashRequest::new("true")
        })
        .unwrap()
    }

    pub(crate) fn only(&self) -> Arc<Process> {
        let started = self.started.lock().unwrap();
        assert_eq!(started.len(), 1);
        Arc::clone(&started[0])
    }
}

#[async_trait]
impl BashExecutor for Played {
    fn resolve(&self, request: BashRequest) -> Result<BashSpec, ResolveError> {
        LIMITS.resolve(request)
    }

    async fn check(&self, _: &BashSpec) -> Result<(), StartError> {
        let check = *self.check.lock().unwrap();
        match check {
            Check::AtOnce => {}
            // sleep: the clock is paused.
            Check::After(time) => tokio::time::sleep(time).await,
            Check::Never => std::future::pending().await,
        }
        Ok(())
    }

    fn start(&self, _: &BashSpec) -> Result<Arc<dyn BashProcess>, StartError> {
        let process = Arc::new(Process::default());
        self.started.lock().unwrap().push(Arc::clone(&process));
        Ok(process)
    }
}

pub(crate) struct Process {
    pub(crate) log: OutputLog,
    state: watch::Sender<(ProcessState, Option<ShellEnd>)>,
    pub(crate) asked: Mutex<Option<Asked>>,
    /// Whether a request to end is obeyed at once, with this exit.
    pub(crate) obeys: Mutex<Option<ShellExit>>,
}

impl Default for Process {
    fn default() -> Self {
        Self {
            log: OutputLog::new(OutputConfig::default()),
            state: watch::channel((ProcessState::Running, None)).0,
            asked: Mutex::default(),
            obeys: Mutex::new(Some(ShellExit::Signal {
                name: "SIGTERM".into(),
                core_dumped: false,
            })),
        }
    }
}

impl Process {
    /// The shell exits; its pipes are not drained yet.
    pub(crate) fn exit_shell(&self, exit: ShellExit) {
        self.state.send_modify(|state| {
            state.0 = ProcessState::ShellExited {
                exit,
                members: Vec::new(),
            }
        });
    }

    /// The pipes are drained.
    pub(crate) fn drain(&self, exit: ShellExit, left: Vec<Member>) {
        self.state.send_modify(|state| {
            state.1 = Some(ShellEnd {
                exit,
                left,
                limits_reached: Vec::new(),
                pipe: Pipe::Closed,
            })
        });
    }

    pub(crate) fn end(&self, exit: ShellExit) {
        self.end_with(exit, Vec::new());
    }

    pub(crate) fn end_with(&self, exit: ShellExit, survivors: Vec<Member>) {
        let asked = self.asked.lock().unwrap().clone();
        let end = End {
            exit: exit.clone(),
            asked,
            survivors,
            limits_reached: Vec::new(),
            pipe: Pipe::Closed,
        };
        self.state.send_modify(|state| {
            state.0 = ProcessState::Ended(end);
            state.1.get_or_insert(ShellEnd {
                exit,
                left: Vec::new(),
                limits_reached: Vec::new(),
                pipe: Pipe::Closed,
            });
        });
    }

    pub(crate) fn asked(&self) -> Option<EndReason> {
        self.asked.lock().unwrap().as_ref().map(|asked| asked.reason)
    }
}

#[async_trait]
impl BashProcess for Process {
    fn output(&self) -> &OutputLog {
        &self.log
    }

    fn state(&self) -> ProcessState {
        self.state.borrow().0.clone()
    }

    fn terminate(&self, reason: EndReason) {
        self.asked.lock().unwrap().get_or_insert(Asked {
            reason,
            found: Found::ShellRunning,
        });
        let exit = self.obeys.lock().unwrap().clone();
        if let Some(exit) = exit {
            self.end(exit);
        }
    }

    async fn shell_ended(&self) -> ShellEnd {
        let mut state = self.state.subscribe();
        let state = state.wait_for(|state| state.1.is_some()).await.unwrap();
        state.1.clone().unwrap()
    }

    async fn ended(&self) -> End {
        let mut state = self.state.subscribe();
        let state = state
            .wait_for(|state| matches!(state.0, ProcessState::Ended(_)))
            .await
            .unwrap();
        let ProcessState::Ended(end) = &state.0 else {
            unreachable!()
        };
        end.clone()
    }
}
