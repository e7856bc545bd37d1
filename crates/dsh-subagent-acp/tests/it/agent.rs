//! An agent that a test wrote down as a shell script, and somebody who delegates to it.

use std::path::PathBuf;
use std::sync::Arc;

use dsh_agent::{Agent, AgentHandle, AgentRegistry, AgentSpec};
use dsh_scope::Scope;
use dsh_session::SessionId;
use dsh_subagent::{Run, StartError, StartRequest, SubagentRegistry};
use dsh_subagent_acp::{AcpConfig, Deps, install};
use dsh_subprocess::Launcher;
use dsh_testkit::eventually;
use dsh_testkit::process::{Marker, gone, read_pid};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// What every agent can do. It reads a request a line; `answer` gives the result, `fail` the error of the one read last.
const WORDS: &str = r#"
hear() { read -r line || exit 0; rest=${line#*'"id":"'}; id=${rest%%'"'*}; }
answer() { printf '{"jsonrpc":"2.0","id":"%s","result":%s}\n' "$id" "$1"; }
fail() { printf '{"jsonrpc":"2.0","id":"%s","error":%s}\n' "$id" "$1"; }
update() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":%s}}\n' "$1"; }
say() { update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}'; }
up() { hear; answer '{"protocolVersion":1}'; hear; answer '{"sessionId":"s"}'; }
ask() {
    printf '{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{"sessionId":"s",'
    printf '"toolCall":{"toolCallId":"c"},"options":[%s]}}\n' "$1"
}
stop() { answer '{"stopReason":"'"$1"'"}'; }
forever() { while :; do sleep 600; done; }
echo $$ > "$ROOM/pid"
"#;

/// Somebody who delegates, in a room.
pub(crate) struct Host {
    pub(crate) room: TempDir,
    pub(crate) scope: Scope,
    pub(crate) subagents: SubagentRegistry,
    pub(crate) hurry: CancellationToken,
    agents: AgentRegistry,
    parent: AgentHandle,
    marker: Marker,
}

impl Host {
    pub(crate) fn new() -> Self {
        let room = TempDir::new().expect("a room");
        let scope = Scope::root("test");
        let agents = AgentRegistry::new();
        let spec = AgentSpec {
            id: SessionId::new("parent"),
            cwd: Some(room.path().to_owned()),
            within: scope.clone(),
        };
        let parent = agents.create(spec).expect("the first agent");
        Self {
            room,
            scope,
            subagents: SubagentRegistry::new(),
            hurry: CancellationToken::new(),
            agents,
            parent,
            marker: Marker::new(),
        }
    }

    /// A configuration whose agent reads `script`.
    pub(crate) fn shell(script: &str) -> AcpConfig {
        AcpConfig {
            args: vec!["-c".to_owned(), format!("{WORDS}{script}")],
            ..AcpConfig::new("sh")
        }
    }

    pub(crate) fn install(&self, config: AcpConfig) -> dsh_scope::EffectHandle {
        let deps = Deps {
            subagents: self.subagents.clone(),
            launcher: Launcher::groups(),
            hurry: self.hurry.clone(),
            ambient: vec![
                ("PATH".into(), "/usr/bin:/bin".into()),
                ("ROOM".into(), self.room.path().into()),
                (self.marker.env().0.into(), self.marker.env().1.into()),
            ],
        };
        install(&self.scope, deps, config).expect("a configuration")
    }

    pub(crate) fn parent(&self) -> &Arc<Agent> {
        self.parent.agent()
    }

    /// Somebody without a directory.
    pub(crate) fn homeless(&self) -> AgentHandle {
        let spec = AgentSpec {
            id: SessionId::new("homeless"),
            cwd: None,
            within: self.scope.clone(),
        };
        self.agents.create(spec).expect("a new id")
    }

    pub(crate) async fn start(&self, task: &str) -> Result<Run, StartError> {
        self.start_with(task, &CancellationToken::new()).await
    }

    pub(crate) async fn start_with(&self, task: &str, token: &CancellationToken) -> Result<Run, StartError> {
        let request = StartRequest::new(task, self.parent().clone(), token.clone());
        self.subagents.start("acp", request).await
    }

    /// A run of the agent that reads `script`.
    pub(crate) async fn run(&self, script: &str) -> Run {
        self.install(Host::shell(script));
        self.start("the task").await.expect("it starts")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.room.path().join(name)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.file(name).exists()
    }

    pub(crate) fn make(&self, name: &str) {
        std::fs::write(self.file(name), "").expect("a file");
    }

    pub(crate) async fn made(&self, name: &str) {
        eventually(&format!("{name} exists"), || self.has(name)).await;
    }

    /// The process that was started last.
    pub(crate) fn pid(&self) -> u32 {
        read_pid(&self.file("pid")).expect("it wrote its id first")
    }

    /// Nothing of any agent is left.
    pub(crate) fn assert_empty(&self) {
        let left = self.marker.survivors();
        assert!(left.is_empty(), "left running: {left:?}");
    }

    /// Ends everything, and nothing is left.
    pub(crate) async fn close(self) {
        self.scope.close().await.expect("it closes");
        if let Some(pid) = read_pid(&self.file("pid")) {
            gone(pid).await;
        }
        self.assert_empty();
    }
}
