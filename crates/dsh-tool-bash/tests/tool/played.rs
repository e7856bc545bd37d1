//! An executor whose processes do what the test says.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use dsh_bash::{
    Asked, BashExecutor, BashProcess, BashRequest, BashSpec, End, EndReason, Found, Limits, Member, Pipe,
    ProcessState, ResolveError, ShellEnd, ShellExit, StartError,
};
use dsh_output::{OutputConfig, OutputLog};
use tokio::sync::watch;

const LIMITS: Limits = Limits {
    executor: "played",
    cwd: None,
    timeout_ms: 1_000_000.0,
    max_timeout_ms: 1_000_000.0,
    max_output_bytes: 1_000,
};

/// Starts one process, which the test holds.
pub(crate) struct Played(pub(crate) Arc<Process>);

pub(crate) struct Process {
    pub(crate) log: OutputLog,
    state: watch::Sender<ProcessState>,
    asked: Mutex<Option<Asked>>,
}

impl Process {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            log: OutputLog::new(OutputConfig::default()),
            state: watch::Sender::new(ProcessState::Running),
            asked: Mutex::default(),
        })
    }

    /// The shell exits, these live on.
    pub(crate) fn exit(&self, exit: ShellExit, members: Vec<Member>) {
        self.state
            .send_replace(ProcessState::ShellExited { exit, members });
    }

    /// It ends: nobody is left, or these survive.
    pub(crate) fn end(&self, exit: ShellExit, survivors: Vec<Member>) {
        self.end_at(exit, survivors, Vec::new());
    }

    /// It ends at these limits.
    pub(crate) fn end_at(&self, exit: ShellExit, survivors: Vec<Member>, limits_reached: Vec<String>) {
        self.log.close();
        let end = End {
            exit,
            asked: self.asked.lock().unwrap().clone(),
            survivors,
            limits_reached,
            pipe: Pipe::Closed,
        };
        self.state.send_replace(ProcessState::Ended(end));
    }

    pub(crate) fn asked(&self) -> Option<EndReason> {
        self.asked.lock().unwrap().as_ref().map(|asked| asked.reason)
    }
}

/// Lets time go by. The clock is paused, so it takes none.
pub(crate) async fn pass(time: Duration) {
    // sleep: the clock is paused.
    tokio::time::sleep(time).await;
}

pub(crate) fn member(pid: u32, command: &str) -> Member {
    Member {
        pid,
        command: command.into(),
    }
}

impl BashExecutor for Played {
    fn resolve(&self, request: BashRequest) -> Result<BashSpec, ResolveError> {
        LIMITS.resolve(request)
    }

    fn start(&self, _: &BashSpec) -> Result<Arc<dyn BashProcess>, StartError> {
        Ok(Arc::clone(&self.0) as Arc<dyn BashProcess>)
    }
}

#[async_trait]
impl BashProcess for Process {
    fn output(&self) -> &OutputLog {
        &self.log
    }

    fn state(&self) -> ProcessState {
        self.state.borrow().clone()
    }

    fn terminate(&self, reason: EndReason) {
        let found = match self.state() {
            ProcessState::ShellExited { .. } => Found::ShellExited,
            _ => Found::ShellRunning,
        };
        self.asked.lock().unwrap().get_or_insert(Asked { reason, found });
    }

    async fn shell_ended(&self) -> ShellEnd {
        let mut state = self.state.subscribe();
        loop {
            match &*state.borrow_and_update() {
                ProcessState::Starting | ProcessState::Running => {}
                ProcessState::ShellExited { exit, members } => {
                    return ShellEnd {
                        exit: exit.clone(),
                        left: members.clone(),
                        limits_reached: Vec::new(),
                        pipe: Pipe::HeldByMember,
                    };
                }
                ProcessState::Ended(end) => {
                    return ShellEnd {
                        exit: end.exit.clone(),
                        left: Vec::new(),
                        limits_reached: end.limits_reached.clone(),
                        pipe: end.pipe,
                    };
                }
            }
            state.changed().await.unwrap();
        }
    }

    async fn ended(&self) -> End {
        let mut state = self.state.subscribe();
        loop {
            if let ProcessState::Ended(end) = &*state.borrow_and_update() {
                return end.clone();
            }
            state.changed().await.unwrap();
        }
    }
}

/// Asks a directory that does not answer, and so starts nothing.
pub(crate) struct Hung;

#[async_trait]
impl BashExecutor for Hung {
    fn resolve(&self, request: BashRequest) -> Result<BashSpec, ResolveError> {
        LIMITS.resolve(request)
    }

    async fn check(&self, _: &BashSpec) -> Result<(), StartError> {
        std::future::pending().await
    }

    fn start(&self, _: &BashSpec) -> Result<Arc<dyn BashProcess>, StartError> {
        Err(StartError::Closed { executor: "hung" })
    }
}
