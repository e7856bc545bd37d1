//! A room with an agent in it that delegates, and an app server that is a script.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dsh_agent::{AgentHandle, AgentRegistry, AgentSpec};
use dsh_scope::{EffectHandle, Scope};
use dsh_session::SessionId;
use dsh_subagent::{Run, RunResult, StartError, StartRequest, SubagentRegistry};
use dsh_subagent_codex::{CodexConfig, Deps, install};
use dsh_subprocess::Launcher;
use dsh_testkit::eventually;
use dsh_testkit::process::{Marker, is_gone, read_pid};
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// What every script can use. `hear` reads a frame and keeps it in the file `heard`; `greet` plays everything up to the
/// thread, `begin` up to the turn.
const PRELUDE: &str = r#"
say() { printf '%s\n' "$1"; }
hear() { read -r frame && printf '%s\n' "$frame" >> heard; }
greet() {
    hear; say '{"id":1,"result":{}}'; hear
    hear; say '{"method":"thread/started","params":{}}'
    say '{"id":2,"result":{"thread":{"id":"thread-1","ephemeral":true}}}'
}
begin() { greet; hear; say '{"id":3,"result":{"turn":{"id":"turn-1"}}}'; }
message() {
    say '{"method":"item/completed","params":{"threadId":"thread-1","turnId":"turn-1","item":{"type":"agentMessage","phase":"final_answer","text":"'"$1"'"}}}'
}
completed() { say '{"method":"turn/completed","params":{"threadId":"thread-1","turn":{"id":"turn-1","status":"completed"}}}'; }
failed() {
    say '{"method":"turn/completed","params":{"threadId":"thread-1","turn":{"id":"turn-1","status":"failed","error":{"message":"SECRET_TOKEN in /private/secret.txt","codexErrorInfo":'"$1"'}}}}'
}
listen() { while hear; do :; done; }
echo $$ > pid
"#;

/// What models and people must not see.
const SECRETS: [&str; 2] = ["SECRET_TOKEN", "/private/secret.txt"];

/// A room, in which `/bin/sh app-server --stdio` reads a script.
pub(crate) struct Room {
    pub(crate) scope: Scope,
    pub(crate) subagents: SubagentRegistry,
    pub(crate) agents: AgentRegistry,
    pub(crate) parent: AgentHandle,
    directory: TempDir,
    marker: Marker,
}

impl Room {
    /// A room whose app server does this; nothing is installed yet.
    pub(crate) fn bare(script: &str) -> Self {
        let directory = TempDir::new().expect("a directory");
        fs::write(directory.path().join("app-server"), format!("{PRELUDE}{script}")).expect("a script");
        let scope = Scope::root("test");
        let agents = AgentRegistry::new();
        let parent = agents.create(AgentSpec {
            id: SessionId::new("session-1"),
            cwd: Some(directory.path().to_owned()),
            within: scope.clone(),
        });
        Self {
            scope,
            subagents: SubagentRegistry::new(),
            agents,
            parent: parent.expect("a new id"),
            directory,
            marker: Marker::new(),
        }
    }

    /// And it is installed.
    pub(crate) fn new(script: &str) -> Self {
        let room = Self::bare(script);
        room.install(CodexConfig::default());
        room
    }

    /// Installs the provider, with `/bin/sh` for its program if the configuration names none.
    pub(crate) fn install(&self, config: CodexConfig) -> EffectHandle {
        let program = config.program.unwrap_or_else(|| "/bin/sh".into());
        let config = CodexConfig {
            program: Some(program),
            ..config
        };
        install(&self.scope, self.deps(), config).expect("it can be installed")
    }

    pub(crate) fn deps(&self) -> Deps {
        let (name, value) = self.marker.env();
        Deps {
            subagents: self.subagents.clone(),
            launcher: Launcher::groups(),
            hurry: CancellationToken::new(),
            ambient: vec![
                ("PATH".into(), "/usr/bin:/bin".into()),
                ("AMBIENT".into(), "it".into()),
                (name.into(), value.into()),
            ],
        }
    }

    pub(crate) fn request(&self, token: &CancellationToken) -> StartRequest {
        StartRequest::new("the task", self.parent.agent().clone(), token.clone())
    }

    pub(crate) async fn try_start(&self) -> Result<Run, StartError> {
        let request = self.request(&CancellationToken::new());
        self.subagents.start("codex", request).await
    }

    pub(crate) async fn start(&self) -> Run {
        self.try_start().await.expect("it starts")
    }

    /// Starts and disposes, and has seen that no more is told than may be.
    pub(crate) async fn run(&self) -> RunResult {
        let run = self.start().await;
        let result = run.result().await.expect("a result");
        run.dispose().await.expect("nothing is left");
        self.assert_empty();
        assert_safe(&format!("{result:?}"));
        result
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The frames that the app server has heard.
    pub(crate) fn heard(&self) -> Vec<Value> {
        let text = self.text("heard");
        // The last line may be half written.
        text.lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// Their methods.
    pub(crate) fn methods(&self) -> Vec<String> {
        let frames = self.heard();
        frames
            .iter()
            .filter_map(|frame| Some(frame["method"].as_str()?.to_owned()))
            .collect()
    }

    pub(crate) async fn made(&self, name: &str) {
        let file = self.file(name);
        eventually(&format!("{name} to be made"), || file.exists()).await;
    }

    pub(crate) fn make(&self, name: &str) {
        fs::write(self.file(name), "").expect("a file");
    }

    /// Lets nothing else in this thread go on until the app server has exited.
    pub(crate) fn hold_until_it_exited(&self) {
        hold_until("the app server's exit", || {
            read_pid(&self.file("pid")).is_some_and(is_gone)
        });
    }

    /// Lets nothing else in this thread go on until the file is there.
    pub(crate) fn hold_until_made(&self, name: &str) {
        hold_until(name, || self.file(name).exists());
    }

    /// No app server was ever started.
    pub(crate) fn assert_unstarted(&self) {
        assert!(!self.file("pid").exists(), "it was started");
    }

    /// Whether no process of this room is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.marker.survivors().is_empty()
    }

    /// No process of this room is left.
    pub(crate) fn assert_empty(&self) {
        assert!(self.is_empty(), "left: {:?}", self.marker.survivors());
    }
}

fn hold_until(what: &str, fact: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !fact() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::yield_now();
    }
}

/// Nothing that was planted.
pub(crate) fn assert_safe(text: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{text}");
    }
}

/// What a result says beside its output.
pub(crate) fn diagnostic(result: &RunResult) -> &str {
    result.diagnostic.as_ref().expect("a diagnostic").as_str()
}

/// The first line of a diagnostic.
pub(crate) fn line(fields: &str) -> String {
    format!("Product subagent failure (product: Codex; {fields})")
}

/// The text of a refusal, in which nothing is that was planted.
pub(crate) fn refusal(started: Result<Run, StartError>) -> String {
    let text = started.expect_err("no run").to_string();
    assert_safe(&text);
    text
}
